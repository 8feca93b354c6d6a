"""LAMA's T-REx files, in their own form."""

import contextlib
import json

import pytest
from hypothesis import given

from probelib.errors import ProbeError
from probelib.facts.formats.lama import read_lama
from tests.facts import hostile

RELATIONS = [
    {
        "relation": "P19",
        "template": "[X] was born in [Y] .",
        "label": "place of birth",
        "description": "",
        "type": "N-1",
    },
    {
        "relation": "P190",
        "template": "[X] and [Y] are twin cities .",
        "label": "twinned administrative body",
        "type": "N-M",
    },
]
EVIDENCE = {"sub_surface": "Allan Peiper", "obj_surface": "Alexandra", "masked_sentence": "Peiper was born in [MASK]."}
BORN = {
    "uuid": "d4f11631-dde8-43beb613-ec872ac7dec1",
    "obj_uri": "Q3133",
    "obj_label": "Alexandra",
    "sub_uri": "Q462046",
    "sub_label": "Allan Peiper",
    "predicate_id": "P19",
    "evidences": [EVIDENCE, EVIDENCE],
}
OTHER = BORN | {"sub_uri": "Q7", "sub_label": "Jane Doe", "obj_uri": "Q90", "obj_label": "Paris"}


def write(folder, *rows, relations=RELATIONS, name="P19.jsonl"):
    (folder / "TREx").mkdir(exist_ok=True)
    lines = lambda rows: "".join(json.dumps(row) + "\n" for row in rows)
    (folder / "relations.jsonl").write_text(lines(relations))
    (folder / "TREx" / name).write_text(lines(rows))
    return folder


def test_facts_by_hand(tmp_path):
    read = read_lama(write(tmp_path, BORN, OTHER))
    assert read.facts[["fact", "relation", "subject", "object"]].values.tolist() == [
        ["P19:Q462046:Q3133", "P19", "Q462046", "Q3133"],
        ["P19:Q7:Q90", "P19", "Q7", "Q90"],
    ]
    assert read.label(["Q462046", "Q90"]) == ["Allan Peiper", "Paris"]
    assert read.entities["wikidata"].tolist() == read.entities["entity"].tolist()
    assert read.relations[["relation", "name", "functional"]].values.tolist() == [["P19", "place of birth", True]]
    assert read.templates[["role", "number", "template"]].values.tolist() == [
        ["cloze", 1, "[X] was born in"],
        ["statement", 1, "[X] was born in [Y] ."],
    ]
    assert hostile.same(read, read_lama(tmp_path / "TREx"))  # the folder of the facts will do


def test_a_template_with_its_object_inside_is_no_cloze(tmp_path):
    twins = OTHER | {"predicate_id": "P190"}
    assert read_lama(write(tmp_path, twins, name="P190.jsonl")).templates["role"].tolist() == ["statement"]


def test_a_repeated_fact_gets_its_line_and_an_id_with_two_labels_two_entities(tmp_path):
    read = read_lama(
        write(tmp_path, OTHER, OTHER | {"uuid": "x"}, OTHER | {"sub_uri": "Q8", "obj_label": "City of Paris"})
    )
    assert read.facts["fact"].tolist() == ["P19:Q7:Q90", "P19:Q7:Q90:line2", "P19:Q8:Q90"]
    assert read.facts["object"].tolist() == ["Q90", "Q90", "Q90:City of Paris"]
    paris = read.entities.set_index("entity").loc[["Q90", "Q90:City of Paris"], ["label", "wikidata", "aliases"]]
    assert paris.values.tolist() == [["Paris", "Q90", ("City of Paris",)], ["City of Paris", "Q90", ("Paris",)]]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"sub_label": " "}, "P19.jsonl:2: an empty sub_label"),
        ({"obj_uri": 3}, "P19.jsonl:2: an object with"),
        ({"predicate_id": "P20"}, "P19.jsonl:2: a fact of relation P20"),
    ],
)
def test_a_bad_line_is_named(tmp_path, change, says):
    with pytest.raises(ProbeError, match=says):
        read_lama(write(tmp_path, BORN, OTHER | change))


def test_relations(tmp_path):
    with pytest.raises(ProbeError, match="unknown relation .*'P20'; did you mean"):
        read_lama(write(tmp_path, BORN, name="P20.jsonl"))
    (tmp_path / "TREx" / "P20.jsonl").unlink()
    with pytest.raises(ProbeError, match="no file for P36"):
        read_lama(write(tmp_path, BORN), ["P36"])
    with pytest.raises(ProbeError, match="relations.jsonl:3: relation P19 is described twice"):
        read_lama(write(tmp_path, BORN, relations=RELATIONS + RELATIONS[:1]))
    with pytest.raises(ProbeError, match=r"relations.jsonl:1: a template of P19 needs \[X\]"):
        read_lama(write(tmp_path, BORN, relations=[RELATIONS[0] | {"template": "born in [Y]"}]))


@pytest.mark.parametrize("kind", hostile.DAMAGE)
@pytest.mark.parametrize("name", ["TREx/P19.jsonl", "relations.jsonl"])
def test_damaged_files(tmp_path, name, kind):
    hostile.damage(write(tmp_path, BORN, OTHER) / name, kind)
    with pytest.raises(ProbeError, match=name.rpartition("/")[2] if kind != "missing" else None):
        read_lama(tmp_path)


@pytest.mark.parametrize("kind", hostile.HARMLESS)
def test_harmless_differences(tmp_path, kind):
    right = read_lama(write(tmp_path, BORN, OTHER))
    hostile.damage(tmp_path / "TREx" / "P19.jsonl", kind)
    assert hostile.same(read_lama(tmp_path), right)


@pytest.mark.parametrize("name", ["TREx/P19.jsonl", "relations.jsonl"])
@hostile.fuzz
@given(content=hostile.json_lines(BORN, RELATIONS[0]))
def test_any_content_gives_facts_or_the_kits_own_error(tmp_path, name, content):
    (write(tmp_path, BORN) / name).write_bytes(content)
    with contextlib.suppress(ProbeError):
        read_lama(tmp_path).digest()
