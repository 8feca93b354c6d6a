"""The fast path is the plain one, for every family."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from probelib import lm
from probelib.errors import ProbeError
from probelib.lm.families import state_name
from probelib.lm.plain import score_encdec, score_plain
from probelib.lm.tree import Tree, gather_logprobs, score_tree, to_numpy_checked
from tests.lm import tiny

# not taken in parts
OWN_ATTENTION = "gptj bloom mpt gemma2_window falcon falcon_alibi gpt_oss deepseek"
# summed log-prob, nats; what is seen is 1e-6 to 2e-5: the order of float32 sums differs
TOLERANCE = 1e-4


# random requests: up to ten contexts with one branch each
CONTEXT = st.lists(st.integers(3, 12), min_size=1, max_size=8)
BRANCH = st.lists(st.integers(3, 9), min_size=1, max_size=4)
SEQUENCES = st.lists(st.tuples(CONTEXT, BRANCH), min_size=1, max_size=10)


def requests(seed: int = 0):
    """Contexts that share a long prefix, some that do not, one that is a prefix of others; branches
    that branch again."""
    rng = np.random.default_rng(seed)
    draw = lambda n: [int(t) for t in rng.integers(3, tiny.V, n)]
    prefix = draw(20)
    contexts = [prefix + draw(3) for _ in range(3)] + [draw(5), draw(1), prefix[:10]]
    branches = []
    for context in range(len(contexts)):
        for _ in range(3):
            first = draw(1)
            several = [(*first, *draw(2)), (*first, *draw(1)), (*first, -1)]
            branches += [(context, tokens) for tokens in several]
    return contexts, branches


def largest_difference(left, right) -> float:
    sums = [[np.nansum(each, dtype=np.float64) for each in side] for side in (left, right)]
    return max(abs(a - b) for a, b in zip(*sums, strict=True))


@pytest.mark.parametrize("family", tiny.DECODERS)
def test_tree_equals_plain_for_every_decoder(family):
    model = tiny.build(tiny.DECODERS[family]())
    contexts, branches = requests()
    plain, plain_best, _ = score_plain(model, contexts, branches)
    for budget in (4, 16, 384):  # everything through the cache; some of it; all packed in one row
        fast, fast_best, _ = score_tree(model, contexts, branches, budget)
        assert largest_difference(fast, plain) <= TOLERANCE
        assert all((a == b).all() for a, b in zip(fast_best, plain_best, strict=True))


@pytest.mark.parametrize("family", tiny.ENCODER_DECODERS)
def test_batches_equal_single_candidates_for_encoder_decoders(family):
    model = tiny.build(tiny.ENCODER_DECODERS[family]())
    contexts, branches = requests()
    plain, plain_best, _ = score_encdec(model, contexts, branches, 1)
    for rows in (2, 16):
        fast, fast_best, _ = score_encdec(model, contexts, branches, rows)
        assert largest_difference(fast, plain) <= TOLERANCE
        assert all((a == b).all() for a, b in zip(fast_best, plain_best, strict=True))


def test_plain_equals_one_naked_forward():
    """The reference itself: one sequence, no padding, no mask, log-softmax by hand."""
    model = tiny.build(tiny.DECODERS["gpt_neox"]())
    contexts, branches = requests()
    plain, _, _ = score_plain(model, contexts, branches)
    for (context, tokens), scores in zip(branches, plain, strict=True):
        real = [token for token in tokens if token >= 0]  # -1: any
        expected = tiny.by_hand(model, contexts[context], real)
        assert scores[: len(real)].tolist() == pytest.approx(expected, abs=1e-5)
    read = []  # logits per sequence: of a prompt only its last token's
    model.get_output_embeddings().register_forward_hook(lambda *of: read.append(of[2].shape[1]))
    score_plain(model, contexts, branches, 1)
    assert sorted(set(read)) == [2, 3]


@pytest.mark.parametrize("family", tiny.SOME_DECODERS)
def test_attention_in_parts_changes_nothing(family, monkeypatch):
    """Rows of 300 tokens, most of which do not see each other, behind a prefix of 40 that all
    see."""
    from probelib.lm import families

    model, rng = tiny.build(tiny.DECODERS[family]()), np.random.default_rng(0)
    draw = lambda n: [int(t) for t in rng.integers(3, tiny.V, n)]
    prefix, looked, flash = draw(40), [], families.flash
    contexts = [prefix + draw(4) for _ in range(80)]
    branches = [(i, tuple(draw(7))) for i in range(80)]

    def watched(query, key, *rest, **kwargs):
        looked.append((query.shape[2], key.shape[2]))
        return flash(query, key, *rest, **kwargs)

    monkeypatch.setattr(families, "flash", watched)
    inside, _, _ = score_tree(model, contexts, branches, 300)
    assert bool(looked) != (family in OWN_ATTENTION.split())
    assert model.config._attn_implementation != "parts"
    # of the whole row: the prefix, and what all of a row hang on
    ahead = [keys for queries, keys in looked if queries != families.QUERIES]
    assert all(40 <= keys < 52 for keys in ahead) and bool(ahead) == bool(looked)
    assert all(keys < 2 * families.QUERIES for _, keys in looked)
    monkeypatch.setattr(families, "flash", None)
    whole, _, _ = score_tree(model, contexts, branches, 300)
    assert largest_difference(inside, whole) <= TOLERANCE / 2
    assert largest_difference(inside, score_plain(model, contexts, branches)[0]) <= TOLERANCE


@pytest.mark.filterwarnings("ignore:.*is scored on the path")
@pytest.mark.parametrize("family", tiny.OWN_LAYERS)
def test_families_that_count_places_themselves_leave_the_tree(family):
    """Their scores are those of single sequences."""
    config = tiny.OWN_LAYERS[family]()
    tokenizer = tiny.tokenizer()
    config.vocab_size = len(tokenizer)
    hf_model = tiny.build(config)
    model = lm.load(hf_model, tokenizer)
    prompt = "The capital of Peru is not the capital of France or of Spain, it is"
    answers = [" Lima", " Lima and Paris", " Nice"]
    found = model.logprobs(prompt, answers)["logprob"].tolist()
    assert model.path in ("repeated", "plain") and model.why.startswith("tree: ")
    ids = model.tokens.prompts([prompt])[0]
    for answer, score in zip(answers, found, strict=True):
        rest = list(model.tokens.continuation(answer))
        assert score == pytest.approx(sum(tiny.by_hand(hf_model, ids, rest)), abs=1e-4)


def test_order_and_duplicates_change_no_bit():
    model = tiny.build(tiny.DECODERS["llama"]())
    contexts, branches = requests()
    once, _, usual = score_tree(model, contexts, branches, 16)
    shuffled = np.random.default_rng(1).permutation(len(branches))
    again, _, cost = score_tree(model, contexts, [branches[i] for i in shuffled] + branches, 16)
    assert all(np.array_equal(again[at], once[i], equal_nan=True) for at, i in enumerate(shuffled))
    assert cost["forwarded_tokens"] == usual["forwarded_tokens"]


@settings(max_examples=25, deadline=None)
@given(SEQUENCES, st.sampled_from([1, 3, 10, 384]))
def test_any_requests_any_budget(pairs, budget):
    model = MODEL
    contexts, branches = [c for c, _ in pairs], [(i, tuple(b)) for i, (_, b) in enumerate(pairs)]
    fast, _, cost = score_tree(model, contexts, branches, budget)
    plain, _, _ = score_plain(model, contexts, branches)
    assert largest_difference(fast, plain) <= TOLERANCE
    nodes = len({tuple((c + list(b))[:n]) for c, b in pairs for n in range(1, len(c) + len(b))})
    assert (cost["forwarded_tokens"], cost["forwards"]) == (nodes, -(-nodes // budget))


MODEL = tiny.build(tiny.DECODERS["gpt_neox"]())


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=5), min_size=1, max_size=6),
    st.lists(st.tuples(st.integers(0, 5), st.lists(st.integers(0, 2), max_size=5)), max_size=8),
)
def test_the_nodes_are_the_distinct_beginnings_in_order(contexts, branches):
    branches = [(context % len(contexts), tuple(tokens)) for context, tokens in branches]
    paths = [*contexts, *([*contexts[context], *tokens[:-1]] for context, tokens in branches)]
    nodes = sorted({tuple(path[:n]) for path in paths for n in range(1, len(path) + 1)})
    tree = Tree(contexts, branches)
    assert tree.token.tolist() == [path[-1] for path in nodes]
    assert tree.depth.tolist() == [len(path) - 1 for path in nodes]
    assert [tuple(context) for context in contexts] == [nodes[end] for end in tree.ends]
    for number, path in enumerate(nodes):  # the subtree: every path that begins with this one
        below = [other[: len(path)] == path for other in nodes]
        assert list(np.flatnonzero(below)) == list(range(number, tree.end[number]))
    before = [(*contexts[c], *tokens[:k]) for c, tokens in branches for k in range(len(tokens))]
    assert [nodes[node] for node in tree.predicting] == before
    assert tree.cuts.tolist() == np.cumsum([len(tokens) for _, tokens in branches])[:-1].tolist()


def test_log_softmax_by_hand_and_in_float32():
    logits = torch.tensor([[0.0, np.log(3.0)]], dtype=torch.bfloat16)
    picked, best = to_numpy_checked(*gather_logprobs(logits, [0, 0], [0, 1]))
    assert picked.dtype == np.float32 and best.tolist() == [1]
    assert np.exp(picked) == pytest.approx([0.25, 0.75], abs=2e-3)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_overflow_is_an_error_and_never_a_number(bad):
    with pytest.raises(ProbeError, match="bfloat16"):
        to_numpy_checked(*gather_logprobs(torch.tensor([[0.0, bad]]), [0], [0]))


STATES = [lambda s, past_key_values=0: s, lambda s, cache=0: s, lambda s, cache_params=0: s]


@pytest.mark.parametrize("forward", STATES)
def test_the_state_goes_to_the_argument_that_this_version_has(forward):
    assert state_name(type("M", (), {"forward": forward})()) == forward.__code__.co_varnames[1]
