"""Shards: what the notebooks score, in pieces that leave the same store wherever they are processed."""

import os
import shutil

from probelib import facts, paths
from probelib.runner import plan, shards, steps
from tests.lm.remote.server import honest, serving
from tests.runner.conftest import MODEL, cut, parts, process


def test_shards_request_what_the_notebooks_request(smoke_run, tmp_path, monkeypatch):
    """With the store of a smoke run, three relations per shard find every part finished: the keys are the same."""
    shutil.copytree(smoke_run[0] / "runs/smoke/scores", tmp_path / "runs/smoke/scores")
    monkeypatch.setattr(paths, "RUNS", tmp_path / "runs")
    whole = plan.read()
    before, answered = parts(tmp_path), set()
    for file in shards.cut("smoke", whole.steps, plan.settings(whole, whole.steps, "smoke")):
        shard = shards.read(file)["shard"]
        few = shard | {"relations": shard["relations"][:3]}
        answered |= set(shards._score(few, file.parent.parent / "scores")["parts"])
    assert parts(tmp_path) == before
    models = ["atlas-llama-0.6m", "atlas-neox-0.15m", "atlas-neox-0.6m", "atlas-neox-0.6m-it", "atlas-t5-2m"]
    assert len(answered) > 80 and sorted({part.split("/")[0] for part in answered}) == models


def test_data_without_a_folder_is_left_to_its_notebook(place):
    """The profile paper names data whose folder only the command line knows; all other asks are cut."""
    place("paper")
    whole = plan.read()
    steps = [s for s in whole.steps if s.notebook in ("monitor/sec5_results", "distractors/sec4_2_humans")]
    given = {"models": [MODEL], "encoder_decoders": [], "n_facts": 1}
    files = shards.cut("paper", steps, plan.settings(whole, steps, "paper", given))
    assert files and {name for file in files for name, _ in shards.read(file)["shard"]["asks"]} == {"monitor.score"}


def test_facts_that_all_models_share_are_loaded_once(place, monkeypatch):
    place("many")
    load, loaded = facts.load, []
    monkeypatch.setattr(facts, "load", lambda **values: loaded.append(values) or load(**values))
    assert len(cut(models=[f"lab/model-{number}b" for number in range(1, 6)])) == 10 and len(loaded) == 1


def test_the_notebooks_beyond_score_all_models():
    assert plan.request("beyond.score").models({"models": ["my/model", MODEL]}) == ["my/model", MODEL]


def test_a_missing_part_is_computed_again(one_process, place):
    out = place("lost")
    process(cut())
    assert parts(out) == one_process and shards.left(cut()) == []
    next(out.rglob("*.parquet")).unlink()
    (lost,) = shards.left(cut())
    process([lost])
    assert parts(out) == one_process and shards.left(cut()) == []


def test_a_failure_has_its_reason_and_the_others_go_on(one_process, place, capsys, monkeypatch):
    out = place("fails")
    every = cut(models=["no/such-model", MODEL])
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    process(every)
    failed = [file for file in every if shards.read(file)["state"] == "failed"]
    assert {shards.read(file)["shard"]["model"] for file in failed} == {"no/such-model"}
    reasons = [shards.read(file)["reason"] for file in failed]
    assert all("no/such-model is not in the local Hugging Face cache" in reason for reason in reasons)
    assert not any("\n" in reason or "Traceback" in reason for reason in reasons)
    assert "Traceback" in failed[0].with_suffix(".log").read_text()
    assert parts(out) == one_process and shards.left(every) == failed
    said = shards.status(every)
    assert "no/such-model: 0 of 2 done, 2 failed" in said and f"{MODEL}: 2 of 2 done" in said
    assert "4 shards: 2 done, 2 failed" in said and "facts/s" in said and "min of one worker left" in said
    assert capsys.readouterr().out.count("FAILED") == 2


def test_an_error_of_a_library_points_to_the_log(place, monkeypatch):
    place("library")
    file, _ = cut()
    monkeypatch.setattr(shards, "_model", lambda *given: 1 / 0)
    process([file])
    assert shards.read(file)["reason"] == f"ZeroDivisionError: division by zero; see {file.with_suffix('.log')}"


def test_stores_of_two_machines_merge_by_copying(one_process, place, tmp_path):
    for machine, number in (("a", 0), ("b", 1)):
        place(machine)
        process([cut()[number]])
    out = place("both")
    for machine in ("a", "b"):
        shutil.copytree(tmp_path / machine, out, dirs_exist_ok=True)
    assert parts(out) == one_process
    process(shards.left(cut()))  # a file of b that says nothing may have replaced one of a
    assert parts(out) == one_process and shards.left(cut()) == []


def test_a_served_model_is_scored_in_shards_too(one_process, place):
    """Its shards say "server", of which no machine has to have one."""
    out = place("served")
    with serving(honest) as (url, _):
        shards._model.cache_clear()
        every = cut(models=[f"{url}#{MODEL}"])
        process(every)
    assert shards.devices(every) == {"server"} and len(parts(out)) == len(one_process)


def test_a_gpu_that_torch_cannot_use_is_reported(place, monkeypatch, tmp_path):
    """It is not replaced by the CPU: the notebooks would not look for such scores where torch has a GPU."""
    smi = tmp_path / "nvidia-smi"
    smi.write_text("#!/bin/sh\necho 'GPU 0: NVIDIA H100'\necho 'GPU 1: NVIDIA H100'\n")
    smi.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    for asked, there in (("", []), ("NoDevFiles", []), ("1", ["1"]), ("0,1", ["0", "1"])):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", asked)
        assert steps.gpus() == there
    place("driver")
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    shards._model.cache_clear()
    process(cut()[:1])
    reason = shards.read(cut()[0])["reason"]
    assert "a GPU that torch cannot use" in reason and "CUDA_VISIBLE_DEVICES= " in reason
