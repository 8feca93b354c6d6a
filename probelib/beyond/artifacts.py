"""Tables and figures beyond the papers: measured numbers in, ``report.Artifact`` out."""

import numpy as np
import pandas as pd

from probelib import report, stats
from probelib.beyond import trial
from probelib.beyond.suite import MEASURES
from probelib.report import Artifact, cases, check

PAPER_COLOURS = {
    "monitor": "#0173b2",
    "zplke": "#de8f05",
    "distractors": "#029e73",
    "grapheval": "#cc78bc",
    "beyond": "#ca9161",
    "control": "0.55",
}
# What the four papers propose
OWN = ("MONITOR", "ZP choice", "Avg@n ApprOpt", "Min@n ApprOpt", "GraphEval judge correct")


# Which measure sees knowledge? (beyond/ground_truth)


def rank_measures(
    values: pd.DataFrame, tokens: pd.Series, design: pd.DataFrame, bed: str, seed: int
) -> pd.DataFrame:
    """``trial.rank`` of every contrast, long: ``contrast``, the measure's ``paper``, whether it is
    a ``control``, its ``prompts``, its ``tokens`` a fact, what it ``added`` to the controls, and
    ``bed``, the name of the models."""
    control = [name for name in values["measure"].unique() if MEASURES[name].control]
    parts = {}
    for name, pairs in trial.contrasts(design).items():
        parts[name] = trial.rank(values, design, pairs, seed=seed)
        if len(parts) == 1:  # the primary one
            more = trial.added(values, design, pairs, control, seed)
            parts[name] = parts[name].merge(more, "left", "measure")
    table = pd.concat(parts, names=["contrast"]).reset_index("contrast").reset_index(drop=True)
    for column in ("paper", "prompts", "control"):
        table[column] = [getattr(MEASURES[m], column) for m in table["measure"]]
    return table.assign(tokens=table["measure"].map(tokens), bed=bed)


def primary_of(ranked: pd.DataFrame) -> pd.DataFrame:
    """The rows of the first contrast: the primary one of a trial, otherwise that of one model."""
    return ranked[ranked["contrast"] == ranked["contrast"].iloc[0]].reset_index(drop=True)


def ground_truth(ranked: pd.DataFrame) -> Artifact:
    """The primary contrast of each measure, and the other contrasts beside it; ``ranked``:
    ``rank_measures``."""
    first, name = primary_of(ranked), "beyond/ground_truth"
    others = ranked[ranked["contrast"] != ranked["contrast"].iloc[0]]
    wide = others.pivot(index="measure", columns="contrast", values="concordance")
    wide = wide[others["contrast"].unique()].reset_index()
    own, best = first[~first["control"]], _best_control(first)
    found = {
        "sees": cases(own, "concordance", "measure", "pairs").assign(missed=best["missed"]),
        "added": cases(own, "added", "measure"),
        "control": dict(zip(("value", "low", "high"), map(best.get, trial.SHARE), strict=True)),
    }
    if "right against wrong" in wide:
        wrong = others[(others["contrast"] == "right against wrong") & ~others["control"]]
        found["wrong"] = cases(wrong, "concordance", "measure", "pairs")
    paper = first["paper"].mask(first["control"], "control")
    kept = ["concordance", "yes or no", "rank low", "rank high", "behind", "p", "visible", "added"]
    kept = [c for each in kept for c in (each, f"{each} low", f"{each} high") if c in first]
    shown = pd.concat([first[["measure"]], paper, first[["tokens", "pairs", *kept]]], axis=1)
    shown = shown.merge(wide, "left", "measure")
    unable = [{"measure": m, "paper": MEASURES[m].paper} for m in _unable(first)]
    shown = pd.concat([shown, pd.DataFrame(unable, dtype=object)], ignore_index=True)
    return Artifact(name, ranked, check(name, **found), shown=shown)


def _best_control(first: pd.DataFrame) -> dict:
    """The control that orders most pairs, and what is ``missed`` if it beats chance."""
    best = first[first["control"] & (first["measure"] != "Chance")].iloc[0]
    return {**best, "missed": "controls at one half" if best["concordance low"] > 0.5 else ""}


def _unable(first: pd.DataFrame) -> list[str]:
    """The measures that need a model which judges statements, where there is none."""
    return [m for m in MEASURES if "tuned" in MEASURES[m].needs and m not in set(first["measure"])]


def quality_against_cost(*ranked: pd.DataFrame) -> Artifact:
    """A dot per measure with its interval in the primary contrast, hollow as yes or no, its cost in
    the right column, the best control as a band; ``ranked``: ``rank_measures`` of each bed. All
    beds keep the order of the first; how far their rankings agree with it (Spearman)."""
    beds = [first, *others] = list(map(primary_of, ranked))
    own = first[~first["control"]].reset_index(drop=True)
    unable = [name for name in _unable(first) if name in OWN]
    names, found = [*own["measure"], *unable], []
    size = report.TWO_COLUMNS, 0.16 * len(names) + 0.9
    figure, axes = report.subplots(*size, columns=len(beds), sharex=True)
    for axis, bed in zip(axes[0], beds, strict=True):
        _draw_bed(axis, bed, names, unable)
    table = pd.concat(beds, ignore_index=True)
    drawn = table.loc[~table["control"], [*trial.SHARE[1:], "yes or no"]]
    ends = min(0.5, drawn.min(axis=None)) - 0.02, min(1, drawn.max(axis=None)) + 0.02
    axes[0, 0].set(xlim=ends, yticks=range(len(names)), yticklabels=names)
    for label in axes[0, 0].get_yticklabels():
        label.set_weight("bold" if label.get_text() in OWN else None)
    costs = axes[0, -1].secondary_yaxis("right")
    costs.set_yticks(own.index, [f"{tokens:,.0f}" for tokens in own["tokens"]])
    costs.spines["right"].set_visible(False)
    for axis in (axes[0, 0], costs):
        axis.tick_params("y", length=0, labelsize=report.SMALL)
    title = {"loc": "right", "fontsize": report.SMALL, "fontweight": "normal"}
    axes[0, -1].set_title(f"tokens per\nfact, {own['bed'].iloc[0]}", **title)
    for paper, colour in PAPER_COLOURS.items():
        if paper in set(own["paper"]):
            axes[0, 0].plot([], [], "o", color=colour, markersize=4, label=report.PAPERS[paper])
    figure.legend(loc="outside upper left", ncols=5, fontsize=report.SMALL, handletextpad=0.2)
    figure.supxlabel("share of the pairs in the right order", fontsize=8)
    for bed in others:
        both = own.merge(bed, on="measure")
        ranks = both["concordance_x"].rank(), both["concordance_y"].rank()
        about = {"bed": bed["bed"][0], "missed": _best_control(bed)["missed"]}
        found.append(about | stats.pearson(*ranks))
    name = "beyond/quality_against_cost"
    agree = check(name, agree=pd.DataFrame(found).set_index("bed")) if found else None
    return Artifact(name, table, agree, figure)


def _draw_bed(axis, points: pd.DataFrame, names: list[str], unable: list[str]) -> None:
    """The dots of one bed, a row per name; ``unable``: measures that its models cannot take."""
    points = points.set_index("measure")
    axis.axvspan(0, _best_control(points.reset_index())["concordance"], color="0.94", zorder=0)
    axis.axvline(0.5, color="0.3", linewidth=0.9, linestyle=":", zorder=1)
    look = {"va": "center", "color": "0.4", "fontsize": report.SMALL}
    for name in [name for name in names if name not in points.index]:
        said = "cannot judge" if name in unable else "not run"
        axis.text(0.51, names.index(name), said, **look)
    for name, row in points[points.index.isin(names)].iterrows():
        place, (share, low, high) = names.index(name), row[trial.SHARE].astype(float)
        look = {"color": PAPER_COLOURS[row["paper"]], "marker": "o", "markersize": 4}
        ends = np.clip(np.nan_to_num([[share - low], [high - share]]), 0, None)
        axis.errorbar(share, place, xerr=ends, elinewidth=1, **look)
        axis.plot(row["yes or no"], place, fillstyle="none", **look)
    axis.set(ylim=(len(names) - 0.4, -0.6), yticks=[])
    axis.grid(False, axis="y")
    axis.set_title(points["bed"].iloc[0], loc="left")


def dose_curve(ranked: pd.DataFrame) -> Artifact:
    """The contrasts of each dose against 0: the best measure of each paper and Familiarity are
    drawn, the CSV holds all."""
    table = ranked[ranked["contrast"].str.endswith(" against 0")]
    if table.empty:
        return report.lacking("beyond/dose_curve", ranked)
    doses = table["contrast"].str.partition(" ")[0].astype(int)
    table = table.assign(dose=doses).sort_values(["dose", "measure"], ignore_index=True)
    first = primary_of(ranked)
    named = [*first[~first["control"]].groupby("paper", sort=False)["measure"].first()]
    named += first["measure"][first["measure"] == "Familiarity"].tolist()
    figure, ((axis,),) = report.subplots(report.COLUMN, 2.7)
    for number, name in enumerate(named):
        rows = table[table["measure"] == name]
        control = MEASURES[name].control
        colour = PAPER_COLOURS["control" if control else MEASURES[name].paper]
        place = rows["dose"] * 2 ** (0.05 * (number - (len(named) - 1) / 2))  # side by side
        share, low, high = (rows[column] for column in trial.SHARE)
        look = {"color": colour, "marker": "x" if control else "o", "markersize": 3, "label": name}
        look |= {"elinewidth": 0.6, "linewidth": 1, "linestyle": "--" if control else "-"}
        axis.errorbar(place, share, np.clip([share - low, high - share], 0, None), **look)
    axis.axhline(0.5, color="0.6", linewidth=0.8, linestyle=":")
    levels = sorted(table["dose"].unique())
    axis.set_xscale("log", base=2)
    axis.set_xticks(levels, levels)
    axis.minorticks_off()
    axis.set(xlabel="statements of the fact, against none", ylabel="pairs in the right order")
    options = {"ncols": 3, "fontsize": report.SMALL}
    figure.legend(*axis.get_legend_handles_labels(), loc="outside upper center", **options)
    few = table[~table["control"] & (table["dose"] == levels[0])]
    names = table[(table["measure"] == "Familiarity") & (table["dose"] == 2)]
    found = {"few": cases(few, "concordance", "measure", "pairs")}
    found |= {"names": cases(names, "concordance", "measure", "pairs")} if len(names) else {}
    return Artifact("beyond/dose_curve", table, check("beyond/dose_curve", **found), figure)


def placebo(values: pd.DataFrame, design: pd.DataFrame, seed: int) -> Artifact:
    """The noise of a training run: facts that were taught equally often, in two sisters."""
    if not (design["kind"] == "constant").any():
        return report.lacking("beyond/placebo", design.head(0))
    table = trial.placebo(values, design, seed=seed)
    claims = check("beyond/placebo", placebo=cases(table, "placebo", "measure"))
    return Artifact("beyond/placebo", table, claims)


def spread(values: pd.DataFrame, design: pd.DataFrame, seeds: list[str]) -> Artifact:
    """How far trainings differ, by seed and by corpus: ``trial.spread``."""
    if len(seeds) < 2:
        return report.lacking("beyond/spread", design.head(0)[["fact"]])
    return Artifact("beyond/spread", trial.spread(values, design, seeds))


# What else decides the ranking? (beyond/robustness)


def held_out_paraphrases(
    seen: pd.DataFrame, held_out: pd.DataFrame, design: pd.DataFrame, seed: int
) -> Artifact:
    """Concordance in paraphrases that the corpus used and in held-out ones; ``seen``, ``held_out``:
    values."""
    [pairs, *_] = trial.contrasts(design).values()
    table = trial.change(seen, held_out, design, pairs, seed=seed).query("pairs > 0")
    names = {"before": "seen", "after": "held-out"}
    names |= {"mean before": "mean seen", "mean after": "mean held-out"}
    columns = {"lower": "change", "mean": "mean change"}
    own = table[[not MEASURES[name].control for name in table["measure"]]]
    found = {key: cases(own, column, "measure") for key, column in columns.items()}
    claims = check("beyond/held_out", **found)
    return Artifact("beyond/held_out", table.rename(columns=names), claims)


def training_mixture(
    values: pd.DataFrame, design: pd.DataFrame, twins: tuple[str, str], seed: int
) -> Artifact:
    """Concordance for two models with the same exposures and different training mixtures."""
    # both under one name, so that a fact pairs the two models
    pair = [values[values["model"] == name].assign(model=twins[0]) for name in twins]
    same = design[design["model"] == twins[0]].reset_index(drop=True)
    pairs = trial.contrasts(same)[trial.ONE_MODEL]
    table = trial.change(*pair, same, pairs, seed=seed)
    table.insert(1, "prompts", [MEASURES[name].prompts for name in table["measure"]])
    table = table.sort_values("after", ignore_index=True, **stats.BEST_FIRST)
    names = {"before": twins[0], "after": twins[1]}
    names |= {"mean before": f"mean {twins[0]}", "mean after": f"mean {twins[1]}"}
    frame = table.rename(columns=names)
    shown = frame[["measure", "prompts", "pairs", *twins, "change", "change low", "change high"]]
    return Artifact("beyond/training_mixture", frame, shown=shown)


def misconceptions(values: pd.DataFrame, misled: list[str], matched: list[str]) -> Artifact:
    """Mean of each measure over facts with a misconception and over matched facts without."""
    table = trial.difference(values, pd.Index(misled), pd.Index(matched))
    names = {"one": "misled", "other": "not misled", "n one": "n misled", "n other": "n not misled"}
    table = table.rename(columns=names)
    own = table[[not MEASURES[name].control for name in table["measure"]]]
    found = check("beyond/misconceptions", lower=cases(own, "difference", "measure", "n misled"))
    return Artifact("beyond/misconceptions", table, found)
