"""Calendar integers: month ends, leap years, weeks, and no exception for any integer."""

from __future__ import annotations

import datetime
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsql.relation.calendar import (
    DAY,
    EXTRACT_FIELDS,
    TRUNC_UNITS,
    date_text,
    extract_bounds,
    parse_date,
    parse_day,
    parse_timestamp,
    shift_bounds,
    step_units,
    timestamp_text,
    truncate_bounds,
)
from dpsql.relation.expressions import Months
from dpsql.relation.types import DATE, TIMESTAMP, SqlType

EPOCH = datetime.datetime(1970, 1, 1)
ANY_DAY = st.integers(-(2**31), 2**31)
ANY_MOMENT = st.integers(-(2**63), 2**63 - 1)
REAL_DAY = st.dates().map(lambda day: (day - EPOCH.date()).days)
TYPES = st.sampled_from((DATE, TIMESTAMP))
CI = settings(deadline=None, derandomize=True, max_examples=60)


def moment(text: str) -> int:
    found = parse_timestamp(text)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("1970-01-01", 0),
        ("2024-02-29", 19782),
        (" 2024-2-9 ", 19762),
        ("20240229", 19782),
        ("0001-01-01", -719162),
        ("9999-12-31", 2932896),
    ],
)
def test_a_date_is_read_as_days(text: str, days: int) -> None:
    assert parse_date(text) == days


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2023-02-29",
        "2024-13-01",
        "2024-W01-1",
        "2024-060",
        "24-01-01",
        "2024-01-01 10:00",
        "tomorrow",
        "２０２４-01-01",
        "2024-01-00",
        "0000-01-01",
        "2024/01/01",
    ],
)
def test_what_is_no_iso_date_is_not_read(text: str) -> None:
    assert parse_date(text) is None


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("2024-02-29", 19782),
        ("2024-02-29 23:59:59.999999", 19782),
        ("2024-02-29T00:00:00Z", 19782),
        ("2024-02-29 23:00:00-05", 19782),
        ("2024-02-29 01:00+05:30", 19782),
        ("2024-02-29 +00", 19782),
        ("2024-02-29 -05:30", 19782),
        ("2024-02-29Z", 19782),
        ("2024-02-29 +16", None),
        ("2024-02-29 25:00", None),
        ("2024-02-29 x", None),
        ("2024-02-30 10:00", None),
    ],
)
def test_a_day_is_the_date_of_a_moment_as_it_is_written(text: str, days: int | None) -> None:
    assert parse_day(text) == days


@pytest.mark.parametrize(
    ("text", "microseconds"),
    [
        ("1970-01-01", 0),
        ("1970-01-01 00:00:01", 1_000_000),
        ("1970-01-01T01:00", DAY // 24),
        ("1970-01-02 +00", DAY),
        ("1969-12-31 23:59:59.999999", -1),
        ("1970-01-01 00:00:00.5", 500_000),
    ],
)
def test_a_timestamp_is_read_as_microseconds(text: str, microseconds: int) -> None:
    assert parse_timestamp(text) == microseconds


@pytest.mark.parametrize(
    "text",
    [
        "1970-01-01 +01",
        "1970-01-01 24:00",
        "1970-01-01 10",
        "1970-01-01 10:60",
        "1970-01-01 10:00+01",
        "1970-01-01 10:00+02",
    ],
)
def test_what_is_no_timestamp_without_zone_is_not_read(text: str) -> None:
    assert parse_timestamp(text) is None


@CI
@given(REAL_DAY)
def test_a_date_text_is_the_iso_text(days: int) -> None:
    assert date_text(days) == (EPOCH.date() + datetime.timedelta(days=days)).isoformat()
    assert parse_date(date_text(days)) == days


@CI
@given(st.datetimes())
def test_a_timestamp_text_is_the_iso_text(value: datetime.datetime) -> None:
    microseconds = (value - EPOCH) // datetime.timedelta(microseconds=1)
    assert timestamp_text(microseconds) == value.isoformat(" ")
    assert parse_timestamp(timestamp_text(microseconds)) == microseconds


def test_texts_go_on_beyond_the_years_of_datetime() -> None:
    assert date_text(2932897) == "10000-01-01"
    assert date_text(-719163) == "0001-12-31 (BC)"
    assert timestamp_text(-719163 * DAY + 1) == "0001-12-31 00:00:00.000001 (BC)"


@CI
@given(
    ANY_DAY,
    ANY_MOMENT,
    ANY_MOMENT,
    TYPES,
    st.sampled_from(TRUNC_UNITS),
    st.sampled_from(list(EXTRACT_FIELDS)),
)
def test_no_integer_raises(days: int, a: int, b: int, type_: SqlType, unit: str, field: str) -> None:
    lo, hi = sorted((a, b))
    assert date_text(days)
    assert timestamp_text(lo)
    low, high = truncate_bounds(unit, Fraction(lo), Fraction(hi), type_)
    assert low <= high
    step_units(unit, lo, hi, 5)
    extract_bounds(field, Fraction(lo), Fraction(hi), type_)
    shift_bounds(Fraction(lo), Fraction(hi), type_, Months(2**31, -(2**31), 2**62), -1)


@pytest.mark.parametrize(
    ("unit", "lo", "hi"),
    [
        ("year", "2024-01-01", "2025-01-01"),
        ("quarter", "2024-04-01", "2025-04-01"),
        ("month", "2024-05-01", "2025-06-01"),
        ("week", "2024-05-06", "2025-06-09"),
        ("day", "2024-05-07", "2025-06-15"),
        ("hour", "2024-05-07 10:00", "2025-06-15 23:00"),
        ("minute", "2024-05-07 10:20", "2025-06-15 23:59"),
    ],
)
def test_bounds_of_date_trunc(unit: str, lo: str, hi: str) -> None:
    ends = Fraction(moment("2024-05-07 10:20:30")), Fraction(moment("2025-06-15 23:59:59"))
    assert truncate_bounds(unit, *ends, TIMESTAMP) == (moment(lo), moment(hi))


def test_a_week_starts_on_monday_across_a_year_and_a_leap_day() -> None:
    sunday, monday = Fraction(moment("2025-01-05")), Fraction(moment("2024-03-04"))
    assert truncate_bounds("week", monday, sunday, TIMESTAMP) == (moment("2024-03-04"), moment("2024-12-30"))


@pytest.mark.parametrize(
    ("unit", "lo", "hi", "count"),
    [
        ("year", "2019-05-05", "2025-01-01", 7),
        ("quarter", "2024-01-31", "2024-12-31", 4),
        ("month", "2024-01-31", "2025-01-30", 13),
        ("week", "2024-12-30", "2025-01-12", 2),
        ("day", "2024-02-28", "2024-03-01", 3),
        ("hour", "2024-01-01", "2024-01-01 23:59", 24),
        ("minute", "2024-01-01", "2024-01-01 00:00:59", 1),
        ("year", "9998-01-01", "9999-12-31", 2),
        ("week", "9999-12-27", "9999-12-31", 1),
    ],
)
def test_steps_are_all_units_of_a_range(unit: str, lo: str, hi: str, count: int) -> None:
    found = step_units(unit, moment(lo), moment(hi), 100)
    assert found is not None
    assert len(found) == count
    assert found == sorted(set(found))


def test_more_steps_than_the_limit_are_no_list() -> None:
    lo, hi = moment("2024-01-01"), moment("2024-01-31")
    assert len(step_units("day", lo, hi, 31) or ()) == 31
    assert step_units("day", lo, hi, 30) is None


@CI
@given(st.sampled_from(TRUNC_UNITS[:4]), st.dates(), st.integers(0, 400))
def test_every_day_of_a_range_falls_on_a_step(unit: str, first: datetime.date, length: int) -> None:
    lo = (first - EPOCH.date()).days
    hi = min(lo + length, 2932896)
    steps = step_units(unit, lo * DAY, hi * DAY, 500)
    assert steps is not None
    for day in (lo, (lo + hi) // 2, hi):
        start = truncate_bounds(unit, Fraction(day), Fraction(day), DATE)[0]
        assert start in steps


@pytest.mark.parametrize(
    ("field", "lo", "hi", "expected"),
    [
        ("year", "2019-05-01", "2025-01-01", (2019, 2025)),
        ("isoyear", "2024-12-30", "2027-01-01", (2025, 2026)),
        ("month", "2024-05-01", "2024-05-02", (1, 12)),
        ("week", "2024-01-01", "2024-01-02", (1, 53)),
        ("dow", "2024-01-01", "2024-01-02", (0, 6)),
        ("doy", "2024-01-01", "2024-01-02", (1, 366)),
    ],
)
def test_bounds_of_extract(field: str, lo: str, hi: str, expected: tuple[int, int]) -> None:
    assert extract_bounds(field, Fraction(moment(lo)), Fraction(moment(hi)), TIMESTAMP) == (*expected, True)


def test_the_year_of_unknown_bounds_is_unknown() -> None:
    assert extract_bounds("year", None, Fraction(0), DATE) is None
    assert extract_bounds("year", Fraction(0), Fraction(10**9), DATE) is None


@CI
@given(
    st.datetimes(datetime.datetime(100, 1, 1), datetime.datetime(9000, 1, 1)),
    st.integers(-24, 24),
    st.integers(-40, 40),
)
def test_a_shifted_moment_lies_in_the_shifted_bounds(
    start: datetime.datetime, months: int, days: int
) -> None:
    total = start.year * 12 + start.month - 1 + months
    following = (datetime.date(total // 12, total % 12 + 1, 28) + datetime.timedelta(days=4)).replace(day=1)
    last = (following - datetime.timedelta(days=1)).day
    moved = start.replace(
        year=total // 12, month=total % 12 + 1, day=min(start.day, last)
    ) + datetime.timedelta(days=days)
    at = Fraction((start - EPOCH) // datetime.timedelta(microseconds=1))
    lo, hi = shift_bounds(at, at, TIMESTAMP, Months(months, days, 0), 1)
    assert lo is not None
    assert hi is not None
    assert lo <= (moved - EPOCH) // datetime.timedelta(microseconds=1) <= hi
