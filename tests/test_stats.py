"""Correlation, calibration, fits and intervals."""

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from probelib import ProbeError, published, stats

pytestmark = pytest.mark.fast


def test_wilson_by_hand():
    """8 of 10: centre (0.8 + z^2/20) / (1 + z^2/10) = 0.7168, half width 0.2268."""
    assert stats.wilson(8, 10) == pytest.approx((0.4902, 0.9433), abs=1e-4)
    assert stats.wilson(0, 10)[0] == 0 and np.isnan(stats.wilson(0, 0)).all()
    library = [scipy.stats.binomtest(k, 10).proportion_ci(method="wilson") for k in range(11)]
    assert np.allclose(np.transpose(stats.wilson(np.arange(11), 10)), library)
    assert stats.wilson(7, 10) < stats.wilson(7.5, 10) < stats.wilson(8, 10)  # never rounded


def test_pearson_by_hand():
    result = stats.pearson([1, 2, 3, 4], [2, 1, 4, 3])
    assert result["r"] == pytest.approx(0.6) and result["n"] == 4
    assert stats.pearson([1, 2, 3, np.nan], [2, 4, 6, 1])["n"] == 3
    for x, y in (([1, 2], [1, 2]), ([1, 1, 1], [1, 2, 3])):
        assert np.isnan(stats.pearson(x, y)["r"])


def test_bootstrap_of_a_mean():
    values = np.arange(50.0)
    replicates = stats.bootstrap(lambda i: values[i].mean(1), 50, times=4000)
    low, high = stats.percentile_interval(replicates)
    # 1.96 x 14.4 / sqrt(50) = 4.0
    assert (low, high) == pytest.approx((24.5 - 4, 24.5 + 4), abs=0.5)
    assert (stats.bootstrap(lambda i: values[i].mean(1), 50, times=4000) == replicates).all()
    for few in (0, 1):
        assert np.isnan(stats.bootstrap(lambda i: i.mean(1), few, times=3)).all()


def test_mcnemar_by_hand():
    """Three lost, one gained: P(at most 1 of 4 fair coins) x 2 = 10/16."""
    result = stats.mcnemar([1, 1, 1, 0, 1], [0, 0, 0, 1, 1])
    assert (result["lost"], result["gained"]) == (3, 1) and result["p"] == pytest.approx(0.625)
    assert stats.mcnemar([1, 0], [1, 0])["p"] == 1


def test_kendall_by_hand():
    """Phi for two binary vectors, and what is not defined; an example with ties is in the
    docstring."""
    first, second = [1] * 10 + [0] * 17, [1] * 9 + [0] * 18
    assert stats.kendall(first, second)["tau"] == pytest.approx(0.921954, abs=1e-6)
    assert np.isnan(stats.kendall([1, 1, 1], [1, 2, 3])["tau"])
    assert stats.kendall([1, np.nan, 2], [1, 5, 3])["n"] == 2


def test_auc_counts_pairs():
    assert stats.auc([3, 1, 2, 2], [1, 0, 0, 1]) == pytest.approx(3.5 / 4)
    assert np.isnan(stats.auc([1, 2], [1, 1])) and stats.auc([1, 2, np.nan], [0, 1, 1]) == 1


def test_calibration_by_hand():
    """Two bins are used: (0.1, 0.3 -> none right) and (0.9 -> right); ECE = (2 x 0.2 + 1 x 0.1) / 3
    with two bins."""
    table = stats.reliability([0.1, 0.3, 0.9], [0, 0, 1], bins=2)
    assert table["n"].tolist() == [2, 1]
    assert table["probability"].tolist() == pytest.approx([0.2, 0.9])
    assert stats.ece([0.1, 0.3, 0.9], [0, 0, 1], bins=2) == pytest.approx(0.5 / 3)
    assert stats.reliability([1.0], [1])["high"].tolist() == [1.0]


def test_a_replicate_of_tau_is_the_tau_of_a_sample():
    x, y, counts = np.arange(4), np.array([0, 2, 1, 3]), stats.resample_counts(4, 30).astype(int)
    taus = [scipy.stats.kendalltau(x.repeat(w), y.repeat(w)).statistic for w in counts]
    assert stats.kendall_replicates(x, y, 30) == pytest.approx(taus, nan_ok=True)


def test_scaling_fit_reads_a_line():
    """value = 0.1 log10(size) - 0.2, exactly: 0.9 is reached at 10^11."""
    fit = stats.scaling_fit([1e6, 1e7, 1e8, 1e9], [0.4, 0.5, 0.6, 0.7])
    assert fit["b"] == pytest.approx(0.1) and fit["r2"] == pytest.approx(1)
    assert np.log10(fit["size_at"]) == pytest.approx(11)
    noisy = stats.scaling_fit([1e6, 1e7, 1e8, 1e9], [0.42, 0.49, 0.62, 0.69])
    assert noisy["size_low"] < noisy["size_at"] < noisy["size_high"]
    assert noisy["b_low"] < noisy["b"] < noisy["b_high"]
    logit = stats.scaling_fit([1e6, 1e7, 1e8], [0.1, 0.5, 0.9], "logit")
    assert np.log10(logit["size_at"]) == pytest.approx(8)
    falling = stats.scaling_fit([1e6, 1e7, 1e8, 1e9], [0.71, 0.6, 0.5, 0.39])
    assert np.isnan([falling[end] for end in ("size_at", "size_low", "size_high")]).all()
    assert np.isnan(stats.scaling_fit([1e6], [0.4])["b"])
    with pytest.raises(ProbeError, match="logit"):
        stats.scaling_fit([1, 2], [0, 1], "logit")


def test_the_interval_of_a_far_size_contains_it():
    """A shallow line reaches 0.9 at 10^124; its interval is of sizes whose prediction is within t
    standard errors of 0.9, however far they are, and all sizes where the slope may be 0."""
    sizes, values = np.array([1e6, 2e6, 4e6, 8e6]), np.array([0.500, 0.5011, 0.5019, 0.5031])
    fit = stats.scaling_fit(sizes, values)
    assert fit["size_low"] < fit["size_at"] < fit["size_high"] < np.inf
    x, residual = np.log10(sizes), values - fit["a"] - fit["b"] * np.log10(sizes)
    spread = ((x - x.mean()) ** 2).sum()
    for end in np.log10([fit["size_low"], fit["size_high"]]):
        error = np.sqrt((residual**2).sum() / 2 * (1 / 4 + (end - x.mean()) ** 2 / spread))
        off = fit["a"] + fit["b"] * end - 0.9
        assert abs(off) / error == pytest.approx(scipy.stats.t.ppf(0.975, 2))
    loose = stats.scaling_fit(sizes, [0.5, 0.7, 0.45, 0.65])
    assert loose["b_low"] < 0 < loose["b"]
    assert (loose["size_low"], loose["size_high"]) == (0, np.inf)


def test_draws_of_a_size_leave_out_what_is_undefined():
    """A fact that a model does not define is left out of that model's mean, as in ``mean_band``."""
    sizes, table = [1e6, 1e7, 1e8], np.tile([0.4, 0.5, 0.6], (20, 1))
    holed = table.copy()
    holed[3, 1] = holed[4] = np.nan
    replicates = stats.scaling_replicates(table, sizes, times=20)
    assert stats.scaling_replicates(holed, sizes, times=20) == pytest.approx(replicates)
    sure = np.array([[0.0, 1.0], [1.0, 1.0]])  # a mean of 1 has no logit: not "never"
    assert np.isnan(stats.scaling_replicates(sure, [1e6, 1e7], "logit", times=9)).all()
    assert np.isnan(stats.scaling_replicates(np.empty((0, 3)), sizes, times=4)).all()
    with pytest.raises(ProbeError, match="kind of fit 'quadratic'"):
        stats.scaling_replicates(table, sizes, "quadratic")


def test_no_fact_has_no_number():
    none = np.empty(0)
    replicates = stats.kendall_replicates(none, none, 5)
    assert len(replicates) == 5 and np.isnan(replicates).all()
    assert np.isnan(stats.mean_band(np.empty((0, 2)))["mean"]).all()


def test_calibrate_takes_the_better_configuration_and_the_cheaper_of_equals():
    rating = np.arange(12.0)
    values = pd.DataFrame({"constant": 1.0, "cheap": rating, "dear": rating * 2, "wrong": -rating})
    table = stats.calibrate(values, rating)
    assert table["configuration"].tolist() == ["cheap"] * 3 and table["tau"].tolist() == [1, 1, 1]
    assert table["n"].sum() == 12 and (table["undefined"] == 1).all()
    with pytest.raises(ProbeError, match="1 of 12 facts"):
        stats.calibrate(values.assign(cheap=[np.nan, *rating[1:]]), rating)


@settings(deadline=None)
@given(st.lists(st.tuples(st.floats(-5, 5), st.floats(-5, 5)), min_size=3, max_size=25))
def test_tau_and_auc_know_only_the_order(pairs):
    x, y = map(np.array, zip(*pairs, strict=True))
    x, y = np.round(x, 2), np.round(y, 2)
    tau = pytest.approx(stats.kendall(x, y)["tau"], nan_ok=True)
    assert stats.kendall(3 * x + 1, y)["tau"] == tau and stats.kendall(y, x)["tau"] == tau
    assert stats.auc(x, y > 0) == pytest.approx(1 - stats.auc(x, y <= 0), nan_ok=True)


def test_many_correlations_at_once_equal_one_at_a_time():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(5, 6)), rng.normal(size=(5, 6))
    x[0, 2], x[1, :4], y[2] = np.nan, np.nan, 1.0
    one_by_one = [stats.pearson(a, b)["r"] for a, b in zip(x, y, strict=True)]
    assert stats.pearson_rows(x, y) == pytest.approx(one_by_one, nan_ok=True)
    assert np.isnan(one_by_one[1]) and np.isnan(one_by_one[2])


def test_replicates_of_pearson_are_those_of_resampled_clusters():
    generator = np.random.default_rng(3)
    clusters = generator.integers(0, 5, 40)
    x, y = generator.normal(size=(2, 40)) + clusters
    x[3], y[clusters == 4] = np.nan, np.nan  # a pair, and a whole cluster, left out
    names = list(dict.fromkeys(clusters[clusters != 4].tolist()))
    counts = stats.resample_counts(4, 30, seed=1).astype(int)
    expected = []
    for count in counts:
        drawn = zip(names, count, strict=True)
        rows = np.concatenate([np.tile(np.flatnonzero(clusters == c), n) for c, n in drawn])
        expected.append(stats.pearson(x[rows], y[rows])["r"])
    assert stats.pearson_replicates(x, y, clusters, 30, 1) == pytest.approx(expected)


def test_replicates_of_pearson_are_undefined_where_a_sample_is_constant():
    flat = stats.pearson_replicates([0.1, 0.1, 0.1, 0.7], [1, 2, 3, 4], list("aaab"), 200)
    assert np.isnan(flat).any() and np.isfinite(flat).any()  # samples of "a" alone are constant
    assert np.isnan(stats.pearson_replicates([1, 2, 3], [1, 2, 4], list("aaa"), 5)).all()
    assert np.isnan(stats.pearson_replicates([np.nan] * 3, [1, 2, 4], list("abc"), 5)).all()


def test_the_interval_of_a_mean_contains_it_and_narrows():
    low, high = stats.mean_interval([0, 1] * 50 + [np.nan])
    assert 0.39 < low < 0.5 < high < 0.61
    for unspread in ([], [0.3], [0.3, np.nan], [0.3] * 9):  # no draw could differ
        assert np.isnan(stats.mean_interval(unspread)).all()


def test_holm_on_the_papers_table():
    """Of the 20 correlations of table 11, 19 are significant as printed and 14 after Holm (p from
    r, n = 12)."""
    r = published.table("monitor/table11")["pearson_r"].to_numpy()
    p = 2 * scipy.stats.t.sf(np.abs(r) * np.sqrt(10 / (1 - r**2)), 10)
    assert (p < 0.05).sum() == 19 and (stats.holm(p) < 0.05).sum() == 14
    assert stats.holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    missing = pytest.approx([np.nan, 0.02, 0.02], nan_ok=True)
    assert stats.holm([np.nan, 0.02, 0.01]).tolist() == missing


def test_partial_correlation_of_the_papers_table():
    """MONITOR and accuracy given probs, from the printed table 4: -0.666, p = .025."""
    rows = published.table("monitor/table4")
    result = stats.partial(rows["MONITOR"], rows["avg_acc"], rows["probs"])
    assert (result["r"], result["p"]) == pytest.approx((-0.666, 0.025), abs=1e-3)
    assert result["low"] < result["r"] < result["high"] and result["n"] == 12


def test_partial_correlation_is_none_where_nothing_is_left():
    assert np.isnan(stats.partial([1, 2, 3, 4], [1, 3, 2, 5], [2, 4, 6, 8])["r"])
    assert np.isnan(stats.partial([1, 2, 3], [1, 3, 2], [2, 4, 7])["r"])


def test_draws_that_differ_by_rounding_alone_have_no_interval():
    """0.1 + 0.2 is not 0.3 to a float, and the two bound nothing."""
    assert np.isnan(stats.percentile_interval(np.array([0.1 + 0.2, 0.3] * 50))).all()
    assert stats.percentile_interval(np.array([0.1, 0.3] * 50)) == (0.1, 0.3)


def test_last_bits_decide_no_rank():
    """Scores of another processor differ in the last bits: ties stay ties, and every rank statistic
    stays as it was."""
    rng = np.random.default_rng(0)
    score, rating = rng.integers(0, 5, 40) / 7, rng.integers(0, 4, 40).astype(float)
    moved = score * (1 + rng.choice([-1e-7, 0, 1e-7], 40))
    assert len(set(moved)) > len(set(score)) == len(set(stats.levelled(moved)))
    assert stats.kendall(moved, rating) == stats.kendall(score, rating)
    assert stats.auc(moved, rating > 1) == stats.auc(score, rating > 1)
    replicates = [stats.kendall_replicates(own, rating, 50) for own in (moved, score)]
    assert (replicates[0] == replicates[1]).all()


def test_heterogeneity_by_hand_and_of_nothing():
    """Scores 0, 1 with errors of 0.1: variance 0.5 / 1.5 of four scores, less 0.01."""
    found = stats.heterogeneity([0, 1, 0, 1], [0.1] * 4)
    assert found["value"] == pytest.approx(np.sqrt(1 / 3 - 0.01)) and found["low"] > 0.4
    assert stats.heterogeneity([0.5] * 8, [0.1] * 8)["value"] == 0
    assert np.isnan(stats.heterogeneity([0, 1], [0.1] * 2)["low"])


def test_a_correlation_given_a_third_column_holds_without_each_family():
    """One family carries the correlation: without it nothing is decided."""
    draw = np.random.default_rng(1)
    x, z, family = draw.normal(size=20), draw.normal(size=20), np.repeat(["a", "b"], 10)
    y = np.where(family == "a", 4 * x, draw.normal(size=20)) + z
    whole, held = stats.partial(x, y, z), stats.pearson_over_models(x, y, family, z)
    alone = stats.partial(x[10:], y[10:], z[10:])
    assert held["r"] == whole["r"] and whole["low"] > 0
    assert held["low"] == alone["low"] < 0 and held["high"] >= whole["high"]
