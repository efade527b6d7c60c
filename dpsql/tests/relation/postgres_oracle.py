"""An expression's value as Postgres defines it, on exact Python values: the oracle of the private printer.

Values: int and Fraction for numbers, str, bool, days for DATE, microseconds for TIMESTAMP, None for NULL.
"""

from __future__ import annotations

import datetime
import hashlib
import math
import re
import zoneinfo
from collections.abc import Sequence
from fractions import Fraction

from dpsql.relation.calendar import DAY
from dpsql.relation.expressions import Call, Expr, Field, Literal, Months, walk
from dpsql.relation.types import TIMESTAMP, Kind, SqlType
from dpsql.sql.literals import add_months

__all__ = ["evaluate", "is_exact"]

Value = bool | int | Fraction | str | None
_EPOCH = datetime.datetime(1970, 1, 1)
_HELD = frozenset(
    {"to_char", "age_seconds", "regexp_matches", "regexp_matches_no_case", "regexp_like", "similar_to", "regexp_replace",
     "regexp_substr", "substring_matching", "to_date_of", "to_timestamp_by"}
)  # fmt: skip
"""What is held against a real Postgres: conformance/test_moments, test_patterns_of_rows and test_moments_of_texts (and
texts that are cast to moments), sql/test_ages."""
_REALS = frozenset({"sqrt", "ln", "log", "exp", "sin", "cos", "atan", "tanh", "power"})


def is_exact(expr: Expr) -> bool:
    """Say whether every step of an expression has an exact value."""
    for part in walk(expr):
        if part.type.is_float or (isinstance(part, Call) and part.function in _REALS):
            return False
        if isinstance(part, Call) and part.function == "div" and not part.type.is_integer:
            return False
        if isinstance(part, Call) and part.function in _HELD:
            return False
        if part.calls("cast") and part.type.is_temporal and part.args[0].type.kind is Kind.TEXT:
            return False
    return True


def evaluate(expr: Expr, row: Sequence[Value]) -> Value:
    """Return the value of an expression over a row."""
    if isinstance(expr, Field):
        return row[expr.index]
    if isinstance(expr, Literal):
        assert not isinstance(expr.value, (float, Months))
        return expr.value
    assert isinstance(expr, Call)
    name = expr.function
    if name in ("add", "sub") and any(arg.type.kind is Kind.INTERVAL for arg in expr.args):
        return _shift(expr, row)
    if name == "date_bin":
        return _bin(expr, row)
    if name == "case":
        return _case(expr, row)
    args = [evaluate(arg, row) for arg in expr.args]
    if name in _NULL_WISE:
        return _NULL_WISE[name](args)
    if name == "concat":
        pairs = zip(args, expr.args, strict=True)
        return "".join(_text(arg, part.type) for arg, part in pairs if arg is not None)
    if any(arg is None for arg in args):
        return None
    if name == "cast":
        return _cast(args[0], expr.args[0].type, expr.type)
    if name == "concat_op":
        return "".join(_text(arg, part.type) for arg, part in zip(args, expr.args, strict=True))
    if name == "time_of_day":
        return 0 if expr.args[0].type.kind is Kind.DATE else args[0] % DAY
    if name in ("date_trunc", "extract"):
        return _calendar(name, str(args[0]), args[1], expr.args[1].type)
    if name in _ZONED:
        return _ZONED[name](args)
    return _STRICT[name](args)


def _case(expr: Call, row: Sequence[Value]) -> Value:
    for index in range(0, len(expr.args) - 1, 2):
        if evaluate(expr.args[index], row) is True:
            return evaluate(expr.args[index + 1], row)
    return evaluate(expr.args[-1], row)


def _shift(expr: Call, row: Sequence[Value]) -> Value:
    at = evaluate(expr.args[0], row)
    interval = expr.args[1]
    assert isinstance(interval, Literal)
    assert isinstance(interval.value, Months)
    if at is None:
        return None
    assert isinstance(at, int)
    start = at * DAY if expr.args[0].type.kind is Kind.DATE else at
    return add_months(start, interval.value, -1 if expr.function == "sub" else 1)


_UTC = _EPOCH.replace(tzinfo=datetime.UTC)


def _clock(moment: int, zone: str) -> int:
    """Return what a zone's clocks show at a moment."""
    at = (_UTC + datetime.timedelta(microseconds=moment)).astimezone(zoneinfo.ZoneInfo(zone))
    return (at.replace(tzinfo=None) - _EPOCH) // datetime.timedelta(microseconds=1)


def _moment(clock: int, zone: str) -> int:
    """Return when clocks show it: skipped by the zone's offset before, shown twice by the one after: the smaller."""
    shown = _EPOCH + datetime.timedelta(microseconds=clock)
    read = [shown.replace(tzinfo=zoneinfo.ZoneInfo(zone), fold=fold).utcoffset() for fold in (0, 1)]
    return clock - min(offset for offset in read if offset is not None) // datetime.timedelta(microseconds=1)


def _zone_cut(args: list[Value]) -> Value:
    unit, moment, zone = args
    clock = _clock(moment, zone)
    start = _calendar("date_trunc", unit, clock, TIMESTAMP)
    return moment - (clock - start) if unit in ("hour", "minute") else _moment(start, zone)


_ZONED = {
    "zone_clock": lambda args: _clock(*args), "zone_moment": lambda args: _moment(*args), "zone_cut": _zone_cut,
}  # fmt: skip


def _bin(expr: Call, row: Sequence[Value]) -> Value:
    width, at, origin = expr.args[0], evaluate(expr.args[1], row), evaluate(expr.args[2], row)
    assert isinstance(width, Literal)
    assert isinstance(width.value, Months)
    if at is None:
        return None
    assert isinstance(at, int)
    assert isinstance(origin, int)
    step = width.value.days * DAY + width.value.microseconds
    moment = at * DAY if expr.args[1].type.kind is Kind.DATE else at
    return origin + (moment - origin) // step * step


def _and(args: list[Value]) -> Value:
    return False if any(a is False for a in args) else None if None in args else True


def _or(args: list[Value]) -> Value:
    return True if any(a is True for a in args) else None if None in args else False


def _in(args: list[Value]) -> Value:
    if args[0] is None:
        return None
    return True if args[0] in [a for a in args[1:] if a is not None] else None if None in args[1:] else False


def _nullif(args: list[Value]) -> Value:
    return None if args[0] is not None and args[0] == args[1] else args[0]


def _kept(args: list[Value]) -> list[Value]:
    return [arg for arg in args if arg is not None]


_NULL_WISE = {
    "and": _and, "or": _or, "in": _in, "nullif": _nullif,
    "coalesce": lambda args: next(iter(_kept(args)), None),
    "greatest": lambda args: max(_kept(args), default=None), "least": lambda args: min(_kept(args), default=None),
    "is_null": lambda args: args[0] is None, "is_true": lambda args: args[0] is True,
    "is_false": lambda args: args[0] is False, "is_not_distinct": lambda args: args[0] == args[1],
}  # fmt: skip


def _truncated(left: Fraction, right: Fraction) -> Value:
    return None if right == 0 else math.trunc(Fraction(left) / Fraction(right))


def _remainder(args: list[Value]) -> Value:
    whole = _truncated(args[0], args[1])
    return None if whole is None else args[0] - args[1] * whole


def _half_away(value: Fraction, unit: Fraction) -> Fraction:
    count = math.floor(abs(value) / unit + Fraction(1, 2))
    return (count if value >= 0 else -count) * unit


def _unit(args: list[Value]) -> Fraction:
    return Fraction(10) ** -int(args[1]) if len(args) > 1 else Fraction(1)


def _width_bucket(args: list[Value]) -> Value:
    value, low, high, count = map(Fraction, args)
    return min(max(math.floor((value - low) / (high - low) * count) + 1, 0), int(count) + 1)


def _like(args: list[Value]) -> bool:
    text, pattern, escape = args
    out, index = "", 0
    while index < len(pattern):
        if escape and pattern[index] == escape:
            index += 1
            out += re.escape(pattern[index])
        else:
            out += {"%": ".*", "_": "."}.get(pattern[index], re.escape(pattern[index]))
        index += 1
    return re.fullmatch(out, text, re.DOTALL) is not None


_STRICT = {
    "width_bucket": _width_bucket,
    "add": lambda a: a[0] + a[1], "sub": lambda a: a[0] - a[1], "mul": lambda a: a[0] * a[1],
    "div": lambda a: _truncated(a[0], a[1]), "mod": _remainder, "neg": lambda a: -a[0], "abs": lambda a: abs(a[0]),
    "eq": lambda a: a[0] == a[1], "ne": lambda a: a[0] != a[1], "lt": lambda a: a[0] < a[1],
    "le": lambda a: a[0] <= a[1], "gt": lambda a: a[0] > a[1], "ge": lambda a: a[0] >= a[1], "not": lambda a: not a[0],
    "round": lambda a: _half_away(Fraction(a[0]), _unit(a)), "trunc": lambda a: math.trunc(a[0] / _unit(a)) * _unit(a),
    "floor": lambda a: math.floor(a[0]), "ceil": lambda a: math.ceil(a[0]), "sign": lambda a: (a[0] > 0) - (a[0] < 0),
    "lower": lambda a: a[0].lower(), "upper": lambda a: a[0].upper(), "trim": lambda a: a[0].strip(" "),
    "ltrim": lambda a: a[0].lstrip(" "), "rtrim": lambda a: a[0].rstrip(" "), "length": lambda a: len(a[0]),
    "position": lambda a: a[0].find(a[1]) + 1, "left": lambda a: a[0][: a[1]],
    "right": lambda a: a[0][max(len(a[0]) - a[1], 0) :], "like": _like,
    "split_part": lambda a: ((a[0].split(a[1]) if a[1] else [a[0]]) + [""] * a[2])[a[2] - 1],
    "replace": lambda a: a[0].replace(a[1], a[2]) if a[1] else a[0],
    "md5": lambda a: hashlib.md5(a[0].encode(), usedforsecurity=False).hexdigest(),
    "substr": lambda a: a[0][a[1] - 1 :] if len(a) == 2 else a[0][a[1] - 1 : a[1] - 1 + a[2]],
}  # fmt: skip


def _cast(value: Value, source: SqlType, target: SqlType) -> Value:
    if target.kind is Kind.TEXT:
        return _text(value, source)
    if source.is_temporal:
        days = value if source.kind is Kind.DATE else value // DAY
        whole = value if source.kind is Kind.TIMESTAMP else value * DAY
        return days if target.kind is Kind.DATE else whole
    if target.is_integer:
        return int(_half_away(Fraction(value), Fraction(1)))
    return value if target.scale is None else _half_away(Fraction(value), Fraction(1, 10**target.scale))


def _text(value: Value, type_: SqlType) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if type_.kind is Kind.DATE:
        return (_EPOCH.date() + datetime.timedelta(days=value)).isoformat()
    if type_.kind is Kind.NUMERIC and type_.scale:
        whole, part = divmod(abs(value) * 10**type_.scale // 1, 10**type_.scale)
        return f"{'-' if value < 0 else ''}{whole}.{str(part).rjust(type_.scale, '0')}"
    return str(value)


def _calendar(name: str, unit: str, value: Value, type_: SqlType) -> Value:
    at = _EPOCH + datetime.timedelta(microseconds=value * (DAY if type_.kind is Kind.DATE else 1))
    midnight = at.replace(hour=0, minute=0, second=0, microsecond=0)
    iso = at.isocalendar()
    if name == "extract":
        return {"year": at.year, "quarter": (at.month + 2) // 3, "month": at.month, "week": iso[1], "day": at.day,
                "doy": at.timetuple().tm_yday, "dow": iso[2] % 7, "isodow": iso[2], "hour": at.hour,
                "minute": at.minute, "isoyear": iso[0], "second": Fraction(at.second * 10**6 + at.microsecond, 10**6),
                "epoch": Fraction((at - _EPOCH) // datetime.timedelta(microseconds=1), 10**6)}[unit]  # fmt: skip
    start = {"minute": at.replace(second=0, microsecond=0), "hour": at.replace(minute=0, second=0, microsecond=0),
             "day": midnight, "week": midnight - datetime.timedelta(days=at.weekday()),
             "month": midnight.replace(day=1),
             "quarter": midnight.replace(month=(at.month - 1) // 3 * 3 + 1, day=1),
             "year": midnight.replace(month=1, day=1)}[unit]  # fmt: skip
    return (start - _EPOCH) // datetime.timedelta(microseconds=1)
