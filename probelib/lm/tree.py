r"""The fast path: all requests as one prefix tree, each distinct token forwarded once.

    requests                              the tree                rows of 3 tokens     in the cache before

    the capital of France | is Paris      [the capital of]        the capital of       nothing
    the capital of France | is Lyon           /      \            France is Spain      the capital of
    the capital of Spain  | is Madrid     [France]  [Spain]       is                   the capital of Spain
                                             |         |
                                           [is]      [is]         A token sees its ancestors only (tree mask) and
                                          /    \       |          stands at its depth (position). Leaves (Paris, Lyon,
                                       Paris  Lyon   Madrid       Madrid) are predicted, never forwarded.

Exact: a token sees the very tokens it would see in its own sequence, at the same positions.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import reduce

import numpy as np
import torch

from probelib.errors import ProbeError
from probelib.lm.families import forward_packed, sent
from probelib.lm.linear import packed_weights

BLOCK = 32  # rows of logits that are exponentiated together on a CPU: they stay in its cache


@dataclass
class Tree:
    """A prefix tree over token ids, in arrays indexed by node; node 0 is the empty root, parents come before children.

    token, parent, depth   one entry a node (depth of the first token: 0; of the root: -1)
    child                  (node, token) -> node
    asked                  (node, token) -> slot: the next tokens whose log-probability is wanted, slots in order
    """

    token: list[int] = field(default_factory=lambda: [-1])
    parent: list[int] = field(default_factory=lambda: [-1])
    depth: list[int] = field(default_factory=lambda: [-1])
    child: dict[tuple[int, int], int] = field(default_factory=dict)
    asked: dict[tuple[int, int], int] = field(default_factory=dict)

    def step(self, node: int, token: int) -> int:
        """The child of ``node`` by ``token``, made where it is missing."""
        child = self.child.get((node, token))
        if child is None:
            child = self.child[node, token] = len(self.token)
            self.token.append(token)
            self.parent.append(node)
            self.depth.append(self.depth[node] + 1)
        return child

    def walk(self, node: int, tokens) -> int:
        """The node reached from ``node`` along ``tokens``."""
        return reduce(self.step, tokens, node)

    def ask(self, node: int, token: int) -> int:
        """The slot in which log P(token | path to node) will lie."""
        return self.asked.setdefault((node, token), len(self.asked))

    def places(self) -> tuple[np.ndarray, np.ndarray]:
        """Where each node stands depth first, children by token id, whatever the requests' order; and where its subtree is
        over."""
        size = [1] * len(self.token)
        for node in range(len(size) - 1, 0, -1):
            size[self.parent[node]] += size[node]
        place, free = [0] * len(size), [1] * len(size)  # free: the place of the next child
        for node in np.lexsort((self.token, self.parent))[1:].tolist():  # a node's parent has its place before it
            place[node] = free[self.parent[node]]
            free[node] = place[node] + 1
            free[self.parent[node]] += size[node]
        return np.array(place), np.add(place, size)


def score_tree(
    model, contexts: list[list[int]], branches: list[tuple[int, tuple[int, ...]]], budget: int
) -> tuple[list[np.ndarray], list[np.ndarray], dict]:
    """Log-probability (nats) of every token of every branch after its context, and the arg-max in its place.

    contexts   token ids, at least one each
    branches   (index of the context, token ids); token -1 asks for the arg-max alone and gets NaN
    budget     most tokens packed in one row; bounds the memory
    returns    per branch: log-probs [L], arg-max ids [L]; and counts of forwarded tokens and forwards
    """
    tree = Tree()
    ends = [tree.walk(0, ids) for ids in contexts]
    asking, slots = [], []  # of every token of all branches: the node that predicts it, and its slot
    starts = []  # where a branch begins
    for context, tokens in branches:
        node = ends[context]
        starts.append(len(slots))
        for position, token in enumerate(tokens):
            asking.append(node)
            slots.append(tree.ask(node, token))
            if position < len(tokens) - 1:
                node = tree.step(node, token)
    logprob = np.full(len(tree.asked), np.nan, dtype=np.float32)
    argmax = np.full(len(tree.token), -1, dtype=np.int64)
    at_node, at_token = np.array(list(tree.asked), dtype=np.int64).reshape(-1, 2).T
    by_node = np.argsort(at_node, kind="stable")  # slots; those of a node are by_node[first[node] : first[node + 1]]
    first = np.searchsorted(at_node[by_node], np.arange(len(tree.token) + 1))
    said = []

    def read(logits: torch.Tensor, nodes: np.ndarray) -> None:
        rows = np.repeat(np.arange(len(nodes)), first[nodes + 1] - first[nodes])
        at = np.concatenate([by_node[first[node] : first[node + 1]] for node in nodes])
        said.append((at, nodes, pick(logits, rows, at_token[at])))

    cost = walk_tree(model, tree, budget, read)
    for at, nodes, picked in said:
        logprob[at], argmax[nodes] = settled(*picked)
    return np.split(logprob[slots], starts[1:]), np.split(argmax[asking], starts[1:]), cost


def last_states(
    model, sequences: list[list[int]], budget: int, layer: int, soft_prompt=None
) -> tuple[np.ndarray, dict]:
    """Hidden states [sequences, width] (float32) at the last token of each sequence, and counts.

    layer         0 = embeddings, -1 = the last one, after the final norm
    soft_prompt   [virtual tokens, width] embeddings before every sequence, forwarded once; None: none
    """
    from transformers import DynamicCache

    virtual, cache = 0 if soft_prompt is None else len(soft_prompt), DynamicCache()
    if virtual:
        with torch.inference_mode():
            embedded = soft_prompt.to(model.device, model.dtype)[None]
            model(inputs_embeds=embedded, past_key_values=cache, use_cache=True, logits_to_keep=1)
    tree = Tree(depth=[virtual - 1])
    slots = [tree.ask(tree.walk(0, ids), -1) for ids in sequences]
    states = [None] * len(tree.asked)

    def read(hidden: torch.Tensor, nodes: np.ndarray) -> None:
        for node, row in zip(nodes.tolist(), hidden.float().cpu().numpy(), strict=True):
            states[tree.asked[node, -1]] = row

    cost = walk_tree(model, tree, budget, read, layer, cache)
    return np.stack([states[slot] for slot in slots]), cost


def walk_tree(model, tree: Tree, budget: int, read: Callable, layer: int | None = None, cache=None) -> dict:
    """Forwards every node once: the tree, depth first, cut into rows of ``budget`` tokens. Between two rows the cache holds
    what stands above the next node (and the soft prompt), nothing else.

    read     takes what the model says at the nodes where something is asked, and those nodes
    layer    None: logits; a number: hidden states of that layer
    cache    what stands before the root (a soft prompt); None: nothing
    returns  ``forwarded_tokens``, ``forwards``, ``tree_nodes``

        place    0     1    2        3    4       5    6      7      the root stands at 0
        token          the  capital  of   France  is   Spain  is
        end      8     8    8        8    6       6    8      8      where its subtree is over

    The node at q sees the one at p, cached or in the row, if p <= q < end[p].
    """
    from transformers import DynamicCache

    cache = DynamicCache() if cache is None else cache  # without config: sliding-window layers would drop keys
    virtual, (place, end) = cache.get_seq_length(), tree.places()
    order = np.argsort(place)
    token, depth, end = np.array(tree.token)[order], np.array(tree.depth)[order], end[order]
    asking = np.zeros(len(order), dtype=bool)
    asking[place[[node for node, _ in tree.asked]]] = True
    above = np.empty(0, dtype=np.int64)  # places in the cache
    cost = {"forwarded_tokens": 0, "forwards": 0, "tree_nodes": len(order) - 1}
    with torch.inference_mode(), packed_weights(model, budget, cost["tree_nodes"]):
        for start in range(1, len(order), budget):
            row = np.arange(start, min(start + budget, len(order)))
            keys = np.concatenate([above, row])
            sees = _visible(keys, end[keys], len(row), virtual, model.device)
            asked = np.flatnonzero(asking[row])
            position = np.concatenate([np.arange(virtual), depth[keys]])
            keep = asked if len(asked) else [0]
            said = forward_packed(model, cache, token[row], position, sees, keep, layer)
            cost["forwarded_tokens"] += len(row)
            cost["forwards"] += 1
            if len(asked):
                read(said, order[row[asked]])
            open_ = end[keys] > row[-1] + 1  # above the next node
            above = keys[open_]
            _keep(cache, np.concatenate([np.arange(virtual), virtual + np.flatnonzero(open_)]))
    return cost


def _visible(keys: np.ndarray, end: np.ndarray, n: int, virtual: int, device) -> torch.Tensor:
    """[n, virtual + keys] bool: what each of the last ``n`` keys sees, itself included. keys, end: see ``walk_tree``"""
    key, end = sent(keys, device), sent(end, device)
    query = key[len(key) - n :, None]
    return torch.nn.functional.pad((key <= query) & (query < end), (virtual, 0), value=True)


def _keep(cache, places: np.ndarray) -> None:
    """Drops all other keys and values."""
    index = sent(places, cache.layers[0].keys.device)
    for layer in cache.layers:
        index = index.to(layer.keys.device)  # of a model on several GPUs
        layer.keys, layer.values = layer.keys.index_select(-2, index), layer.values.index_select(-2, index)


def pick(logits: torch.Tensor, rows: Sequence[int], tokens: Sequence[int]) -> tuple[torch.Tensor, ...]:
    """log-softmax(logits)[rows, tokens] in float32 whatever the weights (NaN for token -1), and the arg-max of every row, for
    ``settled``. Nothing here waits for a GPU, so the next forward is prepared meanwhile."""
    logits, on_cpu = logits.float(), logits.device.type == "cpu"
    # numpy's arg-max is ten times as fast as torch's own on a CPU
    best = torch.from_numpy(logits.numpy().argmax(-1)) if on_cpu else logits.argmax(-1)
    top = logits.gather(-1, best[:, None])  # [n, 1]
    size = BLOCK if on_cpu else len(logits)
    total = torch.cat([(l - t).exp_().sum(-1) for l, t in zip(logits.split(size), top.split(size), strict=True)]).log_()
    row, token = sent(rows, logits.device), sent(tokens, logits.device)
    score = (logits[row, token] - top[row, 0]) - total[row]
    return torch.where(token < 0, torch.nan, score), best, torch.isfinite(top).all()


def settled(scores: torch.Tensor, best: torch.Tensor, finite: torch.Tensor) -> tuple[np.ndarray, np.ndarray]:
    """Scores and arg-max as numbers. NaN or +inf among the logits (an overflow in float16, a damaged checkpoint) is an error,
    never a number."""
    if not finite:
        raise ProbeError(
            "the model returned NaN or infinite logits. In float16 large activations overflow: load it with "
            "dtype='bfloat16' or 'float32'; otherwise the checkpoint is damaged."
        )
    return scores.cpu().numpy(), best.cpu().numpy()
