"""Text from a model behind an OpenAI-style server: for the one step where any instruct model will do (GraphEval, figure 9)."""

import json
import os
import urllib.error
import urllib.request

from probelib.errors import ProbeError


def complete(url: str, model: str, prompt: str, max_tokens: int = 64, timeout_s: float = 60) -> str:
    """What ``model`` at ``url`` (".../v1") writes, greedily. The key, if one is needed, stands in ``OPENAI_API_KEY``."""
    body = {
        "model": model,
        "messages": [{"role": "user", "content": prompt}],
        "max_tokens": max_tokens,
        "temperature": 0,
    }
    headers = {"Content-Type": "application/json"}
    if key := os.environ.get("OPENAI_API_KEY"):
        headers["Authorization"] = f"Bearer {key}"
    address = f"{url.rstrip('/')}/chat/completions"
    if not address.startswith(("http://", "https://")):
        raise ProbeError(f"{url!r} is no address of a server; one such as http://localhost:8000/v1 is wanted")
    request = urllib.request.Request(address, json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=timeout_s) as reply:
            return json.load(reply)["choices"][0]["message"]["content"]
    except urllib.error.HTTPError as error:
        raise ProbeError(
            f"{address} answers {error.code} {error.reason}: is the model {model!r} served there?"
        ) from error
    except (OSError, ValueError, KeyError, IndexError, TypeError) as error:
        raise ProbeError(
            f"{address} gives no completion ({type(error).__name__}: {error}); is the server up?"
        ) from error
