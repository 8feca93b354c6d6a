"""Long rows with FlexAttention: the scores of SDPA and of single sequences. Here its reference on a CPU runs, behind
the compiler's front end; test_gpu.py has the kernel."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from probelib import lm
from probelib.lm import selfcheck
from probelib.lm.internals import flex
from probelib.lm.internals.flex import BLOCK, Intervals
from probelib.lm.plain import score_plain
from probelib.lm.tree import score_tree
from tests.lm import tiny
from tests.lm.internals.test_states import naive
from tests.lm.test_tree import SEQUENCES, largest_difference, requests

FAMILIES = [
    "gpt_neox",
    "gpt2",
    "opt",
    "llama",
    "llama_grouped",
    "mistral_window",
    "phi3_window",
    "gemma",
    "gemma2_window",
]
FAMILIES += ["gemma3_window", "qwen2", "qwen3", "mixtral", "deepseek"]
pytestmark = [pytest.mark.filterwarnings("ignore:.*is scored on the path")]

# the front end traces once for all rows; without it FlexAttention on a CPU does so at each call
ON_CPU = torch.compile(flex.flex_attention, dynamic=True, fullgraph=True, backend="eager")


@pytest.fixture
def everywhere(monkeypatch):
    """FlexAttention on this device, for rows of any length; yields the lengths of the rows that it computed."""
    lengths, attend = [], flex._attend

    def watched(module, query, *rest, **options):
        lengths.append(query.shape[2])
        return attend(module, query, *rest, **options)

    monkeypatch.setattr(flex, "flex_attention", ON_CPU)
    monkeypatch.setattr(flex, "DEVICE", "cpu")
    monkeypatch.setattr(flex, "SHORTEST", 1)
    monkeypatch.setattr(flex, "_attend", watched)
    return lengths


def test_two_branches_by_hand():
    """0 and 1 are cached, 2 and 4 branch off 1, 3 and 5 follow them; a soft prompt of one token comes first."""
    intervals = Intervals(torch.tensor([-1, 0, 1, 2, 3, 4, 5]), torch.tensor([6, 6, 6, 4, 4, 6, 6]))
    expected = [
        [1, 1, 1, 1, 0, 0, 0],
        [1, 1, 1, 1, 1, 0, 0],
        [1, 1, 1, 0, 0, 1, 0],
        [1, 1, 1, 0, 0, 1, 1],
    ]
    assert intervals.dense(4).int().tolist() == expected
    mask, same = flex.block_masks(intervals, torch.tensor([0, 1, 2, 3, 4, 3, 4]), 4, None)
    assert mask is same and tokens_of(mask, 4, 7).int().tolist() == expected
    # three tokens wide: itself and two above it
    _, near = flex.block_masks(intervals, torch.tensor([0, 1, 2, 3, 4, 3, 4]), 4, 3)
    assert tokens_of(near, 4, 7).int().tolist() == [
        [0, 1, 1, 1, 0, 0, 0],
        [0, 0, 1, 1, 1, 0, 0],
        [0, 1, 1, 0, 0, 1, 0],
        [0, 0, 1, 0, 0, 1, 1],
    ]


def tokens_of(mask, n: int, keys: int) -> torch.Tensor:
    """[n, keys] bool: what the kernel would see, from full blocks and from masked ones."""
    visible = torch.zeros(-(-n // BLOCK) * BLOCK, -(-keys // BLOCK) * BLOCK, dtype=torch.bool)
    single = torch.zeros_like(visible)
    q, k = torch.arange(n)[:, None], torch.arange(keys)[None]
    single[:n, :keys] = mask.mask_mod(0, 0, q, k)
    for number, index, full in (
        (mask.kv_num_blocks, mask.kv_indices, False),
        (mask.full_kv_num_blocks, mask.full_kv_indices, True),
    ):
        for row, count in enumerate(number[0, 0].tolist()):
            for column in index[0, 0, row, :count].tolist():
                block = (
                    slice(row * BLOCK, (row + 1) * BLOCK),
                    slice(column * BLOCK, (column + 1) * BLOCK),
                )
                visible[block] = True if full else single[block]
    return visible[:n, :keys]


@st.composite
def trees(draw):
    """Ends and depths of a random tree of some blocks, and a place at which a row is cut off."""
    rng, size = np.random.default_rng(draw(st.integers(0, 2**32))), draw(st.integers(2, 4 * BLOCK))
    branching, depth = draw(st.floats(0, 0.3)), [0]
    for _ in range(size - 1):
        depth.append(
            int(rng.integers(0, depth[-1] + 1)) if rng.random() < branching else depth[-1] + 1
        )
    end = [
        next((later for later in range(p + 1, size) if depth[later] <= depth[p]), size)
        for p in range(size)
    ]
    return np.array(end), np.array(depth), draw(st.integers(0, size - 1))


@settings(max_examples=40, deadline=None)
@given(trees(), st.integers(0, 20), st.sampled_from([None, 1, 8, 100]))
def test_block_masks_of_any_tree_show_what_the_dense_mask_shows(tree, virtual, window):
    end, depth, start = tree
    place = np.arange(len(end))
    keys = np.concatenate(
        [place[:start][end[:start] > start], place[start:]]
    )  # ancestors of the row, and the row
    intervals = Intervals(
        torch.tensor([-1] * virtual + keys.tolist()),
        torch.tensor([len(end)] * virtual + end[keys].tolist()),
    )
    position, n = torch.tensor([*range(virtual), *(virtual + depth[keys])]), len(end) - start
    dense = intervals.dense(n)
    full, near = flex.block_masks(intervals, position, n, window)
    assert tokens_of(full, n, len(position)).equal(dense)
    if window:
        dense &= position > position[len(position) - n :, None] - window
    assert tokens_of(near, n, len(position)).equal(dense)
    # nothing that is hidden for a whole block is computed, but for windows, whose blocks are estimated
    blocks = torch.nn.functional.pad(intervals.dense(n), (0, -len(position) % BLOCK, 0, -n % BLOCK))
    some = blocks.unflatten(1, (-1, BLOCK)).unflatten(0, (-1, BLOCK)).any(3).any(1)
    assert int(full.kv_num_blocks.sum() + full.full_kv_num_blocks.sum()) == int(some.sum())


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_is_equal_to_sdpa_and_to_single_sequences(family, everywhere):
    model = tiny.build(tiny.DECODERS[family]())
    contexts, branches = requests()
    usual = model.config._attn_implementation
    plain, _, _ = score_plain(model, contexts, branches, rows=1)
    for budget in (4, 100):  # rows of 16 tokens behind a cache; one row
        short, _, _ = score_tree(model, contexts, branches, budget * flex.ROWS)
        everywhere.clear()
        long, _, cost = score_tree(model, contexts, branches, budget, long=True)
        assert len(everywhere) == 2 * cost["forwards"] and sum(everywhere) == 2 * cost["tree_nodes"]
        assert max(everywhere) == min(budget * flex.ROWS, cost["tree_nodes"])
        assert max(np.nanmax(np.abs(a - b)) for a, b in zip(long, short, strict=True)) <= 1e-5
        assert largest_difference(long, plain) <= 1e-4
    assert model.config._attn_implementation == usual


def test_short_rows_keep_the_dense_mask(everywhere, monkeypatch):
    model = tiny.build(tiny.DECODERS["llama"]())
    contexts, branches = requests()
    monkeypatch.setattr(flex, "SHORTEST", 40)
    _, _, cost = score_tree(model, contexts, branches, 10, long=True)
    assert everywhere == [40] * 2 * (cost["tree_nodes"] // 40) and cost["tree_nodes"] % 40


@settings(max_examples=15, deadline=None)
@given(
    SEQUENCES,
    st.sampled_from([1, 3, 96]),
    st.sampled_from(["gpt_neox", "mistral_window", "gemma3_window"]),
)
def test_any_requests_any_budget(pairs, budget, family):
    model = MODELS[family]
    contexts, branches = [c for c, _ in pairs], [(i, tuple(b)) for i, (_, b) in enumerate(pairs)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(flex, "SHORTEST", 1)
        patch.setattr(flex, "flex_attention", ON_CPU)
        long, _, _ = score_tree(model, contexts, branches, budget, long=True)
    short, _, _ = score_tree(model, contexts, branches, budget)
    assert max(np.abs(a - b).max() for a, b in zip(long, short, strict=True)) <= 1e-5
    assert largest_difference(long, score_plain(model, contexts, branches)[0]) <= 1e-4


MODELS = {
    family: tiny.build(tiny.DECODERS[family]())
    for family in ("gpt_neox", "mistral_window", "gemma3_window")
}


PROMPTS = [
    f"{start} the capital of {end}?"
    for start in ("What is", "Where is")
    for end in ("France", "Spain", "Peru")
]
ANSWERS = [[" Paris", " Oslo"]] * len(PROMPTS)


@pytest.fixture
def from_40_on(everywhere, monkeypatch):
    """``everywhere``, for rows of 40 tokens and more: the check is shorter."""
    monkeypatch.setattr(flex, "SHORTEST", 40)
    return everywhere


def loaded(tmp_path, family: str, **options):
    config = tiny.DECODERS[family]()
    config.vocab_size = len(tiny.tokenizer())
    model = lm.load(tiny.folder(tmp_path, config), **options)
    model.budget = 32  # a shorter check
    return model


@pytest.mark.parametrize("family", ["llama", "gemma2_window"])
def test_states_behind_a_soft_prompt(family, everywhere, tmp_path, monkeypatch):
    model = loaded(tmp_path, family)
    monkeypatch.setattr(model, "path", "tree")
    monkeypatch.setattr(model, "flex", True)
    soft = torch.randn(4, 64, generator=torch.Generator().manual_seed(0)) * 0.25
    texts = ["Paris is nice.", "Lima", "Paris is", "What is the capital of Peru? Lima."]
    for model.budget in (2, 32):
        everywhere.clear()
        states, _ = model.hidden_states(texts, "The capital is Paris. ", soft_prompt=soft)
        assert everywhere
        before = model.tokens.prompts(["The capital is Paris. "])[0]
        for text, state in zip(texts, states, strict=True):
            ids = before + model.tokenizer(text, add_special_tokens=False)["input_ids"]
            assert state == pytest.approx(naive(model, ids, -1, soft), abs=1e-4)


def test_a_cpu_never_uses_it(tmp_path):
    model = loaded(tmp_path, "llama")
    about = (model.choose_path(), model.describe())[1]
    assert (about["flex"], about["flex_reason"]) == (False, "for cuda only")


@pytest.mark.parametrize(
    ("family", "reason"),
    [("gptj", "gptj has attention code of its own"), ("t5", "an encoder-decoder")],
)
def test_families_that_keep_sdpa_by_name(family, reason, everywhere, tmp_path):
    config = (tiny.DECODERS | tiny.ENCODER_DECODERS)[family]()
    config.vocab_size = len(tiny.tokenizer())
    model = lm.load(tiny.folder(tmp_path, config))
    assert model.choose_path() == "tree" and not model.flex and model.flex_reason == reason


def test_attention_sinks_keep_sdpa(from_40_on, tmp_path):
    model = loaded(tmp_path, "gpt_oss")
    assert model.choose_path() == "tree" and not model.flex
    assert model.flex_reason == "FlexError: this attention needs s_aux"


def shifted(intervals, depth, n, window, right=flex.block_masks):
    """Every token attends to the token before it in the row as well."""
    return right(Intervals(intervals.place, intervals.end + 1), depth, n, window)


def without_window(intervals, depth, n, window, right=flex.block_masks):
    return right(intervals, depth, n, None)


@pytest.mark.parametrize(
    ("sabotage", "dtype"),
    [
        pytest.param(shifted, "float32", marks=pytest.mark.slow),
        (without_window, "float32"),
        pytest.param(shifted, "bfloat16", marks=pytest.mark.slow),
    ],
)
def test_a_wrong_mask_is_noticed(sabotage, dtype, from_40_on, tmp_path, monkeypatch):
    """The model is scored as before, on the tree with dense masks; also if only windows of 4,096 tokens go wrong."""
    model = loaded(tmp_path, "mistral_window", dtype=dtype)
    model.hf_model.config.sliding_window = 4096
    assert model.choose_path() == "tree" and model.flex and model.flex_reason == ""
    monkeypatch.setattr(flex, "block_masks", sabotage)
    model.path = None
    assert model.choose_path() == "tree" and not model.flex
    assert model.describe()["flex_reason"].startswith("it changes log-probabilities")


def test_the_check_has_two_long_rows(everywhere, tmp_path, monkeypatch):
    """Of the shortest length at which FlexAttention is used, the second behind a cache."""
    monkeypatch.setattr(flex, "SHORTEST", 200)
    model = loaded(tmp_path, "llama")
    model.budget = 512
    assert not selfcheck._fails(model, selfcheck.FLEX)
    assert everywhere == [200] * 2 * (len(everywhere) // 2) and len(everywhere) >= 4


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("no kernel image"),
        pytest.param(TypeError("not subscriptable"), marks=pytest.mark.slow),
    ],
)
def test_a_failure_in_the_check_or_later_falls_back(error, from_40_on, tmp_path, monkeypatch):
    model = loaded(tmp_path, "llama")
    expected = model.logprobs(PROMPTS, ANSWERS, path="plain")["logprob"].to_numpy()
    assert model.choose_path() == "tree" and model.flex
    monkeypatch.setattr(flex, "flex_attention", lambda *_, **__: (_ for _ in ()).throw(error))
    with pytest.warns(UserWarning, match="FlexAttention failed"):
        scores = model.logprobs(PROMPTS, ANSWERS)["logprob"].to_numpy()
    assert scores == pytest.approx(expected, abs=1e-4)
    assert not model.flex and model.flex_reason.startswith(f"FlexError: {type(error).__name__}")
    model.path = None
    assert (
        model.choose_path() == "tree"
        and not model.flex
        and model.flex_reason.startswith(f"FlexError: {type(error).__name__}")
    )


def test_out_of_memory_still_halves_the_row(from_40_on, tmp_path, monkeypatch):
    model, attend = loaded(tmp_path, "llama"), flex.flex_attention
    expected = model.logprobs(PROMPTS, ANSWERS)["logprob"].to_numpy()

    def full(query, *rest, **options):
        if query.shape[2] > 40:
            raise torch.OutOfMemoryError("full")
        return attend(query, *rest, **options)

    monkeypatch.setattr(flex, "flex_attention", full)
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)
    assert model.logprobs(PROMPTS, ANSWERS)["logprob"].to_numpy() == pytest.approx(
        expected, abs=1e-4
    )
    assert (
        model.budget == 8 and model.flex
    )  # rows of 128, 64 and 32 tokens; the last ones have a dense mask


def test_compiled_once_for_rows_of_any_length():
    """The compiler's front end: a kernel without a cache and one behind it, whatever the lengths, softcap or tree."""
    kernels = []
    count = lambda graph, inputs: kernels.append(graph) or graph.forward
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            flex,
            "flex_attention",
            torch.compile(flex.flex_attention, dynamic=True, fullgraph=True, backend=count),
        )
        patch.setattr(flex, "SHORTEST", 1)
        model = tiny.build(tiny.DECODERS["gemma2_window"]())
        for seed, budget in ((0, 40), (1, 43), (2, 35)):
            contexts, branches = requests(seed)
            long, _, _ = score_tree(model, contexts, branches, budget, long=True)
            assert largest_difference(long, score_plain(model, contexts, branches)[0]) <= 1e-4
    assert 1 <= len(kernels) <= 4  # layers with a window have another mask
