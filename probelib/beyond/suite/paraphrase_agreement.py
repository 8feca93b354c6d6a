"""Agreement over paraphrases: whether a model gives the same answer to all paraphrases (ParaRel, Elazar et al. 2021)."""

import pandas as pd

from probelib import prompts, store
from probelib.beyond.suite import measure, shared


@shared
def generated(model, questions, folder) -> pd.DataFrame:
    """The greedy answer to every question in every paraphrase: ``store.generate``, and ``template``; ``.attrs["tokens"]``."""
    plain = prompts.paraphrases(questions.choices)
    rows = store.generate(model, plain, folder)
    found = rows.merge(plain[["prompt", "template"]], on="prompt", validate="many_to_one")
    found.attrs["tokens"] = rows.attrs["cost"]["forwarded_tokens"] / plain["fact"].nunique()
    return found


def share_of_equal_answers(answers: pd.DataFrame) -> pd.Series:
    """fact -> share of pairs of paraphrases with equal answers (first line, ignoring case); NaN for a single paraphrase.

    >>> share_of_equal_answers(pd.DataFrame({"fact": "a", "text": [" Paris.", " paris.", " Rome."]})).round(3).to_dict()
    {'a': 0.333}
    """
    text = answers["text"].str.strip().str.split("\\n").str[0].fillna("").str.casefold()
    same = text.groupby([answers["fact"], text], sort=False).size()
    n = answers.groupby("fact", sort=False).size()
    pairs = (n * (n - 1)).where(n > 1)
    return ((same * (same - 1)).groupby(level=0, sort=False).sum() / pairs).reindex(n.index)


@measure("Agreement over paraphrases", paper="beyond", prompts="questions", probability=True, needs=("generation",))
def agreement_over_paraphrases(model, questions, folder):
    found = generated(model, questions, folder)
    return share_of_equal_answers(found), found.attrs["tokens"]
