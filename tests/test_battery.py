"""All measures on the same facts: what GraphEval's part asks, and of whom its judge learns."""

import pytest

from probelib import battery, lm

BASE, TUNED = "atlas-neox-0.15m", "atlas-neox-0.15m-it"


@pytest.fixture(scope="module")
def about():
    return battery.questions(relations=["P36", "P37"], n_facts=4)


def test_the_judge_learns_from_facts_that_are_not_asked(about):
    pairs = lambda some: set(zip(some.facts["relation"], some.facts["subject"], strict=True))
    assert not pairs(about.asked) & pairs(about.others)
    assert len(about.others.facts) > 100 and about.others.distractors["number"].tolist() == [1] * len(
        about.others.facts
    )


def test_a_fact_and_its_corruption_are_said_alike(about):
    statements = battery._statements(about.asked, battery._and_false(about.asked), lm.load(TUNED))
    both = statements.groupby("fact")["negative"].agg(sorted)
    assert both.tolist() == [[0, 1]] * len(about.asked.facts)
    first = statements[statements["fact"] == about.asked.facts["fact"][0]].set_index("negative")["statement"]
    right, subject = (about.asked.label(about.asked.facts[column])[0] for column in ("object", "subject"))
    assert right in first[0] and subject in first[0] and subject in first[1] and right not in first[1]
    assert all(one in text for one, text in zip(statements["statement"], statements["text"], strict=True))


def test_the_judge_rates_every_fact(about, tmp_path):
    one, again = (
        battery.ask(lm.load(BASE), about, tmp_path, tuned=lm.load(TUNED), parts=("grapheval",)) for _ in range(2)
    )
    ids = set(about.asked.facts["fact"])
    for name in ("GraphEval P(true)", "GraphEval judge P(true)"):
        assert set(one.values[name].index) == ids and one.values[name].between(0, 1).all() and one.tokens[name] > 0
        assert one.values[name].tolist() == again.values[name].tolist()
    assert set(one.values["GraphEval judge correct"]) <= {0.0, 0.5, 1.0}
    assert one.table()["measure"].unique().tolist() == [name for name in battery.MEASURES if "GraphEval" in name]
    untuned = battery.ask(lm.load(BASE), about, tmp_path, parts=("grapheval",))
    assert not untuned.values
