"""Lab 3: many-shot lists, ZP-LKE's estimator and how many examples it needs."""

from functools import partial

import numpy as np
import pandas as pd
from scipy.special import logsumexp, softmax

from probelib import prompts, stats
from probelib.course.checks import Check
from probelib.zplke import measures as zplke

_PAIRS = [("Chad", "French"), ("Malta", "Maltese")]
_list = lambda pairs, form="{} {}", *last: " ".join([*(form.format(*pair) for pair in pairs), *last])

many_shot = Check(
    right=prompts.many_shot,
    cases=[(_PAIRS, "Peru"), ([], "Peru"), (_PAIRS[:1], "Peru")],
    look="subject, blank, object, blank, the next pair, and at the end the subject in question, without a blank after it",
    mistakes={
        "the blank at the end belongs to the object: a prompt that ends with one asks for tokens that hardly ever come there": (
            lambda pairs, x: prompts.many_shot(pairs, x) + " "
        ),
        "the subject in question is missing at the end": lambda pairs, x: _list(pairs),
        "pairs are separated by one blank here, as within a pair": partial(prompts.many_shot, gap="\n"),
        "pairs are separated by a blank only, without a comma": partial(prompts.many_shot, gap=", "),
        "the objects are missing: a list of subjects says nothing about the relation": lambda of, x: _list(of, "{}", x),
        "object and subject of the examples are exchanged": lambda pairs, x: _list(pairs, "{1} {0}", x),
        "without examples there is only the subject, and no blank before it": lambda pairs, x: f"{_list(pairs)} {x}",
    },
)

_VALUES = np.array([-1.0, -2.0, -0.5])


def _is_right(logprobs: np.ndarray, gold: int) -> bool:
    return bool(logprobs[gold] > np.delete(logprobs, gold).max())


_first_best = lambda logprobs, gold: np.argmax(logprobs) == gold

is_right = Check(
    right=_is_right,
    cases=[*((_VALUES, gold) for gold in (2, 0, 1)), (np.array([-1.0, -1, -3]), 0), (np.array([-4.0, -1, -1]), 2)],
    look="the right option has to be above every other one",
    mistakes={
        "a tie shows no knowledge: the right option has to be strictly above all others": lambda v, g: v[g] >= v.max(),
        "argmax takes the first of several equal options, so that a tie is decided by the position in the list": _first_best,
        "this compares the right option with itself, too, and nothing is above itself": lambda v, g: all(v[g] > v),
        "this takes the smallest: of negative numbers the largest is the most probable": lambda v, g: np.argmin(v) == g,
        "this is the option chosen; the question is whether it is the right one": lambda v, g: int(np.argmax(v)),
    },
)


def _naive_confidence(logprobs: np.ndarray) -> float:
    with np.errstate(invalid="ignore"):
        return np.max(np.exp(logprobs) / np.exp(logprobs).sum())


_best = lambda logprobs: np.exp(logprobs.max())

confidence = Check(
    right=lambda logprobs: softmax(logprobs).max(),
    cases=[(_VALUES,), (np.array([-1000.0, -1001.0]),)],
    look="divide each probability by the sum over all options, and take the largest quotient",
    mistakes={
        "this is not divided by the sum over the options: with 100 rare options no model would ever be sure": _best,
        "exp(-1000) is 0, and 0 / 0 is not a number: subtract the largest logarithm first": _naive_confidence,
        "these are all options: the confidence is the share of the most probable one": softmax,
        "this is a logarithm: exp is missing": lambda v: v.max() - logsumexp(v),
        "logarithms were divided by their sum: go back to probabilities first": lambda v: (v / v.sum()).max(),
    },
)

_CURVES = [
    {1: 0.20, 5: 0.50, 10: 0.62, 20: 0.70, 30: 0.72, 50: 0.74},
    {1: 0.20, 5: 0.50, 10: 0.67, 20: 0.72, 30: 0.62, 50: 0.70},
    *({1: 0.4, 50: 0.1}, {1: 0.0, 50: 0.0}, {1: 0.5, 5: 0.95, 50: 1.0}),
]


def _first(curve: dict[int, float], bar: float) -> float:
    return min((n for n, accuracy in curve.items() if accuracy >= bar), default=np.nan)


_right = lambda curve: zplke.n95(pd.Series(curve))
_of_best = lambda curve: _first(curve, 0.95 * max(curve.values()) or np.inf)
_above = lambda curve: min((n for n, accuracy in curve.items() if accuracy > 0.95 * curve[max(curve)]), default=np.nan)
_of_nothing = lambda curve: _first(curve, 0.95 * curve[max(curve)] - 1e-12)

n95 = Check(
    right=_right,
    cases=[(curve,) for curve in _CURVES],
    look="the threshold is 95 % of the accuracy with the longest list; of the lengths that reach it, the shortest counts",
    mistakes={
        "the threshold is 95 % of the accuracy with the most examples, not an accuracy of 0.95": lambda c: _first(
            c, 0.95
        ),
        "the threshold is set by the longest list, not by the best one": _of_best,
        "a length that meets the threshold exactly has reached it: >=, not >": _above,
        "this is the accuracy: the number of examples is expected": lambda c: c.get(_right(c), np.nan),
        "this is the index in the list: the number of examples is expected": lambda c: (
            list(c).index(_right(c)) if max(c.values()) else np.nan
        ),
        "a model that is never right reaches 95 % of nothing at once: return np.nan then": _of_nothing,
    },
)


def _accuracy_at(correct: np.ndarray, confidence: np.ndarray, k: float, compare=np.greater, empty=np.nan) -> float:
    kept = correct[compare(confidence, k)]
    return kept.mean() if len(kept) else empty


_CORRECT, _SURE = np.array([1.0, 0.0, 1.0, 1.0]), np.array([0.9, 0.5, 0.6, 0.2])

accuracy_at = Check(
    right=_accuracy_at,
    cases=[(_CORRECT, _SURE, 0.5), (_CORRECT, _SURE, 0.0), (_CORRECT, _SURE, 0.95)],
    look="keep the facts whose confidence is above K, and take the mean of `correct` over these only",
    mistakes={
        "Eq. 5 keeps what is above K: equal is not above": partial(_accuracy_at, compare=np.greater_equal),
        "this is divided by all facts: only those kept count": lambda c, s, k: c[s > k].sum() / len(c),
        "if nothing is kept there is no accuracy: np.nan, not 0": partial(_accuracy_at, empty=0.0),
        "this is the share of facts that are kept": lambda c, s, k: (s > k).mean(),
        "this keeps the facts below K: reverse the comparison": partial(_accuracy_at, compare=np.less),
    },
)


def alt_lists(curves: pd.DataFrame, guessing: float) -> str:
    """Alt text of accuracy against the length of the list. ``curves``: accuracy, lengths x models."""
    ends = [f"{name} from {own.iloc[0]:.2f} to {own.iloc[-1]:.2f}" for name, own in curves.items()]
    return (
        f"Accuracy against the number of pairs in the list, {curves.index.min()} to {curves.index.max()}, one line per model, "
        f"its n95 circled: {', '.join(ends)}. A dotted line shows guessing at {guessing:.2f}."
    )


def finding_n95(curves: pd.DataFrame, mine: dict[str, float], n_facts: int) -> str:
    """The change of accuracy from the shortest to the longest list, and on how many n95 the library agrees.

    curves   accuracy, lengths x models   mine   model -> n95 by the student's function
    """
    same = [np.isclose(value, zplke.n95(curves[model]), equal_nan=True) for model, value in mine.items()]
    gain = curves.iloc[-1] - curves.iloc[0]
    return (
        f"From {curves.index[0]} to {curves.index[-1]} pairs, accuracy changes by {gain.min():+.2f} to {gain.max():+.2f}. "
        f"The library agrees about n95 for {sum(same)} of {len(same)} models. Mind the uncertainty: with {n_facts} facts an "
        f"accuracy is known to about ±{1.96 * np.sqrt(0.25 / n_facts):.2f}, and 5 percent of the best is less than that. "
        "n95 is a noisy number."
    )


def alt_kinds(means: pd.Series, n_models: int) -> str:
    """Alt text of accuracy by kind of list. ``means``: kind -> mean accuracy over models."""
    bars = [f"{kind} {value:.2f}" for kind, value in means.items()]
    return (
        f"Bars of accuracy with 95 % intervals, {n_models} models, after lists of {len(means)} kinds. "
        f"Means over models: {', '.join(bars)}."
    )


def finding_kinds(means: pd.Series, shortest: int, without: pd.Series, false: pd.Series) -> str:
    """Accuracy by kind of list, and whether false pairs help (McNemar's test).

    means            kind -> mean accuracy over models   shortest   pairs of the shortest list
    without, false   whether each (model, fact) is right after the shortest list, and after false pairs
    """
    test = stats.mcnemar(without, false)
    better = "better" if test["gained"] > test["lost"] else "worse"
    verdict = f"false pairs are {better}" if test["p"] < 0.05 else "which is better cannot be told"
    kinds = [f"{kind} {value:.2f}" for kind, value in means.sort_values(ascending=False).items()]
    return (
        f"Over the models: {', '.join(kinds)}; with {shortest} pairs {without.mean():.2f}. **False pairs against {shortest} "
        f"pairs**: {test['gained']} answers become right and {test['lost']} wrong, p = {test['p']:.2g}: {verdict}. "
        "(McNemar's test, lab 6. All models answer the same facts, so the true p is larger.)"
    )


def alt_thresholds(n_pairs: int, kept: pd.Series) -> str:
    """Alt text of Acc@K. ``kept``: model -> share of the facts with a confidence above 0.9."""
    shares = [f"{name} {share:.0%}" for name, share in kept.items()]
    return (
        f"Two panels against the threshold K, one line per model, after {n_pairs} pairs: accuracy of the kept facts, and their "
        f"share. Kept at 0.9: {', '.join(shares)}."
    )


def finding_sure(model: str, n_pairs: int, found: pd.Series) -> str:
    """How many answers have a confidence above 0.9, and how many of these are right.

    found   a row of ``zplke.accuracy_at``: ``kept``, ``share``, ``accuracy``, ``low``, ``high``
    """
    share = f"{model} after {n_pairs} pairs: confidence above 0.9 for {found['share']:.0%} of the answers"
    right = f"{found['accuracy']:.0%} of these are right [{found['low']:.2f}, {found['high']:.2f}]"
    return f"{share}; {right}." if found["kept"] else f"{share}."
