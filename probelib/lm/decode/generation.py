"""``generate``: greedy or beam text. Common beginnings of prompts are forwarded once."""

import time
from collections.abc import Collection
from itertools import groupby

import pandas as pd
import torch

from probelib.errors import ProbeError, texts_of
from probelib.lm.decode.shared_cache import run_searches
from probelib.lm.internals.hf_model import retry_on_oom
from probelib.lm.plain import pad_right
from probelib.lm.tokens import check_length

COLUMNS = ["prompt", "rank", "text", "n_tokens", "logprob", "finished"]
Text = tuple[list[int], list[float]]  # token ids, their log-probs


def generate(
    model, prompts: list[str], max_new_tokens=15, beams=1, returned=1, batch=32
) -> pd.DataFrame:
    """Generated text; one row per (prompt, returned text).

    beams      1: greedy; more: beam search, scores are sums of log-probs (no length normalization)
    returned   number of beams to return; with ``max_new_tokens=1`` the most probable next tokens
    batch      most prompts that are continued together; on a GPU larger batches are faster

    columns    prompt (index), rank (0 = best), text (new tokens only, without special tokens),
               n_tokens, logprob (nats, of the generated tokens, end token included), finished
               (whether an end token was generated)
    ``.attrs["cost"]`` counts forwarded tokens (off the tree every one, times beams) and seconds.
    """
    prompts = texts_of("prompts", [prompts] if isinstance(prompts, str) else prompts)
    model.needs_generator("generating text")
    if min(max_new_tokens, returned) < 1 or returned > beams:
        given = f"max_new_tokens={max_new_tokens}, beams={beams}, returned={returned}"
        raise ProbeError(f"{given}: each must be 1 or more, and returned at most beams")
    if not prompts:
        return pd.DataFrame(columns=COLUMNS)
    ids = model.tokens.prompts(prompts)
    for prompt, i in zip(prompts, ids, strict=True):
        check_length(model, prompt, len(i) + (0 if model.encoder_decoder else max_new_tokens))
    started = time.perf_counter()
    found, cost = continue_ids(model, ids, max_new_tokens, beams, returned, batch)
    decode, ends = model.tokens.decode, model.ends
    rows = [
        (p, rank, decode(new, ends), len(new), sum(scores), not ends.isdisjoint(new))
        for p, texts in enumerate(found)
        for rank, (new, scores) in enumerate(texts)
    ]
    frame = pd.DataFrame(rows, columns=COLUMNS)
    seconds = {"requests": len(prompts), "seconds": time.perf_counter() - started}
    frame.attrs["cost"] = cost | seconds
    return frame


def continue_ids(model, ids: list, length: int, beams=1, returned=1, batch=32) -> tuple[list, dict]:
    """``generate`` for token ids: per prompt its ``returned`` best ``Text``s; and ``cost``."""
    path = model.choose_path()
    if path == "served":
        return model.continue_ids(ids, length, beams, returned, batch)

    def decode(budget: int) -> tuple[list, dict]:
        rows = 1 if path == "alone" else model.rows(batch, budget)
        if model.encoder_decoder or path != "tree":
            return _by_transformers(model, ids, length, beams, returned, rows)
        found, cost = generate_ids(model.hf_model, ids, length, beams, model.ends, rows, budget)
        return [texts[:returned] for texts in found], cost

    return retry_on_oom(model, decode)


def generate_ids(
    hf_model, prompts: list[list[int]], length: int, beams: int, ends, rows: int, budget: int
) -> tuple[list[list[Text]], dict]:
    """Per prompt (token ids) its ``beams`` texts of at most ``length`` tokens, best first, and the
    counts of ``cost``. The prompts are forwarded as a tree and the texts grow on it. ``ends``: ids
    that end a text and belong to it."""

    def read(logprobs: torch.Tensor) -> list[tuple[list[float], list[int]]]:
        """The most probable next tokens; each of ``ends`` may take one from every beam."""
        if beams == 1:
            values, tokens = logprobs.max(-1, keepdim=True)  # of ties the first, as arg-max does
        else:
            values, tokens = logprobs.topk(min(max(2, 1 + len(ends)) * beams, logprobs.shape[-1]))
        return list(zip(values.tolist(), tokens.tolist(), strict=True))

    start = lambda place, reading: beam_search(place, reading, length, beams, ends)
    found, _, cost = run_searches(hf_model, prompts, start, read, rows, beams * length, budget)
    return found, cost


def beam_search(place: int, reading, length: int, beams: int, ends: Collection[int]):
    """Beam search after one prompt (greedy with one beam), as in transformers without length
    normalization; for ``run_searches``. A beam is (score, token ids, log-probs). It finishes with
    one of ``ends`` if it is among the ``beams`` best of its step, or at full length. The search
    ends when no running beam can become better than the worst of ``beams`` finished ones."""
    running: list[tuple] = [(0.0, [], [])]
    readings, finished = [(place, reading)], list[tuple]()
    for step in range(length):
        continuations = [
            (score + value, number, token, value)
            for number, ((score, *_), (_, nexts)) in enumerate(zip(running, readings, strict=True))
            for value, token in zip(*nexts, strict=True)
        ]
        extended, requests = list[tuple](), list[tuple]()
        best = sorted(continuations, key=lambda continuation: -continuation[0])
        for rank, (score, number, token, value) in enumerate(best):
            beam = (score, [*running[number][1], token], [*running[number][2], value])
            if token in ends or step == length - 1:
                finished += [beam] if rank < beams else []
            elif len(extended) < beams:
                extended.append(beam)
                requests.append((token, readings[number][0]))
        finished = sorted(finished, key=lambda beam: -beam[0])[:beams]
        if not extended or (len(finished) == beams and extended[0][0] <= finished[-1][0]):
            break
        running, readings = extended, (yield requests)
    return [(tokens, values) for _, tokens, values in finished]


@torch.inference_mode()
def _by_transformers(model, ids: list, length: int, beams: int, returned: int, most: int):
    """Off the tree, and encoder-decoders: transformers' own loop, ``most`` prompts together."""
    # prompts of decoders are equally long: padding on the left would change texts (RWKV)
    order = sorted(range(len(ids)), key=lambda p: (len(ids[p]), p))
    texts: dict[int, list] = {}
    # on other paths a cache may change scores (Zamba 2)
    cached = model.encoder_decoder or model.choose_path() == "repeated"
    options: dict = {"max_new_tokens": length, "num_beams": beams, "use_cache": cached}
    options |= {"num_return_sequences": returned, "eos_token_id": sorted(model.ends) or None}
    options |= {"return_dict_in_generate": True, "output_scores": True}
    options |= {"length_penalty": 0.0} if beams > 1 else {}
    options["pad_token_id"] = min(model.ends, default=0)  # any valid one: it is masked
    for _, same in groupby(order, lambda p: 0 if model.encoder_decoder else len(ids[p])):
        group = list(same)
        for batch in (group[i : i + most] for i in range(0, len(group), most)):
            rows, mask = pad_right([ids[p] for p in batch], model.device)
            output = model.hf_model.generate(input_ids=rows, attention_mask=mask, **options)
            made = output.sequences, output.scores, output.get("beam_indices")
            scores = model.hf_model.compute_transition_scores(*made, beams == 1)
            new = output.sequences[:, 1 if model.encoder_decoder else len(ids[batch[0]]) :]
            for row, (tokens, values) in enumerate(zip(new.tolist(), scores.tolist(), strict=True)):
                stop = next((i + 1 for i, token in enumerate(tokens) if token in model.ends), None)
                texts.setdefault(batch[row // returned], []).append((tokens[:stop], values[:stop]))
    sizes = [(len(ids[p]), len(tokens)) for p, own in texts.items() for tokens, _ in own]
    forwarded = sum(map(len, ids)) * beams + sum(new for _, new in sizes) * beams // returned
    if not cached:  # each step forwards the prompt and all earlier steps again
        forwarded = sum(n * new + new * (new - 1) // 2 for n, new in sizes) * beams // returned
    return [texts[p] for p in range(len(ids))], {"forwarded_tokens": forwarded}
