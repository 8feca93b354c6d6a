"""The baselines of the Distractors paper: worked examples."""

import numpy as np
import pandas as pd
import pytest

from probelib import ProbeError
from probelib.distractors import baselines
from probelib.lm.names import CHECKPOINTS

FACTS = pd.DataFrame({"fact": ["f", "g"], "object": ["o", "o"]})


def test_probability_sums_over_labels_and_averages_probabilities():
    """W5: (.3, .001) against (.05, .05). The mean of log p, as released, would put g first."""
    rows = [("f", "f1", 0.3), ("f", "f2", 0.001), ("g", "g1", 0.05), ("g", "g2", 0.05)]
    scores = pd.DataFrame(rows, columns=["fact", "prompt", "p"]).assign(candidate="o")
    scores["logprob"] = np.log(scores.pop("p"))
    found = baselines.probability(scores, FACTS)["–"].groupby("fact").mean()
    assert found.to_dict() == pytest.approx({"f": 0.1505, "g": 0.05})
    aliases = baselines.probability(pd.concat([scores, scores]), FACTS)["–"]
    assert aliases.groupby("fact").mean()["f"] == pytest.approx(0.301)


def test_precision_strips_the_blank():
    tokens = pd.DataFrame({"fact": "f", "prompt": "c", "rank": [0, 1], "text": [" a", " Paris"]})
    labels = {"f": ["Paris", "City of Light"]}
    found = baselines.precision(tokens, labels, [1, 2, 3]).loc[("f", "c")]
    assert found.to_dict() == {"n=1": 0, "n=2": 1, "n=3": 1}
    part = baselines.precision(tokens.assign(text=" City"), labels, [3])  # of a label
    assert part.loc[("f", "c"), "n=3"] == 0


def test_rouge_by_words():
    """W4: "Paris, France" for "Paris"; a text beside the point has 0."""
    texts = ["Paris, France", " a city of contrasts", "são tomé", "", "Paris, France"]
    found = baselines.rouge_l(texts, ["Paris", "Paris", "São Tomé", "Paris", "Paris"])
    assert found.tolist() == pytest.approx([2 / 3, 0, 1, 0, 2 / 3])


def test_the_best_of_all_beams_and_labels():
    rows = [("c", 1, 0.2), ("c", 2, 0.1), ("c", 2, 0.7), ("d", 1, 0.0), ("d", 2, 0.4)]
    table = pd.DataFrame(rows, columns=["prompt", "width", "value"]).assign(fact="f")
    best = baselines.over_beams(table)
    assert list(best) == ["w=1", "w=2"] and best.values.tolist() == [[0.2, 0.7], [0.0, 0.4]]


def test_bert_score_of_any_encoder(tmp_path):
    encoder = CHECKPOINTS / "atlas-t5-2m"  # stored in half precision, computed in float32
    texts, labels = ["Paris", "Lima is", "", "Paris "], ["Paris", "Rome", "Rome", "Paris"]
    same, other, empty, again = baselines.bert_score(encoder, texts, labels)
    assert same == pytest.approx(1, abs=1e-5) and again == same and empty == 0
    assert other < 0.999 and other * 2**11 % 1
    assert baselines.bert_score(encoder, [], []).tolist() == []
    assert baselines.bert_score(encoder, [""], ["Rome"]).tolist() == [0]
    with pytest.raises(ProbeError, match="bert-score cannot use"):
        baselines.bert_score(tmp_path / "nothing", ["a"], ["b"])


@pytest.mark.parametrize(
    ("answer", "value"),
    [("correct", 1), (" Incorrect.", 0), ("The prediction is correct", 1), ("", 0),
     ("No, the statement is false.", 0), (" Yes, the statement is true.", 1),
     ("not sure: correct or incorrect", 0)],
)  # fmt: skip
def test_verdicts(answer, value):
    assert baselines.judged_correct(answer) == value


def test_karr_of_the_worked_example():
    terms = [0.08, 0.1, 0.0, 0.1], [0.0115, 0, 0.1, np.nan], [0.0011, 0.1, 0.1, 0.1]
    found = baselines.ratio(*terms)
    assert found.tolist() == pytest.approx([22.493, np.nan, 1e-6, np.nan], abs=1e-3, nan_ok=True)
    assert found[2] == pytest.approx(1e-6)


def test_karr_sums_by_hand():
    """beta = exp(mean of log P of "is", "in"), gamma given beta = exp(mean of the last token); of a
    single token nothing is scored: 1."""
    rows = [("f", "num", 1.0, "A is in", "A is in X", "X"),
            ("f", "den_s", 1.0, "B is in", "B is in X", "X"),
            ("f", "den_r", 0.5, "A", "A is in X", "is in X"),
            ("f", "den_r", 0.5, "A", "A has X", "has X")]  # fmt: skip
    texts = pd.DataFrame(rows, columns=["fact", "term", "share", "before", "text", "rest"])
    p = {"A": [0.5], "A is in": [0.5, 0.2, 0.8], "B is in": [0.5, 0.1, 0.4],
         "A is in X": [0.5, 0.2, 0.8, 0.5], "B is in X": [0.5, 0.1, 0.4, 0.25],
         "A has X": [0.5, 0.01, 0.09]}  # fmt: skip
    n_tokens = {"X": 1, "is in X": 3, "has X": 2}
    found = baselines.karr(texts, {t: np.log(v) for t, v in p.items()}, n_tokens).iloc[0]
    assert found["num"] == pytest.approx(0.4 * 0.5) and found["den_s"] == pytest.approx(0.2 * 0.25)
    assert found["den_r"] == pytest.approx((0.08 ** (1 / 3) + 0.0009**0.5) / 2)
    assert found["karr"] == pytest.approx(np.sqrt(0.2 / 0.05 * 0.2 / found["den_r"]))
