"""The whole smoke profile, really run: every product made, nothing twice, the same bytes after a
kill; notebooks kept clean."""

import json
import re
import signal
import socket
import time
from pathlib import Path

import matplotlib.pyplot as plt
import nbformat
import pandas as pd
import papermill
import pytest
import transformers as hf
from IPython import display

from probelib import lm, paths
from probelib.paths import NOTEBOOKS
from probelib.runner import plan
from tests.bench.campaign import scores_and_figures
from tests.conftest import run, start
from tests.lm import tiny
from tests.lm.remote.server import NAME, honest, serving


def test_every_artifact_of_the_plan_is_made(smoke_run):
    out, said = smoke_run
    steps = plan.read().steps
    for artifact in (a for step in steps for a in step.makes):
        stem = out / "figures" / "smoke" / artifact
        assert stem.with_suffix(".csv").stat().st_size > 0 and stem.with_suffix(".json").exists()
        assert stem.with_suffix(".png").exists() or stem.with_suffix(".html").exists()
    page = (out / "runs" / "smoke" / "report.html").read_text()
    assert "Not made yet" not in page and "This page failed" not in page
    assert all(f"<section id='{step.notebook}'>" in page for step in steps)
    assert all(f"ok         {step.notebook}" in said for step in steps)


def test_a_second_run_does_nothing(smoke_run):
    out, _ = smoke_run
    before = {p: p.stat().st_mtime_ns for p in out.rglob("*") if p.is_file() and p.name != "lock"}
    started = time.monotonic()
    said = run(out)
    assert "up to date" in said and "start" not in said and time.monotonic() - started < 10
    assert {
        p: p.stat().st_mtime_ns for p in out.rglob("*") if p.is_file() and p.name != "lock"
    } == before


def test_kill_minus_nine_in_the_middle_gives_the_same_bytes(smoke_run, tmp_path):
    """The runner and all its children are killed as soon as the first scores exist; the same
    command completes the run."""
    two = ("01_facts", "monitor/sec3_instability")
    process = start(tmp_path, "--only", *two)
    deadline = time.monotonic() + 300
    while (
        not list(tmp_path.rglob("scores/**/*.json"))
        and process.poll() is None
        and time.monotonic() < deadline
    ):
        time.sleep(0.02)
    assert process.poll() is None, "it ended before it could be killed"
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert len(list(tmp_path.rglob("done/**/*.json"))) < len(two)
    run(tmp_path, "--only", *two)
    made = tuple(
        f"figures/smoke/{a}."
        for step in plan.read().steps
        if step.notebook in two
        for a in step.makes
    )
    undisturbed = scores_and_figures(smoke_run[0])
    made_now = scores_and_figures(tmp_path)
    resumed = {name: made_now[name] for name in made_now if name.startswith((*made, "runs/"))}
    assert {name for name in undisturbed if name.startswith(made)} <= set(resumed)
    assert resumed == {name: undisturbed[name] for name in resumed}


def test_a_notebook_run_by_papermill_leaves_the_shipped_figures_alone(tmp_path, monkeypatch):
    monkeypatch.setenv("PROBELIB_OUT", str(tmp_path))
    files = str(NOTEBOOKS / "01_facts.ipynb"), str(tmp_path / "run.ipynb")
    papermill.execute_notebook(*files, kernel_name="python3", progress_bar=False)
    assert [folder.name for folder in (tmp_path / "figures").iterdir()] == ["mine"]
    assert plan.parameters.defaults(NOTEBOOKS / "01_facts.ipynb")["profile"] == "mine"


@pytest.fixture
def cells(tmp_path, monkeypatch):
    """A function that runs the code cells of a notebook in this process under the smoke profile
    with some parameters set, and returns the notebook's names."""
    monkeypatch.setattr(paths, "RUNS", tmp_path / "runs")
    monkeypatch.setattr(paths, "FIGURES", tmp_path / "figures")

    def execute(name: str, **parameters) -> dict:
        whole = plan.read()
        step = next(step for step in whole.steps if step.notebook == name)
        names = {"display": lambda *shown: None}
        for cell in nbformat.read(step.path, as_version=4).cells:
            if cell.cell_type == "code":
                exec(compile(cell.source, f"{name}, {cell.id}", "exec"), names)
            if "parameters" in cell.metadata.get("tags", []):
                names |= plan.settings(whole, [step], "smoke")[name] | parameters
        plt.close("all")
        return names

    return execute


def noise(notebooks: Path) -> dict[str, list[str]]:
    """What stands in executed notebooks beside their own outputs and bars of progress: notebook ->
    lines."""
    said = {}
    for path in sorted(notebooks.rglob("*.ipynb")):
        cells = nbformat.read(path, as_version=4).cells
        texts = [o.text for c in cells for o in c.get("outputs", []) if o.get("name") == "stderr"]
        lines = [
            line
            for line in re.split(r"[\r\n]", "".join(texts))
            if line.strip() and "%|" not in line
        ]
        said |= {path.stem: lines} if lines else {}
    return said


def test_no_library_prints_into_a_notebook(smoke_run):
    assert noise(smoke_run[0] / "runs" / "smoke" / "notebooks") == {}


def test_a_served_model_goes_through_a_notebook(tmp_path):
    asked = ["encoder_decoders=[]", "n_facts=1", "relations=[P37, P178, P108, P1412]"]
    with serving(honest) as (url, _):
        said = run(
            tmp_path, "--only", "monitor/sec5_results", "--models", f"{url}#{NAME}", "--set", *asked
        )
    assert "ok         monitor/sec5_results" in said


HOSTILE = [
    "http://127.0.0.1:9/x#", "=1+1", "a|b", "$$", "<script>alert(1)</script>", "\x1b[2J", "<|endoftext|>", "{0} %s",
    "Ke$ha and A$AP Rocky", "![x](http://127.0.0.1:9/x)", "$\\frac{1", "M*A*S*H _", "<img src=x onerror=alert(1)>",
]  # fmt: skip


def hostile_table(fktc: Path, folder: Path) -> Path:
    """Three columns with facts of FKTC; each label one of ``HOSTILE`` with a number."""
    rows = []
    for relation in ("P19", "P176", "P364"):
        for line in (fktc / f"{relation}-subclass.json").read_text().splitlines()[1:300]:
            row = json.loads(line)
            rows.append((row["subject"].strip(), relation, row["object"].strip()))
    table = pd.DataFrame(rows, columns=["subject", "relation", "object"]).drop_duplicates()
    texts = pd.unique(table[["subject", "object"]].to_numpy().ravel())
    label = {text: f"{HOSTILE[n % len(HOSTILE)]} {n}" for n, text in enumerate(texts)}
    for side in ("subject", "object"):
        table[side] = table[side].map(label)
    table.to_csv(folder / "mine.csv", index=False)
    return folder / "mine.csv"


def run_on_own_data(cells, name: str, data: str, folder: Path) -> None:
    """Run a notebook on few of these facts in this process."""
    accepts = next(step.accepts for step in plan.read().steps if step.notebook == name)
    few = {"n_facts": 2, "relations": ["P19", "P176"]}
    names = cells(name, data=data, folder=str(folder), **{k: few[k] for k in few if k in accepts})
    assert names["section"].provenance["parameters"]["data"] == data


TAKES_DATA = pytest.mark.parametrize(
    "name", [step.notebook for step in plan.read().steps if "data" in step.accepts]
)


@pytest.mark.slow
@TAKES_DATA
def test_every_notebook_runs_on_facts_of_ones_own(cells, fktc, name):
    run_on_own_data(cells, name, "fktc", fktc)


@pytest.mark.slow
@TAKES_DATA
def test_hostile_labels_are_shown_as_text(cells, tmp_path, fktc, monkeypatch, name):
    """No label becomes a tag, in a file or in what a notebook shows; none is fetched; and no
    notebook fails at one."""
    shown = []
    keep = lambda data, **_: shown.append(
        data if isinstance(data, dict) else {"text/html": data._repr_html_()}
    )
    monkeypatch.setattr(display, "display", keep)
    monkeypatch.setattr(socket.socket, "connect", lambda *to: pytest.fail(f"a request to {to[1:]}"))
    run_on_own_data(cells, name, "table", hostile_table(fktc, tmp_path))
    pages = [path.read_text() for path in (tmp_path / "figures").rglob("*.html")]
    pages += [data["text/html"] for data in shown if "text/html" in data]
    sentences = [data["text/markdown"] for data in shown if "text/markdown" in data]
    assert pages and not [
        text for text in (*pages, *sentences) if re.search("<script|<img src=x", text)
    ]
    assert not [text for text in sentences if re.search(r"!\[x\]\(", text)]


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> list[str]:
    """GPT-NeoX (Pythia) and BLOOM with random weights, as a user would bring them."""
    tokenizer, folder = lm.load("atlas-neox-0.15m").tokenizer, tmp_path_factory.mktemp("models")
    size = {"vocab_size": len(tokenizer), "bos_token_id": 0, "eos_token_id": tokenizer.eos_token_id}
    configs = {
        "neox": hf.GPTNeoXConfig(**tiny.WIDE | {"max_position_embeddings": 2048} | size),
        "bloom": hf.BloomConfig(hidden_size=64, n_layer=2, n_head=4, **size),
    }
    for name, config in configs.items():
        tiny.build(config).save_pretrained(folder / name)
        tokenizer.save_pretrained(folder / name)
    return [str(folder / name) for name in configs]


@pytest.mark.slow
def test_the_small_plan_runs_on_folders_of_its_architectures(tmp_path, folders):
    """Through every measure. What they were taught nobody knows: no ground truth is made."""
    run(tmp_path, "--profile", "small", "--only", "beyond/agreement", "grapheval/table2", "--models", ",".join(folders), "--set",
        "n_facts=3", "n=5", f"tuned=[{folders[1]}={folders[0]}]", "n_triples=200",
        "n_labels=20")  # fmt: skip
    made, names = tmp_path / "figures" / "small" / "beyond", lm.short_names(folders)
    assert {
        record["model"] for record in json.loads((made / "agreement.json").read_text())["models"]
    } == set(names)
    asked = json.loads((made.parent / "grapheval" / "table2.json").read_text())["parameters"]
    assert asked["tuned"] == [f"{names[1]}={names[0]}"]
    there = str(Path(folders[0]).parent).encode()  # where they lie is nobody's business
    assert not [file for file in made.parent.rglob("*.*") if there in file.read_bytes()]
    assert not (made / "ground_truth.json").exists()
