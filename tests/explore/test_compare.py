"""Comparing models by hand: four facts of two relations, one lost, one gained."""

import numpy as np
import pandas as pd
import pytest

from probelib import facts, lm
from probelib.explore import compare

KEY = ["fact", "relation", "subject", "object"]
FACTS = [("f1", "capital", "Peru", "Lima"), ("f2", "capital", "Kenya", "Nairobi")]
FACTS += [("f3", "currency", "Peru", "sol"), ("f4", "currency", "Kenya", "shilling")]


def test_pairs_and_tables_by_hand():
    named = pd.DataFrame(FACTS, columns=KEY).assign(said="x")
    before = named.assign(model="a", right=[True, True, False, False], logprob=[-1, -2, -3, -4])
    after = named.assign(model="b", right=[True, False, True, False], logprob=[-1, -4, -2, -4])
    both = compare.pairs(pd.concat([before, after]))
    assert both["change"].tolist() == [0, -1, 1, 0]
    assert both["change of log P"].tolist() == [0, -2, 1, 0]
    row = compare.table1(both).frame.iloc[0]
    found = row[["before", "after", "difference", "lost", "gained", "p"]]
    assert found.tolist() == [50, 50, 0, 1, 1, 1]
    assert np.isnan(row["difference low"]), "four facts give no interval"
    changed = compare.facts_table(both).frame.set_index("subject")
    assert changed["fact is"].to_dict() == {"Kenya": "lost", "Peru": "gained"}
    table = compare.table2(both).frame
    assert table["lost"].tolist() == [1, 0] and (table["p, Holm"] >= table["p"]).all()


def test_interval_draws_whole_relations():
    """Two relations that changed as a whole: a draw has 0, half or all of the facts changed."""
    values = pd.Series([0.0] * 20 + [1.0] * 20)
    low, high, error = compare.clustered(values, pd.Series(["a"] * 20 + ["b"] * 20))
    assert (low, high) == (0, 1) and error == pytest.approx(0.5 / np.sqrt(2), abs=0.02)
    assert np.isnan(compare.clustered(values, pd.Series(["a"] * 40))).all(), "one relation"


def test_a_model_does_not_differ_from_itself(tmp_path):
    asked = facts.load(relations=["P37"], n_facts=5, n_distractors=4)
    models = {"one": lm.load("atlas-neox-0.15m"), "two": lm.load("atlas-neox-0.15m")}
    both = compare.pairs(compare.choices(models, asked, tmp_path))
    assert (both["change"] == 0).all() and (both["change of log P"] == 0).all()
