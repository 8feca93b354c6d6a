"""The printed numbers of GraphEval, recomputed."""

import numpy as np
import pandas as pd
import scipy

from probelib import published
from probelib.beyond.audit.claims import HOLDS, OPEN, Finding, claim, rounds, verdict

LABELLED = 4000  # 2,000 triples and as many corrupted ones
TESTED = 1200  # 30 % of them


def table(number: str) -> pd.DataFrame:
    return published.table(f"grapheval/{number}")


def shares() -> pd.DataFrame:
    """Label shares of table 2 by model: true (right), false (wrong), idk."""
    t = table("table2").set_index("model")
    return t[["n_true", "n_false", "n_idk"]].rename(columns=lambda c: c[2:]) / LABELLED


def bounds() -> pd.DataFrame:
    """Lowest and highest value of each metric by Eq. 2, for a balanced set with these label shares (right, wrong, I don't
    know)."""
    s = shares()
    return pd.DataFrame(
        {
            "correct_high": s["true"],
            "truthful_low": (1 - 2 * s["false"]).clip(lower=0),
            "truthful_high": 1 - s["false"],
            "informative_low": (1 - 2 * s["idk"]).clip(lower=0),
            "informative_high": 1 - s["idk"],
        }
    )


def outside(metric: str, model: str) -> Finding:
    """A printed metric compared with its bounds. The labels of table 2 are of 4,000 statements, its metrics are the judge's
    predictions on the whole graph. So a value outside the bounds cannot be decided: the judge's errors (table 3; for a lower
    bound, which is about pairs, twice the errors) may explain it, or another reading of the counts."""
    b, value = bounds().loc[model], float(table("table2").set_index("model")[metric][model])
    low, high = b.get(f"{metric}_low", 0.0), b[f"{metric}_high"]
    gap = max(value - high, low - value, 0.0)
    t3 = 1 - table("table3").groupby("label_model")["recall"].min()
    allowed = (1 if value > high else 2) * t3.get(model, t3.max())
    said = f"Eq. 2 with these labels allows {low:.3f} to {high:.3f}; printed {value:.3f}"
    if not gap:
        return f"{said}: inside", HOLDS, "The label counts allow the value."
    why = f"{gap:.3f} outside; the judge's own error may explain up to {allowed:.3f}"
    if gap <= allowed:
        why += ", so the table neither bears the value out nor excludes it."
    else:
        why += (
            ". The counts are taken as the classes of section 4.1. Counts of literal answers, or corrupted triples entering with "
            "the other sign (as in the released code), would make it possible; the table cannot tell these apart."
        )
    return f"{said}: {gap:.3f} outside", OPEN, why


@claim("Table 1", "average degree", "6.80")
def degree() -> Finding:
    t = table("table1").iloc[0]
    value = 2 * t["triples"] / t["entities"]
    why = (
        f"Merging parallel edges would take {t['triples'] - 6.8 * t['entities'] / 2:,.0f} triples away; the table "
        "does not say so."
    )
    return f"2 x triples / entities = {value:.3f}", verdict(rounds(value, 6.80, 2)), why


@claim("Table 1", "density", "7.18e-7")
def density() -> Finding:
    t = table("table1").iloc[0]
    value = t["triples"] / (t["entities"] * (t["entities"] - 1))
    return (
        f"triples / (entities x (entities - 1)) = {value:.3e}",
        verdict(abs(value - 7.18e-7) < 0.01e-7),
        f"{100 * (7.18e-7 / value - 1):+.1f} % off; the printed degree implies {6.8 / 2 / (t['entities'] - 1):.2e}.",
    )


@claim("Abstract", "a graph of more than 10 million facts", "> 10 million")
def size() -> Finding:
    n = int(table("table1")["triples"].iloc[0])
    return f"{n:,}", verdict(n > 10**7), "Table 1."


@claim("Table 2", "each model labelled 4,000 statements", "5 rows")
def labels_counted() -> Finding:
    total = table("table2")[["n_true", "n_false", "n_idk"]].sum(axis=1)
    return (
        f"row sums {sorted(set(total))}",
        verdict(bool((total == LABELLED).all())),
        "All rows sum to 4,000.",
    )


@claim(
    "Table 2",
    "Correct is no larger than Truthful and Informative, and no smaller than their sum less 1",
    "5 rows",
)
def metrics_consistent() -> Finding:
    t = table("table2")
    slack = t["correct"] - (t["truthful"] + t["informative"] - 1)
    ok = (t["correct"] <= t[["truthful", "informative"]].min(axis=1) + 1e-9).all() and (
        slack > -0.0015
    ).all()
    return (
        f"C - (T + I - 1) = {', '.join(f'{v:.3f}' for v in slack)}",
        verdict(bool(ok)),
        "A triple's Correct is max(0, Truthful + Informative - 1), so the third metric adds nothing for a single "
        "triple.",
    )


@claim("Table 2", "LLaMA-2-7B: Correct", "0.516")
def correct_7b() -> Finding:
    return outside("correct", "LLaMA-2-7B")


@claim("Table 2", "LLaMA-2-7B: Truthful", "0.965")
def truthful_7b() -> Finding:
    return outside("truthful", "LLaMA-2-7B")


@claim("Table 2", "LLaMA-2-7B: Informative", "0.550")
def informative_7b() -> Finding:
    return outside("informative", "LLaMA-2-7B")


@claim("Table 2", "LLaMA-2-13B: Correct", "0.959")
def correct_13b() -> Finding:
    return outside("correct", "LLaMA-2-13B")


@claim("Table 2", "LLaMA-2-13B: Truthful", "0.979")
def truthful_13b() -> Finding:
    return outside("truthful", "LLaMA-2-13B")


@claim("Table 2", "LLaMA-2-70B: Truthful", "0.993")
def truthful_70b() -> Finding:
    return outside("truthful", "LLaMA-2-70B")


@claim("Table 2", "LLaMA-2-70B: Informative", "0.007")
def informative_70b() -> Finding:
    return outside("informative", "LLaMA-2-70B")


@claim("Table 2", "Gemma-2B: Truthful", "0.056")
def truthful_gemma_2b() -> Finding:
    return outside("truthful", "Gemma-2B")


@claim("Table 2", "Gemma-2B: Correct", "0.024")
def correct_gemma_2b() -> Finding:
    return outside("correct", "Gemma-2B")


@claim("Table 2", "Gemma-7B: Truthful", "0.206")
def truthful_gemma_7b() -> Finding:
    return outside("truthful", "Gemma-7B")


@claim("4.2", "LLaMA-2-13B is very reliable and accurate", "0.979, 0.980, 0.959")
def reliable_13b() -> Finding:
    s = table("table2").set_index("model").loc["LLaMA-2-13B"]
    right = s["n_true"] / (s["n_true"] + s["n_false"])
    low, high = scipy.stats.binomtest(
        int(s["n_true"]), int(s["n_true"] + s["n_false"])
    ).proportion_ci(method="wilson")
    return (
        f"of its {int(s['n_true'] + s['n_false']):,} answers {right:.1%} [{low:.1%}, {high:.1%}] are labelled right",
        verdict(low > 0.6),
        "A model that says yes to everything is right on half of a balanced set. Under the released code such a "
        "model scores highest.",
    )


@claim("4.2", "LLaMA-2-70B is informative on few statements", "0.007")
def silent_70b() -> Finding:
    share = shares().loc["LLaMA-2-70B", "idk"]
    why = "Its labels show the same; whether it knows its limits or the prompt leads it to abstain, the table cannot say."
    return f"{share:.1%} of its labels are I don't know", verdict(share > 0.8), why


@claim(
    "Table 3",
    "weighted recall is the judge's accuracy: a whole number of 1,200 statements",
    "9 values",
)
def judge_accuracy() -> Finding:
    k = table("table3")["recall"] * TESTED
    off = (k - k.round()).abs().max()
    return (
        f"largest distance {off:.2f} statements; the printed digits allow 0.6",
        verdict(off <= 0.6),
        "Three digits cannot contradict it.",
    )


@claim("A.1, table 3", "the judge is close to the model", "accuracy 0.845, 0.934, 0.861")
def judge_against_guessing() -> Finding:
    t = table("table3").query("substitute_model == 'LLaMA-2-7B'").set_index("label_model")["recall"]
    constant = shares().loc[t.index].max(axis=1)
    below = t.index[t < constant].tolist()
    return (
        ", ".join(f"{m}: judge {t[m]:.3f}, most frequent label {constant[m]:.3f}" for m in t.index),
        verdict(len(below) < len(t) / 2, caveat=True),
        (
            f"For {', '.join(below)} always giving the most frequent label is more accurate. "
            if below
            else ""
        )
        + "The released judge is also told whether a statement is real; no baseline with that knowledge is printed.",
    )


@claim("A.1, table 3", "which substitute model is used makes no significant difference", "9 rows")
def substitutes() -> Finding:
    t = table("table3").pivot(index="label_model", columns="substitute_model", values="recall")
    spread = t.max(axis=1) - t.min(axis=1)
    p = (t.max(axis=1) + t.min(axis=1)) / 2
    z = spread / np.sqrt(2 * p * (1 - p) / TESTED)
    return (
        "largest z of two accuracies: " + ", ".join(f"{m} {v:.2f}" for m, v in z.items()),
        verdict(bool((z < 1.96).sum() >= 2), caveat=bool((z >= 1.96).any())),
        f"For {', '.join(z.index[z >= 1.96]) or 'no model'} the best and the worst substitute differ (unpaired, "
        "largest of three pairs).",
    )


@claim("Table 3", "F1 lies between precision and recall or near them", "9 rows")
def f1_consistent() -> Finding:
    t = table("table3")
    low, high = t[["precision", "recall"]].min(axis=1), t[["precision", "recall"]].max(axis=1)
    off = np.maximum(low - t["f1"], t["f1"] - high).max()
    return (
        f"outside by at most {max(off, 0):.3f}",
        verdict(off < 0.005),
        "Weighted averages need not lie between, but do.",
    )


@claim("Table 4", "the judge is faster than text generation", "53.7 to 1310 times")
def speed_up() -> Finding:
    t = table("table4").pivot(index=["gpu", "model"], columns="method", values="facts_per_s")
    ratio = t["GraphEval"] / t["TG"]
    return (
        f"{ratio.min():.1f} to {ratio.max():.0f} times",
        verdict(bool((ratio > 1).all()), caveat=True),
        "Generation was timed one statement at a time and the judge in batches of 64 (released code), so the ratio "
        "holds both effects.",
    )


@claim("Table 4", "the judge's speed does not depend on the size of the model", "substitute models")
def speed_constant() -> Finding:
    t = table("table4").query("method == 'GraphEval'")
    t = t.assign(family=t["model"].str.split("-").str[0])
    spread = t.groupby(["gpu", "family"])["facts_per_s"].agg(lambda v: v.max() / v.min() - 1)
    return (
        f"within a family at most {spread.max():.1%}",
        verdict(spread.max() < 0.1),
        "The same substitute runs for all sizes.",
    )


@claim("A.1, table 4", "Gemma-2B generates more slowly than Gemma-7B", "2.06 < 2.18")
def gemma_speed() -> Finding:
    t = (
        table("table4")
        .query("method == 'TG'")
        .pivot(index="gpu", columns="model", values="facts_per_s")
    )
    slower = t.index[t["Gemma-2B"] < t["Gemma-7B"]].tolist()
    without = (
        table("table4")
        .query("method == 'TG' and gpu == 'A6000'")
        .set_index("model")["facts_per_s_no_flash_attention"]
    )
    return (
        f"slower on {', '.join(slower) or 'none'} of {', '.join(t.index)}",
        verdict(bool(slower), caveat=len(slower) < len(t)),
        f"Without flash attention it is faster ({without['Gemma-2B']} against {without['Gemma-7B']}), as the paper "
        "says.",
    )


@claim("Table 5", "templates sorted by count", "30 relations")
def templates_sorted() -> Finding:
    t, total = table("table5"), int(table("table1")["triples"].iloc[0])
    ok = t["count"].is_monotonic_decreasing
    return (
        f"sorted: {ok}; the 30 cover {t['count'].sum() / total:.1%} of the triples",
        verdict(bool(ok)),
        "Counts against table 1.",
    )


@claim("Table 5", "every template has its two slots", "30 templates")
def templates_complete() -> Finding:
    t = table("table5")
    slots = t["template"].str.contains("{head}", regex=False) & t["template"].str.contains(
        "{tail}", regex=False
    )
    broken = ", ".join(t.loc[~slots, "relation"])
    return (
        f"{slots.sum()} of {len(t)}",
        verdict(bool(slots.mean() > 0.9), caveat=not slots.all()),
        f"{broken or 'None'} is printed without braces: a slip of the pen at most.",
    )


@claim("4.1", "three answers a statement, majority vote", "3 answers")
def asks() -> Finding:
    return (
        "no count of answers is printed",
        OPEN,
        "The released collection asks once. The label counts of table 2 are the same kind of number in both cases.",
    )
