"""FKTC-MC: multiple choice with 100 options per fact, made from FKTC by the rule of T-REx-MC
(ZP-LKE); the offline substitute of ZP-LKE's own test. Per relation:

1. Objects that differ only in case or in a final word "language" become one object (``unify``).
2. Relations with fewer than 100 objects are left out, except for the seven that ZP-LKE compares
   with prompts.
3. Subjects are shuffled with ``seed``. The first 100 facts are the training split (the pool of
   examples); 400 facts of other subjects are the test split.
4. Each fact gets 99 wrong options (``model.draw_distractors``), fewer in the seven small relations.
"""

from collections import defaultdict
from dataclasses import replace

import pandas as pd

from probelib.errors import ProbeError
from probelib.facts.formats import OPTIONS, SPLITS
from probelib.facts.model import Facts, draw_distractors, keep, rng, tuples
from probelib.facts.names import fold

ENDING = " language"  # French and French language are one object
SMALL = ("P37", "P103", "P176", "P178", "P264", "P364", "P1412")  # compared with prompts


def build_fktc_mc(facts: Facts, seed: int = 0) -> dict[str, Facts]:
    """{"train": facts, "test": facts} with wrong options as distractors.

    facts   as ``read_fktc`` reads them: labels are the keys of entities, and there are no aliases
    seed    determines splits and options; the order of the facts does not matter

    Raise ProbeError if no fact remains.
    """
    pool = unify(facts)
    rows = pool.facts
    small, wrong = rows["relation"].isin(SMALL), pd.Series(_n_wrong(rows), rows.index)
    enough = (wrong >= OPTIONS - 1) | small & (wrong > 0)
    chosen = keep(pool, ~rows["fact"].duplicated() & enough)
    split = _split(chosen.facts, seed)
    tested = (split == "test").groupby(chosen.facts["relation"]).transform("sum")
    small = chosen.facts["relation"].isin(SMALL)
    used = (split != "") & ((tested == SPLITS["test"]) | small & (tested > 0))
    if not used.any():
        said = f"no relation has {OPTIONS} objects, and facts for both splits"
        raise ProbeError(f"{facts.source}: {said}, as T-REx-MC needs: no facts remain")
    built = draw_distractors(keep(chosen, used), pool, OPTIONS - 1, seed)
    built = replace(built, source=f"{facts.source} as T-REx-MC, seed {seed}")
    split = split[used].reset_index(drop=True)
    return {name: keep(built, split == name) for name in SPLITS}


def unify(facts: Facts) -> Facts:
    """Replace interchangeable objects of a relation by one of them; name each fact anew.

    Objects are interchangeable if their labels are equal, ignoring case and a final "language". The
    representative is the one without that ending, then the one with most facts, then the shortest
    label, then the first alphabetically.
    """
    rows = facts.facts
    counts = rows.groupby(["relation", "object"], sort=False).size().rename("n").reset_index()
    folded = counts["object"].map(fold)
    counts = counts.assign(bare=folded.str.removesuffix(ENDING), length=counts["object"].str.len())
    counts = counts.assign(ending=folded != counts["bare"], rare=-counts["n"])
    counts = counts.sort_values(["ending", "rare", "length", "object"])
    counts["one"] = counts.groupby(["relation", "bare"])["object"].transform("first")
    one = rows.merge(counts, on=["relation", "object"], how="left")["one"]
    rows = rows.assign(object=one.to_numpy())
    names = rows["relation"] + ":" + rows["subject"] + ":" + rows["object"]
    return replace(facts, facts=rows.assign(fact=names))


def _n_wrong(rows: pd.DataFrame) -> list[int]:
    """Number of objects of its relation that are wrong for the subject of each fact: neither right
    nor equal to a right object up to case."""
    names, right = defaultdict(dict), defaultdict(set)
    for relation, subject, obj in tuples(rows, "relation", "subject", "object"):
        names[relation][obj] = fold(obj)
        right[relation, subject].add(names[relation][obj])
    counts = {
        pair: sum(name not in own for name in names[pair[0]].values())
        for pair, own in right.items()
    }
    return [counts[pair] for pair in tuples(rows, "relation", "subject")]


def _split(rows: pd.DataFrame, seed: int) -> pd.Series:
    """ "train", "test" or "" (in neither) per fact. Subjects are shuffled per relation with
    ``seed``. The first 100 facts are for training; the next 400 facts of other subjects are for
    testing."""
    pairs = zip(rows["relation"], rows["subject"], strict=True)
    order = rows.assign(chance=[rng(seed, *pair).random() for pair in pairs])
    order = order.sort_values(["relation", "chance", "fact"])
    train = order.groupby("relation").cumcount() < SPLITS["train"]
    met = train.groupby([order["relation"], order["subject"]]).transform("any")
    test = ~met & ((~met).groupby(order["relation"]).cumsum() <= SPLITS["test"])
    split = pd.Series("", index=order.index).mask(train, "train").mask(test, "test")
    return split.reindex(rows.index)


def chance_levels(facts: Facts) -> pd.DataFrame:
    """Accuracy of guessing per relation: ``facts``, ``options`` (mean number per fact, the gold
    answer included), ``chance`` (mean of 1 / options; 0.01 with 100 options)."""
    size = facts.facts["fact"].map(facts.distractors.groupby("fact").size()).fillna(0) + 1
    groups = facts.facts.assign(options=size, chance=1 / size).groupby("relation", sort=False)
    means = {"options": ("options", "mean"), "chance": ("chance", "mean")}
    return groups.agg(facts=("fact", "size"), **means).reset_index()
