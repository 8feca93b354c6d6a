"""The baselines of the Distractors paper: worked examples, and where the released code differs."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from probelib import ProbeError
from probelib.distractors import baselines

FACTS = pd.DataFrame({"fact": ["f", "g"], "object": ["o", "o"]})


def test_probability_of_two_facts_and_the_order_that_flips():
    """W5: (.3, .001) and (.05, .05): the mean of p puts the first fact ahead, the mean of log p the second."""
    rows = [("f", "f1", 0.3), ("f", "f2", 0.001), ("g", "g1", 0.05), ("g", "g2", 0.05)]
    scores = pd.DataFrame(rows, columns=["fact", "prompt", "p"]).assign(candidate="o")
    scores["logprob"] = np.log(scores.pop("p"))
    kit = baselines.probability(scores, FACTS)["–"].groupby("fact").mean()
    released = baselines.probability(scores, FACTS, "released")["–"].groupby("fact").mean()
    assert kit.to_dict() == pytest.approx({"f": 0.1505, "g": 0.05})
    assert released.to_dict() == pytest.approx({"f": -4.056, "g": -2.996}, abs=1e-3)
    aliases = pd.concat([scores, scores])  # a second label of the same probability
    assert baselines.probability(aliases, FACTS)["–"].groupby("fact").mean()["f"] == pytest.approx(0.301)
    with pytest.raises(ProbeError, match="variant"):
        baselines.probability(scores, FACTS, "paper")


def test_precision_strips_the_blank_that_the_released_code_keeps():
    tokens = pd.DataFrame({"fact": "f", "prompt": "c", "rank": [0, 1, 2], "text": [" a", " Paris", " the"]})
    labels = {"f": ["Paris", "City of Light"]}
    assert baselines.precision(tokens, labels, [1, 2, 3]).loc[("f", "c")].to_dict() == {"n=1": 0, "n=2": 1, "n=3": 1}
    assert baselines.precision(tokens, labels, [3], "released").loc[("f", "c"), "n=3"] == 0
    assert (
        baselines.precision(tokens.assign(text=" City"), labels, [3]).loc[("f", "c"), "n=3"] == 0
    )  # a part of a label


def test_rouge_by_words_and_by_characters():
    """W4: "Paris, France" for "Paris"; a text beside the point has 0 by words, 0.24 by characters."""
    assert baselines.rouge_l("Paris, France", "Paris") == pytest.approx(2 / 3)
    assert baselines.rouge_l(" Paris<|endoftext|>", "Paris", "released") == pytest.approx(0.4167, abs=1e-4)
    assert baselines.rouge_l(" a city of contrasts", "Paris") == 0
    assert baselines.rouge_l(" a city of contrasts", "Paris", "released") == pytest.approx(0.24)
    assert baselines.rouge_l("são tomé", "São Tomé") == 1 and baselines.rouge_l("", "Paris") == 0


def test_the_best_of_all_beams_and_labels():
    rows = [("c", 1, 0.2), ("c", 2, 0.1), ("c", 2, 0.7), ("d", 1, 0.0), ("d", 2, 0.4)]
    table = pd.DataFrame(rows, columns=["prompt", "width", "value"]).assign(fact="f")
    best = baselines.over_beams(table)
    assert list(best) == ["w=1", "w=2"] and best.values.tolist() == [[0.2, 0.7], [0.0, 0.4]]
    texts = pd.DataFrame({"fact": "f", "prompt": "c", "width": 1, "text": [" Paris "]})
    assert baselines.pairs(texts, {"f": ("Paris", "Lutetia")})[["text", "label"]].values.tolist() == [
        ["Paris", "Paris"], ["Paris", "Lutetia"]]  # fmt: skip


@pytest.mark.parametrize(
    ("answer", "value"),
    [("correct", 1), (" Incorrect.", 0), ("The prediction is correct", 1), ("No, the statement is false.", 0),
     (" Yes, the statement is true.", 1), ("I don't know.", 0), ("", 0), ("not sure: correct or incorrect", 0)],
)  # fmt: skip
def test_verdicts(answer, value):
    assert baselines.verdict(answer) == value


def test_what_is_right_is_a_label_as_whole_words():
    assert baselines.is_right(" the Hague", ["The Hague"]) == 1 and baselines.is_right("C++ and C", ["C++"]) == 1
    assert baselines.is_right("Parisian", ["Paris"]) == 0 and baselines.is_right("in Paris", ["Paris"]) == 0


def test_karr_of_the_worked_example():
    assert float(baselines.ratio(0.08, 0.0115, 0.0011)) == pytest.approx(22.493, abs=1e-3)
    assert float(baselines.ratio(0.08, 0.0115, 0.0011)) > baselines.KNOWN
    assert np.isnan(baselines.ratio(0.1, 0.0, 0.1)) and float(baselines.ratio(0.0, 0.1, 0.1)) == pytest.approx(1e-6)


def test_karr_sums_by_hand():
    """Two subjects: beta = exp(mean of log P of "is", "in"), gamma given beta = exp(mean of the last token)."""
    rows = [("f", "num", 1.0, "A is in", "A is in X", "X"), ("f", "den_s", 1.0, "B is in", "B is in X", "X"),
            ("f", "den_r", 0.5, "A", "A is in X", "is in X"), ("f", "den_r", 0.5, "A", "A has X", "has X")]  # fmt: skip
    texts = pd.DataFrame(rows, columns=["fact", "term", "share", "before", "text", "rest"])
    p = {"A": [0.5], "A is in": [0.5, 0.2, 0.8], "B is in": [0.5, 0.1, 0.4], "A is in X": [0.5, 0.2, 0.8, 0.5],
         "B is in X": [0.5, 0.1, 0.4, 0.25], "A has X": [0.5, 0.01, 0.09]}  # fmt: skip
    found = baselines.karr(texts, {t: np.log(v) for t, v in p.items()}, {"X": 1, "is in X": 3, "has X": 2}).iloc[0]
    assert found["num"] == pytest.approx(0.4 * 0.5) and found["den_s"] == pytest.approx(0.2 * 0.25)
    assert found["den_r"] == pytest.approx(
        (0.08 ** (1 / 3) + 0.0009**0.5) / 2
    )  # a text of one token has nothing to score: 1
    assert found["karr"] == pytest.approx(np.sqrt(0.2 / 0.05 * 0.2 / found["den_r"]))


def test_karr_is_the_same_one_text_at_a_time():
    """300 rows over 40 texts of 1 to 11 tokens in float32, as the store keeps them: the same to 1e-12."""
    rng = np.random.default_rng(0)
    logprobs = {f"t{i}": np.log(rng.random(1 + i % 11)).astype(np.float32) for i in range(40)}
    n_tokens = {"a": 1, "b": 3, "c": 20}
    draw = lambda *choices: rng.choice(choices, 300)
    texts = pd.DataFrame({"fact": np.sort(rng.integers(0, 5, 300)), "term": draw("num", "den_s", "den_r")})
    texts = texts.assign(
        share=draw(1, 0.5, 0.25), before=draw(*logprobs), text=draw(*logprobs), rest=draw("", *n_tokens)
    )
    first = lambda t: np.exp(logprobs[t][1:].mean()) if len(logprobs[t]) > 1 else 1.0
    last = lambda t, r: np.exp(logprobs[t][-n_tokens[r] :].mean()) if r else 1.0
    value = [row.share * first(row.before) * last(row.text, row.rest) for row in texts.itertuples()]
    wanted = texts.assign(value=np.array(value, dtype=float)).groupby(["fact", "term"])["value"].sum().unstack()
    found = baselines.karr(texts, logprobs, n_tokens).set_index("fact")
    assert np.allclose(found[wanted.columns], wanted, rtol=1e-12, atol=0)


@given(st.text(alphabet="ab c", max_size=8), st.text(alphabet="ab c", min_size=1, max_size=8))
def test_rouge_is_symmetric_and_bounded(text, label):
    value = baselines.rouge_l(text, label)
    assert 0 <= value <= 1 and value == pytest.approx(baselines.rouge_l(label, text))
