"""Check the shipped facts, convert published formats to tables, download published data."""

import argparse
import sys
import tempfile
from pathlib import Path

import numpy as np

from probelib.errors import command, unknown
from probelib.facts import check, formats
from probelib.facts.graphs import dumps
from probelib.facts.graphs import graph as graphs
from probelib.facts.model import Facts, current
from probelib.facts.shipped import read_atlas
from probelib.facts.table import write_triples

DUMPS = ("wikidata", "dbpedia")


def _read_dump(kind: str, dump: str, relations: list[str] | None) -> Facts:
    """The triples of these relations whose entities have labels; of Wikidata, those of best
    rank."""
    with tempfile.TemporaryDirectory() as folder:
        if kind == "wikidata":
            graph = dumps.read_wikidata(dump, folder, relations)
        else:
            graph = dumps.read_dbpedia(dump, folder)
        known, good = graph.relations["relation"].to_pylist(), graphs.labelled(graph)
        if missing := [relation for relation in relations or [] if relation not in known]:
            raise unknown(f"relation of {dump}", missing[0], known)
        if "rank" in graph.triples.column_names:
            good &= graphs.best_rank(graph)
        if relations is not None:
            good &= np.isin(graph.relation, [known.index(relation) for relation in relations])
        return graphs.to_facts(graph, good, source=Path(dump).name)


@command
def main(words: list[str] | None = None) -> None:
    """Run one command; the exit code is 1 after an error, or if the atlas has problems."""
    parser = argparse.ArgumentParser(prog="python -m probelib.facts", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("check", help="counts and problems of the shipped atlas")
    converter = commands.add_parser("convert", help="write facts of a published format as a table")
    names = (*formats.READERS, *DUMPS)
    converter.add_argument("--from", dest="data", required=True, metavar="FORMAT", help=str(names))
    converter.add_argument("path", help="folder or file of the data; a dump may be .gz or .bz2")
    converter.add_argument("--out", required=True, help=".csv or .parquet; templates go beside it")
    converter.add_argument("--relations", nargs="+", help="such as P36 (default: all)")
    fetcher = commands.add_parser("fetch", help="download a published data set, or list them")
    fetcher.add_argument("name", nargs="?", help="fktc, or one file: fktc/P17-subclass.json")
    given = parser.parse_args(words)
    if given.command == "check":
        _check()
    elif given.command == "fetch":
        from probelib.facts import downloads  # needs the packages of an extra

        about = downloads.registry().groupby("data", sort=False)[["licence", "purpose"]].first()
        print(downloads.fetch(given.name) if given.name else about.to_string())
    else:
        if given.data not in names:
            raise unknown("format", given.data, names)
        if given.data in DUMPS:
            facts = _read_dump(given.data, given.path, given.relations)
        else:
            facts = formats.READERS[given.data](given.path, given.relations)
        write_triples(facts, given.out)
        print(f"{given.out}: {len(facts.facts):,} facts of {len(facts.relations)} relations")


def _check() -> None:
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


if __name__ == "__main__":
    sys.exit(main())
