"""What differs between model families when a tree is packed into one row: masks, positions, biases.

A token attends to its ancestors only (an additive float mask; a boolean one is silently wrong under
eager attention), its position is its depth, and biases by distance (ALiBi) use depths as well.
"""

import inspect
from collections.abc import Sequence
from contextlib import nullcontext
from importlib import import_module
from unittest import mock

import numpy as np
import torch

from probelib.errors import ProbeError
from probelib.lm.internals.cpu import attention_in_parts
from probelib.lm.internals.forwards import FORWARD as FORWARD

Ints = Sequence[int] | np.ndarray
Branches = Sequence[tuple[int, Sequence[int]]]  # (index of the context, token ids)
Scores = tuple[list[np.ndarray], list[np.ndarray], dict]  # log-probs, arg-max ids; cost
NO_POSITIONS = {"bloom", "mpt"}  # ALiBi only; they silently ignore position_ids


def forward_packed(
    hf_model, cache, tokens: Ints, depth: np.ndarray, visible: torch.Tensor, keep: Ints, layer=None
) -> torch.Tensor:
    """Forward a packed row after a cache (which it extends); return the outputs at some tokens.

    depth    [past + n] position of every key, cached ones first
    visible  [n, past + n] bool: the keys that each token attends to
    keep     indices of the tokens whose outputs are returned, at least one
    layer    None: logits [len(keep), vocabulary]; a number: hidden states [len(keep), width] of
             that layer (0 = embeddings, -1 = last layer, after the final norm)
    """
    device, past = hf_model.device, cache.get_seq_length()
    key = to_device(depth, device)  # [past + n]
    query = key[past:]  # [n]
    kept, states = to_device(keep, device), layer is not None
    inputs = {"input_ids": to_device(tokens, device)[None], state_name(hf_model): cache}
    inputs |= {"attention_mask": _mask(hf_model, visible, query, key), "use_cache": True}
    inputs |= {"logits_to_keep": kept[-1:] if states else kept, "output_hidden_states": states}
    if hf_model.config.model_type not in NO_POSITIONS:
        inputs["position_ids"] = query[None]
    with distance_bias(hf_model, key), attention_in_parts(hf_model, visible):
        output = hf_model(**inputs)
    return layer_states(output, layer)[0, kept] if states else output.logits[0]


def state_name(model) -> str:
    """The argument that takes the state of a forward pass; transformers 5.24 renames it."""
    known = inspect.signature(type(model).forward).parameters
    return next((name for name in ("cache_params", "cache") if name in known), "past_key_values")


def layer_states(output, layer: int) -> torch.Tensor:
    """Hidden states [rows, length, width] of a layer. Raise ProbeError for families with several
    states per token (Gemma 3n)."""
    last = len(output.hidden_states) - 1
    if not -last - 1 <= layer <= last:
        known = f"0 (embeddings) to {last}, or -1 (the last one)"
        raise ProbeError(f"layer {layer} does not exist; allowed: {known}")
    hidden = output.hidden_states[layer]
    if hidden.dim() != 3:
        what = f"states of shape {tuple(hidden.shape)}, not one per token"
        raise ProbeError(f"layer {layer} returns {what}: use another model family")
    return hidden


def to_device(values, device) -> torch.Tensor:
    """A tensor on the device, copied without waiting for the GPU's pending work."""
    tensor = torch.as_tensor(values)
    if device.type == "cuda":
        return tensor.pin_memory().to(device, non_blocking=True)
    return tensor.to(device)


def _mask(hf_model, visible: torch.Tensor, query: torch.Tensor, key: torch.Tensor):
    """The additive mask [1, 1, n, past + n] (0 where visible, the most negative number elsewhere),
    or one per layer type, with the family's window."""
    config, least = hf_model.config.get_text_config(), torch.finfo(hf_model.dtype).min
    zeros = torch.zeros((1, 1, *visible.shape), dtype=hf_model.dtype, device=visible.device)
    whole = lambda sees: zeros.masked_fill(~sees, least)
    full, types = whole(visible), getattr(config, "layer_types", None)
    if types and "chunked_attention" in types:  # Llama 4
        chunk = config.attention_chunk_size
        same = visible & (key[None] // chunk == query[:, None] // chunk)
        return {"full_attention": full, "chunked_attention": whole(same)}
    # the window of the family; some files name another family's
    has_window = "sliding_window" in type(config).__dataclass_fields__
    window = getattr(config, "sliding_window", None) if has_window else None
    if not window:
        return full
    near = whole(visible & (key[None] > query[:, None] - window))
    if types and "sliding_attention" in types:
        return {"full_attention": full, "sliding_attention": near}
    return full if types else near  # without types all layers have it (Mistral, Phi 3)


def distance_bias(hf_model, key: torch.Tensor):
    """Context manager: ALiBi by depth, the family's own bias read at each key's depth."""
    kind = hf_model.config.model_type
    if kind in NO_POSITIONS:
        owner = hf_model.transformer
        name = "build_mpt_alibi_tensor" if kind == "mpt" else "build_alibi_tensor"
    elif kind == "falcon" and hf_model.config.alibi:
        owner, name = import_module(type(hf_model).__module__), "build_alibi_tensor"
    else:
        return nullcontext()
    build, length = getattr(owner, name), int(key.max()) + 1

    def by_depth(first, second, *args, **kwargs):
        """MPT passes (heads, length); BLOOM and Falcon (mask, heads), and count in the mask."""
        ones = torch.ones(1, length, dtype=torch.long, device=key.device)
        arguments = (first, length) if kind == "mpt" else (ones, second)
        return build(*arguments, *args, **kwargs)[..., key]

    return mock.patch.object(owner, name, by_depth)
