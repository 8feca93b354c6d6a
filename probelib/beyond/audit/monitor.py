"""The printed numbers of MONITOR, recomputed."""

import math

import numpy as np
import pandas as pd
import scipy

from probelib import published, stats
from probelib.beyond.audit.verdicts import OPEN, Finding, rounds, verdict

BLOOMZ = ["bloomz-560m", "bloomz-1b1", "bloomz-3b", "bloomz-7b1"]


def table(number: str) -> pd.DataFrame:
    return published.table(f"monitor/{number}")


def by_model(number: str) -> pd.DataFrame:
    return table(number).set_index("model_key")


def by_relation() -> pd.DataFrame:
    """MONITOR of table 10: [20 relations, 12 models]."""
    return table("table10").pivot(index="relation", columns="model_key", values="MONITOR")


def correlation(number: str, column: str, r: float | None, p: float | None) -> Finding:
    """A printed correlation of MONITOR with another column of its table; None: not checked."""
    x, y = table(number)["MONITOR"], table(number)[column]
    found = stats.pearson(x, y)
    without = [stats.pearson(x.drop(i), y.drop(i))["r"] for i in x.index]
    right = [
        rounds(found[name], value) for name, value in (("r", r), ("p", p)) if value is not None
    ]
    ends = {"lowest r without one model": min(without), "highest": max(without)}
    return found | ends, verdict(all(right))


def overall_is_the_mean() -> Finding:
    t10, t4 = by_relation(), by_model("table4")["MONITOR"]
    off, divisor = (t10.mean()[t4.index] - t4).abs(), (t10.sum()[t4.index] / t4).round(2)
    numbers = {"differences": [off.min(), off.max()], "divisors": [divisor.min(), divisor.max()]}
    return numbers, verdict(bool((off < 0.001).all()))


def repeats(number: str, column: str, relation: str | None, tolerance: float) -> Finding:
    """Whether a table's MONITOR is that of table 10. relation: the table's; None: a column"""
    t = table(number) if relation is None else table(number).assign(relation=relation)
    both = t.merge(table("table10"), on=["relation", "model_key"], suffixes=("", "_10"))
    off = (both[column] - both["MONITOR_10" if column == "MONITOR" else "MONITOR"]).abs().max()
    return {"largest difference": off, "values": len(both)}, verdict(off < tolerance)


def coefficients_by_relation() -> Finding:
    printed = table("table11").set_index("relation")["pearson_r"]
    groups = table("table5").groupby("relation", sort=False)
    r = {name: stats.pearson(own["MONITOR"], own["avg_acc"])["r"] for name, own in groups}
    return r, verdict(all(rounds(value, printed[name]) for name, value in r.items()))


def p_values_by_relation() -> Finding:
    t = table("table11")
    t_value = t["pearson_r"] * np.sqrt(10 / (1 - t["pearson_r"] ** 2))
    p = 2 * scipy.stats.t.sf(t_value.abs(), 10)
    off = np.abs(np.maximum(p, 0.001) - t["p_value"]).max()  # 0.001 stands for all below it
    return {"largest difference": off}, verdict(off < 0.0015)


def significance_by_relation() -> Finding:
    p = table("table11")["p_value"]
    plain, holm = int((p < 0.05).sum()), int((stats.holm(p) < 0.05).sum())
    numbers = {"p < .05": plain, "after Holm": holm, "after Bonferroni": (p * len(p) < 0.05).sum()}
    return numbers, verdict(plain == 19, caveat=holm < 19)


def differences() -> Finding:
    t = table("table3")
    off = [(t[f"{c}_context"] - t["base_QA"] - t[f"{c}_delta"]).abs().max() for c in ("pos", "neg")]
    return {"largest difference, points": round(max(off), 9)}, verdict(max(off) < 0.006)


def extremes() -> Finding:
    t = table("table3").set_index("model")
    gain, loss = t["pos_delta"].nlargest(1), t["neg_delta"].nsmallest(1)
    right = gain.item() == 43.67 and loss.item() == -66.0
    return gain.to_dict() | loss.to_dict(), verdict(right)


def interference_everywhere() -> Finding:
    t = table("table3").set_index("model")["neg_delta"]
    numbers = {"lose": (t < 0).sum(), "mean": t.mean(), "p": scipy.stats.wilcoxon(t).pvalue}
    return numbers | {t.idxmax(): t.max()}, verdict(bool((t < 0).all()), caveat=t.max() > -1)


def positive_context_helps() -> Finding:
    t = table("table3").set_index("model")["pos_delta"]
    numbers = {"gain": (t > 0).sum(), t.idxmin(): t.min()}
    return numbers, verdict(bool((t > 0).mean() > 0.9), caveat=bool((t <= 0).any()))


def steadier_at_equal_accuracy() -> Finding:
    t = table("table6").reset_index()
    pairs = t.merge(t, how="cross", suffixes=("", "2")).query("index < index2")
    agree = (pairs["MONITOR"] < pairs["MONITOR2"]) == (pairs["std"] < pairs["std2"])
    near = (pairs["base_acc"] - pairs["base_acc2"]).abs() <= 3.5
    other = (pairs["model"] + " and " + pairs["model2"])[near & ~agree]
    numbers = {"near pairs": near.sum(), "of these not": other, "all pairs that agree": agree.sum()}
    return numbers, verdict(bool(agree[near].mean() > 0.5), caveat=bool(len(other)))


def saving() -> Finding:
    t = table("table8").iloc[0]
    ratio = t["average_accuracy"] / t["MONITOR"]
    numbers = {"ratio": ratio, "of prompts, 35/13": 35 / 13, "42/13": 42 / 13}
    return numbers, verdict(rounds(ratio, 2.97, 2), caveat=True)


def prompts_counted() -> Finding:
    t = table("table9")
    total, facts = int(t["count_published"].sum()), t["released_facts"].sum()
    released = t["released_prompt_instances"]
    numbers = {"sum": total, "released facts": facts, "released prompts": released.sum()}
    numbers["relations that differ"] = (released != t["count_published"]).sum()
    return numbers, verdict(total == 210171 == 13 * 16167, caveat=facts != 16167)


def scaling_overall() -> Finding:
    m = by_model("table4")["MONITOR"]
    series = [m[BLOOMZ], m[["vicuna-7b", "vicuna-13b"]]]
    return pd.concat(series).to_dict(), verdict(all(s.is_monotonic_decreasing for s in series))


def scaling_by_relation() -> Finding:
    t = by_relation()[BLOOMZ]
    falling = (t.diff(axis=1).iloc[:, 1:] < 0).all(axis=1)
    ends = (t[BLOOMZ[-1]] < t[BLOOMZ[0]]).sum()
    numbers = {"at every step": t.index[falling], "from end to end": ends}
    return numbers, verdict(falling.mean() < 0.5)


def fewer_prompts() -> Finding:
    seven, four = (table("figure10").iloc[:, i] for i in (1, 2))
    r, off = stats.pearson(seven, four), (seven - four).abs()
    numbers = r | {"mean difference": off.mean(), "largest": off.max()}
    return numbers, verdict(r["r"] > 0.9, caveat=True)


def same_order() -> Finding:
    seven, four = (table("figure10").iloc[:, i] for i in (1, 2))
    tau, moved = stats.kendall(seven, four)["tau"], seven.rank().round() != four.rank().round()
    numbers = {"tau": tau, "ranks that differ": moved.sum()}
    return numbers, verdict(tau > 0.9, caveat=bool(moved.any()))


def max_and_min() -> Finding:
    t5 = table("table5").groupby("model_key")["avg_acc"].agg(["max", "min"])
    t4 = by_model("table4").loc[t5.index]
    above, below = (t5["max"] > t4["max_acc"]).sum(), (t5["min"] < t4["min_acc"]).sum()
    return {"above": above, "below": below}, verdict(above == 0 and below == 0)


def winners() -> Finding:
    names = ["llama-30b-instruct-2048", "vicuna-13b", "vicuna-7b"]
    order = by_model("table4")["MONITOR"].nsmallest(3).index.tolist()
    first, second = (by_relation()[name] for name in names[:2])
    p = scipy.stats.wilcoxon(first, second).pvalue
    numbers = {"first beats second": (first < second).sum(), "Wilcoxon p": p}
    return numbers, verdict(order == names, caveat=p > 0.05)


def table3_denominator() -> Finding:
    answers = {"base_QA": 1, "pos_context": 1, "neg_context": 5}  # of each fact
    t = table("table3").melt("model", list(answers), "column", "share")
    for n in (930, 931):
        pairs = zip(t["share"], t["column"], strict=True)
        t[n] = [_count_of(share, n * answers[column]) for share, column in pairs]
    whole, fewer, best = t[931] == 2, (t[930] == 2) & (t[931] < 2), t[[930, 931]].max(axis=1)
    numbers = whole.groupby(t["column"], sort=False).sum().to_dict()
    cut_off = t["model"][best == 1].tolist()
    numbers |= {"of 930 only": fewer.sum(), "only if cut off": cut_off}
    return numbers, verdict(bool((best > 0).all()), caveat=bool(fewer.any() or cut_off))


def _count_of(percent: float, n: int) -> int:
    """Is a percentage that of a whole count of n? 2: if rounded; 1: only if truncated; 0: no."""
    shares = [100 * (math.floor(percent * n / 100) + more) / n for more in (0, 1)]
    if min(abs(share - percent) for share in shares) <= 0.005 + 1e-9:
        return 2
    return int(any(rounds(share, percent, 2) for share in shares))


def table6_denominator() -> Finding:
    count = table("table6")["base_acc"] / 100 * 969
    fits = int(((count - count.round()).abs() <= 0.000005 * 969 + 1e-9).sum())
    return {"whole counts of 969": fits, "values": len(count)}, verdict(fits == 12)


def template_gap() -> Finding:
    t = table("table2").set_index("model")
    gap = t["QA"] - t["WP"]
    numbers = {name: gap[name] for name in (gap.idxmax(), "Vicuna-7b", gap.idxmin())}
    return numbers, verdict(bool((gap.abs() > 10).mean() > 0.5))


def checking_at_chance() -> Finding:
    t = table("table2").set_index("model")
    balanced = (t["FC_pos"] + t["FC_neg"]) / 2
    chance = balanced.index[(balanced - 50).abs() < 2]
    numbers = {"BLOOMZ-1b1": balanced["BLOOMZ-1b1"], "within 2 points of chance": chance}
    return numbers, verdict("BLOOMZ-1b1" in chance)


def alphas() -> Finding:
    factor = float(np.sqrt(0.33 * 3))
    return {"factor": factor}, verdict(abs(factor - 1) < 0.01, caveat=factor != 1)


def coverage() -> Finding:
    share, m = by_model("table3")["pos_context"], by_relation().loc["P17"]
    ends = {"fewest anchored, %": share.min(), "most": share.max()}
    return ends | stats.pearson(share, m[share.index]), OPEN


def which_average() -> Finding:
    t = by_model("table3")
    m = by_relation().loc["P17"][t.index]
    columns = {"with negative context": "neg_context", "without context": "base_QA"}
    r = {name: stats.pearson(m, t[column])["r"] for name, column in columns.items()}
    return r | {"printed": table("table11").set_index("relation")["pearson_r"]["P17"]}, OPEN


def models_differ() -> Finding:
    t = by_relation()
    p = scipy.stats.friedmanchisquare(*[t[c] for c in t]).pvalue
    spread = {"spread of models": t.mean().std(), "of relations": t.mean(axis=1).std()}
    return {"Friedman p": p} | spread, verdict(p < 0.001)
