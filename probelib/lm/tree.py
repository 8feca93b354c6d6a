r"""The fast path: all requests form one prefix tree, and each distinct token is forwarded once.

    requests                              the tree               rows of 3 tokens   in the cache

    the capital of France | is Paris      [the capital of]       the capital of     nothing
    the capital of France | is Lyon           /      \           France is Spain    the capital of
    the capital of Spain  | is Madrid     [France]  [Spain]      is                 ... of Spain
                                             |         |
                                           [is]      [is]        Leaves (Paris, Lyon, Madrid) are
                                          /    \       |         predicted, never forwarded.
                                       Paris  Lyon   Madrid

A token attends to its ancestors only (tree mask); its position is its depth. So it attends to the
same tokens, at the same positions, as in its own sequence: the scores are exact.
"""

from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import chain

import numpy as np
import torch

from probelib.errors import ProbeError
from probelib.lm.families import Branches, Ints, Scores, forward_packed, to_device

BLOCK = 32  # on a CPU, log-softmax takes so many rows of logits at a time: they fit into its cache


class Tree:
    """The prefix tree of contexts and branches, in arrays over its nodes.

    Nodes are numbered depth first, siblings by token id: each of the sorted sequences adds what it
    does not share with the one before it. The order of the requests does not matter.

        node    0    1        2    3       4   5      6
        token   the  capital  of   France  is  Spain  is
        depth   0    1        2    3       4   3      4
        end     7    7        7    5       5   7      7      the node after the subtree

    contexts   token ids, at least one each
    branches   (index of the context, token ids); the last token is predicted and gets no node

    ends         [contexts] the last node of each context
    predicting   [tokens of all branches] the node that predicts each
    """

    def __init__(self, contexts: Sequence[Sequence[int]], branches: Branches = ()):
        roots, root, rests = _roots(contexts)
        # in the order of the sequences
        rests += [(*rests[context], *tokens[:-1]) for context, tokens in branches]
        of = np.array([context for context, _ in branches], dtype=np.int64)
        distinct = sorted(set(rests))
        rank = {rest: number for number, rest in enumerate(distinct)}
        ranks = np.fromiter((rank[rest] for rest in rests), np.int64, len(rests))
        keys = np.concatenate([root, root[of]]) * len(rank) + ranks
        keys, sequence = np.unique(keys, return_inverse=True)
        shared, added = _differences(roots, distinct, keys)
        size = np.fromiter(map(len, added), np.int64, len(added))
        last = size.cumsum() - 1  # [distinct sequences] the last node of each
        self.token = np.fromiter(chain.from_iterable(added), np.int64, size.sum())
        self.depth = np.arange(len(self.token)) - np.repeat(last + 1 - size - shared, size)
        self.ends = last[sequence[: len(contexts)]]
        lengths = (len(tokens) for _, tokens in branches)
        length = self._length = np.fromiter(lengths, np.int64, len(of))
        # tokens of the branch after this one
        back = np.repeat(length.cumsum(), length) - np.arange(length.sum()) - 1
        node = np.repeat(last[sequence[len(contexts) :]], length)
        self.predicting = self.ancestor(node, self.depth[node] - back)

    def __len__(self) -> int:
        return len(self.token)

    def by_branch(self, values: np.ndarray) -> list[np.ndarray]:
        """[tokens of all branches] -> the part of each branch, as a view."""
        stops = self._length.cumsum().tolist()
        return [values[start:stop] for start, stop in zip([0, *stops], stops, strict=False)]

    @cached_property
    def _by_depth(self) -> np.ndarray:
        return np.sort(self.depth * len(self) + np.arange(len(self)))

    def ancestor(self, node: np.ndarray, depth: np.ndarray) -> np.ndarray:
        """The ancestor of each node (or itself) at a depth: the last node there up to it."""
        after = np.searchsorted(self._by_depth, depth * len(self) + node, side="right")
        return self._by_depth[after - 1] % len(self)

    @cached_property
    def end(self) -> np.ndarray:
        """[nodes] the node after the subtree of each: the next one that is not deeper."""
        end = [len(self)] * len(self)
        path: list[int] = []
        for node, depth in enumerate(self.depth.tolist()):
            for closed in path[depth:]:
                end[closed] = node
            path[depth:] = [node]
        return np.array(end, dtype=np.int64)


def _roots(contexts: Sequence[Sequence[int]]) -> tuple[list, np.ndarray, list[tuple[int, ...]]]:
    """Sorted contexts of which none begins with another, and every context as one of them and a
    rest.

    >>> _roots([[5, 6], [5, 6, 7], [3]])
    ([[3], [5, 6]], array([1, 1, 0]), [(), (7,), ()])
    """
    roots: list[Sequence[int]] = []
    root = np.zeros(len(contexts), dtype=np.int64)
    rests: list[tuple[int, ...]] = [()] * len(contexts)
    for context in sorted(range(len(contexts)), key=lambda number: tuple(contexts[number])):
        ids = contexts[context]
        if not roots or ids[: len(roots[-1])] != roots[-1]:
            roots.append(ids)
        root[context], rests[context] = len(roots) - 1, tuple(ids[len(roots[-1]) :])
    return roots, root, rests


def _differences(
    roots: list, rests: list[tuple[int, ...]], keys: np.ndarray
) -> tuple[np.ndarray, list[Sequence[int]]]:
    """Per sequence the number of tokens that it shares with the one before, and its other tokens;
    ``keys``: sorted, number of the root * len(rests) + number of the rest; every root is one."""
    shared, added, root_before, rest_before = [], [], (), ()
    numbers = (each.tolist() for each in np.divmod(keys, len(rests)))
    for root, rest in [(roots[r], rests[t]) for r, t in zip(*numbers, strict=True)]:
        above = len(root) if root is root_before else 0  # every root comes first without a rest
        new, before = (rest, rest_before) if above else (root, root_before)
        same = common_beginning(before, new)
        shared.append(above + same)
        added.append(new[same:])
        root_before, rest_before = root, rest
    return np.array(shared, dtype=np.int64), added


def common_beginning(left: Sequence[int], right: Sequence[int]) -> int:
    """Number of tokens that two sequences begin with alike."""
    pairs = enumerate(zip(left, right, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(left), len(right)))


def score_tree(hf_model, contexts: list[list[int]], branches: Branches, budget: int) -> Scores:
    """Log-probability (nats) of every token of every branch after its context, and the arg-max at
    its position.

    contexts, branches   as in ``Tree``; token -1 requests the arg-max only and gets NaN
    budget               most tokens packed into one row; bounds the memory
    returns              per branch: log-probs [L], arg-max ids [L]; and the cost
    """
    tree = Tree(contexts, branches)
    every = chain.from_iterable(tokens for _, tokens in branches)
    tokens = np.fromiter(every, np.int64, len(tree.predicting))
    width = tokens.max(initial=0) + 2
    # distinct (node, token)
    requests, request = np.unique(tree.predicting * width + tokens + 1, return_inverse=True)
    node, token = requests // width, requests % width - 1
    picked = []

    def read(logits: torch.Tensor, nodes: np.ndarray) -> None:
        low, high = np.searchsorted(node, [nodes[0], nodes[-1] + 1])
        row = np.searchsorted(nodes, node[low:high])
        picked.append((row, gather_logprobs(logits, row, token[low:high])))

    cost = forward_tree(hf_model, tree, np.unique(node), budget, read)
    arrays = [(row, *to_numpy_checked(*results)) for row, results in picked]
    logprob = np.concatenate([scores for _, scores, _ in arrays])[request]
    argmax = np.concatenate([best[row] for row, _, best in arrays])[request]
    return tree.by_branch(logprob), tree.by_branch(argmax), cost


def forward_tree(
    hf_model,
    tree: Tree,
    requested: np.ndarray,
    budget: int,
    read: Callable,
    layer: int | None = None,
    cache=None,
) -> dict:
    """Forward every node once: depth first, in rows of ``budget`` tokens. Node q attends to node p
    if p <= q < end[p]; between two rows the cache keeps only the ancestors of the next node.

    requested  the nodes whose outputs are read, sorted
    read       called with the outputs at the requested nodes of a row, and these nodes
    layer      None: outputs are logits; a number: hidden states of that layer
    cache      keys and values before the tree (a soft prompt); None: none
    returns    ``forwarded_tokens``, ``forwards``, ``tree_nodes``
    """
    from transformers import DynamicCache

    # without a config: sliding-window layers would drop keys
    cache = DynamicCache() if cache is None else cache
    virtual, size = cache.get_seq_length(), len(tree)
    soft = np.arange(virtual)
    ancestors = np.empty(0, dtype=np.int64)  # nodes in the cache
    with torch.inference_mode():
        for start in range(0, size, budget):
            row = np.arange(start, min(start + budget, size))
            keys = np.concatenate([ancestors, row])
            visible = _visible(keys, tree.end[keys], virtual, len(row), hf_model.device)
            wanted = requested[slice(*np.searchsorted(requested, [start, start + len(row)]))]
            position = np.concatenate([soft, virtual + tree.depth[keys]])
            keep = wanted - start if len(wanted) else [0]
            outputs = forward_packed(
                hf_model, cache, tree.token[row], position, visible, keep, layer
            )
            if len(wanted):
                read(outputs, wanted)
            kept = tree.end[keys] > start + len(row)  # ancestors of the next node
            ancestors = keys[kept]
            _crop(cache, np.concatenate([soft, virtual + np.flatnonzero(kept)]))
    return {"forwarded_tokens": size, "forwards": -(-size // budget), "tree_nodes": size}


def _visible(keys: np.ndarray, end: np.ndarray, virtual: int, n: int, device) -> torch.Tensor:
    """[n, virtual + keys] bool: what each of the last ``n`` nodes attends to; a soft prompt, to
    which all do, comes first."""
    place = np.pad(keys, (virtual, 0), constant_values=-1)
    after = np.pad(end, (virtual, 0), constant_values=keys[-1] + 1)
    places, ends = to_device(place, device), to_device(after, device)
    query = places[len(place) - n :, None]
    return (places <= query) & (query < ends)


def _crop(cache, positions: np.ndarray) -> None:
    """Keep only the keys and values at these positions."""
    index = to_device(positions, cache.layers[0].keys.device)
    for layer in cache.layers:
        index = index.to(layer.keys.device)  # a model may be spread over several GPUs
        layer.keys = layer.keys.index_select(-2, index)
        layer.values = layer.values.index_select(-2, index)


def gather_logprobs(
    logits: torch.Tensor, rows: Ints, tokens: Ints
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """log-softmax(logits)[rows, tokens] in float32 (NaN for token -1), the arg-max of every row,
    and whether all logits are finite, without waiting for the GPU: for ``to_numpy_checked``."""
    logits, on_cpu = logits.float(), logits.device.type == "cpu"
    # on a CPU numpy's arg-max is ten times as fast as torch's
    best = torch.from_numpy(logits.numpy().argmax(-1)) if on_cpu else logits.argmax(-1)
    top = logits.gather(-1, best[:, None])  # [n, 1]
    size = BLOCK if on_cpu else len(logits)
    total = torch.cat(
        [(l - t).exp_().sum(-1) for l, t in zip(logits.split(size), top.split(size), strict=True)]
    ).log_()
    row, token = to_device(rows, logits.device), to_device(tokens, logits.device)
    score = (logits[row, token] - top[row, 0]) - total[row]
    return torch.where(token < 0, torch.nan, score), best, torch.isfinite(top).all()


def to_numpy_checked(
    scores: torch.Tensor, best: torch.Tensor, finite: torch.Tensor
) -> tuple[np.ndarray, np.ndarray]:
    """Scores and arg-max as arrays. Raise ProbeError if a logit was NaN or +inf."""
    if not finite:
        raise ProbeError(
            "the model returned NaN or infinite logits. In float16 large activations overflow: "
            "load it with dtype='bfloat16' or 'float32'. Otherwise the checkpoint is damaged"
        )
    return scores.cpu().numpy(), best.cpu().numpy()
