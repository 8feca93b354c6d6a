"""Correlations, calibration, scaling fits, bootstrap intervals, paired tests.

A *replicate* is the value of a statistic on one bootstrap sample; functions with the same ``seed``
and number of facts resample the same facts, so replicates can be subtracted. Intervals have 95 %.
"""

import warnings
from collections.abc import Callable

import numpy as np
import pandas as pd
import scipy  # loads its modules when they are used

from probelib.errors import ProbeError, unknown

LEVEL = 0.95
REACHED = 0.9  # value at which a scaling fit is extrapolated: the paper's N_90
UNDEFINED = dict.fromkeys(("r", "p", "low", "high"), np.nan)


def pearson(x, y) -> dict[str, float]:
    """Pearson correlation: ``r``, two-sided ``p``, ``low`` and ``high`` (Fisher's z), ``n`` (pairs
    without a NaN). Fewer than 3 pairs or a constant give NaN, never 0."""
    x, y = _complete(x, y)
    n = len(x)
    if n < 3 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return UNDEFINED | {"n": n}
    result = scipy.stats.pearsonr(x, y)
    low, high = result.confidence_interval(LEVEL) if n > 3 else (np.nan, np.nan)
    return dict(zip(UNDEFINED, map(float, (*result, low, high)), strict=True)) | {"n": n}


def _complete(*values, known=np.isfinite) -> list[np.ndarray]:
    """The values at the positions where all of them are ``known``."""
    values = [np.asarray(v, dtype=float) for v in values]
    there = known(values).all(axis=0)
    return [v[there] for v in values]


def pearson_over_models(x, y, family, given=None) -> dict[str, float]:
    """``pearson`` over models of several families (with ``given``: ``partial``), which are not
    independent: ``low`` and ``high`` are the outermost ends of its intervals over all models and
    without each family in turn (NaN if fewer than 4 models remain), so that no family alone can
    decide a sign."""
    columns = [np.asarray(v, dtype=float) for v in (x, y, given) if v is not None]
    of, family = pearson if given is None else partial, np.asarray(family)
    found = of(*columns)
    others = [family != one for one in np.unique(family)] if len(np.unique(family)) > 1 else []
    without = [of(*(values[kept] for values in columns)) for kept in others]
    low, high = (np.array([r[end] for r in [found, *without]]) for end in ("low", "high"))
    return found | {"low": float(low.min()), "high": float(high.max())}


def partial(x, y, given) -> dict[str, float]:
    """Partial Pearson correlation of x and y given z: that of the residuals of both on z (least
    squares). Keys as in ``pearson``, with n - 3 degrees of freedom for ``p`` and the interval."""
    x, y, z = _complete(x, y, given)
    n = len(x)
    if n < 4 or np.ptp(z) == 0:
        return UNDEFINED | {"n": n}
    design = np.column_stack([np.ones(n), z])
    left = [v - design @ np.linalg.lstsq(design, v, rcond=None)[0] for v in (x, y)]
    if min(np.ptp(v) for v in left) < 1e-12:
        return UNDEFINED | {"n": n}
    r = float(np.clip(np.corrcoef(*left)[0, 1], -1, 1))
    p = float(2 * scipy.stats.t.sf(abs(r) * np.sqrt((n - 3) / max(1 - r * r, 1e-300)), n - 3))
    wide = scipy.stats.norm.ppf((1 + LEVEL) / 2) / np.sqrt(n - 4) if n > 4 else np.nan
    low, high = np.tanh(np.arctanh(np.clip(r, -1 + 1e-15, 1 - 1e-15)) + np.array([-wide, wide]))
    return {"r": r, "p": p, "low": float(low), "high": float(high), "n": n}


def heterogeneity(score, error) -> dict[str, float]:
    """Standard deviation of true scores (of relations, of types): one test that they differ at all.

    score, error   [n] the measured scores and their standard errors
    returns        ``value``: the root of variance(score) - mean(error^2), 0 if the scores vary less
                   than by chance; ``low``, ``high``: likewise the 95 % range of variance(score +
                   normal error) - 2 mean(error^2); ``n``. NaN for fewer than three scores
    """
    score, error = _complete(score, error)
    if len(score) < 3:
        return {"value": np.nan, "low": np.nan, "high": np.nan, "n": len(score)}
    drawn = np.random.default_rng(0).normal(size=(2000, len(score))) * error
    noise = (error**2).mean()
    ends = percentile_interval((score + drawn).var(axis=1, ddof=1) - 2 * noise)
    excess = np.array([score.var(ddof=1) - noise, *ends])
    value, low, high = np.sqrt(np.maximum(excess, 0)).tolist()
    return {"value": value, "low": low, "high": high, "n": len(score)}


def wilson(successes, n) -> tuple:
    """Wilson's interval of a proportion, or of arrays of them, as fractions; NaN for n = 0. The
    ``successes`` of facts that are tested several times may be fractions."""
    n = np.where(np.asarray(n) > 0, n, np.nan)
    p, z2 = successes / n, scipy.stats.chi2.ppf(LEVEL, 1)  # 1.96 squared
    half = np.sqrt(z2 * p * (1 - p) / n + (z2 / n / 2) ** 2)
    return tuple(np.round([(p + z2 / n / 2 + s * half) / (1 + z2 / n) for s in (-1, 1)], 12))


def bootstrap(statistic: Callable, n: int, times: int = 2000, seed: int = 0) -> np.ndarray:
    """``times`` replicates of a statistic of ``n`` units (facts, relations); NaN for fewer than
    two. ``statistic`` maps indices [times, n] of resampled units to values [times]."""
    if n < 2:
        return np.full(times, np.nan)
    return statistic(np.random.default_rng(seed).integers(0, n, size=(times, n)))


def resample_counts(n: int, times: int, seed: int = 0) -> np.ndarray:
    """How often each of ``n`` facts occurs in each of ``times`` bootstrap samples: [times, n]; NaN
    for fewer than two facts."""
    if n < 2:
        return np.full((times, n), np.nan)
    return np.random.default_rng(seed).multinomial(n, np.full(n, 1 / n), times).astype(float)


def percentile_interval(values: np.ndarray) -> tuple[float, float]:
    """The percentile interval of replicates that are not NaN; (NaN, NaN) if there are none, or if
    all coincide: a zero-width interval would overstate certainty."""
    values = values[np.isfinite(values)]
    if not len(values):
        return np.nan, np.nan
    low, high = np.percentile(values, [50 * (1 - LEVEL), 50 * (1 + LEVEL)]).tolist()
    return (np.nan, np.nan) if np.isclose(low, high, rtol=0, atol=1e-12) else (low, high)


def percentile_intervals(replicates: np.ndarray) -> np.ndarray:
    """``percentile_interval`` of every column of replicates [times, columns]: [2, columns]."""
    return np.array([percentile_interval(own) for own in replicates.T]).reshape(-1, 2).T


def bias_corrected_interval(values: np.ndarray, estimate: float) -> tuple[float, float]:
    """Percentile interval of replicates, shifted by their bias (mean - estimate), floored at 0: for
    statistics that resampling inflates, as the standard deviation of shares of few facts.

    >>> [round(end, 2) for end in bias_corrected_interval(np.array([3.0, 4.0, 5.0]), 1.0)]
    [0.05, 1.95]
    """
    values = values[np.isfinite(values)]
    bias = values.mean() - estimate if len(values) else np.nan
    return percentile_interval(np.maximum(values - bias, 0))


def mean_interval(values, times: int = 2000, seed: int = 0) -> tuple[float, float]:
    """The bootstrap interval of a mean over units (facts) without NaN values; (NaN, NaN) for fewer
    than two, or if all are equal (see ``percentile_interval``)."""
    values = np.asarray(values, dtype=float)
    values = values[np.isfinite(values)]
    return percentile_interval(bootstrap(lambda i: values[i].mean(1), len(values), times, seed))


def pearson_rows(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """``pearson``'s r of each row of x [times, n] with the same row of y: [times]."""
    both = np.isfinite(x) & np.isfinite(y)
    n = both.sum(1)
    x, y = (np.where(both, v, 0.0) for v in (x, y))
    x, y = (np.where(both, v - (v.sum(1) / np.maximum(n, 1))[:, None], 0.0) for v in (x, y))
    spread = np.sqrt((x**2).sum(1) * (y**2).sum(1))
    there, none = (n >= 3) & (spread > 1e-12), np.full(len(n), np.nan)
    return np.divide((x * y).sum(1), spread, out=none, where=there)


def pearson_replicates(x, y, clusters, times: int = 2000, seed: int = 0) -> np.ndarray:
    """``times`` replicates of Pearson's r over clusters (e.g. relations), whose pairs without a NaN
    are resampled together. NaN for fewer than two clusters, and if x or y is constant."""
    x, y, number = _complete(x, y, pd.factorize(np.asarray(clusters))[0])
    x, y, number = x - nanmean(x), y - nanmean(y), number.astype(int)
    parts = (np.ones(len(x)), x, y, x * x, y * y, x * y)
    sums = np.column_stack([np.bincount(number, part) for part in parts])
    sums = sums[sums[:, 0] > 0]  # of clusters that have pairs
    n, sx, sy, xx, yy, xy = (resample_counts(len(sums), times, seed) @ sums).T
    with np.errstate(invalid="ignore", divide="ignore"):
        x_spread, y_spread = xx - sx**2 / n, yy - sy**2 / n
        varied = (x_spread > 1e-9 * xx) & (y_spread > 1e-9 * yy)  # beyond rounding
        return np.where(varied, (xy - sx * sy / n) / np.sqrt(x_spread * y_spread), np.nan)


def holm(p) -> np.ndarray:
    """Holm-adjusted p-values; NaN stays NaN and does not count as a test."""
    p = np.asarray(p, dtype=float)
    order = np.argsort(p)[: int(np.isfinite(p).sum())]  # NaN values come last
    adjusted = np.full(len(p), np.nan)
    adjusted[order] = np.minimum(1, np.maximum.accumulate(p[order] * np.arange(len(order), 0, -1)))
    return adjusted


def mean_band(values, times: int = 1000, seed: int = 0) -> pd.DataFrame:
    """Mean over facts of every column of ``values`` (facts, columns) with its bootstrap interval:
    ``mean``, ``low``, ``high``, ``n`` (values that are not NaN)."""
    table = np.asarray(values, dtype=float)
    there = np.isfinite(table)
    weight = resample_counts(len(table), times, seed)
    with np.errstate(invalid="ignore"):
        replicates = weight @ np.where(there, table, 0.0) / (weight @ there)  # [times, columns]
    mean = np.where(there, table, 0.0).sum(0) / np.where(there.any(0), there.sum(0), np.nan)
    index = values.columns if isinstance(values, pd.DataFrame) else None
    low, high = percentile_intervals(replicates)
    return pd.DataFrame({"mean": mean, "low": low, "high": high, "n": there.sum(0)}, index=index)


def nanmean(values, axis: int | None = None):
    """``np.nanmean`` without a warning for an empty mean."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return np.nanmean(values, axis=axis)


def mcnemar(first, second) -> dict[str, float]:
    """McNemar's exact test of two verdicts on the same facts: ``lost`` (right, then wrong),
    ``gained``, ``p`` (1.0 if no verdict changed), ``n``."""
    first, second = np.asarray(first, dtype=bool), np.asarray(second, dtype=bool)
    lost, gained = int((first & ~second).sum()), int((~first & second).sum())
    p = scipy.stats.binomtest(lost, lost + gained).pvalue if lost + gained else 1.0
    return {"lost": lost, "gained": gained, "p": float(p), "n": len(first)}


def magnitude(estimates: pd.DataFrame) -> pd.DataFrame:
    """Absolute values of estimates (``value``, ``low``, ``high``), for a claim about a size: an
    interval that holds 0 begins at 0.

    >>> magnitude(pd.DataFrame({"value": [-0.1], "low": [-0.3], "high": [0.1]})).values.tolist()
    [[0.1, 0.0, 0.3]]
    """
    ends, inside = estimates[["low", "high"]].abs(), estimates["low"] * estimates["high"] <= 0
    ends = {"low": ends.min(axis=1).mask(inside, 0.0), "high": ends.max(axis=1)}
    return estimates.assign(value=estimates["value"].abs(), **ends)


def levelled(values, tolerance: float = 1e-5) -> np.ndarray:
    """Values with near ties made equal, before they are ranked: each run of sorted values whose
    gaps are at most ``tolerance`` times their size takes its lowest value. Differences in the last
    bits depend on the processor and decide nothing.

    The size is the absolute value; of probabilities (all values in [0, 1]) the smaller of p and
    1 - p, so that both are ranked as mirror images. NaN stays NaN; -inf is the lowest value.

    >>> levelled([0.5, 0.5000001, 0.999998, 0.999999, -np.inf]).tolist()
    [0.5, 0.5, 0.999998, 0.999999, -inf]
    """
    values = np.asarray(values, dtype=float)
    flat = values.ravel().copy()
    order = np.argsort(flat, kind="stable")[: int((~np.isnan(flat)).sum())]  # NaN values come last
    ordered = flat[order]
    finite = ordered[np.isfinite(ordered)]
    bounded = len(finite) > 0 and finite[0] >= 0 and finite[-1] <= 1
    size = np.minimum(ordered, 1 - ordered) if bounded else np.abs(ordered)
    with np.errstate(invalid="ignore"):
        gap = np.diff(ordered)  # NaN between two equal infinities
        new = (gap > tolerance * np.minimum(size[1:], size[:-1])) & ~(ordered[1:] == ordered[:-1])
    if len(ordered):
        first = np.where(np.r_[True, new], np.arange(len(ordered)), 0)
        flat[order] = ordered[np.maximum.accumulate(first)]
    return flat.reshape(values.shape)


# ``sort_values``: the best first, near ties in their order
BEST_FIRST = {"ascending": False, "key": levelled, "kind": "stable"}


def kendall(x, y) -> dict[str, float]:
    """Kendall's tau-b: ``tau``, two-sided ``p``, ``n`` (pairs without a NaN).

    tau-b = (P - Q) / sqrt((P + Q + Tx)(P + Q + Ty)), with P concordant and Q discordant pairs, and
    Tx (Ty) pairs tied in x (y) only. Values are ``levelled`` first. NaN if x or y is constant, or
    for fewer than 2 pairs. If x and y are binary, it is the phi coefficient: do not compare it with
    the tau of a continuous measure.

    >>> round(kendall([1, 1, 0, 0, 0], [.9, .5, .5, .1, 0])["tau"], 6)
    0.680414
    """
    x, y = _complete(levelled(x), levelled(y), known=lambda v: ~np.isnan(v))
    n = len(x)
    if n < 2 or (x == x[0]).all() or (y == y[0]).all():
        return {"tau": np.nan, "p": np.nan, "n": n}
    result = scipy.stats.kendalltau(x, y)
    return {"tau": float(result.statistic), "p": float(result.pvalue), "n": n}


def auc(score, positive) -> float:
    """Area under the ROC curve: P(score of a positive > score of a negative), ties counted half.

    score, positive   [facts]; scores are ``levelled``. Facts with a NaN score are left out. NaN
                      without positives or negatives
    """
    score, positive = levelled(score), np.asarray(positive, dtype=bool)
    there = ~np.isnan(score)
    score, positive = score[there], positive[there]
    n, m = int(positive.sum()), int((~positive).sum())
    if not n or not m:
        return np.nan
    ranks = scipy.stats.rankdata(score)  # mean ranks, so that ties count half
    return float((ranks[positive].sum() - n * (n + 1) / 2) / (n * m))


def reliability(probability, right, bins: int = 10) -> pd.DataFrame:
    """The reliability curve over equal-width bins: ``low``, ``high`` (edges), ``n``,
    ``probability`` (mean), ``right`` (accuracy). Empty bins are left out. ECE = sum n |probability
    - right| / sum n."""
    columns = {"probability": probability, "right": right}
    frame = pd.DataFrame({name: np.asarray(own, float) for name, own in columns.items()}).dropna()
    frame["bin"] = np.minimum((frame["probability"] * bins).astype(int), bins - 1)
    table = frame.groupby("bin").agg(
        n=("right", "size"), probability=("probability", "mean"), right=("right", "mean")
    )
    table.insert(0, "high", (table.index + 1) / bins)
    table.insert(0, "low", table.index / bins)
    return table.reset_index(drop=True)


def ece(probability, right, bins: int = 10) -> float:
    """Expected calibration error: mean over cases of |mean probability - accuracy| of their bin, in
    [0, 1]."""
    table = reliability(probability, right, bins)
    gap = (table["n"] * (table["probability"] - table["right"]).abs()).sum()
    return float(gap / table["n"].sum()) if len(table) else np.nan


def scaling_fit(sizes, values, kind: str = "linear") -> dict[str, float]:
    """Least-squares fit of value = a + b log10(size) over models (Distractors, Figure 8).

    sizes, values  numbers of parameters and the measure, one per model
    kind           "linear"; or "logit": logit(value) = a + b log10(size), for values in (0, 1)

    Return ``a``; ``b`` with ``b_low`` and ``b_high`` (t with n - 2 degrees of freedom); ``r2`` on
    the fitted scale; ``size_at`` the value 0.9 (the paper's N_90) with ``size_low`` and
    ``size_high`` (NaN if b <= 0); ``n``."""
    x, y = _complete(np.log10(np.asarray(sizes, dtype=float)), values)
    if kind == "logit" and ((y <= 0) | (y >= 1)).any():
        how = "use kind='linear' or leave the others out"
        raise ProbeError(f"a logit fit needs values strictly between 0 and 1; {how}")
    y, target = _scaled(y, kind), _scaled(REACHED, kind)
    n = len(x)
    if len(set(x)) < 2:
        names = ("a", "b", "b_low", "b_high", "r2", "size_at", "size_low", "size_high")
        return dict.fromkeys(names, np.nan) | {"n": n}
    fit = scipy.stats.linregress(x, y)
    wide = scipy.stats.t.ppf((1 + LEVEL) / 2, n - 2) * fit.stderr if n > 2 else np.nan
    low, high = _size_interval(x, y, target) if fit.slope > 0 else (np.nan, np.nan)
    at = _size((target - fit.intercept) / fit.slope) if fit.slope > 0 else np.nan
    found = {"a": fit.intercept, "b": fit.slope, "b_low": fit.slope - wide}
    found |= {"b_high": fit.slope + wide, "r2": fit.rvalue**2}
    found = {name: float(value) for name, value in found.items()}
    return found | {"size_at": at, "size_low": low, "size_high": high, "n": n}


def _scaled(values, kind: str):
    """Values on the scale of the fit."""
    if kind not in ("linear", "logit"):
        raise unknown("kind of fit", kind, ["linear", "logit"])
    return scipy.special.logit(values) if kind == "logit" else values


def _size(log10) -> np.ndarray:
    """10 ** log10; inf on overflow."""
    with np.errstate(over="ignore"):
        return np.power(10.0, log10)


def _size_interval(x: np.ndarray, y: np.ndarray, target: float) -> tuple[float, float]:
    """Fieller's interval of the size at which the line reaches ``target``; (0, inf) if the slope
    does not differ from 0: all d = log10(size) - mean with, for gap = mean(y) - target,
    (gap + slope d)^2 <= t^2 s^2 (1/n + d^2 / sum (x - mean)^2), that is, a d^2 + 2 b d + c <= 0.
    """
    n, fit = len(x), scipy.stats.linregress(x, y)
    if n < 3:
        return np.nan, np.nan
    residuals = y - fit.intercept - fit.slope * x
    scatter = (residuals**2).sum() / (n - 2) * scipy.stats.t.ppf((1 + LEVEL) / 2, n - 2) ** 2
    gap = y.mean() - target
    a = fit.slope**2 - scatter / ((x - x.mean()) ** 2).sum()
    b, c = fit.slope * gap, gap**2 - scatter / n
    if a <= 0:
        return 0.0, np.inf
    half = np.sqrt(max(b * b - a * c, 0.0))
    low, high = _size(x.mean() + (-b + np.array([-half, half])) / a)
    return float(low), float(high)


def calibrate(values: pd.DataFrame, rating) -> pd.DataFrame:
    """Select a measure's configuration by Kendall's tau-b in cross-validation (Distractors, section
    4.2, Table 9).

    values   one row per fact, one column per configuration, the cheapest first (it wins ties)
    rating   reference per fact: human rating or exposure count

    Return one row per fold: ``fold``, ``configuration`` (selected on the other folds), ``tau`` (on
    this fold), ``training`` (tau on the other folds), ``n``, ``undefined`` (configurations whose
    tau is undefined and counts as 0 in the selection). Raise ProbeError if a value is missing."""
    rating = np.asarray(rating, dtype=float)
    if values.isna().any(axis=None) or not np.isfinite(rating).all():
        lost = int((values.isna().any(axis=1) | ~np.isfinite(rating)).sum())
        said = f"{lost} of {len(values)} facts have no value for some configuration"
        raise ProbeError(f"{said}; keep those that are defined for all")
    if len(values) < 3:
        raise ProbeError(f"3 folds of {len(values)} facts: at least one fact per fold is needed")
    rows, on = [], lambda facts, name: kendall(values[name].to_numpy()[facts], rating[facts])
    for fold, (train, test) in enumerate(split(len(values)), 1):
        taus = pd.Series({c: on(train, c)["tau"] for c in values.columns}, dtype=float)
        best = taus.fillna(0.0).round(9).idxmax()
        there, undefined = on(test, best), int(taus.isna().sum())
        rows.append((fold, best, there["tau"], taus[best], there["n"], undefined))
    columns = ["fold", "configuration", "tau", "training", "n", "undefined"]
    return pd.DataFrame(rows, columns=columns)


def split(n: int, folds: int = 3, seed: int = 42) -> list[tuple[np.ndarray, np.ndarray]]:
    """(training, test) row numbers per fold; they depend on the order of the facts."""
    from sklearn.model_selection import KFold

    return list(KFold(folds, shuffle=True, random_state=seed).split(np.zeros(n)))


def _tested(values: pd.DataFrame, rating, configurations: list) -> list[tuple]:
    """(values of the configuration selected on the other folds, ratings) of each fold."""
    rating, folds = np.asarray(rating, dtype=float), split(len(values), len(configurations))
    tests = zip(configurations, (test for _, test in folds), strict=True)
    return [(values[name].to_numpy()[test], rating[test]) for name, test in tests]


def held_out(values: pd.DataFrame, rating, configurations: list) -> np.ndarray:
    """Kendall's tau-b on each fold with the configuration that ``calibrate`` selected: [folds]."""
    return np.array([kendall(*xy)["tau"] for xy in _tested(values, rating, configurations)])


def kendall_replicates(x, y, times: int = 2000, seed: int = 0) -> np.ndarray:
    """``times`` replicates of tau-b over facts; NaN if a sample leaves x or y constant. With w how
    often a sample holds each fact: tau = w'Sw / sqrt(w'|X|w w'|Y|w), where X and Y [facts, facts]
    hold the signs of all differences and S = X * Y."""
    weight = resample_counts(len(x), times, seed)  # [times, facts]
    x, y = (scipy.stats.rankdata(levelled(v)) for v in (x, y))  # -inf is the lowest rank
    signs = [np.sign(v[:, None] - v[None]) for v in (x, y)]
    form = lambda matrix: ((weight @ matrix) * weight).sum(1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return form(signs[0] * signs[1]) / np.sqrt(form(np.abs(signs[0])) * form(np.abs(signs[1])))


def held_out_replicates(values, rating, configurations: list, times=2000) -> np.ndarray:
    """Replicates of the mean of ``held_out``: facts are resampled within each fold, the selected
    configurations stay. NaN if the tau of a fold is undefined."""
    folds = enumerate(_tested(values, rating, configurations))
    return np.mean([kendall_replicates(*xy, times, k) for k, xy in folds], axis=0)


def threshold(values, positive) -> float:
    """Cut (value >= cut means yes) with the best balanced accuracy, the lowest of equals. NaN
    without positives or without negatives."""
    values, positive = np.asarray(values, dtype=float), np.asarray(positive, dtype=bool)
    if positive.all() or not positive.any():
        return np.nan
    cuts = np.unique(values)
    right = [(values[positive] >= cut).mean() + (values[~positive] < cut).mean() for cut in cuts]
    return float(cuts[int(np.argmax(right))])


def scaling_replicates(values, sizes, kind="linear", times=2000) -> np.ndarray:
    """Replicates over facts of the size at which ``scaling_fit`` of each model's mean, of values
    (facts, models) that are not NaN, reaches 0.9: inf if the line of a sample does not rise,
    NaN if there is none (a mean of 0 or 1 has no logit)."""
    values, x = np.asarray(values, dtype=float), np.log10(np.asarray(sizes, dtype=float))
    weight, there = resample_counts(len(values), times), np.isfinite(values)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        # [times, models]
        y = _scaled(weight @ np.where(there, values, 0.0) / (weight @ there), kind)
        left = x - x.mean()
        slope = (left * (y - y.mean(1, keepdims=True))).sum(1) / (left**2).sum()
        at = 10 ** (x.mean() + (_scaled(REACHED, kind) - y.mean(1)) / slope)
    return np.where(slope <= 0, np.inf, at)
