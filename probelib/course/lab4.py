"""Lab 4: distractors: retrieve, rank, count, search."""

import heapq

import numpy as np
from scipy.sparse import csr_array

from probelib.course.checks import EXERCISES, Check, exercise
from probelib.distractors import retrieval

TREE = {tuple(prefix.split()): tokens for prefix, tokens in EXERCISES["lab4"]["tree"].items()}

vectors = Check(
    "lab4.vectors",
    lambda bags: retrieval.tfidf(csr_array(bags)).toarray(),
    length=lambda bags: bags * (np.log((1 + len(bags)) / (1 + bags.sum(0))) + 1),
    weights=lambda bags: bags / np.linalg.norm(bags, axis=1, keepdims=True),
)
_VECTORS = vectors.right(*vectors.cases[0])


@exercise(
    "lab4.nearest",
    cases=[(_VECTORS, 2, 2), (_VECTORS, 0, 3), (_VECTORS, 3, 2)],  # rows 0 = 3
    itself=lambda v, o, n: np.argsort(-(v @ v[o]), kind="stable").tolist()[:n],
    farthest={"sign": 1},
)
def nearest(vectors, obj, n, sign=-1):
    """The nearest rows; with ``sign`` 1 the farthest."""
    order = np.argsort(sign * (vectors @ vectors[obj]), kind="stable").tolist()
    return [i for i in order if i != obj][:n]


min_at = Check(
    "lab4.min_at",
    lambda o, r, n: float((o > r[:n]).all()),
    tie=lambda o, r, n: float((o >= r[:n]).all()),
    share=lambda o, r, n: (o > r[:n]).mean(),
)
avg_at = Check(
    "lab4.avg_at",
    lambda o, r, n: (o > r[:n]).mean(),
    tie=lambda o, r, n: (o >= r[:n]).mean(),
    strongest=lambda o, r, n: (o > np.sort(r)[::-1][:n]).mean(),
)


@exercise(
    "lab4.best_first",
    cases=[(TREE, 1), (TREE, 3), (TREE, 99)],
    everything=lambda tree, n: (best_first.right(tree, n)[0], len(tree)),
    local={"local": True},
)
def best_first(tree, n, local=False):
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
