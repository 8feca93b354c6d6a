"""What is scored: every measure of one model, its second models, its costs."""

from dataclasses import replace

import pandas as pd
import pytest

from probelib import facts, lm
from probelib.beyond.questions import tokens_per_fact
from probelib.distractors import measures, retrieval, scores
from probelib.distractors.scores import DistractorSettings
from probelib.lm.loading import connect
from tests.lm.remote.server import serving

FEW = DistractorSettings(
    n_sentences=2, n_distractors=5, next_tokens=5, widths=(1, 2), judge_width=1
)


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    chosen = facts.load(relations=["P37", "P30"], n_facts=3)
    kb, model = retrieval.knowledge(facts.atlas()), lm.load("atlas-gpt2-0.6m")
    sentences = scores.cloze_sentences(chosen, FEW.n_sentences)
    return scores.Study(model, kb, chosen, sentences, tmp_path_factory.mktemp("scores"), FEW)


def test_every_measure_is_scored(study):
    grids = scores.score(study)
    assert set(scores.MEASURES) - set(grids) == {"BERT-score", "LLM-as-a-judge"}  # no second model
    rating = pd.DataFrame({"fact": study.facts.facts["fact"], "rating": [0, 1, 2, 3, 4, None]})
    rated = measures.calibrations(grids, rating)
    assert rated.undefined == 1 and rated.rating.tolist() == [0, 1, 2, 3, 4]
    assert {len(own) for own in rated.values.values()} == {5} and len(rated.values) == 8
    assert all(own.notna().all(axis=None) for own in rated.values.values())
    assert list(grids["Dist. Sem"]) == ["Min@1", "Avg@1", "Min@2", "Avg@2", "Min@5", "Avg@5"]
    assert (grids["Precision@n"]["n=5"] >= grids["Precision@n"]["n=1"]).all()


def test_probability_is_that_of_the_bare_label_with_any_ending(study):
    """It comes from the strategies' scores where these hold the bare label."""
    first = scores.MEASURES["Probability"](replace(study, strategies=("random",)))
    stop = replace(study, strategies=("random",), how=replace(FEW, ending="punct"))
    assert stop.scores["label"].str.endswith(".").all() and stop.outcomes["random"].shape == (12, 5)
    for other in (stop, replace(study, strategies=())):
        pd.testing.assert_frame_equal(scores.MEASURES["Probability"](other), first, rtol=1e-4)


def test_the_cost_of_a_measure_is_what_it_costs_in_isolation(study):
    """Tokens of one setting per fact, as ``tokens_per_fact`` counts them from the tree."""
    costs = scores.cost_per_fact(replace(study, judge=study.model)).set_index("measure")
    assert set(costs.index) == set(scores.MEASURES) - {"BERT-score"}  # no encoder
    assert (costs["tokens per fact"] > 0).all()
    assert costs["ms per fact"].between(costs["ms per fact low"], costs["ms per fact high"]).all()
    rows, kb = study.facts.facts, study.knowledge
    random = retrieval.candidates(kb, rows, [retrieval.retrieve(kb, rows, "random", 5)])
    for name, wanted, end in (
        ("Probability", retrieval.candidates(kb, rows, []), False),
        ("Dist. Random", random, True),
    ):
        tokens = 0
        for _, part in study.sentences.groupby("relation"):
            own = wanted[wanted["fact"].isin(part["fact"])]
            tokens += tokens_per_fact(study.model, part, own, end) * part["fact"].nunique()
        assert costs["tokens per fact"][name] == pytest.approx(tokens / len(rows))


def test_a_judge_behind_an_address(study, tmp_path):
    """The capital of France, with known beams of width 1."""

    def verdict(path, body, log):
        right = "Written: Paris\n" in body["messages"][1]["content"]
        message = {"content": "correct" if right else "incorrect"}
        return 200, {"choices": [{"message": message}]}, {}

    chosen = facts.load(relations=["P36"], n_facts="all")
    chosen = facts.keep(chosen, chosen.facts["fact"] == "P36:France:Paris")
    own = replace(study, facts=chosen, sentences=scores.cloze_sentences(chosen, 1))
    beams = own.sentences[["relation", "fact", "prompt"]].merge(
        pd.DataFrame({"text": [" Paris", " Rome", " Paris"], "width": 1}), how="cross"
    )
    with serving(verdict) as (url, asked):
        own = replace(own, judge=connect(f"some-model@{url}"), paper=True, folder=tmp_path)
        own.__dict__["beams"] = {1: beams}
        for _ in range(2):  # the second time from the store
            assert scores.judge_texts(own)["value"].tolist() == [1, 0, 1]
    assert len(asked) == 2 and {path for path, _, _ in asked} == {"/v1/chat/completions"}
    assert asked[0][1]["temperature"] == 0 and "authorization" not in str(asked).lower()
