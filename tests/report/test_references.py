"""The bibliography."""

import re

import pytest

from probelib.paths import PACKAGE

pytestmark = pytest.mark.fast


def test_the_bibliography_reads_as_bibtex_and_has_no_key_twice():
    text = (PACKAGE / "published" / "references.bib").read_text(encoding="utf-8")
    keys = re.findall(r"^@\w+\{(\w+),$", text, re.MULTILINE)
    assert len(keys) == len(set(keys)) >= 11 and text.count("{") == text.count("}")
    for entry in text.split("\n@"):
        fields = dict(re.findall(r"^  (\w+) = \{?(.*?)\}?,$", entry, re.MULTILINE))
        assert {"title", "author", "year", "url"} <= set(fields), entry
        assert fields.get("eprint", "") in fields["url"] or "aclanthology" in fields["url"], entry
