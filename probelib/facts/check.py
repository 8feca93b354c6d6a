"""Counts of a collection of facts."""

import pandas as pd

from probelib.facts import model
from probelib.facts.model import Facts, tuples


def counts(facts: Facts) -> pd.DataFrame:
    """Per relation: ``facts``, ``former`` (with an end), ``subjects``, ``objects`` (distinct),
    ``majority`` (share of the most frequent object), ``object_in_subject`` (facts whose subject
    contains the label of the object), ``questions``, ``clozes``."""
    rows, labels = facts.facts, dict(tuples(facts.entities, "entity", "label"))
    ends = tuples(rows, "subject", "object")
    leaked = [labels[o].casefold() in labels[s].casefold() for s, o in ends]
    groups = rows.assign(leaked=leaked, former=~model.holds(rows)).groupby("relation", sort=False)
    subject, majority = groups["subject"], lambda own: own.value_counts(normalize=True).iloc[0]
    columns = {"facts": groups.size(), "former": groups["former"].sum()}
    columns |= {"subjects": subject.nunique(), "objects": groups["object"].nunique()}
    columns |= {"majority": groups["object"].agg(majority)}
    table = pd.DataFrame(columns | {"object_in_subject": groups["leaked"].sum()})
    names = facts.relations.set_index("relation")[["name"]]
    roles = pd.crosstab(facts.templates["relation"], facts.templates["role"])
    roles = roles.reindex(index=names.index, columns=["question", "cloze"], fill_value=0)
    return names.join(table).join(roles.set_axis(["questions", "clozes"], axis=1)).reset_index()
