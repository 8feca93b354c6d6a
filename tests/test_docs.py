"""What the README claims is run or counted here."""

import re
import shlex

import pytest

from probelib import facts, lm, plan, run
from probelib.paths import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(\w*)\n(.*?)```", README, re.DOTALL)


def test_the_table_is_the_plan():
    """One row a notebook, with its artifacts; nothing more, nothing less."""
    rows = {
        name: set(re.findall(r"`([\w/]+)`", cells))
        for name, cells in re.findall(r"\[([\w/]+)\]\(notebooks/\1\.ipynb\)(.*)", README)
    }
    assert rows == {step.notebook: set(step.makes) for step in plan.read().steps}


def test_the_numbers_are_counted():
    atlas = facts.atlas()
    said = re.search(r"\*\*atlas\*\*, ([\d,]+) facts of (\d+) relations", README)
    assert (int(said.group(1).replace(",", "")), int(said.group(2))) == (len(atlas.facts), len(atlas.relations))
    sizes = sorted(lm.load(name).n_parameters / 1e6 for name in lm.organisms())
    low, high = map(float, re.search(r"models of ([\d.]+) to ([\d.]+) million parameters", README).groups())
    assert (low, high) == (pytest.approx(sizes[0], rel=0.1), pytest.approx(sizes[-1], rel=0.15))


def test_the_python_example_runs():
    (code,) = [body for language, body in BLOCKS if language == "python"]
    names = {}
    exec(code, names)
    assert len(names["rows"]) == 2 and (names["rows"]["logprob"] < 0).all()


def test_the_commands_are_known():
    """Every ``./run_all.sh`` line parses; the selections in it select something."""
    lines = [line.split("#")[0] for language, body in BLOCKS if language == "bash" for line in body.split("\n")]
    calls = [
        shlex.split(line)[1:]
        for line in [*lines, *re.findall(r"`(\./run_all\.sh[^`]*)`", README)]
        if "run_all.sh" in line
    ]
    assert len(calls) >= 5
    for words in calls:
        if words and words[0] in ("test", "lab", "bench", "course", "campaign"):
            continue
        parsed = run._parser().parse_args(words)
        assert not parsed.only or plan.matching(plan.read(), parsed.only)


def test_linked_files_exist():
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert target.startswith("http") or (ROOT / target).exists(), target
    for name in re.findall(r"^(probelib/\w+/|notebooks/|figures/)", README, re.MULTILINE):
        assert (ROOT / name).is_dir()
