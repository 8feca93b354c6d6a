"""MONITOR's measures per fact, and the accuracies that the paper compares them with."""

from typing import NamedTuple

import pandas as pd

from probelib import prompts
from probelib.beyond.questions import tokens_per_fact
from probelib.beyond.suite import measure, shared
from probelib.monitor import measures as monitor
from probelib.monitor import scores as monitor_scores


class _Interference(NamedTuple):
    """MONITOR's prompts, the gold answers, the scores, and the scores with their prompts' ``template`` and ``context``."""

    framed: pd.DataFrame
    gold: pd.DataFrame
    scores: pd.DataFrame
    rows: pd.DataFrame


@shared
def scored_interference(model, questions, folder) -> _Interference:
    """The gold answer after every paraphrase, plain and with every context."""
    framed, gold = prompts.with_contexts(questions.facts), prompts.gold(questions.facts)
    scores = monitor_scores.score_answers(model, framed, gold, folder)
    rows = scores.merge(
        framed[["prompt", "template", "context"]], on="prompt", validate="many_to_one"
    )
    return _Interference(framed, gold, scores, rows)


@shared
def _distances(model, questions, folder) -> pd.DataFrame:
    """PFD, IRD and primary anchor per fact, of facts that are not anchored as well."""
    asked = scored_interference(model, questions, folder)
    return monitor.distances(monitor.anchors(asked.scores, asked.framed)).set_index("fact")


@measure("MONITOR", paper="monitor", prompts="questions behind hints")
def monitor_term(model, questions, folder):
    """Minus the ratio of a fact's root and its mean primary anchor [monitor, Eq. 3]."""
    table, asked = (
        _distances(model, questions, folder),
        scored_interference(model, questions, folder),
    )
    used = (asked.framed["context"] == "none") | (asked.framed["template"] == 1)
    return -table["root"] / table["pbar"], _tokens(model, asked, used)


@measure(
    "Primary anchor", paper="monitor", prompts="a question behind its answer", probability=True
)
def primary_anchor(model, questions, folder):
    """Mean probability of the answer's tokens with the positive context [monitor, Sec. 4]."""
    table, asked = (
        _distances(model, questions, folder),
        scored_interference(model, questions, folder),
    )
    used = (asked.framed["template"] == 1) & (asked.framed["context"] == "positive")
    return table["pbar"], _tokens(model, asked, used)


@measure("Base accuracy", paper="monitor", prompts="a question", paraphrased=True)
def base_accuracy(model, questions, folder):
    """Accuracy on the first paraphrase without context [monitor, Sec. 5]."""
    return _accuracy(model, questions, folder, questions.templates[:1], "none")


@measure(
    "Accuracy over wordings",
    paper="monitor",
    prompts="questions",
    probability=True,
    paraphrased=True,
)
def accuracy_over_paraphrases(model, questions, folder):
    """Average accuracy over the paraphrases without context [monitor, Sec. 5]."""
    return _accuracy(model, questions, folder, questions.templates, "none")


@measure(
    "Accuracy behind hints",
    paper="monitor",
    prompts="questions behind hints",
    probability=True,
    paraphrased=True,
)
def accuracy_with_negative_contexts(model, questions, folder):
    """Average accuracy over paraphrases and negative contexts [monitor, Sec. 5]."""
    return _accuracy(model, questions, folder, questions.templates, "negative")


def _accuracy(
    model, questions, folder, templates: tuple[int, ...], context: str
) -> tuple[pd.Series, float]:
    """Share of right answers per fact, over some templates and the contexts whose names begin with ``context``."""
    asked = scored_interference(model, questions, folder)
    select = lambda frame: (
        frame["template"].isin(templates) & frame["context"].str.startswith(context)
    )
    values = asked.rows[select(asked.rows)].groupby("fact")["correct"].mean().astype(float)
    return values, _tokens(model, asked, select(asked.framed))


def _tokens(model, asked: _Interference, used: pd.Series) -> float:
    return tokens_per_fact(model, asked.framed[used], asked.gold, end=True)
