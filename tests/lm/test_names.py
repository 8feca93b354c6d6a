"""What a model is called: by its short name in tables and figures, and by everything that finds it again."""

import os

import pytest

from probelib import ProbeError, battery, lm, needs, run
from probelib.lm import loading
from probelib.lm.loading import with_base
from probelib.store import score
from tests.lm import tiny


@pytest.fixture(autouse=True)
def forgotten(monkeypatch):
    """No names of other tests."""
    monkeypatch.setattr(loading, "_places", {})


@pytest.fixture
def runs(tmp_path):
    """Two checkpoints of one run, one of another, whose name holds a "="."""
    for name in ("run-7/checkpoint-1", "run-7/checkpoint-2", "lr=1e-4/checkpoint-1"):
        tiny.folder(tmp_path / name)
    return tmp_path


def test_a_folder_goes_by_its_last_two_names(runs):
    paths = [f"{runs}/run-7/checkpoint-1", f"{runs}/lr=1e-4/checkpoint-1", f"{runs}/run-7/../run-7/checkpoint-2/"]
    assert lm.short_names(paths) == ["run-7/checkpoint-1", "lr=1e-4/checkpoint-1", "run-7/checkpoint-2"]
    one = lm.load("run-7/checkpoint-1")  # from then on
    assert one.folder == runs / "run-7" / "checkpoint-1" and one.name == "run-7/checkpoint-1"
    assert lm.load(paths[0]).name == one.name == one.identity()["model"]
    assert str(runs) not in str(one.describe())


def test_other_models_keep_their_names():
    for name in ("atlas-neox-2m", "EleutherAI/pythia-160m", None, [], "gpt@http://x/v1"):
        assert lm.short_names(name) == name


def test_a_served_model_goes_by_its_name_and_its_server(runs):
    there = f"http://localhost:8000/v1#{runs}/run-7/checkpoint-1"
    assert lm.short_names(there) == lm.load(there).name == "run-7/checkpoint-1 at localhost:8000"
    assert lm.load("run-7/checkpoint-1 at localhost:8000").model_name == f"{runs}/run-7/checkpoint-1"
    with pytest.raises(ProbeError, match="holds a user") as error:
        lm.short_names("http://user:word@localhost:8000/v1#atlas-neox-2m")
    assert "user:word" not in str(error.value)
    assert lm.short_names("http://localhost:8000/v2#atlas-neox-2m") == "atlas-neox-2m at localhost:8000"
    assert lm.short_names("http://localhost:8000/v1#atlas-neox-2m") == "http://localhost:8000/v1#atlas-neox-2m"


def test_names_do_not_change_when_they_are_shortened_again(runs):
    once = lm.short_names([f"{runs}/run-7/checkpoint-1", "atlas-neox-2m"])
    assert lm.short_names(once) == once  # a cell that is run twice


def test_folders_of_a_sweep_are_told_apart(tmp_path):
    paths = [str(tiny.folder(tmp_path / sweep / "seed0" / "final")) for sweep in ("a", "b")]
    paths.append(str(tiny.folder(tmp_path / "b" / "seed1" / "final")))
    assert lm.short_names(paths) == ["a/seed0/final", "b/seed0/final", "b/seed1/final"]
    assert lm.short_names(paths[0]) == lm.load(paths[0]).name == "a/seed0/final"  # as it is called from then on
    assert [str(lm.load(name).folder) for name in lm.short_names(paths)] == paths


def test_one_after_the_other_no_two_share_a_name(tmp_path):
    paths = [str(tiny.folder(tmp_path / sweep / "seed0" / "final")) for sweep in ("a", "b")]
    names = [lm.load(path).name for path in paths]
    assert names == ["seed0/final", "b/seed0/final"] == lm.short_names(paths)
    assert [str(lm.load(name).folder) for name in names] == paths


def test_a_link_is_another_name_and_a_hub_id_is_not_taken(runs):
    os.symlink(runs / "run-7" / "checkpoint-1", runs / "best")
    assert lm.short_names(f"{runs}/best") == f"{runs.name}/best"
    os.makedirs(runs / "models" / "EleutherAI")
    os.symlink(runs / "run-7" / "checkpoint-2", runs / "models" / "EleutherAI" / "pythia-70m")
    both = ["EleutherAI/pythia-70m", f"{runs}/models/EleutherAI/pythia-70m"]
    assert lm.short_names(both) == ["EleutherAI/pythia-70m", "models/EleutherAI/pythia-70m"]


def test_tuned_and_base_in_one_entry(runs):
    base, tuned = f"{runs}/lr=1e-4/checkpoint-1", f"{runs}/run-7/checkpoint-2"
    assert with_base(f"{tuned}={base}") == (tuned, base) and with_base(base) == (base, "")
    assert with_base(f"{base}={tuned}") == (base, tuned) and with_base("a/b=c") == ("a/b", "c")
    names, entries = lm.short_names([base, "atlas-neox-2m"]), lm.short_names([f"{tuned}={base}", base])
    assert entries == ["run-7/checkpoint-2=lr=1e-4/checkpoint-1", "lr=1e-4/checkpoint-1"]
    assert battery.tuned_of(names[0], entries) == "run-7/checkpoint-2"
    assert lm.load(with_base(entries[0])[0]).folder == runs / "run-7" / "checkpoint-2"


def test_graph_eval_asks_each_own_model_or_its_partner(runs):
    base, tuned = lm.short_names(f"{runs}/run-7/checkpoint-1"), lm.short_names(f"{runs}/run-7/checkpoint-2")
    given = ["atlas-neox-0.15m-it"]
    assert battery.answering([base, "atlas-neox-2m"], [f"{tuned}={base}", *given]) == [tuned]
    assert battery.answering([base, tuned], given) == [base, tuned]
    assert battery.answering(["atlas-neox-0.15m", "atlas-neox-2m"], given) == given
    assert battery.answering(["atlas-neox-2m"], []) == ["atlas-neox-2m"]


def test_a_run_takes_names_with_equals_signs_and_relative_lists(runs, monkeypatch):
    monkeypatch.chdir(runs)
    given = {"models": ["./lr=1e-4/checkpoint-1"], "tuned": ["./run-7/checkpoint-2=./lr=1e-4/checkpoint-1", "a=b"]}
    made = {name: run._absolute(value) for name, value in given.items()}
    assert made["models"] == [f"{runs}/lr=1e-4/checkpoint-1"]
    assert made["tuned"] == [f"{runs}/run-7/checkpoint-2={runs}/lr=1e-4/checkpoint-1", "a=b"]
    settings = {"one": made | {"tuned": made["tuned"][:1]}}
    assert list(needs.models(settings)) == [f"{runs}/lr=1e-4/checkpoint-1", f"{runs}/run-7/checkpoint-2"]
    needs.check(settings)


def test_scores_say_the_short_name_and_are_found_by_either(runs, tmp_path):
    import pandas as pd

    prompts = pd.DataFrame({"relation": ["P36"], "fact": ["f"], "prompt": ["p"], "text": ["a b c"]})
    candidates = pd.DataFrame({"fact": ["f", "f"], "candidate": ["x", "y"], "label": ["d", "e"]})
    path = runs / "run-7" / "checkpoint-1"
    rows = score(lm.load(path), prompts, candidates, tmp_path / "scores")
    assert set(rows["model"]) == {"run-7/checkpoint-1"}
    parts = set((tmp_path / "scores").rglob("*.parquet"))
    score(lm.load("run-7/checkpoint-1"), prompts, candidates, tmp_path / "scores")
    assert set((tmp_path / "scores").rglob("*.parquet")) == parts
