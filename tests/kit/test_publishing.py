"""What is needed to publish the kit: workflows that name what exists, one version, a wheel that
works without a clone."""

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import zipfile

import pytest
import yaml

from probelib.paths import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_version_and_date_are_the_same_everywhere():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    newest = re.search(r"^## (\S+)", changes, re.MULTILINE)[1]
    assert cited["version"] == PROJECT["version"] == newest


def solutions() -> list[str]:
    """The longest line of every solution and answer of the labs, as a notebook file writes it."""
    secret = []
    for path in (ROOT / "notebooks" / "exercises").glob("*.ipynb"):
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            if {"solution", "answer"} & set(cell["metadata"].get("tags", [])):
                longest = max(cell["source"], key=len).strip()
                secret.append(json.dumps(longest, ensure_ascii=False)[1:-1])
    assert len(secret) > 40
    return secret


def packed(wheel) -> list[tuple[str, str]]:
    """(name, text) of every text file in a wheel, but for modules: the library computes some of the
    same things itself."""
    with zipfile.ZipFile(wheel) as archive:
        kinds = (".ipynb", ".md", ".yaml", ".json", ".txt")
        texts = [name for name in archive.namelist() if name.endswith(kinds)]
        return [(name, archive.read(name).decode("utf-8", errors="replace")) for name in texts]


USED = """from probelib import facts, lm, paths, report
from probelib.course.__main__ import main
assert len(facts.load().facts) > 400 and report.claims.artifacts()
from probelib.course import lab1, lab2, lab3, lab4, lab5, lab6, lab7, lab8
lab1.answer_probability(lambda logprobs: 2.718281828459045 ** sum(logprobs))
assert main(['--out', 'course', '--student-only', '--only', 'lab1']) == 1
print(paths.PACKAGE, lm.load('atlas-neox-0.15m').logprobs(['Paris is'], [[' here']])['logprob'][0])
"""


@pytest.mark.slow
def test_a_wheel_needs_no_clone(tmp_path):
    """Built from the tracked files, installed into an environment of its own, used from elsewhere:
    facts, models, a lab that was handed out. It holds no solutions, and the course command says
    that they are in a clone."""
    source, clean = tmp_path / "source", tmp_path / "clean"
    tracked = subprocess.check_output(["git", "ls-files"], cwd=ROOT, text=True).split()
    parts = ("probelib/", "notebooks/", "pyproject", "README", "LICENSE")
    for path in (p for p in tracked if p.startswith(parts) and (ROOT / p).is_file()):
        (source / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, source / path)
    pip = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation"]
    subprocess.run([*pip, "-w", tmp_path, source], check=True)
    files = packed(*tmp_path.glob("*.whl"))
    assert not [name for name, text in files for part in solutions() if part in text]
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", clean], check=True)
    python, (wheel,) = clean / "bin" / "python", tmp_path.glob("*.whl")
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "-q", "--no-deps", wheel]
    own = {n: v for n, v in os.environ.items() if n not in ("PYTHONPATH", "PROBELIB_OUT")}
    subprocess.run(pip, check=True, env=own)  # else pip finds this checkout, and installs nothing
    (site,) = clean.glob("lib/python*/site-packages")
    # of this environment, but not its probelib
    (site / "dependencies.pth").write_text(sysconfig.get_paths()["purelib"])
    shutil.rmtree(source)
    pipes = {"cwd": tmp_path, "env": own, "capture_output": True, "text": True}
    done = subprocess.run([python, "-P", "-c", USED], **pipes)
    assert str(site) in done.stdout and "✓" in done.stdout, done.stderr
    assert "in a clone of the kit only" in done.stderr and not (tmp_path / "course").exists()
