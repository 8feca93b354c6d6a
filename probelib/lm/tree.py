r"""The fast path: all requests form one prefix tree, and each distinct token is forwarded once.

    requests                              the tree               rows of 3 tokens   in the cache

    the capital of France | is Paris      [the capital of]       the capital of     nothing
    the capital of France | is Lyon           /      \           France is Spain    the capital of
    the capital of Spain  | is Madrid     [France]  [Spain]      is                 ... of Spain
                                             |         |
                                           [is]      [is]        Leaves (Paris, Lyon, Madrid) are
                                          /    \       |         predicted, never forwarded.
                                       Paris  Lyon   Madrid

A token attends to its ancestors only; its position is its depth. So it attends to the same tokens,
at the same positions, as in its own sequence: the scores are exact.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain

import numpy as np
import torch

from probelib.errors import ProbeError
from probelib.lm.families import Branches, Ints, Scores, forward_packed, to_device

NOT_FINITE = (
    "the model returned NaN or infinite logits: load it with dtype='bfloat16' or 'float32' (large "
    "activations overflow float16); otherwise the checkpoint is damaged"
)
BLOCK = 32  # on a CPU, log-softmax takes so many rows of logits at a time: they fit into its cache


class Tree:
    """The prefix tree of contexts and branches, in arrays over its nodes, which are numbered depth
    first, siblings by token id: the order of the requests does not matter.

        node    0    1        2    3       4   5      6
        token   the  capital  of   France  is  Spain  is
        depth   0    1        2    3       4   3      4
        parent  -1   0        1    2       3   2      5
        end     7    7        7    5       5   7      7      the node after the subtree

    contexts   token ids, at least one each
    branches   (index of the context, token ids); the last token is predicted and gets no node

    ends         [contexts] the last node of each context
    predicting   [tokens of all branches] the node that predicts each; ``cuts``: where a new branch
                 begins
    """

    def __init__(self, contexts: Sequence[Sequence[int]], branches: Branches = ()):
        known: dict[int, int] = {}  # (parent, token) as a number -> node, from 1 on as they come
        ends, paths = list[int](), list[list[int]]()
        behind = ((ends[c], tokens[:-1]) for c, tokens in branches)  # read after all contexts
        for start, tokens in chain(((0, context) for context in contexts), behind):
            path = [start]
            for token in tokens:
                path.append(known.setdefault(path[-1] << 32 | token, len(known) + 1))
            ends.append(path[-1])
            if start:  # of a branch
                paths.append(path)
        lengths = [len(tokens) for _, tokens in branches]
        paths = [path[:n] for path, n in zip(paths, lengths, strict=True)]
        self.cuts = np.cumsum(lengths, dtype=np.int64)[:-1]
        keys = np.fromiter(known, np.int64, len(known))
        parent = [-1, *(keys >> 32).tolist()]  # node 0, before all contexts, is none of the tree's
        size, free, depth, place = ([value] * len(parent) for value in (1, 0, -1, -1))
        for node in range(len(known), 0, -1):  # parents come before their children
            size[parent[node]] += size[node]
        for node in (np.argsort(keys) + 1).tolist():
            above = parent[node]
            place[node], depth[node] = free[above], depth[above] + 1
            free[node] = place[node] + 1  # where its next child goes
            free[above] += size[node]
        number, order = np.array(place), np.argsort(place[1:])
        by_place = lambda values: np.array(values, dtype=np.int64)[order]
        self.token, self.depth = by_place(keys & 0xFFFFFFFF), by_place(depth[1:])
        self.parent = number[by_place(parent[1:])]
        self.end = np.arange(len(order)) + by_place(size[1:])
        self.ends = number[np.array(ends[: len(contexts)], dtype=np.int64)]
        self.predicting = number[np.fromiter(chain.from_iterable(paths), np.int64)]


@torch.inference_mode()
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
    for logits, nodes in forward_tree(hf_model, tree, np.unique(node), budget):
        low, high = np.searchsorted(node, [nodes[0], nodes[-1] + 1])
        row = np.searchsorted(nodes, node[low:high])
        picked.append((row, gather_logprobs(logits, row, token[low:high])))
    arrays = [(row, *to_numpy_checked(*results)) for row, results in picked]
    logprob = np.concatenate([scores for _, scores, _ in arrays])[request]
    argmax = np.concatenate([best[row] for row, _, best in arrays])[request]
    cost = {"forwarded_tokens": len(tree.token), "forwards": -(-len(tree.token) // budget)}
    return np.split(logprob, tree.cuts), np.split(argmax, tree.cuts), cost


def forward_tree(
    hf_model, tree: Tree, requested: np.ndarray, budget: int, layer=None, cache=None
) -> Iterator[tuple[torch.Tensor, np.ndarray]]:
    """Forward every node once, in rows of ``budget`` tokens; the caller is in inference mode. Node
    q attends to node p if p <= q < end[p]; between two rows the cache keeps only the ancestors of
    the next node. Yield the outputs at the requested nodes of each row, and these nodes.

    requested  the nodes whose outputs are read, sorted
    layer      None: outputs are logits; a number: hidden states of that layer
    cache      keys and values before the tree (a soft prompt); None: none
    """
    from transformers import DynamicCache

    # without a config: sliding-window layers would drop keys
    cache = DynamicCache() if cache is None else cache
    virtual, size = cache.get_seq_length(), len(tree.token)
    soft, on_device = np.arange(virtual), partial(to_device, device=hf_model.device)
    ancestors = np.empty(0, dtype=np.int64)  # nodes in the cache
    for start in range(0, size, budget):
        row = np.arange(start, min(start + budget, size))
        keys = np.concatenate([ancestors, row])
        # a soft prompt comes first and never ends
        places = on_device(np.pad(keys, (virtual, 0), constant_values=-1))
        ends = on_device(np.pad(tree.end[keys], (virtual, 0), constant_values=row[-1] + 1))
        query = places[len(places) - len(row) :, None]
        visible = (places <= query) & (query < ends)  # [row, virtual + keys]
        wanted = requested[slice(*np.searchsorted(requested, [start, start + len(row)]))]
        depth = np.concatenate([soft, virtual + tree.depth[keys]])
        keep: Ints = wanted - start if len(wanted) else [0]
        outputs = forward_packed(hf_model, cache, tree.token[row], depth, visible, keep, layer)
        if len(wanted):
            yield outputs, wanted
        kept = tree.end[keys] > start + len(row)  # ancestors of the next node
        ancestors = keys[kept]
        index = on_device(np.concatenate([soft, virtual + np.flatnonzero(kept)]))
        for held in cache.layers:
            index = index.to(held.keys.device)  # a model may be spread over several GPUs
            held.keys = held.keys.index_select(-2, index)
            held.values = held.values.index_select(-2, index)


def gather_logprobs(logits: torch.Tensor, rows: Ints, tokens: Ints) -> tuple[torch.Tensor, ...]:
    """log-softmax(logits)[rows, tokens] in float32 (NaN for token -1), the arg-max of every row,
    and whether all logits are finite: for ``to_numpy_checked``, as it does not wait for the GPU."""
    logits, on_cpu = logits.float(), logits.device.type == "cpu"
    # on a CPU numpy's arg-max is ten times as fast as torch's
    best = torch.from_numpy(logits.numpy().argmax(-1)) if on_cpu else logits.argmax(-1)
    top = logits.gather(-1, best[:, None])  # [n, 1]
    size = BLOCK if on_cpu else len(logits)
    blocks = zip(logits.split(size), top.split(size), strict=True)
    total = torch.cat([(block - most).exp_().sum(-1) for block, most in blocks]).log_()
    row, token = to_device(rows, logits.device), to_device(tokens, logits.device)
    score = (logits[row, token] - top[row, 0]) - total[row]
    return torch.where(token < 0, torch.nan, score), best, torch.isfinite(top).all()


def to_numpy_checked(scores, best, finite) -> tuple[np.ndarray, np.ndarray]:
    """``gather_logprobs``'s scores and arg-max as arrays; ProbeError if a logit was NaN or +inf."""
    if not finite:
        raise ProbeError(NOT_FINITE)
    return scores.cpu().numpy(), best.cpu().numpy()
