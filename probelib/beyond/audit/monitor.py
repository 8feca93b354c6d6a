"""The printed numbers of MONITOR, recomputed."""

import math

import numpy as np
import pandas as pd
import scipy

from probelib import published, stats
from probelib.beyond.audit.claims import OPEN, Finding, claim, rounds, verdict


def table(number: str) -> pd.DataFrame:
    return published.table(f"monitor/{number}")


def by_model(number: str) -> pd.DataFrame:
    return table(number).set_index("model_key")


def by_relation() -> pd.DataFrame:
    """MONITOR of table 10: [20 relations, 12 models]."""
    return table("table10").pivot(index="relation", columns="model_key", values="MONITOR")


@claim("Table 4", "MONITOR and average accuracy are correlated", "r = -0.846, p = 0.001")
def correlation_with_accuracy() -> Finding:
    t = table("table4")
    r = stats.pearson(t["MONITOR"], t["avg_acc"])
    left_out = [stats.pearson(t["MONITOR"].drop(i), t["avg_acc"].drop(i))["r"] for i in t.index]
    return (
        stats.in_words(r),
        verdict(rounds(r["r"], -0.846) and rounds(r["p"], 0.001)),
        f"The coefficient is cut off rather than rounded. Leaving out one model gives {min(left_out):.3f} to "
        f"{max(left_out):.3f}.",
    )


@claim("Table 6", "MONITOR and the spread of accuracy are correlated: coefficient", "r = 0.754")
def correlation_with_spread() -> Finding:
    t = table("table6")
    r = stats.pearson(t["MONITOR"], t["std"])
    return (
        stats.in_words(r),
        verdict(rounds(r["r"], 0.754)),
        "The coefficient follows from the table.",
    )


@claim("Table 6", "MONITOR and the spread of accuracy are correlated: p-value", "p = 0.001")
def p_value_of_spread() -> Finding:
    t = table("table6")
    p = stats.pearson(t["MONITOR"], t["std"])["p"]
    why = (
        f"With r = 0.754 and 12 models p is {p / 0.001:.1f} times the printed value; it stays below .01, so the "
        "conclusion stands."
    )
    return f"p = {p:.4f}", verdict(rounds(p, 0.001)), why


@claim(
    "Table 4",
    "MONITOR is the mean over the 20 fact data sets of table 10",
    "0.701 for BLOOMZ-560m, ...",
)
def overall_is_the_mean() -> Finding:
    t10, t4 = by_relation(), by_model("table4")["MONITOR"]
    means, divisor = t10.mean()[t4.index], (t10.sum()[t4.index] / t4).round(2)
    off = (means - t4).abs()
    return (
        f"mean of table 10 is {off.min():.3f} to {off.max():.3f} above the printed value, for all {len(t4)} models",
        verdict(bool((off < 0.001).all())),
        f"Sum of table 10 / printed value = {divisor.min()} to {divisor.max()}: the sum of 20 relations was divided by "
        "21. The factor is the same for all models, so ranks and correlations are untouched.",
    )


@claim("Table 5", "MONITOR on P178, P108 and P37 repeats table 10", "36 values")
def table5_repeats_table10() -> Finding:
    both = table("table5").merge(table("table10"), on=["relation", "model_key"])
    off = (both["MONITOR_x"] - both["MONITOR_y"]).abs().max()
    return (
        f"largest difference {off:.3f} over {len(both)} values",
        verdict(off < 5e-4),
        "The two tables agree.",
    )


@claim("Table 6", "MONITOR on P1412 repeats table 10", "12 values")
def table6_repeats_table10() -> Finding:
    off = (by_model("table6")["MONITOR"] - by_relation().loc["P1412"]).abs().max()
    return f"largest difference {off:.3f}", verdict(off < 5e-4), "The two tables agree."


@claim("Figure 10", "the seven-prompt MONITOR of P178 repeats table 10", "12 values")
def figure10_repeats_table10() -> Finding:
    off = (by_model("figure10")["MONITOR_7_prompts"] - by_relation().loc["P178"]).abs().max()
    return (
        f"largest difference {off:.3f}",
        verdict(off < 0.002),
        "The figure's values were read off the picture.",
    )


@claim("Table 11", "r on P178, P108 and P37 follows from table 5", "-0.828, -0.889, -0.867")
def coefficients_by_relation() -> Finding:
    t5, printed = table("table5"), table("table11").set_index("relation")["pearson_r"]
    r = {
        k: stats.pearson(g["MONITOR"], g["avg_acc"])["r"]
        for k, g in t5.groupby("relation", sort=False)
    }
    ok = all(rounds(r[k], printed[k]) for k in r)
    said = ", ".join(f"{k} {v:.4f}" for k, v in r.items())
    return (
        said,
        verdict(ok),
        "The other 17 relations have no printed accuracy, so their r cannot be recomputed.",
    )


@claim("Table 11", "the p-values belong to the coefficients, with 12 models", "20 values")
def p_values_by_relation() -> Finding:
    t = table("table11")
    t_value = t["pearson_r"] * np.sqrt(10 / (1 - t["pearson_r"] ** 2))
    p = 2 * scipy.stats.t.sf(t_value.abs(), 10)
    off = np.abs(np.maximum(p, 0.001) - t["p_value"])
    return (
        f"largest difference {off.max():.4f}",
        verdict(bool((off < 0.0015).all())),
        "Everything below 0.001 is printed as 0.001.",
    )


@claim(
    "Table 11", "MONITOR and accuracy correlate in single fact data sets", "19 of 20 with p < .05"
)
def significance_by_relation() -> Finding:
    p = np.sort(table("table11")["p_value"].to_numpy())
    holm = int(np.cumprod(p * np.arange(len(p), 0, -1) < 0.05).sum())
    return (
        f"p < .05 in {(p < 0.05).sum()} of 20; after Holm's correction in {holm}, after Bonferroni's in "
        f"{(p * 20 < 0.05).sum()}",
        verdict(bool((p < 0.05).sum() == 19), caveat=holm < 19),
        "Twenty tests were made; a correction for that leaves fewer.",
    )


@claim("Table 3", "the differences are context minus no context", "24 differences")
def differences() -> Finding:
    t = table("table3")
    off = max(
        (t[f"{c}_context"] - t["base_QA"] - t[f"{c}_delta"]).abs().max() for c in ("pos", "neg")
    )
    return (
        f"largest difference {off:.3f} points",
        verdict(off < 0.006),
        "All 24 follow from the other columns.",
    )


@claim("3.2", "the largest gain is 43.67 and the largest loss 66.00 points", "+43.67, -66.00")
def extremes() -> Finding:
    t = table("table3")
    gain, loss = t.loc[t["pos_delta"].idxmax()], t.loc[t["neg_delta"].idxmin()]
    ok = gain["pos_delta"] == 43.67 and loss["neg_delta"] == -66.0
    found = f"{gain['model']} {gain['pos_delta']:+.2f}, {loss['model']} {loss['neg_delta']:+.2f}"
    return found, verdict(ok), "Both stand in table 3."


@claim("3.2", "negative context interferes with all 12 models", "12 of 12 lose accuracy")
def interference_everywhere() -> Finding:
    t = table("table3").set_index("model")["neg_delta"]
    p = scipy.stats.wilcoxon(t).pvalue
    least = t.idxmax()
    return (
        f"{(t < 0).sum()} of {len(t)} lose, mean {t.mean():.1f} points (Wilcoxon p = {p:.1g})",
        verdict(bool((t < 0).all()), caveat=t.max() > -1),
        f"{least} loses only {-t[least]:.2f} points, which is no difference on 931 facts.",
    )


@claim("3.2", "positive context raises accuracy", "gain in 12 models")
def positive_context_helps() -> Finding:
    t = table("table3").set_index("model")["pos_delta"]
    return (
        f"{(t > 0).sum()} of {len(t)} gain; {t.idxmin()} {t.min():+.2f}",
        verdict(bool((t > 0).mean() > 0.9), caveat=bool((t <= 0).any())),
        "One model loses much accuracy when the right answer stands before the question; the paper gives no reason.",
    )


@claim(
    "5.2.2",
    "of two models of equal base accuracy, the one with the lower MONITOR is steadier",
    "bold rows of table 6",
)
def steadier_at_equal_accuracy() -> Finding:
    t = table("table6").reset_index()
    pairs = t.merge(t, how="cross", suffixes=("", "2")).query("index < index2")
    pairs = pairs.assign(
        agree=(pairs["MONITOR"] < pairs["MONITOR2"]) == (pairs["std"] < pairs["std2"])
    )
    near = pairs[(pairs["base_acc"] - pairs["base_acc2"]).abs() <= 3.5]
    return (
        f"{near['agree'].sum()} of {len(near)} pairs within 3.5 points; {pairs['agree'].sum()} of all {len(pairs)}",
        verdict(bool(near["agree"].mean() > 0.5), caveat=not near["agree"].all()),
        "The bold rows are the pairs that agree; "
        + ", ".join(f"{a} and {b}" for a, b in near.loc[~near["agree"], ["model", "model2"]].values)
        + " do not.",
    )


@claim("Table 8", "MONITOR saves a factor of 2.97 in device hours", "42.7 / 14.4 = 2.97")
def saving() -> Finding:
    t = table("table8").iloc[0]
    ratio = t["average_accuracy"] / t["MONITOR"]
    return (
        f"{ratio:.3f}",
        verdict(rounds(ratio, 2.97, 2), caveat=True),
        f"By counts of prompts it is 35/13 = {35 / 13:.2f} (frames x distractors) or 42/13 = {42 / 13:.2f}; hours "
        "depend on batching.",
    )


@claim("5.1, table 9", "210,171 prompts on 16,167 triplets", "210,171 and 16,167")
def prompts_counted() -> Finding:
    t = table("table9")
    total = int(t["count_published"].sum())
    why = (
        f"Table 9 sums to it, and it is 13 prompts a triplet. The released files have {t['released_facts'].sum():,} "
        f"facts and {t['released_prompt_instances'].sum():,} prompts: "
        f"{(t['released_prompt_instances'] != t['count_published']).sum()} of 20 relations differ from the table."
    )
    ok = total == 210171 == 13 * 16167
    return f"sum of table 9: {total:,}", verdict(ok, caveat=t["released_facts"].sum() != 16167), why


@claim(
    "A.8",
    "aggregated MONITOR falls with size (BLOOMZ, Vicuna)",
    "0.701 > 0.692 > 0.686 > 0.632; 0.504 > 0.484",
)
def scaling_overall() -> Finding:
    m = by_model("table4")["MONITOR"]
    bloomz, vicuna = (
        m[["bloomz-560m", "bloomz-1b1", "bloomz-3b", "bloomz-7b1"]],
        m[["vicuna-7b", "vicuna-13b"]],
    )
    ok = bloomz.is_monotonic_decreasing and vicuna.is_monotonic_decreasing
    return (
        " > ".join(f"{v:.3f}" for v in bloomz),
        verdict(ok),
        "Four and two models: too few for a law.",
    )


@claim("A.8, figure 11", "MONITOR may not scale in single relations", "no number")
def scaling_by_relation() -> Finding:
    t = by_relation()[["bloomz-560m", "bloomz-1b1", "bloomz-3b", "bloomz-7b1"]]
    falling = (t.diff(axis=1).iloc[:, 1:] < 0).all(axis=1)
    ends = (t["bloomz-7b1"] < t["bloomz-560m"]).sum()
    return (
        f"falls at every step in {falling.sum()} of {len(t)} relations ({', '.join(t.index[falling])}); from end to "
        f"end in {ends}",
        verdict(falling.mean() < 0.5),
        "The paper concedes it; the aggregate hides it.",
    )


@claim("6.2, figure 6", "MONITOR with 7 and with 4 prompts is linearly related", "strong")
def fewer_prompts() -> Finding:
    t = table("figure10")
    r, off = stats.pearson(t.iloc[:, 1], t.iloc[:, 2]), (t.iloc[:, 1] - t.iloc[:, 2]).abs()
    why = f"Mean absolute difference {off.mean():.3f}, largest {off.max():.3f}. One relation (P178) was looked at."
    return stats.in_words(r), verdict(r["r"] > 0.9, caveat=True), why


@claim("A.7, figure 10", "both prompt groups rank the models alike", "same order")
def same_order() -> Finding:
    t = table("figure10")
    tau, a, b = (
        stats.kendall(t.iloc[:, 1], t.iloc[:, 2])["tau"],
        t.iloc[:, 1].rank(),
        t.iloc[:, 2].rank(),
    )
    moved = int((a.round() != b.round()).sum())
    why = "Models tied to the third digit in one group, or a few thousandths apart, change places."
    return (
        f"Kendall tau {tau:.3f}; {moved} of 12 ranks differ",
        verdict(tau > 0.9, caveat=moved > 0),
        why,
    )


@claim(
    "Table 4", "max and min are over the 20 fact data sets", "e.g. max 71.188 for LLaMa-30b-ins."
)
def max_and_min() -> Finding:
    t5 = table("table5").groupby("model_key")["avg_acc"].agg(["max", "min"])
    t4 = by_model("table4").loc[t5.index]
    above, below = (t5["max"] > t4["max_acc"]).sum(), (t5["min"] < t4["min_acc"]).sum()
    return (
        f"a table 5 average lies above the printed maximum for {above} of 12 models, below the minimum for {below}",
        verdict(above == 0 and below == 0),
        "So it must be the best (worst) run of each relation, averaged over relations; the caption says otherwise.",
    )


@claim(
    "5.2.1",
    "LLaMa-30b-ins. is the most reliable, then Vicuna-13b and Vicuna-7b",
    "0.479, 0.484, 0.504",
)
def winners() -> Finding:
    order = by_model("table4")["MONITOR"].sort_values().index[:3].tolist()
    t10 = by_relation()
    a, b = t10["llama-30b-instruct-2048"], t10["vicuna-13b"]
    p = scipy.stats.wilcoxon(a, b).pvalue
    return (
        f"order of the means as printed; the first beats the second in {(a < b).sum()} of 20 relations (Wilcoxon p = "
        f"{p:.2f})",
        verdict(order == ["llama-30b-instruct-2048", "vicuna-13b", "vicuna-7b"], caveat=p > 0.05),
        "Twenty relations cannot separate the first two.",
    )


@claim("Table 3", "accuracies are over the 931 facts of P17", "12 models, 3 columns")
def table3_denominator() -> Finding:
    answers = {"base_QA": 1, "pos_context": 1, "neg_context": 5}  # of each fact
    t = table("table3").melt("model", list(answers), "column", "share")
    for n in (930, 931):
        pairs = zip(t["share"], t["column"], strict=True)
        t[n] = [_count_of(share, n * answers[column]) for share, column in pairs]
    whole, fewer, best = t[931] == 2, (t[930] == 2) & (t[931] < 2), t[[930, 931]].max(axis=1)
    counts = whole.groupby(t["column"], sort=False).sum()
    cut_off = [f"{model} {share}" for model, share in t.loc[best == 1, ["model", "share"]].values]
    return (
        f"whole counts of 931 facts: {', '.join(f'{n} of 12 ({column})' for column, n in counts.items())}; of 930 only: "
        f"{fewer.sum()}; only if cut off rather than rounded: {', '.join(cut_off) or 'none'}",
        verdict(bool((best > 0).all()), caveat=bool(fewer.any() or cut_off)),
        "One fact is missing for some models; at most a tenth of a point.",
    )


def _count_of(percent: float, n: int) -> int:
    """Whether a percentage with two decimals is that of a whole count of n. 2: if rounded; 1: only if truncated; 0: no."""
    shares = [100 * (math.floor(percent * n / 100) + more) / n for more in (0, 1)]
    if min(abs(share - percent) for share in shares) <= 0.005 + 1e-9:
        return 2
    return int(any(rounds(share, percent, 2) for share in shares))


@claim("Table 6", "base accuracy is over the 969 facts of P1412", "12 values")
def table6_denominator() -> Finding:
    share = table("table6")["base_acc"] / 100
    fits = int(((share * 969 - (share * 969).round()).abs() <= 0.000005 * 969 + 1e-9).sum())
    return (
        f"{fits} of 12 values are a whole number of facts out of 969",
        verdict(fits == 12),
        "They fit accuracies over a subset that differs between models, as in the released script, which counts "
        "anchored facts only.",
    )


@claim("Table 2", "Vicuna-7b shows how far WP and QA differ", "34.89 against 73.25")
def template_gap() -> Finding:
    gap = (lambda t: t["QA"] - t["WP"])(table("table2").set_index("model"))
    return (
        f"largest gap {gap.idxmax()} {gap.max():+.1f}; Vicuna-7b {gap['Vicuna-7b']:+.1f}; {gap.idxmin()} "
        f"{gap.min():+.1f}",
        verdict(bool((gap.abs() > 10).mean() > 0.5)),
        "The bold example is not the largest gap, and one model goes the other way.",
    )


@claim("Table 2", "fact checking is biased (BLOOMZ-1b1)", "0.11 against 99.89")
def checking_at_chance() -> Finding:
    t = table("table2").set_index("model")
    balanced = (t["FC_pos"] + t["FC_neg"]) / 2
    chance = balanced.index[(balanced - 50).abs() < 2]
    return (
        f"balanced accuracy of BLOOMZ-1b1 {balanced['BLOOMZ-1b1']:.1f}; within 2 points of chance: {', '.join(chance)}",
        verdict("BLOOMZ-1b1" in chance),
        f"{len(chance)} of 12 models answer fact checking at chance.",
    )


@claim("4.3", "each of the three terms has weight 0.33", "0.33")
def alphas() -> Finding:
    factor = float(np.sqrt(0.33 * 3))
    return (
        f"0.33 in place of 1/3 multiplies every score by {factor:.5f}",
        verdict(abs(factor - 1) < 0.01, caveat=factor != 1),
        "The released code has 1/3. The tables cannot tell the two apart.",
    )


@claim("5.2.1", "the scores of the models can be compared", "one ranking")
def coverage() -> Finding:
    share, m = by_model("table3")["pos_context"], by_relation().loc["P17"]
    r = stats.pearson(share, m[share.index])
    return (
        f"on P17 between {share.min():.1f} and {share.max():.1f} % of the facts are anchored; with MONITOR "
        f"{stats.in_words(r)}",
        OPEN,
        "The released script scores a model on the facts that it anchors, which differ; no table gives scores on "
        "common facts.",
    )


@claim(
    "A.8, table 4",
    "avg acc is the mean over frames and negative contexts",
    "4.3 against the released script",
)
def which_average() -> Finding:
    m, t = by_relation().loc["P17"], by_model("table3")
    r = {
        name: stats.pearson(m[t.index], t[column])["r"]
        for name, column in (("negative context", "neg_context"), ("no context", "base_QA"))
    }
    printed = table("table11").set_index("relation")["pearson_r"]["P17"]
    return (
        f"r(MONITOR, accuracy) on P17: {', '.join(f'{v:.3f} {k}' for k, v in r.items())}; printed {printed}",
        OPEN,
        "The runs with negative contexts come closest, which suggests it; it is no proof.",
    )


@claim("Table 10", "MONITOR tells the models apart", "12 models, 20 relations")
def models_differ() -> Finding:
    t = by_relation()
    p = scipy.stats.friedmanchisquare(*[t[c] for c in t]).pvalue
    models, relations = t.mean().std(), t.mean(axis=1).std()
    why = f"Standard deviation between models {models:.3f}, between relations {relations:.3f}."
    return f"Friedman test over relations: p = {p:.1g}", verdict(p < 0.001), why
