"""S and S', the samples of the Distractors paper, from any facts (spec distractors c.5, c.6)."""

from dataclasses import replace

import numpy as np
import pandas as pd

from probelib.errors import ProbeError
from probelib.facts.builders.common import check_sizes, fact_ids, left_out, take, totals
from probelib.facts.model import LITERALS, Facts, holds, rng
from probelib.facts.validity import UNKNOWN

BINS = 10


def build_s(
    facts: Facts, n: int = 1000, former: bool = False, popularity: pd.Series | None = None, seed: int = 421
) -> tuple[Facts, pd.DataFrame]:
    """S (or S'): ``n`` facts that hold, drawn evenly over popularity, and what was left out.

    former       True makes S': only facts whose subject had another value before (with start and end, not of one point in
                 time, and not right again), so that each has a temporal distractor
    popularity   entity -> how well it is known (the paper: ln(1 + median monthly page views), 0 for no page); default:
                 the entities' own, facts of entities of which it is not known (0) left out

    A fact is as popular as its subject and its object together; a fact is drawn with a weight of 1 / (facts in its tenth
    of the range), without replacement (``popularity_bins``). The facts stand in the order in which they were drawn, so
    the first thousand of five thousand are what a draw of a thousand gives. More than there are is a ProbeError.
    """
    check_sizes(n=n)
    log: list[tuple] = []
    chosen = take(facts, holds(facts.facts), "holds no longer", log)
    literal = facts.relations["relation"][facts.relations["object_type"].isin(LITERALS)]
    chosen = take(chosen, ~chosen.facts["relation"].isin(literal), "object is no entity", log)
    if popularity is None:
        known = set(facts.entities["entity"][facts.entities["popularity"] > 0])
        good = chosen.facts["subject"].isin(known) & chosen.facts["object"].isin(known)
        chosen = take(chosen, good, "popularity not known", log)
    triples = chosen.facts[["relation", "subject", "object"]]
    chosen = take(chosen, ~triples.duplicated(), "the same triple again", log)
    chosen = replace(chosen, facts=chosen.facts.assign(fact=fact_ids(chosen.facts)))
    if former:
        before = _had_another(facts.facts)
        pairs = pd.MultiIndex.from_frame(chosen.facts[["relation", "subject"]])
        chosen = take(chosen, pd.Series(pairs.isin(before)), "no former value", log)
    if n > len(chosen.facts):
        raise ProbeError(f"{facts.source}: {n} facts are asked for, {len(chosen.facts)} are there; {totals(log)}")
    bins = popularity_bins(chosen, popularity)
    weight = 1 / bins.groupby("bin")["fact"].transform("size")
    # the n smallest of exponential numbers with these rates: weighted drawing without replacement (Efraimidis, Spirakis 2006)
    wait = -np.log(1 - chosen.facts["fact"].map(lambda fact: rng(seed, fact).random())) / weight
    drawn = wait.rank(method="first") <= n
    order = wait[drawn].argsort().to_numpy()
    built = take(chosen, drawn, "not drawn", log)
    rows = built.facts.iloc[order].reset_index(drop=True)
    name = "S'" if former else "S"
    return replace(built, facts=rows, source=f"{facts.source} as {name}, seed {seed}"), left_out(log)


def popularity_bins(facts: Facts, popularity: pd.Series | None = None) -> pd.DataFrame:
    """``fact``, ``popularity`` (subject's and object's together), ``bin`` (0-9: tenths of the range that these facts span).

    popularity   see ``build_s``
    """
    known = facts.entities.set_index("entity")["popularity"] if popularity is None else popularity
    known = pd.to_numeric(known, errors="coerce").astype(float)
    if not np.isfinite(known).all():
        raise ProbeError(f"the popularity of {known.index[~np.isfinite(known)][0]!r} is no number")
    if not facts.entities["entity"].isin(known.index).any():
        raise ProbeError(
            f"popularity names no entity of {facts.source}; its index must hold their keys, such as "
            f"{facts.entities['entity'].iloc[0]!r}, not {known.index[:1].tolist()}"
        )
    total = sum(facts.facts[side].map(known).fillna(0) for side in ("subject", "object"))
    span = total.max() - total.min()
    tenth = (BINS * (total - total.min()) / span if span else 0 * total).astype(int).clip(upper=BINS - 1)
    return pd.DataFrame({"fact": facts.facts["fact"], "popularity": total, "bin": tenth})


def _had_another(rows: pd.DataFrame) -> pd.MultiIndex:
    """(relation, subject) of the facts that are over, of which start and end are known, and whose object is not right now."""
    triples = pd.MultiIndex.from_frame(rows[["relation", "subject", "object"]])
    dated = ~rows["start"].isin(["", UNKNOWN]) & (rows["end"] != UNKNOWN)
    over = dated & ~holds(rows) & ~triples.isin(triples[holds(rows)])
    return pd.MultiIndex.from_frame(rows[over][["relation", "subject"]])
