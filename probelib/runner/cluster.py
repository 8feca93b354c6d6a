"""Notebooks on many machines, through Dask: a running cluster, or jobs of a batch system.

Dask starts and watches the workers, gives a notebook to another worker if its own is lost, and
shows everything on its dashboard. A worker executes one notebook at a time, in a process of its
own as ``steps.Worker`` does; it needs this checkout, the same versions of libraries, and the
folder of the runs at the same path. Everything else stays with the runner: what runs, and whether
it succeeded.
"""

import asyncio
import contextlib
import os
import shlex
from collections.abc import AsyncIterator
from pathlib import Path

from probelib import paths
from probelib.errors import ProbeError, extra
from probelib.runner import steps

SYSTEMS = ("slurm", "pbs", "lsf", "sge")
JOBS = 16  # jobs of a batch system at a time, unless --jobs gives another number
JOB = {"cores": 2, "memory": "16GiB", "walltime": "04:00:00"}  # unless --cluster gives others


class Remote:
    """A worker of a cluster, as ``steps.Worker``: it executes one notebook at a time."""

    def __init__(self, client):
        self.client = client

    async def execute(self, job: dict, timeout_s: float | None, state: dict) -> str | None:
        """Execute a notebook and update ``state``; return None, or the failure in one line."""
        from distributed import KilledWorker
        from distributed.client import FutureCancelledError

        future = self.client.submit(on_worker, job, timeout_s, str(paths.OUT), pure=False)
        try:
            return await future
        except KilledWorker as error:
            killed = f"its worker was killed {error.allowed_failures + 1} times"
            return f"{killed}, most likely out of memory; use --quantize or --cluster memory=..."
        except FutureCancelledError as error:
            raise ProbeError(f"the scheduler has stopped ({error.reason}); run it again") from None
        except Exception as error:  # the worker cannot import the kit
            return f"{type(error).__name__}: {' '.join(str(error).split())}"
        finally:
            with contextlib.suppress(Exception):
                await future.cancel()


def on_worker(job: dict, timeout_s: float | None, out: str) -> str | None:
    """Execute a notebook in this worker, which stops it when the runner has gone; return None, or
    the failure in one line."""
    from distributed import get_worker

    if not os.access(Path(out) / "runs", os.W_OK):
        return f"the worker cannot write {out}/runs; workers need this folder at the same path"
    worker = get_worker()
    key = worker.get_current_task()
    environment = steps.environments(1)[0] | {"PROBELIB_OUT": out}
    environment["IPYTHONDIR"] = str(Path(out) / "runs" / ".ipython")

    async def run() -> str | None:
        work = asyncio.create_task(steps.Worker(environment).execute(job, timeout_s, {"cell": 0}))
        while not (await asyncio.wait([work], timeout=0.5))[0]:
            task = worker.state.tasks.get(key)
            if task is None or task.state != "executing":
                work.cancel()
        return await work

    return asyncio.run(run())


@contextlib.asynccontextmanager
async def workers(on: str, jobs: int | None, options: dict) -> AsyncIterator[list]:
    """The workers of an engine, ``jobs`` of them.

    on       local, the address of a scheduler (tcp://host:8786), or one of ``SYSTEMS``
    options  arguments of dask-jobqueue's cluster
    """
    if on == "local":
        yield [steps.Worker(environment) for environment in steps.environments(jobs)]
        return
    async with contextlib.AsyncExitStack() as stack:
        try:
            client, n = await _connect(on, jobs, options, stack)
        except (ImportError, OSError, RuntimeError, TypeError, ValueError) as error:
            what = "no Dask scheduler answers" if "://" in on else "it does not accept the jobs"
            raise ProbeError(f"{on}: {what}: {' '.join(str(error).split())}") from error
        print(f"dashboard: {client.dashboard_link}", flush=True)
        yield [Remote(client)] * n


async def _connect(on: str, jobs: int | None, options: dict, stack) -> tuple:
    """(client, number of notebooks at a time); ``stack`` closes everything."""
    with extra("cluster"):
        import dask_jobqueue
        from dask import config
        from distributed import Client
    if "://" in on:
        client = await stack.enter_async_context(Client(on, asynchronous=True))
        # warns of other versions
        await client.get_versions(check=True, packages=["torch", "transformers"])
        return client, max(jobs or 0, await check(client))
    # a long task makes Dask start one job for each; threads are set by ``steps.environments``
    long = {"distributed.scheduler.unknown-task-duration": "1h"}
    stack.enter_context(config.set(long | {"distributed.nanny.pre-spawn-environ": {}}))
    kind = getattr(dask_jobqueue, f"{on.upper()}Cluster")
    cluster = kind(**job(paths.RUNS / on, options), asynchronous=True)
    await stack.enter_async_context(cluster)
    client = await stack.enter_async_context(Client(cluster, asynchronous=True))
    cluster.scale(jobs=1)
    await cluster  # raises the batch system's errors
    cluster.adapt(minimum_jobs=0, maximum_jobs=jobs or JOBS)
    return client, jobs or JOBS


async def check(client) -> int:
    """The number of workers. Raise ProbeError for none, or one that runs several tasks at a
    time."""
    threads, address = await client.nthreads(), client.scheduler.address
    if set(threads.values()) != {1}:
        wrong = "has a worker that runs several tasks at a time" if threads else "has no workers"
        start = f"`dask worker {address} --nthreads 1 --memory-limit 0` starts one"
        raise ProbeError(f"{address} {wrong}; {start}")
    return len(threads)


def job(folder: Path, options: dict) -> dict:
    """The arguments of dask-jobqueue's cluster: one notebook at a time; the job limits the memory;
    all connections are encrypted with keys that are made for this run."""
    given, environment = JOB | options, steps.environments(1)[0]
    exports = {name: environment[name] for name in ("PYTHONPATH", "PYTHONSAFEPATH")}
    exports |= dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), given["cores"])
    lines = [f"export {name}={shlex.quote(str(value))}" for name, value in exports.items()]
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return {
        "processes": 1,
        "job_name": "probelib",
        "log_directory": str(folder),
        "security": True,
        "shared_temp_directory": str(folder),
        "scheduler_options": {"dashboard_address": "127.0.0.1:0"},
        **given,
        "job_script_prologue": [*lines, *given.get("job_script_prologue", [])],
        "worker_extra_args": ["--nthreads", "1", "--memory-limit", "0"],
    }
