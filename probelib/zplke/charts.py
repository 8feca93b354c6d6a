"""Charts that several of ZP-LKE's figures share."""

import re
import textwrap

import numpy as np
import pandas as pd

from probelib.report import COLUMN, SMALL, column, heat, style_at, subplots

KINDS = {"": {"color": "0.2"}, "subject": {"color": "#0173b2"}, "object": {"color": "#b34700", "fontweight": "bold"}}


def position_panels(
    frame: pd.DataFrame, contexts: list[str], mean: float, star: int, model: str, longest: int | None = None
):
    """A figure of ``model`` with one panel per context (``examples.by_position``): ``probability`` over ``position``, marked by
    ``role``; a dashed line at ``mean``; a star at the position ``star`` if its pair is not replaced; a
    thin vertical line after the position ``longest``."""
    looks = {
        "rest": ("#0173b2", "o", "correct"),
        "after": ("#56b4e9", "s", "after a replaced one"),
        "replaced": ("#d55e00", "x", "replaced"),
    }
    figure, axes = column(1.05 * len(contexts) + 0.3, len(contexts), 1, sharex=True, sharey=True)
    for axis, context, letter in zip(axes.flat, contexts, "abcdefgh", strict=False):
        panel = frame[frame["context"] == context].set_index("position")
        for role, (colour, marker, label) in looks.items():
            rows = panel[panel["role"] == role]
            axis.scatter(rows.index, rows["probability"], s=5, color=colour, marker=marker, label=label, linewidth=0.6)
        axis.axhline(mean, color="0.3", linestyle="--", linewidth=0.8)
        if longest:
            axis.axvline(longest + 0.5, color="0.5", linewidth=0.6)
        if star in panel.index and panel["role"][star] == "rest":
            look = {"s": 60, "color": "#ece133", "edgecolor": "black", "linewidth": 0.6, "zorder": 3}
            axis.scatter(star, panel["probability"][star], marker="*", **look)
        axis.set(ylim=(-0.06, 1.06))
        axis.set_title(f"({letter}) {context}" + (f", {model}" if letter == "a" else ""), fontsize=7)
    handles = axes[0, 0].get_legend_handles_labels()
    figure.legend(*handles, loc="outside upper center", ncols=3, fontsize=SMALL, handletextpad=0.2, columnspacing=1)
    axes[-1, 0].set(xlabel="position in the sequence")
    figure.supylabel("probability of the object", fontsize=7)
    return figure


def dot_panels(frame: pd.DataFrame, row: str, models: list[str], series: str = "", order: tuple | list = ("",)):
    """A figure with one panel per model: a row per value of the column ``row``, a mark of ``accuracy`` per value of the column
    ``series`` (in this ``order``); without ``series`` one mark with its interval ``low`` to ``high``."""
    rows = list(dict.fromkeys(frame[row]))
    across = min(2, len(models))
    down = -(-len(models) // across)
    labels = [textwrap.fill(textwrap.shorten(name, 44), 26) for name in rows]
    height = 0.27 if any("\n" in label for label in labels) else 0.2  # inches per row
    figure, axes = column(0.5 + down * (0.35 + height * len(rows)), down, across, sharex=True, sharey=True)
    for at, (axis, (model, label)) in enumerate(zip(axes.flat, short_labels(models, 12).items(), strict=False)):
        own = frame[frame["model"] == model].set_index(row)
        for place, name in enumerate(order):
            part = (own[own[series] == name] if series else own).reindex(rows)
            look = style_at(place) | {"linestyle": "", "markersize": 3}
            y = np.arange(len(rows)) + 0.13 * (place - (len(order) - 1) / 2)  # equal accuracies side by side
            axis.plot(part["accuracy"], y, label=name, **look)
            if not series:
                axis.hlines(y, part["low"], part["high"], color=look["color"], linewidth=0.9)
        axis.set_title(label, fontsize=7)
        if at + across >= len(models):  # no panel below it
            axis.set_xlabel("accuracy", fontsize=7)
        axis.tick_params(labelbottom=at + across >= len(models))
    axes[0, 0].set_yticks(range(len(rows)), labels)
    axes[0, 0].set(ylim=(len(rows) - 0.5, -0.5), xlim=(-0.03, None))
    for axis in axes.flat[len(models) :]:
        axis.axis("off")
    if series:
        figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=3, fontsize=SMALL)
    return figure


def numbers(axis, table: pd.DataFrame, low: float, high: float, colours: str) -> None:
    """``report.heat`` with text that is legible in a printed column."""
    heat(axis, table, low, high, colours)
    for text in axis.texts:
        text.set_fontsize(SMALL)


def short_labels(models, width: int = 0) -> dict[str, str]:
    """Model -> its name without the prefix of the shipped models and without the owner of a Hugging Face id; the whole name if
    two would be equal. ``width``: characters per line.

    >>> short_labels(["atlas-neox-0.6m", "EleutherAI/pythia-70m"])
    {'atlas-neox-0.6m': 'neox-0.6m', 'EleutherAI/pythia-70m': 'pythia-70m'}
    """
    models = list(dict.fromkeys(models))
    short = [model.rsplit("/", 1)[-1].removeprefix("atlas-") for model in models]
    if len(set(short)) < len(short):
        short = models
    return {model: textwrap.fill(name, width) if width else name for model, name in zip(models, short, strict=True)}


def pipeline(fact: str, rows: list[tuple[str, str, str, bool]], model: str, obj: str):
    """A figure with one column of boxes per (estimator, input, output, right): fact -> input -> model -> output -> verdict."""
    figure, axes = column(3.2)
    axis = axes[0, 0]
    axis.set(xlim=(0, len(rows)), ylim=(0, 1))
    axis.axis("off")
    box = {"boxstyle": "round,pad=0.35", "edgecolor": "0.6", "linewidth": 0.6}
    look = {"ha": "center", "va": "center", "fontsize": SMALL}
    axis.text(len(rows) / 2, 0.96, fact, bbox=box | {"facecolor": "0.95"}, **look)
    for place, (estimator, text, output, right) in enumerate(rows):
        x, mark = place + 0.5, "✓" if right else "✗"
        written = textwrap.fill(textwrap.shorten(text, 150, placeholder=" ..."), 26)
        axis.text(x, 0.80, estimator, weight="bold", **look)
        axis.text(x, 0.59, written, bbox=box | {"facecolor": "0.95"}, family="monospace", **look)
        axis.text(x, 0.31, model, bbox=box | {"facecolor": "#cfe3f1"}, **look)
        axis.text(x, 0.17, textwrap.shorten(output, 26, placeholder=" ..."), family="monospace", **look)
        axis.text(x, 0.03, f"{mark} gold: {obj}", color="#00694c" if right else "#a83800", weight="bold", **look)
        for start, end in (
            ((len(rows) / 2, 0.92), (x, 0.84)),
            *(((x, top), (x, top - 0.06)) for top in (0.42, 0.27, 0.13)),
        ):
            axis.annotate("", end, start, arrowprops={"arrowstyle": "->", "color": "0.4", "linewidth": 0.9})
    return figure


def text_boxes(rows: list[tuple[str, str]], marked: dict[str, list[str]], width: int = 60):
    """A figure with a title and a wrapped text per row; ``marked``: labels of each kind (``KINDS``), which are coloured."""
    wrapped = [(title, placed_words(text, marked, width)) for title, text in rows]
    lines = sum(words[-1][1] + 3.2 for _, words in wrapped)
    figure, ((axis,),) = subplots(COLUMN, 0.135 * lines)
    axis.set(xlim=(-1, width + 1), ylim=(lines, 0))
    axis.axis("off")
    top = 0.0
    for title, words in wrapped:
        axis.text(0, top + 0.8, title, fontsize=7, fontweight="bold", va="center")
        for column_, line, word, kind in words:
            look = KINDS[kind] | {"family": "monospace", "fontsize": 6.4, "va": "center"}
            axis.text(column_, top + 2 + line, word, **look)
        top += words[-1][1] + 3.2
    return figure


def placed_words(text: str, marked: dict[str, list[str]], width: int) -> list[tuple[int, int, str, str]]:
    """The words of a text, wrapped at ``width``: (column, line, word, kind). ``kind``: that of the label which contains the word,
    or "".

    >>> placed_words("Bohr 1885 Marie Curie", {"subject": ["Bohr", "Marie Curie"], "object": ["1885"]}, 15)
    [(0, 0, 'Bohr', 'subject'), (5, 0, '1885', 'object'), (10, 0, 'Marie', 'subject'), (0, 1, 'Curie', 'subject')]
    """
    kinds = [""] * len(text)
    for kind, labels in marked.items():
        for found in re.finditer("|".join(map(re.escape, sorted(labels, key=len, reverse=True))) or "$^", text):
            kinds[found.start() : found.end()] = [kind] * (found.end() - found.start())
    placed, at, line = [], 0, 0
    for found in re.finditer(r"\S+", text):
        if at + len(found[0]) > width and at:
            at, line = 0, line + 1
        placed.append((at, line, found[0], kinds[found.start()]))
        at += len(found[0]) + 1
    return placed
