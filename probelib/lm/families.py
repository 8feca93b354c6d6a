"""What differs between model families when a tree is packed into one row: masks, positions, biases.

A packed row needs three things from the model. A token attends to its ancestors only (an additive float mask: 0 or the
most negative number; a boolean mask is silently wrong under eager attention). Its position is its depth. Biases by
distance (ALiBi) use depths as well. Every one of these can go wrong silently, so ``selfcheck`` compares packed rows with
plain sequences once per model.
"""

import threading
from collections.abc import Sequence
from contextlib import nullcontext
from functools import partial
from importlib import import_module
from unittest import mock

import numpy as np
import torch

from probelib.errors import ProbeError
from probelib.lm.internals import cpu, flex
from probelib.lm.internals.last_mlp import last_mlp_at
from probelib.lm.internals.own_layers import layers_by_depth

NO_POSITIONS = {"bloom", "mpt"}  # ALiBi only; they silently ignore position_ids
# A packed row changes attention, masks and biases in modules and in global tables of transformers: one thread at a time.
FORWARD = threading.RLock()


def forward_packed(
    hf_model,
    cache,
    tokens: Sequence[int] | np.ndarray,
    depth: np.ndarray,
    visible: torch.Tensor | flex.Intervals,
    keep: Sequence[int] | np.ndarray,
    layer: int | None = None,
) -> torch.Tensor:
    """Forward a packed row after a cache (which it extends); return the outputs at some of its tokens.

    tokens   [n] ids of the row
    depth    [past + n] position of every key, cached ones first
    visible  [n, past + n] bool: the keys that each token attends to; as intervals: FlexAttention is used
    keep     indices of the tokens whose outputs are returned, at least one; the head is applied to these only
    layer    None: logits [len(keep), vocabulary]; a number: hidden states [len(keep), width] of that layer
             (0 = embeddings, -1 = last layer, after the final norm)
    """
    device, past = hf_model.device, cache.get_seq_length()
    key = to_device(depth, device)  # [past + n]
    query = key[past:]  # [n]
    positions = {} if hf_model.config.model_type in NO_POSITIONS else {"position_ids": query[None]}
    ids, kept = to_device(tokens, device)[None], to_device(keep, device)
    layers = layers_by_depth(hf_model, visible, query, key)
    if isinstance(visible, flex.Intervals):
        mask, attention = partial(_flex_mask, hf_model, visible, query, key), flex.long_row_attention(hf_model)
    else:
        mask, attention = partial(_mask, hf_model, visible, query, key), cpu.attention_in_parts(hf_model, visible)
    with distance_bias(hf_model, key), layers, attention, last_mlp_at(hf_model, kept):
        output = hf_model(
            input_ids=ids,
            attention_mask=mask(),
            past_key_values=cache,
            use_cache=True,
            logits_to_keep=kept if layer is None else kept[-1:],
            output_hidden_states=layer is not None,
            **positions,
        )
    return output.logits[0] if layer is None else layer_states(output, layer)[0, kept]


def layer_states(output, layer: int) -> torch.Tensor:
    """Hidden states [rows, length, width] of a layer. Raise ProbeError for families with several states per token
    (Gemma 3n)."""
    last = len(output.hidden_states) - 1
    if not -last - 1 <= layer <= last:
        raise ProbeError(f"layer {layer} does not exist; allowed: 0 (embeddings) to {last}, or -1 (the last one)")
    hidden = output.hidden_states[layer]
    if hidden.dim() != 3:
        shape = " x ".join(map(str, hidden.shape))
        raise ProbeError(f"layer {layer} returns {shape} hidden states, not one per token: use another model family")
    return hidden


def to_device(values, device) -> torch.Tensor:
    """A tensor on the device, copied without waiting for the GPU's pending work."""
    tensor = torch.as_tensor(values)
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor.to(device)


def additive_mask(visible: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """[..., q, k] bool -> [..., q, k] float: 0 where visible, the most negative number elsewhere."""
    return torch.zeros(visible.shape, dtype=dtype, device=visible.device).masked_fill_(~visible, torch.finfo(dtype).min)


def _mask(hf_model, visible: torch.Tensor, query: torch.Tensor, key: torch.Tensor):
    """The additive mask [1, 1, n, past + n], or a dictionary with one mask per layer type.

    A 4D mask replaces a family's sliding window, so the mask itself must contain it."""
    config, full = hf_model.config.get_text_config(), additive_mask(visible, hf_model.dtype)[None, None]
    types = getattr(config, "layer_types", None)
    if types and "chunked_attention" in types:  # Llama 4
        chunk = config.attention_chunk_size
        same = visible & (key[None] // chunk == query[:, None] // chunk)
        return {"full_attention": full, "chunked_attention": additive_mask(same, hf_model.dtype)[None, None]}
    window = _window(config)
    if not window:
        return full
    near = additive_mask(visible & (key[None] > query[:, None] - window), hf_model.dtype)[None, None]
    return _by_layer(types, full, near)


def _flex_mask(hf_model, intervals: flex.Intervals, query: torch.Tensor, key: torch.Tensor):
    """``_mask`` for FlexAttention."""
    config = hf_model.config.get_text_config()
    window = _window(config)
    full, near = flex.block_masks(intervals, key, len(query), window)
    return _by_layer(getattr(config, "layer_types", None), full, near) if window else full


def _window(config) -> int | None:
    """The sliding window of a family; some files name another family's."""
    return getattr(config, "sliding_window", None) if "sliding_window" in type(config).__dataclass_fields__ else None


def _by_layer(types: list[str] | None, full, near):
    """The mask that a forward gets. Without layer types all layers have the window (Mistral, Phi 3)."""
    if types and "sliding_attention" in types:
        return {"full_attention": full, "sliding_attention": near}
    return full if types else near


def distance_bias(hf_model, key: torch.Tensor):
    """Context manager: ALiBi by depth. It builds the family's own bias for positions 0..max and reads it at each key's
    depth. No effect on families without ALiBi."""
    kind = hf_model.config.model_type
    if kind in NO_POSITIONS:
        owner, name = hf_model.transformer, "build_mpt_alibi_tensor" if kind == "mpt" else "build_alibi_tensor"
    elif kind == "falcon" and hf_model.config.alibi:
        owner, name = import_module(type(hf_model).__module__), "build_alibi_tensor"
    else:
        return nullcontext()
    build, length = getattr(owner, name), int(key.max()) + 1

    def by_depth(first, second, *args, **kwargs):
        """MPT passes (heads, length); BLOOM and Falcon pass (mask, heads) and count positions from the mask."""
        ones = torch.ones(1, length, dtype=torch.long, device=key.device)
        arguments = (first, length) if kind == "mpt" else (ones, second)
        return build(*arguments, *args, **kwargs)[..., key]

    return mock.patch.object(owner, name, by_depth)
