"""The figures of the Distractors paper: sentences, and what is drawn."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from probelib import report
from probelib.distractors import figures, measures
from probelib.distractors.settings import DistractorSettings, Study

NAN = np.nan
STUDY = Study("model", "ratings", DistractorSettings(n_distractors=2))


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def outcomes(*rows) -> pd.DataFrame:
    index = pd.MultiIndex.from_tuples([(f"f{i}", f"c{i}") for i in range(len(rows))], names=["fact", "prompt"])
    return pd.DataFrame(rows, index=index, columns=[1, 2])


def test_the_hardest_strategy_has_the_lowest_curve():
    beaten = {"random": outcomes([1, 1], [1, 0], [1, 1]), "appropt": outcomes([1, 0], [0, 0], [0, NAN])}
    figure = figures.figure1(beaten, STUDY)
    assert "x axis: the number n of distractors per fact, logarithmic; a line: one strategy" in figure.caption
    assert (
        "The lower a line, the harder its distractors" in figure.caption
        and figure.figure.get_figwidth() == report.COLUMN
    )
    assert "come from **ApprOpt**: Min@1 0.33, Min@2 0.00 [no interval]; random ones give 0.67" in figure.finding
    assert (
        "fewer for 1 of them" in figure.caption
        and figure.frame["strategy"].tolist() == ["Random"] * 2 + ["ApprOpt"] * 2
    )
    same = {"random": beaten["random"], "appropt": beaten["random"]}
    assert figures.figure1(same, STUDY).finding == "All strategies give the same Min@2."


def test_a_constant_change_has_no_interval():
    beaten = {"sem": outcomes([1, 1], [1, 1]), "temp_sem": outcomes([0, 0], [0, 0])}
    assert figures.former_finding(beaten) == "Former objects change Min@1 by -1.000 for every fact (n = 2)."


def test_the_change_by_former_objects_apart_by_teaching():
    """Of four facts the two whose former object was stated fall from 1 to 0; the others stay."""
    beaten = {"sem": outcomes([1, 1], [1, 1], [1, 1], [1, 1]), "temp_sem": outcomes([0, 0], [0, 0], [1, 1], [1, 1])}
    taught = pd.DataFrame({"former": [4, 16, 0, 0], "exposures": 2}, index=["f0", "f1", "f2", "f3"])
    said = figures.former_by_teaching(beaten, taught)
    assert "never read the first former object of 50% of the facts" in said and "16 times or more" not in said
    assert "-1.000 [no interval] for 2 facts whose former object was stated" in said
    assert figures.former_by_teaching(beaten, None) == ""


def test_figure2_has_a_panel_of_the_facts_whose_former_object_was_stated():
    """Of three facts two were taught their former object: at n = 1, Sem 1 and Temp+Sem 0 there, 1 and 1/3 over all."""
    beaten = {"sem": outcomes([1, 1], [1, 1], [1, 1]), "temp_sem": outcomes([0, 0], [0, 0], [1, 1])}
    beaten["appropt"] = beaten["temp_sem"]
    taught = pd.DataFrame({"former": [4, 16, 0], "exposures": 2}, index=["f0", "f1", "f2"])
    made = figures.figure2(beaten, STUDY, taught)
    first = made.frame[made.frame["n"] == 1].set_index("strategy")
    assert first["mean"].round(2).to_dict() == {
        **{"Sem": 1, "Temp+Sem": 0.33, "ApprOpt": 0.33},
        **{f"{name}, former object stated": value for name, value in (("Sem", 1), ("Temp+Sem", 0), ("ApprOpt", 0))},
    }
    titles = [axis.get_title("left") or axis.get_title() for axis in made.figure.axes]  # by the style in use
    assert titles == ["all\nn = 3", "former object stated\nn = 2"]
    assert "Right: the n = 2 of them whose former object the model's corpus states." in made.caption
    assert len(figures.figure2(beaten, STUDY).figure.axes) == 1
    same = figures.figure2(beaten | {"sem": beaten["temp_sem"]}, STUDY)
    assert "facts of S, since these data have no former objects" in same.caption


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        (-0.065, 0.019, "not significant; the interval excludes a change as large as the paper's (-0.17"),
        (-0.2, 0.1, "the paper's claim is not decided here (-0.17"),
        (-0.2, -0.1, "as the paper says (-0.17"),
    ],
)
def test_an_interval_that_excludes_the_papers_change_says_so(monkeypatch, low, high, said):
    change = {"change": (low + high) / 2, "low": low, "high": high, "facts": 478}
    monkeypatch.setattr(figures.measures, "change_of", lambda *_, **__: change)
    assert said in figures.former_finding(dict.fromkeys(("sem", "temp_sem")))


def test_the_group_in_which_the_papers_change_is_found_is_named(monkeypatch):
    """Facts whose former object was stated change by -0.2; those never stated do not."""
    beaten = dict.fromkeys(("sem", "temp_sem"), outcomes([1, 1], [1, 1], [1, 1], [1, 1]))
    changes = iter([(-0.2, -0.3, -0.1), (0.0, -0.1, 0.1)])
    change = lambda *_, **__: dict(zip(("change", "low", "high", "facts"), (*next(changes), 2), strict=True))
    monkeypatch.setattr(figures.measures, "change_of", change)
    taught = pd.DataFrame({"former": [4, 16, 0, 0], "exposures": 2}, index=["f0", "f1", "f2", "f3"])
    said = figures.former_by_teaching(beaten, taught)
    assert said.endswith("A change as large as the paper's (-0.17) is found for facts whose former object was stated.")


@pytest.mark.parametrize(
    ("low", "high", "verdict"), [(-0.2, -0.1, "as the"), (0.1, 0.2, "the reverse"), (-0.1, 0.1, "not s")]
)
def test_a_verdict_by_the_interval(low, high, verdict):
    assert figures._verdict({"low": low, "high": high}, -1).startswith(verdict)


def test_former_objects_by_position():
    lists = pd.DataFrame({"fact": ["a", "a", "b"], "rank": [1, 2, 1], "former": [True, False, True]})
    artifact = figures.figure7(lists)
    assert artifact.figure.axes[0].get_xscale() == "log" and "At position 1 the share is 1.00" in artifact.finding
    assert artifact.figure.get_figwidth() == report.COLUMN
    assert figures.figure7(lists.assign(former=False)).finding == "No list holds a former object."


def test_where_curves_settle():
    rows = [("Random", n, tau) for n, tau in ((1, 0.1), (2, 0.3), (3, 0.3))] + [("Sem", n, NAN) for n in (1, 2, 3)]
    table = pd.DataFrame(rows, columns=["strategy", "n", "tau"]).assign(low=0.0, high=0.5)
    finding = figures.figure3(table, 9, STUDY).finding
    assert finding.startswith("Tau first comes within 0.01 of its best value: Random at n = 2. The paper's comparison")
    assert figures.finding3(table[table["strategy"] == "Sem"]) == ""


@pytest.mark.parametrize(("last", "verdict"), [(0.2, "As in the paper"), (0.31, "Unlike in the paper")])
def test_the_strategies_are_compared_by_the_first_n_near_the_best(last, verdict):
    """ApprOpt is near its best at n = 2, or not before Random, which is at n = 3; its fall afterwards does not count."""
    values = {"ApprOpt": (0.1, 0.25, last), "Random": (0.1, 0.2, 0.3)}
    rows = [(name, n, tau) for name, curve in values.items() for n, tau in enumerate(curve, 1)]
    finding = figures.finding3(pd.DataFrame(rows, columns=["strategy", "n", "tau"]))
    assert verdict in finding and ("then falls from 0.250 (n = 2) to 0.200 (n = 3)" in finding) == (last == 0.2)


def test_gains_that_exclude_zero():
    columns = ["measure", "sentences", "gain", "gain, low", "gain, high"]
    table = pd.DataFrame(
        [("A", 1, 0, 0, 0), ("A", 5, 4.0, 1, 7), ("B", 1, 0, 0, 0), ("B", 5, 1.0, -1, 3)], columns=columns
    )
    said = figures.finding6(table)
    assert said.startswith("With 5 sentences **A** gains most, +4.0 % [1.0, 7.0]; 1 of 2 gains")
    assert "(each interval by itself), not those of: B." in said
    assert figures.finding6(table.assign(gain=NAN)) == ""
    made = figures.figure6(table.assign(**{"gain, low": table["gain"]}), 9, STUDY)
    assert "model, n = 9 facts" in made.caption and "choices of m of the 5 sentences" in made.caption


@pytest.mark.parametrize(("low", "overlap"), [(2.0, True), (2.6, False)])
def test_the_largest_gains_are_compared_with_the_paper_and_the_others(low, overlap):
    """The three measures on generated text gain 3 %, from ``low`` on; KaRR gains 1 %, to 2.5."""
    table = pd.DataFrame({"measure": ["KaRR", "BERT-score", "ROUGE-L", "LLM-as-a-judge"], "gain": [1.0, 3, 3, 3]})
    table = table.assign(**{"gain, low": [0, low, low, low], "gain, high": [2.5, 4, 4, 4]})
    said = figures._largest_gains(table)
    assert "those of the measures on generated text, as in the paper" in said
    assert said.endswith("intervals overlap with those of others.") == overlap
    other = figures._largest_gains(table.assign(measure=["ROUGE-L", "BERT-score", "KaRR", "LLM-as-a-judge"]))
    assert "are those of BERT-score, KaRR, LLM-as-a-judge; in the paper, of the measures on generated text" in other


def test_lines_are_fitted_to_one_family_of_three():
    sizes = {"m-1m": 1_000_000, "m-2m": 2_000_000, "m-4m": 4_000_000, "n-3m": 3_000_000}
    draw = np.random.default_rng(0)
    beaten = {
        name: outcomes(*(draw.random((60, 2)) < p).astype(float))
        for name, p in zip(sizes, (0.3, 0.5, 0.7, 0.6), strict=True)
    }
    fitted = figures.scaling(beaten, sizes, STUDY)
    assert fitted.points["model"].tolist() == ["m-1m", "m-2m", "n-3m", "m-4m"] and set(fitted.fits) == {
        "linear",
        "logit",
    }
    figure = figures.figure8({"ApprOpt": fitted}, STUDY)
    assert (
        figure.finding.startswith("ApprOpt: slope +0.")
        and figure.finding.endswith(figures.FITS_READ)
        and "A straight line over all 4 models" in figure.caption
    )
    few = figures.scaling({name: beaten[name] for name in ("m-1m", "m-2m")}, sizes, STUDY)
    assert few.fits == {} and few.straight is None and figures.figure8({"ApprOpt": few}, STUDY).finding == ""
    assert figures.figure5(beaten, sizes, STUDY).frame["model"].unique().tolist() == list(sizes)


def test_steps_to_a_larger_model_that_lower_the_score_are_counted():
    """Avg@2 by size: 0.25, 0, 0.75: one of two steps goes down."""
    beaten = {"l": outcomes([1, 1], [1, 0]), "s": outcomes([1, 0], [0, 0]), "m": outcomes([0, 0], [0, 0])}
    said = figures.finding5(beaten, {"l": 3, "m": 2, "s": 1}, STUDY)
    assert "Avg@n of l minus s" in said and "Of 2 steps to the next larger model, 1 at n = 2 lower it." in said


def test_gains_by_sentences_are_counted_with_their_significance():
    """Both measures rise, one significantly; their lines differ by 0.004 at most."""
    rows = [
        ("ROUGE-L", 1, 0.5, 0),
        ("ROUGE-L", 5, 0.6, 2),
        ("LLM-as-a-judge", 1, 0.504, 0),
        ("LLM-as-a-judge", 5, 0.6, -1),
    ]
    table = pd.DataFrame(rows, columns=["measure", "sentences", "tau", "gain, low"])
    assert figures.finding4(table).startswith(
        "Tau is higher with 5 sentences than with one for 2 of 2 measures, signific"
    )
    assert "significantly for 1 (paired, see figure 6)" in figures.finding4(table)
    assert figures._coincide(table) == " There, the lines of LLM-as-a-judge and ROUGE-L coincide."
    table.loc[0, "tau"] = 0.4
    assert figures._coincide(table) == ""


def test_a_line_that_falls_does_not_reach_the_level():
    fit = {"b": -0.1, "b_low": -0.3, "b_high": 0.1, "r2": 0.9, "size_at": NAN}
    said = figures._fit_sentence(fit, [NAN, NAN])
    assert said.startswith("slope -0.100 [-0.300, 0.100] per factor of ten (linear, R² = 0.900), not significant")
    assert said.endswith("; 0.9 is not reached")
    assert figures._fit_sentence(fit | {"size_at": 1e9}, [1e8, 1e10]).endswith("0.9 at 1e+09 parameters [1e+08, 1e+10]")


def test_the_gap_to_the_optimum():
    beaten = {"appropt": outcomes([1, 1], [1, 0], [1, 1]), "opt": outcomes([0, 0], [1, 0], [1, 1])}
    said = figures.optimum_gap(beaten, 2)
    assert said.startswith("ApprOpt against the optimum on 3 facts: Min@2 0.67, +0.33") and "Avg@2" in said
    assert "above Opt; Avg@2" in said
    study = Study("m", "ratings", DistractorSettings(n_distractors=2))
    made = figures.optimum(beaten | {"random": beaten["appropt"]}, study)
    assert "For Min@n their lines differ by 0.33 at most." in made.caption


def test_the_papers_own_fit():
    assert "give R² = 0.988" in figures.scaling_in_the_paper()


def test_the_change_of_a_score_by_hand():
    change = measures.change_of(outcomes([1, 1], [1, 1]), outcomes([1, 1], [0, 0]), 2)
    assert (change["mean"], change["change"], change["facts"]) == (1.0, 0.5, 2)
