"""Log-probability per token (length-normalized likelihood, as in lm-evaluation-harness)."""

import pandas as pd

from probelib.beyond.suite import measure
from probelib.beyond.suite.log_probability import option_scores, tokens_of_gold


def per_token(scores: pd.DataFrame) -> pd.Series:
    """fact -> mean over the questions of log P(right answer | question) / its number of tokens, in nats per token.

    >>> scores = pd.DataFrame({"fact": "a", "gold": True, "logprob": [-6.0, -3.0], "n_tokens": 3})
    >>> per_token(scores).to_dict()
    {'a': -1.5}
    """
    gold = scores[scores["gold"]]
    return (gold["logprob"] / gold["n_tokens"]).groupby(gold["fact"], sort=False).mean()


@measure("Log-probability per token", paper="beyond", prompts="questions", paraphrased=True)
def log_probability_per_token(model, questions, folder):
    return per_token(option_scores(model, questions, folder)), tokens_of_gold(model, questions)
