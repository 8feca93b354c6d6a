"""Whether measures differ between groups of facts, and whether they agree: values per fact in, numbers
out.

Values are a long frame ``model``, ``fact``, ``measure``, ``value`` (higher: known better; see
``beyond.score``). Bootstrap intervals resample facts, the same ones for all models and measures, so
that differences are paired. A statistic over several models is the mean over the models.
"""

import numpy as np
import pandas as pd
from scipy.cluster import hierarchy
from scipy.spatial.distance import squareform

from probelib import stats

DIFFERENCE = ["difference", "difference low", "difference high"]


# Against what the models were taught


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
