"""GraphEval's figures of sections 3 and 4: measured numbers -> ``report.Artifact``. Those of the judge: ``judge_figures``."""

import textwrap
from itertools import product

import numpy as np
import pandas as pd

from probelib.grapheval.measures import ABOVE, METRICS
from probelib.grapheval.quality import majority_given_truth
from probelib.report import span
from probelib.report.legacy import Artifact
from probelib.report.charts import heat, style_at
from probelib.stats import pearson

MEANINGS = {
    "T": "Truthful",
    "I": "Informative",
    "C": "Correct",
    "D": "degree",
    "P": "popularity",
    "E": "exposure count",
}  # of the letters of figure 8
DEFINITIONS = {
    "D": "mean number of triples of head and tail",
    "P": "mean of head and tail, in page views, or for the atlas its authors' estimate from 1 to 5",
    "E": "how often the training corpus states the triple",
}
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
    chosen = "first held-out statement" + " on which the model does not abstain" * bool(len(sides))
    row, p, v = labels.iloc[at], probabilities[at], states[at]
    answered, judged = WORDS[row["answer"]], WORDS[int(p.argmax())]
    columns = ["statement", "written", "parsed", "p_true", "p_false", "p_idk"]
    frame = pd.DataFrame([[row["text"], row["response"], answered, *p.tolist()]], columns=columns)
    numbers = "\n".join(f"{word} {x:.2f}" for word, x in zip(("true", "false", "don't know"), p, strict=True))
    steps = [
        textwrap.fill(row["text"], 14, max_lines=8),
        f"{_diagram_name(model)}\n{row['n_tokens']} tokens,\n{row['n_tokens']} forwards",
        textwrap.fill(repr(row["response"].strip()), 17, max_lines=4),
        f"parser:\n{answered}",
        f"{_diagram_name(substitute)}\none forward",
        f"v, {len(v)} numbers\n({v[0]:.2f}, {v[1]:.2f}, ...)",
        f"judge:\n{judged}\n{numbers}",
    ]
    caption = (
        f"The {chosen}, two ways. Above: {model} generates an answer and a parser reads it. Below: the judge reads one "
        f"hidden state v of the substitute {substitute}; its numbers are the probabilities of true / false / don't know."
    )
    finding = f"For this statement {model} {answered}, and the judge predicts that it {judged}."
    alt = f"Generation: {answered}. Judge: {judged}."
    return Artifact("grapheval/figure1", frame, caption, finding, figure=_two_ways(steps), alt=alt)


def _diagram_name(model: str) -> str:
    """The last part of a model's name, at most 17 letters."""
    return model.split("/")[-1].removeprefix("atlas-")[:17]


def _two_ways(steps: list[str]):
    """Seven boxes: a statement, three steps of generation above, three of the judge below."""
    import matplotlib.pyplot as plt

    columns = [(0.27, 0.2), (0.51, 0.23), (0.78, 0.22)]  # left, width
    places = [(0.0, 0.25, 0.23, 0.5), *((x, y, width, 0.36) for y in (0.57, 0.02) for x, width in columns)]
    arrows = [(steps[i], steps[j]) for i, j in ((0, 1), (1, 2), (2, 3), (0, 4), (4, 5), (5, 6))]
    figure, axis = plt.subplots(figsize=(4.4, 2.3))
    flow(axis, dict(zip(steps, places, strict=True)), arrows, strong=[steps[3], steps[6]], size=8)
    for y, text in ((0.95, "generation: one forward per token"), (0.4, "GraphEval: one forward, then a judge")):
        axis.text(0.27, y, text, fontsize=8, fontweight="bold")
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
        f"its answers\n{answers[0]} true, {answers[1]} false\n{answers[2]} don't know",
        f"states [{n}, {width}]\nof the substitute",
        f"judge: of {quality['n']}\nheld-out answers\n{100 * quality['recall']:.1f} % predicted",
        f"{2 * len(scored):,} judged\n" + "\n".join(f"{m.capitalize()} {v:.2f}" for m, v in means.items()),
    ]
    caption = (
        f"GraphEval's three steps with the counts of this run, for {model} with the substitute {substitute}: "
        f"labels, judge, and the graph (here {len(scored):,} of its triples). Truthful, Informative, Correct: Eq. 2."
    )
    finding = (
        f"{n} answers train and test a judge that predicts {_predicted(labels, quality)}; "
        f"it then judges {2 * len(scored):,} statements without generating a token."
    )
    alt = "Six boxes: graph, statements, answers; states, judge, scores; each with its counts."
    frame = pd.DataFrame([counts], columns=columns)
    return Artifact("grapheval/figure2", frame, caption, finding, figure=_three_steps(boxes), alt=alt)


def _predicted(labels: pd.DataFrame, quality: dict) -> str:
    """The judge's share of right predictions with its interval, and that of the majority given the truth."""
    train, held = (labels[labels["split"] == split] for split in ("train", "validation"))
    floor = majority_given_truth(train["answer"], train["true"], held["true"]) == held["answer"]
    low, high = 100 * quality["recall low"], 100 * quality["recall high"]
    return (
        f"{100 * quality['recall']:.1f} % {span(low, high, '.1f')} of {quality['n']} held-out answers (the majority given the "
        f"truth: {100 * floor.mean():.1f} %)"
    )


def _three_steps(texts: list[str]):
    """Six boxes in two rows: labels above; judge and whole graph below."""
    import matplotlib.pyplot as plt

    boxes = {text: (0.35 * (i % 3), 0.59 - 0.57 * (i // 3), 0.3, 0.35) for i, text in enumerate(texts)}
    graph, statements, answers, states, judge, score = texts
    arrows = [(graph, statements), (statements, answers), (states, judge), (judge, score)]
    arrows += [(statements, states), (answers, judge)]
    figure, axis = plt.subplots(figsize=(4.4, 2.3))
    flow(axis, boxes, arrows, strong=[judge, score], size=8)
    for x, y, text in ((0, 0.96, "1  labels"), (0, 0.39, "2  judge"), (0.7, 0.39, "3  whole graph")):
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
    prompt = "\n".join(textwrap.fill(line, 60) for line in written["request"].split("\n"))
    lines = [textwrap.fill(text, 30) for text in (f"{author} generates: {first_line!r}", f"check: {verdict}")]
    result = "\n".join(lines)
    chosen = textwrap.fill(f"{source}'s own template is used: {written['template']}", 26)
    height = 0.145 * (prompt.count("\n") + 1)  # inches of the prompt
    figure, axis = plt.subplots(figsize=(4.2, height + 1.25))
    below = 0.95 / (height + 1.25)
    boxes = {prompt: (0, below + 0.07, 1, 0.93 - below), result: (0, 0, 0.54, below), chosen: (0.6, 0, 0.4, below)}
    flow(axis, boxes, [(prompt, result), (result, chosen)], strong=[chosen], left=[prompt], size=8)
    columns = ["relation", "author", "written", "verdict", "template"]
    caption = (
        f'The prompt for a template of the relation "{relation}" with three examples, the first line of the text of '
        f"{author}, the verdict of the check, and the template that is used."
    )
    alt = f"A prompt with sample triples leads to the text of {author}; the check says: {verdict}."
    finding = finding9(author, verdict, written["accepted"])
    return Artifact("grapheval/figure9", pd.DataFrame([written])[columns], caption, finding, figure=figure, alt=alt)


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
    shown, meaning = typed[typed["metric"] == "average"], "one third, the score of any constant answer"
    level = finding_level(shown, 1 / 3, meaning)
    return _by_type(
        "grapheval/figure3", typed, "average", "mean of Truthful, Informative, Correct", f" Dotted: {meaning}.", level
    )


def figure5(correct: pd.DataFrame) -> Artifact:
    """Figure 5: Correct by type of head and tail.

    correct  ``measures.beside_mirror``
    """
    meaning = (
        " Strokes: the mirror image of Correct (triple called false, corruption true) of the same type and model, which a "
        "model that ignores the statement reaches as often. Full marks: Correct lies significantly above it (paired, 95 %)."
    )
    return _by_type("grapheval/figure5", correct, "correct", "Correct", meaning, finding_mirror(correct))


def finding_mirror(correct: pd.DataFrame) -> str:
    """How often Correct lies above its own mirror image, and for which types it does so for all models."""
    above, below = correct["above low"] > 0, correct["above high"] < 0
    always = above.groupby([correct["side"], correct["type"]], sort=False).all()
    said = [f"{', '.join(always[side].index[always[side]]) or 'none'} ({side})" for side in always.index.unique("side")]
    return (
        f"Correct lies significantly above the mirror image of its type and model in {above.sum()} of {len(correct)} cases "
        f"and below it in {below.sum()} (by chance {0.025 * len(correct):.1f} each). Types above it for every model: "
        f"{'; '.join(said)}."
    )


def figure6(typed: pd.DataFrame) -> Artifact:
    """Figure 6: Truthful by type of head and tail."""
    return _by_type("grapheval/figure6", typed, "truthful", "Truthful", more=finding_abstaining(typed))


def figure7(typed: pd.DataFrame) -> Artifact:
    """Figure 7: Informative by type of head and tail."""
    return _by_type("grapheval/figure7", typed, "informative", "Informative", more=finding_abstaining(typed))


def _by_type(name: str, typed: pd.DataFrame, metric: str, label: str, marks: str = "", more: str = "") -> Artifact:
    """A figure of one ``metric`` by type; ``marks``: a sentence on further marks, ``more``: a further sentence of the finding."""
    shown = typed[typed["metric"] == metric]
    sizes = shown.groupby(["side", "type"])["triples"].first()
    caption = (
        f"{label[0].upper()}{label[1:]}, as predicted by the judges, by the most frequent type of a relation's heads "
        "(above) and tails (below): the types with the most triples, best first. A type's score is the unweighted mean "
        f"over its relations, {sizes.min():,} to {sizes.max():,} triples per type. Bars: 95 % bootstrap over triples within "
        f"relations (Wilson if no replicate differs), without the judge's own error (see table 2).{marks}"
    )
    figure = type_panels(shown, typed["model"].unique().tolist(), label, 1 / 3 if metric == "average" else np.nan)
    alt = f"{label} over entity types, one mark per model, with intervals."
    finding = f"{finding_by_type(shown, label)} {more}".strip()
    return Artifact(name, shown.drop(columns="order"), caption, finding, figure=figure, alt=alt)


def finding_by_type(shown: pd.DataFrame, label: str) -> str:
    """Best and worst type of heads and of tails over all models, and for how many models their intervals are disjoint."""
    said, counts, n = [], [], shown["model"].nunique()
    for side, own in shown.groupby("side", sort=False):
        best, worst = own["type"].iloc[0], own["type"].iloc[-1]
        mean = own.groupby("type")["order"].first()
        ends = own.pivot(index="model", columns="type", values=["low", "high"])
        counts.append(int((ends["low"][best] > ends["high"][worst]).sum()))
        said.append(
            f"for {side}s of type **{best}** ({mean[best]:.2f} over all models) and lowest for **{worst}** "
            f"({mean[worst]:.2f}; intervals disjoint for {counts[-1]} of {n} models)"
        )
    verdict = (
        "The score varies with the type, as in the paper."
        if max(counts) == n
        else "Whether it varies with the type, as in the paper, depends on the model."
        if max(counts)
        else "The paper's differences between types are not shown."
    )
    return f"{label[0].upper()}{label[1:]} is highest {', and '.join(said)}. {verdict}"


def finding_level(shown: pd.DataFrame, level: float, meaning: str) -> str:
    """The number of scores above the ``level`` that is reached without knowledge, and what that says."""
    above, below, n = int((shown["low"] > level).sum()), int((shown["high"] < level).sum()), len(shown)
    verdict = (
        "so most of them show knowledge"
        if above > n / 2
        else "so most of them show no knowledge, and the order of the types is no order of knowledge"
        if below > n / 2
        else "so whether the types differ in knowledge cannot be decided"
    )
    return f"{above} of {n} intervals lie above {meaning} ({level:.2f}), {below} below it, {verdict}."


def finding_abstaining(typed: pd.DataFrame) -> str:
    """Figures 6 and 7: are models Truthful about the types on which they abstain?"""
    wide = typed.pivot_table(index=["model", "side", "type"], columns="metric", values="score")
    found = pearson(wide["truthful"], wide["informative"])
    if not np.isfinite(found["r"]):
        return ""
    verdict = (
        "models are Truthful about the types on which they abstain, as LLaMA-2-70B is in the paper (.993 and .007)"
        if found["high"] < 0
        else "models are not Truthful by abstaining, unlike LLaMA-2-70B in the paper"
        if found["low"] > 0
        else "whether models are Truthful by abstaining, as LLaMA-2-70B is in the paper, cannot be decided"
    )
    interval = span(found["low"], found["high"], ".2f")
    return f"Truthful and Informative correlate by r = {found['r']:.2f} {interval} over models, sides and types: {verdict}."


def agreement_of_metrics(typed: pd.DataFrame) -> str:
    """Sentence on figures 5 to 7: rank correlations of the three metrics over models, sides and types."""
    metrics = typed[typed["metric"] != "average"]
    wide = metrics.pivot_table(index=["model", "side", "type"], columns="metric", values="score")
    ranks = wide.corr(method="spearman").stack(future_stack=True)
    pairs = [("truthful", "informative"), ("correct", "truthful"), ("correct", "informative")]
    values = [f"{a.capitalize()} and {b.capitalize()} {ranks[a, b]:.2f}" for a, b in pairs]
    said = ", ".join(values).replace("nan", "undefined (one is constant)")
    return f"Rank correlation over models, sides and types: {said}."


def type_panels(frame: pd.DataFrame, models: list[str], label: str, level: float = np.nan):
    """A figure of two panels, one per ``side`` of a triple, with ``score`` by ``type`` (``measures.by_type``): a mark per model,
    error bars from ``low`` to ``high``; a dotted line at ``level``. With a ``mirror`` (``measures.beside_mirror``): a stroke
    there, and hollow marks where the score is not significantly above it."""
    import matplotlib.pyplot as plt

    sides = list(frame.groupby("side"))
    rows = [own["type"].nunique() for _, own in sides]
    size, ratios = (4.2, 1.4 + 0.19 * sum(rows) + 0.17 * len(models)), {"height_ratios": rows}
    figure, axes = plt.subplots(len(sides), 1, figsize=size, sharex=True, gridspec_kw=ratios, squeeze=False)
    for axis, (side, own) in zip(axes[:, 0], sides, strict=True):
        types = own["type"].unique()[::-1]  # the best one at the top
        for i, model in enumerate(models):
            points = own[own["model"] == model].set_index("type").reindex(types)
            at = np.arange(len(types)) - (i - (len(models) - 1) / 2) * 0.7 / len(models)
            bars = np.clip([points["score"] - points["low"], points["high"] - points["score"]], 0, None)
            look = style_at(i) | {"linestyle": "none", "markersize": 3.5, "elinewidth": 0.8, "label": in_legend(model)}
            hollow = {"markerfacecolor": "white"} if "mirror" in own else {}
            axis.errorbar(points["score"], at, xerr=bars, **look, **hollow)
            if "mirror" in own:
                full = (points["above low"] > 0).to_numpy()
                axis.plot(
                    points["score"][full], at[full], look["marker"], color=look["color"], markersize=3.5, zorder=3
                )
                axis.plot(points["mirror"], at, "|", color=look["color"], markersize=6, markeredgewidth=1.4)
        axis.set_yticks(range(len(types)), types)
        axis.set(title=f"by type of {side}", ylim=(-0.6, len(types) - 0.4))
        if np.isfinite(level):
            axis.axvline(level, color="0.3", linestyle=":", linewidth=1)
    axes[-1, 0].set_xlabel(label)
    axes[-1, 0].locator_params(axis="x", nbins=5)
    legend_above(figure, axes[0, 0])
    return figure


def in_legend(model: str) -> str:
    """A model's name, short enough for a narrow figure."""
    name = model.removeprefix("atlas-")
    return name if len(name) <= 40 else f"...{name[-37:]}"


def legend_above(figure, axis) -> None:
    """The legend of a narrow figure, in as many columns as its names allow."""
    handles, names = axis.get_legend_handles_labels()
    fit = max(1, 62 // (6 + max(map(len, names))))
    figure.legend(handles, names, loc="outside upper center", ncols=min(fit, len(names)))


def figure8(linked: pd.DataFrame) -> Artifact:
    """Figure 8: correlations of T, I, C with degree, popularity and exposure count.

    linked  ``measures.correlate_models``
    """
    names = list(dict.fromkeys([*linked["y"], *linked["x"]]))  # T, I, C, D, ...
    others = ", ".join(f"{MEANINGS[name]} ({DEFINITIONS[name]})" for name in names[3:])
    models = linked["model"].unique()
    n = " to ".join(f"{n:,}" for n in sorted({linked["n"].min(), linked["n"].max()}))
    wide = linked[["low", "high"]].sub(linked["pearson"], axis=0).abs().max(axis=None)
    reach = f"reach at most {wide:.3f} to each side" if np.isfinite(wide) else "are undefined here"
    caption = (
        f"Pearson correlation over n = {n} triples of Truthful, Informative and Correct (by the judge) with each other and "
        f"with {others}; per model and, with several models, of their mean. Blue: positive, red: negative; a dash: one of "
        f"the two is constant. 95 % intervals (bootstrap over {linked['relations'].max()} relations: triples of one relation "
        f"are alike, so they are resampled together) {reach}. The CSV has all intervals, Spearman, and Pearson on log(1 + D, "
        "P, E)."
    )
    alt = f"{len(models)} heat maps of correlations: {', '.join(models)}."
    figure = _correlation_panels(linked, names)
    return Artifact("grapheval/figure8", linked, caption, finding8(linked), figure=figure, alt=alt)


def _correlation_panels(linked: pd.DataFrame, names: list[str]):
    """A heat map per model: T, I, C in rows, all ``names`` in columns."""
    import matplotlib.pyplot as plt

    n = linked["model"].nunique()
    figure, axes = plt.subplots(n, 1, figsize=(3.6, 0.9 + 0.95 * n), squeeze=False)
    for axis, (model, rows) in zip(axes[:, 0], linked.groupby("model", sort=False), strict=True):
        square = pd.DataFrame(np.eye(len(names)), names, names)
        for x, y, r in rows[["x", "y", "pearson"]].itertuples(index=False):
            square.loc[x, y] = square.loc[y, x] = r
        heat(axis, square.loc[names[:3]].rename(index=MEANINGS, columns=MEANINGS))
        for text in axis.texts:
            text.set_fontsize(7)
        axis.set_title(in_legend(model), fontsize=8)
        axis.tick_params(axis="x", labelbottom=axis is axes[-1, 0], rotation=35)
    for label in axes[-1, 0].get_xticklabels():
        label.set_horizontalalignment("right")
    return figure


def finding8(linked: pd.DataFrame) -> str:
    """Whether Correct depends on degree and popularity, as it does not in the paper, and whether it depends on exposures."""
    whole = linked["model"].iloc[-1]  # the mean of the models, or the only one
    own = linked[linked["model"] == whole]
    of = {metric: own[own["y"] == metric].set_index("x").loc[lambda t: t.index.isin(list("DPE"))] for metric in "CT"}
    correct = of["C"].dropna(subset="pearson")
    if correct.empty:
        return "Correct is constant here, so nothing correlates with it."
    said = ", ".join(
        f"{MEANINGS[x]} r = {row['pearson']:.2f} {span(row['low'], row['high'], '.2f')}"
        for x, row in correct.iterrows()
    )
    plain = correct.drop("E", errors="ignore")
    strongest = plain.loc[plain["pearson"].abs().idxmax()]
    known = f"Correct ({whole}, n = {correct['n'].max():,} triples): {said}."
    weak = "As in the paper, no metric has a strong link with degree or popularity"
    strong = "Unlike in the paper, there is a strong link with degree or popularity"
    largest = own[own["y"].isin(list("TIC")) & own["x"].isin(list("DP"))]["pearson"].abs().max()
    paper = f"{weak if largest < 0.3 else strong} (|r| up to {largest:.2f})."
    return " ".join(filter(None, [known, paper, _cause(of, strongest)]))


def _cause(of: dict[str, pd.DataFrame], other: pd.Series) -> str:
    """The sentence on the exposure count, the cause of knowledge; "" if it is unknown.

    of     "C", "T" -> correlations by property;  other: the strongest correlation of Correct with another property
    """
    if "E" not in of["C"].index or not np.isfinite(of["C"].loc["E", "low"]):
        return ""
    correct, truthful = of["C"].loc["E"], of["T"].loc["E"]
    low, high = sorted(np.sign(other["pearson"]) * other[["low", "high"]])
    own, beside = f"r = {correct['pearson']:.2f}", f"{MEANINGS[other.name]} (|r| = {abs(other['pearson']):.2f}"
    if not correct["low"] > 0:
        verdict = "has no positive link with Correct, so the judged score does not see it"
    elif low <= correct["high"] and correct["low"] <= high:
        verdict = f"has a link with Correct ({own}) near that of {beside}; intervals overlap)"
    else:
        weaker, why = ("weaker", ", which is not explained here") if correct["high"] < low else ("stronger", "")
        verdict = f"has a {weaker} link with Correct ({own}) than {beside}; intervals disjoint){why}"
    reward = ": to abstain on what was never taught is truthful" if truthful["high"] < 0 else ""
    return (
        f"The exposure count, the cause of knowledge here, {verdict}. Truthful correlates with the exposure count by r = "
        f"{truthful['pearson']:.2f} {span(truthful['low'], truthful['high'])}{reward}."
    )


def exposure_figure(banded: pd.DataFrame, name: str) -> Artifact:
    """Truthful, Informative and Correct by exposure count, by the judge and from own answers (not in the paper).

    banded  ``measures.by_band``;  name: of the property, from ``measures.triple_bands``
    """
    ways = banded["scored by"].unique()
    sizes = " and ".join(f"{banded.loc[banded['scored by'] == way, 'n'].min():,} ({way})" for way in ways)
    caption = (
        f"Truthful, Informative and Correct by the {name} of the triple: by the judge over the whole graph and from the "
        f"models' own answers to the labelled triples. Bars: 95 % (Wilson), without the judge's own errors. Thin lines: "
        "the mirror image of Correct (triple called false, corruption true), which rises, too, where a model only answers "
        f"more often; the row of Correct has its own limits of the y axis. Each point rests on at least {sizes} triples."
    )
    alt = f"The three metrics over {name}, one line per model, by the judge and from own answers."
    finding = finding_exposure(banded, name)
    return Artifact("grapheval/exposure", banded, caption, finding, figure=_band_panels(banded, name), alt=alt)


def _band_panels(banded: pd.DataFrame, name: str):
    """Panels: a row per metric, a column per way of scoring; a line per model."""
    import matplotlib.pyplot as plt

    ways, metrics = banded["scored by"].unique(), METRICS
    order = list(dict.fromkeys(banded["band"]))
    figure, axes = plt.subplots(
        len(metrics), len(ways), figsize=(4.2, 1.5 * len(metrics) + 0.8), sharex=True, sharey="row", squeeze=False
    )
    for (row, metric), (column, way) in product(enumerate(metrics), enumerate(ways)):
        axis, cell = axes[row, column], banded[(banded["metric"] == metric) & (banded["scored by"] == way)]
        models = list(cell.groupby("model", sort=False))
        for i, (model, own) in enumerate(models):
            at = np.array([order.index(band) for band in own["band"]]) + (i - (len(models) - 1) / 2) * 0.12
            bars = np.clip([own["mean"] - own["low"], own["high"] - own["mean"]], 0, None)
            axis.errorbar(at, own["mean"], bars, **style_at(i), markersize=3.5, elinewidth=0.8, label=in_legend(model))
            if metric == "correct":
                above = banded[(banded["metric"] == ABOVE) & (banded["scored by"] == way) & (banded["model"] == model)]
                axis.plot(
                    at, own["mean"].to_numpy() - above["mean"].to_numpy(), color=style_at(i)["color"], linewidth=0.7
                )
        axis.set_xticks(range(len(order)), order)
        axis.set(title=way if not row else "", ylabel=metric.capitalize() if not column else "")
        top = banded.loc[banded["metric"] == "correct", "high"].max() if metric == "correct" else 1
        axis.set_ylim(0, 1.02 * top if top > 0 else 1.02)  # Correct is low; NaN: no triples
    figure.supxlabel(name, fontsize=9)
    legend_above(figure, axes[0, 0])
    return figure


def finding_exposure(banded: pd.DataFrame, name: str) -> str:
    """For how many models Correct, its lead over the mirror image, Informative and Truthful differ between the lowest and the
    highest band, with disjoint intervals."""
    parts, see = [], []
    for way, rows in banded.groupby("scored by", sort=False):
        (up, down, n, example), (more, less, _, lead), (said, silent, _, answered), (true_up, true_down, *_) = (
            _ends(rows[rows["metric"] == metric]) for metric in ("correct", ABOVE, "informative", "truthful")
        )
        see += [way] * (more == n)
        parts.append(
            f"By {way}, from the lowest to the highest {name} Correct rises beyond both intervals for {up} of {n} models and "
            f"falls so for {down} ({example}), Correct minus its mirror image rises for {more} and falls for {less} ({lead}), "
            f"Informative rises for {said} and falls for {silent} ({answered}), "
            f"Truthful rises for {true_up} and falls for {true_down}."
        )
    verdict = (
        f"So Correct by {' and by '.join(see)} sees it." if see else "So no way of scoring sees it in every model."
    )
    return " ".join([*parts, verdict])


def _ends(rows: pd.DataFrame) -> tuple[int, int, int, str]:
    """(number of models whose highest band lies above the lowest with disjoint intervals, number below, number of models, the two
    values of the last model with their intervals)."""
    up = down = n = 0
    example = ""
    for model, own in rows.groupby("model", sort=False):
        first, last = own.iloc[0], own.iloc[-1]
        up, down, n = up + (last["low"] > first["high"]), down + (last["high"] < first["low"]), n + 1
        values = (f"{end['mean']:.2f} {span(end['low'], end['high'])}" for end in (first, last))
        example = f"{model}: {' to '.join(values)}"
    return int(up), int(down), n, example
