"""The printed numbers of ZP-LKE, recomputed."""

import numpy as np
import pandas as pd
import scipy

from probelib import published, stats
from probelib.beyond.audit.verdicts import OPEN, Finding, stated, verdict

FACTS, RELATIONS = 400, 50  # test facts per relation, relations
N = FACTS * RELATIONS


def table(number: str) -> pd.DataFrame:
    return published.table(f"zplke/{number}")


def leaderboard() -> pd.DataFrame:
    """Table 8 with table 7's family, size and base model."""
    names = {"left_on": "table7_simplified_name", "right_on": "simplified_name"}
    return table("table8").merge(table("table7"), **names)


def models_counted() -> Finding:
    kinds = table("table7")["kind"].value_counts()
    numbers = kinds.to_dict() | {"families": table("table7")["family"].nunique()}
    return numbers, verdict((kinds["pretrained"], kinds["finetuned"]) == (35, 14))


def sorted_leaderboard() -> Finding:
    falls = table("table8")["avg_accuracy"].diff()[1:]
    return {"rows above their predecessor": (falls > 0).sum()}, verdict(bool((falls <= 0).all()))


def denominators() -> Finding:
    t = table("table8")
    whole = (t["avg_accuracy"] * N).round(4) % 1 == 0
    numbers = {"multiples of 1/20,000": whole.sum(), "others": t["model"][~whole].tolist()}
    return numbers, verdict(bool(whole.mean() > 0.5), caveat=not whole.all())


def averaged_over() -> Finding:
    values, t8 = table("table9")["avg_accuracy"], leaderboard()
    counts = {n: values * n * FACTS for n in (35, 49)}
    fits = {n: int(((count - count.round()).abs() < 1e-4).sum()) for n, count in counts.items()}
    means = {"mean of table 9": values.mean(), "of table 8, all models": t8["avg_accuracy"].mean()}
    means["35 models"] = t8["avg_accuracy"][t8["kind_x"] == "pretrained"].mean()
    numbers = {"multiples for 35 models": fits[35], "for 49": fits[49]}
    return numbers | means, verdict(fits[49] > fits[35])


def table2_against_table8() -> Finding:
    t2, t8 = table("table2").replace({"family": {"Llama-2": "Llama2"}}), table("table8")
    known = t8.set_index("model")["avg_accuracy"]
    off = []
    for end in ("smallest", "largest"):
        names = t2["family"] + "-" + t2[f"{end}_params"].str.upper()
        off += (t2[f"{end}_accuracy"] - known[names].to_numpy()).abs().tolist()
    return _differences(off)


def table11_against_table8() -> Finding:
    t11, t8 = table("table11"), table("table8").set_index("model")["avg_accuracy"]
    names = t11["base_model"].replace({"Mixtral-7Bx8": "Mixtral-8x7B"})
    return _differences((t11["base_accuracy"] - names.map(t8)).abs())


def _differences(off) -> Finding:
    """Differences of accuracies of 20,000 facts, against three standard errors."""
    error = np.sqrt(0.25 / N)
    numbers = {"mean difference": np.mean(off), "largest": np.max(off), "standard error": error}
    return numbers, verdict(np.max(off) < 3 * error)


def subsumption(number: str, one: str, other: str) -> Finding:
    """Subsumption rates, read as worded (other knows | one knows) and reversed."""
    t = table(number)
    first, second, rate = t[one], t[other], t["subsumption_rate"]
    both = rate * second  # known to both, if reversed
    possible = (both <= first + 0.002) & (both >= first + second - 1 - 0.002)
    numbers = {"as worded": (rate < second).sum(), "reversed": (rate > first).sum()}
    kept = both / first
    return numbers | {"possible": possible.sum(), "kept": [kept.min(), kept.max()]}, OPEN


def tuning_table11() -> Finding:
    t = table("table11").set_index("base_model")
    change = t["ft_accuracy"] - t["base_accuracy"]
    lower = int((change < 0).sum())
    p = scipy.stats.binomtest(lower, len(t)).pvalue
    numbers = {"lower": lower, "p": p, "median": change.median(), change.idxmin(): change.min()}
    return numbers, verdict(lower / len(t) > 0.8)


def tuning_table8() -> Finding:
    t = leaderboard()
    base = dict(zip(t["simplified_name"], t["avg_accuracy"], strict=True))
    tuned = t[t["kind_x"] == "finetuned"]
    change = tuned["avg_accuracy"] - tuned["base_model"].map(base)
    numbers = {"lower": (change < 0).sum(), "pairs": len(change), "mean": change.mean()}
    return numbers, verdict(bool((change < 0).mean() > 0.8), caveat=True)


def tuned_names() -> Finding:
    t8 = table("table8").set_index("table7_simplified_name")["avg_accuracy"]
    rows = table("table11").query("base_model in ('Llama2-7B', 'Llama2-13B')")
    off = {}
    for name, labels in {"as printed": ("FT1", "FT2"), "exchanged": ("FT2", "FT1")}.items():
        tuned = rows["ft_type"].map(dict(zip(("FT-1", "FT-2"), labels, strict=True)))
        names = rows["base_model"] + "-" + tuned
        off[name] = (rows["ft_accuracy"] - names.map(t8)).abs().mean()
    return off, verdict(off["as printed"] <= off["exchanged"])


def gain(name: str, to: str, over: str) -> Finding:
    """A printed gain (percent) against its two accuracies, which are printed with two digits."""
    a, b = stated("zplke", to), stated("zplke", over)
    low, high = (100 * ((a + d) / (b - d) - 1) for d in (-0.005, 0.005))
    numbers = {"gain, %": 100 * (a / b - 1), "lowest by rounding": low, "highest": high}
    return numbers, verdict(low <= stated("zplke", name) <= high)


def larger_is_better() -> Finding:
    t = leaderboard().query("kind_x == 'pretrained'").sort_values("params_b_approx")
    r = stats.pearson(np.log10(t["params_b_approx"]), t["avg_accuracy"])
    smaller = t.groupby("family")[["model", "avg_accuracy"]].shift()  # the next smaller one
    falls = t["avg_accuracy"] < smaller["avg_accuracy"]
    named = (smaller["model"] + " > " + t["model"])[falls]
    others = t["family"][falls] != "OPT"
    numbers = r | {"exceptions": named.sort_values(), "outside OPT": named[others]}
    return numbers, verdict(r["r"] > 0.5, caveat=bool(others.any()))


def families_at_7b() -> Finding:
    t = leaderboard().query("kind_x == 'pretrained' and 6 <= params_b_approx <= 8.6")
    t = t.set_index("family")["avg_accuracy"]
    leading, others = t[["Mistral", "Llama2", "Gemma", "Llama"]], t[["Pythia", "Bloom", "OPT"]]
    numbers = t[[leading.idxmin(), others.idxmax(), "Falcon"]].to_dict()
    return numbers, verdict(leading.min() > others.max())


def best_and_worst() -> Finding:
    t = table("table10")
    best, worst = (
        t["relation"][part].value_counts() for part in (t["order"] <= 3, t["order"] >= 48)
    )
    both = [r for r in best.index if r in worst.index]
    numbers = {"best": best[[best.index[0], *both]], "worst": worst[[worst.index[0], *both]]}
    numbers = {f"{k} of {r}": n for k, own in numbers.items() for r, n in own.items()}
    most = min(best.iloc[0], worst.iloc[0]) > t["model"].nunique() / 2
    return numbers, verdict(bool(most), caveat=bool(both))


def neighbours() -> Finding:
    p, spread = (table("table8")[column] for column in ("avg_accuracy", "std_dev"))
    error = np.sqrt(p * (1 - p) / N)
    close = -p.diff() < 2 * np.sqrt(error**2 + error.shift() ** 2)
    errors = {"error of facts": error.max(), "of relations": spread.max() / np.sqrt(RELATIONS)}
    return {"gaps below": close.sum()} | errors, OPEN


def falcon() -> Finding:
    right = round(table("table8").set_index("model")["avg_accuracy"]["Falcon-instruct-7B"] * N)
    p = scipy.stats.binomtest(right, N, 0.01).pvalue
    return {"right": right, "by guessing": N // 100, "facts": N, "p": p}, verdict(p > 0.001)


def templates_counted() -> Finding:
    t = table("table6")
    there, written = t[["hgp", "mmp"]].notna().sum(), t["hgp"].dropna()
    without = (~written.str.contains("{subject}", regex=False)).sum()
    numbers = {"human-written": there["hgp"], "mined": there["mmp"], "without subject": without}
    return numbers, verdict(bool(there.min() == len(t)))


def facts_counted() -> Finding:
    relations = len(table("table9"))
    right = stated("zplke", "n_test_facts") == N and relations == RELATIONS
    return {"relations": relations, "facts": relations * FACTS}, verdict(right)


def laureates() -> Finding:
    left = int(stated("zplke", "n_nobel") - stated("zplke", "n_nobel_test"))
    enough = left >= stated("zplke", "n_context_examples")
    return {"left": left}, verdict(enough, caveat=left < stated("zplke", "fig4_sequence_length"))


def baseline_relations() -> Finding:
    t9 = table("table9").assign(key=lambda t: t["relation"].str.lower())
    names = table("table6")["relation"].str.lower().unique()
    aliases = {"original language of film/tv show": "original language of film or tv show"}
    aliases |= {"language spoken, written or signed": "languages spoken, written or signed"}
    found = t9[t9["key"].isin([aliases.get(name, name) for name in names])]
    return {"relations": len(found), "mean of 35 models": found["avg_accuracy"].mean()}, OPEN


def family_correlation() -> Finding:
    return {}, OPEN
