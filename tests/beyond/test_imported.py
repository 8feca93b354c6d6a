"""Scores computed elsewhere: GPT-2's real ones on BEAR, and sample logs of
lm-evaluation-harness."""

import json
import random

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from probelib.beyond import imported
from probelib.beyond.gpt2 import accuracy_by_relation, choose_candidates, random_distractors
from probelib.errors import ProbeError

FRANCE = {
    "doc_id": 0,
    "doc": {"q": "France"},
    "target": "1",
    "filtered_resps": [["-2.5", "False"], ["-0.5", "True"]],
}
FRANCE["arguments"] = {
    f"gen_args_{i}": {"arg_0": "The capital is", "arg_1": f" {c}"}
    for i, c in enumerate(("Rome", "Paris"))
}
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
    assert rows[["fact", "label", "logprob"]].values.tolist() == [
        ["capitals:0", "Rome", -2.5],
        ["capitals:0", "Paris", -0.5],
        ["capitals:7", "Oslo", -2.5],
        ["capitals:7", "Bergen", -0.5],
    ]
    assert (
        set(rows["model"]) == {"gpt2"}
        and set(rows["relation"]) == {"capitals"}
        and rows["prompt"][0] == "The capital is"
    )
    chosen = choose_candidates(rows)
    assert chosen["correct"].tolist() == [True, False] and chosen["chosen"].tolist() == [
        "Paris",
        "Bergen",
    ]
    assert rows.attrs["models"][0]["program"] == "lm-evaluation-harness"


def test_more_than_ten_candidates_keep_their_order(harness):
    """gen_args_10 comes after gen_args_9, not after gen_args_1."""
    many = FRANCE | {
        "arguments": {
            f"gen_args_{i}": {"arg_0": "q", "arg_1": f" c{i}"} for i in sorted(range(12), key=str)
        },
        "filtered_resps": [[-float(i + 1), False] for i in range(12)],
        "target": "11",
    }
    rows = imported.read(harness(many))
    assert (
        rows["label"].tolist() == [f"c{i}" for i in range(12)]
        and rows["gold"][0] == "capitals:0:11"
    )


PROMPTS = [["2 - 1 =", " 1"], ["2 - 1 =", " 0"]]
WINOGRANDE = [
    [f"The trophy did not fit, for the {x} was", " too large."] for x in ("trophy", "case")
]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"target": "Madrid"}, "names 0 candidates"),
        ({"target": "2"}, "0 to 1"),
        ({"arguments": PROMPTS, "target": "0"}, "names 2 candidates by their number .* or text"),
        ({"arguments": WINOGRANDE, "target": "too large."}, "names 2 candidates"),
        ({"filtered_resps": [["-1", "True"]]}, "2 arguments and 1 responses"),
        ({"filtered_resps": [["x", "True"], ["-1", "True"]]}, "a log-probability"),
        ({"filtered_resps": [["0.5", "True"], ["-1", "True"]]}, "a log-probability"),
        ({"filtered_resps": [["nan", "True"], ["-1", "True"]]}, "a log-probability"),
        ({"filtered_resps": ["generated", "text"]}, "a log-probability"),
        ({"arguments": {"gen_args_0": {"arg_0": 3}}}, "not a request"),
        ({"arguments": {}}, "0 arguments"),
        ({"arguments": 3}, "0 arguments"),
        ({"doc_id": "a"}, "doc_id"),
    ],
)
def test_bad_samples_raise(harness, change, said):
    """An ambiguous target is refused: is "0" the first candidate, or the one that reads 0? In
    WinoGrande only prompts differ."""
    with pytest.raises(ProbeError, match=said):
        imported.read(harness(FRANCE | change))


def test_a_number_decides_where_only_prompts_differ(harness):
    found = imported.read(harness(FRANCE | {"arguments": WINOGRANDE, "target": "1"}))
    assert found["gold"][0] == "capitals:0:1"


def test_priors_are_no_candidates(harness):
    """``acc_mutual_info`` asks for every candidate once more, behind nothing; "Paris" is the more
    frequent word."""
    asked = [
        ["The capital of Italy is", " Rome"],
        ["The capital of Italy is", " Paris"],
        ["", "Rome"],
        ["", "Paris"],
    ]
    rows = imported.read(
        harness(
            FRANCE
            | {
                "arguments": asked,
                "target": "0",
                "filtered_resps": [[-x, False] for x in (2, 3, 9, 1)],
            }
        )
    )
    assert (
        rows[["label", "logprob"]].values.tolist() == [["Rome", -2], ["Paris", -3]]
        and choose_candidates(rows)["correct"].all()
    )
    bare = [["", " Rome"], ["", " Paris"]]  # a task without a prompt
    assert len(imported.read(harness(FRANCE | {"arguments": bare}))) == 2


def test_a_duplicate_document_raises(harness):
    with pytest.raises(ProbeError, match="jsonl:2: document 0 is already in line .*filter"):
        imported.read(harness(FRANCE, FRANCE))


def test_what_is_not_there(harness, tmp_path):
    with pytest.raises(ProbeError, match="does not exist"):
        imported.read(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ProbeError, match="neither metadata_results.json"):
        imported.read(tmp_path / "empty")
    folder = harness(FRANCE)
    with pytest.raises(ProbeError, match="no scores of rivers; available: capitals"):
        imported.read(folder, ["rivers"])
    harness(FRANCE, name="samples_capitals_2026-02-02T03-04-05.jsonl")
    with pytest.raises(ProbeError, match="several runs of one task"):
        imported.read(folder)


def test_accuracies_of_gpt2_are_those_of_an_independent_script(gpt2):
    independent = {}
    for path in sorted(gpt2.glob("*_results.jsonl")):
        right = 0
        lines = path.read_text().splitlines()
        for line in lines:
            row = json.loads(line)
            best = max(range(len(row["pll_scores"])), key=row["pll_scores"].__getitem__)
            right += best == row["answer_idx"]
        independent[path.name.split("_")[0]] = right / len(lines)
    ours = (
        accuracy_by_relation(choose_candidates(imported.read(gpt2)))
        .set_index("relation")["accuracy"]
        .to_dict()
    )
    assert len(independent) == 30 and ours == independent
    assert imported.read(imported.GPT2).equals(imported.read(gpt2)), (
        "what is shipped is what was published"
    )


def test_the_shipped_scores_are_small_and_say_where_they_come_from():
    rows = imported.read_one(None)
    assert (
        imported.GPT2.stat().st_size < 1.5e6
        and rows["relation"].nunique() == 30
        and rows["fact"].nunique() == 4134
    )
    assert rows.attrs["models"][0]["program"] == "lm-pub-quiz"
    notice = imported.GPT2.with_suffix(".md").read_text()
    assert "github.com/lm-pub-quiz/lm-pub-quiz" in notice and "MIT, Copyright (c) 2024" in notice
    with pytest.raises(ProbeError, match="no scores of P1; available: P19"):
        imported.read_one(None, ["P1"])


def test_candidates_may_stand_behind_prompts_of_their_own():
    """By hand; a fact's right candidate must be there."""
    rows = pd.DataFrame({"candidate": list("xyz"), "logprob": [-1, -2, -3]})
    rows = rows.assign(model="a", relation="r", fact="f", gold="y", label=["X", "Y", "Z"])
    rows["prompt"] = ["prompt 0", "prompt 1", "prompt 2"]
    found = choose_candidates(rows)[["model", "correct", "wrong", "beaten", "chosen"]]
    assert found.values.tolist() == [["a", False, 2, 1, "X"]]
    with pytest.raises(ProbeError, match="the right object occurs 0 times"):
        choose_candidates(rows.assign(gold="w"))


def test_random_distractors_are_the_mean_over_draws(gpt2):
    """The closed form against 4,000 draws, on one of GPT-2's facts that is neither all right nor
    all wrong."""
    rows = imported.read(gpt2, ["P36"])
    table = choose_candidates(rows)
    one = table[(table["beaten"] > table["wrong"] * 0.7) & (table["beaten"] < table["wrong"])].iloc[
        0
    ]
    group = rows[rows["fact"] == one["fact"]]
    gold = group.loc[group["candidate"] == group["gold"], "logprob"].item()
    wrong = group.loc[group["candidate"] != group["gold"], "logprob"].tolist()
    draw = random.Random(0)
    wins = [[gold > w for w in draw.sample(wrong, 3)] for _ in range(4000)]
    expected = random_distractors(one.to_frame().T, 3).iloc[0]
    assert sum(map(all, wins)) / 4000 == pytest.approx(expected["min"], abs=0.03)
    assert sum(map(sum, wins)) / 12000 == pytest.approx(expected["avg"], abs=0.02)


def test_a_fact_with_few_candidates_takes_all_of_them():
    """Of m < n wrong candidates all m are taken; a fact without any has no value. Avg@n does not
    depend on n."""
    table = pd.DataFrame({"fact": list("abc"), "wrong": [4, 2, 0], "beaten": [3, 2, 0]})
    found = random_distractors(table, 3)
    assert found["min"].tolist() == pytest.approx([1 / 4, 1, float("nan")], nan_ok=True)
    assert found["avg"].tolist() == pytest.approx([3 / 4, 1, float("nan")], nan_ok=True)
    many = random_distractors(pd.DataFrame({"fact": ["a"], "wrong": [5000], "beaten": [4990]}), 200)
    assert many["min"].item() == pytest.approx(
        (4800 / 5000) ** 10, rel=0.05
    )  # none of the ten is among the 200


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(-50, 0), min_size=2, max_size=12), st.randoms())
def test_the_order_of_candidates_does_not_matter(logprobs, random_order):
    rows = pd.DataFrame(
        {"model": "m", "relation": "r", "fact": "f", "gold": "c0", "logprob": logprobs}
    )
    rows["candidate"] = rows["label"] = [f"c{i}" for i in range(len(logprobs))]
    order = list(range(len(logprobs)))
    random_order.shuffle(order)
    first, second = (choose_candidates(frame).iloc[0] for frame in (rows, rows.iloc[order]))
    for column in ("wrong", "beaten", "correct"):
        assert first[column] == second[column]
    assert first["q_gold"] == pytest.approx(second["q_gold"])
    assert first["correct"] == (logprobs[0] > max(logprobs[1:]))  # a tie is wrong
    avg = [
        random_distractors(pd.DataFrame([first]), n)["min"].item() for n in range(1, len(logprobs))
    ]
    assert all(a >= b - 1e-12 for a, b in zip(avg, avg[1:], strict=False))
