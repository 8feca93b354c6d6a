"""The course: every solved lab runs, an empty stub is told so, wrong answers are explained, copies hold what they should."""

import ast
import asyncio
import csv
import html
import importlib
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import nbformat
import numpy as np
import pandas as pd
import pytest

from probelib import paths
from probelib.course import build, checks, grade, syllabus, unsolved
from probelib.course.__main__ import main
from probelib.errors import ProbeError
from probelib.grapheval import Answer
from probelib.report.sheets import read_csv
from probelib.runner import plan, steps

LABS = build.labs()
AGAIN = ["lab4-40", "lab6-35", "lab6-36", "lab7-11", "lab7-18", "lab8-06"]  # run once more when all else has run
SMOKE = plan.settings(plan.read(build.PLAN), LABS, "smoke")


def by_lab(function):
    return pytest.mark.parametrize("lab", LABS, ids=lambda lab: lab.notebook)(function)


def tagged(notebook, tag: str) -> list:
    return [cell for cell in notebook.cells if tag in cell.metadata.get("tags", [])]


def read(lab) -> nbformat.NotebookNode:
    return nbformat.read(lab.path, as_version=4)


def module(lab):
    return importlib.import_module(f"probelib.course.{lab.notebook.split('_')[0]}")


def exercises(lab) -> dict[str, checks.Check]:
    return {name: check for name, check in list(vars(module(lab)).items()) if isinstance(check, checks.Check)}


# Labs


@pytest.fixture(scope="module")
def execute():
    """A function that executes the notebook of a lab as the runner does, up to the first error; gives it with its outputs."""
    with asyncio.Runner() as loop:
        worker = steps.Worker(steps.environments(1)[0])

        def run(lab, notebook: nbformat.NotebookNode, folder: Path) -> nbformat.NotebookNode:
            source, target = folder / "given.ipynb", folder / "done.ipynb"
            nbformat.write(notebook, source)
            job = {"source": str(source), "target": str(target), "parameters": SMOKE[lab.notebook]}
            assert loop.run(worker.execute(job, 600, {"cell": 0, "text": ""})) is None
            return nbformat.read(target, as_version=4)

        yield run


@pytest.mark.parametrize(
    "lab", [pytest.param(lab, id=lab.notebook, marks=[] if lab is LABS[0] else pytest.mark.slow) for lab in LABS]
)
def test_a_lab_runs_and_its_empty_stubs_are_reported(execute, lab, tmp_path):
    """Each check runs twice, first on the stub, where it must fail helpfully, then on the solution. Figures have
    a text, and cells run again."""
    notebook, cells, n_stubs = read(lab), [], 0
    for i, cell in enumerate(notebook.cells):
        cells.append(cell)
        if "stub" in cell.metadata.get("tags", []):
            assert "..." in cell.source and "YOUR CODE" in cell.source
            early = nbformat.v4.new_code_cell(notebook.cells[i + 2].source, id=f"early-{i}")
            early.metadata["tags"] = ["raises-exception", "early"]
            cells, n_stubs = [*cells, early], n_stubs + 1
    for number, cell in enumerate([cell for cell in cells if cell.id in AGAIN]):
        cells.append(nbformat.v4.new_code_cell(cell.source, id=f"again-{number}"))
        cells[-1].metadata["tags"] = ["raises-exception", "again"]
    notebook.cells = cells
    notebook = execute(lab, notebook, tmp_path)
    assert n_stubs >= 1
    for cell in tagged(notebook, "early"):
        answer = re.search(r"\((\w+)\)$", cell.source)[1]
        assert [output.text for output in cell.outputs] == [unsolved.message([answer]) + "\n"]
    for cell in tagged(notebook, "check"):
        said = "".join(output.get("text", "") for output in cell.outputs)
        assert "✓" in said, cell.source
    for cell in tagged(notebook, "again"):
        assert not [output for output in cell.outputs if output.output_type == "error"]
    figures = [o for c in notebook.cells for o in c.get("outputs", []) if "image/png" in o.get("data", {})]
    assert figures, "no plot"
    for figure in figures:
        alt = figure.metadata["image/png"]["alt"]
        assert len(alt) > 60 and "nan" not in alt and f'alt="{html.escape(alt)}"' in figure.data["text/html"]


QUICK = ("lab2_prompts", "lab6_statistics")


@pytest.mark.parametrize(
    "lab", [pytest.param(lab, id=lab.notebook, marks=[] if lab.notebook in QUICK else pytest.mark.slow) for lab in LABS]
)
def test_run_all_goes_past_exercises_that_nobody_has_solved(execute, lab, tmp_path):
    """An untouched student's copy, run by papermill, which stops at any error: each exercise is named, by its check first."""
    done = execute(lab, build.without(read(lab), build.REMOVED["student"]), tmp_path)
    cells = [cell for cell in done.cells if cell.cell_type == "code"]
    said = {cell.id: "".join(output.get("text", "") for output in cell.outputs) for cell in cells}
    for cell in tagged(read(lab), "check"):
        answer = re.search(r"\((\w+)\)$", cell.source)[1]
        assert said[cell.id] == unsolved.message([answer]) + "\n"
    refused = [text for text in said.values() if "✗" in text]
    assert len(refused) > len(tagged(read(lab), "check")), "the cells that need an exercise say so, too"
    assert all(re.fullmatch(r"✗ Not yet: [^\n]*still empty\.[^\n]*\n", text) for text in refused)


def test_a_cell_that_needs_an_empty_exercise_is_not_run():
    """And neither is one that needs what that cell would have made; after the solution everything runs."""
    notebook = unsolved.Unsolved()
    shown = lambda source: ast.unparse(notebook.visit(ast.parse(source)))
    refused = f"print({unsolved.message(['double'])!r})"
    stub, use, after = "def double(x):\n    return ...", "y = [double(x) for x in range(3)]", "print(y)"
    assert shown(stub) == stub and shown(use) == refused == shown(after)
    assert shown("x = 1\nprint(x)") == "x = 1\nprint(x)", "another cell runs"
    assert shown("y = 0\nprint(y)") == "y = 0\nprint(y)" and shown(after) == after, (
        "a name that is made anew waits no more"
    )
    assert shown(use) == refused == shown(after)
    solved = "def double(x):\n    return 2 * x"
    assert shown(solved) == solved and shown(use) == use and shown(after) == after


def test_names_of_an_inner_scope_wait_for_nothing():
    """The variable of a comprehension, an argument, a table that is changed in place, an exercise that calls another."""
    notebook = unsolved.Unsolved()
    shown = lambda source: ast.unparse(notebook.visit(ast.parse(source)))
    shown("def root(x):\n    return ...")
    runs = lambda source: shown(source) == source
    assert not runs("for name in names:\n    table['root'] = root(name)")
    assert runs("print([name for name in (1, 2)])") and runs("print((lambda name: name)(1))")
    assert not runs("print(name)") and not runs("print(table)"), "the loop would have set both"
    assert runs("def monitor(x):\n    return root(x) / x"), "a definition runs"
    assert shown("monitor(1)") == f"print({unsolved.message(['root'])!r})"
    assert runs("def root(x):\n    return x") and runs("monitor(1)")
    assert unsolved.Unsolved().visit(broken := ast.parse("return 1")) is broken, "IPython explains a syntax error"


IMPORTS = re.compile(r"^(?:import|from) .+(?:\n    .+|\n\))*", re.MULTILINE)
DOTTED = re.compile(r"`([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+)(?:\([^`]*\))?`")
OBJECTS = {"atlas", "model"}  # what the labs call an instance


@by_lab
def test_what_a_lab_names_in_its_text_exists(lab):
    """Dotted names between backquotes, such as `probelib.monitor.flaws`, from probelib or from what the lab imports."""
    cells = read(lab).cells
    known = {"probelib": importlib.import_module("probelib")}
    exec("\n".join(IMPORTS.findall("\n".join(c.source for c in cells if c.cell_type == "code"))), known)
    for name in DOTTED.findall("\n".join(cell.source for cell in cells)):
        root, *parts = name.split(".")
        if root in OBJECTS:
            continue
        assert root in known or root in sys.stdlib_module_names, f"{name}: {root} is no module that the lab imports"
        found = known.get(root) or importlib.import_module(root)
        for part in parts:
            if found.__name__.startswith("probelib") and not hasattr(found, part):
                importlib.import_module(f"{found.__name__}.{part}")
            found = getattr(found, part)


@by_lab
def test_a_lab_fits_the_screen(lab):
    """100 columns, but for formulas, tables and links; no guards, which the library raises; no words of a private dialect."""
    for cell in read(lab).cells:
        for line in cell.source.split("\n"):
            assert len(line) <= 100 or line.startswith(("$$", "|")) or "](http" in line, (cell.id, line)
        assert cell.cell_type == "markdown" or not re.search(r"^ *raise ", cell.source, re.MULTILINE), cell.id
        assert not re.search("foret[eo]l|to take along", cell.source, re.IGNORECASE), cell.id
        assert not re.search(r"^#+ [^\n]*\s*\Z", cell.source), (cell.id, "a heading without text")


def test_the_syllabus_is_what_the_labs_say():
    page = (paths.NOTEBOOKS / "exercises" / "README.md").read_text(encoding="utf-8")
    assert syllabus.syllabus(LABS) in page, f"put this table into its place:\n{syllabus.syllabus(LABS)}"
    for lab in LABS:
        entry = syllabus.entry(lab)
        assert entry["Lab"] == lab.title and entry["Minutes"][:2].isdigit()
        assert lab.notebook.startswith(f"lab{lab.title.split('.')[0]}_")


def test_a_lab_without_a_syllabus_entry_is_named(tmp_path):
    path = tmp_path / "lab9_new.ipynb"
    nbformat.write(
        nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("# Lab 9. New\n\n- **Goal:** a")]), path
    )
    with pytest.raises(ProbeError, match=r"lab9_new.ipynb: .*'- \*\*Minutes:\*\*"):
        syllabus.entry(SimpleNamespace(path=path))


@by_lab
def test_stub_solution_and_check_are_adjacent(lab):
    cells = read(lab).cells
    tags = [set(cell.metadata.get("tags", [])) for cell in cells]
    assert not set().union(*tags) - {"parameters", "stub", "solution", "check", "answer", "instructor"}
    for i, own in enumerate(tags):
        if "stub" in own:
            assert "solution" in tags[i + 1] and "check" in tags[i + 2], cells[i].source
            assert len(cells[i + 2].source.split("\n")) == 1
    for name in ("stub", "solution", "check"):
        assert len(tagged(read(lab), name)) == len(tagged(read(lab), "stub"))
    headings = [
        line for cell in cells if cell.cell_type == "markdown" for line in cell.source.split("\n") if line[:1] == "#"
    ]
    assert any(line.startswith("## Review") for line in headings)
    assert sum("**Predict" in cell.source for cell in cells) >= 2


@by_lab
def test_wrong_answers_are_recognised(lab):
    """Every mistake that is written down is wrong, and gets the explanation written beside it."""
    for name, check in exercises(lab).items():
        check(check.right)
        assert len(check.mistakes) >= 1, f"{name} knows no mistake"
        for said, mistake in check.mistakes.items():
            with pytest.raises(checks.NotYet) as error, np.errstate(all="ignore"):
                check(mistake)
            assert said in str(error.value), f"{name}: {error.value}"


@by_lab
def test_any_other_answer_gets_a_hint(lab):
    for name, check in exercises(lab).items():
        for answer, words in (
            (lambda *_: ..., "still empty"),
            (lambda *_: None, "returns nothing"),
            (lambda *_: 1 / 0, "ZeroDivisionError"),
            (lambda *_: "no such thing", check.look),
        ):
            with pytest.raises(checks.NotYet) as error:
                check(answer)
            assert words in str(error.value), name
            assert words != "still empty" or check.look not in str(error.value), "an empty stub is not told the way"
        with pytest.raises(checks.NotYet, match="a function is expected"):
            check(3)


@by_lab
def test_copies_contain_what_they_should(lab):
    source = read(lab)
    student, instructor = (build.without(source, build.REMOVED[form]) for form in ("student", "instructor"))
    texts = "\n".join(cell.source for cell in student.cells)
    for cell in [c for tag in build.REMOVED["student"] for c in tagged(source, tag)]:
        assert cell.source not in texts
    assert [c.source for c in tagged(source, "stub")] == [c.source for c in student.cells if "# YOUR CODE" in c.source]
    assert all(c.source in texts for c in tagged(source, "check"))
    assert not [c for c in instructor.cells if "# YOUR CODE" in c.source]
    assert len(instructor.cells) == len(source.cells) - len(tagged(source, "stub"))
    for made in (source, student, instructor):
        nbformat.validate(made)
        ids = [cell.id for cell in made.cells]
        assert len(ids) == len(set(ids)) and not any(cell.get("outputs") for cell in made.cells)
    left = {tag for cell in student.cells for tag in cell.metadata.get("tags", [])}
    assert left == {"parameters", "raises-exception"} and tagged(source, "stub"), "the source keeps its tags"
    assert [c.source for c in tagged(student, "raises-exception")] == [c.source for c in tagged(source, "check")]


WRONG = [  # what a reader may write into the parameters, and a piece of what is said
    ("00_tour", {"subject": "Frence"}, "is called 'Frence'; the nearest are France"),
    ("00_tour", {"relation": "P3"}, "unknown relation 'P3'"),
    ("00_tour", {"model_name": "atlas-t5-2m"}, "without an encoder: try atlas-neox-2.4m"),
    ("lab1_log_probability", {"subject": "Duoro"}, "the nearest are Douro"),
    ("lab1_log_probability", {"model_name": "atlas-t5-2m"}, "without an encoder"),
    ("lab2_prompts", {"models": "atlas-neox-2.4m"}, "a list of texts is needed"),
    ("lab4_distractors", {"ending": "full_stop"}, "unknown ending 'full_stop'; Known: eos, none, punct"),
    ("lab5_judges", {"model_name": "atlas-neox-0.15m", "n_labels": 20}, "not instruction-tuned"),
    ("lab8_your_own", {"n_pairs": 2}, "at least 5 pairs"),
    ("lab8_your_own", {"often": 160}, "at least 5 are needed: try often=16"),
    ("lab8_your_own", {"often": 10**6}, "leaves 0 pairs"),
]


@pytest.mark.parametrize(("name", "given", "said"), WRONG)
def test_a_wrong_parameter_is_explained(name, given, said):
    path = build.TOUR if name == build.TOUR.stem else next(lab.path for lab in LABS if lab.notebook == name)
    values = {}
    with pytest.raises(ProbeError) as error:
        for cell in nbformat.read(path, as_version=4).cells:
            if cell.cell_type == "code" and "stub" not in cell.metadata.get("tags", []):
                exec(cell.source, values)
                values |= given if "parameters" in cell.metadata.get("tags", []) else {}
    assert said in str(error.value)


@by_lab
def test_sentences_come_from_the_library(lab):
    """No code cell chooses words inside a string, and each alt text and finding is made by a function."""
    for cell in read(lab).cells:
        nodes = [*ast.walk(ast.parse(cell.source))] if cell.cell_type == "code" else []
        strings = [part for node in nodes if isinstance(node, ast.JoinedStr) for part in ast.walk(node)]
        assert not any(isinstance(part, ast.IfExp) for part in strings), cell.id
        calls = [node for node in nodes if isinstance(node, ast.Call)]
        texts = [call.args[-1] for call in calls if ast.unparse(call.func) in ("report.say", "show")]
        assert all(isinstance(text, ast.Call | ast.Constant) for text in texts), cell.id


@by_lab
def test_figures_go_through_show(lab):
    for cell in read(lab).cells:
        assert "plt.show" not in cell.source and cell.source.count("plt.subplots") == cell.source.count("show("), (
            cell.id
        )


# The command


def test_the_command_makes_everything_of_one_lab(lab1):
    name = LABS[0].notebook
    page = (lab1 / "slides" / f"{name}.html").read_text()
    index = (lab1 / "index.html").read_text()
    for form, suffix in (("student", "ipynb"), ("instructor", "ipynb"), ("slides", "html")):
        assert (lab1 / form / f"{name}.{suffix}").exists() and f"{form}/{name}.{suffix}" in index
    assert 'src="reveal.js/dist/reveal.js"' in page and (lab1 / "slides" / "reveal.js" / "dist" / "reveal.js").exists()
    loaded = re.compile(r"""(?:src|href)=["']?(?:https?:)?//|url\(["']?https?:|@import\s+["']https?:""")
    links = re.compile(r"<a [^>]*>")  # nothing is loaded before somebody clicks
    for path in (lab1 / "slides").rglob("*.*"):
        assert path.is_dir() or not loaded.search(links.sub("", path.read_text(encoding="utf-8"))), path
    assert page.count("<section>") > 20 and "# YOUR CODE" not in page and "image/png" in page
    body = page.split("<body")[1]
    assert "raise" not in re.findall(r'<span class="k">(\w+)</span>', body), "no guards"
    slides = re.split(r"<section[^>]*>", body)
    assert all(re.search("<h[1-4]", slide) for slide in slides if "highlight" in slide), "every slide has a title"
    assert all(
        f"<td>{html.escape(value, quote=False)}</td>" in index
        for value in ("45 to 60", syllabus.entry(LABS[0])["Goal"])
    )


def test_what_is_to_be_predicted_waits_for_a_key_press():
    """And a slide that is taller than the page shows that it scrolls; headings keep their letters whatever the theme wants."""
    markdown, code = nbformat.v4.new_markdown_cell, nbformat.v4.new_code_cell
    told = lambda text: code(f"print('{text}')", outputs=[nbformat.v4.new_output("stream", text=text)])
    cells = [
        markdown("# Lab"),
        told("seen at once"),
        markdown("**Predict.** How much?"),
        told("so much"),
        told("and more"),
    ]
    page = build.slides(nbformat.v4.new_notebook(cells=cells), "Lab", "reveal.js").split("<body")[1]
    assert page.count('class="fragment"') == 1
    before, behind = page.split('class="fragment"')
    assert "How much?" in before and "seen at once" in before and "so much" in behind and "and more" in behind
    style = (build.SLIDES / "index.html.j2").read_text()
    assert ".reveal .jp-RenderedHTMLCommon pre { font-size: 17px" in style, "a fenced block is as large as code"
    assert (
        "scrollbar-width: none" not in style
        and ".reveal .slides section :is(h1, h2, h3, h4) { text-transform: none" in style
    )


def test_imports_are_on_no_slide():
    imports = [
        (lab.notebook, cell.metadata.get("slideshow", {}).get("slide_type"))
        for lab in build.labs()
        for cell in nbformat.read(lab.path, as_version=4).cells
        if cell.cell_type == "code" and re.match("import |from ", cell.source) and not cell.metadata.get("tags")
    ]
    assert len(imports) >= 8 and {kind for _, kind in imports} == {"skip"}, imports


def test_a_slide_without_a_heading_gets_the_one_before_it():
    markdown, code = nbformat.v4.new_markdown_cell, nbformat.v4.new_code_cell
    solution = code("def root(x):\n    return x", metadata={"tags": ["solution"]})
    cells = [markdown("# Lab"), markdown("Text.\n\n## Roots\n\nMore."), solution, markdown("### Next\n\nText.")]
    page = build.slides(nbformat.v4.new_notebook(cells=cells), "Lab", "reveal.js").split("<body")[1]
    assert re.findall(r"<h(\d)[^>]*>(\w+)", page) == [
        ("1", "Lab"),
        ("4", "Lab"),
        ("2", "Roots"),
        ("4", "Roots"),
        ("3", "Next"),
    ]


def test_a_slide_shows_a_figure_or_a_sentence_without_the_code_that_makes_it():
    code, shown = nbformat.v4.new_code_cell, nbformat.v4.new_output
    cells = [
        nbformat.v4.new_markdown_cell("# Lab"),
        code(
            "plot_it()", outputs=[shown("display_data", data={"image/png": "iVBORw0KGgo=", "text/plain": "a figure"})]
        ),
        code("report.say(f'so {much}')", outputs=[shown("display_data", data={"text/markdown": "so much"})]),
        code("model = 1 + 1", outputs=[shown("stream", text="two")]),
    ]
    page = build.slides(nbformat.v4.new_notebook(cells=cells), "Lab", "reveal.js").split("<body")[1]
    assert "plot_it" not in page and "report" not in page, "the code of a figure and of a sentence"
    assert "image/png" in page and "so much" in page and "two" in page and "model" in page


def test_a_folder_to_hand_out_holds_no_answer_and_keeps_what_was_changed(tmp_path, capsys):
    course = lambda *more: main(["--out", str(tmp_path), "--only", "lab1", *more])
    copy = tmp_path / "student" / f"{LABS[0].notebook}.ipynb"
    assert course("--student-only") == 0 == course("--student-only"), "what it wrote itself it may write again"
    assert capsys.readouterr().out.endswith(f"course: {tmp_path / 'index.html'}\n")
    there = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert there == {".written.json", "index.html", "student/00_tour.ipynb", f"student/{copy.name}"}
    assert "](00_tour.ipynb)" in copy.read_text() and "../" not in copy.read_text(), "links stay inside"
    tour = (copy.parent / "00_tour.ipynb").read_text()
    assert f"[Lab 1]({copy.name})" in tour and "](explore.ipynb)" not in tour and "- explore: pick a fact" in tour
    index = (tmp_path / "index.html").read_text()
    assert "instructor" not in index and "slides" not in index
    copy.write_text(copy.read_text().replace("YOUR CODE", "MY CODE"))
    assert course("--student-only") == 1
    assert f"student/{copy.name} in {tmp_path} changed" in capsys.readouterr().err and "MY CODE" in copy.read_text()
    assert course("--student-only", "--force") == 0 and "MY CODE" not in copy.read_text()
    assert main(["--out", str(tmp_path), "--only", "lab8", "--student-only"]) == 0
    index = (tmp_path / "index.html").read_text()
    assert "student/lab1_" in index and "student/lab8_" in index, (
        "the index has what lies there, of an earlier call, too"
    )
    for name in ("instructor", "slides"):
        (tmp_path / name).mkdir()
        assert course("--student-only") == 1 and f"{tmp_path / name} contains the solutions" in capsys.readouterr().err
        (tmp_path / name).rmdir()


def test_the_command_explains_what_is_wrong(tmp_path, capsys, monkeypatch):
    assert main(["--out", str(tmp_path), "--only", "lab1_logprob"]) == 1
    said = capsys.readouterr().err
    assert "did you mean lab1_log_probability" in said and all(lab.notebook in said for lab in LABS)
    assert main(["--out", str(tmp_path), "--grade", str(tmp_path)]) == 1
    assert "such as marks.csv" in capsys.readouterr().err
    assert main(["--out", str(tmp_path / "marks.csv"), "--grade", str(tmp_path)]) == 1
    assert "no notebook" in capsys.readouterr().err
    assert main(["--out", str(tmp_path), "--profile", "paper"]) == 1
    assert "unknown profile 'paper'" in capsys.readouterr().err
    for more in (["--only", "lab1"], ["--student-only"], ["--profile", "atlas"], ["--reveal", "reveal.js"]):
        with pytest.raises(SystemExit):
            main(["--out", str(tmp_path / "marks.csv"), "--grade", str(tmp_path), *more])
        assert f"--grade takes no {more[0]}" in capsys.readouterr().err
    monkeypatch.setattr(build.importlib.util, "find_spec", lambda name: None)
    assert main(["--out", str(tmp_path)]) == 1
    said = capsys.readouterr().err
    assert "pip install pyreveal" in said and "--reveal" in said
    assert not list(tmp_path.iterdir())


# Marks

HANDED_IN = {
    "one.ipynb": [
        "import numpy as np",
        "from probelib.course import lab1 as check",
        "def log_softmax(z):\n    return z - np.logaddexp.reduce(z, axis=-1, keepdims=True)",
        "check.log_softmax(log_softmax)",
        "1 / 0",
        "def answer_probability(v):\n    return np.sum(v)",
        "check.answer_probability(answer_probability)",
        "import time\n\ndef choose(*given):\n    while True: time.sleep(1)",
        "check.choose(choose)",
    ],
    "group/two.ipynb": [
        "from probelib.course import lab1 as check",
        "log_softmax = check.log_softmax.right",
        "check.log_softmax(log_softmax)",
    ],
    "three.ipynb": ["import os", "from probelib.course import lab7", "lab7.absmax(absmax)", "os._exit(1)"],
    "four.ipynb": ["1 + 1"],
}


def test_marks_of_a_folder(tmp_path, monkeypatch):
    """Past an error and an endless loop, with the checks that a submission has lost, and with a look at who reads its answer."""
    monkeypatch.setattr(grade, "CELL_S", 10)
    for name, cells in HANDED_IN.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        nbformat.write(
            nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in cells]), tmp_path / name
        )
    code, text = nbformat.v4.new_code_cell, nbformat.v4.new_markdown_cell
    seven = [
        code("from probelib.course import lab1 as check"),
        code("check.log_softmax(log_softmax)"),
        text("check.choose(choose)"),
    ]
    written = nbformat.writes(nbformat.v4.new_notebook(cells=seven))
    (tmp_path / "seven.ipynb").write_text("\ufeff" + written.replace('"metadata": {}', '"metadata": {"tags": null}', 1))
    (tmp_path / "five.ipynb").write_text("no notebook")
    (tmp_path / "six.ipynb").write_text("[]")
    assert main(["--grade", str(tmp_path), "--out", str(tmp_path / "marks.csv")]) == 0
    table = pd.read_csv(tmp_path / "marks.csv", keep_default_na=False).set_index(["file", "exercise"])
    one = table.loc["one.ipynb"]
    assert list(one.index) == ["log_softmax", "answer_logprobs", "answer_probability", "either_logprob", "choose"]
    assert one["mark"].tolist() == ["passed", *["not yet"] * 4]
    assert one["message"]["answer_logprobs"] == "NameError: name 'answer_logprobs' is not defined"
    assert "exp is missing" in one["message"]["answer_probability"]
    assert one["message"]["choose"] == "no answer within 10 s"
    assert table.loc["group/two.ipynb", "log_softmax"]["mark"] == "look"
    # neither a byte order mark nor tags that are null harm, and a check that was made a text is put back
    assert table.loc["seven.ipynb", "choose"]["message"] == "NameError: name 'choose' is not defined"
    assert table.loc["three.ipynb", "nf4"]["message"] == "the notebook ended before: DeadKernelError"
    for name in ("four.ipynb", "five.ipynb", "six.ipynb"):
        assert "not a notebook of a lab" in table.loc[name, ""]["message"]


def test_one_odd_notebook_costs_the_others_no_marks(tmp_path):
    """A name that is not UTF-8, and a lone surrogate in a cell that is run."""
    code = nbformat.v4.new_code_cell
    check = "check.log_softmax(log_softmax)"
    for name, sources in {
        "a": ["x = '\\ud800'", check],
        "\udcfc": ["1"],
        "z": ["raise ValueError('\\ud800')", check],
    }.items():
        text = nbformat.writes(nbformat.v4.new_notebook(cells=[code(source) for source in sources]))
        (tmp_path / f"{name}.ipynb").write_text(text.replace("\\\\ud800", "\\ud800"))
    assert main(["--grade", str(tmp_path), "--out", str(tmp_path / "marks.csv")]) == 0
    table = pd.read_csv(tmp_path / "marks.csv", keep_default_na=False)
    assert table["file"].unique().tolist() == ["a.ipynb", "z.ipynb", "\ufffd.ipynb"]
    said = table.groupby("file")["message"].first()
    assert said["a.ipynb"].startswith("it could not be run: UnicodeEncodeError: ")
    assert said["\ufffd.ipynb"].startswith("not a notebook of a lab")


ANY = """
class Any:
    __getattr__ = lambda self, name: self
    __eq__ = lambda self, other: True
    __call__ = lambda self, *given: print("✓ right")

check = Any()
"""


def test_a_check_is_the_kits_own_whatever_its_name_stands_for(tmp_path):
    """An object that prints the tick for every check, as a check and as an answer; an answer that prints it and gives up."""
    sources = [
        *(ANY, "check.log_softmax(check)", "check.choose(lambda *given: check)"),
        "def choose(*given):\n    print('✓')\n    raise KeyboardInterrupt",
        *("check = log_softmax = Any()", "check.log_softmax(log_softmax)", "check.choose(choose)"),
    ]
    cells = [nbformat.v4.new_code_cell(source) for source in sources]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), tmp_path / "any.ipynb")
    marks = {exercise: (mark, said) for exercise, mark, said in grade.graded(tmp_path / "any.ipynb")}
    assert {mark for mark, _ in marks.values()} == {"not yet"}
    assert "log_softmax" in marks and "returns nothing" in marks["log_softmax"][1]


def test_no_cell_of_the_marks_is_a_formula(tmp_path, capsys, monkeypatch):
    """A spreadsheet would compute the name of a file, or an exception's: each begins with an apostrophe, and reading drops it."""
    name = '=HYPERLINK("http:evil","click").ipynb'
    for file in (name, "b\x1b[2J.ipynb"):
        nbformat.write(nbformat.v4.new_notebook(), tmp_path / file)
    error = nbformat.v4.new_output("error", ename="=HYPERLINK", evalue="1", traceback=[])
    cell = nbformat.v4.new_code_cell("check.choose(choose)", outputs=[error])
    monkeypatch.setattr(grade, "graded", lambda path: [("choose", *grade.mark(cell, ""))])
    out = grade.marks(tmp_path, tmp_path / "marks.csv")
    with out.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["file"] for row in rows] == [f"'{name}", "b␛[2J.ipynb"]
    assert {row["message"] for row in rows} == {"'=HYPERLINK: 1"}
    assert read_csv(out.read_bytes())["file"][0] == name and "\x1b" not in capsys.readouterr().out


def test_a_mistyped_folder_of_submissions_is_named(tmp_path):
    with pytest.raises(ProbeError, match=r"^--grade .*handed-on: no such folder"):
        grade.marks(tmp_path / "handed-on", tmp_path / "marks.csv")
    assert not (tmp_path / "marks.csv").exists()


def test_marks_are_written_over_by_force_alone(tmp_path, capsys):
    nbformat.write(nbformat.v4.new_notebook(), tmp_path / "empty.ipynb")
    out = tmp_path / "marks.csv"
    out.write_text("last year's")
    assert main(["--grade", str(tmp_path), "--out", str(out)]) == 1
    assert f"{out} exists" in capsys.readouterr().err and out.read_text() == "last year's"
    assert main(["--grade", str(tmp_path), "--out", str(out), "--force"]) == 0
    assert out.read_text().startswith("file,exercise,mark,message\n")


@pytest.mark.parametrize(
    ("source", "asks"),
    [
        ("wilson = check.wilson.right", True),
        ("wilson = vars(check.wilson)['right']", True),
        ("wilson = getattr(lab6.wilson, 'rig' + 'ht')", True),
        ("kendall = check._tau_a", True),
        ("from probelib.course.lab6 import kendall, _tau_a", True),
        ("lab6.wilson = Any()", True),
        ("setattr(check, 'wilson', Any())", True),
        ("axis.spines.right.set_visible(False)", False),
        ("assert lab6.wilson == check.kendall", False),
        ("from probelib.course import lab6 as check", False),
        ("_, p = check_all(own._values)", False),
    ],
)
def test_a_notebook_that_takes_answers_from_a_check_is_recognized(source, asks):
    assert bool(grade.TELLS.search(source)) == asks


def test_what_is_handed_out_can_be_graded():
    """Nothing in a student's copy looks like an answer asked of a check, and its checks tell which lab it is."""
    for lab in LABS:
        student = build.without(read(lab), build.REMOVED["student"])
        assert grade.lab_of(student)[0] == lab and len(grade.lab_of(student)[1]) == len(tagged(read(lab), "check"))
        assert not grade._own_cells(student, lab)
        assert not [cell.source for cell in read(lab).cells if grade.TELLS.search(cell.source)]


# Checks


def test_a_check_accepts_every_form_of_a_right_answer():
    import torch

    mean = checks.Check(right=lambda v: np.asarray(v).cumsum(), cases=[([1.0, 2.0],)], look="add up from the left")
    for form in (list, tuple, np.float32, torch.tensor, pd.Series, lambda v: np.array(v)[None]):
        mean(lambda v, form=form: form(np.cumsum(v)))
    mean(lambda v: np.cumsum(v) * (1 + 1e-7))
    with pytest.raises(checks.NotYet, match=r"gives \[1, 3.3\], but \[1, 3\] is right; look at this: add up"):
        mean(lambda v: np.array([1.0, 3.3]))
    with pytest.raises(checks.NotYet, match=r"gives one number, where numbers of shape \(2,\) should be"):
        mean(lambda v: 3.0)


def test_an_answer_that_changes_its_arguments_is_no_trap():
    total = checks.Check(right=sum, cases=[([1, 2],), ([1, 2],)], look="add")
    shared = total.cases[0][0]
    total(lambda values: values.pop() + values.pop())
    assert shared == [1, 2]


def test_nan_texts_and_dicts_are_compared():
    assert checks.difference(np.nan, float("nan")) is None and checks.difference(0.0, np.nan)
    assert checks.difference(["a", "b"], ["a", "b"]) is None and checks.difference(["b", "a"], ["a", "b"])
    assert checks.difference({"p": [1]}, {"p": 1.0}) is None
    assert (
        checks.difference({"p": 1}, {"p": 1, "f": 2})
        == "gives {'p': 1}, but a dict with the keys ['f', 'p'] is expected"
    )
    assert checks.difference("Paris", 1.0) and checks.difference(True, True) is None


def test_members_of_an_enum_are_shown_by_name():
    assert checks.shown([True, Answer.FALSE]) == "[True, Answer.FALSE]" and checks.shown(np.bool_(True)) == "True"


def test_a_notebook_shows_one_short_message():
    lines = checks.NotYet("something is wrong, " * 20)._render_traceback_()
    assert lines[0].startswith("✗ something") and max(map(len, lines)) <= 110
