"""Optional reading: faster kernels for CPUs. On a GPU nothing here acts; with ``ENABLED = False`` nothing acts at all.
The scores are the same up to rounding (sums in another order).

``attention_in_parts``   a packed row of many branches is mostly mask: attention skips what is masked for whole blocks
``packed_weights``       linear layers with weights packed once per call (MKL), for many full rows
``take_onednn``          linear layers with oneDNN on AMD processors with AVX-512, where MKL does not use it
"""

import platform
from contextlib import contextmanager
from pathlib import Path
from types import MethodType

import torch
from torch.nn.functional import pad
from transformers import AttentionInterface
from transformers.integrations.sdpa_attention import repeat_kv, sdpa_attention_forward
from transformers.pytorch_utils import Conv1D

ENABLED = True

QUERIES = 64  # tokens of a row whose attention is computed together
SHARED = 32  # cached keys visible to all tokens that are worth a product of their own
# what scaled_dot_product_attention calls on a CPU; this one also returns the log-sums [batch, heads, q]
flash = getattr(torch.ops.aten, "_scaled_dot_product_flash_attention_for_cpu", None)

LINEAR = (torch.nn.Linear, Conv1D)  # exactly these classes, no subclasses
LARGE = 2**23  # multiplications from which oneDNN is faster, including a new kernel per number of tokens
TOKENS = 2048  # packing weights for fewer tokens per call does not pay
NARROWEST = 512  # narrower layers gain nothing from packed weights
# Entries of all packed weights of a model (2 GiB): they are a second copy in memory, in every process, and MKL reserves
# 8 MB of addresses per weight.
LARGEST = 2**29


@contextmanager
def attention_in_parts(hf_model, visible: torch.Tensor):
    """Context manager: attention of a packed row in parts, if that is less work than the whole.

        keys              cached, visible to all tokens      the remaining cache and the row
        tokens 0 to 63    one product for all tokens         only what one of these 64 sees
        tokens 64 to 127                                     only what one of these 64 sees

    Each part is a softmax; the log-sums of their weights join the two. Short rows, chains, and families with attention
    code of their own keep theirs.

    visible   [n, past + n] bool: the keys that each token of the row attends to
    """
    config, n = hf_model.config.get_text_config(), len(visible)
    replaceable = flash and hf_model.is_backend_compatible() and config._attn_implementation == "sdpa"
    if not ENABLED or visible.device.type != "cpu" or not replaceable or n < 2 * QUERIES:
        yield
        return
    to_all = int(visible[:, : visible.shape[1] - n].all(0).int().cumprod(0).sum())  # leading keys of the cache
    shared, extra = to_all if to_all >= SHARED else 0, -n % QUERIES
    # [.., n, x] -> [.., blocks, QUERIES, x]
    blocks = lambda x: (pad(x, (0, 0, 0, extra)) if extra else x).unflatten(-2, (-1, QUERIES))
    seen = blocks(visible[:, shared:]).any(1)  # [blocks, keys]
    width = int(seen.sum(1).max())
    if 3 * width >= seen.shape[1]:  # copying that many keys per block costs more time and memory than it saves
        yield
        return
    # per block the keys that it sees, padded with some that it does not see
    near = shared + seen.byte().argsort(dim=1, descending=True, stable=True)[:, :width]
    known = {}  # masks of whole rows (some layers have their own) -> masks of the parts

    def masks(whole: torch.Tensor) -> tuple:
        """[1, 1, n, past + n] -> shared keys [1, 1, n, shared] (None: all visible), blocks [b, 1, QUERIES, width]"""
        if id(whole) not in known:
            all_see = whole[..., :shared] if whole[..., :shared].any() else None
            known[id(whole)] = whole, all_see, blocks(whole[0, 0]).take_along_dim(near[:, None], 2)[:, None]
        return known[id(whole)][1:]

    def attention(module, query, key, value, attention_mask, scaling=None, **kwargs):
        """query [1, heads, n, width]; key, value [1, heads, past + n, width] -> [1, n, heads, width]"""
        if kwargs.get("position_bias") is not None or query.shape[-1] != value.shape[-1]:
            return sdpa_attention_forward(module, query, key, value, attention_mask, scaling=scaling, **kwargs)
        key, value = (repeat_kv(x, getattr(module, "num_key_value_groups", 1)) for x in (key, value))
        all_see, some_see = masks(attention_mask)
        taken = [x[0].index_select(1, near.flatten()).unflatten(1, near.shape).transpose(0, 1) for x in (key, value)]
        parts = flash(blocks(query[0]).transpose(0, 1), *taken, attn_mask=some_see, scale=scaling)
        output, sums = (x.transpose(0, 1).flatten(1, 2)[None, :, :n] for x in parts)  # [1, heads, n, ..]
        if shared:
            far, far_sums = flash(query, key[:, :, :shared], value[:, :, :shared], attn_mask=all_see, scale=scaling)
            output = torch.lerp(output, far, torch.sigmoid(far_sums - sums)[..., None].to(output.dtype))
        return output.transpose(1, 2).contiguous(), None

    AttentionInterface.register("parts", attention)
    config._attn_implementation = "parts"
    try:
        yield
    finally:
        config._attn_implementation = "sdpa"
        known.clear()  # the interface keeps ``attention`` until the next row


def mkl_is_slow() -> bool:
    """Whether this processor has AVX-512 but MKL does not use it (AMD)."""
    try:
        info = Path("/proc/cpuinfo").read_text()
    except OSError:
        info = platform.processor()  # Windows: "AMD64 Family 26 Model 2 Stepping 1, AuthenticAMD"
    avx512 = torch.backends.cpu.get_cpu_capability() == "AVX512"
    onednn = torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")
    return ENABLED and avx512 and "AuthenticAMD" in info and onednn


def take_onednn(hf_model) -> None:
    """Compute large products of the model's linear layers with oneDNN from now on (2 to 2.7 times as fast on a Zen 5).
    Weights are read at every call, so they may change."""
    for layer in hf_model.modules():
        if type(layer) in LINEAR and "forward" not in vars(layer):
            layer.forward = MethodType(_onednn, layer)


def _onednn(layer, *args, **kwargs):
    """The layer's ``forward``; with gradients, in another precision, or for few tokens it is the layer's own."""
    (x,), weight = (*args, *kwargs.values()), _out_in(layer)
    large = x.shape[:-1].numel() * weight.numel() >= LARGE and x.shape[-1] == weight.shape[1]
    if not (large and torch.is_inference_mode_enabled() and _plain(layer) and x.dtype == weight.dtype):
        return type(layer).forward(layer, x)
    return torch.ops.mkldnn._linear_pointwise(x, weight, layer.bias, "none", [], "")


@contextmanager
def packed_weights(hf_model, length: int, tokens: int):
    """Context manager: linear layers use MKL's packed weights for inputs of ``length`` tokens; other lengths do not.

    tokens   number of tokens that will be forwarded in all
    """
    layers = [layer for layer in hf_model.modules() if _packable(layer)] if ENABLED and tokens >= TOKENS else []
    if sum(layer.weight.numel() for layer in layers) > LARGEST:
        layers = []
    try:
        for layer in layers:
            layer.forward = _packed(layer, length)
        yield
    finally:
        for layer in layers:
            vars(layer).pop("forward", None)


def _out_in(layer) -> torch.Tensor:
    """The weight [out, in] of a layer."""
    return layer.weight.T if isinstance(layer, Conv1D) else layer.weight


def _plain(layer) -> bool:
    """Whether the weight is plain float32 on the CPU (not quantized, not pruned) and full precision is requested."""
    weight = layer.weight
    on_cpu = type(weight) is torch.nn.Parameter and weight.device.type == "cpu" and weight.dtype == torch.float32
    return on_cpu and torch.get_float32_matmul_precision() == "highest" and not torch.is_autocast_enabled("cpu")


def _packable(layer) -> bool:
    """Whether a linear layer is unmodified and wide enough, and torch has MKL."""
    if type(layer) not in LINEAR or layer._forward_pre_hooks or "forward" in vars(layer):
        return False
    return _plain(layer) and min(layer.weight.shape) >= NARROWEST and hasattr(torch.ops.mkl, "_mkl_linear")


def _packed(layer, length: int):
    """The layer's ``forward``; it packs the weight when it first gets ``length`` tokens."""
    original, packed = layer.forward, None
    weight = _out_in(layer)

    def forward(*args, **kwargs):
        nonlocal packed
        (x,) = *args, *kwargs.values()
        if x.shape[:-1].numel() != length or x.shape[-1] != weight.shape[1]:  # the operator does not check the width
            return original(x)
        if packed is None:
            packed = torch.ops.mkl._mkl_reorder_linear_weight(weight, length)
        return torch.ops.mkl._mkl_linear(x, packed, weight, layer.bias, length)

    return forward
