"""FKTC-MC: computed by hand, no gold answer among the wrong options, and the real FKTC."""

from dataclasses import replace

import pytest

from probelib.errors import ProbeError
from probelib.facts.check import wrong_distractors
from probelib.facts.formats import read_fktc
from probelib.facts.model import Facts
from probelib.facts.options import build_fktc_mc, chance_levels, unify
from probelib.facts.table import Entity, Triple, assemble


def make(*rows) -> Facts:
    triples = [Triple(f"f:{i}", r, Entity(s), Entity(o)) for i, (r, s, o) in enumerate(rows, 1)]
    relations = dict.fromkeys(row[0] for row in rows)
    return assemble(triples, "test", [(r, "question", "What of [X]?") for r in relations])


def test_interchangeable_objects_by_hand():
    """Case and a final "language" do not separate objects; the most frequent one without that word
    represents them."""
    rows = [("P37", f"a{i}", "French language") for i in range(3)]
    objects = ("French", "french", "French", "Ancient Greek", "Greek", "Sign language")
    rows += [("P37", *pair) for pair in zip("bcdefg", objects, strict=True)]
    rows += [("P17", "h", "language")]
    unified = unify(make(*rows)).facts.set_index("subject")["object"].to_dict()
    french = dict.fromkeys(["a0", "a1", "a2", "b", "c", "d"], "French")
    others = {"e": "Ancient Greek", "f": "Greek", "g": "Sign language", "h": "language"}
    assert unified == french | others


def test_the_papers_numbers():
    """530 subjects, 60 of them with two of 110 objects: 100 + 400 facts with 99 wrong options
    each."""
    rows = [("P19", f"S{i}", f"town {i % 110:03}") for i in range(530)]
    rows += [("P19", f"S{i}", f"town {(i + 7) % 110:03}") for i in range(60)]
    facts = make(*rows, ("P20", "S", "town"))
    splits = build_fktc_mc(facts)
    assert {name: len(split.facts) for name, split in splits.items()} == {"train": 100, "test": 400}
    assert not set(splits["train"].facts["subject"]) & set(splits["test"].facts["subject"])
    for split in splits.values():
        assert split.distractors.groupby("fact").size().eq(99).all()
        assert wrong_distractors(split, facts) == 0
    rows = facts.facts.sample(frac=1, random_state=1).reset_index(drop=True)
    ids = lambda made: {name: set(split.facts["fact"]) for name, split in made.items()}
    assert ids(build_fktc_mc(replace(facts, facts=rows))) == ids(splits)
    with pytest.raises(ProbeError, match="no facts remain"):
        build_fktc_mc(make(("P20", "S", "town")))


def test_fktc_mc(fktc):
    """Spec zplke c.2: four relations with 100 objects, three of the comparison with prompts."""
    splits = build_fktc_mc(read_fktc(fktc))
    sizes = {
        name: split.facts.groupby("relation").size().to_dict() for name, split in splits.items()
    }
    full = ("P19", "P101", "P159", "P176", "P276", "P364")
    assert sizes["train"] == {relation: 100 for relation in (*full, "P264")}
    assert sizes["test"] == {relation: 400 for relation in full} | {"P264": 329}
    levels = chance_levels(splits["test"]).set_index("relation")
    assert (levels.loc[["P19", "P101", "P159", "P276"], "options"] == 100).all()
    assert 1 / 52 <= levels.loc["P176", "chance"] < 0.0194
    assert 1 / 16 <= levels.loc["P264", "chance"] < 0.0635
    for split in splits.values():
        assert wrong_distractors(split, unify(read_fktc(fktc))) == 0
