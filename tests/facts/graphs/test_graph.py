"""Knowledge graphs: a small one by hand, what does not depend on order, edges, and properties of
generated ones."""

import numpy as np
import pytest

from probelib import facts
from probelib.errors import ProbeError
from probelib.facts.graphs import graph as kg
from probelib.facts.graphs.graph import (
    Graph,
    contains,
    corrupt,
    degrees,
    from_facts,
    labelled,
    make_table,
    open_graph,
    relation_types,
    statistics,
    synthetic,
    to_facts,
    write_graph,
)


def make(
    triples: list[tuple[int, int, int]], n: int, relations: int = 1, types: dict = (), labels=None
) -> Graph:
    """A graph of entities e0, e1, ... and relations r0, r1, ...; types {entity: [types]}."""
    pairs = [(entity, kind) for entity, kinds in dict(types).items() for kind in kinds]
    return Graph(
        make_table(
            "triples", dict(zip(kg.SLOTS, np.array(triples, int).reshape(-1, 3).T, strict=True))
        ),
        make_table(
            "entities",
            {
                "entity": [f"e{i}" for i in range(n)],
                "label": labels or [f"E {i}" for i in range(n)],
            },
        ),
        make_table("relations", {"relation": [f"r{i}" for i in range(relations)]}),
        make_table("types", {"entity": [e for e, _ in pairs], "type": [t for _, t in pairs]}),
        {"source": "by hand", "counts": {"triples": len(triples)}, "examples": []},
    )


# 0 -r0-> 1, 0 -r1-> 1 (parallel), 1 -r0-> 2, 2 -r1-> 2 (a loop)
SMALL = make(
    [(0, 0, 1), (0, 1, 1), (1, 0, 2), (2, 1, 2)],
    4,
    2,
    {0: ["Person"], 1: ["Place", "City"], 2: ["City"]},
)


def test_degrees_and_statistics_by_hand():
    assert degrees(SMALL).tolist() == [2, 3, 3, 0]  # the parallel edge counts again, the loop twice
    assert degrees(SMALL, parallel=False).tolist() == [1, 2, 3, 0]
    expected = {
        "entities": 3,
        "relations": 2,
        "triples": 4,
        "average degree": 8 / 3,
        "density": 4 / 6,
        "self loops": 1,
    }
    assert statistics(SMALL) == expected  # the fourth entity is in no triple
    published = statistics(synthetic(1000, 290))  # 2T/E and T/(E(E-1)), not what Table 1 prints
    assert published["average degree"] == pytest.approx(2 * 1000 / 290)


def test_types_of_relations_by_hand():
    """r0: heads 0 (Person), 1 (Place, City): a tie of three, alphabetical; tails 1 (Place, City), 2
    (City)."""
    usual = relation_types(SMALL)
    assert usual.values.tolist() == [["r0", "City", "City"], ["r1", "City", "City"]]
    other = make([(0, 0, 1), (0, 0, 2), (3, 0, 3)], 4, 2, {0: ["Zebra", "Zebra"], 3: ["Ant"]})
    assert relation_types(other).values.tolist() == [["r0", "Zebra", "Ant"], ["r1", "None", "None"]]
    assert relation_types(make([(0, 0, 1)], 2)).values.tolist() == [["r0", "None", "None"]]


def test_what_a_graph_contains():
    everything = np.array([(h, r, t) for h in range(4) for r in range(2) for t in range(4)]).T
    assert everything.T[contains(SMALL, *everything)].tolist() == [
        [0, 0, 1],
        [0, 1, 1],
        [1, 0, 2],
        [2, 1, 2],
    ]
    assert not contains(make([], 2), np.array([0]), np.array([0]), np.array([1])).any()


def changed(graph: Graph, false) -> np.ndarray:
    """Which parts of the corrupted triples differ from the true ones, (n, 3) bool."""
    rows = false["triple"]
    true = np.stack([graph.head[rows], graph.relation[rows], graph.tail[rows]], axis=1)
    return true != false[list(kg.SLOTS)].to_numpy()


@pytest.mark.parametrize("hard", [False, True])
def test_corrupted_triples_are_false_and_differ_in_one_part(hard):
    graph = synthetic(3000, 300, 20, seed=1)
    false = corrupt(graph, seed=3, hard=hard)
    assert not contains(graph, false["head"], false["relation"], false["tail"]).any()
    different = changed(graph, false)
    assert (different.sum(axis=1) == 1).all() and (different.argmax(axis=1) == false["slot"]).all()
    assert len(false) + false.attrs["impossible"] == 3000
    if hard:
        tails = {(r, t) for r, t in zip(graph.relation, graph.tail, strict=True)}
        assert (
            set(false["slot"]) == {2}
            and {(r, t) for r, t in zip(false["relation"], false["tail"], strict=True)} <= tails
        )
    else:
        assert (
            false["triple"].tolist() == list(range(3000))
            and false["slot"].value_counts().between(900, 1100).all()
        )


def test_the_corruption_of_a_triple_does_not_depend_on_other_triples():
    graph = synthetic(2000, 300, 20)
    everything = corrupt(graph, seed=5)
    some = np.array([1999, 3, 700])
    assert corrupt(graph, some, seed=5).values.tolist() == everything.iloc[some].values.tolist()
    assert (corrupt(graph, seed=6)["slot"] != everything["slot"]).mean() > 0.5


def test_what_cannot_be_corrupted_is_counted():
    full = make([(h, 0, t) for h in range(2) for t in range(2)], 2)
    assert corrupt(full).attrs["impossible"] == 4 and corrupt(full).empty
    nearly = make([(h, 0, t) for h in range(40) for t in range(40) if (h, t) != (7, 9)], 40)
    false = corrupt(
        nearly
    )  # only (7, 9) is free: row 7 and column 9 lead there, whatever chance says
    assert set(map(tuple, false[["head", "tail"]].to_numpy())) == {(7, 9)} and len(false) == 39 + 39
    one_tail = make([(0, 0, 1), (2, 0, 1), (0, 1, 1), (2, 1, 2)], 3, 2)
    hard = corrupt(one_tail, hard=True)
    assert (
        hard["triple"].tolist() == [2, 3]
        and hard["tail"].tolist() == [2, 1]
        and hard.attrs["impossible"] == 2
    )
    assert corrupt(make([], 3)).empty


def test_rows_that_are_not_there_are_refused():
    for rows in ([-1], [4], [0.5], ["0"], [True]):
        for call in (corrupt, to_facts):
            with pytest.raises(ProbeError, match="from 0 to 3"):
                call(SMALL, np.array(rows))


# On disk


def test_a_graph_comes_back_mapped_and_equal(tmp_path):
    graph = synthetic(500, 100, 10)
    again = open_graph(write_graph(graph, tmp_path / "kg"))
    for name in kg.COLUMNS:
        assert getattr(again, name).equals(getattr(graph, name))
    assert again.about == graph.about and not again.head.flags.owndata  # a view of the file
    assert {p.name for p in (tmp_path / "kg").iterdir()} == {f"{n}.arrow" for n in kg.COLUMNS} | {
        "graph.json"
    }
    write_graph(SMALL, tmp_path / "kg")  # over an old one that is still open
    assert len(open_graph(tmp_path / "kg")) == 4 and len(again) == 500 and again.tail.max() < 100


@pytest.mark.parametrize(
    "damage",
    [
        lambda folder: (folder / "graph.json").unlink(),
        lambda folder: (folder / "graph.json").write_text("{"),
        lambda folder: (folder / "graph.json").write_text("[]"),
        lambda folder: (folder / "graph.json").write_text(
            (folder / "graph.json").read_text().replace("about", "abaut")
        ),
        lambda folder: (folder / "types.arrow").unlink(),
        lambda folder: (folder / "triples.arrow").write_bytes(
            (folder / "triples.arrow").read_bytes()[:-1]
        ),
        lambda folder: (folder / "triples.arrow").write_bytes(
            bytes((folder / "triples.arrow").stat().st_size)
        ),
        lambda folder: (folder / "entities.arrow").write_bytes(
            (folder / "types.arrow").read_bytes()
        ),
    ],
)
def test_a_damaged_folder_is_refused(tmp_path, damage):
    folder = write_graph(SMALL, tmp_path / "kg")
    damage(folder)
    with pytest.raises(ProbeError, match="kg"):
        open_graph(folder)


def test_row_numbers_outside_their_table_are_refused(tmp_path):
    for triples in ([(0, 0, 4)], [(-1, 0, 1)], [(0, 2, 1)]):
        broken = make(triples, 4, 2)
        with pytest.raises(ProbeError, match="row numbers"):
            open_graph(write_graph(broken, tmp_path / "kg"))
    with pytest.raises(ProbeError):
        open_graph(tmp_path / "nothing")
    (tmp_path / "file").write_text("")
    with pytest.raises(ProbeError, match="cannot be written"):
        write_graph(SMALL, tmp_path / "file")


# The tidy frames


def test_to_the_frames_by_hand():
    small = to_facts(SMALL, np.array([0, 3]))
    assert small.facts.values.tolist() == [
        ["r0:e0:e1", "r0", "e0", "e1", "", ""],
        ["r1:e2:e2", "r1", "e2", "e2", "", ""],
    ]
    entities = small.entities.set_index("entity")
    assert entities["label"].to_dict() == {"e0": "E 0", "e1": "E 1", "e2": "E 2"}
    assert entities.loc["e1", "types"] == ("Place", "City") and entities.loc["e1", "wikidata"] == ""
    assert small.relations["relation"].tolist() == ["r0", "r1"] and small.source == "by hand"
    assert to_facts(SMALL, np.array([True, False, False, False])).facts["fact"].tolist() == [
        "r0:e0:e1"
    ]


def test_entities_without_a_label_are_refused_by_name_and_can_be_chosen_away():
    graph = make([(0, 0, 1), (1, 0, 2)], 3, labels=["Paris", "France", None])
    with pytest.raises(ProbeError, match="1 entities have no label, e.g. 'e2'"):
        to_facts(graph)
    assert (
        labelled(graph).tolist() == [True, False]
        and len(to_facts(graph, labelled(graph)).facts) == 1
    )
    with pytest.raises(ProbeError, match="no triples"):
        to_facts(graph, np.array([False, False]))


def test_the_shipped_facts_as_a_graph_and_back():
    atlas = facts.atlas()
    graph = from_facts(atlas)
    back = to_facts(graph)
    columns = ["relation", "subject", "object", "start", "end"]
    assert back.facts[columns].values.tolist() == atlas.facts[columns].values.tolist()
    assert back.facts["fact"].is_unique
    same = atlas.entities.set_index("entity").loc[back.entities["entity"]]
    assert same["label"].tolist() == back.entities["label"].tolist()
    assert same["aliases"].tolist() == back.entities["aliases"].tolist()
    assert same["types"].tolist() == back.entities["types"].tolist()
    false = corrupt(graph, hard=True)
    assert false.attrs["impossible"] < 0.05 * len(graph)


# Generated graphs


def test_generated_graphs_are_skewed_distinct_and_all_in_use():
    graph = synthetic(20_000, seed=2)
    degree = degrees(graph)
    assert len(graph) == 20_000 and graph.entities.num_rows == 5800 and degree.min() >= 1
    assert degree.max() > 100 * np.median(degree)
    assert len(np.unique(np.stack([graph.head, graph.relation, graph.tail]), axis=1).T) == 20_000
    assert synthetic(50, 20, 3, seed=2).triples.equals(synthetic(50, 20, 3, seed=2).triples)
    assert not synthetic(50, 20, 3, seed=2).triples.equals(synthetic(50, 20, 3, seed=3).triples)
    for wrong in ((10, 20, 1), (10**6, 10, 2)):
        with pytest.raises(ProbeError, match="allowed"):
            synthetic(*wrong)
