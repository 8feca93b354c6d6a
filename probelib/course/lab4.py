"""Lab 4: distractors: retrieve, rank, count, search."""

import heapq
from functools import partial

import numpy as np
from scipy.sparse import csr_array

from probelib.course.checks import Check
from probelib.distractors import retrieval

_BAGS = np.array([[1, 1, 0, 1], [0, 1, 1, 1], [0, 1, 0, 0], [1, 1, 0, 1], [0, 1, 0, 1.0]])
_vectors = lambda bags: retrieval.tfidf(csr_array(bags)).toarray()


def _vec(bags, n=None, plus=1.0, add=1.0, order=2, weigh=True):
    """The vectors; the options are common mistakes: N, the terms added in and after the logarithm,
    the norm."""
    idf = np.log((plus + (n or len(bags))) / (plus + bags.sum(0))) + add
    weighted = bags * (idf if weigh else 1)
    if order is None:
        return weighted
    return weighted / np.linalg.norm(weighted, order, axis=1, keepdims=True).clip(1e-12)


vectors = Check(
    "lab4.vectors",
    _vectors,
    [(_BAGS,)],
    length=partial(_vec, order=None),
    weights=partial(_vec, weigh=False),
    one=partial(_vec, add=0),
    n_features=lambda bags: _vec(bags, n=bags.shape[1]),
    inside=partial(_vec, plus=0),
)


def _near(vectors, obj, n, sign=-1, turn=1):
    """The nearest rows. ``sign`` 1: the farthest; ``turn`` -1: in the opposite order."""
    order = np.argsort(sign * (vectors @ vectors[obj]), kind="stable")[::turn]
    return [i for i in order.tolist() if i != obj][:n]


_order = lambda v, o: np.argsort(-(v @ v[o]), kind="stable").tolist()

nearest = Check(
    "lab4.nearest",
    _near,
    [(_vectors(_BAGS), obj, n) for obj, n in ((2, 2), (0, 3), (3, 2))],  # rows 0 = 3
    itself=lambda v, o, n: _order(v, o)[:n],
    by_place=lambda v, o, n: _order(v, o)[1 : n + 1],
    farthest=partial(_near, sign=1),
    ties=partial(_near, sign=1, turn=-1),
)

_RIVALS = np.array([-5.0, -2.0, -1.0, -4.0])  # best retrieved first, not most plausible first
_CASES = [(o, _RIVALS, n) for o, n in ((-3.0, 1), (-1.5, 2), (-1.5, 4), (-2.0, 2), (-0.5, 9))]


def _shared(reduce):
    """The mistakes that Min@n and Avg@n have in common."""
    return {
        "tie": lambda o, r, n: reduce(1.0 * (o >= r[:n])),
        "order": lambda o, r, n: reduce(1.0 * (o > r)),
        "wins": lambda o, r, n: reduce(1.0 * (o < r[:n])),
    }


_min = lambda o, r, n: float((o > r[:n]).all())
_avg = lambda o, r, n: float((o > r[:n]).mean())

min_at = Check("lab4.min_at", _min, _CASES, **_shared(np.min), share=_avg)
avg_at = Check(
    "lab4.avg_at",
    _avg,
    _CASES,
    **_shared(np.mean),
    strongest=lambda o, r, n: (o > np.sort(r)[::-1][:n]).mean(),
    fewer=lambda o, r, n: (o > r[:n]).sum() / n,
    all=_min,
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


def _search(tree, n, eager=False, local=False):
    """Best-first search; ``eager``: a label counts when it is first seen, not when it is the best;
    ``local``: by the last step only."""
    heap, found, opened = [(-1.0, ())], [], 0
    while heap and len(found) < n:
        negative, prefix = heapq.heappop(heap)
        if prefix and prefix[-1] == ".":
            found.append(" ".join(prefix[:-1]))
            continue
        opened += 1
        for token, p in tree[prefix].items():
            if eager and token == ".":
                found.append(" ".join(prefix))
            else:
                heapq.heappush(heap, (-p if local else negative * p, (*prefix, token)))
    return found[:n], opened


best_first = Check(
    "lab4.best_first",
    _search,
    [(TREE, 1), (TREE, 3), (TREE, 99)],
    everything=lambda tree, n: (_search(tree, n)[0], len(tree)),
    eager=partial(_search, eager=True),
    local=partial(_search, local=True),
)
