"""Knowledge graphs of any size: columns of integers in memory-mapped Arrow files.

    graph/triples.arrow     head, relation, tail (int32: row numbers in the next two tables); if the
                            source has them, also start, end (text, "" = open, see ``validity``)
    graph/entities.arrow    entity (its unique key), label (null if unknown), aliases
    graph/relations.arrow   relation (its unique key), label
    graph/types.arrow       entity (row number), type (text): every type of every entity
    graph/graph.json        its source; what was read, skipped, filtered out and kept; written last

Uncompressed Arrow is mapped, not loaded: of tens of millions of triples only what is accessed is
read."""

import json
import os
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import feather
from scipy.sparse import csr_array

from probelib import files
from probelib.errors import ProbeError
from probelib.facts.model import Facts

INT, TEXT = pa.int32(), pa.large_string()
CODES = pa.dictionary(INT, pa.string())  # a column of few distinct texts
COLUMNS = {
    "triples": {"head": INT, "relation": INT, "tail": INT},
    "entities": {"entity": TEXT, "label": TEXT, "aliases": pa.large_list(TEXT)},
    "relations": {"relation": TEXT, "label": TEXT},
    "types": {"entity": INT, "type": CODES},
}
OPTIONAL = {"start": CODES, "end": CODES}  # further columns of the triples
SLOTS = ("head", "relation", "tail")


@dataclass(frozen=True)
class Graph:
    """A knowledge graph: four Arrow tables (see the docstring of this module), and ``about``: the
    ``source``; of a dump also ``counts`` of everything read, skipped, filtered out and kept."""

    triples: pa.Table
    entities: pa.Table
    relations: pa.Table
    types: pa.Table
    about: dict = field(default_factory=dict)

    def __len__(self) -> int:
        return self.triples.num_rows

    # row numbers of every triple's parts, (triples,) int32; views of the file
    head = cached_property(lambda self: column_values(self.triples, "head"))
    relation = cached_property(lambda self: column_values(self.triples, "relation"))
    tail = cached_property(lambda self: column_values(self.triples, "tail"))

    @cached_property
    def index(self) -> tuple[np.ndarray, np.ndarray]:
        """Distinct (head, relation) pairs and (pair, tail), sorted: so their keys fit 64 bits."""
        keys = self.head.astype(np.int64) * self.relations.num_rows + self.relation
        pairs, place = np.unique(keys, return_inverse=True)
        return pairs, np.unique(place * self.entities.num_rows + self.tail)

    @cached_property
    def tails(self) -> tuple[np.ndarray, np.ndarray]:
        """The distinct tails, one relation after another, and where each relation begins."""
        n = self.entities.num_rows
        keys = np.unique(self.relation.astype(np.int64) * n + self.tail)
        return keys % max(n, 1), np.searchsorted(keys, np.arange(self.relations.num_rows + 1) * n)


def column_values(table: pa.Table, column: str) -> np.ndarray:
    """A column of numbers; a view, not a copy, where the table is one batch."""
    return table[column].combine_chunks().to_numpy(zero_copy_only=False)


def make_table(name: str, columns: dict) -> pa.Table:
    """One of the four tables from arrays or lists; missing texts and aliases are null."""

    def column(values, kind: pa.DataType) -> pa.Array:
        if kind == CODES and not isinstance(values, pa.DictionaryArray):
            return pa.array(values, pa.string()).dictionary_encode()
        known = isinstance(values, (pa.Array, pa.ChunkedArray))
        return values.cast(kind) if known else pa.array(values, kind)

    kinds = COLUMNS[name] | (OPTIONAL if name == "triples" else {})
    missing = pa.nulls(len(next(iter(columns.values()))))
    wanted = [c for c in kinds if c in columns or c not in OPTIONAL]
    return pa.table({c: column(columns.get(c, missing), kinds[c]) for c in wanted})


def write_graph(graph: Graph, folder: str | Path) -> Path:
    """Write a graph. A kill leaves a folder that ``open_graph`` rejects, never half a graph."""
    folder, sizes = Path(folder), {}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "graph.json").unlink(missing_ok=True)
        for name in COLUMNS:  # written beside, for a graph that is open may be replaced
            path, temporary = folder / f"{name}.arrow", folder / f".{name}.tmp"
            table = getattr(graph, name).combine_chunks()  # one batch is mapped without a copy
            size = max(1, len(table))
            feather.write_feather(table, temporary, compression="uncompressed", chunksize=size)
            os.replace(temporary, path)
            sizes[name] = path.stat().st_size
    except OSError as error:
        raise ProbeError(f"{folder}: no graph can be written: {error.strerror or error}") from error
    files.write_json(folder / "graph.json", {"about": graph.about, "bytes": sizes})
    return folder


def open_graph(folder: str | Path) -> Graph:
    """Open a graph of ``write_graph``, memory-mapped. Sizes, columns, row numbers are checked."""
    folder, tables = Path(folder), {}
    try:
        record = json.loads((folder / "graph.json").read_text(encoding="utf-8"))
        for name, columns in COLUMNS.items():
            path, size = folder / f"{name}.arrow", record["bytes"][name]
            if path.stat().st_size != size:
                raise ValueError(f"{path.name} has {path.stat().st_size} bytes, not {size}")
            tables[name] = feather.read_table(path, memory_map=True)
            tables[name].validate(full=True)
            given = {column.name: column.type for column in tables[name].schema}
            if not columns.items() <= given.items() <= (columns | OPTIONAL).items():
                raise ValueError(f"{path.name} has the columns {given}")
        graph = Graph(**tables, about=dict(record["about"]))
        for column in (*SLOTS, "entity"):
            numbers = (graph.triples if column in SLOTS else graph.types)[column]
            size = len(graph.relations if column == "relation" else graph.entities)
            low, high = pc.min_max(numbers).as_py().values()
            if numbers.null_count or len(numbers) and not 0 <= low <= high < size:
                raise ValueError(f"{column}: row numbers {low} to {high} of a table of {size} rows")
        return graph
    except FileNotFoundError as error:
        raise ProbeError(f"{folder}: no graph, or one not written completely: {error}") from error
    except (OSError, ValueError, KeyError, TypeError, pa.ArrowException) as error:
        raise ProbeError(f"{folder}: a damaged graph ({error}); make it again") from error


def statistics(graph: Graph) -> dict[str, float]:
    """Entities, relations, triples, average degree 2T/E, density T/(E(E-1)), self loops (GraphEval,
    Table 1). Only entities and relations with triples count."""
    n = int((degrees(graph) > 0).sum())
    return {
        "entities": n,
        "relations": len(np.unique(graph.relation)),
        "triples": len(graph),
        "average degree": 2 * len(graph) / n if n else float("nan"),
        "density": len(graph) / (n * (n - 1)) if n > 1 else float("nan"),
        "self loops": int((graph.head == graph.tail).sum()),
    }


def degrees(graph: Graph) -> np.ndarray:
    """Degree of every entity, (entities,) int64; a self loop counts twice, and several relations
    between the same head and tail count several times."""
    n = graph.entities.num_rows
    return np.bincount(graph.head, minlength=n) + np.bincount(graph.tail, minlength=n)


def relation_types(graph: Graph) -> pd.DataFrame:
    """The most frequent type of every relation's heads and tails, counted over its triples with all
    their types: ``relation`` (key), ``head_type``, ``tail_type``. Of equal counts the first in
    alphabetical order (a choice of this kit); "no type" if no head (tail) has one."""
    codes, texts = pd.factorize(graph.types["type"].to_numpy(), sort=True)
    shape = (graph.entities.num_rows, len(texts))
    pairs = np.unique(np.stack([column_values(graph.types, "entity"), codes]), axis=1)
    types = csr_array((np.ones(pairs.shape[1], np.int64), tuple(pairs)), shape=shape)
    usual = {"relation": graph.relations["relation"].to_pylist()}
    for side in ("head", "tail"):
        rows = (np.ones(len(graph), np.int64), (graph.relation, getattr(graph, side)))
        counts = csr_array(rows, shape=(graph.relations.num_rows, shape[0])) @ types
        usual[f"{side}_type"] = []
        for start, end in zip(counts.indptr[:-1], counts.indptr[1:], strict=True):
            found, sizes = counts.indices[start:end], counts.data[start:end]
            best = str(texts[found[sizes == sizes.max()].min()]) if len(found) else "no type"
            usual[f"{side}_type"].append(best)
    return pd.DataFrame(usual)


def contains(graph: Graph, head: np.ndarray, relation: np.ndarray, tail: np.ndarray) -> np.ndarray:
    """Whether triples (row numbers, (n,) each) are in the graph, (n,) bool."""
    pairs, keys = graph.index
    place = _find(pairs, np.asarray(head, np.int64) * graph.relations.num_rows + relation)
    return (place >= 0) & (_find(keys, place * graph.entities.num_rows + tail) >= 0)


def _find(values: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Index of every ``wanted`` number in sorted distinct values; -1 if it is not among them."""
    if not len(values):
        return np.full(len(wanted), -1)
    place = np.minimum(np.searchsorted(values, wanted), len(values) - 1)
    return np.where(values[place] == wanted, place, -1)


def has_label(graph: Graph) -> np.ndarray:
    """Which entities have a label, (entities,) bool."""
    labels = pc.utf8_trim_whitespace(pc.fill_null(graph.entities["label"], ""))
    return pc.not_equal(labels, "").to_numpy()


def from_facts(facts: Facts) -> Graph:
    """The graph of some facts, in memory: GraphEval treats the shipped facts and DBpedia alike."""
    rows, known = facts.facts, facts.entities
    entities, relations = pd.Index(known["entity"]), pd.Index(facts.relations["relation"])
    triples = {
        "head": entities.get_indexer(rows["subject"]),
        "relation": relations.get_indexer(rows["relation"]),
        "tail": entities.get_indexer(rows["object"]),
        "start": list(rows["start"]),
        "end": list(rows["end"]),
    }
    types = known["types"].reset_index(drop=True).explode().dropna()
    kinds = {"relation": list(relations), "label": list(facts.relations["name"])}
    return Graph(
        make_table("triples", triples),
        make_table("entities", {c: list(known[c]) for c in ("entity", "label", "aliases")}),
        make_table("relations", kinds),
        make_table("types", {"entity": types.index.to_numpy(), "type": list(types)}),
        {"source": facts.source},
    )


def check_source(source: str) -> None:
    """Raise ProbeError if ``source`` names no graph (see ``grapheval.load_graph``); it is not
    opened."""
    if source != "atlas" and not Path(source.removeprefix("table:")).exists():
        allowed = "atlas, table:FACTS.csv, a graph's folder, a DBpedia dump"
        raise ProbeError(f"no graph {source!r}; allowed: {allowed}")
