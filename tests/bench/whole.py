"""A whole generated graph of 400,000 triples through a judge: seconds and memory from its first
part to its last.

``python -m tests.bench whole`` writes its table in README.md. The run stops after every fourth part
and is resumed, as a killed one would be. Seconds are CPU seconds."""

import resource
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

from probelib import grapheval, lm
from probelib.facts.graphs.graph import open_graph, write_graph
from probelib.grapheval import judge, whole_graph
from tests.bench.measuring import alone, exponent, write_table
from tests.facts.samples import synthetic

NO_TEMPLATES = pd.DataFrame(columns=["relation", "template"])
MODEL, TRIPLES, PARTS = "atlas-neox-0.15m", 400_000, 4  # parts between two stops


def any_judge(reader: judge.Reader) -> judge.Judge:
    """A judge that was trained on noise: it takes the time that any takes."""
    width = reader.model.hf_model.get_input_embeddings().weight.shape[1]
    states = np.random.default_rng(0).normal(size=(64, width)).astype(np.float32)
    about = {"states": reader.identity()}
    return judge.train(states, np.arange(64) % 3, np.ones(64), epochs=1, about=about)


def judge_graph(folder: Path) -> list[tuple]:
    """Rows (triples, statements, CPU seconds since the start, peak memory in GiB) at every stop
    until the graph is done."""
    reader, started, rows = judge.Reader(lm.load(MODEL)), time.process_time(), []
    one = any_judge(reader)
    kg = grapheval.verbalize(open_graph(folder), NO_TEMPLATES, whole_graph.DEFAULT_TEMPLATE)
    for _ in range(-(-len(kg.graph) // (PARTS * whole_graph.PART))):
        given = {"j": reader}, {"j": one}, kg, folder / "answers"
        parts = whole_graph.judge_graph(*given, most=PARTS)["j"]
        finished = [part.record() for part in parts if part.finished()]
        triples = min(len(finished) * whole_graph.PART, len(kg.graph))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        statements = sum(record["rows"] for record in finished)
        rows.append((triples, statements, time.process_time() - started, peak))
        print(*rows[-1], flush=True)
    return rows


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = write_graph(synthetic(TRIPLES), Path(name) / "graph")
        took = alone(judge_graph, folder)["result"]
    table = pd.DataFrame(took, columns=["triples", "statements", "CPU seconds", "peak memory, GiB"])
    write_table("whole", table, {"CPU seconds": 0, "peak memory, GiB": 2})
    print("seconds ~ triples to the power of", exponent(table["triples"], table["CPU seconds"]))
