"""Operands bound once, and the few casts that every form of `null_on_error` begins or ends with."""

from __future__ import annotations

from ..relation.types import Kind, SqlType

__all__ = [
    "bind", "engine_type", "finite", "keep",
    "to_double", "to_float", "to_int32", "to_integer", "to_text", "to_wide",
]  # fmt: skip

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
