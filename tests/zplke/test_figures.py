"""Findings of ZP-LKE's figures: hand-made frames in, sentences out."""

from unittest import mock

import matplotlib.pyplot as plt
import pandas as pd
import pytest

from probelib import facts, report
from probelib.zplke import charts, examples, figures, measures


def test_families_are_compared_only_where_there_are_two():
    rows = {"a-1m": [0.1, 0.5, 0.9], "a-2m": [0.2, 0.5, 0.8], "b-1m": [0.1, 0.4, 0.9]}
    matrix = pd.DataFrame(rows, index=["P1", "P2", "P3"]).T
    family = lambda name: name[0]
    across = measures.between_families(matrix, family)
    assert across["n"] == 2 and across["low"] <= across["r"] <= across["high"]
    families = measures.family_correlations(measures.correlations(matrix), {m: family(m) for m in matrix.index})
    assert "all 2 pairs of models" in figures.finding8([families, families], [across, across])
    alone = measures.between_families(matrix.head(2), family)
    assert figures.finding8([families], [alone]) == "There is one family only: nothing to compare."


def test_models_are_ordered_by_the_best_of_their_family():
    long = [("a-1m", 0.1), ("b-1m", 0.3), ("a-2m", 0.5)]
    rows = pd.DataFrame([(m, "P1", v) for m, v in long], columns=["model", "relation", "accuracy"])
    assert list(measures.accuracy_matrix(rows, ["a-1m", "b-1m", "a-2m"], ["P1"], lambda m: m[0]).index) == [
        "a-2m",
        "a-1m",
        "b-1m",
    ]


def test_each_model_has_a_panel_and_each_relation_a_named_row():
    names = [f"relation {i}" for i in range(7)]
    rows = [(r, m, "zp", 0.5, 0.4, 0.6) for r in names for m in ("atlas-a-1m", "b", "c")]
    frame = pd.DataFrame(rows, columns=["relation", "model", "method", "accuracy", "low", "high"])
    report.use_style()
    figure = charts.dot_panels(frame, "relation", ["atlas-a-1m", "b", "c"], "method", ["zp"])
    assert [axis.get_title(loc="left") for axis in figure.axes] == ["a-1m", "b", "c", ""]
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == names
    assert not figure.axes[3].axison
    assert [axis.get_xlabel() for axis in figure.axes] == ["", "accuracy", "accuracy", ""]
    tall = charts.dot_panels(frame.replace("relation 0", "a relation with a name of two lines"), "relation", ["b"])
    flat = charts.dot_panels(frame, "relation", ["b"])
    assert tall.get_figheight() > flat.get_figheight()
    plt.close("all")


def test_models_keep_their_names_where_short_ones_would_be_the_same():
    assert charts.short_labels(["x/a", "y/a"]) == {"x/a": "x/a", "y/a": "y/a"}
    assert charts.short_labels(["atlas-neox-0.6m-lists"], width=10) == {"atlas-neox-0.6m-lists": "neox-0.6m-\nlists"}


def test_text_boxes_show_all_of_an_input():
    figure = charts.text_boxes([("ZS", "a " * 90 + "end"), ("ZP", "b")], {"subject": ["end"], "object": []})
    texts = [text.get_text() for text in figure.axes[0].texts]
    assert texts.count("a") == 90 and {"ZS", "end", "ZP", "b"} < set(texts)
    assert next(text for text in figure.axes[0].texts if text.get_text() == "end").get_color() == "#0173b2"
    plt.close("all")


def test_the_way_from_a_fact_to_a_verdict():
    rows = [
        ("prompted", "Einstein was born in", "1879.", True),
        ("zero-prompt", "Bohr 1885 Einstein", "1901 Curie", False),
    ]
    figure = charts.pipeline("Einstein\nyear of birth", rows, "m", "1879")
    texts = [text.get_text() for text in figure.axes[0].texts]
    assert "✓ gold: 1879" in texts and "✗ gold: 1879" in texts and "m" in texts
    plt.close("all")


def test_separators_that_differ_significantly_are_counted_per_model():
    tested = pd.DataFrame(
        {"words": ["a", "b"], "model": "m", "lost": [20, 3], "gained": [2, 4], "p (Holm)": [0.01, 0.9]}
    )
    found = figures.finding_separators(tested)
    assert "help in 0 cases and harm in 1 (1 of 2 in m): the blank is as good as words or better" in found
    assert found.endswith("The largest: *a* in m (-18 facts).")
    assert "help in 0 cases and harm in 0 (0 of 1 in m)" in figures.finding_separators(tested.tail(1))
    better = tested.assign(lost=[2, 3], gained=[20, 4])
    assert "the blank is not always as good as words, unlike in the paper" in figures.finding_separators(better)


@pytest.mark.parametrize(
    ("plain", "said"), [(0.1, "is better"), (0.9, "is worse"), (0.5, "is not significantly different")]
)
def test_the_list_is_compared_with_another_method_by_the_interval(plain, said):
    rows = [(f"P{i}", method, "m", value + i / 100 * (method == "ZP-LKE") * (-1) ** i)
            for i in range(6) for method, value in (("ZP-LKE", 0.5), ("plain", plain))]  # fmt: skip
    cells = pd.DataFrame(rows, columns=["relation", "method", "model", "accuracy"])
    assert figures.ahead_in_words(cells, "plain").startswith(f"ZP-LKE {said}")


HARM = ["unknown", "incorrect", "incorrect minus unknown"]


@pytest.mark.parametrize(
    ("difference", "said"),
    [(-0.3, "more than unknown ones, as in the paper"), (0.3, "the reverse"), (0.01, "is not shown")],
)
def test_the_verdict_on_harm_follows_the_paired_difference(difference, said):
    """The intervals of both kinds overlap in every case: only their difference on the same pairs decides."""
    rows = [(12, 0.8, 0.7, -0.1, -0.6, 0.4)] * 2 + [(12, 0.7, 0.7, difference, difference - 0.05, difference + 0.05)]
    found = figures.finding_harm(pd.DataFrame(rows, columns=examples.CHANGES, index=HARM), "untouched pairs")
    assert said in found and f"Incorrect minus unknown, on the same pairs: {difference:+.3f} [" in found


def test_too_few_pairs_decide_nothing_on_harm():
    rows = [(9, 0.8, 0.7, -0.1, float("nan"), float("nan"))] * 3
    harmed = pd.DataFrame(rows, columns=examples.CHANGES, index=HARM)
    assert figures.finding_harm(harmed, "untouched pairs").endswith("; too few pairs to compare with the paper.")


def test_the_probability_over_the_position_is_compared_with_the_paper():
    place = pd.DataFrame({"position": range(1, 41), "context": "correct"})
    harmed = pd.DataFrame([(12, 0.8, 0.8, 0.0, -0.1, 0.1)] * 3, columns=examples.CHANGES, index=HARM)
    with mock.patch.object(examples, "harm_by_kind", return_value=(harmed, "pairs")):
        for way, values in (
            ("rises", place["position"]),
            ("falls", -place["position"]),
            ("neither", place["position"] % 2),
        ):
            assert f"{way} " in figures.finding_sequence(place.assign(probability=values / 100))


def test_the_paper_is_compared_only_up_to_the_longest_list_of_the_corpus():
    """The probability rises up to position 20 and falls beyond."""
    place = pd.DataFrame({"position": range(1, 41), "context": "correct"})
    place["probability"] = (20 - (place["position"] - 20).abs()) / 100
    harmed = pd.DataFrame([(12, 0.8, 0.8, 0.0, -0.1, 0.1)] * 3, columns=examples.CHANGES, index=HARM)
    with mock.patch.object(examples, "harm_by_kind", return_value=(harmed, "pairs")):
        said = figures.finding_sequence(place, longest=20)
    assert "up to position 20 rises with the position, as in the paper (r = 1.000" in said and "). Beyond" in said
    assert "reaches, it falls (r = -1.000" in said and "reverse" not in said


def test_a_difference_that_the_correction_for_models_undoes_is_borderline():
    rows = [(30, 0.8, 0.7, -0.1, -0.6, 0.4)] * 2 + [(30, 0.7, 0.7, 0.023, 0.001, 0.046)]
    harmed = pd.DataFrame(rows, columns=examples.CHANGES, index=HARM)
    assert "borderline: not significant after Bonferroni's correction for 4" in figures.finding_harm(harmed, "pairs", 4)
    assert "borderline" not in figures.finding_harm(harmed, "pairs")
    said = figures.finding_harm(harmed.assign(n=18), "untouched pairs that the model knows", 4)
    assert said.endswith("the model knows fewer than 20 of them, too few to compare with the paper.")


def test_the_longest_list_of_the_corpus_is_a_line_named_in_the_caption():
    """The shipped models have it; of other models the corpus is unknown."""
    contexts = ["correct", *figures.CONTEXTS]
    rows = [(c, 0, p, p % 3 / 3, "rest") for c in contexts for p in range(1, 101)]
    frame = pd.DataFrame(rows, columns=["context", "seed", "position", "probability", "role"])
    harmed = pd.DataFrame([(12, 0.8, 0.8, 0.0, -0.1, 0.1)] * 3, columns=examples.CHANGES, index=HARM)
    with mock.patch.object(examples, "harm_by_kind", return_value=(harmed, "pairs")):
        shipped, other = (figures.figure4(frame.assign(model=m), star=2) for m in ("atlas-neox-5m", "gpt2"))
    assert "hold one draw of the pairs, the finding counts all 1;" in shipped.caption
    assert "vertical line: position 70" in shipped.caption and "up to position 70" in shipped.finding
    assert "vertical" not in other.caption and "up to position" not in other.finding
    assert [len(f.figure.axes[0].lines) for f in (shipped, other)] == [2, 1]


def test_figure_1_says_that_its_fact_was_chosen_and_how_many_are_like_it():
    """Of three facts the first is drawn: right after the list, wrong after the prompt; the others are the reverse and both."""
    some = facts.load(relations=["P569"], n_facts=3)
    right = {
        ("prompted", "none"): [1, 1, 1],
        ("prompted", "2 correct"): [0, 1, 1],
        ("zero-prompt", "4 correct"): [1, 0, 1],
    }
    rows = [
        (fact, estimator, context, f"input {context}", "1901.", bool(value))
        for (estimator, context), values in right.items()
        for fact, value in zip(some.facts["fact"], values, strict=True)
    ]
    answers = pd.DataFrame(rows, columns=["fact", "estimator", "context", "text", "output", "right"])
    artifact = figures.figure1(answers, facts.pick(some, some.facts["fact"].head(1)), "m")
    assert artifact.frame["input"].tolist() == ["input 2 correct", "input 4 correct"]
    assert "A chosen contrast, no typical fact: of 3 facts" in artifact.caption
    assert artifact.finding.startswith(
        "Only the list (four correct pairs) is right for 1 of 3 facts (33% [6%, 79%]); only the"
    )
    assert artifact.finding.endswith("(2 correct examples) for 1, both for 1, neither for 0.")
    plt.close("all")


def test_a_rise_is_claimed_only_where_the_interval_says_so():
    frame = pd.DataFrame({"shots": [1, 50] * 3, "model": list("aabbcc"), "mean": 0.5, "n95": 1.0})
    gains = pd.DataFrame({"model": list("abc"), "first": 0.4, "last": 0.5, "gain": 0.1, "low": [0.05, -0.1, -0.1],
                          "high": 0.2, "std first": [0.2, 0.1, 0.1], "std last": 0.1})  # fmt: skip
    found = figures.finding3(frame, gains)
    assert "is shown for 1 of 3 models; " in found and "which falls in the paper, falls in 1." in found


def test_guessing_explains_agreement_only_where_the_intervals_part():
    table = pd.DataFrame([[float("nan"), 0.8], [0.8, float("nan")]])
    raw = {"r": 0.8, "low": 0.7, "high": 0.9, "n": 4}
    parted = figures.finding8([table, table], [raw, raw | {"r": 0.4, "low": 0.3, "high": 0.5}])
    assert parted.endswith("part of the agreement is that the same relations are easily guessed.")
    assert "is not decided" in figures.finding8([table, table], [raw, raw])


def test_correlations_within_and_between_families():
    names = ["a-1m", "a-2m", "b-1m"]
    pairs = pd.DataFrame([[1, 0.9, 0.5], [0.9, 1, 0.6], [0.5, 0.6, 1]], index=names, columns=names)
    found = figures.finding16(pairs)
    assert "of one family 0.90 to 0.90 (n = 1" in found and "of different families 0.50 to 0.60 (n = 2" in found
    assert figures.family_borders(names) == [1.5]


def test_a_single_correlation_has_an_interval():
    """By hand: z = atanh(0.6) = 0.693, half-width 1.96 / sqrt(28 - 3) = 0.392, so tanh of 0.301 and 1.085: 0.292 and 0.795."""
    pairs = pd.DataFrame([[1, 0.9, 0.5], [0.9, 1, 0.6], [0.5, 0.6, 1]])
    assert figures.interval_of_r(pairs, 28) == "The 95 % interval of a single r of 0.60 (the median) is [0.29, 0.80]."
    assert figures.interval_of_r(pairs, 3) == figures.interval_of_r(pairs.iloc[:1, :1], 28) == ""


def test_the_heat_map_has_whole_names_and_the_interval_of_a_cell():
    some = facts.load(relations=["P131"], n_facts=4)
    matrix = pd.DataFrame({"P131": [0.5, 0.25]}, index=["a-1m", "b-1m"])
    artifact = figures.figure7(matrix, some, pd.Series({"P131": 0.1}))
    shown = [label.get_text() for label in artifact.figure.axes[0].get_yticklabels()]
    assert shown == some.relations["name"].tolist() and len(shown[0]) > 30
    assert "4 facts per cell: the 95 % interval of an accuracy of 0.25 is [0.05, 0.70]." in artifact.caption
    plt.close("all")


def test_the_number_of_tests_is_in_the_caption_of_the_options():
    scores = pd.DataFrame(
        [("q", "f", c, float(p)) for p, c in enumerate("abcdef")], columns=["prompt", "fact", "candidate", "p"]
    )
    scores = scores.assign(relation="P1", logprob=scores["p"], n_tokens=1)
    table = measures.difficulty(scores, {"f": "f"}, dict.fromkeys("abcdef", 1))
    artifact = figures.options(table, "m")
    assert "n = 1 tests per point" in artifact.caption and "hardness 0.5 begins at 5 options" in artifact.caption
    plt.close("all")


def test_fine_tuned_models_below_their_base_are_counted():
    frame = pd.DataFrame({"difference": [-0.1, 0.05], "low": [-0.2, -0.1], "high": [-0.05, 0.1]})
    assert figures.finding9(frame).startswith(
        "1 of 2 fine-tuned models are below their base (the paper: 12 of 13), 1 of them"
    )
    assert figures.finding9(frame.head(0)) == ""


def test_four_figures_of_one_model_are_four_draws():
    """Figures 4 and 11 to 13: further draws of the pairs where there are fewer models than figures."""
    rows = [
        (context, seed, i, f"f{i}", seed / 10, "replaced" if i == 1 and context != "correct" else "rest", "m")
        for context in figures.INCORRECT_FIRST
        for seed in range(4)
        for i in (1, 2)
    ]
    columns = ["context", "seed", "position", "fact", "probability", "role", "model"]
    positions = pd.DataFrame(rows, columns=columns)
    shown = [draw(positions, 1) for draw in (figures.figure4, figures.figure11, figures.figure12, figures.figure13)]
    assert [artifact.frame["seed"].unique().tolist() for artifact in shown] == [[0], [1], [2], [3]]
    assert "Draw" not in shown[0].caption and "Draw 4 of the pairs" in shown[3].caption
    plt.close("all")


def test_the_captions_of_both_tests_say_that_few_shot_prompts_have_one_draw():
    some = facts.load(relations=["P36"], n_facts=4)
    rows = [("m", "P36", method, 0.25, test) for method in ("ZP-LKE", "few-shot HGP") for test in
            ("response, strict", "response, lenient", "multiple choice")]  # fmt: skip
    cells = pd.DataFrame(rows, columns=["model", "relation", "method", "accuracy", "test"])
    cells.attrs["models"] = ["m"]
    response, choice = figures.figure14(cells, some).caption, figures.figure15(cells, some).caption
    assert "(few-shot HGP: with one draw of examples)" in choice and "pile up at 0" not in choice
    assert "few-shot HGP with one draw" in response and "Marks pile up at 0" in response
    plt.close("all")
