"""``hidden_states``: last-token states, equal to one plain forward per text."""

import numpy as np
import pytest
import torch
import transformers as hf

from probelib import ProbeError, lm
from tests.lm import tiny

TEXTS = ["Paris is nice.", "Lima", "Paris is", "What is the capital of Peru? Lima."]
TEXTS += TEXTS[:1]
INSTRUCTION = "The capital of France is Paris. "


def load(path, config):
    config.vocab_size = len(tiny.tokenizer())
    return lm.load(tiny.folder(path, config))


@pytest.fixture(scope="module", params=["gpt_neox", "llama", "gemma2_window", "bloom", "opt"])
def model(request, tmp_path_factory):
    return load(tmp_path_factory.mktemp(request.param), tiny.DECODERS[request.param]())


def naive(model, text, prefix="", layer=-1, soft=None):
    """By hand: one forward of prefix and text, tokenized separately."""
    ids = sum(model.tokenizer([prefix, text], add_special_tokens=False)["input_ids"], [])
    with torch.inference_mode():
        embedded = model.hf_model.get_input_embeddings()(torch.tensor([ids]))
        if soft is not None:
            embedded = torch.cat([soft[None], embedded], 1)
        said = model.hf_model(inputs_embeds=embedded, output_hidden_states=True, use_cache=False)
    return said.hidden_states[layer][0, -1].numpy()


def soft_prompt(model):
    torch.manual_seed(0)
    return torch.randn(4, model.hf_model.get_input_embeddings().weight.shape[1]) * 0.25


@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize("layer", [-1, 1])
@pytest.mark.parametrize("prefix", ["", INSTRUCTION])
def test_states_are_those_of_one_plain_forward(model, layer, prefix, soft, monkeypatch):
    """On the tree, also in short rows, and on the plain path."""
    soft = soft_prompt(model) if soft else None
    by_hand = np.stack([naive(model, text, prefix, layer, soft) for text in TEXTS])
    ask = lambda: model.hidden_states(TEXTS, prefix, layer, soft)
    found, cost = ask()
    assert found == pytest.approx(by_hand, abs=1e-4)
    assert found.dtype == np.float32 and (found[0] == found[4]).all()
    every = sum(len(model.tokenizer(prefix + text)["input_ids"]) for text in TEXTS)
    assert cost["forwarded_tokens"] < every  # shared beginnings are forwarded once
    for name, value in (("budget", 5), ("path", "plain")):
        monkeypatch.setattr(model, name, value)
        if soft is not None and name == "path":
            with pytest.raises(ProbeError, match="takes no soft prompt"):
                ask()
        else:
            assert ask()[0] == pytest.approx(by_hand, abs=1e-4)


def test_the_beginning_token_comes_once(tmp_path):
    size = {"vocab_size": len(tiny.tokenizer(bos=True))}
    one = lm.load(tiny.folder(tmp_path, hf.LlamaConfig(**tiny.WIDE | size), bos=True))
    bare, _ = one.hidden_states(["Paris is nice."])
    for text, prefix in (("<s>Paris is nice.", ""), ("Paris is nice.", "<s>")):
        assert (one.hidden_states([text], prefix)[0] == bare).all()


def test_an_encoder_gives_its_last_token(t5):
    """Also behind a prefix, after which it reads no end token."""
    found, _ = t5.hidden_states(TEXTS, INSTRUCTION)
    for text, state in zip(TEXTS, found, strict=True):
        ids = sum(t5.tokenizer([INSTRUCTION, text], add_special_tokens=False)["input_ids"], [])
        with torch.inference_mode():
            said = t5.hf_model.get_encoder()(input_ids=torch.tensor([ids])).last_hidden_state
        assert state == pytest.approx(said[0, -1].numpy(), abs=1e-4)


def test_empty_texts_and_layers_of_another_width(tmp_path):
    """An empty text ends with the prefix. OPT 350m's layers are wider than its embeddings."""
    narrow = {"word_embed_proj_dim": 32, "do_layer_norm_before": False, "hidden_size": 64}
    config = hf.OPTConfig(ffn_dim=128, num_hidden_layers=2, num_attention_heads=4, **narrow)
    one = load(tmp_path, config)
    for layer, width in ((-1, 32), (1, 64)):
        assert one.hidden_states(TEXTS, INSTRUCTION, layer)[0].shape == (5, width)
    empty = one.hidden_states(["", "Lima"], INSTRUCTION)[0][0]
    assert one.hidden_states([INSTRUCTION])[0][0] == pytest.approx(empty, abs=1e-4)
    assert one.hidden_states([])[0].shape == (0, 32)
