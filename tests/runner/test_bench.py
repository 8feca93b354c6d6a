"""The short part of tests/bench: damaged input, changed bits, a campaign that sees a defect."""

import random
import warnings

import pandas as pd
import pytest

from probelib import files, paths, store
from probelib.runner import uptodate
from tests.bench import fuzz
from tests.conftest import examples


@pytest.mark.parametrize("target", fuzz.TARGETS)
def test_damaged_input_is_read_or_refused(target, tmp_path):
    contents, read = fuzz.TARGETS[target]
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    assert read(tmp_path) is not None
    said = {number: fuzz.outcome(target, number) for number in range(examples(60))}
    assert {n: what for n, what in said.items() if what not in ("read", "refused")} == {}


def flipped(file, chance: random.Random, times: int):
    """Change one bit after the other, each time only that one; then the file is whole again."""
    whole = file.read_bytes()
    for _ in range(times):
        content, at = bytearray(whole), chance.randrange(len(whole))
        content[at] ^= 1 << chance.randrange(8)
        file.write_bytes(content)
        yield at
    file.write_bytes(whole)


@pytest.mark.parametrize("suffix", [".parquet", ".json"])
def test_a_changed_bit_of_a_part_is_seen_or_changes_nothing(tmp_path, suffix):
    part = store.Part(tmp_path / "P1-0.parquet", "P1")
    rows = pd.DataFrame({"logprob": [-1.5, -0.25]})
    store.write(part, rows, {"cost": {"tokens": 12}, "model": {"dtype": "float32"}})
    told, seen = part.record(), 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for at in flipped(part.path.with_suffix(suffix), random.Random(1), 300):
            if part.finished():
                assert part.record()["cost"] == told["cost"], at
                pd.testing.assert_frame_equal(pd.read_parquet(part.path), rows)
            else:
                seen += 1
    assert part.finished() and seen > 250


def test_a_changed_bit_of_a_steps_record_makes_it_run_again(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "RUNS", tmp_path)
    told = {"notebook": "n", "parameters": {"seed": 0}, "products": {"a.csv": "0f"}}
    file = files.write_json(tmp_path / "smoke/done/a/b.json", told, seal=True)
    for at in flipped(file, random.Random(2), 300):
        read = uptodate.read("smoke", "a/b")
        assert read == {} or {key: read[key] for key in told} == told, at
