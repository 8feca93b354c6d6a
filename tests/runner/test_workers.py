"""Workers: Dask on this machine, a cluster that runs already and jobs of Slurm leave the same store as one process."""

import asyncio
import contextlib
import getpass
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
import transformers as hf

from probelib.errors import ProbeError
from probelib.paths import ROOT
from probelib.runner import plan, shards, workers
from tests import conftest
from tests.runner.conftest import MODEL, cut, parts

DEADLY = "no/deadly-model"


def disturbance(marker: Path, command: str):
    """A plugin for workers: the first worker that finishes a part runs a command, which ends it."""
    from distributed import WorkerPlugin

    class Disturbance(WorkerPlugin):
        def setup(self, worker):
            import os
            import subprocess
            import threading

            from probelib import store

            write = store.write

            def write_and_end(*given):
                write(*given)
                try:
                    marker.touch(exist_ok=False)
                except FileExistsError:
                    return
                environment = os.environ | {"WORKER_PID": str(os.getpid())}
                subprocess.run(["sh", "-c", command], env=environment, check=True)
                threading.Event().wait()

            store.write = write_and_end

    return Disturbance()


def deadly_model():
    """A plugin for workers: a worker that loads the model ``DEADLY`` is killed."""
    from distributed import WorkerPlugin

    class Deadly(WorkerPlugin):
        def setup(self, worker):
            import os
            import signal

            from probelib.runner import shards

            load = shards._model
            shards._model = lambda name, *given: (
                os.kill(os.getpid(), signal.SIGKILL) if name == DEADLY else load(name, *given)
            )

    return Deadly()


def starts(file: Path) -> int:
    """In how many processes a shard began."""
    log = file.with_suffix(".log").read_text()
    return len(set(re.findall(r"^[\d-]+ [\d:]+ on .*, process (\d+)$", log, re.MULTILINE)))


def test_two_workers_of_which_one_is_killed_leave_the_same(one_process, place, capsys):
    out = place("killed")
    out.mkdir()

    async def disturbed():
        async with workers.local(workers.steps.environments(2)) as client:
            await client.register_plugin(disturbance(out / "killed", "kill -9 $WORKER_PID"))
            await workers.hand_out(client, cut(), 2)

    asyncio.run(disturbed())
    assert parts(out) == one_process and shards.left(cut()) == []
    assert sorted(map(starts, cut())) == [1, 2]
    assert all("GiB of weights" in file.with_suffix(".log").read_text() for file in cut())
    said = capsys.readouterr().out
    assert said.count("ok ") == 2 and "dashboard: http://127.0.0.1:" in said
    before = {p: p.stat().st_mtime_ns for p in out.rglob("*.*")}
    assert workers.score(cut()) == {}  # and a second run does nothing
    assert "2 of 2 are done" in capsys.readouterr().out
    assert {p: p.stat().st_mtime_ns for p in out.rglob("*.*")} == before


def test_a_shard_that_kills_its_worker_twice_has_failed_and_the_others_go_on(one_process, place, capsys, monkeypatch):
    out = place("deadly")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    deadly, missing = cut(models=[DEADLY])[0], cut(models=["no/such-model"])[0]

    async def disturbed():
        async with workers.local(workers.steps.environments(2)) as client:
            await client.register_plugin(deadly_model())
            await workers.hand_out(client, [deadly, missing, *cut()], 2)

    asyncio.run(disturbed())
    assert parts(out) == one_process and shards.left(cut()) == []
    assert "killed 2 times, most likely out of memory" in shards.read(deadly)["reason"]
    assert "is not in the local Hugging Face cache" in shards.read(missing)["reason"]
    said = capsys.readouterr()
    assert said.out.count("FAILED") == 2 and "Traceback" not in said.out + said.err


@contextlib.contextmanager
def scheduler():
    """The address of a scheduler in a process of its own."""
    command = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--port", "0", "--dashboard-address", ":0"]
    with subprocess.Popen([*command, "--host", "127.0.0.1"], stderr=subprocess.PIPE, text=True) as process:
        try:
            yield next(found.group() for line in process.stderr if (found := re.search(r"tcp://[\d.:]+", line)))
        finally:
            process.terminate()
            process.communicate()


@contextlib.contextmanager
def dask_workers(address: str, n: int, *flags: str, **environment: str):
    """Worker processes of a scheduler, as a user starts them."""
    environment = os.environ | {"PYTHONPATH": str(ROOT)} | environment
    command = [sys.executable, "-m", "distributed.cli.dask_worker", address, "--memory-limit", "0", *flags]
    started = [subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL) for _ in range(n)]
    try:
        asyncio.run(_joined(address, n))
        yield
    finally:
        for process in started:
            process.terminate()
        for process in started:
            process.wait()


async def _joined(address: str, n: int) -> None:
    async with workers.connected(address) as client:
        await client.wait_for_workers(n)


def test_a_running_cluster_leaves_the_same(one_process, place):
    """First it is refused, with the reason, while its workers cannot process shards."""
    out = place("cluster")
    with scheduler() as address:
        with pytest.raises(ProbeError, match="has no workers: start them with `dask worker tcp://"):
            workers.score(cut(), address)
        with dask_workers(address, 1, "--nthreads", "2"), pytest.raises(ProbeError, match="several tasks at a time"):
            workers.score(cut(), address)
        with dask_workers(address, 2, "--nthreads", "1", "--resources", "GB=8"):
            with pytest.raises(ProbeError, match="needs {'GB': 64}, which no worker declares"):
                workers.score(cut(), address, options={"mem_gb": 64})
            assert workers.score(cut(), address) == {}
    assert parts(out) == one_process


def test_a_scheduler_that_does_not_answer_is_reported():
    from dask import config

    at = f"tcp://127.0.0.1:{free_ports(1)[0]}"
    soon = config.set({"distributed.comm.timeouts.connect": "100ms"})
    with soon, pytest.raises(ProbeError, match="no Dask scheduler"):
        asyncio.run(_joined(at, 0))


def test_a_worker_with_other_code_or_another_store_is_refused(place, tmp_path, monkeypatch):
    place("refused")
    file, _ = cut()
    ours = workers._versions()
    assert workers.differs(file, ours) == ""
    assert workers._process(file, ours | {"torch": "1.0"})["reason"].startswith("the worker has other versions")
    assert f"torch {ours['torch']}, not 1.0" in workers.differs(file, ours | {"torch": "1.0"})
    assert "cannot read" in workers.differs(tmp_path / "nowhere" / file.name, ours)


def test_memory_and_gpus_go_by_the_models_size():
    shard = {"model": "EleutherAI/pythia-12b", "quantize": None, "dtype": "auto"}
    assert workers.need(shard, {"gpu_gb": 80}) == (64, 1)  # 4 + 1.3 x 22.4 GiB in bfloat16 = 33
    assert workers.need(shard, {"gpu_gb": 24}) == (64, 2)  # 1.25 x 22.4 GiB
    assert workers.need(shard | {"quantize": "4bit"}, {"gpu_gb": 24}) == (16, 1)
    assert workers.need(shard, {}) == (64, 0) and workers.need(shard, {"mem_gb": 9, "gpus": 3}) == (9, 3)
    served = shard | {"model": "http://localhost:8000/v1#EleutherAI/pythia-12b"}
    assert workers.need(served, {"gpu_gb": 80}) == (4, 0)  # its weights are elsewhere


def test_a_size_that_is_not_in_the_name_is_read_from_the_config(monkeypatch, tmp_path):
    shard = {"model": "some/thing", "quantize": None, "dtype": "auto"}
    config = hf.GPT2Config(vocab_size=50, n_embd=8192, n_layer=2, n_head=4)
    config.save_pretrained(tmp_path)
    monkeypatch.setattr("huggingface_hub.hf_hub_download", lambda model, file, **_: str(tmp_path / file))
    assert workers.need(shard, {}) == (16, 0)  # 6 GiB of weights


def test_no_job_is_submitted_before_all_sizes_are_known(place, monkeypatch):
    place("orphans")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr(workers, "batch", lambda *given: pytest.fail("a job was submitted"))
    with pytest.raises(ProbeError, match="nobody/thing.*--cluster mem_gb="):
        workers.score(cut(models=[MODEL, "nobody/thing"]), "slurm")


@pytest.mark.parametrize(
    ("system", "lines"),
    [
        ("slurm", ["--gpus-per-node=2", "--mem=64G", "-t 04:00:00", "-p fast", "--cpus-per-task=2", "--nice"]),
        ("pbs", ["select=1:ncpus=2:mem=64gb:ngpus=2", "walltime=04:00:00", "-q fast", "--nice"]),
        ("lsf", ["-gpu num=2", "-W 04:00", "-q fast", "--nice"]),
        ("sge", ["-l gpu=2", "h_rt=04:00:00", "-q fast", "--nice"]),
    ],
)
def test_jobs_request_memory_gpus_and_time(system, lines, tmp_path):
    """The script that dask-jobqueue would submit; nothing is started."""
    import dask_jobqueue

    options = {"queue": "fast", "gpu_gb": 24, "job_extra_directives": ["--nice"]}
    kind = getattr(dask_jobqueue, f"{system.upper()}Cluster").job_cls
    given = workers.job(system, 64, 2, tmp_path, options)
    del given["scheduler_options"]
    script = kind("tcp://host:1", name="0", **given).job_script()
    for line in (*lines, "--nthreads 1 --memory-limit 0 --lifetime 235m", f"export PYTHONPATH={ROOT}"):
        assert line in script, script


def test_a_missing_extra_is_reported(place, monkeypatch):
    place("extra")
    monkeypatch.setitem(sys.modules, "dask_jobqueue", None)
    with pytest.raises(ProbeError, match=r"dask_jobqueue is not installed.*\[cluster\]"):
        workers.score(cut())


SLURM = """\
ClusterName=kit
SlurmctldHost={host}(127.0.0.1)
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.sock
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} RealMemory={megabytes} State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES State=UP
"""


def free_ports(n: int) -> list[int]:
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(n)]
    numbers = [each.getsockname()[1] for each in held]
    for each in held:
        each.close()
    return numbers


@pytest.fixture
def slurm(tmp_path_factory, monkeypatch):
    """A Slurm of one node, this one, started from Debian's packages and ended after the test."""
    for name in ("munged", "slurmctld", "slurmd", "sbatch", "srun"):
        if shutil.which(name) is None:
            pytest.skip(f"{name} is not installed (Debian: slurmctld, slurmd, slurm-client, munge)")
    if os.geteuid():
        pytest.skip("slurmd starts jobs as their user, so it must be started by root")
    folder = tmp_path_factory.mktemp("slurm")
    (folder / "state").mkdir(), (folder / "spool").mkdir()
    (folder / "key").write_bytes(os.urandom(128))
    (folder / "key").chmod(0o400)
    conf = folder / "slurm.conf"
    host = socket.gethostname().split(".")[0]
    here = {"cpus": os.cpu_count(), "megabytes": int(0.9 * psutil.virtual_memory().total / 2**20)}
    conf.write_text(SLURM.format(host=host, user=getpass.getuser(), folder=folder, ports=free_ports(2), **here))
    monkeypatch.setenv("SLURM_CONF", str(conf))
    own = [f"--{word}-file={folder}/munge.{word}" for word in ("pid", "log", "seed")]
    commands = (
        ["munged", "--force", f"--socket={folder}/munge.sock", f"--key-file={folder}/key", *own],
        ["slurmctld", "-f", str(conf)],
        ["slurmd", "-f", str(conf)],
    )
    try:
        for command in commands:
            done = subprocess.run(command, capture_output=True, text=True, timeout=60)
            if done.returncode:
                pytest.skip(f"{command[0]} does not start here: {done.stderr.strip()[-200:]}")
        deadline = time.monotonic() + 60
        while "idle" not in (said := subprocess.run(["sinfo", "-h"], capture_output=True, text=True).stdout):
            if time.monotonic() > deadline:
                pytest.skip(f"the node does not come up: {said}")
            time.sleep(0.2)
        yield folder
    finally:
        for name in ("slurmd", "slurmctld", "munge"):
            if (folder / f"{name}.pid").exists():
                os.kill(int((folder / f"{name}.pid").read_text()), signal.SIGTERM)


OPTIONS = {"mem_gb": 1, "cores": 1, "interface": "lo"}


@pytest.mark.slow
def test_slurm_leaves_the_same(one_process, slurm, place):
    out = place("slurm")
    assert workers.score(cut(), "slurm", options=OPTIONS) == {}, (slurm / "slurmd.log").read_text()[-2000:]
    assert parts(out) == one_process
    assert subprocess.check_output(["squeue", "-h"], text=True) == ""  # no job is left


@pytest.mark.slow
@pytest.mark.parametrize("preempt", ["scontrol requeue $SLURM_JOB_ID", "scancel $SLURM_JOB_ID"])
def test_slurm_submits_a_preempted_job_again(one_process, slurm, place, preempt):
    out = place("preempted")
    out.mkdir()

    async def disturbed():
        arguments = workers.job("slurm", 1, 0, out / "logs", OPTIONS)
        async with workers.batch("slurm", 1, arguments) as client:
            await client.register_plugin(disturbance(out / "preempted", preempt))
            await workers.hand_out(client, cut(), 1)

    asyncio.run(disturbed())
    assert parts(out) == one_process and shards.left(cut()) == []
    assert sorted(map(starts, cut())) == [1, 2]


@pytest.mark.slow
def test_what_slurm_refuses_is_reported(slurm, place):
    place("refused")
    with pytest.raises(ProbeError, match="slurm does not accept the jobs: .*invalid partition"):
        workers.score(cut(), "slurm", options=OPTIONS | {"queue": "nowhere"})


@pytest.mark.slow
def test_notebooks_make_the_same_tables_of_what_shards_scored(smoke_run, tmp_path):
    """The whole way: shards on workers, then the notebook; against a run in which the notebook itself scored."""
    said = conftest.run(tmp_path, "--only", "zplke/sec4_2_models", "--on", "local")
    assert re.search(r"shards: 0 of \d+ are done", said) and "ok         zplke/sec4_2_models" in said
    (step,) = (step for step in plan.read().steps if step.notebook == "zplke/sec4_2_models")
    for artifact in step.makes:
        made = sorted((tmp_path / "figures/smoke").glob(f"{artifact}.*"))
        assert made
        for file in made:
            assert file.read_bytes() == (smoke_run[0] / file.relative_to(tmp_path)).read_bytes(), file.name
    assert re.search(r"(\d+) shards: \1 done\n", conftest.run(tmp_path, "--only", "zplke/sec4_2_models", "--status"))
