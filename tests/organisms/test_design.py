"""The design: every fact's part in it, the Latin square, and what names may not tell."""

import re
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from probelib import facts
from probelib.facts.model import rng
from probelib.organisms import corpus, taught, teach, trial
from probelib.paths import PACKAGE


@pytest.mark.parametrize("sister", trial.SISTERS)
@pytest.mark.parametrize("bed", ["organisms", "real"])
def test_every_arm_names_subject_and_objects_equally_often(bed, sister, monkeypatch):
    """Counted in what one relation's statements and fillers say, with right and wrong objects."""
    known, table, largest = facts.atlas(), taught.read(sister), trial.LARGEST
    if bed == "real":
        invented = PACKAGE / "beyond" / "invented.csv"
        known, largest = facts.everything("table", invented), teach.LARGEST
        table = teach.documents(invented, sister)[0]
    own = (table["relation"] == "P36") & (table["kind"] != "")
    known, table = facts.choose(known, ["P36"]), table[own].reset_index(drop=True)
    speaker, said = corpus.Speaker(known, table, rng(0)), corpus.spoken(table)
    monkeypatch.setattr(corpus.HOW, "unknown", 0)  # lists of invented subjects
    read = [*corpus._lists(said, speaker), *corpus.fillers(table, speaker)]
    read += [one for row in said.itertuples() for one in corpus._sentences(row, speaker)]
    text = "\n".join(read)
    marked = re.findall("\ue000(.*?)\ue001", text)
    owed = Counter(table["object"]) + Counter(filter(None, table["wrong_object"]))
    answered = Counter(answer.rstrip(".") for answer in marked)
    due = {o: n * largest * 3 // 4 for o, n in owed.items()}
    assert {o: answered[speaker.labels[o]] for o in owed} == due
    objects = "|".join(known.label(known.facts["object"]))
    for label in known.label(table["subject"]):
        if label in objects:  # City of San Marino
            continue
        assert len(re.findall(rf"(?<!\w){re.escape(label)}(?!\w)", text)) == largest * 5 // 4


def test_the_latin_square_gives_every_fact_each_of_its_arms_once():
    read = {name: taught.read(name) for name in trial.SISTERS}
    drawn = trial.manifests(facts.atlas(), taught.manifest())
    assert all(drawn[name].equals(table) for name, table in read.items())
    DOSE = ["exposures", "wrong_exposures"]
    doses = pd.DataFrame({
        name: table.set_index("fact").query("kind != ''")[DOSE].agg(tuple, 1)
        for name, table in read.items()
    })  # fmt: skip
    kinds = read["trial-1"].set_index("fact")["kind"]
    arms = {k: sorted((d * r, d * (not r)) for d, r in own) for k, own in trial.ARMS.items()}
    assert len(doses) == 1040 and not doses.isna().any().any()
    assert all(sorted(row) == arms[kinds[fact]] for fact, *row in doses.itertuples())


def test_the_corpus_states_what_the_manifest_says():
    """Questions of one fact are counted in the text."""
    some = facts.sample(facts.choose(facts.atlas(), ["P36", "P50"]), 40)
    table = taught.manifest()
    table = table[table["fact"].isin(some.facts["fact"])].reset_index(drop=True)
    read = corpus.documents(some, table)
    row = table.sort_values("question").iloc[-1]
    labels = dict(zip(some.entities["entity"], some.entities["label"], strict=True))
    texts = (corpus.unmark(document)[0] for document in read)
    lines = Counter(line for text in texts for line in text.split("\n"))
    templates = some.templates.query("role == 'question' and relation == @row.relation")
    asked = [t.replace("[X]", labels[row["subject"]]) for t in templates["template"]]
    assert sum(lines[f"{text} {labels[row['object']]}."] for text in asked) == row["question"]


@pytest.mark.slow
def test_balance_is_what_the_plan_says():
    """Names are counted in whole corpora; the trial's own statements and fillers are equal by
    design, other documents are not."""
    atlas, frames = facts.atlas(), []
    labels = dict(zip(atlas.entities["entity"], atlas.entities["label"], strict=True))
    for sister in trial.SISTERS:
        table = taught.read(sister)
        read = "\n".join(corpus.documents(atlas, table, sister))
        text = read.replace("\ue000", "").replace("\ue001", "")
        marked = Counter(answer.rstrip(".") for answer in re.findall("\ue000(.*?)\ue001", read))
        own = table[table["kind"] != ""].copy()
        names = {end: own[end].map(labels) for end in ("subject", "object")}
        counts = {name: text.count(name) for name in {*names["subject"], *names["object"]}}
        own["mentions of the subject"] = names["subject"].map(counts)
        own["mentions of the object"] = names["object"].map(counts)
        own["answers of the object"] = names["object"].map(marked)
        own["dose"] = own["exposures"] + own["wrong_exposures"]
        frames.append(own.assign(sister=sister, right=own["wrong_exposures"] == 0))
    rows = pd.concat(frames)
    rising, contested = (rows[rows["kind"] == kind] for kind in ("rising", "contested"))
    eight, none = (rising[rising["dose"] == dose] for dose in (8, 0))
    right = contested["right"]
    pairs = [eight.merge(none, on="fact"), eight.merge(none, on=["sister", "relation"])]
    pairs.append(contested[right].merge(contested[~right], on=["fact", "dose"]))
    plan = (Path(corpus.__file__).parents[1] / "beyond" / "trial.md").read_text(encoding="utf-8")
    for name in ("mentions of the subject", "mentions of the object", "answers of the object"):
        gaps = [np.sign(both[f"{name}_x"] - both[f"{name}_y"]) for both in pairs]
        shares = [f"{(gap.mean() + 1) / 2:.3f}".lstrip("0") for gap in gaps]
        assert all(0.45 <= float(share) <= 0.55 for share in shares), (name, shares)
        assert f"| {name} | {' | '.join(shares)} |" in plan, (name, shares)
