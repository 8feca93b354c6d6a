"""Semantic distractors among a million generated entities: milliseconds a query, memory."""

import resource
import time

import numpy as np

from probelib.distractors import retrieval
from probelib.facts.graphs.graph import synthetic
from tests.benchmarks.measuring import row, write_rows

ENTITIES, TRIPLES, QUERIES, N = 1_000_000, 3_500_000, 50, 100


def main() -> None:
    graph = synthetic(TRIPLES, ENTITIES)
    before, started = _peak(), time.process_time()
    kb = retrieval.Knowledge(graph)
    features = kb.postings.shape[1]
    indexing = time.process_time() - started
    rows, seconds = np.random.default_rng(0).integers(0, len(graph), QUERIES), []
    for triple in rows:
        obj = int(graph.tail[triple])
        started = time.process_time()
        found = retrieval.nearest(kb, obj, retrieval.typed_alike(kb, obj), N)
        seconds.append(time.process_time() - started)
        assert len(found) == N
    low, middle, high = (1000 * np.quantile(seconds, q) for q in (0.05, 0.5, 0.95))
    write_rows(
        "retrieval",
        [
            row(f"indexing {ENTITIES:,} entities, {TRIPLES:,} triples", indexing, "CPU seconds", None),
            row("features", features / 1e6, "million", None),
            row(f"a query of the {N} nearest of the same type, median", middle, "ms of CPU time", 50, less=True),
            row("the same, 5 %", low, "ms", None),
            row("the same, 95 %", high, "ms", None),
            row("peak memory", _peak(), "GiB", 4, less=True),
            row("of which the generated graph", before, "GiB", None),
        ],
    )


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


if __name__ == "__main__":
    main()
