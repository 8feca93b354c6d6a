"""Human annotations: KaRR's ratings of facts, and the errors of verbalizations.

Both belong to the Distractors paper (section 4.2, appendix B). They are not facts to score but
references to compare with, so each reader returns its own frame, in the order of the file (the
paper's folds are drawn over that order).
"""

import re
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd

from probelib.errors import ProbeError, unknown
from probelib.facts.model import Facts
from probelib.facts.table import read_table
from probelib.facts.text import is_a, read_json

ERRORS = {  # paper, Table 8
    "adj_noun_conjug": "an adjective or noun treated as a verb",
    "better_verb": "the wording can be read otherwise",
    "sub_deter": "no determiner before the subject",
    "obj_deter": "no determiner before the object",
    "sub_unclear": "the subject blends into the sentence",
    "obj_unclear": "the object blends into the sentence",
    "wrong_conjug": "the verb in the wrong tense",
    "wrong_language": "not English",
    "out_of_subject": "the fact is not conveyed",
}
MINOR = tuple(ERRORS)[:7]  # the others are blunders (paper, appendix B)
IDS = re.compile(r"\('(Q\d+)', '(P\d+)', '(Q\d+)'\)")
PRINTED = re.compile(r"\((.+), start=(.+), end=(.+)\)")
NUMBER, FLOAT = re.compile(r"\d{1,9}"), re.compile(r"\d{1,9}(\.\d+)?(e-\d{1,2})?")


def read_ratings(path: str | Path) -> pd.DataFrame:
    """Human ratings of facts, ``wikidata_triples_to_human_scores.json``: [[[subject, relation,
    object], rating], ...].

    Columns: ``fact`` (``relation:subject:object``), ``relation``, ``subject``, ``object`` (Wikidata
    ids), ``rating`` (0 to 1: the share of right completions of GPT2-XL over three prompts each for
    subject, relation and object, two raters per prompt). Raise ProbeError for a fact that is given
    twice.
    """
    rows, seen, values = [], {}, read_json(Path(path))
    wanted = "[[subject, relation, object], rating from 0 to 1] is needed"
    if not isinstance(values, list):
        raise ProbeError(f"{path}:1: a list of {wanted}")
    for number, value in enumerate(values, 1):
        try:
            (subject, relation, obj), rating = value
            good = is_a(rating, int | float) and 0 <= rating <= 1
            subject, relation, obj = (part.strip() for part in (subject, relation, obj))
        except (TypeError, ValueError, AttributeError):
            good = False
        if not good or not (subject and relation and obj):
            raise ProbeError(f"{path}: entry {number}: {wanted}: {str(value)[:80]}")
        fact = f"{relation}:{subject}:{obj}"
        if seen.setdefault(fact, number) != number:
            said = f"{fact} is already rated in entry {seen[fact]}"
            raise ProbeError(f"{path}: entry {number}: {said}")
        rows.append((fact, relation, subject, obj, float(rating)))
    return pd.DataFrame(rows, columns=["fact", "relation", "subject", "object", "rating"])


def read_verbalizations(path: str | Path) -> pd.DataFrame:
    """Verbalizations of triples with the errors that a person found in them (``taxonomy.csv``).

    number       the row's number in the file's first column (141 is missing in the release)
    fact         ``relation:subject:object``, which are Wikidata ids; their labels, ``start`` and
                 ``end`` ("": none) as printed
    popularity   ln(1 + median of the subject's monthly page views)
    context      "present", or "past" (the sentence, ``text``, begins with "On 1 January 2020, ")
    errors       tuple of names from ``ERRORS``; empty: free of errors, and no ``correction``
    last         what the sentence ends with: "object", "subject", or "" (neither)
    """
    table = read_table(Path(path))
    needed = ["", "triples_raw", "triples", "popularity", "context", "verbalization", "errors"]
    if missing := [name for name in [*needed, "correction"] if name not in table]:
        said = f"the columns are {list(table)}; {missing} are needed, each once"
        raise ProbeError(f"{path}:1: {said}")
    rows = zip(table.index, table.to_dict("records"), strict=True)
    frame = pd.DataFrame([_verbalization(where, row) for where, row in rows])
    if len(again := frame.index[frame["number"].duplicated()]) if len(frame) else False:
        number = frame["number"][again[0]]
        raise ProbeError(f"{table.index[again[0]]}: number {number} is already in an earlier line")
    return frame


def _verbalization(where: str, row: dict[str, str]) -> dict:
    """One row of the taxonomy; ``row[""]`` is the first column."""
    cells = {name: cell.strip() for name, cell in row.items()}
    ids, printed = IDS.fullmatch(cells["triples_raw"]), PRINTED.fullmatch(cells["triples"])
    number, popularity, text = cells[""], cells["popularity"], cells["verbalization"]
    errors = () if cells["errors"] == "-" else tuple(map(str.strip, cells["errors"].split(",")))
    if odd := [error for error in errors if error not in ERRORS]:
        raise unknown(f"verbalization error at {where}", odd[0], [*ERRORS, "-"])
    for good, wanted in (
        (
            ids and printed,
            "triples_raw ('Q1', 'P2', 'Q3'), triples (a, b, c, start=None, end=None)",
        ),
        (NUMBER.fullmatch(number) and FLOAT.fullmatch(popularity), "a number and a popularity"),
        (cells["context"] in ("present", "past"), "the context present or past"),
        (text and bool(errors) == bool(cells["correction"]), "a correction where there are errors"),
    ):
        if not good:
            raise ProbeError(f"{where}: {wanted} is needed: {str(row)[:200]}")
    # labels may contain ", ": of the splits whose subject and object are in the sentence, the one
    # with the shortest relation is right ("John Cadwalader", "work location", "Washington, D.C.")
    parts = printed[1].split(", ")
    places = combinations(range(1, min(len(parts), 30)), 2)
    cuts = [(", ".join(parts[:i]), ", ".join(parts[i:j]), ", ".join(parts[j:])) for i, j in places]
    cuts = [c for c in cuts if all(c) and (len(parts) == 3 or (c[0] in text and c[2] in text))]
    if not cuts:
        said = f"the printed triple {printed[1]!r} has no three parts that the sentence holds"
        raise ProbeError(f"{where}: {said}")
    labels = min(cuts, key=lambda c: len(c[1]))
    ends = [side for side in (2, 0) if text.endswith(labels[side])]
    start, end = ("" if time == "None" else time for time in printed.groups()[1:])
    names, (subject, relation, obj) = ("subject", "relation", "object"), ids.groups()
    found = {"number": int(number), "fact": f"{relation}:{subject}:{obj}"}
    found |= dict(zip(names, ids.groups(), strict=True))
    found |= {f"{name}_label": label for name, label in zip(names, labels, strict=True)}
    found |= {"start": start, "end": end, "popularity": float(popularity)}
    found |= {"context": cells["context"], "text": text, "errors": errors}
    return found | {"correction": cells["correction"], "last": names[ends[0]] if ends else ""}


def rated(
    facts: Facts, path: str | Path | None = None, exposures: pd.Series | None = None
) -> tuple[pd.DataFrame, str]:
    """The reference that measures are compared with: (``fact`` and ``rating`` of the facts that
    have one, its description).

    path       file of human ratings (``read_ratings``), matched by Wikidata ids; at least 6 must
               match
    exposures  fact -> how often it was stated in training; the rating is log2(1 + exposures)

    Without both, the rating is the mean popularity of subject and object, a stand-in that is no
    ground truth. If no popularity is known, all ratings are 0 and the description says so.
    """
    rows, entities = facts.facts, facts.entities.set_index("entity")
    if path is not None:
        ids = rows[["fact", "relation"]].copy()
        for side in ("subject", "object"):
            ids[side] = rows[side].map(entities["wikidata"])
        ratings, keys = read_ratings(path).drop(columns="fact"), ["relation", "subject", "object"]
        found = ids.merge(ratings, on=keys)
        n = f"{len(found)} of the {len(ratings)} rated facts"
        said = f"human ratings: {n} are among the {len(rows)} scored"
        if len(found) < 6:
            how = "at least 6 are needed. Give the data that the ratings refer to (data=, folder=)"
            raise ProbeError(f"{path}: {said}; {how}")
        return found[["fact", "rating"]], said
    if exposures is not None:
        found = rows[["fact"]].assign(rating=np.log2(1 + rows["fact"].map(exposures))).dropna()
        how = "log2(1 + statements in the training corpus)"
        return found, f"how often the models were taught each fact, {how}"
    popularity = entities["popularity"].replace(0, np.nan)
    known = rows[["subject", "object"]].apply(lambda end: end.map(popularity))
    found = rows[["fact"]].assign(rating=known.mean(axis=1))
    if found["rating"].isna().all():
        return found.assign(rating=0.0), (
            "no ratings: no popularity of these entities is known, and nothing of the models' "
            "training, so no measure can agree with anything. Give people's ratings (ratings_file=)"
        )
    what = "no person rated these models, and nothing is known of their training"
    return found.dropna(), f"the popularity of subject and object, a stand-in: {what}"
