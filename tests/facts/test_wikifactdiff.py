"""Templates in WikiFactDiff's style: counted templates, and verbalizations that become
templates."""

import json

import pandas as pd
import pytest
from hypothesis import strategies as st

from probelib.errors import ProbeError
from probelib.facts.table import read_triples
from probelib.facts.wikifactdiff import add_templates, read_wikifactdiff, template_of
from probelib.prompts import paraphrases
from tests.facts import hostile

COUNTS = {
    "P36": {
        "[X]'s capital is [Y]": 3,
        "The capital of XXXX is ____": 12,
        "[OBJ] is the capital of [SUB]": 7,
    },
    "P9": {"[SUB] is a [OBJ] being": 50, "[X] and [Y] are kin": 1},
}


def said(relation, subject, obj, *sentences, error=None):
    entity = lambda label: {"id": "Q1", "label": label, "description": "..."}
    return {
        "triple": {
            "subject": entity(subject),
            "relation": entity("") | {"id": relation},
            "object": entity(obj),
        },
        "verbalizations": [
            {"verbalization": sentence, "fill_in_the_blank": None} for sentence in sentences
        ],
        "error": error,
    }


SAID = [
    said(
        "P36",
        "France",
        "Paris",
        "The capital of France is Paris.",
        "Paris is France's capital.",
        "It is Paris.",
    ),
    said("P36", "Peru", "Lima", "the capital of peru is LIMA.", "Lima is no city but Lima."),
    said("P20", "Ada", "London", error="too long"),
]


@pytest.fixture
def counts(tmp_path):
    path = tmp_path / "templates.json"
    path.write_text(json.dumps(COUNTS))
    return path


def test_counts_by_hand(counts):
    templates, left_out = read_wikifactdiff(counts)
    assert templates.values.tolist() == [
        ["P9", "[X] and [Y] are kin", 1, False],
        ["P36", "The capital of [X] is [Y]", 12, True],
        ["P36", "[Y] is the capital of [X]", 7, False],
        ["P36", "[X]'s capital is [Y]", 3, True],
    ]
    assert left_out == {"banned template": 1}


def test_verbalizations_by_hand(tmp_path):
    (tmp_path / "said.jsonl").write_text("".join(json.dumps(row) + "\n" for row in SAID))
    pd.DataFrame(SAID).to_parquet(tmp_path / "said.parquet")
    for name in ("said.jsonl", "said.parquet"):
        templates, left_out = read_wikifactdiff(tmp_path / name)
        assert templates.values.tolist() == [
            ["P36", "The capital of [X] is [Y]", 1, True],
            ["P36", "[Y] is [X]'s capital.", 1, False],
            ["P36", "the capital of [X] is [Y]", 1, True],
        ]
        assert left_out == {
            "triple with an error": 1,
            "subject or object not found": 2,
            "banned template": 0,
        }


@pytest.mark.parametrize(
    ("sentence", "subject", "obj", "template"),
    [
        ("The Beatles sang 'Help!'.", "Beatles", "Help!", "[X] sang [Y]"),
        ('"Fear" was made in "Poland".', "Fear", "Poland", "[X] was made in [Y]"),
        ("France speaks French", "France", "French", "[X] speaks [Y]"),
        ("Rome's mayor leads Rome", "Rome's mayor", "Rome", None),  # the object twice
        ("Berliners live in Germany", "Germany", "live", "Berliners [Y] in [X]"),
        ("New Parisian in France", "France", "Paris", None),  # part of a longer word
        ("In-Paris is France", "France", "Paris", None),
        ("It is \"Poland.\" where 'Ada' is", "Ada", "Poland", "It is [Y] where [X] is"),
        ("the united states have 'Paris'", "United States", "Paris", "[X] have [Y]"),
        ("a+b", "a", "b", None),
        ("(Paris) and [X]", "Paris", "and", None),
        ("Paris", "Paris", "Paris", None),
    ],
)
def test_what_becomes_a_template(sentence, subject, obj, template):
    assert template_of(sentence, subject, obj) == template


def test_the_most_frequent_ones_become_the_clozes_of_facts(counts, tmp_path):
    (tmp_path / "f.csv").write_text("relation,subject,object\nP36,France,Paris\nP47,France,Spain\n")
    facts = read_triples(tmp_path / "f.csv")
    added = add_templates(facts, read_wikifactdiff(counts)[0])
    assert added.templates.values.tolist() == [
        ["P36", "cloze", 1, "The capital of [X] is"],
        ["P36", "cloze", 2, "[X]'s capital is"],
        ["P36", "statement", 1, "The capital of [X] is [Y]"],
        ["P36", "statement", 2, "[X]'s capital is [Y]"],
    ]
    assert add_templates(added, read_wikifactdiff(counts)[0], n=1).templates[
        "template"
    ].tolist() == ["The capital of [X] is", "The capital of [X] is [Y]"]
    with pytest.raises(ProbeError, match="no cloze template for P47"):
        paraphrases(added, "cloze")


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        ({"P36": {"The capital of [X]": 1}}, r"P36: a template needs \[X\] and \[Y\]"),
        ({"P36": {"[X] [Y]": -1}}, "P36: templates with their counts"),
        ({"P36": {"[X] [Y]": 1.5}}, "P36: templates with their counts"),
        ({"P36": ["[X] [Y]", ""]}, "P36: the value must be a list of non-empty texts"),
        ({"P36": 3}, "P36: templates with their counts"),
        (
            {"P36": {"[X] is a [Y] being": 3}},
            "no usable template; left out: {'banned template': 1}",
        ),
        ({}, "no usable template"),
        ([], "an object is needed"),
    ],
)
def test_bad_counts_are_named(tmp_path, bad, says):
    (tmp_path / "t.json").write_text(json.dumps(bad))
    with pytest.raises(ProbeError, match=f"t.json.*{says}"):
        read_wikifactdiff(tmp_path / "t.json")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"triple": {}}, ":2: an object with triple.relation.id"),
        (
            {"triple": SAID[0]["triple"] | {"object": {"label": " "}}},
            ":2: an empty relation, subject or object",
        ),
        ({"verbalizations": "x"}, ":2: an object with"),
        ({"verbalizations": ["x"]}, ":2: an object with verbalization"),
    ],
)
def test_a_bad_verbalization_is_named(tmp_path, change, says):
    (tmp_path / "t.jsonl").write_text(
        json.dumps(SAID[0]) + "\n" + json.dumps(SAID[1] | change) + "\n"
    )
    with pytest.raises(ProbeError, match=f"t.jsonl{says}"):
        read_wikifactdiff(tmp_path / "t.jsonl")


def test_other_files(tmp_path):
    with pytest.raises(ProbeError, match="read from .json, .jsonl and .parquet files"):
        read_wikifactdiff(tmp_path / "t.txt")
    pd.DataFrame([{"triple": "x", "verbalizations": [1], "error": None}]).to_parquet(
        tmp_path / "t.parquet"
    )
    with pytest.raises(ProbeError, match="t.parquet:1: an object with"):
        read_wikifactdiff(tmp_path / "t.parquet")


@pytest.mark.parametrize("kind", hostile.DAMAGE + hostile.HARMLESS)
@pytest.mark.parametrize("name", ["t.json", "t.jsonl"])
def test_damaged_and_harmlessly_different_files(tmp_path, name, kind):
    path = tmp_path / name
    path.write_text(
        json.dumps(COUNTS) if name == "t.json" else "".join(json.dumps(row) + "\n" for row in SAID)
    )
    right, _ = read_wikifactdiff(path)
    path = hostile.damage(path, kind)
    if kind in hostile.HARMLESS:
        assert read_wikifactdiff(path)[0].equals(right)
    else:
        with pytest.raises(ProbeError, match=name):
            read_wikifactdiff(path)


WORD = st.text(st.characters(codec="utf-8"), min_size=1, max_size=6)
