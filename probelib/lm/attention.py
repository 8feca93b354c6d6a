"""Attention of a packed row on a CPU: a row of many branches is mostly mask, and what all of it sees is computed together.

    keys              cached, seen by all tokens      the rest of the cache and the row
    tokens 0 to 63    one product for all of them     only what one of these 64 sees
    tokens 64 to 127                                  only what one of these 64 sees

Each part is a softmax of its own; the log-sums of their weights join the two. Exact but for rounding: the same sums in another
order.
"""

from contextlib import contextmanager

import torch
from torch.nn.functional import pad
from transformers import AttentionInterface
from transformers.integrations.sdpa_attention import repeat_kv, sdpa_attention_forward

QUERIES = 64  # tokens of a row whose attention is taken together
SHARED = 32  # so many cached keys that all see are worth a product of their own
# what scaled_dot_product_attention calls on a CPU; it also returns the log-sums [batch, heads, q], which that one does not
flash = getattr(torch.ops.aten, "_scaled_dot_product_flash_attention_for_cpu", None)


@contextmanager
def attention_in_parts(model, sees: torch.Tensor):
    """Within it a forward takes attention in parts where that is less work than all at once: not on a GPU, not in short rows, not
    in a chain. Families with attention of their own keep it.

    sees   [n, past + n] bool: which token of the row sees which key
    """
    config, n = model.config.get_text_config(), len(sees)
    replaceable = flash and model.is_backend_compatible() and config._attn_implementation == "sdpa"
    if sees.device.type != "cpu" or not replaceable or n < 2 * QUERIES:
        yield
        return
    to_all = int(sees[:, : sees.shape[1] - n].all(0).int().cumprod(0).sum())  # the first keys of the cache
    shared, extra = to_all if to_all >= SHARED else 0, -n % QUERIES
    # [.., n, x] -> [.., blocks, QUERIES, x]
    blocks = lambda x: (pad(x, (0, 0, 0, extra)) if extra else x).unflatten(-2, (-1, QUERIES))
    seen = blocks(sees[:, shared:]).any(1)  # [blocks, keys]
    width = int(seen.sum(1).max())
    if 3 * width >= seen.shape[1]:  # copying so many keys for every block takes more time and memory than it saves
        yield
        return
    # what a block sees, and some keys that it does not
    near = shared + seen.byte().argsort(dim=1, descending=True, stable=True)[:, :width]
    known = {}  # masks of whole rows (some layers have one of their own) and of the parts

    def masks(whole: torch.Tensor) -> tuple:
        """[1, 1, n, past + n] -> of the shared keys [1, 1, n, shared] (None: all seen), of the blocks [b, 1, QUERIES, width]"""
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
        own = flash(blocks(query[0]).transpose(0, 1), *taken, attn_mask=some_see, scale=scaling)
        said, sums = (x.transpose(0, 1).flatten(1, 2)[None, :, :n] for x in own)  # [1, heads, n, ..]
        if shared:
            far, far_sums = flash(query, key[:, :, :shared], value[:, :, :shared], attn_mask=all_see, scale=scaling)
            said = torch.lerp(said, far, torch.sigmoid(far_sums - sums)[..., None].to(said.dtype))
        return said.transpose(1, 2).contiguous(), None

    AttentionInterface.register("parts", attention)
    config._attn_implementation = "parts"
    try:
        yield
    finally:
        config._attn_implementation = "sdpa"
        known.clear()  # the interface holds ``attention`` until the next row
