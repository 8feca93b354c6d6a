"""Verbal confidence: the probability that a model gives to the answer "True" after a statement (P(True), Kadavath et al.
2022)."""

import numpy as np
import pandas as pd

from probelib import prompts, store
from probelib.beyond.questions import tokens_per_fact
from probelib.beyond.suite import measure, shared

WORDS = ("True", "False")


@shared
def said_true(model, questions, folder) -> pd.DataFrame:
    """Statements with the right object (context "true") and with distractors ("false1", ...), each with its ``share`` of "True";
    ``.attrs["tokens"]``: per statement."""
    statements = prompts.checks(questions.facts)
    statements = statements[statements["template"].isin(questions.templates)].reset_index(drop=True)
    words = pd.DataFrame({"candidate": WORDS, "label": WORDS})
    options = questions.facts.facts[["fact"]].merge(words, how="cross")
    scores = store.score(model, statements, options, folder)
    scores = scores.pivot(index="prompt", columns="candidate", values="logprob")
    found = statements.assign(share=share_of_true(scores).reindex(statements["prompt"]).to_numpy())
    found.attrs["tokens"] = tokens_per_fact(model, statements[statements["context"] == "true"], options)
    return found


def share_of_true(scores: pd.DataFrame) -> pd.Series:
    """P("True") / (P("True") + P("False")) per statement.

    scores   columns "True" and "False": log-probabilities in nats

    >>> share_of_true(pd.DataFrame({"True": np.log([0.3]), "False": np.log([0.1])})).round(9).tolist()
    [0.75]
    """
    return np.exp(scores["True"] - np.logaddexp(scores["True"], scores["False"]))


@measure("Verbal confidence", "beyond", "a statement, true or false?", probability=True, paraphrased=True)
def verbal_confidence(model, questions, folder):
    found = said_true(model, questions, folder)
    return found[found["context"] == "true"].groupby("fact", sort=False)["share"].mean(), found.attrs["tokens"]
