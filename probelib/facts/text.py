"""Reading text, JSON, TSV and YAML files; every error names file and line."""

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
MOST = 1 << 32  # bytes of a file, decompressed: some archives have no end
SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def read_bytes(path: Path) -> bytes:
    """The content of a file; one that ends in ``.gz``, ``.bz2`` or ``.xz`` is decompressed."""
    try:
        with UNPACK.get(path.suffix, open)(path, "rb") as file:
            content = file.read(MOST + 1)
    except IsADirectoryError as error:
        raise ProbeError(f"{path}: a folder, where a file is needed") from error
    except FileNotFoundError as error:
        where = "" if path.is_absolute() else f" in {Path.cwd()}"
        raise ProbeError(f"{path}: no such file{where}") from error
    except (EOFError, zlib.error, lzma.LZMAError) as error:
        raise ProbeError(f"{path}: not a complete {path.suffix} file: {error}") from error
    except OSError as error:  # without strerror: a file that is .gz or .bz2 only by its name
        raise ProbeError(f"{path}: cannot be read: {error.strerror or error}") from error
    if len(content) > MOST:
        raise ProbeError(f"{path}: more than {MOST >> 30} GiB, decompressed; split the file")
    return content


def suffix_of(path: Path) -> str:
    """The kind of a file, compressed or not: ``.json`` for facts.json and facts.json.gz, or ""."""
    return next((suffix for suffix in reversed(path.suffixes) if suffix not in UNPACK), "")


def read_text(path: Path) -> str:
    """The text of a UTF-8 file, without a byte-order mark, with "\\n" as the only line end."""
    content = read_bytes(path)
    try:
        return content.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise ProbeError(
            f"{path}:{line}: not UTF-8 (byte {error.object[error.start]:#04x}). Save the file as "
            "UTF-8 (in a spreadsheet: CSV UTF-8)"
        ) from error


def check_relations(relations: list[str] | None) -> list[str] | None:
    """The requested relations; None: all. Raise ProbeError for anything but a list of texts."""
    if relations is None:
        return None
    if not (names := texts_of("relations", relations)):
        raise ProbeError(
            "relations is an empty list; name one, such as ['P36'], or give None for all"
        )
    return names


def number_in(relation: str) -> int:
    """36 for P36: relations sort by it."""
    return int(re.sub(r"\D", "", relation)[:18] or 0)


def is_a(value, kind) -> bool:
    """``isinstance``, but True and False are not numbers."""
    return isinstance(value, kind) and (not isinstance(value, bool) or kind is bool)


def check_object(where: str, value, keys: dict, exact: bool = False) -> dict:
    """Return ``value``, found at ``where`` (file and line), if it is an object with ``keys`` (name
    -> type or union of types). Otherwise raise ProbeError. Other keys are allowed unless
    ``exact``."""
    good = isinstance(value, dict) and set(value) >= set(keys)
    good = good and not (exact and set(value) != set(keys))
    if not good or not all(is_a(value[key], kind) for key, kind in keys.items()):
        names = [f"{key} ({getattr(kind, '__name__', kind)})" for key, kind in keys.items()]
        wanted = f" with {'exactly ' if exact else ''}{', '.join(names)}" if names else ""
        raise ProbeError(f"{where}: an object{wanted} is needed: {str(value)[:80]}")
    return value


def check_texts(where: str, name: str, values) -> list[str]:
    """``values``, stripped. Raise ProbeError unless they are a list of non-empty texts."""
    good = isinstance(values, list) and all(isinstance(v, str) and v.strip() for v in values)
    if not good:
        raise ProbeError(f"{where}: {name} must be a list of non-empty texts: {str(values)[:80]}")
    return [value.strip() for value in values]


def parse_json(path: Path, text: str, line: int = 1):
    """The value of one JSON text that starts at ``line``. Raise ProbeError for text that is not
    JSON, a key given twice in one object, NaN and Infinity, half a surrogate pair, and nesting or
    numbers beyond Python's limits."""

    def no_key_twice(pairs: list[tuple]) -> dict:
        keys = [key for key, _ in pairs]
        if len(found := dict(pairs)) < len(pairs):
            raise ValueError(f"key {next(k for k in found if keys.count(k) > 1)!r} given twice")
        return found

    def no_constant(name: str):
        raise ValueError(f"{name} is not a JSON number")

    try:
        value = json.loads(text, object_pairs_hook=no_key_twice, parse_constant=no_constant)
        if SURROGATE.search(text):
            json.dumps(value, ensure_ascii=False).encode()
    except RecursionError as error:
        raise ProbeError(f"{path}:{line}: JSON nested too deeply") from error
    except json.JSONDecodeError as error:
        head = text.split("\n")[error.lineno - 1][:60]
        place = line + error.lineno - 1
        raise ProbeError(f"{path}:{place}: not JSON ({error.msg}): {head!r}") from error
    except ValueError as error:
        raise ProbeError(f"{path}:{line}: not JSON ({error}): {text[:60]!r}") from error
    return value


def read_json(path: Path):
    """The value of a JSON file; for errors see ``parse_json``."""
    return parse_json(path, read_text(path))


def read_objects(path: Path, keys: dict, exact: bool = False) -> list[tuple[int, dict]]:
    """(line number, object) for every line of a JSON Lines file; for keys see ``check_object``."""
    lines = enumerate(read_text(path).rstrip("\n").split("\n"), 1)
    parsed = ((number, parse_json(path, line, number)) for number, line in lines)
    return [(n, check_object(f"{path}:{n}", value, keys, exact)) for n, value in parsed]


def read_tsv(
    path: Path, required: list[str], optional: tuple[str, ...] = ()
) -> list[tuple[int, dict]]:
    """(line number, row) for every line of a tab-separated file with a header; absent optional
    columns read as ""."""
    lines = read_text(path).removesuffix("\n").split("\n")
    header, rows = lines[0].split("\t"), []
    if not set(required) <= set(header) <= {*required, *optional} or len(set(header)) != len(
        header
    ):
        allowed = f"needed: {required}, allowed: {list(optional)}"
        raise ProbeError(f"{path}:1: the header is {header}; {allowed}")
    for number, line in enumerate(lines[1:], 2):
        cells = [cell.strip() for cell in line.split("\t")]
        if not line or len(cells) != len(header):
            what = (
                f"{len(cells)} columns, the header has {len(header)}" if line else "an empty line"
            )
            raise ProbeError(f"{path}:{number}: {what}: {line[:80]!r}")
        row = dict.fromkeys(optional, "") | dict(zip(header, cells, strict=True))
        if not all(row[name] for name in required):
            raise ProbeError(f"{path}:{number}: an empty cell in {required}: {line[:80]!r}")
        rows.append((number, row))
    return rows


def read_yaml(path: Path) -> dict:
    """The mapping in a YAML file."""
    try:
        data = yaml.load(read_text(path), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # ValueError: date 2020-13-01
        line = getattr(getattr(error, "problem_mark", None), "line", 0) + 1
        raise ProbeError(f"{path}:{line}: not YAML: {getattr(error, 'problem', error)}") from error
    if not isinstance(data, dict):
        raise ProbeError(f"{path}:1: a mapping (key: value) is needed, found {type(data).__name__}")
    return data
