"""From text to token ids, with one rule for the boundary between prompt and continuation.

A prompt is tokenized as the tokenizer does it by default: a beginning-of-sequence token stands first exactly once, or
not at all, by the tokenizer's own rule (recorded by ``LM.describe``). A continuation such as " Paris" is tokenized on
its own and the ids are joined, so that its tokens are the same after every prompt. Where the tokenizer would cut the
joined text otherwise (a token that straddles the boundary), the row is flagged ``boundary``; the joined ids are scored.
"""

import math
from collections.abc import Collection, Iterable

from probelib.errors import ProbeError


class Tokens:
    """Token ids of prompts and continuations; each distinct text is tokenized once.

    tokenizer         a Hugging Face tokenizer
    encoder_decoder   True: prompts go to an encoder, continuations to a decoder whose texts have no leading blank
    size              entries of the model's vocabulary; a token beyond them is an error
    """

    def __init__(self, tokenizer, encoder_decoder: bool, size: float = math.inf):
        self.tokenizer, self.encoder_decoder, self.size = tokenizer, encoder_decoder, size
        self.start = [i for i in self._special_prefix() if i is not None]
        self.check("a", self.start)
        self._known: dict[str, tuple[int, ...]] = {}  # text -> ids, no special tokens
        self._continuations: dict[str, tuple[int, ...]] = {}

    @property
    def bos_rule(self) -> str:
        """What stands before every prompt: "none", or the tokens that the tokenizer puts there."""
        return " ".join(self.tokenizer.convert_ids_to_tokens(self.start)) or "none"

    def _special_prefix(self) -> list[int]:
        """The special tokens that the tokenizer puts before a text (decoder-only models: none of those after it)."""
        plain = self.tokenizer("a", add_special_tokens=False)["input_ids"]
        full = self.tokenizer("a")["input_ids"]
        return full[: full.index(plain[0])] if plain and plain[0] in full else []

    def prompts(self, texts: list[str]) -> list[list[int]]:
        """Ids of each prompt. A decoder-only model whose tokenizer puts no token before a text refuses an empty prompt."""
        if not texts:
            return []
        ids = self.plain(texts, add_special_tokens=self.encoder_decoder)
        if self.encoder_decoder:
            return ids
        ids = [self.start + i for i in ids]
        for text, i in zip(texts, ids, strict=True):
            if not i:
                raise ProbeError(
                    f"the prompt {text!r} gives no token and this tokenizer adds none (BOS rule: none): "
                    "nothing to predict from. Give a prompt of at least one character."
                )
        return ids

    def continuation(self, text: str) -> tuple[int, ...]:
        """Ids of a continuation.

        Decoder-only: tried as it is and, for SentencePiece tokenizers that add a blank of their own, without the
        leading blank; the first form whose decoding after another token gives the text back is taken.
        """
        if text not in self._continuations:
            forms = [text.strip()] if self.encoder_decoder else [text, text.lstrip(" ")]
            ids = [self._ids(form) for form in forms]
            if not text.strip() or not any(ids):
                raise ProbeError(f"the continuation {text!r} is empty or gives no token; every candidate needs a text")
            self._continuations[text] = (
                ids[0] if self.encoder_decoder else next(filter(lambda i: self._gives(i, text), ids), ids[0])
            )
        return self._continuations[text]

    def _gives(self, ids: tuple[int, ...], text: str) -> bool:
        return bool(ids) and self.decode(self._ids("a") + ids) == self.decode(self._ids("a")) + text

    def straddles(self, prompt: str, continuation: str) -> bool:
        """Whether the tokenizer would cut prompt + continuation in another way than the joined ids.

        Tokens do not reach over blanks, so the last word of the prompt is enough to look at.
        """
        if self.encoder_decoder:
            return False
        word = _last_word(prompt)
        return self._ids(word + continuation) != self._ids(word) + self.continuation(continuation)

    def learn(self, prompts: Iterable[str], continuations: Iterable[Iterable[str]]) -> None:
        """Tokenizes in one call all that ``continuation`` and ``straddles`` will ask: eight times as fast as one by one."""
        texts = {}
        for prompt, own in zip(prompts, continuations, strict=True):
            word = _last_word(prompt)
            texts |= dict.fromkeys([word, *own, *(text.strip() for text in own), *(word + text for text in own)])
        new = [text for text in texts if text not in self._known]
        if new:
            self._known.update(zip(new, map(tuple, self.plain(new)), strict=True))

    def plain(self, texts: list[str], add_special_tokens: bool = False) -> list[list[int]]:
        """Ids as the tokenizer gives them, none of which the model lacks."""
        ids = self.tokenizer(texts, add_special_tokens=add_special_tokens, return_attention_mask=False)["input_ids"]
        for text, own in zip(texts, ids, strict=True):
            self.check(text, own)
        return ids

    def check(self, text: str, ids: list[int]) -> None:
        """ProbeError for a token that the model lacks."""
        if ids and max(ids) >= self.size:
            raise ProbeError(
                f"{text[:50]!r} has the token {self.tokenizer.convert_ids_to_tokens(max(ids))!r} ({max(ids)}), but the model "
                f"knows {self.size} tokens: this tokenizer is another model's, or was added to and the embeddings were not"
            )

    def _ids(self, text: str) -> tuple[int, ...]:
        if text not in self._known:
            self._known[text] = tuple(self.plain([text])[0])
        return self._known[text]

    def decode(self, ids: Iterable[int], without: Collection[int] = ()) -> str:
        """Text of ids, blanks as they are; special tokens, and those of ``without``, are left out."""
        kept = [token for token in ids if token not in without]
        return self.tokenizer.decode(kept, skip_special_tokens=True, clean_up_tokenization_spaces=False)


def _last_word(text: str) -> str:
    """From the last blank on."""
    return text[max(text.rfind(" "), 0) :]


def fits(lm, prompt: str, used: int) -> None:
    """ProbeError where a prompt and what follows it take more tokens than the model reads."""
    if used > lm.context:
        raise ProbeError(
            f"{lm.name} reads at most {lm.context} tokens; the prompt {prompt[:50]!r}... with what follows it needs {used}. "
            "Shorten the prompt, or take fewer examples in it"
        )
