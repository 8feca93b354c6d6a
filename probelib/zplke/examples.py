"""ZP-LKE, section 3: the effects of the number, the position and the correctness of the examples."""

from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd

from probelib.stats import mean_interval
from probelib.zplke.measures import choices, n95, pmi


def by_position(scores: pd.DataFrame, prompts: pd.DataFrame, examples: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """The probability of every object of a sequence (figure 4): ``context``, ``seed``, ``position``, ``fact``, ``probability``,
    ``role``.

    scores     of each example's object after each prompt of ``prompts.sequence``
    examples   context -> its examples (``prompts.replaced``)
    role       "replaced", "after" (directly after a replaced one, and correct) or "rest"
    """
    frame = scores.merge(prompts[["prompt", "context", "seed"]], on="prompt", validate="one_to_one")
    frame["position"] = frame["prompt"].str.rsplit("|", n=1).str[1].astype(int)
    kinds = pd.concat([rows.assign(context=context) for context, rows in examples.items()])
    kinds = kinds.sort_values(["context", "seed", "position"])
    before = kinds.groupby(["context", "seed"])["kind"].shift(fill_value="correct")
    kinds["role"] = np.select([kinds["kind"] != "correct", before != "correct"], ["replaced", "after"], "rest")
    columns = ["context", "seed", "position"]
    frame = frame.merge(kinds[[*columns, "role"]], on=columns, validate="one_to_one")
    return frame.assign(probability=np.exp(frame["logprob"]))[[*columns, "fact", "probability", "role"]]


def mark_known(positions: pd.DataFrame, level: float = 0.5) -> pd.DataFrame:
    """``positions`` of one model with the column ``known``: whether the pair at this position has a mean probability of
    ``level`` or more in the correct sequences of the *other* draws. False if no other draw has the pair.

    If pairs were chosen by the sequence that is then changed, their probability would fall by regression to the mean.
    """
    correct = positions[positions["context"] == "correct"]
    by_fact = correct.groupby("fact")["probability"]
    others = by_fact.transform("size") - 1
    elsewhere = (by_fact.transform("sum") - correct["probability"]) / others.where(others > 0)
    marks = correct[["seed", "position"]].assign(known=elsewhere >= level)
    return positions.merge(marks, on=["seed", "position"], how="left", validate="many_to_one")


CHANGES = ["n", "before", "probability", "change", "low", "high"]


def harm(positions: pd.DataFrame, baseline: str = "correct") -> pd.DataFrame:
    """Effect of replaced examples on the others, per context and role: the mean probability, the mean of the same positions in
    the untouched sequence, and their difference with its 95 % bootstrap interval over positions (none for fewer than 10).
    Positions before the first replaced pair cannot change, and are left out."""
    groups = _before_and_after(positions, baseline).groupby(["context", "role"], sort=False)
    rows = [(*key, *_change(group)) for key, group in groups]
    return pd.DataFrame(rows, columns=["context", "role", *CHANGES])


def harm_by_kind(positions: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """(frame, description of the pairs). The frame has ``CHANGES`` of one model per kind of example, over the pairs that are not
    replaced: those that the model knows (``mark_known``), or all if fewer than 10 of a kind are known.

    Rows: "unknown" and "incorrect" (compared with the untouched sequence), and "incorrect minus unknown" (the sequence with
    incorrect examples compared with that with unknown ones; both have the same positions replaced). A pair counts once, with its
    mean over layouts.
    """
    pairs = _before_and_after(mark_known(positions), "correct")
    pairs = pairs[pairs["role"] != "replaced"].assign(kind=lambda rows: rows["context"].str.split(",").str[0])
    pairs = (
        pairs.groupby(["kind", "seed", "position", "known"])[["probability_before", "probability"]].mean().reset_index()
    )
    known = pairs[pairs["known"]]
    few = (known["kind"].value_counts().reindex(pairs["kind"].unique()).fillna(0) < 10).any()
    chosen, what = (pairs, "untouched pairs") if few else (known, "untouched pairs that the model knows")
    groups = {kind: chosen[chosen["kind"] == kind].set_index(["seed", "position"]) for kind in ("unknown", "incorrect")}
    unknown = groups["unknown"]["probability"].rename("probability_before")
    groups["incorrect minus unknown"] = groups["incorrect"][["probability"]].join(unknown, how="inner")
    return pd.DataFrame({kind: _change(group) for kind, group in groups.items()}, CHANGES).T, what


def _before_and_after(positions: pd.DataFrame, baseline: str) -> pd.DataFrame:
    """The pairs of the changed sequences from the first replaced one on, with ``probability_before``, their probability in the
    untouched sequence."""
    columns = ["seed", "position"]
    untouched = positions[positions["context"] == baseline][[*columns, "probability"]]
    pairs = positions[positions["context"] != baseline].merge(untouched, on=columns, suffixes=("", "_before"))
    replaced = pairs["position"].where(pairs["role"] == "replaced")
    return pairs[pairs["position"] >= replaced.groupby([pairs["context"], pairs["seed"]]).transform("min")]


def _change(pairs: pd.DataFrame) -> tuple:
    """``CHANGES`` of pairs with their ``probability`` and ``probability_before``."""
    change = (pairs["probability"] - pairs["probability_before"]).to_numpy()
    limits = mean_interval(change) if len(change) >= 10 else (np.nan, np.nan)
    return (len(pairs), pairs["probability_before"].mean(), pairs["probability"].mean(), change.mean(), *limits)


def curves(measured: pd.DataFrame) -> pd.DataFrame:
    """Figure 3: ``model``, ``shots``, ``mean`` and ``std`` of the accuracy over draws, ``n95``."""
    each = measured.groupby(["model", "shots", "seed"])["correct"].mean()
    table = each.groupby(["model", "shots"]).agg(["mean", "std"]).reset_index()
    enough = {model: n95(rows.set_index("shots")["mean"]) for model, rows in table.groupby("model")}
    return table.assign(n95=table["model"].map(enough))


def gains(measured: pd.DataFrame) -> pd.DataFrame:
    """Per model the gain from the shortest to the longest list: ``model``, ``first`` and ``last`` accuracy, their difference
    ``gain`` with ``low`` and ``high`` (95 % bootstrap over facts), ``std first`` and ``std last`` (over draws)."""
    rows, ends = [], (measured["shots"].min(), measured["shots"].max())
    for model, own in measured.groupby("model", sort=False):
        first, last = (own[own["shots"] == n] for n in ends)
        by_fact = [part.groupby("fact")["correct"].mean() for part in (first, last)]
        low, high = mean_interval(by_fact[1] - by_fact[0])
        stds = [part.groupby("seed")["correct"].mean().std() for part in (first, last)]
        rows.append((model, by_fact[0].mean(), by_fact[1].mean(), (by_fact[1] - by_fact[0]).mean(), low, high, *stds))
    return pd.DataFrame(rows, columns=["model", "first", "last", "gain", "low", "high", "std first", "std last"])


def longest(measured: pd.DataFrame) -> pd.DataFrame:
    """The rows with the most examples."""
    return measured[measured["shots"] == measured["shots"].max()]


def best_models(measured: pd.DataFrame, n: int = 4) -> list[str]:
    """The ``n`` models of the highest accuracy with the most examples, best first."""
    accuracy = longest(measured).groupby("model", sort=False)["correct"].mean().to_dict()
    return sorted(accuracy, key=accuracy.get, reverse=True)[:n]


def measure_positions(
    scores: Iterable[pd.DataFrame], inputs: pd.DataFrame, sequences: Mapping[str, pd.DataFrame]
) -> pd.DataFrame:
    """``by_position`` of every model, with the column ``model``: best model first, by its mean probability in the correct
    sequence. A weak model knows few pairs whose probability could fall."""
    frames = {rows["model"].iloc[0]: by_position(rows, inputs, sequences) for rows in scores}
    level = {model: rows["probability"][rows["context"] == "correct"].mean() for model, rows in frames.items()}
    order = sorted(level, key=level.get, reverse=True)
    return pd.concat([frames[model].assign(model=model) for model in order], ignore_index=True)


def harm_by_model(positions: pd.DataFrame) -> pd.DataFrame:
    """``harm`` of every model, with the column ``model``, without the replaced pairs themselves."""
    rows = [harm(own).assign(model=model) for model, own in positions.groupby("model", sort=False)]
    rows = pd.concat(rows)
    return rows[rows["role"] != "replaced"].reset_index(drop=True)


def by_decision(decided: Iterable[tuple[str, pd.DataFrame, pd.DataFrame]], gold: Mapping[str, str]) -> pd.DataFrame:
    """Accuracy per decision (rows) and model (columns).

    decided   (decision, inputs, scores) as ``scores.score_decisions`` yields them. For "a blank", two rows with other rules of
              choice are added
    """
    rows = []
    for decision, inputs, scores in decided:
        model, variant = scores["model"].iloc[0], "released" if decision == "as released" else "kit"
        chosen = {decision: choices(scores, gold, variant=variant)}
        if decision == "as here: a blank":
            chosen["a blank; chosen per token"] = choices(scores, gold, per_token=True)
            chosen["a blank; chosen after the prior"] = choices(pmi(scores, inputs), gold)
        rows += [(name, model, own["correct"].mean()) for name, own in chosen.items()]
    frame = pd.DataFrame(rows, columns=["decision", "model", "accuracy"])
    table = frame.pivot(index="decision", columns="model", values="accuracy")
    return table.loc[frame["decision"].unique(), frame["model"].unique()].rename_axis(columns=None)
