"""Scoring node by node, on servers that return the log-probabilities of chosen tokens (``logprob_token_ids`` of
vLLM's /completions, since 2026). One position is generated behind every predicting node of the prefix tree, and the server's
prefix cache computes once what the prompts share.

    requests                              prompts sent               chosen tokens     read

    the capital of France | is Paris      the capital of France      is                p(is), the most probable token
    the capital of France | is Lyon       the capital of France is   Lyon, Paris       p(Lyon), p(Paris), ...
    the capital of Spain  | is Madrid     the capital of Spain       is                p(is), ...
                                          the capital of Spain is    Madrid            ...

All prompts of a request get the log-probabilities of the same tokens, so prompts with the same tokens go together.
"""

import math
from collections.abc import Callable, Iterator

import numpy as np

from probelib.lm.remote.transport import in_parallel
from probelib.lm.tree import Tree

BLOCK = 16  # tokens per block of a prefix cache (vLLM's default): behind its last full block a prompt is computed again
PROMPTS = 64  # most prompts per request
CHOSEN = 128  # most chosen tokens per request: vLLM's limit
MIXED = 16  # most chosen tokens of a request whose prompts have different ones
WINDOW = 4096  # nodes, depth first, that are requested in any order: the server's cache holds what they share

# prompts, chosen tokens -> per prompt: log-prob of each chosen token behind it, most probable token
Chosen = Callable[[list[list[int]], list[int]], list[tuple[dict[int, float], int]]]


class Nodes:
    """The prefix tree of requests (arguments as of ``tree.score_tree``) and its predicting nodes.

    chosen   node -> tokens whose log-probabilities are requested behind it; none if only the most probable one is
    """

    def __init__(self, contexts: list[list[int]], branches: list[tuple[int, tuple[int, ...]]]):
        self.tree, self.chosen, self._prompts = Tree(contexts, branches), {}, {}
        self._tokens = [token for _, tokens in branches for token in tokens]  # of all branches
        prompts = [(contexts[context], tokens[:i]) for context, tokens in branches for i in range(len(tokens))]
        self._predicting = self.tree.predicting.tolist()
        for node, token, prompt in zip(self._predicting, self._tokens, prompts, strict=True):
            self._prompts.setdefault(node, prompt)
            chosen = self.chosen.setdefault(node, [])
            if token >= 0 and token not in chosen:
                chosen.append(token)

    @property
    def distinct(self) -> int:
        """Number of distinct prefixes: tokens that have to be computed."""
        return len(self.tree)

    @property
    def computed(self) -> int:
        """About how many tokens the server computes: every prefix once, and half a block per prompt again."""
        return self.distinct + len(self.chosen) * BLOCK // 2

    def prompt(self, node: int) -> list[int]:
        """The token ids from the root to a node."""
        context, tokens = self._prompts[node]
        return [*context, *tokens]

    def requests(self) -> Iterator[tuple[list[int], list[int]]]:
        """(nodes, chosen tokens) of every request. Prefixes that are near each other in the tree are near in time."""
        parts = [
            (node, tokens[i : i + CHOSEN])
            for node, tokens in sorted(self.chosen.items())
            for i in range(0, max(len(tokens), 1), CHOSEN)
        ]
        for start in range(0, len(parts), WINDOW):
            yield from _together(parts[start : start + WINDOW])

    def score(self, ask: Chosen) -> tuple[list[np.ndarray], list[np.ndarray], dict]:
        """Per branch log-probs and arg-max ids, as of ``tree.score_tree``. The cost counts distinct prefixes as
        ``forwarded_tokens``, the least that a server computes, and the tokens of all prompts as ``sent_tokens``."""
        requests = list(self.requests())
        answers = in_parallel(lambda request: ask([self.prompt(node) for node in request[0]], request[1]), requests)
        read, best = {}, {}
        for (nodes, _), answer in zip(requests, answers, strict=True):
            for node, (values, greedy) in zip(nodes, answer, strict=True):
                read.update(((node, token), value) for token, value in values.items())
                best[node] = greedy
        cost = {"forwarded_tokens": self.distinct, "tree_nodes": self.distinct, "forwards": len(requests)}
        cost["sent_tokens"] = sum(len(self.prompt(node)) for nodes, _ in requests for node in nodes)
        values = [read.get(key, np.nan) for key in zip(self._predicting, self._tokens, strict=True)]
        logprobs, argmax = np.array(values, dtype=np.float32), np.array([best[node] for node in self._predicting])
        return self.tree.by_branch(logprobs), self.tree.by_branch(argmax), cost


def score_sequences(sequences: list[list[int]], ask: Chosen) -> list[tuple[list[float], list[int]]]:
    """Per sequence the log-probabilities of its tokens (NaN for the first) and the most probable ids."""
    branches = [(i, tuple(ids[1:])) for i, ids in enumerate(sequences)]
    logprobs, argmax, _ = Nodes([ids[:1] for ids in sequences], branches).score(ask)
    return [([math.nan, *values], [-1, *best]) for values, best in zip(logprobs, argmax, strict=True)]


def _together(parts: list[tuple[int, list[int]]]) -> Iterator[tuple[list[int], list[int]]]:
    """Requests of parts (node, chosen tokens): similar ones share a request."""
    nodes, chosen = [], set()
    ordered = sorted(((node, sorted(tokens)) for node, tokens in parts), key=lambda part: (-len(part[1]), part[1]))
    for node, tokens in ordered:
        joined = chosen.union(tokens)
        if nodes and (len(nodes) == PROMPTS or len(joined) > max(len(tokens), MIXED)):
            yield nodes, sorted(chosen)
            nodes, joined = [], set(tokens)
        nodes, chosen = [*nodes, node], joined
    if nodes:
        yield nodes, sorted(chosen)
