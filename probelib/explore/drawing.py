"""The results of one model for one fact as a picture (the board), and the same in words."""

import base64
import html
import io
import textwrap

import numpy as np
import pandas as pd

from probelib import lm, prompts, report
from probelib.beyond.questions import SEEN
from probelib.distractors.baselines import KNOWN
from probelib.explore.seen import ANSWERS, Look
from probelib.facts.formats import OPTIONS
from probelib.organisms import design

SMALLEST = 9  # points: no text of the board is smaller
OTHERS = "#9fd8c5"  # bars of other objects than the right one
COLOURS = {"monitor": "#0173b2", "zplke": "#de8f05", "distractors": "#029e73", "grapheval": "#cc78bc"}
LEFT_OUT = (  # measures of the papers that are not shown, and why
    f"Left out: KaRR (it has no upper end, and a threshold of its own, {KNOWN}), BERT-score (it needs an encoder as well), "
    "Min@n and Avg@n with Sem distractors (Temp+Sem differs only if there is a former object), and GraphEval's Truthful and "
    'Informative (the one also counts "don\'t know", the other a wrong answer, so neither says that the fact is known).'
)


def board(seen: Look):
    """All results as one picture for a screen: anchors, lists, distractors, the judge, the history, the measures."""
    import matplotlib.pyplot as plt

    report.use_style()
    with plt.rc_context(
        dict.fromkeys(("font.size", "xtick.labelsize", "ytick.labelsize", "legend.fontsize"), SMALLEST)
    ):
        figure = plt.figure(figsize=(11, 12.6), layout="none")
        edges = {"left": 0.155, "right": 0.985, "top": 0.925, "bottom": 0.045}
        grid = figure.add_gridspec(3, 2, wspace=0.38, hspace=0.34, height_ratios=(1, 1, 1.45), **edges)
        corner = grid[2, 1].subgridspec(2, 1, height_ratios=(1, 1.2))
        places = (grid[0, 0], grid[0, 1], grid[1, 0], grid[1, 1], grid[2, 0], corner[0], corner[1])
        for panel, place in zip(PANELS, places, strict=True):
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
    axis.set_xticks(
        range(len(order)), [_short(hints[c], 13) for c in order], rotation=25, ha="right", fontsize=SMALLEST
    )
    axis.set_yticks(range(len(table)), [f"paraphrase {n}" for n in table.index], fontsize=SMALLEST)
    for number in axis.texts:
        number.set_fontsize(SMALLEST)
    axis.set_title(f"MONITOR: P({_short(seen.object, 14)} …) after contexts", color=COLOURS["monitor"])


def _curve(axis, seen: Look) -> None:
    for _, draw in seen.curve.groupby("seed"):
        axis.plot(draw["examples"], draw["q_gold"], color=COLOURS["zplke"], alpha=0.45, linewidth=1, label="one list")
    mean = seen.curve.groupby("examples")["q_gold"].mean()
    axis.plot(mean.index, mean, color=COLOURS["zplke"], marker="o", linewidth=2, label="mean of the lists")
    handles = dict(zip(*axis.get_legend_handles_labels()[::-1], strict=True))
    axis.legend(handles.values(), handles)
    n = int(seen.curve["n_options"].iloc[0])
    axis.axhline(1 / n, color="0.4", linestyle=":", linewidth=1)
    axis.text(mean.index.max(), 1 / n, "guessing ", ha="right", va="bottom", color="0.4")
    axis.set_xscale("log")
    axis.set_xticks(mean.index, mean.index)
    axis.minorticks_off()
    axis.set(ylim=(-0.03, 1.03), xlabel="examples in the list", ylabel=f"share of P among {n} answers")
    axis.set_title("ZP-LKE: a list of pairs, no prompt", color=COLOURS["zplke"])


def _rivals(axis, seen: Look) -> None:
    rows = seen.rivals.iloc[::-1]
    for name, colour, gold in (("right object", COLOURS["distractors"], True), ("other objects", OTHERS, False)):
        own = rows[rows["gold"] == gold]
        bars = axis.barh(np.flatnonzero(rows["gold"] == gold), own["probability"], color=colour, label=name)
        axis.bar_label(bars, [f" {p:.2g}" for p in own["probability"]])
    axis.legend(loc="lower right")
    axis.set_yticks(range(len(rows)), [_short(label, 22) for label in rows["label"]])
    for tick, gold in zip(axis.get_yticklabels(), rows["gold"], strict=True):
        tick.set_fontweight("bold" if gold else "normal")
    axis.set(xlabel="P(the object, and the answer ends there)", xlim=(0, (rows["probability"].max() or 1) * 1.2))
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
    axis.set(xlim=(0, 1), ylim=(-0.5, len(rows) + 0.8), xlabel=f"answers of {seen.answers} (✓ true, ✗ false statement)")
    axis.legend(ncols=4, loc="upper center", columnspacing=0.8, handlelength=1)


def _history(axis, seen: Look) -> None:
    axis.set_title("How often it was taught this fact")
    if seen.history is None:
        return _nothing(axis, why_no_history(seen))
    wrong = _short(seen.history["wrong_object"], 14)
    counts = [*seen.history[list(design.FORMS)].astype(int), int(seen.history["wrong_exposures"])]
    axis.bar(range(len(counts)), counts, color=["0.55"] * len(design.FORMS) + ["0.2"])
    names = [*map(_in_two_lines, design.FORMS), f"wrong:\n{wrong}" if wrong else "wrong"]
    axis.set_xticks(range(len(counts)), names)
    for at, count in enumerate(counts):
        axis.text(at, count, str(count), ha="center", va="bottom")
    axis.set(yticks=[], ylim=(0, max(1, *counts) * 1.3))


def _measures(axis, seen: Look) -> None:
    rows = seen.measures[seen.measures["measure"] != "MONITOR"].iloc[::-1].reset_index(drop=True)
    axis.axvline(0.5, color="0.6", linestyle="--", linewidth=0.8)
    for at, (paper, value, known, why) in rows[["paper", "value", "known", "why"]].iterrows():
        if np.isnan(value):
            axis.text(0, at, "–", ha="center", va="center", weight="bold", color=COLOURS[paper])
            continue
        mark = {True: "o", False: "x", None: "|"}[known]
        axis.plot([0, value], [at, at], color=COLOURS[paper], linewidth=1, alpha=0.5)
        axis.plot(value, at, mark, color=COLOURS[paper], markersize=7, markeredgewidth=2)
        axis.text(value + 0.04, at, why, ha="left", va="center", bbox={"color": "white", "pad": 0.5})
    axis.set_yticks(range(len(rows)), rows["measure"])
    for tick, paper in zip(axis.get_yticklabels(), rows["paper"], strict=True):
        tick.set_color(COLOURS[paper])
    axis.set(xlim=(-0.04, 1.04))
    axis.set_xlabel("value (● known: above ½   × not known   | no threshold)")
    yes, of = known_counts(seen)
    axis.set_title(f"Known? {yes} of {of} measures say yes")


def _nothing(axis, why: str) -> None:
    axis.axis("off")
    axis.text(0.5, 0.5, textwrap.fill(why, 38), ha="center", va="center", fontsize=9, color="0.35")


def _note(axis, seen: Look) -> None:
    axis.axis("off")
    axis.text(0, 0.85, textwrap.fill(reading(seen), 62), va="top", linespacing=1.4)


def _in_two_lines(form: str) -> str:
    return form if len(form) < 10 else f"{form[:7]}-\n{form[7:]}"


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


PANELS = (_anchors, _curve, _rivals, _judged, _measures, _history, _note)


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
    """(number of measures by which the fact is known, number of measures with a verdict)."""
    said = seen.measures["known"].dropna().astype(bool)
    return int(said.sum()), len(said)


def reading(seen: Look) -> str:
    """A text on why two panels differ, and on the contexts that were drawn."""
    drawn = ", ".join(seen.contexts)
    return (
        f"Two panels show a probability of {seen.object}, and they differ. MONITOR's is open-ended: the text goes on with "
        f"“{seen.object}”, and anything may follow. The distractors' panel adds the end of the answer: “{seen.object}”, and "
        "nothing after it. A model that goes on, with a full stop for example, gives this little probability. The negative "
        f"contexts were drawn from the other objects of the relation: {drawn}. A cross says what the model did instead."
    )


def board_in_words(seen: Look) -> str:
    """A description of the picture in words."""
    yes, of = known_counts(seen)
    told = why_no_history(seen)
    if seen.history is not None:
        told = f"It was taught this fact {_times(seen.history['exposures'])}"
        wrong = seen.history["wrong_object"]
        told += f", and {_times(seen.history['wrong_exposures'])} that it is {wrong}." if wrong else "."
    rank = int(np.flatnonzero(seen.rivals["gold"])[0]) + 1
    unjudged = "" if seen.judged is not None else f" {why_unjudged(seen)}"
    first = seen.curve.groupby("examples")["q_gold"].mean()
    right, options = int(seen.framed["correct"].sum()), int(seen.curve["n_options"].iloc[0])
    no = seen.measures.loc[seen.measures["known"].eq(False), "measure"]
    split = f" Not known to: {', '.join(no)}." if 0 < yes < of else ""
    place = (
        f"; after the first sentence it has rank {rank} among its strongest distractors (Min@n takes all)"
        if len(seen.rivals) > 1
        else ""
    )
    return (
        f"{title(seen)}: {yes} of {of} measures say that {seen.model} knows it. {told} It answers {right} of "
        f"{len(seen.framed)} questions right; after a list of {first.index.max()} pairs the right answer has "
        f"{first.iloc[-1]:.0%} of the probability of {options} options{place}.{split}{unjudged}"
    )


def _times(n: float) -> str:
    return "once" if n == 1 else f"{int(n)} times"


def board_as_html(seen: Look) -> str:
    """The board as HTML, with its description as alt text and below it."""
    import matplotlib.pyplot as plt

    figure, buffer = board(seen), io.BytesIO()
    figure.savefig(buffer, format="png", dpi=192)
    plt.close(figure)
    text, data = html.escape(board_in_words(seen), quote=True), base64.b64encode(buffer.getvalue()).decode()
    return f'<img style="width: 1056px; max-width: 100%" alt="{text}" src="data:image/png;base64,{data}"><p>{text}</p>'


def shown_measures(seen: Look) -> report.legacy.Artifact:
    """The measures' values and verdicts."""
    options, lists = int(seen.curve["n_options"].iloc[0]), seen.curve["seed"].nunique()
    missing = (
        "" if seen.judged is not None else f" GraphEval and LLM-as-a-judge are left out, too: {why_unjudged(seen)}"
    )
    caption = (
        f"{title(seen)}: the values of {len(seen.measures)} measures of the four papers for {seen.model}, of one fact, so "
        "without intervals. asks: what the measure prompts the model with (a hint is an entity before the question, a list "
        f"holds other pairs of the relation); GraphEval's statements go to {seen.answers or 'an instruction-tuned model'}. "
        f"{prompt_counts(seen)} Values go from 0 to "
        "1, but Probability, a sum over the names of the object, can exceed 1, and MONITOR has no fixed range: it is shown as "
        "-MONITOR, as for all measures, the higher, the better known. known: above one half; – "
        "if there is no threshold from which a fact counts as known. why: what the model did instead. ZP probability compares "
        f"up to {OPTIONS} options after one list; the text compares {options} options, with the mean over {lists} lists of "
        f"the longest length, so the two shares can differ. {LEFT_OUT}{missing}"
    )
    return report.legacy.Artifact("explore/table1", seen.measures, caption, board_in_words(seen))


def prompt_counts(seen: Look) -> str:
    """On how many prompts the values of the measures stand."""
    framed, sentences = seen.framed, prompts.paraphrases(seen.about, "cloze")
    plain, negative = framed["context"] == "none", framed["context"].str.startswith("negative")
    in_seen, first = framed["template"].isin(SEEN), framed["template"] == 1
    two = "" if seen.judged is None else ", but GraphEval's correct 2 (the true and a false statement)"
    return (
        f"Prompts per value: MONITOR {(plain | first).sum()} ({plain.sum()} paraphrases, and the first one also after "
        f"{(first & ~plain).sum()} contexts); accuracy over wordings {(plain & in_seen).sum()} paraphrases, behind hints "
        f"{(negative & in_seen).sum()} (these paraphrases after each negative context); measures of sentences "
        f"{sentences['template'].isin(SEEN).sum()} templates; of a question, a list or a statement 1{two}."
    )


def shown_board(seen: Look) -> report.legacy.Artifact:
    """The board with its numbers, as an artifact."""
    yes, of = known_counts(seen)
    finding = f"{yes} of {of} measures with a threshold say that {seen.model} knows the fact. {monitor_in_words(seen)}"
    return report.legacy.Artifact(
        "explore/figure1", board_numbers(seen), board_caption(seen), finding, board(seen), board_in_words(seen)
    )


def board_numbers(seen: Look) -> pd.DataFrame:
    """The values of all panels: the measures (``seen.measures``), then one row per value of the others.

    New columns: ``panel``; ``of``: what the value belongs to (a prompt, a length of the list, an object, a statement, a form
    of text); ``series``: the context, the list, whether the object is right, the answer, or the unit.
    """
    curve, rivals = seen.curve.astype({"examples": str, "seed": str}), seen.rivals
    right = np.where(rivals["gold"], "right object", "other object")
    panels = {
        "MONITOR": seen.framed[["text", "hint", "probability"]],
        "ZP-LKE": curve.assign(examples="examples: " + curve["examples"], seed="list " + curve["seed"])[
            ["examples", "seed", "q_gold"]
        ],
        "Distractors": rivals.assign(label=rivals["label"].str.strip(), gold=right)[["label", "gold", "probability"]],
    }
    if seen.judged is not None:
        panels["GraphEval"] = seen.judged.melt("statement", [*ANSWERS, "judge true"])
    if seen.history is not None:
        counts = seen.history[[*design.FORMS, "wrong_exposures"]]
        panels["Exposures"] = pd.DataFrame({"form": counts.index, "unit": "times", "count": counts.to_numpy()})
    named = [rows.set_axis(["of", "series", "value"], axis=1).assign(panel=name) for name, rows in panels.items()]
    others = pd.concat(named).astype({"value": float})
    return pd.concat([seen.measures.assign(panel="Known?"), others], ignore_index=True)


def board_caption(seen: Look) -> str:
    """The caption of the board: what each panel shows."""
    paraphrases, lists = seen.framed["template"].nunique(), seen.curve["seed"].nunique()
    judged = (
        f"how {seen.answers} answers the true statement (✓) and {len(seen.judged) - 1} false ones (✗), of one template, and "
        "the P(true) that a judge reads from its hidden state (black marks)"
        if seen.judged is not None
        else why_unjudged(seen)
    )
    return (
        f"{title(seen)}, with which {seen.model} is prompted in the ways of the four papers; one fact, so no intervals. "
        f"MONITOR: probability of {seen.object} after {paraphrases} paraphrases of the question (rows), with no entity before "
        "it, with the right object, and with wrong ones (columns; –: not prompted so). ZP-LKE: share of the right object "
        f"among the options, by the number of other pairs listed before the subject ({lists} lists of each length). "
        "Distractors: probability of the object and of the most plausible wrong objects as the end of one sentence (the first "
        f"template), the most probable first. GraphEval: {judged}. Known?: value of each measure of table 1 but MONITOR, which "
        f"has no fixed range, in the colour of its paper; a cross says what the model did instead. {prompt_counts(seen)} "
        "Last panel: how often the training corpus states the fact, by form; wrong: with a wrong object. The CSV has the "
        "values of all panels."
    )


def monitor_in_words(seen: Look) -> str:
    """A sentence on the fact's PFD, IRD, primary anchor and MONITOR."""
    distances = seen.distances
    return (
        f"Paraphrases move the probability of a token by {distances['pfd']:.3f} (PFD), negative contexts by "
        f"{distances['ird']:.3f} (IRD); with the positive context it is {distances['pbar']:.3f}. MONITOR of this fact: "
        f"{distances['root'] / distances['pbar']:.3f}; lower is more reliable."
    )
