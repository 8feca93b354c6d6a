"""What a fact is: the kit's five tidy frames, and their rules.

A fact is a triple (subject, relation, object) of entities. A relation is named by its Wikidata
property (P36, "capital") and functional if a subject has one right object at a time. A template is
a text with ``[X]`` for the subject (and ``[Y]`` for the object); filled in, it is a prompt. Its
role is ``question`` (MONITOR's QA); ``cloze``, which ends just before the object (WP);
``statement``, with ``[X]`` and ``[Y]`` (MONITOR's FC); ``hgp`` or ``mmp``, human-written and mined
prompts (ZP-LKE). A candidate is an entity offered as the answer: the gold object, or a distractor,
which is wrong for the subject. The answer space of a relation is the objects of its facts.
"""

import hashlib
import operator
import warnings
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain, islice

import numpy as np
import pandas as pd

from probelib.errors import ProbeError, texts_of, unknown
from probelib.facts.names import same_name
from probelib.facts.text import check_relations, is_a
from probelib.facts.validity import UNKNOWN

FACTS = ["fact", "relation", "subject", "object", "start", "end"]
ENTITIES = ["entity", "label", "wikidata", "aliases", "types", "popularity"]
RELATIONS = ["relation", "name", "subject_type", "object_type", "functional"]
TEMPLATES = ["relation", "role", "number", "template"]
DISTRACTORS = ["fact", "number", "object"]
FRAMES = {"facts": FACTS, "entities": ENTITIES, "relations": RELATIONS}
FRAMES |= {"templates": TEMPLATES, "distractors": DISTRACTORS}
ROLES = ("question", "cloze", "statement", "hgp", "mmp")  # of templates
LITERALS = ("year", "number")  # types of objects that are their own labels, not in entities


@dataclass(frozen=True)
class Facts:
    """Facts and everything that is needed to build prompts for them.

    facts        one row per fact: ``fact`` (its id), ``relation``, ``subject`` and ``object``
                 (entity keys), ``start`` and ``end`` (a year or a date; "" = open, "?" = unknown)
    entities     one row per entity: ``entity`` (its key), ``label`` (what a reader sees),
                 ``wikidata`` (Wikidata id, or another id that several labels share; or ""),
                 ``aliases`` (tuple), ``types`` (tuple, the most specific first), ``popularity``
                 (in the atlas from 1, obscure, to 5, known to nearly everyone, estimated; of other
                 data a number such as page views; 0 = unknown)
    relations    one row per relation: ``relation``, ``name``, ``subject_type``, ``object_type``,
                 ``functional``
    templates    one row per template: ``relation``, ``role``, ``number`` (from 1; the base template
                 is 1), ``template``
    distractors  distractors that the data name for a fact: ``fact``, ``number``, ``object``
    source       origin of the facts, for the provenance record
    """

    facts: pd.DataFrame
    entities: pd.DataFrame
    relations: pd.DataFrame
    templates: pd.DataFrame
    distractors: pd.DataFrame
    source: str

    def digest(self) -> str:
        """SHA-256 (first 16 hex digits) of the five frames; independent of the source's name."""
        sha = hashlib.sha256()
        for name in FRAMES:
            sha.update(getattr(self, name).to_csv(index=False).encode())
        return sha.hexdigest()[:16]

    def label(self, entities: Iterable[str]) -> list[str]:
        """Labels of entity keys."""
        labels = dict(tuples(self.entities, "entity", "label"))
        return [labels[e] for e in entities]

    def __repr__(self) -> str:
        return f"Facts({self.source}: {len(self.facts)} facts, {len(self.relations)} relations)"


def within(column: pd.Series, values: Iterable[str]) -> pd.Series:
    """``column.isin(values)`` for text; pandas' own takes tens of milliseconds to convert it."""
    values = set(values.tolist() if isinstance(values, pd.Series) else values)
    found = [value in values for value in column.tolist()]
    return pd.Series(found, index=column.index, dtype=bool)


def tuples(frame: pd.DataFrame, *columns: str) -> Iterator[tuple]:
    """The rows of some columns, as tuples, from lists: iterating over a column of texts is slow."""
    return zip(*(frame[name].tolist() for name in columns), strict=True)


def rng(*key) -> np.random.Generator:
    """A random generator for a key such as (seed, fact id): independent of order, sharding and
    other facts. Integers of all types count alike, and so do texts. Raise ProbeError for anything
    else."""
    if isinstance(key[0], str) and key[0].lstrip("+-").isdecimal():
        check_seed(key[0])  # "1" is no seed
    plain = tuple(str(part) if isinstance(part, str) else check_seed(part) for part in key)
    digest = hashlib.sha256(repr(plain).encode()).digest()
    return np.random.default_rng(int.from_bytes(digest[:8], "big"))


def check_seed(seed) -> int:
    """A seed as Python's integer. Raise ProbeError for anything but an integer of any type."""
    try:
        return int(operator.index(seed))
    except TypeError:
        kind = type(seed).__name__
        raise ProbeError(f"seed={seed!r} is of type {kind}; an integer is needed") from None


def keep(facts: Facts, mask: pd.Series) -> Facts:
    """The facts for which ``mask`` holds, without relations, templates, entities and distractors
    that are no longer used."""

    def kept(frame: pd.DataFrame, key: str, values: Iterable[str]) -> pd.DataFrame:
        return frame[within(frame[key], values)].reset_index(drop=True)

    rows = facts.facts[mask].reset_index(drop=True)
    distractors = kept(facts.distractors, "fact", rows["fact"])
    used = rows["subject"].tolist() + rows["object"].tolist() + distractors["object"].tolist()
    relations = kept(facts.relations, "relation", rows["relation"])
    templates = kept(facts.templates, "relation", rows["relation"])
    entities = kept(facts.entities, "entity", used)
    return Facts(rows, entities, relations, templates, distractors, facts.source)


def pick(facts: Facts, ids: Iterable[str]) -> Facts:
    """The facts of these ids, in this order. Raise ProbeError for ids that the facts lack."""
    order = {fact: i for i, fact in enumerate(texts_of("ids", ids))}
    known = set(facts.facts["fact"].tolist())
    if missing := [fact for fact in order if fact not in known]:
        alike = [fact for fact in known if fact.split(":")[0] == missing[0].split(":")[0]]
        raise unknown(f"fact of {facts.source}", missing[0], alike or known)
    chosen = keep(facts, within(facts.facts["fact"], order))
    place = lambda column: column.map(order)
    return replace(chosen, facts=chosen.facts.sort_values("fact", key=place, ignore_index=True))


def choose(facts: Facts, relations: list[str] | None) -> Facts:
    """The facts of these relations (None: of all). Raise ProbeError for an unknown relation."""
    if (relations := check_relations(relations)) is None:
        return facts
    known = dict(tuples(facts.relations, "relation", "name"))
    if odd := [name for name in relations if name not in known]:
        raise unknown("relation", odd[0], known, known)
    return keep(facts, facts.facts["relation"].isin(relations))


def current(facts: Facts) -> Facts:
    """The facts that hold today (``holds``)."""
    return keep(facts, holds(facts.facts))


def holds(rows: pd.DataFrame) -> pd.Series:
    """Whether each fact (``start``, ``end``) has no end, or belongs to one known point in time (an
    award), which holds for ever."""
    point = (rows["start"] == rows["end"]) & (rows["end"] != UNKNOWN)
    return (rows["end"] == "") | point


def sample(facts: Facts, n_facts: int, seed: int = 0, first: Iterable[str] = ()) -> Facts:
    """``n_facts`` facts per relation (all, if it has fewer), sampled without replacement: those of
    the lowest random number from (seed, fact id). The ids in ``first`` come before all others, in
    their order."""
    first = list(first)
    place = {fact: i - len(first) for i, fact in enumerate(first)}  # below every random number
    ids = facts.facts["fact"]
    order = ids.map(lambda fact: place[fact] if fact in place else rng(seed, fact).random())
    return keep(facts, order.groupby(facts.facts["relation"]).rank() <= n_facts)


def with_templates(facts: Facts, other: Facts, roles: Iterable[str]) -> Facts:
    """``facts`` with the templates of ``other`` for relations and roles that have none of their
    own. (FKTC has questions only; the atlas has cloze sentences and statements, too.)"""
    own, roles = set(tuples(facts.templates, "relation", "role")), set(roles)
    relations = set(facts.relations["relation"])
    pairs = tuples(other.templates, "relation", "role")
    lent = [r in relations and role in roles and (r, role) not in own for r, role in pairs]
    lent = other.templates[lent]
    return replace(facts, templates=pd.concat([facts.templates, lent], ignore_index=True))


def subjects(facts: Facts) -> list[tuple[tuple, tuple]]:
    """Each fact's subject by its id and by its name: (relation, id or key), (relation, name). Facts
    that share one of them have one subject: labels of one id, or spellings of one name."""
    rows = tuples(facts.entities, "entity", "wikidata", "label")
    known = {e: (("id", wikidata or e), same_name(label)) for e, wikidata, label in rows}
    rows = tuples(facts.facts, "relation", "subject")
    return [((r, known[s][0]), (r, known[s][1])) for r, s in rows]


def without_subjects(pool: Facts, asked: Facts) -> Facts:
    """The facts of the pool that many-shot examples may come from: the relations of ``asked`` with
    other subjects."""
    taken, relations = set(chain.from_iterable(subjects(asked))), set(asked.facts["relation"])
    free = [pair[0][0] in relations and taken.isdisjoint(pair) for pair in subjects(pool)]
    return keep(pool, pd.Series(free, index=pool.facts.index, dtype=bool))


def right_objects(facts: Facts) -> dict[tuple[str, str], set[str]]:
    """(relation, subject) -> every object that is or was right for it, in all its spellings; none
    of them may be a distractor."""
    names = {e: same_name(label) for e, label in tuples(facts.entities, "entity", "label")}
    rows = list(tuples(facts.facts, "relation", "subject", "object"))
    right, spelled, ends = defaultdict(set), defaultdict(set), {}
    for (relation, subject, obj), pair in zip(rows, subjects(facts), strict=True):
        spelled[relation, names[obj]].add(obj)
        ends[relation, subject] = pair
        for key in pair:
            right[key].add((relation, names[obj]))
    return {
        key: set().union(*(spelled[name] for part in pair for name in right[part]))
        for key, pair in ends.items()
    }


def draw_distractors(facts: Facts, pool: Facts | None = None, n: int = 5, seed: int = 0) -> Facts:
    """Give every fact ``n`` distractors (or all there are): objects of its relation in ``pool``
    (default: ``facts``) that are not right for its subject, nor share a label or alias with a right
    one."""
    if not is_a(n, int) or n < 0:
        raise ProbeError(f"n={n!r} distractors; an integer of at least 0 is needed")
    pool = pool or facts
    names, answers = _names_and_answers(facts, pool)
    space = pool.facts.groupby("relation")["object"].agg(lambda own: sorted(set(own))).to_dict()
    rows = []
    for fact, relation in tuples(facts.facts, "fact", "relation"):
        objects = space.get(relation, [])
        drawn = (objects[i] for i in rng(seed, fact).permutation(len(objects)))
        wrong = (o for o in drawn if answers[fact].isdisjoint(names[o]))
        rows += [(fact, number, o) for number, o in enumerate(islice(wrong, n), 1)]
    distractors = pd.DataFrame(rows, columns=DISTRACTORS)
    new = set(distractors["object"]) - set(facts.entities["entity"].tolist())
    entities = pd.concat([facts.entities, pool.entities[within(pool.entities["entity"], new)]])
    return replace(facts, distractors=distractors, entities=entities.reset_index(drop=True))


def without_right(facts: Facts, known: Facts) -> Facts:
    """``facts`` without named distractors that ``known`` says are right for their subject, by a
    name or an alias; a warning counts them. Those that remain are numbered anew."""
    rows, (names, answers) = facts.distractors, _names_and_answers(facts, known)
    pairs = list(tuples(rows, "fact", "object"))
    wrong = np.array([answers[fact].isdisjoint(names[o]) for fact, o in pairs], dtype=bool)
    if wrong.all():
        return facts
    fact, obj = pairs[int(np.argmin(wrong))]
    warnings.warn(
        f"{facts.source}: {int((~wrong).sum())} of {len(rows)} named distractors are right answers "
        f"and are left out, e.g. {obj!r} of {fact}. facts.load(..., released=True) keeps them",
        stacklevel=3,
    )
    left = rows[wrong].reset_index(drop=True)
    return replace(facts, distractors=left.assign(number=left.groupby("fact").cumcount() + 1))


def _names_and_answers(facts: Facts, known: Facts) -> tuple[dict[str, set[str]], ...]:
    """(entity -> its label and aliases as ``same_name`` compares them, fact -> those of everything
    that ``known`` calls right for its subject), in the relations of ``facts`` alone."""
    known = keep(known, within(known.facts["relation"], facts.facts["relation"]))
    rows = [row for f in (known, facts) for row in tuples(f.entities, "entity", "label", "aliases")]
    names = {entity: {same_name(n) for n in (label, *aliases)} for entity, label, aliases in rows}
    right, columns = right_objects(known), ("fact", "relation", "subject", "object")
    return names, {
        fact: set().union(*(names[o] for o in right.get((relation, subject), set()) | {obj}))
        for fact, relation, subject, obj in tuples(facts.facts, *columns)
    }


def counts(facts: Facts) -> pd.DataFrame:
    """Per relation: ``facts``, ``former`` (with an end), ``subjects``, ``objects`` (distinct),
    ``majority`` (share of the most frequent object), ``object in subject`` (facts whose subject
    contains the label of the object), ``questions``, ``clozes``."""
    rows, labels = facts.facts, dict(tuples(facts.entities, "entity", "label"))
    ends = tuples(rows, "subject", "object")
    leaked = [labels[o].casefold() in labels[s].casefold() for s, o in ends]
    groups = rows.assign(leaked=leaked, former=~holds(rows)).groupby("relation", sort=False)
    subject, majority = groups["subject"], lambda own: own.value_counts(normalize=True).iloc[0]
    columns = {"facts": groups.size(), "former": groups["former"].sum()}
    columns |= {"subjects": subject.nunique(), "objects": groups["object"].nunique()}
    columns |= {"majority": groups["object"].agg(majority)}
    table = pd.DataFrame(columns | {"object in subject": groups["leaked"].sum()})
    names = facts.relations.set_index("relation")[["name"]]
    roles = pd.crosstab(facts.templates["relation"], facts.templates["role"])
    roles = roles.reindex(index=names.index, columns=["question", "cloze"], fill_value=0)
    return names.join(table).join(roles.set_axis(["questions", "clozes"], axis=1)).reset_index()


def chance_levels(facts: Facts) -> pd.DataFrame:
    """Accuracy of guessing per relation: ``facts``, ``options`` (mean number per fact, the gold
    answer included), ``chance`` (mean of 1 / options; 0.01 with 100 options)."""
    size = facts.facts["fact"].map(facts.distractors.groupby("fact").size()).fillna(0) + 1
    groups = facts.facts.assign(options=size, chance=1 / size).groupby("relation", sort=False)
    means = {"options": ("options", "mean"), "chance": ("chance", "mean")}
    return groups.agg(facts=("fact", "size"), **means).reset_index()


def validate(facts: Facts) -> Facts:
    """Return the facts if they keep all rules of the frames. Raise ProbeError for the first broken
    rule, with the rows."""
    rows, templates, known = facts.facts, facts.templates, facts.entities["entity"]
    for name, columns in FRAMES.items():
        if (found := list(getattr(facts, name).columns)) != columns:
            raise ProbeError(f"{facts.source}: the frame {name} has columns {found}, not {columns}")
    if rows.empty:
        raise ProbeError(f"{facts.source}: no facts; a file holds one per row, below its header")
    relations, slots = facts.relations["relation"], templates["template"].str.count(r"\[X\]")
    named = templates["relation"] + ": " + templates["template"]
    for rule, broken, names in (
        ("duplicate fact id", rows["fact"].duplicated(), rows["fact"]),
        ("duplicate entity", known.duplicated(), known),
        ("entity with an empty label", facts.entities["label"].str.strip() == "", known),
        ("subject without a row in entities", ~within(rows["subject"], known), rows["subject"]),
        ("object without a row in entities", ~within(rows["object"], known), rows["object"]),
        ("fact of an unknown relation", ~within(rows["relation"], relations), rows["fact"]),
        ("template without exactly one [X]", slots != 1, named),
    ):
        if broken.any():
            shown = ", ".join(map(repr, names[broken].unique()[:5]))
            raise ProbeError(f"{facts.source}: {rule}, {int(broken.sum())} in all: {shown}")
    return facts
