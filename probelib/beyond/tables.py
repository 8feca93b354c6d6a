"""Tables beyond the papers: measured numbers in, ``report.Artifact`` out."""

import numpy as np
import pandas as pd

from probelib import stats
from probelib.beyond import audit, concordance, measures
from probelib.beyond.measures import EXPOSED, all_statistics, calibration_errors, change_of_tau
from probelib.beyond.suite import MEASURES
from probelib.facts.model import Facts
from probelib.report import side_by_side, span, with_interval
from probelib.report.legacy import Artifact

TAUGHT = 8  # exposures from which a fact counts as taught, for calibration
NAMED = 3  # measures that a finding names, where many are alike
MONITOR_SIGN = " MONITOR is shown as -MONITOR: as for all measures, the higher, the better known."


def sign_of_monitor(table: pd.DataFrame) -> str:
    """A sentence of a caption on the sign of MONITOR, if it is among the ``measure`` of ``table``; otherwise ""."""
    return MONITOR_SIGN if "MONITOR" in set(table["measure"]) else ""


def named_controls(table: pd.DataFrame) -> str:
    """A sentence of a caption: the controls among the ``measure`` of ``table``; "" if there are none."""
    names = [name for name in table["measure"] if MEASURES[name].control]
    return f" Controls (they do not test the fact): {', '.join(names)}." if names else ""


def absent_measures(scored: pd.DataFrame) -> str:
    """A sentence of a caption: the measures without ``pairs``; "" if there are none."""
    absent = scored["measure"][scored["pairs"] == 0]
    if absent.empty:
        return ""
    return f" Absent, for they need an instruction-tuned partner in every model compared: {', '.join(absent)}."


def leaders(table: pd.DataFrame, column: str) -> list[str]:
    """The measures with the highest value of ``column``, ties included."""
    values = stats.levelled(table[column])
    return table["measure"][values == np.nanmax(values)].tolist()


# Do the published numbers hold?


def audit_failing(claims: pd.DataFrame) -> Artifact:
    """The claims that do not follow from their own tables; ``claims``: ``audit.table``."""
    failing = claims[claims["verdict"] == audit.FAILS].drop(columns="verdict")
    caption = f"The {len(failing)} claims that the printed numbers do not bear out, with what they give instead."
    counts = "; ".join(f"{paper}: {n}" for paper, n in failing["paper"].value_counts(sort=False).items()) or "none"
    finding = f"{len(failing)} of {len(claims)} claims do not hold ({counts})."
    return Artifact("beyond/audit_failing", failing, caption, finding)


def audited_claims(claims: pd.DataFrame) -> Artifact:
    """All claims with their verdicts."""
    held = claims["verdict"].isin([audit.HOLDS, audit.CAVEAT]).groupby(claims["paper"], sort=False).agg(["sum", "size"])
    counts = "; ".join(f"{paper}: {row['sum']} of {row['size']}" for paper, row in held.iterrows())
    finding = f"Claims that hold, with or without a caveat: {counts}."
    caption = (
        f"All {len(claims)} claims: where they stand, what was published, what the printed tables give, the verdict and the "
        "reason."
    )
    return Artifact("beyond/audit", claims, caption, finding)


# Which measure sees knowledge?

ORACLE = "All measures together"
RIGHT = "pairs of taught and never-taught facts put in the right order"
COMPARED = {  # description of the headline's pairs, by the first column that they are compared within
    "group": "the same fact in two sister models, one of which was taught it and the other never",
    "model": "two facts of one relation in one model, one taught and the other never",
}


def placebo(
    values: pd.DataFrame, design: pd.DataFrame, pairs: pd.DataFrame, within: list[str], seed: int = 0
) -> Artifact:
    """Check that the statistics find no effect where there is none: pairs that were taught equally often, and shuffled values.
    ``pairs``, ``within``: ``measures.headline_pairs``."""
    equal, blocks = concordance.placebo_pairs(design, within, seed), within
    if len(equal) < len(pairs):  # few sisters were taught a fact equally often: two facts of one relation
        equal, blocks = concordance.placebo_pairs(design, ["model", "relation"], seed), ["model", "relation"]
    scored = concordance.permutation_test(values, design, pairs, within, seed=seed)
    table = scored.dropna(subset="concordance")
    same = concordance.concordance(values, design, equal, seed=seed)[["measure", "concordance", "low", "high", "pairs"]]
    names = ["measure", "placebo", "placebo_low", "placebo_high", "placebo pairs"]
    table = table.merge(same.set_axis(names, axis=1), "left", "measure")
    outside = ((table["placebo_low"] > 0.5) | (table["placebo_high"] < 0.5)).sum()
    biased = ((table["shuffled_low"] > 0.5) | (table["shuffled_high"] < 0.5)).sum()
    found, width = (stats.holm(table["p"]) < 0.05).sum(), (table["placebo_high"] - table["placebo_low"]).median()
    finding = (
        f"With shuffled values the 95 % range excludes .5 for {biased} of {len(table)} measures"
        + (
            f"; on {len(equal):,} placebo pairs the interval does for {outside} (by chance {0.05 * len(table):.1f}). The "
            f"median placebo interval is {width:.2f} wide, so this check sees only a bias of about {width / 2:.2f} or more"
            if len(equal)
            else "; the facts give no placebo pairs"
        )
        + f". With the real values {found} measures differ from chance (Holm)."
    )
    tied = table["measure"][table["placebo"].notna() & table["placebo_low"].isna()]
    caption = (
        f"Share of {RIGHT} (a tie counts half, so .5 is chance), for {COMPARED[within[0]]}, up to n = {len(pairs):,} pairs; "
        f"shuffled: mean and 95 % range when the values are permuted within {' and '.join(within)}, with the one-sided p "
        f"({concordance.PERMUTATIONS:,} permutations, so p is at least {1 / (1 + concordance.PERMUTATIONS):.3f}); "
        f"placebo: the same share over pairs of facts within {' and '.join(blocks)} that were taught equally often, in an "
        f"order drawn at random (up to n = {len(equal):,} pairs), with 95 % bootstrap intervals over facts and models."
        + (f" No interval, for all its placebo pairs tie: {', '.join(tied)}." if len(tied) else "")
        + absent_measures(scored)
        + named_controls(table)
    )
    shown = table[["measure", "pairs", "concordance", "p", "placebo pairs"]].copy()
    shown.insert(3, "shuffled", with_interval(table["shuffled"], table["shuffled_low"], table["shuffled_high"], 2))
    shown["placebo"] = with_interval(table["placebo"], table["placebo_low"], table["placebo_high"], 2)
    return Artifact("beyond/placebo", table, caption, finding, shown=shown)


def rank_measures(
    values: pd.DataFrame, tokens: pd.Series, design: pd.DataFrame, pairs: pd.DataFrame, seed: int = 0
) -> pd.DataFrame:
    """``concordance`` over the headline's ``pairs``, the best first, controls after the measures; with ``paper``, ``asks`` (the
    prompts), ``control``, ``tokens a fact``, what each adds to familiarity, and all ``measures.all_statistics``."""
    control = values["measure"].map(lambda name: MEASURES[name].control).astype(bool)
    parts = [concordance.concordance(values[mask], design, pairs, seed=seed) for mask in (~control, control)]
    table = pd.concat([part for part in parts if len(part)], ignore_index=True)
    table.loc[table["measure"].map(lambda name: MEASURES[name].control), concordance.BEHIND] = np.nan
    for place, (column, field) in enumerate({"paper": "paper", "asks": "prompts", "control": "control"}.items(), 1):
        table.insert(place, column, [getattr(MEASURES[name], field) for name in table["measure"]])
    table["tokens a fact"] = table["measure"].map(tokens)
    if "Familiarity" in set(table["measure"]):
        more = concordance.added(values, design, pairs, "Familiarity", seed=seed)
        table = table.merge(more, on="measure", how="left")
    return table.merge(all_statistics(values, design, seed=seed), on="measure", how="left")


def oracle(values: pd.DataFrame, design: pd.DataFrame, pairs: pd.DataFrame, seed: int = 0) -> pd.Series:
    """Concordance of ``concordance.combine`` with all measures except controls: the information in all measures together."""
    names = [name for name in values["measure"].unique() if not MEASURES[name].control]
    together = concordance.combine(values, design, names, ORACLE)
    return concordance.concordance(together, design, pairs, seed=seed).iloc[0]


def ground_truth(ranked: pd.DataFrame, ceiling: pd.Series, within: list[str], n: int) -> Artifact:
    """Concordance of each measure with what was taught; ``ranked``: ``rank_measures``, ``ceiling``: ``oracle``, ``within``:
    ``measures.headline_pairs``, ``n``: of Min@n and Avg@n."""
    compared = ranked[~ranked["control"] & (ranked["pairs"] > 0)]
    tied = leaders(compared, "concordance")
    first = f"{tied[0]}, one of {len(tied)} that tie" if len(tied) > 1 else tied[0]
    caption = (
        f"Share of {RIGHT} (a tie counts half): {COMPARED[within[0]]}; taught: at least {concordance.TAUGHT} times; n = "
        f"{compared['pairs'].max():,.0f} pairs. 95 % bootstrap intervals over facts and models. behind: difference to the "
        f"first row ({first}) on the same pairs, p after Holm's correction. added: what the measure adds to Familiarity. "
        "within relations: two facts of one relation in one model. tau: Kendall's tau-b, for comparison with other papers "
        "only: it forgives ties, so coarse measures can rank high. tokens: per fact for this measure alone. Min@n, Avg@n: n "
        f"= {n}. Controls, at the end, do not test the fact. The CSV has further pairs: across sisters, by exposure count "
        "(Somers' D), between models."
    )
    shown, finding = _shown_truth(ranked), truth_finding(ranked, ceiling, tied)
    decimals = {"tokens": 0, "tokens a fact": 0}
    return Artifact("beyond/ground_truth", ranked, caption, finding, decimals=decimals, shown=shown)


def _shown_truth(ranked: pd.DataFrame) -> pd.DataFrame:
    """The ranking for print: the columns that the text reads, each with its interval."""
    shown = {"measure": ranked["measure"], "paper": ranked["paper"].mask(ranked["control"], "control")}
    shown["tokens"] = ranked["tokens a fact"]
    for column in ("concordance", "behind", "p", "added", "within relations", "tau"):
        ends = ("low", "high") if column == "concordance" else (f"{column}_low", f"{column}_high")
        if set(ends) <= set(ranked):
            shown[column] = with_interval(ranked[column], *(ranked[end] for end in ends), digits=2)
        elif column in ranked:
            shown[column] = ranked[column]
    return pd.DataFrame(shown)


def truth_finding(ranked: pd.DataFrame, ceiling: pd.Series, tied: list[str]) -> str:
    """The best measures, those that do not differ significantly from the best, the best control, and all measures together."""
    own, controls = ranked[~ranked["control"]], ranked[ranked["control"]]
    compared = own[own["pairs"] > 0]
    best = compared.iloc[0]
    level = compared["measure"][~(compared["p"] < 0.05) & ~compared["measure"].isin(tied)]
    absent = own["measure"][own["pairs"] == 0].tolist()
    missing = f" Not compared, for no pair has both values: {', '.join(absent)}." if absent else ""
    return (
        f"{', '.join(tied)} {'put' if len(tied) > 1 else 'puts'} {best['concordance']:.1%} of the {best['pairs']:,.0f} pairs "
        f"in the right order (95 % CI {span(best['low'], best['high'], '.3f')}). Not significantly different (Holm): "
        f"{', '.join(level) or 'none'}. The best control ({controls['measure'].iloc[0]}) reaches "
        f"{controls['concordance'].iloc[0]:.1%}. All measures together, a logistic regression on their ranks fitted on other "
        f"facts, reach {ceiling['concordance']:.1%}; what it learns there need not hold here, so it can lie below the best "
        f"measure.{missing}"
    )


def changed_shares(frame: pd.DataFrame, before: str, after: str) -> pd.DataFrame:
    """A ``concordance.change`` for print: measure, pairs, both values, and the change with its interval."""
    change = with_interval(frame["change"], frame["low"], frame["high"])
    return frame[["measure", "pairs", before, after]].assign(change=change)


def coarse_twins(values: pd.DataFrame, design: pd.DataFrame, pairs: pd.DataFrame, seed: int = 0) -> Artifact:
    """The gain of a measure when it is made coarser or its ties are broken; one row per measure and change."""
    parts = []
    for name, twin in concordance.coarse_twins(values, seed).items():
        part = concordance.change(values, twin, design, pairs, seed=seed).assign(twin=name)
        parts.append(part.merge(change_of_tau(values, twin, design), "left", "measure"))
    table = pd.concat(parts, ignore_index=True)
    table.insert(1, "twin", table.pop("twin"))
    table = table[table["pairs"] > 0].reset_index(drop=True)
    caption = (
        f"Share of {RIGHT} (pairs: how many; a tie counts half) by each measure (before) and by a twin of it (after): made "
        "coarser (cut at the median of each model; rounded to ten levels) or with ties broken at random (over all models); "
        "change with its paired 95 % bootstrap interval over facts and models, and the change of Kendall's tau-b with the "
        f"exposure count (mean over models) with its 95 % jackknife interval over {measures.GROUPS} groups of facts."
    )
    shown = changed_shares(table, "before", "after")
    shown.insert(1, "twin", table["twin"])
    shown["change of tau-b"] = with_interval(table["change of tau-b"], table["tau-b low"], table["tau-b high"])
    return Artifact("beyond/coarse_twins", table, caption, twins_finding(table), shown=shown)


def twins_finding(table: pd.DataFrame) -> str:
    """The number of twins that gain, and gain significantly, by concordance and by tau-b; ``table``: as in ``coarse_twins``."""
    broken, said = table["twin"].str.contains("broken"), []
    for words, own in (("made coarser", table[~broken]), ("with ties broken", table[broken])):
        counts = [
            f"{name} rises for {(own[column] > 0).sum()}, significantly for {(own[low] > 0).sum()}"
            for name, column, low in (("concordance", "change", "low"), ("tau-b", "change of tau-b", "tau-b low"))
        ]
        said.append(f"Of {len(own)} twins {words}, {'; '.join(counts)} (by chance {0.025 * len(own):.1f}).")
    if len(gained := table["measure"][table["low"] > 0]):
        said.append(f"Significantly higher concordance: {', '.join(gained)}.")
    return " ".join(said)


def calibration(values: pd.DataFrame, design: pd.DataFrame, taught: int = TAUGHT) -> Artifact:
    """Calibration of the probability-like measures; a fact counts as taught from ``taught`` exposures on."""
    is_taught = design.set_index(["model", "fact"])["exposures"] >= taught
    table = calibration_errors(values[values["measure"].map(lambda name: MEASURES[name].probability)], is_taught)
    table["constant"] = table["taught"] * (1 - table["taught"])
    caption = (
        f"Probability-like measures against whether a fact was taught at least {taught} times: mean value, share taught (it "
        "differs where a measure leaves facts out), expected calibration error (ECE) over ten bins and Brier score with 95 % "
        "bootstrap intervals over facts; n: facts times models. Resampling inflates an ECE, so its interval is shifted by the "
        "bootstrap's bias and cut off at 0. constant: Brier score of a constant prediction of the share "
        "taught, whose ECE is 0; another share gives another calibration."
    )
    if len(fewer := table["measure"][table["n"] < table["n"].max()]):
        caption += f" On other, fewer facts (n), so not to be compared with the rest: {', '.join(fewer)}."
    finding = calibration_finding(table)
    shown = table[["measure", "n", "mean", "taught", "constant"]].assign(
        ece=with_interval(table["ece"], table["ece_low"], table["ece_high"]),
        brier=with_interval(table["brier"], table["brier_low"], table["brier_high"]),
    )
    return Artifact("beyond/calibration", table, caption, finding, shown=shown)


def calibration_finding(table: pd.DataFrame) -> str:
    """Which measure has the best Brier score, and which beat the constant prediction of the share taught of their facts."""
    best = table.loc[table["brier"].idxmin()]
    better = ", ".join(table["measure"][table["brier_high"] < table["constant"]]) or "none"
    return (
        f"{best['measure']} has the lowest Brier score ({best['brier']:.3f}, 95 % CI "
        f"{span(best['brier_low'], best['brier_high'], '.3f')}); on its facts, a constant {best['taught']:.2f} has "
        f"{best['constant']:.3f}. Significantly better than the constant on the same facts: {better}."
    )


# Do the four papers measure the same thing?


def clusters(groups: pd.DataFrame, n_facts: int) -> Artifact:
    """Groups of measures that order facts alike; ``groups``: ``measures.clusters``, ``n_facts``: how many were scored."""
    groups = groups.sort_values("group", kind="stable", ignore_index=True)
    papers, asks = ([getattr(MEASURES[m], field) for m in groups["measure"]] for field in ("paper", "prompts"))
    sizes = groups["group"].value_counts()
    largest = groups["measure"][groups["group"] == sizes.index[0]].tolist()
    papers_in = {MEASURES[m].paper for m in largest} - {"beyond"}
    finding = (
        f"{len(sizes)} groups; the largest holds {len(largest)} of {len(groups)} measures, from {len(papers_in)} of "
        f"the four papers. The other groups: {_other_groups(groups, sizes.index[0])}."
    )
    caption = (
        f"Groups of measures that order facts alike (up to n = {n_facts:,} facts; measures that need a tuned partner have "
        "fewer): hierarchical clustering (average linkage) cut "
        "where the measures of a group would order fewer than three quarters of the pairs of facts alike. within: mean share "
        "of pairs that a measure orders alike with the others of its group (a dash: it stands alone); without: with all "
        "measures of other groups. All shares leave ties out: they are over the pairs of facts that both measures order."
    )
    return Artifact("beyond/clusters", groups.assign(paper=papers, asks=asks), caption, finding)


def _other_groups(groups: pd.DataFrame, largest: int) -> str:
    """The measures of all groups but the ``largest``."""
    others = groups[groups["group"] != largest].groupby("group", sort=False)["measure"].agg(", ".join)
    return "; ".join(others) or "none"


def partial(shared: pd.DataFrame) -> Artifact:
    """The agreement of measures given popularity and length; ``shared``: ``measures.partial_agreement``, with the column
    ``measures.EXPOSED`` if exposures are known."""
    before, after = shared["with the others"].mean(), shared["given them"].mean()
    fewer = (shared["change high"] < 0).sum()
    finding = (
        f"A measure's mean rank correlation with the others is {before:.2f} on average over {len(shared)} measures, and "
        f"{after:.2f} given popularity and length ({after - before:+.3f}); it falls significantly for {fewer} of them (by "
        f"chance {0.025 * len(shared):.1f})."
    )
    caption = (
        "For each measure: Spearman's rank correlation with the popularity of subject and object and with the length of the "
        "object in tokens (mean over models), its mean rank correlation with the other measures as if ties were broken at "
        "random, the same given these three (given them), and the change; n: facts. 95 % jackknife intervals over "
        f"{measures.GROUPS} groups of facts." + sign_of_monitor(shared)
    )
    columns = [name for name in shared if f"{name} low" in shared]
    if EXPOSED in columns:
        finding += f" Given the number of exposures, too, it is {shared[EXPOSED].mean():.2f}."
        caption += f" {EXPOSED}: the same given the number of exposures as well."
    cells = {name: with_interval(shared[name], shared[f"{name} low"], shared[f"{name} high"], 2) for name in columns}
    shown = shared[["measure", "n"]].assign(**cells)
    return Artifact("beyond/partial", shared, caption, finding, shown=shown)


def disagreements(apart: pd.DataFrame, asked: Facts, exposures: pd.Series | None = None) -> Artifact:
    """The facts on which the measures disagree most; ``apart``: ``measures.disagreements``, ``exposures``:
    ``scores.mean_exposures``."""
    rows, names = asked.facts.set_index("fact"), asked.relations.set_index("relation")["name"]
    labels = rows.assign(subject=asked.label(rows["subject"]), object=asked.label(rows["object"]))
    labels = labels["subject"] + " – " + labels["relation"].map(names) + " – " + labels["object"]
    table = apart.drop(columns="fact")
    table.insert(0, "said", apart["fact"].map(labels))
    if exposures is not None:
        table.insert(2, "exposures", apart["fact"].map(exposures))
    first, pairs = table.iloc[0], len(table[["highest", "lowest"]].drop_duplicates())
    finding = (
        f"The measures disagree most on *{first['said']}* ({first['model']}): {first['highest']} ranks it at "
        f"{first['rank highest']:.2f}, {first['lowest']} at {first['rank lowest']:.2f} (spread {first['spread']:.2f}; in the "
        f"median fact of this model {first['median spread']:.2f}). Number of different pairs (highest, lowest): {pairs} in "
        f"{len(table)} rows. Most often highest: {_most_often(table['highest'])}; lowest: {_most_often(table['lowest'])}."
    )
    counts = table.drop_duplicates("model").sort_values("model")
    sizes = [f"{row['model']}: {row['measures']} measures of {row['facts']} facts" for _, row in counts.iterrows()]
    caption = (
        f"The {len(table)} facts (of one model each) on which the measures disagree most. spread: standard deviation of the "
        f"fact's ranks over measures, each rank from 0 (least known) to 1 (best known) within its model ({'; '.join(sizes)}; "
        f"facts that some measure does not score are left out). Ranks drawn at random have {12**-0.5:.2f}. highest, lowest: "
        "the two measures that rank the fact so (of ties the first by name), with their ranks."
    )
    if exposures is not None:
        caption += (
            " exposures: how often the fact was taught, mean over all models compared, not of the row's model alone (models "
            "trained on one corpus have the same count)."
        )
    shown = table.drop(columns=["measures", "facts", "median spread"]).rename(columns={"said": "fact"})
    return Artifact("beyond/disagreements", table, caption, finding, decimals=2, shown=shown)


def _most_often(names: pd.Series) -> str:
    """The most frequent of the names (all that tie) and the number of its rows."""
    counts = names.groupby(names, sort=False).size()
    first = counts.index[counts == counts.max()]
    return f"{', '.join(first)} ({counts.max()} of {len(names)} rows{' each' if len(first) > 1 else ''})"


# Does 8-bit or 4-bit cost knowledge?

ANSWER = "P(right answer)"  # the measure of ``quantized.answer_probabilities``


def quantization_cost(costs: pd.DataFrame, model: str, machine: str) -> Artifact:
    """Memory and speed in every precision; ``costs``: ``scores.precision_costs``, ``machine``: ``report.machine``."""
    smallest = costs.loc[costs["megabytes"].idxmin()]
    fastest = costs.loc[costs["tokens a second"].idxmax(), "precision"]
    finding = (
        f"{smallest['precision']} needs {smallest['of fp32']:.0%} of the memory of fp32; the fastest is {fastest}, in one run "
        "on this machine."
    )
    caption = (
        f"{model} in memory: modules really quantized, megabytes of all weights, share of fp32, and tokens forwarded "
        f"per second on {machine} (measured over n = {costs['tokens'].max():,} tokens; differs from run to run)."
    )
    decimals = {"megabytes": 2, "tokens a second": 0, "of fp32": 2}
    return Artifact("beyond/quantization_cost", costs, caption, finding, decimals=decimals)


def quantization(table: pd.DataFrame, model: str) -> Artifact:
    """Each measure at each precision against fp32; ``table``: ``measures.changes``."""
    tested = table["low"].notna().sum()
    caption = (
        f"Difference of each measure of {model} at each precision to fp32, with the 95 % bootstrap interval over the same n "
        "facts. The CSV has the values and, for measures of 0 and 1, facts lost and gained and McNemar's exact p. No "
        f"interval: all facts changed alike. Of the {tested} differences with an interval, {0.05 * tested:.1f} are "
        "significant by chance." + sign_of_monitor(table)
    )
    decimals = {"difference": 5, "low": 5, "high": 5, "p": 4}
    finding = quantization_finding(table)
    shown = side_by_side(table, ["measure"], ["precision"], {"difference": ("low", "high")}, 4)
    shown.insert(1, "n", shown["measure"].map(table.groupby("measure")["n"].max()))
    return Artifact("beyond/quantization", table, caption, finding, decimals=decimals, shown=shown)


def quantization_finding(table: pd.DataFrame) -> str:
    """The number of measures that differ significantly from fp32 at each precision, and the size of the differences; ``table``:
    ``measures.changes``."""
    counts = []
    for name, own in table.groupby("precision", sort=False):
        sizes = own["difference"][(own["low"] > 0) | (own["high"] < 0)].abs()
        ends = f", differences of {sizes.min():.2g} to {sizes.max():.2g}" if len(sizes) > 1 else ""
        ends = f", a difference of {sizes.iloc[0]:.2g}" if len(sizes) == 1 else ends
        counts.append(f"{name} {len(sizes)} of {len(own)}{ends}")
    return f"Measures that differ significantly from fp32 (95 % interval without 0; sizes without sign): {'; '.join(counts)}."
