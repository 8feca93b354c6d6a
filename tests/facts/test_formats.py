"""Published data sets in their own columns, from a folder and from a cache of the Hugging Face Hub;
BEAR's scores."""

import contextlib
import json
import shutil

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from probelib import beyond, facts, prompts
from probelib.distractors import retrieval
from probelib.errors import ProbeError
from probelib.facts import formats
from probelib.facts.formats import (
    RESULTS,
    read_bear,
    read_bear_results,
    read_dataset,
    read_fktc,
    read_lama,
    read_pageviews,
    read_trex_mc,
)
from tests.facts import hostile
from tests.facts.test_table import triples

HEADER = {
    "relations": [
        "What language is the official language of [X]?",
        "What does [X] officially speak?",
    ]
}
HAITI = {"subject": "Haiti", "object": "French"}
HAITI |= {"taxonomy": ["Welsh", "Russian", "Irish", "Finnish", "Hawaiian"]}
BORN = {
    "sub_uri": "Q462046",
    "sub_label": "Allan Peiper",
    "obj_uri": "Q3133",
    "obj_label": "Alexandra",
}
BORN |= {
    "predicate_id": "P19",
    "uuid": "d4f11631",
    "evidences": [{"masked_sentence": "He was born in [MASK]."}],
}
JANE = BORN | {"sub_uri": "Q7", "sub_label": "Jane Doe", "obj_uri": "Q90", "obj_label": "Paris"}
LAMA = [
    {"relation": "P19", "template": "[X] was born in [Y] .", "label": "place of birth"},
    {
        "relation": "P190",
        "template": "[X] and [Y] are twin cities .",
        "label": "twin",
        "type": "N-M",
    },
]
P36 = {
    "templates": ["The capital of [X] is [Y].", "[Y] serves as the capital of [X]."],
    "answer_space_labels": ["Paris", "Rome", "Oslo"],
    "answer_space_ids": ["Q90", "Q220", "Q585"],
}
FRANCE = {
    "sub_id": "Q142",
    "sub_label": "France",
    "sub_aliases": ["French Republic"],
    "obj_id": "Q90",
}
FRANCE |= {"obj_label": "Paris", "answer_idx": 0}
ITALY = {"sub_id": "Q38", "sub_label": "Italy", "obj_id": "Q220", "obj_label": "Rome"}
RUN = {"model_name_or_path": "gpt2", "reduction": "sum", "template_index": 1}
SCORES = {"instance": 3, "sub_id": "Q142", "sub_label": "France", "answer_idx": 0}
SCORES |= {"pll_scores": [-2.5, -3, -4.25]}
MORE = SCORES | {"instance": 7, "sub_id": "Q38", "sub_label": "Italy", "answer_idx": 1}
POPQA = {
    "subj": "Ada Lovelace",
    "prop": "occupation",
    "obj": "mathematician",
    "s_pop": 5,
    "o_pop": 6,
}
POPQA |= {"s_aliases": '["Ada King"]', "o_aliases": '["maths scholar", "mathematical scientist"]'}
POPQA |= {
    "s_uri": "http://www.wikidata.org/entity/Q7259",
    "o_uri": "http://www.wikidata.org/entity/Q170790",
}
POPQA |= {"question": "What is Ada Lovelace's occupation?", "possible_answers": '["mathematician"]'}


def lines(path, *rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    return path


def write(folder, *rows, name="P37-subclass.json"):
    """A file of FKTC."""
    return lines(folder / name, *rows).parent


def write_lama(folder, *rows, relations=LAMA, name="P19.jsonl"):
    lines(folder / "relations.jsonl", *relations)
    return lines(folder / "TREx" / name, *rows).parent.parent


def write_bear(folder, *rows, about=P36):
    lines(folder / "metadata_relations.json", {"P36": about})
    return lines(folder / "P36.jsonl", *rows).parent


def write_scores(folder, *rows, run=RUN):
    lines(folder / "metadata_results.json", {"P36": P36 | run})
    return lines(folder / "P36_results.jsonl", *rows).parent


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


def test_lama_by_hand(tmp_path):
    """A repeated fact gets its line; an id with two labels is two entities."""
    rows = [
        BORN,
        JANE,
        JANE | {"uuid": "x"},
        JANE | {"sub_uri": "Q8", "obj_label": "City of Paris"},
    ]
    read = read_lama(write_lama(tmp_path, *rows))
    ids = ["P19:Q462046:Q3133", "P19:Q7:Q90", "P19:Q7:Q90:line3", "P19:Q8:Q90"]
    assert read.facts["fact"].tolist() == ids
    assert read.facts["object"].tolist() == ["Q3133", "Q90", "Q90", "Q90:City of Paris"]
    assert read.relations[["relation", "name", "functional"]].values.tolist() == [
        ["P19", "place of birth", True]
    ]
    assert templates(read, "cloze") == ["[X] was born in"]
    assert templates(read, "statement") == ["[X] was born in [Y] ."]
    assert hostile.same(read, read_lama(tmp_path / "TREx"))  # the folder of the facts will do
    twins = read_lama(
        write_lama(tmp_path / "b", JANE | {"predicate_id": "P190"}, name="P190.jsonl")
    )
    assert twins.templates["role"].tolist() == ["statement"]  # its object is inside


def test_bear_by_hand(tmp_path):
    """Other members of the answer space are distractors, but not one of the same name."""
    read = read_bear(write_bear(tmp_path, FRANCE, ITALY))
    assert read.facts["fact"].tolist() == ["P36:Q142:Q90", "P36:Q38:Q220"]
    assert read.distractors["object"].tolist() == ["Q220", "Q585", "Q90", "Q585"]
    assert templates(read, "statement") == P36["templates"] and templates(read, "cloze") == [
        "The capital of [X] is"
    ]
    assert read.entities.set_index("entity").loc["Q142", "aliases"] == ("French Republic",)
    twice = P36 | {"answer_space_labels": ["Paris", "Rome", "Paris"]}
    folder = write_bear(tmp_path, FRANCE, ITALY, about=twice)
    with pytest.warns(UserWarning, match="1 of 4 named distractors are right answers"):
        assert facts.load("bear", folder).distractors["object"].tolist() == ["Q220", "Q90", "Q585"]


def trex(subject="France", obj="Paris", wrong=("Rome",), number=50, name="capital") -> dict:
    wrong = wrong if isinstance(wrong, str) else repr(list(wrong))
    row = {"Relation_ID": number, "Relation Name": name, "Subject": subject, "Object": obj}
    return row | {"Multiple Choices": wrong, "Title": "a page"}


def write_trex(folder, *test, names={"50": ["P36", "capital"]}):  # noqa: B006
    for split, rows in (("train", [trex("Italy", "Rome", ["Oslo"])]), ("test", test)):
        pd.DataFrame(list(rows)).to_parquet(folder / f"{split}-00000-of-00001.parquet")
    return lines(folder / "relationID_names.json", names).parent


def test_trex_mc_by_hand(tmp_path):
    folder = write_trex(
        tmp_path, trex(), trex("Peru", "Lima", ["Quito", " Cusco ", "Lima", "Quito"])
    )
    read = read_trex_mc(folder)
    assert read.facts["fact"].tolist() == ["P36:France:Paris", "P36:Peru:Lima"]
    assert read.distractors["object"].tolist() == ["Rome", "Quito", "Cusco"]
    assert read.relations["name"].tolist() == ["capital"] and read.source == "trex-mc:test"
    tested, pool = facts.multiple_choice("trex_mc", folder, n_facts="all")
    assert len(tested.facts) == 2 and pool.facts["fact"].tolist() == ["P36:Italy:Rome"]
    (folder / "relationID_names.json").unlink()
    assert read_trex_mc(folder).facts["relation"].tolist() == ["capital", "capital"]


@pytest.mark.parametrize(
    "text", ["", "[", "[1]", "('a',)", "['']", "__import__('os')", "[" * 5000, "['\\ud800']"]
)
def test_a_list_that_cannot_be_read_leaves_no_distractors(tmp_path, text):
    assert read_trex_mc(write_trex(tmp_path, trex(wrong=text))).distractors.empty


fktc_row = lambda **change: lambda f: read_fktc(write(f, HEADER, HAITI, HAITI | change))
lama_row = lambda **change: lambda f: read_lama(write_lama(f, BORN, JANE | change))
bear_row = lambda **change: lambda f: read_bear(write_bear(f, ITALY, FRANCE | change))
trex_row = lambda **change: lambda f: read_trex_mc(write_trex(f, trex(), trex(**change)))
trex_names = lambda names: lambda f: read_trex_mc(write_trex(f, trex(), names=names))
scores_row = lambda **change: lambda f: read_bear_results(write_scores(f, MORE, SCORES | change))
scores_run = lambda **change: lambda f: read_bear_results(write_scores(f, MORE, run=RUN | change))


@pytest.mark.parametrize(
    ("read", "says"),
    [
        (fktc_row(more=1), "P37-subclass.json:3: an object with exactly"),
        (fktc_row(subject=" "), "P37-subclass.json:3: an empty subject"),
        (fktc_row(subject=1), "P37-subclass.json:3: an object"),
        (fktc_row(taxonomy=["c", None]), ":3: taxonomy must be a list of non-empty texts"),
        (lambda f: read_fktc(f / "no"), "no such folder"),
        (lambda f: read_fktc(f), "no file {relation}-subclass.* there; found: none"),
        (lambda f: read_fktc(write(f, HAITI, HAITI)), ":1: an object with exactly relations"),
        (lambda f: read_fktc(write(f, HEADER)), "json:2: no facts after the header"),
        (lambda f: read_fktc(write(f, HEADER, HAITI), ["P1"]), "no file for P1;.*found: P37"),
        (lama_row(sub_label=" "), "P19.jsonl:2: an empty subject"),
        (lama_row(obj_uri=3), "P19.jsonl:2: an object with"),
        (lama_row(predicate_id="P20"), "P19.jsonl:2: a fact of relation P20"),
        (
            lambda f: read_lama(write_lama(f, BORN, name="P20.jsonl")),
            "unknown relation .*'P20'; did you mean",
        ),
        (
            lambda f: read_lama(write_lama(f, BORN, relations=LAMA + LAMA)),
            "relations.jsonl:3: relation P19 is",
        ),
        (bear_row(answer_idx=1), "P36.jsonl:2: .*is not number 1 of the answer space"),
        (bear_row(answer_idx=True), "is not number True"),
        (bear_row(obj_label="Lutetia"), "Q90 'Lutetia' is not number 0"),
        (bear_row(sub_aliases=["a", ""]), "sub_aliases must be a list of non-empty texts"),
        (
            lambda f: read_bear(write_bear(f, FRANCE), ["P37"]),
            "unknown relation .*'P37'; did you mean P36",
        ),
        (trex_row(subject=" "), "parquet:2: an empty subject"),
        (trex_row(obj=None), "parquet:2: an object with"),
        (trex_row(number=51), "unknown relation at .*parquet:2 51; did you mean 50"),
        (trex_names({"x": ["P36", "capital"]}), "relationID_names.json: 'x'"),
        (trex_names({"50": ["P36"]}), "relationID_names.json: '50'"),
        (lambda f: read_trex_mc(f), "one file test-"),
        (lambda f: read_trex_mc(f, "tset"), "unknown split 'tset'; did you mean test"),
        (scores_row(pll_scores=[-1, -2]), "results.jsonl:2: .*2 scores; the answer space has 3"),
        (scores_row(pll_scores=[-1, -2, 0.5]), "results.jsonl:2: 0.5 is not a log-probability"),
        (scores_row(pll_scores=[-1, -2, -(10**400)]), "is not a log-probability"),
        (scores_row(answer_idx=3), "results.jsonl:2: answer_idx 3"),
        (scores_row(instance=7), "results.jsonl:2: instance 7 is already in line 1"),
        (scores_run(reduction="mean"), "reduction 'mean'"),
        (scores_run(template_index=2), "template 3"),
        (scores_run(answer_space_ids=["Q90", "Q90", "Q1"]), "2 distinct ids of 3"),
        (scores_run(model_name_or_path=None), "metadata_results.json: P36: an object with"),
    ],
)
def test_what_is_wrong_is_named(tmp_path, read, says):
    with pytest.raises(ProbeError, match=says):
        read(tmp_path)


def test_bear_scores_by_hand(tmp_path):
    frame = read_bear_results(write_scores(tmp_path, SCORES, MORE))
    start = ["gpt2", "P36", 2, "P36:Q142:Q90", "Q142", "France", "Q90"]
    assert list(frame.columns) == RESULTS and len(frame) == 6
    assert frame.values.tolist()[:2] == [
        [*start, "Q90", "Paris", -2.5],
        [*start, "Q220", "Rome", -3.0],
    ]
    rows = [
        {key: value for key, value in row.items() if key != "instance"} for row in (SCORES, MORE)
    ]
    assert read_bear_results(write_scores(tmp_path, *rows)).equals(
        frame
    )  # some versions write none


FILES = {
    "P37-subclass.json": (read_fktc, lambda f: write(f, HEADER, HAITI), (HEADER, HAITI)),
    "TREx/P19.jsonl": (read_lama, lambda f: write_lama(f, BORN, JANE), (BORN, LAMA[0])),
    "relations.jsonl": (read_lama, lambda f: write_lama(f, BORN, JANE), (BORN, LAMA[0])),
    "P36.jsonl": (read_bear, lambda f: write_bear(f, FRANCE, ITALY), (FRANCE, P36)),
    "metadata_relations.json": (read_bear, lambda f: write_bear(f, FRANCE), (P36, {"P36": P36})),
    "P36_results.jsonl": (read_bear_results, lambda f: write_scores(f, SCORES, MORE), (SCORES,)),
    "metadata_results.json": (
        read_bear_results,
        lambda f: write_scores(f, SCORES),
        ({"P36": P36 | RUN},),
    ),
}


@pytest.mark.parametrize("kind", hostile.DAMAGE + hostile.HARMLESS)
@pytest.mark.parametrize("name", FILES)
def test_damaged_and_harmlessly_different_files(tmp_path, name, kind):
    read, make, _ = FILES[name]
    folder = make(tmp_path)
    right = read(folder)
    path = hostile.damage(folder / name, kind)
    if kind in hostile.HARMLESS and (path.suffix not in (".gz", ".bz2") or "P" in path.name):
        again = read(folder)
        assert (
            again.equals(right) if isinstance(right, pd.DataFrame) else hostile.same(again, right)
        )
    elif kind not in hostile.HARMLESS:
        with pytest.raises(ProbeError):
            read(folder)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", FILES)
@hostile.fuzz
@given(data=st.data())
def test_any_content_gives_facts_or_the_kits_own_error(tmp_path, name, data):
    read, make, rows = FILES[name]
    path = make(tmp_path) / name
    path.write_bytes(data.draw(hostile.json_lines(*rows)))
    with contextlib.suppress(ProbeError):
        read(tmp_path)


def test_the_real_fktc(fktc):
    """Counts of the released files; twelve lines name a right answer as a distractor."""
    read = read_fktc(fktc)
    sizes = {"P19": 944, "P101": 696, "P108": 383, "P159": 967, "P176": 982, "P264": 429}
    sizes |= {"P276": 959, "P364": 856, "P495": 909, "P1376": 234}
    assert read.facts.groupby("relation").size().to_dict() == sizes
    frames = read.templates.groupby("relation")["template"].agg(["size", "nunique"])
    assert frames.loc[["P101", "P264", "P276"]].values.tolist() == [[7, 6], [6, 6], [6, 6]]
    assert read.facts.duplicated(["relation", "subject", "object"]).sum() == 9 + 1 + 1
    assert (read.distractors.groupby("fact").size() == 5).all()
    with pytest.warns(UserWarning, match="13 of 36795 named distractors are right answers"):
        checked = facts.load("fktc", fktc, n_facts="all")
    released = facts.load("fktc", fktc, n_facts="all", released=True)
    assert len(released.distractors) - len(checked.distractors) == 13


def test_the_real_scores(gpt2, tmp_path):
    frame = read_bear_results(gpt2)
    assert (
        len(frame) == 107_604
        and frame["fact"].nunique() == 4_134
        and frame["relation"].nunique() == 30
    )
    assert set(frame["model"]) == {"gpt2"} and set(frame["template"]) == {1}
    best = frame.loc[frame.groupby("fact")["logprob"].idxmax()]
    right = (best["gold"] == best["candidate"]).groupby(best["relation"]).mean()
    assert right["P30"] == 94 / 150 and right["P36"] == 26 / 60
    assert right.mean() == pytest.approx(0.1542, abs=1e-4)
    one = read_bear_results(gpt2, ["P36"])
    assert one.equals(frame[frame["relation"] == "P36"].reset_index(drop=True))
    folder = shutil.copytree(gpt2, tmp_path / "copy")
    (folder / "P36_results.jsonl").unlink()
    with pytest.raises(ProbeError, match="no file for P36"):
        read_bear_results(folder)


# Data sets of datasets.yaml


def write_popqa(folder):
    other = {
        "subj": "Alan",
        "s_uri": POPQA["s_uri"] + "1",
        "question": "What is Alan's occupation?",
    }
    other |= {"obj": '"Turing" man', "o_uri": POPQA["o_uri"] + "1"}
    pd.DataFrame([POPQA, POPQA | other]).to_csv(folder / "test.tsv", sep="\t", index=False)


def test_popqa(tmp_path):
    write_popqa(tmp_path)
    read = read_dataset("popqa", tmp_path)
    assert triples(read) == [
        ("P106", "Ada Lovelace", "mathematician"),
        ("P106", "Alan", '"Turing" man'),
    ]
    assert read.facts["fact"][0] == "P106:Q7259:Q170790" and read.relations["name"].tolist() == [
        "occupation"
    ]
    about = read.entities.set_index("entity")
    assert about["aliases"]["Q170790"] == ("maths scholar", "mathematical scientist")
    assert about["aliases"]["Q7259"] == ("Ada King",)
    assert about.loc[["Q7259", "Q170790"], "popularity"].tolist() == [
        5,
        6,
    ]  # page views, as they are
    assert templates(read, "question") == ["What is [X]'s occupation?"]  # of both


def test_counterfact_as_json_and_as_parquet(tmp_path):
    rows = []
    for subject, true in (("Danielle", "French"), ("Thomas", "English")):
        target = {"str": true, "id": f"Q{len(true)}"}
        rewrite = {
            "prompt": "The mother tongue of {} is",
            "relation_id": "P103",
            "subject": subject,
        }
        rows.append(
            {
                "case_id": 0,
                "requested_rewrite": rewrite | {"target_true": target, "target_new": target},
            }
        )
    (tmp_path / "counterfact.json").write_text(json.dumps(rows))
    (tmp_path / "data").mkdir()
    pd.DataFrame(rows).to_parquet(tmp_path / "data" / "train.parquet")
    read = read_dataset("counterfact", tmp_path)
    assert triples(read) == [("P103", "Danielle", "French"), ("P103", "Thomas", "English")]
    assert templates(read, "cloze") == ["The mother tongue of [X] is"]
    assert templates(read, "statement") == ["The mother tongue of [X] is [Y]."]
    assert read.digest() == read_dataset("counterfact_hub", tmp_path).digest()


def test_pararel(tmp_path):
    lines(tmp_path / "trex_lms_vocab" / "P36.jsonl", {"sub_label": "France", "obj_label": "Paris"})
    lines(tmp_path / "trex_lms_vocab" / "P9.jsonl", {"sub_label": "a", "obj_label": "b"})
    patterns = [{"pattern": "[X]'s capital, [Y]."}, {"pattern": "[Y] rules [X]."}]
    lines(tmp_path / "pattern_data" / "graphs_json" / "P36.jsonl", *patterns)
    read = read_dataset("pararel", tmp_path)
    assert triples(read) == [("P9", "a", "b"), ("P36", "France", "Paris")]
    assert templates(read, "statement") == ["[X]'s capital, [Y].", "[Y] rules [X]."]
    assert triples(read_dataset("pararel", tmp_path, ["P36"])) == [("P36", "France", "Paris")]
    with pytest.raises(ProbeError, match="no file for P37;.*found: P36, P9"):
        read_dataset("pararel", tmp_path, ["P37"])


def test_myriadlama_kamel_and_mlama(tmp_path):
    row = {
        "rel_uri": "P190",
        "sub_ent": "Bonn",
        "obj_uris": ["Q1", "Q2"],
        "obj_ents": ["Opole", "Tel Aviv"],
    }
    row |= {"obj_aliases": ["Oppeln"], "template": "[X] is a twin city of [Y].", "is_manual": True}
    rows = [
        row,
        row | {"template": "[X] and [Y] are twins."},
        row | {"template": "no [X]", "is_manual": False},
    ]
    pd.DataFrame(rows).to_parquet(tmp_path / "train.parquet")
    read = read_dataset("myriadlama", tmp_path)
    assert triples(read) == [("P190", "Bonn", "Opole"), ("P190", "Bonn", "Tel Aviv")]
    assert templates(read, "statement") == ["[X] is a twin city of [Y].", "[X] and [Y] are twins."]
    assert not read.entities.set_index("entity")["aliases"]["Q1"]  # nobody says of which object
    row = {"index": [2346, 6913], "sub_label": "Seán Keane", "obj_label": ["fiddle", "tin whistle"]}
    lines(tmp_path / "P1303" / "test.jsonl", row)
    lines(tmp_path / "P1303" / "train.jsonl", row | {"sub_label": "not read"})
    read = read_dataset("kamel", tmp_path)
    assert triples(read) == [
        ("P1303", "Seán Keane", "fiddle"),
        ("P1303", "Seán Keane", "tin whistle"),
    ]
    assert read.relations["functional"].tolist() == [False]
    row = {"obj_uri": "Q142", "obj_label": "France", "sub_uri": "Q191954", "sub_label": "President"}
    row |= {"template": "[X] is a legal term in [Y].", "language": "en", "predicate_id": "P1001"}
    other = {
        "language": "de",
        "obj_label": "Frankreich",
        "template": "[X] ist ein Rechtsbegriff in [Y].",
    }
    (tmp_path / "all" / "test").mkdir(parents=True)
    pd.DataFrame([row | other, row]).to_parquet(tmp_path / "all" / "test" / "0000.parquet")
    read = read_dataset("mlama", tmp_path)
    assert triples(read) == [("P1001", "President", "France")]
    assert templates(read, "statement") == ["[X] is a legal term in [Y]."]


def test_zsre_has_a_relation_per_question(tmp_path):
    asked = [
        ("Watts Humphrey", "What university did Watts Humphrey attend?"),
        ("Ada", "What university did Ada attend?"),
        ("Ramalinaceae", "Which family does it belong to?"),  # does not name its subject
    ]
    rows = [{"subject": s, "src": question, "answers": [f"answer {s}"]} for s, question in asked]
    (tmp_path / "zsre_mend_eval.json").write_text(json.dumps(rows))
    with pytest.warns(
        UserWarning, match="zsre_mend_eval.json:3: 1 rows have a text that does not name"
    ):
        read = read_dataset("zsre", tmp_path)
    question = "What university did [X] attend?"
    assert [fact[:2] for fact in triples(read)] == [(question, "Watts Humphrey"), (question, "Ada")]
    assert templates(read, "question") == [question]


@pytest.mark.parametrize("source", ["simpleqa", "hub:basicv8vc/SimpleQA"])
def test_questions_without_relations_are_for_monitor_alone(tmp_path, monkeypatch, source):
    """Nothing says which answers to other questions are plausible: no multiple choice, no lists."""
    rows = [
        {"problem": f"Who won in {year}?", "answer": f"Ada {year}"} for year in (2008, 2009, 2010)
    ]
    pd.DataFrame(rows).to_csv(tmp_path / "simple_qa_test_set.csv", index=False)
    monkeypatch.setattr(formats, "_download", lambda *_: tmp_path)
    data = (source, tmp_path if source == "simpleqa" else None)
    whole = facts.load(*data, n_facts="all")
    assert triples(whole)[0] == ("question", "Who won in 2008?", "Ada 2008") and len(
        prompts.with_contexts(whole)
    )
    assert templates(whole, "question")[:2] == ["[X]", "Question: [X]"]
    for refused in (
        lambda: facts.multiple_choice(*data),
        lambda: prompts.sample_examples(whole, n=2),
        lambda: retrieval.knowledge(facts.everything(*data)),
        lambda: beyond.load_questions(*data),
    ):
        with pytest.raises(
            ProbeError, match="has questions without relations.*--only monitor.*popqa"
        ):
            refused()
    formats.require_relations(facts.load(n_facts=1))


def test_triviaqa(tmp_path):
    (tmp_path / "rc.nocontext").mkdir()
    answer = {"value": "Ada", "aliases": ["Ada", "Lady Lovelace"], "type": "WikipediaEntity"}
    path = tmp_path / "rc.nocontext" / "validation-00000-of-00001.parquet"
    pd.DataFrame([{"question": "Who?", "question_id": "tc_1", "answer": answer}]).to_parquet(path)
    read = read_dataset("triviaqa", tmp_path)
    assert triples(read) == [("question", "Who?", "Ada")] and read.entities["aliases"][0] == (
        "Lady Lovelace",
    )


# The Hub


def snapshot(folder, repo: str):
    """A snapshot in a cache of the Hub, as huggingface_hub lays it out."""
    home = folder / f"datasets--{repo.replace('/', '--')}"
    place = home / "snapshots" / ("0123456789abcdef" * 2 + "01234567")
    place.mkdir(parents=True)
    (home / "refs").mkdir()
    (home / "refs" / "main").write_text(place.name)
    return place


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """A cache of its own, and no network."""
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    return tmp_path


def test_the_hub(cache):
    write_popqa(snapshot(cache, "akariasai/PopQA"))
    read = facts.load("hub:akariasai/PopQA", n_facts="all")
    assert read.source == "hub:akariasai/PopQA@0123456789ab" and len(read.facts) == 2
    own, data = snapshot(cache, "me/capitals"), "hub:me/capitals?subject:s,object:o,relation:=P36"
    pd.DataFrame({"s": ["France", "Peru"], "o": ["Paris", "Lima"]}).to_csv(
        own / "train.csv", index=False
    )
    assert triples(facts.load(data, n_facts="all"))[1] == ("P36", "Peru", "Lima")
    (own / "more.jsonl").write_text("{}")
    with pytest.raises(
        ProbeError, match="its tables are more.jsonl, train.csv; name one or a pattern"
    ):
        facts.load(data)
    assert len(facts.load(data.replace("?", "/train.csv?"), n_facts="all").facts) == 2


def test_bear_on_the_hub(cache):
    """As lm-pub-quiz lays it out, one folder per edition."""
    home = snapshot(cache, "lm-pub-quiz/BEAR")
    for edition in ("BEAR", "BEAR-big"):
        write_bear(home / edition, FRANCE, ITALY)
    read = facts.load("hub:lm-pub-quiz/BEAR/BEAR-big", n_facts="all")
    assert triples(read) == [("P36", "France", "Paris"), ("P36", "Italy", "Rome")]
    with pytest.raises(
        ProbeError, match="holds BEAR, BEAR-big: name one, as in hub:lm-pub-quiz/BEAR/BEAR"
    ):
        facts.load("hub:lm-pub-quiz/BEAR")


@pytest.mark.parametrize(
    ("data", "folder", "says"),
    [
        (
            "hub:nobody/nothing",
            None,
            "nothing@main cannot be downloaded.*data=table folder=FILE columns=",
        ),
        (
            "hub:akariasai/PopQA",
            None,
            r"downloaded: [^.].*[^.]\. Check the name.*data=popqa folder=FOLDER",
        ),
        ("hub:PopQA", None, "hub:OWNER/NAME is expected"),
        ("hub:a/b", "here", "folder='here' is for your own files"),
        ("popqb", "here", "unknown data 'popqb'; did you mean popqa"),
        ("popqa", "here", "here: no such folder"),
        ("popqa?subject:s", "here", "columns are for data=table"),
        ("table?subject", "here.csv", "'subject' names no column; write subject:s"),
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
    assert read_pageviews(path).values.tolist() == [["Beyoncé", 120], ["AC/DC", 0]]
    for bad, says in (
        ('{"a": -1}', "'a': -1"),
        ('{"a": true}', "'a': True"),
        ('{" ": 1}', "' ': 1"),
    ):
        path.write_text(bad)
        with pytest.raises(ProbeError, match=says):
            read_pageviews(path)
