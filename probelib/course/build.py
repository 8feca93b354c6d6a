"""From the solved labs to what a course needs.

    DIR/index.html                    every lab with its three forms
    DIR/student/<lab>.ipynb           without solutions, answers and teacher's notes
    DIR/instructor/<lab>.ipynb        without the empty stubs
    DIR/slides/<lab>.html             reveal.js slides of the executed lab; they open without a network

nbconvert does the work: cells are taken out by their tags, slides come from its own exporter.
"""

import asyncio
import copy
import html
import importlib.util
import os
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

import nbformat
from nbconvert.exporters import SlidesExporter
from nbconvert.preprocessors import TagRemovePreprocessor

from probelib import files, paths, plan, run
from probelib.book import STYLE
from probelib.errors import ProbeError
from probelib.plan import Step

PLAN = paths.NOTEBOOKS / "exercises" / "plan.yaml"
REMOVED = {"student": {"solution", "answer", "instructor"}, "instructor": {"stub"}}
HIDDEN = {
    "stub",
    "check",
    "parameters",
    "injected-parameters",
    "remove-slide",
}  # on slides: neither machinery nor empty stubs
SLIDES = Path(__file__).parent / "slides"


def labs(names: Sequence[str] | None = None) -> list[Step]:
    """The labs, all or those named, in the order of ``notebooks/exercises/plan.yaml``."""
    whole = plan.read(PLAN)
    return plan.with_needs(whole, plan.matching(whole, names) if names else [step.notebook for step in whole.steps])


def build(out: Path, names: Sequence[str] | None = None, profile: str = "atlas", reveal: str | None = None) -> Path:
    """Make the copies and the slides; gives the path of the index.

    names     labs; None: all
    profile   the parameters with which the labs are executed for the slides
    reveal    the address of reveal.js; None: copied from the package ``pyreveal``
    """
    steps = labs(names)
    settings = plan.settings(plan.read(PLAN), steps, profile)
    prefix = reveal or _copy_reveal(out / "slides" / "reveal.js")
    for step in steps:
        notebook = nbformat.read(step.path, as_version=4)
        for form, tags in REMOVED.items():
            files.write(out / form / step.path.name, nbformat.writes(without(notebook, tags)))
        print(f"{step.notebook}: executing for the slides", flush=True)
        solved = executed(step, settings[step.notebook])
        files.write(out / "slides" / f"{step.notebook}.html", slides(solved, step.title, prefix))
    return files.write(out / "index.html", _index(steps))


def without(notebook: nbformat.NotebookNode, tags: Iterable[str]) -> nbformat.NotebookNode:
    """A copy without the cells that have one of the tags; of the tags only papermill's ``parameters`` stays."""
    made, _ = TagRemovePreprocessor(remove_cell_tags=set(tags)).preprocess(copy.deepcopy(notebook), {})
    for cell in made.cells:
        kept = [tag for tag in cell.metadata.pop("tags", []) if tag == "parameters"]
        cell.metadata |= {"tags": kept} if kept else {}
    return made


def executed(step: Step, parameters: dict) -> nbformat.NotebookNode:
    """The solved lab with its outputs, run as the runner runs a step; an error in it is an error."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / step.path.name
        job = {"source": str(step.path), "target": str(target), "parameters": parameters}
        failure = asyncio.run(run.execute(job, dict(os.environ), step.timeout_s, {"cell": 0, "text": ""}))
        if failure:
            raise ProbeError(f"{step.notebook}: {failure}")
        return nbformat.read(target, as_version=4)


def slides(solved: nbformat.NotebookNode, title: str, prefix: str) -> str:
    """The slides of an executed lab as a page. ``prefix``: where reveal.js lies, seen from the page."""
    shown = without(solved, [])
    for cell, source in zip(shown.cells, solved.cells, strict=True):
        cell.metadata.setdefault("slideshow", {"slide_type": slide_type(source)})
    shown.metadata["title"] = title
    exporter = SlidesExporter(
        template_name=SLIDES.name,
        extra_template_basedirs=[str(SLIDES.parent)],
        reveal_url_prefix=prefix,
        reveal_theme="simple",
        exclude_input_prompt=True,
        exclude_output_prompt=True,
    )
    page, _ = exporter.from_notebook_node(shown)
    return page


def slide_type(cell: nbformat.NotebookNode) -> str:
    """Where a cell without slideshow metadata of its own goes: a heading begins a slide, an answer waits for a key press; text,
    a solution or a picture begins a slide below it, and what is computed stays on it."""
    tags = set(cell.metadata.get("tags", []))
    if tags & HIDDEN:
        return "skip"
    if "instructor" in tags:
        return "notes"
    if "answer" in tags:
        return "fragment"
    if cell.cell_type == "markdown":
        return "slide" if cell.source.startswith("#") else "subslide"
    pictures = any("image/png" in output.get("data", {}) for output in cell.get("outputs", []))
    return "subslide" if pictures or "solution" in tags else "-"


def _copy_reveal(target: Path) -> str:
    """Copies reveal.js from the package that ships it; gives its address for the slides beside it."""
    package = importlib.util.find_spec("pyreveal")
    if package is None:
        raise ProbeError(
            "the slides need reveal.js, which the package pyreveal brings: `pip install pyreveal`, or give an address, "
            "--reveal https://unpkg.com/reveal.js@6 (then the slides need a network)"
        )
    dist = Path(package.origin).parent / "revealjs" / "dist"
    for name in ("reveal.js", "reveal.css", "theme/simple.css", "plugin/notes.js"):
        (target / "dist" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(dist / name, target / "dist" / name)
    return target.name


def _index(steps: list[Step]) -> str:
    rows = "".join(
        f"<tr><td>{html.escape(step.title)}</td><td><a href='student/{step.path.name}'>student</a></td>"
        f"<td><a href='instructor/{step.path.name}'>instructor</a></td>"
        f"<td><a href='slides/{step.notebook}.html'>slides</a></td></tr>"
        for step in steps
    )
    return f"""<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>The course</title><style>{STYLE}</style>
<h1>What do language models know as fact?</h1>
<p>A course in {len(steps)} labs. Notebooks open in JupyterLab, slides in any browser: arrow keys page through, F is the full
screen, S the speaker's view with the notes.</p>
<table><tr><th>lab<th colspan="3"></tr>{rows}</table></html>
"""
