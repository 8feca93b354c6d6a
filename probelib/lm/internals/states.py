"""``hidden_states``: states at the last token of a text, for judges that read them (GraphEval)."""

import numpy as np
import torch

from probelib.errors import ProbeError, texts_of
from probelib.lm.families import layer_states, state_name
from probelib.lm.internals.hf_model import retry_on_oom
from probelib.lm.plain import pad_right
from probelib.lm.tokens import check_length
from probelib.lm.tree import Tree, forward_tree


def hidden_states(model, texts: list[str], prefix="", layer=-1, soft_prompt=None) -> tuple:
    """Return the last-token states [texts, width] (float32), and forwarded tokens and forwards.

    texts         read as they are, without the model's format; each after ``prefix``
    prefix        text before all of them, tokenized alone and forwarded once
    layer         0 = embeddings, 1.. = after each layer, -1 = last layer, after the final norm
    soft_prompt   [virtual tokens, width] trained embeddings before everything else

    An encoder-decoder returns its encoder's states. Soft prompts need a model on the tree.
    """
    model.needs_generator("a state after the last token")
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
    sequences = [before + own for own in model.tokens.behind(texts)]
    virtual = 0 if soft_prompt is None else len(soft_prompt)
    for text, ids in zip(texts, sequences, strict=True):
        if not ids:
            raise ProbeError(f"the text {text!r} has no token, so there is no last token to read")
        check_length(model, text, virtual + len(ids))

    packed = lambda budget: _tree_states(model.hf_model, sequences, layer, soft_prompt, budget)
    plain = lambda budget: _plain_states(model, sequences, layer, model.rows(16, budget))
    return retry_on_oom(model, packed if tree else plain)


@torch.inference_mode()
def _tree_states(hf_model, sequences: list, layer: int, soft_prompt, budget: int):
    """States at the ends of the sequences, which form one prefix tree after the soft prompt."""
    from transformers import DynamicCache

    tree, states, cache = Tree(sequences), [], DynamicCache()
    ends, state = np.unique(tree.ends, return_inverse=True)
    if soft_prompt is not None:  # its keys and values [1, heads, virtual, width] come first
        embedded = soft_prompt.to(hf_model.device, hf_model.dtype)[None]
        hf_model.base_model(inputs_embeds=embedded, use_cache=True, **{state_name(hf_model): cache})
    for hidden, _ in forward_tree(hf_model, tree, ends, budget, layer, cache):
        states.append(hidden.float().cpu().numpy())
    cost = {"forwarded_tokens": len(tree.token), "forwards": -(-len(tree.token) // budget)}
    return np.concatenate(states)[state], cost


@torch.inference_mode()
def _plain_states(model, sequences: list, layer: int, most: int):
    """The reference: one right-padded row per sequence; an encoder attends in both directions."""
    body = model.hf_model.get_encoder() if model.encoder_decoder else model.hf_model
    order = sorted(range(len(sequences)), key=lambda i: len(sequences[i]))
    most = 1 if model.path == "alone" else most
    states, cost = dict[int, np.ndarray](), {"forwarded_tokens": 0, "forwards": 0}
    for batch in (order[start : start + most] for start in range(0, len(order), most)):
        rows, mask = pad_right([sequences[i] for i in batch], model.device)
        output = body(input_ids=rows, attention_mask=mask, output_hidden_states=True)
        hidden = layer_states(output, layer)  # [rows, length, width]
        every = torch.arange(len(batch), device=mask.device)
        last = hidden[every, mask.sum(1) - 1].float().cpu().numpy()
        states |= dict(zip(batch, last, strict=True))
        cost["forwarded_tokens"] += rows.numel()
        cost["forwards"] += 1
    return np.stack([states[i] for i in range(len(sequences))]), cost


@torch.inference_mode()
def word_logits(model, states: np.ndarray, words: list[str]) -> np.ndarray:
    """Next-token logits [texts, words] from last-layer states: per word the largest logit of its
    first tokens, with and without a leading blank (GraphEval's "last-token logits").
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
