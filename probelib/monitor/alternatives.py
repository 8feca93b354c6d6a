"""MONITOR, section 6 and the released code: what the score would be under other decisions."""

from itertools import combinations

import numpy as np
import pandas as pd

from probelib.monitor import answers
from probelib.monitor.measures import (
    Measured,
    accuracy,
    anchored_by_all,
    counted,
    distances,
    measure_facts,
    monitor,
    per_relation,
    summarize,
)
from probelib.stats import kendall, nanmean, pearson


def subsets(anchors: pd.DataFrame, frames: list[int]) -> pd.DataFrame:
    """The anchors as if only some frames had been scored (indices from 0; a fact with fewer frames keeps those it has)."""
    return anchors.assign(f=[f[[j for j in frames if j < len(f)]] for f in anchors["f"]])


def readings_of_eq3(facts: pd.DataFrame, anchors: pd.DataFrame) -> pd.DataFrame:
    """MONITOR of one model under each reading of Eq. 3, one row per reading: ``reading``, ``MONITOR``."""
    used = counted(facts)
    printed = distances(anchors, (0.33,) * 3).loc[used.index]
    readings = {
        "root of each fact, alpha = 1/3 (used here)": monitor(used),
        "alpha = 0.33, as printed": monitor(printed),
        "PFD and IRD averaged before the root": monitor(used, average_first=True),
        "ratio of each fact, then averaged (not MONITOR)": (used["root"] / used["pbar"]).mean(),
        "all facts, anchored or not": monitor(facts.dropna(subset="root")),
    }
    return pd.DataFrame({"reading": readings.keys(), "MONITOR": readings.values()})


def misprimed(first: pd.DataFrame, second: pd.DataFrame, prompts: pd.DataFrame) -> list[str]:
    """Prompts with a negative context and frame 1, ranked: first those that the first model answers and the second does not,
    then those that the first one answers, then all others (figure 5); within these, the surest answers of the first model
    come first."""
    negative = prompts["context"].str.startswith("negative") & (prompts["template"] == 1)
    rows = prompts[negative]["prompt"]
    right = [s.set_index("prompt")["correct"].astype(bool).reindex(rows, fill_value=False) for s in (first, second)]
    rank = pd.DataFrame({"rank": 2 * right[0].astype(int) - right[1].astype(int)})
    rank["logprob"] = first.set_index("prompt")["logprob"].reindex(rows)
    return rank.sort_values(["rank", "logprob"], ascending=False, kind="stable").index.tolist()


def n_frames(measured: Measured, relation: str) -> int:
    """R: the number of frames of a relation."""
    anchors = next(iter(measured.anchors.values()))
    return max(len(f) for f in anchors.loc[anchors["relation"] == relation, "f"])


def frame_subsets(measured: Measured, relation: str, size: int = 4) -> pd.DataFrame:
    """MONITOR in a relation with every choice of ``size`` frames (all, if there are fewer), the first ones first: ``model``,
    ``frames`` (a tuple of positions), ``MONITOR``. Nothing is scored: ``measured`` has the anchors of every frame."""
    total, rows = n_frames(measured, relation), []
    for model, anchors in measured.anchors.items():
        own = anchors[anchors["relation"] == relation]
        yes = measured.facts[model].loc[own.index, "anchored"]
        for frames in combinations(range(total), min(size, total)):
            table = distances(subsets(own, list(frames))).assign(anchored=yes)
            rows.append((model, frames, monitor(counted(table))))
    return pd.DataFrame(rows, columns=["model", "frames", "MONITOR"])


def taus_of_halves(some: pd.DataFrame, others: pd.DataFrame) -> np.ndarray:
    """Kendall's tau between the rankings of the models by some frames and by the other frames, which share none with them.

    some, others  ``frame_subsets`` of sizes that add up to all frames
    """
    wides = (table.pivot(index="model", columns="frames", values="MONITOR") for table in (some, others))
    first, second = (dict(zip(wide.columns, wide.to_numpy().T, strict=True)) for wide in wides)
    every = {frame for frames in (*first, *second) for frame in frames}
    pairs = ((own, second.get(tuple(sorted(every - set(frames))))) for frames, own in first.items())
    return np.array([kendall(own, other)["tau"] for own, other in pairs if other is not None], dtype=float)


def with_frames(measured: Measured, relation: str, frames: list[int], seed: int = 0) -> pd.DataFrame:
    """``per_relation`` of every model with some frames only: ``model``, ``MONITOR``, ``low``, ``high``, ..."""
    rows = []
    for model, anchors in measured.anchors.items():
        own = anchors[anchors["relation"] == relation]
        table = distances(subsets(own, frames)).assign(anchored=measured.facts[model].loc[own.index, "anchored"])
        rows.append(per_relation(table, seed=seed).assign(model=model))
    return pd.concat(rows, ignore_index=True)


def mean_monitor(facts: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Overall MONITOR (mean over relations) of every model, one row per model: ``MONITOR``, ``facts`` (number scored),
    ``counted`` (number that enters MONITOR). ``facts``: model -> ``measure_facts``."""
    rows = {
        model: (per_relation(table, times=1)["MONITOR"].mean(), len(table), len(counted(table)))
        for model, table in facts.items()
    }
    return pd.DataFrame.from_dict(rows, orient="index", columns=["MONITOR", "facts", "counted"])


def decisions(
    measured: Measured, scores: dict[str, pd.DataFrame], prompts: pd.DataFrame, flaws: pd.DataFrame
) -> dict[str, pd.DataFrame]:
    """Overall MONITOR under other decisions about the same answers: decision -> ``mean_monitor``. ``flaws``: ``tables.flaws``."""
    facts, flaws = measured.facts, flaws.set_index("fact")
    common, ids = anchored_by_all(measured), flaws.index
    leaked, hit = flaws["leaked"], flaws["right_distractor"].str.len() > 0
    among = lambda mask: {m: t[mask[t["fact"]].to_numpy()] for m, t in facts.items()}
    without_hits, first = {}, {}
    if hit.any():
        clean = {m: without_right_distractors(s, flaws.reset_index(), prompts) for m, s in scores.items()}
        again = mean_monitor({m: measure_facts(s, prompts) for m, s in clean.items()})
        without_hits = {"without right distractors": again}
    for model, table in facts.items():
        groups = [counted(rows) for _, rows in table.groupby("relation")]
        first[model] = nanmean([monitor(rows, average_first=True) for rows in groups])
    here = mean_monitor(facts)
    return {
        "as here": here,
        "alpha = 0.33": mean_monitor({m: measure_facts(s, prompts, (0.33,) * 3) for m, s in scores.items()}),
        "PFD and IRD averaged before the root": here.assign(MONITOR=pd.Series(first)),
        "all facts, anchored or not": mean_monitor({m: t.assign(anchored=True) for m, t in facts.items()}),
        "facts anchored by all": mean_monitor(among(pd.Series(ids.isin(common), ids))),
        "without leaked objects": mean_monitor(among(~leaked)),
    } | without_hits


def decisions_on_subset(measured: Measured, other: dict[str, pd.DataFrame], decision: str) -> dict[str, pd.DataFrame]:
    """Two rows for ``decisions``: the kit's MONITOR on the facts of ``other`` only, and ``other`` itself.

    other     model -> ``measure_facts`` of some of the facts
    decision  what differs in ``other``, as it is named in the table
    """
    same = {model: measured.facts[model][measured.facts[model]["fact"].isin(t["fact"])] for model, t in other.items()}
    sizes = next(iter(other.values()))["relation"].value_counts()
    subset = f"{sizes.iloc[0]} facts of {sizes.index[0]}" if len(sizes) == 1 else f"{sizes.max()} facts per relation"
    return {f"{subset}, as here": mean_monitor(same), f"the same, {decision}": mean_monitor(other)}


def readings_of_accuracy(measured: Measured, scores: dict[str, pd.DataFrame], prompts: pd.DataFrame) -> pd.DataFrame:
    """The correlation of MONITOR with average accuracy for each set of runs and each denominator: ``runs``, ``denominator``,
    and the columns of ``stats.pearson``."""
    rows = []
    for runs in ("grid", "none+neg", "released13", "none", "base"):
        for denominator in ("all facts", "anchored facts"):
            means = []
            for model, own in scores.items():
                facts = measured.facts[model]
                among = None if denominator == "all facts" else facts["fact"][facts["anchored"].astype(bool)]
                means.append(summarize(accuracy(own, prompts, runs, among))["avg"].mean())
            r = pearson(measured.models["MONITOR"], means)
            rows.append({"runs": runs, "denominator": denominator, **r})
    return pd.DataFrame(rows)


def without_right_distractors(scores: pd.DataFrame, flaws: pd.DataFrame, prompts: pd.DataFrame) -> pd.DataFrame:
    """The scores without those of contexts whose distractor is itself a right answer."""
    context = scores["prompt"].map(dict(zip(prompts["prompt"], prompts["context"], strict=True)))
    out = dict(zip(flaws["fact"], flaws["right_distractor"], strict=True))
    return scores[[c not in out[f] for f, c in zip(scores["fact"], context, strict=True)]]


def released_length(tokens: list[str]) -> int:
    """How many steps of a beam search count, from the most probable token of each step (row 0).

    A final end token or full stop does not count, nor a full stop before it. Nothing counts from the first line break or
    ``</s>`` on, unless that is the first step.

    >>> released_length([" French", ".", "</s>"]), released_length([" New", " York", "</s>", "."])
    (1, 2)
    """
    length = len(tokens)
    if length and tokens[-1] in ("</s>", " </s>", "."):
        length -= 1
    if len(tokens) > 1 and tokens[-2] == ".":
        length -= 1
    stops = [k for k, token in enumerate(tokens) if k > 0 and token in ("\n", "</s>")]
    return max(0, min([length, *stops]))


def released_anchors(runs: pd.DataFrame, prompts: pd.DataFrame, gold: pd.DataFrame, divisor: int | None = None):
    """The anchors of the released eval.py: the columns of ``anchors``, and ``anchored``.

    runs      ``lm.beam_steps`` of R + 1 + M prompts per fact; ``watched`` holds, per step, the probability of the token that is
              the most probable one at this step after the fact's positive context
    gold      ``prompts.gold``
    divisor   divisor of PFD. None: the number of frames; 7: the script's constant, so that missing frames count as distance 0

    A foreign run that ends earlier than the primary one has probability 0 from there on. A fact has NaN distances if it is not
    anchored, or if no token of its answer counts.
    """
    rows = runs.merge(prompts[["prompt", "fact", "relation", "template", "context"]], on="prompt")
    label = dict(zip(gold["fact"], gold["label"], strict=True))
    result = []
    for fact, group in rows.groupby("fact", sort=False):
        primary = group[group["context"] == "positive"].iloc[0]
        length = released_length(primary["tokens"])
        p = np.asarray(primary["probability"], dtype=float)[:length]
        foreign = group[group["context"] != "positive"].sort_values(["template", "context"])
        values = np.array([_padded(row, length) for row in foreign.itertuples()]).reshape(len(foreign), length)
        framing = (foreign["context"] == "none").to_numpy()
        f = values[framing]
        if divisor is not None:
            f = np.concatenate([f, np.repeat(p[None], max(0, divisor - len(f)), axis=0)])
        ok = length > 0 and answers.released(primary["text"], label[fact])
        result.append(
            {"fact": fact, "relation": group["relation"].iloc[0], "p": p, "f": f, "n": values[~framing], "anchored": ok}
        )
    return pd.DataFrame(result)


def _padded(run, length: int) -> np.ndarray:
    """A foreign run's values over the steps of the primary one, truncated or padded with 0."""
    values = np.asarray(run.watched, dtype=float)[: min(length, released_length(run.tokens))]
    return np.concatenate([values, np.zeros(length - len(values))])
