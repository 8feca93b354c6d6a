"""What a model is called: by its short name in tables and figures, and by everything that finds it
again."""

import os
from pathlib import Path

import pytest

from probelib import ProbeError, grapheval, lm
from probelib.facts.shipped import read_atlas
from probelib.lm.internals.memory import parameters
from probelib.lm.names import pairs_with_base, with_base
from probelib.lm.text import CUE, PATTERNS, SHOTS
from tests.lm import tiny


@pytest.fixture
def runs(tmp_path):
    """Two checkpoints of one run, one of another, whose name holds a "="."""
    for name in ("run-7/checkpoint-1", "run-7/checkpoint-2", "lr=1e-4/checkpoint-1"):
        tiny.folder(tmp_path / name)
    return tmp_path


def test_a_folder_goes_by_its_last_two_names(runs):
    names = ["run-7/checkpoint-1", "lr=1e-4/checkpoint-1", "run-7/../run-7/checkpoint-2/"]
    paths = [f"{runs}/{name}" for name in names]
    assert lm.short_names(paths) == [*names[:2], "run-7/checkpoint-2"]
    one = lm.load("run-7/checkpoint-1")  # from then on
    assert one.folder == runs / "run-7" / "checkpoint-1" and one.name == "run-7/checkpoint-1"
    assert lm.load(paths[0]).name == one.name == one.identity()["model"]
    assert str(runs) not in str(one.describe())


def test_a_served_model_goes_by_its_name_and_its_server(runs):
    there = f"http://localhost:8000/v1#{runs}/run-7/checkpoint-1"
    name = "run-7/checkpoint-1 at localhost:8000"
    assert lm.short_names([there]) == [lm.load(there).name] == [name]
    assert lm.load(name).model_name == f"{runs}/run-7/checkpoint-1"
    both = "http://a:1/v1#chat=http://b:2/v1#base"
    assert with_base(both) == ("http://a:1/v1#chat", "http://b:2/v1#base")
    assert lm.short_names(both) == "chat at a:1=base at b:2"
    with pytest.raises(ProbeError, match="contains a user") as error:
        lm.short_names("http://user:word@localhost:8000/v1#atlas-neox-2.4m")
    assert "user:word" not in str(error.value)
    with pytest.raises(ProbeError, match="names no model"):
        lm.short_names("http://localhost:8000/v1")


def test_two_of_one_name_are_refused_and_a_link_is_another_name(runs, tmp_path_factory):
    first = runs / "run-7" / "checkpoint-1"
    twin = tiny.folder(tmp_path_factory.mktemp("elsewhere") / "run-7" / "checkpoint-1")
    for given in (([str(first), str(twin)],), ([str(first)], str(twin)), ([], f"{first}={twin}")):
        said = "have the same display name 'run-7/checkpoint-1'.*another-name="
        with pytest.raises(ProbeError, match=said) as error:
            lm.short_names(*given)
        assert str(first) in str(error.value) and str(twin) in str(error.value)
    os.symlink(twin, runs / "twin")
    expected = [["run-7/checkpoint-1"], f"{runs.name}/twin"]
    assert lm.short_names([str(first)], f"{runs}/twin") == expected
    with pytest.raises(ProbeError, match="have the same display name"):
        lm.load(twin)  # also without ``short_names``: rows of two models would have one name
    given = [f"other={twin}", str(first)]
    assert lm.short_names(given) == lm.short_names(given) == ["other", "run-7/checkpoint-1"]
    assert lm.load("other").folder == twin and lm.load(f"other={twin}").name == "other"
    with pytest.raises(ProbeError, match="have the same display name 'other'"):
        lm.load(f"other={first}")
    with pytest.warns(UserWarning, match="run-7/checkpoint-1: named twice, counted once"):
        assert lm.short_names([str(first), f"{first}/"]) == ["run-7/checkpoint-1"]


def test_a_folder_here_is_not_taken_for_one_of_that_name(runs, monkeypatch):
    monkeypatch.chdir(runs)
    for name in (Path("run-7/checkpoint-1"), "run-7/checkpoint-1"):
        assert lm.load(name).name == "run-7/checkpoint-1"
    lm.short_names(f"{runs}/run-7/checkpoint-1")
    assert lm.load("run-7/checkpoint-1").folder == runs / "run-7" / "checkpoint-1"
    tiny.folder(runs / "two" / "run-7" / "checkpoint-1")
    monkeypatch.chdir(runs / "two")
    with pytest.raises(ProbeError, match="./run-7/checkpoint-1"):
        lm.load("run-7/checkpoint-1")
    there = lm.load("two=./run-7/checkpoint-1").folder
    assert there.resolve() == runs / "two" / "run-7" / "checkpoint-1"


def test_tuned_and_base_in_one_entry(runs, monkeypatch):
    """Names of folders hold "="; a model in chat and the same one without have one folder."""
    base, tuned = f"{runs}/lr=1e-4/checkpoint-1", f"{runs}/run-7/checkpoint-2"
    chat, names = f"{base}@chat", ["run-7/checkpoint-2", "lr=1e-4/checkpoint-1"]
    for entry, halves in (
        (f"{tuned}={base}", (tuned, base)),
        (f"{base}={tuned}", (base, tuned)),
        (base, (base, "")),
        ("a/b=c", ("a/b", "c")),
        (f"mine={tuned}={base}", (f"mine={tuned}", base)),
        (f"{chat}={base}", (chat, base)),
        (chat, (chat, "")),
    ):
        assert with_base(entry) == halves
    given = [base, "atlas-neox-2.4m", chat], [f"{tuned}={base}", base]
    short = lm.short_names(*given)
    assert short == [[names[1], "atlas-neox-2.4m", f"{names[1]}@chat"], ["=".join(names), names[1]]]
    assert lm.short_names(*short) == short == lm.short_names(*given)  # runs twice
    assert pairs_with_base(*short) == [tuple(names)]
    assert lm.load(with_base(short[1][0])[0]).folder == runs / "run-7" / "checkpoint-2"
    assert lm.load(f"{names[1]}@chat").folder == lm.load(names[1]).folder
    assert parameters(chat) == parameters(base)
    lm.short_names([f"mine={base}"], format="shots")  # a display name has every variant
    assert lm.load("mine@cue").folder == lm.load("mine").folder == lm.load("mine@shots").folder
    assert (
        grapheval.scores.answering_models([names[1], "atlas-neox-2.4m"], short[1][:1]) == names[:1]
    )
    monkeypatch.chdir(runs)  # a path may begin there
    assert lm.load("run-7/checkpoint-1@chat").folder == runs / "run-7" / "checkpoint-1"


def test_a_variant_says_how_prompts_are_put_and_at_which_precision():
    asked = lm.short_names(["atlas-neox-0.15m", "atlas-neox-0.15m@4bit@cue"], format="shots")
    assert asked == ["atlas-neox-0.15m@shots", "atlas-neox-0.15m@4bit@cue"]
    bare, shots, cue = map(lm.load, ("atlas-neox-0.15m", *asked))
    assert [(m.tokens.format, m.quantize) for m in (cue, bare)] == [("cue", "4bit"), ("", None)]
    prompt = f"Question: Oslo?{CUE}"
    assert cue.tokens.read("Oslo?") == cue.tokens.read(f"Oslo?{CUE}") == prompt
    assert shots.tokens.read("Oslo?").endswith(f"Winter\n\n{prompt}")
    texts = {shots: "Oslo?", bare: PATTERNS["shots"].replace("{}", "Oslo?")}
    one, other = (model.logprobs(text, " Norway") for model, text in texts.items())
    assert one["logprob"].tolist() == other["logprob"].tolist()
    assert shots.identity() != bare.identity()
    with pytest.raises(ProbeError, match="did you mean shots or chat"):
        lm.short_names(["atlas-neox-0.15m"], format="shot")


def test_the_solved_examples_are_of_relations_that_no_fact_asks():
    labels = {label.casefold() for label in read_atlas().entities["label"]}
    assert not labels & {answer.casefold() for _, answer in SHOTS}
