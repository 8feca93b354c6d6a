"""A whole graph through a judge: how fast it is beside bare forwards, and how much of the time is the model's.

The yardsticks are bare loops over the same padded batches of statements: nothing but the model's body, with tokens that were
ready before. One stands behind the instruction, kept in a cache, as it must to give the same states; the other leaves the
instruction out, and so does less than what is asked. Seconds are CPU seconds of one thread.
"""

import tempfile
import time
from collections.abc import Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from probelib import grapheval, lm, prompts
from probelib.grapheval import judge, whole_graph
from probelib.grapheval.scores import instruction_text
from probelib.lm.internals.states import KEYS, PADDED, _batches, _prefix_cache, _repeated
from probelib.lm.plain import pad_right
from tests.benchmarks.measuring import alone, row, write_rows

NO_TEMPLATES = pd.DataFrame(columns=["relation", "template"])


def any_judge(reader: judge.Reader) -> judge.Judge:
    """A judge that was trained on noise: it takes the time that any takes."""
    width = reader.model.hf_model.get_input_embeddings().weight.shape[1]
    states = np.random.default_rng(0).normal(size=(64, width)).astype(np.float32)
    return judge.train(states, np.arange(64) % 3, np.ones(64), epochs=1, about={"states": reader.identity()})


def atlas_speed(name: str, rounds: int = 3, n_triples: int = 5000) -> dict:
    """Seconds of the whole path and of the bare loops over the same padded statements, taken in turns."""
    torch.set_num_threads(1)
    reader = judge.Reader(lm.load(name))
    kg = grapheval.verbalize(*grapheval.load_graph("atlas"), n_triples=n_triples)
    one, sample = any_judge(reader), grapheval.sample_statements(kg, len(kg.graph))
    before, after = prompts.split_instruction(reader.model.chat(instruction_text(reader.instruction)))
    ids = reader.model.tokenizer([f" {text}{after}" for text in sample["text"]], add_special_tokens=False)["input_ids"]
    past, budget = len(reader.model.tokens.prompts([before.removesuffix(" ")])[0]), reader.model.budget
    rows = _batches([len(i) for i in ids], PADDED * budget, past, KEYS * budget)
    batches = [[ids[i] for i in own] for own in rows]
    loops = {"behind": before.removesuffix(" "), "without": ""}
    bare(reader.model, batches[:3], loops["behind"])
    laps = []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder, inside(reader.model.hf_model.base_model) as seconds:
            started = time.process_time()
            whole_graph.judge_graph({"j": reader}, {"j": one}, kg, Path(folder))
            whole = time.process_time() - started
        lap = {"whole": whole, "share": sum(seconds) / whole}
        laps.append(lap | {loop: bare(reader.model, batches, prefix) for loop, prefix in loops.items()})
    return {"n": len(sample), **pd.DataFrame(laps).median()}


@contextmanager
def inside(body):
    """Gives the seconds of each forward of a model's body within it."""
    started, seconds = [], []
    hooks = (
        body.register_forward_pre_hook(lambda *_: started.append(time.process_time())),
        body.register_forward_hook(lambda *_: seconds.append(time.process_time() - started.pop())),
    )
    try:
        yield seconds
    finally:
        for hook in hooks:
            hook.remove()


def bare(model, batches: list[list[list[int]]], prefix: str) -> float:
    """Seconds of nothing but forwards of the body, behind a prefix that is forwarded once."""
    body = model.hf_model.base_model
    started = time.process_time()
    with torch.inference_mode():
        cache = _prefix_cache(model, body, model.tokens.prompts([prefix])[0] if prefix else [], None)
        for batch in batches:
            ids, mask = pad_right(batch, model.device)
            mask = torch.cat([mask.new_ones(len(batch), cache.get_seq_length()), mask], 1)
            again = _repeated(cache, len(batch))
            body(input_ids=ids, attention_mask=mask, past_key_values=again, use_cache=again is not None)
    return time.process_time() - started


def run(names: Sequence[str] = ("atlas-neox-0.15m", "atlas-llama-0.6m", "atlas-neox-2.4m")) -> list[dict]:
    """Rows (``measuring.row``) of a small, a middle and a large model."""
    rows = []
    for name in names:
        took = alone(atlas_speed, name)["result"]
        rows.append(row(f"{name}, speed by a bare forward's", took["behind"] / took["whole"], "x", 0.8))
        rows.append(row("by one that leaves the instruction out", took["without"] / took["whole"], "x", None))
        rows.append(row("its statements", took["n"] / took["whole"], "statements/s", None))
        rows.append(row("share of the time in the model", took["share"], "", 0.85))
    return rows


def main() -> None:
    write_rows("judge", run())


if __name__ == "__main__":
    main()
