"""Bins of private rows; `print_private` has the house rules."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

from ...relation.expressions import Call
from ...relation.functions.numbers import Buckets, buckets_of
from ...relation.intervals import Facts, common_grid, facts_of, undeclared
from ..dialects.private_sql import Number, integer_kind
from .private_reals import bounded, quotient, real_product, real_sum

if TYPE_CHECKING:
    from .print_private import PrivatePrinter

__all__ = ["width_bucket"]


def width_bucket(printer: PrivatePrinter, expr: Call, facts: Facts) -> Number:
    """Return the number of a bin; the share of the way is computed for every row, and no guard is relied on."""
    buckets, number = buckets_of(expr), printer.number(expr.args[0])
    is_real = buckets.of_doubles or number.grid is None  # an exact quotient is a double on private rows
    value, low, high, inside = (_of_doubles if is_real else _exact)(printer, expr, number, buckets)
    below, beyond = ("<", ">=") if buckets.rises else (">", "<=")
    sql = (
        f"CASE WHEN {value} {below} {low} THEN CAST(0 AS BIGINT) WHEN {value} {beyond} {high} "
        f"THEN {buckets.count + 1} ELSE {inside} + 1 END"
    )
    return Number(sql, Fraction(1), buckets.count + 1)


def _exact(
    printer: PrivatePrinter, expr: Call, number: Number, buckets: Buckets
) -> tuple[str, str, str, str]:
    ends = [Fraction(1, end.denominator) for end in (buckets.low, buckets.high)]
    grid = common_grid([number.grid, *ends])
    assert grid is not None
    value = printer.on_grid(number, grid, expr)
    low, high = (int(end / grid) for end in (buckets.low, buckets.high))
    reach = (value.reach + abs(low) + abs(high)) * buckets.count
    kind = integer_kind(reach, expr)
    shown, wide = printer.dialect.widened(value, kind), kind == "HUGEINT"
    way = f"({shown} - {_integer(low)})" if buckets.rises else f"({_integer(low)} - {shown})"
    width = abs(high - low)
    share = printer.dialect.quotient(f"({way} * {buckets.count})", str(width), wide=wide, most=reach // width)
    inside = printer.dialect.cast(share, "BIGINT") if wide else share
    return shown, _integer(low), _integer(high), inside


def _integer(value: int) -> str:
    return f"({value})" if value < 0 else str(value)


def _of_doubles(
    printer: PrivatePrinter, expr: Call, number: Number, buckets: Buckets
) -> tuple[str, str, str, str]:
    dialect = printer.dialect

    def constant(value: Fraction) -> Number:
        return bounded(Number(dialect.double_literal(value), None), value, value)

    value, low, high = printer.real(number), constant(buckets.low), constant(buckets.high)
    if expr.args[0].column is None:  # of a computed one the last bit may lie beyond its bounds
        inner = facts_of(expr.args[0], printer.env)
        if not inner.bounded:
            raise undeclared(expr.args[0], printer.env)
        shown = printer.clamped_double(f"({value.sql})", inner.lo, inner.hi)
        value = replace(bounded(Number(f"({shown})", None), inner.lo, inner.hi), least=value.least)
    way = real_sum(value, "-", low, expr) if buckets.rises else real_sum(low, "-", value, expr)
    share = quotient(way, constant(buckets.width), dialect, expr)
    place = real_product(constant(Fraction(buckets.count)), share, dialect, expr)
    whole = printer.clamped_double(
        dialect.stepped("trunc", place.sql), Fraction(0), Fraction(buckets.count - 1)
    )
    return value.sql, low.sql, high.sql, dialect.rounded(f"({whole})", "BIGINT", buckets.count)
