"""The page of claims: every claim leads to an artifact of the plan, and shows that artifact's own finding."""

import json
import re

import pytest

from probelib import published
from probelib.report import phenomena
from probelib.runner import plan

MADE = {artifact for step in plan.read().steps for artifact in step.makes}
CLAIMS = [claim | {"paper": paper} for paper, claims in published.phenomena().items() for claim in claims]


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim["artifact"])
def test_every_claim_has_an_artifact_and_a_reason(claim):
    assert claim["artifact"] in MADE and claim["artifact"].startswith(claim["paper"])
    assert claim["claim"].endswith(".") and claim["why"].endswith(".") and not any(c.isdigit() for c in claim["claim"])


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim["artifact"])
def test_a_reason_says_nothing_that_a_run_would_have_to_check(claim):
    """A verdict or a number is the finding's to give: the next run may come out otherwise."""
    said = re.findall(r"\d|\b(?:holds?|shown|significant\w*|gone|clearer|hidden)\b", claim["why"], re.IGNORECASE)
    assert not said, f"{claim['artifact']}: {said}"


def test_the_page_shows_findings_and_counts_what_is_missing(tmp_path, monkeypatch):
    monkeypatch.setattr(phenomena.paths, "FIGURES", tmp_path)
    (tmp_path / "smoke" / "monitor").mkdir(parents=True)
    steps = plan.read().steps
    assert phenomena.write_phenomena("smoke", steps) is None
    record = {"kind": "figure", "caption": "", "finding": "4 of 7 | answers are right.", "alt": "", "decimals": 3}
    (tmp_path / "smoke" / "monitor" / "figure1.json").write_text(json.dumps(record))
    page = phenomena.write_phenomena("smoke", steps).read_text()
    assert r"[figure1](monitor/sec3_instability.md) | 4 of 7 \| answers are right. |" in page
    assert f"{len(CLAIMS) - 1} claims are left out" in page
    (tmp_path / "smoke" / "monitor" / "figure2.json").write_text("{")
    assert "make it again with --force" in phenomena.write_phenomena("smoke", steps).read_text()
