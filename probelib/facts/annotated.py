"""Human annotations of the Distractors paper (section 4.2, appendix B): KaRR's ratings of facts,
and the errors of verbalizations, in the order of the file (the paper's folds are drawn over it)."""

from pathlib import Path

import numpy as np
import pandas as pd

from probelib.errors import ProbeError, unknown
from probelib.facts.model import Facts
from probelib.facts.table import read_table
from probelib.facts.text import check_texts, is_a, read_json, read_yaml
from probelib.paths import PACKAGE

ERRORS = read_yaml(PACKAGE / "facts" / "errors.yaml")  # paper, Table 8: name -> meaning
STAND_IN = "people's ratings or exposure counts"  # what is missing where popularity stands in
MINOR = tuple(ERRORS)[:7]  # the others are blunders (paper, appendix B)


def read_ratings(path: str | Path) -> pd.DataFrame:
    """Human ratings of facts, ``wikidata_triples_to_human_scores.json``: [[[subject, relation,
    object], rating], ...].

    Columns: ``fact`` (``relation:subject:object``), ``relation``, ``subject``, ``object`` (Wikidata
    ids), ``rating`` (0 to 1: the share of right completions of GPT2-XL over three prompts each for
    subject, relation and object, two raters per prompt). A fact given twice raises ProbeError."""
    rows, values = [], read_json(Path(path))
    for number, value in enumerate(values if isinstance(values, list) else [values], 1):
        where = f"{path}: entry {number}"
        try:
            ids, rating = value
            subject, relation, obj = check_texts(where, "a fact", ids)
            if not is_a(rating, int | float) or not 0 <= rating <= 1:
                raise ValueError
        except (TypeError, ValueError) as error:
            wanted = "[[subject, relation, object], rating from 0 to 1] is needed"
            raise ProbeError(f"{where}: {wanted}: {str(value)[:80]}") from error
        rows.append((f"{relation}:{subject}:{obj}", relation, subject, obj, float(rating)))
    found = pd.DataFrame(rows, columns=["fact", "relation", "subject", "object", "rating"])
    if (again := found["fact"].duplicated()).any():
        number = int(again.argmax())
        raise ProbeError(f"{path}: entry {number + 1}: {found['fact'][number]} is already rated")
    return found


def read_verbalizations(path: str | Path) -> pd.DataFrame:
    """Verbalizations of triples with the errors that a person found in them (``taxonomy.csv``).

    context   "present", or "past" (the sentence begins with "On 1 January 2020, ")
    errors    tuple of names from ``ERRORS``; empty: free of errors
    """
    table = read_table(Path(path), needed=("context", "errors", "correction"))
    split = lambda texts: () if texts == "-" else tuple(map(str.strip, texts.split(",")))
    errors = [split(texts) for texts in table["errors"]]
    for (where, cells), names in zip(table.iterrows(), errors, strict=True):
        if odd := [name for name in names if name not in ERRORS]:
            raise unknown(f"verbalization error at {where}", odd[0], ERRORS)
        if cells["context"] not in ("present", "past") or bool(names) != bool(cells["correction"]):
            wanted = "the context present or past, and a correction where there are errors"
            raise ProbeError(f"{where}: needed are {wanted}: {str(dict(cells))[:200]}")
    return pd.DataFrame({"context": table["context"].tolist(), "errors": errors})


def rated(
    facts: Facts, path=None, exposures: pd.Series | None = None
) -> tuple[pd.DataFrame, str, str]:
    """The reference that measures are compared with: (``fact``, ``rating``; its description; what
    is needed instead where it is a stand-in).

    path       file of human ratings (``read_ratings``), matched by Wikidata ids: 6 or more
    exposures  fact -> how often it was stated in training; the rating is log2(1 + exposures)

    Without both, the mean popularity of subject and object stands in; it is no ground truth. If
    none is known, all ratings are 0 and the description says so.
    """
    rows, entities = facts.facts, facts.entities.set_index("entity")
    if path is not None:
        ids = {side: rows[side].map(entities["wikidata"]) for side in ("subject", "object")}
        ratings = read_ratings(path).drop(columns="fact")
        found = rows[["fact", "relation"]].assign(**ids).merge(ratings)
        n = f"{len(found)} of the {len(ratings)} rated facts"
        said = f"human ratings: {n} are among the {len(rows)} scored"
        if len(found) < 6:
            raise ProbeError(f"{path}: {said}; at least 6 are needed (data=, folder=)")
        return found[["fact", "rating"]], said, ""
    if exposures is not None:
        found = rows[["fact"]].assign(rating=np.log2(1 + rows["fact"].map(exposures))).dropna()
        how = "log2(1 + statements in the training corpus)"
        return found, f"how often the models were taught each fact, {how}", ""
    popularity = entities["popularity"].replace(0, np.nan)
    known = rows[["subject", "object"]].apply(lambda end: end.map(popularity))
    found = rows[["fact"]].assign(rating=known.mean(axis=1))
    if found["rating"].isna().all():
        said = "no ratings: nothing of the entities' popularity or the models' training is known"
        return found.assign(rating=0.0), f"{said}. Give people's ratings (ratings_file=)", STAND_IN
    what = "no person rated these models, and nothing is known of their training"
    return found.dropna(), f"the popularity of subject and object, a stand-in: {what}", STAND_IN
