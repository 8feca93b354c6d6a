"""``hidden_states``: states at the last token of a text, for judges that read them (GraphEval)."""

import copy

import numpy as np
import torch

from probelib.errors import ProbeError, texts_of
from probelib.lm.families import layer_states
from probelib.lm.internals.forwards import retry_on_oom
from probelib.lm.internals.masked import needs_generator
from probelib.lm.plain import pad_right
from probelib.lm.tokens import check_length
from probelib.lm.tree import Tree, forward_tree

PADDED = 8  # tokens per padded batch, in budgets, without the prefix
KEYS = 64  # keys in the cache of a batch, in budgets, with the prefix


def hidden_states(
    model, texts: list[str], prefix: str = "", layer: int = -1, soft_prompt=None, share: bool = True
) -> tuple[np.ndarray, dict]:
    """Return the last-token states [texts, width] (float32), and forwarded tokens and forwards.

    texts         read as they are, without the model's format; each after ``prefix``
    prefix        text before all of them, tokenized alone and forwarded once
    layer         0 = embeddings, 1.. = after each layer, -1 = last layer, after the final norm
    soft_prompt   [virtual tokens, width] trained embeddings before everything else
    share         True: common beginnings of texts are forwarded once (the tree). False: padded
                  batches after the prefix, faster for very narrow models

    An encoder-decoder returns its encoder's states. Soft prompts need a model on the tree.
    """
    needs_generator(model, "a state after the last token")
    tree = not model.encoder_decoder and model.choose_path() == "tree"
    if soft_prompt is not None and not tree:
        raise ProbeError(f"{model.name} is not scored on the tree, and so takes no soft prompt")
    texts = texts_of("texts", [texts] if isinstance(texts, str) else texts)
    if not texts:
        width = model.hf_model.get_input_embeddings().weight.shape[1]
        return np.empty((0, width), dtype=np.float32), {"forwarded_tokens": 0, "forwards": 0}
    prefix = model.tokens.without_bos(prefix)
    texts = texts if prefix else [model.tokens.without_bos(text) for text in texts]
    before = [*model.tokens.start, *model.tokens.encode([prefix])[0]]
    ids = model.tokens.behind(texts)
    for text, own in zip(texts, ids, strict=True):
        if not before + own:
            raise ProbeError(f"the text {text!r} has no token, so there is no last token to read")
        virtual = 0 if soft_prompt is None else len(soft_prompt)
        check_length(model, text, virtual + len(before) + len(own))
    run = _padded_states if not share and all(ids) else _tree_states
    run = run if tree else _plain_states
    return retry_on_oom(model, lambda budget: run(model, before, ids, layer, soft_prompt, budget))


@torch.inference_mode()
def _tree_states(model, before: list[int], ids: list, layer: int, soft_prompt, budget: int):
    """States at the ends of the sequences, which form one prefix tree after the soft prompt."""
    tree, states = Tree([before + own for own in ids]), []
    ends, state = np.unique(tree.ends, return_inverse=True)
    cache = _prefix_cache(model, [], soft_prompt)
    read = lambda hidden, _: states.append(hidden.float().cpu().numpy())
    cost = forward_tree(model.hf_model, tree, ends, budget, read, layer, cache)
    return np.concatenate(states)[state], cost


@torch.inference_mode()
def _padded_states(model, before: list[int], ids: list, layer: int, soft_prompt, budget: int):
    """States from right-padded batches after one cached prefix; no token attends to padding."""
    prefix = _prefix_cache(model, before, soft_prompt)
    past = prefix.get_seq_length()

    def run(rows: torch.Tensor, _) -> torch.Tensor:
        cache = copy.deepcopy(prefix) if past else None  # one row per text
        if cache is not None:
            cache.batch_repeat_interleave(len(rows))
        options = {"use_cache": bool(past), "output_hidden_states": layer != -1}
        output = model.hf_model.base_model(input_ids=rows, past_key_values=cache, **options)
        return output.last_hidden_state if layer == -1 else layer_states(output, layer)

    batches: list[list[int]] = [[]]
    for i in np.argsort([len(own) for own in ids], kind="stable").tolist():
        rows, length = len(batches[-1]) + 1, len(ids[i])
        full = rows * length > PADDED * budget or rows * (past + length) > KEYS * budget
        if batches[-1] and full:
            batches.append([])
        batches[-1].append(i)
    states, cost = _last_states(model, ids, batches, run)
    return states, cost | {"forwarded_tokens": cost["forwarded_tokens"] + len(before)}


@torch.inference_mode()
def _plain_states(model, before: list[int], ids: list, layer: int, soft_prompt, budget: int):
    """The reference: one right-padded row per sequence; an encoder attends in both directions."""
    body = model.hf_model.get_encoder() if model.encoder_decoder else model.hf_model

    def run(rows: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        output = body(input_ids=rows, attention_mask=mask, output_hidden_states=True)
        return layer_states(output, layer)

    order = sorted(range(len(ids)), key=lambda i: len(ids[i]))
    rows = 1 if model.path == "alone" else model.rows(16, budget)
    batches = [order[start : start + rows] for start in range(0, len(order), rows)]
    return _last_states(model, [before + own for own in ids], batches, run)


def _last_states(model, sequences: list[list[int]], batches: list[list[int]], run):
    """States at the ends of sequences. ``run``: ids, mask -> [rows, length, width]"""
    states, cost = dict[int, np.ndarray](), {"forwarded_tokens": 0, "forwards": len(batches)}
    for batch in batches:
        rows, mask = pad_right([sequences[i] for i in batch], model.device)
        hidden = run(rows, mask)
        every = torch.arange(len(batch), device=mask.device)
        last = hidden[every, mask.sum(1) - 1].float().cpu().numpy()
        states |= dict(zip(batch, last, strict=True))
        cost["forwarded_tokens"] += hidden.shape[0] * hidden.shape[1]
    return np.stack([states[i] for i in range(len(sequences))]), cost


def _prefix_cache(model, before: list[int], soft_prompt):
    """Keys and values [1, heads, virtual + prefix, width] of what precedes all texts."""
    from transformers import DynamicCache

    cache, ids = DynamicCache(), torch.tensor([before], dtype=torch.long, device=model.device)
    embedded = model.hf_model.get_input_embeddings()(ids)
    if soft_prompt is not None:
        embedded = torch.cat([soft_prompt.to(embedded)[None], embedded], 1)
    if embedded.shape[1]:
        model.hf_model.base_model(inputs_embeds=embedded, past_key_values=cache, use_cache=True)
    return cache


@torch.inference_mode()
def word_logits(model, states: np.ndarray, words: list[str]) -> np.ndarray:
    """Next-token logits [texts, words] from last-layer states: per word the largest logit of its
    first tokens, with and without a leading blank (GraphEval's "last-token logits", default D8).
    Compare logits of one state only."""
    forms = [(word, f" {word}") for word in words]
    first = [sorted({model.tokens.continuation(form)[0] for form in pair}) for pair in forms]
    head = model.hf_model.get_output_embeddings()

    def logits(budget: int) -> np.ndarray:
        largest = []
        for part in torch.from_numpy(states).to(model.device, model.hf_model.dtype).split(budget):
            every = head(part).float()  # [texts, vocabulary]
            largest.append(torch.stack([every[:, ids].amax(1) for ids in first], 1))
        return torch.cat(largest).cpu().numpy()

    return retry_on_oom(model, logits)
