"""Lab 1: a fact, a prompt, a log-probability by hand."""

import numpy as np
from scipy.special import log_softmax as _log_softmax
from scipy.special import logsumexp

from probelib.course.checks import Check

_LOGITS = np.array([[2.0, 1.0, 0.1], [0.0, 0.0, 5.0]])
# 6 tokens forwarded, vocabulary of 9
_LOG_PROBS = _log_softmax(np.random.default_rng(0).normal(size=(6, 9)), axis=-1)


log_softmax = Check(
    "lab1.log_softmax",
    lambda logits: _log_softmax(logits, axis=-1),
    [(_LOGITS[0],), (_LOGITS,), (np.array([1000.0, 1001.0]),)],
    probabilities=lambda z: np.exp(_log_softmax(z, axis=-1)),
    overflow=lambda z: np.log(np.exp(z) / np.exp(z).sum(-1, keepdims=True)),
    over_all=lambda z: z - logsumexp(z),
)


def _rows(log_probs, n_prompt, answer_ids):
    return [float(log_probs[n_prompt + l - 1, token]) for l, token in enumerate(answer_ids)]


answer_logprobs = Check(
    "lab1.answer_logprobs",
    _rows,
    [(_LOG_PROBS[:4], 4, [7]), (_LOG_PROBS[:5], 3, [2, 8, 5])],  # the last is not forwarded
    one_row=lambda p, n, ids: [p[n - 1, t] for t in ids],
    from_0=lambda p, n, ids: _rows(p, 1, ids),
)

answer_probability = Check(
    "lab1.answer_probability",
    lambda logprobs: np.exp(np.sum(logprobs)),
    [([-0.5],), ([-0.1, -0.7, -2.0],)],
    log=np.sum,
    mean=lambda v: np.exp(v).mean(),
)

either_logprob = Check(
    "lab1.either_logprob",
    logsumexp,
    [([-1.0, -2.0],), ([-3.0],), ([-1000.0, -1001.0, -1002.0],)],
    product=np.sum,
    best=np.max,
    underflow=lambda v: np.log(np.exp(v).sum()),
)


def _pick(labels, logprobs, n_tokens, per_token):
    value = np.asarray(logprobs) / (np.asarray(n_tokens) if per_token else 1)
    return labels[int(value.argmax())]


_OPTIONS = (["Bonn", "Ouagadougou", "Tokyo"], [-4.0, -6.0, -7.0], [1, 4, 2])

choose = Check(
    "lab1.choose",
    _pick,
    [(*_OPTIONS, False), (*_OPTIONS, True)],
    exchanged=lambda a, v, n, per: _pick(a, v, n, not per),
    no_difference=lambda a, v, n, per: _pick(a, v, n, False),
)
