"""MONITOR: worked examples, invariants, edge cases."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from probelib.errors import ProbeError
from probelib.monitor import measures as monitor

A = {"p": [0.9, 0.7], "f": [[0.8, 0.5], [0.6, 0.6]], "n": [[0.3, 0.1], [0.5, 0.3]]}
B = {"p": [0.5], "f": [[0.7], [0.4]], "n": [[0.1], [0.2]]}


def sets(*facts) -> pd.DataFrame:
    """``anchors`` of facts of one relation."""
    rows = [{k: np.array(v) for k, v in fact.items()} for fact in facts]
    return pd.DataFrame(rows).assign(fact=[f"P1:{i}:x" for i in range(len(facts))], relation="P1")


def table(*facts, alphas=monitor.THIRDS) -> pd.DataFrame:
    return monitor.distances(sets(*facts), alphas).assign(anchored=True, acc=0.5)


def scored(rows) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Scores and prompts as the store and ``prompts.with_contexts`` give them, from rows of (fact,
    template, context, probabilities of the tokens, whether it is answered)."""
    frame = pd.DataFrame(rows, columns=["fact", "template", "context", "p", "correct"])
    frame["prompt"] = frame["fact"] + frame["template"].astype(str) + frame["context"]
    frame["token_logprobs"] = [np.log(np.array(p, dtype=np.float32)) for p in frame["p"]]
    scores = frame.assign(relation="P1").drop(columns=["template", "context", "p"])
    return scores, frame[["prompt", "fact", "template", "context"]]


def answered(**known: str) -> tuple[dict[str, pd.DataFrame], pd.DataFrame]:
    """Scores of models on facts a (``A``) and b (``B``), by the facts that each model answers."""
    rows = []
    for fact, own in (("a", A), ("b", B)):
        rows += [(fact, 1, "positive", own["p"], True)]
        rows += [(fact, j, "none", f, True) for j, f in enumerate(own["f"], 1)]
        rows += [(fact, 1, f"negative{m}", n, True) for m, n in enumerate(own["n"], 1)]
    scores, prompts = scored(rows)
    right = {m: [fact in own for fact in scores["fact"]] for m, own in known.items()}
    return {m: scores.assign(correct=own) for m, own in right.items()}, prompts


def test_two_facts_by_hand():
    rows = table(A, B)
    assert rows["pfd"].tolist() == pytest.approx([0.175, 0.15])
    assert rows["ird"].tolist() == pytest.approx([0.5, 0.35])
    assert rows["root"].tolist() == pytest.approx([0.3502975, 0.2565801], abs=1e-7)
    assert rows["pbar"].tolist() == pytest.approx([0.8, 0.5])
    assert monitor.monitor(rows) == pytest.approx(0.4668289, abs=1e-7)
    printed = monitor.monitor(table(A, B, alphas=(0.33, 0.33, 0.33)))  # the paper's alphas
    assert printed == pytest.approx(0.4644889, abs=1e-7)


@pytest.mark.parametrize(
    ("p", "f", "n", "pfd", "ird", "score"),
    [
        (0.9117, 0.5245, 0.0145, 0.3872, 0.8972, 0.7227),  # figure 3
        (0.761, 0.527, 0.411, 0.234, 0.350, 0.3862),  # table 7, BLOOMZ-3b
        (0.928, 0.849, 0.622, 0.079, 0.306, 0.2191),  # table 7, Vicuna-7b
        (0.2, 0.9, 0.9, 0.7, 0.7, 3.5),  # ours: foreign anchors above the primary one
    ],
)
def test_numbers_printed_in_the_paper(p, f, n, pfd, ird, score):
    rows = table({"p": [p], "f": [[f]], "n": [[n]]})
    assert rows.iloc[0][["pfd", "ird"]].tolist() == pytest.approx([pfd, ird], abs=1e-4)
    assert monitor.monitor(rows) == pytest.approx(score, abs=1e-4)


def test_a_fact_without_distractors_has_no_score():
    rows = table(A, B, {"p": [0.5], "f": [[0.4]], "n": np.empty((0, 1))})
    assert np.isnan(rows["ird"][2]) and np.isnan(monitor.monitor(rows))
    row = monitor.per_relation(rows).iloc[0]  # left out, and counted
    assert row["MONITOR"] == pytest.approx(0.4668289, abs=1e-7)
    assert row["no_distractor"] == 1 and row["n"] == 3


probability = st.floats(0.01, 1)
tokens = lambda n: st.lists(probability, min_size=n, max_size=n)
several = lambda n: st.lists(tokens(n), min_size=1, max_size=4)
one = lambda n: st.fixed_dictionaries({"p": tokens(n), "f": several(n), "n": several(n)})
fact = st.integers(1, 3).flatmap(one)


@settings(max_examples=60, deadline=None)
@given(st.lists(fact, min_size=1, max_size=4), st.randoms(use_true_random=False))
def test_invariants(facts, random):
    rows = table(*facts)
    score = monitor.monitor(rows)
    assert rows["pfd"].between(0, 1).all() and rows["ird"].between(0, 1).all() and score >= 0
    assert (rows["root"] <= rows[["pfd", "ird"]].max(axis=1) + 1e-12).all()
    order = random.sample(facts, len(facts))
    turned = [f | {"f": random.sample(f["f"], len(f["f"]))} for f in order]
    assert monitor.monitor(table(*turned)) == pytest.approx(score)
    assert monitor.monitor(table(*facts, *facts)) == pytest.approx(score)
    wider = [f | {"f": [*f["f"], f["p"]]} for f in facts]  # one frame more that changes nothing
    shares = [len(f["f"]) / (len(f["f"]) + 1) for f in facts]
    assert table(*wider)["pfd"].to_numpy() == pytest.approx(rows["pfd"] * shares)


def test_anchors_take_frame_one_after_contexts_and_all_frames_without():
    rows = [
        ("a", 1, "negative2", [0.5, 0.3], False),
        ("a", 2, "none", [0.6, 0.6], True),
        ("a", 1, "positive", [0.9, 0.7], True),
        ("a", 2, "negative1", [0.0001, 0.0001], True),
        ("a", 1, "negative1", [0.3, 0.1], False),
        ("a", 1, "none", [0.8, 0.5], False),
    ]
    scores, prompts = scored(rows)
    anchors = monitor.anchors(scores, prompts).iloc[0]
    for name in "pfn":
        assert anchors[name] == pytest.approx(np.array(A[name]), abs=1e-6)
    measured = monitor.measure_facts(scores, prompts).iloc[0]
    assert measured["anchored"] and measured["acc"] == pytest.approx(1 / 3)


def test_the_grid_has_every_frame_after_every_distractor():
    """2 frames, 2 distractors: R M = 4, R (M + 1) = 6, R + 1 + M = 5."""
    contexts = ("none", "positive", "negative1", "negative2")
    right = {"none": "ab", "positive": "ab", "negative1": "a", "negative2": ""}
    rows = [(f, t, c, [0.5], f in right[c]) for f in "ab" for t in (1, 2) for c in contexts]
    scores, prompts = scored([row for row in rows if row[1:3] != (2, "positive")])
    scores.loc[scores["prompt"].str.endswith("2negative2"), "correct"] = True
    grid = monitor.accuracy(monitor.verdicts(scores, prompts), scores)
    found = grid.set_index(["template", "context"])[["accuracy", "n"]]
    assert found["accuracy"].tolist() == [50, 0, 50, 100] and found["n"].eq(2).all()
    assert found.index.tolist() == [(t, f"negative{n}") for t in (1, 2) for n in (1, 2)]
    summary = monitor.measure({"x": scores}, prompts).relations.iloc[0]
    assert summary[["avg acc", "max", "min"]].tolist() == [50, 100, 0]
    assert summary["std"] == pytest.approx(np.std([50, 0, 50, 100], ddof=1))
    sizes = {runs: monitor.verdicts(scores, prompts, runs).shape[1] for runs in monitor.GRID}
    some = {"none": 2, "base": 1, "positive": 1, "negative": 2}
    assert sizes == {"grid": 4, "none+neg": 6, "released13": 5} | some


def test_a_missing_distractor_is_not_a_wrong_answer_and_the_denominator_may_be_others():
    rows = [("a", 1, "negative1", [0.5], True), ("a", 1, "negative2", [0.5], False)]
    scores, prompts = scored([*rows, ("b", 1, "negative1", [0.5], True)])
    grid = monitor.verdicts(scores, prompts)
    assert grid.loc["b"].isna().tolist() == [False, True]
    assert monitor.accuracy(grid, scores)[["accuracy", "n"]].values.tolist() == [[100, 2], [0, 1]]
    only = monitor.accuracy(grid.loc[["b"]], scores)[["accuracy", "n"]]
    assert only.values.tolist() == [[100, 1]]


def test_what_cannot_be_measured_is_refused():
    scores, prompts = scored([("a", 1, "none", [0.5], True)])
    with pytest.raises(ProbeError, match="1 facts have no prompt with the positive context.*'a'"):
        monitor.anchors(scores, prompts)
    with pytest.raises(ProbeError, match="gird.*grid"):
        monitor.verdicts(scores, prompts, "gird")
    with pytest.raises(ProbeError, match="y has scores of other facts of P1"):
        monitor.resample({"x": table(A, B), "y": table(A)}, times=2)


def own(rows: pd.DataFrame, times: int = 50) -> tuple[pd.DataFrame, dict]:
    """``per_relation`` and ``overall`` of one model."""
    replicates = monitor.resample({"": rows}, times=times)["MONITOR"][:, 0]
    found = monitor.per_relation(rows, replicates)
    return found, monitor.overall(rows, found, replicates)


def test_nothing_anchored_is_nan_and_never_zero():
    relations, total = own(table(A, B).assign(anchored=False))
    relation = relations.iloc[0]
    assert np.isnan(relation["MONITOR"]) and relation["coverage"] == 0 and relation["n"] == 2
    assert np.isnan(total["MONITOR"]) and np.isnan(total["MONITOR low"]) and total["silent"] == 1
    silent = table(B).assign(relation="P2", fact="P2:x:y", anchored=False)
    _, total = own(pd.concat([table(A, B), silent], ignore_index=True))
    assert total["MONITOR"] == pytest.approx(0.4668289, abs=1e-7)  # left out, and counted
    assert total["silent"] == 1 and total["coverage"] == pytest.approx(2 / 3)


def test_one_fact_shows_no_spread():
    alone = pd.concat([table(A), table(B).assign(relation="P2")], ignore_index=True)
    assert own(alone)[1]["MONITOR"] > 0 and np.isnan(own(alone)[1]["MONITOR high"])
    assert own(pd.concat([alone, table(B)], ignore_index=True))[1]["MONITOR low"] > 0
    one = own(table(A, B).assign(anchored=[True, False]))[0].iloc[0]
    assert one["MONITOR"] > 0 and np.isnan([one["MONITOR low"], one["MONITOR high"]]).all()
    # nor do three equal rounds, whose ratio no float holds
    rounds = pd.DataFrame({"way": "", "round": [0, 1, 2] * 2, "prompts": [78] * 3 + [210] * 3})
    found = monitor.savings(rounds.assign(what=["MONITOR"] * 3 + ["accuracy"] * 3))
    assert np.isnan(found["saved low"][0]) and found["saved"][0] == pytest.approx(210 / 78)


def test_resampling_draws_the_same_facts_for_all_models():
    rows = table(A, B, B, A)
    grid = pd.DataFrame({(t, "negative1"): [1.0, 0, 0, 1] for t in (1, 2)}, index=rows["fact"])
    replicates = monitor.resample({"x": rows, "y": rows}, {"x": grid, "y": 1 - grid}, times=200)
    scores = replicates["MONITOR"]
    assert scores.shape == replicates["avg acc"].shape == (200, 2, 1)
    assert (scores[:, 0] == scores[:, 1]).all()
    assert replicates["avg acc"].sum(1) == pytest.approx(100)
    assert replicates["std"] == pytest.approx(0, abs=1e-5)
    assert scores.min() >= 0.438 - 1e-3 and scores.max() <= 0.5131 + 1e-3  # A alone, B alone
    assert scores.mean() == pytest.approx(monitor.monitor(rows), abs=0.01)


def test_a_draw_without_an_anchored_fact_is_made_again():
    """Else a relation would leave the mean now and then: the interval of another mean."""
    rows = table(A, B).assign(anchored=[True, False])
    replicates = monitor.resample({"x": rows}, times=100)["MONITOR"]
    assert replicates == pytest.approx(rows["root"][0] / rows["pbar"][0])
    assert np.isnan(monitor.resample({"x": rows.assign(anchored=False)}, times=5)["MONITOR"]).all()


def test_models_are_compared_on_the_facts_that_all_of_them_anchor():
    """Model x anchors facts a and b, model y fact b alone: on b both have the formula's score."""
    scores, prompts = answered(x="ab", y="b")
    measured = monitor.measure(scores, prompts)
    assert list(monitor.anchored_by_all(measured.facts)) == ["b"]
    assert measured.relations.set_index("model")["anchored acc"]["y"] == 100
    common = monitor.measure_common(measured, scores, prompts)
    assert common.models["coverage"].tolist() == [1.0, 1.0]
    assert common.models["MONITOR"].tolist() == pytest.approx([monitor.monitor(table(B))] * 2)
    nobody, _ = answered(x="", y="")
    without = monitor.measure(nobody, prompts)
    assert monitor.measure_common(without, nobody, prompts) is without
    # a difference is paired: x and y differ by 0.1 or 0.2, however far each of them spreads
    replicates = np.array([[[0.2], [0.3]], [[0.6], [0.8]]])  # [times, models, relations]
    measured = replace(measured, replicates={"MONITOR": replicates})
    found = monitor.margin(measured, "x", "y", "P1")
    assert found["value"] == pytest.approx(monitor.monitor(table(B)) - monitor.monitor(table(A, B)))
    assert 0.1 <= found["low"] < found["high"] <= 0.2
    assert monitor.margin(measured, "y", "x")["high"] == pytest.approx(-found["low"])


def test_fewer_frames_by_hand():
    measured = monitor.measure(*answered(x="ab", y="b"))
    found, pairs = monitor.fewer_frames(measured, "P1", size=1)
    found = found.set_index("model")
    few, rest = (table({**B, "f": [B["f"][j]]}) for j in (0, 1))
    assert found["first frames"]["y"] == pytest.approx(monitor.monitor(few))
    assert found["other frames"]["y"] == pytest.approx(monitor.monitor(rest))
    assert found["least"]["y"] == pytest.approx(min(map(monitor.monitor, (few, rest))))
    assert (found["change"] == found["first frames"] - found["all frames"]).all()
    assert pairs.columns.tolist() == ["value", "low", "high"]
    every, _ = monitor.fewer_frames(measured, "P1")  # there are only two
    assert every["change"].tolist() == [0, 0] and every["other frames"].isna().all()


def test_fact_checking():
    prompts = pd.DataFrame({"prompt": list("0123"), "fact": "f", "relation": "P1", "template": 1})
    prompts["context"] = ["true", "false1", "false2", "false3"]
    scores = prompts.merge(pd.DataFrame({"candidate": ["True", "False"]}), "cross")
    scores["logprob"] = [-1, -2, -1, -2, -3, -2, -2, -2]  # the last one: a tie is no verdict
    found = monitor.checking(scores, prompts)
    assert found["kind"].tolist() == ["FC-pos"] + ["FC-neg"] * 3
    assert found["correct"].tolist() == [True, False, True, False]


def judged(rights) -> pd.DataFrame:
    """``judge_forms`` of one model and form, from verdicts [facts, paraphrases]."""
    rows = [(f, t, 100 * v) for f, own in enumerate(rights) for t, v in enumerate(own, 1)]
    return pd.DataFrame(rows, columns=["fact", "template", "correct"]).assign(model="m", kind="QA")


def test_paraphrases_are_chosen_and_compared_on_different_facts():
    """The second of three is always missed; chance alone gives nothing."""
    apart = monitor.spread_of_paraphrases(judged([[1, 0, 1]] * 7 + [[0, 0, 1]])).iloc[0]
    assert apart["value"] >= 87.5 and apart["low"] > 0
    rng = np.random.default_rng(0)
    noise = [judged(rng.integers(0, 2, (40, 7))) for _ in range(50)]
    chance = pd.concat([monitor.spread_of_paraphrases(own) for own in noise])
    assert abs(chance["value"].mean()) < 5 and (chance["low"] > 0).mean() < 0.1
    ceiling = monitor.spread_of_paraphrases(judged([[1, 1, 1]] * 8)).iloc[0]
    assert ceiling["value"] == 0 and np.isnan(ceiling["low"])
    assert np.isnan(monitor.spread_of_paraphrases(judged([[1, 0]])).iloc[0]["value"])
