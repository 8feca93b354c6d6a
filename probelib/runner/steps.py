"""Run the steps of a plan: each notebook in a process of its own, after the notebooks it needs.

A step starts from a clean slate: its old products, executed notebook and marker are deleted first.
The marker (see ``uptodate``) is written last, and only if the inputs are still those with which
the step began, so a step that failed or was killed never looks like a success.
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
from pathlib import Path
from typing import NamedTuple

from probelib import files, paths
from probelib.errors import ProbeError, printable
from probelib.runner import uptodate
from probelib.runner.plan import Step


class StepOutcome(NamedTuple):
    """How a step ended. ``status``: ok, up to date, failed or skipped."""

    status: str
    message: str = ""
    seconds: float | None = None

    def time(self, unit: str = "") -> str:
        return "" if self.seconds is None else f"{self.seconds:.1f}{unit}"


# ``execute`` in one place, for one notebook at a time
Worker = Callable[[dict, float | None, dict], Awaitable[str | None]]


async def execute(environment: dict, job: dict, timeout_s: float | None, state: dict) -> str | None:
    """Execute a notebook on this machine (see ``kernel``) and update ``state``; return None, or the
    failure in one line.

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
            async with asyncio.timeout(timeout_s):
                while "error" not in state and (line := await child.stdout.readline()):
                    state.update(json.loads(line))
        except TimeoutError:
            return f"cell {state['cell']}: timed out after {timeout_s:g} s"
        finally:
            child.stdin.close()
            try:
                await asyncio.wait_for(child.wait(), 10)
            except TimeoutError:
                with contextlib.suppress(ProcessLookupError):  # it has just ended by itself
                    child.kill()
        words.seek(0)
        last = words.read().decode(errors="replace").strip().split("\n")[-1]
    died = f"cell {state['cell']}: its process ended with code {child.returncode} {last}"
    return state.get("error", died.rstrip())


async def run_steps(
    profile: str,
    steps: list[Step],
    now: dict[str, dict],
    reasons: dict[str, str | None],
    workers: Sequence[Worker],
) -> dict[str, StepOutcome]:
    """Run the steps that have a reason, each after its needs: notebook -> outcome. Those that took
    longest in the last run come first, then the plan's order.

    now      ``uptodate.inputs``
    reasons  ``uptodate.why``
    workers  one per notebook at a time
    """
    stop = asyncio.current_task().cancel  # type: ignore[union-attr]
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop)
    ended = {step.notebook: asyncio.Event() for step in steps}
    outcomes: dict[str, StepOutcome] = {}
    running: dict[str, dict] = {}  # what the status line shows
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
            if not sys.stdout.isatty():
                print_line(f"{'start':10} {name} ({reason})")
            running[name] = {"start": time.monotonic(), "cell": 0}
            outcome = await _run_step(profile, step, now[name], worker, running[name])
            del running[name]
            free.put_nowait(worker)
        outcomes[name] = outcome
        ended[name].set()
        label = "FAILED" if outcome.status == "failed" else outcome.status
        head = f"{label:10} {name} {outcome.time(' s')}".rstrip()
        print_line(": ".join(filter(None, (head, outcome.message))))

    live = asyncio.create_task(_show(len(steps), outcomes, running))
    last = lambda step: uptodate.read(profile, step.notebook).get("seconds", 0)
    try:
        async with asyncio.TaskGroup() as group:
            for step in sorted(steps, key=last, reverse=True):
                group.create_task(run(step))
    finally:
        live.cancel()
    return {step.notebook: outcomes[step.notebook] for step in steps}


async def _run_step(
    profile: str, step: Step, now: dict, worker: Worker, state: dict
) -> StepOutcome:
    """Run one step from a clean slate; success is recorded last."""
    partial, failed, executed = (
        uptodate.executed_path(profile, step.notebook, each) for each in (".partial", ".failed", "")
    )
    outcome = StepOutcome("failed")
    try:
        uptodate.clear(profile, step)
        failed.unlink(missing_ok=True)
        failed.parent.mkdir(parents=True, exist_ok=True)
        job = {"source": str(step.path), "target": str(partial), "parameters": now["parameters"]}
        error = await worker(job, step.timeout_s, state)
        seconds = time.monotonic() - state["start"]
        if error := error or _why_not(profile, step, now):
            kept = f"; see {failed}" if _keep_failed(partial, failed, error) else ""
            outcome = StepOutcome("failed", f"{error}{kept}", seconds)
        else:
            os.replace(partial, executed)
            uptodate.write(profile, step, now, round(seconds, 2))
            outcome = StepOutcome("ok", seconds=seconds)
    except (OSError, ProbeError) as error:
        said = cannot_write(error) if isinstance(error, OSError) else str(error)
        outcome = StepOutcome("failed", said)
    finally:
        if outcome.status == "failed":  # also if it was stopped
            with contextlib.suppress(OSError):
                uptodate.clear(profile, step)
    return outcome


def _why_not(profile: str, step: Step, now: dict) -> str | None:
    """Why a notebook that ran to its end is no success; None if it is one."""
    if missing := uptodate.missing(profile, step):
        return f"did not make {', '.join(missing)} (expected in {paths.FIGURES / profile})"
    again = uptodate.inputs([step], {step.notebook: now["parameters"]})[step.notebook]
    change = uptodate.changed_input(now, again)
    return f"{change} while it ran: run it again" if change else None


def _keep_failed(partial: Path, failed: Path, message: str) -> bool:
    """Save the notebook up to its failure; False if there is none to save."""
    import nbformat

    try:
        notebook = files.read_notebook(partial)
    except (OSError, ValueError):  # the failure was before the first cell, or the disk is full
        return False
    notebook.cells.insert(0, nbformat.v4.new_markdown_cell(f"**This run failed.** `{message}`"))
    nbformat.write(notebook, partial)
    os.replace(partial, failed)
    return True


def environments(jobs: int | None) -> list[dict]:
    """The environment of each of ``jobs`` processes, which share the cores and GPUs. Default: one
    per GPU, without GPUs 2."""
    there = gpus()
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    jobs = jobs or len(there) or min(2, cores or 1)
    common = {
        **os.environ,
        "TQDM_MININTERVAL": "30",
        "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS") or str(max(1, (cores or 1) // jobs)),
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


def print_line(text: str) -> None:
    print(("\r\x1b[K" if sys.stdout.isatty() else "") + printable(text), flush=True)


async def _show(n: int, outcomes: dict, running: dict[str, dict]) -> None:
    """Show what runs: on a terminal in one line, in a log in one line per minute."""
    while True:
        await asyncio.sleep(0.5 if sys.stdout.isatty() else 60)
        parts = [f"{len(outcomes)} of {n} notebooks done"]
        for name, state in running.items():
            spent = time.monotonic() - state["start"]
            parts.append(f"{name}: cell {state['cell']}, {spent:.0f} s")
        if not sys.stdout.isatty():
            print_line(" | ".join(parts))
        else:
            width = shutil.get_terminal_size().columns - 1
            print("\r\x1b[K" + printable(" | ".join(parts))[:width], end="", flush=True)
