"""GraphEval's figures: measured numbers -> ``report.Artifact``."""

import textwrap

import numpy as np
import pandas as pd

from probelib.grapheval.measures import METRICS
from probelib.grapheval.quality import SCORES
from probelib.report import Artifact
from probelib.report.charts import grouped_bars, heat, style_at
from probelib.stats import wilson

MEANINGS = {
    "T": "Truthful",
    "I": "Informative",
    "C": "Correct",
    "D": "degree",
    "P": "popularity",
    "E": "exposure count",
}  # of the letters of figure 8
WORDS = {0: "says true", 1: "says false", 2: "does not know"}  # Answer -> words

# Section 3: diagrams with live numbers


def figure1(
    labels: pd.DataFrame, probabilities: np.ndarray, states: np.ndarray, model: str, substitute: str
) -> Artifact:
    """Figure 1: one held-out statement answered by generation and by the judge.

    labels         of one model;  probabilities [statements, 3]: the judge's;  states [statements, D]
    """
    held = np.flatnonzero(labels["split"] == "validation")
    sides = held[labels["answer"].to_numpy()[held] != 2]  # a statement on which the model takes a side, if there is one
    at = int((sides if len(sides) else held)[0])
    row, p, v = labels.iloc[at], probabilities[at], states[at]
    answered, judged = WORDS[row["answer"]], WORDS[int(p.argmax())]
    columns = ["statement", "written", "parsed", "p_true", "p_false", "p_idk"]
    frame = pd.DataFrame([[row["text"], row["response"], answered, *p.tolist()]], columns=columns)
    numbers = " / ".join(f"{x:.2f}" for x in p)
    steps = [
        textwrap.fill(row["text"], 24, max_lines=4),
        f"{model.split('/')[-1]}\n{row['n_tokens']} tokens, {row['n_tokens']} forwards",
        f"{row['response'].strip()[:34]!r}",
        f"parser: {answered}",
        f"{substitute.split('/')[-1]}\none forward",
        f"v, {len(v)} numbers\n({v[0]:.2f}, {v[1]:.2f}, ...)",
        f"judge: {judged}\n{numbers}",
    ]
    return Artifact(
        "grapheval/figure1",
        frame,
        caption=(
            f"One held-out statement, two ways. Above: {model} generates an answer and a parser reads it. Below: the "
            f"judge reads one hidden state v of the substitute {substitute}; its numbers are the probabilities of "
            "true / false / don't know."
        ),
        finding=f"For this statement {model} {answered}, and the judge predicts that it {judged}.",
        figure=_two_ways(steps),
        alt=f"Generation: {answered}. Judge: {judged}.",
    )


def _two_ways(steps: list[str]):
    """Seven boxes: a statement, three steps of generation above, three of the judge below."""
    import matplotlib.pyplot as plt

    columns = [(0.29, 0.2), (0.54, 0.24), (0.82, 0.18)]  # left, width
    places = [(0.0, 0.36, 0.24, 0.28), *((x, y, width, 0.26) for y in (0.68, 0.06) for x, width in columns)]
    arrows = [(steps[i], steps[j]) for i, j in ((0, 1), (1, 2), (2, 3), (0, 4), (4, 5), (5, 6))]
    figure, axis = plt.subplots(figsize=(6.3, 2.7))
    flow(axis, dict(zip(steps, places, strict=True)), arrows, strong=[steps[3], steps[6]], size=6.5)
    for y, text in (
        (0.97, "generation: one forward per token, then a parser"),
        (0.35, "GraphEval: one forward, then a judge"),
    ):
        axis.text(0.29, y, text, fontsize=8, fontweight="bold")
    return figure


def figure2(
    kg, labels: pd.DataFrame, quality: dict, scored: pd.DataFrame, width: int, model: str, substitute: str
) -> Artifact:
    """Figure 2: the three steps with the counts of this run.

    kg       ``VerbalizedGraph``;  labels: of one model
    quality  ``judge_quality`` of the held-out answers;  scored: Eq. 2 of the judged triples;  width: of a state
    """
    triples, n, means = len(kg.graph), len(labels), scored[METRICS].mean()
    columns = ["triples", "statements", "held out", "foretold", "judged", *METRICS]
    counts = [triples, n, quality["n"], quality["recall"], 2 * len(scored), *means]
    true, answers = int(labels["true"].sum()), np.bincount(labels["answer"], minlength=3)
    boxes = [
        f"knowledge graph\n{triples:,} triples\n{kg.graph.relations.num_rows} relations",
        f"{n} statements\n{true} true, {n - true} false",
        f"answers of the model\n{answers[0]} true, {answers[1]} false\n{answers[2]} don't know",
        f"states [{n}, {width}]\nof the substitute",
        f"judge: {quality['n']} held out,\n{100 * quality['recall']:.1f} % predicted",
        f"{2 * len(scored):,} statements judged\n" + "  ".join(f"{m[0].upper()} {v:.2f}" for m, v in means.items()),
    ]
    return Artifact(
        "grapheval/figure2",
        pd.DataFrame([counts], columns=columns),
        caption=(
            f"GraphEval's three steps with the counts of this run, for {model} with the substitute {substitute}: "
            f"labels, judge, and the graph (here {len(scored):,} of its triples). T, I, C: Truthful, Informative, "
            "Correct (Eq. 2)."
        ),
        finding=(
            f"{n} answers train and test a judge that predicts {100 * quality['recall']:.1f} % of {quality['n']} "
            f"held-out answers; it then judges {2 * len(scored):,} statements without generating a token."
        ),
        figure=_three_steps(boxes),
        alt="Six boxes: graph, statements, answers; states, judge, scores; each with its counts.",
    )


def _three_steps(texts: list[str]):
    """Six boxes in two rows: labels above; judge and whole graph below."""
    import matplotlib.pyplot as plt

    boxes = {text: (0.36 * (i % 3), 0.62 - 0.52 * (i // 3), 0.28, 0.3) for i, text in enumerate(texts)}
    graph, statements, answers, states, judge, score = texts
    arrows = [(graph, statements), (statements, answers), (states, judge), (judge, score)]
    arrows += [(statements, states), (answers, judge)]
    figure, axis = plt.subplots(figsize=(6.3, 2.5))
    flow(axis, boxes, arrows, strong=[judge, score], size=7)
    for x, y, text in ((0, 0.95, "1  labels"), (0, 0.43, "2  judge"), (0.72, 0.43, "3  whole graph")):
        axis.text(x, y, text, fontsize=8, fontweight="bold")
    return figure


def figure9(written: dict) -> Artifact:
    """Figure 9: a model is prompted for a template, and the check of what it generates.

    written  ``scores.write_template``
    """
    import matplotlib.pyplot as plt

    relation, author, verdict = written["relation"], written["author"], written["verdict"]
    first_line = (written["written"].strip().split("\n") or [""])[0][:80]
    source = "The model" if written["accepted"] else "The graph"
    prompt = "\n".join(textwrap.fill(line, 62) for line in written["request"].split("\n"))
    lines = [textwrap.fill(text, 36) for text in (f"{author} generates: {first_line!r}", f"check: {verdict}")]
    result = "\n\n".join(lines)
    chosen = textwrap.fill(f"{source}'s own template is used: {written['template']}", 36)
    figure, axis = plt.subplots(figsize=(6.3, 4.4))
    boxes = {prompt: (0, 0, 0.58, 1), result: (0.64, 0.6, 0.36, 0.36), chosen: (0.64, 0.06, 0.36, 0.36)}
    flow(axis, boxes, [(prompt, result), (result, chosen)], strong=[chosen], left=[prompt], size=6.3)
    columns = ["relation", "author", "written", "verdict", "template"]
    return Artifact(
        "grapheval/figure9",
        pd.DataFrame([written])[columns],
        caption=(
            f'The prompt for a template of the relation "{relation}" with three examples, the first line of the text of '
            f"{author}, the verdict of the check, and the template that is used."
        ),
        finding=finding9(author, verdict, written["accepted"]),
        figure=figure,
        alt=f"A prompt with sample triples leads to the text of {author}; the check says: {verdict}.",
    )


def finding9(author: str, verdict: str, accepted: bool) -> str:
    """Whether the generated template is used."""
    if accepted:
        return f"The text of {author} passes the check ({verdict}): its template is used."
    return f"The text of {author} fails the check ({verdict}): the graph's own template is used."


def flow(
    axis, boxes: dict[str, tuple[float, float, float, float]], arrows=(), strong=(), left=(), size: float = 7.5
) -> None:
    """Draw boxes with text, and arrows between them, in an axis without scales: a diagram with live numbers.

    boxes   text -> (left, bottom, width, height), as shares of the axis
    arrows  pairs of texts, from and to
    strong  texts in bold boxes;  left: texts that are aligned to the left
    """
    from matplotlib.patches import FancyBboxPatch

    axis.set(xlim=(0, 1), ylim=(0, 1))
    axis.axis("off")
    for text, (x, y, width, height) in boxes.items():
        plain, marked = {"facecolor": "0.96", "edgecolor": "0.6"}, {"facecolor": "#cfe3f5", "edgecolor": "#0173b2"}
        style = marked if text in strong else plain
        axis.add_patch(FancyBboxPatch((x, y), width, height, boxstyle="round,pad=0,rounding_size=0.012", **style))
        place, aligned = (x + 0.012, "left") if text in left else (x + width / 2, "center")
        axis.text(place, y + height / 2, text, ha=aligned, va="center", fontsize=size)
    for start, end in arrows:
        (x, y, width, height), (to_x, to_y, to_width, to_height) = boxes[start], boxes[end]
        across = to_x >= x + width  # to the right, else downwards
        tail = (x + width, y + height / 2) if across else (x + width / 2, y)
        head = (to_x, to_y + to_height / 2) if across else (to_x + to_width / 2, to_y + to_height)
        axis.annotate("", head, tail, arrowprops={"arrowstyle": "-|>", "color": "0.35", "shrinkA": 1, "shrinkB": 1})


# Section 4: types of entities, degree and popularity


def figure3(typed: pd.DataFrame) -> Artifact:
    """Figure 3: mean of the three metrics by type of head and tail.

    typed  ``measures.largest_types``
    """
    return _by_type(
        "grapheval/figure3", typed, "average", "Mean of Truthful, Informative and Correct", "mean of the metrics", 1 / 3
    )


def figure5(typed: pd.DataFrame) -> Artifact:
    """Figure 5: Correct by type of head and tail."""
    return _by_type("grapheval/figure5", typed, "correct", "Correct", "Correct")


def figure6(typed: pd.DataFrame) -> Artifact:
    """Figure 6: Truthful by type of head and tail."""
    return _by_type("grapheval/figure6", typed, "truthful", "Truthful", "Truthful")


def figure7(typed: pd.DataFrame) -> Artifact:
    """Figure 7: Informative by type of head and tail."""
    return _by_type("grapheval/figure7", typed, "informative", "Informative", "Informative")


def _by_type(
    name: str, typed: pd.DataFrame, metric: str, title: str, label: str, constant: float | None = None
) -> Artifact:
    shown = typed[typed["metric"] == metric]
    dotted = "" if constant is None else " Dotted: one third, the score of any constant answer."
    return Artifact(
        name,
        shown.drop(columns="order"),
        caption=(
            f"{title}, as predicted by the judges, by the most frequent type of a relation's heads (above) and tails "
            "(below): the types with the most triples, best first. A type's score is the unweighted mean over its "
            "relations. Bars: 95 % bootstrap over triples within relations (Wilson if no replicate differs), without "
            f"the judge's own error (see table 2).{dotted}"
        ),
        finding=finding_by_type(shown, label),
        figure=type_panels(shown, typed["model"].unique().tolist(), label, constant),
        alt=f"Grouped bars of {label} over entity types, one bar per model.",
    )


def finding_by_type(shown: pd.DataFrame, label: str) -> str:
    """Best and worst type of heads over all models, and the largest gap between types within one model."""
    heads = shown[shown["side"] == "head"]
    best, worst = heads.iloc[0], heads.iloc[-1]
    gap = heads.groupby("model")["score"].agg(lambda scores: scores.max() - scores.min())
    return (
        f"{label[0].upper()}{label[1:]} is highest for heads of type **{best['type']}** ({best['order']:.2f} over all "
        f"models) and lowest for **{worst['type']}** ({worst['order']:.2f}). The largest gap between types within one "
        f"model is {gap.max():.2f} ({gap.idxmax()})."
    )


def agreement_of_metrics(typed: pd.DataFrame) -> str:
    """Sentence on figures 5 to 7: rank correlations of the three metrics over models, sides and types."""
    metrics = typed[typed["metric"] != "average"]
    wide = metrics.pivot_table(index=["model", "side", "type"], columns="metric", values="score")
    ranks = wide.corr(method="spearman").stack(future_stack=True)
    pairs = [("truthful", "informative"), ("correct", "truthful"), ("correct", "informative")]
    values = [f"{a.capitalize()} and {b.capitalize()} {_correlation(ranks[a, b])}" for a, b in pairs]
    return f"Rank correlation over models, sides and types: {', '.join(values)}."


def _correlation(r: float) -> str:
    return f"{r:.2f}" if np.isfinite(r) else "undefined (one is constant)"


def type_panels(frame: pd.DataFrame, models: list[str], label: str, constant: float | None = None):
    """A figure of two panels, one per ``side`` of a triple, with grouped bars of ``score`` by ``type`` (``measures.by_type``), a
    bar per model, error bars from ``low`` to ``high``; a dotted line at ``constant``."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 1, figsize=(6.3, 5.2))
    top = float(np.clip(1.1 * frame["high"].max(), 0.1, 1))
    for axis, (side, rows) in zip(axes, frame.groupby("side"), strict=True):
        wide = rows.pivot(index="type", columns="model").loc[rows["type"].unique()]
        grouped_bars(axis, *(wide[value][models] for value in ("score", "low", "high")))
        axis.set_xticks(range(len(wide)), wide.index, rotation=35, ha="right")
        axis.set(ylabel=label, title=f"by type of {side}", ylim=(0, top))
        if constant is not None:
            axis.axhline(constant, color="0.3", linestyle=":", linewidth=0.9)
    fit = 108 // (8 + max(map(len, models)))  # names and their marks in a row
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper right", ncols=max(1, min(fit, len(models))))
    return figure


def figure8(linked: pd.DataFrame) -> Artifact:
    """Figure 8: correlations of T, I, C with degree, popularity and exposure count.

    linked  ``measures.correlate_models``
    """
    import matplotlib.pyplot as plt

    models = linked["model"].unique()
    names = list(dict.fromkeys([*linked["y"], *linked["x"]]))  # T, I, C, D, ...
    across, down = min(len(models), 2), -(-len(models) // 2)
    figure, axes = plt.subplots(down, across, figsize=(6.3, 3.1 * down), squeeze=False)
    for axis in axes.flat[len(models) :]:
        axis.axis("off")
    words = [MEANINGS[name] for name in names]
    for axis, (model, rows) in zip(axes.flat, linked.groupby("model", sort=False), strict=False):
        square = pd.DataFrame(np.eye(len(names)), names, names)
        for x, y, r in rows[["x", "y", "pearson"]].itertuples(index=False):
            square.loc[x, y] = square.loc[y, x] = r
        heat(axis, square.set_axis(words).set_axis(words, axis=1))
        axis.tick_params(axis="x", rotation=90)
        axis.set_aspect("equal")
        axis.set_title(model)
    figure.colorbar(axes[0, 0].images[0], ax=axes, label="Pearson r", shrink=0.7)
    others = ", ".join(MEANINGS[name] for name in names[3:])
    return Artifact(
        "grapheval/figure8",
        linked,
        caption=(
            f"Pearson correlation over up to {linked['n'].max():,} triples of Truthful, Informative and Correct with "
            f"{others}, per model and, with several models, of their mean. A dash: one of the two is "
            "constant. The CSV has intervals, Spearman, and Pearson on log(1 + D, P, E)."
        ),
        finding=finding8(linked),
        figure=figure,
        alt=f"{len(models)} heat maps of correlations: {', '.join(models)}.",
    )


def finding8(linked: pd.DataFrame) -> str:
    """The strongest correlation of Correct with a property of the triples, over the models."""
    rows = linked[(linked["y"] == "C") & (linked["model"] != "mean of the models")]
    rows = rows.dropna(subset="spearman").reset_index(drop=True)
    if rows.empty:
        return "Correct is constant for every model here, so nothing correlates with it."
    best = rows.loc[rows["pearson"].abs().idxmax()]
    return (
        f"The strongest correlation of Correct is with {best['x']}: r = {best['pearson']:.2f} [{best['low']:.2f}, "
        f"{best['high']:.2f}], Spearman {best['spearman']:.2f} ({best['model']}, n = {best['n']:,} triples)."
    )


# Appendix A: the judge's quality


def figure4(compared: pd.DataFrame, seeds: int) -> Artifact:
    """Figure 4: judges, last-token logits and baselines: precision, recall and F1.

    compared  ``quality.compare_with_baselines``;  seeds: judges per score
    """
    import matplotlib.pyplot as plt

    models, kinds = compared["model"].unique(), list(dict.fromkeys(compared["by"]))
    figure, axes = plt.subplots(3, 1, figsize=(6.3, 5.4), sharex=True)
    for axis, score in zip(axes, SCORES, strict=True):
        wide = compared.pivot(index="model", columns="by").reindex(index=models)
        grouped_bars(axis, *(wide[value][kinds] for value in (score, f"{score} low", f"{score} high")))
        axis.set(ylabel=score, ylim=(0, 1.02))
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=3)
    return Artifact(
        "grapheval/figure4",
        compared,
        caption=(
            "Weighted precision, recall (= accuracy) and F1 of predicted outcomes on "
            f"{compared['n'].max():.0f} held-out statements: judges (mean of {seeds}) and last-token logits, both on "
            "the substitute's states, and two baselines that read nothing: the most frequent outcome, and the most "
            "frequent one among the true or the false statements. Whiskers: 95 % intervals over statements (bootstrap; of recall "
            "Wilson's). A dash: the model is its own substitute, so its logits are the first word of its answer."
        ),
        finding=finding4_judge(compared),
        figure=figure,
        alt="Grouped bars for judges, logits and baselines, three panels for precision, recall and F1.",
    )


def finding4_judge(compared: pd.DataFrame) -> str:
    """For how many models the judge beats the logits and the baselines."""
    accuracy = compared.pivot(index="model", columns="by", values="recall")
    judge, n = accuracy["judge, instruction"], len(accuracy)
    beaten = {by: int((judge > accuracy[by]).sum()) for by in accuracy}
    others = int(accuracy["logits, instruction"].notna().sum())
    soft = (accuracy["judge, soft prompt"] - judge).mean()
    return (
        f"Behind the instruction, the judge is more accurate than the logits for {beaten['logits, instruction']} of "
        f"{others} models, than the majority for {beaten['majority']} of {n}, and than the majority given the truth for "
        f"{beaten['majority, truth known']}. The soft prompt changes its accuracy by {soft:+.3f} on average."
    )


def reliability_figure(curves: pd.DataFrame, errors: dict[str, float], seeds: int) -> Artifact:
    """Reliability of the judges' probabilities (not in the paper).

    curves, errors  ``quality.calibration``
    """
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(5.6, 3.2))
    axis.plot([0.3, 1], [0.3, 1], color="0.6", lw=0.8, ls=":")
    for i, (model, rows) in enumerate(curves.groupby("model", sort=False)):
        rows = rows[rows["n"] > 4]  # a share of fewer means little; the CSV has them
        intervals = [wilson(round(n * share), n) for n, share in zip(rows["n"], rows["right"], strict=True)]
        low, high = np.array(intervals).reshape(-1, 2).T
        bars = np.clip([rows["right"] - low, high - rows["right"]], 0, None)
        style = style_at(i) | {"label": f"{model}, ECE {errors[model]:.3f}"}
        axis.errorbar(rows["probability"], rows["right"], bars, capsize=2, **style)
    axis.set(xlabel="probability of the predicted answer", ylabel="share predicted correctly", ylim=(0, 1.03))
    figure.legend(*axis.get_legend_handles_labels(), loc="outside upper center", ncols=2, fontsize=7)
    return Artifact(
        "grapheval/reliability",
        curves,
        caption=(
            f"Reliability of the judges (probabilities averaged over {seeds}) on "
            f"{curves.groupby('model')['n'].sum().max()} held-out statements, in bins of 0.1 (those with at least "
            "five are drawn). Bars: 95 % Wilson; dotted: perfect calibration."
        ),
        finding=(
            f"The expected calibration error of the judges lies between {min(errors.values()):.3f} and "
            f"{max(errors.values()):.3f}."
        ),
        figure=figure,
        alt="Share predicted correctly over the judge's probability, a line per model.",
    )


def learning_curve_figure(learning: pd.DataFrame, sizes: list[int], baselines: pd.DataFrame) -> Artifact:
    """Accuracy over the number of labels, chosen at random or by the judge's uncertainty (not in the paper).

    learning, sizes  ``learning_curve.learning_curves``
    baselines        ``quality.baseline_quality``: what needs no judge, as level lines
    """
    import matplotlib.pyplot as plt

    groups = learning.groupby(["model", "how", "labels"], sort=False)["accuracy"]
    curve = groups.agg(["mean", "min", "max"]).reset_index()
    models = curve["model"].unique()
    figure, axes = plt.subplots(1, len(models), figsize=(6.3, 2.5), sharey=True, squeeze=False)
    for axis, (model, rows) in zip(axes[0], curve.groupby("model", sort=False), strict=True):
        for (how, own), (marker, line) in zip(rows.groupby("how"), (("o", "-"), ("s", "--")), strict=True):
            axis.plot(own["labels"], own["mean"], marker=marker, ls=line, label=how)
            axis.fill_between(own["labels"], own["min"], own["max"], alpha=0.15)
        for (by, own), line in zip(baselines[baselines["model"] == model].groupby("by"), (":", "-."), strict=False):
            axis.axhline(own["recall"].iloc[0], color="0.4", linestyle=line, linewidth=1, label=by)
        axis.set(xscale="log", xlabel="labels", title=model.removeprefix("atlas-"))
        axis.set_xticks(sizes[::2], sizes[::2])
        axis.set_xticks([], minor=True)
    axes[0, 0].set(ylabel="accuracy", ylim=(0, 1.02))
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=4)
    level = baselines.rename(columns={"by": "how", "recall": "mean"})[["model", "how", "mean"]]
    return Artifact(
        "grapheval/learning_curve",
        pd.concat([curve, level], ignore_index=True),
        caption=(
            "Accuracy on the held-out statements against the number of labels, chosen at random or by the judge's "
            f"uncertainty; mean and range of {learning['seed'].nunique()} seeds; level lines: the most frequent "
            "outcome, of all and "
            "of true and false statements apart. Fragile: every point is a small judge "
            "trained anew, and a processor that rounds otherwise may move it by up to 0.1."
        ),
        finding=finding_learning(learning, sizes),
        figure=figure,
        alt="Accuracy over labels, two lines per model: random and uncertain.",
    )


def finding_learning(learning: pd.DataFrame, sizes: list[int]) -> str:
    """Gain of choosing by uncertainty at the middle number of labels, beside the difference that is chance."""
    runs = learning.pivot(index=["model", "seed", "labels"], columns="how", values="accuracy")
    gain = (runs["uncertain"] - runs["random"]).groupby("labels").agg(["mean", "min", "max", "size"])
    middle, last = gain.loc[sizes[len(sizes) // 2]], gain.loc[sizes[-1]]
    return (
        f"With {middle.name} labels, choosing by uncertainty changes accuracy by {middle['mean']:+.3f} on average "
        f"({middle['min']:+.3f} to {middle['max']:+.3f} in {middle['size']:.0f} runs). With all {last.name} labels, "
        f"where nothing is left to choose, the two still differ by {last['mean']:+.3f}: that much is chance."
    )
