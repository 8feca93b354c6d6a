"""ZP-LKE: worked examples, invariants, edge cases, and the scores of real models."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from probelib import facts, lm, prompts, published, stats, store, zplke
from probelib.errors import ProbeError
from probelib.zplke import examples, measures


def scored(*logprobs, gold: str = "o0", n_tokens=None, fact: str = "f") -> pd.DataFrame:
    """One prompt's options o0, o1, ... with these log-probabilities."""
    n = len(logprobs)
    return pd.DataFrame(
        {
            "prompt": f"zp|{fact}",
            "fact": fact,
            "relation": "P1",
            "candidate": [f"o{i}" for i in range(n)],
            "logprob": logprobs,
            "n_tokens": n_tokens or [1] * n,
        }
    )


GOLD = {"f": "o0"}


# ---- the input


def test_the_input_by_hand():
    pairs = [("A", "1"), ("B", "2")]
    assert prompts.many_shot(pairs, "C") == "A 1 B 2 C"
    assert prompts.many_shot(pairs, "C", gap=", ") == "A 1, B 2, C"
    assert prompts.many_shot(pairs, "C", gap="\n") == "A 1\nB 2\nC"
    released = prompts.many_shot(pairs, "C", variant="released")
    assert released == "A : 1 , B : 2 C : " and released + " : 3" == "A : 1 , B : 2 C :  : 3"
    assert prompts.many_shot([], "Chad", "The capital of [X] is") == "The capital of Chad is"
    with pytest.raises(ProbeError, match="variant.*realeased.*kit.*released"):
        prompts.many_shot(pairs, "C", variant="realeased")


# ---- multiple choice


def test_three_options_by_hand():
    rows = scored(-1.5, -2.0, -1.7, n_tokens=[2, 1, 3])
    one = zplke.choices(rows, GOLD).iloc[0]
    assert one["correct"] and one["predicted"] == "o0" and one["position"] == 0 and one["n_options"] == 3
    assert one["q_gold"] == one["confidence"] == pytest.approx(0.41233, abs=1e-5)
    assert [zplke.choices(rows, {"f": o})["q_gold"][0] for o in ("o1", "o2")] == pytest.approx(
        [0.25009, 0.33758], abs=1e-5
    )
    assert zplke.choices(rows, GOLD, per_token=True)["predicted"][0] == "o2"


def test_log_space_holds_where_probabilities_underflow():
    rows = scored(-800, -801, -900)
    one = zplke.choices(rows, GOLD).iloc[0]
    assert one["correct"] and one["q_gold"] == pytest.approx(0.731059, abs=1e-6)
    assert zplke.choices(rows, {"f": "o2"})["q_gold"][0] == pytest.approx(2.7e-44, rel=0.02)
    released = zplke.choices(rows, GOLD, variant="released").iloc[0]  # every probability is 0: wrong, and not valid
    assert not released["correct"] and not released["valid"]


def test_the_released_variant_agrees_where_nothing_underflows():
    rows = scored(-1.5, -2.0, -1.7)
    kit, released = (zplke.choices(rows, GOLD, variant=v) for v in ("kit", "released"))
    pd.testing.assert_frame_equal(kit, released)
    half = scored(-700, -800, -900)  # only the best one is left above 0
    assert zplke.choices(half, GOLD, variant="released")["correct"][0]
    with pytest.raises(ProbeError, match="unknown variant 'code'"):
        zplke.choices(rows, GOLD, variant="code")


def test_a_tie_with_the_right_object_is_wrong_and_counted():
    rows = zplke.choices(pd.concat([scored(-1, -1, -3), scored(-3, -1, -1, fact="g")]), GOLD | {"g": "o0"})
    assert rows["correct"].tolist() == [False, False] and rows["tie"].tolist() == [True, False]


@pytest.mark.parametrize("bad", [np.nan, -np.inf])
def test_no_number_is_not_valid_and_not_right(bad):
    rows = zplke.choices(scored(bad, bad, bad), GOLD)
    assert not rows["valid"][0] and not rows["correct"][0] and np.isnan(rows["q_gold"][0])
    one = zplke.choices(scored(-1, bad, -2), GOLD).iloc[0]
    assert one["valid"] == one["correct"] == (bad == -np.inf)  # an impossible option is an option; NaN is none


@pytest.mark.parametrize("gold", ["elsewhere", None])
def test_the_right_object_must_be_offered_once(gold):
    with pytest.raises(ProbeError, match="occurs 0 times among the options"):
        zplke.choices(scored(-1, -2), {"f": gold})
    twice = scored(-1, -2).assign(candidate="o0")
    with pytest.raises(ProbeError, match="occurs 2 times"):
        zplke.choices(twice, GOLD)


logprob = st.floats(-1000, 0)
option_lists = st.lists(st.lists(logprob, min_size=2, max_size=5), min_size=1, max_size=3)


@settings(max_examples=25, deadline=None)
@given(option_lists, st.floats(-50, 50), st.randoms(use_true_random=False))
def test_invariants(lists, shift, random):
    rows = pd.concat([scored(*values, fact=f"f{i}") for i, values in enumerate(lists)], ignore_index=True)
    gold = {f"f{i}": "o0" for i in range(len(lists))}
    result = zplke.choices(rows, gold).set_index("fact")
    for i, values in enumerate(lists):
        others = [zplke.choices(scored(*values), {"f": f"o{j}"})["q_gold"][0] for j in range(len(values))]
        assert sum(others) == pytest.approx(1)
        assert result["correct"][f"f{i}"] == (values[0] > max(values[1:]))
    shuffled = rows.sample(frac=1, random_state=random.randrange(2**31))
    again = zplke.choices(shuffled, gold).set_index("fact").loc[result.index]
    assert again["correct"].equals(result["correct"]) and again["q_gold"].to_numpy() == pytest.approx(
        result["q_gold"].to_numpy()
    )
    moved = zplke.choices(rows.assign(logprob=np.float64(rows["logprob"]) + shift), gold)
    assert moved["q_gold"].to_numpy() == pytest.approx(result["q_gold"].to_numpy(), rel=1e-9)


@settings(max_examples=15, deadline=None)
@given(st.lists(st.lists(logprob, min_size=6, max_size=6), min_size=1, max_size=4), st.sampled_from([0.0, 0.4, 1.0]))
def test_more_options_never_raise_the_accuracy(lists, hard):
    rows = pd.concat([scored(*values, fact=f"f{i}") for i, values in enumerate(lists)], ignore_index=True)
    gold = {f"f{i}": "o0" for i in range(len(lists))}
    frequency, before, inside = {"o3": 9, "o5": 4}, None, set()
    for n in range(2, 7):
        fewer = zplke.fewer_options(rows, gold, n, hard, frequency)
        assert (fewer.groupby("fact").size() == n).all()
        right = zplke.choices(fewer, gold)["correct"]
        if hard in (0.0, 1.0):  # nested sets
            assert inside <= set(fewer.index) and (before is None or (right <= before).all())
        before, inside = right, set(fewer.index)


def test_hard_options_are_the_frequent_ones():
    rows = scored(-1, -2, -3, -4, -5)
    picked = lambda n, hard: zplke.fewer_options(rows, GOLD, n, hard, {"o4": 7, "o3": 2})["candidate"].tolist()
    assert (
        picked(3, 0) == ["o0", "o1", "o2"]
        and picked(3, 1) == ["o0", "o3", "o4"]
        and picked(3, 0.5) == ["o0", "o1", "o4"]
    )


def test_pmi_subtracts_what_is_probable_after_every_subject():
    both = [scored(np.log(0.2), np.log(0.6), fact="f"), scored(np.log(0.1), np.log(0.5), fact="g")]
    asked = pd.DataFrame({"prompt": ["zp|f", "zp|g"], "seed": 0})
    rows = zplke.pmi(pd.concat(both, ignore_index=True), asked)
    assert np.exp(rows["logprob"]).tolist() == pytest.approx([0.2 / 0.1, 0.6 / 0.5, 0.1 / 0.2, 0.5 / 0.6])
    other_draw = zplke.pmi(pd.concat(both, ignore_index=True), asked.assign(seed=[0, 1]))
    assert other_draw["logprob"].isna().all()  # one subject alone tells no prior: never a number out of nothing


def test_a_guesser_is_at_chance_and_healthy_a_stuck_model_is_neither():
    draw = np.random.default_rng(0)
    rows = pd.concat([scored(*draw.normal(size=20), fact=f"f{i}") for i in range(600)], ignore_index=True)
    gold = {f"f{i}": f"o{draw.integers(20)}" for i in range(600)}
    guessed = zplke.run_health(zplke.choices(rows, gold))
    assert abs(guessed["accuracy"] - 0.05) < 3 * np.sqrt(0.05 * 0.95 / 600) and guessed["chance"] == pytest.approx(0.05)
    assert guessed["entropy"] > guessed["expected"] and guessed["below"] > 0.001 and guessed["invalid"] == 0
    draws = pd.concat(
        [zplke.choices(rows, gold).assign(seed=seed) for seed in range(5)]
    )  # the same answers behind five draws
    assert zplke.run_health(draws)["below"] == pytest.approx(guessed["below"])  # ... are no more cases than the facts
    first = rows.assign(logprob=np.where(rows["candidate"] == "o0", -1.0, -2.0))
    stuck = zplke.run_health(zplke.choices(first, {f: "o7" for f in gold}))
    assert stuck["entropy"] == 0 < stuck["expected"] and stuck["below"] < 1e-9 and stuck["accuracy"] == 0


# ---- the response test


@pytest.mark.parametrize(
    ("text", "gold", "strict", "lenient", "first_pair", "released"),
    [
        ("1939, Albert Szent-", "1939", True, True, True, True),
        (" French Jane Doe English", "English", False, True, False, True),
        (" Washington, D.C. is", "Washington, D.C.", True, True, True, False),
        (" Frozen II", "Oz", False, True, False, True),
        (" 18790", "1879", False, True, False, True),
        ("", "x", False, False, False, False),
        (" STRASSE", "Straße", True, True, True, False),
    ],
)
def test_responses_by_hand(text, gold, strict, lenient, first_pair, released):
    said = {mode: zplke.response(text, gold, mode) for mode in ("strict", "lenient", "first_pair", "released")}
    assert said == {"strict": strict, "lenient": lenient, "first_pair": first_pair, "released": released}


def test_the_first_pair_ends_at_the_gap():
    assert zplke.response(" New York\nParis France", "New York", "first_pair", gap="\n")
    assert not zplke.response(" New\nYork", "New York", "first_pair", gap="\n")
    with pytest.raises(ProbeError, match="unknown mode 'loose'"):
        zplke.response("a", "a", "loose")


# ---- curves, subsumption, correlation


def test_n95_by_hand():
    assert zplke.n95(pd.Series({1: 0.20, 5: 0.50, 10: 0.62, 20: 0.70, 30: 0.72, 50: 0.74})) == 30
    assert zplke.n95(pd.Series({50: 0.5, 1: 0.5})) == 1
    assert np.isnan(zplke.n95(pd.Series({1: 0.0, 50: 0.0})))  # a model that knows nothing needs no number of examples


def test_accuracy_at_a_confidence_by_hand():
    rows = pd.DataFrame(
        {"fact": list("abcd"), "confidence": [0.9, 0.8, 0.6, 0.3], "correct": [True, True, False, True]}
    )
    table = zplke.accuracy_at(rows, [0, 0.5, 0.85, 0.95])
    assert table["accuracy"].tolist()[:3] == pytest.approx([0.75, 2 / 3, 1]) and table["kept"].tolist() == [4, 3, 1, 0]
    assert (
        np.isnan(table["accuracy"][3]) and np.isnan(table["low"][3]) and table["share"].tolist() == [1, 0.75, 0.25, 0]
    )


def test_draws_of_a_fact_are_no_new_facts():
    rows = pd.DataFrame(
        {"fact": list("abcd"), "confidence": [0.9, 0.8, 0.6, 0.3], "correct": [True, True, False, True]}
    )
    pd.testing.assert_frame_equal(zplke.accuracy_at(pd.concat([rows] * 5), [0, 0.5]), zplke.accuracy_at(rows, [0, 0.5]))


def test_subsumption_by_hand():
    small, large = (np.isin(np.arange(1, 11), known) for known in ([1, 2, 3, 4], [2, 3, 4, 5, 6]))
    result = zplke.subsumption(small, large)
    assert [result[k] for k in ("eta", "reversed", "jaccard", "expected", "lift")] == pytest.approx(
        [0.75, 0.6, 0.5, 0.5, 1.5]
    )
    assert zplke.subsumption(small, small)["eta"] == 1 and np.isnan(zplke.subsumption(np.zeros(10), large)["eta"])


def test_subsumption_is_averaged_over_relations_that_have_it():
    small = pd.DataFrame({"fact": list("abcdef"), "relation": list("PPPQQR"), "correct": [1, 1, 0, 1, 0, 0]})
    large = pd.DataFrame({"fact": list("fedcba"), "correct": [1, 1, 1, 0, 0, 1]})
    result = zplke.mean_subsumption(small, large)
    assert result["eta"] == pytest.approx((1 / 2 + 1) / 2) and result["pooled"] == pytest.approx(2 / 3)
    assert (result["relations"], result["of"]) == (2, 3)  # R: the small one knows nothing there
    assert zplke.mean_subsumption(small, small)["eta"] == 1


def test_the_published_rates_fit_the_other_direction():
    rows = pd.concat([published.table("zplke/table2").set_axis(["f", "s", "small", "l", "large", "eta"], axis=1)])
    below = rows["eta"] < rows["large"]
    assert below.all()  # below what independent models would have, in six of six
    kept = rows["eta"] * rows["large"] / rows["small"]  # the share kept, if eta is P(small | large)
    assert kept.tolist() == pytest.approx([0.920, 0.915, 0.800, 0.658, 0.782, 0.666], abs=0.001)


def test_families_leave_out_a_model_with_itself():
    matrix = pd.DataFrame(np.random.default_rng(0).random((3, 6)), index=["a-1m", "a-2m", "b-1m"])
    pairs = zplke.correlations(matrix)
    assert np.allclose(pairs, pairs.T) and np.allclose(np.diag(pairs), 1)
    table = zplke.family_correlations(pairs, {"a-1m": "a", "a-2m": "a", "b-1m": "b"})
    assert table.loc["a", "a"] == pytest.approx(pairs.iloc[0, 1]) and np.isnan(table.loc["b", "b"])
    assert table.loc["a", "b"] == table.loc["b", "a"] == pytest.approx((pairs.iloc[0, 2] + pairs.iloc[1, 2]) / 2)
    assert zplke.family_correlations(pairs.iloc[:1, :1], {"a-1m": "a"}).shape == (1, 1)


def test_published_tables_are_what_the_audit_says():
    board, models = published.table("zplke/table8"), published.table("zplke/table7")
    assert len(board) == len(models) == 49 and (models["kind"] == "pretrained").sum() == 35
    assert board["avg_accuracy"].is_monotonic_decreasing
    whole = lambda values, n: (np.abs(values * n - (values * n).round()) < 1e-3).sum()
    assert (
        whole(board["avg_accuracy"], 20000) == 43
        and whole(published.table("zplke/table9")["avg_accuracy"], 14000) == 48
    )
    assert stats.wilson(244, 400) == pytest.approx((0.561, 0.657), abs=1e-3)
    assert stats.wilson(312, 400) == pytest.approx((0.737, 0.818), abs=1e-3)


def test_rules_that_need_no_model():
    options = pd.DataFrame(
        {"fact": list("aaabbb"), "candidate": list("xyzxyz"), "label": ["Rome", "York", "New York"] * 2}
    )
    asked = pd.DataFrame(
        {"fact": ["a", "b"], "relation": "P1", "subject": ["New York Times", "The Hague"], "gold": ["z", "x"]}
    )
    examples = pd.DataFrame({"relation": "P1", "object": ["Rome", "Rome", "York"]})
    rows = zplke.guessers(options, asked, examples).set_index("fact")
    assert rows["copy"].tolist() == pytest.approx([1, 1 / 3]) and rows["majority"].tolist() == [0, 1]
    assert rows["in_subject"].tolist() == [1, 0] and rows["in_examples"].tolist() == [0, 1]


# ---- examples


@pytest.fixture(scope="module")
def capitals():
    return facts.multiple_choice(relations=["P36"], n_facts=6)


def test_examples_are_the_same_for_all_facts_and_nested(capitals):
    asked, pool = capitals
    long, again, other = (prompts.sample_examples(pool, asked, n, seed) for n, seed in ((20, 0), (5, 0), (20, 1)))
    pd.testing.assert_frame_equal(long.head(5), again)
    assert set(long["fact"]) != set(other["fact"]) and long["subject"].is_unique
    assert not set(long["subject"]) & set(asked.label(asked.facts["subject"]))
    frame = prompts.many_shots(asked, long, 5)
    assert len(frame) == 6 and len({text.rsplit(again["object"].iloc[-1], 1)[0] for text in frame["text"]}) == 1
    assert len(prompts.many_shots(asked, long, role="hgp")) == 6 * 3


def test_an_example_must_not_tell_the_answer(capitals):
    asked, pool = capitals
    with pytest.raises(
        ProbeError, match=r"6 facts of the pool have a subject that is also scored.*facts.without_subjects"
    ):
        prompts.sample_examples(facts.load(relations=["P36"], n_facts="all"), asked, 5)
    with pytest.raises(ProbeError, match="P36 has .* Take"):
        prompts.sample_examples(pool, asked, 100_000)


@pytest.mark.parametrize("n", [50, "max"])
def test_without_untested_facts_there_are_no_examples(n):
    """Fewer examples would not help there; and of many such relations a few are named."""
    asked = facts.load(relations=["P30", "P36", "P37", "P38", "P47"], n_facts="all")
    with pytest.raises(ProbeError, match=r"no fact of P30, P36, P37 and 2 more.*score fewer \(n_facts=\.\.\.\)"):
        prompts.sample_examples(facts.without_subjects(asked, asked), asked, n)


@pytest.mark.parametrize("n", [0, -1, 2.0, True, "all"])
def test_a_list_has_one_example_or_more(capitals, n):
    asked, pool = capitals
    with pytest.raises(ProbeError, match=f"n_examples={n!r}; an integer of at least 1"):
        prompts.sample_examples(pool, asked, n)


def test_an_input_longer_than_the_context_says_how_many_examples_fit(capitals):
    asked, pool = capitals
    examples = pd.concat([prompts.sample_examples(pool, asked, 50, seed) for seed in (0, 1)])
    words = lambda texts: [text.split() for text in texts]
    reader = SimpleNamespace(context=60, tokens=SimpleNamespace(encode=words, prompts=words))
    fits = zplke.fit_examples("max", examples, asked, reader)
    longest = lambda n: max(map(len, words(prompts.many_shots(asked, examples, n)["text"])))
    assert longest(fits) <= 60 - 16 < longest(fits + 1)
    assert zplke.fit_examples(3, examples, asked, reader) == 3
    with pytest.raises(ProbeError, match=f"at most {fits} examples of relation P36 .* fit into the 60 tokens.*'max'"):
        zplke.fit_examples(50, examples, asked, reader)


def test_a_start_token_is_counted_once(capitals):
    """atlas-llama-0.6m's tokenizer puts a token before every text: before the whole list, not before each of its examples."""
    asked, pool = capitals
    model = lm.load("atlas-llama-0.6m")
    examples = prompts.sample_examples(pool, asked, "max")
    fits = zplke.fit_examples("max", examples, asked, model, room=16)
    longest = lambda n: max(map(len, model.tokens.prompts(prompts.many_shots(asked, examples, n)["text"].tolist())))
    assert len(model.tokens.start) == 1 and longest(fits) <= model.context - 16
    assert fits == len(examples) or longest(fits + 1) > model.context - 16


def test_replaced_examples(capitals):
    _, pool = capitals
    examples = prompts.sample_examples(pool, None, 30)
    where = zplke.positions(30, 8, True, free=14, seed=3)
    assert len(set(where)) == 8 and zplke.positions(200, 40, False) == list(range(81, 121))
    for seed in range(20):  # a star that is untouched, behind one that is untouched
        assert not {13, 14} & set(zplke.positions(30, 8, True, free=14, seed=seed))
    wrong, invented = (zplke.replaced(examples, kind, where, pool) for kind in ("incorrect", "unknown"))
    touched = examples["position"].isin(where)
    for frame in (wrong, invented):
        pd.testing.assert_frame_equal(frame[~touched], examples[~touched])
    assert (wrong["subject"] == examples["subject"]).all() and (wrong["object"] != examples["object"])[touched].all()
    assert not set(invented["subject"][touched]) & set(pool.label(pool.facts["subject"]))
    assert invented["subject"].is_unique and (invented["kind"] == "unknown").sum() == 8
    with pytest.raises(ProbeError, match="kind of example"):
        zplke.replaced(examples, "false", where, pool)
    with pytest.raises(ProbeError, match="30 of 30 positions"):
        zplke.positions(30, 30, True)


def test_an_incorrect_example_is_right_by_no_other_fact_either():
    """Austria has eight neighbours: none of them makes an incorrect example of it."""
    borders = facts.choose(facts.atlas(), ["P47"])
    right = set(zip(borders.label(borders.facts["subject"]), borders.label(borders.facts["object"]), strict=True))
    for seed in range(5):
        examples = prompts.sample_examples(borders, None, 40, seed)
        wrong = zplke.replaced(examples, "incorrect", range(1, 41), borders, seed)
        assert right.isdisjoint(zip(wrong["subject"], wrong["object"], strict=True))
        assert right.issuperset(zip(examples["subject"], examples["object"], strict=True))
    one = facts.keep(borders, borders.facts["fact"] == borders.facts["fact"].iloc[0])
    with pytest.raises(ProbeError, match="every object of P47 is right"):
        zplke.replaced(prompts.sample_examples(one, None, 1), "incorrect", [1], one)


def test_options_hold_the_right_object_once(capitals):
    asked, _ = capitals
    options = prompts.options(asked)
    # two towns of one name are one option
    assert options.groupby("fact").size().between(98, 100).all() and not options.duplicated(["fact", "label"]).any()
    gold = dict(zip(asked.facts["fact"], asked.facts["object"], strict=True))
    at = options.groupby("fact").cumcount()[options["candidate"] == options["fact"].map(gold)]
    assert len(at) == 6 and at.nunique() > 1  # its place is drawn
    broken = asked.distractors.assign(object=asked.distractors["fact"].map(gold))
    with pytest.raises(ProbeError, match=r"gold object .* among the wrong options \(6 such facts\)"):
        prompts.options(facts.Facts(**vars(asked) | {"distractors": broken}))
    with pytest.raises(ProbeError, match=r"no wrong option to choose from \(6"):
        prompts.options(facts.Facts(**vars(asked) | {"distractors": asked.distractors.head(0)}))


def test_positions_are_classified_by_their_predecessors():
    examples = {
        "correct": pd.DataFrame({"seed": 0, "position": [1, 2, 3, 4], "kind": "correct"}),
        "incorrect": pd.DataFrame(
            {"seed": 0, "position": [1, 2, 3, 4], "kind": ["correct", "incorrect", "correct", "correct"]}
        ),
    }
    asked = pd.DataFrame(
        [{"prompt": f"sequence|P|{c}|seed 0|{i:03d}", "context": c, "seed": 0} for c in examples for i in (1, 2, 3, 4)]
    )
    scores = asked[["prompt"]].assign(fact=list("abcdaxcd"), logprob=np.log([0.1, 0.5, 0.6, 0.8, 0.1, 0.01, 0.2, 0.8]))
    rows = zplke.by_position(scores, asked, examples)
    assert rows[rows["context"] == "incorrect"]["role"].tolist() == ["rest", "replaced", "after", "rest"]
    change = zplke.harm(rows).set_index("role")
    assert change.loc["after", "change"] == pytest.approx(-0.4) and change.loc["rest", "change"] == pytest.approx(0)
    assert np.isnan(change.loc["after", "low"])  # one position is no sample
    assert change["n"].to_dict() == {"replaced": 1, "after": 1, "rest": 1}  # what stands before cannot have changed


def drawn(seed: int, context: str, facts: str, probabilities: list[float], replaced: int = 0) -> pd.DataFrame:
    """A sequence, as ``by_position`` gives it: facts at the positions 1, 2, ..., the one at ``replaced`` replaced."""
    frame = pd.DataFrame({"context": context, "seed": seed, "fact": list(facts), "probability": probabilities})
    frame["position"] = frame.index + 1
    return frame.assign(role=np.where(frame["position"] == replaced, "replaced", "rest"))


def test_a_pair_is_known_by_the_other_draws():
    """a is known in draw 1 by its 0.9 in draw 0, not by its own 0.1; c occurs in one draw only."""
    draws = [drawn(0, "correct", "abc", [0.9, 0.2, 0.9]), drawn(1, "correct", "bad", [0.6, 0.1, 0.9])]
    marked = examples.mark_known(pd.concat([*draws, drawn(1, "incorrect, block", "xad", [0.0, 0.1, 0.9], 1)]))
    known = marked[marked["context"] == "correct"].set_index(["seed", "fact"])["known"]
    assert known.to_dict() == {
        (0, "a"): False, (0, "b"): True, (0, "c"): False, (1, "b"): False, (1, "a"): True, (1, "d"): False
    }  # fmt: skip
    assert marked.loc[marked["context"] != "correct", "known"].tolist() == [False, True, False]


def test_harm_is_counted_over_known_pairs_if_there_are_enough():
    """Twelve pairs follow the replaced one; the model knows all, and incorrect examples take 0.2 from each."""
    names = "abcdefghijklm"
    level = [0.9] * 13
    rows = [drawn(seed, "correct", names, level) for seed in (0, 1)]
    for kind, value in (("unknown", 0.9), ("incorrect", 0.7)):
        rows.append(drawn(0, f"{kind}, spread", "X" + names[1:], [0.0] + [value] * 12, 1))
    harmed, which = examples.harm_by_kind(pd.concat(rows))
    assert which == "untouched pairs that the model knows" and harmed["n"].tolist() == [12, 12, 12]
    assert harmed["change"].tolist() == pytest.approx([0.0, -0.2, -0.2])  # the last: incorrect minus unknown
    assert harmed["before"].tolist() == pytest.approx([0.9] * 3)
    weak = pd.concat(rows).assign(probability=lambda frame: frame["probability"] / 2)
    assert examples.harm_by_kind(weak)[1] == "untouched pairs"


def test_what_longer_lists_add_by_hand():
    """Of two facts one is right after one example in half of the draws, both after ten in all: 0.25 to 1."""
    rows = [(1, 0, "a", True), (1, 1, "a", False), (1, 0, "b", False), (1, 1, "b", False)]
    rows += [(10, seed, fact, True) for seed in (0, 1) for fact in "ab"]
    measured = pd.DataFrame(rows, columns=["shots", "seed", "fact", "correct"]).assign(model="m")
    found = examples.gains(measured).iloc[0]
    assert (found["first"], found["last"], found["gain"]) == (0.25, 1.0, 0.75)
    assert found["std last"] == 0 < found["std first"]


def test_two_methods_are_compared_on_the_relations_of_both():
    rows = [("P1", "ZP", "m", 0.5), ("P1", "HGP", "m", 0.2), ("P1", "ZP", "n", 0.5), ("P1", "HGP", "n", 0.6)]
    rows += [("P2", "ZP", "m", 0.1), ("P2", "HGP", "m", 0.2), ("P2", "ZP", "n", 0.2), ("P2", "HGP", "n", 0.2)]
    rows += [("P3", "ZP", "m", 0.9), ("P3", "ZP", "n", 0.9)]
    cells = pd.DataFrame(rows, columns=["relation", "method", "model", "accuracy"])
    found = measures.gap(cells, "ZP", "HGP")
    assert found["gap"] == pytest.approx(0.025) and (found["ahead"], found["of"], found["models"]) == (1, 2, ["m"])


def test_each_input_of_table_1_is_tested_against_the_correct_examples():
    """Eight facts: right after four correct examples, wrong after four incorrect ones; the sentence is always right."""
    contexts = [("cloze", "none", 1), ("cloze", "2 correct", 1), ("zp", "4 correct", 1), ("zp", "4 incorrect", 0)]
    rows = [(f"{f}|{role}|{c}", f"f{f}", role, c, right) for f in range(8) for role, c, right in contexts]
    inputs = pd.DataFrame(rows, columns=["prompt", "fact", "role", "context", "ok"])
    generated = inputs.assign(text=np.where(inputs["ok"] == 1, " 1901.", " 1902."))[["prompt", "text"]]
    answers = measures.answers_of_inputs(inputs, generated, {f"f{f}": "1901" for f in range(8)})
    assert answers["right"].tolist() == (inputs["ok"] == 1).tolist()
    table = measures.right_by_input(answers).set_index(["estimator", "context"])
    assert table["right"].tolist() == [8, 8, 8, 0] and np.isnan(table.loc[("prompted", "2 correct"), "p (Holm)"])
    assert table.loc[("zero-prompt", "4 incorrect"), "p (Holm)"] == pytest.approx(2 * 2 / 2**8)


# ---- with real models


def test_the_list_is_read_once_and_scores_are_those_of_whole_sequences(capitals, tmp_path):
    asked, pool = capitals
    model = lm.load("atlas-neox-0.15m")
    frame = prompts.many_shots(asked, prompts.sample_examples(pool, asked, 30))
    options = prompts.options(asked).groupby("fact").head(12)
    right = prompts.gold(asked)
    options = pd.concat([options, right]).drop_duplicates(["fact", "candidate"])
    rows = store.score(model, frame, options, tmp_path)
    cost = rows.attrs["cost"]
    assert (
        cost["forwarded_tokens"] <= 1.02 * cost["tree_nodes"]
        and cost["requested_tokens"] > 30 * cost["forwarded_tokens"]
    )
    labels = {fact: [f" {label}" for label in some["label"]] for fact, some in options.groupby("fact")}
    plain = model.logprobs(frame["text"].tolist(), [labels[f] for f in frame["fact"]], path="plain")
    np.testing.assert_allclose(rows["logprob"], plain["logprob"], atol=1e-4)


@pytest.mark.parametrize("name", ["atlas-neox-0.15m", "atlas-llama-0.6m"])  # without and with a beginning token
def test_a_sequence_gives_every_object_its_probability_in_its_running_context(name, tmp_path):
    model = lm.load(name)
    examples = prompts.sample_examples(facts.load(relations=["P36"], n_facts="all"), None, 6)
    frame = zplke.sequence(examples, "correct")
    assert (
        frame["text"].iloc[2]
        == " ".join(f"{x} {y}" for x, y in zip(examples["subject"][:2], examples["object"][:2], strict=True))
        + f" {examples['subject'][2]}"
    )
    options = examples.assign(candidate=examples["object"], label=examples["object"])[["fact", "candidate", "label"]]
    rows = store.score(model, frame, options, tmp_path)
    plain = model.logprobs(frame["text"].tolist(), [[f" {o}"] for o in examples["object"]], path="plain")
    np.testing.assert_allclose(rows["logprob"], plain["logprob"], atol=1e-4)


def test_the_real_fktc_files_run_through(fktc, tmp_path):
    asked, pool = facts.multiple_choice("fktc", fktc, ["P19", "P101", "P159", "P276"], n_facts=2)
    options = prompts.options(asked)
    assert (
        set(asked.relations["relation"]) == {"P19", "P101", "P159", "P276"}
        and (options.groupby("fact").size() == 100).all()
    )
    frame = prompts.many_shots(asked, prompts.sample_examples(pool, asked, 50))
    rows = store.score(lm.load("atlas-neox-0.15m"), frame, options, tmp_path)
    chosen = zplke.choices(rows, dict(zip(asked.facts["fact"], asked.facts["object"], strict=True)))
    assert len(chosen) == 8 and chosen["valid"].all() and zplke.chance(chosen) == pytest.approx(0.01)
