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
import struct
from collections.abc import Sequence
from fractions import Fraction

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
from ..relation.expressions import Call, Expr, Literal, LiteralValue, Months
from ..relation.functions.moments import written_format
from ..relation.types import DATE, INTERVAL, NUMERIC, TEXT, TIMESTAMP, Kind, SqlType
from .literals import met, number_literal

__all__ = [
    "add_months",
    "as_double",
    "cast_literal",
    "coerce_literal",
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


def exact_value(literal: Literal) -> Fraction | None:
    """Return the number of a literal; a double as its shortest decimal form. None: not a finite number."""
    value = literal.value
    if isinstance(value, bool) or not isinstance(value, (int, Fraction, float)):
        return None
    if not literal.type.is_float:
        return Fraction(value)
    return Fraction(repr(float(value))) if math.isfinite(value) else None


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
    if expr.type.kind is not Kind.TEXT or not isinstance(expr.constant, str):
        return expr
    text = expr.constant.strip()
    if target.kind is Kind.INTERVAL:
        return interval_literal(text, None, expr.position)
    if target.is_number:
        return _number_of(text, target, expr.position)
    value: int | bool | None = None
    if target.kind is Kind.DATE:
        value = parse_day(text)
    elif target.kind is Kind.TIMESTAMP:
        value = parse_timestamp(text)
    elif target.kind is Kind.TIME:
        value = parse_time(text)
    elif target.kind is Kind.BOOLEAN:
        value = _boolean_of(text.lower())
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


def _boolean_of(text: str) -> bool | None:
    """Return what a text means; Postgres takes every beginning of a word that names one value alone."""
    if not text or text == "o":
        return None
    for words, value in ((_TRUE, True), (_FALSE, False)):
        if any(word.startswith(text) for word in words):
            return value
    return None


def _number_of(text: str, target: SqlType, position: Position | None) -> Literal:
    sign, digits = (-1, text[1:]) if text.startswith("-") else (1, text.removeprefix("+"))
    try:
        number = number_literal(digits, position)
    except Refusal:
        raise _not_a(target, position) from None
    assert isinstance(number.value, (int, Fraction))
    value = sign * number.value
    if target.is_integer:
        if not digits.isdigit():
            raise _not_a(target, position)
        return _integer(Fraction(value), target, position)
    if target.is_float:
        return Literal(target, as_double(value), position=position)
    return Literal(number.type, value, position=position)


def _integer(value: Fraction, target: SqlType, position: Position | None) -> Literal:
    lo, hi = integer_range(target)
    if not lo <= value <= hi:
        raise Refusal(f"this is out of range for type {target}", sqlstate="22023", position=position)
    return Literal(target, int(value), position=position)


# --- casts -------------------------------------------------------------------------------------------


def cast_literal(literal: Literal, target: SqlType) -> Literal | None:
    """Return a literal cast to a type, as Postgres does it; None when that is left to the engine.

    Raises:
        Refusal: 22023 for a value that the type cannot hold.
    """
    met(literal, target)
    value, position = literal.value, literal.position
    if value is None:
        return Literal(target, None, position=position)
    if isinstance(value, str):
        read = literal if target.kind is Kind.TEXT else coerce_literal(literal, target)
        assert isinstance(read, Literal)
        return read if read.type == target or isinstance(read.value, str) else cast_literal(read, target)
    if isinstance(value, bool):
        return _cast_boolean(value, target, position)
    if isinstance(value, Months):
        return None
    if literal.type.kind is Kind.TIME:
        assert isinstance(value, int)
        return Literal(TEXT, time_text(value), position=position) if target.kind is Kind.TEXT else None
    if literal.type.is_temporal:
        assert isinstance(value, int)
        return _cast_moment(value, literal.type, target, position)
    return _cast_number(value, literal.type, target, position)


def _cast_boolean(value: bool, target: SqlType, position: Position | None) -> Literal | None:
    if target.kind is Kind.TEXT:
        return Literal(TEXT, "true" if value else "false", position=position)
    return Literal(target, int(value), position=position) if target.kind is Kind.INTEGER else None


def _cast_moment(value: int, source: SqlType, target: SqlType, position: Position | None) -> Literal | None:
    is_date = source.kind is Kind.DATE
    if target.kind is Kind.TEXT:
        return Literal(TEXT, date_text(value) if is_date else timestamp_text(value), position=position)
    if target.kind is Kind.TIME:
        return Literal(target, 0 if is_date else value % DAY, position=position)
    if not target.is_temporal:
        return None
    if source.kind is not target.kind:
        value = value * DAY if is_date else value // DAY
    return Literal(target, value, position=position)


def _cast_number(
    value: int | Fraction | float, source: SqlType, target: SqlType, position: Position | None
) -> Literal | None:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    number = Fraction(value)
    if target.is_integer:
        return _integer(Fraction(_rounded(number, 0, even=source.is_float)), target, position)
    if target.kind is Kind.DOUBLE:
        return Literal(target, as_double(number), position=position)
    if target.kind is Kind.REAL:
        return Literal(target, _as_real(number, position), position=position)
    if target.kind is Kind.NUMERIC:
        exact = Fraction(repr(float(value))) if source.is_float else number
        return _cast_numeric(exact, target, position)
    if target.kind is Kind.TEXT and source.is_integer:
        return Literal(TEXT, str(int(number)), position=position)
    return None


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
    if call.function in ("date_trunc", "extract"):
        return _part_of_moment(call)
    if call.function == "to_char":
        return _as_written(call)
    if call.function in ("lower", "upper", "concat_op"):
        return _text(call)
    if call.function not in ("neg", "add", "sub", "mul", "div", "mod") or call.type.is_float:
        return call if call.function != "neg" else _negated(call)
    if any(arg.is_constant and arg.constant is None and arg.type.kind is Kind.INTERVAL for arg in call.args):
        return Literal(call.type, None, position=call.position)
    values: list[LiteralValue] = [arg.constant for arg in call.args]
    if any(value is None or isinstance(value, (bool, float, str)) for value in values):
        return call
    if call.function == "neg":
        return _negated(call)
    left, right = values
    sign = -1 if call.function == "sub" else 1
    if isinstance(left, int) and isinstance(right, Months):
        start = left * DAY if call.args[0].type.kind is Kind.DATE else left
        return _moment(add_months(start, right, sign), TIMESTAMP, call.position)
    if not isinstance(left, (int, Fraction)) or not isinstance(right, (int, Fraction)):
        return call
    if call.type.kind is Kind.DATE:
        return _moment(int(left + sign * right), DATE, call.position)
    value = _arithmetic(call, left, right)
    if value is None:
        return call
    if call.type.is_integer:
        return _integer(Fraction(value), call.type, call.position)
    return Literal(call.type, Fraction(value), position=call.position)


def _part_of_moment(call: Call) -> Expr:
    """Return date_trunc or extract of a constant moment: the same bounds as if it had been written out."""
    word, moment = call.args
    if not word.is_constant or not isinstance(moment.constant, int):
        return call
    scale = DAY if moment.type.kind is Kind.DATE else 1
    if call.function == "extract" and word.constant in EXACT_FIELDS:
        return Literal(
            call.type, seconds(str(word.constant), moment.constant * scale), position=call.position
        )
    change = truncated if call.function == "date_trunc" else extracted
    value = change(str(word.constant), moment.constant * scale)
    return call if value is None else Literal(call.type, value, position=call.position)


def _as_written(call: Call) -> Expr:
    """Return to_char of a constant moment."""
    moment = call.args[0]
    if not isinstance(moment.constant, int):
        return call
    text = formatted(written_format(call), moment.constant * (DAY if moment.type.kind is Kind.DATE else 1))
    return call if text is None else Literal(TEXT, text, position=call.position)


def _text(call: Call) -> Expr:
    """Return lower, upper or || of constant texts; letters outside ASCII are left to the engine."""
    texts = [
        str(arg.constant)
        for arg in call.args
        if isinstance(arg.constant, str) or (arg.type.is_integer and isinstance(arg.constant, int))
    ]
    if len(texts) != len(call.args):
        return call
    if call.function == "concat_op":
        return Literal(TEXT, "".join(texts), position=call.position)
    (text,) = texts
    if not text.isascii():
        return call
    return Literal(TEXT, text.lower() if call.function == "lower" else text.upper(), position=call.position)


def _negated(call: Call) -> Expr:
    inner = call.args[0]
    if not inner.is_constant or isinstance(inner.constant, bool):
        return call
    if not isinstance(inner.constant, (int, Fraction, float)):
        return call
    value = -inner.constant
    if call.type.is_integer and isinstance(value, int):
        return _integer(Fraction(value), call.type, call.position)
    return Literal(call.type, value, position=call.position)


def _moment(value: int | None, type_: SqlType, position: Position | None) -> Literal:
    days = None if value is None else value if type_.kind is Kind.DATE else value // DAY
    if days is None or not _FIRST <= days <= _LAST:
        raise Refusal("this moment is out of range", sqlstate="22023", position=position)
    return Literal(type_, value, position=position)


def _arithmetic(call: Call, left: int | Fraction, right: int | Fraction) -> int | Fraction | None:
    """Return the value; None for a division that has no exact value, or none at all."""
    if call.function in ("add", "sub"):
        return left - right if call.function == "sub" else left + right
    if call.function == "mul":
        return left * right
    if right == 0 or not isinstance(left, int) or not isinstance(right, int) or not call.type.is_integer:
        return None
    quotient = abs(left) // abs(right)
    signed = quotient if (left < 0) == (right < 0) else -quotient
    return signed if call.function == "div" else left - signed * right
