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
from probelib.lm.internals.gradients import integrated_gradients
from probelib.lm.names import display_name
from tests.lm import families, tiny

PROMPT, ANSWER = "What is the capital of France?", " Paris"


SIZE = {"vocab_size": len(tiny.tokenizer()), "bos_token_id": 0, "eos_token_id": 1}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny.folder(tmp_path_factory.mktemp("llama"), hf.LlamaConfig(**tiny.WIDE | SIZE))


def by_hand(hf_model, tokenizer) -> float:
    """Sum of log P of the answer's tokens."""
    ids = tokenizer([PROMPT, ANSWER], add_special_tokens=False)["input_ids"]
    return sum(tiny.by_hand(hf_model, *ids))


def score(model) -> float:
    return model.logprobs(PROMPT, ANSWER)["logprob"][0]


def test_a_model_in_memory_follows_its_weights(folder):
    hf_model = hf.AutoModelForCausalLM.from_pretrained(folder)
    tokenizer = hf.AutoTokenizer.from_pretrained(folder)
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


def test_a_model_that_is_being_trained_is_scored_without_dropout():
    hf_model = tiny.build(hf.GPT2Config(**tiny.GPT | SIZE, resid_pdrop=0.5)).train()
    model = lm.load(hf_model, tiny.tokenizer())
    assert score(model) == score(model) and hf_model.training
    assert score(model) == pytest.approx(by_hand(hf_model.eval(), model.tokenizer), abs=1e-4)


def test_an_adapter_is_applied_to_its_base_and_recorded(folder, tmp_path):
    torch.manual_seed(0)
    base = hf.AutoModelForCausalLM.from_pretrained(folder)
    how = LoraConfig(r=4, target_modules=["q_proj", "v_proj"], init_lora_weights=False)
    tuned = get_peft_model(base, how).eval()
    tuned.peft_config["default"].base_model_name_or_path = str(folder)
    tuned.save_pretrained(tmp_path / "lora")
    model, tokenizer = lm.load(tmp_path / "lora"), hf.AutoTokenizer.from_pretrained(folder)
    expected = by_hand(tuned, tokenizer)
    assert score(model) == pytest.approx(expected, abs=1e-4)
    assert abs(score(lm.load(folder)) - expected) > 0.01
    assert score(lm.load(tuned, tokenizer)) == pytest.approx(expected, abs=1e-4)
    assert model.identity()["adapter"] == str(tmp_path / "lora")
    assert model.identity() != lm.load(folder).identity()
    both = shutil.copytree(folder, tmp_path / "both")
    for name in ("adapter_config.json", "adapter_model.safetensors"):
        shutil.copy(tmp_path / "lora" / name, both)
    with pytest.raises(ProbeError, match="a whole model and an adapter"):
        lm.load(both)


@pytest.mark.parametrize("bits", ["4bit", "8bit"])
def test_packed_weights_are_recorded_as_they_are(folder, tmp_path, bits):
    config = hf.BitsAndBytesConfig(**{f"load_in_{bits}": True})
    options = {"quantization_config": config, "dtype": torch.float32}
    packed = hf.AutoModelForCausalLM.from_pretrained(folder, **options)
    packed.save_pretrained(tmp_path / "packed")
    hf.AutoTokenizer.from_pretrained(folder).save_pretrained(tmp_path / "packed")
    model, full = lm.load(tmp_path / "packed"), lm.load(folder)
    about = model.describe()
    assert (about["quantize"], about["quantized_modules"], about["packed"]) == (bits, 14, True)
    assert model.n_parameters == full.n_parameters
    quantized = ("Linear4bit", "Linear8bitLt")
    kinds = [m for m in model.hf_model.modules() if type(m).__name__ in quantized]
    assert not any(m.support_avx512bf16_for_cpu for m in kinds)
    held = lm.load(packed, model.tokenizer)  # the same as an object in memory
    assert score(held) == pytest.approx(score(model), abs=1e-4)
    about = held.describe()
    assert (about["quantize"], about["quantized_modules"]) == (bits, 14)
    assert about["parameters"] == full.n_parameters
    if bits == "8bit":
        assert {m.state.threshold for m in kinds} == {0.0}
        assert score(model) == pytest.approx(score(lm.load(folder, quantize="8bit")), abs=1e-4)
    other = {"4bit": "8bit", "8bit": "4bit"}[bits]
    with pytest.raises(ProbeError, match=f"stored as {bits} already"):
        lm.load(tmp_path / "packed", quantize=other)


STORED = {"quant_method": "gptq", "group_size": 128, "bits": 4}


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"quantization_config": STORED}, "stored as gptq"),
        ({"num_hidden_layers": 0}, "not used by the model"),
        ({"num_hidden_layers": 1}, "not used by the model"),
    ],
)
def test_weights_that_do_not_fit_are_an_error(folder, tmp_path, config, said):
    copy = shutil.copytree(folder, tmp_path / "copy")
    saved = json.loads((copy / "config.json").read_text())
    (copy / "config.json").write_text(json.dumps(saved | config))
    with pytest.raises(ProbeError, match=said):
        score(lm.load(copy))


def test_two_revisions_of_one_id_have_two_names(monkeypatch, folder):
    asked = []
    download = lambda *asked_for: asked.append(asked_for) or folder
    monkeypatch.setattr("probelib.lm.internals.folders.download", download)
    given = ["a/b@step1000", "a/b", "a/b/fp16", "a/b@refs/pr/1/fp16"]
    names = [lm.load(name).name for name in given]
    assert names == given == list(map(display_name, names))
    asked_for = [("step1000", ""), (None, ""), (None, "fp16"), ("refs/pr/1", "fp16")]
    assert asked == [("a/b", *each) for each in asked_for]


def test_one_text_is_as_good_as_a_list(folder):
    model = lm.load(folder)
    one = model.logprobs(PROMPT, ANSWER)
    assert len(one) == 1 and one["logprob"][0] == model.logprobs([PROMPT], [[ANSWER]])["logprob"][0]
    assert model.logprobs([PROMPT, "Rome"], [" Paris", " Oslo"])["prompt"].tolist() == [0, 1]


QUICK = "{% if enable_thinking is defined and not enable_thinking %}<quick>{% endif %}"
QUICK += "<assistant>{{ '\\n' }}"
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
    expected = by_hand.logprobs(turn, ["Norway", "Spain"])["logprob"]
    assert scored["logprob"].tolist() == expected.tolist()
    assert model.generate("Oslo?")["text"][0] == by_hand.generate(turn)["text"][0]
    found = model.top_continuations("Oslo?", labels, n=2)
    wanted = by_hand.top_continuations(turn, bare, n=2)
    assert found["logprob"].tolist() == wanted["logprob"].tolist()
    found = integrated_gradients(model, "Oslo?", steps=5)
    assert found["score"].tolist() == integrated_gradients(by_hand, turn, steps=5)["score"].tolist()
    with pytest.raises(ProbeError, match="no chat template; name the model without @chat"):
        lm.load(f"{folder}@chat").logprobs("Oslo?", " Norway")


def test_sentencepiece_continuations_behind_a_bracket_and_a_line_break():
    """Metaspace puts a blank before every text: a continuation without a blank has none."""
    raw = Tokenizer(models.BPE())
    raw.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    raw.decoder = decoders.Metaspace(prepend_scheme="always")
    texts = [*tiny.TEXTS, *["Rome (Italy Oslo (Norway \n"] * 4]
    how = {"vocab_size": 200, "special_tokens": ["<s>"], "show_progress": False}
    raw.train_from_iterator(texts, trainers.BpeTrainer(**how))
    tokenizer = hf.PreTrainedTokenizerFast(tokenizer_object=raw, bos_token="<s>")
    config = hf.LlamaConfig(**tiny.WIDE | {"vocab_size": len(tokenizer)})
    model = lm.load(tiny.build(config), tokenizer)
    tokens = model.tokens
    for prompt in ("Rome (", "What is\n"):
        before, ids = tokens.prompts([prompt])[0], list(tokens.continuation("Paris"))
        assert before + ids == tokenizer.encode(f"{prompt}Paris", add_special_tokens=False)
        assert tokenizer.convert_ids_to_tokens(ids)[0][0] == "P"
        row = model.logprobs(prompt, "Paris")
        expected = sum(tiny.by_hand(model.hf_model, before, ids))
        assert row["logprob"][0] == pytest.approx(expected, abs=1e-4)


def test_the_reason_for_a_slower_path_is_told_and_kept(tmp_path):
    """A hybrid of convolutions and attention: each prompt once, its state repeated."""
    config = hf.Lfm2Config(**tiny.GROUPED | SIZE, layer_types=["conv", "full_attention"])
    model = lm.load(tiny.folder(tmp_path, config))
    with pytest.warns(UserWarning, match="'repeated', not 'tree' .*tree"):
        model.choose_path()
    assert model.describe()["path"] == "repeated" and model.why.startswith("tree: ")
    prompts, answers = [" ".join([PROMPT] * 8)], [[" Paris", " Rome", " Oslo Norway", " Lima is"]]
    paths, cost = ("repeated", "plain", "alone"), {}
    expected = model.logprobs(prompts * 2, answers * 2, path="alone")["logprob"].tolist()
    for path in paths:
        rows = model.logprobs(prompts * 2, answers * 2, path=path)
        assert rows["logprob"].tolist() == pytest.approx(expected, abs=1e-4)
        cost[path] = rows.attrs["cost"]["forwarded_tokens"]
    assert cost["repeated"] < cost["plain"] / 3


@pytest.mark.parametrize(
    "config",
    [hf.RwkvConfig(hidden_size=64, num_hidden_layers=2, attention_hidden_size=64),
     hf.RecurrentGemmaConfig(
         **tiny.GROUPED | {"num_hidden_layers": 3}, lru_width=64, attention_window_size=8)],
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


@pytest.mark.filterwarnings("ignore:.*is scored on the path")
@pytest.mark.parametrize(("family", "path"), [("zamba2", "plain"), ("nemotron_h", "plain")])
def test_a_cache_that_changes_numbers_is_not_used(tmp_path, family, path):
    """Cached steps of these differ from their whole forwards by thousandths of a nat."""
    hf_model = families.build(*families.kinds()["causal", family], len(tiny.tokenizer()))
    hf_model.save_pretrained(tmp_path)
    tiny.tokenizer().save_pretrained(tmp_path)
    model = lm.load(tmp_path)
    ((tokens, scores),) = continue_ids(model, model.tokens.prompts([PROMPT]), 6)[0][0]
    assert model.path == path
    before = model.tokens.prompts([PROMPT])[0]
    cost = model.generate(PROMPT, max_new_tokens=6).attrs["cost"]
    # the whole text at each step
    assert cost["forwarded_tokens"] == sum(len(before) + n for n in range(len(tokens)))
    assert scores == pytest.approx(tiny.by_hand(hf_model, before, tokens), abs=1e-4)
