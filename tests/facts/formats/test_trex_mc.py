"""T-REx-MC: small files of its form, damaged ones, and any content."""

import contextlib
import json

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from probelib.errors import ProbeError
from probelib.facts.formats.trex_mc import read_trex_mc
from tests.facts import hostile

WRONG = [f"City {i}" for i in range(99)]
NAMES = {"50": ["P36", "capital"], "70": ["P37", "official language"]}


def row(subject="France", obj="Paris", wrong=WRONG, number=50, name="capital"):
    return {
        "Relation_ID": number,
        "Relation Name": name,
        "Subject": subject,
        "Object": obj,
        "Multiple Choices": wrong if isinstance(wrong, str) else repr(list(wrong)),
        "Title": "a page",
        "Text": "an abstract",
    }


def write(folder, test, train=None, names=NAMES):
    for split, rows in (("train", train or [row("Italy", "Rome")]), ("test", test)):
        pd.DataFrame(list(rows)).to_parquet(folder / f"{split}-00000-of-00001.parquet")
    if names:
        (folder / "relationID_names.json").write_text(json.dumps(names))
    return folder


def test_facts_by_hand(tmp_path):
    read = read_trex_mc(write(tmp_path, [row(), row("Peru", "Lima", ["Quito", " Cusco ", "Lima", "Quito"])]))
    assert read.facts[["fact", "relation", "subject", "object"]].values.tolist() == [
        ["P36:France:Paris", "P36", "France", "Paris"],
        ["P36:Peru:Lima", "P36", "Peru", "Lima"],
    ]
    assert read.relations[["relation", "name"]].values.tolist() == [["P36", "capital"]]
    assert (read.distractors["fact"] == "P36:France:Paris").sum() == 99
    assert read.distractors["object"].tolist()[99:] == [
        "Quito",
        "Cusco",
    ]  # without the right answer and the second Quito
    assert read.source == "trex-mc:test" and read.templates.empty
    assert read_trex_mc(tmp_path, "train").facts["fact"].tolist() == ["P36:Italy:Rome"]


def test_without_the_names_a_relation_goes_by_its_own(tmp_path):
    assert read_trex_mc(write(tmp_path, [row()], names=None)).facts["fact"].tolist() == ["capital:France:Paris"]


@pytest.mark.parametrize(
    "text", ["", "[", "[1]", "('a',)", "['']", "[None]", "{}", "__import__('os')", "[" * 5000, "['\\ud800']"]
)
def test_a_list_that_cannot_be_read_leaves_no_distractors(tmp_path, text):
    assert read_trex_mc(write(tmp_path, [row(wrong=text)])).distractors.empty


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ([row(), row(subject=" ")], "parquet:2: an empty subject"),
        ([row(), row(obj=None)], "parquet:2: an object with"),
        ([row(number=51)], "unknown relation at .*parquet:1 51; did you mean 50"),
        ([{"Subject": "a"}], "parquet:1: an object with"),
        ([{k: v for k, v in row().items() if k != "Object"}], "parquet:1: an object with"),
        ([row(number="fifty")], "parquet:1: an object with"),
    ],
)
def test_a_bad_row_is_named(tmp_path, rows, says):
    with pytest.raises(ProbeError, match=says):
        read_trex_mc(write(tmp_path, rows))


def test_missing_and_damaged_files(tmp_path):
    with pytest.raises(ProbeError, match="one file test-"):
        read_trex_mc(tmp_path)
    with pytest.raises(ProbeError, match="unknown split 'tset'; did you mean test"):
        read_trex_mc(write(tmp_path, [row()]), "tset")
    path = tmp_path / "test-00000-of-00001.parquet"
    content = path.read_bytes()
    for bad in (b"", content[:-9], content[9:], b"Subject,Object\n"):
        path.write_bytes(bad)
        with pytest.raises(ProbeError, match="parquet: not a readable Parquet file"):
            read_trex_mc(tmp_path)
    path.unlink()
    path.mkdir()
    with pytest.raises(ProbeError, match="a folder, where a file is needed"):
        read_trex_mc(tmp_path)


@pytest.mark.parametrize("names", [[], {"50": "P36"}, {"50": ["P36"]}, {"x": ["P36", "capital"]}, {"50": ["P36", ""]}])
def test_bad_names(tmp_path, names):
    with pytest.raises(ProbeError, match="relationID_names.json"):
        write(tmp_path, [row()], names=None)
        (tmp_path / "relationID_names.json").write_text(json.dumps(names))
        read_trex_mc(tmp_path)


CELLS = st.sampled_from(["Subject", "Object", "Relation Name", "Multiple Choices", "Title"])
TEXTS = st.none() | st.text(max_size=8) | st.just(repr(WRONG[:2]))


@hostile.fuzz
@given(changes=st.lists(st.dictionaries(CELLS, TEXTS), min_size=1, max_size=3))
def test_any_rows_give_facts_or_the_kits_own_error(tmp_path, changes):
    with contextlib.suppress(UnicodeEncodeError):  # pyarrow refuses to write half a surrogate pair
        write(tmp_path, [row(f"S{i}") | change for i, change in enumerate(changes)])
    with contextlib.suppress(ProbeError):
        read_trex_mc(tmp_path).digest()


@hostile.fuzz
@given(data=st.data())
def test_any_bytes_give_facts_or_the_kits_own_error(tmp_path, data):
    path = write(tmp_path, [row()]) / "test-00000-of-00001.parquet"
    path.write_bytes(data.draw(hostile.cut_up(path.read_bytes())))
    with contextlib.suppress(ProbeError):
        read_trex_mc(tmp_path).digest()
