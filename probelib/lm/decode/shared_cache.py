"""Many searches in one cache: prompts are continued together, and every token is forwarded once.

    the prompts, a tree                tokens found so far               the next forward
    [the capital of]--[France is]------[Paris]--[.]                      [The]
                    \\            \\----[a]--[city]                        [of]
                     [Spain is]--------[Madrid]                          [,]

A search is a generator: it yields the tokens to forward (each with the cache position of the token
before it), receives their positions and readings, and returns its result.
"""

from collections.abc import Callable, Sequence
from os.path import commonprefix  # of any sequences

import numpy as np
import torch
from torch.nn.functional import pad

from probelib.errors import ProbeError
from probelib.lm.families import Ints, forward_packed, to_device
from probelib.lm.tree import NOT_FINITE, Tree

KEYS = 4  # most keys in a cache, in token budgets


class SharedCache:
    """A packed row that grows: a prompt tree, and further tokens after any of its tokens. A forward
    gets only the keys that its tokens attend to: a search may leave thousands behind.

    above   per position those of its ancestors and its own
    kept    per layer keys and values [1, heads, room, width], filled up to the last position
    """

    def __init__(self, hf_model) -> None:
        self.hf_model, self.forwards = hf_model, 0
        self.above: list[np.ndarray] = []
        self.kept: list[list[torch.Tensor]] = []

    @torch.inference_mode()
    def extend(self, tokens: Ints, parents: Ints, keep: Ints) -> torch.Tensor:
        """Forward tokens, each after its parent (a position, also of this call; -1: none); return
        the log-probs [keep, vocabulary]."""
        from transformers import DynamicCache

        past, n = len(self.above), len(tokens)
        for position, parent in enumerate(parents, start=past):
            before = self.above[parent] if parent >= 0 else np.empty(0, dtype=np.int32)
            self.above.append(np.append(before, np.int32(position)))
        paths = self.above[past:]
        keys, key = np.unique(np.concatenate(paths), return_inverse=True)  # its own are the last n
        sees = np.zeros((n, len(keys)), dtype=bool)
        sees[np.repeat(np.arange(n), [len(path) for path in paths]), key] = True
        cache = DynamicCache()
        for layer, held in enumerate(self.kept if len(keys) > n else []):
            index = to_device(keys[:-n], held[0].device)
            cache.update(*(part.index_select(-2, index) for part in held), layer)
        visible = torch.from_numpy(sees).to(self.hf_model.device)
        depth = np.array([len(self.above[key]) - 1 for key in keys])
        logits = forward_packed(self.hf_model, cache, tokens, depth, visible, keep)
        for number, layer in enumerate(cache.layers):
            new = [part[..., -n:, :] for part in (layer.keys, layer.values)]
            if number == len(self.kept):
                self.kept.append([part[..., :0, :] for part in new])
            if self.kept[number][0].shape[-2] < past + n:  # a full room doubles
                self.kept[number] = [pad(part, (0, 0, 0, past + n)) for part in self.kept[number]]
            for kept, part in zip(self.kept[number], new, strict=True):
                kept[..., past : past + n, :] = part
        logprobs = torch.log_softmax(logits.float(), -1)
        if not torch.isfinite(logprobs.amax(-1)).all():
            raise ProbeError(NOT_FINITE)
        self.forwards += 1
        return logprobs

    def prefill(self, prompts: Sequence[Sequence[int]], budget: int) -> tuple[list, torch.Tensor]:
        """Forward the tree of some prompts: the positions of their ends, log-probs there."""
        tree, outputs = Tree(prompts), []
        ends, end = np.unique(tree.ends, return_inverse=True)
        for start in range(0, len(tree.token), budget):
            stop = min(start + budget, len(tree.token))
            keep = ends[(start <= ends) & (ends < stop)] - start
            wanted: Ints = keep if len(keep) else [0]
            logprobs = self.extend(tree.token[start:stop], tree.parent[start:stop], wanted)
            outputs += [logprobs] if len(keep) else []
        return tree.ends.tolist(), torch.cat(outputs)[torch.from_numpy(end)]


def run_searches(
    hf_model, prompts: list, start: Callable, read: Callable, rows: int, new: int, budget: int
) -> tuple[list, list[int], dict]:
    """Run one search per prompt (token ids). Return their results in the prompts' order, the tokens
    that each would forward alone, and the counts of ``cost``.

    start     (position of the prompt's end, reading there) -> a search
    read      log-probs [n, vocabulary] -> a list of n readings
    rows      most searches that run together
    new       tokens that a search may add; with ``budget`` (most tokens per forward) it bounds the
              keys of a cache
    """
    found: list = [None] * len(prompts)
    alone = [len(ids) for ids in prompts]
    cost = {"forwarded_tokens": 0, "forwards": 0}
    groups, held, last = list[list[int]](), 0, prompts[0][:0]
    for p in sorted(range(len(prompts)), key=lambda p: (prompts[p], p)):  # so that beginnings meet
        held += len(prompts[p]) - len(commonprefix([last, prompts[p]])) + new
        if not groups or held > KEYS * budget or len(groups[-1]) == rows:
            groups.append([])
            held = len(prompts[p]) + new
        groups[-1].append(p)
        last = prompts[p]
    for group in groups:
        cache = SharedCache(hf_model)
        positions, logprobs = cache.prefill([prompts[p] for p in group], budget)
        ends = zip(group, positions, read(logprobs), strict=True)
        searches = {p: start(position, reading) for p, position, reading in ends}
        answers = dict.fromkeys(group)
        while searches:
            requests = {}
            for p, search in list(searches.items()):
                try:
                    requests[p] = search.send(answers[p])
                except StopIteration as end:
                    found[p] = end.value
                    del searches[p]
            together = [pair for pairs in requests.values() for pair in pairs]
            first, readings = len(cache.above), []
            for i in range(0, len(together), budget):
                tokens, parents = zip(*together[i : i + budget], strict=True)
                readings += read(cache.extend(tokens, parents, range(len(tokens))))
            results = enumerate(readings, first)  # (position, reading) of each token
            for p, pairs in requests.items():
                answers[p] = [next(results) for _ in pairs]
                alone[p] += len(pairs)
        cost["forwarded_tokens"] += len(cache.above)
        cost["forwards"] += cache.forwards
    return found, alone, cost
