"""GraphEval's corruptions: false triples made from the true ones of a knowledge graph (section
3.1).

A corruption of a triple replaces its head, relation or tail (``graph.corrupt``). None is in the
graph. None has the labels of a triple in the graph either: several entities or relations may share
a label.
"""

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from probelib.facts.graphs import graph as kg
from probelib.facts.graphs.graph import SLOTS, Graph, contains, make_table
from probelib.facts.model import holds, rng

TRIES = 20  # rounds of resampling for corruptions without labels, or with those of a true triple


def askable(graph: Graph) -> dict[str, np.ndarray]:
    """Filters that a triple must pass to serve as a true statement: name of the filter -> which
    triples pass it, (triples,) bool."""
    columns = set(graph.triples.column_names)
    filters = {"entity without a label": kg.labelled(graph)}
    if "rank" in columns:
        filters["deprecated or outranked"] = kg.best_rank(graph)
    if {"start", "end"} <= columns:
        dates = {name: graph.triples[name].cast(pa.large_string()) for name in ("start", "end")}
        dates = pa.table(dates).to_pandas(types_mapper=pd.ArrowDtype)
        filters["holds no longer"] = holds(dates).to_numpy(bool)
    return filters


@dataclass(frozen=True)
class Spelled:
    """A graph whose entities (and relations) of one label are merged, to compare triples by labels.

    graph      the merged graph
    entity     number in the original graph -> number in the merged one, (entities,)
    relation   the same for relations, (relations,)
    named      which entities have a label, (entities,) bool
    """

    graph: Graph
    entity: np.ndarray
    relation: np.ndarray
    named: np.ndarray


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


def corruptions(
    graph: Graph,
    rows: np.ndarray,
    n: int = 1,
    hard: bool = False,
    seed: int = 0,
    read: Spelled | None = None,
) -> pd.DataFrame:
    """``n`` different corruptions per triple, or all that exist if there are fewer: columns of
    ``graph.corrupt``, sorted by triple.

    rows   row numbers of the triples to corrupt
    hard   replace the tail by another tail of the relation; otherwise any of head, relation and
           tail
    read   ``spelled(graph)``, if the caller has computed it already
    """
    read, found, waiting = read or spelled(graph), pd.DataFrame(), rows
    for attempt in range(n + TRIES):
        sampled = kg.corrupt(graph, waiting, 1000 * seed + attempt, hard)
        found = pd.concat([found, sampled[_reads_false(sampled, read)]])
        found = found.drop_duplicates(["triple", *SLOTS])
        waiting = rows[pd.Series(rows).map(found["triple"].value_counts()).fillna(0) < n]
        if not len(waiting):
            break
    for row in waiting:  # for which sampling did not find n: every possible corruption, shuffled
        triple = [getattr(graph, slot)[row] for slot in SLOTS]
        every = kg.possible(graph, triple, hard).assign(triple=row)
        every = every[_reads_false(every, read)]
        shuffled = every.iloc[rng(seed, "corruptions", int(row)).permutation(len(every))]
        found = pd.concat([found, shuffled])
    found = found.drop_duplicates(["triple", *SLOTS]).groupby("triple").head(n)
    return found.sort_values("triple", kind="stable", ignore_index=True)


def _reads_false(triples: pd.DataFrame, read: Spelled) -> np.ndarray:
    """Which triples have labels, and other labels than every triple of the graph, (n,) bool."""
    head, relation, tail = (triples[slot].to_numpy() for slot in SLOTS)
    true = contains(read.graph, read.entity[head], read.relation[relation], read.entity[tail])
    return ~true & read.named[head] & read.named[tail]
