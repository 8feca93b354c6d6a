"""GraphEval's figures from hand-made numbers: what they draw and what they find."""

import json

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from probelib import grapheval, report
from probelib.grapheval import figures


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


def test_figure_5_names_the_best_and_the_worst_type():
    figure5 = grapheval.figure5(typed({"correct": {"b": 0.4, "a": 0.2}}))
    assert "heads of type **b** (0.40" in figure5.finding and "**a** (0.20)" in figure5.finding
    assert "order" not in figure5.frame and figure5.finding.endswith("0.20 (m).")
    plt.close("all")


def linked(r: float) -> pd.DataFrame:
    pairs = [("I", "T"), ("C", "T"), ("C", "I"), ("D", "T"), ("D", "I"), ("D", "C")]
    rows = [(x, y, r, r - 0.1, r + 0.1, 50, r, r, "m") for x, y in pairs]
    return pd.DataFrame(rows, columns=["x", "y", "pearson", "low", "high", "n", "spearman", "pearson_log", "model"])


def test_figure_8_names_the_strongest_correlation_of_correct():
    assert "Correct is with D: r = 0.30 [0.20, 0.40]" in grapheval.figure8(linked(0.3)).finding
    assert grapheval.figure8(linked(np.nan)).finding.startswith("Correct is constant for every model")
    plt.close("all")


def test_figure_4_counts_the_models_that_a_judge_helps():
    ways = {
        "judge, instruction": 0.7,
        "logits, instruction": 0.9,
        "judge, soft prompt": 0.65,
        "logits, soft prompt": 0.1,
    }
    ways |= {"majority": 0.5, "majority, truth known": 0.6}
    scores = [f"{score}{end}" for score in ("precision", "recall", "f1") for end in ("", " low", " high")]
    rows = [{"model": "m", "by": by, "n": 40} | dict.fromkeys(scores, r) for by, r in ways.items()]
    finding = grapheval.figure4(pd.DataFrame(rows), seeds=3).finding
    assert "than the logits for 0 of 1 models, than the majority for 1 of 1" in finding and "-0.050" in finding
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
