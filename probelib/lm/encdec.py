"""Scoring with encoder-decoder models (T5, UL2): each prompt is encoded once, its candidates are a tree in the decoder.

The decoder starts from its own start token; candidates have no leading blank and no end token of their own.
"""

from itertools import accumulate

import numpy as np
import torch

from probelib.lm.families import additive, decoder_depth_bias
from probelib.lm.plain import pad_right, pick_branches
from probelib.lm.tree import Tree

TREE, TOGETHER = 2, 8  # most decoder tokens of one tree, and of all trees of a forward, in budgets


def score_encdec(
    model, contexts: list[list[int]], branches: list[tuple[int, tuple[int, ...]]], budget: int, plain: bool = False
) -> tuple[list[np.ndarray], list[np.ndarray], dict]:
    """As ``tree.score_tree``; contexts are encoder ids. ``plain``: one decoder row a branch instead of a tree a prompt."""
    by_context: dict[int, list[int]] = {}
    for b, (context, _) in enumerate(branches):
        by_context.setdefault(context, []).append(b)
    logprobs, argmax = [None] * len(branches), [None] * len(branches)
    cost = {"forwarded_tokens": 0, "forwards": 0}
    with torch.inference_mode():
        # prompts of similar length and tree size
        order = sorted(by_context, key=lambda c: (len(by_context[c]), len(contexts[c]), contexts[c]))
        for rows in _padded([len(contexts[c]) for c in order], budget):
            batch = [order[i] for i in rows]
            ids, mask = pad_right([contexts[c] for c in batch], model.device)
            encoded = model.get_encoder()(input_ids=ids, attention_mask=mask)
            states = encoded.last_hidden_state  # [rows, length, width]
            cost["forwarded_tokens"] += int(mask.sum())
            cost["forwards"] += 1
            decode = _decode_plain if plain else _decode_trees
            trees = [
                (row, own)
                for row, c in enumerate(batch)
                for own in _split([(b, branches[b][1]) for b in by_context[c]], budget)
            ]
            sizes = [1 + sum(len(tokens) for _, tokens in own) for _, own in trees]
            for some in _padded(sizes, TOGETHER * budget):
                rows, own = map(list, zip(*(trees[i] for i in some), strict=True))
                cost["forwarded_tokens"] += decode(
                    model, type(encoded)(states[rows]), mask[rows], own, logprobs, argmax
                )
                cost["forwards"] += 1
    return logprobs, argmax, cost


def _padded(lengths: list[int], most: int) -> list[list[int]]:
    """Rows in their order, cut into batches of at most ``most`` padded tokens, one row at least."""
    batches, longest = [], 0
    for i, length in enumerate(lengths):
        longest = max(longest, length)
        if not batches or longest * (len(batches[-1]) + 1) > most:
            batches.append([])
            longest = length
        batches[-1].append(i)
    return batches


def _split(branches: list[tuple[int, tuple[int, ...]]], budget: int) -> list[list[tuple[int, tuple[int, ...]]]]:
    """The branches of a prompt in groups of at most ``TREE`` budgets of tokens, for a tree's mask grows with its square; such as
    begin alike stay together."""
    if sum(len(tokens) for _, tokens in branches) <= TREE * budget:
        return [branches]
    groups, size = [], TREE * budget
    for branch in sorted(branches, key=lambda branch: branch[1]):
        if size + len(branch[1]) > TREE * budget:
            groups.append([])
            size = 0
        groups[-1].append(branch)
        size += len(branch[1])
    return groups


def _decode_trees(model, encoded, mask, rows: list[list[tuple[int, tuple[int, ...]]]], logprobs, argmax) -> int:
    """One decoder row a prompt, holding the tree of its candidates; returns the decoder tokens forwarded."""
    trees, paths = [], []
    for row in rows:
        tree = Tree()
        root = tree.step(0, model.config.decoder_start_token_id)
        paths.append([list(accumulate(tokens[:-1], tree.step, initial=root)) for _, tokens in row])
        trees.append(tree)
    ids, real = pad_right([tree.token[1:] for tree in trees], model.device)  # node n stands at n - 1
    depth, _ = pad_right([tree.depth[1:] for tree in trees], model.device)
    sees = np.zeros((*ids.shape, ids.shape[1]), dtype=bool)
    sees[..., 0] = True  # the root; so padding sees something, too
    for own, tree in zip(sees, trees, strict=True):
        place, end = (x[1:] for x in tree.places())
        own[: len(place), : len(place)] = (place <= place[:, None]) & (place[:, None] < end)
    with decoder_depth_bias(model, depth):
        logits = model(
            encoder_outputs=encoded,
            attention_mask=mask,
            decoder_input_ids=ids,
            use_cache=False,
            decoder_attention_mask=additive(torch.from_numpy(sees).to(model.device), model.dtype)[:, None],
        ).logits
    own = [
        (r * ids.shape[1] - 1 + np.array(path), tokens)
        for r, row in enumerate(rows)
        for path, (_, tokens) in zip(paths[r], row, strict=True)
    ]
    for (b, _), found in zip([pair for row in rows for pair in row], pick_branches(logits, own), strict=True):
        logprobs[b], argmax[b] = found
    return int(real.sum())


def _decode_plain(model, encoded, mask, rows, logprobs, argmax) -> int:
    """One decoder row a branch: the reference."""
    start, tokens_forwarded = model.config.decoder_start_token_id, 0
    for r, row in enumerate(rows):
        ids, real = pad_right([[start, *tokens[:-1]] for _, tokens in row], model.device)
        own = encoded.last_hidden_state[r : r + 1].expand(len(row), -1, -1)
        logits = model(
            encoder_outputs=type(encoded)(own),
            attention_mask=mask[r : r + 1].expand(len(row), -1),
            decoder_input_ids=ids,
            use_cache=False,
        ).logits
        own = [(i * ids.shape[1] + np.arange(len(tokens)), tokens) for i, (_, tokens) in enumerate(row)]
        for (b, _), found in zip(row, pick_branches(logits, own), strict=True):
            logprobs[b], argmax[b] = found
        tokens_forwarded += int(real.sum())
    return tokens_forwarded
