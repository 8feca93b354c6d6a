"""Dumps of Wikidata and DBpedia as knowledge graphs; plain, .gz or .bz2.

``read_wikidata``   the JSON dump, one entity per line: triples with times and ranks
``read_dbpedia``    N-Triples: mappingbased-objects_lang=en.ttl.bz2 (despite its name) and
                    instance-types_lang=en_transitive.ttl.bz2, the classes of the entities
"""

import bz2
import gzip
import re
import warnings
import zlib
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pandas as pd

from probelib.errors import ProbeError, extra
from probelib.facts.graphs import graph as kg
from probelib.facts.graphs.graph import RANKS, Graph, make_table
from probelib.facts.validity import UNKNOWN, days, is_date

EXAMPLES = 5  # malformed lines that are quoted
# DBpedia
RESOURCE = re.compile(r"https?://(?:[a-z-]+\.)?dbpedia\.org/resource/")
CLASS = re.compile(r"https?://(?:dbpedia\.org/ontology|schema\.org)/(.+)")
DUMMY = re.compile(r"__[0-9]+$")
TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
# Wikidata
TYPES = (31, 279)  # instance of, subclass of
LANGUAGES = ("en", "mul")  # of labels and aliases: the first that exists; "mul": all languages
KINDS = {"item": "Q", "property": "P"}
TIME = re.compile(r"([+-])([0-9]+)-([0-9]{2})-([0-9]{2})T")
KEY = re.compile(r"[QP][1-9][0-9]{0,9}")
PROPERTY = re.compile(r"P[1-9][0-9]{0,8}")
# what lines of another shape raise; msgspec's own errors are ValueErrors
BAD = (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError)


def blocks(path: str | Path) -> Iterator[bytes]:
    """Whole lines of a file, about a mebibyte at a time. Raise ProbeError for one that is cut off
    or not what its suffix says."""
    opened = {".gz": gzip.open, ".bz2": bz2.open}.get(Path(path).suffix, open)
    try:
        with opened(path, "rb") as file:
            while lines := file.readlines(1 << 20):
                yield b"".join(lines)
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise ProbeError(f"{path}: cannot be read: {reason}; download the file again") from error


def _written(folder: str | Path, tables: tuple, source: str, counts: Counter, examples: list):
    """The graph of these tables, written to ``folder`` and opened."""
    about = {"source": source, "counts": dict(counts), "examples": examples}
    if not len(tables[0]):
        raise ProbeError(f"{source}: no triples; {about['counts']}; {'; '.join(examples)}")
    return kg.open_graph(kg.write_graph(Graph(*tables, about), folder))


# DBpedia


def read_dbpedia(
    objects: str | Path, folder: str | Path, types: Iterable[str | Path] = ()
) -> Graph:
    """A DBpedia dump as a graph, written to ``folder`` and opened.

    objects   the dump of the triples
    types     dumps of the entities' classes, those of DBpedia and of schema.org

    ``about["counts"]`` holds, in this order, what was left out (statements that are ``malformed``
    or ``not between IRIs``; then, filter by filter, triples with a ``broken escape``, an ``empty
    name``, a ``dummy entity``, and each ``duplicate``) and what was kept (``triples``).
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
    counts["triples"], places, found = len(triples), {key: i for i, key in enumerate(keys)}, {}
    for path in types:
        stated, texts, others, _ = scan(path)
        counts["types: left out"] += others.total()
        for head, predicate, tail in stated.tolist():
            row, kind = places.get(texts[head]), CLASS.match(texts[tail])
            if texts[predicate] != TYPE or row is None or kind is None:
                counts["types: left out"] += 1
            else:
                found[row, kind[1]] = None
    pairs = sorted(found, key=lambda pair: pair[0])
    called = [re.split("[/#]", iris[i])[-1] for i in kinds]
    tables = (
        make_table("triples", {"head": entity[:, 0], "relation": relation, "tail": entity[:, 1]}),
        make_table("entities", {"entity": keys, "label": names}),
        make_table("relations", {"relation": [iris[i] for i in kinds], "label": called}),
        make_table("types", {"entity": [i for i, _ in pairs], "type": [k for _, k in pairs]}),
    )
    return _written(folder, tables, f"dbpedia:{Path(objects).name}", counts, examples)


def scan(path: str | Path) -> tuple[np.ndarray, list[str], Counter, list[str]]:
    """The statements between three IRIs of an N-Triples file: (n, 3) int32 indices into a list of
    IRIs, that list, counts of everything else, and the first malformed lines with the reason.

    After an error pyoxigraph does not always resume at the next line, so it gets a block of whole
    lines, and one line at a time if the block has an error.
    """
    with extra("graphs"):
        from pyoxigraph import NamedNode, RdfFormat, parse
    codes, places, counts, examples, first = array("i"), {}, Counter(), [], 1
    for block in blocks(path):
        try:
            statements = list(parse(block, format=RdfFormat.N_TRIPLES))
        except SyntaxError:
            statements = []
            for number, line in enumerate(block.split(b"\n"), first):
                try:
                    statements += parse(line, format=RdfFormat.N_TRIPLES)
                except SyntaxError as error:
                    counts["malformed"] += 1
                    examples.append(f"line {number}: {error.msg}")
        for statement in statements:
            terms = (statement.subject, statement.predicate, statement.object)
            if all(type(term) is NamedNode for term in terms):
                codes.extend(places.setdefault(term.value, len(places)) for term in terms)
            else:
                counts["not between IRIs"] += 1
        first += block.count(b"\n")
    rows = np.frombuffer(codes, np.int32).reshape(-1, 3)
    return rows, list(places), counts, examples[:EXAMPLES]


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


# Wikidata


def read_wikidata(
    dump: str | Path, folder: str | Path, relations: list[str] | None = None
) -> Graph:
    """A Wikidata JSON dump as a graph, written to ``folder`` and opened.

    relations  the properties to read ("P36", ...; default: all whose values are entities). They and
               all labels are held in memory, a few hundred bytes per entity

    Triples have ``rank`` (see ``best_rank``), ``start`` and ``end``: P580 and P582, or P585 for
    both; "" if there is none, "?" if the date is unknown, less exact than a year, or given several
    times. The types are the values of P31 and P279 (without deprecated ones), as ids. Entities that
    are only mentioned have no label. ``about["counts"]`` counts what was read, left out and kept.
    """
    with extra("wikidata"):
        import msgspec
    if odd := [relation for relation in relations or () if not PROPERTY.fullmatch(relation)]:
        raise ProbeError(f"relation {odd[0]!r}; allowed are ids of properties such as P36")
    counts, examples, dates, brackets = Counter(), [], {"": 0}, set()
    known, statements, decode = {}, array("q"), msgspec.json.Decoder().decode
    wanted = {int(relation[1:]) for relation in relations or ()}
    for place, line in enumerate((x for block in blocks(dump) for x in block.splitlines()), 1):
        if (text := line.strip()) in (b"[", b"]", b""):
            brackets.add(text)
            continue
        try:
            data = decode(text.rstrip(b","))
            if data["type"] not in KINDS:  # a lexeme
                counts["other kinds"] += 1
                continue
            key, label, aliases, rows, left_out = _entity(data)
            kept = [r for r in rows if relations is None or r[0] in wanted or r[0] in TYPES]
            kept = [(key, *row[:3], *interval(row[3])) for row in kept]
        except BAD as error:
            counts["malformed"] += 1
            examples.append(f"line {place}: {type(error).__name__}: {error}"[:200])
            continue
        if key in known:  # the first line of an entity counts
            counts["entity given twice"] += 1
            continue
        for *numbers, start, end in kept:
            codes = (dates.setdefault(text, len(dates)) for text in (start, end))
            statements.extend((*numbers, *codes))
            counts["dates not exact"] += (start, end).count(UNKNOWN)
        known[key] = (label, aliases)
        counts["items" if key > 0 else "properties"] += 1
        counts["other relations"] += len(rows) - len(kept)
        counts += left_out
    if b"[" in brackets and b"]" not in brackets:
        warnings.warn(f"{dump}: begins with '[' and does not end with ']': cut off?", stacklevel=2)
    columns = ["head", "relation", "tail", "rank", "start", "end"]
    rows = np.frombuffer(statements, np.int64).reshape(-1, len(columns))
    rows = pd.DataFrame(rows, columns=columns)
    taken = rows if relations is None else rows[rows["relation"].isin(wanted)]
    counts["other relations"] += len(rows) - len(taken)
    tables = _tables(rows, taken, known, np.array(list(dates), object))
    counts |= {"triples": len(taken), "entities": len(tables[1])}
    source = f"wikidata:{Path(dump).name}"
    return _written(folder, tables, source, counts, examples[:EXAMPLES])


def _tables(rows: pd.DataFrame, taken: pd.DataFrame, known: dict, dates: np.ndarray) -> tuple:
    """The graph's four tables. Entities keep the order of the dump; then come those that are only
    mentioned."""
    used = set(taken["head"]) | set(taken["tail"])
    order = [key for key in known if key in used] + sorted(used - known.keys())
    about = [known.get(key, (None, None)) for key in order]
    place, name = pd.Index(order).get_indexer, lambda key: f"{'Q' if key > 0 else 'P'}{abs(key)}"
    kinds, kind = np.unique(taken["relation"], return_inverse=True)
    triples = {"head": place(taken["head"]), "relation": kind, "tail": place(taken["tail"])}
    triples |= {date: dates[taken[date]] for date in ("start", "end")}
    triples["rank"] = np.array(RANKS, object)[taken["rank"]]
    typed = rows["relation"].isin(TYPES) & (rows["rank"] > 0) & rows["head"].isin(used)
    types = rows.loc[typed, ["head", "tail"]].assign(head=place(rows.loc[typed, "head"]))
    types = types.drop_duplicates().sort_values(["head", "tail"])
    labels, aliases = ([each[i] for each in about] for i in (0, 1))
    entities = {"entity": [name(key) for key in order], "label": labels, "aliases": aliases}
    called = [known.get(-number, (None,))[0] for number in kinds.tolist()]
    relations = {"relation": [f"P{number}" for number in kinds], "label": called}
    types = {"entity": types["head"].to_numpy(), "type": [name(key) for key in types["tail"]]}
    columns = {"triples": triples, "entities": entities, "relations": relations, "types": types}
    return tuple(make_table(name, own) for name, own in columns.items())


def _entity(data: dict) -> tuple[int, str | None, list[str], list[tuple], Counter]:
    """One item or property: its number; its label in English, else for all languages, else None;
    aliases in both; (number of the property, of the value, rank, qualifiers) per statement; counts
    of other statements. Old dumps write empty maps as lists, and values as numbers alone."""
    labels, aliases = (data.get(name) or {} for name in ("labels", "aliases"))
    rows, left_out = [], Counter()
    for one in (s for several in (data.get("claims") or {}).values() for s in several):
        snak = one["mainsnak"]
        value = snak["datavalue"]["value"] if snak["snaktype"] == "value" else None
        is_entity = value and snak["datavalue"]["type"] == "wikibase-entityid"
        if value is None:
            left_out["no value"] += 1
        elif not is_entity or not (kind := KINDS.get(value["entity-type"])):
            left_out["other values"] += 1
        elif not PROPERTY.fullmatch(snak["property"]):
            raise ValueError(f"{snak['property']!r} is not the id of a property")
        else:
            obj = number(value.get("id") or f"{kind}{value['numeric-id']}")
            rank, dates = RANKS.index(one["rank"]), one.get("qualifiers") or {}
            rows.append((int(snak["property"][1:]), obj, rank, dates))
    label = next((labels[code]["value"] for code in LANGUAGES if code in labels), None)
    names = [alias["value"] for code in LANGUAGES if aliases for alias in aliases.get(code, ())]
    if not all(isinstance(text, str) for text in (label or "", *names)):
        raise TypeError("a label or an alias is not a text")
    return number(data["id"]), label, names, rows, left_out


def number(key: str) -> int:
    """42 for Q42, -31 for P31: one integer per id. Raise ValueError for any other text."""
    if not KEY.fullmatch(key):
        raise ValueError(f"{key!r} is not an id")
    return int(key[1:]) if key[0] == "Q" else -int(key[1:])


def interval(dates: dict) -> tuple[str, str]:
    """Start and end from a statement's qualifiers P580, P582 and P585: a point in time is both.

    A term that begins and ends within one year or month gets the last day of that period as its
    end; a term of a single day gets the month as its start. With equal dates it would read as a
    point in time, and so as a fact that still holds.
    """
    if "P580" not in dates and "P582" not in dates:
        return (_date(dates.get("P585")),) * 2
    start, end = _date(dates.get("P580")), _date(dates.get("P582"))
    if start != end or end in ("", UNKNOWN):
        return start, end
    (first,), (last,) = days([end])
    return (start, str(np.datetime64(int(last), "D"))) if first < last else (start[:-3], end)


def _date(snaks: list[dict] | None) -> str:
    if not snaks or snaks[0]["snaktype"] == "novalue":
        return ""
    if len(snaks) > 1 or snaks[0]["snaktype"] != "value":
        return UNKNOWN
    value = snaks[0]["datavalue"]["value"]
    return date_text(value["time"], value["precision"])


def date_text(time: str, precision: int) -> str:
    """Wikidata's ``+1949-05-23T00:00:00Z`` as ``1949-05-23``, ``1949-05`` (precision 10), ``1949``
    (9) or "?" (less exact)."""
    sign, year, month, day = TIME.match(time).groups()
    parts = [f"{'-' if sign == '-' else ''}{int(year)}", month, day]
    exact = parts[: max(0, precision - 8)]
    exact = exact[: exact.index("00")] if "00" in exact else exact
    return "-".join(exact) if exact and is_date("-".join(exact)) else UNKNOWN
