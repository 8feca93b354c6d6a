"""Measures against what was taught: by hand, with a measure that knows everything, and with one that knows nothing."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from probelib import stats
from probelib.beyond import concordance as c
from probelib.beyond import measures
from probelib.errors import ProbeError

STATED = pd.Series({"a": 0, "b": 0, "c": 1, "d": 4, "e": 16, "f": 64})


def frame(model="m", **measures) -> pd.DataFrame:
    """Long values: one list a measure, in the order of STATED."""
    return pd.concat(
        [pd.DataFrame({"model": model, "fact": STATED.index, "measure": m, "value": v}) for m, v in measures.items()],
        ignore_index=True,
    ).astype({"value": float})


def by_model(taught: pd.Series) -> pd.Series:
    return pd.concat({"m": taught}, names=["model", "fact"])


def test_a_calibrated_probability_has_no_error():
    taught = pd.Series([True, False] * 50, index=[f"f{i}" for i in range(100)])
    rows = pd.DataFrame({"model": "m", "fact": taught.index, "measure": "half", "value": 0.5})
    sure = rows.assign(measure="sure", value=taught.to_numpy(dtype=float))
    found = measures.calibration_errors(pd.concat([rows, sure]), by_model(taught)).set_index("measure")
    assert found.loc["half", ["ece", "brier"]].tolist() == [0.0, 0.25] and found.loc["sure", "brier"] == 0.0


def test_the_interval_of_the_calibration_error_contains_it():
    """Of a calibrated probability the error is small and that of resampled facts larger; the interval is moved by that."""
    outside = 0
    for seed in range(40):
        draw = np.random.default_rng(seed)
        facts, sure = [f"f{i}" for i in range(60)], draw.random(60)
        taught = pd.Series(draw.random(60) < sure, index=facts)
        values = pd.DataFrame({"model": "m", "fact": facts, "measure": "x", "value": sure})
        found = measures.calibration_errors(values, by_model(taught)).iloc[0]
        outside += not found["ece_low"] <= found["ece"] <= found["ece_high"]
    assert outside == 0


def design(model: str = "m", exposures: pd.Series = STATED) -> pd.DataFrame:
    columns = {
        "model": model,
        "group": model,
        "fact": exposures.index,
        "relation": "P",
        "exposures": exposures.to_numpy(),
    }
    return pd.DataFrame(columns)


def test_all_statistics_by_hand():
    """Taught (64, 32) against never (0, 0): 3 of 4 pairs; of the 9 + 5 pairs of different doses 10 are in order."""
    exposures = pd.Series([0, 0, 1, 4, 32, 64], STATED.index)
    values = frame(x=[0.1, 0.5, 0.2, 0.3, 0.4, 0.6])
    found = measures.all_statistics(values, design(exposures=exposures), times=20).iloc[0]
    assert found["within relations"] == 0.75 and found["dose"] == pytest.approx(2 * 11 / 14 - 1)
    assert found["tau"] == pytest.approx(stats.kendall(values["value"], exposures)["tau"])
    assert "across sisters" not in found and "between models" not in found, "one model has no sisters"


def test_the_change_of_tau_has_the_jackknifes_interval():
    """Recomputed by leaving out each of the six facts in turn: there are fewer facts than groups."""
    before, after = frame(x=[0.1, 0.5, 0.2, 0.3, 0.4, 0.6], y=1), frame(x=[0, 1, 0, 0, 1, 1])
    found = measures.change_of_tau(before, after, design())
    tau = lambda rows: stats.kendall(rows["value"], STATED[rows["fact"]])["tau"]
    change = lambda fact: (
        tau(after[after["fact"] != fact]) - tau(before[(before["fact"] != fact) & (before["measure"] == "x")])
    )
    low, high = stats.jackknife_interval(change("none"), np.array([change(fact) for fact in STATED.index]))
    assert found["measure"].tolist() == ["x"]
    assert found.iloc[0, 1:].tolist() == pytest.approx([change("none"), low, high])


def test_without_pairs_the_error_says_what_to_do():
    with pytest.raises(ProbeError, match="Take more facts"):
        measures.headline_pairs(design(exposures=STATED[:3]))


def test_sisters_are_preferred_to_facts():
    both = pd.concat([design("one"), design("two", STATED[::-1].set_axis(STATED.index))]).assign(group="g")
    pairs, within = measures.headline_pairs(both.reset_index(drop=True))
    assert within == ["group", "fact"] and len(pairs) == 2
    assert measures.headline_pairs(design())[1] == ["model", "relation"]


def test_groups_of_facts_have_their_own_rows():
    group = pd.Series(dict(zip(STATED.index, "uuuvvv", strict=True)))
    exposures = pd.Series([0, 64, 64, 0, 64, 64], STATED.index)
    found = measures.concordance_by_group(frame(x=[3, 2, 1, 1, 2, 3]), design(exposures=exposures), group)
    assert found["group"].tolist() == ["u", "v"] and found["concordance"].tolist() == [0.0, 1.0]


def test_twins_are_compared_fact_by_fact():
    values = pd.concat([frame("one", x=[1, 2, 3, 4, 5, 6]), frame("two", x=[6, 5, 4, 3, 2, 1])])
    first, second, same = measures.twins_as_one(values, pd.concat([design("one"), design("two")]), ("one", "two"))
    found = c.change(first, second, same, c.pairs_of_facts(same)).iloc[0]
    assert (found["before"], found["after"]) == (1.0, 0.0)


def test_contrast_and_changes_by_hand():
    rows = frame(x=[0, 0, 1, 1, 1, 1])
    found = measures.contrast(rows, pd.Index(["a", "b"]), pd.Index(["c", "d", "e"])).iloc[0]
    assert (found["one"], found["other"], found["difference"], found["n one"]) == (0.0, 1.0, -1.0, 2)
    pair = pd.concat([frame("before", x=[0, 0, 1, 1, 1, 1]), frame("after", x=[1, 0, 0, 0, 1, 1])])
    found = measures.changes(pair, "before").iloc[0]
    assert (found["lost"], found["gained"], found["difference"]) == (2, 1, pytest.approx(-1 / 6)) and found["p"] == 1.0
    graded = pd.concat([frame("before", x=[0.5] * 6), frame("after", x=[0.25] * 6)])
    found = measures.changes(graded, "before").iloc[0]
    assert found["difference"] == -0.25 and np.isnan(found["p"])
    assert np.isnan([found["low"], found["high"]]).all()  # every fact changed alike: no draw could differ


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(st.text("abcdef", min_size=1), st.tuples(st.integers(1, 9), st.integers(0, 9)), min_size=1))
def test_the_frontier_is_what_nothing_cheaper_beats(points):
    cost, quality = (pd.Series({k: v[i] for k, v in points.items()}) for i in (0, 1))
    front = measures.frontier(cost, quality)
    for name in points:
        beaten = any(cost[o] <= cost[name] and quality[o] >= quality[name] for o in front if o != name)
        assert (name in front) != beaten
