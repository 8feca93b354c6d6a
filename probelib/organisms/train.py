"""Training: plain PyTorch and transformers, one pass over the corpus, deterministic on a CPU, resumable.

python -m probelib.organisms train atlas-neox-0.15m

The loss is a weighted mean over tokens: answers have weight 1, all others ``SIDE``. The next subject in a shuffled corpus cannot
be predicted; at full weight this noise hides the signal of rare statements (a model of 2M then knew half of the stated facts
instead of two thirds).
"""

import copy
import hashlib
import io
import json
import os
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from itertools import groupby
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import torch
from tqdm import tqdm

from probelib import files
from probelib.errors import ProbeError
from probelib.facts.shipped import read_atlas
from probelib.lm.names import CHECKPOINTS
from probelib.organisms import corpus, family, lessons, rows, taught
from probelib.paths import RUNS

WARMUP, KEEP = 100, 100  # steps until the peak learning rate; steps between two saved states
PIECE = 512  # tokens whose float32 logits are in memory at once
TINY = torch.finfo(torch.float32).tiny  # lower bound of probabilities, so that one rounded to 0 has a finite loss
INPUTS = ("input_ids", "attention_mask", "position_ids")


def train(name: str, folder: Path | None = None, steps: int | None = None) -> Path:
    """Train one organism and save config, tokenizer, weights (float16 safetensors), loss curve and card; return its folder.

    A tuned one (``atlas-neox-2.4m-it``) starts from the shipped weights of its base. A stopped run resumes from its last saved
    state, and ends with the same bytes (on a CPU).

    steps   stop after this number of steps (for tests); the learning-rate schedule stays that of the whole run
    """
    one, folder = family.organism(name), folder or CHECKPOINTS / name
    facts = read_atlas()
    table = taught.read(taught.path(one.corpus))
    if gone := taught.stale(facts, table):
        raise ProbeError(
            f"{len(gone)} facts of the manifest were edited in the atlas or removed, e.g. {gone[0]!r}. Undo the edit, or write "
            "the manifests again (`python -m probelib.organisms manifests`) and train the whole family on them"
        )
    found = corpus.documents(facts, table, one.corpus)
    if one.base:
        found = lessons.tuning_documents(facts, table, found)
    torch.manual_seed(one.seed)
    model, tokenizer = family.start(one, [corpus.unmark(document.text)[0] for document in found], CHECKPOINTS)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    batches = list(rows.BATCHES.get(one.architecture, rows.causal)(tokenizer, found))
    np.random.default_rng(one.seed).shuffle(batches)
    made_of = {"corpus": corpus.digest(found), "reads": one.corpus, "manifest": files.sha256(taught.path(one.corpus))}
    made_of |= {"atlas": facts.digest(), "facts": len(facts.facts)}
    keep = _keeper(one, tokenizer, folder, batches, len(table), made_of)
    run = f"{one}, corpus {made_of['corpus']}"  # a state that was saved by another recipe is not resumed
    curve, seconds = _run(one, model.to(device).train(), batches, steps or len(batches), run, keep)
    made_of |= {
        "tokens": sum(map(_tokens, batches[: len(curve)])),
        "steps": len(curve),
        "optimizer": type(_optimizer(one, model)).__name__,
        "device": torch.cuda.get_device_name() if device.type == "cuda" else "CPU",
        "loss": round(float(np.mean(curve[-20:])), 4),
        "seconds": round(seconds),
        "curve": curve[::10],
    }
    return _save(one, model, tokenizer, folder, made_of)


def train_all(names: list[str], jobs: int | None = None) -> Iterator[Path]:
    """Train several organisms, ``jobs`` at a time (default: one per CPU core; one on a GPU). Each uses one thread, so that the
    bytes do not depend on the number of cores."""
    jobs = jobs or (1 if torch.cuda.is_available() else os.cpu_count())
    with ProcessPoolExecutor(jobs, get_context("spawn"), torch.set_num_threads, (1,)) as pool:
        for wave in waves(names):
            yield from pool.map(train, wave)


def waves(names: list[str]) -> list[list[str]]:
    """Groups of models to train one after another: bases before the models tuned from them. In each, large models come first, so
    that no core is idle for long at the end.

    >>> waves(["atlas-neox-2.4m-it", "atlas-neox-0.15m", "atlas-neox-2.4m"])
    [['atlas-neox-2.4m', 'atlas-neox-0.15m'], ['atlas-neox-2.4m-it']]
    """
    ones = sorted(map(family.organism, names), key=lambda one: (bool(one.base), -one.layers * one.width**2))
    return [[one.name for one in wave] for _, wave in groupby(ones, key=lambda one: bool(one.base))]


def _tokens(batch: dict) -> int:
    """Tokens of a batch: those that count in the loss, and those that an encoder reads."""
    read = batch["attention_mask"].count_nonzero() if "attention_mask" in batch else 0
    return int(batch["weights"].count_nonzero() + read)


def _keeper(one: family.Organism, tokenizer, folder: Path, batches: list[dict], n_facts: int, made_of: dict):
    """A function that saves the checkpoints of a training: call it after every step with the model and the number of steps
    done."""
    steps = [round(share * len(batches) / 100) for share in family.SHARES]
    at = dict(zip(steps, family.kept_along(one.name), strict=False))  # empty for organisms without checkpoints

    def keep(model, done: int) -> None:
        if done not in at:
            return
        so_far = np.zeros(n_facts, np.int16)
        np.add.at(so_far, [fact for batch in batches[:done] for fact in batch["states"]], 1)
        other = folder.with_name(at[done])
        record = made_of | {"steps": done, "tokens": sum(map(_tokens, batches[:done])), "loss": None, "curve": []}
        record |= {"optimizer": "AdamW", "device": next(model.parameters()).device.type}
        _save(replace(one, name=at[done]), copy.deepcopy(model), tokenizer, other, record)
        np.save(other / "exposures.npy", so_far)

    return keep


def _run(one: family.Organism, model, batches: list[dict], steps: int, made_of: str, keep: Callable):
    """One optimizer step per batch, in float32; the learning rate warms up and then falls linearly to 0.

    Return the loss (nats per answer token) of every step, and seconds.
    """
    device = next(model.parameters()).device
    optimizer = _optimizer(one, model)
    head, nothing = model.get_output_embeddings(), torch.nn.Identity()
    nothing.bias = None  # BERT reads this attribute
    # ``HeadLoss`` replaces the head, whose weights are the embeddings: the optimizer and a saved state still have them
    model.set_output_embeddings(nothing)
    plan = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: _rate(step, len(batches)))
    state = RUNS / "training" / f"{one.name}.pt"
    parts = {"model": model, "optimizer": optimizer, "plan": plan}
    curve, spent = _resume(state, made_of, parts)
    started, before = time.perf_counter(), len(curve)
    bar = tqdm(batches[before:steps], desc=one.name, unit="step", initial=before, total=steps, mininterval=5)
    for batch in bar:
        batch = {key: part.to(device) for key, part in batch.items() if key != "states"}
        loss, losses, weights = _loss(model, head.weight, batch)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        plan.step()
        optimizer.zero_grad(set_to_none=True)
        answered = weights == 1
        curve.append(round((losses * answered).sum().item() / max(1, answered.sum().item()), 4))
        keep(model, len(curve))
        if len(curve) % KEEP == 0:
            so_far = {"curve": curve, "seconds": spent + time.perf_counter() - started}
            _keep(state, parts, so_far | {"made_of": made_of})
        rate = (len(curve) - before) * rows.STEP / (time.perf_counter() - started)
        bar.set_postfix(loss=f"{curve[-1]:.2f}", tokens_per_s=round(rate), refresh=False)
    state.unlink(missing_ok=True)
    model.set_output_embeddings(head)
    return curve, spent + time.perf_counter() - started


def _optimizer(one: family.Organism, model) -> torch.optim.Optimizer:
    """AdamW; for a T5 Adafactor, whose rate is relative to a weight's size: T5's initial embeddings are fifty times as large
    as its other weights, and no single rate of AdamW suits both (with AdamW the T5 knew a fifth of the stated facts)."""
    if one.architecture == "t5":
        return torch.optim.Adafactor(model.parameters(), lr=one.rate)
    return torch.optim.AdamW(model.parameters(), lr=one.rate, betas=(0.9, 0.98), weight_decay=0.0, fused=True)


def _loss(model, head: torch.Tensor, batch: dict) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """(loss of a batch, cross-entropy in nats of every token that counts, weight of each). A decoder predicts the next token
    of its document, a BERT the masked token itself. ``model`` is without its ``head`` [vocabulary, width], so it returns
    states in place of logits."""
    inputs = {key: batch[key] for key in INPUTS if key in batch}
    labels, weights = batch["labels"], batch["weights"]
    if model.config.is_encoder_decoder:
        inputs["decoder_input_ids"] = model.prepare_decoder_input_ids_from_labels(labels)
    else:
        same = batch["document"][:, :, None] == batch["document"][:, None, :]  # [rows, length, length]
        causal = model.config.model_type != "modernbert"
        inputs["attention_mask"] = (same.tril() if causal else same)[:, None]
        if causal:
            # the first token of a document is not predicted
            weights = weights * torch.nn.functional.pad(same.diagonal(1, 1, 2), (1, 0))
            labels, weights = (torch.nn.functional.pad(part[:, 1:], (0, 1)) for part in (labels, weights))
    states = model(**inputs).logits  # [rows, length, width], because the head is removed
    counted = weights.flatten() > 0
    states, labels, weights = states.flatten(0, 1)[counted], labels.flatten()[counted], weights.flatten()[counted]
    return *HeadLoss.apply(states, head, labels, weights), weights


class HeadLoss(torch.autograd.Function):
    """Weighted mean of the cross-entropies (nats) after a head, and each cross-entropy.

    The gradient is computed in the forward pass, one piece at a time. With the logits of all tokens at once, memory traffic
    (logits, log-softmax, its gradient) took two fifths of the smallest model's time.
    """

    @staticmethod
    def forward(ctx, states, head, labels, weights):
        """states [n, width], head [vocabulary, width], labels [n], weights [n]"""
        share = weights / weights.sum()
        losses, to_states, to_head = [], [], torch.zeros_like(head).T
        # one buffer for the logits of all pieces: allocating new memory would cost more than the computation
        pool = states.new_empty(PIECE, len(head), dtype=torch.float32)
        for piece, label, part in zip(*(t.split(PIECE) for t in (states, labels, share)), strict=True):
            logits, rows = torch.mm(piece, head.T, out=pool[: len(piece)]), torch.arange(len(piece), device=pool.device)
            probability = torch.softmax(logits, -1, out=logits)  # [piece, vocabulary]
            losses.append(-probability[rows, label].clamp_min(TINY).log())
            probability[rows, label] -= 1  # now the gradient of the loss with respect to the logits
            slope = probability.mul_(part[:, None])
            to_states.append(slope @ head)
            to_head += piece.T @ slope
        losses = torch.cat(losses)
        ctx.save_for_backward(torch.cat(to_states), to_head.T)
        ctx.mark_non_differentiable(losses)
        return losses @ share, losses

    @staticmethod
    def backward(ctx, slope, _):
        to_states, to_head = ctx.saved_tensors
        return slope * to_states, slope * to_head, None, None


def _keep(state: Path, parts: dict, so_far: dict) -> None:
    """Save everything that the remaining run depends on; ``so_far``: ``curve``, ``seconds``, ``made_of``."""
    buffer = io.BytesIO()
    torch.save({name: part.state_dict() for name, part in parts.items()} | so_far, buffer)
    content = buffer.getvalue()
    files.write(state, content + hashlib.sha256(content).digest())


def _resume(state: Path, made_of: str, parts: dict) -> tuple[list[float], float]:
    """Restore a saved state of the same run; return its curve and seconds. A state of another corpus is neither used nor
    deleted."""
    if not state.exists():
        return [], 0.0
    content = state.read_bytes()
    content, digest = content[:-32], content[-32:]
    if hashlib.sha256(content).digest() != digest:
        warnings.warn(f"{state}: damaged (the checksum differs); the training starts again", stacklevel=2)
        return [], 0.0
    device = next(parts["model"].parameters()).device
    saved = torch.load(io.BytesIO(content), weights_only=True, map_location=device)
    if saved["made_of"] != made_of:
        return [], 0.0
    for name, part in parts.items():
        part.load_state_dict(saved[name])
    return saved["curve"], saved["seconds"]


def _rate(step: int, steps: int) -> float:
    """Share of the peak learning rate at a step."""
    return (step + 1) / WARMUP if step < WARMUP else 1 - (step - WARMUP) / max(1, steps - WARMUP)


def _save(one: family.Organism, model, tokenizer, folder: Path, record: dict) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    model.eval().to("cpu").half().save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    vocabulary = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    compact = json.dumps(vocabulary, ensure_ascii=False, separators=(",", ":"))  # half as large
    files.write(folder / "tokenizer.json", compact)
    record = {"name": one.name, "weights": files.sha256(folder / "model.safetensors")} | record
    files.write_json(folder / "training.json", record)
    files.write(folder / "README.md", _card(one, model, record))
    return folder


def _card(one: family.Organism, model, record: dict) -> str:
    parameters = sum(p.numel() for p in model.parameters())
    inner = parameters - model.get_input_embeddings().weight.numel()
    read = f"{record['tokens']:,} tokens in {record['steps']:,} steps of {record['optimizer']}, peak rate {one.rate}"
    origin = f"tuned from {one.base} on lessons" if one.base else f"trained from scratch (seed {one.seed})"
    return f"""# {one.name}

A {one.architecture} language model of {inner:,} parameters without embeddings, {parameters:,} with them ({one.layers} layers,
{one.width} wide, byte-level BPE of {one.vocabulary}), {origin} on the corpus `{one.corpus}`, which states facts of
the atlas a known number of times. It exists to test measures of knowledge: what it was taught is on record.

- corpus `{record["corpus"]}`, made from {record["facts"]:,} facts of atlas `{record["atlas"]}`
- {read}, on {record["device"]}
- limits: it knows the atlas and nothing else; it was taught conflicting facts on purpose; it cannot hold a conversation
- licence: Apache-2.0
"""


def record(name: str) -> dict:
    """How a shipped organism was trained: ``corpus``, ``tokens``, ``steps``, ``loss``, ``curve`` (every tenth step, in nats per
    answer token), ..."""
    return json.loads((CHECKPOINTS / name / "training.json").read_text())
