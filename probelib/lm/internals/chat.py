"""Chat: each prompt as a user turn of the tokenizer's chat template."""

from probelib.errors import ProbeError
from probelib.lm.names import IN_CHAT
from probelib.lm.tokens import Tokens


class Turns(Tokens):
    """Token ids of a model in chat ("NAME@chat"): each prompt is a user turn of the tokenizer's chat template, and a
    continuation loses its leading blank where the assistant's turn begins after white space."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self._read: dict[str, str] = {}
        self.bare = self.read("a")[-1:].isspace()

    def read(self, prompt: str) -> str:
        if prompt not in self._read:
            self._read[prompt] = user_turn(self, prompt)
        return self._read[prompt]

    def said(self, continuation: str) -> str:
        return continuation.lstrip(" ") if self.bare else continuation


def user_turn(tokens: Tokens, prompt: str, system: str | None = None, examples: list[tuple[str, str]] = ()) -> str:
    """A prompt as the last user turn of the tokenizer's chat template, without the BOS token, which the tokenizer adds.

    system     text of a system turn before all others; ProbeError if the template refuses it
    examples   (user, assistant) turns before the prompt
    """
    template, name = getattr(tokens.tokenizer, "chat_template", None), tokens.tokenizer.name_or_path
    if not template:
        raise ProbeError(f"{name} has no chat template; name the model without {IN_CHAT}, or use chat=False")
    turns = [("system", system)] if system is not None else []
    turns += [turn for user, assistant in examples for turn in (("user", user), ("assistant", assistant))]
    turns = [{"role": role, "content": text} for role, text in (*turns, ("user", prompt))]
    options = {"tokenize": False, "add_generation_prompt": True}
    if "enable_thinking" in str(template):  # Qwen 3, SmolLM 3
        options["enable_thinking"] = False
    try:
        text = tokens.tokenizer.apply_chat_template(turns, **options)
    except Exception as error:  # jinja's, raised by the template itself
        raise ProbeError(
            f"{name}: the chat template refuses these turns: {' '.join(str(error).split())[:200]}"
        ) from error
    return text.removeprefix("".join(tokens.tokenizer.convert_ids_to_tokens(tokens.start)))


def not_twice(model) -> None:
    """Raise ProbeError for a model in chat where turns are made anyway."""
    if model.in_chat:
        raise ProbeError(f"{model.name}: the chat template is applied here anyway; name the model without {IN_CHAT}")


def as_turns(
    model, prompts: list[str], continuations: list[list[str]], system: str | None, examples
) -> tuple[list, list]:
    """Prompts as user turns; a continuation loses its leading blank where the assistant's turn begins after white space."""
    not_twice(model)
    turns = [user_turn(model.tokens, prompt, system, examples) for prompt in prompts]
    bare = [turn[-1:].isspace() for turn in turns]
    stripped = [
        [text.lstrip(" ") for text in texts] if cut else texts for cut, texts in zip(bare, continuations, strict=True)
    ]
    return turns, stripped
