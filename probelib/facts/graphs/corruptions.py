"""GraphEval's corruptions (section 3.1): a triple with another head, relation or tail. None is in
the graph. None has the labels of a triple in the graph either: several entities or relations may
share a label.
"""

import hashlib
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import pyarrow.compute as pc

from probelib.facts.graphs import graph as kg
from probelib.facts.graphs.graph import SLOTS, Graph, contains, make_table
from probelib.facts.model import holds, rng

TRIES = 20  # rounds of resampling for corruptions without labels, or with those of a true triple


def askable(graph: Graph) -> dict[str, np.ndarray]:
    """Filters that a triple must pass to serve as a true statement: name of the filter -> which
    triples pass it, (triples,) bool."""
    has = kg.has_label(graph)
    filters = {"entity without a label": has[graph.head] & has[graph.tail]}
    if {"start", "end"} <= set(graph.triples.column_names):
        dates = graph.triples.select(["start", "end"]).to_pandas().astype(str)
        filters["holds no longer"] = holds(dates).to_numpy(bool)
    return filters


@dataclass(frozen=True)
class Spelled:
    """A graph whose entities (and relations) of one label are merged."""

    graph: Graph
    entity: np.ndarray  # number in the original graph -> number in the merged one, (entities,)
    relation: np.ndarray  # the same for relations, (relations,)
    named: np.ndarray  # which entities have a label, (entities,) bool


def spelled(graph: Graph) -> Spelled:
    """Merge the entities and relations of a graph that share a label."""
    labels = pc.coalesce(graph.relations["label"], graph.relations["relation"])
    entity, relation = (
        pc.fill_null(texts, "").combine_chunks().dictionary_encode().indices.to_numpy()
        for texts in (graph.entities["label"], labels)
    )
    parts = (entity[graph.head], relation[graph.relation], entity[graph.tail])
    merged = replace(graph, triples=make_table("triples", dict(zip(SLOTS, parts, strict=True))))
    return Spelled(merged, entity, relation, kg.has_label(graph))


def corruptions(graph: Graph, rows: np.ndarray, n=1, hard=False, seed=0, read=None) -> pd.DataFrame:
    """``n`` different corruptions per triple, or all that exist if there are fewer, sorted by
    triple: ``triple`` (row number), ``head``, ``relation``, ``tail``, and ``slot``, the index of
    the new part in ``SLOTS``.

    rows   row numbers of the triples to corrupt; each samples by (seed, row number)
    hard   replace the tail by another tail of the relation; otherwise head, relation or tail, with
           probability 1/3 each, by any entity or relation
    read   ``spelled(graph)``, if the caller has computed it already
    """
    read, found, waiting = read or spelled(graph), pd.DataFrame(), rows
    for attempt in range(n + TRIES):
        sampled = corrupt(graph, waiting, 1000 * seed + attempt, hard)
        found = pd.concat([found, sampled[_reads_false(sampled, read)]])
        found = found.drop_duplicates(["triple", *SLOTS])
        waiting = rows[pd.Series(rows).map(found["triple"].value_counts()).fillna(0) < n]
        if not len(waiting):
            break
    for row in waiting:  # for which sampling did not find n: every possible corruption, shuffled
        every = _possible(graph, row, hard)
        every = every[_reads_false(every, read)]
        shuffled = every.iloc[rng(seed, "corruptions", int(row)).permutation(len(every))]
        found = pd.concat([found, shuffled])
    found = found.drop_duplicates(["triple", *SLOTS]).groupby("triple").head(n)
    return found.sort_values("triple", kind="stable", ignore_index=True)


def corrupt(graph: Graph, rows: np.ndarray, seed: int = 0, hard: bool = False) -> pd.DataFrame:
    """One sampled corruption per triple, drawn again until it is not in the graph (the released
    code does not check), at most 64 times: those without one have no row. After 16 failed attempts
    the slot is drawn again, too. Arguments and columns as in ``corruptions``."""
    rows = np.asarray(rows, np.int64)
    true = np.stack([getattr(graph, slot)[rows] for slot in SLOTS]).astype(np.int64)
    slot, new, waiting = np.full(len(rows), -1), true[0].copy(), np.arange(len(rows))
    tails, begin = graph.tails
    sizes = np.array([graph.entities.num_rows, graph.relations.num_rows, graph.entities.num_rows])
    for attempt in range(64):
        if not len(waiting):
            break
        chance, relation = _uniform(seed, rows[waiting], attempt), true[1, waiting]
        if hard:
            slots, first = np.full(len(waiting), 2), begin[relation]
            values = tails[first + (chance * (begin[relation + 1] - first)).astype(np.int64)]
        else:
            draw = "slot" if attempt < 16 else f"slot {attempt}"
            slots = (_uniform(seed, rows[waiting], draw) * 3).astype(np.int64)
            values = (chance * sizes[slots]).astype(np.int64)
        good = ~contains(graph, *_replaced(true[:, waiting], slots, values))
        slot[waiting[good]], new[waiting[good]] = slots[good], values[good]
        waiting = waiting[~good]
    found = slot >= 0
    made = _replaced(true[:, found], slot[found], new[found])
    return _frame(rows[found], made, slot[found])


def _possible(graph: Graph, row: int, hard: bool) -> pd.DataFrame:
    """All corruptions of one triple. They outnumber the entities: only for triples for which
    sampling fails."""
    triple = np.array([[getattr(graph, slot)[row]] for slot in SLOTS], np.int64)
    if hard:
        tails, begin = graph.tails
        values = tails[begin[triple[1, 0]] : begin[triple[1, 0] + 1]]
        slots = np.full(len(values), 2)
    else:
        sizes = [graph.entities.num_rows, graph.relations.num_rows, graph.entities.num_rows]
        values = np.concatenate([np.arange(size) for size in sizes])
        slots = np.repeat(np.arange(3), sizes)
    made = _replaced(np.tile(triple, len(values)), slots, values)
    free = ~contains(graph, *made)
    return _frame(np.full(free.sum(), row), made[:, free], slots[free])


def _frame(rows: np.ndarray, made: np.ndarray, slots: np.ndarray) -> pd.DataFrame:
    return pd.DataFrame({"triple": rows, **dict(zip(SLOTS, made, strict=True)), "slot": slots})


def _replaced(triples: np.ndarray, slots: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Triples (3, n) with one part of each replaced."""
    triples = triples.copy()
    triples[slots, np.arange(triples.shape[1])] = values
    return triples


def _uniform(seed: int, rows: np.ndarray, draw: int | str) -> np.ndarray:
    """A number in [0, 1) for every row, (n,) float64, that depends only on seed, row and draw:
    SplitMix64 (Steele, Lea and Flood 2014), the row as its counter, seed and draw as its start."""
    start = hashlib.sha256(repr((seed, draw)).encode()).digest()[:8]
    x = (rows.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    x = x + np.frombuffer(start, "<u8")
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((x ^ (x >> np.uint64(31))) >> np.uint64(11)) * 2.0**-53


def _reads_false(triples: pd.DataFrame, read: Spelled) -> np.ndarray:
    """Which triples have labels, and other labels than every triple of the graph, (n,) bool."""
    head, relation, tail = (triples[slot].to_numpy() for slot in SLOTS)
    true = contains(read.graph, read.entity[head], read.relation[relation], read.entity[tail])
    return ~true & read.named[head] & read.named[tail]
