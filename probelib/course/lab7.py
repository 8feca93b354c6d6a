"""Lab 7: quantization by hand, facts lost and gained, and a line that is extrapolated too far."""

from collections.abc import Callable
from functools import partial

import numpy as np
import pandas as pd
import scipy.stats

from probelib import stats
from probelib.course.checks import Check, NotYet


def with_weights(model, layers: list[str], change: Callable[[np.ndarray], np.ndarray], ask: Callable):
    """The result of ``ask()`` while the weights of some layers are ``change(weights)``; afterwards the weights are restored."""
    import torch

    weights = [model.hf_model.get_submodule(name).weight for name in layers]
    kept = [weight.detach().clone() for weight in weights]
    try:
        with torch.no_grad():
            for weight, own in zip(weights, kept, strict=True):
                weight.copy_(torch.as_tensor(np.asarray(change(own.cpu().numpy()), dtype=np.float32)))
        return ask()
    finally:
        with torch.no_grad():
            for weight, own in zip(weights, kept, strict=True):
                weight.copy_(own)


_DRAW = np.random.default_rng(5)
# none of them is halfway between two codes, where float32 may round either way
_SMALL = np.array([[0.51, -1.0, 0.26], [0.021, 0.011, -0.04]])
_WEIGHTS = (_DRAW.normal(size=(3, 8)) * np.array([[1.0], [0.1], [7.0]])).round(3)


def _absmax(weight, bits, over: int | None = 1, top: int | None = None, cut: bool = False):
    weight = np.asarray(weight, float)
    steps = top or 2 ** (bits - 1) - 1
    scale = np.abs(weight).max(axis=over) / steps
    scale = np.full(len(weight), scale) if over is None else scale
    ratio = weight / scale[:, None]
    return np.trunc(ratio) if cut else np.round(ratio), scale


def _two_arrays(value: object) -> object:
    """Raise NotYet for lists and for a scale of shape (rows, 1): later cells use ``scale[:, None]``."""
    if isinstance(value, tuple | list) and len(value) == 2:
        if any(isinstance(part, list | tuple) for part in value):
            raise NotYet("codes or scale is a list; arrays are expected: np.array(codes), np.array(scale).")
        if np.ndim(value[1]) == 2:
            wanted = "one number per row is expected, of shape (rows,)"
            raise NotYet(f"the scale has the shape {np.shape(value[1])}; {wanted}.")
    return value


absmax = Check(
    right=_absmax,
    cases=[(_SMALL, 8), (_WEIGHTS, 8), (_WEIGHTS, 4), (_WEIGHTS, 2)],
    form=_two_arrays,
    mistakes={
        "there is one scale for the whole matrix; every row has its own": partial(_absmax, over=None),
        "2^(bits-1) steps would need the code 128, which an int8 does not have: there are 2^(bits-1) - 1, 127 for 8 bits": (
            lambda w, b: _absmax(w, b, top=2 ** (b - 1))
        ),
        "the number of steps is that of 8 bits whatever `bits` says": partial(_absmax, top=127),
        "codes are truncated towards 0; round them": partial(_absmax, cut=True),
        "the scale is the row's largest |weight|; divide it by the number of steps, so that weight ≈ codes * scale": (
            lambda w, b: (_absmax(w, b)[0], np.abs(w).max(1))
        ),
    },
    look="scale = largest |weight| of the row / (2^(bits-1) - 1), and codes = round(weight / scale)",
)


LEVELS = np.array([-1.0, -0.5, 0.0, 0.2, 1.0])


def _nf4(weight, levels, block, uniform: bool = False, rescale: bool = True, per_row: bool = False) -> np.ndarray:
    weight, levels = np.asarray(weight, float), np.asarray(levels, float)
    levels = np.linspace(-1, 1, len(levels)) if uniform else levels
    rows = weight if per_row else weight.reshape(-1, block)
    scale = np.abs(rows).max(1, keepdims=True)
    nearest = levels[np.abs((rows / scale)[..., None] - levels).argmin(-1)]
    return (nearest * scale if rescale else nearest).reshape(weight.shape)


nf4 = Check(
    right=_nf4,
    cases=[(_WEIGHTS, LEVELS, 4), (_WEIGHTS, LEVELS, 8), (_WEIGHTS.T, LEVELS, 6)],
    mistakes={
        "the levels are not evenly spaced: take the nearest one of `levels`": partial(_nf4, uniform=True),
        "these are still shares of the block's largest |weight|: multiply by it again": partial(_nf4, rescale=False),
        "a block is `block` weights in the order of memory, not a row": partial(_nf4, per_row=True),
        "the largest |weight| is taken over the whole matrix, not block by block": lambda w, v, n: _nf4(w, v, w.size),
    },
    look="reshape to (blocks, block), divide by each block's largest |weight|, nearest level, multiply and reshape back",
)


def _mcnemar(before, after) -> list[float]:
    found = stats.mcnemar(before, after)
    return [found["lost"], found["gained"], found["p"]]


def _binom(before, after, trials: int | None = None, **side) -> list[float]:
    """McNemar's test with another number of trials, or one-sided."""
    lost, gained, _ = _mcnemar(before, after)
    return [lost, gained, scipy.stats.binomtest(lost, trials or max(1, lost + gained), **side).pvalue]


_NINE = ([1, 1, 1, 1, 1, 0, 0, 0, 1], [1, 0, 0, 0, 0, 1, 0, 0, 0])

mcnemar = Check(
    right=_mcnemar,
    cases=[_NINE, ([1, 1, 0], [1, 1, 0]), ([0, 0, 0, 0], [1, 1, 1, 0])],
    mistakes={
        "lost and gained are exchanged: lost is right before and wrong after": lambda b, a: _mcnemar(a, b),
        "this p is one-sided": partial(_binom, alternative="greater"),
        "facts on which both agree do not count: the test has lost + gained trials": lambda b, a: _binom(b, a, len(b)),
    },
    look="count lost and gained; p is that of lost heads in lost + gained tosses of a fair coin, and 1 if nothing changed",
)

_SIZES, _VALUES = [1e6, 4e6, 1e7, 9e7], [0.30, 0.42, 0.44, 0.61]


def _line(sizes, values, log=np.log10, power: int = 2) -> tuple[float, float, float]:
    fit = scipy.stats.linregress(log(np.asarray(sizes, float)), values)
    return float(fit.intercept), float(fit.slope), float(fit.rvalue**power)


_exchanged = lambda sizes, values: [_line(sizes, values)[i] for i in (1, 0, 2)]

fit_line = Check(
    right=_line,
    cases=[(_SIZES, _VALUES), ([1e3, 1e5, 1e6], [0.9, 0.5, 0.1])],
    mistakes={
        "the third number is r, not R²: square it": partial(_line, power=1),
        "the line is over the sizes themselves: take log10 of them first": partial(_line, log=np.asarray),
        "this is the natural logarithm; a decade is log10": partial(_line, log=np.log),
        "slope and intercept are exchanged: (a, b, R²) with value = a + b log10(size)": _exchanged,
    },
    look="least squares of value on log10(size); R² = 1 - (residual sum of squares) / (sum of squares about the mean)",
)

size_at = Check(
    right=lambda a, b, level: 10 ** ((level - a) / b),
    cases=[(-1.0, 0.25, 0.9), (0.2, 0.1, 0.5)],
    mistakes={
        "this is log10 of the size": lambda a, b, level: (level - a) / b,
        "the logarithm of the fit is log10: 10 to the power, not e": lambda a, b, level: np.exp((level - a) / b),
        "subtract the intercept before you divide by the slope": lambda a, b, level: 10 ** (level / b - a),
    },
    look="solve level = a + b log10(size) for size",
)


def finding_codes(codes: np.ndarray, theirs: np.ndarray, off: float) -> str:
    """How many codes equal those of bitsandbytes. ``off``: largest difference of the rows' scales."""
    return (
        f"{(codes == theirs).mean():.3%} of the {codes.size:,} codes are equal, the others differ by "
        f"{np.abs(codes - theirs).max():.0f}; the scales differ by at most {off:.1e}. (A weight halfway between two codes may go "
        "either way. bitsandbytes stores the largest weight itself, 127 of your scales.)"
    )


def finding_weights(off: float, n: int) -> str:
    """The largest difference to the weights of bitsandbytes, over ``n`` weights."""
    return f"Largest difference to bitsandbytes over {n:,} weights: {off:.1e}."


def finding_nf4(off: float, n: int) -> str:
    """The largest difference to the log-probabilities with bitsandbytes (nats), over ``n`` facts."""
    return f"Over {n} facts, the log-probabilities of your NF4 and of bitsandbytes differ by at most {off:.1e} nats."


def alt_bits(share: pd.Series, bits: list[str], n: int) -> str:
    """Alt text of the share of ``n`` facts known by precision. ``share``: ``bits`` and NF4 -> share known."""
    points = [f"{share[b]:.2f} at {b}" for b in bits]
    return (
        f"Share of {n} facts known against the bits per weight, absmax with 95 % intervals: {', '.join(points)}. A star at 4 "
        f"bits: NF4 with {share['NF4']:.2f}."
    )


def finding_bits(model: str, share: pd.Series, bits: list[str]) -> str:
    """From how many bits on fewer than half of the known facts remain; arguments as for ``alt_bits``."""
    half = next((b for b in bits if share[b] < share["32"] / 2), None)
    fall = f"It falls below half of that at **{half} bits**." if half else "It stays above half of that."
    return (
        f"{model} knows {share['32']:.1%} of the facts with all its bits. {fall} At four bits it knows {share['4']:.1%} with a "
        f"scale per row, {share['NF4']:.1%} with NF4."
    )


def finding_lost(table: pd.DataFrame) -> str:
    """Which precisions differ from full precision, and one that loses and gains. ``table``: precision -> lost, gained, p."""
    different = [bits for bits, p in table["p"].items() if p < 0.05]
    both = table[(table["lost"] > 0) & (table["gained"] > 0)]
    found = "No precision gains a fact while it loses another."
    if len(both):
        found = f"With {both.index[0]} bits {both['lost'].iloc[0]:.0f} facts are lost and {both['gained'].iloc[0]:.0f} gained."
    return f"Significantly different from full precision (p < 0.05): {', '.join(different) or 'nothing'}. {found}"


def alt_lost(change: np.ndarray, kept: np.ndarray, lost: np.ndarray, bits: str) -> str:
    """Alt text of the change of log-probabilities (nats) of known facts: which are kept, which are lost."""
    mean = lambda which: f"{change[which].mean():+.2f} nats on average" if which.any() else "none"
    return (
        f"Change of the right answer's log-probability at {bits} bits against its value with all bits, one point per known fact. "
        f"Dots, {kept.sum()} facts that are kept: {mean(kept)}. Crosses, {lost.sum()} that are lost: {mean(lost)}."
    )


def alt_scaling(reach: pd.Series) -> str:
    """Alt text of the scaling lines. ``reach``: set of models -> log10 of the size at which the line reaches 90 %."""
    ends = [f"10^{decades:.1f} ({which})" for which, decades in reach.items()]
    return (
        "Share known against parameters, far beyond the largest model, with the line and the logit line, which bends below 1. "
        f"The line reaches 90 % at {'; '.join(ends)}."
    )


def finding_line(which: str, sizes: np.ndarray, values: np.ndarray, lines: pd.DataFrame) -> str:
    """The size at which the line reaches 90 %, with one model left out each time, and its interval.

    lines   ``b``, ``R2``, ``decades`` (log10 of the size) of each line: that of all models first
    """
    whole, others = lines.iloc[0], lines["decades"].iloc[1:]
    if whole["b"] <= 0:
        return f"**{which}**: the line does not rise, and never reaches 90 %."
    reached = others[np.isfinite(others)]
    never = len(others) - len(reached)
    spread = f"10^{reached.min():.1f} to 10^{reached.max():.1f}" if len(reached) else "never"
    spread += f", {never} times never" if 0 < never < len(others) else ""
    fit, beyond = stats.scaling_fit(sizes, values), whole["decades"] - np.log10(sizes.max())
    return (
        f"**{which}**: {len(sizes)} points, R² = {whole['R2']:.3f} (r = {np.sqrt(whole['R2']):.3f}); 90 % at "
        f"10^{whole['decades']:.1f} parameters, {beyond:.1f} decades beyond the largest model. With one model left out: "
        f"{spread}. 95 % interval of the line alone (Fieller): {fit['size_low']:.0e} to {fit['size_high']:.0e}."
    )


def finding_logit(which: str, straight: dict, bent: dict) -> str:
    """The line and the logit line of a set of models: two results of ``stats.scaling_fit``."""
    factor = bent["size_at"] / straight["size_at"]
    return (
        f"**{which}**: R² {straight['r2']:.3f} for the line and {bent['r2']:.3f} for the logit line; 90 % at "
        f"{straight['size_at']:.1e} and at {bent['size_at']:.1e} parameters, {max(factor, 1 / factor):,.1f} times apart."
    )
