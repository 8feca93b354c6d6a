"""Lab 5: a model's answers, their scores, and a judge that predicts them (GraphEval)."""

import numpy as np
import pandas as pd

from probelib import grapheval, stats
from probelib.course.checks import Check, exercise
from probelib.grapheval import METRICS, Answer, Outcome

TRUE, FALSE, IDK = Answer


@exercise("lab5.read_answer", released={"variant": "released"})
def read_answer(text, **variant):
    """The library's parser; a text without an answer counts as "I don't know"."""
    found = grapheval.parse_answer(text, **variant)
    return IDK if found is None else found


outcome = Check(
    "lab5.outcome",
    lambda answer, true: Outcome(grapheval.outcome([answer], [true])[0]),
    [(answer, true) for true in (True, False) for answer in Answer],
    as_said=lambda answer, true: [Outcome.RIGHT, Outcome.WRONG, Outcome.IDK][answer],
    no_idk=lambda answer, true: Outcome.RIGHT if (answer == TRUE) == true else Outcome.WRONG,
)


@exercise(
    "lab5.eq2",
    cases=[
        *((TRUE, [FALSE]), (TRUE, [TRUE]), (IDK, [IDK]), (FALSE, [FALSE])),
        *((FALSE, [TRUE, TRUE]), (TRUE, [TRUE, FALSE, IDK, FALSE]), (IDK, [TRUE, FALSE])),
    ],
    exchanged={"variant": "released"},
    text=lambda answer, corrupted: (0.0,) * 3 if answer == FALSE else eq2.right(answer, corrupted),
)
def eq2(answer, corrupted, **options):
    """Eq. 2 of one triple, by the library."""
    answers = [answer, *corrupted]
    table = pd.DataFrame({"triple": 0, "negative": range(len(answers)), "answer": answers})
    return tuple(grapheval.eq2(table, **options)[METRICS].iloc[0].astype(float))


def _weights(n, width, seed):
    draw = np.random.default_rng(seed).normal
    shapes = [(n, width), (width, width), width, width, width, (width, 3), 3]
    return tuple(draw(size=shape).round(2) for shape in shapes)


@exercise(
    "lab5.judge",
    cases=[_weights(1, 4, 0), _weights(3, 5, 1)],
    relu={"activation": "relu"},
    transposed=lambda v, w, *rest: judge.right(v, np.transpose(w), *rest),
)
def judge(*weights, activation="gelu"):
    """The judge of ``probelib.grapheval.judge`` in torch, with another activation as a mistake."""
    import torch

    v, w, b, gain, shift, a, c = (torch.as_tensor(np.array(x, dtype=float)) for x in weights)
    u = getattr(torch.nn.functional, activation)(v @ w.T + b)
    u = torch.nn.functional.layer_norm(u, u.shape[-1:], gain, shift)
    return torch.softmax(u @ a + c, dim=-1).numpy()


blind = Check(
    "lab5.blind",
    grapheval.majority_given_truth,
    one_for_all=lambda answers, _, asked: grapheval.majority(answers, len(asked)),
)

ece = Check("lab5.ece", stats.ece, means=lambda p, r: abs(np.mean(p) - np.mean(r)))
