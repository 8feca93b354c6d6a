"""Choosing among candidates: what any frame of candidate scores allows to say, whoever computed it.

A model chooses the candidate of highest log-probability; a tie with the right one is wrong (as in ZP-LKE and Distractors).
"""

import numpy as np
import pandas as pd
import scipy.special

from probelib.stats import wilson


def choices(scores: pd.DataFrame) -> pd.DataFrame:
    """What the model chooses, a row a fact: ``model``, ``relation``, ``fact``, ``wrong`` (number of wrong candidates),
    ``beaten`` (those strictly less probable than the right one), ``right``, ``probability`` (of the right one among the
    candidates), ``confidence`` (the largest such probability), ``chosen`` (label).

    scores  ``model``, ``relation``, ``fact``, ``candidate``, ``label``, ``gold`` (the right candidate), ``logprob`` (nats)
    """
    rows = []
    for (model, relation, fact), group in scores.groupby(["model", "relation", "fact"], sort=False):
        logprob, gold = group["logprob"].to_numpy(dtype=float), (group["candidate"] == group["gold"]).to_numpy()
        right = logprob[gold].max()  # the best of several labels
        beaten = int((logprob[~gold] < right).sum())
        share = scipy.special.softmax(logprob)
        rows.append(
            {
                "model": model,
                "relation": relation,
                "fact": fact,
                "wrong": int((~gold).sum()),
                "beaten": beaten,
                "right": beaten == (~gold).sum(),
                "probability": float(share[gold].sum()),
                "confidence": float(share.max()),
                "chosen": group["label"].iloc[int(logprob.argmax())],
            }
        )
    return pd.DataFrame(rows)


def accuracy(choices: pd.DataFrame) -> pd.DataFrame:
    """Accuracy of each relation: ``relation``, ``n``, ``candidates``, ``accuracy`` with ``low`` and ``high`` (Wilson, 95 %),
    ``chance`` (1 / candidates)."""
    rows = []
    for relation, group in choices.groupby("relation", sort=False):
        low, high = wilson(group["right"].sum(), len(group))
        candidates = group["wrong"].mean() + 1
        rows.append((relation, len(group), candidates, group["right"].mean(), low, high, 1 / candidates))
    return pd.DataFrame(rows, columns=["relation", "n", "candidates", "accuracy", "low", "high", "chance"])


def accuracy_at(choices: pd.DataFrame, thresholds) -> pd.DataFrame:
    """Accuracy@K (ZP-LKE, Eq. 5): accuracy of the facts whose confidence exceeds K: ``K``, ``n``, ``kept`` (share), ``accuracy``,
    ``low``, ``high``. NaN where none is left.

    >>> c = pd.DataFrame({"confidence": [.9, .8, .6, .3], "right": [True, True, False, True]})
    >>> accuracy_at(c, [0, .5, .85])["accuracy"].round(3).tolist()
    [0.75, 0.667, 1.0]
    """
    rows = []
    for threshold in thresholds:
        kept = choices.loc[choices["confidence"] > threshold, "right"]
        low, high = wilson(kept.sum(), len(kept))
        rows.append((threshold, len(kept), len(kept) / len(choices), kept.mean(), low, high))
    return pd.DataFrame(rows, columns=["K", "n", "kept", "accuracy", "low", "high"])


def random_distractors(choices: pd.DataFrame, n: int) -> pd.DataFrame:
    """Min@n and Avg@n (Distractors, Eq. 2) under random distractors, as their expectation over all draws of ``n`` of the wrong
    candidates, so that no draw is needed: ``fact``, ``min`` = C(beaten, n) / C(wrong, n), ``avg`` = beaten / wrong.

    NaN for a fact with fewer than ``n`` wrong candidates.

    >>> c = pd.DataFrame({"fact": ["a"], "wrong": [4], "beaten": [3]})
    >>> random_distractors(c, 2)[["min", "avg"]].values.tolist()
    [[0.5, 0.75]]
    """
    wrong, beaten = (choices[c].to_numpy(dtype=float) for c in ("wrong", "beaten"))
    enough = wrong >= n
    share = scipy.special.comb(beaten, n) / np.where(enough, scipy.special.comb(wrong, n), np.nan)
    return pd.DataFrame({"fact": choices["fact"], "min": share, "avg": np.where(enough, beaten / wrong, np.nan)})
