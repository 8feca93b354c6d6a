"""How long a user waits: for the command line, a notebook's first result, a new model, a whole run.

Seconds are the clock's, on an idle machine."""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import nbformat
import pandas as pd
import torch
import transformers as hf
from nbclient import NotebookClient

from probelib import lm
from probelib.paths import NOTEBOOKS, ROOT
from probelib.runner import plan
from tests.bench import workloads
from tests.bench.measuring import alone, write_table

RESULTS = {"display_data", "execute_result"}  # kinds of outputs, besides printed text


def command(*words: str, times: int = 1) -> float:
    """Seconds of a command, the median of several times."""
    taken = []
    for _ in range(times):
        started = time.perf_counter()
        subprocess.run(words, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        taken.append(time.perf_counter() - started)
    return median(taken)


def first_result(name: str) -> float:
    """Seconds from "Run All" to a notebook's first table or picture, its kernel's start included
    and nothing stored before; of a notebook without results to its end."""
    file, started = NOTEBOOKS / f"{name}.ipynb", time.perf_counter()
    client = NotebookClient(nbformat.read(file, 4), resources={"metadata": {"path": file.parent}})
    out = tempfile.TemporaryDirectory()
    with out, client.setup_kernel(env=os.environ | {"PROBELIB_OUT": out.name}):
        for number, cell in enumerate(client.nb.cells):
            client.execute_cell(cell, number)
            if RESULTS.intersection(output.output_type for output in cell.get("outputs", [])):
                break
    return time.perf_counter() - started


def save_gemma(folder: Path) -> None:
    """Random weights in the shape of Gemma 3 270M, whose vocabulary has 262,144 tokens."""
    config = hf.Gemma3TextConfig(hidden_size=640, intermediate_size=2048, num_hidden_layers=18)
    config.num_attention_heads, config.num_key_value_heads = 4, 1
    hf.AutoModelForCausalLM.from_config(config, dtype=torch.float32).save_pretrained(folder)
    workloads.tokenizer(workloads.relations()).save_pretrained(folder)


def first_score(folder: Path) -> float:
    """Seconds to the first score of a model: its weights are read, its paths checked."""
    started = time.perf_counter()
    lm.load(folder).logprobs("The capital of", " Peru")
    return time.perf_counter() - started


def main() -> None:
    rows = list[tuple]()

    def add(what: str, seconds: float, most="") -> None:
        rows.append((what, seconds, most))
        print(*rows[-1], sep=" | ", flush=True)

    with tempfile.TemporaryDirectory() as name:
        folder, smoke = Path(name), ("./run_all.sh", "--profile", "smoke")
        save_gemma(folder / "gemma")
        os.environ |= {"PROBELIB_OUT": str(folder / "out"), "XDG_CACHE_HOME": str(folder / "cache")}
        add("`import probelib`", command(sys.executable, "-c", "import probelib", times=5), "0.3 s")
        add("`./run_all.sh --help`", command("./run_all.sh", "--help", times=5), "0.3 s")
        steps = plan.steps_of(plan.read(), "atlas")
        first = sorted((first_result(step.notebook), step.notebook) for step in steps)
        for text, found in {"median": first[len(first) // 2], "slowest": first[-1]}.items():
            add(f"first result of a notebook, {text} of {len(first)}: {found[1]}", found[0], "15 s")
        add("`--profile smoke`, from an empty store", command(*smoke), "180 s")
        add("the same once more: nothing to do", command(*smoke))
        scored = alone(first_score, folder / "gemma")["result"]
        add("first score of a new model, 262,144 tokens in its vocabulary", scored, "30 s")
    table = pd.DataFrame(rows, columns=["waiting for", "seconds", "at most"])
    write_table("waiting", table, {"seconds": 2})
