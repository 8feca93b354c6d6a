"""GraphEval's tables and figures: measured numbers in, ``report.Artifact`` out. What is said about
them stands in ``published/claims.yaml``."""

import textwrap

import numpy as np
import pandas as pd

from probelib.grapheval import measures
from probelib.grapheval.measures import METRICS, SCORES, Answer
from probelib.grapheval.speed import ALONE, TOGETHER
from probelib.report import Artifact, cases, check, dot_rows, grouped_bars, heat, subplots
from probelib.stats import pearson

WORDS = {0: "says true", 1: "says false", 2: "does not know"}  # Answer -> words
LETTERS = {"T": "Truthful", "I": "Informative", "C": "Correct", "D": "degree"}  # of figure 8
LETTERS |= {"P": "popularity", "E": "exposure count"}


# Section 3: the method


def table1(statistics: dict) -> Artifact:
    """The knowledge graph. ``statistics``: ``whole_graph.graph_statistics``."""
    return Artifact("grapheval/table1", pd.DataFrame([statistics]))


def table5(relations: pd.DataFrame, n_triples: int) -> Artifact:
    """The most frequent relations (``whole_graph.most_frequent``) of ``n_triples`` triples."""
    percent = 100 * relations["count"] / n_triples
    return Artifact("grapheval/table5", relations.assign(percent=percent))


def table6(instructions: pd.DataFrame) -> Artifact:
    """The instruction that each model is prompted with. ``instructions``:
    ``scores.instructions``."""
    return Artifact("grapheval/table6", instructions)


def figure1(
    labels: pd.DataFrame, probabilities: np.ndarray, states: np.ndarray, model: str, small: str
) -> Artifact:
    """A held-out statement answered by generation and by the judge: the first on which the model
    takes a side, if there is one.

    labels   of one ``model``;  probabilities [statements, 3]: the judge's
    states   [statements, D] of the substitute ``small``
    """
    held = np.flatnonzero(labels["split"] == "validation")
    sides = held[labels["answer"].to_numpy()[held] != Answer.IDK]
    at = int((sides if len(sides) else held)[0])
    row, p, v = labels.iloc[at], probabilities[at], states[at]
    answered, judged = WORDS[row["answer"]], WORDS[int(measures.likeliest_answers(p))]
    columns = ["statement", "generated", "parsed", "p_true", "p_false", "p_idk"]
    frame = pd.DataFrame([[row["text"], row["response"], answered, *p.tolist()]], columns=columns)
    numbers = [
        f"{word} {x:.2f}" for word, x in zip(("true", "false", "don't know"), p, strict=True)
    ]
    texts = [
        textwrap.fill(row["text"], 14, max_lines=8),
        f"{_diagram_name(model)}\n{row['n_tokens']} tokens,\n{row['n_tokens']} forwards",
        textwrap.fill(repr(row["response"].strip()), 17, max_lines=4),
        f"parser:\n{answered}",
        f"{_diagram_name(small)}\none forward",
        f"v, {len(v)} numbers\n({v[0]:.2f}, {v[1]:.2f}, ...)",
        "\n".join([f"judge:\n{judged}", *numbers]),
    ]
    above, below = ([(x, y, w, 0.36) for x, w in COLUMNS] for y in (0.57, 0.02))
    figure = flow(
        dict(zip(texts, [(0.0, 0.25, 0.23, 0.5), *above, *below], strict=True)),
        [(texts[i], texts[j]) for i, j in ((0, 1), (1, 2), (2, 3), (0, 4), (4, 5), (5, 6))],
        strong=[texts[3], texts[6]],
        heads={
            "generation: one forward per token": (0.27, 0.95),
            "GraphEval: one forward, then a judge": (0.27, 0.4),
        },
    )
    return Artifact("grapheval/figure1", frame, figure=figure)


COLUMNS = [(0.27, 0.2), (0.51, 0.23), (0.78, 0.22)]  # of figure 1: left, width


def _diagram_name(model: str) -> str:
    return model.split("/")[-1].removeprefix("atlas-")[:17]


def figure2(kg, labels: pd.DataFrame, quality: dict, scored: pd.DataFrame, width: int) -> Artifact:
    """The three steps with the counts of this run.

    kg       ``VerbalizedGraph``;  labels: of one model
    quality  ``judge_quality`` of the held-out answers;  scored: Eq. 2 of the judged triples
    width    of a state
    """
    triples, n, means = len(kg.graph), len(labels), scored[METRICS].mean()
    columns = ["triples", "statements", "held out", "predicted", "judged", *METRICS]
    counts = [triples, n, quality["n"], quality["recall"], 2 * len(scored), *means]
    true, answers = int(labels["true"].sum()), np.bincount(labels["answer"], minlength=3)
    scores = "\n".join(f"{m.capitalize()} {v:.2f}" for m, v in means.items())
    texts = [
        f"knowledge graph\n{triples:,} triples\n{kg.graph.relations.num_rows} relations",
        f"{n} statements\n{true} true, {n - true} false",
        f"its answers\n{answers[0]} true, {answers[1]} false\n{answers[2]} don't know",
        f"states [{n}, {width}]\nof the substitute",
        f"judge: of {quality['n']}\nheld-out answers\n{100 * quality['recall']:.1f} % predicted",
        f"{2 * len(scored):,} judged\n{scores}",
    ]
    figure = flow(
        {t: (0.35 * (i % 3), 0.59 - 0.57 * (i // 3), 0.3, 0.35) for i, t in enumerate(texts)},
        [(texts[i], texts[j]) for i, j in ((0, 1), (1, 2), (3, 4), (4, 5), (1, 3), (2, 4))],
        strong=texts[4:],
        heads={"1  labels": (0, 0.96), "2  judge": (0, 0.39), "3  whole graph": (0.7, 0.39)},
    )
    return Artifact("grapheval/figure2", pd.DataFrame([counts], columns=columns), figure=figure)


def figure9(written: dict) -> Artifact:
    """The prompt for a template, the answer, its check. ``written``: ``scores.write_template``."""
    prompt = "\n".join(textwrap.fill(line, 60) for line in written["request"].split("\n"))
    first_line = (written["written"].strip().split("\n") or [""])[0][:80]
    answer = textwrap.fill(f"{written['author']}: {first_line!r}", 30)
    result = f"{answer}\ncheck: {written['verdict']}"
    chosen = textwrap.fill(f"template used: {written['template']}", 26)
    height = 0.145 * (prompt.count("\n") + 1)  # inches of the prompt
    low = 0.95 / (height + 1.25)
    places = [(0, low + 0.07, 1, 0.93 - low), (0, 0, 0.54, low), (0.6, 0, 0.4, low)]
    figure = flow(
        dict(zip((prompt, result, chosen), places, strict=True)),
        [(prompt, result), (result, chosen)],
        strong=[chosen],
        left=[prompt],
        size=(4.2, height + 1.25),
    )
    columns = ["relation", "author", "written", "verdict", "template"]
    return Artifact("grapheval/figure9", pd.DataFrame([written])[columns], figure=figure)


def flow(boxes: dict, arrows, strong=(), left=(), heads=(), size=(4.4, 2.3)):
    """A diagram of boxes with live numbers, and arrows between them.

    boxes   text -> (left, bottom, width, height), as shares of the figure
    arrows  pairs of texts;  strong: texts in bold boxes;  left: texts aligned to the left
    heads   bold text -> its place (x, y)
    """
    from matplotlib.patches import FancyBboxPatch

    figure, axes = subplots(*size)
    axis = axes[0, 0]
    axis.set(xlim=(0, 1), ylim=(0, 1))
    axis.axis("off")
    for text, (x, y, width, height) in boxes.items():
        face, edge = ("#cfe3f5", "#0173b2") if text in strong else ("0.96", "0.6")
        look = {"boxstyle": "round,pad=0,rounding_size=0.012", "facecolor": face, "edgecolor": edge}
        axis.add_patch(FancyBboxPatch((x, y), width, height, **look))
        at, side = (x + 0.012, "left") if text in left else (x + width / 2, "center")
        axis.text(at, y + height / 2, text, ha=side, va="center", fontsize=8)
    for start, end in arrows:
        (x, y, width, height), (to_x, to_y, to_width, to_height) = boxes[start], boxes[end]
        tail, head = (x + width / 2, y), (to_x + to_width / 2, to_y + to_height)  # downwards
        if to_x >= x + width:  # to the right
            tail, head = (x + width, y + height / 2), (to_x, to_y + to_height / 2)
        look = {"arrowstyle": "-|>", "color": "0.35", "shrinkA": 1, "shrinkB": 1}
        axis.annotate("", head, tail, arrowprops=look)
    for text, place in dict(heads).items():
        axis.text(*place, text, fontsize=8, fontweight="bold")
    return figure


# Section 4: models, types of entities, degree and popularity


def instruction_table(compared: pd.DataFrame) -> Artifact:
    """Own answers after each instruction. ``compared``: ``measures.compare_instructions``."""
    named = compared.assign(case=compared["model"] + ", " + compared["instruction"])
    recalled = cases(compared.dropna(subset="change"), "change", n="triples")
    found = {"recall": recalled, "mirror": cases(named, "above mirror", "case", n="triples")}
    claims = check("grapheval/instruction", **found)
    return Artifact("grapheval/instruction", compared, claims)


def table2(rows: pd.DataFrame, sizes: pd.Series, labels: pd.DataFrame, coverage: float) -> Artifact:
    """Outcomes of the labelled statements, and the metrics of each model, scored four ways.

    rows    ``measures.score_models``;  sizes: ``scores.model_sizes``
    labels  ``judge.train_judges``;  coverage: share of the graph's triples that is evaluated
    """
    table = rows.assign(coverage=coverage, parameters=rows["model"].map(sizes))
    changes = measures.change_with_size(measures.score_triples(labels), sizes)
    errors = measures.magnitude(measures.judge_errors(labels))
    size = changes.loc[changes.index == "informative"]
    claims = check("grapheval/table2", size=size, judge=errors)
    return Artifact("grapheval/table2", table, claims)


def figure3(typed: pd.DataFrame) -> Artifact:
    """Mean of the metrics by type of head and tail. ``typed``: ``measures.largest_types``."""
    return _by_type("grapheval/figure3", typed, "average", "score", 1 / 3, level="score")


def figure5(typed: pd.DataFrame) -> Artifact:
    """Correct by type of head and tail. ``typed``: ``measures.beside_mirror``."""
    return _by_type("grapheval/figure5", typed, "correct", "Correct", mirror="above")


def figure6(typed: pd.DataFrame) -> Artifact:
    """Truthful by type of head and tail."""
    keys = ["model", "side", "type"]
    wide = typed.pivot_table(index=keys, columns="metric", values="score", sort=False)
    groups = wide.groupby(["model", "side"], sort=False)
    r = {", ".join(key): pearson(own["truthful"], own["informative"]) for key, own in groups}
    return _by_type("grapheval/figure6", typed, "truthful", "Truthful", abstain=pd.DataFrame(r).T)


def figure7(typed: pd.DataFrame) -> Artifact:
    """Informative by type of head and tail."""
    return _by_type("grapheval/figure7", typed, "informative", "Informative")


def _by_type(
    name: str, typed: pd.DataFrame, metric: str, label: str, line: float = np.nan, **found
) -> Artifact:
    """One metric by type; ``found``: claim -> estimates, or their column per type and model."""
    shown = typed[typed["metric"] == metric]
    columns = {"score": "value", "score low": "low", "score high": "high"}
    sides = shown.rename(columns=columns).groupby("side", sort=False)
    panels = {f"by type of {side}": own for side, own in sides}
    groups = shown.groupby(["model", "side"], sort=False)
    varies = {", ".join(key): measures.heterogeneity(own) for key, own in groups}
    named = shown.assign(case=shown[["model", "side", "type"]].agg(", ".join, axis=1))
    for key, column in found.items():
        if isinstance(column, str):
            found[key] = cases(named, column, "case", n="triples")
    claims = check(name, varies=pd.DataFrame(varies).T, **found)
    return Artifact(name, shown, claims, dot_rows(panels, "type", "model", label, line))


def figure8(linked: pd.DataFrame, causes: pd.DataFrame) -> Artifact:
    """Correlations of the metrics with each other, degree, popularity and exposure count.

    linked  ``measures.correlate_models``;  causes: ``measures.cause_over_degree``
    """
    names = list(dict.fromkeys([*linked["y"], *linked["x"]]))  # T, I, C, D, ...
    n = linked["model"].nunique()
    figure, axes = subplots(3.6, 0.9 + 0.95 * n, n)
    for axis, (model, rows) in zip(axes[:, 0], linked.groupby("model", sort=False), strict=True):
        square = pd.DataFrame(np.eye(len(names)), names, names)
        for x, y, r in rows[["x", "y", "pearson"]].itertuples(index=False):
            square.loc[x, y] = square.loc[y, x] = r
        heat(axis, square.loc[names[:3]].rename(index=LETTERS, columns=LETTERS))
        axis.set_title(model.removeprefix("atlas-"), fontsize=8)
        axis.tick_params(axis="x", labelbottom=axis is axes[-1, 0], rotation=35)
    claims = check("grapheval/figure8", weak=measures.weak_links(linked), cause=causes)
    return Artifact("grapheval/figure8", linked, claims, figure)


# Appendix A: the judge


def figure4(predicted: pd.DataFrame, substitute: pd.Series) -> Artifact:
    """Judges and last-token logits on the substitutes, and the majorities: precision, recall, F1.

    predicted  ``judge.predict_all_held_out``;  substitute: ``scores.substitutes``
    """
    read = predicted["answers of"].map(substitute)
    own = predicted[predicted["states of"].isin([""]) | (predicted["states of"] == read)]
    compared = measures.held_out_quality(own, ["answers of", "by"])
    compared = compared.rename(columns={"answers of": "model"})
    shown = compared[compared["by"] != "majority"].replace("majority, truth known", "majority")
    kinds = list(dict.fromkeys(shown["by"]))
    wide = shown.pivot(index="model", columns="by").reindex(substitute.index)
    wide.index = [textwrap.fill(model.removeprefix("atlas-"), 16) for model in wide.index]
    figure, axes = subplots(4.2, 4.8, 3, sharex=True)
    for axis, score in zip(axes[:, 0], SCORES, strict=True):
        grouped_bars(axis, *(wide[f"{score}{end}"][kinds] for end in ("", " low", " high")))
        axis.set(ylabel=score, ylim=(0, 1.02))
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=2)
    changes = measures.judge_differences(predicted, substitute).set_index("case")
    by = {key: changes[changes["difference"] == key] for key in ("logits", "encoder")}
    claims = check("grapheval/figure4", **by | {"encoder": measures.magnitude(by["encoder"])})
    return Artifact("grapheval/figure4", compared, claims, figure)


def table3(predicted: pd.DataFrame, substitute: pd.Series) -> Artifact:
    """Judges on states of one model (rows) for the answers of another (columns), as a matrix.
    Arguments as for ``figure4``."""
    judged = predicted[predicted["by"] == "judge, instruction"]
    means = measures.held_out_quality(judged, ["states of", "answers of"])
    wide = means.pivot(index="states of", columns="answers of", values="recall")
    wide = wide.loc[substitute.index, substitute.index]
    short = lambda model: model.removeprefix("atlas-")
    figure, axes = subplots(3.4, 0.9 + 0.45 * len(wide))
    heat(axes[0, 0], wide.rename(index=short, columns=short), low=0, high=1, colours="Blues")
    axes[0, 0].set(xlabel="answers of", ylabel="states of")
    changes = measures.judge_differences(predicted, substitute).set_index("case")
    by = {key: changes[changes["difference"] == key] for key in ("substitute", "majority")}
    by["substitute"] = measures.magnitude(by["substitute"])
    return Artifact("grapheval/table3", means, check("grapheval/table3", **by), figure)


def table4(speeds: pd.DataFrame) -> Artifact:
    """Speed of generation and of the judge. ``speeds``: ``speed.measure_speeds``."""
    rate = {method: own.set_index("model") for method, own in speeds.groupby("method", sort=False)}
    judge, found = rate["judge, substitute"], {}
    for key, method in {"batches": TOGETHER, "alone": ALONE}.items():
        low, high = (f"facts/s {end}" for end in ("low", "high"))
        ends = {"low": judge[low] / rate[method][high], "high": judge[high] / rate[method][low]}
        found[key] = pd.DataFrame({"value": judge["facts/s"] / rate[method]["facts/s"]} | ends)
    ends = ("", " low", " high")
    columns = {
        f"{m}{e}": {k: t.loc[m, f"facts/s{e}"] for k, t in rate.items()}
        for m in judge.index
        for e in ends
    }
    shown = pd.DataFrame(columns).rename_axis("method").reset_index()
    shown.insert(1, "n", [int(rate[method]["n"].max()) for method in shown["method"]])
    return Artifact("grapheval/table4", speeds, check("grapheval/table4", **found), shown=shown)
