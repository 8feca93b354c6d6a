"""MONITOR's artifacts: verdicts, and what they count."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from probelib import facts
from probelib.monitor import artifacts, measures


def measured() -> measures.Measured:
    """Two models on two relations of two facts; the replicates of b lie above those of a."""
    ends = {"MONITOR low": 0.1, "MONITOR high": 0.9, "probs": 0.5, "coverage": 0.5}
    models = pd.DataFrame({"model": ["a-1m", "a-2m"], "parameters": [10**6, 2 * 10**6]})
    models = models.assign(MONITOR=[0.2, 0.5], **ends, **{"avg acc": [5.0, 35.0]})
    rows = pd.DataFrame({"relation": ["P36", "P37"] * 2, "model": ["a-1m"] * 2 + ["a-2m"] * 2})
    rows = rows.assign(MONITOR=[0.2, np.nan, 0.4, 0.6], n=2, std=[1.0, 0, 3, 2], **ends)
    rows["avg acc"] = rows["base acc"] = rows["anchored acc"] = [10.0, 0, 12, 20]
    values = np.array([[[0.2, np.nan], [0.4, 0.6]], [[0.3, np.nan], [0.45, 0.7]]])
    table = pd.DataFrame({"fact": list("xy"), "relation": ["P36", "P37"], "anchored": True})
    table = table.assign(acc=0.5, root=0.1, pbar=0.5, ird=0.1)
    known = {"a-1m": table, "a-2m": table.assign(anchored=[True, False], root=0.2)}
    replicates = dict.fromkeys(("MONITOR", "avg acc", "std"), values)
    run = pd.DataFrame({"relation": "P36", "accuracy": [9.0, 11.0]})
    return measures.Measured(known, {}, dict.fromkeys(known, run), rows, models, replicates)


def test_a_lead_that_resampling_reverses_is_a_tie_and_not_bold():
    clear = artifacts.table4(measured())
    claims = clear.claims.set_index("key")
    assert claims["low"]["lead"] > 0 and claims["missed"]["lead"] == "larger n"  # of two facts
    assert claims["value"]["lead"] == pytest.approx(0.3)
    assert clear.bold() == {"MONITOR": [0]}
    # fact x: 0.1 / 0.5, 0.2 / 0.5
    assert clear.frame["common"].tolist() == pytest.approx([0.2, 0.4])
    near = np.array([[[0.2, 0.2], [0.4, 0.4]], [[0.5, 0.5], [0.3, 0.3]]])
    tie = artifacts.table4(replace(measured(), replicates={"MONITOR": near}))
    assert tie.claims["low"].iloc[-1] < 0 and tie.bold() == {}


def test_nobody_anchors_anything():
    nothing = measured()
    nothing.models["MONITOR"] = nothing.relations["MONITOR"] = np.nan
    assert artifacts.table4(nothing).claims["verdict"].tolist() == ["no interval"]
    panel = facts.load(relations=["P36", "P37"], n_facts=2)
    assert artifacts.table10(nothing, panel).table()["max"].isna().all()
    variants = measured()
    variants.models["parameters"] = 1  # variants of a model are no sizes
    for without in (nothing, variants):
        shown = artifacts.figure12(without)
        assert shown.claims is shown.figure is None, "a line says what it needs"
        assert shown.table()["needs"].tolist() == ["two or more sizes of one family"]
    assert artifacts.figure12(measured()).claims is not None


def test_solid_anchors_are_compared_on_common_facts():
    """By hand: both anchor fact x; only a-1m anchors y, whose anchor would reverse the sign."""
    one = np.array([0.9])
    sets = pd.DataFrame({"fact": list("xy"), "relation": "P36", "p": [one, one / 9]})
    sets = sets.assign(f=[np.array([[0.9]])] * 2, n=[np.array([[0.1]])] * 2)
    both = replace(measured(), anchors={"a-1m": sets, "a-2m": sets.assign(p=[one / 2, one])})
    figure = artifacts.figure9(both, ["a-1m", "a-2m"], "P36")
    primary = figure.claims.set_index("key").loc["primary"]
    assert primary["value"] == 100 and primary["n"] == 1 and primary["verdict"] == "no interval"
    assert figure.frame.groupby("fact")["common"].first().tolist() == [True, False]


def test_flaws_of_the_real_files(fktc):
    """The counts of the released files: 791 leaked objects in P176."""
    data = facts.read_fktc(fktc, ["P176", "P264", "P101"])
    table = artifacts.table9(data, data).frame.set_index("relation")
    assert table["frames"].to_dict() == {"P176": 7, "P264": 6, "P101": 7}
    assert table["several"]["P101"] == 66 and table["leaked"]["P176"] == 791
    assert table["right distractor"]["P101"] == 4
    assert table["prompts"].to_dict() == {"P176": 12766, "P264": 5148, "P101": 9048}


def test_what_a_sample_does_not_show_the_whole_data_does():
    """Canada has English and French: a sample with one of them takes the other for wrong."""
    some = facts.load(relations=["P37"], n_facts=3)
    one, other = some.facts.iloc[0], some.facts.iloc[1]
    more = some.facts.head(1).assign(fact="new", object=other["object"])
    whole = replace(some, facts=pd.concat([some.facts, more]))
    offered = pd.DataFrame({"fact": [one["fact"]], "number": [1], "object": [other["object"]]})
    some = replace(some, distractors=offered)
    rows = [artifacts.table9(some, known).frame.iloc[0] for known in (some, whole)]
    assert [row["several"] for row in rows] == [0, 1]
    assert [row["right distractor"] for row in rows] == [0, 1]
