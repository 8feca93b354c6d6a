"""Exactness and speed of ``probelib.lm`` against what others run for the same requests; README.md
says what is measured.

Every time of theirs is taken between two of ours, so that each ratio compares neighbours.
Everything runs in one thread, so the process's CPU seconds are those of the clock on an idle
machine, and they hold on a busy one."""

import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median

import numpy as np
import pandas as pd
import torch
import transformers as hf
from transformers.utils import logging

from probelib import lm
from probelib.errors import ProbeError
from probelib.lm.tree import score_tree
from tests.bench import peers, workloads
from tests.bench.measuring import write_table

DIGITS = {"ours s": 2, "theirs s": 2}
GOALS = {"harness W1": 60, "harness W2": 5, "beams": 35, "batches": 1.7, "judge": 10, "sorted": 7}


@dataclass(frozen=True)
class Size:
    """How much is asked: ``subjects`` of W1, ``relations`` of W2 and W4, and how often."""

    subjects: int
    relations: int
    rounds: int


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        measure("scoring", folder, workloads.save_model(Path(folder)), Size(4, 2, 3), GOALS)


def measure(table: str, folder: str | Path, world: list, size: Size, goals: dict) -> None:
    """All workloads on the model of a folder; ``goals``: the wanted ratios."""
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    torch.set_num_threads(1)
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    ours = lm.load(str(folder))
    # as everybody loads it: nothing of ours in it
    theirs = hf.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    if ours.choose_path() != "tree":
        raise ProbeError("the fast path refused its own model")
    rows = []
    for work in (multiple_choice, monitor, statements):
        rows += work(ours, theirs, world, goals, size)
    write_table(table, pd.DataFrame(rows), DIGITS)


def multiple_choice(ours, theirs, world, goals, size: Size) -> list[dict]:
    """W1: a list of 50 examples, 100 options per subject; W2: four facts of a relation under three
    templates, 60 candidates each. The batch size, 1 or 32, was the harness's faster one before."""
    many = workloads.many_shot(world, size.subjects, relations=1)
    short, rows = workloads.templates(world, 4, size.relations), []
    for name, asked, batch in (("W1 many-shot", many, 1), ("W2 templates", short, 32)):
        try:
            harness = peers.harness(theirs, ours.tokenizer, batch)
        except ProbeError as error:
            print(f"({name}: {error}; left out)", flush=True)
            continue
        pairs = asked.pairs()
        run = partial(score, ours, asked), partial(harness, pairs)
        wanted = goals[f"harness {name[:2]}"]
        peer = f"lm-eval, batch {batch}"
        rows.append(compare(name, peer, len(pairs), *run, wanted, size.rounds))
    return rows


def score(model, asked: workloads.Requests) -> np.ndarray:
    """Log-probs [pairs]; no text has been tokenized before."""
    return fresh(model).logprobs(asked.prompts, asked.continuations)["logprob"].to_numpy()


def monitor(ours, theirs, world, goals, size: Size) -> list[dict]:
    """W4: 13 prompts per fact. Generation is compared on a fact of each relation, teacher-forced
    batches on 20."""
    few, many = (workloads.framings(world, facts, size.relations) for facts in (1, 20))
    tokenizer = ours.tokenizer
    beams = compare(
        "W4 MONITOR",
        "five beams, one prompt at a time",
        len(few.prompts),
        lambda: score(ours, few),
        lambda: peers.beams_one_by_one(theirs, tokenizer, few.prompts),
        wanted=goals["beams"],
        rounds=size.rounds,
        difference=lambda _, outputs: _beam_difference(ours, theirs, few.prompts, outputs),
    )
    about = "W4 MONITOR", "sorted batches of 32", len(many.prompts)
    run = lambda: score(ours, many), lambda: peers.sorted_batches(theirs, tokenizer, many.pairs())
    batches = compare(*about, *run, goals["batches"], size.rounds)
    return [beams, batches]


def _beam_difference(ours, theirs, prompts: list[str], outputs: list) -> float:
    """Largest difference between the beams' log-probs of what they wrote and ours of the same
    tokens."""
    contexts, branches, sums = ours.tokens.prompts(prompts), [], []
    for n, output in enumerate(outputs):
        length = int((output.beam_indices[0] >= 0).sum())  # a beam that ended is padded
        branches.append((n, tuple(output.sequences[0, len(contexts[n]) :][:length].tolist())))
        made = output.sequences, output.scores, output.beam_indices
        sums.append(theirs.compute_transition_scores(*made)[0].sum().item())
    scores, _, _ = score_tree(ours.hf_model, contexts, branches, ours.budget)
    return max(abs(float(tokens.sum()) - beam) for tokens, beam in zip(scores, sums, strict=True))


def statements(ours, theirs, world, goals, size: Size) -> list[dict]:
    """W3: the last token's state of 80 or 160 statements behind an instruction of 70 tokens."""
    texts = workloads.statements(world, 80 * size.relations)
    whole = [workloads.INSTRUCTION + text for text in texts]
    return [
        compare(
            "W3 statements",
            name,
            len(texts),
            lambda: fresh(ours).hidden_states(texts, prefix=workloads.INSTRUCTION)[0],
            lambda run=run: run(theirs, ours.tokenizer, whole),
            wanted,
            size.rounds,
        )
        for name, run, wanted in (
            ("GraphEval, padded batches of 64", peers.padded_states, goals["judge"]),
            ("no head, sorted batches of 32", peers.sorted_states, goals["sorted"]),
        )
    ]


class timed:
    """Runs ``call`` once; its ``result``, its ``wall`` and its process's ``cpu`` seconds."""

    def __init__(self, call: Callable):
        wall, cpu = time.perf_counter(), time.process_time()
        self.result = call()
        self.wall, self.cpu = time.perf_counter() - wall, time.process_time() - cpu


def fresh(model):
    """The model without the texts that it has tokenized before."""
    vars(model).pop("tokens", None)
    return model


def largest(left: np.ndarray, right: np.ndarray) -> float:
    return float(np.abs(left - right).max())


def compare(
    workload, peer, requests, ours, theirs, wanted, rounds, difference=largest, by="cpu"
) -> dict:
    """A row: ours, theirs, ours, theirs, ..., ours; each of theirs is divided by the mean of its
    two neighbours.

    by   whose seconds count, "cpu" or "wall"; the ratio by the other ones stands beside
    """
    ours()  # warms up
    own, other = [timed(ours)], []
    for _ in range(rounds):
        other.append(timed(theirs))
        own.append(timed(ours))
    ratios = {}
    for kind in ("cpu", "wall"):
        times, around = [getattr(t, kind) for t in other], [getattr(t, kind) for t in own]
        pairs = zip(times, around, around[1:], strict=False)
        ratios[kind] = [2 * t / (before + after) for t, before, after in pairs]
    counted, beside = ratios[by], ratios["wall" if by == "cpu" else "cpu"]
    ratio = median(counted)
    gap = difference(own[-1].result, other[-1].result)
    between = f" ({min(counted):.3g} to {max(counted):.3g})" if rounds > 1 else ""
    row = {
        "workload": workload,
        "against": peer,
        "requests": requests,
        "ours s": median(getattr(t, by) for t in own),
        "theirs s": median(getattr(t, by) for t in other),
        "ratio (range)": f"**{ratio:.3g}**{between}",
        "by the clock" if by == "cpu" else "by CPU time": f"{median(beside):.3g} x",
        "wanted": "" if wanted is None else f"{wanted}: {'met' if ratio >= wanted else 'MISSED'}",
        "difference": "" if np.isnan(gap) else f"`{gap:.1e}`",
    }
    print(*row.values(), sep=" | ", flush=True)
    return row


def tree_size(sequences: list[tuple[list[int], list[int]]]) -> tuple[int, int, int]:
    """Inner nodes of the prefix tree over (prompt ids, answer ids), how many of them predict a
    token of an answer, and all tokens. Counted without the code that is measured."""
    root, nodes, predicting, tokens = {}, 0, set(), 0
    for prompt, answer in sequences:
        node = root
        for depth, token in enumerate((prompt + answer)[:-1], start=1):
            if token not in node:
                node[token] = {}
                nodes += 1
            node = node[token]
            if depth >= len(prompt):
                predicting.add(id(node))
        tokens += len(prompt) + len(answer)
    return nodes, len(predicting), tokens
