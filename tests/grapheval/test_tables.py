"""GraphEval's tables from hand-made numbers: what they hold and what they find."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from probelib import grapheval
from probelib.grapheval import judge_figures, tables
from probelib.grapheval.speed import ALONE, SHORT, TOGETHER

STATISTICS = {
    "graph": "g",
    "triples": 2000,
    "average degree": 2.5,
    "coverage": 0.9,
    "median degree": 2.0,
    "highest degree": 40,
}


def test_table_1_names_what_is_left_out():
    left_out = pd.DataFrame([("entity without a label", "r", 200)], columns=["reason", "relation", "triples"])
    table = grapheval.table1(STATISTICS, left_out)
    assert list(table.frame) == ["graph", "triples", "average degree", "coverage"]
    assert "Left out: 200 triples (entity without a label)." in table.finding
    assert grapheval.table1(STATISTICS, left_out[:0]).finding.endswith("Every triple is evaluated.")


def rows(model: str, judged: float, released: float, own: float, powered: float) -> pd.DataFrame:
    """A model's four rows of table 2; intervals reach 0.1 to both sides."""
    ways = ["judge", "judge, released Eq. 2", "own answers", "judge + own answers"]
    table = pd.DataFrame(
        {"model": model, "right": 5, "wrong": 3, "don't know": 2, "unparsed": 0, "scored by": ways, "n": 9}
    )
    for metric in grapheval.METRICS:
        table[metric] = [judged, released, own, powered]
        table[f"{metric} low"], table[f"{metric} high"] = table[metric] - 0.1, table[metric] + 0.1
    return table


def trade(*changes: float) -> pd.DataFrame:
    """``measures.change_with_size`` from a to b by own answers, with intervals of 0.05 to both sides; by the judge twice that."""
    table = pd.DataFrame({"metric": grapheval.METRICS, "change": changes, "smallest": "a", "largest": "b", "n": 40})
    table = table.assign(low=table["change"] - 0.05, high=table["change"] + 0.05)
    judged = table.assign(change=2 * table["change"])
    return pd.concat([judged.assign(**{"scored by": "judge"}), table.assign(**{"scored by": "own answers"})])


def test_the_trade_off_by_size_is_found_reversed_or_not_shown():
    table = rows("a", 0.6, 0.2, 0.55, 0.5).pipe(lambda t: pd.concat([t, t.assign(model="b")]))
    found = tables.finding_size(table, trade(0.1, -0.1, -0.1))
    assert "to the same 40 triples, Truthful rises and Informative falls, as in the paper" in found
    assert "Correct -0.100 [-0.150, -0.050]" in found and "whole graph gives +0.200, -0.200, -0.200, without" in found
    assert "the reverse of the paper" in tables.finding_size(table, trade(-0.1, 0.1, 0.0))
    assert "is not shown (Truthful" in tables.finding_size(table, trade(0.1, 0.0, 0.0))
    assert tables.finding_size(table, trade(0, 0, 0)[:0]) == ""


def test_recalling_first_is_said_to_help_only_beyond_its_interval():
    frame = pd.DataFrame({"model": "m", "instruction": ["at once", "recalled"], "n": 9, "right": [0.5, 0.9]})
    frame = frame.assign(
        correct=[0.1, 0.4],
        answered=0.5,
        change=[np.nan, 0.3],
        yes=0.5,
        mirror=0.05,
        triples=4,
        **{f"{name} {end}": value for name in ("answered", "yes") for end, value in (("low", 0.3), ("high", 0.7))},
        **{"change low": [np.nan, 0.2], "change high": [np.nan, 0.4], "right low": 0.4, "right high": 0.95},
        **{"correct low": [0.05, 0.2], "correct high": 0.5, "mirror low": 0.0, "mirror high": 0.1},
    )
    made = grapheval.instruction_table(frame)
    assert (
        "9 statements, 4 triples" in made.caption
        and "'Recall the fact, then judge: {statement}\\nAnswer:'" in made.caption
    )
    assert "models respond with the object" in made.caption
    assert "models respond" not in grapheval.instruction_table(frame[:1]).caption
    finding, last = made.finding, made.shown.iloc[1]
    assert (
        last["right"] == "0.90 [0.40, 0.95]"
        and last["change"] == "0.300 [0.200, 0.400]"
        and last["answered"] == "0.50 [0.30, 0.70]"
        and made.shown["change"][0] == "–"
    )
    assert (
        "for 1 of 1 models and lowers it for 0, so the verdict at once understates" in finding
        and "0.100 to 0.400" in finding
    )
    assert "among those given rises for 1 of 1 models (intervals disjoint for 0)." in finding
    assert finding.endswith('intervals disjoint, for 0 ("at once") and 1 ("recalled") of 1 models.')
    apart = frame.assign(**{"right low": [0.4, 0.8], "right high": [0.6, 0.95]})
    assert "(intervals disjoint for 1)." in tables.finding_instruction(apart)
    assert "does not help Correct here" in tables.finding_instruction(frame.assign(**{"change low": -0.1}))
    assert tables.finding_instruction(frame[:1]) == "Of the answers given, 50% to 50% are right."


def test_the_largest_change_by_recalling_may_be_a_fall():
    frame = pd.DataFrame(
        {"model": list("abab"), "instruction": ["at once"] * 2 + ["recalled"] * 2, "n": 9, "right": 0.5}
    )
    change = np.array([np.nan, np.nan, -0.05, 0.02])
    frame = frame.assign(correct=[0.1, 0.1, 0.05, 0.12], answered=[0.5, 0.5, 0.2, 0.2], change=change)
    frame = frame.assign(**{"right low": 0.4, "right high": 0.6, "correct low": 0.0, "mirror high": 0.1})
    said = tables.finding_instruction(frame.assign(**{"change low": change - 0.01, "change high": change + 0.01}))
    assert "change is that of **a**: 0.100 to 0.050 (-0.050 [-0.060, -0.040])" in said
    assert "It answers 50% of the statements at once and 20% after recalling" in said


def test_table_2_names_the_best_model_with_the_errors_of_the_judge():
    """By judge and own answers a has 0.5 and b 0.8, 0.1 to both sides; by the judge alone a is the best."""
    both = pd.concat([rows("a", 0.6, 0.2, 0.55, 0.5), rows("b", 0.3, 0.7, 0.55, 0.8)], ignore_index=True)
    table = grapheval.table2(both, 1.0, pd.Series({"a": 5, "b": 9}), trade(0.1, -0.2, 0.0), "at once")
    assert "**b** is most often Correct: 0.800 [0.700, 0.900], above that of a." in table.finding
    assert "as 0.200 to 0.700 instead of 0.300 to 0.600" in table.finding
    assert "overlaps with every other" in tables.finding2(both.assign(**{"correct high": 1.0}))
    assert "10 labelled statements" in table.caption and (table.frame["coverage"] == 1).all()
    assert table.frame["parameters"].unique().tolist() == [5, 9] and table.finding.startswith(
        "From **a** to **b**, by own"
    )
    first = ["a", "", "judge", 9, *["0.600 [0.500, 0.700]"] * 3]
    assert table.shown.iloc[0].tolist() == first and table.shown.iloc[2, :3].tolist() == [
        "a",
        "5 / 3 / 2",
        "own answers",
    ]
    sentence = grapheval.judge_against_answers(table.frame)
    assert "1 (Truthful), 1 (Informative), 1 (Correct) of 2 models" in sentence and "0.200 from own answers" in sentence


def test_an_undefined_interval_has_no_width():
    table = rows("a", 0.6, 0.2, 0.55, np.nan)
    assert "undefined from judge and held-out answers" in grapheval.judge_against_answers(table)


def test_the_mirror_image_of_correct():
    """Three triples: one Correct, one mirrored (false, true), one true twice."""
    T, F = grapheval.Answer.TRUE, grapheval.Answer.FALSE
    answers = pd.DataFrame(
        {"triple": [0, 0, 1, 1, 2, 2], "negative": [0, 1] * 3, "answer": [T, F, F, T, T, T], "model": "a"}
    )
    sentence = grapheval.mirror_image(rows("a", 0.5, 0, 0, 0), answers)
    assert "a 0.500 and 0.333" in sentence and sentence.endswith("beyond the interval: a.")
    assert grapheval.mirror_image(rows("a", 0.4, 0, 0, 0), answers).endswith("beyond the interval: none.")


def test_table_3_of_one_model_finds_nothing():
    quality = dict.fromkeys(("precision", "recall", "f1", "macro_f1"), 0.5)
    quality |= {"recall low": 0.4, "recall high": 0.6, "n": 40}
    pairs = [("a", "a"), ("a", "b"), ("b", "a"), ("b", "b")]
    table = pd.DataFrame(
        [{"states of": s, "prompt": "", "answers of": t, "seed": i} | quality for s, t in pairs for i in (0, 1)]
    )
    table.loc[table["states of"] == "b", "recall"] = 0.7
    floor = pd.DataFrame({"model": ["a", "b"], "by": "majority, truth known", "recall": 0.5})
    artifact = grapheval.table3(table, floor)
    assert artifact.frame["states of"].tolist() == ["a", "a", "b", "b"]
    assert artifact.frame["recall"].tolist() == [0.5, 0.5, 0.7, 0.7]
    assert "mean of 2 judges, 40 held-out" in artifact.caption
    assert "changes by up to 0.200" in artifact.finding and "so not any model's states will do" in artifact.finding
    assert "In 2 of 2 pairs of different models the judge does not exceed the majority" in artifact.finding
    assert "will do, as in the paper" in judge_figures.finding3(artifact.frame.assign(recall=0.5), floor)
    assert grapheval.table3(table[:4].assign(**{"states of": "a"}), floor).finding == ""
    plt.close("all")


def test_table_6_names_one_length_once():
    frame = pd.DataFrame({"model": ["a", "b"], "tokens of the instruction": [14, 14]})
    assert "takes 14 tokens" in grapheval.table6(frame).finding
    assert "takes 9 to 14 tokens" in grapheval.table6(frame.assign(**{"tokens of the instruction": [14, 9]})).finding


def test_table_4_has_a_row_per_method_and_names_the_machine():
    methods = [ALONE, TOGETHER, "judge, substitute"]
    speeds = pd.DataFrame({"model": ["a"] * 3 + ["b"] * 3, "method": methods * 2, "facts/s": [1.0, 10, 20, 2, 5, 40]})
    speeds = speeds.assign(slowest=speeds["facts/s"] - 1, fastest=speeds["facts/s"] + 1, n=[24, 400, 800] * 2)
    made = grapheval.table4(speeds.assign(machine="Chip (2 threads)"), 100)
    assert list(made.shown) == ["method", "n", "a", "b"] and "on Chip (2 threads)" in made.caption
    short = speeds.assign(machine="Chip", method=speeds["method"].replace(ALONE, SHORT))
    short = grapheval.table4(pd.concat([short, speeds.assign(machine="Chip").iloc[[0, 3]]]), 100)
    assert "8 tokens" not in made.caption and "64, 8 tokens: batches of 64, with answers cut at 8" in short.caption
    assert made.shown.iloc[2].tolist() == ["judge, substitute", 800, "20 [19, 21]", "40 [39, 41]"]


def test_labels_are_paid_back_only_by_a_faster_judge():
    rates = {("a", ALONE): 1.0, ("a", TOGETHER): 10.0, ("a", "judge, substitute"): 20.0}
    rates |= {("b", ALONE): 1.0, ("b", TOGETHER): 10.0, ("b", "judge, substitute"): 5.0}
    speeds = pd.DataFrame([(*key, rate) for key, rate in rates.items()], columns=["model", "method", "facts/s"])
    finding = tables.finding4(speeds, n_labels=100)  # a: 10 s of labels, 0.05 s saved per statement
    assert "0.5 to 2.0 times" in finding and "paid back: a: 200." in finding
    assert "reads 5 to 20 statements per second" in finding
    assert tables.finding4(speeds[3:], 100).endswith("paid back: no model.")
