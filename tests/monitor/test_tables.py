"""MONITOR's tables: which cases they pick, and what their findings say."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from probelib import facts, published
from probelib.monitor import discussion, example, measures, relations, tables


def measured() -> measures.Measured:
    """Two models on two relations of two facts, without bootstrap replicates of any spread."""
    relations = pd.DataFrame({
        "relation": ["P36", "P37"] * 2, "MONITOR": [0.2, np.nan, 0.4, 0.6], "low": 0.1, "high": 0.7, "probs": 0.9,
        "coverage": [0.2, 0.0, 1.0, 0.5], "n": 2, "no_distractor": 0, "model": ["a-1m", "a-1m", "a-2m", "a-2m"],
        "avg acc": [10.0, 0.0, 50.0, 20.0], "max": 60.0, "min": 0.0, "std": [1.0, 0.0, 3.0, 2.0], "std0": 1.0,
        "base acc": [10.0, 0.0, 12.0, 20.0]})  # fmt: skip
    models = pd.DataFrame({
        "model": ["a-1m", "a-2m"], "parameters": [10**6, 2 * 10**6], "MONITOR": [0.2, 0.5], "low": [0.1, 0.4],
        "high": [0.3, 0.6], "coverage": [0.1, 0.75], "avg acc": [5.0, 35.0]})  # fmt: skip
    replicates = {
        name: np.array([[[0.2, np.nan], [0.4, 0.6]], [[0.3, np.nan], [0.45, 0.7]]])
        for name in ("MONITOR", "avg", "std")
    }
    return measures.Measured({}, {}, {}, relations, models, replicates)


def test_the_most_reliable_model_and_its_distance_to_the_next():
    said = tables.finding4(measured())
    assert said.startswith(
        "That MONITOR falls where accuracy rises is not decided here (too few cases for an interval)"
    )
    assert "**a-1m** has the lowest MONITOR, 0.200 [0.100, 0.300], on the 10 % of facts" in said
    assert "paper: r = -0.846 in print, -0.847 by its table), and" in said
    assert "a-1m has MONITOR 0.200 on the 10 % of the facts that it anchors" in said
    assert "the next one, a-2m (75 % anchored), differs by +0.300 [" in said
    assert said.endswith(
        "a significant difference (paired over the panel, but each model is scored on the facts that it anchors itself)."
    )


def test_a_lead_that_resampling_reverses_is_a_tie_and_common_facts_have_their_own_leader():
    """By hand: a's replicates lie below b's once and above once. Both anchor x: 0.3 / 0.5 in a and 0.1 / 1 in b."""
    near = measured()
    near.replicates["MONITOR"] = np.array([[[0.2, 0.2], [0.4, 0.4]], [[0.5, 0.5], [0.3, 0.3]]])
    own = pd.DataFrame({"fact": list("xy"), "relation": "P37", "root": [0.3, 0.0], "pbar": [0.5, 0.5], "ird": 0.1,
                        "anchored": [True, True]})  # fmt: skip
    other = own.assign(root=[0.1, 0.9], pbar=1.0, anchored=[True, False])
    near = replace(near, facts={"a-1m": own, "a-2m": other})
    said = tables.finding4(replace(near, facts={}))
    assert " a-1m has the lowest MONITOR, 0.200" in said and ", a tie (paired over the panel, but" in said
    assert tables.tied(near) and not tables.tied(measured())
    columns = dict.fromkeys(["probs", "max acc", "min acc", "base acc", "avg low", "avg high"], 0.5)
    tie, clear = (
        tables.table4(replace(each, facts={}, models=each.models.assign(**columns)), facts.load(n_facts=2))
        for each in (near, measured())
    )
    assert tie.bold() == {"avg acc": [1]} and tie.caption.endswith(
        "avg acc; the lowest MONITOR is a tie, hence not bold."
    )
    assert clear.bold() == {"MONITOR": [0], "avg acc": [1]} and clear.caption.endswith(
        "avg acc and the lowest MONITOR."
    )
    assert tables.lowest_on_common(near) == " Lowest on the 1 facts that all models anchor: a-2m 0.100, a-1m 0.600."


def test_models_that_anchor_nothing_have_no_best():
    nothing = measured()
    nothing.models["MONITOR"] = np.nan
    assert tables.finding4(nothing) == "No model anchors a single fact, so none has a MONITOR."
    assert tables.accuracy_and_monitor(nothing).startswith("Fewer than four models have a MONITOR")
    wide = pd.DataFrame({"m": [np.nan, np.nan]}, index=["P36", "P37"])
    assert relations.finding_by_relation(wide, wide.fillna(0), pd.Series(2, wide.index)).startswith(
        "No model anchors a fact of any relation"
    )


def test_the_lowest_monitor_of_a_relation():
    assert relations._lowest(measured(), "P36").startswith("P36: a-1m (0.200; next +0.200 [")
    assert relations._lowest(measured(), "P37") == "P37: a-2m (0.600, the only model)"


def test_wins_with_a_low_coverage_are_counted():
    table = measured().relations
    wide, covered = (table.pivot(index="relation", columns="model", values=c) for c in ("MONITOR", "coverage"))
    said = relations.finding_by_relation(wide, covered, pd.Series(6, wide.index))
    assert "a-1m (1)" in said and "a-2m (1)" in said
    assert "In 1 of 2 relations that model anchors fewer than half" in said
    assert said.endswith("2 of 3 numbers rest on fewer than four facts.")  # 1 and 3 facts; the third one has 6


def test_stability_without_enough_models():
    none = {"r": np.nan, "n": 1}
    assert tables.finding6(pd.DataFrame(), none, none).startswith("Too few models")
    table = pd.DataFrame({"MONITOR": [0.2, 0.3, 0.5], "std": [1.0, 2.0, 2.5], "avg acc": [5.0, 7.0, 9.0]})
    r = {"r": 0.9, "p": 0.2, "low": np.nan, "high": np.nan, "n": 3}
    said = tables.finding6(table, r, r | {"r": -0.4})
    assert said.startswith("That a lower MONITOR means a smaller spread of accuracy is not decided here (too few cases")
    assert "r = 0.900, p = 0.2, n = 3 models (too few models to leave one out); in the paper's table: r = 0.754" in said
    shown = tables.finding6(table, r | {"low": 0.1, "high": 0.99}, r | {"r": -0.4, "low": -0.6, "high": -0.2})
    assert (
        "is shown here: r = 0.900" in shown and "**Relative to the accuracy** it is reversed here: r = -0.400" in shown
    )


def test_the_paper_s_correlations_stand_beside_ours():
    panel = facts.load(relations=["P36", "P37"], n_facts=2)
    three = measured()
    third = three.relations[:2].assign(model="a-4m", MONITOR=[0.5, 0.7], std=[4.0, 1.0], **{"avg acc": [60.0, 1.0]})
    last = three.models[:1].assign(model="a-4m", parameters=4 * 10**6, MONITOR=0.6, **{"avg acc": 3.0})
    replicates = {name: np.concatenate([own, own[:, :1]], 1) for name, own in three.replicates.items()}
    three = replace(
        three,
        relations=pd.concat([three.relations, third]),
        models=pd.concat([three.models, last]),
        replicates=replicates,
    )
    facts_of = {
        name: pd.DataFrame({"fact": list("xy"), "relation": ["P36", "P37"], "anchored": True, "acc": acc})
        for name, acc in {"a-1m": [0.5, 0.5], "a-2m": [0.2, 0.2], "a-4m": [0.1, 0.2]}.items()
    }
    three = replace(three, facts=facts_of)
    table = tables.correlations(three, three, three, panel, "P36").frame.set_index("between")
    accuracy = np.corrcoef([0.2, 0.5, 0.6], [5, 35, 3])[0, 1]
    relative = np.corrcoef([0.2, 0.4, 0.5], [1 / 10, 3 / 50, 4 / 60])[0, 1]
    anchored = np.corrcoef([0.2, 0.5, 0.6], [50, 20, 15])[0, 1]
    spread = np.corrcoef([0.2, 0.4, 0.5], [1, 3, 4])[0, 1]
    assert table["r"].tolist() == pytest.approx([accuracy, anchored, accuracy, spread, relative])
    assert table["paper's r"].round(3).fillna(0).tolist() == [-0.847, -0.847, 0, 0.754, 0]
    assert set(table["claim"]) == {"not decided here (too few cases for an interval)"}
    by_relation = measures.correlations_by_relation(three).set_index("relation")
    assert by_relation["r anchored"]["P36"] == pytest.approx(np.corrcoef([0.2, 0.4, 0.5], [50, 20, 10])[0, 1])


def test_what_the_gold_answer_loses():
    rows = [(e, m, p) for m, ps in (("a", (0.9, 0.5, 0.6)), ("b", (0.4, 0.4, 0.5))) for e, p in zip(
        ("pos. context", "neg. context", "framing"), ps, strict=True)]  # fmt: skip
    table = pd.DataFrame(rows, columns=["effect", "model", "prob."]).assign(output="Irish")
    said = example.finding7(table, "French")
    assert (
        "the gold answer loses 0.400 in a (44% of 0.900), 0.000 in b (0% of 0.400). Prompts answered, of 3: a 0, b 0"
        in said
    )
    assert said.endswith("the gold answer is more probable in b after 0 of them.")


def test_an_example_against_monitor_is_called_one():
    """By hand: a, with the lower MONITOR, answers one prompt, b all three, always with the higher probability."""
    answers = {"a": [(0.2, "French"), (0.1, "Irish"), (0.1, "Irish")], "b": [(0.9, "French")] * 3}
    effects = ("pos. context", "neg. context", "framing")
    rows = [(e, m, p, o) for m, own in answers.items() for e, (p, o) in zip(effects, own, strict=True)]
    said = example.finding7(pd.DataFrame(rows, columns=["effect", "model", "prob.", "output"]), "French")
    assert "Prompts answered, of 3: a 1, b 3; the gold answer is more probable in b after 3 of them." in said
    assert said.endswith("contradicts the paper's example: a has the lower MONITOR, but b answers better and is surer.")
    alike = example.against_the_example(["a", "b"], pd.Series({"a": 3, "b": 3}), 2, 3)
    assert alike.startswith(" In the paper's example the model with the lower MONITOR is the surer one; here b is.")
    assert example.against_the_example(["a", "b"], pd.Series({"a": 3, "b": 3}), 1, 3) == ""


def test_models_are_compared_on_the_facts_that_both_anchor():
    """By hand: a anchors x and y, b all three. On x and y, MONITOR is (0.1 + 0.3) / 1 in a and (0.4 + 0.6) / 2 in b."""
    rows = pd.DataFrame({"fact": list("xyz"), "relation": "P37", "root": [0.1, 0.3, 0.9], "pbar": [0.5, 0.5, 0.9],
                         "anchored": [True, True, False]})  # fmt: skip
    other = rows.assign(root=[0.4, 0.6, 0.0], pbar=[0.9, 1.1, 0.9], anchored=True)
    both = replace(measured(), facts={"a-1m": rows, "a-2m": other})
    common = measures.monitor_on_common(both, ["a-1m", "a-2m"], "P37")
    assert common["n"] == 2 and common["MONITOR"] == {"a-1m": pytest.approx(0.4), "a-2m": pytest.approx(0.5)}
    assert common["difference"] == pytest.approx(0.1) and common["low"] <= common["difference"] <= common["high"]
    said = example.common_in_words(common)
    assert said.startswith(" On the 2 facts that both anchor, MONITOR is 0.400 in a-1m and 0.500 in a-2m (+0.100 [")
    assert "Mean primary anchor there: 0.50 and 1.00; mean distance from it: 0.200 and 0.500." in said
    assert "a-1m is less sure than a-2m: it has less probability to lose" in said
    alone = replace(both, facts={"a-1m": rows, "a-2m": other.assign(anchored=False)})
    assert "No fact is anchored by both" in example.common_in_words(
        measures.monitor_on_common(alone, ["a-1m", "a-2m"], "P37")
    )
    assert example.common_in_words(measures.monitor_on_common(both, ["a-1m"], "P37")) == ""


def test_unequal_coverage_is_in_the_caption():
    said = example.anchored_in_words(measured(), ["a-1m", "a-2m"], "P37")
    assert said.startswith("a-1m anchors none of 2 facts; ") and "a-2m anchors 50% of 2 facts (mean probability" in said


def test_flaws_of_the_real_files(fktc):
    """The counts of the manifest for P176: 791 leaked objects, nine surplus lines; P264 has six frames, P101 a twin."""
    rows = tables.flaws(facts.read_fktc(fktc, ["P176", "P264", "P101"]))
    of = {relation: group for relation, group in rows.groupby("relation")}
    assert of["P264"]["frames"].iloc[0] == 6 and of["P101"][["frames", "distinct"]].iloc[0].tolist() == [7, 6]
    assert of["P101"]["several"].sum() == 66 and (of["P101"]["right_distractor"].str.len() > 0).sum() == 4
    assert of["P176"]["leaked"].sum() == 791 and not rows["no_distractor"].any()


def test_what_a_sample_does_not_show_the_whole_data_does():
    """Canada has English and French: a sample that holds one of them takes the other for a wrong answer."""
    some = facts.load(relations=["P37"], n_facts=3)
    one, other = some.facts.iloc[0], some.facts.iloc[1]
    known = replace(some, facts=pd.concat([some.facts, some.facts.head(1).assign(fact="new", object=other["object"])]))
    offered = pd.DataFrame({"fact": [one["fact"]], "number": [1], "object": [other["object"]]})
    rows = [tables.flaws(replace(some, distractors=offered), k).iloc[0] for k in (None, known)]
    assert [r["several"] for r in rows] == [False, True]
    assert [r["right_distractor"] for r in rows] == [(), ("negative1",)]


def test_the_pair_of_section_5_2_3():
    printed = published.table("monitor/table5").query("relation == 'P37'")
    """By hand, within 5 points in the printed table: the 13b models differ by 0.156, the paper's own pair by 0.138."""
    rows = printed.rename(columns={"avg_acc": "avg acc", "model": "m"}).assign(model=printed["model_key"], coverage=0.5)
    assert relations.alike_pairs(rows)[:2] == [("vicuna-13b", "wizardlm-13b"), ("vicuna-7b", "bloomz-3b")]
    less = rows.assign(coverage=rows["coverage"].where(rows["model"] != "wizardlm-13b", 0.3))
    assert relations.like_pair(less) == ("vicuna-7b", "bloomz-3b")  # the others' coverage is 20 points apart
    assert relations.like_pair(rows.iloc[:1]) is None
    assert relations.like_pair(rows.assign(coverage=range(len(rows)))) == (
        "vicuna-7b",
        "bloomz-3b",
    )  # the closest in accuracy


def test_the_fact_of_table_7_is_anchored_by_both_and_tells_them_apart():
    rows = pd.DataFrame({"fact": list("abc"), "root": [0.1, 0.2, 0.3], "anchored": [True, True, False]})
    other = rows.assign(root=[0.1, 0.5, 0.9], anchored=True)
    assert example.telling_fact([rows, other]) == "b"
    assert example.telling_fact([rows, other], preferred=["a", "c"]) == "a"
    assert example.telling_fact([rows.assign(anchored=False), other]) == "c"


def test_savings_are_medians_with_the_range_over_rounds():
    rounds = [
        ("generated", i, what, n, s * f)
        for i, f in enumerate((1, 2, 1.5))
        for what, n, s in (("MONITOR", 13, 2.0), ("accuracy", 35, 4.0 + i))
    ]
    table = tables.savings(pd.DataFrame(rounds, columns=["way", "round", "what", "prompts", "seconds"]))
    assert table["cost"].tolist() == ["prompts", "seconds"]
    assert table["saved"].tolist() == pytest.approx([35 / 13, 2.5])
    assert table[["saved, least", "saved, most"]].values[1].tolist() == pytest.approx([2, 3])
    assert table[["MONITOR", "accuracy"]].values[1].tolist() == pytest.approx([3, 9])
    lows = {"prompts": (2.7, 2.7, 2.7), "device seconds": (3.0, 2.5, 3.1), "forwarded tokens": (2.9, 2.9, 2.9)}
    rows = [(way, cost, *values) for way in ("generated", "teacher-forced") for cost, values in lows.items()]
    table = pd.DataFrame(rows, columns=["way", "cost", "saved", "saved, least", "saved, most"])
    said = tables.finding8(table, pd.DataFrame({"monitor_saved_x": [2.97]}))
    assert "**3.00 times** [2.50, 3.10] fewer seconds if everything is generated (paper: 2.97" in said


def test_tied_models_are_counted_and_small_p_values_printed():
    """By hand: a and b anchor half of the facts, c a quarter; four models on a line have a p of 0 to three digits."""
    wide = pd.DataFrame({"a": [0.5], "b": [0.5], "c": [0.25]}, index=["P36"])
    table = pd.DataFrame({"relation": ["P36"]}).merge(wide.rename_axis("relation"), on="relation")
    shown = relations.ends_of_models(table, wide, lambda r, model: (f"{wide.loc[r, model]:.2f}", model))
    assert shown[["lowest", "highest"]].iloc[0].tolist() == ["0.25 (c)", "0.50 (a, first of 2 ties)"]
    found = pd.DataFrame({"runs": "grid", "denominator": "all facts", "r": [-0.99, -0.5], "p": [1e-6, 0.04], "low": -1.0,
                          "high": -0.1, "n": 14})  # fmt: skip
    assert discussion.readings(found).shown["p"].tolist() == ["<0.001", "0.040"]


def test_the_models_of_figure_5_stand_with_their_monitor():
    said = discussion.monitors_in_words(
        measured(), ["a-1m", "a-2m"], facts.load(relations=["P36", "P37"], n_facts=2), "P36"
    )
    assert (
        said
        == "the lowest and the highest MONITOR in P36 (a-1m 0.200 and a-2m 0.400; paper, in P37: OPT-2b7 0.471, BLOOMZ-3b 0.570)"
    )


def test_forms_of_the_question():
    table = pd.DataFrame({
        "model": ["a", "b"], "WP": [10.0, 40.0], "QA": [35.0, 45.0], "FC-pos": [100.0, 60.0], "FC-neg": [0.0, 70.0]})  # fmt: skip
    kinds = ["FC-pos written", "FC-neg written"]
    judged = pd.DataFrame({"model": list("aabb"), "kind": kinds * 2, "fact": "x", "correct": [90.0, 0.0, 60.0, 70.0]})
    said = tables.finding2(table, judged)
    assert (
        "up to **25.0 points** (a; paper: 44.1)" in said and "between 50.0 and 65.0 %" in said and "at most 5.0" in said
    )
    nothing = table.assign(**dict.fromkeys(["FC-pos", "FC-neg"], np.nan))
    assert tables.finding2(nothing, judged) == ""
    assert "The most one-sided judge, a, is right about 100.0 % of the true and 0.0 % of the false" in said
    verdicts = [("a", "FC-pos", 98.0), ("a", "FC-neg", 0.0), ("b", "FC-pos", 60.0), ("b", "FC-neg", 70.0)]
    verdicts = pd.DataFrame(
        [(m, k, f, v + i) for m, k, v in verdicts for i, f in enumerate("xyz")],
        columns=["model", "kind", "fact", "correct"],
    )
    assert tables.above_chance(verdicts) == "; significantly above it in 1 of 2 models"
    assert tables.above_chance(verdicts[verdicts["kind"] == "FC-pos"]) == ""
    kinds = [
        (m, k, f, c)
        for m in "ab"
        for k, cs in (("QA", [100, 100, 90]), ("WP", [0, 10, 20]))
        for f, c in zip("xyz", cs, strict=True)
    ]
    judged = pd.DataFrame(kinds, columns=["model", "kind", "fact", "correct"])
    assert "significant in 2 of 2 models" in tables.differing_forms(judged)
    same = judged.assign(correct=50.0)
    assert "significant in 0 of 2 models" in tables.differing_forms(same) and "is not shown" in tables.differing_forms(
        same
    )


def test_the_gap_between_the_forms_on_trained_paraphrases():
    """By hand: question minus sentence is 0 in paraphrase 1 and 40 in the held-out paraphrase 6, 20 over both."""
    rows = [
        ("a", kind, fact, t, c)
        for fact in "xy"
        for kind, t, c in (("QA", 1, 50), ("WP", 1, 50), ("QA", 6, 40), ("WP", 6, 0))
    ]
    judged = pd.DataFrame(rows, columns=["model", "kind", "fact", "template", "correct"])
    said = tables.trained_forms(judged)
    assert "is +0.0 points, on all of them +20.0; it remains significant in 0 of 1 models" in said
    assert tables.trained_forms(judged[judged["kind"] == "QA"]) == ""


def test_table_10_says_how_many_facts_and_how_sure():
    """By hand: the panel has two facts per relation; every interval is 0.1 to 0.7, half of it 0.3."""
    caption = relations.table10(measured(), facts.load(relations=["P36", "P37"], n_facts=2)).caption
    assert "over the anchored ones of 2 facts per relation (atlas" in caption
    assert "Half the 95 % bootstrap interval over facts of a model's value: 0.300 (median" in caption


def test_a_relation_is_printed_with_its_extreme_models():
    """By hand: a anchors 20 % of 10 facts of P36 and none of P37; the CSV keeps every model."""
    wide = pd.DataFrame({"a": [0.2, np.nan], "b": [0.4, 0.6], "c": [0.3, 0.1]}, index=["P36", "P37"])
    table = pd.DataFrame({"relation": ["P37", "P36"], "name": ["language", "capital"]}).merge(
        wide.rename_axis("relation"), on="relation"
    )
    shown = relations.ends_of_models(table, wide, lambda r, model: (f"{wide.loc[r, model]:.3f}", f"{r} {model}"))
    assert shown.columns.tolist() == ["relation", "name", "lowest", "median", "highest"]
    assert shown["lowest"].tolist() == ["0.100 (P37 c)", "0.200 (P36 a)"]
    assert shown["highest"].tolist() == ["0.600 (P37 b)", "0.400 (P36 b)"]
    assert shown["median"].tolist() == pytest.approx([0.35, 0.3])
    artifact = relations.table10(measured(), facts.load(relations=["P36", "P37"], n_facts=2))
    assert artifact.shown["lowest"].tolist() == ["0.200 (a-1m, 0)", "0.600 (a-2m, 1)"]
    assert {"a-1m", "a-2m"} <= set(artifact.frame)
    unequal = replace(measured(), relations=measured().relations.assign(n=[2, 10, 2, 10])[::-1])
    covered = relations.coverage(unequal, facts.load(relations=["P36", "P37"], n_facts=2))
    assert covered.shown["highest"].tolist() == ["1.00 [0.34, 1.00] (a-2m)", "0.50 [0.24, 0.76] (a-2m)"]
    assert covered.frame["a-2m low"].tolist() == pytest.approx([0.342, 0.237], abs=1e-3)
    assert covered.frame["median"].tolist() == pytest.approx([0.6, 0.25])
    assert covered.finding.startswith("Of all 12 facts, a-1m anchors the fewest, 10 % [1,")
    assert "and a-2m the most, 75 % [47, 91]: models are" in covered.finding
    assert artifact.finding.endswith("from the next one in 1 of 1 relations (paired bootstrap).")


def test_a_wrong_entity_is_said_to_hurt_only_where_it_does():
    printed = pd.DataFrame({"neg_delta": [-20.0, -30.0]})
    table = pd.DataFrame({"Δ [Y]": [10.0, 20.0], "Δ [Y] low": [5.0, -1.0], "Δ [Y_]": [-4.0, -6.0], "Δ [Y_] low": [-9.0, -9.0],
                          "Δ [Y_] high": [1.0, 1.0], "lost": [10.0, 20.0]})  # fmt: skip
    said = tables.finding3(table, printed)
    assert "significantly higher in 1 of 2 models" in said and "spoils 15 % of the answers" in said
    assert said.endswith("by 25.0 points on average; this is **not shown in most models here**.")
    assert tables.finding3(table.assign(**{"Δ [Y_] high": -1.0}), printed).endswith("**shown here**.")
    assert tables.finding3(table.assign(**{"Δ [Y_] low": 1.0}), printed).endswith("**reversed here**.")


def test_models_of_equal_accuracy():
    two = measured()
    two.relations["avg acc"] = [50.0, 0.0, 53.0, 20.0]
    far = "have nearly equal accuracy and coverage."
    assert relations.equal_accuracy(two, "P36").endswith(far)  # a-1m anchors 20 %, a-2m all
    two.relations["coverage"] = [0.9, 0.0, 1.0, 0.5]
    said = relations.equal_accuracy(two, "P36")
    assert said.startswith(
        "That models of equal accuracy differ in MONITOR is shown here: in P36, 1 of the 1 pairs within 5"
    )
    assert "a-1m and a-2m, accuracies of 50.0 and 53.0 %, 90 and 100 % anchored" in said
    assert "MONITOR 0.200 and 0.400 (+0.200 [+0.1" in said
    assert relations.equal_accuracy(two, "P37").endswith(far)


def test_tuning_is_compared_with_the_base():
    table = pd.DataFrame({"model": ["a", "a-it"], "Δ [Y_]": [-5.0, -1.0]})
    assert tables.effect_of_tuning(table, {"a-it": "a"}).endswith("in points: a -5.0, a-it -1.0.")
    assert tables.effect_of_tuning(table, {"b-it": "b"}).startswith("No instruction-tuned model")


def test_the_decision_that_changes_most():
    names = ["as here", "alpha = 0.33", "first", "all", "4 facts per relation, as here", "the same, with an answer cue"]
    table = pd.DataFrame({"decision": names, "a": [0.5, 0.49, 0.5, 0.9, 0.1, np.nan], "b": 0.4})
    table["tau"] = [1.0, 1.0, 0.5, 0.8, 0.1, np.nan]
    table["change"] = discussion.largest_changes(table.set_index("decision")[["a", "b"]])
    assert table["change"].round(2).fillna(-1).tolist() == [-1, 0.01, 0, 0.4, -1, 0]
    table = table.assign(facts=[9, 9, 9, 9, 4, 4], fewest=[3, 3, 3, 9, 1, 0], most=[8, 8, 8, 9, 1, 2])
    shown = discussion.shown_decisions(table, ["a", "b"])
    assert shown["counted"].tolist() == ["3 to 8", "3 to 8", "3 to 8", "9", "1", "0 to 2"]
    assert shown["lowest"].tolist()[::5] == ["0.400 (b)", "0.400 (b)"] and shown["highest"][3] == "0.900 (a)"
    said = discussion.finding_of_sensitivity(table, ["a", "b"])
    assert "**all** changes MONITOR most (by up to 0.400). The ranking changes most with first (tau 0.50)." in said
    assert said.endswith("With an answer cue 1 of 2 models anchor no fact.")
    more = pd.DataFrame(
        {"decision": ["4 facts of P178, as here", "the same, as released"], "a": [0.3, 0.5], "b": [0.1, np.nan]}
    ).assign(fewest=1, most=[2, 3])
    said = discussion.released_in_words(more, ["a", "b"])
    assert said.startswith(
        " The released algorithm follows the tokens that the model generates after the positive context,"
    )
    assert said.endswith("on 4 facts of P178 of which 1 to 3 count: MONITOR changes as follows: a 0.300 to 0.500.")
    assert discussion.released_in_words(table, ["a", "b"]) == ""
    rows = pd.DataFrame({"a": [0.1, 0.4], "b": [0.2, 0.3], "facts": [9, 5]}, index=["as here", "facts anchored by all"])
    said = discussion.order_on_common(rows, ["a", "b"])
    assert said == " a has the lowest MONITOR in the first row, b over the 5 facts anchored by all: a 0.400, b 0.300."
    assert discussion.order_on_common(rows.assign(b=0.0), ["a", "b"]) == ""
    assert discussion.tau_of_resampling(measured()) == ""  # two models have no ranking to speak of
    assert "The ranking" not in discussion.finding_of_sensitivity(table.assign(tau=np.nan), ["a", "b"])
    assert discussion.readings_in_short(pd.DataFrame({"r": [np.nan]})).startswith("Too few models")
    found = pd.DataFrame({"r": [-0.9, -0.95, -0.5, -0.4], "denominator": ["anchored facts"] * 2 + ["all facts"] * 2})
    said = discussion.readings_in_short(found)
    assert said.startswith(
        "r lies at -0.50 to -0.40 over all facts and at -0.95 to -0.90 over anchored facts: which facts"
    )
    assert "no denominator decides it" in discussion.readings_in_short(found.assign(r=[-0.9, 0.1, -0.9, 0.1]))
