"""A whole graph through a judge: statements, what is left out, and that runs resume exactly."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from probelib import lm
from probelib.errors import ProbeError
from probelib.facts.graphs.graph import SLOTS, Graph, make_table
from probelib.grapheval import judge, scores, whole_graph
from tests.facts.samples import synthetic

NAMES = ["AC/DC", "Beyoncé", "100% [Y] {tail}", "<http://www.u2.com/>", "東京"]
NONE = pd.DataFrame(columns=["relation", "template"])
TEMPLATES = ["[X] likes [Y].", "{tail} saw {head} first."]
TEMPLATES = pd.DataFrame({"relation": ["r0", "birth/place"], "template": TEMPLATES})


def odd(triples=((0, 0, 1), (1, 1, 2), (2, 0, 2), (3, 0, 4), (4, 1, 0))) -> Graph:
    """Slashes, percent signs, slots in names, an address, other scripts; a self loop."""
    columns = dict(zip(SLOTS, np.array(triples).T, strict=True))
    entities = {"entity": [f"e{i}" for i in range(6)], "label": [*NAMES, None]}
    relations = {"relation": ["r0", "r1"], "label": ["likes", "birth/place"]}
    types = {"entity": [0], "type": ["band"]}
    tables = {"triples": columns, "entities": entities, "relations": relations, "types": types}
    return Graph(*(make_table(name, data) for name, data in tables.items()), {"source": "odd"})


def statements(kg) -> list[str]:
    triples = pd.DataFrame({slot: getattr(kg.graph, slot) for slot in SLOTS})
    return whole_graph.to_statements(kg, triples)


@pytest.fixture(scope="module")
def reader() -> judge.Reader:
    return judge.Reader(lm.load("atlas-neox-0.15m"))


def trained(reader, seed=0) -> judge.Judge:
    generator, about = np.random.default_rng(seed), {"states": reader.identity()}
    states = generator.normal(size=(60, 64)).astype(np.float32)
    answers = generator.integers(0, 3, 60)
    return judge.train(states, answers, np.ones(60), epochs=1, seed=seed, about=about)


def test_names_stay_as_they_are():
    one = whole_graph.verbalize(odd(), TEMPLATES)
    assert statements(one) == [
        "AC/DC likes Beyoncé.",
        "100% [Y] {tail} saw Beyoncé first.",
        "100% [Y] {tail} likes 100% [Y] {tail}.",
        "<http://www.u2.com/> likes 東京.",
        "AC/DC saw 東京 first.",
    ]
    assert one.coverage == 1 and one.left_out.empty


def test_a_part_of_a_graph_is_corrupted_into_nothing_that_the_whole_says():
    """Of hard corruptions, many would be true triples that were not drawn."""
    atlas = whole_graph.load_graph("atlas")
    whole, part = whole_graph.verbalize(*atlas), whole_graph.verbalize(*atlas, n_triples=1000)
    said = set(statements(whole))
    sample = whole_graph.sample_statements(part, 1000, hard=True)
    assert len(part.graph) == 1000 and part.coverage == whole.coverage
    assert said.issuperset(sample["text"][sample["true"]])
    assert said.isdisjoint(sample["text"][~sample["true"]])


def test_triples_that_cannot_be_said_are_named_and_counted():
    one = whole_graph.verbalize(odd(((0, 0, 1), (1, 1, 2), (0, 0, 5))), TEMPLATES.head(1))
    reasons = [["relation without a template", "r1", 1], ["entity without a label", "r0", 1]]
    assert one.left_out.values.tolist() == reasons
    assert len(one.graph) == 1 and one.coverage == pytest.approx(1 / 3)
    assert one.graph.relations.num_rows == 1
    by_rule = whole_graph.verbalize(odd(), TEMPLATES.head(1), whole_graph.DEFAULT_TEMPLATE)
    assert by_rule.coverage == 1 and by_rule.templates[1] == "The birth/place of [X] is [Y]."


def test_what_is_over_is_neither_true_nor_false():
    columns = {"head": [0, 0, 2, 3], "relation": [0] * 4, "tail": [1, 2, 4, 4]}
    columns |= {"start": [""] * 4, "end": ["", "", "", "1990"]}
    one = whole_graph.verbalize(replace(odd(), triples=make_table("triples", columns)), TEMPLATES)
    assert one.left_out.set_index("reason")["triples"].to_dict() == {"holds no longer": 1}
    assert one.coverage == pytest.approx(3 / 4) and list(one.graph.tail) == [1, 2, 4]
    texts = whole_graph.to_statements(one, pd.DataFrame(columns))
    said = whole_graph.sample_statements(one, 3, n_corrupted=20)
    assert set(said["text"][said["true"]]) == set(texts[:3]) and len(said) > 10
    assert not set(said["text"][~said["true"]]) & set(texts)


def test_a_changed_judge_graph_or_seed_is_another_run(reader, tmp_path):
    one, less = (whole_graph.verbalize(odd(*t), TEMPLATES) for t in ((), (((0, 0, 1),),)))
    first, second, by = {"a": trained(reader)}, {"a": trained(reader, 1)}, {"a": reader}
    runs = [(first, one, {}), (second, one, {}), (first, one, {"seed": 1}), (first, less, {})]
    parts = [whole_graph.judge_graph(by, j, kg, tmp_path, **how)["a"] for j, kg, how in runs]
    assert len({own[0].path.parent for own in parts}) == 4
    other = {"a": judge.train(np.zeros((2, 64), np.float32), [0, 1], [1, 0], epochs=1,
                              about={"states": {"model": "other"}})}  # fmt: skip
    with pytest.raises(ProbeError, match="trained on states of other"):
        whole_graph.judge_graph(by, other, one, tmp_path)


def test_a_resumed_run_ends_with_the_same_bytes(reader, tmp_path):
    kg = whole_graph.verbalize(synthetic(400, seed=2), NONE, whole_graph.DEFAULT_TEMPLATE)
    run = lambda out, **how: whole_graph.judge_graph(
        {"j": reader}, {"j": trained(reader)}, kg, tmp_path / out, size=50, **how
    )["j"]
    parts = run("stopped", most=3)
    assert [part.finished() for part in parts] == [True] * 3 + [False] * 5
    with pytest.raises(ProbeError, match="not finished"):
        whole_graph.graph_answers({"j": parts})
    finished = [part.path.stat().st_mtime_ns for part in parts[:3]]
    pairs = list(zip(run("stopped"), run("whole"), strict=True))
    assert [part.path.stat().st_mtime_ns for part in parts[:3]] == finished  # nothing is done twice
    assert all(one.path.read_bytes() == other.path.read_bytes() for one, other in pairs)


def test_labels_and_the_whole_graph_speak_of_the_same_statements(reader, tmp_path):
    one = whole_graph.verbalize(synthetic(300, seed=3), NONE, whole_graph.DEFAULT_TEMPLATE)
    sample = whole_graph.sample_statements(one, 40, n_corrupted=2, seed=5)
    assert len(sample) == 120 and sample["true"].sum() == 40 and sample["prompt"].is_unique
    split = sample.groupby("triple")["split"].agg(set)  # a triple and its corruptions stay together
    assert split.map(len).max() == 1 and (split == {"validation"}).sum() == 12
    own, how = trained(reader), {"n_corrupted": 2, "seed": 5}
    runs = whole_graph.judge_graph({"a": reader}, {"a": own}, one, tmp_path, **how)
    whole = whole_graph.graph_answers(runs).set_index(["triple", "negative"])
    mine = judge.predict(own, reader.states(sample["text"].tolist())[0], sample["true"])
    there = whole.loc[list(zip(sample["triple"], sample["negative"], strict=True)), "probability"]
    assert there.to_numpy() == pytest.approx(mine.max(axis=1), abs=1e-4)
    prompts = scores.statement_prompts(sample, reader.model)
    assert set(prompts["relation"]) == {"statements 0"} and prompts["fact"].is_unique
    assert prompts["text"][0] == f"Is this statement true? {sample['text'][0]}\nAnswer:"
    assert len(whole_graph.sample_statements(one, 301)) == 600  # all that there are


def test_graphs_by_name(tmp_path):
    atlas, templates = whole_graph.load_graph("atlas")
    assert set(templates["relation"]) >= set(atlas.relations["relation"].to_pylist())
    dump, link = tmp_path / "some.nt", "<http://dbpedia.org/{}/{}>"
    line = lambda *ends: [link.format("resource", end) for end in ends]
    pairs = [line("AC/DC", "Beyonc%C3%A9"), line("Malm%C3%B6", "Malm%C3%B6")]
    rows = [f"{head} {link.format('ontology', 'likes')} {tail} .\n" for head, tail in pairs]
    dump.write_text("".join(rows))
    kg = whole_graph.open_verbalized(str(dump), tmp_path / "graph")
    assert statements(kg) == ["The likes of AC/DC is Beyoncé.", "The likes of Malmö is Malmö."]
    assert len(whole_graph.load_graph(str(tmp_path / "graph"))[0]) == 2
    with pytest.raises(ProbeError, match="give folder"):
        whole_graph.load_graph(str(dump))


def test_an_entity_without_page_views_has_no_popularity_and_exposures_are_the_atlases(tmp_path):
    """P is NaN where no end of a triple is in the file; a 0 in the file is a 0."""
    (tmp_path / "views.json").write_text(json.dumps({"France": 100, "Paris": 0}))
    kg = whole_graph.verbalize(*whole_graph.load_graph("atlas"), n_triples=2000)
    p = whole_graph.about_triples(kg, "atlas", str(tmp_path / "views.json"))["P"]
    names = np.array(kg.graph.entities["label"].to_pylist(), dtype=object)
    views = pd.DataFrame({end: names[getattr(kg.graph, end)] for end in ("head", "tail")})
    views = views.map({"France": 100.0, "Paris": 0.0}.get).astype(float).mean(axis=1)
    pd.testing.assert_series_equal(p, views, check_names=False)
    assert 0 < p.notna().sum() < len(p)
    other = whole_graph.verbalize(synthetic(300), NONE, whole_graph.DEFAULT_TEMPLATE)
    assert list(whole_graph.about_triples(other, "synthetic:300")) == ["D"]
