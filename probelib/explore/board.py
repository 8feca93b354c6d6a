"""The results of one model for one fact as one picture (the board), and as artifacts."""

import numpy as np
import pandas as pd

from probelib import report
from probelib.explore.seen import ANSWERS, Look
from probelib.organisms.taught import FORMS

SMALLEST = 9  # points: no text of the board is smaller
COLOURS = {"monitor": "#0173b2", "zplke": "#de8f05", "distractors": "#029e73"}
COLOURS |= {"grapheval": "#cc78bc"}


def board(seen: Look):
    """All results as one picture for a screen. A panel without data (no model that answers
    statements, training data unknown) is left out."""
    import matplotlib.pyplot as plt

    report.use_style()
    sizes = ("font.size", "xtick.labelsize", "ytick.labelsize", "legend.fontsize")
    with plt.rc_context(dict.fromkeys(sizes, SMALLEST)):
        figure = plt.figure(figsize=(11, 12.6), layout="none")
        figure.subplots_adjust(0.155, 0.045, 0.985, 0.925, 0.38, 0.34)
        grid = figure.add_gridspec(3, 2, height_ratios=(1, 1, 1.45))
        panels = {_anchors: grid[0, 0], _curve: grid[0, 1], _options: grid[1, 0]}
        panels |= {_judged: grid[1, 1]} if seen.judged is not None else {}
        panels[_measures] = grid[2, 0]
        panels |= {_taught: grid[2, 1].subgridspec(2, 1)[0]} if seen.taught is not None else {}
        for draw, place in panels.items():
            draw(figure.add_subplot(place), seen)
        figure.suptitle(f"{seen.title}: {seen.model}", fontsize=14, fontweight="bold", y=0.975)
    report.literal(figure)
    return figure


def board_figure(seen: Look) -> report.Artifact:
    """The board with its numbers: the measures (``seen.measures``), then one row per value of the
    other panels: ``panel``, ``of`` (the prompt, length of the list, object, statement or form of
    text) and ``series`` (the context, kind of object, answer or unit)."""
    right = np.where(seen.options["gold"], "right object", "other object")
    options = seen.options.assign(label=seen.options["label"].str.strip(), gold=right)
    curve = seen.curve.assign(of="examples: " + seen.curve["examples"].astype(str), series="")
    panels = {
        "MONITOR": seen.framed[["text", "hint", "probability"]],
        "ZP-LKE": curve[["of", "series", "q_gold"]],
        "Distractors": options[["label", "gold", "probability"]],
    }
    if seen.judged is not None:
        panels["GraphEval"] = seen.judged.melt("statement", list(ANSWERS))
    if seen.taught is not None:
        counts = seen.taught.rename_axis("of").reset_index(name="value")
        panels["Exposures"] = counts.assign(series="times")[["of", "series", "value"]]
    names = ["of", "series", "value"]
    others = pd.concat({p: rows.set_axis(names, axis=1) for p, rows in panels.items()})
    others = others.astype({"value": float}).rename_axis(["panel", ""]).reset_index("panel")
    frame = pd.concat([seen.measures.assign(panel="Known?"), others], ignore_index=True)
    return report.Artifact("explore/figure1", frame, figure=board(seen))


def _anchors(axis, seen: Look) -> None:
    """P of the object by paraphrase (rows) and context (columns)."""
    negative = sorted(c for c in seen.framed["context"].unique() if c.startswith("negative"))
    order = ["none", "positive", *negative]
    table = seen.framed.pivot(index="template", columns="context", values="probability")[order]
    hints = dict(zip(seen.framed["context"], seen.framed["hint"], strict=True))
    report.heat(axis, table, low=0, high=1, colours="Blues")
    names = [_short(hints[context], 13) for context in order]
    axis.set_xticks(range(len(order)), names, rotation=25, ha="right")
    axis.tick_params(labelsize=SMALLEST)
    for number in axis.texts:
        number.set_fontsize(SMALLEST)
    axis.set_ylabel("paraphrase")
    title = f"MONITOR: P({_short(seen.object, 14)} …) after contexts"
    axis.set_title(title, color=COLOURS["monitor"])


def _curve(axis, seen: Look) -> None:
    """The share of the right object among the options, by the number of examples."""
    colour, n = COLOURS["zplke"], int(seen.curve["n_options"].iloc[0])
    axis.plot(seen.curve["examples"], seen.curve["q_gold"], color=colour, marker="o")
    axis.axhline(1 / n, color="0.4", linestyle=":", linewidth=1, label="guessing")
    axis.legend()
    axis.set_xscale("log")
    axis.set_xticks(seen.curve["examples"], seen.curve["examples"])
    axis.minorticks_off()
    axis.set(ylim=(-0.03, 1.03), xlabel="examples", ylabel=f"share of P among {n} answers")
    axis.set_title("ZP-LKE: a list of pairs, no prompt", color=colour)


def _options(axis, seen: Look) -> None:
    """The object and its most plausible distractors, the most probable on top."""
    rows = seen.options.iloc[::-1]
    colours = np.where(rows["gold"], COLOURS["distractors"], "#9fd8c5")
    bars = axis.barh(range(len(rows)), rows["probability"], color=colours)
    axis.bar_label(bars, [f" {p:.2g}" for p in rows["probability"]])
    axis.set_yticks(range(len(rows)), [_short(label, 22) for label in rows["label"]])
    axis.set_xlim(0, (rows["probability"].max() or 1) * 1.2)
    axis.set_xlabel("P(the object, then the end); dark: the right object")
    axis.locator_params(axis="x", nbins=4)
    axis.set_title("Distractors: the strongest for this model", color=COLOURS["distractors"])


def _judged(axis, seen: Look) -> None:
    """Shares of the answers to the true and the false statements."""
    rows = seen.judged.iloc[::-1]
    names = np.where(rows["holds"], "✓ ", "✗ ") + rows["object"].map(lambda x: _short(x, 18))
    shares, colours = rows[list(ANSWERS)].set_axis(names), (COLOURS["grapheval"], "#5b2a56", "0.85")
    shares.plot.barh(ax=axis, stacked=True, width=0.7, color=colours)
    axis.set(xlim=(0, 1), ylim=(-0.5, len(rows) + 0.8), ylabel="")
    axis.set_xlabel(f"answers of {seen.answers} (✓ true, ✗ false statement)")
    axis.legend(ncols=3, loc="upper center", columnspacing=0.8, handlelength=1)
    axis.set_title("GraphEval: is the statement true?", color=COLOURS["grapheval"])


def _taught(axis, seen: Look) -> None:
    """How often the corpus states the fact, by form, and with a wrong object."""
    colours = ["0.55"] * len(FORMS) + ["0.2"]
    axis.bar_label(axis.bar(range(len(colours)), seen.taught, color=colours))
    names = [form.replace("ation", "-\nation") for form in FORMS]
    axis.set_xticks(range(len(colours)), [*names, "wrong\nobject"])
    axis.set(yticks=[], ylim=(0, max(1, seen.taught.max()) * 1.3))
    axis.set_title("How often it was taught this fact")


def _measures(axis, seen: Look) -> None:
    """The value of each measure; beside one below a half what the model did instead."""
    rows = seen.measures[seen.measures["measure"] != "MONITOR"].iloc[::-1]
    bars = axis.barh(range(len(rows)), rows["value"], color=rows["paper"].map(COLOURS), alpha=0.6)
    axis.bar_label(bars, rows["why"], padding=3)
    axis.axvline(0.5, color="0.4", linestyle="--", linewidth=0.8)
    axis.set_yticks(range(len(rows)), rows["measure"])
    for tick, paper in zip(axis.get_yticklabels(), rows["paper"], strict=True):
        tick.set_color(COLOURS[paper])
    axis.set(xlim=(0, 1), xlabel="value (known: above ½)")
    said = seen.measures["known"].dropna().astype(bool)
    axis.set_title(f"Known? {said.sum()} of {len(said)} measures say yes")


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"
