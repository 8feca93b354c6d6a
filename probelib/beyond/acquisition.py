"""What measures see along a training: checkpoints in their order, the same facts, the exposures so far.

At a checkpoint a measure *sees* a fact if its value exceeds those of 95 % of the facts never taught so far. From this
follow, as in Chang et al. 2024 [chang]:

    first seen       the first checkpoint from which on a fact is seen (1 = first); NaN: never
    forgotten        of the facts seen at some checkpoint, the share that is not seen at the last (1 - retainability)
    effectivity      mean rise of the value per new exposure, between neighbouring checkpoints
"""

import numpy as np
import pandas as pd

from probelib import report
from probelib.beyond import concordance as c
from probelib.beyond.suite import MEASURES
from probelib.report import Artifact

SEEN = 0.95  # quantile of the never-taught facts above which a fact is seen


def seen_facts(values: pd.DataFrame, design: pd.DataFrame) -> pd.DataFrame:
    """``values`` of taught facts with ``exposures`` and ``seen`` (0 or 1); models without never-taught facts are left out."""
    rows = values.merge(design, on=["model", "fact"])
    never = rows[rows["exposures"] == 0].groupby(["model", "measure"])["value"].quantile(SEEN).rename("threshold")
    rows = rows.merge(never.reset_index(), on=["model", "measure"])
    rows = rows.assign(seen=(rows["value"] > rows["threshold"]).astype(float))
    return rows[rows["exposures"] > 0].drop(columns="threshold")


def along(seen: pd.DataFrame, order: list[str]) -> pd.DataFrame:
    """One row per measure: ``measure``, ``facts``, ``seen`` (share at the last checkpoint), ``first seen`` (mean number of the
    checkpoint), ``forgotten``, ``effectivity``; see the module. ``order``: checkpoints, the earliest first."""
    rows = []
    for measure, own in seen.groupby("measure", sort=False):
        wide, value, dose = (
            own.pivot(index="fact", columns="model", values=name).reindex(columns=order)
            for name in ("seen", "value", "exposures")
        )
        flag = wide.fillna(0.0).to_numpy()  # [facts, checkpoints]; not taught yet: not seen
        ever = flag.max(1) > 0
        first = np.where(ever, flag.argmax(1) + 1.0, np.nan)
        new = dose.fillna(0.0).diff(axis=1)
        gain = (value.diff(axis=1) / new.where(new > 0)).stack()
        forgotten = 1 - flag[ever, -1].mean() if ever.any() else np.nan
        first_mean = np.nanmean(first) if ever.any() else np.nan
        rows.append(
            (measure, len(flag), flag[:, -1].mean(), first_mean, forgotten, gain.mean() if len(gain) else np.nan)
        )
    frame = pd.DataFrame(rows, columns=["measure", "facts", "seen", "first seen", "forgotten", "effectivity"])
    return frame.sort_values("first seen", kind="stable", ignore_index=True)


def first_seen(table: pd.DataFrame, order: list[str]) -> Artifact:
    """Which measure sees facts first, and what is forgotten; ``table``: ``along``."""
    table = table[~table["measure"].map(lambda name: name in MEASURES and MEASURES[name].control).astype(bool)]
    seeing = table[table["seen"] > 2 * (1 - SEEN)]  # what sees hardly more than the threshold lets pass sees nothing
    if seeing.empty:
        seeing = table
    first, most = seeing.iloc[0], seeing.loc[seeing["forgotten"].fillna(-1).idxmax()]
    finding = (
        f"{first['measure']} sees facts first (checkpoint {first['first seen']:.2f} of {len(order)} on average); by "
        f"{most['measure']} most are forgotten ({most['forgotten']:.1%} of the facts once seen)."
    )
    caption = (
        f"Along {', '.join(order)}: share of taught facts that each measure sees at the last checkpoint (above 95 % of "
        "never-taught facts), mean checkpoint at which a fact is first seen, share of facts once seen that are not "
        "seen at the last, and mean rise of the value per new exposure (empty where exposures do not change)."
    )
    return Artifact("beyond/first_seen", table, caption, finding, decimals={"effectivity": 4})


def acquisition(
    values: pd.DataFrame, design: pd.DataFrame, order: list[str], shown: list[str], seed: int = 0
) -> Artifact:
    """Concordance (b) of some measures at every checkpoint, and the share of facts that the first of them sees by exposures."""
    parts = []
    for name in order:
        own = design[design["model"] == name].reset_index(drop=True)
        table = c.concordance(values[values["measure"].isin(shown)], own, c.pairs_of_facts(own, taught=1), 200, seed)
        parts.append(table[["measure", "pairs", "concordance", "low", "high"]].assign(checkpoint=name))
    curves = pd.concat(parts, ignore_index=True)
    seen = seen_facts(values[values["measure"] == shown[0]], design)
    level = pd.cut(seen["exposures"], [0, 4, 16, 64, np.inf], labels=["1-4", "5-16", "17-64", "65+"])
    shares = (
        seen.groupby(["model", level], observed=True)["seen"]
        .agg(["mean", "size"])
        .rename_axis(["checkpoint", "exposures"])
    )
    frame = pd.concat({"concordance": curves, "seen": shares.reset_index()}, names=["panel"]).reset_index("panel")
    last = curves[curves["checkpoint"] == order[-1]].iloc[0]
    finding = (
        f"At the last checkpoint {last['measure']} puts {last['concordance']:.1%} of the pairs of taught and never-taught "
        "facts in order."
    )
    caption = (
        "Left: share of pairs of a fact taught so far and one never taught (one relation) that each measure puts in "
        "the right order, at every checkpoint; bars: 95 % bootstrap intervals over facts. Right: share of facts that "
        f"{shown[0]} sees (above 95 % of the never-taught ones), by the exposures so far."
    )
    return Artifact("beyond/acquisition", frame, caption, finding, _acquisition(curves, shares, order), caption)


def _acquisition(curves: pd.DataFrame, shares: pd.DataFrame, order: list[str]):
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(6.8, 3.0), sharex=True)
    for place, (name, own) in enumerate(curves.groupby("measure", sort=False)):
        own, look = own.set_index("checkpoint").reindex(order), report.style_at(place)
        left.plot(range(len(order)), own["concordance"], label=name, markersize=4, **look)
        left.vlines(range(len(order)), own["low"], own["high"], color=look["color"], alpha=0.3)
    for place, (name, own) in enumerate(shares["mean"].groupby(level="exposures", observed=True)):
        at = own.droplevel("exposures").reindex(order)
        right.plot(range(len(order)), at, label=f"{name} exposures", markersize=4, **report.style_at(place))
    left.axhline(0.5, color="0.7", linewidth=0.8)
    for axis, label in ((left, "pairs in the right order"), (right, "facts seen")):
        axis.set_xticks(range(len(order)), order, rotation=20, ha="right", fontsize=6)
        axis.set(ylabel=label)
        axis.legend(fontsize=6, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, frameon=False)
    return figure
