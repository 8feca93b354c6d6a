"""A real model's real scores: GPT-2 on BEAR (``imported``), one table and two figures."""

import pandas as pd

from probelib import facts, report, stats
from probelib.beyond import imported
from probelib.beyond.choice import accuracy_by_relation, random_distractors
from probelib.beyond.figures import BLUE, GREEN, ORANGE, with_wilson
from probelib.report import span
from probelib.report.legacy import Artifact
from probelib.zplke import measures as zplke


def gpt2_accuracy(choices: pd.DataFrame) -> Artifact:
    """Accuracy per relation of imported scores; ``choices``: ``choice.choose_candidates``."""
    table = accuracy_by_relation(choices).sort_values("accuracy", ascending=False, key=stats.levelled, kind="stable")
    overall, interval = choices["correct"].mean(), stats.wilson(choices["correct"].sum(), len(choices))
    chance = (1 / (choices["wrong"] + 1)).mean()
    names = facts.atlas().relations.set_index("relation")["name"].to_dict() | imported.NAMES
    table.insert(1, "name", table["relation"].map(names).fillna("–"))
    of_bear = set(choices["fact"]) <= set(pd.read_parquet(imported.GPT2, columns=["fact"])["fact"])
    caption = (
        f"Accuracy of {', '.join(choices['model'].unique())} per relation ({len(table)} relations{' of BEAR' * of_bear}, by "
        "Wikidata's number and name; n facts), with its 95 % Wilson interval: share of the facts whose right answer is the "
        "most probable candidate; candidates: their mean number per fact; chance: the accuracy of guessing, 1 / candidates; "
        "p: one-sided exact binomial test against chance, uncorrected. Over all "
        f"{len(choices):,} facts {overall:.4f} {span(*interval, '.4f')}, where chance is {chance:.4f} (mean of 1 / "
        f"candidates); mean over relations {table['accuracy'].mean():.4f}."
    )
    ends = [
        f"{row['name'] if row['name'] != '–' else row['relation']} ({row['accuracy']:.1%} "
        f"{span(row['low'], row['high'], '.1%')}, chance {row['chance']:.1%})"
        for _, row in table.iloc[[0, -1]].iterrows()
    ]
    finding = (
        f"The right answer comes first for {overall:.1%} of the facts {span(*interval, '.1%')}, by chance for {chance:.1%}; in "
        f"{(table['p'] < 0.025).sum()} of {len(table)} relations significantly more often than by chance (one-sided exact "
        f"binomial tests, p < .025; by chance {0.025 * len(table):.1f}). Best: {ends[0]}; worst: {ends[1]}."
    )
    decimals = {"candidates": 1} | dict.fromkeys(("accuracy", "low", "high", "chance"), 4)
    shown = table.assign(p=table["p"].map(stats.p_value_in_words))
    return Artifact("beyond/gpt2_accuracy", table, caption, finding, decimals=decimals, shown=shown)


def gpt2_confidence(choices: pd.DataFrame) -> Artifact:
    """Accuracy@K and reliability of imported scores; ``choices``: ``choice.choose_candidates``."""
    confidence, correct = choices["confidence"], choices["correct"]
    kept = zplke.accuracy_at(choices, [k / 20 for k in range(20)])
    curve = with_wilson(stats.reliability(confidence, correct))
    bins = curve.rename(columns={"low": "bin from", "high": "bin to"})
    frame = pd.concat({"accuracy at K": kept, "reliability": bins}, names=["panel"]).reset_index("panel")
    ece, half = stats.ece(confidence, correct), kept.iloc[10]
    pairs = (side.to_numpy(float)[:, None] for side in (confidence, correct))
    ends = stats.bias_corrected_interval(stats.ece_replicates(*pairs, times=500), ece)
    finding = (
        f"Confidence is {confidence.mean():.2f} on average, accuracy {correct.mean():.2f}: expected calibration error "
        f"{ece:.3f} {span(*ends, '.3f')}. The {half['kept']:,.0f} facts with confidence above .5 are right in "
        f"{half['accuracy']:.1%} {span(half['low'], half['high'], '.3f')}."
    )
    caption = (
        f"Scores of {', '.join(choices['model'].unique())}, n = {len(choices):,} facts. Left: Accuracy@K, among the facts "
        "with a confidence above K, with its 95 % Wilson band, and the share of the facts that are kept. Right: "
        "share right by confidence in ten bins, with 95 % Wilson intervals; the area of a dot is proportional to its number "
        f"of facts ({curve['n'].min():,} to {curve['n'].max():,}). A calibrated model lies on the diagonal. ECE = {ece:.3f} "
        f"(95 % bootstrap interval over facts {span(*ends, '.3f')}), Brier score {stats.brier(confidence, correct):.3f}."
    )
    alt = (
        f"Accuracy over the confidence threshold, from {kept['accuracy'].min():.2f} to {kept['accuracy'].max():.2f}, with the "
        f"share of facts kept, down to {kept['share'].min():.2f}; beside it a reliability diagram."
    )
    return Artifact("beyond/gpt2_confidence", frame, caption, finding, _confidence(kept, curve), alt)


def _confidence(kept: pd.DataFrame, curve: pd.DataFrame):
    figure, axes = report.column(1.9, 1, 2)
    left, right = axes[0]
    left.fill_between(kept["K"], kept["low"], kept["high"], alpha=0.25, color=BLUE)
    left.plot(kept["K"], kept["accuracy"], color=BLUE, marker="o", markersize=2, label="accuracy")
    left.plot(kept["K"], kept["share"], color=ORANGE, linestyle="--", label="share of facts kept")
    left.set(xlabel="confidence threshold K", ylabel="share", xlim=(0, 1), ylim=(0, 1), xticks=[0, 0.5, 1])
    figure.legend(*left.get_legend_handles_labels(), loc="outside upper left", ncols=2, fontsize=report.SMALL)
    right.plot([0, 1], [0, 1], color="0.7", linewidth=0.8)
    right.vlines(curve["probability"], curve["right low"], curve["right high"], color=GREEN, linewidth=1)
    area = 60 / curve["n"].max()  # square points per fact
    right.scatter(curve["probability"], curve["right"], s=area * curve["n"], color=GREEN)
    for n in key_sizes(curve["n"].max()):
        right.scatter([], [], s=area * n, color=GREEN, label=f"{n:,}")
    right.legend(title="facts", title_fontsize=report.SMALL, fontsize=report.SMALL, loc="upper left")
    right.set(xlabel="confidence, mean of a bin", ylabel="share right", xlim=(0, 1), ylim=(0, 1), xticks=[0, 0.5, 1])
    return figure


def key_sizes(most: int) -> list[int]:
    """The largest round number (1, 2 or 5 times a power of ten) up to ``most``, and a tenth of it: numbers for a legend of areas.

    >>> key_sizes(923), key_sizes(150), key_sizes(1)
    ([50, 500], [10, 100], [1])
    """
    round_numbers = [n * 10**power for power in range(9) for n in (1, 2, 5) if n * 10**power <= most]
    return sorted({max(1, round_numbers[-1] // 10), round_numbers[-1]})


def gpt2_distractors(choices: pd.DataFrame, ns: tuple[int, ...] = (1, 2, 3, 5, 8, 12, 16, 24)) -> Artifact:
    """Min@n and Avg@n of imported scores under random distractors."""
    ns = [n for n in ns if n <= choices["wrong"].max()]
    minimum = pd.DataFrame({n: random_distractors(choices, n)["min"] for n in ns})
    curves = stats.mean_band(minimum).rename_axis("n").rename(columns={"mean": "min", "n": "facts"})
    average = stats.mean_band(random_distractors(choices, 1)[["avg"]]).loc["avg"]
    curves = curves.assign(all_taken=[int((choices["wrong"] < n).sum()) for n in ns], avg=average["mean"])
    curves = curves.assign(avg_low=average["low"], avg_high=average["high"]).reset_index()
    first, last, every = curves.iloc[0], curves.iloc[-1], choices["correct"].mean()
    finding = (
        f"The right answer beats one random distractor for {first['min']:.1%} of the facts, {ns[-1]} of them for "
        f"{last['min']:.1%}, and every candidate for {every:.1%}."
    )
    caption = (
        f"Min@n and Avg@n under random distractors, over all draws, with 95 % bootstrap bands over {int(first['facts']):,} "
        f"facts. Avg@n does not depend on n. {int(last['all_taken']):,} facts have fewer than {ns[-1]} wrong candidates: "
        "all of "
        "theirs are taken (default D5). Dotted: the share of facts whose right answer beats every candidate."
    )
    alt = (
        f"Min@n falls from {first['min']:.2f} at n = 1 to {last['min']:.2f} at n = {ns[-1]}; Avg@n is a level line at "
        f"{average['mean']:.2f}."
    )
    return Artifact("beyond/gpt2_distractors", curves, caption, finding, _min_and_avg(curves, every), alt)


def _min_and_avg(curves: pd.DataFrame, every: float):
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(4.2, 2.8))
    first = curves.iloc[0]
    axis.axhspan(first["avg_low"], first["avg_high"], color=ORANGE, alpha=0.25, linewidth=0)
    axis.axhline(first["avg"], linestyle="--", color=ORANGE, label="Avg@n")
    axis.fill_between(curves["n"], curves["low"], curves["high"], color=BLUE, alpha=0.25, linewidth=0)
    axis.plot(curves["n"], curves["min"], marker="o", color=BLUE, label="Min@n")
    axis.axhline(every, color="0.6", linewidth=0.8, linestyle=":")
    axis.annotate("beats every candidate", (first["n"], every), (0, 3), textcoords="offset points", fontsize=7)
    axis.set(xlabel="random distractors n", ylabel="mean over facts", ylim=(0, 1))
    axis.legend()
    return figure
