"""Which tokens of a prompt an answer depends on: integrated gradients (Sundararajan et al. 2017) at
the embedding layer.

F(e)       probability of the target token after a prompt with embeddings e  [length, width]
A          (e - b) * mean over steps of dF/de on the straight line from the baseline b to e
sum of A   = F(e) - F(b), up to the error of the numerical integral: ``delta``
"""

from typing import Any

import numpy as np
import pandas as pd
import torch

from probelib.errors import ProbeError
from probelib.lm.internals.hf_model import FORWARD, retry_on_oom
from probelib.lm.tokens import check_length

BATCH = 25  # steps that are forwarded together


def integrated_gradients(model, prompt: str, steps: int = 200) -> pd.DataFrame:
    """Attribution of the probability of the most probable next token to the tokens of the prompt
    (rows), by ``steps`` steps from a baseline in which every token is the mean of all embeddings.

    columns   token, word (index of its blank-separated word; -1: a special token), signed (A summed
              over the width), score (L2 norm of A over the width, as a share of all tokens)
    ``.attrs``  target, target_text, probability (F), baseline_probability, delta: sum of A - (F(e)
                - F(b)), relative_delta: |delta| / |F(e) - F(b)|, which should be below 0.05

    Mixtures of experts never satisfy completeness: their routing is discontinuous. For an
    encoder-decoder the target is its answer's first token, attributed to its encoder's tokens.
    """
    model.needs_generator("a next-token probability")
    from captum.attr import IntegratedGradients

    ids = model.tokens.prompts([prompt])[0]
    check_length(model, prompt, len(ids))
    table = model.hf_model.get_input_embeddings()
    with FORWARD, torch.no_grad():
        embedded = table(torch.tensor([ids], device=model.device)).float()  # [1, length, width]
        every = table(torch.arange(table.num_embeddings, device=model.device)).float()
        start = every.mean(0).expand_as(embedded)
        target = int(_next(model, embedded)[0].argmax())
        after, before = (float(_next(model, e)[0, target]) for e in (embedded, start))
    integral = IntegratedGradients(lambda e: _next(model, e)[:, target])
    options = {"n_steps": steps, "return_convergence_delta": True}
    rows = lambda budget: {"internal_batch_size": model.rows(BATCH, budget)}
    work = lambda budget: integral.attribute(embedded, start, **options, **rows(budget))
    attribution, delta = retry_on_oom(model, work)
    attribution = attribution[0].detach().cpu().double().numpy()  # [length, width]
    if not np.isfinite(attribution).all():
        raise ProbeError(f"{model.name}: gradients are not finite; load it with dtype='float32'")
    norm = np.linalg.norm(attribution, axis=1)
    frame = pd.DataFrame({"token": [model.tokenizer.decode([i]) for i in ids]})
    read = [len(model.tokens.decode(ids[: n + 1]).split()) for n in range(len(ids))]  # words so far
    special = np.isin(ids, model.tokenizer.all_special_ids)
    frame["word"] = np.where(special, -1, np.maximum(read, 1) - 1)
    frame["signed"], frame["score"] = attribution.sum(1), norm / (norm.sum() or 1)
    gained, delta = abs(after - before), float(delta[0])
    frame.attrs |= {
        "target": target,
        "target_text": model.tokens.decode([target]),
        "probability": after,
        "baseline_probability": before,
        "delta": delta,
        "relative_delta": abs(delta) / gained if gained else np.nan,
    }
    return frame


def by_word(frame: pd.DataFrame, prompt: str) -> pd.DataFrame:
    """Tokens summed into the words of the prompt: ``word`` (its text), ``signed``, ``score``.
    Special tokens are left out, and scores are shares of the remaining tokens."""
    words, kept = prompt.split(), frame[frame["word"] >= 0]
    table = kept.groupby("word")[["signed", "score"]].sum()
    table = table.reindex(range(len(words)), fill_value=0.0)
    table = table.assign(word=words, score=table["score"] / table["score"].sum())
    return table[["word", "signed", "score"]]


def _next(model, embedded: torch.Tensor) -> torch.Tensor:
    """Next-token probabilities [rows, vocabulary] after embeddings [rows, length, width]."""
    hf_model, options = model.hf_model, dict[str, Any](use_cache=False)
    if model.encoder_decoder:
        first = hf_model.config.decoder_start_token_id
        options["decoder_input_ids"] = torch.full((len(embedded), 1), first, device=embedded.device)
    output = hf_model(inputs_embeds=embedded.to(hf_model.dtype), **options)
    return output.logits[:, -1].float().softmax(-1)
