"""Dumps of DBpedia (N-Triples; plain, .gz or .bz2) as knowledge graphs:
mappingbased-objects_lang=en.ttl.bz2 (despite its name), and
instance-types_lang=en_transitive.ttl.bz2, the classes of the entities.
"""

import re
from array import array
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import unquote

import numpy as np

from probelib.errors import ProbeError, extra
from probelib.facts.graphs import graph as kg
from probelib.facts.graphs.graph import Graph, make_table
from probelib.facts.text import opened

RESOURCE = re.compile(r"https?://(?:[a-z-]+\.)?dbpedia\.org/resource/")
CLASS = re.compile(r"https?://(?:dbpedia\.org/ontology|schema\.org)/(.+)")
DUMMY = re.compile(r"__[0-9]+$")
TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"


def read_dbpedia(objects: str | Path, folder: str | Path, types: Iterable = ()) -> Graph:
    """A DBpedia dump as a graph, written to ``folder`` and opened.

    objects   the dump of the triples
    types     dumps of the entities' classes, those of DBpedia and of schema.org

    ``about["counts"]`` holds, in this order, what was left out (statements that are ``malformed``
    or ``not between IRIs``; then, filter by filter, triples with a ``broken escape``, an ``empty
    name``, a ``dummy entity``, and each ``duplicate``) and what was kept (``triples``).
    """
    triples, iris, counts = scan(objects)
    labels = [entity_name(iri) for iri in iris]
    for name, broken in (
        ("broken escape", [label is None for label in labels]),
        ("empty name", [label == "" for label in labels]),
        ("dummy entity", [DUMMY.search(iri) is not None for iri in iris]),
    ):
        drop = np.array(broken, bool)[triples[:, [0, 2]]].any(axis=1)
        counts[name], triples = int(drop.sum()), triples[~drop]
    order = np.lexsort(triples.T)  # stable: of duplicates the first one stays
    again = order[1:][(triples[order[1:]] == triples[order[:-1]]).all(axis=1)]
    counts["duplicate"], triples = len(again), np.delete(triples, again, axis=0)
    used, entity = np.unique(triples[:, [0, 2]], return_inverse=True)
    kinds, relation = np.unique(triples[:, 1], return_inverse=True)
    entity, keys, names = entity.reshape(-1, 2), [iris[i] for i in used], [labels[i] for i in used]
    counts["triples"], places, found = len(triples), {key: i for i, key in enumerate(keys)}, {}
    for path in types:
        stated, texts, others = scan(path)
        counts["types: left out"] += others.total()
        for head, predicate, tail in stated.tolist():
            row, kind = places.get(texts[head]), CLASS.match(texts[tail])
            if texts[predicate] != TYPE or row is None or kind is None:
                counts["types: left out"] += 1
            else:
                found[row, kind[1]] = None
    pairs = sorted(found, key=lambda pair: pair[0])
    called = [re.split("[/#]", iris[i])[-1] for i in kinds]
    about = {"source": f"dbpedia:{Path(objects).name}", "counts": dict(counts)}
    if not len(triples):
        raise ProbeError(f"{objects}: no triples; {about['counts']}")
    tables = (
        make_table("triples", {"head": entity[:, 0], "relation": relation, "tail": entity[:, 1]}),
        make_table("entities", {"entity": keys, "label": names}),
        make_table("relations", {"relation": [iris[i] for i in kinds], "label": called}),
        make_table("types", {"entity": [i for i, _ in pairs], "type": [k for _, k in pairs]}),
    )
    return kg.open_graph(kg.write_graph(Graph(*tables, about), folder))


def scan(path: str | Path) -> tuple[np.ndarray, list[str], Counter]:
    """The statements between three IRIs of an N-Triples file: (n, 3) int32 indices into a list of
    IRIs, that list, and counts of everything else."""
    with extra("graphs"):
        from pyoxigraph import NamedNode, RdfFormat, parse
    codes, places, counts = array("i"), {}, Counter()
    with opened(path) as file:
        while block := b"".join(file.readlines(1 << 20)):
            try:
                statements = list(parse(block, format=RdfFormat.N_TRIPLES))
            except SyntaxError:  # pyoxigraph does not always resume at the next line
                statements = []
                for line in block.split(b"\n"):
                    try:
                        statements += parse(line, format=RdfFormat.N_TRIPLES)
                    except SyntaxError:
                        counts["malformed"] += 1
            for statement in statements:
                terms = (statement.subject, statement.predicate, statement.object)
                if all(type(term) is NamedNode for term in terms):
                    codes.extend(places.setdefault(term.value, len(places)) for term in terms)
                else:
                    counts["not between IRIs"] += 1
    return np.frombuffer(codes, np.int32).reshape(-1, 3), list(places), counts


def entity_name(iri: str) -> str | None:
    """The label of an entity, read from its IRI: of a resource of DBpedia everything after
    ``/resource/``, %-escapes decoded, "_" as a blank (None if the escapes are not UTF-8); of any
    other entity the whole IRI."""
    if not (found := RESOURCE.match(iri)):
        return iri
    try:
        return unquote(iri[found.end() :].replace("_", " "), errors="strict").strip()
    except UnicodeDecodeError:
        return None
