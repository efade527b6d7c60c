"""Constants: a literal read or cast as another type, and exact arithmetic between literals.

House rules:

1. A constant that Postgres would refuse (out of range, not of the type) is refused here, with its position.
2. A literal of a floating-point type holds a number that a double holds exactly, so that two literals
   are equal here just when the engine finds them equal.

An interval is whole months, whole days and microseconds. A fraction of a month falls to days, thirty a month, and one
of a day to microseconds, as in Postgres (documentation 8.5.4).
"""

from __future__ import annotations

import datetime
import math
import operator
import struct
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial

from ..errors import Position, Refusal
from ..relation.calendar import (
    DAY,
    EXACT_FIELDS,
    date_text,
    extracted,
    formatted,
    parse_day,
    parse_time,
    parse_timestamp,
    seconds,
    time_text,
    timestamp_text,
    truncated,
)
from ..relation.expressions import Call, Expr, Literal, Months
from ..relation.functions.moments import written_format
from ..relation.types import DATE, INTERVAL, NUMERIC, TEXT, TIMESTAMP, Kind, SqlType
from .literals import met, number_literal

__all__ = [
    "add_months",
    "as_double",
    "cast_literal",
    "coerce_literal",
    "constant_number",
    "exact_value",
    "fold",
    "folded",
    "integer_range",
    "interval_literal",
]

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


def folded(call: Expr) -> Expr:
    """Return the value of arithmetic over constant intervals and numbers; of anything else `call` itself.

    Raises:
        Refusal: 22023 when the value is longer than any calendar.
    """
    try:
        found = _OF_INTERVALS[call.function](call)
    except ValueError:
        raise Refusal("interval out of range", sqlstate="22023", position=call.position) from None
    return call if found is None else Literal(INTERVAL, found, position=call.position)


def constant_number(arg: Expr) -> Fraction | None:
    """Return the number of a constant; None of NULL, of a double without end, and of what is no number."""
    value = arg.exact
    return value if isinstance(value, Fraction) else None


def _made(call: Expr) -> Months | None:
    numbers = [number for arg in call.args if (number := constant_number(arg)) is not None]
    if len(numbers) < len(call.args):
        return None
    return _sum([_times(number, unit) for number, unit in zip(numbers, _UNITS, strict=True)])


def _multiplied(call: Expr) -> Months | None:
    interval, factor = call.args[0].constant_as(Months), constant_number(call.args[1])
    return None if interval is None or factor is None else _times(factor, interval)


def _together(sign: int, call: Expr) -> Months | None:
    left, right = (arg.constant_as(Months) for arg in call.args)
    return None if left is None or right is None else _sum([left, _times(Fraction(sign), right)])


_OF_INTERVALS: dict[str, Callable[[Expr], Months | None]] = {
    "make_interval": _made,
    "interval_times": _multiplied,
    "intervals_added": partial(_together, 1),
    "intervals_taken": partial(_together, -1),
}
"""Function -> the value of a call of constants; None: of others."""
_LIMITS = {Kind.SMALLINT: 2**15, Kind.INTEGER: 2**31, Kind.BIGINT: 2**63}
_TRUE = ("true", "yes", "on", "1")
_FALSE = ("false", "no", "off", "0")
_FIRST, _LAST = -719_162, 2_932_896
"""Days of 0001-01-01 and 9999-12-31."""


def integer_range(type_: SqlType) -> tuple[int, int]:
    """Return the lowest and highest value of an integer type."""
    limit = _LIMITS[type_.kind]
    return -limit, limit - 1


def as_double(value: int | Fraction | float) -> Fraction | float:
    """Return the double nearest to a number, as an exact Fraction where it is finite."""
    try:
        number = float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
    return Fraction(number) if math.isfinite(number) else number


def exact_value(literal: Expr) -> Fraction | None:
    """Return the number of a literal; a double as its shortest decimal form. None: not a finite number."""
    number = constant_number(literal)
    return number if number is None or not literal.type.is_float else Fraction(repr(float(number)))


def coerce_literal(expr: Expr, target: SqlType) -> Expr:
    """Return a text literal or NULL read as `target`, as Postgres types an unknown literal; others unchanged.

    Raises:
        Refusal: 22023 when the text is no such value.
    """
    met(expr, target)
    if not expr.is_constant or target.kind in (Kind.TEXT, Kind.NULL, Kind.OPAQUE):
        return expr
    if expr.constant is None:
        return Literal(target, None, position=expr.position)
    written = expr.constant_as(str)
    if expr.type.kind is not Kind.TEXT or written is None:
        return expr
    text = written.strip()
    if target.kind is Kind.INTERVAL:
        return interval_literal(text, None, expr.position)
    if target.is_number:
        return _number_of(text, target, expr.position)
    read = _READ.get(target.kind)
    value = None if read is None else read(text)
    if value is None:
        raise _not_a(target, expr.position, _WRITTEN.get(target.kind))
    return Literal(target, value, position=expr.position)


_WRITTEN = {
    Kind.DATE: "dates: 'YYYY-MM-DD'",
    Kind.TIMESTAMP: "dates: 'YYYY-MM-DD'",
    Kind.TIME: "times: 'HH:MM' or 'HH:MM:SS', before 24:00",
}


def _not_a(target: SqlType, position: Position | None, hint: str | None = None) -> Refusal:
    return Refusal(
        f"this text is not a value of type {target}", sqlstate="22023", position=position, hint=hint
    )


def _boolean_of(written: str) -> bool | None:
    """Return what a text means; Postgres takes every beginning of a word that names one value alone."""
    text = written.lower()
    if not text or text == "o":
        return None
    for words, value in ((_TRUE, True), (_FALSE, False)):
        if any(word.startswith(text) for word in words):
            return value
    return None


_READ: dict[Kind, Callable[[str], int | bool | None]] = {
    Kind.DATE: parse_day,
    Kind.TIMESTAMP: parse_timestamp,
    Kind.TIME: parse_time,
    Kind.BOOLEAN: _boolean_of,
}
"""Kind of what is written as a text -> what reads it."""


def _number_of(text: str, target: SqlType, position: Position | None) -> Literal:
    sign, digits = (-1, text[1:]) if text.startswith("-") else (1, text.removeprefix("+"))
    try:
        number = number_literal(digits, position)
    except Refusal:
        raise _not_a(target, position) from None
    known = constant_number(number)
    assert known is not None
    value = sign * known
    if target.is_integer:
        if not digits.isdigit():
            raise _not_a(target, position)
        return _integer(value, target, position)
    if target.is_float:
        return Literal(target, as_double(value), position=position)
    return Literal(number.type, int(value) if number.type.is_integer else value, position=position)


def _integer(value: Fraction, target: SqlType, position: Position | None) -> Literal:
    lo, hi = integer_range(target)
    if not lo <= value <= hi:
        raise Refusal(f"this is out of range for type {target}", sqlstate="22023", position=position)
    return Literal(target, int(value), position=position)


# --- casts -------------------------------------------------------------------------------------------


def cast_literal(literal: Expr, target: SqlType) -> Expr | None:
    """Return a literal cast to a type, as Postgres does it; None when that is left to the engine.

    Raises:
        Refusal: 22023 for a value that the type cannot hold.
    """
    met(literal, target)
    value, position = literal.constant, literal.position
    if value is None:
        return Literal(target, None, position=position)
    if literal.constant_as(str) is not None:
        read = literal if target.kind is Kind.TEXT else coerce_literal(literal, target)
        is_read = read.type == target or read.constant_as(str) is not None
        return read if is_read else cast_literal(read, target)
    change = _CAST.get(literal.type.kind, _cast_number)
    return change(literal, target)


def _cast_boolean(literal: Expr, target: SqlType) -> Literal | None:
    value, position = bool(literal.constant), literal.position
    if target.kind is Kind.TEXT:
        return Literal(TEXT, "true" if value else "false", position=position)
    return Literal(target, int(value), position=position) if target.kind is Kind.INTEGER else None


def _cast_time(literal: Expr, target: SqlType) -> Literal | None:
    since = literal.constant_as(int)
    if since is None or target.kind is not Kind.TEXT:
        return None
    return Literal(TEXT, time_text(since), position=literal.position)


def _cast_moment(literal: Expr, target: SqlType) -> Literal | None:
    is_date, value, position = literal.type.kind is Kind.DATE, literal.literal_as(int), literal.position
    if target.kind is Kind.TEXT:
        return Literal(TEXT, date_text(value) if is_date else timestamp_text(value), position=position)
    if target.kind is Kind.TIME:
        return Literal(target, 0 if is_date else value % DAY, position=position)
    if not target.is_temporal:
        return None
    if literal.type.kind is not target.kind:
        value = value * DAY if is_date else value // DAY
    return Literal(target, value, position=position)


def _cast_number(literal: Expr, target: SqlType) -> Literal | None:
    number, position, is_float = constant_number(literal), literal.position, literal.type.is_float
    if number is None:
        return None
    if target.is_integer:
        return _integer(_rounded(number, 0, even=is_float), target, position)
    if target.kind is Kind.DOUBLE:
        return Literal(target, as_double(number), position=position)
    if target.kind is Kind.REAL:
        return Literal(target, _as_real(number, position), position=position)
    if target.kind is Kind.NUMERIC:
        exact = Fraction(repr(float(number))) if is_float else number
        return _cast_numeric(exact, target, position)
    if target.kind is Kind.TEXT and literal.type.is_integer:
        return Literal(TEXT, str(int(number)), position=position)
    return None


_CAST: dict[Kind, Callable[[Expr, SqlType], Literal | None]] = {
    Kind.BOOLEAN: _cast_boolean,
    Kind.INTERVAL: lambda literal, target: None,
    Kind.TIME: _cast_time,
    Kind.DATE: _cast_moment,
    Kind.TIMESTAMP: _cast_moment,
}
"""Kind of a constant that is no text and no number -> what casts it."""


def _as_real(number: Fraction, position: Position | None) -> Fraction:
    try:
        return Fraction(struct.unpack("f", struct.pack("f", float(number)))[0])
    except OverflowError:
        raise Refusal("this is out of range for type real", sqlstate="22023", position=position) from None


def _cast_numeric(number: Fraction, target: SqlType, position: Position | None) -> Literal:
    if target.scale is None or target.precision is None:
        return Literal(NUMERIC, number, position=position)
    kept = _rounded(number, target.scale, even=False)
    if abs(kept) >= Fraction(10) ** (target.precision - target.scale):
        raise Refusal(f"this is out of range for type {target}", sqlstate="22023", position=position)
    return Literal(target, kept, position=position)


def _rounded(number: Fraction, scale: int, *, even: bool) -> Fraction:
    """Return a number rounded to digits after the point: halves to even, or away from zero."""
    unit = Fraction(1, int("1" + "0" * scale))
    scaled = number / unit
    if even:
        return round(scaled) * unit
    whole = math.floor(abs(scaled) + Fraction(1, 2))
    return (whole if scaled >= 0 else -whole) * unit


# --- arithmetic --------------------------------------------------------------------------------------


def add_months(microseconds: int, interval: Months, sign: int) -> int | None:
    """Return a moment plus an interval as Postgres adds them (months first, day of month cut to fit).

    None for a result outside the years 1 to 9999.
    """
    epoch = datetime.datetime(1970, 1, 1)
    try:
        moment = epoch + datetime.timedelta(microseconds=microseconds)
        total = moment.year * 12 + moment.month - 1 + sign * interval.months
        year, month = total // 12, total % 12 + 1
        following = datetime.date(year, month, 28) + datetime.timedelta(days=4)
        last = (following - datetime.timedelta(days=following.day)).day
        moved = moment.replace(year=year, month=month, day=min(moment.day, last))
        moved += sign * datetime.timedelta(days=interval.days, microseconds=interval.microseconds)
    except (ValueError, OverflowError):
        return None
    return (moved - epoch) // datetime.timedelta(microseconds=1)


def fold(call: Call) -> Expr:
    """Return the value of arithmetic over exact constants, of a date ± interval or days, of a part of one, of texts.

    Of anything else `call` itself.

    Raises:
        Refusal: 22023 when the value is outside the result's type.
    """
    change = _FOLDED.get(call.function)
    return call if change is None else change(call)


def _part(change: Callable[[str, int], int | Fraction | None], call: Call) -> Expr:
    """Return date_trunc or extract of a constant moment: the same bounds as if it had been written out."""
    word, moment = call.args[0].constant, _moment_of(call.args[1])
    value = None if word is None or moment is None else change(str(word), moment)
    return call if value is None else Literal(call.type, value, position=call.position)


def _field(word: str, moment: int) -> int | Fraction | None:
    return (seconds if word in EXACT_FIELDS else extracted)(word, moment)


def _moment_of(arg: Expr) -> int | None:
    """Return a constant moment in microseconds."""
    value = arg.constant_as(int)
    return None if value is None else value * (DAY if arg.type.kind is Kind.DATE else 1)


def _as_written(call: Call) -> Expr:
    """Return to_char of a constant moment."""
    moment = _moment_of(call.args[0])
    text = None if moment is None else formatted(written_format(call), moment)
    return call if text is None else Literal(TEXT, text, position=call.position)


def _letters(change: Callable[[str], str], call: Call) -> Expr:
    """Return lower or upper of a constant text; letters outside ASCII are left to the engine."""
    text = call.args[0].constant_as(str)
    return call if text is None or not text.isascii() else Literal(TEXT, change(text), position=call.position)


def _joined(call: Call) -> Expr:
    """Return || of constant texts and whole numbers."""
    texts = [arg.constant_as(int) if arg.type.is_integer else arg.constant_as(str) for arg in call.args]
    return call if None in texts else Literal(TEXT, "".join(map(str, texts)), position=call.position)


def _negated(call: Call) -> Expr:
    inner = call.args[0]
    number = constant_number(inner)
    if number is None:
        value = inner.constant_as(float)
        return call if value is None else Literal(call.type, -value, position=call.position)
    if call.type.is_integer:
        return _integer(-number, call.type, call.position)
    return Literal(call.type, -number, position=call.position)


def _summed(sign: int, call: Call) -> Expr:
    """Return a sum or a difference of constants: of numbers, of a moment and days or an interval."""
    left, right = call.args
    if any(arg.is_constant and arg.constant is None and arg.type.kind is Kind.INTERVAL for arg in call.args):
        return Literal(call.type, None, position=call.position)
    start, interval = _moment_of(left), right.constant_as(Months)
    if start is not None and interval is not None:
        return _moment(add_months(start, interval, sign), TIMESTAMP, call.position)
    if call.type.kind is not Kind.DATE:
        return _exactly(lambda a, b: a + sign * b, call)
    day, days = left.constant_as(int), right.constant_as(int)
    return call if day is None or days is None else _moment(day + sign * days, DATE, call.position)


def _moment(value: int | None, type_: SqlType, position: Position | None) -> Literal:
    days = None if value is None else value if type_.kind is Kind.DATE else value // DAY
    if days is None or not _FIRST <= days <= _LAST:
        raise Refusal("this moment is out of range", sqlstate="22023", position=position)
    return Literal(type_, value, position=position)


def _exactly(operate: Callable[[Fraction, Fraction], Fraction | None], call: Call) -> Expr:
    """Return an operation on two constant numbers, none of them a double."""
    left, right = (constant_number(arg) for arg in call.args)
    value = None if call.type.is_float or left is None or right is None else operate(left, right)
    if value is None:
        return call
    if call.type.is_integer:
        return _integer(value, call.type, call.position)
    return Literal(call.type, value, position=call.position)


def _whole(operate: Callable[[Fraction, Fraction], Fraction], call: Call) -> Expr:
    """Return a division of constant integers; one by zero is left to the engine."""
    return _exactly(lambda a, b: operate(a, b) if b else None, call) if call.type.is_integer else call


_FOLDED: dict[str, Callable[[Call], Expr]] = {
    "add": partial(_summed, 1),
    "sub": partial(_summed, -1),
    "mul": partial(_exactly, operator.mul),
    "div": partial(_whole, lambda a, b: Fraction(math.trunc(a / b))),
    "mod": partial(_whole, lambda a, b: a - math.trunc(a / b) * b),
    "neg": _negated,
    "date_trunc": partial(_part, truncated),
    "extract": partial(_part, _field),
    "to_char": _as_written,
    "lower": partial(_letters, str.lower),
    "upper": partial(_letters, str.upper),
    "concat_op": _joined,
}
"""Function -> what makes a constant of a call of constants."""
