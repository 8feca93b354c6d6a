"""DBpedia: N-Triples dumps of its objects and types, as a knowledge graph (GraphEval's data).

    mappingbased-objects_lang=en.ttl.bz2        the triples: N-Triples, despite its name
    instance-types_lang=en_transitive.ttl.bz2   the classes of the entities

pyoxigraph parses them. After an error it does not always resume at the next line (a literal without
its closing quote swallows the rest of the file), so it gets whole lines: a block of them, and one
line at a time if the block has an error.
"""

import re
from array import array
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pyarrow as pa

from probelib.errors import extra
from probelib.facts.graphs.dumps import EXAMPLES, blocks, written
from probelib.facts.graphs.graph import Graph, make_table

with extra("graphs"):
    from pyoxigraph import BlankNode, Literal, NamedNode, Quad, RdfFormat, parse

RESOURCE = re.compile(r"https?://(?:[a-z-]+\.)?dbpedia\.org/resource/")
CLASS = re.compile(r"https?://(?:dbpedia\.org/ontology|schema\.org)/(.+)")
DUMMY = re.compile(r"__[0-9]+$")
TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"


def read_dbpedia(
    objects: str | Path, folder: str | Path, types: Iterable[str | Path] = ()
) -> Graph:
    """A DBpedia dump as a graph, written to ``folder`` and opened.

    objects   the dump of the triples: plain, gz or bz2
    types     dumps of the entities' classes, those of DBpedia and of schema.org

    ``about["counts"]`` holds, in this order, what was left out (statements that are ``malformed``
    or have a ``blank node``, a ``literal`` or an ``other term``; then, filter by filter, triples
    with a ``broken escape``, an ``empty name``, a ``dummy entity``, and each ``duplicate``) and
    what was kept (``triples``). For information: ``dummy by relation`` and ``dummy entities by
    relation``, the kept triples and entities that the released code means to drop too (a bug keeps
    them), and ``shared label``, the entities whose label another one has as well.
    """
    triples, iris, counts, examples = scan(objects)
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
    called = [re.split("[/#]", iris[i])[-1] for i in kinds]
    counts["triples"] = len(triples)
    dummies = [not set(called).isdisjoint(key.split("__")[1:]) for key in keys]
    counts["dummy by relation"] = int(np.array(dummies, bool)[entity].any(axis=1).sum())
    counts["dummy entities by relation"] = sum(dummies)
    counts["shared label"] = sum(n for n in Counter(names).values() if n > 1)
    tables = (
        make_table("triples", {"head": entity[:, 0], "relation": relation, "tail": entity[:, 1]}),
        make_table("entities", {"entity": keys, "label": names}),
        make_table("relations", {"relation": [iris[i] for i in kinds], "label": called}),
        _types(types, keys, counts),
    )
    return written(folder, tables, f"dbpedia:{Path(objects).name}", counts, examples)


def scan(path: str | Path) -> tuple[np.ndarray, list[str], Counter, list[str]]:
    """The statements between three IRIs of an N-Triples file.

    Return (n, 3) int32 indices into a list of IRIs, that list, counts of all other statements and
    lines by kind, and the first malformed lines with the reason.
    """
    codes, places, counts, examples, line = array("i"), {}, Counter(), [], 1
    for block in blocks(path):
        for statement in _statements(block, line, counts, examples):
            terms = (statement.subject, statement.predicate, statement.object)
            if all(type(term) is NamedNode for term in terms):
                codes.extend(places.setdefault(term.value, len(places)) for term in terms)
            elif any(isinstance(term, BlankNode) for term in terms):
                counts["blank node"] += 1
            else:
                counts["literal" if isinstance(terms[2], Literal) else "other term"] += 1
        line += block.count(b"\n")
    return np.frombuffer(codes, np.int32).reshape(-1, 3), list(places), counts, examples


def _statements(block: bytes, first: int, counts: Counter, examples: list[str]) -> list[Quad]:
    """The statements of whole lines; lines that are not statements are counted."""
    try:
        return list(parse(block, format=RdfFormat.N_TRIPLES))
    except SyntaxError:
        statements = []
    for number, line in enumerate(block.split(b"\n"), first):
        try:
            statements += parse(line, format=RdfFormat.N_TRIPLES)
        except SyntaxError as error:
            counts["malformed"] += 1
            examples += [f"line {number}: {error.msg}"][: EXAMPLES - len(examples)]
    return statements


def entity_name(iri: str) -> str | None:
    """The label of an entity, read from its IRI.

    Of a resource of DBpedia, everything after ``/resource/``, slashes and brackets included,
    %-escapes decoded, "_" as a blank; None if the escapes are not UTF-8. Of any other entity, the
    whole IRI.
    """
    if not (found := RESOURCE.match(iri)):
        return iri
    try:
        return unquote(iri[found.end() :].replace("_", " "), errors="strict").strip()
    except UnicodeDecodeError:
        return None


def _types(paths: Iterable[str | Path], keys: list[str], counts: Counter) -> pa.Table:
    """The table of types, each pair once; what is left out is counted under "types: ..."."""
    places, found = {key: row for row, key in enumerate(keys)}, {}
    for path in paths:
        triples, iris, others, _ = scan(path)
        counts["types: no statement between IRIs"] += others.total()
        for head, relation, tail in triples.tolist():
            row, kind = places.get(iris[head]), CLASS.match(iris[tail])
            if iris[relation] != TYPE:
                counts["types: not rdf:type"] += 1
            elif row is None:
                counts["types: entity without triples"] += 1
            elif kind is None:
                counts["types: no class of DBpedia"] += 1
            else:
                found[row, kind[1]] = None
    pairs = sorted(found, key=lambda pair: pair[0])
    return make_table("types", {"entity": [row for row, _ in pairs], "type": [k for _, k in pairs]})
