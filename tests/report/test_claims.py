"""Claims: verdicts from intervals alone, counted, in few words; every entry of claims.yaml builds
and belongs to the plan."""

import re

import numpy as np
import pandas as pd
import pytest

from probelib import ProbeError, paths
from probelib.report import claims
from probelib.runner import plan
from tests.conftest import DATA

pytestmark = pytest.mark.fast

PAPERS = DATA.parent / "specs"
LOWER = {"claim": "It falls.", "statistic": "Δ, points", "sign": -1, "printed": -26.9}
LEVEL = {"claim": "It is above chance.", "statistic": "share", "level": 0.5}
ENTRY = {"caption": "What is plotted.", "claims": {"lower": LOWER, "level": LEVEL}}


@pytest.fixture
def entry(monkeypatch):
    monkeypatch.setattr(claims, "_entries", lambda: {"p/table1": ENTRY})


@pytest.mark.parametrize(
    ("low", "high", "sign", "level", "said"),
    [
        (0.1, 0.4, 1, 0, "shown"),
        (0.1, 0.4, -1, 0, "reversed"),
        (-0.4, -0.1, -1, 0, "shown"),
        (-0.1, 0.4, 1, 0, "undecided"),
        (0.0, 0.4, 1, 0, "undecided"),  # the level itself is not excluded
        (0.1, 0.4, 1, 0.5, "reversed"),
        (np.nan, 0.4, 1, 0, "no interval"),
    ],
)
def test_a_verdict_by_hand(low, high, sign, level, said):
    assert claims.verdict(low, high, sign, level) == said


def test_cases_are_counted_and_never_outvoted(entry):
    """Of four models one falls, one rises, one is undecided, and one cannot be tested."""
    ends = {"x low": [-4.0, 1, -2, -9], "x high": [-2.0, 3, 1, -8]}
    table = pd.DataFrame({"model": list("abcd"), "x": [-3.0, 2, -1, -9]} | ends)
    found = claims.cases(table, "x").assign(missed=["", "", "", "answers after a wrong context"])
    checked = claims.check("p/table1", lower=found)
    assert checked["verdict"].tolist() == ["shown", "reversed", "undecided", "not testable here"]
    said = "**It falls.** Paper: -26.9. Here: Δ, points = -2.75 over 4 models: shown 1, "
    said += "reversed 1, undecided 1, not testable here 1 (needs answers after a wrong context)."
    assert claims.sentences(checked, "p/table1") == [said]


def test_five_cases_give_no_verdict(entry):
    few = claims.check("p/table1", level={"value": 1.0, "low": 0.9, "high": 1.0, "n": 5})
    assert few[["verdict", "missed"]].to_numpy().tolist() == [["not testable here", "larger n"]]


def test_one_estimate_is_printed_with_its_interval(entry):
    checked = claims.check("p/table1", level={"r": 0.75, "low": 0.6, "high": 0.9, "n": 1200})
    said = "**It is above chance.** Here: share = 0.75 [0.60, 0.90], n = 1,200: shown."
    assert claims.sentences(checked, "p/table1") == [said]


def test_a_claim_that_is_not_in_the_file_raises(entry):
    with pytest.raises(ProbeError, match="unknown claim of p/table1 'higher'; Known: level, lower"):
        claims.check("p/table1", higher={"value": 1})
    with pytest.raises(ProbeError, match="unknown artifact in published/claims.yaml 'p/table2'"):
        claims.texts("p/table2")


def test_intervals_print_in_the_cell_of_their_value():
    table = pd.DataFrame({"x": [0.5, np.nan, 0.25], "x low": [0.25, np.nan, np.nan]})
    table["x high"] = [0.75, np.nan, np.nan]
    assert claims.printed(table, 2)["x"].tolist() == ["0.50 [0.25, 0.75]", "–", "0.25"]


def test_every_entry_belongs_to_an_artifact_of_the_plan_and_every_artifact_has_one():
    """YAML keeps the last of two equal keys in silence."""
    assert set(claims.artifacts()) == {name for step in plan.read().steps for name in step.makes}
    text = (paths.PACKAGE / "published" / "claims.yaml").read_text(encoding="utf-8")
    names = re.findall(r"^(\w+/\w+):", text, re.MULTILINE)
    assert len(names) == len(set(names))


@pytest.mark.parametrize("name", [name for name in claims.artifacts() if claims.texts(name).claims])
def test_a_quote_stands_in_the_paper(name):
    """With blanks, hyphens at line ends and typographic marks folded."""
    paper = PAPERS / f"paper_{name.split('/')[0]}.txt"
    if not paper.exists():
        pytest.skip(f"the text of the paper is not in {paper}")
    fold = lambda text: re.sub(r"[\W_]+", "", re.sub(r"-\s*\n\s*", "", text)).casefold()
    text = fold(paper.read_text(encoding="utf-8"))
    for about in claims.texts(name).claims.values():
        assert fold(about.quote) in text, about.quote


@pytest.mark.parametrize(
    "path", sorted((paths.ROOT / "figures").rglob("*.claims.csv")), ids=lambda path: path.stem
)
def test_a_committed_verdict_follows_from_its_interval(path):
    artifact = f"{path.parent.name}/{path.name.removesuffix('.claims.csv')}"
    table = pd.read_csv(path)
    for row in table[table["verdict"] != claims.VERDICTS[-1]].itertuples():
        about = claims.texts(artifact).claims[row.key]
        level = float(f"{about.level:.9g}")  # as the table rounds its numbers
        assert row.verdict == claims.verdict(row.low, row.high, about.sign, level)
    for line in claims.sentences(table, artifact):
        assert len(line.split()) <= 35, line
