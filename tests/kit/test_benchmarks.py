"""The tables of tests/benchmarks/README.md that benchmarks write themselves."""

import re

import numpy as np
import pandas as pd
import pytest

from probelib.errors import ProbeError
from tests.benchmarks import gpu, growth, labels, measuring, scoring
from tests.lm import tiny


def test_a_table_is_written_between_its_markers(tmp_path):
    readme = tmp_path / "README.md"
    readme.write_text("Before\n<!-- a -->\nold\n<!-- /a -->\n<!-- b -->\nkept\n<!-- /b -->\n")
    measuring.write_table("a", pd.DataFrame({"what": ["x|y"], "s": [0.126], "n": [3]}), {"s": 2}, readme)
    before, written, after = readme.read_text().partition("| what | s | n |\n|---|---|---|\n| x\\|y | 0.13 | 3 |\n")
    assert before.startswith("Before\n<!-- a -->\n20") and "torch" in before and "old" not in before and written
    assert after == "\n<!-- /a -->\n<!-- b -->\nkept\n<!-- /b -->\n"
    with pytest.raises(ProbeError, match="no lines <!-- c -->"):
        measuring.write_table("c", pd.DataFrame({"n": [1]}), {}, readme)


def test_measurements_in_short():
    row = measuring.row
    rows = [row("speed", 2.345, "x", 3), row("peak", 1234.5, "MiB", 2000, less=True), row("tokens", 139506, "", None)]
    rows += [row("error", 0, "1e-6 nat", 100, less=True), row("share", 0.85, "", 0.85)]
    assert measuring.in_short(rows).to_numpy().tolist() == [
        ["speed", "2.35 x", "at least 3: MISSED"],
        ["peak", "1,234 MiB", "at most 2,000: met"],
        ["tokens", "139,506", ""],
        ["error", "0 1e-6 nat", "at most 100: met"],
        ["share", "0.85", "at least 0.85: met"],
    ]


def columns_of(name: str) -> list[str]:
    """Headings of the table that README.md has for a benchmark, behind a line that begins with its date."""
    about, head = re.search(rf"<!-- {name} -->\n(.*):\n\n\| (.*) \|\n\|---", measuring.README.read_text()).groups()
    assert re.match(r"20\d\d-\d\d-\d\d(, |$)", about)
    return head.split(" | ")


@pytest.mark.parametrize("name", ["graphs", "harness", "host", "judge", "retrieval", "served"])
def test_a_table_of_measurements_has_the_columns_that_the_code_writes(name):
    assert columns_of(name) == list(measuring.in_short([measuring.row("speed", 1, "x", None)]))


def test_the_tables_of_scoring_and_gpu_have_the_columns_that_the_code_writes():
    work = lambda: np.zeros(1)
    compared = scoring.compare("W1", "a peer", 1, work, work, wanted=1, rounds=1)
    assert columns_of("scoring") == list(compared) and compared["difference"] == "`0.0e+00`"
    cost = lambda: {"forwarded_tokens": 3}
    limit = scoring._limit("W1", tiny.build(tiny.DECODERS["llama"]()), cost, [([5, 6], [7, 8])], rounds=1)
    assert columns_of("limits") == list(limit) and (limit["inner nodes"], limit["by nodes (at most 1.02)"]) == (3, 1)
    by_wall = scoring.compare(
        "W1", "a peer", 1, work, work, None, rounds=1, by="wall", difference=lambda *_: float("nan")
    )
    assert columns_of("gpu peers") == ["model", *gpu.gpu_columns(by_wall)] and by_wall["difference"] == ""
    assert columns_of("gpu rows") == ["model", "attention", *(f"{tokens:,}" for tokens in gpu.ROWS)]


def test_an_exponent_by_hand():
    assert measuring.exponent([1, 10, 100], [3.0, 300.0, 30000.0]) == 2
    points = [("facts", 1, 2, 1.0, 0.5), ("facts", 10, 20, 5.0, 0.5), ("facts", 100, 200, 500.0, 0.5)]
    table = pd.DataFrame(points, columns=["dimension", "factor", "size", "seconds", "peak"])
    assert growth.in_short(table).iloc[0].tolist() == ["facts", "2 to 200", "1.00 to 500.00", 2, "0.50 to 0.50", 0]


def test_the_sizes_of_growth_are_those_of_the_requests():
    prompts, candidates = growth.frames({"facts": 3, "options": 5, "shots": 2, "models": 1})
    assert len(prompts) == 3 and prompts["text"].str.split().str.len().tolist() == [5, 5, 5]  # two pairs and a subject
    assert candidates.groupby("fact")["label"].nunique().tolist() == [5, 5, 5]


def test_the_committed_growth_is_that_of_its_points(tmp_path):
    """The table in README.md is computed from growth.csv, and no exponent is above 1."""
    short = growth.in_short(pd.read_csv(growth.HERE / "growth.csv"))
    assert short[list(growth.DECIMALS)].max().max() <= 1
    readme = tmp_path / "README.md"
    readme.write_text("<!-- growth -->\n<!-- /growth -->\n")
    measuring.write_table("growth", short, growth.DECIMALS, readme)
    rows = [line for line in readme.read_text().split("\n") if line.startswith("| ")]
    assert len(rows) == 1 + len(growth.BASE) and all(row in measuring.README.read_text() for row in rows)


def test_the_search_for_labels_in_short():
    rows = [
        {
            "trie tokens": 50,
            "share": share,
            "difference": 2e-6 * share,
            "seconds": 1.0,
            "brute force seconds": 8.0 * share,
        }
        for share in (0.25, 0.5, 1.0)
    ]
    assert labels.in_short(rows).iloc[0].tolist() == [10_000, 50, 3, 50, 25, 100, pytest.approx(2), 4]


def test_a_whole_graph_stays_below_two_gibibytes_and_is_linear():
    """As measured, in the table of README.md."""
    between = measuring.README.read_text().split("<!-- whole -->")[1].split("<!-- /whole -->")[0]
    rows = [
        line.strip("| ").split(" | ") for line in between.split("\n") if line.startswith("| ") and line[2].isdigit()
    ]
    triples, _, seconds, peaks = (list(map(float, column)) for column in zip(*rows, strict=True))
    assert triples[-1] == 1_000_000 and max(peaks) <= 2 and measuring.exponent(triples, seconds) <= 1
