"""What a run needs, read off its plan."""

import re

import pytest

from probelib import ProbeError
from probelib.lm import names
from probelib.runner import cli, plan, preflight
from tests.lm import tiny
from tests.lm.remote.server import serving

CHAT = "gpt-4o@http://127.0.0.1"
PAIR = {"models": ["atlas-llama-0.6m"], "tuned": ["atlas-neox-5m-it=atlas-neox-2.4m"]}
WRONG = [  # values, what the command line sets, the error
    ({"models": ["atlas-neox-2"]}, [], "unknown model 'atlas-neox-2'; did you mean"),
    ({"models": ["./run-7/checkpoint-10"]}, [], "./run-7/checkpoint-10: no such folder"),
    ({"models": [f"{CHAT}:9/v1"]}, [], "unknown model 'gpt"),  # a chat model has no log-probs
    ({"judge": f"{CHAT}:99999/v1"}, [], "is not a valid address"),
    ({"models": ["atlas-neox-2.4m", None]}, [], "models: None is of type NoneType"),
    ({"studied": 3}, [], "studied: 3 is of type int"),
    ({"quantize": "3bit"}, [], "unknown quantize '3bit'"),
    ({"dtype": "float64"}, [], "unknown dtype 'float64'"),
    ({"relations": ["P3666"]}, ["relations"], "unknown relation 'P3666'"),
    ({"data": "fktcc", "folder": "x"}, ["data"], "unknown data 'fktcc'; did you mean fktc"),
    ({"data": "table", "folder": "x.csv"}, ["data", "folder"], "x.csv: no such file"),
    ({"n_facts": 0}, ["n_facts"], "n_facts is 0"),
    ({"data": "table"}, ["data"], "takes folder="),
    (PAIR, ["tuned"], "atlas-neox-5m-it=atlas-neox-2.4m among --models 'atlas-neox-2.4m'"),
    ({"graph": "dbpedia.ttl"}, ["graph"], "no graph 'dbpedia.ttl'"),
]
FINE = [
    ({"judge": f"{CHAT}:9/v1", "quantize": None, "models": ["a/b"]}, []),
    ({"models": ["one=a/b", "two=atlas-neox-0.15m"]}, []),
    ({"folder": "scores of another kind"}, ["folder"]),
    ({"data": "fktc", "n_facts": 3}, ["n_facts"]),  # nobody has said where these lie
    ({"models": ["a/b"], "tuned": ["c/d=a/b", "atlas-neox-1.2m"]}, ["tuned"]),
    ({"tuned": ["atlas-neox-1.2m=a/b"]}, ["tuned"]),
    ({"graph": "atlas"}, ["graph"]),
]


@pytest.mark.parametrize(("values", "given", "said"), WRONG)
def test_what_cannot_run_is_reported_before_a_run(values, given, said):
    values = values if "models" in values or "n_facts" in values else {"n_facts": 3} | values
    with pytest.raises(ProbeError, match=re.escape(said)):
        preflight.check({"one": values}, given)


@pytest.mark.parametrize(("values", "given"), FINE)
def test_what_may_run_passes(values, given):
    preflight.check({"one": values}, given)


def test_a_chat_model_of_a_server_is_tested_before_a_run():
    """Where the command line names it; as it does not list its models, by a question."""
    said = {"choices": [{"message": {"content": "Yes."}}]}
    answer = lambda path, body, log: (200 if body["model"] == "known" else 404, said, {})
    with serving(answer) as (url, log):
        for name, given in (("unknown", ["n_facts"]), ("known", ["judge"])):
            preflight.check({"one": {"judge": f"{name}@{url}"}}, given, online=True)
        assert [body["model"] for _, body, _ in log] == ["known"]
        with pytest.raises(ProbeError, match="no response from the model 'unknown'"):
            preflight.check({"one": {"judge": f"unknown@{url}"}}, ["judge"], online=True)


def test_two_models_of_one_name_are_reported_before_a_run(tmp_path, monkeypatch):
    monkeypatch.setattr(names, "_sources", {})
    paths = [str(tiny.folder(tmp_path / sweep / "run" / "final")) for sweep in ("a", "b")]
    with pytest.raises(ProbeError, match="have the same display name 'run/final'"):
        preflight.check({"one": {"models": paths[:1], "tuned": paths[1:]}})
    monkeypatch.setattr(names, "_sources", {})
    preflight.check({"one": {"models": [f"other={paths[0]}"], "tuned": paths[1:]}})


def test_the_dry_run_says_what_a_table_lacks(tmp_path):
    """Six facts of the capital, whose templates the atlas has; four of a relation without any."""
    rows = ["relation,subject,object", "symbol,iron,Fe", "symbol,gold,Au", "symbol,tin,Sn"]
    rows += ["P36,Peru,Lima", "P36,Chile,Santiago", "P36,Kenya,Nairobi", "P36,Mali,Bamako"]
    table = tmp_path / "mine.csv"
    table.write_text("\n".join([*rows, "symbol,lead,Pb", "P36,Cuba,Havana", "P36,Oman,Muscat"]))
    own = {"data": "table", "folder": str(table), "n_facts": 2}
    said = lambda notebook, values: " ".join(preflight.lacking({notebook: values}))
    assert f"question template for symbol: write it to {tmp_path}/mi" in said("monitor/sec5", own)
    assert "no cloze template for symbol" in said("distractors/sec4", own)
    assert said("monitor/sec5", own | {"relations": ["P36"]}) == ""
    assert said("monitor/sec5", {"n_facts": 3}) == ""  # the atlas


@pytest.mark.parametrize("profile", ["smoke", "atlas", "small", "mine", "paper"])
def test_every_profile_passes_the_dry_run(profile, capsys):
    assert cli.main(["--profile", profile, "--dry-run"]) == 0
    said, whole = capsys.readouterr().out, plan.read()
    named = preflight.models(plan.settings(whole, plan.steps_of(whole, profile), profile))
    assert all(model in said for model in named)
    assert {*named} >= {*whole.profiles[profile].get("models", [])}
