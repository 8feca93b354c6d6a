"""``generate``: greedy or beam text, only the new tokens, batched."""

import time

import numpy as np
import pandas as pd
import torch

from probelib.errors import ProbeError
from probelib.lm.plain import pad_right


def generate(
    lm,
    prompts: list[str],
    max_new_tokens: int = 15,
    beams: int = 1,
    returned: int = 1,
    stop: list[str] | None = None,
    chat: bool = False,
    batch: int = 16,
    temperature: float | None = None,
    seed: int = 0,
) -> pd.DataFrame:
    """One row a (prompt, returned text).

    beams      1: greedy; more: beam search without length normalisation (scores are plain sums of log-probs)
    returned   how many of the beams to return; with ``temperature``, how many texts to draw (``rank`` then only counts them).
               With ``max_new_tokens=1`` these are the most probable next tokens, and one forward pass finds any number
    temperature  draw from softmax(logits / temperature) in place of greedy decoding; ``seed`` and the batch decide what is drawn
    stop       texts at whose first occurrence the answer is cut
    chat       put the prompt through the tokenizer's chat template

    columns    prompt (index), rank (0 = best), text (only what is new, special tokens left out), n_tokens,
               logprob (nats, of the tokens that were generated, the end token included), finished (ended by itself);
               ``.attrs["cost"]`` counts forwarded tokens (prompt tokens and new ones, times beams) and seconds
    """
    if not prompts:
        return pd.DataFrame(columns=["prompt", "rank", "text", "n_tokens", "logprob", "finished"])
    if temperature is None and returned > beams:
        raise ProbeError(f"returned={returned} texts of {beams} beams: at most as many as beams, or give a temperature")
    if temperature is not None and (not temperature > 0 or beams > 1):
        raise ProbeError(
            f"temperature={temperature!r} with beams={beams}: drawing takes a temperature above 0 and beams=1"
        )
    ids = lm.tokens.prompts([chat_text(lm, p) for p in prompts] if chat else prompts)
    for prompt, i in zip(prompts, ids, strict=True):
        if len(i) + (0 if lm.encoder_decoder else max_new_tokens) > lm.context:
            raise ProbeError(
                f"{lm.name} reads at most {lm.context} tokens; the prompt {prompt[:50]!r}... has {len(i)}, "
                f"and {max_new_tokens} new ones are wanted"
            )
    order = sorted(range(len(prompts)), key=lambda p: (len(ids[p]), p))
    rows, started = [], time.perf_counter()
    one_token = max_new_tokens == 1 and not stop and temperature is None
    drawn = {"do_sample": False} if temperature is None else {"do_sample": True, "temperature": temperature, "top_k": 0}
    with torch.inference_mode(), torch.random.fork_rng(enabled=temperature is not None):
        torch.manual_seed(seed) if temperature is not None else None
        for start in range(0, len(order), batch):
            at = order[start : start + batch]
            rows += (
                _next_tokens(lm, at, ids, returned)
                if one_token
                else _generate_batch(lm, at, ids, max_new_tokens, beams, returned, stop or [], drawn)
            )
    frame = pd.DataFrame(rows).sort_values(["prompt", "rank"], ignore_index=True)
    each = 1 if one_token else beams if temperature is None else returned  # rows that are really forwarded for a prompt
    new = 0 if one_token else int(frame["n_tokens"].sum()) * each // returned
    forwarded = sum(map(len, ids)) * each + new
    frame.attrs["cost"] = {
        "forwarded_tokens": forwarded,
        "requests": len(prompts),
        "seconds": time.perf_counter() - started,
    }
    return frame


def _next_tokens(lm, batch: list[int], ids, returned: int) -> list[dict]:
    """The most probable next tokens, without copies of the prompt: what a beam of one token finds, at the cost of one row."""
    tokens, mask = pad_right([ids[p] for p in batch], lm.device)
    if lm.encoder_decoder:
        start = torch.full((len(batch), 1), lm.model.config.decoder_start_token_id, device=lm.device)
        logits = lm.model(input_ids=tokens, attention_mask=mask, decoder_input_ids=start).logits[:, -1]
    else:
        logits = lm.model(input_ids=tokens, attention_mask=mask, use_cache=False).logits
        logits = logits[torch.arange(len(batch)), mask.sum(1) - 1]  # [rows, vocabulary]
    logprobs, best = torch.log_softmax(logits.float(), -1).topk(min(returned, logits.shape[-1]), sorted=True)
    return [
        _answer(lm, p, rank, [token], np.array([logprob]), [])
        for p, own, values in zip(batch, best.tolist(), logprobs.tolist(), strict=True)
        for rank, (token, logprob) in enumerate(zip(own, values, strict=True))
    ]


def _generate_batch(lm, batch: list[int], ids, max_new_tokens, beams, returned, stop, drawn) -> list[dict]:
    pad = lm.pad
    longest = max(len(ids[p]) for p in batch)
    # decoder-only rows are padded on the left, so that what is new starts at one place; generate counts positions itself
    left = not lm.encoder_decoder
    fill = [[pad] * (longest - len(ids[p])) for p in batch]
    rows = [f + ids[p] if left else ids[p] + f for p, f in zip(batch, fill, strict=True)]
    mask = [
        [0] * len(f) + [1] * len(ids[p]) if left else [1] * len(ids[p]) + [0] * len(f)
        for p, f in zip(batch, fill, strict=True)
    ]
    output = lm.model.generate(
        input_ids=torch.tensor(rows, device=lm.device),
        attention_mask=torch.tensor(mask, device=lm.device),
        max_new_tokens=max_new_tokens,
        num_beams=beams,
        num_return_sequences=returned,
        **drawn,
        length_penalty=0.0 if beams > 1 else None,
        pad_token_id=pad,
        eos_token_id=lm.eos,
        return_dict_in_generate=True,
        output_scores=True,
    )
    new = output.sequences[:, (1 if lm.encoder_decoder else longest) :]  # [rows * returned, new]
    scores = (
        lm.model.compute_transition_scores(
            output.sequences, output.scores, getattr(output, "beam_indices", None), normalize_logits=beams == 1
        )
        .float()
        .cpu()
        .numpy()
    )
    return [
        _answer(lm, batch[r // returned], r % returned, tokens.tolist(), scores[r], stop)
        for r, tokens in enumerate(new)
    ]


def _answer(lm, prompt: int, rank: int, tokens: list[int], scores: np.ndarray, stop: list[str]) -> dict:
    finished = lm.eos in tokens
    length = tokens.index(lm.eos) + 1 if finished else len(tokens)
    text = lm.tokens.decode(tokens[:length])
    cuts = [at for s in stop if (at := text.find(s)) >= 0]
    return {
        "prompt": prompt,
        "rank": rank,
        "text": text[: min(cuts)] if cuts else text,
        "n_tokens": length,
        "logprob": float(scores[:length].sum(dtype=np.float64)),
        "finished": finished,
    }


def chat_text(lm, prompt: str) -> str:
    """A prompt as one turn of the tokenizer's chat template, without its beginning-of-text token: the tokenizer adds that."""
    if not getattr(lm.tokenizer, "chat_template", None):
        raise ProbeError(f"{lm.name} has no chat template; call generate(..., chat=False)")
    turn = [{"role": "user", "content": prompt}]
    text = lm.tokenizer.apply_chat_template(turn, tokenize=False, add_generation_prompt=True)
    return text.removeprefix("".join(lm.tokenizer.convert_ids_to_tokens(lm.tokens.start)))


def beam_steps(
    lm, prompts: list[str], beams: int = 5, max_new_tokens: int = 15, watch: list[list[int]] | None = None
) -> pd.DataFrame:
    """What beam search looks at, step by step, in the running beam that leads (row 0 of the scores); one row a prompt.

    watch     for each prompt the token ids whose probability is wanted, one a step; None: none

    columns   prompt (index), text (of the best beam), ids, tokens, probability: the most probable token of each step, its
              text (special tokens included), its probability; watched: the probabilities of ``watch``, for as many steps
              as there are

    The leading beam may change from step to step, and may be none of the texts that are returned: this is for measures
    that were defined so. One prompt a call, so that a search ends where it would end alone.
    """
    rows = []
    watch = watch or [[] for _ in prompts]
    with torch.inference_mode():
        for p, (ids, wanted) in enumerate(zip(lm.tokens.prompts(prompts), watch, strict=True)):
            output = lm.model.generate(
                input_ids=torch.tensor([ids], device=lm.device),
                attention_mask=torch.ones(1, len(ids), dtype=torch.long, device=lm.device),
                max_new_tokens=max_new_tokens,
                num_beams=beams,
                do_sample=False,
                pad_token_id=lm.pad,
                eos_token_id=lm.eos,
                return_dict_in_generate=True,
                output_scores=True,
            )
            leading = torch.stack([step[0] for step in output.scores]).float().softmax(-1).cpu()  # [steps, vocabulary]
            probability, best = leading.max(-1)
            shared = min(len(wanted), len(leading))
            rows.append(
                {
                    "prompt": p,
                    "text": lm.tokens.decode(output.sequences[0, 1 if lm.encoder_decoder else len(ids) :].tolist()),
                    "ids": best.tolist(),
                    "tokens": [lm.tokenizer.decode([token]) for token in best.tolist()],
                    "probability": probability.double().numpy(),
                    "watched": leading[range(shared), wanted[:shared]].double().numpy(),
                }
            )
    return pd.DataFrame(rows)
