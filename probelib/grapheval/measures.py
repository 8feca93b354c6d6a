"""The formulas of GraphEval (Liu et al. 2024): Eq. 2, groups of triples, quality of the judge.

A triple t = (head, relation, tail) becomes a statement, and so do its corruptions N(t), which are
false. The model answers: true (T), false (F), or don't know (K).

    Metric(t) = max(0, F(t) - mean over t' in N(t) of F'(t'))                     [grapheval, Eq. 2]

                 F = 1 for       F' = 1 for a corruption that is answered
    Truthful     T, K            T
    Informative  T, F            K
    Correct      T               T, K

A graph's score is the mean over its triples. Per triple Correct = max(0, Truthful + Informative -
1). Its mirror image (the triple called false, its corruption true) is as frequent as Correct for a
model that ignores the statement: only what exceeds it is knowledge.

=====================  =====================  ===================  ===============================
                       paper                  released code        here
=====================  =====================  ===================  ===============================
answer parser          not said               set of words, case   first sentence (``parse_answer``)
answers per statement  3, majority vote       1                    1: decoding is greedy
F' of a corruption     as above               T and F exchanged    both (``eq2``: variant)
true triple called F   0 (section 3.3)        by Eq. 2             by Eq. 2
parallel edges         not said               one degree           each one (``graph.degrees``)
=====================  =====================  ===================  ===============================
"""

from enum import IntEnum

import numpy as np
import pandas as pd

from probelib.errors import ProbeError, unknown
from probelib.stats import magnitude, pearson, pearson_replicates, percentile_interval, wilson


class Answer(IntEnum):
    """A model's answer to a statement."""

    TRUE = 0
    FALSE = 1
    IDK = 2


class Outcome(IntEnum):
    """The answer compared with the truth of the statement (in the paper: True, False, IDK)."""

    RIGHT = 0
    WRONG = 1
    IDK = 2


TIE = 3e-5  # of probabilities: five times the largest difference measured between processors
METRICS = ["truthful", "informative", "correct"]
TYPED = ("average", *METRICS)  # metrics of figures 3 and 5 to 7
SCORES = ("precision", "recall", "f1")
STRONG = 0.3  # |r| of a strong correlation
MEAN = "mean of the models"


def outcome(answer, true) -> np.ndarray:
    """Outcomes [n] of answers [n] to statements that are true or not [n]. Likewise the answers [n]
    that have given outcomes: right is to answer T on a true statement and F on a false one."""
    answer, true = np.asarray(answer), np.asarray(true, dtype=bool)
    outcomes = np.where((answer == Answer.TRUE) == true, Outcome.RIGHT, Outcome.WRONG)
    return np.where(answer == Answer.IDK, Outcome.IDK, outcomes).astype(np.int64)


def likeliest_answers(probabilities) -> np.ndarray:
    """The answer [...] of largest probability [..., 3]; IDK if the two largest differ by less than
    ``TIE``: the last bits of a probability depend on the processor, and decide nothing."""
    probabilities = np.asarray(probabilities)
    second, first = np.moveaxis(np.sort(probabilities, axis=-1)[..., 1:], -1, 0)
    return np.where(first - second < TIE, int(Answer.IDK), probabilities.argmax(axis=-1))


def eq2(answers: pd.DataFrame, variant: str = "intended") -> pd.DataFrame:
    """Truthful, Informative and Correct of every triple [grapheval, Eq. 2], each in [0, 1].

    answers  ``triple``, ``negative`` (0: the triple, 1..: its corruptions), ``answer`` (``Answer``)
    variant  "intended", or "released": T and F exchanged on corruptions

    Return ``triple``, the metrics, ``negatives`` (number of corruptions; without any, the mean of
    F' is 0). Raise ProbeError for a triple without one answer, or for what is no answer.
    """
    if variant not in ("intended", "released"):
        raise unknown("variant of Eq. 2", variant, ["intended", "released"])
    answer, positive = answers["answer"].to_numpy(), answers["negative"].to_numpy() == 0
    a, triples = answer[positive], pd.Index(answers["triple"].to_numpy()[positive])
    if not np.isin(answer, list(Answer)).all():
        raise ProbeError(f"answers {np.unique(answer)}: allowed are 0, 1, 2")
    if triples.has_duplicates:
        twice = triples[triples.duplicated()][0]
        raise ProbeError(f"triple {twice!r} has two answers; expected one each")
    row = triples.get_indexer(answers["triple"].to_numpy()[~positive])
    if (row < 0).any():
        raise ProbeError("a corruption is answered, and its triple is not")
    counts = np.zeros((len(triples), 3))  # answers T, F, K to its corruptions
    np.add.at(counts, (row, answer[~positive]), 1)
    n = counts.sum(axis=1)
    t, f, k = (counts / np.maximum(n, 1)[:, None]).T
    if variant == "released":
        t, f = f, t
    scores = {
        "triple": triples,
        "truthful": (a != Answer.FALSE) * (1 - t),
        "informative": (a != Answer.IDK) * (1 - k),
        "correct": (a == Answer.TRUE) * (1 - t - k),
    }
    return pd.DataFrame(scores | {"negatives": n.astype(np.int64)})


def score_triples(answers: pd.DataFrame, variant: str = "intended") -> pd.DataFrame:
    """``eq2`` of every ``model`` and triple, with ``relation``; ``mirror``, the mirror image of
    Correct: 1.0 if the triple is answered F and its first corruption T; ``lead`` = (1 + Correct -
    mirror) / 2. ``answers``: of ``eq2``, with ``model`` and ``relation``."""
    frames = []
    for model, own in answers.groupby("model", sort=False):
        first = own[own["negative"] == 0].set_index("triple")
        other = own[own["negative"] == 1].set_index("triple")["answer"].reindex(first.index)
        both = (first["answer"] == Answer.FALSE) & (other == Answer.TRUE)
        mirror = both.astype(float) if other.notna().any() else np.nan  # no corruption at all
        known = {"relation": first["relation"], "mirror": mirror}
        scored = eq2(own, variant).assign(model=model)
        frames.append(scored.join(pd.DataFrame(known), on="triple"))
    table = pd.concat(frames, ignore_index=True)
    return table.assign(lead=(1 + table["correct"] - table["mirror"]) / 2)


def score_interval(values, times: int = 2000) -> dict[str, float]:
    """``mean``, ``low``, ``high`` (95 %), ``n`` of values in [0, 1]; NaN without a value. Wilson's
    interval if all are 0 or 1, or all are equal, where a bootstrap would see no variation."""
    values = np.asarray(values, dtype=float)
    if not len(values):
        return dict.fromkeys(("mean", "low", "high"), np.nan) | {"n": 0}
    levels = np.unique(values)
    if set(levels) <= {0.0, 1.0} or len(levels) == 1:
        low, high = wilson(values.sum(), len(values))
    else:
        replicates = resampled_mean(values, times, np.random.default_rng(0))
        low, high = percentile_interval(replicates)
    return {"mean": float(values.mean()), "low": low, "high": high, "n": len(values)}


def resampled_mean(values: np.ndarray, times: int, generator: np.random.Generator) -> np.ndarray:
    """``times`` bootstrap means, by resampling the counts of the distinct values."""
    levels, counts = np.unique(values, return_counts=True)
    shares = counts / len(values)
    return generator.multinomial(len(values), shares, size=times) @ levels / len(values)


def paired_change(first, second) -> dict[str, float]:
    """Mean of second - first over the same cases: ``value``, ``low``, ``high`` (95 %, normal),
    ``n``. No interval for fewer than two cases or a constant difference: a floor or ceiling decides
    nothing."""
    difference = np.asarray(second, dtype=float) - np.asarray(first, dtype=float)
    mean, half, n = difference.mean() if len(difference) else np.nan, np.nan, len(difference)
    if n > 1 and np.ptp(difference) > 0:
        half = 1.96 * np.sqrt(difference.var(ddof=1) / n)
    return {"value": float(mean), "low": float(mean - half), "high": float(mean + half), "n": n}


def prediction_powered(judged, judged_too, answered) -> dict[str, float]:
    """Prediction-powered inference (Angelopoulos et al. 2023): mean(judged) + mean(answered -
    judged_too), unbiased for any errors of the judge.

    judged                values of all triples, by the judge
    judged_too, answered  of a sample (held out from the judge's training), by judge and model

    Return ``mean``, ``low``, ``high`` (95 %, normal), clipped to [0, 1], ``n`` (sample). NaN for
    fewer than two; no interval if the error is the same for all of them.
    """
    judged = np.asarray(judged, float)
    error = np.asarray(answered, float) - np.asarray(judged_too, float)
    if len(error) < 2:
        return {"mean": np.nan, "low": np.nan, "high": np.nan, "n": len(error)}
    middle = judged.mean() + error.mean()
    variance = error.var(ddof=1) / len(error) + judged.var() / len(judged)
    wide = 1.96 * np.sqrt(variance) if np.ptp(error) else np.nan
    middle, low, high = np.clip([middle, middle - wide, middle + wide], 0, 1).tolist()
    return {"mean": middle, "low": low, "high": high, "n": len(error)}


def score_models(labels: pd.DataFrame, judged: pd.DataFrame, released: pd.DataFrame):
    """Score every model four ways (table 2), one row each: counts of outcomes, ``scored by``,
    ``n``, and with intervals the metrics and ``above mirror``: Correct minus its mirror image,
    paired. ``labels``: of ``judge.train_judges``; ``judged``, ``released``: ``score_triples`` of
    the whole graph, Eq. 2 as defined and as released."""
    own, same = score_triples(labels), score_triples(labels.assign(answer=labels["predicted"]))
    rows = []
    for model, mine in labels.groupby("model", sort=False):
        frames = (judged, released, own, same)
        graph, flipped, answered, predicted = (f[f["model"] == model] for f in frames)
        held = answered["triple"].isin(mine["triple"][mine["split"] == "validation"]).to_numpy()
        corrected = {}
        for m in METRICS:
            corrected[m] = prediction_powered(graph[m], predicted[m][held], answered[m][held])
        interval = lambda frame: {metric: score_interval(frame[metric]) for metric in METRICS}
        lead = lambda frame: {"above mirror": paired_change(frame["mirror"], frame["correct"])}
        ways = {
            "judge": interval(graph) | lead(graph),
            "judge, released Eq. 2": interval(flipped),
            "own answers": interval(answered) | lead(answered),
            "judge, corrected": corrected,
        }
        counts = np.bincount(outcome(mine["answer"], mine["true"]), minlength=3)
        known = dict(zip(("right", "wrong", "don't know"), counts, strict=True))
        for way, found in ways.items():
            row = {"model": model} | known | {"unparsed": mine["unparsed"].sum(), "scored by": way}
            row["n"] = found["correct"]["n"]
            for name, estimate in found.items():
                columns = (name, f"{name} low", f"{name} high")
                row |= dict(zip(columns, estimate.values(), strict=False))  # without its n
            rows.append(row)
    return pd.DataFrame(rows)


def judge_errors(labels: pd.DataFrame) -> pd.DataFrame:
    """The judge's metrics minus those of the model's own answers on the held-out triples:
    estimates, one per model and metric. ``labels``: as for ``score_models``."""
    held = labels[labels["split"] == "validation"]
    own, judged = score_triples(held), score_triples(held.assign(answer=held["predicted"]))
    found = {}
    for model, rows in own.groupby("model", sort=False):
        for metric in METRICS:
            change = paired_change(rows[metric], judged.loc[rows.index, metric])
            found[f"{model}, {metric}"] = change
    return pd.DataFrame(found).T


def change_with_size(scored: pd.DataFrame, sizes: pd.Series, metric: str) -> pd.DataFrame:
    """Change of a metric from the smallest to the largest model (``sizes``: model -> parameters)
    over the same triples: one estimate; no row for a single size. ``scored``: ``score_triples``."""
    small, large = sizes.idxmin(), sizes.idxmax()
    wide = scored.pivot(index="triple", columns="model", values=metric)
    change = pd.DataFrame({metric: paired_change(wide[small], wide[large])}).T
    return change if sizes[small] < sizes[large] else change.head(0)


def by_type(scores: pd.DataFrame, types: pd.DataFrame, side: str, seed=0, metrics=TYPED):
    """Mean scores by the usual type of a relation's heads or tails (``side``; ``types``: of
    ``graph.relation_types``): the unweighted mean over relations, as in the paper. ``metrics``:
    columns of ``scores``, and "average" of the three.

    Per type and metric: ``type``, ``metric``, ``score`` with its interval (95 %, over triples
    within relations; Wilson if no replicate differs) and its ``error`` over two relations or more
    """
    kinds = dict(zip(types["relation"], types[f"{side}_type"], strict=True))
    average, kind_of = scores[METRICS].mean(axis=1), scores["relation"].map(kinds)
    generator, rows = np.random.default_rng(seed), []
    for kind, triples in scores.assign(average=average, type=kind_of).groupby("type"):
        for metric in metrics:
            values = [own.to_numpy() for _, own in triples.groupby("relation")[metric]]
            means = [own.mean() for own in values]
            score, k = np.mean(means), len(means)
            replicates = [resampled_mean(own, 500, generator) for own in values]
            low, high = percentile_interval(np.mean(replicates, axis=0))
            if np.isnan(low) and metric != "average":  # a share: Wilson for the effective triples
                effective = k**2 / sum(1 / len(own) for own in values)
                low, high = wilson(score * effective, effective)
            row = {"type": kind, "metric": metric, "score": float(score), "score low": low}
            row |= {"score high": high, "relations": k, "triples": len(triples)}
            rows.append(row | {"error": np.std(means, ddof=1) / k**0.5 if k > 1 else np.nan})
    return pd.DataFrame(rows)


def largest_types(typed: pd.DataFrame) -> pd.DataFrame:
    """The 18 types with the most triples per side, best first by the mean score over models, in
    one order for all metrics. ``typed``: ``by_type`` with ``model`` and ``side``."""
    sizes = typed.groupby(["side", "type"])["triples"].max()
    largest = sizes.groupby("side", group_keys=False).nlargest(18).index
    typed = typed[typed.set_index(["side", "type"]).index.isin(largest)]
    order = typed["score"].where(typed["metric"] == TYPED[0])
    order = order.groupby([typed["side"], typed["type"]]).transform("mean")
    by = ["side", "order", "type"]
    return typed.assign(order=-order).sort_values(by, kind="stable").drop(columns="order")


def beside_mirror(typed: pd.DataFrame, mirrors: pd.DataFrame) -> pd.DataFrame:
    """Correct of ``largest_types`` with its mirror (``mirrors``: ``by_type`` of ``mirror`` and
    ``lead``): ``mirror``, and the paired difference ``above`` with its interval."""
    keys, ends = ["model", "side", "type"], ["score", "score low", "score high"]
    by = {metric: rows.set_index(keys) for metric, rows in mirrors.groupby("metric")}
    lead = (2 * by["lead"][ends] - 1).set_axis(["above", "above low", "above high"], axis=1)
    correct = typed[typed["metric"] == "correct"]
    return correct.join(by["mirror"]["score"].rename("mirror"), on=keys).join(lead, on=keys)


def correlate(table: pd.DataFrame, relations) -> pd.DataFrame:
    """Every pair of columns (figure 8): ``x``, ``y``, ``pearson`` with its interval, ``n`` (rows
    that both define), ``relations`` (of these rows, which are resampled by relation)."""
    relations, rows = np.asarray(relations), []
    for i, x in enumerate(table.columns):
        for y in table.columns[:i]:
            found, both = pearson(table[x], table[y]), table[[x, y]].notna().all(axis=1)
            low, high = percentile_interval(pearson_replicates(table[x], table[y], relations))
            row = {"x": x, "y": y, "pearson": found["r"], "pearson low": low, "pearson high": high}
            rows.append(row | {"n": found["n"], "relations": len(np.unique(relations[both]))})
    return pd.DataFrame(rows)


def correlate_models(scored: pd.DataFrame, about: pd.DataFrame) -> pd.DataFrame:
    """Correlations of the metrics T, I, C with properties of the triples (figure 8), per ``model``
    and of the mean over models, in which a triple is one case. ``about``: per triple of the graph,
    e.g. degree ``D``, popularity ``P``, exposures ``E``; NaN: unknown."""
    short = dict(zip(METRICS, "TIC", strict=True))
    groups = dict(list(scored.groupby("model", sort=False)))
    if len(groups) > 1:
        triples = scored.groupby("triple")
        means = triples[METRICS].mean().join(triples["relation"].first()).reset_index()
        groups[MEAN] = means
    frames = []
    for model, rows in groups.items():
        table = rows[METRICS].rename(columns=short).reset_index(drop=True)
        table = table.join(about.loc[rows["triple"]].reset_index(drop=True))
        frames.append(correlate(table, rows["relation"]).assign(model=model))
    return pd.concat(frames)


def weak_links(linked: pd.DataFrame) -> pd.DataFrame:
    """|r| of every metric with degree and with popularity, per model, of ``correlate_models``.
    ``missed``: not testable where |r| with the exposure count is not above ``STRONG`` either."""
    linked = linked[linked["model"] != MEAN]
    names = {"pearson": "value", "pearson low": "low", "pearson high": "high"}
    rows = linked[linked["y"].isin(list("TIC")) & linked["x"].isin(list("DPE"))]
    rows = magnitude(rows.rename(columns=names)).set_index(["model", "y"])
    cause = rows.loc[rows["x"] == "E", "high"]
    blind = rows.index.isin(cause.index[~(cause > STRONG)])
    rows["missed"] = np.where(blind, "a strong link with exposures", "")
    rows = rows[rows["x"] != "E"].reset_index()
    return rows.set_index(rows["model"] + ", " + rows["y"] + " and " + rows["x"])


def judge_quality(truth, predicted) -> dict[str, float]:
    """Agreement of predicted classes [n] with true ones [n] (answers or outcomes): ``precision``,
    ``recall`` (accuracy), ``f1``, weighted by the classes' shares as in the paper, each with its 95
    % interval (bootstrap over statements; of recall Wilson's); ``n``."""
    truth, predicted = np.asarray(truth, int), np.asarray(predicted, int)
    if not len(truth):
        return dict.fromkeys(SCORES, np.nan) | {"n": 0}
    classes = int(max(truth.max(), predicted.max())) + 1
    counts = np.zeros((classes, classes))
    np.add.at(counts, (truth, predicted), 1)
    drawn = np.random.default_rng(0).multinomial(len(truth), counts.ravel() / len(truth), 500)
    row = dict(zip(SCORES, map(float, weighted_scores(counts)), strict=True)) | {"n": len(truth)}
    replicates = weighted_scores(drawn.reshape(-1, classes, classes))
    for score, values in zip(SCORES, replicates, strict=True):
        row[f"{score} low"], row[f"{score} high"] = percentile_interval(values)
    row["recall low"], row["recall high"] = wilson((truth == predicted).sum(), len(truth))
    return row


def weighted_scores(counts: np.ndarray) -> tuple[np.ndarray, ...]:
    """Weighted precision, recall and F1 of confusion counts [..., true class, predicted class]; a
    class that is never predicted has precision 0."""
    hit, true, said = np.einsum("...ii->...i", counts), counts.sum(-1), counts.sum(-2)
    ratio = lambda a, b: np.divide(a, b, out=np.zeros(np.broadcast(a, b).shape), where=b > 0)
    scores = ratio(hit, said), ratio(hit, true), ratio(2 * hit, true + said)  # [..., classes]
    weight = ratio(true, true.sum(-1, keepdims=True))
    return tuple((weight * score).sum(-1) for score in scores)


def majority(training, n: int) -> np.ndarray:
    """The constant baseline: the training set's most frequent class, n times."""
    return np.full(n, np.bincount(training, minlength=3).argmax())


def majority_given_truth(training, training_true, true) -> np.ndarray:
    """The baseline that knows only whether the statement is true: the most frequent class of the
    training set among the true (false) statements. The released judge must beat it."""
    training, training_true = np.asarray(training), np.asarray(training_true, dtype=bool)
    true = np.asarray(true, dtype=bool)
    best = [majority(training[training_true == kind], 1)[0] for kind in (False, True)]
    return np.asarray(best)[true.astype(int)]


def held_out_quality(predicted: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """``judge_quality`` of the outcomes of ``judge.predict_all_held_out``, mean over the seeds."""
    groups = predicted.groupby([*keys, "seed"], sort=False)
    rows = [judge_quality(own["truth"], own["predicted"]) for _, own in groups]
    index = pd.MultiIndex.from_tuples(list(groups.groups), names=[*keys, "seed"])
    return pd.DataFrame(rows, index).groupby(keys, sort=False).mean().reset_index()


def judge_differences(predicted: pd.DataFrame, substitute: pd.Series) -> dict[str, pd.DataFrame]:
    """Paired differences in accuracy on the held-out statements (figure 4, table 3), by case:

    "logits"      judge minus last-token logits, both on the substitute with the instruction;
                  not where these logits are the first word of the answer itself
    "encoder"     judge with the soft prompt minus judge with the instruction (``magnitude``)
    "substitute"  judge on another model's states minus judge on its own (``magnitude``)
    "majority"    judge on any model's states minus the majority given the truth
    """
    right = predicted.assign(right=predicted["truth"] == predicted["predicted"])
    found = {name: {} for name in ("logits", "encoder", "substitute", "majority")}
    keys = ["answers of", "by", "states of", "statement"]
    right = right.groupby(keys, sort=False)["right"].mean()
    for model, small in substitute.items():
        own = {key: r.to_numpy() for key, r in right[model].groupby(["by", "states of"])}
        judge = own["judge, instruction", small]
        found["encoder"][model] = paired_change(judge, own["judge, soft prompt", small])
        if ("logits, instruction", small) in own:
            found["logits"][model] = paired_change(own["logits, instruction", small], judge)
        for by, read in own:
            if by == "judge, instruction":
                case, judge = f"{model} from {read}", own[by, read]
                found["majority"][case] = paired_change(own["majority, truth known", ""], judge)
                if read != model:
                    found["substitute"][case] = paired_change(own[by, model], judge)
    columns = ["value", "low", "high", "n"]
    tables = {name: pd.DataFrame(rows, index=columns).T for name, rows in found.items()}
    return {n: magnitude(t) if n in ("encoder", "substitute") else t for n, t in tables.items()}
