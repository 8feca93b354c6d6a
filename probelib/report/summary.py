"""What the report opens with: the headline figure, what was found, and every artifact, reported against ours.

Everything is read from the artifacts' own files; what was not made (yet) is left out, or is a dash.
"""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from probelib import paths, published, stats
from probelib.report.sheets import read_csv

HEADLINE = "beyond/quality_against_cost"


class Key(NamedTuple):
    """One number of an artifact, as the paper has it and as ours has it."""

    what: str
    reported: Callable[[pd.DataFrame], float]
    ours: Callable[[pd.DataFrame], float]


def correlate_columns(x: str, y: str) -> Callable[[pd.DataFrame], float]:
    return lambda t: stats.pearson(t[x], t[y])["r"]


KEYS = {
    "monitor/table3": Key(
        "mean change by negative context, points", lambda t: t["neg_delta"].mean(), lambda t: t["Δ [Y_]"].mean()
    ),
    "monitor/table4": Key(
        "r(MONITOR, avg acc)", correlate_columns("MONITOR", "avg_acc"), correlate_columns("MONITOR", "avg acc")
    ),
    "monitor/table6": Key("r(MONITOR, std)", correlate_columns("MONITOR", "std"), correlate_columns("MONITOR", "std")),
    "monitor/table10": Key(
        "mean MONITOR over relations and models",
        lambda t: t["MONITOR"].mean(),
        lambda t: t.select_dtypes("number").filter(regex="^(?!.*: coverage$)").melt()["value"].mean(),
    ),
    "zplke/table2": Key("mean subsumption rate", lambda t: t["subsumption_rate"].mean(), lambda t: t["eta"].mean()),
    "zplke/table8": Key("best accuracy", lambda t: t["avg_accuracy"].max(), lambda t: t["accuracy"].max()),
    "zplke/table9": Key(
        "spread of relations (standard deviation)", lambda t: t["avg_accuracy"].std(), lambda t: t["base"].std()
    ),
    "zplke/table11": Key(
        "mean change by tuning",
        lambda t: (t["ft_accuracy"] - t["base_accuracy"]).mean(),
        lambda t: (t["accuracy of it"] - t["accuracy"]).mean(),
    ),
    "distractors/table3": Key(
        "tau of ApprOpt",
        lambda t: t.set_index("measure")["mean_tau"]["Dist. ApprOpt"],
        lambda t: t.set_index("measure")["tau"]["Dist. ApprOpt"],
    ),
    "distractors/table4": Key(
        "tau of ApprOpt, clean against flawed",
        lambda t: t.set_index("measure")["robustness_tau"]["Dist. ApprOpt"],
        lambda t: t.set_index("measure")["tau"]["Dist. ApprOpt"],
    ),
    "distractors/table6": Key(
        "free of errors, percent", lambda t: t["proportion_pct"].iloc[-1], lambda t: t["percent"].iloc[-1]
    ),
    "grapheval/table1": Key("average degree", lambda t: t["avg_degree"].iloc[0], lambda t: t["average degree"].iloc[0]),
    "grapheval/table2": Key(  # the printed table fits the released exchange of Eq. 2 alone
        "largest Correct (judge, released Eq. 2)",
        lambda t: t["correct"].max(),
        lambda t: t.loc[t["scored by"] == "judge, released Eq. 2", "correct"].max(),
    ),
    "grapheval/table3": Key(
        "best F1 of the judge", lambda t: t["f1"].max(), lambda t: t.filter(regex=": f1$").max(axis=None)
    ),
}


def frame(profile: str, artifact: str) -> pd.DataFrame | None:
    """The numbers of an artifact; None where it was not made, or holds none."""
    path: Path = (paths.FIGURES / profile / artifact).with_suffix(".csv")
    table = read_csv(path.read_bytes()) if path.exists() and path.stat().st_size > 1 else None
    return table if table is not None and len(table) else None


def key_numbers(profile: str, artifact: str) -> tuple[str, float, float] | None:
    """(what, reported, ours) of an artifact; None where the two cannot be compared: no key number, nothing printed, not made,
    or a table of another form (a model of another kind was asked)."""
    ours = frame(profile, artifact)
    if artifact not in KEYS or ours is None:
        return None
    key = KEYS[artifact]
    try:
        return key.what, float(key.reported(published.table(artifact))), float(key.ours(ours))
    except KeyError:
        return key.what, float(key.reported(published.table(artifact))), np.nan


def findings(profile: str) -> list[str]:
    """One sentence from each of the notebooks beyond the papers, as far as they were run."""
    said = []
    truth = frame(profile, "beyond/ground_truth")
    if truth is not None and "concordance" in truth:
        (best, *_), (control, *_) = (
            [row for _, row in truth[truth["control"] == kind].iterrows()] for kind in (False, True)
        )
        said.append(
            f"Of {(~truth['control']).sum()} measures, {best['measure']} puts most pairs of a taught and a "
            f"never-taught fact in the right order ({best['concordance']:.1%} [{best['low']:.1%}, {best['high']:.1%}], "
            f"n = {best['pairs']:,.0f} pairs), for {best['tokens a fact']:,.0f} tokens per fact. {control['measure']}, "
            f"a control that does not test the fact, reaches {control['concordance']:.1%}."
        )
    agree = frame(profile, "beyond/agreement")
    if agree is not None and "alike" in agree:
        said.append(
            f"Two measures order {agree['alike'].mean():.1%} of the pairs of facts alike on average (n = {len(agree)} "
            "pairs of measures)."
        )
    if (change := frame(profile, "beyond/quantization_change")) is not None:
        worst = change.loc[(change["lost"] - change["gained"]).idxmax()]
        said.append(
            f"Quantization to {worst['precision']} loses {worst['lost']:.0f} and gains {worst['gained']:.0f} of "
            f"{worst['n']:.0f} facts ({worst['measure']}, McNemar p = {worst['p']:.2g})."
        )
    if (audited := frame(profile, "beyond/audit")) is not None:
        counts = audited["verdict"].value_counts()
        said.append(
            f"Of {len(audited)} published claims that were held against the printed tables, "
            + ", ".join(f"{n} {v.replace('holds', 'hold').replace('does', 'do')}" for v, n in counts.items())
            + "."
        )
    return said
