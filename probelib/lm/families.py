"""What differs between model families when a tree is packed into one row: masks, positions, biases.

A packed row needs three things from the model: that a token sees its ancestors only (a float mask that is added: 0 or
the most negative number; a boolean one is silently wrong under eager attention), that it stands at its depth, and that
biases by distance (ALiBi, T5) go by depth as well. Each of these is silent where it is wrong, so ``scoring`` compares
the packed row with plain sequences once a model before it is trusted.
"""

from collections.abc import Sequence
from contextlib import contextmanager, nullcontext
from importlib import import_module
from unittest import mock

import numpy as np
import torch

from probelib.errors import ProbeError
from probelib.lm.attention import attention_in_parts

NO_POSITIONS = {"bloom", "mpt"}  # ALiBi only; they swallow position_ids without a word
WINDOWS = ("sliding_window", "attention_chunk_size")  # what configurations call how far back a layer looks


def forward_packed(
    model,
    cache,
    tokens: Sequence[int] | np.ndarray,
    depth: np.ndarray,
    sees: torch.Tensor,
    keep: Sequence[int] | np.ndarray,
    layer: int | None = None,
) -> torch.Tensor:
    """What the model says at some tokens of a packed row behind a cache, which it extends.

    tokens   [n] ids of the row
    depth    [past + n] position of every key, those in the cache first
    sees     [n, past + n] bool: which token of the row sees which key
    keep     the tokens of the row that are asked, at least one; the head is applied to these alone
    layer    None: logits [len(keep), vocabulary]; a number: hidden states [len(keep), width] of that layer
             (0 = embeddings, -1 = the last one, after the final norm)
    """
    device, past = model.device, cache.get_seq_length()
    key = sent(depth, device)  # [past + n]
    query = key[past:]  # [n]
    positions = {} if model.config.model_type in NO_POSITIONS else {"position_ids": query[None]}
    ids, asked = sent(tokens, device)[None], sent(keep, device)
    with distance_bias(model, key), attention_in_parts(model, sees), last_mlp_at(model, asked):
        output = model(
            input_ids=ids,
            attention_mask=_mask(model, sees, query, key),
            past_key_values=cache,
            use_cache=True,
            logits_to_keep=asked if layer is None else asked[-1:],
            output_hidden_states=layer is not None,
            **positions,
        )
    return output.logits[0] if layer is None else layer_states(output, layer)[0, asked]


def layer_states(output, layer: int) -> torch.Tensor:
    """Hidden states [rows, length, width] of a layer. Families that hold several a token (Gemma 3n) have no one to give."""
    last = len(output.hidden_states) - 1
    if not -last - 1 <= layer <= last:
        raise ProbeError(f"layer {layer} does not exist; allowed: 0 (embeddings) to {last}, or -1 (the last one)")
    hidden = output.hidden_states[layer]
    if hidden.dim() != 3:
        shape = " x ".join(map(str, hidden.shape))
        raise ProbeError(f"layer {layer} gives {shape} hidden states, not one a token: take a model of another family")
    return hidden


def sent(values, device) -> torch.Tensor:
    """A tensor on the device, sent without waiting for what the device still has to do."""
    tensor = torch.as_tensor(values)
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor.to(device)


def additive(visible: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """[..., q, k] bool -> [..., q, k] float mask to be added: 0 where visible, the most negative number elsewhere."""
    return torch.zeros(visible.shape, dtype=dtype, device=visible.device).masked_fill_(~visible, torch.finfo(dtype).min)


def _mask(model, visible: torch.Tensor, query: torch.Tensor, key: torch.Tensor):
    """The mask as the family wants it: one [1, 1, n, past + n], or one a layer type where some layers have a window. A 4D mask
    replaces their window, so it has to be in the mask; without layer types all layers have it (Mistral, Phi 3)."""
    config, full = model.config.get_text_config(), additive(visible, model.dtype)[None, None]
    window = getattr(config, "sliding_window", None)
    if not window or "sliding_window" not in type(config).__dataclass_fields__:  # some files name one of another family
        return full
    near = additive(visible & (key[None] > query[:, None] - window), model.dtype)[None, None]
    types = getattr(config, "layer_types", None)
    if types and "sliding_attention" in types:
        return {"full_attention": full, "sliding_attention": near}
    return full if types else near


@contextmanager
def windows_of(model, size: int):
    """Within it no layer looks further back than ``size`` tokens where it has a window at all: usual windows are thousands of
    tokens, and whether packed rows keep to them shows only behind more. Gives the windows that were narrowed, by name."""
    config = model.config.get_text_config()
    own = {name: getattr(config, name, None) for name in WINDOWS}
    own = {name: window for name, window in own.items() if window and window > size}
    try:
        for name in own:
            setattr(config, name, size)
        yield own
    finally:
        for name, window in own.items():
            setattr(config, name, window)


@contextmanager
def last_mlp_at(model, keep: torch.Tensor):
    """On a CPU the last layer's MLP takes only the tokens that are asked, for no layer comes that would look at the others (of
    which the model then says nonsense). Models without a module of that name (OPT, MPT) and those whose layers share it keep it.

    keep   places of those tokens among all [rows * length] of the forward
    """
    layers = next((m for m in model.base_model.modules() if isinstance(m, torch.nn.ModuleList) and len(m)), [None])
    mlp, shape = getattr(layers[-1], "mlp", None), None
    shared = any(getattr(layer, "mlp", None) is mlp for layer in list(layers)[:-1])
    if mlp is None or shared or keep.device.type != "cpu":
        yield
        return

    def before(_, inputs):
        nonlocal shape
        shape = inputs[0].shape  # [rows, length, width]; BLOOM gives its residual too
        return tuple(x.flatten(0, 1)[keep][None] for x in inputs)

    def after(_, inputs, output):
        # a mixture of experts may give what its router says too
        few, *rest = output if isinstance(output, tuple) else (output,)
        full = few.new_zeros(shape).flatten(0, 1).index_copy_(0, keep, few[0]).view(shape)
        return (full, *rest) if rest else full

    hooks = mlp.register_forward_pre_hook(before), mlp.register_forward_hook(after)
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def distance_bias(model, key: torch.Tensor):
    """Within it ALiBi goes by depth: the model's own bias for positions 0..max, read at each key's depth. No-op elsewhere."""
    kind = model.config.model_type
    if kind in NO_POSITIONS:
        owner, name = model.transformer, "build_mpt_alibi_tensor" if kind == "mpt" else "build_alibi_tensor"
    elif kind == "falcon" and model.config.alibi:
        owner, name = import_module(type(model).__module__), "build_alibi_tensor"
    else:
        return nullcontext()
    build, length = getattr(owner, name), int(key.max()) + 1

    def by_depth(first, second, *args, **kwargs):
        """MPT's are called with (heads, length), BLOOM's and Falcon's with (mask, heads): they count positions from the mask."""
        given = (
            (first, length) if kind == "mpt" else (torch.ones(1, length, dtype=torch.long, device=key.device), second)
        )
        return build(*given, *args, **kwargs)[..., key]

    return mock.patch.object(owner, name, by_depth)


@contextmanager
def decoder_depth_bias(model, depth: torch.Tensor):
    """T5's relative position bias by depth, for decoder rows that hold trees. depth: [rows, q]"""
    relative = depth[:, None, :] - depth[:, :, None]  # [rows, q, k] memory - query

    def by_depth(attention):
        def bias(*_, **__):
            bucket = attention._relative_position_bucket(
                relative,
                bidirectional=False,
                num_buckets=attention.relative_attention_num_buckets,
                max_distance=attention.relative_attention_max_distance,
            )
            return attention.relative_attention_bias(bucket).permute(0, 3, 1, 2)  # [rows, heads, q, k]

        return bias

    attentions = [block.layer[0].SelfAttention for block in model.get_decoder().block]
    biased = [a for a in attentions if a.has_relative_attention_bias]
    for attention in biased:
        attention.compute_bias = by_depth(attention)
    try:
        yield
    finally:
        for attention in biased:
            del attention.compute_bias
