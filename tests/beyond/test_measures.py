"""Measures against what was taught and against each other: by hand, and what must not matter."""

import numpy as np
import pandas as pd
import pytest

from probelib import stats
from probelib.beyond import concordance, measures
from probelib.errors import ProbeError

STATED = pd.Series({"a": 0, "b": 0, "c": 1, "d": 4, "e": 16, "f": 64})


def long(model="m", **named) -> pd.DataFrame:
    """Long values: one list a measure, of the facts a, b, c, ..."""
    facts = list("abcdefghijklmnop")[: len(next(iter(named.values())))]
    rows = pd.DataFrame(named, dtype=float).assign(model=model, fact=facts)
    return rows.melt(["model", "fact"], var_name="measure")


def design(model: str = "m", exposures: pd.Series = STATED) -> pd.DataFrame:
    rows = exposures.rename("exposures").rename_axis("fact").reset_index()
    return rows.assign(model=model, group=model, relation="P")[concordance.DESIGN]


def test_all_statistics_by_hand():
    """Taught (64, 32) against never (0, 0): 3 of 4 pairs; of the 14 pairs of different doses 11 are
    in order."""
    exposures = pd.Series([0, 0, 1, 4, 32, 64], STATED.index)
    values = long(x=[0.1, 0.5, 0.2, 0.3, 0.4, 0.6])
    found = measures.all_statistics(values, design(exposures=exposures), times=20).iloc[0]
    assert found["within relations"] == 0.75 and found["dose"] == pytest.approx(2 * 11 / 14 - 1)
    assert found["tau"] == pytest.approx(stats.kendall(values["value"], exposures)["tau"])
    assert "across sisters" not in found, "one model has no sisters"


def test_the_change_of_tau_has_the_jackknifes_interval():
    """Recomputed by leaving out each of the six facts in turn: there are fewer facts than
    groups."""
    before = long(x=[0.1, 0.5, 0.2, 0.3, 0.4, 0.6], y=[1] * 6)
    after = long(x=[0, 1, 0, 0, 1, 1])
    found = measures.change_of_tau(before, after, design())

    def change(left_out):
        own = lambda rows: rows[(rows["fact"] != left_out) & (rows["measure"] == "x")]
        sides = own(before), own(after)
        taus = [stats.kendall(rows["value"], STATED[rows["fact"]])["tau"] for rows in sides]
        return taus[1] - taus[0]

    others = np.array([change(fact) for fact in STATED.index])
    ends = stats.jackknife_interval(change("none"), others)
    assert found["measure"].tolist() == ["x"]
    assert found.iloc[0, 1:].tolist() == pytest.approx([change("none"), *ends])


def test_sisters_are_preferred_to_facts_and_without_pairs_the_error_says_what_to_do():
    both = [design("one"), design("two", STATED[::-1].set_axis(STATED.index))]
    both = pd.concat(both, ignore_index=True).assign(group="g")
    pairs, within = measures.headline_pairs(both)
    assert within == ["group", "fact"] and len(pairs) == 2
    assert measures.headline_pairs(design())[1] == ["model", "relation"]
    with pytest.raises(ProbeError, match="Take more facts"):
        measures.headline_pairs(design(exposures=STATED[:3]))


def test_contrast_by_hand():
    rows = long(x=[0, 0, 1, 1, 1, 1])
    found = measures.contrast(rows, pd.Index(["a", "b"]), pd.Index(["c", "d", "e"])).iloc[0]
    assert found[["one", "other", "difference", "n one"]].tolist() == [0, 1, -1, 2]


VALUES = long(x=[1, 2, 3, 4], y=[1, 2, 4, 3], z=[4, 3, 2, 1], flat=[1, 1, 1, 1])


def test_agreement_by_hand():
    """x and y differ in one of six pairs; z is x turned round; all pairs of a constant are tied."""
    table = measures.agreement_matrix(VALUES)
    assert table.loc["x", "y"] == pytest.approx(5 / 6) and table.loc["x", "z"] == 0
    assert (table["flat"] == 0.5).all() and np.allclose(table, table.T)
    pairs = measures.agreement_pairs(VALUES, times=50).set_index(["first", "second"])
    assert len(pairs) == 6 and (pairs["n"] == 4).all()
    assert all(pairs.at[pair, "alike"] == table.at[pair] for pair in pairs.index)
    ends = pairs[["alike low", "alike high"]]
    # four facts do not make 0 certain
    assert ends.loc["x", "z"].isna().all() and ends.loc["x", "y"].notna().all()
    again = measures.agreement_matrix(VALUES.sample(frac=1, random_state=0))
    pd.testing.assert_frame_equal(table, again.loc[table.index, table.columns])


def test_models_are_averaged_and_a_fact_without_a_value_is_left_out():
    both = pd.concat([VALUES, long("other", x=[1, 2, 3, 4], y=[4, 3, 2, np.nan], z=[1, 1, 1, 1])])
    table = measures.agreement_matrix(both)
    assert table.loc["x", ["y", "z"]].tolist() == pytest.approx([(5 / 6 + 0) / 2, (0 + 0.5) / 2])


def test_without_ties_a_cut_does_not_contradict_what_was_cut():
    """By hand: 1, 2, 3, 4 cut between 2 and 3 orders four of six pairs, all as the fine one does;
    in reverse none."""
    fine = pd.Series([1.0, 2, 3, 4])
    wide = pd.DataFrame({"fine": fine, "cut": (fine > 2).astype(float), "back": -fine})
    cut = lambda ties: measures.ordered_alike(wide, ties).loc["cut"].tolist()
    with_ties, without = cut(True), cut(False)
    assert with_ties == pytest.approx([5 / 6, 5 / 6, 1 / 6]) and without == [1, 1, 0]
