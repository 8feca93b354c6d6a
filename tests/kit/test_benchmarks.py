"""The tables of tests/benchmarks/README.md that benchmarks write themselves, and that each benchmark runs (at a small size)."""

import importlib
import re

import numpy as np
import pandas as pd
import pytest

from probelib import lm, paths
from probelib.errors import ProbeError
from probelib.facts.graphs.graph import synthetic, write_graph
from tests.benchmarks import gpu, graphs, growth, host, judge, labels, measuring, scoring, shards, whole, workloads
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


def test_each_benchmark_has_its_question_its_section_and_its_table():
    code = {path.stem: path.read_text() for path in measuring.README.parent.glob("[a-z]*.py")}
    names = sorted(name for name, text in code.items() if "\ndef main(" in text)
    page = measuring.README.read_text()
    assert sorted(re.findall(r"^\| `(\w+)` \| .*\? \| .* \|$", page, re.MULTILINE)) == names
    assert sorted(re.findall(r"^## `(\w+)`$", page, re.MULTILINE)) == names
    for table in re.findall(r"write_(?:table|rows)\(\s*\"(\w+)\"", "".join(code.values())):
        assert page.count(f"<!-- {table} -->\n") == page.count(f"<!-- /{table} -->\n") == 1


@pytest.mark.parametrize("name", ["graphs", "harness", "host", "judge", "retrieval", "served", "shards"])
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


@pytest.mark.slow
def test_the_benchmarks_of_graphs_run(tmp_path):
    values = {row["what"]: row["value"] for row in graphs.run(1000, 20)}
    assert len(values) > 10 and min(values.values()) > 0
    folder = write_graph(synthetic(300), tmp_path / "graph")
    assert [row[:2] for row in whole.judge_graph(folder)] == [(300, 600)]
    took = judge.atlas_speed(growth.MODEL, rounds=1, n_triples=50)
    assert took["n"] == 100 and 0 < took["share"] < 1 and took["behind"] > 0


@pytest.mark.slow
def test_the_benchmarks_of_scoring_run(tmp_path, monkeypatch):
    assert growth.score_all(growth.BASE) > 0
    world = workloads.relations()
    host.save_narrow(tmp_path, world)
    steps = host.per_request(lm.load(tmp_path), workloads.many_shot(world, 1, options=5))
    assert set(host.STEPS) <= set(steps)
    monkeypatch.setattr(labels, "CANDIDATES", 200)
    monkeypatch.setattr(labels, "PROMPTS", 2)
    assert [row["difference"] < 1e-4 for row in labels.run(growth.MODEL)] == [True, True]


SMALL = {
    "harness": {"N": {"bear": 1, "arc_easy": 3, "swag": 1}, "SHOTS": {"bear": 0, "arc_easy": 1, "swag": 0}},
    "retrieval": {"ENTITIES": 5000, "TRIPLES": 20_000, "QUERIES": 3, "N": 5},
    "shards": {
        "MODELS": 2,
        "RELATIONS": 3,
        "ROWS": 10,
        "SHARED": shards.SHARED | {"models": [growth.MODEL], "n_facts": 1},
    },
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
def test_a_benchmark_runs_to_its_table(name, monkeypatch):
    module, written = importlib.import_module(f"tests.benchmarks.{name}"), []
    monkeypatch.setattr(paths, "RUNS", paths.RUNS)  # shards sets both
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    for size, value in SMALL[name].items():
        monkeypatch.setattr(module, size, value)
    monkeypatch.setattr(module, "write_rows", lambda *table: written.append(table))
    module.main()
    ((title, rows),) = written
    assert title == name and len(measuring.in_short(rows)) > 5
