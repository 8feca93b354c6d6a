"""How time and memory grow: one scoring pass, with facts, options, shots or models made 1 to 100 times as many.

``python -m tests.benchmarks growth`` takes some minutes and writes ``growth.csv`` and ``growth.png`` beside this file. Every
point is measured in a process of its own: CPU seconds of all its threads, without imports, and its peak memory. All that is not
varied stays at ``BASE``.
"""

import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

from probelib import files, lm
from tests.benchmarks import workloads
from tests.benchmarks.measuring import alone

HERE = Path(__file__).parent
BASE = {"facts": 2, "options": 4, "shots": 2, "models": 1}
FACTORS = (1, 3, 10, 30, 100)


def measure() -> pd.DataFrame:
    """One row per point: ``dimension``, ``factor``, ``size``, ``seconds``, ``peak`` (GiB)."""
    rows = []
    with tempfile.TemporaryDirectory() as name:
        workloads.save_model(Path(name))
        alone(score_all, name, BASE)  # the files are in the system's cache from here on
        for dimension in BASE:
            for factor in FACTORS:
                sizes = BASE | {dimension: BASE[dimension] * factor}
                took = alone(score_all, name, sizes)
                rows.append((dimension, factor, sizes[dimension], took["result"], took["peak"]))
    return pd.DataFrame(rows, columns=["dimension", "factor", "size", "seconds", "peak"])


def score_all(folder: str, sizes: dict[str, int]) -> float:
    """CPU seconds of many-shot multiple choice of these sizes; a model after the other, loaded anew like another one."""
    objects = max(400, sizes["options"], sizes["shots"])
    world = workloads.relations(subjects=sizes["facts"] + sizes["shots"], objects=objects)
    asked = workloads.many_shot(world, sizes["facts"], 1, sizes["shots"], sizes["options"])
    start = time.process_time()
    for _ in range(sizes["models"]):
        lm.load(folder).logprobs(asked.prompts, asked.continuations)
    return time.process_time() - start


def exponents(table: pd.DataFrame, column: str) -> pd.Series:
    """dimension -> b of ``column`` ~ size ** b, by least squares over the logarithms of the upper half of the sizes.

    >>> points = pd.DataFrame({"dimension": "facts", "size": [1, 10, 100], "seconds": [3.0, 5.0, 500.0]})
    >>> exponents(points, "seconds")["facts"].item()
    2.0
    """
    upper = table[table["size"] >= table.groupby("dimension")["size"].transform("median")]
    fit = lambda rows: np.polyfit(np.log(rows["size"]), np.log(rows[column]), 1)[0].round(3)
    return upper.groupby("dimension", sort=False)[["size", column]].apply(fit)


def draw(table: pd.DataFrame) -> None:
    """Seconds and memory against the factor, a line per dimension."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(7, 3), layout="constrained")
    words = {"seconds": "CPU seconds", "peak": "peak memory, GiB"}
    for axis, column in zip(axes, words, strict=True):
        slope = exponents(table, column)
        for marker, (dimension, rows) in zip("os^D", table.groupby("dimension", sort=False), strict=True):
            label = f"{dimension} (from {BASE[dimension]}): exponent {slope[dimension]:.2f}"
            axis.plot(rows["factor"], rows[column], marker, linestyle="-", markersize=4, label=label)
        axis.set(xscale="log", yscale="log", xlabel="times as many", ylabel=words[column])
        axis.legend(fontsize=7, frameon=False)
    figure.savefig(HERE / "growth.png", dpi=150)


def main() -> None:
    table = measure()
    files.write(HERE / "growth.csv", table.round({"seconds": 3, "peak": 3}).to_csv(index=False, lineterminator="\n"))
    draw(table)
    print(table.to_string(index=False))
    print(pd.DataFrame({column: exponents(table, column) for column in ("seconds", "peak")}))


if __name__ == "__main__":
    main()
