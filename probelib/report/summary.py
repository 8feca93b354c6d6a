"""The summary at the top of the report: the headline figure, the findings, and key numbers of all artifacts, reported and ours.

Everything is read from the artifacts' own files; artifacts that were not made are left out, or shown as a dash.
"""

import contextlib
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pandas as pd

from probelib import paths, published, stats
from probelib.report.sheets import read_csv
from probelib.report.shown import span

HEADLINE = "beyond/quality_against_cost"


Number = Callable[[pd.DataFrame], float]  # of a table


class Key(NamedTuple):
    """One number of an artifact: ``reported`` by the paper (artifact -> number), and ``ours``, computed from its CSV.

    signed   True for a difference or a correlation, whose sign matters most; or a function that says whether ours is significant
    """

    what: str
    reported: Callable[[str], float]
    ours: Number
    signed: bool | Callable[[pd.DataFrame], bool] = False


def claim(paper: str, name: str) -> float:
    """A number that a paper states in its text."""
    return float(published.table(f"{paper}/claims").set_index("claim")["value"][name])


def printed(number: Number, table: str | None = None) -> Callable[[str], float]:
    """A number of the table that the paper prints for the artifact, or of another ``table``."""
    return lambda artifact: number(published.table(table or artifact))


def mean(column: str) -> Number:
    return lambda t: t[column].mean()


def _correlate(x: str, y: str) -> Number:
    return lambda t: stats.pearson(t[x], t[y])["r"]


def _with_monitor(table: str, column: str, ours: str) -> Key:
    """The correlation of MONITOR with a column of a printed table, called ``ours`` in the artifact."""
    significant = lambda t: bool(stats.pearson(t["MONITOR"], t[ours])["p"] < 0.05)
    reported = printed(_correlate("MONITOR", column), table)
    return Key(f"r(MONITOR, {ours})", reported, _correlate("MONITOR", ours), significant)


def _last_minus_first(values: pd.Series) -> float:
    return float(values.iloc[-1] - values.iloc[0])


def _change_of_methods(t: pd.DataFrame) -> float:
    """ZP-LKE minus HGP in the multiple-choice test, mean over models and over each method's relations."""
    mean = t[t["test"] == "multiple choice"].groupby("method")["accuracy"].mean()
    return mean["ZP-LKE"] - mean["HGP"]


def _settles(t: pd.DataFrame) -> float:
    """The first n at which the tau of ApprOpt is within 0.01 of its best."""
    tau = t[t["strategy"] == "ApprOpt"].set_index("n")["tau"].sort_index()
    return float(tau.index[tau >= tau.max() - 0.01 - 1e-12].min())


def _lead(value: str) -> Number:
    """``value`` of the measure Dist. ApprOpt minus that of Probability."""
    return lambda t: t.set_index("measure")[value].pipe(lambda values: values["Dist. ApprOpt"] - values["Probability"])


def _sure(t: pd.DataFrame) -> float:
    """Percent of the primary anchors of .8 or more, in the model that has the larger share."""
    primary = t[t["anchor"] == "primary"]
    return float(100 * (primary["probability"] >= 0.8).groupby(primary["model"]).mean().max())


def _loss_by_context(prob: str, model: str) -> Number:
    """Change of the gold answer's probability by a negative context, mean over models."""
    change = lambda wide: (wide["neg. context"] - wide["pos. context"]).mean()
    return lambda t: change(t.pivot(index=model, columns="effect", values=prob))


def _gap(model: str) -> Number:
    """The largest range of F1 over the states that are read, for one model's answers."""
    return lambda t: float(t.groupby(model)["f1"].agg(np.ptp).max())


def _faster_in_print(t: pd.DataFrame) -> float:
    """Largest speed-up of the judge over generation one by one (TG)."""
    by = t.groupby(["gpu", "model", "method"])["facts_per_s"].max().unstack("method")
    return float((by.drop(columns="TG").max(axis=1) / by["TG"]).max())


def _slope(t: pd.DataFrame, x: str, y: str) -> float:
    return stats.scaling_fit(t[x], t[y])["b"]


KEYS = {
    "monitor/figure3": Key(
        "probability of the gold object, primary anchor minus negative context",
        lambda _: claim("monitor", "fig3_primary_anchor") - claim("monitor", "fig3_negative_foreign_anchor"),
        lambda t: -_last_minus_first(t.loc[t["gold"], "probability"]),
        True,
    ),
    "monitor/table2": Key(
        "largest difference between sentence and question, points",
        printed(lambda t: (t["QA"] - t["WP"]).abs().max()),
        lambda t: (t["QA"] - t["WP"]).abs().max(),
    ),
    "monitor/table3": Key("mean change by negative context, points", printed(mean("neg_delta")), mean("Δ [Y_]"), True),
    "monitor/table4": _with_monitor("monitor/table4", "avg_acc", "avg acc"),
    "monitor/table5": Key(
        "mean MONITOR in P37", printed(lambda t: t.loc[t["relation"] == "P37", "MONITOR"].mean()), mean("P37: MONITOR")
    ),
    "monitor/table6": _with_monitor("monitor/table6", "std", "std"),
    "monitor/figure8": _with_monitor("monitor/table6", "std", "std"),
    "monitor/table7": Key(
        "change of the gold answer's probability by a negative context",
        printed(_loss_by_context("prob", "model_key")),
        _loss_by_context("prob.", "model"),
        True,
    ),
    "monitor/table8": Key(
        "accuracy study's cost over MONITOR's (GPU hours; seconds)",
        lambda _: claim("monitor", "gpu_saving"),
        lambda t: t.set_index(["way", "cost"])["saved"]["generated", "device seconds"],
    ),
    "monitor/table9": Key(
        "facts per relation (mean)",
        lambda _: claim("monitor", "n_triplets") / claim("monitor", "n_relations"),
        mean("facts"),
    ),
    "monitor/table10": Key(
        "mean MONITOR over relations and models",
        printed(mean("MONITOR")),
        lambda t: t.select_dtypes("number").melt()["value"].mean(),
    ),
    "monitor/table11": Key("mean r over relations", printed(mean("pearson_r")), mean("r"), True),
    "monitor/figure6": Key(
        "r(MONITOR with 7 frames, with 4)",
        printed(_correlate("MONITOR_7_prompts", "MONITOR_4_prompts"), "monitor/figure10"),
        _correlate("all frames", "first frames"),
        True,
    ),
    "monitor/figure10": Key(
        "mean difference of MONITOR with 4 frames",
        printed(lambda t: (t["MONITOR_7_prompts"] - t["MONITOR_4_prompts"]).abs().mean()),
        lambda t: (t["all frames"] - t["first frames"]).abs().mean(),
    ),
    "monitor/figure9": Key(
        "primary anchors of .8 or more, the surer model, percent",
        lambda _: claim("monitor", "solid_share_vicuna_7b_p37"),
        _sure,
    ),
    "zplke/table2": Key("mean subsumption rate", printed(mean("subsumption_rate")), mean("eta")),
    "zplke/table8": Key("best accuracy", printed(lambda t: t["avg_accuracy"].max()), lambda t: t["accuracy"].max()),
    "zplke/table9": Key(
        "spread of relations (standard deviation)",
        printed(lambda t: t["avg_accuracy"].std()),
        lambda t: t["base"].std(),
    ),
    "zplke/table11": Key(
        "mean change by tuning",
        printed(lambda t: (t["ft_accuracy"] - t["base_accuracy"]).mean()),
        lambda t: (t["accuracy of it"] - t["accuracy"]).mean(),
        True,
    ),
    "zplke/figure4": Key(
        "mean probability of the objects, all examples correct",
        lambda _: claim("zplke", "fig4a_stable_mean_prob_mistral7b"),
        lambda t: t.loc[t["context"] == "correct", "probability"].mean(),
    ),
    "zplke/figure5": Key(
        "ZP-LKE minus HGP, multiple choice",
        lambda _: claim("zplke", "mc_acc_ZP") - claim("zplke", "mc_acc_HGP"),
        _change_of_methods,
        True,
    ),
    "zplke/figure8": Key(
        "smallest mean r between families (paper: more than)",
        lambda _: claim("zplke", "family_correlation_floor"),
        lambda t: t.loc[t["a"] != t["b"], "r"].min(),
        True,
    ),
    "distractors/table3": Key(
        "tau of ApprOpt minus tau of Probability", printed(_lead("mean_tau")), _lead("tau"), True
    ),
    "distractors/table4": Key(
        "robustness tau of ApprOpt minus that of Probability", printed(_lead("robustness_tau")), _lead("tau"), True
    ),
    "distractors/table6": Key(
        "free of errors, percent", printed(lambda t: t["proportion_pct"].iloc[-1]), lambda t: t["percent"].iloc[-1]
    ),
    "distractors/figure1": Key(
        "Min@n with ApprOpt, largest n",
        lambda _: claim("distractors", "Min@n_plateau_ApprOpt_pythia69"),
        lambda t: t[t["strategy"] == "ApprOpt"].sort_values("n")["mean"].iloc[-1],
    ),
    "distractors/figure2": Key(
        "change of Min@1 by a former object",
        lambda _: -claim("distractors", "Min@1_drop_TempSem_vs_Sem_on_S_prime"),
        lambda t: t[t["n"] == 1].set_index("strategy")["mean"].pipe(lambda m: m["Temp+Sem"] - m["Sem"]),
    ),
    "distractors/figure3": Key(
        "first n at which ApprOpt's tau is within 0.01 of its best",
        lambda _: claim("distractors", "distractors_at_convergence_ApprOpt"),
        _settles,
    ),
    "distractors/figure6": Key(
        "gain of BERT-score with all sentences, percent",
        lambda _: claim("distractors", "gain_pct_BERT-score"),
        lambda t: t[t["measure"] == "BERT-score"].sort_values("sentences")["gain"].iloc[-1],
        True,
    ),
    "distractors/figure8": Key(
        "rise of Avg@20 per factor of ten in size (ApprOpt)",
        printed(lambda t: _slope(t[t["figure"] == "fig8"], "x", "y"), "distractors/figures"),
        lambda t: _slope(t[(t["strategy"] == "ApprOpt") & t["fitted"]], "parameters", "mean"),
        True,
    ),
    "grapheval/table1": Key(
        "average degree", printed(lambda t: t["avg_degree"].iloc[0]), lambda t: t["average degree"].iloc[0]
    ),
    "grapheval/table2": Key(
        "change of Informative from the smallest to the largest model (paper: LLaMA-2)",
        printed(lambda t: _last_minus_first(t.loc[t["model"].str.startswith("LLaMA-2"), "informative"])),
        lambda t: _last_minus_first(t[t["scored by"] == "judge"].sort_values("parameters")["informative"]),
        True,
    ),
    "grapheval/table3": Key(
        "largest change of F1 by the states that are read", printed(_gap("label_model")), _gap("answers of")
    ),
    "grapheval/table4": Key(
        "the judge's speed over generation one by one, at most",
        printed(_faster_in_print),
        lambda t: t.loc[t["method"] == "judge, substitute", "by generation one by one"].max(),
    ),
}


def frame(profile: str, artifact: str) -> pd.DataFrame | None:
    """The numbers of an artifact; None if it was not made, or holds none."""
    path = paths.FIGURES / profile / f"{artifact}.csv"
    table = read_csv(path.read_bytes()) if path.exists() and path.stat().st_size > 1 else None
    return table if table is not None and len(table) else None


class Compared(NamedTuple):
    """A paper's key number beside ours (NaN: none); ``sign``: "same", "opposite", "not decided", or "" if the sign does not
    matter."""

    what: str
    reported: float
    ours: float
    sign: str


def key_numbers(profile: str, artifact: str) -> Compared | None:
    """The key number of an artifact; None if it has none, or was not made. Ours is NaN if the table cannot be compared (other
    models, other relations)."""
    own = frame(profile, artifact)
    if artifact not in KEYS or own is None:
        return None
    key, ours = KEYS[artifact], np.nan
    with contextlib.suppress(KeyError, IndexError, TypeError, ValueError):
        ours = float(key.ours(own))
    reported = float(key.reported(artifact))
    sign = ("same" if ours * reported > 0 else "opposite") if key.signed and np.isfinite(ours) else ""
    if sign and callable(key.signed) and not key.signed(own):
        sign = "not decided"
    return Compared(key.what, reported, ours, sign)


def in_cells(key: Compared) -> list[str]:
    """Texts of a row: what, reported, ours, sign."""
    return [key.what, *("–" if np.isnan(value) else f"{value:,.3g}" for value in key[1:3]), key.sign]


def _largest_change(change: pd.DataFrame) -> str:
    """The precision that changes the probability of the right answer most, or another measure most if that one is missing."""
    answers = change[change["p"].isna()]
    row = change.loc[(answers if len(answers) else change)["difference"].abs().idxmax()]
    return (
        f"Quantization to {row['precision']} changes {row['measure']} by {row['difference']:+.3f} "
        f"{span(row['low'], row['high'], '.3f')} on the same {row['n']:.0f} facts."
    )


def _best_measures(truth: pd.DataFrame) -> str:
    """The measures that put most pairs in the right order, the cheapest first, and the best control."""
    measures, control = truth[~truth["control"] & (truth["pairs"] > 0)], truth[truth["control"]].iloc[0]
    best = measures[measures["concordance"] == measures["concordance"].max()]
    best = best.sort_values("tokens a fact", kind="stable")
    first, others = best.iloc[0], best["measure"].iloc[1:].tolist()
    as_well = f"; so do {', '.join(others)}" if others else ""
    return (
        f"Of {len(measures)} measures, {first['measure']} puts most pairs of a taught and a never-taught fact in the right order "
        f"({first['concordance']:.1%} [{first['low']:.1%}, {first['high']:.1%}], n = {first['pairs']:,.0f} pairs), for "
        f"{first['tokens a fact']:,.0f} tokens per fact{as_well}. {control['measure']}, a control that does not test the fact, "
        f"reaches {control['concordance']:.1%}."
    )


def findings(profile: str) -> dict[str, str]:
    """Notebook beyond the papers -> one sentence on its finding, for the notebooks that were run."""
    said = {}
    truth = frame(profile, "beyond/ground_truth")
    if truth is not None and "concordance" in truth:
        said["beyond/ground_truth"] = _best_measures(truth)
    agree = frame(profile, "beyond/agreement")
    if agree is not None and "alike" in agree:
        said["beyond/agreement"] = (
            f"Two measures order {agree['alike'].mean():.1%} of the pairs of facts alike on average (n = {len(agree)} "
            "pairs of measures)."
        )
    if (change := frame(profile, "beyond/quantization_change")) is not None:
        said["beyond/quantization"] = _largest_change(change)
    if (audited := frame(profile, "beyond/audit")) is not None:
        counts = audited["verdict"].value_counts()
        verdicts = ", ".join(f"{n} {v.replace('holds', 'hold').replace('does', 'do')}" for v, n in counts.items())
        said["beyond/audit"] = (
            f"Of {len(audited)} published claims that were held against the printed tables, {verdicts}."
        )
    return said
