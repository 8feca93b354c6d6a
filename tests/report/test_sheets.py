"""CSV for spreadsheets: what would be computed is text, everything else is unchanged, and reading
gives back what was written."""

import csv
import io

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from probelib import paths, report
from probelib.report import claims, pages, sheets

pytestmark = pytest.mark.fast


def cells(frame: pd.DataFrame) -> list[list[str]]:
    return list(csv.reader(io.StringIO(sheets.to_csv(frame))))


HARMFUL = ["=1+1", "+1+1", "-2-3", "@SUM(A1)", "\t=1", '=HYPERLINK("http://a","b")', "+A1", "--x"]
HARMFUL += ["-cmd|' /C calc'!A0"]
HARMLESS = ["Paris", "+", "++", "-", "-0.5", "+3", "-1e-05", "a=b", "a-b", "5 @ 6", "'quoted'"]
HARMLESS += ["a; b", "\u2212x"]
WRITTEN = {text: f"'{text}" for text in HARMFUL} | {text: text for text in HARMLESS}
WRITTEN |= {"Paris;=1+1;-x;-3": "Paris;'=1+1;'-x;-3"}  # begins a cell in many countries
WRITTEN |= {"x\r=1+1,2": "x\n=1+1,2", "b\r\nc": "b\nc"}  # begins no row


@pytest.mark.parametrize(("text", "written"), WRITTEN.items())
def test_no_cell_and_no_heading_begins_a_formula(text, written):
    frame = pd.DataFrame({text: [text, "plain"], "value": [-1.5, 2.0]})
    assert cells(frame) == [[written, "value"], [written, "-1.5"], ["plain", "2.0"]]


def test_numbers_are_not_touched():
    frame = pd.DataFrame({"float": [-0.5, float("nan")], "whole": [-1, 2], "mixed": [-3, "=x"]})
    written = sheets.to_csv(frame.assign(flag=[True, False]), float_format="%.9g")
    assert written == "float,whole,mixed,flag\n-0.5,-1,-3,True\n,2,'=x,False\n"


@settings(deadline=None)
@given(st.lists(st.text(alphabet="=+-@';\t\n,\"aé1.e ", min_size=1), min_size=1))
def test_reading_gives_back_what_was_written(texts):
    frame = pd.DataFrame({"=name": texts, "n": range(len(texts))})
    back = sheets.read_csv(sheets.to_csv(frame).encode())
    assert list(back) == list(frame) and back["=name"].tolist() == texts


def test_a_formula_is_escaped_in_the_csv_and_shown_as_it_is_on_the_page(tmp_path, section):
    section.save(report.Artifact("p/table1", pd.DataFrame({"label": ["=1+1", "Paris"]})))
    assert (tmp_path / "smoke/p/table1.csv").read_text() == "label\n'=1+1\nParis\n"
    page = pages.artifact_markdown("smoke", "p/table1", tmp_path)
    assert "=1+1" in page and "'=1+1" not in page


@pytest.fixture
def section(tmp_path, monkeypatch) -> report.Section:
    for name in ("FIGURES", "RUNS"):
        monkeypatch.setattr(paths, name, tmp_path)
    monkeypatch.setattr(claims, "_entries", lambda: {"p/table1": {"caption": "Labels and years."}})
    return report.Section("p/x", "smoke", None, {"n": 1})


def test_a_text_that_looks_like_a_number_stays_as_it_is(tmp_path, section):
    """Generated years with a blank and a full stop, numbers beside them and an empty cell."""
    frame = pd.DataFrame({"output": [" 1936.", " 1934."], "year": [1936, 1934]})
    frame["share"] = [0.5, float("nan")]
    section.save(report.Artifact("p/table1", frame))
    page = pages.artifact_markdown("smoke", "p/table1", tmp_path)
    assert "| 1936. | 1936 | 0.500 |" in page and "| 1934. | 1934 | – |" in page
