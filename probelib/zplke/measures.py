"""ZP-LKE's formulas: scores in, numbers out.

For a fact with subject x*, right object y* and candidates C, and the input sigma of ``prompts.many_shot`` [zplke, Eq. 1]:

    log P(y | sigma) = sum over the tokens of y of log P(token | sigma, tokens before)            [zplke, Eq. 2], nats
    prediction       = the y in C of the highest P(y | sigma)                                      [zplke, Eq. 3]
    accuracy         = share of the facts whose prediction is y*; guessing gives 1/|C|             [zplke, Eq. 4]
    q(y)             = P(y | sigma) / sum over C of P;   confidence = max q
    Acc@K            = accuracy over the facts with confidence > K                                 [zplke, Eq. 5]
    eta              = |known to both| / |known to the smaller model|                              (4.2.2)

No length normalisation, log space throughout. ``probelib.zplke`` says where paper, released code and this kit differ.
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd
import scipy

from probelib.errors import ProbeError, unknown
from probelib.stats import (
    bootstrap,
    holm,
    levelled,
    mcnemar,
    mean_interval,
    nanmean,
    pearson_rows,
    percentile_interval,
    wilson,
)

CHOICES = ["fact", "relation", "prompt", "correct", "tie", "valid"]
CHOICES += ["q_gold", "confidence", "predicted", "position", "n_options"]
SUBSUMED = ["eta", "low", "high", "expected", "reversed", "jaccard", "pooled", "relations", "of"]


def choices(
    scores: pd.DataFrame, gold: Mapping[str, str], per_token: bool = False, variant: str = "kit"
) -> pd.DataFrame:
    """The multiple-choice test, one row per prompt [zplke, Eq. 3]: columns ``CHOICES``.

    scores     ``prompt``, ``fact``, ``relation``, ``candidate``, ``logprob`` (nats), ``n_tokens``; one row per option
    gold       fact -> its right candidate; it must be among the options of every prompt exactly once
    per_token  compare the mean log-probability per token, not the sum
    variant    "released": probabilities instead of logarithms, so that underflow gives wrong values silently

    correct    whether the right object is strictly above all others; False if the test is not valid
    tie        whether it shares the first place;  valid: no option is NaN, and not all probabilities underflow
    q_gold, confidence   normalised probability of the right and of the most probable option, [0, 1]
    predicted, position  the candidate chosen, and its index among the options
    """
    if variant not in ("kit", "released"):
        raise unknown("variant", variant, ["kit", "released"])
    prompt, names = pd.factorize(scores["prompt"])
    order = np.argsort(prompt, kind="stable")
    scores, prompt = scores.iloc[order], prompt[order]
    start = np.searchsorted(prompt, np.arange(len(names)))
    value = scores["logprob"].to_numpy(np.float64) / (scores["n_tokens"].to_numpy() if per_token else 1)
    right = scores["candidate"].to_numpy() == scores["fact"].map(gold).to_numpy()
    there = np.add.reduceat(right.astype(int), start)
    if (there != 1).any():
        bad = int(np.flatnonzero(there != 1)[0])
        raise ProbeError(
            f"{names[bad]}: the right object occurs {there[bad]} times among the options; it must occur once "
            f"({int((there != 1).sum())} such prompts)"
        )
    if variant == "released":
        with np.errstate(divide="ignore"):
            value = np.log(np.exp(value))  # as a float64 probability: 0 below exp(-745)
    top = np.maximum.reduceat(value, start)  # [prompts]; NaN wins
    valid = np.isfinite(top)
    with np.errstate(invalid="ignore"):
        log_total = top + np.log(np.add.reduceat(np.exp(value - top[prompt]), start))
        best = value == top[prompt]
    first = np.minimum.reduceat(np.where(best, np.arange(len(value)), len(value)), start)
    first = np.where(valid, first, start)
    several, right_value = np.add.reduceat(best.astype(int), start) > 1, value[right]
    with np.errstate(invalid="ignore"):
        frame = scores.iloc[start][["fact", "relation", "prompt"]].assign(
            correct=valid & (right_value == top) & ~several,
            tie=valid & (right_value == top) & several,
            valid=valid,
            q_gold=np.exp(right_value - log_total),
            confidence=np.exp(top - log_total),
            predicted=scores["candidate"].to_numpy()[first],
            position=first - start,
            n_options=np.diff(np.append(start, len(value))),
        )
    return frame[CHOICES].reset_index(drop=True)


def pmi(scores: pd.DataFrame, prompts: pd.DataFrame) -> pd.DataFrame:
    """The scores with ``logprob`` minus the log of the candidate's prior: its mean probability after the other subjects of the
    relation, in the same draw of examples. So a candidate that is probable after any subject has no advantage. One that is
    offered after a single subject gets the mean prior of its relation.

    prompts   has the draw (``seed``) of every prompt
    """
    seed = scores["prompt"].map(dict(zip(prompts["prompt"], prompts["seed"], strict=True)))
    p = np.exp(scores["logprob"].astype(np.float64))
    groups = p.groupby([scores["relation"], seed, scores["candidate"]])
    others = groups.transform("size") - 1
    prior = ((groups.transform("sum") - p) / others.where(others > 0)).clip(lower=1e-300)
    prior = prior.fillna(prior.groupby([scores["relation"], seed]).transform("mean"))
    return scores.assign(logprob=scores["logprob"] - np.log(prior))


def chance(choices: pd.DataFrame) -> float:
    """Expected accuracy of guessing: the mean of 1 / options."""
    return float((1 / choices["n_options"]).mean())


def fewer_options(
    scores: pd.DataFrame, gold: Mapping[str, str], n: int, hard: float = 0.0, frequency: Mapping[str, int] | None = None
) -> pd.DataFrame:
    """The scores of the right object and ``n`` - 1 of the wrong ones per prompt; the set of a larger ``n`` contains the smaller.

    hard        share of the wrong options that are the most frequent objects of the relation; the remaining ones keep their order
    frequency   candidate -> number of facts, needed if ``hard`` > 0
    """
    wrong = scores["candidate"].to_numpy() != scores["fact"].map(gold).to_numpy()
    counts = scores["candidate"].map(frequency or {}).fillna(0)
    rows = pd.DataFrame({"prompt": scores["prompt"], "rare": -counts})[wrong]
    popular = rows.groupby("prompt")["rare"].rank(method="first")  # 1: the most frequent
    picked = popular <= round(hard * (n - 1))
    place = rows.assign(picked=picked).groupby(["prompt", "picked"]).cumcount()
    left = n - 1 - picked.groupby(rows["prompt"]).transform("sum")
    keep = pd.Series(~wrong, index=scores.index)
    keep.loc[rows.index] = picked | (place < left)
    return scores[keep]


def normalized(text: str) -> str:
    """Text for a comparison: compatibility forms and case folded, without , . : and without doubled blanks."""
    return " ".join(re.sub(r"[,.:]", "", unicodedata.normalize("NFKC", text)).casefold().split())


def response(text: str, gold: str, mode: str = "strict", gap: str = " ") -> bool:
    """The response test: whether generated text gives the right object [zplke, Sec. 4.1].

    mode   "strict": the text begins with the object, up to the end of a word; "lenient": it contains the object anywhere, also in
           later pairs of a list; "first_pair": the text before the next ``gap`` begins with the object (as "strict" if the gap is
           a blank, which does not separate pairs); "released": lower case, and , . : removed from the object only

    >>> response(" French Jane Doe English", "English"), response(" French Jane Doe English", "English", "lenient")
    (False, True)
    """
    if mode == "released":
        return re.sub(r"[,.:]", "", gold.lower()) in text.lower()
    if mode == "first_pair":
        text, mode = (text.lstrip().split(gap)[0] if gap.strip(" ") else text), "strict"
    said, wanted = normalized(text), normalized(gold)
    if mode == "lenient":
        return bool(wanted) and wanted in said
    if mode != "strict":
        raise unknown("mode", mode, ["strict", "lenient", "first_pair", "released"])
    return bool(wanted) and said.startswith(wanted) and not said[len(wanted) :][:1].isalnum()


def responses(generated: pd.DataFrame, labels: Mapping[str, str]) -> pd.DataFrame:
    """The response test of generated texts: ``generated`` with the columns ``strict``, ``lenient``, ``released``.

    labels   fact -> label of its right object
    """
    texts = [(text, labels[fact]) for text, fact in zip(generated["text"], generated["fact"], strict=True)]
    modes = ("strict", "lenient", "released")
    return generated.assign(**{mode: [response(text, gold, mode) for text, gold in texts] for mode in modes})


def answers_of_inputs(inputs: pd.DataFrame, generated: pd.DataFrame, labels: Mapping[str, str]) -> pd.DataFrame:
    """Table 1's ``inputs`` with ``estimator`` (prompted, zero-prompt), ``output`` and ``right`` (the strict response test).

    generated   the text after each prompt;   labels: fact -> label of its right object
    """
    output = inputs["prompt"].map(generated.set_index("prompt")["text"])
    right = [response(text, labels[fact]) for text, fact in zip(output, inputs["fact"], strict=True)]
    estimator = np.where(inputs["role"] == "zp", "zero-prompt", "prompted")
    return inputs.assign(estimator=estimator, output=output, right=right)


def right_by_input(answers: pd.DataFrame) -> pd.DataFrame:
    """Per input of table 1 over all facts: ``estimator``, ``context``, ``right`` (count), ``low`` and ``high`` of its share
    (Wilson), and McNemar's test against the longest list of correct examples with the same estimator: ``lost``, ``gained``,
    ``p (Holm)``.
    """
    wide = answers.pivot(index="fact", columns=["estimator", "context"], values="right")
    wide = wide[list(answers[["estimator", "context"]].drop_duplicates().itertuples(index=False, name=None))]
    rows = []
    for estimator, context in wide:
        full = [name for name in wide[estimator] if name.endswith(" correct")][-1]
        own = wide[estimator, context]
        test = mcnemar(wide[estimator, full], own) if context != full else {"lost": 0, "gained": 0, "p": np.nan}
        rows.append(
            (estimator, context, own.sum(), *wilson(own.sum(), len(own)), test["lost"], test["gained"], test["p"])
        )
    table = pd.DataFrame(rows, columns=["estimator", "context", "right", "low", "high", "lost", "gained", "p"])
    return table.assign(**{"p (Holm)": holm(table["p"])}).drop(columns="p")


def n95(accuracy: pd.Series, share: float = 0.95) -> float:
    """Smallest number of examples that reaches ``share`` of the accuracy with the most examples [zplke, Fig. 3]; NaN if that
    accuracy is 0.

    accuracy   mean over draws, indexed by the number of examples

    >>> n95(pd.Series({1: .20, 5: .50, 10: .62, 20: .70, 30: .72, 50: .74}))
    30.0
    """
    curve = accuracy.sort_index()
    last = curve.iloc[-1]
    return float(curve.index[curve >= share * last - 1e-12][0]) if last > 0 else np.nan


def accuracy_at(choices: pd.DataFrame, thresholds: Iterable[float]) -> pd.DataFrame:
    """Acc@K [zplke, Eq. 5] for thresholds of the confidence: ``K``, ``accuracy``, ``low``, ``high``, ``kept`` (facts with a
    confidence above K), ``share`` of all prompts. NaN if no fact is kept.

    The interval is Wilson's over facts: several draws of examples for one fact count once.
    """
    rows = []
    for threshold in thresholds:
        some = choices[choices["confidence"] > threshold]
        accuracy, kept = some["correct"].mean(), some["fact"].nunique()
        low, high = wilson(round(accuracy * kept), kept) if kept else (np.nan, np.nan)
        rows.append((threshold, accuracy, low, high, kept, len(some) / len(choices)))
    return pd.DataFrame(rows, columns=["K", "accuracy", "low", "high", "kept", "share"])


def subsumption(small, large) -> dict[str, float]:
    """The share of the facts known to one model that another model knows as well [zplke, Sec. 4.2.2].

    small, large   one verdict per fact, of the same facts

    eta          P(known to the large | known to the small), as the paper defines it; NaN if the small one knows nothing
    reversed     P(known to the small | known to the large), which agrees with the paper's numbers
    jaccard      facts known to both / to either;   phi: their correlation
    expected     eta of independent models, which is the accuracy of the large one;   lift: eta / expected

    >>> both = subsumption([1, 1, 1, 1, 0, 0, 0, 0, 0, 0], [0, 1, 1, 1, 1, 1, 0, 0, 0, 0])
    >>> [both[key] for key in ("eta", "reversed", "jaccard", "expected", "lift")]
    [0.75, 0.6, 0.5, 0.5, 1.5]
    """
    small, large = np.asarray(small, dtype=bool), np.asarray(large, dtype=bool)
    both, either = (small & large).sum(), (small | large).sum()
    share = lambda a, b: float(a / b) if b else np.nan
    eta, expected = share(both, small.sum()), share(large.sum(), len(large))
    return {
        "eta": eta,
        "reversed": share(both, large.sum()),
        "jaccard": share(both, either),
        "expected": expected,
        "lift": eta / expected if expected else np.nan,
        "phi": float(np.corrcoef(small, large)[0, 1]) if small.std() and large.std() else np.nan,
        "n": len(small),
    }


def mean_subsumption(small: pd.DataFrame, large: pd.DataFrame, seed: int = 0) -> dict[str, float]:
    """``subsumption`` as the paper averages it: per relation, then over the relations that have a rate.

    small, large   ``fact``, ``relation``, ``correct``, one row per fact
    returns        ``SUBSUMED``: ``eta`` with ``low`` and ``high`` (95 % bootstrap over relations), ``expected`` (mean over the
                   relations that count for eta), ``reversed``, ``jaccard``, ``pooled`` (eta over all facts), ``relations``
                   (number that counts), ``of`` (number of all)
    """
    pair = small.merge(large[["fact", "correct"]], on="fact", suffixes=("", "_large"), validate="one_to_one")
    each = pd.DataFrame([subsumption(g["correct"], g["correct_large"]) for _, g in pair.groupby("relation")])
    counted = each[each["eta"].notna()]
    low, high = mean_interval(counted["eta"], seed=seed)
    return {
        "eta": counted["eta"].mean(),
        "low": low,
        "high": high,
        "expected": counted["expected"].mean(),
        "reversed": each["reversed"].mean(),
        "jaccard": each["jaccard"].mean(),
        "pooled": subsumption(pair["correct"], pair["correct_large"])["eta"],
        "relations": len(counted),
        "of": len(each),
    }


def by_relation(choices: pd.DataFrame) -> pd.DataFrame:
    """Accuracy of every relation over all of its facts and draws of examples (the column ``seed`` of ``choices``): ``relation``,
    ``accuracy``, ``low`` and ``high`` (Wilson, by facts), ``n`` (facts), ``between`` (std over draws; NaN for one)."""
    rows = []
    for relation, group in choices.groupby("relation", sort=False):
        draws = group.groupby("seed")["correct"].mean()
        n = group["fact"].nunique()
        low, high = wilson(round(draws.mean() * n), n)
        rows.append((relation, draws.mean(), low, high, n, draws.std()))
    return pd.DataFrame(rows, columns=["relation", "accuracy", "low", "high", "n", "between"])


def overall_accuracy(relations: pd.DataFrame, seed: int = 0) -> dict[str, float]:
    """A model's score on the leaderboard: ``accuracy`` (mean over relations), ``low``, ``high`` (95 % bootstrap over relations),
    ``std`` over relations (ddof = 1), ``n`` relations. ``relations``: see ``by_relation``."""
    values = relations["accuracy"].to_numpy()
    low, high = mean_interval(values, seed=seed)
    return {"accuracy": values.mean(), "low": low, "high": high, "std": relations["accuracy"].std(), "n": len(values)}


def correlations(matrix: pd.DataFrame) -> pd.DataFrame:
    """Pearson's r of every pair of models over relations (figure 16). ``matrix``: models x relations, accuracies. NaN for a model
    with the same accuracy everywhere, and for fewer than 3 relations."""
    return matrix.T.corr(min_periods=3)


def family_correlations(pairs: pd.DataFrame, family: Mapping[str, str]) -> pd.DataFrame:
    """The mean r between the models of two families (figure 8), without pairs of a model with itself: NaN on the diagonal for a
    family of one model."""
    other = pairs.where(~np.eye(len(pairs), dtype=bool))
    long = other.rename_axis("a").rename_axis("b", axis=1).stack().rename("r").reset_index()
    long = long.assign(a=long["a"].map(family), b=long["b"].map(family))
    names = list(dict.fromkeys(pairs.index.map(family)))
    return long.pivot_table(index="a", columns="b", values="r").reindex(index=names, columns=names)


def run_health(choices: pd.DataFrame, times: int = 400, seed: int = 0) -> dict[str, float]:
    """Whether a run is sound, over all prompts of a model.

    accuracy, chance   shares of right answers, observed and by guessing
    below              probability of at most this many right answers by guessing (a broken run is below chance); each fact counts
                       once, by its share of right answers over the draws of examples
    invalid, ties      shares of the prompts
    entropy            over facts (the first input of each) of the position of the chosen option among all options, which are
                       shuffled, in units of its maximum; ``expected``: its 2.5 % quantile for random positions. A model that
                       always takes the first option has 0.
    """
    first = choices.drop_duplicates("fact")  # a fact's options have one order after all of its inputs
    most, draw = int(choices["n_options"].max()), np.random.default_rng(seed)
    guesses = draw.integers(0, first["n_options"].to_numpy(), size=(times, len(first)))
    entropy = lambda places: scipy.stats.entropy(np.bincount(places, minlength=most)) / np.log(most)
    level = chance(choices)
    return {
        "accuracy": choices["correct"].mean(),
        "chance": level,
        "below": float(scipy.stats.binom.cdf(round(choices["correct"].mean() * len(first)), len(first), level)),
        "invalid": 1 - choices["valid"].mean(),
        "ties": choices["tie"].mean(),
        "entropy": float(entropy(first["position"].to_numpy())),
        "expected": float(np.percentile([entropy(row) for row in guesses], 2.5)),
        "n": len(choices),
    }


def guessers(options: pd.DataFrame, asked: pd.DataFrame, examples: pd.DataFrame) -> pd.DataFrame:
    """Baselines without a model, one row per fact: ``relation``, ``fact`` and the probability that each rule is right.

    options    ``fact``, ``candidate``, ``label``
    asked      ``fact``, ``relation``, ``subject`` (its label), ``gold`` (the right candidate)
    examples   ``relation``, ``object`` (label)

    copy       take the longest option that is part of the subject; without one, guess
    majority   take the most frequent object of the examples; if no option is one, guess
    in_subject, in_examples   1 if the right object is part of the subject, or is the object of an example
    """
    shown = examples.groupby("relation")["object"].value_counts().rename("shown").reset_index()
    rows = options.merge(asked, on="fact", validate="many_to_one")
    rows = rows.merge(shown, left_on=["relation", "label"], right_on=["relation", "object"], how="left").fillna(
        {"shown": 0}
    )
    inside = [
        normalized(label) in normalized(subject) for label, subject in zip(rows["label"], rows["subject"], strict=True)
    ]
    rows["inside"] = np.where(inside, rows["label"].str.len(), 0)
    right = rows["candidate"] == rows["gold"]
    for rule, column in (("copy", "inside"), ("majority", "shown")):
        best = rows[column] == rows.groupby("fact")[column].transform("max")  # if none is found, all options
        rows[rule] = (best & right) / best.groupby(rows["fact"]).transform("sum")
    rows["in_subject"], rows["in_examples"] = right & (rows["inside"] > 0), right & (rows["shown"] > 0)
    columns = ["copy", "majority", "in_subject", "in_examples"]
    return rows.groupby(["relation", "fact"], sort=False)[columns].sum().astype(float).reset_index()


OFTEN = 16  # exposures from which a fact counts as taught often
COSTS = ["requests", "requested_tokens", "tree_nodes", "forwarded_tokens", "forwards"]


def measure(
    scores: Iterable[pd.DataFrame], inputs: pd.DataFrame, gold: Mapping[str, str], rules: bool = False
) -> pd.DataFrame:
    """The multiple-choice test of every model: ``model``, ``CHOICES``, the columns ``role``, ``template``, ``context``, ``seed``,
    ``method`` and ``between`` of the inputs (as far as they have them), and ``shots`` (number of examples).

    scores   one frame per model (or several of one model, for other inputs), read one after the other
    rules    add ``per token`` and ``pmi``: whether the right object wins under two other rules of choice
    returns  ``.attrs["work"]``: the sums of ``COSTS`` per model
    """
    about = inputs[[c for c in ("prompt", "role", "template", "context", "seed", "method", "between") if c in inputs]]
    shots = about["context"].str.extract(r"^(\d+) examples", expand=False).fillna(0).astype(int)
    about, frames, costs = about.assign(shots=shots), [], []
    for rows in scores:
        chosen = choices(rows, gold)
        if rules:
            chosen["per token"] = choices(rows, gold, per_token=True)["correct"]
            chosen["pmi"] = choices(pmi(rows, inputs), gold)["correct"]
        model = rows["model"].iloc[0]
        frames.append(chosen.merge(about, on="prompt").assign(model=model))
        costs.append({"model": model} | {name: rows.attrs["cost"].get(name, np.nan) for name in COSTS})
    measured = pd.concat(frames, ignore_index=True)
    measured.attrs["work"] = pd.DataFrame(costs).groupby("model", sort=False).sum(min_count=1).to_dict("index")
    return measured


def forwarding_work(measured: pd.DataFrame) -> pd.DataFrame:
    """``COSTS`` per model of the scores that ``measure`` read: tokens requested, distinct prefixes (nodes of the trees; NaN for a
    model that is not scored on trees), tokens forwarded."""
    return pd.DataFrame(measured.attrs["work"]).T.rename_axis("model").reset_index()


def first_draw(measured: pd.DataFrame, model: str | None = None) -> pd.DataFrame:
    """The rows of the first draw of examples; of all models, or of one."""
    rows = measured if model is None else measured[measured["model"] == model]
    return rows[rows["seed"] == rows["seed"].min()]


def accuracies(measured: pd.DataFrame) -> pd.DataFrame:
    """``by_relation`` of every model, with the column ``model``."""
    groups = measured.groupby("model", sort=False)
    return pd.concat([by_relation(rows).assign(model=model) for model, rows in groups], ignore_index=True)


def accuracy_matrix(accuracies: pd.DataFrame, models: Iterable[str], relations: Iterable[str], family) -> pd.DataFrame:
    """Accuracies, models x relations (figure 7): families in the order of their best model, their models by mean accuracy.

    family   function: name of a model -> its family
    """
    models = list(models)
    wide = accuracies.pivot(index="model", columns="relation", values="accuracy").loc[models, list(relations)]
    means = wide.mean(axis=1)
    best = means.groupby([family(model) for model in models]).max()
    order = sorted(models, key=lambda model: (-best[family(model)], family(model), -means[model]))
    return wide.loc[order].rename_axis(columns=None)


def leaderboard(measured: pd.DataFrame, exposures: pd.Series | None = None) -> pd.DataFrame:
    """Table 8, best model first: ``rank``, ``model``, the columns of ``overall_accuracy``, ``between`` (std over draws, mean over
    relations; left out for one draw); McNemar's test against the next model below on the first draw: ``lost`` (facts that only
    the upper one knows), ``gained``, ``p``, ``p (Holm)``; accuracy over facts by the rules ``per token`` and ``pmi``, and, if
    ``exposures`` (fact -> count) are known, over the facts taught ``OFTEN`` times or more."""
    groups = list(accuracies(measured).groupby("model", sort=False))
    board = pd.DataFrame(
        [{"model": m, **overall_accuracy(rows), "between": rows["between"].mean()} for m, rows in groups]
    )
    board = board.sort_values("accuracy", ascending=False, key=levelled, kind="stable", ignore_index=True)
    board.insert(0, "rank", board.index + 1)
    neighbours = zip(board["model"], board["model"][1:], strict=False)
    tests = pd.DataFrame([compare(measured, *pair) for pair in neighbours], columns=["lost", "gained", "p"])
    tests = tests.astype({"lost": "Int64", "gained": "Int64"})
    rules = measured.groupby("model")[["per token", "pmi"]].mean()
    board = board.join(tests.assign(**{"p (Holm)": holm(tests["p"])})).join(rules, on="model")
    if exposures is not None:
        often = measured[measured["fact"].map(exposures) >= OFTEN]
        board[f"taught {OFTEN}+"] = board["model"].map(often.groupby("model")["correct"].mean())
    return board if measured["seed"].nunique() > 1 else board.drop(columns="between")


def compare(measured: pd.DataFrame, first: str, second: str) -> dict[str, float]:
    """McNemar's exact test of two models on the same facts, first draw (``stats.mcnemar``)."""
    a, b = (first_draw(measured, model).set_index("fact")["correct"] for model in (first, second))
    return mcnemar(a, b.loc[a.index])


def subsumptions(measured: pd.DataFrame, pairs: Iterable[tuple[str, str]]) -> pd.DataFrame:
    """``mean_subsumption`` on the first draw for pairs (smaller, larger) of models: ``SUBSUMED`` and, with several draws,
    ``ceiling`` (eta of the smaller one with itself under the last draw)."""
    rows, draws = [], measured["seed"].nunique()
    for small, large in pairs:
        own = measured[measured["model"] == small]
        rates = mean_subsumption(first_draw(own), first_draw(measured, large))
        if draws > 1:
            rates["ceiling"] = mean_subsumption(first_draw(own), own[own["seed"] == own["seed"].max()])["eta"]
        rows.append(rates)
    return pd.DataFrame(rows, columns=[*SUBSUMED, *["ceiling"] * (draws > 1)])


def between_families(matrix: pd.DataFrame, family) -> dict[str, float]:
    """Mean r over all pairs of models from different families: ``r``, ``low``, ``high`` (95 % bootstrap over relations), ``n``
    (pairs). Without any pair, only ``n``."""
    models = list(matrix.index)
    pairs = [(i, j) for i in range(len(models)) for j in range(i + 1, len(models))]
    pairs = [(i, j) for i, j in pairs if family(models[i]) != family(models[j])]
    if not pairs:
        return {"n": 0}
    values = matrix.to_numpy()
    mean_r = lambda at: nanmean([pearson_rows(values[i][at], values[j][at]) for i, j in pairs], axis=0)
    low, high = percentile_interval(bootstrap(mean_r, values.shape[1]))
    r = correlations(matrix).to_numpy()
    return {"r": nanmean([r[pair] for pair in pairs]), "low": low, "high": high, "n": len(pairs)}


def object_frequency(*tables) -> dict[str, int]:
    """Object -> number of facts that have it, over several ``Facts``."""
    return pd.concat([facts.facts["object"] for facts in tables]).value_counts().to_dict()


def difficulty(scores: pd.DataFrame, gold: Mapping[str, str], frequency: Mapping[str, int]) -> pd.DataFrame:
    """Accuracy with fewer options, random or frequent ones (``fewer_options``): ``options``, ``hardness``, ``accuracy``, ``low``,
    ``high`` (Wilson), ``chance``. One wrong option cannot be halved, so hardness 0.5 begins with 5 options. ``.attrs["n"]``:
    tests per row."""
    rows = []
    for hard in (0, 0.5, 1):
        for n in (5, 10, 25, 50, 100) if hard == 0.5 else (2, 5, 10, 25, 50, 100):
            chosen = choices(fewer_options(scores, gold, n, hard, frequency), gold)
            low, high = wilson(chosen["correct"].sum(), len(chosen))
            rows.append((n, hard, chosen["correct"].mean(), low, high, chance(chosen)))
    table = pd.DataFrame(rows, columns=["options", "hardness", "accuracy", "low", "high", "chance"])
    table.attrs["n"] = len(chosen)
    return table


# ---- section 4.1


def measure_responses(
    generated: Iterable[pd.DataFrame], inputs: pd.DataFrame, labels: Mapping[str, str]
) -> pd.DataFrame:
    """The response test of every model: the columns of ``responses``, and ``method``, ``template`` and ``seed`` of the inputs."""
    about = inputs[["prompt", "method", "template", "seed"]]
    return pd.concat([responses(rows, labels).merge(about, on="prompt") for rows in generated], ignore_index=True)


def accuracy_by_method(measured: pd.DataFrame, responses: pd.DataFrame) -> pd.DataFrame:
    """``model``, ``relation``, ``method``, ``accuracy`` (mean over prompts and draws), ``test``: the two response tests and the
    multiple-choice test. ``.attrs["models"]``: the models in their order."""
    tests = {
        "response, strict": (responses, "strict"),
        "response, lenient": (responses, "lenient"),
        "multiple choice": (measured, "correct"),
    }
    frames = []
    for test, (rows, column) in tests.items():
        each = rows.groupby(["model", "relation", "method", "template", "seed"])[column].mean()
        cells = each.groupby(["model", "relation", "method"]).mean().rename("accuracy").reset_index()
        frames.append(cells.assign(test=test))
    cells = pd.concat(frames)
    cells.attrs["models"] = measured["model"].unique().tolist()
    return cells


def mean_by_method(cells: pd.DataFrame) -> pd.DataFrame:
    """Figure 5: ``test``, ``model``, ``method``, ``accuracy`` (mean over relations), ``low``, ``high`` (95 % bootstrap over
    relations), ``relations``, ``without P176`` (manufacturer, whose human prompts speak of a music label)."""
    rows = []
    for key, group in cells.groupby(["test", "model", "method"]):
        values = group["accuracy"].to_numpy()
        without = group.loc[group["relation"] != "P176", "accuracy"].mean()
        rows.append((*key, values.mean(), *mean_interval(values), len(values), without))
    columns = ["test", "model", "method", "accuracy", "low", "high", "relations", "without P176"]
    return pd.DataFrame(rows, columns=columns)


def gap(cells: pd.DataFrame, first: str, second: str) -> dict[str, float]:
    """Accuracy of one method minus that of another, over the relations that have both, mean over models.

    cells    one test of ``accuracy_by_method``
    returns  ``gap`` with ``low`` and ``high`` (95 % bootstrap over relations), ``ahead`` (number of relations in which ``first``
             is better), ``of`` (number of relations), ``models`` (names of the models for which it is better on average)
    """
    wide = cells.pivot(index="relation", columns=["method", "model"], values="accuracy")
    each = (wide[first] - wide[second]).dropna()  # [relations, models]
    mean = each.mean(axis=1)
    low, high = mean_interval(mean)
    ahead, models = int((levelled(mean) > 0).sum()), each.columns[levelled(each.mean()) > 0].tolist()
    return {"gap": mean.mean(), "low": low, "high": high, "ahead": ahead, "of": len(each), "models": models}


def steps(measured: pd.DataFrame) -> dict[str, float]:
    """From HGP to ZP-LKE in two steps of multiple-choice accuracy, first draw, on the relations with HGP: ``examples`` (before
    the prompt), ``words`` (then leave out the prompt)."""
    rows = measured[measured["relation"].isin(measured.loc[measured["method"] == "HGP", "relation"].unique())]
    lists = rows[rows["method"] != "HGP"]
    rows = rows[(rows["method"] == "HGP") | (rows["seed"] == lists.loc[lists["seed"] >= 0, "seed"].min())]
    keys = ["model", "relation", "method"]
    mean = rows.groupby([*keys, "template"])["correct"].mean().groupby(keys).mean().groupby("method").mean()
    return {"examples": mean["few-shot HGP"] - mean["HGP"], "words": mean["ZP-LKE"] - mean["few-shot HGP"]}


def by_separator(measured: pd.DataFrame) -> pd.DataFrame:
    """Figure 6: ``model``, ``between``, ``size`` (facts), ``accuracy``, ``low``, ``high`` (Wilson)."""
    rows = measured.groupby(["model", "between"], sort=False)["correct"].agg(["sum", "size"]).reset_index()
    limits = [wilson(right, n) for right, n in zip(rows["sum"], rows["size"], strict=True)]
    rows = rows.assign(accuracy=rows["sum"] / rows["size"], low=[a for a, _ in limits], high=[b for _, b in limits])
    return rows.drop(columns="sum")


def against_blank(measured: pd.DataFrame) -> pd.DataFrame:
    """McNemar's test of every separator against the blank on the same facts: ``model``, ``words``, ``lost``, ``gained``, ``p``,
    ``p (Holm)``."""
    blank = measured[measured["between"] == "a blank"].set_index(["model", "fact"])["correct"]
    groups = measured[measured["between"] != "a blank"].groupby(["model", "between"], sort=False)
    rows = [
        {"model": model, "words": words, **mcnemar(blank.loc[model].loc[own["fact"]], own["correct"])}
        for (model, words), own in groups
    ]
    table = pd.DataFrame(rows, columns=["model", "words", "lost", "gained", "p"])
    return table.assign(**{"p (Holm)": holm(table["p"])})
