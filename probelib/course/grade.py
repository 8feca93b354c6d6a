"""Marks for labs that were handed in: every notebook of a folder is run, and the results of its checks become a table.

The checks are the kit's own: one that was changed or removed is restored, and before each its module is imported again. But a
submission runs in the same process as its checks, as code of an unknown author. A mark helps a teacher who reads the answers; it
does not replace an examination.
"""

import asyncio
import re
from pathlib import Path

import nbformat
import numpy as np
import pandas as pd
from nbclient import NotebookClient
from nbclient.exceptions import CellTimeoutError, DeadKernelError
from nbformat import NotebookNode

from probelib import files
from probelib.course.build import PLAN, labs
from probelib.errors import ProbeError, printable
from probelib.report import sheets
from probelib.runner import plan
from probelib.runner.kernel import OwnKernelManager
from probelib.runner.plan import Step

COLUMNS = ["file", "exercise", "mark", "message"]
CELL_S, NOTEBOOK_S = 120, 1200  # seconds: a cell is interrupted and the next one runs; a notebook ends
TELLS = re.compile(  # code that reads an answer (check.wilson.right, or private functions of a lab's module) or changes a check
    r"(?<!spines)\.right\b|(?:[gs]etattr|vars)\([^)]*(?:right|check|lab\d)|\b(?:check|lab\d)\._"
    r"|course\.lab\d import[^\n]*\b_|\b(?:check|lab\d)\.\w+\s*=(?!=)"
)


def marks(folder: Path, out: Path, force: bool = False) -> Path:
    """Grade the notebooks of a folder and its subfolders, one after the other; return the path of the CSV file.

    The columns: ``file``; ``exercise``; ``mark``: passed, not yet, or look (passed, in a notebook that reads a check's answer or
    changes a check); ``message``: that of the check. ``force``: overwrite a file of marks.
    """
    if out.is_dir():
        raise ProbeError(f"--out {out} is a folder; with --grade it is the file for the marks, such as marks.csv")
    if out.exists() and not force:
        raise ProbeError(f"--out {out} exists: name another file, or overwrite it with --force")
    if not folder.is_dir():
        raise ProbeError(f"--grade {folder}: no such folder; it takes the one with the notebooks that were handed in")
    found = [path for path in sorted(folder.rglob("*.ipynb")) if ".ipynb_checkpoints" not in path.parts]
    if not found:
        raise ProbeError(f"{folder} holds no notebook (*.ipynb) to grade")
    rows = []
    for path in found:
        name = str(path.relative_to(folder)).encode(errors="surrogateescape").decode(errors="replace")
        print(printable(name), flush=True)
        try:
            own = graded(path)
        except Exception as error:  # a broken submission must not stop the others
            own = [("", "not yet", f"it could not be run: {type(error).__name__}: {_line(error)[:200]}")]
        rows += [(name, *row) for row in own]
    return files.write(out, sheets.to_csv(pd.DataFrame(rows, columns=COLUMNS).map(printable)))


def graded(path: Path) -> list[tuple[str, str, str]]:
    """(exercise, mark, message) of every exercise of a submitted notebook; one row without an exercise if it is not a lab."""
    try:
        notebook = nbformat.reads(path.read_text(encoding="utf-8-sig"), as_version=4)
        lab, checks = lab_of(notebook)
    except (OSError, ValueError, AttributeError, KeyError, nbformat.ValidationError, ProbeError) as error:
        return [("", "not yet", f"not a notebook of a lab: {_line(error)[:200]}")]
    told = any(TELLS.search(cell.source) for cell in _own_cells(notebook, lab))
    smoke = plan.settings(plan.read(PLAN), [lab], "smoke")[lab.notebook]
    ended = run_copy(prepared(notebook, lab, checks, smoke), path.parent)
    last = {cell.source.strip(): cell for cell in notebook.cells if cell.cell_type == "code"}
    rows = [(exercise, *mark(last[source], ended)) for exercise, source in checks.items()]
    look = "it passes, but the notebook reads a check's answer, for example with `.right`, or changes a check"
    return [(name, "look", look) if told and given == "passed" else (name, given, said) for name, given, said in rows]


def lab_of(notebook: NotebookNode) -> tuple[Step, dict[str, str]]:
    """(the lab of which a submission has the most checks, whatever its file name; the lab's checks: exercise -> source)."""
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


def _own_cells(notebook: NotebookNode, lab: Step) -> list:
    """The cells that differ from those that were handed out."""
    ours = {cell.source for cell in nbformat.read(lab.path, as_version=4).cells}
    return [cell for cell in notebook.cells if cell.cell_type == "code" and cell.source not in ours]


def prepared(notebook: NotebookNode, lab: Step, checks: dict[str, str], parameters: dict) -> NotebookNode:
    """The submission without outputs, with the grader's parameters after its own, and with missing checks at the end. Before each
    check its module is imported again, because its name may have been reassigned."""
    given = {cell.source.strip() for cell in notebook.cells if cell.cell_type == "code"}
    for cell in notebook.cells:
        cell.metadata["tags"] = cell.metadata.get("tags") or []
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    at = next((i for i, cell in enumerate(notebook.cells, 1) if "parameters" in cell.metadata["tags"]), 0)
    notebook.cells.insert(at, nbformat.v4.new_code_cell("\n".join(f"{k} = {v!r}" for k, v in parameters.items())))
    notebook.cells += [nbformat.v4.new_code_cell(source) for source in checks.values() if source not in given]
    is_check = [cell.cell_type == "code" and cell.source.strip() in checks.values() for cell in notebook.cells]
    for at in reversed(np.flatnonzero(is_check)):
        name, module = notebook.cells[at].source.strip().split(".")[0], lab.notebook.split("_")[0]
        notebook.cells.insert(at, nbformat.v4.new_code_cell(f"from probelib.course import {module} as {name}"))
    return notebook


def run_copy(notebook: NotebookNode, folder: Path) -> str:
    """Run all cells in a kernel of its own, continuing after errors; return '' or why it ended early."""
    kernel = {"kernel_manager_class": OwnKernelManager, "kernel_name": "python3"}
    past_errors = {"allow_errors": True, "timeout": CELL_S, "interrupt_on_timeout": True}
    client = NotebookClient(notebook, **kernel, **past_errors, resources={"metadata": {"path": str(folder)}})

    async def run() -> None:
        async with asyncio.timeout(NOTEBOOK_S):
            await client.async_execute()

    try:
        asyncio.run(run())
    except TimeoutError:
        return f"the notebook took more than {NOTEBOOK_S} s"
    except (CellTimeoutError, DeadKernelError) as error:
        return f"the notebook ended before: {type(error).__name__}"
    return ""


def mark(cell: NotebookNode, ended: str) -> tuple[str, str]:
    """The mark from a check's output: ("passed", "") or ("not yet", reason)."""
    errors = [output for output in cell.outputs if output.output_type == "error"]
    for error in errors:
        if error.ename != "KeyboardInterrupt":  # that of ``CELL_S``
            kind = "" if error.ename == "NotYet" else f"{error.ename}: "
            return "not yet", f"{kind}{_line(error.evalue)}"
    said = "".join(output.get("text", "") for output in cell.outputs)
    if not errors and "✓" in said:
        return "passed", ""
    if said.startswith("✗"):  # the exercise is empty, so that the check was not run
        return "not yet", _line(said.removeprefix("✗ "))
    return "not yet", ended or f"no answer within {CELL_S} s"


def _line(said: object) -> str:
    """A message in one line that can be encoded as UTF-8: a lone surrogate becomes a question mark."""
    return " ".join(str(said).encode(errors="replace").decode().split())
