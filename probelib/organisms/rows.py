"""Documents -> batches of token rows. A row holds whole documents, which do not attend to each
other; each starts at position 0."""

from collections.abc import Iterator
from itertools import groupby

import numpy as np
import torch

from probelib.organisms import corpus, family

LENGTHS = (128, 512, 1024)  # tokens per row: the shortest row that holds a document is used
STEP = 2048  # tokens per step
BEGUN = 12  # rows of one length that are filled at the same time
SIDE = 0.1  # weight of a token outside of answers
BLOCK = 8  # a T5's rows are padded to a multiple of this number of tokens
PADDING = {"input_ids": 0, "weights": 0.0, "document": -1, "position_ids": 0}
MASKED = 0.15  # for a BERT: share of tokens outside of answers; of the answers half, as a whole


def causal(tokenizer, documents: list[str], step: int = STEP) -> Iterator[dict]:
    """Batches of ``step`` tokens for a decoder: ``input_ids``, ``labels``, ``weights``,
    ``document``, ``position_ids`` [rows, length]."""
    return _packed(tokenizer, documents, [tokenizer.eos_token_id], step)


def masked(tokenizer, documents: list[str]) -> Iterator[dict]:
    """Batches for a BERT, as in ``causal``; only masked tokens count in the loss."""
    draw = np.random.default_rng(corpus.SEED)
    for batch in _packed(tokenizer, documents, [], STEP):
        ids, weights = batch["input_ids"], batch["weights"]
        answer = weights == 1
        # number of the answer of a token
        spans = (answer & ~torch.nn.functional.pad(answer, (1, 0))[:, :-1]).cumsum(1)
        coin = torch.from_numpy(draw.random((len(ids), int(spans.max()) + 1))) < 0.5
        single = torch.from_numpy(draw.random(ids.shape)) < MASKED
        hidden = torch.where(answer, coin.gather(1, spans), single)
        hidden &= (weights > 0) & (ids != tokenizer.cls_token_id) & (ids != tokenizer.sep_token_id)
        masked_ids = ids.masked_fill(hidden, tokenizer.mask_token_id)
        yield batch | {"input_ids": masked_ids, "weights": weights * hidden}


def _packed(tokenizer, documents: list[str], end: list[int], step: int) -> Iterator[dict]:
    """Batches of rows, each row with as many whole documents as fit. Raise ValueError for a
    document longer than a row: its answer would be without its question."""
    texts, spans = zip(*map(corpus.unmark, documents), strict=True)
    encoded = tokenizer(list(texts), return_offsets_mapping=True)
    tokens = lambda row: len(row["input_ids"])
    rows = {length: [] for length in LENGTHS}  # not yet full
    full = {length: [] for length in LENGTHS}
    pieces = zip(texts, encoded["input_ids"], encoded["offset_mapping"], spans, strict=True)
    for text, ids, offsets, answers in pieces:
        ids = ids + end
        length = next((length for length in LENGTHS if len(ids) <= length), None)
        if length is None:
            raise ValueError(f"{len(ids)} tokens; a row holds {LENGTHS[-1]}: {text[:60]}")
        # the fullest unfinished row with space, or a new one
        fitting = [row for row in rows[length] if tokens(row) + len(ids) <= length]
        if not fitting:
            fitting = [{name: [] for name in PADDING}]
            rows[length] += fitting
        row = max(fitting, key=tokens)
        row["document"] += [row["document"][-1] + 1 if row["document"] else 0] * len(ids)
        row["input_ids"] += ids
        row["weights"] += weigh(offsets, answers) + [1.0] * len(end)
        row["position_ids"] += range(len(ids))
        if len(rows[length]) > BEGUN:
            full[length].append(max(rows[length], key=tokens))
            rows[length].remove(full[length][-1])
        if len(full[length]) == max(1, step // length):
            yield _batch(full[length], length)
            full[length] = []
    for length in LENGTHS:
        rest, size = full[length] + rows[length], max(1, step // length)
        yield from (_batch(rest[at : at + size], length) for at in range(0, len(rest), size))


def _batch(rows: list[dict], length: int) -> dict:
    """Rows padded with tokens of weight 0, each a document of its own."""
    batch = {}
    for name, pad in PADDING.items():
        filled = [row[name] + [pad] * (length - len(row[name])) for row in rows]
        batch[name] = torch.tensor(filled)
    return batch | {"labels": batch["input_ids"]}


def weigh(offsets: list[tuple[int, int]], answers: list[tuple[int, int]]) -> list[float]:
    """The weight of each token, from its characters [start, end): 1 if it overlaps an answer, else
    ``SIDE``.

    >>> weigh([(0, 4), (4, 10), (10, 11)], [(5, 10)])
    [0.1, 1.0, 0.1]
    """
    begin, end = np.reshape(answers, (-1, 2)).T
    start, stop = np.reshape(offsets, (-1, 2, 1)).transpose(1, 0, 2)  # [tokens, 1]
    overlaps = ((start < end) & (stop > begin)).any(axis=1)
    return np.where(overlaps, 1.0, SIDE).tolist()


def encoder_decoder_pairs(tokenizer, documents: list[str]) -> Iterator[dict]:
    """Batches ``input_ids``, ``attention_mask``, ``labels``, ``weights`` for an encoder-decoder. A
    sentence: the text before its answer -> the answer. A list: its pairs with masked objects -> the
    objects (T5's span corruption)."""
    texts = [text for one in documents for text in _texts(one)]
    found = [pair for text in texts for pair in _source_and_target(text)]
    sources, targets = (tokenizer(list(side))["input_ids"] for side in zip(*found, strict=True))
    order, pad = np.random.default_rng(corpus.SEED).permutation(len(found)), tokenizer.pad_token_id
    longest = lambda i: -(-len(sources[i]) // BLOCK) * BLOCK
    for at in range(0, len(order), 4096):  # shuffled, then sorted by length within blocks
        window = sorted(order[at : at + 4096], key=lambda i: (longest(i), len(targets[i])))
        for length, group in groupby(window, key=longest):
            rows, size = list(group), max(1, STEP // length)
            for first in range(0, len(rows), size):
                own = rows[first : first + size]
                source, target = (_padded([x[i] for i in own], pad) for x in (sources, targets))
                batch = {"input_ids": source, "attention_mask": (source != pad).long()}
                yield batch | {"labels": target, "weights": (target != pad).float()}


def _padded(rows: list[list[int]], pad: int) -> torch.Tensor:
    """Rows padded to a multiple of ``BLOCK``: on a CPU every new shape costs time."""
    length = -(-max(map(len, rows)) // BLOCK) * BLOCK
    return torch.tensor([row + [pad] * (length - len(row)) for row in rows])


def _texts(text: str) -> list[str]:
    """The sentences of a document; a list, or a lesson, whose lines belong together, is one
    text."""
    lines, (begin, end) = text.split("\n"), corpus.MARKS
    whole = all(begin in line and line[-1] in f".{end}" for line in lines)
    return lines if whole else [text]


def _source_and_target(text: str) -> list[tuple[str, str]]:
    """(source, target) pairs of a text; a list is cut into pieces with one pair per sentinel."""
    sentinels = family.ARCHITECTURES["t5"]["tokenizer"]["additional_special_tokens"]
    text, answers = corpus.unmark(text)
    if len(answers) == 1 and not text[answers[0][1] :].strip():
        return [(text[: answers[0][0]].rstrip(), text[slice(*answers[0])])]
    found, at = [], 0
    for first in range(0, len(answers), len(sentinels)):
        source, target = "", ""
        for mark, (start, end) in zip(sentinels, answers[first:], strict=False):
            source += text[at:start] + mark
            target += mark + text[start:end]
            at = end
        found.append((source.strip(), target))
    return found


BATCHES = {"t5": encoder_decoder_pairs, "bert": masked}  # by architecture; all others: causal
