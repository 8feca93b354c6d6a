"""The checks of the labs as tests of otter-grader, which runs the students' submissions in a container.

    DIR/otter/requirements.txt                the kit's wheel, by its path in the container
    DIR/otter/<lab>/<exercise>.py             one test per exercise, one point each

In DIR/otter, with the wheel beside requirements.txt, ``otter generate`` makes an autograder of a lab's folder.
"""

import ast
from pathlib import Path

from probelib import __version__, files
from probelib.course.grade import checks_of
from probelib.runner.plan import Step

WHEEL = f"probelib-{__version__}-py3-none-any.whl"
TEST = '''"""Exercise {exercise} of {lab}."""

from otter.test_files import test_case

OK_FORMAT = False
name = "{exercise}"
points = 1


@test_case()
def test_{exercise}({answer}):
    from probelib.course import {module}  # the kit's own check, whatever the notebook made of its name

    {module}.{exercise}({answer})
'''


def write_tests(steps: list[Step], out: Path) -> Path:
    """Write the tests of the labs to ``out``/otter; return this folder."""
    folder = out / "otter"
    for step in steps:
        module = step.notebook.split("_")[0]
        for exercise, source in checks_of(step).items():
            (answer,) = (argument.id for argument in ast.parse(source).body[0].value.args)
            text = TEST.format(exercise=exercise, lab=step.notebook, module=module, answer=answer)
            files.write(folder / step.notebook / f"{exercise}.py", text)
    files.write(folder / "requirements.txt", f"/autograder/source/files/{WHEEL}\n")
    return folder
