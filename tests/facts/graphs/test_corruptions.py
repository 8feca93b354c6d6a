"""GraphEval's corruptions: computed by hand, and never a true triple."""

from dataclasses import replace

import numpy as np
import pandas as pd
from hypothesis import given, settings
from hypothesis import strategies as st

from probelib.facts.graphs.corruptions import askable, corruptions
from probelib.facts.graphs.graph import SLOTS, Graph, from_facts, make_table
from probelib.facts.table import Entity, Triple, assemble


def graph_of(*rows, labels=None) -> Graph:
    """A graph of (relation, subject, object[, start, end]); ``labels``: entity -> its label, if
    that is not its name."""
    entity = lambda name: Entity((labels or {}).get(name, name), name)
    return from_facts(
        assemble(
            [
                Triple(f"f:{i}", r, entity(s), entity(o), *dates)
                for i, (r, s, o, *dates) in enumerate(rows, 1)
            ],
            "test",
        )
    )


def named(graph: Graph, triples: pd.DataFrame) -> list[tuple]:
    keys = graph.entities["entity"].to_pylist()
    return [
        (keys[head], keys[tail]) for head, tail in triples[["head", "tail"]].itertuples(index=False)
    ]


def test_hard_corruptions_by_hand():
    """Cusco was a capital of Peru and Lima is, so Rome is the only wrong object of Peru."""
    graph = graph_of(
        ("P36", "Peru", "Lima"), ("P36", "Peru", "Cusco", "1000", "1534"), ("P36", "Italy", "Rome")
    )
    assert askable(graph)["holds no longer"].tolist() == [True, False, True]
    found = corruptions(graph, np.array([0, 2]), n=5, hard=True)
    assert sorted(named(graph, found)) == [("Italy", "Cusco"), ("Italy", "Lima"), ("Peru", "Rome")]
    assert (found["slot"] == 2).all() and found["triple"].tolist() == [0, 2, 2]


def test_no_corruption_has_the_labels_of_a_true_triple():
    """Two towns are called Aberdeen, in Scotland and in the USA; neither has a hard corruption."""
    rows = (
        ("P17", "Aberdeen", "Scotland"),
        ("P17", "Olympia", "USA"),
        ("P17", "Aberdeen (2)", "USA"),
    )
    graph = graph_of(*rows, labels={"Aberdeen (2)": "Aberdeen"})
    assert named(graph, corruptions(graph, np.arange(3), hard=True)) == [("Olympia", "Scotland")]


def test_all_possible_corruptions_are_found():
    """40 objects, one of them right: 39 corruptions per triple, too rare for sampling to find them
    all."""
    graph = graph_of(*[("P1", f"s{i}", f"o{i}") for i in range(40)])
    found = corruptions(graph, np.arange(5), n=39, hard=True)
    assert (
        found.groupby("triple").size().tolist() == [39] * 5
        and not found.duplicated(["triple", *SLOTS]).any()
    )


def test_entities_without_a_label_and_deprecated_triples():
    graph = graph_of(("P36", "Italy", "Rome"), ("P36", "Peru", "Lima"), ("P36", "Peru", "Cusco"))
    entities = graph.entities["entity"].to_pylist()
    labels = make_table(
        "entities", {"entity": entities, "label": [None if e == "Rome" else e for e in entities]}
    )
    columns = {name: graph.triples[name].to_numpy() for name in SLOTS} | {
        "rank": ["normal", "normal", "deprecated"]
    }
    graph = replace(graph, entities=labels, triples=make_table("triples", columns))
    passed = askable(graph)
    assert passed["entity without a label"].tolist() == [False, True, True]
    assert passed["deprecated or outranked"].tolist() == [True, True, False]
    assert "Rome" not in {
        name for pair in named(graph, corruptions(graph, np.array([1]), n=4)) for name in pair
    }


@settings(max_examples=30, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(["P1", "P2"]), st.sampled_from("ABC"), st.sampled_from("abcd")),
        min_size=2,
    ),
    st.booleans(),
    st.integers(1, 3),
)
def test_no_corruption_is_in_the_graph(rows, hard, n):
    graph = graph_of(*rows)
    found = corruptions(graph, np.arange(len(graph)), n, hard)
    triples = lambda columns: set(
        zip(*(np.asarray(columns[slot]).tolist() for slot in SLOTS), strict=True)
    )
    assert not triples(found) & triples({slot: getattr(graph, slot) for slot in SLOTS})
    assert found["triple"].value_counts().max() <= n if len(found) else True
