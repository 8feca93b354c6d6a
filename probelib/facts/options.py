"""FKTC-MC: multiple choice with 100 options per fact, made from FKTC by the rule of T-REx-MC (ZP-LKE, section 4).

ZP-LKE's own test, T-REx-MC, is on Hugging Face; FKTC-MC is the offline substitute. Per relation:

1. Objects that differ only in case or in a final word "language" become one object (``unify``).
2. Relations with fewer than 100 objects are left out, except for the seven that ZP-LKE compares with prompts.
3. Subjects are shuffled with ``seed``. The first 100 facts are the training split (the pool of examples); 400 facts of other
   subjects are the test split.
4. Each fact gets 99 wrong options (``model.draw_distractors``), fewer in the seven small relations.
"""

from dataclasses import replace

import pandas as pd

from probelib.errors import ProbeError
from probelib.facts.formats.trex_mc import OPTIONS, SPLITS
from probelib.facts.model import Facts, draw_distractors, fold, keep, rng

ENDING = " language"  # French and French language are one object
SMALL = ("P37", "P103", "P176", "P178", "P264", "P364", "P1412")  # compared with prompts, fewer than 100 objects


def build_fktc_mc(facts: Facts, seed: int = 0) -> tuple[dict[str, Facts], pd.Series]:
    """({"train": facts, "test": facts} with wrong options as distractors, number of facts that each filter left out).

    facts   as ``read_fktc`` reads them: labels are the keys of entities, and there are no aliases
    seed    determines splits and options; the order of the facts does not matter

    Raises ProbeError if no fact remains.
    """
    left_out: dict[str, int] = {}
    pool = unify(facts)
    chosen = _filter(pool, ~pool.facts["fact"].duplicated(), "duplicate triple", left_out)
    small = lambda: chosen.facts["relation"].isin(SMALL)
    space = chosen.facts["relation"].map(pool.facts.groupby("relation")["object"].nunique())
    chosen = _filter(chosen, (space >= OPTIONS) | small(), f"relation with fewer than {OPTIONS} objects", left_out)
    wrong = n_wrong(chosen, pool)
    enough = (wrong >= OPTIONS - 1) | small() & (wrong > 0)
    chosen = _filter(chosen, enough, f"fewer than {OPTIONS - 1} wrong options", left_out)
    split = _split(chosen.facts, seed)
    tested = (split == "test").groupby(chosen.facts["relation"]).transform("sum")
    used = (split != "") & ((tested == SPLITS["test"]) | small() & (tested > 0))
    chosen, split = _filter(chosen, used, "in neither split", left_out), split[used].reset_index(drop=True)
    built = draw_distractors(chosen, pool, OPTIONS - 1, seed)
    built = replace(built, source=f"{facts.source} as T-REx-MC, seed {seed}")
    return {name: keep(built, split == name) for name in SPLITS}, pd.Series(left_out, name="left_out")


def _filter(facts: Facts, good: pd.Series, name: str, left_out: dict[str, int]) -> Facts:
    """Keep the facts for which ``good`` holds and record how many the filter ``name`` left out."""
    left_out[name] = int((~good).sum())
    if not good.any():
        raise ProbeError(f"{facts.source}: no facts remain for a multiple-choice test; left out: {left_out}")
    return keep(facts, good)


def unify(facts: Facts) -> Facts:
    """Replace interchangeable objects of a relation by one of them, and name each fact relation:subject:object.

    Objects are interchangeable if their labels are equal, ignoring case and a final "language". The representative is the
    one without that ending, then the one with most facts, then the shortest label, then the first alphabetically.
    """
    rows = facts.facts
    counts = rows.groupby(["relation", "object"], sort=False).size().rename("n").reset_index()
    folded = counts["object"].map(fold)
    counts = counts.assign(bare=folded.str.removesuffix(ENDING), length=counts["object"].str.len(), rare=-counts["n"])
    counts = counts.assign(ending=folded != counts["bare"]).sort_values(["ending", "rare", "length", "object"])
    counts["one"] = counts.groupby(["relation", "bare"])["object"].transform("first")
    rows = rows.assign(object=rows.merge(counts, on=["relation", "object"], how="left")["one"].to_numpy())
    return replace(facts, facts=rows.assign(fact=rows["relation"] + ":" + rows["subject"] + ":" + rows["object"]))


def n_wrong(facts: Facts, pool: Facts) -> pd.Series:
    """Number of objects of the relation in ``pool`` that are wrong for the subject of each fact: neither right nor equal to a
    right object up to case."""
    known = pool.facts[["relation", "subject", "object"]]
    known = known.assign(name=known["object"].map(fold))
    objects = known[["relation", "object", "name"]].drop_duplicates()
    excluded = known.drop(columns="object").drop_duplicates().merge(objects, on=["relation", "name"])
    excluded = excluded.groupby(["relation", "subject"])["object"].nunique()
    keys = pd.MultiIndex.from_frame(facts.facts[["relation", "subject"]])
    space = facts.facts["relation"].map(objects.groupby("relation")["object"].nunique())
    return space - excluded.reindex(keys).to_numpy()


def _split(rows: pd.DataFrame, seed: int) -> pd.Series:
    """ "train", "test" or "" (in neither) per fact. Subjects are shuffled per relation with ``seed``. The first 100 facts are
    for training; the next 400 facts whose subjects have no training fact are for testing."""
    pairs = zip(rows["relation"], rows["subject"], strict=True)
    order = rows.assign(chance=[rng(seed, relation, subject).random() for relation, subject in pairs])
    order = order.sort_values(["relation", "chance", "fact"])
    train = order.groupby("relation").cumcount() < SPLITS["train"]
    met = train.groupby([order["relation"], order["subject"]]).transform("any")
    test = ~met & ((~met).groupby(order["relation"]).cumsum() <= SPLITS["test"])
    split = pd.Series("", index=order.index).mask(train, "train").mask(test, "test")
    return split.reindex(rows.index)


def chance_levels(facts: Facts) -> pd.DataFrame:
    """Accuracy of guessing per relation: ``facts``, ``options`` (mean number per fact, the gold answer included), ``chance``
    (mean of 1 / options; 0.01 with 100 options)."""
    size = facts.facts["fact"].map(facts.distractors.groupby("fact").size()).fillna(0) + 1
    groups = facts.facts.assign(options=size, chance=1 / size).groupby("relation", sort=False)
    return groups.agg(facts=("fact", "size"), options=("options", "mean"), chance=("chance", "mean")).reset_index()
