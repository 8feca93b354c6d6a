"""Numbers agree within the plan's limits; texts, counts and shapes exactly."""

import fcntl
import re
import subprocess
from types import SimpleNamespace

import pytest

from probelib import paths
from probelib.errors import ProbeError
from probelib.runner import plan, verify

CSV = b"model,n,tau,tau low,tau high\na,3,0.5,0.3,0.7\nb,4,1.5,1.0,2.0\n"


def wrong(*tables: str) -> list[str]:
    """The columns that differ."""
    return [row[0] for row in verify.differences(*(verify.read(t.encode()) for t in tables))]


@pytest.mark.parametrize(
    ("ours", "committed", "agree"),
    [
        ("0.50009", "0.5", True), ("0.5002", "0.5", False),
        ("-1000.05", "-1000.0", True), ("-1000.2", "-1000.0", False),  # relative above 1
        ("1e-05", "0.0", True), ("", "0.5", False),  # a missing number
        ("inf", "inf", True), ("inf", "-inf", False), ("3", "4", False),  # whole numbers
        ("NA", "", False), ("None", "", False), ("NA", "None", False),  # texts, letter by letter
        ("True", "TRUE", False), ("nan", "", False), ("007", "7", False),
        (" 1936.", "1936.", False), ("Paris", "Paris", True),
    ],
)  # fmt: skip
def test_one_cell(ours, committed, agree):
    more = "0.25" if re.search(r"\.|inf", committed) and "1936" not in committed else "7"
    tables = (f"x,y\n{cell},a\n{more},a\n" for cell in (ours, committed))
    assert wrong(*tables) == ([] if agree else ["x"])


def test_an_end_of_an_interval_has_room_by_the_width():
    text = CSV.decode()
    near, far = text.replace("0.3,", "0.319,"), text.replace("0.3,", "0.33,")
    assert wrong(near, text) == []  # 5 % of 0.4
    assert wrong(far, text) == ["tau low"]
    assert wrong("x high\n0.52\n", "x high\n0.5\n") == ["x high"]  # without its other end
    rename = lambda csv: csv.replace("tau low,tau high", "low,high")
    assert wrong(rename(near), rename(text)) == []
    assert wrong(rename(far), rename(text)) == ["low"]


def test_shapes_columns_and_missing_files_differ():
    made = {"makes": ["p/a", "p/b", "p/seconds"], "measured": ["p/seconds"]}
    steps = [SimpleNamespace(**made)]
    n, found = verify.compare_runs(steps, {"p/a": CSV, "p/seconds": b"x"}, {"p/b": CSV})
    assert n == 2 and found["problem"].tolist() == ["not committed", "not made here"]
    for other in (CSV[:-20], CSV.replace(b"tau,", b"rho,"), b""):
        _, found = verify.compare_runs(steps, {"p/a": other}, {"p/a": CSV})
        assert found["problem"].eq("other rows or columns").all() and len(found) == 1
    with pytest.raises(ProbeError, match="nothing to compare"):
        verify.compare_runs(steps, {}, {"other": CSV})


@pytest.fixture
def committed(tmp_path, monkeypatch, make_plan):
    """The one committed table of a repository. A step of another profile is not compared."""
    entries = [{"notebook": "p/a", "makes": ["p/table1"]}]
    entries += [{"notebook": "p/b", "makes": ["p/table2"], "profiles": ["smoke"]}]
    whole = plan.read(make_plan(dict.fromkeys(("p/a", "p/b"), ['profile = "atlas"']), entries))
    monkeypatch.setattr(verify.plan, "read", lambda: whole)
    for name, folder in (("ROOT", ""), ("FIGURES", "figures"), ("RUNS", "runs")):
        monkeypatch.setattr(paths, name, tmp_path / folder)
    made = tmp_path / "figures" / "atlas" / "p" / "table1.csv"
    made.parent.mkdir(parents=True)
    for file in (made, made.with_name("table2.csv")):
        file.write_text("model,tau\na,0.5\n")
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(tmp_path)]
    for words in (["init", "-q"], ["add", "-f", "figures"], ["commit", "-q", "-m", "a"]):
        subprocess.run([*git, *words], check=True)
    return made


def test_the_command_compares_a_run_with_the_last_commit(committed, capsys):
    assert verify.main([]) == 0 and "1 of 1 artifacts agree" in capsys.readouterr().out
    committed.write_text("model,tau\na,0.6\n")
    assert verify.main([]) == 1
    said = capsys.readouterr().out
    assert "p/table1" in said and "0.1" in said and "0 of 1 artifacts agree" in said
    assert verify.main(["--profile", "smoke"]) == 2


def test_nothing_is_compared_during_a_run(committed, capsys):
    (paths.RUNS / "atlas").mkdir(parents=True)
    with open(paths.RUNS / "atlas" / "lock", "a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert verify.main([]) == 2
    assert "run of profile atlas is in progress" in capsys.readouterr().err
