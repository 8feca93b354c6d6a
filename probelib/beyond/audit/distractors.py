"""The printed numbers of Distractors, recomputed. Figure values were read off the pictures, to about 0.005."""

import numpy as np
import pandas as pd
import scipy

from probelib import published, stats
from probelib.beyond.audit.claims import OPEN, Finding, claim, rounds, verdict

ANNOTATED = 77  # verbalizations with annotated errors (4.3)


def table(number: str) -> pd.DataFrame:
    return published.table(f"distractors/{number}")


def figure(name: str) -> pd.DataFrame:
    """A figure's curves, one row per x, one column per series."""
    rows = table("figures")
    return rows[rows["figure"] == name].pivot(index="x", columns="series", values="y")


def stated(name: str) -> float:
    return float(table("claims").set_index("claim")["value"][name])


def folds() -> pd.DataFrame:
    """tau on the three test folds of table 9: [9 measures, 3]."""
    t = table("table9")
    name = ("Dist. " + t["strategy"]).where(t["measure"] == "Dist.", t["measure"])
    return t.assign(name=name).pivot(index="name", columns="fold", values="tau_test")


@claim("Tables 3 and 9", "the means of table 3 follow from the folds of table 9", "8 measures")
def means() -> Finding:
    t3, t9 = table("table3").set_index("measure")["mean_tau"], folds().mean(axis=1)
    off = (t9 - t3).abs().dropna()
    return (
        f"largest difference {off.max():.4f} over {len(off)} measures",
        verdict(off.max() < 0.005),
        "The folds are printed with two digits. KaRR has no row in table 9.",
    )


@claim("Tables 3 and 9", "the spreads of table 3 are those of the folds", "8 measures")
def spreads() -> Finding:
    t3, t9 = table("table3").set_index("measure")["std_tau"], folds()
    off = {ddof: (t9.std(axis=1, ddof=ddof) - t3).abs().dropna().max() for ddof in (0, 1)}
    found = f"largest difference {off[1]:.4f} with n - 1, {off[0]:.4f} with n"
    return found, verdict(off[1] < 0.006), "Sample standard deviations of three numbers."


@claim("4.2", "ApprOpt follows human judgement better than Probability", "0.282 against 0.262")
def against_probability() -> Finding:
    return _paired("Probability")


@claim("4.2", "ApprOpt is better than Temp+Sem", "0.282 against 0.242")
def against_temp_sem() -> Finding:
    return _paired("Dist. Temp+Sem")


@claim("4.2", "ApprOpt is better than Random", "0.282 against 0.225")
def against_random() -> Finding:
    return _paired("Dist. Random")


def _paired(other: str) -> Finding:
    t = folds()
    difference = t.loc["Dist. ApprOpt"] - t.loc[other]
    p = scipy.stats.ttest_1samp(difference, 0).pvalue
    return (
        f"differences of the folds {', '.join(f'{d:+.2f}' for d in difference)}; paired t-test p = {p:.2f}",
        verdict(difference.mean() > 0, caveat=p > 0.05),
        "The order holds; three folds "
        + (
            "do not show that it is more than chance."
            if p > 0.05
            else "show a difference, if the folds are taken as independent."
        ),
    )


@claim("4.2", "a tau of 0.1 to 0.3 on 210 facts differs from zero", "table 3")
def null_error() -> Finding:
    n = stated("human_facts")
    error = np.sqrt(2 * (2 * n + 5) / (9 * n * (n - 1)))
    t = table("table3").set_index("measure")["mean_tau"]
    near = t.index[t < 2 * error]
    return (
        f"standard error of tau without relation {error:.3f} on {n:.0f} facts; all {len(t)} lie above two of them"
        if not len(near)
        else f"standard error of tau without relation {error:.3f}; below two of them: {', '.join(near)}",
        verdict(True, caveat=bool(len(near)) or t.nlargest(2).diff().abs().iloc[-1] < 2 * error),
        f"Two measures that are less than about {2 * error:.2f} apart are not told apart by {n:.0f} facts.",
    )


@claim("Table 9", "Sem was evaluated against human judgement", "3 folds")
def sem_is_temp_sem() -> Finding:
    t = table("table9").set_index("strategy")[["agg", "num_distractors", "fold", "tau_test"]]
    same = t.loc["Sem"].reset_index(drop=True).equals(t.loc["Temp+Sem"].reset_index(drop=True))
    return (
        "all configurations and values equal those of Temp+Sem"
        if same
        else "rows differ from Temp+Sem",
        verdict(not same),
        "Three folds that agree in every digit of two different strategies point to one result printed twice.",
    )


@claim("Table 5", "shares of verbalization errors with Wilson intervals", "10 rows, n = 77")
def wilson_intervals() -> Finding:
    t = table("table5")
    counts = (t["proportion_pct"] * ANNOTATED / 100).round().astype(int)
    again = np.array([stats.wilson(k, ANNOTATED) for k in counts]) * 100
    off = np.abs(again - t[["wilson_lo_pct", "wilson_hi_pct"]].to_numpy()).max()
    found = f"counts {', '.join(map(str, counts))} of 77; largest difference {off:.2f} points"
    return found, verdict(off < 0.06), "All shares are whole counts of 77."


@claim("Table 6", "no blunder in 77: interval up to 2.5 %", "0.0 (0.0, 2.5)")
def blunders() -> Finding:
    high, n = 100 * stats.wilson(0, ANNOTATED)[1], 152
    return (
        f"0 of 77 gives (0.0, {high:.1f})",
        verdict(rounds(high, 2.5, 1)),
        f"Table 5 itself prints 4.8 for a count of 0. 2.5 belongs to 0 of {n} ({100 * stats.wilson(0, n)[1]:.1f}).",
    )


@claim("4.3", "45.5 % of the verbalizations have an error", "45.5 (34.8, 56.5)")
def flawed_share() -> Finding:
    low, high = (100 * v for v in stats.wilson(35, ANNOTATED))
    ok = rounds(100 * 35 / ANNOTATED, 45.5, 1) and rounds(low, 34.8, 1) and rounds(high, 56.5, 1)
    return f"35 of 77 = {100 * 35 / ANNOTATED:.1f} ({low:.1f}, {high:.1f})", verdict(ok), "Exact."


@claim("Tables 5 and 6", "the shares without error agree", "54.5 in both")
def without_error() -> Finding:
    a, b = (
        table(name).set_index(table(name).columns[0]).loc["Free of errors"].tolist()
        for name in ("table5", "table6")
    )
    return f"{a} and {b}", verdict(a == b), "Share and interval are the same."


@claim("4.3, table 4", "ApprOpt is by far the least sensitive to verbalization", "tau 0.92")
def robustness() -> Finding:
    n = 27  # pairs in the released file; the text says 32
    one_flip = [_phi(n, ones) for ones in range(5, n - 4)]
    tau = table("table4").set_index("measure")["robustness_tau"]
    continuous = tau[["Probability", "BERT-Score", "ROUGE-L"]]
    return (
        f"a binary score of {n} pairs (as released; the text says 32) with one change has tau-b = "
        f"{min(one_flip):.2f} to {max(one_flip):.2f}",
        OPEN,
        "Min@n with one sentence is binary, so its tau-b is a phi coefficient that a single change decides. Probability, "
        f"BERT-score and ROUGE-L are continuous (printed: {continuous.min()} to {continuous.max()}), and their tau falls with "
        "any change of order: the scales cannot be compared. The judge says yes or no, too, and gets "
        f"{tau['LLM-as-a-judge']}. A flip rate of 1/{n} has a Wilson interval of "
        f"{100 * stats.wilson(1, n)[0]:.1f} to {100 * stats.wilson(1, n)[1]:.0f} %.",
    )


def _phi(n: int, ones: int) -> float:
    """tau-b of two binary ratings of n facts that differ in one."""
    first = np.arange(n) < ones
    return stats.kendall(first, np.arange(n) < ones - 1)["tau"]


@claim("4.1", "the first ApprOpt distractor deceives Pythia-6.9B in 60 % of cases", "60 %")
def first_distractor() -> Finding:
    t = figure("fig5")
    curve, two = t["6.9B"].dropna(), t.loc[2.0].dropna()
    return (
        f"the curve of 6.9B is legible from n = {curve.index[0]:.0f} ({curve.iloc[0]:.3f}); at n = 2 other sizes have "
        f"{two.min():.2f} to {two.max():.2f}",
        verdict(two.min() - 0.05 < 0.40 <= two.max(), caveat=True),
        "Read off figure 5: a value of 0.40 at n = 1 continues the curves.",
    )


@claim("App. E, figure 8", "the log-linear fit has R2 = 0.995", "0.995")
def fit() -> Finding:
    line = figure("fig8")["Avg@20"]
    f = stats.scaling_fit(line.index, line)
    r = np.sqrt(f["r2"])
    return (
        f"R2 = {f['r2']:.3f}, r = {r:.3f}",
        verdict(rounds(f["r2"], 0.995)),
        "The printed number is what the correlation coefficient gives; R2 is its square.",
    )


@claim("App. E, figure 8", "90 % takes 2 x 10^19 parameters", "2e19")
def extrapolation() -> Finding:
    line = figure("fig8")["Avg@20"]
    f = stats.scaling_fit(line.index, line)
    return (
        f"the refitted line reaches 0.9 at {f['size_at']:.1e} (95 % interval {f['size_low']:.0e} to "
        f"{f['size_high']:.0e})",
        verdict(f["size_low"] <= 2e19 <= f["size_high"], caveat=True),
        f"Five points, extrapolated over {np.log10(f['size_at'] / line.index.max()):.0f} decades; the printed value is "
        f"{2e19 / f['size_at']:.0f} times the line's.",
    )


@claim("5.1", "Random and Temp+Sem have their optimum at about 130 and 110 distractors", "130, 110")
def optimum() -> Finding:
    t = figure("fig3")
    at = t[["Random", "Temp+Sem"]].idxmax()
    ok = abs(at["Random"] - 130) <= 20 and abs(at["Temp+Sem"] - 110) <= 20
    flat = t["Temp+Sem"].max() - t["Temp+Sem"].iloc[-1]
    return (
        f"maxima of figure 3 at {at['Random']:.0f} and {at['Temp+Sem']:.0f}",
        verdict(ok),
        f"Random still rises at the end of the axis; Temp+Sem loses {flat:.3f} from its maximum to 200, far below "
        "the error of a tau.",
    )


@claim("5.1", "ApprOpt is near its optimum with 15 distractors", "about 15")
def few_distractors() -> Finding:
    t = figure("fig3")["ApprOpt"]
    return (
        f"{t[15.0]:.3f} at 15, {t.max():.3f} at most",
        verdict(t.max() - t[15.0] < 0.01),
        "Even 5 give " + f"{t[5.0]:.3f}.",
    )


@claim(
    "5.1, figure 6",
    "more sentences help BERT-score, ROUGE-L and the judge by 5, 3 and 7 %",
    "+5, +3, +7 %",
)
def gains() -> Finding:
    t = figure("fig6_pct").loc[5.0]
    pairs = {"BERT-Score": 5, "ROUGE-L": 3, "LLM-as-a-judge": 7}
    ok = all(abs(t[name] - printed) < 0.5 for name, printed in pairs.items())
    return (
        ", ".join(f"{name} {t[name]:.1f} %" for name in pairs),
        verdict(ok),
        "Read off figure 6 at five sentences.",
    )


@claim("App. C", "decoding measures profit most from more sentences", "figure 6")
def who_gains_most() -> Finding:
    t = figure("fig6_pct")
    decoding, ours = t.loc[5.0, ["BERT-Score", "ROUGE-L", "LLM-as-a-judge"]], t["Dist. ApprOpt"]
    ahead = decoding.index[decoding < ours[5.0]].tolist()
    return (
        f"ApprOpt gains {ours[5.0]:.1f} % at five sentences and {ours.max():.1f} % at {ours.idxmax():.0f}",
        verdict(not ahead),
        f"That is more than {' and '.join(ahead)} at five, and the most of all at three.",
    )


@claim("5.1, figure 4", "ApprOpt peaks at three sentences", "3 sentences")
def peak() -> Finding:
    t = figure("fig4")["Dist. ApprOpt"]
    found = f"{t.max():.3f} at {t.idxmax():.0f}, {t[5.0]:.3f} at 5"
    return (
        found,
        verdict(t.idxmax() == 3, caveat=True),
        "The difference of 0.015 is below the error of a tau on 210 facts.",
    )


@claim("Figures 3, 4 and table 3", "the figures are cross-validated means", "5 sentences")
def selection() -> Finding:
    t4, t3 = (
        figure("fig4").loc[5.0],
        table("table3").set_index("measure")["mean_tau"].rename({"BERT-score": "BERT-Score"}),
    )
    off = (t4 - t3).dropna()
    above = off[off > 0.01]
    return (
        "at five sentences figure 4 exceeds table 3 by "
        + ", ".join(f"{v:.3f} ({k})" for k, v in above.items()),
        verdict(not len(above)),
        "With a configuration chosen on each fold's own training part the two would agree; a common one was applied "
        "to all folds.",
    )


@claim("Figure 6", "Precision@n gains nothing from more sentences", "0 %")
def precision_gain() -> Finding:
    t = figure("fig4")["Precision@n"]
    gain = 100 * ((t[5.0] + 1) / (t[1.0] + 1) - 1)
    return (
        f"figure 4 gives {gain:+.1f} %",
        verdict(abs(gain) < 0.5),
        "Figures 4 and 6 disagree; a fold without a tau may have been skipped.",
    )


@claim("4.1", "temporal distractors lower Min@1 by 0.17 on S'", "-0.17")
def temporal() -> Finding:
    t = figure("fig2").loc[1.0]
    drop = t["Sem"] - t["Temp+Sem"]
    return (
        f"{t['Sem']:.3f} - {t['Temp+Sem']:.3f} = {drop:.3f}",
        verdict(abs(drop - 0.17) <= 0.015),
        "Read off figure 2, to about 0.015.",
    )


@claim("5.2, figure 5", "Avg@n grows smoothly with n", "5 models")
def composition() -> Finding:
    t = figure("fig5")
    drop = t.loc[29.0] - t.loc[28.0]
    return (
        f"all {(drop < 0).sum()} curves fall between n = 28 and 29, by {-drop.max():.3f} to {-drop.min():.3f}",
        verdict(bool((drop >= 0).all())),
        "Facts with 28 distractors leave the average there: the curve compares different facts.",
    )


@claim("5.2, figure 5", "larger models are more robust", "70M to 12B")
def robust_by_size() -> Finding:
    t = figure("fig5")[["70M", "410M", "2.8B", "6.9B", "12B"]].dropna()
    rising = (t.diff(axis=1).iloc[:, 1:] > 0).all(axis=1)
    found = f"at {rising.sum()} of {len(t)} values of n every larger model is above the smaller"
    return (
        found,
        verdict(bool(rising.mean() > 0.8)),
        f"From 70M to 12B the gain at 20 distractors is {t.loc[20.0, '12B'] - t.loc[20.0, '70M']:.3f}.",
    )


@claim("App. A", "437,954 verbalized facts", "346,702 + 91,252")
def verbalized() -> Finding:
    total = stated("verbalised_facts_from_wikifactdiff") + stated("verbalised_facts_from_wikidata")
    return f"{total:,.0f}", verdict(total == stated("verbalised_facts_after")), "The sum is right."


@claim("Table 7", "15 distinct distractors a strategy", "4 lists")
def sample_lists() -> Finding:
    t = table("table7").drop(columns="rank")
    twice = {c: t[c][t[c].duplicated()].tolist() for c in t if t[c].duplicated().any()}
    found = "; ".join(f"{', '.join(v)} twice under {k}" for k, v in twice.items()) or "all distinct"
    return (
        found,
        verdict(len(twice) < 2, caveat=bool(twice)),
        "One label with two tokenizations, or two entities of one name.",
    )


@claim("4.2", "KaRR reaches 0.104 against human judgement", "0.104")
def karr() -> Finding:
    return (
        f"its authors report {stated('karr_tau_reported_by_its_authors')}",
        OPEN,
        "On 410 facts in place of 210, and no fold is printed: the tables do not say where the difference comes from.",
    )
