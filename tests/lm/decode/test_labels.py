"""``top_continuations``: best-first search equals brute force, forwards little, and says so."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from probelib.errors import ProbeError
from probelib.lm.decode.labels import Labels

PROMPT = "What is the capital of France?"
WORDS = "Paris,Lima,Oslo,Rome,Nice,Peru,Par,Lim,a,s,Norway,Berlin,is,the,cities"
WORDS = WORDS.split(",")  # some are beginnings of others


def some(count: int, seed: int = 0, aliases: int = 2) -> dict[str, list[str]]:
    """Candidates with labels of one to four words; some labels begin others, some are shared."""
    rng = np.random.default_rng(seed)
    text = lambda: " " + " ".join(rng.choice(WORDS, rng.integers(1, 5)))
    return {f"c{i}": [text() for _ in range(rng.integers(1, aliases + 1))] for i in range(count)}


def brute_force(model, labels, n):
    """Every label scored, summed over the candidate's labels."""
    totals = {}
    for candidate, texts in labels.items():
        rows = model.logprobs([PROMPT], [list(dict.fromkeys(texts))], end=True)
        totals[candidate] = float(np.logaddexp.reduce(rows["logprob"] + rows["eos_logprob"]))
    best = sorted(totals, key=lambda c: (-totals[c], list(labels).index(c)))[:n]
    return best, [totals[c] for c in best]


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 60), st.integers(1, 12), st.integers(1, 4))
def test_best_first_is_brute_force(model, seed, count, n, aliases):
    labels = some(count, seed, aliases)
    found = model.top_continuations(PROMPT, labels, n)
    best, totals = brute_force(model, labels, n)
    assert found["logprob"].tolist() == pytest.approx(totals, abs=1e-4)
    ties = len(set(np.round(totals, 4))) < len(totals)
    last = np.isclose(totals[-1], found["logprob"].iloc[-1], atol=1e-4)
    assert ties or found["candidate"].tolist() == best or last


def test_a_wide_beam_is_exact_and_a_narrow_one_may_miss(model):
    labels = some(40, 5, aliases=1)
    _, totals = brute_force(model, labels, 40)
    wide = model.top_continuations(PROMPT, labels, 40, method="beam")
    assert wide["logprob"].tolist() == pytest.approx(totals[: len(wide)], abs=1e-4)
    narrow = model.top_continuations(PROMPT, labels, 1, method="beam")
    assert len(narrow) == 1 and narrow["logprob"].iloc[0] <= totals[0] + 1e-4


def test_shared_and_repeated_labels(model):
    """One text of two candidates counts for both; a label given twice counts once."""
    labels = {"a": [" Paris", " Paris"], "b": [" Paris"], "c": [" Oslo"]}
    found = model.top_continuations(PROMPT, labels, 3).set_index("candidate")["logprob"]
    assert found["a"] == pytest.approx(found["b"], abs=1e-6)


def test_several_prompts_are_searched_as_one(model):
    prompts, trie = [PROMPT, "Rome", PROMPT], Labels(model, some(200, 7))
    together = model.top_continuations(prompts, trie, 5)
    for p, prompt in enumerate(prompts):
        alone = model.top_continuations(prompt, trie, 5)
        own = together[together["prompt"] == p]
        assert own["candidate"].tolist() == alone["candidate"].tolist()
        assert own["logprob"].tolist() == pytest.approx(alone["logprob"].tolist(), abs=1e-4)
        assert own["forwarded_tokens"].tolist() == alone["forwarded_tokens"].tolist()


def test_fewer_candidates_than_wanted_and_encoder_decoders(t5):
    labels = some(5, 2)
    found = t5.top_continuations(PROMPT, labels, 10)
    assert found["logprob"].tolist() == pytest.approx(brute_force(t5, labels, 5)[1], abs=1e-4)


@pytest.mark.parametrize(
    ("labels", "options", "says"),
    [
        ({}, {}, "labels is empty"),
        ([" a"], {}, "candidate: "),
        ({"a": []}, {}, "has no label"),
        ({"a": [""]}, {}, "empty"),
        ({"York": [" Par"], "City": [" Par is"]}, {"end": False}, "is a prefix of one of"),
        ({"a": [" a"]}, {"method": "greedy"}, "best_first, beam"),
    ],
)
def test_bad_input_is_named(model, labels, options, says):
    with pytest.raises(ProbeError, match=says):
        model.top_continuations(PROMPT, labels, 1, **options)


def test_labels_too_improbable_for_floats_are_told_apart(model):
    """A text of a hundred tokens has a probability below 1e-308, which is 0: all are scored
    then."""
    rng = np.random.default_rng(0)
    labels = {f"c{i}": [" " + " ".join(rng.choice(WORDS[:6], 50))] for i in range(12)}
    rows = model.logprobs(["Rome"], [[text for (text,) in labels.values()]], end=True)
    total = rows["logprob"] + rows["eos_logprob"]
    assert total.max() < -708
    found = model.top_continuations("Rome", labels, 3)
    assert found["candidate"].tolist() == [f"c{i}" for i in np.argsort(-total)[:3]]
    assert found["logprob"].tolist() == pytest.approx(np.sort(total)[::-1][:3], abs=1e-3)
