"""Calendar arithmetic on the integers that stand for dates (days) and timestamps (microseconds).

House rule: nothing here raises, whatever the integer. `datetime` ends at the years 1 and 9999; an engine's
dates go on, so bounds beyond them are widened and texts are computed from the 400-year cycle.
"""

from __future__ import annotations

import datetime
import re
from fractions import Fraction

from .expressions import LiteralValue, Months
from .types import Kind, SqlType

__all__ = [
    "DAY",
    "EXACT_FIELDS",
    "EXTRACT_FIELDS",
    "TRUNC_UNITS",
    "boundary",
    "calendar_ends",
    "date_text",
    "extract_bounds",
    "extracted",
    "parse_date",
    "parse_day",
    "parse_timestamp",
    "parse_zoned",
    "seconds",
    "shift_bounds",
    "step_units",
    "timestamp_text",
    "truncate_bounds",
    "truncated",
]  # fmt: skip

DAY = 86_400_000_000
_EPOCH = datetime.date(1970, 1, 1)
_EPOCH_MOMENT = datetime.datetime(1970, 1, 1)
_CYCLE = 146_097
"""Days of 400 years, after which the calendar repeats."""
_FIRST = (datetime.date(1600, 1, 1) - _EPOCH).days
"""A day that starts a cycle."""
_WIDTHS = {"week": 7 * DAY, "day": DAY, "hour": DAY // 24, "minute": DAY // 1440}
_MONTHS = {"year": 12, "quarter": 3, "month": 1}
_DATE = re.compile(r"([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})|([0-9]{4})([0-9]{2})([0-9]{2})")
_TIME = re.compile(
    r"([0-9]{1,2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,6}))?)?(?:\s*(?:[zZ]|[+-]00(?::?00)?))?"
)
_UTC = re.compile(r"[+-]00(?::?00)?")
_DATE_IN_ZONE = re.compile(r"(.*[0-9])(?:\s*[zZ]|\s+[+-](?:0?[0-9]|1[0-5])(?::?[0-5][0-9])?)")
"""A date and a zone, as drivers write it: 2024-03-01 +00."""

EXTRACT_FIELDS = {
    "year": None, "quarter": (1, 4), "month": (1, 12), "week": (1, 53), "day": (1, 31), "doy": (1, 366),
    "dow": (0, 6), "isodow": (1, 7), "hour": (0, 23), "minute": (0, 59), "isoyear": None,
}  # fmt: skip
"""Field of EXTRACT -> its range; None: from the bounds of the argument."""

EXACT_FIELDS = ("second", "epoch")
"""Fields of EXTRACT that have a fraction: seconds, and seconds since 1970-01-01."""

TRUNC_UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute")
"""Units of date_trunc, coarsest first."""


def calendar_ends(type_: SqlType) -> tuple[int, int]:
    """Return the first and last value of the years 1 to 9999: days of a DATE, microseconds of a TIMESTAMP."""
    first, last = -719_162, 2_932_896
    return (first, last) if type_.kind is Kind.DATE else (first * DAY, (last + 1) * DAY - 1)


def parse_date(text: str) -> int | None:
    """Return days since 1970-01-01 for YYYY-MM-DD or YYYYMMDD; None when it is not one."""
    match = _DATE.fullmatch(text.strip())
    if match is None:
        return None
    year, month, day = (int(part) for part in match.groups() if part is not None)
    try:
        return (datetime.date(year, month, day) - _EPOCH).days
    except ValueError:
        return None


def parse_timestamp(text: str) -> int | None:
    """Return microseconds since 1970-01-01 for a date, or a date and a time without zone or in UTC; None for others."""
    date, _, time = text.strip().replace("T", " ", 1).partition(" ")
    days = parse_date(date)
    if days is None or not time or _UTC.fullmatch(time.strip()):
        return None if days is None else days * DAY
    match = _TIME.fullmatch(time.strip())
    if match is None:
        return None
    hour, minute, second = (int(part or 0) for part in match.groups()[:3])
    if hour > 23 or minute > 59 or second > 59:
        return None
    fraction = int((match[4] or "").ljust(6, "0"))
    return days * DAY + ((hour * 60 + minute) * 60 + second) * 1_000_000 + fraction


_ZONED = re.compile(r"(.*[0-9:. T][0-9.:]+?)\s*([+-])([0-9]{1,2})(?::?([0-9]{2}))?")


def parse_zoned(text: str) -> int | None:
    """Return microseconds since 1970-01-01 in UTC of a moment with its distance from UTC; None for others."""
    known = parse_timestamp(text)
    match = _ZONED.fullmatch(text.strip())
    if known is not None or match is None or ":" not in match[1]:
        return known
    local, hours, minutes = parse_timestamp(match[1]), int(match[3]), int(match[4] or 0)
    if local is None or hours > 15 or minutes > 59:
        return None
    shift = (hours * 60 + minutes) * 60_000_000
    return local - shift if match[2] == "+" else local + shift


def parse_day(text: str) -> int | None:
    """Return days since 1970-01-01 for a date, or for a moment its date as written: a DATE leaves time and zone out."""
    days = parse_date(text)
    if days is not None:
        return days
    if parse_zoned(text) is not None:
        return parse_date(text.strip().replace("T", " ", 1).partition(" ")[0])
    match = _DATE_IN_ZONE.fullmatch(text.strip())
    return None if match is None else parse_date(match[1])


def date_text(days: int) -> str:
    """Return the ISO text of a date; years before 1 as the engine writes them, with (BC)."""
    cycles = (days - _FIRST) // _CYCLE
    inside = _EPOCH + datetime.timedelta(days=days - cycles * _CYCLE)
    year, ending = inside.year + 400 * cycles, f"-{inside.month:02d}-{inside.day:02d}"
    return f"{year:04d}{ending}" if year > 0 else f"{1 - year:04d}{ending} (BC)"


def timestamp_text(microseconds: int) -> str:
    """Return the ISO text of a timestamp, with a space, as Postgres prints it."""
    days, rest = divmod(microseconds, DAY)
    date, _, era = date_text(days).partition(" ")
    seconds, fraction = divmod(rest, 1_000_000)
    time = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    shown = f"{date} {time}" + (f".{fraction:06d}" if fraction else "")
    return f"{shown} {era}" if era else shown


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


def truncated(unit: str, microseconds: int) -> int | None:
    """Return date_trunc(unit, x) of a moment; None outside the years 1 to 9999."""
    try:
        return _microseconds(_floor(unit, _EPOCH_MOMENT + datetime.timedelta(microseconds=microseconds)))
    except OverflowError:
        return None


def boundary(lo: int, hi: int) -> int | None:
    """Return where a year begins after `lo` and up to `hi`, or a month, a day, an hour or a minute: near the middle.

    None where none of them does.
    """
    for unit in ("year", "month", "day", "hour", "minute"):
        start = truncated(unit, (lo + hi) // 2)
        if start is None:
            return None
        if lo < start:
            return start
        after = _next(unit, _EPOCH_MOMENT + datetime.timedelta(microseconds=start))
        if after is not None and _microseconds(after) <= hi:
            return _microseconds(after)
    return None


def seconds(name: str, microseconds: int) -> Fraction:
    """Return EXTRACT(name FROM x) of a moment for one of EXACT_FIELDS."""
    return Fraction(microseconds if name == "epoch" else microseconds % (60 * 10**6), 10**6)


def extracted(name: str, microseconds: int) -> int | None:
    """Return EXTRACT(name FROM x) of a moment, but of EXACT_FIELDS; None outside the years 1 to 9999."""
    try:
        moment = _EPOCH_MOMENT + datetime.timedelta(microseconds=microseconds)
    except OverflowError:
        return None
    if name in ("week", "isoyear"):
        return moment.isocalendar()[name == "week"]
    if name in ("dow", "isodow"):
        return moment.isoweekday() % (7 if name == "dow" else 8)
    if name == "doy":
        return moment.timetuple().tm_yday
    return (moment.month + 2) // 3 if name == "quarter" else int(getattr(moment, name))


def step_units(unit: str, lo: int, hi: int, limit: int) -> list[int] | None:
    """Return all values of date_trunc(unit, ·) in [lo, hi] microseconds; None when there are over `limit`.

    None too for moments outside the years 1 to 9999: such a range has no list.
    """
    try:
        moment = _floor(unit, _EPOCH_MOMENT + datetime.timedelta(microseconds=lo))
        last = _EPOCH_MOMENT + datetime.timedelta(microseconds=hi)
    except OverflowError:
        return None
    found: list[int] = []
    while moment <= last:
        if len(found) >= limit:
            return None
        found.append(_microseconds(moment))
        after = _next(unit, moment)
        if after is None:
            break
        moment = after
    return found


def _next(unit: str, moment: datetime.datetime) -> datetime.datetime | None:
    """Return the start of the unit after the one that starts at `moment`; None past the year 9999."""
    months = _MONTHS.get(unit)
    try:
        if months is None:
            return moment + datetime.timedelta(microseconds=_WIDTHS[unit])
        total = moment.year * 12 + moment.month - 1 + months
        return moment.replace(year=total // 12, month=total % 12 + 1)
    except (OverflowError, ValueError):
        return None


def extract_bounds(
    name: str, lo: Fraction | None, hi: Fraction | None, type_: SqlType
) -> tuple[Fraction, Fraction, bool] | None:
    """Return (lowest, highest, whole numbers only) of EXTRACT(name FROM x), x in [lo, hi]; None: unknown."""
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
