"""Log-probability of the right answer after a question, and the scores of all its options, which other measures read."""

import pandas as pd

from probelib import prompts, store
from probelib.beyond.questions import tokens_per_fact
from probelib.beyond.suite import measure, shared


def asked(questions) -> pd.DataFrame:
    """The questions in the paraphrases of ``questions.templates``: a frame of ``prompts``."""
    plain = prompts.paraphrases(questions.choices)
    return plain[plain["template"].isin(questions.templates)].reset_index(drop=True)


@shared
def option_scores(model, questions, folder) -> pd.DataFrame:
    """Every option after every question: ``store.score``, and ``gold`` (whether the option is the right answer)."""
    scores = store.score(model, asked(questions), prompts.options(questions.choices, questions.seed), folder)
    right = dict(zip(questions.choices.facts["fact"], questions.choices.facts["object"], strict=True))
    return scores.assign(gold=scores["candidate"] == scores["fact"].map(right))


def tokens_of_gold(model, questions) -> float:
    """Tokens per fact to score only the right answer."""
    return tokens_per_fact(model, asked(questions), prompts.gold(questions.choices))


def tokens_of_options(model, questions) -> float:
    """Tokens per fact to score all options."""
    return tokens_per_fact(model, asked(questions), prompts.options(questions.choices, questions.seed))


def log_probability(scores: pd.DataFrame) -> pd.Series:
    """fact -> mean of log P(right answer | question) over the questions, in nats.

    scores   ``fact``, ``gold``, ``logprob``; one row per question and option

    >>> scores = pd.DataFrame({"fact": "a", "gold": [True, False, True], "logprob": [-1.0, -9.0, -3.0]})
    >>> log_probability(scores).to_dict()
    {'a': -2.0}
    """
    return scores[scores["gold"]].groupby("fact", sort=False)["logprob"].mean()


@measure("Log-probability", paper="beyond", prompts="questions", paraphrased=True)
def mean_log_probability(model, questions, folder):
    return log_probability(option_scores(model, questions, folder)), tokens_of_gold(model, questions)
