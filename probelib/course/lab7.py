"""Lab 7: quantization by hand, facts lost and gained, and a line that is extrapolated too far."""

from collections.abc import Callable

import numpy as np
import scipy.stats

from probelib import stats
from probelib.course.checks import Check, exercise, require


def with_weights(model, layers: list[str], change: Callable, ask: Callable):
    """The result of ``ask()`` while the weights of some layers are ``change(weights)``; afterwards
    the weights are restored."""
    import torch

    weights = [model.hf_model.get_submodule(name).weight for name in layers]
    kept = [weight.detach().clone() for weight in weights]
    with torch.no_grad():
        try:
            for weight, own in zip(weights, kept, strict=True):
                changed = np.asarray(change(own.cpu().numpy()), dtype=np.float32)
                weight.copy_(torch.as_tensor(changed))
            return ask()
        finally:
            for weight, own in zip(weights, kept, strict=True):
                weight.copy_(own)


def _two_arrays(value):
    """Raise NotYet for what later cells cannot use as ``codes * scale[:, None]``."""
    if isinstance(value, tuple | list) and len(value) == 2:
        codes, scale = value
        arrays = isinstance(codes, np.ndarray) and np.shape(scale) == codes.shape[:1]
        require(arrays, "lab7.two_arrays")
    return value


@exercise(
    "lab7.absmax",
    form=_two_arrays,
    matrix={"over": None},
    steps=lambda w, bits: absmax.right(w, bits, top=2 ** (bits - 1)),
)
def absmax(weight, bits, over=1, top=None):
    scale = np.abs(weight).max(axis=over) / (top or 2 ** (bits - 1) - 1)
    scale = np.full(len(weight), scale) if over is None else scale
    return np.round(np.asarray(weight, float) / scale[:, None]), scale


@exercise(
    "lab7.nf4",
    even=lambda weight, levels, block: nf4.right(weight, np.linspace(-1, 1, len(levels)), block),
    shares={"rescale": False},
)
def nf4(weight, levels, block, rescale=True):
    rows = weight.reshape(-1, block)
    scale = np.abs(rows).max(1, keepdims=True)
    nearest = levels[np.abs((rows / scale)[..., None] - levels).argmin(-1)]
    return (nearest * scale if rescale else nearest).reshape(weight.shape)


@exercise("lab7.mcnemar", exchanged=lambda before, after: mcnemar.right(after, before))
def mcnemar(before, after):
    found = stats.mcnemar(before, after)
    return [found["lost"], found["gained"], found["p"]]


@exercise("lab7.fit_line", r={"power": 1}, sizes={"log": np.asarray})
def fit_line(sizes, values, log=np.log10, power=2):
    fit = scipy.stats.linregress(log(np.asarray(sizes, float)), values)
    return float(fit.intercept), float(fit.slope), float(fit.rvalue**power)


size_at = Check(
    "lab7.size_at",
    lambda a, b, level: 10 ** ((level - a) / b),
    log=lambda a, b, level: (level - a) / b,
)
