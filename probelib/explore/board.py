"""The results of one model for one fact as one picture (the board), as artifacts, and in a notebook
below three fields (model, relation, fact) that choose what it shows."""

import base64
import html
import re
from pathlib import Path

import numpy as np
import pandas as pd

from probelib import facts, lm, report
from probelib.beyond.suite import PAPERS
from probelib.errors import ProbeError, unknown
from probelib.explore.seen import ANSWERS, FactPool, Look, facts_of, look
from probelib.facts.names import fold
from probelib.organisms.taught import FORMS
from probelib.report.shown import escaped_html, picture

SMALLEST = 9  # points: no text of the board is smaller
COLOURS = dict(zip(PAPERS[:4], ("#0173b2", "#de8f05", "#029e73", "#cc78bc"), strict=True))


def board_figure(seen: Look) -> report.Artifact:
    """All results as one picture for a screen, with its numbers: the measures, then one row per
    value of the other panels: ``panel``, ``of`` (prompt, length of the list, object, statement or
    form of text), ``series`` (context, kind of object, answer or unit). A panel without data (no
    model answers statements, training data unknown) is left out."""
    import matplotlib
    from matplotlib.figure import Figure

    report.use_style()
    sizes = ("font.size", "xtick.labelsize", "ytick.labelsize", "legend.fontsize")
    with matplotlib.rc_context(dict.fromkeys(sizes, SMALLEST)):
        figure, numbers = Figure((11, 12.6), layout="none"), {}
        figure.subplots_adjust(0.175, 0.045, 0.985, 0.925, 0.38, 0.34)
        grid = figure.add_gridspec(3, 2, height_ratios=(1, 1, 1.45))
        panels = {"MONITOR": (_anchors, grid[0, 0]), "ZP-LKE": (_curve, grid[0, 1])}
        panels["Distractors"] = (_options, grid[1, 0])
        if seen.judged is not None:
            panels["GraphEval"] = (_judged, grid[1, 1])
        if seen.taught is not None:
            panels["Exposures"] = (_taught, grid[2, 1].subgridspec(2, 1)[0])
        for panel, (draw, place) in panels.items():
            rows = draw(figure.add_subplot(place), seen)
            numbers[panel] = rows.set_axis(["of", "series", "value"], axis=1)
        _measures(figure.add_subplot(grid[2, 0]), seen)
        figure.suptitle(f"{seen.title}: {seen.model}", fontsize=14, fontweight="bold", y=0.975)
    report.literal(figure)
    others = pd.concat(numbers, names=["panel"]).reset_index("panel").astype({"value": float})
    frame = pd.concat([seen.measures.assign(panel="Known?"), others], ignore_index=True)
    return report.Artifact("explore/figure1", frame, figure=figure)


def _anchors(axis, seen: Look) -> pd.DataFrame:
    """P of the object by paraphrase (rows) and context (columns)."""
    hints = seen.framed.drop_duplicates("context").set_index("context")["hint"]
    table = seen.framed.pivot(index="template", columns="context", values="probability")
    report.heat(axis, table[hints.index], low=0, high=1, colours="Blues")
    names = [_short(hint, 13) for hint in hints]
    axis.set_xticks(range(len(names)), names, rotation=25, ha="right")
    axis.tick_params(labelsize=SMALLEST)
    for number in axis.texts:
        number.set_fontsize(SMALLEST)
    axis.set_ylabel("paraphrase")
    title = f"MONITOR: P({_short(hints['positive'], 14)} …) after contexts"
    axis.set_title(title, color=COLOURS["monitor"])
    return seen.framed[["text", "hint", "probability"]]


def _curve(axis, seen: Look) -> pd.DataFrame:
    """The share of the right object among the options, by the number of examples."""
    colour, n = COLOURS["zplke"], int(seen.curve["n_options"].iloc[0])
    axis.plot(seen.curve["examples"], seen.curve["q_gold"], color=colour, marker="o")
    axis.axhline(1 / n, color="0.4", linestyle=":", linewidth=1, label="guessing")
    axis.legend()
    axis.set(xscale="log", xlabel="examples", ylabel=f"share of P among {n} answers")
    axis.set(ylim=(-0.03, 1.03), xticks=seen.curve["examples"], xticklabels=seen.curve["examples"])
    axis.minorticks_off()
    axis.set_title("ZP-LKE: a list of pairs, no prompt", color=colour)
    length = "examples: " + seen.curve["examples"].astype(str)
    return pd.DataFrame({"of": length, "series": "", "value": seen.curve["q_gold"]})


def _options(axis, seen: Look) -> pd.DataFrame:
    """The object and its most plausible distractors, the most probable on top."""
    rows = seen.options.iloc[::-1]
    colours = np.where(rows["gold"], COLOURS["distractors"], "#9fd8c5")
    bars = axis.barh(range(len(rows)), rows["probability"], color=colours)
    axis.bar_label(bars, fmt=" {:.2g}")
    axis.set_yticks(range(len(rows)), [_short(label, 22) for label in rows["label"]])
    axis.set_xlim(0, (rows["probability"].max() or 1) * 1.2)
    axis.set_xlabel("P(object, then the end) after the first\nsentence; dark: the right object")
    axis.set_xticks([])  # the bars carry their numbers
    axis.set_title("Distractors: the strongest for this model", color=COLOURS["distractors"])
    kinds = np.where(seen.options["gold"], "right object", "other object")
    return seen.options.assign(gold=kinds)[["label", "gold", "probability"]]


def _judged(axis, seen: Look) -> pd.DataFrame:
    """Shares of the answers to the true and the false statements."""
    rows = seen.judged.iloc[::-1]
    names = np.where(rows["holds"], "✓ ", "✗ ") + rows["object"].map(lambda x: _short(x, 18))
    shares, colours = rows[list(ANSWERS)].set_axis(names), (COLOURS["grapheval"], "#5b2a56", "0.85")
    shares.plot.barh(ax=axis, stacked=True, width=0.7, color=colours)
    axis.set(xlim=(0, 1), ylim=(-0.5, len(rows) + 0.8), ylabel="")
    axis.set_xlabel(f"answers of {seen.answers} (✓ true, ✗ false statement)")
    axis.legend(ncols=3, loc="upper center", columnspacing=0.8, handlelength=1)
    axis.set_title("GraphEval: is the statement true?", color=COLOURS["grapheval"])
    return seen.judged.melt("statement", list(ANSWERS))


def _taught(axis, seen: Look) -> pd.DataFrame:
    """How often the corpus states the fact, by form, and with a wrong object."""
    names = [*(form.replace("ation", "-\nation") for form in FORMS), "wrong\nobject"]
    bars = axis.bar(names, seen.taught, color=["0.55"] * len(FORMS) + ["0.2"])
    axis.bar_label(bars)
    axis.set(yticks=[], ylim=(0, max(1, seen.taught.max()) * 1.3))
    axis.set_title("How often it was taught this fact")
    return seen.taught.to_frame("times").melt(ignore_index=False).reset_index()


def _measures(axis, seen: Look) -> None:
    """The value of each measure; beside one below a half what the model did instead."""
    rows = seen.measures[seen.measures["measure"] != "MONITOR"].iloc[::-1]
    colours = rows["paper"].map(COLOURS)
    bars = axis.barh(rows["measure"], rows["value"], color=colours, alpha=0.6)
    bare = (rows["why"] == "") & (rows["value"] <= 0.5)
    axis.bar_label(bars, rows["why"].mask(bare, rows["value"].map("{:.2f}".format)), padding=3)
    axis.axvline(0.5, color="0.4", linestyle="--", linewidth=0.8)
    for tick, colour in zip(axis.get_yticklabels(), colours, strict=True):
        tick.set_color(colour)
    axis.set(xlim=(0, 1), xlabel="value (known: above ½)")
    said = seen.measures["known"].dropna().astype(bool)
    axis.set_title(f"Known? {said.sum()} of {len(said)} measures with a threshold say yes")


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def menu(model_name: str, fact: str, folder: Path, widgets: bool, pool: FactPool) -> dict[str, str]:
    """Show three fields and, below them, the board and the table of measures of what they hold.

    All are text fields with suggestions: in a <select> JupyterLab treats letters and arrows as its
    own shortcuts, which change the notebook (``m`` turns the cell into Markdown).

    widgets   False: show nothing
    returns   {"model_name": ..., "fact": ...}: the current choice, which the fields update
    """
    chosen = {"model_name": model_name, "fact": fact}
    if not widgets:
        return chosen
    import ipywidgets
    from IPython.display import display

    ids = pool.now.relations["relation"]
    relations = dict(sorted(zip(pool.now.relations["name"] + " (" + ids + ")", ids, strict=True)))
    first = facts.pick(pool.now, [fact]).facts["relation"].iloc[0]
    names = {"model": {name: name for name in lm.organisms()}, "relation": relations}
    names["fact"] = facts_of(pool, first)
    look_of = {"layout": {"width": "24em"}, "style": {"description_width": "5em"}}
    shown, boxes = ipywidgets.HTML(), {}
    for kind, known in (("model", model_name), ("relation", first), ("fact", fact)):
        value = next((name for name, each in names[kind].items() if each == known), known)
        settings = look_of | {"options": list(names[kind]), "description": kind, "value": value}
        boxes[kind] = ipywidgets.Combobox(continuous_update=False, **settings)

    def update(kind: str) -> None:
        typed, model, one = (boxes[name].value for name in (kind, "model", "fact"))
        try:
            if kind != "model" and typed and typed not in names[kind]:
                boxes[kind].value = find(kind, typed, names[kind])  # sends an event of its own
            elif kind == "relation" and typed:
                names["fact"] = facts_of(pool, relations[typed])
                boxes["fact"].options = list(names["fact"])
                for value in ("", next(iter(names["fact"]))):  # a value that stays sends no event
                    boxes["fact"].value = value
            elif model and one:
                shown.value = f"<p>prompting {html.escape(model)} …</p>"
                seen = look(pool, model, names["fact"][one], folder)
                shown.value = as_html(seen)
                chosen.update(model_name=model, fact=seen.fact)
        except ProbeError as error:
            shown.value = f"<p><b>{html.escape(str(error))}</b></p>"

    row = ipywidgets.HBox(list(boxes.values()), layout={"flex_flow": "row wrap"})
    display(ipywidgets.VBox([row, shown]))
    update("fact")
    for kind, box in boxes.items():
        box.observe(lambda change, kind=kind: update(kind), "value")
    return chosen


def as_html(seen: Look) -> str:
    """The board and the table of measures as HTML."""
    data = base64.b64encode(picture(board_figure(seen).figure, "png", dpi=192)).decode()
    alt = html.escape(f"{seen.title}: the measures of {seen.model}")
    table = seen.measures.style.format(precision=3, na_rep="–").hide(axis="index")
    image = f'<img style="width: 1056px; max-width: 100%" alt="{alt}" '
    return f'{image}src="data:image/png;base64,{data}">{escaped_html(table)}'


def find(kind: str, typed: str, names: dict[str, str]) -> str:
    """The first entry of ``names`` (label -> id) whose label or id begins with the typed text,
    ignoring case and kinds of dashes. Raise ProbeError, which names the nearest ones, if none
    does."""
    plain = lambda text: fold(re.sub(r"\s*[-–—]\s*", "-", text.strip()))
    for name, known in names.items():
        if any(plain(text).startswith(plain(typed)) for text in (name, known)):
            return name
    raise unknown(kind, typed, names)
