"""A seeded part of ``python -m tests.kit.fuzz``: damaged input gives a right value or a ProbeError, from every reader."""

import pandas as pd
import pytest

from tests.conftest import examples
from tests.kit import fuzz


@pytest.mark.parametrize("target", fuzz.TARGETS)
def test_the_right_input_is_read(target, tmp_path):
    for name, content in fuzz.TARGETS[target].files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)
    fuzz.BEFORE.get(target, dict)()
    assert fuzz.TARGETS[target].read(tmp_path) is not None


@pytest.mark.parametrize("target", fuzz.TARGETS)
def test_damaged_input_is_read_or_refused(target):
    said = {number: fuzz.outcome(target, number) for number in range(examples(60))}
    assert {number: what for number, what in said.items() if what not in ("read", "refused")} == {}


@pytest.mark.parametrize(
    ("read", "said"), [(lambda _: 1 / 0, "ZeroDivisionError: division by zero"), (lambda _: 1, "read")]
)
def test_the_fuzzer_sees_a_defect(monkeypatch, read, said):
    monkeypatch.setitem(fuzz.TARGETS, "broken", fuzz.Target({"a": b"abc"}, read))
    assert fuzz.outcome("broken", 1) == said


def test_an_endless_reader_is_a_defect(monkeypatch):
    monkeypatch.setattr(fuzz, "LIMIT", 1)

    def endless(_):
        while True:
            pass

    monkeypatch.setitem(fuzz.TARGETS, "broken", fuzz.Target({"a": b"abc"}, endless))
    assert fuzz.outcome("broken", 1) == "HANGS"


def test_the_record_has_one_row_per_target(tmp_path, monkeypatch, capsys):
    """A later run replaces a target's row and keeps those of the others."""
    path, run = tmp_path / "fuzz.csv", ["fuzz", "--record"]
    for given in (["--n", "3", "csv"], ["--n", "2", "tsv"], ["--n", "4", "csv"]):
        monkeypatch.setattr("sys.argv", [*run, str(path), *given])
        assert fuzz.main() == 0
    rows = pd.read_csv(path).set_index("target")
    assert rows["inputs"].to_dict() == {"csv": 4, "tsv": 2} and rows["defects"].sum() == 0
    assert (rows["read"] + rows["refused"] == rows["inputs"]).all()
