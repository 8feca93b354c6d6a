"""Notebooks on many machines: the workers of a Dask scheduler that runs already.

Dask gives a notebook to another worker if its own is lost. A worker needs this checkout, the same
versions of libraries, and the folder of the runs at the same path."""

import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from tempfile import gettempdir
from unittest.mock import patch

from probelib import paths
from probelib.errors import ProbeError, extra
from probelib.runner import kernel, steps


async def execute(client, job: dict, state: dict) -> str | None:
    """Execute a notebook on a worker of a cluster; return None, or the failure in one line."""
    future = client.submit(on_worker, job, str(paths.OUT), pure=False)
    try:
        return await future
    except Exception as error:  # its workers died, or cannot import the kit
        return f"{type(error).__name__}: {' '.join(str(error).split())}"
    finally:
        with contextlib.suppress(Exception):
            await future.cancel()


def on_worker(job: dict, out: str) -> str | None:
    """Execute a notebook in a worker, which stops it when the runner has gone; None, or why not."""
    from distributed import get_worker

    if not os.access(Path(out) / "runs", os.W_OK):
        return f"the worker cannot write {out}/runs; workers need this folder at the same path"
    worker = get_worker()
    key = worker.get_current_task()
    environment = steps.environments(1)[0]
    environment |= {"PROBELIB_OUT": out, "IPYTHONDIR": f"{out}/runs/.ipython"}

    async def run() -> str | None:
        work = asyncio.create_task(kernel.execute(environment, False, job, {"cell": 0}))
        while not (await asyncio.wait([work], timeout=0.5))[0]:
            task = worker.state.tasks.get(key)
            if task is None or task.state != "executing":
                work.cancel()
        return await work

    return asyncio.run(run())


@contextlib.asynccontextmanager
async def workers(on: str, jobs: int | None) -> AsyncIterator[list[Callable]]:
    """The workers of an engine, ``jobs`` of them: local, or those of a scheduler (its address,
    tcp://host:8786). Raise ProbeError if it has none, or one that runs several tasks at a time."""
    if on == "local":
        # forks are asked for by a socket in the temporary folder, whose path has at most 107 bytes
        fork = sys.platform == "linux" and len(gettempdir()) < 75 and not steps.gpus()
        own = steps.environments(jobs)
        with patch.dict(os.environ, own[0]):  # of the process whose forks are the kernels
            yield [partial(kernel.execute, each, fork) for each in own]
        return
    with extra("cluster"):
        from distributed import Client
    async with contextlib.AsyncExitStack() as stack:
        try:
            client = await stack.enter_async_context(Client(on, asynchronous=True))
            await client.get_versions(check=True, packages=["torch", "transformers"])  # warns
            threads = await client.nthreads()
        except (ImportError, OSError, RuntimeError, TypeError, ValueError) as error:
            raise ProbeError(f"{on}: no Dask scheduler answers: {error}") from error
        if set(threads.values()) != {1}:
            start = f"`dask worker {on} --nthreads 1 --memory-limit 0` starts one"
            raise ProbeError(f"{on}: workers that run one task at a time are needed: {start}")
        print(f"dashboard: {client.dashboard_link}", flush=True)
        yield [partial(execute, client)] * max(jobs or 0, len(threads))
