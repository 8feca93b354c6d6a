"""MONITOR, section 6: which words an answer depends on, whether fewer prompts suffice, and MONITOR under other decisions."""

from itertools import combinations

import numpy as np
import pandas as pd

from probelib.facts import Facts, substitute_relations
from probelib.monitor import alternatives, measures
from probelib.monitor.figures import BLUE, ORANGE, counted_facts, covered_relation
from probelib.monitor.measures import Measured
from probelib.published import table as published
from probelib.report import model_style, span, subplots, with_interval
from probelib.report.legacy import Artifact
from probelib.stats import in_words, kendall, mean_interval, nanmean, p_value_in_words, pearson, percentile_interval


def extremes(measured: Measured, facts: Facts, relation: str) -> list[str]:
    """The models with the lowest and the highest MONITOR in a relation, among those that anchor half of its facts (among all, if
    fewer than two do); the first model if none has a MONITOR."""
    (relation,), _ = substitute_relations(facts, [relation])
    ranked = measures.in_relation(measured, relation).dropna(subset=["MONITOR"]).sort_values("MONITOR")
    half = ranked[ranked["coverage"] >= 0.5]
    names = (half if len(half) > 1 else ranked)["model"]
    return list(dict.fromkeys(names.iloc[[0, -1]] if len(names) else list(measured.facts)[:1]))


def figure5(attributions: pd.DataFrame, gold: str, measured: Measured, facts: Facts, relation: str = "P37") -> Artifact:
    """Heat maps of the words that an answer depends on, one per model.

    attributions        ``scores.attribute``;   gold: label of the gold answer
    measured, relation  as in ``extremes``, which chose the models
    """
    models, top = attributions["model"].unique(), attributions["score"].max()
    figure, axes = subplots(5.2, 1.15 * len(models) + 0.3, len(models))
    for axis, (model, rows) in zip(axes[:, 0], attributions.groupby("model", sort=False), strict=True):
        picture = axis.imshow(rows["score"].to_numpy()[None], aspect="auto", cmap="cividis", vmin=0, vmax=top)
        for x, value in enumerate(rows["score"]):
            colour = "black" if value > 0.6 * top else "white"
            axis.text(x, 0, f"{value:.2f}", ha="center", va="center", fontsize=9.5, color=colour)
        axis.set_xticks(range(len(rows)), rows["word"], fontsize=9.5, rotation=30, ha="right", rotation_mode="anchor")
        of = rows.iloc[0]
        mark = {True: "✓", False: "✗"}[bool(of["correct"])]
        axis.set_title(f'{model}: "{of["begins"]}" {mark} (P = {of["probability"]:.2f})', fontsize=10)
        axis.set_yticks([])
        axis.grid(False)
    figure.colorbar(picture, ax=axes[:, 0].tolist(), label="share", shrink=0.9)
    caption = (
        f"Attribution of the first answer token to the words of a prompt with a negative context (gold answer: {gold}) by "
        "integrated gradients: what raises its probability P above that of the baseline, the mean embedding; L2 norm over the "
        f"embedding dimension, as a share; the parts add up to the difference within {100 * attributions['error'].max():.2g} %. "
        f"Models: {monitors_in_words(measured, models, facts, relation)}, of those that anchor half of the facts; the prompt is "
        "one that the first answers and the second answers with the distractor, where there is one."
    )
    frame = attributions[["model", "word", "prepended", "signed", "score", "probability", "baseline"]]
    finding = finding5(attributions)
    alt = f"A row of words per model, darker where less of the answer comes from. {finding}"
    return Artifact("monitor/figure5", frame, caption, finding, figure=figure, alt=alt)


def monitors_in_words(measured: Measured, models: list[str], facts: Facts, relation: str) -> str:
    """MONITOR of the models of figure 5, for its caption."""
    (relation,), _ = substitute_relations(facts, [relation])
    values = measures.in_relation(measured, relation).set_index("model")["MONITOR"]
    listed = " and ".join(f"{model} {values[model]:.3f}" for model in models)
    claims = published("monitor/claims").set_index("claim")["value"]
    paper = (
        f"OPT-2b7 {claims['attribution_opt27b_monitor_p37']}, BLOOMZ-3b {claims['attribution_bloomz3b_monitor_p37']}"
    )
    return f"the lowest and the highest MONITOR in {relation} ({listed}; paper, in P37: {paper})"


def finding5(attributions: pd.DataFrame) -> str:
    """The share of the distractor in both models, and each model's answer."""
    groups = attributions.groupby("model", sort=False)
    listed = [
        f"{rows.loc[rows['prepended'].astype(bool), 'score'].sum():.2f} in {model} (which begins with "
        f"{rows['begins'].iloc[0]!r}, {'right' if rows['correct'].iloc[0] else 'wrong'})"
        for model, rows in groups
    ]
    return f"The distractor's share of the attribution is {' and '.join(listed)}. One prompt is an example and no evidence."


def attention(shares: pd.DataFrame) -> Artifact:
    """The distractor's share of the attribution over several facts. ``shares``: ``scores.context_shares``."""
    caption = (
        "Share of the distractor before the question in the attribution of the first answer token (integrated gradients), "
        f"one row per fact ({shares['fact'].nunique()} facts, one prompt each), one column per model; even: the share if all "
        "words counted equally; the model with the lower MONITOR comes first. The prompts are chosen: "
        f"{shares.attrs['misprimed']} of them are answered by the first model only, which favours it. The finding has the "
        "means with 95 % bootstrap intervals."
    )
    finding = context_attention(shares)
    return Artifact("monitor/attention", shares, caption, finding, decimals=2, shown=shares_by_fact(shares))


def shares_by_fact(shares: pd.DataFrame) -> pd.DataFrame:
    """One row per fact, one column per model, and ``even``.

    >>> rows = {"model": ["b", "a"], "fact": "x", "share": [0.1, 0.3], "even": 0.2}
    >>> shares_by_fact(pd.DataFrame(rows)).to_numpy().tolist()
    [['x', 0.1, 0.3, 0.2]]
    """
    wide = shares.pivot(index="fact", columns="model", values="share")
    wide = wide.reindex(shares["fact"].unique())[shares["model"].unique().tolist()]
    wide["even"] = shares.groupby("fact")["even"].first()
    return wide.rename_axis("fact").rename_axis(None, axis=1).reset_index()


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
        f"{said} Difference {(first - last).mean():+.2f} {span(low, high, '+.2f')}: that the more reliable model looks less "
        f"at it is {measures.judge_claim(low, high, -1)}; {shares.attrs['misprimed']} of the prompts are answered by the "
        "first model only."
    )


def fewer_frames(measured: Measured, subsets: pd.DataFrame, relation: str) -> pd.DataFrame:
    """One row per model: MONITOR with ``all frames``, ``low``, ``high``, with the ``first frames``, ``first low``, ``first
    high``, and the ``least`` and the ``most`` over all choices (``alternatives.frame_subsets``)."""
    full = measures.in_relation(measured, relation)[["model", "MONITOR", "low", "high"]]
    first = alternatives.with_frames(measured, relation, list(subsets["frames"].iloc[0]))
    full = full.merge(first[["model", "low", "high"]].add_prefix("first ").rename(columns={"first model": "model"}))
    groups = subsets.groupby("model")["MONITOR"]
    table = full.rename(columns={"MONITOR": "all frames"})
    ends = {"first frames": groups.first(), "least": groups.min(), "most": groups.max()}
    return table.assign(**{column: table["model"].map(values) for column, values in ends.items()})


def figure6(measured: Measured, facts: Facts, relation: str = "P178", n_frames: int = 4) -> Artifact:
    """MONITOR with fewer frames against MONITOR with all of them."""
    relation, note = covered_relation(measured, facts, relation)
    subsets = alternatives.frame_subsets(measured, relation, n_frames)
    table = fewer_frames(measured, subsets, relation)
    few, most = len(subsets["frames"].iloc[0]), alternatives.n_frames(measured, relation)
    figure, ((axis,),) = subplots(4.0, 4.4)
    columns = ["model", "all frames", "first frames", "least", "most"]
    for model, x, y, least, highest in table.dropna(subset=columns[1:3])[columns].itertuples(index=False):
        look = model_style(model) | {"linestyle": "none"}
        axis.plot(x, y, label=model, **look)
        axis.plot([x, x], [least, highest], color=look["color"], linewidth=1, zorder=0)
    low, _ = axis.get_xlim()
    axis.axline((low, low), slope=1, color="0.6", linewidth=0.8, linestyle=":")
    axis.set(xlabel=f"MONITOR with all {most} frames", ylabel=f"with {few} frames")
    if axis.get_legend_handles_labels()[0]:
        figure.legend(loc="outside lower center", ncols=2)
    r = in_words(pearson(table["all frames"], table["first frames"]))
    caption = (
        f"MONITOR in {relation} over {counted_facts(measured, relation)}, with all {most} frames against the first {few} "
        f"(mark) and every choice of {few} (line: least to most); dotted: equal. Correlation: {r}. {note}"
    ).strip()
    alt = "Scatter of MONITOR with fewer frames over MONITOR with all of them."
    halves = alternatives.frame_subsets(measured, relation, most - few) if most > few else subsets[:0]
    finding = finding6(subsets, measures.in_relation(measured, relation), halves)
    return Artifact("monitor/figure6", table, caption, finding, figure=figure, alt=alt)


def finding6(subsets: pd.DataFrame, full: pd.DataFrame, others: pd.DataFrame) -> str:
    """How far the ranking of models depends on the choice of frames. ``others``: ``frame_subsets`` of the remaining number of
    frames, for rankings that share no frame."""
    wide = subsets.pivot(index="frames", columns="model", values="MONITOR")[full["model"]]
    taus = np.array([kendall(full["MONITOR"], row)["tau"] for row in wide.to_numpy()])
    if not np.isfinite(taus).any():
        return "Too few models have a MONITOR to rank them."
    change = np.nanmean(np.abs(wide.to_numpy() - full["MONITOR"].to_numpy()))
    printed = published("monitor/figure10")
    paper = in_words(pearson(printed["MONITOR_7_prompts"], printed["MONITOR_4_prompts"]))
    return (
        f"Over all {len(wide)} choices of frames, Kendall's tau with the full ranking is {np.nanmin(taus):.2f} to "
        f"{np.nanmax(taus):.2f} (median {np.nanmedian(taus):.2f}), and a score changes by {change:.3f} on average; the "
        "frames are part of the full set, so this is high by construction. "
        f"{disjoint(alternatives.taus_of_halves(subsets, others))} In the paper, for one choice: {paper}."
    )


def disjoint(taus: np.ndarray) -> str:
    """A sentence on the agreement of rankings that share no frame.

    >>> disjoint(np.array([0.5, 0.7, 0.9]))[:75]
    'Between rankings by disjoint frames tau is 0.50 to 0.90 (median **0.70**). '
    """
    taus = taus[np.isfinite(taus)]
    if not len(taus):
        return "There are too few frames for two disjoint rankings."
    ends = f"{taus.min():.2f} to {taus.max():.2f} (median **{np.median(taus):.2f}**)"
    return (
        f"Between rankings by disjoint frames tau is {ends}. They still share the distractors and the primary anchors, so this "
        "tau flatters."
    )


def figure10(measured: Measured, facts: Facts, relation: str = "P178", n_frames: int = 4) -> Artifact:
    """The ranking of models with all frames and with the first ones, as bars."""
    relation, note = covered_relation(measured, facts, relation)
    subsets = alternatives.frame_subsets(measured, relation, n_frames)
    few, most = len(subsets["frames"].iloc[0]), alternatives.n_frames(measured, relation)
    table = fewer_frames(measured, subsets, relation)
    bars = table.dropna(subset=["all frames"]).sort_values("all frames").reset_index(drop=True)
    missing = len(table) - len(bars)
    figure, ((axis,),) = subplots(4.2, 0.3 * len(bars) + 1.0)
    y = np.arange(len(bars))
    ends = bars[["high", "first high"]].max(axis=1).fillna(bars["all frames"])
    looks = (
        ("all frames", "low", "high", -0.15, {"color": BLUE, "fmt": "o", "label": f"{most} frames"}),
        ("first frames", "first low", "first high", 0.15, {"color": ORANGE, "fmt": "s", "label": f"{few} frames"}),
    )
    for column, low, high, shift, look in looks:
        error = [bars[column] - bars[low], bars[high] - bars[column]]
        axis.errorbar(bars[column], y + shift, xerr=error, capsize=2, markersize=4, linewidth=1, **look)
    for place, end, values in zip(y, ends, bars[["all frames", "first frames"]].to_numpy(), strict=True):
        axis.text(end, place, "  {:.3f}, {:.3f}".format(*values), va="center", fontsize=8)
    axis.set(xlabel="MONITOR", xlim=(0, 1.45 * ends.max() if len(bars) else 1))
    axis.set_yticks(y, bars["model"])
    axis.invert_yaxis()
    figure.legend(loc="outside upper center", ncols=2)
    caption = (
        f"MONITOR in {relation} with {most} and with the first {few} frames, over {counted_facts(measured, relation)}, "
        "models in the order of the former; bars: 95 % bootstrap interval over facts; right: both values"
        f"{f'; {missing} models without an anchored fact are left out' * bool(missing)}. {note}"
    ).strip()
    replicates = measured.replicates["MONITOR"][:, :, measures.position(measured, relation)]
    finding = finding10(table, replicates, few) if len(bars) else ""
    return Artifact("monitor/figure10", bars, caption, finding, figure=figure, alt=f"Two marks per model. {finding}")


def finding10(table: pd.DataFrame, replicates: np.ndarray, few: int) -> str:
    """Whether fewer frames keep the order of the models that differ significantly with all frames.

    table       ``fewer_frames``: one row per model
    replicates  bootstrap replicates of MONITOR with all frames [times, models]
    """
    every, first = table["all frames"].to_numpy(float), table["first frames"].to_numpy(float)
    kept = {True: [], False: []}  # whether a pair differs significantly -> whether its order is kept
    for i, j in combinations(np.flatnonzero(np.isfinite(every)), 2):
        low, high = percentile_interval(replicates[:, i] - replicates[:, j])
        kept[bool(low > 0 or high < 0)].append((every[i] - every[j]) * (first[i] - first[j]) > 0)
    lost, clear, near = kept[True].count(False), len(kept[True]), len(kept[False])
    said = "not decided here" if not clear else "not shown here" if lost else "shown here for the models that differ"
    return (
        f"That {few} frames rank the models as all do is {said}: of the {clear} pairs of models that differ significantly "
        f"(paired bootstrap over facts), they reverse {lost}; of the {near} other pairs, {kept[False].count(False)}. MONITOR "
        f"changes by {np.nanmean(np.abs(every - first)):.3f} on average (paper: 0.005), tau of the rankings is "
        f"{kendall(every, first)['tau']:.2f}. The {few} frames are among all, so some agreement is by construction."
    )


def sensitivity(decisions: dict[str, pd.DataFrame], measured: Measured) -> Artifact:
    """MONITOR under other ``decisions`` (``alternatives.decisions``, ``decisions_on_subset``), and the change of the ranking."""
    names = measured.models["model"].tolist()
    table = pd.DataFrame({decision: found["MONITOR"] for decision, found in decisions.items()}).T.reindex(columns=names)
    values = table.to_numpy(float)
    taus = [kendall(values[0], row)["tau"] if np.isfinite(row).sum() > 2 else np.nan for row in values]
    table = (
        table.rename_axis("decision")
        .reset_index()
        .assign(
            tau=taus,
            change=largest_changes(table),
            facts=[found["facts"].max() for found in decisions.values()],
            fewest=[found["counted"].min() for found in decisions.values()],
            most=[found["counted"].max() for found in decisions.values()],
        )
    )
    half = ((measured.models["high"] - measured.models["low"]) / 2).median()
    caption = (
        "MONITOR under other decisions, mean over relations; a row about one relation names it. Facts: those that were "
        "scored; counted: those that MONITOR rests on, from the model with the fewest to the one with the most. Lowest, highest: "
        "value and model. Change: the largest of one model, from the first row, or from the row before on the same facts. Tau: "
        "Kendall's tau of the ranking with that of the first row, for three models or more. A dash: no fact counts, or not "
        "measured (the released algorithm runs on two models only). A number from few facts is an example. Half the 95 % "
        f"bootstrap interval over facts of a value in the first row: {half:.3f} (median). The CSV has all models."
    )
    finding = finding_of_sensitivity(table, names) + tau_of_resampling(measured)
    return Artifact(
        "monitor/sensitivity", table, caption, finding, decimals={"tau": 2}, shown=shown_decisions(table, names)
    )


def largest_changes(table: pd.DataFrame) -> list[float]:
    """The largest absolute change of a model's MONITOR by each decision (a row): from the first row, or from the row before,
    which is about the same facts ("the same, ..."); NaN for rows as here.

    >>> rows = {"as here": [0.2, 0.3], "all": [0.25, 0.2], "4 facts, as here": [0.1, 0.2], "the same, released": [0.4, np.nan]}
    >>> np.round(largest_changes(pd.DataFrame(rows).T), 2).tolist()
    [nan, 0.1, nan, 0.3]
    """
    changes, values = [], table.to_numpy(float)
    for place, decision in enumerate(table.index):
        reference = values[place - 1] if decision.startswith("the same, ") else values[0]
        known = np.abs(values[place] - reference)[np.isfinite(values[place] - reference)]
        changes.append(np.nan if decision.endswith("as here") or not len(known) else known.max())
    return changes


def shown_decisions(table: pd.DataFrame, names: list[str]) -> pd.DataFrame:
    """The printed table of decisions: only the models with the lowest and the highest MONITOR, and the numbers of facts."""
    values = table.set_index("decision")[names].astype(float)
    ends = {"lowest": values.dropna(how="all").idxmin(axis=1), "highest": values.dropna(how="all").idxmax(axis=1)}
    shown = table[["decision", "facts"]].copy()
    counts = table[["fewest", "most"]].itertuples(index=False)
    shown["counted"] = [f"{fewest}" if fewest == most else f"{fewest} to {most}" for fewest, most in counts]
    for name, models in ends.items():
        texts = {decision: f"{values.loc[decision, model]:.3f} ({model})" for decision, model in models.items()}
        shown[name] = shown["decision"].map(texts).fillna("–")
    return shown.assign(change=table["change"], tau=table["tau"])


def tau_of_resampling(measured: Measured) -> str:
    """A sentence on how far resampled facts change the ranking of the models: the reference for a decision's tau."""
    replicates = nanmean(measured.replicates["MONITOR"], 2)  # [times, models]
    taus = np.array([kendall(measured.models["MONITOR"], row)["tau"] for row in replicates])
    if not np.isfinite(taus).any() or replicates.shape[1] < 3:
        return ""
    low, high = percentile_interval(taus)
    return f" Resampling the facts alone gives a tau of {np.nanmedian(taus):.2f} {span(low, high)}."


def finding_of_sensitivity(table: pd.DataFrame, names: list[str]) -> str:
    """Which decision about the same answers changes MONITOR most, and which one the ranking. The rows before the first subset
    ("..., as here") are about the same answers."""
    others = [d for d in table["decision"] if d.endswith(", as here")]
    rows = table.iloc[: table["decision"].tolist().index(others[0]) if others else len(table)].set_index("decision")
    change, taus = rows["change"].iloc[1:], rows["tau"].iloc[1:]
    if change.isna().all():
        return "No model has a MONITOR under any decision."
    cued = table.set_index("decision")[names].astype(float).loc["the same, with an answer cue"]
    ranking = f" The ranking changes most with {taus.idxmin()} (tau {taus.min():.2f})." if taus.min() < 1 else ""
    return (
        f"Of the decisions about the same answers, **{change.idxmax()}** changes MONITOR most (by up to {change.max():.3f})."
        f"{ranking} With an answer cue {cued.isna().sum()} of {len(names)} models anchor no fact."
        f"{order_on_common(rows, names)}{released_in_words(table, names)}"
    )


def order_on_common(rows: pd.DataFrame, names: list[str]) -> str:
    """A sentence if the model with the lowest MONITOR is another one over the facts that all models anchor; else ""."""
    common = [decision for decision in rows.index if decision.startswith("facts anchored by all")]
    if not common or rows.loc[common[0], names].isna().all():
        return ""
    here, there = (rows.loc[decision, names].astype(float).idxmin() for decision in (rows.index[0], common[0]))
    if here == there:
        return ""
    values = f"{here} {rows[here][common[0]]:.3f}, {there} {rows[there][common[0]]:.3f}"
    return f" {here} has the lowest MONITOR in the first row, {there} over the {rows['facts'][common[0]]} {common[0]}: {values}."


def released_in_words(table: pd.DataFrame, names: list[str]) -> str:
    """A sentence on how the released algorithm changes MONITOR; "" if it was not run."""
    places = table.index[table["decision"] == "the same, as released"]
    if not len(places):
        return ""
    here, released = (table.loc[place, names].astype(float) for place in (places[0] - 1, places[0]))
    listed = "; ".join(f"{m} {here[m]:.3f} to {released[m]:.3f}" for m in released.dropna().index)
    subset = table["decision"][places[0] - 1].removesuffix(", as here")
    fewest, most = table.loc[places[0], ["fewest", "most"]]
    counted = f"{subset} of which {fewest} to {most} count"
    if not listed:
        return ""
    return (
        " The released algorithm follows the tokens that the model generates after the positive context, where the kit scores "
        f"the gold answer. Example, on {counted}: MONITOR changes as follows: {listed}."
    )


def readings(found: pd.DataFrame) -> Artifact:
    """The correlation with accuracy under each reading of accuracy. ``found``: ``alternatives.readings_of_accuracy``."""
    caption = (
        "Pearson's r over n models of MONITOR with the average accuracy, for each set of runs and each denominator, with its "
        "95 % interval (Fisher's z). grid: all frames with all negative contexts (used here); none+neg: those and no context; "
        "released13: the prompts of the released script; none: all frames without context; base: frame 1 without context."
    )
    shown = found[["runs", "denominator", "r", "p", "n"]].copy()
    shown["r"] = with_interval(found["r"], found["low"], found["high"], 2)
    shown["p"] = found["p"].map(p_value_in_words)
    return Artifact("monitor/readings", found, caption, readings_in_short(found), shown=shown)


def readings_in_short(readings: pd.DataFrame) -> str:
    """The range of the correlation over readings, by denominator (``alternatives.readings_of_accuracy``)."""
    known = readings.dropna(subset="r")
    if known.empty:
        return "Too few models have a MONITOR to correlate it with accuracy."
    groups = known.groupby("denominator")["r"]
    ranges = [f"{r.min():.2f} to {r.max():.2f} over {which}" for which, r in groups]
    between, within = np.ptp(groups.mean()), groups.apply(np.ptp).max()
    more = "which facts count decides more than which runs do" if between > within else "no denominator decides it"
    return (
        f"r lies at {' and at '.join(ranges)}: {more}. A fact that is not anchored lowers the accuracy over all facts, but "
        "it does not enter MONITOR."
    )
