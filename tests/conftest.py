"""What several tests need."""

import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
import yaml

from probelib.paths import ROOT

DATA = Path(
    os.environ.get("PROBELIB_TEST_DATA", ROOT.parent / "shared" / "data")
)  # real data, never part of the project


def pytest_configure(config):
    """The suite checks exact numbers, so it runs on the CPU wherever it runs; ``-m gpu`` runs the tests that want a GPU."""
    if config.getoption("markexpr") != "gpu":
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
    # the last bits of a product depend on the number of threads on some processors (AMD's): here all processes take one
    os.environ["MKL_NUM_THREADS"] = "1"


PROFILE = 'profile = "smoke"  # str: smoke, atlas, small or paper'


@pytest.fixture
def make_plan(tmp_path):
    """A function that writes a plan and its notebooks, {name: code cells, the first one tagged `parameters`}."""

    def make(notebooks: dict[str, list[str]], steps: list[dict], profiles: dict | None = None):
        folder = tmp_path / "notebooks"
        for name, sources in notebooks.items():
            cells = [nbformat.v4.new_code_cell(source) for source in sources]
            cells[0].metadata["tags"] = ["parameters"]
            path = folder / f"{name}.ipynb"
            path.parent.mkdir(parents=True, exist_ok=True)
            nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
        plan = folder / "plan.yaml"
        plan.write_text(yaml.safe_dump({"profiles": profiles or {"smoke": {}, "atlas": {}}, "steps": steps}))
        return plan

    return make


@pytest.fixture
def fktc():
    """The folder of the real FKTC files, where they lie beside the checkout."""
    if not (DATA / "fktc").is_dir():
        pytest.skip(f"the real FKTC files are not in {DATA / 'fktc'} (set PROBELIB_TEST_DATA)")
    return DATA / "fktc"


def start(out: Path, *flags: str) -> subprocess.Popen:
    """The smoke profile in a process of its own, products below ``out``."""
    environment = os.environ | {"PROBELIB_OUT": str(out), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "probelib.run", "--profile", "smoke", *flags]
    return subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def run(out: Path, *flags: str) -> str:
    """What a whole run says; it must succeed."""
    process = start(out, *flags)
    said, _ = process.communicate(timeout=900)
    assert process.returncode == 0, said
    return said


@pytest.fixture(scope="session")
def smoke(tmp_path_factory) -> tuple[Path, str]:
    """The folder of one undisturbed smoke run, and what it said."""
    out = tmp_path_factory.mktemp("smoke")
    return out, run(out)
