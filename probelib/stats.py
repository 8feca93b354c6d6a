"""Correlation, Kendall-tau calibration, scaling fits, intervals. Every score the kit prints has one of these beside it."""

import warnings
from collections.abc import Callable

import numpy as np
import pandas as pd
import scipy.special
import scipy.stats

from probelib.errors import ProbeError, unknown

LEVEL = 0.95


def pearson(x, y) -> dict[str, float]:
    """Pearson correlation: ``r``, two-sided ``p``, ``low`` and ``high`` (95 %, Fisher's z), ``n``.

    Pairs with a NaN are left out and not counted in ``n``; fewer than 3 pairs or a constant give NaN, never 0.
    """
    x, y = (np.asarray(v, dtype=float) for v in (x, y))
    both = np.isfinite(x) & np.isfinite(y)
    x, y, n = x[both], y[both], int(both.sum())
    if n < 3 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return {"r": np.nan, "p": np.nan, "low": np.nan, "high": np.nan, "n": n}
    result = scipy.stats.pearsonr(x, y)
    low, high = result.confidence_interval(LEVEL) if n > 3 else (np.nan, np.nan)
    return {"r": float(result.statistic), "p": float(result.pvalue), "low": float(low), "high": float(high), "n": n}


def partial(x, y, given) -> dict[str, float]:
    """Pearson correlation of what a third quantity leaves unexplained of x and of y (least squares); as ``pearson``, with
    n - 3 degrees of freedom for ``p`` and the interval."""
    x, y, z = (np.asarray(v, dtype=float) for v in (x, y, given))
    there = np.isfinite(x) & np.isfinite(y) & np.isfinite(z)
    x, y, z = x[there], y[there], z[there]
    n, nothing = len(x), {"r": np.nan, "p": np.nan, "low": np.nan, "high": np.nan, "n": len(x)}
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
    >>> in_words(pearson([1, 2], [2, 1]))
    'undefined for n = 2 models'
    """
    if not np.isfinite(result["r"]):
        return f"undefined for n = {result['n']} {of}"
    interval = f" [{result['low']:.3f}, {result['high']:.3f}]" if np.isfinite(result["low"]) else ""
    return f"r = {result['r']:.3f}{interval}, p = {result['p']:.2g}, n = {result['n']} {of}"


def wilson(successes: int, n: int) -> tuple[float, float]:
    """Wilson's 95 % interval for a share, as fractions; (NaN, NaN) for n = 0."""
    if n == 0:
        return np.nan, np.nan
    interval = scipy.stats.binomtest(int(successes), int(n)).proportion_ci(LEVEL, method="wilson")
    return float(interval.low), float(interval.high)


def bootstrap(statistic: Callable[[np.ndarray], np.ndarray], n: int, times: int = 2000, seed: int = 0) -> np.ndarray:
    """``times`` bootstrap values of a statistic of ``n`` units (facts, relations); NaN for fewer than two, which show no spread.

    statistic  takes indices [times, n] of drawn units and gives [times] values
    """
    return statistic(np.random.default_rng(seed).integers(0, n, size=(times, n))) if n > 1 else np.full(times, np.nan)


def drawn(n: int, times: int, seed: int = 0) -> np.ndarray:
    """How often each of ``n`` facts is drawn, in ``times`` bootstrap samples: [times, n]; NaN for fewer than two, which show no
    spread. The same seed draws the same facts."""
    if n < 2:
        return np.full((times, n), np.nan)
    return np.random.default_rng(seed).multinomial(n, np.full(n, 1 / n), times).astype(float)


def percentile_interval(values: np.ndarray) -> tuple[float, float]:
    """The 95 % percentile interval of bootstrap values, NaN values (a resample without any case) left out; (NaN, NaN) for none,
    and where no draw differs but for rounding, which is not to be certain."""
    values = values[np.isfinite(values)]
    if not len(values):
        return np.nan, np.nan
    low, high = np.percentile(values, [50 * (1 - LEVEL), 50 * (1 + LEVEL)])
    return (np.nan, np.nan) if np.isclose(low, high, rtol=0, atol=1e-12) else (float(low), float(high))


def moved_interval(values: np.ndarray, estimate: float) -> tuple[float, float]:
    """The percentile interval of bootstrap values moved by their bias, their mean less the estimate: for what resampling makes
    larger, as a standard deviation of shares of few facts. Not below 0.

    >>> [round(end, 2) for end in moved_interval(np.array([3.0, 4.0, 5.0]), 1.0)]
    [0.05, 1.95]
    """
    values = values[np.isfinite(values)]
    bias = values.mean() - estimate if len(values) else np.nan
    return percentile_interval(np.maximum(values - bias, 0))


def mean_interval(values, times: int = 2000, seed: int = 0) -> tuple[float, float]:
    """The 95 % bootstrap interval of a mean over units (facts), NaN values left out; (NaN, NaN) for fewer than two, and where
    all are the same, as in ``percentile_interval``."""
    values = np.asarray(values, dtype=float)
    values = values[np.isfinite(values)]
    if not len(values):
        return np.nan, np.nan
    return percentile_interval(bootstrap(lambda i: values[i].mean(1), len(values), times, seed))


def pearson_rows(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Pearson's r of each row of x [times, n] with the same row of y: [times]. As in ``pearson``, pairs with a NaN are left
    out, and fewer than 3 pairs or a constant give NaN."""
    both = np.isfinite(x) & np.isfinite(y)
    n = both.sum(1)
    x, y = (np.where(both, v, 0.0) for v in (x, y))
    x, y = (np.where(both, v - (v.sum(1) / np.maximum(n, 1))[:, None], 0.0) for v in (x, y))
    spread = np.sqrt((x**2).sum(1) * (y**2).sum(1))
    return np.divide((x * y).sum(1), spread, out=np.full(len(n), np.nan), where=(n >= 3) & (spread > 1e-12))


def holm(p) -> np.ndarray:
    """Holm's adjustment of several p-values; a NaN stays NaN and is no test.

    >>> holm([0.01, 0.04, 0.03]).round(2).tolist()
    [0.03, 0.06, 0.06]
    """
    p = np.asarray(p, dtype=float)
    order = np.argsort(p)[: int(np.isfinite(p).sum())]  # NaN values come last
    adjusted = np.full(len(p), np.nan)
    adjusted[order] = np.minimum(1, np.maximum.accumulate(p[order] * np.arange(len(order), 0, -1)))
    return adjusted


def mean_band(values, times: int = 1000, seed: int = 0) -> pd.DataFrame:
    """The mean over facts of every column, with its 95 % bootstrap interval: ``mean``, ``low``, ``high``, ``n`` (facts that are
    defined there; the others are left out, and counted by their absence from ``n``).

    values  (facts, columns)
    """
    table = np.asarray(values, dtype=float)
    there = np.isfinite(table)
    weight = drawn(len(table), times, seed)
    with np.errstate(invalid="ignore"):
        draws = weight @ np.where(there, table, 0.0) / (weight @ there)  # [times, columns]
    mean = np.where(there, table, 0.0).sum(0) / np.where(there.any(0), there.sum(0), np.nan)
    index = values.columns if isinstance(values, pd.DataFrame) else None
    low, high = np.array([percentile_interval(own) for own in draws.T]).reshape(-1, 2).T
    return pd.DataFrame({"mean": mean, "low": low, "high": high, "n": there.sum(0)}, index=index)


def nanmean(values, axis: int | None = None):
    """numpy's, without a warning where there is nothing to average."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return np.nanmean(values, axis=axis)


def mcnemar(first, second) -> dict[str, float]:
    """McNemar's exact test of two verdicts on the same facts: ``lost`` (right, then wrong), ``gained``, ``p``, ``n``.

    ``p`` is 1.0 where nothing changed: there is no evidence of a difference.
    """
    first, second = np.asarray(first, dtype=bool), np.asarray(second, dtype=bool)
    lost, gained = int((first & ~second).sum()), int((~first & second).sum())
    p = scipy.stats.binomtest(lost, lost + gained).pvalue if lost + gained else 1.0
    return {"lost": lost, "gained": gained, "p": float(p), "n": len(first)}


def kendall(x, y) -> dict[str, float]:
    """Kendall's tau-b: ``tau``, two-sided ``p``, ``n`` (pairs without a NaN).

    tau-b = (P - Q) / sqrt((P + Q + Tx)(P + Q + Ty)); NaN where x or y is constant or fewer than 2 facts are left. Of a
    binary x it is the phi coefficient (if y is binary, too): do not compare it with the tau of a continuous one.

    >>> round(kendall([1, 1, 0, 0, 0], [.9, .5, .5, .1, 0])["tau"], 6)
    0.680414
    """
    x, y = (np.asarray(v, dtype=float) for v in (x, y))
    both = np.isfinite(x) & np.isfinite(y)
    x, y, n = x[both], y[both], int(both.sum())
    if n < 2 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return {"tau": np.nan, "p": np.nan, "n": n}
    result = scipy.stats.kendalltau(x, y)
    return {"tau": float(result.statistic), "p": float(result.pvalue), "n": n}


def auc(score, positive) -> float:
    """Area under the ROC curve: P(score of a positive > score of a negative), ties counted half. NaN without both kinds."""
    score, positive = np.asarray(score, dtype=float), np.asarray(positive, dtype=bool)
    there = np.isfinite(score)
    score, positive = score[there], positive[there]
    n, m = int(positive.sum()), int((~positive).sum())
    if not n or not m:
        return np.nan
    ranks = scipy.stats.rankdata(score)  # mean ranks, so that ties count half
    return float((ranks[positive].sum() - n * (n + 1) / 2) / (n * m))


def auc_draws(score, positive, times: int = 2000, seed: int = 0) -> np.ndarray:
    """``times`` bootstrap values of ``auc`` over facts; NaN where a draw has facts of one kind only. The same seed draws the
    same facts as ``kendall_draws``."""
    score, positive = np.asarray(score, dtype=float), np.asarray(positive, dtype=bool)
    weight = drawn(len(score), times, seed)
    first, second = score[positive][:, None], score[~positive][None]
    wins = (first > second) + 0.5 * (first == second)  # [positives, negatives]
    won = ((weight[:, positive] @ wins) * weight[:, ~positive]).sum(1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return won / (weight[:, positive].sum(1) * weight[:, ~positive].sum(1))


def reliability(probability, right, bins: int = 10, units=None) -> pd.DataFrame:
    """The reliability curve over equal-width bins: ``low``, ``high`` (of the bin), ``n``, ``units``, ``probability`` (mean),
    ``right`` (share). Empty bins are left out. ECE = sum n |probability - right| / sum n.

    units   what each case belongs to (a fact, asked of several models): an interval counts these. None: each case is its own
    """
    frame = pd.DataFrame({"probability": np.asarray(probability, float), "right": np.asarray(right, float)})
    frame = frame.assign(unit=range(len(frame)) if units is None else np.asarray(units)).dropna()
    frame["bin"] = np.minimum((frame["probability"] * bins).astype(int), bins - 1)
    table = frame.groupby("bin").agg(
        n=("right", "size"), units=("unit", "nunique"), probability=("probability", "mean"), right=("right", "mean")
    )
    table.insert(0, "high", (table.index + 1) / bins)
    table.insert(0, "low", table.index / bins)
    return table.reset_index(drop=True)


def ece(probability, right, bins: int = 10) -> float:
    """Expected calibration error: mean over the cases of |confidence - accuracy| of their bin, in [0, 1]."""
    table = reliability(probability, right, bins)
    return (
        float((table["n"] * (table["probability"] - table["right"]).abs()).sum() / table["n"].sum())
        if len(table)
        else np.nan
    )


def ece_draws(
    probability: np.ndarray, right: np.ndarray, times: int = 2000, seed: int = 0, bins: int = 10
) -> np.ndarray:
    """``times`` bootstrap values of ``ece`` over facts, all values of a fact drawn together: both inputs [facts, models]. The
    same seed draws the same facts as ``kendall_draws``."""
    n = len(probability)
    column = np.minimum((probability * bins).astype(int), bins - 1)
    gap = np.zeros((n, bins))  # of each fact, what it adds to a bin's sum of probability - right
    np.add.at(gap, (np.arange(n)[:, None], column), probability - right)
    return np.abs(drawn(n, times, seed) @ gap).sum(1) / (probability.size or np.nan)


def brier(probability, right) -> float:
    """Brier score: mean squared difference of probability and outcome, in [0, 1]; lower is better."""
    return float(np.nanmean((np.asarray(probability, float) - np.asarray(right, float)) ** 2))


def scaling_fit(sizes, values, kind: str = "linear", level: float = 0.9) -> dict[str, float]:
    """Fits value = a + b log10(size) over models by least squares.

    sizes   parameters; values of the measure, one a model
    kind    "linear"; or "logit": logit(value) = a + b log10(size), for values in (0, 1)
    level   the value at which ``size_at`` reads the extrapolated size (Distractors, figure 8: N_90)

    returns ``a``, ``b`` and ``b_low``, ``b_high`` (95 %, t with n - 2 degrees of freedom; NaN for n < 3), ``r2`` (on the
    fitted scale), ``size_at`` with ``size_low``, ``size_high`` (see ``_size_interval``; NaN for a line that does not rise), ``n``
    """
    x, y = np.log10(np.asarray(sizes, dtype=float)), np.asarray(values, dtype=float)
    there = np.isfinite(x) & np.isfinite(y)
    x, y = x[there], y[there]
    if kind == "logit" and ((y <= 0) | (y >= 1)).any():
        raise ProbeError(
            "a logit fit takes values between 0 and 1, both excluded; fit 'linear' or leave the others out"
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
    """Values on the scale of a fit."""
    if kind not in ("linear", "logit"):
        raise unknown("kind of fit", kind, ["linear", "logit"])
    return scipy.special.logit(values) if kind == "logit" else values


def _size(log10) -> np.ndarray:
    """10 to that; inf where it is too large for a float."""
    with np.errstate(over="ignore"):
        return np.power(10.0, log10)


def _size_interval(x: np.ndarray, y: np.ndarray, target: float) -> tuple[float, float]:
    """Fieller's 95 % interval of the size at which the line reaches ``target``: all sizes whose prediction does not differ
    from it. (0, inf) where the slope does not differ from 0: then the data do not bound the size.

    With d = log10(size) - mean and gap = mean(y) - target: (gap + slope d)^2 <= t^2 s^2 (1/n + d^2 / sum (x - mean)^2), which is
    a d^2 + 2 b d + c <= 0.
    """
    n, fit = len(x), scipy.stats.linregress(x, y)
    if n < 3:
        return np.nan, np.nan
    scatter = (
        ((y - fit.intercept - fit.slope * x) ** 2).sum() / (n - 2) * scipy.stats.t.ppf((1 + LEVEL) / 2, n - 2) ** 2
    )
    gap = y.mean() - target
    a, b, c = fit.slope**2 - scatter / ((x - x.mean()) ** 2).sum(), fit.slope * gap, gap**2 - scatter / n
    if a <= 0:
        return 0.0, np.inf
    half = np.sqrt(max(b * b - a * c, 0.0))
    low, high = _size(x.mean() + (-b + np.array([-half, half])) / a)
    return float(low), float(high)


def calibrate(values: pd.DataFrame, rating, folds: int = 3, seed: int = 42) -> pd.DataFrame:
    """Chooses a measure's configuration by Kendall's tau-b in cross-validation (Distractors, section 4.2, table 9).

    values   one row a fact, one column a configuration, the cheapest first: of several with the same tau the first is taken
    rating   of each fact (a human's, or its known number of statements)
    returns  one row a fold: ``fold``, ``configuration`` (chosen on the other folds), ``tau`` (on this fold), ``training``
             (tau there), ``n``. A configuration whose tau is undefined counts as 0 in the choice, and ``undefined`` counts
             them; an undefined tau on the fold itself stays NaN.

    Every configuration must be defined on every fact: a fact that only some measures rate would change the folds (D16).
    """
    rating = np.asarray(rating, dtype=float)
    if values.isna().any(axis=None) or not np.isfinite(rating).all():
        lost = int((values.isna().any(axis=1) | ~np.isfinite(rating)).sum())
        raise ProbeError(
            f"{lost} of {len(values)} facts have no value under some configuration; take those defined under all"
        )
    if len(values) < folds:
        raise ProbeError(f"{folds} folds of {len(values)} facts: at least one fact a fold is needed")
    rows = []
    for fold, (train, test) in enumerate(split(len(values), folds, seed), 1):
        taus = pd.Series(
            {c: kendall(values[c].to_numpy()[train], rating[train])["tau"] for c in values.columns}, dtype=float
        )
        best = taus.fillna(0.0).idxmax()
        there = kendall(values[best].to_numpy()[test], rating[test])
        rows.append(
            {
                "fold": fold,
                "configuration": best,
                "tau": there["tau"],
                "training": taus[best],
                "n": there["n"],
                "undefined": int(taus.isna().sum()),
            }
        )
    return pd.DataFrame(rows)


def split(n: int, folds: int = 3, seed: int = 42) -> list[tuple[np.ndarray, np.ndarray]]:
    """(training, test) row numbers of every fold; the order of the facts matters."""
    from sklearn.model_selection import KFold

    return list(KFold(folds, shuffle=True, random_state=seed).split(np.zeros(n)))


def held_out(values: pd.DataFrame, rating, configurations: list, seed: int = 42) -> np.ndarray:
    """Kendall's tau-b on every fold, (folds,), with the configuration that was chosen for it (``calibrate``)."""
    rating = np.asarray(rating, dtype=float)
    tests = [test for _, test in split(len(values), len(configurations), seed)]
    return np.array(
        [kendall(values[c].to_numpy()[t], rating[t])["tau"] for c, t in zip(configurations, tests, strict=True)]
    )


def kendall_draws(x, y, times: int = 2000, seed: int = 0) -> np.ndarray:
    """``times`` bootstrap values of tau-b over facts; NaN where a draw leaves x or y constant. The same seed draws the same
    facts, so the difference of two measures can be taken draw by draw.

    With w the number of times that each fact was drawn: tau = w'Sw / sqrt(w'|X|w w'|Y|w), where X and Y hold the signs of all
    differences and S = X * Y.
    """
    x, y = (np.asarray(v, dtype=float) for v in (x, y))
    signs, weight = [np.sign(v[:, None] - v[None]) for v in (x, y)], drawn(len(x), times, seed)
    form = lambda matrix: ((weight @ matrix) * weight).sum(1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return form(signs[0] * signs[1]) / np.sqrt(form(np.abs(signs[0])) * form(np.abs(signs[1])))


def held_out_draws(values: pd.DataFrame, rating, configurations: list, times: int = 2000, seed: int = 42) -> np.ndarray:
    """Bootstrap values of the mean of ``held_out``, facts drawn anew within each fold; the choice stays as it was made. NaN
    where the tau of a fold is undefined, as the mean itself is."""
    rating = np.asarray(rating, dtype=float)
    folds = enumerate(zip(configurations, split(len(values), len(configurations), seed), strict=True))
    draws = [kendall_draws(values[c].to_numpy()[test], rating[test], times, k) for k, (c, (_, test)) in folds]
    return np.mean(draws, axis=0)


def threshold(values, positive) -> float:
    """The cut between two values (value >= cut means yes) with the best mean of the shares of positives and of negatives told
    right; of equals the lowest. NaN without both kinds."""
    values, positive = np.asarray(values, dtype=float), np.asarray(positive, dtype=bool)
    if positive.all() or not positive.any():
        return np.nan
    cuts = np.unique(values)
    right = [(values[positive] >= cut).mean() + (values[~positive] < cut).mean() for cut in cuts]
    return float(cuts[int(np.argmax(right))])


def scaling_draws(
    values, sizes, kind: str = "linear", level: float = 0.9, times: int = 2000, seed: int = 0
) -> np.ndarray:
    """Bootstrap values, over facts, of the size at which the fit of ``scaling_fit`` reaches ``level``; inf where the drawn
    facts give a line that does not rise, NaN where they give none (a mean of 0 or 1 has no logit).

    values  (facts, models): the measure of every fact; its mean over the facts that the model defines is fitted, as in
            ``mean_band``
    """
    values, x = np.asarray(values, dtype=float), np.log10(np.asarray(sizes, dtype=float))
    weight, there = drawn(len(values), times, seed), np.isfinite(values)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        y = _scaled(weight @ np.where(there, values, 0.0) / (weight @ there), kind)  # [times, models]
        slope = ((x - x.mean()) * (y - y.mean(1, keepdims=True))).sum(1) / ((x - x.mean()) ** 2).sum()
        at = 10 ** (x.mean() + (_scaled(level, kind) - y.mean(1)) / slope)
    return np.where(slope <= 0, np.inf, at)
