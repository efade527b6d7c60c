"""Calendar arithmetic on the integers that stand for dates (days) and timestamps (microseconds)."""

from __future__ import annotations

import datetime
from fractions import Fraction

from .expressions import LiteralValue, Months
from .types import Kind, SqlType

__all__ = [
    "DAY", "EXTRACT_FIELDS", "TRUNC_UNITS", "date_text", "extract_bounds", "parse_date", "parse_timestamp",
    "shift_bounds", "step_units", "timestamp_text", "truncate_bounds",
]  # fmt: skip

DAY = 86_400_000_000
_EPOCH = datetime.date(1970, 1, 1)
_EPOCH_MOMENT = datetime.datetime(1970, 1, 1)

EXTRACT_FIELDS = {
    "year": None, "quarter": (1, 4), "month": (1, 12), "week": (1, 53), "day": (1, 31), "doy": (1, 366),
    "dow": (0, 6), "isodow": (1, 7), "hour": (0, 23), "minute": (0, 59), "isoyear": None,
}  # fmt: skip
"""Field of EXTRACT -> its range; None: from the bounds of the argument."""

TRUNC_UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute")
"""Units of date_trunc, coarsest first."""


def parse_date(text: str) -> int | None:
    """Return days since 1970-01-01 for an ISO date; None when it is not one."""
    try:
        return (datetime.date.fromisoformat(text.strip()) - _EPOCH).days
    except ValueError:
        return None


def parse_timestamp(text: str) -> int | None:
    """Return microseconds since 1970-01-01 for an ISO date or timestamp without zone; None when it is not one."""
    try:
        moment = datetime.datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    if moment.tzinfo is not None:
        return None
    return (moment - _EPOCH_MOMENT) // datetime.timedelta(microseconds=1)


def date_text(days: int) -> str:
    """Return the ISO text of a date."""
    return (_EPOCH + datetime.timedelta(days=days)).isoformat()


def timestamp_text(microseconds: int) -> str:
    """Return the ISO text of a timestamp, with a space, as Postgres prints it."""
    return (_EPOCH_MOMENT + datetime.timedelta(microseconds=microseconds)).isoformat(" ")


def _moment(value: Fraction, type_: SqlType) -> datetime.datetime:
    microseconds = int(value // 1) * (DAY if type_.kind is Kind.DATE else 1)
    return _EPOCH_MOMENT + datetime.timedelta(microseconds=microseconds)


def _microseconds(moment: datetime.datetime) -> int:
    return (moment - _EPOCH_MOMENT) // datetime.timedelta(microseconds=1)


def _floor(unit: str, moment: datetime.datetime) -> datetime.datetime:
    day = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    if unit == "minute":
        return moment.replace(second=0, microsecond=0)
    if unit == "hour":
        return moment.replace(minute=0, second=0, microsecond=0)
    if unit == "week":
        return day - datetime.timedelta(days=day.weekday())
    if unit == "month":
        return day.replace(day=1)
    if unit == "quarter":
        return day.replace(month=(day.month - 1) // 3 * 3 + 1, day=1)
    if unit == "year":
        return day.replace(month=1, day=1)
    return day


def truncate_bounds(unit: str, lo: Fraction, hi: Fraction, type_: SqlType) -> tuple[Fraction, Fraction]:
    """Return the range of date_trunc(unit, x), in microseconds, for x in [lo, hi]."""
    try:
        ends = [_microseconds(_floor(unit, _moment(end, type_))) for end in (lo, hi)]
    except OverflowError:
        scale = DAY if type_.kind is Kind.DATE else 1
        return lo * scale - 366 * DAY, hi * scale
    return Fraction(ends[0]), Fraction(ends[1])


def step_units(unit: str, lo: int, hi: int, limit: int) -> list[int] | None:
    """Return all values of date_trunc(unit, ·) in [lo, hi] microseconds; None when there are over `limit`."""
    moment = _floor(unit, _EPOCH_MOMENT + datetime.timedelta(microseconds=lo))
    last = _EPOCH_MOMENT + datetime.timedelta(microseconds=hi)
    found: list[int] = []
    while moment <= last:
        if len(found) >= limit:
            return None
        found.append(_microseconds(moment))
        if unit in ("year", "quarter", "month"):
            months = {"year": 12, "quarter": 3, "month": 1}[unit]
            total = moment.year * 12 + moment.month - 1 + months
            if total // 12 > 9999:
                break
            moment = moment.replace(year=total // 12, month=total % 12 + 1)
        else:
            width = {"week": 7 * DAY, "day": DAY, "hour": DAY // 24, "minute": DAY // 1440}[unit]
            try:
                moment += datetime.timedelta(microseconds=width)
            except OverflowError:
                break
    return found


def extract_bounds(
    name: str, lo: Fraction | None, hi: Fraction | None, type_: SqlType
) -> tuple[Fraction, Fraction, bool] | None:
    """Return (lowest, highest, whole numbers only) of EXTRACT(name FROM x) for x in [lo, hi]; None: unknown."""
    fixed = EXTRACT_FIELDS.get(name)
    if fixed is not None:
        return Fraction(fixed[0]), Fraction(fixed[1]), True
    if lo is None or hi is None:
        return None
    try:
        first, last = _moment(lo, type_), _moment(hi, type_)
    except OverflowError:
        return None
    if name == "isoyear":
        return Fraction(first.isocalendar()[0]), Fraction(last.isocalendar()[0]), True
    return Fraction(first.year), Fraction(last.year), True


def shift_bounds(
    lo: Fraction | None, hi: Fraction | None, type_: SqlType, interval: LiteralValue, sign: int
) -> tuple[Fraction | None, Fraction | None]:
    """Return bounds in microseconds of x ± interval for x in [lo, hi]; a month is 28 to 31 days."""
    if lo is None or hi is None or not isinstance(interval, Months):
        return None, None
    scale = DAY if type_.kind is Kind.DATE else 1
    fixed = interval.days * DAY + interval.microseconds
    months = [interval.months * 28 * DAY, interval.months * 31 * DAY]
    moves = [sign * (fixed + month) for month in months]
    return lo * scale + min(moves), hi * scale + max(moves)
