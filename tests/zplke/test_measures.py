"""ZP-LKE's formulas: worked examples, invariants, edge cases."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from probelib import stats
from probelib.errors import ProbeError
from probelib.zplke import artifacts, measures
from probelib.zplke.measures import choices

GOLD = {"f": "o0"}


def scored(*logprobs, n_tokens=None, fact: str = "f") -> pd.DataFrame:
    """One prompt's options o0, o1, ... with these log-probabilities."""
    n = len(logprobs)
    about = {"prompt": f"zp|{fact}", "fact": fact, "relation": "P1"}
    about |= {"candidate": [f"o{i}" for i in range(n)], "logprob": logprobs}
    return pd.DataFrame(about | {"n_tokens": n_tokens or [1] * n})


def test_three_options_by_hand():
    rows = scored(-1.5, -2.0, -1.7, n_tokens=[2, 1, 3])
    one = choices(rows, GOLD).iloc[0]
    assert one["correct"] and one["predicted"] == "o0" and one["n_options"] == 3
    assert one["q_gold"] == one["confidence"] == pytest.approx(0.41233, abs=1e-5)
    assert choices(rows, {"f": "o1"})["q_gold"][0] == pytest.approx(0.25009, abs=1e-5)
    assert choices(rows, GOLD, per_token=True)["predicted"][0] == "o2"


def test_log_space_holds_where_probabilities_underflow():
    """In the released code only the best option is left above 0: right if it is the right one, and
    wrong, but valid, if the right one is 0."""
    rows = scored(-800, -801, -900)
    one = choices(rows, GOLD).iloc[0]
    assert one["correct"] and one["q_gold"] == pytest.approx(0.731059, abs=1e-6)
    assert choices(rows, {"f": "o2"})["q_gold"][0] == pytest.approx(2.7e-44, rel=0.02)
    released = choices(rows, GOLD, variant="released").iloc[0]  # every probability is 0
    assert not released["correct"] and not released["valid"]
    for gold, right in (("o0", True), ("o1", False)):
        one = choices(scored(-700, -800, -900), {"f": gold}, variant="released").iloc[0]
        assert one["valid"] and one["correct"] == right and one["q_gold"] == right
        assert not one["tie"]


@pytest.mark.parametrize(
    ("logprobs", "tie", "correct"),
    [
        ((-1, -1, -3), True, False),  # with the right object: wrong, and counted
        ((-3, -1, -1), False, False),
        ((-1.0, -1.0 - 9e-6), True, False),  # a difference within rounding
        ((-1.0, -1.0 - 2e-5), False, True),
    ],
)
def test_a_tie_with_the_right_object_is_wrong_and_counted(logprobs, tie, correct):
    one = choices(scored(*logprobs), GOLD).iloc[0]
    assert one["tie"] == tie and one["correct"] == correct


@pytest.mark.parametrize("bad", [np.nan, -np.inf])
def test_no_number_is_not_valid_and_not_right(bad):
    rows = choices(scored(bad, bad, bad), GOLD)
    assert not rows["valid"][0] and not rows["correct"][0] and np.isnan(rows["q_gold"][0])
    one = choices(scored(-1, bad, -2), GOLD).iloc[0]
    assert one["valid"] == one["correct"] == (bad == -np.inf)  # an impossible option is an option


BAD = [
    (lambda: choices(scored(-1, -2), {"f": "elsewhere"}), "zp|f.*occurs 0 times among the options"),
    (lambda: choices(scored(-1, -2).assign(candidate="o0"), GOLD), "occurs 2 times"),
    (lambda: choices(scored(-1, -2), GOLD, variant="code"), "unknown variant 'code'.*released"),
    (lambda: measures.response("a", "a", "loose"), "unknown mode 'loose'.*lenient"),
]


@pytest.mark.parametrize(("call", "message"), BAD)
def test_bad_input_never_becomes_a_number(call, message):
    with pytest.raises(ProbeError, match=message):
        call()


logprob = st.floats(-1000, 0)
option_lists = st.lists(st.lists(logprob, min_size=2, max_size=5), min_size=1, max_size=3)


@settings(max_examples=25, deadline=None)
@given(option_lists, st.floats(-50, 50), st.randoms(use_true_random=False))
def test_invariants(lists, shift, random):
    """q sums to 1; the order of the options changes nothing; a constant changes no q."""
    named = {f"f{i}": values for i, values in enumerate(lists)}
    rows = pd.concat([scored(*v, fact=f) for f, v in named.items()], ignore_index=True)
    gold = dict.fromkeys(named, "o0")
    result = choices(rows, gold).set_index("fact")
    for fact, values in named.items():
        each = [choices(scored(*values), {"f": f"o{j}"})["q_gold"][0] for j in range(len(values))]
        assert sum(each) == pytest.approx(1)
        assert result["correct"][fact] == (values[0] - measures.TIE > max(values[1:]))
    shuffled = rows.sample(frac=1, random_state=random.randrange(2**31))
    again = choices(shuffled, gold).set_index("fact").loc[result.index]
    assert again["correct"].equals(result["correct"])
    np.testing.assert_allclose(again["q_gold"], result["q_gold"], rtol=1e-9)
    moved = choices(rows.assign(logprob=np.float64(rows["logprob"]) + shift), gold)
    np.testing.assert_allclose(moved["q_gold"], result["q_gold"], rtol=1e-9)


def test_pmi_subtracts_what_is_probable_after_every_subject():
    both = [scored(*np.log([0.2, 0.6]), fact="f"), scored(*np.log([0.1, 0.5]), fact="g")]
    both, asked = pd.concat(both, ignore_index=True), pd.DataFrame({"prompt": ["zp|f", "zp|g"]})
    rows = measures.pmi(both, asked.assign(seed=0))
    ratios = [0.2 / 0.1, 0.6 / 0.5, 0.1 / 0.2, 0.5 / 0.6]
    assert np.exp(rows["logprob"]).tolist() == pytest.approx(ratios)
    other_draw = measures.pmi(both, asked.assign(seed=[0, 1]))
    assert other_draw["logprob"].isna().all()  # one subject alone tells no prior


@pytest.mark.parametrize(
    ("text", "gold", "strict", "lenient"),
    [
        ("1939, Albert Szent-", "1939", True, True),
        (" French Jane Doe English", "English", False, True),
        (" Washington, D.C. is", "Washington, D.C.", True, True),
        (" Frozen II", "Oz", False, True),
        (" 18790", "1879", False, True),
        ("", "x", False, False),
        (" STRASSE", "Straße", True, True),
    ],
)
def test_responses_by_hand(text, gold, strict, lenient):
    said = [measures.response(text, gold, mode) for mode in ("strict", "lenient")]
    assert said == [strict, lenient]


def test_methods_are_averaged_over_prompts_first():
    """Two prompts of one relation, one right of two facts with the first, none with the second."""
    inputs = pd.DataFrame({"prompt": list("wxyz"), "method": "HGP", "template": [1, 1, 2, 2]})
    inputs["seed"] = -1
    texts = pd.DataFrame({"prompt": list("wxyz"), "fact": list("fgfg"), "relation": "P1"})
    texts = texts.assign(model="m", text=[" Rome.", " Oslo", " in Rome", ""])
    rows = measures.measure_responses([texts], inputs, {"f": "Rome", "g": "Bern"})
    assert rows["strict"].tolist() == [True, False, False, False]
    assert rows["lenient"].tolist() == [True, False, True, False]
    cells = measures.accuracy_by_method(rows.assign(correct=rows["strict"]), rows)
    assert cells.set_index("test")["accuracy"].tolist() == [0.25, 0.5, 0.25]
    assert cells.attrs["models"] == ["m"]


def test_a_paired_change_by_hand():
    """Agresti and Min, b = 8, c = 1 of 20: -7 / 22 -+ 1.96 sqrt((10 / 22 - (7 / 22)^2) / 22)."""
    before, after = [1] * 8 + [0] * 12, [0] * 8 + [1] + [0] * 11
    half = 1.959964 * np.sqrt((10 / 22 - (7 / 22) ** 2) / 22)
    found = measures.change_of_share(before, after)
    wanted = {"value": -0.35, "low": -7 / 22 - half, "high": -7 / 22 + half, "n": 20}
    assert found == pytest.approx(wanted)
    assert measures.change_of_share(after, before)["low"] == pytest.approx(-found["high"])
    for level in (0, 1):  # nothing is decided at a floor or a ceiling
        found = measures.change_of_share([level] * 60, [level] * 60)
        assert found["low"] < 0 == found["value"] < found["high"]


def test_each_input_of_table_1_is_held_against_the_correct_examples():
    """Eight facts: wrong after four incorrect examples, right after all other inputs."""
    contexts = [("cloze", "none"), ("cloze", "2 correct")]
    contexts += [("zp", "1 correct"), ("zp", "4 correct"), ("zp", "4 incorrect")]
    rows = [(f"{f}|{r}|{c}", f"f{f}", r, c) for f in range(8) for r, c in contexts]
    inputs = pd.DataFrame(rows, columns=["prompt", "fact", "role", "context"])
    wrong = inputs["context"] == "4 incorrect"
    generated = inputs[["prompt"]].assign(text=np.where(wrong, " 1902.", " 1901."))
    answers = measures.answers_of_inputs(inputs, generated, {f"f{f}": "1901" for f in range(8)})
    assert answers["right"].tolist() == (~wrong).tolist()
    table = measures.right_by_input(answers).set_index(["estimator", "context"])
    assert table["right"].tolist() == [8, 8, 8, 8, 0]
    against = table[["change", "lost"]].dropna()  # "2 correct", "4 correct": not against themselves
    assert against.to_numpy().tolist() == [[0, 0], [0, 0], [-1, 1]]
    assert table.loc[("zero-prompt", "4 incorrect"), "change high"] < 0
    assert table.loc[("prompted", "none"), "lost high"] > 0.1  # of eight facts


def test_n95_by_hand():
    assert measures.n95(pd.Series({1: 0.20, 5: 0.50, 10: 0.62, 20: 0.70, 30: 0.72, 50: 0.74})) == 30
    assert measures.n95(pd.Series({50: 0.5, 1: 0.5})) == 1
    assert np.isnan(measures.n95(pd.Series({1: 0.0, 50: 0.0})))  # knows nothing: no number


def test_accuracy_at_a_confidence_by_hand():
    rows = {"fact": list("abcd"), "confidence": [0.9, 0.8, 0.6, 0.3], "correct": [1, 1, 0, 1]}
    rows = pd.DataFrame(rows)
    table = measures.accuracy_at(rows, [0, 0.5, 0.85, 0.95])
    assert table["accuracy"].tolist()[:3] == pytest.approx([0.75, 2 / 3, 1])
    assert table["kept"].tolist() == [4, 3, 1, 0] and table["share"].tolist() == [1, 0.75, 0.25, 0]
    assert np.isnan(table["accuracy"][3]) and np.isnan(table["low"][3])
    draws = measures.accuracy_at(pd.concat([rows] * 5), [0, 0.5])  # of a fact: no new facts
    pd.testing.assert_frame_equal(draws, table.head(2))
    gained = artifacts.figure10(rows.assign(correct=[1, 1, 1, 0], model="m", shots=4)).claims
    assert gained["low"][0] < gained["value"][0] == 0.25 < gained["high"][0]  # 1 minus 3 of 4


def test_positions_are_classified_by_their_predecessors_and_known_by_the_other_draws():
    """a is known in draw 1 by its 0.9 in draw 0, not by its own 0.1; d occurs in one draw only."""
    draws = {0: ("abcd", [0.9, 0.2, 0.9, 0.9]), 1: ("bace", [0.6, 0.1, 0.4, 0.3])}
    draws = {("correct", seed): own for seed, own in draws.items()}
    draws["incorrect", 0] = ("axcd", [0.9, 0.01, 0.2, 0.8])
    rows = [(f"s|{c}|{s}|{i + 1}", c, s, i + 1, f, np.log(p)) for (c, s), (fs, ps) in draws.items()
            for i, (f, p) in enumerate(zip(fs, ps, strict=True))]  # fmt: skip
    columns = ["prompt", "context", "seed", "position", "fact", "logprob"]
    rows = pd.DataFrame(rows, columns=columns)
    kind = np.where(rows["fact"] == "x", "incorrect", "correct")
    examples = rows[["context", "seed", "position"]].assign(kind=kind).groupby("context")
    examples = {context: own.drop(columns="context") for context, own in examples}
    scores = rows[["prompt", "fact", "logprob"]]
    weak = scores.assign(model="weak", logprob=scores["logprob"] - 1)
    found = measures.by_position([weak, scores.assign(model="m")], rows[columns[:3]], examples)
    assert found["model"].unique().tolist() == ["m", "weak"]  # best first
    own = found[found["model"] == "m"]
    wrong = own[own["context"] == "incorrect"]
    assert wrong["role"].tolist() == ["rest", "replaced", "after", "rest"]
    assert wrong["probability"].tolist() == pytest.approx([0.9, 0.01, 0.2, 0.8])
    known = own[own["known"] & (own["context"] == "correct")]
    assert known[["seed", "fact"]].values.tolist() == [[0, "b"], [1, "a"], [1, "c"]]


def sequence(context: str, values, known: bool = True) -> pd.DataFrame:
    """A sequence of ``by_position`` whose second pair is replaced, unless it is the correct one."""
    frame = pd.DataFrame({"context": context, "seed": 0, "probability": values, "known": known})
    roles = ["rest", "replaced", "after"] + ["rest"] * (len(values) - 3)
    frame["role"] = "rest" if context == "correct" else roles
    return frame.assign(position=frame.index + 1)


def test_effects_are_counted_over_known_pairs_after_the_first_replaced_one():
    """23 pairs follow; unknown examples change nothing, incorrect ones take 0.2 from each."""
    rows = [sequence("correct", [0.9] * 25)]
    rows += [sequence("unknown, spread", [0.9, 0.0] + [0.9] * 23)]
    rows += [sequence("incorrect, spread", [0.9, 0.0, *np.linspace(0.6, 0.8, 23)])]
    table = measures.effects(pd.concat(rows)).set_index(["pairs", "effect"])
    every = table.loc["all known pairs"]
    assert every["n"].tolist() == [23, 23, 23] and every["before"].round(9).eq(0.9).all()
    assert every["change"].tolist() == pytest.approx([0, -0.2, -0.2])
    assert every.loc["incorrect", "change high"] < 0
    assert np.isnan(every.loc["unknown", "change low"])
    after = table.loc["directly after a replaced pair"]
    assert after["n"].tolist() == [1, 1, 1] and after["change low"].isna().all()  # no sample
    weak = measures.effects(pd.concat(rows).assign(known=False))
    assert weak["n"].eq(0).all() and weak["change"].isna().all()  # nothing known, nothing to lose


def test_subsumption_by_hand():
    """Known are 1-4 and 2-6 of ten facts."""
    facts = pd.DataFrame({"fact": range(1, 11), "relation": "P1"})
    small, large = (
        facts.assign(correct=facts["fact"].isin(k)) for k in ([1, 2, 3, 4], range(2, 7))
    )
    one = measures.subsumption(small, large).iloc[0]
    assert one[["eta", "reversed", "expected"]].tolist() == [0.75, 0.6, 0.5]
    assert measures.subsumption(small, small)["eta"].tolist() == [1]
    assert np.isnan(measures.subsumption(small.assign(correct=False), large)["eta"].iloc[0])


def test_subsumption_is_averaged_over_relations_that_have_it_in_every_draw():
    facts = pd.DataFrame({"fact": list("abcdef"), "relation": list("PPPQQR")})
    right = {("s", 0): "110100", ("l", 0): "100011", ("s", 1): "100100", ("l", 1): "111111"}
    known = {key: [c == "1" for c in v] for key, v in right.items()}
    rows = [facts.assign(model=m, seed=s, correct=own) for (m, s), own in known.items()]
    table = measures.subsumptions(pd.concat(rows), [("s", "l")])
    assert table["draw"].tolist() == [1, 2] and table["relations"].tolist() == [2, 2]
    first = table.iloc[0]
    assert first["eta"] == pytest.approx((1 / 2 + 0) / 2)  # nothing of R is known
    assert first["ceiling"] == pytest.approx((1 / 2 + 1) / 2)  # itself in the other draw
    assert first["below ceiling"] == pytest.approx(-0.5)
    alone = measures.subsumptions(pd.concat(rows[:2]), [("s", "l")]).iloc[0]
    assert np.isnan(alone["ceiling"]) and np.isnan(alone["below ceiling high"])
    assert measures.subsumptions(pd.concat(rows), []).columns.tolist() == measures.SUBSUMED


def test_the_leaderboard_by_hand():
    """Means over relations, not over facts; several draws of a fact are no new facts."""
    keys = ("P1", "P2", "P3", "Q4")  # relation, fact
    rows = [(m, r, f, s, right) for m, rights in (("a", "1110"), ("b", "1000")) for s in (0, 1)
            for (r, f), right in zip(keys, map(int, rights), strict=True)]  # fmt: skip
    measured = pd.DataFrame(rows, columns=["model", "relation", "fact", "seed", "correct"])
    measured = measured.assign(**{"per token": 1, "pmi": 0})
    by = measures.accuracies(measured).set_index(["model", "relation"])
    assert by["n"].tolist() == [3, 1, 3, 1] and by["between"].eq(0).all()
    board = measures.leaderboard(measured, pd.Series({"1": 16, "2": 3, "3": 99, "4": 0}))
    assert board["model"].tolist() == ["a", "b"]
    assert board["accuracy"].tolist() == pytest.approx([0.5, 1 / 6])
    assert board["p (Holm)"].isna().tolist() == [False, True]
    assert board["p (Holm)"][0] == pytest.approx(0.5) and board["taught 16+"].tolist() == [1, 0.5]
    assert "between" not in measures.leaderboard(measured[measured["seed"] == 0])


def test_families_leave_out_a_model_with_itself():
    matrix = pd.DataFrame(np.random.default_rng(0).random((3, 6)), index=["a-1m", "a-2m", "b-1m"])
    pairs, family = matrix.T.corr(), lambda name: name[0]
    table = measures.family_correlations(matrix, family)
    assert table.loc["a", "a"] == pytest.approx(pairs.iloc[0, 1]) and np.isnan(table.loc["b", "b"])
    both = (pairs.iloc[0, 2] + pairs.iloc[1, 2]) / 2
    assert table.loc["a", "b"] == table.loc["b", "a"] == pytest.approx(both)
    across = measures.between_families(matrix, family)
    assert across["n"] == 2 and across["value"] == pytest.approx(both)
    assert across["low"] <= across["value"] <= across["high"]
    rule, names = pd.Series(np.arange(6.0) ** 2), ["atlas-neox-1m", "atlas-neox-2m", "atlas-t5-1m"]
    partial = [stats.partial(matrix.loc[a], matrix.iloc[2], rule)["r"] for a in matrix.index[:2]]
    found = artifacts.figure8(matrix.set_axis(names), rule).frame["r given the best rule"]
    assert found[1] == pytest.approx(np.mean(partial))
    alone = measures.between_families(matrix.head(2), family)
    assert alone["n"] == 0 and np.isnan(alone["value"])


def test_rules_that_need_no_model():
    labels = ["Rome", "York", "New York"] * 2
    options = pd.DataFrame({"fact": list("aaabbb"), "candidate": list("xyzxyz"), "label": labels})
    asked = {"fact": ["a", "b"], "relation": ["P1", "P2"], "gold": ["z", "x"]}
    asked = pd.DataFrame(asked | {"subject": ["New York Times", "The Hague"]})
    examples = {"relation": ["P1", "P1", "P1", "P2", "P2", "P1"], "seed": [0, 0, 0, 0, 1, 1]}
    examples |= {"object": ["Rome", "Rome", "York", "Rome", "Oslo", "New York"]}
    rules = measures.guessers(options, asked, pd.DataFrame(examples))
    assert rules["copy"].tolist() == pytest.approx([1, 1 / 3])
    assert rules["majority"].tolist() == pytest.approx([1 / 2, (1 + 1 / 3) / 2])  # of two draws
    assert rules["in_subject"].tolist() == [1, 0] and rules["in_examples"].tolist() == [0.5, 0.5]
    assert rules["best rule"].tolist() == pytest.approx([1, 2 / 3])
