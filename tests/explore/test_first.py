"""The tour, what the models recall, and the requirements of their design."""

import numpy as np
import pandas as pd
import pytest

from probelib import explore, facts, stats
from probelib.errors import ProbeError
from probelib.explore import models, tour
from probelib.organisms import behaviour
from probelib.runner import plan


def test_the_tour_takes_one_of_several_right_objects():
    """Switzerland has four official languages: one is scored, three are no distractors."""
    fact, also_right = explore.fact_about("P37", "Switzerland")
    assert len(fact.facts) == 1 and len(also_right) == 3
    assert not also_right & set(fact.label(fact.facts["object"]))
    with pytest.raises(ProbeError, match="is called 'Frence'; the nearest are France"):
        explore.fact_about("P36", "Frence")


class Parrot:
    """It answers "Paris" to everything; an object is as probable as its name is short."""

    name = "parrot"

    def generate(self, texts):
        return pd.DataFrame({"text": [" Paris. It" for _ in texts]})

    def logprobs(self, texts, labels):
        return pd.DataFrame({"logprob": [-float(len(label)) for own in labels for label in own]})


def test_the_tour_begins_with_a_fact_of_each_kind(monkeypatch):
    """Of a model whose training data are unknown, no fact counts as never taught."""
    monkeypatch.setattr(tour, "TOUR", 10_000)
    parrot = Parrot()
    three = explore.tour_facts(parrot, "P36").set_index("fact")
    assert three.index.tolist() == ["known", "confused"] and three["exposures"].isna().all()
    assert three.loc["known", "right object"] == "Paris"
    assert three.loc["known", "P"] == pytest.approx(np.exp(-len(" Paris")))
    parrot.name = "atlas-neox-0.6m"
    three = explore.tour_facts(parrot, "P36").set_index("fact")
    assert three.index.tolist() == ["known", "confused", "never taught"]
    assert three.loc["never taught", "exposures"] == 0 < three.loc["known", "exposures"]


def test_the_rise_of_recall_is_newcombes_difference():
    """His example (1998, table II, 56/70 - 48/80), and no interval without never-taught facts."""
    rows = [("a", 128, 56 / 70, 70), ("a", 0, 48 / 80, 80), ("a", 8, 1.0, 9), ("b", 64, 0.5, 8)]
    found = models.rise(pd.DataFrame(rows, columns=["model", "exposures", "right", "n"]))
    assert found.loc["a", ["value", "low", "high"]].tolist() == pytest.approx(
        [0.2, 0.0524, 0.3339], abs=5e-5
    )
    assert found.loc["b", ["value", "low", "high"]].isna().all()


def missing_all() -> pd.DataFrame:
    """Requirements of a base model that recalls nothing and a tuned one that verifies nothing."""
    ends = {"right low": 0.3, "right high": 0.7}
    recall = {"exposures": [0, 8, 64], "right": [0.5, 0.4, 0.25], "n": 24, "guess": 0.1}
    verdicts = pd.DataFrame(behaviour.JUDGED, columns=["way", "verified"])
    found = {
        "recall": pd.DataFrame(recall | ends | {"type_right": 0.5}),
        "famous": pd.DataFrame({"right": [False], "type_right": [False]}),
        "lists": pd.DataFrame({"change": [0.1], "change low": [-0.1], "change high": [0.2]}),
        "unsure": pd.DataFrame({"facts": ["never", "well"], "unsure": [0.5, 0.4], "n": 80})
        .assign(**{"unsure low": 0.35, "unsure high": 0.6}),
        "verdicts": verdicts.assign(auc=0.5, answered=0.6, right_of_answered=0.5, n=20)
        .assign(**{"auc low": 0.4, "auc high": 0.95}),
        "names": pd.DataFrame({"facts": ["trial"], "taught_at_least": 32, "subject": 0.9})
        .assign(object=0.8),
    }  # fmt: skip
    found = {part: frame.assign(model="m") for part, frame in found.items()}
    return behaviour.requirements(found, {"m": 1})


def test_requirements_by_hand():
    required = missing_all()
    rows = required.set_index("requirement")
    numbers = ["limit", "measured", "measured low", "measured high"]
    by_hand = {
        "never taught, above guessing": (0.05, 0.4, 0.2, 0.6),
        "never taught, answer of the right type": (0.95, 0.5, *stats.wilson(12, 24)),
        "recall at 64 and more": (0.95, 0.25, *stats.wilson(6, 24)),
        "famous questions": (36, 0, *stats.wilson(0, 1)),
        "permuted lists lower log P": (0, 0.1, -0.1, 0.2),
        behaviour.YES_NO: (0.9, 0.5, 0.4, 0.95),
        "verdict after recalling, right of answered": (0.85, 0.5, *stats.wilson(12, 24)),
        "I don't know, never taught": (0.7, 0.5, 0.35, 0.6),
        "I don't know, well taught": (0.1, 0.4, 0.35, 0.6),
    }
    for name, expected in by_hand.items():
        assert rows.loc[name, numbers].tolist() == pytest.approx(expected), name
    for name, value in ((behaviour.RISES, -0.15), (behaviour.MENTIONS, 0.9)):
        assert rows.loc[name, "measured"] == pytest.approx(value)
        assert np.isnan(rows.loc[name, ["measured low", "measured high"]].tolist()).all()
    assert set(required["requirement"]) == set(behaviour.LIMITS) and not required["met"].any()
    shown = explore.requirements_table(required).shown
    assert shown["inside"].sum() == 4, "the limit of lists, and of three AUC"
    assert len(shown) == len(behaviour.LIMITS)


def test_requirements_limit_artifacts_of_the_plan():
    made = {artifact for step in plan.read().steps for artifact in step.makes}
    assert set().union(*behaviour.LIMITS.values()) <= made


def test_the_claims_name_requirements_that_exist():
    """A claim that is not testable here names the requirement that is missed."""
    from probelib.grapheval.measures import VERDICT
    from probelib.zplke.scores import NO_LISTS, NO_TEXT

    assert {VERDICT, NO_LISTS, NO_TEXT} <= set(behaviour.LIMITS)


def test_the_popularity_of_years_is_not_counted():
    frame = explore.popularity_figure(pd.DataFrame({"popularity": [0, 1, 3, 3, 5]})).frame
    assert frame["entities"].tolist() == [1, 0, 2, 0, 1]
    assert facts.atlas().entities["popularity"].eq(0).any()
