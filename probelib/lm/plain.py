"""The plain path: one padded sequence per request, no cache, no tree. It is the reference for the
fast path, and the fallback where the two disagree. Below it, what has no tree.

Which logit predicts which token (a prompt of 3 tokens, a continuation of 2):

    input        p0    p1    p2    c0
    logits        |     |     |     |
    predicts     p1    p2   [c0]  [c1]      the last token, c1, is predicted and never forwarded
"""

import copy
import inspect
from collections import defaultdict
from collections.abc import Sequence
from itertools import groupby

import numpy as np
import torch

from probelib.errors import ProbeError
from probelib.lm.families import Branches, Ints, Scores, state_name, to_device
from probelib.lm.tree import gather_logprobs, to_numpy_checked

NOTE = "pseudo-log-likelihood"
ROWS = 8  # decoder rows per forward, in rows of the encoder


def score_plain(hf_model, contexts: list[list[int]], branches: Branches, rows: int = 16) -> Scores:
    """Arguments and results as in ``tree.score_tree``; ``rows`` sequences per forward."""
    starts = [len(contexts[c]) - 1 for c, _ in branches]  # what predicts the first token
    order = sorted(range(len(branches)), key=lambda b: (starts[b] + len(branches[b][1]), b))
    logprobs, argmax = [np.empty(0)] * len(branches), [np.empty(0)] * len(branches)
    cost = {"forwarded_tokens": 0, "forwards": 0}
    fewer = "logits_to_keep" in inspect.signature(hf_model.forward).parameters
    with torch.inference_mode():
        for start in range(0, len(order), rows):
            batch = order[start : start + rows]
            sequences = [[*contexts[branches[b][0]], *branches[b][1][:-1]] for b in batch]
            ids, mask = pad_right(sequences, hf_model.device)
            first = min(starts[b] for b in batch)  # logits before it are not read
            kept = ids.shape[1] - first
            options: dict = {"use_cache": False} | ({"logits_to_keep": kept} if fewer else {})
            # [rows, kept, vocabulary]
            logits = hf_model(input_ids=ids, attention_mask=mask, **options).logits[:, -kept:]
            asked = [(r * kept + starts[b] - first, branches[b][1]) for r, b in enumerate(batch)]
            predicted = [(range(at, at + len(tokens)), tokens) for at, tokens in asked]
            for b, scores in zip(batch, gather_branches(logits, predicted), strict=True):
                logprobs[b], argmax[b] = scores
            cost["forwarded_tokens"] += ids.numel()
            cost["forwards"] += 1
    return logprobs, argmax, cost


@torch.inference_mode()
def score_encdec(hf_model, contexts: list[list[int]], branches: Branches, rows: int) -> Scores:
    """As ``score_plain``, of encoder-decoders (T5, UL2): ``rows`` prompts are encoded together, and
    a candidate is a row of the decoder behind its start token, without blank and end token."""
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


@torch.inference_mode()
def score_repeated(hf_model, contexts: list[list[int]], branches: Branches, rows: int) -> Scores:
    """As ``score_plain``, for caches that cannot be packed (Mamba, LFM2, Falcon-H1): each distinct
    prompt is forwarded once, and copies of its state step through its continuations, ``rows`` of
    them together, token by token."""
    logprobs, argmax = [np.empty(0)] * len(branches), [np.empty(0)] * len(branches)
    cost = {"forwarded_tokens": 0, "forwards": 0}
    known, kind = inspect.signature(hf_model.forward).parameters, state_name(hf_model)

    def forward(ids: torch.Tensor, past: int = 0, state=None):
        """Logits [rows, length, vocabulary] behind ``past`` tokens, and the state after them."""
        cost["forwarded_tokens"] += ids.numel()
        cost["forwards"] += 1
        given = {} if state is None else {kind: state}
        if past and "position_ids" in known:  # Bamba would count from 0
            given["position_ids"] = torch.full_like(ids, past)
        output = hf_model(input_ids=ids, use_cache=True, **given)
        return output.logits, getattr(output, kind)

    order = sorted(range(len(branches)), key=lambda b: (branches[b][0], len(branches[b][1])))
    for context, same in groupby(order, key=lambda b: branches[b][0]):
        before, chosen = contexts[context], list(same)
        first, state = forward(torch.tensor([before], device=hf_model.device))
        for some in (chosen[i : i + rows] for i in range(0, len(chosen), rows)):
            asked = [branches[b][1] for b in some]
            # a row that has ended goes on with padding, which nothing reads
            ids, _ = pad_right([list(tokens[:-1]) for tokens in asked], hf_model.device)
            columns, cache = [first[:, -1:].expand(len(some), -1, -1)], copy.deepcopy(state)
            held = [value for layer in cache.layers for value in vars(layer).values()]
            device = next((value.device for value in held if torch.is_tensor(value)), "cpu")
            cache.reorder_cache(torch.zeros(len(some), dtype=torch.long, device=device))
            for step in range(ids.shape[1]):
                logits, cache = forward(ids[:, [step]], len(before) + step, cache)
                columns.append(logits)
            at = [row * len(columns) + np.arange(len(tokens)) for row, tokens in enumerate(asked)]
            found = gather_branches(torch.cat(columns, 1), list(zip(at, asked, strict=True)))
            for b, scores in zip(some, found, strict=True):
                logprobs[b], argmax[b] = scores
    return logprobs, argmax, cost


def words_of(tokens, text: str | None, ids: tuple[int, ...]) -> Sequence[int]:
    """Per token of a continuation the number of its word, as the tokenizer splits texts."""
    encoding = tokens.tokenizer(text or "", add_special_tokens=False)
    if not encoding.is_fast or tuple(encoding["input_ids"]) != ids:
        raise ProbeError(f"the words of {text!r} are not clear from its tokens; use another label")
    return encoding.word_ids()


@torch.inference_mode()
def score_masked(model, contexts: list[list[int]], branches: Branches, rows: int) -> Scores:
    """As ``score_plain``, of masked language models (BERT, RoBERTa): pseudo-log-likelihood, because
    they have no left-to-right probability. Every token of the continuation is masked in turn, with
    the later tokens of its word, which would give it away (Kauf and Ivanova 2023), and the model
    predicts it from all the others. Each distinct masked row is forwarded once:

        [CLS] the capital is [MASK] [MASK] [SEP]   ->  log P(Par  | ...)    two tokens: "Par" "##is"
        [CLS] the capital is  Par   [MASK] [SEP]   ->  log P(##is | ...)

    The sum is no log-probability: it does not sum to one over all texts, and it cannot be compared
    with the score of an autoregressive model. The column ``note`` marks its rows.
    """
    tokens, mask = model.tokens, model.tokenizer.mask_token_id
    if mask is None:
        raise ProbeError(f"{model.name}: its tokenizer has no mask token (tokenizer.mask_token)")
    tokens.check("a", tokens.finish)
    texts = {ids: text for text, ids in tokens.continued.items()}
    distinct = dict.fromkeys(tuple(ids) for _, ids in branches)
    words = {ids: words_of(tokens, texts.get(ids), ids) for ids in distinct}
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


def gather_branches(logits: torch.Tensor, branches: Sequence[tuple[Ints, Ints]]) -> list[tuple]:
    """Log-probs [L] and arg-max ids [L] of every branch; token -1 gets NaN.

    logits     [rows, length, vocabulary]
    branches   per branch: L positions among rows * length, and the L tokens that they predict
    """
    columns = zip(*branches, strict=True)
    positions, tokens = (np.concatenate([*map(np.asarray, column)]) for column in columns)
    distinct, row = np.unique(positions, return_inverse=True)
    picked = gather_logprobs(logits.flatten(0, 1)[to_device(distinct, logits.device)], row, tokens)
    scores, best = to_numpy_checked(*picked)
    cuts = np.cumsum([len(positions) for positions, _ in branches])[:-1]
    return list(zip(np.split(scores, cuts), np.split(best[row], cuts), strict=True))


def pad_right(sequences: list[list[int]], device) -> tuple[torch.Tensor, torch.Tensor]:
    """Ids and mask (1: token), both [rows, longest]. So no family needs position ids."""
    longest = max(map(len, sequences))
    ids = torch.tensor([s + [0] * (longest - len(s)) for s in sequences], device=device)
    mask = torch.tensor([[1] * len(s) + [0] * (longest - len(s)) for s in sequences], device=device)
    return ids, mask
