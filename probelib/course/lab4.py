"""Lab 4: distractors: retrieve, rank, count, search."""

import heapq

import numpy as np
import pandas as pd
from scipy.sparse import csr_array

from probelib.course.checks import Check
from probelib.distractors import measures as distractors
from probelib.distractors import retrieval
from probelib.errors import unknown


def ending_of(name: str) -> tuple[str, bool]:
    """(text after a label, whether eos ends it) of ``distractors.ENDINGS``. Raise ProbeError if there is no such ending."""
    if name not in distractors.ENDINGS:
        raise unknown("ending", name, distractors.ENDINGS)
    return distractors.ENDINGS[name]


_BAGS = np.array([[1, 1, 0, 1], [0, 1, 1, 1], [0, 1, 0, 0], [1, 1, 0, 1], [0, 1, 0, 1.0]])


def _vectors(bags: np.ndarray) -> np.ndarray:
    return retrieval.tfidf(csr_array(bags)).toarray()


def _weighted(bags: np.ndarray, idf: np.ndarray) -> np.ndarray:
    weighted = bags * idf
    return weighted / np.maximum(np.linalg.norm(weighted, axis=1, keepdims=True), 1e-12)


def _df(bags: np.ndarray) -> np.ndarray:
    return bags.sum(0)


vectors = Check(
    right=_vectors,
    cases=[(_BAGS,)],
    look="df counts the entities of a feature (a column); the weight is ln((1 + N) / (1 + df)) + 1; rows are scaled to length 1",
    mistakes={
        "the rows have to be scaled to length 1, or entities with many features win": lambda b: (
            b * (np.log((1 + len(b)) / (1 + _df(b))) + 1)
        ),
        "every feature counts the same here: what everybody has must count less": lambda b: _weighted(
            b, np.ones(b.shape[1])
        ),
        "the 1 after the logarithm is missing, so that a feature of all entities counts nothing": lambda b: _weighted(
            b, np.log((1 + len(b)) / (1 + _df(b)))
        ),
        "N is the number of entities (rows), not of features": lambda b: _weighted(
            b, np.log((1 + b.shape[1]) / (1 + _df(b))) + 1
        ),
        "rows are divided by their sum; length is the root of the sum of squares": lambda b: (
            (w := b * (np.log((1 + len(b)) / (1 + _df(b))) + 1)) / w.sum(1, keepdims=True)
        ),
        "the 1 + are missing inside the logarithm": lambda b: _weighted(b, np.log(len(b) / _df(b)) + 1),
    },
)


def _nearest(vectors: np.ndarray, obj: int, n: int) -> list[int]:
    similarity = vectors @ vectors[obj]
    return [i for i in np.argsort(-similarity, kind="stable").tolist() if i != obj][:n]


nearest = Check(
    right=_nearest,
    cases=[(_vectors(_BAGS), 2, 2), (_vectors(_BAGS), 0, 3), (_vectors(_BAGS), 3, 2)],  # row 3 is equal to row 0
    look="for rows of length 1 the cosine is the dot product; the largest come first, of equals the smaller row",
    mistakes={
        "the object itself is its own nearest neighbour, and never a distractor": lambda v, o, n: np.argsort(
            -(v @ v[o]), kind="stable"
        )[:n].tolist(),
        "the first of the order need not be the object itself, where another is equal to it: take it out by its number": (
            lambda v, o, n: np.argsort(-(v @ v[o]), kind="stable")[1 : n + 1].tolist()
        ),
        "these are the farthest: argsort begins with the smallest": lambda v, o, n: [
            i for i in np.argsort(v @ v[o], kind="stable").tolist() if i != o
        ][:n],
        "these are the similarities: the rows of the entities are expected": lambda v, o, n: (v @ v[o])[
            _nearest(v, o, n)
        ],
        "of equally similar entities the first should come first: np.argsort(-similarity, kind='stable')": lambda v, o, n: (
            [i for i in np.argsort(v @ v[o], kind="stable")[::-1].tolist() if i != o][:n]
        ),
    },
)

_RIVALS = np.array([-5.0, -2.0, -1.0, -4.0])  # best retrieved first, not most plausible first


def _at(aggregate: str):
    def at(own: float, wrong: np.ndarray, n: int) -> float:
        outcomes = pd.DataFrame([(own > np.asarray(wrong)).astype(float)], columns=range(1, len(wrong) + 1))
        return float(distractors.aggregated(outcomes, aggregate)[min(n, len(wrong))].iloc[0])

    return at


_SHARED = {
    "a tie is a failure: the comparison is strict": lambda name: lambda o, r, n: name((o >= r[:n]).astype(float)),
    "only the first n distractors are asked, in the order of retrieval": lambda name: (
        lambda o, r, n: name((o > r).astype(float))
    ),
    "this counts the distractors that win, not those that lose": lambda name: (
        lambda o, r, n: name((o < r[:n]).astype(float))
    ),
}
_CASES = [(-3.0, _RIVALS, 1), (-1.5, _RIVALS, 2), (-1.5, _RIVALS, 4), (-2.0, _RIVALS, 2), (-0.5, _RIVALS, 9)]

min_at = Check(
    right=_at("Min"),
    cases=_CASES,
    look="1 if the right object is more plausible than every one of the first n distractors, else 0",
    mistakes={said: make(np.min) for said, make in _SHARED.items()}
    | {"this is the share of distractors that lose; one that wins is enough for 0": _at("Avg")},
)

avg_at = Check(
    right=_at("Avg"),
    cases=_CASES,
    look="the share of the first n distractors that are less plausible than the right object",
    mistakes={said: make(np.mean) for said, make in _SHARED.items()}
    | {
        "the n most plausible distractors are not the first n: keep the order of retrieval": lambda o, r, n: (
            o > np.sort(r)[::-1][:n]
        ).mean(),
        "this is the number of distractors that lose: divide by how many there are": lambda o, r, n: (o > r[:n]).sum(),
        "with fewer than n distractors, divide by those that there are": lambda o, r, n: (o > r[:n]).sum() / n,
        "this is Min@n: one distractor that wins makes it 0": _at("Min"),
    },
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


def _search(tree: dict, n: int, eager: bool = False, local: bool = False) -> tuple[list[str], int]:
    """Best-first search; ``eager``: a label counts when it is seen, not when it comes up; ``local``: by the last step alone."""
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


def _greedy(tree: dict, n: int) -> tuple[list[str], int]:
    prefix = ()
    while not prefix or prefix[-1] != ".":
        prefix = (*prefix, max(tree[prefix], key=tree[prefix].get))
    return [" ".join(prefix[:-1])], len(prefix)


def _all(tree: dict, n: int) -> tuple[list[str], int]:
    return _search(tree, n)[0], len(tree)


best_first = Check(
    right=_search,
    cases=[(TREE, 1), (TREE, 3), (TREE, 99)],
    look="go on at the most probable open prefix; a label is found when it comes up itself, full stop and all",
    mistakes={
        "the labels are right, but every prefix was opened: stop as soon as n labels have come up": _all,
        "the most probable token of each step is greedy decoding: the best first step need not lead to the best label": _greedy,
        "a label counts when it is the best of all that is open, not when it is first seen": lambda t, n: _search(
            t, n, eager=True
        ),
        "the probability of a prefix is the product of all its steps, not that of its last one": lambda t, n: _search(
            t, n, local=True
        ),
        "give both back: the labels, and how many prefixes were opened": lambda t, n: _search(t, n)[0],
    },
)
