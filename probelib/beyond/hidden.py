"""Does a probe on hidden states know what log-probabilities do not? (Inside-Out [gekhman], against a known truth)

A scorer gives each candidate answer of a fact a number. K is the share of pairs (right, wrong answer) in the right order,
mean over
facts; K* the share of facts with all pairs in order. A tie is a loss for K*, half a pair for K. The probe is a logistic
regression on
the last-token state of the statement. It is never fitted on the facts that it scores; and, to see what leaks, in three ways:

    facts held out         other facts of the same relations: it may learn which objects are frequent
    relations held out     other relations only
    subject unknown        as "facts held out", but scored on statements about a subject that does not exist: what the
    object alone tells
"""

import numpy as np
import pandas as pd

from probelib import prompts, stats, store
from probelib.beyond.suite.object_prior import INVENTED
from probelib.facts.model import Facts
from probelib.report import Artifact, span

SPLITS = {"facts held out": "fact", "relations held out": "relation", "subject unknown": "fact"}


def candidate_statements(asked: Facts, subject: str | None = None) -> pd.DataFrame:
    """The first statement of every fact with its right object and with each distractor: a frame of ``prompts`` with
    ``right`` (bool);
    ``subject``: another name in place of every subject."""
    rows = prompts.checks(asked, "{statement}")
    rows = rows[rows["template"] == 1].reset_index(drop=True)
    if subject is not None:
        label = dict(zip(asked.facts["fact"], asked.label(asked.facts["subject"]), strict=True))
        rows["text"] = [
            text.replace(label[fact], subject, 1) for text, fact in zip(rows["text"], rows["fact"], strict=True)
        ]
    return rows.assign(right=rows["context"] == "true")


def probe_scores(states: np.ndarray, scored: np.ndarray, right, held_out, folds: int = 5, seed: int = 0) -> np.ndarray:
    """Log-odds that a statement is right, [statements], by a probe that is fitted on the other folds.

    states, scored   [statements, width]: what it is fitted on, and what it reads (usually the same)
    held_out         [statements]: the name of the unit (fact, relation) that no fold shares with another
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
            fitted = LogisticRegression(C=0.1, max_iter=500, class_weight="balanced").fit(
                scale.transform(states[train]), right[train]
            )
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
    return pd.DataFrame(
        {"K": ((gap + 1) / 2).groupby(wrong["fact"]).mean(), "K*": (gap > 0).groupby(wrong["fact"]).mean() // 1}
    )


def score_hidden(model, asked: Facts, folder, seed: int = 0) -> pd.DataFrame:
    """K and K* of every fact by every scorer: ``scorer``, ``fact``, ``K``, ``K*``."""
    statements = candidate_statements(asked)
    objects = pd.concat([asked.facts[["fact", "object"]].assign(number=0), asked.distractors], ignore_index=True)
    objects = objects.assign(candidate=objects["number"].astype(str), label=asked.label(objects["object"]))
    plain = prompts.paraphrases(asked)
    likely = store.score(model, plain[plain["template"] == 1], objects[["fact", "candidate", "label"]], folder)
    likely = likely.assign(right=likely["candidate"] == "0", score=likely["logprob"])
    parts = {"log-probability": likely[["fact", "right", "score"]]}
    states = model.hidden_states(statements["text"].tolist())[0]
    unknown = model.hidden_states(candidate_statements(asked, INVENTED[0])["text"].tolist())[0]
    for name, column in SPLITS.items():
        read = unknown if name == "subject unknown" else states
        score = probe_scores(states, read, statements["right"], statements[column], seed=seed)
        parts[f"probe, {name}"] = statements[["fact", "right"]].assign(score=score).dropna()
    found = {name: pairs_in_order(scores) for name, scores in parts.items() if len(scores)}
    return pd.concat(found, names=["scorer"]).reset_index()


def hidden_knowledge(table: pd.DataFrame, design: pd.DataFrame, taught: int = 32) -> Artifact:
    """K and K* by scorer and model, of taught and of never-taught facts; ``table``: ``score_hidden`` with a column ``model``."""
    rows = table.merge(design[["model", "fact", "exposures"]], on=["model", "fact"])
    kind = np.select([rows["exposures"] >= taught, rows["exposures"] == 0], ["taught", "never"], "")
    found = []
    for keys, own in rows[kind != ""].groupby(["model", "scorer", kind[kind != ""]], sort=False):
        interval = stats.mean_interval(own["K"])
        found.append((*keys, len(own), own["K"].mean(), *interval, own["K*"].mean()))
    frame = pd.DataFrame(found, columns=["model", "scorer", "facts", "n", "K", "low", "high", "K*"])
    mean = frame[frame["facts"] == "taught"].groupby("scorer")["K"].mean()
    probe, plain = mean.get("probe, relations held out", np.nan), mean["log-probability"]
    own = frame[(frame["facts"] == "taught") & (frame["scorer"] == "log-probability")].iloc[0]
    finding = (
        f"On taught facts a probe that never saw the relation puts {probe:.1%} of the pairs in order, log-probability "
        f"{plain:.1%} ({own['model']}: 95 % CI {span(own['low'], own['high'])}), the object alone "
        f"{mean.get('probe, subject unknown', np.nan):.1%}."
    )
    caption = (
        "K (share of pairs of a right and a wrong answer in the right order, mean over facts, 95 % bootstrap "
        f"interval) and K* (all pairs of a fact in order), for facts taught at least {taught} times and never taught. "
        "Probe: logistic regression on the last-token state of the statement, fitted on other facts, or on other "
        "relations; subject unknown: what the object alone tells (leakage)."
    )
    return Artifact("beyond/hidden_knowledge", frame, caption, finding)
