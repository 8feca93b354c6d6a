"""Training: plain PyTorch and transformers, one pass over the corpus, deterministic on a CPU,
resumable.

python -m probelib.organisms train atlas-neox-0.15m

The loss is a weighted mean over tokens: answers have weight 1, all others ``SIDE``. The next
subject in a shuffled corpus cannot be predicted; at full weight this noise hides the signal of rare
statements (a model of 2M then knew half of the stated facts instead of two thirds).
"""

import io
import json
import os
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
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
INPUTS = ("input_ids", "attention_mask", "position_ids")


def train(name: str, folder: Path | None = None, steps: int | None = None) -> Path:
    """Train one organism and save config, tokenizer, weights and loss curve; return its folder. A
    tuned one starts from the shipped weights of its base. A stopped run resumes from its last saved
    state, and ends with the same bytes (on a CPU).

    steps   stop after this number (for tests); the learning rates stay those of the whole run
    """
    import transformers as hf

    one, folder = family.organism(name), folder or CHECKPOINTS / name
    facts, table = read_atlas(), taught.read(one.corpus)
    if gone := sorted(set(table["fact"]) - set(facts.facts["fact"])):
        said = "facts of the manifest were edited in the atlas or removed"
        raise ProbeError(f"{len(gone)} {said}, e.g. {gone[0]!r}. Undo the edit")
    found = corpus.documents(facts, table, one.corpus)
    torch.manual_seed(one.seed)
    if one.base:
        found = lessons.tuning_documents(facts, table, found)
        base, how = CHECKPOINTS / one.base, {"dtype": "float32", "trust_remote_code": False}
        model = hf.AutoModelForCausalLM.from_pretrained(base, use_safetensors=True, **how)
        tokenizer = hf.AutoTokenizer.from_pretrained(base, trust_remote_code=False)
    else:
        texts = [corpus.unmark(document)[0] for document in found]
        model, tokenizer = family.build(one), family.train_tokenizer(one, texts)
    batches = list(rows.BATCHES.get(one.architecture, rows.causal)(tokenizer, found))
    np.random.default_rng(one.seed).shuffle(batches)
    made_of = {"corpus": corpus.digest(found), "reads": one.corpus}
    made_of |= {"manifest": files.sha256(taught.path(one.corpus))}
    made_of |= {"atlas": facts.digest(), "facts": len(facts.facts)}
    return _save(one.name, model, tokenizer, folder, fit(one, model, batches, made_of, steps))


def train_all(names: list[str]) -> Iterator[Path]:
    """Train several organisms, at the same time one per CPU core, or one on a GPU; the bases of
    tuned ones are there. Each uses one thread, so that the bytes do not depend on the cores."""
    known = [family.organism(name).name for name in names]
    jobs = 1 if torch.cuda.is_available() else os.cpu_count()
    with ProcessPoolExecutor(jobs, get_context("spawn"), torch.set_num_threads, (1,)) as pool:
        yield from pool.map(train, known)


def fit(one, model, batches: list[dict], made_of: dict, steps: int | None = None) -> dict:
    """One optimizer step per batch, in float32; the learning rate warms up and then falls linearly
    to 0. Return ``made_of`` with the number of ``tokens`` (that count in the loss, or that an
    encoder reads), ``curve``: the loss (nats per answer token) of every step, and more.

    one     ``name``, ``architecture`` and ``rate``
    steps   as in ``train``
    """
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    optimizer = _optimizer(one, model.to(device).train())
    rise = min(WARMUP, 1 + len(batches) // 10)
    fall = max(1, len(batches) - rise)
    rate = lambda step: (step + 1) / rise if step < rise else 1 - (step - rise) / fall
    plan = torch.optim.lr_scheduler.LambdaLR(optimizer, rate)
    state, recipe = RUNS / "training" / f"{one.name}.pt", f"{one}, {made_of}"
    parts = {"model": model, "optimizer": optimizer, "plan": plan}
    curve, spent = _resume(state, recipe, parts)
    started, read = time.perf_counter() - spent, batches[:steps]
    shown = {"initial": len(curve), "total": len(read), "mininterval": 5, "desc": one.name}
    for batch in tqdm(read[len(curve) :], **shown):
        batch = {key: part.to(device) for key, part in batch.items()}
        loss, losses, weights = _loss(model, batch)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        plan.step()
        optimizer.zero_grad(set_to_none=True)
        answered = weights == 1
        curve.append(round((losses * answered).sum().item() / max(1, answered.sum().item()), 4))
        if len(curve) % KEEP == 0:
            so_far = {"curve": curve, "seconds": time.perf_counter() - started, "recipe": recipe}
            _keep(state, parts, so_far)
    state.unlink(missing_ok=True)
    counted = [b[k] for b in read for k in ("weights", "attention_mask") if k in b]
    return made_of | {
        "tokens": int(sum(part.count_nonzero() for part in counted)),
        "steps": len(curve),
        "optimizer": type(optimizer).__name__,
        "device": torch.cuda.get_device_name() if device.type == "cuda" else "CPU",
        "loss": round(float(np.mean(curve[-20:])), 4),
        "seconds": round(time.perf_counter() - started),
        "curve": curve,
    }


def _optimizer(one, model) -> torch.optim.Optimizer:
    """AdamW; for a T5 Adafactor, whose rate is relative to a weight's size: T5's first embeddings
    are fifty times as large as its other weights, and no single rate of AdamW suits both."""
    if one.architecture == "t5":
        return torch.optim.Adafactor(model.parameters(), lr=one.rate)
    how = {"lr": one.rate, "betas": (0.9, 0.98), "weight_decay": 0.0, "fused": True}
    return torch.optim.AdamW(model.parameters(), **how)


def _loss(model, batch: dict) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """(loss of a batch, cross-entropy in nats of every token that counts, weight of each). A
    decoder predicts the next token of its document, a BERT the masked token itself."""
    inputs = {key: batch[key] for key in INPUTS if key in batch}
    labels, weights = batch["labels"], batch["weights"]
    if model.config.is_encoder_decoder:
        inputs["decoder_input_ids"] = model.prepare_decoder_input_ids_from_labels(labels)
    else:
        # [rows, length, length]
        same = batch["document"][:, :, None] == batch["document"][:, None, :]
        causal = model.config.model_type != "modernbert"
        inputs["attention_mask"] = (same.tril() if causal else same)[:, None]
        if causal:
            # the first token of a document is not predicted
            pad = torch.nn.functional.pad
            weights = weights * pad(same.diagonal(1, 1, 2), (1, 0))
            labels, weights = (pad(part[:, 1:], (0, 1)) for part in (labels, weights))
    counted = weights.flatten() > 0
    logits = model(**inputs).logits.flatten(0, 1)[counted]  # [n, vocabulary]
    labels, weights = labels.flatten()[counted], weights.flatten()[counted]
    losses = torch.nn.functional.cross_entropy(logits, labels, reduction="none")
    return losses @ weights / weights.sum(), losses.detach(), weights


def _keep(state: Path, parts: dict, so_far: dict) -> None:
    """Save everything that the remaining run depends on."""
    buffer = io.BytesIO()
    torch.save({name: part.state_dict() for name, part in parts.items()} | so_far, buffer)
    files.write(state, buffer.getvalue())


def _resume(state: Path, recipe: str, parts: dict) -> tuple[list[float], float]:
    """Restore a saved state of the same recipe; return its curve and seconds."""
    saved = torch.load(state, weights_only=True, map_location="cpu") if state.exists() else {}
    if saved.get("recipe") != recipe:
        return [], 0.0
    for name, part in parts.items():
        part.load_state_dict(saved[name])
    return saved["curve"], saved["seconds"]


def _save(name: str, model, tokenizer, folder: Path, record: dict) -> Path:
    model.eval().to("cpu").half().save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    vocabulary = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    compact = json.dumps(vocabulary, ensure_ascii=False, separators=(",", ":"))  # half as large
    files.write(folder / "tokenizer.json", compact)
    weights, curve = files.sha256(folder / "model.safetensors"), record["curve"][::10]
    record = {"name": name, "weights": weights} | record | {"curve": curve}
    files.write_json(folder / "training.json", record)
    return folder


def record(name: str) -> dict:
    """How an organism was trained: ``tokens``, ``loss``, ``curve`` (every tenth step), ..."""
    return json.loads((CHECKPOINTS / name / "training.json").read_text())
