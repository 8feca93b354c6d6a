"""A whole graph through a judge: how much of the time is the model's, and how much memory a large graph takes.

``python -m tests.benchmarks judge`` takes two to four minutes. The yardstick is a bare loop over the same padded batches of
statements, without what stands before them: nothing but the model's body. Seconds are CPU seconds.
"""

import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from probelib import judge, lm, wholegraph
from probelib.facts.graph import synthetic, write_graph
from probelib.lm.plain import pad_right
from probelib.lm.states import PADDED_TOKENS, _batches
from tests.benchmarks.graphs import _row, alone

NO_TEMPLATES = pd.DataFrame(columns=["relation", "template"])


def any_judge(reader: judge.Reader) -> judge.Judge:
    """A judge that was trained on noise: it takes the time that any takes."""
    width = reader.lm.model.get_input_embeddings().weight.shape[1]
    states = np.random.default_rng(0).normal(size=(64, width)).astype(np.float32)
    return judge.train(states, np.arange(64) % 3, np.ones(64), epochs=1, about={"states": reader.identity()})


def atlas_speed(name: str, rounds: int = 3) -> dict:
    """Seconds of the whole path and of the bare loop over the same padded statements, taken in turns."""
    reader = judge.Reader(lm.load(name))
    world = wholegraph.world(*wholegraph.load("atlas", n_triples=5000))
    one, sample = any_judge(reader), wholegraph.sample(world, len(world.graph))
    ids = reader.lm.tokenizer([f" {text}\nAnswer:" for text in sample["text"]], add_special_tokens=False)["input_ids"]
    batches = [[ids[i] for i in rows] for rows in _batches([len(i) for i in ids], PADDED_TOKENS["cpu"])]
    bare(reader.lm, batches[:3])
    whole, forward, shares = [], [], []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            started = time.process_time()
            parts = wholegraph.evaluate(reader, {"j": one}, world, Path(folder))
            whole.append(time.process_time() - started)
            cost = wholegraph.cost(parts)
            shares.append(cost["seconds_forward"] / cost["seconds"])
        forward.append(bare(reader.lm, batches))
    return {"n": len(sample), "whole": np.median(whole), "bare": np.median(forward), "share": np.median(shares)}


def bare(model, batches: list[list[list[int]]]) -> float:
    started = time.process_time()
    with torch.inference_mode():
        for batch in batches:
            ids, mask = pad_right(batch, model.device)
            model.model.base_model(input_ids=ids, attention_mask=mask, use_cache=False)
    return time.process_time() - started


def large(folder: Path, most: int) -> int:
    """The first parts of a graph; how many statements they hold."""
    from probelib.facts.graph import open_graph

    reader = judge.Reader(lm.load("atlas-neox-0.15m"))
    world = wholegraph.world(open_graph(folder), NO_TEMPLATES, wholegraph.DEFAULT_TEMPLATE)
    parts = wholegraph.evaluate(reader, {"j": any_judge(reader)}, world, folder / "answers", most=most)
    return sum(part.record()["rows"] for part in parts[:most])


def run(
    names: tuple[str, ...] = ("atlas-neox-0.15m", "atlas-neox-2m"), n_triples: int = 1_000_000, most: int = 3
) -> list[dict]:
    """One row a measurement, as in ``graphs.run``."""
    rows = []
    for name in names:
        took = alone(atlas_speed, name)["result"]
        rows.append(_row(f"{name}, statements/s by a bare forward's", took["bare"] / took["whole"], "x", 0.8))
        rows.append(_row("its statements", took["n"] / took["whole"], "statements/s", None))
        rows.append(_row("share of the time in the model", took["share"], "", 0.85))
    with tempfile.TemporaryDirectory() as name:
        folder = write_graph(synthetic(n_triples), Path(name) / "graph")
        took = alone(large, folder, most)
    rows.append(
        _row(f"{n_triples:,} generated triples, {most} parts of them: peak memory", took["peak"], "GiB", 2, less=True)
    )
    rows.append(_row("its statements", took["result"] / took["seconds"], "statements/s", None))
    return rows


def main() -> None:
    print("what | value | wanted | ratio (1 or more: reached)")
    for row in run():
        wanted, ratio = ("-", "-") if row["wanted"] is None else (f"{row['wanted']:,}", f"{row['ratio']:.2f}")
        print(f"{row['what']} | {row['value']:,.2f} {row['unit']} | {wanted} | {ratio}")


if __name__ == "__main__":
    main()
