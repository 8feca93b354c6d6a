"""The prompt encoder (P-tuning): virtual tokens that replace the instruction (section 3.2).

    Embedding(tokens, D) -> Linear(D, width) -> ReLU -> Linear(width, width) -> ReLU
    -> Linear(width, D)  ->  [tokens, D]

They precede the statement. The substitute is frozen; the causal loss is over statement and answer.
"""

import json
import warnings
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from probelib import files, store
from probelib.errors import ProbeError, extra
from probelib.grapheval.judge import Reader
from probelib.grapheval.scores import GraphEvalSettings
from probelib.lm.internals.hf_model import FORWARD
from probelib.lm.plain import pad_right
from probelib.lm.version import scoring


def soft_prompt_readers(
    models: dict, substitute: pd.Series, labels, folder: Path, study: GraphEvalSettings, seed: int
) -> tuple[dict[str, Reader], pd.DataFrame]:
    """Readers by model, with a soft prompt trained on its substitute, and the losses
    (``train_soft_prompt``). ``labels``: ``scores.label_statements``; the training split is used."""
    readers, losses = {}, []
    for model, small in substitute.items():
        rows = labels[(labels["model"] == model) & (labels["split"] == "train")]
        pairs = zip(rows["text"], rows["response"], strict=True)
        texts = [f"{text} {answer.strip()}" for text, answer in pairs]
        soft, loss = train_soft_prompt(models[small], texts, folder, study, seed)
        readers[model] = Reader(models[small], soft_prompt=soft)
        losses.append(loss.assign(model=model))
    return readers, pd.concat(losses, ignore_index=True)


def train_soft_prompt(
    model, texts: list[str], folder: Path, study: GraphEvalSettings, seed: int = 0
) -> tuple[torch.Tensor, pd.DataFrame]:
    """Virtual tokens [tokens, D] that make a substitute predict a model's answers, and the losses:
    ``epoch`` (0: untrained), ``train``, ``validation`` (nats per token).

    model   the substitute; its weights do not change
    texts   statement and recorded answer, joined by " "; 90 % of them are trained on
    folder  where a finished soft prompt is cached
    """
    if model.encoder_decoder:
        raise ProbeError(f"{model.name}: a soft prompt is for decoder-only models")
    how = {name: value for name, value in asdict(study).items() if name.startswith(("enc", "virt"))}
    what = [scoring(), model.identity(), texts, how, seed]
    key = files.sha256(json.dumps(what, sort_keys=True, default=str).encode())[:16]
    part = store.Part(folder / f"{files.slug(model.name)}-{key}.parquet", "soft prompt")
    if not part.finished():
        soft, losses = _train(model, texts, study, seed)
        record = {"losses": losses.to_dict("list"), "model": model.identity()}
        store.write(part, pd.DataFrame(soft.numpy()).rename(columns=str), record)
    soft = torch.tensor(pd.read_parquet(part.path).to_numpy())
    return soft, pd.DataFrame(part.record()["losses"])


def _train(model, texts: list[str], study: GraphEvalSettings, seed: int):
    """AdamW; the learning rate falls linearly to 0."""
    batch, epochs = study.encoder_batch, study.encoder_epochs
    sequences = [ids[: model.context - study.virtual_tokens] for ids in model.tokens.prompts(texts)]
    order = np.random.default_rng(seed).permutation(len(sequences))
    held, kept = order[: len(order) // 10], order[len(order) // 10 :]
    with FORWARD, torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        tuned = _with_encoder(model, study.virtual_tokens, study.encoder_width).train()
        trained = [p for p in tuned.parameters() if p.requires_grad]
        optimizer = torch.optim.AdamW(trained, lr=study.encoder_lr, weight_decay=0.01)
        steps = max(epochs * -(-len(kept) // batch), 1)
        falling = lambda step: max(0.0, 1 - step / steps)
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, falling)
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
            validation = _loss(tuned, sequences, held, batch, model)
            rows.append((epoch, float(np.mean(losses)), validation))
        soft = tuned.get_prompt(1)[0].detach().float().cpu().contiguous()  # [tokens, D]
    model.hf_model.eval()
    return soft, pd.DataFrame(rows, columns=["epoch", "train", "validation"])


def _with_encoder(model, tokens: int, width: int):
    """The frozen model with a trainable prompt encoder of PEFT."""
    with extra("soft-prompts"):
        from peft import PromptEncoderConfig, TaskType, get_peft_model

    text = model.hf_model.config.get_text_config()
    config = PromptEncoderConfig(
        task_type=TaskType.CAUSAL_LM,
        num_virtual_tokens=tokens,
        encoder_hidden_size=width or model.hf_model.get_input_embeddings().weight.shape[1],
        encoder_reparameterization_type="MLP",
        encoder_dropout=0.0,
        num_attention_heads=getattr(text, "num_attention_heads", None) or 1,  # not used
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # peft calls transformers by an old name
        return get_peft_model(model.hf_model, config)


def _causal(sequences: list[list[int]], model) -> dict:
    """A batch with a causal loss. Padding on the left would part virtual tokens and text."""
    ids, mask = pad_right(sequences, model.device)
    return {"input_ids": ids, "attention_mask": mask, "labels": ids.masked_fill(mask == 0, -100)}


@torch.no_grad()
def _loss(tuned, sequences, rows, batch: int, model) -> float:
    """Mean loss (nats per token) over held-out sequences; NaN if there are none."""
    total, count = 0.0, 0
    for start in range(0, len(rows), batch):
        chosen = [sequences[i] for i in rows[start : start + batch]]
        n = sum(map(len, chosen))
        total, count = total + float(tuned(**_causal(chosen, model)).loss) * n, count + n
    return total / count if count else float("nan")
