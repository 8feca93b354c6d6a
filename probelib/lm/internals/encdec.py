"""Encoder-decoder models (T5, UL2): each prompt is encoded once; its candidates form a tree in the
decoder, behind its start token. They have no leading blank and no end token."""

from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import groupby
from operator import itemgetter
from unittest import mock

import numpy as np
import torch

from probelib.lm.families import Scores, additive_mask
from probelib.lm.plain import gather_branches, pad_right
from probelib.lm.tree import Tree

TREE, TOGETHER = 2, 8  # most decoder tokens per tree, and per forward, in budgets

Branches = list[tuple[int, tuple[int, ...]]]  # (number of the branch, its tokens)


@torch.inference_mode()
def score_encdec(
    hf_model, contexts: list[list[int]], branches: Branches, budget: int, rows: int | None = None
) -> Scores:
    """Arguments and results as in ``tree.score_tree``; contexts are encoder ids. ``rows``: None for
    one tree per prompt; a number for the plain path, one decoder row per branch and at most that
    many rows per forward."""
    by_context: dict[int, Branches] = {}
    for b, (context, tokens) in enumerate(branches):
        by_context.setdefault(context, []).append((b, tokens))
    found: dict[int, tuple] = {}
    cost = {"forwarded_tokens": 0, "forwards": 0}
    decode = _decode_trees if rows is None else partial(_decode_plain, most=rows)
    # prompts of similar length and tree size come together
    order = sorted(by_context, key=lambda c: (len(by_context[c]), len(contexts[c]), contexts[c]))
    for some in _batches([len(contexts[c]) for c in order], 1 if rows == 1 else budget):
        batch = [order[i] for i in some]
        ids, mask = pad_right([contexts[c] for c in batch], hf_model.device)
        encoded = hf_model.get_encoder()(input_ids=ids, attention_mask=mask)
        cost["forwarded_tokens"] += int(mask.sum())
        pieces = [_split(by_context[c], TREE * budget) for c in batch]
        trees = [(r, part) for r, own in enumerate(pieces) for part in own]
        sizes = [1 + sum(len(tokens) for _, tokens in part) for _, part in trees]
        together = _batches(sizes, TOGETHER * budget)
        for some in together:
            row, parts = map(list, zip(*(trees[i] for i in some), strict=True))
            states = type(encoded)(encoded.last_hidden_state[row])  # [rows, length, width]
            scores, forwarded = decode(hf_model, states, mask[row], parts)
            numbers = [b for part in parts for b, _ in part]
            found |= dict(zip(numbers, scores, strict=True))
            cost["forwarded_tokens"] += forwarded
        cost["forwards"] += 1 + len(together)
    logprobs, argmax = zip(*(found[b] for b in range(len(branches))), strict=True)
    return list(logprobs), list(argmax), cost


def _batches(lengths: list[int], most: int) -> list[list[int]]:
    """Indices of rows in their order, in batches of at most ``most`` padded tokens (or one row)."""
    batches: list[list[int]] = []
    longest = 0
    for i, length in enumerate(lengths):
        longest = max(longest, length)
        if not batches or longest * (len(batches[-1]) + 1) > most:
            batches.append([])
            longest = length
        batches[-1].append(i)
    return batches


def _split(branches: Branches, most: int) -> list[Branches]:
    """A prompt's branches in groups of about ``most`` tokens; common beginnings stay together."""
    if sum(len(tokens) for _, tokens in branches) <= most:
        return [branches]
    ordered = sorted(branches, key=itemgetter(1))
    number = np.cumsum([len(tokens) - 1 for _, tokens in ordered]) // most
    groups = groupby(zip(ordered, number, strict=True), key=itemgetter(1))
    return [[branch for branch, _ in group] for _, group in groups]


def _decode_trees(hf_model, encoded, mask, rows: list[Branches]) -> tuple[list[tuple], int]:
    """One decoder row per prompt, which holds the tree of its candidates."""
    start, device = hf_model.config.decoder_start_token_id, hf_model.device
    made = [Tree([[start]], [(0, tokens) for _, tokens in row]) for row in rows]
    first = [np.unique(np.append(0, t.predicting), return_index=True)[1] for t in made]
    trees = [(tree, np.argsort(needed)) for tree, needed in zip(made, first, strict=True)]
    ids, real = pad_right([tree.token[nodes].tolist() for tree, nodes in trees], device)
    depth, _ = pad_right([tree.depth[nodes].tolist() for tree, nodes in trees], device)
    visible, predicted = np.zeros((*ids.shape, ids.shape[1]), dtype=bool), list[tuple]()
    visible[..., 0] = True  # the root; so padding attends to something
    for r, (row, (tree, nodes)) in enumerate(zip(rows, trees, strict=True)):
        below = (nodes <= nodes[:, None]) & (nodes[:, None] < tree.end[nodes])
        visible[r, : len(nodes), : len(nodes)] = below
        place = r * ids.shape[1] + np.argsort(nodes)  # of each node
        predicted += zip(tree.by_branch(place[tree.predicting]), (t for _, t in row), strict=True)
    tree_mask = additive_mask(torch.from_numpy(visible).to(device), hf_model.dtype)[:, None]
    inputs = {"encoder_outputs": encoded, "attention_mask": mask, "decoder_input_ids": ids}
    with decoder_depth_bias(hf_model, depth):
        output = hf_model(**inputs, use_cache=False, decoder_attention_mask=tree_mask)
    return gather_branches(output.logits, predicted), int(real.sum())


def _decode_plain(hf_model, encoded, mask, rows: list[Branches], most: int) -> tuple[list, int]:
    """One decoder row per branch, at most ``most`` of one prompt per forward: the reference."""
    start, scores, forwarded = hf_model.config.decoder_start_token_id, [], 0
    for r, row in enumerate(rows):
        for some in (row[i : i + most] for i in range(0, len(row), most)):
            ids, real = pad_right([[start, *tokens[:-1]] for _, tokens in some], hf_model.device)
            states = encoded.last_hidden_state[r : r + 1].expand(len(some), -1, -1)
            inputs = {"encoder_outputs": type(encoded)(states), "decoder_input_ids": ids}
            inputs["attention_mask"] = mask[r : r + 1].expand(len(some), -1)
            logits = hf_model(**inputs, use_cache=False).logits
            asked = [tokens for _, tokens in some]
            at = [n * ids.shape[1] + np.arange(len(tokens)) for n, tokens in enumerate(asked)]
            scores += gather_branches(logits, list(zip(at, asked, strict=True)))
            forwarded += int(real.sum())
    return scores, forwarded


@contextmanager
def decoder_depth_bias(hf_model, depth: torch.Tensor):
    """Context manager: T5's relative position bias by depth [rows, q], for rows of trees."""
    relative = depth[:, None, :] - depth[:, :, None]  # [rows, q, k] key - query

    def by_depth(attention, *_, **__):
        options = {"num_buckets": attention.relative_attention_num_buckets, "bidirectional": False}
        options["max_distance"] = attention.relative_attention_max_distance
        bucket = attention._relative_position_bucket(relative, **options)
        return attention.relative_attention_bias(bucket).permute(0, 3, 1, 2)  # [rows, heads, q, k]

    with ExitStack() as stack:
        for block in hf_model.get_decoder().block:
            if (attention := block.layer[0].SelfAttention).has_relative_attention_bias:
                bias = partial(by_depth, attention)
                stack.enter_context(mock.patch.object(attention, "compute_bias", bias))
        yield
