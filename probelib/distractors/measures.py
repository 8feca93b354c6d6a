"""Knowledge by distractors (Ammar Khodja et al. 2025).

    Pl(o|c)  = sum over labels l of o of P(l, EOS | c)   plausibility    [distractors, Eq. 1]
    K(f|c)   = Agg over the first n distractors o* of 1[Pl(o|c) > Pl(o*|c)],
               Agg: min (Min@n) or mean (Avg@n)                               [distractors, Eq. 2]
    K(f)     = mean of K(f|c) over the cloze sentences c of the fact          [distractors, Eq. 3]

Plausibilities are kept as logs (nats), summed in float64. The comparison is strict: a tie is a
failure, and log-probabilities that differ by at most ``EPSILON`` are tied.

=====================  ==================================  ===================================
                       the paper's released code           here
=====================  ==================================  ===================================
sums                   bfloat16: steps of 1/16 to 1/4 nat  float64 sums of float32 log P
labels of an entity    not de-duplicated                   each once
m < n distractors      three rules                         all m are used; none: NaN
=====================  ==================================  ===================================
"""

from itertools import combinations
from typing import NamedTuple

import numpy as np
import pandas as pd

from probelib import stats
from probelib.distractors.retrieval import NAMES
from probelib.errors import ProbeError, unknown

# ending of a label -> (text after it, whether the end-of-sequence token must follow). Eq. 1: "eos".
# Do not use "none" if one label begins another: "New York" would also count "New York City".
ENDINGS = {"eos": ("", True), "none": ("", False), "punct": (".", False)}
EPSILON = 1e-5  # nats: smaller differences depend on the processor and the number of threads
ROUNDING = 1e-9  # of statistics: smaller differences come from the order of a summation
ORDER = ("KaRR", "ROUGE-L", "BERT-score", "Precision@n", "Probability")
ORDER += ("Dist. Random", "Dist. Sem", "Dist. Temp+Sem", "Dist. ApprOpt", "LLM-as-a-judge")
OURS = "Dist. ApprOpt"  # the paper's measure


def plausibility(scores: pd.DataFrame, ending: str = "eos") -> pd.DataFrame:
    """log Pl of every candidate after every prompt [distractors, Eq. 1]: ``relation``, ``fact``,
    ``prompt``, ``candidate``, ``logprob`` (nats). ``scores``: rows of ``store.score``, one per
    label, for the ending "eos" (see ``ENDINGS``) scored with ``end=True``."""
    if ending not in ENDINGS:
        raise unknown("ending", ending, ENDINGS)
    value = scores["logprob"].to_numpy(dtype=float)
    if ENDINGS[ending][1]:
        value = value + scores["eos_logprob"].to_numpy(dtype=float)
    rows = scores[["relation", "fact", "prompt", "candidate"]]
    group = rows.groupby(["prompt", "candidate"], sort=False).ngroup().to_numpy()
    order = np.argsort(group, kind="stable")
    first = np.flatnonzero(np.diff(group[order], prepend=-1))
    total = np.logaddexp.reduceat(value[order], first) if len(first) else value
    return rows.iloc[order[first]].assign(logprob=total).reset_index(drop=True)


def outcomes(plausible: pd.DataFrame, facts: pd.DataFrame, lists: pd.DataFrame, n: int):
    """Which distractors each fact (``fact``, ``object``) beats: rows (fact, prompt), columns 1..n
    by rank, values 1, 0 or NaN (no such distractor).

    plausible  see ``plausibility``; the object of every fact must be in it
    lists      ``fact``, ``rank``, ``candidate`` (the same for all prompts of a fact), or also
               ``prompt`` and ``logprob`` (different ones per prompt: ``retrieval.allowed``)
    """
    gold = facts[["fact", "object"]].rename(columns={"object": "candidate"})
    gold = plausible.merge(gold, on=["fact", "candidate"])[["fact", "prompt", "logprob"]]
    if "logprob" not in lists:
        lists = lists[["fact", "rank", "candidate"]].merge(plausible, on=["fact", "candidate"])
    lists = lists[lists["rank"] <= n]
    lists = lists.merge(gold.rename(columns={"logprob": "own"}), on=["fact", "prompt"])
    order = pd.MultiIndex.from_frame(gold[["fact", "prompt"]])
    table = np.full((len(order), n), np.nan)
    at = order.get_indexer(pd.MultiIndex.from_frame(lists[["fact", "prompt"]]))
    table[at, lists["rank"].to_numpy(dtype=int) - 1] = lists["own"] - lists["logprob"] > EPSILON
    return pd.DataFrame(table, index=order, columns=range(1, n + 1))


def aggregated(outcomes: pd.DataFrame, aggregate: str) -> pd.DataFrame:
    """K(f|c) for every n [distractors, Eq. 2], "Min" or "Avg": rows and columns as ``outcomes``. A
    fact with fewer than n distractors keeps those that it has; NaN if it has none."""
    there = outcomes.notna().to_numpy()
    if aggregate == "Min":
        value = outcomes.fillna(1.0).cummin(axis=1)
    elif aggregate == "Avg":
        value = outcomes.fillna(0.0).cumsum(axis=1) / np.maximum(there.cumsum(axis=1), 1)
    else:
        raise unknown("aggregate", aggregate, ["Min", "Avg"])
    return value.where(pd.Series(there.any(axis=1), outcomes.index), axis=0)


def over_sentences(values: pd.DataFrame) -> pd.DataFrame:
    """K(f) [distractors, Eq. 3]: the mean over a fact's cloze sentences (second level of the
    index), NaN if one is undefined; rounded to 40 bits, so that equal shares are tied in any order
    of summation."""
    by_fact = values.groupby(level=0, sort=False)
    mantissa, exponent = np.frexp(by_fact.mean())
    mean = np.ldexp(np.rint(2**40 * mantissa), exponent - 40)
    return mean.where(by_fact.count().eq(by_fact.size(), axis=0))


def per_fact(outcomes: pd.DataFrame, aggregate: str = "Min") -> pd.DataFrame:
    """Min@n or Avg@n of every fact, for every n."""
    return over_sentences(aggregated(outcomes, aggregate))


def grid(outcomes: pd.DataFrame, ns: list[int]) -> pd.DataFrame:
    """Every configuration, the cheapest first: columns "Min@1", "Avg@1", "Min@2", ... An n beyond
    the lists is omitted, because it would repeat the last one."""
    tables = {aggregate: aggregated(outcomes, aggregate) for aggregate in ("Min", "Avg")}
    columns = {f"{a}@{n}": tables[a][n] for n in ns if n in outcomes.columns for a in tables}
    return pd.DataFrame(columns, index=outcomes.index)


def change_of(outcomes, reference, n: int, aggregate: str = "Min", seed: int = 0) -> dict:
    """Change of a score from the lists ``reference`` to the lists ``outcomes``, on the same facts:
    ``value``, ``low``, ``high`` (95 % bootstrap over facts; NaN if all change equally), ``n``."""
    change = per_fact(outcomes, aggregate)[n] - per_fact(reference, aggregate)[n]
    low, high = stats.mean_interval(change, seed=seed)
    return {"value": change.mean(), "low": low, "high": high, "n": int(change.notna().sum())}


class Calibrations(NamedTuple):
    """Every measure on the facts for which all measures and the rating are defined."""

    values: dict[str, pd.DataFrame]  # by measure: a row per fact, as rated; a column per setting
    rating: np.ndarray  # of each of these facts, (facts,)
    undefined: int  # number of rated facts left out
    chosen: dict[str, pd.DataFrame]  # the configuration chosen for each fold (``stats.calibrate``)
    missed: str = ""  # what is needed where the ratings are only a stand-in

    def picks(self, name: str) -> list:
        """The configuration of each fold."""
        return self.chosen[name]["configuration"].tolist()


def calibrations(
    grids: dict[str, pd.DataFrame], ratings: pd.DataFrame, missed: str = ""
) -> Calibrations:
    """Calibrate every measure on common facts and folds. ``ratings``: ``fact``, ``rating``."""
    values, rated = {}, ratings.set_index("fact")["rating"]
    for name in [name for name in ORDER if name in grids]:
        own = grids[name]
        values[name] = over_sentences(own) if own.index.nlevels == 2 else own
    tables = [rated, *(value.reindex(rated.index) for value in values.values())]
    defined = pd.concat(tables, axis=1).notna().all(axis=1)
    facts, rating = rated.index[defined], rated[defined].to_numpy()
    values = {name: value.loc[facts] for name, value in values.items()}
    chosen = {name: stats.calibrate(value, rating) for name, value in values.items()}
    return Calibrations(values, rating, int((~defined).sum()), chosen, missed)


def ends(name: str) -> list[str]:
    """The columns of the 95 % interval of column ``name``."""
    return [f"{name} low", f"{name} high"]


def beside(values: dict, replicates: dict, other: str, name: str) -> pd.DataFrame:
    """Difference of each measure to the measure ``other``, by ``measure``: ``name``, its interval,
    and ``p (Holm)``, two-sided, Holm-adjusted (NaN for ``other`` itself). ``replicates``: measure
    -> bootstrap replicates, the same resampled facts for all."""
    rows = []
    for measure, own in replicates.items():
        gap = own - replicates[other]
        gap = gap[np.isfinite(gap)]
        tail = min((gap <= ROUNDING).sum(), (gap >= -ROUNDING).sum())
        p = min(1.0, 2 * (tail + 1) / (len(gap) + 1)) if measure != other and len(gap) else np.nan
        rows.append([values[measure] - values[other], *stats.percentile_interval(gap), p])
    columns = [name, *ends(name), "p (Holm)"]
    table = pd.DataFrame(rows, index=pd.Index(replicates, name="measure"), columns=columns)
    return table.assign(**{"p (Holm)": stats.holm(table["p (Holm)"])})


def best_of(values: dict[str, float]) -> str:
    """The measure with the highest value, the first of equals; a NaN is never the best."""
    return pd.Series(values, dtype=float).fillna(-np.inf).round(9).idxmax()


def agreement(calibrated: Calibrations) -> pd.DataFrame:
    """Agreement of every measure with the ratings (table 3): ``measure``, ``tau`` (mean of the test
    folds; interval: 95 % bootstrap over facts), ``std`` (over the folds), the differences ``to
    best``, with ``p (Holm)``, and ``to ApprOpt`` (see ``beside``)."""
    rows, drawn = {}, {}
    for name, fold in calibrated.chosen.items():
        values, picks = calibrated.values[name], calibrated.picks(name)
        drawn[name] = stats.held_out_replicates(values, calibrated.rating, picks)
        ends_of = dict(zip(ends("tau"), stats.percentile_interval(drawn[name]), strict=True))
        rows[name] = {"tau": fold["tau"].mean(skipna=False), "std": fold["tau"].std()} | ends_of
    table = pd.DataFrame.from_dict(rows, "index")
    tau = table["tau"].to_dict()
    table = table.join(beside(tau, drawn, best_of(tau), "to best"))
    ours = beside(tau, drawn, OURS, "to ApprOpt").drop(columns="p (Holm)")
    return table.join(ours).rename_axis("measure").reset_index()


def agreement_by_n(outcomes: dict, calibrated: Calibrations, times: int = 300) -> pd.DataFrame:
    """Tau of every strategy against the number of distractors (figure 3): ``strategy``, ``n``,
    ``tau``, and ``to last``, what it gains from n to the last n; both with intervals. Each fold has
    the aggregator (Min or Avg) that was chosen for it."""
    tables = []
    for strategy, beaten in outcomes.items():
        name = f"Dist. {NAMES[strategy]}"
        aggregates = [configuration.split("@")[0] for configuration in calibrated.picks(name)]
        curves = {aggregate: per_fact(beaten, aggregate) for aggregate in set(aggregates)}
        values = pd.concat(curves, axis=1).loc[calibrated.values[name].index]
        tau, drawn = [], []
        for n in beaten.columns:
            picks = [(aggregate, n) for aggregate in aggregates]
            tau.append(stats.held_out(values, calibrated.rating, picks).mean())
            drawn.append(stats.held_out_replicates(values, calibrated.rating, picks, times))
        tau, drawn = np.array(tau), np.array(drawn)
        table = pd.DataFrame({"strategy": NAMES[strategy], "n": beaten.columns, "tau": tau})
        table[ends("tau")] = stats.percentile_intervals(drawn.T).T
        table["to last"] = tau[-1] - tau
        table[ends("to last")] = stats.percentile_intervals((drawn[-1] - drawn).T).T
        tables.append(table.assign(facts=len(values)))
    return pd.concat(tables, ignore_index=True)


def agreement_by_sentences(grids: dict, calibrated: Calibrations, number: pd.Series):
    """``by_sentences`` of every measure except KaRR, which has templates of its own (figures 4 and
    6), with ``measure`` and ``to ApprOpt``, the gain minus ApprOpt's. ``number``: prompt -> number
    of its cloze sentence."""
    found = {}
    for name in [name for name in calibrated.values if name != "KaRR"]:
        facts, picks = calibrated.values[name].index, calibrated.picks(name)
        found[name] = by_sentences(grids[name], number, facts, calibrated.rating, picks)
    for table, gains in found.values():
        table["to ApprOpt"] = table["gain"] - found[OURS][0]["gain"]
        table[ends("to ApprOpt")] = stats.percentile_intervals((gains - found[OURS][1]).T).T
    tables = {name: table for name, (table, _) in found.items()}
    return pd.concat(tables, names=["measure"]).reset_index("measure").reset_index(drop=True)


def by_sentences(values: pd.DataFrame, number: pd.Series, facts, rating, picks: list):
    """Agreement with a rating if each fact has m sentences, for every m: the mean over all choices
    of m sentences.

    values   a grid of the measure; every fact has all sentences
    number   prompt -> number of the sentence;  picks: the configuration chosen for each fold
    returns  ``sentences``, ``tau`` (NaN if one choice has none), ``std`` (over choices),
             ``choices``, ``undefined`` (folds without a tau), ``gain`` = 100 ((tau_m + 1) /
             (tau_1 + 1) - 1) [appendix C], intervals of tau and gain; and the gain's replicates
    """
    asked = values.groupby(level=0).size().reindex(facts)
    if (short := asked[asked < number.nunique()]).size:
        said = f"{len(short)} of {len(asked)} facts do not have all {number.nunique()} sentences"
        said += f", e.g. {short.index[0]} ({short.iloc[0]})"
        raise ProbeError(f"{said}. Use n_sentences={asked.min()}, which all have")
    which, rows, drawn = values.index.get_level_values(1).map(number), [], []
    for m in range(1, number.nunique() + 1):
        choices = list(combinations(sorted(number.unique()), m))
        means = [over_sentences(values[which.isin(choice)]).loc[facts] for choice in choices]
        taus = np.array([stats.held_out(mean, rating, picks) for mean in means])
        replicates = [stats.held_out_replicates(mean, rating, picks, 300) for mean in means]
        drawn.append(np.mean(replicates, axis=0))
        rows.append([m, taus.mean(), taus.mean(1).std(), len(choices), int(np.isnan(taus).sum())])
    table = pd.DataFrame(rows, columns=["sentences", "tau", "std", "choices", "undefined"])
    gain = lambda tau: 100 * ((tau + 1) / (tau[0] + 1) - 1)
    drawn, table["gain"] = np.array(drawn), gain(table["tau"])
    table[ends("tau")] = stats.percentile_intervals(drawn.T).T
    table[ends("gain")] = stats.percentile_intervals(gain(drawn).T).T
    table.loc[0, ends("gain")] = table.loc[0, "gain"]  # 0 by definition, or undefined
    return table, gain(drawn)


def kappa(first, second):
    """Cohen's kappa of two series of yes-or-no verdicts (last axis): (agreement - chance) / (1 -
    chance); chance: expected from their shares of yes. NaN if both always give the same verdict."""
    first, second = np.asarray(first, dtype=bool), np.asarray(second, dtype=bool)
    p, q = first.mean(-1), second.mean(-1)
    chance = p * q + (1 - p) * (1 - q)
    with np.errstate(invalid="ignore", divide="ignore"):
        value = ((first == second).mean(-1) - chance) / (1 - chance)
    return np.where(chance < 1, np.round(value, 12) + 0.0, np.nan)


def robustness(right: dict, flawed: dict, calibrated: Calibrations, seed: int = 0) -> pd.DataFrame:
    """Robustness of every measure to flawed sentences (table 4), one row per measure. ``right``,
    ``flawed``: measure -> values by fact and configuration, after right and flawed sentences.

    Every measure is also made binary: a fact counts as known from the value on that best separates
    facts rated above the median from the others, one cut per fold with its configuration.

    Return ``tau`` (paper: Kendall's tau-b of both, mean over the folds), ``flips`` (share of
    verdicts that change) and ``kappa`` with intervals; ``yes`` (share of right sentences that are
    known), ``levels`` (different values), ``n``, ``p (Holm)`` of the difference to the best kappa;
    ``tau to ApprOpt``, ``kappa to ApprOpt``.
    """
    above, rows = calibrated.rating > np.median(calibrated.rating), {}
    drawn = {"tau": {}, "flips": {}, "kappa": {}}
    for name, values in right.items():
        verdicts, picks, n = [], calibrated.picks(name), len(values)
        for c in picks:
            # values that differ only by rounding are on the same side of the cut
            pool = stats.levelled(np.r_[calibrated.values[name][c], values[c], flawed[name][c]])
            cut = stats.threshold(pool[: len(above)], above)
            verdicts.append(pool[len(above) :].reshape(2, n) >= cut)
        verdicts = np.array(verdicts)  # [folds, right or flawed, facts]
        own = [(values[c], flawed[name][c]) for c in picks]
        agree = lambda i, v=verdicts: np.mean([kappa(a[i], b[i]) for a, b in v], axis=0)
        flips = (verdicts[:, 0] != verdicts[:, 1]).mean(axis=0)
        taus = [stats.kendall_replicates(*xy, seed=seed) for xy in own]
        drawn["tau"][name] = np.mean(taus, axis=0)
        drawn["flips"][name] = stats.bootstrap(lambda i, f=flips: f[i].mean(1), n, seed=seed)
        drawn["kappa"][name] = stats.bootstrap(agree, n, seed=seed)
        rows[name] = {"tau": np.mean([stats.kendall(*xy)["tau"] for xy in own])}
        rows[name] |= {"flips": flips.mean(), "kappa": float(agree(np.arange(n)))}
        levels = max(values[c].nunique() for c in picks)
        rows[name] |= {"yes": verdicts[:, 0].mean(), "n": n, "levels": levels}
    table = pd.DataFrame.from_dict(rows, "index").rename_axis("measure")
    for name, replicates in drawn.items():
        table[ends(name)] = [stats.percentile_interval(own) for own in replicates.values()]
    best = best_of(table["kappa"])
    table["p (Holm)"] = beside(table["kappa"], drawn["kappa"], best, "to best")["p (Holm)"]
    for name in ("tau", "kappa"):
        ours = beside(table[name], drawn[name], OURS, f"{name} to ApprOpt")
        table = table.join(ours.drop(columns="p (Holm)"))
    return table.sort_values("tau", key=stats.levelled, kind="stable").reset_index()


def scaling(points: pd.DataFrame, values: dict[str, pd.Series]):
    """Fits of a measure against model size, on the largest family of models (figure 8).

    points   ``model``, ``family``, ``parameters``, ``mean``;  values: model -> its measure by fact
    returns  the points by size with ``fitted`` (whether the fits use the model); and per ``kind``
             ("linear", "logit"; none for fewer than three models) ``a``, ``slope`` per factor of
             ten (interval: scatter of the models), ``R2``, ``size at 0.9`` (bootstrap over facts)
    """
    points = points.sort_values("parameters", ignore_index=True)
    points["fitted"] = points["family"] == points["family"].value_counts().index[0]
    own, rows = points[points["fitted"]], []
    table = np.stack([values[name].to_numpy() for name in own["model"]], axis=1)
    bounded = own["mean"].between(0, 1, inclusive="neither").all()
    for kind in ("linear", "logit")[: 1 + bounded] if len(own) > 2 else ():  # two lie on any line
        fit = stats.scaling_fit(own["parameters"], own["mean"], kind)
        sizes = stats.scaling_replicates(table, own["parameters"], kind)
        reach = np.nanquantile(sizes, [0.025, 0.975], method="nearest")
        keys = ("a", "b", "b_low", "b_high", "r2", "size_at")
        rows.append([kind, *(fit[key] for key in keys), *reach])
    columns = ["kind", "a", "slope", *ends("slope"), "R2", "size at 0.9", *ends("size at 0.9")]
    return points, pd.DataFrame(rows, columns=columns)
