"""The tour, what the models recall, and the requirements of their design."""

import numpy as np
import pandas as pd
import pytest

from probelib import explore, lm, stats
from probelib.distractors import artifacts
from probelib.errors import ProbeError
from probelib.explore import models
from probelib.organisms import behaviour
from probelib.runner import plan
from probelib.zplke.scores import NO_LISTS, NO_TEXT


def test_the_tour_takes_one_of_several_right_objects():
    """Switzerland has four official languages: one is scored, three are no distractors."""
    fact, also_right = explore.fact_about("P37", "Switzerland")
    assert len(fact.facts) == 1 and len(also_right) == 3
    assert not also_right & set(fact.label(fact.facts["object"]))
    with pytest.raises(ProbeError, match="'Frence'; did you mean France"):
        explore.fact_about("P36", "Frence")


def test_the_tour_begins_with_facts_of_different_kinds():
    """P and rank are those of the right object among all objects of the relation."""
    model = lm.load("atlas-neox-0.6m")
    three = explore.tour_facts(model, "P36").set_index("fact")
    assert set(three.index) >= {"known", "never taught"}
    known, never = three.loc["known"], three.loc["never taught"]
    assert known["answer"] == known["right object"] and known["exposures"] > 0 == never["exposures"]
    one = model.logprobs([known["question"]], [[f" {known['right object']}"]])["logprob"]
    assert known["P"] == pytest.approx(np.exp(one.item()), rel=1e-4) and known["rank"] == 1


def test_the_rise_of_recall_is_newcombes_difference():
    """His example (1998, table II, 56/70 - 48/80), and no interval without never-taught facts."""
    rows = [("a", 128, 56 / 70, 70), ("a", 0, 48 / 80, 80), ("a", 8, 1.0, 9), ("b", 64, 0.5, 8)]
    found = models.rise(pd.DataFrame(rows, columns=["model", "exposures", "right", "n"]))
    a, b = (found.loc[name, ["value", "low", "high"]] for name in "ab")
    assert a.tolist() == pytest.approx([0.2, 0.0524, 0.3339], abs=5e-5) and b.isna().all()


def test_requirements_by_hand():
    """Of a small and a large model the large one is asked more; both meet one requirement alone."""
    recall = pd.DataFrame({"exposures": [0, 8, 64], "n": 24, "guess": 0.1, "type_right": 0.5})
    recall = recall.assign(right=[0.5, 0.4, 0.25], **{"right low": 0.3, "right high": 0.7})
    rest = pd.DataFrame({"requirement": [*behaviour.REQUIRED][4:], "measured": 0.5})
    rest = rest.assign(**{"measured low": 0.4, "measured high": 0.95})
    rest.loc[rest["requirement"] == "I don't know, well taught", "measured"] = 0.05
    both = lambda own: pd.concat([own.assign(model=model) for model in ("large", "small")])
    found = {"recall": both(recall), "rest": both(rest)}
    required = behaviour.requirements(found, {"large": 2, "small": 1})
    rows = required.set_index(["model", "requirement"]).drop(columns=["wanted", "met", "limits"])
    by_hand = {
        "recall rises (0-4, 8-32, 64 and more)": (0, -0.15, np.nan, np.nan),
        "never taught, above guessing": (0.05, 0.4, 0.2, 0.6),
        "answers of the right type where never taught": (0.95, 0.5, *stats.wilson(12, 24)),
        "recall at 64 and more": (0.95, 0.25, *stats.wilson(6, 24)),
        "famous questions": (0.9, 0.5, 0.4, 0.95),
        "permuted lists to lower log P": (0, 0.5, 0.4, 0.95),
        "verdict after recalling, fresh facts (AUC)": (0.88, 0.5, 0.4, 0.95),
    }
    for name, expected in by_hand.items():
        assert rows.loc[("large", name)].tolist() == pytest.approx(expected, nan_ok=True), name
    assert rows.loc[("small", "verdict after recalling, fresh facts (AUC)"), "limit"] == 0.8
    largest = {name for name, rule in behaviour.REQUIRED.items() if rule.get("largest") == 1}
    assert set(rows.loc["large"].index) - set(rows.loc["small"].index) == largest
    assert set(required[required["met"]]["requirement"]) == {"I don't know, well taught"}
    assert explore.requirements_table(required).shown["inside"].sum() == 11  # limits in intervals


def test_requirements_limit_artifacts_and_claims_that_exist():
    """A claim that is not testable here names the requirement that is missed."""
    made = {artifact for step in plan.read().steps for artifact in step.makes}
    assert {name for rule in behaviour.REQUIRED.values() for name in rule["limits"]} <= made
    assert {NO_LISTS, NO_TEXT, artifacts.NO_TEXT} <= set(behaviour.REQUIRED)
