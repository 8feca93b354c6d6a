"""Knowledge graphs: a small one by hand, corruptions, files, and a dump of DBpedia."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from probelib import facts
from probelib.errors import ProbeError
from probelib.facts.graphs import graph as kg
from probelib.facts.graphs.corruptions import askable, corrupt, corruptions
from probelib.facts.graphs.dumps import entity_name, read_dbpedia, scan
from probelib.facts.graphs.graph import SLOTS, Graph, from_facts, make_table
from probelib.facts.table import Entity, Triple, assemble
from probelib.grapheval.whole_graph import load_graph
from tests.facts.samples import damage, synthetic


def make(triples: list[tuple[int, int, int]], n: int, relations: int = 1, types=(), labels=None):
    """A graph of entities e0, e1, ... and relations r0, r1, ...; types {entity: [types]}."""
    pairs = [(entity, kind) for entity, kinds in dict(types).items() for kind in kinds]
    parts = np.array(triples, int).reshape(-1, 3).T
    entities = {"entity": [f"e{i}" for i in range(n)]}
    entities["label"] = labels or [f"E {i}" for i in range(n)]
    return Graph(
        make_table("triples", dict(zip(SLOTS, parts, strict=True))),
        make_table("entities", entities),
        make_table("relations", {"relation": [f"r{i}" for i in range(relations)]}),
        make_table("types", {"entity": [e for e, _ in pairs], "type": [t for _, t in pairs]}),
        {"source": "by hand", "counts": {"triples": len(triples)}},
    )


# 0 -r0-> 1, 0 -r1-> 1 (parallel), 1 -r0-> 2, 2 -r1-> 2 (a loop)
TYPES = {0: ["Person"], 1: ["Place", "City"], 2: ["City"]}
SMALL = make([(0, 0, 1), (0, 1, 1), (1, 0, 2), (2, 1, 2)], 4, 2, TYPES)


def test_degrees_statistics_and_types_by_hand():
    assert kg.degrees(SMALL).tolist() == [2, 3, 3, 0]  # the parallel edge again, the loop twice
    expected = {"entities": 3, "relations": 2, "triples": 4, "average degree": 8 / 3}
    assert kg.statistics(SMALL) == expected | {"density": 4 / 6, "self loops": 1}
    # r0: a tie of three among the heads, the first in the alphabet
    assert kg.relation_types(SMALL).values.tolist() == [
        ["r0", "City", "City"],
        ["r1", "City", "City"],
    ]
    other = make([(0, 0, 1), (0, 0, 2), (3, 0, 3)], 4, 2, {0: ["Zebra", "Zebra"], 3: ["Ant"]})
    assert kg.relation_types(other).values.tolist() == [
        ["r0", "Zebra", "Ant"],
        ["r1", "no type", "no type"],
    ]
    every = np.array([(h, r, t) for h in range(4) for r in range(2) for t in range(4)]).T
    there = every.T[kg.contains(SMALL, *every)].tolist()
    assert there == [[0, 0, 1], [0, 1, 1], [1, 0, 2], [2, 1, 2]]


# Corruptions


@pytest.mark.parametrize("hard", [False, True])
def test_corrupted_triples_are_false_differ_in_one_part_and_depend_on_nothing_else(hard):
    graph = synthetic(3000, 300, 20, seed=1)
    false = corrupt(graph, np.arange(3000), 3, hard)
    assert not kg.contains(graph, *(false[slot] for slot in SLOTS)).any()
    true = np.stack([getattr(graph, slot)[false["triple"]] for slot in SLOTS], axis=1)
    different = true != false[list(SLOTS)].to_numpy()
    assert (different.sum(axis=1) == 1).all() and (different.argmax(axis=1) == false["slot"]).all()
    alone = corrupt(graph, false["triple"].iloc[[2000, 3, 700]].to_numpy(), 3, hard)
    assert alone.values.tolist() == false.iloc[[2000, 3, 700]].values.tolist()
    if hard:
        tails = set(zip(graph.relation.tolist(), graph.tail.tolist(), strict=True))
        assert set(zip(false["relation"], false["tail"], strict=True)) <= tails
    else:
        assert len(false) == 3000 and false["slot"].value_counts().between(900, 1100).all()


def graph_of(*rows, labels=None) -> Graph:
    """A graph of (relation, subject, object[, start, end]); ``labels``: entity -> its label."""
    entity = lambda name: Entity((labels or {}).get(name, name), name)
    rows = [
        Triple(f"f:{i}", r, entity(s), entity(o), *dates)
        for i, (r, s, o, *dates) in enumerate(rows)
    ]
    return from_facts(assemble(rows, "test"))


def named(graph: Graph, found: pd.DataFrame) -> list[tuple]:
    keys = graph.entities["entity"].to_pylist()
    return [(keys[head], keys[tail]) for head, tail in found[["head", "tail"]].values]


def test_hard_corruptions_by_hand():
    """Cusco was a capital of Peru and Lima is, so Rome is the only wrong object of Peru; two towns
    are called Aberdeen, so neither has a hard corruption."""
    former = ("P36", "Peru", "Cusco", "1000", "1534")
    graph = graph_of(("P36", "Peru", "Lima"), former, ("P36", "Italy", "Rome"))
    assert askable(graph)["holds no longer"].tolist() == [True, False, True]
    found = corruptions(graph, np.array([0, 2]), n=5, hard=True)
    assert sorted(named(graph, found)) == [("Italy", "Cusco"), ("Italy", "Lima"), ("Peru", "Rome")]
    rows = [("P17", "Aberdeen", "Scotland"), ("P17", "Olympia", "USA"), ("P17", "A2", "USA")]
    graph = graph_of(*rows, labels={"A2": "Aberdeen"})
    assert named(graph, corruptions(graph, np.arange(3), hard=True)) == [("Olympia", "Scotland")]


def test_all_possible_corruptions_are_found():
    """40 objects, one of them right: too rare for sampling to find all 39. Of 1,600 pairs one is
    free: its row and its column lead there."""
    graph = graph_of(*[("P1", f"s{i}", f"o{i}") for i in range(40)])
    found = corruptions(graph, np.arange(5), n=39, hard=True)
    assert found.groupby("triple").size().tolist() == [39] * 5
    assert not found.duplicated(["triple", *SLOTS]).any()
    nearly = make([(h, 0, t) for h in range(20) for t in range(20) if (h, t) != (7, 9)], 20)
    found = corruptions(nearly, np.arange(len(nearly)))
    assert set(map(tuple, found[["head", "tail"]].values)) == {(7, 9)} and len(found) == 19 + 19
    assert corruptions(make([(h, 0, t) for h in (0, 1) for t in (0, 1)], 2), np.arange(4)).empty


def test_entities_without_a_label_are_not_asked():
    graph = graph_of(("P36", "Italy", "Rome"), ("P36", "Peru", "Lima"), ("P36", "Peru", "Cusco"))
    keys = graph.entities["entity"].to_pylist()
    labels = {"entity": keys, "label": [None if e == "Rome" else e for e in keys]}
    graph = replace(graph, entities=make_table("entities", labels))
    assert askable(graph)["entity without a label"].tolist() == [False, True, True]
    found = named(graph, corruptions(graph, np.array([1]), n=4))
    assert "Rome" not in {name for pair in found for name in pair}


# Files and facts


def test_a_graph_comes_back_mapped_and_a_damaged_one_is_refused(tmp_path):
    graph, folder = synthetic(500, 100, 10), tmp_path / "kg"
    again = kg.open_graph(kg.write_graph(graph, folder))
    assert all(getattr(again, name).equals(getattr(graph, name)) for name in kg.COLUMNS)
    assert again.about == graph.about and not again.head.flags.owndata  # a view of the file
    kg.write_graph(SMALL, folder)  # over an old one that is still open
    assert len(kg.open_graph(folder)) == 4 and len(again) == 500 and again.tail.max() < 100
    wrong = replace(SMALL, triples=make_table("triples", dict.fromkeys(SLOTS, [9])))
    kg.write_graph(wrong, tmp_path / "wrong")
    for hurt, says in (
        (lambda: None, "row numbers 9 to 9 of a table of"),
        (lambda: (tmp_path / "wrong" / "types.arrow").write_bytes(b"x"), "has 1 bytes, not"),
        (lambda: (tmp_path / "wrong" / "graph.json").write_text("{"), "make it again"),
        (lambda: (tmp_path / "wrong" / "graph.json").unlink(), "not written completely"),
    ):
        hurt()
        with pytest.raises(ProbeError, match=says):
            kg.open_graph(tmp_path / "wrong")
    with pytest.raises(ProbeError, match="no graph 'nowhere'; allowed: atlas"):
        kg.check_source("nowhere")


def test_facts_as_a_graph():
    atlas = facts.atlas()
    graph = from_facts(atlas)
    names = graph.entities["entity"].to_numpy(), graph.relations["relation"].to_numpy()
    for column, known, numbers in (
        ("subject", names[0], graph.head), ("relation", names[1], graph.relation),
        ("object", names[0], graph.tail), ("start", graph.triples["start"].to_numpy(), slice(None)),
    ):  # fmt: skip
        assert known[numbers].tolist() == atlas.facts[column].tolist()
    kinds = graph.types.to_pandas().groupby("entity")["type"].agg(tuple)
    assert kinds.loc[5] == atlas.entities["types"][5]
    nameless = make([(0, 0, 1), (1, 0, 2)], 3, labels=["Paris", "France", None])
    assert askable(nameless)["entity without a label"].tolist() == [True, False]


# DBpedia

DBR, DBO = "http://dbpedia.org/resource/", "http://dbpedia.org/ontology/"
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"


def line(subject: str, relation: str, obj: str) -> str:
    """One line of the dump; short names are DBpedia's."""
    short = lambda name, prefix: name if "://" in name else prefix + name
    return f"<{short(subject, DBR)}> <{short(relation, DBO)}> <{short(obj, DBR)}> .\n"


OBJECTS = "".join(
    [
        line("!!!", "genre", "Dance-punk"),
        line("Beyonc%C3%A9", "genre", "Contemporary_R&B"),
        line("AC/DC", "http://xmlns.com/foaf/0.1/homepage", "http://www.acdc.com/"),
        line("!!!", "genre", "Dance-punk"),  # once more
        line("Nic_Offer__CareerStation__1", "team", "!!!"),  # a node in between
        line("Caf%E9", "genre", "!!!"),  # Latin-1, no UTF-8
        line("_", "genre", "!!!"),
        f'<{DBR}!!!> <{DBO}year> "1996"^^<http://www.w3.org/2001/XMLSchema#gYear> .\n',
        f"_:b0 <{DBO}genre> <{DBR}!!!> .\n",
        f'<{DBR}!!!> <{DBO}label> "no closing quote .\n',
        f"<{DBR}!!!> <{DBO}genre>\n",
        "# completed 2022-12-20T10:17:29Z\n",
        "\n",
        line("Sydney", "country", "Australia"),
    ]
)


def test_a_dump_of_dbpedia_by_hand(tmp_path):
    (tmp_path / "objects.ttl").write_text(OBJECTS)
    rows = [("!!!", "Band"), ("AC/DC", "Band"), ("Nobody", "Person"), ("Sydney", "City")]
    types = "".join(line(e, RDF, DBO + kind) for e, kind in rows)
    (tmp_path / "instance-types_lang=en.ttl").write_text(types)
    graph, _ = load_graph(str(tmp_path / "objects.ttl"), tmp_path / "kg")
    names = graph.entities["label"].to_pylist()
    assert [(names[h], names[t]) for h, t in zip(graph.head, graph.tail, strict=True)] == [
        ("!!!", "Dance-punk"),
        ("Beyoncé", "Contemporary R&B"),
        ("AC/DC", "http://www.acdc.com/"),
        ("Sydney", "Australia"),
    ]
    assert graph.relations["label"].to_pylist() == ["genre", "homepage", "country"]
    left_out = {"malformed": 2, "not between IRIs": 2, "broken escape": 1, "empty name": 1}
    left_out |= {"dummy entity": 1, "duplicate": 1}  # with 4 kept: all 12 statements
    assert graph.about["counts"] == left_out | {"triples": 4, "types: left out": 1}
    types = [(names[row["entity"]], row["type"]) for row in graph.types.to_pylist()]
    assert types == [("!!!", "Band"), ("AC/DC", "Band"), ("Sydney", "City")]
    for iri, name in (("50%25_Off", "50% Off"), ("Mercury_(planet)", "Mercury (planet)")):
        assert entity_name(DBR + iri) == name


def test_a_broken_line_costs_only_itself_and_half_a_file_is_refused(tmp_path):
    """Left to itself pyoxigraph reads on to the end of the file for the closing quote."""
    content = line("A", "r", "B") + f'<{DBR}A> <{DBO}r> "no end\n'
    content += "".join(line(f"E{n}", "r", "B") for n in range(5000))
    path = tmp_path / "objects.ttl"
    path.write_text(content)
    found, _, counts = scan(damage(path, "bz2"))
    assert len(found) == 5001 and counts == {"malformed": 1}
    for kind in ("half gz", "no gz", "missing"):
        path.write_text(content)
        with pytest.raises(ProbeError, match="objects.ttl.*(cannot be read|no such file)"):
            scan(damage(path, kind))
    path.write_text("# nothing\n")
    with pytest.raises(ProbeError, match="no triples"):
        read_dbpedia(path, tmp_path / "kg")
    assert not (tmp_path / "kg").exists()
