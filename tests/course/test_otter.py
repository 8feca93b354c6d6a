"""The checks as tests of otter-grader, run by otter-grader itself."""

import json
import os
import subprocess
import sys

import nbformat
import pytest

from probelib.course import build, otter
from probelib.course.grade import checks_of
from probelib.paths import ROOT
from tests.course.test_course import LABS, SMOKE, by_lab, exercises, read


def test_every_exercise_has_a_test(tmp_path):
    folder = otter.write_tests(LABS, tmp_path)
    written = {path.relative_to(folder).as_posix() for path in folder.rglob("*.py")}
    assert written == {f"{lab.notebook}/{exercise}.py" for lab in LABS for exercise in checks_of(lab)}
    assert (folder / "requirements.txt").read_text().endswith("-py3-none-any.whl\n")


@by_lab
def test_otter_gives_the_points_of_the_checks(lab, tmp_path):
    """Right answers pass. Empty stubs and missing functions do not, and say why."""
    tests = pytest.importorskip("otter.test_files", reason="needs otter-grader")
    folder = otter.write_tests([lab], tmp_path)
    for exercise, check in exercises(lab).items():
        if exercise not in checks_of(lab):
            continue
        answer = checks_of(lab)[exercise].partition("(")[2].rstrip(")")
        for given, passed in (({answer: check.right}, True), ({answer: lambda *_: ...}, False), ({}, False)):
            file = tests.ExceptionTestFile.from_file(str(folder / lab.notebook / f"{exercise}.py"))
            file.run(given)
            assert file.passed_all is passed and (file.score, file.possible) == (float(passed), 1)
            assert passed or ("still empty" if given else answer) in file.summary()


@pytest.mark.slow
def test_otter_grades_a_whole_notebook(tmp_path):
    """`otter generate` and `otter run`, as a teacher would, but without the container: a solved lab and an empty one."""
    pytest.importorskip("otter", reason="needs otter-grader")
    (lab,) = build.labs(["lab2"])
    folder = otter.write_tests([lab], tmp_path)
    (folder / otter.WHEEL).touch()
    here = os.environ | {"PYTHONPATH": str(ROOT)}
    run = lambda *words: subprocess.run([sys.executable, "-m", "otter", *words], cwd=folder, check=True, env=here)
    run("generate", "-t", lab.notebook, "-o", "lab2.zip", otter.WHEEL)
    for form, passed in (("instructor", 1), ("student", 0)):
        notebook = build.without(read(lab), build.REMOVED[form])
        (parameters,) = (cell for cell in notebook.cells if "parameters" in cell.metadata.get("tags", []))
        parameters.source += "".join(f"\n{name} = {value!r}" for name, value in SMOKE[lab.notebook].items())
        nbformat.write(notebook, folder / f"{form}.ipynb")
        (folder / form).mkdir()
        run("run", "-a", "lab2.zip", "-o", form, "--no-logo", f"{form}.ipynb")
        found = json.loads((folder / form / "results.json").read_text())["tests"][1:]
        assert {test["name"]: test["score"] for test in found} == dict.fromkeys(sorted(checks_of(lab)), passed)
