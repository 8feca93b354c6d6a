"""Lab 6: when is a difference real? Correlation, intervals, permutation, cross-validation."""

from functools import partial
from itertools import combinations, product

import numpy as np
import pandas as pd
import scipy.stats

from probelib import stats
from probelib.course.checks import Check
from probelib.errors import ProbeError


def require_two(model_names: list[str]) -> None:
    """Raise ProbeError unless two different models are given."""
    if len(model_names) != 2 or len(set(model_names)) != 2:
        such = "such as atlas-neox-1.2m and atlas-neox-2.4m"
        raise ProbeError(f"model_names={model_names}: give two different models, {such}")


_X, _Y = [1.0, 2.0, 4.0, 7.0, 11.0], [3.0, 1.0, 2.0, -4.0, -5.0]


_covariance = lambda x, y: np.cov(x, y, ddof=0)[0, 1]
_mixed = lambda x, y: np.cov(x, y)[0, 1] / np.std(x) / np.std(y)
_cosine = lambda x, y: np.dot(x, y) / np.sqrt(np.dot(x, x) * np.dot(y, y))

pearson = Check(
    right=lambda x, y: stats.pearson(x, y)["r"],
    cases=[(_X, _Y), ([0, 1, 2, 3], [0, 1, 4, 9]), (_X, list(10 * np.array(_Y) + 3))],
    mistakes={
        "this is the covariance: divide by both standard deviations": _covariance,
        "numerator and denominator divide by different numbers: n in one and n - 1 in the other": _mixed,
        "the means have to be subtracted first": _cosine,
        "this is Spearman's coefficient: it is of ranks": lambda x, y: scipy.stats.spearmanr(x, y).statistic,
        "this is r squared, and its sign is lost": lambda x, y: stats.pearson(x, y)["r"] ** 2,
    },
    look="subtract the means, then sum(xy) / sqrt(sum(xx) sum(yy))",
)


def _normal(k: int, n: int) -> tuple[float, float]:
    p, z = k / n, scipy.stats.norm.ppf(0.975)
    half = z * np.sqrt(p * (1 - p) / n)
    return p - half, p + half


def _wilson(k: int, n: int, level: float = 0.975, divided: bool = True) -> tuple[float, float]:
    p, z = k / n, scipy.stats.norm.ppf(level)
    middle, half = p + z * z / (2 * n), z * np.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    below = 1 + z * z / n if divided else 1
    return (middle - half) / below, (middle + half) / below


wilson = Check(
    right=stats.wilson,
    cases=[(35, 77), (1, 10), (0, 20), (50, 50)],
    mistakes={
        "this is the normal interval p ± z sqrt(p(1-p)/n): it has no width at 0 and 1, and can leave [0, 1]": _normal,
        "this is a 90 % interval: z is 1.96 for 95 %": partial(_wilson, level=0.95),
        "the denominator 1 + z²/n is missing": partial(_wilson, divided=False),
        "these are percentages: fractions are expected": lambda k, n: tuple(100 * v for v in stats.wilson(k, n)),
    },
    look="(p + z²/2n ± z sqrt(p(1-p)/n + z²/4n²)) / (1 + z²/n), with z = 1.96",
    tolerance=3e-4,  # z = 1.96 and z = 1.959964 both pass
)


def _pairs(x, y) -> tuple[int, int, int]:
    """Numbers of concordant pairs, of discordant pairs, and of all pairs."""
    x, y = np.asarray(x, float), np.asarray(y, float)
    at = np.triu_indices(len(x), 1)
    sign = np.sign(x[at[0]] - x[at[1]]) * np.sign(y[at[0]] - y[at[1]])
    return int((sign > 0).sum()), int((sign < 0).sum()), len(sign)


def _tau_a(x, y) -> float:
    p, q, n = _pairs(x, y)
    return (p - q) / n


def _gamma(x, y) -> float:
    p, q, _ = _pairs(x, y)
    return (p - q) / (p + q)


def _tau_all_ties(x, y) -> float:
    p, q, n = _pairs(x, y)
    tied = [sum(a == b for a, b in combinations(np.asarray(values).tolist(), 2)) for values in (x, y)]
    return (p - q) / np.sqrt((p + q + tied[0]) * (p + q + tied[1]))


_twice = lambda x, y: 2 * stats.kendall(x, y)["tau"]

kendall = Check(
    right=lambda x, y: stats.kendall(x, y)["tau"],
    cases=[
        ([1, 2, 3, 9], [1, 3, 2, 4]),
        ([1, 1, 0, 0, 0], [0.9, 0.5, 0.5, 0.1, 0.0]),
        ([3, 1, 2, 2, 5], [1, 4, 4, 2, 0]),
        ([1, 1, 0, 0], [1, 1, 0, 1]),  # one pair is tied in both
    ],
    mistakes={
        "this is tau-a, which divides by all pairs: with ties it can never reach 1": _tau_a,
        "a pair that is tied in both lists counts in neither Tx nor Ty": _tau_all_ties,
        "this is Goodman and Kruskal's gamma: it leaves the tied pairs out altogether": _gamma,
        "this is Pearson's r: only the order of the values counts": lambda x, y: stats.pearson(x, y)["r"],
        "this is Spearman's coefficient": lambda x, y: scipy.stats.spearmanr(x, y).statistic,
        "every pair is counted twice in the numerator or in the denominator, not in both": _twice,
    },
    look="P - Q over the root of (P + Q + Tx)(P + Q + Ty): Tx counts the pairs tied only in x, Ty those tied only in y",
)


def _percentiles(values, times, rng, low=2.5, high=97.5) -> tuple[float, float]:
    values = np.asarray(values)
    drawn = rng.choice(values, (times, len(values))).mean(1)
    return tuple(np.percentile(drawn, [low, high]))


_VALUES = np.random.default_rng(7).normal(size=200) * 4
_VALUES -= _VALUES.mean()

bootstrap_interval = Check(
    right=_percentiles,
    cases=[(_VALUES, 4000, np.random.default_rng(0)), (np.append(_VALUES, 60.0), 4000, np.random.default_rng(1))],
    mistakes={
        "these are percentiles of the values: resample the values, and take the percentiles of the means": (
            lambda values, times, rng: np.percentile(values, [2.5, 97.5])
        ),
        "sampling without replacement gives the same mean each time": lambda values, times, rng: [np.mean(values)] * 2,
        "this is a 90 % interval: 2.5 % are left out on each side": partial(_percentiles, low=5, high=95),
        "this is the mean ± one standard error, about 68 %": lambda values, times, rng: (
            np.mean(values) + np.array([-1, 1]) * np.std(values) / np.sqrt(len(values))
        ),
    },
    look="`times` times: sample len(values) values with replacement, and take their mean; then the 2.5 and 97.5 percentiles",
    tolerance=0.04,  # two bootstraps with different seeds differ by a few hundredths here, a 90 % interval by a tenth
)


def _sign_flips(d, two_sided: bool = True, strict: bool = False) -> float:
    d = np.asarray(d, float)
    means = np.array([np.dot(s, d) for s in product([1, -1], repeat=len(d))]) / len(d)
    means, seen = (np.abs(means), abs(d.mean())) if two_sided else (means, d.mean())
    return float((means > seen + 1e-12).mean() if strict else (means >= seen - 1e-12).mean())


_sign_test = lambda d: scipy.stats.binomtest(int((np.asarray(d) > 0).sum()), len(d)).pvalue

sign_flip_p = Check(
    right=_sign_flips,
    cases=[([4, 1, 2],), ([3, -1, 2, 5],), ([1, -1],), ([2, 3, 1, 4, 2, 5, 1, 3],)],
    mistakes={
        "this is one-sided: a difference as large in the other direction would have surprised you as much": (
            partial(_sign_flips, two_sided=False)
        ),
        "means as large as the observed one count, too (>=), so p is never 0": partial(_sign_flips, strict=True),
        "this is the t test's p, which assumes normal differences": lambda d: scipy.stats.ttest_1samp(d, 0).pvalue,
        "only the signs were used: that is the sign test": _sign_test,
    },
    look="over all 2^n ways to set the signs: the share whose |mean| is at least the observed |mean|",
)


def _chosen(values, rating, choose_on, report_on) -> tuple[int, float]:
    values, rating = np.asarray(values, float), np.asarray(rating, float)
    taus = [stats.kendall(values[choose_on, c], rating[choose_on])["tau"] for c in range(values.shape[1])]
    best = int(np.argmax(taus))
    return best, stats.kendall(values[report_on, best], rating[report_on])["tau"]


_DRAW = np.random.default_rng(3)
_TABLES = [(_DRAW.normal(size=(14, 5)), _DRAW.integers(0, 5, 14), np.arange(0, 9), np.arange(9, 14)) for _ in range(4)]

_on_training = lambda values, rating, train, test: _chosen(values, rating, train, train)
_by_all = lambda values, rating, train, test: _chosen(values, rating, slice(None), test)

held_out = Check(
    right=_chosen,
    cases=_TABLES,
    mistakes={
        "this is the tau on the training facts, by which the column was chosen": _on_training,
        "the column was chosen on the test facts": lambda v, r, train, test: _chosen(v, r, test, test),
        "the column was chosen on all facts, including the test facts": _by_all,
    },
    look="the column of the highest tau on the rows `train`, and its tau on the rows `test`",
)


def alt_left_out(r: float, without: list[float]) -> str:
    """Alt text of the correlation of table 4. ``without``: r without each of the models."""
    return (
        f"Left: average accuracy against MONITOR for {len(without)} models, falling, r = {r:.3f}. Right: r without each of the "
        f"models, from {min(without):.3f} to {max(without):.3f}."
    )


def finding_claim(claim: str, row: pd.Series) -> str:
    """One claim of the audit, as printed and as recomputed, with its verdict; ``row``: of ``audit.table``."""
    numbers = f"Printed {row['published']}; recomputed {row['recomputed']}"
    return f"*{row['where']}*: {claim}. {numbers}. **{row['verdict']}**. {row['why']}"


def finding_zero(upper: float) -> str:
    """The upper bound of the interval of 0 of 77."""
    return f"0 of 77: up to {upper:.1%}. For which number is the printed 2.5 % right?"


def finding_fitting(fitting: list[int], row: pd.Series) -> str:
    """For which numbers of items the printed interval is right; ``row``: the claim in ``audit.table``."""
    first, last = fitting[0], fitting[-1]
    return (
        f"Any n from {first} to {last}: {first / 77:.1f} to {last / 77:.1f} times 77. {row['recomputed']}; {row['why']}"
    )


def alt_ties(flipped: list[float], n: int, swapped: float, noisy: float) -> str:
    """Alt text of tau-b of two kinds of measure; arguments as for ``finding_ties``, and tau if two neighbours are swapped."""
    return (
        f"Kendall's tau-b against the number of yes-verdicts among {n}. If one verdict changes, it is between {min(flipped):.2f} "
        f"and {max(flipped):.2f}. Level lines: {swapped:.3f} if two neighbours of a continuous measure change places, "
        f"{noisy:.2f} if all its values move, 0.92 as printed for ApprOpt."
    )


def finding_ties(flipped: list[float], n: int, flip: tuple[float, float], noisy: float) -> str:
    """Why tau-b of a yes-or-no measure is not that of a continuous one.

    flipped   tau if one of ``n`` verdicts changes, for 2, 3, ... yes-verdicts
    flip      interval of a share of 1 of ``n``   noisy   tau if all values of a continuous measure move
    """
    close = [str(k) for k, tau in enumerate(flipped, 2) if round(tau, 2) == 0.92]
    return (
        f"One changed verdict of {n} gives a tau between {min(flipped):.2f} and {max(flipped):.2f}; the printed 0.92 comes out "
        f"with {', '.join(close)} yes-verdicts. A continuous measure whose values *all* move by a few ranks has {noisy:.2f}. "
        "The two scales are not comparable: one counts flips, the other every change of order. "
        f"One flip of {n} is a rate between {flip[0]:.1%} and {flip[1]:.0%}."
    )


def finding_scales(printed: pd.Series) -> str:
    """Which printed robustness is measured on ApprOpt's scale. ``printed``: measure -> tau of table 4 (Distractors)."""
    continuous = printed[["Probability", "BERT-Score", "ROUGE-L"]]
    return (
        f"Lower values are printed for {', '.join(continuous.index)}, which are continuous ({continuous.min()} to "
        f"{continuous.max()}), and for the judge ({printed['LLM-as-a-judge']}), which says yes or no: only the judge is measured "
        "on ApprOpt's scale."
    )


def alt_intervals(intervals: dict[str, tuple[float, float, float]]) -> str:
    """Alt text of means with intervals: name -> (mean, low, high), nats."""
    each = [f"{name} {mean:.2f} [{low:.2f}, {high:.2f}]" for name, (mean, low, high) in intervals.items()]
    return f"Means with bootstrap intervals, in nats: {'; '.join(each)}."


def finding_overlap(intervals: dict[str, tuple[float, float, float]], r: float) -> str:
    """Whether the intervals of two models overlap, and whether that of their difference excludes 0.

    intervals   (mean, low, high) in nats: of the first model, of the second, of the difference by fact
    r           correlation of the two models' log-probabilities over facts
    """
    (_, *one), (_, *other), (difference, low, high) = intervals.values()
    overlap = min(one[1], other[1]) - max(one[0], other[0])
    shared = f"overlap by {overlap:.2f} nats" if overlap > 0 else "do not overlap"
    zero = "excludes" if low > 0 or high < 0 else "includes"
    return (
        f"The two intervals {shared}; the difference is {difference:+.2f} [{low:+.2f}, {high:+.2f}], which {zero} 0. Over facts, "
        f"the log-probabilities of the two models correlate with r = {r:.2f}: what makes a fact hard for both cancels in the "
        "difference."
    )


def finding_paired(known: pd.DataFrame) -> str:
    """McNemar's test of two models. ``known``: whether each fact is known, one column per model."""
    first, second = known
    test = stats.mcnemar(known[first], known[second])
    return (
        f"For yes-or-no verdicts the paired test is McNemar's: {test['lost']} facts known to {first} alone, {test['gained']} to "
        f"{second} alone, p = {test['p']:.2g}. The {test['n'] - test['lost'] - test['gained']} facts on which they agree say "
        "nothing."
    )


def finding_folds(least: dict[int, float]) -> str:
    """How many folds a permutation test needs. ``least``: folds -> smallest possible p."""
    enough = min(n for n, p in least.items() if p < 0.05)
    return (
        f"With three folds the smallest possible p is {least[3]:.2f}: *nothing* can be significant, whatever the taus are. It "
        f"takes {enough} folds, all of one sign, to get below 0.05. (And folds share their training facts, so they are not even "
        "independent.)"
    )


def alt_useless(ends: pd.Series, n: int) -> str:
    """Alt text of the best of 1 to ``n`` useless measures. ``ends``: tau with ``n``, chosen on all facts and on others."""
    (on_all, tau), (on_others, _) = ends.items()
    return (
        f"Tau with the rating against the number of useless measures, 1 to {n}. {on_all}: it rises to {tau:.2f}. {on_others}: it "
        "stays near 0."
    )


def finding_useless(best: float, honest: float, n: int) -> str:
    """Tau of the best of ``n`` useless measures: on the facts on which it was chosen, and on others."""
    return (
        f"The best of {n} useless measures has tau = {best:.2f} if it is chosen and reported on the same facts. Reported on "
        f"facts that had no part in the choice, it has {honest:+.2f} on average."
    )
