"""The whole smoke profile, really run: every product made, nothing twice, the same bytes after a
kill; notebooks kept clean."""

import json
import re
import signal
import time

import matplotlib.pyplot as plt
import nbformat
import pandas as pd
import papermill
import pytest

from probelib import facts, files, paths
from probelib.paths import NOTEBOOKS
from probelib.runner import plan, verify
from tests.bench.campaign import scores_and_figures
from tests.conftest import run, start
from tests.lm.remote.server import NAME, honest, serving


def test_every_artifact_of_the_plan_is_made(smoke_run):
    out, said = smoke_run
    for artifact in (a for step in WHOLE.steps for a in step.makes):
        stem = out / "figures" / "smoke" / artifact
        assert stem.with_suffix(".csv").stat().st_size > 0 and stem.with_suffix(".json").exists()
        assert stem.with_suffix(".png").exists() or stem.with_suffix(".html").exists()
    page = (out / "runs" / "smoke" / "report.html").read_text()
    assert "Not made yet" not in page and "This page failed" not in page
    assert all(f"<section id='{step.notebook}'>" in page for step in WHOLE.steps)
    assert all(f"ok         {step.notebook}" in said for step in WHOLE.steps)


def summary(content: bytes) -> dict:
    """A table's number of rows; per column mean and spread (fractions) or a digest (the rest)."""
    frame = verify.read(content)
    found: dict = {"rows": len(frame)}
    for name, column in frame.items():
        if verify.is_inexact(column):
            values = pd.Series(verify.numbers(column))
            found[name] = [values.mean(), values.std(ddof=0), int(values.isna().sum())]
        else:
            found[name] = files.sha256("\n".join(column).encode())[:16]
    return found


def test_the_smoke_run_gives_the_committed_numbers(smoke_run):
    """On any processor. Delete smoke.json after a change that is meant to move numbers: this test
    writes it anew."""
    whole, there = plan.read(), paths.ROOT / "tests/kit/smoke.json"
    made = verify.from_folder(smoke_run[0] / "figures/smoke")
    compared = {a for s in whole.steps for a in {*s.makes} - {*s.measured} if a in made}
    ours = {artifact: summary(made[artifact]) for artifact in sorted(compared)}
    if not there.exists():
        lines = (f"{json.dumps(name)}: {json.dumps(row)}" for name, row in ours.items())
        there.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    committed = json.loads(there.read_text(encoding="utf-8"))
    assert len(ours) > 60 and list(ours) == list(committed)
    for artifact, columns in committed.items():
        assert list(ours[artifact]) == list(columns), artifact
        for name, then in columns.items():
            near = verify.INTERVALS if verify.END.fullmatch(name) else 1e-4
            numbers = isinstance(then, list)
            same = pytest.approx(then, rel=near, abs=near, nan_ok=True) if numbers else then
            assert ours[artifact][name] == same, (artifact, name)


def test_a_second_run_does_nothing(smoke_run):
    out, _ = smoke_run
    written = lambda: {p: p.stat().st_mtime_ns for p in out.rglob("*") if p.is_file()}
    before, said = written(), run(out)
    assert "up to date" in said and "start" not in said
    assert {p for p, at in written().items() if before.get(p) != at and p.name != "lock"} == set()


def test_kill_minus_nine_in_the_middle_gives_the_same_bytes(smoke_run, tmp_path):
    """The runner and all its children are killed as soon as the first scores exist; the same
    command completes the run."""
    two = ("01_facts", "monitor/sec3_instability")
    process = start(tmp_path, "--only", *two)
    deadline = time.monotonic() + 300
    begun = lambda: list(tmp_path.rglob("scores/**/*.json")) or process.poll() is not None
    while not begun() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert process.poll() is None, "it ended before it could be killed"
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert len(list(tmp_path.rglob("done/**/*.json"))) < len(two)
    run(tmp_path, "--only", *two)
    makes = [step.makes for step in plan.read().steps if step.notebook in two]
    made = tuple(f"figures/smoke/{artifact}." for own in makes for artifact in own)
    undisturbed = scores_and_figures(smoke_run[0])
    made_now = scores_and_figures(tmp_path)
    resumed = {name: made_now[name] for name in made_now if name.startswith((*made, "runs/"))}
    assert {name for name in undisturbed if name.startswith(made)} <= set(resumed)
    assert resumed == {name: undisturbed[name] for name in resumed}


def test_a_notebook_run_by_papermill_leaves_the_shipped_figures_alone(tmp_path, monkeypatch):
    monkeypatch.setenv("PROBELIB_OUT", str(tmp_path))
    files = str(NOTEBOOKS / "01_facts.ipynb"), str(tmp_path / "run.ipynb")
    papermill.execute_notebook(*files, kernel_name="python3", progress_bar=False)
    assert [folder.name for folder in (tmp_path / "figures").iterdir()] == ["mine"]
    assert plan.parameters.defaults(NOTEBOOKS / "01_facts.ipynb")["profile"] == "mine"


def test_no_library_prints_into_a_notebook(smoke_run):
    """On stderr are bars of progress alone."""
    for path in (smoke_run[0] / "runs" / "smoke" / "notebooks").rglob("*.ipynb"):
        cells = nbformat.read(path, as_version=4).cells
        texts = [o.text for c in cells for o in c.get("outputs", []) if o.get("name") == "stderr"]
        lines = re.split(r"[\r\n]", "".join(texts))
        assert not [line for line in lines if line.strip() and "%|" not in line], path.stem


def test_a_served_model_goes_through_a_notebook(tmp_path, monkeypatch):
    (there := tmp_path / ("long" * 20)).mkdir()
    monkeypatch.setenv("TMPDIR", str(there))  # too long a path for the socket of a server of forks
    asked = ["encoder_decoders=[]", "n_facts=1", "relations=[P37, P178, P108, P1412]"]
    with serving(honest) as (url, _):
        flags = "--only", "monitor/sec5_results", "--models", f"{url}#{NAME}", "--set"
        assert "ok         monitor/sec5_results" in run(tmp_path, *flags, *asked)


WHOLE = plan.read()
TAKE_DATA = [step for step in WHOLE.steps if "data" in step.accepts]


@pytest.mark.slow
@pytest.mark.parametrize("step", TAKE_DATA, ids=lambda step: step.notebook)
def test_every_notebook_runs_on_facts_of_ones_own(tmp_path, monkeypatch, fktc, step):
    """Its code cells in this process, few facts of FKTC, with invented exposures."""
    monkeypatch.setattr(paths, "RUNS", tmp_path / "runs")
    monkeypatch.setattr(paths, "FIGURES", tmp_path / "figures")
    few = {"n_facts": 2, "relations": ["P19", "P176"], "data": "fktc", "folder": str(fktc)}
    asked = facts.load(**few).facts[["fact"]].assign(exposures=[0, 64, 0, 64])
    asked.to_csv(tmp_path / "read.csv", index=False)
    few["exposures"] = str(tmp_path / "read.csv")
    names = {"display": lambda *shown: None}
    for cell in nbformat.read(step.path, as_version=4).cells:
        if cell.cell_type == "code":
            exec(compile(cell.source, f"{step.notebook}, {cell.id}", "exec"), names)
        if "parameters" in cell.metadata.get("tags", []):
            names |= plan.settings(WHOLE, [step], "smoke")[step.notebook]
            names |= {name: few[name] for name in few if name in step.accepts}
    plt.close("all")
    assert names["section"].provenance["parameters"]["data"] == "fktc"
