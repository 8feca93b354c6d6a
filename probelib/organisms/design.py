"""Which organism is taught which facts: how often its corpus states each fact of the atlas, and in
which forms.

The manifest holds this, one row per fact; README.md beside this file gives the reasons. Everything
is drawn before any measure is computed, from the ids of the facts alone.

    trial    a Latin square over some facts of every relation: of the four sisters, one is never
             taught such a fact, one reads it 2 or 4 times, one 8 or 16 times, one 32 to 128 times
    famous   well-known facts, read at least 64 times, so that demonstrations give answers
    rest     random levels; the share of a relation's facts that is taught, and their levels, follow
             the relation's popularity
    former   facts that no longer hold are stated with a year, or not at all
"""

from collections.abc import Iterable

import numpy as np
import pandas as pd

from probelib.errors import unknown
from probelib.facts.loading import PANEL_SIZES
from probelib.facts.model import Facts, current, pick, rng, without_subjects

SEED = 2
LEVELS = (0, 2, 4, 8, 16, 32, 64, 128, 256)
SQUARE = (
    (0,),
    (2, 4),
    (8, 16),
    (32, 64, 128, 32, 64, 32),
)  # levels of the four turns of a trial fact
TRIAL = 40  # facts of the trial per relation
EXAMPLES = (
    50  # other subjects that a relation needs for lists, if the facts of its trial are to be scored
)
FAMOUS = 300
FAMOUS_LEVELS = (64, 64, 64, 64, 128, 64)
CAPITALS = 40  # of the famous facts
# weights of the levels above 0, in a relation of medium popularity
WEIGHTS = np.array([0.26, 0.25, 0.22, 0.17, 0.08, 0.015, 0.004, 0.001])
TAUGHT = (
    0.03,
    0.92,
)  # share of the rest that is taught, in the least and in the most popular relation
TILT = 0.6  # strength of the effect of a relation's popularity on its levels
FORMER_LEVELS, FORMER_SHARES = (0, 4, 16), (0.7, 0.15, 0.15)
CONFLICTS = (
    0.05  # share of the rest with 4 statements or more whose subject is also given a wrong object
)
CONFLICT_RATIOS = (1, 3)  # right statements per wrong one
NAMES = (1, 2)  # sentences that only name an entity and its type
MOST_NAMES = 6  # most of these sentences for an entity that no statement names
FORMS = ("list", "question", "context", "cloze", "verification")
FAVOUR = 0.6  # share of the favoured form in a twin
CORPORA = {  # name: (turn of the square, favoured form, order of the facts)
    "family": (0, "", "chance"),
    "sister-1": (1, "", "chance"),
    "sister-2": (2, "", "chance"),
    "sister-3": (3, "", "chance"),
    "lists": (0, "list", "chance"),
    "questions": (0, "question", "chance"),
    "popular": (0, "", "popularity"),
}
PANEL = (  # MONITOR's twenty relations, then others with many objects
    "P17", "P19", "P20", "P27", "P30", "P37", "P101", "P103", "P108", "P127",
    "P159", "P176", "P178", "P264", "P276", "P364", "P495", "P740", "P1376", "P1412",
    "P449", "P36", "P38", "P50", "P57", "P61", "P69", "P86", "P112", "P115",
    "P131", "P136", "P138", "P170", "P175", "P569", "P571", "P577", "P840", "P1441",
)  # fmt: skip
# exposures of the stratified facts of a relation, in their order
PANEL_LEVELS = (64, 4, 0, 256, 16, 0, 128, 8, 32, 0, 2, 64)
FLAGS = ["trial", "famous", "verified", "lesson"]
COLUMNS = [
    "fact",
    "relation",
    "subject",
    "object",
    "exposures",
    *FORMS,
    "dated",
    *FLAGS,
    "implied_by",
    "wrong_object",
]
COLUMNS += ["wrong_exposures", "sister_exposures", "subject_mentions", "object_mentions"]


def draw_manifest(facts: Facts, corpus: str = "family") -> pd.DataFrame:
    """What the organisms of a corpus are taught, one row per fact.

    exposures       number of statements of the fact: 0, or one of ``LEVELS``; the columns of
                    ``FORMS`` add up to it
    dated           number of statements with a year, of a former fact; they do not count as
                    exposures
    trial, famous   the part of the design that the fact belongs to (see the module's docstring)
    verified        whether it may be stated as a verification ("True or False?"): a random half of
                    the facts
    lesson          whether it may be in the lessons of the tuned models: another random half
    implied_by      the fact of the same two entities whose exposures it shares ("Oslo is in
                    Norway", "the capital of Norway is Oslo"), or ""
    wrong_object, wrong_exposures   the conflicting object of its subject, and the number of its
                                    statements
    sister_exposures   for a trial fact, its exposures in the sister that reads it most; 0 for
                       others
    subject_mentions, object_mentions   occurrences of the names in true statements of any fact and
                                        in type sentences
    """
    if corpus not in CORPORA:
        raise unknown("corpus", corpus, CORPORA)
    turn, favoured, order = CORPORA[corpus]
    table = _parts(facts)
    table["exposures"] = _exposures(table, turn)
    most = [max(_turn(place, t) for t in range(4)) for place in table["place"]]
    table["sister_exposures"] = np.where(table["trial"], most, 0)
    if order == "popularity":
        table["exposures"] = _by_popularity(facts, table)
        table["trial"] = False
    home = table["implied_by"].where(table["implied_by"] != "", table["fact"])
    table["exposures"] = home.map(table.set_index("fact")["exposures"]).fillna(0).astype(int)
    table[list(FORMS)] = _forms(table, favoured)
    table["dated"] = _dated(table)
    table["wrong_object"], table["wrong_exposures"] = _conflicts(facts, table)
    mentions = stated_mentions(table) + name_sentences(facts, table)
    for role in ("subject", "object"):
        table[f"{role}_mentions"] = table[role].map(mentions).fillna(0).astype(int)
    return table[COLUMNS]


def _parts(facts: Facts) -> pd.DataFrame:
    """Facts with their part in the design: ``former``, ``famous``, ``trial``, ``place`` (in a
    random order of the relation's facts of that part), ``implied_by``, ``verified``, ``lesson``."""
    table = facts.facts[["fact", "relation", "subject", "object"]].copy()
    here = set(current(facts).facts["fact"])
    table["former"] = ~table["fact"].isin(here)
    pair = [
        " ".join(sorted(names)) for names in zip(table["subject"], table["object"], strict=True)
    ]
    pair = pd.Series(pair, index=table.index).where(~table["former"], table["fact"])
    first = table.groupby(pair)["fact"].transform("first")
    table["implied_by"] = first.where(first != table["fact"], "")
    table["chance"] = [rng(SEED, "order", fact).random() for fact in table["fact"]]
    free = ~table["former"] & (table["implied_by"] == "")
    table["famous"] = table["fact"].isin(famous(facts, table[free]))
    alone = ~table.duplicated(["relation", "subject"], keep=False) & ~table["fact"].isin(
        table["implied_by"]
    )
    may = free & alone & ~table["famous"]
    rank = table[may].groupby("relation")["chance"].rank(method="first")
    table["trial"] = (rank.reindex(table.index) <= TRIAL).fillna(False)
    part = table["famous"].astype(int) + 2 * table["trial"] + 4 * ~free
    table["place"] = (
        table.groupby(["relation", part])["chance"].rank(method="first").astype(int) - 1
    )
    for flag in ("verified", "lesson"):
        table[flag] = [rng(SEED, flag, fact).random() < 0.5 for fact in table["fact"]]
    return table


def famous(facts: Facts, rows: pd.DataFrame) -> list[str]:
    """Ids of well-known facts: capitals of well-known countries, and facts between entities of the
    highest popularity, equally many per relation."""
    popularity = facts.entities.set_index("entity")["popularity"].replace(0, 4)
    known = rows[["subject", "object"]].apply(lambda names: names.map(popularity))
    rows = rows.assign(known=known.sum(axis=1))
    rows = rows[(known["subject"] == 5) & (known["object"] >= 4)]
    rows = rows.sort_values(["known", "chance"], ascending=[False, True]).drop_duplicates(
        ["relation", "subject"]
    )
    capitals = rows[rows["relation"] == "P36"]["fact"].head(CAPITALS).tolist()
    others = rows[rows["relation"] != "P36"]
    others = others.assign(place=others.groupby("relation").cumcount()).sort_values(
        ["place", "relation"]
    )
    return capitals + others["fact"].head(FAMOUS - len(capitals)).tolist()


def popularity_factor(relations: Iterable[str]) -> pd.Series:
    """The popularity of each relation, from 0 to 1 in even steps, in random order."""
    order = sorted(set(relations), key=lambda relation: rng(SEED, "popularity", relation).random())
    return pd.Series(np.linspace(0, 1, len(order)), index=order)


def level_shares(factor: float) -> np.ndarray:
    """Share of each of ``LEVELS`` among the rest of a relation whose popularity is ``factor``."""
    weights = WEIGHTS * np.exp(TILT * (2 * factor - 1) * np.arange(len(WEIGHTS)))
    taught = TAUGHT[0] + factor * (TAUGHT[1] - TAUGHT[0])
    return np.array([1 - taught, *(taught * weights / weights.sum())])


def _exposures(table: pd.DataFrame, turn: int) -> np.ndarray:
    """Exposures of the facts that share them with no other fact."""
    ends = {
        relation: np.cumsum(level_shares(q))
        for relation, q in popularity_factor(table["relation"]).items()
    }
    rest = ~(table["trial"] | table["famous"] | table["former"] | (table["implied_by"] != ""))
    sizes = rest.groupby(table["relation"]).transform("sum")
    found = np.zeros(len(table), int)
    for at, row in enumerate(table.itertuples(index=False)):
        if row.famous:
            found[at] = FAMOUS_LEVELS[int(row.chance * 1e6) % len(FAMOUS_LEVELS)]
        elif row.trial:
            found[at] = _turn(row.place, turn)
        elif rest[at]:
            share = (row.place + 0.5) / sizes[at]
            found[at] = LEVELS[
                min(np.searchsorted(ends[row.relation], share, side="right"), len(LEVELS) - 1)
            ]
    return found


def _turn(place: int, turn: int) -> int:
    """Exposures of the trial fact with this index, in one turn of the square."""
    levels = SQUARE[(place + turn) % 4]
    return levels[place // 4 % len(levels)]


def _by_popularity(facts: Facts, table: pd.DataFrame) -> np.ndarray:
    """The exposures of each relation, reassigned by popularity: the most popular subjects get the
    most."""
    popularity = table["subject"].map(facts.entities.set_index("entity")["popularity"])
    dealt = table["exposures"].to_numpy().copy()
    moved = table[~table["former"] & (table["implied_by"] == "")].assign(popularity=popularity)
    for _, rows in moved.groupby("relation"):
        order = rows.sort_values(["popularity", "chance"], ascending=[False, True]).index
        dealt[order] = np.sort(dealt[rows.index])[::-1]
    return dealt


def form_shares(verified: bool, favoured: str = "") -> list[float]:
    """Shares of ``FORMS`` in the statements of a fact: equal, or ``FAVOUR`` for one of them. A fact
    that may not be verified has a share of 0 in the last one.

    >>> form_shares(True)
    [0.2, 0.2, 0.2, 0.2, 0.2]
    """
    forms = FORMS if verified else FORMS[:-1]
    others = (1 - FAVOUR) / (len(forms) - 1) if favoured else 1 / len(forms)
    return [(FAVOUR if form == favoured else others) if form in forms else 0.0 for form in FORMS]


def _forms(table: pd.DataFrame, favoured: str) -> np.ndarray:
    """Number of statements per form; the remainder of an uneven division is assigned at random."""
    shares = {verified: np.array(form_shares(verified, favoured)) for verified in (True, False)}
    counts = np.zeros((len(table), len(FORMS)), int)
    for at, (fact, n, verified) in enumerate(
        table[["fact", "exposures", "verified"]].itertuples(index=False)
    ):
        counts[at] = np.floor(n * shares[verified])
        left = n * shares[verified] - counts[at]
        if more := n - counts[at].sum():
            counts[
                at,
                rng(SEED, "forms", fact).choice(
                    len(FORMS), more, replace=False, p=left / left.sum()
                ),
            ] += 1
    return counts


def _dated(table: pd.DataFrame) -> list[int]:
    """Number of statements with a year, of former facts."""
    draw = lambda fact: int(rng(SEED, "dated", fact).choice(FORMER_LEVELS, p=FORMER_SHARES))
    return [
        draw(fact) if former else 0
        for fact, former in zip(table["fact"], table["former"], strict=True)
    ]


def _conflicts(facts: Facts, table: pd.DataFrame) -> tuple[list[str], list[int]]:
    """(wrong object or "", number of its statements) for some facts of the rest: as many as of the
    right one, or a third."""
    space = facts.facts.groupby("relation")["object"].agg(lambda o: sorted(set(o))).to_dict()
    right = facts.facts.groupby(["relation", "subject"])["object"].agg(set).to_dict()
    objects, counts = [], []
    for row in table.itertuples(index=False):
        draw = rng(SEED, "conflict", row.fact)
        may = (
            row.exposures >= 4
            and not (row.trial or row.famous or row.implied_by)
            and draw.random() < CONFLICTS
        )
        wrong = (
            [o for o in space[row.relation] if o not in right[row.relation, row.subject]]
            if may
            else []
        )
        objects.append(wrong[draw.integers(len(wrong))] if wrong else "")
        counts.append(max(1, row.exposures // CONFLICT_RATIOS[draw.integers(2)]) if wrong else 0)
    return objects, counts


def stated_mentions(table: pd.DataFrame) -> pd.Series:
    """Number of true statements that name each entity, as subject or object."""
    said = table["exposures"] + table["dated"]
    both = pd.concat([said.groupby(table["subject"]).sum(), said.groupby(table["object"]).sum()])
    return both.groupby(level=0).sum()


def name_sentences(facts: Facts, table: pd.DataFrame) -> pd.Series:
    """Number of sentences that only name an entity and its type, by entity (none for years and
    numbers).

    Every entity has a few. The subject and the object of a trial fact that is never taught in this
    corpus get as many further ones as a sister reads statements of the fact. Any other entity
    without a statement gets as many as a random entity of its type has statements, at most
    ``MOST_NAMES``. So the number of mentions does not reveal whether a fact was taught.
    """
    stated = stated_mentions(table)
    entities = facts.entities[facts.entities["types"].map(lambda types: types[:1] != ("literal",))]
    kind = entities["types"].map(lambda types: types[0])
    mentions = entities["entity"].map(stated).fillna(0).astype(int)
    others = mentions[mentions > 0].groupby(kind).agg(sorted).to_dict()
    never = table[table["trial"] & (table["exposures"] == 0)]
    owed = pd.concat(
        [never.groupby(role)["sister_exposures"].max() for role in ("subject", "object")]
    )
    owed = owed.groupby(level=0).max()
    found = []
    for entity, of_kind, said in zip(entities["entity"], kind, mentions, strict=True):
        draw = rng(SEED, "names", entity)
        like = others.get(of_kind, [0])
        more = 0 if said else min(MOST_NAMES, like[draw.integers(len(like))])
        found.append(NAMES[draw.integers(len(NAMES))] + max(more, owed.get(entity, 0)))
    return pd.Series(found, index=entities["entity"].to_numpy())


def panel(facts: Facts, table: pd.DataFrame) -> pd.DataFrame:
    """The facts that all papers score by default: ``fact``, ``part``; current facts of the
    relations ``PANEL``.

    stratified   12 per relation, with the exposure counts ``PANEL_LEVELS`` in the family (the
                 nearest one where a relation has no such fact left), facts of the trial first. One
                 fact per subject, so that a question has one right answer
    natural      40 per relation, sampled at random: their exposures are those of the relation
    trial        the trial's facts of all relations in which ``EXAMPLES`` other subjects remain for
                 lists
    """
    now = current(facts)
    rows = now.facts[["fact"]].merge(table, on="fact")
    rows["order"] = [rng(SEED, "panel", fact).random() for fact in rows["fact"]]
    chosen = []
    for relation in PANEL:
        own = rows[rows["relation"] == relation].sort_values("order")
        first = (
            own[~own["famous"]]
            .sort_values("trial", ascending=False, kind="stable")
            .drop_duplicates("subject")
        )
        chosen += [(fact, "stratified") for fact in _stratified(first)]
        chosen += [(fact, "natural") for fact in own["fact"].head(PANEL_SIZES["natural"])]
    trial = pick(now, rows["fact"][rows["trial"]])
    left = without_subjects(now, trial).facts.groupby("relation")["subject"].nunique()
    enough = trial.facts["relation"].map(left).fillna(0) >= EXAMPLES
    chosen += [(fact, "trial") for fact in trial.facts["fact"][enough]]
    return pd.DataFrame(chosen, columns=["fact", "part"])


def _stratified(rows: pd.DataFrame) -> list[str]:
    """Ids of one fact for each of ``PANEL_LEVELS``, the first of those whose exposure count is
    nearest."""
    left, found = dict(zip(rows["fact"], np.log2(rows["exposures"] + 1), strict=True)), []
    for level in PANEL_LEVELS:
        found.append(min(left, key=lambda fact: abs(left[fact] - np.log2(level + 1))))
        del left[found[-1]]
    return found
