"""What may be a distractor, in which order each strategy gives them; the exact search."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from probelib import ProbeError, facts, lm, prompts, store
from probelib.distractors import measures, retrieval
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
    ("lives", "Nobody", "Nowhere", "", ""),
]
TYPES = {
    "person": ["Biden", "Obama", "Lincoln", "Nobody", "Trump", "Macron", "Barack", "Donald"],
    "award": ["Nobel", "Grammy", "Oscar"],
    "city": ["Honolulu", "New York", "Paris"],
    "country": ["USA", "France"],
}
ALIASES = {"Trump": ("Donald J. Trump", "DJT"), "Donald": ("djt",)}


@pytest.fixture(scope="module")
def kb():
    names = [*dict.fromkeys(name for own in TYPES.values() for name in own), "Nowhere"]
    types = {name: tuple(t for t, own in TYPES.items() if name in own) for name in names}
    entities = [(name, name, "", ALIASES.get(name, ()), types[name], 0) for name in names]
    rows = [(f"{r}:{s}:{o}", r, s, o, start, end) for r, s, o, start, end in TRIPLES]
    relations = [(r, r, "x", "y", False) for r in dict.fromkeys(row[1] for row in rows)]
    frames = [["fact", "relation", "subject", "object", "start", "end"], ENTITIES, RELATIONS]
    tables = zip((rows, entities, relations), frames, strict=True)
    frames = [pd.DataFrame(own, columns=names) for own, names in tables]
    empty = [pd.DataFrame(columns=columns) for columns in (TEMPLATES, DISTRACTORS)]
    return retrieval.knowledge(Facts(*frames, *empty, "toy"))


def fact(*triple) -> pd.DataFrame:
    columns = ["fact", "relation", "subject", "object"]
    return pd.DataFrame([(":".join(triple), *triple)], columns=columns)


def space(kb, *triple) -> set[str]:
    return set(kb.keys[retrieval.omega(kb, *retrieval.rows(kb, fact(*triple))[0])])


def names(kb, strategy: str, *triple, n: int = 9) -> list[str]:
    return retrieval.retrieve(kb, fact(*triple), strategy, n)["candidate"].tolist()


TRUMP, MACRON = ("head", "USA", "Trump"), ("head", "France", "Macron")


def test_omega_by_hand(kb):
    """Same type, no label in common ("DJT" is "djt"), not right today; o never."""
    others = {"Biden", "Lincoln", "Nobody", "Macron", "Barack"}
    assert space(kb, *TRUMP) == others | {"Obama"}
    assert space(kb, "head", "USA", "Obama") == others | {"Donald"}  # a fact that ended
    assert space(kb, "prize", "Obama", "Grammy") == {"Oscar"}  # given once, right for ever


def test_what_has_no_end_is_never_a_former_answer(tmp_path):
    """A fact without an end is asked for, even one that begins after ``TODAY``."""
    rows = ["relation,subject,object,start,end", "speaks,Ruritania,Ruritan,,"]
    rows += ["speaks,Ruritania,Zendish,2026-05-01,", "speaks,Ruritania,Latin,1200,1700"]
    (tmp_path / "own.csv").write_text("\n".join([*rows, "speaks,Graustark,Graustarkian,,"]))
    own = facts.load("table", tmp_path / "own.csv", n_facts="all", n_distractors=0)
    kb = retrieval.knowledge(facts.everything("table", tmp_path / "own.csv"))
    assert "speaks:Ruritania:Zendish" in set(own.facts["fact"])
    assert names(kb, "temp_sem", "speaks", "Ruritania", "Ruritan") == ["Latin", "Graustarkian"]


def test_former_answers_come_first_the_latest_ahead(kb):
    """Biden (middle 2023), Obama (2013), Lincoln (1863); of Nobody only the end is known: last."""
    table = retrieval.retrieve(kb, fact(*TRUMP), "temp_sem", 6)
    assert table["candidate"].tolist()[:4] == ["Biden", "Obama", "Lincoln", "Nobody"]
    assert table["former"].tolist() == [True] * 4 + [False] * 2 and table["candidate"].is_unique
    assert names(kb, "temp_sem", *MACRON) == names(kb, "sem", *MACRON)
    both = pd.concat([fact(*TRUMP), fact("prize", "Obama", "Nobel"), fact(*MACRON)])
    assert retrieval.has_former(kb, both).tolist() == [True, False, False]


def test_a_fact_with_few_distractors_gets_them_all(kb):
    """An object without a type has the most populous types, here all of them."""
    triples = "prize Obama Grammy", "lives Nobody Nowhere", "born Obama Honolulu"
    some = pd.concat([fact(*own.split()) for own in triples])
    for strategy in ("random", "sem", "temp_sem"):
        table = retrieval.retrieve(kb, some, strategy, 3)
        assert table["fact"].value_counts(sort=False).tolist() == [1, 3, 2]


def test_random_depends_on_the_fact_alone(kb):
    alone = names(kb, "random", *TRUMP, n=4)
    together = retrieval.retrieve(kb, pd.concat([fact(*MACRON), fact(*TRUMP)]), "random", 4)
    assert together[together["fact"] == ":".join(TRUMP)]["candidate"].tolist() == alone
    assert retrieval.retrieve(kb, fact(*TRUMP), "random", 4, seed=1)["candidate"].tolist() != alone


def test_cosines_of_the_worked_example(kb):
    """W11: bags over e1, e2, e3, P1, x, P1_x, y, P1_y. They hold the entity, its relations, values
    and their pairs."""
    rows = [[1, 0, 0, 1, 1, 1, 0, 0], [0, 1, 0, 1, 1, 1, 0, 0], [0, 0, 1, 1, 0, 0, 1, 1]]
    vectors = retrieval.tfidf(csr_array(np.array(rows, dtype=float)))
    assert (vectors @ vectors.T).toarray()[0, 1:] == pytest.approx([0.600898, 0.120422], abs=1e-6)
    bags = retrieval.bags(kb.graph)
    assert bags[[kb.keys.get_loc("Obama")]].nnz == 1 + 2 + 3 + 3 and set(bags.data) == {1}


def test_nearest_is_the_whole_order_cut_off(kb):
    obj = kb.keys.get_loc("Obama")
    among = np.setdiff1d(retrieval.of_same_type(kb, obj), [obj])
    order = retrieval.nearest(kb, obj, among, 99).tolist()
    for n in range(1, len(order)):
        assert retrieval.nearest(kb, obj, among, n).tolist() == order[:n]
    assert (np.diff((kb.vectors @ kb.vectors[[obj]].T).toarray().ravel()[order]) <= 1e-12).all()


@pytest.fixture(scope="module")
def atlas_kb():
    atlas = facts.atlas()
    return atlas, retrieval.knowledge(atlas), atlas.entities.set_index("entity")


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 20000), st.sampled_from(["random", "sem", "temp_sem"]), st.integers(1, 30))
def test_every_distractor_of_the_atlas_keeps_the_rules(atlas_kb, at, strategy, n):
    atlas, kb, entity = atlas_kb
    row = atlas.facts.iloc[at % len(atlas.facts)]
    found = retrieval.retrieve(kb, row.to_frame().T, strategy, n)
    fold = lambda e: {x.casefold() for x in (entity.loc[e, "label"], *entity.loc[e, "aliases"])}
    same = facts.current(atlas).facts.query("relation == @row.relation and subject == @row.subject")
    for other in found["candidate"]:
        assert other not in {row["object"], *same["object"]}
        assert not fold(other) & fold(row["object"])
        assert set(entity.loc[other, "types"]) & set(entity.loc[row["object"], "types"])
    assert found["candidate"].is_unique and found["rank"].tolist() == list(range(1, len(found) + 1))


def test_what_a_model_read_of_former_objects():
    """The first one was stated 4 times with a year, the second never; the third has none."""
    rows = pd.DataFrame({"fact": ["a", "b", "c"], "relation": "P6", "subject": ["A", "B", "C"]})
    rows["object"] = ["x", "y", "z"]
    lists = pd.DataFrame({"fact": ["a", "a", "b", "c"], "rank": [1, 2, 1, 1]})
    lists = lists.assign(candidate=["u", "v", "w", "x"], former=[True, True, True, False])
    stated = [("P6", "A", "x", 16, 0), ("P6", "A", "u", 0, 4), ("P6", "B", "w", 0, 0)]
    columns = ["relation", "subject", "object", "exposures", "dated"]
    taught = retrieval.former_taught(rows, lists, pd.DataFrame(stated, columns=columns))
    assert taught.to_dict() == {"a": 4, "b": 0}


BAD = [
    (lambda kb: names(kb, "opt", *TRUMP), "unknown strategy without a model 'opt'.*Known: random"),
    (lambda kb: names(kb, "random", "head", "Mars", "Trump"), "hold, e.g. 'head:Mars:Trump'"),
    *[(lambda kb, n=n: names(kb, "random", *TRUMP, n=n), f"n_distractors={n}; an integer of at")
      for n in (0, -1, 1.5)],
    (lambda kb: retrieval.searches(kb, fact(*TRUMP), fact(*TRUMP), 0), "n_distractors=0; an in"),
]  # fmt: skip


@pytest.mark.parametrize(("ask", "words"), BAD)
def test_bad_input_is_named(kb, ask, words):
    with pytest.raises(ProbeError, match=words):
        ask(kb)


def test_the_exact_search_equals_scoring_every_label_and_is_the_hardest(atlas_kb, tmp_path):
    """Two facts of two spaces, searched both ways, and every label of their spaces scored."""
    kb, chosen = atlas_kb[1], facts.load(relations=["P37", "P101"], n_facts=1)
    asked = prompts.paraphrases(chosen, "cloze").query("template == 1")
    model, methods = lm.load("atlas-gpt2-0.6m"), ("beam", "best_first")
    wanted, spaces = retrieval.searches(kb, chosen.facts, asked, 20)
    found = {m: store.search(model, wanted, spaces, tmp_path, method=m) for m in methods}
    spaces_of = [
        (row.fact, *own) for row in wanted.itertuples() for own in spaces[row.space].items()
    ]
    every = [(fact, candidate, x.strip()) for fact, candidate, own in spaces_of for x in own]
    every = pd.DataFrame(every, columns=["fact", "candidate", "label"])
    plausible = measures.plausibility(store.score(model, asked, every, tmp_path, end=True))
    optimal = retrieval.allowed(kb, chosen.facts, found["best_first"], 20)
    for row in chosen.facts.itertuples():
        allowed = space(kb, row.relation, row.subject, row.object)
        own = plausible[(plausible["fact"] == row.fact) & plausible["candidate"].isin(allowed)]
        best = own.sort_values("logprob", ascending=False).head(20)
        mine = optimal[optimal["fact"] == row.fact]
        assert mine["logprob"].tolist() == pytest.approx(best["logprob"].tolist(), abs=1e-4)
        assert set(mine["candidate"]) == set(best["candidate"])
    assert (found["best_first"]["forwarded_tokens"] < found["best_first"]["trie_tokens"]).all()
    lists = {name: retrieval.allowed(kb, chosen.facts, own, 10) for name, own in found.items()}
    lists |= {s: retrieval.retrieve(kb, chosen.facts, s, 10) for s in ("random", "sem")}
    beaten = {s: measures.outcomes(plausible, chosen.facts, own, 10) for s, own in lists.items()}
    means = {s: measures.per_fact(own, "Avg")[10].mean() for s, own in beaten.items()}
    assert means["best_first"] == min(means.values())
    by_label = retrieval.allowed(kb, chosen.facts, found["beam"], 10, by="label_logprob")
    assert set(by_label["candidate"]) <= set(found["beam"]["candidate"])
    assert (by_label["label_logprob"] <= by_label["logprob"]).all()
