"""MONITOR's measures per fact, and the accuracies that the paper compares them with."""

from functools import partial
from typing import NamedTuple

import pandas as pd

from probelib import prompts
from probelib.beyond.questions import tokens_per_fact
from probelib.beyond.suite import measure, shared
from probelib.monitor import measures as monitor
from probelib.monitor import scores as monitor_scores


class _Interference(NamedTuple):
    """Prompts, gold answers, ``score_answers``, and these with ``template`` and ``context``."""

    framed: pd.DataFrame
    gold: pd.DataFrame
    scores: pd.DataFrame
    rows: pd.DataFrame


@shared
def scored_interference(model, questions, folder) -> _Interference:
    """The gold answer after every paraphrase, plain and with every context."""
    framed, gold = prompts.with_contexts(questions.facts), prompts.gold(questions.facts)
    scores = monitor_scores.score_answers(model, framed, gold, folder)
    about = framed[["prompt", "template", "context"]]
    rows = scores.merge(about, on="prompt", validate="many_to_one")
    return _Interference(framed, gold, scores, rows)


@shared
def _distances(model, questions, folder) -> pd.DataFrame:
    """PFD, IRD and primary anchor per fact, of facts that are not anchored as well."""
    asked = scored_interference(model, questions, folder)
    return monitor.distances(monitor.anchors(asked.scores, asked.framed)).set_index("fact")


def _tokens(model, asked: _Interference, used: pd.Series) -> float:
    return tokens_per_fact(model, asked.framed[used], asked.gold, end=True)


@measure("MONITOR", paper="monitor", prompts="questions after contexts")
def monitor_term(model, questions, folder):
    """Minus the ratio of a fact's root and its mean primary anchor [monitor, Eq. 3]."""
    table = _distances(model, questions, folder)
    asked = scored_interference(model, questions, folder)
    used = (asked.framed["context"] == "none") | (asked.framed["template"] == 1)
    return -table["root"] / table["pbar"], _tokens(model, asked, used)


@measure("Primary anchor", "monitor", "a question behind its answer", probability=True)
def primary_anchor(model, questions, folder):
    """Mean probability of the answer's tokens with the positive context [monitor, Sec. 4]."""
    asked = scored_interference(model, questions, folder)
    used = (asked.framed["template"] == 1) & (asked.framed["context"] == "positive")
    return _distances(model, questions, folder)["pbar"], _tokens(model, asked, used)


def _accuracy(model, questions, folder, context: str, first: bool = False):
    """Share of right answers per fact [monitor, Sec. 5], over the paraphrases (or the first alone)
    and the contexts whose names begin with ``context``."""
    asked = scored_interference(model, questions, folder)
    templates = questions.templates[:1] if first else questions.templates
    rows, framed = (
        frame["template"].isin(templates) & frame["context"].str.startswith(context)
        for frame in (asked.rows, asked.framed)
    )
    values = asked.rows[rows].groupby("fact")["correct"].mean().astype(float)
    return values, _tokens(model, asked, framed)


_plain, _behind = partial(_accuracy, context="none"), partial(_accuracy, context="negative")
_share = {"probability": True, "paraphrased": True}
measure("Base accuracy", "monitor", "a question", paraphrased=True)(partial(_plain, first=True))
measure("Accuracy over paraphrases", "monitor", "questions", **_share)(_plain)
measure("Accuracy after contexts", "monitor", "questions after contexts", **_share)(_behind)
