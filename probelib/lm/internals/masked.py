"""Masked language models (BERT, RoBERTa): pseudo-log-likelihood, because they have no left-to-right probability.

Every token of the continuation is masked in turn, and the model predicts it from everything else that it sees:

    [CLS] the capital is [MASK] [MASK] [SEP]   ->  log P(Par  | ...)      a word of two tokens: "Par" "##is"
    [CLS] the capital is  Par   [MASK] [SEP]   ->  log P(##is | ...)

The sum is the pseudo-log-likelihood of the continuation given the prompt. Two variants:

"pseudo"            within-word left-to-right (Kauf and Ivanova 2023): later tokens of the same word are masked as well.
                    Otherwise "##is" gives "Par" away, and rare words of many tokens look probable
"pseudo-original"   only the token itself is masked (Salazar et al. 2020)

A pseudo-log-likelihood is not a log-probability: it does not sum to one over all texts, and it cannot be compared with
the score of an autoregressive model. Rows are marked in the column ``note``.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import groupby

import numpy as np
import torch

from probelib.errors import ProbeError
from probelib.lm.plain import gather_branches, pad_right

PSEUDO = {"pseudo": True, "pseudo-original": False}  # path -> whether later tokens of the same word are masked
NOTE = "pseudo-log-likelihood"


def masked_rows(tokens, context: list[int], ids: tuple[int, ...], words: Sequence[int]) -> list[tuple[int, ...]]:
    """One row per token of a continuation: special tokens, prompt and continuation, with that token masked, and the later
    tokens of the same word. ``words``: the number of each token's word."""
    mask = tokens.tokenizer.mask_token_id
    hidden = [[m == n or (m > n and words[m] == words[n]) for m in range(len(ids))] for n in range(len(ids))]
    return [
        (*context, *(mask if hide else token for hide, token in zip(row, ids, strict=True)), *tokens.finish)
        for row in hidden
    ]


def words_of(tokens, text: str | None, ids: tuple[int, ...]) -> list[int]:
    """Per token of a continuation the number of its word, as the tokenizer splits texts into words."""
    if text is None:
        raise ProbeError("the words of token ids are known of texts only; use path='pseudo-original'")
    if tokens.tokenizer.is_fast:
        encoding = tokens.tokenizer(text, add_special_tokens=False)
        if tuple(encoding["input_ids"]) == ids:
            return encoding.word_ids()
    pieces = tokens.encode([" " * text.startswith(" ") + word for word in text.split()], control=False)
    if sum(pieces, []) == list(ids):  # words between blanks
        return [n for n, piece in enumerate(pieces) for _ in piece]
    raise ProbeError(f"the words of {text!r} cannot be told from its tokens; use path='pseudo-original'")


def score_masked(
    model, contexts: list[list[int]], branches: list[tuple[int, tuple[int, ...]]], rows: int, within_word: bool = True
) -> tuple[list[np.ndarray], list[np.ndarray], dict]:
    """Arguments and results as in ``tree.score_tree``, with pseudo-log-likelihoods. Each distinct masked row is forwarded
    once: all candidates of one token share theirs."""
    if model.tokenizer.mask_token_id is None:
        raise ProbeError(
            f"{model.name} is a masked language model, and its tokenizer has no mask token; save one with it "
            "(tokenizer.mask_token = ...), or load a tokenizer that has one"
        )
    tokens, texts = model.tokens, model.tokens.texts
    tokens.check("a", tokens.finish)
    words = {ids: words_of(tokens, texts.get(ids), ids) if within_word else range(len(ids)) for _, ids in branches}
    wanted = defaultdict(list)  # row -> [(branch, token number, position, token)]
    for b, (context, ids) in enumerate(branches):
        for n, row in enumerate(masked_rows(tokens, contexts[context], ids, words[ids])):
            wanted[row].append((b, n, len(contexts[context]) + n, ids[n]))
    logprobs = [np.empty(len(ids), dtype=np.float32) for _, ids in branches]
    argmax = [np.empty(len(ids), dtype=np.int64) for _, ids in branches]
    cost = {"forwarded_tokens": 0, "forwards": 0}
    with torch.inference_mode():
        for batch in _batches(sorted(wanted, key=lambda row: (len(row), row)), rows):
            ids, mask = pad_right(
                [list(row) for row in batch], model.hf_model.device
            )  # equal lengths: nothing is padded
            logits = model.hf_model(input_ids=ids, attention_mask=mask).logits  # [rows, length, vocabulary]
            at = [(r, *each) for r, row in enumerate(batch) for each in wanted[row]]
            picked = gather_branches(logits, [([r * ids.shape[1] + place], [token]) for r, _, _, place, token in at])
            for (_, b, n, _, _), (score, best) in zip(at, picked, strict=True):
                logprobs[b][n], argmax[b][n] = score[0], best[0]
            cost["forwarded_tokens"] += ids.numel()
            cost["forwards"] += 1
    return logprobs, argmax, cost


def _batches(order: list[tuple[int, ...]], most: int) -> Iterator[list[tuple[int, ...]]]:
    """Rows of one length, at most ``most`` together. Some families (FNet) let padding change a score."""
    for _, same in groupby(order, key=len):
        same = list(same)
        yield from (same[i : i + most] for i in range(0, len(same), most))


def needs_generator(model, purpose: str) -> None:
    """Raise ProbeError for a masked language model: it has no left-to-right probability and generates no text."""
    if model.masked:
        raise ProbeError(
            f"{model.name} is a masked language model: it has no left-to-right probabilities, which {purpose} needs. It can "
            "score continuations by pseudo-log-likelihood (logprobs); use a decoder-only or encoder-decoder model here"
        )
