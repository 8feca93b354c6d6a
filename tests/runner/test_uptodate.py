"""What a step depends on: every file and id that its parameters name."""

import json

import pytest

from probelib import paths
from probelib.runner import uptodate


@pytest.fixture
def own(tmp_path):
    """Two models, two adapters of the second, and a table of facts with its templates."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        for file in ("config.json", "tokenizer.json", "model.safetensors"):
            (tmp_path / name / file).write_text("{}")
    for adapter, base in (("adapter", str(tmp_path / "two")), ("beside", "two")):
        (tmp_path / adapter).mkdir()
        config = json.dumps({"base_model_name_or_path": base})
        (tmp_path / adapter / "adapter_config.json").write_text(config)
    for name in ("facts.csv", "facts.templates.csv"):
        (tmp_path / name).touch()
    (tmp_path / "notebooks").mkdir()
    return tmp_path


NAMED = [
    ({"models": ["{}/one"]}, "one/config.json"),
    ({"models": ["{}/one@chat"]}, "one/config.json"),
    ({"models": ["mine={}/one"]}, "one/config.json"),
    ({"model_name": "{}/one/"}, "one/model.safetensors"),
    ({"tuned": ["{}/one={}/two"]}, "one/tokenizer.json"),
    ({"tuned": ["{}/one@chat={}/two@chat"]}, "two/config.json"),
    ({"tuned": ["a=b={}/two"]}, "two/config.json"),
    ({"models": ["http://127.0.0.1:9/v1#{}/one"]}, "one/tokenizer.json"),
    ({"judge": "{}/one/model.safetensors"}, "one/model.safetensors"),
    ({"models": ["{}/adapter"]}, "adapter/adapter_config.json"),
    ({"models": ["{}/adapter@chat"]}, "two/model.safetensors"),
    ({"models": ["{}/beside"]}, "two/model.safetensors"),
    ({"models": ["../one"]}, "one/config.json"),
    ({"settings": {"ratings": "mine.csv"}}, "notebooks/mine.csv"),
    ({"folder": "{}/facts.csv"}, "facts.csv"),
    ({"folder": "{}/facts.csv"}, "facts.templates.csv"),
    ({"data": "table:{}/facts.csv?subject:s", "graph": "{}/facts.csv?a:b"}, "facts.csv"),
    ({"settings": {"deep": [{"er": ["{}/facts.csv"]}]}}, "facts.csv"),
]


@pytest.mark.parametrize(("values", "file"), NAMED)
def test_every_file_that_a_value_names_is_an_input(own, values, file, monkeypatch):
    """Every form of ``load``'s docstring, and files in lists and dictionaries."""
    monkeypatch.chdir(own / "notebooks")
    values = json.loads(json.dumps(values).replace("{}", str(own)))
    before = uptodate.outside(values)
    assert before == uptodate.outside(values)
    with open(own / file, "ab") as stream:
        stream.write(b" ")
    assert before != uptodate.outside(values)


@pytest.mark.parametrize("name", ["owner/name", "owner/name@main", "owner/name@chat"])
def test_an_id_is_an_input_by_its_commit(tmp_path, monkeypatch, name):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    ref = tmp_path / "models--owner--name" / "refs" / "main"
    ref.parent.mkdir(parents=True)
    found = []
    for commit in ("0" * 40, "1" * 40):
        ref.write_text(commit)
        uptodate._commit.cache_clear()
        found.append(uptodate.outside({"tuned": [f"{name}=owner/name"]}))
    assert commit in found[1].values() and found[0] != found[1]
    assert uptodate.outside({"title": "owner/name"}) == {}


def test_what_runs_write_is_no_input(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "RUNS", tmp_path / "runs")
    (tmp_path / "runs").mkdir()
    before = uptodate.outside({"folder": f"{tmp_path}/"})
    (tmp_path / "runs/x.csv").touch()
    assert before == uptodate.outside({"folder": f"{tmp_path}/"})
