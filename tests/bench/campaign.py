"""``./run_all.sh campaign``: runs disturbed on purpose; afterwards a plain run ends with the same
bytes, or says why not.

    python -m tests.bench campaign notebook.kill=3 scores.flip=5 --seed 1

Without WORK.FAULT=TRIES every fault is tried three times on every work (an hour).
"""

import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import psutil

from probelib import store
from probelib.paths import ROOT
from probelib.runner import plan

MODEL = "atlas-neox-0.15m"
REASONS = ("ProbeError: ", "No space left on device", "Read-only file system", "MemoryError")
REASONS += ("allocate memory", "bad_alloc")  # a traceback that ends so has a reason
MOUNTS = os.geteuid() == 0 and shutil.which("mount") is not None


class Impossible(Exception):
    """The fault cannot be made on this machine, or the work ended before it."""


class Work(NamedTuple):
    """``arguments`` of Python, and what must be the same in a folder afterwards (name -> bytes)."""

    arguments: list[str]
    products: Callable[[Path], dict[str, bytes]]


def scores_and_figures(out: Path) -> dict[str, bytes]:
    """Every product and every score, but for artifacts that hold seconds or memory."""
    steps = plan.read().steps
    measured = tuple(f"figures/smoke/{name}." for step in steps for name in step.measured)
    kinds = ("figures/**/*.*", "scores/**/*.parquet", "prompts/*.safetensors")
    found = {str(f.relative_to(out)): f for kind in kinds for f in sorted(out.rglob(kind))}
    kept = {n: f for n, f in found.items() if f.is_file() and not n.startswith(measured)}
    return {name: file.read_bytes() for name, file in kept.items()}


def checkpoint(out: Path) -> dict[str, bytes]:
    """A trained model; of its record all but the seconds."""
    found = {f.name: f.read_bytes() for f in (out / "trained").glob("*") if f.suffix != ".md"}
    told = json.loads(found.pop("training.json", b"{}"))
    return found | {"training.json": json.dumps(told | {"seconds": None}).encode()}


SCORES = f"""
import pandas
from probelib import lm, paths, store
named = (("P36", "capital"), ("P37", "language"))
facts = [(r, f"The {{what}} of {{place}} is") for r, what in named for place in ("Peru", "Kenya")]
prompts = pandas.DataFrame([(text, text, relation, text) for relation, text in facts],
                           columns=["prompt", "fact", "relation", "text"])
labels = ("Lima", "Nairobi", "Spanish")
candidates = pandas.DataFrame([(text, label, label) for _, text in facts for label in labels],
                              columns=["fact", "candidate", "label"])
store.score(lm.load("{MODEL}"), prompts, candidates, paths.RUNS / "smoke" / "scores")
"""
TRAINING = f"""
from probelib import paths
from probelib.organisms import train
train.RUNS = paths.RUNS
facts = train.corpus.documents
train.corpus.documents = lambda *given: facts(*given)[::50]
train.KEEP = 5
train.train("{MODEL}", paths.OUT / "trained", steps=60)
"""
NOTEBOOK = ["-m", "probelib.runner", "--profile", "smoke", "--only", "00_tour"]
WORKS = {
    "notebook": Work(NOTEBOOK, scores_and_figures),
    "scores": Work(["-c", SCORES], scores_and_figures),
    "training": Work(["-c", TRAINING], checkpoint),
}


def start(work: Work, out: Path) -> subprocess.Popen:
    """The work in a process of its own, in its own session; its words are kept beside ``out``."""
    environment = os.environ | {"PROBELIB_OUT": str(out), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, *work.arguments]
    with open(out.with_name(f"{out.name}.log"), "w") as words:
        options = {"stdout": words, "stderr": words, "start_new_session": True}
        return subprocess.Popen(command, cwd=ROOT, env=environment, **options)


def finish(work: Work, out: Path) -> tuple[int, str]:
    """The work to its end: the exit code, and the last line it said."""
    code = start(work, out).wait()
    return code, "".join(said(out)[-1:])


def said(out: Path) -> list[str]:
    return out.with_name(f"{out.name}.log").read_text(errors="replace").strip().splitlines()


def reasoned(out: Path) -> bool:
    """Whether what was said last is a reason: the kit's own words, or those of the system."""
    words = said(out)
    if not any(line.startswith("Traceback") for line in words):
        return bool(words)
    return any(reason in line for reason in REASONS for line in words[-3:])


def send(work, out: Path, chance: random.Random, seconds: float, whole, number, child=False) -> str:
    """A signal at a random moment to the process that was started, or to a child of it."""
    for longest in (seconds, seconds / 2, seconds / 4):  # the first run may have been slow
        process, moment = start(work, out), chance.uniform(0, longest)
        time.sleep(moment)
        with contextlib.suppress(psutil.NoSuchProcess):
            first = psutil.Process(process.pid)
            members = [first, *first.children(recursive=True)]
            if process.poll() is None:
                chosen = chance.choice(members[1:] or members) if child else first
                chosen.send_signal(number)
                process.wait()
                _, alive = psutil.wait_procs(members, timeout=60)
                assert not alive, f"left behind: {[member.cmdline()[:6] for member in alive]}"
                return f"{number.name} after {moment:.1f} s"
        process.wait()
        shutil.rmtree(out)
        out.mkdir()
    raise Impossible("it ended before it could be disturbed")


def full(work, out: Path, chance: random.Random, seconds: float, whole: Path) -> str:
    """A disk that fills up: it holds a random share of what the work writes."""
    need = sum(file.stat().st_size for file in whole.rglob("*") if file.is_file())
    return _on_disk(work, out, f"size={max(4096, int(chance.uniform(0.05, 0.9) * need))}")


def _on_disk(work: Work, out: Path, option: str) -> str:
    """The work on a small disk in memory; what it leaves there is moved to the folder."""
    if not MOUNTS:
        raise Impossible("mounting a small disk needs root")
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", option, "none", str(out)])
    if mounted.returncode:
        raise Impossible("this machine mounts no disks")
    rest = out.with_name("rest")
    try:
        code, last = finish(work, out)
        assert code, "it ended well on a disk that cannot hold its products"
        assert reasoned(out), f"a traceback, not a reason: {last}"
        shutil.copytree(out, rest)
    finally:
        subprocess.run(["umount", str(out)], check=False)
    shutil.copytree(rest, out, dirs_exist_ok=True)
    return f"a disk with {option}: {last[-120:]}"


def flip(work, out: Path, chance: random.Random, seconds: float, whole: Path) -> str:
    """One bit of one file of a finished run changed, date and all else as it was."""
    shutil.copytree(whole, out, dirs_exist_ok=True)
    there = [f for f in sorted(out.rglob("*")) if f.is_file() and f.suffix not in ("", ".log")]
    file = chance.choice([each for each in there if each.stat().st_size])
    content, before = bytearray(file.read_bytes()), file.stat()
    at = chance.randrange(len(content))
    content[at] ^= 1 << chance.randrange(8)
    file.write_bytes(content)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    return f"bit {at} of {file.relative_to(out)}"


def twice(work, out: Path, chance: random.Random, seconds: float, whole: Path) -> str:
    """Two runs at once on one store: one works, the other refuses or waits."""
    first = start(work, out)
    time.sleep(chance.uniform(0, seconds / 2))
    second = start(work, out)
    codes = sorted([first.wait(), second.wait()])
    assert codes[0] == 0, f"neither ended well: {codes}, {said(out)[-1:]}"
    return f"exit codes {codes}"


FAULTS = {
    "kill": partial(send, number=signal.SIGKILL),
    "kill_any": partial(send, number=signal.SIGKILL, child=True),  # as when memory runs out
    "terminate": partial(send, number=signal.SIGTERM),  # as a cluster does
    "read_only": lambda work, out, *_: _on_disk(work, out, "size=64m,ro"),
    **{fault.__name__: fault for fault in (full, flip, twice)},
}


def one_try(work: Work, fault, seed: int, seconds: float, whole: Path, out: Path) -> tuple:
    """(outcome, what was done): disturb, run plainly, compare with the undisturbed run."""
    try:
        what = fault(work, out, random.Random(seed), seconds, whole)
        code, last = finish(work, out)
    except Impossible as error:
        return "not possible", str(error)
    except AssertionError as error:
        return "DEFECT", str(error)
    if code:
        return ("refused" if reasoned(out) else "DEFECT"), f"{what}; then: {last[-300:]}"
    ours, theirs = work.products(out), work.products(whole)
    differ = [name for name in sorted({*ours, *theirs}) if ours.get(name) != theirs.get(name)]
    if bad := [name for name in differ if not refused_by_the_store(out / name)]:
        return "DEFECT", f"{what}; {len(bad)} differ, e.g. {bad[0]}"
    return "survived", what


def refused_by_the_store(file: Path) -> bool:
    """A damaged score that a finished step does not read again stays, and the store refuses it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return file.suffix == ".parquet" and not store.Part(file, "").finished()


def main(arguments: list[str]) -> int:
    """Run the tries; return 1 if one found a defect."""
    parser = argparse.ArgumentParser("run_all.sh campaign", description=__doc__.split("\n")[0])
    parser.add_argument("tries", nargs="*", metavar="WORK.FAULT=TRIES", help="default: all, 3 each")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(arguments)
    wanted = dict.fromkeys((f"{work}.{fault}" for work in WORKS for fault in FAULTS), 3)
    for each in given.tries:
        name, _, number = each.partition("=")
        if name not in wanted or not number.isdigit():
            words = f"works {', '.join(WORKS)}; faults {', '.join(FAULTS)}"
            parser.error(f"{each!r} is not WORK.FAULT=TRIES: {words}")
    if given.tries:
        wanted = {name: int(n) for name, n in (each.split("=") for each in given.tries)}
    defects, undisturbed = 0, {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for each, number in wanted.items():
            work, fault = each.split(".")
            if work not in undisturbed:
                (folder / work).mkdir()
                started = time.monotonic()
                code, last = finish(WORKS[work], folder / work)
                assert code == 0, f"the undisturbed run of {work} failed: {last}"
                undisturbed[work] = time.monotonic() - started
            for seed in range(given.seed, given.seed + number):
                out = folder / f"{each}-{seed}"
                out.mkdir()
                took, whole = undisturbed[work], folder / work
                outcome = one_try(WORKS[work], FAULTS[fault], seed, took, whole, out)
                defects += outcome[0] == "DEFECT"
                print(each, seed, *outcome, sep=" | ", flush=True)
                shutil.rmtree(out, ignore_errors=True)
    return 1 if defects else 0
