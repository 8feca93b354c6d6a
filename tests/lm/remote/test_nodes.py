"""Scoring a server node by node: the same numbers as of whole sequences, or whole sequences and a warning."""

import warnings
from functools import partial

import numpy as np
import pytest

from probelib import ProbeError, lm
from probelib.lm.remote import nodes
from probelib.lm.remote.nodes import Nodes
from probelib.lm.remote.served import KNOWN
from tests.lm.remote.server import NAME, NODE_FAULTS, assert_same_scores, by_nodes, honest, organism, serving, values

CONTEXTS = [[1, 2], [1, 3]]
BRANCHES = [(0, (5, 6)), (0, (5, 7)), (0, (8,)), (1, (5, 6)), (1, (-1,))]  # -1: the most probable token alone
EXAMPLES = " ".join(f"The capital of {country} is {capital}." for country, capital in list(KNOWN.items())[:8])
PROMPT = f"{EXAMPLES} The capital of Cuba is"
OPTIONS = [" Paris", " Lyon", " Rome", " Oslo", " Madrid is", " Bergen", " Nice"]


def test_a_small_tree_is_requested_once_per_node():
    """1 2 -> 5, 8; 1 2 5 -> 6, 7; 1 3 -> 5; 1 3 5 -> 6: nodes with the same tokens are neighbours."""
    tree = Nodes(CONTEXTS, BRANCHES)
    assert [([tree.prompt(node) for node in at], chosen) for at, chosen in tree.requests()] == [
        ([[1, 2], [1, 2, 5], [1, 3], [1, 3, 5]], [5, 6, 7, 8])
    ]
    assert (tree.distinct, tree.computed) == (5, 5 + 4 * 8)
    asked = []

    def ask(prompts, chosen):
        asked.append(len(prompts))
        return [({token: -sum(ids) - token / 10 for token in chosen}, len(ids)) for ids in prompts]

    logprobs, argmax, cost = tree.score(ask)
    expected = [[-3.5, -8.6], [-3.5, -8.7], [-3.8], [-4.5, -9.6], [np.nan]]
    assert asked == [4] and [row.dtype for row in logprobs] == [np.float32] * 5
    np.testing.assert_allclose(np.concatenate(logprobs), np.concatenate(expected), rtol=1e-6)
    assert [row.tolist() for row in argmax] == [[2, 3], [2, 3], [2], [2, 3], [2]]
    assert cost == {"forwarded_tokens": 5, "tree_nodes": 5, "forwards": 1, "sent_tokens": 10}


@pytest.mark.parametrize("window", [7, 4096])
def test_every_token_is_requested_within_the_limits(window, monkeypatch):
    """At most 128 tokens per request, vLLM's limit; few where prompts have different ones; each exactly once."""
    monkeypatch.setattr(nodes, "WINDOW", window)
    rng = np.random.default_rng(0)
    contexts = [[0, *rng.integers(0, 3, 4).tolist()] for _ in range(20)]
    branches = [(c, (t,)) for c in range(20) for t in rng.choice(1000, rng.integers(1, 300), replace=False).tolist()]
    branches += [(c, (t, 7)) for c in range(20) for t in range(40)]
    tree = Nodes(contexts, branches)
    requested = {(node, token) for node, tokens in tree.chosen.items() for token in tokens}
    total, counted = len(requested), 0
    for at, chosen in tree.requests():
        assert 0 < len(at) <= nodes.PROMPTS and len(chosen) <= nodes.CHOSEN and chosen == sorted(set(chosen))
        wanted = {(node, token) for node in at for token in chosen} & requested
        largest = max(sum(node == of for of, _ in wanted) for node in at)
        assert len(chosen) <= max(largest, nodes.MIXED)
        counted += len(wanted)
        requested -= wanted
    assert not requested and counted == total


@pytest.mark.parametrize("end", [False, True])
def test_log_probabilities_are_those_of_the_model_loaded_here(end):
    asked = [PROMPT, "The capital of Norway is", PROMPT], [OPTIONS, [" Oslo", " Bergen is"], OPTIONS[:2]]
    ours = organism().model.logprobs(*asked, end=end)
    with serving(honest) as (url, log):
        model = lm.load(f"{url}#{NAME}")
        assert model.choose_path() == "served" and model.by_nodes
        before = len(log)
        theirs = model.logprobs(*asked, end=end)
        assert not any(body.get("echo") for _, body, _ in log[before:])
    assert_same_scores(ours, theirs)
    costs = ours.attrs["cost"], theirs.attrs["cost"]
    assert costs[0]["forwarded_tokens"] == costs[1]["forwarded_tokens"] < costs[1]["sent_tokens"]
    assert model.describe()["check"]["nodes_nats"] < 1e-4


def test_sequences_that_share_little_are_sent_whole():
    """One candidate per prompt: node by node, a server would compute the end of the prompt once per token."""
    with serving(honest) as (url, log):
        model = lm.load(f"{url}#{NAME}")
        model.choose_path()
        for options, whole in ((OPTIONS[:1], True), (OPTIONS, False)):
            before = len(log)
            model.logprobs([PROMPT], [options])
            assert any(body.get("echo") for _, body, _ in log[before:]) == whole


@pytest.mark.parametrize("fault", NODE_FAULTS)
def test_a_server_that_cannot_score_nodes_gets_whole_sequences(fault):
    """Its scores stay exact; one warning says why."""
    answer, said = NODE_FAULTS[fault]
    with serving(by_nodes(answer)) as (url, log):
        model = lm.load(f"{url}#{NAME}")
        with pytest.warns(UserWarning, match=f"whole sequences are sent.*{said}") as warned:
            model.choose_path()
        assert len(warned) == 1 and "Its scores would be wrong" not in str(warned[0].message)
        before = len(log)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            theirs = model.logprobs([PROMPT], [OPTIONS])
        assert all(body.get("echo") for _, body, _ in log[before:])
        assert not model.by_nodes and model.describe()["check"]["nodes"] in str(warned[0].message)
    np.testing.assert_allclose(organism().model.logprobs([PROMPT], [OPTIONS])["logprob"], theirs["logprob"], atol=1e-4)


@pytest.mark.parametrize(
    "late, said",
    [
        (partial(honest, spoil=values(lambda v: v * 3)), "the sentences of the check otherwise than at first"),
        (NODE_FAULTS["ignored"][0], "no log-probability of .* chosen tokens"),
    ],
)
def test_a_server_that_fails_at_nodes_after_the_check_is_noticed(late, said):
    failing = []
    with serving(by_nodes(lambda *asked: (late if failing else honest)(*asked))) as (url, _):
        model = lm.load(f"{url}#{NAME}")
        model.choose_path()
        failing.append(True)
        with pytest.raises(ProbeError, match=said):
            model.logprobs([PROMPT], [OPTIONS])
