"""Lab 2: prompt framing and interference, MONITOR built from its parts."""

from collections.abc import Callable
from functools import partial

import numpy as np
import pandas as pd

from probelib.course.checks import Check, NotYet, call, comparable, shown
from probelib.monitor import measures as library

_P = np.array([0.9, 0.7])  # [L]
_F = np.array([[0.8, 0.5], [0.95, 0.95], [0.1, 0.9]])  # [R, L]
_ONE = np.array([0.6]), np.array([[0.8], [0.4]])
_signed = lambda p, f: (p - f).mean()
_before = lambda p, f: np.abs(p - f.mean(0)).mean()
_squares = lambda p, f: np.sqrt(((p - f) ** 2).mean())

distance = Check(
    right=library.pfd,
    cases=[_ONE, (_P, _F)],
    look="the mean over all frames and all answer tokens of |p - f|: p - f already subtracts row by row",
    mistakes={
        "without the absolute value ups and downs cancel, and an unsteady model looks steady": _signed,
        "the mean of the frames was taken before the absolute value, so that ups and downs cancel": _before,
        "this adds up over frames: with more frames it would grow": lambda p, f: np.abs(p - f).mean(1).sum(),
        "this adds up over tokens: long answers would look less steady": lambda p, f: np.abs(p - f).sum(1).mean(),
        "this is the worst frame, not the mean": lambda p, f: np.abs(p - f).max(),
        "this is the root of the mean square: the paper takes absolute values": _squares,
        "these are the distances one by one: take their mean": lambda p, f: np.abs(p - f),
    },
)


def _table() -> pd.DataFrame:
    """Two frames, two distractors, two answer tokens; all frames after each distractor, as for the accuracy grid."""
    values = np.linspace(0.05, 0.95, 14).reshape(7, 2)
    context = ["none", "none", "positive", "negative1", "negative1", "negative2", "negative2"]
    table = pd.DataFrame({"template": [1, 2, 1, 1, 2, 1, 2], "context": context, "probabilities": list(values)})
    return table.iloc[[3, 0, 5, 2, 1, 6, 4]].reset_index(drop=True)


_NEGATIVE = "context.str.startswith('negative')"  # a distractor


def _anchors(table: pd.DataFrame, **instead: str) -> dict[str, np.ndarray]:
    """The rows of p, f and n, each selected by a query; ``instead``: other queries."""
    queries = {"p": "context == 'positive'", "f": "context == 'none'", "n": f"{_NEGATIVE} and template == 1"} | instead
    rows = {name: table.query(query).sort_values(["context", "template"]) for name, query in queries.items()}
    stacked = {name: np.array(own["probabilities"].tolist()) for name, own in rows.items()}
    return stacked | {"p": stacked["p"][0]}


def _sorted_rows(value: object) -> object:
    """Sort the rows of f and n: their order is free, because no distance depends on it."""
    if not isinstance(value, dict):
        return value
    for name, part in value.items():
        if (got := np.asarray(part)).dtype == object or got.ndim != (1 if name == "p" else 2):
            raise NotYet(
                f"{name} has the shape {got.shape} and the type {got.dtype}; numbers of shape "
                f"{'(L,)' if name == 'p' else '(rows, L)'} are expected: np.array(column.tolist()) stacks the arrays of a column."
            )
    value = {name: comparable(part) for name, part in value.items()}
    return {name: np.sort(part, axis=0) if np.ndim(part) == 2 else part for name, part in value.items()}


anchors = Check(
    right=_anchors,
    cases=[(_table(),)],
    form=_sorted_rows,
    look='p: the row with the context "positive"; f: those with "none"; n: those after a distractor, in frame 1 only',
    mistakes={
        "n uses frame 1 only: other frames after a distractor would mix framing into interference": (
            partial(_anchors, n=_NEGATIVE)
        ),
        "f has no context: a prompt with a distractor or the answer before it does not belong to it": (
            partial(_anchors, f="context != 'positive'")
        ),
        "the primary anchor p is measured after the right answer, not without a context": (
            partial(_anchors, p="context == 'none' and template == 1")
        ),
        "f leaves frame 1 out: PFD uses all frames": partial(_anchors, f="context == 'none' and template > 1"),
    },
)


_sum_over_root = lambda a, b: (a + b) / np.sqrt(3)

root = Check(
    right=library.root,
    cases=[(0.2, 0.4), (0.0, 0.5), (np.array([0.1, 0.3]), np.array([0.3, 0.0]))],
    look="the root of (PFD^2 + IRD^2 + PFD IRD) / 3",
    mistakes={
        "the product of the two is missing": lambda a, b: np.sqrt((a**2 + b**2) / 3),
        "the product is missing, and the sum is divided by 2": lambda a, b: np.sqrt((a**2 + b**2) / 2),
        "the root is missing": lambda a, b: (a**2 + b**2 + a * b) / 3,
        "divide by 3 before the root, not after it": lambda a, b: np.sqrt(a**2 + b**2 + a * b) / 3,
        "the three terms have to be divided by 3": lambda a, b: np.sqrt(a**2 + b**2 + a * b),
        "the product comes once, not twice: this is the sum of the two over the root of 3": _sum_over_root,
    },
)

_FACTS = (np.array([0.2, 0.0, 0.1]), np.array([0.4, 0.1, 0.3]), np.array([0.9, 0.05, 0.6]))


def _monitor(pfd: np.ndarray, ird: np.ndarray, pbar: np.ndarray) -> float:
    return library.monitor(pd.DataFrame({"pfd": pfd, "ird": ird, "root": library.root(pfd, ird), "pbar": pbar}))


_ratios = lambda a, b, p: library.root(a, b) / p
_mean_of_ratios = lambda a, b, p: _ratios(a, b, p).mean()
_root_of_means = lambda a, b, p: library.root(a.mean(), b.mean()) / p.mean()

monitor = Check(
    right=_monitor,
    cases=[_FACTS, tuple(values[:1] for values in _FACTS)],
    look="the sum over facts of the roots, divided by the sum over facts of the mean primary anchors",
    mistakes={
        "these are ratios of single facts, averaged: a fact with a tiny primary anchor then dominates": _mean_of_ratios,
        "PFD and IRD were averaged before the root: the other reading of Eq. 3, not the released code's": _root_of_means,
        "the primary anchors are missing: divide by their sum": lambda a, b, p: library.root(a, b).mean(),
        "the fraction is inverted: distances belong above the line": lambda a, b, p: p.sum() / library.root(a, b).sum(),
        "this is one number per fact: sum over facts in the numerator and in the denominator": _ratios,
    },
)


def fool(answer: Callable) -> None:
    """Check ``fool() -> (p, f, n)``: any model with a perfect MONITOR and no knowledge is right."""
    got = call(answer, (), getattr(answer, "__name__", "fool"))
    parts = [comparable(part) for part in got] if isinstance(got, (tuple, list)) else []
    if [np.ndim(part) for part in parts] != [1, 2, 2] or len({part.shape[-1] for part in parts}) != 1:
        shapes = "p of shape (L,), f of shape (R, L), n of shape (M, L), with the same L"
        raise NotYet(f"fool should return three arrays: {shapes}.")
    if not all(part.size and part.min() >= 0 and part.max() <= 1 for part in parts):
        raise NotYet("these are probabilities: between 0 and 1, and at least one in each of p, f and n.")
    p, f, n = parts
    if not p.any():
        why = "it is divided by the mean of p, so keep that above 0"
        raise NotYet(f"with a p of zeros MONITOR is 0 / 0, which is not a number: {why}.")
    score = _monitor(*(np.array([value]) for value in (library.pfd(p, f), library.ird(p, n), p.mean())))
    if not score < 0.01:
        raise NotYet(f"MONITOR is {shown(score)} here and should be below 0.01: which differences make it grow?")
    if (most := f.max()) >= 0.05:
        raise NotYet(
            f"MONITOR is {shown(score)}, but the model gives the answer up to {shown(most)}: it may know something."
        )
    print(f"✓ MONITOR is {score:.3f}, as good as it gets, and the model never gives the answer more than {most:.2f}.")


def alt_probabilities(model: str, level: pd.Series, n_facts: int) -> str:
    """Alt text of the figure of probabilities by prompt. ``level``: ``positive``, ``none``, ``negative`` -> mean probability."""
    return (
        f"Probability of the right answer in {model}: one column of points per fact ({n_facts}), one point per prompt; "
        "triangles after the right answer, circles without context, crosses after a wrong answer. "
        f"Means: {level['positive']:.2f}, {level['none']:.2f} and {level['negative']:.2f}."
    )


def finding_spread(spread: pd.Series, first: pd.DataFrame) -> str:
    """How far prompts move the probability of the right answer.

    spread   ``none``, ``negative`` -> mean over facts of the range (largest minus smallest) over prompts
    first    probability in frame 1, facts x contexts
    """
    raised = first.filter(like="negative").gt(first["none"], axis=0).mean().mean()
    return (
        f"Mean spread of one fact: over the paraphrases **{spread['none']:.3f}**, over paraphrases and negative contexts "
        f"**{spread['negative']:.3f}**. A negative context *raises* the probability of the right answer in {raised:.0%} of the "
        f"cases (frame 1). The positive context raises it for {(first['positive'] > first['none']).mean():.0%} of the facts."
    )


def finding_all_facts(table: pd.DataFrame) -> str:
    """MONITOR over anchored facts and over all.

    table   ``MONITOR``, ``all facts``, ``anchored`` (a share), one row per model
    """
    change = (table["all facts"] - table["MONITOR"]).dropna()
    return (
        f"With all facts, MONITOR is lower for {(change < 0).sum()} and higher for {(change > 0).sum()} of {len(change)} models. "
        f"Your numbers are those of the library. {table['anchored'].min():.0%} to {table['anchored'].max():.0%} of the facts are "
        "anchored: without this share beside it, a MONITOR does not say how many facts it covers."
    )


def alt_runs(monitor: pd.Series, runs: dict[str, pd.Series]) -> str:
    """Alt text of MONITOR against accuracy. ``runs``: model -> accuracy of each run, percent."""
    points = [
        f"{m} {monitor[m]:.2f}, {own.mean():.0f} % ({own.min():.0f} to {own.max():.0f})" for m, own in runs.items()
    ]
    return f"One point per model: MONITOR, mean accuracy and its range over runs. {'; '.join(points)}."


def finding_runs(table: pd.DataFrame, runs: dict[str, pd.Series], n_facts: int) -> str:
    """The widest range of accuracy over runs, and the correlation of MONITOR and accuracy over models.

    table   ``MONITOR``, ``accuracy``, a row per model   runs   model -> accuracy of each run, percent
    """
    widest = max(runs, key=lambda name: np.ptp(runs[name]))
    r = table[["MONITOR", "accuracy"]].corr().iloc[0, 1]
    return (
        f"The same {n_facts} facts and the same model ({widest}): {runs[widest].min():.0f} to {runs[widest].max():.0f} % right, "
        f"depending on paraphrase and context alone. Over {len(table)} models, MONITOR and accuracy correlate with r = {r:.2f}. "
        f"(The paper finds a negative correlation over 12 models; with {len(table)} points almost any r can come out.)"
    )
