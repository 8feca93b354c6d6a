"""Statistics that ties cannot improve: the share of pairs that a measure puts in the right order, a tie counting half.

Kendall's tau-b divides by the pairs that are not tied in the measure. So a coarse measure does not lose by the pairs that it does
not order, and thresholding a probability at .5 can raise tau-b. In the *concordance* P(higher > lower) + P(tie) / 2 a tie counts
as much as a coin, so breaking ties at random does not change its expectation. If the measure's likelihood ratio is monotone (the
higher the value, the larger the share of taught facts), thresholding or rounding never raises it: the ROC curve is concave, and
the curve of a coarser score consists of its chords. Otherwise a gain by thresholding is real: the fine order was misleading.

A *design* says what models were taught, one row per model and fact: ``model``, ``group`` (the family of sisters; a model without
sisters is alone in its group), ``fact``, ``relation``, ``exposures``. *Pairs* are row numbers of a design, ``higher`` and
``lower``; four kinds of pairs make the four statistics:

===  ==========================  ==========================================================================
(a)  ``pairs_across_sisters``    the same fact in two sisters: one was taught it, the other never (causal)
(b)  ``pairs_of_facts``          two facts of one relation in one model: one was taught, the other never
(c)  ``pairs_of_doses``          the same, but any two different exposure counts: Somers' D = 2 C - 1
(d)  ``cells``, then (a)         one relation in two sisters that were taught different shares of it
===  ==========================  ==========================================================================

Values are a long frame ``model``, ``fact``, ``measure``, ``value``. Intervals resample facts, groups, and models within groups.
"""

import numpy as np
import pandas as pd
import scipy

from probelib import stats
from probelib.errors import ProbeError

DESIGN = ["model", "group", "fact", "relation", "exposures"]
TAUGHT = 32  # exposures from which a fact counts as taught
CHUNK = 8192  # pairs whose weights are in memory at once
PERMUTATIONS = 1000
SHARE = ["concordance", "concordance low", "concordance high"]
BEHIND = ["behind", "behind low", "behind high", "p"]
COLUMNS = ["measure", "pairs", "facts", "models", *SHARE, *BEHIND]


# Pairs


def pairs_across_sisters(design: pd.DataFrame, taught: float = TAUGHT) -> pd.DataFrame:
    """(a) Each fact in two sisters: one was taught it at least ``taught`` times, the other never."""
    return _pairs(
        design, ["group", "fact"], design["exposures"] >= taught, design["exposures"] == 0
    )


def pairs_of_facts(design: pd.DataFrame, taught: float = TAUGHT) -> pd.DataFrame:
    """(b) Two facts of one relation in one model: one was taught at least ``taught`` times, the other never."""
    return _pairs(
        design, ["model", "relation"], design["exposures"] >= taught, design["exposures"] == 0
    )


def pairs_of_doses(design: pd.DataFrame) -> pd.DataFrame:
    """(c) Two facts of one relation in one model with different exposure counts."""
    everything = pd.Series(True, index=design.index)
    pairs = _pairs(design, ["model", "relation"], everything, everything)
    dose = design["exposures"].to_numpy()
    return pairs[dose[pairs["higher"]] > dose[pairs["lower"]]].reset_index(drop=True)


def concordance_by_exposures(
    values: pd.DataFrame, design: pd.DataFrame, within: list[str], times: int = 200, seed: int = 0
) -> pd.DataFrame:
    """Concordance of pairs (taught exactly ``exposures`` times, never taught): ``exposures``, ``measure``, ``pairs``,
    ``SHARE``.

    within   columns that a pair agrees in: ["group", "fact"] for the same fact in two sisters, ["model", "relation"] for two
             facts of one relation in one model
    """
    parts = []
    for level in sorted(design["exposures"].unique()):
        if level > 0:
            pairs = _pairs(design, within, design["exposures"] == level, design["exposures"] == 0)
            part = concordance(values, design, pairs, times, seed)
            parts.append(part[["measure", "pairs", *SHARE]].assign(exposures=level))
    table = pd.concat(parts, ignore_index=True)
    return table[["exposures", *table.columns.drop("exposures")]]


def placebo_pairs(design: pd.DataFrame, within: list[str], seed: int = 0) -> pd.DataFrame:
    """Pairs with equal exposure counts within the blocks that ``within`` names, in random order: their concordance is .5."""
    everything = pd.Series(True, index=design.index)
    pairs = _pairs(design, within, everything, everything)
    dose = design["exposures"].to_numpy()
    same = pairs[
        (dose[pairs["higher"]] == dose[pairs["lower"]]) & (pairs["higher"] < pairs["lower"])
    ].to_numpy()
    flip = np.random.default_rng(seed).random(len(same)) < 0.5
    return pd.DataFrame(np.where(flip[:, None], same[:, ::-1], same), columns=["higher", "lower"])


def cells(
    values: pd.DataFrame, design: pd.DataFrame, taught: float = TAUGHT
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """(values, design) of whole relations, for (d): mean value per model and relation, and the share of its facts that was taught
    in place of ``exposures``. Only facts on which all models of a group have a value count."""
    rows = values.merge(design, on=["model", "fact"])
    models = design.groupby("group")["model"].nunique()
    scored = rows.groupby(["measure", "group", "fact"])["model"].transform("nunique")
    rows = rows[scored == rows["group"].map(models)].assign(
        exposures=lambda frame: frame["exposures"] >= taught
    )
    means = rows.groupby(["measure", "model", "relation"], sort=False)["value"].mean().reset_index()
    shares = (
        rows.groupby(["model", "group", "relation"], sort=False)["exposures"].mean().reset_index()
    )
    return means.rename(columns={"relation": "fact"}), shares.assign(fact=shares["relation"])[
        DESIGN
    ]


def pairs_of_shares(shares: pd.DataFrame) -> pd.DataFrame:
    """(d) One relation in two sisters that were taught different shares of its facts; ``shares``: a design by ``cells``."""
    everything = pd.Series(True, index=shares.index)
    pairs = _pairs(shares, ["group", "fact"], everything, everything)
    share = shares["exposures"].to_numpy()
    return pairs[share[pairs["higher"]] > share[pairs["lower"]]].reset_index(drop=True)


def _pairs(
    design: pd.DataFrame, within: list[str], higher: pd.Series, lower: pd.Series
) -> pd.DataFrame:
    """All pairs of a row of ``higher`` and a row of ``lower`` that agree in the columns ``within``."""
    if missing := [name for name in DESIGN if name not in design]:
        raise ProbeError(
            f"the design lacks the columns {', '.join(missing)}; it needs {', '.join(DESIGN)}"
        )
    numbered = design[within].assign(row=np.arange(len(design)))
    first, second = (numbered[mask.to_numpy()] for mask in (higher, lower))
    found = first.merge(second, on=within, suffixes=("_higher", "_lower"))
    found = found[found["row_higher"] != found["row_lower"]]
    return (
        found[["row_higher", "row_lower"]]
        .set_axis(["higher", "lower"], axis=1)
        .reset_index(drop=True)
    )


# Concordance


def aligned(values: pd.DataFrame, design: pd.DataFrame) -> pd.DataFrame:
    """[rows of the design, measures]: the values, NaN where there is none; measures in order of appearance."""
    wide = values.pivot(index=["model", "fact"], columns="measure", values="value")
    rows = pd.MultiIndex.from_frame(design[["model", "fact"]])
    return (
        wide.reindex(rows)[list(dict.fromkeys(values["measure"]))]
        .astype(float)
        .apply(stats.levelled)
    )


def ordered(table: np.ndarray, pairs: pd.DataFrame) -> np.ndarray:
    """[pairs, measures]: 1 where the higher row has the larger value, 1/2 for a tie, 0 otherwise; NaN if one has none.

    table   [rows, measures]

    >>> ordered(np.array([[0.2], [0.9], [0.2]]), pd.DataFrame({"higher": [1, 0, 0], "lower": [0, 1, 2]})).ravel().tolist()
    [1.0, 0.0, 0.5]
    """
    higher, lower = table[pairs["higher"]], table[pairs["lower"]]
    return np.where(np.isnan(higher) | np.isnan(lower), np.nan, (np.sign(higher - lower) + 1) / 2)


def concordance(
    values: pd.DataFrame, design: pd.DataFrame, pairs: pd.DataFrame, times: int = 500, seed: int = 0
) -> pd.DataFrame:
    """One row per measure, the best first: ``measure``, ``pairs``, ``facts``, ``models``, ``concordance`` (share of pairs in the
    right order, ties half) with its interval (95 %, bootstrap over facts, groups, and models within groups; Wilson's if all
    pairs are ordered alike), and

    behind   concordance minus that of the best, on the pairs for which both have values, with ``behind low``, ``behind high``
    p        of that difference (two-sided, normal, with the bootstrap's standard error), Holm-adjusted over the measures

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
    draws, gaps = (
        _resampled(np.hstack([won, gap]), design, pairs, times, seed)
        .reshape(times, 2, -1)
        .swapaxes(0, 1)
    )
    behind, error = (
        stats.nanmean(gap, 0),
        np.sqrt(stats.nanmean((gaps - stats.nanmean(gaps, 0)) ** 2, 0)),
    )
    with np.errstate(invalid="ignore", divide="ignore"):
        p = np.where(
            np.arange(len(names)) == best, np.nan, 2 * scipy.stats.norm.sf(np.abs(behind) / error)
        )
    rows = {"measure": names, "pairs": found.sum(0), "concordance": share}
    rows |= {
        name: [_units(design, pairs[mask], name) for mask in found.T] for name in ("fact", "model")
    }
    rows |= dict(zip(SHARE[1:], _intervals(share, draws, rows["fact"]), strict=True))
    ends = stats.percentile_intervals(gaps)
    rows |= {"behind": behind, "behind low": ends[0], "behind high": ends[1], "p": stats.holm(p)}
    frame = pd.DataFrame(rows).rename(columns={"fact": "facts", "model": "models"})
    frame.loc[best, BEHIND] = np.nan
    order = {"ascending": False, "key": stats.levelled, "kind": "stable", "ignore_index": True}
    return frame[COLUMNS].sort_values("concordance", **order)


def _intervals(share: np.ndarray, draws: np.ndarray, facts: list[int]) -> np.ndarray:
    """[2, measures]: 95 % intervals of bootstrap replicates [times, measures]. If all pairs are ordered alike, all replicates
    are equal; then Wilson's interval, with the number of facts as n."""
    ends = stats.percentile_intervals(draws)
    for place in np.flatnonzero(np.isin(share, (0, 1)) & (np.array(facts) > 0)):
        ends[:, place] = stats.wilson(round(share[place] * facts[place]), facts[place])
    return ends


def change(
    before: pd.DataFrame,
    after: pd.DataFrame,
    design: pd.DataFrame,
    pairs: pd.DataFrame,
    times: int = 500,
    seed: int = 0,
) -> pd.DataFrame:
    """The effect of a change (of the paraphrases, of the precision) on each measure that has values after it: ``measure``,
    ``pairs``, ``before``, ``after`` (concordances on the same pairs), ``change`` with its interval."""
    tables = _common(before, after, design)
    sides = [ordered(table.to_numpy(), pairs) for table in tables]
    columns = ["measure", "pairs", "before", "after", "change", "change low", "change high"]
    return _paired(list(tables[0]), sides, design, pairs, times, seed).set_axis(columns, axis=1)


def change_of_means(
    before: pd.DataFrame, after: pd.DataFrame, design: pd.DataFrame, times: int = 500, seed: int = 0
) -> pd.DataFrame:
    """The effect of a change on the mean value of each measure that has values after it, over the rows of the design (a model and
    a fact) that have both values: ``measure``, ``n`` (rows), ``mean before``, ``mean after``, ``mean change`` with
    its interval."""
    tables, rows = _common(before, after, design), np.arange(len(design))
    alone = pd.DataFrame(
        {"higher": rows, "lower": rows}
    )  # each row as a pair with itself, for the same bootstrap
    columns = ["measure", "n", "mean before", "mean after"]
    columns += ["mean change", "mean change low", "mean change high"]
    sides = [table.to_numpy() for table in tables]
    return _paired(list(tables[0]), sides, design, alone, times, seed).set_axis(columns, axis=1)


def _common(before: pd.DataFrame, after: pd.DataFrame, design: pd.DataFrame) -> list[pd.DataFrame]:
    """``aligned`` tables of both sides, with the measures that both have."""
    tables = [aligned(frame, design) for frame in (before, after)]
    return [table[[name for name in tables[1] if name in tables[0]]] for table in tables]


def _paired(
    names: list[str], sides: list[np.ndarray], design, pairs, times: int, seed: int
) -> pd.DataFrame:
    """One row per measure: its name, number of rows of ``sides`` (two of [pairs, measures]) that have both values, means over
    these, difference of the means, and both ends of its interval."""
    gap = sides[1] - sides[0]
    draws = _resampled(gap, design, pairs, times, seed)
    means = [stats.nanmean(np.where(np.isnan(gap), np.nan, side), 0) for side in sides]
    ends = [
        np.where(np.abs(end) < 1e-12, 0.0, end) for end in stats.percentile_intervals(draws)
    ]  # 0 up to rounding is 0
    columns = [names, np.isfinite(gap).sum(0), *means, stats.nanmean(gap, 0), *ends]
    return pd.DataFrame(dict(enumerate(columns)))


def _units(design: pd.DataFrame, pairs: pd.DataFrame, column: str) -> int:
    """Number of facts (or models) that occur in the pairs."""
    return design[column].iloc[np.unique(pairs.to_numpy())].nunique()


def _resampled(
    won: np.ndarray, design: pd.DataFrame, pairs: pd.DataFrame, times: int, seed: int
) -> np.ndarray:
    """[times, columns]: bootstrap replicates of the mean of each column of ``won`` [pairs, columns], without NaN.

    The weight of a pair is the product of the numbers of times that its facts and its models were resampled.
    """
    fact, facts = pd.factorize(design["fact"])
    by_fact, by_model = _drawn(len(facts), times, seed), _model_weights(design, times, seed + 1)
    there, won = np.isfinite(won), np.nan_to_num(won)
    total, count = np.zeros((times, won.shape[1])), np.zeros((times, won.shape[1]))
    for start in range(0, len(pairs), CHUNK):
        part = slice(start, start + CHUNK)
        i, j = pairs["higher"].to_numpy()[part], pairs["lower"].to_numpy()[part]
        weight = by_fact[:, fact[i]] * np.where(fact[i] == fact[j], 1.0, by_fact[:, fact[j]])
        model = design["model"].to_numpy()
        weight *= by_model[:, i] * np.where(model[i] == model[j], 1.0, by_model[:, j])
        total += weight @ won[part]
        count += weight @ there[part]
    with np.errstate(invalid="ignore", divide="ignore"):
        return total / count


def _model_weights(design: pd.DataFrame, times: int, seed: int) -> np.ndarray:
    """[times, rows of the design]: how often the model of each row was resampled, its group first, then itself within it."""
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
    """Concordance when the values are shuffled within blocks: ``measure``, ``concordance``, ``shuffled`` (mean, expected .5),
    ``shuffled low``, ``shuffled high``, ``p`` (one-sided, (1 + replicates at least as high) / (1 + times)), ``pairs``.
    A measure without pairs has NaN throughout.

    within   columns of the design that name a block: "group" and "fact" for (a), "model" and "relation" for (b)
    """
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
    """Variants of the values: thresholded at the median of each model, rounded to ten levels of its ranks, and with ties broken
    at random. Only measures of more than ten levels in some model are thresholded and rounded, and only measures with ties have
    them broken. They are broken over all models together, so that unequal values keep their order also between models."""
    by = values.groupby(["measure", "model"])["value"]
    levels, rank = by.transform("nunique"), by.rank(pct=True)
    noise = np.random.default_rng(seed).random(len(values))
    fine = levels.groupby(values["measure"]).transform("max") > 10
    tied = (levels < by.transform("size")).groupby(values["measure"]).transform("any")
    exact = values.assign(value=stats.levelled(values["value"]), noise=noise).sort_values(
        ["value", "noise"]
    )
    order = exact.groupby("measure").cumcount()
    return {
        "cut at the median": values.assign(value=(rank > 0.5).astype(float))[fine],
        "rounded to ten levels": values.assign(value=np.ceil(rank * 10))[fine],
        "ties broken at random": values.assign(value=order.reindex(values.index).astype(float))[
            tied
        ],
    }


# Controls and ceilings


def combine(
    values: pd.DataFrame,
    design: pd.DataFrame,
    measures: list[str],
    name: str,
    taught: float = TAUGHT,
    folds: int = 5,
) -> pd.DataFrame:
    """Long values of one new measure: the log-odds that a fact was taught (rather than never taught) given some measures, by a
    logistic regression on their ranks within model and relation. It is fitted on other facts (cross-fitting: a fact is in the
    same fold for all models). With all measures it estimates how well a linear combination of them can order facts."""
    from sklearn.linear_model import LogisticRegression

    table = aligned(values[values["measure"].isin(measures)], design)
    block = design.groupby(["model", "relation"]).ngroup().to_numpy()
    ranks = table.reset_index(drop=True).groupby(block).rank(pct=True) - 0.5
    features, exposures = ranks.fillna(0.0).to_numpy(), design["exposures"].to_numpy()
    number, facts = pd.factorize(design["fact"])
    fold = np.random.default_rng(0).permutation(len(facts))[number] % folds
    trained, scores = (exposures >= taught) | (exposures == 0), np.full(len(design), np.nan)
    for left_out in range(folds):
        train, test = trained & (fold != left_out), fold == left_out
        if len(set(exposures[train] > 0)) == 2:
            fitted = LogisticRegression().fit(features[train], exposures[train] > 0)
            scores[test] = fitted.decision_function(features[test])
    scores[table.isna().all(axis=1).to_numpy()] = np.nan
    rows = design[["model", "fact"]].assign(measure=name, value=scores)
    return rows.dropna(subset="value").reset_index(drop=True)


def added(
    values: pd.DataFrame,
    design: pd.DataFrame,
    pairs: pd.DataFrame,
    control: str,
    taught: float = TAUGHT,
    seed: int = 0,
) -> pd.DataFrame:
    """The gain of each measure over a control: ``measure``, ``added`` (concordance of both together, see ``combine``, minus that
    of the control, on the same pairs), ``added low``, ``added high``."""
    alone = combine(values, design, [control], control, taught)
    rows = []
    for name in [name for name in dict.fromkeys(values["measure"]) if name != control]:
        both = combine(values, design, [control, name], control, taught)
        own = values[values["measure"] == name][["model", "fact"]]
        row = change(
            alone, both.merge(own, on=["model", "fact"]), design, pairs, times=200, seed=seed
        ).iloc[0]
        rows.append((name, row["change"], row["change low"], row["change high"]))
    return pd.DataFrame(rows, columns=["measure", "added", "added low", "added high"])
