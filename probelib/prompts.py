"""Templates and contexts -> prompts.

A frame of prompts has the columns ``prompt`` (its id), ``fact``, ``relation``, ``role``, ``template`` (its number, from 1),
``context`` ("none", "positive", "negative1", ...), ``seed`` (of whatever was drawn for it; -1 where nothing was) and ``text``.
"""

import pandas as pd

from probelib.errors import ProbeError
from probelib.facts.model import Facts

PROMPTS = ["prompt", "fact", "relation", "role", "template", "context", "seed", "text"]


def fill(template: str, subject: str, obj: str | None = None) -> str:
    """A template with its subject, and its object where one is given.

    >>> fill("What language is the official language of [X]?", "Haiti")
    'What language is the official language of Haiti?'
    """
    text = template.replace("[X]", subject.strip())
    return text if obj is None else text.replace("[Y]", obj.strip())


def in_context(context: str, text: str) -> str:
    """MONITOR's context: an entity, one full stop and one blank before the question.

    >>> in_context("Irish", "What language is the official language of Haiti?")
    'Irish. What language is the official language of Haiti?'
    """
    return f"{context.strip()}. {text}"


def framings(facts: Facts, role: str = "question") -> pd.DataFrame:
    """Every fact under every template of a role, without context."""
    templates = facts.templates[facts.templates["role"] == role]
    silent = set(facts.facts["relation"]) - set(templates["relation"])
    if silent:
        raise ProbeError(
            f"no {role} template for {', '.join(sorted(silent))}; roles there: "
            f"{', '.join(sorted(set(facts.templates['role'])))}"
        )
    rows = facts.facts[["fact", "relation", "subject"]].merge(templates, on="relation", sort=False)
    texts = [fill(t, s) for t, s in zip(rows["template"], facts.label(rows["subject"]), strict=True)]
    return _prompts(rows.assign(template=rows["number"], context="none", text=texts))


def interference(facts: Facts, role: str = "question", full: bool = False) -> pd.DataFrame:
    """All of MONITOR's prompts (spec b.1, 4.3): every frame without context, frame 1 (``full``: every frame) behind the
    gold object, and every frame behind each of the fact's distractors. The anchors use R + 1 + M of them, the accuracy
    grid R x M."""
    plain = framings(facts, role)
    gold = dict(zip(facts.facts["fact"], facts.label(facts.facts["object"]), strict=True))
    first = plain if full else plain[plain["template"] == 1]
    positive = first.assign(
        context="positive", text=[in_context(gold[f], t) for f, t in zip(first["fact"], first["text"], strict=True)]
    )
    distractors = facts.distractors.assign(label=facts.label(facts.distractors["object"]))
    crossed = plain.merge(distractors[["fact", "number", "label"]], on="fact", sort=False)
    negative = crossed.assign(
        context=[f"negative{n}" for n in crossed["number"]],
        text=[in_context(c, t) for c, t in zip(crossed["label"], crossed["text"], strict=True)],
    )
    frame = _prompts(pd.concat([plain, positive, negative], ignore_index=True))
    order = {fact: i for i, fact in enumerate(facts.facts["fact"])}
    return frame.sort_values("fact", key=lambda f: f.map(order), kind="stable", ignore_index=True)


def checks(facts: Facts) -> pd.DataFrame:
    """MONITOR's fact checking (table 1, template 3): every statement with its right object (context "true") and with each
    of the fact's distractors ("false1", ...), followed by the question whether it is True or False."""
    silent = set(facts.facts["relation"]) - set(facts.templates["relation"][facts.templates["role"] == "statement"])
    if silent:
        raise ProbeError(f"no statement template for {', '.join(sorted(silent))}; facts.with_templates adds them")
    own = facts.facts[["fact", "object"]].assign(number=0)
    shown = pd.concat([own, facts.distractors[own.columns]], ignore_index=True)
    shown["context"] = [f"false{n}" if n else "true" for n in shown["number"]]
    templates = facts.templates[facts.templates["role"] == "statement"].rename(columns={"number": "form"})
    rows = facts.facts[["fact", "relation", "subject"]].merge(templates, on="relation", sort=False)
    rows = rows.merge(shown, on="fact", sort=False).assign(seed=-1)
    filled = zip(rows["template"], facts.label(rows["subject"]), facts.label(rows["object"]), strict=True)
    rows["text"] = [f"Statement: {fill(t, s, o)} The statement is True or False?" for t, s, o in filled]
    return _prompts(rows.assign(template=rows["form"]))


def _prompts(rows: pd.DataFrame) -> pd.DataFrame:
    ids = rows["fact"] + "|" + "R" + rows["template"].astype(str) + "|" + rows["context"]
    role = rows["role"]
    return rows.assign(prompt=role + "|" + ids, seed=-1)[PROMPTS]


def gold(facts: Facts) -> pd.DataFrame:
    """The candidates when only the right answer is asked for: ``fact``, ``candidate`` (its object), ``label``."""
    rows = facts.facts
    return pd.DataFrame({"fact": rows["fact"], "candidate": rows["object"], "label": facts.label(rows["object"])})
