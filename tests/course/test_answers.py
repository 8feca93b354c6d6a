"""The labs: answers that look odd and are right, answers that look right and are not, free answers that cannot be used."""

from types import SimpleNamespace

import nbformat
import numpy as np
import pandas as pd
import pytest
import scipy.stats

from probelib import grapheval, paths
from probelib.course import lab1, lab2, lab3, lab4, lab5, lab6, lab7, lab8
from probelib.course.checks import NotYet
from probelib.grapheval import Answer, Outcome


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


def absmax_of_float32(w, bits):
    w = w.astype(np.float32)
    scale = np.abs(w).max(1) / np.float32(2 ** (bits - 1) - 1)
    return np.round(w / scale[:, None]), scale


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
                                   np.abs(w).max(1) / (2 ** (bits - 1) - 1)]),
    (lab7.absmax, absmax_of_float32),
    (lab1.choose, lambda labels, v, n, per: np.array(labels)[np.argmax(np.array(v) / (np.array(n) if per else 1))]),
    (lab1.answer_logprobs, lambda p, n, ids: p[-len(ids):][range(len(ids)), ids]),
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
    (lab8.both_ways, lambda pairs: pd.DataFrame(lab8._both(pairs), columns=["relation", "object", "subject"]),
     "exchanged subject and object"),
    (lab8.both_ways, lambda pairs: pd.DataFrame([("capital_of", *p) for p in pairs], columns=lab8.COLUMNS), "3 of 6 rows"),
    (lab8.both_ways, lambda pairs: pd.DataFrame([("P36", *p) for p in pairs * 2], columns=lab8.COLUMNS), "two rows per pair"),
    (lab8.templates, lambda: {"capital_of": ["Where is [X]?"] * 2, "has_capital": ["?"]}, "two different paraphrases"),
    (lab8.templates, lambda: {"capital_of": ["Where?", "Where is [X]?"], "has_capital": []}, "0 slots [X]"),
    (lab8.templates, lambda: {"capital_of": ["Is [X] in [Y]?", "Where is [X]?"], "has_capital": []}, "must not name its answer"),
    (lab8.templates, lambda: {"capital_of": ["[X] lies in", "Where is [X]?"], "has_capital": []}, "question mark"),
    (lab8.templates, lambda: ["Where is [X]?"], "expected is a dict"),
    (lab8.project, lambda: table(), "two things are expected"),
    (lab8.project, lambda: (table().rename(columns={"object": "planet"}), ASKED), "relation, subject, object"),
    (lab8.project, lambda: (table().assign(object=""), ASKED), "my_facts.csv:2: an empty object"),
    (lab8.project, lambda: (table(n=6), ASKED), "fewer than ten"),
    (lab8.project, lambda: (table().assign(object="Mars"), ASKED), "nothing to choose from"),
    (lab8.project, lambda: (pd.concat([table(), table().assign(object="Mars")[1:2]]), ASKED), "two right answers"),
    (lab8.project, lambda: (pd.concat([table(), table()[:1]]), ASKED), "twice in the table: planet, moon 0, Mars"),
    (lab8.templates, lambda: {"capital_of": ["Where is [X]?", 3], "has_capital": []}, "each of them a text"),
    (lab8.templates, lambda: {"capital_of": [["Where is [X]?"]], "has_capital": []}, "each of them a text"),
    (lab2.fool, lambda: (np.zeros(2), np.zeros((7, 2)), np.zeros((5, 2))), "0 / 0"),
    (lab1.answer_logprobs, lambda p, n, ids: [p[n + i, token] for i, token in enumerate(ids)], "n_prompt - 1"),
    (lab4.vectors, lambda bags: bags, "gives 1 at [0, 0], but 0."),
    (lab5.outcome, lambda answer, true: answer, "gives Answer.TRUE, but Outcome."),
    (lab8.project, lambda: (table(), {"moon": ASKED["planet"]}), "the relations ['planet']"),
]  # fmt: skip


@pytest.mark.parametrize(("check", "answer", "said"), WRONG)
def test_a_free_answer_that_cannot_be_used_is_explained(check, answer, said):
    with pytest.raises(NotYet) as complaint:
        check(answer)
    assert said in str(complaint.value) and "\n" not in str(complaint.value)


def split_ties(x, y):
    """Tau with the pairs that are tied in both lists counted in Tx and in Ty."""
    sign = lambda v: np.sign(np.subtract.outer(v, v))[np.triu_indices(len(v), 1)]
    a, b = sign(x), sign(y)
    p, q = (a * b > 0).sum(), (a * b < 0).sum()
    return (p - q) / np.sqrt((p + q + (a == 0).sum()) * (p + q + (b == 0).sum()))


def stacked_badly(table):
    """The anchors as columns hold them: arrays in an array."""
    found = lab2.anchors.right(table)
    for part in "fn":
        rows, found[part] = found[part], np.empty(len(found[part]), dtype=object)
        found[part][:] = list(rows)
    return found


def own_bin_for_one(probability, right):
    gap, at = np.subtract(probability, right), np.digitize(probability, np.linspace(0, 1, 11))
    return sum(abs(gap[at == k].sum()) for k in set(at.tolist())) / len(gap)


def said_by(words):
    return lambda text: (
        Answer.FALSE if words(text, "no", "false") else Answer.TRUE if words(text, "yes", "true") else Answer.IDK
    )


ALMOST = [  # what passes the cases that come to mind, and what is said of it
    (lab2.anchors, stacked_badly, "f has the shape (2,) and the type object"),
    (lab3.n95, lambda c: min((n for n in c if c[n] > 0.95 * c[max(c)]), default=np.nan), "has reached it: >=, not >"),
    (lab4.nearest, lambda v, o, n: np.argsort(-(v @ v[o]), kind="stable")[1 : n + 1], "remove it by its number"),
    (lab5.read_answer, lab5._letters, "whole words"),
    (lab5.read_answer, lab5._beginning, "need not begin with yes or no"),
    (lab5.read_answer, said_by(lambda text, *known: any(word in text.lower() for word in known)), "doubt first"),
    (lab5.ece, own_bin_for_one, "a bin of its own"),
    (lab6.kendall, split_ties, "counts in neither Tx nor Ty"),
    (lab7.absmax, lambda w, bits: (lab7._absmax(w, bits)[0], lab7._absmax(w, bits)[1][:, None]), "the shape (2, 1)"),
    (lab7.absmax, lambda w, bits: [part.tolist() for part in lab7._absmax(w, bits)], "arrays are expected"),
    (
        lab8.both_ways,
        lambda pairs: pd.DataFrame([*lab8._both(pairs)] * 2, columns=lab8.COLUMNS),
        "12 rows, but 6 are expected",
    ),
]


@pytest.mark.parametrize(("check", "answer", "said"), ALMOST)
def test_a_nearly_right_answer_gets_its_explanation(check, answer, said):
    with pytest.raises(NotYet) as complaint:
        check(answer)
    assert said in str(complaint.value)


def cell(lab: str, words: str) -> str:
    """The source of the cell of a lab, by words that are in no other."""
    (path,) = (paths.NOTEBOOKS / "exercises").glob(f"{lab}_*.ipynb")
    (found,) = [cell.source for cell in nbformat.read(path, as_version=4).cells if words in cell.source]
    return found


def test_who_compares_answers_by_is_gets_the_same_numbers():
    """The check gives members of ``Answer``, and so do the cells after it."""
    sample = pd.DataFrame({"triple": 0, "negative": [0, 1], "true": [True, False]})
    outcome = lambda answer, true: Outcome.RIGHT if (answer is Answer.TRUE) is true else Outcome.WRONG
    eq2 = lambda a, c: [float(a is Answer.TRUE), 1.0, float(a is Answer.TRUE and c[0] is Answer.FALSE)]
    said = []
    values = {"sample": sample, "written": ["yes", "no"], "read_answer": lab5._parsed, "outcome": outcome, "eq2": eq2,
              "pd": pd, "Answer": Answer, "Outcome": Outcome, "grapheval": grapheval, "METRICS": grapheval.METRICS,
              "T": Answer.TRUE, "F": Answer.FALSE, "K": Answer.IDK, "lab5": lab5, "model_name": "model",
              "report": SimpleNamespace(say=said.append)}  # fmt: skip
    exec(cell("lab5", 'labels["outcome"] ='), values)
    exec(cell("lab5", "own = labels"), values)
    assert values["labels"]["outcome"].tolist() == [Outcome.RIGHT] * 2
    assert values["scores"].to_numpy().tolist() == [[1, 1, 1]] and "100% of the true statements" in said[0]


def test_the_most_frequent_answer_is_counted_over_facts():
    """Eight facts with one answer and two with two: always the usual one is right 9 times of 10, not 3 of 4."""
    mine = SimpleNamespace(facts=pd.DataFrame({"relation": ["a"] * 8 + ["b"] * 2, "object": [*"xxxxxxxxyz"]}))
    values = {"mine": mine}
    exec("\n".join(cell("lab8", "usual =").split("\n")[:2]), values)
    assert values["usual"] == pytest.approx(0.9)


def test_weights_that_are_read_are_on_the_cpu():
    """``numpy()`` knows no other place, and a model takes a GPU where there is one."""
    from probelib import lm

    loaded = []
    stop = {"lm": SimpleNamespace(load=lambda *given, **options: loaded.append(options) or lm), "model_name": "model"}
    with pytest.raises(AttributeError):  # what was loaded is no model
        exec(cell("lab7", "full, eight, four ="), stop)
    assert [options["device"] for options in loaded] == ["cpu"] * 3


def test_weights_are_restored_after_an_error():
    from probelib import lm

    model = lm.load("atlas-neox-0.15m")
    layer = next(name for name, module in model.hf_model.named_modules() if name.endswith("dense"))
    before = model.hf_model.get_submodule(layer).weight.detach().clone()
    seen = lab7.with_weights(
        model, [layer], lambda w: 0 * w, lambda: model.hf_model.get_submodule(layer).weight.abs().sum().item()
    )
    assert seen == 0
    with pytest.raises(ZeroDivisionError):
        lab7.with_weights(model, [layer], lambda w: 2 * w, lambda: 1 / 0)
    assert (model.hf_model.get_submodule(layer).weight == before).all()


def test_what_the_labs_say_of_eq2_is_so():
    """An exchanged sign turns the ranking round: perfect loses, always-true wins."""
    assert (
        lab5._eq2(Answer.TRUE, [Answer.FALSE]) == (1, 1, 1) == lab5._eq2(Answer.TRUE, [Answer.TRUE], variant="released")
    )
    assert (
        lab5._eq2(Answer.TRUE, [Answer.FALSE], variant="released") == (0, 1, 0) == lab5._eq2(Answer.TRUE, [Answer.TRUE])
    )
