"""Tables of triples: what every kind of file says, what is refused, where the complaint points."""

import contextlib

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from probelib import facts
from probelib.errors import ProbeError
from probelib.facts.table import read_triples
from probelib.files import TABLES
from tests.conftest import examples
from tests.facts.samples import DAMAGE, HARMLESS, damage

CSV = """relation,subject,object,subject_id,object_id,object_aliases,start,end,remark
P36,France,Paris,Q142,Q90,City of Light|Paname,,,x
P36,Germany,Bonn,Q183,Q586,,1949,1990-10-03,
P36,Germany,Berlin,Q183,Q64,,1990-10-03,,"a remark, in
two lines"
P47,Germany,France,Q183,Q142,,,,
P47,Germany,Poland,Q183,Q36,,,,
"""
TEMPLATES = """relation,template,role
P36,What is the capital of [X]?,
P36,The capital of [X] is [Y].,
P36,The capital of [X] is,
P36,[Y] is the capital of [X].,
P47,Question: who lives next to [X]? Answer:,question
"""
pytestmark = pytest.mark.filterwarnings("ignore:.*columns that are not read")


@pytest.fixture
def table(tmp_path):
    (tmp_path / "facts.csv").write_text(CSV)
    return tmp_path / "facts.csv"


def save(frame: pd.DataFrame, path):
    """A frame in the format that the path's suffix names."""
    if path.suffix == ".parquet":
        frame.to_parquet(path)
    elif path.suffix in (".json", ".jsonl"):
        frame.to_json(path, orient="records", lines=path.suffix == ".jsonl")
    else:
        frame.to_csv(path, sep="\t" if path.suffix == ".tsv" else ",", index=False)
    return path


def triples(read) -> list[tuple]:
    """(relation, label of the subject, label of the object) of every fact."""
    ends = (read.label(read.facts[side]) for side in ("subject", "object"))
    return list(zip(read.facts["relation"], *ends, strict=True))


def test_facts_by_hand(table):
    read = read_triples(table)
    assert read.facts.values.tolist() == [
        ["P36:Q142:Q90", "P36", "Q142", "Q90", "", ""],
        ["P36:Q183:Q586", "P36", "Q183", "Q586", "1949", "1990-10-03"],
        ["P36:Q183:Q64", "P36", "Q183", "Q64", "1990-10-03", ""],
        ["P47:Q183:Q142", "P47", "Q183", "Q142", "", ""],
        ["P47:Q183:Q36", "P47", "Q183", "Q36", "", ""],
    ]
    # Germany had another capital once, and has two neighbours now
    assert read.relations["functional"].tolist() == [True, False]
    paris = read.entities.set_index("entity").loc["Q90"].tolist()
    # a table need not name types: distractors share one
    assert paris == ["Paris", "Q90", ("City of Light", "Paname"), ("object of P36",), 0]
    assert read.source == "table:facts.csv" and read.templates.empty and read.distractors.empty


@pytest.mark.parametrize("kind", TABLES)
def test_all_formats_say_the_same(table, tmp_path, kind):
    """Texts stay as they are (007, NA), and templates beside the table are read for every kind."""
    frame = pd.read_csv(table, dtype=str, keep_default_na=False).drop(columns="remark")
    frame.loc[0, ["subject", "object"]] = ["NA", "007"]
    frame.loc[1, "object"] = "null"
    path, right = save(frame, tmp_path / f"mine{kind}"), save(frame, tmp_path / "right.csv")
    assert read_triples(path).digest() == read_triples(right).digest()
    assert triples(read_triples(path))[0] == ("P36", "NA", "007")
    templates = pd.DataFrame({"relation": ["P36"], "template": ["Where is [X] ruled from?"]})
    save(templates, tmp_path / f"mine.templates{kind}")
    assert read_triples(path).templates["template"].tolist() == ["Where is [X] ruled from?"]


def test_templates_by_hand(table):
    (table.parent / "facts.templates.csv").write_text(TEMPLATES)
    assert read_triples(table).templates.values.tolist() == [
        ["P36", "question", 1, "What is the capital of [X]?"],
        ["P36", "cloze", 1, "The capital of [X] is"],  # once, also as the start of a statement
        ["P36", "statement", 1, "The capital of [X] is [Y]."],
        ["P36", "statement", 2, "[Y] is the capital of [X]."],
        ["P47", "question", 1, "Question: who lives next to [X]? Answer:"],
    ]
    lent = facts.load("table", table, n_facts="all").templates.groupby(["relation", "role"]).size()
    assert lent["P36", "question"] == 1 and lent["P36", "hgp"] and lent["P47", "cloze"] == 7


def test_columns_by_other_names(tmp_path):
    """As in PopQA's file: cells in quotation marks, lists in JSON, addresses of ids, page views."""
    row = {"subj": '"Weird" Ned', "prop": "P106", "obj": "actor", "n": 7, "note": "x"}
    row |= {"names": '["Ned, W.", "Ned"]', "types": "trade|work"}
    row |= {"uri": "http://www.wikidata.org/entity/Q33999"}
    save(pd.DataFrame([row, row | {"obj": "poet", "uri": "Q49757"}]), tmp_path / "t.tsv")
    columns = {"subject": "subj", "object": "obj", "relation": "=P106", "object_types": "types"}
    columns |= {"subject_popularity": "n", "subject_aliases": "names", "object_id": "uri"}
    with pytest.warns(UserWarning, match="columns that are not read: note, prop. The kit's are"):
        read = read_triples(tmp_path / "t.tsv", columns=columns)
    assert triples(read) == [("P106", '"Weird" Ned', "actor"), ("P106", '"Weird" Ned', "poet")]
    about = read.entities.set_index("entity")
    assert about["types"]["Q33999"] == ("trade", "work")
    assert about.loc['"Weird" Ned', ["aliases", "popularity"]].tolist() == [("Ned, W.", "Ned"), 7]


@pytest.mark.parametrize("name", ["aliases", "Alias", "synonyms", "Object aliases"])
def test_aliases_under_any_usual_name_and_repeated_rows(tmp_path, name):
    """Excel ends every line in commas where a cell to the right was once filled."""
    text = f"relation,subject,object,{name},,\nP36,a,b,c|d,,\nP36,a,b,c|d,,\n"
    (tmp_path / "t.csv").write_text(text)
    with pytest.warns(UserWarning, match="t.csv:3: 1 rows repeat an earlier row"):
        read = read_triples(tmp_path / "t.csv")
    assert read.entities["aliases"].tolist() == [("c", "d"), ()] and len(read.facts) == 1


def test_labels_of_one_id_are_one_entity_with_two_labels(tmp_path):
    rows = "r,Alien,USA,Q30\nr,Q30,USA,Q30\nr,Alien,U.S.,Q30\n"
    (tmp_path / "odd.csv").write_text(f"relation,subject,object,object_id\n{rows}")
    read = read_triples(tmp_path / "odd.csv")
    assert read.facts["fact"].tolist() == ["r:Alien:Q30", "r:Q30:Q30", "r:Alien:Q30:line4"]
    assert read.label(read.facts["subject"]) == ["Alien", "Q30", "Alien"]
    about = read.entities.set_index("entity")
    assert about.loc["Q30:U.S.", ["wikidata", "aliases"]].tolist() == ["Q30", ("USA",)]


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        ("France,Paris", ",Paris", "facts.csv:2: an empty subject"),
        ("P47,Germany,France", " ,Germany,France", "facts.csv:6: an empty relation"),
        ("1949,", "spring 1949,", "facts.csv:3: start 'spring 1949'; a year"),
        ("1949,1990-10-03", "1990-10,1990-09-30", r"facts.csv:3: it ends .* before it starts"),
        ("Q586,,", "Q586,", "facts.csv:3: 8 cells, the header has 9"),
        ("relation,subject", "rel,subject", r"needed.*\['relation'\] are missing.*columns="),
        ("remark", "start", r"facts.csv:1: .* \['start'\] may occur only once"),
        ('"a remark', '"a" remark', "facts.csv:4: "),
        ("P47,Germany,France,Q183,Q142,,,,", CSV.split("\n")[0], "facts.csv:6: repeats the header"),
        ("remark", "object_popularity", "facts.csv:2: popularity 'x'; an integer"),
        (CSV, "relation,subject,object\n", "no facts"),
        (CSV, CSV.replace(",", ";"), "Commas separate cells"),
        ("T", "P36,What is its capital?,", r"templates\.csv:7: 'What is its capital\?'.*\[X\]"),
        ("T", "P36,[Y] of [X] is [Y],", "once in a statement alone"),
        ("T", "P36,The capital of [X] is,statement", "once in a statement alone"),
        ("T", "P36,The capital of [X] is,cloz", "unknown role .*did you mean cloze"),
        ("T", "P17,Where is [X]?,", "facts.csv has no relation 'P17'; it has P36, P47"),
    ],
)
def test_a_bad_line_is_named(table, before, after, says):
    if before == "T":
        (table.parent / "facts.templates.csv").write_text(f"{TEMPLATES}{after}\n")
    else:
        table.write_text(CSV.replace(before, after, 1))
    with pytest.raises(ProbeError, match=says):
        read_triples(table)


def test_other_arguments_that_raise(table, tmp_path):
    for columns, says in (
        ({"subjekt": "subject"}, r"columns names \['subjekt'\]"),
        ({"subject": "head"}, r"needed: \['relation', 'head', "),
        ({"start": "since"}, r"\['since'\] are missing"),
    ):
        with pytest.raises(ProbeError, match=says):
            read_triples(table, columns=columns)
    with pytest.raises(ProbeError, match="a .csv, .tsv, .parquet, .jsonl or .json file"):
        read_triples(tmp_path / "facts.xlsx")
    for cell, says in ((1.5, "float"), (True, "bool"), (b"x", "bytes"), ([["a"]], "list")):
        save(pd.DataFrame({"relation": ["r"], "subject": ["s"], "object": [cell]}),
             tmp_path / "t.parquet")  # fmt: skip
        with pytest.raises(ProbeError, match=f"t.parquet:1: object is a {says}"):
            read_triples(tmp_path / "t.parquet")
    (tmp_path / "a.tsv").write_text('relation\tsubject\tobject\nP1\t"Rock" Ned\tx\n')
    with pytest.raises(ProbeError, match="a.tsv:2: "):
        read_triples(tmp_path / "a.tsv")


@pytest.mark.parametrize("kind", DAMAGE + HARMLESS)
def test_damaged_and_harmlessly_different_files(table, kind):
    right = read_triples(table)
    path = damage(table, kind)
    if kind in HARMLESS:
        assert read_triples(path).facts.equals(right.facts)
    else:
        with pytest.raises(ProbeError, match="facts.csv"):
            read_triples(path)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["f.csv", "f.tsv", "f.parquet", "f.csv.gz", "f.json", "f.jsonl"])
@settings(
    max_examples=examples(60),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    content=st.binary(max_size=200) | st.text(max_size=90).map(lambda t: (CSV[:140] + t).encode())
)
def test_any_bytes_give_facts_or_the_kits_own_error(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    with contextlib.suppress(ProbeError):
        read_triples(tmp_path / name).digest()
