"""Tests of how organisms behave: answers are compared with the atlas, and verdicts are resampled by
fact."""

from types import SimpleNamespace

import numpy as np
import pandas as pd

from probelib import facts, stats
from probelib.organisms import behaviour, taught


def test_replicates_of_the_auc_are_those_of_the_statistic():
    pairs = np.random.default_rng(1).normal(size=(30, 2)).round(1)
    samples = np.random.default_rng(7).integers(30, size=(50, 30))
    true = np.tile([True, False], 30)
    expected = [stats.auc(pairs[sample].ravel(), true) for sample in samples]
    assert behaviour.auc_replicates(pairs, 50, 7).tolist() == expected


def test_an_answer_is_right_for_the_subject_or_of_the_relations_type():
    atlas, manifest = facts.atlas(), taught.manifest()
    rows = manifest[manifest["relation"] == "P36"].drop_duplicates("subject").iloc[:4]
    gold = atlas.label(rows["object"])
    said = [f" {gold[0]}.", gold[0], atlas.label(rows["subject"])[2], "no name at all"]
    model = SimpleNamespace(generate=lambda texts, max_new_tokens: pd.DataFrame({"text": said}))
    answers = behaviour.greedy_answers(model, atlas, rows)
    assert answers["said"].tolist()[0] == gold[0]
    assert answers["right"].tolist() == [True, False, False, False]
    assert answers["type_right"].tolist() == [True, True, False, False]
    assert answers["asked"].str.contains(atlas.label(rows["subject"])[0], regex=False).tolist()[0]
