"""Requests to OpenAI-style servers. A key goes only to the server that it is given for:
``OPENAI_API_KEY`` to https://api.openai.com, others as ``PROBELIB_KEYS="https://gpu7.lab:8000=KEY
https://other.host=KEY"`` lists them. A redirect is an error, so neither key nor prompt follows it.
"""

import json
import os
import time
from urllib.parse import urlsplit

from probelib.errors import ProbeError

TIMEOUT = (10, 300)  # seconds: to connect, and between two bytes of a response
TOTAL, BYTES = 900, 2**28  # most seconds and bytes of one response
TRIES, PAUSE = 6, 0.5  # times a request is sent; seconds before the second time, then doubled
BUSY = (429, 500, 502, 503, 504)


def check_url(url: str) -> None:
    """Raise ProbeError for an invalid address, or one with a secret: stores and reports show it."""
    try:
        parts = urlsplit(url)
        valid = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        valid = False
    if not valid or not url.isprintable() or " " in url:
        raise ProbeError(f"{url!r} is not a valid address, such as http://localhost:8000/v1")
    if parts.username or parts.password or parts.query:
        what = f"the address of {parts.hostname} contains a user, a password or a query"
        raise ProbeError(f'{what}; set the key with PROBELIB_KEYS="https://host:port=KEY"')


def origin(url: str) -> str:
    """Scheme, host and port of an address: the receiver of a request."""
    return "://".join(urlsplit(url)[:2]).lower()


def key(url: str) -> str | None:
    """The key for the server of this address, or None."""
    keys = {"https://api.openai.com": os.environ.get("OPENAI_API_KEY")}
    for entry in os.environ.get("PROBELIB_KEYS", "").split():
        server, equals, value = entry.partition("=")
        if not equals or not server.startswith(("http://", "https://")):
            raise ProbeError("an entry of PROBELIB_KEYS is not of the form https://host:port=KEY")
        keys[origin(server)] = value
    return keys.get(origin(url))


def fetch_json(url: str, path: str, body: dict | None = None):
    """The JSON response of a server to a POST of ``body``, or to a GET; at most ``BYTES`` bytes in
    ``TOTAL`` seconds. A busy server, and one whose response breaks off or is no JSON, is asked
    again. Raise ProbeError with the server's message for every status but 200."""
    from requests import RequestException
    from urllib3.exceptions import HTTPError

    of_model = f" from the model {body['model']!r}" if body else ""
    failed = f"{url}/{path}: no response{of_model}"
    short = lambda said: " ".join(str(said).split())[:300]
    for left in reversed(range(TRIES)):
        if left < TRIES - 1:
            time.sleep(PAUSE * 2 ** (TRIES - 2 - left))
        try:
            status, content, to = _send(f"{url.rstrip('/')}/{path}", body, key(url))
            if status in BUSY and left:
                continue
            answer = json.loads(content) if status == 200 else None
            break
        except (RequestException, HTTPError, OSError, ValueError, RecursionError) as error:
            # cut off, or another server's page; no answer at all is not waited for
            if not left or not isinstance(error, HTTPError | ValueError):
                hint = "Is the server running, and does the address end in /v1?"
                raise ProbeError(f"{failed} ({short(error)}). {hint}") from error
    if 300 <= status < 400:
        raise ProbeError(f"{failed}: it redirects to {short(to)}; nothing went there")
    if status != 200:
        hint = f'; set its key with PROBELIB_KEYS="{origin(url)}=KEY"' * (status in (401, 403))
        said = short(content.decode(errors="replace"))
        raise ProbeError(f"{failed}: status {status}{hint}: {said!r}")
    return answer


def _send(address: str, body: dict | None, secret: str | None) -> tuple[int, bytes, str]:
    """Status, content and ``Location`` of a response. OSError if it is too long, or drips."""
    from requests import Session

    method, content = "GET" if body is None else "POST", bytearray()
    deadline = time.monotonic() + TOTAL
    headers = {"Authorization": f"Bearer {secret}"} if secret else {}
    # with an ``auth`` of its own, requests reads no password from ~/.netrc
    options: dict = {"allow_redirects": False, "auth": lambda request: request, "timeout": TIMEOUT}
    options |= {"json": body, "headers": headers, "stream": True}
    with Session() as session:
        # requests to this machine bypass proxies
        session.trust_env = urlsplit(address).hostname not in ("localhost", "127.0.0.1", "::1")
        with session.request(method, address, **options) as response:
            while piece := response.raw.read1(2**16, decode_content=True):
                content += piece
                if len(content) > BYTES or time.monotonic() > deadline:
                    raise OSError(f"longer than {BYTES} bytes or takes more than {TOTAL} seconds")
            return response.status_code, bytes(content), response.headers.get("Location", "nowhere")
