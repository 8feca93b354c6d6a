"""Generated graphs and damaged files."""

import bz2
import gzip
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from probelib.facts.graphs.graph import INT, SLOTS, Graph, make_table

DAMAGE = ["empty", "cut", "latin-1", "utf-16", "zeros", "a folder", "missing", "no gz", "half gz"]
HARMLESS = ["bom", "crlf", "gz", "bz2"]


def damage(path: Path, kind: str) -> Path:
    """Damage a text file; return where it is afterwards."""
    content = path.read_bytes()
    path.unlink()
    packed = gzip.compress(content)
    changed = {
        "empty": b"",
        "cut": content[:-4],
        "latin-1": content[:10] + b"\xe9" + content[10:],
        "utf-16": content.decode().encode("utf-16"),
        "zeros": bytes(len(content)),
        "no gz": content,
        "half gz": packed[: len(packed) // 2],
        "bom": b"\xef\xbb\xbf" + content,
        "crlf": content.replace(b"\n", b"\r\n"),
        "gz": packed,
        "bz2": bz2.compress(content),
    }
    if kind.endswith(("gz", "bz2")):
        path = path.with_name(f"{path.name}.{kind[-3:].strip()}")
    if kind == "a folder":
        path.mkdir()
    elif kind != "missing":
        path.write_bytes(changed[kind])
    return path


def synthetic(
    n_triples: int, n_entities: int | None = None, n_relations: int = 633, seed: int = 0
) -> Graph:
    """A generated graph with the shape of a real one: distinct triples, skewed degrees, no entity
    without a triple, 0.29 entities per triple as in DBpedia."""
    n_entities = n_entities or max(2, round(0.29 * n_triples))
    generator, triples = np.random.default_rng(seed), np.empty((0, 3), np.int64)
    # numbers below n; number k has a probability near 1 / ((k + 1) ln n)
    zipf = lambda n, size: ((n + 1) ** generator.random(size)).astype(np.int64) - 1
    while len(triples) < n_triples:
        size = n_entities + n_triples - len(triples)
        heads = (n_entities * generator.random(size) ** 2).astype(np.int64)
        heads[:n_entities] = np.arange(n_entities)  # every entity is a head
        drawn = np.stack([heads, zipf(n_relations, size), zipf(n_entities, size)], axis=1)
        triples = np.concatenate([triples, drawn])
        keys = (triples[:, 0] * n_relations + triples[:, 1]) * n_entities + triples[:, 2]
        triples = triples[np.sort(np.unique(keys, return_index=True)[1])]
    number = pa.array(np.arange(max(n_entities, n_relations))).cast(pa.string())
    names = lambda prefix, n: pc.binary_join_element_wise(prefix, number[:n], "")
    keys = [
        names(f"http://dbpedia.org/{part}", n)
        for part, n in (("resource/Entity_", n_entities), ("ontology/relation", n_relations))
    ]
    codes = np.concatenate([np.zeros(n_entities, np.int64), 1 + zipf(40, n_entities)])
    kinds = pa.array(["Thing"] + [f"Type{i}" for i in range(40)])
    types = pa.DictionaryArray.from_arrays(pa.array(codes, INT), kinds)
    return Graph(
        make_table("triples", dict(zip(SLOTS, triples[:n_triples].T, strict=True))),
        make_table("entities", {"entity": keys[0], "label": names("Entity ", n_entities)}),
        make_table("relations", {"relation": keys[1], "label": names("relation", n_relations)}),
        make_table("types", {"entity": np.tile(np.arange(n_entities), 2), "type": types}),
        {"source": f"synthetic:{seed}", "counts": {"triples": n_triples}},
    )
