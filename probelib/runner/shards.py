"""Shards: the scoring of the notebooks, divided into pieces that any number of processes and machines can process.

A shard is one model and a group of relations, with everything that workers score for the plan's notebooks (``scores``). It
writes finished parts to the store, so a shard that starts again continues from them. Notebooks never run on workers: once all
shards are done, they run here and find their scores. ``workers`` hands the shards to Dask. The number of workers does not change
the store: it is equal to the last bit if each worker uses the same number of threads (on some AMD processors rounding depends on
that number).

    runs/<profile>/shards/<model>-<relation>-<key>.json   the shard; its outcome once it is done or has failed
    runs/<profile>/shards/<model>-<relation>-<key>.log    its output
"""

import contextlib
import hashlib
import json
import os
import socket
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from probelib import files, parameters, paths
from probelib.errors import ProbeError
from probelib.lm.internals.memory import announce, needs_several_gpus
from probelib.lm.loading import load
from probelib.runner import plan, preflight, steps, uptodate
from probelib.runner.plan import Step

if TYPE_CHECKING:
    from probelib.facts.model import Facts

# relations per shard: enough that loading the model costs little, few enough that many workers share the work
GROUP = 10


def cut(profile: str, steps: list[Step], settings: dict[str, dict]) -> list[Path]:
    """Write the shards of some notebooks as files, model by model, and return them. An existing file is kept."""
    wanted: dict[tuple, dict[str, tuple[str, dict]]] = {}  # (model, options of loading) -> its distinct requests
    for step in steps:
        values = parameters.defaults(step.path) | settings[step.notebook]
        for name in step.scores:
            used = {key: values[key] for key in plan.request(name).uses if values.get(key) is not None}
            data = used.get("data", "atlas")
            if data != "atlas" and not data.startswith("hub:") and "folder" not in used:
                continue  # the folder of the data is not given yet: the notebook's error names it
            for model in plan.request(name).models(values):
                dtype = values.get("dtype") or values.get("settings", {}).get("dtype", "auto")
                loaded = (model, values.get("quantize"), dtype)
                wanted.setdefault(loaded, {})[json.dumps([name, used])] = (name, used)
    requests = {key: request for asks in wanted.values() for key, request in asks.items()}  # models share most of them
    sizes = {
        key: plan.request(name).facts(values).facts["relation"].value_counts(sort=False).to_dict()
        for key, (name, values) in requests.items()
    }
    library, found = uptodate.library(), []
    for (model, quantize, dtype), asks in wanted.items():
        relations = list(dict.fromkeys(relation for key in asks for relation in sizes[key]))
        for i in range(0, len(relations), GROUP):
            group = relations[i : i + GROUP]
            shard = {"model": model, "quantize": quantize, "dtype": dtype, "relations": group, "library": library}
            shard["asks"] = [list(asks[key]) for key in asks if set(group) & set(sizes[key])]
            pointed = [model, *(value for _, values in shard["asks"] for value in values.values())]
            shard |= {"outside": outside} if (outside := uptodate.outside(pointed)) else {}
            n = sum(sizes[key].get(relation, 0) for key in asks for relation in group)
            key = hashlib.sha256(json.dumps(shard, sort_keys=True).encode()).hexdigest()[:10]
            file = paths.RUNS / profile / "shards" / f"{files.slug(model)}-{files.slug(group[0])}-{key}.json"
            if read(file).get("shard") != shard:  # missing or damaged
                write(file, {"shard": shard, "facts": n})
            found.append(file)
    return found


def left(shards: list[Path]) -> list[Path]:
    """The unfinished shards: never processed, failed, or with a part that is now missing or damaged."""
    from probelib.store import Part

    def whole(file: Path) -> bool:
        record = read(file)
        scores = file.parent.parent / "scores"
        return record.get("state") == "done" and all(Part(scores / part, "").finished() for part in record["parts"])

    return [file for file in shards if not whole(file)]


def process(shard: dict, scores: Path, log: Path) -> dict:
    """Score all requests of a shard, relation by relation; return its outcome. Called on workers, one shard at a time.

    An exception is an outcome, too: the reason in one line, with the traceback in the ``log``, which gets all output.
    """
    started = time.monotonic()
    with _log(log):
        os.write(2, f"{time.strftime('%F %T')} on {socket.gethostname()}, process {os.getpid()}\n".encode())
        try:
            outcome = {"state": "done", **_score(shard, scores)}
        except Exception as error:
            os.write(2, traceback.format_exc().encode())
            reason = str(error) if isinstance(error, ProbeError) else f"{type(error).__name__}: {error}; see {log}"
            outcome = {"state": "failed", "reason": " ".join(reason.split())}
    return outcome | {"seconds": round(time.monotonic() - started, 2)}


def _score(shard: dict, scores: Path) -> dict:
    from probelib import facts, store

    model = _model(shard["model"], shard["quantize"], shard["dtype"])
    asked = 0
    with store.record_parts() as parts:
        for name, values in shard["asks"]:
            request = plan.request(name)
            everything = _facts(name, json.dumps(values))
            for relation in (r for r in shard["relations"] if r in set(everything.relations["relation"])):
                one = facts.choose(everything, [relation])
                request.score(model, one, values, scores)
                asked += len(one.facts)
    own = sorted({str(part.relative_to(scores)) for part in parts})
    return {"asked": asked, "device": model.device.type, "parts": own}


@lru_cache(maxsize=8)
def _facts(name: str, values: str) -> "Facts":
    """All facts of a request, cached: a process scores many shards of the same facts. ``values``: as JSON."""
    return plan.request(name).facts(json.loads(values))


@lru_cache(maxsize=1)
def _model(name: str, quantize: str | None, dtype: str):
    """The model of the current shards, over all GPUs if it needs several. Its memory is printed before it is loaded."""
    model = load(name, quantize=quantize, dtype=dtype)
    if model.device.type == "cpu" and steps.gpus():
        raise ProbeError(
            "this machine has a GPU that torch cannot use: its driver is too old for this torch, or this is a torch for CPUs. "
            "Install a torch for this GPU, or set CUDA_VISIBLE_DEVICES= to use the CPU"
        )
    if needs_several_gpus(model):
        model = load(name, quantize=quantize, dtype=dtype, device_map="auto")
    print(announce(model), flush=True)
    return model


def finish(file: Path, outcome: dict) -> None:
    """Write the outcome of a shard into its file and print it in one line."""
    record = {key: value for key, value in read(file).items() if key in ("shard", "facts")} | outcome
    write(file, record)
    print(_line(record), flush=True)


def status(shards: list[Path]) -> str:
    """Progress, from the shards' files: one line per model, the failed shards with their reasons, and the remaining time."""
    rows: dict[str, Counter] = {}
    todo = done = seconds = 0.0
    failed = []
    for record in map(read, shards):
        model, state = record["shard"]["model"], record.get("state", "waiting")
        row = rows.setdefault(model, Counter())
        row[state] += 1
        weight = preflight.parameters(model) or 1e9  # the cost of a fact is proportional to the parameters
        if state == "done":
            row.update({"asked": record["asked"], "seconds": record["seconds"]})
            done, seconds = done + weight * record["asked"], seconds + record["seconds"]
        else:
            todo += weight * record["facts"]
        failed += [_line(record)] if state == "failed" else []
    lines = [
        f"{model}: {row['done']} of {row['done'] + row['failed'] + row['waiting']} done"
        + (f", {row['failed']} failed" if row["failed"] else "")
        + (f", {row['asked'] / row['seconds']:.1f} facts/s per worker" if row["seconds"] else "")
        for model, row in rows.items()
    ]
    total = sum(rows.values(), Counter())
    counts = ", ".join(f"{total[s]} {s}" for s in ("done", "failed", "waiting") if total[s]) or "none"
    remaining = f"; about {todo / done * seconds / 60:.1f} min of one worker left" if todo and done else ""
    return "\n".join([*lines, *failed, f"{len(shards)} shards: {counts}{remaining}"])


def devices(shards: list[Path]) -> set[str]:
    """Kinds of device that the shards were scored on. They are part of a score's key, so notebooks must run on the same kind."""
    return {record["device"] for record in map(read, shards) if record.get("device")}


def _line(record: dict) -> str:
    """The outcome of a shard in one line."""
    label = "FAILED" if record["state"] == "failed" else "ok"
    took = f"{record['seconds']:.1f} s" if "seconds" in record else ""
    head = f"{label:10} {record['shard']['model']} {', '.join(record['shard']['relations'])} {took}".rstrip()
    return f"{head}: {record['reason']}" if label == "FAILED" else head


def write(file: Path, record: dict) -> None:
    files.write_json(file, files.sealed({key: value for key, value in record.items() if key != "digest"}))


def read(file: Path) -> dict:
    """A shard's file; empty if it is missing or damaged."""
    return files.read_sealed(file) or {}


@contextlib.contextmanager
def _log(file: Path) -> Iterator[None]:
    """Redirect the output of this process and its libraries to a file."""
    sys.stdout.flush(), sys.stderr.flush()
    before = os.dup(1), os.dup(2)
    with open(file, "ab", buffering=0) as log:
        os.dup2(log.fileno(), 1), os.dup2(log.fileno(), 2)
    try:
        yield
    finally:
        sys.stdout.flush(), sys.stderr.flush()
        for number, old in zip((1, 2), before, strict=True):
            os.dup2(old, number)
            os.close(old)
