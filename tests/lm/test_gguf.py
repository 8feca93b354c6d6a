"""GGUF files: what is unpacked equals the model whose weights were written; what is no such file,
or cannot be unpacked, is refused by name."""

import json

import gguf
import numpy as np
import pytest
import torch
import transformers as hf
from tokenizers.pre_tokenizers import ByteLevel

from probelib import ProbeError, lm, paths
from probelib.lm.internals.folders import gguf_file
from probelib.paths import ROOT

LAYERS, MERGES = 2, ["O s", "l o", "Ġ N", "Os lo"]
TOKENS = [*sorted(ByteLevel.alphabet()), *("".join(pair.split()) for pair in MERGES), "<end>"]


def written(path, quantized: gguf.GGMLQuantizationType, arch: str = "qwen2"):
    """A small Qwen2 of random weights and a byte-level tokenizer as a GGUF file; the model, its
    weights rounded as the file rounds them."""
    torch.manual_seed(0)
    shape = {"hidden_size": 64, "intermediate_size": 128, "num_attention_heads": 4}
    shape |= {"num_key_value_heads": 2, "num_hidden_layers": LAYERS, "vocab_size": len(TOKENS)}
    model = hf.Qwen2ForCausalLM(hf.Qwen2Config(**shape, tie_word_embeddings=False)).eval()
    out = gguf.GGUFWriter(path, arch)
    out.add_context_length(128)
    out.add_embedding_length(64)
    out.add_block_count(LAYERS)
    out.add_feed_forward_length(128)
    out.add_head_count(4)
    out.add_head_count_kv(2)
    out.add_layer_norm_rms_eps(model.config.rms_norm_eps)
    out.add_rope_freq_base(10000.0)
    out.add_tokenizer_model("gpt2")
    out.add_tokenizer_pre("qwen2")
    out.add_token_list(TOKENS)
    out.add_token_types([gguf.TokenType.NORMAL] * (len(TOKENS) - 1) + [gguf.TokenType.CONTROL])
    out.add_token_merges(MERGES)
    out.add_eos_token_id(len(TOKENS) - 1)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.QWEN2, LAYERS)
    for name, tensor in model.state_dict().items():
        kind = quantized if tensor.ndim == 2 else gguf.GGMLQuantizationType.F32
        data = gguf.quants.quantize(tensor.numpy(), kind)
        out.add_tensor(names.get_name(name, (".weight", ".bias")), data, raw_dtype=kind)
        tensor.copy_(torch.from_numpy(gguf.quants.dequantize(data, kind).copy()))
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()
    return model


@pytest.mark.parametrize("kind", ["F32", "F16", "Q8_0", "Q4_1"])
def test_an_unpacked_file_computes_what_its_weights_say(tmp_path, monkeypatch, kind):
    monkeypatch.setattr(paths, "CACHE", tmp_path)
    reference = written(tmp_path / "small.gguf", gguf.GGMLQuantizationType[kind])
    model = lm.load(tmp_path / "small.gguf")
    (found,) = model.logprobs("Oslo", " N")["token_logprobs"]
    prompt, after = (model.tokenizer(text)["input_ids"] for text in ("Oslo", " N"))
    assert (prompt, after) == ([TOKENS.index("Oslo")], [TOKENS.index("ĠN")])
    with torch.no_grad():
        logits = reference(torch.tensor([prompt + after])).logits[0, len(prompt) - 1 : -1]
    expected = torch.log_softmax(logits, -1).gather(1, torch.tensor([after]).T)[:, 0]
    assert np.allclose(found, expected, atol=1e-5) and model.name == "small"
    monkeypatch.setattr(hf.AutoModelForCausalLM, "from_pretrained", None)  # it is unpacked once
    assert lm.load(tmp_path / "small.gguf").folder == model.folder


def test_what_cannot_be_unpacked_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "CACHE", tmp_path)
    (tmp_path / "torn.gguf").write_bytes(b"version https://git-lfs.github.com/spec/v1")
    with pytest.raises(ProbeError, match="torn.gguf is not a GGUF file.*downloaded whole"):
        lm.load(tmp_path / "torn.gguf")
    written(tmp_path / "new.gguf", gguf.GGMLQuantizationType.F32, arch="brandnew")
    with pytest.raises(ProbeError, match="new.gguf: .*brandnew.*safetensors"):
        lm.load(tmp_path / "new.gguf")
    with pytest.raises(ProbeError, match="gone.gguf: no such file"):
        lm.load(f"{tmp_path}/gone.gguf")
    assert not list((tmp_path / "cache/probelib/gguf").glob("*"))  # nothing half made is left


def test_a_file_of_a_repository_is_fetched(tmp_path, monkeypatch):
    asked = lambda *names, revision: tmp_path.joinpath(*names, str(revision))
    monkeypatch.setattr("huggingface_hub.hf_hub_download", asked)
    assert gguf_file("a/b/c.Q8_0.gguf") == tmp_path / "a/b/c.Q8_0.gguf/None"
    assert gguf_file("a/b@main/in/c.gguf") == tmp_path / "a/b/in/c.gguf/main"


@pytest.mark.slow
def test_a_real_model_scores_as_plain_forwards_of_transformers_do():
    """smollm2.json: question, answer and log-probability in nats of 40 facts; transformers alone,
    one sequence at a time, from the packaged file."""
    try:
        gguf_file("smollm2-135m")
    except ProbeError as why:
        pytest.skip(str(why))
    rows = json.loads((ROOT / "tests/lm/smollm2.json").read_text(encoding="utf-8"))
    questions, answers, expected = zip(*rows, strict=True)
    found = lm.load("smollm2-135m").logprobs(questions, [[answer] for answer in answers])
    assert found["logprob"].tolist() == pytest.approx(expected, abs=1e-3)
