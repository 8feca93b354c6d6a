"""Lab 1: a fact, a prompt, a log-probability by hand."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy.special import log_softmax as _log_softmax
from scipy.special import logsumexp

from probelib import lm, stats
from probelib.course.checks import Check
from probelib.distractors import measures as distractors
from probelib.errors import ProbeError

_LOGITS = np.array([[2.0, 1.0, 0.1], [0.0, 0.0, 5.0]])
_LOG_PROBS = _log_softmax(np.random.default_rng(0).normal(size=(6, 9)), axis=-1)  # 6 tokens forwarded, vocabulary of 9


def load_decoder(name: str) -> lm.LM:
    """The model of this name. Raise ProbeError if it has an encoder: the lab reads the logits of one row of tokens."""
    model = lm.load(name)
    if model.encoder_decoder:
        what = "this lab reads a model without an encoder: try atlas-neox-2.4m"
        raise ProbeError(f"{name} has an encoder and a decoder; {what}")
    return model


def _naive(logits: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        return np.log(np.exp(logits) / np.exp(logits).sum(-1, keepdims=True))


_over_all = lambda logits: logits - logsumexp(logits)

log_softmax = Check(
    right=lambda logits: _log_softmax(logits, axis=-1),
    cases=[(_LOGITS[0],), (_LOGITS,), (np.array([1000.0, 1001.0]),)],
    look="log softmax is the logit minus the log of the sum of the exponentials, over the last axis",
    mistakes={
        "these are probabilities: the logarithm is missing": lambda z: np.exp(_log_softmax(z, axis=-1)),
        "exp of a large logit is infinite: subtract the largest logit first, which changes nothing else": _naive,
        "the sum runs over everything: each row is a distribution of its own (axis=-1, keepdims=True)": _over_all,
        "the sum runs over the rows: the vocabulary is the last axis": lambda z: _log_softmax(z, axis=0),
        "this is in bits: the logarithm here is the natural one": lambda z: _log_softmax(z, axis=-1) / np.log(2),
    },
)


def _rows(log_probs: np.ndarray, n_prompt: int, answer_ids: list[int]) -> list[float]:
    return [float(log_probs[n_prompt + l - 1, token]) for l, token in enumerate(answer_ids)]


_one_row = lambda p, n, ids: [p[n - 1, t] for t in ids]
_best = lambda p, n, ids: p[n - 1 : n - 1 + len(ids)].max(-1)

answer_logprobs = Check(
    right=_rows,
    cases=[(_LOG_PROBS[:4], 4, [7]), (_LOG_PROBS[:5], 3, [2, 8, 5])],  # the last token of the answer is not forwarded
    look="a row predicts the token that comes after it, so that the first answer token is found in row n_prompt - 1, "
    "and there is no row n_prompt + len(answer_ids) - 1",
    mistakes={
        "all tokens are read from one row: each answer token moves one row on": _one_row,
        "these are the rows from 0 on: the prompt's rows come first": lambda p, n, ids: _rows(p, 1, ids),
        "these are the most probable tokens of the rows, not those of the answer": _best,
        "this is already their sum: return one number per token": lambda p, n, ids: sum(_rows(p, n, ids)),
    },
)

_mean = lambda logprobs: np.exp(logprobs).mean()

answer_probability = Check(
    right=lambda logprobs: np.exp(np.sum(logprobs)),
    cases=[([-0.5],), ([-0.1, -0.7, -2.0],)],
    look="probabilities of one token after another are multiplied, hence logarithms added; exp comes last",
    mistakes={
        "this is still the logarithm: exp is missing": np.sum,
        "this is the mean over the tokens, MONITOR's way: the probability of the whole answer is their product": _mean,
        "this is the geometric mean: do not divide by the number of tokens": lambda v: np.exp(np.mean(v)),
        "probabilities were added: then two tokens would be more probable than one": lambda v: np.exp(v).sum(),
        "logarithms were multiplied: add them": np.prod,
    },
)

_divided = lambda logprobs: logsumexp(logprobs) - np.log(len(logprobs))

either_logprob = Check(
    right=logsumexp,
    cases=[([-1.0, -2.0],), ([-3.0],), ([-1000.0, -1001.0, -1002.0],)],
    look="the probability of any of several texts is the sum of theirs; np.logaddexp.reduce adds in log space",
    mistakes={
        "adding logarithms multiplies: that is the probability of all names at once": np.sum,
        "this is only the best name: the others count, too": np.max,
        "this is a probability: the logarithm is expected": lambda v: np.exp(v).sum(),
        "the sum was divided by the number of names: an entity must not lose by having a second name": _divided,
        "exp(-1000) is 0 in a float, and log(0) is minus infinity: stay in log space": lambda v: _log(np.exp(v).sum()),
    },
)


def _log(value: float) -> float:
    with np.errstate(divide="ignore"):
        return np.log(value)


def _pick(labels: list[str], logprobs: list[float], n_tokens: list[int], per_token: bool) -> str:
    value = np.asarray(logprobs) / (np.asarray(n_tokens) if per_token else 1)
    return labels[int(value.argmax())]


_least = lambda labels, logprobs, n, per_token: _pick(labels, np.negative(logprobs), n, per_token)
_OPTIONS = (["Bonn", "Ouagadougou", "Tokyo"], [-4.0, -6.0, -5.0], [1, 4, 2])

choose = Check(
    right=_pick,
    cases=[(*_OPTIONS, False), (*_OPTIONS, True)],
    look="divide by the number of tokens if per_token is true, then take the label of the highest value",
    mistakes={
        "this is the least probable one: log-probabilities are negative, the largest is the nearest to 0": _least,
        "per_token makes no difference here": lambda a, v, n, per: _pick(a, v, n, False),
        "it is always the mean over tokens: without per_token the sum decides": lambda a, v, n, _: _pick(a, v, n, True),
        "this is an index, not a label": lambda a, v, n, per: a.index(_pick(a, v, n, per)),
    },
)


def finding_by_hand(label: str, by_hand: Sequence[float], library: float, probability: float) -> str:
    """The answer's log-probability in nats, by hand (token by token) and by the library, and its probability."""
    return f"By hand {np.sum(by_hand):.3f} nats, by the library {library:.3f}: P({label}) = **{probability:.3f}**."


def finding_hardest(tokens: Sequence[str], logprobs: Sequence[float]) -> str:
    """Which token of the answer is the least probable."""
    at = int(np.argmin(logprobs))
    return f"The hardest is token {at + 1} of {len(tokens)}, **{tokens[at].strip()}**."


def finding_rank(label: str, ranked: pd.DataFrame) -> str:
    """The rank of a label among the answers, and the sum of their probabilities.

    ranked   ``label`` and ``probability`` of each answer, the most probable first
    """
    place = ranked["label"].tolist().index(label) + 1
    return f"**{label}** is number {place} of {len(ranked)}; together they have {ranked['probability'].sum():.3f}."


def finding_names(names: Sequence[str], alone: float, total: float) -> str:
    """The probability of the first name, and the sum over all names of the entity."""
    return f"{names[0]} alone {alone:.3f}; all {len(names)} names together **{total:.3f}**."


def finding_prefixes(probability: pd.Series) -> str:
    """The names that begin another one. ``probability``: name -> probability of a text that begins with it."""
    pairs = [(a, b) for a in probability.index for b in probability.index if a != b and b.startswith(a)]
    if not pairs:
        return "Here no name begins another: take another fact."
    found = [f"P({a} ...) = {probability[a]:.3f} is at least P({b}) = {probability[b]:.3f}" for a, b in pairs]
    return f"{'; '.join(found)}."


def finding_endings(sums: pd.Series) -> str:
    """The sum over an entity's names without an ending (``open``), with ``eos`` and with ``full_stop``."""
    ends = "eos" if sums["eos"] >= sums["full_stop"] else "a full stop"
    return (
        f"Sums: {sums['open']:.3f} with open ends (not a probability), {sums['eos']:.4f} with eos, "
        f"{sums['full_stop']:.4f} with a full stop. This model ends an answer with {ends}. The library computes the same sum in "
        f"`probelib.distractors.measures.plausibility`, for the endings {', '.join(distractors.ENDINGS)}."
    )


def alt_lengths(medians: pd.Series) -> str:
    """Alt text of the figure of answers by length. ``medians``: tokens -> median log-probability of the wrong answers (nats)."""
    (short, first), (long, last) = medians.iloc[[0, -1]].items()
    return (
        "Log-probability of answers over their number of tokens, on the left as a sum over tokens, on the right as a mean. "
        "Grey: the median of the wrong answers; crosses: the right ones. "
        f"The median of the sums goes from {first:.0f} nats at {short} token(s) to {last:.0f} at {long}."
    )


def finding_rules(hits: dict[str, list[bool]], slope: float) -> str:
    """Which rule is right more often (McNemar's test).

    hits    for the rules ``sum`` and ``per token``: whether each fact is right
    slope   change of a wrong answer's log-probability per additional token, nats
    """
    test = stats.mcnemar(hits["per token"], hits["sum"])
    better = "the sum" if test["gained"] > test["lost"] else "the mean"
    found = f"**{better}** is better" if test["p"] < 0.05 else "which is better **cannot be told**"
    found = "they choose **equally well**" if hits["sum"] == hits["per token"] else f"{found} (p = {test['p']:.2g})"
    return (
        f"Here a wrong answer loses {-slope:.1f} nats per additional token. Of {len(hits['sum'])} facts {test['gained']} are "
        f"right by the sum alone and {test['lost']} by the mean alone: {found}. Lab 6 explains the test, and how many facts it "
        "takes. And this is one relation."
    )
