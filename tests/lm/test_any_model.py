"""Models as people have them: in memory, adapters, packed weights, revisions, files that do not
fit."""

import json
import shutil

import pytest
import torch
import transformers as hf
from peft import LoraConfig, get_peft_model
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from probelib import lm
from probelib.errors import ProbeError
from probelib.lm.decode.generation import continue_ids
from probelib.lm.names import display_name
from tests.lm import families, tiny

PROMPT, ANSWER = "What is the capital of France?", " Paris"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    size = {"vocab_size": len(tiny.tokenizer()), "bos_token_id": 0, "eos_token_id": 1}
    return tiny.folder(tmp_path_factory.mktemp("llama"), hf.LlamaConfig(**tiny.WIDE | size))


def by_hand(hf_model, tokenizer) -> float:
    """Sum of log P of the answer's tokens."""
    ids = tokenizer([PROMPT, ANSWER], add_special_tokens=False)["input_ids"]
    return sum(tiny.by_hand(hf_model, *ids))


def score(model) -> float:
    return model.logprobs(PROMPT, ANSWER)["logprob"][0]


def hf_model(folder):
    return hf.AutoModelForCausalLM.from_pretrained(folder).eval()


def changed(folder, path, **config):
    """A copy of a model folder with other entries in its config.json."""
    shutil.copytree(folder, path)
    saved = json.loads((path / "config.json").read_text())
    (path / "config.json").write_text(json.dumps(saved | config))
    return path


def test_a_model_in_memory_follows_its_weights(folder):
    hf_model, tokenizer = (
        hf.AutoModelForCausalLM.from_pretrained(folder),
        hf.AutoTokenizer.from_pretrained(folder),
    )
    model = lm.load(hf_model, tokenizer)
    assert score(model) == pytest.approx(by_hand(hf_model, tokenizer), abs=1e-4)
    assert model.generate(PROMPT)["text"][0] == lm.load(folder).generate(PROMPT)["text"][0]
    before = model.identity()
    with torch.no_grad():
        hf_model.lm_head.weight *= 2
    assert model.identity() != before
    assert score(model) == pytest.approx(by_hand(hf_model, tokenizer), abs=1e-4)
    assert model.describe()["path"] == "tree" and model.n_parameters == lm.load(folder).n_parameters
    with pytest.raises(ProbeError, match="needs its tokenizer"):
        lm.load(hf_model)


def test_an_adapter_is_applied_to_its_base_and_recorded(folder, tmp_path):
    torch.manual_seed(0)
    base = hf.AutoModelForCausalLM.from_pretrained(folder)
    tuned = get_peft_model(
        base, LoraConfig(r=4, target_modules=["q_proj", "v_proj"], init_lora_weights=False)
    ).eval()
    tuned.peft_config["default"].base_model_name_or_path = str(folder)
    tuned.save_pretrained(tmp_path / "lora")
    model, tokenizer = lm.load(tmp_path / "lora"), hf.AutoTokenizer.from_pretrained(folder)
    expected = by_hand(tuned, tokenizer)
    assert score(model) == pytest.approx(expected, abs=1e-4)
    assert abs(score(lm.load(folder)) - expected) > 0.01
    assert score(lm.load(tuned, tokenizer)) == pytest.approx(expected, abs=1e-4)
    assert (
        model.identity()["adapter"] == str(tmp_path / "lora")
        and model.identity() != lm.load(folder).identity()
    )
    both = shutil.copytree(folder, tmp_path / "both")
    for name in ("adapter_config.json", "adapter_model.safetensors"):
        shutil.copy(tmp_path / "lora" / name, both)
    with pytest.raises(ProbeError, match="a whole model and an adapter"):
        lm.load(both)


@pytest.mark.parametrize("bits", ["4bit", "8bit"])
def test_packed_weights_are_recorded_as_they_are(folder, tmp_path, bits):
    config = hf.BitsAndBytesConfig(**{f"load_in_{bits}": True})
    packed = hf.AutoModelForCausalLM.from_pretrained(
        folder, quantization_config=config, dtype=torch.float32
    )
    packed.save_pretrained(tmp_path / "packed")
    hf.AutoTokenizer.from_pretrained(folder).save_pretrained(tmp_path / "packed")
    model, full = lm.load(tmp_path / "packed"), lm.load(folder)
    about = model.describe()
    assert (about["quantize"], about["quantized_modules"], about["packed"]) == (bits, 14, True)
    assert model.n_parameters == full.n_parameters
    assert model.memory < 0.8 * full.memory
    kinds = [
        m for m in model.hf_model.modules() if type(m).__name__ in ("Linear4bit", "Linear8bitLt")
    ]
    assert not any(m.support_avx512bf16_for_cpu for m in kinds)
    held = lm.load(packed, model.tokenizer)  # the same as an object in memory
    assert score(held) == pytest.approx(score(model), abs=1e-4)
    about = held.describe()
    assert (about["quantize"], about["quantized_modules"], about["parameters"]) == (
        bits,
        14,
        full.n_parameters,
    )
    if bits == "8bit":
        assert {m.state.threshold for m in kinds} == {0.0}
        assert score(model) == pytest.approx(score(lm.load(folder, quantize="8bit")), abs=1e-4)
    other = {"4bit": "8bit", "8bit": "4bit"}[bits]
    with pytest.raises(ProbeError, match=f"stored as {bits} already"):
        lm.load(tmp_path / "packed", quantize=other)


def test_the_experts_of_a_mixture_are_packed_in_4_bits(tmp_path):
    """By hand: plain transformers with every inner matrix rounded to 4 bits and back."""
    from bitsandbytes import functional

    size = {
        "vocab_size": len(tiny.tokenizer()),
        "bos_token_id": 0,
        "eos_token_id": 1,
        "num_local_experts": 4,
    }
    folder = tiny.folder(tmp_path, hf.MixtralConfig(**tiny.GROUPED | size))
    model, plain = lm.load(folder, quantize="4bit"), hf.AutoModelForCausalLM.from_pretrained(folder)
    for name, tensor in plain.named_parameters():
        if "experts" in name or "_proj" in name:
            packed, state = functional.quantize_4bit(tensor.data, blocksize=64, quant_type="nf4")
            tensor.data = functional.dequantize_4bit(packed, state)
    assert score(model) == pytest.approx(by_hand(plain, model.tokenizer), abs=1e-4)
    about, full = model.describe(), lm.load(folder)
    assert (about["quantized_modules"], about["path"]) == (
        2 * (4 + 2),
        "tree",
    ) and model.memory < full.memory / 3
    assert abs(score(full) - score(model)) > 0.01
    # the batch changes nothing
    together = model.logprobs(["Rome", PROMPT], [[" Oslo"], [ANSWER, " Lima"]])
    assert together["logprob"][1] == pytest.approx(score(model), abs=1e-4)


def test_weights_stored_in_a_way_that_cannot_be_read_here_are_named(folder, tmp_path):
    stored = {"quant_method": "gptq", "group_size": 128, "bits": 4}
    with pytest.raises(ProbeError, match="stored as gptq"):
        score(lm.load(changed(folder, tmp_path / "copy", quantization_config=stored)))


def test_weights_that_the_model_would_not_use_are_an_error(folder, tmp_path):
    for layers in (0, 1):
        with pytest.raises(ProbeError, match="not used by the model"):
            score(lm.load(changed(folder, tmp_path / f"{layers}", num_hidden_layers=layers)))


def test_two_revisions_of_one_id_have_two_names(monkeypatch, folder):
    asked = []
    download = lambda name, revision, trust: asked.append((name, revision)) or folder
    monkeypatch.setattr("probelib.lm.internals.folders.download", download)
    names = [
        lm.load("a/b@step1000").name,
        lm.load("a/b", revision="step2000").name,
        lm.load("a/b").name,
    ]
    assert names == ["a/b@step1000", "a/b@step2000", "a/b"] == list(map(display_name, names))
    assert asked == [("a/b", "step1000"), ("a/b", "step2000"), ("a/b", None)]


def test_one_text_is_as_good_as_a_list(folder):
    model = lm.load(folder)
    one = model.logprobs(PROMPT, ANSWER)
    assert len(one) == 1 and one["logprob"][0] == model.logprobs([PROMPT], [[ANSWER]])["logprob"][0]
    assert model.logprobs([PROMPT, "Rome"], [" Paris", " Oslo"])["prompt"].tolist() == [0, 1]
    assert model.logprobs("Rome", ["Paris"])["note"][0] == "no blank"
    assert model.logprobs("Rome ", ["Paris"])["note"][0] != "no blank"


QUICK = "{% if enable_thinking is defined and not enable_thinking %}<quick>{% endif %}<assistant>{{ '\\n' }}"
TEMPLATE = (
    "{% for m in messages %}{% if loop.last and m.role == 'assistant' %}"
    + QUICK
    + "{{ m.content }}{% else %}<{{ m.role }}>{{ m.content }}\n{% endif %}{% endfor %}"
    + "{% if add_generation_prompt %}"
    + QUICK
    + "{% endif %}"
)


@pytest.fixture(scope="module")
def chatty(folder, tmp_path_factory):
    """The same model with a chat template."""
    copy = shutil.copytree(folder, tmp_path_factory.mktemp("with") / "chat")
    tokenizer = hf.AutoTokenizer.from_pretrained(copy)
    tokenizer.chat_template = TEMPLATE
    tokenizer.save_pretrained(copy)
    return copy


def test_a_name_asks_every_question_in_chat(folder, chatty):
    """ "NAME@chat" in place of a parameter of every call: all verbs read the same turn."""
    model, by_hand = lm.load(f"{chatty}@chat"), lm.load(chatty)
    turn, labels = "<user>Oslo?\n<quick><assistant>\n", {"n": [" Norway"], "s": [" Spain"]}
    bare = {name: [text.strip() for text in texts] for name, texts in labels.items()}
    assert model.name == f"{by_hand.name}@chat" and model.identity() != by_hand.identity()
    scored = model.logprobs("Oslo?", [" Norway", " Spain"], end=True)
    assert scored["note"].tolist() == ["", ""]
    assert (
        scored["logprob"].tolist()
        == by_hand.logprobs(turn, ["Norway", "Spain"])["logprob"].tolist()
    )
    assert model.generate("Oslo?")["text"][0] == by_hand.generate(turn)["text"][0]
    assert model.beam_steps(["Oslo?"])["ids"][0] == by_hand.beam_steps([turn])["ids"][0]
    found = [
        each.top_continuations(*asked, n=2)
        for each, asked in ((model, ("Oslo?", labels)), (by_hand, (turn, bare)))
    ]
    assert found[0]["logprob"].tolist() == found[1]["logprob"].tolist()
    gradients = [
        each.integrated_gradients(text, steps=5)
        for each, text in ((model, "Oslo?"), (by_hand, turn))
    ]
    assert gradients[0]["score"].tolist() == gradients[1]["score"].tolist()
    with pytest.raises(ProbeError, match="no chat template; name the model without @chat"):
        lm.load(f"{folder}@chat").logprobs("Oslo?", " Norway")


def test_sentencepiece_continuations_behind_a_bracket_and_a_line_break():
    """Metaspace puts a blank before every text: a continuation without a blank has none, and tokens
    that differ from those of the joined text are flagged."""
    raw = Tokenizer(models.BPE())
    raw.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    raw.decoder = decoders.Metaspace(prepend_scheme="always")
    texts = [*tiny.TEXTS, *["Rome (Italy Oslo (Norway \n"] * 4]
    raw.train_from_iterator(
        texts, trainers.BpeTrainer(vocab_size=200, special_tokens=["<s>"], show_progress=False)
    )
    tokenizer = hf.PreTrainedTokenizerFast(tokenizer_object=raw, bos_token="<s>")
    model = lm.load(
        tiny.build(hf.LlamaConfig(**tiny.WIDE | {"vocab_size": len(tokenizer)})), tokenizer
    )
    tokens = model.tokens
    for prompt in ("Rome (", "What is\n"):
        before, ids = tokens.prompts([prompt])[0], list(tokens.continuation("Paris"))
        assert before + ids == tokenizer.encode(f"{prompt}Paris", add_special_tokens=False)
        assert tokenizer.convert_ids_to_tokens(ids)[0][0] == "P"
        row = model.logprobs(prompt, "Paris")
        expected = sum(tiny.by_hand(model.hf_model, before, ids))
        assert (
            row["logprob"][0] == pytest.approx(expected, abs=1e-4) and row["note"][0] != "boundary"
        )
    assert "▁(Italy" in tokenizer.get_vocab()  # a token that begins in the prompt
    assert model.logprobs("Rome (", "Italy")["note"][0] == "boundary"


def test_the_reason_for_a_slower_path_is_told_and_kept(tmp_path):
    """A hybrid of convolutions and attention: each prompt once, its state repeated."""
    size = tiny.GROUPED | {
        "vocab_size": len(tiny.tokenizer()),
        "bos_token_id": 0,
        "eos_token_id": 1,
    }
    model = lm.load(
        tiny.folder(tmp_path, hf.Lfm2Config(**size, layer_types=["conv", "full_attention"]))
    )
    with pytest.warns(UserWarning, match="'repeated', slower than the tree .*tree"):
        model.choose_path()
    assert model.describe()["path"] == "repeated" and model.why.startswith("tree: ")
    prompts, answers = (
        [" ".join([PROMPT] * 8)] * 2,
        [[" Paris", " Rome", " Oslo Norway", " Lima is"]] * 2,
    )
    rows = {
        path: model.logprobs(prompts, answers, path=path)
        for path in ("repeated", "steps", "plain", "alone")
    }
    for path in rows:
        assert rows[path]["logprob"].tolist() == pytest.approx(
            rows["alone"]["logprob"].tolist(), abs=1e-4
        )
    cost = {path: frame.attrs["cost"]["forwarded_tokens"] for path, frame in rows.items()}
    assert cost["repeated"] < cost["plain"] / 3


@pytest.mark.parametrize(
    "config",
    [hf.RwkvConfig(hidden_size=64, num_hidden_layers=2, attention_hidden_size=64),
     hf.RecurrentGemmaConfig(**tiny.GROUPED | {"num_hidden_layers": 3}, lru_width=64, attention_window_size=8)],
    ids=lambda config: config.model_type,
)  # fmt: skip
def test_left_padding_changes_no_text_off_the_tree(tmp_path, config):
    config.vocab_size = len(tiny.tokenizer())
    model = lm.load(tiny.folder(tmp_path, config))
    prompts = ["Rome", PROMPT, "The capital of Peru is"]
    together = model.generate(prompts, max_new_tokens=5)
    for n, prompt in enumerate(prompts):
        alone = model.generate(prompt, max_new_tokens=5)
        assert alone["text"][0] == together["text"][n]
        assert alone["logprob"][0] == pytest.approx(together["logprob"][n], abs=1e-4)


def test_a_cache_that_changes_numbers_is_not_used(tmp_path):
    """Zamba 2's cached steps differ from its whole forwards by a hundredth of a nat."""
    hf_model = families.build(*families.kinds()["causal", "zamba2"], len(tiny.tokenizer()))
    hf_model.save_pretrained(tmp_path)
    tiny.tokenizer().save_pretrained(tmp_path)
    model = lm.load(tmp_path)
    with pytest.warns(UserWarning, match="generates without a cache"):
        ((tokens, scores),) = continue_ids(model, model.tokens.prompts([PROMPT]), 6)[0][0]
    before = model.tokens.prompts([PROMPT])[0]
    cost = model.generate(PROMPT, max_new_tokens=6).attrs["cost"]
    # the whole text at each step
    assert cost["forwarded_tokens"] == sum(len(before) + n for n in range(len(tokens)))
    assert scores == pytest.approx(tiny.by_hand(hf_model, before, tokens), abs=1e-4)
