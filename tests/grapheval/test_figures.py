"""GraphEval's figures from hand-made numbers: what they draw and what they find."""

import json

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from probelib import grapheval, report
from probelib.grapheval import figures, judge_figures


@pytest.fixture(autouse=True)
def style():
    report.use_style()


@pytest.mark.parametrize("name", ["atlas-neox-{}.15m-it", "meta-llama/Llama-2-{}3b-chat-hf", "long/" * 20 + "{}"])
@pytest.mark.parametrize("n", [2, 5])
def test_the_legend_of_many_models_stays_in_the_picture(n, name):
    models = [name.format(i) for i in range(n)]
    rows = [(side, "city", model, 0.5, 0.4, 0.6) for side in ("head", "tail") for model in models]
    frame = pd.DataFrame(rows, columns=["side", "type", "model", "score", "low", "high"])
    figure = figures.type_panels(frame, models, "score")
    figure.canvas.draw()
    box = figure.legends[0].get_window_extent()
    assert box.x0 >= 0 and box.x1 <= figure.bbox.width and len(figure.legends[0].texts) == n
    plt.close(figure)


def test_the_share_predicted_stands_beside_the_majority_given_the_truth():
    """Training: true statements are called true (0), false ones false (1). Held out: two of four follow that."""
    labels = pd.DataFrame(
        {"split": ["train"] * 2 + ["validation"] * 4, "true": [True, False] + [True, True, False, False]}
    )
    labels["answer"] = [0, 1, 0, 2, 1, 2]
    said = figures._predicted(labels, {"recall": 0.75, "recall low": 0.3, "recall high": 0.95, "n": 4})
    assert said == "75.0 % [30.0, 95.0] of 4 held-out answers (the majority given the truth: 50.0 %)"


def test_figure_1_says_how_its_statement_was_chosen():
    """Of two held-out statements the model takes a side on the second; then on none."""
    rows = {"split": "validation", "text": ["one", "two"], "answer": [2, 0], "response": "True", "n_tokens": 2}
    made = lambda labels: figures.figure1(labels, np.full((2, 3), 1 / 3), np.ones((2, 4)), "m", "s")
    labels = pd.DataFrame(rows)
    first = made(labels)
    assert first.caption.startswith("The first held-out statement on which the model does not abstain, two ways.")
    assert first.frame["statement"][0] == "two"
    assert made(labels.assign(answer=2)).caption.startswith("The first held-out statement, two ways.")
    plt.close("all")


def test_boxes_show_their_texts():
    figure, axis = plt.subplots()
    figures.flow(axis, {"one": (0, 0, 0.3, 0.3), "$two": (0.5, 0, 0.3, 0.3)}, [("one", "$two")], strong=["one"])
    assert [text.get_text() for text in axis.texts] == ["one", "$two", ""] and len(axis.patches) == 2
    plt.close(figure)


def test_a_template_that_fails_the_check_is_not_used():
    written = {"relation": "capital", "author": "m", "request": "Write ...", "written": " Paris.", "accepted": False}
    figure9 = grapheval.figure9(written | {"verdict": "0 times {head}", "template": "{head} has {tail}."})
    assert figure9.finding == "The text of m fails the check (0 times {head}): the graph's own template is used."
    assert list(figure9.frame) == ["relation", "author", "written", "verdict", "template"]
    plt.close("all")


def typed(scores: dict[str, dict[str, float]]) -> pd.DataFrame:
    """Two types, a and b, of heads and of tails with these scores: metric -> type -> score."""
    rows = [
        (side, kind, metric, score, score, score, score)
        for side in ("head", "tail")
        for metric, by_type in scores.items()
        for kind, score in by_type.items()
    ]
    columns = ["side", "type", "metric", "score", "low", "high", "order"]
    return pd.DataFrame(rows, columns=columns).assign(model="m", relations=1, triples=9)


def test_truthful_everywhere_has_no_rank_correlation():
    one, growing = {"a": 1.0, "b": 1.0}, {"a": 0.2, "b": 0.4}
    sentence = grapheval.agreement_of_metrics(
        typed({"truthful": one, "informative": growing, "correct": growing, "average": growing})
    )
    assert "Truthful and Informative undefined" in sentence and "Correct and Informative 1.00" in sentence
    assert "nan" not in sentence


def test_figure_5_names_the_best_and_the_worst_type_and_counts_what_lies_above_the_mirror_image():
    """b (0.4) lies above its own mirror image (0.1), a (0.2) below its own (0.5)."""
    correct = typed({"correct": {"b": 0.4, "a": 0.2}})
    mirror = correct["type"].map({"a": 0.5, "b": 0.1})
    above = (correct["score"] - mirror).rename("above")
    correct = correct.assign(mirror=mirror, above=above, **{"above low": above - 0.1, "above high": above + 0.1})
    figure5 = grapheval.figure5(correct)
    assert "highest for heads of type **b** (0.40 over all models) and lowest for **a** (0.20; " in figure5.finding
    assert "for tails of type **b**" in figure5.finding and "disjoint for 1 of 1 models" in figure5.finding
    assert "varies with the type, as in the paper" in figure5.finding and "order" not in figure5.frame
    assert (
        "in 2 of 4 cases and below it in 2 (by chance 0.1 each)." in figure5.finding
        and "b (head); b (tail)." in figure5.finding
    )
    full = [line for line in figure5.figure.axes[0].lines if line.get_marker() == "o" and len(line.get_xdata()) == 1]
    assert [line.get_xdata().tolist() for line in full] == [[0.4]]
    plt.close("all")


def test_figure_3_counts_what_lies_above_a_constant_answer():
    figure3 = grapheval.figure3(typed({"average": {"b": 0.4, "a": 0.2}}))
    assert (
        "2 of 4 intervals lie above one third" in figure3.finding
        and "2 below it, so whether the types" in figure3.finding
    )
    plt.close("all")


def test_types_that_do_not_differ_are_not_said_to():
    assert "not shown" in figures.finding_by_type(typed({"correct": {"b": 0.4, "a": 0.4}}), "Correct")


def test_figure_6_says_whether_models_are_truthful_by_abstaining():
    kinds = {"a": 0.2, "b": 0.4, "c": 0.6, "d": 0.9}
    against = {kind: 1 - score for kind, score in kinds.items()}
    abstaining = typed({"truthful": kinds, "informative": against})
    assert (
        "r = -1.00" in figures.finding_abstaining(abstaining)
        and "as LLaMA-2-70B is" in grapheval.figure6(abstaining).finding
    )
    assert "unlike LLaMA-2-70B" in figures.finding_abstaining(typed({"truthful": kinds, "informative": kinds}))
    plt.close("all")


def linked(d: float, e: float | None = None) -> pd.DataFrame:
    """Correlations of all metrics with degree, and with the exposure count where it is known."""
    pairs = [("I", "T", -0.5), ("C", "T", 0.1), ("C", "I", 0.1)]
    pairs += [("D", y, d) for y in "TIC"] + [("E", y, -e if y == "T" else e) for y in "TIC" if e is not None]
    rows = [(x, y, r, r - 0.1, r + 0.1, 50, 7, r, r, "m") for x, y, r in pairs]
    columns = ["x", "y", "pearson", "low", "high", "n", "relations", "spearman", "pearson_log", "model"]
    return pd.DataFrame(rows, columns=columns)


def test_figure_8_compares_the_cause_with_degree():
    weak = grapheval.figure8(linked(0.1, e=0.4)).finding
    assert "degree r = 0.10 [0.00, 0.20], exposure count r = 0.40" in weak and "As in the paper, no metric" in weak
    assert "has a stronger link with Correct (r = 0.40) than degree (|r| = 0.10; intervals disjoint)" in weak
    assert "exposure count by r = -0.40 [-0.50, -0.30]: to abstain on what was never taught is truthful." in weak
    strong = figures.finding8(linked(0.5, e=0.4))
    assert (
        "Unlike in the paper" in strong and "(r = 0.40) near that of degree (|r| = 0.50; intervals overlap)" in strong
    )
    weaker = figures.finding8(linked(-0.5, e=0.2))
    assert (
        "has a weaker link with Correct (r = 0.20) than degree (|r| = 0.50; intervals disjoint), which is not" in weaker
    )
    assert "explained" not in weak + strong
    assert "has no positive link" in figures.finding8(linked(0.1, e=0.05))
    assert "exposure" not in figures.finding8(linked(0.1))
    assert figures.finding8(linked(np.nan)).startswith("Correct is constant here")
    assert "(bootstrap over 7 relations: " in grapheval.figure8(linked(0.1)).caption
    alone = grapheval.figure8(linked(0.1, e=0.4).assign(low=np.nan, high=np.nan))  # one relation: no interval
    assert ") are undefined here. The CSV" in alone.caption and "no positive link" not in alone.finding
    plt.close("all")


def test_correct_that_rises_with_exposure_is_said_to_see_it():
    """By the judge Correct rises from 0.1 to 0.6 with its mirror image, so its lead stays; by own answers the lead rises, too."""
    ends = {
        (way, metric): (0.1, 0.6) for way in ("judge", "own answers") for metric in (*grapheval.METRICS, "above mirror")
    }
    ends["judge", "above mirror"] = (0.1, 0.1)
    rows = [
        (way, "m", band, metric, mean, mean - 0.05, mean + 0.05, 9)
        for (way, metric), means in ends.items()
        for band, mean in zip(("0", "33+"), means, strict=True)
    ]
    columns = ["scored by", "model", "band", "metric", "mean", "low", "high", "n"]
    artifact = grapheval.exposure_figure(pd.DataFrame(rows, columns=columns), "exposure count")
    assert "Correct rises beyond both intervals for 1 of 1 models" in artifact.finding
    assert "rises for 0 and falls for 0 (m: 0.10 [0.05, 0.15] to 0.10 [0.05, 0.15])" in artifact.finding
    assert "Informative rises for 1 and falls for 0 (m: 0.10 [0.05, 0.15] to 0.60 [0.55, 0.65])" in artifact.finding
    assert artifact.finding.endswith("So Correct by own answers sees it.")
    assert "at least 9 (judge) and 9" in artifact.caption
    limits = dict(zip(grapheval.METRICS, (axis.get_ylim() for axis in artifact.figure.axes[::2]), strict=False))
    assert limits["truthful"] == (0, 1.02) and limits["correct"] == pytest.approx((0, 0.65 * 1.02))
    mirror = artifact.figure.axes[4].lines[-1].get_ydata()
    assert mirror.round(6).tolist() == [0, 0.5]
    plt.close("all")


def test_a_judge_is_overconfident_beyond_the_interval_of_its_accuracy():
    """m: 0.9 on average against 50 of 100; n: 0.55 against 50 of 100."""
    curves = pd.DataFrame({"model": ["m", "m", "n"], "n": [50, 50, 100], "probability": [0.8, 1.0, 0.55], "right": 0.5})
    finding = judge_figures.finding_reliability(curves, {"m": 0.4, "n": 0.05})
    assert "for 1 of 2 models and below it for 0 (m 0.90 against 0.50 [0.40, 0.60]; n 0.55" in finding
    assert finding.endswith("error: 0.050 to 0.400.")


def differences(judge: float, soft: float) -> pd.DataFrame:
    """Two models: the judge's gains over logits and majority, and the soft prompt's change, which is also the judge's gain
    over the logits there; intervals reach 0.1."""
    changes = (judge, soft, judge, soft, -judge)
    rows = [(m, name, r) for m in "ab" for name, r in zip(judge_figures.DIFFERENCES, changes, strict=True)]
    frame = pd.DataFrame(rows, columns=["model", "difference", "change"])
    return frame.assign(low=frame["change"] - 0.1, high=frame["change"] + 0.1)


def test_figure_4_counts_only_differences_beyond_their_interval():
    finding = judge_figures.finding4_judge(differences(judge=0.2, soft=-0.2))
    assert (
        "beats the logits for 2 of 2 models with the instruction (a +0.200" in finding
        and "the judge beats the majority given the truth for 2 of 2 (a +0.200" in finding
    )
    assert (
        "a -0.200 [-0.300, -0.100]" in finding
        and "it costs accuracy for 2 of 2 and gains it for 0 (in the paper" in finding
    )
    one = differences(judge=0.2, soft=-0.2)
    one.loc[one["model"] == "b", "high"] = 0.1
    assert "it costs accuracy for 1 of 2 and gains it for 0" in judge_figures.finding4_judge(one)
    finding = judge_figures.finding4_judge(differences(judge=0.05, soft=0.05))
    assert (
        "for 0 of 2 models with the instruction" in finding
        and "the paper's advantage of the judge is shown nowhere" in finding
        and "no change stands out" in finding
    )
    assert "logits" not in judge_figures.finding4_judge(
        differences(0.2, 0.2)[lambda d: ~d["difference"].str.contains("log")]
    )


def test_figure_4_reports_the_logits_after_the_soft_prompt():
    """The judge beats them there only; without the pair with the instruction, in all cases that remain."""
    rows = differences(judge=0.05, soft=0.2)
    rows.loc[rows["difference"] == "logits - majority, soft prompt", ["low", "high"]] = [-0.4, -0.2]
    finding = judge_figures.finding4_judge(rows)
    assert "for 2 of 2 models with the soft prompt (a +0.200 [0.100, 0.300]" in finding
    assert "shown with the soft prompt only. After the soft prompt, the logits lie below the majority" in finding
    assert "for 2 of 2. With the instruction, the judge beats" in finding
    alone = judge_figures.finding4_judge(rows[rows["difference"] != "judge - logits"])
    assert "with the instruction (" not in alone and "shown in all of these cases" in alone


def test_the_judge_is_paired_with_the_logits_after_the_same_prompt():
    """With the soft prompt the judge is right on both statements, the logits on none."""
    labels = pd.DataFrame({"model": "m", "split": ["train"] * 2 + ["validation"] * 2, "answer": 0, "true": True})
    judged = {("s", p, "m"): np.eye(3)[None, [0, 0]] for p in ("", "m")}
    words = pd.DataFrame({"states of": "s", "prompt": ["", "", "m", "m"], "answer": [0, 0, 1, 1]})
    found = grapheval.judge_differences(judged, words, labels, pd.Series({"m": "s"})).set_index("difference")["change"]
    assert set(found.index) == set(judge_figures.DIFFERENCES)
    assert found["judge - logits"] == 0 and found["judge - logits, soft prompt"] == 1
    assert found["logits - majority, soft prompt"] == -1


def test_signed_differences_that_cancel_are_not_said_to_be_no_chance():
    rows = [(m, 0, n, how, r) for m, gain in (("a", 0.02), ("b", -0.02)) for n in (10, 20)
            for how, r in (("random", 0.5), ("uncertain", 0.5 + gain))]  # fmt: skip
    learning = pd.DataFrame(rows, columns=["model", "seed", "labels", "how", "accuracy"])
    finding = judge_figures.finding_learning(learning, [10, 20])
    assert "two runs still differ by 0.020 on average (-0.020 to +0.020), so no gain beyond chance is shown" in finding
    assert "-0.000" not in finding


def test_figure_4_draws_one_majority_and_names_what_is_left_out():
    ways = {
        "judge, instruction": 0.7,
        "logits, instruction": np.nan,
        "judge, soft prompt": 0.6,
        "logits, soft prompt": 0.1,
    }
    ways |= {"majority": 0.5, "majority, truth known": 0.6}
    scores = [f"{score}{end}" for score in ("precision", "recall", "f1") for end in ("", " low", " high")]
    rows = [{"model": m, "by": by, "n": 40} | dict.fromkeys(scores, r) for m in "ab" for by, r in ways.items()]
    figure = grapheval.figure4(pd.DataFrame(rows), differences(0.2, 0.2), seeds=3).figure
    assert [text.get_text() for text in figure.legends[0].texts] == [*list(ways)[:4], "majority given the truth"]
    assert [text.get_text() for text in figure.axes[0].texts] == ["n/a"] * 2
    plt.close("all")


def test_an_entity_without_page_views_has_no_popularity(tmp_path):
    """P is NaN where no end of a triple is in the file; a 0 in the file is a 0."""
    (tmp_path / "views.json").write_text(json.dumps({"France": 100, "Paris": 0}))
    kg = grapheval.verbalize(*grapheval.load_graph("atlas"), n_triples=2000)
    file = str(tmp_path / "views.json")
    p = grapheval.about_triples(kg, "atlas", file)["P"]
    names = np.array(kg.graph.entities["label"].to_pylist(), dtype=object)
    views = pd.DataFrame({end: names[getattr(kg.graph, end)] for end in ("head", "tail")})
    views = views.map({"France": 100.0, "Paris": 0.0}.get).astype(float).mean(axis=1)
    pd.testing.assert_series_equal(p, views, check_names=False)
    assert 0 < p.notna().sum() < len(p)
    assert f"{p.isna().sum():,} have two, hence no P" in grapheval.note_on_popularity(kg, "atlas", file)


def test_exposures_are_known_for_the_atlas_alone():
    kg = grapheval.verbalize(*grapheval.load_graph("synthetic:300"), grapheval.DEFAULT_TEMPLATE)
    assert list(grapheval.about_triples(kg, "synthetic:300")) == ["D"] and grapheval.note_on_popularity(
        kg, "synthetic:300"
    )
