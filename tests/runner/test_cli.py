"""The runner executes what has to run, and nothing else; a failure never looks like a success."""

import ast
import asyncio
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import tomllib
import warnings
from importlib.metadata import packages_distributions, version
from itertools import takewhile
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import nbformat
import psutil
import pytest
from jupyter_core.utils import run_sync
from packaging.requirements import Requirement

from probelib import files, paths
from probelib.errors import ProbeError, extra
from probelib.lm.names import CHECKPOINTS
from probelib.paths import ROOT
from probelib.runner import cli, plan, preflight, steps, uptodate
from tests.conftest import PROFILE
from tests.runner.conftest import set_out

WRITE = """
import os, pathlib
def put(artifact, text):
    file = pathlib.Path(os.environ["PROBELIB_OUT"], "figures", profile, artifact + ".csv")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(str(text))
"""
POOL = "from multiprocessing import Pool\ndef f(x): return 3 * x\nprint(Pool(1).map(f, [3]))"
READ_T1 = "(pathlib.Path(os.environ['PROBELIB_OUT'], 'figures', profile, 'p/t1.csv')).read_text()"
AB = {
    "a": [PROFILE + "\nn = 1", WRITE, "put('p/t1', n)"],
    "b": [PROFILE + "\nm = 1", WRITE, f"put('p/t2', m * {READ_T1})"],
    "c": [PROFILE, WRITE, "put('q/t3', 3)"],
}
AB_STEPS = [
    {"notebook": "a", "makes": ["p/t1"]},
    {"notebook": "b", "needs": ["a"], "makes": ["p/t2"]},
    {"notebook": "c", "makes": ["q/t3"]},
]
ONE = [{"notebook": "a", "makes": ["p/t1"]}]


@pytest.fixture
def out(tmp_path, monkeypatch):
    """Runs and figures (a name that tries str.format), a library of two files, a short report."""
    out = set_out(monkeypatch, tmp_path / "out {of} this")
    monkeypatch.setattr(paths, "PACKAGE", tmp_path / "library")
    for name in ("one.py", "data/x.csv"):
        files.write(tmp_path / "library" / name, "1")

    def book(profile, steps, status, about):
        assert about["profile"] == [profile] and about["its data"] == pages.data
        (paths.RUNS / profile / "report.html").write_text(json.dumps(status))

    pages = SimpleNamespace(book=book, data=["atlas"])
    monkeypatch.setitem(sys.modules, "probelib.report.pages", pages)
    return out


@pytest.fixture
def smoke(out, capsys):
    """Runs a plan under the profile smoke: (exit code, lines on stdout, lines on stderr)."""

    def run_plan(plan, *flags):
        code = cli.main(["--plan", str(plan), "--profile", "smoke", *flags])
        printed = capsys.readouterr()
        return code, printed.out.splitlines(), printed.err.splitlines()

    run_sync(asyncio.sleep)(0)  # as after a notebook in this thread: its loop is known
    return run_plan


def why(smoke, plan, *flags):
    """What --dry-run says of each notebook; models, data and time follow."""
    code, lines, errors = smoke(plan, "--dry-run", *flags)
    assert code == 0, errors
    is_step = lambda line: not line.startswith("models: ")
    return dict(re.split(r"  +", line, maxsplit=1) for line in takewhile(is_step, lines[2:]))


def snapshot(folder):
    there = [file for file in folder.rglob("*") if file.is_file()]
    return {file: (file.stat().st_mtime_ns, file.read_bytes()) for file in there}


def test_only_what_changed_and_what_needs_it_runs(smoke, make_plan, out, tmp_path, monkeypatch):
    spec = '{"argv": ["false"], "display_name": "x", "language": "python"}'  # a user's own one
    files.write(tmp_path / "jupyter/kernels/python3/kernel.json", spec)  # must not be what runs
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "jupyter"))
    fine = dict.fromkeys("abc", "up to date")

    plan = make_plan(AB, AB_STEPS)
    assert why(smoke, plan) == dict.fromkeys("abc", "never ran")
    assert not out.exists()  # --dry-run writes nothing
    code, lines, _ = smoke(plan, "--jobs", "1")
    assert code == 0, lines
    assert (out / "figures/smoke/p/t2.csv").read_text() == "1"
    report = out / "runs/smoke/report.html"
    assert json.loads(report.read_text()) == dict.fromkeys("abc", "ok")
    ended = [line.split()[1] for line in lines if re.match(r"ok +\w \d+\.\d s", line)]
    assert ended == ["a", "b", "c"]  # b needs a, and together they are more urgent than c
    executed = nbformat.read(out / "runs/smoke/notebooks/a.ipynb", 4)
    assert "out {of} this" in executed.metadata.papermill.output_path

    before = snapshot(out)
    code, lines, _ = smoke(plan)
    assert code == 0 and not [line for line in lines if line.startswith(("start", "ok"))]
    assert snapshot(out) == before
    for name in ("t1.md", "t1.mynotes.txt"):  # a page, and a user's own file, are no products
        (out / "figures/smoke/p" / name).touch()
    assert why(smoke, plan) == fine

    def changed(**profile):
        make_plan(AB, AB_STEPS, {"smoke": profile, "atlas": {}})
        return why(smoke, plan)

    assert changed(m=2) == fine | {"b": "parameters changed: m"}
    assert changed(n=2) == fine | {"a": "parameters changed: n", "b": "needs a, which runs"}
    make_plan({**AB, "c": [*AB["c"], "1"]}, AB_STEPS)
    assert why(smoke, plan) == fine | {"c": "notebook changed: code"}
    make_plan(AB, AB_STEPS)
    assert why(smoke, plan, "--only", "b", "--force") == {"a": "up to date", "b": "forced"}
    library = tmp_path / "library"
    for file in ("one.py", "data/x.csv"):
        (library / file).write_text("2")
        assert why(smoke, plan) == dict.fromkeys("abc", f"library changed: {file}")
        (library / file).write_text("1")
    with monkeypatch.context() as patch:
        newer = lambda name: "99.0" if name == "torch" else version(name)
        patch.setattr(uptodate, "version", newer)
        assert why(smoke, plan)["a"] == "versions changed: torch"
    (out / "figures/smoke/p/t1.csv").write_text("9")
    assert why(smoke, plan)["a"] == "product changed: p/t1.csv"
    (out / "figures/smoke/p/t1.csv").unlink()
    missing = {"a": "product missing: p/t1.csv", "b": "needs a, which runs"}
    assert why(smoke, plan) == fine | missing
    (out / "runs/smoke/notebooks/c.ipynb").unlink()
    assert why(smoke, plan)["c"] == "product missing: executed notebook"
    (out / "figures/smoke/p/t1.claims.csv").touch()  # an old one goes when the step runs

    make_plan(AB, AB_STEPS, {"smoke": {"n": 2}, "atlas": {}})
    assert smoke(plan, "--only", "p")[0] == 0
    assert (out / "figures/smoke/p/t2.csv").read_text() == "2"
    assert why(smoke, plan) == fine | {"c": "product missing: executed notebook"}
    assert set(json.loads(report.read_text())) == {"a", "b"}
    made = {file.name for file in (out / "figures/smoke/p").iterdir()}
    assert made == {"t1.csv", "t1.md", "t1.mynotes.txt", "t2.csv"}
    make_plan(AB, [*AB_STEPS[:1], AB_STEPS[1] | {"makes": ["p/t2", "p/t4"]}])
    assert why(smoke, plan, "--set", "n=2")["b"] == "product missing: p/t4"


def test_failures_are_reported_kept_and_not_taken_for_success(smoke, make_plan, out):
    notebooks = {
        **dict.fromkeys(("fine", "after", "later", "lazy"), [PROFILE]),
        "error": [PROFILE, "1 + 1", "raise ValueError('\\x1b[2J\\ny')", "3"],
        "killed": [PROFILE, WRITE, "put('p/t1', 1)", "os.kill(os.getpid(), 9)", "print('later')"],
        "quits": [PROFILE, "import sys; sys.exit(0)", "2"],
    }
    entries = [{"notebook": name} for name in ("error", "quits", "fine")]
    entries += [{"notebook": "killed", "makes": ["p/t1"]}, {"notebook": "lazy", "makes": ["p/t2"]}]
    chain = (("after", "killed"), ("later", "after"))
    entries += [{"notebook": name, "needs": [need]} for name, need in chain]
    old = [files.write(out / "figures/smoke" / name, "earlier") for name in ("p/t2.csv", "lazy.md")]
    plan = make_plan(notebooks, entries)
    code, lines, _ = smoke(plan)
    assert code == 1
    for line in (
        r"FAILED +error .*cell 4: ValueError: ␛\[2J y.*see .*/error\.failed\.ipynb",
        r"FAILED +killed .*cell 5: kernel killed; most likely out of memory: fewer --jobs",
        r"ok +fine",
        r"skipped +after: needs killed",
        r"skipped +later: needs after",
        r"FAILED +lazy .*did not make p/t2",
        r"FAILED +quits .*cell 4: never ran",
    ):
        assert [each for each in lines if re.match(line, each)], (line, lines)
    assert [file.name for file in (out / "runs/smoke/done").iterdir()] == ["fine.json"]
    folder = out / "runs/smoke/notebooks"
    failed = {f"{name}.failed.ipynb" for name in ("error", "killed", "lazy", "quits")}
    assert {file.name for file in folder.iterdir()} == {"fine.ipynb", *failed}
    assert not [*(out / "figures").rglob("*.csv"), *(file for file in old if file.exists())]
    assert why(smoke, plan)["error"] == "failed last time"

    make_plan({**notebooks, "error": [PROFILE]}, entries)  # mended: the failed one goes
    assert smoke(plan, "--only", "error", "fine")[0] == 0
    assert (folder / "error.ipynb").exists() and not (folder / "error.failed.ipynb").exists()


def test_values_arrive_as_they_are(smoke, make_plan, out, monkeypatch):
    """And a report that fails harms no step."""
    texts = ['it\'s "x" \\ {y} %s\nü 007', ["1", 1, None, False], "true", {"k": [1.5]}, -3, ""]
    values = dict(zip("abcdefghi", [True, None, 1e-05, *texts], strict=True))
    cell = "\n".join(f"{name} = None" for name in values)
    put = f"import json; put('p/t1', json.dumps([{', '.join(values)}]))"
    drawn = "import matplotlib.pyplot as plt\nplt.plot([1, 2]);"  # shown inline, also by a fork
    cells = {"a": [f"{PROFILE}\n{cell}", WRITE, put, "held = b'x' * 400_000_000", drawn, POOL]}
    plan = make_plan(cells, ONE, {"smoke": values, "atlas": {}})
    monkeypatch.setattr(sys.modules["probelib.report.pages"], "book", lambda *_: 1 / 0)
    files.write(out / "runs/smoke/report.html", "of an earlier run")
    code, lines, _ = smoke(plan)
    assert code == 1 and lines[-1] == "FAILED     report: ZeroDivisionError: division by zero"
    assert json.loads((out / "figures/smoke/p/t1.csv").read_text()) == list(values.values())
    assert re.search(r"(?s)image/png.*\[9\]", (out / "runs/smoke/notebooks/a.ipynb").read_text())
    assert float(re.search(r"([\d.]+) GB", lines[1])[1]) >= 0.4  # the notebook's peak memory
    assert why(smoke, plan) == {"a": "up to date"} and smoke(plan)[0] == 1  # the report is old


RESUME = """
import sys, types
from probelib import files, paths
from probelib.runner import cli, kernel
kernel.LIBRARIES, paths.PACKAGE = [], paths.Path({library!r})
pages = sys.modules["probelib.report.pages"] = types.ModuleType("pages")
pages.book = lambda profile, *_: files.write(paths.RUNS / profile / "report.html", "")
sys.exit(cli.main(sys.argv[1:]))
"""


def wait_for(condition):
    end = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)
    return condition()


def test_a_stopped_run_leaves_no_kernel_and_resumes(make_plan, tmp_path, out, smoke):
    log, pid, go = (tmp_path / name for name in ("log", "pid", "go"))
    own = f"put('p/t2', 1)\npathlib.Path({str(pid)!r}).write_text(str(os.getpid()))"
    wait = f"import time\nwhile not os.path.exists({str(go)!r}): time.sleep(.05)"
    logs = f"open({str(log)!r}, 'a').write('a')\nput('p/t1', 5)"
    b = [PROFILE, WRITE, "os.system('echo past')", own, wait, f"put('p/t2', {READ_T1})"]
    plan = make_plan({"a": [PROFILE, WRITE, logs], "b": b}, AB_STEPS[:2])
    code = RESUME.format(library=str(paths.PACKAGE))
    command = [sys.executable, "-c", code, "--plan", str(plan), "--profile", "smoke"]
    environment = {**os.environ, "PROBELIB_OUT": str(out), "PYTHONPATH": str(ROOT)}
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        # background jobs of a shell ignore Ctrl-C, and so would the runner of tests in one
        listen = lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        runner = subprocess.Popen(command, env=environment, text=True, preexec_fn=listen, **pipes)
        wait_for(pid.exists)
        process = psutil.Process(int(pid.read_text() or wait_for(pid.read_text)))
        if number == signal.SIGINT:  # a second runner at the same time
            refused, _, errors = smoke(plan)
            assert refused == 2 and "another run of profile smoke is in progress" in errors[0]
        for _ in range(2):  # the impatient press Ctrl-C again
            runner.send_signal(number)
        said, errors = runner.communicate(timeout=120)
        assert runner.returncode == (-9 if number == signal.SIGKILL else 130)
        assert not re.search("Traceback|past", said + errors)
        if number != signal.SIGKILL:
            assert "stopped; the same command resumes" in errors
            assert not list((out / "runs/smoke").rglob("*partial*"))
            assert not (out / "figures/smoke/p/t2.csv").exists()
        wait_for(lambda p=process: not p.is_running() or p.status() == psutil.STATUS_ZOMBIE)
        assert not (out / "runs/smoke/done/b.json").exists()
        pid.unlink()
    go.touch()
    subprocess.run(command, env=environment, check=True, capture_output=True)
    assert log.read_text() == "a"  # the finished step was not done again
    assert (out / "figures/smoke/p/t2.csv").read_text() == "5"
    assert not list((out / "runs/smoke").rglob("*partial*"))


def test_a_step_whose_record_cannot_be_written_leaves_nothing(smoke, make_plan, out, monkeypatch):
    """A file stands in place of a folder; then the disk is full, and the next step still runs."""
    files.write(out / "runs/smoke/done", "")
    plan = make_plan(AB, AB_STEPS)
    code, lines, _ = smoke(plan, "--only", "a")
    assert code == 1 and [line for line in lines if re.match(r"FAILED +a: .*done", line)], lines
    (out / "runs/smoke/done").unlink()
    monkeypatch.setattr(uptodate, "write", Mock(side_effect=ProbeError("done: no space left")))
    code, lines, _ = smoke(plan, "--jobs", "1")
    assert code == 1 and {f"FAILED     {name}: done: no space left" for name in "ac"} <= {*lines}
    for file in ("runs/smoke/notebooks/a.ipynb", "figures/smoke/p/t1.csv"):
        assert not (out / file).exists()


def test_a_missing_model_is_reported_before_anything_is_deleted(smoke, make_plan, out):
    plan = make_plan({"a": [PROFILE + "\nmodels: list = []"]}, [{"notebook": "a"}])
    made = out / "runs/smoke/notebooks/a.ipynb"
    files.write(made, "")
    hub, server = "nobody/nothing-160m", "http://127.0.0.1:9/v1"
    for model, message, dry in (
        ("./nowhere", "./nowhere: no such folder", 2),
        (f"{server}#x", f"{server}/models: no response", 0),
        (hub, f"{hub} is not in the local Hugging Face cache", 0),
    ):
        for flags in ([], ["--dry-run"]):
            code, _, errors = smoke(plan, "--models", f"atlas-neox-0.15m,{model}", *flags)
            assert code == (dry if flags else 2)
            assert code == 0 or errors[0].startswith(message), errors
    assert made.exists()


def test_own_facts_and_models_are_read_again(smoke, make_plan, out, tmp_path, monkeypatch):
    """Paths stay as they are; what lies there does not. A change while a step runs is an error."""
    monkeypatch.setattr(cli.preflight, "check", lambda *_, **__: None)
    cell = PROFILE + "\nfolder: 'str or None' = None\nmodels: list = []"
    cells = [cell, WRITE, "put('p/t1', pathlib.Path(folder).read_text())"]
    plan, made = make_plan({"a": cells}, ONE), out / "figures/smoke/p/t1.csv"
    here = tmp_path / "of v1.2"  # dots in a folder's name part nothing
    shutil.copytree(CHECKPOINTS / "atlas-neox-0.15m", here / "own")
    (here / "mine.csv").write_text("one")
    monkeypatch.chdir(here)  # paths begin here, not where the notebook runs
    flags = ["--models", "own", "--set", "folder=mine.csv"]
    sys.modules["probelib.report.pages"].data = ["mine.csv"]  # what the report's head names
    assert smoke(plan, *flags)[0] == 0 and made.read_text() == "one"
    (here / "mine.log").write_text("of no matter")
    assert why(smoke, plan, *flags) == {"a": "up to date"}
    stat = (here / "mine.csv").stat()
    (here / "mine.csv").write_text("six")  # as long, and as old
    os.utime(here / "mine.csv", ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert why(smoke, plan, *flags) == {"a": "files changed: mine.csv"}
    (here / "own/training.json").write_text("two, and longer")
    assert why(smoke, plan, *flags)["a"] == "files changed: mine.csv, own"
    make_plan({"a": [*cells, "pathlib.Path(folder).write_text('two')"]}, ONE)
    code, lines, _ = smoke(plan, *flags)
    assert code == 1 and re.search(r"FAILED +a .*files changed.* while it ran", "\n".join(lines))
    assert not made.exists() and not list((out / "runs/smoke/done").glob("*"))
    (here / "mine.csv").unlink()
    code, _, said = smoke(plan, *flags)
    assert code == 2 and said == ["--set folder=mine.csv: there is no such file or folder."]


def test_a_warning_is_said_once_in_one_line(make_plan, out, monkeypatch, capsys):
    def check(*_, **__):
        for text in ("two of a name", "two of a name", "an old file"):
            warnings.warn(text, stacklevel=1)

    monkeypatch.setattr(cli.preflight, "check", check)
    file = make_plan({"a": [PROFILE]}, [{"notebook": "a"}])
    assert cli.main(["--plan", str(file), "--profile", "smoke", "--dry-run"]) == 0
    assert capsys.readouterr().err == "warning: two of a name\nwarning: an old file\n"


def test_progress_names_the_time_left_where_every_notebook_ran_before(monkeypatch, capsys):
    """Two at a time: 60 s of a are over 100 s, b took 120 s, so that a minute is left."""

    async def sleep(_):
        if error := next(shown):
            raise error

    monkeypatch.setattr(steps.asyncio, "sleep", sleep)
    running = {"a": {"start": time.monotonic() - 100, "cell": 3, "bar": "m:\x1b 40%"}}
    for due, said in (
        ({"a": 60, "b": 120}, "done, about 1 min left | a: cell 3, 100 of 60 s m:␛ 40%"),
        ({"a": 0, "b": 120}, "done | a: cell 3, 100 s m:␛ 40%"),
    ):
        shown = iter([None, asyncio.CancelledError()])
        with pytest.raises(asyncio.CancelledError):
            asyncio.run(steps._show(due, {}, running, jobs=2))
        assert capsys.readouterr().out.strip() == f"0 of 2 notebooks {said}"


def given(*words: str, **types) -> dict:
    """The parameters that the command line sets; ``types`` of the notebooks' parameters."""
    return cli._given(cli._parser().parse_args(words), types or {"models": {list}})


def test_models_replace_all_others():
    assert given("--models", "gpt2, my/model,x/y,gpt2") == {"models": ["gpt2", "my/model", "x/y"]}
    types = dict.fromkeys(("models", "tuned", "masked", "encoder_decoders"), {list})
    types |= {"model_name": {str}, "studied": {str}, "n_facts": {int}}
    types |= dict.fromkeys(("judge", "encoder"), {str, type(None)})
    found = given("--models", "a,b", "--set", "tuned=[c=a]", "judge=d", **types)
    nothing = {"masked": [], "encoder_decoders": [], "encoder": None, "studied": None}
    asked = {"models": ["a", "b"], "model_name": "a", "tuned": ["c=a"], "judge": "d"}
    assert found == nothing | asked


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["data=table", "columns=subject:s,relation:=P36"], "table?subject:s,relation:=P36"),
        (["columns=subject:s,relation:prop"], "table?subject:s,relation:prop"),
        (["graph=~/mine.ttl"], "/home/me/mine.ttl"),
    ],
)
def test_ones_own_facts_and_graph(monkeypatch, words, found):
    monkeypatch.setenv("HOME", "/home/me")
    assert [*given("--set", *words).values()] == [found]


def test_no_shipped_organism_stays_beside_own_models():
    whole = plan.read()
    chosen = [step for step in whole.steps if {*preflight.NAMES} & step.accepts.keys()]
    found = cli._given(cli._parser().parse_args(["--models", "a/b,c/d"]), plan.types(chosen))
    for profile in whole.profiles:
        settings = plan.settings(whole, chosen, profile, found)
        inner = {n: v.get("settings") or {} for n, v in settings.items()}
        assert {*preflight.models(settings), *preflight.models(inner)} == {"a/b", "c/d"}


def test_own_models_and_facts_run_as_mine(make_plan, out, capsys):
    cells = {"a": [PROFILE + "\nmodels: list = []\nn = 1"]}
    file = make_plan(cells, [{"notebook": "a"}], {"atlas": {"n": 3}, "mine": {}, "smoke": {}})
    for flags, profile in (
        ([], "atlas"),
        (["--set", "n=5"], "mine"),
        (["--models", "a/b"], "mine"),
        (["--models", "a/b", "--profile", "smoke"], "smoke"),
    ):
        assert cli.main(["--plan", str(file), "--dry-run", *flags]) == 0
        assert capsys.readouterr().out.startswith(f"profile {profile}: products in {out}")


@pytest.mark.parametrize(
    ("gpus", "jobs", "shares"),
    [
        (["0", "1", "2", "3"], None, ["0", "1", "2", "3"]),
        (["0", "1", "2", "3"], 2, ["0,2", "1,3"]),
        ([], 2, [None, None]),
    ],
)
def test_jobs_share_the_gpus_and_the_threads(monkeypatch, gpus, jobs, shares):
    monkeypatch.setattr(steps, "gpus", lambda: gpus)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    found = steps.environments(jobs)
    assert [each.get("CUDA_VISIBLE_DEVICES") for each in found] == shares
    assert found[0]["OMP_NUM_THREADS"] == "3"  # what the user sets holds
    monkeypatch.delenv("OMP_NUM_THREADS")
    assert int(steps.environments(1)[0]["OMP_NUM_THREADS"]) >= 1


def test_no_file_of_the_user_reaches_notebooks(smoke, make_plan, out, tmp_path, monkeypatch):
    """A user's ~/.ipython that replaces ``any`` by numpy's; a yaml.py and another checkout where
    the run is started."""
    files.write(tmp_path / "home/profile_default/startup/00.py", "from numpy import *")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "home"))
    here = tmp_path / "here"
    for name in ("probelib/__init__", "yaml", "papermill", "ipykernel_launcher", "pandas"):
        files.write(here / f"{name}.py", "raise SystemExit('the one of the working folder')")
    for flags in (["--list"], ["--help"]):
        done = run_script(*flags, cwd=here)
        assert done.returncode == 0, done.stderr
    monkeypatch.chdir(here)
    cells = [PROFILE, "import pandas", WRITE, "put('p/t1', any(x > 5 for x in [1, 2, 3]))"]
    code, lines, _ = smoke(make_plan({"a": cells}, ONE))
    assert code == 0, lines
    assert (out / "figures/smoke/p/t1.csv").read_text() == "False"
    monkeypatch.chdir(ROOT)  # whose library it is there, too
    cells = [PROFILE, "from probelib import paths", WRITE, "put('p/t1', paths.ROOT)"]
    assert smoke(make_plan({"a": cells}, ONE))[0] == 0
    assert (out / "figures/smoke/p/t1.csv").read_text() == str(ROOT)


def run_script(*words: str, **options) -> subprocess.CompletedProcess:
    """Run run_all.sh with the Python of the tests."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    own = {"PATH": path, "VIRTUAL_ENV": sys.prefix, "PYTHONPATH": str(ROOT)}
    environment = os.environ | own | options.pop("env", {})
    pipes = {"capture_output": True, "text": True, "stdin": subprocess.DEVNULL}
    return subprocess.run([ROOT / "run_all.sh", *words], env=environment, **pipes, **options)


def test_the_shell_script(tmp_path):
    """Help from any folder; another checkout on PYTHONPATH is not run; nothing is installed."""
    subprocess.run(["bash", "-n", ROOT / "run_all.sh"], check=True)
    shown = run_script("--help", cwd="/")
    assert shown.returncode == 0 and "examples:" in shown.stdout and not shown.stderr
    files.write(tmp_path / "probelib/__init__.py", "print('I AM THE OTHER CHECKOUT')")
    done = run_script("--list", env={"PYTHONPATH": str(tmp_path), "PIP_NO_INDEX": "1"})
    assert done.returncode == 0 and "Installing" not in done.stderr, done.stderr
    assert "OTHER" not in done.stdout and "monitor/table4" in done.stdout
    for command in ("--list", "verify", "lab"):
        done = run_script(command, env={"PROBELIB_OUT": ""})
        assert done.returncode == 2 and "PROBELIB_OUT is empty" in done.stderr
    copy = tmp_path / "a:b" / "run_all.sh"  # PYTHONPATH would name two other folders
    copy.parent.mkdir()
    shutil.copy(ROOT / "run_all.sh", copy)
    done = subprocess.run([copy, "--list"], cwd="/", capture_output=True, text=True)
    assert done.returncode == 2 and f"{copy.parent} has a colon" in done.stderr


def test_jupyterlab_opens_copies(tmp_path):
    """Made once, so that what is changed there stays."""
    for _ in range(2):
        done = run_script("lab", "--version", env={"PROBELIB_OUT": str(tmp_path)})
        assert done.returncode == 0, done.stderr
        copy = tmp_path / "runs/lab/notebooks/00_tour.ipynb"
        assert copy.read_text() in ("mine", (ROOT / "notebooks/00_tour.ipynb").read_text())
        assert (copy.parent / "../figures/atlas/claims.md").exists()
        copy.write_text("mine")
    assert copy.read_text() == "mine" and not copy.is_symlink()
    assert not (tmp_path / "runs/lab/figures").is_symlink()  # a run's results stay


def test_a_missing_library_is_one_line():
    code = "import sys; sys.modules['yaml'] = None; import probelib.runner.__main__"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 1 and done.stderr.startswith("yaml is not installed for ")
    assert "./run_all.sh" in done.stderr and done.stderr.count("\n") == 1


def test_what_is_imported_is_declared():
    """What only comes along with another package may be of any version, or be gone tomorrow."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    optional = project["optional-dependencies"]
    same = lambda name: re.sub(r"[-_.]+", "-", name).lower()
    extras = [line for n, lines in optional.items() if n not in ("all", "test") for line in lines]
    declared = {same(Requirement(line).name) for line in project["dependencies"] + extras}
    owners, found = packages_distributions(), set()
    for path in (ROOT / "probelib").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
            names += [node.module] if isinstance(node, ast.ImportFrom) and not node.level else []
            found |= {name.split(".")[0] for name in names}
    found -= sys.stdlib_module_names | {"probelib"}
    assert len(found) > 20
    assert not [n for n in sorted(found) if not declared & set(map(same, owners.get(n, [])))]


def test_a_missing_extra_is_named():
    said = r"no_such_library is not installed.*'\.\[graphs\]'"
    with pytest.raises(ProbeError, match=said), extra("graphs"):
        import no_such_library  # noqa: F401
