"""Run the steps of a plan: each notebook in a process of its own, after the notebooks it needs.

A step's old products, executed notebook and marker (see ``uptodate``) are deleted first. The marker
is written last, and only if the inputs are still those with which the step began, so a step that
failed or was killed never looks like a success.
"""

import asyncio
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from probelib import paths
from probelib.errors import ProbeError, printable
from probelib.runner import uptodate
from probelib.runner.plan import Step


class StepOutcome(NamedTuple):
    """How a step ended. ``status``: ok, up to date, failed or skipped; ``time``: "1.5 s"."""

    status: str
    message: str = ""
    time: str = ""


Worker = Callable[[dict], Awaitable[str | None]]  # ``execute`` in one place


async def execute(environment: dict, job: dict) -> str | None:
    """Execute a notebook on this machine (see ``kernel``); return None, or the failure in one line.

    The notebook's process has its own session, so Ctrl-C reaches only the runner. It ends when its
    stdin closes: when the runner stops it, or when the runner is killed."""
    with tempfile.TemporaryFile() as words:
        child = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "probelib.runner.kernel"),
            env=environment,
            start_new_session=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=words,
        )
        assert child.stdin and child.stdout
        try:
            child.stdin.write(json.dumps(job).encode() + b"\n")
            result = await child.stdout.readline()
        finally:
            child.stdin.close()
            try:
                await asyncio.wait_for(child.wait(), 10)
            except TimeoutError:
                with contextlib.suppress(ProcessLookupError):  # it has just ended by itself
                    child.kill()
        if result:
            return json.loads(result)
        words.seek(0)
        last = words.read().decode(errors="replace").strip().split("\n")[-1]
    return f"its process ended with code {child.returncode} {last}".rstrip()


async def run_steps(
    profile: str,
    steps: list[Step],
    now: dict[str, dict],
    reasons: dict[str, str | None],
    workers: Sequence[Worker],
) -> dict[str, StepOutcome]:
    """Run the steps that have a reason, each after its needs: notebook -> outcome.

    now      ``uptodate.inputs``
    reasons  ``uptodate.why``
    workers  one per notebook at a time
    """
    stop = asyncio.current_task().cancel  # type: ignore[union-attr]
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop)
    ended = {step.notebook: asyncio.Event() for step in steps}
    outcomes: dict[str, StepOutcome] = {}
    free: asyncio.Queue = asyncio.Queue()
    for each in workers:
        free.put_nowait(each)

    async def run(step: Step) -> None:
        name, reason = step.notebook, reasons[step.notebook]
        for need in step.needs:
            await ended[need].wait()
        outcome = StepOutcome("up to date")
        if unmet := [n for n in step.needs if outcomes[n].status in ("failed", "skipped")]:
            outcome = StepOutcome("skipped", f"needs {unmet[0]}")
        elif reason is not None:
            worker = await free.get()
            print(printable(f"{'start':10} {name} ({reason})"), flush=True)
            outcome = await _run_step(profile, step, now[name], worker)
            free.put_nowait(worker)
        outcomes[name] = outcome
        ended[name].set()
        label = "FAILED" if outcome.status == "failed" else outcome.status
        head = f"{label:10} {name} {outcome.time}".rstrip()
        done = f" [{len(outcomes)} of {len(steps)}]"
        print(printable(": ".join(filter(None, (head, outcome.message))) + done), flush=True)

    async with asyncio.TaskGroup() as group:
        for step in steps:
            group.create_task(run(step))
    return {step.notebook: outcomes[step.notebook] for step in steps}


async def _run_step(profile: str, step: Step, now: dict, worker: Worker) -> StepOutcome:
    """Run one step from a clean slate; success is recorded last."""
    partial, failed, executed = (
        uptodate.executed_path(profile, step.notebook, each) for each in (".partial", ".failed", "")
    )
    outcome, started = StepOutcome("failed"), time.monotonic()
    try:
        uptodate.clear(profile, step)
        failed.unlink(missing_ok=True)
        failed.parent.mkdir(parents=True, exist_ok=True)
        job = {"source": str(step.path), "target": str(partial), "parameters": now["parameters"]}
        error = await worker(job)
        again = uptodate.inputs([step], {step.notebook: now["parameters"]})[step.notebook]
        seconds = f"{time.monotonic() - started:.1f} s"
        if missing := uptodate.missing(profile, step):
            where = f"(expected in {paths.FIGURES / profile})"
            error = error or f"did not make {', '.join(missing)} {where}"
        elif change := uptodate.changed_input(now, again):
            error = error or f"{change} while it ran: run it again"
        if not error:
            os.replace(partial, executed)
            uptodate.write(profile, step, again)
            outcome = StepOutcome("ok", time=seconds)
        else:
            if partial.exists():  # the notebook up to its failure
                os.replace(partial, failed)
                error += f"; see {failed}"
            outcome = StepOutcome("failed", error, seconds)
    except (OSError, ProbeError) as error:
        said = cannot_write(error) if isinstance(error, OSError) else str(error)
        outcome = StepOutcome("failed", said)
    finally:
        if outcome.status == "failed":  # also if it was stopped
            with contextlib.suppress(OSError):
                uptodate.clear(profile, step)
    return outcome


def environments(jobs: int | None) -> list[dict]:
    """The environment of each of ``jobs`` processes, which share the cores and GPUs. Default: one
    per GPU, without GPUs 2."""
    there = gpus()
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    jobs = jobs or len(there) or min(2, cores or 1)
    threads = os.environ.get("OMP_NUM_THREADS") or str(max(1, (cores or 1) // jobs))
    common = os.environ | {
        "TQDM_MININTERVAL": "30",
        "OMP_NUM_THREADS": threads,
        "PYTHONHASHSEED": "0",
        "TOKENIZERS_PARALLELISM": "false",
        # a notebook runs in its own folder, but imports this library and writes where this does
        "PYTHONPATH": os.pathsep.join(filter(None, (str(paths.ROOT), os.getenv("PYTHONPATH")))),
        "PROBELIB_OUT": str(paths.OUT),
        "IPYTHONDIR": str(paths.RUNS / ".ipython"),  # no user's start-up files in notebooks
        "PYTHONSAFEPATH": "1",  # modules in the working directory never hide the kit's
    }
    if jobs == 1 or not there:
        return [common] * jobs
    shares = (there[slot::jobs] or [there[slot % len(there)]] for slot in range(jobs))
    return [{**common, "CUDA_VISIBLE_DEVICES": ",".join(share)} for share in shares]


def gpus() -> list[str]:
    """The NVIDIA GPUs of this process, as CUDA_VISIBLE_DEVICES names them; without torch."""
    if not shutil.which("nvidia-smi"):
        return []
    listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=False)
    n = sum(line.startswith("GPU ") for line in listed.stdout.splitlines())
    named = os.environ.get("CUDA_VISIBLE_DEVICES", ",".join(map(str, range(n)))) if n else ""
    return [gpu for gpu in named.split(",") if gpu.strip() not in ("", "-1", "NoDevFiles")]  # Slurm


def cannot_write(error: OSError) -> str:
    return f"cannot write {error.filename or paths.OUT}: {error.strerror or error}"
