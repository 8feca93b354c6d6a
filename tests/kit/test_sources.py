"""How the notebooks are written: no outputs, small cells, typed parameters, the traps named. Nothing is executed here."""

import ast
import re
import statistics
from pathlib import Path

import nbformat
import papermill
import pytest

from probelib.paths import NOTEBOOKS
from probelib.runner import plan, preflight

pytestmark = pytest.mark.fast

PAPERS = ("monitor", "zplke", "distractors", "grapheval", "beyond")
NOTEBOOK_FILES = sorted(p for p in NOTEBOOKS.rglob("*.ipynb") if ".ipynb_checkpoints" not in p.parts)


@pytest.mark.parametrize("path", NOTEBOOK_FILES, ids=lambda p: p.stem)
def test_a_notebook_tells_and_the_library_does(path):
    """No outputs, no definitions (but in the labs), small cells, first a heading; the parameters cell can be read."""
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(not cell.outputs and cell.execution_count is None for cell in code), "outputs are not committed"
    assert notebook.cells[0].source.startswith("# ") and notebook.metadata.kernelspec.name == "python3"
    banned = ("class ", "!", "%") if path.parent.name == "exercises" else ("def ", "class ", "!", "%")
    assert not [c for c in code for line in c.source.split("\n") if line.lstrip().startswith(banned)]
    assert max(len(cell.source.split("\n")) for cell in code) <= 25
    assert "profile" in plan.parameters.declared(path)
    assert not notebook.metadata.get("widgets") and "papermill" not in notebook.metadata


PAPER_NOTEBOOKS = [path for path in NOTEBOOK_FILES if path.parent.name in PAPERS]
NOT_YET_A_STORY = set()


def too_much(path: Path) -> list[str]:
    """What a paper notebook's cells hold that belongs into Markdown or into the library."""
    code = [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
    lengths = [len(cell.source.split("\n")) for cell in code]
    trees = [ast.parse(cell.source) for cell in code if not cell.source.startswith("%")]
    texts = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)]
    wide = [line for cell in code for line in cell.source.split("\n") if len(line) > 100]
    rules = {
        f"a cell of {max(lengths)} lines": max(lengths) > 15,
        f"a median of {statistics.median(lengths)} lines per cell": statistics.median(lengths) > 6,
        f"{len(wide)} lines of more than 100 columns": wide,
        f"{len(plan.parameters.declared(path))} parameters": len(plan.parameters.declared(path)) > 10,
        "a conditional expression in a string": any(isinstance(n, ast.IfExp) for t in texts for n in ast.walk(t)),
        "another profile than mine": plan.parameters.defaults(path)["profile"] != "mine",
    }
    return [what for what, broken in rules.items() if broken]


@pytest.mark.parametrize("path", PAPER_NOTEBOOKS, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_a_paper_notebook_is_a_story_with_small_steps(path):
    name = f"{path.parent.name}/{path.stem}"
    assert name in NOT_YET_A_STORY or too_much(path) == []
    assert name not in NOT_YET_A_STORY or too_much(path), "no longer needed as an exception"


@pytest.mark.parametrize("step", plan.read().steps, ids=lambda step: step.notebook)
def test_papermill_shows_every_parameter_with_its_type(step):
    """As ``papermill --help-notebook`` lists them."""
    shown = papermill.inspect_notebook(str(step.path))
    typed = {name for name, told in shown.items() if told["inferred_type_name"] != "None"}
    assert step.notebook in NOT_YET_A_STORY or typed == set(step.accepts)


@pytest.mark.parametrize("step", plan.read().steps, ids=lambda step: step.notebook)
def test_a_notebook_says_what_could_go_wrong(step):
    """Every notebook warns of the traps that give wrong numbers silently, where they lie."""
    cells = [cell.source for cell in nbformat.read(step.path, as_version=4).cells if cell.cell_type == "markdown"]
    asides = [source for source in cells if "<b>What could go wrong here</b>" in source]
    assert asides and all(re.search(r"</summary>\n\n- .+\n\n</details>", source, re.DOTALL) for source in asides)


@pytest.mark.parametrize("step", plan.read().steps, ids=lambda step: step.notebook)
def test_a_notebook_calls_models_by_their_short_names(step):
    """All that its parameters name, before anything else is done with them; the library does it for ``explore``."""
    code = [cell.source for cell in nbformat.read(step.path, as_version=4).cells if cell.cell_type == "code"]
    given = set(plan.parameters.declared(step.path)) & set(preflight.MODEL_PARAMETERS)
    calls = re.findall(r"^(.+) = lm\.short_names\((.+)\)$", "\n".join(code), re.MULTILINE)
    assert all(left == right for left, right in calls)
    wanted = [given] if given and step.notebook != "explore" else []
    assert [set(left.split(", ")) for left, _ in calls] == wanted


@pytest.mark.parametrize("step", plan.read().steps, ids=lambda step: step.notebook)
def test_a_notebook_records_its_parameters(step):
    """Its section is given all names, before any parameter takes another value than the short names of models."""
    cells = [cell for cell in nbformat.read(step.path, as_version=4).cells if cell.cell_type == "code"]
    code = "\n".join(cell.source for cell in cells if "parameters" not in cell.metadata.get("tags", []))
    body = ast.parse(code).body
    at = next(i for i, line in enumerate(body) if ast.unparse(line).startswith("section = report.Section("))
    assert f"'{step.notebook}', profile, " in ast.unparse(body[at]) and "globals()" in ast.unparse(body[at])
    before = [line for line in body[:at] if "lm.short_names(" not in ast.unparse(line)]
    nodes = [node for line in before for node in ast.walk(line) if isinstance(node, ast.Name)]
    stored = {node.id for node in nodes if isinstance(node.ctx, ast.Store)}
    assert not stored & set(plan.parameters.declared(step.path))
