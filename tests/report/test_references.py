"""The bibliography."""

import re

import pytest

from probelib import published
from probelib.paths import PACKAGE

pytestmark = pytest.mark.fast


def test_the_bibliography_reads_as_bibtex_and_has_no_key_twice():
    text = (PACKAGE / "published" / "references.bib").read_text(encoding="utf-8")
    keys = re.findall(r"^@\w+\{(\w+),$", text, re.MULTILINE)
    assert len(keys) == len(set(keys)) >= 11 and text.count("{") == text.count("}")
    for key in keys:
        entry = published.reference(key)
        assert {"title", "author", "year", "url"} <= set(entry), key
        assert not re.search(r"[\\{}]", "".join(entry.values())), key  # no TeX is left
        assert entry.get("eprint", "") in entry["url"] or "aclanthology" in entry["url"], key
