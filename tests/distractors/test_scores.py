"""What is scored: every measure of one model, its second models, its costs."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from probelib import ProbeError, facts, lm, parameters, prompts
from probelib.beyond.questions import tokens_per_fact
from probelib.distractors import measures, retrieval, scores, tables
from probelib.distractors.settings import DistractorSettings, Study

FEW = DistractorSettings(n_sentences=2, n_distractors=5, next_tokens=5, widths=(1, 2), judge_width=1, timings=2)


@pytest.fixture(scope="module")
def knowledge():
    return retrieval.knowledge(facts.atlas())


def test_every_measure_is_scored(knowledge, tmp_path):
    chosen = facts.load(relations=["P37", "P30"], n_facts=3)
    sentences = scores.cloze_sentences(chosen, FEW.n_sentences)
    model = lm.load("atlas-gpt2-0.6m")
    found = scores.score(model, knowledge, chosen, sentences, tmp_path, FEW)
    ratings = pd.DataFrame({"fact": chosen.facts["fact"], "rating": [0, 1, 2, 3, 4, np.nan]})
    rated = measures.calibrations(found.grids, ratings)
    assert rated.undefined == 1 and rated.rating.tolist() == [0, 1, 2, 3, 4]
    assert {len(value) for value in rated.values.values()} == {5} and len(rated.values) == 8
    assert all(value.notna().all(axis=None) for value in rated.values.values())
    assert (rated.values["Precision@n"]["n=5"] >= rated.values["Precision@n"]["n=1"]).all()
    stops = replace(FEW, ending="punct")
    plain = scores.score_distractors(model, knowledge, chosen, sentences, tmp_path, stops, ("random",))
    assert plain.outcomes["random"].shape == (12, 5) and plain.costs == {}
    searched = scores.score_distractors(model, knowledge, chosen, sentences, tmp_path, FEW)
    assert set(searched.costs) == {"Dist. ApprOpt"}  # what strategies share is no single one's cost


def test_the_sample_names_its_fact_the_beam_and_the_strongest_distractors(knowledge, tmp_path):
    """The beam is as wide as the list, the excluded values and the object's labels together; Opt's first is the strongest."""
    chosen = facts.load(relations=["P30"], n_facts=1)
    sample = scores.sample_lists(lm.load("atlas-gpt2-0.6m"), knowledge, chosen, tmp_path, n=3)
    row = chosen.facts.iloc[0]
    assert sample.fact == ", ".join(chosen.label([row["subject"]]) + ["continent"] + chosen.label([row["object"]]))
    assert sample.width > 3 and sample.strongest["appropt"] <= sample.strongest["opt"] < 0
    assert set(sample.lists) == {"random", "sem", "temp_sem", "appropt", "opt"} and len(sample.lists["opt"]) == 3


def test_helpers_are_named_or_missed():
    """An encoder and a judge of one's own, shipped ones in their place, and none."""
    helpers, said = scores.load_helpers("atlas-t5-2m", "atlas-neox-0.6m-it")
    assert helpers.encoder == lm.load("atlas-t5-2m").folder and helpers.style == "short"
    assert helpers.judge.name == "atlas-neox-0.6m-it" and said.count("a substitute for the paper's") == 2
    helpers, said = scores.load_helpers("my/encoder", "gpt@https://there/v1")
    assert helpers.judge.url == "https://there/v1" and helpers.style == "paper" and helpers.substitutes == ()
    assert said == "BERT-score uses my/encoder; LLM-as-a-judge uses gpt@https://there/v1."
    helpers, said = scores.load_helpers()
    assert helpers.encoder is helpers.judge is None and said.count("is left out") == 2


def test_settings_have_the_papers_defaults_and_no_unknown_names():
    assert parameters.complete(DistractorSettings, {"widths": [1, 2]}) == DistractorSettings(widths=(1, 2))
    with pytest.raises(ProbeError, match="unknown setting 'n_distractor'; did you mean n_distractors"):
        parameters.complete(DistractorSettings, {"n_distractor": 3})
    assert scores.grid_sizes(20) == [1, 2, 5, 10, 20] and scores.grid_sizes(3) == [1, 2, 3]
    assert scores.judge_widths(DistractorSettings(widths=(1, 2, 5), judge_width=2)) == [1, 2]


def test_the_cost_of_a_measure_is_what_it_costs_in_isolation(knowledge):
    """Tokens of one setting per fact, as ``tokens_per_fact`` counts them from the tree."""
    chosen = facts.load(relations=["P37", "P30"], n_facts=2)
    sentences = prompts.paraphrases(chosen, "cloze").query("template <= 2")
    model = lm.load("atlas-gpt2-0.6m")
    settings = replace(FEW, next_tokens=3)
    table = scores.cost_per_fact(model, knowledge, chosen, sentences, settings, scores.Helpers(judge=model))
    table = table.set_index("measure")
    assert (table["tokens"] > 0).all() and table["ms"].between(table["ms, low"], table["ms, high"]).all()
    gold = retrieval.candidates(knowledge, chosen.facts, [])
    random = retrieval.candidates(knowledge, chosen.facts, [retrieval.retrieve(knowledge, chosen.facts, "random", 5)])
    by_part = lambda wanted, end: sum(
        tokens_per_fact(model, part, wanted[wanted["fact"].isin(part["fact"])], end) * part["fact"].nunique()
        for _, part in sentences.groupby("relation")
    ) / len(chosen.facts)  # fmt: skip
    assert table["tokens"]["Probability"] == pytest.approx(by_part(gold, False))
    assert table["tokens"]["Dist. Random"] == pytest.approx(by_part(random, True))
    assert table["tokens"]["Dist. Random"] > table["tokens"]["Probability"]
    assert {"KaRR", "ROUGE-L", "Precision@n", "LLM-as-a-judge", "Dist. ApprOpt"} < set(table.index)
    assert "BERT-score" not in table.index  # no encoder


def test_wider_beams_find_more_of_the_optimum_and_the_exact_search_all(knowledge, tmp_path):
    """On a real model: the share grows with the width, and the exact search reads fewer tokens than all labels have."""
    few = facts.load(relations=["P36", "P103"], n_facts=2)
    model = lm.load("atlas-neox-0.15m")
    sentences = scores.cloze_sentences(few, 1)
    found = scores.search_by_width(model, knowledge, few, sentences, tmp_path, 5)
    beams = found[found["search"] == "beam"]
    assert beams["found"].is_monotonic_increasing and beams["width"].tolist() == [5, 10, 25]
    exact = found.iloc[-1]
    assert (found["tokens, low"] <= found["tokens"]).all() and found["found"].between(0, 1).all()
    low, high = beams.iloc[0][["found, low", "found, high"]]
    assert low < beams["found"].iloc[0] < high and np.isnan(exact["found, low"])  # the exact search misses none
    assert exact["found"] == 1 and exact["tokens"] < exact["all labels"] and beams["tokens"].is_monotonic_increasing
    artifact = tables.search_width(found, 5, 4, Study(model.name, "", FEW))
    assert "by a beam of width 5 " in artifact.finding
