"""DBpedia: dumps in exactly the real format, names and filters by hand, and pyoxigraph as the reference."""

import bz2
import gzip
from concurrent.futures import ThreadPoolExecutor

import pyoxigraph
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from probelib.errors import ProbeError
from probelib.facts.graphs.dbpedia import entity_name, read_dbpedia, scan
from probelib.facts.graphs.graph import relation_types, synthetic, to_facts
from tests.facts.graphs.samples import write_ntriples
from tests.conftest import examples

DBR, DBO = "http://dbpedia.org/resource/", "http://dbpedia.org/ontology/"
TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"


def line(subject: str, relation: str, obj: str) -> str:
    """One line of the dump; short names are DBpedia's."""
    short = lambda name, prefix: name if "://" in name else prefix + name
    return f"<{short(subject, DBR)}> <{short(relation, DBO)}> <{short(obj, DBR)}> .\n"


OBJECTS = "".join(
    [
        line("!!!", "bandMember", "Nic_Offer"),
        line("!!!", "genre", "Dance-punk"),
        line("Beyonc%C3%A9", "genre", "Contemporary_R&B"),
        line("Björk", "birthPlace", "Reykjavík"),
        line("AC/DC", "hometown", "Sydney"),
        line("Mercury_(planet)", "http://www.w3.org/2000/01/rdf-schema#seeAlso", "Mercury_(planet)"),  # a self loop
        line("AC/DC", "http://xmlns.com/foaf/0.1/homepage", "http://www.acdc.com/"),
        line("!!!", "genre", "Dance-punk"),  # once more
        line("Nic_Offer__CareerStation__1", "team", "!!!"),  # a node in between
        line("Nic_Offer__bandMember__x", "team", "!!!"),  # one that only the rule for relations finds
        line("Caf%E9", "genre", "!!!"),  # Latin-1, no UTF-8
        line("", "genre", "!!!"),
        line("_", "genre", "!!!"),
        f'<{DBR}!!!> <{DBO}year> "1996"^^<http://www.w3.org/2001/XMLSchema#gYear> .\n',
        f"_:b0 <{DBO}genre> <{DBR}!!!> .\n",
        f"<{DBR}!!!> <{DBO}genre> <{DBR}Dance punk> .\n",  # a blank: five tokens
        f'<{DBR}!!!> <{DBO}label> "no closing quote .\n',
        f"<{DBR}Caf\\u00e> <{DBO}genre> <{DBR}!!!> .\n",  # a broken escape of N-Triples
        f"<{DBR}100%_Pure> <{DBO}genre> <{DBR}!!!> .\n",  # a broken escape of IRIs
        f"<{DBR}!!!> <{DBO}genre>\n",
        "# completed 2022-12-20T10:17:29Z\n",
        "\n",
        line("Sydney", "country", "Australia"),
    ]
)


def write(folder, content: str | bytes = OBJECTS, name: str = "mappingbased-objects_lang=en.ttl.bz2"):
    content = content.encode() if isinstance(content, str) else content
    pack = {".bz2": bz2.compress, ".gz": gzip.compress}.get(f".{name.rsplit('.', 1)[-1]}", bytes)
    (folder / name).write_bytes(pack(content))
    return folder / name


def triples(graph) -> list[tuple[str, str, str]]:
    """Labels of all triples."""
    entities, relations = graph.entities["label"].to_pylist(), graph.relations["label"].to_pylist()
    rows = zip(graph.head, graph.relation, graph.tail, strict=True)
    return [(entities[h], relations[r], entities[t]) for h, r, t in rows]


def test_names_filters_and_counts_by_hand(tmp_path):
    graph = read_dbpedia(write(tmp_path), tmp_path / "kg")
    assert triples(graph) == [
        ("!!!", "bandMember", "Nic Offer"),
        ("!!!", "genre", "Dance-punk"),
        ("Beyoncé", "genre", "Contemporary R&B"),
        ("Björk", "birthPlace", "Reykjavík"),
        ("AC/DC", "hometown", "Sydney"),
        ("Mercury (planet)", "seeAlso", "Mercury (planet)"),
        ("AC/DC", "homepage", "http://www.acdc.com/"),
        ("Nic Offer  bandMember  x", "team", "!!!"),
        ("Sydney", "country", "Australia"),
    ]
    assert graph.about["counts"] == {
        "malformed": 5,
        "literal": 1,
        "blank node": 1,
        "broken escape": 1,
        "empty name": 2,
        "dummy entity": 1,
        "duplicate": 1,
        "triples": 9,
        "dummy by relation": 1,
        "dummy entities by relation": 1,
        "shared label": 0,
    }
    assert [example.split(":")[0] for example in graph.about["examples"]] == [f"line {n}" for n in (16, 17, 18, 19, 20)]
    assert graph.entities["entity"].to_pylist()[:2] == [DBR + "!!!", DBR + "Nic_Offer"]
    statements = 21 - 1  # every line that is neither a comment nor empty: nothing is lost
    taken = {
        name: n for name, n in graph.about["counts"].items() if "by relation" not in name and name != "shared label"
    }
    assert sum(taken.values()) == statements + 1


@pytest.mark.parametrize(
    ("iri", "name"),
    [
        (DBR + "Nic_Offer", "Nic Offer"),
        (DBR + "Beyonc%C3%A9", "Beyoncé"),
        (DBR + "Beyoncé", "Beyoncé"),
        (DBR + "AC/DC", "AC/DC"),
        (DBR + "50%25_Off", "50% Off"),
        (DBR + "Mercury_(planet)", "Mercury (planet)"),
        (DBR + "Caf%E9", None),
        (DBR, ""),
        ("http://fr.dbpedia.org/resource/Orl%C3%A9ans", "Orléans"),
        ("http://www.acdc.com/", "http://www.acdc.com/"),
        ("http://example.org/a_b#c_d", "http://example.org/a_b#c_d"),
    ],
)
def test_names(iri, name):
    assert entity_name(iri) == name


def test_equal_names_are_different_entities(tmp_path):
    content = line("Beyonc%C3%A9", "genre", "R&B") + line("Beyoncé", "genre", "R&B") + line("A", "genre", "R&B")
    graph = read_dbpedia(write(tmp_path, content), tmp_path / "kg")
    assert graph.entities.num_rows == 4 and graph.about["counts"]["shared label"] == 2


@pytest.mark.parametrize("name", ["objects.nt", "objects.ttl.gz", "objects.ttl.bz2"])
def test_every_packing_gives_the_same_graph(tmp_path, name):
    graph = read_dbpedia(write(tmp_path, name=name), tmp_path / "kg")
    assert len(graph) == 9 and graph.about["source"] == f"dbpedia:{name}"


def test_crlf_byte_order_mark_tabs_and_no_last_line_end(tmp_path):
    content = "\ufeff" + line("A", "r", "B").replace("\n", "\r\n") + line("B", "r", "C").replace(" ", "\t")
    content += f"<{DBR}C><{DBO}r><{DBR}\\u00C9>."
    graph = read_dbpedia(write(tmp_path, content), tmp_path / "kg")
    assert triples(graph) == [("A", "r", "B"), ("B", "r", "C"), ("C", "r", "É")]
    assert "malformed" not in graph.about["counts"]


@pytest.mark.parametrize(
    "content", [b"", b"\xff\xfe<\x00", b"# nothing\n", b'{"a": 1}\n', line("A__1", "r", "B").encode()]
)
def test_a_file_without_triples_is_refused(tmp_path, content):
    with pytest.raises(ProbeError, match="no triples"):
        read_dbpedia(write(tmp_path, content, "objects.nt"), tmp_path / "kg")
    assert not (tmp_path / "kg").exists()


def test_a_broken_line_costs_only_itself(tmp_path):
    """Left to itself pyoxigraph reads on to the end of the file for the closing quote."""
    content = (
        line("A", "r", "B") + f'<{DBR}A> <{DBO}r> "no end\n' + "".join(line(f"E{n}", "r", "B") for n in range(5000))
    )
    found, _, counts, examples = scan(write(tmp_path, content))
    assert len(found) == 5001 and counts == {"malformed": 1} and examples[0].startswith("line 2: ")


# Types


def test_types_by_hand(tmp_path):
    content = [("!!!", "Band"), ("AC/DC", "Band"), ("Nic_Offer", "Person"), ("Sydney", "Place")]
    lines = [line(entity, TYPE, DBO + kind) for entity, kind in [*content, ("AC/DC", "Band"), ("Nobody", "Person")]]
    lines += [
        line("!!!", "http://www.w3.org/2000/01/rdf-schema#label", DBR + "x"),
        line("Sydney", TYPE, "http://schema.org/City"),
        line("Sydney", TYPE, "http://www.wikidata.org/entity/Q215380"),
    ]
    types = write(tmp_path, "".join(lines) + "garbage\n", "instance-types_lang=en_transitive.ttl.bz2")
    graph = read_dbpedia(write(tmp_path), tmp_path / "kg", [types])
    entities = graph.entities["label"].to_pylist()
    assert {(entities[row["entity"]], row["type"]) for row in graph.types.to_pylist()} == {
        ("!!!", "Band"),
        ("AC/DC", "Band"),
        ("Nic Offer", "Person"),
        ("Sydney", "Place"),
        ("Sydney", "City"),
    }
    assert {name: n for name, n in graph.about["counts"].items() if name.startswith("types")} == {
        "types: no statement between IRIs": 1,
        "types: not rdf:type": 1,
        "types: entity without triples": 1,
        "types: no class of DBpedia": 1,
    }
    usual = relation_types(graph).set_index("relation")
    assert usual.loc[DBO + "bandMember"].tolist() == ["Band", "Person"]
    assert usual.loc[DBO + "hometown"].tolist() == ["Band", "City"]  # a tie: the first in the alphabet
    assert usual.loc[DBO + "birthPlace"].tolist() == ["None", "None"]


# Properties


def test_a_generated_graph_comes_back(tmp_path):
    made = synthetic(3000, 500, 20)
    again = read_dbpedia(write_ntriples(made, tmp_path / "made.nt.gz"), tmp_path / "kg")
    keys = lambda graph: [
        (
            graph.entities["entity"][h].as_py(),
            graph.relations["relation"][r].as_py(),
            graph.entities["entity"][t].as_py(),
        )
        for h, r, t in zip(graph.head.tolist(), graph.relation.tolist(), graph.tail.tolist(), strict=True)
    ]
    assert keys(again) == keys(made) and again.about["counts"]["triples"] == 3000


def test_two_read_the_same_dump_at_the_same_time(tmp_path):
    """Two notebooks with one folder: each gets a whole graph."""
    dump = write_ntriples(synthetic(3000, 500, 20), tmp_path / "made.nt")
    with ThreadPoolExecutor(4) as pool:
        graphs = list(pool.map(lambda _: read_dbpedia(dump, tmp_path / "kg"), range(20)))
    assert [len(graph) for graph in graphs] == [3000] * 20


def test_small_parts_become_the_tidy_frames(tmp_path):
    graph = read_dbpedia(write(tmp_path), tmp_path / "kg")
    small = to_facts(graph, graph.relation == graph.relations["label"].to_pylist().index("genre"))
    assert small.label(small.facts["subject"]) == ["!!!", "Beyoncé"]
    assert small.relations["name"].tolist() == ["genre"] and small.relations["functional"].tolist() == [True]


part = st.text('ab_/%4é0(\\u"<> .#\t\r\x00\ud7ff', max_size=6) | st.text(max_size=3)
statement = st.one_of(
    st.builds(line, part, part, part),
    st.builds(lambda s, o: f'<{DBR}{s}> <{DBO}r> "{o}" .\n', part, part),
    st.builds(lambda s: f"_:{s} <{DBO}r> <{DBR}x> .\n", part),
    st.text(max_size=20).map(lambda text: text + "\n"),
    st.just(line("a", "r", "b")),
)


@settings(max_examples=examples(300), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(statement, max_size=8))
def test_reads_what_pyoxigraph_reads_of_every_line(tmp_path, statements):
    path = tmp_path / "any.nt"
    path.write_bytes("".join(statements).encode("utf-8", "surrogatepass"))
    expected, lost = [], 0
    for text in path.read_bytes().removeprefix(b"\xef\xbb\xbf").split(b"\n"):
        try:
            for quad in pyoxigraph.parse(text, format=pyoxigraph.RdfFormat.N_TRIPLES):
                if isinstance(quad.subject, pyoxigraph.NamedNode) and isinstance(quad.object, pyoxigraph.NamedNode):
                    expected.append((quad.subject.value, quad.predicate.value, quad.object.value))
                else:
                    lost += 1
        except SyntaxError:
            lost += 1
    found, iris, counts, _ = scan(path)
    assert [tuple(iris[i] for i in row) for row in found] == expected and counts.total() == lost


@settings(max_examples=examples(150), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=200) | st.lists(statement, max_size=5).map(lambda s: "".join(s).encode("utf-8", "replace")))
def test_any_bytes_give_a_graph_or_the_kits_own_error(tmp_path, content):
    path = write(tmp_path, content, "any.nt")
    try:
        graph = read_dbpedia(path, tmp_path / "kg", [path])
    except ProbeError:
        return
    assert len(graph) == graph.about["counts"]["triples"] and graph.head.max() < graph.entities.num_rows
