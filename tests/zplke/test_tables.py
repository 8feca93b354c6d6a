"""Findings of ZP-LKE's tables: hand-made frames in, sentences out."""

import numpy as np
import pandas as pd
import pytest

from probelib import facts, lm, parameters, zplke
from probelib.errors import ProbeError
from probelib.zplke import tables

WORK = {"requested_tokens": [900, 300], "forwarded_tokens": [30, 10]}


def test_without_trees_their_nodes_are_not_reported():
    with_trees = tables.tokens_saved(pd.DataFrame(WORK | {"tree_nodes": [30.0, np.nan]}))
    assert with_trees == (
        "**30 times** fewer tokens are forwarded than requested; forwarded tokens per node of the prefix trees: 1.000."
    )
    without = tables.tokens_saved(pd.DataFrame(WORK | {"tree_nodes": [np.nan, np.nan]}))
    assert without == "**30 times** fewer tokens are forwarded than requested."


def test_an_encoder_decoder_cannot_continue_a_list():
    with pytest.raises(ProbeError, match="atlas-t5-2m is an encoder-decoder.*atlas-neox-2.4m"):
        lm.load_decoders(["atlas-neox-0.15m", "atlas-t5-2m"])


def test_relations_that_need_no_model_are_named():
    table = pd.DataFrame(
        {"name": ["capital", "spoken"], "base": [0.5, 0.1], "chance": 0.01, "copy": 0.2, "majority": 0.1}
    )
    assert "In 1 of 2 relations" in tables.finding9(table) and "(spoken)" in tables.finding9(table)
    assert tables.finding9(table.head(1)).startswith("In all 1 relations")


def test_eta_beside_independence_or_nothing():
    columns = ["family", "eta", "low", "high", "expected", "reversed"]
    row = pd.DataFrame([("neox", 0.75, 0.7, 0.8, 0.5, 0.6)], columns=columns)
    assert tables.finding2(row) == "neox: η = 0.75 [0.70, 0.80], independent models 0.50, reversed 0.60."
    assert tables.finding2(row.head(0)).startswith("No family has two models")


def test_fine_tuned_models_below_their_base_are_counted():
    table = pd.DataFrame({"accuracy": [0.5, 0.4], "accuracy of it": [0.4, 0.45], "p (Holm)": [0.01, 0.5]})
    assert tables.finding11(table).startswith(
        "1 of 2 fine-tuned models"
    ) and "; 1 of the differences" in tables.finding11(table)
    assert tables.finding11(table.head(0)).startswith("No fine-tuned model with its base")


def test_the_smallest_and_largest_model_of_a_family():
    described = pd.DataFrame({"model": ["a-1m", "a-2m", "a-3m", "b-1m"], "parameters": [10, 20, 30, 10]})
    assert tables.family_ends(described["model"], described) == {"a": ("a-1m", "a-3m")}


def test_exposure_counts_of_other_models_are_not_known():
    assert tables.known_where_taught(facts.load(relations=["P36"], n_facts=2), pd.DataFrame(), None).endswith(
        "is not known."
    )


def test_a_base_is_named_or_guessed():
    assert zplke.bases(["m", "n"], ["m-it", "x=n", "z-it"]) == {"m-it": "m", "x": "n", "z-it": ""}


def test_unknown_settings_raise():
    assert vars(parameters.complete(zplke.ModelsSettings, {"draws": 5})) == {"n_examples": 50, "draws": 5, "seed": 0}
    with pytest.raises(ProbeError, match="drawz"):
        parameters.complete(zplke.ModelsSettings, {"drawz": 5})


def test_table_1_shows_a_fact_for_which_the_examples_matter():
    """Of two facts that four correct examples bring out, the one that fewer of the other inputs do; a fact that they do not bring
    out comes last."""
    some = facts.load(relations=["P569"], n_facts=3)
    ids, labels = some.facts["fact"].tolist(), some.label(some.facts["object"])
    contexts = [("zp", "4 correct"), ("zp", "1 correct"), ("cloze", "none")]
    inputs = pd.DataFrame(
        [(f"{f}|{c}", f, role, c) for f in ids for role, c in contexts], columns=["prompt", "fact", "role", "context"]
    )
    right = [True, True, True, True, False, True, False, False, False]
    text = [labels[i // 3] if ok else "0" for i, ok in enumerate(right)]
    chosen = tables.telling_fact(inputs, inputs.assign(text=text)[["prompt", "text"]], some)
    assert chosen.facts["fact"].tolist() == [ids[1]]
