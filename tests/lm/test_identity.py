"""Keys that measure: whatever changes a number changes the key, or is an error."""

import json
import os
import shutil

import pandas as pd
import peft
import pytest
import torch
import transformers as hf
from safetensors.torch import load_file, save_file
from tokenizers import normalizers, processors

from probelib import ProbeError, lm, store
from probelib.lm import version
from probelib.lm.names import CHECKPOINTS
from tests.lm import tiny

LLAMA = CHECKPOINTS / "atlas-llama-0.6m"
ONE = {"prompt": ["p"], "fact": ["f"], "relation": ["P36"]}
PROMPTS = pd.DataFrame(ONE | {"text": ["The capital of France is"]})
LABELS = pd.DataFrame({"fact": ["f", "f"], "candidate": ["a", "b"], "label": ["Paris", "Lima"]})


def new():
    model = hf.AutoModelForCausalLM.from_pretrained(LLAMA, dtype=torch.float32)
    return model, hf.AutoTokenizer.from_pretrained(LLAMA)


def lora(alpha=8, off=False, use=None):
    hf_model, tokenizer = new()
    options = {"target_modules": ["q_proj", "v_proj"], "task_type": "CAUSAL_LM"}
    config = peft.LoraConfig(r=4, lora_alpha=alpha, **options)
    torch.manual_seed(0)
    tuned = peft.get_peft_model(hf_model, config)
    tuned.add_adapter("other", config)
    for name, weight in tuned.named_parameters():
        if "lora_B" in name:
            generator = torch.Generator().manual_seed(len(name))
            torch.nn.init.normal_(weight, std=0.5, generator=generator)
    if off:
        tuned.base_model.disable_adapter_layers()
    if use:
        tuned.set_adapter(use)
    return tuned, tokenizer


def rotary(hf_model, tokenizer):
    hf_model.config.rope_parameters = {"rope_type": "default", "rope_theta": 50.0}
    hf_model.model.rotary_emb = type(hf_model.model.rotary_emb)(hf_model.config)


def eps(hf_model, tokenizer):
    for module in hf_model.modules():
        if hasattr(module, "variance_epsilon"):
            module.variance_epsilon = 1.0


def lowercase(hf_model, tokenizer):
    tokenizer.backend_tokenizer.normalizer = normalizers.Lowercase()


def bos(hf_model, tokenizer):
    tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single="</s> $A", special_tokens=[("</s>", tokenizer.eos_token_id)]
    )


def steer(hf_model, tokenizer):
    hf_model.model.layers[0].register_forward_hook(
        lambda module, inputs, out: (out[0] + 1, *out[1:]) if isinstance(out, tuple) else out + 1
    )


def ends(hf_model, tokenizer):
    hf_model.generation_config.eos_token_id = [tokenizer.eos_token_id, 7]  # where texts stop


def weight(hf_model, tokenizer):
    hf_model.model.embed_tokens.weight.data[7] += 1  # a token that no probe needs to hold


def setting(hf_model, tokenizer):
    hf_model.config.rms_norm_eps = 1.0  # families read some of them in every forward


CHANGES = [rotary, eps, lowercase, bos, steer, weight]


@pytest.mark.parametrize("change", [*CHANGES, ends])
def test_a_changed_model_in_memory_has_another_key(change):
    before = lm.load(*new())
    hf_model, tokenizer = new()
    change(hf_model, tokenizer)
    after = lm.load(hf_model, tokenizer)
    assert before.identity() | {"model": ""} != after.identity() | {"model": ""}
    assert before.name != after.name and before.name.endswith(")")
    assert lm.load(*new()).identity() == before.identity()


def test_adapters_that_are_off_or_others_have_other_keys(tmp_path):
    given = (lora(), lora(off=True), lora(use="other"), lora(alpha=32), new())
    models = [lm.load(*each) for each in given]
    keys = {json.dumps(model.identity() | {"model": ""}, default=str) for model in models}
    assert len(keys) == len({model.name for model in models}) == 5
    tuned, tokenizer = lora()  # a change of a model that is loaded already
    model = lm.load(tuned, tokenizer, name="mine")
    with_adapter = store.score(model, PROMPTS, LABELS, tmp_path)["logprob"].tolist()
    with tuned.disable_adapter():
        without = store.score(model, PROMPTS, LABELS, tmp_path)["logprob"].tolist()
    plain = store.score(lm.load(*new()), PROMPTS, LABELS, tmp_path)["logprob"].tolist()
    assert without == pytest.approx(plain, abs=1e-5) and with_adapter != without
    assert model.name == "mine"


def test_a_tokenizer_that_is_changed_is_read_anew(tmp_path):
    hf_model, tokenizer = new()
    model, word, asked = lm.load(hf_model, tokenizer, name="mine"), "PARIS", "PARIS zyx"
    store.score(model, PROMPTS, LABELS, tmp_path)
    before = model.tokens.prompts([word])
    lowercase(hf_model, tokenizer)
    hf_model.resize_token_embeddings(len(tokenizer) + tokenizer.add_tokens(["zyx"]))  # a new id
    found = store.score(model, PROMPTS.assign(text=asked), LABELS, tmp_path)["logprob"].tolist()
    assert model.tokens.prompts([word]) == [tokenizer(word)["input_ids"]] != before
    expected = lm.load(hf_model, tokenizer).logprobs(asked, [" Paris", " Lima"])["logprob"]
    assert found == expected.tolist()


def test_a_compiled_model_is_the_model():
    hf_model, tokenizer = new()
    compiled = lm.load(torch.compile(hf_model, backend="eager"), tokenizer)
    assert compiled.identity() == lm.load(hf_model, tokenizer).identity()


@pytest.mark.parametrize("change", [*CHANGES, setting])
def test_a_folders_model_that_is_edited_has_no_scores(change, tmp_path):
    model = lm.load("atlas-llama-0.6m")
    store.score(model, PROMPTS, LABELS, tmp_path)
    change(model.hf_model, model.tokenizer)
    with pytest.raises(ProbeError, match=r"changed after loading.*lm.load\(hf_model, tokenizer"):
        store.score(model, PROMPTS, LABELS, tmp_path)


def copied(tmp_path, name="atlas-neox-0.15m"):
    return shutil.copytree(CHECKPOINTS / name, tmp_path / "run" / "checkpoint")


def test_files_that_change_before_the_weights_are_loaded_are_an_error(tmp_path):
    folder = copied(tmp_path)
    model = lm.load(folder)
    model.identity()
    content = bytearray((folder / "model.safetensors").read_bytes())
    content[-1] ^= 1
    (folder / "model.safetensors").write_bytes(content)
    for _ in range(2):
        with pytest.raises(ProbeError, match="files in .* were changed since it was loaded"):
            store.score(model, PROMPTS, LABELS, tmp_path / "store")
    with pytest.raises(ProbeError, match="were changed"):
        model.logprobs("a", " b")
    store.score(lm.load(folder), PROMPTS, LABELS, tmp_path / "store")


def test_a_change_while_a_model_is_scored_leaves_no_score(tmp_path, monkeypatch):
    hf_model, tokenizer = new()
    model = lm.load(hf_model, tokenizer, name="mine")
    usual = type(model).logprobs

    def meanwhile(*given, **options):
        rows = usual(*given, **options)
        weight(hf_model, tokenizer)
        return rows

    monkeypatch.setattr(type(model), "logprobs", meanwhile)
    with pytest.raises(ProbeError, match="changed while it was scored"):
        store.score(model, PROMPTS, LABELS, tmp_path)
    assert not list(tmp_path.rglob("*.json"))


def test_stored_scores_are_confirmed_by_the_probe(tmp_path):
    model = lm.load("atlas-neox-0.15m")
    store.score(model, PROMPTS, LABELS, tmp_path)
    record = model.describe()
    model.confirm(record | {"probe": [value + 1e-4 for value in record["probe"]]})
    with pytest.raises(ProbeError, match="other log-probabilities of the same files"):
        model.confirm(record | {"probe": [value + 1 for value in record["probe"]]})


def test_code_that_is_exchanged_while_a_process_runs_is_an_error(monkeypatch):
    version.check_unchanged()
    exchanged = version.AT_IMPORT | {"tree.py": b"x = 1"}, version.VERSIONS | {"torch": "9.9"}
    monkeypatch.setattr(version, "on_disk", lambda: exchanged)
    with pytest.raises(ProbeError, match="torch .* -> 9.9, the code of probelib.lm: exchanged"):
        version.check_unchanged()


def test_a_library_that_is_exchanged_is_asked_for_its_version_again(monkeypatch):
    monkeypatch.setattr(version, "version", lambda name: "9.9+cpu")
    assert version.on_disk()[1] == version.VERSIONS  # the files are those of before
    monkeypatch.setattr(version, "find_spec", lambda name: __spec__)
    assert set(version.on_disk()[1].values()) == {"9.9"}


# Nothing of an owner or the process is changed, and nothing of theirs changes a score


def test_scoring_leaves_the_owners_model_as_it_was():
    hf_model, tokenizer = new()
    hf_model.train()
    hf_model.model.layers[1].eval()
    hf_model.to(torch.bfloat16)
    modes = {name: module.training for name, module in hf_model.named_modules()}
    pointers = {name: value.data_ptr() for name, value in hf_model.named_parameters()}
    config = hf_model.generation_config
    model = lm.load(hf_model, tokenizer)
    model.logprobs("The capital of France is", [" Paris", " Lima"])
    model.generate("The capital", max_new_tokens=2)
    assert modes == {name: module.training for name, module in hf_model.named_modules()}
    assert pointers == {name: value.data_ptr() for name, value in hf_model.named_parameters()}
    assert hf_model.dtype == torch.bfloat16 and hf_model.generation_config is config
    assert not any(module._forward_hooks for module in hf_model.modules())


def test_a_threshold_of_8_bits_is_the_owners_again():
    config = hf.BitsAndBytesConfig(load_in_8bit=True)
    hf_model = hf.AutoModelForCausalLM.from_pretrained(LLAMA, quantization_config=config)
    layers = [m for m in hf_model.modules() if type(m).__name__ == "Linear8bitLt"]
    lm.load(hf_model, new()[1]).logprobs("The capital of France is", " Paris")
    assert layers and {layer.state.threshold for layer in layers} == {6.0}


@pytest.mark.parametrize("mode", ["training", "autocast", "medium", "backend"])
def test_what_a_process_has_chosen_changes_no_score(mode):
    hf_model, tokenizer = new()
    for layer in hf_model.modules():
        if isinstance(layer, torch.nn.Dropout):
            layer.p = 0.5
    hf_model.config.attention_dropout = 0.5
    model = lm.load(hf_model, tokenizer)
    score = lambda: model.logprobs("The capital of France is", [" Paris"], path="plain")["logprob"]
    expected, chosen = score().tolist(), torch.get_float32_matmul_precision()
    try:
        if mode == "training":
            hf_model.train()
            assert score().tolist() == expected
        elif mode == "autocast":
            with torch.autocast("cpu", torch.bfloat16):
                assert score().tolist() == expected
        else:
            torch.set_float32_matmul_precision("medium")
            assert score().tolist() == expected
            assert torch.get_float32_matmul_precision() == "medium"
    finally:
        torch.set_float32_matmul_precision(chosen)


# Files


def header(size: int, content: bytes) -> bytes:
    return size.to_bytes(8, "little") + content


LIES = b'{"a": {"dtype": "F32", "shape": [9], "data_offsets": [0, 4]}}'


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 9\n", "git lfs pull"),
        (b"", "damaged or incomplete"),
        (header(10**12, b"{}"), "damaged or incomplete"),
        (header(5, b"[1,2]"), "damaged or incomplete"),
        (header(len(LIES), LIES) + bytes(4), "damaged or incomplete"),
        ("half", "damaged or incomplete"),
        ("link", "broken link"),
        ("pipe", "broken link"),
    ],
)
def test_weights_that_cannot_be_read_are_one_clear_error(content, words, tmp_path):
    folder = copied(tmp_path)
    file = folder / "model.safetensors"
    whole = file.read_bytes()
    file.unlink()
    if content == "link":
        os.symlink("/nowhere", file)
    elif content == "pipe":
        os.mkfifo(file)
    else:
        file.write_bytes(whole[: len(whole) // 2] if content == "half" else content)
    with pytest.raises(ProbeError, match=words):
        lm.load(folder)


def test_a_tensor_in_two_shards_or_beside_the_index_is_an_error(tmp_path):
    folder = copied(tmp_path)
    weights = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    names = sorted(weights)
    parts = {"m-1.safetensors": names[:3], "m-2.safetensors": names[3:]}

    def save(**more):
        for file, own in parts.items():
            names = [*own, *more.get(file[:3].replace("-", ""), [])]
            save_file({name: weights[name] for name in names}, folder / file, {"format": "pt"})

    index = {name: file for file, own in parts.items() for name in own}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": index}))
    save()
    assert lm.load(folder).n_parameters == lm.load("atlas-neox-0.15m").n_parameters
    save(m2=names[:1])
    with pytest.raises(ProbeError, match=f"disagree about '{names[0]}'"):
        lm.load(folder)
    (folder / "old.safetensors").symlink_to("/nowhere")  # nothing loads it
    save()
    lm.load(folder).identity()


def test_the_base_of_an_adapter_stands_beside_it(tmp_path, monkeypatch):
    tiny_llama = hf.LlamaConfig(**tiny.WIDE | {"vocab_size": len(tiny.tokenizer())})
    right = tiny.folder(tmp_path / "exp" / "base", tiny_llama)
    wrong = shutil.copytree(right, tmp_path / "elsewhere" / "base")
    doubled = {name: value * 2 for name, value in load_file(wrong / "model.safetensors").items()}
    save_file(doubled, wrong / "model.safetensors", {"format": "pt"})
    base = hf.AutoModelForCausalLM.from_pretrained(right)
    tuned = peft.get_peft_model(base, peft.LoraConfig(r=2, target_modules=["q_proj"]))
    tuned.save_pretrained(tmp_path / "exp" / "adapter")
    file = tmp_path / "exp" / "adapter" / "adapter_config.json"
    told = json.loads(file.read_text())
    point = lambda base: file.write_text(json.dumps(told | {"base_model_name_or_path": base}))
    for name in ("base", "../base"):
        point(name)
        for place in ("exp", "elsewhere", "."):
            monkeypatch.chdir(tmp_path / place)
            assert lm.load(tmp_path / "exp" / "adapter").folder.resolve() == right.resolve()
    shutil.move(tmp_path / "exp" / "base", tmp_path / "exp" / "moved")
    monkeypatch.chdir(tmp_path / "elsewhere")
    for name in ("base", "../base"):
        point(name)
        with pytest.raises(ProbeError, match="neither beside the adapter nor a Hugging Face id"):
            lm.load(tmp_path / "exp" / "adapter")
