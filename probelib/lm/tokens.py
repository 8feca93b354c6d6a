"""Text to token ids, with one rule for the boundary between prompt and continuation.

A prompt is tokenized with the tokenizer's defaults; control tokens in it are text. What the
tokenizer puts before a text (BOS) comes exactly once. A continuation such as " Paris" is tokenized
alone and its ids are appended, so its tokens are the same after every prompt, also where the
tokenizer would split the joined text differently.
"""

import math
import re
from collections.abc import Collection, Iterable
from functools import cache, cached_property, partial

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
        self.eos = tokenizer.eos_token_id  # None: it has no end of a sequence
        self.check("a", self.start)
        self.check(str(tokenizer.eos_token), [] if self.eos is None else [self.eos])
        before = tokenizer.convert_ids_to_tokens(self.start)
        self.bos_rule = " ".join(before) or "none"
        # removes from a text what the tokenizer puts before it anyway
        begins = f"(?:{re.escape(''.join(before))})+" if before else "(?!)"
        self.without_bos = partial(re.compile(rf"\A{begins}").sub, "")
        self.continued: dict[str, tuple[int, ...]] = {}  # continuation, as it is written -> its ids
        added = tokenizer.added_tokens_decoder.values()
        control = {*tokenizer.all_special_tokens, *(t.content for t in added if t.special)}
        longest_first = sorted(filter(str.strip, control), key=lambda text: (-len(text), text))
        # finds the text of a control token
        self.control = re.compile("|".join(map(re.escape, longest_first)) or "(?!)")
        self._turn = cache(lambda prompt: user_turn(self, prompt)[0])
        self.format = format
        self._format = PATTERNS.get(format, "{}").split("{}")
        self._blank = user_turn(self, "a")[1] if format == "chat" else ""

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

    def read(self, prompt: str) -> str:
        """The text that the model reads for a prompt; one in the format already stays."""
        before, after = self.frame if self.format == "chat" else self._format
        put = before + after and prompt.startswith(before) and prompt.endswith(after)
        if put or not self.format:
            return prompt
        if self.format in PATTERNS:
            return before + prompt.removesuffix(CUE) + after
        return self._turn(prompt)

    def continuation(self, text: str) -> tuple[int, ...]:
        """Ids of one continuation; see ``continuations``."""
        return self.continuations([text])[0]

    def continuations(self, texts: list[str]) -> list[tuple[int, ...]]:
        """Ids of each continuation. SentencePiece tokenizers add a leading blank, so of decoders
        the first form that decodes back to the text after another token: the text as it is, without
        its leading blank, or as it is tokenized after a bracket."""
        if self.format == "chat":  # as an answer of the template is written
            texts = [self._blank + text.lstrip(" ") for text in texts]
        new = [text for text in dict.fromkeys(texts) if text not in self.continued]
        if not new:
            return [self.continued[text] for text in texts]
        forms = [text.strip() for text in new] if self.encoder_decoder else new
        bare = [text.lstrip(" ") for text in forms]
        # in one tokenizer call: eight times as fast as one by one
        start, bracket, *ids = self.encode(["a", "(", *forms, *bare], control=False)
        letter = self.decode(start)
        for text, *both in zip(new, ids, ids[len(new) :], strict=False):
            if not text.strip() or not any(both):
                raise ProbeError(f"the continuation {text!r} is empty or has no token")
            fits = lambda i, text=text: i and self.decode(start + i) == letter + text
            found = both[0] if self.encoder_decoder else next(filter(fits, both), None)
            if found is None:
                after = self.encode([f"({text}"], control=False)[0][len(bracket) :]
                found = after if fits(after) else both[0]
            self.continued[text] = tuple(found)
        return [self.continued[text] for text in texts]

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
