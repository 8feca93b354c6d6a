"""Lab 4: distractors: retrieve, rank, count, search."""

import heapq

import numpy as np
from scipy.sparse import csr_array

from probelib.course.checks import Check
from probelib.distractors import retrieval

_BAGS = np.array([[1, 1, 0, 1], [0, 1, 1, 1], [0, 1, 0, 0], [1, 1, 0, 1], [0, 1, 0, 1.0]])
_vectors = lambda bags: retrieval.tfidf(csr_array(bags)).toarray()

vectors = Check(
    "lab4.vectors",
    _vectors,
    [(_BAGS,)],
    length=lambda bags: bags * (np.log((1 + len(bags)) / (1 + bags.sum(0))) + 1),
    weights=lambda bags: bags / np.linalg.norm(bags, axis=1, keepdims=True),
)


def _near(vectors, obj, n, sign=-1):
    """The nearest rows; with ``sign`` 1 the farthest."""
    order = np.argsort(sign * (vectors @ vectors[obj]), kind="stable").tolist()
    return [i for i in order if i != obj][:n]


nearest = Check(
    "lab4.nearest",
    _near,
    [(_vectors(_BAGS), obj, n) for obj, n in ((2, 2), (0, 3), (3, 2))],  # rows 0 = 3
    itself=lambda v, o, n: np.argsort(-(v @ v[o]), kind="stable").tolist()[:n],
    farthest=lambda v, o, n: _near(v, o, n, sign=1),
)

_RIVALS = np.array([-5.0, -2.0, -1.0, -4.0])  # best retrieved first, not most plausible first
_CASES = [(o, _RIVALS, n) for o, n in ((-3.0, 1), (-1.5, 2), (-1.5, 4), (-2.0, 2), (-0.5, 9))]
_min = lambda o, r, n: float((o > r[:n]).all())
_avg = lambda o, r, n: float((o > r[:n]).mean())

min_at = Check(
    "lab4.min_at", _min, _CASES, tie=lambda o, r, n: float((o >= r[:n]).all()), share=_avg
)
avg_at = Check(
    "lab4.avg_at",
    _avg,
    _CASES,
    tie=lambda o, r, n: (o >= r[:n]).mean(),
    strongest=lambda o, r, n: (o > np.sort(r)[::-1][:n]).mean(),
)

TREE = {
    (): {"New": 0.5, "Paris": 0.28, "Rome": 0.22},
    ("New",): {"York": 0.6, "Delhi": 0.4},
    ("New", "York"): {"City": 0.7, ".": 0.3},
    ("New", "York", "City"): {".": 1.0},
    ("New", "Delhi"): {".": 1.0},
    ("Paris",): {".": 0.9, "Hilton": 0.1},
    ("Paris", "Hilton"): {".": 1.0},
    ("Rome",): {".": 0.8, "Italy": 0.2},
    ("Rome", "Italy"): {".": 1.0},
}


def _search(tree, n, local=False):
    """Best-first search; ``local``: by the last step only."""
    heap, found, opened = [(-1.0, ())], [], 0
    while heap and len(found) < n:
        negative, prefix = heapq.heappop(heap)
        if prefix and prefix[-1] == ".":
            found.append(" ".join(prefix[:-1]))
            continue
        opened += 1
        for token, p in tree[prefix].items():
            heapq.heappush(heap, (-p if local else negative * p, (*prefix, token)))
    return found, opened


best_first = Check(
    "lab4.best_first",
    _search,
    [(TREE, 1), (TREE, 3), (TREE, 99)],
    everything=lambda tree, n: (_search(tree, n)[0], len(tree)),
    local=lambda tree, n: _search(tree, n, local=True),
)
