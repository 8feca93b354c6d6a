"""``ChatModel``: a chat model behind an OpenAI-style server, used for its texts only (a judge, a writer of templates). A model
whose log-probabilities are needed is ``served.Served``."""

import time
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from probelib.errors import ProbeError
from probelib.lm.loading import load
from probelib.lm.remote.transport import check_url, fetch_json

SYSTEM = "You are a helpful assistant."


def connect(name: str, **options):
    """A model by its name: "gpt-4o@https://api.openai.com/v1" is an ``ChatModel``, everything else goes to ``lm.load`` with
    ``options``."""
    model, at, url = name.partition("@")
    return ChatModel(model, url) if at and url.startswith(("http://", "https://")) else load(name, **options)


@dataclass(frozen=True)
class ChatModel:
    """A chat model at an address; it can only ``generate``.

    name   the model's name on the server
    url    address up to the version: "http://localhost:8000/v1"
    answered_as    holds the model that the first response names; if a later one names another, ``generate`` raises
    """

    name: str
    url: str
    answered_as: list = field(default_factory=list, init=False, repr=False, compare=False)

    def __post_init__(self):
        check_url(self.url)

    def chat(self, text: str) -> str:
        """The text unchanged: the server applies its chat template."""
        return text

    def identity(self) -> dict:
        """Everything that changes a response, as far as a client knows."""
        return {"model": self.name, "endpoint": self.url, "system": SYSTEM, "temperature": 0}

    describe = identity

    def generate(self, prompts: list[str], max_new_tokens: int = 800, chat: bool = True) -> pd.DataFrame:
        """The response to every prompt at temperature 0, one request per distinct prompt; columns as in ``lm.generate``."""
        started = time.perf_counter()
        answers = {prompt: self._respond(prompt, max_new_tokens) for prompt in dict.fromkeys(prompts)}
        texts = [answers[prompt] for prompt in prompts]
        frame = pd.DataFrame({"prompt": range(len(texts)), "rank": 0, "text": texts, "n_tokens": -1, "logprob": np.nan})
        frame.attrs["cost"] = {"requests": len(answers), "seconds": time.perf_counter() - started}
        return frame

    def _respond(self, prompt: str, max_tokens: int) -> str:
        messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": prompt}]
        body = {"model": self.name, "messages": messages, "temperature": 0, "max_tokens": max_tokens}
        answer = fetch_json(self.url, "chat/completions", body)
        try:
            text, named = answer["choices"][0]["message"]["content"], answer.get("model")
        except (LookupError, TypeError, AttributeError) as error:
            said = str(answer)[:200]
            raise ProbeError(f"{self.url}: no response from the model {self.name!r} in {said!r}") from error
        if not self.answered_as:
            self.answered_as.append(named)
        if named != self.answered_as[0]:
            now, before = str(named)[:80], str(self.answered_as[0])[:80]
            raise ProbeError(f"{self.url} answers as {now!r} now, and as {before!r} before")
        if not isinstance(text, str):
            raise ProbeError(
                f"{self.url}: the model {self.name!r} returned {text!r} instead of a text (max_tokens={max_tokens}). A reasoning "
                "model may use them all before it responds: use another one, or limit its reasoning on the server"
            )
        return text
