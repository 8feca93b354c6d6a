"""``hidden_states``: last-token states, equal to one plain forward per text."""

import numpy as np
import pytest
import torch
import transformers as hf

from probelib import lm
from probelib.errors import ProbeError
from probelib.lm.internals import states
from tests.lm import tiny

TEXTS = [
    "Paris is nice.",
    "Lima",
    "Paris is",
    "What is the capital of Peru? Lima.",
    "Paris is nice.",
]
INSTRUCTION = "The capital of France is Paris. "


def load(path, config):
    config.vocab_size = len(tiny.tokenizer())
    return lm.load(tiny.folder(path, config))


@pytest.fixture(scope="module", params=["gpt_neox", "llama", "gemma2_window", "bloom", "opt"])
def model(request, tmp_path_factory):
    return load(tmp_path_factory.mktemp(request.param), tiny.DECODERS[request.param]())


@pytest.fixture(scope="module")
def t5(tmp_path_factory):
    config = hf.T5Config(**tiny.T5, eos_token_id=1, pad_token_id=0)
    return load(tmp_path_factory.mktemp("t5"), config)


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
    """On the tree, also in short rows; in padded batches, also tiny ones; on the plain path."""
    soft = soft_prompt(model) if soft else None
    by_hand = np.stack([naive(model, text, prefix, layer, soft) for text in TEXTS])
    ask = lambda share: model.hidden_states(TEXTS, prefix, layer, soft, share)
    found, cost = ask(share=True)
    assert found == pytest.approx(by_hand, abs=1e-4)
    assert found.dtype == np.float32 and (found[0] == found[4]).all()
    every = sum(len(model.tokenizer(prefix + text)["input_ids"]) for text in TEXTS)
    assert cost["forwarded_tokens"] < every  # shared beginnings are forwarded once
    for size, forwards in ((states.PADDED, 1), (8 / model.budget, 3)):
        monkeypatch.setattr(states, "PADDED", size)
        padded, cost = ask(share=False)
        assert padded == pytest.approx(by_hand, abs=1e-4) and cost["forwards"] >= forwards
    for name, value in (("budget", 5), ("path", "plain")):
        monkeypatch.setattr(model, name, value)
        assert ask(share=True)[0] == pytest.approx(by_hand, abs=1e-4)


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
        shared, padded = (
            one.hidden_states(TEXTS, INSTRUCTION, layer, share=s)[0] for s in (True, False)
        )
        assert padded == pytest.approx(shared, abs=1e-4) and shared.shape == (5, width)
    shared, padded = (
        one.hidden_states(["", "Lima"], INSTRUCTION, share=s)[0] for s in (True, False)
    )
    assert padded == pytest.approx(shared, abs=1e-4)
    assert one.hidden_states([INSTRUCTION])[0][0] == pytest.approx(shared[0], abs=1e-4)
    assert one.hidden_states([])[0].shape == (0, 32)


def test_bad_input_is_named(model, t5, tmp_path):
    with pytest.raises(ProbeError, match="no token"):
        model.hidden_states([""])
    if model.context < 10**6:
        with pytest.raises(ProbeError, match="at most"):
            model.hidden_states(["Paris " * 200])
    with pytest.raises(ProbeError, match="decoder-only"):
        t5.hidden_states(TEXTS, soft_prompt=torch.zeros(1, 64))


def test_a_family_with_several_states_per_token_is_refused(tmp_path):
    kinds = ["sliding_attention", "full_attention"]
    own = {"layer_types": kinds, "num_kv_shared_layers": 0, "head_dim": 16, "altup_num_inputs": 2}
    own |= {"hidden_size_per_layer_input": 16, "laurel_rank": 8, "pad_token_id": 0}
    own |= {
        "activation_sparsity_pattern": [0.0, 0.0],
        "vocab_size_per_layer_input": len(tiny.tokenizer()),
    }
    one = load(tmp_path, hf.Gemma3nTextConfig(**tiny.GROUPED, **own))
    assert one.choose_path() == "tree"
    with pytest.raises(ProbeError, match="not one per token"):
        one.hidden_states(TEXTS, layer=1)


def test_batches_are_of_similar_length_and_hold_every_text_once():
    lengths = [7, 3, 9, 3, 20, 1]
    batches = states._batches(lengths, 18, 0, 10**6)
    assert sorted(i for batch in batches for i in batch) == list(range(6))
    assert all(len(b) * max(lengths[i] for i in b) <= 18 or len(b) == 1 for b in batches)
    assert [len(batch) for batch in states._batches([2] * 6, 100, past=8, keys=20)] == [2, 2, 2]
