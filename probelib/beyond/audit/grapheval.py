"""The printed numbers of GraphEval, recomputed."""

import numpy as np
import pandas as pd
import scipy

from probelib import published
from probelib.beyond.audit.verdicts import HOLDS, OPEN, Finding, rounds, verdict

LABELLED = 4000  # 2,000 triples and as many corrupted ones
TESTED = 1200  # 30 % of them


def table(number: str) -> pd.DataFrame:
    return published.table(f"grapheval/{number}")


def shares() -> pd.DataFrame:
    """Label shares of table 2 by model: true (right), false (wrong), idk."""
    t = table("table2").set_index("model")
    return t[["n_true", "n_false", "n_idk"]].rename(columns=lambda c: c[2:]) / LABELLED


def bounds() -> pd.DataFrame:
    """Lowest and highest value of each metric by Eq. 2, for a balanced set with these label
    shares (right, wrong, I don't know)."""
    s = shares()
    highs = {"correct_high": s["true"], "truthful_high": 1 - s["false"]}
    highs["informative_high"] = 1 - s["idk"]
    lows = {"truthful_low": 1 - 2 * s["false"], "informative_low": 1 - 2 * s["idk"]}
    return pd.DataFrame(highs | lows | {"correct_low": s["true"] * 0}).clip(lower=0)


def outside(metric: str, model: str) -> Finding:
    """A printed metric against its bounds. The labels are of 4,000 statements, the metrics are the
    judge's predictions on the whole graph. So a value outside cannot be decided: the judge's errors
    (table 3; for a lower bound, which is about pairs, twice the errors) may explain it, or another
    reading of the counts."""
    b, value = bounds().loc[model], float(table("table2").set_index("model")[metric][model])
    low, high = b[f"{metric}_low"], b[f"{metric}_high"]
    gap = max(value - high, low - value, 0.0)
    error = 1 - table("table3").groupby("label_model")["recall"].min()
    allowed = (1 if value > high else 2) * error.get(model, error.max())
    numbers = {"lowest by Eq. 2": low, "highest": high, "outside by": gap}
    return numbers | ({"judge's error": allowed} if gap else {}), OPEN if gap else HOLDS


def degree() -> Finding:
    t = table("table1").iloc[0]
    value = 2 * t["triples"] / t["entities"]
    surplus = round(t["triples"] - 6.8 * t["entities"] / 2)
    return {"degree": value, "triples too many": surplus}, verdict(rounds(value, 6.80, 2))


def density() -> Finding:
    t = table("table1").iloc[0]
    value = t["triples"] / (t["entities"] * (t["entities"] - 1))
    numbers = {"density": value, "printed against it, %": 100 * (7.18e-7 / value - 1)}
    numbers["by the printed degree"] = 6.8 / 2 / (t["entities"] - 1)
    return numbers, verdict(abs(value - 7.18e-7) < 0.01e-7)


def size() -> Finding:
    n = int(table("table1")["triples"].iloc[0])
    return {"triples": n}, verdict(n > 10**7)


def labels_counted() -> Finding:
    total = table("table2")[["n_true", "n_false", "n_idk"]].sum(axis=1)
    return {"sums": total.unique().tolist()}, verdict(bool((total == LABELLED).all()))


def metrics_consistent() -> Finding:
    t = table("table2").set_index("model")
    slack = t["correct"] - (t["truthful"] + t["informative"] - 1)
    below = t["correct"] <= t[["truthful", "informative"]].min(axis=1) + 1e-9
    return (slack.round(9) + 0.0).to_dict(), verdict(bool((below & (slack > -0.0015)).all()))


def reliable_13b() -> Finding:
    s = table("table2").set_index("model").loc["LLaMA-2-13B"]
    right, answers = int(s["n_true"]), int(s["n_true"] + s["n_false"])
    low, high = scipy.stats.binomtest(right, answers).proportion_ci(method="wilson")
    numbers = {"share right": right / answers, "low": low, "high": high, "answers": answers}
    return numbers, verdict(low > 0.6)


def silent_70b() -> Finding:
    share = shares().loc["LLaMA-2-70B", "idk"]
    return {"share": share}, verdict(share > 0.8)


def judge_accuracy() -> Finding:
    k = table("table3")["recall"] * TESTED
    off = (k - k.round()).abs().max()
    return {"largest distance": off}, verdict(off <= TESTED * 0.0005)  # half of the last digit


def judge_against_guessing() -> Finding:
    t = table("table3").query("substitute_model == 'LLaMA-2-7B'").set_index("label_model")["recall"]
    guessing = shares().loc[t.index].max(axis=1)
    numbers = {name: [t[name], guessing[name]] for name in t.index}
    return numbers, verdict((t < guessing).sum() < len(t) / 2, caveat=True)


def substitutes() -> Finding:
    t = table("table3").pivot(index="label_model", columns="substitute_model", values="recall")
    p = (t.max(axis=1) + t.min(axis=1)) / 2
    z = (t.max(axis=1) - t.min(axis=1)) / np.sqrt(2 * p * (1 - p) / TESTED)
    return z.to_dict(), verdict((z < 1.96).sum() >= 2, caveat=bool((z >= 1.96).any()))


def f1_consistent() -> Finding:
    t = table("table3")
    ends = t[["precision", "recall"]]
    off = np.maximum(ends.min(axis=1) - t["f1"], t["f1"] - ends.max(axis=1)).max()
    return {"outside by at most": max(off, 0.0)}, verdict(off < 0.005)


def speed_up() -> Finding:
    t = table("table4").pivot(index=["gpu", "model"], columns="method", values="facts_per_s")
    ratio = t["GraphEval"] / t["TG"]
    numbers = {"lowest ratio": ratio.min(), "highest": ratio.max()}
    return numbers, verdict(bool((ratio > 1).all()), caveat=True)


def speed_constant() -> Finding:
    t = table("table4").query("method == 'GraphEval'")
    groups = t.groupby(["gpu", t["model"].str.split("-").str[0]])["facts_per_s"]
    spread = (groups.max() / groups.min() - 1).max()
    return {"largest difference within a family": spread}, verdict(spread < 0.1)


def gemma_speed() -> Finding:
    t = table("table4").query("method == 'TG'").set_index(["gpu", "model"])
    speed, without = t["facts_per_s"].unstack(), t["facts_per_s_no_flash_attention"]["A6000"]
    slower = speed["Gemma-2B"] < speed["Gemma-7B"]
    plain = without[["Gemma-2B", "Gemma-7B"]].tolist()
    numbers = {"slower on": slower.index[slower], "without flash attention": plain}
    return numbers, verdict(bool(slower.any()), caveat=not slower.all())


def templates_sorted() -> Finding:
    count = table("table5")["count"]
    share = count.sum() / int(table("table1")["triples"].iloc[0])
    return {"share of the triples": share}, verdict(bool(count.is_monotonic_decreasing))


def templates_complete() -> Finding:
    t = table("table5")
    slots = [t["template"].str.contains(slot, regex=False) for slot in ("{head}", "{tail}")]
    both = slots[0] & slots[1]
    numbers = {"complete": both.sum(), "templates": len(t), "others": t["relation"][~both]}
    return numbers, verdict(bool(both.mean() > 0.9), caveat=not both.all())


def asks() -> Finding:
    return {}, OPEN
