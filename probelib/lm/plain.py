"""The plain path: one padded sequence a row, no cache, no tree. The reference that the fast path is held against, and
the fallback for architectures whose packed rows do not agree with it.

Which logit belongs to which token (prompt of 3 tokens, continuation of 2):

    row forwarded      p0    p1    p2    c0
    its logits          |     |     |     |
    they predict       p1    p2   [c0]  [c1]      the last token, c1, is predicted and never forwarded
"""

from collections.abc import Sequence

import numpy as np
import torch

from probelib.lm.families import sent
from probelib.lm.tree import pick, settled


def score_plain(
    model, contexts: list[list[int]], branches: list[tuple[int, tuple[int, ...]]], rows: int = 16
) -> tuple[list[np.ndarray], list[np.ndarray], dict]:
    """The same question and answer as ``tree.score_tree``; ``rows`` sequences a forward, sorted by length."""
    order = sorted(range(len(branches)), key=lambda b: (len(contexts[branches[b][0]]) + len(branches[b][1]), b))
    logprobs, argmax = [None] * len(branches), [None] * len(branches)
    cost = {"forwarded_tokens": 0, "forwards": 0}
    with torch.inference_mode():
        for start in range(0, len(order), rows):
            batch = order[start : start + rows]
            sequences = [[*contexts[branches[b][0]], *branches[b][1][:-1]] for b in batch]
            ids, mask = pad_right(sequences, model.device)
            logits = model(input_ids=ids, attention_mask=mask, use_cache=False).logits  # [rows, length, vocabulary]
            first = [row * ids.shape[1] + len(contexts[branches[b][0]]) - 1 for row, b in enumerate(batch)]
            own = [(range(at, at + len(branches[b][1])), branches[b][1]) for at, b in zip(first, batch, strict=True)]
            for b, found in zip(batch, pick_branches(logits, own), strict=True):
                logprobs[b], argmax[b] = found
            cost["forwarded_tokens"] += ids.numel()
            cost["forwards"] += 1
    return logprobs, argmax, cost


def pick_branches(logits: torch.Tensor, branches: list[tuple[Sequence[int], Sequence[int]]]) -> list[tuple]:
    """Log-probs [L] and arg-max ids [L] of every branch; token -1 gets NaN.

    logits     [rows, length, vocabulary]
    branches   (places [L] among the rows * length logits, tokens [L] that they predict)
    """
    at, tokens = (np.concatenate([*map(np.asarray, column)]) for column in zip(*branches, strict=True))
    places, row = np.unique(at, return_inverse=True)
    scores, best = settled(*pick(logits.flatten(0, 1)[sent(places, logits.device)], row, tokens))
    cuts = np.cumsum([len(own) for own, _ in branches])[:-1]
    return list(zip(np.split(scores, cuts), np.split(best[row], cuts), strict=True))


def pad_right(sequences: list[list[int]], device) -> tuple[torch.Tensor, torch.Tensor]:
    """Ids [rows, longest] and their mask (1 = real). Right padding needs no position ids in any family."""
    longest = max(map(len, sequences))
    ids = torch.tensor([s + [0] * (longest - len(s)) for s in sequences], device=device)
    mask = torch.tensor([[1] * len(s) + [0] * (longest - len(s)) for s in sequences], device=device)
    return ids, mask
