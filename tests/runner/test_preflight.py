"""What a run needs, read off its plan."""

import json
import re

import pytest
import transformers as hf

from probelib import ProbeError, lm
from probelib.lm import names
from probelib.runner import cli, plan, preflight
from tests.lm import tiny
from tests.lm.remote.server import serving


@pytest.mark.parametrize(
    "name, expected",
    [
        ("bigscience/bloomz-560m", 560e6),
        ("bigscience/bloomz-7b1", 7.1e9),
        ("lmsys/vicuna-13b-v1.3", 13e9),
        ("upstage/llama-30b-instruct-2048", 30e9),
        ("google/flan-t5-xxl", None),
        ("mistralai/Mixtral-8x7B-v0.1", 56e9),
        ("openai-community/gpt2-xl", None),
        ("someone/model-1.5b2", None),
    ],
)
def test_parameters_of_a_name(name, expected):
    assert preflight.parameters(name) == (expected and pytest.approx(expected))


@pytest.mark.parametrize("name", ["atlas-neox-0.15m", "atlas-t5-2m"])
def test_a_shipped_model_is_measured(name):
    """Embeddings included, whatever the precision on disk."""
    assert preflight.parameters(name) == lm.load(name).hf_model.num_parameters()


@pytest.mark.parametrize("fetched", [False, True])
def test_a_config_is_preferred_to_a_name(tmp_path, monkeypatch, fetched):
    """In a folder that has no weights (yet), or among the files that were fetched before under a name."""
    name = "someone/tiny-7b"
    assert preflight.parameters(name) == 7e9
    commit = tmp_path / "models--someone--tiny-7b" / "snapshots" / "abc"
    config = hf.T5Config(vocab_size=50, d_model=16, d_kv=4, d_ff=32, num_layers=2, num_heads=4)
    config.save_pretrained(commit)
    (commit.parents[1] / "refs").mkdir()
    (commit.parents[1] / "refs" / "main").write_text("abc")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    expected = sum(p.numel() for p in hf.T5ForConditionalGeneration(config).parameters())
    assert preflight.parameters(name if fetched else str(commit)) == expected


@pytest.mark.parametrize(
    "config",
    [
        {"model_type": "deberta", "vocab_size": 50},  # an encoder
        {"model_type": "mine", "auto_map": {"AutoConfig": "code.Config", "AutoModelForCausalLM": "code.Model"}},
        {"model_type": "nobody's"},
    ],
)
def test_a_config_of_no_language_model_gives_no_size(tmp_path, config, monkeypatch):
    # to code that is not here, transformers would ask on the screen
    monkeypatch.setattr("builtins.input", lambda *_: "y")
    (tmp_path / "thing").mkdir()
    (tmp_path / "thing" / "config.json").write_text(json.dumps(config))
    assert preflight.parameters(str(tmp_path / "thing")) is None


@pytest.mark.parametrize(
    "given, said",
    [
        ({"models": ["models/run-7/checkpoint-10"]}, "models/run-7/checkpoint-10 is no folder, no Hugging Face id"),
        ({"models": ["EleutherAI/pythia-160m/"]}, "is no folder"),
        ({"models": ["gpt-4o@http://127.0.0.1:9/v1"]}, "is no folder"),  # a chat model gives no log-probabilities
        ({"judge": "gpt-4o@http://127.0.0.1:99999/v1"}, "is not a valid address"),
        ({"models": ["atlas-neox-2.4m", None]}, "models: None is of type NoneType"),
        ({"models": [3]}, "models: 3 is of type int"),
        ({"studied": 3}, "studied: 3 is of type int"),
        ({"quantize": "3bit"}, "unknown quantize '3bit'"),
        ({"dtype": "float64"}, "unknown dtype 'float64'"),
    ],
)
def test_values_that_no_model_takes_are_reported_before_a_run(given, said):
    preflight.check({"one": {"judge": "gpt-4o@http://127.0.0.1:9/v1", "quantize": None, "models": ["a/b"]}})
    with pytest.raises(ProbeError, match=re.escape(said)):
        preflight.check({"one": given})


def test_a_chat_model_of_a_server_is_tested_before_a_run():
    """Where the command line names it; as it does not list its models, by a question."""
    said = {"choices": [{"message": {"content": "Yes."}}]}
    with serving(lambda path, body, log: (200 if body["model"] == "known" else 404, said, {})) as (url, log):
        for name, given in (("unknown", ["n_facts"]), ("known", ["judge"])):
            preflight.check({"one": {"judge": f"{name}@{url}"}}, given, online=True)
        assert [(path, body["model"]) for path, body, _ in log] == [("/v1/chat/completions", "known")]
        with pytest.raises(ProbeError, match="no response from the model 'unknown'"):
            preflight.check({"one": {"judge": f"unknown@{url}"}}, ["judge"], online=True)


def test_each_choice_of_data_names_its_notebooks():
    settings = {
        "a": {"n_facts": 3},
        "b": {"data": "fktc", "folder": None},
        "c": {"n_facts": 3},
        "d": {"profile": "smoke"},
    }
    assert preflight.data(settings) == {"n_facts=3": ["a", "c"], "data=fktc": ["b"], "the notebook's defaults": ["d"]}


@pytest.mark.parametrize("profile", ["smoke", "atlas", "small", "paper"])
def test_every_profile_passes_the_dry_run(profile, capsys):
    assert cli.main(["--profile", profile, "--dry-run"]) == 0
    said = capsys.readouterr().out
    whole = plan.read()
    settings = plan.settings(whole, whole.steps, profile)
    assert all(model in said for model in preflight.models(settings)) and "GiB" in said and "\nfacts:\n" in said
    for model in plan.read().profiles[profile].get("models", []):
        assert model in preflight.models(settings)


@pytest.mark.parametrize(
    "given, said",
    [
        ({"relations": ["P3666"]}, "unknown relation 'P3666'"),
        ({"data": "fktcc", "folder": "x"}, "unknown data 'fktcc'; did you mean fktc"),
        ({"data": "table", "folder": "x.csv"}, "x.csv: no such file"),
        ({"n_facts": 0}, "n_facts is 0"),
        ({"data": "tabel"}, "unknown data 'tabel'; did you mean table"),
        ({"data": "table"}, "needs folder="),
    ],
)
def test_facts_that_cannot_be_read_are_reported_before_a_run(given, said):
    preflight.check({"one": {"n_facts": 3}, "two": {"folder": "scores of another kind"}}, ["folder"])  # not of facts
    # a plan's data, and nobody has said where they lie
    preflight.check({"one": {"data": "fktc", "n_facts": 3}}, ["n_facts"])
    with pytest.raises(ProbeError, match=said):
        preflight.check({"one": {"n_facts": 3} | given}, given)


def test_two_models_of_one_name_are_reported_before_a_run(tmp_path, monkeypatch):
    monkeypatch.setattr(names, "_sources", {})
    paths = [str(tiny.folder(tmp_path / sweep / "run" / "final")) for sweep in ("a", "b")]
    preflight.check({"one": {"models": paths[:1]}, "two": {"models": paths[1:]}})
    with pytest.raises(ProbeError, match="have the same display name 'run/final'"):
        preflight.check({"one": {"models": paths[:1], "tuned": paths[1:]}})


def test_a_base_that_no_notebook_uses_is_reported_before_a_run():
    both = {"models": ["atlas-neox-2.4m"], "tuned": ["atlas-neox-5m-it=atlas-neox-2.4m", "atlas-neox-1.2m"]}
    elsewhere = {"models": ["atlas-llama-0.6m"], "tuned": ["atlas-neox-5m-it=atlas-neox-2.4m"]}
    preflight.check({"one": both, "two": elsewhere, "three": {"tuned": ["atlas-neox-1.2m=a/b"]}}, ["data"])
    preflight.check({"one": both, "two": elsewhere}, ["tuned"])
    with pytest.raises(ProbeError, match="atlas-neox-2.4m is not among the models \\(atlas-llama-0.6m\\)"):
        preflight.check({"two": elsewhere}, ["tuned"])


@pytest.mark.parametrize("graph", ["dbpedia.ttl", "no/folder"])
def test_a_missing_graph_is_reported_before_a_run(graph):
    preflight.check({"one": {"graph": "atlas"}, "two": {"n_facts": 3}}, ["graph"])
    with pytest.raises(ProbeError, match=f"no graph '{graph}'"):
        preflight.check({"one": {"graph": graph}}, ["graph"])
