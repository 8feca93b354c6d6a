"""Check the shipped facts, convert published formats to tables, download published data."""

import argparse
import sys
import tempfile
from pathlib import Path

import numpy as np

from probelib.errors import command, unknown
from probelib.facts import check, formats, wikifactdiff
from probelib.facts.graphs.graph import best_rank, labelled, to_facts
from probelib.facts.model import Facts, current
from probelib.facts.shipped import read_atlas
from probelib.facts.table import write_triples

DUMPS = ("wikidata", "dbpedia")


def convert(
    data: str,
    path: str | Path,
    out: str | Path,
    relations: list[str] | None = None,
    templates: str | Path | None = None,
) -> Facts:
    """Read facts of a format, write them as a table (``table.write_triples``) and return them.

    data        a name of ``formats.READERS``, or of ``DUMPS``
    path        folder or file of the data; a dump may be compressed (.gz, .bz2)
    relations   relations to keep; None: all. Choose some of a large dump: the facts must fit into
                memory
    templates   file of WikiFactDiff with templates for the relations
    """
    if data not in (*formats.READERS, *DUMPS):
        raise unknown("format", data, (*formats.READERS, *DUMPS))
    read = (
        _read_dump if data in DUMPS else lambda _, path, names: formats.READERS[data](path, names)
    )
    facts = read(data, Path(path), relations)
    if templates is not None:
        facts = wikifactdiff.add_templates(facts, wikifactdiff.read_wikifactdiff(templates)[0])
    write_triples(facts, out)
    return facts


def _read_dump(kind: str, dump: Path, relations: list[str] | None) -> Facts:
    """The triples of these relations whose entities have labels; of Wikidata, those of best
    rank."""
    with tempfile.TemporaryDirectory() as folder:
        if kind == "wikidata":
            from probelib.facts.graphs.wikidata import (
                read_wikidata,
            )  # needs the packages of an extra

            graph = read_wikidata(dump, folder, relations)
        else:
            from probelib.facts.graphs.dbpedia import read_dbpedia  # so does this

            graph = read_dbpedia(dump, folder)
        known, good = graph.relations["relation"].to_pylist(), labelled(graph)
        if missing := [relation for relation in relations or [] if relation not in known]:
            raise unknown(f"relation of {dump}", missing[0], known)
        if "rank" in graph.triples.column_names:
            good &= best_rank(graph)
        if relations is not None:
            good &= np.isin(graph.relation, [known.index(relation) for relation in relations])
        return to_facts(graph, good, source=dump.name)


@command
def main(words: list[str] | None = None) -> None:
    """Run one command; the exit code is 1 after an error, or if the atlas has problems."""
    parser = argparse.ArgumentParser(prog="python -m probelib.facts", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("check", help="counts and problems of the shipped atlas")
    converter = commands.add_parser("convert", help="write facts of a published format as a table")
    names = ", ".join((*formats.READERS, *DUMPS))
    converter.add_argument("--from", dest="data", required=True, metavar="FORMAT", help=names)
    converter.add_argument("path", help="folder or file of the data")
    converter.add_argument(
        "--out", required=True, help="a .csv or .parquet file; templates go beside it"
    )
    converter.add_argument(
        "--relations", nargs="+", help="relations to keep, such as P36 (default: all)"
    )
    converter.add_argument(
        "--templates", help="a file of WikiFactDiff with templates for the relations"
    )
    fetcher = commands.add_parser(
        "fetch", help="download a published data set, or list all of them"
    )
    fetcher.add_argument(
        "name", nargs="?", help="a data set, or a file of one: fktc/P17-subclass.json"
    )
    given = parser.parse_args(words)
    {"check": _check, "convert": _convert, "fetch": _fetch}[given.command](given)


def _check(_: argparse.Namespace) -> None:
    atlas = read_atlas()
    table, found = check.counts(atlas), check.problems(atlas)
    print(table.to_string(index=False, float_format="{:.2f}".format))
    former, wide = table["former"].sum(), (table["objects"] >= 100).sum()
    inside, wrong = table["object_in_subject"].sum(), check.wrong_distractors(current(atlas), atlas)
    print(f"\n{len(atlas.facts):,} facts, {len(table)} relations, {len(atlas.entities):,} entities")
    print(f"{former} former values, {wide} relations with 100 or more distinct objects")
    print(f"{inside} objects inside their subject, {wrong} wrong distractors")
    print(*found or ["no problems"], sep="\n")
    if found:
        sys.exit(1)


def _convert(given: argparse.Namespace) -> None:
    facts = convert(given.data, given.path, given.out, given.relations, given.templates)
    print(f"{given.out}: {len(facts.facts):,} facts of {len(facts.relations)} relations")


def _fetch(given: argparse.Namespace) -> None:
    from probelib.facts import downloads  # needs the packages of an extra

    if given.name is None:
        files = downloads.registry()
        print(files.groupby("data", sort=False)[["licence", "purpose"]].first().to_string())
    else:
        print(downloads.fetch(given.name))


if __name__ == "__main__":
    sys.exit(main())
