"""The middle path, for caches that cannot be packed (Mamba, LFM2, Falcon-H1): each distinct prompt
is forwarded once, and copies of its state step through its continuations, token by token."""

import copy
import inspect
from itertools import groupby

import numpy as np
import torch

from probelib.lm.families import Branches, Scores
from probelib.lm.plain import gather_branches, pad_right


@torch.inference_mode()
def score_repeated(hf_model, contexts: list[list[int]], branches: Branches, rows: int) -> Scores:
    """Arguments and results as in ``tree.score_tree``; ``rows`` continuations per forward."""
    logprobs, argmax = [np.empty(0)] * len(branches), [np.empty(0)] * len(branches)
    cost = {"forwarded_tokens": 0, "forwards": 0}
    known = inspect.signature(hf_model.forward).parameters
    kind = "cache_params" if "cache_params" in known else "past_key_values"

    def forward(ids: torch.Tensor, past: int = 0, state=None):
        """Logits [rows, length, vocabulary] behind ``past`` tokens, and the state after them."""
        cost["forwarded_tokens"] += ids.numel()
        cost["forwards"] += 1
        given = {} if state is None else {kind: state}
        if past and "position_ids" in known:  # Bamba would count from 0
            given["position_ids"] = torch.full_like(ids, past)
        output = hf_model(input_ids=ids, use_cache=True, **given)
        return output.logits, getattr(output, kind)

    order = sorted(range(len(branches)), key=lambda b: (branches[b][0], len(branches[b][1])))
    for context, same in groupby(order, key=lambda b: branches[b][0]):
        before, chosen = contexts[context], list(same)
        first, state = forward(torch.tensor([before], device=hf_model.device))
        for some in (chosen[i : i + rows] for i in range(0, len(chosen), rows)):
            asked = [branches[b][1] for b in some]
            # a row that has ended goes on with padding, which nothing reads
            ids, _ = pad_right([list(tokens[:-1]) for tokens in asked], hf_model.device)
            columns, cache = [first[:, -1:].expand(len(some), -1, -1)], _copies(state, len(some))
            for step in range(ids.shape[1]):
                logits, cache = forward(ids[:, [step]], len(before) + step, cache)
                columns.append(logits)
            at = [row * len(columns) + np.arange(len(tokens)) for row, tokens in enumerate(asked)]
            predicted = list(zip(at, asked, strict=True))
            found = gather_branches(torch.cat(columns, 1), predicted)
            for b, scores in zip(some, found, strict=True):
                logprobs[b], argmax[b] = scores
    return logprobs, argmax, cost


def _copies(state, rows: int):
    """A state of one row, repeated for ``rows``; forwards change it in place."""
    state = copy.deepcopy(state)
    held = [value for layer in state.layers for value in vars(layer).values()]
    device = next((value.device for value in held if torch.is_tensor(value)), "cpu")
    state.reorder_cache(torch.zeros(rows, dtype=torch.long, device=device))
    return state
