"""A chat model behind an OpenAI-style endpoint, where a text is all that is wanted (a judge, a writer of templates): it can
``generate``, and be stored."""

import json
import os
import time
import urllib.error
import urllib.request
from dataclasses import dataclass

import numpy as np
import pandas as pd

from probelib.errors import ProbeError

SYSTEM = "You are a helpful assistant."
KEY = "OPENAI_API_KEY"  # the environment variable that holds the key; sent where it is set, never stored


def connect(name: str, **options):
    """What answers by a name: "gpt-4o@https://api.openai.com/v1" is a model behind an endpoint, anything else what ``lm.load``
    (with ``options``) knows."""
    from probelib.lm.loading import load

    model, at, url = name.partition("@")
    return Endpoint(model, url) if at and url.startswith(("http://", "https://")) else load(name, **options)


@dataclass(frozen=True)
class Endpoint:
    """A chat model at an address.

    name   of the model, as the server knows it
    url    up to and with the version: "http://localhost:8000/v1"
    """

    name: str
    url: str

    def chat(self, text: str) -> str:
        """The text as it is: the server puts it into its template."""
        return text

    def identity(self) -> dict:
        """What changes an answer, as far as it can be known from outside."""
        return {"model": self.name, "endpoint": self.url, "system": SYSTEM, "temperature": 0}

    describe = identity

    def generate(self, prompts: list[str], max_new_tokens: int = 800, chat: bool = True) -> pd.DataFrame:
        """The answer to every prompt at temperature 0, one request a different prompt; columns as ``lm.generate``."""
        started = time.perf_counter()
        answers = {prompt: self._ask(prompt, max_new_tokens) for prompt in dict.fromkeys(prompts)}
        texts = [answers[prompt] for prompt in prompts]
        frame = pd.DataFrame({"prompt": range(len(texts)), "rank": 0, "text": texts, "n_tokens": -1, "logprob": np.nan})
        frame.attrs["cost"] = {"requests": len(answers), "seconds": time.perf_counter() - started}
        return frame

    def _ask(self, prompt: str, max_tokens: int) -> str:
        messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": prompt}]
        body = {"model": self.name, "messages": messages, "temperature": 0, "max_tokens": max_tokens}
        headers = {"Content-Type": "application/json"}
        if os.environ.get(KEY):
            headers["Authorization"] = f"Bearer {os.environ[KEY]}"
        address = f"{self.url.rstrip('/')}/chat/completions"
        try:
            request = urllib.request.Request(address, json.dumps(body).encode(), headers)
            with urllib.request.urlopen(request, timeout=120) as response:
                return str(json.load(response)["choices"][0]["message"]["content"])
        except (urllib.error.URLError, OSError, ValueError, LookupError, TypeError) as error:
            raise ProbeError(
                f"{address}: no answer from the model {self.name!r} ({error}). Is the server running, and does the address "
                "end in /v1?"
            ) from error
