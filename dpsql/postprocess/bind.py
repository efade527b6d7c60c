"""Operands bound once, and the few casts that every form of `null_on_error` begins or ends with.

How large a number can be is told by its type and operators alone: what cannot overflow needs no look at each value.

`estimated(x, variance, number, …)` is x where it is shown. Where the truth is simulated, it is x with a normal error of
that variance: one deviate for each estimate of the statement, row and draw.
"""

from __future__ import annotations

import math

from ..relation.expressions import Call, Expr, map_children, walk
from ..relation.types import DOUBLE, Kind, SqlType

_ENGINE_TYPES = {
    Kind.BOOLEAN: "BOOLEAN",
    Kind.SMALLINT: "SMALLINT",
    Kind.INTEGER: "INTEGER",
    Kind.BIGINT: "BIGINT",
    Kind.NUMERIC: "DOUBLE",
    Kind.REAL: "FLOAT",
    Kind.DOUBLE: "DOUBLE",
    Kind.TEXT: "VARCHAR",
    Kind.DATE: "DATE",
    Kind.TIMESTAMP: "TIMESTAMP",
    Kind.TIME: "TIME",
    Kind.INTERVAL: "INTERVAL",
    Kind.NULL: "VARCHAR",
    Kind.JSON: "VARCHAR",
    Kind.JSONB: "VARCHAR",
}


def engine_type(declared: SqlType) -> str:
    """Return the DuckDB type that carries `declared`; ValueError for OPAQUE, which is never released."""
    if declared.element is not None:
        return f"{engine_type(declared.element)}[]"
    if declared.kind not in _ENGINE_TYPES:
        raise ValueError(f"a value of type {declared} is never released")
    return _ENGINE_TYPES[declared.kind]


def keep(operand: str, condition: str) -> str:
    """Return `operand` where `condition` holds of it, as v; else NULL."""
    return f"list_filter([{operand}], lambda v: {condition})[1]"


def bind(operand: str, body: str, name: str = "v") -> str:
    """Return `body` with `operand` bound to `name`."""
    return f"list_transform([{operand}], lambda {name}: {body})[1]"


def finite(operand: str) -> str:
    """Return a DOUBLE or FLOAT where it is finite; else NULL."""
    return keep(operand, "isfinite(v)")


def to_wide(operand: str) -> str:
    """Return an integer as HUGEINT, NULL beyond BIGINT: no sum, difference or product of two overflows."""
    return f"CAST(TRY_CAST(({operand}) AS BIGINT) AS HUGEINT)"


def to_integer(expression: str, result: SqlType) -> str:
    """Return a number as an integer type; NULL beyond its range."""
    return f"TRY_CAST(({expression}) AS {engine_type(result)})"


def to_double(operand: str) -> str:
    """Return a number as DOUBLE."""
    return f"CAST(({operand}) AS DOUBLE)"


def to_float(expression: str, result: SqlType) -> str:
    """Return the finite values of a DOUBLE, rounded to single precision when `result` is REAL."""
    return finite(f"TRY_CAST(({expression}) AS FLOAT)" if result.kind is Kind.REAL else expression)


def to_text(operand: str) -> str:
    """Return any value as VARCHAR."""
    return f"CAST(({operand}) AS VARCHAR)"


def to_int32(operand: str) -> str:
    """Return a number as INTEGER; NULL beyond its range."""
    return f"TRY_CAST(({operand}) AS INTEGER)"


# --- how large a number can be, by its type and operators alone ---------------------------------------------


_LIMIT = 1e300
_WIDEST_INTEGER = 2.0**63


def cannot_overflow(expr: Expr) -> bool:
    """Say whether a sum, difference or product of doubles is finite whatever its columns hold."""
    return expr.type.kind in (Kind.NUMERIC, Kind.DOUBLE) and _magnitude(expr) < _LIMIT


def _magnitude(expr: Expr) -> float:
    """Return what the absolute value of an expression never exceeds, rounded up; infinite when not known."""
    if expr.is_constant:
        is_number = expr.type.is_number and expr.constant is not None
        return abs(float(expr.constant)) * 2 if is_number else math.inf  # type: ignore[arg-type]
    if expr.type.is_integer:
        return _WIDEST_INTEGER
    if expr.type.kind is Kind.NUMERIC and expr.type.precision is not None:
        return 10.0 ** (expr.type.precision - (expr.type.scale or 0) + 1)
    if expr.calls("add", "sub", "mul"):
        left, right = map(_magnitude, expr.args)
        return 2 * (left * right if expr.calls("mul") else left + right)
    return math.inf


# --- the own error of estimates over randomised answers, as simulated error bars have it (soundness.md 1.24) ---


def holds_estimate(expr: Expr) -> bool:
    """Say whether an expression has an error of its own, whatever is under it."""
    return any(part.calls("estimated") for part in walk(expr))


def with_own_error(expr: Expr, draw: Expr, row: tuple[Expr, ...]) -> Expr:
    """Return an expression with each estimate at a draw of its error; NULL where its variance is not known."""
    if not expr.calls("estimated"):
        return map_children(expr, lambda child: with_own_error(child, draw, row))
    value, variance, number, _ = expr.args
    deviate = Call(DOUBLE, "deviate", (number, draw, *row))
    error = Call(DOUBLE, "mul", (Call(DOUBLE, "sqrt", (variance,)), deviate))
    return Call(DOUBLE, "add", (value, error))


def print_deviate(call: Call, args: list[str]) -> str:
    """Print a standard normal number that is a function of its arguments: of two uniform ones, as Box and Muller do.

    Hashes of several values are sums of theirs, so near ones are alike in DuckDB until they are hashed once more.
    """
    once = f"hash(hash({', '.join(args)}))"
    first, second = (
        f"((CAST({bits} AS DOUBLE) + 1e0) / 18446744073709551616e0)" for bits in (once, f"hash({once})")
    )
    return f"(sqrt(-2e0 * ln({first})) * cos(6.283185307179586e0 * {second}))"
