"""Scores computed elsewhere: GPT-2's real ones on BEAR, and sample logs of
lm-evaluation-harness."""

import json
from itertools import combinations

import pandas as pd
import pytest

from probelib.beyond import imported
from probelib.beyond.gpt2 import choose_candidates, random_distractors
from probelib.errors import ProbeError


def asked(*continuations: str, prompt: str = "The capital is") -> dict:
    """The requests of a document, as newer versions log them."""
    pairs = [{"arg_0": prompt, "arg_1": text} for text in continuations]
    return dict(sorted({f"gen_args_{i}": pair for i, pair in enumerate(pairs)}.items()))


FRANCE = {"doc_id": 0, "target": "1", "arguments": asked(" Rome", " Paris")}
FRANCE["filtered_resps"] = [["-2.5", "False"], ["-0.5", "True"]]
OLD = {"doc_id": 7, "target": 0, "filtered_resps": [[-2.5, False], [-0.5, True]]}
OLD["arguments"] = [["The capital is", " Oslo"], ["The capital is", " Bergen"]]


@pytest.fixture
def harness(tmp_path):
    def write(*samples, name="samples_capitals_2026-01-02T03-04-05.678901.jsonl"):
        path = tmp_path / "gpt2" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join(json.dumps(sample) + "\n" for sample in samples))
        return tmp_path

    return write


def test_both_forms_of_the_harness_by_hand(harness):
    rows = imported.read(harness(FRANCE, OLD))
    assert rows["fact"].tolist() == ["capitals:0"] * 2 + ["capitals:7"] * 2
    assert rows["label"].tolist() == ["Rome", "Paris", "Oslo", "Bergen"]
    assert rows["logprob"].tolist() == [-2.5, -0.5] * 2
    own = {"model": "gpt2", "relation": "capitals", "prompt": "The capital is"}
    assert (rows[list(own)] == list(own.values())).all(axis=None)
    chosen = choose_candidates(rows)[["correct", "chosen"]].values.tolist()
    assert chosen == [[True, "Paris"], [False, "Bergen"]]
    assert rows.attrs["models"][0]["program"] == "lm-evaluation-harness"


def test_more_than_ten_candidates_keep_their_order(harness):
    """gen_args_10 comes after gen_args_9, not after gen_args_1."""
    labels = [f"c{i}" for i in range(12)]
    many = {"arguments": asked(*labels), "target": "11"}
    rows = imported.read(harness(FRANCE | many | {"filtered_resps": [[-1.0, False]] * 12}))
    assert rows["label"].tolist() == labels and rows["gold"][0] == "capitals:0:11"


PROMPTS = [["2 - 1 =", " 1"], ["2 - 1 =", " 0"]]
WHY = "The trophy did not fit, for the {} was"
WINOGRANDE = [[WHY.format(x), " too large."] for x in ("trophy", "case")]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"target": "Madrid"}, "names 0 candidates"),
        ({"target": "2"}, "0 to 1"),
        ({"arguments": PROMPTS, "target": "0"}, "names 2 candidates by their number .* or text"),
        ({"arguments": WINOGRANDE, "target": "too large."}, "names 2 candidates"),
        ({"filtered_resps": [["-1", "True"]]}, "2 arguments and 1 responses"),
        ({"filtered_resps": [["x", "True"], ["-1", "True"]]}, "a log-probability"),
        ({"filtered_resps": [["nan", "True"], ["-1", "True"]]}, "a log-probability"),
        ({"arguments": {"gen_args_0": {"arg_0": 3}}}, "not a request"),
        ({"arguments": {}}, "0 arguments"),
        ({"doc_id": "a"}, "doc_id"),
    ],
)
def test_bad_samples_raise(harness, change, said):
    """An ambiguous target is refused: is "0" the first candidate, or the one that reads 0? In
    WinoGrande only prompts differ."""
    with pytest.raises(ProbeError, match=said):
        imported.read(harness(FRANCE | change))


def test_priors_are_no_candidates(harness):
    """``acc_mutual_info`` asks for every candidate once more, behind nothing; a task may have no
    prompt at all."""
    first = "The capital of Italy is"
    pairs = [[first, " Rome"], [first, " Paris"], ["", "Rome"], ["", "Paris"]]
    scored = {"target": "0", "filtered_resps": [[-x, False] for x in (2, 3, 9, 1)]}
    rows = imported.read(harness(FRANCE | scored | {"arguments": pairs}))
    assert rows[["label", "logprob"]].values.tolist() == [["Rome", -2], ["Paris", -3]]
    assert choose_candidates(rows)["correct"].all()
    assert len(imported.read(harness(FRANCE | {"arguments": pairs[2:]}))) == 2


def test_what_is_not_there(harness, tmp_path):
    (tmp_path / "empty").mkdir()
    folder = harness(FRANCE)
    wrong = {(tmp_path / "nowhere", None): "does not exist"}
    wrong |= {(tmp_path / "empty", None): "holds no samples_"}
    wrong |= {(folder, ("rivers",)): "no scores of rivers; available: capitals"}
    wrong |= {(None, ("P1",)): "no scores of P1; available: P19"}
    for (place, relations), message in wrong.items():
        with pytest.raises(ProbeError, match=message):
            imported.read(place, relations)
    with pytest.raises(ProbeError, match="jsonl:2: document 0 is already in line .*filter"):
        imported.read(harness(FRANCE, FRANCE))
    harness(FRANCE, name="samples_capitals_2026-02-02T03-04-05.jsonl")
    with pytest.raises(ProbeError, match="several runs of one task"):
        imported.read(folder)


def test_candidates_may_stand_behind_prompts_of_their_own():
    """By hand; a fact's right candidate must be there."""
    rows = pd.DataFrame({"candidate": list("xyz"), "logprob": [-1, -2, -3]})
    rows = rows.assign(model="a", relation="r", fact="f", gold="y", label=["X", "Y", "Z"])
    rows["prompt"] = ["prompt 0", "prompt 1", "prompt 2"]
    found = choose_candidates(rows)[["model", "correct", "wrong", "beaten", "chosen"]]
    assert found.values.tolist() == [["a", False, 2, 1, "X"]]
    with pytest.raises(ProbeError, match="the right object occurs 0 times"):
        choose_candidates(rows.assign(gold="w"))


def test_random_distractors_are_the_mean_over_all_draws():
    """The closed form against all 35 draws of three of seven wrong candidates, five of which are
    beaten."""
    draws = list(combinations([True] * 5 + [False] * 2, 3))
    known = pd.DataFrame({"fact": ["a"], "wrong": [7], "beaten": [5]})
    found = random_distractors(known, 3).iloc[0]
    assert found["min"] == pytest.approx(sum(map(all, draws)) / 35)
    assert found["avg"] == pytest.approx(sum(map(sum, draws)) / 105)


def test_a_fact_with_few_candidates_takes_all_of_them():
    """Of m < n wrong candidates all m are taken; a fact without any has no value. Avg@n does not
    depend on n."""
    table = pd.DataFrame({"fact": list("abc"), "wrong": [4, 2, 0], "beaten": [3, 2, 0]})
    found = random_distractors(table, 3)
    assert found["min"].tolist() == pytest.approx([1 / 4, 1, float("nan")], nan_ok=True)
    assert found["avg"].tolist() == pytest.approx([3 / 4, 1, float("nan")], nan_ok=True)
