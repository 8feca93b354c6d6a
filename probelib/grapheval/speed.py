"""Speed of answers by generation and by the judge (GraphEval, table 4)."""

from functools import partial

import numpy as np
import pandas as pd

from probelib.grapheval.scores import GraphEvalSettings, statement_prompts
from probelib.lm.internals.memory import measured

BATCH, GENERATED = 64, 400  # GENERATED: statements of a timed run of generation in batches
ALONE, TOGETHER = "generation, one by one", f"generation, batches of {BATCH}"
SHORT = f"generation, batches of {BATCH}, at most 8 tokens"


def measure_speeds(
    models: dict, substitute: pd.Series, readers: dict, sample, study: GraphEvalSettings
) -> pd.DataFrame:
    """Statements per second of every model, by generated answers and by reading states
    (``readers``: as for ``judge.predict_all_held_out``): ``model``, ``substitute``, ``method``,
    ``machine``, and the columns of ``time_in_turns``."""
    works, statements = [], sample["text"].tolist()
    for name, small in substitute.items():
        model = models[name]
        prompts = statement_prompts(sample, model)["text"].tolist()
        write = lambda n, batch, m=model: partial(m.generate, max_new_tokens=n, batch=batch)
        own = {
            ALONE: (model, prompts[: study.n_alone], write(study.new_tokens, 1)),
            TOGETHER: (model, prompts[:GENERATED], write(study.new_tokens, BATCH)),
            SHORT: (model, prompts[:GENERATED], write(8, BATCH)),
        }
        keys = {"judge, own states": (name, ""), "judge, substitute": (small, "")}
        for method, key in (keys | {"judge, substitute, soft prompt": (small, name)}).items():
            own[method] = (readers[key].model, statements, readers[key].states)
        known = {"model": name, "substitute": small, "machine": model.describe()["device_name"]}
        works += [(known | {"method": method}, *work) for method, work in own.items()]
    return pd.DataFrame(time_in_turns(works))


def time_in_turns(works: list[tuple], times: int = 3) -> list[dict]:
    """The row of each work (row, model, texts, what reads them) with ``facts/s`` (median of
    ``times`` runs after a warm-up; low, high: slowest, fastest), ``n``, ``peak MB``, ``devices`` of
    the model. The works take turns, so that a busy machine slows all of them."""
    for _, _, texts, work in works:
        work(texts[:2])
    turns = [[measured(u.device, partial(w, t)) for _, u, t, w in works] for _ in range(times)]
    for (row, used, texts, _), runs in zip(works, zip(*turns, strict=True), strict=True):
        speeds = np.quantile([len(texts) / run["seconds"] for run in runs], [0.5, 0, 1])
        row |= dict(zip(("facts/s", "facts/s low", "facts/s high"), speeds, strict=True))
        row |= {"n": len(texts), "peak MB": max(run["peak_bytes"] for run in runs) / 1e6}
        row["devices"] = len({*map(str, getattr(used.hf_model, "hf_device_map", {"": 0}).values())})
    return [row for row, *_ in works]
