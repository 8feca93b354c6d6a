"""The printed numbers of ZP-LKE, recomputed."""

import numpy as np
import pandas as pd
import scipy

from probelib import published, stats
from probelib.beyond.audit.claims import OPEN, Finding, claim, verdict

FACTS, RELATIONS = 400, 50  # test facts per relation, relations


def table(number: str) -> pd.DataFrame:
    return published.table(f"zplke/{number}")


def stated(name: str) -> float:
    """A number of the text."""
    claims = table("claims").set_index("claim")["value"]
    return float(claims[name])


def leaderboard() -> pd.DataFrame:
    """Table 8 with table 7's family, size and base model."""
    return table("table8").merge(
        table("table7"), left_on="table7_simplified_name", right_on="simplified_name"
    )


@claim("1, table 7", "49 models: 35 pretrained, 14 fine-tuned", "49 = 35 + 14")
def models_counted() -> Finding:
    kinds = table("table7")["kind"].value_counts()
    ok = (kinds["pretrained"], kinds["finetuned"]) == (35, 14)
    why = (
        f"{table('table7')['family'].nunique()} families. The size range of the text (822B) is in no table; 8x22B "
        "seems meant."
    )
    return f"{kinds['pretrained']} + {kinds['finetuned']}", verdict(ok), why


@claim("Table 8", "the leaderboard is sorted", "49 rows")
def sorted_leaderboard() -> Finding:
    ok = table("table8")["avg_accuracy"].is_monotonic_decreasing
    return (
        "sorted" if ok else "not sorted",
        verdict(ok),
        "Every accuracy is at most that of the row above.",
    )


@claim("Table 8", "every model was scored on 20,000 facts", "49 averages")
def denominators() -> Finding:
    t = table("table8")
    whole = (t["avg_accuracy"] * FACTS * RELATIONS).round(4) % 1 == 0
    return (
        f"{whole.sum()} of 49 averages are whole multiples of 1/20,000",
        verdict(bool(whole.mean() > 0.5), caveat=not whole.all()),
        f"The others fit relations with fewer than 400 facts: {', '.join(t.loc[~whole, 'model'])}.",
    )


@claim("Table 9", "relation accuracies are averages over all 49 models", "50 values")
def averaged_over() -> Finding:
    values = table("table9")["avg_accuracy"]
    fits = {
        n: int((((values * n * FACTS) - (values * n * FACTS).round()).abs() < 1e-4).sum())
        for n in (35, 49)
    }
    means = leaderboard().groupby("kind_x")["avg_accuracy"].mean()
    return (
        f"whole multiples of 1/(35 x 400): {fits[35]} of 50, of 1/(49 x 400): {fits[49]}",
        verdict(fits[49] > fits[35]),
        f"The mean of table 9 is {values.mean():.5f}; of table 8 over the 35 pretrained models "
        f"{means['pretrained']:.5f}, over all 49 "
        f"{table('table8')['avg_accuracy'].mean():.5f}. The caption should say 35.",
    )


@claim("Tables 2 and 8", "both report the same accuracies", "12 values")
def table2_against_table8() -> Finding:
    t2, t8 = table("table2"), table("table8").set_index("model")["avg_accuracy"]
    names = {
        "Llama": "Llama",
        "Llama-2": "Llama2",
        "Gemma": "Gemma",
        "OPT": "OPT",
        "Pythia": "Pythia",
        "Bloom": "Bloom",
    }
    off = [
        abs(row[f"{end}_accuracy"] - t8[f"{names[row['family']]}-{row[f'{end}_params'].upper()}"])
        for _, row in t2.iterrows()
        for end in ("smallest", "largest")
    ]
    error = np.sqrt(0.25 / (FACTS * RELATIONS))
    return (
        f"mean difference {np.mean(off):.3f}, largest {max(off):.3f}",
        verdict(max(off) < 3 * error),
        f"The standard error of 20,000 facts is at most {error:.4f}; the tables come from different runs.",
    )


@claim("Tables 11 and 8", "both report the same accuracies of base models", "13 pairs")
def table11_against_table8() -> Finding:
    t11, t8 = table("table11"), table("table8").set_index("model")["avg_accuracy"]
    rename = {"Mixtral-7Bx8": "Mixtral-8x7B"}
    off = (t11["base_accuracy"] - t11["base_model"].replace(rename).map(t8)).abs()
    error = np.sqrt(0.25 / (FACTS * RELATIONS))
    found = f"mean difference {off.mean():.4f}, largest {off.max():.3f} ({t11.loc[off.idxmax(), 'base_model']})"
    return (
        found,
        verdict(off.max() < 3 * error),
        f"Three standard errors of 20,000 facts are {3 * error:.3f}.",
    )


@claim(
    "4.2.2, table 2",
    "the larger OPT, Pythia and Bloom know less than half of what the smaller know",
    "rate < 0.5",
)
def subsumption_by_size() -> Finding:
    t = table("table2")
    small, large, rate = (
        t[c] for c in ("smallest_accuracy", "largest_accuracy", "subsumption_rate")
    )
    kept = rate * large / small
    feasible = ((rate * large <= small + 0.002) & (rate * large >= small + large - 1 - 0.002)).sum()
    return (
        f"as worded, the rate lies below chance agreement (the larger's accuracy) in {(rate < large).sum()} of "
        f"{len(t)} families; read as P(small knows | large knows) it lies above it in {(rate > small).sum()}",
        OPEN,
        f"Agreement below chance everywhere is unlikely. The printed rates fit the reversed condition ({feasible} of "
        f"{len(t)} are possible); then the larger model keeps "
        f"{kept.min():.0%} to {kept.max():.0%} of what the smaller knows. Averages over relations are no proof.",
    )


@claim("Table 11", "fine-tuned models keep 0.56 to 0.93 of what their base knows", "13 rates")
def subsumption_by_tuning() -> Finding:
    t = table("table11")
    base, tuned, rate = (t[c] for c in ("base_accuracy", "ft_accuracy", "subsumption_rate"))
    kept = rate * base / tuned
    feasible = ((rate * base <= tuned + 0.002) & (rate * base >= base + tuned - 1 - 0.002)).sum()
    return (
        f"as worded, {(rate < base).sum()} of {len(t)} rates lie below chance agreement; reversed, "
        f"{(rate > tuned).sum()} lie above",
        OPEN,
        f"Read as P(tuned knows | base knows), {feasible} of {len(t)} are possible, and {kept.min():.0%} to "
        f"{kept.max():.0%} of what the tuned model knows the base knew before. Both directions are needed.",
    )


@claim("4.2.3", "fine-tuning lowers accuracy in almost all cases", "almost all")
def tuning_table11() -> Finding:
    t = table("table11")
    change = t["ft_accuracy"] - t["base_accuracy"]
    p = scipy.stats.binomtest(int((change < 0).sum()), len(t)).pvalue
    worst = f"{t.loc[change.idxmin(), 'base_model']} {change.min():+.3f}"
    return (
        f"lower in {(change < 0).sum()} of {len(t)} (sign test p = {p:.1g})",
        verdict(bool((change < 0).mean() > 0.8)),
        f"Median {change.median():+.3f}; the largest loss is {worst}.",
    )


@claim("Figure 9, table 8", "the same in the leaderboard", "14 pairs")
def tuning_table8() -> Finding:
    t = leaderboard()
    base = dict(zip(t["simplified_name"], t["avg_accuracy"], strict=True))
    tuned = t[t["kind_x"] == "finetuned"]
    change = tuned["avg_accuracy"] - tuned["base_model"].map(base)
    why = f"Mean {change.mean():+.3f}. Which Vicuna is which must be guessed from the names."
    found = f"lower in {(change < 0).sum()} of {len(change)}"
    return found, verdict(bool((change < 0).mean() > 0.8), caveat=True), why


@claim("Tables 7 and 11", "FT1 and FT2 mean the same in both tables", "Llama2-7B, Llama2-13B")
def tuned_names() -> Finding:
    t11, t8 = table("table11"), table("table8").set_index("table7_simplified_name")["avg_accuracy"]
    rows = t11[t11["base_model"].isin(["Llama2-7B", "Llama2-13B"])]
    as_named = (
        rows["ft_accuracy"]
        - (rows["base_model"] + "-" + rows["ft_type"].str.replace("-", "")).map(t8)
    ).abs()
    swapped = rows["ft_type"].map({"FT-1": "FT2", "FT-2": "FT1"})
    other = (rows["ft_accuracy"] - (rows["base_model"] + "-" + swapped).map(t8)).abs()
    return (
        f"mean distance to table 8 with the labels as printed {as_named.mean():.3f}, exchanged {other.mean():.3f}",
        verdict(as_named.mean() <= other.mean()),
        "For these two base models the labels seem exchanged between the tables.",
    )


def gain(name: str, to: str, over: str) -> Finding:
    """A printed relative gain (percent) against its two accuracies, which are printed with two digits."""
    a, b = stated(to), stated(over)
    low, high = (100 * ((a + d) / (b - d) - 1) for d in (-0.005, 0.005))
    found = f"{100 * (a / b - 1):.1f} %; rounding allows {low:.1f} to {high:.1f} %"
    return (
        found,
        verdict(low <= stated(name) <= high),
        "The accuracies are printed with two digits.",
    )


@claim("4.1, figure 5", "ZP answers better than human-written prompts", "+35 % (0.45 to 0.61)")
def response_over_hgp() -> Finding:
    return gain("response_gain_over_HGP", "response_acc_ZP", "response_acc_HGP")


@claim("4.1, figure 5", "ZP answers better than mined prompts", "+90 % (0.32 to 0.61)")
def response_over_mmp() -> Finding:
    return gain("response_gain_over_MMP", "response_acc_ZP", "response_acc_MMP")


@claim("4.1, figure 5", "ZP chooses better than human-written prompts", "+9.41 % (0.71 to 0.78)")
def choice_over_hgp() -> Finding:
    return gain("mc_gain_over_HGP", "mc_acc_ZP", "mc_acc_HGP")


@claim("4.1, figure 5", "ZP chooses better than mined prompts", "+57 % (0.50 to 0.78)")
def choice_over_mmp() -> Finding:
    return gain("mc_gain_over_MMP", "mc_acc_ZP", "mc_acc_MMP")


@claim("section 1", "on position played, ZP beats human-written prompts", "+152 % (0.17 to 0.43)")
def position_over_hgp() -> Finding:
    return gain("position_played_gain_over_HGP", "position_played_mc_ZP", "position_played_mc_HGP")


@claim("section 1", "on position played, ZP beats mined prompts", "+310 % (0.10 to 0.43)")
def position_over_mmp() -> Finding:
    return gain("position_played_gain_over_MMP", "position_played_mc_ZP", "position_played_mc_MMP")


@claim("4.2.2, figure 7", "larger models of a family know more, OPT excepted", "figure 7")
def larger_is_better() -> Finding:
    t = leaderboard().query("kind_x == 'pretrained'").sort_values("params_b_approx")
    falls = [
        f"{a} > {b}"
        for _, rows in t.groupby("family")
        for a, b, down in zip(
            rows["model"], rows["model"][1:], rows["avg_accuracy"].diff()[1:] < 0, strict=False
        )
        if down
    ]
    r = stats.pearson(np.log10(t["params_b_approx"]), t["avg_accuracy"])
    others = [pair for pair in falls if not pair.startswith("OPT")]
    return (
        f"exceptions: {'; '.join(falls)}. Over all pretrained models, log size and accuracy: {stats.in_words(r)}",
        verdict(r["r"] > 0.5, caveat=bool(others)),
        f"Outside OPT there is {', '.join(others) or 'none'}, which the text does not name.",
    )


@claim(
    "4.2.1", "Mistral, Llama2, Gemma and Llama lead Pythia, Bloom and OPT at about 7B", "figure 7"
)
def families_at_7b() -> Finding:
    t = (
        leaderboard()
        .query("kind_x == 'pretrained' and 6 <= params_b_approx <= 8.6")
        .set_index("family")["avg_accuracy"]
    )
    leading, trailing = t[["Mistral", "Llama2", "Gemma", "Llama"]], t[["Pythia", "Bloom", "OPT"]]
    return (
        f"lowest of the leading {leading.min():.3f} ({leading.idxmin()}), highest of the others {trailing.max():.3f} "
        f"({trailing.idxmax()})",
        verdict(leading.min() > trailing.max()),
        f"Falcon-7B ({t['Falcon']:.3f}) lies above Llama-7B and is not named.",
    )


@claim("4.2.1, table 10", "all models agree on their best and worst relations", "3 best, 3 worst")
def best_and_worst() -> Finding:
    t = table("table10")
    best, worst = (
        t[part]["relation"].value_counts() for part in (t["order"] <= 3, t["order"] >= 48)
    )
    models, both = t["model"].nunique(), [r for r in best.index if r in worst.index]
    conflict = ", ".join(
        f"{r} is among the best of {best[r]} and the worst of {worst[r]}" for r in both
    )
    return (
        f"{best.index[0]} is among the best of {best.iloc[0]} of {models} models, {worst.index[0]} among the worst "
        f"of {worst.iloc[0]}",
        verdict(bool(best.iloc[0] > models / 2 and worst.iloc[0] > models / 2), caveat=bool(both)),
        f"{conflict or 'No relation is in both lists'}: an artefact of the run or of the date's format, more than "
        "knowledge.",
    )


@claim("Table 8", "neighbours in the leaderboard differ", "48 gaps")
def neighbours() -> Finding:
    t = table("table8")
    p = t["avg_accuracy"]
    error = np.sqrt(p * (1 - p) / (FACTS * RELATIONS))
    gaps = -p.diff()[1:]
    close = int(
        (
            gaps.to_numpy() < 2 * np.sqrt(error.to_numpy()[1:] ** 2 + error.to_numpy()[:-1] ** 2)
        ).sum()
    )
    return (
        f"{close} of {len(gaps)} gaps are below two standard errors of a difference",
        OPEN,
        f"Sampling facts gives at most {error.max():.4f}; sampling relations "
        f"{t['std_dev'].max() / np.sqrt(RELATIONS):.3f}. The same "
        "facts were asked of all models, so a paired test could decide; its data are not printed.",
    )


@claim("Table 8", "Falcon-instruct-7B's score is a measurement", "0.00605")
def falcon() -> Finding:
    share = table("table8").set_index("model")["avg_accuracy"]["Falcon-instruct-7B"]
    n = FACTS * RELATIONS
    p = scipy.stats.binomtest(round(share * n), n, 0.01).pvalue
    return (
        f"{round(share * n)} of {n:,} against {n // 100} by guessing among 100 (p = {p:.1g})",
        verdict(p > 0.001),
        "Below chance: a failed run (undefined scores that lose every comparison would do it). It should be left out.",
    )


@claim(
    "4.1, table 6", "three human-written and three mined templates for 12 relations", "36 of each"
)
def templates_counted() -> Finding:
    t = table("table6")
    there = t[["hgp", "mmp"]].notna().sum()
    without = int((~t["hgp"].dropna().str.contains("{subject}", regex=False)).sum())
    return (
        f"{there['hgp']} human-written and {there['mmp']} mined ones of {len(t)}; {without} without its subject",
        verdict(bool(there.min() == len(t))),
        "A relation with fewer templates than three is averaged over fewer.",
    )


@claim("4, A.2", "20,000 test and 5,000 training facts", "50 relations")
def facts_counted() -> Finding:
    ok = stated("n_test_facts") == FACTS * RELATIONS and len(table("table9")) == RELATIONS
    return (
        f"{len(table('table9'))} relations x {FACTS} = {FACTS * RELATIONS:,}",
        verdict(ok),
        "Counted in table 9.",
    )


@claim("A.1, 3", "900 of 954 laureates are tested with 50 examples", "954, 900, 50")
def laureates() -> Finding:
    left = stated("n_nobel") - stated("n_nobel_test")
    return (
        f"{left:.0f} are left as examples",
        verdict(left >= stated("n_context_examples"), caveat=left < stated("fig4_sequence_length")),
        "Enough for figure 3. The 200 pairs of figure 4 must contain tested laureates.",
    )


@claim("Table 9", "the 12 relations of the comparison with prompts", "0.78 multiple choice")
def baseline_relations() -> Finding:
    t9 = table("table9").assign(key=lambda t: t["relation"].str.lower())
    names = table("table6")["relation"].str.lower().unique()
    aliases = {"original language of film/tv show": "original language of film or tv show"}
    aliases |= {"language spoken, written or signed": "languages spoken, written or signed"}
    found = t9[t9["key"].isin([aliases.get(name, name) for name in names])]
    return (
        f"mean over {len(found)} of 12 relations and 35 models {found['avg_accuracy'].mean():.3f}; the paper's four "
        "models 0.78",
        OPEN,
        "Other models, so it shows only that the order of size is right.",
    )


@claim("4.2.1, figure 8", "families agree on relations (correlation above 0.6)", "> 0.6")
def family_correlation() -> Finding:
    return (
        "no accuracy of a model on a relation is printed",
        OPEN,
        "Table 9 has averages only, figures 7 and 8 are pictures.",
    )
