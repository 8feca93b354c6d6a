"""GraphEval's judge: a small network that predicts, from one hidden state, how a model would answer
a statement (section 3.2).

    v [D]                          the last token's state after the final norm
    u = LayerNorm(GELU(W1 v + b1)) W1 [D, D]
    logits = A u + b               A [3, D]

    mode "answer"    one head; its classes are the model's answers
    mode "paper"     one head, ReLU; its classes are outcomes (right, wrong, don't know)
    mode "released"  two heads for outcomes, selected by whether the statement is true: this judge
                     can reach ``majority_given_truth`` without reading the state
"""

import json
from dataclasses import asdict, dataclass, field

import numpy as np
import pandas as pd
import torch
from torch import nn

from probelib import files
from probelib.errors import ProbeError, unknown
from probelib.grapheval import measures
from probelib.grapheval.measures import Answer, likeliest_answers, outcome
from probelib.lm.internals.states import word_logits
from probelib.prompts import INSTRUCTION, split_instruction

MODES = ("answer", "paper", "released")


@dataclass(frozen=True, eq=False)
class Reader:
    """Turn statements into hidden states of a model (the one judged, or its substitute), after an
    instruction or after the virtual tokens of a soft prompt [tokens, D] that replaces it."""

    model: object
    soft_prompt: torch.Tensor | None = None

    def states(self, statements: list[str]) -> tuple[np.ndarray, dict]:
        """Last-token states [statements, D] and their cost. The instruction is forwarded once."""
        if (soft := self.soft_prompt) is not None:
            return self.model.hidden_states(statements, soft_prompt=soft)
        before, after = split_instruction(self.model.chat(INSTRUCTION))
        blank = " " if before.endswith(" ") else ""  # a blank belongs to the word after it
        texts = [f"{blank}{statement}{after}" for statement in statements]
        return self.model.hidden_states(texts, before.removesuffix(blank))

    def identity(self) -> dict:
        """Everything that changes the states, except the device."""
        prompt = self.model.chat(INSTRUCTION)
        if self.soft_prompt is not None:
            prompt = files.sha256(self.soft_prompt.numpy().tobytes())[:16]
        own = {k: v for k, v in self.model.identity().items() if k != "device"}
        return own | {"prompt": prompt}


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
        self.bias = nn.Parameter(torch.zeros(heads, 3))  # only the first is used, as released
        for head in self.weight:
            nn.init.xavier_normal_(head)

    def forward(self, states: torch.Tensor, true: torch.Tensor) -> torch.Tensor:
        """states [n, D], true [n] (used by "released" only) -> logits [n, 3]"""
        u = self.norm(self.activation(self.hidden(states)))  # [n, D]
        head = true.long() if len(self.weight) == 2 else torch.zeros_like(true, dtype=torch.long)
        return torch.einsum("nd,ndc->nc", u, self.weight[head]) + self.bias[0]


@dataclass(frozen=True)
class Training:
    """How a judge is trained, with the paper's values."""

    epochs: int = 100
    batch: int = 8
    lr: float = 1e-4
    seed: int = 0


@dataclass(frozen=True)
class Judge:
    """A trained network. ``about``: how it was trained, and the identity of its reader."""

    network: Network
    mode: str
    about: dict = field(default_factory=dict)

    def digest(self) -> str:
        """16 hex digits of weights and record."""
        from safetensors.torch import save

        record = json.dumps([self.mode, self.about], default=str).encode()
        return files.sha256(save(self.network.state_dict()) + record)[:16]


def train(states: np.ndarray, answers, true, mode="answer", about=None, **training) -> Judge:
    """Train a judge: cross-entropy, Adam, reshuffled every epoch, last epoch kept. Raise ProbeError
    for states that are not finite, labels that are no answers, or too few of either.

    states    [n, D] float32, one per statement;  about: see ``Judge``
    answers   [n] ``Answer`` of the model;  true: [n], whether the statement is true
    training  fields of ``Training``
    """
    if not np.isfinite(states).all():
        raise ProbeError("a hidden state is NaN or infinite; load the model with dtype='float32'")
    answers = np.asarray(answers)
    if not len(states) == len(answers) == len(true) > 0:
        sizes = f"{len(states)} states, {len(answers)} answers, {len(true)} truth values"
        raise ProbeError(f"{sizes}: one of each per statement is needed")
    if not np.isin(answers, list(Answer)).all():
        raise ProbeError(f"answers {np.unique(answers)}: allowed are 0, 1, 2")
    how = Training(**training)
    target = torch.as_tensor(np.array(answers if mode == "answer" else outcome(answers, true)))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(how.seed)
        network = Network(states.shape[1], mode)
        v = torch.tensor(np.asarray(states), dtype=torch.float32)
        y = torch.tensor(np.asarray(true, dtype=bool))
        optimizer = torch.optim.Adam(network.parameters(), lr=how.lr)
        for _ in range(how.epochs):
            for rows in torch.randperm(len(v)).split(how.batch):
                loss = nn.functional.cross_entropy(network(v[rows], y[rows]), target[rows])
                optimizer.zero_grad(set_to_none=True)
                loss.backward()
                optimizer.step()
    return Judge(network.eval(), mode, asdict(how) | {"n": len(states)} | (about or {}))


def predict(judge: Judge, states: np.ndarray, true) -> np.ndarray:
    """Probabilities [n, 3] of the answers T, F, K. ``true`` [n]: whether the statement is true; by
    it predicted outcomes become answers (not used in mode "answer")."""
    if states.shape[1:] != (width := judge.network.hidden.in_features,):
        source = judge.about.get("states", {}).get("model", "another model")
        said = f"the judge reads states of width {width} (of {source})"
        raise ProbeError(f"{said}, not {list(states.shape)}")
    true = np.array(true, dtype=bool)
    with torch.inference_mode():
        v = torch.as_tensor(states, dtype=torch.float32)
        classes = torch.softmax(judge.network(v, torch.as_tensor(true)), dim=-1).numpy()
    if judge.mode == "answer":
        return classes
    columns = outcome(np.tile([0, 1, 2], (len(true), 1)), true[:, None])  # of T, F, K
    return np.take_along_axis(classes, columns, axis=1)


def check(judge: Judge, reader: Reader) -> None:
    """Raise ProbeError if the judge was trained on other states: another model, another prompt."""
    wanted, given = judge.about.get("states"), reader.identity()
    if wanted is not None and wanted != given:
        key = next(key for key in given if wanted.get(key) != given[key])
        said = f"the judge was trained on states of {wanted.get('model')}, not of {given['model']}"
        raise ProbeError(f"{said}: {key} was {wanted.get(key)!r} and is {given[key]!r} here")


def train_judges(
    readers: dict[str, Reader], labels: pd.DataFrame, mode: str = "answer", **training
) -> tuple[dict[str, Judge], pd.DataFrame]:
    """Train the judge of each model on its training labels (``scores.label_statements``); return
    the judges, and the labels with ``predicted`` (the judge's answer to each statement).
    ``readers``: model -> reader of its (substitute's) states."""
    judges, frames, states = {}, [], {}
    for model, reader in readers.items():
        rows = labels[labels["model"] == model]
        if reader not in states:
            states[reader], _ = reader.states(rows["text"].tolist())  # [statements, D]
        v, kept = states[reader], (rows["split"] == "train").to_numpy()
        answers, true = rows["answer"].to_numpy(), rows["true"].to_numpy()
        about = {"states": reader.identity()}
        judges[model] = train(v[kept], answers[kept], true[kept], mode, about, **training)
        frames.append(rows.assign(predicted=likeliest_answers(predict(judges[model], v, true))))
    return judges, pd.concat(frames, ignore_index=True)


def predict_all_held_out(
    readers: dict[tuple[str, str], Reader], labels: pd.DataFrame, seeds=3, seed=0, **training
) -> pd.DataFrame:
    """Predict the outcomes of every model's held-out statements (figure 4, table 3).

    readers  (model whose states are read, prompt) -> reader; the prompt is "" for the instruction,
             else the model whose answers trained the soft prompt: only these are predicted from it

    Return one row per prediction: ``by`` ("judge, instruction", "logits, soft prompt", ...),
    ``states of``, ``answers of``, ``seed``, ``statement``, ``truth`` (the outcome), ``predicted``.
    The logits are those of "Yes", "No" and "I" at the last token, left out where they are the first
    word of the answer itself. Majorities read no states.
    """
    groups, frames = dict(list(labels.groupby("model", sort=False))), []
    asked = next(iter(groups.values()))  # all models answer the same statements
    kept, y = (asked["split"] == "train").to_numpy(), asked["true"].to_numpy()
    answers = {model: own["answer"].to_numpy() for model, own in groups.items()}
    truth = {model: outcome(own, y) for model, own in answers.items()}

    def add(by: str, read: str, model: str, predicted: np.ndarray, i: int = 0) -> None:
        known = {"by": by, "states of": read, "answers of": model, "seed": i}
        known |= {"statement": asked["prompt"][~kept], "truth": truth[model][~kept]}
        frames.append(pd.DataFrame(known | {"predicted": predicted}))

    for (read, prompt), reader in readers.items():
        behind = "soft prompt" if prompt else "instruction"
        states, _ = reader.states(asked["text"].tolist())
        words = word_logits(reader.model, states[~kept], ["Yes", "No", "I"]).argmax(axis=1)
        for model in [prompt] if prompt else groups:
            for i in range(seeds):
                own = answers[model][kept]
                one = train(states[kept], own, y[kept], seed=seed + i, **training)
                said = likeliest_answers(predict(one, states[~kept], y[~kept]))
                add(f"judge, {behind}", read, model, outcome(said, y[~kept]), i)
            if prompt or read != model:
                add(f"logits, {behind}", read, model, outcome(words, y[~kept]))
    for model, classes in truth.items():
        add("majority", "", model, measures.majority(classes[kept], (~kept).sum()))
        given = measures.majority_given_truth(classes[kept], y[kept], y[~kept])
        add("majority, truth known", "", model, given)
    return pd.concat(frames, ignore_index=True)
