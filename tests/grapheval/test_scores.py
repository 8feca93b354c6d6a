"""GraphEval's labels: what a text answers, which models answer, templates, settings, bad inputs."""

import numpy as np
import pandas as pd
import pytest

from probelib import lm, parameters
from probelib.errors import ProbeError
from probelib.facts.graphs.graph import write_graph
from probelib.grapheval import judge, measures, scores, whole_graph
from probelib.grapheval.measures import Answer
from tests.facts.samples import synthetic

BASE, TUNED = "atlas-neox-0.15m", "atlas-neox-0.6m-it"
T, F, K = Answer


SAID = {  # (answer by the kit, by the released rules) -> texts
    (T, T): [
        "Yes, the statement is true.",
        "The statement is true. It is not false.",
        "It's true.",
    ],
    (F, F): ["No, the statement is false.", "I think the statement is false.", '"No."'],
    (K, None): [" I don't know.", "It is not yet known.", "\n\nIt cannot be determined."],
    (F, T): ["No, the statement is not true."],
    (K, T): ["I don't know whether it is true or false.", "I’m not sure if that is true"],
    (T, None): ["yes", "The statement is correct."],
    (F, None): ["The statement is not correct.", "It is incorrect to call it correct"],
    (None, None): ["I don't think it is correct", "Norway is a country", ""],
    (None, F): ["I don't think it is false."],
    (None, T): ["It is unclear whether it is true.", "The opposite is true."],
}
SAID[F, F] += ["It is not Paris, so the statement is false.", "No, Elvis is not known as Queen."]
SAID[K, T] += ["It is not known to be true."]
SAID[None, T] += ["There is no evidence that the statement is true."]


@pytest.mark.parametrize(("kit", "released"), SAID)
def test_what_a_text_answers(kit, released):
    for text in SAID[kit, released]:
        said = scores.parse_answer(text), scores.parse_answer(text, "released")
        assert said == (kit, released), text


def test_which_models_answer_and_whose_states_are_read():
    models, tuned = ["a/m", "b/n", "c/chat"], ["a/m-it", "x/t=b/n", "c/chat"]
    assert scores.answering_models(models, tuned) == ["a/m-it", "x/t", "c/chat"]
    loaded = {name: lm.load(name) for name in ("atlas-neox-2.4m", BASE, "atlas-llama-0.6m")}
    expected = {"atlas-neox-2.4m": BASE, BASE: BASE, "atlas-llama-0.6m": "atlas-llama-0.6m"}
    assert scores.substitutes(loaded).to_dict() == expected


def test_labels_keep_the_order_of_the_sample(tmp_path):
    kg = whole_graph.verbalize(*whole_graph.load_graph("atlas"), n_triples=50)
    sample = whole_graph.sample_statements(kg, 6)
    models = {name: lm.load(name) for name in (TUNED, BASE)}
    labels = scores.label_statements(models, sample, tmp_path, 4)
    by_model = labels.groupby("model", sort=False)["prompt"].agg(list)
    assert by_model.tolist() == [sample["prompt"].tolist()] * 2 and (labels["n_tokens"] <= 4).all()
    unread = labels["response"].map(lambda text: scores.parse_answer(text) is None)
    assert unread.any() and (labels["unparsed"] == unread).all()
    assert (labels["answer"][unread] == K).all() and (labels["answer"] != K).any()


def test_a_template_is_requested_and_checked():
    samples = [("capital", [("Peru", "Lima")], "{tail} rules {head}.")]
    samples.append(("mayor", [("Nice", "Ann")], "{tail} leads {head}."))
    text = scores.request_template(samples)
    assert text.endswith("Relation: capital\n- Peru | capital | Lima\nSentence:")
    assert "- Nice | mayor | Ann\nSentence: {tail} leads {head}." in text
    found = scores.check_template(' "{head} has {tail}."\nmore {head}')
    assert found == ("{head} has {tail}.", "1 {head}, 1 {tail}")
    for bad in ("", " No, the statement is false.", "{head}, {head} and {tail}"):
        assert scores.check_template(bad)[0] is None


GRAPH = (synthetic(30), pd.DataFrame(columns=["relation", "template"]))
STATES, ANSWERS = np.ones((4, 16), np.float32), np.array([0, 1, 2, 0])
PAIR = pd.DataFrame({"triple": [1, 1], "negative": 0, "answer": 0})


def templates(text: str):
    def load(folder):
        (folder / "templates.csv").write_text(text)
        path = str(folder / "templates.csv")
        source = write_graph(synthetic(30), folder / "kg")
        return whole_graph.open_verbalized(str(source), folder, path)

    return load


@pytest.mark.parametrize(
    ("words", "call"),
    [
        ("two answers", lambda _: measures.eq2(PAIR)),
        ("Eq. 2 'relased'; did you mean released", lambda _: measures.eq2(PAIR, "relased")),
        ("variant of the parser 'kti'", lambda _: scores.parse_answer("", "kti")),
        ("its triple is not", lambda _: measures.eq2(PAIR.assign(negative=1))),
        ("allowed are 0, 1, 2", lambda _: measures.eq2(PAIR.assign(answer=-1))),
        ("one of each", lambda _: judge.train(STATES, ANSWERS[:3], ANSWERS)),
        ("allowed are 0, 1, 2", lambda _: judge.train(STATES, ANSWERS - 1, ANSWERS)),
        ("NaN", lambda _: judge.train(STATES * np.nan, ANSWERS, ANSWERS)),
        ("judge mode", lambda _: judge.train(STATES, ANSWERS, ANSWERS, "relesed")),
        ("n_triples=-5", lambda _: whole_graph.verbalize(*GRAPH, n_triples=-5)),
        ("no graph 'dbpedia'", lambda _: whole_graph.load_graph("dbpedia")),
        ("template is needed", templates("relation,text\na,b\n")),
        ("n_labels=0", lambda _: whole_graph.sample_statements(None, 0)),
        ("must hold one \\[X\\]", templates("relation,template\nP36,\n")),
        ("relation 'P36' has two templates", templates("relation,template\nP36,\nP36,\n")),
        ("none of the .* triples", templates("relation,template\nnothing,[X] [Y]\n")),
        ("unknown setting 'judge_epoch'; did you mean judge_epochs",
         lambda _: parameters.complete(scores.GraphEvalSettings, {"judge_epoch": 5})),
    ],
)  # fmt: skip
def test_bad_input_never_becomes_a_number(words, call, tmp_path):
    with pytest.raises(ProbeError, match=words):
        call(tmp_path)
