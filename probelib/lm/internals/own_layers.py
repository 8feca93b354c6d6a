"""Two families whose attention layers count places in a row themselves, where a packed row needs depths.

GPT-Neo   each layer keeps its own triangular mask (``bias``), with the window of a local layer in it
Llama 4   layers without rotation scale their queries by position, in steps of ``floor_scale`` tokens
"""

from contextlib import contextmanager
from unittest import mock

import torch


@contextmanager
def layers_by_depth(hf_model, visible: torch.Tensor, query: torch.Tensor, key: torch.Tensor):
    """Context manager for one packed row: its tokens attend and scale by depth. No effect on other families.

    visible   [n, past + n] bool: the keys that each token attends to
    query     [n] depths of the tokens; key: [past + n] depths of all keys
    """
    kind, undo = hf_model.config.get_text_config().model_type, []
    if kind == "gpt_neo":
        undo = _own_masks(hf_model, visible, key[None] > query[:, None] - hf_model.config.window_size)
    elif kind == "llama4_text":
        undo = _own_scales(hf_model, query)
    try:
        yield
    finally:
        for restore in undo:
            restore()


def _own_masks(hf_model, visible: torch.Tensor, near: torch.Tensor) -> list:
    """Put the packed row's mask into every layer; return what restores the layers."""
    above = (0, 0, visible.shape[1] - len(visible), 0)  # GPT-Neo reads the last n rows
    masks = {
        "global": torch.nn.functional.pad(visible, above)[None, None],
        "local": torch.nn.functional.pad(visible & near, above)[None, None],
    }
    patches = []
    for block in hf_model.transformer.h:
        attention = block.attn.attention
        mask = masks[attention.attention_type].to(attention.bias.device)
        patches.append(mock.patch.dict(attention._buffers, bias=mask))
        patches[-1].start()
    return [patch.stop for patch in patches]


def _own_scales(hf_model, query: torch.Tensor) -> list:
    """Scale queries by depth in place of row positions; return what restores the layers."""
    layers = [module for module in hf_model.modules() if getattr(module, "attn_temperature_tuning", False)]
    undo = []
    for layer in layers:
        if not layer.use_rope:
            steps = torch.floor((query.float() + 1) / layer.floor_scale)
            scale = (torch.log1p(steps) * layer.attn_scale + 1)[None, :, None]  # [1, n, 1]
            hook = lambda _module, _inputs, output, scale=scale: (output * scale.to(output.device)).to(output.dtype)
            undo.append(layer.q_proj.register_forward_hook(hook).remove)
            patch = mock.patch.object(layer, "attn_temperature_tuning", False)
            patch.start()
            undo.append(patch.stop)
    return undo
