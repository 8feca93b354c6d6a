"""GraphEval's figures of appendix A, on the judge: measured numbers -> ``report.Artifact``."""

import textwrap

import numpy as np
import pandas as pd

from probelib import published
from probelib.grapheval.figures import in_legend
from probelib.grapheval.quality import SCORES
from probelib.report import span
from probelib.report.legacy import Artifact
from probelib.report.charts import grouped_bars, heat, style_at
from probelib.stats import wilson


def figure4(compared: pd.DataFrame, differences: pd.DataFrame, seeds: int, instruction: str = "at once") -> Artifact:
    """Figure 4: judges, last-token logits and the baseline: precision, recall and F1.

    compared     ``quality.compare_with_baselines``;  differences: ``quality.judge_differences``
    seeds        judges per score
    """
    caption = (
        "Weighted precision, recall (= accuracy) and F1 of predicted outcomes on "
        f"{compared['n'].max():.0f} held-out statements: judges (mean of {seeds}) and last-token logits, both on "
        f'the substitute\'s states, behind the instruction ("{instruction}") or the soft prompt, and the majority given '
        "the truth: the most frequent outcome among the true or the false statements. Whiskers: 95 % intervals over "
        "statements (bootstrap; of recall Wilson's). n/a: the logits are the first word of the model's own answer. The "
        "CSV also has the majority without the truth, and macro F1."
    )
    alt = "Grouped bars for judges, logits and the majority, three panels for precision, recall and F1."
    finding = finding4_judge(differences)
    return Artifact("grapheval/figure4", compared, caption, finding, figure=_quality_panels(compared), alt=alt)


def _quality_panels(compared: pd.DataFrame):
    """Three panels of grouped bars: a group per model, a bar per method of prediction."""
    import matplotlib.pyplot as plt

    shown = compared[compared["by"] != "majority"].replace(
        {"by": {"majority, truth known": "majority given the truth"}}
    )
    models, kinds = shown["model"].unique(), list(dict.fromkeys(shown["by"]))
    figure, axes = plt.subplots(3, 1, figsize=(4.2, 4.8), sharex=True)
    wide = shown.pivot(index="model", columns="by").reindex(index=models)
    wide.index = [textwrap.fill(in_legend(model), 16) for model in models]
    for axis, score in zip(axes, SCORES, strict=True):
        grouped_bars(axis, *(wide[value][kinds] for value in (score, f"{score} low", f"{score} high")))
        axis.set(ylabel="F1" if score == "f1" else score, ylim=(0, 1.02))
        for text in axis.texts:
            text.set(text="n/a", fontsize=7.5, rotation=90)
        left, width, top = (
            np.array([getattr(bar, f"get_{x}")() for bar in axis.patches]) for x in ("x", "width", "height")
        )
        axis.hlines(top, left, left + width, color="0.25", linewidth=0.8)  # white hatching hides the tops
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=2)
    return figure


def finding4_judge(differences: pd.DataFrame) -> str:
    """For how many models the judge beats the logits (with the instruction, with the soft prompt) and the majority, and how the
    soft prompt changes its accuracy, by paired intervals."""
    by = {name: rows.set_index("model") for name, rows in differences.groupby("difference")}
    majority, soft, *_ = (by.get(name, differences[:0].set_index("model")) for name in DIFFERENCES)
    above = int((majority["low"] > 0).sum())
    floor = (
        f"With the instruction, the judge beats the majority given the truth for {above} of {len(majority)} "
        f"({_changes(majority)}). "
    )
    worse, better = int((soft["high"] < 0).sum()), int((soft["low"] > 0).sum())
    costs = "no change stands out, as in the paper"
    if worse or better:
        costs = f"beyond the interval it costs accuracy for {worse} of {len(soft)} and gains it for {better}"
        costs += " (in the paper no change stands out)"
    changed = f"The soft prompt in place of the instruction changes the judge's accuracy by {_changes(soft)}: {costs}."
    return f"{_against_logits(by)}{floor}{changed}"


def _against_logits(by: dict[str, pd.DataFrame]) -> str:
    """For how many models the judge beats the logits, with the instruction and with the soft prompt; "" without logits."""
    asked, soft, spoilt = (by.get(name) for name in DIFFERENCES[2:])
    counts = [
        f"for {(rows['low'] > 0).sum()} of {len(rows)} models with the {prompt} ({_changes(rows)})"
        for rows, prompt in ((asked, "instruction"), (soft, "soft prompt"))
        if rows is not None
    ]
    if not counts:
        return ""
    beats, n = (
        sum(f(rows) for rows in (asked, soft) if rows is not None) for f in (lambda r: (r["low"] > 0).sum(), len)
    )
    claim = "in part" if beats else "nowhere"
    if beats == n:
        claim = "in all of these cases"
    elif soft is not None and beats == (soft["low"] > 0).sum() > 0:
        claim = "with the soft prompt only"
    said = (
        f"Beyond a paired 95 % interval the judge beats the logits {' and '.join(counts)}: the paper's advantage of the "
        f"judge is shown {claim}. "
    )
    if spoilt is None:
        return said
    below = (spoilt["high"] < 0).sum()
    return (
        f"{said}After the soft prompt, the logits lie below the majority given the truth for {below} of {len(spoilt)}. "
    )


DIFFERENCES = (
    "judge - majority",
    "soft prompt - instruction",
    "judge - logits",
    "judge - logits, soft prompt",
    "logits - majority, soft prompt",
)


def _changes(rows: pd.DataFrame) -> str:
    """ "model +.05 [.01, .09]" of every model."""
    return "; ".join(
        f"{in_legend(model)} {row['change']:+.3f} {span(row['low'], row['high'], '.3f')}"
        for model, row in rows.iterrows()
    )


def table3(quality: pd.DataFrame, baselines: pd.DataFrame) -> Artifact:
    """Table 3: judges on states of one model (rows) for the answers of another (columns), as a picture of the matrix.

    quality  ``quality.held_out_quality``;  baselines: ``quality.baseline_quality``
    """
    behind_instruction = quality[quality["prompt"] == ""].drop(columns=["prompt", "seed"])
    groups = behind_instruction.groupby(["states of", "answers of"], sort=False)
    means = groups.mean().reset_index()
    caption = (
        "Accuracy (weighted recall) of judges on the states of one model (rows) for the answers of another (columns), with "
        f"the instruction, and its 95 % Wilson interval; mean of {groups.size().max()} judges, "
        f"{means['n'].max():.0f} held-out statements. The CSV also has precision, F1 and macro F1."
    )
    alt = "Matrix of accuracies: states of one model, answers of another."
    printed = published.table("grapheval/table3")
    finding = finding3(means, baselines)
    return Artifact("grapheval/table3", means, caption, finding, figure=_matrix(means), alt=alt, published=printed)


def _matrix(means: pd.DataFrame):
    """Accuracy by states (rows) and answers (columns), with intervals in the cells."""
    import matplotlib.pyplot as plt

    order = list(dict.fromkeys(means["answers of"]))
    wide = means.pivot(index="states of", columns="answers of").reindex(list(dict.fromkeys(means["states of"])))
    table = wide["recall"][order].rename(index=in_legend, columns=in_legend)
    figure, axis = plt.subplots(figsize=(3.4, 0.9 + 0.45 * len(table)))
    heat(axis, table, low=0, high=1, colours="Blues")
    cells = [(wide["recall low"][m].iloc[i], wide["recall high"][m].iloc[i]) for i in range(len(table)) for m in order]
    for text, (low, high) in zip(axis.texts, cells, strict=True):
        text.set(text=f"{text.get_text()}\n[{low:.2f}, {high:.2f}]", fontsize=7)
    axis.set(xlabel="answers of", ylabel="states of")
    return figure


def finding3(means: pd.DataFrame, baselines: pd.DataFrame) -> str:
    """Whether states of any model serve the judge equally well, as the paper says; "" for one model."""
    if means["states of"].nunique() == 1:
        return ""
    own = means["states of"] == means["answers of"]
    floor = baselines[baselines["by"] == "majority, truth known"].set_index("model")["recall"]
    by_answers = means.groupby("answers of")["recall"]
    gap, half = (by_answers.max() - by_answers.min()).max(), ((means["recall high"] - means["recall low"]) / 2).mean()
    others = means[~own]
    level = (others["recall low"] <= others["answers of"].map(floor)).sum()
    verdict = (
        "so any model's states will do, as in the paper (differences up to 0.04)"
        if gap <= max(0.04, half)
        else "so not any model's states will do, unlike in the paper (differences up to 0.04)"
    )
    why = (
        f" In {level} of {len(others)} pairs of different models the judge does not exceed the majority beyond its interval: "
        "no link of these states with the answers is shown."
    )
    return (
        f"Accuracy is {_range(means.loc[own, 'recall'])} on a model's own states and {_range(others['recall'])} on another's; "
        f"the majority given the truth reaches {_range(floor)}. It changes by up to {gap:.3f} with the states that are read "
        f"(half an interval: {half:.3f}), {verdict}.{why if gap > max(0.04, half) else ''}"
    )


def _range(values: pd.Series) -> str:
    return f"{values.min():.3f} to {values.max():.3f}" if len(values) else "undefined"


def reliability_figure(curves: pd.DataFrame, errors: dict[str, float], seeds: int) -> Artifact:
    """Reliability of the judges' probabilities (not in the paper).

    curves, errors  ``quality.calibration``
    """
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(4.2, 3.4))
    axis.plot([0.3, 1], [0.3, 1], color="0.6", lw=0.8, ls=":")
    for i, (model, rows) in enumerate(curves.groupby("model", sort=False)):
        rows = rows[rows["n"] > 4]  # smaller bins are in the CSV only
        intervals = [wilson(round(n * share), n) for n, share in zip(rows["n"], rows["right"], strict=True)]
        low, high = np.array(intervals).reshape(-1, 2).T
        bars = np.clip([rows["right"] - low, high - rows["right"]], 0, None)
        style = style_at(i) | {"label": f"{in_legend(model)}, ECE {errors[model]:.3f}"}
        axis.errorbar(rows["probability"], rows["right"], bars, capsize=2, **style)
    axis.set(xlabel="probability of the predicted answer", ylabel="share predicted correctly", ylim=(0, 1.03))
    figure.legend(*axis.get_legend_handles_labels(), loc="outside upper center", ncols=1)
    caption = (
        f"Reliability of the judges (probabilities averaged over {seeds}) on "
        f"{curves.groupby('model')['n'].sum().max()} held-out statements, in bins of 0.1 (those with at least "
        "five are drawn). Bars: 95 % Wilson; dotted: perfect calibration."
    )
    alt = "Share predicted correctly over the judge's probability, a line per model."
    finding = finding_reliability(curves, errors)
    return Artifact("grapheval/reliability", curves, caption, finding, figure=figure, alt=alt)


def finding_reliability(curves: pd.DataFrame, errors: dict[str, float]) -> str:
    """The calibration errors, and for how many models the judge's mean probability lies outside the interval of its accuracy."""
    said, over, under = [], 0, 0
    for model, rows in curves.groupby("model", sort=False):
        n = rows["n"].sum()
        mean, right = ((rows[column] * rows["n"]).sum() / n for column in ("probability", "right"))
        low, high = wilson(round(right * n), n)
        over, under = over + (mean > high), under + (mean < low)
        said.append(f"{in_legend(model)} {mean:.2f} against {right:.2f} {span(low, high)}")
    return (
        f"The judges' mean probability lies above the 95 % interval of their accuracy for {over} of {len(said)} models and "
        f"below it for {under} ({'; '.join(said)}). Expected calibration error: {min(errors.values()):.3f} to "
        f"{max(errors.values()):.3f}."
    )


def learning_curve_figure(learning: pd.DataFrame, sizes: list[int], baselines: pd.DataFrame) -> Artifact:
    """Accuracy over the number of labels, chosen at random or by the judge's uncertainty (not in the paper).

    learning, sizes  ``learning_curve.learning_curves``
    baselines        ``quality.baseline_quality``: baselines without a judge, drawn as horizontal lines
    """
    import matplotlib.pyplot as plt

    groups = learning.groupby(["model", "how", "labels"], sort=False)["accuracy"]
    curve = groups.agg(["mean", "min", "max"]).reset_index()
    models = curve["model"].unique()
    figure, axes = plt.subplots(1, len(models), figsize=(4.4, 2.6), sharey=True, squeeze=False)
    for axis, (model, rows) in zip(axes[0], curve.groupby("model", sort=False), strict=True):
        for (how, own), (marker, line) in zip(rows.groupby("how"), (("o", "-"), ("s", "--")), strict=True):
            axis.plot(own["labels"], own["mean"], marker=marker, ls=line, label=how)
            axis.fill_between(own["labels"], own["min"], own["max"], alpha=0.15)
        floor = baselines[(baselines["model"] == model) & (baselines["by"] == "majority, truth known")]
        axis.axhline(floor["recall"].iloc[0], color="0.4", linestyle=":", linewidth=1, label="majority")
        axis.set(xscale="log", xlabel="labels")
        axis.set_title(textwrap.fill(in_legend(model), 13), fontsize=8)
        axis.set_xticks(sizes, sizes, rotation=90, fontsize=7.5)
        axis.set_xticks([], minor=True)
    axes[0, 0].set(ylabel="accuracy")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=3)
    level = baselines.rename(columns={"by": "how", "recall": "mean"})[["model", "how", "mean"]]
    caption = (
        f"Accuracy on {baselines['n'].max():.0f} held-out statements against the number of labels, chosen at random or by the "
        f"judge's uncertainty; mean and range of {learning['seed'].nunique()} seeds; dotted: the most frequent outcome of the "
        "true and of the false statements (the CSV also has that of all). The y axis is cut to the values. Fragile: every "
        "point is a small judge trained anew, and a processor that rounds otherwise may move it by up to 0.1."
    )
    alt = "Accuracy over labels, two lines per model: random and uncertain."
    frame = pd.concat([curve, level], ignore_index=True)
    finding = finding_learning(learning, sizes)
    return Artifact("grapheval/learning_curve", frame, caption, finding, figure=figure, alt=alt)


def finding_learning(learning: pd.DataFrame, sizes: list[int]) -> str:
    """Gain of choosing by uncertainty at the middle number of labels, compared with the mean absolute difference by chance."""
    runs = learning.pivot(index=["model", "seed", "labels"], columns="how", values="accuracy")
    differences = (runs["uncertain"] - runs["random"]).round(6).groupby("labels")
    gain = differences.agg(["mean", "min", "max", "size"]).assign(absolute=differences.agg(lambda d: d.abs().mean()))
    middle, last = (gain.loc[size].round(3) + 0.0 for size in (sizes[len(sizes) // 2], sizes[-1]))  # + 0.0: no -0.000
    verdict = (
        "so choosing by uncertainty gains more than chance"
        if middle["mean"] > last["absolute"]
        else "so no gain beyond chance is shown"
    )
    return (
        f"With {middle.name} labels, choosing by uncertainty changes accuracy by {middle['mean']:+.3f} on average "
        f"({middle['min']:+.3f} to {middle['max']:+.3f} in {middle['size']:.0f} runs). With all {last.name} labels, where "
        f"nothing is left to choose, two runs still differ by {last['absolute']:.3f} on average ({last['min']:+.3f} to "
        f"{last['max']:+.3f}), {verdict}."
    )
