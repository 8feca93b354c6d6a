"""What sharding costs, how two workers share, and how long a finished store of a large plan takes to be found finished.

Times are CPU seconds of the processes that do the work (user + system), which a busy machine distorts little, and seconds of
the clock, which mean something on an idle one only.
"""

import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

from probelib import files, paths, store
from probelib.runner import plan, shards, workers

MODELS, RELATIONS, ROWS = 49, 50, 8164  # 20 million rows
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


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        _shared(Path(folder))
    with tempfile.TemporaryDirectory() as folder:
        _finished(Path(folder))


def _cut(notebook: str, profile: str, given: dict) -> list[Path]:
    whole = plan.read()
    steps = [step for step in whole.steps if step.notebook == notebook]
    return shards.cut(profile, steps, plan.settings(whole, steps, profile, given))


def _spent(work) -> tuple[float, float]:
    """(CPU seconds of the child processes, seconds of the clock) of a call."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    work()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, time.monotonic() - started


def _shared(folder: Path) -> None:
    """The same questions without shards, with one worker and with two, all single-threaded; and with nothing to do."""
    given = {
        "models": ["atlas-neox-2.4m"],
        "encoder_decoders": [],
        "n_facts": int(os.environ.get("SHARD_FACTS", "100")),
    }
    os.environ["OMP_NUM_THREADS"] = "1"
    paths.RUNS = folder / "plain"
    listed = json.dumps([str(file) for file in _cut("monitor/sec5_results", "smoke", given)])
    alone = _spent(lambda: subprocess.run([sys.executable, "-c", PLAIN, listed, folder / "alone"], check=True))
    spent = {}
    for n in (1, 2):
        paths.RUNS = folder / f"runs{n}"
        cut = _cut("monitor/sec5_results", "smoke", given)
        spent[n] = _spent(lambda cut=cut, n=n: workers.score(cut, jobs=n))
    print(f"without shards        {alone[0]:8.1f} CPU s {alone[1]:8.1f} s")
    for n, (cpu, clock) in spent.items():
        print(f"{n} worker{'s' * (n > 1):19} {cpu:8.1f} CPU s {clock:8.1f} s")
    more = spent[1][0] - alone[0]
    print(
        f"sharding adds {more:.1f} CPU s to {alone[0]:.1f} for {len(cut)} shards: of a run of 10 minutes {more / 600:.1%}"
    )
    print(
        f"2 workers against 1: {spent[1][1] / spent[2][1]:.2f} x by the clock; CPU spent {spent[2][0] / spent[1][0]:.2f} x"
    )


def _finished(folder: Path) -> None:
    """A finished store of 49 models and 50 relations, 20 million rows: how long it takes to see that nothing is to be done."""
    paths.RUNS = folder / "runs"
    names = [f"lab/model-{number}-{number + 1}b" for number in range(MODELS)]
    from probelib import facts

    every = facts.current(facts.atlas()).facts["relation"].value_counts().index[:RELATIONS].tolist()
    given = {"models": names, "encoder_decoders": [], "relations": every, "n_facts": "all"}
    cut = _cut("monitor/sec5_results", "paper", given)
    scores = paths.RUNS / "paper" / "scores"
    generator = np.random.default_rng(0)
    model = {}
    for file in cut:
        record = json.loads(file.read_text())
        record |= {"state": "done", "asked": record["facts"], "seconds": 60.0, "device": "cpu", "parts": []}
        for relation in record["shard"]["relations"]:
            part = store.Part(
                scores / files.slug(record["shard"]["model"]) / f"{relation}-logprobs-{0:016x}.parquet", relation
            )
            record["parts"].append(str(part.path.relative_to(scores)))
            if relation not in model:
                store.write(part, _rows(relation, generator), {"cost": {"seconds": 1.0}, "model": {"model": "lab"}})
                model[relation] = part.path
            elif part.path != model[relation]:
                part.path.parent.mkdir(parents=True, exist_ok=True)
                for suffix in (".parquet", ".json"):
                    shutil.copyfile(model[relation].with_suffix(suffix), part.path.with_suffix(suffix))
        shards.write(file, record)
    parts = sorted(scores.rglob("*.parquet"))
    size = sum(path.stat().st_size for path in parts) / 2**20
    print(f"store: {len(parts)} parts, {len(parts) * ROWS / 1e6:.1f} million rows, {size:,.0f} MiB, {len(cut)} shards")

    cpu, clock = time.process_time(), time.monotonic()
    again = _cut("monitor/sec5_results", "paper", given)
    assert again == cut and shards.left(again) == []
    print(
        f"nothing to do: {time.process_time() - cpu:.1f} CPU s, {time.monotonic() - clock:.1f} s, imports and facts read before"
    )
    command = [sys.executable, "-c", NOTHING, json.dumps(given)]
    spent = _spent(lambda: subprocess.run(command, env=os.environ | {"PROBELIB_OUT": str(folder)}, check=True))
    print(f"the same in a process of its own: {spent[0]:.1f} CPU s, {spent[1]:.1f} s")

    alone = folder / "one" / parts[0].name
    alone.parent.mkdir()
    for suffix in (".parquet", ".json"):
        shutil.copyfile(parts[0].with_suffix(suffix), alone.with_suffix(suffix))
    for where, path in (("one part", alone), ("20 million rows", parts[len(parts) // 2])):
        found = []
        for _ in range(20):
            started = time.process_time()
            store.read([store.Part(path, "")])
            found.append(time.process_time() - started)
        print(f"a lookup ({ROWS} rows) in a store of {where}: {np.median(found) * 1000:.1f} CPU ms")


NOTHING = """
import json, sys
from probelib.runner import plan, shards
whole = plan.read()
steps = [step for step in whole.steps if step.notebook == "monitor/sec5_results"]
cut = shards.cut("paper", steps, plan.settings(whole, steps, "paper", json.loads(sys.argv[1])))
assert shards.left(cut) == []
"""


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
