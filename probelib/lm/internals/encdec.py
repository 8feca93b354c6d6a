"""Encoder-decoder models (T5, UL2): each prompt is encoded once, and every candidate is a row of
the decoder, behind its start token. Candidates have no leading blank and no end token."""

import numpy as np
import torch

from probelib.lm.families import Branches, Scores
from probelib.lm.plain import gather_branches, pad_right

ROWS = 8  # decoder rows per forward, in rows of the encoder


@torch.inference_mode()
def score_encdec(hf_model, contexts: list[list[int]], branches: Branches, rows: int) -> Scores:
    """Arguments and results as in ``tree.score_tree``; contexts are encoder ids. ``rows``: prompts
    that are encoded together (1: also their candidates come one by one)."""
    start, most = hf_model.config.decoder_start_token_id, 1 if rows == 1 else ROWS * rows
    logprobs, argmax = [np.empty(0)] * len(branches), [np.empty(0)] * len(branches)
    cost = {"forwarded_tokens": 0, "forwards": 0}
    by_context: dict[int, list[int]] = {}
    for b, (context, _) in enumerate(branches):
        by_context.setdefault(context, []).append(b)
    asked = sorted(by_context, key=lambda c: (len(contexts[c]), contexts[c]))
    for batch in (asked[i : i + rows] for i in range(0, len(asked), rows)):
        ids, mask = pad_right([contexts[c] for c in batch], hf_model.device)
        # [prompts, length, width]
        encoded = hf_model.get_encoder()(input_ids=ids, attention_mask=mask)
        cost["forwarded_tokens"] += int(mask.sum())
        cost["forwards"] += 1
        own = [(len(branches[b][1]), b, row) for row, c in enumerate(batch) for b in by_context[c]]
        own.sort()
        for part in (own[i : i + most] for i in range(0, len(own), most)):
            _, some, row = map(list, zip(*part, strict=True))
            states = type(encoded)(encoded.last_hidden_state[row])
            read, real = pad_right([[start, *branches[b][1][:-1]] for b in some], hf_model.device)
            inputs = {"encoder_outputs": states, "attention_mask": mask[row]}
            logits = hf_model(**inputs, decoder_input_ids=read, use_cache=False).logits
            at = [n * read.shape[1] + np.arange(len(branches[b][1])) for n, b in enumerate(some)]
            predicted = [(places, branches[b][1]) for places, b in zip(at, some, strict=True)]
            for b, scores in zip(some, gather_branches(logits, predicted), strict=True):
                logprobs[b], argmax[b] = scores
            cost["forwarded_tokens"] += int(real.sum())
            cost["forwards"] += 1
    return logprobs, argmax, cost
