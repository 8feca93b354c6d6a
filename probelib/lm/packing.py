"""Linear layers of full rows on a CPU: MKL lays a weight out anew for every product with it; once a call is enough."""

from contextlib import contextmanager

import torch
from transformers.pytorch_utils import Conv1D

TOKENS = 2048  # of a call; fewer are not worth it
NARROWEST = 512  # of a weight's two sides; narrower layers gain nothing
# entries of all these weights of a model (2 GiB): a second copy stands in memory during the call, in each process its own, and
# MKL reserves 8 MB of addresses for each weight beside it
LARGEST = 2**29


@contextmanager
def packed_weights(model, length: int, tokens: int):
    """Within it, linear layers in float32 that are given ``length`` tokens take their weight as MKL packed it. The same products
    in less time, and sums that may be rounded otherwise. All other layers and lengths are left alone, and all layers where
    products are to be taken in another precision.

    tokens   how many are coming in all
    """
    full_precision = torch.get_float32_matmul_precision() == "highest" and not torch.is_autocast_enabled("cpu")
    layers = [layer for layer in model.modules() if _packable(layer)] if tokens >= TOKENS and full_precision else []
    if sum(layer.weight.numel() for layer in layers) > LARGEST:
        layers = []
    try:
        for layer in layers:
            layer.forward = _product(layer, length)
        yield
    finally:
        for layer in layers:
            vars(layer).pop("forward", None)


def _packable(layer) -> bool:
    """Whether it is a plain linear layer (not quantized, pruned or moved between devices), wide enough, where torch has MKL."""
    plain = type(layer) in (torch.nn.Linear, Conv1D) and type(layer.weight) is torch.nn.Parameter
    if not plain or layer._forward_pre_hooks or "forward" in vars(layer):
        return False
    weight = layer.weight
    on_cpu = weight.device.type == "cpu" and weight.dtype == torch.float32
    return on_cpu and min(weight.shape) >= NARROWEST and hasattr(torch.ops.mkl, "_mkl_linear")


def _product(layer, length: int):
    """The layer's ``forward`` with its weight packed for ``length`` tokens, when first so many come."""
    own, packed = layer.forward, None
    weight = layer.weight.T if isinstance(layer, Conv1D) else layer.weight  # [out, in]

    def forward(*given, **named):
        nonlocal packed
        (x,) = *given, *named.values()
        if x.shape[:-1].numel() != length or x.shape[-1] != weight.shape[1]:  # the operator does not look at the width
            return own(x)
        if packed is None:
            packed = torch.ops.mkl._mkl_reorder_linear_weight(weight, length)
        return torch.ops.mkl._mkl_linear(x, packed, weight, layer.bias, length)

    return forward
