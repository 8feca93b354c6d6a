"""Lab 6: when is a difference real? Correlation, intervals, permutation, cross-validation."""

from itertools import combinations

import numpy as np
import scipy.stats

from probelib import stats
from probelib.course.checks import Check, exercise

pearson = Check(
    "lab6.pearson",
    lambda x, y: stats.pearson(x, y)["r"],
    covariance=lambda x, y: np.cov(x, y, ddof=0)[0, 1],
    cosine=lambda x, y: np.dot(x, y) / np.sqrt(np.dot(x, x) * np.dot(y, y)),
)

wilson = Check(
    "lab6.wilson",
    stats.wilson,
    normal=lambda k, n: k / n + np.array([-1.96, 1.96]) * np.sqrt(k / n * (1 - k / n) / n),
)


def _tau_a(x, y):
    """(P - Q) / the number of all pairs."""
    pairs = combinations(zip(x, y, strict=True), 2)
    return np.mean([np.sign(a - c) * np.sign(b - d) for (a, b), (c, d) in pairs])


kendall = Check(
    "lab6.kendall",
    lambda x, y: stats.kendall(x, y)["tau"],
    tau_a=_tau_a,
    spearman=lambda x, y: scipy.stats.spearmanr(x, y).statistic,
)

_VALUES = np.random.default_rng(7).normal(size=200) * 4
_VALUES -= _VALUES.mean()
_MORE = np.append(_VALUES, 60.0)


@exercise(
    "lab6.bootstrap_interval",
    cases=[(v, 4000, np.random.default_rng(seed)) for seed, v in enumerate((_VALUES, _MORE))],
    values=lambda values, times, rng: np.percentile(values, [2.5, 97.5]),
    ninety={"low": 5, "high": 95},
)
def bootstrap_interval(values, times, rng, low=2.5, high=97.5):
    drawn = rng.choice(np.asarray(values), (times, len(values))).mean(1)
    return tuple(np.percentile(drawn, [low, high]))


@exercise(
    "lab6.sign_flip_p",
    one_sided={"alternative": "greater"},
    t_test=lambda d: scipy.stats.ttest_1samp(d, 0).pvalue,
)
def sign_flip_p(d, **options):
    """Of one sample, SciPy's permutation test flips the signs, here in all 2^n ways."""
    how = {"permutation_type": "samples", "vectorized": True} | options
    return scipy.stats.permutation_test((d,), np.mean, **how).pvalue


_DRAW = np.random.default_rng(3)
_tables = [(_DRAW.normal(size=(14, 5)), _DRAW.integers(0, 5, 14)) for _ in range(4)]


@exercise(
    "lab6.held_out",
    cases=[(*table, np.arange(0, 9), np.arange(9, 14)) for table in _tables],
    training=lambda v, r, train, test: held_out.right(v, r, train, train),
    all=lambda v, r, train, test: held_out.right(v, r, slice(None), test),
)
def held_out(values, rating, choose_on, report_on):
    taus = [kendall.right(column[choose_on], rating[choose_on]) for column in values.T]
    best = int(np.argmax(taus))
    return best, kendall.right(values[report_on, best], rating[report_on])
