"""Attention of packed rows on CPUs: a row of many branches is mostly mask, and attention skips what
is masked for whole blocks. Saves the organisms a quarter of MONITOR's CPU time."""

from contextlib import contextmanager
from typing import Any

import torch
from torch.nn.functional import pad
from transformers import AttentionInterface
from transformers.integrations.sdpa_attention import repeat_kv, sdpa_attention_forward

QUERIES = 64  # tokens of a row whose attention is computed together
SHARED = 32  # cached keys visible to all tokens that are worth a product of their own
# what scaled_dot_product_attention calls on a CPU; it also returns the log-sums [batch, heads, q]
flash: Any = getattr(torch.ops.aten, "_scaled_dot_product_flash_attention_for_cpu", None)


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

    def masks(whole: torch.Tensor) -> tuple:
        """-> shared keys [1, 1, n, shared] (None: all visible), blocks [b, 1, QUERIES, width]"""
        if id(whole) not in known:
            all_see = whole[..., :shared] if whole[..., :shared].any() else None
            some_see = blocks(whole[0, 0]).take_along_dim(near[:, None], 2)[:, None]
            known[id(whole)] = whole, all_see, some_see
        return known[id(whole)][1:]

    def attention(module, query, key, value, attention_mask, scaling=None, **kwargs):
        """query [1, heads, n, width]; key, value [1, heads, past + n, width]"""
        if kwargs.get("position_bias") is not None or query.shape[-1] != value.shape[-1]:
            options = {"scaling": scaling} | kwargs
            return sdpa_attention_forward(module, query, key, value, attention_mask, **options)
        groups = getattr(module, "num_key_value_groups", 1)
        key, value = repeat_kv(key, groups), repeat_kv(value, groups)
        all_see, some_see = masks(attention_mask)
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
