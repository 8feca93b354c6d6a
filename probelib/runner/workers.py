"""Workers for shards, through Dask: processes on this machine, a running cluster, or jobs of a batch system.

Dask starts and watches the workers, gives a shard to another worker if its own is lost, and shows everything on its dashboard.
Each worker processes one shard at a time. A shard whose worker was lost too often has failed: twice on this machine; on a
cluster, which may take machines away, as often as ``distributed.scheduler.allowed-failures`` says (4 times).
"""

import asyncio
import contextlib
import itertools
import logging
import os
import shlex
import signal
from collections.abc import AsyncIterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from probelib import files, paths
from probelib.errors import ProbeError, extra
from probelib.lm.names import SERVERS
from probelib.lm.version import scoring
from probelib.runner import preflight, shards, steps, uptodate

if TYPE_CHECKING:
    from distributed import Client

GPUS = {"slurm": "--gpus-per-node={}", "lsf": "-gpu num={}", "sge": "-l gpu={}", "pbs": ""}  # pbs: see ``job``
JOBS = 16  # jobs of a batch system at a time, unless --jobs gives another number
OWN = ("mem_gb", "gpu_gb", "gpus", "cores", "timeout_min")  # names of --cluster; all others go to dask-jobqueue
# the number of threads comes from ``steps.environments``; long expected tasks make Dask start one job per shard
CONFIG = {"distributed.nanny.pre-spawn-environ": {}, "distributed.scheduler.unknown-task-duration": "1h"}
ADVICE = "start workers in the runner's environment, with its checkout as PYTHONPATH"
PASSED = ("PYTHONPATH", "PYTHONSAFEPATH", "TOKENIZERS_PARALLELISM", "TQDM_MININTERVAL")  # variables that jobs get


def score(cut: list[Path], on: str = "local", jobs: int | None = None, options: dict | None = None) -> dict[Path, str]:
    """Process the unfinished shards among those ``cut``; return {shard: reason} of those that failed.

    on       local, slurm, pbs, lsf, sge, or the address of a scheduler (tcp://host:8786)
    jobs     shards at a time; default: one per GPU, or 2 without GPUs; on a running cluster one per worker; on a batch system
             ``JOBS``
    options  ``OWN``, and arguments of dask-jobqueue's cluster
    """
    todo = shards.left(cut)
    print(f"shards: {len(cut) - len(todo)} of {len(cut)} are done", flush=True)
    if not todo:
        return {}
    with extra("cluster"):
        import dask_jobqueue  # noqa: F401
        from dask import config
    for file in todo:
        shards.write(file, {key: shards.read(file)[key] for key in ("shard", "facts")})
    with config.set(CONFIG):
        asyncio.run(_score(todo, on, jobs, options or {}))
    return {file: record["reason"] for file in todo if (record := shards.read(file))["state"] == "failed"}


async def _score(todo: list[Path], on: str, jobs: int | None, options: dict) -> None:
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, asyncio.current_task().cancel)
    if "://" in on:
        async with connected(on) as client:
            declared = await check(client, todo[0])
            resources = {file: fitting(shards.read(file)["shard"], declared, options) for file in todo}
            await hand_out(client, todo, max(jobs or 0, len(declared)), resources)
    elif on == "local":
        environments = steps.environments(jobs)
        async with local(environments) as client:
            await hand_out(client, todo, len(environments))
    else:
        needs = {file: need(shards.read(file)["shard"], options) for file in todo}  # all, before jobs are submitted
        for wanted, own in itertools.groupby(sorted(todo, key=needs.get), needs.get):
            own = list(own)
            n = min(jobs or JOBS, len(own))
            async with batch(on, n, job(on, *wanted, own[0].parent / on, options)) as client:
                await hand_out(client, own, n)


async def hand_out(client: "Client", todo: list[Path], n: int, resources: dict | None = None) -> None:
    """Process shards on the client's workers, ``n`` at a time, and write their outcomes. ``resources``: of Dask, per shard."""
    from distributed import KilledWorker
    from distributed.client import FutureCancelledError

    print(f"dashboard: {client.dashboard_link}", flush=True)
    slots = asyncio.Semaphore(n)

    async def one(file: Path) -> dict:
        given = {"key": file.stem, "pure": False, "resources": (resources or {}).get(file)}
        try:
            return await client.submit(_process, file, _versions(), **given)
        except KilledWorker as error:
            lost = f"its worker was killed {error.allowed_failures + 1} times, most likely out of memory"
            reason = f"{lost}; use --quantize, --jobs 1 or --cluster mem_gb=...; see {file.with_suffix('.log')}"
        except FutureCancelledError as error:
            raise ProbeError(f"the scheduler has stopped ({error.reason}); the same command resumes the run") from None
        except Exception as error:  # the worker cannot import the kit, or cannot write the log
            reason = f"{type(error).__name__}: {' '.join(str(error).split())}"
        return {"state": "failed", "reason": reason}

    async def finish(file: Path) -> None:
        async with slots:
            shards.finish(file, await one(file))

    await asyncio.gather(*map(finish, todo))


def _process(file: Path, versions: dict[str, str]) -> dict:
    if wrong := differs(file, versions):
        return {"state": "failed", "reason": wrong}
    return shards.process(shards.read(file)["shard"], file.parent.parent / "scores", file.with_suffix(".log"))


@cache
def _versions() -> dict[str, str]:
    """What scores depend on: a digest of the library's files, and the versions of the libraries that compute them."""
    return scoring() | {"code": files.sha256(repr(sorted(uptodate.digest_files().items())).encode())[:10]}


def differs(file: Path, versions: dict[str, str]) -> str:
    """Why this process cannot work for a runner with these versions and this shard; "" if it can."""
    here = _versions()
    if other := [f"{name} {here[name]}, not {versions[name]}" for name in here if here[name] != versions[name]]:
        return f"the worker has other versions than the runner ({'; '.join(other)}); {ADVICE}"
    if not shards.read(file) or not os.access(file.parent, os.W_OK):
        return f"the worker cannot read {file} or cannot write beside it; workers need this folder at the same path"
    return ""


async def check(client: "Client", file: Path) -> list[dict]:
    """The resources that each worker of a cluster declares: `dask worker --resources "GB=64 GPU=1"`. Raise ProbeError if there is
    no worker, or one that cannot process the shard."""
    threads = await client.nthreads()
    start = f"start them with `dask worker {client.scheduler.address} --nthreads 1 --memory-limit 0`"
    if not threads:
        raise ProbeError(f"{client.scheduler.address} has no workers: {start}")
    if several := [worker for worker, n in threads.items() if n != 1]:
        raise ProbeError(f"{several[0]} runs several tasks at a time: {start}")
    for worker, wrong in (await client.run(differs, file, _versions(), on_error="return")).items():
        if isinstance(wrong, Exception):
            raise ProbeError(f"{worker} cannot import the kit ({wrong}); {ADVICE} ({paths.ROOT})")
        if wrong:
            raise ProbeError(f"{worker}: {wrong}")
    return list((await client.run(lambda dask_worker: dict(dask_worker.state.total_resources))).values())


def fitting(shard: dict, declared: list[dict], options: dict) -> dict[str, int]:
    """The memory (GB) and GPUs that a shard needs from a worker, as far as workers declare them."""
    names = {name for each in declared for name in each} & {"GB", "GPU"}
    wanted = dict(zip(("GB", "GPU"), need(shard, options), strict=True)) if names else {}
    wanted = {name: n for name, n in wanted.items() if n and name in names}
    if not any(all(each.get(name, 0) >= n for name, n in wanted.items()) for each in declared):
        raise ProbeError(f"{shard['model']} needs {wanted}, which no worker declares (`dask worker --resources`)")
    return wanted


def need(shard: dict, options: dict) -> tuple[int, int]:
    """Memory in GB (a power of 2, so that there are few kinds of jobs) and number of GPUs for a shard's model. Without gpu_gb
    (memory of one GPU) models run on CPUs; mem_gb and gpus take precedence.

    A served model needs none. If neither local files nor the name give the size, the config is downloaded from Hugging Face.
    Raise ProbeError if that fails and no memory is given.
    """
    served, gpu_gb, known = shard["model"].startswith(SERVERS), options.get("gpu_gb", 0), "mem_gb" in options
    parameters = 0.0 if served else preflight.parameters(shard["model"], fetch=not known)
    if parameters is None and not known:
        raise ProbeError(
            f"the size of {shard['model']} is unknown: its name does not state it, and no config.json is here or could be "
            "downloaded. Give --cluster mem_gb=... gpus=..."
        )
    each = {"8bit": 1.0, "4bit": 0.6}.get(shard["quantize"]) or (2.0 if gpu_gb and shard["dtype"] != "float32" else 4.0)
    weights = (parameters or 0) * each / 2**30
    memory = options.get("mem_gb") or 2 ** (3 + round(1.3 * weights)).bit_length()
    # a quarter more than the weights, for the activations of a forward
    gpus = max(1, -int(-1.25 * weights // gpu_gb)) if gpu_gb and not served else 0
    return memory, options.get("gpus", gpus)


def job(system: str, memory: int, gpus: int, logs: Path, options: dict) -> dict:
    """The arguments of dask-jobqueue's cluster for workers of one size."""
    own = {name: value for name, value in options.items() if name not in OWN}
    cores, minutes = options.get("cores", 2), options.get("timeout_min", 240)
    environment = steps.environments(1)[0]
    exports = {name: environment[name] for name in PASSED} | {"OMP_NUM_THREADS": cores, "MKL_NUM_THREADS": cores}
    # one shard at a time; the job limits the memory; a worker stops before its time is over, and a new job takes its place
    arguments = ["--nthreads", "1", "--memory-limit", "0", "--lifetime", f"{max(1, minutes - 5)}m"]
    lists = {
        "job_script_prologue": [f"export {name}={shlex.quote(str(value))}" for name, value in exports.items()],
        "job_extra_directives": [GPUS[system].format(gpus)] if gpus and GPUS[system] else [],
        "worker_extra_args": arguments,
    }
    pbs = {"resource_spec": f"select=1:ncpus={cores}:mem={memory}gb" + f":ngpus={gpus}" * bool(gpus)}
    return {
        "cores": cores,
        "processes": 1,
        "memory": f"{memory}GiB",
        "job_name": "probelib",
        "log_directory": str(logs),
        "walltime": f"{minutes // 60:02}:{minutes % 60:02}" + ":00" * (system != "lsf"),
        "scheduler_options": {"dashboard_address": ":0"},
        **(pbs if system == "pbs" else {}),
        **own,
        **{name: [*value, *own.get(name, [])] for name, value in lists.items()},
    }


@contextlib.asynccontextmanager
async def connected(address: str) -> AsyncIterator["Client"]:
    """A client of a scheduler that already runs."""
    from distributed import Client

    try:
        client = await Client(address, asynchronous=True)
    except (OSError, ValueError) as error:
        raise ProbeError(f"no Dask scheduler answers at {address}: {' '.join(str(error).split())}") from None
    async with client:
        yield client


@contextlib.asynccontextmanager
async def local(environments: list[dict]) -> AsyncIterator["Client"]:
    """A client of one worker process per environment. The processes end with this one."""
    from dask import config
    from distributed import Client, Nanny, Scheduler, SpecCluster

    common = {"nthreads": 1, "memory_limit": None, "host": "127.0.0.1", "silence_logs": logging.CRITICAL}
    workers = {n: {"cls": Nanny, "options": {**common, "env": each}} for n, each in enumerate(environments)}
    scheduler = {"cls": Scheduler, "options": {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}}
    with config.set({"distributed.scheduler.allowed-failures": 1}):
        cluster = SpecCluster(workers, scheduler, asynchronous=True, silence_logs=logging.CRITICAL)
        async with cluster, Client(cluster, asynchronous=True) as client:
            yield client


@contextlib.asynccontextmanager
async def batch(system: str, n: int, arguments: dict) -> AsyncIterator["Client"]:
    """A client of at most ``n`` jobs of a batch system with one worker each. A lost job is submitted again."""
    import dask_jobqueue
    from distributed import Client

    try:
        cluster = getattr(dask_jobqueue, f"{system.upper()}Cluster")(**arguments, asynchronous=True)
        async with cluster, Client(cluster, asynchronous=True) as client:
            cluster.scale(jobs=1)
            await cluster  # raises the batch system's errors
            cluster.adapt(minimum_jobs=0, maximum_jobs=n)
            yield client
    except (OSError, RuntimeError, TypeError, ValueError) as error:
        raise ProbeError(f"{system} does not accept the jobs: {' '.join(str(error).split())}") from error
