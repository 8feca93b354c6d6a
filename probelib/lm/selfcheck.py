"""Which path scores a model: the fastest one that agrees with single sequences on this model.

An unknown architecture may accept a packed row and silently return wrong scores. The judge is one
unpadded sequence per forward ("alone"); the padded batches of the plain path are checked, too.
"""

import sys
import warnings
from contextlib import contextmanager, suppress
from functools import partial
from os.path import isfile
from typing import Any

import numpy as np
import psutil
import torch

from probelib import files, paths
from probelib.errors import ProbeError
from probelib.lm.families import QUERIES, SHARED
from probelib.lm.internals.hf_model import FORWARD, retry_on_oom, text_ids, weight_sums
from probelib.lm.plain import score_encdec, score_masked, score_plain, score_repeated
from probelib.lm.tree import score_tree
from probelib.lm.version import scoring

# Nats per token. Half precision differs from itself by as much under another attention kernel. With
# 8 bits, rounding a sum differently moves some activations to the next of 256 steps (0.07 nats).
TOLERANCE = {torch.float32: 1e-4, torch.float16: 0.02, torch.bfloat16: 0.1, "8bit": 0.1}
# or this many times the model's own difference between batch sizes (in float32 within ``BATCHED``)
ROUNDINGS = 4
MOST = 0.75  # share of tokens that must agree in half precision: a flipped expert moves some
BATCHED = 1e-3  # largest difference in float32 between a sequence alone and in a padded batch
WINDOWS = ("sliding_window", "attention_chunk_size")  # names in configurations


def choose(model) -> tuple[str, str]:
    """The path that scores a model, the first of its ``paths`` that agrees with single sequences,
    and why it is not a faster one: also a warning.

    A pass of the fastest in float32 on a CPU is noted in the user's cache, under a name of weights,
    settings, code, libraries and processor. In other cases the check is made each time."""
    hf_model, loaded, note = model.hf_model, vars(model).get("_loaded"), None
    exact = hf_model.dtype == torch.float32 and hf_model.device.type == "cpu" and not model.quantize
    if exact and not model.masked and loaded and loaded == weight_sums(hf_model):
        names = "_attn_implementation", "_experts_implementation"
        about = [getattr(hf_model.config, name, None) for name in names]
        about += [loaded, model.probe, model.budget, torch.backends.cpu.get_cpu_capability()]
        note = paths.CHECKS / files.sha256(repr([*about, scoring()]).encode())[:16]
    with FORWARD:
        failed = {} if note and isfile(note) else failures(model)
    if note and not failed:
        with suppress(OSError, ProbeError):  # the cache cannot be written
            files.write(note, model.name, lasting=False)
    path = next(path for path in model.paths if path not in failed)
    why = "; ".join(f"{faster}: {reason}" for faster, reason in failed.items())
    if why:
        said = f"{model.name} is scored on the path {path!r}, not {model.paths[0]!r} ({why})"
        warnings.warn(said, stacklevel=4)
    return path, why


def score_by(model, path: str, contexts, branches, budget: int) -> tuple[list, list, dict]:
    """``tree.score_tree`` by a path, for every kind of local model."""
    if path == "tree":
        return score_tree(model.hf_model, contexts, branches, budget)
    rows = 1 if path == "alone" else model.rows(16, budget)
    if model.masked:
        return score_masked(model, contexts, branches, rows)
    score = score_repeated if path == "repeated" else score_plain
    score = score_encdec if model.encoder_decoder else score
    return score(model.hf_model, contexts, branches, rows)


def failures(model) -> dict[str, str]:
    """Path -> why it does not reproduce the log-probs of single sequences, for the paths faster
    than the first that does; also with attention windows that matter in a short check."""
    failed: dict[str, str] = {}
    if len(model.paths) > 1 and model.n_parameters > 5e7:  # it takes seconds
        print(f"{model.name}: comparing its paths with single sequences ...", file=sys.stderr)
    for path in model.paths[:-1]:
        check = partial(_why_not, model, path)
        why = retry_on_oom(model, check)
        with narrow_windows(model.hf_model, SHARED // 2) as narrowed:
            why = retry_on_oom(model, check) if narrowed and not why else why
        if not why:
            break
        failed[path] = why
    return failed


def _why_not(model, path: str, budget: int) -> str:
    """Compare a path with single sequences; "" if they agree. In half precision the path must be
    exact with the same weights in float32, where memory allows it, and as near to that as single
    sequences are."""
    exact, scores = _in_float32(model, path, budget), _scores(model, path, budget)
    for of in (exact, scores):
        if of and isinstance(of[path], str):
            return of[path]
    rounds = model.hf_model.dtype != torch.float32 or bool(model.quantize)
    truth, padded = ((exact or scores)[key] for key in ("alone", "plain"))
    noise = 0 if isinstance(padded, str) else _largest(padded, truth)
    limit = np.clip(ROUNDINGS * noise * (noise <= BATCHED), TOLERANCE[torch.float32], BATCHED)
    limit = BATCHED if path == "plain" else limit
    if exact and not (moved := _largest(exact[path], exact["alone"])) <= limit:
        return f"it changes log-probabilities by up to {moved:.1g} nats in float32"
    if path == "plain" and rounds:
        return ""
    if rounds:
        limit = TOLERANCE["8bit" if model.quantize == "8bit" else model.hf_model.dtype]
    share = MOST if model.hf_model.dtype != torch.float32 else 1
    other = "alone" if exact or isinstance(scores["plain"], str) else "plain"
    noise = _largest(scores[other], truth, share)
    moved = _largest(scores[path], truth, share)
    fits = moved <= (max(limit, ROUNDINGS * noise) if rounds else limit)
    return "" if fits else f"it changes log-probabilities by up to {moved:.1g} nats"


def _largest(scores: list[np.ndarray], truth: list[np.ndarray], share: float = 1) -> float:
    """The largest |scores - truth| of the ``share`` of tokens that differ least."""
    moved = [np.abs(of[: len(truth[0])] - truth[0][: len(of)]) for of in scores]
    return max(float(np.quantile(each, share)) for each in moved)


def _scores(model, path: str, budget: int) -> dict[str, Any]:
    """ "alone", "plain" and a path -> log-probs of tokens in each setting, or the exception:
    a few branches in short rows, and enough to fill a row and start a second one."""
    rng, ids = np.random.default_rng(0), text_ids(model.hf_model.config)
    draw = lambda n: rng.choice(ids, n).tolist()
    prefix, first = draw(min(SHARED + 8, model.context - 8)), draw(1)
    contexts = [prefix + draw(2), prefix + draw(1)]
    few = [(0, (*first, *draw(n))) for n in (2, 3)] + [(0, tuple(draw(2))), (1, tuple(draw(3)))]
    some = few + [(1, tuple(draw(5))) for _ in range(2 * len(few))]
    # prompts among them that ask for nothing, so that no logits are computed after them
    full = contexts + [contexts[1] + draw(4) for _ in range(budget // 4 + QUERIES)]
    scores: dict = {}
    for each in dict.fromkeys(("alone", "plain", path)):
        # 8 tokens per row: the prefix is cached, and ancestors of a branching are dropped and kept
        in_rows = [(8, contexts, few), (budget, full, some)]
        settings = in_rows if each == "tree" else [(budget, contexts, some)]
        try:
            found = [score_by(model, each, read, of, n)[0] for n, read, of in settings]
            scores[each] = [np.concatenate(logprobs) for logprobs in found]
        except (ProbeError, torch.OutOfMemoryError):
            raise
        # an unknown architecture may fail on a packed row in any way
        except Exception as error:
            scores[each] = f"{type(error).__name__}: {' '.join(str(error).split())[:100]}"
    if isinstance(scores["alone"], str):
        raise ProbeError(f"{model.name}: this model cannot read text alone ({scores['alone']})")
    return scores


def _in_float32(model, path: str, budget: int) -> dict | None:
    """``_scores`` of a model in half precision with weights in float32; None without memory."""
    hf_model = model.hf_model
    tensors = [*hf_model.parameters(), *hf_model.buffers()]
    half = [tensor for tensor in tensors if tensor.dtype == hf_model.dtype != torch.float32]
    apart = any(tensor.device != hf_model.device for tensor in tensors)  # spread over devices
    needed = 2 * sum(tensor.nbytes for tensor in half)
    gpu = hf_model.device.type == "cuda"
    free = torch.cuda.mem_get_info(hf_model.device)[0] if gpu else psutil.virtual_memory().available
    if not half or model.quantize or apart or free < needed:
        return None
    saved = [(tensor, tensor.data) for tensor in half]
    try:
        for tensor, data in saved:
            tensor.data = data.float()
        return _scores(model, path, budget)
    except torch.OutOfMemoryError:
        return None
    finally:
        for tensor, data in saved:
            tensor.data = data


@contextmanager
def narrow_windows(hf_model, size: int):
    """Context manager: attention windows, usually of thousands of tokens, of at most ``size``;
    yields those that were narrowed, by name."""
    config = hf_model.config.get_text_config()
    every = ((name, getattr(config, name, None)) for name in WINDOWS)
    original = {name: window for name, window in every if window and window > size}
    held = [(config, name, window) for name, window in original.items()]
    for module in hf_model.modules():  # attention layers keep their own copy
        own = [(name, vars(module).get(name)) for name in original]
        held += [(module, name, window) for name, window in own if window]
    try:
        for owner, name, _ in held:
            setattr(owner, name, size)
        yield original
    finally:
        for owner, name, window in held:
            setattr(owner, name, window)
