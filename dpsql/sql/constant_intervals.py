"""Constant intervals: as Postgres reads them, and their arithmetic, so that they stand on people's rows as literals do.

An interval is whole months, whole days and microseconds. A fraction of a month falls to days, thirty a month, and one
of a day to microseconds, as in Postgres (documentation 8.5.4).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from ..errors import Position, Refusal
from ..relation.calendar import DAY
from ..relation.expressions import Call, Expr, Literal, Months
from ..relation.types import INTERVAL

__all__ = ["folded", "interval_literal"]

_MOST = 2**31
"""More months or days, or so many days of microseconds, no moment of the calendar is moved by."""


def interval_literal(text: str, unit: str | None, position: Position | None) -> Literal:
    """Return an interval, from INTERVAL '1' year, '1 year 2 days 03:04:05.6', 'P1Y2D' or '30 days ago'.

    Read as a parameter of the wire is, which is as Postgres reads it.

    Raises:
        Refusal: 22023 when it is written in another way, or is longer than any calendar.
    """
    from ..pgwire import Format, Oid, ParameterError, read_parameter  # of intervals alone

    text = text.strip()
    if unit and unit.lower() != "second":
        text = text.partition(".")[0]  # a unit outside of the quotes says how fine it is
    try:
        read = read_parameter(Oid.INTERVAL, Format.TEXT, (f"{text} {unit}" if unit else text).encode())
        return Literal(INTERVAL, _held(read.months, read.days, read.microseconds), position=position)
    except (ParameterError, ValueError):
        raise Refusal(
            "this interval is not written right",
            sqlstate="22023",
            position=position,
            hint="numbers of year, month, week, day, hour, minute or second: INTERVAL '90 day'",
        ) from None


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

_UNITS = (
    Months(12, 0, 0), Months(1, 0, 0), Months(0, 7, 0), Months(0, 1, 0),
    Months(0, 0, 3_600_000_000), Months(0, 0, 60_000_000), Months(0, 0, 1_000_000),
)  # fmt: skip
"""Of what make_interval takes numbers, in its order: years, months, weeks, days, hours, minutes, seconds."""


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
        return _sum([_times(n, unit) for n, unit in zip(numbers, _UNITS, strict=True)])
    left, right = values if len(values) == 2 else (None, None)
    if not isinstance(left, Months):
        return None
    if function == "interval_times" and isinstance(right, (int, Fraction)) and not isinstance(right, bool):
        return _times(Fraction(right), left)
    if isinstance(right, Months) and function in ("intervals_added", "intervals_taken"):
        return _sum([left, _times(Fraction(1 if function == "intervals_added" else -1), right)])
    return None
