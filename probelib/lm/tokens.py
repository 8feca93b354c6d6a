"""Text to token ids, with one rule for the boundary between prompt and continuation.

A prompt is tokenized with the tokenizer's defaults; control tokens in it are text. What the
tokenizer puts before a text (BOS) comes exactly once. A continuation such as " Paris" is tokenized
alone and its ids are appended, so its tokens are the same after every prompt, also where the
tokenizer would split the joined text differently.
"""

import math
import re
from collections.abc import Collection, Iterable
from functools import cache, cached_property
from itertools import chain

from probelib.errors import ProbeError
from probelib.lm.text import ANSWER, CUE, PATTERNS, no_panic, prompt_ids, user_turn


class Tokens:
    """Token ids of prompts and continuations; each distinct text is tokenized once.

    encoder_decoder   True: prompts go to the encoder, continuations to the decoder, without a
                      leading blank
    size              vocabulary size of the model; larger ids raise ProbeError
    format            how each prompt is put: "chat", a user turn of the tokenizer's chat template
                      (a continuation begins as the template's answers do); "cue", "shots" (see
                      ``text.PATTERNS``); "", as it is
    """

    def __init__(self, tokenizer, encoder_decoder: bool, size: float = math.inf, format: str = ""):
        self.tokenizer, self.encoder_decoder, self.size = tokenizer, encoder_decoder, size
        # what the tokenizer puts before and after a text
        letter = tokenizer("a", add_special_tokens=False)["input_ids"]
        full, self.start, self.finish = tokenizer("a")["input_ids"], list[int](), list[int]()
        if letter and letter[0] in full:
            first = full.index(letter[0])
            self.start = [i for i in full[:first] if i is not None]
            self.finish = full[first + len(letter) :]
        self.check("a", self.start)
        self.bos_rule = " ".join(tokenizer.convert_ids_to_tokens(self.start)) or "none"
        self._known: dict[str, tuple[int, ...]] = {}  # text -> ids without special tokens
        self.continued: dict[str, tuple[int, ...]] = {}  # continuation -> its ids
        self._turn = cache(lambda prompt: user_turn(self, prompt)[0])
        self.format, self._letter = format, ""
        self._format = PATTERNS.get(format, "{}").split("{}")
        self._blank = user_turn(self, "a")[1] if format == "chat" else ""

    @cached_property
    def control(self) -> re.Pattern:
        """Finds the text of a control token."""
        added = self.tokenizer.added_tokens_decoder.values()
        texts = {*self.tokenizer.all_special_tokens, *(t.content for t in added if t.special)}
        longest_first = sorted(filter(str.strip, texts), key=lambda text: (-len(text), text))
        return re.compile("|".join(map(re.escape, longest_first)) or "(?!)")

    @cached_property
    def frame(self) -> tuple[str, str]:
        """What the chat template writes before and after a user's text; "" without a template."""
        try:
            before, _, after = user_turn(self, ANSWER[::-1])[0].partition(ANSWER[::-1])
        except ProbeError:
            return "", ""
        return before, after

    def prompts(self, texts: list[str]) -> list[list[int]]:
        """Ids of each prompt. Raise ProbeError if one has no token to predict from."""
        texts = [self.without_bos(self.read(text)) for text in texts]
        after = self.finish if self.encoder_decoder else []
        found = [[*self.start, *ids, *after] for ids in self.behind(texts)]
        for text, ids in zip(texts, found, strict=True):
            if not ids:
                raise ProbeError(f"the prompt {text!r} has no token: nothing to predict from")
        return found

    def behind(self, texts: list[str]) -> list[list[int]]:
        """Ids of texts that follow a prompt's beginning."""
        ids = {text: prompt_ids(self, text) for text in texts if self.control.search(text)}
        if plain := [text for text in texts if text not in ids]:
            ids.update(zip(plain, self.encode(plain), strict=True))
        return [ids[text] for text in texts]

    def without_bos(self, text: str) -> str:
        """A text without the tokens that the tokenizer puts before it anyway."""
        before = "".join(self.tokenizer.convert_ids_to_tokens(self.start))
        while before and text.startswith(before):
            text = text.removeprefix(before)
        return text

    def read(self, prompt: str) -> str:
        """The text that the model reads for a prompt; one in the format already stays."""
        before, after = self.frame if self.format == "chat" else self._format
        put = before + after and prompt.startswith(before) and prompt.endswith(after)
        if put or not self.format:
            return prompt
        if self.format in PATTERNS:
            return before + prompt.removesuffix(CUE) + after
        return self._turn(prompt)

    def said(self, continuation: str) -> str:
        """A continuation as the model would write it."""
        return self._blank + continuation.lstrip(" ") if self.format == "chat" else continuation

    def continuations(self, texts: list[str]) -> list[tuple[int, ...]]:
        """Ids of each continuation; the texts are tokenized together."""
        self._ids(form for text in texts for form in self._forms(self.said(text)))
        return [self.continuation(text) for text in texts]

    def _forms(self, text: str) -> list[str]:
        return [text.strip()] if self.encoder_decoder else [text, text.lstrip(" ")]

    def continuation(self, text: str) -> tuple[int, ...]:
        """Ids of a continuation. SentencePiece tokenizers add a leading blank, so of decoder-only
        models the first form that decodes back to the text after another token: the text as it is,
        without its leading blank, or as it is tokenized after a bracket."""
        text = self.said(text)
        if text not in self.continued:
            ids = self._ids(self._forms(text))
            if not text.strip() or not any(ids):
                raise ProbeError(f"the continuation {text!r} is empty or has no token")
            start, bracket = self._ids(["a", "("])
            self._letter = self._letter or self.decode(start)
            fits = lambda i: i and self.decode(start + i) == self._letter + text
            after = map(lambda text: self._ids([f"({text}"])[0][len(bracket) :], [text])
            exact = filter(fits, chain(ids, after))  # lazy: the bracket is rarely needed
            self.continued[text] = ids[0] if self.encoder_decoder else next(exact, ids[0])
        return self.continued[text]

    def _ids(self, texts: Iterable[str]) -> list[tuple[int, ...]]:
        """Ids of texts; the new ones in one tokenizer call: eight times as fast as one by one."""
        texts = list(texts)
        if new := [text for text in dict.fromkeys(texts) if text not in self._known]:
            self._known.update(zip(new, map(tuple, self.encode(new, control=False)), strict=True))
        return [self._known[text] for text in texts]

    def encode(self, texts: list[str], control: bool = True) -> list[list[int]]:
        """Ids as the tokenizer returns them, checked against the model's vocabulary; ``control``:
        control tokens in the texts ("<|endoftext|>") are no text."""
        options = {"add_special_tokens": False, "return_attention_mask": False}
        with no_panic(self.tokenizer.name_or_path):
            ids = self.tokenizer(texts, **options, split_special_tokens=not control)["input_ids"]
        for text, i in zip(texts, ids, strict=True):
            self.check(text, i)
        return ids

    def check(self, text: str, ids: list[int]) -> None:
        """Raise ProbeError if an id is outside the model's vocabulary."""
        if ids and max(ids) >= self.size:
            token = self.tokenizer.convert_ids_to_tokens(max(ids))
            what = f"{text[:50]!r} contains the token {token!r} (id {max(ids)})"
            why = "the tokenizer is another model's, or was extended"
            raise ProbeError(f"{what}, but the model has {self.size} tokens: {why}")

    def decode(self, ids: Iterable[int], without: Collection[int] = ()) -> str:
        """Text of ids, with its blanks; special tokens and the ids in ``without`` are left out."""
        kept = [token for token in ids if token not in without]
        options = {"skip_special_tokens": True, "clean_up_tokenization_spaces": False}
        return self.tokenizer.decode(kept, **options)


def check_length(model, prompt: str, n: int) -> None:
    """Raise ProbeError if a prompt and what follows it (``n`` tokens) exceed the context."""
    if n > model.context:
        what = f"{model.name} reads at most {model.context} tokens; the prompt {prompt[:50]!r}..."
        raise ProbeError(f"{what} with its continuation has {n}. Shorten it, or use fewer examples")
