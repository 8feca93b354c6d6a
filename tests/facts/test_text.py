"""Reading JSON, JSON Lines and packed files: what is refused, and where the complaint points."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probelib.errors import ProbeError
from probelib.facts.text import check_object, parse_json, read_json, read_objects, relation_files
from tests.facts import hostile


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "f.json:3: not JSON"),
        ("[1,\n2,\n]", "f.json:5: not JSON"),
        ('{"a": 1, "b": 2, "a": 3}', "f.json:3: .*key 'a' given twice"),
        ("[NaN]", "f.json:3: .*NaN is not a JSON number"),
        ("-Infinity", "f.json:3: .*-Infinity is not a JSON number"),
        ('"\\ud800"', "f.json:3: .*surrogates not allowed"),
        ("1" * 5000, "f.json:3: not JSON"),
        ("[" * 100_000, "f.json:3: .*nested too deeply"),
        ("", "f.json:3: not JSON"),
    ],
)
def test_what_is_no_json_here(text, says):
    with pytest.raises(ProbeError, match=says):
        parse_json("f.json", text, line=3)


def test_a_whole_surrogate_pair_is_one_character():
    assert parse_json("f", '"\\ud83d\\ude00 \\u00e9"') == "😀 é"


def test_objects_by_hand(tmp_path):
    path = tmp_path / "f.jsonl"
    path.write_text('{"a": " x ", "b": 1, "c": null}\n{"a": "y", "b": 2.5}\n')
    assert read_objects(path, {"a": str, "b": int | float}, ("a",)) == [
        (1, {"a": "x", "b": 1, "c": None}),
        (2, {"a": "y", "b": 2.5}),
    ]
    with pytest.raises(ProbeError, match=r"f.jsonl:2: an object with a \(str\), b \(int\) is needed"):
        read_objects(path, {"a": str, "b": int})
    path.write_text('{"a": "x"}\n\n{"a": "y"}\n')
    with pytest.raises(ProbeError, match="f.jsonl:2: not JSON"):
        read_objects(path, {"a": str})


def test_true_is_no_number_and_exact_means_exact():
    with pytest.raises(ProbeError, match="f:1"):
        check_object("f:1", {"a": True}, {"a": int})
    assert check_object("f:1", {"a": True, "b": 0}, {"a": bool})
    with pytest.raises(ProbeError, match="an object with exactly a"):
        check_object("f:1", {"a": 1, "b": 0}, {"a": int}, exact=True)


def test_files_of_relations(tmp_path):
    for name in ("P10.jsonl", "P9.jsonl.gz", "Px.jsonl", "P9.json", "notes.txt"):
        (tmp_path / name).write_text("")
    assert list(relation_files(tmp_path, r"(P\d+)\.jsonl")) == ["P9", "P10"]
    assert list(relation_files(tmp_path, r"(P\d+)\.jsonl", ["P10"])) == ["P10"]
    with pytest.raises(ProbeError, match="no file for P11; expected are files named like P17.jsonl, found: P9, P10"):
        relation_files(tmp_path, r"(P\d+)\.jsonl", ["P10", "P11"])
    (tmp_path / "P9.jsonl").write_text("")
    with pytest.raises(ProbeError, match="two files for P9: P9.jsonl and P9.jsonl.gz"):
        relation_files(tmp_path, r"(P\d+)\.jsonl")
    with pytest.raises(ProbeError, match="no such folder"):
        relation_files(tmp_path / "P10.jsonl", "x")


@hostile.fuzz
@given(st.sampled_from(["f.json", "f.json.gz", "f.json.bz2", "f.json.xz"]), st.binary(max_size=200))
def test_any_bytes_give_a_value_or_the_kits_own_error(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    try:
        read_json(tmp_path / name)
    except ProbeError as error:
        assert name in str(error)
