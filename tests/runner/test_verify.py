import json
import subprocess
from types import SimpleNamespace

import pandas as pd
import pytest

from probelib import paths
from probelib.errors import ProbeError
from probelib.runner import plan, verify

LIMITS = {"scores": 1e-4, "intervals": 0.05}


def step(makes: list, measured=(), **fragile: float) -> SimpleNamespace:
    return SimpleNamespace(
        makes=makes, measured=measured, fragile={f"p/{name}": limit for name, limit in fragile.items()}
    )


def table(**columns) -> pd.DataFrame:
    return pd.DataFrame(
        {"model": ["a", "b"], "n": [3, 4], "tau": [0.5, 120.0], "low": [0.3, 1.0], "high": [0.7, 3.0]} | columns
    )


def test_each_kind_of_column_has_its_tolerance():
    assert verify.differences(table(), table(), LIMITS) == []
    near = table(tau=[0.50009, 120.011], low=[0.3199, 1.0])  # 1e-4, relative above 1; 5 % of the width of 0.4
    assert verify.differences(near, table(), LIMITS) == []
    far = table(tau=[0.5002, 120.013], low=[0.3201, 1.0])
    assert [(column, n) for column, _, n, _, _ in verify.differences(far, table(), LIMITS)] == [("tau", 2), ("low", 1)]
    (row,) = verify.differences(table(n=[3, 5]), table(), LIMITS)
    assert row[:3] == ("n", "differs", 1)
    assert verify.differences(table(model=["a", "c"]), table(), LIMITS)[0][0] == "model"
    assert verify.differences(table(tau=[float("nan"), 120.0]), table(), LIMITS)[0][2:4] == (1, float("inf"))
    assert "other shape: 2 rows" in verify.differences(table(more=1), table(), LIMITS)[0][1]


def test_what_one_side_lacks_differs_and_what_is_measured_is_left_out():
    steps = [step(["p/a", "p/b", "p/seconds"], ["p/seconds"]), step(["p/c"], c=0.2)]
    ours = {"p/a": b"x\n1\n", "p/seconds": b"x\n1.5\n", "p/c": b"x\n0.5\n"}
    compared, found = verify.compare_runs(steps, LIMITS, ours, {"p/a": b"x\n1\n", "p/b": b"x\n1\n", "p/c": b"x\n0.6\n"})
    assert compared == 3 and found[["artifact", "problem"]].values.tolist() == [["p/b", "not made here"]]
    with pytest.raises(ProbeError, match="nothing to compare"):
        verify.compare_runs(steps, LIMITS, {}, {})


def test_a_column_that_became_text_differs_and_is_no_crash():
    assert verify.differences(table(tau=["–", "–"]), table(), LIMITS)[0][:3] == ("tau", "differs", 2)


CSV = b"model,n,tau,low,high\na,3,0.5,0.3,0.7\nb,4,1.5,1.0,2.0\n"


@pytest.mark.parametrize(
    ("changed", "columns"),
    [(b"", []), (b"model,n,tau,low,high\na,3,0.50009,0.3,0.7\nb,4,1.5,1.0,2.0\n", []),
     (b"model,n,tau,low,high\na,3,0.6,0.3,0.7\nb,4,1.4,1.0,2.0\n", ["spread of tau"]),  # the mean is the same
     (b"model,n,tau,low,high\na,4,0.5,0.3,0.7\nb,3,1.5,1.0,2.0\n", ["n"]),
     (b"model,n,tau,low,high\nc,3,0.5,0.3,0.7\nb,4,1.5,1.0,2.0\n", ["model"]),
     (b"model,n,tau,low,high\na,3,0.5,0.32,0.7\nb,4,1.5,1.0,2.0\n", []),  # an end of an interval has more room
     (b"model,n,tau,low,high\na,3,0.5,0.1,0.7\nb,4,1.5,1.0,2.0\n", ["low"]),
     (b"model,n,tau,low,high\na,3,1.0,0.3,0.7\nb,4,,1.0,2.0\n", [""])],
)  # fmt: skip
def test_a_summary_shows_what_the_whole_table_would(tmp_path, changed, columns):
    """One artifact, changed in one place, against the summary of the unchanged one."""
    steps = [step(["p/a", "p/seconds"], ["p/seconds"])]
    verify.write_summary(steps, {"p/a": CSV, "p/seconds": CSV}, tmp_path / "short.json")
    committed = verify.from_path(tmp_path / "short.json")
    assert list(committed) == ["p/a"]
    ours = {"p/a": verify._row(verify.summary(changed or CSV))}
    _, found = verify.compare_runs(steps, LIMITS, ours, committed)
    assert found["column"].tolist() == columns


def test_a_file_that_is_no_summary_is_named(tmp_path):
    (tmp_path / "x.json").write_text("[1]")
    with pytest.raises(ProbeError, match=r"x\.json: not a summary"):
        verify.from_path(tmp_path / "x.json")


@pytest.mark.whole
def test_the_smoke_run_gives_the_committed_numbers(smoke_run, monkeypatch, capsys):
    """On any processor, within the plan's tolerances. After a change that is meant to move numbers, write the summary anew:
    ``./run_all.sh --profile smoke``, ``./run_all.sh verify --profile smoke --summary tests/runner/smoke.json``."""
    monkeypatch.setattr(paths, "FIGURES", smoke_run[0] / "figures")
    monkeypatch.setattr(paths, "RUNS", smoke_run[0] / "verified")
    committed = paths.ROOT / "tests/runner/smoke.json"
    artifacts = list(json.loads(committed.read_text(encoding="utf-8")))
    assert len(artifacts) > 60
    code = verify.main(["--profile", "smoke", "--against", str(committed), "--only", *artifacts])
    assert code == 0, capsys.readouterr().out


def test_the_command_compares_a_run_with_the_last_commit(tmp_path, monkeypatch, make_plan, capsys):
    """A repository with one committed table; the run gives another number, which ``fragile`` does not cover."""
    profile = 'profile = "atlas"  # str: atlas or smoke'
    whole = plan.read(make_plan({"p/a": [profile]}, [{"notebook": "p/a", "makes": ["p/table1"]}]))
    monkeypatch.setattr(verify.plan, "read", lambda: whole)
    for name, folder in (("ROOT", tmp_path), ("FIGURES", tmp_path / "figures"), ("RUNS", tmp_path / "runs")):
        monkeypatch.setattr(paths, name, folder)
    made = tmp_path / "figures" / "atlas" / "p" / "table1.csv"
    made.parent.mkdir(parents=True)
    made.write_text("model,tau\na,0.5\n")
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(tmp_path)]
    for words in (["init", "-q"], ["add", "-f", "figures"], ["commit", "-q", "-m", "a"]):
        subprocess.run([*git, *words], check=True)
    assert verify.main([]) == 0 and "1 of 1 artifacts agree" in capsys.readouterr().out
    made.write_text("model,tau\na,0.6\n")
    report = tmp_path / "runs" / "atlas" / "report.html"
    report.write_text("")
    assert verify.main([]) == 1
    said = capsys.readouterr().out
    assert "p/table1" in said and "0.1" in said and "0 of 1 artifacts agree" in said
    assert "Compared with the committed figures: 1 artifacts differ" in report.read_text()
    assert pd.read_csv(tmp_path / "runs" / "atlas" / "verify.csv")["column"].tolist() == ["tau"]
    assert verify.main(["--profile", "smoke"]) == 2 and "no committed figures" in capsys.readouterr().err
