"""Lab 6: when is a difference real? Correlation, intervals, permutation, cross-validation."""

from functools import partial
from itertools import combinations, product

import numpy as np
import scipy.stats

from probelib import stats
from probelib.course.checks import Check

_X, _Y = [1.0, 2.0, 4.0, 7.0, 11.0], [3.0, 1.0, 2.0, -4.0, -5.0]
_pearson = lambda x, y: stats.pearson(x, y)["r"]
_kendall = lambda x, y: stats.kendall(x, y)["tau"]

pearson = Check(
    "lab6.pearson",
    _pearson,
    [(_X, _Y), ([0, 1, 2, 3], [0, 1, 4, 9]), (_X, list(10 * np.array(_Y) + 3))],
    covariance=lambda x, y: np.cov(x, y, ddof=0)[0, 1],
    cosine=lambda x, y: np.dot(x, y) / np.sqrt(np.dot(x, x) * np.dot(y, y)),
)


def _normal(k, n):
    half = 1.96 * np.sqrt(k / n * (1 - k / n) / n)
    return k / n - half, k / n + half


wilson = Check(
    "lab6.wilson",
    stats.wilson,
    [(35, 77), (1, 10), (0, 20), (50, 50)],
    tolerance=3e-4,  # z = 1.96 and z = 1.959964 both pass
    normal=_normal,
)


def _tau_a(x, y):
    """(P - Q) / the number of all pairs."""
    pairs = combinations(zip(x, y, strict=True), 2)
    return np.mean([np.sign(a - c) * np.sign(b - d) for (a, b), (c, d) in pairs])


kendall = Check(
    "lab6.kendall",
    _kendall,
    [
        ([1, 2, 3, 9], [1, 3, 2, 4]),
        ([1, 1, 0, 0, 0], [0.9, 0.5, 0.5, 0.1, 0.0]),
        ([3, 1, 2, 2, 5], [1, 4, 4, 2, 0]),
        ([1, 1, 0, 0], [1, 1, 0, 1]),  # one pair is tied in both
    ],
    tau_a=_tau_a,
    spearman=lambda x, y: scipy.stats.spearmanr(x, y).statistic,
)


def _percentiles(values, times, rng, low=2.5, high=97.5):
    drawn = rng.choice(np.asarray(values), (times, len(values))).mean(1)
    return tuple(np.percentile(drawn, [low, high]))


_VALUES = np.random.default_rng(7).normal(size=200) * 4
_VALUES -= _VALUES.mean()
_MORE = np.append(_VALUES, 60.0)

bootstrap_interval = Check(
    "lab6.bootstrap_interval",
    _percentiles,
    [(v, 4000, np.random.default_rng(seed)) for seed, v in enumerate((_VALUES, _MORE))],
    tolerance=0.04,  # two seeds differ by a few hundredths here, a 90 % interval by a tenth
    values=lambda values, times, rng: np.percentile(values, [2.5, 97.5]),
    ninety=partial(_percentiles, low=5, high=95),
)


def _sign_flips(d, two_sided=True):
    d = np.asarray(d, float)
    means = np.array([np.dot(s, d) for s in product([1, -1], repeat=len(d))]) / len(d)
    means, seen = (np.abs(means), abs(d.mean())) if two_sided else (means, d.mean())
    return float((means >= seen - 1e-12).mean())


sign_flip_p = Check(
    "lab6.sign_flip_p",
    _sign_flips,
    [([4, 1, 2],), ([3, -1, 2, 5],), ([1, -1],), ([2, 3, 1, 4, 2, 5, 1, 3],)],
    one_sided=partial(_sign_flips, two_sided=False),
    t_test=lambda d: scipy.stats.ttest_1samp(d, 0).pvalue,
)


def _chosen(values, rating, choose_on, report_on):
    taus = [_kendall(column[choose_on], rating[choose_on]) for column in values.T]
    best = int(np.argmax(taus))
    return best, _kendall(values[report_on, best], rating[report_on])


_DRAW = np.random.default_rng(3)
_tables = [(_DRAW.normal(size=(14, 5)), _DRAW.integers(0, 5, 14)) for _ in range(4)]

held_out = Check(
    "lab6.held_out",
    _chosen,
    [(*table, np.arange(0, 9), np.arange(9, 14)) for table in _tables],
    training=lambda v, r, train, test: _chosen(v, r, train, train),
    all=lambda v, r, train, test: _chosen(v, r, slice(None), test),
)
