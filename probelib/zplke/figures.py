"""ZP-LKE's figures: measured numbers in, ``report.Artifact`` out."""

import textwrap
from statistics import NormalDist

import numpy as np
import pandas as pd

from probelib.facts import Facts
from probelib.published import table as published
from probelib.report import COLUMN, SMALL, column, family, grouped_bars, model_style, span, style_at
from probelib.report.legacy import Artifact
from probelib.stats import in_words, kendall, mean_interval, pearson, wilson
from probelib.zplke import examples, measures
from probelib.zplke.charts import dot_panels, numbers, pipeline, position_panels, short_labels, text_boxes
from probelib.zplke.prompts import CONTEXTS, METHODS
from probelib.zplke.settings import longest_list
from probelib.zplke.tables import about, names

INTERVAL = ["accuracy", "low", "high"]
FEWEST = 5  # facts from which on figure 10 shows an accuracy
FEWEST_KNOWN = 20  # known pairs that allow a comparison of examples with the paper

# ---- section 3: how many examples, and which?


def figure1(answers: pd.DataFrame, fact: Facts, model: str) -> Artifact:
    """How a fact is inferred: two inputs made from subject and relation, the model's next tokens, and whether they are right.

    answers   ``measures.answers_of_inputs`` of several facts, ``fact`` (``tables.telling_fact``) among them
    """
    own = answers[answers["fact"].isin(fact.facts["fact"])]
    prompted = own[own["estimator"] == "prompted"].sort_values("right", kind="stable").iloc[0]
    listed = own[own["context"] == "4 correct"].iloc[0]
    shown = [(r["estimator"], r["text"], r["output"].strip(), bool(r["right"])) for r in (prompted, listed)]
    frame = pd.DataFrame(shown, columns=["estimator", "input", "output", "right"])
    subject, obj = (fact.label(fact.facts[role])[0] for role in ("subject", "object"))
    relation, n = fact.relations["name"].iloc[0], answers["fact"].nunique()
    caption = (
        f"How a fact is inferred: from the subject ({subject}) and the relation ({relation}) an input is built; {model} "
        f"generates the next tokens, which are compared with the object ({obj}). A chosen contrast, no typical fact: of {n} "
        "facts, the one that the fewest inputs of table 1 get right, among those that the list of four correct pairs gets "
        "right. The prompted input is the first of table 1 that gets it wrong, if any does."
    )
    alt = "Two columns of boxes with arrows between them: input, model, next tokens, and whether these are right."
    finding, figure = finding1(answers, prompted["context"]), pipeline(f"{subject} | {relation}", shown, model, obj)
    return Artifact("zplke/figure1", frame, caption, finding, figure, alt)


def finding1(answers: pd.DataFrame, context: str) -> str:
    """How many facts are right after four correct pairs, after the prompt with ``context``, after both, and after neither."""
    rows = answers[["fact", "estimator", "context", "right"]]
    wide = rows.pivot(index="fact", columns=["estimator", "context"], values="right").astype(bool)
    listed, prompted = wide["zero-prompt", "4 correct"], wide["prompted", context]
    here, reverse, n = int((listed & ~prompted).sum()), int((prompted & ~listed).sum()), len(wide)
    low, high = wilson(here, n)
    both, neither = int((listed & prompted).sum()), int((~listed & ~prompted).sum())
    return (
        f"Only the list (four correct pairs) is right for {here} of {n} facts ({here / n:.0%} [{low:.0%}, {high:.0%}]); only "
        f"the prompt ({'no' if context == 'none' else context} examples) for {reverse}, both for {both}, neither for "
        f"{neither}."
    )


def figure2(inputs: dict[str, str], examples: pd.DataFrame, fact: Facts) -> Artifact:
    """The inputs of three estimators (``prompts.three_inputs``) for ``fact`` after ``examples``, with coloured labels."""
    frame = pd.DataFrame(inputs.items(), columns=["estimator", "input"])
    subjects = [*examples["subject"], *fact.label(fact.facts["subject"])]
    figure = text_boxes(list(inputs.items()), {"subject": subjects, "object": examples["object"].tolist()})
    caption = (
        "Inputs of the zero-shot, few-shot and zero-prompt estimators for one fact: subjects blue, objects orange and bold; the "
        "object in question follows. The paper uses 50 pairs, of which four are shown."
    )
    alt = "Three texts: a template, solved templates before a template, and a list of pairs."
    return Artifact("zplke/figure2", frame, caption, "", figure, alt)


def figure3(measured: pd.DataFrame) -> Artifact:
    """Lines of accuracy over the number of examples, one per model (``examples.curves``)."""
    frame, level = examples.curves(measured), measures.chance(measured)
    most, short = int(frame["shots"].max()), short_labels(measured["model"].unique())
    figure, axes = column(2.6)
    axis = axes[0, 0]
    for place, (model, label) in enumerate(short.items()):
        draw_curve(axis, frame[frame["model"] == model], model, place, label)
    axis.axhline(level, color="0.4", linewidth=0.8)
    axis.text(most, level, "chance", ha="right", va="bottom", fontsize=SMALL, color="0.4")
    axis.set(xlabel="examples", ylabel="accuracy", ylim=(0, None))
    figure.legend(*axis.get_legend_handles_labels(), loc="outside upper center", ncols=2, fontsize=SMALL)
    caption = (
        f"Multiple-choice accuracy against the number of examples; {about(measured)}. Band: one standard deviation over draws; "
        f"dashed: fewest examples for 95 % of the accuracy with {most}, given in the legend{coinciding(frame)}. Chance is "
        f"{level:.3f}."
    )
    alt = "One line per model over the number of examples, with a band, and dashed verticals."
    finding = finding3(frame, examples.gains(measured))
    return Artifact("zplke/figure3", frame, caption, finding, figure, alt)


def coinciding(curves: pd.DataFrame) -> str:
    """How many models' n95 (``examples.curves``) are equal, for a caption; "" if all differ.

    >>> coinciding(pd.DataFrame({"model": ["a", "a", "b", "c"], "n95": [1.0, 1.0, 1.0, 2.0]}))
    ' (those of 2 models coincide at 1)'
    """
    counts = curves.drop_duplicates("model")["n95"].value_counts()
    listed = ", ".join(f"those of {n} models coincide at {at:.0f}" for at, n in counts[counts > 1].items())
    return f" ({listed})" if listed else ""


def draw_curve(axis, rows: pd.DataFrame, model: str, place: int, label: str) -> None:
    """Draw a model's line, its band and the dashed vertical at n95. Models at even and odd ``place`` have complementary
    dashes, so that two verticals at one n95 are both visible."""
    look, enough = model_style(model) | {"markersize": 3}, rows["n95"].iloc[0]
    settles = f" (95 % at {enough:.0f})" if np.isfinite(enough) else ""
    axis.plot(rows["shots"], rows["mean"], label=label + settles, **look)
    low, high = rows["mean"] - rows["std"], rows["mean"] + rows["std"]
    axis.fill_between(rows["shots"], low, high, color=look["color"], alpha=0.15, linewidth=0)
    reached = rows[rows["shots"] == enough]
    axis.vlines(
        reached["shots"], 0, reached["mean"], color=look["color"], linestyle=(3 * (place % 2), (3, 3)), linewidth=0.9
    )


def finding3(frame: pd.DataFrame, gains: pd.DataFrame) -> str:
    """The gain from more examples (``examples.gains``), whether draws differ less, and whether better models need fewer."""
    n, last = len(gains), frame[frame["shots"] == frame["shots"].max()].set_index("model")
    listed = "; ".join(
        f"{r.model} {r.first:.2f} to {r.last:.2f} ({r.gain:+.2f} {span(r.low, r.high)})" for r in gains.itertuples()
    )
    rises, narrower = (gains["low"] > 0).sum(), (gains["std last"] < gains["std first"]).sum()
    sentence = (
        f"Accuracy with {frame['shots'].min()} and {frame['shots'].max()} examples: {listed}. That it rises, as in the paper, is "
        f"shown for {rises} of {n} models; the standard deviation over draws, which falls in the paper, falls in {narrower}."
    )
    tau = kendall(last["mean"], last["n95"])["tau"] if n > 2 else np.nan
    if not np.isfinite(tau):
        return sentence
    sentence += f" Rank correlation of accuracy and examples needed (n95): {tau:.2f} over {n} models"
    return f"{sentence}, which means little where the curve is flat." if rises < n else f"{sentence}."


def figure4(positions: pd.DataFrame, star: int) -> Artifact:
    """Probability of every object by position, best model (``examples.measure_positions``); ``star``: a marked position."""
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
    """The panels of the model at ``place``; if there are fewer models, those of a further draw of the pairs."""
    models, seeds = positions["model"].unique(), positions["seed"].unique()
    model, draw = models[place % len(models)], place // len(models)
    own = positions[positions["model"] == model]
    frame = own[own["seed"] == seeds[draw]]
    mean = frame["probability"][frame["context"] == "correct"].mean()
    longest = longest_list(model) if (longest_list(model) or np.inf) < frame["position"].max() else None
    n, replaced = frame["position"].max(), (frame["role"] == "replaced").sum() // len(CONTEXTS)
    again = f" Draw {draw + 1} of the pairs: there are fewer than four models." if draw else ""
    line = f"; vertical line: position {longest}, the longest list of the training corpus" if longest else ""
    caption = (
        f"{model}: probability of each object in a sequence of {n} pairs, {replaced} of them replaced. Dashed: mean of the "
        f"correct sequence ({mean:.2f}); star: position {star}{line}.{again} Picture and CSV hold one draw of the pairs, the "
        f"finding counts all {len(seeds)}; a model knows a pair if it gives its object a probability of 0.5 or more in the "
        "correct sequences of the other draws."
    )
    figure = position_panels(frame, contexts, mean, star, model, longest)
    finding = "" if draw else finding_sequence(own.drop(columns="model"), longest, len(models))
    return Artifact(name, frame, caption, finding, figure, "Five panels of points over the position in the sequence.")


def finding_sequence(positions: pd.DataFrame, longest: int | None = None, models: int = 1) -> str:
    """How the probability of one model changes with the position, and by unknown and incorrect examples, compared with the paper.

    longest   last position that a list of the training corpus reaches: the paper is compared up to it; None: unknown
    models    number of models that are compared (``finding_harm``)
    """
    correct = positions[positions["context"] == "correct"]
    trained = correct["position"] <= (longest or np.inf)
    words = (
        "rises with the position, as in the paper",
        "falls with the position, the reverse of the paper",
        "neither rises, as it does in the paper, nor falls significantly with the position",
    )
    way = _slope(correct[trained], *words)
    mean = f"With correct examples the probability (mean {correct['probability'].mean():.2f})"
    if longest:
        beyond = _slope(correct[~trained], "it rises", "it falls", "it neither rises nor falls significantly")
        way = f"up to position {longest} {way}. Beyond, where no list of the training corpus reaches, {beyond}"
    return f"{mean} {way}. " + finding_harm(*examples.harm_by_kind(positions), models)


def _slope(rows: pd.DataFrame, *words: str) -> str:
    """Whether probability rises with the position, falls, or neither (in ``words``), and the correlation."""
    slope = pearson(rows["position"], rows["probability"])
    return f"{by_sign(slope['low'], slope['high'], *words)} ({in_words(slope, 'pairs')})"


def by_sign(low: float, high: float, above: str, below: str, neither: str) -> str:
    """The words for an interval above 0, below 0, or that contains 0 (or has no ends).

    >>> [by_sign(*ends, "rises", "falls", "neither") for ends in ((1, 2), (-2, -1), (-1, 1), (np.nan, np.nan))]
    ['rises', 'falls', 'neither', 'neither']
    """
    return above if low > 0 else below if high < 0 else neither


def finding_harm(harmed: pd.DataFrame, which: str, models: int = 1) -> str:
    """How unknown and incorrect examples change the untouched pairs of one model, and the paired difference of both
    (``examples.harm_by_kind``), which decides the paper's claim. ``models``: number of models compared, for Bonferroni's
    correction."""
    change, low, high = harmed.loc["incorrect minus unknown", ["change", "low", "high"]]
    listed = [
        f"{kind} examples {row['change']:+.3f} {span(row['low'], row['high'], '+.3f')} (n = {row['n']:.0f}, before "
        f"{row['before']:.2f})"
        for kind, row in harmed.drop(index="incorrect minus unknown").iterrows()
    ]
    said = f"Change in the probability of {which}: {', '.join(listed)}"
    if not np.isfinite([low, high]).all():
        return f"{said}; too few pairs to compare with the paper."
    difference = f"Incorrect minus unknown, on the same pairs: {change:+.3f} {span(low, high, '+.3f')}"
    if which.endswith("knows") and harmed.loc["incorrect minus unknown", "n"] < FEWEST_KNOWN:
        return f"{said}. {difference}; the model knows fewer than {FEWEST_KNOWN} of them, too few to compare with the paper."
    more = "incorrect examples harm more than unknown ones, as in the paper"
    reverse = "unknown examples harm more than incorrect ones, the reverse of the paper"
    verdict = by_sign(low, high, reverse, more, f"that {more}, is not shown")
    return f"{said}. {difference}; {verdict}{_borderline(change, low, high, models)}."


def _borderline(change: float, low: float, high: float, models: int) -> str:
    """A remark if a 95 % interval excludes 0, but not after Bonferroni's correction for ``models`` models (normal
    approximation); else ""."""
    wider = NormalDist().inv_cdf(1 - 0.025 / models) / NormalDist().inv_cdf(0.975)
    corrected = (change - wider * (change - low), change + wider * (high - change))
    if not low <= 0 <= high and corrected[0] <= 0 <= corrected[1]:
        return f" (borderline: not significant after Bonferroni's correction for {models} models)"
    return ""


def figure10(measured: pd.DataFrame) -> Artifact:
    """Acc@K and the share of inputs kept, one line per model (``measures.accuracy_at``)."""
    rows = examples.longest(measured)
    groups, levels = rows.groupby("model", sort=False), np.arange(0, 1, 0.05)
    frame = pd.concat([measures.accuracy_at(own, levels).assign(model=model) for model, own in groups])
    figure, axes = column(2.3, 1, 2, sharex=True)
    left, right = axes.flat
    best = frame[frame["K"] == 0].sort_values("accuracy")["model"].iloc[-1]
    for model, label in short_labels(rows["model"].unique()).items():
        own, look = frame[frame["model"] == model], model_style(model) | {"markersize": 2, "linewidth": 1}
        enough = own[own["kept"] >= FEWEST]
        left.plot(enough["K"], enough["accuracy"], label=label, **look)
        if model == best:
            left.fill_between(enough["K"], enough["low"], enough["high"], color=look["color"], alpha=0.15, linewidth=0)
        right.plot(own["K"], own["share"], **look)
    left.set(xlabel="confidence above K", ylabel="accuracy of the inputs kept", ylim=(0, 1.02))
    right.set(xlabel="confidence above K", ylabel="share of the inputs kept", ylim=(0, 1.02))
    figure.legend(*left.get_legend_handles_labels(), loc="outside upper center", ncols=2, fontsize=SMALL)
    caption = (
        f"Accuracy@K ({about(rows)}), and the share of the inputs with a confidence above K. Band, for the most accurate model "
        "only (the CSV has the others'): 95 % Wilson interval by facts (the draws of a fact are no new facts); a line ends where "
        f"fewer than {FEWEST} facts are left."
    )
    alt = "Accuracy and share of kept inputs over the confidence threshold, one line per model."
    return Artifact("zplke/figure10", frame, caption, finding10(frame), figure, alt)


def finding10(frame: pd.DataFrame) -> str:
    """Accuracy and share of the inputs with a confidence above 0.5 per model, and in how many models these are more often
    right."""
    said, better = [], 0
    for model, rows in frame.groupby("model", sort=False):
        every, kept = (rows[rows["K"].round(2) == level].iloc[0] for level in (0, 0.5))
        better += bool(kept["low"] > every["accuracy"])
        said.append(
            f"{model} {every['accuracy']:.2f} to {kept['accuracy']:.2f} {span(kept['low'], kept['high'])} on "
            f"{100 * kept['share']:.0f} %"
            if kept["kept"]
            else f"{model} has no confidence above 0.5"
        )
    return (
        f"Accuracy of all inputs, and of those with a confidence above 0.5: {'; '.join(said)}. Confident choices are more often "
        f"right, as in the paper, in {better} of {len(said)} models (interval above the accuracy of all)."
    )


# ---- section 4.1: a list of pairs, or a prompt?


def figure5(cells: pd.DataFrame, measured: pd.DataFrame, new_tokens: int) -> Artifact:
    """Bars of all methods in the response test, strict and lenient, and in the multiple-choice test.

    cells      ``measures.accuracy_by_method``;   measured: ``measures.measure``;   new_tokens: of the response test
    """
    frame, order = measures.mean_by_method(cells), methods_of(cells)
    short = short_labels(measured["model"].unique(), width=10)
    figure, axes = column(5, 3, 1, sharex=True)
    for axis, test, letter in zip(axes.flat, cells["test"].unique(), "aab", strict=True):
        rows = frame[frame["test"] == test]
        wide = rows.pivot(index="model", columns="method").reindex(index=list(short)).rename(index=short)
        grouped_bars(axis, *(wide[value][order] for value in INTERVAL))
        top = max(0.05, 1.05 * rows[["accuracy", "high"]].max(axis=None))  # one relation has no interval
        axis.set(ylabel="accuracy", ylim=(0, top))
        axis.set_title(f"({letter}) {test}", fontsize=7)
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=3, fontsize=SMALL)
    numbers = cells.groupby("method")["relation"].nunique()[order].items()
    caption = (
        f"ZP-LKE against prompts, mean over prompts, then over relations ({', '.join(f'{m}: {n}' for m, n in numbers)}; "
        f"{about(measured)}): (a) response test, {new_tokens} tokens, strict (begins with the object) and lenient (contains it "
        "anywhere), one draw of examples, few-shot HGP with its first prompt; (b) multiple choice, few-shot HGP with one draw. "
        "Whiskers: 95 % bootstrap interval over relations. "
        "The CSV also has the means without manufacturer (P176)."
    )
    alt = "Grouped bars of accuracy for each model: ZP-LKE, few-shot HGP, HGP, MMP and plain sentences."
    return Artifact("zplke/figure5", frame, caption, finding5(cells, measured), figure, alt)


def finding5(cells: pd.DataFrame, measured: pd.DataFrame) -> str:
    """Every method per model, ZP-LKE against HGP and the plain sentence, and the two steps from HGP to ZP-LKE."""
    choice, strict = (cells[cells["test"] == test] for test in ("multiple choice", "response, strict"))
    order, models = methods_of(cells), measured["model"].unique()
    means = choice.groupby(["model", "method"])["accuracy"].mean().unstack().loc[models, order]
    listed = "; ".join(f"{model} {', '.join(f'{value:.2f}' for value in own)}" for model, own in means.iterrows())
    paper, step = published("zplke/claims").set_index("claim")["value"], measures.steps(measured)
    gaps = [ahead_in_words(choice, other) for other in ("HGP", "plain sentence") if other in order]
    strictly = [ahead_in_words(strict, other) for other in ("HGP", "plain sentence") if other in order]
    return (
        f"Multiple choice ({', '.join(order)}): {listed} (the paper: ZP-LKE {paper['mc_acc_ZP']}, HGP {paper['mc_acc_HGP']}). "
        f"{'; '.join(gaps)}. With one draw, examples before the prompt change HGP by {step['examples']:+.2f}, and leaving out "
        f"the prompt changes that by {step['words']:+.2f}. Response test, strict: {'; '.join(strictly)}."
    )


def ahead_in_words(cells: pd.DataFrame, other: str) -> str:
    """ZP-LKE against another method in one test (``measures.gap``)."""
    gap, n = measures.gap(cells, "ZP-LKE", other), cells["model"].nunique()
    verdict = by_sign(gap["low"], gap["high"], "is better than", "is worse than", "is not significantly different from")
    ahead = f"{len(gap['models'])} of {n} models"
    if 0 < len(gap["models"]) <= n / 2:
        ahead += f": {', '.join(gap['models'])}"
    return (
        f"ZP-LKE {verdict} {other} ({gap['gap']:+.2f} {span(gap['low'], gap['high'])}, mean of the models; ahead in "
        f"{gap['ahead']} of {gap['of']} relations, and in {ahead})"
    )


def methods_of(cells: pd.DataFrame) -> list[str]:
    """The methods in ``cells``, in the order of ``METHODS``."""
    return [method for method in METHODS.values() if method in set(cells["method"])]


def figure14(cells: pd.DataFrame, facts: Facts) -> Artifact:
    """Response accuracy (lenient) of all methods, one row per relation."""
    note = (
        " (few-shot HGP: the first), ZP-LKE and few-shot HGP with one draw of examples. The CSV also has the strict test. Marks "
        "pile up at 0: there the model's text never contains the object"
    )
    return per_relation("zplke/figure14", "response, lenient", cells, facts, note)


def figure15(cells: pd.DataFrame, facts: Facts) -> Artifact:
    """Multiple-choice accuracy of all methods, one row per relation."""
    return per_relation("zplke/figure15", "multiple choice", cells, facts, " (few-shot HGP: with one draw of examples)")


def per_relation(name: str, test: str, cells: pd.DataFrame, facts: Facts, note: str = "") -> Artifact:
    """One row per relation and one panel per model for a ``test`` of ``measures.accuracy_by_method``. ``note``: on the mean over
    prompts, for the caption."""
    frame = cells[cells["test"].str.startswith(test.split(",")[0])]
    frame = frame.assign(relation=frame["relation"].map(names(facts)))
    counts = facts.facts["relation"].map(names(facts)).value_counts()
    ends = [wilson(round(a * counts[r]), counts[r]) for a, r in zip(frame["accuracy"], frame["relation"], strict=True)]
    frame = frame.assign(low=[low for low, _ in ends], high=[high for _, high in ends])
    rows, most = frame[frame["test"] == test], counts.max()
    figure = dot_panels(rows, "relation", cells.attrs["models"], "method", methods_of(cells))
    quarter = round(most / 4)
    caption = (
        f"{test.capitalize()}, per relation, up to {most} facts each; mean over prompts{note}. No mark: no such prompt for the "
        f"relation. The CSV has the 95 % Wilson intervals over facts; that of {quarter} of {most} is "
        f"{span(*wilson(quarter, most))}."
    )
    alt = "One panel per model with relations as rows and one mark per method."
    own = cells[cells["test"] == test]
    finding = "; ".join(ahead_in_words(own, other) for other in methods_of(cells) if other != "ZP-LKE")
    return Artifact(name, frame, caption, f"{finding}.", figure, alt)


def figure6(measured: pd.DataFrame, facts: Facts, note: str = "") -> Artifact:
    """Dots of one relation's accuracy, one row per separator. ``note``: which relation replaces the paper's."""
    frame, tested = measures.by_separator(measured), measures.against_blank(measured)
    title = names(facts)[measured["relation"].iloc[0]]
    figure = dot_panels(frame, "between", measured["model"].unique().tolist())
    caption = (
        f"Multiple-choice accuracy on {title} with different words between subject and object of the same examples "
        f"({about(measured)}); whiskers: 95 % Wilson interval. {note}"
    )
    alt = "One panel per model with the separators as rows, a dot with its interval in each."
    return Artifact("zplke/figure6", frame, caption, finding_separators(tested), figure, alt)


def finding_separators(tested: pd.DataFrame) -> str:
    """How often words differ significantly from the blank, per model (``measures.against_blank``)."""
    clear = tested["p (Holm)"] < 0.05
    better, worse = clear & (tested["gained"] > tested["lost"]), clear & (tested["gained"] < tested["lost"])
    each = worse.groupby(tested["model"], sort=False).agg(["sum", "size"])
    listed = ", ".join(f"{row['sum']} of {row['size']} in {model}" for model, row in each.iterrows())
    verdict = "the blank is as good as words or better, as in the paper"
    if better.any():
        verdict = "the blank is not always as good as words, unlike in the paper"
    sentence = (
        f"Against the blank (McNemar, Holm's correction for {len(tested)} tests) words help in {better.sum()} cases and harm in "
        f"{worse.sum()} ({listed}): {verdict}."
    )
    if not clear.any():
        return sentence
    most = tested.loc[(tested["gained"] - tested["lost"])[clear].abs().idxmax()]
    return f"{sentence} The largest: *{most['words']}* in {most['model']} ({most['gained'] - most['lost']:+d} facts)."


# ---- section 4.2.1: different families


def figure7(matrix: pd.DataFrame, facts: Facts, rule: pd.Series) -> Artifact:
    """Heat map of accuracies, relations x models (``measures.accuracy_matrix``), beside the best ``rule`` without a model."""
    means, called = matrix.mean().sort_values(ascending=False), names(facts)
    shown = matrix.rename(index=short_labels(matrix.index)).T.loc[means.index].assign(**{"best rule": rule})
    shown.index = [textwrap.shorten(called[relation], 50, placeholder=" ...") for relation in means.index]
    beside = 0.1 + 0.05 * shown.index.str.len().max()  # inches for the names
    figure, axes = column(1.0 + 0.135 * len(shown), width=max(COLUMN, beside + 0.165 * shown.shape[1]))
    axis = axes[0, 0]
    numbers(axis, shown, 0, max(0.01, shown.max(axis=None)), "viridis")
    for at in [*family_borders(matrix.index), len(matrix) - 0.5]:
        axis.axvline(at, color="white", linewidth=2)
    axis.xaxis.tick_top()
    axis.tick_params(axis="x", rotation=90)
    axis.tick_params(labelsize=SMALL, left=False, top=False)
    each = int(facts.facts["relation"].value_counts().median())
    quarter = round(each / 4)
    caption = (
        f"Multiple-choice accuracy of {len(matrix)} base models on {matrix.shape[1]} relations, {len(facts.facts)} facts in all; "
        "best relations first. A white line separates families. Last column: the best rule without a model (table 9). "
        f"{each} facts per cell: the 95 % interval of an accuracy of {quarter / each:.2f} is {span(*wilson(quarter, each))}."
    )
    finding = finding7(means.rename(called), rule[means.index].rename(called))
    frame = matrix.rename_axis("model").reset_index()
    return Artifact("zplke/figure7", frame, caption, finding, figure, "Heat map of accuracies, relations by models.")


def finding7(means: pd.Series, rule: pd.Series) -> str:
    """The best and worst known relation, by mean accuracy and by mean accuracy minus that of the best ``rule``."""
    gain = (means - rule).sort_values()
    return (
        f"Mean accuracy per relation goes from {means.iloc[-1]:.2f} ({means.index[-1]}) to {means.iloc[0]:.2f} "
        f"({means.index[0]}), minus that of the best rule without a model from {gain.iloc[0]:+.2f} ({gain.index[0]}) to "
        f"{gain.iloc[-1]:+.2f} ({gain.index[-1]})."
    )


def family_borders(models) -> list[float]:
    """The positions between two models of different families, on an axis of models at 0, 1, ..."""
    families = [family(model) for model in models]
    return [i - 0.5 for i in range(1, len(families)) if families[i] != families[i - 1]]


def figure8(matrix: pd.DataFrame, rule: pd.Series) -> Artifact:
    """Heat maps of the mean correlation between families: of accuracies, and of accuracies minus the best ``rule``."""
    of, versions = {model: family(model) for model in matrix.index}, [matrix, matrix - rule[matrix.columns]]
    tables = [measures.family_correlations(measures.correlations(version), of) for version in versions]
    n, lowest = len(tables[0]), min(0.0, *(table.fillna(0).min(axis=None) for table in tables))
    short = short_labels(tables[0].index)
    figure, axes = column(1.1 + 0.3 * n, 1, 2, width=max(COLUMN, 0.9 + 0.6 * n), sharey=True)
    for axis, table, title in zip(axes.flat, tables, ["accuracy", "minus best rule"], strict=True):
        numbers(axis, table.rename(index=short, columns=short), lowest, 1, "viridis")
        axis.set_title(title, fontsize=7)
        axis.tick_params(axis="x", rotation=90)
    caption = (
        f"Mean Pearson correlation over {matrix.shape[1]} relations between the models of two families: of accuracies (left), "
        "and of accuracies minus that of the best rule without a model (right; table 9). A dash: no pair of different models."
    )
    pairs = [(a, b) for a in tables[0].index for b in tables[0].index]
    frame = pd.DataFrame(pairs, columns=["a", "b"])
    frame["r"], frame["r minus best rule"] = (table.to_numpy().ravel() for table in tables)
    finding = finding8(tables, [measures.between_families(version, family) for version in versions])
    return Artifact("zplke/figure8", frame, caption, finding, figure, "Two heat maps of correlations between families.")


def finding8(tables: list[pd.DataFrame], across: list[dict[str, float]]) -> str:
    """Mean r between families (``measures.between_families``), of accuracies and of accuracies minus the best rule, beside the
    paper's."""
    if not across[0]["n"]:
        return "There is one family only: nothing to compare."
    between = [table.where(~np.eye(len(table), dtype=bool)).stack() for table in tables]
    raw, left = across
    verdict = "part of the agreement is that the same relations are easily guessed"
    if not left["high"] < raw["low"]:
        verdict = "how much of the agreement is guessing is not decided, for the intervals overlap"
    return (
        f"Between two families the mean r is {between[0].min():.2f} to {between[0].max():.2f} (the paper: more than 0.6); over "
        f"all {raw['n']} pairs of models of different families {raw['r']:.2f} {span(raw['low'], raw['high'])}. Minus the best "
        f"rule without a model {between[1].min():.2f} to {between[1].max():.2f}, over all pairs {left['r']:.2f} "
        f"{span(left['low'], left['high'])}: {verdict}."
    )


def figure16(matrix: pd.DataFrame) -> Artifact:
    """Heat map of the correlation of every pair of models."""
    pairs = measures.correlations(matrix)
    shown, short = pairs.where(~np.eye(len(pairs), dtype=bool)), short_labels(pairs.index)
    figure, axes = column(0.8 + 0.21 * len(pairs), width=max(COLUMN, 1 + 0.22 * len(pairs)))
    axis = axes[0, 0]
    numbers(axis, shown.rename(index=short, columns=short), min(0.5, shown.min(axis=None)), 1, "viridis")
    for at in family_borders(matrix.index):
        axis.axhline(at, color="white", linewidth=2)
        axis.axvline(at, color="white", linewidth=2)
    axis.tick_params(axis="x", rotation=90)
    axis.tick_params(labelsize=SMALL, left=False, bottom=False)
    caption = (
        f"Pearson correlation of accuracies over {matrix.shape[1]} relations for every pair of base models. White lines separate "
        f"families. {interval_of_r(pairs, matrix.shape[1])}"
    )
    frame = pairs.rename_axis("model").reset_index()
    alt = "Heat map of correlations between all pairs of models."
    return Artifact("zplke/figure16", frame, caption, finding16(pairs), figure, alt)


def interval_of_r(pairs: pd.DataFrame, n: int) -> str:
    """The 95 % interval (Fisher's z) of the median r of the pairs of models over ``n`` relations, for a caption."""
    r = float(np.nanmedian(pairs.to_numpy()[np.triu_indices(len(pairs), 1)])) if len(pairs) > 1 else np.nan
    if n < 4 or not np.isfinite(r):
        return ""
    wide = NormalDist().inv_cdf(0.975) / np.sqrt(n - 3)
    low, high = np.tanh(np.arctanh(min(r, 1 - 1e-15)) + np.array([-wide, wide]))
    return f"The 95 % interval of a single r of {r:.2f} (the median) is {span(low, high)}."


def finding16(pairs: pd.DataFrame) -> str:
    """Smallest and largest r of two models of one family, and of two models of different families."""
    families = np.array([family(model) for model in pairs.index])
    same, upper = families[:, None] == families, np.triu(np.ones(pairs.shape, dtype=bool), 1)
    sentences = []
    for kind, chosen in (("one family", same), ("different families", ~same)):
        r = pairs.to_numpy()[upper & chosen]
        if np.isfinite(r).any():
            sentences.append(
                f"of {kind} {np.nanmin(r):.2f} to {np.nanmax(r):.2f} (n = {len(r)}, mean {np.nanmean(r):.2f})"
            )
    return f"Pairs of models: {'; '.join(sentences)}." if sentences else ""


# ---- section 4.2.2: within one family


def figure9(measured: pd.DataFrame, base_of: dict[str, str]) -> Artifact:
    """Accuracies of base models and their fine-tuned versions, and the paired differences."""
    frame = tuned_beside_base(measured, base_of)
    figure, axes = column(1.0 + 0.3 * max(1, len(frame)), 1, 2, sharey=True)
    left, right = axes.flat
    if frame.empty:
        left.text(0.5, 0.5, "no fine-tuned model\nwith its base", ha="center", transform=left.transAxes, fontsize=7)
    else:
        draw_pairs(left, right, frame)
        figure.legend(*left.get_legend_handles_labels(), loc="outside upper center", ncols=2, fontsize=SMALL)
    left.set(xlabel="accuracy")
    right.set(xlabel="fine-tuned minus base")
    caption = (
        "Multiple-choice accuracy of base models and their fine-tuned versions, mean over "
        f"{measured['relation'].nunique()} relations ({about(measured)}), and the difference on the same relations; "
        "whiskers: its 95 % bootstrap interval over relations."
    )
    alt = "Pairs of marks, base and fine-tuned, and their difference with its interval."
    return Artifact("zplke/figure9", frame, caption, finding9(frame), figure, alt)


def draw_pairs(left, right, frame: pd.DataFrame) -> None:
    """The marks of ``tuned_beside_base`` on the left axis, their differences with whiskers on the right one."""
    rows = range(len(frame))
    for place, kind in enumerate(("base", "fine-tuned")):
        left.plot(
            frame[f"{kind} accuracy"], rows, **style_at(place) | {"linestyle": "", "markersize": 4, "label": kind}
        )
    ends = np.clip([frame["difference"] - frame["low"], frame["high"] - frame["difference"]], 0, None)
    right.errorbar(frame["difference"], rows, xerr=ends, fmt="o", color="0.2", markersize=3, capsize=2, linewidth=0.9)
    right.axvline(0, color="0.4", linewidth=0.8)
    left.set_yticks(rows, list(short_labels(frame["tuned"]).values()))
    left.set_ylim(len(frame) - 0.5, -0.5)


def finding9(frame: pd.DataFrame) -> str:
    """How many fine-tuned models are below their base, and by how much."""
    if frame.empty:
        return ""
    worse, clear = frame["difference"] < 0, (frame["high"] < 0).sum()
    printed = published("zplke/table11")
    paper = (printed["ft_accuracy"] - printed["base_accuracy"]).mean()
    return (
        f"{worse.sum()} of {len(frame)} fine-tuned models are below their base (the paper: 12 of 13), {clear} of them "
        f"significantly (interval over relations); the mean difference is {frame['difference'].mean():+.3f} (the paper: "
        f"{paper:+.3f})."
    )


def tuned_beside_base(measured: pd.DataFrame, base_of: dict[str, str]) -> pd.DataFrame:
    """``base``, ``tuned``, the accuracy of both with its interval, and their ``difference`` with its interval (``low``, ``high``,
    95 % bootstrap over relations); one row per pair."""
    groups, rows = measures.accuracies(measured).groupby("model", sort=False), []
    score = {model: measures.overall_accuracy(own) for model, own in groups}
    each = {model: own.set_index("relation")["accuracy"] for model, own in groups}
    for tuned, base in base_of.items():
        if base:
            both = {"base": score[base], "fine-tuned": score[tuned]}
            numbers = {f"{kind} {value}": own[value] for kind, own in both.items() for value in INTERVAL}
            change = each[tuned] - each[base]
            low, high = mean_interval(change)
            rows.append(
                {"base": base, "tuned": tuned} | numbers | {"difference": change.mean(), "low": low, "high": high}
            )
    return pd.DataFrame(rows, columns=None if rows else ["base", "tuned"])


# ---- section 4.2: how hard is a choice among 100 options?


def options(difficulty: pd.DataFrame, model: str) -> Artifact:
    """Accuracy against the number of options, for three kinds of wrong options (``measures.difficulty``)."""
    figure, axes = column(2.5)
    axis = axes[0, 0]
    for i, (hard, rows) in enumerate(difficulty.groupby("hardness")):
        look = style_at(i) | {"markersize": 4}
        axis.plot(rows["options"], rows["accuracy"], label=f"hardness {hard:g}", **look)
        axis.fill_between(rows["options"], rows["low"], rows["high"], color=look["color"], alpha=0.12, linewidth=0)
    rows = difficulty[difficulty["hardness"] == 0]
    axis.plot(rows["options"], rows["chance"], color="0.4", linewidth=0.9, label="chance")
    axis.set(xscale="log", xlabel="options", ylabel="accuracy", ylim=(0, 1.02))
    axis.set_title(model, fontsize=7)
    axis.set_xticks(rows["options"], rows["options"])
    axis.set_xticks([], minor=True)
    axis.legend(fontsize=SMALL)
    caption = (
        f"{model}: accuracy against the number of options; the wrong ones are drawn at random (hardness 0), half and half (0.5), "
        f"or are the relation's most frequent objects (1). n = {difficulty.attrs['n']} tests per point; one wrong option "
        "cannot be half random, so hardness 0.5 begins at 5 options. Bands: 95 % Wilson interval."
    )
    alt = "Accuracy falling with the number of options, three lines."
    return Artifact("zplke/options", difficulty, caption, finding_options(difficulty, model), figure, alt)


def finding_options(difficulty: pd.DataFrame, model: str) -> str:
    """Accuracy with the most and the fewest random options, and with the fewest frequent ones."""
    rows, hard = (difficulty[difficulty["hardness"] == value] for value in (0, 1))
    most, two, frequent = rows.iloc[-1], rows.iloc[0], hard.iloc[0]
    side = "above chance"
    if frequent["low"] <= frequent["chance"] <= frequent["high"]:
        side = "at chance"
    if frequent["high"] < frequent["chance"]:
        side = "below chance: it prefers the frequent object"
    known = lambda row: f"{row['accuracy']:.2f} {span(row['low'], row['high'])}"
    return (
        f"{model} knows {known(most)} of the facts when it chooses among up to {most['options']:.0f} random objects, and "
        f"{known(two)} when among {two['options']:.0f}: how much a model knows depends on the options, too. Between the right "
        f"object and the most frequent wrong one it is right for {known(frequent)}, {side}."
    )
