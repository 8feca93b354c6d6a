"""Which models answer, whose states are read, how a template is requested and checked, and what settings are taken."""

import pytest

from probelib import grapheval, lm, parameters
from probelib.errors import ProbeError
from probelib.grapheval import prompts
from probelib.runner import plan

BASE, TUNED = "atlas-neox-0.15m", "atlas-neox-0.6m-it"


def test_which_models_answer_and_whose_states_are_read():
    assert "No instruction-tuned model is given" in grapheval.note_on_answering([BASE], [])
    assert grapheval.note_on_answering([BASE], [TUNED]) == ""
    loaded = {name: lm.load(name) for name in ("atlas-neox-2.4m", BASE, "atlas-llama-0.6m")}
    assert grapheval.substitutes(loaded).to_dict() == {
        "atlas-neox-2.4m": BASE, BASE: BASE, "atlas-llama-0.6m": "atlas-llama-0.6m"}  # fmt: skip


def test_a_model_answers_itself_where_it_has_no_partner():
    models, tuned = ["a/m", "b/n", "c/chat"], ["a/m-it", "x=b/n", "c/chat"]
    assert grapheval.answering_models(models, tuned) == ["a/m-it", "x", "c/chat"]


def test_labels_keep_the_order_of_the_sample(tmp_path):
    kg = grapheval.verbalize(*grapheval.load_graph("atlas"), n_triples=50)
    sample = grapheval.sample_statements(kg, 6)
    labels = grapheval.label_statements({name: lm.load(name) for name in (BASE, TUNED)}, sample, tmp_path, 4)
    assert labels.groupby("model", sort=False)["prompt"].agg(list).tolist() == [sample["prompt"].tolist()] * 2
    assert set(labels["answer"]) <= set(grapheval.Answer) and (labels["n_tokens"] <= 4).all()


def test_an_instruction_is_named():
    assert prompts.instruction_text("recalled").startswith("Recall the fact")
    with pytest.raises(ProbeError, match="unknown instruction 'recall'"):
        prompts.instruction_text("recall")


def test_recalled_answers_are_compared_with_those_at_once(tmp_path):
    kg = grapheval.verbalize(*grapheval.load_graph("atlas"), n_triples=50)
    sample, models = grapheval.sample_statements(kg, 4), {TUNED: lm.load(TUNED)}
    labels = grapheval.label_statements(models, sample, tmp_path, 40, "recalled")
    both = grapheval.label_by_instruction(labels, "recalled", models, sample, tmp_path)
    assert list(both) == ["at once", "recalled"] and both["recalled"] is labels
    assert both["at once"]["prompt"].tolist() == labels["prompt"].tolist()
    again = grapheval.label_by_instruction(both["at once"], "at once", models, sample, tmp_path)
    assert (
        list(again) == ["at once", "recalled"] and again["recalled"]["response"].tolist() == labels["response"].tolist()
    )
    assert list(grapheval.label_by_instruction(labels, "at once", {"a user's": None}, sample, tmp_path)) == ["at once"]


def test_settings_are_known_and_of_the_right_type():
    study = parameters.complete(grapheval.GraphEvalSettings, {"judge_epochs": 5, "pageviews": "views.json"})
    assert study.training == {"epochs": 5, "batch": 64, "lr": 0.001} and study.pageviews == "views.json"
    with pytest.raises(ProbeError, match="unknown setting 'judge_epoch'; did you mean judge_epochs"):
        parameters.complete(grapheval.GraphEvalSettings, {"judge_epoch": 5})
    with pytest.raises(ProbeError, match="judge_lr: 'fast' is of type str"):
        parameters.complete(grapheval.GraphEvalSettings, {"judge_lr": "fast"})


@pytest.mark.parametrize("profile", ["smoke", "atlas", "small", "paper"])
def test_the_plans_settings_are_known_and_the_command_line_adds_to_them(profile):
    whole = plan.read()
    steps = [step for step in whole.steps if step.notebook.startswith("grapheval/")]
    planned = plan.settings(whole, steps, profile)
    for notebook, values in plan.settings(whole, steps, profile, {"settings": {"judge_epochs": 7}}).items():
        study = parameters.complete(
            grapheval.GraphEvalSettings, planned[notebook].get("settings", {}) | {"judge_epochs": 7}
        )
        assert parameters.complete(grapheval.GraphEvalSettings, values["settings"]) == study


def test_a_template_is_requested_and_checked():
    text = prompts.request_template("capital", [("Peru", "Lima")], [("mayor", [("Nice", "Ann")], "[Y] leads [X].")])
    assert text.endswith("Relation: capital\n- Peru | capital | Lima\nSentence:")
    assert "- Nice | mayor | Ann\nSentence: {tail} leads {head}." in text
    assert prompts.check_template(' "{head} has {tail}."\nmore {head}') == (
        "{head} has {tail}.",
        "one {head} and one {tail}",
    )
    for bad in ("", " No, the statement is false.", "{head}, {head} and {tail}"):
        template, verdict = prompts.check_template(bad)
        assert template is None and "each is wanted once" in verdict
