"""The findings of tables and figures, from hand-made numbers."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.text import Text

from probelib import beyond, facts, report, stats
from probelib.beyond import concordance, figures, gpt2, measures, robustness, tables


def test_calibration_compares_each_measure_with_the_constant_on_its_own_facts():
    """GraphEval scores two facts of four, none of them taught; half of the facts that Primary anchor scores were taught."""
    design = pd.DataFrame({"model": "m", "fact": list("abcd"), "exposures": [9, 9, 0, 0]})
    rows = [("Primary anchor", fact, value) for fact, value in zip("abcd", (0.9, 0.8, 0.2, 0.1), strict=True)]
    rows += [("GraphEval P(true)", "c", 0.5), ("GraphEval P(true)", "d", 0.5)]
    values = pd.DataFrame(rows, columns=["measure", "fact", "value"]).assign(model="m")
    artifact = tables.calibration(values, design)
    assert artifact.frame["taught"].tolist() == [0.5, 0] and artifact.shown["constant"].tolist() == [0.25, 0]
    assert artifact.finding.startswith("Primary anchor has the lowest Brier score (0.025, 95 % CI [")
    assert "on its facts, a constant 0.50 has 0.250." in artifact.finding
    assert artifact.finding.endswith("on the same facts: Primary anchor.")
    assert artifact.caption.endswith(
        "On other, fewer facts (n), so not to be compared with the rest: GraphEval P(true)."
    )
    assert "On other" not in tables.calibration(values[:4], design).caption


def test_a_gap_below_one_hundredth_is_not_counted_as_larger():
    """GraphEval lies 0.1 above the share taught, the others 0.006. Of five panels in rows of four the last four have tick
    labels."""
    design = pd.DataFrame({"model": "m", "fact": list("abcd"), "exposures": [9, 9, 0, 0]})
    near = ["Primary anchor", "ZP probability", "Avg@n Random", "Avg@n ApprOpt"]
    rows = [(name, fact, 0.506) for name in near for fact in "abcd"]
    rows += [("GraphEval P(true)", fact, 0.6) for fact in "abcd"]
    artifact = figures.reliability(pd.DataFrame(rows, columns=["measure", "fact", "value"]).assign(model="m"), design)
    assert "Of 5 measures that lie between 0 and 1, 1 are larger on average" in artifact.finding
    assert (
        "by at least 0.01. The difference is highest for GraphEval P(true) (+0.10 [-0.40, +0.60])" in artifact.finding
    ), "the facts taught alone, and the others alone"
    first = artifact.figure.axes[0]
    assert "Primary anchor\n(4)" in (
        first.get_title("center"),
        first.get_title("left"),
    )  # where the chart style puts it
    row = artifact.frame.query("measure == 'GraphEval P(true)'").iloc[0]
    assert (row["right low"], row["right high"]) == stats.wilson(2, 4)
    labels = [panel.xaxis.get_tick_params()["labelbottom"] for panel in artifact.figure.axes[:5]]
    assert labels == [False, True, True, True, True]
    plt.close("all")


@pytest.mark.parametrize(
    ("highs", "meant"), [([-0.1, 0.2], "for 1 of 2 measures"), ([0.1, 0.2], "for 0 of 2 measures")]
)
def test_held_out_paraphrases(highs, meant):
    table = pd.DataFrame({"measure": ["x", "y"], "change": [-0.3, 0.1], "low": -0.4, "high": highs, "pairs": 9})
    finding = robustness.paraphrase_finding(table.assign(**{"mean high": [-0.1, 0.3]}))
    assert meant in finding and "the mean value for 1 (by chance 0.1 each)." in finding
    assert ("falls most for x (-0.300 [-0.400, -0.100], n = 9 pairs)." in finding) == (highs[0] < 0)


def test_means_are_shown_beside_the_concordance_in_held_out_paraphrases(trial):
    """Every value is 2 lower in the held-out paraphrases: the concordance stays, the mean falls by 2, on the 100 cases that were
    scored in both."""
    values, design = trial
    values, (pairs, _) = values[values["measure"] == "PMI"], measures.headline_pairs(design)
    held_out = values.assign(value=values["value"] - 2).head(100)
    shown = robustness.held_out_paraphrases(values, held_out, design, pairs).shown
    assert np.allclose(shown["mean seen"] - shown["mean held-out"], 2) and np.allclose(shown["seen"], shown["held-out"])
    assert shown["n"].tolist() == [100] and np.isclose(shown["mean seen"][0], values["value"].head(100).mean())
    assert shown["change of the mean"].tolist() == ["-2.000 [-2.000, -2.000]"]


def test_what_held_out_paraphrases_leave_out_is_reported_with_the_reason(trial):
    """Every measure that ``questions.templates`` does not change is named; LLM-as-a-judge has values in one sister only."""
    fixed = [name for own in robustness.FIXED.values() for name in own]
    assert sorted(fixed) == sorted(name for name, one in beyond.MEASURES.items() if not one.paraphrased)
    values, design = trial
    values, (pairs, _) = values[values["measure"].isin(["PMI", "Familiarity"])], measures.headline_pairs(design)
    lone = values[(values["measure"] == "PMI") & (values["model"] == "s0")].assign(measure="LLM-as-a-judge")
    values = pd.concat([values, lone], ignore_index=True)
    caption = robustness.held_out_paraphrases(values, values, design, pairs).caption
    assert "those that read all paraphrases at once (MONITOR, Agreement over paraphrases, Confidence)" in caption
    assert caption.endswith(
        "in every model compared: LLM-as-a-judge. Controls (they do not test the fact): Familiarity."
    )


def test_the_training_mixture_moves_measures():
    rows = {
        "measure": ["x", "y"],
        "asks": ["a list", "questions"],
        "pairs": 9,
        "before": [0.5, 0.2],
        "after": [0.1, 0.3],
    }
    table = pd.DataFrame(rows | {"change": [-0.4, 0.1], "low": [-0.6, -0.1], "high": [-0.2, 0.3]})
    assert robustness.mixture_finding(table, ("a", "b")) == (
        "Over n = 9 pairs of facts, the two rankings of 2 measures (0 of them controls) correlate with tau = -1.00. Highest "
        "for a: x (50.0%); for b: y (30.0%). Measures that are significantly better for b: none; for a: 1 (largest: x, prompted "
        "with a list, -0.400); by chance 0.1 each."
    )


def test_only_the_three_largest_changes_are_named():
    changed = pd.DataFrame({"measure": list("abcd"), "asks": "questions", "change": [0.1, 0.4, 0.2, 0.3]})
    with_questions = "{}, prompted with questions, {:+.3f}".format
    named = [with_questions(*row) for row in (("b", 0.4), ("d", 0.3), ("c", 0.2))]
    assert robustness._largest(changed) == f"4 (largest: {'; '.join(named)})"


def test_measures_that_tie_for_the_first_place_are_named():
    """The third value differs from 1 in its last bits only."""
    table = pd.DataFrame({"measure": ["x", "y", "z"], "before": [1.0, 0.9, 1 - 1e-12]})
    assert tables.leaders(table, "before") == ["x", "z"]
    assert robustness.highest(table, "before") == "2 measures tie at 100.0% (x, z)"
    assert robustness.highest(table[1:2], "before") == "y (90.0%)"
    many = pd.DataFrame({"measure": list("abcde"), "before": 0.5})
    assert robustness.highest(many, "before") == "5 measures tie at 50.0% (a, b, c and 2 more)"


def test_the_sign_of_monitor_is_said_where_it_is_shown(monkeypatch):
    monkeypatch.setattr(robustness, "where_misconceptions_stand", lambda misled: "Where they stand.")
    rows = [
        ("m", f"f{i}", name, value + i) for name in ("MONITOR", "PMI") for i, value in enumerate((0.0, 0.1, 5.0, 5.1))
    ]
    values = pd.DataFrame(rows, columns=["model", "fact", "measure", "value"])
    artifact = robustness.misconceptions(values, ["f0", "f1"], ["f2", "f3"])
    assert artifact.caption.endswith("Where they stand." + tables.MONITOR_SIGN)
    assert artifact.finding.startswith("Facts with a misconception score significantly lower by: MONITOR, PMI (of 2")
    assert artifact.finding.endswith("Not significantly lower by: none.")
    assert artifact.shown["difference"][0].startswith("-7.000 [") and artifact.shown["n misled"].tolist() == [2, 2]
    without = robustness.misconceptions(values[values["measure"] == "PMI"], ["f0", "f1"], ["f2", "f3"])
    assert without.caption.endswith("Where they stand.")


def test_a_measure_sees_a_fact_from_the_count_after_which_it_never_falls_below():
    rows = {"exposures": [2, 8, 32] * 3, "measure": ["x"] * 3 + ["y"] * 3 + ["z"] * 3}
    table = pd.DataFrame(rows | {"concordance": [0.95, 0.8, 0.9, 0.9, 0.9, 1.0, 0.5, 0.6, 0.7]})
    finding = figures.detection_finding(table, ["x", "y", "z"])
    assert finding.endswith("of the taught fact: y from 2 on, x from 32 on, z at no exposure count.")


def test_what_popularity_alone_orders():
    """By hand: at random, familiarity orders one of two pairs; by popularity both."""
    facts_of = {"m": [("a", 64), ("b", 0), ("c", 0)], "m-popular": [("a", 64), ("b", 0), ("c", 32)]}
    design = pd.DataFrame(
        [(m, m, f, "P1", n) for m, rows in facts_of.items() for f, n in rows],
        columns=["model", "group", "fact", "relation", "exposures"],
    )
    known = {"m": {"a": 2.0, "b": 1.0, "c": 3.0}, "m-popular": {"a": 2.0, "b": 1.0, "c": 3.0}}
    values = [(m, f, "Familiarity", v) for m, own in known.items() for f, v in own.items()]
    values = pd.DataFrame(values, columns=["model", "fact", "measure", "value"])
    artifact = robustness.popularity(values, design, ("m", "m-popular"))
    row = artifact.frame.iloc[0]
    assert (row["concordance at random"], row["concordance by popularity"], row["change"]) == (0.5, 1.0, 0.5)
    assert artifact.shown.iloc[0]["change"] == 0.5 and artifact.shown.iloc[0]["at random"].startswith("0.500")
    assert artifact.shown[["pairs at random", "pairs by popularity"]].to_numpy().tolist() == [[2, 2]]
    assert row["control"] and "orders 50.0%" in artifact.finding and "and 100.0%" in artifact.finding


def test_popularity_is_compared_in_percent():
    """PMI's intervals overlap, those of Familiarity do not."""
    rows = {"measure": ["Familiarity", "PMI"]}
    for way, share, low, high, pairs in (
        ("at random", [0.6, 0.9], [0.5, 0.8], [0.7, 1.0], 1000),
        ("by popularity", [0.9, 0.95], [0.8, 0.9], [1.0, 1.0], 5),
    ):
        rows |= {f"concordance {way}": share, f"low {way}": low, f"high {way}": high, f"pairs {way}": pairs}
    assert robustness.popularity_finding(pd.DataFrame(rows)) == (
        "Familiarity with the subject, which knows no fact, orders 60.0% [50.0%, 70.0%] of the 1,000 pairs when exposures are "
        "drawn at random, and 90.0% [80.0%, 100.0%] of the 5 pairs when exposures follow popularity. 1 of 2 measures change "
        "beyond both intervals (Familiarity)."
    )


def quantized(low: float, high: float) -> pd.DataFrame:
    """P(right answer) and one measure of 0 and 1, in two precisions."""
    rows = [(figures.ANSWER, "8bit", -0.001, -0.002, 0.001, np.nan, np.nan, np.nan)]
    rows += [(figures.ANSWER, "nf4", (low + high) / 2, low, high, np.nan, np.nan, np.nan)]
    rows += [("known", "8bit", 0.0, np.nan, np.nan, 1, 1, 1.0), ("known", "nf4", -0.6, -0.9, -0.2, 6, 0, 0.02)]
    columns = ["measure", "precision", "difference", "low", "high", "lost", "gained", "p"]
    return pd.DataFrame(rows, columns=columns).assign(n=9, value=0.5)


def test_the_change_of_the_right_answers_probability():
    finding = figures.change_finding(quantized(-0.06, -0.04))
    assert finding == (
        "The probability of the right answer is lower in nf4 (-0.050 [-0.060, -0.040]); not significantly changed in 8bit "
        "(-0.001 [-0.002, 0.001]), n = 9 facts. By measures of 0 and 1, 7 facts are lost and 1 gained in 2 comparisons; 1 of "
        "them show a change after Holm's correction of McNemar's test."
    )
    assert "is higher in nf4 (+0.050" in figures.change_finding(quantized(0.04, 0.06))
    assert figures.change_finding(quantized(-1, 1)[:1]).endswith("n = 9 facts.")
    artifact = figures.quantization_change(
        pd.concat([quantized(-0.06, -0.04), quantized(0, 0)[:1].assign(measure="MONITOR")]), "m"
    )
    assert len(artifact.frame) == 4 and "known, nf4: 6 lost, 0 gained" in artifact.alt
    plt.close("all")


def test_small_significant_changes_by_quantization_have_sizes():
    """By hand: 8bit changes nothing significantly, nf4 by 0.05 and 0.6; one of four differences has no interval."""
    artifact = tables.quantization(quantized(-0.06, -0.04), "m")
    assert artifact.finding.endswith("8bit 0 of 2; nf4 2 of 2, differences of 0.05 to 0.6.")
    assert artifact.shown.iloc[1].to_dict() == {
        **{"measure": "known", "n": 9, "8bit": "0.0000", "nf4": "-0.6000 [-0.9000, -0.2000]"}
    }
    assert artifact.caption.endswith("Of the 3 differences with an interval, 0.2 are significant by chance.")
    small = quantized(-0.0004, -0.0002)[1:2].assign(measure="MONITOR")
    artifact = tables.quantization(small, "m")
    assert artifact.finding.endswith("nf4 1 of 1, a difference of 0.0003.")
    assert artifact.caption.endswith(tables.MONITOR_SIGN) and artifact.decimals["difference"] == 5


def test_a_group_of_few_measures_is_named():
    groups = pd.DataFrame(
        {"group": [1, 1, 2], "measure": ["MONITOR", "PMI", "ZP choice"], "within": 0.8, "without": 0.5}
    )
    finding = tables.clusters(groups, 9).finding
    assert (
        finding
        == "2 groups; the largest holds 2 of 3 measures, from 1 of the four papers. The other groups: ZP choice."
    )
    assert tables.clusters(groups[:2], 9).finding.endswith("The other groups: none.")


def test_groups_of_measures_stand_together():
    groups = pd.DataFrame(
        {"group": [1, 2, 1], "measure": ["MONITOR", "ZP choice", "PMI"], "within": 0.8, "without": 0.5}
    )
    artifact = tables.clusters(groups, 1234)
    assert (
        artifact.frame["measure"].tolist() == ["MONITOR", "PMI", "ZP choice"] and "n = 1,234 facts" in artifact.caption
    )
    assert "without: with all measures of other groups. All shares leave ties out" in artifact.caption


def test_disagreements_say_how_often_a_fact_was_taught():
    """PMI is highest in two rows of three; each lowest stands once."""
    asked = facts.atlas()
    three, fact = asked.facts["fact"].iloc[:3].tolist(), asked.facts["fact"].iloc[0]
    row = {"model": "m", "spread": 0.5, "rank highest": 1.0, "rank lowest": 0.0, "measures": 30, "facts": 99}
    apart = pd.DataFrame([row | {"fact": name, "median spread": 0.2} for name in three])
    apart = apart.assign(highest=["PMI", "Margin", "PMI"], lowest=["MONITOR", "KaRR", "Chance"])
    artifact = tables.disagreements(apart, asked, pd.Series({fact: 32.0}))
    assert (
        artifact.frame["exposures"][0] == 32
        and "mean over all models compared, not of the row's model" in artifact.caption
    )
    assert "(m: 30 measures of 99 facts; facts that" in artifact.caption and "at random have 0.29." in artifact.caption
    assert artifact.finding.endswith(
        "MONITOR at 0.00 (spread 0.50; in the median fact of this model 0.20). Number of different pairs (highest, lowest): 3 "
        "in 3 rows. Most often highest: PMI (2 of 3 rows); lowest: MONITOR, KaRR, Chance (1 of 3 rows each)."
    )
    assert "exposures" not in tables.disagreements(apart, asked).frame and "measures" not in artifact.shown


def test_failing_claims_are_counted():
    claims = pd.DataFrame(
        {"paper": ["x", "x", "y"], "verdict": [beyond.audit.FAILS, beyond.audit.HOLDS, beyond.audit.FAILS]}
    )
    assert tables.audit_failing(claims).finding == "2 of 3 claims do not hold (x: 1; y: 1)."


def by_type(low: float) -> pd.DataFrame:
    """Two measures by two types; ``low``: the lower end of PMI's interval for persons (for years it is [0.1, 0.5])."""
    rows = [("person", "PMI", 21, 30, 0.8, low, 1.0), ("year", "PMI", 8, 12, 0.3, 0.1, 0.5)]
    rows += [("person", "Margin", 21, 30, 0.6, 0.3, 0.9), ("year", "Margin", 2, 3, 1.0, np.nan, np.nan)]
    return pd.DataFrame(rows, columns=["group", "measure", "pairs", "facts", "concordance", "low", "high"])


def test_types_are_told_apart_by_disjoint_intervals_only():
    assert figures.kinds_finding(by_type(0.4)) == (
        "The 2 types cannot be told apart: the 95 % intervals of two types are disjoint for 0 of 2 measures, so these facts "
        "give no order of types."
    )
    assert "are disjoint for 1 of 2 measures (PMI)" in figures.kinds_finding(by_type(0.6))
    assert figures.kinds_finding(by_type(0.4)[:1]).startswith("Fewer than two types")


def test_types_are_labelled_with_their_pairs():
    artifact = figures.kinds(
        by_type(0.4), ["PMI", "Margin", "GraphEval correct"], pd.Series({"person": 40, "year": 16})
    )
    labels = [label.get_text() for label in artifact.figure.axes[0].get_xticklabels()]
    assert labels == ["person (21)", "year (8)"] and "of 56 facts" in artifact.caption
    assert artifact.caption.endswith("fewer than ten facts in every type: GraphEval correct.")
    plt.close("all")


def test_two_readings_of_one_score_are_not_compared():
    rows = [
        ("Min@n Random", "Avg@n Random", 0.99),
        ("Min@n Random", "ZP choice", 0.4),
        ("ROUGE-L", "Avg@n Random", 0.6),
    ]
    pairs = pd.DataFrame(rows, columns=["first", "second", "alike"]).assign(low=0.1, high=0.9)
    finding = figures.agreement_finding(pairs)
    assert "both in common use, order 60.0% of the pairs of facts alike on average (1 pairs of measures)" in finding
    assert "different sources 40.0% (1)" in finding
    assert "Left out: 1 of the 3 pairs, two readings of one score." in finding
    assert "Left out" not in figures.agreement_finding(pairs[1:])
    assert figures.agreement_finding(pairs[:1]) == ""


def test_the_shipped_scores_of_gpt2_make_all_artifacts():
    """Published: GPT-2's accuracy on the statements of these relations, recounted line by line in ``test_imported``."""
    choices = beyond.choose_candidates(beyond.read_one(None, ["P36", "P30"]))
    accuracy = beyond.gpt2_accuracy(choices)
    table, best = accuracy.frame.set_index("relation"), accuracy.frame.iloc[0]
    assert f"Best: {best['name']} ({best['accuracy']:.1%} [" in accuracy.finding
    assert table["name"].to_dict() == {"P36": "capital", "P30": "continent"}
    assert set(table.index) == {"P36", "P30"} and table["n"].sum() == len(choices)
    assert "(2 relations of BEAR, by" in accuracy.caption
    for artifact in (beyond.gpt2_confidence(choices), beyond.gpt2_distractors(choices)):
        assert artifact.figure is not None and artifact.finding
    plt.close("all")


def test_few_right_answers_are_not_called_more_than_chance():
    """Of 60 facts with 60 candidates 3 are right, p = .08 (Wilson's interval excludes chance), and of another relation 30."""
    rows = {"model": "m", "fact": range(120), "relation": ["r"] * 60 + ["s"] * 60, "wrong": 59}
    right = [i < 3 or i >= 90 for i in range(120)]
    artifact = beyond.gpt2_accuracy(pd.DataFrame(rows).astype({"fact": str}).assign(correct=right))
    table = artifact.frame.set_index("relation")
    assert table.loc["r", "low"] > 1 / 60 and table.loc["r", "p"] == pytest.approx(0.0787, abs=1e-4)
    assert artifact.shown["p"].tolist() == ["<0.001", "0.079"]
    assert "; in 1 of 2 relations significantly more often than by chance (one-sided exact" in artifact.finding
    assert "p < .025; by chance 0.1). Best: s (50.0% [37.7%, 62.3%], chance 1.7%)" in artifact.finding
    assert "(2 relations, by" in artifact.caption and "where chance is 0.0167 (mean of" in artifact.caption
    assert "%], by chance for 1.7%; in 1 of 2" in artifact.finding


def test_all_relations_of_the_shipped_scores_have_names():
    scores = beyond.read_one(None)
    names = facts.atlas().relations.set_index("relation")["name"].to_dict() | beyond.imported.NAMES
    assert set(scores["relation"]) <= set(names) and names["P344"] == "director of photography"


def test_dots_have_areas_by_their_number_of_facts_and_bars():
    """Three facts in the bin from .9 on, two of them right; one in that from .2 on."""
    rows = {"model": "m", "fact": list("abcd"), "confidence": [0.92, 0.94, 0.93, 0.21], "correct": [1, 1, 0, 0]}
    artifact = gpt2.gpt2_confidence(pd.DataFrame(rows | {"q_predicted": rows["confidence"]}))
    bins = artifact.frame.query("panel == 'reliability'")
    assert bins["n"].tolist() == [1, 3] and bins["right low"].tolist() == pytest.approx([0, stats.wilson(2, 3)[0]])
    bars, dots, *key = artifact.figure.axes[1].collections
    assert dots.get_sizes().tolist() == pytest.approx([20, 60])
    assert [(one.get_label(), *one.get_sizes()) for one in key] == [("1", 20), ("2", 40)]
    assert len(bars.get_segments()) == 2 and "number of facts (1 to 3)" in artifact.caption
    plt.close("all")


def test_what_is_left_of_the_agreement():
    columns = {"with the others": [0.5, 0.3], "given them": [0.2, 0.3], "change": [-0.3, 0.0], "popularity": 0.1}
    ends = {f"{name} {end}": value for name in columns for end, value in (("low", -0.4), ("high", 0.4))}
    shared = pd.DataFrame({"measure": ["x", "y"], "n": 9} | columns | ends).assign(**{"change high": [-0.2, 0.1]})
    artifact = tables.partial(shared)
    assert artifact.finding == (
        "A measure's mean rank correlation with the others is 0.40 on average over 2 measures, and 0.25 given popularity and "
        "length (-0.150); it falls significantly for 1 of them (by chance 0.1)."
    )
    assert artifact.shown.iloc[0].to_dict() == {
        **{"measure": "x", "n": 9, "with the others": "0.50 [-0.40, 0.40]", "given them": "0.20 [-0.40, 0.40]"},
        **{"change": "-0.30 [-0.40, -0.20]", "popularity": "0.10 [-0.40, 0.40]"},
    }
    assert tables.partial(shared.assign(**{tables.EXPOSED: 0.1, f"{tables.EXPOSED} low": 0, f"{tables.EXPOSED} high": 1})
                          ).finding.endswith("Given the number of exposures, too, it is 0.10.")  # fmt: skip


def test_the_audit_counts_its_verdicts():
    claims = beyond.audit.table(["zplke"])
    artifact = beyond.audit_verdicts(claims)
    assert artifact.finding.startswith(f"Of {len(claims)} claims") and len(artifact.frame) == 1
    assert beyond.audited_claims(claims).finding.endswith(f"of {len(claims)}.")
    plt.close("all")


def test_a_figure_names_ten_measures_the_frontier_first():
    papers = ["monitor", "zplke", "distractors", "grapheval", "beyond"]
    points = pd.DataFrame(
        {"concordance": [i / 30 for i in range(30)], "paper": papers * 6, "tokens a fact": range(30)},
        index=[f"m{i}" for i in range(30)],
    )
    named = figures.labelled(points, ["m0", "m29"])
    assert named[:2] == ["m29", "m0"] and len(named) == len(set(named)) == 10
    assert set(points.loc[named, "paper"]) == set(papers)
    own = figures.labelled(points.rename({"m3": "MONITOR", "m1": "ZP choice"}), ["m29"])
    assert own[:3] == ["m29", "MONITOR", "ZP choice"] and len(own) == 10


def test_a_measure_on_the_point_of_a_named_one_has_no_name_of_its_own():
    """b lies on a (as many tokens); c costs more."""
    points = pd.DataFrame(
        {"concordance": [0.99, 0.989, 0.98], "paper": "beyond", "tokens a fact": [17.0, 17.0, 20.0]}, index=list("abc")
    )
    assert figures.on_point(points, "a") == ["b"] and figures.on_point(points, "c") == []
    assert figures.labelled(points, ["a"]) == ["a", "c"]


def test_a_measure_without_pairs_is_not_called_as_good_as_the_best():
    rows = {
        "measure": ["A", "B", "C", "D"],
        "control": [False, False, False, True],
        "pairs": [9, 9, 0, 9],
        "paper": "x",
    }
    ranked = pd.DataFrame(
        rows | {"concordance": [0.9, 0.8, np.nan, 0.5], "p": [np.nan, 0.3, np.nan, np.nan], "low": 0.4, "high": 1}
    )
    ranked = ranked.assign(behind=[np.nan, -0.1, np.nan, np.nan], behind_low=-0.2, behind_high=0.1, tau=0.3)
    ranked["tokens a fact"] = 7
    artifact = tables.ground_truth(ranked, pd.Series({"concordance": 0.85}), ["group", "fact"], 5)
    assert artifact.finding.startswith(
        "A puts 90.0% of the 9 pairs in the right order (95 % CI [0.400, 1.000]). Not significantly different (Holm): B."
    )
    assert artifact.finding.endswith("lie below the best measure. Not compared, for no pair has both values: C.")
    assert "control (D) reaches 50.0%" in artifact.finding and "reach 85.0%; what" in artifact.finding
    second = {
        "measure": "B",
        "paper": "x",
        "tokens": 7,
        "concordance": "0.80 [0.40, 1.00]",
        "behind": "-0.10 [-0.20, 0.10]",
    }
    assert (
        artifact.shown.iloc[1].to_dict() == second | {"p": 0.3, "tau": 0.3} and artifact.shown["paper"][3] == "control"
    )
    ties = ranked.assign(concordance=[0.9, 0.9, np.nan, 0.5])
    artifact = tables.ground_truth(ties, pd.Series({"concordance": 0.8}), ["group", "fact"], 5)
    assert artifact.finding.startswith("A, B put 90.0% of the 9 pairs") and "(Holm): none." in artifact.finding
    assert "difference to the first row (A, one of 2 that tie)" in artifact.caption


def test_when_all_pairs_are_ordered_alike_the_interval_is_wilsons():
    design = pd.DataFrame([("m", "m", f"f{i}", "P", 64 * (i < 3)) for i in range(6)], columns=concordance.DESIGN)
    values = design[["model", "fact"]].assign(measure="x", value=design["exposures"].astype(float))
    found = concordance.concordance(values, design, concordance.pairs_of_facts(design)).iloc[0]
    low, high = stats.wilson(6, 6)  # six facts take part
    assert found["concordance"] == 1 and (found["low"], found["high"]) == pytest.approx((low, high))


def test_two_measures_of_each_paper_stand_in_a_picture():
    names = ["PMI", "ZP choice", "Margin", "Familiarity", "ZP probability", "MONITOR"]
    assert figures.few_per_paper(names) == ["PMI", "ZP choice", "Margin", "ZP probability", "MONITOR"]


def test_a_longer_training_is_reported():
    half = robustness.training_tokens(("atlas-neox-0.15m-at50", "atlas-neox-0.15m"))
    assert "+100%, so the mixture is confounded" in half
    assert "confounded" not in robustness.training_tokens(("atlas-neox-0.6m", "atlas-neox-0.6m"))


@pytest.fixture(scope="module")
def trial():
    """Four sisters by a Latin square, 42 facts of two relations, and five measures of known quality: (values, design)."""
    levels = [0, 2, 32, 128]
    rows = [(f"s{s}", "g", f"f{i}", f"P{i % 2}", levels[(i // 2 + s) % 4]) for s in range(4) for i in range(42)]
    design, draw = pd.DataFrame(rows, columns=concordance.DESIGN), np.random.default_rng(0)
    noise = {"PMI": 0.3, "ZP probability": 1.0, "Base accuracy": 1.0, "Familiarity": 30.0, "Chance": 1e9}
    known = (design["exposures"] >= 32).to_numpy()
    parts = []
    for name, spread in noise.items():
        value = known + draw.normal(0, spread, len(design))
        value = value > 0.5 if name == "Base accuracy" else value
        parts.append(design[["model", "fact"]].assign(measure=name, value=np.asarray(value, dtype=float)))
    return pd.concat(parts, ignore_index=True), design


def test_the_trial_with_sisters(trial):
    """The whole chain on hand-made sisters: the headline compares each fact with itself, PMI leads, controls stand at the end."""
    values, design = trial
    pairs, within = measures.headline_pairs(design)
    assert within == ["group", "fact"] and len(pairs) == 42 * 2
    tokens = pd.Series({"PMI": 40, "ZP probability": 250, "Base accuracy": 10, "Familiarity": 5, "Chance": 0})
    ranked = tables.rank_measures(values, tokens, design, pairs)
    assert ranked["measure"].tolist()[0] == "PMI" and ranked["control"].tolist() == [False] * 3 + [True] * 2
    assert {"across sisters", "within relations", "dose", "between models", "tau", "added"} <= set(ranked)
    assert np.allclose(ranked["across sisters"], ranked["concordance"]) and ranked["p"][1:3].max() < 0.05
    artifact = tables.ground_truth(ranked, tables.oracle(values, design, pairs), within, 5)
    assert "the same fact in two sister models" in artifact.caption and artifact.finding.startswith("PMI puts ")
    figure = figures.quality_against_cost(ranked, tables.oracle(values, design, pairs), within)
    assert figure.figure.axes[0].get_ylabel() == tables.RIGHT and "Base accuracy (10 tokens" in figure.finding
    without = ranked.iloc[[1]].assign(measure="MONITOR", paper="monitor", pairs=0)  # needs a partner that no sister has
    seen = figures.detection(values, design, within, pd.concat([ranked, without], ignore_index=True))
    assert "MONITOR" not in seen.finding
    assert seen.caption.endswith("instruction-tuned partner in every model compared: MONITOR.")
    pmi = seen.frame[seen.frame["measure"] == "PMI"].set_index("exposures")["concordance"]
    assert pmi[2] < 0.8 < pmi[32] and "PMI from 32 on" in seen.finding and "Chance at no" in seen.finding
    plt.close("all")


def test_measures_without_pairs_are_left_out_of_both_checks(trial):
    """MONITOR has values in one sister only, so no fact is compared with itself."""
    values, design = trial
    lone = values[(values["measure"] == "PMI") & (values["model"] == "s0")].assign(measure="MONITOR")
    values = pd.concat([values, lone], ignore_index=True)
    pairs, within = measures.headline_pairs(design)
    for artifact in (tables.placebo(values, design, pairs, within), tables.coarse_twins(values, design, pairs)):
        assert "PMI" in set(artifact.frame["measure"]) and "MONITOR" not in set(artifact.frame["measure"])
        assert artifact.frame["measure"].notna().all() and "MONITOR" not in artifact.finding


def test_pictures_are_as_wide_as_printed_columns_with_legible_text(trial):
    values, design = trial
    pairs, within = measures.headline_pairs(design)
    tokens = pd.Series({"PMI": 40, "ZP probability": 250, "Base accuracy": 10, "Familiarity": 5, "Chance": 0})
    ranked = tables.rank_measures(values, tokens, design, pairs)
    drawn = {
        report.TWO_COLUMNS: [figures.quality_against_cost(ranked, tables.oracle(values, design, pairs), within)],
        report.COLUMN: [
            figures.detection(values, design, within, ranked),
            beyond.audit_verdicts(beyond.audit.table(["zplke"])),
        ],
    }
    for width, artifacts in drawn.items():
        for artifact in artifacts:
            texts = [text for text in artifact.figure.findobj(Text) if text.get_text()]
            assert artifact.figure.get_figwidth() == width and min(text.get_fontsize() for text in texts) >= 6
    plt.close("all")


def test_the_measure_that_a_finding_names_is_drawn():
    """Four measures order the cells nearly alike, MONITOR nearly in reverse."""
    names = ["PMI", "Margin", "Base accuracy", "Accuracy over wordings", "MONITOR"]
    cells = pd.MultiIndex.from_product([["a", "b", "c"], range(12)], names=["model", "relation"])
    by_cell = pd.DataFrame({name: np.arange(36.0) for name in names}, index=cells).assign(MONITOR=-np.arange(36.0))
    for place in range(5):  # so that replicates differ
        by_cell.iloc[[place, 20 + place], place] = [20.5, 4.5] if place < 4 else [-20.5, -4.5]
    artifact = figures.agreement_models(by_cell.groupby("model").mean(), by_cell)
    assert (
        "Of 10 pairs of measures, 6 order" in artifact.finding and "4 fewer, MONITOR in 4 of them" in artifact.finding
    )
    assert "(95 % intervals over relations; by chance 0.2 each)" in artifact.finding
    assert "of each paper, and of the measures in common use, the two measures" in artifact.caption
    assert artifact.caption.endswith("3 models give only 3 pairs; at least 5 models are needed.")
    assert tables.MONITOR_SIGN in artifact.caption
    more = figures.agreement_models(by_cell.groupby("relation").mean()[:6].rename(index=str), by_cell)
    assert len(more.figure.axes) > len(artifact.figure.axes) and "not compared" not in more.caption
    assert "MONITOR" in [label.get_text() for label in artifact.figure.axes[0].get_yticklabels()]
    plt.close("all")


def test_the_checks_find_nothing_in_the_trial(trial):
    values, design = trial
    pairs, within = measures.headline_pairs(design)
    found = tables.placebo(values, design, pairs, within)
    assert "excludes .5 for 0 of 5 measures" in found.finding and found.frame["placebo"].notna().all()
    assert (found.frame["pairs"] == 84).all() and "up to n = 84 pairs;" in found.caption
    assert f"(up to n = {found.frame['placebo pairs'].max()} pairs)" in found.caption
    assert found.caption.endswith("Controls (they do not test the fact): Familiarity, Chance.")
    assert "(1,000 permutations, so p is at least 0.001)" in found.caption and "No interval" not in found.caption
    width = (found.frame["placebo_high"] - found.frame["placebo_low"]).median()
    assert f"is {width:.2f} wide, so this check sees only a bias of about {width / 2:.2f} or more" in found.finding
    twins = tables.coarse_twins(values, design, pairs).frame
    assert not (twins["low"] > 0).any() and set(twins["twin"]) >= {"cut at the median", "ties broken at random"}


def test_both_standards_are_given_for_both_statistics():
    """A gains significantly by concordance; B by tau-b; C, with ties broken, loses."""
    rows = [
        ("A", "cut", 0.1, 0.01, 0.2, -0.1),
        ("B", "rounded", -0.1, -0.2, 0.1, 0.01),
        ("C", "ties broken", 0, -1, -1, -2),
    ]
    table = pd.DataFrame(rows, columns=["measure", "twin", "change", "low", "change of tau-b", "tau-b low"])
    assert tables.twins_finding(table) == (
        "Of 2 twins made coarser, concordance rises for 1, significantly for 1; tau-b rises for 2, significantly for 1 (by "
        "chance 0.1). Of 1 twins with ties broken, concordance rises for 0, significantly for 0; tau-b rises for 0, "
        "significantly for 0 (by chance 0.0). Significantly higher concordance: A."
    )


def test_a_constant_measure_has_no_placebo_interval(trial):
    values, design = trial
    constant = values[values["measure"] == "PMI"].assign(measure="ZP response", value=0.0)
    pairs, within = measures.headline_pairs(design)
    caption = tables.placebo(pd.concat([values, constant], ignore_index=True), design, pairs, within).caption
    assert " No interval, for all its placebo pairs tie: ZP response. Controls (they" in caption


def test_the_agreement_over_facts_says_the_sign_of_monitor():
    rows = [("m", f"f{i}", name, float(i * sign)) for name, sign in (("MONITOR", -1), ("PMI", 1)) for i in range(5)]
    values = pd.DataFrame(rows, columns=["model", "fact", "measure", "value"])
    of = lambda own: figures.agreement(measures.agreement_matrix(own), own).caption
    assert of(values).endswith("the share among the pairs that both order." + tables.MONITOR_SIGN)
    assert "MONITOR" not in of(values.replace("MONITOR", "Margin"))
    plt.close("all")
