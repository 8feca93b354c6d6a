"""All that a model shows of a fact as one picture, and the same in words."""

import base64
import html
import io
import textwrap

import numpy as np

from probelib import lm, report
from probelib.explore.seen import ANSWERS, Look
from probelib.organisms import design

COLOURS = {"monitor": "#0173b2", "zplke": "#de8f05", "distractors": "#029e73", "grapheval": "#cc78bc"}


def board(seen: Look):
    """All of it as one picture, for a screen: anchors, lists, distractors, the judge, the history, the measures."""
    import matplotlib.pyplot as plt

    report.use_style()
    figure = plt.figure(figsize=(13.5, 7.6), layout="none")
    edges = {"left": 0.135, "right": 0.985, "top": 0.885, "bottom": 0.085}
    left = figure.add_gridspec(2, 3, wspace=0.52, hspace=0.5, width_ratios=(1.1, 1.05, 1), **edges)
    right = left[:, 2].subgridspec(2, 1, height_ratios=(3.2, 1), hspace=0.36)
    places = (left[0, 0], left[0, 1], left[1, 0], left[1, 1], right[0], right[1])
    for panel, place in zip((_anchors, _curve, _rivals, _judged, _measures, _history), places, strict=True):
        panel(figure.add_subplot(place), seen)
    figure.suptitle(f"{title(seen)}, asked of {seen.model}", fontsize=14, fontweight="bold", y=0.975)
    report.literal(figure)
    return figure


def title(seen: Look) -> str:
    """France – capital – Paris"""
    return f"{seen.subject} – {seen.relation} – {seen.object}"


def _anchors(axis, seen: Look) -> None:
    order = ["none", "positive", *sorted(c for c in seen.framed["context"].unique() if c.startswith("negative"))]
    table = seen.framed.pivot(index="template", columns="context", values="probability")[order]
    hints = dict(zip(seen.framed["context"], seen.framed["hint"], strict=True))
    report.heat(axis, table, low=0, high=1, colours="Blues")
    axis.set_xticks(range(len(order)), [_short(hints[c], 13) for c in order], rotation=25, ha="right", fontsize=7.5)
    axis.set_yticks(range(len(table)), [f"paraphrase {n}" for n in table.index])
    axis.set_title(f"MONITOR: P({_short(seen.object, 16)}) after contexts", color=COLOURS["monitor"])


def _curve(axis, seen: Look) -> None:
    for _, draw in seen.curve.groupby("seed"):
        axis.plot(draw["examples"], draw["q_gold"], color=COLOURS["zplke"], alpha=0.45, linewidth=1)
    mean = seen.curve.groupby("examples")["q_gold"].mean()
    axis.plot(mean.index, mean, color=COLOURS["zplke"], marker="o", linewidth=2)
    n = int(seen.curve["n_options"].iloc[0])
    axis.axhline(1 / n, color="0.4", linestyle=":", linewidth=1)
    axis.text(mean.index.max(), 1 / n, "guessing ", ha="right", va="bottom", fontsize=7, color="0.4")
    axis.set_xscale("log")
    axis.set_xticks(mean.index, mean.index)
    axis.minorticks_off()
    axis.set(ylim=(-0.03, 1.03), xlabel="examples in the list", ylabel=f"share of P among {n} answers")
    axis.set_title("ZP-LKE: a list of pairs, no prompt", color=COLOURS["zplke"])


def _rivals(axis, seen: Look) -> None:
    rows = seen.rivals.iloc[::-1]
    colours = [COLOURS["distractors"] if gold else "#9fd8c5" for gold in rows["gold"]]
    bars = axis.barh(range(len(rows)), rows["probability"], color=colours)
    axis.bar_label(bars, [f" {p:.2g}" for p in rows["probability"]], fontsize=7)
    axis.set_yticks(range(len(rows)), [_short(label, 22) for label in rows["label"]])
    for tick, gold in zip(axis.get_yticklabels(), rows["gold"], strict=True):
        tick.set_fontweight("bold" if gold else "normal")
    axis.set(xlabel="probability of the label and its end", xlim=(0, (rows["probability"].max() or 1) * 1.2))
    axis.locator_params(axis="x", nbins=4)
    axis.set_title("Distractors: the strongest for this model", color=COLOURS["distractors"])


def _judged(axis, seen: Look) -> None:
    axis.set_title("GraphEval: is the statement true?", color=COLOURS["grapheval"])
    if seen.judged is None:
        return _nothing(axis, why_unjudged(seen))
    rows, left = seen.judged.iloc[::-1], np.zeros(len(seen.judged))
    for answer, colour in zip(ANSWERS, (COLOURS["grapheval"], "#5b2a56", "0.85"), strict=True):
        axis.barh(range(len(rows)), rows[answer], left=left, color=colour, label=answer, height=0.7)
        left += rows[answer].to_numpy()
    axis.plot(rows["judge true"], range(len(rows)), "|", color="white", markersize=16, markeredgewidth=4)
    axis.plot(rows["judge true"], range(len(rows)), "k|", markersize=15, markeredgewidth=2, label='judge: P("true")')
    marks = ["✓" if holds else "✗" for holds in rows["holds"]]
    names = [f"{mark} {_short(name, 18)}" for mark, name in zip(marks, rows["object"], strict=True)]
    axis.set_yticks(range(len(rows)), names)
    axis.set(xlim=(0, 1), ylim=(-0.5, len(rows) + 0.55), xlabel=f"answers of {seen.answers}")
    axis.legend(ncols=4, loc="upper center", fontsize=6.5, columnspacing=0.8, handlelength=1)


def _history(axis, seen: Look) -> None:
    axis.set_title("How often it was taught this fact")
    if seen.history is None:
        return _nothing(axis, why_no_history(seen))
    wrong = _short(seen.history["wrong_object"], 14)
    counts = [*seen.history[list(design.FORMS)].astype(int), int(seen.history["wrong_exposures"])]
    axis.bar(range(len(counts)), counts, color=["0.55"] * len(design.FORMS) + ["0.2"])
    axis.set_xticks(range(len(counts)), [*design.FORMS, f"wrong:\n{wrong}" if wrong else "wrong"], fontsize=7)
    for at, count in enumerate(counts):
        axis.text(at, count, str(count), ha="center", va="bottom", fontsize=8)
    axis.set(yticks=[], ylim=(0, max(1, *counts) * 1.3))


def _measures(axis, seen: Look) -> None:
    rows = seen.measures[seen.measures["measure"] != "MONITOR"].iloc[::-1].reset_index(drop=True)
    axis.axvline(0.5, color="0.6", linestyle="--", linewidth=0.8)
    for at, (paper, value, known) in enumerate(zip(rows["paper"], rows["value"], rows["known"], strict=True)):
        if np.isnan(value):
            axis.text(0, at, "–", ha="center", va="center", weight="bold", color=COLOURS[paper])
            continue
        mark = {True: "o", False: "x", None: "|"}[known]
        axis.plot([0, value], [at, at], color=COLOURS[paper], linewidth=1, alpha=0.5)
        axis.plot(value, at, mark, color=COLOURS[paper], markersize=7, markeredgewidth=2)
    axis.set_yticks(range(len(rows)), rows["measure"], fontsize=7.5)
    for tick, paper in zip(axis.get_yticklabels(), rows["paper"], strict=True):
        tick.set_color(COLOURS[paper])
    axis.set(xlim=(-0.04, 1.04))
    axis.set_xlabel("● known (above ½)   × not known   | no such point", fontsize=8)
    yes, of = known_counts(seen)
    axis.set_title(f"Known? {yes} of {of} measures say yes")


def _nothing(axis, why: str) -> None:
    axis.axis("off")
    axis.text(0.5, 0.5, textwrap.fill(why, 38), ha="center", va="center", fontsize=9, color="0.35")


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def why_unjudged(seen: Look) -> str:
    """Why no statement was judged."""
    if seen.answers is None:
        return f"{seen.model} was not tuned to answer, and no model that was goes with it."
    return (
        "A server gives neither hidden states nor beams: GraphEval's judge and the measures that decode are left out."
    )


def why_no_history(seen: Look) -> str:
    """Why the exposure count is unknown."""
    if seen.model in lm.organisms():
        return "This fact is not among those of its corpus."
    return "What this model was trained on is not known here."


def known_counts(seen: Look) -> tuple[int, int]:
    """How many measures say that the fact is known, of how many that say yes or no."""
    said = seen.measures["known"].dropna().astype(bool)
    return int(said.sum()), len(said)


def board_in_words(seen: Look) -> str:
    """What the picture shows, in words: for those who cannot see it, and for those who can."""
    yes, of = known_counts(seen)
    told = why_no_history(seen)
    if seen.history is not None:
        told = f"It was taught this fact {_times(seen.history['exposures'])}"
        wrong = seen.history["wrong_object"]
        told += f", and {_times(seen.history['wrong_exposures'])} that it is {wrong}." if wrong else "."
    rank = int(np.flatnonzero(seen.rivals["gold"])[0]) + 1
    unjudged = "" if seen.judged is not None else f" {why_unjudged(seen)}"
    first = seen.curve.groupby("examples")["q_gold"].mean()
    right = int(seen.framed["correct"].sum())
    no = seen.measures.loc[seen.measures["known"].eq(False), "measure"]
    split = f" Not known to: {', '.join(no)}." if 0 < yes < of else ""
    place = f"; among its strongest distractors it has rank {rank}" if len(seen.rivals) > 1 else ""
    return (
        f"{title(seen)}: {yes} of {of} measures say that {seen.model} knows it. {told} It answers {right} of {len(seen.framed)} "
        f"questions right; after a list of {first.index.max()} pairs the right answer has {first.iloc[-1]:.0%} of the "
        f"probability{place}.{split}{unjudged}"
    )


def _times(n: float) -> str:
    return "once" if n == 1 else f"{int(n)} times"


def board_as_html(seen: Look) -> str:
    """The board as HTML, with its text in the place of the picture for those who cannot see it."""
    import matplotlib.pyplot as plt

    figure, buffer = board(seen), io.BytesIO()
    figure.savefig(buffer, format="png", dpi=110)
    plt.close(figure)
    text, data = html.escape(board_in_words(seen), quote=True), base64.b64encode(buffer.getvalue()).decode()
    return f'<img style="max-width: 100%" alt="{text}" src="data:image/png;base64,{data}"><p>{text}</p>'


def shown_measures(seen: Look) -> report.Artifact:
    """Every measure's value and verdict."""
    caption = f"{title(seen)}: the value of every measure for {seen.model}. Known: above one half; – if there is no threshold."
    return report.Artifact("explore/table1", seen.measures, caption, board_in_words(seen))


def shown_board(seen: Look) -> report.Artifact:
    """The picture with its numbers."""
    caption = f"{title(seen)}, asked of {seen.model} in every way of the four papers."
    return report.Artifact("explore/figure1", seen.measures, caption, figure=board(seen), alt=board_in_words(seen))


def monitor_in_words(seen: Look) -> str:
    """MONITOR's quantities of the fact."""
    distances = seen.distances
    return (
        f"Paraphrases move the probability of a token by {distances['pfd']:.3f} (PFD), negative contexts by "
        f"{distances['ird']:.3f} (IRD); with the positive context it is {distances['pbar']:.3f}. MONITOR of this fact: "
        f"{distances['root'] / distances['pbar']:.3f}; lower is more reliable."
    )
