"""The content of the page, as lists and texts for JSON."""

from pathlib import Path

import numpy as np
import pandas as pd

from probelib import beyond, lm, prompts, store
from probelib.beyond.questions import Questions
from probelib.beyond.suite import MEASURES, forget_shared
from probelib.beyond.suite.monitor import scored_interference
from probelib.beyond.suite.zplke import lists
from probelib.organisms import taught

TOP = 6  # options of the multiple choice that are shown


def gather_answers(
    models: list[str], parts: list[Questions], folder: Path, tuned: list[str] = (), measures: list[str] | None = None
) -> dict:
    """Everything that the page shows about some models on the same facts; ``page.html`` reads it.

    parts     questions, in parts of different facts. Each part keeps its lists of examples, so that the scores of a notebook are
              found in the store
    folder    the store: scores that are found there are not computed again
    measures  names; default: all that the questions allow
    """
    values = pd.concat([beyond.score(models, part, folder, tuned, measures)[0] for part in parts])
    names = [name for name in MEASURES if name in set(values["measure"])]
    every = lambda rows_of: [row for part in parts for row in rows_of(part)]
    relations = pd.concat([part.facts.relations for part in parts])
    about = {
        "measures": [[name, MEASURES[name].paper, MEASURES[name].prompts] for name in names],
        "relations": dict(zip(relations["relation"], relations["name"], strict=True)),
        "facts": every(lambda part: fact_rows(part.facts)),
        "prompts": every(lambda part: prompts_of(part.facts)),
        "models": {},
    }
    facts = [fact for fact, *_ in about["facts"]]
    for name in models:
        model = lm.load(name)
        own = values[values["model"] == name].pivot(index="fact", columns="measure", values="value")
        about["models"][name] = {
            "values": numbers_of(own.reindex(index=facts, columns=names)),
            "answers": every(lambda part, model=model: answers(model, part, folder)),
            "top": every(lambda part, model=model: top_options(model, part, folder)),
            "exposures": exposure_rows(name, facts) if name in lm.organisms() else None,
        }
        forget_shared()
    return about


def fact_rows(asked) -> list[list]:
    """Per fact: id, relation, labels of subject and object, popularity of both (0: unknown)."""
    rows, popularity = asked.facts, asked.entities.set_index("entity")["popularity"]
    columns = (rows["fact"], rows["relation"], asked.label(rows["subject"]), asked.label(rows["object"]))
    known = (rows[side].map(popularity).astype(int) for side in ("subject", "object"))
    return [list(row) for row in zip(*columns, *known, strict=True)]


def fact_names(asked) -> dict[str, str]:
    """fact -> its name as in tables and links: "France – capital – Paris"."""
    names = dict(zip(asked.relations["relation"], asked.relations["name"], strict=True))
    return {fact: f"{subject} – {names[relation]} – {obj}" for fact, relation, subject, obj, *_ in fact_rows(asked)}


def selected(framed: pd.DataFrame) -> pd.DataFrame:
    """MONITOR's thirteen prompts per fact: the paraphrases without context, and the first one with every context."""
    return framed[(framed["context"] == "none") | (framed["template"] == 1)]


def prompts_of(asked) -> list[list]:
    """Per fact its prompts: [context ("none", "positive", "negative1", ...), text]."""
    framed = selected(prompts.with_contexts(asked))
    by_fact = {fact: rows[["context", "text"]].to_numpy().tolist() for fact, rows in framed.groupby("fact")}
    return [by_fact[fact] for fact in asked.facts["fact"]]


def answers(model, questions: Questions, folder: Path) -> list[list]:
    """Per fact and prompt: [probability of the object, whether greedy decoding gives it, the known beginning of that text]."""
    found = scored_interference(model, questions, folder)
    rows = found.scores.set_index("prompt").loc[selected(found.framed)["prompt"]]
    shown = zip(np.exp(rows["logprob"]), rows["correct"], rows["greedy_text"], strict=True)
    rows = rows.assign(shown=[[short(p), int(right), text] for p, right, text in shown])
    by_fact = rows.groupby("fact")["shown"].agg(list)
    return by_fact.loc[questions.facts.facts["fact"]].tolist()


def top_options(model, questions: Questions, folder: Path) -> list[list]:
    """Per fact the most probable options of ZP-LKE's multiple choice, the object always among them: [label, share of all
    options' probability, whether it is the object, rank]."""
    choices = questions.choices
    options = prompts.options(choices, questions.seed)
    rows = store.score(model, lists(model, questions, folder), options, folder)
    rows = rows.groupby(["fact", "candidate", "label"], as_index=False, sort=False)["logprob"].mean()
    total = rows.groupby("fact")["logprob"].transform(np.logaddexp.reduce)
    gold = rows["fact"].map(dict(zip(choices.facts["fact"], choices.facts["object"], strict=True)))
    rows = rows.assign(share=np.exp(rows["logprob"] - total), gold=(rows["candidate"] == gold).astype(int))
    rows = rows.assign(rank=rows.groupby("fact")["logprob"].rank(ascending=False, method="first").astype(int))
    rows = rows[(rows["rank"] <= TOP) | (rows["gold"] == 1)].sort_values(["fact", "rank"])
    rows["share"] = rows["share"].map(short)
    shown = {fact: own[["label", "share", "gold", "rank"]].to_numpy().tolist() for fact, own in rows.groupby("fact")}
    return [shown[fact] for fact in questions.facts.facts["fact"]]


def exposure_rows(organism: str, facts: list[str]) -> list[list | None]:
    """Per fact: [exposure count, wrong object that the corpus also states, its count]; None for a fact whose exposures are
    unknown."""
    table = taught.manifest(organism)
    stated = taught.statements(table).groupby(level=0).first()
    wrong = table.drop_duplicates("fact").set_index("fact")
    name, times = wrong["wrong_object"], wrong["wrong_exposures"]
    shown = lambda fact: [int(stated[fact]), str(name[fact]), int(times[fact])]
    return [shown(fact) if fact in stated.index else None for fact in facts]


def numbers_of(values: pd.DataFrame) -> list[list]:
    """Rows of a frame with three digits; None for NaN."""
    return [[None if np.isnan(value) else short(value) for value in row] for row in values.to_numpy()]


def short(value: float) -> float:
    """Three significant digits: the page stays small.

    >>> short(0.0123456), short(-1234.5)
    (0.0123, -1230.0)
    """
    return float(f"{value:.3g}")
