"""GraphEval's judge: a small network that predicts, from one hidden state, how a model would answer a statement.

    v [D]                          the last token's state after the final norm, of the model itself or of a substitute
    u = LayerNorm(GELU(W1 v + b1)) W1 [D, D]
    logits = A u + b               A [3, D]

Three modes:

    "answer"    one head; the classes are the model's answers (T, F, K). It never sees whether the statement is true
    "paper"     one head, ReLU; the classes are outcomes (right, wrong, don't know)
    "released"  two heads, A_true and A_false, selected by whether the statement is true; classes are outcomes. This judge is
                given the truth: it can reach ``quality.majority_given_truth`` without reading the state

Whatever the mode, ``predict`` returns probabilities of answers.
"""

import json
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
import torch
from torch import nn

from probelib import files
from probelib.errors import ProbeError, unknown
from probelib.grapheval.answers import Answer, answer_from_outcome, outcome
from probelib.grapheval.prompts import instruction_text
from probelib.prompts import split_instruction

MODES = ("answer", "paper", "released")
WIDE = 256  # width of a model's states from which shared prefixes are faster than padded batches


# Hidden states


@dataclass(frozen=True, eq=False)
class Reader:
    """Turn statements into hidden states of a model (the one judged, or its substitute), after an instruction (``prompts``) or
    after the virtual tokens of a soft prompt [tokens, D] that replaces the instruction."""

    model: object
    instruction: str = "at once"
    soft_prompt: torch.Tensor | None = None

    def states(self, statements: list[str]) -> tuple[np.ndarray, dict]:
        """Return last-token states [statements, D] and their cost. The instruction is forwarded once; wide models also forward
        common prefixes of statements once."""
        share = self.model.hf_model.get_input_embeddings().weight.shape[1] >= WIDE
        if self.soft_prompt is not None:
            return self.model.hidden_states(statements, soft_prompt=self.soft_prompt, share=share)
        before, after = split_instruction(self.model.chat(instruction_text(self.instruction)))
        blank = " " if before.endswith(" ") else ""  # a blank belongs to the word after it
        texts = [f"{blank}{statement}{after}" for statement in statements]
        return self.model.hidden_states(texts, before.removesuffix(blank), share=share)

    def identity(self) -> dict:
        """Everything that changes the states, except the device: stored in the record of a judge trained on them."""
        soft = self.soft_prompt
        text = self.model.chat(instruction_text(self.instruction))
        prompt = files.sha256(soft.numpy().tobytes())[:16] if soft is not None else text
        return {k: v for k, v in self.model.identity().items() if k != "device"} | {"prompt": prompt}


def substitute_readers(models: dict, substitute: pd.Series, instruction: str = "at once") -> dict[str, Reader]:
    """Map each model to a reader of its substitute with the instruction; models with one substitute share the reader."""
    readers = {name: Reader(models[name], instruction) for name in substitute.unique()}
    return {model: readers[name] for model, name in substitute.items()}


def word_answers(reader: Reader, states: np.ndarray) -> np.ndarray:
    """Answers [n] by the last token's logits of "Yes", "No" and "I": the baseline of figure 4. It costs the same forward pass
    as the judge and needs no training."""
    from probelib.lm.internals.states import word_logits

    return word_logits(reader.model, states, ["Yes", "No", "I"]).argmax(axis=1)


# The network


class Network(nn.Module):
    """The judge's layers for states of ``width`` D."""

    def __init__(self, width: int, mode: str = "answer"):
        super().__init__()
        if mode not in MODES:
            raise unknown("judge mode", mode, MODES)
        self.hidden = nn.Linear(width, width)
        self.activation = nn.ReLU() if mode == "paper" else nn.GELU()
        self.norm = nn.LayerNorm(width)
        heads = 2 if mode == "released" else 1
        self.weight = nn.Parameter(torch.empty(heads, width, 3))
        self.bias = nn.Parameter(torch.zeros(heads, 3))  # of two, only the first is used, as in the released code
        for head in self.weight:
            nn.init.xavier_normal_(head)

    def forward(self, states: torch.Tensor, true: torch.Tensor) -> torch.Tensor:
        """states [n, D], true [n] (0 or 1; used by "released" only) -> logits [n, 3]"""
        u = self.norm(self.activation(self.hidden(states)))  # [n, D]
        head = true.long() if len(self.weight) == 2 else torch.zeros_like(true, dtype=torch.long)
        return torch.einsum("nd,ndc->nc", u, self.weight[head]) + self.bias[0]


@dataclass(frozen=True)
class Judge:
    """A trained network. ``about``: the states it reads (``states``: ``Reader.identity()``), and how it was trained."""

    network: Network
    mode: str
    about: dict = field(default_factory=dict)

    @property
    def width(self) -> int:
        return self.network.hidden.in_features


def n_parameters(width: int, mode: str = "answer") -> int:
    """Number of trained parameters: D^2 + D, 2D of the norm, 3D + 3 per head.

    >>> n_parameters(4096, "released"), n_parameters(4096)
    (16814086, 16801795)
    """
    with torch.device("meta"):
        return sum(p.numel() for p in Network(width, mode).parameters())


def train(
    states: np.ndarray,
    answers,
    true,
    mode: str = "answer",
    epochs: int = 100,
    batch: int = 8,
    lr: float = 1e-4,
    seed: int = 0,
    about: dict | None = None,
) -> Judge:
    """Train a judge: cross-entropy, Adam, reshuffled every epoch, last epoch kept (GraphEval, section 3.2).

    states   [n, D] float32, one per statement
    answers  [n] ``Answer`` of the model
    true     [n]: whether the statement is true
    """
    _check_labels(states, answers, true)
    target = torch.as_tensor(np.array(answers if mode == "answer" else outcome(answers, true)))  # [n]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = Network(states.shape[1], mode)
        v, y = torch.tensor(np.asarray(states), dtype=torch.float32), torch.tensor(np.asarray(true, dtype=bool))
        optimizer = torch.optim.Adam(network.parameters(), lr=lr)
        for _ in range(epochs):
            for rows in torch.randperm(len(v)).split(batch):
                loss = nn.functional.cross_entropy(network(v[rows], y[rows]), target[rows])
                optimizer.zero_grad(set_to_none=True)
                loss.backward()
                optimizer.step()
    training = {"epochs": epochs, "batch": batch, "lr": lr, "seed": seed, "n": len(states)}
    return Judge(network.eval(), mode, training | (about or {}))


def predict(judge: Judge, states: np.ndarray, true) -> np.ndarray:
    """Return probabilities [n, 3] of the answers T, F, K.

    true  [n]: whether the statement is true. An "answer" judge does not use it. The others predict outcomes, which are converted
          into answers with it (and "released" selects its head by it)
    """
    if states.ndim != 2 or states.shape[1] != judge.width:
        source = judge.about.get("states", {}).get("model", "another model")
        raise ProbeError(
            f"the judge reads states of width {judge.width} (of {source}); the given states are {list(states.shape)}. Use the "
            "states of the model that it was trained on, or train a judge on these"
        )
    true = np.broadcast_to(np.asarray(true, dtype=bool), len(states))
    with torch.inference_mode():
        logits = judge.network(torch.as_tensor(states, dtype=torch.float32), torch.as_tensor(true.copy()))
        classes = torch.softmax(logits, dim=-1).numpy()
    if judge.mode == "answer":
        return classes
    columns = answer_from_outcome(np.tile([0, 1, 2], (2, 1)), np.array([[False], [True]]))  # [truth, class] -> answer
    # the same mapping backwards: T and F are exchanged or not
    return np.take_along_axis(classes, columns[true.astype(int)], axis=1)


def check(judge: Judge, reader: Reader) -> None:
    """Raise ProbeError if the judge was trained on states of another model, or with another prompt."""
    wanted, given = judge.about.get("states"), reader.identity()
    if wanted is not None and wanted != given:
        what = next(key for key in given if wanted.get(key) != given[key])
        raise ProbeError(
            f"the judge was trained on states of {wanted.get('model')}, not on these of {given['model']}: {what} was "
            f"{wanted.get(what)!r} in training and is {given[what]!r} here. Train a judge on these states, or use those states"
        )


def judge_digest(judge: Judge) -> str:
    """16 hex digits of a judge's weights and record, for the keys of its predictions."""
    from safetensors.torch import save as dump

    record = json.dumps([judge.mode, judge.about], default=str).encode()
    return files.sha256(dump(judge.network.state_dict()) + record)[:16]


def _check_labels(states: np.ndarray, answers, true) -> None:
    answers = np.asarray(answers)
    if states.ndim != 2 or not len(states) or not len(states) == len(answers) == len(true):
        raise ProbeError(
            f"{list(states.shape)} states, {len(answers)} answers, {len(true)} truth values: one of each per statement is needed"
        )
    if not np.isfinite(states).all():
        raise ProbeError("a hidden state is NaN or infinite; load the model with dtype='bfloat16' or 'float32'")
    if not np.isin(answers, list(Answer)).all():
        odd = sorted(set(answers.tolist()) - {0, 1, 2})
        raise ProbeError(
            f"answers {odd}: allowed are {[a.name for a in Answer]} (0, 1, 2); omit unevaluated statements"
        )


# Judges of several models


def train_judges(
    readers: dict[str, Reader], labels: pd.DataFrame, mode: str = "answer", seed: int = 0, **training
) -> tuple[dict[str, Judge], pd.DataFrame]:
    """Train the judge of each model on its training labels; return the judges, and the labels with ``predicted`` (the judge's
    answer to each statement).

    readers   model -> reader of its (substitute's) states
    labels    ``scores.label_statements``
    training  ``epochs``, ``batch``, ``lr`` of ``train``
    """
    judges, frames, states = {}, [], {}
    for model, reader in readers.items():
        rows = labels[labels["model"] == model]
        if reader not in states:
            states[reader], _ = reader.states(rows["text"].tolist())  # [statements, D]
        v, held = states[reader], (rows["split"] == "validation").to_numpy()
        answers, true, about = rows["answer"].to_numpy(), rows["true"].to_numpy(), {"states": reader.identity()}
        judges[model] = train(v[~held], answers[~held], true[~held], mode, seed=seed, about=about, **training)
        frames.append(rows.assign(predicted=predict(judges[model], v, true).argmax(axis=1)))
    return judges, pd.concat(frames, ignore_index=True)


def predict_held_out(states: np.ndarray, labels: pd.DataFrame, seeds: int = 3, seed: int = 0, **training) -> np.ndarray:
    """Train ``seeds`` judges on the training labels of one model; return their probabilities [seeds, held-out statements, 3].

    states  [statements, D]
    labels  of one model, in the order of the states: ``answer``, ``true``, ``split``
    """
    held = (labels["split"] == "validation").to_numpy()
    answers, true = labels["answer"].to_numpy(), labels["true"].to_numpy()
    judges = (train(states[~held], answers[~held], true[~held], seed=seed + i, **training) for i in range(seeds))
    return np.stack([predict(judge, states[held], true[held]) for judge in judges])


def predict_all_held_out(
    readers: dict[tuple[str, str], Reader], labels: pd.DataFrame, seeds: int = 3, seed: int = 0, **training
) -> tuple[dict, pd.DataFrame]:
    """Predict the held-out answers of every model from the states of every reader (figure 4, table 3, calibration).

    readers  (model whose states are read, prompt) -> reader; the prompt is "" for the instruction, else the model whose
             answers trained the soft prompt: only that model's answers are predicted from it
    returns  (model read, prompt, model predicted) -> probabilities [seeds, held-out statements, 3]; and the frame of the logits
             baseline: ``states of``, ``prompt``, ``answer``, one row per held-out statement
    """
    by_model = {model: rows.reset_index(drop=True) for model, rows in labels.groupby("model", sort=False)}
    sample = next(iter(by_model.values()))
    held = (sample["split"] == "validation").to_numpy()
    found, words = {}, []
    for (read, prompt), reader in readers.items():
        states, _ = reader.states(sample["text"].tolist())
        answers = word_answers(reader, states)[held]
        words.append(pd.DataFrame({"states of": read, "prompt": prompt, "answer": answers}))
        for model in [prompt] if prompt else by_model:
            found[read, prompt, model] = predict_held_out(states, by_model[model], seeds, seed, **training)
    return found, pd.concat(words, ignore_index=True)
