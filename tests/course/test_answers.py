"""The labs: answers that look odd and are right, answers that look right and are not, free answers
that cannot be used."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import scipy.stats

from probelib.course import lab1, lab2, lab5, lab6, lab7, lab8
from probelib.course.checks import NotYet
from probelib.grapheval import Answer

RIGHT = [
    (lab5.blind, lambda a, t, asked: np.array(lab5.blind.right(a, t, asked), dtype=float)),
    (lab6.kendall, lambda x, y: scipy.stats.kendalltau(x, y).statistic),
    (lab6.pearson, lambda x, y: np.corrcoef(x, y)[0, 1]),
    (lab1.answer_logprobs, lambda p, n, ids: p[-len(ids) :][range(len(ids)), ids]),
    (lab8.facts_needed, lambda width: (1.96 / width) ** 2 - 1.96**2),
]


@pytest.mark.parametrize(("check", "answer"), RIGHT)
def test_another_way_to_be_right_passes(check, answer):
    check(answer)


def table(n=12, **columns):
    objects = ["Mars", "Jupiter", "Saturn", "Uranus"]
    rows = [("planet", f"moon {i}", objects[i % 4]) for i in range(n)]
    return pd.DataFrame(rows, columns=lab8.COLUMNS).assign(**columns)


ASKED = {"planet": ["Which planet does [X] orbit?", "What does [X] go round?"]}
questions = lambda *texts: lambda: {"capital_of": [*texts], "has_capital": []}
mine = lambda own, texts=ASKED: lambda: (own, texts)


def stacked_badly(table):
    """The anchors as columns hold them: arrays in an array."""
    found = lab2.anchors.right(table)
    for part in "fn":
        rows, found[part] = found[part], np.empty(len(found[part]), dtype=object)
        found[part][:] = list(rows)
    return found


EXPLAINED = [
    (lab8.both_ways, lambda pairs: pairs, "a DataFrame with the columns"),
    (lab8.both_ways, lambda pairs: table().head(len(pairs)), "two rows per pair"),
    (lab8.templates, questions("Where is [X]?", "Where is [X]?"), "two different questions"),
    (lab8.templates, questions("Is [X] in [Y]?", "Where is [X]?"), "no [Y]"),
    (lab8.project, mine(table(object="Mars")), "3 different answers"),
    (lab8.project, mine(pd.concat([table(), table(object="Mars")[1:2]])), "two right answers"),
    (lab2.fool, lambda: (np.zeros(2), np.zeros((7, 2)), np.zeros((5, 2))), "0 / 0"),
    (lab1.answer_logprobs, lambda p, n, ids: [p[n + len(ids), t] for t in ids], "n_prompt - 1"),
    (lab2.anchors, stacked_badly, "stacks the arrays of a column"),
    (lab5.outcome, lambda answer, true: answer, "gives Answer.TRUE, but Outcome."),
    (
        lab7.absmax,
        lambda w, b: (lab7.absmax.right(w, b)[0], np.ones((len(w), 1))),
        "one number per row",
    ),
]


@pytest.mark.parametrize(("check", "answer", "said"), EXPLAINED)
def test_a_wrong_answer_gets_its_explanation_in_one_line(check, answer, said):
    with pytest.raises(NotYet) as complaint:
        check(answer)
    assert said in str(complaint.value) and "\n" not in str(complaint.value)


def test_weights_are_restored_after_an_error():
    import torch

    layer = torch.nn.Linear(2, 2)
    model = SimpleNamespace(hf_model=torch.nn.ModuleDict({"layer": layer}))
    before = layer.weight.detach().clone()
    zero = lab7.with_weights(model, ["layer"], lambda w: 0 * w, lambda: layer.weight.abs().sum())
    assert zero == 0
    with pytest.raises(ZeroDivisionError):
        lab7.with_weights(model, ["layer"], lambda w: 2 * w, lambda: 1 / 0)
    assert (layer.weight == before).all()


def test_what_the_labs_say_of_eq2_is_so():
    """An exchanged sign turns the ranking round: perfect loses, always-true wins."""
    perfect, always = (Answer.TRUE, [Answer.FALSE]), (Answer.TRUE, [Answer.TRUE])
    assert lab5.eq2.right(*perfect) == (1, 1, 1) == lab5.eq2.right(*always, variant="released")
    assert lab5.eq2.right(*perfect, variant="released") == (0, 1, 0) == lab5.eq2.right(*always)
