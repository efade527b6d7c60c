"""A declared column meets its type: canonical bounds, step and keys, or a PolicyError that says the fix."""

from __future__ import annotations

import struct
from dataclasses import replace
from datetime import date, datetime, timedelta
from fractions import Fraction
from typing import NoReturn

from ..errors import PolicyError
from ..mechanisms import Channel
from ..relation.catalog import Column, Enforced
from ..relation.types import Kind, SqlType
from .live_schema import MAX_SCALE, OPEN_NUMERIC, LiveColumn, comparable_type, open_numeric
from .model import Bound, ColumnPolicy, Key, RandomizedPolicy
from .section import plain

__all__ = ["build_column", "describe_column", "ends_with_a_day", "type_range"]

Scalar = bool | int | Fraction | str | None

_INTEGER_BITS = {Kind.SMALLINT: 16, Kind.INTEGER: 32, Kind.BIGINT: 64}
_FLOAT_MAX = {
    Kind.REAL: Fraction(struct.unpack("<f", b"\xff\xff\x7f\x7f")[0]),
    Kind.DOUBLE: Fraction(struct.unpack("<d", b"\xff\xff\xff\xff\xff\xff\xef\x7f")[0]),
}
_EPOCH = datetime(1970, 1, 1)
_DAY = 24 * 60 * 60 * 10**6


def type_range(kind: SqlType) -> tuple[Fraction, Fraction] | None:
    """Return the least and the greatest finite value of a number type; None if it has none."""
    if kind.is_integer:
        half = 2 ** (_INTEGER_BITS[kind.kind] - 1)
        return Fraction(-half), Fraction(half - 1)
    if kind.is_float:
        return -_FLOAT_MAX[kind.kind], _FLOAT_MAX[kind.kind]
    if kind.kind is Kind.NUMERIC and kind.precision is not None:
        greatest = Fraction(10**kind.precision - 1, 10 ** (kind.scale or 0))
        return -greatest, greatest
    return None


def describe_column(live: LiveColumn) -> Column:
    """Return a column of a public table that the policy says nothing about: all that is known is enforced."""
    return Column(live.name, comparable_type(live), _enforced(live), values=_own_values(live))


def _enforced(live: LiveColumn) -> Enforced:
    labels = live.enum_values
    most = live.max_length if labels is None else max(map(len, labels), default=0)
    return Enforced(live.not_null, live.lo, live.hi, most)


def build_column(where: str, declared: ColumnPolicy, live: LiveColumn) -> Column:
    """Return the catalog's column. `where` is the file and the column's key, for messages.

    Ensures: bounds lie within the type's range with lower <= upper; values are distinct values of the
    type. A column of a small public type (ENUM, BOOLEAN) has its own values unless others are declared,
    NULL among them when the engine allows it. A number without a fixed scale has the decimals of a step
    that is a power of ten. Raises PolicyError.
    """
    if live.is_generated:
        _fail(where, "", "is computed when it is read and may fail on a row; store it, or take it out")
    if live.refused:
        _fail(where, "", live.refused)
    if live.type.kind is Kind.TEXT:
        _refuse_for_text(where, declared)
    elif declared.max_length is not None:
        _fail(where, "max_length", f"is for text, and the column is {live.type}; take it out")
    if live.engine_type == OPEN_NUMERIC and declared.step is not None:
        live = replace(live, type=_type_of_step(f"{where}.step", declared.step))
    return Column(
        name=declared.name,
        type=comparable_type(live),
        enforced=_enforced(live),
        bounds=None if declared.bounds is None else _bounds(f"{where}.bounds", declared.bounds, live.type),
        step=None if declared.step is None else _step(f"{where}.step", declared.step, live.type),
        values=_own_values(live) if declared.values is None else _values(f"{where}.values", declared, live),
        max_length=declared.max_length,
        description=declared.description,
        randomized=_channel(where, declared, live),
        is_complete=declared.complete,
    )


def _channel(where: str, declared: ColumnPolicy, live: LiveColumn) -> Channel | None:
    """Return by which coins the column's answers were randomised, the values in their declared order."""
    coins, where = declared.randomized, f"{where}.randomized"
    if coins is None:
        return None
    if not (live.type.kind in (Kind.TEXT, Kind.BOOLEAN) or live.type.is_integer):
        _fail(
            where, "", f"is for text, whole numbers and booleans, and the column is {live.type}; take it out"
        )
    if declared.bounds is not None:
        _fail(
            where, "", "the column has bounds too; its values say all that there is, so take the bounds out"
        )
    values = declared.values
    if values is None:
        _fail(where, "", "needs values: all answers that could be given, in one list")
    if len(values) < 2:
        _fail(
            where, "", "there is one value alone, and nothing to randomise it with; list all, or take it out"
        )
    if None not in values and not live.not_null:
        _fail(
            where, "",
            "the column may hold NULL, which is not among its values, and so was not randomised: it would tell who did "
            "not answer; make the column NOT NULL, or add { null = true } to its values if it was randomised too",
        )  # fmt: skip
    try:
        return _coins(coins, values)
    except ValueError as error:
        _fail(where, "", f"{error}; {_likeliest(coins, len(values))}")


def _coins(coins: RandomizedPolicy, values: tuple[Key, ...]) -> Channel:
    """Return the channel of the declared coins. Raises ValueError."""
    if coins.epsilon is not None:
        return Channel.of_epsilon(len(values), coins.epsilon)
    assert coins.p is not None
    if coins.q is None:
        return Channel.of_truth(len(values), coins.p)
    if set(values) != {True, False}:
        raise ValueError("p and q are Pr[true | true] and Pr[true | false], for values = [true, false]")
    return Channel.of_bit(coins.p, coins.q, values.index(True))


def _likeliest(coins: RandomizedPolicy, size: int) -> str:
    if coins.epsilon is not None:
        return "write another"
    if coins.q is not None:
        return "write 0 < q < p < 1"
    return f"write a p above {plain(Fraction(1, size))} and below 1"


def _fail(where: str, key: str, problem: str) -> NoReturn:
    raise PolicyError(f"{where}{'.' if key else ''}{key}: {problem}")


def _type_of_step(where: str, step: Fraction) -> SqlType:
    """Return the type at which a number without a fixed scale is read so that a step is exact in it."""
    for scale in range(MAX_SCALE + 1):
        if step == Fraction(1, 10**scale):
            return open_numeric(scale)
    if step < Fraction(1, 10**MAX_SCALE):
        _fail(where, "", f"is finer than {plain(Fraction(1, 10**MAX_SCALE))}; write that, or more")
    return open_numeric()


def _refuse_for_text(where: str, declared: ColumnPolicy) -> None:
    if declared.bounds is not None:
        _fail(where, "bounds", "is for numbers and dates, and the column is text; write max_length or values")
    if declared.step is not None:
        _fail(where, "step", "is for numbers, and the column is text; take it out")


def _bounds(where: str, bounds: tuple[Bound, Bound], kind: SqlType) -> tuple[Fraction, Fraction]:
    """Return bounds in the catalog's units (days, microseconds), cut to what the type can hold.

    A date that ends those of a timestamp is all of that day, in UTC: else its rows would be clamped to midnight.
    """
    if not (kind.is_number or kind.is_temporal):
        _fail(where, "", f"is for numbers and dates, and the column is {kind}; take it out")
    lower, upper = (_bound(where, bound, kind) for bound in bounds)
    if ends_with_a_day(bounds, kind):
        upper += _DAY - 1
    if kind.is_integer and (lower.denominator != 1 or upper.denominator != 1):
        inner = f"[{-(-lower // 1)}, {upper // 1}]"
        _fail(where, "", f"the column is {kind}; write whole numbers, like {inner}")
    span = type_range(kind)
    if span is not None:
        if upper < span[0] or lower > span[1]:
            _fail(where, "", f"no {kind} lies between {plain(lower)} and {plain(upper)}; write other bounds")
        lower, upper = max(lower, span[0]), min(upper, span[1])
    return lower, upper


def ends_with_a_day(bounds: tuple[Bound, Bound], kind: SqlType) -> bool:
    """Say whether the upper end of a timestamp's bounds is a whole day."""
    return kind.kind is Kind.TIMESTAMP and not isinstance(bounds[1], (datetime, Fraction))


def _bound(where: str, bound: Bound, kind: SqlType) -> Fraction:
    if kind.is_number and isinstance(bound, Fraction):
        return bound
    if kind.kind is Kind.DATE and isinstance(bound, date) and not isinstance(bound, datetime):
        return Fraction((bound - _EPOCH.date()).days)
    if kind.kind is Kind.TIMESTAMP and isinstance(bound, date):
        moment = bound if isinstance(bound, datetime) else datetime(bound.year, bound.month, bound.day)
        return Fraction((moment - _EPOCH) // timedelta(microseconds=1))
    example = {
        Kind.DATE: "dates, like [2020-01-01, 2020-12-31]",
        Kind.TIMESTAMP: "date-times, like [2020-01-01T00:00:00, 2020-12-31T23:59:59]",
    }.get(kind.kind, "numbers")
    _fail(where, "", f"the column is {kind}; write {example}")


def _step(where: str, step: Fraction, kind: SqlType) -> Fraction:
    if not kind.is_number:
        _fail(where, "", f"is for numbers, and the column is {kind}; take it out")
    if kind.is_integer and step.denominator != 1:
        _fail(where, "", f"the column is {kind}; write a whole number")
    if kind.kind is Kind.NUMERIC and kind.precision is not None:
        unit = Fraction(1, 10 ** (kind.scale or 0))
        if (step / unit).denominator != 1:
            _fail(where, "", f"the column is {kind}; write a multiple of {plain(unit)}")
    return step


def _own_values(live: LiveColumn) -> tuple[Scalar, ...] | None:
    """Return the values that the type itself makes public, NULL last if the engine allows it."""
    if live.type.kind is Kind.BOOLEAN:
        own: tuple[Scalar, ...] = (False, True)
    elif live.enum_values is not None and live.type.kind is Kind.TEXT:
        own = live.enum_values
    else:
        return None
    return own if live.not_null else (*own, None)


def _values(where: str, declared: ColumnPolicy, live: LiveColumn) -> tuple[Scalar, ...]:
    values: list[Scalar] = []
    if live.type.is_float or live.type.kind in (Kind.OPAQUE, Kind.INTERVAL):
        _fail(where, "", f"the column is {live.type}, which cannot be a group key; take it out")
    for key in declared.values or ():
        value = None if key is None else _value(where, key, live)
        if value in values:
            _fail(where, "", f"{_show(value)} is listed twice; list it once")
        limit = declared.max_length  # Only text has one.
        if limit is not None and isinstance(value, str) and len(value) > limit:
            _fail(where, "", f"{_show(value)} is longer than max_length {limit}; raise that")
        values.append(value)
    return tuple(values)


def _value(where: str, key: Key, live: LiveColumn) -> Scalar:
    """Return one key in the type's own canonical form: dates and date-times as ISO text."""
    kind = live.type.kind
    if kind is Kind.BOOLEAN and isinstance(key, bool):
        return key
    if kind is Kind.TEXT and isinstance(key, str):
        if live.enum_values is not None and key not in live.enum_values:
            _fail(where, "", f"{_show(key)} is not a label of the column's enum; write one, or take it out")
        return key
    if kind is Kind.DATE and isinstance(key, date) and not isinstance(key, datetime):
        return key.isoformat()
    if kind is Kind.TIMESTAMP and isinstance(key, date):
        moment = key if isinstance(key, datetime) else datetime(key.year, key.month, key.day)
        return moment.isoformat(sep=" ")
    if live.type.is_number and isinstance(key, Fraction):
        return _number(where, key, live.type)
    example = {
        Kind.BOOLEAN: "true and false",
        Kind.TEXT: "text in quotes",
        Kind.DATE: "dates, like 2020-12-31",
        Kind.TIMESTAMP: "date-times, like 2020-12-31T00:00:00",
    }.get(kind, "numbers")
    _fail(where, "", f"{_show(key)} does not fit in {live.type}; write {example}")


def _number(where: str, key: Fraction, kind: SqlType) -> Scalar:
    span = type_range(kind)
    if span is not None and not span[0] <= key <= span[1]:
        _fail(where, "", f"{plain(key)} does not fit in {kind}; take it out")
    if kind.is_integer:
        if key.denominator != 1:
            _fail(where, "", f"{plain(key)} does not fit in {kind}; write whole numbers")
        return int(key)
    if kind.precision is not None and (key * 10 ** (kind.scale or 0)).denominator != 1:
        _fail(where, "", f"{plain(key)} has more digits than {kind} holds; round it")
    return key


def _show(value: Key | Scalar) -> str:
    match value:
        case None:
            return "{ null = true }"
        case bool():
            return str(value).lower()
        case str():
            return f'"{value}"'
        case Fraction():
            return plain(value)
        case date():
            return value.isoformat()
        case _:
            return str(value)
