"""Reading text, JSON and YAML files; every error names file and line."""

import bz2
import gzip
import json
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import yaml

from probelib.errors import ProbeError, texts_of

UNPACK = {".gz": gzip.open, ".bz2": bz2.open}
MOST = 1 << 32  # bytes of a file, decompressed: some archives have no end


@contextmanager
def opened(path: str | Path) -> Iterator[IO[bytes]]:
    """A file to read bytes from; one that ends in ``.gz`` or ``.bz2`` is decompressed."""
    try:
        with UNPACK.get(Path(path).suffix, open)(path, "rb") as file:
            yield file
    except FileNotFoundError as error:
        where = "" if Path(path).is_absolute() else f" in {Path.cwd()}"
        raise ProbeError(f"{path}: no such file{where}") from error
    except (OSError, EOFError, zlib.error) as error:  # a folder; only half a .gz
        reason = getattr(error, "strerror", None) or error
        raise ProbeError(f"{path}: cannot be read: {reason}") from error


def read_bytes(path: Path) -> bytes:
    """The content of a file, decompressed."""
    with opened(path) as file:
        content = file.read(MOST + 1)
    if len(content) > MOST:
        raise ProbeError(f"{path}: more than {MOST >> 30} GiB, decompressed; split the file")
    return content


def read_text(path: Path) -> str:
    """The text of a UTF-8 file, without a byte-order mark, with "\\n" as the only line end."""
    content = read_bytes(path)
    try:
        return content.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        how = "Save the file as UTF-8 (in a spreadsheet: CSV UTF-8)"
        raise ProbeError(f"{path}:{line}: not UTF-8 (byte {error.start}). {how}") from error


def check_relations(relations: list[str] | None) -> list[str] | None:
    """The requested relations; None: all. Raise ProbeError for anything but a list of texts."""
    if relations is None:
        return None
    if not (names := texts_of("relations", relations)):
        raise ProbeError("relations is an empty list; name one, ['P36'], or give None for all")
    return names


def number_in(relation: str) -> int:
    """36 for P36: relations sort by it."""
    return int(re.sub(r"\D", "", relation)[:18] or 0)


def is_a(value, kind) -> bool:
    """``isinstance``, but True and False are not numbers."""
    return isinstance(value, kind) and (not isinstance(value, bool) or kind is bool)


def check_object(where: str, value, keys: dict) -> dict:
    """Return ``value``, found at ``where`` (file and line), if it is an object with ``keys`` (name
    -> type or union of types; others are allowed). Otherwise raise ProbeError."""
    if not isinstance(value, dict) or not all(k in value and is_a(value[k], keys[k]) for k in keys):
        names = [f"{key} ({getattr(kind, '__name__', kind)})" for key, kind in keys.items()]
        wanted = f" with {', '.join(names)}" if names else ""
        raise ProbeError(f"{where}: an object{wanted} is needed: {str(value)[:80]}")
    return value


def check_texts(where: str, name: str, values) -> list[str]:
    """``values``, stripped. Raise ProbeError unless they are a list of non-empty texts."""
    if not isinstance(values, list) or not all(isinstance(v, str) and v.strip() for v in values):
        raise ProbeError(f"{where}: {name} must be a list of non-empty texts: {str(values)[:80]}")
    return [value.strip() for value in values]


def parse_json(path: Path, text: str, line: int = 1):
    """The value of one JSON text that starts at ``line``. Raise ProbeError for text that is not
    JSON, a key given twice in one object, NaN and Infinity, and half a surrogate pair."""

    def no_key_twice(pairs: list[tuple]) -> dict:
        if len(found := dict(pairs)) < len(pairs):
            raise ValueError(f"a key is given twice: {[key for key, _ in pairs]}")
        return found

    def number(name: str):
        raise ValueError(f"{name} is not a JSON number")

    try:
        value = json.loads(text, object_pairs_hook=no_key_twice, parse_constant=number)
        if "\\ud" in text.lower():
            json.dumps(value, ensure_ascii=False).encode()
        return value
    except (ValueError, RecursionError) as error:
        at = getattr(error, "lineno", 1) - 1
        head = text.split("\n")[at][:60]
        raise ProbeError(f"{path}:{line + at}: not JSON ({error}): {head!r}") from error


def read_json(path: Path):
    """The value of a JSON file; for errors see ``parse_json``."""
    return parse_json(path, read_text(path))


def read_objects(path: Path, keys: dict) -> list[tuple[int, dict]]:
    """(line number, object) for every line of a JSON Lines file; for keys see ``check_object``."""
    lines = enumerate(read_text(path).rstrip("\n").split("\n"), 1)
    parsed = ((number, parse_json(path, line, number)) for number, line in lines)
    return [(n, check_object(f"{path}:{n}", value, keys)) for n, value in parsed]


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
