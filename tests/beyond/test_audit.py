"""The audit: enough claims, each with its source, and verdicts that follow from the numbers."""

import math

import numpy as np
import pytest

from probelib import published
from probelib.beyond import audit
from probelib.beyond.audit import CAVEAT, FAILS, HOLDS, OPEN, VERDICTS, finding, monitor, verdicts
from probelib.beyond.audit import zplke as zplke_checks
from probelib.errors import ProbeError


@pytest.fixture(scope="module")
def findings():
    return audit.table()


def test_every_claim_has_its_place_and_a_verdict(findings):
    assert len(findings) == 113 and findings["verdict"].isin(VERDICTS).all()
    assert findings["paper"].unique().tolist() == list(audit.PAPERS)
    texts = findings[["where", "claim", "published", "statistic", "why"]]
    assert texts.map(lambda text: isinstance(text, str) and len(text) > 2).all(axis=None)
    assert not findings.duplicated(["paper", "where", "claim"]).any()
    assert findings["verdict"].value_counts()[[HOLDS, CAVEAT, FAILS, OPEN]].tolist() == [
        47,
        28,
        21,
        17,
    ]


def test_every_check_belongs_to_a_claim():
    """A function that returns numbers and a verdict is the check of some claim."""
    names = {(n.split(".")[0], one.check or n.split(".")[1]) for n, one in audit.claims().items()}
    for paper, module in audit.PAPERS.items():
        own = {
            n: f for n, f in vars(module).items() if getattr(f, "__module__", "") == module.__name__
        }
        checks = {n for n, f in own.items() if f.__annotations__["return"] is verdicts.Finding}
        assert {n for n in checks if n[0] != "_"} == {name for p, name in names if p == paper}


def test_by_hand():
    """Numbers that a pocket calculator gives."""
    numbers, found = finding("monitor.saving")
    assert numbers["ratio"] == 42.7 / 14.4 and found == CAVEAT
    z2 = 1.959964**2
    numbers, found = finding("distractors.blunders")
    assert (
        numbers["upper end, %"] == pytest.approx(100 * z2 / (77 + z2), abs=1e-4) and found == FAILS
    )
    t = published.table("monitor/table6")
    numbers, found = finding("monitor.correlation_with_spread")
    assert (
        numbers["r"] == pytest.approx(np.corrcoef(t["MONITOR"], t["std"])[0, 1]) and found == HOLDS
    )
    assert finding("grapheval.degree")[0]["degree"] == pytest.approx(2 * 16915848 / 4928232)
    numbers, found = finding("distractors.robustness")
    assert numbers["LLM-as-a-judge"] == 0.58 and numbers["Probability"] == 0.63 and found == OPEN


def test_bounds_of_equation_2(findings):
    """7B of table 2 by hand: Correct <= p_true, Truthful in [1 - 2 p_false, 1 - p_false]. A value
    outside its bounds is never called wrong."""
    row = audit.grapheval.bounds().loc["LLaMA-2-7B"].round(3)
    assert row[["correct_high", "truthful_low", "truthful_high"]].tolist() == [0.475, 0.228, 0.614]
    assert row[["informative_low", "informative_high"]].tolist() == [0.723, 0.861]
    own = findings[findings["recomputed"].str.contains("outside by [0-9.]*[1-9]", regex=True)]
    assert len(own) == 7 and (own["verdict"] == OPEN).all()
    beyond_errors = [
        n
        for n in own["computed by"]
        if finding(n)[0]["outside by"] > finding(n)[0]["judge's error"]
    ]
    assert (
        own["computed by"][own["why"].str.contains("more than the judge")].tolist() == beyond_errors
    )


def test_a_verdict_follows_from_the_table(monkeypatch):
    """With tables corrected in the way the finding says, the claim holds; with a wrong one it does
    not."""
    real, other = monitor.table, zplke_checks.table

    def corrected(number):
        t = real(number)
        return t.assign(MONITOR=t["MONITOR"] * 20 / 21) if number == "table10" else t

    assert monitor.overall_is_the_mean()[1] == FAILS
    monkeypatch.setattr(monitor, "table", corrected)
    assert monitor.overall_is_the_mean()[1] == HOLDS
    monkeypatch.setattr(
        zplke_checks, "table", lambda n: other(n).iloc[::-1] if n == "table8" else other(n)
    )
    assert finding("zplke.sorted_leaderboard")[1] == FAILS


def test_all_three_columns_are_whole_counts(monkeypatch):
    """Vicuna-7b's 99.67 lies between 927/930 = 99.677 and 928/931 = 99.678: cut off. A value that
    no count gives fails."""
    numbers, found = monitor.table3_denominator()
    assert found == CAVEAT and list(numbers.values()) == [6, 11, 12, 6, ["Vicuna-7b"]]
    real = monitor.table
    monkeypatch.setattr(
        monitor, "table", lambda n: real(n).replace({"pos_context": {99.67: 99.74}})
    )
    assert monitor.table3_denominator()[1] == FAILS


def test_a_printed_number_is_rounded_or_cut_off():
    right = [(0.8467, 0.847, 3), (0.8467, 0.846, 3), (-0.8467, -0.846, 3), (0.0005, 0.001, 3)]
    right += [(-0.0004, 0.0, 3), (2.9652, 2.97, 2)]
    wrong = [(0.8467, 0.845, 3), (0.8463, 0.847, 3), (0.00046, 0.001, 3), (math.nan, 0.1, 3)]
    assert [verdicts.rounds(*case) for case in right + wrong] == [True] * 6 + [False] * 4


def test_papers_and_checks_are_chosen_by_name():
    assert set(audit.table(["zplke"])["paper"]) == {"zplke"}
    assert "7.18e-7" in audit.code_of("grapheval.density")
    assert "def gain" in audit.code_of("zplke.choice_over_hgp"), "claims of one kind share a check"
    for wrong, message in {"monitr": "did you mean monitor", "zplk": "did you mean zplke"}.items():
        with pytest.raises(ProbeError, match=message):
            audit.table([wrong])
    with pytest.raises(ProbeError, match="a list of texts"):
        audit.table("monitor")
    with pytest.raises(ProbeError, match="did you mean grapheval.density"):
        audit.code_of("grapheval.densty")
