"""Verbal contrast: the probability of "True" after the fact minus that after its corruptions. A bias towards "True" cancels."""

import pandas as pd

from probelib.beyond.suite import measure
from probelib.beyond.suite.verbal_confidence import said_true


def true_minus_false(statements: pd.DataFrame) -> pd.Series:
    """fact -> mean share of "True" of its right statements minus that of its false ones, in [-1, 1].

    >>> said = pd.DataFrame({"fact": "a", "context": ["true", "false1", "false2"], "share": [0.9, 0.5, 0.7]})
    >>> true_minus_false(said).round(9).to_dict()
    {'a': 0.3}
    """
    right = statements["context"] == "true"
    means = statements.groupby(["fact", right], sort=False)["share"].mean().unstack()
    return means[True] - means[False]


@measure("Verbal contrast", "beyond", "statements, true or false?", paraphrased=True)
def verbal_contrast(model, questions, folder):
    found = said_true(model, questions, folder)
    n_true = (found["context"] == "true").groupby(found["fact"]).sum().mean()
    return true_minus_false(found), found.attrs["tokens"] * (found.groupby("fact").size().mean() / n_true)
