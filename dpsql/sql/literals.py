"""Literals: their types, their reading as another type, and exact arithmetic on constants."""

from __future__ import annotations

import datetime
import math
import re
from decimal import Decimal
from fractions import Fraction

from ..errors import Position, Refusal
from ..relation.calendar import DAY, parse_date, parse_timestamp
from ..relation.expressions import Call, Expr, Literal, LiteralValue, Months
from ..relation.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    INTERVAL,
    NULL,
    TEXT,
    TIMESTAMP,
    Kind,
    SqlType,
    numeric,
)

__all__ = ["add_months", "coerce_literal", "fold", "interval_literal", "number_literal", "parameter_literal"]

_NUMBER = re.compile(r"([0-9]*)(?:\.([0-9]*))?(?:[eE]([+-]?[0-9]{1,3}))?")
_MAX_DIGITS = 60


def number_literal(text: str, position: Position | None) -> Literal:
    """Return an exact number: INTEGER, BIGINT or NUMERIC by its size and form, as Postgres types it."""
    match = _NUMBER.fullmatch(text)
    if match is None or not (match[1] or match[2]) or len(text) > _MAX_DIGITS:
        raise Refusal("this number is not written right", sqlstate="42601", position=position)
    exponent = int(match[3] or 0)
    if abs(exponent) > 60:
        raise Refusal("this number is out of range", sqlstate="22023", position=position)
    value = Fraction(int((match[1] or "0") + (match[2] or ""))) * Fraction(10) ** (
        exponent - len(match[2] or "")
    )
    if match[2] is None and match[3] is None:
        if value < 2**31:
            return Literal(INTEGER, int(value), position=position)
        if value < 2**63:
            return Literal(BIGINT, int(value), position=position)
    scale = max(len(match[2] or "") - exponent, 0)
    return Literal(numeric(38, min(scale, 37)), value, position=position)


_UNITS = {
    "year": (12, 0, 0), "month": (1, 0, 0), "week": (0, 7, 0), "day": (0, 1, 0), "hour": (0, 0, DAY // 24),
    "minute": (0, 0, DAY // 1440), "second": (0, 0, 1_000_000), "quarter": (3, 0, 0),
}  # fmt: skip
_PART = re.compile(r"([+-]?[0-9]{1,6})\s*([a-z]+)", re.IGNORECASE)


def interval_literal(text: str, unit: str | None, position: Position | None) -> Literal:
    """Return an interval of whole units, from INTERVAL '1' year or INTERVAL '1 year 2 days'."""
    words = f"{text} {unit}" if unit else text
    total = [0, 0, 0]
    rest = words.strip()
    while rest:
        match = _PART.match(rest)
        size = None
        if match is not None:
            name = match[2].lower()
            size = _UNITS.get(name) or _UNITS.get(name.removesuffix("s"))
        if match is None or size is None:
            raise Refusal(
                "this interval is not written right",
                sqlstate="22023",
                position=position,
                hint="whole numbers of year, month, week, day, hour, minute or second: INTERVAL '90 day'",
            )
        for index in range(3):
            total[index] += int(match[1]) * size[index]
        rest = rest[match.end() :].strip()
    return Literal(INTERVAL, Months(*total), position=position)


def parameter_literal(value: object, number: int) -> Literal:
    """Return a bound parameter as a literal; text stays text until its context types it.

    Raises:
        Refusal: 22023 when the Python value is not of a kind that a parameter can have.
    """
    if value is None:
        return Literal(NULL, None)
    if isinstance(value, bool):
        return Literal(BOOLEAN, value)
    if isinstance(value, int):
        if abs(value) >= 2**63:
            return Literal(numeric(38, 0), Fraction(value))
        return Literal(INTEGER if abs(value) < 2**31 else BIGINT, value)
    if isinstance(value, Decimal) and value.is_finite() and abs(value.adjusted()) < 60:
        exponent = value.as_tuple().exponent
        return Literal(numeric(38, max(0, -int(exponent))), Fraction(value))
    if isinstance(value, float) and math.isfinite(value):
        return Literal(DOUBLE, value)
    if isinstance(value, datetime.datetime) and value.tzinfo is None:
        return Literal(TIMESTAMP, parse_timestamp(value.isoformat()))
    if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
        return Literal(DATE, parse_date(value.isoformat()))
    if isinstance(value, str) and "\x00" not in value:
        return Literal(TEXT, value)
    raise Refusal(
        f"parameter ${number} has no SQL type here",
        sqlstate="22023",
        hint="pass None, bool, int, Decimal, a finite float, str, date or datetime without zone",
    )


def coerce_literal(expr: Expr, target: SqlType) -> Expr:
    """Return a text literal read as `target` (the way Postgres types an unknown literal); others unchanged.

    Raises:
        Refusal: 22023 when the text is no such value.
    """
    if not isinstance(expr, Literal) or target.kind in (Kind.TEXT, Kind.NULL, Kind.OPAQUE):
        return expr
    if expr.value is None:
        return Literal(target, None, position=expr.position)
    if expr.type.kind is not Kind.TEXT or not isinstance(expr.value, str):
        return expr
    text = expr.value.strip()
    value: int | bool | None = None
    if target.kind is Kind.DATE:
        value = parse_date(text)
    elif target.kind is Kind.TIMESTAMP:
        value = parse_timestamp(text)
    elif target.kind is Kind.BOOLEAN:
        value = {"t": True, "true": True, "f": False, "false": False}.get(text.lower())
    elif target.kind is Kind.INTERVAL:
        return interval_literal(text, None, expr.position)
    elif target.is_number:
        sign = -1 if text.startswith("-") else 1
        number = number_literal(text.removeprefix("-"), expr.position)
        assert isinstance(number.value, (int, Fraction))
        return Literal(number.type, sign * number.value, position=expr.position)
    if value is None:
        raise Refusal(
            f"this text is not a {target}",
            sqlstate="22023",
            position=expr.position,
            hint="dates: 'YYYY-MM-DD'",
        )
    return Literal(target, value, position=expr.position)


def add_months(microseconds: int, interval: Months, sign: int) -> int | None:
    """Return a moment plus an interval as Postgres adds them (months first, day of month cut to fit)."""
    epoch = datetime.datetime(1970, 1, 1)
    try:
        moment = epoch + datetime.timedelta(microseconds=microseconds)
        total = moment.year * 12 + moment.month - 1 + sign * interval.months
        year, month = total // 12, total % 12 + 1
        last = (datetime.date(year + month // 12, month % 12 + 1, 1) - datetime.timedelta(days=1)).day
        moved = moment.replace(year=year, month=month, day=min(moment.day, last))
        moved += sign * datetime.timedelta(days=interval.days, microseconds=interval.microseconds)
    except (ValueError, OverflowError):
        return None
    return (moved - epoch) // datetime.timedelta(microseconds=1)


def fold(call: Call) -> Expr:
    """Return the value of + - * and negation over exact constants, and of date ± interval; else `call`."""
    values: list[LiteralValue] = [arg.value if isinstance(arg, Literal) else None for arg in call.args]
    if call.function == "neg" and isinstance(values[0], (int, Fraction)) and not isinstance(values[0], bool):
        return Literal(call.type, -values[0], position=call.position)
    if len(values) != 2 or call.function not in ("add", "sub", "mul"):
        return call
    left, right = values
    sign = -1 if call.function == "sub" else 1
    if isinstance(left, int) and isinstance(right, Months) and call.args[0].type.is_temporal:
        start = left * DAY if call.args[0].type.kind is Kind.DATE else left
        moved = add_months(start, right, sign)
        return call if moved is None else Literal(TIMESTAMP, moved, position=call.position)
    if not isinstance(left, (int, Fraction)) or not isinstance(right, (int, Fraction)):
        return call
    if isinstance(left, bool) or isinstance(right, bool):
        return call
    if call.type.kind is Kind.DATE or not call.type.is_number:
        return Literal(call.type, int(left + sign * right), position=call.position)
    value = left * right if call.function == "mul" else left + sign * right
    if call.type.is_integer and abs(value) >= 2**31 and call.type.kind is not Kind.BIGINT:
        return call
    return Literal(call.type, int(value) if call.type.is_integer else Fraction(value), position=call.position)
