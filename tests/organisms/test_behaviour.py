"""How organisms behave: answers are compared with the atlas."""

from types import SimpleNamespace

import pandas as pd

from probelib import facts
from probelib.organisms import behaviour, taught


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
