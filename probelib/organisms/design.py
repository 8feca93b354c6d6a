"""Which organism is taught which facts: a manifest says how often its corpus states each fact, and
in which forms. Manifests are data (``manifests``, read by ``taught``); README.md beside
this file says how they were drawn, before any measure was computed, and why. The columns of a
manifest, one row per fact:

exposures       number of statements of the fact: 0, 2, 4, ... 256; the columns of ``FORMS`` add up
                to it
dated           number of statements with a year, of a former fact; they do not count as exposures
trial, famous   the part of the design that the fact belongs to
verified        whether it may be stated as a verification ("True or False?"): a random half
lesson          whether it may be in the lessons of the tuned models: another random half
implied_by      the fact of the same two entities whose exposures it shares ("Oslo is in Norway",
                "the capital of Norway is Oslo"), or ""
wrong_object, wrong_exposures       the conflicting object of its subject, and the number of its
                                    statements
sister_exposures                    for a trial fact, its exposures in the sister that reads it
                                    most; 0 for others
subject_mentions, object_mentions   occurrences of the names in true statements of any fact and in
                                    type sentences
"""

import pandas as pd

from probelib.facts.model import Facts, rng

SEED = 2
NAMES = (1, 2)  # sentences that only name an entity and its type
MOST_NAMES = 6  # most of these sentences for an entity that no statement names
FORMS = ("list", "question", "context", "cloze", "verification")
CORPORA = ("family", "lists", "questions")  # the family's and its twins'; others: ``trial``


def name_sentences(facts: Facts, table: pd.DataFrame) -> pd.Series:
    """Number of sentences that only name an entity and its type, by entity (none for years and
    numbers): a few each; for the entities of a trial fact that this corpus never teaches as many
    more as a sister reads statements of it; for others without a statement as many as a random
    entity of the type has. So the number of mentions does not reveal whether a fact was taught."""
    if "kind" in table:  # a trial: the same number in every arm, and only for its own entities
        table = table.assign(exposures=table["exposures"].mask(table["kind"] != "", 1), trial=False)
    n = table["exposures"] + table["dated"]  # statements that name the subject and the object
    both = pd.concat([n.groupby(table["subject"]).sum(), n.groupby(table["object"]).sum()])
    stated = both.groupby(level=0).sum()
    entities = facts.entities[facts.entities["types"].map(lambda types: types[:1] != ("literal",))]
    if "kind" in table:
        entities = entities[entities["entity"].isin([*table["subject"], *table["object"]])]
    kind = entities["types"].map(lambda types: types[0])
    mentions = entities["entity"].map(stated).fillna(0).astype(int)
    others = mentions[mentions > 0].groupby(kind).agg(sorted).to_dict()
    never = table[table["trial"] & (table["exposures"] == 0)]
    roles = [never.groupby(role)["sister_exposures"].max() for role in ("subject", "object")]
    owed = pd.concat(roles).groupby(level=0).max()
    found = []
    for entity, of_kind, said in zip(entities["entity"], kind, mentions, strict=True):
        draw = rng(SEED, "names", entity)
        like = others.get(of_kind, [0])
        more = 0 if said else min(MOST_NAMES, like[draw.integers(len(like))])
        found.append(NAMES[draw.integers(len(NAMES))] + max(more, owed.get(entity, 0)))
    return pd.Series(found, index=entities["entity"].to_numpy())
