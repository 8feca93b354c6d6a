"""Published data sets in their own columns, from a folder and from a cache of the Hugging Face Hub."""

import json

import pandas as pd
import pytest

from probelib import beyond, facts, prompts
from probelib.distractors import retrieval
from probelib.errors import ProbeError
from probelib.facts.formats import datasets
from tests.facts.formats import test_bear

POPQA = {
    "id": 1,
    "subj": "Ada Lovelace",
    "prop": "occupation",
    "obj": "mathematician",
    "subj_id": 7,
    "prop_id": 22,
    "obj_id": 9,
}
POPQA |= {
    "s_aliases": '["Ada King"]',
    "o_aliases": '["maths scholar", "mathematical scientist"]',
    "s_pop": 5,
    "o_pop": 6,
}
POPQA |= {"s_uri": "http://www.wikidata.org/entity/Q7259", "o_uri": "http://www.wikidata.org/entity/Q170790"}
POPQA |= {"question": "What is Ada Lovelace's occupation?", "possible_answers": '["mathematician", "maths scholar"]'}


def counterfact(subject: str, prompt: str, true: str, relation: str = "P103") -> dict:
    target = {"str": true, "id": f"Q{len(true)}"}
    rewrite = {
        "prompt": prompt,
        "relation_id": relation,
        "subject": subject,
        "target_true": target,
        "target_new": target,
    }
    return {"case_id": 0, "pararel_idx": 1, "requested_rewrite": rewrite, "paraphrase_prompts": ["..."]}


def lines(path, *rows: dict):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))


def told(read) -> list[tuple]:
    rows = read.facts
    return list(zip(rows["relation"], read.label(rows["subject"]), read.label(rows["object"]), strict=True))


def templates(read, role: str) -> list[str]:
    return read.templates.loc[read.templates["role"] == role, "template"].tolist()


def write_popqa(folder):
    other = POPQA | {
        "subj": "Alan",
        "s_uri": POPQA["s_uri"] + "1",
        "question": "What is Alan's occupation?",
        "obj": '"Turing" man',
    }
    pd.DataFrame([POPQA, other | {"o_uri": POPQA["o_uri"] + "1"}]).to_csv(folder / "test.tsv", sep="\t", index=False)


def test_popqa(tmp_path):
    write_popqa(tmp_path)
    read = datasets.read_dataset("popqa", tmp_path)
    assert told(read) == [("P106", "Ada Lovelace", "mathematician"), ("P106", "Alan", '"Turing" man')]
    assert read.facts["fact"][0] == "P106:Q7259:Q170790" and read.relations["name"].tolist() == ["occupation"]
    aliases = read.entities.set_index("entity")["aliases"]
    assert aliases["Q170790"] == ("maths scholar", "mathematical scientist") and aliases["Q7259"] == ("Ada King",)
    assert templates(read, "question") == ["What is [X]'s occupation?"]  # of both


def test_counterfact_as_json_and_as_parquet(tmp_path):
    prompt = "The mother tongue of {} is"
    rows = [counterfact("Danielle", prompt, "French"), counterfact("Thomas", prompt, "English")]
    (tmp_path / "counterfact.json").write_text(json.dumps(rows))
    (tmp_path / "data").mkdir()
    pd.DataFrame(rows).to_parquet(tmp_path / "data" / "train.parquet")
    read = datasets.read_dataset("counterfact", tmp_path)
    assert told(read) == [("P103", "Danielle", "French"), ("P103", "Thomas", "English")]
    assert templates(read, "cloze") == ["The mother tongue of [X] is"]
    assert templates(read, "statement") == ["The mother tongue of [X] is [Y]."]
    assert read.digest() == datasets.read_dataset("counterfact_hub", tmp_path).digest()
    loaded = facts.load("counterfact", tmp_path, n_facts="all")  # relations of the atlas get its questions
    assert "question" in set(loaded.templates["role"]) and len(loaded.distractors) == 2


def test_pararel(tmp_path):
    lines(tmp_path / "trex_lms_vocab" / "P36.jsonl", {"sub_label": "France", "obj_label": "Paris", "uuid": "u"})
    lines(tmp_path / "trex_lms_vocab" / "P9.jsonl", {"sub_label": "a", "obj_label": "b"})
    pattern = {"pattern": "[X]'s capital, [Y].", "lemma": "capital", "extended_lemma": "capital", "tense": "present"}
    lines(tmp_path / "pattern_data" / "graphs_json" / "P36.jsonl", pattern, pattern | {"pattern": "[Y] rules [X]."})
    read = datasets.read_dataset("pararel", tmp_path)
    assert told(read) == [("P9", "a", "b"), ("P36", "France", "Paris")]
    assert templates(read, "statement") == ["[X]'s capital, [Y].", "[Y] rules [X]."]
    assert templates(read, "cloze") == ["[X]'s capital,"]
    assert told(datasets.read_dataset("pararel", tmp_path, ["P36"])) == [("P36", "France", "Paris")]
    with pytest.raises(ProbeError, match="unknown relation of .*'P37'; did you mean"):
        datasets.read_dataset("pararel", tmp_path, ["P37"])


def test_myriadlama(tmp_path):
    row = {
        "uuid": "u",
        "rel_uri": "P190",
        "sub_ent": "Bonn",
        "obj_uris": ["Q1", "Q2"],
        "obj_ents": ["Opole", "Tel Aviv"],
    }
    row |= {"obj_aliases": ["Oppeln"], "template": "[X] is a twin city of [Y].", "is_manual": True}
    rows = [row, row | {"template": "[X] and [Y] are twins."}, row | {"template": "no [X] nor [Y]", "is_manual": False}]
    pd.DataFrame(rows).to_parquet(tmp_path / "train.parquet")
    read = datasets.read_dataset("myriadlama", tmp_path)
    assert told(read) == [("P190", "Bonn", "Opole"), ("P190", "Bonn", "Tel Aviv")]
    assert templates(read, "statement") == ["[X] is a twin city of [Y].", "[X] and [Y] are twins."]
    assert not read.entities.set_index("entity")["aliases"]["Q1"]  # nobody says of which object


def test_kamel(tmp_path):
    row = {"index": [2346, 6913], "sub_label": "Seán Keane", "obj_label": ["fiddle", "tin whistle"]}
    lines(tmp_path / "P1303" / "test.jsonl", row)
    lines(tmp_path / "P1303" / "train.jsonl", row | {"sub_label": "not read"})
    read = datasets.read_dataset("kamel", tmp_path)
    assert told(read) == [("P1303", "Seán Keane", "fiddle"), ("P1303", "Seán Keane", "tin whistle")]
    assert read.relations["functional"].tolist() == [False]


def test_mlama_in_one_language(tmp_path):
    row = {
        "uuid": "u",
        "lineid": 0,
        "obj_uri": "Q142",
        "obj_label": "France",
        "sub_uri": "Q191954",
        "sub_label": "President",
    }
    row |= {"template": "[X] is a legal term in [Y].", "language": "en", "predicate_id": "P1001"}
    other = {"language": "de", "obj_label": "Frankreich", "template": "[X] ist ein Rechtsbegriff in [Y]."}
    (tmp_path / "all" / "test").mkdir(parents=True)
    pd.DataFrame([row | other, row]).to_parquet(tmp_path / "all" / "test" / "0000.parquet")
    read = datasets.read_dataset("mlama", tmp_path)
    assert told(read) == [("P1001", "President", "France")]
    assert templates(read, "statement") == ["[X] is a legal term in [Y]."]


def test_zsre_has_a_relation_per_question(tmp_path):
    row = lambda subject, question, *answers: {
        "subject": subject,
        "src": question,
        "answers": list(answers),
        "loc": "nq ...",
    }
    rows = [
        row("Watts Humphrey", "What university did Watts Humphrey attend?", "Illinois Institute of Technology"),
        row("Ada", "What university did Ada attend?", "none"),
        row("Ramalinaceae", "Which family does it belong to?", "Lecanorales"),  # does not name its subject
    ]
    (tmp_path / "zsre_mend_eval.json").write_text(json.dumps(rows))
    with pytest.warns(UserWarning, match="zsre_mend_eval.json:3: 1 rows have a text that does not name its subject"):
        read = datasets.read_dataset("zsre", tmp_path)
    question = "What university did [X] attend?"
    assert [fact[:2] for fact in told(read)] == [(question, "Watts Humphrey"), (question, "Ada")]
    assert templates(read, "question") == [question]


def test_questions_without_relations(tmp_path):
    row = {"metadata": "{'topic': 'x'}", "problem": "Who won, in 2010?", "answer": "Michio Sugeno"}
    pd.DataFrame([row, row | {"problem": "Who?", "answer": "Ada"}]).to_csv(
        tmp_path / "simple_qa_test_set.csv", index=False
    )
    read = facts.load("simpleqa", tmp_path, n_facts="all", n_distractors=1)
    assert told(read)[0] == ("question", "Who won, in 2010?", "Michio Sugeno")
    assert templates(read, "question")[:2] == ["[X]", "Question: [X]"] and len(read.distractors) == 2
    answer = {"value": "Ada", "aliases": ["Ada", "Lady Lovelace"], "type": "WikipediaEntity"}
    (tmp_path / "rc.nocontext").mkdir()
    pd.DataFrame([{"question": "Who?", "question_id": "tc_1", "answer": answer}]).to_parquet(
        tmp_path / "rc.nocontext" / "validation-00000-of-00001.parquet"
    )
    read = datasets.read_dataset("triviaqa", tmp_path)
    assert told(read) == [("question", "Who?", "Ada")]
    assert read.entities["aliases"][0] == ("Lady Lovelace",)


@pytest.mark.parametrize("source", ["simpleqa", "hub:basicv8vc/SimpleQA"])
def test_questions_without_relations_are_for_monitor_alone(tmp_path, monkeypatch, source):
    """Nothing says which answers to other questions are plausible: no multiple choice, no lists, no distractors."""
    rows = [
        {"problem": f"Who won in {year}?", "answer": name} for year, name in ((2008, "Ada"), (2009, "Bo"), (2010, "Cy"))
    ]
    pd.DataFrame(rows).to_csv(tmp_path / "simple_qa_test_set.csv", index=False)
    monkeypatch.setattr(datasets, "_download", lambda *_: tmp_path)
    data = (source, tmp_path if source == "simpleqa" else None)
    whole = facts.load(*data, n_facts="all")
    assert len(prompts.with_contexts(whole))  # MONITOR's prompts
    for refused in (
        lambda: facts.multiple_choice(*data),
        lambda: prompts.sample_examples(whole, n=2),
        lambda: retrieval.knowledge(facts.everything(*data)),
        lambda: beyond.load_questions(*data),
    ):
        with pytest.raises(ProbeError, match="has questions without relations.*--only monitor.*popqa"):
            refused()
    datasets.require_relations(facts.load(n_facts=1))


@pytest.mark.parametrize("kind", ["csv", "tsv", "json", "jsonl", "parquet"])
def test_columns_of_a_table_of_ones_own(tmp_path, kind):
    frame = pd.DataFrame({"s": ["France", "Peru"], "prop": ["P36", "P36"], "o": ["Paris", "Lima"], "also": ["a|b", ""]})
    path = tmp_path / f"mine.{kind}"
    if kind in ("csv", "tsv"):
        frame.to_csv(path, index=False, sep="\t" if kind == "tsv" else ",")
    elif kind == "parquet":
        frame.to_parquet(path)
    else:
        frame.to_json(path, orient="records", lines=kind == "jsonl")
    read = facts.load("table?subject:s,relation:prop,object:o,object_aliases:also", path, n_facts="all")
    assert told(read) == [("P36", "France", "Paris"), ("P36", "Peru", "Lima")]
    assert read.entities.set_index("label")["aliases"]["Paris"] == ("a", "b")
    assert told(facts.load("table?subject:s,relation:=P36,object:o,prop:=p36", path, n_facts="all")) == told(read)


def hub(folder, repo: str):
    """A snapshot in a cache of the Hub, as huggingface_hub lays it out."""
    home = folder / f"datasets--{repo.replace('/', '--')}"
    snapshot = home / "snapshots" / ("0123456789abcdef" * 2 + "01234567")
    snapshot.mkdir(parents=True)
    (home / "refs").mkdir()
    (home / "refs" / "main").write_text(snapshot.name)
    return snapshot


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """A cache of its own, and no network."""
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    return tmp_path


def test_the_hub(cache):
    write_popqa(hub(cache, "akariasai/PopQA"))
    read = facts.load("hub:akariasai/PopQA", n_facts="all")
    assert read.source == "hub:akariasai/PopQA@0123456789ab" and len(read.facts) == 2
    own = hub(cache, "me/capitals")
    pd.DataFrame({"s": ["France", "Peru"], "o": ["Paris", "Lima"]}).to_csv(own / "train.csv", index=False)
    assert told(facts.load("hub:me/capitals?subject:s,object:o,relation:=P36", n_facts="all"))[1] == (
        "P36",
        "Peru",
        "Lima",
    )
    (own / "more.jsonl").write_text("{}")
    with pytest.raises(ProbeError, match="its tables are more.jsonl, train.csv; name one or a pattern"):
        facts.load("hub:me/capitals?subject:s,object:o,relation:=P36")
    named = "hub:me/capitals/train.csv?subject:s,object:o,relation:=P36"
    assert len(facts.load(named, n_facts="all").facts) == 2


def test_bear_on_the_hub(cache):
    """As lm-pub-quiz lays it out, one folder per edition."""
    snapshot = hub(cache, "lm-pub-quiz/BEAR")
    for edition in ("BEAR", "BEAR-big"):
        lines(snapshot / edition / "P36.jsonl", test_bear.FRANCE, test_bear.ITALY)
        (snapshot / edition / "metadata_relations.json").write_text(json.dumps({"P36": test_bear.P36}))
    read = facts.load("hub:lm-pub-quiz/BEAR/BEAR-big", n_facts="all")
    assert told(read) == [("P36", "France", "Paris"), ("P36", "Italy", "Rome")] and len(read.distractors) == 4
    with pytest.raises(ProbeError, match="holds BEAR, BEAR-big: name one, as in hub:lm-pub-quiz/BEAR/BEAR"):
        facts.load("hub:lm-pub-quiz/BEAR")


@pytest.mark.parametrize(
    ("data", "folder", "says"),
    [
        ("hub:nobody/nothing", None, "hub:nobody/nothing@main cannot be downloaded.*data=table folder=FILE columns="),
        ("hub:akariasai/PopQA", None, r"cannot be downloaded: [^.].*[^.]\. Check the name.*data=popqa folder=FOLDER"),
        ("hub:PopQA", None, "hub:OWNER/NAME is expected"),
        ("hub:a/b", "here", "folder='here' is for files of your own"),
        ("popqb", "here", "unknown data 'popqb'; did you mean popqa"),
        ("popqa", "here", "here: no file test.tsv there"),
        ("popqa?subject:s", "here", "columns are for data=table"),
        ("table?subject", "here.csv", "'subject' names no column; write subject:s"),
        ("table?subjekt:s", "here.csv", "columns names \\['subjekt'\\]"),
    ],
)
def test_what_cannot_be_read_says_so(cache, data, folder, says):
    with pytest.raises(ProbeError, match=says):
        facts.load(data, folder)
