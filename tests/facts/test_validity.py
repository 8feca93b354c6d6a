"""Dates of different precision, and when a fact holds: the rules by hand, then properties."""

import datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from probelib.errors import ProbeError
from probelib.facts.validity import days, invalid, is_date


def test_a_year_is_all_of_its_days():
    texts = ["1970", "1970-02", "1970-01-02", "1969-12-31", "2000-02", "1900-02"]
    first, last = days([*texts, "", "?", "0", "-1"])
    assert first.tolist()[:8] == [0, 31, 1, -1, 10988, -25536, 0, 0]
    # 29 days in February 2000, 28 in 1900
    assert last.tolist()[:8] == [364, 58, 1, -1, 11016, -25509, 0, 0]
    assert first[8] == last[9] + 1


@pytest.mark.parametrize(
    ("start", "end", "at", "says"),
    [
        ("1949-05-23", "1990-10-03", "1949-05-23", False),  # both ends belong to it
        ("1949-05-23", "1990-10-03", "1990-10-03", False),
        ("1949-05-23", "1990-10-03", "1990-10-04", True),
        ("1949-05-23", "1990-10-03", "1949-05-22", True),
        ("1949", "1990", "1970-01-01", False),
        ("1949", "1990", "1990-05-01", True),  # it may have ended before
        ("1949", "1990", "1949", False),
        ("1990-10-03", "", "1990-10-02", True),
        ("1990-10-03", "", "1990-10-03", False),
        ("", "", "2021-01-04", False),
        ("", "1990", "1991-01-01", True),  # the released code calls this unknown ...
        ("", "1990", "1989", False),  # ... and this invalid
        ("2015", "2015", "2015", False),  # a point in time
        ("2015", "2015", "2016", True),
        ("?", "", "2021-01-04", False),
        ("?", "1990", "1980", False),
        ("?", "1990", "1991", True),
        ("1949", "?", "1980", False),
        ("1949", "?", "1948", True),
    ],
)
def test_the_rules_by_hand(start, end, at, says):
    assert invalid([start], [end], at).tolist() == [says]


NO_DATES = ["194x", "1949-13", "1949-00", "2021-02-29", "2020-04-31", "1949-5", "19490523x"]


@pytest.mark.parametrize("text", [*NO_DATES, " ", None, 1949])
def test_what_is_no_date_is_refused(text):
    with pytest.raises(ProbeError, match="allowed: 1949"):
        days(["1949", text])
    assert not is_date(text or "")


@settings(deadline=None)
@given(st.dates(datetime.date(1, 1, 1)))
def test_days_agree_with_the_calendar(date):
    first, last = days([f"{date.year}-{date.month:02d}-{date.day:02d}"])
    assert first[0] == last[0] == (date - datetime.date(1970, 1, 1)).days
