"""The middle path, for caches that cannot be packed (Mamba 2, Falcon-H1, RWKV): each distinct
prompt is forwarded once, and its state is repeated for its continuations.

    prompt              [the capital of France is]                       1 row, forwarded once
    its continuations   [Par] [Ly] [New York]     (tokens but the last)  one row each, behind a copy
                        of the prompt's state

Padding stands on the right, where no token of a row sees it; the padded state is not used again.
"""

import copy
import inspect
from itertools import groupby

import numpy as np
import torch

from probelib.lm.families import Branches, Scores
from probelib.lm.plain import gather_branches, pad_right


def score_repeated(
    hf_model, contexts: list[list[int]], branches: Branches, rows: int, steps: bool = False
) -> Scores:
    """Arguments and results as in ``tree.score_tree``; ``rows`` continuations per forward.
    ``steps``: the continuations are forwarded token by token, for models whose state takes one
    token at a time (Mamba, Jamba)."""
    logprobs, argmax = [np.empty(0)] * len(branches), [np.empty(0)] * len(branches)
    cost = {"forwarded_tokens": 0, "forwards": 0}
    known = inspect.signature(hf_model.forward).parameters
    kind = next((name for name in ("cache_params", "state") if name in known), "past_key_values")

    def forward(sequences: list[list[int]], cache=None, past: int = 0):
        """Logits [rows, length, vocabulary] behind ``past`` tokens, and the state after them."""
        ids, _ = pad_right(sequences, hf_model.device)
        cost["forwarded_tokens"] += ids.numel()
        cost["forwards"] += 1
        given = {} if cache is None else {kind: cache}
        if past and "position_ids" in known:  # Bamba would count from 0
            given["position_ids"] = torch.arange(past, past + ids.shape[1], device=ids.device)[None]
        output = hf_model(input_ids=ids, use_cache=True, **given)
        return output.logits, getattr(output, kind)

    inner = lambda b: tuple(branches[b][1][:-1])  # what is forwarded of a continuation
    order = sorted(range(len(branches)), key=lambda b: (branches[b][0], len(inner(b)), inner(b)))
    with torch.inference_mode():
        for context, chosen in groupby(order, key=lambda b: branches[b][0]):
            first, cache = forward([contexts[context]])
            by_inner = {ids: list(own) for ids, own in groupby(chosen, key=inner)}
            longer = [ids for ids in by_inner if ids]
            batches: list[list[tuple]] = [[()]] if () in by_inner else []
            batches += [longer[start : start + rows] for start in range(0, len(longer), rows)]
            for batch in batches:
                logits = first[:, -1:]  # [1, 1, vocabulary]
                if batch != [()]:
                    after = _after(forward, cache, batch, steps, len(contexts[context]))
                    logits = torch.cat([logits.expand(len(batch), -1, -1), after], 1)
                asked = [
                    (b, row * logits.shape[1] + np.arange(len(branches[b][1])), branches[b][1])
                    for row, ids in enumerate(batch)
                    for b in by_inner[ids]
                ]
                predicted = [(places, tokens) for _, places, tokens in asked]
                for (b, *_), scores in zip(asked, gather_branches(logits, predicted), strict=True):
                    logprobs[b], argmax[b] = scores
    return logprobs, argmax, cost


def _after(forward, cache, batch: list[tuple[int, ...]], steps: bool, past: int) -> torch.Tensor:
    """Logits [rows, length, vocabulary] behind copies of the state of ``past`` tokens."""
    cache = copy.deepcopy(cache)
    if isinstance(cache, list):  # RWKV: tensors [1, width, layers]
        cache = [state.expand(len(batch), -1, -1).clone() for state in cache]
    else:
        held = [value for layer in cache.layers for value in vars(layer).values()]
        device = next((value.device for value in held if torch.is_tensor(value)), "cpu")
        cache.reorder_cache(torch.zeros(len(batch), dtype=torch.long, device=device))
    if not steps:
        return forward([list(ids) for ids in batch], cache, past)[0]
    columns = []
    for position in range(max(map(len, batch))):
        tokens = [[ids[position] if position < len(ids) else 0] for ids in batch]
        column, cache = forward(tokens, cache, past + position)
        columns.append(column)
    return torch.cat(columns, 1)
