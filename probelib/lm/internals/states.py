"""``hidden_states``: hidden states at the last token of a text, for judges that read them (GraphEval)."""

import copy

import numpy as np
import torch
from torch.nn.utils.rnn import pad_sequence

from probelib.errors import ProbeError, texts_of
from probelib.lm.families import layer_states
from probelib.lm.internals.masked import needs_generator
from probelib.lm.names import IN_CHAT
from probelib.lm.plain import pad_right
from probelib.lm.tokens import check_length
from probelib.lm.tree import Tree, forward_tree

PADDED = 8  # tokens per padded batch, in budgets, without the prefix
KEYS = 64  # keys in the cache of a batch, in budgets, with the prefix; on a GPU at most a quarter of the free memory


def hidden_states(
    model,
    texts: list[str],
    prefix: str = "",
    layer: int = -1,
    soft_prompt: torch.Tensor | None = None,
    share: bool = True,
):
    """Return the last-token states [texts, width] as a float32 array, and the counts of forwarded tokens and forwards.

    texts         each is read after ``prefix``; prefix and text are tokenized separately (an instruction that ends in a
                  line break, say)
    prefix        text before all of them; forwarded once
    layer         0 = embeddings, 1.. = after each layer, -1 = last layer, after the final norm
    soft_prompt   [virtual tokens, width] trained embeddings before everything else; forwarded once
    share         True: common beginnings of texts are forwarded once (the tree). False: padded batches after the prefix,
                  faster for very narrow models, whose forwards take less time than the masks of a tree

    An encoder-decoder model returns its encoder's states at the last token of the text.
    """
    needs_generator(model, "a state after the last token")  # its states are those of whole texts
    if model.in_chat:
        raise ProbeError(
            f"{model.name}: states are those of texts without a chat template; name the model without {IN_CHAT}"
        )
    texts = texts_of("texts", [texts] if isinstance(texts, str) else texts)
    if not texts:
        width = model.hf_model.get_input_embeddings().weight.shape[1]
        return np.empty((0, width), dtype=np.float32), {"forwarded_tokens": 0, "forwards": 0}
    before = [*model.tokens.start, *model.tokens.encode([prefix])[0]]
    ids = model.tokens.encode(texts)
    sequences = [before + i for i in ids]
    for text, sequence in zip(texts, sequences, strict=True):
        if not sequence:
            raise ProbeError(f"the text {text!r} has no token, so there is no last token to read")
        check_length(model, text, len(sequence) + (0 if soft_prompt is None else len(soft_prompt)))
    if model.encoder_decoder or model.choose_path() != "tree":
        return model.retry_on_oom(
            lambda budget: _plain_states(
                model, sequences, layer, soft_prompt, 1 if model.path == "alone" else model.rows(16, budget)
            )
        )
    if not share and all(ids):
        return model.retry_on_oom(lambda budget: _padded_states(model, before, ids, layer, soft_prompt, budget))
    return model.retry_on_oom(lambda budget: _tree_states(model, sequences, layer, soft_prompt, budget))


def _tree_states(model, sequences: list[list[int]], layer: int, soft_prompt, budget: int) -> tuple[np.ndarray, dict]:
    """States at the ends of the sequences, which form one prefix tree after the soft prompt."""
    from transformers import DynamicCache

    hf_model, cache = model.hf_model, DynamicCache()
    if soft_prompt is not None and len(soft_prompt):
        with torch.inference_mode():
            embedded = soft_prompt.to(hf_model.device, hf_model.dtype)[None]
            hf_model(inputs_embeds=embedded, past_key_values=cache, use_cache=True, logits_to_keep=1)
    tree, states = Tree(sequences), []
    ends, state = np.unique(tree.ends, return_inverse=True)

    def read(hidden: torch.Tensor, nodes: np.ndarray) -> None:
        states.append(hidden.float().cpu().numpy())

    cost = forward_tree(hf_model, tree, ends, budget, read, layer, cache)
    return np.concatenate(states)[state], cost


def _padded_states(
    model, before: list[int], ids: list[list[int]], layer: int, soft_prompt, budget: int
) -> tuple[np.ndarray, dict]:
    """States from right-padded batches of similar length after one cached prefix, without the head. No mask is needed:
    padding comes after the last token, and no token attends to later ones."""
    hf_model, device = model.hf_model, model.device
    states, cost = [None] * len(ids), {"forwarded_tokens": len(before), "forwards": 0}
    body = hf_model.base_model
    with torch.inference_mode():
        cache = _prefix_cache(model, body, before, soft_prompt)
        past = cache.get_seq_length()
        for batch in _batches([len(i) for i in ids], PADDED * budget, past, _most_keys(model, cache, budget)):
            rows = [torch.tensor(ids[i]) for i in batch]
            padded = pad_sequence(rows, batch_first=True).to(device)  # [rows, length]
            ends = torch.tensor([len(row) - 1 for row in rows], device=device)
            output = body(
                input_ids=padded,
                past_key_values=_repeated(cache, len(batch)),
                use_cache=bool(past),
                output_hidden_states=layer != -1,
            )
            hidden = output.last_hidden_state if layer == -1 else layer_states(output, layer)  # [rows, length, width]
            last = hidden[torch.arange(len(batch), device=device), ends].float().cpu().numpy()
            for i, state in zip(batch, last, strict=True):
                states[i] = state
            cost["forwarded_tokens"] += padded.numel()
            cost["forwards"] += 1
    return np.stack(states), cost


def _batches(lengths: list[int], tokens: int, past: int = 0, keys: float = np.inf) -> list[list[int]]:
    """Indices of rows sorted by length, in batches of at most ``tokens`` padded tokens and ``keys`` keys (each row has
    ``past`` cached ones)."""
    order, batches = np.argsort(lengths, kind="stable"), [[]]
    for i in order.tolist():
        rows = len(batches[-1]) + 1
        if batches[-1] and (rows * lengths[i] > tokens or rows * (past + lengths[i]) > keys):
            batches.append([])
        batches[-1].append(i)
    return batches if len(lengths) else []


def _most_keys(model, cache, budget: int) -> int:
    """Most keys in the cache of a batch."""
    if model.device.type == "cpu" or not cache.get_seq_length():
        return KEYS * budget
    per_key = sum(layer.keys.nbytes + layer.values.nbytes for layer in cache.layers) // cache.get_seq_length()
    unused = torch.cuda.memory_reserved(model.device) - torch.cuda.memory_allocated(model.device)  # kept by torch
    return min(KEYS * budget, (torch.cuda.mem_get_info(model.device)[0] + unused) // 4 // per_key)


def _prefix_cache(model, body, before: list[int], soft_prompt):
    """Keys and values [1, heads, virtual + prefix, width] of what precedes all texts; empty if nothing does."""
    from transformers import DynamicCache

    cache = DynamicCache()
    ids = torch.tensor([before], dtype=torch.long, device=model.device)
    embedded = model.hf_model.get_input_embeddings()(ids)
    if soft_prompt is not None:
        embedded = torch.cat([soft_prompt.to(model.device, embedded.dtype)[None], embedded], 1)
    if embedded.shape[1]:
        body(inputs_embeds=embedded, past_key_values=cache, use_cache=True)
    return cache


def _repeated(cache, rows: int):
    """A copy of the prefix's cache with one row per text of a batch; None if it is empty."""
    if not cache.get_seq_length():
        return None
    cache = copy.deepcopy(cache)
    cache.batch_repeat_interleave(rows)
    return cache


def _plain_states(model, sequences: list[list[int]], layer: int, soft_prompt, rows: int) -> tuple[np.ndarray, dict]:
    """The reference: one right-padded row per sequence, sorted by length. For encoder-decoder models the encoder's states
    (it attends in both directions, so nothing can be shared)."""
    if model.encoder_decoder and soft_prompt is not None:
        raise ProbeError(f"{model.name} is an encoder-decoder model; soft prompts are for decoder-only models")
    states, cost = [None] * len(sequences), {"forwarded_tokens": 0, "forwards": 0}
    order = sorted(range(len(sequences)), key=lambda i: len(sequences[i]))
    body = model.hf_model.get_encoder() if model.encoder_decoder else model.hf_model
    with torch.inference_mode():
        for start in range(0, len(order), rows):
            batch = order[start : start + rows]
            ids, mask = pad_right([sequences[i] for i in batch], model.device)
            inputs = {"input_ids": ids}
            if soft_prompt is not None:
                embedded = model.hf_model.get_input_embeddings()(ids)  # [rows, length, width]
                soft = soft_prompt.to(model.device, embedded.dtype)[None].expand(len(batch), -1, -1)
                inputs = {"inputs_embeds": torch.cat([soft, embedded], 1)}
                mask = torch.cat([mask.new_ones(soft.shape[:2]), mask], 1)
            hidden = layer_states(body(**inputs, attention_mask=mask, output_hidden_states=True), layer)
            last = hidden[torch.arange(len(batch)), mask.sum(1) - 1].float().cpu().numpy()
            for i, state in zip(batch, last, strict=True):
                states[i] = state
            cost["forwarded_tokens"] += mask.numel()
            cost["forwards"] += 1
    return np.stack(states), cost


def word_logits(model, states: np.ndarray, words: list[str]) -> np.ndarray:
    """Next-token logits [texts, words] from last-layer states: per word the largest logit of its first tokens, with and
    without a leading blank (GraphEval's "last-token logits", default D8). Compare logits of one state only."""
    first = [sorted({model.tokens.continuation(form)[0] for form in (word, f" {word}")}) for word in words]
    head = model.hf_model.get_output_embeddings()

    def logits(budget: int) -> np.ndarray:
        parts = torch.from_numpy(states).to(model.device, model.hf_model.dtype).split(budget)
        return np.concatenate([_largest(head(part).float(), first) for part in parts])

    with torch.inference_mode():
        return model.retry_on_oom(logits)


def _largest(logits: torch.Tensor, groups: list[list[int]]) -> np.ndarray:
    """[texts, vocabulary] -> [texts, groups]: the largest logit of each group of tokens."""
    return torch.stack([logits[:, ids].amax(1) for ids in groups], 1).cpu().numpy()
