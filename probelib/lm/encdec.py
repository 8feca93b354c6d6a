"""Scoring with encoder-decoder models (T5, UL2): each prompt is encoded once, its candidates are a tree in the decoder.

The decoder starts from its own start token; candidates have no leading blank and no end token of their own.
"""

import numpy as np
import torch

from probelib.lm.families import additive, decoder_depth_bias
from probelib.lm.plain import pad_right, pick_branch
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
        for batch in _batches(contexts, by_context, budget):
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
            for some in _together(trees, budget):
                rows, own = map(list, zip(*some, strict=True))
                cost["forwarded_tokens"] += decode(
                    model, type(encoded)(states[rows]), mask[rows], own, logprobs, argmax
                )
                cost["forwards"] += 1
    return logprobs, argmax, cost


def _batches(contexts, by_context, budget: int):
    """Prompts of similar length and tree size, at most ``budget`` encoder tokens together."""
    order = sorted(by_context, key=lambda c: (len(by_context[c]), len(contexts[c]), contexts[c]))
    batch, longest = [], 0
    for context in order:
        longest = max(longest, len(contexts[context]))
        if batch and longest * (len(batch) + 1) > budget:
            yield batch
            batch, longest = [], len(contexts[context])
        batch.append(context)
    if batch:
        yield batch


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


def _together(trees: list[tuple[int, list]], budget: int):
    """Lists of trees that are decoded in one forward."""
    some, longest = [], 0
    for row, own in trees:
        size = 1 + sum(len(tokens) for _, tokens in own)
        if some and max(longest, size) * (len(some) + 1) > TOGETHER * budget:
            yield some
            some, longest = [], 0
        some.append((row, own))
        longest = max(longest, size)
    yield some


def _decode_trees(model, encoded, mask, rows: list[list[tuple[int, tuple[int, ...]]]], logprobs, argmax) -> int:
    """One decoder row a prompt, holding the tree of its candidates; returns the decoder tokens forwarded."""
    start = model.config.decoder_start_token_id
    trees, places = [], []
    for row in rows:
        tree = Tree()
        root, paths = tree.step(0, start), []
        for _, tokens in row:
            path = [root]
            for token in tokens[:-1]:
                path.append(tree.step(path[-1], token))
            paths.append(path)
        trees.append(tree)
        places.append(paths)
    ids, real = pad_right([tree.token[1:] for tree in trees], model.device)  # node n stands at n - 1
    depth = torch.tensor(
        [tree.depth[1:] + [0] * (ids.shape[1] - len(tree.token) + 1) for tree in trees], device=model.device
    )
    sees = np.zeros((len(rows), ids.shape[1], ids.shape[1]), dtype=bool)
    for r, tree in enumerate(trees):
        for node in range(1, len(tree.token)):
            if (parent := tree.parent[node]) > 0:
                sees[r, node - 1] = sees[r, parent - 1]
            sees[r, node - 1, node - 1] = True
        sees[r, len(tree.token) - 1 :, 0] = True  # padding sees something
    with decoder_depth_bias(model, depth):
        logits = model(
            encoder_outputs=encoded,
            attention_mask=mask,
            decoder_input_ids=ids,
            use_cache=False,
            decoder_attention_mask=additive(torch.from_numpy(sees).to(model.device), model.dtype)[:, None],
        ).logits
    for r, row in enumerate(rows):
        for (b, tokens), path in zip(row, places[r], strict=True):
            logprobs[b], argmax[b] = pick_branch(logits[r, [node - 1 for node in path]], tokens)
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
        for i, (b, tokens) in enumerate(row):
            logprobs[b], argmax[b] = pick_branch(logits[i, : len(tokens)], tokens)
        tokens_forwarded += int(real.sum())
    return tokens_forwarded
