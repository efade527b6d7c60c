"""The table of scalar functions and operators: everything that a `Call` may name.

A function that is not in this table does not exist for the analyst (law L4). `result` gives the SQL
type for the argument types, None when they do not fit. `private` says that the function may run on
private rows: it is deterministic, reads nothing but its arguments, and has a total printed form
(law L2; soundness.md 1.11). The others stand above the door alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .expressions import Expr, Literal
from .types import (
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    NULL,
    NUMERIC,
    TEXT,
    TIMESTAMP,
    Kind,
    SqlType,
)

__all__ = ["FUNCTIONS", "Function", "common_type", "promote"]

Args = tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Function:
    """A row of the table."""

    name: str
    result: Callable[[Args], SqlType | None]
    private: bool = True


_RANK = {
    Kind.SMALLINT: 0, Kind.INTEGER: 1, Kind.BIGINT: 2, Kind.NUMERIC: 3, Kind.REAL: 4, Kind.DOUBLE: 5,
}  # fmt: skip


def promote(left: SqlType, right: SqlType) -> SqlType | None:
    """Return the type of arithmetic between two number types, as Postgres has it; None for others."""
    if left.kind is Kind.NULL:
        left = right
    if right.kind is Kind.NULL:
        right = left
    if not (left.is_number and right.is_number):
        return None
    if left.is_float or right.is_float:
        return left if left == right else DOUBLE
    if left.kind is Kind.NUMERIC or right.kind is Kind.NUMERIC:
        return NUMERIC
    return max((left, right), key=lambda t: _RANK[t.kind])


def common_type(types: list[SqlType]) -> SqlType | None:
    """Return the one type that all can be read as (CASE branches, IN lists, UNION columns)."""
    known = [t for t in types if t.kind is not Kind.NULL]
    if not known:
        return NULL
    best = known[0]
    for other in known[1:]:
        if other == best:
            continue
        if best.kind is Kind.NUMERIC and other.kind is Kind.NUMERIC:
            scales = (best.scale, other.scale)
            scale = None if None in scales else max(s for s in scales if s is not None)
            best = SqlType(Kind.NUMERIC, None if scale is None else 38, scale)
            continue
        both = promote(best, other)
        if both is None and best.is_temporal and other.is_temporal:
            both = TIMESTAMP
        if both is None:
            return None
        best = both
    return best


def _scale(type_: SqlType) -> int | None:
    return 0 if type_.is_integer else type_.scale


def _scaled(type_: SqlType, args: Args, combine: Callable[[int, int], int]) -> SqlType:
    """Carry the decimal scale of + - * through NUMERIC, as Postgres prints it."""
    if type_.kind is not Kind.NUMERIC:
        return type_
    left, right = _scale(args[0].type), _scale(args[1].type)
    if left is None or right is None:
        return NUMERIC
    return SqlType(Kind.NUMERIC, 38, min(combine(left, right), 30))


def _add(args: Args) -> SqlType | None:
    left, right = args[0].type, args[1].type
    if right.kind is Kind.INTERVAL and left.is_temporal:
        return TIMESTAMP
    if left.kind is Kind.INTERVAL and right.is_temporal:
        return TIMESTAMP
    if left.kind is Kind.DATE and right.is_integer:
        return DATE
    both = promote(left, right)
    return both and _scaled(both, args, max)


def _sub(args: Args) -> SqlType | None:
    left, right = args[0].type, args[1].type
    if left.is_temporal and right.kind is Kind.INTERVAL:
        return TIMESTAMP
    if left.kind is Kind.DATE and right.kind is Kind.DATE:
        return INTEGER
    if left.kind is Kind.DATE and right.is_integer:
        return DATE
    both = promote(left, right)
    return both and _scaled(both, args, max)


def _mul(args: Args) -> SqlType | None:
    both = promote(args[0].type, args[1].type)
    return both and _scaled(both, args, lambda a, b: a + b)


def _div(args: Args) -> SqlType | None:
    both = promote(args[0].type, args[1].type)
    return NUMERIC if both is not None and both.kind is Kind.NUMERIC else both


def _mod(args: Args) -> SqlType | None:
    both = promote(args[0].type, args[1].type)
    return None if both is None or both.is_float else both


def _same_number(args: Args) -> SqlType | None:
    return args[0].type if args[0].type.is_number else None


def _comparable(args: Args) -> SqlType | None:
    if any(arg.type.kind is Kind.OPAQUE and arg.type.engine is None for arg in args):
        return None  # nested types, collated text, …: equality is not that of the values, or may raise
    return BOOLEAN if common_type([arg.type for arg in args]) is not None else None


def _booleans(args: Args) -> SqlType | None:
    return BOOLEAN if all(arg.type.kind in (Kind.BOOLEAN, Kind.NULL) for arg in args) else None


def _common(args: Args) -> SqlType | None:
    return common_type([arg.type for arg in args])


def _case(args: Args) -> SqlType | None:
    conditions, values = args[0:-1:2], (*args[1:-1:2], args[-1])
    return common_type([v.type for v in values]) if _booleans(conditions) else None


def _round(args: Args) -> SqlType | None:
    first = args[0].type
    if not first.is_number:
        return None
    if len(args) == 1:
        return DOUBLE if first.is_float else SqlType(Kind.NUMERIC, 38, 0)
    digits = args[1]
    if first.is_float or not isinstance(digits, Literal) or not isinstance(digits.value, int):
        return None
    return SqlType(Kind.NUMERIC, 38, max(0, digits.value))


def _whole(args: Args) -> SqlType | None:
    if not args[0].type.is_number:
        return None
    return DOUBLE if args[0].type.is_float else SqlType(Kind.NUMERIC, 38, 0)


def _real(args: Args) -> SqlType | None:
    if not all(arg.type.is_number for arg in args):
        return None
    return NUMERIC if any(arg.type.kind is Kind.NUMERIC for arg in args) else DOUBLE


def _double(args: Args) -> SqlType | None:
    return DOUBLE if args[0].type.is_number else None


def _power(args: Args) -> SqlType | None:
    if not all(arg.type.is_number for arg in args):
        return None
    floats = any(arg.type.is_float for arg in args)
    return NUMERIC if not floats and any(arg.type.kind is Kind.NUMERIC for arg in args) else DOUBLE


def _text(result: SqlType, count: int) -> Callable[[Args], SqlType | None]:
    def resolve(args: Args) -> SqlType | None:
        texts = args[:count]
        return result if all(arg.type.kind in (Kind.TEXT, Kind.NULL) for arg in texts) else None

    return resolve


def _text_integers(args: Args) -> SqlType | None:
    if args[0].type.kind is not Kind.TEXT or not all(arg.type.is_integer for arg in args[1:]):
        return None
    return TEXT


def _concat(args: Args) -> SqlType | None:
    return TEXT if all(a.type.kind not in (Kind.INTERVAL, Kind.OPAQUE) for a in args) else None


def _extract(args: Args) -> SqlType | None:
    return NUMERIC if args[1].type.is_temporal else None


def _date_trunc(args: Args) -> SqlType | None:
    return TIMESTAMP if args[1].type.is_temporal else None


def _cast(args: Args) -> SqlType | None:
    raise AssertionError("casts carry their type")


def _any_number(args: Args) -> SqlType | None:
    return DOUBLE if args[0].type.is_number else None


_TABLE = (
    Function("add", _add),
    Function("sub", _sub),
    Function("mul", _mul),
    Function("div", _div),
    Function("mod", _mod),
    Function("neg", _same_number),
    Function("abs", _same_number),
    *(Function(name, _comparable) for name in ("eq", "ne", "lt", "le", "gt", "ge", "in")),
    Function("is_not_distinct", _comparable),
    Function("is_null", lambda args: BOOLEAN),
    Function("is_true", _booleans),
    Function("is_false", _booleans),
    Function("and", _booleans),
    Function("or", _booleans),
    Function("not", _booleans),
    Function("like", _text(BOOLEAN, 2)),
    Function("case", _case),
    Function("coalesce", _common),
    Function("greatest", _common),
    Function("least", _common),
    Function("nullif", lambda args: args[0].type if _comparable(args) else None),
    Function("round", _round),
    Function("floor", _whole),
    Function("ceil", _whole),
    Function("trunc", _round),
    Function("sqrt", _real),
    Function("ln", _real),
    Function("log", _real),
    Function("exp", _real),
    Function("power", _power),
    Function("sign", _same_number),
    Function("sin", _double),
    Function("cos", _double),
    Function("atan", _double),
    Function("tanh", _double),
    Function("lower", _text(TEXT, 1)),
    Function("upper", _text(TEXT, 1)),
    Function("trim", _text(TEXT, 1)),
    Function("ltrim", _text(TEXT, 1)),
    Function("rtrim", _text(TEXT, 1)),
    Function("length", _text(INTEGER, 1)),
    Function("position", _text(INTEGER, 2)),
    Function("substr", _text_integers),
    Function("left", _text_integers),
    Function("right", _text_integers),
    Function("concat", _concat),
    Function("concat_op", _concat),
    Function("extract", _extract),
    Function("date_trunc", _date_trunc),
    Function("cast", _cast),
    Function("dp_low", _any_number, private=False),
    Function("dp_high", _any_number, private=False),
)

FUNCTIONS = {function.name: function for function in _TABLE}
"""Name -> row of the table."""
