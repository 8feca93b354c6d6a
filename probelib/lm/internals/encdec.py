"""Optional reading: scoring with encoder-decoder models (T5, UL2). Each prompt is encoded once; its candidates form a
tree in the decoder.

The decoder starts from its start token. Candidates have no leading blank and no end token.
"""

from contextlib import contextmanager
from functools import partial
from inspect import signature

import numpy as np
import torch

from probelib.lm.families import additive_mask
from probelib.lm.plain import gather_branches, pad_right
from probelib.lm.tree import Tree

TREE, TOGETHER = 2, 8  # most decoder tokens per tree, and per forward, in budgets


def score_encdec(
    hf_model,
    contexts: list[list[int]],
    branches: list[tuple[int, tuple[int, ...]]],
    budget: int,
    rows: int | None = None,
) -> tuple[list[np.ndarray], list[np.ndarray], dict]:
    """Arguments and results as in ``tree.score_tree``; contexts are encoder ids. ``rows``: None for one tree per prompt;
    a number for the plain path, one decoder row per branch and at most that many rows per forward."""
    by_context: dict[int, list[int]] = {}
    for b, (context, _) in enumerate(branches):
        by_context.setdefault(context, []).append(b)
    logprobs, argmax = [None] * len(branches), [None] * len(branches)
    cost = {"forwarded_tokens": 0, "forwards": 0}
    decode = _decode_trees if rows is None else partial(_decode_plain, most=rows)
    with torch.inference_mode():
        # prompts of similar length and tree size come together
        order = sorted(by_context, key=lambda c: (len(by_context[c]), len(contexts[c]), contexts[c]))
        for some in _batches([len(contexts[c]) for c in order], 1 if rows == 1 else budget):
            batch = [order[i] for i in some]
            ids, mask = pad_right([contexts[c] for c in batch], hf_model.device)
            encoded = hf_model.get_encoder()(input_ids=ids, attention_mask=mask)
            states = encoded.last_hidden_state  # [rows, length, width]
            cost["forwarded_tokens"] += int(mask.sum())
            cost["forwards"] += 1
            trees = [
                (row, group)
                for row, c in enumerate(batch)
                for group in _split([(b, branches[b][1]) for b in by_context[c]], budget)
            ]
            sizes = [1 + sum(len(tokens) for _, tokens in group) for _, group in trees]
            for some in _batches(sizes, TOGETHER * budget):
                prompts, groups = map(list, zip(*(trees[i] for i in some), strict=True))
                encoder_outputs = type(encoded)(states[prompts])
                cost["forwarded_tokens"] += decode(hf_model, encoder_outputs, mask[prompts], groups, logprobs, argmax)
                cost["forwards"] += 1
    return logprobs, argmax, cost


def _batches(lengths: list[int], most: int) -> list[list[int]]:
    """Indices of rows in their order, cut into batches of at most ``most`` padded tokens and at least one row."""
    batches, longest = [], 0
    for i, length in enumerate(lengths):
        longest = max(longest, length)
        if not batches or longest * (len(batches[-1]) + 1) > most:
            batches.append([])
            longest = length
        batches[-1].append(i)
    return batches


def _split(branches: list[tuple[int, tuple[int, ...]]], budget: int) -> list[list[tuple[int, tuple[int, ...]]]]:
    """The branches of a prompt in groups of at most ``TREE`` budgets of tokens, because a tree's mask grows with the
    square of its size. Branches with a common beginning stay together."""
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


def _decode_trees(hf_model, encoded, mask, rows: list[list[tuple[int, tuple[int, ...]]]], logprobs, argmax) -> int:
    """One decoder row per prompt, holding the tree of its candidates; return the number of decoder tokens."""
    start, device = hf_model.config.decoder_start_token_id, hf_model.device
    trees = [Tree([[start]], [(0, tokens) for _, tokens in row]) for row in rows]
    orders = [_as_needed(tree) for tree in trees]
    ids, real = pad_right([tree.token[nodes].tolist() for tree, nodes in zip(trees, orders, strict=True)], device)
    depth, _ = pad_right([tree.depth[nodes].tolist() for tree, nodes in zip(trees, orders, strict=True)], device)
    visible, predicted = np.zeros((*ids.shape, ids.shape[1]), dtype=bool), []
    visible[..., 0] = True  # the root; so padding attends to something
    for r, (row, tree, nodes) in enumerate(zip(rows, trees, orders, strict=True)):
        visible[r, : len(nodes), : len(nodes)] = (nodes <= nodes[:, None]) & (nodes[:, None] < tree.end[nodes])
        place = r * ids.shape[1] + np.argsort(nodes)  # of each node
        predicted += zip(tree.by_branch(place[tree.predicting]), (tokens for _, tokens in row), strict=True)
    tree_mask = additive_mask(torch.from_numpy(visible).to(device), hf_model.dtype)[:, None]
    with decoder_depth_bias(hf_model, depth):
        logits = hf_model(
            encoder_outputs=encoded,
            attention_mask=mask,
            decoder_input_ids=ids,
            use_cache=False,
            decoder_attention_mask=tree_mask,
        ).logits
    for (b, _), scores in zip([pair for row in rows for pair in row], gather_branches(logits, predicted), strict=True):
        logprobs[b], argmax[b] = scores
    return int(real.sum())


def _as_needed(tree: Tree) -> np.ndarray:
    """The nodes in the order in which the candidates need them."""
    return np.argsort(np.unique(np.append(0, tree.predicting), return_index=True)[1])


def _decode_plain(hf_model, encoded, mask, rows, logprobs, argmax, most: int) -> int:
    """One decoder row per branch, at most ``most`` of one prompt per forward: the reference."""
    start, forwarded = hf_model.config.decoder_start_token_id, 0
    pieces = [(r, row[i : i + most]) for r, row in enumerate(rows) for i in range(0, len(row), most)]
    for r, row in pieces:
        ids, real = pad_right([[start, *tokens[:-1]] for _, tokens in row], hf_model.device)
        states = encoded.last_hidden_state[r : r + 1].expand(len(row), -1, -1)
        logits = hf_model(
            encoder_outputs=type(encoded)(states),
            attention_mask=mask[r : r + 1].expand(len(row), -1),
            decoder_input_ids=ids,
            use_cache=False,
        ).logits
        predicted = [(i * ids.shape[1] + np.arange(len(tokens)), tokens) for i, (_, tokens) in enumerate(row)]
        for (b, _), scores in zip(row, gather_branches(logits, predicted), strict=True):
            logprobs[b], argmax[b] = scores
        forwarded += int(real.sum())
    return forwarded


@contextmanager
def decoder_depth_bias(hf_model, depth: torch.Tensor):
    """Context manager: T5's relative position bias by depth, for decoder rows that hold trees. depth: [rows, q]"""
    relative = depth[:, None, :] - depth[:, :, None]  # [rows, q, k] key - query

    def by_depth(attention):
        def bias(*_, **__):
            options = {
                "bidirectional": False,
                "num_buckets": attention.relative_attention_num_buckets,
                "max_distance": attention.relative_attention_max_distance,
            }
            if "bidirectional" not in signature(attention._relative_position_bucket).parameters:  # UMT5
                options = {}
            bucket = attention._relative_position_bucket(relative, **options)
            return attention.relative_attention_bias(bucket).permute(0, 3, 1, 2)  # [rows, heads, q, k]

        return bias

    attentions = [block.layer[0].SelfAttention for block in hf_model.get_decoder().block]
    biased = [a for a in attentions if a.has_relative_attention_bias]
    for attention in biased:
        attention.compute_bias = by_depth(attention)
    try:
        yield
    finally:
        for attention in biased:
            del attention.compute_bias
