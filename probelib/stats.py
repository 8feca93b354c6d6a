"""Correlations, calibration, scaling fits, bootstrap intervals, paired tests.

Every score that the kit prints has an interval of this module. A *replicate* is the value of a
statistic on one bootstrap sample; functions with the same ``seed`` and number of facts resample the
same facts, so replicates can be subtracted."""

import warnings
from collections.abc import Callable

import numpy as np
import pandas as pd
import scipy  # loads its modules when they are used

from probelib.errors import ProbeError, unknown

LEVEL = 0.95
SMALL_P = 0.0005  # a smaller p-value would be printed as 0.000


def pearson(x, y) -> dict[str, float]:
    """Pearson correlation: ``r``, two-sided ``p``, ``low`` and ``high`` (95 %, Fisher's z), ``n``.

    Pairs with a NaN are left out and not counted in ``n``. Fewer than 3 pairs or a constant give
    NaN, never 0."""
    x, y = _complete(x, y)
    n = len(x)
    if n < 3 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return dict.fromkeys(("r", "p", "low", "high"), np.nan) | {"n": n}
    result = scipy.stats.pearsonr(x, y)
    low, high = result.confidence_interval(LEVEL) if n > 3 else (np.nan, np.nan)
    return {
        "r": float(result.statistic),
        "p": float(result.pvalue),
        "low": float(low),
        "high": float(high),
        "n": n,
    }


def _complete(*values, known=np.isfinite) -> list[np.ndarray]:
    """The values at the positions where all of them are ``known``."""
    values = [np.asarray(v, dtype=float) for v in values]
    there = known(values).all(axis=0)
    return [v[there] for v in values]


def pearson_over_models(x, y, family) -> dict[str, float]:
    """``pearson`` over models of several families, which are not independent: ``low`` and ``high``
    are the outermost ends of its intervals over all models and without each family in turn, so that
    no family alone can decide a sign.

    family   [models]. NaN ends if fewer than 4 models remain without one of two or more families
    """
    family, found = np.asarray(family), pearson(x, y)
    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    others = [family != one for one in np.unique(family)] if len(np.unique(family)) > 1 else []
    without = [pearson(x[kept], y[kept]) for kept in others]
    low, high = (np.array([r[end] for r in [found, *without]]) for end in ("low", "high"))
    return found | {"low": float(low.min()), "high": float(high.max())}


def partial(x, y, given) -> dict[str, float]:
    """Partial Pearson correlation of x and y given z: that of the residuals of both on z (least
    squares). Keys as in ``pearson``, with n - 3 degrees of freedom for ``p`` and the interval."""
    x, y, z = _complete(x, y, given)
    n, nothing = len(x), dict.fromkeys(("r", "p", "low", "high"), np.nan) | {"n": len(x)}
    if n < 4 or np.ptp(z) == 0:
        return nothing
    design = np.column_stack([np.ones(n), z])
    left = [v - design @ np.linalg.lstsq(design, v, rcond=None)[0] for v in (x, y)]
    if min(np.ptp(v) for v in left) < 1e-12:
        return nothing
    r = float(np.clip(np.corrcoef(*left)[0, 1], -1, 1))
    p = float(2 * scipy.stats.t.sf(abs(r) * np.sqrt((n - 3) / max(1 - r * r, 1e-300)), n - 3))
    wide = scipy.stats.norm.ppf((1 + LEVEL) / 2) / np.sqrt(n - 4) if n > 4 else np.nan
    low, high = np.tanh(np.arctanh(np.clip(r, -1 + 1e-15, 1 - 1e-15)) + np.array([-wide, wide]))
    return {"r": r, "p": p, "low": float(low), "high": float(high), "n": n}


def in_words(result: dict[str, float], of: str = "models") -> str:
    """A correlation as the text of a caption.

    >>> in_words({"r": -0.8466, "p": 0.00051, "low": -0.956, "high": -0.531, "n": 12})
    'r = -0.847 [-0.956, -0.531], p = 0.00051, n = 12 models'
    >>> in_words({"r": -0.9, "p": 1e-06, "low": -0.97, "high": -0.8, "n": 14})
    'r = -0.900 [-0.970, -0.800], p < 0.001, n = 14 models'
    >>> in_words(pearson([1, 2], [2, 1]))
    'undefined for n = 2 models'
    """
    if not np.isfinite(result["r"]):
        return f"undefined for n = {result['n']} {of}"
    p = "p < 0.001" if result["p"] < SMALL_P else f"p = {result['p']:.2g}"
    interval = f" [{result['low']:.3f}, {result['high']:.3f}]" if np.isfinite(result["low"]) else ""
    return f"r = {result['r']:.3f}{interval}, {p}, n = {result['n']} {of}"


def p_value_in_words(p: float) -> str:
    """A p-value as the cell of a table.

    >>> [p_value_in_words(p) for p in (0.0409, 0.0006, 0.0004, float("nan"))]
    ['0.041', '0.001', '<0.001', '–']
    """
    return "–" if np.isnan(p) else "<0.001" if p < SMALL_P else f"{p:.3f}"


def wilson(successes: int, n: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a proportion, as fractions; (NaN, NaN) for n = 0."""
    if n == 0:
        return np.nan, np.nan
    interval = scipy.stats.binomtest(int(successes), int(n)).proportion_ci(LEVEL, method="wilson")
    return float(interval.low), float(interval.high)


def bootstrap(
    statistic: Callable[[np.ndarray], np.ndarray], n: int, times: int = 2000, seed: int = 0
) -> np.ndarray:
    """``times`` bootstrap replicates of a statistic of ``n`` units (facts, relations); NaN for
    fewer than two units.

    statistic  maps indices [times, n] of resampled units to values [times]
    """
    return (
        statistic(np.random.default_rng(seed).integers(0, n, size=(times, n)))
        if n > 1
        else np.full(times, np.nan)
    )


def resample_counts(n: int, times: int, seed: int = 0) -> np.ndarray:
    """How often each of ``n`` facts occurs in each of ``times`` bootstrap samples: [times, n]; NaN
    for fewer than two facts."""
    if n < 2:
        return np.full((times, n), np.nan)
    return np.random.default_rng(seed).multinomial(n, np.full(n, 1 / n), times).astype(float)


def percentile_interval(values: np.ndarray) -> tuple[float, float]:
    """The 95 % percentile interval of bootstrap replicates; NaN replicates are left out.

    (NaN, NaN) if there are none, or if all replicates coincide: a zero-width interval would
    overstate certainty."""
    values = values[np.isfinite(values)]
    if not len(values):
        return np.nan, np.nan
    low, high = np.percentile(values, [50 * (1 - LEVEL), 50 * (1 + LEVEL)])
    return (
        (np.nan, np.nan) if np.isclose(low, high, rtol=0, atol=1e-12) else (float(low), float(high))
    )


def percentile_intervals(replicates: np.ndarray) -> np.ndarray:
    """``percentile_interval`` of every column of replicates [times, columns]: [2, columns], the low
    and the high ends."""
    return np.array([percentile_interval(own) for own in replicates.T]).reshape(-1, 2).T


def bias_corrected_interval(values: np.ndarray, estimate: float) -> tuple[float, float]:
    """Percentile interval of bootstrap replicates, shifted by the bootstrap bias (mean - estimate),
    floored at 0.

    For statistics that resampling inflates, such as the standard deviation of shares of few facts.

    >>> [round(end, 2) for end in bias_corrected_interval(np.array([3.0, 4.0, 5.0]), 1.0)]
    [0.05, 1.95]
    """
    values = values[np.isfinite(values)]
    bias = values.mean() - estimate if len(values) else np.nan
    return percentile_interval(np.maximum(values - bias, 0))


def jackknife_interval(estimate: np.ndarray, left_out: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The 95 % delete-a-group jackknife interval: estimate -+ t s, s^2 = (g - 1) / g sum (left out
    - their mean)^2, with g - 1 degrees of freedom. For statistics of ranks, where the copies in a
    bootstrap sample would be ties.

    estimate   the statistic of all facts: a number or [...]
    left_out   [g, ...]: the statistic without each of g groups of facts of about equal size; NaN for fewer than two groups

    >>> [round(float(end), 2) for end in jackknife_interval(2.0, np.array([2.5, 2.0, 1.5]))]  # the mean of 1, 2, 3
    [-0.48, 4.48]
    """
    g = len(left_out)
    if g < 2:
        return np.full_like(estimate, np.nan), np.full_like(estimate, np.nan)
    error = np.sqrt((g - 1) / g * ((left_out - left_out.mean(0)) ** 2).sum(0))
    half = scipy.stats.t.ppf((1 + LEVEL) / 2, g - 1) * error
    return estimate - half, estimate + half


def mean_interval(values, times: int = 2000, seed: int = 0) -> tuple[float, float]:
    """The 95 % bootstrap interval of a mean over units (facts); NaN values are left out.

    (NaN, NaN) for fewer than two units, or if all values are equal (see ``percentile_interval``).
    """
    values = np.asarray(values, dtype=float)
    values = values[np.isfinite(values)]
    return percentile_interval(bootstrap(lambda i: values[i].mean(1), len(values), times, seed))


def pearson_rows(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Pearson's r of each row of x [times, n] with the same row of y: [times].

    As in ``pearson``, pairs with a NaN are left out; fewer than 3 pairs or a constant give NaN.
    """
    both = np.isfinite(x) & np.isfinite(y)
    n = both.sum(1)
    x, y = (np.where(both, v, 0.0) for v in (x, y))
    x, y = (np.where(both, v - (v.sum(1) / np.maximum(n, 1))[:, None], 0.0) for v in (x, y))
    spread = np.sqrt((x**2).sum(1) * (y**2).sum(1))
    return np.divide(
        (x * y).sum(1), spread, out=np.full(len(n), np.nan), where=(n >= 3) & (spread > 1e-12)
    )


def pearson_replicates(x, y, clusters, times: int = 2000, seed: int = 0) -> np.ndarray:
    """``times`` bootstrap replicates of Pearson's r over clusters (e.g. relations), whose pairs are
    resampled together.

    Pairs with a NaN are left out. NaN for fewer than two clusters, and if a sample leaves x or y
    constant. A replicate is computed from six sums per cluster, however many pairs it has."""
    x, y, number = _complete(x, y, pd.factorize(np.asarray(clusters))[0])
    x, y, number = x - nanmean(x), y - nanmean(y), number.astype(int)
    sums = np.column_stack(
        [np.bincount(number, v) for v in (np.ones(len(x)), x, y, x * x, y * y, x * y)]
    )
    sums = sums[sums[:, 0] > 0]  # of clusters that have pairs
    n, sx, sy, xx, yy, xy = (resample_counts(len(sums), times, seed) @ sums).T
    with np.errstate(invalid="ignore", divide="ignore"):
        x_spread, y_spread = xx - sx**2 / n, yy - sy**2 / n
        varied = (x_spread > 1e-9 * xx) & (y_spread > 1e-9 * yy)  # beyond rounding
        return np.where(varied, (xy - sx * sy / n) / np.sqrt(x_spread * y_spread), np.nan)


def holm(p) -> np.ndarray:
    """Holm-adjusted p-values; NaN stays NaN and does not count as a test.

    >>> holm([0.01, 0.04, 0.03]).round(2).tolist()
    [0.03, 0.06, 0.06]
    """
    p = np.asarray(p, dtype=float)
    order = np.argsort(p)[: int(np.isfinite(p).sum())]  # NaN values come last
    adjusted = np.full(len(p), np.nan)
    adjusted[order] = np.minimum(1, np.maximum.accumulate(p[order] * np.arange(len(order), 0, -1)))
    return adjusted


def mean_band(values, times: int = 1000, seed: int = 0) -> pd.DataFrame:
    """Mean over facts of every column with its 95 % bootstrap interval: ``mean``, ``low``,
    ``high``, ``n``.

    values  (facts, columns); NaN values are left out, ``n`` counts the others
    """
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
    ``gained``, ``p``, ``n``.

    ``p`` is 1.0 if no verdict changed: there is no evidence of a difference.
    """
    first, second = np.asarray(first, dtype=bool), np.asarray(second, dtype=bool)
    lost, gained = int((first & ~second).sum()), int((~first & second).sum())
    p = scipy.stats.binomtest(lost, lost + gained).pvalue if lost + gained else 1.0
    return {"lost": lost, "gained": gained, "p": float(p), "n": len(first)}


def friedman(values) -> float:
    """p-value of Friedman's test (Cochran's Q for binary values) that the columns differ.

    values   [facts, conditions]; rows with a NaN are left out. Fewer than 3 columns or 2 rows give NaN, no difference gives 1.

    >>> round(friedman([[1, 0, 0]] * 4), 4), friedman([[1, 1, 1], [0, 0, 0]]), friedman([[1, 0]] * 4)
    (0.0183, 1.0, nan)
    """
    table = np.asarray(values, dtype=float)
    table = table[np.isfinite(table).all(axis=1)]
    if len(table) < 2 or table.shape[1] < 3:
        return np.nan
    if not np.ptp(table, axis=1).any():
        return 1.0
    return float(scipy.stats.friedmanchisquare(*table.T).pvalue)


def levelled(values, tolerance: float = 1e-5) -> np.ndarray:
    """Values with near ties made equal, before they are ranked: each run of sorted values whose
    gaps are at most ``tolerance`` times their size takes its lowest value. Differences in the last
    bits depend on the processor and decide nothing.

    The size of a value is its absolute value; of probabilities (all values in [0, 1]) the smaller
    of p and 1 - p, so that p and 1 - p are ranked as mirror images. NaN stays NaN, and -inf is the
    lowest value.

    >>> levelled([0.5, 0.5000001, 0.999998, 0.999999, -np.inf]).tolist()
    [0.5, 0.5, 0.999998, 0.999999, -inf]
    """
    values = np.asarray(values, dtype=float)
    flat = values.ravel().copy()
    order = np.argsort(flat, kind="stable")[: int((~np.isnan(flat)).sum())]  # NaN values come last
    ordered = flat[order]
    bounded = len(ordered) > 0 and ordered[0] >= 0 and ordered[-1] <= 1
    size = np.minimum(ordered, 1 - ordered) if bounded else np.abs(ordered)
    with np.errstate(invalid="ignore"):
        gap = np.diff(ordered)  # NaN between two equal infinities
        new = (gap > tolerance * np.minimum(size[1:], size[:-1])) & ~(ordered[1:] == ordered[:-1])
    first = (
        np.maximum.accumulate(np.where(np.r_[True, new], np.arange(len(ordered)), 0))
        if len(ordered)
        else order
    )
    flat[order] = ordered[first]
    return flat.reshape(values.shape)


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

    score, positive   [facts]; scores are ``levelled``. Facts with a NaN score are left out. NaN without positives or negatives
    """
    score, positive = levelled(score), np.asarray(positive, dtype=bool)
    there = ~np.isnan(score)
    score, positive = score[there], positive[there]
    n, m = int(positive.sum()), int((~positive).sum())
    if not n or not m:
        return np.nan
    ranks = scipy.stats.rankdata(score)  # mean ranks, so that ties count half
    return float((ranks[positive].sum() - n * (n + 1) / 2) / (n * m))


def reliability(probability, right, bins: int = 10, units=None) -> pd.DataFrame:
    """The reliability curve over equal-width bins: ``low``, ``high`` (edges), ``n``, ``units``,
    ``probability`` (mean), ``right`` (accuracy). Empty bins are left out. ECE = sum n |probability
    - right| / sum n.

    units   the fact of each case, if several models judge the same facts: an interval must count facts. None: one unit per case
    """
    frame = pd.DataFrame(
        {"probability": np.asarray(probability, float), "right": np.asarray(right, float)}
    )
    frame = frame.assign(unit=range(len(frame)) if units is None else np.asarray(units)).dropna()
    frame["bin"] = np.minimum((frame["probability"] * bins).astype(int), bins - 1)
    table = frame.groupby("bin").agg(
        n=("right", "size"),
        units=("unit", "nunique"),
        probability=("probability", "mean"),
        right=("right", "mean"),
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


def ece_replicates(
    probability, right, times: int = 2000, seed: int = 0, bins: int = 10
) -> np.ndarray:
    """``times`` bootstrap replicates of ``ece`` over facts; both inputs are [facts, models], and a
    fact is resampled with all its models."""
    n = len(probability)
    column = np.minimum((probability * bins).astype(int), bins - 1)
    gap = np.zeros((n, bins))  # of each fact, what it adds to a bin's sum of probability - right
    np.add.at(gap, (np.arange(n)[:, None], column), probability - right)
    return np.abs(resample_counts(n, times, seed) @ gap).sum(1) / (probability.size or np.nan)


def brier(probability, right) -> float:
    """Brier score: mean squared difference of probability and outcome, in [0, 1]; lower is
    better."""
    return float(np.nanmean((np.asarray(probability, float) - np.asarray(right, float)) ** 2))


def scaling_fit(sizes, values, kind: str = "linear", level: float = 0.9) -> dict[str, float]:
    """Least-squares fit of value = a + b log10(size) over models (Distractors, Figure 8).

    sizes   numbers of parameters, one per model
    values  the measure, one per model
    kind    "linear"; or "logit": logit(value) = a + b log10(size), for values in (0, 1)
    level   value at which ``size_at`` is extrapolated (0.9: the paper's N_90)

    Return ``a``; ``b`` with ``b_low`` and ``b_high`` (95 %, t with n - 2 degrees of freedom; NaN
    for n < 3); ``r2`` on the fitted scale; ``size_at`` with ``size_low`` and ``size_high``
    (``_size_interval``; NaN if b <= 0); ``n``."""
    x, y = _complete(np.log10(np.asarray(sizes, dtype=float)), values)
    if kind == "logit" and ((y <= 0) | (y >= 1)).any():
        raise ProbeError(
            "a logit fit needs values strictly between 0 and 1; use kind='linear' or leave the others out"
        )
    y, target = _scaled(y, kind), _scaled(level, kind)
    n = len(x)
    if len(set(x)) < 2:
        names = ("a", "b", "b_low", "b_high", "r2", "size_at", "size_low", "size_high")
        return dict.fromkeys(names, np.nan) | {"n": n}
    fit = scipy.stats.linregress(x, y)
    wide = scipy.stats.t.ppf((1 + LEVEL) / 2, n - 2) * fit.stderr if n > 2 else np.nan
    low, high = _size_interval(x, y, target) if fit.slope > 0 else (np.nan, np.nan)
    return {
        "a": float(fit.intercept),
        "b": float(fit.slope),
        "b_low": float(fit.slope - wide),
        "b_high": float(fit.slope + wide),
        "r2": float(fit.rvalue**2),
        "size_at": _size((target - fit.intercept) / fit.slope) if fit.slope > 0 else np.nan,
        "size_low": low,
        "size_high": high,
        "n": n,
    }


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
    """Fieller's 95 % interval of the size at which the line reaches ``target``; (0, inf) if the
    slope does not differ from 0.

    With d = log10(size) - mean and gap = mean(y) - target, it has all d with
    (gap + slope d)^2 <= t^2 s^2 (1/n + d^2 / sum (x - mean)^2), that is, a d^2 + 2 b d + c <= 0.
    """
    n, fit = len(x), scipy.stats.linregress(x, y)
    if n < 3:
        return np.nan, np.nan
    residuals = y - fit.intercept - fit.slope * x
    scatter = (residuals**2).sum() / (n - 2) * scipy.stats.t.ppf((1 + LEVEL) / 2, n - 2) ** 2
    gap = y.mean() - target
    a, b, c = (
        fit.slope**2 - scatter / ((x - x.mean()) ** 2).sum(),
        fit.slope * gap,
        gap**2 - scatter / n,
    )
    if a <= 0:
        return 0.0, np.inf
    half = np.sqrt(max(b * b - a * c, 0.0))
    low, high = _size(x.mean() + (-b + np.array([-half, half])) / a)
    return float(low), float(high)


def calibrate(values: pd.DataFrame, rating, folds: int = 3, seed: int = 42) -> pd.DataFrame:
    """Select a measure's configuration by Kendall's tau-b in cross-validation (Distractors, section
    4.2, Table 9).

    values   one row per fact, one column per configuration, the cheapest first (it wins ties)
    rating   reference per fact: human rating or exposure count

    Return one row per fold: ``fold``, ``configuration`` (selected on the other folds), ``tau`` (on
    this fold), ``training`` (tau on the other folds), ``n``, ``undefined`` (configurations with
    undefined tau, which count as 0 in the selection). An undefined tau on the fold stays NaN.

    Raises ProbeError if a value is missing: facts that only some measures rate would change the
    folds."""
    rating = np.asarray(rating, dtype=float)
    if values.isna().any(axis=None) or not np.isfinite(rating).all():
        lost = int((values.isna().any(axis=1) | ~np.isfinite(rating)).sum())
        raise ProbeError(
            f"{lost} of {len(values)} facts have no value for some configuration; keep those that are defined for all"
        )
    if len(values) < folds:
        raise ProbeError(
            f"{folds} folds of {len(values)} facts: at least one fact per fold is needed"
        )
    rows, on = [], lambda facts, name: kendall(values[name].to_numpy()[facts], rating[facts])
    for fold, (train, test) in enumerate(split(len(values), folds, seed), 1):
        taus = pd.Series({c: on(train, c)["tau"] for c in values.columns}, dtype=float)
        best = taus.fillna(0.0).round(9).idxmax()
        there, undefined = on(test, best), int(taus.isna().sum())
        rows.append((fold, best, there["tau"], taus[best], there["n"], undefined))
    return pd.DataFrame(
        rows, columns=["fold", "configuration", "tau", "training", "n", "undefined"]
    )


def split(n: int, folds: int = 3, seed: int = 42) -> list[tuple[np.ndarray, np.ndarray]]:
    """(training, test) row numbers per fold; they depend on the order of the facts."""
    from sklearn.model_selection import KFold

    return list(KFold(folds, shuffle=True, random_state=seed).split(np.zeros(n)))


def held_out(values: pd.DataFrame, rating, configurations: list, seed: int = 42) -> np.ndarray:
    """Kendall's tau-b on each fold, (folds,), with the configuration selected on the other folds
    (``calibrate``)."""
    rating = np.asarray(rating, dtype=float)
    folds = zip(configurations, split(len(values), len(configurations), seed), strict=True)
    return np.array(
        [kendall(values[c].to_numpy()[test], rating[test])["tau"] for c, (_, test) in folds]
    )


def kendall_replicates(x, y, times: int = 2000, seed: int = 0) -> np.ndarray:
    """``times`` bootstrap replicates of tau-b over facts; NaN if a sample leaves x or y
    constant."""
    return kendall_weighted(x, y, resample_counts(len(x), times, seed))


def kendall_weighted(x, y, weight: np.ndarray) -> np.ndarray:
    """tau-b of every sample of the facts, [samples]; ``weight`` [samples, facts]: how often a
    sample holds each fact.

    With w the weights of a sample: tau = w'Sw / sqrt(w'|X|w w'|Y|w), where X and Y [facts, facts]
    hold the signs of all differences and S = X * Y. NaN if the sample leaves x or y constant.

    >>> kendall_weighted([1, 2, 3], [1, 3, 2], np.array([[1.0, 1, 1], [1, 1, 0]])).round(3).tolist()
    [0.333, 1.0]
    """
    x, y = (scipy.stats.rankdata(levelled(v)) for v in (x, y))  # -inf is the lowest rank
    signs = [np.sign(v[:, None] - v[None]) for v in (x, y)]
    form = lambda matrix: ((weight @ matrix) * weight).sum(1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return form(signs[0] * signs[1]) / np.sqrt(form(np.abs(signs[0])) * form(np.abs(signs[1])))


def held_out_replicates(
    values: pd.DataFrame, rating, configurations: list, times=2000, seed=42
) -> np.ndarray:
    """Bootstrap replicates of the mean of ``held_out``: facts are resampled within each fold, the
    selected configurations stay. NaN if the tau of a fold is undefined."""
    rating = np.asarray(rating, dtype=float)
    folds = enumerate(
        zip(configurations, split(len(values), len(configurations), seed), strict=True)
    )
    replicates = [
        kendall_replicates(values[c].to_numpy()[test], rating[test], times, k)
        for k, (c, (_, test)) in folds
    ]
    return np.mean(replicates, axis=0)


def threshold(values, positive) -> float:
    """Cut between two values (value >= cut means yes) with the best balanced accuracy; the lowest
    of equals. NaN without positives or without negatives."""
    values, positive = np.asarray(values, dtype=float), np.asarray(positive, dtype=bool)
    if positive.all() or not positive.any():
        return np.nan
    cuts = np.unique(values)
    right = [(values[positive] >= cut).mean() + (values[~positive] < cut).mean() for cut in cuts]
    return float(cuts[int(np.argmax(right))])


def scaling_replicates(
    values, sizes, kind: str = "linear", level: float = 0.9, times: int = 2000, seed: int = 0
) -> np.ndarray:
    """Bootstrap replicates over facts of the size at which ``scaling_fit`` reaches ``level``: inf
    if the line of a sample does not rise, NaN if there is none (a mean of 0 or 1 has no logit).

    values  (facts, models); the line is fitted to each model's mean over the facts that are defined
    for it, as in ``mean_band``"""
    values, x = np.asarray(values, dtype=float), np.log10(np.asarray(sizes, dtype=float))
    weight, there = resample_counts(len(values), times, seed), np.isfinite(values)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        y = _scaled(
            weight @ np.where(there, values, 0.0) / (weight @ there), kind
        )  # [times, models]
        slope = ((x - x.mean()) * (y - y.mean(1, keepdims=True))).sum(1) / (
            (x - x.mean()) ** 2
        ).sum()
        at = 10 ** (x.mean() + (_scaled(level, kind) - y.mean(1)) / slope)
    return np.where(slope <= 0, np.inf, at)
