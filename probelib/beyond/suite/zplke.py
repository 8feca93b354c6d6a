"""ZP-LKE's measures: a list of examples without a question, then the subject."""

import pandas as pd

from probelib import prompts, store
from probelib.beyond.questions import tokens_per_fact
from probelib.beyond.suite import measure, shared
from probelib.monitor import scores as monitor_scores
from probelib.zplke import measures as zplke


@shared
def lists(model, questions, folder) -> pd.DataFrame:
    """The zero-prompt list of every fact: a frame of ``prompts``."""
    return prompts.many_shots(questions.choices, questions.examples)


@shared
def _chosen(model, questions, folder):
    """(``zplke.choices`` grouped by fact, tokens per fact)."""
    asked, options = questions.choices, prompts.options(questions.choices, questions.seed)
    gold = dict(zip(asked.facts["fact"], asked.facts["object"], strict=True))
    shots = lists(model, questions, folder)
    chosen = zplke.choices(store.score(model, shots, options, folder), gold)
    return chosen.groupby("fact"), tokens_per_fact(model, shots, options)


@measure("ZP probability", paper="zplke", prompts="a list", probability=True)
def zp_probability(model, questions, folder):
    """Normalized probability of the object among the options [zplke, Eq. 2]."""
    chosen, tokens = _chosen(model, questions, folder)
    return chosen["q_gold"].mean(), tokens


@measure("ZP choice", paper="zplke", prompts="a list")
def zp_choice(model, questions, folder):
    """Whether the object is the most probable option [zplke, Eq. 3]; the mean over facts is Eq.
    4."""
    chosen, tokens = _chosen(model, questions, folder)
    return chosen["correct"].mean(), tokens


@measure("ZP response", paper="zplke", prompts="a list")
def zp_response(model, questions, folder):
    """Whether greedy decoding gives the object [zplke, Sec. 4.1]. Teacher forcing shows the
    generated text as far as it agrees with the object, and one further token."""
    shots, gold = lists(model, questions, folder), prompts.gold(questions.choices)
    rows = monitor_scores.score_answers(model, shots, gold, folder)
    right = [
        zplke.response(text, label)
        for text, label in zip(rows["greedy_text"], rows["label"], strict=True)
    ]
    values = pd.Series(right, rows["fact"]).groupby(level=0).mean()
    return values, tokens_per_fact(model, shots, gold, end=True)
