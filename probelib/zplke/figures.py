"""ZP-LKE's figures: measured numbers in, ``report.Artifact`` out."""

import textwrap

import numpy as np
import pandas as pd

from probelib.facts import Facts
from probelib.published import table as published
from probelib.report import Artifact, family, grouped_bars, model_style, span, style_at
from probelib.stats import kendall, wilson
from probelib.zplke import measures
from probelib.zplke.prompts import CONTEXTS, METHODS
from probelib.zplke.tables import about, names

INTERVAL = ["accuracy", "low", "high"]

# ---- section 3: how many examples, and which?


def figure1(table1: pd.DataFrame, fact: Facts, model: str) -> Artifact:
    """How a fact is inferred: two inputs built from subject and relation, the model's next tokens, and whether they are right.

    table1   the frame of ``tables.table1``;   fact: its fact
    """
    first = table1.groupby("estimator").head(1).iloc[0], table1[table1["examples"] == "4 correct"].iloc[0]
    rows = [(row["estimator"], row["input"], row["output"].strip(), bool(row["right"])) for row in first]
    frame = pd.DataFrame(rows, columns=["estimator", "input", "output", "right"])
    subject, obj = (fact.label(fact.facts[role])[0] for role in ("subject", "object"))
    relation = fact.relations["name"].iloc[0]
    caption = (
        f"How a fact is inferred: from the subject ({subject}) and the relation ({relation}) an input is built; {model} "
        "generates the "
        f"next tokens, which are compared with the object ({obj}). Both inputs are rows of table 1."
    )
    alt = "Two rows of boxes with arrows between them: input, model, next tokens, and whether these are right."
    figure = pipeline(f"{subject}\n{relation}", rows, model, obj)
    return Artifact("zplke/figure1", frame, caption, "", figure, alt)


def figure2(inputs: dict[str, str]) -> Artifact:
    """The inputs of three estimators (``prompts.three_inputs``)."""
    frame = pd.DataFrame(inputs.items(), columns=["estimator", "input"])
    figure = text_boxes(list(inputs.items()))
    caption = (
        "Inputs of the zero-shot, few-shot and zero-prompt estimators for one fact; the object follows. The paper uses 50 pairs, "
        "of which four are shown."
    )
    alt = "Three text boxes: a template, solved templates before a template, and a list of pairs."
    return Artifact("zplke/figure2", frame, caption, "", figure, alt)


def figure3(measured: pd.DataFrame) -> Artifact:
    """Lines of accuracy over the number of examples, one per model (``measures.curves``)."""
    import matplotlib.pyplot as plt

    frame, level = measures.curves(measured), measures.chance(measured)
    most = int(frame["shots"].max())
    figure, axis = plt.subplots(figsize=(6.3, 3.4))
    for place, model in enumerate(measured["model"].unique()):
        draw_curve(axis, frame[frame["model"] == model], model, place)
    axis.axhline(level, color="0.4", linewidth=0.8)
    axis.text(most, level, "chance", ha="right", va="bottom", fontsize=7, color="0.4")
    axis.set(xlabel="examples", ylabel="accuracy", ylim=(0, None))
    axis.legend(loc="center left", bbox_to_anchor=(1, 0.5))
    caption = (
        f"Multiple-choice accuracy against the number of examples; {about(measured)}. Band: one standard deviation over draws; "
        f"dashed: fewest examples for 95 % of the accuracy with {most}. Chance is {level:.3f}."
    )
    alt = "One line per model over the number of examples, with a band, and dashed verticals."
    return Artifact("zplke/figure3", frame, caption, finding3(frame, measured["fact"].nunique()), figure, alt)


def draw_curve(axis, rows: pd.DataFrame, model: str, place: int) -> None:
    """A model's line, its band and the dashed vertical at n95; the dashes of the model at an odd ``place`` fill the gaps of the
    others', so that two in one place are seen."""
    look, enough = model_style(model), rows["n95"].iloc[0]
    settles = f" (95 % at {enough:.0f})" if np.isfinite(enough) else ""
    axis.plot(rows["shots"], rows["mean"], label=model + settles, **look)
    low, high = rows["mean"] - rows["std"], rows["mean"] + rows["std"]
    axis.fill_between(rows["shots"], low, high, color=look["color"], alpha=0.15, linewidth=0)
    reached = rows[rows["shots"] == enough]
    axis.vlines(
        reached["shots"], 0, reached["mean"], color=look["color"], linestyle=(3 * (place % 2), (3, 3)), linewidth=0.9
    )


def finding3(frame: pd.DataFrame, n: int) -> str:
    """The best model with most and fewest examples, and whether better models need fewer (``n`` facts)."""
    last = frame[frame["shots"] == frame["shots"].max()].set_index("model")
    best = last["mean"].idxmax()
    start = frame[(frame["model"] == best) & (frame["shots"] == frame["shots"].min())].iloc[0]
    right, most = last.loc[best, "mean"], frame["shots"].max()
    sentence = (
        f"With {most} examples **{best}** chooses the right object for {right:.2f} {span(*wilson(round(right * n), n))} of the "
        f"facts, with {start['shots']} for {start['mean']:.2f}."
    )
    tau = kendall(last["mean"], last["n95"])["tau"] if len(last) > 2 else np.nan
    if not np.isfinite(tau):
        return sentence
    return f"{sentence} Rank correlation of accuracy and examples needed (n95): {tau:.2f} over {len(last)} models."


def figure4(positions: pd.DataFrame, star: int) -> Artifact:
    """Probability of every object by position, best model (``measures.measure_positions``); ``star``: a marked position."""
    return sequence_figure("zplke/figure4", 0, ["correct", *CONTEXTS], positions, star)


def figure11(positions: pd.DataFrame, star: int) -> Artifact:
    """As figure 4 for the second model; the paper prints the incorrect examples first."""
    return sequence_figure("zplke/figure11", 1, INCORRECT_FIRST, positions, star)


def figure12(positions: pd.DataFrame, star: int) -> Artifact:
    """As figure 11 for the third model."""
    return sequence_figure("zplke/figure12", 2, INCORRECT_FIRST, positions, star)


def figure13(positions: pd.DataFrame, star: int) -> Artifact:
    """As figure 11 for the fourth model."""
    return sequence_figure("zplke/figure13", 3, INCORRECT_FIRST, positions, star)


INCORRECT_FIRST = ["correct", *list(CONTEXTS)[2:], *list(CONTEXTS)[:2]]


def sequence_figure(name: str, place: int, contexts: list[str], positions: pd.DataFrame, star: int) -> Artifact:
    """The panels of the model at ``place``; with fewer models, of a further draw of the pairs."""
    models, seeds = positions["model"].unique(), positions["seed"].unique()
    model, draw = models[place % len(models)], place // len(models)
    own = positions[positions["model"] == model]
    frame = own[own["seed"] == seeds[draw]]
    mean = frame["probability"][frame["context"] == "correct"].mean()
    n, replaced = frame["position"].max(), (frame["role"] == "replaced").sum() // len(CONTEXTS)
    again = f" Draw {draw + 1} of the pairs: there are fewer than four models." if draw else ""
    caption = (
        f"{model}: probability of each object in a sequence of {n} pairs, {replaced} of them replaced. Dashed: mean of the "
        f"correct sequence ({mean:.2f}); star: position {star}.{again}"
    )
    figure, alt = (
        position_panels(frame, contexts, mean, star, model),
        "Five panels of points over the position in the sequence.",
    )
    finding = "" if draw else finding_harm(measures.harm(own.drop(columns="model")))
    return Artifact(name, frame, caption, finding, figure, alt)


def finding_harm(harmed: pd.DataFrame) -> str:
    """How replaced examples change the untouched pairs of one model (``measures.harm``)."""
    rows = harmed[(harmed["role"] != "replaced") & harmed["low"].notna()]
    sentences = []
    for kind in ("Unknown", "Incorrect"):
        own = rows[rows["context"].str.startswith(kind.lower())]
        if len(own):
            falls = (own["high"] < 0).sum()
            sentences.append(
                f"{kind} examples change the mean probability of untouched pairs by {own['change'].min():+.3f} to "
                f"{own['change'].max():+.3f} (significant falls: {falls} of {len(own)})."
            )
    return " ".join(sentences)


def figure10(measured: pd.DataFrame) -> Artifact:
    """Acc@K and the share of inputs kept, one line per model (``measures.accuracy_at``)."""
    import matplotlib.pyplot as plt

    rows = measures.longest(measured)
    groups, levels = rows.groupby("model", sort=False), np.arange(0, 1, 0.05)
    frame = pd.concat([measures.accuracy_at(own, levels).assign(model=model) for model, own in groups])
    figure, (left, right) = plt.subplots(1, 2, figsize=(6.3, 2.8), sharex=True)
    for model in rows["model"].unique():
        own, look = frame[frame["model"] == model], model_style(model) | {"markersize": 3}
        left.plot(own["K"], own["accuracy"], label=model, **look)
        left.fill_between(own["K"], own["low"], own["high"], color=look["color"], alpha=0.1, linewidth=0)
        right.plot(own["K"], own["share"], **look)
    left.set(xlabel="confidence above K", ylabel="accuracy of the facts kept", ylim=(0, 1.02))
    right.set(xlabel="confidence above K", ylabel="share of the inputs kept", ylim=(0, 1.02))
    figure.legend(*left.get_legend_handles_labels(), loc="outside upper center", ncols=2)
    caption = (
        f"Accuracy@K ({about(rows)}), and the share of the inputs with a confidence above K. Band: 95 % Wilson interval by facts "
        "(the draws of a fact are no new facts); a line ends where no fact is left."
    )
    alt = "Accuracy and share of kept facts over the confidence threshold, one line per model."
    return Artifact("zplke/figure10", frame, caption, finding10(frame), figure, alt)


def finding10(frame: pd.DataFrame) -> str:
    """What a threshold of one half keeps of the most accurate model."""
    best = frame[frame["K"] == 0].sort_values("accuracy").iloc[-1]
    kept = frame[(frame["model"] == best["model"]) & (frame["K"].round(2) == 0.5)].iloc[0]
    if not kept["kept"]:
        return f"{best['model']}: none of its choices has a confidence above 0.5."
    return (
        f"{best['model']}: accuracy {best['accuracy']:.2f}; among the {100 * kept['share']:.0f} % of inputs with a confidence "
        f"above 0.5 ({kept['kept']:.0f} facts) {kept['accuracy']:.2f} {span(kept['low'], kept['high'])}."
    )


# ---- section 4.1: a list of pairs, or a prompt?


def figure5(cells: pd.DataFrame, measured: pd.DataFrame, new_tokens: int) -> Artifact:
    """Bars of all methods in the response test, strict and lenient, and in the multiple-choice test.

    cells      ``measures.accuracy_by_method``;   measured: ``measures.measure``;   new_tokens: of the response test
    """
    import matplotlib.pyplot as plt

    frame, order = measures.mean_by_method(cells), methods_of(cells)
    models = measured["model"].unique()
    figure, axes = plt.subplots(3, 1, figsize=(6.3, 6.2), sharex=True)
    for axis, test, letter in zip(axes, cells["test"].unique(), "aab", strict=True):
        rows = frame[frame["test"] == test]
        wide = rows.pivot(index="model", columns="method").reindex(index=models)
        grouped_bars(axis, *(wide[value][order] for value in INTERVAL))
        top = max(0.05, 1.05 * rows[["accuracy", "high"]].max(axis=None))  # one relation has no interval
        axis.set(ylabel="accuracy", title=f"({letter}) {test}", ylim=(0, top))
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=5)
    numbers = cells.groupby("method")["relation"].nunique()[order].items()
    caption = (
        f"ZP-LKE against prompts, mean over prompts, then over relations ({', '.join(f'{m}: {n}' for m, n in numbers)}; "
        f"{about(measured)}): (a) response test, {new_tokens} tokens, strict (begins with the object) and lenient (contains it "
        "anywhere), few-shot HGP with its first prompt; (b) multiple choice. Whiskers: 95 % bootstrap interval over relations. "
        "The CSV also has the means without manufacturer (P176)."
    )
    alt = "Grouped bars of accuracy for each model: ZP-LKE, few-shot HGP, HGP, MMP and plain sentences."
    return Artifact("zplke/figure5", frame, caption, finding5(cells, measured), figure, alt)


def finding5(cells: pd.DataFrame, measured: pd.DataFrame) -> str:
    """ZP-LKE against HGP on the relations that all methods have, in two steps, and in both response tests."""
    relations = measures.relations_of_all(cells)
    mean = cells[cells["relation"].isin(relations)].groupby(["test", "model", "method"])["accuracy"].mean()
    mean = mean.groupby(["test", "method"]).mean().unstack()
    choice, strict, lenient = (mean.loc[test] for test in ("multiple choice", "response, strict", "response, lenient"))
    paper, step = published("zplke/claims").set_index("claim")["value"], measures.steps(measured, relations)
    return (
        f"Multiple choice on {len(relations)} relations: ZP-LKE {choice['ZP-LKE']:.2f}, HGP {choice['HGP']:.2f} (the paper: "
        f"{paper['mc_acc_ZP']} and {paper['mc_acc_HGP']}); with one draw, examples before the prompt change HGP by "
        f"{step['examples']:+.2f}, and leaving out the prompt changes that by {step['words']:+.2f}. Response test, lenient and "
        f"strict: ZP-LKE {lenient['ZP-LKE']:.2f} and {strict['ZP-LKE']:.2f}, HGP {lenient['HGP']:.2f} and {strict['HGP']:.2f}."
    )


def methods_of(cells: pd.DataFrame) -> list[str]:
    """The methods there are, in the order of ``METHODS``."""
    return [method for method in METHODS.values() if method in set(cells["method"])]


def figure14(cells: pd.DataFrame, facts: Facts) -> Artifact:
    """Response accuracy (lenient) of all methods, one panel per relation."""
    note = " (few-shot HGP: the first; the CSV also has the strict test)"
    return per_relation("zplke/figure14", "response, lenient", cells, facts, note)


def figure15(cells: pd.DataFrame, facts: Facts) -> Artifact:
    """Multiple-choice accuracy of all methods, one panel per relation."""
    return per_relation("zplke/figure15", "multiple choice", cells, facts)


def per_relation(name: str, test: str, cells: pd.DataFrame, facts: Facts, note: str = "") -> Artifact:
    """One panel per relation for a test of ``measures.accuracy_by_method``; ``note``: on the mean over prompts."""
    frame = cells[cells["test"].str.startswith(test.split(",")[0])]
    frame = frame.assign(relation=frame["relation"].map(names(facts)))
    counts = facts.facts["relation"].map(names(facts)).value_counts()
    ends = [wilson(round(a * counts[r]), counts[r]) for a, r in zip(frame["accuracy"], frame["relation"], strict=True)]
    frame = frame.assign(low=[low for low, _ in ends], high=[high for _, high in ends])
    rows = frame[frame["test"] == test]
    figure = bar_panels(rows, "relation", cells.attrs["models"], methods_of(cells))
    caption = (
        f"{test.capitalize()}, per relation, up to {counts.max()} facts each; mean over prompts{note}; whiskers: 95 % Wilson "
        "interval over facts. A dash: no such prompt for the relation; no bar: 0."
    )
    alt = "One panel per relation with grouped bars for each model and method."
    return Artifact(name, frame, caption, finding_per_relation(rows), figure, alt)


def finding_per_relation(rows: pd.DataFrame) -> str:
    """In how many relations ZP-LKE is ahead."""
    wide = rows.groupby(["relation", "method"])["accuracy"].mean().unstack()
    hgp, few_shot = ((wide["ZP-LKE"] > wide[method]).sum() for method in ("HGP", "few-shot HGP"))
    return f"Mean over models: ZP-LKE is ahead of HGP in {hgp} of {len(wide)} relations, and of few-shot HGP in {few_shot}."


def figure6(measured: pd.DataFrame, facts: Facts, note: str = "") -> Artifact:
    """Bars of one relation's accuracy, one per separator. ``note``: which relation replaces the paper's."""
    import matplotlib.pyplot as plt

    frame, tested = measures.by_separator(measured), measures.against_blank(measured)
    title, models = names(facts)[measured["relation"].iloc[0]], measured["model"].unique()
    figure, axis = plt.subplots(figsize=(6.3, 3))
    wide, between = frame.pivot(index="model", columns="between").reindex(index=models), frame["between"].unique()
    grouped_bars(axis, *(wide[value][between] for value in INTERVAL))
    axis.set(ylabel="accuracy", ylim=(0, 1.02), title=title)
    figure.legend(*axis.get_legend_handles_labels(), loc="outside lower center", ncols=3)
    caption = (
        f"Multiple-choice accuracy on {title} with different words between subject and object of the same examples "
        f"({about(measured)}); whiskers: 95 % Wilson interval. {note}"
    )
    alt = "Grouped bars for each model, one bar for each separator."
    return Artifact("zplke/figure6", frame, caption, finding_separators(tested), figure, alt)


def finding_separators(tested: pd.DataFrame) -> str:
    """How often words differ significantly from the blank (``measures.against_blank``)."""
    clear = tested[tested["p (Holm)"] < 0.05]
    help_, harm = (clear["gained"] > clear["lost"]).sum(), (clear["gained"] < clear["lost"]).sum()
    sentence = (
        f"Against the blank (McNemar, Holm's correction for {len(tested)} tests) words help in {help_} cases and harm in {harm}; "
        f"the other {len(tested) - len(clear)} differences are not significant."
    )
    if clear.empty:
        return sentence
    most = clear.loc[(clear["gained"] - clear["lost"]).abs().idxmax()]
    return f"{sentence} The largest: *{most['words']}* in {most['model']} ({most['gained'] - most['lost']:+d} facts)."


# ---- section 4.2.1: different families


def figure7(matrix: pd.DataFrame, facts: Facts) -> Artifact:
    """Heat map of accuracies, models x relations (``measures.accuracy_matrix``)."""
    import matplotlib.pyplot as plt
    import seaborn

    by_mean = matrix[matrix.mean().sort_values(ascending=False).index]
    short = {relation: textwrap.shorten(name, 28, placeholder=" ...") for relation, name in names(facts).items()}
    figure, axis = plt.subplots(figsize=(6.3, 1.9 + 0.22 * len(matrix)))
    look = {"cmap": "viridis", "vmin": 0, "vmax": 1, "cbar_kws": {"label": "accuracy"}}
    numbers = {"annot": 100 * by_mean, "fmt": ".0f", "annot_kws": {"fontsize": 6}}
    seaborn.heatmap(by_mean.rename(columns=short), ax=axis, **look, **numbers)
    families = [family(model) for model in matrix.index]
    for i in range(1, len(families)):
        if families[i] != families[i - 1]:
            axis.axhline(i, color="white", linewidth=2)
    axis.set(xlabel="", ylabel="")
    axis.tick_params(labelsize=7, left=False, bottom=False)
    caption = (
        f"Multiple-choice accuracy (percent) of {len(matrix)} base models on {matrix.shape[1]} relations, {len(facts.facts)} "
        "facts in all; best relations left. A white line separates families."
    )
    frame, means = matrix.rename_axis("model").reset_index(), matrix.mean()
    best, worst = (names(facts)[relation] for relation in (means.idxmax(), means.idxmin()))
    finding = f"Mean accuracy per relation goes from {means.min():.2f} ({worst}) to {means.max():.2f} ({best})."
    alt = "Heat map of accuracies, models by relations."
    return Artifact("zplke/figure7", frame, caption, finding, figure, alt)


def figure8(matrix: pd.DataFrame) -> Artifact:
    """Heat map of the mean correlation between families."""
    import matplotlib.pyplot as plt
    import seaborn

    of = {model: family(model) for model in matrix.index}
    families = measures.family_correlations(measures.correlations(matrix), of)
    figure, axis = plt.subplots(figsize=(1.8 + 0.8 * len(families), 1.2 + 0.6 * len(families)))
    seaborn.heatmap(families, ax=axis, annot=True, fmt=".2f", **CORRELATION)
    axis.set(xlabel="", ylabel="")
    caption = (
        f"Mean Pearson correlation of accuracies over {matrix.shape[1]} relations between the models of two families; an empty "
        "field: no pair of different models."
    )
    finding = finding8(families, measures.between_families(matrix, family))
    alt = "Heat map of correlations between families."
    return Artifact("zplke/figure8", families.reset_index(), caption, finding, figure, alt)


CORRELATION = {"cmap": "RdBu_r", "vmin": -1, "vmax": 1, "center": 0, "cbar_kws": {"label": "Pearson r"}}


def finding8(families: pd.DataFrame, across: dict[str, float]) -> str:
    """Mean r between families (``measures.between_families``), beside the paper's."""
    if not across["n"]:
        return "There is one family only: nothing to compare."
    between = families.where(~np.eye(len(families), dtype=bool)).stack()
    return (
        f"Between two families the mean r is {between.min():.2f} to {between.max():.2f} (the paper: more than 0.6); over all "
        f"{across['n']} pairs of models of different families {across['r']:.2f} {span(across['low'], across['high'])}."
    )


def figure16(matrix: pd.DataFrame) -> Artifact:
    """Heat map of the correlation of every pair of models."""
    import matplotlib.pyplot as plt
    import seaborn

    pairs = measures.correlations(matrix)
    figure, axis = plt.subplots(figsize=(6.3, 1.4 + 0.32 * len(pairs)))
    seaborn.heatmap(pairs, ax=axis, annot=True, fmt=".2f", annot_kws={"fontsize": 6.5}, **CORRELATION)
    axis.set(xlabel="", ylabel="")
    axis.tick_params(axis="x", rotation=45)
    plt.setp(axis.get_xticklabels(), ha="right")
    caption = f"Pearson correlation of accuracies over {matrix.shape[1]} relations for every pair of base models."
    frame = pairs.rename_axis("model").reset_index()
    alt = "Heat map of correlations between all pairs of models."
    return Artifact("zplke/figure16", frame, caption, "", figure, alt)


# ---- section 4.2.2: within one family


def figure9(measured: pd.DataFrame, base_of: dict[str, str]) -> Artifact:
    """Bars of base models and their fine-tuned versions."""
    import matplotlib.pyplot as plt

    frame = tuned_beside_base(measured, base_of)
    figure, axis = plt.subplots(figsize=(6.3, 2.8))
    if frame.empty:
        text = "no fine-tuned model with its base among the models"
        axis.text(0.5, 0.5, text, ha="center", transform=axis.transAxes)
    else:
        kinds, rows = ["base", "fine-tuned"], frame.set_index("tuned")
        parts = (rows[[f"{kind} {value}" for kind in kinds]].set_axis(kinds, axis=1) for value in INTERVAL)
        grouped_bars(axis, *parts)
        axis.legend()
    axis.set(ylabel="accuracy")
    caption = (
        "Multiple-choice accuracy of base models and their fine-tuned versions, mean over relations; whiskers: 95 % bootstrap "
        "interval over relations."
    )
    return Artifact("zplke/figure9", frame, caption, "", figure, "Pairs of bars, base and fine-tuned.")


def tuned_beside_base(measured: pd.DataFrame, base_of: dict[str, str]) -> pd.DataFrame:
    """``base``, ``tuned`` and the accuracy of both with its interval, one row per pair."""
    groups = measures.accuracies(measured).groupby("model", sort=False)
    score, rows = {model: measures.overall_accuracy(own) for model, own in groups}, []
    for tuned, base in base_of.items():
        if base:
            both = {"base": score[base], "fine-tuned": score[tuned]}
            numbers = {f"{kind} {value}": own[value] for kind, own in both.items() for value in INTERVAL}
            rows.append({"base": base, "tuned": tuned} | numbers)
    return pd.DataFrame(rows, columns=None if rows else ["base", "tuned"])


# ---- section 4.2: is 1 in 100 hard?


def options(difficulty: pd.DataFrame, model: str) -> Artifact:
    """Accuracy against the number of options, for three kinds of wrong options (``measures.difficulty``)."""
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(4.6, 3))
    for i, (hard, rows) in enumerate(difficulty.groupby("hardness")):
        look = style_at(i)
        axis.plot(rows["options"], rows["accuracy"], label=f"hardness {hard:g}", **look)
        axis.fill_between(rows["options"], rows["low"], rows["high"], color=look["color"], alpha=0.12, linewidth=0)
    rows = difficulty[difficulty["hardness"] == 0]
    axis.plot(rows["options"], rows["chance"], color="0.4", linewidth=0.9, label="chance")
    axis.set(xscale="log", xlabel="options", ylabel="accuracy", ylim=(0, 1.02), title=model)
    axis.set_xticks(rows["options"], rows["options"])
    axis.set_xticks([], minor=True)
    axis.legend()
    caption = (
        f"{model}: accuracy against the number of options; the wrong ones are drawn at random (hardness 0), half and half (0.5), "
        "or are the relation's most frequent objects (1). Bands: 95 % Wilson interval."
    )
    most, two = rows.iloc[-1], rows.iloc[0]
    finding = (
        f"{model} knows {most['accuracy']:.2f} of the facts when it chooses among up to {most['options']:.0f} random objects, "
        f"and {two['accuracy']:.2f} when among {two['options']:.0f}: how much a model knows depends on the options, too."
    )
    alt = "Accuracy falling with the number of options, three lines."
    return Artifact("zplke/options", difficulty, caption, finding, figure, alt)


# ---- charts


def bar_panels(frame: pd.DataFrame, by: str, models: list[str], methods: list[str]):
    """A figure with one panel per value of the column ``by``: grouped bars of ``accuracy`` by model and method."""
    import matplotlib.pyplot as plt

    names = list(dict.fromkeys(frame[by]))
    columns = min(3, len(names))
    height = -(-len(names) // columns)
    size = (6.3, 1.2 + 1.35 * height)
    figure, axes = plt.subplots(height, columns, figsize=size, sharex=True, sharey=True, squeeze=False)
    for axis in axes.flat[len(names) :]:
        axis.axis("off")
    for place, (axis, name) in enumerate(zip(axes.flat, names, strict=False)):
        wide = frame[frame[by] == name].pivot(index="model", columns="method").reindex(index=models)
        grouped_bars(axis, *(wide[value].reindex(columns=methods) for value in INTERVAL))
        axis.tick_params(axis="x", labelbottom=place + columns >= len(names))  # no panel below it
        axis.set_title(textwrap.shorten(name, 26, placeholder=" ..."), fontsize=7)
        axis.tick_params(axis="x", rotation=90, labelsize=6)
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=len(methods))
    figure.supylabel("accuracy", fontsize=8)
    return figure


def position_panels(frame: pd.DataFrame, contexts: list[str], mean: float, star: int, model: str):
    """A figure of ``model`` with one panel per context (``measures.by_position``): ``probability`` over ``position``, marked by
    ``role``; a dashed line at ``mean``; a star at the position ``star`` if its pair is not replaced."""
    import matplotlib.pyplot as plt

    looks = {
        "rest": ("#0173b2", "o", "correct"),
        "after": ("#56b4e9", "s", "after a replaced one"),
        "replaced": ("#d55e00", "x", "replaced"),
    }
    figure, axes = plt.subplots(len(contexts), 1, figsize=(6.3, 1.4 * len(contexts)), sharex=True, sharey=True)
    for axis, context, letter in zip(axes, contexts, "abcdefgh", strict=False):
        panel = frame[frame["context"] == context].set_index("position")
        for role, (colour, marker, label) in looks.items():
            rows = panel[panel["role"] == role]
            axis.scatter(rows.index, rows["probability"], s=9, color=colour, marker=marker, label=label, linewidth=0.8)
        axis.axhline(mean, color="0.3", linestyle="--", linewidth=0.8)
        if star in panel.index and panel["role"][star] == "rest":
            look = {"s": 90, "color": "#ece133", "edgecolor": "black", "linewidth": 0.6, "zorder": 3}
            axis.scatter(star, panel["probability"][star], marker="*", **look)
        axis.set(ylim=(-0.04, 1.04), title=f"({letter}) {context}" + (f", {model}" if letter == "a" else ""))
    axes[0].legend(*axes[0].get_legend_handles_labels(), ncols=3, loc="lower right", bbox_to_anchor=(1, 1))
    axes[-1].set(xlabel="position in the sequence")
    figure.supylabel("probability of the object", fontsize=9)
    return figure


def pipeline(fact: str, rows: list[tuple[str, str, str, bool]], model: str, obj: str):
    """A figure with one line of boxes per (estimator, input, output, right): fact -> input -> model -> output -> verdict."""
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(6.3, 1.15 * len(rows) + 0.3))
    axis.set(xlim=(0, 1), ylim=(len(rows), -0.25))
    axis.axis("off")
    centres = {"fact": 0.08, "input": 0.37, "model": 0.63, "next tokens": 0.80, "right?": 0.95}
    for title, x in centres.items():
        axis.text(x, -0.18, title, ha="center", fontsize=8, weight="bold")
    box = {"boxstyle": "round,pad=0.4", "edgecolor": "0.6", "linewidth": 0.6}
    look = {"ha": "center", "va": "center", "fontsize": 6.5}
    middle = len(rows) / 2
    axis.text(
        centres["fact"],
        middle,
        "\n".join(textwrap.fill(line, 16) for line in fact.split("\n")),
        bbox=box | {"facecolor": "0.95"},
        **look,
    )
    axis.text(centres["model"], middle, textwrap.fill(model, 12), bbox=box | {"facecolor": "#cfe3f1"}, **look)
    for y, (estimator, text, output, right) in enumerate(rows, 0):
        y += 0.5
        written = f"{estimator}\n" + textwrap.fill(textwrap.shorten(text, 120, placeholder=" ..."), 34)
        axis.text(centres["input"], y, written, bbox=box | {"facecolor": "0.95"}, family="monospace", **look)
        axis.text(centres["next tokens"], y, textwrap.fill(output, 16), family="monospace", **look)
        mark, colour = ("✓", "#00694c") if right else ("✗", "#a83800")
        axis.text(
            centres["right?"], y, f"{mark} {obj}", color=colour, ha="center", va="center", fontsize=8, weight="bold"
        )
        arrow = {"arrowstyle": "->", "color": "0.4", "linewidth": 0.9}
        for start, end in (((0.155, middle), (0.205, y)), ((0.535, y), (0.585, middle)), ((0.68, middle), (0.73, y))):
            axis.annotate("", end, start, arrowprops=arrow)
    return figure


def text_boxes(rows: list[tuple[str, str]], width: int = 92):
    """A figure with a box per (title, text)."""
    import matplotlib.pyplot as plt

    texts = [textwrap.wrap(text, width) for _, text in rows]
    heights = [len(lines) + 2.2 for lines in texts]
    figure, axis = plt.subplots(figsize=(6.3, 0.17 * sum(heights) + 0.1))
    axis.set(xlim=(0, 1), ylim=(-sum(heights), 0))
    axis.axis("off")
    box = {"boxstyle": "round,pad=0.4", "facecolor": "0.95", "edgecolor": "0.6", "linewidth": 0.6}
    top = 0.0
    for (title, _), lines, height in zip(rows, texts, heights, strict=True):
        axis.text(0, top - 0.1, title, fontsize=8, fontweight="bold", va="top")
        axis.text(0.01, top - 1.5, "\n".join(lines), bbox=box, family="monospace", fontsize=6.5, va="top")
        top -= height
    return figure
