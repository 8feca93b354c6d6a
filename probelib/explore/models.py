"""The shipped models: how they were trained, what they recall, and what their design requires."""

import numpy as np
import pandas as pd

from probelib import lm, report, stats
from probelib.organisms.behaviour import WELL
from probelib.report import Artifact

TRAINING = ["parameters", "width", "vocabulary", "tokens", "steps", "minutes", "trained on", "loss"]


def training_table(models: list[str]) -> Artifact:
    """Size of shipped models, and how they were trained (``organisms.train.record``)."""
    from probelib.organisms import train

    renamed = {"device": "trained on", "reads": "corpus", "corpus": "digest"}
    frame = pd.DataFrame(map(train.record, models)).rename(columns=renamed)
    loaded = list(map(lm.load, models))
    frame["parameters"] = [model.n_parameters for model in loaded]
    frame["width"] = [model.config.hidden_size for model in loaded]
    frame["vocabulary"] = [model.config.vocab_size for model in loaded]
    frame = frame.assign(model=models, minutes=frame["seconds"] / 60)
    return Artifact("models/training", frame[["model", *TRAINING, "corpus", "digest"]])


def recall_figure(recalled: pd.DataFrame) -> Artifact:
    """Share of facts recalled by exposure count; ``recalled``: ``behaviour.recall`` with ``model``.
    Drawn are the models of the largest family, with guessing as a stroke; the CSV has all."""
    family = recalled["model"].str.rsplit("-", n=1).str[0]
    drawn = report.marks(recalled[family == family.mode()[0]], "right")
    rows = drawn.rename(columns={"guess": "mirror"}).astype({"exposures": str})
    figure = report.dot_rows({"exposure count": rows}, "exposures", "model", "share recalled")
    claims = report.check("models/recall", rises=rise(recalled))
    return Artifact("models/recall", recalled, claims, figure)


def rise(recalled: pd.DataFrame) -> pd.DataFrame:
    """Share recalled of the facts taught ``WELL`` times or more minus that of the never-taught
    ones, one row per model: ``value``, ``low``, ``high`` (95 %, Newcombe 1998, method 10: from the
    Wilson intervals of both shares), ``n`` (facts). NaN without facts of both kinds."""
    found = {}
    for model, own in recalled.groupby("model", sort=False):
        ends = []
        for rows in (own[own["exposures"] >= WELL], own[own["exposures"] == 0]):
            right, n = round((rows["right"] * rows["n"]).sum()), rows["n"].sum()
            ends.append((right / n, *stats.wilson(right, n), n) if n else [np.nan] * 4)
        (well, well_low, well_high, often), (never, never_low, never_high, none) = ends
        low = well - never - np.hypot(well - well_low, never_high - never)
        high = well - never + np.hypot(well_high - well, never - never_low)
        found[model] = {"value": well - never, "low": low, "high": high, "n": often + none}
    return pd.DataFrame.from_dict(found, "index")


def requirements_table(required: pd.DataFrame) -> Artifact:
    """The requirements of the design (``behaviour.requirements``), printed as one row each."""
    inside = required["limit"].between(required["measured low"], required["measured high"])
    groups = required.assign(inside=inside).groupby(["requirement", "wanted", "limit"], sort=False)
    shown = groups.agg(
        models=("model", lambda names: names.iloc[0] if len(names) == 1 else len(names)),
        met=("met", "sum"),
        lowest=("measured", "min"),
        highest=("measured", "max"),
        inside=("inside", "sum"),
        artifacts=("limits", lambda names: "; ".join(dict.fromkeys(filter(None, names)))),
    )
    return Artifact("models/requirements", required, shown=shown.reset_index())
