"""Optional reading: FlexAttention for long packed rows on a GPU. A row of thousands of tokens is mostly mask; FlexAttention
skips what is masked for whole blocks and never holds the mask. It is used where the self-check finds it right; a CPU never
uses it.

``Intervals``            which keys a token attends to, as two numbers per key
``block_masks``          the same as FlexAttention's masks, one per layer type
``long_row_attention``   a packed row with FlexAttention
"""

from contextlib import contextmanager
from functools import cache
from typing import NamedTuple

import torch
from torch.nn.attention.flex_attention import BlockMask, flex_attention
from transformers import AttentionInterface

from probelib.errors import ProbeError

DEVICE = "cuda"
SHORTEST = 1000  # tokens of a row; shorter ones keep a dense mask
ROWS = 4  # a row holds this many token budgets
BLOCK = 128  # queries and keys per block of the mask
OTHERS = ("s_aux", "position_bias")  # arguments of some families' attention that FlexAttention does not get


class FlexError(Exception):
    """FlexAttention failed on a packed row, which SDPA has to compute."""


class Intervals(NamedTuple):
    """Keys of a packed row, cached ones first: node q attends to node p if p <= q < end[p].

    place   [past + n] the nodes, ascending; -1 for a soft prompt
    end     [past + n] the node after the subtree of each
    """

    place: torch.Tensor
    end: torch.Tensor

    def dense(self, n: int) -> torch.Tensor:
        """[n, past + n] bool: the keys that each of the last ``n`` tokens attends to."""
        query = self.place[len(self.place) - n :, None]
        return (self.place <= query) & (query < self.end)


def unsupported(model) -> str:
    """Why a model cannot use FlexAttention, known without trying it; "" if nothing is known."""
    if model.device.type != DEVICE:
        return f"for {DEVICE} only"
    hf_model, config = model.hf_model, model.hf_model.config.get_text_config()
    reasons = {
        "an encoder-decoder": model.encoder_decoder,
        f"{config.model_type} has attention code of its own": not hf_model.is_backend_compatible(),
        "attention in chunks": "chunked_attention" in (getattr(config, "layer_types", None) or []),
        "spread over several devices": any(p.device != hf_model.device for p in hf_model.parameters()),
        "no memory for long rows": model.budget * ROWS < SHORTEST,
    }
    return next((reason for reason, holds in reasons.items() if holds), "")


@contextmanager
def long_row_attention(hf_model):
    """Context manager for one packed row: attention by ``_attend``; any failure becomes a ``FlexError``."""
    config = hf_model.config.get_text_config()
    usual = config._attn_implementation
    AttentionInterface.register("flex", _attend)
    config._attn_implementation = "flex"
    try:
        yield
    except (torch.OutOfMemoryError, ProbeError, FlexError):
        raise
    except Exception as error:  # the compiler, the kernel, or a layer that cannot pass a block mask on
        raise FlexError(f"{type(error).__name__}: {' '.join(str(error).split())[:100]}") from error
    finally:
        config._attn_implementation = usual


def _attend(module, query, key, value, attention_mask, scaling=None, softcap=None, **kwargs):
    """query [1, heads, n, width]; key, value [1, heads or fewer, past + n, width] -> [1, n, heads, width]"""
    unknown = [name for name in OTHERS if kwargs.get(name) is not None]
    if unknown or not isinstance(attention_mask, BlockMask):
        raise FlexError(f"this attention needs {', '.join(unknown) or 'a dense mask'}")
    score = None if softcap is None else lambda score, *_: softcap * torch.tanh(score / softcap)
    grouped, attend = query.shape[1] != key.shape[1], _compiled() if query.device.type == "cuda" else flex_attention
    # softcaps and scales are constants of a kernel; models of one process share the limit
    with torch._dynamo.config.patch(specialize_float=True, recompile_limit=64):
        output = attend(query, key, value, score, attention_mask, scaling, enable_gqa=grouped)
    return output.transpose(1, 2).contiguous(), None


@cache
def _compiled():
    return torch.compile(flex_attention, dynamic=True, fullgraph=True)


def block_masks(intervals: Intervals, depth: torch.Tensor, n: int, window: int | None) -> tuple[BlockMask, BlockMask]:
    """The masks of the last ``n`` tokens: whole, and within the family's sliding window (None: the same).

    depth   [past + n] position of every key
    """
    place, end = intervals
    query = place[len(place) - n :].clone()
    first = query[::BLOCK]  # [query blocks]
    last = torch.minimum(first + BLOCK - 1, query[-1])
    seen = (place <= last[:, None]) & (first[:, None] < end)  # [query blocks, keys]: by some token of the block
    by_all = (place <= first[:, None]) & (last[:, None] < end)

    def whole(_b, _h, q, k):
        return (place[k] <= query[q]) & (query[q] < end[k])

    full = _block_mask(seen, by_all, n, whole)
    if window is None:
        return full, full
    nearest = depth[len(depth) - n :] - window  # [n] a token attends to keys deeper than this
    blocks = torch.cat([nearest, nearest[-1:].expand(-n % BLOCK)]).view(-1, BLOCK)

    def near(_b, _h, q, k):
        return (place[k] <= query[q]) & (query[q] < end[k]) & (depth[k] > nearest[q])

    seen, by_all = seen & (depth > blocks.amin(1, keepdim=True)), by_all & (depth > blocks.amax(1, keepdim=True))
    return full, _block_mask(seen, by_all, n, near)


def _block_mask(seen: torch.Tensor, by_all: torch.Tensor, n: int, visible) -> BlockMask:
    """A mask whose blocks are skipped if no key is seen, and not masked inside if all tokens see all keys.

    seen, by_all   [query blocks, keys] bool; visible: the mask of single tokens
    """
    keys = seen.shape[1]
    some, every = (torch.nn.functional.pad(x, (0, -keys % BLOCK)).unflatten(1, (-1, BLOCK)) for x in (seen, by_all))
    every, some = every.all(2), some.any(2)  # [query blocks, key blocks]
    every[-1] &= n % BLOCK == 0  # a block that the row does not fill is masked inside
    ordered = []
    for blocks in (some & ~every, every):
        order = blocks.byte().argsort(dim=1, descending=True, stable=True)
        ordered += [blocks.sum(1)[None, None].int(), order[None, None].int()]
    mask = BlockMask.from_kv_blocks(*ordered, BLOCK, visible, (n, keys))
    mask.ndim = 4  # GPT-2 reads it
    return mask
