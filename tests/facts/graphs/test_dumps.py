"""Dumps: plain, gzip and bzip2 give the same lines, and nothing is cut off silently."""

import bz2
import gzip

import pytest

from probelib.errors import ProbeError
from probelib.facts.graphs import dumps
from probelib.facts.graphs.dumps import blocks

LINES = b"".join(b"line %d\n" % n for n in range(100_000))
PACK = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress}


@pytest.mark.parametrize("suffix", PACK)
def test_whole_lines_and_all_of_them(tmp_path, suffix, monkeypatch):
    monkeypatch.setattr(dumps, "CHUNK", 100)
    monkeypatch.setattr(dumps, "BLOCK", 1000)
    path = tmp_path / f"dump.txt{suffix}"
    path.write_bytes(PACK[suffix](LINES))
    read = list(blocks(path))
    assert (
        b"".join(read) == LINES and len(read) > 1 and all(block.endswith(b"\n") for block in read)
    )


@pytest.mark.parametrize("suffix", [".gz", ".bz2"])
def test_several_members_read_as_one_file(tmp_path, suffix):
    path = tmp_path / f"dump{suffix}"
    path.write_bytes(PACK[suffix](b"a\nb") + PACK[suffix](b"") + PACK[suffix](b"c\n"))
    assert b"".join(blocks(path)) == b"a\nbc\n"


@pytest.mark.parametrize("suffix", [".gz", ".bz2"])
@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda packed: packed[:-20], "cut off"),
        (lambda packed: packed + b"garbage", "cannot be read"),
        (
            lambda packed: (
                packed[: len(packed) // 2] + b"\x00\x01\x02\x03" + packed[len(packed) // 2 + 4 :]
            ),
            "cannot be read",
        ),
        (lambda packed: b"plain text\n", "is not"),
        (lambda packed: b"", "is not"),
    ],
)
def test_damage_is_one_clear_error(tmp_path, suffix, damage, says):
    path = tmp_path / f"dump{suffix}"
    path.write_bytes(damage(PACK[suffix](LINES)))
    with pytest.raises(ProbeError, match=says) as error:
        list(blocks(path))
    assert str(path) in str(error.value)


def test_what_is_no_file(tmp_path):
    for path in (tmp_path, tmp_path / "missing"):
        with pytest.raises(ProbeError, match="cannot be read"):
            list(blocks(path))


def test_byte_order_mark_no_last_line_end_and_the_empty_file(tmp_path):
    path = tmp_path / "dump"
    path.write_bytes(b"\xef\xbb\xbfa\r\nb")
    assert b"".join(blocks(path)) == b"a\r\nb"
    path.write_bytes(b"")
    assert list(blocks(path)) == []
