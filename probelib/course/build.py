"""Copies and slides of the solved labs.

    DIR/index.html                    every lab of the folder, with its copies
    DIR/student/<lab>.ipynb           without solutions, answers and teacher's notes; beside them the tour that lab 1 begins with
    DIR/instructor/<lab>.ipynb        without the empty stubs
    DIR/slides/<lab>.html             reveal.js slides of the executed lab; they open without a network

nbconvert does the work: cells are removed by their tags, and slides come from its own exporter. DIR/.written.json lists the
written files, so that a copy that was changed since is not overwritten.
"""

import asyncio
import copy
import importlib.util
import json
import os
import re
import tempfile
from collections.abc import Iterable, Sequence
from itertools import product
from pathlib import Path

import nbformat
from nbconvert.exporters import SlidesExporter
from nbconvert.filters import markdown2html
from nbconvert.preprocessors import TagRemovePreprocessor

from probelib import files, paths
from probelib.course import syllabus
from probelib.errors import ProbeError, unknown
from probelib.report.mathml import typeset
from probelib.report.pages import STYLE
from probelib.runner import plan
from probelib.runner.plan import Step
from probelib.runner.steps import Worker

TOUR = paths.NOTEBOOKS / "00_tour.ipynb"
PLAN = paths.NOTEBOOKS / "exercises" / "plan.yaml"
REMOVED = {"student": {"solution", "answer", "instructor"}, "instructor": {"stub"}}
KEPT = {
    "parameters": "parameters",
    "check": "raises-exception",
}  # tags in the copies: Run All continues after a wrong answer
# slides show no stubs, checks or parameters
SLIDE_TYPES = dict.fromkeys(("stub", "check", "parameters", "injected-parameters"), "skip")
SLIDE_TYPES |= {"instructor": "notes", "answer": "fragment"}
SLIDES = Path(__file__).parent / "slides"
WRITTEN = ".written.json"
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
PHONE = """@media (max-width: 40rem) { thead { display: none } tr { display: block; padding: .6rem 0 }
  td { display: block; border: 0 } td:first-child { font-weight: 600 } td:nth-child(3)::after { content: " minutes" } }"""
LINK = re.compile(r"\[([^\]]*)\]\((?!\w+:|#)([^)\s]+)\)")  # a relative one
FONTS = re.compile(r"""@import\s*(?:url\()?["']?https?:[^;]*;""")


def labs(names: Sequence[str] | None = None) -> list[Step]:
    """All labs, or the named ones (``lab1`` or ``lab1_log_probability``), in the order of ``notebooks/exercises/plan.yaml``.

    Raise ProbeError if a name is unknown, or if the kit is installed without a clone: a wheel holds no solutions.
    """
    if not PLAN.exists():
        raise ProbeError(
            "the labs with their solutions are in a clone of the kit only: run `./run_all.sh course` there. "
            "A lab that was handed out needs neither: open it in `jupyter lab`."
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
    profile: str = "atlas",
    reveal: str | None = None,
    student_only: bool = False,
    force: bool = False,
) -> Path:
    """Make the copies and the slides; return the path of the index.

    names         labs; None: all
    profile       the parameters with which the labs are executed for the slides
    reveal        the address of reveal.js; None: copied from the package ``pyreveal``
    student_only  make a folder to hand out: nothing in it contains an answer
    force         overwrite copies that were changed since they were made
    """
    steps = labs(names)
    settings = plan.settings(plan.read(PLAN), steps, profile)
    for form in ("instructor", "slides") if student_only else ():
        if (out / form).exists():
            raise ProbeError(f"{out / form} contains the solutions: choose another folder to hand out with --out")
    made = copies(steps, ["student"] if student_only else list(REMOVED))
    written = _written(out, made, force)
    prefix = "" if student_only else reveal or _copy_reveal(out / "slides" / "reveal.js")
    for name, text in made.items():
        files.write(out / name, text)
    files.write_json(out / WRITTEN, written | {name: files.sha256(text.encode()) for name, text in made.items()})
    for step, solved in [] if student_only else zip(steps, asyncio.run(run_solved_labs(steps, settings)), strict=True):
        files.write(out / "slides" / f"{step.notebook}.html", slides(solved, step.title, prefix))
    return files.write(out / "index.html", _index(out))


def copies(steps: Sequence[Step], forms: Sequence[str]) -> dict[str, str]:
    """The notebooks of the copies: name in the folder -> text. The tour is one of them, because lab 1 begins with it."""
    made, notebooks = {}, [TOUR, *(step.path for step in steps)]
    for form, path in product(forms, notebooks):
        copied = without(files.read_notebook(path), REMOVED[form])
        made[f"{form}/{path.name}"] = nbformat.writes(_with_links_inside(copied, {path.name for path in notebooks}))
    return made


def _with_links_inside(notebook: nbformat.NotebookNode, names: set[str]) -> nbformat.NotebookNode:
    """The notebook with links to the files ``names`` beside it; other relative links are replaced by their text."""
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            beside = lambda link: f"[{link[1]}]({Path(link[2]).name})" if Path(link[2]).name in names else link[1]
            cell.source = LINK.sub(beside, cell.source)
    return notebook


def _written(out: Path, made: dict[str, str], force: bool) -> dict[str, str]:
    """name -> digest of the files written into the folder before. Raise ProbeError if a file that is to be written was changed
    since, or is not the course's."""
    record = out / WRITTEN
    written = json.loads(record.read_text(encoding="utf-8")) if record.exists() else {}
    ours = lambda name, text: files.sha256(out / name) in (written.get(name), files.sha256(text.encode()))
    changed = [name for name, text in made.items() if (out / name).exists() and not ours(name, text)]
    if changed and not force:
        raise ProbeError(
            f"{', '.join(changed)} in {out} changed since the course wrote it, or is not a file of the course: move it, choose "
            "another folder, or overwrite it with --force"
        )
    return written


def without(notebook: nbformat.NotebookNode, tags: Iterable[str]) -> nbformat.NotebookNode:
    """A copy without the cells that have one of the tags; only the tags in ``KEPT`` stay."""
    made, _ = TagRemovePreprocessor(remove_cell_tags=set(tags)).preprocess(copy.deepcopy(notebook), {})
    for cell in made.cells:
        kept = [KEPT[tag] for tag in cell.metadata.pop("tags", []) if tag in KEPT]
        cell.metadata |= {"tags": kept} if kept else {}
    return made


async def run_solved_labs(steps: Sequence[Step], settings: dict[str, dict]) -> list[nbformat.NotebookNode]:
    """The solved labs with their outputs, executed like the runner's steps. Raise ProbeError if one fails."""
    worker, solved = Worker(dict(os.environ)), []
    with tempfile.TemporaryDirectory() as folder:
        for step in steps:
            print(f"{step.notebook}: executing for the slides", flush=True)
            target = Path(folder) / step.path.name
            job = {"source": str(step.path), "target": str(target), "parameters": settings[step.notebook]}
            if failure := await worker.execute(job, step.timeout_s, {"cell": 0, "text": ""}):
                raise ProbeError(f"{step.notebook}: {failure}")
            solved.append(files.read_notebook(target))
    return solved


def slides(solved: nbformat.NotebookNode, title: str, prefix: str) -> str:
    """The slides of an executed lab as a page. ``prefix``: path of reveal.js, relative to the page.

    Cells that draw a figure or show a sentence appear without their code, which would not fit on the slide. A slide without a
    heading gets the previous one.
    """
    shown = without(solved, [])
    cells, heading = [], title
    asked = False  # whether the students have to predict: the next result then waits for a key press
    for cell, source in zip(shown.cells, solved.cells, strict=True):
        kind = source.metadata.get("slideshow", {}).get("slide_type") or slide_type(source)
        own = HEADING.findall(source.source) if source.cell_type == "markdown" else []
        if kind == "subslide" and not source.source.startswith("#"):
            cells.append(_of_slides(nbformat.v4.new_markdown_cell(f"#### {heading}"), "subslide"))
            kind = "-"
        elif kind == "-" and asked:
            kind = "fragment"
        heading = own[-1] if own else heading
        cells.append(_of_slides(cell, kind))
        cell.metadata["transient"] = {"remove_source": _pictures(source) or source.source.startswith("report.say(")}
        asked = "**Predict" in cell.source or (asked and kind == "skip")
    shown.cells = cells
    shown.metadata["title"] = title
    look = {"template_name": SLIDES.name, "extra_template_basedirs": [str(SLIDES.parent)], "reveal_theme": "simple"}
    look |= {"exclude_input_prompt": True, "exclude_output_prompt": True}
    page, _ = SlidesExporter(**look, reveal_url_prefix=prefix).from_notebook_node(typeset(shown))
    return page


def slide_type(cell: nbformat.NotebookNode) -> str:
    """The slide type of a cell without slideshow metadata: a heading starts a slide, an answer waits for a key press; text, a
    solution or a picture starts a slide below it, and other results stay on the current one."""
    tags = cell.metadata.get("tags", [])
    if tagged := [kind for tag, kind in SLIDE_TYPES.items() if tag in tags]:
        return tagged[0]
    if cell.cell_type == "markdown":
        return "slide" if cell.source.startswith("#") else "subslide"
    return "subslide" if _pictures(cell) or "solution" in tags else "-"


def _of_slides(cell: nbformat.NotebookNode, kind: str) -> nbformat.NotebookNode:
    cell.metadata["slideshow"] = {"slide_type": kind}
    return cell


def _pictures(cell: nbformat.NotebookNode) -> bool:
    return any("image/png" in output.get("data", {}) for output in cell.get("outputs", []))


def _copy_reveal(target: Path) -> str:
    """Copy reveal.js, without the fonts that it loads from the network; return its address for the slides beside it."""
    if (package := importlib.util.find_spec("pyreveal")) is None:
        raise ProbeError(
            "the slides need reveal.js, which the package pyreveal brings: `pip install pyreveal`, or give an address, "
            "--reveal https://unpkg.com/reveal.js@6 (then the slides need a network)"
        )
    dist = Path(package.origin).parent / "revealjs" / "dist"
    for name in ("reveal.js", "reveal.css", "theme/simple.css", "plugin/notes.js"):
        text = (dist / name).read_text(encoding="utf-8")
        files.write(target / "dist" / name, FONTS.sub("", text))
    return target.name


def _index(out: Path) -> str:
    """A page that lists the folder, earlier files included, with the syllabus of its labs."""
    rows = []
    for step in labs():
        forms = {form: f"{form}/{step.path.name}" for form in REMOVED} | {"slides": f"slides/{step.notebook}.html"}
        links = [f"[{form}]({name})" for form, name in forms.items() if (out / name).exists()]
        rows += [syllabus.entry(step) | {"Open": " ".join(links)}] if links else []
    keys = "arrow keys page through, F shows the full screen, S the speaker's view with the notes"
    paging = f"; slides in any browser: {keys}" if any("slides/" in row["Open"] for row in rows) else ""
    return f"""<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>The course</title><style>{STYLE} td {{ white-space: normal; vertical-align: top }} {PHONE}</style>
<h1>What do language models know as fact?</h1>
<p>A course, {len(rows)} lab{"s" * (len(rows) > 1)} here. Notebooks open in JupyterLab{paging}. Lab 1 begins with
<a href="student/{TOUR.name}">a tour</a>.</p>
{markdown2html(syllabus.markdown_table(rows))}</html>
"""
