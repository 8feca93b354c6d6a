"""Measures over groups of facts and against each other: by hand, and what must not matter."""

import numpy as np
import pandas as pd
import pytest

from probelib.beyond import measures


def long(model="m", **named) -> pd.DataFrame:
    """Long values: one list a measure, of the facts a, b, c, ..."""
    facts = list("abcdefghijklmnop")[: len(next(iter(named.values())))]
    rows = pd.DataFrame(named, dtype=float).assign(model=model, fact=facts)
    return rows.melt(["model", "fact"], var_name="measure")


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
