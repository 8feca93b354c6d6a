"""Copies and slides of the solved labs.

    DIR/index.html                 every lab of the folder, with its copies
    DIR/student/<lab>.ipynb        without solutions, answers and notes; beside them the tour
    DIR/instructor/<lab>.ipynb     without the empty stubs
    DIR/slides/<lab>.html          reveal.js slides of the executed lab; they need no network

nbconvert does the work: cells are removed by their tags, and slides come from its own exporter.
DIR/.written.json lists the written files: a copy that was changed since is not overwritten.
"""

import asyncio
import copy
import importlib.util
import json
import os
import re
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

import nbformat
from nbconvert.exporters import SlidesExporter
from nbconvert.filters import markdown2html
from nbconvert.preprocessors import TagRemovePreprocessor

from probelib import files, paths
from probelib.errors import ProbeError, unknown
from probelib.report.mathml import typeset
from probelib.runner import plan
from probelib.runner.plan import Step
from probelib.runner.steps import Worker

TOUR = paths.NOTEBOOKS / "00_tour.ipynb"
PLAN = paths.NOTEBOOKS / "exercises" / "plan.yaml"
REMOVED = {"student": {"solution", "answer", "instructor"}, "instructor": {"stub"}}
SKIPPED = {"check", "parameters", "injected-parameters"}  # no slides show them
SLIDES = Path(__file__).parent / "slides"
WRITTEN = ".written.json"
LINK = re.compile(r"\[([^\]]*)\]\((?!\w+:|#)([^)\s]+)\)")  # a relative one
FONTS = re.compile(r"""@import\s*(?:url\()?["']?https?:[^;]*;""")


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
    for name in names or []:
        if name not in known:
            raise unknown("lab", name, [step.notebook for step in steps])
    return [step for step in steps if not names or step in [known[name] for name in names]]


def build(
    out: Path,
    names: Sequence[str] | None = None,
    profile: str | None = "atlas",
    solutions: bool = False,
    force: bool = False,
) -> Path:
    """Make the copies and the slides; return the path of the index.

    names      labs; None: all
    profile    the parameters with which the labs are executed for the slides; None: a folder to
               hand out, without instructor's copies and slides
    solutions  whether the slides show solutions and answers
    force      overwrite copies that were changed since they were made
    """
    steps = labs(names)
    forms = list(REMOVED) if profile else ["student"]
    settings = plan.settings(plan.read(PLAN), steps, profile) if profile else {}
    for form in () if profile else ("instructor", "slides"):
        if (out / form).exists():
            where = "choose another folder to hand out with --out"
            raise ProbeError(f"{out / form} contains the solutions: {where}")
    made = {
        f"{form}/{path.name}": nbformat.writes(copy_of(path, form, steps))
        for form in forms
        for path in (TOUR, *(step.path for step in steps))
    }
    record = out / WRITTEN
    written = json.loads(record.read_text(encoding="utf-8")) if record.exists() else {}
    digests = {name: files.sha256(text.encode()) for name, text in made.items()}
    there = {name: files.sha256(out / name) for name in made if (out / name).exists()}
    changed = [n for n, own in there.items() if own not in (written.get(n), digests[n])]
    if changed and not force:
        raise ProbeError(
            f"{', '.join(changed)} in {out} changed since the course wrote it, or is not a file of "
            "the course: move it, choose another folder, or overwrite it with --force"
        )
    if profile:
        _copy_reveal(out / "slides" / "reveal.js")
    for name, text in made.items():
        files.write(out / name, text)
    files.write_json(record, written | digests)
    if profile:
        solved = asyncio.run(run_solved_labs(steps, settings))
        for step, notebook in zip(steps, solved, strict=True):
            page = slides(notebook, step.title, solutions)
            files.write(out / "slides" / f"{step.notebook}.html", page)
    return files.write(out / "index.html", _index(out))


def copy_of(path: Path, form: str, steps: Sequence[Step]) -> nbformat.NotebookNode:
    """A notebook as a student or an instructor gets it. Relative links lead to the copies beside
    it, or become their text. In a student's copy *Run All* continues after an exercise that is
    still empty: what comes after the first one has the tag ``raises-exception``."""
    notebook, names = files.read_notebook(path), {TOUR.name, *(step.path.name for step in steps)}
    first = min((i for i, c in enumerate(notebook.cells) if "stub" in tags(c)), default=None)
    for at, cell in enumerate(notebook.cells):
        if cell.cell_type == "markdown":
            beside = lambda l: f"[{l[1]}]({Path(l[2]).name})" if Path(l[2]).name in names else l[1]
            cell.source = LINK.sub(beside, cell.source)
        elif form == "student" and first is not None and at > first and "stub" not in tags(cell):
            cell.metadata["tags"] = [*tags(cell), "raises-exception"]
    made = without(notebook, REMOVED[form])
    for cell in made.cells:
        kept = [tag for tag in tags(cell) if tag in ("parameters", "raises-exception")]
        cell.metadata = {k: v for k, v in cell.metadata.items() if k != "tags"}
        cell.metadata |= {"tags": kept} if kept else {}
    return made


def tags(cell: nbformat.NotebookNode) -> list[str]:
    """The tags of a cell."""
    return cell.metadata.get("tags", [])


def without(notebook: nbformat.NotebookNode, removed: Iterable[str]) -> nbformat.NotebookNode:
    """A copy without the cells that have one of the tags."""
    remover = TagRemovePreprocessor(remove_cell_tags=set(removed))
    return remover.preprocess(copy.deepcopy(notebook), {})[0]


async def run_solved_labs(steps: Sequence[Step], settings: dict) -> list[nbformat.NotebookNode]:
    """The solved labs with their outputs, executed like the runner's steps."""
    worker, solved = Worker(dict(os.environ)), []
    with tempfile.TemporaryDirectory() as folder:
        for step in steps:
            print(f"{step.notebook}: executing for the slides", flush=True)
            target, given = Path(folder) / step.path.name, settings[step.notebook]
            job = {"source": str(step.path), "target": str(target), "parameters": given}
            if failure := await worker.execute(job, step.timeout_s, {"cell": 0, "text": ""}):
                raise ProbeError(f"{step.notebook}: {failure}")
            solved.append(files.read_notebook(target))
    return solved


def slides(solved: nbformat.NotebookNode, title: str, solutions: bool = False) -> str:
    """The slides of an executed lab as a page: what follows a prediction waits for a key press."""
    shown = without(solved, ["stub"] if solutions else ["solution", "answer"])
    asked = False  # whether the students have to predict
    for cell in shown.cells:
        kind = cell.metadata.get("slideshow", {}).get("slide_type") or slide_type(cell)
        picture = any("image/png" in each.get("data", {}) for each in cell.get("outputs", []))
        cell.metadata["slideshow"] = {"slide_type": "fragment" if kind == "-" and asked else kind}
        cell.metadata["transient"] = {"remove_source": picture}  # the code would not fit
        asked = "**Predict" in cell.source or (asked and kind == "skip")
        if cell.cell_type == "markdown":
            cell.source = typeset(cell.source)
    shown.metadata["title"] = title
    exporter = SlidesExporter(
        template_name=SLIDES.name,
        extra_template_basedirs=[str(SLIDES.parent)],
        reveal_theme="simple",
        reveal_url_prefix="reveal.js",
        exclude_input_prompt=True,
        exclude_output_prompt=True,
    )
    return exporter.from_notebook_node(shown)[0]


def slide_type(cell: nbformat.NotebookNode) -> str:
    """The slide type of a cell without one: a heading starts a slide, other text, an exercise
    and a picture one below it; an answer waits for a key press; other results stay on the slide."""
    if SKIPPED & set(tags(cell)):
        return "skip"
    if "instructor" in tags(cell):
        return "notes"
    if "answer" in tags(cell):
        return "fragment"
    if cell.cell_type == "markdown":
        return "slide" if cell.source.startswith("#") else "subslide"
    drawn = any("image/png" in output.get("data", {}) for output in cell.get("outputs", []))
    return "subslide" if drawn or {"stub", "solution"} & set(tags(cell)) else "-"


def _copy_reveal(target: Path) -> None:
    """Copy reveal.js beside the slides, without the fonts that it loads from the network."""
    if (package := importlib.util.find_spec("pyreveal")) is None:
        raise ProbeError(
            "the slides need reveal.js, which the package pyreveal brings: `pip install pyreveal`"
        )
    dist = Path(package.origin).parent / "revealjs" / "dist"
    for name in ("reveal.js", "reveal.css", "theme/simple.css", "plugin/notes.js"):
        text = (dist / name).read_text(encoding="utf-8")
        files.write(target / "dist" / name, FONTS.sub("", text))


def _index(out: Path) -> str:
    """A page that lists the labs of the folder, those of an earlier call included."""
    rows = []
    for step in labs():
        forms = {form: f"{form}/{step.path.name}" for form in REMOVED}
        forms["slides"] = f"slides/{step.notebook}.html"
        links = [f"[{form}]({name})" for form, name in forms.items() if (out / name).exists()]
        rows += [f"- **{step.title}** {' '.join(links)}"] if links else []
    listed = markdown2html("\n".join(rows))
    return f"""<!doctype html><html lang="en"><meta charset="utf-8">
<meta name="viewport" content="width=device-width"><title>The course</title>
<style>
body {{ font-family: sans-serif; max-width: 50rem; margin: 2rem auto; padding: 0 1rem }}</style>
<h1>What do language models know as fact?</h1>
<p>Notebooks open in JupyterLab, slides in any browser (F: full screen, S: the notes). Lab 1 begins
with <a href="student/{TOUR.name}">a tour</a>.</p>
{listed}</html>
"""
