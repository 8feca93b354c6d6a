"""FKTC: the real files' quirks on files of the same form, and the real files where they are at hand."""

import contextlib
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from probelib import facts
from probelib.errors import ProbeError
from probelib.facts.formats.fktc import read_fktc
from tests.conftest import examples

HEADER = {"relations": ["What language is the official language of [X]?", "What does [X] officially speak?"]}
HAITI = {"subject": "Haiti", "object": "French", "taxonomy": ["Welsh", "Russian", "Irish", "Finnish", "Hawaiian"]}


def write(folder, *rows, name="P37-subclass.json"):
    (folder / name).write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return folder


def test_the_header_is_no_fact_and_the_distractors_keep_their_order(tmp_path):
    read = read_fktc(write(tmp_path, HEADER, HAITI))
    assert read.facts[["fact", "relation", "subject", "object"]].values.tolist() == [
        ["P37:Haiti:French", "P37", "Haiti", "French"]
    ]
    assert read.templates["template"].tolist() == HEADER["relations"]
    assert read.distractors["object"].tolist() == HAITI["taxonomy"] and read.distractors["number"].tolist() == [
        1,
        2,
        3,
        4,
        5,
    ]


def test_file_name_with_two_dots_duplicates_and_blanks(tmp_path):
    other = HAITI | {"subject": " Haiti ", "taxonomy": ["Thai", "Lao", "Khmer", "Malay", "Tamil"]}
    write(tmp_path, HEADER, HAITI, other, name="P276-subclass..json")
    assert read_fktc(tmp_path).facts["fact"].tolist() == ["P276:Haiti:French", "P276:Haiti:French:line3"]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("{", ":3: not JSON"),
        ("[]", ":3: an object with exactly"),
        ('{"subject": "a", "object": "b"}', ":3: an object with exactly"),
        ('{"subject": "", "object": "b", "taxonomy": ["c"]}', ":3: an empty"),
        ('{"subject": "a", "object": "b", "taxonomy": ["c", null]}', ":3: taxonomy must be a list of non-empty texts"),
        ('{"subject": "a", "object": "b", "taxonomy": [1, "c"]}', ":3: taxonomy must be a list of non-empty texts"),
        ('{"subject": "a", "object": "b", "taxonomy": ["c", " "]}', ":3: taxonomy must be a list of non-empty texts"),
        ('{"subject": 1, "object": "b", "taxonomy": []}', ":3: an object"),
        ("", ":3: not JSON"),
    ],
)
def test_a_bad_line_is_named(tmp_path, line, says):
    write(tmp_path, HEADER, HAITI)
    with open(tmp_path / "P37-subclass.json", "a") as file:
        file.write(line + "\n" + json.dumps(HAITI) + "\n")
    with pytest.raises(ProbeError) as error:
        read_fktc(tmp_path)
    assert f"P37-subclass.json{says}" in str(error.value)


def test_missing_things(tmp_path):
    for call in (
        lambda: read_fktc(tmp_path / "no"),
        lambda: read_fktc(tmp_path),
        lambda: facts.load("fktc", write(tmp_path, HEADER, HAITI), ["P1"]),
    ):
        with pytest.raises(ProbeError):
            call()
    with pytest.raises(ProbeError, match=":1: "):
        read_fktc(write(tmp_path, HAITI, HAITI))
    write(write(tmp_path, HEADER, HAITI), HEADER, name="P17-subclass.json")
    with pytest.raises(ProbeError, match="P17-subclass.json:2: no facts after the header"):
        read_fktc(tmp_path)


@settings(max_examples=examples(200), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.binary(max_size=300)
    | st.text(max_size=200).map(str.encode)
    | st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda x: (
            st.lists(x, max_size=3)
            | st.dictionaries(st.sampled_from(["subject", "object", "taxonomy", "relations"]), x, max_size=3)
        ),
        max_leaves=6,
    ).map(lambda x: json.dumps(x).encode())
)
def test_any_bytes_give_facts_or_the_kits_own_error(tmp_path, content):
    (tmp_path / "P37-subclass.json").write_bytes(json.dumps(HEADER).encode() + b"\n" + content)
    with contextlib.suppress(ProbeError):
        read_fktc(tmp_path)


def test_the_real_files(fktc):
    """Counts of the released files."""
    read = read_fktc(fktc)
    assert read.facts.groupby("relation").size().to_dict() == {
        "P19": 944,
        "P101": 696,
        "P108": 383,
        "P159": 967,
        "P176": 982,
        "P264": 429,
        "P276": 959,
        "P364": 856,
        "P495": 909,
        "P1376": 234,
    }
    frames = read.templates.groupby("relation")["template"].agg(["size", "nunique"])
    assert (
        frames.loc["P101"].tolist() == [7, 6]
        and frames.loc["P264"].tolist() == [6, 6]
        and frames.loc["P276"].tolist() == [6, 6]
    )
    assert read.facts.duplicated(["relation", "subject", "object"]).sum() == 9 + 1 + 1  # P176, P276, P1376
    assert (read.distractors.groupby("fact").size() == 5).all()
    objects = read.facts.merge(read.distractors, on="fact", suffixes=("", "_wrong"))
    assert (objects["object"] != objects["object_wrong"]).all()
