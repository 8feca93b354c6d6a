"""What a model reads: a zoo of small tokenizers and chat templates, built here, without weights."""

import datetime
import json
from unittest import mock

import pytest
import transformers as hf
from tokenizers import (
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)
from transformers.utils import chat_template_utils

from probelib import ProbeError
from probelib.lm import text
from probelib.lm.tokens import Tokens

GPT4 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|"
    r"\s*[\r\n]+|\s+(?!\S)|\s+"
)
SPECIAL = ["<unk>", "<s>", "</s>", "<|start|>", "<|end|>", "<|channel|>", "<|message|>"]
PLAIN = pre_tokenizers.ByteLevel(add_prefix_space=False)


def by_bytes(*before):
    """Byte-level pieces of what other pre-tokenizers split."""
    last = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    return pre_tokenizers.Sequence([*before, last])


SPLITS = {
    "gpt2": PLAIN,
    "gpt4": by_bytes(pre_tokenizers.Split(Regex(GPT4), "isolated")),
    "digits": by_bytes(pre_tokenizers.Digits(individual_digits=True), PLAIN),
    "lines": by_bytes(pre_tokenizers.Split(Regex(r"\n"), "isolated")),
}
CLASSES = {
    "TokenizersBackend": SPLITS,
    "GPT2Tokenizer": SPLITS,
    "Qwen2Tokenizer": ("gpt2", "gpt4"),
    "GPTNeoXTokenizerFast": ("gpt2", "gpt4", "digits"),
    "LlamaTokenizerFast": ("gpt4",),
    "CohereTokenizerFast": ("gpt2", "digits"),
    "RobertaTokenizerFast": ("gpt2", "gpt4"),
    "BloomTokenizerFast": ("digits",),
    "WhisperTokenizer": ("gpt4",),
}
ZOO = [(kind, split) for kind, splits in CLASSES.items() for split in splits]


def save(folder, raw: Tokenizer, kind: str = "TokenizersBackend", **settings):
    """A folder with tokenizer.json and tokenizer_config.json."""
    folder.mkdir(exist_ok=True)
    raw.save(str(folder / "tokenizer.json"))
    about = {"tokenizer_class": kind, "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
    (folder / "tokenizer_config.json").write_text(json.dumps(about | settings))
    (folder / "config.json").write_text(json.dumps({"model_type": "gpt_neox", "vocab_size": 2000}))
    return folder


def bpe(split: str = "gpt2", bos: bool = False) -> Tokenizer:
    raw = Tokenizer(models.BPE())
    raw.pre_tokenizer, raw.decoder = SPLITS[split], decoders.ByteLevel()
    options = {"special_tokens": SPECIAL, "show_progress": False}
    options |= {"initial_alphabet": pre_tokenizers.ByteLevel.alphabet()}
    raw.train_from_iterator(text.TEXTS * 4, trainers.BpeTrainer(vocab_size=900, **options))
    if bos:
        begin = {"single": "<s> $A", "special_tokens": [("<s>", 1)]}
        raw.post_processor = processors.TemplateProcessing(**begin)
    return raw


def metaspace() -> Tokenizer:
    raw = Tokenizer(models.BPE(unk_token="<unk>"))
    raw.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first")
    raw.decoder = decoders.Metaspace(prepend_scheme="first")
    trainer = trainers.BpeTrainer(vocab_size=600, special_tokens=SPECIAL, show_progress=False)
    raw.train_from_iterator(text.TEXTS * 4, trainer)
    return raw


def word_piece() -> Tokenizer:
    raw = Tokenizer(models.WordPiece(unk_token="<unk>"))
    raw.normalizer = normalizers.NFC()
    raw.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(vocab_size=600, special_tokens=SPECIAL, show_progress=False)
    raw.train_from_iterator(text.TEXTS * 4, trainer)
    return raw


def ids_of_the_file(folder, words: str) -> list[int]:
    raw = Tokenizer.from_file(str(folder / "tokenizer.json"))
    return raw.encode(words, add_special_tokens=False).ids


# The file


@pytest.mark.parametrize(("kind", "split"), ZOO)
def test_ids_are_those_of_the_file_whatever_the_class(kind, split, tmp_path):
    folder = save(tmp_path / "zoo", bpe(split), kind)
    tokenizer, source = text.read_tokenizer(folder)
    for words in (*text.TEXTS, "Q: Which?\n\nA: 1234 Łódź"):
        ids = tokenizer(words, add_special_tokens=False)["input_ids"]
        assert ids == ids_of_the_file(folder, words)
    assert tokenizer.eos_token == "</s>" and source in ("its class", "tokenizer.json")


def test_the_file_wins_where_transformers_drops_its_split(tmp_path):
    """The case must exist: this class builds a pre-tokenizer of its own."""
    folder = save(tmp_path / "zoo", bpe("gpt4"), "GPT2Tokenizer", chat_template="{{ messages }}")
    by_class = hf.AutoTokenizer.from_pretrained(folder)
    words = "What?\n\nA:"
    assert by_class(words)["input_ids"] != ids_of_the_file(folder, words)
    tokenizer, source = text.read_tokenizer(folder)
    assert source == "tokenizer.json" and tokenizer.chat_template == "{{ messages }}"


@pytest.mark.parametrize("make", [metaspace, word_piece])
def test_other_kinds_of_tokenizers_agree_with_their_files(make, tmp_path):
    folder = save(tmp_path / "zoo", make())
    tokenizer, _ = text.read_tokenizer(folder)
    for words in text.TEXTS:
        ids = tokenizer(words, add_special_tokens=False)["input_ids"]
        assert ids == ids_of_the_file(folder, words)


# BOS and control tokens


def tokens_of(raw: Tokenizer, template: str | None = None, format: str = "") -> Tokens:
    special = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
    tokenizer = hf.PreTrainedTokenizerFast(tokenizer_object=raw, **special)
    tokenizer.chat_template = template
    return Tokens(tokenizer, False, format=format)


@pytest.mark.parametrize("bos", [True, False])
@pytest.mark.parametrize("before", ["", "<s>", "<s><s>"])
def test_bos_comes_exactly_once(bos, before):
    if before == "<s><s>" and not bos:
        return
    tokens = tokens_of(bpe(bos=bos))
    (ids,) = tokens.prompts([f"{before}The capital"])
    (bare,) = tokens.prompts(["The capital"])
    assert ids.count(1) == (1 if bos or before else 0)
    assert ids[-len(bare) + bos :] == bare[bos:]


def test_control_tokens_in_a_plain_prompt_are_text():
    tokens = tokens_of(bpe())
    ids = tokens.prompts(["What does <|end|> mark?", "</s>", "a <s> b"])
    control = {SPECIAL.index(each) for each in ("<|end|>", "<s>")}
    assert not control & {*ids[0], *ids[2]} and ids[1] == [2]
    assert tokens.tokenizer.decode(ids[0]) == "What does <|end|> mark?"


# Chat

CHATML = (
    "{% for m in messages %}{{ '<|start|>' + m['role'] + '\n' + m['content'] + '<|end|>\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|start|>assistant\n' }}{% endif %}"
)
BEHIND_CONTROL = (
    "{% for m in messages %}{{ '<|start|>' + m['role'] + '<|end|>' + m['content'] + '</s>' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|start|>assistant<|end|>' }}{% endif %}"
)
BLANK = (
    "{% for m in messages %}{% if m['role'] == 'user' %}{{ '[INST] ' + m['content'] + ' [/INST]' }}"
    "{% else %}{{ ' ' + m['content'] + '</s>' }}{% endif %}{% endfor %}"
)
COLON = (
    "{% for m in messages %}{{ m['role'] + ': ' + m['content'] + '\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ 'assistant: ' }}{% endif %}"
)
CHANNEL = (
    "{% for m in messages %}{% if m['role'] == 'user' %}"
    "{{ '<|start|>user<|message|>' + m['content'] + '<|end|>' }}{% else %}"
    "{{ '<|start|>assistant<|channel|>final<|message|>' + m['content'] + '<|end|>' }}{% endif %}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|start|>assistant' }}{% endif %}"
)
THOUGHT = (
    "{% for m in messages %}{% if m['role'] == 'user' %}"
    "{{ '<|start|>user\n' + m['content'] + '<|end|>\n' }}"
    "{% else %}{{ '<|start|>assistant\n<think>\n\n</think>\n\n' + m['content'] + '<|end|>\n' }}"
    "{% endif %}{% endfor %}{% if add_generation_prompt %}{{ '<|start|>assistant\n' }}{% endif %}"
)
TURN = "assistant\n' }}{% endif"
CLOSED = CHATML.replace(TURN, "assistant\n<think>\n\n</think>\n\n' }}{% endif")
OPENED = CHATML.replace(TURN, "assistant\n<think>\n' }}{% endif")
TRIMMED = CHATML.replace("m['content']", "m['content'] | trim")
WITH_BOS = "{{ bos_token }}" + CHATML
DATED = "{{ 'Today is ' + strftime_now('%d %b %Y') + '.\n' }}" + CHATML
# template -> (what stands behind the question, the answer as the template writes it)
PLACES = {
    "chatml": (CHATML, "<|end|>\n<|start|>assistant\n", "Lima"),
    "behind a control token": (BEHIND_CONTROL, "</s><|start|>assistant<|end|>", "Lima"),
    "a blank of the template": (BLANK, " [/INST]", " Lima"),
    "a blank of the prompt": (COLON, "\nassistant:", " Lima"),
    "a channel": (CHANNEL, "<|end|><|start|>assistant<|channel|>final<|message|>", "Lima"),
    "an empty thought": (THOUGHT, "<|end|>\n<|start|>assistant\n<think>\n\n</think>\n\n", "Lima"),
    "a closed thought of other words": (
        CLOSED.replace("<think>", "<|begin_of_thought|>").replace("</think>", "<|end_of_thought|>"),
        "<|end|>\n<|start|>assistant\n<|begin_of_thought|>\n\n<|end_of_thought|>\n\n",
        "Lima",
    ),
    "a closed thought": (CLOSED, "<|end|>\n<|start|>assistant\n<think>\n\n</think>\n\n", "Lima"),
    "trimmed": (TRIMMED, "<|end|>\n<|start|>assistant\n", "Lima"),
    "with BOS": (WITH_BOS, "<|end|>\n<|start|>assistant\n", "Lima"),
    "dated": (DATED, "<|end|>\n<|start|>assistant\n", "Lima"),
}


@pytest.mark.parametrize("name", PLACES)
def test_an_answer_stands_where_the_template_writes_it(name):
    template, behind, answer = PLACES[name]
    tokens = tokens_of(bpe("gpt4", bos=name == "with BOS"), template, format="chat")
    question = "What is the capital of Peru?"
    read = tokens.read(question)
    (ids,) = tokens.prompts([question])
    whole = text.render(tokens.tokenizer, [("user", question), ("assistant", "Lima")])
    if name.startswith("a closed thought"):  # only its generation prompt has one
        whole = read + "Lima"
    expected = tokens.tokenizer(whole, add_special_tokens=False)["input_ids"]
    ids += tokens.continuation(" Lima")
    assert read.endswith(question + behind) and list(tokens.continued) == [answer]
    assert ids == expected[: len(ids)] and ids.count(1) == (name == "with BOS")


def test_a_regex_that_panics_is_an_error():
    raw = bpe()
    raw.pre_tokenizer = by_bytes(pre_tokenizers.Split(Regex("(x+x+)+y"), "isolated"))
    with pytest.raises(ProbeError, match="the tokenizer cannot read this text"):
        tokens_of(raw).prompts(["x" * 60])


@pytest.mark.parametrize(
    ("template", "words"),
    [
        (OPENED, "opens a thought.*without @chat"),
        (CHATML.replace("m['content']", "'?'"), "as it is"),
        ("{{ raise_exception('no') }}", "refuses these turns: no"),
        (None, "no chat template"),
    ],
)
def test_a_template_without_a_place_for_answers_is_refused(template, words):
    with pytest.raises(ProbeError, match=words):
        text.user_turn(tokens_of(bpe(), template), "Peru?")


def test_a_control_token_in_a_question_is_text_and_the_templates_are_not():
    question = "What does <|end|> mark?"
    in_chat, plain = tokens_of(bpe(), CHATML, format="chat"), tokens_of(bpe(), CHATML)
    end = SPECIAL.index("<|end|>")
    (ids,) = in_chat.prompts([question])
    assert ids.count(end) == 1 and in_chat.tokenizer.decode(ids) == in_chat.read(question)
    # also in a text that was put into the template before, and in parts of it
    assert plain.prompts([text.user_turn(plain, question)[0]]) == [ids]
    frame, _ = text.user_turn(plain, "[X]")
    assert tokens_of(bpe(), CHATML).prompts([frame.replace("[X]", question)]) == [ids]
    assert tokens_of(bpe(), TRIMMED, format="chat").prompts([f" {question} "]) == [ids]


def test_control_tokens_in_a_text_behind_a_prefix_are_text():
    """But for those that the template writes behind a user's text."""
    end, question = SPECIAL.index("<|end|>"), "What does <|end|> mark?"
    for template in (CHATML, None):
        tokens = tokens_of(bpe(), template)
        after = tokens.frame[1]
        ids = tokens.behind([question, question + after, f"Peru?{after}"])
        number = int(template is not None)
        assert [own.count(end) for own in ids] == [0, number, number]
        assert tokens.tokenizer.decode(ids[1]) == question + after


def test_a_dated_template_reads_the_same_on_two_days():
    def on(*day):
        class Day(datetime.datetime):
            @classmethod
            def now(cls, tz=None):
                return cls(*day)

        with mock.patch.object(chat_template_utils, "datetime", Day):
            tokens = tokens_of(bpe(), DATED, format="chat")
            return tokens.prompts(["Peru?"]), text.digest(tokens.tokenizer)

    assert on(2026, 3, 1) == on(2027, 11, 26)


def test_a_digest_names_everything_that_changes_an_id():
    def digest(change=lambda tokenizer: None):
        tokenizer = tokens_of(bpe(), CHATML).tokenizer
        change(tokenizer)
        return text.digest(tokenizer)

    def lowercase(tokenizer):
        tokenizer.backend_tokenizer.normalizer = normalizers.Lowercase()

    def add_bos(tokenizer):
        tokenizer.backend_tokenizer.post_processor = bpe(bos=True).post_processor

    changes = [lowercase, add_bos, lambda tokenizer: tokenizer.add_tokens(["Lima"])]
    changes.append(lambda tokenizer: setattr(tokenizer, "chat_template", DATED))
    changes.append(lambda tokenizer: setattr(tokenizer, "eos_token", "<|end|>"))
    assert digest() == digest() and len({digest(), *map(digest, changes)}) == len(changes) + 1


def test_a_template_without_an_end_is_an_error(monkeypatch):
    monkeypatch.setattr(text, "SECONDS", 0.01)
    loops = "{% for a in range(2000) %}{% for b in range(2000) %}{% endfor %}{% endfor %}"
    with pytest.raises(ProbeError, match="more than 0.01 seconds"):
        text.user_turn(tokens_of(bpe(), loops + CHATML), "Peru?")
