"""Second models: BERT-score with any encoder, and a judge behind an address."""

import pandas as pd
import pytest
import transformers as hf

from probelib import ProbeError, lm, store
from probelib.distractors.scores import judge_texts
from probelib.lm.internals.similarity import bert_score
from probelib.lm.remote.chat import ChatModel, connect
from probelib.prompts import PROMPTS
from tests.lm import tiny
from tests.lm.remote.server import serving


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    config = hf.T5Config(
        **tiny.T5 | {"vocab_size": len(tiny.tokenizer())}, pad_token_id=0, eos_token_id=1
    )
    return tiny.folder(tmp_path_factory.mktemp("tiny-t5"), config)


def test_bert_score_of_any_encoder(encoder):
    same, other, empty, again = bert_score(
        encoder, ["Paris", "Lima is", "", "Paris "], ["Paris", "Rome", "Rome", "Paris"]
    )
    assert same == pytest.approx(1, abs=1e-5) and again == same and other < 0.999 and empty == 0
    assert bert_score(encoder, [], []).tolist() == [] and bert_score(
        encoder, [""], ["Rome"]
    ).tolist() == [0]
    with pytest.raises(ProbeError, match="bert-score cannot use"):
        bert_score(encoder.parent / "nothing", ["a"], ["b"])


def verdict(path, body, log):
    """Says "correct" to what ends in Paris."""
    text = "correct" if "Written: Paris\n" in body["messages"][1]["content"] else "incorrect"
    return 200, {"choices": [{"message": {"content": text}}]}, {}


def test_a_judge_behind_an_address(tmp_path):
    texts = pd.DataFrame(
        {
            "relation": "P36",
            "fact": "f",
            "prompt": "c",
            "width": [1, 2, 2],
            "text": [" Paris", " Rome", " Paris"],
        }
    )
    cloze = pd.DataFrame({"prompt": ["c"], "text": ["The capital of France is"]})
    with serving(verdict) as (url, asked):
        judge = connect(f"some-model@{url}")
        assert judge == ChatModel("some-model", url)
        for _ in range(2):  # the second time from the store
            table = judge_texts(judge, texts, cloze, {"f": ["Paris"]}, tmp_path, "paper")
            assert table["value"].tolist() == [1, 0, 1] == table["truth"].tolist()
        with pytest.raises(ProbeError, match="style"):
            judge_texts(judge, texts, cloze, {"f": ["Paris"]}, tmp_path, "long")
    assert len(asked) == 2 and {path for path, _, _ in asked} == {"/v1/chat/completions"}
    assert asked[0][1]["temperature"] == 0 and "authorization" not in str(asked).lower()


def test_a_judge_that_does_not_answer():
    with pytest.raises(ProbeError, match="no response from the model 'm'"):
        ChatModel("m", "http://127.0.0.1:9/v1").generate(["?"])


def test_a_local_judge_is_asked_in_short(tmp_path):
    texts = pd.DataFrame(
        {"relation": "P36", "fact": "f", "prompt": "c", "width": 1, "text": [" Paris.\nWhat"]}
    )
    cloze = pd.DataFrame({"prompt": ["c"], "text": ["The capital of France is"]})
    table = judge_texts(lm.load("atlas-gpt2-0.6m"), texts, cloze, {"f": ["Paris"]}, tmp_path)
    assert table["value"].isin([0, 1]).all() and table["truth"].tolist() == [1]


def test_one_new_token_is_the_best_of_the_vocabulary(tmp_path):
    """Any number of next tokens from one forward: the same as a beam of one step, in the order of their log-probabilities."""
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
