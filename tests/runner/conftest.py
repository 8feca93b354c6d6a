"""Shards of two workers, and what one process makes of them."""

from pathlib import Path

import pytest

from probelib import facts, paths
from probelib.runner import plan, shards

MODEL = "atlas-neox-0.15m"
PANEL = facts.load().relations["relation"].tolist()[:20]  # two shards


def set_out(patch: pytest.MonkeyPatch, out: Path) -> Path:
    """Move all products to a folder."""
    for key, path in (("OUT", out), ("RUNS", out / "runs"), ("FIGURES", out / "figures")):
        patch.setattr(paths, key, path)
    return out


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A function that moves all products to another folder below the test's own."""
    return lambda name: set_out(monkeypatch, tmp_path / name)


def cut(**given) -> list[Path]:
    """Two small shards: MONITOR's questions about one fact of each of 20 relations."""
    whole = plan.read()
    steps = [step for step in whole.steps if step.notebook == "monitor/sec5_results"]
    given = {"models": [MODEL], "encoder_decoders": [], "n_facts": 1, "relations": PANEL} | given
    return shards.cut("smoke", steps, plan.settings(whole, steps, "smoke", given))


def parts(out: Path) -> dict[str, bytes]:
    return {str(p.relative_to(out)): p.read_bytes() for p in sorted(out.rglob("scores/**/*.parquet"))}


def process(files: list[Path]) -> None:
    """Process shards in this process, one after the other."""
    for file in files:
        scores = file.parent.parent / "scores"
        shards.finish(file, shards.process(shards.read(file)["shard"], scores, file.with_suffix(".log")))


@pytest.fixture(scope="session")
def one_process(tmp_path_factory):
    """The store that one process makes."""
    with pytest.MonkeyPatch.context() as patch:
        out = set_out(patch, tmp_path_factory.mktemp("serial"))
        process(cut())
        return parts(out)
