"""Casts, NULL on error; `null_on_error` has the house rules."""

from __future__ import annotations

from ..relation.types import Kind, SqlType
from .bind import bind, engine_type, finite, keep, to_double, to_float, to_integer, to_text, to_wide
from .null_on_error_rounding import DECIMAL_DIGITS, decimal, round_half_away

__all__ = ["cast"]

_SPACES = "chr(32) || chr(9) || chr(10) || chr(11) || chr(12) || chr(13)"
_TRUE = "'t', 'tr', 'tru', 'true', 'y', 'ye', 'yes', 'on', '1'"
_FALSE = "'f', 'fa', 'fal', 'fals', 'false', 'n', 'no', 'of', 'off', '0'"
_WHOLE = "[+-]?[0-9]+"
_NUMBER = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_TIME = r"[0-9]{1,2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6})?)?"
_MOMENT = rf"[0-9]{{4}}-[0-9]{{1,2}}-[0-9]{{1,2}}(?:[ T]{_TIME})?"


def cast(operand: str, source: SqlType, target: SqlType) -> str:
    """Return `CAST(operand AS target)` by Postgres' rules; NULL for what does not fit or does not parse.

    Doubles round half to even on their way to integers, NUMERIC half away from zero. Dates and
    timestamps parse from ISO text with years 0001 to 9999 alone. Raises ValueError for a pair of
    types that has no cast here.
    """
    if source.kind is Kind.NULL:
        return f"CAST(({operand}) AS {engine_type(target)})"
    if target.is_integer:
        return _cast_to_integer(operand, source, target)
    if target.kind is Kind.NUMERIC or target.is_float:
        return _cast_to_fraction(operand, source, target)
    if target.kind is Kind.TEXT:
        return _cast_to_text(operand, source)
    if source.kind is Kind.TEXT and target.kind is Kind.BOOLEAN:
        body = f"CASE WHEN v IN ({_TRUE}) THEN true WHEN v IN ({_FALSE}) THEN false END"
        return bind(f"lower(trim({to_text(operand)}, {_SPACES}))", body)
    if source.kind is Kind.TEXT and target.is_temporal:
        moment = keep(f"TRY_CAST({_matching(operand, _MOMENT)} AS TIMESTAMP)", "v >= DATE '0001-01-01'")
        return f"CAST({moment} AS {engine_type(target)})"
    is_truth = target.kind is Kind.BOOLEAN and (source.is_integer or source.kind is Kind.BOOLEAN)
    if is_truth or (target.is_temporal and source.is_temporal):
        return f"CAST(({operand}) AS {engine_type(target)})"
    raise ValueError(f"there is no cast from {source} to {target}")


def _cast_to_integer(operand: str, source: SqlType, target: SqlType) -> str:
    if source.kind is Kind.TEXT:
        return to_integer(_matching(operand, _WHOLE), target)
    if source.kind is Kind.NUMERIC:
        return to_integer(f"round({to_double(operand)})", target)
    if source.is_number or source.kind is Kind.BOOLEAN:
        return to_integer(to_wide(operand), target)  # DuckDB 1.4 casts 32767.5 to the SMALLINT -32768
    raise ValueError(f"there is no cast from {source} to {target}")


def _cast_to_fraction(operand: str, source: SqlType, target: SqlType) -> str:
    if source.kind is Kind.TEXT:
        value = finite(f"TRY_CAST({_matching(operand, _NUMBER)} AS DOUBLE)")
    elif source.kind is Kind.REAL and target.kind is Kind.NUMERIC:
        value = to_double(to_text(operand))  # 0.1::real is 0.1, not 0.10000000149
    elif source.is_number:
        value = to_double(operand)
    else:
        raise ValueError(f"there is no cast from {source} to {target}")
    if target.kind is Kind.REAL:
        return to_float(value, target)
    if target.precision is None:
        return value
    scale = target.scale or 0
    return keep(round_half_away(value, scale), f"abs(v) < 1e{target.precision - scale}")


def _cast_to_text(operand: str, source: SqlType) -> str:
    if source.kind is Kind.NUMERIC and source.scale is not None and source.scale < DECIMAL_DIGITS:
        return bind(
            round_half_away(operand, source.scale),
            f"coalesce(CAST({decimal('v', source.scale)} AS VARCHAR), CAST(v AS VARCHAR))",
        )
    if source.is_float or source.kind is Kind.NUMERIC:
        single = "FLOAT" if source.kind is Kind.REAL else "DOUBLE"
        return f"regexp_replace(CAST(CAST(({operand}) AS {single}) AS VARCHAR), '\\.0$', '')"
    if source.kind in (Kind.INTERVAL, Kind.OPAQUE):
        raise ValueError(f"there is no cast from {source} to text")
    return to_text(operand)


def _matching(operand: str, pattern: str) -> str:
    """Return the text between spaces when it matches `pattern` as a whole, else an empty text."""
    return f"regexp_extract({to_text(operand)}, '^\\s*({pattern})\\s*$', 1)"
