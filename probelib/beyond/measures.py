"""How well measures reflect what models were taught, and whether they agree: values per fact in,
numbers out.

Values are a long frame ``model``, ``fact``, ``measure``, ``value`` (higher: known better; see
``beyond.score``). A design holds what each model was taught (``concordance``). Bootstrap intervals
resample facts, the same ones for all models and measures, so that differences are paired. A
statistic over several models is the mean over the models.
"""

import numpy as np
import pandas as pd
from scipy.cluster import hierarchy
from scipy.spatial.distance import squareform

from probelib import stats
from probelib.beyond import concordance as c
from probelib.errors import ProbeError

DIFFERENCE = ["difference", "difference low", "difference high"]
GROUPS = 20  # of facts, left out in turn by the jackknife


# Against what the models were taught


def headline_pairs(design: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """(pairs of taught and never-taught facts that rank measures, their blocks): of sisters if the
    design has some, otherwise of facts. Raise ProbeError if there are none."""
    for within in (c.SISTERS, c.FACTS):
        if len(pairs := c.pairs_of(design, within)):
            return pairs, within
    raise ProbeError(
        f"no relation has a fact that was taught at least {c.TAUGHT} times and one never taught "
        f"({len(design)} facts of {design['model'].nunique()} models): there is nothing to compare"
        ". Take more facts (n_facts=6 or more)"
    )


def all_statistics(
    values: pd.DataFrame, design: pd.DataFrame, times: int = 500, seed: int = 0
) -> pd.DataFrame:
    """All statistics of ``concordance``, one row per measure: one column per kind of pairs that the
    design allows (the dose as Somers' D) with its interval; and ``tau`` (Kendall's tau-b with the
    exposure count, mean over models). Do not compare tau-b between measures: it does not penalize
    ties."""
    kinds = {
        "across sisters": c.pairs_of(design, c.SISTERS),
        "within relations": c.pairs_of(design, c.FACTS),
        "dose": c.pairs_of_doses(design),
    }
    table = pd.DataFrame({"measure": values["measure"].unique()})
    for name, pairs in kinds.items():
        own = c.concordance(values, design, pairs, times, seed)[["measure", *c.SHARE]]
        if name == "dose":
            own[c.SHARE] = 2 * own[c.SHARE] - 1
        if len(own):
            columns = ["measure", name, f"{name} low", f"{name} high"]
            table = table.merge(own.set_axis(columns, axis=1), "left", "measure")
    return table.assign(tau=table["measure"].map(mean_tau(values, design)))


def mean_tau(values: pd.DataFrame, design: pd.DataFrame) -> pd.Series:
    """measure -> tau-b of its values with the exposure counts, mean over models."""
    groups = values.merge(design, on=["model", "fact"]).groupby(["measure", "model"])
    taus = {key: stats.kendall(own["value"], own["exposures"])["tau"] for key, own in groups}
    return pd.Series(taus).groupby(level=0).mean()


def change_of_tau(before: pd.DataFrame, after: pd.DataFrame, design: pd.DataFrame) -> pd.DataFrame:
    """The effect of a change on ``mean_tau`` of each measure that has values after it: ``measure``,
    ``change of tau-b`` with its interval (95 % jackknife over ``GROUPS`` groups of facts: in a
    bootstrap the copies of a fact would be ties)."""
    names = after["measure"].unique()
    sides = (before[before["measure"].isin(names)], after)
    first, second = (mean_tau(values, design).reindex(names).to_numpy(float) for values in sides)
    left = [_taus_left_out(values, design).reindex(columns=names).to_numpy() for values in sides]
    ends = stats.jackknife_interval(second - first, left[1] - left[0])
    name = "change of tau-b"
    columns = {"measure": names, name: second - first, f"{name} low": ends[0]}
    return pd.DataFrame(columns | {f"{name} high": ends[1]})


def _taus_left_out(values: pd.DataFrame, design: pd.DataFrame) -> pd.DataFrame:
    """[groups, measures]: ``mean_tau`` without each group of facts in turn."""
    facts = design["fact"].unique()
    groups = np.arange(min(GROUPS, len(facts)))
    place = pd.Series(np.arange(len(facts)) % len(groups), facts)
    rows, taus = values.merge(design, on=["model", "fact"]), {}
    for key, own in rows.groupby(["measure", "model"]):
        kept = own["fact"].map(place).to_numpy() != groups[:, None]  # [groups, facts]
        taus[key] = stats.kendall_weighted(own["value"], own["exposures"], kept.astype(float))
    return pd.DataFrame(taus).T.groupby(level=0).mean().T  # over models


def contrast(values: pd.DataFrame, one: pd.Index, other: pd.Index) -> pd.DataFrame:
    """Compare two groups of facts: ``measure``, ``one``, ``other`` (mean values), ``difference``
    with its interval (95 %, facts resampled within each group), ``n one``, ``n other``. A fact
    counts if all models have a finite value."""
    rows = []
    for measure, group in values.groupby("measure", sort=False):
        wide = group.pivot(index="fact", columns="model", values="value").astype(float)
        mean = wide[np.isfinite(wide).all(axis=1)].mean(axis=1)
        pair = [mean.reindex(facts).dropna().to_numpy() for facts in (one, other)]
        mean_of = lambda v, seed: stats.bootstrap(lambda i: v[i].mean(1), len(v), seed=seed)
        draws = [mean_of(v, seed) for seed, v in enumerate(pair)]
        means = [v.mean() if len(v) else np.nan for v in pair]
        ends = stats.percentile_interval(draws[0] - draws[1])
        rows.append((measure, *means, means[0] - means[1], *ends, *map(len, pair)))
    return pd.DataFrame(rows, columns=["measure", "one", "other", *DIFFERENCE, "n one", "n other"])


# Against each other


def agreement_matrix(values: pd.DataFrame, ties: bool = True) -> pd.DataFrame:
    """``ordered_alike`` of every two measures over facts, mean over models: [measures,
    measures]."""
    alike = pd.concat([ordered_alike(wide, ties) for wide in _by_model(values)])
    names = values["measure"].unique()
    return alike.groupby(level=0).mean().reindex(index=names, columns=names)


def ordered_alike(wide: pd.DataFrame, ties: bool = True) -> pd.DataFrame:
    """Share of pairs of rows that every two columns order alike; .5 is chance. Pairs count where
    both columns have values; NaN without any.

    ties   True: a tie in either column counts half, (1 + tau-a) / 2. A coarse column cannot reach
           1, not even with itself. False: only pairs that both columns order count, (1 + gamma) /
           2, however few pairs a coarse column orders

    >>> table = pd.DataFrame({"x": [1.0, 2, 3], "y": [1.0, 3, 2], "coarse": [0.0, 0, 1]})
    >>> [ordered_alike(table, ties).round(3).loc["x"].tolist() for ties in (True, False)]
    [[1.0, 0.667, 0.833], [1.0, 0.667, 1.0]]
    """
    table = wide.astype(float).apply(stats.levelled).to_numpy()
    alike, count = np.zeros((2, wide.shape[1], wide.shape[1]))
    for i in range(len(table)):
        sign = np.sign(table[i + 1 :] - table[i])  # [pairs, measures]
        there = (np.isfinite(sign) & (ties | (sign != 0))).astype(float)
        sign = np.nan_to_num(sign)
        alike += sign.T @ sign
        count += there.T @ there
    with np.errstate(invalid="ignore"):
        return pd.DataFrame((1 + alike / count) / 2, index=wide.columns, columns=wide.columns)


def agreement_pairs(values: pd.DataFrame, times: int = 100, seed: int = 0) -> pd.DataFrame:
    """``agreement_matrix`` as a list, one row per pair of measures without NaN: ``first``,
    ``second``, ``alike`` with its interval (95 % bootstrap over facts; NaN if it is the same in
    every replicate), ``n``, ``without ties`` (the same over the pairs that both order)."""
    matrix, untied = agreement_matrix(values), agreement_matrix(values, ties=False)
    wides, rows = _by_model(values), []
    for i, j in zip(*np.triu_indices(len(matrix), 1), strict=True):
        first, second = matrix.index[i], matrix.columns[j]
        if np.isnan(alike := matrix.iat[i, j]):
            continue
        both = [wide[[first, second]].dropna() for wide in wides if {first, second} <= set(wide)]
        pairs = [pair.astype(float).apply(stats.levelled).to_numpy() for pair in both]
        draws = [_alike_draws(p, stats.resample_counts(len(p), times, seed)) for p in pairs]
        ends = stats.percentile_interval(np.mean(draws, axis=0))
        rows.append((first, second, alike, *ends, max(map(len, pairs)), untied.iat[i, j]))
    columns = ["first", "second", "alike", "alike low", "alike high", "n", "without ties"]
    return pd.DataFrame(rows, columns=columns)


def _alike_draws(pair: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Bootstrap replicates of ``ordered_alike`` of two columns: (1 + w'Sw / (|w|^2 - w'w)) / 2 with
    S the product of the signs of all differences, w [replicates, rows] the numbers of draws."""
    x, y = (np.sign(v[:, None] - v[None]) for v in pair.T)
    with np.errstate(invalid="ignore"):
        pairs = weight.sum(1) ** 2 - (weight**2).sum(1)
        return (1 + ((weight @ (x * y)) * weight).sum(1) / pairs) / 2


def clustered_order(matrix: pd.DataFrame) -> list[str]:
    """The measures in the order of a hierarchical clustering: average linkage of the distance 1 -
    share alike (NaN: .5)."""
    if len(matrix) < 3:
        return list(matrix.index)
    distance = 1 - matrix.fillna(0.5).to_numpy()
    np.fill_diagonal(distance, 0.0)
    condensed = squareform((distance + distance.T) / 2, checks=False).clip(min=0)
    tree = hierarchy.linkage(condensed, "average")
    leaves = hierarchy.leaves_list(hierarchy.optimal_leaf_ordering(tree, condensed))
    return matrix.index[leaves].tolist()


def _by_model(values: pd.DataFrame) -> list[pd.DataFrame]:
    """[facts, measures] of each model, the measures in order of appearance."""
    groups = values.groupby("model", sort=False)
    tables = [own.pivot(index="fact", columns="measure", values="value") for _, own in groups]
    return [t[[name for name in values["measure"].unique() if name in t]] for t in tables]
