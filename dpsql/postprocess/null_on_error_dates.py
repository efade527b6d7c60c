"""Functions, NULL on error, of dates and timestamps; `null_on_error` has the house rules."""

from __future__ import annotations

from collections.abc import Sequence

from ..plan.dialects.dialect_duckdb import DUCKDB
from ..plan.dialects.written import written
from ..relation.date_formats import FormatPart
from .bind import bind, keep, to_wide

__all__ = ["add_days", "add_interval", "date_bin", "date_trunc", "days_between", "extract", "to_char"]

_MAX_YEARS = 20_000
_TRUNC_UNITS = frozenset(
    {
        "microseconds",
        "milliseconds",
        "second",
        "minute",
        "hour",
        "day",
        "week",
        "month",
        "quarter",
        "year",
        "decade",
    }
)
_EXTRACT_FIELDS = frozenset(
    {"minute", "hour", "day", "dow", "isodow", "doy", "week", "month", "quarter", "year", "isoyear", "decade",
     "century", "millennium", "epoch"}
)  # fmt: skip
_EXTRACT_FROM_MICROSECONDS = {"second": "1e6", "milliseconds": "1e3", "microseconds": "1e0"}


def add_days(date: str, days: str) -> str:
    """Return `date + days` as DATE; NULL outside the years 0001 to 9999."""
    number = f"CAST({_date_number(date)} + {to_wide(days)} AS HUGEINT)"
    return f"make_date(CAST({keep(number, 'v BETWEEN -719162 AND 2932896')} AS INTEGER))"


def days_between(later: str, earlier: str) -> str:
    """Return `later - earlier`, two dates, as INTEGER."""
    return f"CAST({_date_number(later)} - {_date_number(earlier)} AS INTEGER)"


def add_interval(operand: str, months: int = 0, days: int = 0, microseconds: int = 0) -> str:
    """Return a date or timestamp plus a literal interval as TIMESTAMP; NULL outside years 0001 to 9999."""
    if max(abs(months) // 12, abs(days) // 365, abs(microseconds) // (365 * 86400 * 10**6)) > _MAX_YEARS:
        return "CAST(NULL AS TIMESTAMP)"
    interval = f"to_months({months}) + to_days({days}) + to_microseconds({microseconds})"
    moved = f"CAST(({operand}) AS TIMESTAMP) + ({interval})"
    return keep(moved, "v >= TIMESTAMP '0001-01-01' AND v < TIMESTAMP '10000-01-01'")


def extract(field: str, operand: str) -> str:
    """Return `extract(field FROM operand)` as DOUBLE (Postgres: numeric), seconds with their fraction.

    Raises ValueError for a field that has no form here.
    """
    if field in _EXTRACT_FROM_MICROSECONDS:
        unit = _EXTRACT_FROM_MICROSECONDS[field]
        return f"(CAST(extract('microseconds' FROM CAST(({operand}) AS TIMESTAMP)) AS DOUBLE) / {unit})"
    if field not in _EXTRACT_FIELDS:
        raise ValueError(f"no such field: {field}")
    return f"CAST(extract('{field}' FROM CAST(({operand}) AS TIMESTAMP)) AS DOUBLE)"


def date_trunc(unit: str, operand: str) -> str:
    """Return `date_trunc(unit, operand)` as TIMESTAMP, for dates too; NULL before the year 0001.

    Raises ValueError for a unit that has no form here (centuries begin elsewhere in DuckDB).
    """
    if unit not in _TRUNC_UNITS:
        raise ValueError(f"no such unit: {unit}")
    truncated = f"CAST(date_trunc('{unit}', CAST(({operand}) AS TIMESTAMP)) AS TIMESTAMP)"
    return keep(truncated, "v >= TIMESTAMP '0001-01-01'")


def date_bin(operand: str, width: int, origin: int) -> str:
    """Return `date_bin` as TIMESTAMP, of bins of `width` microseconds counted from `origin`; NULL before the year 1."""
    since = f"(epoch_us(v) - {origin % width})"
    begun = bind(
        f"CAST(({operand}) AS TIMESTAMP)", f"v - to_microseconds((({since} % {width}) + {width}) % {width})"
    )
    return keep(begun, "v >= TIMESTAMP '0001-01-01'")


def to_char(operand: str, parts: Sequence[FormatPart]) -> str:
    """Return a date or timestamp as a text of some parts."""
    return bind(f"CAST(({operand}) AS TIMESTAMP)", written(parts, "v", DUCKDB))


def _date_number(date: str) -> str:
    return f"(CAST(({date}) AS DATE) - DATE '1970-01-01')"
