"""What teacher forcing says about greedy decoding, held against greedy decoding itself, on shipped models."""

import numpy as np
import pytest

from probelib import facts, lm, prompts
from probelib.monitor import alternatives, answers, scores
from probelib.monitor import measures as monitor


@pytest.mark.parametrize("name", ["atlas-neox-0.15m", "atlas-llama-0.6m"])
def test_flags_decide_as_generation_does(name):
    """The accuracy grid needs no decoding loop: every verdict from the scores is the verdict on the generated text."""
    asked = facts.load(relations=["P37", "P30", "P1412"], n_facts=8)
    framed, gold = prompts.with_contexts(asked), prompts.gold(asked)
    framed = framed[(framed["template"] <= 2)].reset_index(drop=True)
    label = dict(zip(gold["fact"], gold["label"], strict=True))
    model = lm.load(name)
    rows = model.logprobs(framed["text"].tolist(), [[f" {label[f]}"] for f in framed["fact"]], end=True)
    rows = rows.assign(prompt=framed["prompt"], label=framed["fact"].map(label))
    written = model.generate(framed["text"].tolist(), max_new_tokens=15)
    truth = [answers.matches(text, label[f]) for text, f in zip(written["text"], framed["fact"], strict=True)]
    decided = answers.decide(rows)
    assert [v for v in decided if v is not None] == [t for t, v in zip(truth, decided, strict=True) if v is not None]
    assert decided.isna().mean() < 0.2 and sum(truth) > 20  # few are left open, and there is something to decide
    assert answers.decide(rows, written.assign(prompt=framed["prompt"])).tolist() == truth


def test_the_store_gives_scores_and_verdicts_together(tmp_path):
    """``scores.score_answers`` is what greedy decoding says, and a second call reads it."""
    asked = facts.load(relations=["P30"], n_facts=4)
    framed, gold = prompts.with_contexts(asked), prompts.gold(asked)
    model = lm.load("atlas-neox-0.15m")
    rows = scores.score_answers(model, framed, gold, tmp_path)
    label = dict(zip(gold["fact"], gold["label"], strict=True))
    written = model.generate(framed["text"].tolist())["text"]
    truth = [answers.matches(text, label[f]) for text, f in zip(written, framed["fact"], strict=True)]
    assert rows["correct"].tolist() == truth and 0 < sum(truth) < len(truth)
    before = {p: p.stat().st_mtime_ns for p in tmp_path.rglob("*.parquet")}
    assert scores.score_answers(model, framed, gold, tmp_path).equals(rows)
    assert {p: p.stat().st_mtime_ns for p in tmp_path.rglob("*.parquet")} == before


def test_the_released_algorithm_runs_on_a_shipped_model():
    asked = facts.load(relations=["P37"], n_facts=2)
    framed, gold = prompts.with_contexts(asked), prompts.gold(asked)
    framed = framed[(framed["context"] == "none") | (framed["template"] == 1)].reset_index(drop=True)
    model = lm.load("atlas-llama-0.6m")
    first = framed[framed["context"] == "positive"]
    primary = model.beam_steps(first["text"].tolist())
    watch = dict(zip(first["fact"], primary["ids"], strict=True))
    runs = model.beam_steps(framed["text"].tolist(), watch=[watch[f] for f in framed["fact"]])
    anchors = alternatives.released_anchors(runs.assign(prompt=framed["prompt"]), framed, gold)
    assert [len(f) for f in anchors["f"]] == [7, 7] and [len(n) for n in anchors["n"]] == [5, 5]
    own = runs.loc[first.index]
    assert all(np.allclose(a, b) for a, b in zip(own["watched"], own["probability"], strict=True))
    assert monitor.distances(anchors)[["pfd", "ird"]].stack().between(0, 1).all()


def test_facts_that_are_shown_alone():
    """More than the panel has, of those that were taught; without such a list the facts as loaded."""
    panel = facts.load(relations=["P37", "P30"], n_facts=2)
    assert scores.facts_shown(panel, ["P37"], None) is panel
    taught = set(facts.load(relations=["P37"], n_facts=20).facts["fact"])
    more = scores.facts_shown(panel, ["P37", "P1412"], taught)  # P30 stands in for P1412, and has no such fact
    assert set(more.facts["fact"]) == taught and more.source == "atlas, facts that the models were taught"
    assert len(scores.facts_shown(panel, ["P37"], taught, n_facts=3).facts) == 3
    assert scores.facts_shown(panel, ["P37"], {"none"}) is panel
