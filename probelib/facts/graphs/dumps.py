"""Dumps: text files of any size, plain, gzip or bzip2, read in blocks of whole lines."""

import bz2
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tqdm.auto import tqdm

from probelib.errors import ProbeError
from probelib.facts.graphs.graph import Graph, alone, open_graph, write_graph

CHUNK, BLOCK = 1 << 18, 1 << 20  # bytes read at a time; bytes handed out at a time, at least
MAGIC = {b"\x1f\x8b": ".gz", b"BZh": ".bz2"}
OPEN = {".gz": lambda: zlib.decompressobj(31), ".bz2": bz2.BZ2Decompressor}
EXAMPLES = 5  # malformed lines that are quoted


def blocks(path: str | Path) -> Iterator[bytes]:
    """Whole lines of a file, about a mebibyte at a time; only the last line may lack its line end.

    The content decides whether gzip or bzip2 is read, and a byte-order mark is removed. Raise
    ProbeError for a ``.gz`` or ``.bz2`` with other content, and for a file that ends within a
    member or has other content after it (the standard file objects skip it): nothing is cut off
    silently.
    """
    path, held, first = Path(path), b"", True
    try:
        size = path.stat().st_size
        bar = tqdm(total=size, desc=path.name, unit="B", unit_scale=True, disable=size < 1 << 28)
        with open(path, "rb") as file, bar:
            start = file.peek(3)[:3]
            kind = next((kind for magic, kind in MAGIC.items() if start.startswith(magic)), "")
            if path.suffix in OPEN and path.suffix != kind:
                raise ValueError(f"its content is not {path.suffix[1:]}, it starts with {start!r}")
            engine = OPEN[kind]() if kind else None
            while chunk := file.read(CHUNK):
                bar.update(len(chunk))
                while chunk:
                    if engine and engine.eof:  # another member or stream follows
                        engine = OPEN[kind]()
                    held += engine.decompress(chunk) if engine else chunk
                    chunk = engine.unused_data if engine else b""
                if first and len(held) >= 3:
                    held, first = held.removeprefix(b"\xef\xbb\xbf"), False
                if (end := held.rfind(b"\n") + 1) >= BLOCK:
                    yield held[:end]
                    held = held[end:]
            if engine and not engine.eof:
                raise EOFError
    except EOFError as error:
        raise ProbeError(f"{path}: the {kind} data are cut off; download the file again") from error
    except (OSError, ValueError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise ProbeError(f"{path}: cannot be read: {reason}") from error
    if held := held.removeprefix(b"\xef\xbb\xbf") if first else held:
        yield held


def written(
    folder: str | Path, tables: tuple, source: str, counts: Counter, examples: list
) -> Graph:
    """The graph of these tables, written to ``folder`` and opened."""
    about = {"source": source, "counts": dict(counts), "examples": examples}
    if not len(tables[0]):
        raise ProbeError(f"{source}: no triples; {about['counts']}; {'; '.join(examples)}")
    with alone(folder):
        return open_graph(write_graph(Graph(*tables, about), folder))
