"""Findings of ZP-LKE's figures: hand-made frames in, sentences out."""

import matplotlib.pyplot as plt
import pandas as pd

from probelib import report
from probelib.zplke import figures, measures


def test_families_are_compared_only_where_there_are_two():
    rows = {"a-1m": [0.1, 0.5, 0.9], "a-2m": [0.2, 0.5, 0.8], "b-1m": [0.1, 0.4, 0.9]}
    matrix = pd.DataFrame(rows, index=["P1", "P2", "P3"]).T
    family = lambda name: name[0]
    across = measures.between_families(matrix, family)
    assert across["n"] == 2 and across["low"] <= across["r"] <= across["high"]
    families = measures.family_correlations(measures.correlations(matrix), {m: family(m) for m in matrix.index})
    assert "all 2 pairs of models" in figures.finding8(families, across)
    alone = measures.between_families(matrix.head(2), family)
    assert figures.finding8(families, alone) == "There is one family only: nothing to compare."


def test_models_are_ordered_by_the_best_of_their_family():
    long = [("a-1m", 0.1), ("b-1m", 0.3), ("a-2m", 0.5)]
    rows = pd.DataFrame([(m, "P1", v) for m, v in long], columns=["model", "relation", "accuracy"])
    assert list(measures.accuracy_matrix(rows, ["a-1m", "b-1m", "a-2m"], ["P1"], lambda m: m[0]).index) == [
        "a-2m",
        "a-1m",
        "b-1m",
    ]


def test_panels_stand_above_the_names_of_their_models():
    names = [f"relation {i}" for i in range(7)]
    frame = pd.DataFrame(
        [(r, m, "zp", 0.5) for r in names for m in ("a", "b")], columns=["relation", "model", "method", "accuracy"]
    ).assign(low=0.4, high=0.6)
    report.use_style()
    figure = figures.bar_panels(frame, "relation", ["a", "b"], ["zp"])
    titles = [[axis.get_title(loc="left") for axis in figure.axes[row * 3 : row * 3 + 3]] for row in range(3)]
    assert titles == [names[:3], names[3:6], [names[6], "", ""]]
    labelled = [axis.xaxis.get_tick_params()["labelbottom"] for axis in figure.axes[:7]]
    assert labelled == [False] * 4 + [True] * 3  # two panels of the second row have no panel below them
    plt.close("all")


def test_text_boxes_show_all_of_an_input():
    figure = figures.text_boxes([("ZS", "a " * 90 + "end"), ("ZP", "b")])
    texts = [text.get_text() for text in figure.axes[0].texts]
    assert sum(text.count("a ") + text.count("a\n") for text in texts) >= 90 and len(texts) == 4
    plt.close("all")


def test_the_way_from_a_fact_to_a_verdict():
    rows = [
        ("prompted", "Einstein was born in", "1879.", True),
        ("zero-prompt", "Bohr 1885 Einstein", "1901 Curie", False),
    ]
    figure = figures.pipeline("Einstein\nyear of birth", rows, "m", "1879")
    texts = [text.get_text() for text in figure.axes[0].texts]
    assert "✓ 1879" in texts and "✗ 1879" in texts and "m" in texts
    plt.close("all")


def test_separators_that_differ_significantly_are_counted():
    tested = pd.DataFrame(
        {"words": ["a", "b"], "model": "m", "lost": [20, 3], "gained": [2, 4], "p (Holm)": [0.01, 0.9]}
    )
    assert figures.finding_separators(tested).endswith("The largest: *a* in m (-18 facts).")
    assert "words help in 0 cases and harm in 0; the other 1 differences" in figures.finding_separators(tested.tail(1))


def test_relations_where_the_list_is_ahead():
    rows = [
        ("P1", "ZP-LKE", 0.5),
        ("P1", "HGP", 0.3),
        ("P1", "few-shot HGP", 0.6),
        ("P2", "ZP-LKE", 0.1),
        ("P2", "HGP", 0.3),
    ]
    rows = pd.DataFrame(rows, columns=["relation", "method", "accuracy"])
    assert "ahead of HGP in 1 of 2 relations, and of few-shot HGP in 0." in figures.finding_per_relation(rows)


def test_four_figures_of_one_model_are_four_draws():
    """Figures 4 and 11 to 13: further draws of the pairs where there are fewer models than figures."""
    rows = [
        (context, seed, i, seed / 10, "rest", "m")
        for context in figures.INCORRECT_FIRST
        for seed in range(4)
        for i in (1, 2)
    ]
    positions = pd.DataFrame(rows, columns=["context", "seed", "position", "probability", "role", "model"])
    shown = [draw(positions, 1) for draw in (figures.figure4, figures.figure11, figures.figure12, figures.figure13)]
    assert [artifact.frame["seed"].unique().tolist() for artifact in shown] == [[0], [1], [2], [3]]
    assert "Draw" not in shown[0].caption and "Draw 4 of the pairs" in shown[3].caption
    plt.close("all")
