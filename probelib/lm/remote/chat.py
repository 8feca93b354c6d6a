"""``ChatModel``: a chat model behind an OpenAI-style server, used for its texts only."""

import time
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from probelib.errors import ProbeError
from probelib.lm.loading import load
from probelib.lm.remote.transport import check_url, fetch_json

SYSTEM = "You are a helpful assistant."


def connect(name: str, **options):
    """A model by its name: "gpt-4o@https://api.openai.com/v1" is a ``ChatModel``, everything else
    goes to ``lm.load`` with ``options``."""
    model, _, url = name.partition("@")
    chat = url.startswith(("http://", "https://"))
    return ChatModel(model, url) if chat else load(name, **options)


@dataclass(frozen=True)
class ChatModel:
    """A chat model at an address up to the version ("http://localhost:8000/v1"); it can only
    ``generate``. ``answered_as`` holds the model that the first response names."""

    name: str
    url: str
    answered_as: dict = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self):
        check_url(self.url)

    def chat(self, text: str) -> str:
        """The text unchanged: the server applies its chat template."""
        return text

    def identity(self) -> dict:
        """Everything that changes a response, as far as a client knows."""
        return {"model": self.name, "endpoint": self.url, "system": SYSTEM, "temperature": 0}

    describe = identity

    def generate(self, prompts: list[str], max_new_tokens: int = 800, chat: bool = True):
        """The response to each prompt at temperature 0; columns as in ``lm.generate``."""
        started = time.perf_counter()
        answers = {text: self._respond(text, max_new_tokens) for text in dict.fromkeys(prompts)}
        columns = {"prompt": range(len(prompts)), "rank": 0, "text": [answers[p] for p in prompts]}
        frame = pd.DataFrame(columns | {"n_tokens": -1, "logprob": np.nan})
        frame.attrs["cost"] = {"requests": len(answers), "seconds": time.perf_counter() - started}
        return frame

    def _respond(self, prompt: str, max_tokens: int) -> str:
        turns = (("system", SYSTEM), ("user", prompt))
        body: dict = {"model": self.name, "temperature": 0, "max_tokens": max_tokens}
        body["messages"] = [{"role": role, "content": content} for role, content in turns]
        answer = fetch_json(self.url, "chat/completions", body)
        try:
            text, named = answer["choices"][0]["message"]["content"], answer.get("model")
        except (LookupError, TypeError, AttributeError):
            text = named = None
        if not isinstance(text, str):  # thoughts may have used all tokens up
            what = f"{self.url}: {self.name!r} returns no text (max_tokens={max_tokens})"
            raise ProbeError(f"{what}: {str(answer)[:200]!r}")
        if named != (before := self.answered_as.setdefault("model", named)):
            raise ProbeError(f"{self.url} answers as {named!r} now, and as {before!r} before")
        return text
