"""Which files of the library a notebook uses, read from the sources."""

import subprocess
import sys

import nbformat
import pytest

from probelib import paths
from probelib.runner import plan, uptodate


@pytest.fixture(scope="module")
def used():
    return uptodate.uses(list(uptodate.digest_files()))


def files_of(notebook: str, used: dict) -> set[str]:
    return set(uptodate.reached("\n".join(uptodate._code(paths.NOTEBOOKS / f"{notebook}.ipynb")), used))


def test_each_notebook_uses_its_own_package_and_no_lab(used):
    found = {step.notebook: files_of(step.notebook, used) for step in plan.read().steps}
    of = lambda file: {notebook for notebook, own in found.items() if file in own}
    assert of("course/lab3.py") == of("runner/cli.py") == of("organisms/README.md") == set()
    assert of("lm/scoring.py") == of("lm/decode/labels.py") == of("facts/atlas/P36.tsv") == set(found)
    papers = {notebook for notebook in found if notebook.startswith(("zplke", "distractors", "grapheval"))}
    measures = of("monitor/measures.py")
    assert {"monitor/sec4_anchors", "explore", "beyond/agreement"} <= measures and not measures & papers
    assert of("beyond/suite/monitor.py") >= {"beyond/agreement"}  # imported by its name


def test_what_python_really_imports_is_among_them(used):
    """Run the import cells of two notebooks in a fresh process and compare with what it loaded of the library."""
    script = "import sys; print(*(m.__file__ for n, m in sys.modules.items() if n.startswith('probelib')), sep='\\t')"
    for notebook in ("monitor/sec5_results", "beyond/agreement"):
        cells = nbformat.read(paths.NOTEBOOKS / f"{notebook}.ipynb", as_version=4).cells
        lines = [line for cell in cells if cell.cell_type == "code" for line in cell.source.splitlines()]
        imports = "\n".join(line for line in lines if line.startswith(("from probelib", "import probelib")))
        said = subprocess.check_output([sys.executable, "-c", f"{imports}\n{script}"], text=True)
        loaded = {file.removeprefix(f"{paths.PACKAGE}/") for file in said.splitlines()[-1].split("\t")}
        assert loaded <= files_of(notebook, used) and "monitor/measures.py" in loaded
