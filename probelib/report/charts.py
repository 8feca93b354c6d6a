"""The style of charts, and the charts that several papers share."""

import re
from functools import cache

import numpy as np
import pandas as pd

from probelib import paths
from probelib.lm.names import organisms
from probelib.report.shown import escape_stylers

MARKERS = ["o", "s", "^", "D", "v", "P", "X"]
LINES = ["-", "--", "-.", ":"]
# of instruction-tuned models and of checkpoints; sisters and twins are dotted
KIND_LINES = {"-it": "--", "-at": "-."}
COLUMN, TWO_COLUMNS = 3.35, 6.85  # inches: width of one and of two printed columns
SMALL = 6.5  # points: text of a figure as wide as a column
_taken: dict[str, int] = {}  # model that is not shipped -> number of its style, in this process


def use_style() -> None:
    """Set the kit's style on top of matplotlib's own defaults (a user's matplotlibrc changes no
    byte of a figure); escape the texts of tables in a notebook."""
    import matplotlib.pyplot as plt

    plt.rcdefaults()
    plt.style.use(paths.PACKAGE / "style.mplstyle")
    escape_stylers()


def subplots(width: float, height: float, rows: int = 1, columns: int = 1, **options):
    """A figure of a size in inches, and its axes [rows, columns]."""
    import matplotlib.pyplot as plt

    return plt.subplots(rows, columns, figsize=(width, height), squeeze=False, **options)


def column(height: float, rows: int = 1, columns: int = 1, width: float = COLUMN, **options):
    """A figure as wide as a printed column, and its axes [rows, columns] with small text."""
    figure, axes = subplots(width, height, rows, columns, **options)
    for axis in axes.flat:
        axis.tick_params(labelsize=SMALL)
        axis.xaxis.label.set_size(7)
        axis.yaxis.label.set_size(7)
    return figure, axes


def model_style(name: str) -> dict:
    """``color``, ``marker`` and ``linestyle`` of a model, the same in all figures of a notebook.

    Shipped models have a hue per family, darker the larger they are, and a line style per kind
    (base, instruction-tuned, sister or twin, checkpoint). Any other model takes the next look of
    ``style_at``."""
    look = _shipped_styles().get(name)
    return dict(look) if look else style_at(_taken.setdefault(name, len(_taken)))


@cache
def _shipped_styles() -> dict[str, dict]:
    import seaborn
    from matplotlib.colors import to_hex

    palette, styles, used = seaborn.color_palette("colorblind"), {}, {}
    pattern = re.compile(r"(.+)-([\d.]+)m(.*)")  # family, size, kind
    parts = {name: pattern.fullmatch(name).groups() for name in organisms()}
    for hue, own in enumerate(dict.fromkeys(part[0] for part in parts.values())):
        members = {name: part[1:] for name, part in parts.items() if part[0] == own}
        sizes = sorted({float(size) for size, _ in members.values()})
        # to white, to black
        shades = np.linspace(0.5, -0.3, len(sizes)) if len(sizes) > 1 else [-0.3]
        for name, (size, kind) in members.items():
            place, line = sizes.index(float(size)), KIND_LINES.get(kind[:3], ":" if kind else "-")
            number = used[own, size, line] = used.get((own, size, line), -1) + 1
            shade, full = shades[place], np.array(palette[hue % len(palette)])
            mixed = full * (1 - abs(shade)) + max(shade, 0)
            marker = MARKERS[(place + number) % len(MARKERS)]
            styles[name] = {"color": to_hex(mixed), "marker": marker, "linestyle": line}
    return styles


def style_at(place: int) -> dict:
    """The look of line number ``place`` (from 0) of a figure whose lines are not models."""
    import seaborn

    colours = seaborn.color_palette("colorblind").as_hex()
    look = {"color": colours, "marker": MARKERS, "linestyle": LINES}
    return {name: values[place % len(values)] for name, values in look.items()}


def size_axis(axis, sizes, ends_only: bool = False) -> None:
    """A logarithmic x axis of model sizes with ticks at the models: 150080 reads "0.15M". Of labels
    that would overlap, only the first is shown; with ``ends_only``, only those of both ends."""
    sizes = sorted(set(sizes))
    millions = lambda n: f"{n / 1e6:.2g}M" if n < 99.5e6 else f"{n / 1e6:.0f}M"
    unit = lambda n: f"{n / 1e9:.3g}B" if n >= 1e9 else millions(n)
    apart = 0.08 * np.log(sizes[-1] / sizes[0]) if sizes else 0.0
    named = []
    for size in sizes:
        if not named or np.log(size / named[-1]) >= apart:
            named.append(size)
    if ends_only:
        named = [sizes[0], sizes[-1]]
    axis.set_xscale("log")
    axis.set_xticks(named, [unit(n) for n in named])
    axis.set_xticks(sizes, minor=True)
    axis.tick_params(which="minor", labelbottom=False)
    axis.set_xlabel("parameters without embeddings")


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


def bands(panels: dict[str, dict[str, pd.DataFrame]], xlabel: str, ylabel: str):
    """A figure of panels (title -> curves) side by side: a line and its band per curve (name ->
    ``mean``, ``low`` and ``high``, shares, by x, whole numbers from 1). The x axis is logarithmic,
    with markers at its ticks."""
    figure, axes = column(2.3, columns=len(panels), sharey=True)
    names = list(dict.fromkeys(name for curves in panels.values() for name in curves))
    for axis, (title, curves) in zip(axes[0], panels.items(), strict=True):
        last = max(curve.index[-1] for curve in curves.values())
        ticks = [n * 10**power for power in range(6) for n in (1, 2, 5) if n * 10**power <= last]
        axis.set(xscale="log", xlim=(0.85, 1.15 * last))
        axis.set_xticks(ticks, ticks)
        axis.minorticks_off()
        for name, curve in curves.items():
            look = style_at(names.index(name))
            at = [i for i, x in enumerate(curve.index) if x in ticks]
            more = {"label": name, "markevery": at, "markersize": 3, "linewidth": 1.2}
            axis.plot(curve.index, curve["mean"], **look, **more)
            area = {"color": look["color"], "alpha": 0.15, "linewidth": 0}
            axis.fill_between(curve.index, curve["low"], curve["high"], **area)
        axis.set(xlabel=xlabel, ylim=(0, 1.02))
        axis.set_title(title, fontsize=7, fontweight="normal")
    axes[0, 0].set_ylabel(ylabel)
    handles = axes[0, 0].get_legend_handles_labels()
    narrow = {"ncols": 4, "fontsize": SMALL, "columnspacing": 1, "handlelength": 2.5}
    figure.legend(*handles, loc="outside upper center", **narrow)
    return figure


def line_panels(
    frame: pd.DataFrame,
    x: str,
    y: str,
    band: list[str],
    labels,
    together,
    level: float | None = None,
):
    """A figure of the lines of ``y`` over ``x``, one per measure: those of ``together`` in one
    panel, and below it every line with its ``band`` (two columns) in a small panel of its own.
    ``labels``: of both axes; ``level``: of a thin horizontal line."""
    import matplotlib.pyplot as plt

    names, columns = list(dict.fromkeys(frame["measure"])), 3
    height = -(-len(names) // columns)
    figure = plt.figure(figsize=(3.8, 3.0 + 1.05 * height))
    grid = figure.add_gridspec(1 + height, columns, height_ratios=[2.6] + [1] * height)
    large = figure.add_subplot(grid[0, :])
    ticks, values = frame[x].unique(), frame[[y, *band]].stack().dropna()
    limits = (values.min(), values.max()) if len(values) else (None, None)
    for place, name in enumerate(names):
        rows, look = frame[frame["measure"] == name], style_at(place)
        if name in together:
            large.plot(rows[x], rows[y], markersize=4, label=name, **look)
        small = figure.add_subplot(grid[1 + place // columns, place % columns])
        small.plot(rows[x], rows[y], markersize=2.5, linewidth=1, **look)
        area = {"color": look["color"], "alpha": 0.2, "linewidth": 0}
        small.fill_between(rows[x], rows[band[0]], rows[band[1]], **area)
        small.set_title(name.removeprefix("Dist. "), fontsize=7)
        small.set_ylim(limits)
        small.set_xticks(ticks)
        small.tick_params(labelsize=7, labelleft=place % columns == 0)
    for axis in figure.axes if level is not None else ():
        axis.axhline(level, color="0.6", linewidth=0.8, zorder=0)
    large.set(xlabel=labels[0], ylabel=labels[1])
    large.set_xticks(ticks)
    # in the order in which the lines end, from the top
    handles, end = large.get_legend_handles_labels()[0], lambda line: line.get_ydata()[-1]
    handles = sorted(handles, key=lambda line: -np.nan_to_num(end(line)))
    large.legend(handles=handles, loc="lower center", bbox_to_anchor=(0.5, 1), ncols=2)
    return figure


def heat(
    axis, table: pd.DataFrame, low: float = -1, high: float = 1, colours: str = "RdBu"
) -> None:
    """A table as colours from ``low`` to ``high`` (a colour map of matplotlib), with its numbers
    (0.31 as .31 and 1.00 as 1.0, to save width); NaN is a dash on white."""
    values = table.to_numpy(dtype=float)
    shown = axis.imshow(values, cmap=colours, vmin=low, vmax=high, aspect="auto")
    for (i, j), value in np.ndenumerate(values):
        known = np.isfinite(value)
        red, green, blue = shown.cmap(shown.norm(value))[:3] if known else (1, 1, 1)
        # relative luminance (WCAG)
        light = 0.2126 * red**2.2 + 0.7152 * green**2.2 + 0.0722 * blue**2.2
        look = {"ha": "center", "va": "center", "fontsize": 6}
        look["color"] = "black" if light > 0.18 else "white"
        text = re.sub(r"^(-?)0\.", r"\1.", f"{round(value, 2) + 0.0:.2f}").replace("1.00", "1.0")
        axis.text(j, i, text if known else "–", **look)
    axis.set_xticks(range(len(table.columns)), table.columns, fontsize=7)
    axis.set_yticks(range(len(table)), table.index, fontsize=7)
    axis.grid(visible=False)
    axis.spines[:].set_visible(False)


def literal_layout(figure) -> None:
    """Make a figure ``literal`` before every layout, whichever function draws it first. The style
    calls it for every figure."""
    if engine := figure.get_layout_engine():
        lay_out = engine.execute
        engine.execute = lambda figure: (literal(figure), lay_out(figure))[1]


def literal(figure) -> None:
    """Make every "$" of a figure literal, as in "Ke$ha": texts come from data. Formulas that
    matplotlib itself writes, the powers of a logarithmic axis, stay formulas."""
    from matplotlib.text import Text

    for axis in figure.axes:  # reading them makes matplotlib write the names of bars
        axis.get_xticklabels(), axis.get_yticklabels()
    for text in figure.findobj(Text):
        if "$" in text.get_text() and "mathdefault" not in text.get_text():
            text.set_parse_math(False)


def dot_rows(
    panels: dict[str, pd.DataFrame],
    row: str,
    series: str,
    label: str,
    level: float = np.nan,
    side: int = 1,
):
    """A figure of panels (title -> numbers), ``side`` by side: one line per value of column
    ``row``, one mark per value of column ``series`` at ``value``, with its interval ``low`` to
    ``high``. ``level``: of a dotted vertical line; ``label``: of the x axis. A column ``mirror`` is
    drawn as a short stroke. Series that are models keep their colours (``model_style``)."""
    names = list(dict.fromkeys(name for numbers in panels.values() for name in numbers[series]))
    models = set(names) <= set(organisms())
    sizes = [own[row].nunique() for own in panels.values()]
    most = [max(sizes[i : i + side]) for i in range(0, len(sizes), side)]
    down, legend = len(most), 0.13 * -(-len(names) // 3)
    height = 0.7 + 0.3 * down + sum(most) * max(0.16, 0.07 * len(names)) + legend
    options = {"sharex": True, "height_ratios": most, "width": COLUMN if side == 1 else TWO_COLUMNS}
    figure, axes = column(height, down, side, **options)
    for axis, (title, numbers) in zip(axes.flat, panels.items(), strict=False):
        lines = list(dict.fromkeys(numbers[row]))
        for place, name in enumerate(names):
            own = numbers[numbers[series] == name].drop_duplicates(row)
            own = own.set_index(row).reindex(lines)
            at = np.arange(len(lines)) + (place - (len(names) - 1) / 2) * 0.7 / len(names)
            bars = np.clip([own["value"] - own["low"], own["high"] - own["value"]], 0, None)
            look = model_style(name) if models else style_at(place)
            look = look | {"linestyle": "none", "markersize": 3, "elinewidth": 0.8}
            axis.errorbar(own["value"], at, xerr=bars, label=name.removeprefix("atlas-"), **look)
            if "mirror" in own:
                axis.plot(own["mirror"], at, "|", color=look["color"], markersize=6)
        axis.set_yticks(range(len(lines)), lines)
        axis.set_ylim(len(lines) - 0.5, -0.5)
        axis.set_title(title, fontsize=7, fontweight="normal")
        if np.isfinite(level):
            axis.axvline(level, color="0.3", linestyle=":", linewidth=1)
    for axis in axes.flat[len(panels) :]:
        axis.axis("off")
    figure.supxlabel(label, fontsize=7)
    if len(names) > 1:
        handles = axes[0, 0].get_legend_handles_labels()
        figure.legend(*handles, loc="outside upper center", ncols=3, fontsize=SMALL)
    return figure


def marks(frame: pd.DataFrame, name: str) -> pd.DataFrame:
    """The frame with a number and its interval as the columns that ``dot_rows`` draws."""
    return frame.rename(columns={name: "value", f"{name} low": "low", f"{name} high": "high"})
