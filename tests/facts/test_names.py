"""One door for names and seeds: spellings of one name, right answers among distractors, seeds of
any type."""

import numpy as np
import pytest

from probelib import ProbeError, facts, prompts
from probelib.facts.model import draw_distractors, right_objects, rng, sample, without_right
from probelib.facts.names import clean, same_name
from probelib.facts.table import Entity, Triple, assemble

PERSIAN = "\u0645\u06cc\u200c\u062e"
SPELLINGS = [
    ("S\u00e9n\u00e9gal", "Se\u0301ne\u0301gal"),  # composed and decomposed accents
    ("New Zealand", "New\u00a0Zealand"),
    ("New Zealand", "New  Zealand"),
    ("Canada", "canada"),
    ("Canada", "Canada\u200b"),
    ("Trinidad & Tobago", "Trinidad &amp; Tobago"),
    ("AC\u00adDC", "ACDC\x00"),
]


def make(*rows, wrong=()) -> facts.Facts:
    """Facts of (relation, subject, object), all with the same named distractors."""
    named = tuple(map(Entity, wrong))
    triples = [
        Triple(f"f:{n}", r, Entity(s), Entity(o), wrong=named)
        for n, (r, s, o) in enumerate(rows, 2)
    ]
    return assemble(triples, "test")


@pytest.mark.parametrize(("one", "other"), SPELLINGS)
@pytest.mark.filterwarnings("ignore")
def test_two_spellings_of_a_subject_are_one(one, other):
    rows = [("P37", f"C{i}", f"L{i}") for i in range(8)]
    both = make(("P37", one, "French"), ("P37", other, "Wolof"), *rows)
    drawn = draw_distractors(both, n=20).distractors
    labels = dict(zip(both.facts["fact"], both.label(both.facts["object"]), strict=True))
    for fact in both.facts["fact"][:2]:
        own = drawn[drawn["fact"] == fact]
        assert labels[fact] in ("French", "Wolof")
        assert set(both.label(own["object"])) == {f"L{i}" for i in range(8)}
    asked = facts.keep(both, both.facts["fact"] == both.facts["fact"][0])
    pool = facts.without_subjects(both, asked)
    assert set(pool.label(pool.facts["subject"])) == {f"C{i}" for i in range(8)}
    with pytest.raises(ProbeError, match="facts of the pool have a subject that is also scored"):
        prompts.sample_examples(both, asked, 1)


@pytest.mark.parametrize(("one", "other"), SPELLINGS)
@pytest.mark.filterwarnings("ignore")
def test_two_spellings_of_an_object_are_one(one, other):
    both = make(("P17", "a", one), ("P17", "b", other), ("P17", "c", "Peru"))
    assert len(set(map(same_name, right_objects(both)["P17", "a"]))) == 1
    drawn = draw_distractors(both).distractors.groupby("fact")["object"].agg(list)
    assert drawn.iloc[0] == drawn.iloc[1] == ["Peru"]


def test_spellings_are_named_once():
    with pytest.warns(UserWarning, match="1 names are spelled in several .*'Canada' and 'canada'"):
        make(("P37", "Canada", "French"), ("P37", "canada", "English"))
    said = "1 labels are written differently; the first is at f:3: .*read as 'New Zealand'"
    with pytest.warns(UserWarning, match=said):
        read = make(("P36", "Peru", "Lima"), ("P36", "New\u00a0Zealand", "Wellington"))
    assert read.label(read.facts["subject"]) == ["Peru", "New Zealand"]
    with pytest.warns(UserWarning, match="2 labels are no names; the first is at f:2: 'Q3870'"):
        make(("P36", "Kenya", "Q3870"), ("P36", "???", "Madrid"))


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("AT&T; R&amp;B &#233; &eacute; Q&A", "AT&T; R&B \u00e9 \u00e9 Q&A"),
        ("  a\t\n b\u2009\u202fc ", "a\t\n b  c"),
        ("\ufeffMalm\u00f6\u202e", "Malm\u00f6"),
        (PERSIAN, PERSIAN),  # a joiner belongs to the spelling
        ("007", "007"),
        ("NA", "NA"),
    ],
)
def test_a_label_is_written_as_a_reader_sees_it(text, label):
    assert clean(text) == label and clean(label) == label
    assert same_name(text) == same_name(label.upper()) or text == "007"


def test_ids_and_names_decide_who_is_who():
    """Labels of one id are one subject, and so are ids of one label: a prompt shows the label
    alone."""
    rows = [("Q55", "Holland", "Dutch"), ("Q55", "the Netherlands", "Frisian")]
    rows += [("Q230", "Georgia", "Georgian"), ("Q1428", "Georgia", "English"), ("", "Q55", "Welsh")]
    triples = [Triple(f"f:{n}", "P37", Entity(s, i), Entity(o)) for n, (i, s, o) in enumerate(rows)]
    with pytest.warns(UserWarning, match="no names"):
        read = assemble(triples, "test")
    right = list(right_objects(read).values())
    assert right == [{"Dutch", "Frisian"}] * 2 + [{"Georgian", "English"}] * 2 + [{"Welsh"}]


def test_named_distractors_that_are_right_are_left_out_and_counted(tmp_path):
    """By name, by a former value of the subject, by an alias; ``released`` keeps them."""
    rows = [("P1", "a", "x"), ("P1", "a", "Y"), ("P1", "b", "z")]
    known = make(*rows, wrong=[*"xywzv"])
    with pytest.warns(UserWarning, match="5 of 15 named distractors are right.*'x' of P1:a:x"):
        checked = without_right(known, known)
    rows = checked.distractors.groupby("fact")[["number", "object"]].agg(list)
    assert rows["object"].tolist() == [["w", "z", "v"]] * 2 + [["x", "y", "w", "v"]]
    assert rows["number"].tolist() == [[1, 2, 3]] * 2 + [[1, 2, 3, 4]]
    lines = ['{"relations": ["Where is [X]?"]}']
    lines += [f'{{"subject": "a", "object": "{o}", "taxonomy": ["x", "y", "z"]}}' for o in "xy"]
    (tmp_path / "P1-subclass.json").write_text("\n".join(lines))
    with pytest.warns(UserWarning, match="fktc:.*: 4 of 6 named distractors"):
        assert len(facts.load("fktc", tmp_path).distractors) == 2
    assert len(facts.load("fktc", tmp_path, released=True).distractors) == 6


@pytest.mark.parametrize("seed", [np.int64(1), np.uint8(1), True])
def test_an_integer_of_any_type_is_the_same_seed(seed):
    load = lambda seed: facts.load(relations=["P36"], n_facts=20, seed=seed, n_distractors=2)
    one, other = load(1), load(seed)
    assert one.digest() == other.digest()
    assert prompts.options(one, 1).equals(prompts.options(one, seed))
    assert rng(1, "a").random() == rng(seed, np.str_("a")).random()


@pytest.mark.parametrize("seed", [1.0, "1", None, np.float64(1), [1]])
def test_other_seeds_are_refused(seed):
    some = facts.load(relations=["P36"], n_facts=3)
    for draw in (lambda: facts.load(seed=seed), lambda: sample(some, 1, seed), lambda: rng(seed)):
        with pytest.raises(ProbeError, match="seed=.*; an integer is needed"):
            draw()


@pytest.mark.parametrize(
    ("template", "subject", "obj", "filled"),
    [
        ("[X] comes from [Y].", "Generation [Y]", "Chile", "Generation [Y] comes from Chile."),
        ("[Y] bought [X].", "a [Y]", " {head} ", "{head} bought a [Y]."),
        ("[X] is in", "The [X] Files", None, "The [X] Files is in"),
        ("Who leads [X]?", "United States", None, "Who leads the United States?"),
        ("[X] borders [Y].", "Netherlands", "Germany", "The Netherlands borders Germany."),
        ("In a country called [X] is", "Netherlands", None, "In a country called Netherlands is"),
        ("[X]", "Netherlands", None, "Netherlands"),  # ZP-LKE's subject is a name, not a sentence
    ],
)
def test_a_template_is_filled_in_one_pass(template, subject, obj, filled):
    assert prompts.fill(template, subject, obj) == filled
