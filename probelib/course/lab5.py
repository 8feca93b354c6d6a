"""Lab 5: a model's answers, their scores, and a judge that predicts them (GraphEval)."""

import re
from functools import partial

import numpy as np
import pandas as pd

from probelib import grapheval, stats
from probelib.course.checks import Check
from probelib.grapheval import METRICS, Answer, Outcome

TRUE, FALSE, IDK = Answer


def _parsed(text, *variant):
    """The library's parser; a text without an answer counts as "I don't know"."""
    found = grapheval.parse_answer(text, *variant)
    return IDK if found is None else found


_TEXTS = """Yes, the statement is true.|No, the statement is false.|I don't know.| no
No, the statement is not true.|I am not sure whether that is true.|I don't know if this is false.
Yes. Is this statement true? Rome is in Spain. No.|The capital of France is Paris.
Yes, Norway is in Europe.|True.|The statement is false."""

read_answer = Check(
    "lab5.read_answer",
    _parsed,
    [(text,) for text in re.split("[|\n]", _TEXTS)],
    released=lambda text: _parsed(text, "released"),
)

outcome = Check(
    "lab5.outcome",
    lambda answer, true: Outcome(grapheval.outcome([answer], [true])[0]),
    [(answer, true) for true in (True, False) for answer in Answer],
    as_said=lambda answer, true: [Outcome.RIGHT, Outcome.WRONG, Outcome.IDK][answer],
    no_idk=lambda answer, true: Outcome.RIGHT if (answer == TRUE) == true else Outcome.WRONG,
)


def _eq2(answer, corrupted, **options):
    """Eq. 2 of one triple, by the library."""
    answers = [answer, *corrupted]
    table = pd.DataFrame({"triple": 0, "negative": range(len(answers)), "answer": answers})
    return tuple(grapheval.eq2(table, **options)[METRICS].iloc[0].astype(float))


eq2 = Check(
    "lab5.eq2",
    _eq2,
    [
        *((TRUE, [FALSE]), (TRUE, [TRUE]), (IDK, [IDK]), (FALSE, [FALSE])),
        *((FALSE, [TRUE, TRUE]), (TRUE, [TRUE, FALSE, IDK, FALSE]), (IDK, [TRUE, FALSE])),
    ],
    exchanged=partial(_eq2, variant="released"),
    text=lambda answer, corrupted: (0.0,) * 3 if answer == FALSE else _eq2(answer, corrupted),
)


def _judge(*weights, activation="gelu"):
    """The judge of ``probelib.grapheval.judge`` in torch, with another activation as a mistake."""
    import torch

    v, w, b, gain, shift, a, c = (torch.as_tensor(np.array(x, dtype=float)) for x in weights)
    u = getattr(torch.nn.functional, activation)(v @ w.T + b)
    u = torch.nn.functional.layer_norm(u, u.shape[-1:], gain, shift)
    return torch.softmax(u @ a + c, dim=-1).numpy()


def _weights(n, width, seed):
    draw = np.random.default_rng(seed).normal
    shapes = [(n, width), (width, width), width, width, width, (width, 3), 3]
    return tuple(draw(size=shape).round(2) for shape in shapes)


judge = Check(
    "lab5.judge",
    _judge,
    [_weights(1, 4, 0), _weights(3, 5, 1)],
    tolerance=1e-3,  # GELU by tanh passes, too
    relu=partial(_judge, activation="relu"),
    transposed=lambda v, w, *rest: _judge(v, np.transpose(w), *rest),
)

blind = Check(
    "lab5.blind",
    grapheval.majority_given_truth,
    [
        ([0, 0, 1, 2, 2, 2, 1], [True] * 3 + [False] * 4, [True, False, True]),
        ([1, 1, 1, 0, 2], [True, False, False, True, True], [False, False]),
    ],
    one_for_all=lambda answers, _, asked: grapheval.majority(answers, len(asked)),
)

ece = Check(
    "lab5.ece",
    stats.ece,
    [
        ([0.95, 0.95, 0.95, 0.15], [1, 1, 0, 1]),
        ([0.42, 0.48, 0.61, 0.66, 0.69, 1.0], [0, 1, 1, 0, 1, 1]),
        ([1.0, 1.0], [True, True]),
        ([0.92, 0.98, 1.0, 1.0], [1, 1, 0, 1]),
    ],
    means=lambda p, r: abs(np.mean(p) - np.mean(r)),
)
