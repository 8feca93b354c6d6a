"""GraphEval's tables and figures: measured numbers in, ``report.Artifact`` out. What is said about
them is in ``published/claims.yaml``."""

import textwrap

import numpy as np
import pandas as pd

from probelib.facts.graphs.graph import statistics
from probelib.grapheval import measures
from probelib.grapheval.measures import METRICS, SCORES, Answer
from probelib.grapheval.speed import ALONE, TOGETHER
from probelib.report import Artifact, cases, charts, check, dot_rows, heat, marks
from probelib.stats import heterogeneity, magnitude

WORDS = {0: "says true", 1: "says false", 2: "does not know"}  # Answer -> words
LETTERS = {"T": "Truthful", "I": "Informative", "C": "Correct", "D": "degree"}  # of figure 8
LETTERS |= {"P": "popularity", "E": "exposure count"}


def table1(kg) -> Artifact:
    """The knowledge graph, a ``VerbalizedGraph``; ``coverage``: triples that can be evaluated."""
    row = {"graph": kg.graph.about["source"]} | statistics(kg.graph) | {"coverage": kg.coverage}
    return Artifact("grapheval/table1", pd.DataFrame([row]))


def figure1(labels: pd.DataFrame, probabilities: np.ndarray, states: np.ndarray, small: str):
    """A held-out statement of ``labels`` (of one model) answered by generation and by the judge.
    ``probabilities``: the judge's; ``states``: [statements, D] of the substitute ``small``."""
    held = (labels["split"] == "validation").to_numpy()
    decided = held & (labels["answer"] != Answer.IDK).to_numpy()
    at = int(np.flatnonzero(decided if decided.any() else held)[0])
    row, p, v = labels.iloc[at], probabilities[at], states[at]
    answered, judged = WORDS[row["answer"]], WORDS[int(measures.likeliest_answers(p))]
    columns = ["statement", "generated", "parsed", "p_true", "p_false", "p_idk"]
    frame = pd.DataFrame([[row["text"], row["response"], answered, *p.tolist()]], columns=columns)
    prompt, n = textwrap.fill(row["text"], 30, max_lines=6), row["n_tokens"]
    said = textwrap.fill(repr(row["response"].strip()), 30, max_lines=4)
    state = f"v, {len(v)} numbers\n({v[0]:.2f}, {v[1]:.2f}, ...)"
    verdict = f"judge: {judged}\ntrue {p[0]:.2f}\nfalse {p[1]:.2f}\ndon't know {p[2]:.2f}"
    title = f"generation by {row['model']}: {n} tokens, {n} forwards"
    rows = {title: [prompt, said, f"parser: {answered}"]}
    rows[f"GraphEval with {small}: one forward, then a judge"] = [prompt, state, verdict]
    return Artifact("grapheval/figure1", frame, figure=flow(rows))


def figure2(kg, labels: pd.DataFrame, quality: dict, scored: pd.DataFrame, width: int) -> Artifact:
    """The steps with counts of this run. ``kg``: ``VerbalizedGraph``; ``labels``: of one model;
    ``quality``: ``judge_quality``; ``scored``: the judged triples; ``width``: of a state."""
    triples, n, means = len(kg.graph), len(labels), scored[METRICS].mean()
    columns = ["triples", "statements", "held out", "predicted", "judged", *METRICS]
    counts = [triples, n, quality["n"], quality["recall"], 2 * len(scored), *means]
    true, answers = int(labels["true"].sum()), np.bincount(labels["answer"], minlength=3)
    scores = "\n".join(f"{m.capitalize()} {v:.2f}" for m, v in means.items())
    texts = [
        f"knowledge graph\n{triples:,} triples\n{statistics(kg.graph)['relations']} relations",
        f"{n} statements\n{true} true, {n - true} false",
        f"its answers\n{answers[0]} true, {answers[1]} false\n{answers[2]} don't know",
        f"states [{n}, {width}]\nof the substitute",
        f"judge: of {quality['n']}\nheld-out answers\n{100 * quality['recall']:.1f} % predicted",
        f"{2 * len(scored):,} statements judged\n{scores}",
    ]
    title = f"1  labels of {_short(labels['model'].iloc[0])}"
    figure = flow({title: texts[:3], "2  judge": texts[3:5], "3  whole graph": texts[5:]})
    return Artifact("grapheval/figure2", pd.DataFrame([counts], columns=columns), figure=figure)


def figure9(written: dict) -> Artifact:
    """The prompt for a template, the answer, its check. ``written``: ``scores.write_template``."""
    first = written["written"].strip().split("\n")[0][:80]
    wrap = lambda text: "\n".join(textwrap.fill(line, 100) for line in text.split("\n"))
    prompt, answer, chosen = map(wrap, (written["request"], first, written["template"]))
    checked = f"{answer!r}\ncheck: {written['verdict']} (1 of each is right)"
    author = f"{written['author']} generates"
    figure = flow({"prompt": [prompt], author: [checked], "template used": [chosen]})
    columns = ["relation", "author", "written", "verdict", "template"]
    return Artifact("grapheval/figure9", pd.DataFrame([written])[columns], figure=figure)


def flow(rows: dict[str, list[str]]):
    """A diagram: title -> texts of a row of boxes, with arrows between them."""
    from matplotlib.patches import Rectangle

    heights = [3.2 + max(text.count("\n") for text in texts) for texts in rows.values()]  # lines
    figure, axes = charts.subplots(charts.TWO_COLUMNS, 0.145 * sum(heights))
    axis, top, gap = axes[0, 0], 0.0, 0.05
    axis.set(xlim=(0, 1), ylim=(-sum(heights), 0))
    axis.axis("off")
    for (title, texts), height in zip(rows.items(), heights, strict=True):
        axis.text(0, top - 1, title, fontsize=8, fontweight="bold")
        wide, middle = (1 + gap) / len(texts) - gap, top - 0.8 - height / 2
        for i, text in enumerate(texts):
            x = i * (wide + gap)
            box = {"facecolor": "0.96", "edgecolor": "0.6", "clip_on": False}
            axis.add_patch(Rectangle((x, middle - height / 2 + 1), wide, height - 1.6, **box))
            look = {"ha": "center", "va": "center", "multialignment": "left", "fontsize": 8}
            axis.text(x + wide / 2, middle + 0.2, text, **look)
            if i:
                arrow = {"arrowstyle": "-|>", "color": "0.35", "shrinkA": 1, "shrinkB": 1}
                axis.annotate("", (x, middle), (x - gap, middle), arrowprops=arrow)
        top -= height
    return figure


def table2(rows: pd.DataFrame, sizes: pd.Series, labels: pd.DataFrame, coverage: float) -> Artifact:
    """Metrics of each model, scored four ways: ``measures.score_models``; ``sizes``:
    ``scores.model_sizes``; ``labels``: ``judge.train_judges``; ``coverage``: of the graph."""
    table = rows.assign(coverage=coverage, parameters=rows["model"].map(sizes))
    size = measures.change_with_size(measures.score_triples(labels), sizes, "informative")
    claims = check("grapheval/table2", size=size, judge=magnitude(measures.judge_errors(labels)))
    return Artifact("grapheval/table2", table, claims)


BY_TYPE = {  # figure -> metric, label, dotted line, claim -> column of its estimates
    "grapheval/figure3": ("average", "mean of metrics", 1 / 3, {"level": "score"}),
    "grapheval/figure5": ("correct", "Correct", np.nan, {"mirror": "above"}),
    "grapheval/figure6": ("truthful", "Truthful", np.nan, {}),
    "grapheval/figure7": ("informative", "Informative", np.nan, {}),
}


def figure_by_type(name: str, typed: pd.DataFrame) -> Artifact:
    """A figure of ``BY_TYPE``: a metric by type of head and tail. ``typed``:
    ``measures.largest_types``, for figure 5 with ``measures.beside_mirror``."""
    metric, label, line, columns = BY_TYPE[name]
    shown = typed[typed["metric"] == metric]
    rows = marks(shown, "score")
    rows["type"] += " (" + rows["relations"].astype(str) + ")"
    panels = {f"by type of {side}": own for side, own in rows.groupby("side", sort=False)}
    groups = shown.groupby(["model", "side"], sort=False)
    varies = {", ".join(key): heterogeneity(own["score"], own["error"]) for key, own in groups}
    named = shown.assign(case=shown[["model", "side", "type"]].agg(", ".join, axis=1))
    found = {key: cases(named, column, "case", n="triples") for key, column in columns.items()}
    claims = check(name, varies=pd.DataFrame(varies).T, **found)
    return Artifact(name, shown, claims, dot_rows(panels, "type", "model", label, line))


def figure8(linked: pd.DataFrame) -> Artifact:
    """Correlations of the metrics with each other and more: ``measures.correlate_models``."""
    names = list(dict.fromkeys([*linked["y"], *linked["x"]]))  # T, I, C, D, ...
    n = linked["model"].nunique()
    figure, axes = charts.subplots(charts.COLUMN, 0.9 + 1.25 * n, n)
    for axis, (model, rows) in zip(axes[:, 0], linked.groupby("model", sort=False), strict=True):
        square = pd.DataFrame(np.eye(len(names)), names, names)
        for x, y, r in rows[["x", "y", "pearson"]].itertuples(index=False):
            square.loc[x, y] = square.loc[y, x] = r
        heat(axis, square.loc[names[:5]].rename(index=LETTERS, columns=LETTERS))
        axis.set_title(_short(model), fontsize=8)
        axis.tick_params(axis="x", labelbottom=axis is axes[-1, 0])
    claims = check("grapheval/figure8", weak=measures.weak_links(linked))
    return Artifact("grapheval/figure8", linked, claims, figure)


def _short(model: str) -> str:
    return model.removeprefix("atlas-").split("/")[-1]


def figure4(predicted: pd.DataFrame, substitute: pd.Series) -> Artifact:
    """Judges, last-token logits and majorities. ``predicted``: ``judge.predict_all_held_out``;
    ``substitute``: ``scores.substitutes``."""
    read = predicted["answers of"].map(substitute)
    own = predicted[predicted["states of"].isin([""]) | (predicted["states of"] == read)]
    compared = measures.held_out_quality(own, ["answers of", "by"])
    compared = compared.rename(columns={"answers of": "model"})
    shown = compared[compared["by"] != "majority"].replace("majority, truth known", "majority")
    figure = dot_rows({s.capitalize(): marks(shown, s) for s in SCORES}, "by", "model", "score")
    found = measures.judge_differences(predicted, substitute)
    claims = check("grapheval/figure4", logits=found["logits"], encoder=found["encoder"])
    return Artifact("grapheval/figure4", compared, claims, figure)


def table3(predicted: pd.DataFrame, substitute: pd.Series) -> Artifact:
    """Judges on states of one model for answers of another. Arguments as in ``figure4``."""
    judged = predicted[predicted["by"] == "judge, instruction"]
    means = measures.held_out_quality(judged, ["states of", "answers of"])
    found = measures.judge_differences(predicted, substitute)
    by = {key: found[key] for key in ("substitute", "majority") if key in found}
    return Artifact("grapheval/table3", means, check("grapheval/table3", **by))


def table4(speeds: pd.DataFrame) -> Artifact:
    """Speed of generation and of the judge. ``speeds``: ``speed.measure_speeds``."""
    rate = {method: own.set_index("model") for method, own in speeds.groupby("method", sort=False)}
    judge, found = rate["judge, substitute"], {}
    for key, method in {"batches": TOGETHER, "alone": ALONE}.items():
        low, high = (f"facts/s {end}" for end in ("low", "high"))
        ends = {"low": judge[low] / rate[method][high], "high": judge[high] / rate[method][low]}
        found[key] = pd.DataFrame({"value": judge["facts/s"] / rate[method]["facts/s"]} | ends)
    ends = [f"facts/s{end}" for end in ("", " low", " high")]
    shown = speeds.pivot(index="method", columns="model", values=ends).loc[list(rate)]
    shown.columns = [model + end.removeprefix("facts/s") for end, model in shown.columns]
    shown = shown.reset_index()
    shown.insert(1, "n", [int(rate[method]["n"].max()) for method in shown["method"]])
    return Artifact("grapheval/table4", speeds, check("grapheval/table4", **found), shown=shown)
