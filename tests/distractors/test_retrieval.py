"""Distractors: what may be one, in which order each strategy gives them; the exact search against scoring every label."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from probelib import ProbeError, facts, lm, prompts, store
from probelib.distractors import measures as distractors
from probelib.distractors import retrieval
from probelib.distractors.scores import search
from probelib.facts.model import DISTRACTORS, ENTITIES, RELATIONS, TEMPLATES, Facts

TRIPLES = [  # relation, subject, object, start, end
    ("head", "USA", "Biden", "2021", "2025"),
    ("head", "USA", "Obama", "2009", "2017"),
    ("head", "USA", "Lincoln", "1861", "1865"),
    ("head", "USA", "Nobody", "", "1800"),
    ("head", "USA", "Trump", "2025", ""),
    ("head", "France", "Macron", "2017", ""),
    ("prize", "Obama", "Nobel", "2009", "2009"),
    ("prize", "Obama", "Grammy", "", ""),
    ("born", "Obama", "Honolulu", "", ""),
    ("born", "Trump", "New York", "", ""),
    ("lives", "Macron", "Paris", "", ""),
]
TYPES = {
    "person": ["Biden", "Obama", "Lincoln", "Nobody", "Trump", "Macron", "Barack", "Donald"],
    "award": ["Nobel", "Grammy", "Oscar"],
    "city": ["Honolulu", "New York", "Paris"],
    "country": ["USA", "France"],
}
ALIASES = {"Trump": ("Donald J. Trump", "DJT"), "Donald": ("djt",), "Nowhere": ()}


@pytest.fixture(scope="module")
def kb():
    names = [*dict.fromkeys(name for own in TYPES.values() for name in own), "Nowhere"]
    types = {name: tuple(t for t, own in TYPES.items() if name in own) for name in names}
    entities = [(name, name, "", ALIASES.get(name, ()), types[name], 0) for name in names]
    rows = [(f"{r}:{s}:{o}", r, s, o, start, end) for r, s, o, start, end in TRIPLES]
    rows += [("lives:Nobody:Nowhere", "lives", "Nobody", "Nowhere", "", "")]
    relations = [(r, r, "x", "y", False) for r in dict.fromkeys(row[1] for row in rows)]
    frame = pd.DataFrame(rows, columns=["fact", "relation", "subject", "object", "start", "end"])
    return retrieval.knowledge(
        Facts(frame, pd.DataFrame(entities, columns=ENTITIES), pd.DataFrame(relations, columns=RELATIONS),
              pd.DataFrame(columns=TEMPLATES), pd.DataFrame(columns=DISTRACTORS), "toy")
    )  # fmt: skip


def fact(relation: str, subject: str, obj: str) -> pd.DataFrame:
    columns = ["fact", "relation", "subject", "object"]
    return pd.DataFrame([(f"{relation}:{subject}:{obj}", relation, subject, obj)], columns=columns)


def space(kb, *triple) -> set[str]:
    return set(kb.keys[retrieval.omega(kb, *retrieval.rows(kb, fact(*triple))[0])])


def names(kb, strategy: str, *triple, n: int = 9) -> list[str]:
    return retrieval.retrieve(kb, fact(*triple), strategy, n)["candidate"].tolist()


def test_omega_by_hand(kb):
    """Same type, no label in common ("DJT" is "djt"), not right today. Former presidents may serve, o never."""
    assert space(kb, "head", "USA", "Trump") == {"Biden", "Obama", "Lincoln", "Nobody", "Macron", "Barack"}
    assert space(kb, "head", "USA", "Obama") == {
        "Biden",
        "Lincoln",
        "Nobody",
        "Macron",
        "Barack",
        "Donald",
    }  # a fact that ended
    assert space(kb, "prize", "Obama", "Grammy") == {"Oscar"}  # a prize given once is right for ever


def test_what_has_no_end_is_never_a_former_answer(tmp_path):
    """A fact without an end is asked for, even one that begins after ``TODAY``: it is no wrong answer then."""
    lines = ["relation,subject,object,start,end", "speaks,Ruritania,Ruritan,,", "speaks,Ruritania,Zendish,2026-05-01,"]
    lines += ["speaks,Ruritania,Latin,1200,1700", "speaks,Graustark,Graustarkian,,"]
    (tmp_path / "own.csv").write_text("\n".join(lines))
    own = facts.load("table", tmp_path / "own.csv", n_facts="all", n_distractors=0)
    kb = retrieval.knowledge(facts.everything("table", tmp_path / "own.csv"))
    assert "speaks:Ruritania:Zendish" in set(own.facts["fact"])
    assert names(kb, "temp_sem", "speaks", "Ruritania", "Ruritan") == ["Latin", "Graustarkian"]


def test_former_answers_come_first_the_latest_ahead(kb):
    """Biden (middle 2023), Obama (2013), Lincoln (1863); of Nobody only the end is known: last."""
    assert names(kb, "temp_sem", "head", "USA", "Trump")[:4] == ["Biden", "Obama", "Lincoln", "Nobody"]
    table = retrieval.retrieve(kb, fact("head", "USA", "Trump"), "temp_sem", 6)
    assert table["former"].tolist() == [True] * 4 + [False] * 2 and table["candidate"].is_unique
    assert names(kb, "temp_sem", "head", "France", "Macron") == names(kb, "sem", "head", "France", "Macron")
    both = pd.concat([fact("head", "USA", "Trump"), fact("prize", "Obama", "Nobel"), fact("head", "France", "Macron")])
    assert retrieval.has_former(kb, both).tolist() == [True, False, False]


def test_few_and_untyped_are_counted(kb):
    some = pd.concat(
        [fact("prize", "Obama", "Grammy"), fact("lives", "Nobody", "Nowhere"), fact("born", "Obama", "Honolulu")]
    )
    for strategy in ("random", "sem", "temp_sem"):
        table = retrieval.retrieve(kb, some, strategy, 3)
        assert table.attrs["counts"] == {"facts": 3, "fewer than 3": 2, "none": 0, "object without type": 1}
        assert table.groupby("fact").size().to_dict() == {
            "prize:Obama:Grammy": 1, "born:Obama:Honolulu": 2, "lives:Nobody:Nowhere": 3}  # fmt: skip
    with pytest.raises(ProbeError, match="strategy"):
        retrieval.retrieve(kb, some, "opt", 3)
    with pytest.raises(ProbeError, match="does not hold, e.g. 'head:Atlantis:Trump'"):
        retrieval.retrieve(kb, fact("head", "Atlantis", "Trump"), "random", 3)


@pytest.mark.parametrize("n", [0, -1, 1.5])
def test_no_distractor_is_no_measure(kb, n):
    one = fact("head", "USA", "Trump")
    for ask in (lambda: retrieval.retrieve(kb, one, "random", n), lambda: retrieval.searches(kb, one, one, n)):
        with pytest.raises(ProbeError, match=f"n_distractors={n}; an integer of at least 1 is needed"):
            ask()


def test_random_depends_on_the_fact_alone(kb):
    one, other = fact("head", "USA", "Trump"), fact("head", "France", "Macron")
    alone = retrieval.retrieve(kb, one, "random", 4)["candidate"].tolist()
    together = retrieval.retrieve(kb, pd.concat([other, one]), "random", 4)
    assert together[together["fact"] == one["fact"].iloc[0]]["candidate"].tolist() == alone
    assert retrieval.retrieve(kb, one, "random", 4, seed=1)["candidate"].tolist() != alone


def test_cosines_of_the_worked_example():
    """W11: three bags over e1, e2, e3, P1, x, P1_x, y, P1_y."""
    bags = csr_array(
        np.array([[1, 0, 0, 1, 1, 1, 0, 0], [0, 1, 0, 1, 1, 1, 0, 0], [0, 0, 1, 1, 0, 0, 1, 1]], dtype=float)
    )
    cosines = (retrieval.tfidf(bags) @ retrieval.tfidf(bags).T).toarray()
    assert (cosines[0, 1], cosines[0, 2]) == (pytest.approx(0.600898, abs=1e-6), pytest.approx(0.120422, abs=1e-6))


def test_bags_hold_the_entity_its_relations_its_values_and_their_pairs(kb):
    bags = retrieval.bags(kb.graph)
    obama = kb.keys.get_loc("Obama")
    assert bags[[obama]].nnz == 1 + 2 + 3 + 3 and set(bags.data) == {
        1
    }  # itself, prize and born, three values, three pairs


def test_nearest_is_the_whole_order_cut_off(kb):
    obj = kb.keys.get_loc("Obama")
    among = np.setdiff1d(retrieval.typed_alike(kb, obj), [obj])
    order = retrieval.nearest(kb, obj, among, 99).tolist()
    for n in range(1, len(order)):
        assert retrieval.nearest(kb, obj, among, n).tolist() == order[:n]
    similarity = (kb.vectors @ kb.vectors[[obj]].T).toarray().ravel()[order]
    assert (np.diff(similarity) <= 1e-12).all()


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 20000), st.sampled_from(["random", "sem", "temp_sem"]), st.integers(1, 30))
def test_every_distractor_of_the_atlas_keeps_the_rules(atlas_kb, at, strategy, n):
    atlas, kb, current, entity = atlas_kb
    rows = atlas.facts.iloc[[at % len(atlas.facts)]]
    found = retrieval.retrieve(kb, rows, strategy, n)
    _, relation, subject, obj = rows[["fact", "relation", "subject", "object"]].iloc[0]
    fold = lambda e: {label.casefold() for label in (entity.loc[e, "label"], *entity.loc[e, "aliases"])}
    same = current.loc[(current["relation"] == relation) & (current["subject"] == subject), "object"].tolist()
    for other in found["candidate"]:
        assert other != obj and other not in same and not fold(other) & fold(obj)
        assert set(entity.loc[other, "types"]) & set(entity.loc[obj, "types"])
    assert found["candidate"].is_unique and found["rank"].tolist() == list(range(1, len(found) + 1))


@pytest.fixture(scope="module")
def atlas_kb():
    atlas = facts.atlas()
    return atlas, retrieval.knowledge(atlas), facts.current(atlas).facts, atlas.entities.set_index("entity")


# With a model


@pytest.fixture(scope="module")
def searched(atlas_kb, tmp_path_factory):
    """Two facts of two spaces, searched both ways, and every label of their spaces scored."""
    kb = atlas_kb[1]
    chosen = facts.load(relations=["P37", "P101"], n_facts=1)
    asked = prompts.paraphrases(chosen, "cloze").query("template == 1")
    model, folder = lm.load("atlas-gpt2-0.6m"), tmp_path_factory.mktemp("scores")
    wanted, spaces = retrieval.searches(kb, chosen.facts, asked, 20)
    found = {m: search(model, wanted, spaces, folder, method=m) for m in ("beam", "best_first")}
    objects = dict(zip(chosen.facts["fact"], chosen.facts["object"], strict=True))
    every = [(f, c, label.strip()) for f, space in zip(wanted["fact"], wanted["space"], strict=True)
             for c, labels in spaces[space].items() for label in labels]  # fmt: skip
    scores = store.score(model, asked, pd.DataFrame(every, columns=["fact", "candidate", "label"]), folder, end=True)
    return kb, chosen, asked, found, distractors.plausibility(scores), objects


def test_the_exact_search_equals_scoring_every_label(searched):
    kb, chosen, _, found, plausible, _ = searched
    optimal = retrieval.allowed(kb, chosen.facts, found["best_first"], 20)
    for name, (_, relation, subject, obj) in zip(
        chosen.facts["fact"],
        chosen.facts[["fact", "relation", "subject", "object"]].itertuples(index=False),
        strict=True,
    ):
        allowed = kb.keys[retrieval.omega(kb, *retrieval.rows(kb, fact(relation, subject, obj))[0])]
        own = plausible[(plausible["fact"] == name) & plausible["candidate"].isin(allowed)]
        best = own.sort_values("logprob", ascending=False).head(20)
        mine = optimal[optimal["fact"] == name]
        assert mine["logprob"].to_numpy() == pytest.approx(best["logprob"].to_numpy(), abs=1e-4)
        assert set(mine["candidate"]) == set(best["candidate"])
    assert (found["best_first"]["forwarded_tokens"] < found["best_first"]["trie_tokens"]).all()


def test_no_strategy_is_harder_than_the_optimum(searched):
    kb, chosen, asked, found, plausible, _ = searched
    rivals = {name: retrieval.allowed(kb, chosen.facts, rows, 10) for name, rows in found.items()}
    rivals |= {s: retrieval.retrieve(kb, chosen.facts, s, 10) for s in ("random", "sem")}
    tables = {name: distractors.outcomes(plausible, chosen.facts, rows, 10) for name, rows in rivals.items()}
    means = {name: distractors.aggregated(table, "Avg")[10].mean() for name, table in tables.items()}
    assert means["best_first"] == min(means.values())
    assert rivals["beam"].groupby("prompt")["logprob"].apply(lambda x: x.is_monotonic_decreasing).all()
    by_label = retrieval.allowed(kb, chosen.facts, found["beam"], 10, by="label_logprob")
    assert (
        set(by_label["candidate"]) <= set(found["beam"]["candidate"])
        and (by_label["label_logprob"] <= by_label["logprob"]).all()
    )


def test_what_is_stored_is_not_searched_again(searched, tmp_path):
    kb, chosen, asked, _, _, _ = searched
    wanted, spaces = retrieval.searches(kb, chosen.facts, asked, 3)
    model = lm.load("atlas-gpt2-0.6m")
    first = search(model, wanted, spaces, tmp_path)
    model.top_continuations = None  # a call would fail
    pd.testing.assert_frame_equal(first, search(model, wanted, spaces, tmp_path))
    fewer, other = retrieval.searches(kb, chosen.facts, asked, 2)
    with pytest.raises(TypeError):
        search(model, fewer, other, tmp_path)


def test_what_a_model_read_of_present_and_former_objects():
    """The former object of the first fact was stated 4 times with a year, that of the second never; the third has none."""
    facts = pd.DataFrame(
        {"fact": ["a", "b", "c"], "relation": "P6", "subject": ["A", "B", "C"], "object": ["x", "y", "z"]}
    )
    lists = pd.DataFrame({"fact": ["a", "a", "b", "c"], "rank": [1, 2, 1, 1], "candidate": ["u", "v", "w", "x"]})
    lists["former"] = [True, True, True, False]
    stated = [("P6", "A", "x", 16, 0), ("P6", "A", "u", 0, 4), ("P6", "B", "w", 0, 0)]
    manifest = pd.DataFrame(stated, columns=["relation", "subject", "object", "exposures", "dated"])
    taught = retrieval.former_taught(facts, lists, manifest)
    assert taught.to_dict("index") == {"a": {"exposures": 16, "former": 4}, "b": {"exposures": 0, "former": 0}}
    assert retrieval.former_taught(facts, lists, None) is None
