"""Labs 5 to 8: answers that look odd and are right, and free answers that cannot be used."""

import numpy as np
import pandas as pd
import pytest
import scipy.stats

from probelib.course import lab5, lab6, lab7, lab8
from probelib.course.checks import NotYet
from probelib.measures.grapheval import Answer


def normal_tau(x, y):
    return scipy.stats.kendalltau(x, y).statistic


def another_bootstrap(values, times, rng):
    return [
        np.quantile([np.mean(np.random.choice(values, len(values))) for _ in range(times)], q) for q in (0.025, 0.975)
    ]


def tanh_judge(v, w, b, gain, shift, a, c):
    x = v @ w.T + b
    u = 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
    u = (u - u.mean(1, keepdims=True)) / u.std(1, keepdims=True) * gain + shift
    e = np.exp(u @ a + c)
    return e / e.sum(1, keepdims=True)


RIGHT = [
    (lab5.eq2, lambda a, c: [(a != 1) * (1 - c.count(0) / len(c)), (a != 2) * (1 - c.count(2) / len(c)),
                             (a == 0) * c.count(1) / len(c)]),
    (lab5.read_answer, lambda text: int(lab5._words(text))),
    (lab5.judge, tanh_judge),
    (lab5.blind, lambda a, t, asked: np.array(lab5.blind.right(a, t, asked), dtype=float)),
    (lab6.kendall, normal_tau),
    (lab6.pearson, lambda x, y: np.corrcoef(x, y)[0, 1]),
    (lab6.bootstrap_interval, another_bootstrap),
    (lab6.sign_flip_p, lambda d: scipy.stats.permutation_test(
        (d,), np.mean, permutation_type="samples", n_resamples=np.inf).pvalue),
    (lab7.fit_line, lambda s, v: (*np.polyfit(np.log10(s), v, 1)[::-1], np.corrcoef(np.log10(s), v)[0, 1] ** 2)),
    (lab7.absmax, lambda w, bits: [(w * (2 ** (bits - 1) - 1) / np.abs(w).max(1, keepdims=True)).round().astype(int),
                                   np.abs(w).max(1, keepdims=True) / (2 ** (bits - 1) - 1)]),
    (lab8.facts_needed, lambda width: (1.96 / width) ** 2 - 1.96**2),
    (lab8.both_ways, lambda pairs: pd.DataFrame([(o, s, r) for r, s, o in lab8._both(pairs)],
                                                columns=["object", "subject", "relation"])),
]  # fmt: skip


@pytest.mark.parametrize(("check", "answer"), RIGHT)
def test_another_way_to_be_right_passes(check, answer, capsys):
    check(answer)
    assert "✓" in capsys.readouterr().out


def table(relation="planet", n=12):
    objects = ["Mars", "Jupiter", "Saturn", "Uranus"]
    return pd.DataFrame([(relation, f"moon {i}", objects[i % 4]) for i in range(n)], columns=lab8.COLUMNS)


ASKED = {"planet": ["Which planet does [X] orbit?", "What does [X] go round?"]}
WRONG = [
    (lab8.both_ways, lambda pairs: pairs, "a DataFrame with the columns"),
    (lab8.both_ways, lambda pairs: pd.DataFrame(lab8._both(pairs), columns=["relation", "object", "subject"]), "wrong way round"),
    (lab8.both_ways, lambda pairs: pd.DataFrame([("country", *p) for p in pairs], columns=lab8.COLUMNS), "3 of 6 rows"),
    (lab8.both_ways, lambda pairs: pd.DataFrame([("P36", *p) for p in pairs * 2], columns=lab8.COLUMNS), "two rows a pair"),
    (lab8.templates, lambda: {"country": ["Where is [X]?"] * 2, "capital": ["?"]}, "two different wordings"),
    (lab8.templates, lambda: {"country": ["Where?", "Where is [X]?"], "capital": []}, "0 places [X]"),
    (lab8.templates, lambda: {"country": ["Is [X] in [Y]?", "Where is [X]?"], "capital": []}, "must not name its answer"),
    (lab8.templates, lambda: {"country": ["[X] lies in", "Where is [X]?"], "capital": []}, "question mark"),
    (lab8.templates, lambda: ["Where is [X]?"], "wanted is a dict"),
    (lab8.project, lambda: table(), "two things are wanted"),
    (lab8.project, lambda: (table().rename(columns={"object": "planet"}), ASKED), "relation, subject, object"),
    (lab8.project, lambda: (table().assign(object=""), ASKED), "my_facts.csv:2: an empty object"),
    (lab8.project, lambda: (table(n=6), ASKED), "fewer than ten"),
    (lab8.project, lambda: (table().assign(object="Mars"), ASKED), "nothing to choose from"),
    (lab8.project, lambda: (table().assign(subject="Io"), ASKED), "two right answers"),
    (lab8.project, lambda: (table(), {"moon": ASKED["planet"]}), "the relations ['planet']"),
]  # fmt: skip


@pytest.mark.parametrize(("check", "answer", "said"), WRONG)
def test_a_free_answer_that_cannot_be_used_is_explained(check, answer, said):
    with pytest.raises(NotYet) as complaint:
        check(answer)
    assert said in str(complaint.value) and "\n" not in str(complaint.value)


def test_weights_come_back_whatever_happens():
    from probelib import lm

    model = lm.load("atlas-neox-0.15m")
    layer = next(name for name, module in model.model.named_modules() if name.endswith("dense"))
    before = model.model.get_submodule(layer).weight.detach().clone()
    seen = lab7.with_weights(
        model, [layer], lambda w: 0 * w, lambda: model.model.get_submodule(layer).weight.abs().sum().item()
    )
    assert seen == 0
    with pytest.raises(ZeroDivisionError):
        lab7.with_weights(model, [layer], lambda w: 2 * w, lambda: 1 / 0)
    assert (model.model.get_submodule(layer).weight == before).all()


def test_what_the_labs_say_of_eq2_is_so():
    """An exchanged sign turns the ranking round: perfect loses, always-true wins."""
    assert (
        lab5._eq2(Answer.TRUE, [Answer.FALSE]) == (1, 1, 1) == lab5._eq2(Answer.TRUE, [Answer.TRUE], variant="released")
    )
    assert (
        lab5._eq2(Answer.TRUE, [Answer.FALSE], variant="released") == (0, 1, 0) == lab5._eq2(Answer.TRUE, [Answer.TRUE])
    )
