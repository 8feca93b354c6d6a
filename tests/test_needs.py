"""What a run needs, read off its plan."""

import pytest

from probelib import needs, plan, run


@pytest.mark.parametrize(
    "name, expected",
    [
        ("bigscience/bloomz-560m", 560e6),
        ("bigscience/bloomz-7b1", 7.1e9),
        ("lmsys/vicuna-13b-v1.3", 13e9),
        ("upstage/llama-30b-instruct-2048", 30e9),
        ("google/flan-t5-xxl", None),
        ("mistralai/Mixtral-8x7B-v0.1", 56e9),
        ("openai-community/gpt2-xl", None),
    ],
)
def test_parameters_of_a_name(name, expected):
    assert needs.parameters(name) == (expected and pytest.approx(expected))


def test_a_shipped_model_is_measured():
    assert 0.2e6 < needs.parameters("atlas-neox-0.15m") < 0.6e6  # embeddings included


@pytest.mark.parametrize("profile", ["smoke", "atlas", "small", "paper"])
def test_every_profile_passes_the_dry_run(profile, capsys):
    assert run.main(["--profile", profile, "--dry-run"]) == 0
    said = capsys.readouterr().out
    whole = plan.read()
    settings = plan.settings(whole, whole.steps, profile)
    assert all(model in said for model in needs.models(settings)) and "GiB" in said and "facts asked" in said
    for model in plan.read().profiles[profile].get("models", []):
        assert model in needs.models(settings)
