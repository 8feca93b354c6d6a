"""Tables and figures beyond the papers: measured numbers in, ``report.Artifact`` out."""

import re

import numpy as np
import pandas as pd

from probelib import report, stats
from probelib.beyond import concordance, measures
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
ORACLE = "All measures together"


# Which measure sees knowledge? (beyond/ground_truth)


def placebo(
    values: pd.DataFrame, design: pd.DataFrame, pairs: pd.DataFrame, within: list[str], seed: int
) -> Artifact:
    """Do the statistics find nothing where there is nothing? Shuffled values, and pairs of facts
    that were taught equally often. ``pairs``, ``within``: ``measures.headline_pairs``."""
    equal, blocks = concordance.placebo_pairs(design, within, seed), within
    if len(equal) < len(pairs):  # few sisters were taught a fact equally often
        blocks = concordance.FACTS
        equal = concordance.placebo_pairs(design, blocks, seed)
    table = concordance.permutation_test(values, design, pairs, within, seed=seed)
    table = table.dropna(subset="concordance")
    same = concordance.concordance(values, design, equal, seed=seed)
    names = ["measure", "placebo", "placebo low", "placebo high", "placebo pairs"]
    same = same[["measure", *concordance.SHARE, "pairs"]].set_axis(names, axis=1)
    table = table.merge(same, "left", "measure").assign(blocks=" and ".join(blocks))
    found = {name: cases(table, name, "measure") for name in ("shuffled", "placebo")}
    return Artifact("beyond/placebo", table, check("beyond/placebo", **found))


def rank_measures(
    values: pd.DataFrame, tokens: pd.Series, design: pd.DataFrame, pairs: pd.DataFrame, seed: int
) -> pd.DataFrame:
    """``concordance`` over the headline's ``pairs``, the best first, controls after the measures;
    with ``paper``, ``asks`` (the prompts), ``control``, ``tokens a fact``, what each adds to
    familiarity, and ``measures.all_statistics``."""
    control = values["measure"].map(lambda name: MEASURES[name].control).astype(bool)
    rank = lambda own: concordance.concordance(own, design, pairs, seed=seed)
    parts = [rank(values[mask]) for mask in (~control, control)]
    table = pd.concat([part for part in parts if len(part)], ignore_index=True)
    fields = {"paper": "paper", "asks": "prompts", "control": "control"}
    for place, (column, field) in enumerate(fields.items(), 1):
        table.insert(place, column, [getattr(MEASURES[m], field) for m in table["measure"]])
    table.loc[table["control"], concordance.BEHIND] = np.nan
    table["tokens a fact"] = table["measure"].map(tokens)
    if "Familiarity" in set(table["measure"]):
        more = concordance.added(values, design, pairs, "Familiarity", seed=seed)
        table = table.merge(more, on="measure", how="left")
    return table.merge(measures.all_statistics(values, design, seed=seed), "left", "measure")


def oracle(values: pd.DataFrame, design: pd.DataFrame, pairs: pd.DataFrame, seed: int) -> pd.Series:
    """Concordance of ``concordance.combine`` with all measures except controls."""
    names = [name for name in values["measure"].unique() if not MEASURES[name].control]
    together = concordance.combine(values, design, names, ORACLE)
    return concordance.concordance(together, design, pairs, seed=seed).iloc[0]


def ground_truth(ranked: pd.DataFrame) -> Artifact:
    """Concordance of each measure with what was taught; ``ranked``: ``rank_measures``."""
    own = ranked[~ranked["control"] & (ranked["pairs"] > 0)]
    control = ranked[ranked["control"]].iloc[0]
    found = {
        "sees": cases(own, "concordance", "measure", "pairs"),
        "behind": cases(own.iloc[1:], "behind", "measure"),
        "control": dict(zip(("value", "low", "high"), control[concordance.SHARE], strict=True)),
    }
    columns = ["tokens a fact", "concordance", "behind", "p", "added", "within relations", "tau"]
    paper = ranked["paper"].mask(ranked["control"], "control")
    kept = [c for name in columns for c in (name, f"{name} low", f"{name} high") if c in ranked]
    shown = pd.concat([ranked[["measure"]], paper, ranked[kept]], axis=1)
    name = "beyond/ground_truth"
    return Artifact(name, ranked, check(name, **found), best={"concordance": "max"}, shown=shown)


def quality_against_cost(ranked: pd.DataFrame, ceiling: pd.Series) -> Artifact:
    """A dot per measure with its interval, its cost in the right column, controls as a band;
    ``ranked``: ``rank_measures``, ``ceiling``: ``oracle``."""
    points = ranked[ranked["pairs"] > 0]
    own = points[~points["control"]].reset_index(drop=True)
    control = points[points["control"]].iloc[0]
    figure, axes = report.column(0.16 * len(own) + 0.9, width=report.TWO_COLUMNS)
    axis = axes[0, 0]
    axis.axvspan(0, control["concordance"], color="0.94", zorder=0)
    for level, style in ((0.5, ":"), (ceiling["concordance"], "--")):
        axis.axvline(level, color="0.3", linewidth=0.9, linestyle=style, zorder=1)
    for place, row in own.iterrows():
        colour, bold = PAPER_COLOURS[row["paper"]], row["measure"] in OWN
        look = {"color": colour, "marker": "o", "markersize": 4, "elinewidth": 1}
        share, low, high = row[concordance.SHARE]
        ends = [[share - low], [high - share]]
        axis.errorbar(share, place, xerr=np.clip(np.nan_to_num(ends), 0, None), **look)
        text = {"va": "center", "fontsize": report.SMALL, "transform": axis.get_yaxis_transform()}
        axis.text(1.01, place, f"{row['tokens a fact']:,.0f}", **text)
        axis.text(-0.01, place, row["measure"], ha="right", weight="bold" if bold else None, **text)
    for paper, colour in PAPER_COLOURS.items():
        if paper in set(own["paper"]):
            axis.plot([], [], "o", color=colour, markersize=4, label=report.PAPERS[paper])
    lowest = min(0.5, own["concordance low"].min(), own["concordance"].min())
    axis.set(ylim=(len(own) - 0.4, -0.6), xlim=(lowest - 0.02, 1.005), yticks=[])
    axis.set_xlabel("share of the pairs in the right order (shaded: up to the best control)")
    axis.set_title("tokens\nper fact", loc="right", fontsize=report.SMALL, fontweight="normal")
    figure.legend(loc="outside upper left", ncols=5, fontsize=report.SMALL, handletextpad=0.2)
    return Artifact("beyond/quality_against_cost", ranked, figure=figure)


def detection(
    values: pd.DataFrame, design: pd.DataFrame, within: list[str], ranked: pd.DataFrame, seed: int
) -> Artifact:
    """Concordance by the exposure count of the taught fact: the best measure of each paper and the
    best control are drawn, the CSV holds all. ``within``: ``measures.headline_pairs``."""
    table = concordance.concordance_by_exposures(values, design, within, seed=seed)
    table, ranked = table[table["pairs"] > 0], ranked[ranked["pairs"] > 0]
    named = [*ranked[~ranked["control"]].groupby("paper", sort=False)["measure"].first()]
    named += ranked["measure"][ranked["control"]].head(1).tolist()
    figure, axes = report.column(2.7)
    axis = axes[0, 0]
    for number, name in enumerate(named):
        rows = table[table["measure"] == name].sort_values("exposures")
        control = MEASURES[name].control
        colour = PAPER_COLOURS["control" if control else MEASURES[name].paper]
        place = rows["exposures"] * 2 ** (0.05 * (number - (len(named) - 1) / 2))  # side by side
        share, low, high = (rows[column] for column in concordance.SHARE)
        look = {"color": colour, "marker": "x" if control else "o", "markersize": 3, "label": name}
        look |= {"elinewidth": 0.6, "linewidth": 1, "linestyle": "--" if control else "-"}
        axis.errorbar(place, share, np.clip([share - low, high - share], 0, None), **look)
    axis.axhline(0.5, color="0.6", linewidth=0.8, linestyle=":")
    levels = sorted(table["exposures"].unique())
    axis.set_xscale("log", base=2)
    axis.set_xticks(levels, [f"{level:.0f}" for level in levels])
    axis.minorticks_off()
    axis.set(xlabel="exposures of the taught fact", ylabel="pairs in the right order")
    axis.yaxis.set_major_formatter(lambda y, _: f"{y:.0%}")
    options = {"ncols": 3, "fontsize": report.SMALL}
    figure.legend(*axis.get_legend_handles_labels(), loc="outside upper center", **options)
    few = table[(table["exposures"] == levels[0]) & table["measure"].isin(named)]
    found = check("beyond/detection", few=cases(few, "concordance", "measure"))
    return Artifact("beyond/detection", table, found, figure)


def coarse_twins(
    values: pd.DataFrame, design: pd.DataFrame, pairs: pd.DataFrame, seed: int
) -> Artifact:
    """The gain of a measure when it is made coarser or its ties are broken."""
    parts = []
    for name, twin in concordance.coarse_twins(values, seed).items():
        part = concordance.change(values, twin, design, pairs, seed=seed).assign(twin=name)
        tau = measures.change_of_tau(values, twin, design)
        parts.append(part.merge(tau, "left", "measure"))
    table = pd.concat(parts, ignore_index=True)
    table.insert(1, "twin", table.pop("twin"))
    table = table[table["pairs"] > 0].reset_index(drop=True)
    coarser = table[~table["twin"].str.contains("broken")]
    coarser = coarser.assign(case=coarser["measure"] + ", " + coarser["twin"])
    name, columns = "beyond/coarse_twins", {"gain": "change", "tau": "change of tau-b"}
    found = {key: cases(coarser, column, "case") for key, column in columns.items()}
    return Artifact(name, table, check(name, **found))


# What else decides the ranking? (beyond/robustness)


def held_out_paraphrases(
    seen: pd.DataFrame, held_out: pd.DataFrame, design: pd.DataFrame, pairs: pd.DataFrame, seed: int
) -> Artifact:
    """Concordance in paraphrases that the corpus used and in held-out ones; ``seen``, ``held_out``:
    values."""
    table = concordance.change(seen, held_out, design, pairs, seed=seed).query("pairs > 0")
    means = concordance.change_of_means(seen, held_out, design, seed=seed)
    table = table.merge(means, on="measure")
    names = {"before": "seen", "after": "held-out"}
    names |= {"mean before": "mean seen", "mean after": "mean held-out"}
    columns = {"lower": "change", "mean": "mean change"}
    found = {key: cases(table, column, "measure") for key, column in columns.items()}
    claims = check("beyond/held_out", **found)
    return Artifact("beyond/held_out", table.rename(columns=names), claims)


def training_mixture(
    values: pd.DataFrame, design: pd.DataFrame, twins: tuple[str, str], seed: int
) -> Artifact:
    """Concordance for two models with the same exposures and different training mixtures."""
    # both under one name, so that a fact pairs the two models
    pair = [values[values["model"] == name].assign(model=twins[0]) for name in twins]
    same = design[design["model"] == twins[0]].reset_index(drop=True)
    pairs = concordance.pairs_of(same, concordance.FACTS)
    table = concordance.change(*pair, same, pairs, seed=seed)
    table = table.merge(concordance.change_of_means(*pair, same, seed=seed), on="measure")
    table.insert(1, "asks", [MEASURES[name].prompts for name in table["measure"]])
    table = table.sort_values("after", ignore_index=True, **stats.BEST_FIRST)
    names = {"before": twins[0], "after": twins[1]}
    names |= {"mean before": f"mean {twins[0]}", "mean after": f"mean {twins[1]}"}
    found = check("beyond/training_mixture", depends=cases(table, "change", "measure"))
    frame = table.rename(columns=names)
    best = dict.fromkeys(twins, "max")
    shown = frame[["measure", "asks", "pairs", *twins, "change", "change low", "change high"]]
    return Artifact("beyond/training_mixture", frame, found, best=best, shown=shown)


def popularity(
    values: pd.DataFrame, design: pd.DataFrame, models: tuple[str, str], seed: int
) -> Artifact:
    """Concordance for two models of one size, with exposures at random and by popularity;
    ``models``: ``scores.POPULAR``."""
    parts = []
    for name, way in zip(models, ("at random", "by popularity"), strict=True):
        both = (frame[frame["model"] == name] for frame in (values, design))
        own, taught = (frame.reset_index(drop=True) for frame in both)
        pairs = concordance.pairs_of(taught, concordance.FACTS)
        part = concordance.concordance(own, taught, pairs, seed=seed)
        ends = {f"concordance{end}": f"{way}{end}" for end in ("", " low", " high")}
        part = part.set_index("measure")[["pairs", *ends]]
        parts.append(part.rename(columns=ends | {"pairs": f"pairs {way}"}))
    table = parts[0].join(parts[1], how="inner")
    table.insert(0, "control", [MEASURES[name].control for name in table.index])
    table["change"] = table["by popularity"] - table["at random"]
    table = table.sort_values("change", **stats.BEST_FIRST).reset_index()
    controls = table[table["control"]]
    name, columns = "beyond/popularity", {"chance": "at random", "popular": "by popularity"}
    found = {key: cases(controls, column, "measure") for key, column in columns.items()}
    return Artifact(name, table, check(name, **found))


def misconceptions(values: pd.DataFrame, misled: list[str], matched: list[str]) -> Artifact:
    """Mean of each measure over facts with a misconception and over matched facts without."""
    table = measures.contrast(values, pd.Index(misled), pd.Index(matched))
    names = {"one": "misled", "other": "not misled", "n one": "n misled", "n other": "n not misled"}
    table = table.rename(columns=names)
    found = check("beyond/misconceptions", lower=cases(table, "difference", "measure", "n misled"))
    return Artifact("beyond/misconceptions", table, found)


# Do the four papers measure the same thing? (beyond/agreement)


def agreement(matrix: pd.DataFrame, values: pd.DataFrame, seed: int) -> Artifact:
    """Share of pairs of facts that every two measures order alike; ``matrix``:
    ``measures.agreement_matrix`` in the order of the picture. Drawn: of each paper what it proposes
    and the two measures that agree most with all others."""
    pairs = measures.agreement_pairs(values, seed=seed)
    central = matrix.mean().sort_values(ascending=False, kind="stable").index.to_series()
    papers = central.map(lambda name: MEASURES[name].paper)
    kept = {*central.groupby(papers).head(2), *OWN}
    shown = [name for name in matrix.index if name in kept]
    figure, axes = report.column(3.3)
    report.heat(axes[0, 0], matrix.loc[shown, shown], low=0.4, high=1.0, colours="viridis")
    axes[0, 0].tick_params(axis="x", rotation=90, labelsize=report.SMALL)
    axes[0, 0].tick_params(axis="y", labelsize=report.SMALL)
    # two readings of one score agree by construction
    score = lambda name: re.sub(r"^(Min|Avg)@n | (P\(true\)|correct|probability|choice)$", "", name)
    other = pairs[pairs["first"].map(score) != pairs["second"].map(score)]
    other = other.assign(case=other["first"] + ", " + other["second"])
    paper = lambda column: other[column].map(lambda name: MEASURES[name].paper)
    same = paper("first") == paper("second")
    masks = {"within": same, "between": ~same}
    found = {k: cases(other[m], "alike", "case", "n") for k, m in masks.items() if m.any()}
    return Artifact("beyond/agreement", pairs, check("beyond/agreement", **found), figure)
