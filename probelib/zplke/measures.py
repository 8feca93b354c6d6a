"""ZP-LKE's formulas: scores in, numbers out.

For a fact with subject x*, right object y*, candidates C and the input sigma [zplke, Eq. 1]:

    log P(y | sigma) = sum over the tokens of y of log P(token | sigma, tokens before)   [Eq. 2]
    prediction       = the y in C of the highest P(y | sigma)                            [Eq. 3]
    accuracy         = share of the facts whose prediction is y*; guessing gives 1/|C|   [Eq. 4]
    q(y)             = P(y | sigma) / sum over C of P;   confidence = max q
    Acc@K            = accuracy over the facts with confidence > K                       [Eq. 5]
    eta              = |known to both| / |known to the smaller model|                    (4.2.2)

Log-probabilities are in nats, without length normalisation.
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd

from probelib import stats
from probelib.errors import ProbeError, unknown

GAPS = ("above expected", "below ceiling")  # eta minus these
SUBSUMED = ["smaller", "larger", "draw", "eta", "eta low", "eta high", "expected", "reversed"]
SUBSUMED += ["relations", "ceiling", *(f"{g}{end}" for g in GAPS for end in ("", " low", " high"))]
TESTS = ("response, strict", "response, lenient", "multiple choice")
TIE = 1e-5  # nats: a smaller difference of two log-probabilities is rounding, so it is a tie


def choices(scores: pd.DataFrame, gold: Mapping[str, str], per_token=False, variant="kit"):
    """The multiple-choice test, one row per prompt [zplke, Eq. 3], with

    correct    whether the right object is above all others by more than ``TIE``; False if not valid
    tie        whether it shares the first place
    valid      no option is NaN, and not all probabilities are 0
    q_gold, confidence   normalised probability of the right and of the most probable option
    predicted, n_options   the candidate chosen; the number of options

    scores     ``prompt``, ``fact``, ``relation``, ``candidate``, ``logprob`` (nats), ``n_tokens``;
               one row per option. -inf is a probability of 0: a valid option, the lowest of all
    gold       fact -> its right candidate; it must be among the options of every prompt once
    per_token  compare the mean log-probability per token, not the sum
    variant    "released": probabilities instead of logarithms, which underflow to 0 silently
    """
    if variant not in ("kit", "released"):
        raise unknown("variant", variant, ["kit", "released"])
    prompt, names = pd.factorize(scores["prompt"])
    order = np.argsort(prompt, kind="stable")
    scores, prompt = scores.iloc[order], prompt[order]
    start = np.searchsorted(prompt, np.arange(len(names)))
    value = scores["logprob"].to_numpy(np.float64)
    value = value / (scores["n_tokens"].to_numpy() if per_token else 1)
    right = _right_options(scores, gold, start, names)
    if variant == "released":
        with np.errstate(divide="ignore"):
            value = np.log(np.exp(value))  # as a float64 probability: 0 below exp(-745)
    top = np.maximum.reduceat(value, start)  # [prompts]; NaN wins
    valid, right_value = np.isfinite(top), value[right]
    with np.errstate(invalid="ignore"):
        log_total = top + np.log(np.add.reduceat(np.exp(value - top[prompt]), start))
        best = value >= top[prompt] - TIE
        leads = valid & (right_value >= top - TIE)
        q_gold, confidence = np.exp(right_value - log_total), np.exp(top - log_total)
    first = np.minimum.reduceat(np.where(best, np.arange(len(value)), len(value)), start)
    first = np.where(valid, first, start)
    several = np.add.reduceat(best.astype(int), start) > 1
    predicted, sizes = scores["candidate"].to_numpy()[first], np.diff(start, append=len(value))
    found = {"correct": leads & ~several, "tie": leads & several, "valid": valid}
    found |= {"q_gold": q_gold, "confidence": confidence, "predicted": predicted}
    rows = scores.iloc[start][["fact", "relation", "prompt"]].reset_index(drop=True)
    return rows.assign(**found, n_options=sizes)


def _right_options(scores: pd.DataFrame, gold: Mapping[str, str], start, names) -> np.ndarray:
    """Whether each option is the right one. Raise ProbeError unless every prompt has it once."""
    right = scores["candidate"].to_numpy() == scores["fact"].map(gold).to_numpy()
    there = np.add.reduceat(right.astype(int), start)
    if (there != 1).any():
        bad = int(np.flatnonzero(there != 1)[0])
        said = f"the right object occurs {there[bad]} times among the options; it must occur once"
        raise ProbeError(f"{names[bad]}: {said} ({int((there != 1).sum())} such prompts)")
    return right


def pmi(scores: pd.DataFrame, prompts: pd.DataFrame) -> pd.DataFrame:
    """The scores with ``logprob`` minus the log of the candidate's prior: its mean probability
    after the other subjects of the relation, in the same draw of examples (``seed`` of its prompt).
    One that is offered after a single subject gets the mean prior of its relation."""
    seed = scores["prompt"].map(prompts.set_index("prompt")["seed"])
    p = np.exp(scores["logprob"].astype(np.float64))
    groups = p.groupby([scores["relation"], seed, scores["candidate"]])
    others = groups.transform("size") - 1
    prior = ((groups.transform("sum") - p) / others.where(others > 0)).clip(lower=1e-300)
    prior = prior.fillna(prior.groupby([scores["relation"], seed]).transform("mean"))
    return scores.assign(logprob=scores["logprob"] - np.log(prior))


def chance(choices: pd.DataFrame) -> float:
    """Expected accuracy of guessing: the mean of 1 / options."""
    return float((1 / choices["n_options"]).mean())


def measure(scores: Iterable[pd.DataFrame], inputs: pd.DataFrame, gold: Mapping[str, str], **rules):
    """The multiple-choice test of every model: ``model``, ``choices``, ``per token`` and ``pmi``
    (whether the right object wins under two other rules of choice), ``shots`` (number of examples),
    and columns of the inputs. ``scores``: one frame per model (or several of one model, for other
    inputs), read one by one; ``rules``: arguments of ``choices``."""
    shots = inputs["context"].str.extract(r"^(\d+) examples", expand=False).fillna(0).astype(int)
    about, frames = inputs.drop(columns=["fact", "relation", "text"]).assign(shots=shots), []
    for rows in scores:
        chosen = choices(rows, gold, **rules)
        chosen["per token"] = choices(rows, gold, per_token=True)["correct"]
        chosen["pmi"] = choices(pmi(rows, inputs), gold)["correct"]
        frames.append(chosen.merge(about, on="prompt").assign(model=rows["model"].iloc[0]))
    return pd.concat(frames, ignore_index=True)


def bounds(name: str, value: float, ends: tuple[float, float]) -> dict[str, float]:
    """The columns of a number and its interval: ``name``, ``name low``, ``name high``."""
    return {name: value, f"{name} low": ends[0], f"{name} high": ends[1]}


def by_model(values: pd.Series, models: Iterable[str]) -> pd.DataFrame:
    """Mean of values [model, unit] per model with its 95 % bootstrap interval over units."""
    groups = {model: values.loc[model].to_numpy(float) for model in models}
    rows = {m: (own.mean(), *stats.mean_interval(own), len(own)) for m, own in groups.items()}
    return pd.DataFrame(rows, index=["value", "low", "high", "n"]).T


def change_of_share(before, after) -> dict[str, float]:
    """Change of the share of right answers between two inputs on the same facts: ``value`` with
    ``low`` and ``high`` (95 %, adjusted Wald of Agresti and Min 2005), ``n``. Half a fact is added
    to each of the four cells: a ceiling or a floor, where no answer changes, is undecided."""
    n, lost, gained = map(stats.mcnemar(before, after).get, ("n", "lost", "gained"))
    middle, changed = (gained - lost) / (n + 2), (gained + lost + 1) / (n + 2)
    half = 1.959964 * float(np.sqrt((changed - middle**2) / (n + 2)))
    return {"value": (gained - lost) / n, "low": middle - half, "high": middle + half, "n": n}


def answers_of_inputs(inputs: pd.DataFrame, generated: pd.DataFrame, labels: Mapping[str, str]):
    """Table 1's ``inputs`` with ``estimator`` (prompted, zero-prompt), ``output`` and ``right``
    (the strict response test). ``labels``: fact -> label of its right object."""
    output = inputs["prompt"].map(generated.set_index("prompt")["text"])
    right = [response(text, labels[f]) for text, f in zip(output, inputs["fact"], strict=True)]
    estimator = np.where(inputs["role"] == "zp", "zero-prompt", "prompted")
    return inputs.assign(estimator=estimator, output=output, right=right)


def right_by_input(answers: pd.DataFrame) -> pd.DataFrame:
    """Per input of table 1 over all facts (``answers_of_inputs``): ``estimator``, ``context``,
    ``right`` (count), its ``share`` (Wilson), and against the longest list of correct examples of
    the same estimator: the paired ``change`` of the share (``change_of_share``), and ``lost``, the
    share of the answers right there that are wrong here (Wilson)."""
    keys = ["estimator", "context"]
    wide = answers.pivot(index="fact", columns=keys, values="right").astype(bool)
    rows = []
    for estimator, context in answers[keys].drop_duplicates().itertuples(index=False, name=None):
        longest = max(name for name in wide[estimator] if name.endswith(" correct"))  # 4, not 1
        full, own = wide[estimator, longest], wide[estimator, context]
        n, lost, change = full.sum(), (full & ~own).sum(), change_of_share(full, own)
        row = {"estimator": estimator, "context": context, "right": own.sum()}
        row |= bounds("share", own.mean(), stats.wilson(own.sum(), len(own)))
        if context != longest:
            row |= bounds("change", change["value"], (change["low"], change["high"]))
            row |= bounds("lost", lost / n if n else np.nan, stats.wilson(lost, n))
        rows.append(row)
    return pd.DataFrame(rows)


def n95(accuracy: pd.Series) -> float:
    """Smallest number of examples that reaches 95 % of the accuracy with the most examples [zplke,
    Fig. 3]; NaN if that accuracy is 0. ``accuracy``: mean over draws, by the number of examples."""
    curve = accuracy.sort_index()
    last = curve.iloc[-1]
    return float(curve.index[curve >= 0.95 * last - 1e-12][0]) if last > 0 else np.nan


def by_position(
    scores: Iterable[pd.DataFrame], prompts: pd.DataFrame, examples: Mapping[str, pd.DataFrame]
) -> pd.DataFrame:
    """The ``probability`` of every object of a sequence (figure 4). Best model first, by its mean
    in the correct sequence.

    scores     per model, of each example's object after each prompt of ``scores.sequence``
    examples   context -> its examples (``scores.replaced``)
    role       "replaced", "after" (directly after a replaced one, and correct) or "rest"
    known      whether the pair has a mean probability of 0.5 or more in the correct sequences of
               the *other* draws (in its own it would regress to the mean); False without any"""
    kinds = pd.concat([rows.assign(context=context) for context, rows in examples.items()])
    kinds = kinds.sort_values(["context", "seed", "position"])
    before = kinds.groupby(["context", "seed"])["kind"].shift(fill_value="correct")
    roles = [kinds["kind"] != "correct", before != "correct"]
    kinds["role"] = np.select(roles, ["replaced", "after"], "rest")
    columns, found = ["context", "seed", "position"], {}
    for rows in scores:
        frame = rows.merge(prompts[["prompt", "context", "seed"]], on="prompt", validate="1:1")
        frame["position"] = frame["prompt"].str.rsplit("|", n=1).str[1].astype(int)
        frame = frame.merge(kinds[[*columns, "role"]], on=columns, validate="1:1")
        frame["probability"] = np.exp(frame["logprob"])
        correct = frame[frame["context"] == "correct"]
        by_fact = correct.groupby("fact")["probability"]
        others, rest = by_fact.transform("size") - 1, by_fact.transform("sum")
        elsewhere = (rest - correct["probability"]) / others.where(others > 0)
        marks = correct[["seed", "position"]].assign(known=elsewhere >= 0.5)
        frame = frame.merge(marks, "left", ["seed", "position"], validate="m:1")
        kept = [*columns, "fact", "probability", "role", "model", "known"]
        found[correct["probability"].mean(), -len(found)] = frame[kept]
    return pd.concat([found[level] for level in sorted(found, reverse=True)], ignore_index=True)


def effects(positions: pd.DataFrame) -> pd.DataFrame:
    """How replaced examples change the other pairs of one model (``by_position``): ``pairs``,
    ``effect``, ``n``, ``before`` and ``after`` (mean probabilities), ``change`` (95 % bootstrap
    over pairs; NaN for fewer than 20).

    Counted are known pairs from the first replaced one on: all, and those directly after a replaced
    one. Effects: "unknown" and "incorrect" (against the untouched sequence), and "incorrect minus
    unknown" (the same positions). A pair counts once, with its mean over both layouts."""
    key = ["seed", "position"]
    untouched = positions[positions["context"] == "correct"][[*key, "probability"]]
    pairs = positions[positions["context"] != "correct"]
    pairs = pairs.merge(untouched, on=key, suffixes=("", "_before"))
    at = pairs["position"].where(pairs["role"] == "replaced")
    first = at.groupby([pairs["context"], pairs["seed"]]).transform("min")
    pairs = pairs[pairs["known"] & (pairs["role"] != "replaced") & (pairs["position"] >= first)]
    pairs = pairs.assign(kind=pairs["context"].str.split(",").str[0])
    rows = []
    after = pairs[pairs["role"] == "after"]
    parts = {"all known pairs": pairs, "directly after a replaced pair": after}
    for which, part in parts.items():
        own = part.groupby(["kind", *key])
        wide = own[["probability_before", "probability"]].mean()
        at = wide.index.get_level_values("kind")
        kinds = {kind: wide[at == kind].droplevel(0) for kind in ("unknown", "incorrect")}
        unknown_p = kinds["unknown"]["probability"].rename("probability_before")
        both = kinds["incorrect"][["probability"]].join(unknown_p, how="inner")
        for effect, part in (kinds | {"incorrect minus unknown": both}).items():
            before, after, n = part["probability_before"], part["probability"], len(part)
            ends = stats.mean_interval(after - before) if n >= 20 else (np.nan, np.nan)
            row = {"pairs": which, "effect": effect, "n": n}
            row |= {"before": before.mean(), "after": after.mean()}
            rows.append(row | bounds("change", (after - before).mean(), ends))
    return pd.DataFrame(rows)


def accuracy_at(choices: pd.DataFrame, thresholds: Iterable[float]) -> pd.DataFrame:
    """Acc@K [zplke, Eq. 5] for thresholds of the confidence: ``K``, ``accuracy``, ``low``,
    ``high``, ``kept`` (facts with a confidence above K), ``share`` of all prompts. NaN if no fact
    is kept. The interval is Wilson's over facts: several draws for one fact count once."""
    rows = []
    for threshold in thresholds:
        some = choices[choices["confidence"] > threshold]
        accuracy, kept = some["correct"].mean(), some["fact"].nunique()
        low, high = stats.wilson(accuracy * kept, kept)
        rows.append((threshold, accuracy, low, high, kept, len(some) / len(choices)))
    return pd.DataFrame(rows, columns=["K", "accuracy", "low", "high", "kept", "share"])


def normalized(text: str) -> str:
    """Compatibility forms and case folded, without , . : and without doubled blanks."""
    return " ".join(re.sub(r"[,.:]", "", unicodedata.normalize("NFKC", text)).casefold().split())


def response(text: str, gold: str, mode: str = "strict") -> bool:
    """The response test: whether generated text gives the right object [zplke, Sec. 4.1]. ``mode``
    "strict": the text begins with the object, up to the end of a word; "lenient": it contains the
    object anywhere, also in later pairs of a list."""
    said, wanted = normalized(text), normalized(gold)
    if mode == "lenient":
        return bool(wanted) and wanted in said
    if mode != "strict":
        raise unknown("mode", mode, ["strict", "lenient"])
    return bool(wanted) and said.startswith(wanted) and not said[len(wanted) :][:1].isalnum()


def measure_responses(generated: Iterable[pd.DataFrame], inputs: pd.DataFrame, labels: Mapping):
    """The response test of every model: the generated rows with ``strict`` and ``lenient``
    (``response``), ``method``, ``template`` and ``seed``. ``labels``: fact -> its right label."""
    rows = pd.concat(generated, ignore_index=True)
    texts = list(zip(rows["text"], rows["fact"].map(labels), strict=True))
    for mode in ("strict", "lenient"):
        rows[mode] = [response(*pair, mode) for pair in texts]
    return rows.merge(inputs[["prompt", "method", "template", "seed"]], on="prompt")


def accuracy_by_method(measured: pd.DataFrame, responses: pd.DataFrame) -> pd.DataFrame:
    """Accuracy by model, relation, method and ``test`` (of ``TESTS``): the mean over prompts and
    draws. ``.attrs["models"]``: the models in order."""
    keys, frames = ["model", "relation", "method"], []
    columns = [(responses, "strict"), (responses, "lenient"), (measured, "correct")]
    for test, (rows, column) in zip(TESTS, columns, strict=True):
        each = rows.groupby([*keys, "template", "seed"])[column].mean().groupby(keys).mean()
        frames.append(each.rename("accuracy").reset_index().assign(test=test))
    cells = pd.concat(frames)
    cells.attrs["models"] = measured["model"].unique().tolist()
    return cells


def relations_ahead(cells: pd.DataFrame, other: str) -> pd.DataFrame:
    """Share of the relations in which ZP-LKE is better than another method, of those that differ,
    by model: ``value``, ``low``, ``high`` (Wilson), ``n``. Ties count for neither."""
    wide = cells.pivot(index="relation", columns=["method", "model"], values="accuracy")
    rows = {}
    for model in cells["model"].unique():
        gain = stats.levelled((wide["ZP-LKE", model] - wide[other, model]).dropna())
        ahead, n = int((gain > 0).sum()), int((gain != 0).sum())
        rows[model] = (ahead / n if n else np.nan, *stats.wilson(ahead, n), n)
    return pd.DataFrame.from_dict(rows, "index", columns=["value", "low", "high", "n"])


def by_separator(measured: pd.DataFrame) -> pd.DataFrame:
    """Figure 6: ``size`` (facts), ``accuracy`` (Wilson interval) by model and separator, and the
    paired ``change`` against the blank on the same facts (``change_of_share``)."""
    blank = measured[measured["between"] == "a blank"].set_index(["model", "fact"])["correct"]
    rows = []
    for (model, between), own in measured.groupby(["model", "between"], sort=False):
        right, n = own["correct"].sum(), len(own)
        row = {"model": model, "between": between, "size": n}
        row |= bounds("accuracy", right / n, stats.wilson(right, n))
        if between != "a blank":
            test = change_of_share(blank.loc[model].loc[own["fact"]], own["correct"])
            row |= bounds("change", test["value"], (test["low"], test["high"]))
        rows.append(row)
    return pd.DataFrame(rows)


def accuracies(measured: pd.DataFrame) -> pd.DataFrame:
    """Accuracy of every model and relation over facts and draws of examples [zplke, Eq. 4], with
    its Wilson interval by facts; ``n`` (facts), ``between`` (std over draws; NaN for one)."""
    rows = []
    for (model, relation), group in measured.groupby(["model", "relation"], sort=False):
        draws, n = group.groupby("seed")["correct"].mean(), group["fact"].nunique()
        ends = stats.wilson(draws.mean() * n, n)
        row = {"model": model, "relation": relation} | bounds("accuracy", draws.mean(), ends)
        rows.append(row | {"n": n, "between": draws.std()})
    return pd.DataFrame(rows)


def accuracy_matrix(accuracies: pd.DataFrame, models: Iterable[str], family) -> pd.DataFrame:
    """Accuracies, models x relations (figure 7): families in the order of their best model, their
    models by mean accuracy. ``family``: function from a model's name to its family."""
    wide = accuracies.pivot(index="model", columns="relation", values="accuracy")
    wide = wide.loc[list(models), accuracies["relation"].unique()]
    means = wide.mean(axis=1)
    best = means.groupby(family).max()
    order = sorted(wide.index, key=lambda m: (-best[family(m)], family(m), -means[m]))
    return wide.loc[order].rename_axis(columns=None)


def leaderboard(measured: pd.DataFrame, exposures: pd.Series | None = None) -> pd.DataFrame:
    """Table 8, best model first: ``rank``, ``model``, ``accuracy`` (mean over relations, 95 %
    bootstrap interval over relations), ``std`` over relations, ``between`` (std over draws, mean
    over relations; left out for one draw), ``p (Holm)`` against the next model below (``compare``);
    accuracy over facts by the rules ``per token`` and ``pmi``, and, if ``exposures`` (fact ->
    count) are known, over the facts taught 16 times or more."""
    rows = []
    for model, own in accuracies(measured).groupby("model", sort=False):
        values = own["accuracy"]
        row = bounds("accuracy", values.mean(), stats.mean_interval(values))
        row |= {"std": values.std(), "between": own["between"].mean()}
        rows.append({"model": model} | row)
    board = pd.DataFrame(rows).sort_values("accuracy", ignore_index=True, **stats.BEST_FIRST)
    board.insert(0, "rank", board.index + 1)
    tested = compare(measured, zip(board["model"], board["model"][1:], strict=False))
    board["p (Holm)"] = pd.Series(tested)
    board = board.join(measured.groupby("model")[["per token", "pmi"]].mean(), "model")
    if exposures is not None:
        often = measured[measured["fact"].map(exposures) >= 16].groupby("model")["correct"]
        board["taught 16+"] = board["model"].map(often.mean())
    return board if measured["seed"].nunique() > 1 else board.drop(columns="between")


def compare(measured: pd.DataFrame, pairs: Iterable[tuple[str, str]]) -> np.ndarray:
    """Holm-adjusted p of McNemar's exact test of pairs of models on the same facts, first draw."""
    rows = measured[measured["seed"] == measured["seed"].min()]
    right = rows.pivot(index="fact", columns="model", values="correct")
    return stats.holm([stats.mcnemar(right[a], right[b])["p"] for a, b in pairs])


def subsumption(small: pd.DataFrame, large: pd.DataFrame) -> pd.DataFrame:
    """Per relation the share of the facts known to one model that another model knows as well
    [zplke, 4.2.2]. ``small``, ``large``: ``fact``, ``relation``, ``correct``, one row per fact.

    eta        P(known to the large | known to the small), as the paper defines it; NaN if the small
               one knows nothing
    expected   eta of independent models, which is the accuracy of the large one
    reversed   P(known to the small | known to the large), which agrees with the paper's numbers"""
    pair = small.merge(large[["fact", "correct"]], on="fact", validate="1:1")
    a, b = pair["correct_x"], pair["correct_y"]
    sums = pd.DataFrame({"small": a, "large": b, "both": a & b, "all": True})
    sums = sums.groupby(pair["relation"]).sum()
    share = lambda of: sums["both"] / sums[of].where(sums[of] > 0)
    rates = {"eta": share("small"), "expected": sums["large"] / sums["all"]}
    return pd.DataFrame(rates | {"reversed": share("large")})


def subsumptions(measured: pd.DataFrame, pairs: Iterable[tuple[str, str]]) -> pd.DataFrame:
    """``subsumption`` of pairs (``smaller``, ``larger``) of models after every ``draw`` of examples
    (from 1), as the paper averages it: per relation, then over the relations with a rate.

    Return ``eta`` with its 95 % bootstrap interval over relations, ``expected`` (mean over the
    relations that count for eta), ``reversed``, ``relations`` (number that counts), ``ceiling``
    (eta of the smaller model with itself after the previous draw; NaN for one draw), and eta minus
    both, paired by relation: ``above expected``, ``below ceiling``."""
    rows, seeds = [], sorted(measured["seed"].unique())
    of = dict(iter(measured.groupby(["model", "seed"])))
    for small, large in pairs:
        for i, seed in enumerate(seeds):
            each = subsumption(of[small, seed], of[large, seed])
            top = subsumption(of[small, seed], of[small, seeds[i - 1]])["eta"]
            top = top if len(seeds) > 1 else top * np.nan
            counted = each[each["eta"].notna()]
            row = {"smaller": small, "larger": large, "draw": i + 1}
            row |= bounds("eta", counted["eta"].mean(), stats.mean_interval(counted["eta"]))
            row |= {"expected": counted["expected"].mean(), "reversed": each["reversed"].mean()}
            row |= {"relations": len(counted), "ceiling": top.mean()}
            for name, level in zip(GAPS, (each["expected"], top), strict=True):
                gap = each["eta"] - level
                row |= bounds(name, gap.mean(), stats.mean_interval(gap))
            rows.append(row)
    return pd.DataFrame(rows, columns=SUBSUMED)


def family_correlations(matrix: pd.DataFrame, family) -> pd.DataFrame:
    """The mean Pearson's r over relations between the models of two families (figure 8), without
    pairs of a model with itself. ``matrix``: ``accuracy_matrix``; ``family``: of a model's name."""
    pairs = matrix.T.corr(min_periods=3)
    long = pairs.where(~np.eye(len(pairs), dtype=bool)).rename_axis("a").rename_axis("b", axis=1)
    long = long.stack().rename("r").reset_index()
    long = long.assign(a=long["a"].map(family), b=long["b"].map(family))
    names = list(dict.fromkeys(pairs.index.map(family)))
    return long.pivot_table(index="a", columns="b", values="r").reindex(index=names, columns=names)


def between_families(matrix: pd.DataFrame, family) -> dict[str, float]:
    """Mean r over all pairs of models from different families with its 95 % bootstrap interval over
    relations: ``value``, ``low``, ``high``, ``n`` (pairs); NaN without any pair."""
    values, families = matrix.to_numpy(), [family(model) for model in matrix.index]
    pairs = [(i, j) for j in range(len(families)) for i in range(j) if families[i] != families[j]]
    if not pairs:
        return {"value": np.nan, "low": np.nan, "high": np.nan, "n": 0}
    r_of = lambda i, j, at: stats.pearson_rows(values[i][at], values[j][at])
    mean_r = lambda at: stats.nanmean([r_of(*pair, at) for pair in pairs], 0)
    low, high = stats.percentile_interval(stats.bootstrap(mean_r, values.shape[1]))
    r = float(mean_r(np.arange(values.shape[1])[None])[0])
    return {"value": r, "low": low, "high": high, "n": len(pairs)}


def guessers(options: pd.DataFrame, asked: pd.DataFrame, examples: pd.DataFrame) -> pd.DataFrame:
    """Baselines without a model: ``relation`` -> the accuracy of each rule and a share of facts,
    means over facts and draws of examples.

    chance     guess among the ``options`` (``fact``, ``candidate``, ``label``)
    copy       take the longest option that is part of the subject; without one, guess
    majority   take the most frequent object of the examples; if no option is one, guess
    in_subject, in_examples   the right object is part of the subject, or an example's object
    best rule  the highest of the three accuracies

    ``asked``: ``fact``, ``relation``, ``subject`` (label), ``gold`` (the right candidate);
    ``examples``: ``relation``, ``seed``, ``object`` (label)."""
    options, keys = options.merge(asked, on="fact", validate="many_to_one"), ["seed", "fact"]
    pairs = zip(options["label"], options["subject"], strict=True)
    inside = [normalized(label) in normalized(subject) for label, subject in pairs]
    options = options.assign(inside=np.where(inside, options["label"].str.len(), 0))
    counts = examples.rename(columns={"object": "label"})
    counts = counts.groupby(["relation", "seed", "label"]).size().rename("shown").reset_index()
    rows = options.merge(examples[["relation", "seed"]].drop_duplicates(), on="relation")
    rows = rows.merge(counts, on=["relation", "seed", "label"], how="left").fillna({"shown": 0})
    right = rows["candidate"] == rows["gold"]
    rows["chance"] = right / rows.groupby(keys)["fact"].transform("size")
    for rule, column in (("copy", "inside"), ("majority", "shown")):
        best = rows[column] == rows.groupby(keys)[column].transform("max")  # all, if none is found
        rows[rule] = (best & right) / best.groupby([rows[key] for key in keys]).transform("sum")
    rows["in_subject"] = (right & (rows["inside"] > 0)).astype(float)
    rows["in_examples"] = (right & (rows["shown"] > 0)).astype(float)
    columns = ["chance", "copy", "majority", "in_subject", "in_examples"]
    by_fact = rows.groupby(["relation", *keys], sort=False)[columns].sum()
    rules = by_fact.groupby("relation", sort=False).mean()
    return rules.assign(**{"best rule": rules[columns[:3]].max(axis=1)})
