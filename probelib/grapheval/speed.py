"""Speed of answers by generation and by the judge (GraphEval, table 4)."""

from functools import partial

import numpy as np
import pandas as pd

from probelib.grapheval.scores import GraphEvalSettings, statement_prompts
from probelib.lm.internals.memory import measured

BATCH, GENERATED = 64, 400  # GENERATED: statements of a timed run of generation in batches
ALONE, TOGETHER = "generation, one by one", f"generation, batches of {BATCH}"
SHORT = f"generation, {BATCH}, 8 tokens"


def measure_speeds(
    models: dict, substitute: pd.Series, readers: dict, sample, study: GraphEvalSettings
) -> pd.DataFrame:
    """Statements per second of every model, by generated answers and by reading states
    (``readers``: as for ``judge.predict_all_held_out``): ``model``, ``substitute``, the columns of
    ``time_method`` per ``method``, ``machine``."""
    rows, statements = [], sample["text"].tolist()
    for name, small in substitute.items():
        model = models[name]
        prompts = statement_prompts(sample, model)["text"].tolist()
        write = lambda n, batch, m=model: partial(m.generate, max_new_tokens=n, batch=batch)
        some, most = prompts[:GENERATED], study.new_tokens
        works = {
            ALONE: (model, prompts[: study.n_alone], write(most, 1)),
            TOGETHER: (model, some, write(most, BATCH)),
            SHORT: (model, some, write(8, BATCH)),
        }
        keys = {"judge, own states": (name, ""), "judge, substitute": (small, "")}
        for method, key in (keys | {"judge, substitute, soft prompt": (small, name)}).items():
            works[method] = (readers[key].model, statements, readers[key].states)
        known = {"model": name, "substitute": small}
        for method, work in works.items():
            rows.append(known | {"method": method} | time_method(model, *work))
            rows[-1]["machine"] = model.describe()["device_name"]
    return pd.DataFrame(rows)


def time_method(model, used, texts: list[str], work, times: int = 3) -> dict:
    """``facts/s`` (median of ``times`` runs after a warm-up; low and high: slowest and fastest),
    ``n``, ``peak MB``, ``devices`` (over which the model ``used`` is spread)."""
    work(texts[:2])
    runs = [measured(model.device, lambda: work(texts)) for _ in range(times)]
    low, middle, high = np.quantile([len(texts) / run["seconds"] for run in runs], [0, 0.5, 1])
    places = getattr(used.hf_model, "hf_device_map", {"": 0}).values()
    row = {"facts/s": middle, "facts/s low": low, "facts/s high": high, "n": len(texts)}
    peak = max(run["peak_bytes"] for run in runs) / 1e6
    return row | {"peak MB": peak, "devices": len(set(map(str, places)))}
