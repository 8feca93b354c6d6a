"""The last layer's MLP for the tokens whose outputs are read, on every device."""

from contextlib import contextmanager

import torch


@contextmanager
def last_mlp_at(hf_model, keep: torch.Tensor):
    """Context manager: the last layer's MLP computes only the kept tokens, because no later layer reads the others (their
    outputs are meaningless). Models without a module called ``mlp`` (OPT, MPT) or with a shared one are not changed.

    keep   indices of these tokens among all [rows * length] of the forward
    """
    layers = next((m for m in hf_model.base_model.modules() if isinstance(m, torch.nn.ModuleList) and len(m)), [None])
    mlp, shape = getattr(layers[-1], "mlp", None), None
    shared = any(getattr(layer, "mlp", None) is mlp for layer in list(layers)[:-1])
    if mlp is None or shared:
        yield
        return

    def before(_, inputs):
        nonlocal shape
        shape = inputs[0].shape  # [rows, length, width]; BLOOM passes its residual as well
        return tuple(x.flatten(0, 1)[keep.to(x.device)][None] for x in inputs)

    def after(_, inputs, output):
        # a mixture of experts may also return its router's output
        few, *others = output if isinstance(output, tuple) else (output,)
        full = few.new_zeros(shape).flatten(0, 1).index_copy_(0, keep.to(few.device), few[0]).view(shape)
        return (full, *others) if others else full

    hooks = mlp.register_forward_pre_hook(before), mlp.register_forward_hook(after)
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()
