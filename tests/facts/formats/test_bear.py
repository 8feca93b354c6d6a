"""BEAR and lm-pub-quiz's results, on files of their form and on GPT-2's real scores."""

import contextlib
import json
import shutil

import pytest
from hypothesis import given

from probelib.errors import ProbeError
from probelib.facts.formats.bear import RESULTS, read_bear, read_bear_results
from tests.facts import hostile

P36 = {
    "templates": ["The capital of [X] is [Y].", "[Y] serves as the capital of [X]."],
    "answer_space_labels": ["Paris", "Rome", "Oslo"],
    "answer_space_ids": ["Q90", "Q220", "Q585"],
}
P27 = {
    "templates": ["[X] is a citizen of [Y]."],
    "answer_space_labels": ["the Philippines", "Italy"],
    "answer_space_ids": ["Q928", "Q38"],
}
FRANCE = {"sub_id": "Q142", "sub_label": "France", "sub_aliases": ["French Republic"], "obj_id": "Q90"}
FRANCE |= {"obj_label": "Paris", "answer_idx": 0}
ITALY = {
    "sub_id": "Q38",
    "sub_label": "Italy",
    "sub_aliases": [],
    "obj_id": "Q220",
    "obj_label": "Rome",
    "answer_idx": 1,
}
MANILA = FRANCE | {"sub_id": "Q928", "sub_label": "Philippines", "sub_aliases": []}
STAR = {"sub_id": "Q325136", "sub_label": "Charmane Star", "sub_aliases": [], "obj_id": "Q928"}
STAR |= {"obj_label": "the Philippines", "answer_idx": 0}

RUN = {"model_name_or_path": "gpt2", "reduction": "sum", "template_index": 1, "subsampled": None}
SCORES = {"instance": 3, "sub_id": "Q142", "sub_label": "France", "answer_idx": 0, "pll_scores": [-2.5, -3, -4.25]}
MORE = SCORES | {"instance": 7, "sub_id": "Q38", "sub_label": "Italy", "answer_idx": 1}


@pytest.fixture
def write(tmp_path):
    def lines(name, *rows):
        (tmp_path / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
        return tmp_path

    return lines


def test_facts_by_hand(write):
    write("metadata_relations.json", {"P27": P27, "P36": P36})
    write("P27.jsonl", STAR)
    read = read_bear(write("P36.jsonl", FRANCE, ITALY, MANILA))
    assert read.facts["fact"].tolist() == ["P27:Q325136:Q928", "P36:Q142:Q90", "P36:Q38:Q220", "P36:Q928:Q90"]
    assert read.distractors[read.distractors["fact"] == "P36:Q38:Q220"]["object"].tolist() == ["Q90", "Q585"]
    assert read.templates[["relation", "role", "number", "template"]].values.tolist() == [
        ["P27", "cloze", 1, "[X] is a citizen of"],
        ["P27", "statement", 1, "[X] is a citizen of [Y]."],
        ["P36", "cloze", 1, "The capital of [X] is"],
        ["P36", "statement", 1, "The capital of [X] is [Y]."],
        ["P36", "statement", 2, "[Y] serves as the capital of [X]."],
    ]
    entities = read.entities.set_index("entity")
    assert entities.loc["Q142", "aliases"] == ("French Republic",)
    assert read.label(read.facts["subject"]) == [
        "Charmane Star",
        "France",
        "Italy",
        "Philippines",
    ]  # not "the Philippines"
    assert entities.loc["Q928:Philippines", ["wikidata", "aliases"]].tolist() == ["Q928", ("the Philippines",)]


def test_one_relation_is_the_same_alone_and_a_missing_file_is_an_error(write):
    write("metadata_relations.json", {"P27": P27, "P36": P36})
    folder = write("P36.jsonl", FRANCE)
    assert read_bear(folder, ["P36"]).facts["fact"].tolist() == ["P36:Q142:Q90"]
    with pytest.raises(ProbeError, match="no file for P27"):
        read_bear(folder)
    with pytest.raises(ProbeError, match="unknown relation .*'P37'; did you mean P36 or P27"):
        read_bear(folder, ["P37"])


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"answer_idx": 1}, "is not number 1 of the answer space"),
        ({"answer_idx": 9}, "is not number 9"),
        ({"answer_idx": True}, "is not number True"),
        ({"obj_label": "Lutetia"}, "Q90 'Lutetia' is not number 0"),
        ({"sub_aliases": ["a", ""]}, "sub_aliases must be a list of non-empty texts"),
        ({"sub_label": ""}, "an empty sub_label"),
    ],
)
def test_a_bad_fact_is_named(write, change, says):
    write("metadata_relations.json", {"P36": P36})
    with pytest.raises(ProbeError, match=f"P36.jsonl:2: .*{says}"):
        read_bear(write("P36.jsonl", ITALY, FRANCE | change))


def test_results_by_hand(write):
    write("metadata_results.json", {"P36": P36 | RUN})
    frame = read_bear_results(write("P36_results.jsonl", SCORES, MORE))
    assert list(frame.columns) == RESULTS and len(frame) == 6
    start = ["gpt2", "P36", 2, "P36:Q142:Q90", "Q142", "France", "Q90"]
    assert frame.values.tolist()[:2] == [[*start, "Q90", "Paris", -2.5], [*start, "Q220", "Rome", -3.0]]
    best = frame.loc[frame.groupby("fact", sort=False)["logprob"].idxmax()]
    assert (best["candidate"] == best["gold"]).tolist() == [True, False]


@pytest.mark.parametrize(
    ("run", "row", "says"),
    [
        ({}, {"pll_scores": [-1, -2]}, "_results.jsonl:2: 2 scores for an answer space of 3"),
        ({}, {"pll_scores": [-1, -2, 0.5]}, "_results.jsonl:2: 0.5 is not a log-probability"),
        ({}, {"pll_scores": [-1, -2, "x"]}, "_results.jsonl:2: 'x' is not a log-probability"),
        ({}, {"pll_scores": [-1, -2, -(10**400)]}, "is not a log-probability"),
        ({}, {"answer_idx": 3}, "_results.jsonl:2: answer_idx 3; the answer space has 3"),
        ({}, {"instance": 7}, "_results.jsonl:2: instance 7 is already in line 1"),
        ({"reduction": "mean"}, {}, "P36 has reduction 'mean'"),
        ({"template_index": 2}, {}, "no template with index 2"),
        ({"answer_space_ids": ["Q90", "Q90", "Q1"]}, {}, "2 distinct ids of 3"),
        ({"answer_space_labels": ["Paris"]}, {}, "1 labels"),
        ({"model_name_or_path": None}, {}, "metadata_results.json: P36: an object with"),
    ],
)
def test_bad_results_are_named(write, run, row, says):
    write("metadata_results.json", {"P36": P36 | RUN | run})
    with pytest.raises(ProbeError, match=says):
        read_bear_results(write("P36_results.jsonl", MORE, SCORES | row))


@pytest.mark.parametrize("kind", hostile.DAMAGE)
@pytest.mark.parametrize("name", ["P36.jsonl", "metadata_relations.json", "P36_results.jsonl", "metadata_results.json"])
def test_damaged_files(write, name, kind):
    write("metadata_relations.json", {"P36": P36})
    write("metadata_results.json", {"P36": P36 | RUN})
    write("P36.jsonl", FRANCE)
    folder = write("P36_results.jsonl", SCORES)
    hostile.damage(folder / name, kind)
    with pytest.raises(ProbeError):
        (read_bear_results if "results" in name else read_bear)(folder)


@pytest.mark.parametrize("kind", hostile.HARMLESS)
def test_harmless_differences(write, kind):
    write("metadata_relations.json", {"P36": P36})
    folder = write("P36.jsonl", FRANCE, ITALY)
    right = read_bear(folder)
    hostile.damage(folder / "P36.jsonl", kind)
    assert hostile.same(read_bear(folder), right)


@pytest.mark.parametrize("name", ["P36.jsonl", "metadata_relations.json"])
@hostile.fuzz
@given(content=hostile.json_lines(FRANCE, P36, {"P36": P36}))
def test_any_content_gives_facts_or_the_kits_own_error(tmp_path, name, content):
    (tmp_path / "metadata_relations.json").write_text(json.dumps({"P36": P36}))
    (tmp_path / "P36.jsonl").write_text(json.dumps(FRANCE))
    (tmp_path / name).write_bytes(content)
    with contextlib.suppress(ProbeError):
        read_bear(tmp_path).digest()


@pytest.mark.parametrize("name", ["P36_results.jsonl", "metadata_results.json"])
@hostile.fuzz
@given(content=hostile.json_lines(SCORES, P36 | RUN, {"P36": P36 | RUN}))
def test_any_content_gives_scores_or_the_kits_own_error(tmp_path, name, content):
    (tmp_path / "metadata_results.json").write_text(json.dumps({"P36": P36 | RUN}))
    (tmp_path / "P36_results.jsonl").write_text(json.dumps(SCORES))
    (tmp_path / name).write_bytes(content)
    with contextlib.suppress(ProbeError):
        assert read_bear_results(tmp_path)["logprob"].between(-1e300, 0).all()


def test_the_real_scores(gpt2):
    frame = read_bear_results(gpt2)
    assert len(frame) == 107_604 and frame["fact"].nunique() == 4_134 and frame["relation"].nunique() == 30
    assert set(frame["model"]) == {"gpt2"} and set(frame["template"]) == {1}
    best = frame.loc[frame.groupby("fact")["logprob"].idxmax()]
    right = (best["gold"] == best["candidate"]).groupby(best["relation"]).mean()
    assert right["P30"] == 94 / 150 and right["P36"] == 26 / 60 and best["fact"].nunique() == 4_134
    assert right.mean() == pytest.approx(0.1542, abs=1e-4)
    one = read_bear_results(gpt2, ["P36"])
    assert one.equals(frame[frame["relation"] == "P36"].reset_index(drop=True))


def test_the_real_scores_with_a_relation_lost(gpt2, tmp_path):
    folder = shutil.copytree(gpt2, tmp_path / "copy")
    (folder / "P36_results.jsonl").unlink()
    with pytest.raises(ProbeError, match="no file for P36"):
        read_bear_results(folder)
