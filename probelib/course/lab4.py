"""Lab 4: distractors: retrieve, rank, count, search."""

import heapq
from functools import partial

import numpy as np
import pandas as pd
from scipy.sparse import csr_array

from probelib.course.checks import Check
from probelib.distractors import measures as distractors
from probelib.distractors import retrieval
from probelib.errors import unknown


def ending_of(name: str) -> tuple[str, bool]:
    """(text after a label, whether EOS must follow), from ``distractors.ENDINGS``. Raise ProbeError if there is no such
    ending."""
    if name not in distractors.ENDINGS:
        raise unknown("ending", name, distractors.ENDINGS)
    return distractors.ENDINGS[name]


_BAGS = np.array([[1, 1, 0, 1], [0, 1, 1, 1], [0, 1, 0, 0], [1, 1, 0, 1], [0, 1, 0, 1.0]])


def _vectors(bags: np.ndarray) -> np.ndarray:
    return retrieval.tfidf(csr_array(bags)).toarray()


def _vec(bags, n=None, plus=1.0, add=1.0, order: int | None = 2, weigh: bool = True) -> np.ndarray:
    """The vectors; the options are common mistakes: N, the terms added in and after the logarithm, the norm."""
    idf = np.log((plus + (n or len(bags))) / (plus + bags.sum(0))) + add
    weighted = bags * (idf if weigh else 1)
    return weighted if order is None else weighted / np.linalg.norm(weighted, order, axis=1, keepdims=True).clip(1e-12)


vectors = Check(
    right=_vectors,
    cases=[(_BAGS,)],
    look="df counts the entities of a feature (a column); the weight is ln((1 + N) / (1 + df)) + 1; rows are scaled to length 1",
    mistakes={
        "the rows have to be scaled to length 1, or entities with many features win": partial(_vec, order=None),
        "every feature has the same weight here: a common feature must have less": partial(_vec, weigh=False),
        "the 1 after the logarithm is missing, so that a feature of all entities has no weight": partial(_vec, add=0),
        "N is the number of entities (rows), not of features": lambda bags: _vec(bags, n=bags.shape[1]),
        "rows are divided by their sum; length is the root of the sum of squares": partial(_vec, order=1),
        "the 1 + are missing inside the logarithm": partial(_vec, plus=0),
    },
)


def _near(vectors: np.ndarray, obj: int, n: int, sign: int = -1, turn: int = 1) -> list[int]:
    """The nearest rows. ``sign`` 1: the farthest; with ``turn`` -1: the nearest, the last of ties first."""
    order = np.argsort(sign * (vectors @ vectors[obj]), kind="stable")[::turn]
    return [i for i in order.tolist() if i != obj][:n]


_order = lambda v, o: np.argsort(-(v @ v[o]), kind="stable").tolist()

nearest = Check(
    right=_near,
    cases=[(_vectors(_BAGS), 2, 2), (_vectors(_BAGS), 0, 3), (_vectors(_BAGS), 3, 2)],  # row 3 is equal to row 0
    look="for rows of length 1 the cosine is the dot product; the largest come first, of ties the smaller row number",
    mistakes={
        "the object itself is its own nearest neighbour, and never a distractor": lambda v, o, n: _order(v, o)[:n],
        "the first in this order need not be the object itself, if another entity equals it: remove it by its number": (
            lambda v, o, n: _order(v, o)[1 : n + 1]
        ),
        "these are the farthest: argsort begins with the smallest": partial(_near, sign=1),
        "these are the similarities: the rows of the entities are expected": lambda v, o, n: (v @ v[o])[_near(v, o, n)],
        "of equally similar entities the first should come first: np.argsort(-similarity, kind='stable')": (
            partial(_near, sign=1, turn=-1)
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
    "a tie is a failure: the comparison is strict": lambda o, r, n: o >= r[:n],
    "only the first n distractors count, in the order of retrieval": lambda o, r, n: o > r,
    "this counts the distractors that win, not those that lose": lambda o, r, n: o < r[:n],
}
_shared = lambda reduce: {said: lambda *given, lost=lost: reduce(lost(*given) * 1.0) for said, lost in _SHARED.items()}
_CASES = [(-3.0, _RIVALS, 1), (-1.5, _RIVALS, 2), (-1.5, _RIVALS, 4), (-2.0, _RIVALS, 2), (-0.5, _RIVALS, 9)]

min_at = Check(
    right=_at("Min"),
    cases=_CASES,
    look="1 if the right object is more plausible than every one of the first n distractors, else 0",
    mistakes=_shared(np.min)
    | {"this is the share of distractors that lose; one that wins is enough for 0": _at("Avg")},
)

_most_plausible = lambda o, r, n: (o > np.sort(r)[::-1][:n]).mean()

avg_at = Check(
    right=_at("Avg"),
    cases=_CASES,
    look="the share of the first n distractors that are less plausible than the right object",
    mistakes=_shared(np.mean)
    | {
        "the n most plausible distractors are not the first n: keep the order of retrieval": _most_plausible,
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
    """Best-first search; ``eager``: a label counts when it is first seen, not when it is the best; ``local``: by the last step
    only."""
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


_all = lambda tree, n: (_search(tree, n)[0], len(tree))

best_first = Check(
    right=_search,
    cases=[(TREE, 1), (TREE, 3), (TREE, 99)],
    look="continue at the most probable open prefix; a label is found when it is the most probable itself, with its full stop",
    mistakes={
        "the labels are right, but every prefix was opened: stop as soon as n labels are found": _all,
        "the most probable token of each step is greedy decoding: the best first step need not lead to the best label": _greedy,
        "a label counts when it is the best of all that is open, not when it is first seen": partial(
            _search, eager=True
        ),
        "the probability of a prefix is the product of all its steps, not that of its last one": partial(
            _search, local=True
        ),
        "return both: the labels, and the number of opened prefixes": lambda t, n: _search(t, n)[0],
    },
)


def alt_min_avg(curves: dict[tuple[str, str], list[float]]) -> str:
    """Alt text of Min@n and Avg@n. ``curves``: (strategy, ``Min`` or ``Avg``) -> means over facts for 1, 2, ... distractors."""
    ends = [f"{way}@n, {retrieval.NAMES[s]}, from {own[0]:.2f} to {own[-1]:.2f}" for (s, way), own in curves.items()]
    n = len(next(iter(curves.values())))
    return f"Mean over facts against 1 to {n} distractors, Min@n solid, Avg@n dashed: {'; '.join(ends)}."


def finding_min_avg(curves: dict[tuple[str, str], list[float]]) -> str:
    """Min@n and Avg@n with all distractors, by strategy. ``curves``: as for ``alt_min_avg``, with random, sem and opt."""
    n, last = len(curves["random", "Min"]), {key: values[-1] for key, values in curves.items()}
    return (
        f"By Min@{n} the same model knows {last['random', 'Min']:.0%} of the facts against random distractors, "
        f"{last['sem', 'Min']:.0%} against similar ones and {last['opt', 'Min']:.0%} against its own favourites. By Avg@{n} it "
        f"is {last['random', 'Avg']:.0%}, {last['sem', 'Avg']:.0%} and {last['opt', 'Avg']:.0%}."
    )


def finding_search(found: pd.DataFrame, exact: pd.Series, beam: pd.Series) -> str:
    """What best-first search costs, and how many of its labels a beam finds, too.

    found         searches with ``prompt``, ``forwarded_tokens``, ``trie_tokens``
    exact, beam   labels of one fact by best-first search and by the beam, equally many
    """
    each = found.drop_duplicates("prompt")
    share = each["forwarded_tokens"].sum() / each["trie_tokens"].sum()
    return (
        f"Over all {len(each)} searches, best-first forwarded {share:.1%} of the tokens, and its answer is exact. The beam of "
        f"width {len(beam)} found {len(set(exact) & set(beam))} of the same {len(exact)} here."
    )
