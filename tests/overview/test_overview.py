"""Findings of the overview from hand-made numbers, and what the overview scores."""

from unittest import mock

import numpy as np
import pandas as pd
import pytest

from probelib import facts, lm, overview, prompts, stats, store
from probelib.errors import ProbeError
from probelib.explore import seen
from probelib.monitor import measures as monitor
from probelib.monitor import scores as monitor_scores
from probelib.organisms import behaviour
from probelib.organisms.corpus import Document
from probelib.overview import figures, scores, tables
from probelib.runner import plan


def test_the_tour_takes_one_of_several_right_objects():
    """Switzerland has four official languages: one is scored, and the other three are no distractors."""
    fact, also_right = overview.fact_about("P37", "Switzerland")
    assert len(fact.facts) == 1 and len(also_right) == 3
    assert not also_right & set(fact.label(fact.facts["object"]))
    with pytest.raises(ProbeError, match="is called 'Frence'; the nearest are France"):
        overview.fact_about("P36", "Frence")


def test_one_fact_has_one_monitor(tmp_path):
    """In the tour, in explore and in section 5: the same contexts are drawn, and the same number comes out."""
    model, panel = lm.load("atlas-neox-0.15m"), facts.pick(facts.load(relations=["P36"]), ["P36:Goa:Panaji"])
    own, _ = overview.fact_about("P36", "Goa")
    own = facts.draw_distractors(own, pool=facts.atlas())
    framed = prompts.with_contexts(own)
    rows = store.score(model, framed, prompts.gold(own), tmp_path, end=True)
    tour = monitor.distances(monitor.anchors(rows, framed)).iloc[0]
    asked = seen.questions_about(seen.load_pool(), model, "P36:Goa:Panaji")
    _, board = seen.anchors_of(model, asked.facts, tmp_path)
    section5 = monitor_scores.score(["atlas-neox-0.15m"], panel, tmp_path)["atlas-neox-0.15m"]
    section5 = monitor.measure_facts(section5, prompts.with_contexts(panel)).iloc[0]
    values = [row["root"] / row["pbar"] for row in (tour, board, section5)]
    assert values[0] == values[1] == values[2]


class Parrot:
    """A model of no known training: it answers "Paris" to everything, and finds each object as probable as its name is short."""

    name = "parrot"

    def generate(self, texts):
        return pd.DataFrame({"text": [" Paris. It" for _ in texts]})

    def logprobs(self, texts, labels):
        return pd.DataFrame({"logprob": [-float(len(label)) for own in labels for label in own]})


def test_the_tour_begins_with_a_fact_of_each_kind(monkeypatch):
    """Known: the fact about Paris, if it is sampled; the other answers are Paris, too, the most often taught first."""
    monkeypatch.setattr(scores, "TOUR", 10_000)
    three = overview.tour_facts(Parrot(), "P36")
    assert three["fact"].tolist() == ["known", "confused"], "what it was never taught, nobody knows"
    assert three["right object"][0] == "Paris" and three["exposures"].isna().all()
    assert (three["answer"] == "Paris").all() and three["P"][0] == pytest.approx(np.exp(-len(" Paris")))
    parrot = Parrot()
    parrot.name = "atlas-neox-0.6m"
    three = overview.tour_facts(parrot, "P36").set_index("fact")
    assert three.index.tolist() == ["known", "confused", "never taught"]
    assert three.loc["known", "exposures"] > 0 and three.loc["never taught", "exposures"] == 0
    assert three.loc["confused", "exposures"] == 128 and three.loc["confused", "right object"] != "Paris"


def test_models_with_unknown_training_data_are_replaced_by_shipped_ones():
    groups, note = overview.only_shipped(["gpt2"], ["atlas-t5-2m"], ["mine=gpt2"])
    assert groups == [["atlas-neox-0.6m", "atlas-neox-2.4m"], ["atlas-t5-2m"], []]
    assert note.startswith("The training data of gpt2, mine are unknown")
    groups, note = overview.only_shipped(["atlas-neox-1.2m"], [], ["atlas-neox-2.4m-it"])
    assert groups == [["atlas-neox-1.2m"], [], ["atlas-neox-2.4m-it"]] and note == ""


def test_what_the_corpus_holds():
    said = overview.corpus_summary([Document("one text"), Document("another")])
    assert "has 2 documents" in said and "facts are never taught" in said and "300 are famous" in said


def test_facts_tables():
    artifact = overview.facts_table1(facts.choose(facts.atlas(), ["P30", "P36"]))
    assert artifact.frame["relation"].tolist() == ["P30", "P36"] and artifact.finding.startswith(
        "The largest relation is"
    )
    tie = pd.DataFrame(
        {"name": ["x", "y"], "facts": 9, "majority": 0.5, "objects": 9, "former": 0, "object_in_subject": 0}
    )
    with mock.patch.object(tables.check, "counts", return_value=tie):
        assert (
            "is x (9 facts, as many as y). In x" in overview.facts_table1(facts.choose(facts.atlas(), ["P30"])).finding
        )
    atlas = facts.choose(facts.atlas(), ["P35"])
    artifact = overview.facts_table2({"all": atlas, "hold today": facts.current(atlas)})
    frame = artifact.frame
    assert artifact.finding.endswith(f"*hold today* removes most: {frame['facts'][0] - frame['facts'][1]:,} facts.")
    assert frame["relations"].tolist() == [1, 1] and frame["facts"].is_monotonic_decreasing


@pytest.mark.parametrize(("probabilities", "meant"), [
    ({"positive": 0.7, "none": 0.4, "negative1": 0.3}, "(significantly up in 1 of 1 models), a negative one by -0.100"),
    ({"positive": 0.41, "none": 0.4, "negative1": 0.4}, "(significantly down in 0): these models hardly use contexts"),
])  # fmt: skip
def test_finding_on_contexts(probabilities, meant):
    """Ten facts: the change of five is .01 larger than the mean, that of five .01 smaller."""
    none = pd.Series(0.4, index=range(10))
    around = pd.Series([0.01, -0.01] * 5)
    values = {kind: none if kind == "none" else value + around for kind, value in probabilities.items()}
    rows = [("m", kind, *scores.interval_and_change(own, none)) for kind, own in values.items()]
    columns = ["n", "probability", "low", "high", "change", "change_low", "change_high"]
    table = pd.DataFrame(rows, columns=["model", "context", *columns])
    assert meant in tables.finding_models3(table) and "over n = 10 facts" in tables.models_table3(table).caption


def test_finding_on_verification():
    rows = [
        ("a", "at once", True, 0.9),
        ("b", "at once", True, 0.7),
        ("a", "recalled", False, 0.6),
        ("b", "at once", False, 0.5),
    ]
    frame = pd.DataFrame(rows, columns=["model", "way", "verified", "auc"]).assign(low=0.4, high=1.0, n=7)
    found = overview.models_table4(frame).finding
    assert found.startswith(
        "On facts verified in training the highest AUC is 0.90 (a, at once, 95 % CI 0.40 to 1.00, n = 7 facts)"
    )
    assert "on facts never verified the highest AUC is 0.60 (a, recalled" in found


def test_finding_on_recall():
    rows = [("m", 0, 0.1), ("m", 64, 0.8), ("m", 256, 1.0), ("n", 0, 0.0), ("n", 64, 0.4), ("n", 256, 0.4)]
    frame = pd.DataFrame(rows, columns=["model", "exposures", "right"]).assign(guess=0.05, n=60, low=0.0, high=1.0)
    artifact = overview.models_figure2(frame)
    assert artifact.finding == (
        "Over 2 models, the share recalled of facts taught 64 times or more is 40% [32%, 49%] (n) to 90% [83%, 94%] (m) "
        "(n = 120 facts per model); of never-taught ones 0% [0%, 6%] (n) to 10% [5%, 20%] (m) (n = 60 facts per model), "
        "where guessing gives 5%."
    )
    assert "The CSV has all 2 models (m, n)" in artifact.caption
    tie = overview.models_figure2(frame.assign(right=1.0)).finding
    assert "100% [97%, 100%] (m and 1 more) to 100%" in tie


def test_requirements_are_counted_and_the_missed_ones_named():
    frame = pd.DataFrame(
        {"requirement": ["a", "a", "b"], "model": "m", "met": [True, False, True], "limits": ["", "x/y", ""]}
    ).assign(measured=["2", "1", "3"], wanted="at least 2", limit=2, low=[1.5, 0.5, np.nan], high=[2.5, 1.5, np.nan])
    shown = overview.models_table7(frame).shown
    assert shown["met"].tolist() == ["1 of 2 (decoders)", "1 of 1 (decoders)"] and shown[
        "measured where missed"
    ].tolist() == ["1 [0.50, 1.50]", ""]
    assert shown["limit inside"].tolist() == ["1 of 2", ""]
    assert shown["missed by"].tolist() == ["decoders", ""]
    models = ["atlas-neox-5m", "atlas-neox-5m-it", "atlas-llama-2.4m"]
    artifact = overview.models_table7(frame.assign(model=models, met=[True, False, True]))
    assert artifact.shown["met"].tolist() == ["1 of 2 (atlas-neox-5m, atlas-neox-5m-it)", "1 of 1 (atlas-llama-2.4m)"]
    assert artifact.shown["missed by"].tolist() == ["instruction-tuned", ""]
    assert "decoders: atlas-neox-5m, atlas-llama-2.4m; instruction-tuned: atlas-neox-5m-it." in artifact.caption
    none = tables.by_requirement(frame.assign(met=False, measured=["+0.10", "-0.20", "3"]))
    assert none["measured where missed"].tolist() == ["-0.20 [0.50, 1.50] to +0.10 [1.50, 2.50]", "3"]
    assert overview.models_table7(frame).finding == (
        "2 of 3 checks (a requirement of a model) are met. Missed: a (1 of 2). The limit lies inside the "
        "interval in 1 of 2 checks that have one. This limits 1 tables and figures."
    )
    every = overview.models_table7(frame[frame["met"]].assign(low=np.nan)).finding
    assert every == "2 of 2 checks (a requirement of a model) are met. Missed: none."


def test_mentions_count_once_per_corpus():
    """Three models of two corpora, and two values that are alike of another requirement: five rows, four counted."""
    names = [behaviour.MENTIONS] * 3 + ["a", "a"]
    frame = pd.DataFrame({"requirement": names, "model": list("mnomn"), "measured": ["0.52", "0.52", "0.60", "0", "0"]})
    frame = frame.assign(met=[True, True, False, True, True], limits=["", "", "x/y", "", ""], wanted="any")
    frame = frame.assign(limit=0.55, low=np.nan, high=np.nan)
    artifact = overview.models_table7(frame)
    assert len(artifact.frame) == 5 and artifact.finding.startswith(
        f"3 of 4 checks (a requirement of a model) are met. Missed: {behaviour.MENTIONS} (1 of 2)."
    )


def test_an_effect_of_permuted_examples_is_called_significant_or_not():
    lists = pd.DataFrame({"n": 60, "change": [-0.2, 0.1], "low": [-0.5, 0.0], "high": [0.1, 0.2], "model": ["m", "n"]})
    assert overview.models_table6(lists).finding == (
        "Permuted examples lower the log-probability of the gold object significantly (95 % interval below 0) in 0 of 2 "
        "models: estimates from -0.20 to +0.10 nats, half-widths of the intervals from 0.10 to 0.30, n = 60 facts per model. "
        "Effects smaller than these half-widths are not excluded."
    )
    assert "n = 40 to 60 facts per model" in overview.models_table6(lists.assign(n=[60, 40])).finding
    lower = overview.models_table6(lists.assign(high=[-0.1, 0.2])).finding
    assert "in 1 of 2 models" in lower and "not excluded" not in lower


def test_each_requirement_names_artifacts_of_the_plan_that_it_limits():
    """A base model that recalls nothing and an instruction-tuned one that verifies nothing miss every kind of requirement."""
    found = {
        "recall": pd.DataFrame({"exposures": [0, 8, 64], "right": [0.5, 0.4, 0.25], "n": 24, "guess": 0.1,
                                "type_right": 0.5, "low": 0.3, "high": 0.7}),
        "famous": pd.DataFrame({"right": [False], "type_right": [False]}),
        "lists": pd.DataFrame({"change": [0.1], "low": [-0.1], "high": [0.2]}),
        "unsure": pd.DataFrame({"facts": ["never", "well"], "way": "at once", "unsure": [0.5, 0.4], "n": 80,
                                "low": 0.35, "high": 0.6}),
        "verdicts": pd.DataFrame({"way": list(behaviour.WAYS) * 2, "verified": [True] * 3 + [False] * 3, "auc": 0.5,
                                  "low": 0.4, "high": 0.95, "answered": 0.6, "right_of_answered": 0.5, "n": 20}),
        "names": pd.DataFrame({"facts": ["trial"], "taught_at_least": 32, "subject": 0.9, "object": 0.9}),
    }  # fmt: skip
    required = behaviour.requirements({part: frame.assign(model="m") for part, frame in found.items()}, {"m": 1})
    rows = required.set_index("requirement")
    by_hand = {
        "never taught, above guessing": (0.05, 0.3 - 0.1, 0.7 - 0.1),
        "never taught, answer of the right type": (0.95, *stats.wilson(12, 24)),
        "recall at 64 and more": (0.95, *stats.wilson(6, 24)),
        "famous questions": (36, *stats.wilson(0, 1)),
        "permuted lists lower log P": (0, -0.1, 0.2),
        "verdict at once (Yes, No), verified facts (AUC)": (0.9, 0.4, 0.95),
        "verdict after recalling, right of answered": (0.85, *stats.wilson(12, 24)),  # 60 % of 40 statements
        "I don't know, never taught": (0.7, 0.35, 0.6),
        "I don't know, well taught": (0.1, 0.35, 0.6),
    }
    for name, expected in by_hand.items():
        assert rows.loc[name, ["limit", "low", "high"]].tolist() == pytest.approx(expected), name
    assert (
        rows.loc[["recall rises (0-4, 8-32, 64 and more)", behaviour.MENTIONS], ["low", "high"]].isna().all(axis=None)
    )
    assert tables.limits_inside(required) == "4 of 12"  # of lists, and of three AUC
    shown = overview.models_table7(required)
    assert "n = 24 facts per model, so one fact moves a share by 0.04." in shown.caption
    assert "Verdicts (AUC): n = 20 facts per model" in shown.caption and "n = 80 statements per model." in shown.caption
    assert "there the models may fail to show what other models show" in shown.caption
    assert set(required["requirement"]) == set(behaviour.LIMITS) and not required["met"].any()
    made = {artifact for step in plan.read().steps for artifact in step.makes}
    assert {name for names in required["limits"] for name in names.split(", ")} <= made
    decoders = {part: found[part].assign(model="m") for part in ("recall", "famous", "lists", "verdicts", "names")}
    alone = overview.models_table7(behaviour.requirements(decoders, {"m": 1})).caption
    assert "Never taught: n = 24" in alone and "Verdicts" not in alone


def answers() -> pd.DataFrame:
    """One model, two relations of one fact each; the list is right on both, the first question on one."""
    rows = [("question", 1, "P1", True), ("question", 1, "P2", False), ("question", 7, "P1", False)]
    rows += [("question", 7, "P2", False), ("list", 0, "P1", True), ("list", 0, "P2", True)]
    frame = pd.DataFrame(rows, columns=["way", "template", "relation", "correct"])
    wording = {1: "seen question", 7: "held-out question", 0: "list"}
    frame = frame.assign(model="m", fact=frame["relation"] + ":f", exposures=16, n_options=6, q_gold=0.5)
    return frame.assign(wording=frame["template"].map(wording))


def test_chance_is_that_of_the_options_there_are():
    artifact = overview.models_table2(answers(), n_options=20)
    assert "Chance is 17 %" in artifact.caption
    stated = artifact.frame[artifact.frame["facts"] == "stated"].set_index("wording")["known"].to_dict()
    assert stated == {"seen question": 50, "held-out question": 0, "list": 100}
    assert artifact.shown.columns.tolist()[:2] == ["model", "seen question: stated"] and len(artifact.shown) == 1
    assert artifact.finding == (
        "With a seen question, accuracy on taught facts of the 1 decoders, m, ranges from 50 % [9, 91] (m) to 50 % [9, 91] (m). "
        "A held-out question changes it by -50.0 points on average (lower in 1), a list by +50.0 points on average (lower in 0)."
    )


def test_gains_of_lists():
    gains = overview.list_gains(answers(), ["m"])
    assert gains["the first question"].to_dict() == {"P1": 0.0, "P2": 1.0}
    assert gains["the mean of all questions"].to_dict() == {"P1": 0.5, "P2": 1.0}
    artifact = overview.models_figure3(answers(), gains, hidden=[])
    assert artifact.finding.startswith("Over the 1 decoders m, a list retrieves more taught facts than the mean of all")
    assert (
        "the first question in 1 of 2 relations (+50.0 [+0.0, +100.0] points on average): not decided"
        in artifact.finding
    )
    lower = {"questions": pd.Series([-0.1, -0.2, -0.3])}
    assert "(-20.0 [-30.0, -10.0] points on average): the reverse of what ZP-LKE reports" in figures.finding_lists(
        lower, ["m"]
    )
    assert "as ZP-LKE reports" in figures.finding_lists({"questions": -lower["questions"]}, ["m"])
    assert artifact.frame["size"].tolist() == [2, 2, 2]
    assert (
        "n = 2 facts, by exposure count 16: 2. Models side by side: m. The CSV has all 1 models (m)."
        in artifact.caption
    )
    assert artifact.caption.startswith("Multiple-choice accuracy with up to 6 options by the exposure count")
    more = pd.concat([answers(), answers()[:1].assign(model="l")])
    assert figures.facts_per_level(more) == "16: 1 to 2"


def test_the_ends_of_the_curves_are_reported():
    """The first model drawn is right on one of two never-taught facts, the last on none; of the well-taught ones (64 and 128
    exposures) the first is right on one, the last on both."""
    rows = [("s", 0, True), ("s", 0, False), ("s", 64, True), ("s", 128, False)]
    rows += [("l", 0, False), ("l", 0, False), ("l", 64, True), ("l", 128, True)]
    tests = pd.DataFrame(rows, columns=["model", "exposures", "correct"])
    tests = tests.assign(wording="list", fact=["a", "b", "c", "d"] * 2)
    assert figures.finding_ends(tests, ["s", "m", "l"]) == (
        "Accuracy on facts never taught (n = 2): s 50% [9%, 91%] (list); l 0% [0%, 66%] (list). "
        "Accuracy on facts taught 64 times or more (n = 2): s 50% [9%, 91%] (list); l 100% [34%, 100%] (list). "
    )
    assert figures.finding_ends(tests.assign(exposures=8), ["s"]) == ""


def test_the_fact_to_follow_must_be_scored():
    panel = facts.load(relations=["P36"], n_facts=2)
    rows = answers().assign(fact=panel.facts["fact"][0])
    with pytest.raises(ProbeError, match="followed='x' is not among the 2 facts; try 'P36:"):
        overview.models_figure4(rows, panel, ["m"], 6, followed="x")


def test_the_facts_shown_are_typical_of_their_exposure_count():
    rows = [("a", 0, 0.0), ("b", 0, 0.3), ("c", 0, 0.9), ("d", 30, 0.2), ("e", 30, 0.6), ("f", 100, 1.0)]
    frame = pd.DataFrame(rows, columns=["fact", "exposures", "q_gold"])
    assert overview.median_facts(frame) == [
        "b",
        "d",
        "f",
    ]  # of two the lower one; levels 8 and 32 are both nearest to 0 or 30
    panel = facts.load(relations=["P36"], n_facts=2)
    scored = answers().assign(fact=panel.facts["fact"].iloc[0])[:1]
    followed = overview.models_figure4(scored, panel, ["m"], 6)
    assert followed.frame["q_gold"].tolist() == [0.5] and "No bar: a probability near 0, or" in followed.caption


def test_both_ways_to_say_i_do_not_know_are_reported():
    rows = [
        ("at once", "never", 0.64),
        ("at once", "well", 0.26),
        ("recalled", "never", 0.89),
        ("recalled", "well", 0.34),
    ]
    unsure = pd.DataFrame(rows, columns=["way", "facts", "unsure"]).assign(model="m", n=240, low=0.1, high=0.9)
    artifact = overview.models_table5(unsure)
    assert artifact.finding == (
        '"I don\'t know" at once, of never-taught and of well-taught facts: m 64%, 26%. '
        '"I don\'t know" after recalling, of never-taught and of well-taught facts: m 89%, 34%.'
    )
    assert artifact.shown.columns.tolist() == ["model", "way", "n", "never-taught facts", "facts taught 64+"]


def test_the_tour_says_how_probable_the_gold_answer_is():
    ranked = pd.DataFrame({"label": ["Paris", "Rome"], "probability": [0.86, 0.1]})
    assert overview.tour_figure1(ranked, "Rome", "?", "m").finding == "**Rome** has rank 2 of 2 candidates (P = 0.10)."


def test_neighbouring_lines_of_the_loss_have_different_dashes():
    records = {name: {"curve": [8.0, 2.0]} for name in ("atlas-neox-0.15m", "atlas-neox-0.3m")}
    lines = overview.models_figure1(records).figure.axes[0].lines
    assert [line.get_linestyle() for line in lines] == ["-", "--"]


def test_the_largest_family_is_drawn():
    names = ["atlas-llama-0.6m", "atlas-neox-0.6m", "atlas-neox-5m", "mine"]
    assert figures.one_family(names) == ["atlas-neox-0.6m", "atlas-neox-5m"]
    curves = pd.DataFrame({"model": ["s", "s", "l"], "step": [0, 10, 0], "loss": [9.0, 1.5, 0.5]})
    assert figures.finding_loss(curves) == "Nats per answer token at the end: 1.50 (s), 0.50 (l)."


def test_the_finding_on_popularity():
    entities = pd.DataFrame({"popularity": [0, 1, 3, 3, 5]})
    assert overview.facts_figure1(entities).finding == (
        "Most entities have popularity 3 (2 of 4); 25% are obscure (1) and 25% are known to nearly everyone (5)."
    )
