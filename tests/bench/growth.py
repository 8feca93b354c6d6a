"""How CPU seconds and memory grow with facts, options and examples: wanted are exponents of at most
1. ``whole`` measures the size of a graph; every model is scored by itself."""

from statistics import median

import pandas as pd
import torch

from probelib import lm
from tests.bench import scoring, workloads
from tests.bench.measuring import alone, exponent, write_table

MODEL = "atlas-neox-0.6m"
GROWN = {  # what grows -> sizes, and the requests of one size
    "facts per relation": ((40, 80, 160), lambda world, n: workloads.templates(world, n)),
    "options": ((100, 200, 400), lambda world, n: workloads.many_shot(world, 8, options=n)),
    "examples": ((10, 20, 40), lambda world, n: workloads.many_shot(world, 1, 8, n, options=5)),
}


def score(what: str, size: int) -> float:
    """CPU seconds for the requests of one size: the median of three, after a small warm-up."""
    torch.set_num_threads(1)
    requests, ours = GROWN[what][1](workloads.relations(), size), lm.load(MODEL)
    ours.logprobs(requests.prompts[:1], requests.continuations[:1])
    return median(scoring.timed(lambda: scoring.score(ours, requests)).cpu for _ in range(3))


def main() -> None:
    rows = []
    for what, (sizes, _) in GROWN.items():
        took = [alone(score, what, size) for size in sizes]
        seconds, peaks = [each["result"] for each in took], [each["peak"] for each in took]
        row = {"grows": what, "sizes": ", ".join(map(str, sizes))}
        row["CPU seconds"] = ", ".join(f"{each:.2f}" for each in seconds)
        row |= {"exponent": exponent(sizes, seconds)}
        rows.append(row | {"peak memory, GiB": ", ".join(f"{peak:.2f}" for peak in peaks)})
        print(*rows[-1].values(), sep=" | ", flush=True)
    write_table("growth", pd.DataFrame(rows), {"exponent": 2})
