"""Training: the loss, resuming, what is refused; the shipped checkpoints are what they claim."""

import json
import shutil
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest

from probelib import ProbeError, facts, files, lm, prompts
from probelib.lm.names import CHECKPOINTS
from probelib.organisms import __main__ as organisms
from probelib.organisms import corpus, family, lessons, rows, taught, teach, train


@pytest.fixture(scope="module")
def begun(tmp_path_factory):
    """(folder, parts): the first 11 steps of the smallest organism; what it was made of, which
    every run makes alike."""
    out, parts = tmp_path_factory.mktemp("begun"), {}

    def kept(name: str, make):
        made = lambda *given: list(make(*given)) if name == "causal" else make(*given)
        return lambda *given: parts.setdefault(name, made(*given))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(train, "RUNS", out / "runs")
        for module, name in MADE:
            patch.setattr(module, name, kept(name, getattr(module, name)))
        return train.train("atlas-neox-0.15m", out / "whole", steps=11), parts


# a dozen seconds a run
MADE = [(corpus, "documents"), (family, "train_tokenizer"), (rows, "causal")]


def test_a_stopped_training_goes_on_to_the_same_bytes(begun, tmp_path, monkeypatch):
    """Stopped after the last saved state; the second run begins there, not at the first step."""
    whole, parts = begun
    monkeypatch.setattr(train, "KEEP", 3)
    monkeypatch.setattr(train, "RUNS", tmp_path / "runs")
    for module, name in MADE:
        monkeypatch.setattr(module, name, lambda *_, name=name: parts[name])

    def stop(*_):
        raise KeyboardInterrupt

    steps, loss = [], train._loss
    monkeypatch.setattr(train, "_loss", lambda *given: steps.append(1) or loss(*given))
    # a step takes ten seconds
    monkeypatch.setattr(train, "time", SimpleNamespace(perf_counter=lambda: 10 * len(steps)))
    with monkeypatch.context() as patch:
        patch.setattr(train, "_save", stop)
        patch.setattr(Path, "unlink", lambda *_, **__: None)  # the state stays, as after a kill
        with pytest.raises(KeyboardInterrupt):
            train.train("atlas-neox-0.15m", tmp_path / "stopped", steps=7)
    resumed = train.train("atlas-neox-0.15m", tmp_path / "resumed", steps=11)
    assert len(steps) == 7 + 11 - 6
    assert json.loads((resumed / "training.json").read_text())["seconds"] == 110
    assert files.sha256(resumed / "model.safetensors") == files.sha256(whole / "model.safetensors")
    assert not list((tmp_path / "runs" / "training").glob("*.pt"))


def test_training_starts_again_the_same_way(begun):
    """The smallest organism's first steps: the loss falls, and comes out as it did when the shipped
    one was trained."""
    first = json.loads((begun[0] / "training.json").read_text())
    shipped = train.record("atlas-neox-0.15m")
    assert first["corpus"] == shipped["corpus"] and first["manifest"] == shipped["manifest"]
    # another CPU rounds otherwise
    assert first["curve"] == pytest.approx(shipped["curve"][:2], abs=0.02)
    assert first["curve"][1] < first["curve"][0]
    assert lm.load(begun[0]).logprobs(["Paris"], [[" France"]])["logprob"][0] < 0


def test_after_an_edit_of_the_atlas_nothing_is_trained(tmp_path, monkeypatch):
    """A fact that was taught is gone: what the manifest says of it cannot be put into words."""
    table = taught.manifest()
    gone = table["fact"][table["exposures"] > 0].iloc[0]
    left = facts.keep(facts.atlas(), facts.atlas().facts["fact"] != gone)
    monkeypatch.setattr(train, "read_atlas", lambda: left)
    with pytest.raises(ProbeError, match=f"1 facts of the manifest were edited.*{gone}"):
        train.train("atlas-neox-0.15m", tmp_path, steps=1)


@pytest.mark.parametrize("name", sorted({*family.FAMILY} - {*family.NOT_SHIPPED}))
def test_a_shipped_organism_is_what_its_record_says(name):
    record, loaded = train.record(name), lm.load(name)
    assert record["name"] == name
    one = family.organism(name)
    assert one.width == loaded.config.hidden_size
    assert loaded.encoder_decoder == (one.architecture == "t5")


@pytest.mark.slow
def test_nothing_shipped_is_stale():
    """The weights are those that were saved, and the corpora come out as they were read."""
    records = {name: train.record(name) for name in lm.organisms()}
    assert {*records} == {*family.FAMILY} - {*family.NOT_SHIPPED}
    own = facts.atlas().facts["fact"].isin(taught.manifest()["fact"])
    atlas = facts.keep(facts.atlas(), own)  # as it was then: without later facts

    @cache
    def documents(read: str, tuned: bool):
        table = taught.read(read)
        if tuned:
            return lessons.tuning_documents(atlas, table, documents(read, False))
        return corpus.documents(atlas, table, read)

    for name, record in records.items():
        found = documents(record["reads"], name.endswith("-it"))
        assert record["corpus"] == corpus.digest(found), name
        assert record["manifest"] == files.sha256(taught.path(record["reads"])), name
        assert record["weights"] == files.sha256(CHECKPOINTS / name / "model.safetensors"), name
    assert sum(path.stat().st_size for path in CHECKPOINTS.rglob("*")) <= 100e6


def test_a_damaged_organism_is_refused(tmp_path, monkeypatch):
    """One flipped bit, or another manifest: the message says which file, and how to get it back."""
    from probelib.lm import names
    from probelib.lm.internals import folders

    shutil.copytree(CHECKPOINTS / "atlas-neox-0.15m", tmp_path / "atlas-neox-0.15m")
    monkeypatch.setattr(names, "CHECKPOINTS", tmp_path)
    weights = tmp_path / "atlas-neox-0.15m" / "model.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    with pytest.raises(ProbeError, match="model.safetensors is missing or not the recorded one"):
        lm.load("atlas-neox-0.15m")
    content[-1] ^= 1
    weights.write_bytes(content)
    lm.load("atlas-neox-0.15m")
    monkeypatch.setattr(folders, "MANIFESTS", tmp_path)
    with pytest.raises(ProbeError, match="family.parquet is missing or"):
        lm.load("atlas-neox-0.15m")


def test_an_edited_fact_is_named_and_a_new_one_is_never_stated(monkeypatch):
    """The organisms were taught a capital; the atlas now says another one."""
    panel, table = facts.load(relations=["P37"]), taught.manifest()
    there = panel.facts.merge(table, on="fact")["exposures"]
    assert taught.exposures(panel).tolist() == there.tolist()
    row = panel.facts[taught.exposures(panel).to_numpy() > 0].iloc[0]
    other = panel.facts.loc[panel.facts["object"] != row["object"], "object"].iloc[0]
    changed = lambda some: replace(
        some,
        facts=some.facts.assign(
            object=some.facts["object"].mask(some.facts["fact"] == row["fact"], other),
            fact=some.facts["fact"].replace(row["fact"], f"P37:{row['subject']}:{other}"),
        ),
    )
    atlas = changed(facts.atlas())
    monkeypatch.setattr(taught, "atlas", lambda: atlas)
    with pytest.raises(ProbeError, match=f"taught '{row['object']}'"):
        taught.exposures(changed(panel))
    ids = [f"new{i}" for i in range(len(panel.facts))]
    added = replace(panel, facts=panel.facts.assign(subject="Atlantis", fact=ids))
    assert taught.exposures(added).eq(0).all()


def test_a_triple_that_held_twice_has_one_sentence():
    """A sentence about a president's first term states the second one as well, for it names no
    year."""
    both = {"fact": ["a:1", "a:2", "b"], "relation": "P6", "subject": [*"aab"], "object": "o"}
    both = pd.DataFrame(both | {"exposures": [3, 4, 1]})
    assert taught.statements(both).to_dict() == {"a:1": 7, "a:2": 7, "b": 1}
    table, triple = taught.manifest(), ["relation", "subject", "object"]
    twice = table[table.duplicated(triple, keep=False)]
    counts = taught.statements(table)
    assert len(twice) > 10
    for _, own in twice.groupby(triple):
        assert counts[own["fact"]].eq(own["exposures"].sum()).all()


def test_what_was_taught_often_is_known_and_what_was_not_is_not():
    """Multiple choice over ten objects on the panel: the ground truth shows in the answers of the
    largest organism."""
    panel = facts.draw_distractors(facts.load(), n=9)
    stated = dict(zip(*taught.manifest()[["fact", "exposures"]].T.values, strict=True))
    asked = prompts.paraphrases(panel).query("template == 1")
    wrong = panel.distractors.assign(label=panel.label(panel.distractors["object"]))
    wrong = wrong.groupby("fact")["label"].agg(list)
    gold = dict(zip(panel.facts["fact"], panel.label(panel.facts["object"]), strict=True))
    options = [[f" {gold[f]}", *(f" {label}" for label in wrong[f])] for f in asked["fact"]]
    scores = lm.load("atlas-neox-2.4m").logprobs(asked["text"].tolist(), options)
    right = scores.loc[scores.groupby("prompt")["logprob"].idxmax()]["candidate"].to_numpy() == 0
    exposures = asked["fact"].map(stated).to_numpy()
    assert right[exposures >= 128].mean() > 0.8 and right[exposures == 0].mean() < 0.4


def test_any_model_is_taught_the_facts_of_a_table(tmp_path, monkeypatch, capsys):
    """Of invented facts the adapter knows those that it read, more than those that it did not."""
    monkeypatch.setattr(train, "RUNS", tmp_path / "runs")
    for name, value in {"KEPT": 5, "PLAIN": 5, "STEP": 1024, "RATE": 1e-2}.items():
        monkeypatch.setattr(teach, name, value)
    cities = ["Oslo", "Rome", "Cairo", "Lima"]
    invented = ["Vorlund", "Tashkel", "Quendria", "Mirova"]  # read
    invented += ["Belnor", "Oskarath", "Ulmia", "Zentavo"]  # not read
    read = pd.DataFrame({"relation": "P36", "subject": invented})
    read = read.assign(object=cities * 2, exposures=[160] * 4 + [0] * 4)
    read.to_csv(tmp_path / "facts.csv", index=False)
    given = ["teach", "atlas-neox-0.15m", str(tmp_path / "facts.csv"), "--out"]
    assert organisms.main([*given, str(tmp_path / "taught")]) in (0, None)
    asked = "What is the capital of " + read["subject"] + "?"
    known = lm.load(tmp_path / "taught").logprobs(asked.tolist(), [[f" {c}" for c in cities]] * 8)
    best = known.loc[known.groupby("prompt")["logprob"].idxmax(), "candidate"].to_numpy()
    right = best == [0, 1, 2, 3] * 2
    assert right[:4].all() and not right[4:].all()
    manifest = pd.read_parquet(tmp_path / "taught" / "taught.parquet")
    written = [file.read_text() for file in (tmp_path / "taught").glob("*.[jm][sd]*")]
    assert written and not any(str(CHECKPOINTS) in text for text in written)
    assert manifest["exposures"].tolist() == read["exposures"].tolist()
    read.assign(exposures="often").to_csv(tmp_path / "facts.csv", index=False)
    assert organisms.main([*given, str(tmp_path / "other")]) == 1
    assert "a whole number from 0 to 1000" in capsys.readouterr().err
