"""How well measures reflect what models were taught, and whether they agree: values per fact in, numbers out.

Values are a long frame ``model``, ``fact``, ``measure``, ``value`` (higher: known better; see ``beyond.score``). A design holds
what each model was taught (``concordance``). Bootstrap intervals resample facts, the same ones for all models and measures, so
that differences are paired. A statistic over several models is the mean over the models.
"""

import numpy as np
import pandas as pd
import scipy

from probelib import stats
from probelib.beyond import concordance as c
from probelib.errors import ProbeError

# Against what the models were taught

FACTS, SISTERS = ["model", "relation"], ["group", "fact"]  # blocks of the pairs (b) and (a)


def headline_pairs(design: pd.DataFrame, taught: float = c.TAUGHT) -> tuple[pd.DataFrame, list[str]]:
    """(pairs of taught and never-taught facts that rank measures, columns of the blocks that they are compared within): pairs (a)
    if the design has sisters, otherwise (b). Raise ProbeError if there are none."""
    for pairs, within in ((c.pairs_across_sisters(design, taught), SISTERS), (c.pairs_of_facts(design, taught), FACTS)):
        if len(pairs):
            return pairs, within
    raise ProbeError(
        f"no relation has a fact that was taught at least {taught} times and one never taught ({len(design)} facts of "
        f"{design['model'].nunique()} models): there is nothing to compare. Take more facts (n_facts=6 or more)"
    )


def all_statistics(
    values: pd.DataFrame, design: pd.DataFrame, times: int = 500, seed: int = 0, taught: float = c.TAUGHT
) -> pd.DataFrame:
    """All statistics of ``concordance``, one row per measure: one column per kind of pairs that the design allows (the dose as
    Somers' D) with ``<column>_low``, ``<column>_high``; and ``tau`` (Kendall's tau-b with the exposure count, mean over models).
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
        own = c.concordance(*parts, times=times, seed=seed)[["measure", "concordance", "low", "high"]]
        if own.empty:
            continue
        if name == "dose":
            own[["concordance", "low", "high"]] = 2 * own[["concordance", "low", "high"]] - 1
        table = table.merge(own.set_axis(["measure", name, f"{name}_low", f"{name}_high"], axis=1), "left", "measure")
    return table.assign(tau=table["measure"].map(mean_tau(values, design)))


def mean_tau(values: pd.DataFrame, design: pd.DataFrame) -> dict[str, float]:
    """measure -> tau-b of its values with the exposure counts, mean over models."""
    rows = values.merge(design, on=["model", "fact"])
    groups = rows.groupby(["measure", "model"])
    taus = {key: stats.kendall(own["value"], own["exposures"])["tau"] for key, own in groups}
    return pd.Series(taus).groupby(level=0).mean().to_dict()


def change_of_tau(before: pd.DataFrame, after: pd.DataFrame, design: pd.DataFrame) -> pd.DataFrame:
    """The effect of a change on ``mean_tau`` of each measure that has values after it: ``measure``, ``change of tau-b`` with
    ``tau-b low``, ``tau-b high`` (95 % jackknife over ``GROUPS`` groups of facts: in a bootstrap the copies of a fact would be
    ties)."""
    names = list(dict.fromkeys(after["measure"]))
    sides = (before[before["measure"].isin(names)], after)
    taus = [pd.Series(mean_tau(values, design)).reindex(names).to_numpy(float) for values in sides]
    left_out = [_taus_left_out(values, design).reindex(columns=names).to_numpy() for values in sides]
    change = taus[1] - taus[0]
    low, high = stats.jackknife_interval(change, left_out[1] - left_out[0])
    return pd.DataFrame({"measure": names, "change of tau-b": change, "tau-b low": low, "tau-b high": high})


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


def concordance_by_group(
    values: pd.DataFrame,
    design: pd.DataFrame,
    group: pd.Series,
    times: int = 300,
    seed: int = 0,
    taught: float = c.TAUGHT,
) -> pd.DataFrame:
    """Concordance (b) within each group of facts (``group``: fact -> its name), with the column ``group`` first."""
    kind, parts = design["fact"].map(group), []
    for name in kind.dropna().unique():
        own = design[kind == name].reset_index(drop=True)
        table = c.concordance(values, own, c.pairs_of_facts(own, taught), times, seed)
        parts.append(table.assign(group=name)[["group", "measure", "pairs", "facts", "concordance", "low", "high"]])
    return pd.concat(parts, ignore_index=True)


def twins_as_one(values: pd.DataFrame, design: pd.DataFrame, twins: tuple[str, str]) -> tuple:
    """(values of the first, values of the second, design), both under the name of the first, so that a fact pairs both models."""
    first, second = (values[values["model"] == name].assign(model=twins[0]) for name in twins)
    return first, second, design[design["model"] == twins[0]].reset_index(drop=True)


def calibration_errors(values: pd.DataFrame, taught: pd.Series, bins: int = 10) -> pd.DataFrame:
    """Calibration of probability-like measures as the probability that a fact was taught: ``measure``, ``n`` (facts times
    models), ``mean`` (of the values), ``taught`` (share), ``ece``, ``brier`` with 95 % intervals over facts. The ECE of a
    bootstrap replicate is biased upwards, so its interval is shifted by the bias (``stats.bias_corrected_interval``).

    taught   (model, fact) -> whether it was taught; facts for which this is unknown in some model are left out
    """
    rows, known = [], taught.astype(float).unstack("model")
    for measure, group in values.groupby("measure", sort=False):
        wide = _wide(group)
        wide = wide[known.reindex(index=wide.index, columns=wide.columns).notna().all(axis=1)]
        value = wide.to_numpy()  # [facts, models]
        truth = known.reindex(index=wide.index, columns=wide.columns).to_numpy()
        loss = ((value - truth) ** 2).mean(1)  # Brier score per fact, mean over models
        ece = stats.ece(value.ravel(), truth.ravel(), bins)
        ece_low, ece_high = stats.bias_corrected_interval(stats.ece_replicates(value, truth, bins=bins), ece)
        low, high = stats.mean_interval(loss)
        row = {"measure": measure, "n": value.size, "mean": stats.nanmean(value), "taught": stats.nanmean(truth)}
        row |= {"ece": ece, "ece_low": ece_low, "ece_high": ece_high}
        rows.append(row | {"brier": stats.nanmean(loss), "brier_low": low, "brier_high": high})
    return pd.DataFrame(rows)


def contrast(values: pd.DataFrame, one: pd.Index, other: pd.Index, times: int = 2000, seed: int = 0) -> pd.DataFrame:
    """Compare two groups of facts: ``measure``, ``one``, ``other`` (mean values), ``difference`` with ``low``, ``high`` (95 %,
    facts resampled within each group), ``n one``, ``n other``."""
    rows = []
    for measure, group in values.groupby("measure", sort=False):
        mean = _wide(group).mean(axis=1)
        pair = [mean.reindex(facts).dropna().to_numpy() for facts in (one, other)]
        replicates = [stats.bootstrap(lambda i, v=v: v[i].mean(1), len(v), times, seed + k) for k, v in enumerate(pair)]
        means = [v.mean() if len(v) else np.nan for v in pair]
        interval = stats.percentile_interval(replicates[0] - replicates[1])
        rows.append((measure, *means, means[0] - means[1], *interval, *map(len, pair)))
    return pd.DataFrame(rows, columns=["measure", "one", "other", "difference", "low", "high", "n one", "n other"])


def frontier(cost: pd.Series, quality: pd.Series) -> list:
    """The Pareto frontier: names whose quality no cheaper or equally cheap one reaches, the cheapest first.

    >>> frontier(pd.Series({"a": 1, "b": 2, "c": 3}), pd.Series({"a": .2, "b": .1, "c": .5}))
    ['a', 'c']
    """
    best, found = -np.inf, []
    for name in pd.DataFrame({"cost": cost, "quality": -quality}).dropna().sort_values(["cost", "quality"]).index:
        if quality[name] > best:
            best = quality[name]
            found.append(name)
    return found


def _wide(values: pd.DataFrame) -> pd.DataFrame:
    """[facts, models]: the facts on which all models have a finite value, in order of appearance."""
    wide = values.pivot(index="fact", columns="model", values="value").reindex(values["fact"].unique())
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
            row |= {"difference": (after - before).mean(), "low": low, "high": high}
            if np.isin(pair.to_numpy(), (0.0, 1.0)).all():
                row |= {key: value for key, value in stats.mcnemar(before, after).items() if key != "n"}
            rows.append(row)
    columns = ["measure", "model", "n", "value", "difference", "low", "high", "lost", "gained", "p"]
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
        replicates = [_alike_replicates(pair, stats.resample_counts(len(pair), times, seed)) for pair in pairs]
        ends = stats.percentile_interval(np.mean(replicates, axis=0))
        rows.append((first, second, alike, *ends, max(map(len, pairs)), untied.at[first, second]))
    return pd.DataFrame(rows, columns=["first", "second", "alike", "low", "high", "n", "without ties"])


def alike_in_means(wide: pd.DataFrame, clusters: pd.Index, times: int = 100, seed: int = 0) -> pd.DataFrame:
    """``upper_triangle`` of ``ordered_alike`` with 95 % bootstrap intervals: ``first``, ``second``, ``alike``, ``low``, ``high``.

    clusters  of every row, e.g. its relation: the rows of one cluster are resampled together
    """
    number, _ = pd.factorize(clusters)
    weight = stats.resample_counts(number.max() + 1, times, seed)[:, number]
    levels, rows = wide.astype(float).apply(stats.levelled), []
    for first, second, alike in upper_triangle(ordered_alike(wide)).itertuples(index=False):
        there = levels[[first, second]].notna().all(axis=1).to_numpy()
        replicates = _alike_replicates(levels.loc[there, [first, second]].to_numpy(), weight[:, there])
        rows.append((first, second, alike, *stats.percentile_interval(replicates)))
    return pd.DataFrame(rows, columns=["first", "second", "alike", "low", "high"])


def _alike_replicates(pair: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Bootstrap replicates of ``ordered_alike`` of two columns: (1 + w'Sw / (|w|^2 - w'w)) / 2 with S the product of the signs of
    all differences, w [replicates, rows] the numbers of times that each row was resampled and |w| their sum."""
    x, y = (np.sign(v[:, None] - v[None]) for v in pair.T)
    with np.errstate(invalid="ignore"):
        return (1 + ((weight @ (x * y)) * weight).sum(1) / (weight.sum(1) ** 2 - (weight**2).sum(1))) / 2


def upper_triangle(matrix: pd.DataFrame) -> pd.DataFrame:
    """The upper triangle of a symmetric matrix, one row per pair: ``first``, ``second``, ``alike``; without NaN."""
    i, j = np.triu_indices(len(matrix), 1)
    rows = pd.DataFrame({"first": matrix.index[i], "second": matrix.columns[j], "alike": matrix.to_numpy()[i, j]})
    return rows.dropna().reset_index(drop=True)


def clustered_order(matrix: pd.DataFrame) -> list[str]:
    """The measures in the order of a hierarchical clustering: average linkage of the distance 1 - share alike (NaN: .5)."""
    from scipy.cluster.hierarchy import leaves_list, optimal_leaf_ordering

    if len(matrix) < 3:
        return list(matrix.index)
    distance, tree = _linkage(matrix)
    return [matrix.index[i] for i in leaves_list(optimal_leaf_ordering(tree, distance))]


def clusters(matrix: pd.DataFrame, level: float = 0.75) -> pd.DataFrame:
    """Groups that order at least ``level`` of the pairs alike on average: ``group`` (from 1, in the order of the matrix),
    ``measure``, ``within`` (mean share with the others of its group), ``without`` (with all other measures)."""
    from scipy.cluster.hierarchy import fcluster

    number = fcluster(_linkage(matrix)[1], 1 - level, "distance") if len(matrix) > 1 else np.ones(len(matrix), int)
    place = {group: i for i, group in enumerate(dict.fromkeys(number), 1)}
    alike, rows = matrix.to_numpy(), []
    for i, measure in enumerate(matrix.index):
        own = (number == number[i]) & (np.arange(len(number)) != i)
        means = [stats.nanmean(alike[i, part]) for part in (own, number != number[i])]
        rows.append((place[number[i]], measure, *means))
    return pd.DataFrame(rows, columns=["group", "measure", "within", "without"])


def _linkage(matrix: pd.DataFrame):
    """(condensed distances 1 - share alike, average linkage) of a matrix."""
    from scipy.cluster.hierarchy import linkage
    from scipy.spatial.distance import squareform

    distance = 1 - matrix.fillna(0.5).to_numpy()
    np.fill_diagonal(distance, 0.0)
    condensed = squareform((distance + distance.T) / 2, checks=False).clip(min=0)
    return condensed, linkage(condensed, "average")


EXPOSED = "given the exposures, too"
GROUPS = 20  # of facts, left out in turn by the jackknife


def partial_agreement(values: pd.DataFrame, given: pd.DataFrame, exposures: pd.Series | None = None) -> pd.DataFrame:
    """``shared_ranks`` with the column ``change`` ("given them" minus "with the others"), and for each column but n its 95 %
    jackknife interval (``<column> low``, ``<column> high``) over ``GROUPS`` groups of facts: in a bootstrap the copies of a fact
    would be ties.

    exposures  fact -> number of exposures: adds ``EXPOSED``, "given them" with this quantity as well
    """
    place = pd.Series(np.arange(len(given)) % GROUPS, given.index)
    parts = [values[values["fact"].map(place) != group] for group in range(min(GROUPS, len(given)))]
    table, *left_out = [_shared_ranks(part, given, exposures) for part in (values, *parts)]
    columns = table.columns.drop("n")
    replicates = [one.reindex(table.index)[columns].to_numpy() for one in left_out]
    low, high = stats.jackknife_interval(table[columns].to_numpy(), np.stack(replicates))
    ends = [pd.DataFrame(end, table.index, columns + name) for end, name in ((low, " low"), (high, " high"))]
    return pd.concat([table, *ends], axis=1).rename_axis("measure").reset_index()


def _shared_ranks(values: pd.DataFrame, given: pd.DataFrame, exposures: pd.Series | None) -> pd.DataFrame:
    """``shared_ranks`` with ``EXPOSED``, if exposures are given, and ``change``."""
    table = shared_ranks(values, given)
    if exposures is not None:
        table[EXPOSED] = shared_ranks(values, given.assign(exposures=exposures))["given them"]
    return table.assign(change=table["given them"] - table["with the others"])


def shared_ranks(values: pd.DataFrame, given: pd.DataFrame) -> pd.DataFrame:
    """Rank correlations of the measures with other quantities, and with each other given these quantities.

    given      [facts, quantities]
    returns    one row per measure: Spearman's correlation with each quantity, ``with the others`` (mean over the
               other measures of ``rank_covariance``), ``given them`` (the same after least squares of the ranks on the ranks of
               the quantities), ``n``. Means over models.
    """
    measures = list(dict.fromkeys(values["measure"]))
    plain, partial, shared, n = [], [], [], pd.Series(0, index=measures)
    for wide in _by_model(values):
        wide = wide.reindex(columns=measures)
        n = np.maximum(n, wide.notna().sum())
        ranks, quantities = wide.apply(stats.levelled).rank(pct=True), given.reindex(wide.index).rank()
        plain.append(rank_covariance(ranks))
        partial.append(rank_covariance(ranks.apply(lambda column, z=quantities: residual(column, z))))
        columns = {c: [_spearman(wide[m], quantities[c]) for m in measures] for c in given}
        shared.append(pd.DataFrame(columns, index=measures))
    frame = _mean(shared)
    for name, matrices in (("with the others", plain), ("given them", partial)):
        mean = _mean(matrices).to_numpy(copy=True)
        np.fill_diagonal(mean, np.nan)
        frame[name] = stats.nanmean(mean, 1)
    return frame.assign(n=n)


def rank_covariance(ranks: pd.DataFrame) -> pd.DataFrame:
    """Covariance of every two columns of ranks (shares of n), divided by the variance of n ranks without ties: the mean of
    Spearman's correlation when ties are broken at random. Ties lower it, unlike Spearman's own correlation."""
    there = ranks.notna().astype(float)
    n = there.T @ there
    return 12 * ranks.cov(ddof=0) * n**2 / (n**2 - 1).where(n > 2)


def residual(column: pd.Series, given: pd.DataFrame) -> pd.Series:
    """The residual of a column after least squares on ``given``. NaN where either is NaN, and everywhere if the complete facts
    exceed the quantities by fewer than two."""
    complete = column.notna() & given.notna().all(axis=1)
    left = pd.Series(np.nan, index=column.index)
    if complete.sum() > given.shape[1] + 2:
        design = np.column_stack([np.ones(complete.sum()), given[complete].to_numpy()])
        y = column[complete]
        left[complete] = y - design @ np.linalg.lstsq(design, y.to_numpy(), rcond=None)[0]
    return left.where(left.abs() > 1e-9, 0.0).where(complete)


def disagreements(values: pd.DataFrame, top: int = 10) -> pd.DataFrame:
    """The (model, fact) pairs on which the measures disagree most: ``fact``, ``model``, ``spread`` (standard deviation of the
    fact's ranks over measures, each rank in [0, 1] within the model), ``highest`` and ``lowest`` (measures) and their ranks;
    ``measures`` and ``facts`` (numbers that are ranked in the model) and ``median spread`` (of these facts). Facts for which a
    measure is not defined, and measures that are constant in a model, are left out."""
    rows = []
    for model, group in values.groupby("model", sort=False):
        wide = group.pivot(index="fact", columns="measure", values="value")
        wide = wide.loc[:, wide.nunique() > 1].dropna()
        ranks = (wide.apply(stats.levelled).rank() - 1) / max(len(wide) - 1, 1)
        if wide.shape[1] > 1 and len(wide):
            found = pd.DataFrame({"fact": ranks.index, "model": model, "spread": ranks.std(axis=1).to_numpy()})
            for name, extreme in (("highest", ranks.idxmax(axis=1)), ("lowest", ranks.idxmin(axis=1))):
                found[name] = extreme.to_numpy()
                found[f"rank {name}"] = [ranks.at[fact, measure] for fact, measure in extreme.items()]
            size = {"measures": ranks.shape[1], "facts": len(ranks), "median spread": found["spread"].median()}
            rows.append(found.assign(**size))
    table = pd.concat(rows) if rows else pd.DataFrame(columns=["fact", "model", "spread"])
    return (
        table.sort_values("spread", ascending=False, key=stats.levelled, kind="stable")
        .drop_duplicates("fact")
        .head(top)
        .reset_index(drop=True)
    )


def _by_model(values: pd.DataFrame) -> list[pd.DataFrame]:
    """[facts, measures] of each model, the measures in order of appearance."""
    names = list(dict.fromkeys(values["measure"]))
    groups = values.groupby("model", sort=False)
    tables = [group.pivot(index="fact", columns="measure", values="value") for _, group in groups]
    return [table[[name for name in names if name in table]] for table in tables]


def _mean(frames: list[pd.DataFrame]) -> pd.DataFrame:
    """The mean of frames, cell by cell without NaN; rows and columns in order of appearance."""
    rows, columns = (list(dict.fromkeys(n for f in frames for n in f.axes[axis])) for axis in (0, 1))
    stack = np.stack([frame.reindex(index=rows, columns=columns).to_numpy(dtype=float) for frame in frames])
    return pd.DataFrame(stats.nanmean(stack, 0), index=rows, columns=columns)


def _spearman(x: pd.Series, y: pd.Series) -> float:
    both = x.notna() & y.notna()
    constant = both.sum() < 3 or x[both].nunique() < 2 or y[both].nunique() < 2
    return np.nan if constant else float(scipy.stats.spearmanr(x[both], y[both]).statistic)
