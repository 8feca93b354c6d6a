"""MONITOR: worked examples, invariants, edge cases."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from probelib import published
from probelib.errors import ProbeError
from probelib.monitor import alternatives
from probelib.monitor import measures as monitor
from probelib.stats import pearson

A = {"p": [0.9, 0.7], "f": [[0.8, 0.5], [0.6, 0.6]], "n": [[0.3, 0.1], [0.5, 0.3]]}
B = {"p": [0.5], "f": [[0.7], [0.4]], "n": [[0.1], [0.2]]}


def table(*facts) -> pd.DataFrame:
    frame = pd.DataFrame(
        [{"fact": f"P1:{i}:x", "relation": "P1", **{k: np.array(v) for k, v in f.items()}} for i, f in enumerate(facts)]
    )
    return monitor.distances(frame).assign(anchored=True)


def test_two_facts_by_hand():
    rows = table(A, B)
    assert rows["pfd"].tolist() == pytest.approx([0.175, 0.15]) and rows["ird"].tolist() == pytest.approx([0.5, 0.35])
    assert rows["root"].tolist() == pytest.approx([0.3502975, 0.2565801], abs=1e-7)
    assert rows["pbar"].tolist() == pytest.approx([0.8, 0.5])
    assert monitor.monitor(rows) == pytest.approx(0.4668289, abs=1e-7)


def test_other_readings_give_other_numbers():
    rows = table(A, B)
    assert monitor.monitor(rows, average_first=True) == pytest.approx(0.4667177, abs=1e-7)
    assert (rows["root"] / rows["pbar"]).mean() == pytest.approx(0.4755160, abs=1e-7)  # ratios first: not MONITOR
    product = rows["root"].sum() / (0.9 * 0.7 + 0.5)
    assert product == pytest.approx(0.5370598, abs=1e-7)  # a product of tokens: not MONITOR


def test_the_papers_alphas_differ_by_a_constant():
    frame = pd.DataFrame(
        [{"fact": str(i), "relation": "P1", **{k: np.array(v) for k, v in f.items()}} for i, f in enumerate((A, B))]
    )
    rows = monitor.distances(frame, alphas=(0.33, 0.33, 0.33))
    assert monitor.monitor(rows) == pytest.approx(0.4644889, abs=1e-7)
    assert monitor.monitor(rows) / monitor.monitor(table(A, B)) == pytest.approx(np.sqrt(0.99))


@pytest.mark.parametrize(
    ("p", "f", "n", "pfd", "ird", "score"),
    [
        (0.9117, 0.5245, 0.0145, 0.3872, 0.8972, 0.7227),  # figure 3
        (0.761, 0.527, 0.411, 0.234, 0.350, 0.3862),  # table 7, BLOOMZ-3b
        (0.928, 0.849, 0.622, 0.079, 0.306, 0.2191),  # table 7, Vicuna-7b
    ],
)
def test_numbers_printed_in_the_paper(p, f, n, pfd, ird, score):
    rows = table({"p": [p], "f": [[f]], "n": [[n]]})
    assert rows.iloc[0][["pfd", "ird"]].tolist() == pytest.approx([pfd, ird], abs=1e-4)
    assert monitor.monitor(rows) == pytest.approx(score, abs=1e-4)


def test_foreign_anchors_above_the_primary_one_lift_the_score_over_one():
    assert monitor.monitor(table({"p": [0.2], "f": [[0.9]], "n": [[0.9]]})) == pytest.approx(3.5)


def test_nothing_anchored_is_nan_and_never_zero():
    rows = table(A, B).assign(anchored=False)
    assert np.isnan(monitor.monitor(rows[rows["anchored"]]))
    relation = monitor.per_relation(rows).iloc[0]
    assert np.isnan(relation["MONITOR"]) and relation["coverage"] == 0 and relation["n"] == 2
    total = monitor.overall(rows, times=10)
    assert np.isnan(total["MONITOR"]) and np.isnan(total["low"]) and total["silent"] == 1


def test_a_silent_relation_is_left_out_and_counted():
    rows = pd.concat([table(A, B), table(B).assign(relation="P2", fact="P2:x:y", anchored=False)])
    total = monitor.overall(rows, times=50)
    assert (
        total["MONITOR"] == pytest.approx(0.4668289, abs=1e-7)
        and total["silent"] == 1
        and total["coverage"] == pytest.approx(2 / 3)
    )


def test_one_fact_a_relation_shows_no_spread():
    alone = pd.concat([table(A), table(B).assign(relation="P2")])
    assert monitor.overall(alone, times=50)["MONITOR"] > 0 and np.isnan(monitor.overall(alone, times=50)["high"])
    assert monitor.overall(pd.concat([alone, table(B)]), times=50)["low"] > 0


@pytest.mark.parametrize("average_first", [False, True])
def test_a_fact_without_distractors_has_no_score(average_first):
    rows = table(A, {"p": [0.5], "f": [[0.4]], "n": np.empty((0, 1))})
    assert np.isnan(rows["ird"][1]) and np.isnan(monitor.monitor(rows, average_first))


probability = st.floats(0.01, 1)
fact = st.integers(1, 3).flatmap(
    lambda L: st.fixed_dictionaries(
        {
            "p": st.lists(probability, min_size=L, max_size=L),
            "f": st.lists(st.lists(probability, min_size=L, max_size=L), min_size=1, max_size=4),
            "n": st.lists(st.lists(probability, min_size=L, max_size=L), min_size=1, max_size=4),
        }
    )
)


@settings(max_examples=60, deadline=None)
@given(st.lists(fact, min_size=1, max_size=4), st.randoms(use_true_random=False))
def test_invariants(facts, random):
    rows = table(*facts)
    score = monitor.monitor(rows)
    assert rows["pfd"].between(0, 1).all() and rows["ird"].between(0, 1).all() and score >= 0
    assert (rows["root"] <= rows[["pfd", "ird"]].max(axis=1) + 1e-12).all()
    turned = [
        {"p": f["p"], "f": random.sample(f["f"], len(f["f"])), "n": random.sample(f["n"], len(f["n"]))} for f in facts
    ]
    assert monitor.monitor(table(*random.sample(turned, len(turned)))) == pytest.approx(score)
    assert monitor.monitor(table(*facts, *facts)) == pytest.approx(score)
    wider = [f | {"f": [*f["f"], f["p"]]} for f in facts]  # one frame more that changes nothing
    assert table(*wider)["pfd"].to_numpy() == pytest.approx(
        rows["pfd"] * [len(f["f"]) / (len(f["f"]) + 1) for f in facts]
    )


def scored(fact_rows):
    """Scores and prompts as the store and ``prompts.with_contexts`` give them."""
    rows = [
        {
            "prompt": f"{f}|{t}|{c}",
            "fact": f,
            "relation": "P1",
            "template": t,
            "context": c,
            "label": "x",
            "n_tokens": len(p),
            "token_logprobs": np.log(np.array(p, dtype=np.float32)),
            "correct": ok,
        }
        for f, t, c, p, ok in fact_rows
    ]
    frame = pd.DataFrame(rows)
    return frame.drop(columns=["template", "context"]), frame[["prompt", "template", "context"]]


def test_anchors_take_frame_one_after_contexts_and_all_frames_without():
    scores, prompts = scored(
        [
            ("a", 1, "negative2", [0.5, 0.3], False),
            ("a", 2, "none", [0.6, 0.6], True),
            ("a", 1, "positive", [0.9, 0.7], True),
            ("a", 2, "negative1", [0.0001, 0.0001], True),
            ("a", 1, "negative1", [0.3, 0.1], False),
            ("a", 1, "none", [0.8, 0.5], False),
        ]
    )
    anchors = monitor.anchors(scores, prompts).iloc[0]
    for name in "pfn":
        assert anchors[name] == pytest.approx(np.array(A[name]), abs=1e-6)
    rows = monitor.distances(monitor.anchors(scores, prompts))
    assert monitor.anchored(rows, scores, prompts).tolist() == [True]


def test_the_grid_has_every_frame_after_every_distractor():
    rows = [
        (f, t, c, [0.5], ok)
        for f in "ab"
        for t in (1, 2)
        for c, ok in (("none", True), ("positive", True), ("negative1", f == "a"), ("negative2", t == 2))
    ]
    scores, prompts = scored(rows)
    grid = monitor.accuracy(scores, prompts)
    assert grid[["template", "context", "accuracy", "n"]].values.tolist() == [
        [1, "negative1", 50.0, 2],
        [1, "negative2", 0.0, 2],
        [2, "negative1", 50.0, 2],
        [2, "negative2", 100.0, 2],
    ]
    summary = monitor.summarize(grid).iloc[0]
    assert summary[["avg", "max", "min"]].tolist() == [50, 100, 0] and summary["std"] == pytest.approx(
        np.std([50, 0, 50, 100], ddof=1)
    )
    assert len(monitor.accuracy(scores, prompts, "none")) == 2
    assert monitor.accuracy(scores, prompts, "base")["accuracy"].tolist() == [100]


def test_which_runs_make_an_accuracy():
    """2 frames, 2 distractors: R M = 4, R (M + 1) = 6, R + 1 + M = 5; R (M + 2) needs contexts that were not asked."""
    contexts = {1: ("none", "positive", "negative1", "negative2"), 2: ("none", "negative1", "negative2")}
    scores, prompts = scored([("a", t, c, [0.5], True) for t, cs in contexts.items() for c in cs])
    sizes = {runs: len(monitor.accuracy(scores, prompts, runs)) for runs in monitor.GRID if runs != "full"}
    assert sizes == {"grid": 4, "none+neg": 6, "released13": 5, "none": 2, "base": 1, "positive": 1, "negative": 2}
    with pytest.raises(ProbeError, match="full=True"):
        monitor.accuracy(scores, prompts, "full")
    with pytest.raises(ProbeError, match="gird.*grid"):
        monitor.accuracy(scores, prompts, "gird")
    more, asked = scored([("a", t, c, [0.5], True) for t in (1, 2) for c in contexts[1]])
    assert len(monitor.accuracy(more, asked, "full")) == 8


def test_the_released_denominator_is_the_anchored_facts():
    scores, prompts = scored([(f, 1, "negative1", [0.5], f == "a") for f in "abcd"])
    assert monitor.accuracy(scores, prompts)["accuracy"].tolist() == [25]
    assert monitor.accuracy(scores, prompts, among=["a", "b"])[["accuracy", "n"]].values.tolist() == [[50, 2]]


def test_a_missing_distractor_is_not_a_wrong_answer():
    scores, prompts = scored(
        [("a", 1, "negative1", [0.5], True), ("a", 1, "negative2", [0.5], False), ("b", 1, "negative1", [0.5], True)]
    )
    assert monitor.verdicts(scores, prompts).loc["b"].isna().tolist() == [False, True]
    assert monitor.accuracy(scores, prompts)[["accuracy", "n"]].values.tolist() == [[100, 2], [0, 1]]


def test_facts_without_distractors_are_left_out_and_counted():
    lonely = {"p": [0.5], "f": [[0.4]], "n": np.empty((0, 1))}
    row = monitor.per_relation(table(A, B, lonely), times=20).iloc[0]
    assert row["MONITOR"] == pytest.approx(0.4668289, abs=1e-7) and row["no_distractor"] == 1 and row["n"] == 3


# Intervals


def test_resampling_draws_the_same_facts_for_all_models():
    rows = table(A, B, B, A)
    grid = pd.DataFrame({(1, "negative1"): [1.0, 0, 0, 1], (2, "negative1"): [1.0, 0, 0, 1]}, index=rows["fact"])
    replicates = monitor.resample({"x": rows, "y": rows}, {"x": grid, "y": 1 - grid}, times=200)
    assert replicates["MONITOR"].shape == replicates["avg"].shape == (200, 2, 1)
    assert (replicates["MONITOR"][:, 0] == replicates["MONITOR"][:, 1]).all()
    assert replicates["avg"].sum(1) == pytest.approx(100) and replicates["std"] == pytest.approx(0, abs=1e-5)
    assert (
        replicates["MONITOR"].min() >= 0.438 - 1e-3 and replicates["MONITOR"].max() <= 0.5131 + 1e-3
    )  # A alone, B alone
    assert replicates["MONITOR"].mean() == pytest.approx(monitor.monitor(rows), abs=0.01)


def test_no_fact_at_all_is_an_empty_table():
    """What is left when the facts that every model anchors are asked for, and there is none."""
    nothing = table(A).iloc[:0]
    assert len(monitor.per_relation(nothing)) == 0 and np.isnan(monitor.per_relation(nothing)["MONITOR"].mean())
    assert monitor.resample({"x": nothing, "y": nothing}, times=7)["MONITOR"].shape == (7, 2, 0)


def test_models_on_other_facts_cannot_be_resampled_together():
    with pytest.raises(ProbeError, match="y has scores of other facts of P1"):
        monitor.resample({"x": table(A, B), "y": table(A)}, times=2)


def test_a_draw_without_an_anchored_fact_is_made_again():
    """Else a relation would leave the mean now and then, and the interval would be that of another mean."""
    rows = table(A, B).assign(anchored=[True, False])
    replicates = monitor.resample({"x": rows}, times=100)["MONITOR"]
    assert replicates == pytest.approx(rows["root"][0] / rows["pbar"][0])
    assert np.isnan(monitor.resample({"x": rows.assign(anchored=False)}, times=5)["MONITOR"]).all()


def test_a_correlation_has_an_interval_over_models_and_one_over_facts():
    x, y = np.array([1.0, 2, 3, 4]), np.array([4.0, 3, 2, 1.5])
    drawn = x + np.random.default_rng(0).normal(0, 0.3, (50, 4))
    r = monitor.correlation(x, y, drawn, np.tile(y, (50, 1)))
    assert r["r"] == pytest.approx(pearson(x, y)["r"]) and r["facts_low"] < r["r"] + 0.05 and r["facts_high"] < 0


def test_fewer_frames():
    frame = pd.DataFrame([{"fact": "a", "relation": "P1", **{k: np.array(v) for k, v in A.items()}}])
    assert monitor.distances(alternatives.subsets(frame, [0]))["pfd"][0] == pytest.approx(0.15)
    assert monitor.distances(alternatives.subsets(frame, [1, 5]))["pfd"][0] == pytest.approx(0.2)


def test_models_are_compared_on_the_facts_that_all_of_them_anchor():
    """Model x anchors facts a and b, model y fact b alone: on b both have a score, and x's equals the formula's on b."""
    rows = []
    for fact, sets in (("a", A), ("b", B)):
        rows += [(fact, 1, "positive", sets["p"]), *[(fact, j, "none", f) for j, f in enumerate(sets["f"], 1)]]
        rows += [(fact, 1, f"negative{m}", n) for m, n in enumerate(sets["n"], 1)]
    frame = pd.DataFrame(rows, columns=["fact", "template", "context", "tokens"])
    frame["prompt"] = frame["fact"] + "|" + frame["template"].astype(str) + "|" + frame["context"]
    frame = frame.assign(relation="P1", token_logprobs=[np.log(t) for t in frame["tokens"]])
    said = frame.drop(columns=["template", "context"])
    scores = {m: said.assign(correct=[f in known for f in frame["fact"]]) for m, known in (("x", "ab"), ("y", "b"))}
    measured = monitor.measure(scores, frame)
    assert list(monitor.anchored_by_all(measured)) == ["b"]
    common = monitor.measure_common(measured, scores, frame)
    assert common.models["coverage"].tolist() == [1.0, 1.0]
    assert common.models["MONITOR"].tolist() == pytest.approx([monitor.monitor(table(B))] * 2)
    one = alternatives.with_frames(measured, "P1", [0]).set_index("model")["MONITOR"]
    assert one["y"] == pytest.approx(monitor.monitor(table({**B, "f": B["f"][:1]})))
    nobody = {m: s.assign(correct=False) for m, s in scores.items()}
    without = monitor.measure(nobody, frame)
    assert monitor.measure_common(without, nobody, frame) is without


# Fact checking, flaws, pairs


def checked(verdicts):
    prompts = pd.DataFrame(
        [(f"{i}", "f", "P1", 1, context) for i, (context, _, _) in enumerate(verdicts)],
        columns=["prompt", "fact", "relation", "template", "context"],
    )
    scores = pd.DataFrame(
        [(f"{i}", c, v) for i, (_, t, f) in enumerate(verdicts) for c, v in (("True", t), ("False", f))],
        columns=["prompt", "candidate", "logprob"],
    )
    return scores, prompts


def test_fact_checking_by_score_and_by_word():
    scores, prompts = checked([("true", -1, -2), ("false1", -1, -2), ("false2", -3, -2), ("false3", -2, -2)])
    table = monitor.checking(scores, prompts)
    assert table["kind"].tolist() == ["FC-pos"] + ["FC-neg"] * 3
    assert table["correct"].tolist() == [True, False, True, False]  # a tie is no verdict
    said = pd.DataFrame({"prompt": ["0", "1", "2", "3"], "text": [" Perhaps", " False.", "\nfalse", " True"]})
    assert monitor.checking(scores, prompts, said)["correct"].tolist() == [False, True, True, False]


def test_one_anchored_fact_has_no_interval():
    row = monitor.per_relation(table(A, B).assign(anchored=[True, False]), times=20).iloc[0]
    assert row["MONITOR"] > 0 and np.isnan(row["low"]) and np.isnan(row["high"])


def test_scores_after_a_right_distractor_can_be_left_out():
    scores, prompts = scored([("a", 1, "negative1", [0.5], True), ("a", 1, "negative2", [0.5], True)])
    flawed = pd.DataFrame({"fact": ["a"], "right_distractor": [("negative2",)]})
    assert alternatives.without_right_distractors(scores, flawed, prompts)["prompt"].tolist() == ["a|1|negative1"]


# As released


@pytest.mark.parametrize(
    ("tokens", "length"),
    [
        ([" French"], 1),
        ([" French", "."], 1),
        ([" French", ".", "</s>"], 1),
        ([" French", "</s>"], 1),
        ([" French", "\n", " What"], 1),
        (["\n", " French", "\n"], 2),  # the first step is never looked at
        ([".", "."], 0),
        ([".", "</s>"], 0),
        ([], 0),
    ],
)
def test_steps_that_count_as_released(tokens, length):
    assert alternatives.released_length(tokens) == length


def beams(positive, *foreign):
    """``beam_steps`` rows of one fact: (template, context, tokens, values) for each foreign run."""
    first = {"prompt": "p", "text": positive[2], "tokens": positive[0], "probability": positive[1], "watched": []}
    rest = [
        {"prompt": f"q{i}", "text": "", "tokens": tokens, "probability": [], "watched": values}
        for i, (_, _, tokens, values) in enumerate(foreign)
    ]
    prompts = [("p", 1, "positive")] + [(f"q{i}", t, c) for i, (t, c, _, _) in enumerate(foreign)]
    prompts = pd.DataFrame(prompts, columns=["prompt", "template", "context"]).assign(fact="a", relation="P1")
    return pd.DataFrame([first, *rest]), prompts, pd.DataFrame({"fact": ["a"], "label": ["New York"]})


def test_released_runs_are_padded_with_zero():
    """Primary [.9, .8] against a one-step run [.6] gives (.3 + .8) / 2 = .55."""
    runs = beams(
        ([" New", " York"], [0.9, 0.8], " New York"),
        (1, "none", [" Rome"], [0.6]),
        (1, "negative1", [" New", " York", "."], [0.9, 0.8, 0.9]),
    )
    anchors = alternatives.released_anchors(*runs)
    rows = monitor.distances(anchors)
    assert rows["pfd"][0] == pytest.approx(0.55) and rows["ird"][0] == 0 and anchors["anchored"].tolist() == [True]


def test_released_pfd_always_divides_by_seven():
    """h.5: distances that sum to 1.2 over 6 frames: .2, and as the script divides .1714."""
    foreign = [(j, "none", [" York"], [0.7]) for j in range(1, 7)]
    runs = beams(([" York"], [0.9], " New York"), *foreign, (1, "negative1", [" York"], [0.9]))
    assert monitor.distances(alternatives.released_anchors(*runs))["pfd"][0] == pytest.approx(0.2)
    assert monitor.distances(alternatives.released_anchors(*runs, divisor=7))["pfd"][0] == pytest.approx(1.2 / 7)


def test_released_answer_of_which_nothing_is_left_is_not_anchored():
    runs = beams(([".", "</s>"], [0.9, 0.9], "."), (1, "none", [" a"], [0.1]), (1, "negative1", [" a"], [0.1]))
    anchors = alternatives.released_anchors(*runs)
    assert anchors["anchored"].tolist() == [False] and monitor.distances(anchors)["pfd"].isna().all()


def test_published_correlations_come_out_of_the_published_tables():
    table4, table6 = published.table("monitor/table4"), published.table("monitor/table6")
    r4, r6 = pearson(table4["MONITOR"], table4["avg_acc"]), pearson(table6["MONITOR"], table6["std"])
    assert (r4["r"], r4["p"]) == (pytest.approx(-0.8466, abs=1e-4), pytest.approx(0.00051, abs=1e-5))
    assert (r6["r"], r6["p"]) == (pytest.approx(0.7542, abs=1e-4), pytest.approx(0.0046, abs=1e-4))
    assert (r4["low"], r4["high"]) == (pytest.approx(-0.956, abs=1e-3), pytest.approx(-0.531, abs=1e-3))


def test_the_fact_of_figure_3_is_one_that_the_model_knows():
    """Fact b moves most, but it is not answered without context; of the others a is surer than 0.8."""
    contexts = [(1, "none"), (2, "none"), (1, "positive"), (1, "negative1")]
    rows = [
        {"prompt": f"{f}{t}{c}", "fact": f, "relation": "P1", "template": t, "context": c, "correct": ok}
        | {"token_logprobs": np.log(np.array([p], dtype=np.float32))}
        for f, ok, ps in (
            ("a", True, (0.9, 0.5, 0.9, 0.6)),
            ("b", False, (0.1, 0.1, 0.99, 0.1)),
            ("c", True, (0.3, 0.1, 0.7, 0.1)),
        )
        for (t, c), p, ok in zip(contexts, ps, (ok, ok, True, ok), strict=True)
    ]
    frame = pd.DataFrame(rows)
    scores, prompts = frame.drop(columns=["template", "context"]), frame[["prompt", "template", "context"]]
    table = monitor.measure_facts(scores, prompts)
    assert monitor.clearest_fact(table, scores, prompts) == "a"
    assert monitor.clearest_fact(table, scores, prompts, sure=0.95) == "b"
    assert monitor.lost_by_context(scores, prompts).to_dict() == {"a": 0.0, "c": 0.0}
    spoilt = scores.assign(correct=scores["correct"] & (scores["prompt"] != "a1negative1"))
    assert monitor.lost_by_context(spoilt, prompts).to_dict() == {"a": 100.0, "c": 0.0}
