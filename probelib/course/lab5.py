"""Lab 5: a model's answers, their scores, and a judge that predicts them (GraphEval)."""

import re
from functools import partial

import numpy as np
import pandas as pd

from probelib import grapheval, stats
from probelib.course.checks import Check
from probelib.errors import ProbeError
from probelib.grapheval import METRICS, Answer, Outcome

TRUE, FALSE, IDK = Answer


def require_answers(generated: list[str], model_name: str) -> None:
    """Raise ProbeError if more than half of the generated texts have no answer: there would be nothing to predict."""
    silent = np.mean([grapheval.parse_answer(text) is None for text in generated])
    if silent > 0.5:
        raise ProbeError(
            f"{silent:.0%} of the texts that {model_name} generates have no answer, so there is nothing to predict: "
            "it is not instruction-tuned. Try atlas-neox-2.4m-it."
        )


def _parsed(text: str, *variant: str) -> Answer:
    """The library's parser; a text without an answer counts as "I don't know"."""
    found = grapheval.parse_answer(text, *variant)
    return IDK if found is None else found


def _words(text: str, doubt: bool = True, first: bool = True) -> Answer:
    """A simple parser by words, with or without a check for doubt, of the first sentence or of the whole text."""
    text = text.strip().lower()
    text = re.split(r"[.!?\n]", text)[0] if first else text
    if doubt and re.search(r"\b(don't|not) (know|sure)|not sure", text):
        return IDK
    no = re.search(r"\b(no|false|not)\b", text)
    return FALSE if no else TRUE if re.search(r"\b(yes|true)\b", text) else IDK


def _letters(text: str) -> Answer:
    """A parser by letters instead of words: there is a "no" in "Norway"."""
    sentence = re.split(r"[.!?\n]", text.strip().lower())[0]
    if re.search("n't know|not sure", sentence):
        return IDK
    return FALSE if "no" in sentence or "false" in sentence else TRUE if re.search("yes|true", sentence) else IDK


def _beginning(text: str) -> Answer:
    """A parser that reads only the first word."""
    text = text.strip().lower()
    return TRUE if text.startswith("yes") else FALSE if text.startswith("no") else IDK


_TEXTS = ["Yes, the statement is true.", "No, the statement is false.", "I don't know.", " no"]
_TEXTS += ["No, the statement is not true.", "I am not sure whether that is true.", "I don't know if this is false."]
_TEXTS += ["Yes. Is this statement true? Rome is in Spain. No.", "The capital of France is Paris."]
_TEXTS += ["Yes, Norway is in Europe.", "True.", "The statement is false."]

read_answer = Check(
    right=_parsed,
    cases=[(text,) for text in _TEXTS],
    mistakes={
        "this is the released code's parser: the word 'true' anywhere counts as yes, even in 'not true'": (
            lambda text: _parsed(text, "released")
        ),
        "an 'I don't know' followed by 'true' or 'false' is parsed as true or false: look for doubt first": (
            partial(_words, doubt=False)
        ),
        "only the first sentence is the answer; the following text may be new questions": partial(_words, first=False),
        "'no' is part of 'Norway' and in 'know', too: look for whole words, with \\b on both sides": _letters,
        "an answer need not begin with yes or no: 'true' and 'false' say it as well, wherever they are": _beginning,
        "Python's True and False are 1 and 0, while Answer.TRUE is 0 and Answer.FALSE is 1: return the Answer": (
            lambda text: _parsed(text) == TRUE
        ),
    },
    look="doubt first, then no, then yes, in lower case and in the first sentence; a text without an answer is Answer.IDK",
)

outcome = Check(
    right=lambda answer, true: Outcome(grapheval.outcome([answer], [true])[0]),
    cases=[(answer, true) for true in (True, False) for answer in Answer],
    mistakes={
        "calling a false statement false is right: compare the answer with the truth of the statement": (
            lambda answer, true: [Outcome.RIGHT, Outcome.WRONG, Outcome.IDK][answer]
        ),
        "'I don't know' is neither right nor wrong: it has an outcome of its own": (
            lambda answer, true: Outcome.RIGHT if (answer == TRUE) == true else Outcome.WRONG
        ),
    },
    look="RIGHT if the answer agrees with the graph, WRONG if it does not, IDK for 'I don't know'",
)


def _eq2(answer: Answer, corrupted: list[Answer], **options) -> tuple[float, float, float]:
    """Eq. 2 of one triple, by the library."""
    table = pd.DataFrame({"triple": 0, "negative": range(len(corrupted) + 1), "answer": [answer, *corrupted]})
    return tuple(grapheval.eq2(table, **options)[METRICS].iloc[0].astype(float))


def _terms(answer: Answer, corrupted: list[Answer], over=np.mean, floor: float = 0.0) -> tuple[float, ...]:
    """Eq. 2 as printed in the paper, with another mean or without the floor at 0."""
    own = [answer != FALSE, answer != IDK, answer == TRUE]
    other = [{TRUE}, {IDK}, {TRUE, IDK}]
    return tuple(max(floor, f - over([float(c in bad) for c in corrupted])) for f, bad in zip(own, other, strict=True))


eq2 = Check(
    right=_eq2,
    cases=[
        *((TRUE, [FALSE]), (TRUE, [TRUE]), (IDK, [IDK]), (FALSE, [FALSE])),
        *((FALSE, [TRUE, TRUE]), (TRUE, [TRUE, FALSE, IDK, FALSE]), (IDK, [TRUE, FALSE])),
    ],
    mistakes={
        "here T and F of the corruptions are exchanged, as in the released code: a corruption that is called true "
        "must cost Truthful": partial(_eq2, variant="released"),
        "a metric is never below 0: mind the max in Eq. 2": partial(_terms, floor=-9.0),
        "Eq. 2 takes the mean over the corruptions, neither their sum nor the worst of them": partial(_terms, over=max),
        "this follows the text of section 3.3; by Eq. 2 a true triple that is called false is still informative": (
            partial(_eq2, false_scores_zero=True)
        ),
    },
    look="three numbers, each max(0, F - mean of F'), with F and F' from the table above",
    remark="Next it scores six kinds of models.",
)


def _judge(states, w, b, gain, shift, a, c, activation: str = "gelu", unbiased: bool = False, norm: bool = True):
    """The judge of ``probelib.grapheval.judge`` in torch; the options are common mistakes."""
    import torch

    given = (states, w, b, gain, shift, a, c)
    v, w, b, gain, shift, a, c = (torch.as_tensor(np.array(x, dtype=np.float64)) for x in given)
    u = getattr(torch.nn.functional, activation)(v @ w.T + b)
    if norm:
        spread = torch.sqrt(u.var(-1, keepdim=True, unbiased=unbiased) + 1e-5)
        u = (u - u.mean(-1, keepdim=True)) / spread * gain + shift
    return torch.softmax(u @ a + c, dim=-1).numpy()


def _weights(n: int, width: int, seed: int) -> tuple[np.ndarray, ...]:
    draw = np.random.default_rng(seed).normal
    shapes = [(n, width), (width, width), width, width, width, (width, 3), 3]
    return tuple(draw(size=shape).round(2) for shape in shapes)


judge = Check(
    right=_judge,
    cases=[_weights(1, 4, 0), _weights(3, 5, 1)],
    mistakes={
        "there is a ReLU in place of the GELU": partial(_judge, activation="relu"),
        "the LayerNorm is missing": partial(_judge, norm=False),
        "LayerNorm's variance divides by D; torch.var divides by D - 1 unless you say correction=0": (
            partial(_judge, unbiased=True)
        ),
        "W has to be transposed: nn.Linear computes v W^T + b": lambda v, w, *rest: _judge(v, np.transpose(w), *rest),
        "these are logits: a softmax over the last axis makes them probabilities": lambda *of: np.log(_judge(*of)),
    },
    look="softmax(LayerNorm(GELU(v W^T + b)) A + c), and each row sums to 1",
    tolerance=1e-3,  # GELU by tanh passes, too
)

blind = Check(
    right=grapheval.majority_given_truth,
    cases=[
        ([0, 0, 1, 2, 2, 2, 1], [True, True, True, False, False, False, False], [True, False, True]),
        ([1, 1, 1, 0, 2], [True, False, False, True, True], [False, False]),
    ],
    mistakes={
        "this is the most frequent answer of all; separate the true and the false statements": (
            lambda answers, true, asked: grapheval.majority(answers, len(asked))
        )
    },
    look="one answer for every true statement, one for every false one: the most frequent of the training set",
)


def _ece(probability, right, weighted: bool = True, signed: bool = False) -> float:
    table = stats.reliability(probability, right)
    gap = table["probability"] - table["right"]
    gap = gap if signed else gap.abs()
    return float(np.average(gap, weights=table["n"] if weighted else None))


def _ece_of_eleven(probability, right) -> float:
    probability, right = np.asarray(probability, float), np.asarray(right, float)
    bins = (10 * probability).astype(int)
    return sum(abs((probability - right)[bins == k].sum()) for k in range(11)) / len(bins)


ece = Check(
    right=stats.ece,
    cases=[
        ([0.95, 0.95, 0.95, 0.15], [1, 1, 0, 1]),
        ([0.42, 0.48, 0.61, 0.66, 0.69, 1.0], [0, 1, 1, 0, 1, 1]),
        ([1.0, 1.0], [True, True]),
        ([0.92, 0.98, 1.0, 1.0], [1, 1, 0, 1]),
    ],
    mistakes={
        "a probability of 1.0 has a bin of its own here: it belongs to the last of the ten": _ece_of_eleven,
        "each bin weighs as much as it has cases": partial(_ece, weighted=False),
        "gaps above and below the diagonal must not cancel: take the absolute value": partial(_ece, signed=True),
        "this is the difference of the two means over all cases: go bin by bin": lambda p, r: abs(
            np.mean(p) - np.mean(r)
        ),
        "this is the Brier score; compare the means of each bin": stats.brier,
    },
    look="ten bins of width 0.1; |mean probability - share right| of each, weighted by its cases; 1.0 is in the last bin",
)


def alt_six_models(defined: dict[str, np.ndarray], released: dict[str, np.ndarray]) -> str:
    """Alt text of Eq. 2 as defined and as released: model -> (Truthful, Informative, Correct)."""
    correct = [f"{name} {values[2]:.2f} and {released[name][2]:.2f}" for name, values in defined.items()]
    return (
        f"Heat maps of Truthful, Informative, Correct of {len(defined)} models. Correct as defined and released: "
        f"{'; '.join(correct)}."
    )


def finding_six_models(defined: dict[str, np.ndarray], released: dict[str, np.ndarray]) -> str:
    """The best model by Correct, as defined and as released, and what a coin gets; arguments as for ``alt_six_models``."""
    best, as_released = (max(values, key=lambda name: values[name][2]) for values in (defined, released))
    return (
        f"By Correct the best model is **{best}** as defined, and **{as_released}** as released. A coin, which knows nothing, "
        f"gets {defined['coin'][2]:.2f} for Correct. A model that knows half of the facts and admits the others gets "
        f"{defined['knows half, admits it'][2]:.2f}."
    )


def finding_metrics(model: str, scores: pd.DataFrame, labels: pd.DataFrame) -> str:
    """A model's metrics with 95 % intervals, and the share of its right answers.

    scores   one column per metric, one row per triple   labels   ``true``, ``answer``, ``outcome`` of every statement
    """
    intervals = {metric: grapheval.score_interval(scores[metric]) for metric in METRICS}
    metrics = [f"{m} {v['mean']:.2f} [{v['low']:.2f}, {v['high']:.2f}]" for m, v in intervals.items()]
    right = labels["outcome"].eq(Outcome.RIGHT).groupby(labels["true"]).mean()
    return (
        f"{model}: {', '.join(metrics)}. It is right about {right[True]:.0%} of the true statements and {right[False]:.0%} of "
        f"the false ones, and says *I don't know* to {(labels['answer'] == IDK).mean():.0%} of all."
    )


def finding_pairs(model: str, lead: pd.Series) -> str:
    """The share of pairs that a model ranks correctly.

    lead   per pair, rank of the answer to the true statement less that to the false one; 0 for the same answer
    """
    ordered = grapheval.score_interval((np.sign(lead) + 1) / 2)
    return (
        f"{model} ranks {ordered['mean']:.0%} [{ordered['low']:.0%}, {ordered['high']:.0%}] of {len(lead)} pairs correctly "
        f"(guessing: 50%). Both statements get the same answer in {(lead == 0).mean():.0%} of the pairs."
    )


def alt_predicted(hits: dict[str, int], n: int) -> str:
    """Alt text of the judges' accuracies. ``hits``: judge or baseline -> held-out answers predicted, of ``n``."""
    bars = [f"{name} {k / n:.2f}" for name, k in hits.items()]
    return f"Bars with 95 % intervals: share of {n} held-out answers that is predicted: {', '.join(bars)}."


def finding_judge(judged: np.ndarray, usual: np.ndarray) -> str:
    """What a judge gains over the most frequent answer: whether each predicts each held-out answer."""
    test = stats.mcnemar(usual, judged)
    return (
        f"The judge predicts {judged.mean():.1%} of the answers; the most frequent answer alone {usual.mean():.1%}. It gains "
        f"{test['gained']} statements and loses {test['lost']} (McNemar p = {test['p']:.2g}): what it reads in the state is "
        f"worth {judged.mean() - usual.mean():+.1%}, not {judged.mean():.1%}."
    )


def alt_reliability(curve: pd.DataFrame) -> str:
    """Alt text of the reliability curve: ``probability`` and ``right`` of each bin."""
    points = [f"{y:.2f} at {x:.2f}" for x, y in zip(curve["probability"], curve["right"], strict=True)]
    return (
        "Share predicted correctly against the judge's probability, 95 % intervals and diagonal, "
        f"{len(points)} bins: {', '.join(points)}."
    )


def finding_confidence(confidence: np.ndarray, hit: np.ndarray, usual: float) -> str:
    """Whether a judge is as accurate as it is sure.

    confidence, hit   the probability of each prediction, and whether it is right   usual   accuracy of the most frequent answer
    """
    sure, gap = confidence >= 0.9, confidence.mean() - hit.mean()
    right = f"Where it is 90 % sure ({sure.sum()} statements), {hit[sure].mean():.0%} are right." if sure.any() else ""
    return (
        f"{right or 'The judge is never 90 % sure.'} The judge's mean confidence is {confidence.mean():.2f}, its accuracy "
        f"{hit.mean():.2f} (most frequent answer: {usual:.2f}): it is {'over' if gap > 0 else 'under'}confident by "
        f"{abs(gap):.2f} on average."
    )
