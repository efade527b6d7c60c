"""Rows of the sealed engine, and their conversion to the declared types at the rim."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import ROUND_HALF_EVEN, Context, Decimal
from typing import Any

import numpy as np

from ..relation.types import Kind, SqlType

__all__ = ["Rows", "finish"]

_LIMITS = {Kind.SMALLINT: 2**15, Kind.INTEGER: 2**31, Kind.BIGINT: 2**63}
_EXACT = Context(prec=2000, rounding=ROUND_HALF_EVEN)
_ONE = Decimal(1)
_ZERO = Decimal(0)
_FIXED = 1e16
"""Doubles below this are shown in full by `repr`, or with a negative exponent."""


@dataclass(frozen=True, slots=True)
class Rows:
    """A result: the columns' names and the rows, in order."""

    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]


def finish(rows: Rows, types: Sequence[SqlType]) -> Rows:
    """Return `rows` with every value of the Python type that its declared type asks for.

    Integers are int and None beyond their type's range; NUMERIC is Decimal, read from the shortest
    decimal text of the double that carried it and rounded half to even to the declared scale;
    floats are float and None when not finite; DATE is date; TIMESTAMP is datetime. What cannot be
    converted is None: this never raises for the sake of a value. A column that is already right is
    left alone. Raises ValueError when the number of types is not the number of columns.
    """
    if len(types) != len(rows.columns):
        raise ValueError(f"{len(types)} types for {len(rows.columns)} columns")
    changed: dict[int, list[Any]] = {}
    for index, declared in enumerate(types):
        column = [row[index] for row in rows.rows]
        convert = _conversion(declared, column)
        if convert is not None:
            holds_null = None in column
            changed[index] = (
                [None if value is None else convert(value) for value in column]
                if holds_null
                else list(map(convert, column))
            )
    if not changed:
        return rows
    columns = [changed.get(index) or [row[index] for row in rows.rows] for index in range(len(types))]
    return Rows(rows.columns, list(zip(*columns, strict=True)))


def _conversion(declared: SqlType, column: list[Any]) -> Callable[[Any], Any] | None:
    """Return what each value that is not None goes through; None when all may stay as they are."""
    found = set(map(type, column))
    present = [value for value in column if value is not None] if type(None) in found else column
    found.discard(type(None))
    if not present:
        return None
    if declared.is_integer:
        limit = _LIMITS[declared.kind]
        if found == {int} and -limit <= min(present) and max(present) < limit:
            return None
        return lambda value: _to_integer(value, limit)
    if declared.kind is Kind.NUMERIC:
        scale = None if declared.scale is None else _ONE.scaleb(-declared.scale)
        is_plain = scale is None and found == {float} and all(map(math.isfinite, present))
        if is_plain and min(present) > -_FIXED and max(present) < _FIXED:
            return _short_decimal
        return lambda value: _to_decimal(value, scale)
    if declared.kind is Kind.DOUBLE and found == {float} and all(map(math.isfinite, present)):
        return None
    wanted, convert = _CONVERSIONS.get(declared.kind, (object, None))
    return None if found == {wanted} else convert


def _to_integer(value: Any, limit: int) -> int | None:
    if isinstance(value, float):
        if not math.isfinite(value):
            return None
        value = round(value)
    return int(value) if isinstance(value, int | Decimal) and -limit <= value < limit else None


def _to_float(value: Any) -> float | None:
    if not isinstance(value, int | float | Decimal):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _to_real(value: Any) -> float | None:
    """Return the double with the shortest decimal text that is this single-precision number."""
    number = _to_float(value)
    if number is None:
        return None
    with np.errstate(over="ignore"):
        return _to_float(float(str(np.float32(number))))


def _short_decimal(value: float) -> Decimal:
    """Return the shortest decimal of a double that is shown without a positive exponent: the usual case, quickly."""
    return Decimal(repr(value).removesuffix(".0")) or _ZERO


def _to_decimal(value: Any, scale: Decimal | None) -> Decimal | None:
    if isinstance(value, float):
        if not math.isfinite(value):
            return None
        number = Decimal(repr(value).removesuffix(".0"))
    elif isinstance(value, int | Decimal):
        number = Decimal(value)
    else:
        return None
    if scale is not None:
        number = number.quantize(scale, context=_EXACT)
    elif number.as_tuple().exponent > 0:  # type: ignore[operator]  # finite: the exponent is an int
        number = number.quantize(_ONE, context=_EXACT)
    return number if number else abs(number)


def _to_text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _to_boolean(value: Any) -> bool | None:
    return bool(value) if isinstance(value, int) else None


def _to_date(value: Any) -> date | None:
    if isinstance(value, datetime):
        return value.date()
    return value if isinstance(value, date) else None


def _to_timestamp(value: Any) -> datetime | None:
    if isinstance(value, datetime):
        return value
    return datetime(value.year, value.month, value.day) if isinstance(value, date) else None


_CONVERSIONS: dict[Kind, tuple[type, Callable[[Any], Any]]] = {
    Kind.REAL: (np.float32, _to_real),
    Kind.DOUBLE: (np.float64, _to_float),
    Kind.TEXT: (str, _to_text),
    Kind.BOOLEAN: (bool, _to_boolean),
    Kind.DATE: (date, _to_date),
    Kind.TIMESTAMP: (datetime, _to_timestamp),
}
"""The Python type that needs no conversion (floats always need a look), and the conversion."""
