"""Lab 7: quantization by hand, facts lost and gained, and a line that is extrapolated too far."""

from collections.abc import Callable
from functools import partial

import numpy as np
import scipy.stats

from probelib import stats
from probelib.course.checks import Check, NotYet


def with_weights(model, layers: list[str], change: Callable, ask: Callable):
    """The result of ``ask()`` while the weights of some layers are ``change(weights)``; afterwards
    the weights are restored."""
    import torch

    weights = [model.hf_model.get_submodule(name).weight for name in layers]
    kept = [weight.detach().clone() for weight in weights]
    try:
        with torch.no_grad():
            for weight, own in zip(weights, kept, strict=True):
                changed = np.asarray(change(own.cpu().numpy()), dtype=np.float32)
                weight.copy_(torch.as_tensor(changed))
        return ask()
    finally:
        with torch.no_grad():
            for weight, own in zip(weights, kept, strict=True):
                weight.copy_(own)


# none of them is halfway between two codes, where float32 may round either way
_SMALL = np.array([[0.51, -1.0, 0.26], [0.021, 0.011, -0.04]])
_WEIGHTS = np.random.default_rng(5).normal(size=(3, 8)) * np.array([[1.0], [0.1], [7.0]])
_WEIGHTS = _WEIGHTS.round(3)


def _absmax(weight, bits, over=1, top=None):
    scale = np.abs(weight).max(axis=over) / (top or 2 ** (bits - 1) - 1)
    scale = np.full(len(weight), scale) if over is None else scale
    return np.round(np.asarray(weight, float) / scale[:, None]), scale


def _two_arrays(value):
    """Raise NotYet for what later cells cannot use as ``codes * scale[:, None]``."""
    if not isinstance(value, tuple | list) or len(value) != 2:
        return value
    if not isinstance(value[0], np.ndarray) or np.shape(value[1]) != value[0].shape[:1]:
        raise NotYet("two arrays are expected: codes, and scale with one number per row.")
    return value


absmax = Check(
    "lab7.absmax",
    _absmax,
    [(_SMALL, 8), (_WEIGHTS, 8), (_WEIGHTS, 4), (_WEIGHTS, 2)],
    form=_two_arrays,
    matrix=partial(_absmax, over=None),
    steps=lambda w, bits: _absmax(w, bits, top=2 ** (bits - 1)),
)

LEVELS = np.array([-1.0, -0.5, 0.0, 0.2, 1.0])


def _nf4(weight, levels, block, rescale=True):
    rows = weight.reshape(-1, block)
    scale = np.abs(rows).max(1, keepdims=True)
    nearest = levels[np.abs((rows / scale)[..., None] - levels).argmin(-1)]
    return (nearest * scale if rescale else nearest).reshape(weight.shape)


nf4 = Check(
    "lab7.nf4",
    _nf4,
    [(_WEIGHTS, LEVELS, 4), (_WEIGHTS, LEVELS, 8), (_WEIGHTS.T, LEVELS, 6)],
    even=lambda weight, levels, block: _nf4(weight, np.linspace(-1, 1, len(levels)), block),
    shares=partial(_nf4, rescale=False),
)


def _mcnemar(before, after):
    found = stats.mcnemar(before, after)
    return [found["lost"], found["gained"], found["p"]]


_NINE = ([1, 1, 1, 1, 1, 0, 0, 0, 1], [1, 0, 0, 0, 0, 1, 0, 0, 0])

mcnemar = Check(
    "lab7.mcnemar",
    _mcnemar,
    [_NINE, ([1, 1, 0], [1, 1, 0]), ([0, 0, 0, 0], [1, 1, 1, 0])],
    exchanged=lambda before, after: _mcnemar(after, before),
)


def _line(sizes, values, log=np.log10, power=2):
    fit = scipy.stats.linregress(log(np.asarray(sizes, float)), values)
    return float(fit.intercept), float(fit.slope), float(fit.rvalue**power)


fit_line = Check(
    "lab7.fit_line",
    _line,
    [([1e6, 4e6, 1e7, 9e7], [0.30, 0.42, 0.44, 0.61]), ([1e3, 1e5, 1e6], [0.9, 0.5, 0.1])],
    r=partial(_line, power=1),
    sizes=partial(_line, log=np.asarray),
)

size_at = Check(
    "lab7.size_at",
    lambda a, b, level: 10 ** ((level - a) / b),
    [(-1.0, 0.25, 0.9), (0.2, 0.1, 0.5)],
    log=lambda a, b, level: (level - a) / b,
)
