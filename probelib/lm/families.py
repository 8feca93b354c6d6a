"""A tree packed into one row: what differs between families (masks, positions, biases), and on a
CPU attention in parts: a row is mostly mask. It saves organisms a quarter of MONITOR's time.

A token attends to its ancestors only (an additive float mask; a boolean one is silently wrong under
eager attention), its position is its depth, and biases by distance (ALiBi) use depths as well.
"""

import inspect
from collections.abc import Sequence
from contextlib import contextmanager, nullcontext
from importlib import import_module
from typing import Any
from unittest import mock

import numpy as np
import torch
from torch.nn.functional import pad
from transformers import AttentionInterface
from transformers.integrations.sdpa_attention import repeat_kv, sdpa_attention_forward

from probelib.errors import ProbeError

Ints = Sequence[int] | np.ndarray
Branches = Sequence[tuple[int, Sequence[int]]]  # (index of the context, token ids)
Scores = tuple[list[np.ndarray], list[np.ndarray], dict]  # log-probs, arg-max ids; cost
NO_POSITIONS = {"bloom", "mpt"}  # ALiBi only; they silently ignore position_ids
QUERIES = 64  # tokens of a row whose attention is computed together
SHARED = 32  # cached keys visible to all tokens that are worth a product of their own
# what scaled_dot_product_attention calls on a CPU; it also returns the log-sums [batch, heads, q]
flash: Any = getattr(torch.ops.aten, "_scaled_dot_product_flash_attention_for_cpu", None)


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


@contextmanager
def attention_in_parts(hf_model, visible: torch.Tensor):
    """Context manager: attention of a packed row in parts, if that is less work than the whole.

        keys              cached, visible to all tokens      the remaining cache and the row
        tokens 0 to 63    one product for all tokens         only what one of these 64 sees
        tokens 64 to 127                                     only what one of these 64 sees

    Each part is a softmax; the log-sums of their weights join the two. Short rows, and families
    with attention code of their own, keep theirs. ``visible``: as in ``forward_packed``.
    """
    config, n = hf_model.config.get_text_config(), len(visible)
    replaceable = hf_model.is_backend_compatible() and config._attn_implementation == "sdpa"
    if not (flash and replaceable) or visible.device.type != "cpu" or n < 2 * QUERIES:
        yield
        return
    # leading keys of the cache
    to_all = int(visible[:, : visible.shape[1] - n].all(0).int().cumprod(0).sum())
    shared, extra = to_all if to_all >= SHARED else 0, -n % QUERIES
    # [.., n, x] -> [.., blocks, QUERIES, x]
    blocks = lambda x: (pad(x, (0, 0, 0, extra)) if extra else x).unflatten(-2, (-1, QUERIES))
    seen = blocks(visible[:, shared:]).any(1)  # [blocks, keys]
    width = int(seen.sum(1).max())
    if 3 * width >= seen.shape[1]:  # copying so many keys per block costs more than it saves
        yield
        return
    # per block the keys that it sees, padded with some that it does not see
    near = shared + seen.byte().argsort(dim=1, descending=True, stable=True)[:, :width]
    known = {}  # masks of whole rows (some layers have their own) -> masks of the parts

    def attention(module, query, key, value, attention_mask, scaling=None, **kwargs):
        """query [1, heads, n, width]; key, value [1, heads, past + n, width]"""
        if kwargs.get("position_bias") is not None or query.shape[-1] != value.shape[-1]:
            options = {"scaling": scaling} | kwargs
            return sdpa_attention_forward(module, query, key, value, attention_mask, **options)
        groups = getattr(module, "num_key_value_groups", 1)
        key, value = repeat_kv(key, groups), repeat_kv(value, groups)
        if id(attention_mask) not in known:
            # shared keys [1, 1, n, shared] (None: all visible), blocks [b, 1, QUERIES, width]
            all_see = attention_mask[..., :shared] if attention_mask[..., :shared].any() else None
            some_see = blocks(attention_mask[0, 0]).take_along_dim(near[:, None], 2)[:, None]
            known[id(attention_mask)] = attention_mask, all_see, some_see
        _, all_see, some_see = known[id(attention_mask)]
        take = lambda x: x[0].index_select(1, near.flatten()).unflatten(1, near.shape)
        taken = [take(x).transpose(0, 1) for x in (key, value)]
        parts = flash(blocks(query[0]).transpose(0, 1), *taken, attn_mask=some_see, scale=scaling)
        # [1, heads, n, ..]
        output, sums = (x.transpose(0, 1).flatten(1, 2)[None, :, :n] for x in parts)
        if shared:
            far = [x[:, :, :shared] for x in (key, value)]
            far, far_sums = flash(query, *far, attn_mask=all_see, scale=scaling)
            weight = torch.sigmoid(far_sums - sums)[..., None].to(output.dtype)
            output = torch.lerp(output, far, weight)
        return output.transpose(1, 2).contiguous(), None

    AttentionInterface.register("parts", attention)
    config._attn_implementation = "parts"
    try:
        yield
    finally:
        config._attn_implementation = "sdpa"
        known.clear()  # the interface keeps ``attention`` until the next row
