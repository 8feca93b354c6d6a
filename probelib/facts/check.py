"""Counts and problems of a collection of facts."""

import pandas as pd

from probelib.facts.model import LITERALS, Facts, current, draw_distractors, holds, subjects


def counts(facts: Facts) -> pd.DataFrame:
    """Per relation: ``facts``, ``former`` (with an end), ``subjects``, ``objects`` (distinct), ``majority`` (share of the most
    frequent object), ``object_in_subject`` (facts whose subject contains the label of the object), ``questions``, ``clozes``."""
    rows, labels = facts.facts, dict(zip(facts.entities["entity"], facts.entities["label"], strict=True))
    ends = zip(rows["subject"], rows["object"], strict=True)
    leaked = [labels[o].casefold() in labels[s].casefold() for s, o in ends]
    groups = rows.assign(leaked=leaked, former=~holds(rows)).groupby("relation", sort=False)
    table = groups.agg(
        facts=("fact", "size"),
        former=("former", "sum"),
        subjects=("subject", "nunique"),
        objects=("object", "nunique"),
        majority=("object", lambda o: o.value_counts(normalize=True).iloc[0]),
        object_in_subject=("leaked", "sum"),
    )
    names = facts.relations.set_index("relation")[["name"]]
    roles = pd.crosstab(facts.templates["relation"], facts.templates["role"])
    roles = roles.reindex(index=names.index, columns=["question", "cloze"], fill_value=0)
    return names.join(table).join(roles.set_axis(["questions", "clozes"], axis=1)).reset_index()


def problems(facts: Facts) -> list[str]:
    """Problems for a person to solve: contradictions, dates in reverse, missing templates, entities without a type,
    duplicate ids, relations with few objects."""
    rows, entities, now = facts.facts, facts.entities, current(facts).facts
    functional = now[now["relation"].isin(facts.relations["relation"][facts.relations["functional"]])]
    several = functional.groupby(["relation", "subject"])["object"].agg(lambda o: sorted(set(o)))
    found = [
        f"{r}: {s} has {len(o)} current objects in a functional relation: {', '.join(o)}"
        for (r, s), o in several.items()
        if len(o) > 1
    ]
    year = lambda dates: pd.to_numeric(dates.str.extract(r"^(-?\d+)", expand=False))
    backwards = rows[(rows["start"] != "") & (rows["end"] != "") & (year(rows["start"]) > year(rows["end"]))]
    found += [f"{fact}: ends before it starts" for fact in backwards["fact"]]
    texts = facts.templates[facts.templates["role"].isin(["question", "cloze"])]
    texts = texts.groupby(["relation", "role"])["template"].nunique()
    found += [f"{r}: {n} {role} templates instead of 7" for (r, role), n in texts.items() if n != 7]
    found += [f"entity {e!r} has no type" for e in entities["entity"][entities["types"].map(len) == 0]]
    found += _other_types(facts)
    ids = entities[entities["wikidata"] != ""]
    found += [f"{q} is the id of {', '.join(own['entity'])}" for q, own in ids.groupby("wikidata") if len(own) > 1]
    literal = facts.relations.set_index("relation")["object_type"].isin(LITERALS)
    thin = rows[~rows["relation"].map(literal)].groupby("relation")["object"].nunique()
    return found + [f"{r}: only {n} distinct objects" for r, n in thin.items() if n < 5]


def _other_types(facts: Facts) -> list[str]:
    """Subjects and objects that have none of their relation's types."""
    types = dict(zip(facts.entities["entity"], facts.entities["types"], strict=True))
    relations, found = facts.relations.set_index("relation"), []
    for relation, rows in facts.facts.groupby("relation"):
        for side in ("subject", "object"):
            allowed = relations.at[relation, f"{side}_type"].split("|")
            odd = sorted(e for e in set(rows[side]) if not set(allowed) & set(types[e]))
            if odd and not set(allowed) & set(LITERALS):
                found.append(f"{relation}: {len(odd)} {side}s are none of {', '.join(allowed)}, e.g. {odd[0]}")
    return found


def wrong_distractors(facts: Facts, known: Facts) -> int:
    """Number of distractors that are or were right answers. Facts without distractors get sampled ones.

    known   everything that is right, former values included: ``atlas()``, ``everything(...)``
    """
    facts = facts if len(facts.distractors) else draw_distractors(facts, known)
    right = subjects(known).to_frame(index=False).assign(object=known.facts["object"])
    asked = subjects(facts).to_frame(index=False).assign(fact=facts.facts["fact"])
    given = asked.merge(facts.distractors, on="fact")
    return len(given.merge(right.drop_duplicates(), on=["relation", "subject", "object"]))
