"""The short part of the survival campaign (``python -m tests.campaign`` is the long one): what needs no run of a notebook."""

import csv
import json
import random
import warnings

import nbformat
import numpy as np
import pandas as pd
import pytest
import torch

from probelib import files, paths, store
from probelib.errors import ProbeError
from probelib.grapheval import soft_prompt
from probelib.organisms import train
from probelib.report import pages
from probelib.runner import plan, uptodate
from tests.campaign import __main__ as campaign
from tests.campaign import faults
from tests.campaign.downloads import broken_download
from tests.campaign.works import Work

ROWS = pd.DataFrame({"fact": ["a", "b"], "logprob": [-1.5, -0.25]})


def flipped(file, chance: random.Random, times: int):
    """Changes one bit after the other, each time only that one; the file is whole again afterwards."""
    whole = file.read_bytes()
    for _ in range(times):
        content, at = bytearray(whole), chance.randrange(len(whole))
        content[at] ^= 1 << chance.randrange(8)
        file.write_bytes(content)
        yield at
    file.write_bytes(whole)


@pytest.mark.parametrize("suffix", [".parquet", ".json"])
def test_a_changed_bit_of_a_part_is_seen_or_changes_nothing(tmp_path, suffix):
    part = store.Part(tmp_path / "P1-logprobs-0.parquet", "P1")
    store.write(part, ROWS, {"cost": {"tokens": 12, "seconds": 0.125}, "model": {"dtype": "float32"}})
    told, seen = part.record(), 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for at in flipped(part.path.with_suffix(suffix), random.Random(1), 300):
            if part.finished():
                assert (part.record()["cost"], part.record()["model"]) == (told["cost"], told["model"]), at
                pd.testing.assert_frame_equal(pd.read_parquet(part.path), ROWS)
            else:
                seen += 1
    assert part.finished() and seen > 250


def test_a_changed_bit_of_a_steps_record_makes_it_run_again(tmp_path, monkeypatch):
    monkeypatch.setattr(uptodate.paths, "RUNS", tmp_path)
    told = {"notebook": "n", "library": "l", "parameters": {"seed": 0}, "needs": {}, "products": {"a.csv": "0f"}}
    file = tmp_path / "smoke/done/a/b.json"
    files.write_json(file, files.sealed(told | {"executed": "e", "seconds": 1.5}))
    assert {key: uptodate._read("smoke", "a/b")[key] for key in told} == told
    for at in flipped(file, random.Random(2), 300):
        read = uptodate._read("smoke", "a/b")
        assert read is None or {key: read[key] for key in told} == told, at


def test_a_changed_bit_of_a_soft_prompt_is_reported_or_harmless(tmp_path):
    path, losses = (
        tmp_path / "soft.safetensors",
        pd.DataFrame([(0, np.nan, 2.5), (1, 3.0, 2.0)], columns=soft_prompt.LOSSES),
    )
    soft = torch.arange(8.0).reshape(2, 4)
    soft_prompt.write_soft_prompt(path, soft, losses)
    for at in flipped(path, random.Random(3), 120):
        try:
            tensor, table = soft_prompt.read_soft_prompt(path)
            assert torch.equal(tensor, soft), at
            pd.testing.assert_frame_equal(table, losses)
        except ProbeError as error:
            assert "it is trained again" in str(error)


def test_a_changed_bit_of_a_saved_training_restarts_it(tmp_path):
    model = torch.nn.Linear(2, 2)
    optimizer = torch.optim.AdamW(model.parameters())
    plan = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1.0)
    parts = {"model": model, "optimizer": optimizer, "plan": plan}
    train._keep(tmp_path / "state.pt", parts, {"made_of": "corpus", "curve": [1.0, 0.5], "seconds": 3.5})
    assert train._resume(tmp_path / "state.pt", "corpus", parts) == ([1.0, 0.5], 3.5)
    for _ in flipped(tmp_path / "state.pt", random.Random(4), 100):
        with pytest.warns(UserWarning, match="starts again"):
            assert train._resume(tmp_path / "state.pt", "corpus", parts) == ([], 0.0)


@pytest.mark.parametrize("seed", range(4))
def test_a_network_that_breaks_gives_the_file_or_a_reason(tmp_path, seed):
    assert broken_download(seed, tmp_path)[:2] == ("survived", "equal")


FRAGILE = """
import os, pathlib, sys
out = pathlib.Path(os.environ["PROBELIB_OUT"], "figures", "a.csv")
out.parent.mkdir(parents=True, exist_ok=True)
if not out.exists():
    out.write_text("{first}")
"""


def nothing(work, out, chance, seconds, whole):
    return "nothing was done"


def half(work, out, chance, seconds, whole):
    (out / "figures").mkdir()
    (out / "figures/a.csv").write_text("wro")
    return "a half-written file was left"


@pytest.mark.parametrize(("fault", "outcome"), [(nothing, "survived"), (half, "DEFECT")])
def test_the_campaign_sees_a_work_that_does_not_survive(tmp_path, fault, outcome):
    """Its judge on a work that trusts any file it finds."""
    products = lambda out: {"a.csv": (out / "figures/a.csv").read_bytes()}
    work = Work(lambda out: ["-c", FRAGILE.format(first="right")], products)
    whole, own = tmp_path / "whole", tmp_path / "own"
    for folder in (whole, own):
        folder.mkdir()
    assert campaign.finish(work, whole)[0] == 0
    assert campaign.one_try(work, fault, 0, 1.0, whole, own)[0] == outcome


def test_a_damaged_page_is_made_again(tmp_path, monkeypatch):
    """A page with another bit than it was written with is not kept, whatever its date says."""
    monkeypatch.setattr(paths, "RUNS", tmp_path)
    source = files.write(tmp_path / "smoke/notebooks/a.ipynb", nbformat.writes(nbformat.v4.new_notebook()))
    step = plan.Step("a", source, "A", [], [], [], [], {}, None, {}, {})
    pages._notebook("smoke", step, uptodate.written("smoke"))
    files.write(tmp_path / "smoke/report.html", "the report")
    page = tmp_path / "smoke/html/a.html"
    uptodate.write_report("smoke")
    whole, written = page.read_bytes(), page.stat().st_mtime_ns
    pages._notebook("smoke", step, uptodate.written("smoke"))
    assert page.stat().st_mtime_ns == written, "a whole page is kept"
    page.write_bytes(whole[:100] + bytes([whole[100] ^ 1]) + whole[101:])
    pages._notebook("smoke", step, uptodate.written("smoke"))
    assert page.read_bytes() == whole and uptodate.reported("smoke")


def test_a_bit_in_scores_that_no_step_reads_again_is_refused_later(tmp_path):
    """It may stay there as long as nobody reads it; the store does not."""
    part = store.Part(tmp_path / "out/scores/model/P36.parquet", "P36")
    store.write(part, pd.DataFrame({"a": [1, 2]}), {"cost": {}, "model": {}})
    faults.flip_bit(part.path.with_suffix(".json"), random.Random(3), tmp_path / "out")
    left = campaign._still_flipped(tmp_path / "out")
    assert left == part.path.with_suffix(".json") and not campaign._finished(left)


def test_the_record_in_the_checkout_adds_up():
    with open(campaign.HERE / "record.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert rows and all(row["defects"] == "0" for row in rows)
    tried = [tuple(map(str, row)) for row in campaign.summary(campaign.HERE / "tries.csv")]
    assert tried == [tuple(row.values()) for row in rows]
    times = pd.DataFrame(rows).astype({"tried": int}).groupby("fault")["tried"].sum()
    assert set(faults.FAULTS) < set(times.index) and times.min() >= 30


def test_a_sealed_record_shows_a_change():
    record = files.sealed({"a": 1, "b": {"c": 0.1}})
    assert files.intact(json.loads(json.dumps(record))) and not files.intact(record | {"a": 2})
    assert not files.intact({"a": 1}), "one that lost its digest may have lost more"
