"""The page: ``page.html`` with the data embedded."""

import base64
import hashlib
import html
import json
import re
from pathlib import Path

from probelib.errors import ProbeError

TEMPLATE = Path(__file__).parent / "page.html"
LARGEST = 10 * 2**20  # bytes


def render(about: dict, profile: str) -> str:
    """The whole page. Only its own script runs (its hash is in the policy), and nothing is loaded.

    Raise ProbeError for a page of more than ``LARGEST`` bytes.
    """
    text = TEMPLATE.read_text(encoding="utf-8")
    script = re.search(r"<script>(.*?)</script>", text, re.DOTALL)[1]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    data = json.dumps(about, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    data = data.replace("<", "\\u003c")  # a label must not end the script that contains it
    # data last: they may contain the other placeholders
    for name, value in (("HASH", digest), ("PROFILE", html.escape(profile)), ("DATA", data)):
        text = text.replace(f"%{name}%", value)
    if (size := len(text.encode())) > LARGEST:
        raise ProbeError(
            f"the page would have {size / 2**20:.1f} MB; a phone opens up to {LARGEST / 2**20:.0f} MB well. Use fewer facts or "
            "models: --n-facts 10, --models a,b"
        )
    return text
