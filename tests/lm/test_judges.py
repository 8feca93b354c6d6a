"""A judge behind an address; next tokens; the gap before a label."""

import pandas as pd
import pytest

from probelib import ProbeError, lm, store
from probelib.lm.remote.chat import ChatModel
from probelib.prompts import PROMPTS


def test_a_judge_that_does_not_answer():
    with pytest.raises(ProbeError, match="no response from the model 'm'"):
        ChatModel("m", "http://127.0.0.1:9/v1").generate(["?"])


def test_one_new_token_is_the_best_of_the_vocabulary(tmp_path):
    """Any number of next tokens from one forward: the same as a beam of one step, in the order of
    their log-probabilities."""
    model = lm.load("atlas-gpt2-0.6m")
    rows = model.generate(
        ["The capital of France is", "Lima is"], max_new_tokens=1, beams=5, returned=5
    )
    assert (
        rows.groupby("prompt").size().tolist() == [5, 5]
        and rows.groupby("prompt")["logprob"].is_monotonic_decreasing.all()
    )
    greedy = model.generate(["The capital of France is", "Lima is"], max_new_tokens=2)["text"]
    assert [
        text.startswith(first)
        for text, first in zip(greedy, rows[rows["rank"] == 0]["text"], strict=True)
    ] == [True] * 2
    scored = model.logprobs(["Lima is"], [rows[rows["prompt"] == 1]["text"].tolist()])
    one = scored[scored["n_tokens"] == 1]
    assert one["logprob"].tolist() == pytest.approx(
        rows[rows["prompt"] == 1]["logprob"].to_numpy()[one["candidate"]].tolist(), abs=1e-4
    )


def test_the_gap_before_a_label_belongs_to_the_key(tmp_path):
    model = lm.load("atlas-gpt2-0.6m")
    asked = pd.DataFrame(
        [("p", "f", "P36", "cloze", 1, "none", -1, "The capital of France is")], columns=PROMPTS
    )
    wanted = pd.DataFrame({"fact": ["f"], "candidate": "Paris", "label": "Paris"})
    blank, line = (store.score(model, asked, wanted, tmp_path, gap=gap) for gap in (" ", "\n"))
    assert blank["logprob"][0] != line["logprob"][0] and len(list(tmp_path.rglob("*.parquet"))) == 2
