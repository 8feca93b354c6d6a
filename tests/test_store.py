"""The store: nothing is computed twice, nothing half-written or damaged is read, nothing missing is
averaged away."""

import shutil
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from probelib import lm, prompts, store
from probelib.errors import ProbeError
from probelib.facts import read_fktc
from probelib.lm import version
from probelib.paths import ROOT
from tests.facts.test_formats import HAITI, HEADER, write
from tests.lm import tiny


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return lm.load(tiny.folder(tmp_path_factory.mktemp("model")))


@pytest.fixture
def asked(tmp_path):
    folder = tmp_path / "facts"
    folder.mkdir()
    for relation in ("P37", "P30", "P19"):
        write(folder, HEADER, HAITI, HAITI | {"subject": "Chad"}, name=f"{relation}-subclass.json")
    facts = read_fktc(folder)
    return prompts.paraphrases(facts), prompts.gold(facts)


def bytes_of(folder):
    return {p.relative_to(folder): p.read_bytes() for p in sorted(folder.rglob("*.parquet"))}


def test_rows_name_their_request(model, asked, tmp_path):
    rows = store.score(model, *asked, tmp_path / "s")
    assert list(rows.columns) == store.SCORES and len(rows) == len(asked[0])
    row = rows.iloc[0]
    direct = model.logprobs([asked[0].iloc[0]["text"]], [[" French"]]).iloc[0]
    assert (row["relation"], row["label"]) == ("P19", "French")
    assert row["prompt"] == asked[0].iloc[0]["prompt"]
    assert row["logprob"] == pytest.approx(direct["logprob"], abs=1e-4)
    assert np.asarray(row["token_logprobs"], dtype=float).sum() == pytest.approx(row["logprob"])
    assert rows.attrs["cost"]["requests"] == len(rows)
    assert rows.attrs["models"][0]["model"] == model.name


def test_a_second_run_computes_nothing_and_a_changed_prompt_only_its_relation(
    model, asked, tmp_path, monkeypatch
):
    framed, gold = asked
    first = store.score(model, framed, gold, tmp_path)
    calls = []
    real = type(model).logprobs
    counted = lambda self, texts, *a, **k: calls.append(texts) or real(self, texts, *a, **k)
    monkeypatch.setattr(type(model), "logprobs", counted)
    pd.testing.assert_frame_equal(store.score(model, framed, gold, tmp_path), first)
    assert calls == []
    longer = framed["text"].where(framed["relation"] != "P30", framed["text"] + " ")
    store.score(model, framed.assign(text=longer), gold, tmp_path)
    assert len(calls) == 1 and all(text.endswith(" ") for text in calls[0])
    store.score(model, framed, gold, tmp_path, end=True)
    assert len(calls) == 4  # another question: every relation again


def test_parts_do_not_depend_on_other_requests(model, asked, tmp_path):
    framed, gold = asked
    store.score(model, framed, gold, tmp_path / "all")
    for relation in ("P30", "P19", "P37"):
        store.score(model, framed[framed["relation"] == relation], gold, tmp_path / "one")
    assert bytes_of(tmp_path / "all") == bytes_of(tmp_path / "one")


@pytest.mark.parametrize("damage", ["flip", "cut", "no parquet", "no record", "record"])
def test_a_damaged_part_is_reported_and_recomputed(model, asked, tmp_path, damage):
    store.score(model, *asked, tmp_path)
    before = bytes_of(tmp_path)
    part = next(tmp_path.rglob("P30-*.parquet"))
    content = bytearray(part.read_bytes())
    if damage == "flip":
        content[len(content) // 2] ^= 1
        part.write_bytes(content)
    elif damage == "cut":
        part.write_bytes(content[:-10])
    elif damage == "record":
        part.with_suffix(".json").write_text("{")
    else:
        (part if damage == "no parquet" else part.with_suffix(".json")).unlink()
    if damage in ("flip", "cut", "record"):
        with pytest.warns(UserWarning, match="damaged"):
            store.score(model, *asked, tmp_path)
    else:
        store.score(model, *asked, tmp_path)
    assert bytes_of(tmp_path) == before


def test_an_incomplete_set_raises(model, asked, tmp_path):
    store.score(model, *asked, tmp_path)
    parts = store.parts(model, *asked, tmp_path, "logprobs", {"end": False})
    parts[1].path.unlink()
    with pytest.raises(ProbeError, match="1 of 3 parts are missing"):
        store.read(parts)


def test_a_fact_without_candidate_raises(model, asked, tmp_path):
    with pytest.raises(ProbeError, match="no candidate"):
        store.score(model, asked[0], asked[1].iloc[1:], tmp_path)


def test_generated_text_is_stored_too(model, asked, tmp_path):
    rows = store.generate(model, asked[0].head(3), tmp_path, max_new_tokens=4)
    assert rows["prompt"].tolist() == asked[0].head(3)["prompt"].tolist()
    again = store.generate(model, asked[0].head(3), tmp_path, max_new_tokens=4)
    pd.testing.assert_frame_equal(again, rows)


SCRIPT = """
import os
from pathlib import Path
from probelib import lm, prompts, store
from probelib.facts import read_fktc
write = store.write
store.write = lambda *given: (write(*given), os.kill(os.getpid(), 9))
facts = read_fktc(Path({facts!r}))
store.score(lm.load({model!r}), prompts.paraphrases(facts), prompts.gold(facts), Path({out!r}))
"""


def test_kill_minus_nine_then_the_same_bytes(model, asked, tmp_path):
    """The process is killed behind its first part; the next run finishes, and the bytes are those
    of a quiet run."""
    store.score(model, *asked, tmp_path / "quiet")
    script = SCRIPT.format(
        facts=str(tmp_path / "facts"), model=str(model.folder), out=str(tmp_path / "killed")
    )
    assert subprocess.run([sys.executable, "-c", script], cwd=ROOT).returncode == -signal.SIGKILL
    assert len(bytes_of(tmp_path / "killed")) == 1
    store.score(model, *asked, tmp_path / "killed")
    assert bytes_of(tmp_path / "killed") == bytes_of(tmp_path / "quiet")


def test_no_place_to_write_is_one_clear_error_and_leaves_nothing(model, asked, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ProbeError, match="cannot be written"):
        store.score(model, *asked, tmp_path / "file")


def test_the_code_and_the_libraries_are_part_of_the_key(model, asked, tmp_path, monkeypatch):
    """A core whose source doubles every score: its scores are computed, not those of the old source
    read. The same for an upgrade."""
    old = store.score(model, *asked, tmp_path)["logprob"]
    core = shutil.copytree(Path(version.__file__).parent, tmp_path / "lm")
    assert version._digest(version.on_disk(core)[0]) == version.scoring()["code"]
    source = core / "scoring.py"
    source.write_text(source.read_text() + "\n# a comment changes nothing\n")
    assert version._digest(version.on_disk(core)[0]) == version.scoring()["code"]
    source.write_text(source.read_text() + "\nDOUBLED = 2\n")
    edited = version.scoring() | {"code": version._digest(version.on_disk(core)[0])}
    monkeypatch.setattr(store, "scoring", lambda: edited)
    real = type(model).logprobs
    doubled = lambda *a, **k: real(*a, **k).assign(logprob=lambda rows: 2 * rows["logprob"])
    monkeypatch.setattr(type(model), "logprobs", doubled)
    assert store.score(model, *asked, tmp_path)["logprob"].tolist() == (2 * old).tolist()
    before = len(bytes_of(tmp_path))
    monkeypatch.setattr(store, "scoring", lambda: edited | {"torch": "99.0"})
    store.score(model, *asked, tmp_path)
    assert len(bytes_of(tmp_path)) == before + 3


def test_a_part_holds_the_candidates_of_its_relation_in_their_order(tmp_path):
    of = {"prompt": ["p1", "p2", "p3"], "fact": ["a", "b", "c"], "relation": ["R", "S", "R"]}
    prompts = pd.DataFrame(of | {"text": "x"})
    given = {"fact": ["c", "b", "other", "a"], "candidate": ["1", "2", "3", "4"], "label": "y"}
    candidates, model = pd.DataFrame(given), SimpleNamespace(name="m", identity=dict)

    def parts(candidates):
        found = store.parts(model, prompts, candidates, tmp_path, "logprobs", {})
        return {part.relation: part for part in found}

    found, again = parts(candidates), parts(candidates.assign(label=["y", "z", "y", "y"]))
    assert found["R"].candidates["candidate"].tolist() == ["1", "4"]
    assert found["S"].candidates["candidate"].tolist() == ["2"]
    assert again["R"].path == found["R"].path and again["S"].path != found["S"].path


def test_rows_have_the_ids_that_are_asked_for(model, tmp_path):
    """The same prompts, of facts with other ids: the rows of an earlier call are not theirs."""
    asked = {"prompt": ["q1", "q2"], "relation": "R", "text": ["The capital of Peru is", "So is"]}
    for ids in (["a", "b"], ["c", "d"], ["b", "a"]):
        prompts = pd.DataFrame(asked | {"fact": ids})
        candidates = pd.DataFrame({"fact": ["a", "b", "c", "d"], "candidate": "x", "label": "Lima"})
        assert store.generate(model, prompts, tmp_path, max_new_tokens=1)["fact"].tolist() == ids
        assert store.score(model, prompts, candidates, tmp_path)["fact"].tolist() == ids
        spaces, asked_of = {"cities": {"Q1": [" Lima"]}}, prompts.assign(space="cities", wanted=1)
        assert store.search(model, asked_of, spaces, tmp_path)["fact"].tolist() == ids


def test_another_process_that_writes_the_same_part_just_now_does_no_harm(tmp_path):
    """Between its two files their checksums differ: what was computed here is returned."""
    part = store.Part(tmp_path / "P36.parquet", "P36")
    rows = pd.DataFrame({"fact": ["a", "b"], "logprob": [-1.5, np.nan]})
    written = store.write(part, rows, {"cost": {"tokens": 3}, "model": {"model": "m"}})
    part.path.write_bytes(b"another writer's")
    found = store.read([part], {part.path: written})
    pd.testing.assert_frame_equal(found, rows)
    assert found.attrs == {"cost": {"tokens": 3}, "models": [{"model": "m"}]}
    missing = pytest.raises(ProbeError, match="1 of 1 parts are missing")
    with missing, pytest.warns(UserWarning, match="damaged"):
        store.read([part])


def test_the_gap_before_a_label_belongs_to_the_key(model, asked, tmp_path):
    blank, line = (store.score(model, *asked, tmp_path, gap=gap) for gap in (" ", "\n"))
    assert blank["logprob"][0] != line["logprob"][0] and len(bytes_of(tmp_path)) == 6
