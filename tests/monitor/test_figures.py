"""MONITOR's figures: which cases they pick, and what their findings say."""

import numpy as np
import pandas as pd
import pytest

from probelib import facts
from probelib.monitor import alternatives, discussion, figures, scores
from probelib.monitor import measures as monitor


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


def test_size_needs_two_models_of_a_family():
    of = lambda *values: pd.DataFrame({"MONITOR": values, "n": 3}).assign(
        low=lambda t: t["MONITOR"] - 0.1, high=lambda t: t["MONITOR"] + 0.05
    )
    assert figures.finding11([of(0.2)]) == "No family here has two sizes, so no step can be seen."
    curves = [of(0.5, 0.4, 0.3), of(0.5, 0.6, 0.4), of(0.2, 0.1, 0.3).assign(n=5)]
    said = figures.finding11(curves)
    assert "**2 of 3** relations" in said and "at every step of size in 1 of 3" in said
    assert "not decided here (the interval holds one half)" in said
    # 0.30 + 0.05 lies below 0.50 - 0.10, but 0.40 + 0.05 does not
    assert "A panel rests on 3 to 5 facts: in 1 of 3 the 95 % intervals" in said
    assert "is shown here" in figures.finding11(curves[:2] * 5)


def test_the_ends_of_a_family_are_compared_on_the_same_facts():
    table = pd.DataFrame({"family": "a", "parameters": [1e6, 2e6], "MONITOR": [0.5, 0.4]})
    table = table.assign(model=["a-1m", "a-2m"], low=table["MONITOR"] - 0.06, high=table["MONITOR"] + 0.06)
    falls = np.array([[0.5, 0.4], [0.6, 0.45], [0.55, 0.5]])
    assert figures.finding12(table[:1], falls).startswith("No family here has two models")
    said = figures.finding12(table, falls)
    assert "a -0.100 [" in said and said.endswith("shown here.") and "slope" not in said
    rises = table.assign(MONITOR=[0.4, 0.5])
    assert "reversed here" in figures.finding12(rises, falls[:, ::-1]) and "Against a monotone fall" not in said
    said = figures.finding12(rises.assign(low=[0.35, 0.46], high=[0.45, 0.55]), falls[:, ::-1])
    assert "do not overlap: it rises from 0.400 in a-1m to 0.500 in a-2m (+0.100 [" in said
    three = pd.concat([table, table.assign(parameters=4e6, MONITOR=0.31)[:1]], ignore_index=True)
    assert "(slope over 3 sizes, per factor of ten: -0.3" in figures.finding12(
        three, np.column_stack([falls, falls[:, 1] - 0.05])
    )


def test_pairs_of_similar_base_accuracy():
    table = pd.DataFrame({"base acc": [10.0, 12.0, 40.0], "MONITOR": [0.2, 0.4, 0.3], "std": [1.0, 2.0, 9.0]})
    said = figures.finding4(table)
    assert said.startswith("In **1 of 1** pairs of models within 3.5 points") and "holds one half, a coin" in said
    assert figures.finding4(table[1:]) == "No two models with a MONITOR have a base accuracy within 3.5 points."


def test_models_stand_by_base_accuracy_so_that_neighbours_are_alike():
    some, names = facts.load(relations=["P1412"], n_facts=2), ["a-1m", "a-2m", "a-3m"]
    numbers = {"MONITOR": 0.3, "low": 0.2, "high": 0.4, "n": 2, "avg acc": 10.0, "std": 1.0, "std0": 1.0}
    relations = pd.DataFrame({"relation": "P1412", "model": names, "base acc": [30.0, 10.0, 20.0]}).assign(**numbers)
    grid = {"relation": "P1412", "template": [1, 2], "context": "negative1", "accuracy": [9.0, 11.0]}
    runs = {name: pd.DataFrame(grid) for name in names}
    models = pd.DataFrame({"model": names, "parameters": [1, 2, 3]})
    alike = monitor.Measured({}, {}, runs, relations, models, {"std": np.ones((3, 3, 1))})
    artifact = figures.figure4(alike, some)
    labels = [label.get_text() for label in artifact.figure.axes[0].get_yticklabels()]
    assert labels == ["a-2m", "a-3m", "a-1m"] and "Models by base accuracy, the best on top" in artifact.caption
    assert (
        "accuracy over all facts of each of 2 runs; a run prompts every fact with one of 2 paraphrases"
        in artifact.caption
    )
    assert artifact.frame["accuracy"].tolist() == [9.0, 11.0] * 3
    assert artifact.frame["base acc"].tolist() == [10.0, 10.0, 20.0, 20.0, 30.0, 30.0]
    assert (artifact.frame[["MONITOR", "low", "high"]] == [0.3, 0.2, 0.4]).all(axis=None)


def test_the_share_of_sure_primary_anchors():
    rows = [("a", "x", "primary", 0.9), ("a", "y", "primary", 0.1), ("a", "x", "foreign", 0.9)]
    rows += [("b", "x", "primary", 0.1), ("b", "y", "primary", 0.1), ("b", "x", "foreign", 0.9)]
    table = pd.DataFrame(rows, columns=["model", "fact", "anchor", "probability"])
    said = figures.finding9(table, ["a", "b"])
    assert said.startswith(
        "Primary anchors of 0.8 or more: a 50 % over 2 facts; b 0 % over 2 facts (paper: Vicuna-7b 85 %"
    )
    assert "difference +50 [+0, +100] over 2 facts" in said and "not decided here" in said
    assert "Foreign anchors of 0.8 or more: a 100 % over 1 facts; b 100 % over 1 facts; difference +0" in said
    assert said.endswith(
        "Mean anchors of a and b on the facts that both anchor: primary 0.50 and 0.10; foreign 0.90 and 0.90."
    )
    assert figures.finding9(table[:0], ["a"]).startswith("No fact is anchored")
    assert "less sure" not in figures.finding9(table, ["b", "a"])  # b, named first, is as sure of y as a
    table.loc[1, "probability"] = 0.4
    said = figures.finding9(table, ["b", "a"])
    assert "b is less sure than a: it has less" in said and said.endswith("does not show that it is more reliable.")


def test_the_share_of_the_distractor():
    words = {"word": ["Irish.", "Who?"] * 2, "prepended": [True, False] * 2, "score": [0.1, 0.9, 0.3, 0.7]}
    table = pd.DataFrame(
        {"model": list("aabb"), **words, "begins": ["French"] * 2 + ["Irish"] * 2, "correct": [True] * 2 + [False] * 2}
    )
    said = discussion.finding5(table)
    assert "is 0.10 in a (which begins with 'French', right) and 0.30 in b (which begins with 'Irish', wrong)" in said


def test_the_cases_that_figures_1_and_2_show():
    contexts = [(1, "none"), (2, "none"), (1, "positive"), (1, "negative1")]
    stable, spoiled = [True] * 4, [True, False, True, False]
    rows = [
        (f, t, c, [p], ok)
        for f, p, oks in (("a", 0.9, stable), ("b", 0.4, spoiled))
        for (t, c), ok in zip(contexts, oks, strict=True)
    ]
    answers, prompts = scored(rows)
    answers["logprob"] = [float(np.sum(t)) for t in answers["token_logprobs"]]
    grid = monitor.verdicts(answers, prompts, "released13")
    assert figures.most_unstable({"x": grid.loc[["a"]], "y": grid}) == ("y", "b")
    weak = answers.assign(logprob=answers["logprob"] - 2)
    assert figures.most_apart({"weak": weak, "x": answers}, prompts) == ("a|1|none", ["x", "weak"])
    assert figures.most_apart({"x": answers}, prompts)[1] == ["x"]


def test_the_prompt_of_figure_5_is_answered_by_the_first_model_only():
    rows = [(f, 1, c, [0.5], True) for f in "ab" for c in ("none", "negative1", "negative2")]
    first, prompts = scored([*rows, ("a", 2, "negative1", [0.5], True)])
    first["correct"] = first["prompt"].isin(["a|1|negative2", "b|1|negative1", "a|2|negative1"])
    first["logprob"] = -1.0
    second = first.assign(correct=first["prompt"].isin(["b|1|negative1", "b|1|negative2"]))
    assert alternatives.misprimed(first, second, prompts) == [
        "a|1|negative2",
        "b|1|negative1",
        "a|1|negative1",
        "b|1|negative2",
    ]


# Sections 3, 4 and 6


def test_two_models_with_one_answer_are_equal_for_accuracy():
    top = pd.DataFrame(
        [("a", "Rome", 0.9), ("a", "Bern", 0.1), ("b", "Rome", 0.2)], columns=["model", "label", "probability"]
    )
    assert figures.finding2(top) == "a gives Rome 0.900 and b gives Rome 0.200: accuracy calls them equal."
    other = top.replace({"label": {"Bern": "Oslo"}}).assign(label=["Rome", "Oslo", "Oslo"])
    assert figures.finding2(other).endswith("no prompt here is answered by two models.")
    assert figures.finding2(top[:2]).startswith("A second model is missing")


def test_the_widest_spread_over_paraphrases():
    rows = [("a", "QA", 1, 10.0), ("a", "QA", 2, 40.0), ("b", "QA", 1, 10.0), ("b", "QA", 2, 20.0)]
    table = pd.DataFrame(rows, columns=["model", "kind", "template", "accuracy"])
    judged = pd.DataFrame(
        {"model": "a", "kind": "QA", "template": [1, 2] * 4, "fact": list("vvxxyyzz"), "correct": 10.0}
    )
    assert figures.finding7(table, judged) == (
        "Fewer than three paraphrases or two facts: too few to test a difference. The widest spread over paraphrases is 30.0 "
        "points (a, QA); mean spread: QA 20.0 points; one fact is 25.0 points. The paraphrase answered least, by its number: "
        "QA 1."
    )


def test_paraphrases_are_compared_on_the_same_facts():
    """By hand: a answers the first paraphrase of each of eight facts and no other; b answers all three or none."""
    rows = [
        (model, "QA", fact, template, 100 * (template == 1 if model == "a" else fact % 2))
        for model in "ab"
        for fact in range(8)
        for template in (1, 2, 3)
    ]
    judged = pd.DataFrame(rows, columns=["model", "kind", "fact", "template", "correct"])
    assert "is not shown in most cases here: significantly in 1 of 2 pairs" in figures.differing_paraphrases(judged)
    assert "is shown here: significantly in 1 of 1" in figures.differing_paraphrases(judged[judged["model"] == "a"])


def test_the_farthest_prompts_of_each_kind():
    contexts = ["none", "none", "positive", "negative1", "negative2"]
    table = pd.DataFrame({"context": contexts, "distance": [0.1, 0.3, 0.0, 0.5, 0.2]})
    assert figures.farthest_prompts(table).index.tolist() == [2, 1, 3]


def test_gains_count_as_losses():
    anchors = pd.DataFrame([{"p": np.array([0.5]), "f": np.array([[0.7], [0.3]]), "n": np.array([[0.1], [0.2]])}])
    facts = pd.DataFrame({"fact": ["f"], "anchored": [True], "pfd": 0.2, "ird": 0.35, "root": 0.28, "pbar": 0.5})
    said = figures.anchors_in_short(facts, anchors)
    assert (
        said.startswith("1 of 1 facts are anchored") and "**0.560**" in said and "25 % of all foreign anchors" in said
    )
    assert figures.anchors_in_short(facts.assign(anchored=False), anchors).startswith("No fact is anchored")


def test_a_context_that_holds_a_full_stop_is_all_of_it_context():
    """What is prepended to the question is "Port St. Joe. ", not what stands before the first full stop."""
    share, even = scores.context_share(pd.Series([0.1] * 6), "Port St. Joe. Where is X?", "Where is X?")
    assert share == pytest.approx(0.3) and even == 3 / 6


def test_the_attention_to_the_context_is_compared_over_the_same_facts():
    shares = pd.DataFrame(
        {"model": ["a"] * 3 + ["b"] * 3, "fact": list("xyz") * 2, "share": [0.1, 0.2, 0.1, 0.3, 0.5, 0.4], "even": 0.25}
    )
    shares.attrs["misprimed"] = 2
    said = discussion.context_attention(shares)
    assert "an even split would give 0.25 (3 facts" in said and "Difference -0.27 [-0.30, -0.20]" in said
    assert "Difference" not in discussion.context_attention(shares[:3])
    artifact = discussion.attention(shares)
    assert "2 of them are answered by the first model only" in artifact.caption
    assert artifact.shown["fact"].tolist() == ["x", "y", "z"] and len(artifact.frame) == 6
    assert artifact.shown[["a", "b", "even"]].to_numpy()[-1] == pytest.approx([0.1, 0.4, 0.25])


def test_fewer_frames_are_judged_on_the_pairs_that_all_frames_tell_apart():
    """By hand: all frames tell c from a and from b, but not a from b; the first ones swap a and b, then b and c as well."""
    table = pd.DataFrame({"model": list("abc"), "all frames": [0.1, 0.2, 0.9], "first frames": [0.3, 0.2, 0.8]})
    replicates = np.array([[0.1, 0.2, 0.9], [0.2, 0.1, 0.9], [0.1, 0.2, 0.8], [0.2, 0.1, 0.8]])
    said = discussion.finding10(table, replicates, 4)
    assert said.startswith(
        "That 4 frames rank the models as all do is shown here for the models that differ: of the 2 pairs"
    )
    assert "they reverse 0; of the 1 other pairs, 1. MONITOR changes by 0.100 on average (paper: 0.005), tau" in said
    worse = discussion.finding10(table.assign(**{"first frames": [0.1, 0.9, 0.2]}), replicates, 4)
    assert "is not shown here: of the 2 pairs" in worse and "they reverse 1" in worse
    same = discussion.finding10(table, np.array([[0.1, 0.2, 0.3], [0.3, 0.2, 0.1]] * 9), 4)
    assert "is not decided here: of the 0 pairs" in same


def test_the_ranking_with_fewer_frames():
    full = pd.DataFrame({"model": ["a", "b"], "MONITOR": [0.2, 0.4]})
    rows = [(m, f, v) for f, vs in (((0,), (0.1, 0.5)), ((1,), (0.5, 0.3))) for m, v in zip("ab", vs, strict=True)]
    subsets = pd.DataFrame(rows, columns=["model", "frames", "MONITOR"])
    assert alternatives.taus_of_halves(subsets, subsets).tolist() == [
        -1.0,
        -1.0,
    ]  # frames 0 and 1 rank the models differently
    assert "too few frames for two disjoint rankings" in discussion.finding6(subsets, full, subsets[:0])
    said = discussion.finding6(subsets, full, subsets)
    assert "disjoint frames tau is -1.00 to -1.00 (median **-1.00**). They still share the distractors" in said
    assert said.startswith(
        "Over all 2 choices of frames, Kendall's tau with the full ranking is -1.00 to 1.00 (median 0.00)"
    )
    assert "changes by 0.150 on average" in said
