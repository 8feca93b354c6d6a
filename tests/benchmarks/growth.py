"""How seconds and memory grow: many-shot multiple choice with 1 to 100 times as many facts, options, shots or models.

``python -m tests.benchmarks growth`` writes ``growth.csv``, ``growth.png`` and the table in README.md.
Every point is measured in a process of its own: CPU seconds of scoring into a store, with the first model loaded and checked
before, and the peak memory of the process. All that is not varied stays at ``BASE``.
"""

import tempfile
import time
from pathlib import Path

import pandas as pd

from probelib import files, lm, store
from probelib.report import use_style
from tests.benchmarks import workloads
from tests.benchmarks.measuring import alone, exponent, write_table

HERE = Path(__file__).parent
MODEL = "atlas-neox-0.15m"
BASE = {"facts": 10, "options": 10, "shots": 1, "models": 1}
FACTORS = (1, 3, 10, 30, 100)
FITTED = 10  # the exponent is that of the sizes from this factor on, where fixed costs matter less
MEASURED = {"seconds": "CPU seconds", "peak": "peak memory, GiB"}
DECIMALS = {f"exponent of {column}": 2 for column in MEASURED}


def measure() -> pd.DataFrame:
    """One row per point: ``dimension``, ``factor``, ``size``, ``seconds``, ``peak`` (GiB)."""
    rows = []
    for dimension in BASE:
        for factor in FACTORS:
            sizes = BASE | {dimension: BASE[dimension] * factor}
            took = alone(score_all, sizes)
            rows.append((dimension, factor, sizes[dimension], took["result"], took["peak"]))
            print(*rows[-1], flush=True)
    return pd.DataFrame(rows, columns=["dimension", "factor", "size", "seconds", "peak"])


def score_all(sizes: dict[str, int]) -> float:
    """CPU seconds of many-shot multiple choice of these sizes; one model after the other, each loaded anew like another one."""
    prompts, candidates = frames(sizes)
    model = lm.load(MODEL)
    model.choose_path()
    start = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        for number in range(sizes["models"]):
            store.score(model, prompts, candidates, f"{folder}/{number}")
            if number + 1 < sizes["models"]:
                model = lm.load(MODEL)
    return time.process_time() - start


def frames(sizes: dict[str, int]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Prompts and candidates as ``store.score`` takes them."""
    world = workloads.relations(
        subjects=sizes["facts"] + sizes["shots"], objects=max(400, sizes["options"], sizes["shots"])
    )
    asked = workloads.many_shot(world, sizes["facts"], 1, sizes["shots"], sizes["options"])
    facts = [f"fact {number}" for number in range(sizes["facts"])]
    prompts = pd.DataFrame({"prompt": facts, "fact": facts, "relation": "P0", "text": asked.prompts})
    labels = pd.DataFrame({"fact": facts, "label": asked.continuations}).explode("label")
    return prompts, labels.assign(label=labels["label"].str.strip(), candidate=labels["label"].str.strip())


def in_short(table: pd.DataFrame) -> pd.DataFrame:
    """One row per dimension: sizes, seconds and memory at the smallest and at the largest one, and their exponents."""
    rows = []
    for dimension, own in table.groupby("dimension", sort=False):
        first, last, fitted = own.iloc[0], own.iloc[-1], own[own["factor"] >= FITTED]
        row = {"varied": dimension, "from, to": f"{first['size']} to {last['size']}"}
        for column, name in MEASURED.items():
            row[name] = f"{first[column]:.2f} to {last[column]:.2f}"
            row[f"exponent of {column}"] = exponent(fitted["size"], fitted[column])
        rows.append(row)
    return pd.DataFrame(rows)


def draw(table: pd.DataFrame) -> None:
    """Seconds and memory against the factor, one line per dimension."""
    import matplotlib.pyplot as plt

    use_style()
    figure, axes = plt.subplots(1, 2, figsize=(7, 3), layout="constrained")
    short = in_short(table).set_index("varied")
    for axis, (column, name) in zip(axes, MEASURED.items(), strict=True):
        for marker, (dimension, own) in zip("os^D", table.groupby("dimension", sort=False), strict=True):
            label = f"{dimension} (from {BASE[dimension]}): {short.loc[dimension, f'exponent of {column}']:.2f}"
            axis.plot(own["factor"], own[column], marker, linestyle="-", markersize=4, label=label)
        axis.set(xscale="log", xlabel="times as many", ylabel=name)
        axis.legend(title="exponent", frameon=False)
    axes[0].set_yscale("log")
    axes[1].set_ylim(bottom=0)
    figure.savefig(HERE / "growth.png", dpi=110, metadata={"Software": None})


def main() -> None:
    table = measure().round({"seconds": 3, "peak": 3})
    files.write(HERE / "growth.csv", table.to_csv(index=False, lineterminator="\n"))
    draw(table)
    write_table("growth", in_short(table), DECIMALS)


if __name__ == "__main__":
    main()
