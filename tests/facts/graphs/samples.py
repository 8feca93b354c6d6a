"""Small dumps in the forms of DBpedia and Wikidata."""

import bz2
import gzip
import json
from pathlib import Path

import numpy as np

from probelib.facts.graphs import graph, wikidata
from probelib.facts.graphs.wikidata import DATES

LANGUAGES = ["en", "de", "fr", "es", "it", "nl", "ru", "ja", "zh", "pl"] + [f"x-{n}" for n in range(20)]
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
