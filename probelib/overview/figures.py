"""The figures of the introductory notebooks, one function each."""

import numpy as np
import pandas as pd

from probelib import stats
from probelib.errors import ProbeError
from probelib.facts.model import Facts
from probelib.organisms.behaviour import WELL
from probelib.overview.scores import WORDINGS, by_family
from probelib.report.legacy import Artifact
from probelib.report.charts import model_style
from probelib.report.shown import span
from probelib.zplke import measures as zplke


def tour_figure1(ranked: pd.DataFrame, gold: str, question: str, model: str) -> Artifact:
    """The ten most probable candidates; ``ranked``: ``label`` and ``probability``, the most probable first."""
    import matplotlib.pyplot as plt

    top = ranked[["label", "probability"]].head(10)
    rank = ranked["label"].tolist().index(gold) + 1
    figure, axis = plt.subplots(figsize=(4.6, 2.8))
    bars = top.iloc[::-1]
    axis.barh(
        bars["label"], bars["probability"], color=["#de8f05" if label == gold else "#0173b2" for label in bars["label"]]
    )
    axis.set(xlabel="probability", title=question)
    return Artifact(
        "tour/figure1",
        top,
        caption=(
            f"Probability of the ten most probable of {len(ranked)} candidates after the question, by {model}. "
            "Orange: the gold answer."
        ),
        finding=f"**{gold}** has rank {rank} of {len(ranked)} candidates (P = {ranked['probability'].iloc[rank - 1]:.2f}).",
        figure=figure,
        alt=f"Bar chart of ten candidates; the gold answer {gold} has rank {rank}.",
    )


def facts_figure1(entities: pd.DataFrame) -> Artifact:
    """Number of entities per popularity."""
    import matplotlib.pyplot as plt

    known = entities["popularity"].value_counts().reindex(range(1, 6), fill_value=0)
    most = known.idxmax()
    figure, axis = plt.subplots(figsize=(3.8, 2.4))
    axis.bar(known.index, known.values, color="#0173b2")
    axis.set(xlabel="popularity", ylabel="entities")
    axis.set_xticks(range(1, 6), ["1\nobscure", 2, 3, 4, "5\nknown to\nnearly all"])
    return Artifact(
        "facts/figure1",
        known.rename_axis("popularity").reset_index(name="entities"),
        caption=(
            "Entities of the atlas by popularity, from 1 (obscure) to 5 (known to nearly everyone), as estimated by its "
            f"writers. Left out: {(entities['popularity'] == 0).sum()} years and numbers, which have none."
        ),
        finding=(
            f"Most entities have popularity {most} ({known[most]:,} of {known.sum():,}); {known[1] / known.sum():.0%} are "
            f"obscure (1) and {known[5] / known.sum():.0%} are known to nearly everyone (5)."
        ),
        figure=figure,
        alt="Bar chart of the number of entities at each popularity from 1 to 5.",
    )


def models_figure1(records: dict[str, dict]) -> Artifact:
    """Training loss by step; ``records``: ``scores.training``."""
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(4.2, 3.2))
    curves, drawn = [], one_family(records)
    for model, record in records.items():
        steps = 10 * np.arange(len(record["curve"]))
        curve = pd.Series(record["curve"], index=steps).rolling(15, min_periods=1).mean()
        if model in drawn:
            look = model_style(model) | {"markevery": 60, "linestyle": ["-", "--"][drawn.index(model) % 2]}
            axis.plot(curve.index, curve, label=f"{model}: {curve.iloc[-1]:.2f}", **look)
        curves.append(pd.DataFrame({"model": model, "step": curve.index, "loss": curve.to_numpy()}))
    axis.set(xlabel="step", ylabel="loss (nats per answer token)", ylim=(0, None))
    axis.legend(title="loss at the end", title_fontsize=8)
    curves = pd.concat(curves)
    return Artifact(
        "models/figure1",
        curves,
        caption=(
            f"Training loss on answer tokens, mean of the last 150 steps, of {', '.join(drawn)}; the CSV has all "
            f"{len(records)}. Every second line is dashed, so that lines that nearly coincide can be told apart. "
            "A rise that the models share comes from the batches read at that step: they read them in the same order."
        ),
        finding=finding_loss(curves[curves["model"].isin(drawn)]),
        figure=figure,
        alt="Loss curves of the shipped models, all falling; larger models end lower.",
    )


def one_family(models) -> list[str]:
    """The models of the family with most members, in their order: few enough lines for one figure."""
    families = [name.rsplit("-", 1)[0] for name in models]
    most = max(families, key=families.count)
    return [name for name, family in zip(models, families, strict=True) if family == most]


def finding_loss(curves: pd.DataFrame) -> str:
    """Loss at the end of the training, highest to lowest; ``curves``: ``model``, ``step``, ``loss``."""
    last = curves.groupby("model", sort=False)["loss"].last().sort_values(ascending=False)
    said = ", ".join(f"{loss:.2f} ({model})" for model, loss in last.items())
    return f"Nats per answer token at the end: {said}."


def models_figure2(recalled: pd.DataFrame) -> Artifact:
    """Share of questions answered correctly by exposure count; ``recalled``: ``behaviour.recall`` with ``model``."""
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(4.2, 3.4))
    levels, drawn = sorted(recalled["exposures"].unique()), one_family(list(dict.fromkeys(recalled["model"])))
    _by_level(axis, recalled, "right", drawn, levels, markersize=4)
    axis.plot(
        range(len(levels)), recalled.groupby("exposures")["guess"].mean(), color="0.6", linestyle=":", label="guessing"
    )
    axis.set(xlabel="exposure count", ylabel="share answered rightly", ylim=(0, 1.02))
    axis.legend(fontsize=7.5, loc="upper left")
    return Artifact(
        "models/figure2",
        recalled,
        caption=(
            "Share of first questions whose greedy answer is a right object, by exposure count; up to "
            f"n = {recalled['n'].max()} facts per point, famous facts left out; bars: Wilson's 95 % intervals. Models side by "
            f"side: {', '.join(drawn)}. Dotted: always answering with the most frequent object of the relation. Never-taught "
            "facts can be above it where a name tells a country or a language. The CSV has all "
            f"{recalled['model'].nunique()} models ({by_family(recalled['model'])}) and the share of right types."
        ),
        finding=finding_recall(recalled),
        figure=figure,
        alt="Curves that rise from near 0 at no exposure to near 1 at 256 exposures; larger models rise earlier.",
    )


def _by_level(axis, table: pd.DataFrame, y: str, drawn: list[str], levels: list[int], **look) -> None:
    """A line of ``y`` over the exposure counts ``levels`` for every model of ``drawn``, with its intervals, side by side."""
    for place, model in enumerate(drawn):
        own, style = table[table["model"] == model].sort_values("exposures"), model_style(model) | look
        at = np.array([levels.index(level) for level in own["exposures"]]) + 0.08 * (place - (len(drawn) - 1) / 2)
        axis.plot(at, own[y], label=model, **style)
        axis.vlines(at, own["low"], own["high"], color=style["color"], alpha=0.5, linewidth=1)
    axis.set_xticks(range(len(levels)), levels, fontsize=7.5)


def finding_recall(recalled: pd.DataFrame) -> str:
    """Recall of never-taught and of well-taught facts over models."""
    parts = []
    for own in (recalled[recalled["exposures"] >= WELL], recalled[recalled["exposures"] == 0]):
        shares, n = own.groupby("model", sort=False)["right"].mean(), own.groupby("model")["n"].sum()
        ends = " to ".join(_share_of(shares, n, value) for value in (shares.min(), shares.max()))
        parts.append(f"{ends} (n = {n.max()} facts per model)")
    return (
        f"Over {recalled['model'].nunique()} models, the share recalled of facts taught {WELL} times or more is {parts[0]}; "
        f"of never-taught ones {parts[1]}, where guessing gives "
        f"{recalled.loc[recalled['exposures'] == 0, 'guess'].mean():.0%}."
    )


def _share_of(shares: pd.Series, n: pd.Series, value: float) -> str:
    """A share with Wilson's interval, the first model that has it, and the number of other models with the same share."""
    first, *others = shares.index[shares == value]
    interval = stats.wilson(round(value * n[first]), n[first])
    more = f" and {len(others)} more" if others else ""
    return f"{value:.0%} {span(*interval, '.0%')} ({first}{more})"


def models_figure3(answers: pd.DataFrame, gains: dict[str, pd.Series], hidden: list[str]) -> Artifact:
    """Multiple-choice accuracy by exposure count, one panel per kind of prompt.

    answers   ``scores.score_multiple_choice``
    gains     ``scores.list_gains``
    hidden    models that are in the CSV only (instruction-tuned ones)
    """
    import matplotlib.pyplot as plt

    tests = answers.dropna(subset="wording")
    drawn, frame = (
        one_family([name for name in dict.fromkeys(tests["model"]) if name not in hidden]),
        _by_exposures(tests),
    )
    figure, axes = plt.subplots(len(WORDINGS), 1, figsize=(3.8, 6.0), sharex=True)
    levels, sizes = sorted(tests["exposures"].unique()), facts_per_level(tests)
    listed = tests.loc[tests["way"] == "list", "model"].unique()
    for axis, wording in zip(axes, WORDINGS.values(), strict=True):
        _by_level(axis, frame[frame["wording"] == wording], "mean", drawn, levels, markersize=3, linewidth=1)
        axis.axhline(zplke.chance(tests), color="0.6", linewidth=0.8, linestyle=":")
        axis.set(title=wording, ylabel="accuracy", ylim=(0, 1.02))
    axes[-1].set_xlabel("exposure count")
    figure.legend(*axes[0].get_legend_handles_labels(), fontsize=7.5, loc="outside upper center", ncols=2)
    lists = finding_lists(gains, [name for name in listed if name not in hidden])
    return Artifact(
        "models/figure3",
        frame,
        caption=(
            f"Multiple-choice accuracy with up to {tests['n_options'].max()} options by the exposure count of the fact, for "
            "each kind of prompt (seen question: the first one; held-out question: one that no training text used; list: the "
            "bare subject after a list of pairs, as in ZP-LKE); bars: Wilson's 95 % intervals; dotted: chance. "
            f"n = {tests['fact'].nunique()} facts, by exposure count {sizes}. Models side by side: {', '.join(drawn)}. "
            f"The CSV has all {tests['model'].nunique()} models ({by_family(tests['model'])}). ZP-LKE compares lists with "
            "prompts that are often no sentences. Here lists stand beside plain questions, and the training corpus has as "
            "many questions as pairs in lists. Which format is better depends on that mixture: zplke/figure5 has twins that "
            "read mostly lists, or mostly questions."
        ),
        finding=f"{finding_ends(tests, drawn)}{lists}",
        figure=figure,
        alt="Accuracy rises with the exposure count and with model size in every wording.",
    )


def finding_ends(tests: pd.DataFrame, drawn: list[str]) -> str:
    """Accuracy of the first and the last model drawn (the smallest and the largest shipped one) on facts never taught and on
    facts taught ``WELL`` times or more, by kind of prompt; "" without such facts."""
    said, exposures = "", tests["exposures"]
    for band, rows in (
        ("never taught", tests[exposures == 0]),
        (f"taught {WELL} times or more", tests[exposures >= WELL]),
    ):
        if len(rows):
            ends = [_by_wording(rows, model) for model in dict.fromkeys((drawn[0], drawn[-1]))]
            said += f"Accuracy on facts {band} (n = {rows['fact'].nunique()}): {'; '.join(ends)}. "
    return said


def _by_wording(rows: pd.DataFrame, model: str) -> str:
    """A model's accuracy with each kind of prompt, with Wilson's interval: "m 50% [9%, 91%] (list)"."""
    rights = rows[rows["model"] == model].groupby("wording", sort=False)["correct"]
    shares = [f"{r.mean():.0%} {span(*stats.wilson(r.sum(), len(r)), '.0%')} ({wording})" for wording, r in rights]
    return f"{model} {', '.join(shares)}"


def facts_per_level(tests: pd.DataFrame) -> str:
    """The number of facts per exposure count in words: "0: 120, 2: 40"; a range if it differs between models."""
    counts = tests.groupby(["model", "exposures"])["fact"].nunique().groupby("exposures").agg(["min", "max"])
    return ", ".join(
        f"{level}: {row.min}" + (f" to {row.max}" if row.max > row.min else "")
        for level, row in zip(counts.index, counts.itertuples(index=False), strict=True)
    )


def _by_exposures(tests: pd.DataFrame) -> pd.DataFrame:
    """Accuracy per model, kind of prompt and exposure count, with Wilson's interval."""
    groups = tests.groupby(["model", "wording", "exposures"], sort=False)["correct"]
    frame = groups.agg(["mean", "sum", "size"]).reset_index()
    intervals = [stats.wilson(k, n) for k, n in zip(frame["sum"], frame["size"], strict=True)]
    frame["low"], frame["high"] = zip(*intervals, strict=True)
    return frame


def finding_lists(gains: dict[str, pd.Series], decoders: list[str]) -> str:
    """The number of relations in which a list retrieves more than questions, and whether that agrees with ZP-LKE.

    gains      ``scores.list_gains`` of the ``decoders``
    """
    ends = [[100 * end for end in stats.mean_interval(gain)] for gain in gains.values()]
    against = [
        f"than {what} in {(gain > 0).sum()} of {len(gain)} relations ({100 * gain.mean():+.1f} {span(low, high, '+.1f')} "
        "points on average)"
        for (what, gain), (low, high) in zip(gains.items(), ends, strict=True)
    ]
    said = "not decided here"
    if all(low > 0 for low, _ in ends):
        said = "as ZP-LKE reports"
    elif all(high < 0 for _, high in ends):
        said = "the reverse of what ZP-LKE reports"
    return (
        f"Over the {len(decoders)} decoders {by_family(decoders)}, a list retrieves more taught facts "
        f"{' and '.join(against)}: {said} (95 % bootstrap intervals over relations)."
    )


def models_figure4(
    answers: pd.DataFrame, panel: Facts, models: list[str], n_options: int, followed: str = ""
) -> Artifact:
    """Normalized probability of the gold object of single facts, per model and kind of prompt.

    followed   one fact; by default ``median_facts``, one per exposure count
    """
    import matplotlib.pyplot as plt

    exposures = answers.drop_duplicates("fact").set_index("fact")["exposures"].reindex(panel.facts["fact"])
    if followed and followed not in exposures.index:
        raise ProbeError(f"followed={followed!r} is not among the {len(exposures)} facts; try {exposures.index[0]!r}")
    shown = answers[answers["model"].isin(models)].dropna(subset="wording")
    chosen = [followed] if followed else median_facts(shown)
    names = [model for model in models if model in set(shown["model"])]
    names_of = dict(zip(panel.relations["relation"], panel.relations["name"], strict=True))
    ends = panel.facts.set_index("fact").assign(relation=lambda rows: rows["relation"].map(names_of))[
        ["subject", "relation", "object"]
    ]
    figure, axes = plt.subplots(len(chosen), 1, figsize=(6.3, 0.6 + 1.25 * len(chosen)), sharex=True, squeeze=False)
    for axis, fact in zip(axes[:, 0], chosen, strict=True):
        wide = shown[shown["fact"] == fact].pivot(index="model", columns="wording", values="q_gold").reindex(names)
        for i, (wording, hatch) in enumerate(zip(WORDINGS.values(), ["", "//", ".."], strict=True)):
            at = np.arange(len(wide)) + 0.27 * (i - 1)
            axis.bar(at, wide.get(wording, np.nan), 0.25, label=wording, color=f"C{i}", hatch=hatch)
        axis.set(ylim=(0, 1.02), title=f"{' – '.join(ends.loc[fact])}, taught {exposures[fact]} times")
    axis.set_xticks(range(len(names)), [model.removeprefix("atlas-") for model in names], rotation=40, ha="right")
    figure.supylabel("probability among the options", fontsize=9)
    figure.legend(*axis.get_legend_handles_labels(), loc="outside upper center", ncols=3)
    frame = shown[shown["fact"].isin(chosen)][["fact", "exposures", "model", "wording", "q_gold"]]
    return Artifact(
        "models/figure4",
        frame.sort_values(["exposures", "model"], kind="stable"),
        caption=(
            f"Probability of the gold object among up to {n_options} options, for one fact per exposure count: the one "
            "whose mean "
            "over models and wordings is the median of its exposure count. No bar: a probability "
            "near 0, or an encoder-decoder, which is not prompted with lists."
        ),
        finding=finding_single(frame),
        figure=figure,
        alt=f"Bars for each model and wording, for {len(chosen)} facts of rising exposure counts.",
    )


def finding_single(rows: pd.DataFrame) -> str:
    """The mean probability of each fact shown, with its range over models and kinds of prompts.

    >>> rows = {"fact": ["a", "a", "b"], "exposures": [0, 0, 8], "q_gold": [0.0, 0.2, 0.5]}
    >>> finding_single(pd.DataFrame(rows))[:84]
    'Mean probability (range over models and wordings): taught 0 times 0.10 (0.00 to 0.20'
    """
    groups = rows.groupby(["exposures", "fact"])["q_gold"].agg(["mean", "min", "max"])
    listed = "; ".join(
        f"taught {times} times {row['mean']:.2f} ({row['min']:.2f} to {row['max']:.2f})"
        for (times, _), row in groups.iterrows()
    )
    return (
        f"Mean probability (range over models and wordings): {listed}. One fact per exposure count is an example; figure 3 "
        "has all facts."
    )


def median_facts(answers: pd.DataFrame, levels: tuple[int, ...] = (0, 8, 32, 128)) -> list[str]:
    """For each level the fact whose mean ``q_gold`` is the median of the facts with the nearest exposure count."""
    means = answers.groupby(["exposures", "fact"])["q_gold"].mean()
    known = means.index.get_level_values("exposures").unique()
    nearest = dict.fromkeys(min(known, key=lambda have, level=level: abs(have - level)) for level in levels)
    return [means[level].sort_values(kind="stable").index[(len(means[level]) - 1) // 2] for level in nearest]
