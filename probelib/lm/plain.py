"""The plain path: one padded sequence per request, no cache, no tree. It is the reference for the
fast path, and the fallback where the two disagree.

Which logit predicts which token (a prompt of 3 tokens, a continuation of 2):

    input        p0    p1    p2    c0
    logits        |     |     |     |
    predicts     p1    p2   [c0]  [c1]      the last token, c1, is predicted and never forwarded
"""

from collections.abc import Sequence

import numpy as np
import torch

from probelib.lm.families import Branches, Ints, Scores, to_device
from probelib.lm.tree import gather_logprobs, to_numpy_checked


def score_plain(hf_model, contexts: list[list[int]], branches: Branches, rows: int = 16) -> Scores:
    """Arguments and results as in ``tree.score_tree``; ``rows`` sequences per forward."""
    starts = [len(contexts[c]) - 1 for c, _ in branches]  # what predicts the first token
    order = sorted(range(len(branches)), key=lambda b: (starts[b] + len(branches[b][1]), b))
    logprobs, argmax = [np.empty(0)] * len(branches), [np.empty(0)] * len(branches)
    cost = {"forwarded_tokens": 0, "forwards": 0}
    with torch.inference_mode():
        for start in range(0, len(order), rows):
            batch = order[start : start + rows]
            sequences = [[*contexts[branches[b][0]], *branches[b][1][:-1]] for b in batch]
            ids, mask = pad_right(sequences, hf_model.device)
            # [rows, length, vocabulary]
            logits = hf_model(input_ids=ids, attention_mask=mask, use_cache=False).logits
            places = [row * ids.shape[1] + starts[b] for row, b in enumerate(batch)]
            asked = [(at, branches[b][1]) for at, b in zip(places, batch, strict=True)]
            predicted = [(range(at, at + len(tokens)), tokens) for at, tokens in asked]
            for b, scores in zip(batch, gather_branches(logits, predicted), strict=True):
                logprobs[b], argmax[b] = scores
            cost["forwarded_tokens"] += ids.numel()
            cost["forwards"] += 1
    return logprobs, argmax, cost


def gather_branches(logits: torch.Tensor, branches: Sequence[tuple[Ints, Ints]]) -> list[tuple]:
    """Log-probs [L] and arg-max ids [L] of every branch; token -1 gets NaN.

    logits     [rows, length, vocabulary]
    branches   per branch: L positions among the rows * length logits, and the L tokens that they
               predict
    """
    columns = zip(*branches, strict=True)
    positions, tokens = (np.concatenate([*map(np.asarray, column)]) for column in columns)
    distinct, row = np.unique(positions, return_inverse=True)
    picked = gather_logprobs(logits.flatten(0, 1)[to_device(distinct, logits.device)], row, tokens)
    scores, best = to_numpy_checked(*picked)
    cuts = np.cumsum([len(positions) for positions, _ in branches])[:-1]
    return list(zip(np.split(scores, cuts), np.split(best[row], cuts), strict=True))


def pad_right(sequences: list[list[int]], device) -> tuple[torch.Tensor, torch.Tensor]:
    """Ids and mask (1: token), both [rows, longest]. So no family needs position ids."""
    longest = max(map(len, sequences))
    ids = torch.tensor([s + [0] * (longest - len(s)) for s in sequences], device=device)
    mask = torch.tensor([[1] * len(s) + [0] * (longest - len(s)) for s in sequences], device=device)
    return ids, mask
