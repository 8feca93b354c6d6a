"""Run the steps of a plan: each notebook in a process of its own, after the notebooks that it needs.

A step starts from a clean slate: its old products, executed notebook and marker are deleted first. The marker (see ``uptodate``)
is written last, so a step that failed or was killed never looks like a success.
"""

import asyncio
import contextlib
import heapq
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import NamedTuple

from probelib import paths
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


class Worker:
    """A process that executes notebooks, one after the other (``kernel``). It is started for the first one.

    The process has its own session, so Ctrl-C reaches only the runner. Its notebook ends when its stdin closes: when the runner
    stops it, or when the runner is killed.
    """

    def __init__(self, environment: dict):
        self.environment, self.child = environment, None

    async def execute(self, job: dict, timeout_s: float | None, state: dict) -> str | None:
        """Execute a notebook and update ``state``; return None, or the failure in one line."""
        if self.child is None or self.child.returncode is not None:
            await self._start()
        try:
            self.child.stdin.write(json.dumps(job).encode() + b"\n")
            async with asyncio.timeout(timeout_s):
                while "code" not in state and (line := await self.child.stdout.readline()):
                    state.update(json.loads(line))
        except TimeoutError:
            return f"cell {state['cell']}: timed out after {timeout_s:g} s"
        finally:
            if "code" not in state:  # the process was stopped or has died
                await self.close()
        if "error" in state:
            return state["error"]
        self.words.seek(0)
        last = self.words.read().decode(errors="replace").strip().split("\n")[-1]
        code = state.get("code", self.child.returncode)
        return f"cell {state['cell']}: its process ended with code {code} {last}".rstrip()

    async def _start(self) -> None:
        self.words = tempfile.TemporaryFile()  # noqa: SIM115 (lives as long as the process)
        self.child = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "probelib.runner.kernel"),
            env=self.environment,
            start_new_session=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.words,
        )

    async def close(self) -> None:
        """End the process and the notebook that runs in it."""
        if self.child is None:
            return
        self.child.stdin.close()
        try:
            await asyncio.wait_for(self.child.wait(), 10)
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):  # it has just ended by itself
                self.child.kill()


class FreeWorkers:
    """Free workers, and the steps that wait for one: the lowest rank comes first."""

    def __init__(self, workers: list[Worker]):
        self.free, self.waiting = workers[::-1], []

    async def take(self, rank: int) -> Worker:
        """A worker as soon as one is free; the last one that ran is reused first: its imports are done."""
        if self.free:
            return self.free.pop()
        turn = asyncio.get_running_loop().create_future()
        heapq.heappush(self.waiting, (rank, turn))
        return await turn

    def give_back(self, worker: Worker) -> None:
        """Hand a worker to the next step that waits."""
        if self.waiting:
            heapq.heappop(self.waiting)[1].set_result(worker)
        else:
            self.free.append(worker)


async def run_steps(
    profile: str, steps: list[Step], now: dict[str, dict], reasons: dict[str, str | None], jobs: int | None
) -> dict[str, StepOutcome]:
    """Run the steps that have a reason, each after its needs, at most ``jobs`` at a time: notebook -> outcome. Those that took
    longest in the last run come first, then the plan's order.

    now      ``uptodate.inputs``
    reasons  ``uptodate.why``
    """
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, asyncio.current_task().cancel)
    workers = [Worker(environment) for environment in environments(jobs)]
    free = FreeWorkers(workers)
    tasks: dict[str, asyncio.Task] = {}
    running: dict[str, dict] = {}  # what the status line shows
    before = {name: uptodate.seconds(profile, name) for name, reason in reasons.items() if reason}
    ranked = sorted(steps, key=lambda step: -(before.get(step.notebook) or 0))
    rank = {step.notebook: number for number, step in enumerate(ranked)}

    def status() -> str:
        ended = {name for name, task in tasks.items() if task.done()}
        return progress(before, ended, running, len(workers))

    async def run_step(step: Step) -> StepOutcome:
        name, reason = step.notebook, reasons[step.notebook]
        bad = [need for need in step.needs if (await tasks[need]).status in ("failed", "skipped")]
        if bad:
            outcome = StepOutcome("skipped", f"needs {bad[0]}")
        elif reason is None:
            outcome = StepOutcome("up to date")
        else:
            worker = await free.take(rank[name])
            running[name] = {"start": time.monotonic(), "cell": 0, "text": ""}
            if not sys.stdout.isatty():
                _print_line(f"{'start':10} {name} ({reason})")
            outcome = await _run_step(profile, step, now[name], worker, running[name])
            del running[name]
            free.give_back(worker)
        label = "FAILED" if outcome.status == "failed" else outcome.status
        _print_line(": ".join(filter(None, (f"{label:10} {name} {outcome.time(' s')}".rstrip(), outcome.message))))
        return outcome

    live = asyncio.create_task(_show(status))
    try:
        async with asyncio.TaskGroup() as group:
            for step in ranked:
                tasks[step.notebook] = group.create_task(run_step(step))
    finally:
        live.cancel()
        await asyncio.gather(*(worker.close() for worker in workers))
    return {step.notebook: tasks[step.notebook].result() for step in steps}


async def _run_step(profile: str, step: Step, now: dict, worker: Worker, state: dict) -> StepOutcome:
    """Run one step from a clean slate. Success is recorded last, so a failed or stopped step never looks successful."""
    partial, failed = (uptodate.executed_path(profile, step.notebook, suffix) for suffix in (".partial", ".failed"))
    succeeded = False
    try:
        uptodate.clear(profile, step)
        failed.unlink(missing_ok=True)
        failed.parent.mkdir(parents=True, exist_ok=True)
        job = {"source": str(step.path), "target": str(partial), "parameters": now["parameters"]}
        error = await worker.execute(job, step.timeout_s, state)
        seconds = time.monotonic() - state["start"]
        if error is None and (missing := uptodate.missing(profile, step)):
            state["cell"] = None  # no cell failed
            error = f"did not make {', '.join(missing)} (expected in {paths.FIGURES / profile})"
        if error is None:
            os.replace(partial, uptodate.executed_path(profile, step.notebook))
            uptodate.write(profile, step, now, round(seconds, 2))
            succeeded = True
            return StepOutcome("ok", seconds=seconds)
        kept = _keep_failed(partial, failed, state["cell"], error)
        return StepOutcome("failed", f"{error}; see {failed}" if kept else error, seconds)
    except OSError as error:
        return StepOutcome("failed", cannot_write(error))
    except ProbeError as error:
        return StepOutcome("failed", str(error))
    finally:
        if not succeeded:
            with contextlib.suppress(OSError):
                uptodate.clear(profile, step)


def _keep_failed(partial: Path, failed: Path, number: int | None, message: str) -> bool:
    """Save the notebook with the cells executed before the failure in cell ``number``; return False if there is nothing to save.

    papermill marks cells that were killed or never ran as completed; here they get their true status.
    """
    import nbformat

    try:
        notebook = nbformat.read(partial, as_version=4)
    except (OSError, ValueError):  # the failure was before the first cell, or the disk is full
        return False
    code = [cell for cell in notebook.cells if cell.cell_type == "code" and cell.source.strip()]
    if number is not None:
        for position, cell in enumerate(code[max(number, 1) - 1 :]):
            cell.metadata.papermill["status"] = "pending" if position else "failed"
    notebook.metadata.papermill["exception"] = True
    notebook.cells.insert(0, nbformat.v4.new_markdown_cell(f"**This run failed.** `{message}`"))
    nbformat.write(notebook, partial)
    os.replace(partial, failed)
    return True


def environments(jobs: int | None) -> list[dict]:
    """The environment of each of ``jobs`` processes; they share the cores and GPUs. Default: one per GPU, without GPUs 2."""
    there = gpus()
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    jobs = jobs or len(there) or min(2, cores)
    common = {
        **os.environ,
        "TQDM_MININTERVAL": "30",
        "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS") or str(max(1, cores // jobs)),
        "PYTHONHASHSEED": "0",
        "TOKENIZERS_PARALLELISM": "false",
        # A notebook runs in its own folder, but imports this library and writes to the folders of this process.
        "PYTHONPATH": os.pathsep.join(filter(None, (str(paths.ROOT), os.environ.get("PYTHONPATH")))),
        "PROBELIB_OUT": str(paths.OUT),
        "IPYTHONDIR": str(paths.RUNS / ".ipython"),  # otherwise a user's start-up files run in every notebook
        "PYTHONSAFEPATH": "1",  # modules in the working directory never hide the kit's
    }
    if jobs == 1 or not there:
        return [common] * jobs
    shares = (there[slot::jobs] or [there[slot % len(there)]] for slot in range(jobs))
    return [{**common, "CUDA_VISIBLE_DEVICES": ",".join(share)} for share in shares]


def gpus() -> list[str]:
    """The NVIDIA GPUs that this process may use, as CUDA_VISIBLE_DEVICES names them; found without importing torch."""
    if not shutil.which("nvidia-smi"):
        return []
    listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=False).stdout
    there = [str(number) for number in range(sum(line.startswith("GPU ") for line in listed.splitlines()))]
    asked = os.environ.get("CUDA_VISIBLE_DEVICES")
    if asked is None or not there:
        return there
    none = ("", "-1", "NoDevFiles")  # the last one is set by Slurm
    return [gpu for gpu in asked.split(",") if gpu.strip() not in none]


def cannot_write(error: OSError) -> str:
    return f"cannot write {error.filename or paths.OUT}: {error.strerror or error}"


def _print_line(text: str) -> None:
    print(("\r\x1b[K" if sys.stdout.isatty() else "") + printable(text), flush=True)


def progress(before: dict[str, float | None], ended: Collection[str], running: dict[str, dict], jobs: int) -> str:
    """The status line: "3 of 24 notebooks done, about 12 min left | zplke/sec3_design: cell 4, 33 s".

    before   each notebook of this run -> seconds of its last successful run, or None, which makes the time left a lower bound
    running  running notebook -> ``start`` (``time.monotonic``), ``cell``, ``text`` (the latest line on its stderr)
    """
    spent = {name: time.monotonic() - state["start"] for name, state in running.items()}
    todo = {name: seconds for name, seconds in before.items() if name not in ended}
    known = [max(0, seconds - spent.get(name, 0)) for name, seconds in todo.items() if seconds is not None]
    parts = [f"{len(before) - len(todo)} of {len(before)} notebooks done"]
    if known:
        minutes = math.ceil(max(sum(known) / jobs, *known) / 60)
        parts[0] += f", {'about' if len(known) == len(todo) else 'at least'} {minutes} min left"
    for name, state in running.items():
        parts.append(f"{name}: cell {state['cell']}, {spent[name]:.0f} s {state['text']}".rstrip())
    return " | ".join(parts)


async def _show(status: Callable[[], str]) -> None:
    """Show the status: on a terminal one line that is redrawn twice per second, in a log one line per minute."""
    while sys.stdout.isatty():
        print("\r\x1b[K" + printable(status())[: shutil.get_terminal_size().columns - 1], end="", flush=True)
        await asyncio.sleep(0.5)
    while True:
        await asyncio.sleep(60)
        _print_line(status())
