"""ZP-LKE's formulas: scores in, numbers out.

For a fact with subject x*, right object y*, candidates C and the input sigma [zplke, Eq. 1]:

    log P(y | sigma) = sum over the tokens of y of log P(token | sigma, tokens before)   [Eq. 2]
    prediction       = the y in C of the highest P(y | sigma)                            [Eq. 3]
    accuracy         = share of the facts whose prediction is y*; guessing gives 1/|C|   [Eq. 4]
    q(y)             = P(y | sigma) / sum over C of P;   confidence = max q
    Acc@K            = accuracy over the facts with confidence > K                       [Eq. 5]
    eta              = |known to both| / |known to the smaller model|                    (4.2.2)

Log-probabilities are in nats, without length normalisation. ``probelib.zplke`` says where paper,
released code and this kit differ.
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd

from probelib.errors import ProbeError, unknown
from probelib.stats import (
    bootstrap,
    holm,
    jackknife_interval,
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
SUBSUMED = ["smaller", "larger", "draw", "eta", "eta low", "eta high", "expected", "reversed"]
SUBSUMED += ["jaccard", "pooled", "relations", "of", "ceiling"]
SUBSUMED += [
    f"{gap}{end}" for gap in ("above expected", "below ceiling") for end in ("", " low", " high")
]
TIE = 1e-5  # nats: a smaller difference of two log-probabilities is rounding, so it is a tie


def choices(
    scores: pd.DataFrame, gold: Mapping[str, str], per_token: bool = False, variant: str = "kit"
) -> pd.DataFrame:
    """The multiple-choice test, one row per prompt [zplke, Eq. 3]: columns ``CHOICES``.

    scores     ``prompt``, ``fact``, ``relation``, ``candidate``, ``logprob`` (nats), ``n_tokens``;
               one row per option. -inf is a probability of 0: a valid option, the lowest of all
    gold       fact -> its right candidate; it must be among the options of every prompt once
    per_token  compare the mean log-probability per token, not the sum
    variant    "released": probabilities instead of logarithms, which underflow to 0 silently

    correct    whether the right object is above all others by more than ``TIE``; False if not valid
    tie        whether it shares the first place
    valid      no option is NaN, and not all probabilities are 0
    q_gold, confidence   normalised probability of the right and of the most probable option
    predicted, position  the candidate chosen, and its index among the options
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
    frame = scores.iloc[start][["fact", "relation", "prompt"]].assign(
        correct=leads & ~several,
        tie=leads & several,
        valid=valid,
        q_gold=q_gold,
        confidence=confidence,
        predicted=scores["candidate"].to_numpy()[first],
        position=first - start,
        n_options=np.diff(np.append(start, len(value))),
    )
    return frame[CHOICES].reset_index(drop=True)


def _right_options(scores: pd.DataFrame, gold: Mapping[str, str], start, names) -> np.ndarray:
    """Whether each option is the right one. Raise ProbeError unless every prompt has it once."""
    right = scores["candidate"].to_numpy() == scores["fact"].map(gold).to_numpy()
    there = np.add.reduceat(right.astype(int), start)
    if (there != 1).any():
        bad = int(np.flatnonzero(there != 1)[0])
        raise ProbeError(
            f"{names[bad]}: the right object occurs {there[bad]} times among the options; it must "
            f"occur once ({int((there != 1).sum())} such prompts)"
        )
    return right


def pmi(scores: pd.DataFrame, prompts: pd.DataFrame) -> pd.DataFrame:
    """The scores with ``logprob`` minus the log of the candidate's prior: its mean probability
    after the other subjects of the relation, in the same draw of examples. So a candidate that is
    probable after any subject has no advantage. One that is offered after a single subject gets the
    mean prior of its relation.

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


def measure(
    scores: Iterable[pd.DataFrame],
    inputs: pd.DataFrame,
    gold: Mapping[str, str],
    rules: bool = False,
) -> pd.DataFrame:
    """The multiple-choice test of every model: ``model``, ``CHOICES``, the columns ``role``,
    ``template``, ``context``, ``seed``, ``method`` and ``between`` of the inputs (as far as they
    have them), and ``shots`` (number of examples).

    scores   one frame per model (or several of one model, for other inputs), read one by one
    rules    add ``per token`` and ``pmi``: whether the right object wins under two other rules
    returns  ``.attrs["work"]``: model -> what its scores cost, summed over the frames
    """
    columns = ["prompt", "role", "template", "context", "seed", "method", "between"]
    about = inputs[[column for column in columns if column in inputs]]
    shots = about["context"].str.extract(r"^(\d+) examples", expand=False).fillna(0).astype(int)
    about, frames, costs = about.assign(shots=shots), [], []
    counted = ["requests", "requested_tokens", "tree_nodes", "forwarded_tokens", "forwards"]
    for rows in scores:
        chosen, model = choices(rows, gold), rows["model"].iloc[0]
        if rules:
            chosen["per token"] = choices(rows, gold, per_token=True)["correct"]
            chosen["pmi"] = choices(pmi(rows, inputs), gold)["correct"]
        frames.append(chosen.merge(about, on="prompt").assign(model=model))
        cost = rows.attrs["cost"]
        costs.append({"model": model} | {name: cost.get(name, np.nan) for name in counted})
    measured = pd.concat(frames, ignore_index=True)
    work = pd.DataFrame(costs).groupby("model", sort=False).sum(min_count=1)
    measured.attrs["work"] = work.to_dict("index")
    return measured


def first_draw(measured: pd.DataFrame, model: str | None = None) -> pd.DataFrame:
    """The rows of the first draw of examples; of all models, or of one."""
    rows = measured if model is None else measured[measured["model"] == model]
    return rows[rows["seed"] == rows["seed"].min()]


def longest(measured: pd.DataFrame) -> pd.DataFrame:
    """The rows with the most examples."""
    return measured[measured["shots"] == measured["shots"].max()]


def paired_change(before, after) -> dict[str, float]:
    """Change of the share of right answers between two inputs on the same facts: ``value`` with
    ``low`` and ``high`` (95 %, adjusted Wald of Agresti and Min 2005), ``n``.

    Half a fact is added to each of the four cells, so the interval has a width even where no answer
    changes, as at a ceiling or a floor: such a case is undecided, never without a difference.

    >>> {name: round(end, 3) for name, end in paired_change([1] * 60, [1] * 60).items()}
    {'value': 0.0, 'low': -0.032, 'high': 0.032, 'n': 60}
    """
    test = mcnemar(before, after)
    n, lost, gained = test["n"], test["lost"], test["gained"]
    middle, changed = (gained - lost) / (n + 2), (gained + lost + 1) / (n + 2)
    half = 1.959964 * np.sqrt((changed - middle**2) / (n + 2))
    return {"value": (gained - lost) / n, "low": middle - half, "high": middle + half, "n": n}


# ---- section 3: how many examples, and which?


def answers_of_inputs(
    inputs: pd.DataFrame, generated: pd.DataFrame, labels: Mapping[str, str]
) -> pd.DataFrame:
    """Table 1's ``inputs`` with ``estimator`` (prompted, zero-prompt), ``output`` and ``right``
    (the strict response test). ``labels``: fact -> label of its right object."""
    output = inputs["prompt"].map(generated.set_index("prompt")["text"])
    right = [response(text, labels[f]) for text, f in zip(output, inputs["fact"], strict=True)]
    estimator = np.where(inputs["role"] == "zp", "zero-prompt", "prompted")
    return inputs.assign(estimator=estimator, output=output, right=right)


def right_by_input(answers: pd.DataFrame) -> pd.DataFrame:
    """Per input of table 1 over all facts: ``estimator``, ``context``, ``right`` (count), its
    ``share`` (Wilson interval), and against the longest list of correct examples with the same
    estimator: the paired ``change`` of the share (``paired_change``) and ``lost``, the share of the
    answers right there that are wrong here (Wilson; wide where few are right there).

    answers   ``answers_of_inputs`` of several facts
    """
    keys = ["estimator", "context"]
    wide = answers.pivot(index="fact", columns=keys, values="right").astype(bool)
    rows = []
    for estimator, context in answers[keys].drop_duplicates().itertuples(index=False, name=None):
        own = wide[estimator, context]
        full = [name for name in answers["context"].unique() if name.endswith(" correct")]
        full = wide[estimator, [name for name in full if (estimator, name) in wide][-1]]
        row = {"estimator": estimator, "context": context, "right": own.sum(), "share": own.mean()}
        row |= _ends("share", wilson(own.sum(), len(own)))
        change, lost = paired_change(full, own), int((full & ~own).sum())
        row |= {"change": change["value"]} | _ends("change", (change["low"], change["high"]))
        row |= {"lost": lost / full.sum() if full.any() else np.nan}
        rows.append(row | _ends("lost", wilson(lost, full.sum())))
    return pd.DataFrame(rows)


def _ends(name: str, ends: tuple[float, float]) -> dict[str, float]:
    return {f"{name} low": ends[0], f"{name} high": ends[1]}


def n95(accuracy: pd.Series, share: float = 0.95) -> float:
    """Smallest number of examples that reaches ``share`` of the accuracy with the most examples
    [zplke, Fig. 3]; NaN if that accuracy is 0.

    accuracy   mean over draws, indexed by the number of examples

    >>> n95(pd.Series({1: .20, 5: .50, 10: .62, 20: .70, 30: .72, 50: .74}))
    30.0
    """
    curve = accuracy.sort_index()
    last = curve.iloc[-1]
    return float(curve.index[curve >= share * last - 1e-12][0]) if last > 0 else np.nan


def curves(measured: pd.DataFrame) -> pd.DataFrame:
    """Figure 3: ``model``, ``shots``, ``mean`` and ``std`` of the accuracy over draws, ``n95``."""
    each = measured.groupby(["model", "shots", "seed"])["correct"].mean()
    table = each.groupby(["model", "shots"]).agg(["mean", "std"]).reset_index()
    enough = {m: n95(rows.set_index("shots")["mean"]) for m, rows in table.groupby("model")}
    return table.assign(n95=table["model"].map(enough))


def gains(measured: pd.DataFrame) -> pd.DataFrame:
    """Per model the ``gain`` of accuracy from the shortest to the longest list: its value, ``low``
    and ``high`` (95 % bootstrap over facts)."""
    shortest = measured[measured["shots"] == measured["shots"].min()]
    by_fact = [
        rows.groupby(["model", "fact"])["correct"].mean() for rows in (shortest, longest(measured))
    ]
    gain = by_fact[1] - by_fact[0]
    rows = {m: (gain[m].mean(), *mean_interval(gain[m])) for m in measured["model"].unique()}
    return pd.DataFrame(rows, index=["value", "low", "high"]).T


def by_position(
    scores: pd.DataFrame, prompts: pd.DataFrame, examples: Mapping[str, pd.DataFrame]
) -> pd.DataFrame:
    """The probability of every object of a sequence (figure 4): ``context``, ``seed``,
    ``position``, ``fact``, ``probability``, ``role``, ``known``.

    scores     of each example's object after each prompt of ``inputs.sequence``
    examples   context -> its examples (``inputs.replaced``)
    role       "replaced", "after" (directly after a replaced one, and correct) or "rest"
    known      whether the pair at this position has a mean probability of 0.5 or more in the
               correct sequences of the *other* draws; False if no other draw has it. Were pairs
               chosen by the sequence that is then changed, they would fall by regression to the
               mean
    """
    frame = scores.merge(prompts[["prompt", "context", "seed"]], on="prompt", validate="one_to_one")
    frame["position"] = frame["prompt"].str.rsplit("|", n=1).str[1].astype(int)
    kinds = pd.concat([rows.assign(context=context) for context, rows in examples.items()])
    kinds = kinds.sort_values(["context", "seed", "position"])
    before = kinds.groupby(["context", "seed"])["kind"].shift(fill_value="correct")
    roles = [kinds["kind"] != "correct", before != "correct"]
    kinds["role"] = np.select(roles, ["replaced", "after"], "rest")
    columns = ["context", "seed", "position"]
    frame = frame.merge(kinds[[*columns, "role"]], on=columns, validate="one_to_one")
    frame = frame.assign(probability=np.exp(frame["logprob"]))
    correct = frame[frame["context"] == "correct"]
    by_fact = correct.groupby("fact")["probability"]
    others = by_fact.transform("size") - 1
    elsewhere = (by_fact.transform("sum") - correct["probability"]) / others.where(others > 0)
    marks = correct[["seed", "position"]].assign(known=elsewhere >= 0.5)
    frame = frame.merge(marks, on=["seed", "position"], how="left", validate="many_to_one")
    return frame[[*columns, "fact", "probability", "role", "known"]]


def effects(positions: pd.DataFrame) -> pd.DataFrame:
    """How replaced examples change the other pairs of one model: ``pairs`` (which are counted),
    ``effect``, ``n``, ``before`` and ``after`` (mean probabilities), ``change`` with ``change low``
    and ``change high`` (95 % bootstrap over pairs; NaN for fewer than 20: a model that knows hardly
    any pair has nothing to lose, which decides nothing).

    Counted are known pairs (``by_position``) from the first replaced one on: all, and those
    directly after a replaced one. Effects: "unknown" and "incorrect" (compared with the untouched
    sequence), and "incorrect minus unknown" (both have the same positions replaced). A pair counts
    once, with its mean over both layouts.

    positions   ``by_position`` of one model
    """
    key = ["seed", "position"]
    untouched = positions[positions["context"] == "correct"][[*key, "probability"]]
    pairs = positions[positions["context"] != "correct"]
    pairs = pairs.merge(untouched, on=key, suffixes=("", "_before"))
    at = pairs["position"].where(pairs["role"] == "replaced")
    pairs = pairs[
        pairs["position"] >= at.groupby([pairs["context"], pairs["seed"]]).transform("min")
    ]
    pairs = pairs[pairs["known"] & (pairs["role"] != "replaced")]
    pairs = pairs.assign(kind=pairs["context"].str.split(",").str[0])
    rows = []
    for which, roles in (("all known", ["after", "rest"]), ("directly after", ["after"])):
        own = pairs[pairs["role"].isin(roles)].groupby(["kind", *key])
        wide = own[["probability_before", "probability"]].mean()
        kinds = {kind: wide[wide.index.get_level_values(0) == kind].droplevel(0) for kind in KINDS}
        unknown_p = kinds["unknown"]["probability"].rename("probability_before")
        both = kinds["incorrect"][["probability"]].join(unknown_p, how="inner")
        for effect, part in (kinds | {"incorrect minus unknown": both}).items():
            change = part["probability"] - part["probability_before"]
            row = {"pairs": which, "effect": effect, "n": len(part)}
            row |= {
                "before": part["probability_before"].mean(),
                "after": part["probability"].mean(),
            }
            ends = mean_interval(change) if len(part) >= FEWEST_KNOWN else (np.nan, np.nan)
            rows.append(row | {"change": change.mean()} | _ends("change", ends))
    return pd.DataFrame(rows)


KINDS = ("unknown", "incorrect")  # of replaced examples
FEWEST_KNOWN = 20  # pairs


def measure_positions(
    scores: Iterable[pd.DataFrame], prompts: pd.DataFrame, sequences: Mapping[str, pd.DataFrame]
) -> pd.DataFrame:
    """``by_position`` of every model, with ``model``: best model first, by its mean probability in
    the correct sequence. A weak model knows few pairs whose probability could fall."""
    frames = {rows["model"].iloc[0]: by_position(rows, prompts, sequences) for rows in scores}
    level = {m: f["probability"][f["context"] == "correct"].mean() for m, f in frames.items()}
    order = sorted(level, key=level.get, reverse=True)
    return pd.concat([frames[m].assign(model=m) for m in order], ignore_index=True)


def accuracy_at(choices: pd.DataFrame, thresholds: Iterable[float]) -> pd.DataFrame:
    """Acc@K [zplke, Eq. 5] for thresholds of the confidence: ``K``, ``accuracy``, ``low``,
    ``high``, ``kept`` (facts with a confidence above K), ``share`` of all prompts. NaN if no fact
    is kept.

    The interval is Wilson's over facts: several draws of examples for one fact count once.
    """
    rows = []
    for threshold in thresholds:
        some = choices[choices["confidence"] > threshold]
        accuracy, kept = some["correct"].mean(), some["fact"].nunique()
        low, high = wilson(round(accuracy * kept), kept) if kept else (np.nan, np.nan)
        rows.append((threshold, accuracy, low, high, kept, len(some) / len(choices)))
    return pd.DataFrame(rows, columns=["K", "accuracy", "low", "high", "kept", "share"])


def gain_of_confidence(choices: pd.DataFrame, threshold: float = 0.5) -> dict[str, float]:
    """Acc@K at a ``threshold`` minus the accuracy of all: ``value``, ``low``, ``high`` (95 %
    bootstrap over facts; NaN if all inputs are right or all wrong), ``n`` (facts)."""
    above = choices["confidence"] > threshold
    counts = choices.assign(all=1, above=above, hit=choices["correct"] & above)
    sums = counts.groupby("fact")[["hit", "above", "correct", "all"]].sum().to_numpy(float)
    with np.errstate(invalid="ignore"):
        difference = lambda s: s[..., 0] / s[..., 1] - s[..., 2] / s[..., 3]
        low, high = percentile_interval(bootstrap(lambda i: difference(sums[i].sum(1)), len(sums)))
        value = difference(sums.sum(0))
    return {"value": float(value), "low": low, "high": high, "n": len(sums)}


# ---- section 4.1: a list of pairs, or a prompt?


def normalized(text: str) -> str:
    """Compatibility forms and case folded, without , . : and without doubled blanks."""
    return " ".join(re.sub(r"[,.:]", "", unicodedata.normalize("NFKC", text)).casefold().split())


def response(text: str, gold: str, mode: str = "strict") -> bool:
    """The response test: whether generated text gives the right object [zplke, Sec. 4.1].

    mode   "strict": the text begins with the object, up to the end of a word; "lenient": it
           contains the object anywhere, also in later pairs of a list; "released": lower case, and
           , . : removed from the object only

    >>> text = " French Jane Doe English"
    >>> response(text, "English"), response(text, "English", "lenient")
    (False, True)
    """
    if mode == "released":
        return re.sub(r"[,.:]", "", gold.lower()) in text.lower()
    said, wanted = normalized(text), normalized(gold)
    if mode == "lenient":
        return bool(wanted) and wanted in said
    if mode != "strict":
        raise unknown("mode", mode, ["strict", "lenient", "released"])
    return bool(wanted) and said.startswith(wanted) and not said[len(wanted) :][:1].isalnum()


def measure_responses(
    generated: Iterable[pd.DataFrame], inputs: pd.DataFrame, labels: Mapping[str, str]
) -> pd.DataFrame:
    """The response test of every model: the generated rows with ``strict``, ``lenient`` and
    ``released`` (``response``), and ``method``, ``template`` and ``seed`` of the inputs.

    labels   fact -> label of its right object
    """
    about, frames = inputs[["prompt", "method", "template", "seed"]], []
    for rows in generated:
        texts = list(zip(rows["text"], rows["fact"].map(labels), strict=True))
        tests = {
            m: [response(*pair, m) for pair in texts] for m in ("strict", "lenient", "released")
        }
        frames.append(rows.assign(**tests).merge(about, on="prompt"))
    return pd.concat(frames, ignore_index=True)


def accuracy_by_method(measured: pd.DataFrame, responses: pd.DataFrame) -> pd.DataFrame:
    """``model``, ``relation``, ``method``, ``accuracy`` (mean over prompts and draws), ``test``:
    the two response tests and the multiple-choice test. ``.attrs["models"]``: the models in
    order."""
    tests = {
        "response, strict": (responses, "strict"),
        "response, lenient": (responses, "lenient"),
        "multiple choice": (measured, "correct"),
    }
    keys, frames = ["model", "relation", "method"], []
    for test, (rows, column) in tests.items():
        each = rows.groupby([*keys, "template", "seed"])[column].mean()
        frames.append(each.groupby(keys).mean().rename("accuracy").reset_index().assign(test=test))
    cells = pd.concat(frames)
    cells.attrs["models"] = measured["model"].unique().tolist()
    return cells


def mean_by_method(cells: pd.DataFrame) -> pd.DataFrame:
    """Figure 5: ``test``, ``model``, ``method``, ``accuracy`` (mean over relations) with its 95 %
    bootstrap interval over relations, ``relations``, ``without P176`` (manufacturer, whose human
    prompts speak of a music label)."""
    rows = []
    for key, group in cells.groupby(["test", "model", "method"]):
        values, other = group["accuracy"].to_numpy(), group[group["relation"] != "P176"]
        row = dict(zip(("test", "model", "method"), key, strict=True)) | {"accuracy": values.mean()}
        row |= _ends("accuracy", mean_interval(values)) | {"relations": len(values)}
        rows.append(row | {"without P176": other["accuracy"].mean()})
    return pd.DataFrame(rows)


def lead(cells: pd.DataFrame, other: str) -> pd.DataFrame:
    """Accuracy of ZP-LKE minus that of another method over the relations that have both; index: the
    model; ``value`` with ``low`` and ``high`` (95 % bootstrap over relations), ``n`` (relations).

    cells    one test of ``accuracy_by_method``
    """
    wide = cells.pivot(index=["model", "relation"], columns="method", values="accuracy")
    each = (wide["ZP-LKE"] - wide[other]).dropna()
    rows = {}
    for model in cells.attrs["models"]:
        own = each[model].to_numpy()
        rows[model] = (own.mean(), *mean_interval(own), len(own))
    return pd.DataFrame(rows, index=["value", "low", "high", "n"]).T


def relations_ahead(cells: pd.DataFrame, other: str) -> dict[str, float]:
    """Share of the relations in which ZP-LKE is better than another method by its mean over models,
    of those that differ: ``value``, ``low``, ``high`` (Wilson), ``n``. Ties count for neither."""
    wide = cells.pivot(index="relation", columns=["method", "model"], values="accuracy")
    mean = levelled((wide["ZP-LKE"] - wide[other]).dropna().mean(axis=1))
    ahead, n = int((mean > 0).sum()), int((mean != 0).sum())
    low, high = wilson(ahead, n)
    return {"value": ahead / n if n else np.nan, "low": low, "high": high, "n": n}


def by_separator(measured: pd.DataFrame) -> pd.DataFrame:
    """Figure 6: ``model``, ``between``, ``size`` (facts), ``accuracy`` (Wilson interval), and
    against the blank on the same facts: the paired ``change`` (``paired_change``), ``lost``,
    ``gained`` and McNemar's ``p (Holm)``; NaN for the blank itself."""
    blank = measured[measured["between"] == "a blank"].set_index(["model", "fact"])["correct"]
    rows = []
    for (model, between), own in measured.groupby(["model", "between"], sort=False):
        right, n = own["correct"].sum(), len(own)
        row = {"model": model, "between": between, "size": n, "accuracy": right / n}
        row |= _ends("accuracy", wilson(right, n))
        if between != "a blank":
            pair = blank.loc[model].loc[own["fact"]], own["correct"]
            change, test = paired_change(*pair), mcnemar(*pair)
            row |= {"change": change["value"]} | _ends("change", (change["low"], change["high"]))
            row |= {name: test[name] for name in ("lost", "gained", "p")}
        rows.append(row)
    table = pd.DataFrame(rows)
    return table.assign(**{"p (Holm)": holm(table["p"])}).drop(columns="p")


def by_decision(
    decided: Iterable[tuple[str, pd.DataFrame, pd.DataFrame]], gold: Mapping[str, str]
) -> pd.DataFrame:
    """The choices of every model after every decision: ``decision``, ``model``, ``CHOICES``.

    decided   (decision, inputs, scores) as ``scores.score_decisions`` yields them. For "a blank",
              two rows with other rules of choice are added
    """
    frames = []
    for decision, inputs, scores in decided:
        variant = "released" if decision == "as released" else "kit"
        chosen = {decision: choices(scores, gold, variant=variant)}
        if decision == "as here: a blank":
            chosen["a blank; chosen per token"] = choices(scores, gold, per_token=True)
            chosen["a blank; chosen after the prior"] = choices(pmi(scores, inputs), gold)
        model = scores["model"].iloc[0]
        frames += [own.assign(decision=name, model=model) for name, own in chosen.items()]
    return pd.concat(frames, ignore_index=True)


# ---- section 4.2: which models know what?


def by_relation(choices: pd.DataFrame) -> pd.DataFrame:
    """Accuracy of every relation over all of its facts and draws of examples (``seed``):
    ``relation``, ``accuracy`` (Wilson interval by facts), ``n`` (facts), ``between`` (std over
    draws; NaN for one).
    """
    rows = []
    for relation, group in choices.groupby("relation", sort=False):
        draws, n = group.groupby("seed")["correct"].mean(), group["fact"].nunique()
        row = {"relation": relation, "accuracy": draws.mean()}
        row |= _ends("accuracy", wilson(round(draws.mean() * n), n))
        rows.append(row | {"n": n, "between": draws.std()})
    return pd.DataFrame(rows)


def accuracies(measured: pd.DataFrame) -> pd.DataFrame:
    """``by_relation`` of every model, with the column ``model``."""
    groups = measured.groupby("model", sort=False)
    return pd.concat([by_relation(own).assign(model=m) for m, own in groups], ignore_index=True)


def overall_accuracy(relations: pd.DataFrame) -> dict[str, float]:
    """A model's score on the leaderboard: ``accuracy`` (mean over relations, 95 % bootstrap
    interval over relations), ``std`` over relations (ddof = 1), ``n`` relations. ``relations``: see
    ``by_relation``."""
    values = relations["accuracy"]
    row = {"accuracy": values.mean()} | _ends("accuracy", mean_interval(values))
    return row | {"std": values.std(), "n": len(values)}


def accuracy_matrix(accuracies: pd.DataFrame, models: Iterable[str], family) -> pd.DataFrame:
    """Accuracies, models x relations (figure 7): families in the order of their best model, their
    models by mean accuracy. ``family``: function from a model's name to its family."""
    models, relations = list(models), accuracies["relation"].unique()
    wide = accuracies.pivot(index="model", columns="relation", values="accuracy")
    wide = wide.loc[models, relations]
    means = wide.mean(axis=1)
    best = means.groupby([family(model) for model in models]).max()
    order = sorted(models, key=lambda m: (-best[family(m)], family(m), -means[m]))
    return wide.loc[order].rename_axis(columns=None)


OFTEN = 16  # exposures from which a fact counts as taught often


def leaderboard(measured: pd.DataFrame, exposures: pd.Series | None = None) -> pd.DataFrame:
    """Table 8, best model first: ``rank``, ``model``, the columns of ``overall_accuracy``,
    ``between`` (std over draws, mean over relations; left out for one draw); McNemar's test against
    the next model below on the first draw: ``lost`` (facts that only the upper one knows),
    ``gained``, ``p``, ``p (Holm)``; accuracy over facts by the rules ``per token`` and ``pmi``,
    and, if ``exposures`` (fact -> count) are known, over the facts taught ``OFTEN`` times or
    more."""
    groups = accuracies(measured).groupby("model", sort=False)
    rows = [
        {"model": m} | overall_accuracy(own) | {"between": own["between"].mean()}
        for m, own in groups
    ]
    board = pd.DataFrame(rows).sort_values(
        "accuracy", ascending=False, key=levelled, kind="stable", ignore_index=True
    )
    board.insert(0, "rank", board.index + 1)
    tests = [
        compare(measured, *pair) for pair in zip(board["model"], board["model"][1:], strict=False)
    ]
    tests = pd.DataFrame(tests, columns=["lost", "gained", "p"])
    tests = tests.astype({"lost": "Int64", "gained": "Int64"}).assign(
        **{"p (Holm)": holm(tests["p"])}
    )
    rules = measured.groupby("model")[["per token", "pmi"]].mean()
    board = board.join(tests).join(rules, on="model")
    if exposures is not None:
        often = measured[measured["fact"].map(exposures) >= OFTEN]
        board[f"taught {OFTEN}+"] = board["model"].map(often.groupby("model")["correct"].mean())
    return board if measured["seed"].nunique() > 1 else board.drop(columns="between")


def compare(measured: pd.DataFrame, first: str, second: str) -> dict[str, float]:
    """McNemar's exact test of two models on the same facts, first draw (``stats.mcnemar``)."""
    a, b = (first_draw(measured, m).set_index("fact")["correct"] for m in (first, second))
    return mcnemar(a, b.loc[a.index])


def subsumption(small, large) -> dict[str, float]:
    """The share of the facts known to one model that another model knows as well [zplke, 4.2.2].

    small, large   one verdict per fact, of the same facts

    eta        P(known to the large | known to the small), as the paper defines it; NaN if the small
               one knows nothing
    reversed   P(known to the small | known to the large), which agrees with the paper's numbers
    jaccard    facts known to both / to either
    expected   eta of independent models, which is the accuracy of the large one
    """
    small, large = np.asarray(small, dtype=bool), np.asarray(large, dtype=bool)
    both, share = (small & large).sum(), lambda a, b: float(a / b) if b else np.nan
    rates = {"eta": share(both, small.sum()), "reversed": share(both, large.sum())}
    rates["jaccard"] = share(both, (small | large).sum())
    return rates | {"expected": share(large.sum(), len(large))}


def mean_subsumption(
    small: pd.DataFrame, large: pd.DataFrame, again: pd.DataFrame | None = None
) -> dict[str, float]:
    """``subsumption`` as the paper averages it: per relation, then over the relations with a rate.

    small, large   ``fact``, ``relation``, ``correct``, one row per fact
    again          the small model after another draw of examples: eta's ceiling

    Return ``eta`` with its 95 % bootstrap interval over relations, ``expected`` (mean over the
    relations that count for eta), ``reversed``, ``jaccard``, ``pooled`` (eta over all facts),
    ``relations`` (number that counts), ``of`` (number of all), ``ceiling``; and eta minus the last
    two, paired by relation: ``above expected``, ``below ceiling`` (NaN without ``again``).
    """
    others = {"large": large, "again": large if again is None else again}
    for name, own in others.items():
        small = small.merge(
            own[["fact", "correct"]], on="fact", suffixes=("", f"_{name}"), validate="1:1"
        )
    groups = small.groupby("relation")
    each, ceiling = (
        pd.DataFrame([subsumption(g["correct"], g[f"correct_{name}"]) for _, g in groups])
        for name in others
    )
    counted, top = each[each["eta"].notna()], ceiling["eta"] * (1 if again is not None else np.nan)
    row = {"eta": counted["eta"].mean()} | _ends("eta", mean_interval(counted["eta"]))
    row |= {"expected": counted["expected"].mean()}
    row |= {name: each[name].mean() for name in ("reversed", "jaccard")}
    row["pooled"] = subsumption(small["correct"], small["correct_large"])["eta"]
    row |= {"relations": len(counted), "of": len(each), "ceiling": top.mean()}
    for name, gap in (
        ("above expected", each["eta"] - each["expected"]),
        ("below ceiling", each["eta"] - top),
    ):
        row |= {name: gap.mean()} | _ends(name, mean_interval(gap))
    return row


def subsumptions(measured: pd.DataFrame, pairs: Iterable[tuple[str, str]]) -> pd.DataFrame:
    """``mean_subsumption`` of pairs (smaller, larger) of models after every ``draw`` of examples
    (from 1); the ceiling is that of the smaller model with the draw before (of the first: the
    last)."""
    rows, seeds = [], sorted(measured["seed"].unique())
    of = {key: own for key, own in measured.groupby(["model", "seed"])}
    for small, large in pairs:
        for i, seed in enumerate(seeds):
            again = of[small, seeds[i - 1]] if len(seeds) > 1 else None
            row = {"smaller": small, "larger": large, "draw": i + 1}
            rows.append(row | mean_subsumption(of[small, seed], of[large, seed], again))
    return pd.DataFrame(rows, columns=None if rows else SUBSUMED)


def family_correlations(matrix: pd.DataFrame, family) -> pd.DataFrame:
    """The mean Pearson's r over relations between the models of two families (figure 8), without
    pairs of a model with itself: NaN on the diagonal for a family of one model.

    matrix   models x relations, accuracies;   family: function from a model's name to its family
    """
    pairs = matrix.T.corr(min_periods=3)
    long = pairs.where(~np.eye(len(pairs), dtype=bool)).rename_axis("a").rename_axis("b", axis=1)
    long = long.stack().rename("r").reset_index()
    long = long.assign(a=long["a"].map(family), b=long["b"].map(family))
    names = list(dict.fromkeys(pairs.index.map(family)))
    return long.pivot_table(index="a", columns="b", values="r").reindex(index=names, columns=names)


def between_families(matrix: pd.DataFrame, family) -> dict[str, float]:
    """Mean r over all pairs of models from different families: ``value``, ``low``, ``high`` (95 %
    bootstrap over relations), ``n`` (pairs); NaN without any pair."""
    values, families = matrix.to_numpy(), [family(model) for model in matrix.index]
    pairs = [(i, j) for j in range(len(families)) for i in range(j) if families[i] != families[j]]
    if not pairs:
        return {"value": np.nan, "low": np.nan, "high": np.nan, "n": 0}
    mean_r = lambda at: nanmean([pearson_rows(values[i][at], values[j][at]) for i, j in pairs], 0)
    low, high = percentile_interval(bootstrap(mean_r, values.shape[1]))
    r = float(mean_r(np.arange(values.shape[1])[None])[0])
    return {"value": r, "low": low, "high": high, "n": len(pairs)}


def spread_of_relations(means: pd.Series, sizes: pd.Series) -> dict[str, float]:
    """Variance of accuracy over relations beyond what the draw of facts gives at most: ``value``
    with ``low`` and ``high`` (95 % delete-one jackknife), ``n`` (relations).

    means, sizes   relation -> mean accuracy, number of facts
    """
    noise = means * (1 - means) / sizes
    excess = lambda kept: means[kept].var() - noise[kept].mean()
    left_out = np.array([excess(means.index != relation) for relation in means.index])
    value = excess(means.index)
    low, high = jackknife_interval(value, left_out)
    return {"value": value, "low": float(low), "high": float(high), "n": len(means)}


def guessers(options: pd.DataFrame, asked: pd.DataFrame, examples: pd.DataFrame) -> pd.DataFrame:
    """Baselines without a model, one row per fact: ``relation``, ``fact`` and the probability that
    each rule is right.

    options    ``fact``, ``candidate``, ``label``
    asked      ``fact``, ``relation``, ``subject`` (its label), ``gold`` (the right candidate)
    examples   ``relation``, ``object`` (label)

    copy       take the longest option that is part of the subject; without one, guess
    majority   take the most frequent object of the examples; if no option is one, guess
    in_subject, in_examples   1 if the right object is part of the subject, or an example's object
    """
    counts = examples.groupby("relation")["object"].value_counts().rename("shown").reset_index()
    counts = counts.rename(columns={"object": "label"})
    rows = options.merge(asked, on="fact", validate="many_to_one")
    rows = rows.merge(counts, on=["relation", "label"], how="left").fillna({"shown": 0})
    pairs = zip(rows["label"], rows["subject"], strict=True)
    inside = [normalized(label) in normalized(subject) for label, subject in pairs]
    rows["inside"] = np.where(inside, rows["label"].str.len(), 0)
    right = rows["candidate"] == rows["gold"]
    for rule, column in (("copy", "inside"), ("majority", "shown")):
        best = rows[column] == rows.groupby("fact")[column].transform(
            "max"
        )  # all, if none is found
        rows[rule] = (best & right) / best.groupby(rows["fact"]).transform("sum")
    rows["in_subject"], rows["in_examples"] = (
        right & (rows["inside"] > 0),
        right & (rows["shown"] > 0),
    )
    columns = ["copy", "majority", "in_subject", "in_examples"]
    return rows.groupby(["relation", "fact"], sort=False)[columns].sum().astype(float).reset_index()
