"""Agreement of measures: by hand, and what must not matter."""

import numpy as np
import pandas as pd
import pytest
import scipy

from probelib import stats
from probelib.beyond import measures


def long(model="m", **measures) -> pd.DataFrame:
    facts = [f"f{i}" for i in range(len(next(iter(measures.values()))))]
    parts = [pd.DataFrame({"model": model, "fact": facts, "measure": m, "value": v}) for m, v in measures.items()]
    return pd.concat(parts, ignore_index=True).astype({"value": float})


VALUES = long(x=[1, 2, 3, 4], y=[1, 2, 4, 3], z=[4, 3, 2, 1], flat=[1, 1, 1, 1])


def test_by_hand():
    """x and y differ in one of six pairs; z is x turned round; all pairs of a constant are tied."""
    table = measures.agreement_matrix(VALUES)
    assert table.loc["x", "y"] == pytest.approx(5 / 6) and table.loc["x", "z"] == 0
    assert (table["flat"] == 0.5).all() and np.allclose(table, table.T)
    pairs = measures.agreement_pairs(VALUES, times=50)
    listed = measures.upper_triangle(table)
    assert len(listed) == 6 and pairs["alike"].tolist() == listed["alike"].tolist() and (pairs["n"] == 4).all()
    ends = pairs.set_index(["first", "second"])[["low", "high"]]
    assert ends.loc["x", "z"].isna().all() and ends.loc["x", "y"].notna().all()  # four facts do not make 0 certain


def test_models_are_averaged_and_a_fact_without_a_value_is_left_out():
    both = pd.concat([VALUES, long("other", x=[1, 2, 3, 4], y=[4, 3, 2, np.nan], z=[1, 1, 1, 1])])
    table = measures.agreement_matrix(both)
    assert table.loc["x", "y"] == pytest.approx((5 / 6 + 0) / 2) and table.loc["x", "z"] == (0 + 0.5) / 2


def test_a_cut_never_agrees_more():
    """A binary twin agrees less with everything, itself included; by tau-b it agrees fully with itself."""
    draw = np.random.default_rng(0)
    fine, other = draw.normal(size=(2, 200))
    other = fine + 0.3 * other
    table = measures.agreement_matrix(long(fine=fine, cut=fine > 0, other=other, other_cut=other > 0))
    assert table.loc["cut", "other_cut"] < table.loc["cut", "other"] < table.loc["fine", "other"]
    assert table.loc["cut", "cut"] < 0.76 and table.loc["fine", "fine"] == 1


def test_without_ties_a_cut_does_not_contradict_what_was_cut():
    """By hand: 1, 2, 3, 4 cut between 2 and 3 orders four of six pairs, all as the fine one does; in reverse none."""
    fine = pd.Series([1.0, 2, 3, 4])
    wide = pd.DataFrame({"fine": fine, "cut": (fine > 2).astype(float), "back": -fine})
    with_ties, without = (measures.ordered_alike(wide, ties).loc["cut"].tolist() for ties in (True, False))
    assert with_ties == pytest.approx([5 / 6, 5 / 6, 1 / 6]) and without == [1, 1, 0]


def test_ties_lower_the_rank_covariance_to_its_mean_over_broken_ties():
    draw = np.random.default_rng(1)
    x = draw.normal(size=300)
    y = (x + draw.normal(size=300) > 0).astype(float)
    ranks = pd.DataFrame({"x": x, "y": y}).rank(pct=True)
    broken = [np.corrcoef(pd.Series(x).rank(), np.argsort(np.lexsort((draw.random(300), y))))[0, 1] for _ in range(400)]
    assert measures.rank_covariance(ranks).loc["x", "y"] == pytest.approx(np.mean(broken), abs=0.01)


def test_groups():
    near = long(a=[1, 2, 3, 4, 5, 6], b=[1, 2, 3, 4, 6, 5], c=[3, 1, 6, 2, 5, 4], d=[3, 1, 6, 2, 4, 5])
    table = measures.agreement_matrix(near)
    order = measures.clustered_order(table)
    assert abs(order.index("a") - order.index("b")) == 1 and abs(order.index("c") - order.index("d")) == 1
    groups = measures.clusters(table).set_index("measure")["group"]
    assert groups["a"] == groups["b"] != groups["c"] == groups["d"]
    assert measures.clusters(table.loc[["a"], ["a"]])["within"].isna().all()


def test_what_measures_share_with_popularity_is_taken_out():
    """Two measures that are popularity plus their own noise agree; given popularity they do not."""
    draw = np.random.default_rng(0)
    popular = draw.normal(size=400)
    values = long(
        x=popular + 0.3 * draw.normal(size=400), y=popular + 0.3 * draw.normal(size=400), z=draw.normal(size=400)
    )
    given = pd.DataFrame({"popularity": popular}, index=[f"f{i}" for i in range(400)])
    table = measures.partial_agreement(values[values["measure"] != "z"], given).set_index("measure")
    assert table.loc["x", "with the others"] > 0.8 and abs(table.loc["x", "given them"]) < 0.15
    assert table.loc["x", "popularity"] > 0.9 and table.loc["x", "n"] == 400
    row = table.loc["x"]
    assert row["change"] == pytest.approx(row["given them"] - row["with the others"]) and row["change high"] < -0.5
    assert (
        row["given them low"] < 0 < row["given them high"]
        and 0.75 < row["with the others low"] < row["with the others"]
    )


def test_the_jackknife_interval_of_a_mean_is_students():
    """Leaving out one of n values gives t s / sqrt(n), in closed form; one group has no interval."""
    x = np.array([3.0, 1.0, 4.0, 1.0, 5.0])
    found = stats.jackknife_interval(x.mean(), np.array([np.delete(x, i).mean() for i in range(5)]))
    assert found == pytest.approx(scipy.stats.t.interval(0.95, 4, x.mean(), scipy.stats.sem(x)))
    assert np.isnan(stats.jackknife_interval(np.array([1.0]), np.array([[1.0]]))).all()


def test_disagreements_by_hand():
    """On f3 one measure ranks highest and the other lowest."""
    found = measures.disagreements(long(x=[1, 2, 3, 9], y=[2, 3, 4, 1]), top=1).iloc[0]
    assert (found["fact"], found["highest"], found["lowest"]) == ("f3", "x", "y")
    assert (found["rank highest"], found["rank lowest"]) == (1.0, 0.0)
    assert (found["measures"], found["facts"]) == (2, 4)
    assert found["median spread"] == pytest.approx(2**-0.5 / 3)  # three facts differ by one rank of three
    assert measures.disagreements(long(x=[1, 1, 1, 1], y=[1, 2, 3, 4])).empty


def test_the_order_of_facts_does_not_matter():
    shuffled = VALUES.sample(frac=1, random_state=0)
    table = measures.agreement_matrix(VALUES)
    again = measures.agreement_matrix(shuffled).loc[table.index, table.columns]
    pd.testing.assert_frame_equal(table, again)


def test_means_agree_with_an_interval_over_relations():
    """x and y order 5 of 6 pairs alike; a replicate that keeps relations 0 and 1 alone has one pair, ordered alike."""
    wide = pd.DataFrame({"x": [1.0, 2, 3, 4], "y": [1.0, 2, 4, 3], "z": [1.0, np.nan, 3, 4]})
    found = measures.alike_in_means(wide, pd.Index([0, 1, 2, 3]), times=200).set_index(["first", "second"])
    assert found["alike"].round(3).to_dict() == {("x", "y"): 0.833, ("x", "z"): 1, ("y", "z"): 0.667}
    assert found.loc[("x", "y"), "low"] < 0.833 < found.loc[("x", "y"), "high"]
    alone = measures._alike_replicates(
        wide[["x", "y"]].to_numpy(), np.array([[1, 1, 0, 0], [0, 0, 2, 1], [1, 1, 1, 1]])
    )
    assert alone.round(3).tolist() == [1, 0, 0.833]
