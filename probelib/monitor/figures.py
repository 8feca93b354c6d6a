"""MONITOR's figures: measured numbers in, ``report.Artifact`` out."""

from itertools import combinations, pairwise

import numpy as np
import pandas as pd

from probelib.facts import Facts, substitute_relations
from probelib.monitor import measures
from probelib.monitor.example import anchored_in_words, fact_relation, less_to_lose
from probelib.monitor.measures import Measured
from probelib.monitor.tables import about_relation, without_one
from probelib.report import family, lines, model_style, size_axis, span, subplots
from probelib.report.legacy import Artifact
from probelib.stats import (
    friedman,
    holm,
    in_words,
    levelled,
    mean_interval,
    nanmean,
    percentile_interval,
    scaling_fit,
    wilson,
)

BLUE, ORANGE, GREEN, RED = "#0173b2", "#de8f05", "#029e73", "#c00000"
LOWER = "MONITOR (lower is better)"
SURE = 0.8  # probability from which figure 9 counts an anchor as sure, as the paper does


# ---- sections 1 and 3: instability


def most_unstable(grids: dict[str, pd.DataFrame]) -> tuple[str, str]:
    """The (model, fact) that shows accuracy instability best (figure 1): the base prompt is answered, another paraphrase and a
    negative context are not, and right and wrong answers are nearly equal in number.

    grids  model -> ``verdicts(..., runs="released13")``
    """
    best, found = None, ("", "")
    for model, grid in grids.items():
        plain = grid.columns.get_level_values("context") == "none"
        negative = grid.columns.get_level_values("context").str.startswith("negative")
        for fact, right in grid.iterrows():
            spoiled = [(right[which] == 0).any() for which in (plain, negative)]
            rank = (right[1, "none"] == 1, sum(spoiled), -abs(right.mean() - 0.5))
            if best is None or rank > best:
                best, found = rank, (model, fact)
    return found


def most_apart(scores: dict[str, pd.DataFrame], prompts: pd.DataFrame) -> tuple[str, list[str]]:
    """A base prompt and two models that both answer it with the most different probabilities (figure 2), the surer one first.
    If no prompt is answered by two models, the two models that differ most; of a single model, that one alone."""
    base = prompts[(prompts["context"] == "none") & (prompts["template"] == 1)]["prompt"]
    rows = pd.concat([s[s["prompt"].isin(base)].assign(model=name) for name, s in scores.items()])
    if (rows[rows["correct"].astype(bool)].groupby("prompt")["model"].size() > 1).any():
        rows = rows[rows["correct"].astype(bool)]
    probability = np.exp(rows["logprob"].astype(float)).groupby(rows["prompt"], sort=False)
    prompt = (probability.max() - probability.min()).idxmax()
    models = (
        rows[rows["prompt"] == prompt]
        .sort_values("logprob", ascending=False, key=levelled, kind="stable")["model"]
        .tolist()
    )
    return prompt, list(dict.fromkeys([models[0], models[-1]]))


def figure1(example: pd.DataFrame, model: str, gold: str, about: str) -> Artifact:
    """The answers to one fact: all frames, then frame 1 in every context. ``example``: ``scores.generate_framings``."""
    framing = example[example["context"] == "none"]
    contexts = pd.concat([framing[framing["template"] == 1], example[example["context"] != "none"]])
    panels = {f"(a) prompt framing, {model}": framing, "(b) in-context interference": contexts}
    heights = [len(rows) for rows in panels.values()]
    figure, axes = subplots(6.3, 0.24 * sum(heights) + 0.8, 2, height_ratios=heights)
    size = float(np.clip(560 / example["text"].str.len().max(), 7, 11))  # points
    for axis, (title, rows) in zip(axes.flat, panels.items(), strict=True):
        columns = (rows["text"], rows["answer"], rows["correct"])
        lines(axis, [(t, a[:18] or "(nothing)", bool(ok)) for t, a, ok in zip(*columns, strict=True)], title)
        axis.title.set_fontsize(11)
        for text in axis.texts:
            text.set_fontsize(size)
    finding = (
        f"{model} answers {int(framing['correct'].sum())} of {len(framing)} paraphrases of this question, and "
        f"{int(contexts['correct'].sum())} of {len(contexts)} prompts with and without a prepended entity."
    )
    caption = (
        f"Accuracy instability: the answers of {model} to one fact (gold answer: {gold}) in {len(framing)} paraphrases, and to "
        f"the first of them with the gold answer and with {len(contexts) - 2} wrong ones prepended. Greedy decoding, cut at the "
        f"first stop. Model and fact are chosen as a most unstable case, with right and wrong answers nearly even; {about}"
    )
    return Artifact("monitor/figure1", example, caption, finding, figure=figure, alt=finding)


def figure2(top: pd.DataFrame, text: str, about: str) -> Artifact:
    """The most probable objects of two models after the same question. ``top``: ``scores.top_objects``."""
    models = top["model"].unique()
    figure, axes = subplots(3.6, 1.1 * len(models) + 0.3, len(models), sharex=True)
    for axis, (model, rows) in zip(axes.flat, top.groupby("model", sort=False), strict=True):
        bars_of_objects(axis, rows, model, 1.25, color=model_style(model)["color"])
    axes[-1, 0].set(xlabel="probability")
    caption = (
        f'The most probable objects of the relation after "{text}". Question and models are chosen as an example: their '
        f"probabilities differ most; {about}"
    )
    alt = f"Bars: the three most probable answers of {' and of '.join(models)}."
    return Artifact("monitor/figure2", top, caption, finding2(top), figure=figure, alt=alt)


def bars_of_objects(axis, rows: pd.DataFrame, title: str, most: float, **look) -> None:
    """A panel of bars, one per object (``label``), with its ``probability`` beside it. ``most``: end of the axis."""
    axis.barh(rows["label"], rows["probability"], **look)
    for y, p in enumerate(rows["probability"]):
        axis.text(p, y, f" {p:.3f}", va="center", fontsize=8)
    axis.set(title=title, xlim=(0, most), xticks=[0, 0.5, 1])
    axis.invert_yaxis()


def finding2(top: pd.DataFrame) -> str:
    """The first answers of the models, and their probabilities."""
    first = top.drop_duplicates("model")
    if len(first) < 2:
        return "A second model is missing, so there is nothing to compare."
    listed = " and ".join(f"{m} gives {a} {p:.3f}" for m, a, p in first[["model", "label", "probability"]].to_numpy())
    if first["label"].nunique() > 1:
        return f"{listed}; no prompt here is answered by two models."
    return f"{listed}: accuracy calls them equal."


def figure7(judged: pd.DataFrame, sizes: dict[str, int], about: str) -> Artifact:
    """The spread of accuracy over paraphrases, one panel per form of the prompt. Arguments as in ``tables.table2``."""
    scored = judged[~judged["kind"].str.endswith("written")]
    table = scored.groupby(["model", "kind", "template"], sort=False)["correct"].mean().reset_index(name="accuracy")
    panels = [kind for kind in ("WP", "QA", "FC-pos", "FC-neg") if kind in set(table["kind"])]
    order = sorted(sizes, key=sizes.get)
    height = -(-len(panels) // 2)
    size = (4.4, (0.19 * len(order) + 0.5) * height + 0.3)
    figure, axes = subplots(*size, height, min(2, len(panels)), sharex=True, sharey=True)
    for axis in axes.flat[len(panels) :]:
        axis.axis("off")
    look = {"orientation": "horizontal", "widths": 0.6, "patch_artist": True, "flierprops": {"markersize": 3}}
    for axis, kind in zip(axes.flat, panels, strict=False):
        values = table[table["kind"] == kind].groupby("model")["accuracy"].apply(list)
        look |= {"boxprops": {"facecolor": BLUE, "alpha": 0.5}, "medianprops": {"color": "black"}}
        axis.boxplot([values[model] for model in order], **look)
        for y, model in enumerate(order, 1):
            axis.text(106, y, f"{np.ptp(values[model]):.0f}", va="center", fontsize=8)
        axis.set(title=kind, xlim=(-4, 104), xticks=[0, 50, 100], yticks=range(1, len(order) + 1), yticklabels=order)
    figure.supxlabel("accuracy in percent, one value per paraphrase", fontsize=9)
    caption = (
        f"Accuracy over the {table['template'].nunique()} paraphrases of sentences (WP), questions (QA) and true and false "
        "statements (FC-pos, FC-neg); box: quartiles, line: median, "
        "whiskers: 1.5 interquartile ranges; right: the largest minus the smallest value, in points; models by size, the largest "
        f"on top; {about}"
    )
    alt = "Boxes of accuracy over paraphrases for each model, one panel per form of the prompt."
    return Artifact("monitor/figure7", table, caption, finding7(table, scored), figure=figure, alt=alt)


def finding7(table: pd.DataFrame, judged: pd.DataFrame) -> str:
    """Whether accuracy differs between paraphrases of one form, the widest and the mean spread over them, and which paraphrase of
    each form is answered least.

    table   ``model``, ``kind``, ``template``, ``accuracy`` (percent);   judged: ``measures.judge_forms``, of which it is the mean
    """
    ranges = table.groupby(["model", "kind"])["accuracy"].agg(lambda values: values.max() - values.min())
    model, kind = ranges.idxmax()
    means = ", ".join(f"{k} {v:.1f}" for k, v in ranges.groupby("kind").mean().items())
    worst = table.groupby(["kind", "template"])["accuracy"].mean().groupby("kind").idxmin()
    numbers = ", ".join(f"{k} {template}" for k, template in worst)
    return (
        f"{differing_paraphrases(judged)} The widest spread over paraphrases is {ranges.max():.1f} points ({model}, {kind}); "
        f"mean spread: {means} points; one fact is {100 / judged['fact'].nunique():.1f} points. The paraphrase answered "
        f"least, by its number: {numbers}."
    )


def differing_paraphrases(judged: pd.DataFrame) -> str:
    """A sentence: in how many pairs of model and form the paraphrases differ significantly on the same facts, and whether that
    supports the claim. ``judged``: ``measures.judge_forms``."""
    groups = judged.groupby(["model", "kind"])
    p = [friedman(rows.pivot_table("correct", "fact", "template").to_numpy()) for _, rows in groups]
    apart, n = int((holm(p) < 0.05).sum()), int(np.isfinite(p).sum())
    if not n:
        return "Fewer than three paraphrases or two facts: too few to test a difference."
    said = "is shown here" if apart > n / 2 else "is not shown in most cases here"
    return (
        f"That accuracy differs between paraphrases of one form {said}: significantly in {apart} of {n} pairs of model and form "
        "(Friedman's test over facts, Holm-corrected)."
    )


# ---- section 4: anchors


def farthest_prompts(table: pd.DataFrame) -> pd.DataFrame:
    """The positive context, and the frame and the negative context that are farthest from it: rows of ``by_prompt``."""
    ranked = table.sort_values("distance", ascending=False, key=levelled, kind="stable")
    kinds = ranked["context"].str.replace(r"\d+", "", regex=True)
    return pd.concat([ranked[kinds == kind].head(1) for kind in ("positive", "none", "negative")])


def figure3(prompts: pd.DataFrame, objects: pd.DataFrame, fact: pd.Series, gold: str, model: str) -> Artifact:
    """The most probable objects under a primary anchor, and under the paraphrase and the distractor farthest from it.

    prompts   ``farthest_prompts``
    objects   ``scores.score_objects`` after these prompts
    fact      its row of ``measure_facts``;   gold: its object's label;   model: display name
    """
    top = objects.sort_values("logprob", ascending=False, key=levelled, kind="stable").groupby("prompt").head(3)
    missing = objects[(objects["label"] == gold) & ~objects.index.isin(top.index)]
    shown = pd.concat([top, missing]).sort_values(["prompt", "logprob"], ascending=[True, False])
    shown = shown.assign(gold=shown["label"] == gold)
    frame = prompts["template"].iloc[1]
    figure, axes = subplots(4.0, 4.1, 3, sharex=True)
    f, n = prompts["distance"].iloc[1:]
    titles = ("(a) primary anchor", f"(b) paraphrase {frame}: |p - f| = {f:.3f}", f"(c) distractor: |p - n| = {n:.3f}")
    for i, (axis, title) in enumerate(zip(axes.flat, titles, strict=True)):
        bars = shown[shown["prompt"] == i]
        colours, hatch = np.where(bars["gold"], ORANGE, "0.75"), np.where(bars["gold"], "//", "")
        bars_of_objects(axis, bars, title, 1.28, color=colours, hatch=hatch)
    primary = shown.loc[shown["gold"] & (shown["prompt"] == 0), "probability"].iloc[0]
    for axis, i in zip(axes[1:, 0], (1, 2), strict=True):
        bars = shown[shown["prompt"] == i].reset_index(drop=True)
        y = bars.index[bars["gold"]][0]
        axis.axvline(primary, color=ORANGE, linestyle="--", linewidth=1)
        ends = ((bars["probability"][y], y + 0.3), (primary, y + 0.3))
        axis.annotate("", *ends, arrowprops={"arrowstyle": "<->", "color": RED, "shrinkA": 0, "shrinkB": 0})
    axes[-1, 0].set(xlabel="probability; dashed: primary anchor")
    texts = "; ".join(f"({letter}) {text}" for letter, text in zip("abc", prompts["text"], strict=True))
    caption = (
        f"The most probable objects of the relation in {model} for {fact['fact']}: primary anchor, and the paraphrase and "
        "the distractor farthest from it; hatched: the gold object; arrows: how far its probability moves from the primary "
        f"anchor (|p - f| and |p - n|: means over the answer's tokens). Prompts: {texts}."
    )
    places = shown[shown["gold"]].set_index("prompt")["probability"]
    finding = (
        f"In {model} the probability of {gold} goes from {places[0]:.3f} to {places[1]:.3f} and {places[2]:.3f} (paper: "
        f"0.912, 0.525, 0.015). PFD = {fact['pfd']:.3f} (mean over frames), IRD = {fact['ird']:.3f} (mean over distractors)."
    )
    alt = f"Bars of the most probable objects after three prompts; {gold} is hatched."
    numbers = shown[["text", "label", "gold", "probability", "logprob"]]
    return Artifact("monitor/figure3", numbers, caption, finding, figure=figure, alt=alt)


def anchors_in_short(facts: pd.DataFrame, anchors: pd.DataFrame) -> str:
    """How many facts of a model are anchored, MONITOR over them, and how many foreign anchors lie above the primary one."""
    used = measures.counted(facts)
    sets = zip(anchors["p"], anchors["f"], anchors["n"], strict=True)
    above = 100 * np.mean([(np.concatenate([f, n]).mean(1) > p.mean()).mean() for p, f, n in sets])
    gains = f"{above:.0f} % of all foreign anchors lie above their primary one: there a gain counts as a loss."
    if used.empty:
        return f"No fact is anchored, so there is no MONITOR. {gains}"
    return (
        f"{facts['anchored'].sum()} of {len(facts)} facts are anchored; MONITOR over the {len(used)} with a distractor is "
        f"**{measures.monitor(used):.3f}** (mean PFD {used['pfd'].mean():.3f}, IRD {used['ird'].mean():.3f}, primary anchor "
        f"{used['pbar'].mean():.3f}). {gains}"
    )


# ---- section 5.2.1: does MONITOR fall with size?


def counted_facts(measured: Measured, relation: str | None = None) -> str:
    """Which facts of a relation (None: of all) count, for a caption: those that every model anchors, or each model's own."""
    tables = [t if relation is None else t[t["relation"] == relation] for t in measured.facts.values()]
    if all(table["anchored"].astype(bool).all() for table in tables):
        return f"the {len(tables[0])} facts that every model anchors"
    counts = [int(table["anchored"].sum()) for table in tables]
    return f"the {min(counts)} to {max(counts)} of {len(tables[0])} facts that each model anchors"


def covered_relation(measured: Measured, facts: Facts, relation: str, least: int = 3) -> tuple[str, str]:
    """(relation, note): the requested relation, or its substitute, if at least ``least`` facts count; else the one with most."""
    (relation,), note = substitute_relations(facts, [relation])
    counts = next(iter(measured.facts.values()))["relation"].value_counts()
    if counts.get(relation, 0) >= min(least, counts.max()):
        return relation, note
    return counts.index[0], f"In {relation} every model anchors {counts.get(relation, 0)} facts, too few."


def figure11(measured: Measured, least: int = 3) -> Artifact:
    """MONITOR against size in the largest family, one panel per relation with ``least`` facts or more."""
    sizes = dict(zip(measured.models["model"], measured.models["parameters"], strict=True))
    table = measured.relations.drop(columns="base acc")
    table = table.assign(parameters=table["model"].map(sizes), family=table["model"].map(family))
    largest = measured.models["model"].map(family).value_counts().index[0]
    table = table[table["family"] == largest].sort_values("parameters", kind="stable")
    dropped = table.loc[table["n"] < least, "relation"].nunique()
    shown = table if dropped == table["relation"].nunique() else table[table["n"] >= least]
    curves = {(r, n): rows.set_index("parameters") for (r, n), rows in shown.groupby(["relation", "n"], sort=False)}
    columns = min(5, len(curves))
    height = -(-len(curves) // columns)
    figure, axes = subplots(4.4, 0.6 + 0.85 * height, height, columns, sharex=True, sharey=True)
    for axis in axes.flat[len(curves) :]:
        axis.axis("off")
    for place, (axis, ((relation, n), rows)) in enumerate(zip(axes.flat, curves.items(), strict=False)):
        curve = rows["MONITOR"]
        axis.plot(curve.index, curve, marker="o", markersize=3, color=BLUE if ends_lower(curve) else "0.4")
        axis.set_title(f"{relation} ({n})", fontsize=8, color=BLUE if ends_lower(curve) else "black", pad=2)
        size_axis(axis, shown["parameters"], ends_only=True)
        axis.set_xlabel(None)
        axis.tick_params(axis="x", labelsize=7, labelbottom=place + columns >= len(curves))  # no panel below it
    figure.supxlabel(f"parameters without embeddings ({largest})", fontsize=9)
    figure.supylabel("MONITOR", fontsize=9)
    caption = (
        f"MONITOR against size (logarithmic) for each relation, family {largest}, {counted_facts(measured)}; in brackets: facts; "
        f"blue: the largest model lies below the smallest. {dropped} relations with fewer than {least} facts are "
        f"{'not drawn' if shown is not table else 'drawn all the same'}. A missing point: no fact anchored. The CSV has the "
        "intervals."
    )
    finding = finding11(list(curves.values()))
    alt = f"One small panel per relation, MONITOR over model size. {finding}"
    return Artifact("monitor/figure11", table, caption, finding, figure=figure, alt=alt)


def ends_lower(curve: pd.Series) -> bool:
    """Whether the last value lies below the first.

    >>> ends_lower(pd.Series([0.3, 0.4, 0.1])), ends_lower(pd.Series([0.3]))
    (True, False)
    """
    known = curve.dropna()
    return len(known) > 1 and bool(known.iloc[-1] < known.iloc[0])


def finding11(relations: list[pd.DataFrame]) -> str:
    """In how many relations the largest model lies below the smallest, in how many their intervals do not overlap, and in how
    many MONITOR falls at every step.

    relations  per relation ``MONITOR``, ``low``, ``high`` and ``n`` (facts), one row per model, by size
    """
    curves = [rows["MONITOR"] for rows in relations]
    if all(len(curve) < 2 for curve in curves):
        return "No family here has two sizes, so no step can be seen."
    lower, n = sum(map(ends_lower, curves)), len(curves)
    falling = sum(len(curve) > 1 and bool((curve.diff()[1:] < 0).all()) for curve in curves)
    low, high = wilson(lower, n)
    said = measures.judge_claim(low - 0.5, high - 0.5).replace("holds 0", "holds one half")
    apart = sum(rows["high"].iloc[-1] < rows["low"].iloc[0] for rows in relations)
    counts = [rows["n"].iloc[0] for rows in relations]
    return (
        f"The largest model lies below the smallest in **{lower} of {n}** relations (paper: 15 of 20): that larger models "
        f"are more reliable is {said}. A panel rests on {min(counts)} to {max(counts)} facts: in {apart} of {n} the 95 % "
        "intervals of these two models do not overlap, the larger model's below. "
        f"MONITOR falls at every step of size in {falling} of {n} (paper: 2 of 20)."
    )


def figure12(measured: Measured) -> Artifact:
    """Overall MONITOR against size, one line per family."""
    table = measured.models.assign(family=measured.models["model"].map(family)).sort_values("parameters")
    figure, ((axis,),) = subplots(4.4, 3.4)
    for name, rows in table.groupby("family"):
        bars = [rows["MONITOR"] - rows["low"], rows["high"] - rows["MONITOR"]]
        look = model_style(rows["model"].iloc[-1])
        alone = len(rows) < 2
        axis.errorbar(rows["parameters"], rows["MONITOR"], bars, capsize=2, label=None if alone else name, **look)
        if alone:
            place, look = tuple(rows[["parameters", "MONITOR"]].iloc[0]), {"ha": "right", "va": "center", "fontsize": 8}
            axis.annotate(name.removeprefix("atlas-"), place, (-6, 0), textcoords="offset points", **look)
    axis.set(ylabel=LOWER)
    size_axis(axis, table["parameters"])
    axis.tick_params(axis="x", which="major", labelrotation=45)
    if axis.get_legend_handles_labels()[0]:
        axis.legend()
    return Artifact(
        "monitor/figure12",
        table[["family", "model", "parameters", "MONITOR", "low", "high", "coverage"]],
        f"Overall MONITOR of {len(table)} models against size, over {counted_facts(measured)}, one line per family; bars: 95 % "
        "bootstrap interval over facts.",
        finding12(table, nanmean(measured.replicates["MONITOR"], 2)),
        figure=figure,
        alt="MONITOR over model size with interval bars, one line per model family.",
    )


def finding12(table: pd.DataFrame, replicates: np.ndarray) -> str:
    """The paired difference between the largest and the smallest model of every family, the slope of families with three models,
    and the steps at which MONITOR rises.

    table       one row per model: ``family``, ``model``, ``parameters``, ``MONITOR``, ``low``, ``high``; its index is the
                position in ``replicates``
    replicates  bootstrap replicates of overall MONITOR [times, models]
    """
    said, rises = [], []
    for name, rows in table.dropna(subset="MONITOR").groupby("family"):
        if len(rows) < 2:
            continue
        first, last = (rows.sort_values("parameters").index[place] for place in (0, -1))
        low, high = percentile_interval(replicates[:, last] - replicates[:, first])
        change = f"{rows['MONITOR'][last] - rows['MONITOR'][first]:+.3f} {span(low, high, '+.3f')}"
        fit = scaling_fit(rows["parameters"], rows["MONITOR"])
        slope = f" (slope over {len(rows)} sizes, per factor of ten: {fit['b']:+.3f} {span(fit['b_low'], fit['b_high'], '+.3f')})"
        verdict = measures.judge_claim(low, high, -1)
        said.append(f"{name} {change}, {verdict}{slope if np.isfinite(fit['b_low']) else ''}")
        rises += rising_steps(rows.sort_values("parameters"), replicates)
    if not said:
        return "No family here has two models with a MONITOR, so nothing can be said about size."
    steps = f" Against a monotone fall, with intervals that do not overlap: {'; '.join(rises)}." if rises else ""
    return f"That MONITOR falls with size, largest minus smallest model (paired, same facts): {'; '.join(said)}.{steps}"


def rising_steps(rows: pd.DataFrame, replicates: np.ndarray) -> list[str]:
    """The steps from one size to the next at which MONITOR rises and the two intervals do not overlap, with the paired
    difference. ``rows``: the models of one family by size; ``replicates`` as in ``finding12``."""
    steps = []
    for before, after in pairwise(rows.itertuples()):
        if after.low > before.high:
            low, high = percentile_interval(replicates[:, after.Index] - replicates[:, before.Index])
            change = f"{after.MONITOR - before.MONITOR:+.3f} {span(low, high, '+.3f')}"
            steps.append(
                f"it rises from {before.MONITOR:.3f} in {before.model} to {after.MONITOR:.3f} in {after.model} ({change})"
            )
    return steps


def size_and_coverage(measured: Measured) -> str:
    """MONITOR and coverage of the smallest and the largest model of the largest family, in a sentence."""
    table = measured.models.assign(family=measured.models["model"].map(family)).sort_values("parameters")
    largest = table["family"].value_counts().index[0]
    rows = table[table["family"] == largest].dropna(subset=["MONITOR"])
    if len(rows) < 2:
        return "No family here has two sizes with a MONITOR, so nothing can be said about size."
    first, last = rows.iloc[0], rows.iloc[-1]
    ends = [
        f"{m['MONITOR']:.3f} (coverage {m['coverage']:.2f}) at {m['parameters']:,} parameters" for m in (first, last)
    ]
    return f"In the family {largest}, MONITOR goes from {ends[0]} to {ends[1]}."


# ---- section 5.2.2: stability


def figure4(measured: Measured, facts: Facts, relation: str = "P1412") -> Artifact:
    """The accuracies of all runs of a relation as boxes, with base accuracy and MONITOR."""
    (relation,), note = substitute_relations(facts, [relation])
    table = measures.instability(measured, relation).set_index("model")  # by base accuracy
    order = table.index.tolist()
    runs = {
        model: rows.loc[rows["relation"] == relation, "accuracy"].to_numpy() for model, rows in measured.runs.items()
    }
    figure, ((axis, right),) = subplots(4.4, 0.24 * len(order) + 1.1, 1, 2, sharey=True, width_ratios=(3, 1.3))
    mean = {"marker": "^", "markerfacecolor": GREEN, "markeredgecolor": "none"}
    look = {"flierprops": {"markersize": 3}, "meanprops": mean, "medianprops": {"color": ORANGE}}
    boxes = axis.boxplot([runs[m] for m in order], orientation="horizontal", showmeans=True, widths=0.55, **look)
    boxes["medians"][0].set_label("median")
    boxes["means"][0].set_label("mean")
    places = np.arange(1, len(order) + 1)
    axis.plot(table["base acc"][order], places, "o", color=RED, markersize=4, label="base accuracy", zorder=5)
    scores = table.loc[order]
    bars = [scores["MONITOR"] - scores["low"], scores["high"] - scores["MONITOR"]]
    right.errorbar(scores["MONITOR"], places, xerr=bars, fmt="*", color=BLUE, markersize=7, linewidth=1)
    right.set(xlabel="MONITOR", xlim=(0, None))
    axis.set(xlabel="accuracy in percent", xlim=(-4, 104))
    axis.set_yticks(places, order)
    figure.legend(*axis.get_legend_handles_labels(), loc="outside upper center", ncols=3)
    caption = (
        f"Left: accuracy over all facts of {runs_in_words(measured.runs[order[0]], relation)}. Box: quartiles; orange line: "
        "median; green triangle: mean; whiskers: to the farthest run within 1.5 interquartile ranges of the box; circles: "
        "runs beyond; red dot: base accuracy (paraphrase 1 without context). Right: MONITOR with its 95 % bootstrap interval "
        "over facts (lower is better). Models by base accuracy, the best on top; "
        f"{about_relation(measured, facts, relation, note)}"
    )
    frame = pd.concat([pd.DataFrame({"model": model, "accuracy": runs[model]}) for model in order])
    frame = frame.join(table[["base acc", "MONITOR", "low", "high"]], on="model")
    alt = "Box plots of accuracy for each model, with base accuracy and MONITOR as marks."
    return Artifact("monitor/figure4", frame, caption, finding4(table.reset_index()), figure=figure, alt=alt)


def runs_in_words(runs: pd.DataFrame, relation: str) -> str:
    """The runs of a relation in words, for a caption. ``runs``: ``measures.accuracy``.

    >>> grid = [("P37", template, context) for template in (1, 2, 3) for context in ("negative1", "negative2")]
    >>> runs_in_words(pd.DataFrame(grid, columns=["relation", "template", "context"]), "P37")
    'each of 6 runs; a run prompts every fact with one of 3 paraphrases after one of its 2 negative contexts (distractors)'
    """
    own = runs[runs["relation"] == relation]
    return (
        f"each of {len(own)} runs; a run prompts every fact with one of {own['template'].nunique()} paraphrases after one of "
        f"its {own['context'].nunique()} negative contexts (distractors)"
    )


def finding4(table: pd.DataFrame, within: float = 3.5) -> str:
    """Whether the accuracy of the model with the lower MONITOR varies less, for pairs of models with similar base accuracy.
    ``table``: ``measures.instability``; ``within``: the largest difference in base accuracy of a pair, in points."""
    rows = list(
        table.dropna(subset=["MONITOR", "std"])[["base acc", "MONITOR", "std"]].itertuples(index=False, name=None)
    )
    pairs = [(a, b) for a, b in combinations(rows, 2) if abs(a[0] - b[0]) <= within]
    if not pairs:
        return f"No two models with a MONITOR have a base accuracy within {within} points."
    agree, n = sum((a[1] < b[1]) == (a[2] < b[2]) for a, b in pairs), len(pairs)
    low, high = wilson(agree, n)
    said = measures.judge_claim(low - 0.5, high - 0.5).replace("holds 0", "holds one half, a coin")
    return (
        f"In **{agree} of {n}** pairs of models within {within} points of base accuracy, the one with the lower MONITOR "
        f"varies less, by the standard deviation of its runs ({100 * agree / n:.0f} % [{100 * low:.0f}, {100 * high:.0f}]; "
        f"paper: 7 of 9): that MONITOR tells which of two equally accurate models is steadier is {said}. Pairs share models, "
        "so the interval is too narrow."
    )


def figure8(measured: Measured, facts: Facts, relation: str = "P1412") -> Artifact:
    """MONITOR against the standard deviation of the accuracy."""
    (relation,), note = substitute_relations(facts, [relation])
    table = measures.instability(measured, relation)[["model", "std", "relative", "MONITOR"]]
    figure, (axes,) = subplots(4.4, 4.0, 1, 2, sharey=True)
    labels = {"std": "std of accuracy, points", "relative": "std over avg acc"}
    for axis, (column, label) in zip(axes, labels.items(), strict=True):
        for name, x, y in table[["model", column, "MONITOR"]].itertuples(index=False):
            axis.plot(x, y, label=name, **(model_style(name) | {"linestyle": "none"}))
        both = table[[column, "MONITOR"]].dropna()
        if len(both) > 2 and np.ptp(both[column]) > 0:
            line, ends = np.polyfit(*both.to_numpy().T, 1), np.array([both[column].min(), both[column].max()])
            axis.plot(ends, np.polyval(line, ends), color="0.4", linewidth=1)
        axis.set(xlabel=label, xlim=(0, 1.08 * axis.get_xlim()[1]), ylim=(0, 1.08 * axis.get_ylim()[1]))
    axes[0].set(ylabel="MONITOR")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    plain, relative = (measures.correlation_with_spread(measured, relation, own) for own in (False, True))
    caption = (
        "MONITOR against the standard deviation of the accuracy over all runs, in points and relative to the average "
        f"accuracy, with least-squares lines; {about_relation(measured, facts, relation, note)} In the paper the left line rises."
    )
    alt = "Scatters of MONITOR over the standard deviation of accuracy and over its ratio to the accuracy, one mark per model."
    finding = finding8(table, plain, relative)
    return Artifact("monitor/figure8", table, caption, finding, figure=figure, alt=alt)


def finding8(table: pd.DataFrame, plain: dict[str, float], relative: dict[str, float]) -> str:
    """Whether MONITOR rises with the spread, and with the spread over the accuracy. ``plain``, ``relative``: correlations."""
    said = [
        f"{measures.judge_claim(r['low'], r['high'])}: {in_words(r)}, {without_one(table['MONITOR'], table[column])}"
        for column, r in (("std", plain), ("relative", relative))
    ]
    return f"That MONITOR rises with the spread in points is {said[0]}; with the relative spread it is {said[1]}."


# ---- section 5.2.3: how sure are two models?


def figure9(measured: Measured, models: list[str], fact: str, facts: Facts) -> Artifact:
    """Histograms of the anchors of models in the relation of a fact."""
    relation = fact_relation(facts, fact)
    table = anchor_probabilities(measured, models, relation)
    figure, axes = subplots(3.8, 1.75 * len(models) + 0.2, len(models), sharex=True, sharey=True)
    outline = {"color": ORANGE, "histtype": "step", "linewidth": 1.6, "ls": "--"}
    for axis, model in zip(axes[:, 0], models, strict=True):
        for anchor, look in (("primary", {"color": BLUE}), ("foreign", outline)):
            values = table[(table["model"] == model) & (table["anchor"] == anchor)]["probability"]
            weights = np.full(len(values), 100 / max(1, len(values)))
            share = 100 * (values >= SURE).mean()
            label = f"{len(values)} {anchor}: {share:.0f} % at {SURE} or more"
            axis.hist(values, np.linspace(0, 1, 11), weights=weights, label=label, **look)
        axis.set(title=model, ylabel="% of the anchors")
        axis.legend(loc="upper left")
    axes[0, 0].set_ylim(0, 1.5 * axes[0, 0].get_ylim()[1])  # above the bars, for the legends
    axes[-1, 0].set(xlabel="probability of the anchor")
    caption = (
        f"Probabilities of the anchors (mean over tokens) in {relation}: primary anchors of the anchored facts, and all of their "
        f"foreign anchors, one panel per model; {facts.source}. {anchored_in_words(measured, models, relation)} The panels "
        "rest on different facts; the differences in the finding rest on those that both models anchor."
    )
    alt = "Histograms of the anchors' probabilities, one panel per model."
    return Artifact("monitor/figure9", table, caption, finding9(table, models), figure=figure, alt=alt)


def anchor_probabilities(measured: Measured, models: list[str], relation: str) -> pd.DataFrame:
    """The anchors of the anchored facts of a relation: ``model``, ``fact``, ``anchor`` (primary or foreign), ``probability``."""
    rows = []
    for model in models:
        anchors = measured.anchors[model]
        chosen = (anchors["relation"] == relation) & measured.facts[model]["anchored"].to_numpy(bool)
        for fact, p, f, n in anchors[chosen][["fact", "p", "f", "n"]].itertuples(index=False):
            rows += [(model, fact, "primary", p.mean())]
            rows += [(model, fact, "foreign", v) for v in (*f.mean(1), *n.mean(1))]
    return pd.DataFrame(rows, columns=["model", "fact", "anchor", "probability"])


def finding9(table: pd.DataFrame, models: list[str], least: float = SURE) -> str:
    """The share of anchors with a probability of ``least`` or more, per kind of anchor; whether the first model, which has the
    lower MONITOR, has more of them over the facts that both anchor; and the mean anchors over these facts."""
    if table.empty:
        return "No fact is anchored, so there are no primary anchors to compare."
    said = []
    for kind, printed in (("primary", " (paper: Vicuna-7b 85 %, BLOOMZ-3b 59 %)"), ("foreign", "")):
        own = table[table["anchor"] == kind]
        sure = (own["probability"] >= least).groupby([own["fact"], own["model"]]).mean().unstack("model")
        sure = 100 * sure.reindex(columns=models)
        shares = "; ".join(f"{model} {sure[model].mean():.0f} % over {sure[model].count()} facts" for model in models)
        said.append(f"{kind.capitalize()} anchors of {least} or more: {shares}{printed}{more_in_the_first(sure)}.")
    return f"{' '.join(said)}{mean_anchors(table, models)}"


def mean_anchors(table: pd.DataFrame, models: list[str]) -> str:
    """The mean primary and foreign anchor of the first and the last model over the facts that both anchor, with a caveat if the
    first model, which has the lower MONITOR, is less sure (``example.less_to_lose``); "" for one model."""
    if len(models) < 2:
        return ""
    means = table.groupby(["anchor", "fact", "model"])["probability"].mean().unstack("model").reindex(columns=models)
    pairs = means[[models[0], models[-1]]].dropna()
    if "primary" not in pairs.index:
        return ""
    ends = {anchor: rows.mean().to_numpy() for anchor, rows in pairs.groupby("anchor")}
    listed = "; ".join(
        f"{anchor} {' and '.join(f'{value:.2f}' for value in ends[anchor])}"
        for anchor in ("primary", "foreign")
        if anchor in ends
    )
    sure = pairs.loc["primary"]
    cause = less_to_lose(models[0], models[-1], *mean_interval(sure[models[0]] - sure[models[-1]]))
    return f" Mean anchors of {models[0]} and {models[-1]} on the facts that both anchor: {listed}.{cause}"


def more_in_the_first(shares: pd.DataFrame) -> str:
    """Whether the first column exceeds the last one over the rows (facts) that both have: the end of a sentence; "" if there is
    only one column.

    >>> more_in_the_first(pd.DataFrame({"a": [90.0, 80.0, 70.0], "b": [10.0, 20.0, None]}))
    '; difference +70 [+60, +80] over 2 facts: that the model with the lower MONITOR is surer is shown here'
    """
    if shares.shape[1] < 2:
        return ""
    change = (shares.iloc[:, 0] - shares.iloc[:, -1]).dropna()
    low, high = mean_interval(change)
    said = measures.judge_claim(low, high)
    ends = span(low, high, "+.0f")
    counted = f"difference {change.mean():+.0f} {ends} over {len(change)} facts"
    return f"; {counted}: that the model with the lower MONITOR is surer is {said}"
