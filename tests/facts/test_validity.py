"""Dates of different precision, and when a fact holds: the rules by hand, then properties."""

import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probelib.errors import ProbeError
from probelib.facts.validity import days, is_date, validity

PRESENT = "2021-01-04"


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
        ("1949-05-23", "1990-10-03", "1949-05-23", "valid"),  # both ends belong to it
        ("1949-05-23", "1990-10-03", "1990-10-03", "valid"),
        ("1949-05-23", "1990-10-03", "1990-10-04", "invalid"),
        ("1949-05-23", "1990-10-03", "1949-05-22", "invalid"),
        ("1949", "1990", "1970-01-01", "valid"),
        ("1949", "1990", "1990-05-01", "invalid"),  # it may have ended before
        ("1949", "1990", "1949", "valid"),
        ("1990-10-03", "", "1990-10-02", "invalid"),
        ("1990-10-03", "", "1990-10-03", "valid"),
        ("1990-10-03", "", PRESENT, "valid"),
        ("1990-10-03", "", "2021-01-05", "unknown"),  # after the present
        ("", "", PRESENT, "valid"),
        ("", "", "2020-01-04", "unknown"),
        ("", "1990", "1991-01-01", "invalid"),  # the released code calls this unknown ...
        ("", "1990", "1989", "unknown"),  # ... and this invalid
        ("2015", "2015", "2015", "valid"),  # a point in time
        ("2015", "2015", "2016", "invalid"),
        ("?", "", PRESENT, "unknown"),
        ("?", "1990", "1980", "unknown"),
        ("?", "1990", "1991", "invalid"),
        ("1949", "?", "1980", "unknown"),
        ("1949", "?", "1948", "invalid"),
    ],
)
def test_the_rules_by_hand(start, end, at, says):
    assert validity([start], [end], at, PRESENT).tolist() == [says]


NO_DATES = ["194x", "1949-13", "1949-00", "2021-02-29", "2020-04-31", "1949-5", "19490523x"]


@pytest.mark.parametrize("text", [*NO_DATES, " ", None, 1949])
def test_what_is_no_date_is_refused(text):
    with pytest.raises(ProbeError, match="allowed: 1949"):
        days(["1949", text])
    assert not is_date(text or "")


@given(st.dates(datetime.date(1, 1, 1)))
def test_days_agree_with_the_calendar(date):
    first, last = days([f"{date.year}-{date.month:02d}-{date.day:02d}"])
    assert first[0] == last[0] == (date - datetime.date(1970, 1, 1)).days
