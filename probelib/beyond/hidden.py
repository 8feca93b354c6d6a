"""Does a probe on hidden states find knowledge that log-probabilities do not show? (Inside-Out [gekhman], with known ground
truth)

A scorer gives each candidate answer of a fact a number. K is the share of pairs (right, wrong answer) in the right order, mean
over facts; K* the share of facts with all pairs in order. A tie is a loss for K*, half a pair for K. The probe is a logistic
regression on the last-token state of the statement. It is never fitted on the facts that it scores. Three variants show what it
learns from elsewhere:

    facts held out         fitted on other facts of the same relations: it may learn which objects are frequent
    relations held out     fitted on other relations only
    subject unknown        as "facts held out", but scored on statements about a subject that does not exist: shows what the
                           object alone reveals

Knowledge is hidden if log-probability puts a wrong answer first and the probe does better than the object alone. It can be found
only in facts taught a few times: of facts taught often, nearly all answers are right.
"""

import numpy as np
import pandas as pd

from probelib import prompts, report, stats, store
from probelib.beyond.suite.object_prior import INVENTED
from probelib.facts.model import Facts
from probelib.report import span
from probelib.report.legacy import Artifact

LIKELY, PROBE, OBJECT = "log-probability", "probe, facts held out", "probe, subject unknown"
FEW, MANY = (2, 16), 32  # exposures of facts taught a few times; of those taught often
SPLITS = {"facts held out": "fact", "relations held out": "relation", "subject unknown": "fact"}


def candidate_statements(asked: Facts, subject: str | None = None) -> pd.DataFrame:
    """The first statement of every fact with its right object and with each distractor: a frame of ``prompts`` with ``right``
    (bool). ``subject``: another name in place of every subject."""
    rows = prompts.checks(asked, "{statement}")
    rows = rows[rows["template"] == 1].reset_index(drop=True)
    if subject is not None:
        label = dict(zip(asked.facts["fact"], asked.label(asked.facts["subject"]), strict=True))
        pairs = zip(rows["text"], rows["fact"], strict=True)
        rows["text"] = [text.replace(label[fact], subject, 1) for text, fact in pairs]
    return rows.assign(right=rows["context"] == "true")


def probe_scores(states: np.ndarray, scored: np.ndarray, right, held_out, folds: int = 5, seed: int = 0) -> np.ndarray:
    """Log-odds that a statement is right, [statements], by a probe that is fitted on the other folds.

    states, scored   [statements, width]: states to fit on, and states to score (usually the same)
    held_out         [statements]: unit (fact, relation) of each statement; all statements of a unit are in one fold
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    number, units = pd.factorize(np.asarray(held_out))
    fold = np.random.default_rng(seed).permutation(len(units))[number] % min(folds, len(units))
    found, right = np.full(len(states), np.nan), np.asarray(right)
    for left_out in np.unique(fold):
        train, test = fold != left_out, fold == left_out
        if len(set(right[train])) == 2:
            scale = StandardScaler().fit(states[train])
            probe = LogisticRegression(C=0.1, max_iter=500, class_weight="balanced")
            fitted = probe.fit(scale.transform(states[train]), right[train])
            found[test] = fitted.decision_function(scale.transform(scored[test]))
    return found


def pairs_in_order(scores: pd.DataFrame) -> pd.DataFrame:
    """Per fact ``K`` (share of its wrong candidates that the right one beats, ties half) and ``K*`` (whether it beats all).

    scores   ``fact``, ``right`` (bool), ``score``

    >>> scores = pd.DataFrame({"fact": "a", "right": [True, False, False], "score": [0.5, 0.1, 0.5]})
    >>> pairs_in_order(scores).to_dict("records")
    [{'K': 0.75, 'K*': 0.0}]
    """
    best = scores[scores["right"]].set_index("fact")["score"]
    wrong = scores[~scores["right"]]
    gap = np.sign(wrong["fact"].map(best) - wrong["score"])
    columns = {"K": (gap + 1) / 2, "K*": (gap > 0).astype(float)}
    by_fact = pd.DataFrame(columns).groupby(wrong["fact"]).mean()
    return by_fact.assign(**{"K*": by_fact["K*"] // 1})


def score_hidden(model, asked: Facts, folder, seed: int = 0) -> pd.DataFrame:
    """K and K* of every fact by every scorer: ``scorer``, ``fact``, ``K``, ``K*``."""
    statements = candidate_statements(asked)
    objects = pd.concat([asked.facts[["fact", "object"]].assign(number=0), asked.distractors], ignore_index=True)
    objects = objects.assign(candidate=objects["number"].astype(str), label=asked.label(objects["object"]))
    plain = prompts.paraphrases(asked)
    likely = store.score(model, plain[plain["template"] == 1], objects[["fact", "candidate", "label"]], folder)
    likely = likely.assign(right=likely["candidate"] == "0", score=likely["logprob"])
    parts = {LIKELY: likely[["fact", "right", "score"]]}
    states = model.hidden_states(statements["text"].tolist())[0]
    unknown = model.hidden_states(candidate_statements(asked, INVENTED[0])["text"].tolist())[0]
    for name, column in SPLITS.items():
        read = unknown if name == "subject unknown" else states
        score = probe_scores(states, read, statements["right"], statements[column], seed=seed)
        parts[f"probe, {name}"] = statements[["fact", "right"]].assign(score=score).dropna()
    found = {name: pairs_in_order(scores) for name, scores in parts.items() if len(scores)}
    return pd.concat(found, names=["scorer"]).reset_index()


def by_teaching(table: pd.DataFrame, design: pd.DataFrame) -> pd.DataFrame:
    """``table`` (``score_hidden`` with ``model``) with ``facts``: never taught, taught a few times, the same with a wrong answer,
    taught often. Facts with a wrong answer have rows of two kinds; facts with other exposure counts are left out.

    The answer is wrong if a wrong candidate is at least as probable as the right one.
    """
    few, many = f"taught {FEW[0]} to {FEW[1]} times", f"taught {MANY} times or more"
    rows = table.merge(design[["model", "fact", "exposures"]], on=["model", "fact"])
    best = rows[rows["scorer"] == LIKELY].set_index(["model", "fact"])["K*"]
    wrong = (pd.MultiIndex.from_frame(rows[["model", "fact"]]).map(best) == 0) & rows["exposures"].between(*FEW)
    levels = [rows["exposures"] == 0, rows["exposures"].between(*FEW), rows["exposures"] >= MANY]
    kind = np.select(levels, ["never taught", few, many], "")
    parts = [rows.assign(facts=kind), rows[wrong].assign(facts=f"{few}, answer wrong")]
    found = pd.concat(parts, ignore_index=True)
    order = ["never taught", few, f"{few}, answer wrong", many]
    return found[found["facts"] != ""].assign(facts=lambda rows: pd.Categorical(rows["facts"], order))


def hidden_knowledge(table: pd.DataFrame, design: pd.DataFrame) -> Artifact:
    """K and K* by scorer and model, by how often the facts were taught; ``table``: ``score_hidden`` with a column ``model``."""
    rows, found = by_teaching(table, design), []
    for (model, facts, scorer), own in rows.groupby(["model", "facts", "scorer"], sort=False, observed=True):
        interval = stats.mean_interval(own["K"])
        found.append((model, facts, scorer, len(own), own["K"].mean(), *interval, own["K*"].mean()))
    frame = pd.DataFrame(found, columns=["model", "facts", "scorer", "n", "K", "low", "high", "K*"])
    frame["facts"] = frame["facts"].astype(rows["facts"].dtype)
    frame = frame.sort_values(["model", "facts"], kind="stable", ignore_index=True)
    caption = (
        f"{' and '.join(dict.fromkeys(frame['model']))}, one panel each. K: share of pairs of the right answer of a fact and "
        "one of its distractors in the right order (a tie counts half), mean over facts, with 95 % bootstrap intervals over "
        "facts (none where all are in order), by how often the facts were taught; n: number of facts, for each model where "
        "they differ. Answer wrong: log-probability puts a distractor first or level. Log-probability: of the answer after a "
        "question. Probe: logistic regression on the last-token state of the statement, fitted on other facts, or on other "
        "relations. Subject unknown: the probe of other facts, shown a subject that does not exist, so what the object alone "
        "tells. Line: chance. The CSV also has K*, the share of facts with all pairs in order."
    )
    alt = "; ".join(f"{row.model}, {row.facts}, {row.scorer}: {row.K:.2f}" for row in frame.itertuples())
    return Artifact("beyond/hidden_knowledge", frame, caption, hidden_finding(rows), _hidden(frame), alt)


def hidden_finding(rows: pd.DataFrame) -> str:
    """Whether the probe finds knowledge of facts that are answered wrongly; ``rows``: ``by_teaching``."""
    few, said = rows["facts"].cat.categories[1], ""
    wrong = rows[rows["facts"] == f"{few}, answer wrong"]
    every, wide = (
        own.pivot_table("K", "fact", "scorer") for own in (rows[rows["facts"] == few], wrong)
    )  # mean over models
    if {LIKELY, PROBE} <= set(every):
        said = (
            f"On facts {few} (n = {len(every)}, mean over models), log-probability puts {_share(every[LIKELY])} of the pairs "
            f"in order, the probe {_share(every[PROBE])}. "
        )
    if not {PROBE, OBJECT} <= set(wide) or len(wide) < 2:
        return f"{said}Too few of them have a wrong answer to look for hidden knowledge."
    gap = wide[PROBE] - wide[OBJECT]
    low, high = stats.mean_interval(gap)
    by_model = []
    for model, own in wrong.groupby("model", sort=False):
        shares = own.groupby("scorer")["K"].mean().reindex([PROBE, OBJECT]).map("{:.1%}".format)
        by_model.append(f"{' and '.join(shares)} in {model} (n = {own['fact'].nunique()} facts)")
    said += (
        "Where its answer is wrong, the probe and the object alone put these shares of the pairs in order: "
        f"{'; '.join(by_model)}. Over the {len(wide)} facts that some model answers wrongly (mean per fact over the models "
        f"that do), the difference is {100 * gap.mean():+.1f} percentage points {span(100 * low, 100 * high, '.1f')}. "
    )
    if low > 0:
        return f"{said}So the states hold knowledge of these facts that the answers do not show."
    return f"{said}So no hidden knowledge is found: the probe is not significantly ahead of the object alone."


def _share(values: pd.Series) -> str:
    """Mean over facts with its interval."""
    return f"{values.mean():.1%} {span(*stats.mean_interval(values), '.1%')}"


def _hidden(frame: pd.DataFrame):
    import matplotlib.pyplot as plt

    models, kinds = list(dict.fromkeys(frame["model"])), list(frame["facts"].cat.categories)
    scorers = list(dict.fromkeys(frame["scorer"]))
    figure, axes = plt.subplots(len(models), 1, figsize=(3.7, 1.3 + 1.7 * len(models)), sharex=True, squeeze=False)
    for axis, model in zip(axes[:, 0], models, strict=True):
        for place, scorer in enumerate(scorers):
            own = frame[(frame["model"] == model) & (frame["scorer"] == scorer)]
            at = own["facts"].cat.codes + 0.14 * (place - (len(scorers) - 1) / 2)
            look = report.style_at(place) | {"linestyle": "none"}
            axis.plot(at, own["K"], label=scorer, markersize=4.5, **look)
            axis.vlines(at, own["low"], own["high"], color=look["color"], linewidth=1.2)
        axis.axhline(0.5, color="0.5", linewidth=0.8)
        axis.set_title(model, fontsize=8)
        axis.set(ylabel="K", ylim=(None, 1.03))
    names = ["never\ntaught", f"{FEW[0]} to {FEW[1]}\ntimes", "the same,\nanswer\nwrong", f"{MANY} times\nor more"]
    counts = [list(dict.fromkeys(frame.loc[frame["facts"] == kind, "n"])) for kind in kinds]  # where models differ, all
    labels = [f"{name}\nn = {', '.join(map(str, own or [0]))}" for name, own in zip(names, counts, strict=True)]
    axes[-1, 0].set_xticks(range(len(kinds)), labels, fontsize=7.5)
    handles = axes[0, 0].get_legend_handles_labels()
    figure.legend(*handles, loc="outside upper center", ncols=2, fontsize=7.5, columnspacing=1, handletextpad=0.2)
    return figure
