"""``generate``: greedy or beam text, only the new tokens. Common beginnings of prompts are forwarded once."""

import time
import warnings
from collections.abc import Collection
from itertools import groupby

import pandas as pd
import torch

from probelib.errors import ProbeError, texts_of
from probelib.lm.decode.shared_cache import run_searches
from probelib.lm.internals.masked import needs_generator
from probelib.lm.internals.weights import text_ids
from probelib.lm.selfcheck import BATCHED, TOLERANCE
from probelib.lm.text import not_twice, user_turn
from probelib.lm.tokens import check_length


def generate(
    model,
    prompts: list[str],
    max_new_tokens: int = 15,
    beams: int = 1,
    returned: int = 1,
    chat: bool = False,
    batch: int = 32,
    system: str | None = None,
    examples: list[tuple[str, str]] = (),
) -> pd.DataFrame:
    """Generated text; one row per (prompt, returned text).

    beams      1: greedy; more: beam search without length normalization (scores are plain sums of log-probs)
    returned   number of beams to return; with ``max_new_tokens=1`` these are the most probable next tokens
    batch      most prompts that are continued together; on a GPU larger batches are faster
    chat       put each prompt into the tokenizer's chat template, after ``system`` and ``examples`` (``internals.chat``)

    columns    prompt (index), rank (0 = best), text (new tokens only, without special tokens), n_tokens,
               logprob (nats, of the generated tokens, end token included), finished (whether an end token was generated)
    ``.attrs["cost"]`` counts forwarded tokens (each distinct prefix once; on the plain path all prompt tokens and new
    ones, times beams) and seconds.
    """
    prompts = texts_of("prompts", [prompts] if isinstance(prompts, str) else prompts)
    needs_generator(model, "generating text")
    validate_generation_args(max_new_tokens, beams, returned)
    if not prompts:
        return pd.DataFrame(columns=["prompt", "rank", "text", "n_tokens", "logprob", "finished"])
    if chat:
        not_twice(model)
        prompts = [user_turn(model.tokens, prompt, system, examples) for prompt in prompts]
    ids = model.tokens.prompts(prompts)
    for prompt, i in zip(prompts, ids, strict=True):
        check_length(model, prompt, len(i) + (0 if model.encoder_decoder else max_new_tokens))
    started = time.perf_counter()
    found, cost = continue_ids(model, ids, max_new_tokens, beams, returned, batch)
    rows = [
        {
            "prompt": p,
            "rank": rank,
            "text": model.tokens.decode(tokens, model.ends),
            "n_tokens": len(tokens),
            "logprob": sum(scores),
            "finished": not model.ends.isdisjoint(tokens),
        }
        for p, texts in enumerate(found)
        for rank, (tokens, scores) in enumerate(texts)
    ]
    frame = pd.DataFrame(rows)
    frame.attrs["cost"] = cost | {"requests": len(prompts), "seconds": time.perf_counter() - started}
    return frame


def continue_ids(model, ids: list[list[int]], max_new_tokens: int, beams: int = 1, returned: int = 1, batch: int = 32):
    """``generate`` for prompts of token ids: per prompt the ``returned`` best texts as (token ids, log-probs), and ``cost``."""

    def decode(budget: int):
        rows = model.rows(batch, budget)
        if model.encoder_decoder or model.choose_path() != "tree":
            return _generate_padded(model, ids, max_new_tokens, beams, returned, rows)
        found, cost = generate_ids(model.hf_model, ids, max_new_tokens, beams, model.ends, rows, budget)
        return [texts[:returned] for texts in found], cost

    return model.retry_on_oom(decode)


def validate_generation_args(max_new_tokens: int, beams: int, returned: int) -> None:
    """Raise ProbeError if the arguments are too small or conflict."""
    if min(max_new_tokens, beams, returned) < 1:
        raise ProbeError(f"max_new_tokens={max_new_tokens}, beams={beams}, returned={returned}: each must be 1 or more")
    if returned > beams:
        raise ProbeError(f"returned={returned} exceeds beams={beams}: at most one text per beam can be returned")


def generate_ids(
    hf_model, prompts: list[list[int]], length: int, beams: int, ends: Collection[int], rows: int, budget: int
) -> tuple[list[list[tuple[list[int], list[float]]]], dict]:
    """Per prompt (token ids) its ``beams`` texts, best first, as (token ids, log-probs); and the counts of ``cost``. The
    prompts are forwarded as a tree and the texts grow on it; the results are those of one prompt at a time.

    length   most new tokens
    ends     ids that end a text and belong to it
    """
    wanted = _n_continuations(beams, ends)

    def read(logprobs: torch.Tensor) -> list[tuple[list[float], list[int]]]:
        """The most probable next tokens, enough of them if some end a text."""
        if beams == 1:
            values, tokens = logprobs.max(-1, keepdim=True)  # of ties the first, as arg-max does everywhere
        else:
            values, tokens = logprobs.topk(min(wanted, logprobs.shape[-1]))
        return list(zip(values.tolist(), tokens.tolist(), strict=True))

    start = lambda _, place, reading: beam_search(place, reading, length, beams, ends)
    found, _, cost = run_searches(hf_model, prompts, start, read, rows, beams * length, budget)
    return found, cost


def _n_continuations(beams: int, ends: Collection[int]) -> int:
    """Number of continuations considered per step; each of ``ends`` may take one from every beam."""
    return max(2, 1 + len(ends)) * beams


def beam_search(place: int, reading, length: int, beams: int, ends: Collection[int]):
    """Beam search after one prompt (greedy with one beam), as in transformers without length normalization. A generator
    for ``run_searches``.

    A beam is (score, token ids, log-probs). It finishes with one of ``ends`` if it is among the ``beams`` best of its step,
    or at full length. The search ends when no running beam can become better than the worst of ``beams`` finished ones.
    """
    running, readings, finished = [(0.0, [], [])], [(place, reading)], []
    for step in range(length):
        continuations = [
            (score + value, number, token, value)
            for number, ((score, _, _), (_, options)) in enumerate(zip(running, readings, strict=True))
            for value, token in zip(*options, strict=True)
        ]
        extended, requests = [], []
        best = sorted(continuations, key=lambda c: -c[0])[: _n_continuations(beams, ends)]
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
    return [(tokens, scores) for _, tokens, scores in finished]


def _generate_padded(model, ids, max_new_tokens: int, beams: int, returned: int, batch: int):
    """Off the tree, and encoder-decoder models: transformers' own loop. Prompts of decoders come together if they are
    equally long: padding on the left changes the texts of some families (RWKV, RecurrentGemma)."""
    order, rows = sorted(range(len(ids)), key=lambda p: (len(ids[p]), p)), []
    groups = [order] if model.encoder_decoder else [list(same) for _, same in groupby(order, lambda p: len(ids[p]))]
    batch = 1 if model.choose_path() == "alone" else batch
    with torch.inference_mode():
        for group in groups:
            for start in range(0, len(group), batch):
                some = [ids[p] for p in group[start : start + batch]]
                rows += _generate_batch(model, some, max_new_tokens, beams, returned)
    rows = [row for _, row in sorted(zip(order, rows, strict=True), key=lambda pair: pair[0])]
    new = sum(len(tokens) for texts in rows for tokens, _ in texts) * beams // returned
    forwarded = sum(map(len, ids)) * beams + new
    if not _may_cache(model):  # each step forwards the prompt and all earlier steps again
        steps = [(len(i), len(tokens)) for i, texts in zip(ids, rows, strict=True) for tokens, _ in texts]
        forwarded = sum(start * n + n * (n - 1) // 2 for start, n in steps) * beams // returned
    return rows, {"forwarded_tokens": forwarded}


def _may_cache(model) -> bool:
    """Return whether transformers' loop generates with a cache; checked once per model."""
    if model.caches is None:
        model.caches = model.encoder_decoder or model.choose_path() == "tree" or _caches_exactly(model)
    return model.caches


def _caches_exactly(model) -> bool:
    """Return whether cached steps reproduce the log-probabilities of whole forwards, checked on six tokens.

    Those of Zamba 2 and Nemotron-H do not. Such a model generates without a cache, and a warning says so.
    """
    ids = text_ids(model.hf_model.config)[:7].tolist()
    (((tokens, scores),),) = _generate_batch(model, [ids], 6, 1, 1, use_cache=True)
    whole = model.hf_model(input_ids=torch.tensor([ids + tokens], device=model.device), use_cache=False).logits[0]
    whole = whole[len(ids) - 1 : -1].float().log_softmax(-1).cpu()
    moved = float((whole[range(len(tokens)), tokens] - torch.tensor(scores)).abs().max())
    exact = moved <= max(BATCHED, TOLERANCE[model.hf_model.dtype])
    if not exact:
        cost = "each new token reads the whole text again"
        why = f"its cache changes log-probabilities by up to {moved:.1g} nats"
        warnings.warn(f"{model.name} generates without a cache: {cost} ({why})", stacklevel=3)
    return exact


def _generate_batch(
    model, ids: list[list[int]], max_new_tokens: int, beams: int, returned: int, **options
) -> list[list[tuple]]:
    """Per prompt its texts as (token ids, log-probs), up to and with the end token."""
    options |= {"length_penalty": 0.0} if beams > 1 else {}
    output = _hf_generate(model, ids, max_new_tokens, beams, num_return_sequences=returned, **options)
    scores = model.hf_model.compute_transition_scores(
        output.sequences, output.scores, getattr(output, "beam_indices", None), normalize_logits=beams == 1
    )
    new = output.sequences[:, (1 if model.encoder_decoder else max(map(len, ids))) :].tolist()  # [rows * returned, new]
    texts = []
    for tokens, values in zip(new, scores.float().tolist(), strict=True):
        length = next((i + 1 for i, token in enumerate(tokens) if token in model.ends), len(tokens))
        texts.append((tokens[:length], values[:length]))
    return [texts[p * returned : (p + 1) * returned] for p in range(len(ids))]


def _hf_generate(model, ids: list[list[int]], max_new_tokens: int, beams: int, **options):
    """transformers' own generation loop, with the scores of every step."""
    if "use_cache" not in options:
        options["use_cache"] = _may_cache(model)
    longest = max(map(len, ids))
    # decoder-only rows are padded on the left, so that all new tokens start at one position
    left = not model.encoder_decoder
    pad = lambda row, value: [value] * (longest - len(row)) + row if left else row + [value] * (longest - len(row))
    return model.hf_model.generate(
        input_ids=torch.tensor([pad(row, model.pad) for row in ids], device=model.device),
        attention_mask=torch.tensor([pad([1] * len(row), 0) for row in ids], device=model.device),
        max_new_tokens=max_new_tokens,
        num_beams=beams,
        pad_token_id=model.pad,
        eos_token_id=sorted(model.ends) or None,
        return_dict_in_generate=True,
        output_scores=True,
        **options,
    )


def beam_steps(
    model, prompts: list[str], beams: int = 5, max_new_tokens: int = 15, watch: list[list[int]] | None = None
) -> pd.DataFrame:
    """The leading beam of every step of a beam search (row 0 of transformers' scores); one row per prompt.

    watch     per prompt the token ids whose probability is returned, one per step; None: none

    columns   prompt (index), text (of the best beam), ids, tokens, probability: the most probable token of each step, its
              text (special tokens included), its probability; watched: the probabilities of ``watch``, as many as there
              are steps

    The leading beam may change between steps and need not be among the returned texts: this is for measures defined
    on it. One prompt per call, so that a search ends as it would alone.
    """
    needs_generator(model, "a beam search")
    prompts, rows = texts_of("prompts", prompts), []
    validate_generation_args(max_new_tokens, beams, 1)
    watch = watch or [[] for _ in prompts]
    with torch.inference_mode():
        for p, (ids, watched) in enumerate(zip(model.tokens.prompts(prompts), watch, strict=True)):
            check_length(model, prompts[p], len(ids) + (0 if model.encoder_decoder else max_new_tokens))
            # a single prompt cannot be split; retry_on_oom gives the error message
            output = model.retry_on_oom(lambda _, ids=ids: _hf_generate(model, [ids], max_new_tokens, beams))
            leading = torch.stack([step[0] for step in output.scores]).float().softmax(-1).cpu()  # [steps, vocabulary]
            probability, best = leading.max(-1)
            shared = min(len(watched), len(leading))
            new = output.sequences[0, 1 if model.encoder_decoder else len(ids) :].tolist()
            rows.append(
                {
                    "prompt": p,
                    "text": model.tokens.decode(new, model.ends),
                    "ids": best.tolist(),
                    "tokens": [model.tokenizer.decode([token]) for token in best.tolist()],
                    "probability": probability.double().numpy(),
                    "watched": leading[range(shared), watched[:shared]].double().numpy(),
                }
            )
    return pd.DataFrame(rows)
