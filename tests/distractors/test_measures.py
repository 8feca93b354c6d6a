"""Min@n, Avg@n, calibration, robustness, scaling: worked examples, invariants, edges."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from probelib import ProbeError, stats
from probelib.distractors import measures

# W1: a toy model over {a, b, end}; what follows a text, with its probability
TOY = {"": (0.5, 0.3, 0.2), "a": (0.2, 0.3, 0.5), "b": (0.45, 0.1, 0.45), "ab": (0.1, 0.1, 0.8),
       "ba": (0.3, 0.3, 0.4), "aa": (0.25, 0.25, 0.5), "bb": (0.2, 0.2, 0.6)}  # fmt: skip
LABELS = {"o": ["a", "ab"], "d1": ["b"], "d2": ["ba"], "d3": ["aa", "bb"]}


@pytest.fixture
def toy() -> pd.DataFrame:
    rows = []
    for candidate, labels in LABELS.items():
        for label in labels:
            steps = [TOY[label[:i]]["ab".index(token)] for i, token in enumerate(label)]
            end = np.log(TOY[label][2])
            rows.append(("P1", "f", "c", candidate, label, np.log(steps).sum(), end))
    columns = ["relation", "fact", "prompt", "candidate", "label", "logprob", "eos_logprob"]
    return pd.DataFrame(rows, columns=columns).sample(frac=1, random_state=0)


def test_plausibility_by_hand(toy):
    found = {}
    for ending in ("eos", "none"):
        table = measures.plausibility(toy, ending)
        found[ending] = dict(zip(table["candidate"], np.exp(table["logprob"]), strict=True))
    assert found["eos"] == pytest.approx({"o": 0.37, "d1": 0.135, "d2": 0.054, "d3": 0.068})
    assert found["none"] == pytest.approx({"o": 0.65, "d1": 0.30, "d2": 0.135, "d3": 0.13})
    fewer = measures.plausibility(toy[toy["label"] != "ab"]).set_index("candidate")["logprob"]
    gain = measures.plausibility(toy).set_index("candidate")["logprob"] - fewer
    assert gain.to_dict() == pytest.approx({"o": np.log(0.37 / 0.25), "d1": 0, "d2": 0, "d3": 0})


def plausible(own: float, rivals: list[float]) -> tuple:
    """One fact under one sentence: log Pl of the object and of its distractors as frames."""
    names = [f"d{i}" for i in range(len(rivals))]
    table = pd.DataFrame({"candidate": ["o", *names], "logprob": [own, *rivals]})
    table = table.assign(relation="P1", fact="f", prompt="c")
    lists = pd.DataFrame({"fact": "f", "rank": range(1, len(rivals) + 1), "candidate": names})
    return table, pd.DataFrame({"fact": ["f"], "object": ["o"]}), lists


NONE, NEVER = np.nan, -np.inf


@pytest.mark.parametrize(
    ("own", "rivals", "low", "mean"),
    [
        (-2.0, [-3.0, -2.0, -4.0, -1.0], [1, 0, 0, 0], [1, 1 / 2, 2 / 3, 1 / 2]),  # a tie fails
        (-2.0, [-3.0, -1.0], [1, 0, 0, 0], [1, 1 / 2, 1 / 2, 1 / 2]),  # fewer than requested
        (-2.0, [], [NONE] * 4, [NONE] * 4),
        (NEVER, [NEVER, -3.0], [0] * 4, [0] * 4),  # an impossible object beats nothing
        (-3.0, [NEVER] * 2, [1] * 4, [1] * 4),
        *[(gap * measures.EPSILON, [0.0], [beaten] * 4, [beaten] * 4)
          for gap, beaten in ((0.5, 0), (-0.5, 0), (2.0, 1), (-2.0, 0))],
    ],
)  # fmt: skip
def test_min_and_avg_by_hand(own, rivals, low, mean):
    table = measures.outcomes(*plausible(own, rivals), 4)
    for name, expected in {"Min": low, "Avg": mean}.items():
        found = measures.aggregated(table, name).to_numpy()[0]
        assert found == pytest.approx(expected, nan_ok=True)
    assert list(measures.grid(table, [1, 2, 10])) == ["Min@1", "Avg@1", "Min@2", "Avg@2"]


def test_each_sentence_may_have_its_own_distractors():
    table, facts, _ = plausible(-2.0, [])
    table = pd.concat([table, table.assign(prompt="c2", logprob=-4.0)])
    lists = pd.DataFrame({"fact": "f", "prompt": ["c", "c2"], "rank": 1, "candidate": "d"})
    outcome = measures.outcomes(table, facts, lists.assign(logprob=-3.0), 1)
    assert outcome[1].to_dict() == {("f", "c"): 1.0, ("f", "c2"): 0.0}
    assert measures.over_sentences(outcome).loc["f", 1] == 0.5
    outcome.loc[("f", "c2"), 1] = np.nan
    assert np.isnan(measures.over_sentences(outcome).loc["f", 1])  # not the mean of the others


def test_equal_shares_are_tied_in_any_order_of_summation():
    """0, 0, 0, 1, 1 and 0, .2, 1, .6, .2 are both 2 of 5, and to floats they are not."""
    shares = {"a": [0, 0, 0, 1, 1], "b": [0, 0.2, 1, 0.6, 0.2], "tiny": [1e-300, 0, 0, 0, 0]}
    index = pd.MultiIndex.from_product([shares, range(5)], names=["fact", "prompt"])
    values = pd.DataFrame({"Avg@5": np.concatenate(list(shares.values()))}, index=index)
    assert values.groupby(level=0)["Avg@5"].mean().nunique() == 3
    mean = measures.over_sentences(values)["Avg@5"]
    assert mean["a"] == mean["b"] == pytest.approx(0.4) and mean["tiny"] == pytest.approx(2e-301)


@settings(max_examples=12, deadline=None)
@given(st.floats(-5, 0), st.lists(st.floats(-5, 0), min_size=1, max_size=8), st.randoms())
def test_invariants(own, rivals, random):
    n = len(rivals)
    table = lambda order: measures.outcomes(*plausible(own, order), n)
    score = lambda order, how: measures.aggregated(table(order), how).to_numpy()[0]
    low, mean = score(rivals, "Min"), score(rivals, "Avg")
    assert (low <= mean + 1e-12).all() and (np.diff(low) <= 0).all() and low[0] == mean[0]
    assert (np.diff(mean * np.arange(1, n + 1)) >= -1e-9).all()
    k = random.randint(1, n)  # the order behind the k-th changes nothing there
    later = rivals[:k] + random.sample(rivals[k:], n - k)
    assert score(later, "Avg")[k - 1] == pytest.approx(mean[k - 1])
    best = score(sorted(rivals, reverse=True), "Min")  # the optimum: its Min@n does not depend on n
    assert (best <= low).all() and len(set(best)) == 1


# Agreement with ratings


def one_sentence(values: dict) -> pd.DataFrame:
    """fact -> outcomes, with one sentence per fact."""
    index = pd.MultiIndex.from_tuples([(f, f"{f}|1") for f in values], names=["fact", "prompt"])
    return pd.DataFrame(list(values.values()), index).rename(columns=lambda n: n + 1)


def test_changes_are_paired_and_a_constant_change_has_no_interval():
    easy, hard = one_sentence({"a": [1, 1], "b": [1, 1]}), one_sentence({"a": [1, 0], "b": [0, 0]})
    alike = {"value": -1, "low": np.nan, "high": np.nan, "n": 2}
    assert measures.change_of(hard, easy, 2) == pytest.approx(alike, nan_ok=True)
    found = measures.change_of(hard, easy, 2, "Avg")
    assert found["value"] == -0.75 and found["low"] <= -0.75 <= found["high"]


def test_measures_beside_the_best():
    """.1 behind, give or take .01: p = 2 / 100 over 99 replicates, twice that after Holm."""
    noise = np.linspace(-1, 1, 99)
    drawn = {"good": noise, "behind": 1.01 * noise - 0.1, "other": noise[::-1]}
    drawn["none"] = np.full(99, np.nan)
    values = {"good": 0.5, "behind": 0.4, "other": 0.5, "none": np.nan}
    table = measures.beside(values, drawn, measures.best_of(values), "to best")
    assert table["to best"].tolist()[:3] == pytest.approx([0, -0.1, 0])
    assert table["p (Holm)"].tolist() == pytest.approx([np.nan, 0.04, 1, np.nan], nan_ok=True)
    ends = table.loc["behind", measures.ends("to best")]
    assert ends.tolist() == pytest.approx([-0.1095, -0.0905])
    assert table.loc[["good", "none"], measures.ends("to best")].isna().all(axis=None)
    assert measures.best_of({"a": np.nan, "b": 0.3, "c": 0.1 + 0.2}) == "b"
    rounding = {"good": np.zeros(99), "other": np.full(99, 1e-16)}  # equal but for a summation
    assert measures.beside(values, rounding, "good", "x")["p (Holm)"]["other"] == 1


def calibrated(n: int = 30) -> tuple[measures.Calibrations, pd.DataFrame]:
    """ApprOpt follows the rating but for noise that ends at n = 2; Random is noise."""
    rng, facts = np.random.default_rng(0), [f"f{i}" for i in range(n)]
    rating = rng.random(n)
    by_fact = lambda rows: one_sentence(dict(zip(facts, rows * 1.0, strict=True)))
    beaten = by_fact(np.c_[rng.random(n) < 0.5, rating > 0.5])
    grids = {"Dist. ApprOpt": measures.grid(beaten, [1, 2])}
    grids["Dist. Random"] = measures.grid(by_fact(rng.random((n, 2)) < 0.5), [1, 2])
    ratings = pd.DataFrame({"fact": [*facts, "lost"], "rating": [*rating, np.nan]})
    return measures.calibrations(grids, ratings), beaten


def test_calibration_on_common_facts_and_what_more_distractors_bring():
    found, beaten = calibrated()
    assert found.undefined == 1 and len(found.rating) == 30
    table = measures.agreement(found).set_index("measure")
    assert table["tau"].idxmax() == "Dist. ApprOpt" and table["to ApprOpt"]["Dist. ApprOpt"] == 0
    behind = table.loc["Dist. Random"]
    gap = table["tau"]["Dist. Random"] - table["tau"]["Dist. ApprOpt"]
    assert behind["to best"] == behind["to ApprOpt"] == pytest.approx(gap)
    by_n = measures.agreement_by_n({"appropt": beaten}, found, 50).set_index("n")
    assert by_n["to last"].tolist() == pytest.approx([by_n["tau"][2] - by_n["tau"][1], 0])
    assert by_n["to last low"][1] <= by_n["to last"][1] <= by_n["to last high"][1]


def test_agreement_by_number_of_sentences():
    """One sentence orders the facts rightly, the other wrongly and half as strongly: tau 1 and -1;
    both together rightly: a gain of 100 %, whatever facts are drawn, so that there is no
    interval."""
    facts, rating = [f"f{i}" for i in range(12)], np.arange(12.0)
    rows = [(f, f"{f}|{n}", x) for i, f in enumerate(facts) for n, x in ((1, i), (2, (11 - i) / 2))]
    values = pd.DataFrame(rows, columns=["fact", "prompt", "x"]).set_index(["fact", "prompt"])
    number = pd.Series({prompt: int(prompt[-1]) for _, prompt in values.index})
    table, gains = measures.by_sentences(values, number, facts, rating, ["x"] * 3)
    assert table["tau"].tolist() == pytest.approx([0, 1])
    assert table["std"].tolist() == pytest.approx([1, 0])
    assert table["choices"].tolist() == [2, 1] and table["undefined"].tolist() == [0, 0]
    assert table["gain"].tolist() == pytest.approx([0, 100]) and gains.shape == (2, 300)
    assert table[measures.ends("tau")].isna().all(axis=None)
    assert table["gain low"].isna().tolist() == [False, True]
    rating[3] = 5.5  # now it matters which facts are drawn
    table, _ = measures.by_sentences(values, number, facts, rating, ["x"] * 3)
    assert table["tau low"][1] < table["tau"][1] < table["tau high"][1]


def test_the_fit_of_figure_8():
    """R squared is 0.989, not the printed 0.995 (r); 0.9 lies at 1e18 parameters, not 2e19."""
    values, sizes = [0.592, 0.614, 0.635, 0.650, 0.662], [70e6, 410e6, 2.8e9, 6.9e9, 12e9]
    points = pd.DataFrame({"model": list("abcde"), "family": "pythia", "parameters": sizes})
    alone = pd.DataFrame({"model": ["z"], "family": "other", "parameters": 1e6, "mean": 0.1})
    points = pd.concat([points.assign(mean=values), alone])
    per_fact = {name: pd.Series([x, x]) for name, x in zip("abcde", values, strict=True)}
    points, fits = measures.scaling(points, per_fact)
    assert points["model"].tolist() == list("zabcde")
    assert points["fitted"].tolist() == [False] + [True] * 5
    linear = fits.set_index("kind").loc["linear"]
    assert linear["slope"] == pytest.approx(0.03019, abs=1e-5)
    assert linear["R2"] == pytest.approx(0.98924, abs=1e-5)
    reach = linear[["size at 0.9", *measures.ends("size at 0.9")]]
    assert reach.tolist() == pytest.approx([1.23e18] * 3, rel=0.01)  # all facts agree
    assert measures.scaling(points[points["model"].isin(["a", "b"])], per_fact)[1].empty


# Robustness


def test_kappa_by_hand():
    """Both yes 2, both no 5, yes then no 2, no then yes 1: (.7 - .54) / (1 - .54)."""
    first, second = [1, 1, 1, 1, 0, 0, 0, 0, 0, 0], [1, 1, 0, 0, 1, 0, 0, 0, 0, 0]
    assert measures.kappa(first, second) == pytest.approx(0.16 / 0.46)
    assert measures.kappa(first, first) == pytest.approx(1) and np.isnan(measures.kappa([0], [0]))
    assert measures.kappa([1, 1], [0, 0]) == pytest.approx(0)
    rows = measures.kappa(np.array([first, first]), np.array([second, first]))
    assert rows.tolist() == pytest.approx([0.16 / 0.46, 1])


def robust(shift: float) -> pd.DataFrame:
    """ApprOpt is the same after errors; Probability moves by ``shift``, and its f4 falls."""
    facts, rating = [f"f{i}" for i in range(8)], np.arange(8.0)
    right = {"Dist. ApprOpt": pd.DataFrame({"Min@1": rating > 3}, facts).astype(float)}
    right["Probability"] = pd.DataFrame({"–": (1 + rating) / 10}, facts)
    chosen = {name: pd.DataFrame({"configuration": list(own) * 3}) for name, own in right.items()}
    flawed = right | {"Probability": right["Probability"] + shift}
    flawed["Probability"].loc["f4"] -= 0.45
    found = measures.Calibrations(right, rating, 0, chosen)
    return measures.robustness(right, flawed, found).set_index("measure")


def test_robustness_by_hand():
    """f4 falls below the cut at f4: one of eight verdicts, kappa (7/8 - 1/2) / (1/2)."""
    table = robust(0.0)
    assert table["flips"].to_dict() == {"Probability": 1 / 8, "Dist. ApprOpt": 0}
    assert table["kappa"].to_dict() == pytest.approx({"Probability": 0.75, "Dist. ApprOpt": 1})
    assert table["levels"].to_dict() == {"Probability": 8, "Dist. ApprOpt": 2}
    assert table.loc["Probability", "kappa to ApprOpt"] == pytest.approx(-0.25)
    assert table["tau"].tolist() == pytest.approx([stats.kendall(*pair)["tau"] for pair in (
        (range(8), [0, 1, 2, 3, -0.5, 5, 6, 7]), ([0, 1], [0, 1]))])  # fmt: skip


def test_rounding_flips_no_verdict():
    """The fact at the cut loses its last digit; without a tolerance its verdict would change."""
    pd.testing.assert_frame_equal(robust(-1e-9), robust(0.0), atol=1e-8)


def short_of_sentences():
    rows = [("a", "a|1", 1.0), ("a", "a|2", 2.0), ("b", "b|1", 3.0)]
    values = pd.DataFrame(rows, columns=["fact", "prompt", "x"]).set_index(["fact", "prompt"])
    number = pd.Series({"a|1": 1, "a|2": 2, "b|1": 1})
    return measures.by_sentences(values, number, ["a", "b"], [1, 2], ["x"] * 3)


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda: measures.plausibility(pd.DataFrame(), "end"), "unknown ending 'end'.*Known: eos"),
        (lambda: measures.aggregated(one_sentence({"f": [1]}), "Max"), "unknown aggregate 'Max'"),
        (short_of_sentences, "1 of 2 facts do not have all 2 sentences, e.g. b .1.*n_sentences=1"),
    ],
)
def test_bad_input_is_named(ask, words):
    with pytest.raises(ProbeError, match=words):
        ask()
