"""Copies of the solved labs.

DIR/student/<lab>.ipynb        without solutions, answers and notes; beside them the tour
DIR/instructor/<lab>.ipynb     without the empty stubs; with slide types: `jupyter nbconvert
                               --to slides --execute` makes slides without the solutions
"""

import re
from collections.abc import Sequence
from pathlib import Path

import nbformat

from probelib import files, paths
from probelib.errors import ProbeError, unknown
from probelib.runner import plan
from probelib.runner.plan import Step

TOUR = paths.NOTEBOOKS / "00_tour.ipynb"
PLAN = paths.NOTEBOOKS / "exercises" / "plan.yaml"
REMOVED = {"student": {"solution", "answer", "instructor"}, "instructor": {"stub"}}
SKIPPED = {"check", "parameters", "solution", "answer"}  # no slides show them
LINK = re.compile(r"\[([^\]]*)\]\((?!\w+:|#)([^)\s]+)\)")  # a relative one


def labs(names: Sequence[str] | None = None) -> list[Step]:
    """All labs, or the named ones (``lab1`` or ``lab1_log_probability``), in the plan's order.

    Raise ProbeError if a name is unknown, or without a clone: a wheel holds no solutions.
    """
    if not PLAN.exists():
        raise ProbeError(
            "the labs with their solutions are in a clone of the kit only: run `./run_all.sh "
            "course` there. A lab that was handed out needs neither: open it in `jupyter lab`."
        )
    steps = plan.read(PLAN).steps
    known = {name: step for step in steps for name in (step.notebook, step.notebook.split("_")[0])}
    if odd := [name for name in names or [] if name not in known]:
        raise unknown("lab", odd[0], [step.notebook for step in steps])
    return [step for step in steps if not names or step in [known[name] for name in names]]


def build(
    out: Path, names: Sequence[str] | None = None, students_only=False, force: bool = False
) -> Path:
    """Make the copies; return their folder.

    names          labs; None: all
    students_only  a folder to hand out, without instructor's copies
    force          overwrite copies that differ
    """
    steps = labs(names)
    if students_only and (out / "instructor").exists():
        raise ProbeError(f"{out}/instructor contains the solutions: name another folder with --out")
    made = {
        out / form / path.name: nbformat.writes(copy_of(path, form, steps))
        for form in (["student"] if students_only else REMOVED)
        for path in (TOUR, *(step.path for step in steps))
    }
    differ = [p for p, text in made.items() if p.exists() and p.read_bytes() != text.encode()]
    if differ and not force:
        there = ", ".join(str(path.relative_to(out)) for path in differ)
        raise ProbeError(f"{there} in {out} differ from the copies: move them, or give --force")
    for path, text in made.items():
        files.write(path, text)
    return out


def copy_of(path: Path, form: str, steps: Sequence[Step]) -> nbformat.NotebookNode:
    """A notebook as a student or an instructor gets it. Relative links lead to the copies beside
    it, or become their text. In a student's copy *Run All* continues after an exercise that is
    still empty: what comes after the first one has the tag ``raises-exception``. In an instructor's
    copy cells have slide types: what follows a prediction waits for a key press."""
    notebook, names = files.read_notebook(path), {TOUR.name, *(step.path.name for step in steps)}
    beside = lambda l: f"[{l[1]}]({Path(l[2]).name})" if Path(l[2]).name in names else l[1]
    empty = asked = False  # whether an exercise came before; whether the students have to predict
    kept = [cell for cell in notebook.cells if not REMOVED[form] & set(tags(cell))]
    for cell in kept:
        own, cell.metadata = tags(cell), {k: v for k, v in cell.metadata.items() if k != "tags"}
        left = [tag for tag in own if tag == "parameters"]
        if cell.cell_type == "markdown":
            cell.source = LINK.sub(beside, cell.source)
        elif form == "student" and empty and "stub" not in own:
            left.append("raises-exception")
        cell.metadata |= {"tags": left} if left else {}
        empty = empty or "stub" in own
        if form == "instructor":
            kind = cell.metadata.get("slideshow", {}).get("slide_type") or _slide_type(cell, own)
            waits = kind == "-" and asked
            cell.metadata["slideshow"] = {"slide_type": "fragment" if waits else kind}
            asked = "**Predict" in cell.source or (asked and kind == "skip")
    notebook.cells = kept
    return notebook


def tags(cell: nbformat.NotebookNode) -> list[str]:
    """The tags of a cell."""
    return cell.metadata.get("tags", [])


def _slide_type(cell: nbformat.NotebookNode, own: list[str]) -> str:
    """A heading starts a slide, other text one below it; results stay on the slide."""
    if SKIPPED & set(own):
        return "skip"
    if "instructor" in own:
        return "notes"
    if cell.cell_type == "markdown":
        return "slide" if cell.source.startswith("#") else "subslide"
    return "-"
