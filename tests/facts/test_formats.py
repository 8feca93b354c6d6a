"""Published data sets in their own columns, from a folder and from the Hugging Face Hub."""

import json

import pandas as pd
import pytest

from probelib import facts, prompts
from probelib.errors import ProbeError
from probelib.facts import formats
from probelib.facts.formats import read_bear, read_dataset, read_fktc, read_pageviews, read_trex_mc
from tests.facts.test_table import triples

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
POPQA = {"subj": "Ada Lovelace", "prop": "occupation", "obj": "mathematician", "s_pop": 5}
POPQA |= {"o_pop": 6, "s_aliases": '["Ada King"]', "o_aliases": '["maths scholar"]'}
POPQA |= {"s_uri": "http://www.wikidata.org/entity/Q7259"}
POPQA |= {"o_uri": "http://www.wikidata.org/entity/Q170790"}
POPQA |= {"question": "What is Ada Lovelace's occupation?"}


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
        (fktc_row(more=1), "P37-subclass.json:3: an object with exactly"),
        (fktc_row(subject=" "), "P37-subclass.json:3: an empty subject"),
        (fktc_row(taxonomy=["c", None]), ":3: taxonomy must be a list of non-empty texts"),
        (lambda f: read_fktc(f / "no"), "no such folder"),
        (lambda f: read_fktc(write(f, HAITI, HAITI)), ":1: an object with exactly relations"),
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
        (lambda f: read_trex_mc(f), "no file test-"),
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


# Data sets of datasets.yaml


def write_popqa(folder):
    other = {"subj": "Alan", "question": "What is Alan's occupation?", "obj": '"Turing" man'}
    other |= {"s_uri": POPQA["s_uri"] + "1", "o_uri": POPQA["o_uri"] + "1"}
    pd.DataFrame([POPQA, POPQA | other]).to_csv(folder / "test.tsv", sep="\t", index=False)


def test_popqa(tmp_path):
    write_popqa(tmp_path)
    read = read_dataset("popqa", tmp_path)
    right = [("P106", "Ada Lovelace", "mathematician"), ("P106", "Alan", '"Turing" man')]
    assert triples(read) == right and read.facts["fact"][0] == "P106:Q7259:Q170790"
    about = read.entities.set_index("entity")
    assert about["aliases"]["Q170790"] == ("maths scholar",)
    # page views, as they are
    assert about.loc[["Q7259", "Q170790"], "popularity"].tolist() == [5, 6]
    assert templates(read, "question") == ["What is [X]'s occupation?"]  # of both


def test_lama_and_pararel(tmp_path):
    """A file per relation, templates in files of their own."""
    born = {"sub_uri": "Q7", "sub_label": "Jane", "obj_uri": "Q90", "obj_label": "Paris"}
    lines(tmp_path / "TREx" / "P19.jsonl", born, born | {"sub_uri": "Q8", "obj_label": "Paname"})
    twins = {"relation": "P190", "template": "[X] and [Y] are twin cities .", "label": "twin"}
    about = {"relation": "P19", "template": "[X] was born in [Y] .", "label": "place of birth"}
    lines(tmp_path / "relations.jsonl", about, twins)
    read = read_dataset("lama", tmp_path)
    assert read.facts["object"].tolist() == ["Q90", "Q90:Paname"]
    assert read.relations["name"].tolist() == ["place of birth"]
    assert templates(read, "cloze") == ["[X] was born in"]
    row = {"sub_label": "a", "obj_label": "b"}
    for relation in ("P36", "P9"):
        lines(tmp_path / "trex_lms_vocab" / f"{relation}.jsonl", row)
    patterns = [{"pattern": "[X]'s capital, [Y]."}, {"pattern": "[Y] rules [X]."}]
    lines(tmp_path / "pattern_data" / "graphs_json" / "P36.jsonl", *patterns)
    read = read_dataset("pararel", tmp_path)
    assert triples(read) == [("P9", "a", "b"), ("P36", "a", "b")]
    assert templates(read, "statement") == ["[X]'s capital, [Y].", "[Y] rules [X]."]
    with pytest.raises(ProbeError, match="no file .* for P37 there; found: P36.jsonl, P9.jsonl"):
        read_dataset("pararel", tmp_path, ["P37"])


def test_counterfact_myriadlama_kamel_and_mlama(tmp_path):
    target = {"str": "French", "id": "Q150"}
    row = {"prompt": "The mother tongue of {} is", "relation_id": "P103", "subject": "Ada"}
    row = {"requested_rewrite": row | {"target_true": target, "target_new": target}}
    (tmp_path / "counterfact.json").write_text(json.dumps([row]))
    read = read_dataset("counterfact", tmp_path)
    assert templates(read, "cloze") == ["The mother tongue of [X] is"]
    (tmp_path / "data").mkdir()
    pd.DataFrame([row]).to_parquet(tmp_path / "data" / "train.parquet")
    assert read.digest() == read_dataset("counterfact_hub", tmp_path).digest()
    row = {"rel_uri": "P190", "sub_ent": "Bonn", "obj_uris": ["Q1", "Q2"], "is_manual": True}
    row |= {"obj_ents": ["Opole", "Tel Aviv"], "obj_aliases": ["Oppeln"]}
    texts = ["[X] is a twin city of [Y].", "[X] and [Y] are twins."]
    rows = [row | {"template": text} for text in texts]
    (tmp_path / "m").mkdir()
    pd.DataFrame([*rows, row | {"template": "no [X]", "is_manual": False}]).to_parquet(
        tmp_path / "m" / "train.parquet"
    )
    read = read_dataset("myriadlama", tmp_path / "m")
    assert triples(read) == [("P190", "Bonn", "Opole"), ("P190", "Bonn", "Tel Aviv")]
    assert templates(read, "statement") == texts
    assert not read.entities.set_index("entity")["aliases"]["Q1"]  # nobody says of which object
    row = {"sub_label": "Seán Keane", "obj_label": ["fiddle", "tin whistle"]}
    lines(tmp_path / "P1303" / "test.jsonl", row)
    assert read_dataset("kamel", tmp_path).relations["functional"].tolist() == [False]
    row = {"obj_uri": "Q142", "obj_label": "France", "sub_uri": "Q1", "sub_label": "President"}
    row |= {"template": "[X] is a legal term in [Y].", "language": "en", "predicate_id": "P1001"}
    (tmp_path / "all" / "test").mkdir(parents=True)
    rows = [row | {"language": "de", "obj_label": "Frankreich"}, row]
    pd.DataFrame(rows).to_parquet(tmp_path / "all" / "test" / "0000.parquet")
    assert triples(read_dataset("mlama", tmp_path)) == [("P1001", "President", "France")]


def test_zsre_and_triviaqa(tmp_path):
    """zsRE has a relation per question; one that does not name its subject is left out."""
    asked = [("Ada", "Where did Ada study?"), ("Bob", "Where did Bob study?"), ("X", "Who is it?")]
    rows = [{"subject": s, "src": question, "answers": [f"answer {s}"]} for s, question in asked]
    (tmp_path / "zsre_mend_eval.json").write_text(json.dumps(rows))
    with pytest.warns(UserWarning, match="eval.json:3: 1 rows have a text that does not name"):
        read = read_dataset("zsre", tmp_path)
    question = "Where did [X] study?"
    assert [fact[:2] for fact in triples(read)] == [(question, "Ada"), (question, "Bob")]
    (tmp_path / "rc.nocontext").mkdir()
    row = {"question": "Who?", "answer": {"value": "Ada", "aliases": ["Ada", "Lady Lovelace"]}}
    path = tmp_path / "rc.nocontext" / "validation-00000-of-00001.parquet"
    pd.DataFrame([row]).to_parquet(path)
    read = read_dataset("triviaqa", tmp_path)
    assert triples(read) == [("question", "Who?", "Ada")]
    assert read.entities["aliases"][0] == ("Lady Lovelace",)


def test_questions_without_relations_are_for_monitor_alone(tmp_path):
    """Nothing says which answers to other questions are plausible: no multiple choice, no lists."""
    rows = [{"problem": f"Who won in {y}?", "answer": f"Ada {y}"} for y in (2008, 2009, 2010)]
    pd.DataFrame(rows).to_csv(tmp_path / "simple_qa_test_set.csv", index=False)
    whole = facts.load("simpleqa", tmp_path, n_facts="all")
    assert triples(whole)[0] == ("question", "Who won in 2008?", "Ada 2008")
    assert len(prompts.with_contexts(whole))
    assert templates(whole, "question")[:2] == ["[X]", "Question: [X]"]
    for refused in (
        lambda: facts.multiple_choice("simpleqa", tmp_path),
        lambda: prompts.sample_examples(whole, n=2),
    ):
        with pytest.raises(ProbeError, match="has questions without relations.*--only monitor"):
            refused()
    formats.require_relations(facts.load(n_facts=1))


# The Hub


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """A cache of its own, and no network."""
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    return tmp_path


def snapshot(folder, repo: str):
    """A snapshot in a cache of the Hub, as huggingface_hub lays it out."""
    home = folder / f"datasets--{repo.replace('/', '--')}"
    place = home / "snapshots" / ("0123456789abcdef" * 2 + "01234567")
    place.mkdir(parents=True)
    (home / "refs").mkdir()
    (home / "refs" / "main").write_text(place.name)
    return place


def test_the_hub(cache):
    write_popqa(snapshot(cache, "akariasai/PopQA"))
    read = facts.load("hub:akariasai/PopQA", n_facts="all")
    assert read.source == "hub:akariasai/PopQA@0123456789ab" and len(read.facts) == 2
    own, data = snapshot(cache, "me/capitals"), "hub:me/capitals?subject:s,object:o,relation:=P36"
    (own / "train.csv").write_text("s,o\nFrance,Paris\nPeru,Lima\n")
    assert triples(facts.load(data, n_facts="all"))[1] == ("P36", "Peru", "Lima")
    (own / "more.jsonl").write_text("{}")
    with pytest.raises(ProbeError, match="its tables are more.jsonl, train.csv; name one or a"):
        facts.load(data)
    assert len(facts.load(data.replace("?", "/train.csv?"), n_facts="all").facts) == 2


@pytest.mark.parametrize(
    ("data", "folder", "says"),
    [
        ("hub:nobody/nothing", None, "nothing@main cannot be downloaded.*data=table folder=FILE"),
        ("hub:PopQA", None, "hub:OWNER/NAME is expected"),
        ("hub:a/b", "here", "folder='here': hub:a/b is downloaded and"),
        ("popqb", "here", "unknown data 'popqb'; did you mean popqa"),
        ("popqa", "here", "here: no such folder"),
        ("popqa?subject:s", "here", "columns are for data=table"),
        ("table?subject", "here.csv", "columns: 'subject'; write subject:s"),
        ("mine.csv", None, "data='mine.csv' looks like a path"),
        ("bear", None, "data='bear' needs folder="),
    ],
)
def test_what_cannot_be_loaded_says_so(cache, data, folder, says):
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
