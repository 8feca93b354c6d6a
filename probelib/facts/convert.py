"""``python -m probelib.facts convert``: a published format as a table of facts, which ``facts.load("table", ...)`` reads."""

import tempfile
from functools import partial
from pathlib import Path

import numpy as np

from probelib.errors import unknown
from probelib.facts.formats import tables, wikifactdiff
from probelib.facts.graphs.graph import Graph, best_rank, labelled, to_facts
from probelib.facts.loading import READERS
from probelib.facts.model import Facts


def convert(
    data: str,
    path: str | Path,
    out: str | Path,
    relations: list[str] | None = None,
    templates: str | Path | None = None,
) -> Facts:
    """Read facts of a format, write them as a table (``tables.write_triples``: CSV or Parquet) and return them.

    data        a name of ``FORMATS``
    path        folder or file of the data; a dump may be compressed (.gz, .bz2)
    relations   relations to keep; None: all. Choose some of a large dump: the facts must fit into memory
    templates   file of WikiFactDiff with templates for the relations
    """
    if data not in FORMATS:
        raise unknown("format", data, FORMATS)
    facts = FORMATS[data](Path(path), relations)
    if templates is not None:
        facts = wikifactdiff.add_templates(facts, wikifactdiff.read_wikifactdiff(templates)[0])
    tables.write_triples(facts, out)
    return facts


def _read_dump(kind: str, dump: Path, relations: list[str] | None) -> Facts:
    """The triples of these relations whose entities have labels; of Wikidata, those of best rank."""
    with tempfile.TemporaryDirectory() as folder:
        if kind == "wikidata":
            from probelib.facts.graphs.wikidata import read_wikidata  # needs the packages of an extra

            return _of_graph(read_wikidata(dump, folder, relations), relations, dump)
        from probelib.facts.graphs.dbpedia import read_dbpedia  # so does this

        return _of_graph(read_dbpedia(dump, folder), relations, dump)


def _of_graph(graph: Graph, relations: list[str] | None, dump: Path) -> Facts:
    known = graph.relations["relation"].to_pylist()
    if missing := [relation for relation in relations or [] if relation not in known]:
        raise unknown(f"relation of {dump}", missing[0], known)
    good = labelled(graph)
    if "rank" in graph.triples.column_names:
        good &= best_rank(graph)
    if relations is not None:
        good &= np.isin(graph.relation, [known.index(relation) for relation in relations])
    return to_facts(graph, good, source=dump.name)


FORMATS = READERS | {kind: partial(_read_dump, kind) for kind in ("wikidata", "dbpedia")}
