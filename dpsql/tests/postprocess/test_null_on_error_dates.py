"""Dates and timestamps: Postgres' values within the years 0001 to 9999, NULL beyond."""

from __future__ import annotations

from datetime import date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsql.postprocess import null_on_error
from dpsql.relation.types import BIGINT, DATE, TIMESTAMP

from .conftest import Evaluate
from .test_null_on_error_numbers import quick

dates = st.one_of(st.none(), st.dates(), st.sampled_from([date.min, date.max, date(2024, 2, 29)]))
moments = st.one_of(st.none(), st.datetimes(), st.sampled_from([datetime.min, datetime.max]))
days = st.one_of(st.none(), st.integers(-400, 400), st.integers(-(2**63), 2**63 - 1), st.just(2**100))


def moved(moment: datetime | None, delta: timedelta) -> datetime | None:
    try:
        return None if moment is None else moment + delta
    except OverflowError:
        return None


@quick
@given(st.lists(st.tuples(dates, dates, days), min_size=1, max_size=60))
def test_days(evaluate: Evaluate, rows: list[tuple[date | None, date | None, int | None]]) -> None:
    expected: list[date | None] = []
    for a, _, c in rows:
        number = None if a is None or c is None else a.toordinal() + c
        expected.append(date.fromordinal(number) if number and 1 <= number <= date.max.toordinal() else None)
    types = [DATE, DATE, BIGINT]
    assert evaluate(null_on_error.add_days('"a"', '"c"'), types, rows) == expected
    between = [None if a is None or b is None else (a - b).days for a, b, _ in rows]
    assert evaluate(null_on_error.days_between('"a"', '"b"'), types, rows) == between


@quick
@given(
    st.lists(moments, min_size=1, max_size=40),
    st.one_of(st.integers(-(10**6), 10**6), st.integers(-(10**30), 10**30)),
    st.integers(-(10**15), 10**15),
)
def test_intervals(evaluate: Evaluate, values: list[datetime | None], days: int, microseconds: int) -> None:
    rows = [(value,) for value in values]
    sql = null_on_error.add_interval('"a"', days=days, microseconds=microseconds)
    try:
        delta = timedelta(days=days, microseconds=microseconds)
    except OverflowError:
        assert evaluate(sql, [TIMESTAMP], rows) == [None] * len(rows)
    else:
        assert evaluate(sql, [TIMESTAMP], rows) == [moved(value, delta) for value in values]


@pytest.mark.parametrize(
    ("start", "months", "days", "end"),
    [
        (date(2024, 1, 31), 1, 0, datetime(2024, 2, 29)),
        (date(2024, 1, 31), 1, 1, datetime(2024, 3, 1)),
        (date(2024, 2, 29), -12, 0, datetime(2023, 2, 28)),
        (date(9999, 12, 1), 1, 0, None),
        (date(1, 1, 1), -1, 0, None),
        (date(2024, 1, 1), 12 * 19_000, 0, None),
        (date(2024, 1, 1), 12 * 10**9, 0, None),
        (None, 1, 1, None),
    ],
)
def test_months(evaluate: Evaluate, start: date | None, months: int, days: int, end: datetime | None) -> None:
    sql = null_on_error.add_interval('"a"', months=months, days=days)
    assert evaluate(sql, [DATE], [(start,)]) == [end]


MOMENT = datetime(2024, 12, 30, 10, 20, 7, 250000)
FIELDS = {
    "microseconds": 7250000.0, "milliseconds": 7250.0, "second": 7.25, "minute": 20.0, "hour": 10.0,
    "day": 30.0, "dow": 1.0, "isodow": 1.0, "doy": 365.0, "week": 1.0, "month": 12.0, "quarter": 4.0,
    "year": 2024.0, "isoyear": 2025.0, "decade": 202.0, "century": 21.0, "millennium": 3.0,
    "epoch": 1735554007.25,
}  # fmt: skip


@pytest.mark.parametrize(("field", "value"), FIELDS.items())
def test_fields(evaluate: Evaluate, field: str, value: float) -> None:
    rows = [(MOMENT,), (None,), (datetime.min,), (datetime.max,)]
    assert evaluate(null_on_error.extract(field, '"a"'), [TIMESTAMP], rows)[:2] == [value, None]
    of_dates = evaluate(null_on_error.extract(field, '"a"'), [DATE], [(date(2000, 1, 2),), (None,)])
    assert isinstance(of_dates[0], float)


@pytest.mark.parametrize(
    ("field", "value"),
    [("dow", 0.0), ("isodow", 7.0), ("century", 20.0), ("millennium", 2.0), ("week", 52.0)],
)
def test_fields_of_a_sunday_at_a_turn(evaluate: Evaluate, field: str, value: float) -> None:
    assert evaluate(null_on_error.extract(field, '"a"'), [DATE], [(date(2000, 1, 2),)]) == [value]


TRUNCATED = {
    "microseconds": MOMENT, "milliseconds": MOMENT, "second": datetime(2024, 12, 30, 10, 20, 7),
    "minute": datetime(2024, 12, 30, 10, 20), "hour": datetime(2024, 12, 30, 10),
    "day": datetime(2024, 12, 30),
    "week": datetime(2024, 12, 30), "month": datetime(2024, 12, 1), "quarter": datetime(2024, 10, 1),
    "year": datetime(2024, 1, 1), "decade": datetime(2020, 1, 1),
}  # fmt: skip


@pytest.mark.parametrize(("unit", "value"), TRUNCATED.items())
def test_truncation_gives_timestamps(evaluate: Evaluate, unit: str, value: datetime) -> None:
    rows = [(MOMENT,), (None,), (datetime.min,), (datetime.max,)]
    assert evaluate(null_on_error.date_trunc(unit, '"a"'), [TIMESTAMP], rows)[:2] == [value, None]
    found = evaluate(null_on_error.date_trunc(unit, '"a"'), [DATE], [(date(2024, 12, 30),), (date.min,)])
    assert all(type(moment) is datetime or moment is None for moment in found)


def test_unknown_words_are_errors() -> None:
    with pytest.raises(ValueError, match="field"):
        null_on_error.extract("julian", "x")
    with pytest.raises(ValueError, match="unit"):
        null_on_error.date_trunc("century", "x")
