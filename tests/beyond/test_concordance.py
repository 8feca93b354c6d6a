"""Concordance: by hand, recomputed by loops, and what ties can and cannot do."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from probelib import stats
from probelib.beyond import concordance as c

# two sisters, two facts of one relation: each fact is taught to one of them
ROWS = [("s1", "g", "x", 64), ("s1", "g", "y", 0), ("s2", "g", "x", 0), ("s2", "g", "y", 32)]
SISTERS = pd.DataFrame(ROWS, columns=["model", "group", "fact", "exposures"]).assign(relation="P")


def long(design: pd.DataFrame, **measures) -> pd.DataFrame:
    """Long values: one list per measure, in the order of the design."""
    rows = design[["model", "fact"]]
    parts = [rows.assign(measure=name, value=list(v)) for name, v in measures.items()]
    return pd.concat(parts, ignore_index=True).astype({"value": float})


def share(values, design, pairs) -> dict[str, float]:
    """measure -> concordance."""
    found = c.concordance(values, design, pairs, times=3)
    return dict(zip(found["measure"], found["concordance"], strict=True))


def one_model(exposures: list[int]) -> pd.DataFrame:
    facts = [f"f{i}" for i in range(len(exposures))]
    rows = pd.DataFrame({"fact": facts, "exposures": exposures})
    return rows.assign(model="m", group="m", relation="P")[c.DESIGN]


def random_design(seed: int, facts: int = 24) -> pd.DataFrame:
    """Two groups of four sisters; levels rotate by a Latin square."""
    rows = [
        (f"{g}-{s}", g, f"f{i}", f"P{i % 3}", [0, 4, 32, 128][(i // 3 + s) % 4])
        for g in ("small", "large") for s in range(4) for i in range(facts)
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=c.DESIGN).sample(frac=1, random_state=seed, ignore_index=True)


def test_across_sisters_by_hand():
    """x: .9 (taught) against .4; y: .3 (taught) against .3, a tie: (1 + 1/2) / 2."""
    pairs = c.pairs_of(SISTERS, c.SISTERS)
    assert pairs.to_numpy().tolist() == [[0, 2], [3, 1]]
    found = c.concordance(long(SISTERS, m=[0.9, 0.3, 0.4, 0.3]), SISTERS, pairs).iloc[0]
    assert found[["concordance", "pairs", "facts", "models"]].tolist() == [0.75, 2, 2, 2]


def test_within_a_relation_by_hand():
    """Taught .2, .8 against never .2, .5: a tie, a loss and two wins of four; doses: 1, 32, 64
    against what is lower."""
    design = one_model([0, 0, 1, 32, 64])
    values = long(design, m=[0.2, 0.5, 0.1, 0.2, 0.8])
    assert share(values, design, c.pairs_of(design, c.FACTS)) == {"m": 2.5 / 4}
    pairs = c.pairs_of_doses(design)  # all but the two never-taught: 9
    assert len(pairs) == 9 and share(values, design, pairs)["m"] == pytest.approx(5.5 / 9)


@pytest.mark.parametrize("seed", range(3))
def test_an_independent_recomputation_with_loops_agrees(seed):
    """All three kinds, three measures (fine, coarse, with missing values), in plain loops over
    dictionaries."""
    design, draw = random_design(seed), np.random.default_rng(seed)
    fine = np.log1p(design["exposures"]) + draw.normal(0, 2, len(design))
    holes = np.where(draw.random(len(design)) < 0.2, np.nan, fine)
    values = long(design, fine=fine, coarse=fine > 2, holes=holes).dropna()
    known = {(r.measure, r.model, r.fact): r.value for r in values.itertuples()}
    rows = list(design.itertuples(index=False))
    taught = lambda a, b: a.exposures >= 32 and b.exposures == 0
    one_model = lambda a, b: (a.model, a.relation) == (b.model, b.relation)
    rules = {
        "sisters": lambda a, b: (a.group, a.fact) == (b.group, b.fact) and taught(a, b),
        "facts": lambda a, b: one_model(a, b) and taught(a, b),
        "doses": lambda a, b: one_model(a, b) and a.exposures > b.exposures,
    }
    built = {"sisters": c.pairs_of(design, c.SISTERS), "facts": c.pairs_of(design, c.FACTS)}
    built["doses"] = c.pairs_of_doses(design)
    for name, rule in rules.items():
        found = share(values, design, built[name])
        for measure in ("fine", "coarse", "holes"):
            won = []
            for a in rows:
                for b in rows:
                    keys = [(measure, r.model, r.fact) for r in (a, b)]
                    if rule(a, b) and all(key in known for key in keys):
                        x, y = (known[key] for key in keys)
                        won.append(1.0 if x > y else 0.5 if x == y else 0.0)
            assert found[measure] == pytest.approx(sum(won) / len(won), abs=1e-9)


def test_replicates_are_those_of_a_resampled_design():
    """The weighted form against a design whose facts are repeated as often as they were drawn."""
    design = one_model([0, 0, 0, 64, 64, 32])
    values = np.array([0.1, 0.5, 0.3, 0.3, 0.9, 0.2])
    pairs = c.pairs_of(design, c.FACTS)
    won = c.ordered(values[:, None], pairs)
    found = c._resampled(won, design, pairs, 30, seed=5).ravel()
    expected = []
    for weight in stats.resample_counts(6, 30, 5).astype(int):
        taught, never = np.repeat(values[3:], weight[3:]), np.repeat(values[:3], weight[:3])
        expected.append(stats.auc(np.r_[taught, never], np.arange(6) < len(taught)))
    np.testing.assert_allclose(found, expected)


def test_the_order_of_rows_and_a_monotone_change_do_not_matter():
    design = random_design(0)
    fine = np.log1p(design["exposures"]) + np.random.default_rng(1).normal(0, 2, len(design))
    values = long(design, x=fine, y=np.exp(fine))
    found = c.concordance(values, design, c.pairs_of(design, c.SISTERS))
    assert found["concordance"].nunique() == 1 and found["concordance low"].nunique() == 1
    assert found["behind"].dropna().item() == 0 and np.isnan(found["behind low"]).all()
    again = design.sample(frac=1, random_state=9, ignore_index=True)
    shuffled = values.sample(frac=1, random_state=2)
    turned = c.concordance(shuffled, again, c.pairs_of(again, c.SISTERS))["concordance"]
    assert turned.tolist() == pytest.approx(found["concordance"].tolist(), abs=1e-12)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=2, max_size=7), st.data())
def test_cutting_and_rounding_never_gain_where_higher_means_more_taught(counts, data):
    """Taught and never-taught facts per level, levels in the order of their share of taught ones;
    then levels are merged."""
    counts = sorted((pair for pair in counts if sum(pair)), key=lambda pair: pair[0] / sum(pair))
    if not sum(t for t, _ in counts) or not sum(n for _, n in counts):
        return
    level = np.repeat(np.arange(len(counts)), [sum(pair) for pair in counts])
    taught = np.concatenate([[True] * t + [False] * n for t, n in counts])
    steps = [data.draw(st.booleans()) for _ in counts[1:]]  # any monotone step function
    merged = np.cumsum([0, *steps])[level]
    assert stats.auc(merged, taught) <= stats.auc(level, taught) + 1e-12
    design = one_model(np.where(taught, 64, 0).tolist())
    both = share(long(design, fine=level, coarse=merged), design, c.pairs_of(design, c.FACTS))
    assert both["fine"] == pytest.approx(stats.auc(level, taught))
    assert both["coarse"] <= both["fine"] + 1e-12


def test_placebo_and_permutation_find_nothing_and_a_real_effect_is_found():
    design = random_design(1, facts=60)
    fine = np.log1p(design["exposures"]) + np.random.default_rng(3).normal(0, 2, len(design))
    values = long(design, fine=fine)
    placebo = c.concordance(values, design, c.placebo_pairs(design, ["model", "relation"])).iloc[0]
    assert placebo["concordance low"] < 0.5 < placebo["concordance high"]
    pairs = c.pairs_of(design, c.SISTERS)
    found = c.permutation_test(values, design, pairs, ["group", "fact"], times=99).iloc[0]
    assert found["p"] == 0.01 and abs(found["shuffled"] - 0.5) < 0.03 and found["concordance"] > 0.7


def test_coarse_twins():
    design = one_model(list(range(40)))
    values = long(design, fine=range(40), binary=[0, 1] * 20)
    twins = c.coarse_twins(values)
    cut, rounded, broken = twins.values()
    assert [set(twin["measure"]) for twin in twins.values()] == [{"fine"}, {"fine"}, {"binary"}]
    assert cut["value"].sum() == 20 and rounded["value"].nunique() == 10
    broken = broken.set_index("fact")["value"]
    assert broken.nunique() == 40 and broken[1::2].min() > broken[0::2].max()


def test_ties_are_broken_without_moving_unequal_values_between_sisters():
    """Within the second sister 0.2 ranks higher than 0.3 does in the first; it must stay below
    it."""
    values = pd.DataFrame({"model": list("aaabbb"), "fact": list("fghfgh"), "measure": "m"})
    values["value"] = [0.3, 0.4, 0.4, 0.1, 0.1, 0.2]
    broken = c.coarse_twins(values)["ties broken at random"]["value"].tolist()
    assert len(set(broken)) == 6 and broken[5] == 2 and broken[0] == 3
    assert set(broken[3:5]) == {0, 1} and set(broken[1:3]) == {4, 5}


def test_two_measures_together_are_better_and_a_copy_adds_nothing():
    design = random_design(2, facts=60)
    draw, truth = np.random.default_rng(4), (design["exposures"] >= 32).to_numpy()
    x, y = (truth + draw.normal(0, 1.5, len(design)) for _ in range(2))
    values = long(design, control=x, other=y, copy=2 * x)
    pairs = c.pairs_of(design, c.FACTS)
    found = c.added(values, design, pairs, "control").set_index("measure")
    assert found.loc["other", "added"] > 0.02 and abs(found.loc["copy", "added"]) < 0.01
    oracle = c.combine(values, design, ["control", "other"], "oracle")
    assert next(iter(share(pd.concat([values, oracle]), design, pairs))) == "oracle"


def test_a_change_is_paired():
    design = one_model([0, 0, 64, 64])
    before, after = long(design, m=[0.1, 0.2, 0.3, 0.4]), long(design, m=[0.1, 0.35, 0.3, 0.4])
    found = c.change(before, after, design, c.pairs_of(design, c.FACTS)).iloc[0]
    assert (found["before"], found["after"], found["change"]) == (1.0, 0.75, -0.25)
