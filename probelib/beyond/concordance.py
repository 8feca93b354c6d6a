"""Statistics that ties cannot improve: the share of pairs that a measure puts in the right order, a
tie counting half.

Kendall's tau-b divides by the pairs that are not tied in the measure. So a coarse measure does not
lose by the pairs that it does not order, and thresholding a probability at .5 can raise tau-b. In
the *concordance* P(higher > lower) + P(tie) / 2 a tie counts as much as a coin, so breaking ties at
random does not change its expectation. If the measure's likelihood ratio is monotone (the higher
the value, the larger the share of taught facts), thresholding or rounding never raises it: the ROC
curve is concave, and the curve of a coarser score consists of its chords. Otherwise a gain by
thresholding is real: the fine order was misleading.

A *design* says what models were taught, one row per model and fact: ``model``, ``group`` (the
family of sisters; a model without sisters is alone in its group), ``fact``, ``relation``,
``exposures``. *Pairs* are row numbers of a design, ``higher`` and ``lower``, within blocks that
agree in some columns: the same fact in two sisters (``SISTERS``, causal) or two facts of one
relation in one model (``FACTS``). ``pairs_of`` pairs a taught fact with one never taught,
``pairs_of_doses`` any two different exposure counts (Somers' D = 2 C - 1), ``placebo_pairs`` two
equal ones.

Values are a long frame ``model``, ``fact``, ``measure``, ``value``. Intervals resample facts,
groups, and models within groups.
"""

import numpy as np
import pandas as pd
import scipy

from probelib import stats
from probelib.errors import ProbeError

DESIGN = ["model", "group", "fact", "relation", "exposures"]
SISTERS, FACTS = ["group", "fact"], ["model", "relation"]  # blocks of pairs
TAUGHT = 32  # exposures from which a fact counts as taught
CHUNK = 8192  # pairs whose weights are in memory at once
PERMUTATIONS, FOLDS = 1000, 5
SHARE = ["concordance", "concordance low", "concordance high"]
BEHIND = ["behind", "behind low", "behind high", "p"]
COLUMNS = ["measure", "pairs", "facts", "models", *SHARE, *BEHIND]


# Pairs


def pairs_of(
    design: pd.DataFrame, within: list[str], taught: float = TAUGHT, most: float = np.inf
) -> pd.DataFrame:
    """Pairs of a fact that was taught ``taught`` to ``most`` times and one that was never
    taught."""
    exposures = design["exposures"]
    return _pairs(design, within, exposures.between(taught, most), exposures == 0)


def pairs_of_doses(design: pd.DataFrame) -> pd.DataFrame:
    """Two facts of one relation in one model with different exposure counts."""
    pairs, dose = _pairs(design, FACTS), design["exposures"].to_numpy()
    return pairs[dose[pairs["higher"]] > dose[pairs["lower"]]].reset_index(drop=True)


def placebo_pairs(design: pd.DataFrame, within: list[str], seed: int = 0) -> pd.DataFrame:
    """Pairs with equal exposure counts, in random order: their concordance is .5."""
    pairs, dose = _pairs(design, within), design["exposures"].to_numpy()
    equal = dose[pairs["higher"]] == dose[pairs["lower"]]
    same = pairs[equal & (pairs["higher"] < pairs["lower"])].to_numpy()
    flip = np.random.default_rng(seed).random(len(same)) < 0.5
    return pd.DataFrame(np.where(flip[:, None], same[:, ::-1], same), columns=["higher", "lower"])


def _pairs(design: pd.DataFrame, within: list[str], higher=True, lower=True) -> pd.DataFrame:
    """All pairs of a row of ``higher`` and another of ``lower`` (masks) of one block."""
    if missing := [name for name in DESIGN if name not in design]:
        columns = f"{', '.join(missing)}; it needs {', '.join(DESIGN)}"
        raise ProbeError(f"the design lacks the columns {columns}")
    rows = design[within].assign(row=np.arange(len(design)))
    first, second = (rows[np.broadcast_to(mask, len(rows))] for mask in (higher, lower))
    found = first.merge(second, on=within, suffixes=("_higher", "_lower"))
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


def concordance(
    values: pd.DataFrame, design: pd.DataFrame, pairs: pd.DataFrame, times: int = 500, seed: int = 0
) -> pd.DataFrame:
    """One row per measure, the best first: ``measure``, ``pairs``, ``facts``, ``models``,
    ``concordance`` (share of pairs in the right order, ties half) with its interval (95 %,
    bootstrap over facts, groups, and models within groups; Wilson's if all pairs are ordered
    alike), and

    behind   concordance minus that of the best, on the pairs for which both have values
    p        of that difference (two-sided, normal, with the bootstrap's standard error),
             Holm-adjusted over the measures

    The best is chosen on the same data, so its lead is optimistic. Empty if there are no pairs.
    """
    table = aligned(values, design)
    won = ordered(table.to_numpy(), pairs)  # [pairs, measures]
    names, found = list(table), np.isfinite(won)
    share = stats.nanmean(won, 0)
    if not len(pairs) or not found.any():
        return pd.DataFrame(columns=COLUMNS)
    best = int(np.nanargmax(share))
    gap = won - won[:, [best]]  # NaN if either is
    drawn = _resampled(np.hstack([won, gap]), design, pairs, times, seed)
    draws, gaps = drawn[:, : len(names)], drawn[:, len(names) :]
    behind, spread = stats.nanmean(gap, 0), (gaps - stats.nanmean(gaps, 0)) ** 2
    with np.errstate(invalid="ignore", divide="ignore"):
        p = 2 * scipy.stats.norm.sf(np.abs(behind) / np.sqrt(stats.nanmean(spread, 0)))
    p[best] = np.nan
    rows = {"measure": names, "pairs": found.sum(0), "concordance": share}
    for name in ("fact", "model"):  # that occur in the pairs of a measure
        used = [np.unique(pairs.to_numpy()[mask]) for mask in found.T]
        rows[f"{name}s"] = [design[name].iloc[own].nunique() for own in used]
    rows |= dict(zip(SHARE[1:], _intervals(share, draws, rows["facts"]), strict=True))
    columns = (behind, *stats.percentile_intervals(gaps), stats.holm(p))
    frame = pd.DataFrame(rows | dict(zip(BEHIND, columns, strict=True)))
    frame.loc[best, BEHIND] = np.nan
    return frame[COLUMNS].sort_values("concordance", ignore_index=True, **stats.BEST_FIRST)


def _intervals(share: np.ndarray, draws: np.ndarray, facts: list[int]) -> np.ndarray:
    """[2, measures]: 95 % intervals of bootstrap replicates [times, measures]. If all pairs are
    ordered alike, all replicates are equal; then Wilson's interval, with n facts."""
    ends = stats.percentile_intervals(draws)
    for place in np.flatnonzero(np.isin(share, (0, 1)) & (np.array(facts) > 0)):
        ends[:, place] = stats.wilson(round(share[place] * facts[place]), facts[place])
    return ends


def concordance_by_exposures(
    values: pd.DataFrame, design: pd.DataFrame, within: list[str], seed: int = 0
) -> pd.DataFrame:
    """Concordance of pairs (taught exactly ``exposures`` times, never taught) of the blocks
    ``within``: ``exposures``, ``measure``, ``pairs``, ``SHARE``."""
    parts = {}
    for level in sorted(design["exposures"].unique()):
        if level > 0:
            pairs = pairs_of(design, within, level, level)
            parts[level] = concordance(values, design, pairs, 200, seed)
    table = pd.concat(parts, names=["exposures"]).reset_index("exposures")
    return table[["exposures", "measure", "pairs", *SHARE]].reset_index(drop=True)


def change(
    before: pd.DataFrame,
    after: pd.DataFrame,
    design: pd.DataFrame,
    pairs: pd.DataFrame,
    times: int = 500,
    seed: int = 0,
) -> pd.DataFrame:
    """The effect of a change (of the paraphrases, of the precision) on each measure that has values
    after it: ``measure``, ``pairs``, ``before``, ``after`` (concordances on the same pairs),
    ``change`` with its interval."""
    names, *tables = _common(before, after, design)
    sides = [ordered(table, pairs) for table in tables]
    columns = ["measure", "pairs", "before", "after", "change", "change low", "change high"]
    return _paired(names, sides, design, pairs, times, seed).set_axis(columns, axis=1)


def change_of_means(
    before: pd.DataFrame, after: pd.DataFrame, design: pd.DataFrame, times: int = 500, seed: int = 0
) -> pd.DataFrame:
    """The effect of a change on the mean value of each measure that has values after it, over the
    rows of the design (a model and a fact) that have both values: ``measure``, ``n`` (rows), ``mean
    before``, ``mean after``, ``mean change`` with its interval."""
    names, *tables = _common(before, after, design)
    # each row as a pair with itself, for the same bootstrap
    alone = pd.DataFrame(dict.fromkeys(["higher", "lower"], np.arange(len(design))))
    columns = ["measure", "n", "mean before", "mean after"]
    columns += ["mean change", "mean change low", "mean change high"]
    return _paired(names, tables, design, alone, times, seed).set_axis(columns, axis=1)


def _common(before: pd.DataFrame, after: pd.DataFrame, design: pd.DataFrame) -> list:
    """Names of the measures that both sides have, and ``aligned`` tables of both."""
    first, second = (aligned(frame, design) for frame in (before, after))
    names = [name for name in second if name in first]
    return [names, first[names].to_numpy(), second[names].to_numpy()]


def _paired(names: list[str], sides, design, pairs, times: int, seed: int) -> pd.DataFrame:
    """One row per measure: its name, number of rows of ``sides`` (two of [pairs, measures]) that
    have both values, means over these, difference of the means, and both ends of its interval."""
    gap = sides[1] - sides[0]
    means = [stats.nanmean(np.where(np.isnan(gap), np.nan, side), 0) for side in sides]
    ends = stats.percentile_intervals(_resampled(gap, design, pairs, times, seed))
    ends = np.where(np.abs(ends) < 1e-12, 0.0, ends)  # 0 up to rounding is 0
    columns = [names, np.isfinite(gap).sum(0), *means, stats.nanmean(gap, 0), *ends]
    return pd.DataFrame(dict(enumerate(columns)))


def _resampled(won: np.ndarray, design, pairs, times: int, seed: int) -> np.ndarray:
    """[times, columns]: bootstrap replicates of the mean of each column of ``won`` [pairs,
    columns], without NaN. A pair's weight: how often its facts and models were drawn,
    multiplied."""
    fact, facts = pd.factorize(design["fact"])
    model = design["model"].to_numpy()
    by_fact, by_model = _drawn(len(facts), times, seed), _model_weights(design, times, seed + 1)
    there, won = np.isfinite(won), np.nan_to_num(won)
    total, count = np.zeros((2, times, won.shape[1]))
    for start in range(0, len(pairs), CHUNK):
        part = slice(start, start + CHUNK)
        i, j = (pairs[side].to_numpy()[part] for side in ("higher", "lower"))
        weight = by_fact[:, fact[i]] * np.where(fact[i] == fact[j], 1.0, by_fact[:, fact[j]])
        weight *= by_model[:, i] * np.where(model[i] == model[j], 1.0, by_model[:, j])
        total += weight @ won[part]
        count += weight @ there[part]
    with np.errstate(invalid="ignore", divide="ignore"):
        return total / count


def _model_weights(design: pd.DataFrame, times: int, seed: int) -> np.ndarray:
    """[times, rows of the design]: how often the model of each row was drawn, its group first."""
    group, groups = pd.factorize(design["group"])
    weight = _drawn(len(groups), times, seed)[:, group]
    for number in range(len(groups)):
        rows = group == number
        model, models = pd.factorize(design["model"][rows])
        weight[:, rows] *= _drawn(len(models), times, seed + 2 + number)[:, model]
    return weight


def _drawn(n: int, times: int, seed: int) -> np.ndarray:
    """``stats.resample_counts``; a single unit always counts once, because it cannot vary."""
    return stats.resample_counts(n, times, seed) if n > 1 else np.ones((times, n))


# Checks of the statistics themselves


def permutation_test(
    values: pd.DataFrame,
    design: pd.DataFrame,
    pairs: pd.DataFrame,
    within: list[str],
    times: int = PERMUTATIONS,
    seed: int = 0,
) -> pd.DataFrame:
    """Concordance when the values are shuffled within the blocks of the pairs: ``measure``,
    ``concordance``, ``shuffled`` (mean, expected .5) with ``low`` and ``high``, ``p`` (one-sided,
    (1 + replicates at least as high) / (1 + times)), ``pairs``. A measure without pairs has NaN
    throughout."""
    table = aligned(values, design)
    won = ordered(table.to_numpy(), pairs)
    observed, block = stats.nanmean(won, 0), design.groupby(within).ngroup().to_numpy()
    draw, rows = np.random.default_rng(seed), np.arange(len(design))
    sorted_rows, null = np.lexsort((rows, block)), []
    for _ in range(times):
        moved = np.empty_like(rows)
        moved[sorted_rows] = np.lexsort((draw.random(len(rows)), block))
        null.append(stats.nanmean(ordered(table.to_numpy()[moved], pairs), 0))
    null = np.array(null)  # [times, measures]
    low, high = stats.percentile_intervals(null)
    p = np.where(np.isnan(observed), np.nan, (1 + (null >= observed - 1e-12).sum(0)) / (1 + times))
    names = {"measure": list(table), "concordance": observed, "shuffled": null.mean(0)}
    counted = {"p": p, "pairs": np.isfinite(won).sum(0)}
    return pd.DataFrame(names | {"shuffled low": low, "shuffled high": high} | counted)


def coarse_twins(values: pd.DataFrame, seed: int = 0) -> dict[str, pd.DataFrame]:
    """Variants of the values: thresholded at the median of each model, rounded to ten levels of its
    ranks, and with ties broken at random. Only measures of more than ten levels in some model are
    thresholded and rounded, and only measures with ties have them broken. They are broken over all
    models together, so that unequal values keep their order also between models."""
    by = values.groupby(["measure", "model"])["value"]
    levels, rank = by.transform("nunique"), by.rank(pct=True)
    noise = np.random.default_rng(seed).random(len(values))
    fine = levels.groupby(values["measure"]).transform("max") > 10
    tied = (levels < by.transform("size")).groupby(values["measure"]).transform("any")
    exact = values.assign(value=stats.levelled(values["value"]), noise=noise)
    order = exact.sort_values(["value", "noise"]).groupby("measure").cumcount()
    broken = values.assign(value=order.reindex(values.index).astype(float))
    return {
        "cut at the median": values.assign(value=(rank > 0.5).astype(float))[fine],
        "rounded to ten levels": values.assign(value=np.ceil(rank * 10))[fine],
        "ties broken at random": broken[tied],
    }


# Controls and ceilings


def combine(values: pd.DataFrame, design: pd.DataFrame, measures: list[str], name: str):
    """Long values of one new measure: the log-odds that a fact was taught (rather than never
    taught) given some measures, by a logistic regression on their ranks within model and relation.
    It is fitted on other facts (cross-fitting: a fact is in the same fold for all models). With all
    measures it estimates how well a linear combination of them can order facts."""
    from sklearn.linear_model import LogisticRegression

    table = aligned(values[values["measure"].isin(measures)], design)
    block = design.groupby(["model", "relation"]).ngroup().to_numpy()
    ranks = table.reset_index(drop=True).groupby(block).rank(pct=True) - 0.5
    features, exposures = ranks.fillna(0.0).to_numpy(), design["exposures"].to_numpy()
    number, facts = pd.factorize(design["fact"])
    fold = np.random.default_rng(0).permutation(len(facts))[number] % FOLDS
    trained, scores = (exposures >= TAUGHT) | (exposures == 0), np.full(len(design), np.nan)
    for left_out in range(FOLDS):
        train, test = trained & (fold != left_out), fold == left_out
        if len(set(exposures[train] > 0)) == 2:
            fitted = LogisticRegression().fit(features[train], exposures[train] > 0)
            scores[test] = fitted.decision_function(features[test])
    scores[table.isna().all(axis=1).to_numpy()] = np.nan
    rows = design[["model", "fact"]].assign(measure=name, value=scores)
    return rows.dropna(subset="value").reset_index(drop=True)


def added(
    values: pd.DataFrame, design: pd.DataFrame, pairs: pd.DataFrame, control: str, seed: int = 0
) -> pd.DataFrame:
    """The gain of each measure over a control: ``measure``, ``added`` (concordance of both
    together, see ``combine``, minus that of the control, on the same pairs) with its interval."""
    alone, rows = combine(values, design, [control], control), {}
    for name, own in values.groupby("measure", sort=False):
        if name != control:
            both = combine(values, design, [control, name], control)
            both = both.merge(own[["model", "fact"]], on=["model", "fact"])
            found = change(alone, both, design, pairs, times=200, seed=seed).iloc[0]
            rows[name] = found[["change", "change low", "change high"]].to_numpy()
    table = pd.DataFrame.from_dict(rows, "index", float, ["added", "added low", "added high"])
    return table.rename_axis("measure").reset_index()
