"""Tables of triples in CSV, TSV and Parquet; page views."""

import contextlib
import datetime
import json

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from probelib.errors import ProbeError
from probelib.facts import atlas, load
from probelib.facts.check import counts
from probelib.facts.formats.tables import (
    Entity,
    Triple,
    assemble,
    cut,
    read_pageviews,
    read_triples,
    statements,
    template_frame,
    write_triples,
)
from probelib.facts.model import choose, draw_distractors, keep, without_subjects
from tests.facts import hostile

CSV = """relation,subject,object,subject_id,object_id,object_aliases,start,end,remark
P36,France,Paris,Q142,Q90,City of Light|Paname,,,x
P36,Germany,Bonn,Q183,Q586,,1949,1990-10-03,
P36,Germany,Berlin,Q183,Q64,,1990-10-03,,"a remark, in
two lines"
P47,Germany,France,Q183,Q142,,,,
P47,Germany,Poland,Q183,Q36,,,,
"""


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "facts.csv"
    path.write_text(CSV)
    return path


def test_a_table_without_templates_has_none(table):
    assert counts(read_triples(table))[["questions", "clozes"]].to_numpy().tolist() == [[0, 0], [0, 0]]


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
    assert read.relations[["relation", "functional"]].values.tolist() == [["P36", True], ["P47", False]]
    paris = read.entities.set_index("entity").loc["Q90"]
    assert paris["label"] == "Paris" and paris["aliases"] == ("City of Light", "Paname") and paris["wikidata"] == "Q90"
    assert read.source == "table:facts.csv" and read.templates.empty and read.distractors.empty
    drawn = draw_distractors(read).distractors.groupby("fact")["object"].agg(set)
    assert drawn["P36:Q142:Q90"] == {"Q586", "Q64"} and drawn["P36:Q183:Q64"] == {"Q90"}


@pytest.mark.parametrize("key", ["Q928", "ph-1"])
def test_labels_of_one_id_are_one_subject(tmp_path, key):
    """Whoever gave the id: what is right for the one label is right for the other, and neither is the other's example."""
    lines = [
        "relation,subject,subject_id,object",
        f"P47,Philippines,{key},Malaysia",
        f"P47,the Philippines,{key},Taiwan",
    ]
    (tmp_path / "ids.csv").write_text("\n".join([*lines, "P47,France,,Spain"]))
    read = read_triples(tmp_path / "ids.csv")
    drawn = draw_distractors(read).distractors.groupby("fact")["object"].agg(set)
    assert drawn[f"P47:{key}:Malaysia"] == drawn[f"P47:{key}:Taiwan"] == {"Spain"}
    assert without_subjects(read, keep(read, read.facts["object"] == "Taiwan")).facts["object"].tolist() == ["Spain"]


def test_a_tsv_with_quoted_cells_is_refused(tmp_path):
    """As pandas and Excel write it; a title that has quotation marks of its own is one."""
    own = pd.DataFrame({"relation": ["P1"], "subject": ['Dwayne "The Rock" Johnson'], "object": ["x"]})
    own.to_csv(tmp_path / "a.tsv", sep="\t", index=False)
    with pytest.raises(ProbeError, match="a.tsv:2: subject .*Save the table as .csv"):
        read_triples(tmp_path / "a.tsv")
    (tmp_path / "b.tsv").write_text('relation\tsubject\tobject\nP1\t"Heroes"\t"Weird Al" Yankovic')
    assert read_triples(tmp_path / "b.tsv").entities["label"].tolist() == ['"Weird Al" Yankovic', '"Heroes"']


WORDINGS = """relation,template
P36,What is the capital of [X]?
P36,The capital of [X] is [Y].
P36,The capital of [X] is
P36,"[Y] is the capital of [X]."
P47,Who lives next to [X]?
"""


def test_templates_beside_a_table_by_hand(table):
    (table.parent / "facts.templates.csv").write_text(WORDINGS)
    assert read_triples(table).templates.values.tolist() == [
        ["P36", "question", 1, "What is the capital of [X]?"],
        ["P36", "cloze", 1, "The capital of [X] is"],  # said twice, once as the beginning of a statement
        ["P36", "statement", 1, "The capital of [X] is [Y]."],
        ["P36", "statement", 2, "[Y] is the capital of [X]."],
        ["P47", "question", 1, "Who lives next to [X]?"],
    ]
    whole = load("table", table, n_facts="all")  # what they lack the atlas lends
    assert whole.relations["name"].tolist() == ["capital", "shares border with"]
    lent = whole.templates
    ours = lent[lent["relation"] == "P36"].groupby("role")["template"].agg(list)
    theirs = atlas().templates.query("relation == 'P36'").groupby("role")["template"].agg(list)
    assert ours["question"] == ["What is the capital of [X]?"] and ours["hgp"] == theirs["hgp"]


@pytest.mark.parametrize(
    "line, said",
    [
        ("P36,What is its capital?", r"facts\.templates\.csv:7: 'What is its capital\?' needs \[X\]"),
        ("P36,[X] and [X]", "needs \\[X\\]"),
        ("P36,[Y] of [X] is [Y]", "at most once"),
        ("P17,Where is [X]?", "facts.csv has no relation 'P17'; it has P36, P47"),
        ("P36", "1 cells, the header has 2"),
    ],
)
def test_an_unusable_template_raises(table, line, said):
    (table.parent / "facts.templates.csv").write_text(WORDINGS + line + "\n")
    with pytest.raises(ProbeError, match=said):
        read_triples(table)


def test_objects_without_types_are_of_their_relations(table):
    """Distractors are drawn among entities of a type; a table need not name any."""
    read = read_triples(table)
    assert set(read.entities.set_index("entity")["types"][["Q90", "Q64"]]) == {("object of P36",)}
    frame = pd.read_csv(table, dtype=str, keep_default_na=False)
    frame["object_types"] = ["city" if relation == "P36" else "" for relation in frame["relation"]]
    frame.to_csv(table, index=False)
    types = read_triples(table).entities.set_index("entity")["types"]
    assert types["Q90"] == ("city",) and types["Q36"] == ("object of P47",)  # Poland is no city


def test_facts_that_are_all_over_are_none(tmp_path):
    (tmp_path / "old.csv").write_text("relation,subject,object,end\nP36,Germany,Bonn,1990\n")
    with pytest.raises(ProbeError, match="no fact holds today"):
        load("table", tmp_path / "old.csv")


def test_the_three_formats_say_the_same(table, tmp_path):
    frame = pd.read_csv(table, dtype=str, keep_default_na=False)
    frame.to_parquet(tmp_path / "facts.parquet")
    frame.drop(columns="remark").to_csv(tmp_path / "facts.tsv", sep="\t", index=False)
    frames = [read_triples(tmp_path / f"facts.{kind}") for kind in ("csv", "tsv", "parquet")]
    assert hostile.same(frames[0], frames[1]) and hostile.same(frames[0], frames[2])


def test_the_order_of_rows_and_columns_changes_no_fact(table, tmp_path):
    frame = pd.read_csv(table, dtype=str, keep_default_na=False)
    frame.iloc[::-1, ::-1].to_csv(tmp_path / "turned.csv", index=False)
    a, b = read_triples(table), read_triples(tmp_path / "turned.csv")
    key = ["relation", "subject", "object", "start", "end", "fact"]
    assert sorted(a.facts[key].values.tolist()) == sorted(b.facts[key].values.tolist())
    assert a.relations.equals(b.relations)


def test_labels_only_other_names_of_columns_and_years_as_integers(tmp_path):
    rows = {"who": ["Marie Curie", "Max Planck"], "year": [1867, 1858], "since": [None, None]}
    pd.DataFrame(rows).to_parquet(tmp_path / "births.parquet")
    columns = {"subject": "who", "object": "year", "start": "since", "relation": "=P569"}
    read = read_triples(tmp_path / "births.parquet", columns)
    assert read.facts["fact"].tolist() == ["P569:Marie Curie:1867", "P569:Max Planck:1858"]
    assert read.label(read.facts["object"]) == ["1867", "1858"] and set(read.entities["wikidata"]) == {""}


def test_a_label_that_is_an_id_of_something_else_stays_apart(tmp_path):
    path = tmp_path / "odd.csv"
    path.write_text("relation,subject,object,object_id\nr,Alien,USA,Q30\nr,Q30,USA,Q30\nr,Alien,U.S.,Q30\n")
    read = read_triples(path)
    assert read.facts["fact"].tolist() == ["r:Alien:Q30", "r:Q30:Q30", "r:Alien:Q30:line4"]
    assert read.facts["subject"].tolist() == ["Alien", "Q30:Q30", "Alien"]
    assert read.label(read.facts["subject"]) == ["Alien", "Q30", "Alien"]


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        ("France,Paris", ",Paris", "facts.csv:2: an empty subject"),
        ("P47,Germany,France", " ,Germany,France", "facts.csv:6: an empty relation"),  # the remark took two lines
        ("1949,", "spring 1949,", "facts.csv:3: start 'spring 1949'; a year"),
        ("1990-10-03", "1990-13-03", "facts.csv:3: end '1990-13-03'; a year"),
        ("Q586,,", "Q586,", "facts.csv:3: 8 cells, the header has 9"),
        ("relation,subject", "rel,subject", "facts.csv:1: .* needed, each once"),
        ("remark", "start", "facts.csv:1: .* start may occur only once"),
        ('"a remark', '"a" remark', "facts.csv:4: "),
    ],
)
def test_a_bad_line_is_named(table, before, after, says):
    table.write_text(CSV.replace(before, after, 1))
    with pytest.raises(ProbeError, match=says):
        read_triples(table)


@pytest.mark.parametrize(
    ("cell", "says"),
    [(1.5, "float"), (True, "bool"), (datetime.date(1990, 1, 1), "date"), (b"x", "bytes"), ([["a"]], "list")],
)
def test_a_cell_of_the_wrong_type(tmp_path, cell, says):
    pd.DataFrame({"relation": ["r"], "subject": ["s"], "object": [cell]}).to_parquet(tmp_path / "t.parquet")
    with pytest.raises(ProbeError, match=f"t.parquet:1: object is a {says}"):
        read_triples(tmp_path / "t.parquet")


def test_unread_columns_may_share_a_name(tmp_path):
    """Excel ends every line in commas where a cell to the right was once filled."""
    (tmp_path / "t.csv").write_text("relation,subject,object,,\nP1,a,b,,\nP1,c,d,,\n")
    assert read_triples(tmp_path / "t.csv").facts["object"].tolist() == ["b", "d"]
    (tmp_path / "t.csv").write_text("relation,subject,object,object\nP1,a,b,c\n")
    with pytest.raises(ProbeError, match="object may occur only once"):
        read_triples(tmp_path / "t.csv")


def test_arguments_that_raise(table, tmp_path):
    with pytest.raises(ProbeError, match="columns names \\['subjekt'\\]"):
        read_triples(table, {"subjekt": "subject"})
    with pytest.raises(ProbeError, match=r"needed, each once: \['head', "):
        read_triples(table, {"subject": "head"})
    with pytest.raises(ProbeError, match="a .csv, .tsv, .parquet, .json or .jsonl file"):
        read_triples(tmp_path / "facts.xlsx")
    (tmp_path / "none.csv").write_text("relation,subject,object\n")
    with pytest.raises(ProbeError, match="no facts"):
        read_triples(tmp_path / "none.csv")


@pytest.mark.parametrize("kind", hostile.DAMAGE)
def test_damaged_files(table, kind):
    with pytest.raises(ProbeError, match="facts.csv"):
        read_triples(hostile.damage(table, kind))


@pytest.mark.parametrize("kind", hostile.HARMLESS)
def test_harmless_differences(table, kind):
    right = read_triples(table)
    assert read_triples(hostile.damage(table, kind)).facts.equals(right.facts)


@pytest.mark.parametrize("name", ["f.csv", "f.tsv", "f.parquet", "f.csv.gz"])
@hostile.fuzz
@given(content=st.binary(max_size=200) | hostile.cut_up(CSV.encode()) | hostile.cut_up(CSV.replace(",", "\t").encode()))
def test_any_bytes_give_facts_or_the_kits_own_error(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    with contextlib.suppress(ProbeError):
        read_triples(tmp_path / name).digest()


CELL = st.text(st.characters(codec="utf-8"), max_size=6) | st.sampled_from(["Q1", "a", "1990", "x|y"])


@pytest.mark.filterwarnings("ignore:.*repeat an earlier row")
@hostile.fuzz
@given(st.lists(st.tuples(*[CELL] * 6), min_size=1, max_size=5))
def test_every_row_is_a_fact_or_the_file_is_refused(tmp_path, rows):
    columns = ["relation", "subject", "object", "subject_id", "object_id", "object_aliases"]
    pd.DataFrame(rows, columns=columns).to_parquet(tmp_path / "f.parquet")
    if any(not cell.strip() for row in rows for cell in row[:3]):
        with pytest.raises(ProbeError):
            read_triples(tmp_path / "f.parquet")
        return
    read = read_triples(tmp_path / "f.parquet")
    labels = zip(
        read.facts["relation"], read.label(read.facts["subject"]), read.label(read.facts["object"]), strict=True
    )
    different = dict.fromkeys(tuple(cell.strip() for cell in row) for row in rows)  # repeated rows count once
    assert list(labels) == [row[:3] for row in different]


def test_templates():
    assert cut("[X] was born in [Y] .") == "[X] was born in" and cut("[X] plays as [Y]") == "[X] plays as"
    assert cut("[X] plays [Y] music .") is None and cut("[Y] is where [X] is") is None and cut("in [Y]") is None
    rows = [*statements("r", ["[Y] has [X].", "[X] in [Y]."], "f:1"), ("r", "cloze", "[X] in")]
    assert template_frame(rows).values.tolist() == [
        ["r", "cloze", 1, "[X] in"],
        ["r", "statement", 1, "[Y] has [X]."],
        ["r", "statement", 2, "[X] in [Y]."],
    ]
    for bad in ("[X] only", "[X] [Y] [Y]", None):
        with pytest.raises(ProbeError, match="f:1: a template of r"):
            statements("r", [bad], "f:1")


def test_page_views(tmp_path):
    path = tmp_path / "views.json"
    path.write_text('{"Beyoncé": 120, "AC/DC": 0}')
    assert read_pageviews(path).values.tolist() == [["Beyoncé", 120], ["AC/DC", 0]]
    for bad, says in (
        ('{"a": -1}', "'a': -1"),
        ('{"a": 1.0}', "'a': 1.0"),
        ('{"a": true}', "'a': True"),
        ('{" ": 1}', "' ': 1"),
        ('{"a": 1, "a": 2}', "key 'a' given twice"),
        ("[1]", "an object"),
        ('{"a": 1', "views.json:1: not JSON"),
        ('{\n"a": 1,\n}', "views.json:3: not JSON"),
    ):
        path.write_text(bad)
        with pytest.raises(ProbeError, match=says):
            read_pageviews(path)


@pytest.mark.parametrize("kind", hostile.DAMAGE)
def test_damaged_page_views(tmp_path, kind):
    path = tmp_path / "views.json"
    path.write_text(json.dumps({"Nic Offer": 12, "Brooklyn": 3}))
    with pytest.raises(ProbeError, match="views.json"):
        read_pageviews(hostile.damage(path, kind))


@hostile.fuzz
@given(content=hostile.json_lines({"Nic Offer": 12}))
def test_any_content_gives_views_or_the_kits_own_error(tmp_path, content):
    (tmp_path / "views.json").write_bytes(content)
    with contextlib.suppress(ProbeError):
        assert (read_pageviews(tmp_path / "views.json")["views"] >= 0).all()


def test_a_date_that_exists_and_is_not_known(tmp_path):
    """Wikidata's "some value": "?" is read back as it was written, and is no open end."""
    (tmp_path / "t.csv").write_text("subject,relation,object,start,end\na,P1,b,?,1990\n")
    assert read_triples(tmp_path / "t.csv").facts[["start", "end"]].values.tolist() == [["?", "1990"]]


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_written_table_reads_back(tmp_path, suffix):
    facts = choose(atlas(), ["P35", "P36", "P37", "P569"])
    read = read_triples(write_triples(facts, tmp_path / f"facts.{suffix}"))
    columns = ["relation", "subject", "object", "start", "end"]
    assert read.facts[columns].values.tolist() == facts.facts[columns].values.tolist()
    written = facts.entities.set_index("entity").loc[read.entities["entity"]]
    assert read.entities["label"].tolist() == written["label"].tolist()
    assert read.entities["aliases"].tolist() == written["aliases"].tolist()
    assert read.entities["types"].map(set).tolist() == written["types"].map(set).tolist()
    assert dict(read.relations[["relation", "name"]].values) == dict(facts.relations[["relation", "name"]].values)
    templates = lambda facts: set(facts.templates.query("role != 'hgp' and role != 'mmp'")["template"])
    assert templates(read) == templates(facts)


def test_a_table_that_would_not_read_back_is_not_written(tmp_path):
    one = lambda **names: assemble([Triple("P1", Entity("a", **names), Entity("b"), 1)], "test")
    with pytest.raises(ProbeError, match=r"'c\|d' contains '\|'"):
        write_triples(one(aliases=("c|d",)), tmp_path / "t.csv")
    with pytest.raises(ProbeError, match="a .csv or a .parquet file"):
        write_triples(one(), tmp_path / "t.xlsx")
    with pytest.raises(ProbeError, match="carriage return"):
        write_triples(one(types=("c\rd",)), tmp_path / "t.csv")


def test_repeated_rows_count_once_and_are_reported(tmp_path):
    file = tmp_path / "mine.csv"
    file.write_text("subject,relation,object\n" + "France,P36,Paris\n" * 3 + "Peru,P36,Lima\n")
    with pytest.warns(UserWarning, match="mine.csv:3: 2 rows repeat an earlier row; each is counted once"):
        assert read_triples(file).facts["fact"].tolist() == ["P36:France:Paris", "P36:Peru:Lima"]


def test_a_second_header_and_an_end_before_the_start_are_errors(tmp_path):
    file = tmp_path / "mine.csv"
    file.write_text("subject,relation,object\nFrance,P36,Paris\nsubject,relation,object\n")
    with pytest.raises(ProbeError, match="mine.csv:3: repeats the header of line 1"):
        read_triples(file)
    for start, end in (("2020", "1990"), ("1990-10", "1990-09-30")):
        file.write_text(f"subject,relation,object,start,end\nFrance,P36,Paris,{start},{end}\n")
        with pytest.raises(ProbeError, match=rf"mine.csv:2: it ends \({end}\) before it starts \({start}\)"):
            read_triples(file)
    file.write_text("subject,relation,object,start,end\nFrance,P36,Paris,1990-10,1990\n")  # may well be the same month
    assert len(read_triples(file).facts) == 1
