"""What happens to files: the same damage for every reader, and content that is nearly right."""

import bz2
import gzip
import json
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from probelib.facts.model import Facts
from tests.conftest import examples

DAMAGE = [
    "empty",
    "truncated",
    "latin-1",
    "utf-16",
    "zeros",
    "a folder",
    "missing",
    "no gz",
    "half a gz",
]
HARMLESS = ["bom", "crlf", "gz", "bz2"]
checks = [HealthCheck.function_scoped_fixture]
fuzz = settings(max_examples=examples(100), deadline=None, suppress_health_check=checks)


def damage(path: Path, kind: str) -> Path:
    """Damage a text file; return where it is afterwards."""
    content = path.read_bytes()
    path.unlink()
    packed = gzip.compress(content)
    changed = {
        "empty": b"",
        "truncated": content[:-4],
        "latin-1": content[:10] + b"\xe9" + content[10:],
        "utf-16": content.decode().encode("utf-16"),
        "zeros": bytes(len(content)),
        "no gz": content,
        "half a gz": packed[: len(packed) // 2],
        "bom": b"\xef\xbb\xbf" + content,
        "crlf": content.replace(b"\n", b"\r\n"),
        "gz": packed,
        "bz2": bz2.compress(content),
    }
    if kind.endswith(("gz", "bz2")):
        path = path.with_name(f"{path.name}.{kind[-3:].strip()}")
    if kind == "a folder":
        path.mkdir()
    elif kind != "missing":
        path.write_bytes(changed[kind])
    return path


def same(a: Facts, b: Facts) -> bool:
    return a.digest() == b.digest()


def json_lines(*rows) -> st.SearchStrategy:
    """Bytes; JSON values; right values with parts replaced; right content with bytes replaced."""
    keys = sorted({key for row in rows if isinstance(row, dict) for key in row} | {"P36"})
    leaf = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
    leaf |= st.sampled_from([10**400, "Q1"])
    objects = lambda x: st.dictionaries(st.sampled_from(keys), x, max_size=4)
    values = st.recursive(leaf, lambda x: st.lists(x, max_size=3) | objects(x), max_leaves=8)
    right = "".join(json.dumps(row) + "\n" for row in rows).encode()
    near = [
        objects(values).map(lambda x, row=row: json.dumps(row | x).encode())
        for row in rows
        if isinstance(row, dict)
    ]
    wild = values.map(lambda x: json.dumps(x).encode())
    return st.one_of(st.binary(max_size=200), wild, cut_up(right), *near)


@st.composite
def cut_up(draw, content: bytes) -> bytes:
    """Right content with some bytes replaced."""
    start = draw(st.integers(0, len(content)))
    end = draw(st.integers(start, min(len(content), start + 20)))
    return content[:start] + draw(st.binary(max_size=8)) + content[end:]
