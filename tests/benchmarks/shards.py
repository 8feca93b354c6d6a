"""What sharding costs, how two workers share, and how long a finished store of a large plan takes to be found finished.

Times are CPU seconds of the processes that do the work (user + system), which a busy machine distorts little. The gain of two
workers is by the clock, so it holds for an idle machine with two cores only.
"""

import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

from probelib import facts, files, paths, store
from probelib.runner import plan, shards, workers
from tests.benchmarks.measuring import row, write_rows

MODELS, RELATIONS, ROWS = 49, 50, 8164  # of the finished store: 20 million rows
SHARED = {"models": ["atlas-neox-2.4m"], "encoder_decoders": [], "n_facts": 50}
RUN = 600  # seconds of a run, of which the cost of sharding is stated as a share
PLAIN = """
import json, sys
from pathlib import Path
from probelib import facts, lm
from probelib.runner import plan
for file in json.loads(sys.argv[1]):
    shard = json.loads(Path(file).read_text())["shard"]
    model = lm.load(shard["model"])
    for name, values in shard["asks"]:
        request = plan.request(name)
        everything = request.facts(values)
        asked = facts.choose(everything, [r for r in shard["relations"] if r in set(everything.relations["relation"])])
        request.score(model, asked, values, Path(sys.argv[2]))
"""
NOTHING = """
import json, sys
from probelib.runner import plan, shards
whole = plan.read()
steps = [step for step in whole.steps if step.notebook == "monitor/sec5_results"]
cut = shards.cut("paper", steps, plan.settings(whole, steps, "paper", json.loads(sys.argv[1])))
assert shards.left(cut) == []
"""


def main() -> None:
    two_shards = facts.load().relations["relation"].tolist()[: 2 * shards.GROUP]
    largest = facts.current(facts.atlas()).facts["relation"].value_counts().index[:RELATIONS].tolist()
    with tempfile.TemporaryDirectory() as folder:
        rows = shared(Path(folder), SHARED | {"relations": two_shards})
    with tempfile.TemporaryDirectory() as folder:
        rows += finished(Path(folder), MODELS, largest)
    write_rows("shards", rows)


def shared(folder: Path, given: dict) -> list[dict]:
    """Rows: the same questions in a plain loop, and as shards with one worker and with two; all single-threaded."""
    os.environ["OMP_NUM_THREADS"] = "1"
    paths.RUNS = folder / "plain"
    listed = json.dumps([str(file) for file in _cut("smoke", given)])
    loop = _spent(lambda: subprocess.run([sys.executable, "-c", PLAIN, listed, folder / "alone"], check=True))
    spent = {}
    for n in (1, 2):
        paths.RUNS = folder / f"runs{n}"
        cut = _cut("smoke", given)
        spent[n] = _spent(lambda cut=cut, n=n: workers.score(cut, jobs=n))
        assert shards.left(cut) == []
    more = spent[1]["cpu"] - loop["cpu"]
    return [
        row("a plain loop", loop["cpu"], "CPU seconds", None),
        row(f"{len(cut)} shards, one worker", spent[1]["cpu"], "CPU seconds", None),
        row("more than the loop, share of 10 minutes", 100 * more / RUN, "%", 3, less=True),
        row("one worker", spent[1]["clock"], "s by the clock", None),
        row("two workers", spent[2]["clock"], "s by the clock", None),
        row("gain of two workers", spent[1]["clock"] / spent[2]["clock"], "x", 1.6),
    ]


def finished(folder: Path, n_models: int, relations: list[str]) -> list[dict]:
    """Rows: how long a finished store takes to be found finished, and a lookup in it."""
    paths.RUNS = folder / "runs"
    names = [f"lab/model-{number}-{number + 1}b" for number in range(n_models)]
    given = {"models": names, "encoder_decoders": [], "relations": relations, "n_facts": "all"}
    parts = fill(_cut("paper", given), paths.RUNS / "paper" / "scores")
    command = [sys.executable, "-c", NOTHING, json.dumps(given)]
    spent = _spent(lambda: subprocess.run(command, env=os.environ | {"PROBELIB_OUT": str(folder)}, check=True))
    only = _copy(parts[0], folder / "one" / parts[0].name)
    million = f"{len(parts) * ROWS / 1e6:.3g} million rows"
    return [
        row(f"nothing to do in {len(parts):,} parts, {million}", spent["cpu"], "CPU seconds", 20, less=True),
        row(f"a lookup in {million}", lookup(parts[len(parts) // 2]), "ms of CPU time", None),
        row("a lookup in a store of one part", lookup(only), "ms of CPU time", None),
    ]


def fill(cut: list[Path], scores: Path) -> list[Path]:
    """Write a store with all parts of these shards and records that say so; return the parts, one per model and relation."""
    generator, first, parts = np.random.default_rng(0), {}, []
    for file in cut:
        record = shards.read(file)
        shard = record["shard"]
        own = [scores / files.slug(shard["model"]) / f"{r}-logprobs-{0:016x}.parquet" for r in shard["relations"]]
        for relation, path in zip(shard["relations"], own, strict=True):
            if relation not in first:
                about = {"cost": {"seconds": 1.0}, "model": {"model": "lab"}}
                store.write(store.Part(path, relation), _rows(relation, generator), about)
                first[relation] = path
            elif path != first[relation]:
                _copy(first[relation], path)
        done = {"state": "done", "asked": record["facts"], "seconds": 60.0, "device": "cpu"}
        shards.write(file, record | done | {"parts": [str(path.relative_to(scores)) for path in own]})
        parts += own
    return sorted(parts)


def lookup(path: Path, rounds: int = 20) -> float:
    """Median CPU milliseconds of reading a part."""
    took = []
    for _ in range(rounds):
        started = time.process_time()
        store.read([store.Part(path, "")])
        took.append(1000 * (time.process_time() - started))
    return float(np.median(took))


def _cut(profile: str, given: dict) -> list[Path]:
    """The shards of MONITOR's notebook of results."""
    whole = plan.read()
    steps = [step for step in whole.steps if step.notebook == "monitor/sec5_results"]
    return shards.cut(profile, steps, plan.settings(whole, steps, profile, given))


def _spent(work: Callable) -> dict[str, float]:
    """``cpu`` seconds of the child processes and ``clock`` seconds of a call."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    work()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"cpu": cpu, "clock": time.monotonic() - started}


def _copy(part: Path, to: Path) -> Path:
    """Copy a part with its record."""
    to.parent.mkdir(parents=True, exist_ok=True)
    for suffix in (".parquet", ".json"):
        shutil.copyfile(part.with_suffix(suffix), to.with_suffix(suffix))
    return to


def _rows(relation: str, generator: np.random.Generator) -> pd.DataFrame:
    """Rows like those of scores, with numbers that do not compress."""
    n_tokens = generator.integers(1, 4, ROWS)
    token_logprobs = [generator.normal(-3, 1, n).astype(np.float32) for n in n_tokens]
    return pd.DataFrame(
        {
            "model": "lab",
            "relation": relation,
            "fact": [f"{relation}:{i // 13}" for i in range(ROWS)],
            "prompt": [f"{relation}:{i}" for i in range(ROWS)],
            "candidate": "x",
            "label": [f"label {i % 1000}" for i in range(ROWS)],
            "n_tokens": n_tokens,
            "logprob": [float(each.sum()) for each in token_logprobs],
            "token_logprobs": token_logprobs,
            "greedy": generator.random(ROWS) < 0.3,
            "eos_logprob": generator.normal(-3, 1, ROWS).astype(np.float32),
            "greedy_text": [f" text {i % 777}" for i in range(ROWS)],
            "greedy_done": True,
            "note": "",
        }
    )
