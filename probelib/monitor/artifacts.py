"""MONITOR's tables and figures: measured numbers in, ``Artifact`` out (texts: ``claims.yaml``)."""

import textwrap
from itertools import combinations, pairwise

import numpy as np
import pandas as pd

from probelib import stats
from probelib.facts import Facts
from probelib.facts.model import right_objects
from probelib.monitor import measures
from probelib.monitor.measures import MONITOR, SURE, Measured, margin
from probelib.published import table as published
from probelib.report import (
    Artifact,
    cases,
    charts,
    check,
    dot_rows,
    family,
    interval,
    lacking,
    model_style,
)

BLUE, ORANGE, GREEN, RED = "#0173b2", "#de8f05", "#029e73", "#c00000"
FORMS = ["WP", "QA", "FC-pos", "FC-neg"]
WITHIN = 3.5  # points of base accuracy between two models that figure 4 compares
LOWER = "MONITOR (lower is better)"


def _over_models(x: pd.Series, y, models: pd.Series, given=None) -> dict[str, float]:
    """``pearson_over_models`` with the families of these models."""
    return stats.pearson_over_models(x, y, models.map(family), given)


def _columns(r: dict, name: str = "r") -> dict[str, float]:
    """A correlation as columns of a table."""
    ends = {f"{name} low": r["low"], f"{name} high": r["high"]}
    return {name: r["r"]} | ends | {"p": r["p"], "n": r["n"]}


def _bars(table: pd.DataFrame) -> np.ndarray:
    """The error bars of MONITOR, [2, rows]."""
    low, high = table["MONITOR"] - table["MONITOR low"], table["MONITOR high"] - table["MONITOR"]
    return np.clip([low, high], 0, None)


# ---- sections 1 and 3: instability


def figure1(example: pd.DataFrame, model: str) -> Artifact:
    """One fact in all frames, then in every context. ``example``: ``scores.generate_framings``."""
    framing = example[example["context"] == "none"]
    contexts = example[(example["context"] != "none") | (example["template"] == 1)]
    panels = {f"(a) prompt framing, {model}": framing, "(b) in-context interference": contexts}
    heights = [len(rows) for rows in panels.values()]
    figure, axes = charts.subplots(6.3, 0.24 * sum(heights) + 0.8, 2, height_ratios=heights)
    for axis, (title, rows) in zip(axes.flat, panels.items(), strict=True):
        said = rows["answer"].str[:18].replace("", "(nothing)")
        said = list(zip(rows["text"], said, rows["correct"].map(bool), strict=True))
        charts.lines(axis, said, title)
    return Artifact("monitor/figure1", example, figure=figure)


def figure2(top: pd.DataFrame) -> Artifact:
    """The most probable objects (``label``, ``probability``) of two models after a ``text``."""
    models = top["model"].unique()
    figure, axes = charts.subplots(3.6, 1.1 * len(models) + 0.5, len(models), sharex=True)
    for axis, model in zip(axes.flat, models, strict=True):
        _objects(axis, top[top["model"] == model], model, color=model_style(model)["color"])
    axes[-1, 0].set(xlabel="probability")
    figure.suptitle(textwrap.fill(top["text"].iloc[0], 50), fontsize=8)
    return Artifact("monitor/figure2", top, figure=figure)


def _objects(axis, rows: pd.DataFrame, title: str, **look) -> None:
    """A panel of bars, one per object (``label``), with its ``probability`` beside it."""
    axis.barh(rows["label"], rows["probability"], **look)
    for y, p in enumerate(rows["probability"]):
        axis.text(min(p, 1), y, f" {p:.3f}", va="center", fontsize=8)
    axis.set(title=title, xlim=(0, 1.2), xticks=[0, 0.5, 1])
    axis.spines["bottom"].set_bounds(0, 1)
    axis.invert_yaxis()


def table2(judged: pd.DataFrame, sizes: dict[str, int]) -> Artifact:
    """Accuracy by form of the prompt (``measures.judge_forms``). ``sizes``: model -> parameters."""
    by_fact = judged.groupby(["model", "kind", "fact"])["correct"].mean().unstack("kind")
    by_fact, rows, claimed = by_fact.reindex(columns=FORMS), [], []
    for model, size in sizes.items():
        own, row = by_fact.loc[model], {"model": model, "parameters": size}
        for kind in FORMS:
            row |= interval(kind, own[kind], stats.mean_interval)
        rows.append(row)
        form, judged = own["QA"] - own["WP"], (own["FC-pos"] + own["FC-neg"]) / 2
        rows[-1] |= interval("FC", judged, stats.mean_interval)
        found = {"model": model, "n": form.count()} | interval("form", form, stats.mean_interval)
        claimed.append(found | interval("chance", judged - 50, stats.mean_interval))
    table, claimed = pd.DataFrame(rows).sort_values("parameters"), pd.DataFrame(claimed)
    form, chance = cases(claimed, "form", n="n"), cases(claimed, "chance")
    found = {"form": stats.magnitude(form), "chance": chance}
    return Artifact("monitor/table2", table, check("monitor/table2", **found))


def _boxes(axis, values: list, names: list[str], **look) -> dict:
    """Horizontal box plots of accuracies in percent, one per name."""
    options = {"orientation": "horizontal", "widths": 0.55, "flierprops": {"markersize": 3}}
    boxes = axis.boxplot(values, medianprops={"color": "black"}, **options, **look)
    axis.set(xlim=(-4, 104), xticks=[0, 50, 100])
    axis.set_yticks(range(1, len(names) + 1), names)
    return boxes


def figure7(judged: pd.DataFrame, sizes: dict[str, int]) -> Artifact:
    """The spread of accuracy over paraphrases, one panel per form. Arguments as in ``table2``."""
    means = judged.groupby(["model", "kind", "template"], sort=False)["correct"].mean()
    table, order = means.reset_index(name="accuracy"), sorted(sizes, key=sizes.get)
    panels = [kind for kind in FORMS if kind in set(table["kind"])]
    height = -(-len(panels) // 2)
    size = (4.4, (0.19 * len(order) + 0.5) * height + 0.3, height, min(2, len(panels)))
    figure, axes = charts.subplots(*size, sharex=True, sharey=True)
    for axis, kind in zip(axes.flat, panels, strict=False):
        values = table[table["kind"] == kind].groupby("model")["accuracy"].apply(list)
        box = {"facecolor": BLUE, "alpha": 0.5}
        _boxes(axis, [values[model] for model in order], order, patch_artist=True, boxprops=box)
        for y, model in enumerate(order, 1):
            axis.text(106, y, f"{np.ptp(values[model]):.0f}", va="center", fontsize=8)
        axis.set(title=kind)
    for axis in axes.flat[len(panels) :]:
        axis.axis("off")
    figure.supxlabel("accuracy in percent, one value per paraphrase; right: range", fontsize=9)
    found = measures.spread_of_paraphrases(judged)
    found.index = found["model"] + " " + found["kind"]
    return Artifact("monitor/figure7", table, check("monitor/figure7", differ=found), figure)


def table3(scores: dict[str, pd.DataFrame], prompts: pd.DataFrame) -> Artifact:
    """Accuracy without and with contexts. ``scores``: ``scores.score_answers`` by model."""
    rows = []
    for model, own in scores.items():
        runs = (measures.verdicts(own, prompts, run) for run in ("base", "positive", "negative"))
        base, right, wrong = (100 * run.mean(axis=1) for run in runs)
        lost = 100 - wrong[base == 100].dropna()  # only an answer that is given can be lost
        row = {"model": model, "parameters": own.attrs["parameters"], "×": base.mean()}
        row |= {"[Y]": right.mean()} | interval("Δ [Y]", right - base, stats.mean_interval)
        row |= {"[Y_]": wrong.mean()} | interval("Δ [Y_]", wrong - base, stats.mean_interval)
        rows.append(row | {"answered": len(lost)} | interval("lost", lost, stats.mean_interval))
    table = pd.DataFrame(rows).sort_values("parameters")
    right, wrong = (cases(table, name) for name in ("Δ [Y]", "Δ [Y_]"))
    return Artifact("monitor/table3", table, check("monitor/table3", right=right, wrong=wrong))


def figure3(prompts: pd.DataFrame, objects: pd.DataFrame, gold: str) -> Artifact:
    """The most probable objects after the prompts of a primary and two far foreign anchors
    (``measures.farthest_prompts``). ``objects``: ``scores.score_objects``; ``gold``: a label."""
    top = objects.sort_values("logprob", **stats.BEST_FIRST).groupby("prompt").head(3)
    missing = objects[(objects["label"] == gold) & ~objects.index.isin(top.index)]
    table = pd.concat([top, missing]).sort_values(["prompt", "logprob"], ascending=[True, False])
    table["gold"] = table["label"] == gold
    figure, axes = charts.subplots(4.0, 4.4, 3, sharex=True)
    (_, f, n), (primary, frame, wrong) = prompts["distance"], prompts["text"]
    titles = [f"(a) {objects.at[0, 'model']}: {primary}", f"(b) {frame} |p - f| = {f:.3f}"]
    primary = table[table["gold"]].set_index("prompt")["probability"][0]
    for i, title in enumerate([*titles, f"(c) {wrong} |p - n| = {n:.3f}"]):
        bars, axis = table[table["prompt"] == i].reset_index(drop=True), axes[i, 0]
        look = {"color": np.where(bars["gold"], ORANGE, "0.75")}
        look["hatch"] = np.where(bars["gold"], "//", "")
        _objects(axis, bars, textwrap.fill(title, 46), **look)
        if i:
            y = bars.index[bars["gold"]][0]
            axis.axvline(primary, color=ORANGE, linestyle="--", linewidth=1)
            look = {"arrowstyle": "<->", "color": RED, "shrinkA": 0, "shrinkB": 0}
            ends = (bars["probability"][y], y + 0.3), (primary, y + 0.3)
            axis.annotate("", *ends, arrowprops=look)
    axes[-1, 0].set(xlabel="probability; dashed: primary anchor")
    columns = ["text", "label", "gold", "probability", "logprob"]
    return Artifact("monitor/figure3", table[columns], figure=figure)


def table9(facts: Facts, whole: Facts) -> Artifact:
    """Facts, frames and known problems per relation: ``leaked``: the object is part of the subject;
    ``several`` right ones, and a ``right distractor``, by the ``whole`` data."""
    known, label = right_objects(whole), facts.entities.set_index("entity")["label"].str.casefold()
    offered = facts.distractors.groupby("fact")["object"].agg(set).to_dict()
    questions = facts.templates[facts.templates["role"] == "question"]
    frames, rows = questions["relation"].value_counts(), []
    columns = ["fact", "relation", "subject", "object"]
    for fact, relation, subject, obj in facts.facts[columns].itertuples(index=False):
        right, wrong = known.get((relation, subject), set()) | {obj}, offered.get(fact, set())
        flaws = (label[obj] in label[subject], len(right) > 1, bool(right & wrong))
        r = frames[relation]
        rows.append((relation, 1, r, *flaws, r + 1 + len(wrong)))  # prompts: R + 1 + M
    flaws = ["leaked", "several", "right distractor", "prompts"]
    rows = pd.DataFrame(rows, columns=["relation", "facts", "frames", *flaws])
    ways = {"facts": "sum", "frames": "first"} | dict.fromkeys(flaws, "sum")
    first = facts.templates[facts.templates["number"] == 1]
    first = first.pivot(index="relation", columns="role", values="template")
    named = {"statement": "template", "question": "prompt example"}
    table = facts.relations[["relation", "name", "object_type"]]
    table = table.rename(columns={"object_type": "object type"})
    table = table.join(first.reindex(columns=list(named)).rename(columns=named), on="relation")
    return Artifact("monitor/table9", table.join(rows.groupby("relation").agg(ways), on="relation"))


# ---- section 5.2.1: main results


def table4(measured: Measured) -> Artifact:
    """The main results per model; ``common``: MONITOR over the facts that all models anchor."""
    table, common = measured.models.copy(), measures.anchored_by_all(measured.facts)
    anchored = measured.relations.groupby("model")["anchored acc"].mean()
    table["anchored acc"] = table["model"].map(anchored)
    among = [facts[facts["fact"].isin(common)] for facts in measured.facts.values()]
    table["common facts"] = len(common)
    table["common"] = [measures.per_relation(facts)["MONITOR"].mean() for facts in among]
    found = {"all": _over_models(table["MONITOR"], table["avg acc"], table["model"])}
    ranked = table.dropna(subset=["MONITOR"]).sort_values("MONITOR")["model"].tolist()
    if len(ranked) > 1:
        found["lead"] = margin(measured, *ranked[:2])
    best = {"MONITOR": "min"} if "lead" in found and found["lead"]["low"] > 0 else {}
    return Artifact("monitor/table4", table, check("monitor/table4", **found), best=best)


def table5(measured: Measured, relations: list[str]) -> Artifact:
    """Relations in detail, side by side. The claim is about the last one."""
    table = measured.models[["model", "parameters"]]
    shown, last = table[["model"]], relations[-1]
    for relation in relations:
        own = measured.relation(relation).set_index("model")
        n, own = own["n"].iloc[0], own[[*MONITOR, "avg acc", "probs", "coverage"]]
        table = table.join(own.add_prefix(f"{relation}: "), on="model")
        shown = shown.join(own.add_prefix(f"{relation} ({n}): "), on="model")
    pairs = measures.similar_pairs(measured.relation(last))
    found = {f"{b} - {a}": margin(measured, a, b, last) for a, b in pairs}
    claims = check("monitor/table5", alike=pd.DataFrame(found).T)
    return Artifact("monitor/table5", table, claims, shown=shown)


def table10(measured: Measured, facts: Facts) -> Artifact:
    """MONITOR by relation and model."""
    about = measured.relations.groupby("relation").agg({"n": "first", "coverage": "median"})
    table = facts.relations[["relation", "name"]].join(about, on="relation")
    wide = measured.relations.pivot(index="relation", columns="model", values="MONITOR")
    table = table.join(wide[measured.models["model"]], on="relation")
    values = table[measured.models["model"]].agg(["median", "max"], axis=1)
    two = measured.models.sort_values("MONITOR")["model"].head(2)
    shown = table[["relation", "name", "n", "coverage", *two]].join(values)
    return Artifact("monitor/table10", table, shown=shown)


def table11(measured: Measured) -> Artifact:
    """The correlation of MONITOR with accuracy in every relation, over all and anchored facts."""
    rows = []
    for relation, own in measured.relations.groupby("relation", sort=False):
        r = _over_models(own["MONITOR"], own["avg acc"], own["model"])
        r_anchored = _over_models(own["MONITOR"], own["anchored acc"], own["model"])
        rows.append({"relation": relation} | _columns(r_anchored, "r anchored") | _columns(r))
    table = pd.DataFrame(rows)
    paper = published("monitor/table11").set_index("relation")["pearson_r"]
    table["paper's r"] = table["relation"].map(paper)
    if _few(measured.models):
        return lacking("monitor/table11", table)
    claims = check("monitor/table11", each=cases(table, "r", "relation", "n"))
    return Artifact("monitor/table11", table, claims)


def _few(table: pd.DataFrame, column: str = "MONITOR") -> bool:
    """Whether fewer than three models have a MONITOR; variants of a model count once."""
    return table.dropna(subset=[column])["parameters"].nunique() < 3


def _title(axis, table: pd.DataFrame) -> None:
    """Over a panel, the relation of a table of one relation, and its number of facts."""
    axis.set_title("{}, {} facts".format(*table[["relation", "n"]].iloc[0]), fontsize=8)


def _families(measured: Measured) -> dict[str, list[str]]:
    """family -> its models that have a MONITOR, by size; of one size (variants) the first."""
    table = measured.models.dropna(subset=["MONITOR"]).sort_values("parameters", kind="stable")
    table = table.assign(family=table["model"].map(family))
    table = table.drop_duplicates(["family", "parameters"])
    return table.groupby("family")["model"].apply(list).to_dict()


def figure11(measured: Measured) -> Artifact:
    """MONITOR against size in the largest family, for relations with three facts (else all)."""
    sizes = measured.models[["model", "parameters"]]
    table = measured.relations.drop(columns=["base acc", "anchored acc"]).merge(sizes, on="model")
    table["family"] = table["model"].map(family)
    largest = sizes["model"].map(family).value_counts().index[0]
    models = _families(measured).get(largest, [])
    table = table[table["family"] == largest].sort_values("parameters", kind="stable")
    if len(models) < 2:
        return lacking("monitor/figure11", table)
    drawn = table[table["n"] >= 3] if (table["n"] >= 3).any() else table
    curves = drawn.groupby(["relation", "n"], sort=False)
    columns = min(5, curves.ngroups)
    height = -(-curves.ngroups // columns)
    size = (4.4, 0.6 + 0.85 * height, height, columns)
    figure, axes = charts.subplots(*size, sharex=True, sharey=True)
    for axis in axes.flat[curves.ngroups :]:
        axis.axis("off")
    colour, found = model_style(models[-1])["color"], {}
    for place, (axis, ((r, n), own)) in enumerate(zip(axes.flat, curves, strict=False)):
        axis.plot(own["parameters"], own["MONITOR"], marker="o", markersize=3, color=colour)
        ends = (own["MONITOR low"], own["MONITOR high"])
        axis.fill_between(own["parameters"], *ends, color=colour, alpha=0.2, linewidth=0)
        axis.set_title(f"{r} ({n})", fontsize=8, pad=2)
        charts.size_axis(axis, drawn["parameters"])
        axis.set_xlabel(None)
        found[r] = margin(measured, models[0], models[-1], r)
        bottom = place + columns >= curves.ngroups  # no panel below it
        axis.tick_params(axis="x", labelsize=7, labelbottom=bottom)
    figure.supxlabel(f"parameters without embeddings ({largest})", fontsize=9)
    figure.supylabel("MONITOR", fontsize=9)
    claims = check("monitor/figure11", falls=pd.DataFrame(found).T)
    return Artifact("monitor/figure11", table, claims, figure)


def figure12(measured: Measured) -> Artifact:
    """Overall MONITOR against size, one line per family."""
    table = measured.models.sort_values("parameters")
    table.insert(0, "family", table["model"].map(family))
    shown = table[["family", "model", "parameters", *MONITOR, "coverage"]]
    families = {name: models for name, models in _families(measured).items() if len(models) > 1}
    if not families:
        return lacking("monitor/figure12", shown)
    figure, ((axis,),) = charts.subplots(4.4, 3.6)
    for name, own in table.groupby("family"):
        look = model_style(own["model"].iloc[-1]) | {"capsize": 2, "label": name}
        axis.errorbar(own["parameters"], own["MONITOR"], _bars(own), **look)
    charts.size_axis(axis, table["parameters"])
    axis.set(ylabel=LOWER, title=f"{len(next(iter(measured.facts.values())))} facts")
    figure.legend(loc="outside upper center", ncols=3)
    ends = {name: margin(measured, m[0], m[-1]) for name, m in families.items()}
    pairs = [pair for models in families.values() for pair in pairwise(models)]
    steps = {f"{b} - {a}": margin(measured, a, b) for a, b in pairs}
    found = {"falls": pd.DataFrame(ends).T, "steps": pd.DataFrame(steps).T}
    return Artifact("monitor/figure12", shown, check("monitor/figure12", **found), figure)


# ---- section 5.2.2: stability


def table6(measured: Measured, relation: str) -> Artifact:
    """MONITOR and the standard deviation of the accuracy over all runs of one relation."""
    table = measures.instability(measured, relation)
    r = _over_models(table["MONITOR"], table["std"], table["model"])
    return Artifact("monitor/table6", table, check("monitor/table6", spread=r))


def figure4(measured: Measured, relation: str) -> Artifact:
    """Accuracies of all runs of a relation as boxes; the claim compares models of similar ones."""
    table = measures.instability(measured, relation).set_index("model")  # by base accuracy
    runs = {m: own[own["relation"] == relation]["accuracy"] for m, own in measured.runs.items()}
    order, places = table.index.tolist(), np.arange(1, len(table) + 1)
    size = (4.4, 0.24 * len(order) + 1.1, 1, 2)
    figure, ((axis, right),) = charts.subplots(*size, sharey=True, width_ratios=(3, 1.3))
    mean = {"marker": "^", "markerfacecolor": GREEN, "markeredgecolor": "none"}
    boxes = _boxes(axis, [runs[m] for m in order], order, showmeans=True, meanprops=mean)
    boxes["medians"][0].set_label("median")
    boxes["means"][0].set_label("mean")
    look = {"color": RED, "markersize": 4, "zorder": 5, "label": "base accuracy"}
    axis.plot(table["base acc"], places, "o", **look)
    axis.set(xlabel="accuracy in percent")
    _title(axis, table)
    right.errorbar(table["MONITOR"], places, xerr=_bars(table), fmt="*", color=BLUE, markersize=7)
    right.set(xlabel="MONITOR\n(lower is better)", xlim=(0, None))
    figure.legend(*axis.get_legend_handles_labels(), loc="outside upper center", ncols=3)
    frame = pd.concat([pd.DataFrame({"model": m, "accuracy": runs[m]}) for m in order])
    frame = frame.join(table[["relation", "base acc", *MONITOR]], on="model")
    ranked = table.dropna(subset=["MONITOR"]).sort_values("MONITOR")["base acc"]
    pairs = combinations(ranked.index, 2)  # the second has the higher MONITOR
    alike = [(a, b) for a, b in pairs if abs(ranked[a] - ranked[b]) <= WITHIN]
    steadier = {f"{b} - {a}": margin(measured, a, b, relation, "std") for a, b in alike}
    claims = check("monitor/figure4", steadier=pd.DataFrame(steadier).T)
    return Artifact("monitor/figure4", frame.reset_index(drop=True), claims, figure)


def figure8(measured: Measured, relation: str) -> Artifact:
    """MONITOR against the standard deviation of accuracy, in points and relative to accuracy."""
    import seaborn

    table = measures.instability(measured, relation)
    if _few(table):
        return lacking("monitor/figure8", table)
    figure, ((axis, right),) = charts.subplots(4.4, 4.0, 1, 2, sharey=True)
    look = {"scatter": False, "ci": None, "color": "0.4", "line_kws": {"linewidth": 1}}
    for one, column in ((axis, "std"), (right, "relative")):
        _scatter(one, table, column, "MONITOR")
        seaborn.regplot(table, x=column, y="MONITOR", ax=one, **look)
        one.set(xlim=(0, 1.08 * one.get_xlim()[1]), ylim=(0, 1.08 * one.get_ylim()[1]))
        r = stats.pearson(table[column], table["MONITOR"])["r"]
        one.set_title(f"{one.get_title('left')}, r = {r:.2f}", fontsize=8)
    axis.set(xlabel="std of accuracy, points", ylabel=LOWER)
    right.set(xlabel="std over avg acc", ylabel="")
    r = _over_models(table["MONITOR"], table["relative"], table["model"])
    return Artifact("monitor/figure8", table, check("monitor/figure8", relative=r), figure)


def _scatter(axis, table: pd.DataFrame, x: str, y: str) -> None:
    """One mark per model, named in the legend of the figure; over it the relation."""
    _title(axis, table)
    for row in table.dropna(subset=[x, y]).to_dict("records"):
        look = model_style(row["model"]) | {"linestyle": "none"}
        axis.plot(row[x], row[y], label=row["model"], **look)
    if axis.get_legend_handles_labels()[0] and not axis.figure.legends:
        axis.figure.legend(*axis.get_legend_handles_labels(), loc="outside lower center", ncols=2)


def correlations(measured: Measured, common: Measured, alone: Measured, relation: str) -> Artifact:
    """The correlations of the paper, ours beside the printed ones (``alone``: of table 6)."""
    models, shared, spread = measured.models, common.models, measures.instability(alone, relation)
    anchored = measured.relations.groupby("model")["anchored acc"].mean()
    anchored = models["model"].map(anchored)
    ranks = models[["MONITOR", "avg acc"]].rank().assign(model=models["model"])
    n = len(next(iter(common.facts.values())))
    table4, table6 = published("monitor/table4"), published("monitor/table6")
    given = stats.partial(table4["MONITOR"], table4["avg_acc"], table4["probs"])
    table4 = stats.pearson(table4["MONITOR"], table4["avg_acc"])
    table6, none = stats.pearson(table6["MONITOR"], table6["std"]), {"r": np.nan, "p": np.nan}
    rows = [
        ("table 4", "MONITOR, avg acc", models, models["avg acc"], table4),
        ("table 4", "MONITOR, avg acc, given probs", models, models["avg acc"], given),
        ("table 4", "MONITOR, avg acc, by ranks", ranks, ranks["avg acc"], none),
        ("table 4", "MONITOR, avg acc of the anchored facts", models, anchored, table4),
        ("table 4", f"both over {n} facts that all models anchor", shared, shared["avg acc"], none),
        ("table 6", "MONITOR, std", spread, spread["std"], table6),
        ("table 6", "MONITOR, std over avg acc", spread, spread["relative"], none),
    ]
    table = []
    for place, between, own, y, paper in rows:
        at = own["probs"] if "given" in between else None
        r = _columns(_over_models(own["MONITOR"], y, own["model"], at))
        printed = {"paper's r": paper["r"], "paper's p": paper["p"]}
        table.append({"in": place, "between": between} | r | printed)
    table = pd.DataFrame(table)
    if _few(measured.models):
        return lacking("monitor/correlations", table)
    places = {"given": 1, "common": 4}
    found = {key: cases(table.iloc[[i]], "r", "between", "n") for key, i in places.items()}
    return Artifact("monitor/correlations", table, check("monitor/correlations", **found))


def readings(measured: Measured, scores: dict, prompts: pd.DataFrame) -> Artifact:
    """The correlation of MONITOR with accuracy for each set of runs and each denominator."""
    rows = []
    for runs in ("grid", "none+neg", "released13", "none", "base"):
        means = {"all facts": [], "anchored facts": []}
        for model, own in scores.items():
            grid, facts = measures.verdicts(own, prompts, runs), measured.facts[model]
            used = {"all facts": facts, "anchored facts": facts[facts["anchored"].astype(bool)]}
            for denominator, among in used.items():
                found = measures.accuracy(grid[grid.index.isin(among["fact"])], facts)
                by_relation = found.groupby("relation", sort=False)["accuracy"]
                means[denominator].append(by_relation.mean().mean())
        for denominator, accuracies in means.items():
            r = _over_models(measured.models["MONITOR"], accuracies, measured.models["model"])
            rows.append({"runs": runs, "denominator": denominator} | _columns(r))
    shown = lacking if _few(measured.models) else Artifact
    return shown("monitor/readings", pd.DataFrame(rows))


# ---- sections 5.2.3 and 5.2.4: how sure are two models? What does it cost?


def figure9(measured: Measured, models: list[str], relation: str) -> Artifact:
    """Histograms of the anchors on the facts that all models anchor (without any, on all)."""
    table = measures.anchor_probabilities(measured, models, relation)
    drawn = table[table["common"]] if table["common"].any() else table
    size = (3.8, 1.75 * len(models) + 0.2, len(models))
    figure, axes = charts.subplots(*size, sharex=True, sharey=True)
    outline = {"color": ORANGE, "histtype": "step", "linewidth": 1.6, "ls": "--"}
    for axis, model in zip(axes[:, 0], models, strict=True):
        for anchor, look in (("primary", {"color": BLUE}), ("foreign", outline)):
            own = drawn[(drawn["model"] == model) & (drawn["anchor"] == anchor)]["probability"]
            label = f"{len(own)} {anchor}: {100 * (own >= SURE).mean():.0f} % at {SURE} or more"
            look |= {"weights": np.full(len(own), 100 / max(1, len(own))), "label": label}
            axis.hist(own, np.linspace(0, 1, 11), **look)
        axis.set(title=model, ylabel="% of the anchors")
        axis.legend(loc="upper left")
    axes[0, 0].set_ylim(0, 1.5 * axes[0, 0].get_ylim()[1])  # above the bars, for the legends
    axes[-1, 0].set(xlabel="probability of the anchor")
    figure.suptitle(f"{relation}, {drawn['fact'].nunique()} facts", fontsize=8)
    found = {}
    for anchor in ("primary", "foreign") if len(models) > 1 else ():
        own = table[table["common"] & (table["anchor"] == anchor)]
        own = own.assign(solid=100 * (own["probability"] >= SURE))
        wide = own.pivot_table("solid", "fact", "model").reindex(columns=models)
        change = wide[models[0]] - wide[models[-1]]
        low, high = stats.mean_interval(change)
        found[anchor] = {"value": change.mean(), "low": low, "high": high, "n": len(change)}
    return Artifact("monitor/figure9", table, check("monitor/figure9", **found), figure)


def table8(rounds: pd.DataFrame, facts: int, model: str) -> Artifact:
    """The cost of MONITOR and of the accuracy study. ``rounds``: ``scores.time_both``."""
    table = measures.savings(rounds).assign(facts=facts, model=model)
    chosen = table[(table["way"] == "generated") & (table["cost"] == "device seconds")]
    claims = check("monitor/table8", saved=cases(chosen, "saved", "way"))
    digits = {way: table[way].map("{:,.4g}".format) for way in ("MONITOR", "accuracy")}
    return Artifact("monitor/table8", table, claims, shown=table.assign(**digits))


# ---- section 6: discussion


def figure5(attributions: pd.DataFrame) -> Artifact:
    """The words that an answer depends on, a row per model (``scores.attribute``)."""
    groups, labels = attributions.groupby("model", sort=False), []
    for model, own in groups:
        begins, right, p = own.iloc[0][["begins", "correct", "probability"]]
        labels.append(f'{model}\n"{begins}" {"✓" if right else "✗"} (P = {p:.2f})')
    shares = np.stack([own["score"] for _, own in groups])  # [models, words]
    table = pd.DataFrame(shares, labels, own["word"])
    figure, ((axis,),) = charts.subplots(6.3, 0.5 * len(table) + 1.0)
    charts.heat(axis, table, 0, shares.max(), "cividis")
    axis.tick_params(axis="x", rotation=90)
    columns = ["model", "word", "prepended", "signed", "score", "probability", "baseline"]
    return Artifact("monitor/figure5", attributions[[*columns, "error"]], figure=figure)


def figure6(table: pd.DataFrame) -> Artifact:
    """MONITOR with fewer frames against MONITOR with all (``measures.fewer_frames``)."""
    if _few(table, "all frames"):
        return lacking("monitor/figure6", table)
    figure, ((axis,),) = charts.subplots(4.0, 4.4)
    _scatter(axis, table, "all frames", "first frames")
    for model, *ends in table[["model", "all frames", "least", "most"]].itertuples(index=False):
        axis.vlines(*ends, color=model_style(model)["color"], linewidth=1, zorder=1.8)
    axis.axline(2 * [axis.get_xlim()[0]], slope=1, color="0.6", linewidth=0.8, linestyle=":")
    axis.set(xlabel="MONITOR with all frames", ylabel="MONITOR with the first frames", aspect=1)
    columns, first = {"same": "all frames", "disjoint": "other frames"}, table["first frames"]
    found = {k: _over_models(table[c], first, table["model"]) for k, c in columns.items()}
    return Artifact("monitor/figure6", table, check("monitor/figure6", **found), figure)


def figure10(table: pd.DataFrame, pairs: pd.DataFrame) -> Artifact:
    """The ranking with all and with the first frames: both tables of ``measures.fewer_frames``."""
    if _few(table, "all frames"):
        return lacking("monitor/figure10", table)
    table = table.sort_values("all frames", ignore_index=True)
    parts = [charts.marks(table, n).assign(frames=n) for n in ("all frames", "first frames")]
    figure = dot_rows({"": pd.concat(parts)}, "model", "frames", LOWER)
    _title(figure.axes[0], table)
    claims = check("monitor/figure10", order=pairs, lower=cases(table, "change"))
    return Artifact("monitor/figure10", table, claims, figure)
