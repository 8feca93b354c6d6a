"""Requests to OpenAI-style servers.

A key goes only to the server that it is given for: ``OPENAI_API_KEY`` to https://api.openai.com,
others as ``PROBELIB_KEYS="https://gpu7.lab:8000=KEY https://other.host=KEY"`` lists them. A
redirect is an error, so neither key nor prompt follows it. A busy server (429, 5xx) is asked again.
"""

import os
import time
from urllib.parse import urlsplit

from probelib.errors import ProbeError

TIMEOUT = (10, 300)  # seconds: to connect, and between two bytes of a response
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
        hint = 'set the key with PROBELIB_KEYS="https://host:port=KEY"'
        raise ProbeError(f"{what}, which stores and reports would show; {hint}")


def origin(url: str) -> str:
    """Scheme, host and port of an address: the receiver of a request."""
    return "://".join(urlsplit(url)[:2]).lower()


def key(url: str) -> str | None:
    """The key for the server of this address, or None."""
    keys = {"https://api.openai.com": os.environ.get("OPENAI_API_KEY")}
    for entry in os.environ.get("PROBELIB_KEYS", "").split():
        server, equals, value = entry.partition("=")
        if not equals or not server.startswith(("http://", "https://")):
            form = "https://host:port=KEY https://other=KEY"
            raise ProbeError(f'an entry of PROBELIB_KEYS is invalid; the form is "{form}"')
        keys[origin(server)] = value
    return keys.get(origin(url))


def fetch_json(url: str, path: str, body: dict | None = None):
    """The JSON response of a server to a POST of ``body``, or to a GET. A busy server, and one
    whose response breaks off or is no JSON, is asked again. Raise ProbeError with the server's
    message for every status but 200."""
    from requests.exceptions import ChunkedEncodingError

    of_model = f" from the model {body['model']!r}" if body else ""
    failed = f"{url}/{path}: no response{of_model}"
    short = lambda said: " ".join(str(said).split())[:300]
    for tried in range(TRIES):
        if tried:
            time.sleep(PAUSE * 2 ** (tried - 1))
        last = tried == TRIES - 1
        try:
            response = _send(f"{url.rstrip('/')}/{path}", body, key(url))
            if response.status_code in BUSY and not last:
                continue
            answer = response.json() if response.status_code == 200 else None
            break
        except OSError as error:  # also all errors of requests
            # cut off, or another server's page; what is no answer at all is not waited for
            if last or not isinstance(error, ChunkedEncodingError | ValueError):
                hint = "Is the server running, and does the address end in /v1?"
                raise ProbeError(f"{failed} ({short(error)}). {hint}") from error
    status = response.status_code
    if 300 <= status < 400:
        to = short(response.headers.get("Location", "nowhere"))
        raise ProbeError(f"{failed}: it redirects to {to}; neither key nor prompts went there")
    if status != 200:
        hint = f'; set its key with PROBELIB_KEYS="{origin(url)}=KEY"' * (status in (401, 403))
        raise ProbeError(f"{failed}: status {status}{hint}: {short(response.text)!r}")
    return answer


def _send(address: str, body: dict | None, secret: str | None):
    from requests import Session

    headers = {"Authorization": f"Bearer {secret}"} if secret else {}
    # with an ``auth`` of its own, requests reads no password from ~/.netrc
    options: dict = {"allow_redirects": False, "auth": lambda request: request, "timeout": TIMEOUT}
    with Session() as session:
        # requests to this machine bypass proxies
        session.trust_env = urlsplit(address).hostname not in ("localhost", "127.0.0.1", "::1")
        method = "GET" if body is None else "POST"
        return session.request(method, address, json=body, headers=headers, **options)
