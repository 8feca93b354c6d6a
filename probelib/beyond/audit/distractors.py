"""The printed numbers of Distractors, recomputed. Figure values were read off, to about 0.005."""

import numpy as np
import pandas as pd
import scipy

from probelib import published, stats
from probelib.beyond.audit.verdicts import OPEN, Finding, rounds, stated, verdict

ANNOTATED = 77  # verbalizations with annotated errors (4.3)
RELEASED = 27  # pairs of verbalizations in the released file; the text says 32


def table(number: str) -> pd.DataFrame:
    return published.table(f"distractors/{number}")


def figure(name: str) -> pd.DataFrame:
    """A figure's curves, one row per x, one column per series."""
    rows = table("figures")
    return rows[rows["figure"] == name].pivot(index="x", columns="series", values="y")


def folds() -> pd.DataFrame:
    """tau on the three test folds of table 9: [9 measures, 3]."""
    t = table("table9")
    name = ("Dist. " + t["strategy"]).where(t["measure"] == "Dist.", t["measure"])
    return t.assign(name=name).pivot(index="name", columns="fold", values="tau_test")


def means() -> Finding:
    t3, t9 = table("table3").set_index("measure")["mean_tau"], folds().mean(axis=1)
    off = (t9 - t3).abs().dropna()
    return {"largest difference": off.max(), "measures": len(off)}, verdict(off.max() < 0.005)


def spreads() -> Finding:
    t3, t9 = table("table3").set_index("measure")["std_tau"], folds()
    off = {ddof: (t9.std(axis=1, ddof=ddof) - t3).abs().max() for ddof in (1, 0)}
    numbers = {"largest difference with n - 1": off[1], "with n": off[0]}
    return numbers, verdict(off[1] < 0.006)


def better_than(other: str) -> Finding:
    """ApprOpt against another measure, paired over the folds."""
    difference = folds().loc["Dist. ApprOpt"] - folds().loc[other]
    p = scipy.stats.ttest_1samp(difference, 0).pvalue
    numbers = {"by fold": difference.tolist(), "paired t-test p": p}
    return numbers, verdict(difference.mean() > 0, caveat=p > 0.05)


def null_error() -> Finding:
    n, t = int(stated("distractors", "human_facts")), table("table3")["mean_tau"]
    error = np.sqrt(2 * (2 * n + 5) / (9 * n * (n - 1)))  # of tau without relation
    above, lead = t > 2 * error, t.nlargest(2).diff().abs().iloc[-1]
    caveat = bool(not above.all() or lead < 2 * error)
    return {"error": error, "measures above two": above.sum()}, verdict(True, caveat)


def sem_is_temp_sem() -> Finding:
    t = table("table9").set_index("strategy")[["agg", "num_distractors", "fold", "tau_test"]]
    sem, other = (t.loc[name].reset_index(drop=True) for name in ("Sem", "Temp+Sem"))
    equal = int((sem == other).to_numpy().sum())
    return {"equal cells": equal, "of": sem.size}, verdict(not sem.equals(other))


def wilson_intervals() -> Finding:
    t = table("table5")
    counts = (t["proportion_pct"] * ANNOTATED / 100).round().astype(int)
    again = np.array([stats.wilson(k, ANNOTATED) for k in counts]) * 100
    off = np.abs(again - t[["wilson_lo_pct", "wilson_hi_pct"]].to_numpy()).max()
    return {"counts": counts.tolist(), "largest difference, points": off}, verdict(off < 0.06)


def blunders() -> Finding:
    high, other = (100 * stats.wilson(0, n)[1] for n in (ANNOTATED, 152))
    return {"upper end, %": high, "of 0 in 152": other}, verdict(rounds(high, 2.5, 1))


def flawed_share() -> Finding:
    found = [100 * 35 / ANNOTATED, *(100 * end for end in stats.wilson(35, ANNOTATED))]
    right = all(rounds(a, b, 1) for a, b in zip(found, (45.5, 34.8, 56.5), strict=True))
    return dict(zip(("35 of 77, %", "low", "high"), found, strict=True)), verdict(right)


def without_error() -> Finding:
    names = ("table5", "table6")
    rows = [table(name).set_index(table(name).columns[0]).loc["Free of errors"] for name in names]
    values = [row.tolist() for row in rows]
    return dict(zip(names, values, strict=True)), verdict(values[0] == values[1])


def robustness() -> Finding:
    places = np.arange(RELEASED)
    flips = [stats.kendall(places < k, places < k - 1)["tau"] for k in range(5, RELEASED - 4)]
    tau = table("table4").set_index("measure")["robustness_tau"]
    numbers = tau[["Probability", "BERT-Score", "ROUGE-L", "LLM-as-a-judge"]].to_dict()
    numbers["one change"] = [min(flips), max(flips)]
    return numbers | {"flip rate": list(stats.wilson(1, RELEASED))}, OPEN


def first_distractor() -> Finding:
    t = figure("fig5")
    curve, two = t["6.9B"].dropna(), t.loc[2.0].dropna()
    numbers = {
        f"6.9B at {curve.index[0]:.0f}": curve.iloc[0],
        "others at 2": [two.min(), two.max()],
    }
    return numbers, verdict(two.min() - 0.05 < 0.40 <= two.max(), caveat=True)


def fit() -> Finding:
    line = figure("fig8")["Avg@20"]
    r2 = stats.scaling_fit(line.index, line)["r2"]
    return {"R2": r2, "r": np.sqrt(r2)}, verdict(rounds(r2, 0.995))


def extrapolation() -> Finding:
    line = figure("fig8")["Avg@20"]
    f = stats.scaling_fit(line.index, line)
    numbers = {"size": f["size_at"], "interval": [f["size_low"], f["size_high"]]}
    numbers |= {"decades": np.log10(f["size_at"] / line.index.max()), "times": 2e19 / f["size_at"]}
    return numbers, verdict(f["size_low"] <= 2e19 <= f["size_high"], caveat=True)


def optimum() -> Finding:
    t = figure("fig3")
    at = t[["Random", "Temp+Sem"]].idxmax()
    numbers = at.to_dict() | {"loss of Temp+Sem": t["Temp+Sem"].max() - t["Temp+Sem"].iloc[-1]}
    right = abs(at["Random"] - 130) <= 20 and abs(at["Temp+Sem"] - 110) <= 20
    return numbers, verdict(right)


def few_distractors() -> Finding:
    t = figure("fig3")["ApprOpt"]
    return {"5": t[5.0], "15": t[15.0], "best": t.max()}, verdict(t.max() - t[15.0] < 0.01)


def gains() -> Finding:
    printed = {"BERT-Score": 5, "ROUGE-L": 3, "LLM-as-a-judge": 7}
    t = figure("fig6_pct").loc[5.0, list(printed)]
    return t.to_dict(), verdict(bool(((t - pd.Series(printed)).abs() < 0.5).all()))


def who_gains_most() -> Finding:
    t = figure("fig6_pct")
    decoding, ours = t.loc[5.0, ["BERT-Score", "ROUGE-L", "LLM-as-a-judge"]], t["Dist. ApprOpt"]
    less = decoding.index[decoding < ours[5.0]]
    numbers = {"ApprOpt at 5, %": ours[5.0], "most": ours.max(), "at": ours.idxmax()}
    return numbers | {"gain less at 5": less}, verdict(not len(less))


def peak() -> Finding:
    t = figure("fig4")["Dist. ApprOpt"]
    numbers = {"sentences": t.idxmax(), "tau there": t.max(), "at 5": t[5.0]}
    return numbers, verdict(t.idxmax() == 3, caveat=True)


def selection() -> Finding:
    names = {"BERT-score": "BERT-Score"}
    t3 = table("table3").set_index("measure")["mean_tau"].rename(names)
    off = (figure("fig4").loc[5.0] - t3).dropna()
    above = off[off > 0.01]
    return above.to_dict(), verdict(not len(above))


def precision_gain() -> Finding:
    t = figure("fig4")["Precision@n"]
    gain = 100 * ((t[5.0] + 1) / (t[1.0] + 1) - 1)
    return {"gain by figure 4, %": gain}, verdict(abs(gain) < 0.5)


def temporal() -> Finding:
    t = figure("fig2").loc[1.0, ["Sem", "Temp+Sem"]]
    drop = t["Sem"] - t["Temp+Sem"]
    return t.to_dict() | {"drop": drop}, verdict(abs(drop - 0.17) <= 0.015)


def composition() -> Finding:
    change = figure("fig5").loc[29.0] - figure("fig5").loc[28.0]
    return change.dropna().to_dict(), verdict(bool((change >= 0).all()))


def robust_by_size() -> Finding:
    t = figure("fig5")[["70M", "410M", "2.8B", "6.9B", "12B"]].dropna()
    rising = (t.diff(axis=1).iloc[:, 1:] > 0).all(axis=1)
    numbers = {"in order": rising.sum(), "gain at 20": t.loc[20.0, "12B"] - t.loc[20.0, "70M"]}
    return numbers, verdict(bool(rising.mean() > 0.8))


def verbalized() -> Finding:
    names = ("verbalised_facts_from_wikifactdiff", "verbalised_facts_from_wikidata")
    total = int(sum(stated("distractors", name) for name in names))
    return {"sum": total}, verdict(total == stated("distractors", "verbalised_facts_after"))


def sample_lists() -> Finding:
    t = table("table7").drop(columns="rank")
    twice = {c: t[c][t[c].duplicated()].tolist() for c in t if t[c].duplicated().any()}
    return twice, verdict(len(twice) < 2, caveat=bool(twice))


def karr() -> Finding:
    return {"its authors report": stated("distractors", "karr_tau_reported_by_its_authors")}, OPEN
