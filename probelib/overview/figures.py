"""The figures of the notebooks at the entrance, one function each."""

import numpy as np
import pandas as pd

from probelib import stats
from probelib.errors import ProbeError
from probelib.facts.model import Facts
from probelib.overview.scores import WORDINGS
from probelib.report.artifact import Artifact
from probelib.report.charts import model_style
from probelib.zplke import measures as zplke


def tour_figure1(ranked: pd.DataFrame, gold: str, question: str, model: str) -> Artifact:
    """The ten most probable candidates; ``ranked``: ``label`` and ``probability``, the most probable first."""
    import matplotlib.pyplot as plt

    top = ranked[["label", "probability"]].head(10)
    rank = ranked["label"].tolist().index(gold) + 1
    figure, axis = plt.subplots(figsize=(4.6, 2.8))
    bars = top.iloc[::-1]
    axis.barh(
        bars["label"], bars["probability"], color=["#de8f05" if label == gold else "#0173b2" for label in bars["label"]]
    )
    axis.set(xlabel="probability", title=question)
    return Artifact(
        "tour/figure1",
        top,
        caption=(
            f"Probability of the ten most probable of {len(ranked)} candidates after the question, by {model}. "
            "Orange: the gold answer."
        ),
        finding=f"**{gold}** has rank {rank} of {len(ranked)} candidates.",
        figure=figure,
        alt=f"Bar chart of ten candidates; the gold answer {gold} has rank {rank}.",
    )


def facts_figure1(entities: pd.DataFrame) -> Artifact:
    """Number of entities per popularity."""
    import matplotlib.pyplot as plt

    known = entities["popularity"].value_counts().reindex(range(1, 6), fill_value=0)
    figure, axis = plt.subplots(figsize=(4.2, 2.4))
    axis.bar(known.index, known.values, color="#0173b2")
    axis.set(xlabel="popularity", ylabel="entities")
    return Artifact(
        "facts/figure1",
        known.rename_axis("popularity").reset_index(name="entities"),
        caption=(
            "Entities of the atlas by popularity, from 1 (obscure) to 5 (known to nearly everyone), as estimated by its writers. "
            f"Left out: {(entities['popularity'] == 0).sum()} years and numbers, which have none."
        ),
        figure=figure,
        alt="Bar chart of the number of entities at each popularity from 1 to 5.",
    )


def models_figure1(records: dict[str, dict]) -> Artifact:
    """Training loss by step; ``records``: ``scores.training``."""
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(5.2, 3.2))
    curves = []
    for model, record in records.items():
        steps = 10 * np.arange(len(record["curve"]))
        curve = pd.Series(record["curve"], index=steps).rolling(15, min_periods=1).mean()
        axis.plot(curve.index, curve, label=model, **(model_style(model) | {"marker": ""}))
        curves.append(pd.DataFrame({"model": model, "step": curve.index, "loss": curve.to_numpy()}))
    axis.set(xlabel="step", ylabel="loss (nats per answer token)", ylim=(0, None))
    axis.legend(fontsize=7)
    return Artifact(
        "models/figure1",
        pd.concat(curves),
        caption=(
            "Training loss on answer tokens, mean of the last 150 steps. Steps of the encoder-decoder have another size: do not "
            "compare its curve step by step."
        ),
        figure=figure,
        alt="Loss curves of the shipped models, all falling; larger models end lower.",
    )


def models_figure2(recalled: pd.DataFrame) -> Artifact:
    """Share of questions answered rightly by exposure count; ``recalled``: ``behaviour.recall`` with ``model``."""
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(5.6, 3.4))
    levels = sorted(recalled["exposures"].unique())
    for model, own in recalled.groupby("model", sort=False):
        at = [levels.index(level) for level in own["exposures"]]
        axis.plot(at, own["right"], label=model, **(model_style(model) | {"markersize": 4}))
    axis.plot(
        range(len(levels)), recalled.groupby("exposures")["guess"].mean(), color="0.6", linestyle=":", label="guessing"
    )
    axis.set(xlabel="exposure count", ylabel="share answered rightly", ylim=(0, 1.02))
    axis.set_xticks(range(len(levels)), levels)
    axis.legend(fontsize=7, loc="upper left", bbox_to_anchor=(1.01, 1))
    return Artifact(
        "models/figure2",
        recalled,
        caption=(
            "Share of first questions whose greedy answer is a right object, by exposure count; up to "
            f"{recalled['n'].max()} facts per point, famous facts left out. Dotted: always answering with the most frequent "
            "object of the relation. The CSV has Wilson's 95 % intervals and the share of answers of the right type."
        ),
        finding=finding_recall(recalled),
        figure=figure,
        alt="Curves that rise from near 0 at no exposure to near 1 at 256 exposures; larger models rise earlier.",
    )


def finding_recall(recalled: pd.DataFrame) -> str:
    """Recall of never-taught and of well-taught facts over models."""
    never = recalled[recalled["exposures"] == 0].set_index("model")["right"]
    well = recalled[recalled["exposures"] >= 64].groupby("model")["right"].mean()
    return (
        f"Of facts taught 64 times or more, {well.min():.0%} ({well.idxmin()}) to {well.max():.0%} ({well.idxmax()}) are "
        f"recalled; of never-taught ones {never.min():.0%} to {never.max():.0%}."
    )


def models_figure3(answers: pd.DataFrame, gains: dict[str, pd.Series], hidden: list[str]) -> Artifact:
    """Multiple-choice accuracy by exposure count, one panel per wording.

    answers   ``scores.score_multiple_choice``
    gains     ``scores.list_gains``
    hidden    models that the CSV has and the picture does not show (instruction-tuned ones)
    """
    import matplotlib.pyplot as plt

    tests = answers.dropna(subset="wording")
    shown = tests[~tests["model"].isin(hidden)]
    figure, axes = plt.subplots(1, len(WORDINGS), figsize=(9.6, 3.1), sharey=True)
    levels = sorted(tests["exposures"].unique())
    for axis, wording in zip(axes, WORDINGS.values(), strict=True):
        for model, group in shown[shown["wording"] == wording].groupby("model", sort=False):
            share = group.groupby("exposures")["correct"].mean().reindex(levels)
            axis.plot(range(len(levels)), share, label=model, **(model_style(model) | {"markersize": 4}))
        axis.axhline(zplke.chance(tests), color="0.6", linewidth=0.8, linestyle=":")
        axis.set(title=wording, xlabel="exposure count", ylim=(0, 1.02))
        axis.set_xticks(range(len(levels)), levels, fontsize=7)
    axes[0].set_ylabel("accuracy")
    axes[-1].legend(*axes[0].get_legend_handles_labels(), fontsize=7, loc="upper left", bbox_to_anchor=(1.01, 1))
    return Artifact(
        "models/figure3",
        _by_exposures(tests),
        caption=(
            "Multiple-choice accuracy by the exposure count of the fact, for each wording; dotted: chance. The CSV has Wilson's "
            "95 % intervals."
        ),
        finding=finding_lists(gains),
        figure=figure,
        alt="Accuracy rises with the exposure count and with model size in every wording.",
    )


def _by_exposures(tests: pd.DataFrame) -> pd.DataFrame:
    """Accuracy per model, wording and exposure count, with Wilson's interval."""
    groups = tests.groupby(["model", "wording", "exposures"], sort=False)["correct"]
    frame = groups.agg(["mean", "sum", "size"]).reset_index()
    intervals = [stats.wilson(k, n) for k, n in zip(frame["sum"], frame["size"], strict=True)]
    frame["low"], frame["high"] = zip(*intervals, strict=True)
    return frame


def finding_lists(gains: dict[str, pd.Series]) -> str:
    """In how many relations a list retrieves more than questions."""
    against = [
        f"than {what} in {(gain > 0).sum()} of {len(gain)} relations ({100 * gain.mean():+.1f} points on average)"
        for what, gain in gains.items()
    ]
    return f"Over all decoders, a list retrieves more {' and '.join(against)}."


def models_figure4(
    answers: pd.DataFrame, panel: Facts, models: list[str], n_options: int, followed: str = ""
) -> Artifact:
    """Normalised probability of the gold object of one fact, per model and wording.

    followed   the fact; by default the first of those with an exposure count nearest to 16
    """
    import matplotlib.pyplot as plt

    exposures = answers.drop_duplicates("fact").set_index("fact")["exposures"].reindex(panel.facts["fact"])
    fact = followed or (exposures - 16).abs().idxmin()
    if fact not in exposures.index:
        raise ProbeError(f"followed={fact!r} is none of the {len(exposures)} facts; try {exposures.index[0]!r}")
    rows = answers[(answers["fact"] == fact) & answers["model"].isin(models)].dropna(subset="wording")
    wide = rows.pivot(index="model", columns="wording", values="q_gold").reindex(columns=list(WORDINGS.values()))
    wide = wide.reindex([model for model in models if model in wide.index])
    figure, axis = plt.subplots(figsize=(5.4, 2.8))
    for i, (wording, hatch) in enumerate(zip(wide.columns, ["", "//", ".."], strict=True)):
        axis.bar(np.arange(len(wide)) + 0.27 * (i - 1), wide[wording], 0.25, label=wording, color=f"C{i}", hatch=hatch)
    axis.set_xticks(range(len(wide)), [model.removeprefix("atlas-") for model in wide.index], rotation=30, ha="right")
    subject, obj = panel.facts.set_index("fact").loc[fact, ["subject", "object"]]
    axis.set(ylabel="probability among the options", ylim=(0, 1.02), title=f"{subject} – {obj}")
    axis.legend(fontsize=7, loc="upper left", bbox_to_anchor=(1.01, 1))
    return Artifact(
        "models/figure4",
        wide.reset_index(),
        caption=(
            f"Probability of the gold object among up to {n_options} options, for the fact {fact}, exposure count "
            f"{exposures[fact]}. No bar: encoder-decoders are not prompted with lists."
        ),
        figure=figure,
        alt=f"Bars for each model and wording for the fact {fact}.",
    )
