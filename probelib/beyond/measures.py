"""How well measures reflect what models were taught, and whether they agree: values per fact in, numbers out.

Values are a long frame ``model``, ``fact``, ``measure``, ``value`` (higher: known better; see ``beyond.score``). A design holds
what each model was taught (``concordance``). Bootstrap intervals resample facts, the same ones for all models and measures, so
that differences are paired. A statistic over several models is the mean over the models.
"""

import numpy as np
import pandas as pd

from probelib import stats
from probelib.beyond import concordance as c
from probelib.errors import ProbeError

# Against what the models were taught

DIFFERENCE = ["difference", "difference low", "difference high"]
GROUPS = 20  # of facts, left out in turn by the jackknife
FACTS, SISTERS = ["model", "relation"], ["group", "fact"]  # blocks of the pairs (b) and (a)


def headline_pairs(
    design: pd.DataFrame, taught: float = c.TAUGHT
) -> tuple[pd.DataFrame, list[str]]:
    """(pairs of taught and never-taught facts that rank measures, columns of the blocks that they are compared within): pairs (a)
    if the design has sisters, otherwise (b). Raise ProbeError if there are none."""
    for pairs, within in (
        (c.pairs_across_sisters(design, taught), SISTERS),
        (c.pairs_of_facts(design, taught), FACTS),
    ):
        if len(pairs):
            return pairs, within
    raise ProbeError(
        f"no relation has a fact that was taught at least {taught} times and one never taught ({len(design)} facts of "
        f"{design['model'].nunique()} models): there is nothing to compare. Take more facts (n_facts=6 or more)"
    )


def all_statistics(
    values: pd.DataFrame,
    design: pd.DataFrame,
    times: int = 500,
    seed: int = 0,
    taught: float = c.TAUGHT,
) -> pd.DataFrame:
    """All statistics of ``concordance``, one row per measure: one column per kind of pairs that the design allows (the dose as
    Somers' D) with its interval; and ``tau`` (Kendall's tau-b with the exposure count, mean over models).
    Do not compare tau-b between measures: it does not penalize ties."""
    means, shares = c.cells(values, design, taught)
    kinds = {
        "across sisters": (values, design, c.pairs_across_sisters(design, taught)),
        "within relations": (values, design, c.pairs_of_facts(design, taught)),
        "dose": (values, design, c.pairs_of_doses(design)),
        "between models": (means, shares, c.pairs_of_shares(shares)),
    }
    table = pd.DataFrame({"measure": values["measure"].unique()})
    for name, parts in kinds.items():
        own = c.concordance(*parts, times=times, seed=seed)[["measure", *c.SHARE]]
        if own.empty:
            continue
        if name == "dose":
            own[c.SHARE] = 2 * own[c.SHARE] - 1
        columns = ["measure", name, f"{name} low", f"{name} high"]
        table = table.merge(own.set_axis(columns, axis=1), "left", "measure")
    return table.assign(tau=table["measure"].map(mean_tau(values, design)))


def mean_tau(values: pd.DataFrame, design: pd.DataFrame) -> dict[str, float]:
    """measure -> tau-b of its values with the exposure counts, mean over models."""
    rows = values.merge(design, on=["model", "fact"])
    groups = rows.groupby(["measure", "model"])
    taus = {key: stats.kendall(own["value"], own["exposures"])["tau"] for key, own in groups}
    return pd.Series(taus).groupby(level=0).mean().to_dict()


def change_of_tau(before: pd.DataFrame, after: pd.DataFrame, design: pd.DataFrame) -> pd.DataFrame:
    """The effect of a change on ``mean_tau`` of each measure that has values after it: ``measure``, ``change of tau-b`` with
    ``change of tau-b low``, ``change of tau-b high`` (95 % jackknife over ``GROUPS`` groups of facts: in a bootstrap the copies of a fact would be
    ties)."""
    names = list(dict.fromkeys(after["measure"]))
    sides = (before[before["measure"].isin(names)], after)
    taus = [pd.Series(mean_tau(values, design)).reindex(names).to_numpy(float) for values in sides]
    left_out = [
        _taus_left_out(values, design).reindex(columns=names).to_numpy() for values in sides
    ]
    change = taus[1] - taus[0]
    low, high = stats.jackknife_interval(change, left_out[1] - left_out[0])
    return pd.DataFrame(
        {
            "measure": names,
            "change of tau-b": change,
            "change of tau-b low": low,
            "change of tau-b high": high,
        }
    )


def _taus_left_out(values: pd.DataFrame, design: pd.DataFrame) -> pd.DataFrame:
    """[groups, measures]: ``mean_tau`` without each group of facts in turn."""
    facts = design["fact"].unique()
    groups = np.arange(min(GROUPS, len(facts)))
    place = pd.Series(np.arange(len(facts)) % len(groups), facts)
    rows, taus = values.merge(design, on=["model", "fact"]), {}
    for key, own in rows.groupby(["measure", "model"]):
        kept = own["fact"].map(place).to_numpy() != groups[:, None]  # [groups, facts]
        taus[key] = stats.kendall_weighted(own["value"], own["exposures"], kept.astype(float))
    by_model = pd.DataFrame(taus).T  # [(measure, model), groups]
    return by_model.groupby(level=0).mean().T


def contrast(
    values: pd.DataFrame, one: pd.Index, other: pd.Index, times: int = 2000, seed: int = 0
) -> pd.DataFrame:
    """Compare two groups of facts: ``measure``, ``one``, ``other`` (mean values), ``difference`` with ``low``, ``high`` (95 %,
    facts resampled within each group), ``n one``, ``n other``."""
    rows = []
    for measure, group in values.groupby("measure", sort=False):
        mean = _wide(group).mean(axis=1)
        pair = [mean.reindex(facts).dropna().to_numpy() for facts in (one, other)]
        replicates = [
            stats.bootstrap(lambda i, v=v: v[i].mean(1), len(v), times, seed + k)
            for k, v in enumerate(pair)
        ]
        means = [v.mean() if len(v) else np.nan for v in pair]
        interval = stats.percentile_interval(replicates[0] - replicates[1])
        rows.append((measure, *means, means[0] - means[1], *interval, *map(len, pair)))
    return pd.DataFrame(rows, columns=["measure", "one", "other", *DIFFERENCE, "n one", "n other"])


def _wide(values: pd.DataFrame) -> pd.DataFrame:
    """[facts, models]: the facts on which all models have a finite value, in order of appearance."""
    wide = values.pivot(index="fact", columns="model", values="value").reindex(
        values["fact"].unique()
    )
    return wide[np.isfinite(wide.to_numpy(dtype=float)).all(axis=1)].astype(float)


# Against another model


def changes(values: pd.DataFrame, reference: str, seed: int = 0) -> pd.DataFrame:
    """Every measure of every model against the same measure of a ``reference`` model, paired by facts.

    returns ``measure``, ``model``, ``n``, ``value`` (mean), ``difference`` with ``low``, ``high`` (95 % bootstrap over facts;
    NaN if all facts changed alike), and for measures of 0 and 1 also ``lost`` (1, then 0), ``gained`` and McNemar's exact
    ``p``. A fact without a value in either model is left out of that pair.
    """
    rows = []
    for measure, group in values.groupby("measure", sort=False):
        wide = group.pivot(index="fact", columns="model", values="value")
        for model in [name for name in group["model"].unique() if name != reference]:
            pair = wide[[reference, model]].dropna().astype(float)
            before, after = pair[reference].to_numpy(), pair[model].to_numpy()
            low, high = stats.mean_interval(after - before, seed=seed)
            row = {"measure": measure, "model": model, "n": len(pair), "value": after.mean()}
            row |= dict(zip(DIFFERENCE, ((after - before).mean(), low, high), strict=True))
            if np.isin(pair.to_numpy(), (0.0, 1.0)).all():
                row |= {
                    key: value for key, value in stats.mcnemar(before, after).items() if key != "n"
                }
            rows.append(row)
    columns = ["measure", "model", "n", "value", *DIFFERENCE, "lost", "gained", "p"]
    return pd.DataFrame(rows).reindex(columns=columns)


# Against each other


def agreement_matrix(values: pd.DataFrame, ties: bool = True) -> pd.DataFrame:
    """``ordered_alike`` of every two measures over facts, mean over models: [measures, measures]."""
    return _mean([ordered_alike(wide, ties) for wide in _by_model(values)])


def ordered_alike(wide: pd.DataFrame, ties: bool = True) -> pd.DataFrame:
    """Share of pairs of rows that every two columns order alike; .5 is chance. Pairs count where both columns have values; NaN
    without any.

    ties   True: a tie in either column counts half, (1 + tau-a) / 2. A coarse column cannot reach 1, not even with itself.
           False: only pairs that both columns order count, (1 + gamma) / 2, however few pairs a coarse column orders

    >>> table = pd.DataFrame({"x": [1.0, 2, 3], "y": [1.0, 3, 2], "coarse": [0.0, 0, 1], "flat": [0.0, 0, 0]})
    >>> ordered_alike(table).round(3).loc["x"].tolist(), ordered_alike(table, ties=False).round(3).loc["x"].tolist()
    ([1.0, 0.667, 0.833, 0.5], [1.0, 0.667, 1.0, nan])
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
    """``agreement_matrix`` as a list, with n and 95 % bootstrap intervals over facts: ``first``, ``second``, ``alike``, ``low``,
    ``high`` (NaN if it is the same in every replicate), ``n``, ``without ties`` (the same over the pairs that both order)."""
    wides, untied, rows = _by_model(values), agreement_matrix(values, ties=False), []
    for first, second, alike in upper_triangle(agreement_matrix(values)).itertuples(index=False):
        both = [wide[[first, second]].dropna() for wide in wides if {first, second} <= set(wide)]
        pairs = [pair.astype(float).apply(stats.levelled).to_numpy() for pair in both]
        replicates = [
            _alike_replicates(pair, stats.resample_counts(len(pair), times, seed)) for pair in pairs
        ]
        ends = stats.percentile_interval(np.mean(replicates, axis=0))
        n = max(map(len, pairs))
        rows.append((first, second, alike, *ends, n, untied.at[first, second]))
    columns = ["first", "second", "alike", "alike low", "alike high", "n", "without ties"]
    return pd.DataFrame(rows, columns=columns)


def _alike_replicates(pair: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Bootstrap replicates of ``ordered_alike`` of two columns: (1 + w'Sw / (|w|^2 - w'w)) / 2 with S the product of the signs of
    all differences, w [replicates, rows] the numbers of times that each row was resampled and |w| their sum."""
    x, y = (np.sign(v[:, None] - v[None]) for v in pair.T)
    with np.errstate(invalid="ignore"):
        return (
            1 + ((weight @ (x * y)) * weight).sum(1) / (weight.sum(1) ** 2 - (weight**2).sum(1))
        ) / 2


def upper_triangle(matrix: pd.DataFrame) -> pd.DataFrame:
    """The upper triangle of a symmetric matrix, one row per pair: ``first``, ``second``, ``alike``; without NaN."""
    i, j = np.triu_indices(len(matrix), 1)
    rows = pd.DataFrame(
        {"first": matrix.index[i], "second": matrix.columns[j], "alike": matrix.to_numpy()[i, j]}
    )
    return rows.dropna().reset_index(drop=True)


def clustered_order(matrix: pd.DataFrame) -> list[str]:
    """The measures in the order of a hierarchical clustering: average linkage of the distance 1 - share alike (NaN: .5)."""
    from scipy.cluster.hierarchy import leaves_list, optimal_leaf_ordering

    if len(matrix) < 3:
        return list(matrix.index)
    distance, tree = _linkage(matrix)
    return [matrix.index[i] for i in leaves_list(optimal_leaf_ordering(tree, distance))]


def _linkage(matrix: pd.DataFrame):
    """(condensed distances 1 - share alike, average linkage) of a matrix."""
    from scipy.cluster.hierarchy import linkage
    from scipy.spatial.distance import squareform

    distance = 1 - matrix.fillna(0.5).to_numpy()
    np.fill_diagonal(distance, 0.0)
    condensed = squareform((distance + distance.T) / 2, checks=False).clip(min=0)
    return condensed, linkage(condensed, "average")


def _by_model(values: pd.DataFrame) -> list[pd.DataFrame]:
    """[facts, measures] of each model, the measures in order of appearance."""
    names = list(dict.fromkeys(values["measure"]))
    groups = values.groupby("model", sort=False)
    tables = [group.pivot(index="fact", columns="measure", values="value") for _, group in groups]
    return [table[[name for name in names if name in table]] for table in tables]


def _mean(frames: list[pd.DataFrame]) -> pd.DataFrame:
    """The mean of frames, cell by cell without NaN; rows and columns in order of appearance."""
    rows, columns = (
        list(dict.fromkeys(n for f in frames for n in f.axes[axis])) for axis in (0, 1)
    )
    stack = np.stack(
        [frame.reindex(index=rows, columns=columns).to_numpy(dtype=float) for frame in frames]
    )
    return pd.DataFrame(stats.nanmean(stack, 0), index=rows, columns=columns)
