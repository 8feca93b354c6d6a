"""Lab 2: prompt framing and interference, MONITOR built from its parts."""

from functools import partial

import numpy as np
import pandas as pd

from probelib.course.checks import Check, NotYet, call, comparable, shown
from probelib.monitor import measures as library

# p [L] and f [R, L] of one answer token and two frames, of two tokens and three frames
_ONE = (np.array([0.6]), np.array([[0.8], [0.4]]))
_THREE = (np.array([0.9, 0.7]), np.array([[0.8, 0.5], [0.95, 0.95], [0.1, 0.9]]))

distance = Check(
    "lab2.distance",
    library.pfd,
    [_ONE, _THREE],
    signed=lambda p, f: (p - f).mean(),
    before=lambda p, f: np.abs(p - f.mean(0)).mean(),
    frames=lambda p, f: np.abs(p - f).mean(1).sum(),
)

# two frames, two distractors, two answer tokens; all frames after each distractor
_TABLE = pd.DataFrame(
    {
        "template": [1, 2, 1, 1, 2, 1, 2],
        "context": ["none"] * 2 + ["positive"] + ["negative1"] * 2 + ["negative2"] * 2,
        "probabilities": list(np.linspace(0.05, 0.95, 14).reshape(7, 2)),
    }
)
_TABLE = _TABLE.iloc[[3, 0, 5, 2, 1, 6, 4]].reset_index(drop=True)
_AFTER = "context.str.startswith('negative')"  # a distractor


def _anchors(table, f="context == 'none'", n=f"{_AFTER} & template == 1"):
    """The rows of p, f and n, each selected by a query."""
    queries = ("context == 'positive'", f, n)
    rows = [table.query(query).sort_values(["context", "template"]) for query in queries]
    p, f, n = (np.array(own["probabilities"].tolist()) for own in rows)
    return {"p": p[0], "f": f, "n": n}


def _sorted_rows(value):
    """The rows of f and n in one order, on which no distance depends. Raise NotYet for an array of
    arrays, as a column holds them."""
    if not isinstance(value, dict):
        return value
    if any(np.asarray(part).dtype == object for part in value.values()):
        stacks = "np.array(column.tolist()) stacks the arrays of a column"
        raise NotYet(f"numbers of shape (rows, L) are expected in f and n, (L,) in p: {stacks}.")
    value = {name: comparable(part) for name, part in value.items()}
    return {name: np.sort(v, axis=0) if np.ndim(v) == 2 else v for name, v in value.items()}


anchors = Check(
    "lab2.anchors",
    _anchors,
    [(_TABLE,)],
    form=_sorted_rows,
    n_frames=partial(_anchors, n=_AFTER),
    f_context=partial(_anchors, f="context != 'positive'"),
)

root = Check(
    "lab2.root",
    library.root,
    [(0.2, 0.4), (0.0, 0.5), (np.array([0.1, 0.3]), np.array([0.3, 0.0]))],
    no_product=lambda a, b: np.sqrt((a**2 + b**2) / 3),
    no_root=lambda a, b: (a**2 + b**2 + a * b) / 3,
)

_FACTS = (np.array([0.2, 0.0, 0.1]), np.array([0.4, 0.1, 0.3]), np.array([0.9, 0.05, 0.6]))


def _monitor(pfd, ird, pbar):
    columns = {"pfd": pfd, "ird": ird, "root": library.root(pfd, ird), "pbar": pbar}
    return library.monitor(pd.DataFrame(columns))


monitor = Check(
    "lab2.monitor",
    _monitor,
    [_FACTS, tuple(values[:1] for values in _FACTS)],
    mean_of_ratios=lambda a, b, p: (library.root(a, b) / p).mean(),
    root_of_means=lambda a, b, p: library.root(a.mean(), b.mean()) / p.mean(),
)


def fool(answer) -> None:
    """Check ``fool() -> (p, f, n)``: any model with a perfect MONITOR and no knowledge is right."""
    got = call(answer, (), "fool")
    parts = [comparable(part) for part in got] if isinstance(got, (tuple, list)) else []
    shaped = [np.ndim(part) for part in parts] == [1, 2, 2]
    shaped = shaped and len({part.shape[-1] for part in parts}) == 1
    if not shaped or not all(part.size and 0 <= part.min() <= part.max() <= 1 for part in parts):
        shapes = "p of shape (L,), f of shape (R, L), n of shape (M, L), with the same L"
        raise NotYet(f"fool should return three arrays of probabilities: {shapes}.")
    p, f, n = parts
    if not p.any():
        raise NotYet("with a p of zeros MONITOR is 0 / 0: keep the mean of p above 0.")
    score = _monitor(*map(np.atleast_1d, (library.pfd(p, f), library.ird(p, n), p.mean())))
    if not score < 0.01:
        raise NotYet(f"MONITOR is {shown(score)}, not below 0.01: which differences make it grow?")
    if (most := f.max()) >= 0.05:
        raise NotYet(f"the model gives the answer up to {shown(most)}: it may know something.")
    print(f"✓ MONITOR is {score:.3f}, as good as it gets, of a model that never says the answer.")
