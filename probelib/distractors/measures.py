"""Knowledge by distractors (Ammar Khodja et al. 2025, "Factual Knowledge Assessment of Language Models Using Distractors").

    Pl(o|c)  = sum over labels l of o of P(l, EOS | c)   plausibility, in [0, 1]  [distractors, Eq. 1]
    K(f|c)   = Agg over the first n distractors o* of 1[Pl(o|c) > Pl(o*|c)]   Agg: min (Min@n), mean (Avg@n)  [distractors, Eq. 2]
    K(f)     = mean of K(f|c) over the cloze sentences c of the fact     [distractors, Eq. 3]

Plausibilities are kept as logs (nats), summed in float64. A tie is a failure: the comparison is strict.

Where the paper, its released code and this file differ:

=====================  ==================================  ======================================================
                       released code                       here (the argument that selects)
=====================  ==================================  ======================================================
sums                   bfloat16: steps of 1/16 to 1/4 nat  float64 sums of float32 log-probabilities
labels of an entity    not de-duplicated                   each once
end of a label         EOS                                 EOS (``ENDINGS``, ``aliases``)
m < n distractors      three rules                         all m are used; none: NaN (``short``)
=====================  ==================================  ======================================================
"""

from itertools import combinations
from typing import NamedTuple

import numpy as np
import pandas as pd

from probelib import stats
from probelib.distractors.retrieval import NAMES
from probelib.errors import ProbeError, unknown

# ending of a label -> (text after it, whether the end-of-sequence token must follow). Eq. 1 uses "eos".
# Do not use "none" if one label begins another: "New York" would also count "New York City".
ENDINGS = {"eos": ("", True), "none": ("", False), "punct": (".", False)}


def plausibility(scores: pd.DataFrame, ending: str = "eos", aliases: str = "sum") -> pd.DataFrame:
    """log Pl of every candidate after every prompt: ``relation``, ``fact``, ``prompt``, ``candidate``, ``logprob`` (nats).

    scores   rows of ``store.score``, one per label; for "eos" scored with ``end=True``
    ending   one of ``ENDINGS``
    aliases  "sum" over an entity's labels [distractors, Eq. 1], or "max": the best label alone
    """
    if ending not in ENDINGS:
        raise unknown("ending", ending, ENDINGS)
    if aliases not in ("sum", "max"):
        raise unknown("treatment of aliases", aliases, ["sum", "max"])
    value = scores["logprob"].to_numpy(dtype=float)
    if ENDINGS[ending][1]:
        value = value + scores["eos_logprob"].to_numpy(dtype=float)
    rows = scores[["relation", "fact", "prompt", "candidate"]].assign(logprob=value)
    group = rows.groupby(["prompt", "candidate"], sort=False).ngroup().to_numpy()
    order = np.argsort(group, kind="stable")
    first = np.flatnonzero(np.diff(group[order], prepend=-1))
    together = np.logaddexp if aliases == "sum" else np.maximum
    total = together.reduceat(value[order], first) if len(first) else value
    return rows.iloc[order[first]].assign(logprob=total).reset_index(drop=True)


def outcomes(plausible: pd.DataFrame, facts: pd.DataFrame, distractors: pd.DataFrame, n: int) -> pd.DataFrame:
    """Which distractors each fact beats: rows (fact, prompt), columns 1..n by rank, values 1, 0 or NaN (no such distractor).

    plausible    see ``plausibility``; the object of every fact must be in it
    facts        ``fact``, ``object``
    distractors  ``fact``, ``rank``, ``candidate`` (the same for all prompts of a fact), or also ``prompt`` and ``logprob``
                 (different ones per prompt: ``retrieval.allowed``)
    """
    gold = plausible.merge(facts[["fact", "object"]].rename(columns={"object": "candidate"}), on=["fact", "candidate"])
    gold = gold[["fact", "prompt", "logprob"]].rename(columns={"logprob": "own"})
    if "logprob" not in distractors:
        distractors = distractors[["fact", "rank", "candidate"]].merge(
            plausible[["fact", "prompt", "candidate", "logprob"]], on=["fact", "candidate"]
        )
    distractors = distractors[distractors["rank"] <= n].merge(gold, on=["fact", "prompt"])
    beaten = (distractors["own"] > distractors["logprob"]).to_numpy(dtype=float)
    order = pd.MultiIndex.from_frame(gold[["fact", "prompt"]])
    table = np.full((len(order), n), np.nan)
    at = order.get_indexer(pd.MultiIndex.from_frame(distractors[["fact", "prompt"]]))
    table[at, distractors["rank"].to_numpy(dtype=int) - 1] = beaten
    return pd.DataFrame(table, index=order, columns=range(1, n + 1))


def aggregated(outcomes: pd.DataFrame, aggregate: str, short: str = "all") -> pd.DataFrame:
    """K(f|c) for every n [distractors, Eq. 2]: the same rows and columns as ``outcomes``.

    aggregate  "Min" or "Avg"
    short      a fact with m < n distractors: "all" of them are used; "drop": NaN from m + 1 on, as in the released code of
               figures 1, 2 and 5, where the facts of a curve change along it
    returns    NaN if a fact has no distractor

    >>> table = pd.DataFrame([[1.0, 0.0, 1.0, 0.0]], columns=[1, 2, 3, 4])
    >>> aggregated(table, "Avg").round(4).values.tolist(), aggregated(table, "Min").values.tolist()
    ([[1.0, 0.5, 0.6667, 0.5]], [[1.0, 0.0, 0.0, 0.0]])
    """
    there = outcomes.notna().to_numpy()
    beaten = outcomes.to_numpy()
    if aggregate == "Min":
        value = np.minimum.accumulate(np.where(there, beaten, 1.0), axis=1)
    elif aggregate == "Avg":
        value = np.cumsum(np.where(there, beaten, 0.0), axis=1) / np.maximum(np.cumsum(there, axis=1), 1)
    else:
        raise unknown("aggregate", aggregate, ["Min", "Avg"])
    if short not in ("all", "drop"):
        raise unknown("treatment of short lists", short, ["all", "drop"])
    gone = ~there if short == "drop" else ~there.any(axis=1, keepdims=True)
    return pd.DataFrame(np.where(gone, np.nan, value), index=outcomes.index, columns=outcomes.columns)


def over_sentences(values: pd.DataFrame) -> pd.DataFrame:
    """K(f) [distractors, Eq. 3]: the mean over a fact's cloze sentences (second level of the index); NaN if one is undefined.

    Rounded to 40 bits: two facts with the same share stay tied in any order of summation. Kendall's tau counts ties.
    """
    by_fact = values.groupby(level=0, sort=False)
    mantissa, exponent = np.frexp(by_fact.mean())
    mean = np.ldexp(np.rint(2**40 * mantissa), exponent - 40)
    return mean.where(by_fact.count().eq(by_fact.size(), axis=0))


def by_fact(grids: dict[str, pd.DataFrame], facts) -> dict[str, pd.DataFrame]:
    """The values of every measure for these facts, in their order, over their sentences."""
    return {name: over_sentences(table).loc[facts] for name, table in grids.items()}


def grid(outcomes: pd.DataFrame, ns: list[int]) -> pd.DataFrame:
    """Every configuration of the measure, the cheapest first: columns "Min@1", "Avg@1", "Min@2", ... An n beyond the lists is
    omitted, because it would repeat the last one."""
    tables = {aggregate: aggregated(outcomes, aggregate) for aggregate in ("Min", "Avg")}
    columns = {f"{a}@{n}": tables[a][n] for n in ns if n in outcomes.columns for a in tables}
    return pd.DataFrame(columns, index=outcomes.index)


def mean_curve(outcomes: pd.DataFrame, aggregate: str = "Min", seed: int = 0) -> pd.DataFrame:
    """Mean over facts of Min@n or Avg@n, by n: ``mean``, ``low``, ``high`` (95 % bootstrap over facts), ``n`` (facts)."""
    return stats.mean_band(over_sentences(aggregated(outcomes, aggregate)), seed=seed)


def change_of(outcomes: pd.DataFrame, reference: pd.DataFrame, n: int, aggregate: str = "Min", seed: int = 0) -> dict:
    """Change of a score from the list ``reference`` to the list ``outcomes``, on the same facts: ``mean`` of the score,
    ``change`` with ``low`` and ``high`` (95 % bootstrap over facts; NaN if all facts change equally), ``facts`` (defined)."""
    value, other = (over_sentences(aggregated(table, aggregate))[n] for table in (outcomes, reference))
    change = value - other
    low, high = stats.mean_interval(change, seed=seed)
    return {"mean": value.mean(), "change": change.mean(), "low": low, "high": high, "facts": int(change.notna().sum())}


def summarize_searches(found: pd.DataFrame) -> pd.DataFrame:
    """One row per ``search`` and ``width`` (NaN: exact), over facts: the means ``found`` and ``strongest``, the medians
    ``tokens`` and ``all labels``; of ``found`` and ``tokens`` also ``low`` and ``high`` (95 % bootstrap over facts).

    found   per search and fact: ``search``, ``width``, ``found`` (share of the optimal distractors that is found),
            ``strongest`` (whether the most plausible one is), ``tokens`` (forwarded), ``all labels`` (tokens of all labels)

    >>> facts = pd.DataFrame({"search": "beam", "width": 5, "found": [0, 1], "strongest": [True, False], "tokens": [2, 4]})
    >>> summarize_searches(facts.assign(**{"all labels": 9})).iloc[0, 2:8].tolist()
    [0.5, 0.5, 3.0, 9.0, 0.0, 1.0]
    """
    rows = []
    for key, own in found.groupby(["search", "width"], sort=False, dropna=False):
        tokens = own["tokens"].to_numpy()
        medians = stats.bootstrap(lambda at, tokens=tokens: np.median(tokens[at], axis=1), len(tokens))
        row = [*key, own["found"].mean(), own["strongest"].mean(), np.median(tokens), own["all labels"].median()]
        rows.append([*row, *stats.mean_interval(own["found"]), *stats.percentile_interval(medians)])
    columns = ["search", "width", "found", "strongest", "tokens", "all labels"]
    return pd.DataFrame(rows, columns=[*columns, "found, low", "found, high", "tokens, low", "tokens, high"])


# Comparing measures (sections 4.2, 4.3 and 5)

ORDER = (
    "KaRR",
    "ROUGE-L",
    "BERT-score",
    "Precision@n",
    "Probability",
    "Dist. Random",
    "Dist. Sem",
    "Dist. Temp+Sem",
    "Dist. ApprOpt",
    "LLM-as-a-judge",
)


class Calibrations(NamedTuple):
    """Every measure on the facts for which all measures and the rating are defined.

    values     measure -> values, one row per fact in the order of the ratings, one column per configuration
    rating     the rating of each of these facts, (facts,)
    undefined  number of rated facts left out
    chosen     measure -> the configuration chosen for each fold (``stats.calibrate``)
    """

    values: dict[str, pd.DataFrame]
    rating: np.ndarray
    undefined: int
    chosen: dict[str, pd.DataFrame]

    def configurations(self, name: str) -> list:
        """The configuration of each fold."""
        return self.chosen[name]["configuration"].tolist()


def calibrations(grids: dict[str, pd.DataFrame], ratings: pd.DataFrame) -> Calibrations:
    """Calibrate every measure on common facts and common folds (section 4.2). ``ratings``: ``fact``, ``rating``."""
    values = {name: grids[name] for name in ORDER if name in grids}
    values = {name: over_sentences(grid) if grid.index.nlevels == 2 else grid for name, grid in values.items()}
    rated = ratings.set_index("fact")["rating"]
    defined = rated.notna()
    for value in values.values():
        defined &= value.reindex(rated.index).notna().all(axis=1)
    facts = rated.index[defined]
    values, rating = {name: value.loc[facts] for name, value in values.items()}, rated[facts].to_numpy()
    chosen = {name: stats.calibrate(value, rating) for name, value in values.items()}
    return Calibrations(values, rating, int((~defined).sum()), chosen)


def agreement(calibrated: Calibrations) -> pd.DataFrame:
    """Agreement of every measure with the ratings (table 3): ``measure``, ``tau`` (mean of the test folds), ``std`` (over the
    folds), ``low``, ``high`` (95 % bootstrap over facts), and the columns of ``to_best``."""
    values, rating, _, chosen = calibrated
    replicates = {
        name: stats.held_out_replicates(values[name], rating, calibrated.configurations(name)) for name in chosen
    }
    rows = {name: {"tau": fold["tau"].mean(skipna=False), "std": fold["tau"].std()} for name, fold in chosen.items()}
    table = pd.DataFrame(rows).T
    table[["low", "high"]] = [stats.percentile_interval(replicates[name]) for name in chosen]
    return table.join(to_best(table["tau"].to_dict(), replicates)).rename_axis("measure").reset_index()


def not_different(table: pd.DataFrame) -> list[str]:
    """Measures of a table with ``p (Holm)`` that do not differ significantly from the best one."""
    return table[table["p (Holm)"] >= 0.05]["measure"].tolist()


def agreement_by_n(outcomes: dict[str, pd.DataFrame], calibrated: Calibrations, times: int = 300) -> pd.DataFrame:
    """Tau of every strategy against the number of distractors (figure 3): ``strategy``, ``n``, ``tau``, ``low``, ``high``. Each
    fold keeps the aggregator (Min or Avg) chosen on its training facts."""
    rows = []
    for strategy, beaten in outcomes.items():
        name = f"Dist. {NAMES[strategy]}"
        aggregates = [configuration.split("@")[0] for configuration in calibrated.configurations(name)]
        curves = {aggregate: over_sentences(aggregated(beaten, aggregate)) for aggregate in set(aggregates)}
        facts = calibrated.values[name].index
        values = pd.concat({aggregate: curve.loc[facts] for aggregate, curve in curves.items()}, axis=1)
        for n in beaten.columns:
            picks = [(aggregate, n) for aggregate in aggregates]
            tau = stats.held_out(values, calibrated.rating, picks).mean()
            replicates = stats.held_out_replicates(values, calibrated.rating, picks, times)
            rows.append([NAMES[strategy], n, tau, *stats.percentile_interval(replicates)])
    return pd.DataFrame(rows, columns=["strategy", "n", "tau", "low", "high"])


def agreement_by_sentences(grids: dict[str, pd.DataFrame], calibrated: Calibrations, number: pd.Series) -> pd.DataFrame:
    """``by_sentences`` of every measure except KaRR, which has templates of its own (figures 4 and 6), with the column
    ``measure``.

    number   prompt -> number of its cloze sentence
    """
    tables = {
        name: by_sentences(grids[name], number, own.index, calibrated.rating, calibrated.configurations(name))
        for name, own in calibrated.values.items()
        if name != "KaRR"
    }
    return pd.concat(tables, names=["measure"]).reset_index("measure").reset_index(drop=True)


def to_best(values: dict[str, float], replicates: dict[str, np.ndarray]) -> pd.DataFrame:
    """Difference of each measure to the best, by ``measure``, in their order: ``to best``, its interval ``to best, low``
    and ``to best, high``, and ``p (Holm)``, two-sided by the same replicates, Holm-adjusted (NaN for the best).

    values  measure -> its value; a NaN is never the best
    replicates  measure -> its bootstrap replicates, the same resampled facts for all
    """
    best = max(values, key=lambda name: values[name] if np.isfinite(values[name]) else -np.inf)
    rows = []
    for name, own in replicates.items():
        behind = own - replicates[best]
        behind = behind[np.isfinite(behind)]
        tail = min((behind <= 0).sum(), (behind >= 0).sum())
        p = min(1.0, 2 * (tail + 1) / (len(behind) + 1)) if name != best and len(behind) else np.nan
        rows.append([values[name] - values[best], *stats.percentile_interval(behind), p])
    columns = ["to best", "to best, low", "to best, high", "p (Holm)"]
    table = pd.DataFrame(rows, index=pd.Index(replicates, name="measure"), columns=columns)
    return table.assign(**{"p (Holm)": stats.holm(table["p (Holm)"])})


def settles_at(curve: pd.Series, within: float = 0.01) -> float:
    """The first index at which a curve is within ``within`` of its best value; NaN if it has no value. Values after the best one
    do not count.

    >>> int(settles_at(pd.Series([0.50, 0.60, 0.695, 0.70, 0.66], index=[1, 2, 3, 4, 5])))
    3
    """
    near = curve.index[curve >= curve.max() - within - 1e-12]
    return near[0] if len(near) else np.nan


def by_sentences(values: pd.DataFrame, number: pd.Series, facts, rating, configurations: list, times: int = 300):
    """Agreement with a rating if each fact has m sentences, for every m: the mean over all choices of m sentences. All choices
    use the same resampled facts (``stats.held_out_replicates``).

    values          a grid of the measure, one row per (fact, prompt); every fact has all sentences
    number          prompt -> number of the sentence
    facts, rating   the facts to compare, and the rating of each
    configurations  the configuration chosen for each fold
    returns         ``sentences``, ``tau`` (NaN if one choice has none), ``std`` (over choices), ``choices``, ``undefined`` (folds
                    without a tau), ``gain`` = 100 ((tau + 1) / (tau with one sentence + 1) - 1); ``low`` and ``high`` of both:
                    95 % bootstrap intervals over facts
    """
    asked = values.groupby(level=0).size().reindex(facts)
    if (short := asked[asked < number.nunique()]).size:
        raise ProbeError(
            f"{len(short)} of {len(asked)} facts do not have all {number.nunique()} sentences, e.g. {short.index[0]} "
            f"({short.iloc[0]}): templates of its relation are missing. All facts have {asked.min()}: use that many "
            f"(n_sentences={asked.min()})"
        )
    which, rows, drawn = values.index.get_level_values(1).map(number), [], []
    for m in range(1, number.nunique() + 1):
        choices = list(combinations(sorted(number.unique()), m))
        averaged = [over_sentences(values[which.isin(choice)]).loc[facts] for choice in choices]
        taus = np.array([stats.held_out(value, rating, configurations) for value in averaged])
        drawn.append(
            np.mean([stats.held_out_replicates(value, rating, configurations, times) for value in averaged], axis=0)
        )
        rows.append([m, taus.mean(), taus.mean(1).std(), len(choices), int(np.isnan(taus).sum())])
    table = pd.DataFrame(rows, columns=["sentences", "tau", "std", "choices", "undefined"])
    gain = lambda tau, first: 100 * ((tau + 1) / (first + 1) - 1)
    table["gain"] = gain(table["tau"], table["tau"][0])
    for name, replicates in (("", drawn), ("gain, ", [gain(own, drawn[0]) for own in drawn])):
        table[[f"{name}low", f"{name}high"]] = [stats.percentile_interval(own) for own in replicates]
    table.loc[0, ["gain, low", "gain, high"]] = table.loc[0, "gain"]  # 0 by definition, or undefined
    return table


def kappa(first, second, axis: int = -1):
    """Cohen's kappa of two series of yes-or-no verdicts: (agreement - chance) / (1 - chance), where chance is the agreement
    expected from their shares of yes. 1: identical, 0: chance. NaN if both always give the same verdict.

    A measure with few yes verdicts changes few of them; kappa corrects for that.

    >>> rare, other = [1, 0, 0, 0, 0, 0, 0, 0, 0, 0], [0, 1, 0, 0, 0, 0, 0, 0, 0, 0]
    >>> round(float(kappa(rare, other)), 3), round(float(kappa([1, 1, 1, 0, 0, 0, 0, 0], [1, 1, 0, 1, 0, 0, 0, 0])), 3)
    (-0.111, 0.467)
    """
    first, second = np.asarray(first, dtype=bool), np.asarray(second, dtype=bool)
    p, q = first.mean(axis), second.mean(axis)
    chance = p * q + (1 - p) * (1 - q)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(chance < 1, ((first == second).mean(axis) - chance) / (1 - chance), np.nan)


# Robustness (section 4.3)


def verdicts_per_fold(values: dict[str, pd.DataFrame], calibrated: Calibrations) -> dict[str, list[np.ndarray]]:
    """Measure -> per fold, with its configuration, whether each fact counts as known, (facts,) bool. The threshold is the one
    that best separates facts rated above the median from the others."""
    above = calibrated.rating > np.median(calibrated.rating)
    return {
        name: [
            table[c].to_numpy() >= stats.threshold(calibrated.values[name][c], above)
            for c in calibrated.configurations(name)
        ]
        for name, table in values.items()
    }


def robustness(
    right: dict[str, pd.DataFrame], flawed: dict[str, pd.DataFrame], calibrated: Calibrations, seed: int = 0
) -> pd.DataFrame:
    """Robustness of every measure to flawed sentences (table 4), one row per measure.

    right, flawed   measure -> values by fact and configuration, after right and after flawed sentences
    returns         ``tau`` (paper: Kendall's tau-b of both versions, mean over the folds' configurations), ``yes`` (share of
                    right sentences with the verdict "known"), ``flips`` (share of verdicts that change), ``kappa`` (Cohen's), all
                    with ``low`` and ``high``; ``levels`` (different values), ``n``, ``p (Holm)`` (difference to the best kappa)
    """
    before, after = verdicts_per_fold(right, calibrated), verdicts_per_fold(flawed, calibrated)
    replicates, rows = {}, []
    for name, values in right.items():
        pairs = list(zip(before[name], after[name], strict=True))
        picks, n = calibrated.configurations(name), len(values)
        taus = np.mean([stats.kendall_replicates(values[c], flawed[name][c], seed=seed) for c in picks], axis=0)
        flips = np.mean([first != second for first, second in pairs], axis=0)
        mean_kappa = lambda i, pairs=pairs: np.mean([kappa(first[i], second[i]) for first, second in pairs], axis=0)
        replicates[name] = stats.bootstrap(mean_kappa, n, seed=seed)
        tau = np.mean([stats.kendall(values[c], flawed[name][c])["tau"] for c in picks])
        rows.append(
            [name, tau, *stats.percentile_interval(taus), np.mean([first.mean() for first, _ in pairs])]
            + [flips.mean(), *stats.mean_interval(flips, seed=seed)]
            + [float(mean_kappa(np.arange(n))), *stats.percentile_interval(replicates[name])]
            + [max(values[c].nunique() for c in picks), n]
        )
    columns = ["measure", "tau", "low", "high", "yes", "flips", "flips, low", "flips, high"]
    columns += ["kappa", "kappa, low", "kappa, high", "levels", "n"]
    table = pd.DataFrame(rows, columns=columns)
    behind = to_best(table.set_index("measure")["kappa"].to_dict(), replicates)
    table = table.join(behind["p (Holm)"], on="measure")
    return table.sort_values("tau", key=stats.levelled, kind="stable", ignore_index=True)


# Scale (section 5.2, appendix E)


class Scaling(NamedTuple):
    """Fits of a measure against model size (figure 8, appendix E).

    points    ``model``, ``family``, ``parameters``, ``mean``, ``low``, ``high``, ``fitted`` (of the family that is fitted)
    fits      kind ("linear", "logit") -> ``stats.scaling_fit`` of the fitted models; empty for fewer than three
    reach     kind -> 95 % bootstrap interval, over facts, of the size at which the fit is 0.9
    straight  a linear fit of the models of all families; None if there are no others
    """

    points: pd.DataFrame
    fits: dict[str, dict[str, float]]
    reach: dict[str, np.ndarray]
    straight: dict[str, float] | None


def scaling(points: pd.DataFrame, values: dict[str, pd.Series]) -> Scaling:
    """Fit the largest family of models.

    points   the columns of ``Scaling.points`` except ``fitted``
    values   model -> its measure by fact
    """
    points = points.sort_values("parameters")
    family = points["family"].value_counts().index[0]
    points["fitted"] = points["family"] == family
    fitted = points[points["fitted"]]
    kinds = ["linear", "logit"] if fitted["mean"].between(0, 1, inclusive="neither").all() else ["linear"]
    kinds = kinds if len(fitted) > 2 else []  # two points always lie on a line
    fits = {kind: stats.scaling_fit(fitted["parameters"], fitted["mean"], kind) for kind in kinds}
    table = np.stack([values[name].to_numpy() for name in fitted["model"]], axis=1)
    replicates = {kind: stats.scaling_replicates(table, fitted["parameters"], kind) for kind in fits}
    reach = {kind: np.nanquantile(own, [0.025, 0.975], method="nearest") for kind, own in replicates.items()}
    more = len(points) > max(len(fitted), 2)
    return Scaling(points, fits, reach, stats.scaling_fit(points["parameters"], points["mean"]) if more else None)
