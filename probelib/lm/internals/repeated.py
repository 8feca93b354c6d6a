"""The middle path, for caches that cannot be packed (Mamba 2, Falcon-H1, RWKV): each distinct
prompt is forwarded once, and its state is repeated for its continuations.

    prompt              [the capital of France is]                       1 row, forwarded once
    its continuations   [Par] [Ly] [New York]     (tokens but the last)  one row each, behind a copy
                        of the prompt's state

Padding stands on the right, where no token of a row sees it; the padded state is not used again.
"""

import copy
import inspect

import numpy as np
import torch

from probelib.lm.plain import gather_branches, pad_right


def score_repeated(
    hf_model,
    contexts: list[list[int]],
    branches: list[tuple[int, tuple[int, ...]]],
    rows: int,
    steps: bool = False,
) -> tuple[list[np.ndarray], list[np.ndarray], dict]:
    """Arguments and results as in ``tree.score_tree``; ``rows`` continuations per forward.
    ``steps``: the continuations are forwarded token by token, for models whose state takes one
    token at a time (Mamba, Jamba)."""
    by_context: dict[int, list[int]] = {}
    for b, (context, _) in enumerate(branches):
        by_context.setdefault(context, []).append(b)
    logprobs, argmax = [None] * len(branches), [None] * len(branches)
    cost = {"forwarded_tokens": 0, "forwards": 0}
    known = inspect.signature(hf_model.forward).parameters
    kind = next((name for name in ("cache_params", "state") if name in known), "past_key_values")

    def forward(sequences: list[list[int]], cache=None, past: int = 0):
        """Logits [rows, length, vocabulary] of right-padded rows behind ``past`` tokens, and the
        state after them."""
        ids, _ = pad_right(sequences, hf_model.device)
        cost["forwarded_tokens"] += ids.numel()
        cost["forwards"] += 1
        given = {} if cache is None else {kind: cache}
        if past and "position_ids" in known:  # Bamba would count from 0
            given["position_ids"] = torch.arange(past, past + ids.shape[1], device=ids.device)[None]
        output = hf_model(input_ids=ids, use_cache=True, **given)
        return output.logits, getattr(output, kind)

    with torch.inference_mode():
        for context, chosen in by_context.items():
            first, cache = forward([contexts[context]])
            last = first[0, -1:]  # [1, vocabulary]
            inner = sorted(
                {branches[b][1][:-1] for b in chosen} - {()}, key=lambda ids: (len(ids), ids)
            )
            for batch in [
                [()],
                *(inner[start : start + rows] for start in range(0, len(inner), rows)),
            ]:
                after = (
                    _after(forward, cache, batch, steps, len(contexts[context]))
                    if batch != [()]
                    else [last[:0]]
                )
                logits = {
                    ids: torch.cat([last, row[: len(ids)]])
                    for ids, row in zip(batch, after, strict=True)
                }
                _read(
                    logits,
                    [b for b in chosen if branches[b][1][:-1] in logits],
                    branches,
                    logprobs,
                    argmax,
                )
    return logprobs, argmax, cost


def _after(forward, cache, batch: list[tuple[int, ...]], steps: bool, past: int) -> torch.Tensor:
    """Logits [rows, length, vocabulary] of rows behind copies of the state of a prompt of ``past``
    tokens."""
    cache = copy.deepcopy(cache)
    if isinstance(cache, list):  # RWKV: tensors [1, width, layers]
        cache = [state.expand(len(batch), -1, -1).clone() for state in cache]
    else:
        cache.reorder_cache(torch.zeros(len(batch), dtype=torch.long, device=_device(cache)))
    if not steps:
        return forward([list(ids) for ids in batch], cache, past)[0]
    columns = []
    for position in range(max(map(len, batch))):
        tokens = [[ids[position] if position < len(ids) else 0] for ids in batch]
        column, cache = forward(tokens, cache, past + position)
        columns.append(column)
    return torch.cat(columns, 1)


def _device(cache):
    tensors = (value for layer in cache.layers for value in vars(layer).values())
    return next((value.device for value in tensors if isinstance(value, torch.Tensor)), "cpu")


def _read(logits: dict, chosen: list[int], branches: list, logprobs: list, argmax: list) -> None:
    """Fill in the scores of branches. ``logits``: tokens but the last -> [length + 1,
    vocabulary]"""
    if not chosen:
        return
    places, total, parts = {}, 0, list(logits.values())
    for ids, part in logits.items():
        places[ids] = total
        total += len(part)
    predicted = [
        (places[branches[b][1][:-1]] + np.arange(len(branches[b][1])), branches[b][1])
        for b in chosen
    ]
    for b, scores in zip(chosen, gather_branches(torch.cat(parts)[None], predicted), strict=True):
        logprobs[b], argmax[b] = scores
