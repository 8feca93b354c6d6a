"""The workloads of ``scoring`` on a real pretrained model and its tokenizer (extra ``real``), and
what bfloat16 gains and changes there."""

from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from probelib import lm
from tests.bench import scoring, workloads
from tests.bench.measuring import write_table

GOALS = scoring.GOALS | {"harness W1": 20, "harness W2": 3, "beams": 5}
COLUMNS = ["workload", "requests", "bfloat16 s", "float32 s", "nats moved: median", "1 % by more"]


def main() -> None:
    folder, world = lm.load("smollm2-135m").folder, workloads.relations()
    scoring.measure("real", folder, world, scoring.Size(1, 1, 1), GOALS)
    half(folder, world)


def half(folder: Path, world: list) -> None:
    """CPU seconds in both precisions, and how far log-probabilities of answers move."""
    models = [lm.load(folder, dtype=dtype) for dtype in ("bfloat16", "float32")] * 2
    works = {"W2 templates": workloads.templates(world, 4, 1)}
    works["W4 MONITOR"] = workloads.framings(world, 20, 1)
    rows = []
    for name, asked in works.items():
        timed = [scoring.timed(partial(scoring.score, model, asked)) for model in models]
        fast, exact = timed[2:]  # the first two warm up
        moved = np.abs(fast.result - exact.result)
        far = np.quantile(moved, [0.5, 0.99, 1])
        rows.append([name, len(moved), fast.cpu, exact.cpu, *far])
    table = pd.DataFrame(rows, columns=[*COLUMNS, "at most"])
    write_table("bfloat16", table, dict.fromkeys(table.columns[2:], 2))
