"""Wikidata: the JSON dump, one entity per line, as a knowledge graph with times and ranks.

    [
    {"type":"item","id":"Q31","labels":{...},"aliases":{...},"claims":{"P36":[...]}, ...},
    ...
    ]

msgspec makes objects only of the fields of a line that are kept. Rows are held as Arrow batches
and arrays of integers.
"""

import re
import warnings
from array import array
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from probelib.errors import ProbeError, extra
from probelib.facts.graphs.dumps import EXAMPLES, blocks, written
from probelib.facts.graphs.graph import RANKS, Graph, column_values, distinct, make_table
from probelib.facts.validity import UNKNOWN, days, is_date

with extra("wikidata"):
    import msgspec
    from msgspec import UNSET, Struct

TYPES = (31, 279)  # instance of, subclass of
LANGUAGES = (
    "en",
    "mul",
)  # of labels and aliases: the first that exists; "mul" is for all languages
DATES = ("P580", "P582", "P585")  # start time, end time, point in time
KINDS = {"item": "Q", "property": "P", "lexeme": None, "form": None, "sense": None}
TIME = re.compile(r"([+-])([0-9]+)-([0-9]{2})-([0-9]{2})T")
KEY = re.compile(r"[QP][1-9][0-9]{0,9}")
PROPERTY = re.compile(r"P[1-9][0-9]{0,8}")
BATCH = 20_000  # entities that are held as Python objects
# what lines of another shape raise
BAD = (msgspec.MsgspecError, ValueError, KeyError, TypeError, AttributeError, IndexError)
BAD += (RecursionError,)
Empty = Annotated[list, msgspec.Meta(max_length=0)] | None  # how an empty map may be written
ENTITY = {
    "key": pa.int64(),
    "label": pa.large_string(),
    "aliases": pa.large_list(pa.large_string()),
}
ENTITY = pa.schema(ENTITY | {"others": pa.int64()})


class _Value(Struct, gc=False, rename="kebab"):
    entity_type: str
    id: str | None = None
    numeric_id: int | None = None


class _Data(Struct, gc=False):
    type: str
    value: msgspec.Raw = msgspec.Raw()  # only values that are entities are built


class _Snak(Struct, gc=False):
    snaktype: str
    property: str = ""
    datavalue: _Data | None = None


class _Dates(Struct, gc=False):
    P580: Any = UNSET
    P582: Any = UNSET
    P585: Any = UNSET


class _Statement(Struct, gc=False):
    mainsnak: _Snak
    rank: str = ""
    qualifiers: _Dates | Empty = None


class _Text(Struct, gc=False):
    value: str


class _Entity(Struct, gc=False):
    type: str
    id: str
    labels: dict[str, _Text] | Empty = None
    aliases: dict[str, list[_Text]] | Empty = None
    claims: dict[str, list[_Statement]] | Empty = None


LINE, VALUE = msgspec.json.Decoder(_Entity), msgspec.json.Decoder(_Value)


class Line(NamedTuple):
    """One item or property: its id; its label in English, else for all languages, else None;
    aliases in both; (number of the property, of the value (negative: a property), rank, qualifiers
    that are dates or None) per statement; numbers of statements with another value, and with
    none."""

    key: str
    label: str | None
    aliases: list[str]
    statements: list[tuple[int, int, int, dict | None]]
    others: int
    empty: int


def entity(line: bytes) -> Line | None:
    """The fields of one line, with or without its comma; None for other kinds of entities
    (lexemes). Raise one of ``BAD`` for a line that is not an entity."""
    if not line.isascii():
        line.decode()  # msgspec does not look into the texts that it skips
    data = LINE.decode(line.rstrip(b", \t\r\n"))
    if data.type not in ("item", "property"):
        return None
    number(data.id)  # raises ValueError for anything else
    labels, aliases, rows, others, empty = data.labels or {}, data.aliases or {}, [], 0, 0
    for statement in (s for several in (data.claims or {}).values() for s in several):
        snak, dates = statement.mainsnak, statement.qualifiers
        if snak.snaktype != "value":
            empty += 1
            continue
        is_entity = snak.datavalue.type == "wikibase-entityid"
        value = VALUE.decode(snak.datavalue.value) if is_entity else None
        if value is None or not (kind := KINDS.get(value.entity_type)):
            others += 1
            continue
        key = number(value.id or f"{kind}{value.numeric_id}")  # old dumps have the number alone
        if not PROPERTY.fullmatch(snak.property):
            raise ValueError(f"{snak.property!r} is not the id of a property")
        dates = {p: d for p in DATES if (d := getattr(dates, p)) is not UNSET} if dates else {}
        rows.append((int(snak.property[1:]), key, RANKS.index(statement.rank), dates or None))
    label = next((labels[code].value for code in LANGUAGES if code in labels), None)
    names = [alias.value for code in LANGUAGES for alias in aliases.get(code, ())]
    return Line(data.id, label, names, rows, others, empty)


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


@lru_cache(maxsize=1 << 18)
def date_text(time: str, precision: int) -> str:
    """Wikidata's ``+1949-05-23T00:00:00Z`` as ``1949-05-23``, ``1949-05`` (precision 10), ``1949``
    (9) or "?" (less exact)."""
    sign, year, month, day = TIME.match(time).groups()
    parts = [f"{'-' if sign == '-' else ''}{int(year)}", month, day]
    exact = parts[: max(0, precision - 8)]
    exact = exact[: exact.index("00")] if "00" in exact else exact
    return "-".join(exact) if exact and is_date("-".join(exact)) else UNKNOWN


def read_wikidata(
    dump: str | Path, folder: str | Path, relations: list[str] | None = None
) -> Graph:
    """A Wikidata JSON dump as a graph, written to ``folder`` and opened.

    relations  the properties to read ("P36", ...; default: all whose values are entities). They and
               all labels are held in memory: of a whole dump choose some

    Triples have ``rank`` (see ``best_rank``), ``start`` and ``end``: P580 and P582, or P585 for
    both; "" if there is none, "?" if the date is unknown, less exact than a year, or given several
    times. The types are the values of P31 and P279 (without deprecated ones), as ids. Entities that
    are only mentioned have no label.

    ``about["counts"]``: entities read (``items``, ``properties``) and skipped (``other kinds``,
    ``malformed`` lines, ``entity given twice``: the first counts), statements left out (``other
    values``: no entities; ``no value``; ``other relations``), and what is kept (``triples``,
    ``entities``, ``entities only mentioned``, ``dates not exact``).
    """
    if odd := [relation for relation in relations or () if not PROPERTY.fullmatch(relation)]:
        raise ProbeError(
            f"relation {odd[0]!r}; allowed are ids of Wikidata's properties such as P36"
        )
    wanted = None if relations is None else {*(int(r[1:]) for r in relations), *TYPES}
    counts, examples, dates, place, brackets = Counter(), [], {"": 0}, 0, set()
    batches, waiting, statements = [], [], array("q")
    for line in (line for block in blocks(dump) for line in block.splitlines()):
        place += 1
        if len(line) < 4 and line.strip() in (b"[", b"]", b""):
            brackets.add(line.strip())
            continue
        try:
            found = entity(line)
            kept = (
                [row for row in found.statements if wanted is None or row[0] in wanted]
                if found
                else []
            )
            ends = [interval(row[-1]) if row[-1] else ("", "") for row in kept]
        except BAD as error:
            counts["malformed"] += 1
            examples += [f"line {place}: {type(error).__name__}: {error}"[:200]][
                : EXAMPLES - len(examples)
            ]
            continue
        if found is None:
            counts["other kinds"] += 1
            continue
        n = len(batches) * BATCH + len(waiting)
        for (relation, value, rank, _), texts in zip(kept, ends, strict=True):
            codes = (dates.setdefault(text, len(dates)) for text in texts)
            statements.extend((n, relation, value, rank, *codes))
        waiting.append(
            (number(found.key), found.label, found.aliases, len(found.statements) - len(kept))
        )
        counts["items" if found.key[0] == "Q" else "properties"] += 1
        counts["other values"] += found.others
        counts["no value"] += found.empty
        counts["dates not exact"] += sum(texts.count(UNKNOWN) for texts in ends)
        if len(waiting) == BATCH:
            batches.append(_batch(waiting))
            waiting = []
    if b"[" in brackets and b"]" not in brackets:
        warnings.warn(f"{dump}: begins with '[' and does not end with ']': cut off?", stacklevel=2)
    entities = pa.Table.from_batches([*batches, _batch(waiting)])
    rows = np.frombuffer(statements, np.int64).reshape(-1, 6)
    tables = _assemble(entities, rows, list(dates), relations, counts)
    return written(folder, tables, f"wikidata:{Path(dump).name}", counts, examples)


def _batch(waiting: list[tuple]) -> pa.RecordBatch:
    columns = zip(*waiting, strict=True) if waiting else [()] * len(ENTITY)
    arrays = [pa.array(list(c), f.type) for c, f in zip(columns, ENTITY, strict=True)]
    return pa.record_batch(arrays, schema=ENTITY)


def _assemble(
    entities: pa.Table,
    rows: np.ndarray,
    dates: list[str],
    relations: list[str] | None,
    counts: Counter,
) -> tuple[pa.Table, ...]:
    """The graph's four tables. Entities keep the order of the dump; then come those only
    mentioned."""
    keys, others = column_values(entities, "key"), column_values(entities, "others")
    fresh = np.zeros(len(keys), bool)
    fresh[np.unique(keys, return_index=True)[1]] = True
    line, relation, value, rank, start, end = rows.T
    valid = taken = fresh[line]
    if relations is not None:
        taken = valid & np.isin(relation, [int(name[1:]) for name in relations])
    head, tail = keys[line[taken]], value[taken]
    used = distinct(np.concatenate([head, tail]))
    described = np.flatnonzero(fresh & np.isin(keys, used))
    order = np.concatenate([keys[described], used[~np.isin(used, keys[described])]])
    kinds, kind = np.unique(relation[taken], return_inverse=True)
    triples = {"head": _places(order, head), "relation": kind, "tail": _places(order, tail)}
    for name, codes, texts in (("start", start, dates), ("end", end, dates), ("rank", rank, RANKS)):
        triples[name] = _coded(codes[taken], texts)
    counts["entity given twice"] = int((~fresh).sum())
    counts["other relations"] = int((valid & ~taken).sum() + others[fresh].sum())
    counts["triples"], counts["entities"] = len(head), len(order)
    counts["entities only mentioned"] = len(order) - len(described)
    about = entities.take(pa.array(described)).select(["label", "aliases"])
    mentioned = pa.table(
        [pa.nulls(len(order) - len(described), f.type) for f in about.schema], about.schema.names
    )
    about = pa.concat_tables([about, mentioned]).combine_chunks()
    named = np.flatnonzero(np.isin(keys, -kinds))
    labels = dict(
        zip(keys[named], entities["label"].take(pa.array(named)).to_pylist(), strict=True)
    )
    typed = valid & np.isin(relation, TYPES) & (rank > 0) & np.isin(keys[line], used)
    types, code = np.unique(value[typed], return_inverse=True)
    pairs = distinct(_places(order, keys[line[typed]]) * max(len(types), 1) + code)
    entity_of, code = np.divmod(pairs, max(len(types), 1))
    columns = {"label": about["label"], "aliases": about["aliases"]}
    return (
        make_table("triples", triples),
        make_table("entities", {"entity": _ids(order)} | columns),
        make_table(
            "relations", {"relation": _ids(-kinds), "label": [labels.get(-k) for k in kinds]}
        ),
        make_table("types", {"entity": entity_of, "type": _coded(code, _ids(types).to_pylist())}),
    )


def _places(order: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Indices of the ``wanted`` keys, all present, in ``order``, which need not be sorted."""
    sorting = np.argsort(order)
    return sorting[np.searchsorted(order, wanted, sorter=sorting)]


def _coded(codes: np.ndarray, texts: Iterable[str]) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(
        pa.array(codes, pa.int32()), pa.array(list(texts), pa.string())
    )


def _ids(keys: np.ndarray) -> pa.Array:
    """Q42 for 42, P31 for -31."""
    letters = pa.array(np.where(keys > 0, "Q", "P"))
    return pc.binary_join_element_wise(letters, pa.array(np.abs(keys)).cast(pa.string()), "")
