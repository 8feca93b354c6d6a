"""What several tests need."""

import os
import subprocess
import sys
from functools import partial
from pathlib import Path

# as in probelib.runner: jsonschema would build a grammar, seconds of work
sys.modules["rfc3987_syntax"] = None

import nbformat  # noqa: E402
import pytest  # noqa: E402
import yaml  # noqa: E402

from probelib import paths  # noqa: E402
from probelib.lm.remote import transport  # noqa: E402
from probelib.paths import ROOT  # noqa: E402

# real data, never part of the project
DATA = Path(os.environ.get("PROBELIB_TEST_DATA", ROOT.parent / "shared" / "data"))


# The families whose exactness --fast checks; settings that multiply the families take only these of
# them without --slow.
FAMILIES = ("gpt_neox", "llama_grouped", "gemma2_window", "falcon_alibi", "bloom", "t5")


def examples(n: int) -> int:
    """How many random inputs a fuzzing test takes: ``n`` with --slow, otherwise at most 40."""
    return n if os.environ["PROBELIB_TEST_TIER"] == "slow" else min(n, 40)


def pytest_addoption(parser):
    """The tiers: ``--fast`` (on every push), nothing, ``--slow`` (every night)."""
    parser.addoption("--fast", action="store_true", help="modules marked fast, six model families")
    parser.addoption("--slow", action="store_true", help="everything: kills, labs, long fuzzing")


def pytest_ignore_collect(collection_path, config):
    """``--fast`` imports only the modules that are marked fast."""
    if config.getoption("--fast") and collection_path.name.startswith("test_"):
        return "pytest.mark.fast" not in collection_path.read_text(encoding="utf-8") or None
    return None


def pytest_xdist_auto_num_workers(config):
    """Whole tiers run in a process per core, at most four (whole files in each, the long ones
    first); named files and tests in one process."""
    return 0 if config.args_source is config.ArgsSource.ARGS else min(4, os.cpu_count())


def _runs(item) -> bool:
    """A test that runs notebooks as a user would."""
    return bool(item.get_closest_marker("whole")) or "smoke_run" in item.fixturenames


def pytest_collection_modifyitems(config, items):
    """Leave out what the chosen tier leaves out; a test that is named on the command line
    (file.py::test) always runs."""
    items.sort(key=lambda item: not _runs(item))
    if config.getoption("--slow") or any("::" in argument for argument in config.args):
        return
    fast = config.getoption("--fast")
    out = lambda item: item.get_closest_marker("slow") or (fast and not _is_fast(item))
    left_out = [item for item in items if out(item)]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in set(left_out)]


def _is_fast(item) -> bool:
    """A test of a fast module that runs no notebook, and of the model families only
    ``FAMILIES``."""
    family = getattr(getattr(item, "callspec", None), "params", {}).get("family", FAMILIES[0])
    return bool(item.get_closest_marker("fast")) and not _runs(item) and family in FAMILIES


def pytest_configure(config):
    """The suite checks exact numbers, so it runs on the CPU wherever it runs; ``-m gpu`` runs the
    tests that want a GPU."""
    os.environ["PROBELIB_TEST_TIER"] = "slow" if config.getoption("--slow") else ""
    if config.getoption("markexpr") != "gpu":
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
    # the last bits of a product depend on the number of threads on some processors (AMD's): here
    # all processes take one
    os.environ["MKL_NUM_THREADS"] = "1"


PROFILE = 'profile = "smoke"  # str: smoke, atlas, small or paper'


def write_plan(folder: Path, notebooks: dict, steps: list[dict], profiles=None) -> Path:
    """Writes a plan and its notebooks, {name: code cells, the first one tagged `parameters`};
    returns the plan's path."""
    for name, sources in notebooks.items():
        cells = [nbformat.v4.new_code_cell(source) for source in sources]
        cells[0].metadata["tags"] = ["parameters"]
        path = folder / f"{name}.ipynb"
        path.parent.mkdir(parents=True, exist_ok=True)
        nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
    plan, profiles = folder / "plan.yaml", profiles or {"smoke": {}, "atlas": {}}
    plan.write_text(yaml.safe_dump({"profiles": profiles, "steps": steps}))
    return plan


@pytest.fixture
def make_plan(tmp_path):
    """``write_plan`` into the test's own folder."""
    return partial(write_plan, tmp_path / "notebooks")


@pytest.fixture(scope="session", autouse=True)
def apart(tmp_path_factory):
    """No scores of the checkout are read, and none are left there. No pauses between the
    repetitions of a request: to learn that a server is not there takes 15 seconds with them."""
    out = tmp_path_factory.mktemp("out")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PROBELIB_OUT", str(out))
        patch.setattr(paths, "RUNS", out / "runs")
        patch.setattr(paths, "CHECKS", out / "checks")
        patch.setattr(transport, "PAUSE", 0.001)
        yield


@pytest.fixture
def fktc() -> Path:
    """The folder of the real FKTC files, where they lie beside the checkout."""
    if not (DATA / "fktc").is_dir():
        pytest.skip(f"the real FKTC files are not in {DATA / 'fktc'} (set PROBELIB_TEST_DATA)")
    return DATA / "fktc"


def start(out: Path, *flags: str) -> subprocess.Popen:
    """The smoke profile in a process of its own, products below ``out``."""
    nowhere = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY"), "http://127.0.0.1:9")  # no downloads
    environment = os.environ | {"PROBELIB_OUT": str(out), "PYTHONPATH": str(ROOT)} | nowhere
    command = [sys.executable, "-m", "probelib.runner", "--profile", "smoke", *flags]
    output = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    return subprocess.Popen(command, cwd=ROOT, env=environment, **output)


def run(out: Path, *flags: str) -> str:
    """What a whole run says; it must succeed."""
    process = start(out, *flags)
    try:
        said, _ = process.communicate(timeout=3600)
    finally:
        process.kill()  # after a timeout; its notebooks end with it
    assert process.returncode == 0, said
    return said


@pytest.fixture(scope="session")
def smoke_run(tmp_path_factory) -> tuple[Path, str]:
    """The folder of one undisturbed smoke run, and what it said."""
    out = tmp_path_factory.mktemp("smoke")
    return out, run(out, "--jobs", "2")
