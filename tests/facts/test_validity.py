"""Dates of different precision, and when a fact holds: the rules by hand, then properties."""

import datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from probelib.errors import ProbeError
from probelib.facts.validity import DATE, days, is_date, validity

PRESENT = "2021-01-04"


def test_a_year_is_all_of_its_days():
    first, last = days(
        ["1970", "1970-02", "1970-01-02", "1969-12-31", "2000-02", "1900-02", "", "?", "0", "-1"]
    )
    assert first.tolist()[:8] == [0, 31, 1, -1, 10988, -25536, 0, 0]
    assert last.tolist()[:8] == [
        364,
        58,
        1,
        -1,
        11016,
        -25509,
        0,
        0,
    ]  # 29 days in February 2000, 28 in 1900
    assert first[8] == last[9] + 1


@pytest.mark.parametrize(
    ("start", "end", "at", "says"),
    [
        ("1949-05-23", "1990-10-03", "1949-05-23", "valid"),  # both ends belong to it
        ("1949-05-23", "1990-10-03", "1990-10-03", "valid"),
        ("1949-05-23", "1990-10-03", "1990-10-04", "invalid"),
        ("1949-05-23", "1990-10-03", "1949-05-22", "invalid"),
        ("1949", "1990", "1970-01-01", "valid"),
        (
            "1949",
            "1990",
            "1990-05-01",
            "invalid",
        ),  # it may have ended before: not valid for certain
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


@pytest.mark.parametrize(
    "text",
    [
        "194x",
        "1949-13",
        "1949-00",
        "2021-02-29",
        "2020-04-31",
        "1949-5",
        "19490523x",
        " ",
        None,
        1949,
    ],
)
def test_what_is_no_date_is_refused(text):
    with pytest.raises(ProbeError, match="allowed: 1949"):
        days(["1949", text])
    assert not is_date(text or "")


def test_arguments_that_make_no_sense():
    for call in (
        lambda: validity(["1949"], [], PRESENT, PRESENT),
        lambda: validity(["1949"], [""], "?", PRESENT),
        lambda: validity(["1949"], [""], PRESENT, ""),
    ):
        with pytest.raises(ProbeError):
            call()
    assert validity([], [], PRESENT, PRESENT).tolist() == []


dates = st.dates(datetime.date(1, 1, 1)).map(lambda d: f"{d.year}-{d.month:02d}-{d.day:02d}")
coarse = st.one_of(
    dates, dates.map(lambda d: d[:-3]), dates.map(lambda d: d[:-6]), st.sampled_from(["", "?"])
)


@given(st.dates(datetime.date(1, 1, 1)))
def test_days_agree_with_the_calendar(date):
    first, last = days([f"{date.year}-{date.month:02d}-{date.day:02d}"])
    assert first[0] == last[0] == (date - datetime.date(1970, 1, 1)).days


@given(st.lists(st.tuples(coarse, coarse), max_size=5), dates)
def test_answers_do_not_depend_on_other_rows_and_valid_is_certain(intervals, at):
    start, end = [s for s, _ in intervals], [e for _, e in intervals]
    answers = validity(start, end, at, PRESENT)
    assert set(answers) <= {"valid", "invalid", "unknown"}
    for one, answer in zip(intervals, answers, strict=True):
        assert validity([one[0]], [one[1]], at, PRESENT).tolist() == [answer]
        if answer == "valid" and one[0]:
            assert days([one[0]])[1][0] <= days([at])[0][0]


@given(st.text(max_size=12) | st.from_regex(DATE, fullmatch=True))
def test_any_text_is_a_date_or_refused(text):
    try:
        first, last = days([text])
        assert first[0] <= last[0] and isinstance(first, np.ndarray)
    except ProbeError:
        assert not is_date(text)
