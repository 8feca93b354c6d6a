"""Run the steps of a plan: each notebook in a ``kernel`` of its own, after the notebooks it needs.

A step's old products, executed notebook and marker (see ``uptodate``) are deleted first. The marker
is written last, and only if the inputs are still those with which the step began, so a step that
failed or was killed never looks like a success."""

import asyncio
import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from probelib import paths
from probelib.errors import ProbeError, printable
from probelib.runner import uptodate
from probelib.runner.plan import Step


class StepOutcome(NamedTuple):
    """How a step ended. ``status``: ok, up to date, failed, skipped; ``cost``: "1.5 s, 0.3 GB"."""

    status: str
    message: str = ""
    cost: str = ""


async def run_steps(
    profile: str, steps: list[Step], now: dict, reasons: dict, workers: Sequence[Callable]
) -> dict[str, StepOutcome]:
    """Run the steps that have a reason (``uptodate.why``), each after its needs: notebook ->
    outcome. First come those that, with their needs and what needs them, took longest in the last
    run. ``now``: ``uptodate.inputs``; ``workers``: one per notebook at a time."""
    stop = asyncio.current_task().cancel  # type: ignore[union-attr]
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop)
    outcomes: dict[str, StepOutcome] = {}
    running: dict[str, dict] = {}  # what ``_show`` shows
    free: asyncio.Queue[Callable] = asyncio.Queue()
    idle = list(workers)

    async def run(step: Step, worker: Callable) -> None:
        name, reason, outcome = step.notebook, reasons[step.notebook], StepOutcome("up to date")
        if unmet := [n for n in step.needs if outcomes[n].status in ("failed", "skipped")]:
            outcome = StepOutcome("skipped", f"needs {unmet[0]}")
        elif reason is not None:
            print(printable(f"{'start':10} {name} ({reason})"), flush=True)
            running[name] = {"start": time.monotonic(), "cell": 0, "bar": ""}
            outcome = await _run_step(profile, step, now[name], worker, running[name])
            del running[name]
        outcomes[name] = outcome
        head = f"{outcome.status.replace('failed', 'FAILED'):10} {name} {outcome.cost}".rstrip()
        print(printable(": ".join(filter(None, (head, outcome.message)))), flush=True)
        free.put_nowait(worker)

    due = {n: uptodate.read(profile, n).get("seconds", 0.0) for n, why in reasons.items() if why}
    linked = lambda a, b: a is b or a.notebook in b.needs or b.notebook in a.needs
    urgency = lambda step: sum(due.get(s.notebook) or 1 for s in steps if linked(s, step))
    todo = sorted(steps, key=lambda step: (step.notebook in due, -urgency(step)))
    live = asyncio.create_task(_show(due, outcomes, running, len(workers)))
    try:
        async with asyncio.TaskGroup() as group:
            while todo:  # a worker idles where all that is left needs what still runs
                ready = [step for step in todo if outcomes.keys() >= {*step.needs}]
                for step in ready[: len(idle)]:
                    todo.remove(step)
                    group.create_task(run(step, idle.pop()))
                idle.append(await free.get())
    finally:
        live.cancel()
    return {step.notebook: outcomes[step.notebook] for step in steps}


async def _run_step(profile: str, step: Step, now: dict, run: Callable, state: dict) -> StepOutcome:
    """Run one step from a clean slate; success is recorded last."""
    executed = uptodate.executed_path(profile, step.notebook)
    partial, failed = (executed.with_suffix(f".{each}.ipynb") for each in ("partial", "failed"))
    status = "failed"
    try:
        uptodate.clear(profile, step)
        failed.unlink(missing_ok=True)
        failed.parent.mkdir(parents=True, exist_ok=True)
        job = {"source": str(step.path), "target": str(partial), "parameters": now["parameters"]}
        error = await run(job | {"cwd": os.getcwd()}, state)
        seconds = time.monotonic() - state["start"]
        again = uptodate.inputs([step], {step.notebook: now["parameters"]})[step.notebook]
        if missing := uptodate.missing(profile, step):
            error = error or f"did not make {', '.join(missing)} in {paths.FIGURES / profile}"
        for change in uptodate.changed_inputs(now, again):
            error = error or f"{change} while it ran: run it again"
        if not error:
            os.replace(partial, executed)
            uptodate.write(profile, step, now, round(seconds, 2))
            status = "ok"
        elif partial.exists():  # the notebook up to its failure
            os.replace(partial, failed)
            error += f"; see {failed}"
        memory = f", {state['gigabytes']:.1f} GB" if "gigabytes" in state else ""
        return StepOutcome(status, error or "", f"{seconds:.1f} s{memory}")
    except (OSError, ProbeError) as problem:
        said = cannot_write(problem) if isinstance(problem, OSError) else str(problem)
        return StepOutcome(status, said)
    finally:
        if status == "failed":  # also if it was stopped
            with contextlib.suppress(OSError):
                uptodate.clear(profile, step)


def environments(jobs: int | None) -> list[dict]:
    """The environment of each of ``jobs`` processes, which share the cores and GPUs. Default: one
    per GPU, without GPUs 2."""
    there = gpus()
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    jobs = jobs or len(there) or min(2, cores or 1)
    common = {
        **os.environ,
        "TQDM_MININTERVAL": "5",
        "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS") or str(max(1, (cores or 1) // jobs)),
        "PYTHONHASHSEED": "0",
        "TOKENIZERS_PARALLELISM": "false",
        "PYTHONPATH": os.pathsep.join(filter(None, (str(paths.ROOT), os.getenv("PYTHONPATH")))),
        "PROBELIB_OUT": str(paths.OUT),  # where this process writes, too
        "IPYTHONDIR": str(paths.RUNS / ".ipython"),  # no user's start-up files in notebooks
        "MPLBACKEND": "module://matplotlib_inline.backend_inline",  # also if imported before
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


async def _show(due: dict, outcomes: dict, running: dict, jobs: int) -> None:
    """Say every minute what runs; ``due``: seconds of each notebook in the last run, or 0."""
    while True:
        await asyncio.sleep(60)
        spent = {name: time.monotonic() - state["start"] for name, state in running.items()}
        left = {name: last for name, last in due.items() if name not in outcomes}
        parts = [f"{len(due) - len(left)} of {len(due)} notebooks done"]
        if all(left.values()):
            seconds = sum(max(0, last - spent.get(name, 0)) for name, last in left.items())
            parts[0] += f", about {seconds / 60 / jobs:.0f} min left"
        for name, state in running.items():
            of = f" of {due[name]:.0f}" if due[name] else ""
            parts.append(f"{name}: cell {state['cell']}, {spent[name]:.0f}{of} s {state['bar']}")
        print(printable(" | ".join(map(str.rstrip, parts))), flush=True)
