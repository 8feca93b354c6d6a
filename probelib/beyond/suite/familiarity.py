"""Familiarity (control): the probability of the subject's name. It ignores the relation and the answer."""

import pandas as pd

from probelib import prompts, store
from probelib.beyond.questions import tokens_per_fact
from probelib.beyond.suite import measure
from probelib.facts.model import Facts


def before_subject(asked: Facts, templates: tuple[int, ...]) -> pd.DataFrame:
    """The questions as far as the blank before their subject, in the paraphrases ``templates`` that do not begin with it: a frame
    of ``prompts``."""
    plain = prompts.templates_of(asked, "question", asked.facts["relation"])
    plain = plain[plain["number"].isin(templates) & ~plain["template"].str.startswith("[X]")]
    rows = asked.facts[["fact", "relation"]].merge(plain, on="relation", sort=False)
    text = rows["template"].str.split("[X]", regex=False).str[0].str.rstrip()
    ids = "subject|" + rows["fact"] + "|R" + rows["number"].astype(str)
    return rows.assign(prompt=ids, text=text, template=rows["number"], context="none", seed=-1)[prompts.PROMPTS]


def familiarity(scores: pd.DataFrame) -> pd.Series:
    """fact -> mean over the questions of log P(subject | text before it), in nats.

    >>> familiarity(pd.DataFrame({"fact": ["a", "a"], "logprob": [-2.0, -4.0]})).to_dict()
    {'a': -3.0}
    """
    return scores.groupby("fact", sort=False)["logprob"].mean()


@measure("Familiarity", paper="beyond", prompts="the subject", paraphrased=True, control=True)
def familiarity_of_subject(model, questions, folder):
    rows, label = questions.choices.facts, questions.choices.label
    names = pd.DataFrame({"fact": rows["fact"], "candidate": rows["subject"], "label": label(rows["subject"])})
    heads = before_subject(questions.choices, questions.templates)
    return familiarity(store.score(model, heads, names, folder)), tokens_per_fact(model, heads, names)
