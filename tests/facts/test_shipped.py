"""The atlas: names that can be told apart, articles, types, and the two parts of the panel."""

from dataclasses import replace

import pytest

from probelib import ProbeError, facts
from probelib.facts import check


def test_homonyms_of_a_relation_keep_their_bracket():
    """Two subjects of P36 are called Georgia; where there is one of a name, it needs no bracket."""
    atlas = facts.atlas()
    labels = dict(zip(atlas.entities["entity"], atlas.entities["label"], strict=True))
    georgias = {key: label for key, label in labels.items() if key.startswith("Georgia")}
    assert (
        georgias["Georgia (state)"] == "Georgia (state)"
        and len(set(georgias.values())) == len(georgias) > 1
    )
    assert any(key != label and key.startswith(f"{label} (") for key, label in labels.items())
    for relation, rows in atlas.facts.groupby("relation"):
        names = {entity: labels[entity] for entity in {*rows["subject"], *rows["object"]}}
        assert len(set(names.values())) == len(names), relation


def test_no_alias_is_the_label_of_another_entity_of_the_relation():
    atlas = facts.atlas()
    entities = atlas.entities.set_index("entity")
    for relation, rows in atlas.facts.groupby("relation"):
        own = entities.loc[sorted({*rows["subject"], *rows["object"]})]
        aliases = {alias for names in own["aliases"] for alias in names}
        assert not aliases & set(own["label"]), relation


def test_entities_have_a_type_of_their_relation():
    atlas = facts.choose(facts.atlas(), ["P36"])
    assert not [problem for problem in check.problems(atlas) if "none of" in problem]
    other = replace(atlas, relations=atlas.relations.assign(object_type="river"))
    assert any(
        line.startswith("P36: ") and "objects are none of river, e.g. " in line
        for line in check.problems(other)
    )


def test_the_parts_of_the_panel_are_named():
    with pytest.raises(ProbeError, match="'panel', 'natural', 'trial', 'all'"):
        facts.load(n_facts="random")
    assert len(facts.load(relations=["P36"], n_facts="natural").facts) == 40


def test_the_data_card_says_where_the_facts_come_from():
    card = facts.data_card()
    for heading in ("## Sources", "## Cut-off", "## Measured precision", "## Estimates"):
        assert heading in card
    prizes = facts.choose(facts.atlas(), ["K1"]).facts["object"].astype(int)
    assert prizes.max() == 2025 and "those of 2025" in card
    assert f"Facts of {len(facts.atlas().relations)} relations" in card
