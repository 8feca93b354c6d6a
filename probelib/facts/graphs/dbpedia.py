"""DBpedia: N-Triples dumps of its objects and types, as a knowledge graph (GraphEval's data).

    mappingbased-objects_lang=en.ttl.bz2        the triples: one N-Triples statement per line, despite its name
    instance-types_lang=en_transitive.ttl.bz2   the classes of the entities

    <http://dbpedia.org/resource/Nic_Offer> <http://dbpedia.org/ontology/genre> <http://dbpedia.org/resource/Dance-punk> .

Lines of this form are split here, and pyoxigraph checks their IRIs; it parses all other lines. After an error it does not
always resume at the next line (a literal without its closing quote swallows the rest of the file). So it gets whole lines: a
block of them, and if the block has an error, one line at a time.
"""

import re
from array import array
from collections import Counter
from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from probelib.errors import ProbeError, extra
from probelib.facts.graphs.dumps import blocks
from probelib.facts.graphs.graph import Graph, alone, distinct, make_table, open_graph, write_graph

with extra("graphs"):
    from pyoxigraph import BlankNode, Literal, NamedNode, Quad, RdfFormat, parse

RESOURCE = re.compile(r"https?://(?:[a-z-]+\.)?dbpedia\.org/resource/")
CLASS = re.compile(r"https?://(?:dbpedia\.org/ontology|schema\.org)/(.+)")
DUMMY = re.compile(r"__[0-9]+$")
TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
PLAIN = re.compile(rb"^<([^<>\\ \n]+)> <([^<>\\ \n]+)> <([^<>\\ \n]+)> \.$", re.MULTILINE)
EXAMPLES = 5  # skipped lines that are quoted


def read_dbpedia(objects: str | Path, folder: str | Path, types: Iterable[str | Path] = ()) -> Graph:
    """A DBpedia dump as a graph, written to ``folder`` and opened.

    objects   the dump of the triples: plain, gz or bz2
    types     dumps of the entities' classes, those of DBpedia and of schema.org

    ``about["counts"]`` holds, in this order, what was left out (statements that are ``malformed`` or have a
    ``blank node``, a ``literal`` or an ``other term`` in them; then, filter by filter, triples with a ``broken escape``,
    an ``empty name``, a ``dummy entity``, and each ``duplicate``) and what was kept (``triples``). For information:
    ``dummy by relation`` and ``dummy entities by relation``, the kept triples and entities that the released code means to
    drop too (a bug keeps them), and ``shared label``, the entities whose label another one has as well.
    """
    triples, iris, counts, examples = scan(objects)
    labels = [entity_name(iri) for iri in iris]
    triples = _filter(triples, iris, labels, counts)
    if not len(triples):
        raise ProbeError(f"{objects}: no triples; left out: {dict(counts)}; {'; '.join(examples)}")
    used, entity = np.unique(triples[:, [0, 2]], return_inverse=True)
    kinds, relation = np.unique(triples[:, 1], return_inverse=True)
    entities = make_table("entities", {"entity": [iris[i] for i in used], "label": [labels[i] for i in used]})
    relations = {"relation": [iris[i] for i in kinds], "label": [local_name(iris[i]) for i in kinds]}
    counts["triples"] = len(triples)
    dummies = _dummies_by_relation(entities["entity"], relations["label"])
    counts["dummy by relation"] = int(np.isin(entity, dummies).any(axis=1).sum())
    counts["dummy entities by relation"] = len(dummies)
    shared = pc.value_counts(entities["label"]).field("counts").to_numpy()
    counts["shared label"] = int(shared[shared > 1].sum())
    graph = Graph(
        make_table("triples", {"head": entity[:, 0], "relation": relation, "tail": entity[:, 1]}),
        entities,
        make_table("relations", relations),
        _types(types, entities, counts),
        {"source": f"dbpedia:{Path(objects).name}", "counts": dict(counts), "examples": examples},
    )
    with alone(folder):
        return open_graph(write_graph(graph, folder))


# Statements


def scan(path: str | Path) -> tuple[np.ndarray, list[str], Counter, list[str]]:
    """The statements between three IRIs of an N-Triples file.

    Return (n, 3) int32 indices into a list of IRIs, that list, counts of all other statements and lines by kind, and the first
    malformed lines with the reason. Comments and empty lines are not counted.
    """
    codes, places, counts, examples, line = array("i"), _Places(), Counter(), [], 1
    for block in blocks(path):
        lines = block.count(b"\n")
        try:
            codes += _plain(block, lines, places)
        except ValueError:
            codes += _parsed(_statements(block, line, counts, examples), places, counts)
        line += lines
    return np.frombuffer(codes, np.int32).reshape(-1, 3), [iri.decode() for iri in places], counts, examples


class _Places(dict):
    """IRI (UTF-8) -> its index in the order of first appearance. Raise ValueError for a new key that is not an IRI."""

    def __missing__(self, iri: bytes) -> int:
        NamedNode(iri.decode())
        place = self[iri] = len(self)
        return place


def _plain(block: bytes, lines: int, places: _Places) -> array:
    """Indices of all IRIs of a block in which every line is ``<IRI> <IRI> <IRI> .``. Raise ValueError for any other block.

    Nearly all blocks have this form. pyoxigraph checks every IRI once, so the outcome is the parser's.
    """
    rows = PLAIN.findall(block)
    if len(rows) != lines or not block.endswith(b"\n"):
        raise ValueError("other lines")
    return array("i", map(places.__getitem__, chain.from_iterable(rows)))


def _parsed(statements: list[Quad], places: _Places, counts: Counter) -> array:
    """Indices of the IRIs of parsed statements; statements that are not between IRIs are counted."""
    codes = array("i")
    for statement in statements:
        terms = (statement.subject, statement.predicate, statement.object)
        if all(type(term) is NamedNode for term in terms):
            codes.extend(places.setdefault(term.value.encode(), len(places)) for term in terms)
        elif any(isinstance(term, BlankNode) for term in terms):
            counts["blank node"] += 1
        else:
            counts["literal" if isinstance(terms[2], Literal) else "other term"] += 1
    return codes


def _statements(block: bytes, first: int, counts: Counter, examples: list[str]) -> list[Quad]:
    """The statements of whole lines; lines that are not statements are counted."""
    try:
        return list(parse(block, format=RdfFormat.N_TRIPLES))
    except SyntaxError:
        pass
    statements = []
    for number, line in enumerate(block.split(b"\n"), first):
        try:
            statements += parse(line, format=RdfFormat.N_TRIPLES)
        except SyntaxError as error:
            counts["malformed"] += 1
            if len(examples) < EXAMPLES:
                examples.append(f"line {number}: {error.msg}")
    return statements


# Names and filters


def entity_name(iri: str) -> str | None:
    """The label of an entity, read from its IRI.

    Of a resource of DBpedia, everything after ``/resource/``, slashes and brackets included, %-escapes decoded, "_" as a blank;
    None if the escapes are not UTF-8. Of any other entity, the whole IRI.
    """
    found = RESOURCE.match(iri)
    if not found:
        return iri
    name = iri[found.end() :].replace("_", " ")
    try:
        return unquote(name, errors="strict").strip() if "%" in name else name.strip()
    except UnicodeDecodeError:
        return None


def local_name(iri: str) -> str:
    """The part of an IRI after the last "/" and then after the last "#"."""
    return iri.rsplit("/", 1)[-1].rsplit("#", 1)[-1]


def _filter(triples: np.ndarray, iris: list[str], labels: list, counts: Counter) -> np.ndarray:
    """The triples that pass the filters, in their order; what each filter removes is counted."""
    for name, broken in (
        ("broken escape", [label is None for label in labels]),
        ("empty name", [label == "" for label in labels]),
        ("dummy entity", [DUMMY.search(iri) is not None for iri in iris]),
    ):
        broken = np.array(broken, bool)
        drop = broken[triples[:, 0]] | broken[triples[:, 2]]
        counts[name] = int(drop.sum())
        triples = triples[~drop]
    order = np.lexsort(triples.T)
    again = (triples[order[1:]] == triples[order[:-1]]).all(axis=1)  # lexsort is stable: the first one stays
    counts["duplicate"] = int(again.sum())
    return np.delete(triples, order[1:][again], axis=0)


def _dummies_by_relation(iris: pa.ChunkedArray, relations: list[str]) -> list[int]:
    """Rows of entities such as ``Subject__birthPlace__x``: a part between "__" is the name of a relation."""
    known, suspects = set(relations), pc.indices_nonzero(pc.match_substring(iris, "__"))
    names = zip(suspects.to_pylist(), iris.take(suspects).to_pylist(), strict=True)
    return [row for row, iri in names if not known.isdisjoint(iri.split("__")[1:])]


# Types


def _types(paths: Iterable[str | Path], entities: pa.Table, counts: Counter) -> pa.Table:
    """The table of types, each pair once; what is left out is counted under names that begin with "types:"."""
    kinds, rows, codes = {}, [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for path in paths:
        triples, iris, others, _ = scan(path)
        counts["types: no statement between IRIs"] += others.total()
        row = pc.index_in(pa.array(iris, pa.large_string()), value_set=entities["entity"].combine_chunks())
        row = pc.fill_null(row, -1).to_numpy()[triples[:, 0]]
        names = [CLASS.match(iri) for iri in iris]
        code = [kinds.setdefault(name[1], len(kinds)) if name else -1 for name in names]
        code = np.array(code, np.int64)[triples[:, 2]]
        keep = np.ones(len(triples), bool)
        for reason, good in (
            ("not rdf:type", np.array([iri == TYPE for iri in iris], bool)[triples[:, 1]]),
            ("entity without triples", row >= 0),
            ("no class of DBpedia", code >= 0),
        ):
            counts[f"types: {reason}"] += int((keep & ~good).sum())
            keep &= good
        rows.append(row[keep])
        codes.append(code[keep])
    pairs = distinct(np.concatenate(rows) * len(kinds) + np.concatenate(codes))
    entity, code = np.divmod(pairs, max(len(kinds), 1))
    kind = pa.DictionaryArray.from_arrays(pa.array(code, pa.int32()), pa.array(list(kinds), pa.string()))
    return make_table("types", {"entity": entity, "type": kind})
