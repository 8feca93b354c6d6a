"""The audit: enough claims, each with its source, and verdicts that follow from the numbers."""

import math

import numpy as np
import pytest

from probelib import published
from probelib.beyond import audit
from probelib.beyond.audit import CAVEAT, FAILS, HOLDS, VERDICTS, claims, distractors, grapheval, monitor, zplke
from probelib.errors import ProbeError


@pytest.fixture(scope="module")
def findings():
    return audit.table()


def test_every_claim_has_its_place_and_a_result(findings):
    assert len(findings) >= 60 and findings["verdict"].isin(VERDICTS).all()
    assert findings.groupby("paper").size().min() >= 15
    assert (findings[["where", "claim", "published", "recomputed", "why"]].map(len) > 2).all(axis=None)
    assert not findings.duplicated(["paper", "where", "claim"]).any()
    assert findings["where"].str.contains(r"[Tt]able|[Ff]igure|section|App|^\d|Abstract|^A\.").all()


def test_by_hand(findings):
    """Three numbers that a pocket calculator gives."""
    assert monitor.saving()[0] == f"{42.7 / 14.4:.3f}" and monitor.saving()[1] == CAVEAT
    z2 = 1.959964**2
    assert distractors.blunders()[:2] == (f"0 of 77 gives (0.0, {100 * z2 / (77 + z2):.1f})", FAILS)
    t = published.table("monitor/table6")
    r = np.corrcoef(t["MONITOR"], t["std"])[0, 1]
    assert monitor.correlation_with_spread()[1] == HOLDS and f"{r:.3f}" in monitor.correlation_with_spread()[0]
    assert math.isclose(2 * 16915848 / 4928232, float(grapheval.degree()[0].split("= ")[1]), abs_tol=5e-4)


def test_not_all_that_is_more_sensitive_is_continuous():
    """Table 2 defines the judge by yes or no, as ApprOpt is; table 4 prints 0.58 for it, 0.47 to 0.63 for what is continuous."""
    _, decided, why = distractors.robustness()
    assert decided == audit.OPEN and "0.47 to 0.63" in why
    assert "The judge says yes or no, too, and gets 0.58." in why


def test_a_verdict_follows_from_the_table(monkeypatch):
    """With tables corrected in the way the finding says, the claim holds."""
    real = monitor.table

    def corrected(number):
        t = real(number)
        return t.assign(MONITOR=t["MONITOR"] * 20 / 21) if number == "table10" else t

    assert monitor.overall_is_the_mean()[1] == FAILS
    monkeypatch.setattr(monitor, "table", corrected)
    assert monitor.overall_is_the_mean()[1] == HOLDS


def test_a_wrong_number_is_found(monkeypatch):
    real = zplke.table
    monkeypatch.setattr(
        zplke, "table", lambda n: real(n).iloc[::-1].reset_index(drop=True) if n == "table8" else real(n)
    )
    assert zplke.sorted_leaderboard()[1] == FAILS


def test_bounds_of_equation_2():
    """7B of table 2 by hand: Correct <= p_true, Truthful in [1 - 2 p_false, 1 - p_false]."""
    row = grapheval.bounds().loc["LLaMA-2-7B"]
    assert row[["correct_high", "truthful_low", "truthful_high"]].round(3).tolist() == [0.475, 0.228, 0.614]
    assert row[["informative_low", "informative_high"]].round(3).tolist() == [0.723, 0.861]


@pytest.mark.parametrize(
    ("value", "printed", "decimals", "right"),
    [
        (0.8467, 0.847, 3, True),
        (0.8467, 0.846, 3, True),  # cut off
        (-0.8467, -0.846, 3, True),
        (0.8467, 0.845, 3, False),
        (0.8463, 0.847, 3, False),  # within a unit, and neither
        (0.00046, 0.001, 3, False),
        (0.0005, 0.001, 3, True),
        (-0.0004, 0.0, 3, True),
        (2.9652, 2.97, 2, True),
        (math.nan, 0.1, 3, False),
    ],
)
def test_a_printed_number_is_rounded_or_cut_off(value, printed, decimals, right):
    assert claims.rounds(value, printed, decimals) is right


def test_all_three_columns_are_whole_counts(monkeypatch):
    """Vicuna-7b's 99.67 lies between 927/930 = 99.677 and 928/931 = 99.678: cut off. A value that no count gives fails."""
    found, said, _ = monitor.table3_denominator()
    assert said == CAVEAT and "6 of 12 (base_QA), 11 of 12 (pos_context), 12 of 12 (neg_context)" in found
    assert found.endswith("of 930 only: 6; only if cut off rather than rounded: Vicuna-7b 99.67")
    real = monitor.table
    monkeypatch.setattr(monitor, "table", lambda number: real(number).replace({"pos_context": {99.67: 99.74}}))
    assert monitor.table3_denominator()[1] == FAILS


def test_papers_can_be_chosen(findings):
    assert set(audit.table(["zplke"])["paper"]) == {"zplke"}
    with pytest.raises(ProbeError, match="unknown paper 'monitr'; did you mean monitor"):
        audit.table(["monitr"])
    with pytest.raises(ProbeError, match="a list of texts"):
        audit.table("monitor")
    assert findings["paper"].unique().tolist() == audit.PAPERS


def test_what_the_table_cannot_tell_apart_is_not_called_wrong(findings):
    """GraphEval, table 2: three values lie outside the bounds in one reading of the counts, and inside in another."""
    open_claims = findings[(findings["paper"] == "grapheval") & findings["why"].str.contains("cannot tell these apart")]
    assert len(open_claims) == 3 and (open_claims["verdict"] == audit.OPEN).all()
    assert not findings[findings["verdict"] == FAILS]["why"].str.contains("cannot tell").any()


def test_a_value_outside_its_bounds_does_not_hold_with_a_caveat(findings):
    outside = findings[findings["recomputed"].str.contains(r"\d outside")]
    names = (
        outside.loc[outside["why"].str.contains("neither bears"), "computed by"].str.removeprefix("grapheval.").tolist()
    )
    assert names == ["correct_7b", "informative_7b", "truthful_70b", "truthful_gemma_2b"]
    assert (outside["verdict"] == audit.OPEN).all() and len(outside) == 7


def test_every_verdict_names_the_code_that_computes_it(findings):
    assert not findings["computed by"].duplicated().any()
    assert "7.18e-7" in audit.code_of("grapheval.density")
    with pytest.raises(ProbeError, match="did you mean grapheval.density"):
        audit.code_of("grapheval.densty")
