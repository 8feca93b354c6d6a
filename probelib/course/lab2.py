"""Lab 2: prompt framing and interference, MONITOR built from its parts."""

import numpy as np
import pandas as pd

from probelib.course.checks import Check, call, comparable, exercise, require, shown
from probelib.monitor import measures as library

distance = Check(
    "lab2.distance",
    library.pfd,
    signed=lambda p, f: (p - f).mean(),
    before=lambda p, f: np.abs(p - f.mean(0)).mean(),
    frames=lambda p, f: np.abs(p - f).mean(1).sum(),
)

# two frames, two distractors, two answer tokens; all frames after each distractor
_CONTEXTS = ["negative1", "none", "negative2", "positive", "none", "negative2", "negative1"]
_TABLE = pd.DataFrame({"template": [1, 1, 1, 1, 2, 2, 2], "context": _CONTEXTS})
_TABLE["probabilities"] = list(np.linspace(0.05, 0.95, 14).reshape(7, 2))
_AFTER = "context.str.startswith('negative')"  # a distractor


def _sorted_rows(value):
    """The rows of f and n in one order, on which no distance depends. Raise NotYet for an array of
    arrays, as a column holds them."""
    if not isinstance(value, dict):
        return value
    require(all(np.asarray(part).dtype != object for part in value.values()), "lab2.stacks")
    value = {name: comparable(part) for name, part in value.items()}
    return {name: np.sort(v, axis=0) if np.ndim(v) == 2 else v for name, v in value.items()}


@exercise(
    "lab2.anchors",
    cases=[(_TABLE,)],
    form=_sorted_rows,
    n_frames={"n": _AFTER},
    f_context={"f": "context != 'positive'"},
)
def anchors(table, f="context == 'none'", n=f"{_AFTER} & template == 1"):
    """The rows of p, f and n, each selected by a query."""
    queries = ("context == 'positive'", f, n)
    rows = [table.query(query).sort_values(["context", "template"]) for query in queries]
    p, f, n = (np.array(own["probabilities"].tolist()) for own in rows)
    return {"p": p[0], "f": f, "n": n}


root = Check(
    "lab2.root",
    library.root,
    no_product=lambda a, b: np.sqrt((a**2 + b**2) / 3),
    no_root=lambda a, b: (a**2 + b**2 + a * b) / 3,
)


@exercise(
    "lab2.monitor",
    mean_of_ratios=lambda a, b, p: (library.root(a, b) / p).mean(),
    root_of_means=lambda a, b, p: library.root(a.mean(), b.mean()) / p.mean(),
)
def monitor(pfd, ird, pbar):
    columns = {"pfd": pfd, "ird": ird, "root": library.root(pfd, ird), "pbar": pbar}
    return library.monitor(pd.DataFrame(columns))


def fool(answer) -> None:
    """Check ``fool() -> (p, f, n)``: any model with a perfect MONITOR and no knowledge is right."""
    got = call(answer, (), "fool")
    parts = [comparable(part) for part in got] if isinstance(got, (tuple, list)) else []
    shaped = [np.ndim(part) for part in parts] == [1, 2, 2]
    shaped = shaped and len({part.shape[-1] for part in parts}) == 1
    shaped = shaped and all(part.size and 0 <= part.min() <= part.max() <= 1 for part in parts)
    require(shaped, "lab2.shapes")
    p, f, n = parts
    require(p.any(), "lab2.zeros")
    score = monitor.right(*map(np.atleast_1d, (library.pfd(p, f), library.ird(p, n), p.mean())))
    require(score < 0.01, "lab2.unsteady", shown(score))
    require(f.max() < 0.05, "lab2.knows", shown(f.max()))
    print(f"✓ MONITOR is {score:.3f}, as good as it gets, of a model that never says the answer.")
