"""The design: every fact's part in it, the Latin square, and what mentions may not tell."""

from collections import Counter

import pandas as pd
import pytest

from probelib import facts
from probelib.organisms import behaviour, corpus, design, taught


@pytest.fixture(scope="module")
def tables():
    """The shipped manifests; that they are what the design gives is tested with the checkpoints."""
    return {name: taught.read(taught.path(name)) for name in design.CORPORA}


def test_a_trial_fact_is_never_taught_to_one_sister_and_well_taught_to_another(tables):
    trial = tables["family"]["trial"]
    sisters = ["family", "sister-1", "sister-2", "sister-3"]
    levels = pd.DataFrame({name: tables[name]["exposures"][trial] for name in sisters})
    assert (levels.min(axis=1) == 0).all() and (levels.max(axis=1) >= 32).all()
    assert ((levels > 0) & (levels < 32)).sum(axis=1).eq(2).all()
    assert (levels.max(axis=1) == tables["family"]["sister_exposures"][trial]).all()
    never = (levels == 0).mean()
    assert never.between(0.24, 0.26).all()


def test_mentions_do_not_tell_taught_trial_facts_from_others(tables):
    aucs = behaviour.mentions(tables["family"]).query("facts == 'trial'")
    assert aucs[["subject", "object"]].max().max() <= 0.55


def test_the_corpus_states_what_the_manifest_says(tables):
    """Statements are counted from the documents, and questions and clozes in the text itself."""
    some = facts.sample(facts.choose(facts.atlas(), ["P36", "P50"]), 40)
    table = tables["family"]
    table = table[table["fact"].isin(some.facts["fact"])].reset_index(drop=True)
    read = corpus.documents(some, table)
    stated = Counter(row for document in read for row in document.states)
    assert {row: n for row, n in table["exposures"].items() if n} == stated
    row = table.sort_values("question").iloc[-1]
    labels = dict(zip(some.entities["entity"], some.entities["label"], strict=True))
    lines = Counter(
        line for document in read for line in corpus.unmark(document.text)[0].split("\n")
    )
    templates = some.templates[
        (some.templates["relation"] == row["relation"]) & (some.templates["role"] == "question")
    ]
    asked = [t.replace("[X]", labels[row["subject"]]) for t in templates["template"]]
    assert sum(lines[f"{text} {labels[row['object']]}."] for text in asked) == row["question"]
