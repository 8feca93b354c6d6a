"""The runner executes what has to run, and nothing else; a failure never looks like a success."""

import ast
import asyncio
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from importlib.metadata import packages_distributions
from itertools import takewhile
from pathlib import Path

import nbformat
import psutil
import pytest
import yaml
from packaging.requirements import Requirement

from probelib import paths
from probelib.errors import ProbeError, extra
from probelib.lm.names import CHECKPOINTS
from probelib.paths import ROOT
from probelib.runner import cli, kernel, plan, preflight, steps, uptodate
from tests.conftest import PROFILE
from tests.runner.conftest import set_out

WRITE = """
import os, pathlib
def put(artifact, text):
    file = pathlib.Path(os.environ["PROBELIB_OUT"], "figures", profile, artifact + ".csv")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(str(text))
"""
READ_T1 = "(pathlib.Path(os.environ['PROBELIB_OUT'], 'figures', profile, 'p/t1.csv')).read_text()"
AB = {
    "a": [PROFILE + "\nn = 1  # int: a number", WRITE, "put('p/t1', n)"],
    "b": [PROFILE + "\nm = 1  # int: a number", WRITE, f"put('p/t2', m * {READ_T1})"],
    "c": [PROFILE, WRITE, "put('q/t3', 3)\nif 0:\n    from probelib import two"],
}
AB_STEPS = [
    {"notebook": "a", "makes": ["p/t1"]},
    {"notebook": "b", "needs": ["a"], "makes": ["p/t2"]},
    {"notebook": "c", "makes": ["q/t3"]},
]


def stub_report(module):
    """The report is tested elsewhere; here it is one line."""

    def book(profile, steps, status, written):
        file = paths.RUNS / profile / "report.html"
        file.write_text(json.dumps(status))
        return file

    sys.modules["probelib.report.pages"] = module("probelib.report.pages")
    sys.modules["probelib.report.pages"].book = book


@pytest.fixture
def out(tmp_path, monkeypatch):
    """A place for runs and figures (its name tries papermill's str.format), and a library of one file."""
    out = tmp_path / "out {of} this"
    set_out(monkeypatch, out)
    monkeypatch.setattr(paths, "PACKAGE", tmp_path / "library")
    (tmp_path / "library/data").mkdir(parents=True)
    for name in ("one.py", "data/x.csv"):
        (tmp_path / "library" / name).write_text("1")
    (tmp_path / "library/two.py").write_text('from probelib.one import (\n    x,\n)\nPACKAGE / "data" / "x.csv"')
    monkeypatch.setitem(sys.modules, "probelib.report.pages", None)
    stub_report(type(sys))
    return out


@pytest.fixture
def smoke(out, capsys):
    """Runs a plan under the profile smoke: (exit code, lines on stdout, lines on stderr)."""

    def run_plan(plan, *flags):
        code = cli.main(["--plan", str(plan), "--profile", "smoke", *flags])
        printed = capsys.readouterr()
        return code, printed.out.splitlines(), printed.err.splitlines()

    return run_plan


def why(smoke, plan, *flags):
    """What --dry-run says of each notebook; models, memory and data follow behind an empty line."""
    code, lines, _ = smoke(plan, "--dry-run", *flags)
    assert code == 0
    return dict(re.split(r"  +", line, maxsplit=1) for line in takewhile(str.strip, lines[1:]))


def snapshot(folder):
    files = [file for file in folder.rglob("*") if file.is_file()]
    return {str(file.relative_to(folder)): (file.stat().st_mtime_ns, file.read_bytes()) for file in files}


def test_only_what_changed_and_what_needs_it_runs(smoke, make_plan, out, tmp_path, monkeypatch):
    fake = tmp_path / "jupyter/kernels/python3"  # a user's own "python3" must not be the one that runs
    fake.mkdir(parents=True)
    spec = {"argv": ["false", "{connection_file}"], "display_name": "x", "language": "python"}
    (fake / "kernel.json").write_text(json.dumps(spec))
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "jupyter"))

    plan = make_plan(AB, AB_STEPS)
    assert why(smoke, plan) == {"a": "never ran", "b": "never ran", "c": "never ran"}
    assert not out.exists()  # --dry-run writes nothing
    code, lines, _ = smoke(plan)
    assert code == 0, lines
    assert (out / "figures/smoke/p/t2.csv").read_text() == "1"
    assert json.loads((out / "runs/smoke/report.html").read_text()) == {"a": "ok", "b": "ok", "c": "ok"}
    assert [line for line in lines if re.match(r"ok +b \d+\.\d s", line)]
    executed = nbformat.read(out / "runs/smoke/notebooks/a.ipynb", 4)
    assert "out {of} this" in executed.metadata.papermill.output_path

    before = snapshot(out)
    start = time.monotonic()
    code, lines, _ = smoke(plan)
    assert code == 0 and time.monotonic() - start < 2
    assert not [line for line in lines if line.startswith(("start", "ok"))]
    assert snapshot(out) == before
    for name in (
        "t1.md",
        "t1.mynotes.txt",
    ):  # the page of a notebook of this name, and a user's own file, are no products
        (out / "figures/smoke/p" / name).touch()
    assert set(why(smoke, plan).values()) == {"up to date"}

    def changed(**profile):
        make_plan(AB, AB_STEPS, {"smoke": profile, "atlas": {}})
        return why(smoke, plan)

    assert changed(m=2) == {"a": "up to date", "b": "parameters changed: m", "c": "up to date"}
    assert changed(n=2) == {"a": "parameters changed: n", "b": "needs a, which runs", "c": "up to date"}
    make_plan({**AB, "c": [*AB["c"], "1"]}, AB_STEPS)
    assert why(smoke, plan) == {"a": "up to date", "b": "up to date", "c": "notebook changed"}
    make_plan(AB, AB_STEPS)
    assert why(smoke, plan, "--only", "b", "--force") == {"a": "up to date", "b": "forced"}
    (tmp_path / "library/three.py").write_text("a file that no notebook imports")
    assert set(why(smoke, plan).values()) == {"up to date"}
    for file in ("one.py", "data/x.csv"):  # an import of an import, and what it reads
        (tmp_path / "library" / file).write_text("2")
        assert why(smoke, plan) == {"a": "up to date", "b": "up to date", "c": f"library changed: {Path(file).parts[0].removesuffix('.py')}"}
        (tmp_path / "library" / file).write_text("1")
    old = uptodate.libraries()
    with monkeypatch.context() as patch:
        patch.setattr(uptodate, "libraries", lambda: {**old, "torch": "99.0"})
        assert re.fullmatch(r"other versions: torch .* -> 99.0", why(smoke, plan)["a"])
    (out / "figures/smoke/p/t1.csv").write_text("9")
    assert why(smoke, plan)["a"] == "product changed: p/t1.csv"
    (out / "figures/smoke/p/t1.csv").unlink()
    assert why(smoke, plan) == {"a": "product missing: p/t1.csv", "b": "needs a, which runs", "c": "up to date"}
    (out / "runs/smoke/notebooks/c.ipynb").unlink()
    assert why(smoke, plan)["c"] == "executed notebook missing"
    make_plan(AB, [*AB_STEPS[:2], {"notebook": "c", "makes": ["q/t3", "q/t4"]}])
    assert why(smoke, plan)["c"] == "product missing: q/t4"

    make_plan(AB, AB_STEPS, {"smoke": {"n": 2}, "atlas": {}})
    assert smoke(plan, "--only", "p")[0] == 0
    assert (out / "figures/smoke/p/t2.csv").read_text() == "2"
    assert why(smoke, plan) == {"a": "up to date", "b": "up to date", "c": "executed notebook missing"}
    assert json.loads((out / "runs/smoke/report.html").read_text())["c"] == "not selected"
    made = {file.name for file in (out / "figures/smoke/p").iterdir()}
    assert made == {"t1.csv", "t1.md", "t1.mynotes.txt", "t2.csv"}


def test_failures_are_reported_kept_and_not_taken_for_success(smoke, make_plan, out):
    notebooks = {
        **dict.fromkeys(("fine", "after", "later", "lazy"), [PROFILE]),
        "error": [PROFILE, "1 + 1", "int('x\\ny')", "3"],
        "killed": [PROFILE, WRITE, "put('p/t1', 1)", "os.kill(os.getpid(), 9)", "print('later')"],
        "slow": [PROFILE, "import time; time.sleep(60)"],
        "quits": [PROFILE, "import sys; sys.exit(0)", "2"],
        "alone": [PROFILE, "import os, time; os.kill(os.getppid(), 9); time.sleep(60)"],
    }
    steps = [
        {"notebook": "error"},
        {"notebook": "killed", "makes": ["p/t1"]},
        {"notebook": "after", "needs": ["killed"]},
        {"notebook": "later", "needs": ["after"]},
        {"notebook": "slow", "timeout_s": 20},
        {"notebook": "lazy", "makes": ["p/t2"]},
        *({"notebook": name} for name in ("quits", "alone", "fine")),
    ]
    old = out / "figures/smoke/p/t2.csv"
    old.parent.mkdir(parents=True)
    old.write_text("from an earlier run")
    plan = make_plan(notebooks, steps)
    code, lines, _ = smoke(plan)
    assert code == 1
    for line in (
        r"FAILED +error .*cell 4: ValueError: invalid literal .*see .*notebooks/error\.failed\.ipynb",
        r"FAILED +killed .*cell 5: kernel killed; most likely out of memory: fewer --jobs",
        r"ok +fine",
        r"skipped +after: needs killed",
        r"skipped +later: needs after",
        r"FAILED +slow .*cell \d: timed out after 20 s",
        r"FAILED +lazy .*did not make p/t2",
        r"FAILED +quits .*cell 4: never ran",
        r"FAILED +alone .*cell \d: its process ended with code -9",
    ):
        assert [each for each in lines if re.match(line, each)], (line, lines)
    assert [file.name for file in (out / "runs/smoke/done").iterdir()] == ["fine.json"]
    folder = out / "runs/smoke/notebooks"
    failed = {f"{name}.failed.ipynb" for name in ("alone", "error", "killed", "lazy", "quits", "slow")}
    assert {file.name for file in folder.iterdir()} == {"fine.ipynb", *failed}
    assert not list((out / "figures").rglob("*.csv"))  # neither the old ones, nor half of the new ones
    killed = nbformat.read(folder / "killed.failed.ipynb", 4)
    assert "kernel killed" in killed.cells[0].source
    states = [cell.metadata.papermill.status for cell in killed.cells[1:]]
    assert states == [*["completed"] * 4, "failed", "pending"]
    assert why(smoke, plan)["error"] == "failed last time"

    make_plan({**notebooks, "error": [PROFILE]}, steps)  # mended: the failed one goes, the good one comes
    assert smoke(plan, "--only", "error", "fine")[0] == 0
    assert (folder / "error.ipynb").exists() and not (folder / "error.failed.ipynb").exists()


def test_values_arrive_as_they_are(smoke, make_plan, out):
    values = [True, None, 1e-05, 'it\'s "x" \\ {y} %s\nü 007', ["1", 1, None, False], "true", {"k": [1.5]}, -3, ""]
    values = dict(zip("abcdefghi", values, strict=True))
    cell = "\n".join(f"{name} = None" for name in values)
    plan = make_plan(
        {"a": [PROFILE + "\n" + cell, WRITE, f"import json; put('p/t1', json.dumps([{', '.join(values)}]))"]},
        [{"notebook": "a", "makes": ["p/t1"]}],
        {"smoke": values, "atlas": {}},
    )
    assert smoke(plan)[0] == 0
    assert json.loads((out / "figures/smoke/p/t1.csv").read_text()) == list(values.values())
    assert why(smoke, plan) == {"a": "up to date"}


RESUME = """
import sys, types
from probelib import files, paths
from probelib.runner import cli
paths.PACKAGE = paths.Path({library!r})
pages = sys.modules["probelib.report.pages"] = types.ModuleType("pages")
pages.book = lambda profile, *_: files.write(paths.RUNS / profile / "report.html", "")
sys.exit(cli.main(sys.argv[1:]))
"""


def test_a_stopped_run_leaves_no_kernel_and_resumes(make_plan, tmp_path, out, smoke):
    log, pid = tmp_path / "log", tmp_path / "pid"
    plan = make_plan(
        {
            "a": [PROFILE, WRITE, f"open({str(log)!r}, 'a').write('a')\nput('p/t1', 5)"],
            "b": [
                PROFILE,
                WRITE,
                f"put('p/t2', 1)\npathlib.Path({str(pid)!r}).write_text(str(os.getpid()))",
                f"import time\nwhile not os.path.exists({str(tmp_path / 'go')!r}): time.sleep(.05)",
                f"put('p/t2', {READ_T1})",
            ],
        },
        [{"notebook": "a", "makes": ["p/t1"]}, {"notebook": "b", "needs": ["a"], "makes": ["p/t2"]}],
    )
    code = RESUME.format(library=str(paths.PACKAGE))
    command = [sys.executable, "-c", code, "--plan", str(plan), "--profile", "smoke"]
    environment = {**os.environ, "PROBELIB_OUT": str(out), "PYTHONPATH": str(ROOT)}
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        # a shell's background jobs ignore Ctrl-C, and so would the runner if the tests are such a job
        listen = lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        runner = subprocess.Popen(command, env=environment, text=True, preexec_fn=listen, **pipes)
        wait_for(pid.exists)
        kernel = psutil.Process(int(pid.read_text() or wait_for(pid.read_text)))
        assert kernel.is_running()
        if number == signal.SIGINT:  # a second runner at the same time
            refused, _, errors = smoke(plan)
            assert refused == 2 and "another run of profile smoke is in progress" in errors[0] and len(errors) == 1
        runner.send_signal(number)
        _, errors = runner.communicate(timeout=120)
        assert runner.returncode == (-9 if number == signal.SIGKILL else 130)
        if number != signal.SIGKILL:
            assert "stopped; the same command resumes" in errors and "Traceback" not in errors
            assert not list((out / "runs/smoke").rglob("*partial*")) and not (out / "figures/smoke/p/t2.csv").exists()
        wait_for(lambda gone=kernel: not gone.is_running() or gone.status() == psutil.STATUS_ZOMBIE)
        assert not (out / "runs/smoke/done/b.json").exists()
        pid.unlink()
    (tmp_path / "go").touch()
    subprocess.run(command, env=environment, check=True, capture_output=True)
    assert log.read_text() == "a"  # the finished step was not done again
    assert (out / "figures/smoke/p/t2.csv").read_text() == "5"
    assert not list((out / "runs/smoke").rglob("*partial*"))


def test_the_status_line_counts_and_estimates(monkeypatch):
    """Two workers: a is done, b took 100 s last time and has run for 40; c took 200 s, and nobody knows how long d takes."""
    monkeypatch.setattr(steps.time, "monotonic", lambda: 1040.0)
    running = {"b": {"start": 1000.0, "cell": 3, "text": "50%"}}
    known = {"a": 30.0, "b": 100.0, "c": 200.0}
    assert steps.progress(known, {"a"}, running, 2) == "1 of 3 notebooks done, about 4 min left | b: cell 3, 40 s 50%"
    assert steps.progress(known, {"a"}, running, 1).startswith("1 of 3 notebooks done, about 5 min left")
    assert steps.progress({**known, "d": None}, {"a"}, {}, 1) == "1 of 4 notebooks done, at least 5 min left"
    assert steps.progress({"d": None}, set(), {}, 1) == "0 of 1 notebooks done"


def test_a_success_leaves_its_seconds_for_the_next_estimate(smoke, make_plan, out):
    plan = make_plan({"a": [PROFILE]}, [{"notebook": "a"}])
    assert uptodate.seconds("smoke", "a") is None
    assert smoke(plan)[0] == 0
    assert uptodate.seconds("smoke", "a") > 0


def wait_for(condition, seconds=120):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)
    return condition()


def test_what_cannot_be_written_is_named(smoke, make_plan, out):
    plan = make_plan(AB, AB_STEPS)
    (out / "runs").mkdir(parents=True)
    (out / "runs/smoke").write_text("a file in place of the folder")
    code, _, errors = smoke(plan)
    assert code == 1 and errors == [f"cannot write {out / 'runs/smoke'}: File exists"]
    (out / "runs/smoke").unlink()
    (out / "runs/smoke").mkdir()
    (out / "runs/smoke/done").write_text("a file in place of the folder")
    code, lines, _ = smoke(plan, "--only", "a")
    assert code == 1 and [line for line in lines if re.match(rf"FAILED +a: .*{re.escape(str(out))}.*done", line)], lines
    assert not (out / "runs/smoke/notebooks/a.ipynb").exists() and not (out / "figures/smoke/p/t1.csv").exists()


def test_requests_that_are_wrong_end_in_one_line(smoke, make_plan, out, capsys):
    plan = make_plan(AB, AB_STEPS)
    for flags, message in (
        (["--models", "x"], "unknown parameter (none of the selected notebooks has it) 'models'"),
        (["--models", ", "], "--models is empty"),
        (["--set", f"n={'[' * 480}{']' * 480}"], "--set"),  # deeper than Python follows, by YAML or by the kit
    ):
        code, lines, errors = smoke(plan, *flags)
        assert (code, lines, len(errors)) == (2, [], 1) and errors[0].startswith(message), errors
    make_plan(AB, AB_STEPS, {"smoke": {"n": "3"}, "atlas": {}})
    assert smoke(plan)[2] == ["plan.yaml, a, smoke: n: '3' is of type str, the notebook takes int."]
    assert not out.exists()  # nothing was started


def test_a_missing_model_is_reported_before_anything_is_deleted(smoke, make_plan, out, tmp_path):
    cells = [PROFILE + "\nmodels = []  # list", WRITE, "put('p/t1', len(models))"]
    plan = make_plan({"a": cells}, [{"notebook": "a", "makes": ["p/t1"]}])
    assert smoke(plan, "--models", "atlas-neox-0.15m")[0] == 0
    made = out / "figures" / "smoke" / "p" / "t1.csv"
    (tmp_path / "half").mkdir()
    (tmp_path / "half" / "config.json").write_text("{}")
    for model, message in (
        ("./nowhere", "./nowhere: no such folder"),
        ("atlas-neox-2", "unknown model 'atlas-neox-2'; did you mean atlas-neox-2.4m"),
        (str(tmp_path / "half"), f"{tmp_path / 'half'} has no *.safetensors"),
    ):
        for flags in ([], ["--dry-run"]):
            code, _, errors = smoke(plan, "--models", f"atlas-neox-0.15m,{model}", *flags)
            assert code == 2 and errors[0].startswith(message), errors
    for model, message in (  # these could come, and do not: known when they are asked for, and not of a dry run
        ("nobody/nothing-160m", "nobody/nothing-160m is not in the local Hugging Face cache"),
        ("http://127.0.0.1:9/v1#x", "http://127.0.0.1:9/v1/models: no response from the model 'x'"),
    ):
        assert smoke(plan, "--models", model, "--dry-run")[0] == 0
        code, _, errors = smoke(plan, "--models", model)
        assert code == 2 and errors[0].startswith(message), errors
    assert smoke(plan, "--set", "profile=atlas")[0] == 2
    assert made.read_text() == "1"


def test_facts_and_models_of_ones_own_that_change_are_read_again(smoke, make_plan, out, tmp_path, monkeypatch):
    """Their paths stay as they are; what lies there does not."""
    monkeypatch.setattr(cli.preflight, "check", lambda *_, **__: None)
    cell = PROFILE + "\nfolder = None  # str: a file\nmodels = []  # list: models"
    cells = [cell, WRITE, "put('p/t1', pathlib.Path(folder).read_text())"]
    plan = make_plan({"a": cells}, [{"notebook": "a", "makes": ["p/t1"]}])
    tmp_path = tmp_path / "of v1.2"  # dots in a folder's name part nothing
    tmp_path.mkdir()
    shutil.copytree(CHECKPOINTS / "atlas-neox-0.15m", tmp_path / "own")
    for name in ("mine.csv", "yours.csv"):
        (tmp_path / name).write_text("one")
    monkeypatch.chdir(tmp_path)
    flags = ["--models", "own", "--set", "folder=mine.csv"]  # from here, not from where the notebook runs
    assert smoke(plan, *flags)[0] == 0 and (out / "figures/smoke/p/t1.csv").read_text() == "one"
    (tmp_path / "yours.csv").write_text("another's")
    (tmp_path / "mine.log").write_text("of no matter")
    assert why(smoke, plan, *flags) == {"a": "up to date"}
    for name in ("mine.csv", "own/training.json", "mine.templates.csv"):  # wordings lie beside
        (tmp_path / name).write_text("two, and longer")
        path = tmp_path / ("own" if "own" in name else "mine.csv")
        assert why(smoke, plan, *flags) == {"a": f"files changed: {path}"}
        assert smoke(plan, *flags)[0] == 0 and why(smoke, plan, *flags) == {"a": "up to date"}
    stat = (tmp_path / "mine.csv").stat()
    (tmp_path / "mine.csv").write_text("six, and longer")  # as long, and as old
    os.utime(tmp_path / "mine.csv", ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert why(smoke, plan, *flags) == {"a": f"files changed: {tmp_path / 'mine.csv'}"}
    assert smoke(plan, *flags)[0] == 0 and (out / "figures/smoke/p/t1.csv").read_text() == "six, and longer"
    (tmp_path / "mine.csv").unlink()
    before = snapshot(out)
    code, _, said = smoke(plan, *flags)
    assert code == 2 and said == ["--set folder=mine.csv: there is no such file or folder."] and snapshot(out) == before


@pytest.mark.parametrize("back", [False, True])
def test_inputs_that_change_while_a_step_runs_are_an_error(
    smoke, make_plan, out, tmp_path, back, monkeypatch
):
    """Also if they are put back before it ends: it may have read either."""
    monkeypatch.setattr(cli.preflight, "check", lambda *_, **__: None)
    file = tmp_path / "mine.csv"
    file.write_text("one")
    change = f"pathlib.Path({str(file)!r}).write_text('two')" + f"\npathlib.Path({str(file)!r}).write_text('one')" * back
    cells = [PROFILE + "\nfolder = None  # str: a file", WRITE, f"put('p/t1', 1)\n{change}"]
    plan = make_plan({"a": cells}, [{"notebook": "a", "makes": ["p/t1"]}])
    code, lines, errors = smoke(plan, "--set", f"folder={file}")
    assert code == 1, errors
    assert re.search(r"FAILED +a .*files changed.* while it ran: run it again", "\n".join(lines))
    assert not (out / "figures/smoke/p/t1.csv").exists() and not list((out / "runs/smoke/done").glob("*"))


def test_a_model_that_is_named_twice_counts_once(tmp_path, capsys):
    (tmp_path / "m").mkdir()
    words = ("--models", f"a,{tmp_path}/m,a,{tmp_path}/m/", "--set", "tuned=[x, y, x]")
    assert given(*words) == {"tuned": ["x", "y"], "models": ["a", f"{tmp_path}/m"]}
    assert capsys.readouterr().err.count("is named twice; it counts once") == 3


def given(*words: str) -> dict:
    """The parameters that the command line sets."""
    return cli._given(cli._parser().parse_args(words))


@pytest.mark.parametrize(
    ("words", "data"),
    [(["data=table", "columns=subject:s,relation:=P36"], "table?subject:s,relation:=P36"),
     (["columns={subject: s, relation: prop}"], "table?subject:s,relation:prop"),
     (["data=hub:me/capitals", "columns=subject:s"], "hub:me/capitals?subject:s"),
     (["data=hub:akariasai/PopQA"], "hub:akariasai/PopQA")],
)  # fmt: skip
def test_columns_of_ones_own_facts_are_part_of_the_data(words, data):
    assert given("--set", *words) == {"data": data}


def test_a_graph_of_ones_own_lies_where_the_command_is_given(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("mine.ttl", "atlas"):
        (tmp_path / name).write_text("")
    expected = {"mine.ttl": str(tmp_path / "mine.ttl"), "atlas": "atlas"}
    assert {text: given("--set", f"graph={text}")["graph"] for text in expected} == expected


def test_parameters_that_only_name_files_are_looked_for():
    """Texts that may be left out, and are no models."""
    accepts = {name: types for step in plan.read().steps for name, types in step.accepts.items()}
    defaults = {}
    for step in plan.read().steps:
        defaults |= plan.parameters.defaults(step.path)
    texts = {name for name, types in accepts.items() if types == {str, type(None)} and defaults[name] is None}
    assert texts - {*preflight.NAMES, "quantize"} <= cli.FILES


def test_list_and_help(smoke, make_plan, capsys):
    code, lines, _ = smoke(make_plan(AB, AB_STEPS), "--list")
    assert (code, lines) == (0, ["notebook  makes", "a         p/t1", "b         p/t2", "c         q/t3"])
    with pytest.raises(SystemExit, match="0"):
        cli.main(["--help"])
    text = capsys.readouterr().out
    assert "examples:" in text and "--dry-run" in text and "./run_all.sh lab" in text


def test_models_reach_the_notebooks_that_have_them(smoke, make_plan, out, monkeypatch, tmp_path):
    (tmp_path / "my/model").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    plan = make_plan({"a": [PROFILE + "\nmodels = ['x']"], "b": [PROFILE]}, [{"notebook": "a"}, {"notebook": "b"}])
    assert given("--models", "gpt2, my/model,x/y") == {"models": ["gpt2", str(tmp_path / "my/model"), "x/y"]}
    assert why(smoke, plan, "--models", "x/y") == {"a": "never ran", "b": "never ran"}


@pytest.mark.parametrize(
    "gpus, jobs, shares",
    [
        (["0", "1", "2", "3"], None, ["0", "1", "2", "3"]),
        (["0", "1", "2", "3"], 2, ["0,2", "1,3"]),
        (["0"], 2, ["0", "0"]),
        (["0", "1"], 1, [None]),
        ([], 2, [None, None]),
    ],
)
def test_jobs_share_the_gpus(monkeypatch, gpus, jobs, shares):
    monkeypatch.setattr(steps, "gpus", lambda: gpus)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert [each.get("CUDA_VISIBLE_DEVICES") for each in steps.environments(jobs)] == shares


def test_a_broken_report_is_reported_but_harms_no_step(smoke, make_plan, out, monkeypatch):
    monkeypatch.setattr(sys.modules["probelib.report.pages"], "book", lambda *_: 1 / 0)
    plan = make_plan({"a": [PROFILE]}, [{"notebook": "a"}])
    code, lines, _ = smoke(plan)
    assert code == 1 and lines[-1] == "FAILED     report: ZeroDivisionError: division by zero"
    assert why(smoke, plan) == {"a": "up to date"}


def test_the_shell_script():
    script = ROOT / "run_all.sh"
    subprocess.run(["bash", "-n", script], check=True)
    assert len(script.read_text().splitlines()) <= 70
    shown = run_script("--help", stdin=subprocess.DEVNULL, cwd="/")
    assert shown.returncode == 0 and "examples:" in shown.stdout and not shown.stderr


def run_script(*words: str, environment: dict | None = None, **options) -> subprocess.CompletedProcess:
    """Run run_all.sh with the Python of the tests."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    kit = {"PATH": path, "VIRTUAL_ENV": sys.prefix, "PYTHONPATH": str(ROOT)} | (environment or {})
    command = [ROOT / "run_all.sh", *words]
    return subprocess.run(command, env=os.environ | kit, capture_output=True, text=True, **options)


def test_modules_of_the_folder_a_run_is_started_in_are_not_taken(smoke, make_plan, out, tmp_path, monkeypatch):
    """Another checkout, or a user's own yaml.py: not for the runner, not for the processes and kernels it starts."""
    here = tmp_path / "here"
    (here / "probelib").mkdir(parents=True)
    for name in ("probelib/__init__", "yaml", "papermill", "ipykernel_launcher", "pandas"):
        (here / f"{name}.py").write_text("raise SystemExit('the one of the working folder')")
    for flags in (["--list"], ["--help"], ["course", "--help"]):
        done = run_script(*flags, cwd=here)
        assert done.returncode == 0, done.stderr
    monkeypatch.chdir(here)
    plan = make_plan({"a": [PROFILE, "import pandas", WRITE, "put('p/t1', 1)"]}, [{"notebook": "a", "makes": ["p/t1"]}])
    code, lines, _ = smoke(plan)
    assert code == 0, lines


def test_dependencies_are_listed_once():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    optional = project["optional-dependencies"]
    lines = [*project["dependencies"], *(line for extra in optional.values() for line in extra)]
    wanted = [each for each in map(Requirement, lines) if each.name != "probelib"]
    assert Requirement(optional["all"][0]).extras == set(optional) - {"all", "test", "croissant", "lm-eval"}  # large
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    *conda, pip = environment["dependencies"]
    assert conda == [f"python{project['requires-python']}", "pip"] and pip["pip"] == ["-c constraints.txt", "-e .[all]"]
    lines = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if not line.startswith("#")]
    pinned = {Requirement(line).name.lower(): line.split("==")[1] for line in lines}
    for each in wanted:
        assert each.specifier.contains(pinned[each.name.lower()], prereleases=True), each


def test_what_is_imported_is_declared():
    """What only comes along with another package may be of any version, or be gone tomorrow."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    optional = project["optional-dependencies"]
    same = lambda name: re.sub(r"[-_.]+", "-", name).lower()
    extras = [line for name, lines in optional.items() if name not in ("all", "test") for line in lines]
    declared = {same(Requirement(line).name) for line in project["dependencies"] + extras}
    owners, found = packages_distributions(), set()
    for path in (ROOT / "probelib").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
            names += [node.module] if isinstance(node, ast.ImportFrom) and not node.level else []
            found |= {name.split(".")[0] for name in names}
    found -= sys.stdlib_module_names | {"probelib"}
    assert len(found) > 30
    assert not [name for name in sorted(found) if not declared & set(map(same, owners.get(name, [])))]


def test_a_missing_extra_is_named():
    with pytest.raises(ProbeError, match=r"no_such_library is not installed.*'\.\[graphs\]'"), extra("graphs"):
        import no_such_library  # noqa: F401


def test_an_empty_folder_to_write_to_is_an_error(smoke, make_plan, out, monkeypatch):
    monkeypatch.setenv("PROBELIB_OUT", "")
    code, _, said = smoke(make_plan(AB, AB_STEPS), "--list")
    assert code == 2 and "PROBELIB_OUT is empty" in said[0]
    for command in ("verify", "browse", "lab"):
        done = run_script(command)
        assert done.returncode == 2 and "PROBELIB_OUT is empty" in done.stderr


@pytest.mark.parametrize(
    ("kind", "said", "wanted"),
    [("RuntimeError", "could not create a primitive", "most likely out of memory.*memory to 2 GB"),
     ("CellExecutionError", ";", "memory to 2 GB .ulimit -v. and open files to 40 .ulimit -n."),
     ("OSError", "[Errno 24] Too many open files", "open files to 40"), ("ValueError", "no", "^$")],
)  # fmt: skip
def test_a_process_killed_by_a_limit_of_the_shell_has_a_reason(monkeypatch, kind, said, wanted):
    monkeypatch.setattr(kernel.resource, "getrlimit", lambda which: (40 if which == resource.RLIMIT_NOFILE else 2e9, 0))
    assert re.search(wanted, kernel.hint(kind, said))


def test_start_up_files_of_a_user_are_not_run_in_notebooks(smoke, make_plan, out, tmp_path, monkeypatch):
    """A matplotlibrc, and a file of ~/.ipython that replaces ``any`` by numpy's, which takes a generator for true."""
    start = tmp_path / "home" / "profile_default" / "startup"
    start.mkdir(parents=True)
    (start / "00.py").write_text("from numpy import *")
    (tmp_path / "matplotlibrc").write_text("lines.linewidth: 9")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "home"))
    monkeypatch.setenv("MATPLOTLIBRC", str(tmp_path))
    width = "from probelib.report import use_style\nuse_style()\nwidth = __import__('matplotlib').rcParams['lines.linewidth']"
    cells = [PROFILE, WRITE, width, "put('p/t1', [any(x > 5 for x in [1, 2, 3]), width])"]
    code, lines, _ = smoke(make_plan({"a": cells}, [{"notebook": "a", "makes": ["p/t1"]}]))
    assert code == 0, lines
    assert (out / "figures/smoke/p/t1.csv").read_text() == "[False, 1.4]"


def test_another_checkout_on_the_python_path_is_not_run_and_breaks_no_installation(tmp_path):
    """PYTHONPATH names another checkout: this one's code runs, and nothing is installed anew."""
    (tmp_path / "probelib" / "runner").mkdir(parents=True)
    for folder in ("probelib", "probelib/runner"):
        (tmp_path / folder / "__init__.py").touch()
    (tmp_path / "probelib" / "runner" / "__main__.py").write_text("print('I AM THE OTHER CHECKOUT')")
    done = run_script("--list", environment={"PYTHONPATH": str(tmp_path), "PIP_NO_INDEX": "1"})
    assert done.returncode == 0 and "Installing" not in done.stderr, done.stderr
    assert "OTHER" not in done.stdout and "monitor/table4" in done.stdout


def test_a_checkout_whose_path_has_a_colon_is_refused(tmp_path):
    """PYTHONPATH would name two other folders."""
    copy = tmp_path / "a:b" / "run_all.sh"
    copy.parent.mkdir()
    shutil.copy(ROOT / "run_all.sh", copy)
    done = subprocess.run([copy, "--list"], cwd="/", capture_output=True, text=True)
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1
    assert f"{copy.parent} has a colon" in done.stderr


@pytest.mark.skipif(not shutil.which("flock"), reason="needs flock (util-linux)")
def test_two_installs_at_once_do_not_meet(tmp_path):
    """The part of the script that installs, with a pip that takes its time and says when it begins and ends."""
    script = (ROOT / "run_all.sh").read_text()
    lines = re.search(r"^installed\(\).*?^}$", script, re.M | re.S)[0]
    (tmp_path / ".venv").mkdir()
    (tmp_path / "constraints.txt").write_text("")
    (tmp_path / "said").touch()
    stub = f"""
set -euo pipefail
root={tmp_path}; venv=$root/.venv; wanted=1; python=python
ready() {{ true; }}
nvidia-smi() {{ true; }}
pip() {{ [[ $1 == list ]] && return; echo begin >> $root/said; sleep 0.3; echo end >> $root/said; }}
{lines}
installed || (install)
"""
    both = [subprocess.Popen(["bash", "-c", stub], stderr=subprocess.PIPE, text=True) for _ in range(2)]
    assert [one.wait(60) for one in both] == [0, 0], [one.stderr.read() for one in both]
    assert (tmp_path / "said").read_text().split() == ["begin", "end"]
    mark = tmp_path / ".venv/complete"
    assert mark.read_text() == "1\n"
    failing = stub.replace("wanted=1", "wanted=2").replace("sleep 0.3", "false")
    assert subprocess.run(["bash", "-c", failing], capture_output=True).returncode and mark.read_text() == "1\n"


def test_a_number_of_threads_that_the_user_sets_holds(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert steps.environments(2)[0]["OMP_NUM_THREADS"] == "3"
    monkeypatch.delenv("OMP_NUM_THREADS")
    assert int(steps.environments(1)[0]["OMP_NUM_THREADS"]) >= 1
