"""One model in several precisions: the probability of its right answers, in addition to the measures.

Means of binary verdicts need many facts to show a small loss. A probability changes for every fact, so its comparison is much
more sensitive. After plain questions it costs nothing, because MONITOR has scored them.
"""

import numpy as np
import pandas as pd

from probelib.beyond.suite.monitor import scored_interference
from probelib.beyond.tables import ANSWER


def answer_probabilities(loaded: dict, questions, folder) -> pd.DataFrame:
    """``model``, ``fact``, ``measure``, ``value``: the probability of the right answer after a plain question, mean over the
    paraphrases that accuracies use, for every model of ``loaded`` (name -> model)."""
    parts = []
    for name, model in loaded.items():
        rows = scored_interference(model, questions, folder).rows
        parts.append(mean_probability(rows, questions.templates).assign(model=name, measure=ANSWER))
    return pd.concat(parts, ignore_index=True)[["model", "fact", "measure", "value"]]


def mean_probability(rows: pd.DataFrame, templates) -> pd.DataFrame:
    """``fact``, ``value``: exp(logprob), mean over the plain prompts in ``templates``.

    rows   ``fact``, ``context``, ``template``, ``logprob`` (nats)

    >>> rows = pd.DataFrame({"fact": "a", "context": ["none", "none", "positive"], "template": [1, 2, 1]})
    >>> mean_probability(rows.assign(logprob=np.log([0.2, 0.4, 0.9])), (1, 2)).round(3).to_dict("records")
    [{'fact': 'a', 'value': 0.3}]
    """
    plain = rows[(rows["context"] == "none") & rows["template"].isin(templates)]
    return np.exp(plain["logprob"]).groupby(plain["fact"], sort=False).mean().rename("value").reset_index()
