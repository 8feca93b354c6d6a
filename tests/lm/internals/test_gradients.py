"""Integrated gradients: completeness, a case with a known answer, families."""

import numpy as np
import pytest
import torch

from probelib import lm
from probelib.lm.internals.gradients import integrated_gradients
from tests.lm import tiny

PROMPT = "Paris. What is the capital of France?"
FAMILIES = ("gpt2", "opt", "bloom", "llama", "t5_gated")


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    root, found = tmp_path_factory.mktemp("models"), {}
    for name in FAMILIES:
        config = (tiny.DECODERS | tiny.ENCODER_DECODERS)[name]()
        config.vocab_size = len(tiny.tokenizer())
        found[name] = lm.load(tiny.folder(root / name, config, bos=name == "llama"))
    return found


@pytest.mark.parametrize("name", FAMILIES)
def test_attributions_add_up_to_the_difference_from_the_baseline(models, name):
    """Completeness within 5 percent on random weights this wide (real models come far closer)."""
    frame = integrated_gradients(models[name], PROMPT, steps=400)
    gained = frame.attrs["probability"] - frame.attrs["baseline_probability"]
    assert frame["signed"].sum() == pytest.approx(gained, abs=0.05 * abs(gained) + 1e-6)
    assert frame.attrs["relative_delta"] < 0.05 and frame["score"].sum() == pytest.approx(1)


def test_the_target_is_what_the_model_would_generate():
    model = lm.load("atlas-neox-0.15m")
    frame = integrated_gradients(model, PROMPT, steps=20)
    text, logprob = model.generate([PROMPT], max_new_tokens=1)[["text", "logprob"]].iloc[0]
    assert frame.attrs["target_text"] == text
    assert frame.attrs["probability"] == pytest.approx(np.exp(logprob), rel=1e-4)


def test_a_token_that_is_the_baseline_gets_nothing(models):
    """Where a token's embedding equals the baseline, its attribution is exactly zero."""
    model = models["gpt2"]
    table, token = model.hf_model.get_input_embeddings(), model.tokens.prompts([PROMPT])[0][2]
    with torch.no_grad():
        for _ in range(60):  # the mean moves with the row that is set to it
            table.weight[token] = table.weight.mean(0)
    frame = integrated_gradients(model, PROMPT, steps=10)
    same = frame["token"] == frame["token"][2]
    assert (frame.loc[same, "score"] < 1e-6).all() and (frame.loc[~same, "score"] > 1e-4).all()
