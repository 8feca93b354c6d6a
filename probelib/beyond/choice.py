"""Multiple choice from any frame of candidate scores, also of other programs (see ``imported``).

The choice is ZP-LKE's (``zplke.choices``): the candidate with the highest log-probability; a tie with the gold answer is wrong.
"""

import numpy as np
import pandas as pd
import scipy

from probelib.stats import wilson
from probelib.zplke import measures as zplke


def choose_candidates(scores: pd.DataFrame) -> pd.DataFrame:
    """One row per fact: ``model``, ``wrong`` (number of wrong candidates), ``beaten`` (those strictly less probable than the gold
    answer), ``chosen`` (label), and the columns of ``zplke.choices``. Empty if there are no scores.

    scores  ``model``, ``relation``, ``fact``, ``candidate``, ``label``, ``gold`` (the right candidate), ``logprob`` (nats)
    """
    if scores.empty:
        return pd.DataFrame()
    return pd.concat([_of_one(own) for _, own in scores.groupby("model", sort=False)], ignore_index=True)


def _of_one(scores: pd.DataFrame) -> pd.DataFrame:
    """``choose_candidates`` of one model."""
    scores = scores.assign(prompt=scores["fact"])  # candidates of a fact may have prompts of their own
    gold = dict(zip(scores["fact"], scores["gold"], strict=True))
    chosen = zplke.choices(scores, gold)
    right = scores[scores["candidate"] == scores["gold"]].set_index("fact")["logprob"]
    beaten = (scores["logprob"] < scores["fact"].map(right)).groupby(scores["fact"]).sum()
    labels = dict(zip(zip(scores["fact"], scores["candidate"], strict=True), scores["label"], strict=True))
    return chosen.assign(
        model=scores["model"].iloc[0],
        wrong=chosen["n_options"] - 1,
        beaten=chosen["fact"].map(beaten),
        chosen=[labels[pair] for pair in zip(chosen["fact"], chosen["predicted"], strict=True)],
    )


def accuracy_by_relation(choices: pd.DataFrame) -> pd.DataFrame:
    """Accuracy per relation: ``relation``, ``n``, ``candidates``, ``accuracy`` with ``low`` and ``high`` (Wilson, 95 %),
    ``chance`` (1 / candidates), ``p`` (one-sided exact binomial test against guessing)."""
    rows = []
    for relation, group in choices.groupby("relation", sort=False):
        right, n = int(group["correct"].sum()), len(group)
        candidates = group["wrong"].mean() + 1
        p = scipy.stats.binomtest(right, n, 1 / candidates, "greater").pvalue
        rows.append((relation, n, candidates, group["correct"].mean(), *wilson(right, n), 1 / candidates, p))
    return pd.DataFrame(rows, columns=["relation", "n", "candidates", "accuracy", "low", "high", "chance", "p"])


def random_distractors(choices: pd.DataFrame, n: int) -> pd.DataFrame:
    """Expectation of Min@n and Avg@n [distractors, Eq. 2] over all draws of ``n`` random distractors: ``fact``, ``min`` =
    C(beaten, n) / C(wrong, n), ``avg`` = beaten / wrong, whatever n.

    A fact with fewer than ``n`` wrong candidates takes all of them; one without any has NaN.

    >>> c = pd.DataFrame({"fact": ["a"], "wrong": [4], "beaten": [3]})
    >>> random_distractors(c, 2)[["min", "avg"]].values.tolist()
    [[0.5, 0.75]]
    """
    wrong, beaten = (choices[c].to_numpy(dtype=float) for c in ("wrong", "beaten"))
    turn = np.arange(n)[:, None]  # one more wrong candidate is drawn per turn, while there are any: [n, 1]
    with np.errstate(invalid="ignore", divide="ignore"):
        beats = np.where(turn < wrong, (beaten - turn).clip(0) / (wrong - turn), 1.0)  # [n, facts]
        avg = beaten / wrong
    return pd.DataFrame({"fact": choices["fact"], "min": np.where(wrong > 0, beats.prod(0), np.nan), "avg": avg})
