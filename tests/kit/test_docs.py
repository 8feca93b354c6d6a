"""What the README and the pages that it links claim is run or counted here."""

import os
import re
import shlex
import shutil
import subprocess
import sys

import pandas as pd
import pytest

from probelib import facts, lm, prompts
from probelib.overview import index
from probelib.paths import NOTEBOOKS, ROOT
from probelib.runner import cli, plan, preflight

pytestmark = pytest.mark.fast

README = (ROOT / "README.md").read_text(encoding="utf-8")
YOUR_OWN = (NOTEBOOKS / "your_own.md").read_text(encoding="utf-8")
TEACH = (NOTEBOOKS / "exercises" / "README.md").read_text(encoding="utf-8")
DOCS = "\n".join((README, YOUR_OWN, TEACH))
GUIDE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(\w*)\n(.*?)```", DOCS, re.DOTALL)


def test_the_table_links_the_page_of_every_paper_notebook():
    """Of those that the default run has made."""
    table = "".join(re.findall(r"^\|.*\n", README, re.MULTILINE))
    linked = re.findall(r"\(figures/atlas/([\w/]+)\.md\)", table)
    names = [step.notebook for step in plan.read().steps if "/" in step.notebook]
    assert sorted(linked) == sorted(name for name in names if (ROOT / "figures" / "atlas" / f"{name}.md").exists())


def test_the_landing_page_is_short():
    """And its commands fit the box in which GitHub shows them."""
    assert len(README.splitlines()) <= 150
    commands = "".join(re.findall(r"```\w+\n(.*?)```", README, re.DOTALL))
    assert not [line for line in commands.split("\n") if len(line) > 95]


def test_the_tree_names_every_package():
    (tree,) = (body for language, body in re.findall(r"```(\w*)\n(.*?)```", README, re.DOTALL) if "probelib/\n" in body)
    packages = {path.parent.name for path in (ROOT / "probelib").glob("*/__init__.py")}
    modules = {path.name for path in (ROOT / "probelib").glob("*.py")} - {"__init__.py"}
    named = set(re.findall(r"(\w+)/", tree)) | set(re.findall(r"\w+\.py", tree))
    assert len(packages) > 15 and packages | modules <= named, sorted((packages | modules) - named)


def test_the_numbers_are_counted():
    atlas = facts.atlas()
    said = re.search(r"\*\*atlas\*\*, ([\d,]+) facts of (\d+) relations", README)
    assert (int(said.group(1).replace(",", "")), int(said.group(2))) == (len(atlas.facts), len(atlas.relations))
    sizes = sorted(lm.load(name).n_parameters / 1e6 for name in lm.organisms())
    low, high = map(float, re.search(r"models of ([\d.]+) to ([\d.]+) million parameters", README).groups())
    assert (low, high) == (pytest.approx(sizes[0], rel=0.1), pytest.approx(sizes[-1], rel=0.15))


@pytest.mark.whole
def test_the_python_example_runs(tmp_path, monkeypatch, capsys):
    """What it asks is scored, MONITOR printed, and what it keeps lies where the script was started: a file that pandas reads."""
    monkeypatch.chdir(tmp_path)
    (code,) = [body for language, body in BLOCKS if language == "python"]
    names = {}
    exec(code, names)
    assert len(names["rows"]) == 2 and (names["rows"]["logprob"] < 0).all()
    scores = names["scores"]["atlas-neox-2.4m"]
    assert scores["prompt"].is_unique and len(scores) == len(prompts.with_contexts(names["languages"]))
    assert names["measured"].models["MONITOR"].between(0, 1).all() and "atlas-neox-2.4m" in capsys.readouterr().out
    (part,) = tmp_path.glob("runs/mine/atlas-neox-2.4m/P37-logprobs-*.parquet")
    assert len(pd.read_parquet(part)) == len(scores)


def test_the_commands_are_known():
    """Every ``./run_all.sh`` line parses; the selections in it select something."""
    lines = [line.split("#")[0] for language, body in BLOCKS if language == "bash" for line in body.split("\n")]
    lines += re.findall(r"`(\./run_all\.sh[^`]*)`", DOCS)
    calls = [shlex.split(line)[1:] for line in lines if "run_all.sh" in line]
    cases = re.findall(r"^    ([\w| ]+)\) ", (ROOT / "run_all.sh").read_text(encoding="utf-8"), re.MULTILINE)
    verbs = [verb for case in cases for verb in case.split(" | ")]
    assert len(calls) >= 5 and {"test", "lab", "browse", "export"} <= set(verbs)
    for words in calls:
        if words and words[0] in verbs:  # these have command lines of their own
            continue
        parsed = cli._parser().parse_args(words)
        assert not parsed.only or plan.matching(plan.read(), parsed.only)


def test_the_notebooks_that_take_other_facts_are_named():
    whole = plan.read()
    takes = lambda name: {step.notebook for step in whole.steps if name in step.accepts}
    for page in (" ".join(YOUR_OWN.split()), GUIDE):
        (facts_said, graph_said) = re.search(r"`data=`([^.;]+); ([^.;]+)\s`graph=`", page).groups()
        for said, parameter in ((facts_said, "data"), (graph_said, "graph")):
            assert plan.matching(whole, re.findall(r"`([\w/]+)`", said)) == takes(parameter)


def test_the_models_that_stay_beside_own_ones_are_named():
    """With ``--models`` and the ``--set`` of your_own.md, a default run uses other models only by the parameters named there."""
    whole = plan.read()
    said = re.search(r"`--models` .*?`--set ([^`]+)`(.*?)\.\s", YOUR_OWN, re.DOTALL)
    given = {"models": ["mine"]} | cli._assignments(said[1].split(), "--set")
    settings = plan.settings(whole, whole.steps, "atlas", given).values()
    asked = [(name, values.get(name)) for values in settings for name in preflight.MODEL_PARAMETERS]
    left = {name for name, models in asked if models not in (None, [], ["mine"])}
    assert left == set(re.findall(r"`(\w+)`", said[2])) == {"judge", "masked", "model_name"}


def test_the_folder_of_a_runs_products_is_printed():
    for text in (YOUR_OWN, cli._parser().format_help()):
        assert re.search(r"PROBELIB_OUT=\S+ \./run_all\.sh", text)


def test_linked_files_exist():
    for folder, page in ((ROOT, README), (NOTEBOOKS, YOUR_OWN), (NOTEBOOKS / "exercises", TEACH)):
        for target in re.findall(r"\]\(([^)#]+)\)", page):
            assert target.startswith("http") or (folder / target).exists(), target
    for name in re.findall(r"^(probelib/\w+/|notebooks/|figures/)", README, re.MULTILINE):
        assert (ROOT / name).is_dir()


def test_what_was_found_is_what_the_committed_figures_say():
    assert index.with_findings(README) == README, "the figures have changed: run `python -m probelib.overview`"


def test_the_index_is_the_plan():
    """``python -m probelib.overview`` would write what stands there; all that it names is there, every artifact once."""
    text = (NOTEBOOKS / "README.md").read_text(encoding="utf-8")
    assert text == index.page(), "the plan has changed: run `python -m probelib.overview`"
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        assert target.startswith("https://") or (NOTEBOOKS / target).exists(), target
    rows = text.split("## By figure and table")[1].count("\n| ") - 1
    assert rows == sum(len(step.makes) for step in plan.read().steps)


def test_one_address_for_every_badge_and_clone():
    """Whoever publishes the kit changes one line of pyproject.toml; this test then names the files that still say otherwise."""
    pages = [ROOT / "README.md", NOTEBOOKS / "README.md", NOTEBOOKS / "00_tour.ipynb", NOTEBOOKS / "explore.ipynb"]
    name = index.repository().removeprefix("https://github.com/")
    for page in pages:
        found = re.findall(r"(?:/v2/gh|/github|github\.com)/([\w.-]+/[\w.-]+)", page.read_text(encoding="utf-8"))
        assert set(found) <= {name}, f"{page}: write {name} in the place of {set(found) - {name}}"
    badge = index.badges()["binder"] in (NOTEBOOKS / "README.md").read_text(encoding="utf-8")
    assert badge == index.has_owner(index.repository())


def test_binder_and_colab_find_the_kit():
    """Binder installs what environment.yml says; the cell for Colab does nothing anywhere else."""
    import nbformat
    import yaml

    wanted = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]
    assert {"pip": ["-c constraints.txt", "-e .[all]"]} in wanted and (ROOT / "constraints.txt").exists()
    for name in index.ON_COLAB:
        text = (NOTEBOOKS / f"{name}.ipynb").read_text(encoding="utf-8")
        changed = "the address has changed: run `python -m probelib.overview`"
        assert text == index.with_colab_cell(text, index.repository()), changed
        assert ("COLAB_RELEASE_TAG" in text) == index.has_owner(index.repository())
        published = index.with_colab_cell(text, "https://github.com/someone/probelib")
        assert published == index.with_colab_cell(published, "https://github.com/someone/probelib")
        notebook = nbformat.reads(published, as_version=4)
        nbformat.validate(notebook)
        (cell,) = [c.source for c in notebook.cells if "COLAB_RELEASE_TAG" in c.source]
        assert "https://github.com/someone/probelib" in cell and "COLAB_RELEASE_TAG" not in os.environ
        before = list(sys.path)
        exec(cell, {})
        assert sys.path == before


@pytest.mark.whole
def test_the_recipes_are_followed_word_for_word(tmp_path):
    """CONTRIBUTING.md in a copy of the checkout: files are written, code and commands are run, in their order."""
    here = tmp_path / "checkout"
    left_out = (".git", ".venv", "runs", "figures", "__pycache__", ".*_cache", ".hypothesis", "*.egg-info")
    shutil.copytree(ROOT, here, ignore=shutil.ignore_patterns(*left_out))
    environment = os.environ | {"PYTHONPATH": str(here), "PROBELIB_OUT": str(here), "VIRTUAL_ENV": sys.prefix}
    environment["PATH"] = f"{os.path.dirname(sys.executable)}{os.pathsep}{environment['PATH']}"
    said = ""
    for language, body in re.findall(r"```(\w+)\n(.*?)```", GUIDE, re.DOTALL):
        if path := re.match(r"# ([\w/]+\.py)\n", body):
            (here / path[1]).write_text(body, encoding="utf-8")
        elif language == "csv":
            name = "mine.templates.csv" if body.startswith("relation,template") else "mine.csv"
            (here / name).write_text(body, encoding="utf-8")
        else:
            command = [sys.executable, "-c", body] if language == "python" else ["bash", "-e", "-c", body]
            done = subprocess.run(command, cwd=here, env=environment, capture_output=True, text=True)
            assert done.returncode == 0, f"{body}\n{done.stdout}{done.stderr}"
            said += done.stdout
    shown = ("1 passed", "capital of Arrakis", r"Which house rules Ix\?", r"tree -\d", r"\nEntropy +-\d")
    made = (r"ok +monitor/sec5_results", r"ok +beyond/mine")
    for part in (*shown, *made, "7 passed"):  # the notebook's six, and the index
        assert re.search(part, said), part
    assert "beyond/mine" in (here / "notebooks" / "README.md").read_text()
    assert (here / "figures" / "smoke" / "beyond" / "mine.csv").exists()
