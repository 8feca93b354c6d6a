"""Lab 1: a fact, a prompt, a log-probability by hand."""

from functools import partial

import numpy as np
from scipy import special

from probelib.course.checks import Check, exercise

# 6 tokens forwarded, vocabulary of 9
_LOG_PROBS = special.log_softmax(np.random.default_rng(0).normal(size=(6, 9)), axis=-1)

log_softmax = Check(
    "lab1.log_softmax",
    partial(special.log_softmax, axis=-1),
    probabilities=partial(special.softmax, axis=-1),
    overflow=lambda z: np.log(np.exp(z) / np.exp(z).sum(-1, keepdims=True)),
    over_all={"axis": None},
)


@exercise(
    "lab1.answer_logprobs",
    cases=[(_LOG_PROBS[:4], 4, [7]), (_LOG_PROBS[:5], 3, [2, 8, 5])],  # the last is not forwarded
    one_row=lambda p, n, ids: [p[n - 1, t] for t in ids],
    from_0=lambda p, n, ids: answer_logprobs.right(p, 1, ids),
)
def answer_logprobs(log_probs, n_prompt, answer_ids):
    return [float(log_probs[n_prompt + l - 1, token]) for l, token in enumerate(answer_ids)]


answer_probability = Check(
    "lab1.answer_probability",
    lambda logprobs: np.exp(np.sum(logprobs)),
    log=np.sum,
    mean=lambda v: np.exp(v).mean(),
)

either_logprob = Check(
    "lab1.either_logprob",
    special.logsumexp,
    product=np.sum,
    best=np.max,
    underflow=lambda v: np.log(np.exp(v).sum()),
)


@exercise(
    "lab1.choose",
    exchanged=lambda a, v, n, per: choose.right(a, v, n, not per),
    no_difference=lambda a, v, n, per: choose.right(a, v, n, False),
)
def choose(labels, logprobs, n_tokens, per_token):
    value = np.asarray(logprobs) / (np.asarray(n_tokens) if per_token else 1)
    return labels[int(value.argmax())]
