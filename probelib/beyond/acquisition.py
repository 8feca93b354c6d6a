"""What measures see in the course of a training: checkpoints in their order, the same facts, the exposures so far.

At a checkpoint a measure *sees* a fact if its value exceeds those of 95 % of the facts never taught so far. From this follow:

    first seen       the first checkpoint from which on a fact stays seen to the last (1 = first); NaN if not seen at the last
    forgotten        of the facts seen at some checkpoint, the share that is not seen at the last (1 - retainability [chang])
    effectivity      mean rise of the value per new exposure, between neighbouring checkpoints [chang]
"""

import re

import numpy as np
import pandas as pd

from probelib import report, stats
from probelib.beyond import concordance as c
from probelib.beyond.suite import MEASURES
from probelib.beyond.tables import sign_of_monitor
from probelib.report import span, with_interval
from probelib.report.legacy import Artifact

SEEN = 0.95  # quantile of the never-taught facts above which a fact is seen
HALF = 0.5  # share of facts that a measure must see at the last checkpoint to be compared; with fewer, noise dominates
TAUGHT = 16  # exposures at the last checkpoint from which a fact counts as taught
LEVELS = {"1-8": (1, 8), "9-32": (9, 32), "33 and more": (33, np.inf)}  # exposures at the last checkpoint


def seen_facts(values: pd.DataFrame, design: pd.DataFrame) -> pd.DataFrame:
    """``values`` of taught facts with ``exposures`` and ``seen`` (0 or 1); models without never-taught facts are left out."""
    rows = values.merge(design, on=["model", "fact"])
    never = rows[rows["exposures"] == 0].groupby(["model", "measure"])["value"].quantile(SEEN).rename("threshold")
    rows = rows.merge(never.reset_index(), on=["model", "measure"])
    rows = rows.assign(seen=(rows["value"] > rows["threshold"]).astype(float))
    return rows[rows["exposures"] > 0].drop(columns="threshold")


def first_checkpoints(seen: pd.DataFrame, order: list[str]) -> pd.DataFrame:
    """[facts, measures]: number of the checkpoint from which on the fact is seen up to the last one; NaN if not seen at the last.

    >>> rows = [("a", 1.0), ("b", 0.0), ("c", 1.0)]
    >>> seen = pd.DataFrame([("x", "f", *row) for row in rows], columns=["measure", "fact", "model", "seen"])
    >>> first_checkpoints(seen, ["a", "b", "c"])["x"].tolist()
    [3.0]
    """
    parts = {}
    for measure, own in seen.groupby("measure", sort=False):
        flag = own.pivot(index="fact", columns="model", values="seen").reindex(columns=order).fillna(0.0)
        unbroken = np.cumprod(flag.to_numpy()[:, ::-1], axis=1).sum(1)  # checkpoints seen, from the last one back
        parts[measure] = pd.Series(np.where(unbroken > 0, len(order) + 1 - unbroken, np.nan), index=flag.index)
    return pd.DataFrame(parts)


def along(seen: pd.DataFrame, order: list[str], seed: int = 0) -> pd.DataFrame:
    """One row per measure: ``measure``, ``facts``, ``seen`` (share at the last checkpoint), ``first seen`` (mean) with ``low``
    and ``high`` (95 % bootstrap over facts), ``forgotten``, ``effectivity``; see the module. ``order``: the earliest first.
    ``ever seen``: number of facts seen at some checkpoint, the denominator of ``forgotten``. ``<column> low``, ``<column> high``:
    intervals of ``seen`` and ``forgotten`` (Wilson) and of ``effectivity`` (bootstrap over facts).

    Measures that see at least half of the facts come first, sorted by ``first seen``. ``later``, ``later low``, ``later high``:
    number of checkpoints by which a measure sees a fact later than the first measure, over the facts that both see.
    """
    firsts, rows = first_checkpoints(seen, order), []
    for measure, own in seen.groupby("measure", sort=False):
        wide, value, dose = (
            own.pivot(index="fact", columns="model", values=name).reindex(columns=order)
            for name in ("seen", "value", "exposures")
        )
        flag = wide.fillna(0.0).to_numpy()  # [facts, checkpoints]; a fact that is not taught yet is not seen
        ever, new = flag.max(1) > 0, dose.fillna(0.0).diff(axis=1)
        gain = value.diff(axis=1) / new.where(new > 0)  # [facts, checkpoints]
        row = {"measure": measure, "facts": len(flag), "seen": flag[:, -1].mean(), "first seen": firsts[measure].mean()}
        row["low"], row["high"] = stats.mean_interval(firsts[measure], seed=seed)
        row["forgotten"] = 1 - flag[ever, -1].mean() if ever.any() else np.nan
        row |= {"effectivity": stats.nanmean(gain.stack()), "ever seen": ever.sum()}
        for name, n, k in (
            ("seen", len(flag), flag[:, -1].sum()),
            ("forgotten", ever.sum(), (flag[ever, -1] == 0).sum()),
        ):
            row[f"{name} low"], row[f"{name} high"] = stats.wilson(k, n)
        row["effectivity low"], row["effectivity high"] = _mean_of_rows_interval(gain.to_numpy(), seed)
        rows.append(row)
    frame = pd.DataFrame(rows).sort_values("first seen", kind="stable")
    frame = frame.sort_values("seen", key=lambda share: share < HALF, kind="stable", ignore_index=True)
    return _later(frame, firsts, seed)


def _later(frame: pd.DataFrame, firsts: pd.DataFrame, seed: int) -> pd.DataFrame:
    """``frame`` with the paired differences to its first measure that is not a control, for all that see half of the facts."""
    for place, name in enumerate(("later", "later low", "later high"), 6):  # after "first seen" and its interval
        frame.insert(place, name, np.nan)
    sees = frame.loc[(frame["seen"] >= HALF) & ~frame["measure"].map(_control), "measure"]
    for measure in sees[1:]:
        gap = (firsts[measure] - firsts[sees.iloc[0]]).dropna()
        at = frame["measure"] == measure
        frame.loc[at, ["later", "later low", "later high"]] = [gap.mean(), *stats.mean_interval(gap, seed=seed)]
    return frame


def _mean_of_rows_interval(table: np.ndarray, seed: int) -> tuple[float, float]:
    """The 95 % bootstrap interval over facts of the mean of all cells of ``table`` [facts, checkpoints] that are not NaN."""
    weight = stats.resample_counts(len(table), 2000, seed)
    with np.errstate(invalid="ignore"):
        return stats.percentile_interval(weight @ np.nansum(table, 1) / (weight @ np.isfinite(table).sum(1)))


def _control(measure: str) -> bool:
    return measure in MEASURES and MEASURES[measure].control


def first_seen(table: pd.DataFrame, order: list[str], seen: pd.DataFrame) -> Artifact:
    """Which measure sees facts first, and the share forgotten; ``table``: ``along``, ``seen``: ``seen_facts``."""
    table = table[~table["measure"].map(_control)].reset_index(drop=True)
    taught = seen.groupby("fact")["exposures"].max()
    caption = (
        f"Along the checkpoints 1 to {len(order)} ({', '.join(order)}). seen: share of the n = {table['facts'].max()} taught "
        f"facts (every fact with an exposure; taught {taught.min():.0f} to {taught.max():.0f} times by the last checkpoint) "
        "that each measure sees at the last checkpoint (value above those of 95 % of the never-taught facts, so 5 % are seen "
        "by chance). first seen: mean number of the checkpoint from which on a fact stays seen. later: by how many "
        "checkpoints later than the first row, over the facts that both see (–: not compared). Only measures that see at "
        f"least {HALF:.0%} of the facts are compared; others stand below. forgotten: of the facts seen at some checkpoint, "
        "the share not seen at the last. effectivity: mean rise of the value per new exposure, in the unit of the measure "
        "(empty where exposures do not change); negative where the value falls while the fact is taught: the model forgets "
        "it, or all its values fall. 95 % intervals: Wilson's for shares, otherwise bootstrap over facts."
    ) + sign_of_monitor(table)
    shown = table[["measure"]].copy()
    for name, digits in (("seen", 2), ("first seen", 2), ("later", 2), ("forgotten", 2), ("effectivity", 4)):
        ends = ("low", "high") if name == "first seen" else (f"{name} low", f"{name} high")
        shown[name] = with_interval(table[name], *(table[end] for end in ends), digits)
    return Artifact("beyond/first_seen", table, caption, first_finding(table, len(order)), shown=shown)


def first_finding(table: pd.DataFrame, n: int) -> str:
    """The measure that sees facts first, and which of the others are later on the same facts."""
    sees = table[table["seen"] >= HALF]
    if sees.empty:
        return f"No measure sees half of the facts at the last checkpoint, so none of {len(table)} is called the first."
    first, others = sees.iloc[0], sees.iloc[1:]
    late = others[others["later low"] > 0]
    level = ", ".join(others["measure"][~others.index.isin(late.index)]) or "none"
    said = (
        f"Of the {len(sees)} measures (of {len(table)}) that see at least half of the facts at the end, {first['measure']} is "
        f"the first: from checkpoint {first['first seen']:.2f} {span(first['low'], first['high'])} of {n} on. On the facts "
        f"that both see, {len(late)} of the {len(others)} others are later"
    )
    if len(late):
        said += f", by {late['later'].min():.2f} to {late['later'].max():.2f} checkpoints"
    return f"{said}; not significantly later: {level}."


def acquisition(
    values: pd.DataFrame, design: pd.DataFrame, order: list[str], shown: list[str], seed: int = 0
) -> Artifact:
    """Concordance (b) of some measures at every checkpoint, over the same pairs of facts, and the share of facts that the first
    of them sees, by exposures at the last checkpoint."""
    curves, shares = along_pairs(values, design, order, shown, seed), shares_seen(values, design, order, shown[0])
    frame = pd.concat({"concordance": curves, "seen": shares}, names=["panel"]).reset_index("panel")
    pairs, sizes = curves["pairs"].max() if len(curves) else 0, shares.groupby("exposures", sort=False)["facts"].max()
    caption = (
        f"Top: share of pairs of a fact taught {_least(design, order)} times or more by the last checkpoint and one never "
        f"taught (same relation, n = {pairs} pairs, the same at every checkpoint) that each measure puts in the right order; "
        "bars: 95 % bootstrap intervals over facts; line: chance. Bottom: share of the taught facts that "
        f"{shown[0]} sees (value above those of 95 % of the never-taught facts), by exposures at the last checkpoint "
        f"({', '.join(f'{level}: n = {n}' for level, n in sizes.items())} facts), with Wilson's 95 % intervals. Checkpoints: "
        f"{', '.join(order)}."
    ) + sign_of_monitor(curves)
    last = curves[curves["checkpoint"] == order[-1]]
    alt = "; ".join(f"{row.measure}: {row.concordance:.2f} at the last checkpoint" for row in last.itertuples())
    finding = acquisition_finding(curves, order)
    return Artifact("beyond/acquisition", frame, caption, finding, _acquisition(curves, shares, order), alt)


def _least(design: pd.DataFrame, order: list[str]) -> int:
    """The smallest exposure count among the taught facts of the pairs at the last checkpoint."""
    last = design[design["model"] == order[-1]].reset_index(drop=True)
    higher = last["exposures"].iloc[c.pairs_of_facts(last, taught=TAUGHT)["higher"]]
    return int(higher.min()) if len(higher) else TAUGHT


def along_pairs(
    values: pd.DataFrame, design: pd.DataFrame, order: list[str], shown: list[str], seed: int
) -> pd.DataFrame:
    """``measure``, ``pairs``, ``concordance``, ``low``, ``high``, ``checkpoint``: the pairs are those of the last checkpoint."""
    last = design[design["model"] == order[-1]].reset_index(drop=True)
    pairs, parts = c.pairs_of_facts(last, taught=TAUGHT), []
    for name in order:
        table = c.concordance(values[values["measure"].isin(shown)], last.assign(model=name), pairs, 200, seed)
        parts.append(table[["measure", "pairs", "concordance", "low", "high"]].assign(checkpoint=name))
    return pd.concat(parts, ignore_index=True)


def shares_seen(values: pd.DataFrame, design: pd.DataFrame, order: list[str], measure: str) -> pd.DataFrame:
    """``checkpoint``, ``exposures`` (a level of the last checkpoint), ``facts``, ``share``, ``low``, ``high`` (Wilson)."""
    seen = seen_facts(values[values["measure"] == measure], design)
    last = design[design["model"] == order[-1]].set_index("fact")["exposures"]
    rows = []
    for level, (least, most) in LEVELS.items():
        facts = last.index[last.between(least, most)]
        for name in order if len(facts) else ():
            k = int(seen.loc[(seen["model"] == name) & seen["fact"].isin(facts), "seen"].sum())
            rows.append((name, level, len(facts), k / len(facts), *stats.wilson(k, len(facts))))
    return pd.DataFrame(rows, columns=["checkpoint", "exposures", "facts", "share", "low", "high"])


def acquisition_finding(curves: pd.DataFrame, order: list[str]) -> str:
    """The order in which the measures rise above .5, and their values at the last checkpoint."""
    short, measures = checkpoint_labels(order), list(dict.fromkeys(curves["measure"]))
    above, never = {}, []
    for measure in measures:
        own = curves[curves["measure"] == measure].set_index("checkpoint").reindex(order)
        over = np.flatnonzero(own["low"].fillna(own["concordance"]) > 0.5)  # no interval: all pairs are ordered alike
        above.setdefault(over[0], []).append(measure) if len(over) else never.append(measure)
    said = [f"{', '.join(above[at])} from {short[at]} on" for at in sorted(above)]
    said += [f"never: {', '.join(never)}"] if never else []
    last = curves[curves["checkpoint"] == order[-1]].dropna(subset="concordance")
    if last.empty:
        return ""
    best, worst = last.loc[last["concordance"].idxmax()], last.loc[last["concordance"].idxmin()]
    return (
        f"The interval lies above one half for the first time: {'; '.join(said)}. At the last checkpoint the shares of pairs "
        f"in order go from {worst['concordance']:.1%} ({worst['measure']}) to {best['concordance']:.1%} ({best['measure']})."
    )


def checkpoint_labels(order: list[str]) -> list[str]:
    """Short names for an axis: "5 %" for ``name-at05``, "100 %" for its ``name``; other names without their common prefix.

    >>> checkpoint_labels(["m-at05", "m"]), checkpoint_labels(["atlas-neox-0.6m", "atlas-neox-5m"])
    (['5 %', '100 %'], ['0.6m', '5m'])
    """
    found = [re.fullmatch(r"(.+?)(?:-at(\d+))?", name) for name in order]
    if len({match[1] for match in found}) == 1:
        return [f"{int(match[2] or 100)} %" for match in found]
    parts = [name.split("-") for name in order]
    same = 0
    while same < min(map(len, parts)) - 1 and len({part[same] for part in parts}) == 1:
        same += 1
    return ["-".join(part[same:]) for part in parts]


def _acquisition(curves: pd.DataFrame, shares: pd.DataFrame, order: list[str]):
    import matplotlib.pyplot as plt

    figure, (top, bottom) = plt.subplots(2, 1, figsize=(3.7, 5.0), sharex=True, height_ratios=(1.4, 1))
    for axis, table, by, y in ((top, curves, "measure", "concordance"), (bottom, shares, "exposures", "share")):
        groups = list(table.groupby(by, sort=False))
        for place, (name, own) in enumerate(groups):
            own, look = own.set_index("checkpoint").reindex(order), report.style_at(place)
            at = np.arange(len(order)) + 0.11 * (place - (len(groups) - 1) / 2)  # beside each other
            axis.plot(at, own[y], label=name, markersize=3.5, **look)
            axis.vlines(at, own["low"], own["high"], color=look["color"], alpha=0.5, linewidth=1)
    top.axhline(0.5, color="0.5", linewidth=0.8)
    top.set(ylabel="pairs in the right order", ylim=(None, 1.03))
    training = checkpoint_labels(order)[-1] == "100 %"
    bottom.set(ylabel="facts seen", ylim=(-0.03, 1.03), xlabel="share of the training" if training else "model")
    bottom.set_xticks(range(len(order)), checkpoint_labels(order), fontsize=7.5)
    top.legend(fontsize=7.5, loc="lower center", bbox_to_anchor=(0.46, 1.0), ncols=2)
    bottom.legend(fontsize=7.5, loc="upper left", title="exposures in all", title_fontsize=7.5)
    return figure
