"""What a step depends on: the rooms of the library that it uses, and every file it names."""

import json
import subprocess
import sys

import nbformat
import pytest

from probelib import paths
from probelib.runner import plan, uptodate
from tests.lm import tiny


@pytest.fixture(scope="module")
def rooms():
    return uptodate.digest_rooms()


def code_of(notebook: str) -> str:
    cells = nbformat.read(paths.NOTEBOOKS / f"{notebook}.ipynb", as_version=4).cells
    return "\n".join(cell.source for cell in cells if cell.cell_type == "code")


def test_each_notebook_uses_its_own_room_and_the_shared_ones(rooms):
    found = {step.notebook: uptodate.reached(code_of(step.notebook), rooms) for step in plan.read().steps}
    of = lambda room: {notebook for notebook, own in found.items() if room in own}
    assert of("course") == set() and of("lm") == of("facts") == of("stats") == set(found)
    papers = {notebook for notebook in found if notebook.startswith(("zplke", "distractors", "grapheval"))}
    assert {"monitor/sec4_anchors", "explore", "beyond/agreement"} <= of("monitor") and not of("monitor") & papers


def test_what_python_really_imports_is_among_them(rooms):
    script = "import sys; print(*(n for n in sys.modules if n.startswith('probelib.')))"
    for notebook in ("monitor/sec5_results", "beyond/agreement"):
        lines = [line for line in code_of(notebook).splitlines() if line.startswith("from probelib")]
        code = "\n".join([*lines, script])
        said = subprocess.check_output([sys.executable, "-c", code], text=True)
        loaded = {name.split(".")[1] for name in said.split()}
        assert loaded <= set(uptodate.reached("\n".join(lines), rooms)) and "monitor" in loaded


@pytest.fixture
def own(tmp_path):
    """Two models, an adapter of the second, and a table of facts with its templates."""
    for name in ("one", "two"):
        tiny.folder(tmp_path / name)
    (tmp_path / "adapter").mkdir()
    config = {"base_model_name_or_path": str(tmp_path / "two")}
    (tmp_path / "adapter/adapter_config.json").write_text(json.dumps(config))
    (tmp_path / "beside").mkdir()
    (tmp_path / "beside/adapter_config.json").write_text('{"base_model_name_or_path": "two"}')
    (tmp_path / "facts.csv").write_text("subject,relation,object\n")
    (tmp_path / "facts.templates.csv").write_text("relation,template\n")
    (tmp_path / "notebooks").mkdir()
    return tmp_path


@pytest.mark.parametrize(
    ("values", "file"),
    [
        ({"models": ["{}/one"]}, "one/config.json"),
        ({"models": ["{}/one@chat"]}, "one/config.json"),
        ({"model_name": "{}/one/"}, "one/model.safetensors"),
        ({"tuned": ["{}/one={}/two"]}, "one/tokenizer.json"),
        ({"tuned": ["{}/one={}/two"]}, "two/tokenizer.json"),
        ({"tuned": ["{}/one@chat={}/two@chat"]}, "two/config.json"),
        ({"tuned": ["a=b={}/two"]}, "two/config.json"),
        ({"models": ["http://127.0.0.1:9/v1#{}/one"]}, "one/tokenizer.json"),
        ({"judge": "{}/one/model.safetensors"}, "one/model.safetensors"),
        ({"models": ["{}/adapter"]}, "adapter/adapter_config.json"),
        ({"models": ["{}/adapter@chat"]}, "two/model.safetensors"),
        ({"models": ["{}/beside"]}, "two/model.safetensors"),
        ({"models": ["../one"]}, "one/config.json"),
        ({"folder": "{}/facts.csv"}, "facts.csv"),
        ({"folder": "{}/facts.csv"}, "facts.templates.csv"),
        ({"data": "table:{}/facts.csv?subject:s", "graph": "{}/facts.csv?a:b"}, "facts.csv"),
        ({"settings": {"ratings_file": "{}/facts.csv"}}, "facts.csv"),
        ({"settings": {"deep": [{"er": ["{}/facts.csv"]}]}}, "facts.csv"),
    ],
)
def test_every_file_that_a_value_names_is_an_input(own, values, file):
    """Every form of ``load``'s docstring, and files in lists and dictionaries."""
    values = json.loads(json.dumps(values).replace("{}", str(own)))
    before = uptodate.outside(values, own / "notebooks")
    assert before == uptodate.outside(values, own / "notebooks")
    with open(own / file, "ab") as stream:
        stream.write(b" ")
    assert before != uptodate.outside(values, own / "notebooks")


@pytest.mark.parametrize("name", ["owner/name", "owner/name@main", "owner/name@chat", "hub:owner/name"])
def test_an_id_is_an_input_by_its_commit(tmp_path, monkeypatch, name):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    kind = "datasets" if name.startswith("hub:") else "models"
    ref = tmp_path / f"{kind}--owner--name" / "refs" / "main"
    ref.parent.mkdir(parents=True)
    found = []
    for commit in ("0" * 40, "1" * 40):
        ref.write_text(commit)
        uptodate._commit.cache_clear()
        values = {"data": name} if kind == "datasets" else {"tuned": [f"{name}=owner/name"]}
        found.append(uptodate.outside(values, tmp_path))
    assert commit in found[1].values() and found[0] != found[1]
    assert uptodate.outside({"title": "owner/name"}, tmp_path) == {}


def test_what_runs_write_is_no_input(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "RUNS", tmp_path / "runs")
    (tmp_path / "runs").mkdir()
    before = uptodate.outside({"folder": f"{tmp_path}/"}, tmp_path)
    (tmp_path / "runs/x.csv").write_text("")
    assert before == uptodate.outside({"folder": f"{tmp_path}/"}, tmp_path)
