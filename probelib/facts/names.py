"""Names: how a label is written, which labels are one name, and which take "the" in a sentence."""

import html
import re
import unicodedata
from functools import lru_cache

from probelib.paths import PACKAGE

HTML = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
BLANKS = re.compile("[\u00a0\u1680\u2000-\u200a\u202f\u205f]")  # no-break and narrow ones
# control characters, soft hyphens, marks of direction and zero-width blanks: no reader sees them
HIDDEN = "\x00-\x08\x0e-\x1f\x7f-\x9f\xad\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069"
HIDDEN = re.compile(f"[{HIDDEN}\ufeff]")
JOINERS = re.compile("[\u200c\u200d]")  # part of the spelling in some scripts, never of the name
NO_NAME = re.compile(r"[QPL]\d+|\?{3,}")  # a bare id, or what replaces a text that was lost

# names with "the" in a sentence
THE = frozenset((PACKAGE / "facts" / "the.txt").read_text(encoding="utf-8").splitlines())
# after these words a name is quoted or introduced, and takes no article
BARE = re.compile(r"(called|named|name|country of|team|film|city of) $")


@lru_cache(1 << 17)
def clean(text: str) -> str:
    """A label as a reader sees it: composed accents (NFC), HTML entities resolved, ordinary blanks,
    and no invisible characters."""
    text = HTML.sub(lambda found: html.unescape(found[0]), text)
    return unicodedata.normalize("NFC", BLANKS.sub(" ", HIDDEN.sub("", text))).strip()


def fold(name: str) -> str:
    """Normal form of a name for comparisons: no case, one encoding of accents (letters and accents
    decomposed, so that a prefix of a name stays a prefix)."""
    return unicodedata.normalize("NFD", unicodedata.normalize("NFD", name).casefold())


@lru_cache(1 << 17)
def same_name(text: str) -> str:
    """The form that all spellings of one name share: subjects, objects, aliases and distractors are
    compared by it."""
    return fold(" ".join(JOINERS.sub("", clean(text)).split()))


def with_article(before: str, name: str) -> str:
    """A name as it is written in a sentence after the words ``before``.

    >>> with_article("The capital of ", "Netherlands"), with_article("", "Netherlands")
    ('the Netherlands', 'The Netherlands')
    >>> with_article("", "France"), with_article("in the country called ", "Netherlands")
    ('France', 'Netherlands')
    """
    if name not in THE or BARE.search(before):
        return name
    return f"the {name}" if before.strip() else f"The {name}"
