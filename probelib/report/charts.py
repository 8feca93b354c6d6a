"""The style of charts, and the charts that several papers share."""

import re
from collections import Counter
from functools import cache

import numpy as np
import pandas as pd

from probelib import paths
from probelib.lm.names import organisms
from probelib.report.shown import escape_stylers

MARKERS = ["o", "s", "^", "D", "v", "P", "X"]
LINES = ["-", "--", "-.", ":"]
KIND_LINES = {"-it": "--", "-at": "-."}  # tuned, checkpoints; sisters and twins are dotted
COLUMN, TWO_COLUMNS = 3.25, 6.75  # inches: width of one and of two printed columns
SMALL = 6.5  # points: text of a figure as wide as a column
_taken: dict[str, int] = {}  # model that is not shipped -> number of its style, in this process


def use_style() -> None:
    """Set the kit's style on matplotlib's own defaults; escape the texts of a notebook's tables."""
    import matplotlib.pyplot as plt

    plt.rcdefaults()
    plt.style.use(paths.PACKAGE / "style.mplstyle")
    escape_stylers()


def subplots(width: float, height: float, rows: int = 1, columns: int = 1, **options):
    """A figure of a size in inches, and its axes [rows, columns]."""
    import matplotlib.pyplot as plt

    return plt.subplots(rows, columns, figsize=(width, height), squeeze=False, **options)


def model_style(name: str) -> dict:
    """``color``, ``marker`` and ``linestyle`` of a model, the same in all figures of a notebook.

    Shipped models have a hue per family, darker the larger they are, and a line style per kind; any
    other model takes the next look of ``style_at``."""
    look = _shipped_styles().get(name)
    return dict(look) if look else style_at(_taken.setdefault(name, len(_taken)))


@cache
def _shipped_styles() -> dict[str, dict]:
    import seaborn
    from matplotlib.colors import to_hex

    palette, styles, used = seaborn.color_palette("colorblind"), {}, Counter()
    pattern = re.compile(r"(.+)-([\d.]+)m(.*)")  # family, size, kind
    parts = {name: pattern.fullmatch(name).groups() for name in organisms()}
    hues = list(dict.fromkeys(own for own, _, _ in parts.values()))
    for name, (own, size, kind) in parts.items():
        sizes = sorted({float(other) for family, other, _ in parts.values() if family == own})
        place, line = sizes.index(float(size)), KIND_LINES.get(kind[:3], ":" if kind else "-")
        shade = 0.5 - 0.8 * place / (len(sizes) - 1) if len(sizes) > 1 else -0.3  # white to black
        mixed = np.array(palette[hues.index(own) % len(palette)]) * (1 - abs(shade)) + max(shade, 0)
        marker = MARKERS[(place + used[own, size, line]) % len(MARKERS)]
        used[own, size, line] += 1
        styles[name] = {"color": to_hex(mixed), "marker": marker, "linestyle": line}
    return styles


def style_at(place: int) -> dict:
    """The look of line number ``place`` (from 0) of a figure whose lines are not models."""
    import seaborn

    colours = seaborn.color_palette("colorblind").as_hex()
    look = {"color": colours, "marker": MARKERS, "linestyle": LINES}
    return {name: values[place % len(values)] for name, values in look.items()}


def size_axis(axis, sizes) -> None:
    """A logarithmic x axis of model sizes: ticks at the models, names at both ends (0.15M, 7B)."""
    ends = [min(sizes), max(sizes)]
    unit = lambda n: f"{n / 1e9:.3g}B" if n >= 1e9 else f"{n / 1e6:.{'0f' if n > 1e8 else '2g'}}M"
    axis.set(xscale="log", xlabel="parameters without embeddings")
    axis.set_xticks(ends, [unit(n) for n in ends])
    axis.set_xticks(sizes, minor=True)
    axis.tick_params(which="minor", labelbottom=False)


def lines(axis, rows, title: str, split: float = 0.72) -> None:
    """A panel of text with one line per row (text, answer, right): a tick marks right answers, a
    cross wrong ones; None: no mark."""
    marks = {True: ("\u2713 ", "#00694c"), False: ("\u2717 ", "#a83800"), None: ("", "0.3")}
    axis.set(title=title, xlim=(0, 1), ylim=(len(rows), 0))
    axis.axis("off")
    for y, (text, answer, right) in enumerate(rows):
        (mark, colour), look = marks[right], {"va": "center", "fontsize": 7.5}
        axis.text(0, y + 0.5, text, wrap=False, **look)
        axis.text(split, y + 0.5, mark + answer, color=colour, weight="bold", **look)


def bands(panels: dict, xlabel: str, ylabel: str, first=(), models: bool = False):
    """A figure of panels (title -> curves) side by side: a line and its band per curve (name ->
    ``mean``, ``low``, ``high``, shares, by x, whole numbers from 1; x is logarithmic). ``first``:
    names with the first looks in every figure; ``models``: the names are those of models."""
    width = COLUMN if len(panels) < 3 else TWO_COLUMNS
    figure, axes = subplots(width, 2.3, columns=len(panels), sharey=True)
    names, drawn = [*dict.fromkeys([*first, *(n for own in panels.values() for n in own)])], {}
    for axis, (title, curves) in zip(axes[0], panels.items(), strict=True):
        last = max(curve.index[-1] for curve in curves.values())
        ticks = [n for n in range(1, last + 1) if last < 10 or str(n).rstrip("0") in [*"125"]]
        axis.set(xscale="log", xlim=(0.85, 1.15 * last), xlabel=xlabel)
        axis.set_xticks(ticks, ticks)
        axis.minorticks_off()
        for name, curve in curves.items():
            look = model_style(name) if models else style_at(names.index(name))
            at = [i for i, x in enumerate(curve.index) if x in ticks]
            look |= {"markevery": at, "markersize": 3, "linewidth": 1.2, "clip_on": False}
            (drawn[name.removeprefix("atlas-")],) = axis.plot(curve.index, curve["mean"], **look)
            area = {"facecolor": (look["color"], 0.12), "edgecolor": (look["color"], 0.7)}
            axis.fill_between(curve.index, curve["low"], curve["high"], linewidth=0.4, **area)
        axis.set_title(title, fontsize=7, fontweight="normal")
    axes[0, 0].set(ylabel=ylabel, ylim=(0, 1))
    fitting = max(1, min(4, int(36 * width / COLUMN) // max(map(len, drawn))))
    narrow = {"ncols": fitting, "fontsize": SMALL, "columnspacing": 1, "handlelength": 2.5}
    figure.legend(drawn.values(), drawn, loc="outside upper center", **narrow)
    return figure


def heat(axis, table: pd.DataFrame, low=-1.0, high=1.0, colours: str = "RdBu") -> None:
    """A table as colours from ``low`` to ``high`` (a colour map of matplotlib), with its numbers
    (0.31 as .31 and 1.00 as 1.0, to save width); NaN is a dash on white."""
    values = table.to_numpy(dtype=float)
    shown = axis.imshow(values, cmap=colours, vmin=low, vmax=high, aspect="auto")
    for (i, j), value in np.ndenumerate(values):
        known = np.isfinite(value)
        red, green, blue = shown.cmap(shown.norm(value))[:3] if known else (1, 1, 1)
        light = 0.2126 * red**2.2 + 0.7152 * green**2.2 + 0.0722 * blue**2.2  # WCAG
        look = {"ha": "center", "va": "center", "color": "black" if light > 0.18 else "white"}
        text = re.sub(r"^(-?)0\.", r"\1.", f"{value:z.2f}").replace("1.00", "1.0")
        axis.text(j, i, text if known else "–", fontsize=6, **look)
    room = 72 * axis.figure.get_figwidth() * axis.get_position().width / len(table.columns)
    long = 4 * max(len(str(name)) for name in table.columns) > room  # points, at 7 points a letter
    tilted = {"rotation": 35, "ha": "right", "rotation_mode": "anchor"} if long else {}
    axis.set_xticks(range(len(table.columns)), table.columns, fontsize=7, **tilted)
    axis.set_yticks(range(len(table)), table.index, fontsize=7)
    axis.grid(visible=False)
    axis.spines[:].set_visible(False)
    if axis is axis.figure.axes[-1]:  # one bar for all panels, which share their scale
        bar = axis.figure.colorbar(shown, ax=axis.figure.axes, fraction=0.05, pad=0.02, aspect=30)
        bar.ax.tick_params(labelsize=SMALL)


def literal_layout(figure) -> None:
    """Make a figure ``literal`` before every layout: the style calls it for every figure."""
    if engine := figure.get_layout_engine():
        lay_out = engine.execute

        def execute(figure):
            literal(figure)
            return lay_out(figure)

        engine.execute = execute


def literal(figure) -> None:
    """Make every "$" of a figure literal, as in "Ke$ha": texts come from data. Formulas that
    matplotlib itself writes, the powers of a logarithmic axis, stay formulas."""
    from matplotlib.text import Text

    for axis in figure.axes:  # reading them makes matplotlib write the names of bars
        axis.get_xticklabels(), axis.get_yticklabels()
    for text in figure.findobj(Text):
        if "$" in text.get_text() and "mathdefault" not in text.get_text():
            text.set_parse_math(False)


def dot_rows(panels: dict, row: str, series: str, label: str, level=np.nan, side: int = 1):
    """A figure of panels (title -> numbers), ``side`` by side: one line per value of column
    ``row``, one mark per value of column ``series`` (a category keeps its look, a model its
    ``model_style``) at ``value``, with its interval ``low`` to ``high``, and a short stroke at
    ``mirror``. ``level``: of a dotted vertical line; ``label``: of the x axis."""
    every, drawn = pd.concat(panels.values()), {}
    seen = every[series].unique()
    names = list(getattr(every[series].array, "categories", seen))
    models = set(seen) <= set(organisms())
    sizes = [own[row].nunique() for own in panels.values()]
    most = [max(sizes[i : i + side]) for i in range(0, len(sizes), side)]
    down, legend = len(most), 0.13 * -(-len(seen) // 3)
    height = 0.6 + 0.4 * down + sum(most) * max(0.16, 0.07 * len(seen)) + legend
    width = COLUMN if side == 1 else TWO_COLUMNS
    figure, axes = subplots(width, height, down, side, sharex=True, height_ratios=most)
    dots = {"linestyle": "", "markersize": 3, "elinewidth": 0.8, "clip_on": False, "zorder": 3}
    for axis, (title, numbers) in zip(axes.flat, panels.items(), strict=False):
        lines = list(dict.fromkeys(numbers[row]))
        shown = [name for name in names if (numbers[series] == name).any()]
        for place, name in enumerate(shown):
            own = numbers[numbers[series] == name].drop_duplicates(row)
            own = own.set_index(row).reindex(lines)
            at = np.arange(len(lines)) + (place - (len(shown) - 1) / 2) * 0.7 / len(shown)
            bars = np.clip([own["value"] - own["low"], own["high"] - own["value"]], 0, None)
            look = (model_style(name) if models else style_at(names.index(name))) | dots
            drawn[name.removeprefix("atlas-")] = axis.errorbar(own["value"], at, xerr=bars, **look)
            if "mirror" in own:
                axis.plot(own["mirror"], at, "|", color=look["color"], markersize=6, clip_on=False)
        axis.set(yticks=range(len(lines)), yticklabels=lines, ylim=(len(lines) - 0.5, -0.5))
        axis.set_title(title, fontsize=7, fontweight="normal")
        axis.tick_params(labelbottom=True)
        if np.isfinite(level):
            axis.axvline(level, color="0.3", linestyle=":", linewidth=1)
    for axis in axes.flat[len(panels) :]:
        axis.axis("off")
    figure.supxlabel(label, fontsize=7)
    if every[["value", "low", "high"]].stack().between(0, 1).all():  # probabilities and shares
        axes[0, 0].set_xlim(*np.clip(axes[0, 0].get_xlim(), 0, 1))
    if len(seen) > 1:
        figure.legend(drawn.values(), drawn, loc="outside upper center", ncols=3, fontsize=SMALL)
    return figure


def marks(frame: pd.DataFrame, name: str) -> pd.DataFrame:
    """The frame with a number and its interval as the columns that ``dot_rows`` draws."""
    return frame.rename(columns={name: "value", f"{name} low": "low", f"{name} high": "high"})
