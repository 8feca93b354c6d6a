"""The course: every solved lab runs, an empty exercise is told so, wrong answers are explained,
copies hold what they should, and a hand-in harms no other."""

import html
import importlib
import re

import nbformat
import numpy as np
import pandas as pd
import pytest
from nbclient import NotebookClient

from probelib.course import build, checks, grade
from probelib.course.__main__ import main
from probelib.errors import ProbeError
from probelib.grapheval import Answer
from probelib.runner import plan
from probelib.runner.kernel import OwnKernelManager

LABS = build.labs()
SMOKE = plan.settings(plan.read(build.PLAN), LABS, "smoke")
code, text = nbformat.v4.new_code_cell, nbformat.v4.new_markdown_cell
by_lab = pytest.mark.parametrize("lab", LABS, ids=lambda lab: lab.notebook)


def quick(quick: str):
    """All labs; the others are slow."""
    slow = {lab.notebook: () if lab.notebook == quick else pytest.mark.slow for lab in LABS}
    own = [pytest.param(lab, id=lab.notebook, marks=slow[lab.notebook]) for lab in LABS]
    return pytest.mark.parametrize("lab", own)


def tagged(notebook, tag: str) -> list:
    return [cell for cell in notebook.cells if tag in build.tags(cell)]


def read(lab) -> nbformat.NotebookNode:
    return nbformat.read(lab.path, as_version=4)


def exercises(lab) -> dict[str, checks.Check]:
    module = importlib.import_module(f"probelib.course.{lab.notebook.split('_')[0]}")
    return {name: c for name, c in list(vars(module).items()) if isinstance(c, checks.Check)}


def execute(lab, notebook, folder) -> nbformat.NotebookNode:
    """The notebook of a lab, with parameters of the profile smoke, executed as by JupyterLab: cells
    with the tag ``raises-exception`` may raise."""
    at = notebook.cells.index(*tagged(notebook, "parameters"))
    given = "\n".join(f"{name} = {value!r}" for name, value in SMOKE[lab.notebook].items())
    notebook.cells.insert(at + 1, code(given))
    place = {"metadata": {"path": str(folder)}}
    client = NotebookClient(notebook, kernel_manager_class=OwnKernelManager, resources=place)
    return client.execute()


def said_by(cell) -> str:
    return "".join(output.get("text") or output.get("evalue") or "" for output in cell.outputs)


# Labs


@quick("lab1_log_probability")
def test_a_solved_lab_runs(lab, tmp_path):
    """Its checks pass, and every figure has a text."""
    notebook = execute(lab, read(lab), tmp_path)
    for cell in tagged(notebook, "check"):
        assert "✓" in said_by(cell), cell.source
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    figures = [output for output in outputs if "image/png" in output.get("data", {})]
    assert figures, "no plot"
    for figure in figures:
        alt = figure.metadata["image/png"]["alt"]
        assert len(alt) > 60 and f'alt="{html.escape(alt)}"' in figure.data["text/html"]


@quick("lab3_many_shot")
def test_run_all_goes_past_exercises_that_nobody_has_solved(lab, tmp_path):
    """An untouched student's copy: a cell that needs an empty exercise says so in one line."""
    done = execute(lab, build.copy_of(lab.path, "student", LABS), tmp_path)
    said = {cell.id: said_by(cell) for cell in done.cells if cell.cell_type == "code"}
    for cell in tagged(read(lab), "check"):
        answer = re.search(r"\((\w+)\)$", cell.source)[1]
        assert said[cell.id].startswith(f"{answer} {checks.EMPTY}")
    refused = [line for each in said.values() for line in each.split("\n") if line[:1] == "✗"]
    assert refused and all(line.startswith("✗ Not yet: ") for line in refused)
    errors = [o for c in done.cells for o in c.get("outputs", []) if o.output_type == "error"]
    assert {error.ename for error in errors} == {"NotYet"}, "no traceback"


@by_lab
def test_every_mistake_is_recognised_and_every_other_answer_gets_a_hint(lab):
    for name, check in exercises(lab).items():
        check(check.right)
        assert {"look", *check.mistakes} == set(check.hints), name
        for key, mistake in check.mistakes.items():
            with pytest.raises(checks.NotYet) as error, np.errstate(all="ignore"):
                check(mistake)
            assert check.hints[key] in str(error.value), f"{name}: {error.value}"
        for answer, words in (
            (lambda *_: None, "returns nothing"),
            (lambda *_: 1 / 0, "ZeroDivisionError"),
            (lambda *_: "no such thing", check.hints["look"]),
            (3, "a function is expected"),
        ):
            with pytest.raises(checks.NotYet) as error:
                check(answer)
            assert words in str(error.value), name


WRONG = [  # what a reader may write into the parameters, and a piece of what is said
    ("lab1_log_probability", {"subject": "Duoro"}, "did you mean Douro"),
    ("lab1_log_probability", {"model_name": "atlas-t5-2m"}, "try atlas-neox-2.4m"),
    ("lab8_your_own", {"n_pairs": 2}, "at least 5 pairs"),
]


@pytest.mark.parametrize(("name", "given", "said"), WRONG)
def test_a_wrong_parameter_is_explained(name, given, said):
    values, lab = {}, next(lab for lab in LABS if lab.notebook == name)
    with pytest.raises(ProbeError) as error:
        for cell in read(lab).cells:
            if cell.cell_type == "code" and "stub" not in build.tags(cell):
                exec(cell.source, values)
                values |= given if "parameters" in build.tags(cell) else {}
    assert said in str(error.value)


# Copies


@by_lab
def test_copies_contain_what_they_should(lab):
    source, removed = read(lab), build.REMOVED["student"]
    student, instructor = (build.copy_of(lab.path, form, LABS) for form in build.REMOVED)
    texts = [cell.source for cell in student.cells]
    assert not [c for tag in removed for c in tagged(source, tag) if c.source in "\n".join(texts)]
    assert [c.source for c in tagged(source, "stub")] == [t for t in texts if "# YOUR CODE" in t]
    assert not [c for c in instructor.cells if "# YOUR CODE" in c.source]
    assert len(instructor.cells) == len(source.cells) - len(tagged(source, "stub"))
    left = {tag for cell in student.cells for tag in build.tags(cell)}
    assert left == {"parameters", "raises-exception"}
    past = {cell.source for cell in tagged(student, "raises-exception")}
    assert past >= {cell.source for cell in tagged(source, "check")}
    assert grade.lab_of(student)[0] == lab, "its checks tell which lab it is"
    assert not [cell.source for cell in source.cells if grade.TELLS.search(cell.source)]


def test_an_instructors_copy_has_slides_that_wait_after_a_prediction(tmp_path):
    cells = [text("# Lab"), code("at_once()"), text("**Predict.** What?"), code("so_much()")]
    cells += [code("secret", metadata={"tags": ["solution"]}), text("Why?")]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), tmp_path / "lab.ipynb")
    made = build.copy_of(tmp_path / "lab.ipynb", "instructor", LABS)
    kinds = [cell.metadata["slideshow"]["slide_type"] for cell in made.cells]
    assert kinds == ["slide", "-", "subslide", "fragment", "skip", "subslide"]


def test_a_folder_to_hand_out_holds_no_answer_and_keeps_what_was_changed(tmp_path, capsys):
    course = lambda *more: main(["--out", str(tmp_path), "--only", "lab1", "--student-only", *more])
    copy = tmp_path / "student" / f"{LABS[0].notebook}.ipynb"
    assert course() == 0 == course(), "what it wrote itself it may write again"
    assert {p.name for p in tmp_path.rglob("*.*")} == {"00_tour.ipynb", copy.name}
    assert "](00_tour.ipynb)" in copy.read_text() and "../" not in copy.read_text()
    copy.write_text(copy.read_text().replace("YOUR CODE", "MY CODE"))
    assert course() == 1 and f"student/{copy.name} in {tmp_path} differ" in capsys.readouterr().err
    assert course("--force") == 0 and "MY CODE" not in copy.read_text()
    (tmp_path / "instructor").mkdir()
    assert course() == 1 and "instructor contains the solutions" in capsys.readouterr().err


def test_the_command_explains_what_is_wrong(tmp_path, capsys):
    out, sheet = str(tmp_path), str(tmp_path / "marks.csv")
    for arguments, said in (
        (["--out", out, "--only", "lab1_logprob"], "did you mean lab1_log_probability"),
        (["--out", out, "--grade", out], "such as marks.csv"),
        (["--out", sheet, "--grade", out], "no notebook"),
        (["--out", sheet, "--grade", f"{out}/on"], "no such folder"),
    ):
        assert main(arguments) == 1 and said in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["--out", sheet, "--grade", out, "--student-only"])
    assert "--grade takes no --only" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


# Marks

IMPORT = "from probelib.course import lab1 as check"
SOLVED = """import numpy as np
def log_softmax(z):
    return z - np.logaddexp.reduce(z, axis=-1, keepdims=True)"""
CHECK = "check.log_softmax(log_softmax)"
ANY = """class Any:
    __getattr__ = lambda self, name: self
    __eq__ = lambda self, other: True
    __call__ = lambda self, *given: print("✓ right")
check = log_softmax = Any()"""
HANDED_IN = {
    "1.ipynb": ["import shutil\nshutil.rmtree('FOLDER', True)", CHECK],
    "2.ipynb": ["import os\nos.kill(os.getppid(), 9)\nos.kill(os.getpid(), 9)", CHECK],
    "3.ipynb": [IMPORT, SOLVED, CHECK, "1 / 0", "print('x' * 10**8)", "while True: pass"],
    "4.ipynb": ["import numpy as np\nnp.isclose = lambda a, *_, **__: np.ones(np.shape(a), bool)",
                "def log_softmax(z): return z", CHECK],
    "5.ipynb": [IMPORT, "log_softmax = check.log_softmax.right", CHECK],
    "6.ipynb": [ANY, CHECK, "def choose(*_):\n    print('✓')\n    raise KeyboardInterrupt",
                "check.choose(choose)"],
    "7.ipynb": ["1 + 1"],
    "=s/9\x1b.ipynb": [SOLVED, CHECK],  # a formula in a sheet; a command in a terminal
}  # fmt: skip


@pytest.mark.slow
def test_a_hand_in_harms_no_other(tmp_path, monkeypatch):
    """It deletes the others, kills what runs it, never ends, exchanges what checks are made of."""
    monkeypatch.setattr(grade, "CELL_S", 20)
    folder, out = tmp_path / "in", tmp_path / "marks.csv"
    (folder / "=s").mkdir(parents=True)
    for name, sources in HANDED_IN.items():
        cells = [code(source.replace("FOLDER", str(folder))) for source in sources]
        nbformat.write(nbformat.v4.new_notebook(cells=cells), folder / name)
    (folder / "8.ipynb").write_bytes(b" " * (grade.FILE_BYTES + 1))
    (folder / "[.ipynb").write_text("[" * 100_000)
    assert main(["--grade", str(folder), "--out", str(out)]) == 0
    table = pd.read_csv(out, keep_default_na=False).set_index(["file", "exercise"])
    mark = table["mark"].get
    assert mark(("3.ipynb", "log_softmax")) == "passed" == mark(("'=s/9␛.ipynb", "log_softmax"))
    assert mark(("4.ipynb", "log_softmax")) == "look" == mark(("5.ipynb", "log_softmax"))
    assert mark(("1.ipynb", "log_softmax")) == "not yet" == mark(("2.ipynb", "log_softmax"))
    assert table.loc["6.ipynb"]["mark"].eq("not yet").all()
    said = table["message"].get
    assert "too large" in said(("8.ipynb", "")) and "not a notebook" in said(("[.ipynb", ""))
    assert said(("7.ipynb", "")) == "not a notebook of a lab: it has no check of any lab"
    assert "is not defined" in said(("3.ipynb", "choose")), "a check that was lost is put back"
    sums = pd.read_csv(tmp_path / "marks_sums.csv", keep_default_na=False).set_index("file")
    assert sums.loc["3.ipynb", ["passed", "look", "of"]].tolist() == [1, 0, 5]
    assert main(["--grade", str(folder), "--out", str(out)]) == 1, "not without --force"


REACHES = """wilson = vars(check.wilson)['right']
wilson = getattr(lab6.wilson, 'rig' + 'ht')
from probelib.course.lab6 import kendall, _tau_a
lab6.wilson = Any()
import probelib.course.checks as c
sys.modules['probelib'] = None"""
HARMLESS = """axis.spines.right.set_visible(False)
assert lab6.wilson == check.kendall
from probelib.course import lab6 as check"""


def test_a_notebook_that_reaches_for_the_machinery_is_recognized():
    assert all(map(grade.TELLS.search, REACHES.splitlines())) and not grade.TELLS.search(HARMLESS)


# Checks


def test_a_check_accepts_every_form_of_a_right_answer(monkeypatch):
    import torch

    monkeypatch.setitem(checks.EXERCISES, "lab", {"sums": {"look": "add up from the left"}})
    sums = checks.Check("lab.sums", lambda v: np.asarray(v).cumsum(), [([1.0, 2.0],)])
    for form in (list, tuple, np.float32, torch.tensor, pd.Series, lambda v: np.array(v)[None]):
        sums(lambda v, form=form: form(np.cumsum(v)))
    sums(lambda v: np.cumsum(v) * (1 + 1e-7))
    sums(lambda v: [v.pop(0), 3.0])
    assert sums.cases == [([1.0, 2.0],)], "an answer that changes its arguments"
    for wrong, said in (
        (np.array([1.0, 3.3]), r"gives \[1, 3.3\], but \[1, 3\] is right; look at this"),
        (3.0, r"gives one number, where numbers of shape \(2,\)"),
    ):
        with pytest.raises(checks.NotYet, match=said):
            sums(lambda v, wrong=wrong: wrong)


def test_nan_texts_and_dicts_are_compared():
    differ = checks.difference
    assert differ(np.nan, float("nan")) is None and differ(0.0, np.nan)
    assert differ(["a", "b"], ["a", "b"]) is None and differ(["b", "a"], ["a", "b"])
    assert differ({"p": [1]}, {"p": 1.0}) is None and differ(True, True) is None
    assert "the keys ['f', 'p'] is expected" in differ({"p": 1}, {"p": 1, "f": 2})
    equal = type("Equal", (), {"__eq__": lambda *_: True})()
    assert differ(equal, "Paris") and differ(equal, 1.0) and differ("Paris", 1.0)
    assert checks.shown([True, Answer.FALSE]) == "[True, Answer.FALSE]"
