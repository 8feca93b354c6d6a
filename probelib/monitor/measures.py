"""MONITOR's formulas: scores of the gold answers in, numbers out.

For every fact c with answer tokens l = 1..L:

    p   [L]      primary anchor: P(answer token | "<gold object>. <frame 1>")
    f   [R, L]   framing foreign anchors: P(answer token | frame j), without context
    n   [M, L]   interference foreign anchors: P(answer token | "<distractor m>. <frame 1>")

    PFD_c = mean over frames and tokens of |p - f|                                       [Eq. 1]
    IRD_c = mean over distractors and tokens of |p - n|                                  [Eq. 2]
    MONITOR = sum_c sqrt(a1 PFD_c^2 + a2 IRD_c^2 + a3 PFD_c IRD_c) / sum_c mean_l p_c    [Eq. 3]

Lower is more reliable. ``scores`` is always a frame of ``scores.score_answers``, ``prompts`` one of
``prompts.with_contexts`` with the prompt frame (``template``) and ``context`` of each prompt.
"""

from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd
import scipy.stats
from pandas import DataFrame

from probelib import stats
from probelib.errors import ProbeError, unknown

THIRDS = (1 / 3, 1 / 3, 1 / 3)
SURE = 0.8  # probability from which an anchor is "solid" (figure 9)
MONITOR = ["MONITOR", "MONITOR low", "MONITOR high"]


def pfd(p: np.ndarray, f: np.ndarray) -> float:
    """Prompt-framing degree [Eq. 1], in [0, 1]. p: [L], f: [R, L]; NaN without frames."""
    return float(np.abs(p[None] - f).mean()) if f.size else np.nan


def ird(p: np.ndarray, n: np.ndarray) -> float:
    """Interference-relevance degree [Eq. 2], in [0, 1]. p: [L], n: [M, L]; NaN for M = 0."""
    return float(np.abs(p[None] - n).mean()) if n.size else np.nan


def root(pfd, ird, alphas: tuple[float, float, float] = THIRDS):
    """sqrt(a1 PFD^2 + a2 IRD^2 + a3 PFD IRD), a term of the numerator of Eq. 3, in [0, 1]."""
    a1, a2, a3 = alphas
    return np.sqrt(a1 * pfd**2 + a2 * ird**2 + a3 * pfd * ird)


def anchors(scores: DataFrame, prompts: DataFrame) -> DataFrame:
    """The anchors, one row per fact: ``fact``, ``relation``, ``p`` [L], ``f`` [R, L], ``n`` [M, L];
    contexts with frame 1 only. Raise ProbeError for a fact without the positive context."""
    asked = prompts[["prompt", "template", "context"]]
    rows = scores.merge(asked, on="prompt", validate="many_to_one")
    relation = dict(zip(rows["fact"], rows["relation"], strict=True))
    rows = rows.query(GRID["released13"], engine="python")
    rows = rows.sort_values(["template", "context"], kind="stable")
    sets = {fact: {"p": [], "f": [], "n": []} for fact in relation}
    columns = (rows[name] for name in ("fact", "context", "token_logprobs"))
    for fact, context, tokens in zip(*columns, strict=True):
        sets[fact][{"positive": "p", "none": "f"}.get(context, "n")].append(tokens)
    if lost := [fact for fact, own in sets.items() if not own["p"]]:
        what = "no prompt with the positive context, hence no primary anchor"
        raise ProbeError(f"{len(lost)} facts have {what}, e.g. {lost[0]!r}")
    rows = []
    for fact, own in sets.items():
        length = len(own["p"][0])
        p, f, n = (np.exp(np.array(own[k], np.float64)).reshape(-1, length) for k in "pfn")
        rows.append((fact, relation[fact], p[0], f, n))
    return DataFrame(rows, columns=["fact", "relation", "p", "f", "n"])


def distances(anchors: DataFrame, alphas: tuple[float, float, float] = THIRDS) -> DataFrame:
    """Per fact: ``fact``, ``relation``, ``pfd``, ``ird``, ``root``, ``pbar`` (mean of p)."""
    frame = anchors[["fact", "relation"]].copy()
    frame["pfd"] = [pfd(p, f) for p, f in zip(anchors["p"], anchors["f"], strict=True)]
    frame["ird"] = [ird(p, n) for p, n in zip(anchors["p"], anchors["n"], strict=True)]
    frame["root"] = root(frame["pfd"], frame["ird"], alphas)
    frame["pbar"] = [float(p.mean()) for p in anchors["p"]]
    return frame


def measure_facts(scores: DataFrame, prompts: DataFrame) -> DataFrame:
    """One model's facts: ``distances``; ``anchored``, whether greedy decoding gives the gold object
    with the positive context; ``acc``, the share of the R x M runs that are right."""
    table, acc = distances(anchors(scores, prompts)), verdicts(scores, prompts).mean(axis=1)
    right = verdicts(scores, prompts, "positive").iloc[:, 0] == 1
    return table.assign(anchored=table["fact"].map(right), acc=table["fact"].map(acc))


def counted(distances: DataFrame) -> DataFrame:
    """The facts that enter MONITOR: anchored, and with both distances."""
    return distances[distances["anchored"].astype(bool) & distances["root"].notna()]


def monitor(distances: DataFrame) -> float:
    """MONITOR [Eq. 3] over the facts given: >= 0, no upper bound, lower is more reliable; NaN,
    never 0, for no fact, a fact without PFD or IRD, or primary anchors that are all 0."""
    total = distances["pbar"].sum()
    return float(distances["root"].sum(skipna=False) / total) if total > 0 else np.nan


# ---- several models


@dataclass(frozen=True)
class Measured:
    """MONITOR and accuracies of several models on the same facts, each computed once.

    facts       model -> ``measure_facts``: one row per fact
    anchors     model -> ``anchors``
    runs        model -> ``accuracy`` of each of the R x M runs
    relations   one row per model and relation: ``per_relation``; in percent, of the accuracy of
                its runs ``avg acc``, ``max``, ``min``, ``std`` (ddof 1), ``base acc`` (frame 1
                without context), and ``anchored acc`` (over the anchored facts alone, as the
                released code counts)
    models      one row per model: table 4
    replicates  ``resample``: of ``MONITOR``, ``avg acc``, ``std`` [times, models, relations]
    """

    facts: dict[str, DataFrame]
    anchors: dict[str, DataFrame]
    runs: dict[str, DataFrame]
    relations: DataFrame
    models: DataFrame
    replicates: dict[str, np.ndarray]

    def relation(self, relation: str) -> DataFrame:
        """The rows of ``relations`` of one relation, in the order of the models."""
        return self.relations[self.relations["relation"] == relation].reset_index(drop=True)


def measure(scores: dict[str, DataFrame], prompts: DataFrame, seed: int = 0) -> Measured:
    """Measure every model. ``scores``: model -> ``scores.score_answers``, on the same facts."""
    sets = {m: anchors(rows, prompts) for m, rows in scores.items()}
    grids = {m: verdicts(rows, prompts) for m, rows in scores.items()}
    facts = {m: measure_facts(rows, prompts) for m, rows in scores.items()}
    runs = {m: accuracy(grid, facts[m]) for m, grid in grids.items()}
    replicates = resample(facts, grids, seed=seed)
    relations, models = [], []
    for place, (model, rows) in enumerate(scores.items()):
        own = resample({model: facts[model]}, seed=seed)["MONITOR"][:, 0]  # [times, relations]
        base = accuracy(verdicts(rows, prompts, "base"), facts[model])[["relation", "accuracy"]]
        base = base.rename(columns={"accuracy": "base acc"})
        over_runs = runs[model].groupby("relation", sort=False)["accuracy"]
        over_runs = over_runs.agg(["mean", "max", "min", "std"]).rename(columns={"mean": "avg acc"})
        table = per_relation(facts[model], own).assign(model=model)
        anchored = facts[model][facts[model]["anchored"].astype(bool)].groupby("relation")["acc"]
        table["anchored acc"] = 100 * table["relation"].map(anchored.mean())
        relations.append(table.merge(over_runs, on="relation").merge(base, on="relation"))
        row = {"model": model, "parameters": rows.attrs.get("parameters")}
        row |= overall(facts[model], table, own) | {"avg acc": over_runs["avg acc"].mean()}
        ends = stats.percentile_interval(stats.nanmean(replicates["avg acc"][:, place], 1))
        row["avg acc low"], row["avg acc high"] = ends
        row |= {"max acc": over_runs["max"].mean(), "min acc": over_runs["min"].mean()}
        models.append(row | {"base acc": base["base acc"].mean()})
    relations = pd.concat(relations, ignore_index=True)
    return Measured(facts, sets, runs, relations, DataFrame(models), replicates)


def measure_common(measured: Measured, scores: dict, prompts, seed: int = 0) -> Measured:
    """``measure`` on the facts that every model anchors; ``measured`` itself if there is none."""
    common, among = anchored_by_all(measured.facts), {}
    for model, rows in scores.items():
        among[model] = rows[rows["fact"].isin(common)].reset_index(drop=True)
    return measure(among, prompts, seed) if len(common) else measured


def anchored_by_all(facts: dict[str, DataFrame]) -> pd.Index:
    """Ids of the facts that every model anchors. ``facts``: model -> ``measure_facts``."""
    tables = [table.set_index("fact")["anchored"].astype(bool) for table in facts.values()]
    every = pd.concat(tables, axis=1).all(axis=1)
    return every.index[every]


def per_relation(distances: DataFrame, replicates: np.ndarray | None = None) -> DataFrame:
    """One row per relation: ``MONITOR`` over the anchored facts (NaN if none is), with the 95 %
    interval of ``replicates`` [times, relations] (None: NaN); ``probs``, ``coverage``: mean pbar of
    the anchored facts, and their share; ``n``, ``no_distractor``: numbers of facts, and of those
    without a distractor, which have no IRD and are left out of MONITOR."""
    rows = []
    for r, (relation, facts) in enumerate(distances.groupby("relation", sort=False)):
        own, ends = counted(facts), (np.nan, np.nan)
        if replicates is not None:
            ends = stats.percentile_interval(replicates[:, r])
        row = (relation, monitor(own), *ends, own["pbar"].mean(), facts["anchored"].mean())
        rows.append((*row, len(facts), int(facts["ird"].isna().sum())))
    columns = ["relation", *MONITOR, "probs", "coverage", "n", "no_distractor"]
    return DataFrame(rows, columns=columns)


def overall(distances: DataFrame, table: DataFrame, replicates: np.ndarray) -> dict[str, float]:
    """A model's unweighted means of MONITOR over relations, with its 95 % interval (NaN if no
    relation has two facts that count), and of ``probs``; ``coverage`` of all facts; ``silent``
    relations, without an anchored fact, which are left out of the means, never taken as 0.
    ``table``, ``replicates``: its ``per_relation``; [times, relations] of ``resample``."""
    spread = counted(distances)["relation"].duplicated().any()
    ends = stats.percentile_interval(stats.nanmean(replicates, 1)) if spread else (np.nan, np.nan)
    means = table[["MONITOR", "probs"]].mean()
    row = dict(zip(MONITOR, (means["MONITOR"], *ends), strict=True)) | {"probs": means["probs"]}
    row["coverage"] = float(distances["anchored"].mean())
    return row | {"silent": int(table["MONITOR"].isna().sum())}


def resample(facts: dict, grids: dict | None = None, times: int = 1000, seed: int = 0) -> dict:
    """Bootstrap over facts: facts are resampled within each relation, the same ones for all models,
    so that differences are paired.

    facts    model -> ``measure_facts``: the same facts, in the same order, for every model
    grids    model -> ``verdicts`` of a set of runs; None: none
    returns  [times, models, relations] arrays: ``MONITOR`` (NaN if no fact of the relation is
             anchored; a sample without an anchored fact is drawn again, so that no relation leaves
             the mean), and with ``grids`` mean (``avg acc``) and ``std`` of the accuracy over runs
    """
    rng, first = np.random.default_rng(seed), next(iter(facts.values()))
    result = {name: [] for name in (["MONITOR", "avg acc", "std"] if grids else ["MONITOR"])}
    for relation, ids in first.groupby("relation", sort=False)["fact"]:
        even = np.full(len(ids), 1 / len(ids))
        weight = rng.multinomial(len(ids), even, size=times).astype(float)  # [times, facts]
        scores, runs = [], []
        for model, table in facts.items():
            own = table[table["relation"] == relation]
            if own["fact"].tolist() != ids.tolist():
                what = f"{model} has scores of other facts of {relation}"
                raise ProbeError(f"{what}: measure all models on the same facts")
            here = own.index.isin(counted(own).index)
            top, bottom = (weight @ np.where(here, own[name], 0.0) for name in ("root", "pbar"))
            score = np.divide(top, bottom, out=np.full(times, np.nan), where=bottom > 0)
            lost = ~(bottom > 0)
            if not lost.all():
                score[lost] = rng.permutation(np.resize(score[~lost], lost.sum()))
            scores.append(score)
            if grids:
                right = grids[model].reindex(ids).to_numpy(float)  # [facts, runs]
                hits, tried = weight @ np.nan_to_num(right), weight @ np.isfinite(right)
                share = np.divide(hits, tried, out=np.full_like(hits, np.nan), where=tried > 0)
                runs.append(100 * share)  # [times, runs]
        result["MONITOR"].append(scores)
        if grids:
            result["avg acc"].append([stats.nanmean(run, 1) for run in runs])
            result["std"].append([DataFrame(run).std(axis=1).to_numpy() for run in runs])
    shape = (len(first.groupby("relation")), len(facts), times)
    return {k: np.array(v, float).reshape(shape).transpose(2, 1, 0) for k, v in result.items()}


def margin(measured: Measured, first: str, second: str, relation=None, of="MONITOR") -> dict:
    """``of`` (MONITOR, std) of model ``second`` minus that of ``first``, in a relation or overall
    (None), paired, with its 95 % interval over n facts: ``value``, ``low``, ``high``, ``n``."""
    table, replicates = measured.models, stats.nanmean(measured.replicates[of], 2)
    if relation is not None:
        place = measured.relations["relation"].unique().tolist().index(relation)
        table, replicates = measured.relation(relation), measured.replicates[of][:, :, place]
    i, j = (table["model"].tolist().index(model) for model in (first, second))
    low, high = stats.percentile_interval(replicates[:, j] - replicates[:, i])
    facts = measured.facts[first]["relation"]
    n = len(facts) if relation is None else (facts == relation).sum()
    return {"value": table[of][j] - table[of][i], "low": low, "high": high, "n": n}


def instability(measured: Measured, relation: str) -> DataFrame:
    """One row per model, by base accuracy: MONITOR and the spread of accuracy over runs (table 6):
    ``std`` in points with its 95 % bootstrap interval over facts, corrected for its bias;
    ``relative``: std over avg acc, NaN if that is 0."""
    rows = measured.relation(relation)
    place = measured.relations["relation"].unique().tolist().index(relation)
    replicates = measured.replicates["std"][:, :, place].T  # [models, times]
    ends = map(stats.bias_corrected_interval, replicates, rows["std"])
    rows[["std low", "std high"]] = np.array(list(ends)).reshape(-1, 2)
    rows["relative"] = rows["std"] / rows["avg acc"].where(rows["avg acc"] > 0)
    rows["parameters"] = measured.models["parameters"].to_numpy()
    columns = ["relation", "n", "model", "parameters", *MONITOR, "base acc", "avg acc"]
    columns += ["std", "std low", "std high", "relative"]
    return rows[columns].sort_values("base acc")


# ---- accuracy of runs (section 4.3)


GRID = {  # contexts and frames of each set of runs, for ``DataFrame.query``
    "grid": "context.str.startswith('negative')",  # R x M: frames, distractors (section 4.3)
    "none+neg": "context != 'positive'",  # R (M + 1)
    "released13": "context == 'none' or template == 1",  # the anchors: what eval.py runs, 7 + 1 + 5
    "none": "context == 'none'",
    "base": "context == 'none' and template == 1",
    "positive": "context == 'positive' and template == 1",
    "negative": "context.str.startswith('negative') and template == 1",
}


def verdicts(scores: DataFrame, prompts: DataFrame, runs: str = "grid") -> DataFrame:
    """Whether each fact is answered in each run of ``GRID``: one row per fact, one column per
    (template, context); 1.0, 0.0, or NaN if the fact has no such prompt (fewer distractors)."""
    if runs not in GRID:
        raise unknown("set of runs", runs, GRID)
    rows = scores[["fact", "prompt"]].assign(correct=scores["correct"].astype(float))
    asked = prompts[["prompt", "template", "context"]]
    rows = rows.merge(asked, on="prompt", validate="many_to_one").query(GRID[runs], engine="python")
    table = rows.pivot(index="fact", columns=["template", "context"], values="correct")
    return table.reindex(scores["fact"].drop_duplicates().to_numpy()).sort_index(axis=1)


def accuracy(grid: DataFrame, facts: DataFrame) -> DataFrame:
    """Accuracy of every run, percent: ``relation``, ``template``, ``context``, ``accuracy``, ``n``.
    A run has the prompts of all facts of a relation with one frame and one context. ``grid``:
    ``verdicts`` of the facts that count; ``facts``: with ``fact`` and ``relation``."""
    relation = facts.drop_duplicates("fact").set_index("fact")["relation"].reindex(grid.index)
    rows = []
    for name, own in grid.groupby(relation, sort=False):
        for (template, context), n in own.notna().sum().items():
            if n:
                rows.append((name, template, context, 100 * own[template, context].mean(), int(n)))
    return DataFrame(rows, columns=["relation", "template", "context", "accuracy", "n"])


# ---- forms of the prompt (section 3.1)


def checking(scores: DataFrame, prompts: DataFrame) -> DataFrame:
    """Fact checking: one row per prompt of ``prompts.checks``: ``fact``, ``relation``,
    ``template``, ``kind`` ("FC-pos": a true statement; "FC-neg": a false one), ``correct``. The
    verdict is the more probable of "True" and "False"; if both are equal, it is wrong."""
    wide = scores.pivot(index="prompt", columns="candidate", values="logprob")
    says = np.sign(wide["True"] - wide["False"]).reindex(prompts["prompt"]).to_numpy()
    true = (prompts["context"] == "true").to_numpy()
    kind, right = np.where(true, "FC-pos", "FC-neg"), says == np.where(true, 1, -1)
    return prompts[["fact", "relation", "template"]].assign(kind=kind, correct=right)


def judge_forms(scores: dict[str, dict], prompts: dict[str, DataFrame]) -> DataFrame:
    """One row per model and prompt of ``scores.prompts_by_form`` without context: ``fact``,
    ``template``, ``kind`` ("QA", "WP", "FC-pos", "FC-neg"), ``correct`` (percent), ``model``."""
    plain, rows = prompts | {"QA": prompts["QA"][prompts["QA"]["context"] == "none"]}, []
    for model in scores["QA"]:
        for kind in [kind for kind in ("QA", "WP") if kind in scores]:
            judged = scores[kind][model].merge(plain[kind][["prompt", "template"]], on="prompt")
            rows.append(judged.assign(kind=kind, model=model))
        if "FC" in scores:
            rows.append(checking(scores["FC"][model], prompts["FC"]).assign(model=model))
    judged = pd.concat([own[["fact", "template", "kind", "correct", "model"]] for own in rows])
    return judged.assign(correct=100 * judged["correct"].astype(float))


def spread_of_paraphrases(judged: DataFrame) -> DataFrame:
    """How much accuracy differs between paraphrases of one form: ``model``, ``kind``, ``value``,
    ``low``, ``high``, in points, and ``n`` facts. The best and the worst paraphrase are chosen on
    every second fact and compared on the others, and vice versa: 0 on average if all are equally
    good. No interval at a ceiling or a floor, or for fewer than two facts or paraphrases."""
    rows = []
    for (model, kind), own in judged.groupby(["model", "kind"], sort=False):
        table = own.pivot_table("correct", "fact", "template", sort=False).to_numpy()
        halves, changes = (table[::2], table[1::2]), [np.array([np.nan])]  # [facts, paraphrases]
        for chosen, compared in (halves, halves[::-1]) if min(table.shape) > 1 else ():
            means = stats.nanmean(chosen, 0)
            changes.append(compared[:, means.argmax()] - compared[:, means.argmin()])
        change = np.concatenate(changes)
        ends = stats.mean_interval(change)
        rows.append((model, kind, stats.nanmean(change), *ends, len(table)))
    return DataFrame(rows, columns=["model", "kind", "value", "low", "high", "n"])


# ---- the facts, prompts and models of examples


def by_prompt(scores: DataFrame, prompts: DataFrame, fact: str) -> DataFrame:
    """The prompts of a fact's anchors, with their ``probability`` (mean over the gold answer's
    tokens) and ``distance`` from the primary anchor."""
    rows = prompts[prompts["fact"] == fact].query(GRID["released13"], engine="python")
    tokens = scores.set_index("prompt")["token_logprobs"][rows["prompt"]]
    found = [np.exp(logprobs.astype(float)) for logprobs in tokens]  # [L] each
    primary = found[rows["context"].tolist().index("positive")]
    rows = rows[["template", "context", "text"]].assign(probability=[p.mean() for p in found])
    return rows.assign(distance=[np.abs(primary - p).mean() for p in found])


def farthest_prompts(table: DataFrame) -> DataFrame:
    """The rows of ``by_prompt`` with the positive context, the farthest frame and distractor."""
    ranked = table.sort_values("distance", **stats.BEST_FIRST)
    kinds = ranked["context"].str.rstrip("0123456789")
    return pd.concat([ranked[kinds == kind].head(1) for kind in ("positive", "none", "negative")])


def clearest_fact(facts: DataFrame, scores: DataFrame, prompts: DataFrame) -> str:
    """The fact of figure 3: of those anchored, answered without context and with a primary anchor
    of ``SURE`` or more, the one with the largest root; else the anchored one with the largest."""
    yes, known = facts["anchored"].astype(bool), verdicts(scores, prompts, "base").iloc[:, 0] == 1
    clear = yes & facts["fact"].map(known) & (facts["pbar"] >= SURE)
    rows = facts.assign(unclear=~clear, other=~yes, move=-facts["root"])
    return rows.sort_values(["unclear", "other", "move"], kind="stable")["fact"].iloc[0]


def most_unstable(grids: dict[str, DataFrame]) -> tuple[str, str]:
    """The (model, fact) of figure 1: the base prompt is answered, a paraphrase and a negative
    context are not, and about half of all answers are right. ``grids``: ``verdicts`` by model."""
    ranks = {}
    for model, grid in grids.items():
        contexts = grid.columns.get_level_values("context").str.rstrip("0123456789")
        for fact, right in grid.iterrows():
            spoilt = sum((right[contexts == kind] == 0).any() for kind in ("none", "negative"))
            ranks[model, fact] = (right[1, "none"] == 1, spoilt, -abs(right.mean() - 0.5))
    return max(ranks, key=ranks.get)


def most_apart(scores: dict[str, DataFrame], prompts: DataFrame) -> tuple[str, list[str]]:
    """A base prompt and two models that answer it with the most different probabilities, the surer
    one first (figure 2). If no two models answer a prompt: of all models."""
    base = prompts.query(GRID["base"], engine="python")["prompt"]
    rows = pd.concat([s[s["prompt"].isin(base)].assign(model=m) for m, s in scores.items()])
    right = rows[rows["correct"].astype(bool)]
    rows = right if right["prompt"].duplicated().any() else rows
    probability = np.exp(rows["logprob"].astype(float)).groupby(rows["prompt"], sort=False)
    prompt = (probability.max() - probability.min()).idxmax()
    models = rows[rows["prompt"] == prompt].sort_values("logprob", **stats.BEST_FIRST)["model"]
    return prompt, list(dict.fromkeys(models.iloc[[0, -1]]))


def similar_pairs(table: DataFrame) -> list[tuple[str, str]]:
    """Pairs of models within 5 points of average accuracy and 0.15 of coverage, those that differ
    most in MONITOR first; in each pair the model with the lower MONITOR comes first."""
    rows = table.dropna(subset=["MONITOR", "avg acc"]).sort_values("MONITOR").to_dict("records")
    apart = lambda pair, column: abs(pair[1][column] - pair[0][column])
    like = lambda pair: apart(pair, "avg acc") <= 5 and apart(pair, "coverage") <= 0.15
    pairs = sorted(filter(like, combinations(rows, 2)), key=lambda pair: -apart(pair, "MONITOR"))
    return [(first["model"], second["model"]) for first, second in pairs]


def similar_models(measured: Measured, relation: str) -> list[str]:
    """The first of ``similar_pairs``; without any, the two models closest in accuracy; one model if
    no two have a MONITOR. The more reliable one comes first."""
    table = measured.relation(relation).sort_values("MONITOR")
    known = table.dropna(subset=["MONITOR", "avg acc"]).set_index("model")["avg acc"]
    gap = lambda pair: abs(known[pair[0]] - known[pair[1]])
    pairs = similar_pairs(table) or sorted(combinations(known.index, 2), key=gap)
    return list(pairs[0]) if pairs else table["model"].head(1).tolist()


def extremes(measured: Measured, relation: str) -> list[str]:
    """The models with the lowest and the highest MONITOR in a relation, among those that anchor
    half of its facts (among all, if fewer than two do); the first model if none has a MONITOR."""
    ranked = measured.relation(relation).dropna(subset=["MONITOR"]).sort_values("MONITOR")
    half = ranked[ranked["coverage"] >= 0.5]
    names = (half if len(half) > 1 else ranked)["model"]
    return list(dict.fromkeys(names.iloc[[0, -1]] if len(names) else list(measured.facts)[:1]))


def contrasting_fact(measured: Measured, models: list[str], relation: str, preferred=()) -> str:
    """The fact of a relation that all ``models`` anchor (of all facts, if there is none) and whose
    roots differ most between them; one of ``preferred``, if it is anchored by all."""
    tables = [measured.facts[model].set_index("fact") for model in models]
    tables = [table[table["relation"] == relation] for table in tables]
    roots = pd.concat([table["root"] for table in tables], axis=1)
    known = np.all([table["anchored"].astype(bool) for table in tables], axis=0)
    pool = roots[known] if known.any() else roots
    wanted = pool[pool.index.isin(list(preferred))]
    pool = (wanted if len(wanted) else pool).fillna(0.0)
    return (pool.max(axis=1) - pool.min(axis=1)).idxmax()


def anchor_probabilities(measured: Measured, models: list[str], relation: str) -> DataFrame:
    """The anchors of the anchored facts of a relation (figure 9): ``model``, ``fact``, ``anchor``
    (primary or foreign), ``probability``, ``common`` (whether all ``models`` anchor the fact)."""
    rows, common = [], set(anchored_by_all({model: measured.facts[model] for model in models}))
    for model in models:
        sets = measured.anchors[model]
        chosen = (sets["relation"] == relation) & measured.facts[model]["anchored"].to_numpy(bool)
        for fact, p, f, n in sets[chosen][["fact", "p", "f", "n"]].itertuples(index=False):
            rows += [(model, fact, "primary", p.mean(), fact in common)]
            rows += [(model, fact, "foreign", v, fact in common) for v in (*f.mean(1), *n.mean(1))]
    return DataFrame(rows, columns=["model", "fact", "anchor", "probability", "common"])


def fewer_frames(measured: Measured, relation: str, size: int = 4, seed: int = 0) -> tuple:
    """MONITOR in a relation with the first ``size`` frames and with all: two tables.

    models   ``all frames``, ``first frames``, ``other frames`` (the remaining ones); ``least`` and
             ``most`` of all choices; ``change``, first minus all; 95 % bootstrap over facts
    pairs    of models that differ significantly with all frames: the difference with the first
             frames (``value``, ``low``, ``high``), positive if the order is the same
    """
    pairs = zip(measured.anchors.values(), measured.facts.values(), strict=True)
    here = [a.assign(anchored=f["anchored"])[f["relation"] == relation] for a, f in pairs]
    total = max(map(len, here[0]["f"]))  # R
    size = min(size, total)
    scores = lambda frames: [monitor(counted(_with_frames(own, frames))) for own in here]
    both = [_with_frames(own, range(n)) for n in (size, total) for own in here]
    replicates = resample(dict(enumerate(both)), seed=seed)["MONITOR"][:, :, 0]
    replicates = np.split(replicates, 2, axis=1)  # first frames, all
    table = measured.relation(relation)[["relation", "n", "model", *MONITOR]]
    table.columns = table.columns.str.replace("MONITOR", "all frames")
    choices = list(map(scores, combinations(range(total), size)))
    table["first frames"] = choices[0]
    table["least"], table["most"] = np.min(choices, axis=0), np.max(choices, axis=0)
    table["other frames"] = scores(range(size, total))
    table["change"] = table["first frames"] - table["all frames"]
    table["parameters"] = measured.models["parameters"]
    for name, own in (("first frames", replicates[0]), ("change", replicates[0] - replicates[1])):
        table[f"{name} low"], table[f"{name} high"] = stats.percentile_intervals(own)
    pairs = {}
    for i, j in combinations(table.sort_values("all frames").index, 2):  # j has the higher MONITOR
        first, whole = (stats.percentile_interval(own[:, j] - own[:, i]) for own in replicates)
        if whole[0] > 0:
            value = table["first frames"][j] - table["first frames"][i]
            pairs[f"{table['model'][j]} - {table['model'][i]}"] = (value, *first)
    return table, DataFrame(pairs, ["value", "low", "high"]).T


def _with_frames(sets: DataFrame, frames) -> DataFrame:
    """``distances`` with some frames only, by number; a fact with fewer frames keeps its own."""
    f = [own[[j for j in frames if j < len(own)]] for own in sets["f"]]
    return distances(sets.assign(f=f)).assign(anchored=sets["anchored"])


def savings(rounds: DataFrame) -> DataFrame:
    """The cost of MONITOR and of the accuracy study (``scores.time_both``), one row per way and
    kind of cost: medians over the rounds, and ``saved`` (accuracy / MONITOR), the mean over rounds
    with its 95 % t interval (NaN if constant)."""
    costs, rows = rounds.columns.drop(["way", "round", "what"]), []
    for way, own in rounds.groupby("way"):
        for cost in costs:
            wide = own.pivot(index="round", columns="what", values=cost)
            ratio = (wide["accuracy"] / wide["MONITOR"]).to_numpy()
            error = scipy.stats.sem(ratio) if np.ptp(ratio) else np.nan  # constant: no interval
            ends = scipy.stats.t.interval(0.95, len(ratio) - 1, ratio.mean(), error)
            rows.append((way, cost, *wide[["MONITOR", "accuracy"]].median(), ratio.mean(), *ends))
    columns = ["way", "cost", "MONITOR", "accuracy", "saved", "saved low", "saved high"]
    return DataFrame(rows, columns=columns)
