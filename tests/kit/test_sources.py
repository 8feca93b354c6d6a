"""How the notebooks are written: no outputs, small cells, typed parameters, the traps named.
Nothing is executed here."""

import ast
import re
import statistics

import nbformat
import papermill
import pytest

from probelib.paths import NOTEBOOKS
from probelib.runner import plan, preflight

pytestmark = pytest.mark.fast

FILES = sorted(p for p in NOTEBOOKS.rglob("*.ipynb") if ".ipynb_checkpoints" not in p.parts)
PAPERS = ("monitor", "zplke", "distractors", "grapheval", "beyond")
STEPS = pytest.mark.parametrize("step", plan.read().steps, ids=lambda step: step.notebook)


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


@pytest.mark.parametrize(
    "path", [p for p in FILES if p.parent.name in PAPERS], ids=lambda p: f"{p.parent.name}/{p.stem}"
)
def test_a_paper_notebook_is_a_story_with_small_steps(path):
    code = [cell.source for cell in cells(path, "code")]
    lengths = [len(source.split("\n")) for source in code]
    assert max(lengths) <= 15 and statistics.median(lengths) <= 6
    assert not [line for source in code for line in source.split("\n") if len(line) > 100]
    texts = [n for s in code for n in ast.walk(ast.parse(s)) if isinstance(n, ast.JoinedStr)]
    assert not [n for text in texts for n in ast.walk(text) if isinstance(n, ast.IfExp)]
    assert len(plan.parameters.declared(path)) <= 11
    assert plan.parameters.defaults(path)["profile"] == "mine"


@STEPS
def test_papermill_shows_every_parameter_with_its_type(step):
    shown = papermill.inspect_notebook(str(step.path))
    typed = {name for name, told in shown.items() if told["inferred_type_name"] != "None"}
    assert typed == set(step.accepts)


@STEPS
def test_a_notebook_says_what_could_go_wrong(step):
    sources = [cell.source for cell in cells(step.path, "markdown")]
    asides = [source for source in sources if "<b>What could go wrong here</b>" in source]
    form = re.compile(r"</summary>\n\n- .+\n\n</details>", re.DOTALL)
    assert asides and all(map(form.search, asides))


@STEPS
def test_a_notebook_calls_models_by_their_display_names(step):
    """All that its parameters name, before anything else is done with them."""
    code = "\n".join(cell.source for cell in cells(step.path, "code"))
    given = set(plan.parameters.declared(step.path)) & set(preflight.MODEL_PARAMETERS)
    calls = re.findall(r"^(.+) = lm\.short_names\((.+?)(?:, format=format)?\)$", code, re.MULTILINE)
    assert all(left == right for left, right in calls)
    wanted = [given] if given and step.notebook != "explore" else []
    assert [set(left.split(", ")) for left, _ in calls] == wanted


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
