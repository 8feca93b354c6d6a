"""Lab 3: many-shot lists, ZP-LKE's estimator and how many examples it needs."""

from functools import partial

import numpy as np
import pandas as pd
from scipy.special import softmax

from probelib import prompts
from probelib.course.checks import Check
from probelib.zplke import measures as zplke

_PAIRS = [("Chad", "French"), ("Malta", "Maltese")]

many_shot = Check(
    "lab3.many_shot",
    prompts.many_shot,
    [(_PAIRS, "Peru"), ([], "Peru"), (_PAIRS[:1], "Peru")],
    blank=lambda pairs, x: prompts.many_shot(pairs, x) + " ",
    lines=partial(prompts.many_shot, gap="\n"),
)

_VALUES = np.array([-1.0, -2.0, -0.5])

is_right = Check(
    "lab3.is_right",
    lambda v, gold: bool(v[gold] > np.delete(v, gold).max()),
    [
        *((_VALUES, gold) for gold in (2, 0, 1)),
        (np.array([-1.0, -1, -3]), 0),
        (np.array([-4.0, -1, -1]), 2),
    ],
    tie=lambda v, gold: v[gold] >= v.max(),
    first_best=lambda v, gold: np.argmax(v) == gold,
)


confidence = Check(
    "lab3.confidence",
    lambda logprobs: softmax(logprobs).max(),
    [(_VALUES,), (np.array([-1000.0, -1001.0]),)],
    not_divided=lambda v: np.exp(v.max()),
    underflow=lambda v: np.max(np.exp(v) / np.exp(v).sum()),
)


def _reached(curve, bar):
    return min((n for n, accuracy in curve.items() if accuracy >= bar), default=np.nan)


n95 = Check(
    "lab3.n95",
    lambda curve: zplke.n95(pd.Series(curve)),
    [
        ({1: 0.20, 5: 0.50, 10: 0.62, 20: 0.70, 30: 0.72, 50: 0.74},),
        ({1: 0.20, 5: 0.50, 10: 0.67, 20: 0.72, 30: 0.62, 50: 0.70},),
        *(({1: 0.4, 50: 0.1},), ({1: 0.5, 5: 0.95, 50: 1.0},), ({1: 0.0, 50: 0.0},)),
    ],
    of_095=lambda c: _reached(c, 0.95),
    of_best=lambda c: _reached(c, 0.95 * max(c.values()) or np.inf),
)


def _accuracy_at(correct, confidence, k, compare=np.greater, empty=np.nan):
    kept = correct[compare(confidence, k)]
    return kept.mean() if len(kept) else empty


_CORRECT, _SURE = np.array([1.0, 0.0, 1.0, 1.0]), np.array([0.9, 0.5, 0.6, 0.2])

accuracy_at = Check(
    "lab3.accuracy_at",
    _accuracy_at,
    [(_CORRECT, _SURE, k) for k in (0.5, 0.0, 0.95)],
    equal=partial(_accuracy_at, compare=np.greater_equal),
    empty=partial(_accuracy_at, empty=0.0),
)
