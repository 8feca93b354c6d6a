"""MONITOR's figures: measured numbers in, ``report.Artifact`` out."""

from itertools import combinations

import numpy as np
import pandas as pd

from probelib.facts import Facts, substitute_relations
from probelib.monitor import measures
from probelib.monitor.measures import Measured
from probelib.monitor.tables import about_relation, fact_relation
from probelib.published import table as published
from probelib.report import Artifact, family, lines, model_style, size_axis, span
from probelib.stats import in_words, kendall, levelled, mean_interval, pearson, scaling_fit, wilson

BLUE, ORANGE, GREEN, RED = "#0173b2", "#de8f05", "#029e73", "#c00000"
LOWER = "MONITOR (lower is better)"
SURE = 0.8  # probability from which figure 9 counts an anchor as sure, as the paper does


# ---- sections 1 and 3: instability


def most_unstable(grids: dict[str, pd.DataFrame]) -> tuple[str, str]:
    """The (model, fact) that shows accuracy instability best (figure 1): the base prompt is answered, another paraphrase and a
    negative context spoil the answer, and right and wrong answers are nearly even.

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
    """A base prompt and two models that both answer it, with the most different probability (figure 2), the surer one first.
    If no prompt is answered by two models, the two that differ most; of one model, that one alone."""
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
    import matplotlib.pyplot as plt

    framing = example[example["context"] == "none"]
    contexts = pd.concat([framing[framing["template"] == 1], example[example["context"] != "none"]])
    panels = {f"(a) prompt framing, {model}": framing, "(b) in-context interference": contexts}
    heights = [len(rows) for rows in panels.values()]
    figure, axes = plt.subplots(2, 1, figsize=(6.3, 0.19 * sum(heights) + 0.8), height_ratios=heights)
    for axis, (title, rows) in zip(axes, panels.items(), strict=True):
        columns = (rows["text"], rows["answer"], rows["correct"])
        lines(axis, [(t, a[:24] or "(nothing)", bool(ok)) for t, a, ok in zip(*columns, strict=True)], title)
    finding = (
        f"{model} answers {int(framing['correct'].sum())} of {len(framing)} paraphrases of this question, and "
        f"{int(contexts['correct'].sum())} of {len(contexts)} prompts with and without a prepended entity."
    )
    caption = (
        f"Accuracy instability: the answers of {model} to one fact (gold answer: {gold}) in {len(framing)} paraphrases, and to "
        f"the first of them with the gold answer and with {len(contexts) - 2} wrong ones prepended. Greedy decoding, cut at the "
        f"first stop; {about}"
    )
    return Artifact("monitor/figure1", example, caption, finding, figure=figure, alt=finding)


def figure2(top: pd.DataFrame, text: str, about: str) -> Artifact:
    """The most probable objects of two models after the same question. ``top``: ``scores.top_objects``."""
    import matplotlib.pyplot as plt

    models = top["model"].unique()
    figure, axes = plt.subplots(1, len(models), figsize=(6.3, 1.5), sharex=True, squeeze=False)
    for axis, (model, rows) in zip(axes[0], top.groupby("model", sort=False), strict=True):
        axis.barh(rows["label"], rows["probability"], color=model_style(model)["color"])
        for y, p in enumerate(rows["probability"]):
            axis.text(p, y, f" {p:.3f}", va="center", fontsize=7.5)
        axis.set(title=model, xlabel="probability", xlim=(0, 1.3 * top["probability"].max()))
        axis.set_xticks([tick for tick in axis.get_xticks() if tick <= 1])
        axis.invert_yaxis()
    caption = f'The most probable objects of the relation after "{text}"; {about}'
    alt = f"Bars: the three most probable answers of {' and of '.join(models)}."
    return Artifact("monitor/figure2", top, caption, finding2(top), figure=figure, alt=alt)


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
    import matplotlib.pyplot as plt

    scored = judged[~judged["kind"].str.endswith("written")]
    table = scored.groupby(["model", "kind", "template"], sort=False)["correct"].mean().reset_index(name="accuracy")
    panels = [kind for kind in ("WP", "QA", "FC-pos", "FC-neg") if kind in set(table["kind"])]
    order = sorted(sizes, key=sizes.get)
    size = (6.3, 0.24 * len(order) + 0.9)
    figure, axes = plt.subplots(1, len(panels), figsize=size, sharex=True, sharey=True, squeeze=False)
    look = {"orientation": "horizontal", "widths": 0.6, "patch_artist": True, "flierprops": {"markersize": 3}}
    for axis, kind in zip(axes[0], panels, strict=True):
        values = table[table["kind"] == kind].groupby("model")["accuracy"].apply(list)
        look |= {"boxprops": {"facecolor": BLUE, "alpha": 0.5}, "medianprops": {"color": "black"}}
        axis.boxplot([values[model] for model in order], **look)
        for y, model in enumerate(order, 1):
            axis.text(104, y, f"{np.ptp(values[model]):.0f}", va="center", fontsize=7)
        axis.set(title=kind, xlim=(-4, 104), xticks=[0, 50, 100], yticks=range(1, len(order) + 1), yticklabels=order)
    figure.supxlabel("accuracy in percent, one value per paraphrase", fontsize=9)
    caption = (
        "Accuracy over the paraphrases of sentences (WP), questions (QA) and statements (FC); box: quartiles, line: median, "
        "whiskers: 1.5 interquartile ranges; right: the largest minus the smallest value, in points; models by size, the largest "
        f"on top; {about}"
    )
    alt = "Boxes of accuracy over paraphrases for each model, one panel per form of the prompt."
    return Artifact("monitor/figure7", table, caption, finding7(table), figure=figure, alt=alt)


def finding7(table: pd.DataFrame) -> str:
    """The widest and the mean spread over paraphrases."""
    ranges = table.groupby(["model", "kind"])["accuracy"].agg(lambda values: values.max() - values.min())
    model, kind = ranges.idxmax()
    means = ", ".join(f"{k} {v:.1f}" for k, v in ranges.groupby("kind").mean().items())
    return f"The widest spread over paraphrases is {ranges.max():.1f} points ({model}, {kind}); mean spread: {means} points."


# ---- section 4: anchors


def farthest_prompts(table: pd.DataFrame) -> pd.DataFrame:
    """The positive context, and the frame and the negative context that are farthest from it: rows of ``by_prompt``."""
    ranked = table.sort_values("distance", ascending=False, key=levelled, kind="stable")
    kinds = ranked["context"].str.replace(r"\d+", "", regex=True)
    return pd.concat([ranked[kinds == kind].head(1) for kind in ("positive", "none", "negative")])


def figure3(prompts: pd.DataFrame, objects: pd.DataFrame, fact: pd.Series, gold: str, model: str) -> Artifact:
    """The most probable objects under a primary anchor and its two farthest foreign anchors.

    prompts   ``farthest_prompts``
    objects   ``scores.score_objects`` after these prompts
    fact      its row of ``measure_facts``;   gold: its object's label;   model: display name
    """
    import matplotlib.pyplot as plt

    top = objects.sort_values("logprob", ascending=False, key=levelled, kind="stable").groupby("prompt").head(3)
    missing = objects[(objects["label"] == gold) & ~objects.index.isin(top.index)]
    shown = pd.concat([top, missing]).sort_values(["prompt", "logprob"], ascending=[True, False])
    frame = prompts["template"].iloc[1]
    figure, axes = plt.subplots(1, 3, figsize=(6.3, 1.9), sharex=True)
    titles = ("(a) primary anchor", f"(b) frame {frame}, no context", "(c) a distractor")
    for i, (axis, title) in enumerate(zip(axes, titles, strict=True)):
        bars = shown[shown["prompt"] == i]
        hit = bars["label"] == gold
        hatch = np.where(hit, "//", "")
        axis.barh(bars["label"], bars["probability"], color=np.where(hit, ORANGE, "0.75"), hatch=hatch)
        for y, value in enumerate(bars["probability"]):
            axis.text(value, y, f" {value:.3f}", va="center", fontsize=7)
        axis.set(title=title, xlim=(0, 1.28), xticks=[0, 0.5, 1], xlabel="probability")
        axis.invert_yaxis()
        axis.tick_params(labelsize=7)
    for axis, letter, distance in zip(axes[1:], "fn", prompts["distance"].iloc[1:], strict=True):
        place = {"xycoords": "axes fraction", "ha": "right", "fontsize": 7.5, "weight": "bold"}
        axis.annotate(f"|p - {letter}| = {distance:.3f}", (0.98, 0.05), **place)
    texts = "; ".join(f"({letter}) {text}" for letter, text in zip("abc", prompts["text"], strict=True))
    caption = (
        f"The most probable objects of the relation in {model} for {fact['fact']}: primary anchor and the two foreign anchors "
        f"farthest from it; hatched: the gold object. Prompts: {texts}."
    )
    finding = (
        f"For this fact PFD = {fact['pfd']:.3f} (mean over frames) and IRD = {fact['ird']:.3f} (mean over distractors)."
    )
    alt = f"Bars of the most probable objects after three prompts; {gold} is hatched."
    numbers = shown[["text", "label", "probability", "logprob"]]
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


def counted_facts(measured: Measured) -> str:
    """Which facts count, for a caption: those that every model anchors (``measures.measure_common``), or each model's own."""
    tables = measured.facts.values()
    if all(table["anchored"].astype(bool).all() for table in tables):
        return f"the {len(next(iter(tables)))} facts that every model anchors"
    return "the facts that each model anchors"


def covered_relation(measured: Measured, facts: Facts, relation: str, least: int = 3) -> tuple[str, str]:
    """(relation, note): the wanted one, or its stand-in, where at least ``least`` facts count; else the one with the most."""
    (relation,), note = substitute_relations(facts, [relation])
    counts = next(iter(measured.facts.values()))["relation"].value_counts()
    if counts.get(relation, 0) >= min(least, counts.max()):
        return relation, note
    return counts.index[0], f"In {relation} every model anchors {counts.get(relation, 0)} facts, too few."


def figure11(measured: Measured) -> Artifact:
    """MONITOR against size, one line per relation, in the largest family."""
    import matplotlib.pyplot as plt

    sizes = dict(zip(measured.models["model"], measured.models["parameters"], strict=True))
    table = measured.relations.drop(columns="base acc")
    table = table.assign(parameters=table["model"].map(sizes), family=table["model"].map(family))
    largest = measured.models["model"].map(family).value_counts().index[0]
    table = table[table["family"] == largest].sort_values("parameters")
    groups = table.groupby("relation", sort=False)
    curves = {relation: rows.set_index("parameters")["MONITOR"] for relation, rows in groups}
    falling = [r for r, curve in curves.items() if len(curve) > 1 and (curve.diff()[1:] < 0).all()]
    columns = min(8, len(curves))
    height = -(-len(curves) // columns)
    size = (6.3, 0.6 + 0.85 * height)
    figure, axes = plt.subplots(height, columns, figsize=size, sharex=True, sharey=True, squeeze=False)
    for axis in axes.flat[len(curves) :]:
        axis.axis("off")
    for axis, (r, curve) in zip(axes.flat, curves.items(), strict=False):
        axis.plot(curve.index, curve, marker="o", markersize=2.5, color=BLUE if r in falling else "0.55")
        axis.set_title(r, fontsize=7.5, color=BLUE if r in falling else "black", pad=2)
        axis.set_xscale("log")
        axis.tick_params(labelsize=6.5, which="both", labelbottom=False)
    ends = table["parameters"].agg(["min", "max"])
    figure.supxlabel(f"parameters, {ends['min'] / 1e6:.2g}M to {ends['max'] / 1e6:.2g}M ({largest})", fontsize=9)
    figure.supylabel("MONITOR", fontsize=9)
    caption = (
        f"MONITOR against size (logarithmic) for each relation, family {largest}, {counted_facts(measured)}; blue: the "
        f"{len(falling)} of {len(curves)} relations where it falls at every step. A missing point: no fact anchored."
    )
    alt = f"One small panel per relation, MONITOR over model size; {len(falling)} of {len(curves)} fall at every step."
    finding = finding11(falling, len(curves), table["model"].nunique())
    return Artifact("monitor/figure11", table, caption, finding, figure=figure, alt=alt)


def finding11(falling: list[str], relations: int, models: int) -> str:
    """In how many relations MONITOR falls with size.

    >>> finding11(["P103"], 20, 5)
    "MONITOR falls at every step of size in **1 of 20** relations; in the paper's BLOOMZ family in 2 of 20."
    """
    if models < 2:
        return "No family here has two sizes, so no step can be seen."
    return (
        f"MONITOR falls at every step of size in **{len(falling)} of {relations}** relations; in the paper's BLOOMZ family in 2 "
        "of 20."
    )


def figure12(measured: Measured) -> Artifact:
    """Overall MONITOR against size, one line per family."""
    import matplotlib.pyplot as plt

    table = measured.models.assign(family=measured.models["model"].map(family)).sort_values("parameters")
    figure, axis = plt.subplots(figsize=(4.4, 3.0))
    for name, rows in table.groupby("family"):
        bars = [rows["MONITOR"] - rows["low"], rows["high"] - rows["MONITOR"]]
        look = model_style(rows["model"].iloc[-1])
        axis.errorbar(rows["parameters"], rows["MONITOR"], bars, capsize=2, label=name, **look)
    axis.set(ylabel=LOWER)
    size_axis(axis, table["parameters"])
    axis.legend()
    return Artifact(
        "monitor/figure12",
        table[["family", "model", "parameters", "MONITOR", "low", "high", "coverage"]],
        f"Overall MONITOR of {len(table)} models against size, over {counted_facts(measured)}, one line per family; bars: 95 % "
        "bootstrap interval over facts.",
        finding12(table),
        figure=figure,
        alt="MONITOR over model size with interval bars, one line per model family.",
    )


def finding12(table: pd.DataFrame) -> str:
    """The slope of MONITOR over size in every family of three models or more."""
    fits = {name: scaling_fit(rows["parameters"], rows["MONITOR"]) for name, rows in table.groupby("family")}
    slopes = [
        f"{name} {fit['b']:+.3f} {span(fit['b_low'], fit['b_high'], '+.3f')} (n = {fit['n']} models)"
        for name, fit in fits.items()
        if np.isfinite(fit["b_low"])
    ]
    if not slopes:
        return "No family here has three models with a MONITOR, so no slope can be fitted."
    return f"Slope of MONITOR over log10(parameters) with its 95 % interval: {'; '.join(slopes)}."


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
    import matplotlib.pyplot as plt

    (relation,), note = substitute_relations(facts, [relation])
    table = measures.instability(measured, relation).set_index("model")
    order = sorted(measured.runs, key=table["parameters"].to_dict().get)
    runs = {
        model: rows.loc[rows["relation"] == relation, "accuracy"].to_numpy() for model, rows in measured.runs.items()
    }
    figure, axis = plt.subplots(figsize=(6.3, 3.0))
    mean = {"marker": "^", "markerfacecolor": GREEN, "markeredgecolor": "none"}
    look = {"flierprops": {"markersize": 3}, "meanprops": mean, "medianprops": {"color": ORANGE}}
    boxes = axis.boxplot([runs[model] for model in order], showmeans=True, widths=0.55, **look)
    boxes["medians"][0].set_label("median")
    boxes["means"][0].set_label("mean")
    places = np.arange(1, len(order) + 1)
    axis.plot(places, table["base acc"][order], "o", color=RED, label="base accuracy", zorder=5)
    right = axis.twinx()
    right.plot(places, table["MONITOR"][order], "*", color=BLUE, markersize=9, label="MONITOR (right axis)")
    right.set(ylabel="MONITOR", ylim=(0, max(1.0, 1.05 * table["MONITOR"].max(skipna=True))))
    right.grid(False)
    right.spines["right"].set_visible(True)
    axis.set(ylabel="accuracy in percent", ylim=(-4, 104))
    axis.set_xticks(places, order, rotation=30, ha="right", fontsize=7.5)
    figure.legend(loc="outside upper center", ncols=4)
    caption = (
        "Accuracy of all runs (frames times negative contexts); box: quartiles, orange line: median, green triangle: mean, red "
        "dot: base accuracy (left axis); blue star: MONITOR (right axis, lower is better); models by size; "
        f"{about_relation(measured, facts, relation, note)}"
    )
    frame = pd.concat([pd.DataFrame({"model": model, "accuracy": runs[model]}) for model in order])
    alt = "Box plots of accuracy for each model, with base accuracy and MONITOR as marks."
    return Artifact("monitor/figure4", frame, caption, finding4(table.reset_index()), figure=figure, alt=alt)


def finding4(table: pd.DataFrame, within: float = 3.5) -> str:
    """Whether, of two models with similar base accuracy, the one with the lower MONITOR varies less (``instability``)."""
    rows = list(
        table.dropna(subset=["MONITOR", "std"])[["base acc", "MONITOR", "std"]].itertuples(index=False, name=None)
    )
    pairs = [(a, b) for a, b in combinations(rows, 2) if abs(a[0] - b[0]) <= within]
    if not pairs:
        return f"No two models with a MONITOR have a base accuracy within {within} points."
    agree = sum((a[1] < b[1]) == (a[2] < b[2]) for a, b in pairs)
    return (
        f"In {agree} of {len(pairs)} pairs of models within {within} points of base accuracy, the one with the lower MONITOR "
        "varies less (paper: 7 of 9)."
    )


def figure8(measured: Measured, facts: Facts, relation: str = "P1412") -> Artifact:
    """MONITOR against the standard deviation of the accuracy."""
    import matplotlib.pyplot as plt

    (relation,), note = substitute_relations(facts, [relation])
    table = measures.instability(measured, relation)[["model", "std", "relative", "MONITOR"]]
    figure, axes = plt.subplots(1, 2, figsize=(6.3, 2.6), sharey=True)
    labels = {"std": "standard deviation of accuracy, points", "relative": "the same over average accuracy"}
    for axis, (column, label) in zip(axes, labels.items(), strict=True):
        for name, x, y in table[["model", column, "MONITOR"]].itertuples(index=False):
            axis.plot(x, y, label=name, **(model_style(name) | {"linestyle": "none"}))
        both = table[[column, "MONITOR"]].dropna()
        if len(both) > 2 and np.ptp(both[column]) > 0:
            line, ends = np.polyfit(*both.to_numpy().T, 1), np.array([both[column].min(), both[column].max()])
            axis.plot(ends, np.polyval(line, ends), color="0.4", linewidth=1)
        axis.set(xlabel=label, xlim=(0, 1.08 * axis.get_xlim()[1]), ylim=(0, 1.08 * axis.get_ylim()[1]))
    axes[0].set(ylabel="MONITOR")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside right center", fontsize=7)
    plain, relative = (in_words(measures.correlation_with_spread(measured, relation, own)) for own in (False, True))
    caption = (
        "MONITOR against the standard deviation of the accuracy over all runs, in points and relative to the average "
        "accuracy, with "
        f"least-squares lines; {about_relation(measured, facts, relation, note)} In the paper, whose models answer "
        "more, the left "
        "line rises."
    )
    alt = "Scatters of MONITOR over the standard deviation of accuracy and over its ratio to the accuracy, one mark per model."
    finding = f"MONITOR and std: {plain}. MONITOR and std over average accuracy: {relative}."
    return Artifact("monitor/figure8", table, caption, finding, figure=figure, alt=alt)


# ---- section 5.2.3: how sure are two models?


def figure9(measured: Measured, models: list[str], fact: str, facts: Facts) -> Artifact:
    """Histograms of the anchors of models in the relation of a fact."""
    import matplotlib.pyplot as plt

    relation = fact_relation(facts, fact)
    table = anchor_probabilities(measured, models, relation)
    figure, axes = plt.subplots(1, len(models), figsize=(6.3, 2.2), sharey=True, squeeze=False)
    outline = {"color": ORANGE, "histtype": "step", "linewidth": 1.6, "ls": "--"}
    for axis, model in zip(axes[0], models, strict=True):
        for anchor, look in (("primary", {"color": BLUE}), ("foreign", outline)):
            values = table[(table["model"] == model) & (table["anchor"] == anchor)]["probability"]
            weights = np.full(len(values), 100 / max(1, len(values)))
            share = 100 * (values >= SURE).mean()
            label = f"{anchor}: {share:.0f} % at {SURE} or more"
            axis.hist(values, np.linspace(0, 1, 11), weights=weights, label=label, **look)
        axis.set(title=model, xlabel="probability of the anchor")
        axis.legend(loc="upper left", fontsize=7)
    axes[0, 0].set(ylabel="percent of the anchors")
    caption = (
        f"Probabilities of the anchors (mean over tokens) in {relation}: primary anchors of the anchored facts, and all of their "
        "foreign anchors, one panel per model."
    )
    alt = "Histograms of the anchors' probabilities, one panel per model."
    return Artifact("monitor/figure9", table, caption, finding9(table, models), figure=figure, alt=alt)


def anchor_probabilities(measured: Measured, models: list[str], relation: str) -> pd.DataFrame:
    """The anchors of the anchored facts of a relation: ``model``, ``anchor`` ("primary", "foreign"), ``probability``."""
    rows = []
    for model in models:
        anchors = measured.anchors[model]
        chosen = (anchors["relation"] == relation) & measured.facts[model]["anchored"].to_numpy(bool)
        for p, f, n in anchors[chosen][["p", "f", "n"]].itertuples(index=False):
            rows += [(model, "primary", p.mean())] + [(model, "foreign", v) for v in (*f.mean(1), *n.mean(1))]
    return pd.DataFrame(rows, columns=["model", "anchor", "probability"])


def finding9(table: pd.DataFrame, models: list[str], least: float = SURE) -> str:
    """The share of primary anchors with a probability of ``least`` or more."""
    primary = table[table["anchor"] == "primary"]
    if primary.empty:
        return "No fact is anchored, so there are no primary anchors to compare."
    shares = []
    for model, values in primary.groupby("model", sort=False)["probability"]:
        k, n = int((values >= least).sum()), len(values)
        low, high = (100 * end for end in wilson(k, n))
        shares.append(f"{model} {100 * k / n:.0f} % [{low:.0f}, {high:.0f}] of {n}")
    return f"Primary anchors of {least} or more: {'; '.join(shares)} (paper: BLOOMZ-3b 59 %, Vicuna-7b 85 %)."


# ---- section 6.1: where does an answer come from?


def extremes(measured: Measured, facts: Facts, relation: str) -> list[str]:
    """The models with the lowest and the highest MONITOR in a relation, of those that anchor half of its facts (of all, if fewer
    than two do: a model that knows nothing shows nothing); the first model if none has a MONITOR."""
    (relation,), _ = substitute_relations(facts, [relation])
    ranked = measures.in_relation(measured, relation).dropna(subset=["MONITOR"]).sort_values("MONITOR")
    half = ranked[ranked["coverage"] >= 0.5]
    names = (half if len(half) > 1 else ranked)["model"]
    return list(dict.fromkeys(names.iloc[[0, -1]] if len(names) else list(measured.facts)[:1]))


def figure5(attributions: pd.DataFrame, gold: str) -> Artifact:
    """Heat maps of the words that an answer rests on, one per model. ``attributions``: ``scores.attribute``."""
    import matplotlib.pyplot as plt

    models, top = attributions["model"].unique(), attributions["score"].max()
    figure, axes = plt.subplots(len(models), 1, figsize=(6.3, 0.85 * len(models) + 0.5), squeeze=False)
    for axis, (model, rows) in zip(axes[:, 0], attributions.groupby("model", sort=False), strict=True):
        picture = axis.imshow(rows["score"].to_numpy()[None], aspect="auto", cmap="cividis", vmin=0, vmax=top)
        for x, value in enumerate(rows["score"]):
            colour = "black" if value > 0.6 * top else "white"
            axis.text(x, 0, f"{value:.2f}", ha="center", va="center", fontsize=7, color=colour)
        axis.set_xticks(range(len(rows)), rows["word"], fontsize=7.5)
        of = rows.iloc[0]
        mark = {True: "✓", False: "✗"}[bool(of["correct"])]
        numbers = f"(P = {of['probability']:.2f}, baseline {of['baseline']:.2f})"
        axis.set(yticks=[], title=f'{model} begins with "{of["begins"]}" {mark} {numbers}')
        axis.grid(False)
    figure.colorbar(picture, ax=axes[:, 0].tolist(), label="share", shrink=0.9)
    caption = (
        f"Attribution of the first answer token to the words of a prompt with a negative context (gold answer: {gold}) by "
        "integrated gradients: what raises its probability P above that of the baseline, the mean embedding; L2 norm over the "
        f"embedding dimension, as a share; the parts add up to the difference within {100 * attributions['error'].max():.2g} %. "
        "Models: the lowest and the highest MONITOR of those that anchor half of the facts; the prompt is one that the first "
        "answers and the second answers with the distractor, where there is one."
    )
    most = attributions.loc[attributions.groupby("model", sort=False)["score"].idxmax()]
    listed = "; ".join(f"{model}: {word!r}" for model, word in zip(most["model"], most["word"], strict=True))
    frame, finding = attributions[["model", "word", "signed", "score"]], f"The word with the largest share: {listed}."
    alt = f"A row of words per model, darker where less of the answer comes from. {finding}"
    return Artifact("monitor/figure5", frame, caption, finding, figure=figure, alt=alt)


def context_attention(shares: pd.DataFrame) -> str:
    """How much of the attribution falls on the distractor, in a sentence (``scores.context_shares``)."""
    groups = shares.groupby("model", sort=False)
    means = [f"{m} {rows['share'].mean():.2f} {span(*mean_interval(rows['share']))}" for m, rows in groups]
    facts = shares["fact"].nunique()
    said = (
        f"The distractor's share of the attribution: {'; '.join(means)}; an even split would give {shares['even'].mean():.2f} "
        f"({facts} facts, one prompt each)."
    )
    if len(means) < 2:
        return said
    first, last = (rows.set_index("fact")["share"] for _, rows in groups)
    low, high = mean_interval(first - last.reindex(first.index))
    return (
        f"{said} Difference {(first - last).mean():+.2f} {span(low, high, '+.2f')}: negative, if the more reliable model looks "
        f"less at it; {shares.attrs['misprimed']} prompts are answered by the first model only."
    )


# ---- section 6.2: would fewer prompts do?


def fewer_frames(measured: Measured, subsets: pd.DataFrame, relation: str) -> pd.DataFrame:
    """One row per model: MONITOR with ``all frames``, ``low``, ``high``, with the ``first frames``, ``first low``, ``first
    high``, and the ``least`` and the ``most`` over all choices (``measures.frame_subsets``)."""
    full = measures.in_relation(measured, relation)[["model", "MONITOR", "low", "high"]]
    first = measures.with_frames(measured, relation, list(subsets["frames"].iloc[0]))
    full = full.merge(first[["model", "low", "high"]].add_prefix("first ").rename(columns={"first model": "model"}))
    groups = subsets.groupby("model")["MONITOR"]
    table = full.rename(columns={"MONITOR": "all frames"})
    ends = {"first frames": groups.first(), "least": groups.min(), "most": groups.max()}
    return table.assign(**{column: table["model"].map(values) for column, values in ends.items()})


def figure6(measured: Measured, facts: Facts, relation: str = "P178", n_frames: int = 4) -> Artifact:
    """MONITOR with fewer frames against MONITOR with all of them."""
    import matplotlib.pyplot as plt

    relation, note = covered_relation(measured, facts, relation)
    subsets = measures.frame_subsets(measured, relation, n_frames)
    table = fewer_frames(measured, subsets, relation)
    few, most = len(subsets["frames"].iloc[0]), measures.n_frames(measured, relation)
    figure, axis = plt.subplots(figsize=(4.4, 3.0))
    columns = ["model", "all frames", "first frames", "least", "most"]
    for model, x, y, least, highest in table.dropna(subset=columns[1:3])[columns].itertuples(index=False):
        look = model_style(model) | {"linestyle": "none"}
        axis.plot(x, y, label=model, **look)
        axis.plot([x, x], [least, highest], color=look["color"], linewidth=1, zorder=0)
    low, _ = axis.get_xlim()
    axis.axline((low, low), slope=1, color="0.6", linewidth=0.8, linestyle=":")
    axis.set(xlabel=f"MONITOR with all {most} frames", ylabel=f"with {few} frames")
    if axis.get_legend_handles_labels()[0]:
        figure.legend(loc="outside right center", fontsize=7)
    r = in_words(pearson(table["all frames"], table["first frames"]))
    caption = (
        f"MONITOR in {relation} over {counted_facts(measured)}, with all {most} frames against the first {few} (mark) "
        f"and every choice of {few} (line: least to "
        f"most); dotted: equal. Correlation: {r}. {note}"
    )
    alt = "Scatter of MONITOR with fewer frames over MONITOR with all of them."
    finding = finding6(subsets, measures.in_relation(measured, relation))
    return Artifact("monitor/figure6", table, caption, finding, figure=figure, alt=alt)


def finding6(subsets: pd.DataFrame, full: pd.DataFrame) -> str:
    """How far the ranking of models depends on the choice of frames."""
    wide = subsets.pivot(index="frames", columns="model", values="MONITOR")[full["model"]]
    taus = np.array([kendall(full["MONITOR"], row)["tau"] for row in wide.to_numpy()])
    if not np.isfinite(taus).any():
        return "Too few models have a MONITOR to rank them."
    change = np.nanmean(np.abs(wide.to_numpy() - full["MONITOR"].to_numpy()))
    printed = published("monitor/figure10")
    paper = in_words(pearson(printed["MONITOR_7_prompts"], printed["MONITOR_4_prompts"]))
    return (
        f"Over all {len(wide)} choices of frames, Kendall's tau with the full ranking is {np.nanmin(taus):.2f} to "
        f"{np.nanmax(taus):.2f} (median {np.nanmedian(taus):.2f}), and a score changes by {change:.3f} on average. In the paper, "
        f"for one choice: {paper}."
    )


def figure10(measured: Measured, facts: Facts, relation: str = "P178", n_frames: int = 4) -> Artifact:
    """The ranking of models with all frames and with the first ones, as bars."""
    import matplotlib.pyplot as plt

    relation, note = covered_relation(measured, facts, relation)
    subsets = measures.frame_subsets(measured, relation, n_frames)
    few, most = len(subsets["frames"].iloc[0]), measures.n_frames(measured, relation)
    table = fewer_frames(measured, subsets, relation)
    bars = table.dropna(subset=["all frames"]).sort_values("all frames").reset_index(drop=True)
    figure, axis = plt.subplots(figsize=(6.3, 2.9))
    x, look = np.arange(len(bars)), {"capsize": 2, "error_kw": {"lw": 0.8}}
    error = [bars["all frames"] - bars["low"], bars["high"] - bars["all frames"]]
    axis.bar(x - 0.2, bars["all frames"], 0.38, yerr=error, color=BLUE, label=f"{most} frames", **look)
    error = [bars["first frames"] - bars["first low"], bars["first high"] - bars["first frames"]]
    axis.bar(x + 0.2, bars["first frames"], 0.38, yerr=error, color=ORANGE, hatch="//", label=f"{few} frames", **look)
    for shift, column, color, back in ((-0.2, "all frames", "white", BLUE), (0.2, "first frames", "black", "white")):
        box = {"facecolor": back, "edgecolor": "none", "pad": 0.6}  # over whisker and hatch
        for i, value in enumerate(bars[column]):
            axis.text(i + shift, 0.01, f"{value:.3f}", ha="center", fontsize=6.5, rotation=90, color=color, bbox=box)
    axis.set(ylabel="MONITOR")
    axis.set_xticks(x, bars["model"], rotation=30, ha="right", fontsize=7.5)
    figure.legend(loc="outside upper center", ncols=2)
    caption = (
        f"MONITOR in {relation} with {most} and with the first {few} frames, over {counted_facts(measured)}, models in the order "
        "of the former; bars: 95 % "
        f"bootstrap interval over facts; {len(table) - len(bars)} models without an anchored fact are left out. {note}"
    )
    difference = (bars["all frames"] - bars["first frames"]).abs().mean()
    finding = f"With {few} frames MONITOR differs by {difference:.3f} on average." if len(bars) else ""
    return Artifact("monitor/figure10", bars, caption, finding, figure=figure, alt=f"Two bars per model. {finding}")
