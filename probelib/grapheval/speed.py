"""Speed of answers by generation and by the judge (GraphEval, table 4)."""

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from probelib.grapheval.scores import statement_prompts
from probelib.grapheval.settings import GraphEvalSettings
from probelib.lm.internals.memory import measured
from probelib.report import machine

if TYPE_CHECKING:  # torch takes seconds to import
    from probelib.grapheval.judge import Reader

BATCH = 64
GENERATED = 400  # statements of a timed run of generation in batches
ALONE, TOGETHER = "generation, one by one", f"generation, batches of {BATCH}"
SHORT = f"generation, {BATCH}, 8 tokens"


def measure_speeds(
    models: dict, substitute: pd.Series, readers: dict[tuple[str, str], "Reader"], sample, study: GraphEvalSettings
) -> pd.DataFrame:
    """Measure every model's statements per second: by generated answers, and by reading states in three ways.

    readers   as for ``judge.predict_all_held_out``
    study     its ``instruction``, ``new_tokens``, and ``n_alone``: statements that are also answered one by one
    returns   the columns of ``speeds`` with ``model`` and ``substitute``; the speed-up of each method over generation:
              ``by generation in batches``, ``by generation one by one``; ``machine``: of the model
    """
    frames = []
    for name, small in substitute.items():
        reading = {
            "judge, own states": readers[name, ""],
            "judge, substitute": readers[small, ""],
            "judge, substitute, soft prompt": readers[small, name],
        }
        prompts = statement_prompts(sample, models[name], study.instruction)["text"].tolist()
        texts = sample["text"].tolist()
        short = study.instruction == "at once"  # otherwise 8 tokens end before the verdict
        measured = speeds(models[name], prompts, reading, texts, study.new_tokens, study.n_alone, short)
        measured.insert(0, "substitute", small)
        measured.insert(0, "model", name)
        for column, method in (("by generation in batches", TOGETHER), ("by generation one by one", ALONE)):
            measured[column] = measured["facts/s"] / measured.set_index("method")["facts/s"][method]
        frames.append(measured.assign(machine=machine(models[name].device)))
    return pd.concat(frames, ignore_index=True)


def speeds(
    model,
    prompts: list[str],
    readers: dict[str, "Reader"],
    statements: list[str],
    new_tokens: int,
    alone: int,
    short: bool = True,
    times: int = 3,
) -> pd.DataFrame:
    """Statements per second of one model, each method after a warm-up: the median of ``times`` runs.

    model, prompts   the model that answers, and its prompts
    readers          name of a method -> reader of states
    new_tokens       longest generated answer; ``alone``: number of prompts that are also answered one by one
    short            also measure generation of 8 tokens
    returns          ``method``, ``facts/s``, ``slowest``, ``fastest``, ``n``, ``peak MB`` (see ``memory.measured``),
                     ``devices``
    """

    generate = lambda texts, tokens, batch: model.generate(texts, max_new_tokens=tokens, batch=batch)
    works = {
        ALONE: (prompts[:alone], lambda texts: generate(texts, new_tokens, 1)),
        TOGETHER: (prompts[:GENERATED], lambda texts: generate(texts, new_tokens, BATCH)),
    }
    if short:
        works[SHORT] = (prompts[:GENERATED], lambda texts: generate(texts, 8, BATCH))
    works |= {method: (statements, reader.states) for method, reader in readers.items()}
    rows = []
    for method, (texts, work) in works.items():
        work(texts[:2])
        runs = [measured(model.device, lambda texts=texts, work=work: work(texts)) for _ in range(times)]
        slowest, middle, fastest = np.quantile([len(texts) / run["seconds"] for run in runs], [0, 0.5, 1])
        row = {"method": method, "facts/s": middle, "slowest": slowest, "fastest": fastest, "n": len(texts)}
        used = readers[method].model if method in readers else model
        peak = max(run["peak_bytes"] for run in runs) / 1e6
        rows.append(row | {"peak MB": peak, "devices": _devices(used)})
    return pd.DataFrame(rows)


def _devices(model) -> int:
    """Number of devices that a model is spread over."""
    places = getattr(model.hf_model, "hf_device_map", {"": 0}).values()
    return len(set(map(str, places)))
