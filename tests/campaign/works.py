"""The work that is disturbed: each a command that fills a folder, and the files in it that must come out the same."""

import importlib
import json
import os
import runpy
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import psutil

from probelib import lm, paths
from probelib.facts.shipped import atlas
from probelib.lm.version import scoring
from tests.conftest import ROOT

MODEL = "atlas-neox-0.15m"
REASONS = (
    "ProbeError: ",
    "No space left on device",
    "Read-only file system",
    "MemoryError",
    "allocate memory",
    "bad_alloc",
)
# imported once, before the first work is forked
SHARED = ("probelib.store", "probelib.runner.shards", "probelib.organisms.train", "probelib.lm.selfcheck")
SHARED += ("transformers.models.auto.tokenization_auto", "transformers.models.gpt_neox.modeling_gpt_neox")


class Work(NamedTuple):
    """``arguments`` of Python for a folder, and what of it must be the same (name -> bytes)."""

    arguments: Callable[[Path], list[str]]
    products: Callable[[Path], dict[str, bytes]]


def scores_and_figures(out: Path) -> dict[str, bytes]:
    """Every product and every score, but for artifacts that hold seconds or memory."""
    from probelib.runner import plan

    measured = tuple(f"figures/smoke/{artifact}." for step in plan.read().steps for artifact in step.measured)
    found = [*out.rglob("figures/**/*.*"), *out.rglob("scores/**/*.parquet"), *out.rglob("prompts/*.safetensors")]
    named = {str(file.relative_to(out)): file for file in sorted(found) if file.is_file()}
    return {name: file.read_bytes() for name, file in named.items() if not name.startswith(measured)}


def checkpoint(out: Path) -> dict[str, bytes]:
    """A trained model; of its record all but the seconds."""
    found = {file.name: file.read_bytes() for file in sorted((out / "trained").glob("*")) if file.suffix != ".md"}
    told = json.loads(found.pop("training.json", b"{}"))
    return found | {"training.json": json.dumps(told | {"seconds": None}).encode()}


SHARDS = f"""
from probelib.runner import plan, shards
whole = plan.read()
steps = [step for step in whole.steps if step.notebook == "monitor/sec5_results"]
given = {{"models": ["{MODEL}"], "encoder_decoders": [], "n_facts": 1, "relations": ["P37", "P30", "P103"]}}
cut = shards.cut("smoke", steps, plan.settings(whole, steps, "smoke", given))
for file in shards.left(cut):
    shard, scores = shards.read(file)["shard"], file.parent.parent / "scores"
    shards.finish(file, shards.process(shard, scores, file.with_suffix(".log")))
raise SystemExit(len(shards.left(cut)))
"""
SCORES = """
import pandas
from probelib import paths, store
from tests.campaign.works import model
facts = [(relation, f"The {what} of {place} is") for relation, what in (("P36", "capital"), ("P37", "language"))
         for place in ("Peru", "Kenya")]
prompts = pandas.DataFrame([(text, text, relation, text) for relation, text in facts],
                           columns=["prompt", "fact", "relation", "text"])
candidates = pandas.DataFrame([(text, label, label) for _, text in facts for label in ("Lima", "Nairobi", "Spanish")],
                              columns=["fact", "candidate", "label"])
store.score(model(), prompts, candidates, paths.RUNS / "smoke" / "scores")
"""
TRAINING = """
from probelib import paths
from probelib.organisms import train
train.RUNS = paths.RUNS
facts = train.corpus.documents
train.corpus.documents = lambda *given: facts(*given)[::50]
train.KEEP = 5
train.train("{model}", paths.OUT / "trained", steps={steps})
"""


def works(steps: int = 60) -> dict[str, Work]:
    """``steps`` of the training."""
    run = ["-m", "probelib.runner", "--profile", "smoke"]
    train = TRAINING.format(model=MODEL, steps=steps)
    return {
        "notebook": Work(lambda out: [*run, "--only", "00_tour"], scores_and_figures),
        "shard": Work(lambda out: ["-c", SHARDS], scores_and_figures),
        "scores": Work(lambda out: ["-c", SCORES], scores_and_figures),
        "training": Work(lambda out: ["-c", train], checkpoint),
        "smoke": Work(lambda out: run, scores_and_figures),
    }


def prepare() -> None:
    """Import and compute what every fork needs."""
    for name in SHARED:
        importlib.import_module(name)
    scoring(), atlas(), model()  # all are cached


@cache
def model() -> lm.LM:
    """The smallest organism, loaded and checked."""
    loaded = lm.load(MODEL)
    loaded.logprobs(["The capital of Peru is"], [[" Lima"]])
    return loaded


class Fork:
    """Python code in a fork of this process, in a session of its own: what most of it imports is there already."""

    def __init__(self, code: str, environment: dict[str, str], words: int):
        self.returncode = None
        self.pid = os.fork()
        if not self.pid:
            os._exit(_in_fork(code, environment, words))

    def poll(self) -> int | None:
        return self.wait(os.WNOHANG)

    def wait(self, options: int = 0) -> int | None:
        if self.returncode is None and (ended := os.waitpid(self.pid, options))[0]:
            self.returncode = os.waitstatus_to_exitcode(ended[1])
        return self.returncode


def _in_fork(code: str, environment: dict[str, str], words: int) -> int:
    """Run code as ``python -c`` would, with the kit imported anew; return the exit code."""
    os.setsid()
    os.dup2(words, 1), os.dup2(words, 2)
    os.environ.update(environment)
    importlib.reload(paths)  # PROBELIB_OUT is another one here
    try:
        for folder in environment["PYTHONPATH"].split(os.pathsep):
            if (Path(folder) / "sitecustomize.py").exists():
                runpy.run_path(f"{folder}/sitecustomize.py")
        exec(compile(code, "<work>", "exec"), {"__name__": "__main__"})
        status = 0
    except SystemExit as error:
        status = int(error.code or 0)
    except BaseException:
        traceback.print_exc()
        status = 1
    sys.stdout.flush(), sys.stderr.flush()
    return status


def start(work: Work, out: Path, **environment: str) -> "subprocess.Popen | Fork":
    """The work in a process of its own, with its own session; its words are kept beside the folder."""
    own = {"PROBELIB_OUT": str(out), "PYTHONPATH": str(ROOT)} | environment
    command = work.arguments(out)
    with open(out.with_name(f"{out.name}.log"), "w") as words:
        if command[0] == "-c":
            return Fork(command[1], own, words.fileno())
        command, own = [sys.executable, *command], os.environ | own
        return subprocess.Popen(command, cwd=ROOT, env=own, stdout=words, stderr=words, start_new_session=True)


def finish(work: Work, out: Path, **environment: str) -> tuple[int, str]:
    """The work to its end: the exit code, and the last line it said."""
    code = start(work, out, **environment).wait()
    return code, said(out)[-1] if said(out) else ""


def said(out: Path) -> list[str]:
    return out.with_name(f"{out.name}.log").read_text(errors="replace").strip().splitlines()


def reasoned(out: Path) -> bool:
    """Whether what was said last is a reason: the kit's own words, or those of the system for what it could not do."""
    words = said(out)
    if not any(line.startswith("Traceback") for line in words):
        return bool(words)
    return any(reason in line for reason in REASONS for line in words[-3:])


def family(process) -> list[psutil.Process]:
    """A process and all that descends from it, as far as they are still there."""
    try:
        first = psutil.Process(process.pid)
        return [first, *first.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def gone(members: list[psutil.Process], process) -> None:
    """Waits until all of them have ended; what does not within a minute is a defect."""
    process.wait()
    _, alive = psutil.wait_procs(members, timeout=60)
    for member in alive:
        member.send_signal(signal.SIGKILL)
    assert not alive, f"left behind: {[member.cmdline()[:6] for member in alive]}"
