"""Requests to OpenAI-style servers.

A key is sent only to the server it is given for: ``OPENAI_API_KEY`` to https://api.openai.com, others as listed in
``PROBELIB_KEYS="https://gpu7.lab:8000=KEY https://other.host=KEY"``. A redirect is an error, so that neither key nor prompt
follows it. If a server limits the rate (429), requests wait and are repeated.
"""

import email.utils
import functools
import os
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC
from urllib.parse import urlsplit

from probelib.errors import ProbeError

OPENAI = "https://api.openai.com"
TIMEOUT = (10, 300)  # seconds: to connect, and between bytes of a response
TRIES = 6  # times a request is sent if the server is busy or fails (429, 5xx) or the connection breaks
BUSY = (429, 500, 502, 503, 504)
IN_FLIGHT = 4  # concurrent requests
PAUSE, LONGEST = 0.5, 60  # seconds before the first repetition (doubled each time), and at most


def check_url(url: str) -> None:
    """Raise ProbeError for an invalid address, or one with a secret: addresses appear in stores and reports."""
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018 (raises for an invalid port)
    except ValueError as error:
        raise ProbeError(f"{url!r} is not a valid address: {error}") from None
    if parts.username or parts.password or parts.query:
        raise ProbeError(
            f"the address of {parts.hostname} contains a user, a password or a query, which would appear in stores and reports; "
            f'set the key with PROBELIB_KEYS="{origin(url)}=KEY"'
        )
    if parts.scheme not in ("http", "https") or not parts.hostname or not url.isprintable() or " " in url:
        raise ProbeError(f"{url!r} is not a valid address, such as http://localhost:8000/v1")


def origin(url: str) -> str:
    """Scheme, host and port: the receiver of a request.

    >>> origin("HTTPS://Api.Openai.com/v1"), origin("http://localhost:8000/v1")
    ('https://api.openai.com', 'http://localhost:8000')
    """
    parts = urlsplit(url)
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    default = {"http": 80, "https": 443}.get(parts.scheme)
    return f"{parts.scheme}://{host}" + (f":{parts.port}" if parts.port and parts.port != default else "")


def key(url: str) -> str | None:
    """The key for the server of this address, or None."""
    keys = {OPENAI: os.environ["OPENAI_API_KEY"]} if os.environ.get("OPENAI_API_KEY") else {}
    for entry in os.environ.get("PROBELIB_KEYS", "").split():
        server, equals, value = entry.partition("=")
        if not equals or not server.startswith(("http://", "https://")):
            form = "https://host:port=KEY https://other=KEY"
            raise ProbeError(f'an entry of PROBELIB_KEYS is invalid; the form is "{form}"')
        keys[origin(server)] = value
    return keys.get(origin(url))


def fetch_json(url: str, path: str, body: dict | None = None, model: str = ""):
    """The JSON response of a server to a POST of ``body``, or to a GET. Repeated if the server is busy or fails.

    Raise ProbeError with the server's message for every other status.
    """
    import requests

    address, model = f"{url.rstrip('/')}/{path}", model or (body or {}).get("model", "")
    secret = key(url)
    headers = {"Authorization": f"Bearer {secret}"} if secret else {}
    try:
        response = _send(_session(origin(url)), address, body, headers)
        answer = response.json() if response.status_code == 200 else None
    except requests.JSONDecodeError as error:
        raise ProbeError(f"{address}: no response from the model {model!r}: not JSON") from error
    except (requests.RequestException, OSError, ValueError, RecursionError) as error:
        raise ProbeError(
            f"{address}: no response from the model {model!r} ({_short(error)}). Is the server running, and does the address "
            "end in /v1?"
        ) from error
    if response.status_code != 200:
        raise ProbeError(f"{address}: no response from the model {model!r}: {_refusal(url, response)}")
    return answer


def in_parallel(ask: Callable, requests: Iterable) -> list:
    """``ask(request)`` of every request, in their order; ``IN_FLIGHT`` at the same time."""
    with ThreadPoolExecutor(IN_FLIGHT) as pool:
        return list(pool.map(ask, requests))


def _send(session, address: str, body: dict | None, headers: dict):
    """Send a request up to ``TRIES`` times: until the server is not busy (429, 5xx), and its whole response has arrived. A server
    that is silent for ``TIMEOUT`` gets a second try only."""
    import requests

    method = "GET" if body is None else "POST"
    # with an ``auth`` of its own, requests reads no password from ~/.netrc
    options = {"headers": headers, "timeout": TIMEOUT, "allow_redirects": False, "auth": lambda prepared: prepared}
    for left in reversed(range(TRIES)):
        pause = min(PAUSE * 2 ** (TRIES - 1 - left), LONGEST)
        try:
            response = session.request(method, address, json=body, **options)
            if not left or response.status_code not in BUSY and (response.status_code != 200 or _is_json(response)):
                return response
            pause = min(retry_after(response.headers.get("Retry-After", ""), pause), LONGEST)
        except requests.exceptions.SSLError:
            raise
        except requests.Timeout:
            if left < TRIES - 1:
                raise
        except (requests.ConnectionError, requests.exceptions.ChunkedEncodingError):
            if not left:
                raise
        time.sleep(pause)


def _is_json(response) -> bool:
    try:
        response.json()
    except ValueError:  # cut off, or another server's page
        return False
    return True


def retry_after(said: str, otherwise: float) -> float:
    """Seconds that a Retry-After header asks for: a number, or a date in one of HTTP's three forms (RFC 9110), which are in UTC
    even where they do not say so; ``otherwise`` if it is neither.

    >>> retry_after("7", 0.5), retry_after("soon", 0.5), retry_after("-5", 0.5)
    (7.0, 0.5, 0.5)
    >>> retry_after("Wed, 21 Oct 2015 07:28:00 GMT", 0.5)
    0.0
    """
    if said.strip().isdecimal():
        return float(said)
    try:
        date = email.utils.parsedate_to_datetime(said)
        return max(0.0, (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return otherwise


def _refusal(url: str, response) -> str:
    """The message for a status other than 200."""
    status = response.status_code
    if 300 <= status < 400:
        to = _short(response.headers.get("Location", "nowhere"))
        return f"it redirects to {to}; neither key nor prompts were sent there. Use that address if it is correct"
    if status in (401, 403):
        return f'status {status}; set its key with PROBELIB_KEYS="{origin(url)}=KEY"'
    tried = f" {TRIES} times" if status in BUSY else ""
    return f"status {status}{tried}: {_short(response.text)!r}"


def _short(message: object) -> str:
    return " ".join(str(message).split())[:300]


@functools.cache
def _session(server: str):
    """One connection pool per server. Requests to this machine bypass proxies."""
    import requests
    from requests.adapters import HTTPAdapter

    session = requests.Session()
    session.trust_env = urlsplit(server).hostname not in ("localhost", "127.0.0.1", "::1")
    for scheme in ("http://", "https://"):
        session.mount(scheme, HTTPAdapter(pool_maxsize=16))
    return session
