"""MONITOR's formulas: scores of the gold answers in, numbers out (``monitor`` in ``published/references.bib``).

For every fact c with answer tokens l = 1..L:

    p   [L]      primary anchor: P(answer token | "<gold object>. <frame 1>")
    f   [R, L]   framing foreign anchors: P(answer token | frame j), without context
    n   [M, L]   interference foreign anchors: P(answer token | "<distractor m>. <frame 1>")

    PFD_c = mean over frames and tokens of |p - f|                                             [monitor, Eq. 1]
    IRD_c = mean over distractors and tokens of |p - n|                                        [monitor, Eq. 2]
    MONITOR = sum_c sqrt(a1 PFD_c^2 + a2 IRD_c^2 + a3 PFD_c IRD_c) / sum_c mean_l p_c          [monitor, Eq. 3], lower is better

``scores`` is always a frame of ``scores.score_answers``: ``fact``, ``relation``, ``prompt``, ``token_logprobs``, ``correct``.
``prompts`` is a frame of ``prompts.with_contexts``, with the prompt frame (``template``) and the ``context`` of each prompt.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from probelib.errors import ProbeError, unknown
from probelib.stats import (
    bias_corrected_interval,
    bootstrap,
    holm,
    mean_interval,
    nanmean,
    pearson,
    pearson_rows,
    percentile_interval,
)

THIRDS = (1 / 3, 1 / 3, 1 / 3)
DECIDED = ("shown here", "reversed here")  # two of the answers of ``judge_claim``


def pfd(p: np.ndarray, f: np.ndarray) -> float:
    """Prompt-framing degree [monitor, Eq. 1], in [0, 1]. p: [L], f: [R, L] probabilities; NaN without frames.

    >>> round(pfd(np.array([.9, .7]), np.array([[.8, .5], [.6, .6]])), 3)
    0.175
    """
    return float(np.abs(p[None] - f).mean()) if f.size else np.nan


def ird(p: np.ndarray, n: np.ndarray) -> float:
    """Interference-relevance degree [monitor, Eq. 2], in [0, 1]. p: [L], n: [M, L] probabilities; NaN without distractors."""
    return float(np.abs(p[None] - n).mean()) if n.size else np.nan


def root(pfd, ird, alphas: tuple[float, float, float] = THIRDS):
    """sqrt(a1 PFD^2 + a2 IRD^2 + a3 PFD IRD), the numerator's term, in [0, 1] [monitor, Eq. 3]."""
    a1, a2, a3 = alphas
    return np.sqrt(a1 * pfd**2 + a2 * ird**2 + a3 * pfd * ird)


def anchors(scores: pd.DataFrame, prompts: pd.DataFrame) -> pd.DataFrame:
    """The anchors of every fact, one row each: ``fact``, ``relation``, ``p`` [L], ``f`` [R, L], ``n`` [M, L].

    scores   of the gold object after each prompt; with a context, only frame 1 is needed
    prompts  ``prompts.with_contexts``, with the frame and the context of each prompt
    """
    rows = scores.merge(prompts[["prompt", "template", "context"]], on="prompt", validate="many_to_one")
    relation = dict(zip(rows["fact"], rows["relation"], strict=True))
    rows = rows[(rows["context"] == "none") | (rows["template"] == 1)].sort_values(
        ["template", "context"], kind="stable"
    )
    sets = {fact: {"p": [], "f": [], "n": []} for fact in relation}
    for fact, context, tokens in zip(rows["fact"], rows["context"], rows["token_logprobs"], strict=True):
        sets[fact][{"positive": "p", "none": "f"}.get(context, "n")].append(tokens)
    if lost := [fact for fact, own in sets.items() if not own["p"]]:
        raise ProbeError(
            f"{len(lost)} facts have no prompt with the positive context, e.g. {lost[0]!r}: no primary anchor"
        )
    rows = [
        (fact, relation[fact], _probabilities(own["p"])[0], *(_probabilities(own[k], len(own["p"][0])) for k in "fn"))
        for fact, own in sets.items()
    ]
    return pd.DataFrame(rows, columns=["fact", "relation", "p", "f", "n"])


def _probabilities(logprobs: list, length: int = 0) -> np.ndarray:
    """Probabilities [prompts, L] in float64 from log-probabilities; [0, L] without any prompt."""
    return np.exp(np.array(logprobs, dtype=np.float64)) if logprobs else np.empty((0, length))


def distances(anchors: pd.DataFrame, alphas: tuple[float, float, float] = THIRDS) -> pd.DataFrame:
    """Per fact: ``fact``, ``relation``, ``pfd``, ``ird``, ``root``, ``pbar`` (mean over tokens of the primary anchor)."""
    frame = anchors[["fact", "relation"]].copy()
    frame["pfd"] = [pfd(p, f) for p, f in zip(anchors["p"], anchors["f"], strict=True)]
    frame["ird"] = [ird(p, n) for p, n in zip(anchors["p"], anchors["n"], strict=True)]
    frame["root"] = root(frame["pfd"], frame["ird"], alphas)
    frame["pbar"] = [float(p.mean()) if p.size else np.nan for p in anchors["p"]]
    return frame


def anchored(distances: pd.DataFrame, scores: pd.DataFrame, prompts: pd.DataFrame) -> pd.Series:
    """Which facts of ``distances`` are anchored: greedy decoding gives the gold object with the positive context.

    scores  with the column ``correct``, as ``scores.score_answers`` gives them
    """
    rows = scores.merge(prompts[["prompt", "template", "context"]], on="prompt", validate="many_to_one")
    rows = rows[(rows["context"] == "positive") & (rows["template"] == 1)]
    return distances["fact"].map(dict(zip(rows["fact"], rows["correct"].astype(bool), strict=True)))


def measure_facts(
    scores: pd.DataFrame, prompts: pd.DataFrame, alphas: tuple[float, float, float] = THIRDS
) -> pd.DataFrame:
    """One model's facts: ``distances``, whether each is ``anchored``, and ``acc``, the share of its R x M runs that are right."""
    table = distances(anchors(scores, prompts), alphas)
    table["anchored"] = anchored(table, scores, prompts)
    table["acc"] = table["fact"].map(verdicts(scores, prompts).mean(axis=1))
    return table


@dataclass(frozen=True)
class Measured:
    """MONITOR and accuracies of several models on the same facts: what all tables and figures of section 5 show.

    facts      model -> ``measure_facts``: one row per fact
    anchors    model -> ``anchors``: the probabilities that ``facts`` is computed from
    runs       model -> ``accuracy`` of each of the R x M runs
    relations  one row per model and relation: ``per_relation``, and over the runs ``avg acc``, ``max``, ``min``, ``std``,
               ``std0``, and ``base acc`` (frame 1 without context); percent
    models     one row per model, the columns of table 4
    replicates bootstrap replicates [times, models, relations] of ``MONITOR``, ``avg`` and ``std``: the same resampled
               facts for all models, so that differences are paired
    """

    facts: dict[str, pd.DataFrame]
    anchors: dict[str, pd.DataFrame]
    runs: dict[str, pd.DataFrame]
    relations: pd.DataFrame
    models: pd.DataFrame
    replicates: dict[str, np.ndarray]

    @property
    def largest(self) -> str:
        """The largest model."""
        return self.models["model"][self.models["parameters"].idxmax()]


def measure(scores: dict[str, pd.DataFrame], prompts: pd.DataFrame, seed: int = 0) -> Measured:
    """Measure every model.

    scores   model -> ``scores.score_answers``, on the same facts
    prompts  ``prompts.with_contexts`` of these facts
    seed     of the bootstrap
    """
    facts = {name: measure_facts(rows, prompts) for name, rows in scores.items()}
    runs = {name: accuracy(rows, prompts) for name, rows in scores.items()}
    replicates = resample(facts, {name: verdicts(rows, prompts) for name, rows in scores.items()}, seed=seed)
    relations, models = [], []
    for m, (name, rows) in enumerate(scores.items()):
        base = accuracy(rows, prompts, "base").rename(columns={"accuracy": "base acc"})[["relation", "base acc"]]
        over_runs = summarize(runs[name])
        table = per_relation(facts[name], seed=seed).assign(model=name).merge(over_runs, on="relation")
        relations.append(table.merge(base, on="relation").rename(columns={"avg": "avg acc"}))
        mean = over_runs.mean(numeric_only=True)
        low, high = percentile_interval(nanmean(replicates["avg"][:, m], 1))
        accuracies = {
            "avg acc": mean["avg"],
            "avg low": low,
            "avg high": high,
            "max acc": mean["max"],
            "min acc": mean["min"],
        }
        of_model = {"model": name, "parameters": rows.attrs.get("parameters"), **overall(facts[name], seed=seed)}
        models.append(of_model | accuracies | {"base acc": base["base acc"].mean()})
    return Measured(
        facts,
        {name: anchors(rows, prompts) for name, rows in scores.items()},
        runs,
        pd.concat(relations, ignore_index=True),
        pd.DataFrame(models),
        replicates,
    )


def measure_common(
    measured: Measured, scores: dict[str, pd.DataFrame], prompts: pd.DataFrame, seed: int = 0
) -> Measured:
    """``measure`` on the facts that every model anchors, so that all models are compared on the same facts; ``measured`` itself
    if there is no such fact."""
    common = anchored_by_all(measured)
    if common.empty:
        return measured
    among = {}
    for name, rows in scores.items():
        among[name] = rows[rows["fact"].isin(common)].reset_index(drop=True)
        among[name].attrs = rows.attrs
    return measure(among, prompts, seed)


def anchored_by_all(measured: Measured) -> pd.Index:
    """Ids of the facts that every model anchors."""
    tables = {model: table.set_index("fact")["anchored"].astype(bool) for model, table in measured.facts.items()}
    every = pd.DataFrame(tables).all(axis=1)
    return every.index[every]


def monitor(distances: pd.DataFrame, average_first: bool = False) -> float:
    """MONITOR [monitor, Eq. 3] over the facts given: >= 0, no upper bound, lower is more reliable.

    average_first  average PFD and IRD over facts before the root (the other reading of Eq. 3)
    returns        NaN, never 0, if there is no fact, one has no PFD or IRD, or all primary anchors are 0
    """
    total = distances["pbar"].sum()
    if not total > 0:
        return np.nan
    if average_first:
        means = distances[["pfd", "ird"]].mean(skipna=False)
        return float(root(means["pfd"], means["ird"]) * len(distances) / total)
    return float(distances["root"].sum(skipna=False) / total)


def per_relation(distances: pd.DataFrame, times: int = 1000, seed: int = 0) -> pd.DataFrame:
    """One row per relation.

    MONITOR, low, high   over the anchored facts (NaN if none is), with a 95 % bootstrap interval over facts (NaN if only one is,
                         or if all replicates are equal: a zero-width interval would overstate certainty)
    probs                mean pbar of the anchored facts
    coverage             share of the facts that are anchored
    n, no_distractor     number of facts, and of those without a distractor, which have no IRD and are left out of MONITOR
    """
    replicates = resample({"": distances}, times=times, seed=seed)["MONITOR"][:, 0]  # [times, relations]
    rows = []
    for r, (relation, facts) in enumerate(distances.groupby("relation", sort=False)):
        own = counted(facts)
        low, high = percentile_interval(replicates[:, r])
        shares = (own["pbar"].mean(), facts["anchored"].mean())
        rows.append((relation, monitor(own), low, high, *shares, len(facts), int(facts["ird"].isna().sum())))
    columns = ["relation", "MONITOR", "low", "high", "probs", "coverage", "n", "no_distractor"]
    return pd.DataFrame(rows, columns=columns)


def counted(distances: pd.DataFrame) -> pd.DataFrame:
    """The facts that enter MONITOR: anchored, and with both distances."""
    return distances[distances["anchored"].astype(bool) & distances["root"].notna()]


def overall(distances: pd.DataFrame, times: int = 1000, seed: int = 0) -> dict[str, float]:
    """A model's score: the unweighted mean of MONITOR over relations, with a 95 % bootstrap interval.

    Facts are resampled within each relation. ``silent`` is the number of relations without any anchored fact: they have no
    MONITOR and are left out of the means, never taken as 0. ``coverage`` is the share of all facts that are anchored. The
    interval is NaN if no relation has two facts that count.
    """
    table = per_relation(distances, times=1, seed=seed)
    replicates = resample({"": distances}, times=times, seed=seed)["MONITOR"][:, 0]
    spread = counted(distances)["relation"].duplicated().any()
    low, high = percentile_interval(nanmean(replicates, 1)) if spread else (np.nan, np.nan)
    return {
        "MONITOR": table["MONITOR"].mean(),
        "low": low,
        "high": high,
        "probs": table["probs"].mean(),
        "coverage": float(distances["anchored"].mean()),
        "silent": int(table["MONITOR"].isna().sum()),
    }


def resample(
    measured: dict[str, pd.DataFrame], grids: dict[str, pd.DataFrame] | None = None, times: int = 1000, seed: int = 0
) -> dict[str, np.ndarray]:
    """Bootstrap over facts: facts are resampled within each relation, the same ones for all models.

    measured  model -> ``measure``: the same facts, in the same order, for every model
    grids     model -> ``verdicts`` of a set of runs; None: none
    returns   [times, models, relations] arrays: ``MONITOR`` (NaN if no fact of the relation is anchored; a bootstrap sample
              without an anchored fact is drawn again), and with ``grids``
              ``avg`` and ``std`` of the accuracy over the runs, percent
    """
    rng, first = np.random.default_rng(seed), next(iter(measured.values()))
    result = {name: [] for name in (["MONITOR", "avg", "std"] if grids else ["MONITOR"])}
    for relation, facts in first.groupby("relation", sort=False)["fact"]:
        weight = rng.multinomial(len(facts), np.full(len(facts), 1 / len(facts)), size=times).astype(float)
        scores, runs = [], []
        for name, table in measured.items():
            own = table[table["relation"] == relation]
            if own["fact"].tolist() != facts.tolist():
                raise ProbeError(
                    f"{name} has scores of other facts of {relation}: measure all models on the same facts"
                )
            here = own.index.isin(counted(own).index)
            top, bottom = (weight @ np.where(here, own[column], 0.0) for column in ("root", "pbar"))
            score = np.divide(top, bottom, out=np.full(times, np.nan), where=bottom > 0)
            lost = ~(bottom > 0)  # no anchored fact in the sample: drawn again, so that no relation leaves the mean
            score[lost] = rng.permutation(np.resize(score[~lost], lost.sum())) if not lost.all() else np.nan
            scores.append(score)
            if grids:
                runs.append(_accuracies(weight, grids[name].reindex(facts).to_numpy(float)))
        result["MONITOR"].append(scores)
        if grids:
            result["avg"].append([nanmean(run, 1) for run in runs])
            result["std"].append([pd.DataFrame(run).std(axis=1).to_numpy() for run in runs])
    shape = (-1, len(measured), times) if len(first) else (0, len(measured), times)
    return {name: np.array(values, dtype=float).reshape(shape).transpose(2, 1, 0) for name, values in result.items()}


def _accuracies(weight: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Accuracy of every run in every bootstrap sample, percent: [times, runs] from weights [times, n] and verdicts [n, runs]."""
    asked = weight @ np.isfinite(right)
    hits = weight @ np.nan_to_num(right)
    return 100 * np.divide(hits, asked, out=np.full_like(hits, np.nan), where=asked > 0)


def correlation(x, y, drawn_x: np.ndarray, drawn_y: np.ndarray) -> dict[str, float]:
    """Pearson's r over models and its two intervals: ``low``, ``high`` (Fisher's z: other models), and ``facts_low``,
    ``facts_high`` (other facts: percentiles of r over the replicates of ``resample``, [times, models] each)."""
    low, high = percentile_interval(pearson_rows(drawn_x, drawn_y))
    return pearson(x, y) | {"facts_low": low, "facts_high": high}


def correlation_with_accuracy(measured: Measured) -> dict[str, float]:
    """``correlation`` of MONITOR with the average accuracy over models (table 4)."""
    replicates = (nanmean(measured.replicates[quantity], 2) for quantity in ("MONITOR", "avg"))  # [times, models] each
    return correlation(measured.models["MONITOR"], measured.models["avg acc"], *replicates)


def accuracy_of_anchored(measured: Measured) -> pd.DataFrame:
    """Average accuracy (percent) over the anchored facts alone, as the released code counts: one row per relation, one column
    per model; NaN where a model anchors no fact."""
    columns = {}
    for model, facts in measured.facts.items():
        used = facts[facts["anchored"].astype(bool)]
        columns[model] = 100 * used.groupby("relation", sort=False)["acc"].mean()
    return pd.DataFrame(columns)


def correlation_with_anchored_accuracy(measured: Measured) -> dict[str, float]:
    """``pearson`` of MONITOR with the average accuracy over each model's anchored facts (mean over relations)."""
    means = accuracy_of_anchored(measured).mean().reindex(measured.models["model"])
    return pearson(measured.models["MONITOR"], means)


def correlations_by_relation(measured: Measured) -> pd.DataFrame:
    """The same relation by relation (table 11): ``relation``, ``correlation``, ``p Holm``, p after Holm's correction, and ``r
    anchored``, ``anchored low``, ``anchored high``, ``p anchored``: with the accuracy over the anchored facts alone."""
    accuracies, rows = accuracy_of_anchored(measured), []
    for k, (relation, models) in enumerate(measured.relations.groupby("relation", sort=False)):
        replicates = (measured.replicates[quantity][:, :, k] for quantity in ("MONITOR", "avg"))
        own = accuracies.reindex(index=[relation], columns=models["model"]).to_numpy(float)[0]
        released = pearson(models["MONITOR"], own)
        row = {"relation": relation, **correlation(models["MONITOR"], models["avg acc"], *replicates)}
        names = {"r": "r anchored", "low": "anchored low", "high": "anchored high", "p": "p anchored"}
        rows.append(row | {name: released[key] for key, name in names.items()})
    table = pd.DataFrame(rows)
    return table.assign(**{"p Holm": holm(table["p"])})


def judge_claim(low: float, high: float, claimed: float = 1.0) -> str:
    """What a 95 % interval says about a claim that a quantity has the sign of ``claimed``.

    >>> judge_claim(0.1, 0.4), judge_claim(0.1, 0.4, -1)
    ('shown here', 'reversed here')
    >>> judge_claim(-0.1, 0.4), judge_claim(float("nan"), 0.4)
    ('not decided here (the interval holds 0)', 'not decided here (too few cases for an interval)')
    """
    if not (np.isfinite(low) and np.isfinite(high)):
        return "not decided here (too few cases for an interval)"
    if low <= 0 <= high:
        return "not decided here (the interval holds 0)"
    return DECIDED[0] if low * claimed > 0 else DECIDED[1]


def leave_one_out(x: pd.Series, y: pd.Series) -> tuple[float, float]:
    """The smallest and the largest Pearson correlation that remains if one row is left out; NaN for fewer than four rows."""
    rows = pd.DataFrame({"x": x, "y": y}).dropna()
    values = [pearson(rows["x"].drop(i), rows["y"].drop(i))["r"] for i in rows.index] if len(rows) > 3 else []
    values = [value for value in values if np.isfinite(value)]
    return (min(values), max(values)) if values else (np.nan, np.nan)


def lost_by_context(scores: pd.DataFrame, prompts: pd.DataFrame) -> pd.Series:
    """fact -> percent of its negative contexts after which the answer is wrong, for facts whose base question is answered without
    context: only these can lose their answer."""
    base = verdicts(scores, prompts, "base").mean(axis=1)
    right = verdicts(scores, prompts, "negative").mean(axis=1)
    return 100 * (1 - right[base == 1]).dropna()


def instability(measured: Measured, relation: str) -> pd.DataFrame:
    """One row per model, by base accuracy: MONITOR and how much the accuracy varies over the runs in a relation (table 6).

    ``std``, ``std (ddof 0)`` in percentage points; ``std low``, ``std high``: 95 % bootstrap interval over facts, corrected for
    its bias; ``relative``: std over avg acc, NaN if that is 0.
    """
    rows = in_relation(measured, relation).rename(columns={"std0": "std (ddof 0)"})
    rows["relative"] = rows["std"] / rows["avg acc"].where(rows["avg acc"] > 0)
    replicates = measured.replicates["std"][:, :, position(measured, relation)]  # [times, models]
    ends = [bias_corrected_interval(replicates[:, m], std) for m, std in enumerate(rows["std"])]
    rows = rows.assign(**dict(zip(("std low", "std high"), np.array(ends).T, strict=True)))
    rows["parameters"] = measured.models["parameters"].to_numpy()
    columns = ["model", "parameters", "MONITOR", "low", "high", "base acc", "avg acc", "std", "std (ddof 0)"]
    return rows[[*columns, "std low", "std high", "relative"]].sort_values("base acc")


def correlation_with_spread(measured: Measured, relation: str, relative: bool = False) -> dict[str, float]:
    """``correlation`` of MONITOR with the standard deviation of the accuracy over the runs of a relation (table 6).

    relative   divide the standard deviation by the average accuracy: an accuracy near 0 cannot vary much
    """
    rows = in_relation(measured, relation)
    of = {quantity: own[:, :, position(measured, relation)] for quantity, own in measured.replicates.items()}
    if not relative:
        return correlation(rows["MONITOR"], rows["std"], of["MONITOR"], of["std"])
    with np.errstate(invalid="ignore", divide="ignore"):
        spreads = np.where(of["avg"] > 0, of["std"] / of["avg"], np.nan)  # [times, models]
    return correlation(
        rows["MONITOR"], rows["std"] / rows["avg acc"].where(rows["avg acc"] > 0), of["MONITOR"], spreads
    )


def in_relation(measured: Measured, relation: str) -> pd.DataFrame:
    """The rows of ``Measured.relations`` of one relation, in the order of the models."""
    return measured.relations[measured.relations["relation"] == relation].reset_index(drop=True)


def position(measured: Measured, relation: str) -> int:
    """The index of a relation in the last axis of ``Measured.replicates``."""
    return measured.relations["relation"].drop_duplicates().tolist().index(relation)


def monitor_on_common(measured: Measured, models: list[str], relation: str, times: int = 1000, seed: int = 0) -> dict:
    """MONITOR of ``models`` over the facts of a relation that all of them anchor.

    returns  ``n`` (number of facts); ``MONITOR`` (model -> value); ``root`` and ``pbar`` (model -> mean distance and mean
             primary anchor, whose ratio is MONITOR); ``difference`` (MONITOR of the last minus the first model) with its 95 %
             paired bootstrap interval over facts, ``low`` and ``high``; ``surer`` (the interval of the first minus the last mean
             primary anchor). NaN if there is no such fact
    """
    tables = [counted(measured.facts[m][measured.facts[m]["relation"] == relation]).set_index("fact") for m in models]
    common = tables[0].index[np.all([tables[0].index.isin(table.index) for table in tables], axis=0)]
    each = [monitor(table.loc[common]) for table in tables]
    first, last = (table.loc[common, ["root", "pbar"]].to_numpy() for table in (tables[0], tables[-1]))
    score = lambda resampled: resampled[..., 0].sum(1) / resampled[..., 1].sum(1)
    low, high = percentile_interval(bootstrap(lambda i: score(last[i]) - score(first[i]), len(common), times, seed))
    parts = {
        name: {model: table.loc[common, name].mean() for model, table in zip(models, tables, strict=True)}
        for name in ("root", "pbar")
    }
    return {"n": len(common), "MONITOR": dict(zip(models, each, strict=True)), "difference": each[-1] - each[0],
            "low": low, "high": high, "surer": mean_interval(first[:, 1] - last[:, 1])} | parts  # fmt: skip


GRID = {  # contexts and frames of each set of runs
    "grid": lambda rows: _negative(rows),
    "none+neg": lambda rows: _negative(rows) | (rows["context"] == "none"),
    "full": lambda rows: rows["context"].notna(),
    "released13": lambda rows: (rows["context"] == "none") | (rows["template"] == 1),
    "none": lambda rows: rows["context"] == "none",
    "base": lambda rows: (rows["context"] == "none") & (rows["template"] == 1),
    "positive": lambda rows: (rows["context"] == "positive") & (rows["template"] == 1),
    "negative": lambda rows: _negative(rows) & (rows["template"] == 1),
}


def _negative(rows: pd.DataFrame) -> pd.Series:
    return rows["context"].str.startswith("negative")


def verdicts(scores: pd.DataFrame, prompts: pd.DataFrame, runs: str = "grid") -> pd.DataFrame:
    """Whether each fact is answered in each run: one row per fact, one column per (template, context); 1.0, 0.0, or NaN if the
    fact has no such prompt (because it has fewer distractors than others).

    scores  with the column ``correct``
    runs    "grid": R x M, every frame with every distractor (section 4.3), or another of ``GRID``: "none+neg" R (M + 1),
            "full" R (M + 2), "released13" (what eval.py runs: 7 + 1 + 5), "none" (R frames without context), "base"
            (frame 1, no context), "positive", "negative" (frame 1 with the gold object, with each distractor)
    """
    if runs not in GRID:
        raise unknown("set of runs", runs, GRID)
    rows = scores[["fact", "prompt"]].assign(correct=scores["correct"].astype(float))
    rows = rows.merge(prompts[["prompt", "template", "context"]], on="prompt", validate="many_to_one")
    positive = rows.loc[rows["context"] == "positive", "template"].nunique()
    if runs == "full" and positive < rows["template"].nunique():
        raise ProbeError(
            "runs='full' needs every frame with the positive context: prompts.with_contexts(facts, full=True)"
        )
    rows = rows[GRID[runs](rows)]
    table = rows.pivot(index="fact", columns=["template", "context"], values="correct")
    return table.reindex(scores["fact"].drop_duplicates().to_numpy()).sort_index(axis=1)


def accuracy(scores: pd.DataFrame, prompts: pd.DataFrame, runs: str = "grid", among=None) -> pd.DataFrame:
    """Accuracy of every run, percent: ``relation``, ``template``, ``context``, ``accuracy``, ``n``.

    A run has the prompts of all facts of a relation with one frame and one context; ``runs`` as in ``verdicts``.

    among   ids of the facts that make the denominator; None: all facts (the released script: the anchored ones)
    """
    table = verdicts(scores, prompts, runs)
    relation = scores.drop_duplicates("fact").set_index("fact")["relation"]
    table = table if among is None else table[table.index.isin(list(among))]
    rows = []
    for name, facts in table.groupby(relation.reindex(table.index), sort=False):
        asked = facts.notna().sum()
        rows += [
            (name, template, context, 100 * facts[template, context].mean(), int(n))
            for (template, context), n in asked.items()
            if n
        ]
    return pd.DataFrame(rows, columns=["relation", "template", "context", "accuracy", "n"])


def summarize(runs: pd.DataFrame) -> pd.DataFrame:
    """Per relation, over its runs: ``avg``, ``max``, ``min`` (percent), ``std`` (sample, ddof = 1, percentage points) and
    ``std0`` (the same with ddof = 0)."""
    groups = runs.groupby("relation", sort=False)["accuracy"]
    table = groups.agg(["mean", "max", "min", "std"]).rename(columns={"mean": "avg"})
    return table.assign(std0=groups.std(ddof=0)).reset_index()


def checking(scores: pd.DataFrame, prompts: pd.DataFrame, generated: pd.DataFrame | None = None) -> pd.DataFrame:
    """Fact checking (section 3.1): one row per prompt of ``prompts.checks``: ``fact``, ``relation``, ``template``, ``kind``
    ("FC-pos": a true statement, right if judged True; "FC-neg": a false one) and ``correct``.

    scores     of the candidates "True" and "False" after every prompt of ``prompts.checks``: the more probable one is the
               verdict; equal probabilities are no verdict, hence wrong
    generated  decide by the first word of the generated text instead (the paper's way)
    """
    wide = scores.pivot(index="prompt", columns="candidate", values="logprob").reindex(prompts["prompt"])
    says = np.sign(wide["True"] - wide["False"]).to_numpy()
    if generated is not None:
        first = generated.set_index("prompt")["text"].str.extract(r"(\w+)")[0].str.casefold().reindex(prompts["prompt"])
        says = first.map({"true": 1.0, "false": -1.0}).fillna(0.0).to_numpy()
    true = (prompts["context"] == "true").to_numpy()
    return prompts[["fact", "relation", "template"]].assign(
        kind=np.where(true, "FC-pos", "FC-neg"), correct=says == np.where(true, 1, -1)
    )


def judge_forms(scores: dict[str, dict[str, pd.DataFrame]], prompts: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Section 3.1: one row per model and prompt without context: ``fact``, ``template``, ``kind`` ("QA", "WP", "FC-pos",
    "FC-neg", and "FC-pos written", "FC-neg written" by the first generated word), ``correct`` (percent), ``model``.

    scores, prompts   ``scores.score_forms``, ``scores.prompts_by_form``
    """
    plain = prompts["QA"][prompts["QA"]["context"] == "none"]
    rows = []
    for model, questions in scores["QA"].items():
        found = [questions.merge(plain[["prompt", "template"]], on="prompt").assign(kind="QA")]
        if "WP" in scores:
            found.append(
                scores["WP"][model].merge(prompts["WP"][["prompt", "template"]], on="prompt").assign(kind="WP")
            )
        if "FC" in scores:
            found.append(checking(scores["FC"][model], prompts["FC"]))
            written = checking(scores["FC"][model], prompts["FC"], scores["FC written"][model])
            found.append(written.assign(kind=written["kind"] + " written"))
        rows.append(pd.concat([f[["fact", "template", "kind", "correct"]] for f in found]).assign(model=model))
    judged = pd.concat(rows, ignore_index=True)
    return judged.assign(correct=100 * judged["correct"].astype(float))


def by_prompt(scores: pd.DataFrame, prompts: pd.DataFrame, fact: str) -> pd.DataFrame:
    """The prompts of one fact that make its anchors: ``template``, ``context``, ``text``, ``probability`` of the gold answer
    (mean over its tokens) and ``distance`` from the primary anchor (mean over tokens of the absolute difference)."""
    rows = prompts[(prompts["fact"] == fact) & ((prompts["context"] == "none") | (prompts["template"] == 1))]
    tokens = scores.set_index("prompt")["token_logprobs"][rows["prompt"]]
    found = [np.exp(logprobs.astype(float)) for logprobs in tokens]  # [L] each
    primary = found[rows["context"].tolist().index("positive")]
    return rows[["template", "context", "text"]].assign(
        probability=[each.mean() for each in found], distance=[np.abs(primary - each).mean() for each in found]
    )


def clearest_fact(facts: pd.DataFrame, scores: pd.DataFrame, prompts: pd.DataFrame, sure: float = 0.8) -> str:
    """The fact to show (figure 3). Of the facts that are known, that is anchored, answered without context, and with a primary
    anchor of ``sure`` or more: the one with the largest root. Without such a fact, the anchored one with the largest root.

    facts            ``measure_facts`` of one model
    scores, prompts  those that ``facts`` was computed from
    """
    answered = facts["fact"].map(verdicts(scores, prompts, "base").mean(axis=1)) == 1
    yes = facts["anchored"].astype(bool)
    rows = facts.assign(unknown=~(yes & answered & (facts["pbar"] >= sure)), other=~yes, move=-facts["root"])
    return rows.sort_values(["unknown", "other", "move"], kind="stable")["fact"].iloc[0]


# As released: no teacher forcing, the model's own five beams
