"""MONITOR, section 5.2.1 by relation: tables 5, 10, 11 and coverage; MONITOR of models of equal accuracy."""

from collections.abc import Callable
from itertools import combinations

import numpy as np
import pandas as pd

from probelib.facts import Facts, substitute_relations
from probelib.monitor import measures
from probelib.monitor.measures import Measured
from probelib.published import table as published
from probelib.report import span, with_interval
from probelib.report.legacy import Artifact
from probelib.stats import mean_interval, p_value_in_words, percentile_interval, wilson

ALIKE = "within 5 points of accuracy and 15 points of coverage"  # the limits of ``alike_pairs``


def table5(measured: Measured, facts: Facts, relations: tuple[str, ...] = ("P178", "P108", "P37")) -> Artifact:
    """Three relations in detail, side by side."""
    chosen, note = substitute_relations(facts, list(relations))
    table, decimals = measured.models[["model", "parameters"]], {}
    shown = measured.models[["model"]].copy()
    for relation in chosen:
        columns = ["MONITOR", "low", "high", "avg acc", "probs", "coverage"]
        own = measures.in_relation(measured, relation)
        table = table.join(own.set_index("model")[columns].add_prefix(f"{relation}: "), on="model")
        decimals |= {f"{relation}: avg acc": 1, f"{relation}: coverage": 2}
        shown[f"{relation}: MONITOR"] = with_interval(own["MONITOR"], own["low"], own["high"], 2)
        shown[f"{relation}: avg acc"] = own["avg acc"]
        counts = (own["coverage"] * own["n"]).round().astype(int)
        pairs = zip(own["probs"].map("{:.2f}".format), counts, strict=True)
        shown[f"{relation}: probs (facts)"] = [f"{probs} ({count})" if count else "– (0)" for probs, count in pairs]
    caption = (
        "MONITOR with its 95 % bootstrap interval over facts, avg acc (percent of all facts), and mean primary anchor (probs) "
        f"with the number of anchored facts, over which MONITOR and probs are taken, in {numbers_of_facts(measured, chosen)}; "
        f"{facts.source}; a dash: no fact anchored. {note}"
    ).strip()
    finding = (
        f"{equal_accuracy(measured, chosen[-1])} Lowest MONITOR: {'; '.join(_lowest(measured, r) for r in chosen)}."
    )
    printed = published("monitor/table5").drop(columns="model_key")
    return Artifact("monitor/table5", table, caption, finding, published=printed, decimals=decimals, shown=shown)


def numbers_of_facts(measured: Measured, relations: list[str]) -> str:
    """The relations with their number of facts, for a caption."""
    counts = ((relation, measures.in_relation(measured, relation)["n"].iloc[0]) for relation in relations)
    return ", ".join(f"{relation} ({n} facts)" for relation, n in counts)


def equal_accuracy(measured: Measured, relation: str) -> str:
    """Whether models of nearly equal accuracy and coverage in a relation differ in MONITOR, the point of table 5."""
    table = measures.in_relation(measured, relation)
    pairs = alike_pairs(table)
    if not pairs:
        return f"No two models with a MONITOR in {relation} have nearly equal accuracy and coverage."
    rows = table.set_index("model")
    ends = [monitor_difference(measured, relation, *pair) for pair in pairs]
    first, second = (rows.loc[model] for model in pairs[0])
    apart = sum(low > 0 for low, _ in ends)
    return (
        f"That models of equal accuracy differ in MONITOR is {measures.judge_claim(*ends[0])}: in {relation}, {apart} of the "
        f"{len(pairs)} pairs {ALIKE} differ significantly (paired bootstrap; {0.05 * len(pairs):.1f} expected by chance). "
        f"Most: {pairs[0][0]} and {pairs[0][1]}, accuracies of {first['avg acc']:.1f} and {second['avg acc']:.1f} %, "
        f"{100 * first['coverage']:.0f} and {100 * second['coverage']:.0f} % anchored, mean primary anchors of "
        f"{first['probs']:.2f} and {second['probs']:.2f}, MONITOR {first['MONITOR']:.3f} and {second['MONITOR']:.3f} "
        f"({second['MONITOR'] - first['MONITOR']:+.3f} {span(*ends[0], '+.3f')}; paper: 51.4 and 51.2 %, probs 0.93 and 0.80, "
        "MONITOR 0.432 and 0.570)."
    )


def monitor_difference(measured: Measured, relation: str, first: str, second: str) -> tuple[float, float]:
    """The 95 % bootstrap interval of MONITOR of ``second`` minus that of ``first`` in a relation, paired over facts."""
    order = measured.models["model"].tolist()
    replicates = measured.replicates["MONITOR"][:, :, measures.position(measured, relation)]  # [times, models]
    return percentile_interval(replicates[:, order.index(second)] - replicates[:, order.index(first)])


def _lowest(measured: Measured, relation: str) -> str:
    """The model with the lowest MONITOR in a relation, and its paired difference to the next."""
    ranked = measures.in_relation(measured, relation).dropna(subset=["MONITOR"]).sort_values("MONITOR")
    if ranked.empty:
        return f"{relation}: no fact anchored"
    first = f"{relation}: {ranked['model'].iloc[0]} ({ranked['MONITOR'].iloc[0]:.3f}"
    if len(ranked) == 1:
        return f"{first}, the only model)"
    low, high = monitor_difference(measured, relation, *ranked["model"].iloc[:2])
    return f"{first}; next {ranked['MONITOR'].iloc[1] - ranked['MONITOR'].iloc[0]:+.3f} {span(low, high, '+.3f')})"


def table10(measured: Measured, facts: Facts) -> Artifact:
    """MONITOR of every relation and model."""
    wide, covered = _by_relation(measured, "MONITOR"), _by_relation(measured, "coverage")
    table = facts.relations[["relation", "name"]].merge(wide, on="relation")
    n = measured.relations["n"]
    each = f"{n.min()}" if n.min() == n.max() else f"{n.min()} to {n.max()}"
    half = ((measured.relations["high"] - measured.relations["low"]) / 2).median()
    caption = (
        f"MONITOR in every relation: lowest, median and highest of {wide.shape[1]} models, each over the anchored ones of {each} "
        f"facts per relation ({facts.source}; tables of single relations may have other facts); lower is better. In brackets: "
        "the model and its number of anchored facts. Half the 95 % bootstrap interval over facts of a model's value: "
        f"{half:.3f} (median, where there is an interval). The CSV has the values of all models, in the paper's form. A dash: no "
        "fact anchored."
    )
    printed = published("monitor/table10").pivot(index="relation", columns="model_key", values="MONITOR").reset_index()
    sizes = n.groupby(measured.relations["relation"], sort=False).first()
    finding = f"{finding_by_relation(wide, covered, sizes)}{significantly_lowest(measured, wide)}"
    counts = covered.mul(sizes, axis=0).round()
    shown = ends_of_models(
        table, wide, lambda r, model: (f"{wide.loc[r, model]:.3f}", f"{model}, {counts.loc[r, model]:.0f}")
    )
    return Artifact("monitor/table10", table, caption, finding, published=printed, shown=shown)


def ends_of_models(table: pd.DataFrame, wide: pd.DataFrame, texts: Callable) -> pd.DataFrame:
    """The printed table: per relation the lowest, median and highest value of the models.

    wide    one row per relation, one column per model
    texts   (relation, model) -> its value, and the text in brackets after it
    """
    shown = table[[column for column in table if column not in wide]].copy()
    for which in ("idxmin", "idxmax"):
        ends = {r: getattr(row, which)() for r, row in wide.dropna(how="all").iterrows()}
        cells = {}
        for r, model in ends.items():
            value, label = texts(r, model)
            cells[r] = f"{value} ({label}{first_of_ties(wide.loc[r], model)})"
        shown[{"idxmin": "lowest", "idxmax": "highest"}[which]] = shown["relation"].map(cells).fillna("–")
    shown.insert(len(shown.columns) - 1, "median", wide.median(axis=1).reindex(table["relation"]).to_numpy())
    return shown


def first_of_ties(values: pd.Series, model: str) -> str:
    """A note if other models share the value of ``model``, the only one named; else "".

    >>> first_of_ties(pd.Series({"a": 0.5, "b": 0.5, "c": 0.1}), "a"), first_of_ties(pd.Series({"a": 0.5}), "a")
    (', first of 2 ties', '')
    """
    equal = int(np.isclose(values, values[model], rtol=1e-9, atol=0).sum())
    return f", first of {equal} ties" if equal > 1 else ""


def significantly_lowest(measured: Measured, wide: pd.DataFrame) -> str:
    """In how many relations the lowest MONITOR differs significantly from the next one, in a sentence; "" for one model."""
    pairs = {r: row.dropna().sort_values().index[:2] for r, row in wide.iterrows() if row.notna().sum() > 1}
    if not pairs:
        return ""
    lows = [monitor_difference(measured, relation, *pair)[0] for relation, pair in pairs.items()]
    apart = sum(low > 0 for low in lows)
    return (
        f" The lowest differs significantly from the next one in {apart} of {len(pairs)} relations (paired bootstrap)."
    )


def coverage(measured: Measured, facts: Facts) -> Artifact:
    """The share of anchored facts of every relation and model: the facts that table 10 is computed from."""
    covered = _by_relation(measured, "coverage")
    table = facts.relations[["relation", "name"]].merge(covered, on="relation")
    n = measured.relations.groupby("relation")["n"].first()[covered.index]
    table.insert(2, "n", table["relation"].map(n))
    caption = (
        f"Share of the n facts of each relation ({facts.source}) that a model anchors (it answers with the gold object after "
        f"the positive context): lowest, median and highest of {covered.shape[1]} models. In square brackets: the 95 % Wilson "
        "interval over facts of this model's share; in round brackets: the model, of tied ones the first. Where the intervals "
        "of a row overlap, its lowest and highest may be chance. The CSV has all models."
    )
    ends = {m: pd.DataFrame(map(wilson, (covered[m] * n).round(), n), n.index, ["low", "high"]) for m in covered}
    texts = {m: with_interval(covered[m], own["low"], own["high"], 2) for m, own in ends.items()}
    shown = ends_of_models(table, covered, lambda r, model: (texts[model][r], model))
    table["median"] = shown["median"]
    for model, own in ends.items():
        table = table.join(own.add_prefix(f"{model} "), on="relation")
    finding = finding_coverage(measured.models, int(table["n"].sum()))
    return Artifact("monitor/coverage", table, caption, finding, decimals=2, shown=shown)


def finding_coverage(models: pd.DataFrame, n: int) -> str:
    """The models that anchor the fewest and the most of the ``n`` facts, and whether models are scored on different facts.

    >>> finding_coverage(pd.DataFrame({"model": ["a", "b"], "coverage": [0.2, 0.7]}), 10)
    'Of all 10 facts, a anchors the fewest, 20 % [6, 51], and b the most, 70 % [40, 89]: models are scored on different facts.'
    """
    ends = []
    for at in (models["coverage"].idxmin(), models["coverage"].idxmax()):
        model, share = models["model"][at], models["coverage"][at]
        low, high = wilson(round(share * n), n)
        ends.append((model, f"{100 * share:.0f} % {span(100 * low, 100 * high, '.0f')}"))
    (fewest, least), (most, highest) = ends
    if fewest == most or models["coverage"].nunique() == 1:
        return f"Of all {n} facts, {least} are anchored by each model."
    return (
        f"Of all {n} facts, {fewest} anchors the fewest, {least}, and {most} the most, {highest}: models are scored on "
        "different facts."
    )


def _by_relation(measured: Measured, column: str) -> pd.DataFrame:
    """A column of ``Measured.relations`` with one row per relation and one column per model."""
    wide = measured.relations.pivot(index="relation", columns="model", values=column)
    return wide.reindex(measured.relations["relation"].unique())[measured.models["model"].tolist()].rename_axis(
        "relation"
    )


def finding_by_relation(wide: pd.DataFrame, covered: pd.DataFrame, sizes: pd.Series) -> str:
    """In how many relations each model has the lowest MONITOR, how often with a low coverage, and how many values are computed
    from fewer than four facts. ``sizes``: facts per relation."""
    best = wide.dropna(how="all").idxmin(axis=1)
    if best.empty:
        return "No model anchors a fact of any relation, so none is the best in one."
    thin = [r for r, model in best.items() if covered[model][r] < covered.loc[r].max() / 2]
    counts = ", ".join(f"{model} ({k})" for model, k in best.value_counts().items())
    few = (covered.mul(sizes, axis=0).round() < 4).to_numpy() & wide.notna().to_numpy()
    return (
        f"Lowest MONITOR, by number of relations: {counts}. In {len(thin)} of {len(best)} relations that model anchors fewer "
        "than half as many facts as another one, so the two are not compared on the same facts. "
        f"{few.sum()} of {wide.notna().to_numpy().sum()} numbers rest on fewer than four facts."
    )


def table11(measured: Measured) -> Artifact:
    """The correlation of MONITOR with accuracy in every relation."""
    table = measures.correlations_by_relation(measured)
    caption = (
        f"Pearson correlation over models of MONITOR and avg acc in each of {len(table)} relations, with its 95 % interval "
        "(Fisher's z), the two-sided p and p after Holm's correction; r anchored, p anchored: the same with the "
        "accuracy over each model's anchored facts alone, as the released code counts; n: models with an anchored fact; a "
        "dash: fewer than three, or no spread. Rows: relations in the order of the facts; in the atlas, the paper's come first."
    )
    shown = table[["relation", "n", "r", "p", "p Holm", "r anchored", "p anchored"]].copy()
    shown["r"] = with_interval(table["r"], table["low"], table["high"], 2)
    shown["r anchored"] = with_interval(table["r anchored"], table["anchored low"], table["anchored high"], 2)
    for column in ("p", "p Holm", "p anchored"):
        shown[column] = table[column].map(p_value_in_words)
    printed = published("monitor/table11")
    finding = finding11(table, printed["pearson_r"])
    return Artifact("monitor/table11", table, caption, finding, published=printed, shown=shown)


def finding11(table: pd.DataFrame, paper: pd.Series) -> str:
    """In how many relations r is negative and significant, and its mean over all facts, over the anchored ones and in the
    ``paper``.

    >>> row = {"r": [-0.9, 0.1], "p": [0.01, 0.6], "p Holm": [0.02, 0.6], "r anchored": [-0.9, -0.8], "p anchored": [0.01, 0.02]}
    >>> said = finding11(pd.DataFrame(row), pd.Series([-0.7, -0.9]))
    >>> said[:75], "alone (paper: -0.80 [-0.90, -0.70])" in said
    ('r is negative in 1 of 2 relations, significant in 1, and in 1 after correct', True)
    """
    if table["r"].isna().all():
        return "In no relation three models have a MONITOR, so there is nothing to correlate."
    negative, n = (table["r"] < 0).sum(), table["r"].notna().sum()
    firm = (table["p Holm"] < 0.05).sum()
    said = "shown" if firm > n / 2 else "shown in its sign only" if negative > 3 * n / 4 else "not shown"
    return (
        f"r is negative in {negative} of {n} relations, significant in {(table['p'] < 0.05).sum()}, and in {firm} after "
        f"correction (paper: 20 of 20, 19, and 14): that MONITOR falls with accuracy in each relation is **{said}** here. "
        f"Mean r with its 95 % bootstrap interval over relations: {mean_of_r(table['r'])} over all facts, "
        f"{mean_of_r(table['r anchored'])} over the anchored facts alone (paper: {mean_of_r(paper)}). The relations share "
        "their models, so these intervals do not tell how other models would come out."
    )


def mean_of_r(values: pd.Series) -> str:
    """The mean of correlations with its 95 % bootstrap interval.

    >>> mean_of_r(pd.Series([-0.9, -0.7]))
    '-0.80 [-0.90, -0.70]'
    """
    return f"{values.mean():.2f} {span(*mean_interval(values))}"


def similar_models(measured: Measured, facts: Facts, relation: str = "P37") -> list[str]:
    """The models of section 5.2.3: similar accuracy in a relation, different MONITOR, the more reliable one first; one model
    if no two have a MONITOR."""
    (relation,), _ = substitute_relations(facts, [relation])
    table = measures.in_relation(measured, relation)
    return list(like_pair(table) or table.sort_values("MONITOR")["model"][:1])


def alike_pairs(table: pd.DataFrame) -> list[tuple[str, str]]:
    """The pairs of models with nearly the same average accuracy and coverage (``ALIKE``), the one that differs most in MONITOR
    first; in each pair the model with the lower MONITOR comes first.

    table    ``model``, ``MONITOR``, ``avg acc`` (percent), ``coverage`` (share)
    """
    rows = table.dropna(subset=["MONITOR", "avg acc"]).sort_values("MONITOR").to_dict("records")
    apart = lambda pair, column: abs(pair[1][column] - pair[0][column])
    alike = [p for p in combinations(rows, 2) if apart(p, "avg acc") <= 5 and apart(p, "coverage") <= 0.15]
    alike.sort(key=lambda pair: -apart(pair, "MONITOR"))
    return [(first["model"], second["model"]) for first, second in alike]


def like_pair(table: pd.DataFrame) -> tuple[str, str] | None:
    """The first of the ``alike_pairs``; if there is none, the two models closest in accuracy; None if fewer than two models have
    a MONITOR."""
    known = table.dropna(subset=["MONITOR", "avg acc"]).sort_values("MONITOR")
    if len(known) < 2:
        return None
    accuracy = dict(zip(known["model"], known["avg acc"], strict=True))
    closest = min(combinations(accuracy, 2), key=lambda pair: abs(accuracy[pair[0]] - accuracy[pair[1]]))
    return next(iter(alike_pairs(table)), closest)
