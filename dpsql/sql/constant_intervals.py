"""Constant intervals: as Postgres reads them, and their arithmetic, so that they stand on people's rows as literals do.

An interval is whole months, whole days and microseconds. A fraction of a month falls to days, thirty a month, and one
of a day to microseconds, as in Postgres (documentation 8.5.4).
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from fractions import Fraction

from ..errors import Position, Refusal
from ..relation.calendar import DAY
from ..relation.expressions import Call, Expr, Literal, Months
from ..relation.types import INTERVAL

__all__ = ["folded", "interval_literal"]

_SECOND = 1_000_000
_SIZES = {
    "millennium": (12_000, 0, 0), "millennia": (12_000, 0, 0), "century": (1_200, 0, 0), "centuries": (1_200, 0, 0),
    "decade": (120, 0, 0), "year": (12, 0, 0), "yr": (12, 0, 0), "y": (12, 0, 0), "quarter": (3, 0, 0),
    "month": (1, 0, 0), "mon": (1, 0, 0), "week": (0, 7, 0), "w": (0, 7, 0), "day": (0, 1, 0), "d": (0, 1, 0),
    "hour": (0, 0, 3_600 * _SECOND), "hr": (0, 0, 3_600 * _SECOND), "h": (0, 0, 3_600 * _SECOND),
    "minute": (0, 0, 60 * _SECOND), "min": (0, 0, 60 * _SECOND), "m": (0, 0, 60 * _SECOND),
    "second": (0, 0, _SECOND), "sec": (0, 0, _SECOND), "s": (0, 0, _SECOND), "": (0, 0, _SECOND),
    "millisecond": (0, 0, 1_000), "msec": (0, 0, 1_000), "ms": (0, 0, 1_000),
    "microsecond": (0, 0, 1), "usec": (0, 0, 1), "us": (0, 0, 1),
}  # fmt: skip
"""A unit's name, without a plural s -> its months, days and microseconds."""
_NUMBER = r"[+-]?(?:[0-9]{1,12}(?:\.[0-9]{0,9})?|\.[0-9]{1,9})"
_PART = re.compile(
    rf"\s*(?:(?P<sign>[+-]?)(?P<hours>[0-9]{{1,8}}):(?P<minutes>[0-5]?[0-9])(?::(?P<seconds>[0-5]?[0-9](?:\.[0-9]{{0,9}})?))?"
    rf"(?![0-9:.])|(?P<number>{_NUMBER})\s*(?P<unit>[a-z]*)),?",
    re.IGNORECASE,
)
_ISO = re.compile(
    rf"P(?=[0-9T+-])(?:({_NUMBER})Y)?(?:({_NUMBER})M)?(?:({_NUMBER})W)?(?:({_NUMBER})D)?"
    rf"(?:T(?=[0-9+-])(?:({_NUMBER})H)?(?:({_NUMBER})M)?(?:({_NUMBER})S)?)?"
)
_ISO_UNITS = ("year", "month", "week", "day", "hour", "minute", "second")
_LONGEST = 300
_MOST = 2**31
"""More months or days, or so many days of microseconds, no moment of the calendar is moved by."""


def interval_literal(text: str, unit: str | None, position: Position | None) -> Literal:
    """Return an interval, from INTERVAL '1' year, '1 year 2 days 03:04:05.6', 'P1Y2D' or '30 days ago'.

    Raises:
        Refusal: 22023 when it is written in another way, or is longer than any calendar.
    """
    text = text.strip()
    if unit and unit.lower() != "second":
        text = text.partition(".")[0]  # a unit outside of the quotes says how fine it is
    word = f"{text} {unit}" if unit else text
    try:
        return Literal(INTERVAL, _read(word), position=position)
    except ValueError:
        raise Refusal(
            "this interval is not written right",
            sqlstate="22023",
            position=position,
            hint="numbers of year, month, week, day, hour, minute or second: INTERVAL '90 day'",
        ) from None


def _read(word: str) -> Months:
    if not word or len(word) > _LONGEST:
        raise ValueError
    if iso := _ISO.fullmatch(word):
        numbers = ((number or "0", unit) for number, unit in zip(iso.groups(), _ISO_UNITS, strict=True))
        return _sum([_times(Fraction(number), Months(*_SIZES[unit])) for number, unit in numbers])
    is_ago = word.lower().endswith(" ago")
    word = (word[:-4] if is_ago else word).removeprefix("@").strip()
    parts, at = [], 0
    while at < len(word) or not word:
        match = _PART.match(word, at)
        if match is None:
            raise ValueError
        parts += _parts_of(match)
        at = match.end()
    return _times(Fraction(-1 if is_ago else 1), _sum(parts))


def _parts_of(match: re.Match[str]) -> list[Months]:
    if match["hours"] is not None:
        sign = -1 if match["sign"] == "-" else 1
        clock = (("hours", "hour"), ("minutes", "minute"), ("seconds", "second"))
        return [_times(sign * Fraction(match[part] or "0"), Months(*_SIZES[unit])) for part, unit in clock]
    unit = match["unit"].lower()
    size = _SIZES.get(unit) or _SIZES.get(unit.removesuffix("s"))
    if size is None:
        raise ValueError
    return [_times(Fraction(match["number"]), Months(*size))]


def _sum(parts: Sequence[Months]) -> Months:
    months, days, microseconds = (
        sum(getattr(part, name) for part in parts) for name in ("months", "days", "microseconds")
    )
    return _held(months, days, microseconds)


def _times(factor: Fraction, interval: Months) -> Months:
    """Return an interval so many times; what is not whole falls to the next smaller part."""
    months = factor * interval.months
    days = factor * interval.days + (months - int(months)) * 30
    microseconds = factor * interval.microseconds + (days - int(days)) * DAY
    return _held(int(months), int(days), round(microseconds))


def _held(months: int, days: int, microseconds: int) -> Months:
    if max(abs(months), abs(days), abs(microseconds) // DAY) >= _MOST:
        raise ValueError
    return Months(months, days, microseconds)


# --- arithmetic ------------------------------------------------------------------------------------------

_UNITS = ("year", "month", "week", "day", "hour", "minute", "second")
"""Of what make_interval takes numbers, in its order."""


def folded(call: Call) -> Expr:
    """Return the value of arithmetic over constant intervals and numbers; of anything else `call` itself.

    Raises:
        Refusal: 22023 when the value is longer than any calendar.
    """
    values = [arg.constant for arg in call.args]
    try:
        found = _value(call.function, values)
    except ValueError:
        raise Refusal("interval out of range", sqlstate="22023", position=call.position) from None
    return call if found is None else Literal(INTERVAL, found, position=call.position)


def _value(function: str, values: Sequence[object]) -> Months | None:
    if function == "make_interval":
        numbers = [
            Fraction(one) for one in values if isinstance(one, (int, Fraction, float)) and math.isfinite(one)
        ]
        if len(numbers) < len(values):
            return None
        return _sum([_times(n, Months(*_SIZES[unit])) for n, unit in zip(numbers, _UNITS, strict=True)])
    left, right = values if len(values) == 2 else (None, None)
    if not isinstance(left, Months):
        return None
    if function == "interval_times" and isinstance(right, (int, Fraction)) and not isinstance(right, bool):
        return _times(Fraction(right), left)
    if isinstance(right, Months) and function in ("intervals_added", "intervals_taken"):
        return _sum([left, _times(Fraction(1 if function == "intervals_added" else -1), right)])
    return None
