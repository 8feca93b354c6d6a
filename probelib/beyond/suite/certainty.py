"""Certainty: minus the entropy over the options, whichever option is right."""

import numpy as np
import pandas as pd

from probelib.beyond.suite import measure
from probelib.beyond.suite.log_probability import option_scores, tokens_of_options


def certainty(scores: pd.DataFrame) -> pd.Series:
    """fact -> mean over the questions of minus the entropy of the normalized probabilities of the options, in nats.

    >>> scores = pd.DataFrame({"fact": "a", "prompt": "q", "logprob": [-3.0, -3.0]})
    >>> certainty(scores).round(4).to_dict()
    {'a': -0.6931}
    """
    log_share = scores["logprob"] - scores.groupby("prompt")["logprob"].transform(np.logaddexp.reduce)
    parts = (np.exp(log_share) * log_share).groupby([scores["fact"], scores["prompt"]], sort=False).sum()
    return parts.groupby(level="fact", sort=False).mean()


@measure("Certainty", paper="beyond", prompts="questions", paraphrased=True)
def certainty_over_options(model, questions, folder):
    return certainty(option_scores(model, questions, folder)), tokens_of_options(model, questions)
