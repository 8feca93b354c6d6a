"""Chance (control): a random number per model and fact. If its interval of the concordance excludes .5, a statistic is wrong."""

import pandas as pd

from probelib.beyond.suite import measure
from probelib.facts.model import rng


def random_values(model: str, facts: list[str], seed: int = 0) -> pd.Series:
    """fact -> a number in [0, 1) that depends only on the model's name, the fact and the seed.

    >>> random_values("m", ["a"]).equals(random_values("m", ["b", "a"])[["a"]])
    True
    """
    return pd.Series({fact: rng(seed, "chance", model, fact).random() for fact in facts})


@measure("Chance", paper="beyond", prompts="nothing", control=True)
def random_number(model, questions, folder):
    return random_values(model.name, questions.facts.facts["fact"].tolist(), questions.seed), 0.0
