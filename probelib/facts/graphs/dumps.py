"""Dumps: text files of any size, plain, gzip or bzip2, read in blocks of whole lines."""

import bz2
import zlib
from collections.abc import Iterator
from pathlib import Path

from tqdm.auto import tqdm

from probelib.errors import ProbeError

CHUNK = 1 << 18  # bytes read at a time
BLOCK = 1 << 20  # bytes handed out at a time, at least
MAGIC = {b"\x1f\x8b": ("gzip", ".gz"), b"BZh": ("bzip2", ".bz2")}
OPEN = {"gzip": lambda: zlib.decompressobj(31), "bzip2": bz2.BZ2Decompressor}


def blocks(path: str | Path) -> Iterator[bytes]:
    """Whole lines of a file, about a mebibyte at a time; only the last line may lack its line end.

    The content decides how the file is read, not its name, and a byte-order mark is removed. Files of several members or
    streams are read to their end. Raise ProbeError for a ``.gz`` or ``.bz2`` with other content, a file that ends within a
    member or stream, and one with other content after it: nothing is cut off silently.
    """
    path, held, first = Path(path), [], True
    for chunk in _chunks(path):
        if first:
            chunk, first = chunk.removeprefix(b"\xef\xbb\xbf"), False
        end = chunk.rfind(b"\n") + 1
        if not end or sum(map(len, held)) + end < BLOCK:
            held.append(chunk)
            continue
        yield b"".join([*held, chunk[:end]])
        held = [chunk[end:]]
    if rest := b"".join(held):
        yield rest


def _chunks(path: Path) -> Iterator[bytes]:
    """The file's bytes, decompressed; the progress bar counts the bytes on disk."""
    try:
        size = path.stat().st_size  # the bar appears if reading takes longer than some seconds
        bar = tqdm(total=size, desc=path.name, unit="B", unit_scale=True, mininterval=1, disable=size < 1 << 28)
        with open(path, "rb") as file, bar:
            kind = _kind(path, file.peek(3)[:3])
            yield from _inflate(file, OPEN[kind], bar) if kind else _plain(file, bar)
    except EOFError as error:
        raise ProbeError(f"{path}: the {kind} data are cut off; download the file again") from error
    except (OSError, ValueError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise ProbeError(f"{path}: cannot be read: {reason}") from error


def _kind(path: Path, start: bytes) -> str | None:
    """gzip, bzip2 or None (plain), by the first bytes."""
    for magic, (kind, suffix) in MAGIC.items():
        if start.startswith(magic):
            return kind
        if path.suffix == suffix:
            raise ProbeError(f"{path}: a {suffix} file, but its content is not {kind} (it starts with {start!r})")
    return None


def _plain(file, bar) -> Iterator[bytes]:
    while chunk := file.read(CHUNK):
        bar.update(len(chunk))
        yield chunk


def _inflate(file, make, bar) -> Iterator[bytes]:
    """The standard file objects skip what follows a bzip2 stream; here it must be another stream."""
    engine = make()
    for chunk in _plain(file, bar):
        while chunk:
            if engine.eof:
                engine = make()
            yield engine.decompress(chunk)
            chunk = engine.unused_data
    if not engine.eof:
        raise EOFError
