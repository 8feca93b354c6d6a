"""The papers' data in their own files."""

import json

import pandas as pd
import pytest

from probelib import facts
from probelib.errors import ProbeError
from probelib.facts.formats import read_bear, read_fktc, read_pageviews, read_trex_mc

HEADER = {"relations": ["What language is the official language of [X]?"]}
HEADER["relations"].append("What does [X] officially speak?")
HAITI = {"subject": "Haiti", "object": "French"}
HAITI |= {"taxonomy": ["Welsh", "Russian", "Irish", "Finnish", "Hawaiian"]}
P36 = {
    "templates": ["The capital of [X] is [Y].", "[Y] serves as the capital of [X]."],
    "answer_space_labels": ["Paris", "Rome", "Oslo"],
    "answer_space_ids": ["Q90", "Q220", "Q585"],
}
FRANCE = {"sub_id": "Q142", "sub_label": "France", "sub_aliases": ["French Republic"]}
FRANCE |= {"obj_id": "Q90", "obj_label": "Paris", "answer_idx": 0}
ITALY = {"sub_id": "Q38", "sub_label": "Italy", "obj_id": "Q220", "obj_label": "Rome"}


def lines(path, *rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    return path


def write(folder, *rows, name="P37-subclass.json"):
    """A file of FKTC."""
    return lines(folder / name, *rows).parent


def write_bear(folder, *rows, about=P36):
    lines(folder / "metadata_relations.json", {"P36": about})
    return lines(folder / "P36.jsonl", *rows).parent


def trex(subject="France", obj="Paris", wrong=("Rome",), number=50, name="capital") -> dict:
    wrong = wrong if isinstance(wrong, str) else repr(list(wrong))
    row = {"Relation_ID": number, "Relation Name": name, "Subject": subject, "Object": obj}
    return row | {"Multiple Choices": wrong, "Title": "a page"}


def write_trex(folder, *test):
    for split, rows in (("train", [trex("Italy", "Rome", ["Oslo"])]), ("test", test)):
        pd.DataFrame(list(rows)).to_parquet(folder / f"{split}-00000-of-00001.parquet")
    return lines(folder / "relationID_names.json", {"50": ["P36", "capital"]}).parent


def templates(read, role: str) -> list[str]:
    return read.templates.loc[read.templates["role"] == role, "template"].tolist()


# Formats with a reader of their own


def test_fktc_by_hand(tmp_path):
    """The header is no fact, distractors keep their order, one file has two dots in its name."""
    other = HAITI | {"subject": " Haiti ", "taxonomy": ["Thai", "Lao", "Khmer", "Malay", "Tamil"]}
    read = read_fktc(write(tmp_path, HEADER, HAITI, other, name="P276-subclass..json"))
    assert read.facts["fact"].tolist() == ["P276:Haiti:French", "P276:Haiti:French:line3"]
    assert read.templates["template"].tolist() == HEADER["relations"]
    assert read.distractors["object"].tolist() == HAITI["taxonomy"] + other["taxonomy"]
    assert read.distractors["number"].tolist() == [1, 2, 3, 4, 5] * 2


def test_bear_by_hand(tmp_path):
    """Other members of the answer space are distractors, but not one of the same name."""
    read = read_bear(write_bear(tmp_path, FRANCE, ITALY))
    assert read.facts["fact"].tolist() == ["P36:Q142:Q90", "P36:Q38:Q220"]
    assert read.distractors["object"].tolist() == ["Q220", "Q585", "Q90", "Q585"]
    assert templates(read, "statement") == P36["templates"]
    assert templates(read, "cloze") == ["The capital of [X] is"]
    assert read.entities.set_index("entity").loc["Q142", "aliases"] == ("French Republic",)
    twice = P36 | {"answer_space_labels": ["Paris", "Rome", "Paris"]}
    folder = write_bear(tmp_path, FRANCE, ITALY, about=twice)
    with pytest.warns(UserWarning, match="1 of 4 named distractors are right answers"):
        assert facts.load("bear", folder).distractors["object"].tolist() == ["Q220", "Q90", "Q585"]


def test_trex_mc_by_hand(tmp_path):
    peru = trex("Peru", "Lima", ["Quito", " Cusco ", "Lima", "Quito"])
    folder = write_trex(tmp_path, trex(), peru)
    read = read_trex_mc(folder)
    assert read.facts["fact"].tolist() == ["P36:France:Paris", "P36:Peru:Lima"]
    assert read.distractors["object"].tolist() == ["Rome", "Quito", "Cusco"]
    tested, pool = facts.multiple_choice("trex_mc", folder, n_facts="all")
    assert len(tested.facts) == 2 and pool.facts["fact"].tolist() == ["P36:Italy:Rome"]
    for text in ("", "[1]", "('a',)", "['']", "__import__('os')", "[" * 5000, "['\\ud800']"):
        assert read_trex_mc(write_trex(tmp_path, trex(wrong=text))).distractors.empty
    (folder / "relationID_names.json").unlink()
    assert read_trex_mc(folder).facts["relation"].tolist() == ["capital"]


fktc_row = lambda **change: lambda f: read_fktc(write(f, HEADER, HAITI, HAITI | change))
bear_row = lambda **change: lambda f: read_bear(write_bear(f, ITALY, FRANCE | change))
trex_row = lambda **change: lambda f: read_trex_mc(write_trex(f, trex(), trex(**change)))


@pytest.mark.parametrize(
    ("read", "says"),
    [
        (fktc_row(subject=" "), "P37-subclass.json:3: an empty subject"),
        (fktc_row(taxonomy=["c", None]), ":3: taxonomy must be a list of non-empty texts"),
        (lambda f: read_fktc(f / "no"), "no such folder"),
        (lambda f: read_fktc(write(f, HAITI, HAITI)), ":1: an object with relations"),
        (lambda f: read_fktc(write(f, HEADER)), "json:2: no facts after the header"),
        (
            lambda f: read_fktc(write(f, HEADER, HAITI), ["P1"]),
            "no file .* for P1 there; found: P37-subclass",
        ),
        (bear_row(answer_idx=1), "P36.jsonl:2: .*is not number 1 of the answer space"),
        (bear_row(answer_idx=True), "is not number True"),
        (bear_row(obj_label="Lutetia"), "Q90 'Lutetia' is not number 0"),
        (bear_row(sub_aliases=["a", ""]), "sub_aliases must be a list of non-empty texts"),
        (lambda f: read_bear(write_bear(f, FRANCE), ["P37"]), "'P37'; did you mean P36"),
        (
            lambda f: read_bear(
                write_bear(f, FRANCE, about=P36 | {"answer_space_ids": ["Q1"] * 3})
            ),
            "metadata_relations.json: P36: the answer space has 3 labels and 1 distinct ids of 3",
        ),
        (trex_row(subject=" "), "parquet:2: an empty subject"),
        (trex_row(obj=None), "parquet:2: an object with"),
        (trex_row(number=51), "unknown relation at .*parquet:2 51; did you mean 50"),
        (lambda f: read_trex_mc(f), "test-00000-of-00001.parquet: no such file"),
    ],
)
def test_what_is_wrong_is_named(tmp_path, read, says):
    with pytest.raises(ProbeError, match=says):
        read(tmp_path)


def test_the_real_fktc(fktc):
    """Counts of the released files; twelve lines name a right answer as a distractor."""
    read = read_fktc(fktc)
    sizes = {"P19": 944, "P101": 696, "P108": 383, "P159": 967, "P176": 982, "P264": 429}
    sizes |= {"P276": 959, "P364": 856, "P495": 909, "P1376": 234}
    assert read.facts.groupby("relation").size().to_dict() == sizes
    assert read.facts.duplicated(["relation", "subject", "object"]).sum() == 9 + 1 + 1
    assert (read.distractors.groupby("fact").size() == 5).all()
    with pytest.warns(UserWarning, match="13 of 36795 named distractors are right answers"):
        checked = facts.load("fktc", fktc, n_facts="all")
    released = facts.load("fktc", fktc, n_facts="all", released=True)
    assert len(released.distractors) - len(checked.distractors) == 13


# What cannot be loaded


@pytest.mark.parametrize(
    ("data", "folder", "says"),
    [
        ("fktb", "here", "unknown data 'fktb'; did you mean fktc"),
        ("fktc", "here", "here: no such folder"),
        ("fktc?subject:s", "here", "columns are written table[?]subject:s"),
        ("table?subject", "here.csv", "columns are written table[?]subject:s"),
        ("mine.csv", None, "unknown data 'mine.csv'.*data=table folder=PATH"),
        ("bear", None, "bear takes folder=, the path of its files"),
    ],
)
def test_what_cannot_be_loaded_says_so(data, folder, says):
    with pytest.raises(ProbeError, match=says):
        facts.load(data, folder)


def test_page_views(tmp_path):
    path = tmp_path / "views.json"
    path.write_text('{"Beyoncé": 120, "AC/DC": 0}')
    assert read_pageviews(path).to_dict() == {"Beyoncé": 120, "AC/DC": 0}
    for bad in ('{"a": -1}', '{"a": true}', '{" ": 1}'):
        path.write_text(bad)
        with pytest.raises(ProbeError, match="an integer of at least 0"):
            read_pageviews(path)
