"""Knowledge graphs at scale: how fast dumps become columns, and what GraphEval asks of them, on one core.

``python -m tests.benchmarks graphs`` takes two gigabytes of a temporary folder. Every part runs in a
process of its own, so that its peak memory is its own. Seconds are CPU seconds, over all threads: what one core needs
that does nothing else.
"""

import bz2
import gzip
import json
import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np

from probelib.errors import ProbeError
from probelib.facts.graphs import dbpedia, graph, wikidata
from probelib.facts.graphs.dumps import blocks
from probelib.facts.graphs.wikidata import DATES, entity
from tests.benchmarks.measuring import alone, row, write_rows

LANGUAGES = ["en", "de", "fr", "es", "it", "nl", "ru", "ja", "zh", "pl"] + [f"x-{n}" for n in range(20)]


# Files of the real formats


def write_ntriples(big: graph.Graph, path: Path, n: int | None = None) -> Path:
    """The first n triples of a graph as N-Triples (.bz2 and .gz are compressed)."""
    entities, relations = big.entities["entity"].to_pylist(), big.relations["relation"].to_pylist()
    opened = {".bz2": bz2.open, ".gz": gzip.open}.get(path.suffix, open)
    with opened(path, "wt", encoding="utf-8") as file:
        rows = zip(big.head[:n].tolist(), big.relation[:n].tolist(), big.tail[:n].tolist(), strict=True)
        file.writelines(f"<{entities[h]}> <{relations[r]}> <{entities[t]}> .\n" for h, r, t in rows)
    return path


def snak(relation: str, value, kind: str) -> dict:
    """A snak in Wikidata's form: kind is item, time, string, quantity or monolingualtext."""
    if kind == "item":
        datavalue = {
            "value": {"entity-type": "item", "numeric-id": value, "id": f"Q{value}"},
            "type": "wikibase-entityid",
        }
    elif kind == "time":
        model = "http://www.wikidata.org/entity/Q1985727"
        time_ = {"time": value, "timezone": 0, "before": 0, "after": 0, "precision": 11, "calendarmodel": model}
        datavalue = {"value": time_, "type": "time"}
    elif kind == "quantity":
        datavalue = {"value": {"amount": f"+{value}", "unit": "1"}, "type": "quantity"}
    elif kind == "monolingualtext":
        datavalue = {"value": {"text": str(value), "language": "fr"}, "type": "monolingualtext"}
    else:
        datavalue = {"value": str(value), "type": "string"}
    datatype = {"item": "wikibase-item", "string": "external-id"}.get(kind, kind)
    return {"snaktype": "value", "property": relation, "datavalue": datavalue, "datatype": datatype}


def statement(
    main: dict, item: str, rank: str = "normal", qualifiers: dict | None = None, references: list = ()
) -> dict:
    """A statement with its keys in the order of the dump."""
    dated = {"qualifiers": qualifiers, "qualifiers-order": list(qualifiers)} if qualifiers else {}
    ends = {"id": f"{item}$F078E5B3-F9A8-480E-B7AC-D97778CBBEF9", "rank": rank}
    return {"mainsnak": main, "type": "statement"} | dated | ends | ({"references": references} if references else {})


def item(number: int, claims: dict, labels: dict, aliases: dict, descriptions: dict = (), sites: tuple = ()) -> dict:
    """An item with its keys in the order of the dump; labels and descriptions {language: text}, aliases {language: texts}."""
    text = lambda texts: {code: {"language": code, "value": value} for code, value in dict(texts).items()}
    return {
        "type": "item",
        "id": f"Q{number}",
        "labels": text(labels),
        "descriptions": text(descriptions),
        "aliases": {code: [{"language": code, "value": v} for v in values] for code, values in aliases.items()},
        "claims": claims,
        "sitelinks": {site: {"site": site, "title": f"Title {number}", "badges": []} for site in sites},
        "lastrevid": 195301613 + number,
    }


def random_item(generator: np.random.Generator, number: int) -> dict:
    """An item of usual size (15 kB) and make: 15 statements, eight of them with items as values, three in four with a
    reference of three snaks, one of them with dates; ten labels, 15 descriptions."""
    claims, hash_ = {}, {"hash": "2b369d0a4f1d4b801e734fe84a0b217e13dd2930"}
    kinds = ["item"] * 8 + ["string"] * 5 + ["time", "quantity"]
    source = {
        "P248": [snak("P248", 54919, "item") | hash_],
        "P854": [snak("P854", "https://data.example.org/ark:/12148/cb11888092r", "string") | hash_],
        "P813": [snak("P813", "+2013-12-07T00:00:00Z", "time") | hash_],
    }
    reference = [hash_ | {"snaks": source, "snaks-order": list(source)}]
    for place, kind in enumerate(kinds):
        relation = f"P{generator.integers(17, 9000)}"
        value = int(generator.integers(1, 10**8)) if kind != "time" else f"+{1900 + number % 100}-05-23T00:00:00Z"
        dates = {"P580": "+1949-05-23T00:00:00Z", "P582": f"+{1950 + number % 70}-10-03T00:00:00Z"}
        qualifiers = {p: [snak(p, d, "time") | hash_] for p, d in dates.items()} if place == 0 else {}
        main = snak(relation, value, kind)
        one = statement(main, f"Q{number}", "normal", qualifiers, reference if place % 4 else [])
        claims.setdefault(relation, []).append(one)
    texts = lambda n: {code: f"{code} text of {number}" for code in LANGUAGES[:n]}
    return item(number, claims, texts(10), {code: [v] for code, v in texts(3).items()}, texts(15), ("enwiki",))


def write_dump(items: list[dict], path: Path) -> Path:
    """Items as a Wikidata JSON dump: brackets on lines of their own, a comma after every item but the last, ASCII."""
    lines = ",\n".join(json.dumps(one, separators=(",", ":")) for one in items)
    opened = {".bz2": bz2.open, ".gz": gzip.open}.get(path.suffix, open)
    with opened(path, "wt", encoding="utf-8") as file:
        file.write(f"[\n{lines}\n]\n")
    return path


# The plain loop that the Wikidata reader is measured against, and must agree with


def plain(path: Path) -> tuple[list[tuple], list[tuple]]:
    """(id, label, aliases) of all entities and (subject, relation, object, rank, start, end) of their statements."""
    entities, triples = [], []
    with open(path, encoding="utf-8") as file:
        for line in file:
            line = line.strip().rstrip(",")
            if line in ("[", "]"):
                continue
            data = json.loads(line)
            label = data["labels"].get("en", data["labels"].get("mul", {})).get("value")
            aliases = [a["value"] for code in ("en", "mul") for a in data["aliases"].get(code, [])]
            entities.append((data["id"], label, aliases))
            for statements in data["claims"].values():
                for one in statements:
                    main = one["mainsnak"]
                    if main["snaktype"] == "value" and main["datavalue"]["type"] == "wikibase-entityid":
                        value = main["datavalue"]["value"]["id"]
                        dates = {p: s for p, s in one.get("qualifiers", {}).items() if p in DATES}
                        interval = wikidata.interval(dates) if dates else ("", "")
                        triples.append((data["id"], main["property"], value, one["rank"], *interval))
    return entities, triples


# Measuring


def run(n_triples: int = 5_000_000, n_items: int = 20_000) -> list[dict]:
    """One row a measurement (``measuring.row``)."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        alone(make_ntriples, n_triples, folder)
        alone(make_dump, n_items, folder)
        rows = ntriples(n_triples, folder) + operations(folder) + wikidata_lines(folder)
    return rows


def main() -> None:
    write_rows("graphs", run())


def make_ntriples(n: int, folder: Path) -> None:
    big = graph.synthetic(n)
    write_ntriples(big, folder / "big.nt")
    for suffix in (".gz", ".bz2"):
        write_ntriples(big, folder / f"part.nt{suffix}", n // 5)


def make_dump(n: int, folder: Path) -> None:
    generator = np.random.default_rng(0)
    write_dump([random_item(generator, number) for number in range(1, n + 1)], folder / "dump.json")


def ntriples(n: int, folder: Path) -> list[dict]:
    """N-Triples into a graph on disk; a fifth of them also compressed."""
    rows = []
    for file, triples in (("big.nt", n), ("part.nt.gz", n // 5), ("part.nt.bz2", n // 5)):
        took = alone(_read_ntriples, folder / file, folder / f"{file}.graph")
        if took["result"] != triples:
            raise ProbeError(f"{file}: {took['result']} triples were read, {triples} were written")
        rows.append(row(f"N-Triples to columns, {file}, {triples:,}", triples / took["seconds"], "triples/s", 150_000))
        if file == "big.nt":
            rows.append(row("its peak memory", took["peak"], "GiB", 1.5, less=True))
    return rows


def _read_ntriples(path: Path, folder: Path) -> int:
    return len(dbpedia.read_dbpedia(path, folder))


def operations(folder: Path) -> list[dict]:
    """Degrees, types of relations and a corrupted triple for each of all."""
    took = alone(_operate, folder / "big.nt.graph")
    rows = [row(f"of these, {name}", seconds, "s", None) for name, seconds in took["result"].items()]
    total = row("open, degrees, types, a corrupted triple for each", took["seconds"], "s", 60, less=True)
    return [total, *rows, row("its peak memory", took["peak"], "GiB", None)]


def _operate(folder: Path) -> dict[str, float]:
    start = time.process_time()
    big, laps = graph.open_graph(folder), {}
    laps["opening"] = time.process_time() - start
    works = {"degrees": graph.degrees, "types of relations": graph.relation_types, "corrupted triples": graph.corrupt}
    for name, work in (works | {"hard ones": partial(graph.corrupt, hard=True)}).items():
        start = time.process_time()
        work(big)
        laps[name] = time.process_time() - start
    return laps


def wikidata_lines(folder: Path, rounds: int = 3) -> list[dict]:
    """The reader against the plain loop, taken in turns: its lines to the same fields, and all the way to a graph on disk."""
    dump, ratios, all_the_way = folder / "dump.json", [], []
    for _ in range(rounds):
        loop = alone(_plain, dump)
        ours, whole = alone(_entities, dump), alone(_read_dump, dump, folder / "wikidata")
        if not loop["result"] == ours["result"] == whole["result"]:
            raise ProbeError(
                f"statements: {loop['result']} by the loop, {ours['result']} and {whole['result']} by the reader"
            )
        ratios.append(loop["seconds"] / ours["seconds"])
        all_the_way.append(loop["seconds"] / whole["seconds"])
    rows = [row("Wikidata lines to fields, speed against a json.loads loop", float(np.median(ratios)), "x", 3)]
    rows.append(row("to a graph on disk, speed against the same loop", float(np.median(all_the_way)), "x", None))
    return [*rows, row("its speed", dump.stat().st_size / whole["seconds"] / 2**20, "MiB/s", None)]


def _plain(path: Path) -> int:
    return len(plain(path)[1])


def _entities(path: Path) -> int:
    """The same fields as ``plain``, in the same tuples."""
    entities, triples = [], []
    for block in blocks(path):
        for line in block.split(b"\n"):
            if len(line) > 3:
                found = entity(line)
                entities.append((found.key, found.label, found.aliases))
                for relation, value, rank, dates in found.statements:
                    interval = wikidata.interval(dates) if dates else ("", "")
                    triples.append((found.key, relation, value, rank, *interval))
    return len(triples)


def _read_dump(path: Path, folder: Path) -> int:
    return len(wikidata.read_wikidata(path, folder))


if __name__ == "__main__":
    main()
