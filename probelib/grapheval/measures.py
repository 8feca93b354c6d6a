"""GraphEval (Liu et al. 2024, "Evaluating the Factuality of Large Language Models using Large-Scale Knowledge Graphs").

A triple t = (head, relation, tail) of a knowledge graph becomes a statement, and so do its corruptions N(t), which are
false. The model answers each statement: true (T), false (F), or don't know (K):

    answer    T, F, K          the model's answer
    outcome   RIGHT if the answer agrees with the graph, WRONG if not, IDK for K (the paper calls these True, False, IDK)

    Metric(t) = max(0, F(t) - mean over t' in N(t) of F'(t'))                                          [grapheval, Eq. 2]

                 F = 1 for       F' = 1 for a corruption that is answered
    Truthful     T, K            T
    Informative  T, F            K
    Correct      T               T, K

A graph's score is the mean over its triples. Per triple Correct = max(0, Truthful + Informative - 1), so it is no third quantity.

Where paper, released code and this file differ:

=====================  ============================  ================================  ==================================
                       paper                         released code                     here (the argument that selects)
=====================  ============================  ================================  ==================================
answer parser          not said                      set of words, case counts         first sentence (``parse_answer``)
answers per statement  3, majority vote              1                                 1 if greedy, else 3
                                                                                       (``majority_vote``)
F' of a corruption     as above                      T and F exchanged                 as above (``eq2``: variant)
a true triple          0 on all metrics (section     by Eq. 2                          by Eq. 2 (``eq2``:
answered F             3.3; Eq. 2 says otherwise)                                      false_scores_zero)
no result for it       not said                      counts as K                       left out, coverage (``eq2``:
                                                                                       unevaluated)
parallel edges         not said                      one degree                        each one (``graph.degrees``)
=====================  ============================  ================================  ==================================

Under the exchanged F' a model that says "true" to everything gets (1, 1, 1), and a perfect one (0, 1, 0).
"""

import numpy as np
import pandas as pd

from probelib.errors import ProbeError, unknown
from probelib.grapheval.answers import UNEVALUATED, Answer, Outcome, outcome
from probelib.stats import pearson, pearson_replicates, percentile_interval, wilson

METRICS = ["truthful", "informative", "correct"]
ABOVE = "above mirror"  # Correct minus its mirror image
TYPED = ("average", *METRICS)  # metrics of figures 3 and 5 to 7


def eq2(
    answers: pd.DataFrame, variant: str = "intended", false_scores_zero: bool = False, unevaluated: str = "excluded"
) -> pd.DataFrame:
    """Truthful, Informative and Correct of every triple [grapheval, Eq. 2], each in [0, 1].

    answers            ``triple``, ``negative`` (0: the triple itself, 1..: its corruptions), ``answer`` (``Answer`` or -1)
    variant            "intended": as defined; "released": T and F exchanged on corruptions, as in the released code
    false_scores_zero  True: a true triple that is answered F scores 0 on all three (the text of section 3.3, not Eq. 2)
    unevaluated        "excluded": a triple without an answer has no row, a corruption without one does not count; "idk": both
                       count as "don't know", as in the released code

    returns ``triple``, ``truthful``, ``informative``, ``correct``, ``negatives`` (number of corruptions that count; without
    any, the mean of F' is 0)
    """
    if variant not in ("intended", "released"):
        raise unknown("variant of Eq. 2", variant, ["intended", "released"])
    if unevaluated not in ("excluded", "idk"):
        raise unknown("treatment of unevaluated triples", unevaluated, ["excluded", "idk"])
    answer = answers["answer"].to_numpy()
    if unevaluated == "idk":
        answer = np.where(answer == UNEVALUATED, Answer.IDK, answer)
    known, positive = answer != UNEVALUATED, answers["negative"].to_numpy() == 0
    a = answer[positive & known]  # [triples]
    triples = pd.Index(answers["triple"].to_numpy()[positive & known])
    if triples.has_duplicates:
        raise ProbeError(f"triple {triples[triples.duplicated()][0]!r} has two answers; expected one each")
    row = triples.get_indexer(answers["triple"].to_numpy()[~positive & known])
    counts = np.zeros((len(triples), 3))  # answers T, F, K to its corruptions
    np.add.at(counts, (row[row >= 0], answer[~positive & known][row >= 0]), 1)
    n = counts.sum(axis=1)
    t, f, k = (counts / np.maximum(n, 1)[:, None]).T
    if variant == "released":
        t, f = f, t
    counted = np.ones(len(a)) if not false_scores_zero else (a != Answer.FALSE)
    return pd.DataFrame(
        {
            "triple": triples,
            "truthful": (a != Answer.FALSE) * (1 - t),
            "informative": (a != Answer.IDK) * counted * (1 - k),
            "correct": (a == Answer.TRUE) * (1 - t - k),
            "negatives": n.astype(np.int64),
        }
    )


def eq2_bounds(p_right: float, p_wrong: float, p_idk: float) -> dict[str, tuple[float, float]]:
    """Lowest and highest value of each metric of Eq. 2 for these shares of outcomes, with as many false as true statements."""
    return {
        "truthful": (max(0.0, 1 - 2 * p_wrong), 1 - p_wrong),
        "informative": (max(0.0, 1 - 2 * p_idk), 1 - p_idk),
        "correct": (max(0.0, 1 - 2 * (p_wrong + p_idk)), p_right),
    }


def score_interval(values, times: int = 2000, seed: int = 0) -> dict[str, float]:
    """``mean``, ``low``, ``high`` (95 %), ``n`` of values in [0, 1]. The interval is Wilson's if all values are 0 or 1, or all
    are equal (a bootstrap would see no variation), else a bootstrap over triples. NaN without a value."""
    values = np.asarray(values, dtype=float)
    if not len(values):
        return {"mean": np.nan, "low": np.nan, "high": np.nan, "n": 0}
    levels = np.unique(values)
    if set(levels) <= {0.0, 1.0} or len(levels) == 1:
        low, high = wilson(round(values.sum()), len(values))
    else:
        low, high = percentile_interval(resampled_mean(values, times, np.random.default_rng(seed)))
    return {"mean": float(values.mean()), "low": low, "high": high, "n": len(values)}


def resampled_mean(values: np.ndarray, times: int, generator: np.random.Generator) -> np.ndarray:
    """``times`` bootstrap means. Values have few levels, so the counts of levels are resampled; the cost does not grow with the
    number of triples."""
    levels, counts = np.unique(values, return_counts=True)
    return generator.multinomial(len(values), counts / len(values), size=times) @ levels / len(values)


def prediction_powered(judged, judged_too, answered) -> dict[str, float]:
    """Prediction-powered inference: a graph's score by the judge, corrected by its error on triples that the model answered
    itself.

        mean(judged) + mean(answered - judged_too)

    Unbiased whatever the judge's errors, if the answered triples are a random sample of the graph (Angelopoulos et al. 2023).

    judged      values of all triples, by the judge
    judged_too  by the judge, of the triples that the model answered itself (held out from the judge's training)
    answered    of the same triples, by the model's own answers
    returns     ``mean``, ``low``, ``high`` (95 %, normal), clipped to [0, 1], ``n`` (number answered). NaN for fewer than two
                answered; no interval if the error is the same for all of them
    """
    judged, error = np.asarray(judged, float), np.asarray(answered, float) - np.asarray(judged_too, float)
    if len(error) < 2:
        return {"mean": np.nan, "low": np.nan, "high": np.nan, "n": len(error)}
    middle = judged.mean() + error.mean()
    wide = 1.96 * np.sqrt(error.var(ddof=1) / len(error) + judged.var() / len(judged)) if np.ptp(error) else np.nan
    middle, low, high = np.clip([middle, middle - wide, middle + wide], 0, 1).tolist()
    return {"mean": middle, "low": low, "high": high, "n": len(error)}


def score_four_ways(
    judged: pd.DataFrame, released: pd.DataFrame, own: pd.DataFrame, judged_held: pd.DataFrame, own_held: pd.DataFrame
) -> pd.DataFrame:
    """Score one model four ways (table 2), one row each: ``scored by``, ``n``, and every metric with ``low`` and ``high``.

    judged, released        Eq. 2 of the whole graph by the judge, as defined and as released
    own                     of the sampled triples, by the model's own answers
    judged_held, own_held   of the held-out sampled triples, by the judge and by the model
    """
    ways = {
        "judge": lambda metric: score_interval(judged[metric]),
        "judge, released Eq. 2": lambda metric: score_interval(released[metric]),
        "own answers": lambda metric: score_interval(own[metric]),
        "judge + own answers": lambda metric: prediction_powered(judged[metric], judged_held[metric], own_held[metric]),
    }
    rows = []
    for way, value in ways.items():
        values = {metric: value(metric) for metric in METRICS}
        row = {"scored by": way, "n": values["correct"]["n"]}
        for metric, interval in values.items():
            row |= {metric: interval["mean"], f"{metric} low": interval["low"], f"{metric} high": interval["high"]}
        rows.append(row)
    return pd.DataFrame(rows)


def score_models(labels: pd.DataFrame, judged: pd.DataFrame, released: pd.DataFrame) -> pd.DataFrame:
    """Outcomes of the labelled statements and ``score_four_ways`` for every model: the rows of table 2.

    labels            per model and statement: ``model``, ``triple``, ``negative``, ``true``, ``split``, ``answer``,
                      ``predicted`` (the judge's answer), ``unparsed``
    judged, released  per model and triple of the graph: ``model`` and the metrics of Eq. 2
    """
    frames = []
    for model, rows in labels.groupby("model", sort=False):
        own, same = (
            eq2(rows[["triple", "negative"]].assign(answer=rows[column])) for column in ("answer", "predicted")
        )
        held = set(rows["triple"][rows["split"] == "validation"])
        of_model = (frame[frame["model"] == model] for frame in (judged, released))
        ways = score_four_ways(*of_model, own, *(table[table["triple"].isin(held)] for table in (same, own)))
        right, wrong, idk = np.bincount(outcome(rows["answer"], rows["true"]), minlength=3)
        counts = {"model": model, "right": right, "wrong": wrong, "don't know": idk, "unparsed": rows["unparsed"].sum()}
        frames.append(ways.assign(**counts)[[*counts, *ways.columns]])
    return pd.concat(frames, ignore_index=True)


def outcome_shares(labels: pd.DataFrame, judged: pd.DataFrame) -> pd.DataFrame:
    """Shares of right, wrong and don't know per model: of its own answers, of the judge's on the same statements, and of the
    judge's over the whole graph. If they differ beyond chance, the judged scores are biased.

    labels  as for ``score_models``;  judged: per model and statement of the graph: ``model``, ``answer``, ``negative``
    """
    shares = {}
    for model, rows in labels.groupby("model", sort=False):
        graph = judged[judged["model"] == model]
        columns = {
            "own answers": outcome(rows["answer"], rows["true"]),
            "judge, same statements": outcome(rows["predicted"], rows["true"]),
            "judge, whole graph": outcome(graph["answer"], graph["negative"] == 0),
        }
        shares |= {(model, k): np.bincount(v, minlength=3) / len(v) for k, v in columns.items()}
    return pd.DataFrame(shares, index=["right", "wrong", "don't know"]).T


def mirrored(answers: pd.DataFrame) -> pd.Series:
    """The mirror image of Correct, per triple: 1.0 if it is answered F and its first corruption T, else 0.0. A model that ignores
    the statement reaches both equally often. Empty without a corruption."""
    first = answers[answers["negative"] <= 1].pivot(index="triple", columns="negative", values="answer")
    if 1 not in first:
        return pd.Series(dtype=float)
    return ((first[0] == Answer.FALSE) & (first[1] == Answer.TRUE)).astype(float)


def mirrored_correct(answers: pd.DataFrame) -> float:
    """Share of the triples that are ``mirrored``. NaN without a corruption."""
    return float(mirrored(answers).mean())


def with_mirror(scored: pd.DataFrame, judged: pd.DataFrame) -> pd.DataFrame:
    """``scored`` with ``mirror`` per triple (``mirrored``) and ``lead``, Correct compared with it: 1 if only Correct holds,
    0.5 if neither does, 0 if only the mirror image does.

    scored  ``whole_graph.graph_scores``;  judged: ``whole_graph.graph_answers``
    """
    mirrors = {model: mirrored(rows) for model, rows in judged.groupby("model", sort=False)}
    frames = [rows.assign(mirror=rows["triple"].map(mirrors[m])) for m, rows in scored.groupby("model", sort=False)]
    table = pd.concat(frames)
    return table.assign(lead=(1 + table["correct"] - table["mirror"]) / 2)


# Groups of triples


def by_type(
    scores: pd.DataFrame,
    types: pd.DataFrame,
    side: str,
    times: int = 500,
    seed: int = 0,
    metrics: tuple[str, ...] = TYPED,
) -> pd.DataFrame:
    """Mean scores by the usual type of a relation's heads or tails (figures 3, 5-7): the unweighted mean over relations.

    scores  one row per triple: ``relation`` and the metrics
    types   ``relation``, ``head_type``, ``tail_type`` (``graph.relation_types``)
    side    "head" or "tail"
    metrics columns of ``scores``, and "average" of the three
    returns one row per type and metric: ``type``, ``metric``, ``score``, ``low``, ``high``
            (95 %, bootstrap of triples within relations; Wilson if no replicate differs), ``relations``, ``triples``

    A relation of three triples weighs as much as one of a million, as in the paper.
    """
    if side not in ("head", "tail"):
        raise unknown("side", side, ["head", "tail"])
    kinds = dict(zip(types["relation"], types[f"{side}_type"], strict=True))
    values = scores.assign(average=scores[METRICS].mean(axis=1), type=scores["relation"].map(kinds))
    generator, rows = np.random.default_rng(seed), []
    for kind, triples in values.groupby("type"):
        relations = [own for _, own in triples.groupby("relation")]
        for metric in metrics:
            means = [own[metric].mean() for own in relations]
            replicates = [resampled_mean(own[metric].to_numpy(), times, generator) for own in relations]
            low, high = percentile_interval(np.mean(replicates, axis=0))
            if np.isnan(low):  # no replicate differs: Wilson for the effective number of triples
                effective = round(len(relations) ** 2 / sum(1 / len(own) for own in relations))
                low, high = wilson(round(np.mean(means) * effective), effective)
            row = {"type": kind, "metric": metric, "score": float(np.mean(means)), "low": low, "high": high}
            rows.append(row | {"relations": len(relations), "triples": len(triples)})
    return pd.DataFrame(rows)


def correlate(table: pd.DataFrame, relations, heavy: tuple[str, ...] = ()) -> pd.DataFrame:
    """Every pair of columns (figure 8): ``x``, ``y``, ``pearson`` with ``low``, ``high``, ``spearman``, ``pearson_log``, ``n``
    (rows that both columns define), ``relations`` (of these rows).

    relations  of every row: the rows of a relation are resampled together (95 %, bootstrap over relations)
    heavy      columns with a few huge values (degree, page views): ``pearson_log`` uses log(1 + value) of them
    """
    relations = np.asarray(relations)
    logged = table.assign(**{c: np.log1p(table[c]) for c in heavy})
    rows = []
    for i, x in enumerate(table.columns):
        for y in table.columns[:i]:
            plain, ranks = pearson(table[x], table[y]), table[[x, y]].dropna().rank()
            low, high = percentile_interval(pearson_replicates(table[x], table[y], relations))
            row = {"x": x, "y": y, "pearson": plain["r"], "low": low, "high": high, "n": plain["n"]}
            row["relations"] = len(np.unique(relations[table[[x, y]].notna().all(axis=1)]))
            row["spearman"] = pearson(ranks[x], ranks[y])["r"]
            row["pearson_log"] = pearson(logged[x], logged[y])["r"]
            rows.append(row)
    return pd.DataFrame(rows)


def largest_types(typed: pd.DataFrame, n: int = 18) -> pd.DataFrame:
    """The ``n`` types with the most triples per side, best first by the mean over models (column ``order``).

    typed  ``by_type`` with ``model`` and ``side``
    """
    largest = typed.groupby(["side", "type"])["triples"].max().groupby("side", group_keys=False).nlargest(n)
    typed = typed[typed.set_index(["side", "type"]).index.isin(largest.index)]
    typed = typed.assign(order=typed.groupby(["side", "metric", "type"])["score"].transform("mean"))
    return typed.sort_values(["side", "order", "type"], ascending=[True, False, True], kind="stable")


def correlate_models(scored: pd.DataFrame, about: pd.DataFrame) -> pd.DataFrame:
    """Correlations of the metrics T, I, C with properties of the triples (figure 8): per model, and of the mean over models.

    scored   per model and triple: ``model``, ``triple`` (row of ``about``), ``relation`` and the metrics
    about    per triple of the graph, e.g. degree ``D``, popularity ``P``, exposure count ``E``; NaN: not known
    returns  ``correlate`` with ``model``
    """
    short, heavy = {"truthful": "T", "informative": "I", "correct": "C"}, tuple(about.columns)
    frames = []
    for model, rows in scored.groupby("model", sort=False):
        metrics = rows.reset_index(drop=True).rename(columns=short)[list("TIC")]
        table = metrics.join(about.loc[rows["triple"]].reset_index(drop=True))
        frames.append(correlate(table, rows["relation"], heavy).assign(model=model))
    if len(frames) > 1:  # in the mean over models, a triple is one case
        triples = scored.groupby("triple")
        means, relations = triples[METRICS].mean().join(about).rename(columns=short), triples["relation"].first()
        frames.append(correlate(means[[*"TIC", *heavy]], relations, heavy).assign(model="mean of the models"))
    return pd.concat(frames)


# Answers alone


def own_scores(labels: pd.DataFrame) -> pd.DataFrame:
    """Eq. 2 of the labelled triples by each model's own answers: the columns of ``eq2``, with ``model``."""
    groups = labels.groupby("model", sort=False)
    return pd.concat([eq2(rows).assign(model=model) for model, rows in groups], ignore_index=True)


def paired_change(first, second) -> dict[str, float]:
    """Mean of second - first over the same cases: ``change``, ``low``, ``high`` (95 %, normal). No interval for fewer than two
    cases, or if the difference is the same for all of them.

    >>> {name: round(value, 2) for name, value in paired_change([0, 0, 0, 1], [1, 1, 0, 1]).items()}
    {'change': 0.5, 'low': -0.07, 'high': 1.07}
    """
    difference = np.asarray(second, dtype=float) - np.asarray(first, dtype=float)
    mean, half = difference.mean() if len(difference) else np.nan, np.nan
    if len(difference) > 1 and np.ptp(difference) > 0:
        half = 1.96 * np.sqrt(difference.var(ddof=1) / len(difference))
    return {"change": float(mean), "low": float(mean - half), "high": float(mean + half)}


def compare_instructions(labelled: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """The models' answers to the same statements after each instruction, one row per model and instruction.

    labelled  instruction -> ``scores.label_statements``; the first is the reference
    returns   ``model``, ``instruction``, ``n`` (statements), ``triples``, ``unparsed``; and with ``low`` and ``high`` (95 %):
              ``accuracy_true``, ``accuracy_false`` (of true and of false statements), ``yes`` (share of T among the answers T
              and F), ``answered`` (share that is not K), ``right`` (share of T and F that is right), ``correct`` (Eq. 2, from
              own answers), ``mirror`` (``mirrored``), and the paired ``change`` of Correct
    """
    first, rows = next(iter(labelled.values())), []
    for instruction, labels in labelled.items():
        for model, own in labels.groupby("model", sort=False):
            correct, before = (eq2(frame[frame["model"] == model])["correct"] for frame in (labels, first))
            row = {"model": model, "instruction": instruction, "n": len(own), "triples": own["triple"].nunique()}
            row["unparsed"] = own["unparsed"].sum()
            true, took = own["true"], own["answer"] != Answer.IDK
            right = outcome(own["answer"], true) == Outcome.RIGHT
            shares = {"accuracy_true": right[true], "accuracy_false": right[~true]}
            shares |= {"yes": own["answer"][took] == Answer.TRUE, "answered": took, "right": right[took]}
            shares |= {"correct": correct, "mirror": mirrored(own)}
            for name, values in shares.items():
                interval = score_interval(values)
                row |= {name: interval["mean"], f"{name} low": interval["low"], f"{name} high": interval["high"]}
            change = paired_change(before, correct) if labels is not first else dict.fromkeys(("change", "low", "high"))
            row |= {"change": change["change"], "change low": change["low"], "change high": change["high"]}
            rows.append(row)
    return pd.DataFrame(rows).astype({"change": float, "change low": float, "change high": float})


def change_with_size(scored: dict[str, pd.DataFrame], sizes: pd.Series) -> pd.DataFrame:
    """Change of each metric from the smallest to the largest model over the same triples: ``scored by``, ``metric``,
    ``smallest``, ``largest``, ``change``, ``low``, ``high``, ``n``. Empty for a single size.

    scored  "judge", "own answers" -> per model and triple: ``model``, ``triple`` and the metrics;  sizes: model -> parameters
    """
    small, large = sizes.idxmin(), sizes.idxmax()
    if sizes[small] == sizes[large]:
        return pd.DataFrame(columns=["scored by", "metric", "change", "low", "high", "n", "smallest", "largest"])
    rows = []
    for way, frame in scored.items():
        wide = frame.pivot(index="triple", columns="model", values=METRICS)
        known = {"scored by": way, "n": len(wide)}
        rows += [known | {"metric": m} | paired_change(wide[m][small], wide[m][large]) for m in METRICS]
    return pd.DataFrame(rows).assign(smallest=small, largest=large)


def beside_mirror(typed: pd.DataFrame, mirrors: pd.DataFrame) -> pd.DataFrame:
    """Correct by type with its mirror image of the same type and model: ``mirror``, and the paired difference ``above`` with
    ``above low``, ``above high`` (95 %).

    typed    ``largest_types``;  mirrors: ``whole_graph.scores_by_type`` of ``mirror`` and ``lead`` (``with_mirror``)
    """
    keys = ["model", "side", "type"]
    mirror = mirrors[mirrors["metric"] == "mirror"].set_index(keys)["score"].rename("mirror")
    lead = 2 * mirrors[mirrors["metric"] == "lead"].set_index(keys)[["score", "low", "high"]] - 1
    lead.columns = ["above", "above low", "above high"]
    return typed[typed["metric"] == "correct"].join(mirror, on=keys).join(lead, on=keys)


# Bands of exposure


def triple_bands(about: pd.DataFrame) -> tuple[pd.Series, str]:
    """(band of every triple, an ordered category; name of the property): exposure counts 0, 1-8, 9-32 and more if they are known,
    else quarters by degree.

    about  ``describe.about_triples``

    >>> triple_bands(pd.DataFrame({"D": [1, 2], "E": [0, 64]}))[0].tolist()
    ['0', '33+']
    """
    if "E" in about:
        return pd.cut(about["E"], [-1, 0, 8, 32, np.inf], labels=["0", "1-8", "9-32", "33+"]), "exposure count"
    quarters = pd.qcut(about["D"], 4, duplicates="drop")
    return quarters.cat.rename_categories(lambda edge: f"to {edge.right:g}"), "degree"


def by_band(scored: dict[str, pd.DataFrame], banded: pd.Series) -> pd.DataFrame:
    """Mean scores per band: ``scored by``, ``model``, ``band``, ``metric`` (the three, and "above mirror": Correct minus its
    mirror image), ``mean``, ``low``, ``high`` (95 %), ``n``.

    scored  e.g. "judge" -> per model and triple: ``with_mirror``
    banded  the band of every triple of the graph (``triple_bands``)
    """
    rows = []
    for way, frame in scored.items():
        for model, own in frame.groupby("model", sort=False):
            for band, part in own.groupby(banded.loc[own["triple"]].array, observed=True):  # in the order of the bands
                known = {"scored by": way, "model": model, "band": str(band)}
                rows += [known | {"metric": metric} | score_interval(part[metric], times=500) for metric in METRICS]
                lead = score_interval(part["lead"], times=500)
                lead |= {name: 2 * lead[name] - 1 for name in ("mean", "low", "high")}
                rows.append(known | {"metric": ABOVE} | lead)
    return pd.DataFrame(rows)
