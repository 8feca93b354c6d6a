"""A whole graph through a judge: what is said, what is left out, and that a killed run ends with the same bytes."""

import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from probelib import lm
from probelib.errors import ProbeError
from probelib.facts.graphs.graph import SLOTS, Graph, make_table, synthetic
from probelib.grapheval import METRICS, eq2, judge, scores, whole_graph
from probelib.paths import ROOT

BASE = "atlas-neox-0.15m"
NAMES = ["AC/DC", "Beyoncé", "100% [Y] {tail}", "<http://www.u2.com/>", "東京"]


def odd(triples=((0, 0, 1), (1, 1, 2), (2, 0, 2), (3, 0, 4), (4, 1, 0))) -> Graph:
    """Slashes, percent signs, slots in names, an address, other scripts; (2, 0, 2) is a self loop."""
    columns = dict(zip(SLOTS, np.array(triples).T, strict=True))
    entities = {"entity": [f"e{i}" for i in range(6)], "label": [*NAMES, None]}
    relations = {"relation": ["r0", "r1"], "label": ["likes", "birth/place"]}
    types = {"entity": [0], "type": ["band"]}
    tables = {"triples": columns, "entities": entities, "relations": relations, "types": types}
    return Graph(*(make_table(name, data) for name, data in tables.items()), {"source": "odd"})


TEMPLATES = pd.DataFrame(
    {"relation": ["r0", "birth/place"], "template": ["[X] likes [Y].", "{tail} saw {head} first."]}
)


@pytest.fixture(scope="module")
def reader() -> judge.Reader:
    return judge.Reader(lm.load(BASE))


def trained(reader, seed=0) -> judge.Judge:
    generator = np.random.default_rng(seed)
    states = generator.normal(size=(60, 64)).astype(np.float32)
    return judge.train(
        states, generator.integers(0, 3, 60), np.ones(60), epochs=1, seed=seed, about={"states": reader.identity()}
    )


def test_names_stay_as_they_are():
    one = whole_graph.verbalize(odd(), TEMPLATES)
    triples = pd.DataFrame({slot: getattr(one.graph, slot) for slot in SLOTS})
    assert whole_graph.to_statements(one, triples) == [
        "AC/DC likes Beyoncé.",
        "100% [Y] {tail} saw Beyoncé first.",
        "100% [Y] {tail} likes 100% [Y] {tail}.",
        "<http://www.u2.com/> likes 東京.",
        "AC/DC saw 東京 first.",
    ]
    assert one.coverage == 1 and one.left_out.empty


def test_a_part_of_a_graph_is_corrupted_into_nothing_that_the_whole_says():
    """Of hard corruptions, another tail of the relation, many would be true triples that were not drawn."""
    atlas = whole_graph.load_graph("atlas")
    whole, part = whole_graph.verbalize(*atlas), whole_graph.verbalize(*atlas, n_triples=2000)
    said = set(whole_graph.to_statements(whole, pd.DataFrame({slot: getattr(whole.graph, slot) for slot in SLOTS})))
    sample = whole_graph.sample_statements(part, 2000, hard=True)
    assert len(part.graph) == 2000 and part.coverage == whole.coverage and sample["true"].sum() == 2000
    assert said.issuperset(sample["text"][sample["true"]]) and said.isdisjoint(sample["text"][~sample["true"]])
    with pytest.raises(ProbeError, match="n_triples=-5"):
        whole_graph.verbalize(*atlas, n_triples=-5)


def test_triples_without_a_template_are_named_and_counted():
    one = whole_graph.verbalize(odd(((0, 0, 1), (1, 1, 2), (0, 0, 5))), TEMPLATES.head(1))
    assert one.left_out.to_dict("records") == [
        {"reason": "relation without a template", "relation": "r1", "triples": 1},
        {"reason": "entity without a label", "relation": "r0", "triples": 1},
    ]
    assert len(one.graph) == 1 and one.coverage == pytest.approx(1 / 3) and one.graph.relations.num_rows == 1
    by_rule = whole_graph.verbalize(odd(), TEMPLATES.head(1), whole_graph.DEFAULT_TEMPLATE)
    assert by_rule.coverage == 1 and by_rule.templates[1] == "The birth/place of [X] is [Y]."
    with pytest.raises(ProbeError, match="none of the 5 triples can be evaluated.*without a template': 5"):
        whole_graph.verbalize(odd(), TEMPLATES.head(0))
    with pytest.raises(ProbeError, match="must hold one"):
        whole_graph.verbalize(odd(), TEMPLATES.assign(template="The country {head} is."))


def test_what_is_deprecated_or_over_is_neither_true_nor_false():
    """Wikidata's truthy statements are evaluated; the others are counted, and no corruption is one of them."""
    columns = {"head": [0, 0, 0, 2, 3], "relation": [0] * 5, "tail": [1, 2, 3, 4, 4]}
    columns |= {"rank": ["preferred", "normal", "deprecated", "normal", "normal"], "start": [""] * 5}
    graph = replace(odd(), triples=make_table("triples", columns | {"end": ["", "", "", "", "1990"]}))
    one = whole_graph.verbalize(graph, TEMPLATES)
    assert one.left_out.to_dict("records") == [
        {"reason": "deprecated or outranked", "relation": "r0", "triples": 2},
        {"reason": "holds no longer", "relation": "r0", "triples": 1},
    ]
    assert one.coverage == pytest.approx(2 / 5) and list(one.graph.tail) == [1, 4]
    texts = whole_graph.to_statements(one, pd.DataFrame(columns))
    said = whole_graph.sample_statements(one, 2, n_corrupted=20)
    assert set(said["text"][said["true"]]) == {texts[0], texts[3]} and len(said) > 10
    assert not set(said["text"][~said["true"]]) & set(texts)


def test_parts_hold_the_triples_and_false_ones(reader, tmp_path):
    one = whole_graph.verbalize(
        synthetic(200, seed=1), pd.DataFrame(columns=["relation", "template"]), "[X] {relation} [Y]"
    )
    judges = {"a": trained(reader), "b": trained(reader, 1)}
    parts = whole_graph.judge_triples(reader, judges, one, tmp_path, n_corrupted=2, size=64)
    assert [part.path.stem for part in parts] == [
        "0000000000-0000000064", "0000000064-0000000128", "0000000128-0000000192", "0000000192-0000000200"]  # fmt: skip
    said = pd.concat([whole_graph.judged_answers(part, "a") for part in parts])
    assert said["negative"].value_counts().to_dict() == {0: 200, 1: 200, 2: 200}
    assert (said.query("negative == 0")["triple"] == np.arange(200)).all() and said["probability"].min() >= 1 / 3
    assert set(said.query("negative > 0")["slot"]) == {0, 1, 2}
    rows = pd.concat(whole_graph.judged_scores(parts, "b"))
    assert (rows["relation"].to_numpy() == one.graph.relation).all()
    other = pd.concat([whole_graph.judged_answers(part, "b") for part in parts])
    assert rows[METRICS].mean().equals(eq2(other)[METRICS].mean())
    assert sum(part.record()["cost"]["statements"] for part in parts) == 600


def test_an_answer_is_the_judges_of_the_plain_state(reader, tmp_path):
    """Batches, corruptions and parts change nothing: one triple at a time gives the same probabilities."""
    one = whole_graph.verbalize(odd(), TEMPLATES)
    parts = whole_graph.judge_triples(reader, {"a": trained(reader)}, one, tmp_path / "b", size=2)
    said = pd.concat([whole_graph.judged_answers(part, "a") for part in parts]).query("negative == 0")
    texts = whole_graph.to_statements(one, pd.DataFrame({slot: getattr(one.graph, slot) for slot in SLOTS}))
    alone = np.concatenate(
        [reader.model.hidden_states([f"Is this statement true? {text}\nAnswer:"])[0] for text in texts]
    )
    expected = judge.predict(trained(reader), alone, True).max(axis=1)
    assert said["probability"].to_numpy() == pytest.approx(expected, abs=1e-4)


def test_a_changed_judge_graph_or_seed_is_another_run(reader, tmp_path):
    one = whole_graph.verbalize(odd(), TEMPLATES)
    runs = [
        whole_graph.judge_triples(reader, {"a": trained(reader)}, one, tmp_path),
        whole_graph.judge_triples(reader, {"a": trained(reader, 1)}, one, tmp_path),
        whole_graph.judge_triples(reader, {"a": trained(reader)}, one, tmp_path, seed=1),
        whole_graph.judge_triples(
            reader, {"a": trained(reader)}, whole_graph.verbalize(odd(((0, 0, 1),)), TEMPLATES), tmp_path
        ),
    ]
    assert len({parts[0].path.parent for parts in runs}) == 4
    whole = odd()
    less = Graph(whole.triples.slice(1), whole.entities, whole.relations, whole.types)
    assert whole_graph.graph_digest(less) != whole_graph.graph_digest(whole) == whole_graph.graph_digest(odd())


def test_a_judge_of_other_states_is_refused(reader, tmp_path):
    one = judge.train(np.zeros((2, 64), np.float32), [0, 1], [1, 0], epochs=1, about={"states": {"model": "other"}})
    with pytest.raises(ProbeError, match="trained on states of other"):
        whole_graph.judge_triples(reader, {"a": one}, whole_graph.verbalize(odd(), TEMPLATES), tmp_path)


SCRIPT = """
import sys
from pathlib import Path
from probelib import lm
from probelib.grapheval import judge
from tests.grapheval.test_whole_graph import run
run(judge.Reader(lm.load("atlas-neox-0.15m")), Path(sys.argv[1]))
"""


def run(reader, out) -> None:
    kg = whole_graph.verbalize(synthetic(2000, seed=2), TEMPLATES.head(0), whole_graph.DEFAULT_TEMPLATE)
    whole_graph.judge_triples(reader, {"j": trained(reader)}, kg, out, size=125)


def test_a_killed_run_ends_with_the_same_bytes(reader, tmp_path):
    command = [sys.executable, "-c", SCRIPT, str(tmp_path / "killed")]
    killed = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 300
    while (
        len(list((tmp_path / "killed").rglob("*.json"))) < 3 and killed.poll() is None and time.monotonic() < deadline
    ):
        time.sleep(0.005)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    finished = {p: p.stat().st_mtime_ns for p in (tmp_path / "killed").rglob("*.json")}
    assert 3 <= len(finished) < 16
    for out in ("killed", "whole"):
        run(reader, tmp_path / out)
    assert all(p.stat().st_mtime_ns == then for p, then in finished.items())  # nothing is done twice
    bytes_of = lambda out: {p.relative_to(tmp_path / out): p.read_bytes() for p in (tmp_path / out).rglob("*.parquet")}
    assert bytes_of("killed") == bytes_of("whole") and len(bytes_of("whole")) == 16


def test_labels_and_the_whole_graph_speak_of_the_same_statements(reader, tmp_path):
    one = whole_graph.verbalize(
        synthetic(300, seed=3), pd.DataFrame(columns=["relation", "template"]), whole_graph.DEFAULT_TEMPLATE
    )
    sample = whole_graph.sample_statements(one, 40, n_corrupted=2, seed=5)
    assert len(sample) == 120 and sample["true"].sum() == 40 and sample["prompt"].is_unique
    split = sample.groupby("triple")["split"].agg(set)
    assert (
        split.map(len).max() == 1 and (split == {"validation"}).sum() == 12
    )  # a triple and its corruptions stay together
    parts = whole_graph.judge_triples(reader, {"a": trained(reader)}, one, tmp_path, n_corrupted=2, seed=5)
    whole = whole_graph.judged_answers(parts[0], "a").set_index(["triple", "negative"])
    states, _ = reader.states(sample["text"].tolist())
    mine = judge.predict(trained(reader), states, sample["true"]).max(axis=1)
    there = whole.loc[list(zip(sample["triple"], sample["negative"], strict=True)), "probability"]
    assert there.to_numpy() == pytest.approx(mine, abs=1e-4)
    asked = scores.statement_prompts(sample, reader.model, size=50)
    assert asked["relation"].value_counts().tolist() == [50, 50, 20]
    assert asked["text"][0] == f"Is this statement true? {sample['text'][0]}\nAnswer:"
    with pytest.raises(ProbeError, match="a number from 1 to 300"):
        whole_graph.sample_statements(one, 301)


def test_an_unfinished_run_gives_no_score(reader, tmp_path):
    one = whole_graph.verbalize(odd(), TEMPLATES)
    parts = whole_graph.judge_triples(reader, {"a": trained(reader)}, one, tmp_path, size=2, most=2)
    assert [part.finished() for part in parts] == [True, True, False]
    with pytest.raises(ProbeError, match="not finished"):
        list(whole_graph.judged_scores(parts, "a"))


def test_graphs_by_name(tmp_path):
    atlas, templates = whole_graph.load_graph("atlas")
    assert set(templates["relation"]) >= set(atlas.relations["relation"].to_pylist())
    assert len(whole_graph.load_graph("synthetic:300")[0]) == 300
    dump = tmp_path / "some.nt"
    line = "<http://dbpedia.org/resource/{}> <http://dbpedia.org/ontology/likes> <http://dbpedia.org/resource/{}> .\n"
    dump.write_text(line.format("AC/DC", "Beyonc%C3%A9") + line.format("Malm%C3%B6", "Malm%C3%B6"), encoding="utf-8")
    graph, templates = whole_graph.load_graph(str(dump), tmp_path / "graph")
    one = whole_graph.verbalize(graph, templates, whole_graph.DEFAULT_TEMPLATE)
    said = whole_graph.to_statements(one, pd.DataFrame({slot: getattr(graph, slot) for slot in SLOTS}))
    assert said == ["The likes of AC/DC is Beyoncé.", "The likes of Malmö is Malmö."]
    assert len(whole_graph.load_graph(str(tmp_path / "graph"))[0]) == 2
    with pytest.raises(ProbeError, match="no graph 'dbpedia'"):
        whole_graph.load_graph("dbpedia")
    with pytest.raises(ProbeError, match="give folder"):
        whole_graph.load_graph(str(dump))
