"""Reading text, JSON, JSON Lines, TSV and YAML files; every error names file and line."""

import bz2
import gzip
import json
import lzma
import re
import zlib
from pathlib import Path

import yaml

from probelib.errors import ProbeError, texts_of

UNPACK = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def read_bytes(path: Path) -> bytes:
    """The content of a file; one whose name ends in ``.gz``, ``.bz2`` or ``.xz`` is decompressed."""
    try:
        with UNPACK.get(path.suffix, open)(path, "rb") as file:
            return file.read()
    except IsADirectoryError as error:
        raise ProbeError(f"{path}: a folder, where a file is needed") from error
    except FileNotFoundError as error:
        where = "" if path.is_absolute() else f" in {Path.cwd()}"
        raise ProbeError(f"{path}: no such file{where}") from error
    except (EOFError, zlib.error, lzma.LZMAError) as error:
        raise ProbeError(f"{path}: not a complete {path.suffix} file: {error}") from error
    except OSError as error:  # also raised, without strerror, for a file that is .gz or .bz2 only by its name
        raise ProbeError(f"{path}: cannot be read: {error.strerror or error}") from error


def suffix_of(path: Path) -> str:
    """The kind of a file, compressed or not: ``.json`` for facts.json and for facts.json.gz; "" without a suffix."""
    return next((suffix for suffix in reversed(path.suffixes) if suffix not in UNPACK), "")


def read_text(path: Path) -> str:
    """The text of a UTF-8 file (a byte-order mark and CRLF line ends are accepted and removed)."""
    content = read_bytes(path)
    try:
        return content.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise ProbeError(
            f"{path}:{line}: not UTF-8 (byte {error.object[error.start]:#04x}). Save the file as UTF-8 (in a spreadsheet: "
            "CSV UTF-8)"
        ) from error


def relation_files(folder: Path, name: str, relations: list[str] | None = None) -> dict[str, Path]:
    """{relation: file} of the files in a folder whose whole name matches the pattern ``name``; its first group is the relation
    (P9 comes before P10; compressed files count). ``relations``: those to find; raise ProbeError if a file is missing."""
    relations = check_relations(relations)
    if not folder.is_dir():
        raise ProbeError(f"{folder}: no such folder")
    pattern, files = re.compile(rf"{name}(\.gz|\.bz2|\.xz)?"), {}
    for path in sorted(folder.iterdir()):
        match = pattern.fullmatch(path.name)
        if match and files.setdefault(match[1], path) != path:
            raise ProbeError(f"{folder}: two files for {match[1]}: {files[match[1]].name} and {path.name}")
    missing = [relation for relation in relations or [] if relation not in files]
    if missing or not files:
        wanted = name.replace(r"(P\d+)", "P17").replace(".*", "").replace("\\", "")
        raise ProbeError(
            f"{folder}: no file for {', '.join(missing) or 'any relation'}; expected are files named like {wanted}, "
            f"found: {', '.join(sorted(files, key=number_in)) or 'none'}"
        )
    return {relation: files[relation] for relation in relations or sorted(files, key=number_in)}


def check_relations(relations: list[str] | None) -> list[str] | None:
    """The requested relations; None: all. Raise ProbeError for an empty list, or anything but a list of texts."""
    if relations is None:
        return None
    if not (names := texts_of("relations", relations)):
        raise ProbeError("relations is an empty list; name one at least, such as ['P36'], or give None for all")
    return names


def number_in(relation: str) -> int:
    """36 for P36: relations sort by it."""
    return int(re.sub(r"\D", "", relation)[:18] or 0)


def parse_json(path: Path, text: str, line: int = 1):
    """The value of one JSON text that starts at ``line``. Raise ProbeError for text that is not JSON, a key given twice in one
    object, NaN and Infinity, half a surrogate pair, and nesting or numbers beyond Python's limits."""
    try:
        value = json.loads(text, object_pairs_hook=_no_key_twice, parse_constant=_no_constant)
        if SURROGATE.search(text):
            json.dumps(value, ensure_ascii=False).encode()
    except RecursionError as error:
        raise ProbeError(f"{path}:{line}: JSON nested too deeply") from error
    except json.JSONDecodeError as error:
        head = text.split("\n")[error.lineno - 1][:60]
        raise ProbeError(f"{path}:{line + error.lineno - 1}: not JSON ({error.msg}): {head!r}") from error
    except ValueError as error:
        raise ProbeError(f"{path}:{line}: not JSON ({error}): {text[:60]!r}") from error
    return value


def _no_key_twice(pairs: list[tuple]) -> dict:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"key {next(k for k in found if keys.count(k) > 1)!r} given twice")
    return found


def _no_constant(name: str):
    raise ValueError(f"{name} is not a JSON number")


def check_object(where: str, value, keys: dict, exact: bool = False) -> dict:
    """Return ``value``, found at ``where`` (file and line), if it is an object with ``keys`` (name -> type or union of types;
    True does not count as an int). Otherwise raise ProbeError. Other keys are allowed unless ``exact``."""
    good = isinstance(value, dict) and (set(value) == set(keys) if exact else set(value) >= set(keys))
    if not good or not all(is_a(value[key], kind) for key, kind in keys.items()):
        names = ", ".join(f"{key} ({getattr(kind, '__name__', kind)})" for key, kind in keys.items())
        wanted = f" with {'exactly ' if exact else ''}{names}" if names else ""
        raise ProbeError(f"{where}: an object{wanted} is needed: {str(value)[:80]}")
    return value


def is_a(value, kind) -> bool:
    """``isinstance``, but True and False are not numbers."""
    return isinstance(value, kind) and (not isinstance(value, bool) or kind is bool)


def read_json(path: Path):
    """The value of a JSON file; for errors see ``parse_json``."""
    return parse_json(path, read_text(path))


def read_objects(path: Path, keys: dict, labels: tuple[str, ...] = ()) -> list[tuple[int, dict]]:
    """(line number, object) for every line of a JSON Lines file of objects with at least ``keys`` (see ``check_object``);
    the texts named in ``labels`` are stripped and may not be empty."""
    rows = []
    for number, line in enumerate(read_text(path).rstrip("\n").split("\n"), 1):
        row = check_object(f"{path}:{number}", parse_json(path, line, number), keys)
        row |= {key: row[key].strip() for key in labels}
        if empty := [key for key in labels if not row[key]]:
            raise ProbeError(f"{path}:{number}: an empty {' and '.join(empty)}: {line[:80]!r}")
        rows.append((number, row))
    return rows


def check_texts(where: str, name: str, values) -> list[str]:
    """``values``, stripped. Raise ProbeError unless they are a list of non-empty texts."""
    if not isinstance(values, list) or not all(isinstance(value, str) and value.strip() for value in values):
        raise ProbeError(f"{where}: {name} must be a list of non-empty texts: {str(values)[:80]}")
    return [value.strip() for value in values]


def read_tsv(path: Path, required: list[str], optional: tuple[str, ...] = ()) -> list[tuple[int, dict[str, str]]]:
    """(line number, row) for every line of a tab-separated file with a header; absent optional columns read as ""."""
    lines = read_text(path).removesuffix("\n").split("\n")
    header = lines[0].split("\t")
    if not set(required) <= set(header) <= {*required, *optional} or len(set(header)) != len(header):
        raise ProbeError(f"{path}:1: the header is {header}; needed: {required}, allowed: {list(optional)}")
    empty = dict.fromkeys(optional, "")
    rows = []
    for number, line in enumerate(lines[1:], 2):
        if not line:
            raise ProbeError(f"{path}:{number}: an empty line")
        cells = line.split("\t")
        if len(cells) != len(header):
            raise ProbeError(f"{path}:{number}: {len(cells)} columns, the header has {len(header)}: {line[:80]!r}")
        row = empty | {name: cell.strip() for name, cell in zip(header, cells, strict=True)}
        if any(not row[name] for name in required):
            raise ProbeError(f"{path}:{number}: an empty cell in one of the columns {required}: {line[:80]!r}")
        rows.append((number, row))
    return rows


def read_yaml(path: Path) -> dict:
    """The mapping in a YAML file."""
    try:
        data = yaml.load(read_text(path), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # ValueError: a date such as 2020-13-01
        line = getattr(getattr(error, "problem_mark", None), "line", 0) + 1
        raise ProbeError(f"{path}:{line}: not YAML: {getattr(error, 'problem', error)}") from error
    if not isinstance(data, dict):
        raise ProbeError(f"{path}:1: a mapping (key: value) is needed, found {type(data).__name__}")
    return data
