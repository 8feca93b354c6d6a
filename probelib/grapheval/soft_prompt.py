"""The prompt encoder (P-tuning): virtual tokens that replace the instruction (GraphEval, section 3.2).

    Embedding(tokens, D) -> Linear(D, width) -> ReLU -> Linear(width, width) -> ReLU -> Linear(width, D)  ->  [tokens, D]

They precede the statement. The substitute model is frozen; the causal loss is over statement and recorded answer.
"""

import json
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from probelib import files
from probelib.errors import ProbeError, extra
from probelib.grapheval.judge import Reader
from probelib.lm.families import FORWARD
from probelib.lm.plain import pad_right
from probelib.lm.version import scoring

LOSSES = ["epoch", "train", "validation"]


def soft_prompt_readers(
    models: dict, substitute: pd.Series, labels: pd.DataFrame, folder: Path, seed: int = 0, **encoder
) -> tuple[dict[str, Reader], pd.DataFrame]:
    """Train a soft prompt per model on its substitute; return the readers by model, and the losses with ``model``.

    labels   ``scores.label_statements``; only the training split is used
    encoder  ``tokens``, ``width``, ``epochs``, ``lr``, ``batch`` of ``train_soft_prompt``
    """
    readers, losses = {}, []
    for model, small in substitute.items():
        rows = labels[(labels["model"] == model) & (labels["split"] == "train")]
        texts = [f"{text} {answer.strip()}" for text, answer in zip(rows["text"], rows["response"], strict=True)]
        soft, loss = train_soft_prompt(models[small], texts, folder, seed=seed, **encoder)
        readers[model] = Reader(models[small], soft_prompt=soft)
        losses.append(loss.assign(model=model))
    return readers, pd.concat(losses, ignore_index=True)


def train_soft_prompt(
    model,
    texts: list[str],
    folder: Path | None = None,
    tokens: int = 20,
    width: int = 0,
    epochs: int = 5,
    lr: float = 2e-5,
    batch: int = 8,
    weight_decay: float = 0.01,
    seed: int = 0,
) -> tuple[torch.Tensor, pd.DataFrame]:
    """Return virtual tokens [tokens, D] that make a substitute model predict a target model's answers, and the losses.

    model   the substitute; its weights do not change
    texts   statement and recorded answer, joined by " "
    folder  where a finished soft prompt is cached (None: nowhere)
    width   of the network that makes the virtual tokens; 0: as wide as the model (paper: 4096)

    90 % of the texts are trained on. AdamW; the learning rate falls linearly to 0. The losses: ``epoch`` (0: untrained),
    ``train``, ``validation`` (nats per token).
    """
    if model.encoder_decoder:
        raise ProbeError(f"{model.name} is an encoder-decoder model: a soft prompt is for decoder-only models")
    width = width or model.hf_model.get_input_embeddings().weight.shape[1]
    options = {"tokens": tokens, "width": width, "epochs": epochs, "lr": lr, "batch": batch, "decay": weight_decay}
    key = json.dumps(
        [scoring(), model.identity(), texts, options | {"seed": seed}], sort_keys=True, default=str
    ).encode()
    path = folder / f"{files.slug(model.name)}-{files.sha256(key)[:16]}.safetensors" if folder else None
    if path and path.exists():
        return read_soft_prompt(path)
    soft, losses = _train(model, texts, tokens, width, epochs, lr, batch, weight_decay, seed)
    if path:
        write_soft_prompt(path, soft, losses)
    return soft, losses


def write_soft_prompt(path: Path, soft: torch.Tensor, losses: pd.DataFrame) -> None:
    """Write virtual tokens and losses as safetensors, with their checksum."""
    from safetensors.torch import save

    tensors = {"soft": soft} | {c: torch.tensor(losses[c].to_numpy(dtype=np.float64)) for c in losses.columns}
    files.write(path, save(tensors, metadata={"sha256": files.sha256(save(tensors))}))


def read_soft_prompt(path: Path) -> tuple[torch.Tensor, pd.DataFrame]:
    """Read the file of ``write_soft_prompt``. Raise ProbeError if it is damaged."""
    from safetensors import SafetensorError, safe_open
    from safetensors.torch import load, save

    try:
        tensors = load(path.read_bytes())
        with safe_open(path, framework="pt") as file:
            if (file.metadata() or {}).get("sha256") != files.sha256(save(tensors)):
                raise SafetensorError("the checksum differs")
        losses = pd.DataFrame({c: tensors[c].numpy() for c in LOSSES})
        return tensors["soft"], losses.astype({"epoch": int})
    except (SafetensorError, KeyError, OSError) as error:
        raise ProbeError(f"{path}: damaged ({error}); delete it, and it is trained again") from error


def _train(model, texts, tokens, width, epochs, lr, batch, weight_decay, seed):
    sequences = [ids[: model.context - tokens] for ids in model.tokens.prompts(texts)]
    order = np.random.default_rng(seed).permutation(len(sequences))
    held, kept = order[: len(order) // 10], order[len(order) // 10 :]
    with FORWARD, torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        tuned = _with_encoder(model, tokens, width).train()
        trained = [p for p in tuned.parameters() if p.requires_grad]
        optimizer = torch.optim.AdamW(trained, lr=lr, weight_decay=weight_decay)
        steps = epochs * -(-len(kept) // batch)
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: max(0.0, 1 - step / max(steps, 1)))
        rows = [(0, np.nan, _loss(tuned, sequences, held, batch, model))]
        for epoch in range(1, epochs + 1):
            losses = []
            for chosen in torch.randperm(len(kept)).split(batch):
                loss = tuned(**_causal([sequences[kept[i]] for i in chosen], model)).loss
                optimizer.zero_grad(set_to_none=True)
                loss.backward()
                optimizer.step()
                schedule.step()
                losses.append(float(loss.detach()))
            rows.append((epoch, float(np.mean(losses)), _loss(tuned, sequences, held, batch, model)))
        soft = tuned.get_prompt(1)[0].detach().float().cpu().contiguous()  # [tokens, D]
    model.hf_model.eval()
    return soft, pd.DataFrame(rows, columns=LOSSES)


def _with_encoder(model, tokens: int, width: int):
    """The frozen model with a trainable prompt encoder of PEFT."""
    with extra("soft-prompts"):
        from peft import PromptEncoderConfig, TaskType, get_peft_model

    heads = (
        getattr(model.hf_model.config.get_text_config(), "num_attention_heads", None) or 1
    )  # MPT has other names for them
    config = PromptEncoderConfig(
        task_type=TaskType.CAUSAL_LM,
        num_virtual_tokens=tokens,
        encoder_hidden_size=width,
        encoder_reparameterization_type="MLP",
        encoder_dropout=0.0,
        num_attention_heads=heads,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # peft calls transformers by a deprecated name
        return get_peft_model(model.hf_model, config)


def _causal(sequences: list[list[int]], model) -> dict:
    """A batch with a causal loss on every token that is no padding. Padding is on the right: on the left it would come between
    the virtual tokens and the text."""

    ids, mask = pad_right(sequences, model.device)
    return {"input_ids": ids, "attention_mask": mask, "labels": ids.masked_fill(mask == 0, -100)}


def _loss(tuned, sequences, rows, batch: int, model) -> float:
    """Mean loss (nats per token) over held-out sequences; NaN if there are none."""
    if not len(rows):
        return float("nan")
    total, count = 0.0, 0
    with torch.no_grad():
        for start in range(0, len(rows), batch):
            chosen = [sequences[i] for i in rows[start : start + batch]]
            n = sum(map(len, chosen))
            total, count = total + float(tuned(**_causal(chosen, model)).loss) * n, count + n
    return total / count
