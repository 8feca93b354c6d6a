"""Masked language models (BERT, RoBERTa): pseudo-log-likelihood, because they have no left-to-right
probability.

Every token of the continuation is masked in turn, with the later tokens of its word, which would
give it away (Kauf and Ivanova 2023), and the model predicts it from all the others:

    [CLS] the capital is [MASK] [MASK] [SEP]   ->  log P(Par  | ...)      two tokens: "Par" "##is"
    [CLS] the capital is  Par   [MASK] [SEP]   ->  log P(##is | ...)

The sum is no log-probability: it does not sum to one over all texts, and it cannot be compared with
the score of an autoregressive model. The column ``note`` marks its rows.
"""

from collections import defaultdict
from collections.abc import Sequence
from itertools import groupby

import numpy as np
import torch

from probelib.errors import ProbeError
from probelib.lm.families import Branches, Scores
from probelib.lm.plain import gather_branches, pad_right

NOTE = "pseudo-log-likelihood"


def words_of(tokens, text: str | None, ids: tuple[int, ...]) -> Sequence[int]:
    """Per token of a continuation the number of its word, as the tokenizer splits texts."""
    encoding = tokens.tokenizer(text or "", add_special_tokens=False)
    if not encoding.is_fast or tuple(encoding["input_ids"]) != ids:
        raise ProbeError(f"the words of {text!r} are not clear from its tokens; use another label")
    return encoding.word_ids()


@torch.inference_mode()
def score_masked(model, contexts: list[list[int]], branches: Branches, rows: int) -> Scores:
    """Arguments and results as in ``tree.score_tree``, with pseudo-log-likelihoods. Each distinct
    masked row is forwarded once: all candidates of one token share theirs."""
    tokens, mask = model.tokens, model.tokenizer.mask_token_id
    if mask is None:
        raise ProbeError(f"{model.name}: its tokenizer has no mask token (tokenizer.mask_token)")
    tokens.check("a", tokens.finish)
    texts, words = {ids: text for text, ids in tokens.continued.items()}, dict[tuple, Sequence]()
    for each in dict.fromkeys(tuple(ids) for _, ids in branches):
        words[each] = words_of(tokens, texts.get(each), each)
    wanted = defaultdict(list)  # row -> [(branch, token number, position, token)]
    for b, (context, ids) in enumerate(branches):
        word, start = words[tuple(ids)], len(contexts[context])
        for n, token in enumerate(ids):
            later = [mask if word[m] == word[n] else ids[m] for m in range(n + 1, len(ids))]
            row = (*contexts[context], *ids[:n], mask, *later, *tokens.finish)
            wanted[row].append((b, n, start + n, token))
    logprobs = [np.empty(len(ids), dtype=np.float32) for _, ids in branches]
    argmax = [np.empty(len(ids), dtype=np.int64) for _, ids in branches]
    cost = {"forwarded_tokens": 0, "forwards": 0}
    # equal lengths: some families (FNet) let padding change a score
    for length, same in groupby(sorted(wanted, key=lambda row: (len(row), row)), key=len):
        group = list(same)
        for batch in (group[i : i + rows] for i in range(0, len(group), rows)):
            padded, ones = pad_right([list(row) for row in batch], model.hf_model.device)
            logits = model.hf_model(input_ids=padded, attention_mask=ones).logits
            at = [(r * length, *each) for r, row in enumerate(batch) for each in wanted[row]]
            asked = [([r + place], [token]) for r, _, _, place, token in at]
            picked = gather_branches(logits, asked)
            for (_, b, n, _, _), (score, best) in zip(at, picked, strict=True):
                logprobs[b][n], argmax[b][n] = score[0], best[0]
            cost["forwarded_tokens"] += padded.numel()
            cost["forwards"] += 1
    return logprobs, argmax, cost


def needs_generator(model, purpose: str) -> None:
    """Raise ProbeError for a masked language model: it has no left-to-right probability."""
    if model.masked:
        what = f"{model.name} is a masked language model: it has no left-to-right probabilities"
        raise ProbeError(f"{what}, which {purpose} needs. Use another model here")
