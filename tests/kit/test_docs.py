"""What the README and the pages that it links claim is run or counted here."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from probelib import prompts, report
from probelib.paths import NOTEBOOKS, ROOT
from probelib.runner import cli, plan

pytestmark = pytest.mark.fast

README = (ROOT / "README.md").read_text(encoding="utf-8")
YOUR_OWN = (NOTEBOOKS / "your_own.md").read_text(encoding="utf-8")
TEACH = (NOTEBOOKS / "exercises" / "README.md").read_text(encoding="utf-8")
DOCS = "\n".join((README, YOUR_OWN, TEACH))
GUIDE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(\w*)\n(.*?)```", DOCS, re.DOTALL)


@pytest.mark.whole
def test_the_python_example_runs(tmp_path, monkeypatch, capsys):
    """Its question is scored, MONITOR printed, and the scores lie where the script was started."""
    monkeypatch.chdir(tmp_path)
    (code,) = [body for language, body in BLOCKS if language == "python"]
    names = {}
    exec(code, names)
    assert len(names["rows"]) == 2 and (names["rows"]["logprob"] < 0).all()
    scores = names["scores"]["atlas-neox-2.4m"]
    assert scores["prompt"].is_unique
    assert len(scores) == len(prompts.with_contexts(names["languages"]))
    assert names["measured"].models["MONITOR"].between(0, 1).all()
    assert "atlas-neox-2.4m" in capsys.readouterr().out
    (part,) = tmp_path.glob("runs/mine/scores/atlas-neox-2.4m/P37-logprobs-*.parquet")
    assert len(pd.read_parquet(part)) == len(scores)


def test_the_commands_are_known():
    """Every ``./run_all.sh`` line parses; the selections in it select something."""
    blocks = [body for language, body in BLOCKS if language == "bash"]
    lines = [line.split("#")[0] for body in blocks for line in body.split("\n")]
    lines += re.findall(r"`(\./run_all\.sh[^`]*)`", DOCS)
    calls = [shlex.split(line)[1:] for line in lines if "run_all.sh" in line]
    script = (ROOT / "run_all.sh").read_text(encoding="utf-8")
    verbs = " | ".join(re.findall(r"^    ([\w| ]+)\) ", script, re.MULTILINE)).split(" | ")
    assert len(calls) >= 5 and {"test", "lab", "course", "verify"} <= set(verbs)
    for words in calls:
        if words and words[0] in verbs:  # these have command lines of their own
            continue
        parsed = cli._parser().parse_args(words)
        assert not parsed.only or plan.matching(plan.read(), parsed.only)


def test_the_findings_of_the_readme_are_the_committed_ones():
    found = README.split("<!-- found -->")[1].split("<!-- /found -->")[0]
    lines = re.findall(r"^- (.+) \[[^\]]+\]\((figures/[^)]+)\)$", found, re.MULTILINE)
    assert len(lines) >= 3
    for said, link in lines:
        page, anchor = link.split("#")
        artifact = f"{Path(page).parent.name}/{anchor}"
        stored = pd.read_csv(ROOT / Path(page).parent / f"{anchor}.claims.csv")
        assert said in report.claims.sentences(stored, artifact), link


PAGES = [
    *("README", "CONTRIBUTING", "notebooks/README", "notebooks/your_own"),
    "notebooks/exercises/README",
]


@pytest.mark.parametrize("page", [f"{name}.md" for name in PAGES])
def test_linked_files_exist(page):
    text = re.sub(r"```.*?```", "", (ROOT / page).read_text(encoding="utf-8"), flags=re.S)
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", text):
        assert target.startswith("http") or ((ROOT / page).parent / target).exists(), target


@pytest.mark.whole
def test_the_recipes_are_followed_word_for_word(tmp_path):
    """CONTRIBUTING.md in a copy of the checkout: files are written, code and commands are run."""
    here = tmp_path / "checkout"
    left_out = (".[ghv]*", "runs", "figures", "__pycache__", ".*_cache", "*.egg-info")
    shutil.copytree(ROOT, here, ignore=shutil.ignore_patterns(*left_out))
    own = {"PYTHONPATH": str(here), "PROBELIB_OUT": str(here), "VIRTUAL_ENV": sys.prefix}
    own["PATH"] = f"{os.path.dirname(sys.executable)}{os.pathsep}{os.environ['PATH']}"
    said = ""
    for language, body in re.findall(r"```(\w+)\n(.*?)```", GUIDE, re.DOTALL):
        if path := re.match(r"# ([\w/]+\.py)\n", body):
            (here / path[1]).write_text(body, encoding="utf-8")
        elif language == "csv":
            name = "mine.templates.csv" if body.startswith("relation,template") else "mine.csv"
            (here / name).write_text(body, encoding="utf-8")
        else:
            run = [sys.executable, "-c"] if language == "python" else ["bash", "-e", "-c"]
            options = {"cwd": here, "env": os.environ | own, "capture_output": True, "text": True}
            done = subprocess.run([*run, body], **options)
            assert done.returncode == 0, f"{body}\n{done.stdout}{done.stderr}"
            said += done.stdout
    shown = ("1 passed", "capital of Arrakis", r"Which house rules Ix\?", r"tree -\d")
    for part in (*shown, r"\nEntropy +-\d", r"ok +monitor/sec5_results", r"ok +beyond/mine"):
        assert re.search(part, said), part
