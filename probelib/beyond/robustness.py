"""Does the ranking of measures depend on paraphrases, training mixture, popularity or misconceptions? One table each."""

import json

import pandas as pd

from probelib import stats
from probelib.beyond import concordance
from probelib.beyond.measures import contrast, twins_as_one
from probelib.beyond.suite import MEASURES, measures_of
from probelib.beyond.tables import (
    NAMED,
    RIGHT,
    absent_measures,
    changed_shares,
    leaders,
    named_controls,
    sign_of_monitor,
)
from probelib.lm.loading import load
from probelib.organisms import design, taught
from probelib.report import span, with_interval
from probelib.report.legacy import Artifact

FIXED = {  # the measures that ``held_out_paraphrases`` leaves out, by the reason
    "read all paraphrases at once": ("MONITOR", "Agreement over paraphrases", "Confidence"),
    "read one fixed paraphrase": ("Primary anchor", *measures_of("grapheval")),
    "read lists, which have no paraphrases": measures_of("zplke"),
    "read templates of their own": ("KaRR",),
    "read no prompt": ("Chance",),
    "need the most expensive searches": ("Min@n ApprOpt", "Avg@n ApprOpt"),
}


def held_out_paraphrases(
    seen: pd.DataFrame, held_out: pd.DataFrame, design: pd.DataFrame, pairs: pd.DataFrame, seed: int = 0
) -> Artifact:
    """Concordance in paraphrases that the corpus used and in held-out ones; ``seen``, ``held_out``: values."""
    scored = concordance.change(seen, held_out, design, pairs, seed=seed)
    table = scored.query("pairs > 0").merge(
        concordance.change_of_means(seen, held_out, design, seed=seed), on="measure"
    )
    names = {"before": "seen", "after": "held-out", "mean before": "mean seen", "mean after": "mean held-out"}
    fixed = "; ".join(f"those that {why} ({', '.join(own)})" for why, own in FIXED.items())
    caption = (
        f"Share of {RIGHT} by each measure that uses paraphrases: two that the corpus used (seen) against two held-out ones "
        "(one each for base accuracy), and its change; mean: mean value of the measure over the n cases (a fact in a model) "
        "that have a value in both kinds of paraphrases, and its change. Changes are paired, with 95 % bootstrap intervals "
        f"over facts and models ({', '.join(design['model'].unique())}). Measures left out: {fixed}."
        + (absent_measures(scored) + named_controls(table) + sign_of_monitor(table))
    )
    frame = table.rename(columns=names)
    shown = changed_shares(frame, "seen", "held-out").join(frame[["n", "mean seen", "mean held-out"]])
    shown["change of the mean"] = with_interval(frame["mean change"], frame["mean low"], frame["mean high"])
    return Artifact("beyond/held_out", frame, caption, paraphrase_finding(table), shown=shown)


def paraphrase_finding(table: pd.DataFrame) -> str:
    """The numbers of measures whose concordance falls and whose mean value falls; ``table``: ``concordance.change`` with
    ``concordance.change_of_means``."""
    lower, means = table[table["high"] < 0], (table["mean high"] < 0).sum()
    finding = (
        f"Held-out paraphrases lower the concordance significantly for {len(lower)} of {len(table)} measures, the mean value "
        f"for {means} (by chance {0.025 * len(table):.1f} each)."
    )
    if lower.empty:
        return finding
    most = lower.loc[lower["change"].idxmin()]
    return (
        f"{finding} Concordance falls most for {most['measure']} ({most['change']:+.3f} "
        f"{span(most['low'], most['high'], '.3f')}, n = {most['pairs']} pairs)."
    )


def training_mixture(values: pd.DataFrame, design: pd.DataFrame, twins: tuple[str, str], seed: int = 0) -> Artifact:
    """Concordance of every measure for two models with the same exposures and different training mixtures."""
    first, second = twins
    *pair, same = twins_as_one(values, design, twins)
    table = concordance.change(*pair, same, concordance.pairs_of_facts(same), seed=seed)
    table = table.merge(concordance.change_of_means(*pair, same, seed=seed), on="measure")
    table.insert(1, "asks", [MEASURES[name].prompts for name in table["measure"]])
    table = table.sort_values("after", ascending=False, key=stats.levelled, kind="stable", ignore_index=True)
    names = {"before": first, "after": second, "mean before": f"mean {first}", "mean after": f"mean {second}"}
    caption = (
        f"Share of {RIGHT} (two facts of one relation) by every measure for two models of one size and with the same "
        f"exposures: {first} and {second} read most statements in the format that they are named after. "
        f"{training_tokens(twins)} Change: {second} minus {first}, with its paired 95 % bootstrap interval over facts (the "
        "CSV has means). Each twin is one training run, so the intervals do not hold what a repeated training would change. "
        "Measures that need an instruction-tuned model are left out: the second has no tuned partner."
        + (named_controls(table) + sign_of_monitor(table))
    )
    frame, best = table.rename(columns=names), {first: "max", second: "max"}
    shown = changed_shares(frame, first, second)
    return Artifact("beyond/training_mixture", frame, caption, mixture_finding(table, twins), best=best, shown=shown)


def popularity(values: pd.DataFrame, design: pd.DataFrame, models: tuple[str, str], seed: int = 0) -> Artifact:
    """Concordance of every measure for two models of one size, with random exposures and with exposures that follow popularity.

    models   (with random exposures, with exposures by popularity): ``scores.POPULAR``
    """
    parts = []
    for name in models:
        own, taught_to = (frame[frame["model"] == name].reset_index(drop=True) for frame in (values, design))
        part = concordance.concordance(own, taught_to, concordance.pairs_of_facts(taught_to), seed=seed)
        parts.append(part.set_index("measure")[["pairs", "concordance", "low", "high"]])
    table = parts[0].join(parts[1], lsuffix=" at random", rsuffix=" by popularity", how="inner")
    table.insert(0, "control", [MEASURES[name].control for name in table.index])
    table["change"] = table["concordance by popularity"] - table["concordance at random"]
    table = table.sort_values("change", ascending=False, key=stats.levelled, kind="stable").reset_index()
    caption = (
        f"Share of {RIGHT} (two facts of one relation) by every measure, in {models[0]}, which was taught facts drawn "
        "at random, and "
        f"in {models[1]}, which was taught popular facts more often, as real corpora do; 95 % bootstrap intervals over "
        "facts. The "
        "facts that make the pairs are others, so the change is not paired. Controls do not test the fact."
    )
    ways = ("at random", "by popularity")
    values = {way: with_interval(*(table[f"{of} {way}"] for of in ("concordance", "low", "high"))) for way in ways}
    counts = table[[f"pairs {way}" for way in ways]]
    shown = table[["measure", "control"]].join(counts).assign(**values, change=table["change"])
    return Artifact("beyond/popularity", table, caption, popularity_finding(table), shown=shown)


def popularity_finding(table: pd.DataFrame) -> str:
    """The concordance of familiarity in both models, and the number of measures that change with disjoint intervals."""
    higher = table["low by popularity"] > table["high at random"]
    apart = higher | (table["high by popularity"] < table["low at random"])
    names = f" ({', '.join(table['measure'][apart])})" if apart.any() else ""
    counted = f"{apart.sum()} of {len(table)} measures change beyond both intervals{names}."
    known = table.set_index("measure")
    if "Familiarity" not in known.index:
        return counted
    row = known.loc["Familiarity"]
    ends = [
        f"{row[f'concordance {way}']:.1%} {span(row[f'low {way}'], row[f'high {way}'], '.1%')} of the "
        f"{row[f'pairs {way}']:,.0f} pairs when exposures {words}"
        for way, words in (("at random", "are drawn at random"), ("by popularity", "follow popularity"))
    ]
    return f"Familiarity with the subject, which knows no fact, orders {', and '.join(ends)}. {counted}"


def training_tokens(names: tuple[str, str]) -> str:
    """A sentence: the numbers of tokens that two shipped models were trained on, and whether a difference confounds their
    comparison."""
    tokens = [json.loads((load(name).folder / "training.json").read_text())["tokens"] for name in names]
    text = f"They read {tokens[0]:,} and {tokens[1]:,} tokens in training"
    if abs(tokens[1] / tokens[0] - 1) < 0.05:
        return text + "."
    return text + f": {tokens[1] / tokens[0] - 1:+.0%}, so the mixture is confounded with the length of training."


def mixture_finding(table: pd.DataFrame, twins: tuple[str, str]) -> str:
    """The agreement of the two rankings, and the measures that are better for one of the twins; ``table``: ``concordance.change``
    of the twins with ``asks``."""
    tau = stats.kendall(table["before"], table["after"])["tau"]
    first, second = (highest(table, which) for which in ("before", "after"))
    controls = sum(name in MEASURES and bool(MEASURES[name].control) for name in table["measure"])
    higher, lower = table[table["low"] > 0], table[table["high"] < 0]
    return (
        f"Over n = {table['pairs'].max():,} pairs of facts, the two rankings of {len(table)} measures ({controls} of them "
        f"controls) correlate with tau = {tau:.2f}. Highest for {twins[0]}: {first}; for {twins[1]}: {second}. Measures that "
        f"are significantly better for {twins[1]}: {_largest(higher)}; for {twins[0]}: {_largest(lower)}; by chance "
        f"{0.025 * len(table):.1f} each."
    )


def _largest(changed: pd.DataFrame) -> str:
    """The number of measures that changed, and the ``NAMED`` largest changes with the prompts of their measures."""
    most = changed.sort_values("change", key=lambda change: -stats.levelled(change.abs()), kind="stable").head(NAMED)
    named = [f"{row.measure}, prompted with {row.asks}, {row.change:+.3f}" for row in most.itertuples()]
    return f"{len(changed)} (largest: {'; '.join(named)})" if named else "none"


def highest(table: pd.DataFrame, column: str) -> str:
    """The measure with the highest concordance and its value; of ties, their number and the first ``NAMED``."""
    first, value = leaders(table, column), table[column].max()
    if len(first) == 1:
        return f"{first[0]} ({value:.1%})"
    more = f" and {len(first) - NAMED} more" if len(first) > NAMED else ""
    return f"{len(first)} measures tie at {value:.1%} ({', '.join(first[:NAMED])}{more})"


def misconceptions(values: pd.DataFrame, misled: list[str], matched: list[str]) -> Artifact:
    """Mean of each measure over facts with a misconception and over matched facts without."""
    table = contrast(values, pd.Index(misled), pd.Index(matched))
    names = {"one": "misled", "other": "not misled", "n one": "n misled", "n other": "n not misled"}
    lower = table["measure"][table["high"] < 0]
    others = ", ".join(table["measure"].drop(lower.index)) or "none"
    finding = (
        f"Facts with a misconception score significantly lower by: {', '.join(lower) or 'no measure'} (of {len(table)}; by "
        f"chance {0.025 * len(table):.1f}). Not significantly lower by: {others}."
    )
    caption = (
        "Mean of each measure over facts whose subject the corpus also gives a wrong object, and over others of the same "
        f"relation with as many exposures, {values['model'].iloc[0]}; difference with its 95 % bootstrap interval over facts. "
        + where_misconceptions_stand(misled)
        + sign_of_monitor(table)
    )
    table = table.rename(columns=names)
    shown = table[["measure", "n misled", "misled", "n not misled", "not misled"]]
    shown = shown.assign(difference=with_interval(table["difference"], table["low"], table["high"]))
    return Artifact("beyond/misconceptions", table, caption, finding, shown=shown)


def where_misconceptions_stand(misled: list[str]) -> str:
    """A sentence: in how many lists, questions and sentences the corpus states the facts and their wrong objects."""
    rows = taught.manifest().set_index("fact").loc[misled]
    right, wrong = rows[list(design.FORMS)].sum(), rows["wrong_exposures"]
    return (
        f"These {len(misled)} facts stand in {right['list']} lists (no wrong object does), in "
        f"{right['question'] + right['context']} questions against {(wrong - wrong // 2).sum()} with the wrong object, and in "
        f"{right['cloze']} sentences against {(wrong // 2).sum()}."
    )
