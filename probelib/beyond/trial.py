"""The trial: is a measure higher where a fact was taught more, or rightly? (trial.md)

A *design* says what models read of facts, one row per model and fact: ``model``, ``group`` (models
that differ in their corpus alone), ``corpus``, ``fact``, ``relation``, ``dose`` (statements),
``right`` (whether they state the right object), and in a trial ``kind`` and ``arm`` (the place of
the dose among the fact's four, 0 to 3); elsewhere ``kind`` is "". Values are a long frame
``model``, ``fact``, ``measure``, ``value`` (the higher, the better the fact is known).

*Pairs* are row numbers of a design, ``higher`` and ``lower``. The *concordance* of a measure is the
share of pairs that it puts in this order, a tie counting half: so a measure cannot gain by ties, as
it can in Kendall's tau-b, nor by breaking them at random.
"""

import numpy as np
import pandas as pd
import scipy

from probelib import stats
from probelib.errors import ProbeError

DESIGN = ["model", "group", "corpus", "fact", "relation", "kind", "arm", "dose", "right"]
SISTERS, FACTS = ["group", "fact"], ["model", "relation"]  # what the two rows of a pair share
ONE_MODEL = "one model"  # the contrast of two facts in one model
TAUGHT = 32  # statements from which on a fact counts as taught, outside of a trial
CHUNK = 8192  # pairs whose weights are in memory at once
FOLDS = 5
POWER = 2.8  # standard errors between 0 and a difference seen in four of five studies
SHARE = ["concordance", "concordance low", "concordance high"]
BEHIND = ["behind", "behind low", "behind high"]


# Pairs


def contrasts(design: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Name -> pairs, the primary contrast first; those without pairs are left out. Raise ProbeError
    if all are."""
    if missing := [name for name in DESIGN if name not in design]:
        raise ProbeError(f"the design lacks {', '.join(missing)}; it needs {', '.join(DESIGN)}")
    kind, dose, right = design["kind"], design["dose"], design["right"]
    contested, other, turned = kind == "contested", kind == "", kind.isin(["rising", "fine"])
    found = {}
    for level in (8, 1, 2, 4, 16, 32):
        sides = turned & (dose == level), turned & (dose == 0)
        found[f"{level} against 0"] = _pairs(design, SISTERS, *sides)
    found["16 against 4"] = _pairs(design, SISTERS, turned & (dose == 16), turned & (dose == 4))
    sides = contested & right, contested & ~right
    found["right against wrong"] = _pairs(design, [*SISTERS, "dose"], *sides)
    rising = kind == "rising"
    taught = (rising & (dose == 8)) | (other & (dose >= TAUGHT))
    found[ONE_MODEL] = _pairs(design, FACTS, taught, (rising | other) & (dose == 0))
    if found := {name: pairs for name, pairs in found.items() if len(pairs)}:
        return found
    raise ProbeError(
        f"no relation has a fact that was stated {TAUGHT} times or more and one that never was "
        f"({len(design)} facts of {design['model'].nunique()} models): there is nothing to compare"
        ". Take more facts (n_facts=6 or more)"
    )


def placebo_pairs(design: pd.DataFrame) -> pd.DataFrame:
    """The constant facts in two sisters, oriented as the rising facts are: by their arms."""
    constant = design["kind"] == "constant"
    pairs = _pairs(design, SISTERS, constant, constant)
    arm = design["arm"].to_numpy()
    return pairs[arm[pairs["higher"]] > arm[pairs["lower"]]].reset_index(drop=True)


def _pairs(design: pd.DataFrame, within: list[str], higher, lower) -> pd.DataFrame:
    """All pairs of a row of ``higher`` and one of ``lower`` (masks) that agree in ``within``."""
    rows = design[within].assign(row=np.arange(len(design)))
    found = rows[higher].merge(rows[lower], on=within, suffixes=("_higher", "_lower"))
    found = found.loc[found["row_higher"] != found["row_lower"], ["row_higher", "row_lower"]]
    return found.set_axis(["higher", "lower"], axis=1).reset_index(drop=True)


# Concordance


def aligned(values: pd.DataFrame, design: pd.DataFrame) -> pd.DataFrame:
    """[rows of the design, measures]: the values, NaN where there is none."""
    wide = values.pivot(index=["model", "fact"], columns="measure", values="value")
    rows = pd.MultiIndex.from_frame(design[["model", "fact"]])
    return wide.reindex(rows)[values["measure"].unique()].astype(float).apply(stats.levelled)


def ordered(table: np.ndarray, pairs: pd.DataFrame) -> np.ndarray:
    """[pairs, measures]: 1 where the higher row has the larger value, 1/2 for a tie, 0 otherwise;
    NaN if one has none.

    table   [rows, measures]

    >>> table, pairs = np.array([[0.2], [0.9], [0.2]]), {"higher": [1, 0, 0], "lower": [0, 1, 2]}
    >>> ordered(table, pd.DataFrame(pairs)).ravel().tolist()
    [1.0, 0.0, 0.5]
    """
    higher, lower = table[pairs["higher"]], table[pairs["lower"]]
    return np.where(np.isnan(higher) | np.isnan(lower), np.nan, (np.sign(higher - lower) + 1) / 2)


def as_verdicts(table: np.ndarray, design: pd.DataFrame, pairs: pd.DataFrame) -> np.ndarray:
    """``ordered`` of each measure as yes or no: cut where it separates the pairs of other facts
    best, in each group of models (``FOLDS`` folds of facts). So levels alone win nothing."""
    number, facts = pd.factorize(design["fact"])
    fold = np.random.default_rng(0).permutation(len(facts))[number] % FOLDS
    group, groups = pd.factorize(design["group"])
    high, low = pairs["higher"].to_numpy(), pairs["lower"].to_numpy()
    won = np.full((len(pairs), table.shape[1]), np.nan)
    for own in range(len(groups)):
        for left_out in range(FOLDS):
            test = (group[high] == own) & (fold[high] == left_out)
            train = (group[high] == own) & (fold[high] != left_out) & (fold[low] != left_out)
            cuts = [_best_cut(v[high[train]], v[low[train]]) for v in table.T]
            yes = np.where(np.isnan(table), np.nan, table > np.array(cuts))
            won[test] = ordered(yes, pairs[test])
    return won


def _best_cut(higher: np.ndarray, lower: np.ndarray) -> float:
    """The cut with most of ``higher`` above and most of ``lower`` below; NaN without values."""
    higher, lower = (np.sort(side[np.isfinite(side)]) for side in (higher, lower))
    if not (len(higher) and len(lower)):
        return np.nan
    cuts = np.unique(np.concatenate([higher, lower]))
    below = [np.searchsorted(side, cuts, "right") / len(side) for side in (higher, lower)]
    place = np.argmax(below[1] - below[0])
    return cuts[place : place + 2].mean()  # halfway to the next value


def rank(
    values: pd.DataFrame, design: pd.DataFrame, pairs: pd.DataFrame, times: int = 500, seed: int = 0
) -> pd.DataFrame:
    """One row per measure, the best first: ``measure``, ``pairs``, ``facts``; the ``concordance``
    with its interval and that of its ``yes or no``; ``rank low``, ``rank high``; and

    behind   concordance minus that of the best, on the pairs that both order, with its interval
    p        of that difference (two-sided, normal, with the bootstrap's standard error),
             Holm-adjusted over the measures
    visible  the smallest difference to the best that these pairs show in four of five repetitions

    Intervals: 95 %, bootstrap over relations, facts within relations, and corpora. The best is
    chosen on the same data, so its lead is optimistic.
    """
    table = aligned(values, design)
    won = ordered(table.to_numpy(), pairs)
    verdict = as_verdicts(table.to_numpy(), design, pairs)
    share, names = stats.nanmean(won, 0), list(table)
    best = int(np.nanargmax(share))
    gap = won - won[:, [best]]
    draws = resampled(np.hstack([won, gap, verdict]), design, pairs, times, seed)
    own, gaps, verdicts = np.split(draws, 3, axis=1)
    facts = [_facts_in(design, pairs[np.isfinite(v)]) for v in won.T]
    columns = {"measure": names, "pairs": np.isfinite(won).sum(0), "facts": facts}
    columns |= _with_ends("concordance", share, own, facts)
    columns |= _with_ends("yes or no", stats.nanmean(verdict, 0), verdicts, facts)
    places = scipy.stats.rankdata(-np.nan_to_num(own, nan=-1), axis=1)  # [times, measures]
    columns["rank low"], columns["rank high"] = np.percentile(places, [2.5, 97.5], 0)
    behind, error = stats.nanmean(gap, 0), np.nanstd(gaps, axis=0)
    columns |= dict(zip(BEHIND, (behind, *stats.percentile_intervals(gaps)), strict=True))
    with np.errstate(invalid="ignore", divide="ignore"):
        p = 2 * scipy.stats.norm.sf(np.abs(behind) / error)
    p[best] = np.nan
    frame = pd.DataFrame(columns | {"p": stats.holm(p), "visible": POWER * error})
    frame.loc[best, [*BEHIND, "visible"]] = np.nan
    return frame.sort_values("concordance", ignore_index=True, **stats.BEST_FIRST)


def _facts_in(design: pd.DataFrame, pairs: pd.DataFrame) -> int:
    return design["fact"].iloc[np.unique(pairs.to_numpy())].nunique()


def _with_ends(name: str, share, draws, facts: list[int]) -> dict:
    """A share with its interval; where all pairs have one order, Wilson's with n facts."""
    ends = stats.percentile_intervals(draws)
    for place in np.flatnonzero(np.isin(share, (0, 1)) & (np.array(facts) > 0)):
        ends[:, place] = stats.wilson(share[place] * facts[place], facts[place])
    return {name: share, f"{name} low": ends[0], f"{name} high": ends[1]}


def resampled(won: np.ndarray, design: pd.DataFrame, pairs: pd.DataFrame, times: int, seed: int):
    """[times, columns]: bootstrap replicates of the mean of each column of ``won`` [pairs,
    columns], without NaN. A pair counts as often as its relation, facts and corpora were drawn."""
    units = {name: pd.factorize(design[name]) for name in ("relation", "fact", "corpus")}
    drawn = {}
    for i, (name, (_, each)) in enumerate(units.items()):
        if len(each) > 1:  # a single unit cannot vary
            drawn[name] = stats.resample_counts(len(each), times, seed + i)
    there, won = np.isfinite(won), np.nan_to_num(won)
    total, count = np.zeros((2, times, won.shape[1]))
    for start in range(0, len(pairs), CHUNK):
        part = slice(start, start + CHUNK)
        i, j = (pairs[side].to_numpy()[part] for side in ("higher", "lower"))
        weight = np.ones((times, len(i)))
        for name, counts in drawn.items():
            unit = units[name][0]
            weight *= counts[:, unit[i]] * np.where(unit[i] == unit[j], 1.0, counts[:, unit[j]])
        total += weight @ won[part]
        count += weight @ there[part]
    with np.errstate(invalid="ignore", divide="ignore"):
        return total / count


# What could fool the trial


def placebo(
    values: pd.DataFrame, design: pd.DataFrame, times: int = 500, seed: int = 0
) -> pd.DataFrame:
    """The noise of a training run: ``measure``, ``placebo`` (concordance of ``placebo_pairs``) with
    its interval, ``pairs``, and ``lowest``, ``highest`` over all ordered pairs of two sisters."""
    table = aligned(values, design)
    pairs = placebo_pairs(design)
    won = ordered(table.to_numpy(), pairs)
    constant = design["kind"] == "constant"
    both = _pairs(design, SISTERS, constant, constant)
    models = [design["model"].to_numpy()[both[side]] for side in ("higher", "lower")]
    by_pair = pd.DataFrame(ordered(table.to_numpy(), both)).groupby(models).mean()
    facts = [_facts_in(design, pairs)] * table.shape[1]
    draws = resampled(won, design, pairs, times, seed)
    columns = {"measure": list(table), **_with_ends("placebo", stats.nanmean(won, 0), draws, facts)}
    ends = {"lowest": by_pair.min().to_numpy(), "highest": by_pair.max().to_numpy()}
    return pd.DataFrame(columns | {"pairs": np.isfinite(won).sum(0)} | ends)


def spread(values: pd.DataFrame, design: pd.DataFrame, seeds: list[str]) -> pd.DataFrame:
    """How far trainings differ: ``measure``, its ``one model`` concordance (mean over the sisters),
    the standard deviations ``sd of seeds`` (that of ``seeds``, models of one corpus and size) and
    ``sd of corpora`` (of that of sisters, mean over the groups), and ``lowest``, ``highest``: the
    concordance of the same facts at the same doses in two of ``seeds``, over their ordered pairs
    (.5 without noise)."""
    table, pairs = aligned(values, design), contrasts(design)[ONE_MODEL]
    models = design["model"].to_numpy()
    won = pd.DataFrame(ordered(table.to_numpy(), pairs))
    by_model = won.groupby(models[pairs["higher"]]).mean()
    several = design["group"].groupby(design["model"]).first()
    several = several[several.duplicated(keep=False)]
    sisters = by_model.loc[several.index]
    same = design["model"].isin(seeds)
    both = _pairs(design, ["fact", "dose", "right"], same, same)
    ends = [models[both[side]] for side in ("higher", "lower")]
    noise = pd.DataFrame(ordered(table.to_numpy(), both)).groupby(ends).mean()
    columns = {"measure": list(table), "one model": sisters.mean()}
    columns |= {"sd of seeds": by_model.loc[seeds].std()}
    columns |= {"sd of corpora": sisters.groupby(several).std().mean()}
    return pd.DataFrame(columns | {"lowest": noise.min(), "highest": noise.max()})


def added(
    values: pd.DataFrame,
    design: pd.DataFrame,
    pairs: pd.DataFrame,
    controls: list[str],
    seed: int = 0,
) -> pd.DataFrame:
    """What a measure adds to controls: ``measure``, ``added`` (concordance of all together minus
    that of the controls) with its interval. Together: a logistic regression on the differences of
    ranks within a pair, fitted on the pairs of other facts."""
    table = aligned(values, design)
    names = [name for name in table if name not in controls]
    ranks = table.rank(pct=True).fillna(0.5)
    alone = _together(ranks[controls].to_numpy(), design, pairs)
    gains = []
    for name in names:
        won = _together(ranks[[*controls, name]].to_numpy(), design, pairs)
        known = np.isfinite(table[name].to_numpy())
        there = known[pairs["higher"]] & known[pairs["lower"]]
        gains.append(np.where(there, won - alone, np.nan))
    gain = np.stack(gains, axis=1)
    ends = stats.percentile_intervals(resampled(gain, design, pairs, 500, seed))
    columns = {"measure": names, "added": stats.nanmean(gain, 0)}
    return pd.DataFrame(columns | {"added low": ends[0], "added high": ends[1]})


def _together(features: np.ndarray, design: pd.DataFrame, pairs: pd.DataFrame) -> np.ndarray:
    """[pairs]: 1 where the combination of ``features`` [rows, measures] orders a pair rightly."""
    from sklearn.linear_model import LogisticRegression

    number, facts = pd.factorize(design["fact"])
    fold = np.random.default_rng(0).permutation(len(facts))[number] % FOLDS
    high, low = pairs["higher"].to_numpy(), pairs["lower"].to_numpy()
    gap, won = features[high] - features[low], np.full(len(pairs), 0.5)
    for left_out in range(FOLDS):
        train = (fold[high] != left_out) & (fold[low] != left_out)
        test = fold[high] == left_out
        if train.any() and test.any():
            both, truth = np.vstack([gap[train], -gap[train]]), np.repeat([1, 0], train.sum())
            fitted = LogisticRegression(fit_intercept=False).fit(both, truth)
            won[test] = (np.sign(gap[test] @ fitted.coef_[0]) + 1) / 2
    return won


# What else changes


def change(
    before: pd.DataFrame,
    after: pd.DataFrame,
    design: pd.DataFrame,
    pairs: pd.DataFrame,
    seed: int = 0,
) -> pd.DataFrame:
    """The effect of a change (of the paraphrases, of the training) on each measure that has values
    after it, on the same pairs: ``measure``, ``pairs``, ``before``, ``after`` (concordances),
    ``change`` with its interval; and the same of the mean over the ``n`` rows in the pairs, ``mean
    before``, ``mean after``, ``mean change``."""
    first, second = (aligned(frame, design) for frame in (before, after))
    names = [name for name in second if name in first]
    tables = [first[names].to_numpy(), second[names].to_numpy()]
    rows = np.unique(pairs.to_numpy())
    alone = pd.DataFrame({"higher": rows, "lower": rows})  # each row as a pair with itself
    parts = {
        "": ([ordered(t, pairs) for t in tables], pairs),
        "mean ": ([t[rows] for t in tables], alone),
    }
    found = {"measure": names}
    for name, (sides, units) in parts.items():
        gap = sides[1] - sides[0]
        means = [stats.nanmean(np.where(np.isnan(gap), np.nan, side), 0) for side in sides]
        ends = stats.percentile_intervals(resampled(gap, design, units, 500, seed))
        ends = np.where(np.abs(ends) < 1e-12, 0.0, ends)  # 0 up to rounding is 0
        found["pairs" if not name else "n"] = np.isfinite(gap).sum(0)
        found |= {f"{name}before": means[0], f"{name}after": means[1]}
        columns = (f"{name}change", f"{name}change low", f"{name}change high")
        found |= dict(zip(columns, (stats.nanmean(gap, 0), *ends), strict=True))
    return pd.DataFrame(found)


def difference(values: pd.DataFrame, one: pd.Index, other: pd.Index) -> pd.DataFrame:
    """Compare two groups of facts: ``measure``, ``one``, ``other`` (mean values), ``difference``
    with its interval (95 %, facts resampled within each group), ``n one``, ``n other``. A fact
    counts if all models have a finite value."""
    rows = []
    for measure, group in values.groupby("measure", sort=False):
        wide = group.pivot(index="fact", columns="model", values="value").astype(float)
        mean = wide[np.isfinite(wide).all(axis=1)].mean(axis=1)
        pair = [mean.reindex(facts).dropna().to_numpy() for facts in (one, other)]
        mean_of = lambda v, seed: stats.bootstrap(lambda i: v[i].mean(1), len(v), seed=seed)
        draws = [mean_of(v, seed) for seed, v in enumerate(pair)]
        means = [v.mean() if len(v) else np.nan for v in pair]
        ends = stats.percentile_interval(draws[0] - draws[1])
        rows.append((measure, *means, means[0] - means[1], *ends, *map(len, pair)))
    columns = ["measure", "one", "other", "difference", "difference low", "difference high"]
    return pd.DataFrame(rows, columns=[*columns, "n one", "n other"])
