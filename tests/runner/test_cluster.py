"""Notebooks on a Dask cluster that runs already."""

import asyncio
import contextlib
import os
import re
import subprocess
import sys

import pytest

from probelib.errors import ProbeError
from probelib.paths import ROOT
from probelib.runner import cli, cluster, kernel
from tests.conftest import PROFILE
from tests.runner.conftest import set_out

WRITE = """
import os, pathlib
out = pathlib.Path(os.environ["PROBELIB_OUT"])
file = out / f"figures/{profile}/p/t1.csv"
file.parent.mkdir(parents=True, exist_ok=True)
file.write_text(str(models))
"""
MODELS = ["atlas-neox-0.15m", "atlas-neox-0.3m"]


@contextlib.contextmanager
def scheduler():
    """The address of a scheduler in a process of its own."""
    command = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--port", "0"]
    command += ["--dashboard-address", "127.0.0.1:0", "--host", "127.0.0.1"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            lines = (re.search(r"tcp://[\d.:]+", line) for line in process.stderr)
            yield next(found.group() for found in lines if found)
        finally:
            process.terminate()
            process.communicate()


@contextlib.contextmanager
def worker(address: str, *flags: str):
    """A worker of a scheduler, as a user starts it."""
    from distributed import Client

    command = [sys.executable, "-m", "distributed.cli.dask_worker", address, "--memory-limit", "0"]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    process = subprocess.Popen([*command, *flags], env=environment, stderr=subprocess.DEVNULL)
    try:
        with Client(address) as client:
            client.wait_for_workers(1)
        yield
    finally:
        process.terminate()
        process.wait()


@pytest.mark.slow
def test_a_running_cluster_makes_the_products(make_plan, tmp_path, monkeypatch, capsys):
    """First it is refused, with the reason, while its workers cannot execute notebooks."""
    out = set_out(monkeypatch, tmp_path / "out")
    entries = [{"notebook": "a", "makes": ["p/t1"]}]
    cells = {"a": [PROFILE + "\nmodels: list = []", WRITE]}
    file = make_plan(cells, entries, {"smoke": {"models": MODELS}})
    with scheduler() as address:
        run = lambda: cli.main(["--plan", str(file), "--profile", "smoke", "--on", address])
        with worker(address, "--nthreads", "2"):
            assert run() == 2 and "one task at a time are needed" in capsys.readouterr().err
        with worker(address, "--nthreads", "1"):
            assert run() == 0, capsys.readouterr()
    assert (out / "figures/smoke/p/t1.csv").read_text() == str(MODELS)


def connect(on: str, jobs: int) -> list:
    async def places():
        async with cluster.workers(on, jobs) as found:
            return [place.func for place in found]

    return asyncio.run(places())


def test_local_workers_are_processes_and_a_silent_scheduler_is_reported():
    from dask import config

    assert connect("local", 2) == [kernel.execute] * 2
    soon = config.set({"distributed.comm.timeouts.connect": "100ms"})
    with soon, pytest.raises(ProbeError, match="no Dask scheduler"):
        connect("tcp://127.0.0.1:9", 1)
