"""The data model: selections, distractors, validation; the shipped atlas."""

from dataclasses import replace

import pytest

from probelib import facts, prompts
from probelib.errors import ProbeError
from probelib.facts import shipped
from probelib.facts.model import draw_distractors, sample
from tests.facts.test_atlas import wrong_distractors

YAML = """relation: P36
name: capital
subject_type: country
object_type: city
functional: true
question: ["What is the capital of [X]?", "Which city is [X]'s capital?"]
cloze: ["The capital of [X] is"]
"""
TSV = """subject object start end
France Paris - -
Germany Bonn 1949 1990
Germany Berlin 1990 -
Italy Rome - -
Malta Valletta_(city) - -
"""
ENTITIES = """entity wikidata types popularity aliases
France Q142 country|place 5 French_Republic
Germany - country|place 5 -
Italy - country|place 5 -
Malta - country|place 3 -
Paris Q90 city|place 5 -
Bonn - city|place 3 -
Berlin - city|place 5 -
Rome - city|place 5 Roma
Valletta_(city) - city|place 2 Roma
"""


def tabs(table: str) -> str:
    """A readable table as the TSV of the atlas: "-" is an empty cell, "_" a blank."""
    return table.replace(" ", "\t").replace("-\t", "\t").replace("\t-\n", "\t\n").replace("_", " ")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "P36.yaml").write_text(YAML)
    (tmp_path / "P36.tsv").write_text(tabs(TSV))
    (tmp_path / "entities").mkdir()
    (tmp_path / "entities" / "places.tsv").write_text(tabs(ENTITIES))
    return tmp_path


def test_a_small_atlas_by_hand(folder):
    atlas = shipped.read_atlas(folder)
    ends = ["France:Paris", "Germany:Bonn", "Germany:Berlin", "Italy:Rome"]
    assert atlas.facts["fact"].tolist() == [f"P36:{e}" for e in [*ends, "Malta:Valletta (city)"]]
    # what a reader sees has no disambiguator
    assert atlas.label(["Valletta (city)"]) == ["Valletta"]
    assert atlas.entities.set_index("entity").loc["France", "aliases"] == ("French Republic",)
    now = facts.current(atlas).facts["object"].tolist()
    assert now == ["Paris", "Berlin", "Rome", "Valletta (city)"]
    # a relation without statements of its own makes them from its cloze sentences
    assert "The capital of [X] is [Y]." in set(atlas.templates["template"])


def test_distractors_are_wrong_even_by_a_former_value_or_an_alias(folder):
    atlas = draw_distractors(shipped.read_atlas(folder), n=10)
    given = atlas.distractors.groupby("fact")["object"].agg(set).to_dict()
    # not Bonn: it was right once
    assert given["P36:Germany:Berlin"] == {"Paris", "Rome", "Valletta (city)"}
    # Valletta is called Roma here too
    assert given["P36:Italy:Rome"] == {"Paris", "Bonn", "Berlin"}
    assert given["P36:France:Paris"] == {"Bonn", "Berlin", "Rome", "Valletta (city)"}


@pytest.mark.parametrize(
    ("file", "old", "new", "says"),
    [
        ("P36.tsv", "Germany\tBonn\t1949\t1990", "France\tParis\t\t", "duplicate fact id, 1"),
        ("P36.tsv", "Italy\tRome", "Italy\tTurin", "object without a row in entities.*'Turin'"),
        ("P36.tsv", "Italy\tRome", "Italy\t", "object without a row in entities"),
        ("P36.yaml", "[X]'s capital?", "the capital?", r"exactly one \[X\].*P36"),
        ("P36.yaml", "name: capital", "nam: capital", r"P36.yaml: .*unknown: \['nam'\]"),
        ("P36.yaml", "relation: P36", "relation: P37", "must be P36"),
        ("P36.yaml", "functional: true", "functional: [", "P36.yaml:"),
        ("entities/places.tsv", "Germany\t", "France\t", "duplicate entity"),
    ],
)
def test_a_broken_atlas_is_refused(folder, file, old, new, says):
    path = folder / file
    path.write_text(path.read_text().replace(old, new, 1))
    with pytest.raises(ProbeError, match=says):
        shipped.read_atlas(folder)


def test_draws_do_not_depend_on_order_or_on_other_facts(folder):
    atlas = facts.current(shipped.read_atlas(folder))
    turned = facts.keep(atlas, atlas.facts["fact"] != "")
    turned.facts.sort_values("fact", ascending=False, inplace=True, ignore_index=True)
    assert set(sample(atlas, 2).facts["fact"]) == set(sample(turned, 2).facts["fact"])
    one = facts.keep(atlas, atlas.facts["subject"] == "Italy")
    alone = draw_distractors(one, pool=atlas, n=2).distractors
    together = draw_distractors(atlas, n=2).distractors
    together = together[together["fact"] == "P36:Italy:Rome"]
    assert alone["object"].tolist() == together["object"].tolist()


def test_the_panel_is_what_all_papers_score():
    panel = facts.load()
    assert len(panel.facts.groupby("relation").size()) == 40 and len(panel.facts) == 480
    assert wrong_distractors(panel, facts.atlas()) == 0
    assert panel.distractors.groupby("fact").size().min() >= 4
    few = facts.load(n_facts=3)
    assert few.facts.groupby("relation").size().eq(3).all()
    assert set(few.facts["fact"]) <= set(panel.facts["fact"])


def test_a_relation_off_the_panel_gives_as_many_facts_drawn(tmp_path):
    both = facts.load(relations=["P36", "P37"], n_facts=5)
    assert both.facts["relation"].value_counts().to_dict() == {"P36": 5, "P37": 5}
    of = lambda rows: rows["fact"][rows["relation"] == "P37"].tolist()
    assert of(both.facts) == of(facts.load(n_facts=5).facts)
    other = facts.load(relations=["P36"], n_facts=5, seed=1)
    assert set(other.facts["fact"]) != set(both.facts["fact"][:5])
    with pytest.raises(ProbeError, match="unknown relation 'P9999'"):
        facts.load(relations=["P9999"])


def test_multiple_choice_separates_tested_facts_and_examples():
    asked, pool = facts.multiple_choice(relations=["P37"], n_facts=4)
    assert not set(asked.facts["subject"]) & set(pool.facts["subject"])
    assert set(pool.relations["relation"]) == {"P37"}
    assert {"hgp", "mmp"} <= set(asked.templates["role"])
    assert asked.distractors.groupby("fact").size().max() == 99


def test_nothing_is_dropped_in_silence():
    """An id that names no fact and a folder of the atlas are errors."""
    capitals = facts.load(relations=["P36"], n_facts=2)
    known = capitals.facts["fact"].tolist()
    assert facts.pick(capitals, known[::-1]).facts["fact"].tolist() == known[::-1]
    with pytest.raises(ProbeError, match="^unknown fact of atlas 'P36:Nowhere:None'"):
        facts.pick(capitals, [known[0], "P36:Nowhere:None"])
    with pytest.raises(ProbeError, match="did you mean P36:France:Paris"):
        facts.pick(facts.atlas(), ["P36:Frence:Paris"])
    for load in (facts.load, facts.everything, facts.multiple_choice):
        with pytest.raises(ProbeError, match="^data=atlas, folder=mine.csv: atlas takes no folder"):
            load("atlas", "mine.csv")


def table_of(folder, *rows, head="relation,subject,object,start,end"):
    (folder / "mine.csv").write_text("\n".join([head, *rows]) + "\n")
    return folder / "mine.csv"


def test_a_former_answer_of_own_data_is_no_distractor(tmp_path):
    """Almaty is an object that others have today; Kazakhstan had it once."""
    rows = ["P36,Kazakhstan,Almaty,1991,1997", "P36,Kazakhstan,Astana,1997,"]
    path = table_of(tmp_path, *rows, "P36,Old,Almaty,,", "P36,Georgia,Tbilisi,,")
    mine, known = facts.load("table", path, n_facts="all"), facts.everything("table", path)
    given = mine.distractors.groupby("fact")["object"].agg(set).to_dict()
    assert given["P36:Kazakhstan:Astana"] == {"Tbilisi"} and "Astana" in given["P36:Old:Almaty"]
    assert wrong_distractors(mine, known) == 0
    bad = replace(mine, distractors=mine.distractors.replace("Tbilisi", "Almaty"))
    assert wrong_distractors(bad, known) == 2  # of Kazakhstan, and of Old


@pytest.mark.parametrize("data", ["atlas", "fktc", "table"])
def test_every_loader_refuses_the_same(tmp_path, data):
    path = table_of(tmp_path, "P36,a,b,,", "P36,c,d,,")
    (tmp_path / "P36-subclass.json").write_text(
        '{"relations": ["[X]?"]}\n{"subject": "a", "object": "b", "taxonomy": []}\n'
    )
    folder = {"table": path, "fktc": tmp_path}.get(data)
    for relations, says in (([], "empty list"), ("P36", "a list of texts"), ([36], "of type int")):
        for entrance in (facts.load, facts.multiple_choice, facts.everything):
            with pytest.raises(ProbeError, match=says):
                entrance(data, folder, relations)
    for n_facts in (0, -1, 2.5, "some", True):
        for entrance in (facts.load, facts.multiple_choice):
            with pytest.raises(ProbeError, match="n_facts is"):
                entrance(data, folder, n_facts=n_facts)


def test_a_term_is_over_where_its_dates_are_not_known(tmp_path):
    """Start and end alike are a point in time, which holds for ever; "?" and "?" are two dates that
    nobody knows."""
    path = table_of(tmp_path, "P39,a,b,?,?", "P166,c,d,1990,1990", "P36,e,f,,", "P36,g,h,1990,?")
    assert facts.current(facts.everything("table", path)).facts["subject"].tolist() == ["c", "e"]


def test_a_fact_without_wrong_options_is_left_out_by_name(tmp_path):
    """Every object of the relation is right for the subject Ix: nothing can be offered beside
    it."""
    rows = ["Ix,liege,Vernius", "Ix,liege,Atreides", "Caladan,liege,Atreides"]
    (tmp_path / "mine.csv").write_text("\n".join(["subject,relation,object", *rows]) + "\n")
    said = "2 of 3 facts have no wrong option.*liege:Ix:Vernius, liege:Ix:Atreides; left out"
    with pytest.warns(UserWarning, match=said):
        tested, _ = facts.multiple_choice("table", tmp_path / "mine.csv", n_facts="all")
    assert tested.facts["fact"].tolist() == ["liege:Caladan:Atreides"]
    assert len(prompts.options(tested)) == 2
    (tmp_path / "mine.csv").write_text("\n".join(["subject,relation,object", *rows[:2]]) + "\n")
    with pytest.raises(ProbeError, match="2 of 2 facts have no wrong option.*Add facts"):
        facts.multiple_choice("table", tmp_path / "mine.csv", n_facts="all")


def test_relations_that_the_data_lack_are_substituted(tmp_path):
    atlas = facts.load(n_facts=1, relations=["P17", "P30", "P37"])
    assert facts.substitute_relations(atlas, ["P17", "P36"]) == ["P17", "P30"]
    assert facts.substitute_relations(atlas, ["P19", "P20", "P36", "P47"]) == ["P17", "P30", "P37"]
    mine = facts.load("table", table_of(tmp_path, *[f"likes,s{i},o{i},," for i in range(3)]))
    assert facts.substitute_relations(mine, ["P17"]) == ["likes"]
    with pytest.raises(ProbeError, match="unknown relation 'like'; did you mean likes"):
        facts.substitute_relations(mine, ["like"])


# The shipped atlas


def test_no_name_or_alias_of_a_relation_stands_for_two_entities():
    """Two subjects of P36 are called Georgia; where there is one of a name, it needs no bracket."""
    entities = facts.atlas().entities.set_index("entity")
    assert entities.loc["Georgia (state)", "label"] == "Georgia (state)"
    for _, rows in facts.atlas().facts.groupby("relation"):
        own = entities.loc[sorted({*rows["subject"], *rows["object"]})]
        assert own["label"].is_unique
        assert not {alias for names in own["aliases"] for alias in names} & set(own["label"])
    card = facts.data_card()
    assert "## Measured precision" in card and f"{len(facts.atlas().relations)} relations" in card


def test_the_shipped_facts_are_what_they_were():
    """A change here changes every score: the atlas, the sampling or the distractors differ."""
    known = {"panel": "cbc4f2394bb52d6b", "natural": "01198416db13096f"}
    known |= {"trial": "c631d796aebf9b7c", "all": "9bcb6c61703f57ae"}
    assert {part: facts.load(n_facts=part).digest() for part in known} == known
