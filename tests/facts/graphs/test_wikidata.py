"""The Wikidata dump: one item by hand, the quirks of the real format, and a plain json.loads loop as the judge."""

import copy
import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from probelib.errors import ProbeError
from probelib.facts.graphs.graph import RANKS, best_rank, labelled, to_facts
from probelib.facts.graphs.wikidata import BAD, date_text, entity, interval, read_wikidata
from probelib.facts.model import holds
from probelib.facts.validity import validity
from tests.facts.graphs.samples import item, plain, random_item, snak, statement, write_dump
from tests.conftest import examples


def dated(relation: str, value: int, rank: str = "normal", **dates) -> dict:
    """A statement with an item as value; dates such as P580="+1949-05-23T00:00:00Z"."""
    qualifiers = {p: [snak(p, time, "time") | {"hash": "0a"}] for p, time in dates.items()}
    return statement(snak(relation, value, "item"), "Q183", rank, qualifiers)


def day(date: str) -> str:
    return f"+{date}T00:00:00Z"


GERMANY = item(
    183,
    {
        "P31": [dated("P31", 6256)],
        "P36": [
            dated("P36", 64, "preferred", P580=day("1990-10-03")),
            dated("P36", 586, P580=day("1949-05-23"), P582=day("1990-10-03")),
            dated("P36", 1055, "deprecated"),
        ],
        "P166": [dated("P166", 35637, P585=day("2012-12-10"))],
        "P1082": [statement(snak("P1082", 83149300, "quantity"), "Q183")],
        "P1448": [statement(snak("P1448", "Bundesrepublik Deutschland", "monolingualtext"), "Q183")],
        "P1549": [statement({"snaktype": "somevalue", "property": "P1549", "datatype": "string"}, "Q183")],
    },
    {"en": "Germany", "de": "Deutschland"},
    {"en": ["FRG", "Federal Republic of Germany"], "de": ["BRD"]},
    {"en": "country in Central Europe"},
    ("enwiki",),
)
BERLIN = item(64, {"P17": [dated("P17", 183)]}, {"mul": "Berlin"}, {"mul": ["Berlin, Germany"]})
CAPITAL = {
    "type": "property",
    "datatype": "wikibase-item",
    "id": "P36",
    "labels": {"en": {"language": "en", "value": "capital"}},
}
CAPITAL |= {"descriptions": {}, "aliases": {}, "claims": {}, "lastrevid": 1}
LEXEME = {
    "type": "lexeme",
    "id": "L1",
    "lemmas": {"en": {"language": "en", "value": "first"}},
    "claims": {},
    "forms": [],
}


@pytest.fixture
def germany(tmp_path):
    return read_wikidata(write_dump([GERMANY, LEXEME, BERLIN, CAPITAL], tmp_path / "dump.json"), tmp_path / "kg")


def rows(graph) -> list[tuple]:
    """(subject, relation, object, rank, start, end) of all triples, by their keys."""
    entities, relations = graph.entities["entity"].to_pylist(), graph.relations["relation"].to_pylist()
    columns = (graph.triples[name].to_pylist() for name in ("rank", "start", "end"))
    ends = zip(graph.head, graph.relation, graph.tail, *columns, strict=True)
    return [(entities[h], relations[r], entities[t], *more) for h, r, t, *more in ends]


def test_one_country_by_hand(germany):
    assert rows(germany) == [
        ("Q183", "P31", "Q6256", "normal", "", ""),
        ("Q183", "P36", "Q64", "preferred", "1990-10-03", ""),
        ("Q183", "P36", "Q586", "normal", "1949-05-23", "1990-10-03"),
        ("Q183", "P36", "Q1055", "deprecated", "", ""),
        ("Q183", "P166", "Q35637", "normal", "2012-12-10", "2012-12-10"),
        ("Q64", "P17", "Q183", "normal", "", ""),
    ]
    assert germany.entities.to_pylist()[:2] == [
        {"entity": "Q183", "label": "Germany", "aliases": ["FRG", "Federal Republic of Germany"]},
        {"entity": "Q64", "label": "Berlin", "aliases": ["Berlin, Germany"]},
    ]
    assert germany.entities["entity"].to_pylist()[2:] == ["Q586", "Q1055", "Q6256", "Q35637"]
    assert germany.entities["label"].null_count == 4
    assert {r["relation"]: r["label"] for r in germany.relations.to_pylist()}["P36"] == "capital"
    assert germany.types.to_pylist() == [{"entity": 0, "type": "Q6256"}]
    assert germany.about["counts"] == {
        "items": 2,
        "properties": 1,
        "other kinds": 1,
        "other values": 2,
        "no value": 1,
        "dates not exact": 0,
        "entity given twice": 0,
        "other relations": 0,
        "triples": 6,
        "entities": 6,
        "entities only mentioned": 4,
    }


def test_ranks_and_times_select(germany):
    assert best_rank(germany).tolist() == [True, True, False, False, True, True]
    start, end = (germany.triples[name].to_pylist() for name in ("start", "end"))
    at = validity(start, end, "1970-01-01", "2021-01-04")
    assert at.tolist() == ["unknown", "invalid", "valid", "unknown", "invalid", "unknown"]


def test_chosen_relations_and_packings(tmp_path):
    for name in ("dump.json.gz", "dump.json.bz2"):
        dump = write_dump([GERMANY, BERLIN, CAPITAL], tmp_path / name)
        graph = read_wikidata(dump, tmp_path / name.replace(".", ""), ["P36"])
        assert [row[:3] for row in rows(graph)] == [
            ("Q183", "P36", "Q64"),
            ("Q183", "P36", "Q586"),
            ("Q183", "P36", "Q1055"),
        ]
        assert graph.entities.to_pylist()[:2] == [
            {"entity": "Q183", "label": "Germany", "aliases": ["FRG", "Federal Republic of Germany"]},
            {"entity": "Q64", "label": "Berlin", "aliases": ["Berlin, Germany"]},
        ]
        assert graph.about["counts"]["other relations"] == 3 and graph.types.num_rows == 1  # P31 still gives the types
        assert graph.relations.to_pylist() == [{"relation": "P36", "label": "capital"}]
    for wrong in (["36"], "P36"):
        with pytest.raises(ProbeError, match="allowed"):
            read_wikidata(dump, tmp_path / "kg", wrong)


def test_small_parts_become_the_tidy_frames(germany):
    chosen = labelled(germany)
    assert chosen.tolist() == [False, True, False, False, False, True]
    small = to_facts(germany, chosen)
    assert small.facts.values.tolist() == [
        ["P36:Q183:Q64", "P36", "Q183", "Q64", "1990-10-03", ""],
        ["P17:Q64:Q183", "P17", "Q64", "Q183", "", ""],
    ]
    assert small.relations["name"].tolist() == ["P17", "capital"]
    assert small.entities.set_index("entity").loc["Q183", ["wikidata", "types"]].tolist() == ["Q183", ("Q6256",)]


@pytest.mark.parametrize(
    ("time", "precision", "text"),
    [
        ("+1949-05-23T00:00:00Z", 11, "1949-05-23"),
        ("+1949-05-00T00:00:00Z", 10, "1949-05"),
        ("+1949-00-00T00:00:00Z", 9, "1949"),
        ("+1949-01-01T00:00:00Z", 9, "1949"),  # older dumps fill up with ones
        ("+1949-05-00T00:00:00Z", 11, "1949-05"),
        ("+00000001949-05-23T00:00:00Z", 11, "1949-05-23"),
        ("-0044-03-15T00:00:00Z", 11, "-44-03-15"),
        ("+1900-00-00T00:00:00Z", 7, "?"),  # a century
        ("-4540000000-00-00T00:00:00Z", 3, "?"),
        ("+2021-02-30T00:00:00Z", 11, "?"),
        ("+1970-01-01T00:00:00Z", 14, "1970-01-01"),
    ],
)
def test_dates_by_hand(time, precision, text):
    assert date_text(time, precision) == text


def test_intervals_by_hand():
    known = [snak("P580", day("1949-05-23"), "time")]
    none, some = [{"snaktype": "novalue"}], [{"snaktype": "somevalue"}]
    assert interval({"P580": known}) == ("1949-05-23", "")
    assert interval({"P585": known}) == ("1949-05-23", "1949-05-23")
    assert interval({"P580": known, "P582": none, "P585": some}) == ("1949-05-23", "")
    assert interval({"P580": known, "P582": some}) == ("1949-05-23", "?")
    assert interval({"P582": known + known}) == ("", "?")  # two ends: no one interval


@pytest.mark.parametrize(
    ("date", "precision", "term"),
    [
        ("2005-00-00", 9, ("2005", "2005-12-31")),
        ("2004-02-00", 10, ("2004-02", "2004-02-29")),
        ("1913-02-19", 11, ("1913-02", "1913-02-19")),
        ("2005-00-00", 8, ("?", "?")),
    ],
)
def test_a_term_within_one_year_is_over(date, precision, term):
    """One season with a club: alike, start and end would say that it holds for ever."""
    both = [snak("P580", day(date), "time")]
    both[0]["datavalue"]["value"]["precision"] = precision
    assert interval({"P580": both, "P582": both}) == term
    assert not holds(pd.DataFrame([term], columns=["start", "end"])).any()
    assert validity([term[0]], [term[1]], "2020-01-01", "2020-01-01") == ["unknown" if term[0] == "?" else "invalid"]


# Quirks of the real format, and bad input


def test_old_dumps_write_empty_maps_as_lists_and_ids_as_numbers(tmp_path):
    old = copy.deepcopy(GERMANY) | {"aliases": [], "descriptions": [], "sitelinks": []}
    for statements in old["claims"].values():
        for one in statements:
            if one["mainsnak"].get("datatype") == "wikibase-item":
                del one["mainsnak"]["datavalue"]["value"]["id"]
    empty = item(5, [], [], {}) | {"labels": [], "aliases": []}
    graph = read_wikidata(write_dump([old, empty], tmp_path / "old.json"), tmp_path / "old")
    new = read_wikidata(write_dump([GERMANY], tmp_path / "new.json"), tmp_path / "new")
    assert rows(graph) == rows(new) and "malformed" not in graph.about["counts"]


def test_what_is_wrong_is_counted_and_named(tmp_path):
    dump = write_dump([GERMANY, GERMANY, BERLIN], tmp_path / "dump.json")
    lines = dump.read_text().split("\n")
    broken = [
        lines[1][:-40],
        '{"type":"item"}',
        "[1]",
        '"text"',
        "{",
        lines[3].replace('"rank":"normal"', '"rank":"best"'),
    ]
    dump.write_text("\n".join([*lines[:3], *broken, *lines[3:]]))
    graph = read_wikidata(dump, tmp_path / "kg")
    assert graph.about["counts"]["malformed"] == 6 and graph.about["counts"]["entity given twice"] == 1
    assert graph.about["examples"][0].startswith("line 4: ") and len(graph.about["examples"]) == 5
    assert len(graph) == 6 and graph.entities["entity"].to_pylist().count("Q183") == 1


@pytest.mark.parametrize("key", ["Q0", "Q99999999999", "q5", "Q", "L5", "5"])
def test_ids_that_are_none_make_a_line_malformed(tmp_path, key):
    line = json.dumps(BERLIN, separators=(",", ":"))
    broken = [line.replace('"Q64"', f'"{key}"'), line.replace('"Q183"', f'"{key}"'), line.replace('"P17"', f'"{key}"')]
    (tmp_path / "dump.json").write_text("\n".join([line, *broken]))
    graph = read_wikidata(tmp_path / "dump.json", tmp_path / "kg")
    assert len(graph) == 1 and graph.about["counts"]["malformed"] == 3


def test_the_first_of_two_counts(tmp_path):
    second = item(183, {"P36": [dated("P36", 1)]}, {"en": "Second"}, {})
    graph = read_wikidata(write_dump([GERMANY, second], tmp_path / "dump.json"), tmp_path / "kg")
    assert len(graph) == 5 and graph.entities["label"].to_pylist()[0] == "Germany"


def test_a_dump_without_its_end_is_reported(tmp_path):
    dump = write_dump([GERMANY, BERLIN], tmp_path / "dump.json")
    dump.write_text(dump.read_text().rstrip("\n]"))
    with pytest.warns(UserWarning, match="does not end with"):
        assert len(read_wikidata(dump, tmp_path / "kg")) == 6


@pytest.mark.parametrize("content", [b"", b"[\n]\n", b"no json\n", b"\xff\xfe[", json.dumps(LEXEME).encode()])
def test_a_dump_without_triples_is_refused_and_leaves_nothing(tmp_path, content):
    (tmp_path / "dump.json").write_bytes(content)
    with pytest.raises(ProbeError, match="no triples"):
        read_wikidata(tmp_path / "dump.json", tmp_path / "kg")
    assert [path.name for path in (tmp_path / "kg").iterdir()] == [".lock"]
    with pytest.raises(ProbeError):
        read_wikidata(tmp_path, tmp_path / "kg")
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(ProbeError, match="file"):
        read_wikidata(tmp_path / "dump.json", tmp_path / "file")


# The plain loop


def same(dump, folder) -> None:
    """The graph holds just what the plain loop keeps."""
    graph, (entities, triples) = read_wikidata(dump, folder), plain(dump)
    assert rows(graph) == triples
    known = {key: (label, aliases) for key, label, aliases in entities}
    for row in graph.entities.to_pylist():
        label, aliases = known.get(row["entity"], (None, []))
        assert (row["label"], row["aliases"] or []) == (label, aliases)


def test_equal_to_the_plain_loop_on_generated_items(tmp_path):
    generator = np.random.default_rng(0)
    dump = write_dump([random_item(generator, number) for number in range(1, 300)], tmp_path / "dump.json")
    same(dump, tmp_path / "kg")


# texts with everything that could mislead a search for keys
odd = st.lists(
    st.sampled_from(
        [
            '"',
            "\\",
            "}]",
            '"}',
            "{",
            ",",
            ",",
            '"en":',
            '"mainsnak":',
            ',"claims":',
            ',"sitelinks":',
            "é",
            "\u2028",
            "😀",
            "a",
            "\n",
        ]
    ),
    max_size=6,
).map("".join)
ids = st.integers(1, 99)
times = st.sampled_from([day("1949-05-23"), day("1990-00-00"), "-0044-03-15T00:00:00Z"])
qualifiers = st.dictionaries(
    st.sampled_from(["P580", "P582", "P585", "P1319"]),
    st.lists(times.map(lambda t: snak("P580", t, "time")), min_size=1, max_size=2),
    max_size=3,
)
values = st.one_of(
    st.builds(snak, st.just("P17"), ids, st.just("item")),
    st.builds(snak, st.just("P18"), odd, st.sampled_from(["string", "monolingualtext"])),
    st.builds(snak, st.just("P19"), ids, st.just("quantity")),
    st.builds(snak, st.just("P569"), times, st.just("time")),
    st.sampled_from(
        [{"snaktype": kind, "property": "P20", "datatype": "wikibase-item"} for kind in ("somevalue", "novalue")]
    ),
)
statements = st.builds(
    lambda main, rank, dates, source: statement(
        main, "Q1", rank, dates, [{"snaks": {"P1": [source]}, "snaks-order": ["P1"]}]
    ),
    values,
    st.sampled_from(RANKS),
    qualifiers,
    values,
)
languages = st.sampled_from(["en", "mul", "de", "en-gb"])
items = st.builds(
    item,
    ids,
    st.dictionaries(st.sampled_from(["P17", "P18", "P36"]), st.lists(statements, min_size=1, max_size=3), max_size=3),
    st.dictionaries(languages, odd, max_size=3),
    st.dictionaries(languages, st.lists(odd, min_size=1, max_size=2), max_size=3),
    st.dictionaries(languages, odd, max_size=3),
    st.sampled_from([(), ("enwiki",)]),
)


def dumped(one: dict, ascii_: bool, shuffle) -> bytes:
    """An item as a line, its keys in the real order or (``shuffle``) in any other."""

    def turn(data):
        if isinstance(data, dict):
            keys = list(data)
            if shuffle is not None:
                shuffle.shuffle(keys)
            return {key: turn(data[key]) for key in keys}
        return [turn(part) for part in data] if isinstance(data, list) else data

    return json.dumps(turn(one), separators=(",", ":"), ensure_ascii=ascii_).encode()


@settings(max_examples=examples(400), deadline=None)
@given(items, st.booleans(), st.none() | st.randoms(use_true_random=False))
def test_neither_the_order_of_keys_nor_escapes_matter(one, ascii_, shuffle):
    plainly, again = entity(dumped(one, True, None)), entity(dumped(one, ascii_, shuffle) + b",\r")
    for found in (plainly, again):
        found.statements.sort(key=repr)  # relations stand in any order
    assert again == plainly


@settings(max_examples=examples(200), deadline=None)
@given(items, st.data())
def test_a_line_that_is_cut_off_is_never_taken(one, data):
    line = dumped(one, True, None)
    cut = line[: data.draw(st.integers(0, len(line) - 1))]
    with pytest.raises(BAD):
        entity(cut)


@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(items, min_size=1, max_size=4, unique_by=lambda one: one["id"]))
def test_equal_to_the_plain_loop_on_any_items(tmp_path, some):
    some.append(item(100, {"P17": [dated("P17", 1)]}, {}, {}))
    same(write_dump(some, tmp_path / "dump.json"), tmp_path / "kg")


nonsense = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | values,
    lambda x: (
        st.lists(x, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "type",
                    "id",
                    "labels",
                    "aliases",
                    "claims",
                    "en",
                    "P36",
                    "mainsnak",
                    "datavalue",
                    "value",
                    "qualifiers",
                    "P580",
                ]
            ),
            x,
            max_size=4,
        )
    ),
    max_leaves=8,
)


@settings(max_examples=examples(250), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.binary(max_size=200)
    | nonsense.map(lambda x: json.dumps(x).encode())
    | st.tuples(items, st.sampled_from(list(GERMANY)), nonsense).map(lambda x: dumped(x[0] | {x[1]: x[2]}, True, None))
)
def test_any_bytes_give_a_graph_or_the_kits_own_error(tmp_path, content):
    (tmp_path / "dump.json").write_bytes(b"\n" + content + b"\n")
    try:
        graph = read_wikidata(tmp_path / "dump.json", tmp_path / "kg")
    except ProbeError:
        return
    assert len(graph) == graph.about["counts"]["triples"] and len(rows(graph)) == len(graph)
