"""When a fact holds: dates of different precision.

A date is a text: ``1949``, ``1949-05``, ``1949-05-23`` (before our era: ``-44-03-15``); "" for no
date and "?" for an unknown date (Wikidata's "some value", or a century in place of a year).
"""

import re
from collections.abc import Iterable

import numpy as np
import pandas as pd

from probelib.errors import ProbeError

DATE = re.compile(r"(-?[0-9]{1,10})(?:-([0-9]{2}))?(?:-([0-9]{2}))?")
UNKNOWN = "?"


def days(dates: Iterable[str]) -> tuple[np.ndarray, np.ndarray]:
    """The earliest and the latest day that each date can mean, as days since 1970-01-01, (n,) int64
    each: ``1949`` means 1949-01-01 to 1949-12-31. "" and "?" give 0 and 0: test for them
    separately. Raise ProbeError for other texts."""
    codes, texts = pd.factorize(np.asarray(list(dates), dtype=object), use_na_sentinel=False)
    bounds = np.array([_bounds(text) for text in texts], dtype=np.int64).reshape(-1, 2)
    return bounds[codes, 0], bounds[codes, 1]


def is_date(text: str) -> bool:
    """Whether a text is a valid calendar date."""
    try:
        return text not in ("", UNKNOWN) and bool(_bounds(text))
    except ProbeError:
        return False


def _bounds(text: str) -> tuple[int, int]:
    """The first and the last day of one date."""
    if text in ("", UNKNOWN):
        return 0, 0
    try:
        year, month, day = DATE.fullmatch(text).groups()
        begin = np.datetime64((int(year) - 1970) * 12 + int(month or 1) - 1, "M")
        first = begin.astype("datetime64[D]") + (int(day or 1) - 1)
        if not 1 <= int(month or 1) <= 12 or first.astype("datetime64[M]") != begin:
            raise ValueError("no such day")
        unit = "D" if day else "M" if month else "Y"
        last = (first.astype(f"datetime64[{unit}]") + 1).astype("datetime64[D]") - 1
    except (AttributeError, TypeError, ValueError) as error:
        allowed = "1949, 1949-05, 1949-05-23, '' (none) or '?' (not known)"
        raise ProbeError(f"date {text!r}; allowed: {allowed}") from error
    return int(first.astype(int)), int(last.astype(int))


def invalid(start: Iterable[str], end: Iterable[str], at: str) -> np.ndarray:
    """Whether facts certainly do not hold on a day ``at``, (n,) bool: before their start or after
    their end. If both are known, a fact holds only where that is certain: of dates of different
    precision, the latest day that the left one can mean is compared with the earliest day of the
    right one (Distractors paper; the released code has the rule for an end alone reversed)."""
    start, end = (np.asarray(list(dates), dtype=object) for dates in (start, end))
    (_, last), (first_end, last_end) = days(start), days(end)
    (at_first,), (at_last,) = days([at])
    early = (start != at) & (last > at_first)
    over, perhaps_over = ((end != at) & late for late in (last_end < at_first, at_last > first_end))
    has_start, has_end = ((dates != "") & (dates != UNKNOWN) for dates in (start, end))
    return has_start & early | has_end & (over | has_start & perhaps_over)
