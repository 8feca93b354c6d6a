"""Marks for labs that were handed in: every notebook is run, and what its checks say is a table.

A hand-in is code of an unknown author. All are read before the first runs; each runs in a process
and an empty folder of its own, which end with it; the marks are written after every one. Where
Linux allows it (``unshare``), it sees neither the solved labs nor the other hand-ins nor other
processes, and cannot write into the kit. The checks are the kit's own: one that was changed or
removed is restored. But they run in one kernel with the answers: a pass of a notebook that touches
the machinery is marked ``look``. A mark helps a teacher who reads the answers; it does not replace
an examination.
"""

import asyncio
import contextlib
import inspect
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import nbformat
import numpy as np
import pandas as pd
import psutil
from nbclient import NotebookClient
from nbclient.exceptions import CellTimeoutError, DeadKernelError
from nbformat import NotebookNode

from probelib import files, paths
from probelib.course.build import PLAN, labs
from probelib.errors import ProbeError, printable
from probelib.parameters import parse_yaml
from probelib.report import sheets
from probelib.runner import plan
from probelib.runner.kernel import OwnKernelManager
from probelib.runner.plan import Step

CELL_S, NOTEBOOK_S = 120, 900  # a cell is interrupted and the next one runs; a notebook ends
FILE_BYTES, CELL_BYTES = 10_000_000, 100_000  # of a hand-in; of the output kept of a check
SETTINGS = parse_yaml(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
TELLS = re.compile("|".join(SETTINGS["tells"]))


def marks(folder: Path, out: Path, force: bool = False) -> Path:
    """Grade the notebooks of a folder and its subfolders; return the path of the CSV file.

    The columns: ``file``; ``lab``; ``exercise``; ``mark``: passed, not yet, or look (passed, in a
    notebook that touches what checks are made of); ``message``: that of the check. Beside it
    ``<out>_sums.csv``: the number of exercises passed per notebook. ``force``: overwrite them.
    """
    found = [p for p in sorted(folder.rglob("*.ipynb")) if ".ipynb_checkpoints" not in p.parts]
    for wrong, said in (
        (out.is_dir(), f"--out {out} is a folder; with --grade it is a file such as marks.csv"),
        (out.exists() and not force, f"--out {out} exists: name another one, or give --force"),
        (not folder.is_dir(), f"--grade {folder}: no such folder"),
        (not found, f"{folder} holds no notebook (*.ipynb) to grade"),
    ):
        if wrong:
            raise ProbeError(said)
    given = {path: read(path) for path in found}  # before any of them runs
    before, rows = apart(folder), []
    for path, (notebook, problem) in given.items():
        name = os.fsencode(path.relative_to(folder)).decode(errors="replace")
        print(printable(name), flush=True)
        if notebook:
            try:
                own = graded(notebook, before)
            except Exception as error:  # a broken hand-in must not stop the others
                problem = f"it could not be run: {type(error).__name__}: {_line(error)[:200]}"
        rows += [(name, *row) for row in ([("", "", "not yet", problem)] if problem else own)]
        table = pd.DataFrame(rows, columns=["file", "lab", "exercise", "mark", "message"])
        counts = {mark: table["mark"].eq(mark) for mark in ("passed", "look")}
        counts = pd.DataFrame(counts | {"of": table["lab"].ne("")})
        sums = counts.groupby([table["file"], table["lab"]], sort=False).sum().reset_index()
        files.write(out.with_name(f"{out.stem}_sums.csv"), sheets.to_csv(sums.map(printable)))
        files.write(out, sheets.to_csv(table.map(printable)))
    return out


def read(path: Path) -> tuple[NotebookNode | None, str]:
    """(the notebook without its outputs, ""), or (None, why it is none)."""
    try:
        if not path.is_file() or (size := path.stat().st_size) > FILE_BYTES:
            large = f"too large ({size / 1e6:.0f} MB)" if path.is_file() else "no file"
            return None, f"not a notebook of a lab: {large}; clear its outputs and hand it in again"
        notebook = nbformat.reads(path.read_bytes().decode("utf-8-sig"), as_version=4)
        for cell in notebook.cells:
            cell.metadata = nbformat.from_dict({"tags": cell.metadata.get("tags") or []})
            if cell.cell_type == "code":
                cell.outputs, cell.execution_count = [], None
        lab_of(notebook)
    except Exception as error:  # nbformat raises many kinds, among them RecursionError
        return None, f"not a notebook of a lab: {_line(error)[:200]}"
    return notebook, ""


def graded(notebook: NotebookNode, before: Sequence[str] = ()) -> list[tuple[str, str, str, str]]:
    """(lab, exercise, mark, message) of every exercise of a notebook.

    before   the command that starts the process apart (``apart``)
    """
    lab, checks = lab_of(notebook)
    ours = {cell.source for cell in nbformat.read(lab.path, as_version=4).cells}
    own = [c.source for c in notebook.cells if c.cell_type == "code" and c.source not in ours]
    told = next((found[0] for found in map(TELLS.search, own) if found), "")
    smoke = plan.settings(plan.read(PLAN), [lab], "smoke")[lab.notebook]
    cells = prepared(notebook, lab, checks, smoke).cells
    ended, said = run_apart(notebook, before)
    at = {cell.source.strip(): i for i, cell in enumerate(cells) if cell.cell_type == "code"}
    text = lambda i: "".join(part[1] for part in said.get(str(i), []) if part[0] == "text")
    rows = []
    for exercise, source in checks.items():
        i = at[source]
        given, message = mark(said.get(str(i), []), ended)
        if given == "passed" and (told or not text(0) or text(i - 1) != text(0)):
            given = "look"
            what = f"has `{told}`" if told else "changes functions that checks are made of"
            message = f"it passes, but the notebook {what}"
        rows.append((lab.notebook, exercise, given, message))
    return rows


def lab_of(notebook: NotebookNode) -> tuple[Step, dict[str, str]]:
    """(the lab of which a notebook has the most checks, its checks: exercise -> source)."""
    given = {cell.source.strip() for cell in notebook.cells if cell.cell_type == "code"}
    best = max(labs(), key=lambda lab: len(given & set(checks_of(lab).values())))
    if not given & set(checks_of(best).values()):
        raise ProbeError("it has no check of any lab")
    return best, checks_of(best)


def checks_of(lab: Step) -> dict[str, str]:
    """The checks of a lab: exercise -> source of the cell."""
    cells = nbformat.read(lab.path, as_version=4).cells
    sources = [cell.source.strip() for cell in cells if "check" in cell.metadata.get("tags", [])]
    return {re.match(r"\w+\.(\w+)", source)[1]: source for source in sources}


def prepared(
    notebook: NotebookNode, lab: Step, checks: dict[str, str], parameters: dict
) -> NotebookNode:
    """The notebook itself with the grader's parameters after its own, with missing checks at the
    end, and with a fingerprint at the beginning and before each check, whose module is imported
    again there, because its name may have been reassigned."""
    code, cells = nbformat.v4.new_code_cell, notebook.cells
    given = {cell.source.strip() for cell in cells if cell.cell_type == "code"}
    at = next((i for i, c in enumerate(cells, 1) if "parameters" in c.metadata["tags"]), 0)
    cells.insert(at, code("\n".join(f"{k} = {v!r}" for k, v in parameters.items())))
    cells += [code(source) for source in checks.values() if source not in given]
    module = lab.notebook.split("_")[0]
    modules = [*SETTINGS["modules"], f"probelib.course.{module}"]
    ours = f"{inspect.getsource(fingerprint)}\nprint(fingerprint({modules}))\ndel fingerprint"
    is_check = [c.cell_type == "code" and c.source.strip() in checks.values() for c in cells]
    for at in reversed(np.flatnonzero(is_check)):
        name = cells[at].source.strip().split(".")[0]
        cells.insert(at, code(f"{ours}\nfrom probelib.course import {module} as {name}"))
    cells.insert(0, code(ours))
    return notebook


def fingerprint(modules: list[str]) -> str:
    """A digest of what the checks of a lab are made of: the same before and after a notebook's own
    code, unless this exchanges a function. Its source runs in the notebook's kernel."""
    import hashlib
    import importlib
    import sys

    from IPython import get_ipython

    owners = [importlib.import_module(name) for name in modules]
    checks, numpy, pandas = (sys.modules[n] for n in ("probelib.course.checks", "numpy", "pandas"))
    owners += [checks.Check, checks.NotYet, pandas.DataFrame, pandas.Series, numpy.ndarray]
    shell = get_ipython()
    parts = [shell.custom_exceptions, len(shell.ast_transformers), id(type(shell).run_cell)]
    parts += [len(shell.input_transformers_cleanup), len(shell.input_transformers_post)]
    parts += [sorted(name for name in vars(shell) if name.startswith(("run_", "show")))]
    for owner in owners:
        for name, value in sorted(vars(owner).items()):
            if callable(value) and name not in ("_", "input"):  # which IPython sets anew
                ids = [id(value), *(id(getattr(value, a, 0)) for a in ("__code__", "__defaults__"))]
                if isinstance(value, checks.Check):
                    ids += [*map(id, vars(value).values()), len(value.cases), len(value.mistakes)]
                parts.append((name, ids))
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def apart(folder: Path) -> list[str]:
    """The beginning of a command that runs the rest in namespaces of its own: no other processes
    to see, solved labs and ``folder`` hidden, the kit write-protected. Empty where that fails."""
    needed = [Path(tempfile.gettempdir()).resolve(), paths.PACKAGE, Path(sys.prefix)]
    hidden = [p.resolve() for p in (PLAN.parent, paths.ROOT / ".git", folder) if p.is_dir()]
    hidden = [str(p) for p in hidden if not any(n.is_relative_to(p) for n in needed)]
    before = [*SETTINGS["apart"], *hidden, "--", str(paths.PACKAGE), sys.prefix, "--"]
    quiet = {"capture_output": True, "check": False}
    if shutil.which("unshare") and not subprocess.run([*before, "true"], **quiet).returncode:
        return before
    print("course: without `unshare` a hand-in can reach your files and processes: use a container")
    return []


def run_apart(notebook: NotebookNode, before: Sequence[str]) -> tuple[str, dict[str, list]]:
    """Run all cells in a process of their own, with an empty folder that goes with it.

    Return "" or why it ended early, and what the checks and fingerprints said: number of the cell
    -> list of ("text", text) and ("error", name, value).
    """
    place = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
    with place as folder, tempfile.TemporaryFile() as said:
        (work := Path(folder) / "work").mkdir()
        command = [*before, sys.executable, "-P", "-m", "probelib.course.grade"]
        own = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        own |= {"PROBELIB_OUT": f"{folder}/out"}
        how = {"cwd": work, "env": os.environ | own, "start_new_session": True}
        how |= {"stdin": subprocess.PIPE, "stdout": said, "stderr": subprocess.DEVNULL}
        child = subprocess.Popen([*command, str(NOTEBOOK_S), str(CELL_S)], **how)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.communicate(nbformat.writes(notebook).encode(errors="replace"), NOTEBOOK_S + 60)
        with contextlib.suppress(psutil.NoSuchProcess):
            for process in [*psutil.Process(child.pid).children(recursive=True), child]:
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()
        child.wait()
        said.seek(0)
        try:
            result = json.loads(said.read(FILE_BYTES))
            return str(result["ended"]), dict(result["said"])
        except (ValueError, KeyError, TypeError):
            return "the notebook ended its process, or took too long", {}


class Client(NotebookClient):
    """Keeps the first ``CELL_BYTES`` of the output of a check or fingerprint, nothing of others."""

    def output(self, outs, msg, display_id, cell_index):
        kept = self.said.setdefault(cell_index, [])
        content = msg["content"]
        if msg["msg_type"] == "error":
            kept.append(("error", content["ename"][:200], content["evalue"][:2000]))
        elif msg["msg_type"] == "stream" and sum(len(part[-1]) for part in kept) < CELL_BYTES:
            kept.append(("text", content["text"][:CELL_BYTES]))


def main() -> None:
    """The process apart: a notebook on stdin, what its cells said on stdout."""
    said = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # the kernel inherits this one
    notebook_s, cell_s = map(int, sys.argv[1:])
    how = {"kernel_manager_class": OwnKernelManager, "kernel_name": "python3", "timeout": cell_s}
    how |= {"allow_errors": True, "interrupt_on_timeout": True}
    notebook = nbformat.reads(sys.stdin.buffer.read().decode(), as_version=4)
    client = Client(notebook, resources={"metadata": {"path": os.getcwd()}}, **how)
    client.said, ended = {}, ""
    try:
        asyncio.run(asyncio.wait_for(client.async_execute(), notebook_s))
    except TimeoutError:
        ended = f"the notebook took more than {notebook_s} s"
    except (CellTimeoutError, DeadKernelError) as error:
        ended = f"the notebook ended before: {type(error).__name__}"
    checks = {i for i, c in enumerate(client.nb.cells) if "def fingerprint(" in c.source}
    checks |= {i + 1 for i in checks}
    json.dump({"ended": ended, "said": {i: s for i, s in client.said.items() if i in checks}}, said)
    said.flush()


def mark(said: list, ended: str) -> tuple[str, str]:
    """The mark from what a check said: ("passed", "") or ("not yet", reason)."""
    errors = [part[1:] for part in said if part[0] == "error"]
    for name, value in errors:
        if name != "KeyboardInterrupt":  # that of ``CELL_S``
            return "not yet", _line(value if name == "NotYet" else f"{name}: {value}")
    text = "".join(part[1] for part in said if part[0] == "text")
    if not errors and "✓" in text:
        return "passed", ""
    if text.startswith("✗"):  # the exercise is empty, so that the check was not run
        return "not yet", _line(text.removeprefix("✗ "))
    return "not yet", ended or f"no answer within {CELL_S} s"


def _line(said: object) -> str:
    """A message in one line that can be encoded: a lone surrogate becomes a question mark."""
    return " ".join(str(said).encode(errors="replace").decode().split())


if __name__ == "__main__":
    main()
