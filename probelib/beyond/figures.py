"""Figures beyond the papers: measured numbers in, ``report.Artifact`` out."""

import re
import textwrap

import numpy as np
import pandas as pd

from probelib import report, stats
from probelib.beyond import audit
from probelib.beyond.concordance import concordance_by_exposures
from probelib.beyond.measures import agreement_pairs, alike_in_means, frontier, ordered_alike
from probelib.beyond.suite import MEASURES
from probelib.beyond.tables import ANSWER, COMPARED, RIGHT, TAUGHT, absent_measures, sign_of_monitor
from probelib.report import span
from probelib.report.legacy import Artifact

BLUE, ORANGE, GREEN, RED = "#0173b2", "#de8f05", "#029e73", "#d55e00"
PAPERS = {  # name, colour, marker
    "monitor": ("MONITOR", BLUE, "o"),
    "zplke": ("ZP-LKE", ORANGE, "s"),
    "distractors": ("Distractors and its baselines", GREEN, "^"),
    "grapheval": ("GraphEval", "#cc78bc", "D"),
    "beyond": ("in common use", "#ca9161", "P"),
}
FEW_MODELS = 4  # up to so many models give too few pairs of models to compare
LARGER = 0.01  # mean difference from which a value counts as larger than the share of facts taught
LOOKS = [(GREEN, ""), ("#ece133", "//"), (RED, "xx"), ("#cccccc", "..")]  # colour, hatch
VERDICTS = dict(zip(audit.VERDICTS, LOOKS, strict=True))


# Do the published numbers hold?


def audit_verdicts(claims: pd.DataFrame) -> Artifact:
    """Verdicts per paper; ``claims``: ``audit.table``."""
    papers = list(dict.fromkeys(claims["paper"]))
    counts = claims.groupby(["paper", "verdict"], sort=False).size().unstack(fill_value=0)
    counts = counts.reindex(papers).reindex(columns=audit.VERDICTS, fill_value=0)
    holds, caveat, fails, undecided = counts.sum()
    finding = (
        f"Of {len(claims)} claims, {holds} hold, {caveat} hold with a caveat, {fails} do not hold, and {undecided} cannot be "
        "decided from what is printed."
    )
    caption = (
        f"Verdicts on {len(claims)} published claims of {len(papers)} papers, recomputed from their printed tables. A claim "
        "holds if the recomputed value is the printed one, rounded or cut off at its last digit."
    )
    alt = "; ".join(f"{p}: " + ", ".join(f"{n} {v}" for v, n in row.items() if n) for p, row in counts.iterrows())
    figure = _stacked_verdicts(counts)
    return Artifact("beyond/audit_verdicts", counts.reset_index(), caption, finding, figure, alt)


def _stacked_verdicts(counts: pd.DataFrame):
    """One bar per paper, one part per verdict."""
    figure, axes = report.column(0.28 * len(counts) + 0.9)
    axis, left = axes[0, 0], np.zeros(len(counts))
    box = {"facecolor": "white", "edgecolor": "none", "pad": 0.8, "alpha": 0.75}
    for verdict, (colour, hatch) in VERDICTS.items():
        look = {"color": colour, "hatch": hatch, "edgecolor": "white", "label": verdict}
        bars = axis.barh(counts.index, counts[verdict], left=left, **look)
        shown = [n or "" for n in counts[verdict]]
        axis.bar_label(bars, shown, label_type="center", fontsize=report.SMALL, color="black", bbox=box)
        left = left + counts[verdict]
    axis.invert_yaxis()
    axis.set(xlabel="claims")
    handles = axis.get_legend_handles_labels()
    figure.legend(*handles, ncols=2, loc="outside upper center", fontsize=report.SMALL, columnspacing=1)
    return figure


def with_wilson(curve: pd.DataFrame) -> pd.DataFrame:
    """A curve of ``stats.reliability`` with Wilson's 95 % interval of the share right, by its units: ``right low``,
    ``right high``."""
    ends = [stats.wilson(round(share * n), n) for share, n in zip(curve["right"], curve["units"], strict=True)]
    low, high = np.array(ends).reshape(-1, 2).T
    return curve.assign(**{"right low": low, "right high": high})


# Which measure sees knowledge?


def quality_against_cost(ranked: pd.DataFrame, ceiling: pd.Series, within: list[str]) -> Artifact:
    """Concordance against tokens per fact; ``ranked``: ``tables.rank_measures``, ``ceiling``: ``tables.oracle``, ``within``:
    ``measures.headline_pairs``."""
    points = ranked[~ranked["control"]].dropna(subset=["concordance", "tokens a fact"]).set_index("measure")
    front = frontier(points["tokens a fact"], points["concordance"])
    names = labelled(points, front)
    best = points.loc[front, ["tokens a fact", "concordance"]]
    named = [f"{name} ({cost:,.0f} tokens, {share:.1%})" for name, cost, share in best.itertuples()]
    familiar = ranked[ranked["control"]].iloc[0]
    finding = (
        f"No cheaper measure puts more pairs in the right order than {', '.join(named)}. Of these, "
        f"{', '.join(name for name in front if points['p'][name] < 0.05) or 'none'} differs significantly from the best "
        f"measure (paired, Holm). The strongest control, {familiar['measure']}, reaches {familiar['concordance']:.1%} "
        f"{span(familiar['low'], familiar['high'], '.3f')}, though it does not test the fact."
    )
    caption = (
        f"Share of {RIGHT}, for {COMPARED[within[0]]} (n = {int(points['pairs'].max()):,} pairs; .5 is chance; bars: "
        "95 % bootstrap intervals over facts and models), against the tokens that the measure needs per fact: the higher and "
        "the further left, the better. The line joins the measures that no cheaper one beats, with bold names. Dashed: all "
        "measures together (a regression on their ranks, fitted on other facts, so it can lie below the best); dotted: the "
        "strongest control. Named besides: what the papers propose, and the best of each. Grey: the other measures."
    )
    caption += "".join(
        f" On the point of {name}: {', '.join(others)}." for name in names if (others := on_point(points, name))
    )
    caption += absent_measures(ranked)
    alt = f"Scatter plot of measures. On the line of what nothing cheaper beats: {', '.join(named)}."
    figure = _cost_scatter(points, names, front, ceiling["concordance"], familiar)
    return Artifact("beyond/quality_against_cost", ranked, caption, finding, figure, alt)


def on_point(points: pd.DataFrame, name: str, near: float = 0.005) -> list[str]:
    """The other measures whose markers coincide with that of ``name``: as many tokens, nearly the same concordance."""
    gap = (points["concordance"] - points.loc[name, "concordance"]).abs()
    same = (points["tokens a fact"] == points.loc[name, "tokens a fact"]) & (gap < near)
    return [other for other in points.index[same] if other != name]


# What the four papers propose
OWN = ("MONITOR", "ZP choice", "Avg@n ApprOpt", "Min@n ApprOpt", "GraphEval judge correct")


def labelled(points: pd.DataFrame, front: list[str], most: int = 10) -> list[str]:
    """The measures that a figure names: the frontier (the best of it, if it is long), the papers' ``OWN``, then the best and the
    second best of every paper, unless their markers coincide with that of a named one."""
    best = points.sort_values("concordance", ascending=False)
    kept = list(best.index[best.index.isin(front)][: most // 2])
    kept += [name for name in OWN if name in points.index and name not in kept]
    covered = {other for name in kept for other in on_point(points, name)}
    others = best[~best.index.isin({*kept, *covered})]
    place = others.groupby("paper").cumcount()
    others = place[place < 2].sort_values(kind="stable").index
    return [*kept, *others[: most - len(kept)]]


def _cost_scatter(points: pd.DataFrame, named: list[str], front: list[str], ceiling: float, control: pd.Series):
    cost, right = points["tokens a fact"], points["concordance"]
    figure, axes = report.column(4.2, width=report.TWO_COLUMNS)
    axis = axes[0, 0]
    report.cost_axis(axis, cost[front], right[front])
    rest = points.drop(index=named)
    axis.plot(rest["tokens a fact"], rest["concordance"], "o", color="0.75", markersize=4, linestyle="none")
    for paper, rows in points.loc[named].groupby("paper", sort=False):
        label, colour, marker = PAPERS[paper]
        axis.vlines(rows["tokens a fact"], rows["low"], rows["high"], color=colour, linewidth=1.2, alpha=0.4)
        look = {"color": colour, "label": label, "markersize": 6, "markeredgecolor": "white", "linestyle": "none"}
        axis.plot(rows["tokens a fact"], rows["concordance"], marker, **look)
    lowest, last = min(0.5, right.min(), control["concordance"]), cost.max() * 4  # names of levels are on the right
    levels = [("all measures together", ceiling, "--"), ("chance", 0.5, ":")]
    levels.insert(1, (f"{control['measure']} (control)", control["concordance"], ":"))
    for label, level, line in levels:
        axis.axhline(level, color="0.3", linewidth=0.9, linestyle=line, zorder=1)
        look = {"textcoords": "offset points", "ha": "right", "va": "top", "fontsize": 7, "style": "italic"}
        axis.annotate(label, (last, level), (-2, -2), color="0.3", **look)
    axis.set(xlabel="tokens that the model reads per fact (logarithmic)", ylabel=RIGHT)
    axis.set(xlim=(cost.min() / 2.5, last), ylim=(lowest - 0.04, min(1.0, points["high"].max()) + 0.12))
    axis.set_yticks([y / 10 for y in range(int(10 * lowest), 11) if y / 10 > lowest - 0.04])
    axis.yaxis.set_major_formatter(lambda y, _: f"{y:.0%}")
    figure.legend(*axis.get_legend_handles_labels(), loc="outside upper center", ncols=5, fontsize=7, handletextpad=0.2)
    report.label_points(axis, cost[named], right[named], named, bold=front)
    return figure


def detection(
    values: pd.DataFrame, design: pd.DataFrame, within: list[str], ranked: pd.DataFrame, seed: int = 0
) -> Artifact:
    """Concordance by the number of exposures of the taught fact; ``within``: ``measures.headline_pairs``, ``ranked``:
    ``tables.rank_measures``. The picture names the best measure of each paper and the best control."""
    table = concordance_by_exposures(values, design, within, seed=seed)
    scored, table, ranked = ranked, table[table["pairs"] > 0], ranked[ranked["pairs"] > 0]
    named = [*ranked[~ranked["control"]].groupby("paper", sort=False)["measure"].first()]
    named += ranked["measure"][ranked["control"]].head(1).tolist()
    caption = (
        f"Share of {RIGHT}, for {COMPARED[within[0]]}, by how often the taught one was read ({design['model'].nunique()} "
        f"models, {int(table['pairs'].min()):,} to {int(table['pairs'].max()):,} pairs per exposure count and measure; bars: "
        "95 % bootstrap intervals over facts and models; dotted: chance). Named: the best measure of each paper and the best "
        "control; the CSV holds all." + absent_measures(scored)
    )
    shown = table[table["measure"].isin(named)].pivot(index="exposures", columns="measure", values="concordance")
    alt = "; ".join(f"{name}: {shown[name].iloc[0]:.2f} to {shown[name].iloc[-1]:.2f}" for name in named)
    return Artifact("beyond/detection", table, caption, detection_finding(table, named), _detection(table, named), alt)


def detection_finding(table: pd.DataFrame, named: list[str], enough: float = 0.9) -> str:
    """The exposure count from which on each of the ``named`` measures puts at least ``enough`` of the pairs in the right
    order."""
    found = []
    for name, rows in table[table["measure"].isin(named)].groupby("measure", sort=False):
        rows = rows.sort_values("exposures")
        below = rows["exposures"][rows["concordance"] < enough]
        above = rows["exposures"] if below.empty else rows["exposures"][rows["exposures"] > below.max()]
        found.append((above.min() if len(above) else np.inf, named.index(name), name))
    at = lambda level: "at no exposure count" if level == np.inf else f"from {level:.0f} on"
    words = [f"{name} {at(level)}" for level, _, name in sorted(found)]
    return f"{enough:.0%} of the pairs are in the right order, by exposures of the taught fact: {', '.join(words)}."


def _detection(table: pd.DataFrame, named: list[str]):
    figure, axes = report.column(2.7)
    axis = axes[0, 0]
    for number, name in enumerate(named):
        rows = table[table["measure"] == name].sort_values("exposures")
        control = MEASURES[name].control
        _, colour, marker = ("", "0.4", "x") if control else PAPERS[MEASURES[name].paper]
        place = rows["exposures"] * 2 ** (0.05 * (number - (len(named) - 1) / 2))  # bars side by side
        bars = [rows["concordance"] - rows["low"], rows["high"] - rows["concordance"]]
        look = {"color": colour, "marker": marker, "markersize": 3, "elinewidth": 0.6, "linewidth": 1, "label": name}
        axis.errorbar(place, rows["concordance"], np.clip(bars, 0, None), linestyle="--" if control else "-", **look)
    axis.axhline(0.5, color="0.6", linewidth=0.8, linestyle=":")
    levels = sorted(table["exposures"].unique())
    axis.set_xscale("log", base=2)
    axis.set_xticks(levels, [f"{level:.0f}" for level in levels])
    axis.minorticks_off()
    axis.set(xlabel="exposures of the taught fact", ylabel="pairs in the right order")
    axis.yaxis.set_major_formatter(lambda y, _: f"{y:.0%}")
    figure.legend(*axis.get_legend_handles_labels(), loc="outside upper center", ncols=3, fontsize=report.SMALL)
    return figure


def reliability(values: pd.DataFrame, design: pd.DataFrame, taught: int = TAUGHT, enough: int = 10) -> Artifact:
    """Reliability diagrams of the probability-like measures; a fact counts as taught from ``taught`` exposures on. Bins of fewer
    than ``enough`` facts are in the CSV only."""
    values = values[values["measure"].map(lambda name: MEASURES[name].probability)]
    values = values.merge(design, on=["model", "fact"]).assign(taught=lambda rows: rows["exposures"] >= taught)
    groups = values.groupby("measure", sort=False)
    curves = [
        with_wilson(stats.reliability(rows["value"], rows["taught"], units=rows["fact"])).assign(measure=name)
        for name, rows in groups
    ]
    counts = groups["fact"].nunique()
    models = values["model"].unique()
    caption = (
        f"Share of the facts taught at least {taught} times, by the value of the measure in ten bins of at "
        f"least {enough} facts, over {len(models)} models ({', '.join(models)}); in parentheses: number of facts; bars: 95 % "
        "Wilson intervals by facts (a fact scored by several models counts once). A calibrated measure lies on the diagonal. "
        "The CSV has all bins with their n (facts times models) and units (facts)."
    )
    alt = "One small reliability diagram for each probability-like measure."
    shown = [own for curve in curves if len(own := curve[curve["units"] >= enough])] or curves
    figure = _reliability(shown, counts)
    return Artifact("beyond/reliability", pd.concat(curves), caption, reliability_finding(values), figure, alt)


def reliability_finding(values: pd.DataFrame) -> str:
    """Which measures are larger than the share taught; ``values``: ``measure``, ``fact``, ``value``, ``taught``."""
    gaps = values.assign(gap=values["value"] - values["taught"])
    gap = gaps.groupby("measure")["gap"].mean().sort_values()
    ends = []
    for name in (gap.index[-1], gap.index[0]):
        total, size = gaps[gaps["measure"] == name].groupby("fact")["gap"].agg(["sum", "size"]).to_numpy().T
        weight = stats.resample_counts(len(total), 2000)
        interval = stats.percentile_interval(weight @ total / (weight @ size))
        ends.append(f"{name} ({gap[name]:+.2f} {span(*interval, '+.2f')})")
    return (
        f"Of {len(gap)} measures that lie between 0 and 1, {(gap >= LARGER).sum()} are larger on average than the share of "
        f"the facts taught, by at least {LARGER:.2f}. The difference is highest for {ends[0]} and lowest for {ends[1]}; 95 % "
        "bootstrap intervals over facts."
    )


def _reliability(curves: list[pd.DataFrame], counts: pd.Series):
    import matplotlib.pyplot as plt

    rows = -(-len(curves) // 4)
    figure, axes = plt.subplots(rows, 4, figsize=(5.4, 1.45 * rows + 0.3), sharex=True, sharey=True, squeeze=False)
    look = {"fmt": "o-", "markersize": 3, "elinewidth": 0.6, "linewidth": 0.9, "color": BLUE}
    for axis, curve in zip(axes.flat, curves, strict=False):
        name = curve["measure"].iloc[0]
        bars = [curve["right"] - curve["right low"], curve["right high"] - curve["right"]]
        axis.plot([0, 1], [0, 1], color="0.75", linewidth=0.8)
        axis.errorbar(curve["probability"], curve["right"], bars, **look)
        axis.set_title(textwrap.fill(f"{name} ({counts[name]})", 14), fontsize=8)
        axis.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03), xticks=[0, 0.5, 1], yticks=[0, 0.5, 1])
    for axis in axes.flat[len(curves) :]:
        axis.set_axis_off()
    for axis in axes.flat[max(0, len(curves) - 4) : len(curves)]:
        axis.tick_params(axis="x", labelbottom=True)  # the lowest panel of its column
    figure.supxlabel("value of the measure", fontsize=9)
    figure.supylabel("share of the facts taught", fontsize=9)
    return figure


def few_per_paper(measures: list[str], most: int = 2) -> list[str]:
    """The first ``most`` measures of each paper, in their order."""
    papers = pd.Series([MEASURES[name].paper for name in measures], index=measures, dtype=object)
    return papers.groupby(papers, sort=False).head(most).index.tolist()


def kinds(table: pd.DataFrame, measures: list[str], sizes: pd.Series) -> Artifact:
    """Concordance by the type of the object; ``table``: ``measures.concordance_by_group``, ``measures``: their order, ``sizes``:
    type -> number of facts."""
    enough = table[table["facts"] > 9]  # with fewer facts, a perfect order is likely by chance
    wide = enough.pivot(index="measure", columns="group", values="concordance")
    wide = wide.reindex([name for name in measures if name in wide.index])
    few = {*few_per_paper(list(wide.index), 3), *OWN}
    pairs, shown = enough.groupby("group")["pairs"].max(), wide.loc[[name for name in wide.index if name in few]]
    absent = [name for name in measures if name not in wide.index]
    figure, axes = report.column(0.17 * len(shown) + 0.8)
    named = shown.set_axis([f"{kind} ({pairs[kind]})" for kind in wide.columns], axis=1)
    half = ((enough["high"] - enough["low"]) / 2).groupby(enough["group"]).median()
    report.heat(axes[0, 0], named, low=0.4, high=1.0, colours="viridis")
    axes[0, 0].tick_params(rotation=60, axis="x")
    caption = (
        f"Share of {RIGHT} (two facts of one relation), by the type of the object (number of pairs; of "
        f"{sizes[wide.columns].sum():,} facts), for the best three measures of each paper and what it proposes; the "
        "lighter, the more (.5 is chance). The CSV holds all, with pairs and 95 % intervals. A dash: fewer than ten facts. "
        f"Half an interval is {half.min():.2f} ({half.idxmin()}) to {half.max():.2f} ({half.idxmax()}) in the median "
        "measure, so types are not to be ranked by these numbers."
    )
    if absent:
        caption += f" Absent, with fewer than ten facts in every type: {', '.join(absent)}."
    alt = "Heat map of concordances, measures by object types."
    return Artifact("beyond/kinds", table, caption, kinds_finding(enough), figure, alt)


def kinds_finding(table: pd.DataFrame) -> str:
    """For how many measures the intervals of any two types are disjoint; ``table``: as in ``kinds``."""
    known = table.dropna(subset=["low", "high"])
    types = known["group"].nunique()
    if types < 2:
        return "Fewer than two types have an interval, so types are not compared."
    ends = known.groupby("measure", sort=False).agg(low=("low", "max"), high=("high", "min"))
    apart = ends.index[ends["low"] > ends["high"]].tolist()
    counted = f"{len(apart)} of {len(ends)} measures"
    if apart:
        found = f"The 95 % intervals of two of the {types} types are disjoint for {counted} ({', '.join(apart)}); "
        return found + "the other measures cannot tell types apart."
    found = f"The {types} types cannot be told apart: the 95 % intervals of two types are disjoint for {counted}, "
    return found + "so these facts give no order of types."


# Do the four papers measure the same thing?


def agreement(matrix: pd.DataFrame, values: pd.DataFrame, seed: int = 0) -> Artifact:
    """Share of pairs of facts that every two measures order alike; ``matrix``: ``measures.agreement_matrix`` in the order of the
    picture."""
    pairs, models = agreement_pairs(values, seed=seed), values["model"].unique()
    half = ((pairs["high"] - pairs["low"]) / 2).median()
    caption = (
        f"Share of pairs of facts that two measures order alike (a tie counts half; .5 is chance), mean over "
        f"{len(models)} models ({', '.join(models)}; up to n = {values['fact'].nunique():,} facts; measures that need a tuned "
        "partner have fewer), in the order of a hierarchical clustering. A measure of few levels cannot "
        "reach 1, not even with itself (diagonal). Shown: of each paper, and of the measures in common use, what it proposes "
        "and the two measures that agree most with all others; the CSV holds every pair with n, its 95 % bootstrap interval "
        f"over facts (half of it is {half:.2f} in the median pair), and the share among the pairs that both order."
        + sign_of_monitor(matrix.index.to_frame(name="measure"))
    )
    alt = "Heat map of the agreement between measures, clustered."
    central = few_per_paper(matrix.mean().sort_values(ascending=False, kind="stable").index.tolist())
    shown = [name for name in matrix.index if name in {*central, *OWN}]
    finding, figure = agreement_finding(pairs), _heat_maps({"": matrix.loc[shown, shown]})
    return Artifact("beyond/agreement", pairs, caption, finding, figure, alt)


def agreement_finding(pairs: pd.DataFrame) -> str:
    """Agreement within and between papers. Two readings of one score agree by construction and are left out."""
    score = lambda name: re.sub(r"^(Min|Avg)@n | (P\(true\)|correct|probability|choice)$", "", name)
    every, pairs = len(pairs), pairs[pairs["first"].map(score) != pairs["second"].map(score)]
    if pairs.empty:
        return ""
    left_out = f" Left out: {every - len(pairs)} of the {every} pairs, two readings of one score." * (
        len(pairs) < every
    )
    paper = lambda column: pairs[column].map(lambda name: MEASURES[name].paper)
    same = pairs.groupby(paper("first") == paper("second"))["alike"]
    means, n = same.mean().reindex([True, False]), same.size().reindex([True, False], fill_value=0)
    most, least = pairs.loc[pairs["alike"].idxmax()], pairs.loc[pairs["alike"].idxmin()]
    return (
        f"Measures of one paper, or both in common use, order {means[True]:.1%} of the pairs of facts alike on average "
        f"({n[True]} pairs of measures), measures of different sources {means[False]:.1%} ({n[False]}).{left_out} Closest are "
        f"{most['first']} and {most['second']} ({most['alike']:.1%} {span(most['low'], most['high'], '.1%')}), farthest "
        f"{least['first']} and {least['second']} ({least['alike']:.1%} {span(least['low'], least['high'], '.1%')}; 95 % CI)."
    )


def agreement_models(by_model: pd.DataFrame, by_cell: pd.DataFrame) -> Artifact:
    """Share of pairs of models, and of (model, relation) cells, that every two measures order alike; ``scores.mean_values``."""
    n_models, n_cells = len(by_model), len(by_cell)
    relations = by_cell.index.get_level_values("relation")
    parts = {f"models and relations (up to n = {n_cells})": alike_in_means(by_cell, relations)}
    if n_models > FEW_MODELS:
        parts[f"models (n = {n_models})"] = alike_in_means(by_model, by_model.index)
    frame = pd.concat([pairs.assign(over=over.split(" (")[0]) for over, pairs in parts.items()])
    mean = ordered_alike(by_cell).mean().sort_values(ascending=False, kind="stable")
    cells = next(iter(parts.values()))
    often = against_others(cells)
    kept = {*few_per_paper(mean.index.tolist()), *often.index[:1]}
    few = {f"over {over}": _matrix_of(pairs, [m for m in by_cell if m in kept]) for over, pairs in parts.items()}
    caption = (
        f"Share of pairs of means that two measures order alike (ties half; .5 is chance): {', '.join(few)}; models: "
        f"{', '.join(by_model.index)}. A dash: the "
        "measure itself, or a 95 % bootstrap interval (over relations or models) that holds .5. A mean over a relation "
        "depends on its objects, not on knowledge alone: see the page on ground truth. Shown: of each paper, and of the "
        "measures in common use, the two measures that agree most with all others, and the one that the finding names; the "
        "CSV holds all pairs with their intervals." + sign_of_monitor(mean.index.to_frame(name="measure"))
    )
    if n_models <= FEW_MODELS:
        caption += (
            f" Means over whole models are not compared: {n_models} models give only {n_models * (n_models - 1) // 2} pairs; "
            f"at least {FEW_MODELS + 1} models are needed."
        )
    alt = f"Heat map of the agreement between measures, {' and '.join(few)}."
    finding = means_finding(cells, often, n_cells)
    return Artifact("beyond/agreement_models", frame, caption, finding, _heat_maps(few), alt)


def against_others(pairs: pd.DataFrame) -> pd.Series:
    """Measure -> number of measures with which it orders significantly fewer than half of the pairs alike; most first."""
    below = pairs[pairs["high"] < 0.5]
    return pd.concat([below["first"], below["second"]]).value_counts()


def means_finding(pairs: pd.DataFrame, often: pd.Series, n_cells: int) -> str:
    """The share of means that measures order alike, and the measure that disagrees most often; ``often``: ``against_others``."""
    above, below = (pairs["low"] > 0.5).sum(), (pairs["high"] < 0.5).sum()
    named = f", {often.index[0]} in {often.iloc[0]} of them" if below else ""
    return (
        f"Of the pairs of {n_cells} cells two measures order {pairs['alike'].mean():.1%} alike on average. Of {len(pairs)} "
        f"pairs of measures, {above} order significantly more than half alike and {below} fewer{named} (95 % intervals over "
        f"relations; by chance {0.025 * pairs['low'].notna().sum():.1f} each)."
    )


def _matrix_of(pairs: pd.DataFrame, measures: list[str]) -> pd.DataFrame:
    """The square matrix of ``alike`` in the order of ``measures``; NaN on the diagonal and where the interval holds .5."""
    clear = pairs[(pairs["low"] > 0.5) | (pairs["high"] < 0.5)]
    half = clear.pivot(index="first", columns="second", values="alike").reindex(index=measures, columns=measures)
    return half.fillna(half.T)


def _heat_maps(matrices: dict[str, pd.DataFrame]):
    """Matrices of agreement side by side, each as wide as a printed column, under their titles."""
    figure, axes = report.column(3.3, columns=len(matrices), width=report.COLUMN * len(matrices))
    for axis, (title, matrix) in zip(axes[0], matrices.items(), strict=True):
        report.heat(axis, matrix, low=0.4, high=1.0, colours="viridis")
        axis.tick_params(axis="x", rotation=90, labelsize=report.SMALL)
        axis.tick_params(axis="y", labelsize=report.SMALL)
        axis.set_title(title, fontsize=7, fontweight="normal")
    return figure


# Does 8-bit or 4-bit cost knowledge?


def quantization_change(table: pd.DataFrame, model: str) -> Artifact:
    """Change of P(right answer), and facts lost and gained, in fewer bits; ``table``: ``measures.changes``."""
    shown = table[(table["measure"] == ANSWER) | table["p"].notna()]
    caption = (
        f"{model} in fewer bits against fp32, on the same n = {int(shown['n'].max())} facts. Top: change of the mean "
        "probability of the right answer after a plain question, with 95 % bootstrap intervals over facts. Bottom: facts lost "
        "(right at fp32, wrong in fewer bits) and gained, by measures of 0 and 1."
    )
    alt = "; ".join(
        f"{r.measure}, {r.precision}: {r.difference:+.3f}" if pd.isna(r.p) else f"{r.measure}, {r.precision}: {r.lost:.0f} lost, "
        f"{r.gained:.0f} gained" for r in shown.itertuples()
    )  # fmt: skip
    return Artifact("beyond/quantization_change", shown, caption, change_finding(shown), _lost_and_gained(shown), alt)


def change_finding(shown: pd.DataFrame) -> str:
    """How the probability of the right answer changes, and how many tests of lost and gained facts show a change."""
    answers, sides = shown[shown["measure"] == ANSWER], shown.dropna(subset=["p"])
    kinds = {"lower": answers["high"] < 0, "higher": answers["low"] > 0}
    kinds["not significantly changed"] = ~(kinds["lower"] | kinds["higher"])
    said = [
        f"{what} in "
        + ", ".join(f"{r.precision} ({r.difference:+.3f} {span(r.low, r.high, '.3f')})" for r in own.itertuples())
        for what, own in ((what, answers[rows]) for what, rows in kinds.items())
        if len(own)
    ]
    n = int(shown["n"].max())
    found = f"The probability of the right answer is {'; '.join(said)}, n = {n} facts. " if said else ""
    if sides.empty:
        return found.strip()
    lost, gained, few = sides["lost"].sum(), sides["gained"].sum(), int((stats.holm(sides["p"]) < 0.05).sum())
    return (
        f"{found}By measures of 0 and 1, {lost:.0f} facts are lost and {gained:.0f} gained in {len(sides)} comparisons; {few} "
        "of them show a change after Holm's correction of McNemar's test."
    )


def _lost_and_gained(shown: pd.DataFrame):
    import matplotlib.pyplot as plt

    answers, sides = shown[shown["measure"] == ANSWER], shown.dropna(subset=["p"]).reset_index(drop=True)
    sizes = {"figsize": (3.7, 1.9 + 0.2 * len(shown)), "height_ratios": (0.3 + len(answers), 0.8 + len(sides))}
    figure, (top, bottom) = plt.subplots(2, 1, **sizes)
    at = np.arange(len(answers))
    top.plot(answers["difference"], at, "o", color=BLUE)
    top.hlines(at, answers["low"], answers["high"], color=BLUE)
    top.set_yticks(at, answers["precision"], fontsize=7.5)
    top.set(xlabel="change of P(right answer)", ylim=(len(answers) - 0.5, -0.5))
    at = sides.index + 0.7 * pd.factorize(sides["measure"])[0]  # a gap between the measures
    bottom.barh(at, sides["gained"], color=GREEN, label="gained")
    bottom.barh(at, -sides["lost"], color=RED, hatch="//", edgecolor="white", label="lost")
    bottom.set_yticks(at, sides["precision"], fontsize=7.5)
    most = max(1, sides[["lost", "gained"]].max(axis=None)) if len(sides) else 1
    bottom.set(xlabel="facts lost (left) and gained (right)", xlim=(-1.9 * most, 1.1 * most))
    bold = {"fontsize": 7.5, "weight": "bold", "va": "top"}
    for measure, rows in sides.groupby("measure", sort=False):
        bottom.text(-1.85 * most, at[rows.index].min() - 0.35, measure.replace(" ", "\n"), **bold)
    bottom.xaxis.set_major_formatter(lambda x, _: f"{abs(x):.0f}")
    bottom.xaxis.get_major_locator().set_params(integer=True)
    bottom.invert_yaxis()
    for axis in (top, bottom):
        axis.axvline(0, color="0.3", linewidth=0.8)
    bottom.legend(fontsize=7.5, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
    return figure
