"""Tables of triples: what every kind of file says, what is refused, where the complaint points."""

import contextlib
import datetime
import json

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from probelib import facts
from probelib.errors import ProbeError
from probelib.facts.names import clean
from probelib.facts.table import Entity, Triple, assemble, cut, read_triples, write_triples
from probelib.files import TABLES
from tests.facts import hostile

CSV = """relation,subject,object,subject_id,object_id,object_aliases,start,end,remark
P36,France,Paris,Q142,Q90,City of Light|Paname,,,x
P36,Germany,Bonn,Q183,Q586,,1949,1990-10-03,
P36,Germany,Berlin,Q183,Q64,,1990-10-03,,"a remark, in
two lines"
P47,Germany,France,Q183,Q142,,,,
P47,Germany,Poland,Q183,Q36,,,,
"""
TEMPLATES = """relation,template
P36,What is the capital of [X]?
P36,The capital of [X] is [Y].
P36,The capital of [X] is
P36,"[Y] is the capital of [X]."
P47,Who lives next to [X]?
"""
pytestmark = pytest.mark.filterwarnings("ignore:.*columns that are not read")


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "facts.csv"
    path.write_text(CSV)
    return path


def save(frame: pd.DataFrame, path, **options):
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
    rows = read.facts
    ends = (read.label(rows[side]) for side in ("subject", "object"))
    return list(zip(rows["relation"], *ends, strict=True))


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
    assert read.relations[["relation", "functional"]].values.tolist() == [
        ["P36", True],
        ["P47", False],
    ]
    paris = read.entities.set_index("entity").loc["Q90"].to_dict()
    assert paris == {
        "label": "Paris",
        "wikidata": "Q90",
        "aliases": ("City of Light", "Paname"),
        "types": ("object of P36",),  # a table need not name types: distractors share one
        "popularity": 0,
    }
    assert read.source == "table:facts.csv" and read.templates.empty and read.distractors.empty


@pytest.mark.parametrize("kind", TABLES)
def test_all_formats_say_the_same(table, tmp_path, kind):
    """Texts stay as they are (007, NA, null), and templates beside the table are read for every
    format."""
    frame = pd.read_csv(table, dtype=str, keep_default_na=False).drop(columns="remark")
    frame.loc[0, ["subject", "object"]] = ["NA", "007"]
    frame.loc[1, "object"] = "null"
    path = save(frame, tmp_path / f"mine{kind}")
    right = read_triples(save(frame, tmp_path / "right.csv"))
    assert hostile.same(read_triples(path), right) and triples(right)[0] == ("P36", "NA", "007")
    templates = pd.DataFrame({"relation": ["P36"], "template": ["Where is [X] ruled from?"]})
    save(templates, tmp_path / "mine.templates.csv")
    assert read_triples(path).templates["template"].tolist() == ["Where is [X] ruled from?"]
    save(templates, tmp_path / f"mine.templates{kind}")
    assert len(read_triples(path).templates) == 1


def test_templates_by_hand(table):
    (table.parent / "facts.templates.csv").write_text(TEMPLATES)
    assert read_triples(table).templates.values.tolist() == [
        ["P36", "question", 1, "What is the capital of [X]?"],
        [
            "P36",
            "cloze",
            1,
            "The capital of [X] is",
        ],  # said twice, once as the beginning of a statement
        ["P36", "statement", 1, "The capital of [X] is [Y]."],
        ["P36", "statement", 2, "[Y] is the capital of [X]."],
        ["P47", "question", 1, "Who lives next to [X]?"],
    ]
    lent = facts.load("table", table, n_facts="all").templates.groupby(["relation", "role"]).size()
    assert lent["P36", "question"] == 1 and lent["P36", "hgp"] and lent["P47", "cloze"] == 7


def test_a_role_says_what_a_template_is(table):
    beside = table.parent / "facts.templates.csv"
    beside.write_text(
        "relation,role,template\nP36,question,Question: capital of [X]? Answer:\nP47,,By [X] is\n"
    )
    rows = read_triples(table).templates[["relation", "role"]].values.tolist()
    assert rows == [["P36", "question"], ["P47", "cloze"]]
    for role, says in (
        ("cloz", "unknown role .*did you mean cloze"),
        ("statement", r"needs \[Y\]"),
    ):
        beside.write_text(f"relation,role,template\nP36,{role},The capital of [X] is\n")
        with pytest.raises(ProbeError, match=says):
            read_triples(table)


@pytest.mark.parametrize(
    "name", ["facts.template.csv", "facts.templates.xlsx", "facts_templates.csv"]
)
def test_templates_that_nothing_reads_are_named(table, name):
    (table.parent / name).write_text(TEMPLATES)
    with pytest.warns(UserWarning, match=f"{name}: templates that are not read"):
        assert read_triples(table).templates.empty


@pytest.mark.parametrize("name", ["aliases", "Alias", "synonyms", "object aliases"])
def test_aliases_under_any_usual_name(tmp_path, name):
    (tmp_path / "t.csv").write_text(f"relation,subject,object,{name},note\nP36,a,b,c|d,x\n")
    with pytest.warns(
        UserWarning, match="t.csv: columns that are not read: note. The kit's are relation"
    ):
        read = read_triples(tmp_path / "t.csv")
    assert read.entities.set_index("entity")["aliases"]["b"] == ("c", "d")


def test_types_popularity_and_lists(tmp_path):
    row = {"relation": "P1", "subject": "a", "object": ["x", "y"], "object_types": "city|town"}
    row |= {"subject_popularity": 7, "subject_aliases": '["A", "one"]'}
    (tmp_path / "t.jsonl").write_text(json.dumps(row))
    read = read_triples(tmp_path / "t.jsonl")
    assert triples(read) == [("P1", "a", "x"), ("P1", "a", "y")]
    about = read.entities.set_index("entity")
    assert about["types"]["y"] == ("city", "town") and about["popularity"].to_dict() == {
        "x": 0,
        "y": 0,
        "a": 7,
    }
    assert about["aliases"]["a"] == ("A", "one")


def test_columns_by_other_names_and_nested_ones(tmp_path):
    rows = [
        {"who": "Ada", "born": {"year": 1815}, "lang": "en"},
        {"who": "Ada", "born": {"year": 1}, "lang": "de"},
    ]
    columns = {"subject": "who", "object": "born.year", "relation": "=P569", "lang": "=EN"}
    (tmp_path / "t.json").write_text(json.dumps({"rows": rows}))
    pd.DataFrame(rows).to_parquet(tmp_path / "t.parquet")
    for name in ("t.json", "t.parquet"):
        assert read_triples(tmp_path / name, columns).facts["fact"].tolist() == ["P569:Ada:1815"]


def test_labels_of_one_id_are_one_entity_with_two_labels(tmp_path):
    path = tmp_path / "odd.csv"
    path.write_text(
        "relation,subject,object,object_id\nr,Alien,USA,Q30\nr,Q30,USA,Q30\nr,Alien,U.S.,Q30\n"
    )
    read = read_triples(path)
    assert read.facts["fact"].tolist() == ["r:Alien:Q30", "r:Q30:Q30", "r:Alien:Q30:line4"]
    assert read.label(read.facts["subject"]) == ["Alien", "Q30", "Alien"]
    about = read.entities.set_index("entity")
    assert about.loc["Q30:U.S.", ["wikidata", "aliases"]].tolist() == ["Q30", ("USA",)]


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        ("France,Paris", ",Paris", "facts.csv:2: an empty subject"),
        (
            "P47,Germany,France",
            " ,Germany,France",
            "facts.csv:6: an empty relation",
        ),  # two lines before
        ("1949,", "spring 1949,", "facts.csv:3: start 'spring 1949'; a year"),
        ("1990-10-03", "1990-13-03", "facts.csv:3: end '1990-13-03'; a year"),
        ("1949,1990-10-03", "1990-10,1990-09-30", r"facts.csv:3: it ends .* before it starts"),
        ("Q586,,", "Q586,", "facts.csv:3: 8 cells, the header has 9"),
        (
            "relation,subject",
            "rel,subject",
            "facts.csv:1: .* needed, each once.*columns=relation:=P36",
        ),
        ("remark", "start", "facts.csv:1: .* start may occur only once"),
        ('"a remark', '"a" remark', "facts.csv:4: "),
        ("P47,Germany,France,Q183,Q142,,,,", CSV.split("\n")[0], "facts.csv:6: repeats the header"),
        ("remark", "object_popularity", "facts.csv:2: popularity 'x'; an integer"),
        (CSV, "relation,subject,object\n", "no facts"),
        (CSV, CSV.replace(",", ";"), "separated by ';'"),
    ],
)
def test_a_bad_line_is_named(table, before, after, says):
    table.write_text(CSV.replace(before, after, 1))
    with pytest.raises(ProbeError, match=says):
        read_triples(table)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            "P36,What is its capital?",
            r"facts\.templates\.csv:7: 'What is its capital\?' needs \[X\]",
        ),
        ("P36,[X] and [X]", "needs \\[X\\]"),
        ("P36,[Y] of [X] is [Y]", "at most once"),
        ("P17,Where is [X]?", "facts.csv has no relation 'P17'; it has P36, P47"),
        ("P36", "1 cells, the header has 2"),
    ],
)
def test_an_unusable_template_is_named(table, line, said):
    (table.parent / "facts.templates.csv").write_text(TEMPLATES + line + "\n")
    with pytest.raises(ProbeError, match=said):
        read_triples(table)


@pytest.mark.parametrize(
    ("cell", "says"),
    [
        (1.5, "float"),
        (True, "bool"),
        (datetime.date(1990, 1, 1), "date"),
        (b"x", "bytes"),
        ([["a"]], "list"),
    ],
)
def test_a_cell_of_the_wrong_type(tmp_path, cell, says):
    pd.DataFrame({"relation": ["r"], "subject": ["s"], "object": [cell]}).to_parquet(
        tmp_path / "t.parquet"
    )
    with pytest.raises(ProbeError, match=f"t.parquet:1: object is a {says}"):
        read_triples(tmp_path / "t.parquet")


def test_other_arguments_that_raise(table, tmp_path):
    for columns, says in (
        ({"subjekt": "subject"}, r"columns names \['subjekt'\]"),
        ({"subject": "head"}, r"needed, each once: \['relation', 'head', "),
        ({"nothing": "=x"}, "'nothing' is needed"),
    ):
        with pytest.raises(ProbeError, match=says):
            read_triples(table, columns)
    with pytest.raises(ProbeError, match="a .csv, .tsv, .parquet, .jsonl or .json file"):
        read_triples(tmp_path / "facts.xlsx")


def test_a_tsv_with_quoted_cells_is_refused(tmp_path):
    """As pandas and Excel write it; a title that has quotation marks of its own is one."""
    own = pd.DataFrame(
        {"relation": ["P1"], "subject": ['Dwayne "The Rock" Johnson'], "object": ["x"]}
    )
    with pytest.raises(ProbeError, match="a.tsv:2: subject .*Save the table as .csv"):
        read_triples(save(own, tmp_path / "a.tsv"))
    (tmp_path / "b.tsv").write_text('relation\tsubject\tobject\nP1\t"Heroes"\t"Weird Al" Yankovic')
    assert triples(read_triples(tmp_path / "b.tsv")) == [("P1", '"Heroes"', '"Weird Al" Yankovic')]


def test_unread_columns_may_share_a_name_and_repeated_rows_count_once(tmp_path):
    """Excel ends every line in commas where a cell to the right was once filled."""
    (tmp_path / "t.csv").write_text("relation,subject,object,,\nP1,a,b,,\nP1,a,b,,\nP1,c,d,,\n")
    with pytest.warns(
        UserWarning, match="t.csv:3: 1 rows repeat an earlier row; each is counted once"
    ):
        assert read_triples(tmp_path / "t.csv").facts["object"].tolist() == ["b", "d"]


@pytest.mark.parametrize("kind", hostile.DAMAGE)
def test_damaged_files(table, kind):
    with pytest.raises(ProbeError, match="facts.csv"):
        read_triples(hostile.damage(table, kind))


@pytest.mark.parametrize("kind", hostile.HARMLESS)
def test_harmless_differences(table, kind):
    right = read_triples(table)
    assert read_triples(hostile.damage(table, kind)).facts.equals(right.facts)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["f.csv", "f.tsv", "f.parquet", "f.csv.gz", "f.json", "f.jsonl"])
@hostile.fuzz
@given(
    content=st.binary(max_size=200)
    | hostile.cut_up(CSV.encode())
    | hostile.json_lines({"subject": "a"})
)
def test_any_bytes_give_facts_or_the_kits_own_error(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    with contextlib.suppress(ProbeError):
        read_triples(tmp_path / name).digest()


CELL = st.text(st.characters(codec="utf-8"), max_size=6) | st.sampled_from(
    ["Q1", "a", "1990", "x|y"]
)


@pytest.mark.filterwarnings("ignore")
@hostile.fuzz
@given(st.lists(st.tuples(*[CELL] * 6), min_size=1, max_size=5))
def test_every_row_is_a_fact_or_the_file_is_refused(tmp_path, rows):
    columns = ["relation", "subject", "object", "subject_id", "object_id", "object_aliases"]
    pd.DataFrame(rows, columns=columns).to_parquet(tmp_path / "f.parquet")
    if any(not clean(cell) for row in rows for cell in row[1:3]) or not all(
        row[0].strip() for row in rows
    ):
        with pytest.raises(ProbeError):
            read_triples(tmp_path / "f.parquet")
        return
    different = dict.fromkeys(
        tuple(cell.strip() for cell in row) for row in rows
    )  # repeated ones: once
    expected = [(row[0], clean(row[1]), clean(row[2])) for row in different]
    assert triples(read_triples(tmp_path / "f.parquet")) == expected


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_what_is_written_is_read_back(tmp_path, suffix):
    entity = lambda name: Entity(name, f"Q{sum(map(ord, name))}", ("an alias",), ("a type",))
    rows = [("P36", "Fra,nce", 'Pa"ris'), ("P47", "New\u2028\nline", "b"), ("P36", "a", "'007")]
    made = [Triple("f:1", r, entity(s), entity(o), "1990", "?") for r, s, o in rows]
    texts = [("P36", "statement", "[X] has [Y]."), ("P36", "question", "What has [X]?")]
    read = assemble(made, "test", texts)
    again = read_triples(write_triples(read, tmp_path / f"t.{suffix}"))
    assert hostile.same(again, read)
    with pytest.raises(ProbeError, match="a .csv or a .parquet file"):
        write_triples(read, tmp_path / "t.json")


def test_where_a_statement_is_cut():
    assert (
        cut("[X] was born in [Y] .") == "[X] was born in"
        and cut("[X] plays as [Y]") == "[X] plays as"
    )
    assert (
        cut("[X] plays [Y] music .") is None
        and cut("[Y] is where [X] is") is None
        and cut("in [Y]") is None
    )
