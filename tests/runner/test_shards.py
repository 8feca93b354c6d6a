"""Shards: any number of processes or machines leave the same store, and notebooks find in it what they ask."""

import getpass
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

import psutil
import pytest
import transformers as hf

from probelib import facts, paths
from probelib.errors import ProbeError
from probelib.runner import cli, plan, shards, steps
from tests import conftest
from tests.lm.remote.server import honest, serving

MODEL = "atlas-neox-0.15m"
PANEL = facts.load().relations["relation"].tolist()[:20]  # two shards


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A function that moves all products to another folder below the test's own."""

    def move(name: str) -> Path:
        out = tmp_path / name
        for key, path in (("OUT", out), ("RUNS", out / "runs"), ("FIGURES", out / "figures")):
            monkeypatch.setattr(paths, key, path)
        return out

    return move


def cut(**given) -> list[Path]:
    """Two small shards: MONITOR's questions about one fact of each of 20 relations."""
    whole = plan.read()
    steps = [step for step in whole.steps if step.notebook == "monitor/sec5_results"]
    given = {"models": [MODEL], "encoder_decoders": [], "n_facts": 1, "relations": PANEL} | given
    return shards.cut("smoke", steps, plan.settings(whole, steps, "smoke", given))


def parts(out: Path) -> dict[str, bytes]:
    return {str(p.relative_to(out)): p.read_bytes() for p in sorted(out.rglob("scores/**/*.parquet"))}


def record(file: Path) -> dict:
    return json.loads(file.read_text())


@pytest.fixture(scope="module")
def one_process(tmp_path_factory):
    """What one process leaves that does one shard after the other."""
    with pytest.MonkeyPatch.context() as patch:
        out = tmp_path_factory.mktemp("serial")
        patch.setattr(paths, "RUNS", out / "runs")
        for file in cut():
            assert shards.work(file)
        return parts(out)


def test_shards_ask_what_the_notebooks_ask(smoke, tmp_path, monkeypatch):
    """Over the store of a smoke run, the asks of three relations a shard find every part finished: the keys are the same."""
    shutil.copytree(smoke[0] / "runs/smoke/scores", tmp_path / "runs/smoke/scores")
    monkeypatch.setattr(paths, "RUNS", tmp_path / "runs")
    whole = plan.read()
    before, answered = parts(tmp_path), set()
    for file in shards.cut("smoke", whole.steps, plan.settings(whole, whole.steps, "smoke")):
        told = record(file)
        told["shard"]["relations"] = told["shard"]["relations"][:3]
        answered |= set(shards._do(file, told)["parts"])
    assert parts(tmp_path) == before
    models = ["atlas-llama-0.6m", "atlas-neox-0.15m", "atlas-neox-0.6m", "atlas-neox-0.6m-it", "atlas-t5-2m"]
    assert len(answered) > 80 and sorted({part.split("/")[0] for part in answered}) == models


def test_data_that_nobody_has_said_where_they_lie_are_left_to_their_notebook(place):
    """The profile paper names data whose folder only the command line knows; all other asks are cut."""
    place("paper")
    whole = plan.read()
    steps = [s for s in whole.steps if s.notebook in ("monitor/sec5_results", "distractors/sec4_2_humans")]
    given = {"models": [MODEL], "encoder_decoders": [], "n_facts": 1}
    files = shards.cut("paper", steps, plan.settings(whole, steps, "paper", given))
    assert files and {name for file in files for name, _ in record(file)["shard"]["asks"]} == {"monitor.score"}


def test_all_models_are_asked_by_the_notebooks_beyond():
    assert plan.request("beyond.score").models({"models": ["my/model", MODEL]}) == ["my/model", MODEL]


def test_two_processes_leave_what_one_does_and_a_second_run_does_nothing(one_process, place, capsys):
    out = place("two")
    assert shards.score(cut(), shards.processes, steps.environments(2)) == {}
    assert parts(out) == one_process
    assert capsys.readouterr().out.count("ok ") == 2
    assert all("GiB of weights" in file.with_suffix(".log").read_text() for file in cut())
    before = {p: p.stat().st_mtime_ns for p in out.rglob("*.json")}
    assert shards.score(cut(), shards.processes, steps.environments(2)) == {}
    assert "2 of 2 are done" in capsys.readouterr().out
    assert {p: p.stat().st_mtime_ns for p in out.rglob("*.json")} == before

    part = next(out.rglob("*.parquet"))  # a part that is gone is missed, and made again
    part.unlink()
    (lost,) = shards.left(cut())
    shards._write(lost, shards._fresh(lost) | {"state": "waiting"})
    shards.work(lost)
    assert parts(out) == one_process and shards.left(cut()) == []


def test_a_killed_worker_is_replaced(one_process, place):
    out = place("killed")
    with shards.processes(cut(), steps.environments(1)) as alive:
        busy = []  # between two shards none is running
        while not (list(out.rglob("*.parquet")) and busy):
            assert alive()
            time.sleep(0.01)
            busy = [file for file in cut() if record(file)["state"] == "running"]
        (busy,) = busy
        pid = record(busy)["pid"]
        os.kill(pid, signal.SIGKILL)
        while alive():
            time.sleep(0.05)
    assert record(busy)["tries"] == 2 and record(busy)["state"] == "done" and record(busy)["pid"] != pid
    assert parts(out) == one_process


def test_a_shard_that_kills_its_process_twice_has_failed(place):
    place("deadly")
    file, _ = cut()
    shards._write(file, record(file) | {"state": "running", "tries": 2, "asked": 0, "started": 0.0})
    assert "1 killed" in shards.status([file])
    assert shards.work(file)
    assert record(file)["state"] == "failed" and "killed 2 times" in record(file)["reason"]


def test_a_failure_has_its_reason_and_the_others_go_on(one_process, place, capsys, monkeypatch):
    out = place("fails")
    every = cut(models=["no/such-model", MODEL])
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    failed = shards.score(every, serial)
    assert {record(file)["shard"]["model"] for file in failed} == {"no/such-model"}
    assert all("no/such-model is not in the local Hugging Face cache" in reason for reason in failed.values())
    assert "Traceback" in next(iter(failed)).with_suffix(".log").read_text()
    assert parts(out) == one_process
    said = shards.status(every)
    assert "no/such-model: 0 of 2 done, 2 failed" in said and f"{MODEL}: 2 of 2 done" in said
    assert "4 shards: 2 done, 2 failed" in said and "facts/s" in said and capsys.readouterr().out.count("FAILED") == 2


def serial(todo: list[Path]):
    """An engine: this very process."""
    from contextlib import nullcontext

    return nullcontext(lambda: [shards.work(file) for file in todo] and False)


def test_stores_of_two_machines_merge_by_copying(one_process, place, tmp_path):
    for machine, number in (("a", 0), ("b", 1)):
        place(machine)
        shards.work(cut()[number])
    out = place("both")
    for machine in ("a", "b"):
        done = [file for file in (tmp_path / machine).rglob("*") if file.is_file()]
        for file in sorted(done, key=lambda file: "waiting" not in file.read_text(errors="replace")):
            target = out / file.relative_to(tmp_path / machine)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, target)
    assert parts(out) == one_process
    todo = shards.left(cut())  # their records say so, too, or at worst it is found out at once
    for file in todo:
        shards.work(file)
    assert parts(out) == one_process and shards.left(cut()) == []


def test_what_is_asked_of_a_cluster_goes_by_the_models_size():
    shard = {"model": "EleutherAI/pythia-12b", "quantize": None, "dtype": "auto"}
    weights = 12e9 * 2 / 2**30  # GiB in bfloat16
    asked = shards.requests(shard, {"gpu_gb": 80, "partition": "gpu"})
    assert asked["mem_gb"] == 4 + round(1.3 * weights) == 33 and asked["gpus_per_node"] == 1
    assert asked["slurm_partition"] == "gpu" and "slurm_gpu_gb" not in asked
    assert shards.requests(shard, {"gpu_gb": 24})["gpus_per_node"] == 2  # 1.25 x 22.4 GiB
    assert shards.requests(shard | {"quantize": "4bit"}, {"gpu_gb": 24})["gpus_per_node"] == 1
    assert "gpus_per_node" not in shards.requests(shard, {}) and shards.requests(shard, {"mem_gb": 9})["mem_gb"] == 9
    served = shard | {"model": "http://localhost:8000/v1#EleutherAI/pythia-12b"}
    assert shards.requests(served, {})["mem_gb"] == 4  # its weights are elsewhere


def test_a_size_that_no_name_tells_is_in_its_config(monkeypatch, tmp_path):
    """Of the config alone; where that cannot come either, no job is submitted at all."""
    shard = {"model": "some/thing", "quantize": None, "dtype": "auto"}
    config = hf.GPT2Config(vocab_size=50, n_embd=8192, n_layer=2, n_head=4)
    config.save_pretrained(tmp_path)
    monkeypatch.setattr("huggingface_hub.hf_hub_download", lambda model, file, **_: str(tmp_path / file))
    weights = sum(12 * 8192**2 for _ in range(2)) * 4 / 2**30
    assert shards.requests(shard, {})["mem_gb"] == pytest.approx(4 + 1.3 * weights, abs=1)


def test_no_job_is_submitted_before_all_are_known(place, monkeypatch):
    submitit = pytest.importorskip("submitit")
    place("orphans")
    submitted = []
    monkeypatch.setattr(submitit.AutoExecutor, "map_array", lambda *given: submitted.append(given) or [])
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with (
        pytest.raises(ProbeError, match="nobody/thing.*--slurm mem_gb="),
        shards.cluster(cut(models=[MODEL, "nobody/thing"]), {}, "local"),
    ):
        pass
    assert not submitted


def test_a_served_model_is_asked_in_shards_too(one_process, place):
    """Its shards say "server", of which no machine has to have one."""
    out = place("served")
    with serving(honest) as (url, _):
        shards._model.cache_clear()
        every = cut(models=[f"{url}#{MODEL}"])
        assert shards.score(every, serial) == {}
        assert shards.devices(every) == {"server"}
        whole = plan.read()
        steps = [step for step in whole.steps if step.notebook == "monitor/sec5_results"]
        settings = plan.settings(
            whole,
            steps,
            "smoke",
            {"models": [f"{url}#{MODEL}"], "encoder_decoders": [], "n_facts": 1, "relations": PANEL[:3]},
        )
        args = cli._parser().parse_args(["--on", "processes", "--jobs", "1"])
        assert cli.score("smoke", steps, settings, (), args)
    assert len(parts(out)) == len(one_process)


def test_a_gpu_that_torch_cannot_use_is_told(place, monkeypatch, tmp_path):
    """Rather than scored past on the CPU: the notebooks would not look for such scores where torch has a GPU."""
    smi = tmp_path / "nvidia-smi"
    smi.write_text("#!/bin/sh\necho 'GPU 0: NVIDIA H100'\necho 'GPU 1: NVIDIA H100'\n")
    smi.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    for asked, there in (("", []), ("NoDevFiles", []), ("1", ["1"]), ("0,1", ["0", "1"])):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", asked)
        assert shards.gpus() == there
    place("driver")
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    shards._model.cache_clear()
    (reason, *_) = shards.score(cut(), serial).values()
    assert "a GPU that torch cannot use" in reason and "CUDA_VISIBLE_DEVICES= " in reason


def test_the_command_line_refuses_what_it_cannot_do(capsys):
    for flags, word in ((["--on", "slrum"], "slurm"), (["--slurm", "partition=x"], "--on slurm")):
        assert cli.main(["--profile", "smoke", *flags]) == 2
        assert word in capsys.readouterr().err


@pytest.mark.slow
def test_submitits_own_machine_leaves_the_same(one_process, place):
    out = place("submitit")
    assert shards.score(cut(), shards.cluster, {}, "local") == {}
    assert parts(out) == one_process


def test_a_job_whose_machine_is_taken_away_is_queued_again_and_goes_on(one_process, place):
    """submitit's own signal of a preemption or of the end of the time."""
    submitit = pytest.importorskip("submitit")
    out = place("preempted")
    file, other = cut()
    job = submitit.AutoExecutor(out / "submitit", cluster="local").submit(shards.OnCluster(), str(file))
    deadline = time.monotonic() + 300
    while not list(out.rglob("scores/**/*.json")) and time.monotonic() < deadline:
        time.sleep(0.02)
    first = record(file)["pid"]
    os.kill(first, signal.SIGUSR2)
    while not job.done() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert record(file)["state"] == "done" and record(file)["tries"] == 1  # not held against the shard
    assert record(file)["pid"] != first
    shards.work(other)
    assert parts(out) == one_process


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


@pytest.mark.slow
def test_slurm_leaves_the_same(one_process, slurm, place):
    out = place("slurm")
    assert shards.score(cut(), shards.cluster, {"mem_gb": 1}) == {}, (slurm / "slurmd.log").read_text()[-2000:]
    assert parts(out) == one_process
    assert {record(file)["tries"] for file in cut()} == {1}


@pytest.mark.slow
@pytest.mark.parametrize(
    "preempt",
    [
        ["scancel", "--signal=USR2"],  # the warning before the time is over: submitit asks for another turn
        ["scontrol", "requeue"],  # a preemption
    ],
)
def test_slurm_queues_a_preempted_shard_again(one_process, slurm, place, preempt):
    out = place("preempted")
    first = cut()[0]
    with shards.cluster(cut(), {"mem_gb": 1}) as alive:
        wait(lambda: list(out.rglob("scores/**/*.json")))
        pid = record(first)["pid"]
        os.kill(pid, signal.SIGSTOP)  # it shall not end before it is preempted
        running = subprocess.check_output(["squeue", "-h", "-r", "-t", "running", "-o", "%i"], text=True).split()
        done = subprocess.run([*preempt, running[0]], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        os.kill(pid, signal.SIGCONT)
        # without a new start time Slurm waits two minutes with what was queued again
        start = ["scontrol", "update", f"JobId={running[0]}", "StartTime=now"]
        wait(lambda: subprocess.run(start, capture_output=True) and not alive())
    said = "".join(log.read_text() for log in out.rglob(f"submitit/{running[0]}_*.out"))
    assert said.count("Starting with JobEnvironment") == 2
    assert {record(file)["state"] for file in cut()} == {"done"} and parts(out) == one_process


def wait(condition, seconds: float = 300) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.05)


@pytest.mark.slow
def test_notebooks_make_the_same_tables_of_what_shards_scored(smoke, tmp_path):
    """The whole way: shards in processes, then the notebook; against a run in which the notebook itself asked the models."""
    said = conftest.run(tmp_path, "--only", "zplke/sec4_2_models", "--on", "processes")
    assert re.search(r"shards: 0 of \d+ are done", said) and "ok         zplke/sec4_2_models" in said
    makes = [
        artifact for step in plan.read().steps if step.notebook == "zplke/sec4_2_models" for artifact in step.makes
    ]
    for artifact in makes:
        made = sorted((tmp_path / "figures/smoke").glob(f"{artifact}.*"))
        assert made
        for file in made:
            assert file.read_bytes() == (smoke[0] / file.relative_to(tmp_path)).read_bytes(), file.name
    assert re.search(r"(\d+) shards: \1 done;", conftest.run(tmp_path, "--only", "zplke/sec4_2_models", "--status"))
