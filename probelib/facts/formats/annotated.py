"""Human annotations: KaRR's ratings of facts, and the errors of verbalizations.

Both belong to the Distractors paper (section 4.2, appendix B). They are not facts to score but references to compare with,
so each reader returns its own frame, in the order of the file (the paper's folds are drawn over that order).
"""

import re
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd

from probelib.errors import ProbeError, unknown
from probelib.facts.formats.rows import read_table
from probelib.facts.model import Facts
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
VERBALIZATIONS = ["number", "fact", "subject", "relation", "object", "subject_label", "relation_label", "object_label"]
VERBALIZATIONS += ["start", "end", "popularity", "context", "text", "errors", "correction", "last"]
IDS = re.compile(r"\('(Q\d+)', '(P\d+)', '(Q\d+)'\)")
PRINTED = re.compile(r"\((.+), start=(.+), end=(.+)\)")
NUMBER, FLOAT = re.compile(r"\d{1,9}"), re.compile(r"\d{1,9}(\.\d+)?(e-\d{1,2})?")


def read_ratings(path: str | Path) -> pd.DataFrame:
    """Human ratings of facts, ``wikidata_triples_to_human_scores.json``: [[[subject, relation, object], rating], ...].

    Columns: ``fact`` (``relation:subject:object``), ``relation``, ``subject``, ``object`` (Wikidata ids), ``rating`` (0 to 1:
    the share of right completions of GPT2-XL over three prompts each for subject, relation and object, two raters per prompt).
    Raise ProbeError for a fact that is given twice.
    """
    path, rows, seen = Path(path), [], {}
    values = read_json(path)
    if not isinstance(values, list):
        raise ProbeError(f"{path}:1: a list of [[subject, relation, object], rating] is needed")
    for number, value in enumerate(values, 1):
        where = f"{path}: entry {number}"
        good = isinstance(value, list) and len(value) == 2 and isinstance(value[0], list) and len(value[0]) == 3
        if not good or not all(isinstance(part, str) and part.strip() for part in value[0]):
            raise ProbeError(f"{where}: [[subject, relation, object], rating] is needed: {str(value)[:80]}")
        subject, relation, obj = (part.strip() for part in value[0])
        fact = f"{relation}:{subject}:{obj}"
        if seen.setdefault(fact, number) != number:
            raise ProbeError(f"{where}: {fact} is already rated in entry {seen[fact]}")
        if not is_a(value[1], int | float) or not 0 <= value[1] <= 1:
            raise ProbeError(f"{where}: rating {value[1]!r}; a number from 0 to 1 is needed")
        rows.append((fact, relation, subject, obj, float(value[1])))
    return pd.DataFrame(rows, columns=["fact", "relation", "subject", "object", "rating"])


def read_verbalizations(path: str | Path) -> pd.DataFrame:
    """Verbalizations of triples with the errors that a person found in them (``taxonomy.csv``).

    number       the row's number in the file's first column (141 is missing in the release)
    fact         ``relation:subject:object``, which are Wikidata ids; their labels, ``start`` and ``end`` ("": none) as printed
    popularity   ln(1 + median of the subject's monthly page views)
    context      "present", or "past" (the sentence, ``text``, begins with "On 1 January 2020, ")
    errors       tuple of names from ``ERRORS``; empty: free of errors, and no ``correction``
    last         what the sentence ends with: "object", "subject", or "" (neither)
    """
    path, rows, seen = Path(path), [], {}
    columns = ("triples_raw", "triples", "popularity", "context", "verbalization", "errors", "correction")
    for line, cells in read_table(path, ("", *columns)):
        row = _verbalization(f"{path}:{line}", {name: cell.strip() for name, cell in cells.items()})
        if seen.setdefault(row["number"], line) != line:
            raise ProbeError(f"{path}:{line}: number {row['number']} is already in line {seen[row['number']]}")
        rows.append(row)
    return pd.DataFrame(rows, columns=VERBALIZATIONS)


def _verbalization(where: str, cells: dict[str, str]) -> dict:
    """One row of the taxonomy; ``cells[""]`` is the first column."""
    ids, printed = IDS.fullmatch(cells["triples_raw"]), PRINTED.fullmatch(cells["triples"])
    number, popularity, text = cells[""], cells["popularity"], cells["verbalization"]
    if not ids or not printed:
        wanted = "triples_raw ('Q1', 'P2', 'Q3') and triples (a, b, c, start=None, end=None)"
        raise ProbeError(f"{where}: {wanted} are needed")
    if not NUMBER.fullmatch(number) or not FLOAT.fullmatch(popularity):
        raise ProbeError(f"{where}: {number!r}, {popularity!r}; the row's number and its popularity are needed")
    if cells["context"] not in ("present", "past"):
        raise unknown(f"context at {where}", cells["context"], ("present", "past"))
    errors = () if cells["errors"] == "-" else tuple(error.strip() for error in cells["errors"].split(","))
    for error in errors:
        if error not in ERRORS:
            raise unknown(f"verbalization error at {where}", error, [*ERRORS, "-"])
    if not text or bool(errors) != bool(cells["correction"]):
        raise ProbeError(f"{where}: a sentence is needed, and a correction exactly where there are errors")
    subject, relation, obj = ids.groups()
    labels = _labels(where, printed[1], text)
    times = ("" if time == "None" else time for time in printed.groups()[1:])
    last = "object" if text.endswith(labels[2]) else "subject" if text.endswith(labels[0]) else ""
    row = (int(number), f"{relation}:{subject}:{obj}", *ids.groups(), *labels, *times, float(popularity))
    row += (cells["context"], text, errors, cells["correction"], last)
    return dict(zip(VERBALIZATIONS, row, strict=True))


def _labels(where: str, printed: str, sentence: str) -> tuple[str, str, str]:
    """The labels in "subject, relation, object". Labels may contain ", ": of the splits whose subject and object are in the
    sentence, the one with the shortest relation is right ("John Cadwalader", "work location", "Washington, D.C.")."""
    parts = printed.split(", ")
    places = combinations(range(1, min(len(parts), 30)), 2)
    cuts = [(", ".join(parts[:i]), ", ".join(parts[i:j]), ", ".join(parts[j:])) for i, j in places]
    cuts = [cut for cut in cuts if all(cut) and (len(parts) == 3 or (cut[0] in sentence and cut[2] in sentence))]
    if not cuts:
        raise ProbeError(f"{where}: the printed triple {printed!r} has no three parts that the sentence holds")
    return min(cuts, key=lambda cut: len(cut[1]))


def rated(facts: Facts, path: str | Path | None = None, exposures: pd.Series | None = None) -> tuple[pd.DataFrame, str]:
    """The reference that measures are compared with: (``fact`` and ``rating`` of the facts that have one, its description).

    path       file of human ratings (``read_ratings``), matched by Wikidata ids
    exposures  fact -> how often it was stated in training; the rating is log2(1 + exposures)

    Without both, the rating is the mean popularity of subject and object, a stand-in that is no ground truth. If no popularity
    is known, all ratings are 0 and the description says so.
    """
    if path is not None:
        return _human(facts, path)
    rows = facts.facts
    if exposures is not None:
        found = rows[["fact"]].assign(rating=np.log2(1 + rows["fact"].map(exposures))).dropna()
        return found, "how often the models were taught each fact, log2(1 + statements in the training corpus)"
    popularity = facts.entities.set_index("entity")["popularity"].replace(0, np.nan)
    known = rows[["subject", "object"]].apply(lambda end: end.map(popularity))
    found = rows[["fact"]].assign(rating=known.mean(axis=1))
    if found["rating"].isna().all():
        return found.assign(rating=0.0), (
            "no ratings: no popularity of these entities is known, and nothing of the models' training, so no measure can agree "
            "with anything. Give people's ratings (ratings_file=)"
        )
    what = "no person rated these models, and nothing is known of their training"
    return found.dropna(), f"the popularity of subject and object, a stand-in: {what}"


def _human(facts: Facts, path: str | Path) -> tuple[pd.DataFrame, str]:
    """Human ratings of these facts, matched by Wikidata ids, and their description. At least 6 facts must match."""
    rows, wikidata = facts.facts, facts.entities.set_index("entity")["wikidata"]
    ids = rows[["fact", "relation"]].assign(subject=rows["subject"].map(wikidata), object=rows["object"].map(wikidata))
    ratings = read_ratings(path)
    found = ids.merge(ratings[["relation", "subject", "object", "rating"]], on=["relation", "subject", "object"])
    source = f"human ratings: {len(found)} of the {len(ratings)} rated facts are among the {len(rows)} scored"
    if len(found) < 6:
        how = "Give the data that the ratings refer to (data=, folder=)"
        raise ProbeError(f"{path}: {source}; at least 6 are needed. {how}")
    return found[["fact", "rating"]], source
