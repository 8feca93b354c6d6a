"""Lab 3: many-shot lists, ZP-LKE's estimator and how many examples it needs."""

import numpy as np
import pandas as pd
from scipy.special import softmax

from probelib import prompts
from probelib.course.checks import Check, exercise
from probelib.zplke import measures as zplke

_PAIRS = [("Chad", "French"), ("Malta", "Maltese")]

many_shot = Check(
    "lab3.many_shot",
    prompts.many_shot,
    [(_PAIRS, "Peru"), ([], "Peru"), (_PAIRS[:1], "Peru")],
    blank=lambda pairs, x: prompts.many_shot(pairs, x) + " ",
    lines={"gap": "\n"},
)

is_right = Check(
    "lab3.is_right",
    lambda v, gold: bool(v[gold] > np.delete(v, gold).max()),
    tie=lambda v, gold: v[gold] >= v.max(),
    first_best=lambda v, gold: np.argmax(v) == gold,
)

confidence = Check(
    "lab3.confidence",
    lambda logprobs: softmax(logprobs).max(),
    not_divided=lambda v: np.exp(v.max()),
    underflow=lambda v: np.max(np.exp(v) / np.exp(v).sum()),
)

n95 = Check(
    "lab3.n95",
    lambda curve: zplke.n95(pd.Series(curve)),
    of_095=lambda c: min((n for n, accuracy in c.items() if accuracy >= 0.95), default=np.nan),
    of_best=lambda c: zplke.n95(pd.Series(c | {99: max(c.values())})),  # as if it were the last
)


@exercise("lab3.accuracy_at", equal={"compare": np.greater_equal}, empty={"empty": 0.0})
def accuracy_at(correct, confidence, k, compare=np.greater, empty=np.nan):
    kept = correct[compare(confidence, k)]
    return kept.mean() if len(kept) else empty
