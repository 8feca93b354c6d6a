"""What a model reads: its tokenizer, held against the tokenizer's own file, and the turns of its
chat template. Where text becomes other tokens than the model was trained with, nothing fails."""

import hashlib
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from itertools import chain
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import yaml

from probelib.errors import ProbeError

DATA = yaml.load(Path(__file__).with_name("data.yaml").read_bytes(), Loader=yaml.CSafeLoader)
TEXTS, SHOTS, SENTENCES = DATA["tokenizers"], DATA["shots"], DATA["servers"]
DAY = datetime(2025, 1, 1, 12)  # the date that chat templates write: the same on every day
CUE = "\nAnswer:"
# how the prompts {} of a model named "NAME@shots" are put; see ``user_turn`` for "@chat"
PATTERNS = {"cue": f"Question: {{}}{CUE}"}
PATTERNS["shots"] = "".join(f"Question: {q}{CUE} {a}\n\n" for q, a in SHOTS) + PATTERNS["cue"]
ANSWER = "Zyxwvutsr"  # placeholder of an answer; no template contains it
CLOSED = re.compile(DATA["closed_thought"], re.IGNORECASE)
SECONDS = 30  # most of one rendering
RENDERING = threading.Lock()  # the date is fixed in a module of transformers


def first_line(error: Exception) -> str:
    """The first line of an exception's text, or its type if it has none."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]


@contextmanager
def no_panic(what: object) -> Iterator[None]:
    """Context manager: a panic of the Rust library, which is no ``Exception``, is a ProbeError."""
    try:
        yield
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        raise ProbeError(f"{what}: the tokenizer cannot read this text: {error}") from error


def read_tokenizer(source: str | Path, config=None) -> tuple[Any, str]:
    """The tokenizer of a folder or Hugging Face id, and what gives its ids: "its class" or, where
    these differ on ``TEXTS``, "tokenizer.json" (transformers 5 rebuilds it as the class that
    tokenizer_config.json names). ProbeError if it cannot be read or differs from its file."""
    from transformers import AutoTokenizer, PreTrainedTokenizerFast
    from transformers.utils import cached_file

    options: dict = {"trust_remote_code": False, "config": config}
    try:
        tokenizer = AutoTokenizer.from_pretrained(source, **options)
        backend = getattr(tokenizer, "backend_tokenizer", None)
        if getattr(backend, "fix_mistral_regex", None) is False:
            # transformers asks for it: the file holds a pattern that the model was not trained with
            fixed = AutoTokenizer.from_pretrained(source, fix_mistral_regex=True, **options)
            return fixed, "fix_mistral_regex"
        silent = {"_raise_exceptions_for_missing_entries": False}
        file = cached_file(str(source), "tokenizer.json", **silent)
        if file is None or not (text := first_difference(tokenizer, file)):
            return tokenizer, "its class"
        by_file = PreTrainedTokenizerFast.from_pretrained(source)
        left = first_difference(by_file, file)
    except Exception as error:  # from files, missing libraries, or code of the repository
        raise ProbeError(f"{source}: the tokenizer cannot be read: {first_line(error)}") from error
    if left:
        what = f"{source}: transformers reads {text!r} otherwise than tokenizer.json"
        raise ProbeError(f"{what}. Save the tokenizer again with the transformers at hand")
    return by_file, "tokenizer.json"


def first_difference(tokenizer, file: str | Path) -> str:
    """The first of ``TEXTS`` that a tokenizer reads otherwise than its file; "" without one."""
    from tokenizers import Tokenizer

    raw = Tokenizer.from_file(str(file))
    raw.no_truncation()
    raw.no_padding()
    with no_panic(file):
        theirs = tokenizer(list(TEXTS), add_special_tokens=False)["input_ids"]
        ours = [raw.encode(text, add_special_tokens=False).ids for text in TEXTS]
    return next((text for text, a, b in zip(TEXTS, theirs, ours, strict=True) if a != b), "")


def digest(tokenizer) -> str:
    """16 hex digits of everything that turns a text into ids, template and date included."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    whole = backend.to_str() if backend is not None else sorted(tokenizer.get_vocab().items())
    if backend is not None:  # without the padding and truncation of the last call
        whole = whole[whole.index('"added_tokens"') :]
    flags = ("add_bos_token", "add_eos_token", "add_prefix_space", "split_special_tokens", "legacy")
    settings = [getattr(tokenizer, flag, None) for flag in flags]
    special = {name: str(token) for name, token in tokenizer.special_tokens_map.items()}
    template = getattr(tokenizer, "chat_template", None)
    about = [type(tokenizer).__name__, whole, special, settings, template, str(DAY)]
    return hashlib.sha256(json.dumps(about, sort_keys=True, default=str).encode()).hexdigest()[:16]


def user_turn(tokens, prompt: str) -> tuple[str, str]:
    """A prompt as the user turn of the chat template, up to the place where answers begin, without
    the BOS token, which ``tokens`` adds; and the blank before an answer ("" or " ").

    The template is asked: an assistant turn with a rare word is rendered, and answers begin where
    that word is. Raise ProbeError if it has no such place.

        generation prompt       <user>Oslo?<end><assistant>
        turn with an answer     <user>Oslo?<end><assistant><|channel|>final<|message|>Zyxwvutsr<end>
    """
    turns = [("user", prompt)]
    begin = render(tokens.tokenizer, turns, add_generation_prompt=True)
    before, found, _ = render(tokens.tokenizer, [*turns, ("assistant", ANSWER)]).rpartition(ANSWER)
    name = tokens.tokenizer.name_or_path
    if not found:
        what = f"{name}: the chat template does not write an assistant's text as it is"
        raise ProbeError(f"{what}; name the model without @chat")
    if begin.startswith(before) and CLOSED.fullmatch(begin[len(before) :]):
        before = begin
    if not before.startswith(begin):
        what = "the chat template's generation prompt opens a thought, or begins no assistant turn"
        hint = "set another tokenizer.chat_template, or name the model without @chat"
        raise ProbeError(f"{name}: {what} ({begin[-60:]!r}); {hint}")
    bos = "".join(tokens.tokenizer.convert_ids_to_tokens(tokens.start))
    return before.removeprefix(bos).rstrip(" "), before[len(before.rstrip(" ")) :]


def render(tokenizer, turns: list[tuple[str, str]], **options) -> str:
    """(role, text) turns as the chat template writes them, on ``DAY`` and without thinking."""
    from unittest import mock

    from transformers.utils import chat_template_utils

    template, name = getattr(tokenizer, "chat_template", None), tokenizer.name_or_path
    if not template:
        raise ProbeError(f"{name} has no chat template; name the model without @chat")
    if "enable_thinking" in str(template):  # Qwen 3, SmolLM 3
        options["enable_thinking"] = False
    messages, found = [{"role": role, "content": text} for role, text in turns], list[Any]()

    def work() -> None:
        try:
            found.append(tokenizer.apply_chat_template(messages, tokenize=False, **options))
        except Exception as error:  # jinja's, raised by the template itself
            found.append(error)

    today = SimpleNamespace(now=lambda tz=None: DAY.replace(tzinfo=tz))
    with RENDERING, mock.patch.object(chat_template_utils, "datetime", today):
        rendering = threading.Thread(target=work, daemon=True)  # its loops may have no end
        rendering.start()
        rendering.join(SECONDS)
    if not found or isinstance(found[0], Exception):
        why = " ".join(str(found[0]).split())[:200] if found else f"more than {SECONDS} seconds"
        raise ProbeError(f"{name}: the chat template refuses these turns: {why}")
    return found[0]


def prompt_ids(tokens, text: str) -> list[int]:
    """Ids of a text that holds a control token's text, without the tokens that the tokenizer puts
    around it. It is a control token in what the chat template writes around a user's text, in a BOS
    token before it, and where the text is nothing else; elsewhere it is text."""
    before, after = tokens.frame
    begins = (before, tokens.tokenizer.bos_token or "")
    start = next((begin for begin in begins if begin and text.startswith(begin)), "")
    rest = text.removeprefix(start)
    content = rest.removesuffix(after)
    pieces = [(start, True), (content, False), (rest[len(content) :], True)]
    if tokens.control.fullmatch(text) or not tokens.control.search(content):
        pieces = [(text, True)]
    ids = [tokens.encode([part], control=written)[0] for part, written in pieces if part]
    return list(chain.from_iterable(ids))
