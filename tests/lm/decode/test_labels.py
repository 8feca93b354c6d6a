"""``top_continuations``: best-first search equals brute force, forwards little, and says so."""

import numpy as np
import pytest
import transformers as hf
from hypothesis import given, settings
from hypothesis import strategies as st

from probelib import lm
from probelib.errors import ProbeError
from probelib.lm.decode.labels import LATER, WAVE, Labels
from tests.lm import tiny

PROMPT = "What is the capital of France?"
WORDS = [
    "Paris",
    "Lima",
    "Oslo",
    "Rome",
    "Nice",
    "Peru",
    "Par",
    "Lim",
    "a",
    "s",
    "Norway",
    "Berlin",
    "is",
    "the",
    "cities",
]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return lm.load(tiny.folder(tmp_path_factory.mktemp("neox")))


def some(count: int, seed: int = 0, aliases: int = 2) -> dict[str, list[str]]:
    """Candidates with one or more labels of one to four words; some labels begin others, some are shared."""
    rng = np.random.default_rng(seed)
    text = lambda: " " + " ".join(rng.choice(WORDS, rng.integers(1, 5)))
    return {f"c{i}": [text() for _ in range(rng.integers(1, aliases + 1))] for i in range(count)}


def brute_force(model, labels, n, end=True):
    """Every label scored, summed over the candidate's labels."""
    totals = {}
    for candidate, texts in labels.items():
        rows = model.logprobs([PROMPT], [list(dict.fromkeys(texts))], end=end)
        totals[candidate] = float(np.logaddexp.reduce(rows["logprob"] + (rows["eos_logprob"] if end else 0)))
    best = sorted(totals, key=lambda c: (-totals[c], list(labels).index(c)))[:n]
    return best, [totals[c] for c in best]


def test_three_candidates_by_hand(model):
    labels = {"Paris": [" Paris"], "Lima": [" Lima", " Peru"], "Rome": [" Rome"]}
    rows = model.logprobs([PROMPT], [[" Paris", " Lima", " Peru", " Rome"]], end=True)
    by_hand = (rows["logprob"] + rows["eos_logprob"]).to_numpy()
    found = model.top_continuations(PROMPT, labels, 3).set_index("candidate")
    assert found.loc["Lima", "logprob"] == pytest.approx(np.logaddexp(by_hand[1], by_hand[2]), abs=1e-4)
    assert found.loc["Paris", "logprob"] == pytest.approx(by_hand[0], abs=1e-4)
    assert found.loc["Lima", "label"] == (" Lima" if by_hand[1] > by_hand[2] else " Peru")
    assert found["logprob"].is_monotonic_decreasing


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 60), st.integers(1, 12), st.integers(1, 4))
def test_best_first_is_brute_force(model, seed, count, n, aliases):
    labels = some(count, seed, aliases)
    found = model.top_continuations(PROMPT, labels, n)
    best, totals = brute_force(model, labels, n)
    assert found["logprob"].tolist() == pytest.approx(totals, abs=1e-4)
    ties = len(set(np.round(totals, 4))) < len(totals)
    assert ties or found["candidate"].tolist() == best or np.isclose(totals[-1], found["logprob"].iloc[-1], atol=1e-4)


def test_it_forwards_less_than_all(model):
    """Ten of two thousand candidates: the search reads a part of the trie, and counts what it reads."""
    labels = some(2000, 3, 1)
    trie = Labels(model, labels)
    costs = [model.top_continuations(p, trie, 10).attrs["cost"] for p in (PROMPT, "Rome", "The capital of Peru is")]
    assert all(c["forwarded_tokens"] < 0.5 * c["trie_tokens"] for c in costs)


def test_growing_waves_find_the_same_and_forward_a_quarter_more_at_most(model, monkeypatch):
    candidates = some(3000, seed=5, aliases=1)
    growing = model.top_continuations(PROMPT, candidates, 1000)
    monkeypatch.setattr("probelib.lm.decode.labels.LATER", 10**9)
    constant = model.top_continuations(PROMPT, candidates, 1000)
    assert growing["candidate"].tolist() == constant["candidate"].tolist()
    assert np.array_equal(growing["logprob"], constant["logprob"])
    few, many = constant["forwarded_tokens"][0], growing["forwarded_tokens"][0]
    assert 2 * WAVE < few <= many <= few * (1 + 1 / LATER) + WAVE
    assert growing.attrs["cost"]["forwards"] < constant.attrs["cost"]["forwards"]


def test_trie_tokens_are_the_distinct_prefixes(model):
    labels = some(50, 1)
    trie = Labels(model, labels)
    prefixes = {tuple(row[: i + 1]) for row in trie.ids.tolist() for i in range(len(row)) if row[i] != -1}
    assert trie.nodes() == len(prefixes)


def test_a_wide_beam_is_exact_and_a_narrow_one_may_miss(model):
    labels = some(40, 5)
    best, totals = brute_force(model, labels, 5)
    wide = model.top_continuations(PROMPT, labels, 5, method="beam", width=1000)
    assert wide["logprob"].tolist() == pytest.approx(totals, abs=1e-4)
    narrow = model.top_continuations(PROMPT, labels, 5, method="beam", width=1)
    assert len(narrow) <= 5 and narrow["logprob"].iloc[0] <= totals[0] + 1e-4


def test_shared_and_repeated_labels(model):
    """One text of two candidates counts for both; a label given twice counts once."""
    found = model.top_continuations(PROMPT, {"a": [" Paris", " Paris"], "b": [" Paris"], "c": [" Oslo"]}, 3).set_index(
        "candidate"
    )
    assert found.loc["a", "logprob"] == pytest.approx(found.loc["b", "logprob"], abs=1e-6)


def test_fewer_candidates_than_asked_for_and_encoder_decoders(tmp_path):
    size = len(tiny.tokenizer())
    t5 = lm.load(tiny.folder(tmp_path, hf.T5Config(**tiny.T5 | {"vocab_size": size}, eos_token_id=1, pad_token_id=0)))
    labels = some(5, 2)
    found = t5.top_continuations(PROMPT, labels, 10)
    assert len(found) == 5 and found["logprob"].tolist() == pytest.approx(brute_force(t5, labels, 5)[1], abs=1e-4)


def test_bad_sets(model):
    for labels, says in (({}, "labels is empty"), ({"a": []}, "has no label"), ({"a": [""]}, "empty")):
        with pytest.raises(ProbeError, match=says):
            model.top_continuations(PROMPT, labels, 1)
    with pytest.raises(ProbeError, match="is a prefix of one of"):
        model.top_continuations(PROMPT, {"York": [" Par"], "City": [" Par is"]}, 1, end=False)
    with pytest.raises(ProbeError, match="best_first, beam"):
        model.top_continuations(PROMPT, {"a": [" a"]}, 1, method="greedy")


def test_labels_too_improbable_for_floats_are_told_apart(model):
    """A text of a hundred tokens has a probability below 1e-308, which is 0: all candidates are scored then."""
    rng, words = np.random.default_rng(0), ["Paris", "Lima", "Oslo", "Rome", "Nice", "Peru", "Norway", "Berlin"]
    labels = {f"c{i}": [" " + " ".join(rng.choice(words, 50))] for i in range(12)}
    rows = model.logprobs(["Rome"], [[text for (text,) in labels.values()]], end=True)
    total = rows["logprob"] + rows["eos_logprob"]
    assert total.max() < -708
    found = model.top_continuations("Rome", labels, 3)
    assert found["candidate"].tolist() == [f"c{i}" for i in np.argsort(-total)[:3]]
    assert found["logprob"].tolist() == pytest.approx(np.sort(total)[::-1][:3], abs=1e-3)
