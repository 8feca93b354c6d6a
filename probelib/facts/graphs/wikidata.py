"""Wikidata: the JSON dump, one entity per line, as a knowledge graph with times and ranks.

    [
    {"type":"item","id":"Q31","labels":{...},"descriptions":{...},"aliases":{...},"claims":{"P36":[...]},"sitelinks":{...}},
    ...
    ]

The dump (hundreds of gigabytes) is read once, from beginning to end: the fields go to disk in batches, from which the graph is
assembled. Ids are kept as integers; Python objects live only as long as their line is processed.

Of a line, only the fields that are kept become Python objects: msgspec checks their types and skips the others.
"""

import re
import shutil
import warnings
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from probelib.errors import ProbeError, extra
from probelib.facts.graphs.dumps import blocks
from probelib.facts.graphs.graph import (
    RANKS,
    Graph,
    alone,
    column_values,
    distinct,
    make_table,
    open_graph,
    write_graph,
)
from probelib.facts.validity import UNKNOWN, days, is_date

with extra("wikidata"):
    import msgspec
    from msgspec import UNSET

BATCH = 20_000  # entities that are held before they go to disk
EXAMPLES = 5  # malformed lines that are quoted
TYPES = (31, 279)  # instance of, subclass of
TIME = re.compile(r"([+-])([0-9]+)-([0-9]{2})-([0-9]{2})T")
LANGUAGES = ("en", "mul")  # of labels and aliases: the first that exists; "mul" is the label for all languages
DATES = ("P580", "P582", "P585")  # start time, end time, point in time
KINDS = {"item": "Q", "property": "P", "lexeme": None, "form": None, "sense": None}  # letter of the ids that are kept
KEY = re.compile(r"[QP][1-9][0-9]{0,9}")
PROPERTY = re.compile(r"P[1-9][0-9]{0,8}")
# what lines of another shape raise
BAD = (msgspec.MsgspecError, ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError)
ENTITY = pa.schema({"key": pa.int64(), "label": pa.large_string(), "aliases": pa.large_list(pa.large_string())})
STATEMENT = ("line", "relation", "value", "rank", "start", "end")


def read_wikidata(dump: str | Path, folder: str | Path, relations: list[str] | None = None) -> Graph:
    """A Wikidata JSON dump as a graph, written to ``folder`` and opened.

    relations  the properties to read ("P36", ...; default: all whose values are entities; of a whole dump those are many
               hundred millions, so choose)

    Triples have ``rank`` (see ``best_rank``), ``start`` and ``end``: P580 and P582, or P585 for both; "" if there is none,
    "?" if the date is unknown, less exact than a year, or given several times. The types are the values of P31 and P279
    (without deprecated ones), as ids. Entities that are only mentioned have no label.

    ``about["counts"]``: entities read (``items``, ``properties``) and skipped (``other kinds``, ``malformed`` lines, ``entity
    given twice``: the first counts), statements left out (``other values``: no entities; ``no value``; ``other
    relations``), and what is kept (``triples``, ``entities``, ``entities only mentioned``, ``dates not exact``).
    """
    if odd := [relation for relation in relations or () if not PROPERTY.fullmatch(relation)]:
        raise ProbeError(f"relation {odd[0]!r}; allowed are ids of Wikidata's properties such as P36")
    wanted = None if relations is None else [int(relation[1:]) for relation in relations]
    with alone(folder), _spill(Path(folder)) as spill:
        counts, examples, dates = _stream(dump, spill)
        tables = _assemble(spill, dates, wanted, counts)
        about = {"source": f"wikidata:{Path(dump).name}", "counts": dict(counts), "examples": examples}
        if not len(tables[0]):
            raise ProbeError(f"{dump}: no triples; {about['counts']}; {'; '.join(examples)}")
        return open_graph(write_graph(Graph(*tables, about), folder))


@contextmanager
def _spill(folder: Path) -> Iterator[Path]:
    """Context manager: an empty folder for intermediate files; the folder of a run that was killed is deleted first."""
    spill = folder / "spill"
    shutil.rmtree(spill, ignore_errors=True)
    try:
        spill.mkdir()
        yield spill
    except (OSError, pa.ArrowException) as error:
        raise ProbeError(f"{folder}: the graph cannot be written there: {error}") from error
    finally:
        shutil.rmtree(spill, ignore_errors=True)


# One line: the fields of an entity


@dataclass(slots=True)
class Line:
    """One item or property.

    key         its id, "Q42" or "P31"
    label       in English, else the one for all languages, else None; ``aliases``: in both
    statements  (number of the property, number of the value: negative for a property, rank (place in ``RANKS``), qualifiers
                that are dates or None)
    others      number of statements with another value: a text, a date, ...; ``empty``: unknown, or explicitly none
    """

    key: str
    label: str | None
    aliases: list[str]
    statements: list[tuple[int, int, int, dict | None]] = field(default_factory=list)
    others: int = 0
    empty: int = 0


# The fields that are kept, with their types. A field that some lines lack has a default; if it is needed, BAD is raised.

struct = partial(msgspec.defstruct, gc=False)
Empty = Annotated[list, msgspec.Meta(max_length=0)] | None  # how an empty map may be written
ID = [("id", str | None, None), ("numeric_id", int | None, None)]
Value = struct("Value", [("entity_type", str), *ID], rename="kebab")
Data = struct("Data", [("type", str), ("value", msgspec.Raw, msgspec.Raw())])  # only values that are entities are built
Snak = struct("Snak", [("snaktype", str), ("property", str, ""), ("datavalue", Data | None, None)])
Dates = struct("Dates", [(p, Any, UNSET) for p in DATES])
Statement = struct("Statement", [("mainsnak", Snak), ("rank", str, ""), ("qualifiers", Dates | Empty, None)])
Text = struct("Text", [("value", str)])
NAMES = [("labels", dict[str, Text] | Empty, None), ("aliases", dict[str, list[Text]] | Empty, None)]
CLAIMS = [("claims", dict[str, list[Statement]] | Empty, None)]
LINE = msgspec.json.Decoder(struct("Entity", [("type", str), ("id", str), *NAMES, *CLAIMS]))
VALUE = msgspec.json.Decoder(Value)


def entity(line: bytes) -> Line | None:
    """The fields of one line, with or without its comma; None for other kinds of entities (lexemes, ...).

    Raise one of ``BAD`` for a line that is not an entity.
    """
    if not line.isascii():
        line.decode()  # msgspec does not look into the texts that it skips
    data = LINE.decode(line.rstrip(b", \t\r\n"))
    if data.type not in ("item", "property"):
        return None
    number(data.id)  # raises ValueError for anything else
    labels, aliases = data.labels or {}, data.aliases or {}
    label = next((labels[code].value for code in LANGUAGES if code in labels), None)
    found = Line(data.id, label, [a.value for code in LANGUAGES for a in aliases.get(code, ())])
    for statements in (data.claims or {}).values():
        _add(found, statements)
    return found


def _add(found: Line, statements: list[Statement]) -> None:
    for statement in statements:
        snak = statement.mainsnak
        if snak.snaktype != "value":
            found.empty += 1
            continue
        value = VALUE.decode(snak.datavalue.value) if snak.datavalue.type == "wikibase-entityid" else None
        if value is None or not (kind := KINDS.get(value.entity_type)):
            found.others += 1
            continue
        key = number(value.id or f"{kind}{value.numeric_id}")  # old dumps have the number alone
        dates = {p: getattr(statement.qualifiers, p) for p in DATES} if statement.qualifiers else {}
        dates = {p: snaks for p, snaks in dates.items() if snaks is not UNSET}
        found.statements.append((_property(snak.property), key, RANKS.index(statement.rank), dates or None))


def number(key: str) -> int:
    """42 for Q42, -31 for P31: one integer per id. Raise ValueError for any other text."""
    if not KEY.fullmatch(key):
        raise ValueError(f"{key!r} is not an id")
    return int(key[1:]) if key[0] == "Q" else -int(key[1:])


@lru_cache(maxsize=1 << 16)
def _property(key: str) -> int:
    if not PROPERTY.fullmatch(key):
        raise ValueError(f"{key!r} is not the id of a property")
    return int(key[1:])


# Reading the dump


def _stream(dump: str | Path, spill: Path) -> tuple[Counter, list[str], list[str]]:
    """Write entities and statements of the dump to ``spill``; return counts, examples of malformed lines, and dates."""
    counts, examples, rows, brackets, place = Counter(), [], _Rows(spill), set(), 0
    with rows:
        for block in blocks(dump):
            for line in block.split(b"\n"):
                place += 1
                if len(line) < 4 and line.strip() in (b"[", b"]", b""):
                    brackets.add(line.strip())
                    continue
                try:
                    rows.add(entity(line), counts)
                except BAD as error:
                    counts["malformed"] += 1
                    if len(examples) < EXAMPLES:
                        examples.append(f"line {place}: {type(error).__name__}: {error}"[:200])
            place -= 1  # what follows the last line end is the beginning of the next block
    if b"[" in brackets and b"]" not in brackets:
        warnings.warn(f"{dump}: begins with '[' and does not end with ']': cut off, or a part of a dump", stacklevel=3)
    return counts, examples, list(rows.dates)


class _Rows:
    """Rows that wait to be written to two files: entities (one row each) and statements (``STATEMENT``, integers)."""

    def __init__(self, spill: Path):
        self.dates, self.lines = {"": 0}, 0  # text -> code
        self._files = [pa.OSFile(str(spill / f"{name}.arrow"), "wb") for name in ("entities", "statements")]
        statement = pa.schema([(name, pa.int64()) for name in STATEMENT])
        self._writers = [pa.ipc.new_stream(f, s) for f, s in zip(self._files, (ENTITY, statement), strict=True)]
        self._entities, self._statements = [], array("q")

    def add(self, found: Line | None, counts: Counter) -> None:
        """Add a line; if one of its dates is malformed, add nothing."""
        if found is None:
            counts["other kinds"] += 1
            return
        plain = array("q")
        for relation, value, rank, dates in found.statements:
            plain.extend((self.lines, relation, value, rank, *(self._codes(dates, counts) if dates else (0, 0))))
        self._statements += plain
        self._entities.append((number(found.key), found.label, found.aliases))
        self.lines += 1
        counts["items" if found.key[0] == "Q" else "properties"] += 1
        counts["other values"] += found.others
        counts["no value"] += found.empty
        if len(self._entities) >= BATCH:
            self._flush()

    def _codes(self, dates: dict, counts: Counter) -> tuple[int, int]:
        texts = interval(dates)
        counts["dates not exact"] += texts.count(UNKNOWN)
        return tuple(self.dates.setdefault(text, len(self.dates)) for text in texts)

    def _flush(self) -> None:
        columns = zip(*self._entities, strict=True) if self._entities else ((), (), ())
        arrays = [pa.array(list(c), f.type) for c, f in zip(columns, ENTITY, strict=True)]
        self._writers[0].write_batch(pa.record_batch(arrays, schema=ENTITY))
        table = np.frombuffer(self._statements, np.int64).reshape(-1, len(STATEMENT))
        columns = [pa.array(np.ascontiguousarray(column)) for column in table.T]
        self._writers[1].write_batch(pa.record_batch(columns, names=STATEMENT))
        self._entities, self._statements = [], array("q")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._flush()
        for closing in (*self._writers, *self._files):
            closing.close()


def interval(dates: dict) -> tuple[str, str]:
    """Start and end from a statement's qualifiers P580, P582 and P585: a point in time is both.

    A term that begins and ends within one year or month gets the last day of that period as its end; a term of a single day
    gets the month as its start. With equal dates it would read as a point in time, and so as a fact that still holds.
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


@lru_cache(maxsize=1 << 18)
def date_text(time: str, precision: int) -> str:
    """Wikidata's ``+1949-05-23T00:00:00Z`` as ``1949-05-23``, ``1949-05`` (precision 10), ``1949`` (9) or "?" (less exact)."""
    sign, year, month, day = TIME.match(time).groups()
    parts = [f"{'-' if sign == '-' else ''}{int(year)}", month, day]
    exact = parts[: max(0, precision - 8)]
    if "00" in exact:
        exact = exact[: exact.index("00")]
    return "-".join(exact) if exact and is_date("-".join(exact)) else UNKNOWN


# Assembling the graph


def _assemble(spill: Path, dates: list[str], wanted: list[int] | None, counts: Counter) -> tuple[pa.Table, ...]:
    """The graph's four tables from ``spill``."""
    names = ("entities", "statements")
    entities, statements = (pa.ipc.open_stream(pa.memory_map(str(spill / f"{n}.arrow"))).read_all() for n in names)
    keys = column_values(entities, "key")
    fresh = np.zeros(len(keys), bool)
    fresh[np.unique(keys, return_index=True)[1]] = True
    line, relation, value, rank, start, end = (column_values(statements, name) for name in STATEMENT)
    valid = fresh[line]
    taken = valid if wanted is None else valid & np.isin(relation, wanted)
    head, tail = keys[line[taken]], value[taken]
    used = distinct(np.concatenate([head, tail]))
    rows = np.flatnonzero(fresh & np.isin(keys, used))  # entities keep the order of the dump; then those only mentioned
    order = np.concatenate([keys[rows], used[~np.isin(used, keys[rows])]])
    kinds, kind = np.unique(relation[taken], return_inverse=True)
    columns = {"head": _find(order, head), "relation": kind, "tail": _find(order, tail)}
    for name, codes, texts in (("start", start, dates), ("end", end, dates), ("rank", rank, RANKS)):
        columns[name] = _coded(codes[taken], texts)
    typed = valid & np.isin(relation, TYPES) & (rank > 0) & np.isin(keys[line], used)
    counts["entity given twice"] = int((~fresh).sum())
    counts["other relations"] = int((valid & ~taken).sum())
    counts.update({"triples": len(head), "entities": len(order), "entities only mentioned": len(order) - len(rows)})
    return (
        make_table("triples", columns),
        _entity_table(entities, rows, order),
        make_table("relations", {"relation": _ids(-kinds), "label": _labels(entities, keys, -kinds)}),
        _type_table(_find(order, keys[line[typed]]), value[typed]),
    )


def _find(order: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Indices of the ``wanted`` keys, all present, in ``order``, which need not be sorted."""
    sorting = np.argsort(order)
    return sorting[np.searchsorted(order, wanted, sorter=sorting)]


def _coded(codes: np.ndarray, texts: Iterable[str]) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), pa.array(list(texts), pa.string()))


def _ids(keys: np.ndarray) -> pa.Array:
    """Q42 for 42, P31 for -31."""
    letters = pa.array(np.where(keys > 0, "Q", "P"))
    return pc.binary_join_element_wise(letters, pa.array(np.abs(keys)).cast(pa.string()), "")


def _entity_table(entities: pa.Table, rows: np.ndarray, order: np.ndarray) -> pa.Table:
    """The entities in use; a null label and no aliases for those that are only mentioned."""
    described = entities.take(pa.array(rows)).drop_columns("key")
    mentioned = pa.table([pa.nulls(len(order) - len(rows), f.type) for f in described.schema], schema=described.schema)
    both = pa.concat_tables([described, mentioned]).combine_chunks()
    return make_table("entities", {"entity": _ids(order), "label": both["label"], "aliases": both["aliases"]})


def _labels(entities: pa.Table, keys: np.ndarray, wanted: np.ndarray) -> list[str | None]:
    """Labels of the keys; None for entities that the dump does not describe."""
    rows = np.flatnonzero(np.isin(keys, wanted))
    known = dict(zip(keys[rows], entities["label"].take(pa.array(rows)).to_pylist(), strict=True))
    return [known.get(key) for key in wanted]


def _type_table(entity: np.ndarray, value: np.ndarray) -> pa.Table:
    """Each (entity, type) once."""
    kinds, code = np.unique(value, return_inverse=True)
    entity, code = np.divmod(distinct(entity * max(len(kinds), 1) + code), max(len(kinds), 1))
    return make_table("types", {"entity": entity, "type": _coded(code, _ids(kinds).to_pylist())})
