"""Multiple choice from any frame of candidate scores, such as those of other programs.

The choice is ZP-LKE's (``zplke.choices``): the candidate with the highest log-probability; a tie
with the gold answer is wrong. ``imported.read`` reads the scores.
"""

from pathlib import Path

import numpy as np
import pandas as pd
import scipy

from probelib import facts, report, stats
from probelib.beyond.artifacts import PAPER_COLOURS
from probelib.facts.text import read_yaml
from probelib.report import Artifact, check
from probelib.stats import wilson
from probelib.zplke import measures as zplke

BLUE, ORANGE, GREEN = (PAPER_COLOURS[paper] for paper in ("monitor", "zplke", "distractors"))


def choose_candidates(scores: pd.DataFrame) -> pd.DataFrame:
    """One row per fact: ``model``, ``wrong`` (number of wrong candidates), ``beaten`` (those
    strictly less probable than the gold answer), ``chosen`` (label), and the columns of
    ``zplke.choices``.

    scores  of one model: ``model``, ``relation``, ``fact``, ``candidate``, ``label``, ``gold`` (the
            right candidate), ``logprob`` (nats)
    """
    # candidates of a fact may have prompts of their own
    scores = scores.assign(prompt=scores["fact"])
    gold = dict(zip(scores["fact"], scores["gold"], strict=True))
    chosen = zplke.choices(scores, gold)
    right = scores[scores["candidate"] == scores["gold"]].set_index("fact")["logprob"]
    beaten = (scores["logprob"] < scores["fact"].map(right)).groupby(scores["fact"]).sum()
    labels = scores.set_index(["fact", "candidate"])["label"]
    predicted = pd.MultiIndex.from_frame(chosen[["fact", "predicted"]])
    return chosen.assign(
        model=scores["model"].iloc[0],
        wrong=chosen["n_options"] - 1,
        beaten=chosen["fact"].map(beaten),
        chosen=labels.reindex(predicted).to_numpy(),
    )


def random_distractors(choices: pd.DataFrame, n: int) -> pd.DataFrame:
    """Expectation of Min@n and Avg@n [distractors, Eq. 2] over all draws of ``n`` random
    distractors: ``fact``, ``min`` = C(beaten, n) / C(wrong, n), ``avg`` = beaten / wrong, for every
    n.

    A fact with fewer than ``n`` wrong candidates takes all of them; one without any has NaN.

    >>> c = pd.DataFrame({"fact": ["a"], "wrong": [4], "beaten": [3]})
    >>> random_distractors(c, 2)[["min", "avg"]].values.tolist()
    [[0.5, 0.75]]
    """
    wrong, beaten = (choices[c].to_numpy(dtype=float) for c in ("wrong", "beaten"))
    # one more wrong candidate is drawn per turn, if there is one: [n, 1]
    turn = np.arange(n)[:, None]
    with np.errstate(invalid="ignore", divide="ignore"):
        beats = np.where(turn < wrong, (beaten - turn).clip(0) / (wrong - turn), 1.0)  # [n, facts]
        avg = beaten / wrong
    minimum = np.where(wrong > 0, beats.prod(0), np.nan)
    return pd.DataFrame({"fact": choices["fact"], "min": minimum, "avg": avg})


def gpt2_accuracy(choices: pd.DataFrame) -> Artifact:
    """Accuracy per relation with Wilson's interval, beside ``chance`` (1 / candidates); ``p``:
    one-sided exact binomial test, Holm-adjusted; ``choices``: ``choose_candidates``."""
    names, rows = facts.atlas().relations.set_index("relation")["name"].to_dict(), []
    names |= read_yaml(Path(__file__).with_name("bear_names.yaml"))
    for relation, group in choices.groupby("relation", sort=False):
        right, n, candidates = int(group["correct"].sum()), len(group), group["wrong"].mean() + 1
        p = scipy.stats.binomtest(right, n, 1 / candidates, "greater").pvalue
        share = (right / n, *wilson(right, n), 1 / candidates, p)
        rows.append((relation, names.get(relation, "–"), n, candidates, *share))
    columns = ["relation", "name", "n", "candidates", "accuracy", "accuracy low", "accuracy high"]
    table = pd.DataFrame(rows, columns=[*columns, "chance", "p"])
    table = table.assign(p=stats.holm(table["p"])).sort_values("accuracy", **stats.BEST_FIRST)
    gain = choices["correct"] - 1 / (choices["wrong"] + 1)
    low, high = stats.mean_interval(gain)
    above = {"value": gain.mean(), "low": low, "high": high, "n": len(gain)}
    return Artifact("beyond/gpt2_accuracy", table, check("beyond/gpt2_accuracy", chance=above))


def gpt2_confidence(choices: pd.DataFrame) -> Artifact:
    """Accuracy@K and reliability; ``choices``: ``choose_candidates``."""
    confidence, correct = choices["confidence"], choices["correct"]
    kept = zplke.accuracy_at(choices, [k / 20 for k in range(20)])
    curve = stats.reliability(confidence, correct)
    ends = wilson(curve["right"] * curve["n"], curve["n"])
    curve["right low"], curve["right high"] = ends
    bins = curve.rename(columns={"low": "bin from", "high": "bin to"})
    frame = pd.concat({"accuracy at K": kept, "reliability": bins}, names=["panel"])
    gap = confidence - correct
    low, high = stats.mean_interval(gap)
    over = {"value": gap.mean(), "low": low, "high": high, "n": len(gap)}
    name = "beyond/gpt2_confidence"
    figure = _confidence(kept, curve)
    return Artifact(name, frame.reset_index("panel"), check(name, over=over), figure)


def _confidence(kept: pd.DataFrame, curve: pd.DataFrame):
    figure, axes = report.subplots(report.COLUMN, 1.9, 1, 2)
    left, right = axes[0]
    left.fill_between(kept["K"], kept["low"], kept["high"], alpha=0.25, color=BLUE)
    left.plot(kept["K"], kept["accuracy"], color=BLUE, marker="o", markersize=2, label="accuracy")
    look = {"color": ORANGE, "linestyle": "--", "label": "share of facts kept"}
    left.plot(kept["K"], kept["share"], **look)
    unit = {"xlim": (0, 1), "ylim": (0, 1), "xticks": [0, 0.5, 1]}
    left.set(xlabel="confidence threshold K", ylabel="share", **unit)
    handles = left.get_legend_handles_labels()
    figure.legend(*handles, loc="outside upper left", ncols=2, fontsize=report.SMALL)
    right.plot([0, 1], [0, 1], color="0.7", linewidth=0.8)
    ends = curve["right low"], curve["right high"]
    right.vlines(curve["probability"], *ends, color=GREEN, linewidth=1)
    area = 60 * curve["n"] / curve["n"].max()  # square points
    right.scatter(curve["probability"], curve["right"], s=area, color=GREEN)
    right.set(xlabel="mean confidence", ylabel="share right", **unit)
    return figure


def gpt2_distractors(choices: pd.DataFrame) -> Artifact:
    """Min@n and Avg@n under random distractors."""
    ns = [n for n in (1, 2, 3, 5, 8, 12, 16, 24) if n <= choices["wrong"].max()]
    minimum = pd.DataFrame({n: random_distractors(choices, n)["min"] for n in ns})
    names = {"mean": "min", "low": "min low", "high": "min high", "n": "facts"}
    curves = stats.mean_band(minimum).rename_axis("n").rename(columns=names)
    average = stats.mean_band(random_distractors(choices, 1)[["avg"]]).loc["avg"]
    curves["all_taken"] = [int((choices["wrong"] < n).sum()) for n in ns]
    curves["avg"], curves["avg low"], curves["avg high"] = average[["mean", "low", "high"]]
    curves = curves.reset_index()
    figure, axes = report.subplots(report.COLUMN, 2.3)
    axis, first = axes[0, 0], curves.iloc[0]
    axis.axhspan(first["avg low"], first["avg high"], color=ORANGE, alpha=0.25, linewidth=0)
    axis.axhline(first["avg"], linestyle="--", color=ORANGE, label="Avg@n")
    ends = curves["min low"], curves["min high"]
    axis.fill_between(curves["n"], *ends, color=BLUE, alpha=0.25, linewidth=0)
    axis.plot(curves["n"], curves["min"], marker="o", color=BLUE, label="Min@n")
    look = {"color": "0.4", "linewidth": 0.8, "linestyle": ":", "label": "beats every candidate"}
    axis.axhline(choices["correct"].mean(), **look)
    axis.set(xlabel="random distractors n", ylabel="mean over facts", ylim=(0, 1))
    axis.legend(fontsize=report.SMALL)
    return Artifact("beyond/gpt2_distractors", curves, figure=figure)
