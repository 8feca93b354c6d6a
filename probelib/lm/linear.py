"""Linear layers in float32 on a CPU. torch multiplies with MKL, and two things are faster than that:

    AMD, AVX-512   oneDNN, which torch ships too: MKL takes AVX-512 on Intel's processors alone (Zen 5: 2 to 2.7 times)
    elsewhere      MKL itself, with weights laid out once a call for its many full rows, not anew for every product

The same products, and sums that may be rounded otherwise. Anything but a plain layer in full precision is left alone.
"""

import platform
from contextlib import contextmanager
from pathlib import Path
from types import MethodType

import torch
from transformers.pytorch_utils import Conv1D

# multiplications from which oneDNN is faster, what it takes to make a kernel for each new number of tokens included
LARGE = 2**23
LINEAR = (torch.nn.Linear, Conv1D)  # these alone, not what is derived from them
TOKENS = 2048  # of a call; to pack weights for fewer is not worth it
NARROWEST = 512  # of a weight's two sides; packed, narrower layers gain nothing
# entries of all these weights of a model (2 GiB): a second copy stands in memory during the call, in each process its own, and
# MKL reserves 8 MB of addresses for each weight beside it
LARGEST = 2**29


def mkl_is_slow() -> bool:
    """Whether this processor has AVX-512 and MKL would not take it."""
    try:
        said = Path("/proc/cpuinfo").read_text()
    except OSError:
        said = platform.processor()  # Windows: "AMD64 Family 26 Model 2 Stepping 1, AuthenticAMD"
    avx512 = torch.backends.cpu.get_cpu_capability() == "AVX512"
    return avx512 and "AuthenticAMD" in said and torch.backends.mkldnn.is_available()


def take_onednn(model) -> None:
    """From now on the large products of its linear layers are oneDNN's. Weights are read anew for each, so they may change."""
    for layer in model.modules():
        if type(layer) in LINEAR and "forward" not in vars(layer):
            layer.forward = MethodType(_onednn, layer)


def _onednn(layer, *given, **named):
    """The layer's ``forward``; with gradients, in another precision or of few tokens its own."""
    (x,), weight = (*given, *named.values()), _out_in(layer)
    large = x.shape[:-1].numel() * weight.numel() >= LARGE and x.shape[-1] == weight.shape[1]
    if not (large and torch.is_inference_mode_enabled() and _plain(layer) and x.dtype == weight.dtype):
        return type(layer).forward(layer, x)
    return torch.ops.mkldnn._linear_pointwise(x, weight, layer.bias, "none", [], "")


@contextmanager
def packed_weights(model, length: int, tokens: int):
    """Within it, linear layers that are given ``length`` tokens take their weight as MKL packed it; other lengths do not.

    tokens   how many are coming in all
    """
    layers = [layer for layer in model.modules() if _packable(layer)] if tokens >= TOKENS else []
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
    """Whether its weight is float32 as it stands (not quantized, pruned or elsewhere), and products are to be taken so."""
    weight = layer.weight
    on_cpu = type(weight) is torch.nn.Parameter and weight.device.type == "cpu" and weight.dtype == torch.float32
    return on_cpu and torch.get_float32_matmul_precision() == "highest" and not torch.is_autocast_enabled("cpu")


def _packable(layer) -> bool:
    """Whether it is a linear layer that nothing else has changed, wide enough, where torch has MKL."""
    if type(layer) not in LINEAR or layer._forward_pre_hooks or "forward" in vars(layer):
        return False
    return _plain(layer) and min(layer.weight.shape) >= NARROWEST and hasattr(torch.ops.mkl, "_mkl_linear")


def _packed(layer, length: int):
    """The layer's ``forward`` with its weight packed for ``length`` tokens, when first so many come."""
    own, packed = layer.forward, None
    weight = _out_in(layer)

    def forward(*given, **named):
        nonlocal packed
        (x,) = *given, *named.values()
        if x.shape[:-1].numel() != length or x.shape[-1] != weight.shape[1]:  # the operator does not look at the width
            return own(x)
        if packed is None:
            packed = torch.ops.mkl._mkl_reorder_linear_weight(weight, length)
        return torch.ops.mkl._mkl_linear(x, packed, weight, layer.bias, length)

    return forward
