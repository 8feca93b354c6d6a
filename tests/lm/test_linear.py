"""Faster linear layers on a CPU: the same products, anything unusual left alone; packed weights leave nothing behind."""

import copy
import platform
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn.utils import prune
from transformers.pytorch_utils import Conv1D

from probelib import lm
from probelib.lm.internals import cpu
from probelib.lm.internals.cpu import packed_weights, take_onednn
from probelib.lm.plain import score_plain
from probelib.lm.tree import score_tree
from tests.lm import tiny
from tests.lm.test_tree import TOLERANCE, largest_difference

pytestmark = [
    pytest.mark.skipif(not hasattr(torch.ops.mkl, "_mkl_linear"), reason="this torch has no MKL"),
    pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="this torch has no oneDNN"),
]

OWN_LINEAR = {"falcon", "falcon_alibi"}  # a class of their own for linear layers


@pytest.fixture
def packed(monkeypatch) -> list[tuple]:
    """Shapes of the weights that were packed, narrow ones and in short calls too."""
    seen, product = [], torch.ops.mkl._mkl_reorder_linear_weight
    monkeypatch.setattr(cpu, "NARROWEST", 1)
    monkeypatch.setattr(cpu, "TOKENS", 100)
    monkeypatch.setattr(
        torch.ops.mkl, "_mkl_reorder_linear_weight", lambda w, n: seen.append(tuple(w.shape)) or product(w, n)
    )
    return seen


def test_a_product_by_hand(packed):
    """x = (1, 2), W = ((3, 4), (5, 6), (7, 8)), b = (0.5, 0, -1): W x + b = (11.5, 17, 22); packed once for all rows of 4."""
    layer = torch.nn.Linear(2, 3)
    with torch.inference_mode():
        layer.weight.copy_(torch.tensor([[3.0, 4.0], [5.0, 6.0], [7.0, 8.0]]))
        layer.bias.copy_(torch.tensor([0.5, 0.0, -1.0]))
        row = torch.tensor([[[1.0, 2.0]] * 4])
        with packed_weights(layer, 4, 100):
            for _ in range(3):
                assert layer(row).tolist() == [[[11.5, 17.0, 22.0]] * 4]
            assert layer(input=row).tolist() == [[[11.5, 17.0, 22.0]] * 4]
            assert layer(row[:, :3]).tolist() == [[[11.5, 17.0, 22.0]] * 3]  # another length: as ever
    assert packed == [(3, 2)] and "forward" not in vars(layer)


@pytest.mark.parametrize("family", tiny.SOME_DECODERS)
def test_packing_changes_no_score(family, packed, monkeypatch):
    model, rng = tiny.build(tiny.DECODERS[family]()), np.random.default_rng(0)
    draw = lambda n: [int(t) for t in rng.integers(3, tiny.V, n)]
    contexts, branches = [draw(6) for _ in range(40)], [(i, tuple(draw(3))) for i in range(40)]
    inside, best, cost = score_tree(model, contexts, branches, 64)
    assert cost["forwarded_tokens"] > 100 and bool(packed) != (family in OWN_LINEAR)
    monkeypatch.setattr(cpu, "LARGEST", 0)
    packed.clear()
    whole, whole_best, _ = score_tree(model, contexts, branches, 64)
    assert not packed
    assert largest_difference(inside, whole) <= TOLERANCE / 2
    assert largest_difference(inside, score_plain(model, contexts, branches)[0]) <= TOLERANCE
    assert all((a == b).all() for a, b in zip(best, whole_best, strict=True))


def test_weights_changed_between_two_calls_are_seen(packed):
    """A packed copy lives as long as the call: a model that is trained or edited in between answers as it is now."""
    model = tiny.build(tiny.DECODERS["gpt2"]())
    contexts, branches = [[n, n + 1, 7] for n in range(5, 95)], [(i, (9, 8)) for i in range(90)]
    before, _, _ = score_tree(model, contexts, branches, 32)
    with torch.no_grad():
        for weight in model.parameters():
            weight.data.mul_(1.1)
    after, _, _ = score_tree(model, contexts, branches, 32)
    assert len(packed) > 2 and largest_difference(before, after) > 0.01
    assert largest_difference(after, score_plain(model, contexts, branches)[0]) <= TOLERANCE


class Quantized(torch.nn.Linear):
    """What bitsandbytes puts in a linear layer's place: a class that is derived from it."""


class Coded(torch.nn.Parameter):
    """What other libraries put in the weight's place."""


def coded() -> torch.nn.Linear:
    layer = torch.nn.Linear(4, 4)
    layer.weight = Coded(layer.weight.data)
    return layer


def pruned() -> torch.nn.Linear:
    """Its weight is made anew before each forward."""
    return prune.l1_unstructured(torch.nn.Linear(4, 4), "weight", 0.5)


def hooked() -> torch.nn.Linear:
    """What runs before its forward may change the weight."""
    layer = torch.nn.Linear(4, 4)
    layer.register_forward_pre_hook(lambda module, _: module.weight.data.mul_(2))
    return layer


@pytest.mark.parametrize(
    ("layer", "tokens"),
    [
        (torch.nn.Linear(4, 4), 99),  # packing would cost more than it saves
        (torch.nn.Linear(4, 4).bfloat16(), 100),
        (Quantized(4, 4), 100),
        (coded(), 100),
        (pruned(), 100),
        (hooked(), 100),
        (torch.nn.Linear(4, 4, device="meta"), 100),  # a weight that lies elsewhere until it is needed
    ],
)
def test_what_is_left_alone(layer, tokens, packed):
    with packed_weights(layer, 8, tokens):
        assert "forward" not in vars(layer)


def test_a_precision_that_the_user_chose_is_kept(packed):
    layer = torch.nn.Linear(4, 4)
    with torch.autocast("cpu", torch.bfloat16), packed_weights(layer, 8, 100):
        assert "forward" not in vars(layer)
    torch.set_float32_matmul_precision("medium")
    try:
        with packed_weights(layer, 8, 100):
            assert "forward" not in vars(layer)
    finally:
        torch.set_float32_matmul_precision("highest")
    with packed_weights(layer, 8, 100):
        assert "forward" in vars(layer)


def test_a_narrow_layer_is_left_alone():
    layers = torch.nn.Sequential(torch.nn.Linear(511, 4096), torch.nn.Linear(512, 512), Conv1D(512, 512))
    with packed_weights(layers, 8, cpu.TOKENS):
        assert ["forward" in vars(layer) for layer in layers] == [False, True, True]


def test_layers_are_given_back_after_an_error(packed):
    layer = torch.nn.Linear(4, 4)
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"), packed_weights(layer, 8, 100):
        layer(torch.ones(1, 8, 5))
    assert "forward" not in vars(layer)


@pytest.fixture
def taken(monkeypatch) -> list[tuple]:
    """Shapes of the inputs that oneDNN multiplied, small ones too."""
    seen, product = [], torch.ops.mkldnn._linear_pointwise
    monkeypatch.setattr(cpu, "LARGE", 1)
    monkeypatch.setattr(
        torch.ops.mkldnn, "_linear_pointwise", lambda x, *rest: seen.append(tuple(x.shape)) or product(x, *rest)
    )
    return seen


@pytest.mark.parametrize("bias", [True, False])
def test_a_product_by_hand_with_onednn(bias, taken):
    """x = (1, 2), W = ((3, 4), (5, 6), (7, 8)), b = (0.5, 0, -1): W x + b = (11.5, 17, 22); without b (11, 17, 23)."""
    layer = torch.nn.Linear(2, 3, bias=bias)
    take_onednn(layer)
    with torch.inference_mode():
        layer.weight.copy_(torch.tensor([[3.0, 4.0], [5.0, 6.0], [7.0, 8.0]]))
        layer.bias.copy_(torch.tensor([0.5, 0.0, -1.0])) if bias else None
        expected = [11.5, 17.0, 22.0] if bias else [11.0, 17.0, 23.0]
        assert layer(torch.tensor([1.0, 2.0])).tolist() == expected
        assert layer(input=torch.tensor([[[1.0, 2.0]] * 4])).tolist() == [[expected] * 4]
        every_other = torch.tensor([[1.0, 9.0, 2.0, 9.0]] * 2)[:, ::2]
        assert layer(every_other).tolist() == [expected] * 2
    assert taken == [(2,), (1, 4, 2), (2, 2)]


@pytest.mark.parametrize("family", tiny.SOME_DECODERS)
def test_onednn_changes_no_score(family, taken):
    model, rng = tiny.build(tiny.DECODERS[family]()), np.random.default_rng(0)
    draw = lambda n: [int(t) for t in rng.integers(3, tiny.V, n)]
    contexts, branches = [draw(6) for _ in range(10)], [(i, tuple(draw(3))) for i in range(10)]
    mkl, mkl_best, _ = score_plain(model, contexts, branches)
    assert not taken
    take_onednn(model)
    for scores, best, _ in (score_tree(model, contexts, branches, 64), score_plain(model, contexts, branches)):
        assert largest_difference(scores, mkl) <= TOLERANCE
        assert all((a == b).all() for a, b in zip(best, mkl_best, strict=True))
    assert taken


@pytest.mark.parametrize("layer", [torch.nn.Linear(4, 4).bfloat16(), Quantized(4, 4), coded(), pruned()])
def test_what_onednn_is_not_given(layer, taken):
    before = layer(torch.ones(8, 4, dtype=layer.weight.dtype))
    take_onednn(layer)
    with torch.inference_mode():
        assert torch.equal(layer(torch.ones(8, 4, dtype=layer.weight.dtype)), before)
    assert not taken


def test_gradients_other_precisions_and_few_tokens_keep_the_layers_own_product(taken, monkeypatch):
    layer, x = torch.nn.Linear(4, 4), torch.ones(8, 4)
    take_onednn(layer)
    layer(x).sum().backward()
    assert layer.weight.grad.tolist() == [[8.0] * 4] * 4
    with torch.inference_mode():
        with torch.autocast("cpu", torch.bfloat16):
            assert layer(x).dtype == torch.bfloat16
        with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
            layer(torch.ones(8, 5))
        monkeypatch.setattr(cpu, "LARGE", 8 * 4 * 4 + 1)
        layer(x)
        assert not taken
        layer(torch.ones(9, 4))
    assert taken == [(9, 4)]


def test_a_copy_and_a_changed_weight_answer_with_their_own_weights(taken):
    layer, x = torch.nn.Linear(4, 4, bias=False), torch.ones(1, 4)
    take_onednn(layer)
    other = copy.deepcopy(layer)
    with torch.inference_mode():
        layer.weight.fill_(1.0)
        other.weight.fill_(2.0)
        assert (layer(x).tolist(), other(x).tolist()) == ([[4.0] * 4], [[8.0] * 4])
    assert len(taken) == 2


@pytest.mark.parametrize(
    ("vendor", "capability", "slow"),
    [("AuthenticAMD", "AVX512", True), ("AuthenticAMD", "AVX2", False), ("GenuineIntel", "AVX512", False)],
)
@pytest.mark.parametrize("linux", [True, False])
def test_mkl_is_slow_on_amds_processors_with_avx512(vendor, capability, slow, linux, monkeypatch):
    def cpuinfo(path):
        if not linux:
            raise FileNotFoundError(path)
        return f"processor : 0\nvendor_id : {vendor}\n"

    monkeypatch.setattr(Path, "read_text", cpuinfo)
    monkeypatch.setattr(platform, "processor", lambda: f"AMD64 Family 26, {vendor}")
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: capability)
    assert cpu.mkl_is_slow() == slow


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("slow", [True, False])
def test_a_loaded_model_takes_what_is_faster(slow, dtype, monkeypatch):
    monkeypatch.setattr(cpu, "mkl_is_slow", lambda: slow)
    model = lm.load("atlas-neox-0.15m", dtype=dtype)
    assert ("forward" in vars(model.hf_model.get_output_embeddings())) == (slow and dtype == "float32")
    assert model.choose_path() == "tree"


def test_a_torch_without_the_private_operators_gives_the_same_scores(monkeypatch):
    """Their names are not public: a later torch may rename them. Then the model's own layers and attention are used."""
    assert not hasattr(torch.ops.mkldnn, "renamed")  # this is how torch says that it has no such operator
    texts = [f"{'What is the capital of France? ' * 30}{ending}" for ending in ("It is", "Tell me:", "Name it:")]
    score = lambda: lm.load("atlas-neox-0.15m").logprobs(texts, [[" Paris", " Lima"]] * 3)["logprob"].to_numpy()
    monkeypatch.setattr(cpu, "TOKENS", 100)
    monkeypatch.setattr(cpu, "NARROWEST", 1)
    usual = score()
    monkeypatch.setattr(cpu, "flash", None)
    monkeypatch.setattr(torch.ops, "mkl", object())
    monkeypatch.setattr(torch.ops, "mkldnn", object())
    assert not cpu.mkl_is_slow()
    assert score() == pytest.approx(usual, abs=TOLERANCE)
