"""How the notebooks are written, and that they make every table and figure of the four papers (the
list of them is ``coverage.csv``). Nothing is executed here."""

import ast

import nbformat
import pandas as pd
import pytest

from probelib.paths import NOTEBOOKS, ROOT
from probelib.runner import plan

pytestmark = pytest.mark.fast

FILES = sorted(p for p in NOTEBOOKS.rglob("*.ipynb") if ".ipynb_checkpoints" not in p.parts)
STEPS = pytest.mark.parametrize("step", plan.read().steps, ids=lambda step: step.notebook)


def test_every_table_and_figure_of_the_papers_is_made():
    wanted = pd.read_csv(ROOT / "tests" / "coverage.csv")["artifact"]
    made = {artifact for step in plan.read().steps for artifact in step.makes}
    assert len(wanted) == 82 and wanted.is_unique and set(wanted) <= made


def cells(path, kind: str) -> list:
    return [c for c in nbformat.read(path, as_version=4).cells if c.cell_type == kind]


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_a_notebook_tells_and_the_library_does(path):
    """No outputs, no definitions (but in the labs), small cells, first a heading."""
    notebook, code = nbformat.read(path, as_version=4), cells(path, "code")
    nbformat.validate(notebook)
    assert all(not cell.outputs and cell.execution_count is None for cell in code)
    assert notebook.cells[0].source.startswith("# ")
    assert notebook.metadata.kernelspec.name == "python3"
    exercises = path.parent.name == "exercises"
    banned = ("class ", "!", "%") if exercises else ("def ", "class ", "!", "%")
    lines = [line for cell in code for line in cell.source.split("\n")]
    assert not [line for line in lines if line.lstrip().startswith(banned)]
    assert max(len(cell.source.split("\n")) for cell in code) <= 25
    assert "profile" in plan.parameters.declared(path)
    assert not notebook.metadata.get("widgets") and "papermill" not in notebook.metadata


@STEPS
def test_a_notebook_records_its_parameters(step):
    """Its section is given all names before any parameter takes another value."""
    code = [c for c in cells(step.path, "code") if "parameters" not in c.metadata.get("tags", [])]
    body = ast.parse("\n".join(cell.source for cell in code)).body
    lines = [ast.unparse(line) for line in body]
    at = next(i for i, line in enumerate(lines) if line.startswith("section = report.Section("))
    assert f"'{step.notebook}', profile, " in lines[at] and "globals()" in lines[at]
    before = [line for line in body[:at] if "lm.short_names(" not in ast.unparse(line)]
    nodes = [n for line in before for n in ast.walk(line) if isinstance(n, ast.Name)]
    stored = {node.id for node in nodes if isinstance(node.ctx, ast.Store)}
    assert not stored & set(plan.parameters.declared(step.path))
