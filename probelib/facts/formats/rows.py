"""Rows of CSV, TSV, Parquet, JSON and JSON Lines files, each with its line number, which every error message names."""

import csv
import difflib
import io
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.compute
import pyarrow.parquet

from probelib.errors import ProbeError
from probelib.facts.text import check_object, is_a, parse_json, read_bytes, read_json, read_text, suffix_of

Rows = list[tuple[int, dict]]  # line, {column: cell}
UNREADABLE = (pyarrow.ArrowException, OSError, ValueError, OverflowError)  # ValueError: also text that is not UTF-8


def read_table(
    path: Path,
    needed: Iterable[str],
    optional: Iterable[str] = (),
    only: dict[str, str] | None = None,
    quoted: bool = False,
) -> Rows:
    """(line, row) for every row of a file: its ``needed`` columns, and those of the ``optional`` ones that it has.

    A column "a.b" that the file lacks is the value b inside of column a, which is returned whole (see ``value_at``).
    only     read only rows with these values, {column: text}: {"language": "en", "is_manual": "true"}
    quoted   whether a .tsv has quotation marks around cells, as pandas and Excel write it

    Cells of CSV and TSV are text; those of other files keep their types. The line of a row of Parquet or JSON is its number,
    from 1.
    """
    kind = suffix_of(path)
    if kind not in READERS:
        raise ProbeError(f"{path}: a table is a {', '.join(list(READERS)[:-1])} or {list(READERS)[-1]} file")
    only = only or {}
    options = {".tsv": ("\t", quoted), ".parquet": (only,)}.get(kind, ())
    rows = READERS[kind](path, sorted({*needed, *only}), sorted(optional), *options)
    fits = lambda row: all(str(value_at(row, name)).lower() == text.lower() for name, text in only.items())
    return [(line, row) for line, row in rows if fits(row)] if only else rows


def value_at(row: dict, column: str):
    """The value of a column, or of a path "a.b.c" into nested objects; None where there is none."""
    if column in row:
        return row[column]
    for key in column.split("."):
        row = row.get(key) if isinstance(row, dict) else None
    return row


def _read_csv(path: Path, needed: list[str], optional: list[str], mark: str = ",", quoted: bool = True) -> Rows:
    quoting = csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE
    text = io.StringIO(read_text(path).rstrip("\n"), newline="")
    reader = csv.reader(text, strict=True, delimiter=mark, quoting=quoting)
    header, rows, line = None, [], 1
    try:
        for cells in reader:
            if header is None:
                header = cells
                wanted = _check_header(path, header, needed, optional)
            elif len(cells) != len(header):
                raise ProbeError(
                    f"{path}:{line}: {len(cells)} cells, the header has {len(header)}: {str(cells)[:80]}. A cell that holds a "
                    "comma needs quotation marks around it"
                )
            elif cells == header:
                raise ProbeError(f"{path}:{line}: repeats the header of line 1; remove it (were two files joined?)")
            else:
                row = dict(zip(header, cells, strict=True))
                if odd := [name for name in wanted if not quoted and _quoted(row[name])]:
                    raise ProbeError(
                        f"{path}:{line}: {odd[0]} is {row[odd[0]][:80]}: the cells of a .tsv are read as they are, so "
                        "quotation marks around a cell would count as part of its name. Save the table as .csv"
                    )
                rows.append((line, {name: row[name] for name in wanted}))
            line = reader.line_num + 1  # a quoted cell may run over several lines
    except csv.Error as error:
        raise ProbeError(f"{path}:{line}: {error}") from error
    if header is None:
        raise ProbeError(f"{path}:1: an empty file; its first line names the columns: {', '.join(needed)}")
    return rows


def _quoted(cell: str) -> bool:
    """Whether a cell is written as CSV writes one that holds quotation marks: they are doubled, and two more enclose it."""
    inside = cell[1:-1]
    return f'"{inside}"' == cell and '""' in inside and '"' not in inside.replace('""', "")


def _read_parquet(path: Path, needed: list[str], optional: list[str], only: dict[str, str]) -> Rows:
    """Rows that ``only`` leaves out never become Python objects: some data sets have millions."""
    try:
        file = pyarrow.parquet.ParquetFile(pyarrow.BufferReader(read_bytes(path)))
        names = file.schema_arrow.names
        table = file.read(_check_header(path, names, needed, optional))
        lines = np.arange(1, len(table) + 1)
        for name in only.keys() & set(names):
            texts = pyarrow.compute.utf8_lower(pyarrow.compute.cast(table[name], "string"))
            fits = pyarrow.compute.equal(texts, only[name].lower()).fill_null(False)
            table, lines = table.filter(fits), lines[fits.to_numpy()]
        return list(zip(lines.tolist(), table.to_pylist(), strict=True))
    except UNREADABLE as error:
        raise ProbeError(f"{path}: not a readable Parquet file: {str(error)[:200]}") from error


def _read_json(path: Path, needed: list[str], optional: list[str]) -> Rows:
    """A list of objects; or an object that holds one, under a key of any name."""
    found = read_json(path)
    lists = [value for value in found.values() if isinstance(value, list)] if isinstance(found, dict) else [found]
    if len(lists) != 1 or not isinstance(lists[0], list):
        raise ProbeError(f"{path}:1: a list of objects is needed, or an object with one list of them")
    return _objects(path, enumerate(lists[0], 1), needed, optional)


def _read_lines(path: Path, needed: list[str], optional: list[str]) -> Rows:
    lines = enumerate(read_text(path).rstrip("\n").split("\n"), 1)
    return _objects(path, ((line, parse_json(path, text, line)) for line, text in lines), needed, optional)


def _objects(path: Path, rows: Iterable[tuple], needed: list[str], optional: list[str]) -> Rows:
    """Rows of JSON, the needed and optional columns of each; an optional one may be missing in some."""
    found = []
    for line, row in rows:
        keys = list(check_object(f"{path}:{line}", row, {}))
        wanted = _check_header(path, keys, needed, optional, line)
        found.append((line, {name: row[name] for name in wanted}))
    return found


def _check_header(path: Path, header: list[str], needed: list[str], optional: list[str], line: int = 1) -> list[str]:
    """The columns to read."""
    outer = lambda name: name if name in header else name.split(".")[0]
    where = f"{path}:{line}: the columns are {header}"
    if missing := [name for name in needed if outer(name) not in header]:
        raise ProbeError(f"{where}; needed, each once: {needed}. {_column_hint(missing, header)}")
    if twice := [name for name in (*needed, *optional) if header.count(name) > 1]:
        raise ProbeError(f"{where}; {', '.join(twice)} may occur only once")
    wanted = {outer(name) for name in (*needed, *optional)}
    return [name for name in header if name in wanted]


def _column_hint(missing: list[str], header: list[str]) -> str:
    """What to do about missing columns. Names that are not the kit's come from ``columns``."""
    if len(header) == 1 and (found := [mark for mark in ";\t" if mark in header[0]]):
        return f"The cells are separated by {found[0]!r}: separate them by commas, or save a table with tabs as .tsv"
    if not set(missing) <= {"subject", "relation", "object"}:
        return "Rename them in the file, or correct columns=..."
    near = {name: difflib.get_close_matches(name, header, n=1) for name in missing}
    pairs = [f"{name}:{near[name][0] if near[name] else '=P36' if name == 'relation' else 'NAME'}" for name in missing]
    constant = "; a text after = is the same in every row" if ":=" in "".join(pairs) else ""
    return f"Rename them in the file, or say which columns of the file are meant: columns={','.join(pairs)}{constant}"


READERS = {".csv": _read_csv, ".tsv": _read_csv, ".parquet": _read_parquet, ".json": _read_json, ".jsonl": _read_lines}


def cell_text(path: Path, line: int, column: str, value) -> str:
    """The text of a cell, stripped; "" where there is none."""
    if value is None or is_a(value, str | int):  # Parquet and Excel files may hold years as integers
        return "" if value is None else str(value).strip()
    raise ProbeError(f"{path}:{line}: {column} is a {type(value).__name__} ({value!r}); text or an integer is needed")
