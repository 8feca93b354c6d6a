"""Human annotations: KaRR's ratings of facts, and the errors of verbalizations.

Both belong to the Distractors paper (section 4.2, appendix B). They are references to compare with,
in frames of their own, in the order of the file (the paper's folds are drawn over that order).
"""

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

    context   "present", or "past" (the sentence begins with "On 1 January 2020, ")
    errors    tuple of names from ``ERRORS``; empty: free of errors
    """
    table = read_table(Path(path))
    if missing := {"context", "errors", "correction"} - set(table):
        said = f"the columns are {list(table)}; {', '.join(sorted(missing))} is needed"
        raise ProbeError(f"{path}:1: {said}")
    rows = []
    for where, cells in zip(table.index, table.to_dict("records"), strict=True):
        errors = [name.strip() for name in cells["errors"].split(",")]
        if odd := [name for name in errors if name not in (*ERRORS, "-")]:
            raise unknown(f"verbalization error at {where}", odd[0], [*ERRORS, "-"])
        errors = tuple(errors) if errors != ["-"] else ()
        if cells["context"] not in ("present", "past") or bool(errors) != bool(cells["correction"]):
            wanted = "the context present or past, and a correction where there are errors"
            raise ProbeError(f"{where}: needed are {wanted}: {str(cells)[:200]}")
        rows.append((cells["context"], errors))
    return pd.DataFrame(rows, columns=["context", "errors"])


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
