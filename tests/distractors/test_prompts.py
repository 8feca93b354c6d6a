"""The prompts of the Distractors paper: the judge's, KaRR's texts, sentences with errors."""

from probelib import facts, prompts
from probelib.distractors import retrieval
from probelib.distractors.prompts import FLAWS, flawed, judge_prompt, karr_texts, with_error


def test_the_judge_gets_truth_and_prediction_the_right_way_round():
    asked = judge_prompt("The capital of France is", ["Paris"], " Rome\n")
    end = 'The capital of France is ____\nRight answers: ["Paris"]\nWritten: Rome\nReply:'
    # six worked cases and the question
    assert asked.endswith(end) and asked.count("Sentence:") == 7


def texts_of(pool, fact: str):
    kb, rows = retrieval.knowledge(pool), pool.facts[pool.facts["fact"] == fact]
    return karr_texts(rows, pool, dict(zip(kb.keys, kb.labels, strict=True)))


def test_karr_takes_at_most_four_of_everything_and_only_what_holds_its_beginning():
    texts = texts_of(facts.atlas(), "P36:France:Paris")
    own = texts[texts["term"] == "num"]
    assert (own["share"] == 1).all() and own["before"].str.contains("Fran|Fren").all()
    assert own.loc[own["before"].str.contains("France"), "before"].nunique() == 4
    assert texts.groupby("term")["share"].min().to_dict()["den_s"] == 0.25
    assert all(b in t for b, t in zip(texts["before"], texts["text"], strict=True))


def test_a_subject_that_looks_like_a_slot_is_filled_once(tmp_path):
    """The game "Generation [Y]" keeps its name in beta and in gamma."""
    rows = "relation,subject,object\nmade,Generation [Y],Konami\nmade,Pong,Atari"
    (tmp_path / "own.csv").write_text(rows)
    templates = "relation,role,template\nmade,statement,[X] is by [Y]."
    (tmp_path / "own.templates.csv").write_text(templates)
    pool = facts.everything("table", tmp_path / "own.csv")
    own = texts_of(pool, pool.facts["fact"].iloc[0]).query("term == 'num'")
    (row,) = own[["before", "text", "rest"]].values.tolist()
    assert row == ["Generation [Y] is by", "Generation [Y] is by Konami", "Konami"]


def test_flaws_by_hand():
    """Each error as its rule makes it; a rule that finds nothing to spoil makes none."""
    text, subject = "The capital of the Netherlands is called", "Netherlands"
    assert {name: with_error(text, subject, name) for name in FLAWS} == {
        "sub_deter": "The capital of Netherlands is called",
        "obj_deter": "The capital of the Netherlands is called the",
        "wrong_conjug": "The capital of the Netherlands was called",
        "adj_noun_conjug": "The capital of the Netherlands is calls",
        "better_verb": "The capital of the Netherlands may be called",
        "sub_unclear": "The capital of the netherlands is called",
        "obj_unclear": "The capital of the Netherlands is called what one calls",
    }
    assert with_error("Haiti lies in", "Haiti", "sub_deter") == "the Haiti lies in"
    assert with_error("Haiti lies in the", "Haiti", "obj_deter") == "Haiti lies in"
    assert with_error("What Is is", "What Is", "wrong_conjug") == "What Is was"  # outside it
    assert with_error(r"the \1 is", r"\1", "sub_deter") == r"\1 is"


def test_flaws_are_drawn_by_the_prompt_and_named():
    asked = facts.load(relations=["P37"], n_facts=8)
    plain, shares = prompts.paraphrases(asked, "cloze"), {"obj_deter": 0.5, "adj_noun_conjug": 1.0}
    spoilt = flawed(plain, asked, shares)
    assert (spoilt["text"] != plain["text"]).equals(spoilt["errors"].map(len) > 0)
    assert 0.2 < spoilt["errors"].map(lambda e: "obj_deter" in e).mean() < 0.8
    half = flawed(plain.iloc[::2], asked, shares)
    assert half["text"].tolist() == spoilt["text"].iloc[::2].tolist()
