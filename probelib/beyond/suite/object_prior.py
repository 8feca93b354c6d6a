"""Object prior (control): how probable the right answer is when the question names a subject that does not exist."""

import numpy as np
import pandas as pd

from probelib import prompts, store
from probelib.beyond.questions import tokens_per_fact
from probelib.beyond.suite import measure, shared
from probelib.facts.model import Facts

INVENTED = ("Vorlumia", "Tashkelen", "Quendribar")  # invented subjects


def about_invented(asked: Facts, templates: tuple[int, ...]) -> pd.DataFrame:
    """The questions of every fact with each invented subject in place of its own: a frame of ``prompts``."""
    plain = prompts.templates_of(asked, "question", asked.facts["relation"])
    rows = asked.facts[["fact", "relation"]].merge(plain[plain["number"].isin(templates)], on="relation", sort=False)
    rows = rows.merge(pd.DataFrame({"name": INVENTED}), how="cross").assign(context="none", seed=-1)
    text = [prompts.fill(template, name) for template, name in zip(rows["template"], rows["name"], strict=True)]
    ids = "invented|" + rows["fact"] + "|R" + rows["number"].astype(str) + "|" + rows["name"]
    return rows.assign(prompt=ids, text=text, template=rows["number"])[prompts.PROMPTS]


def prior(scores: pd.DataFrame) -> pd.Series:
    """fact -> log of the mean probability of the right answer over all questions about invented subjects, in nats.

    >>> scores = pd.DataFrame({"fact": "a", "logprob": np.log([0.1, 0.3])})
    >>> round(float(np.exp(prior(scores)["a"])), 9)
    0.2
    """
    by_fact = scores.groupby("fact", sort=False)["logprob"]
    return by_fact.agg(np.logaddexp.reduce) - np.log(by_fact.size())


@shared
def priors(model, questions, folder) -> tuple[pd.Series, float]:
    """(``prior`` of each fact, tokens per fact)."""
    invented, gold = about_invented(questions.choices, questions.templates), prompts.gold(questions.choices)
    return prior(store.score(model, invented, gold, folder)), tokens_per_fact(model, invented, gold)


@measure("Object prior", paper="beyond", prompts="questions about nobody", paraphrased=True, control=True)
def object_prior(model, questions, folder):
    return priors(model, questions, folder)
