"""PERCENTILE_CONT and PERCENTILE_DISC: a fraction, and the order in which values are counted."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from fractions import Fraction

from sqlglot import exp

from ..errors import Position, Refusal
from ..relation.expressions import Expr, Literal
from ..relation.relations import AggregateCall
from ..relation.types import NUMERIC
from .aggregates import ORDERED
from .bind_expression import Binder
from .parameters import sample

__all__ = ["bind_alone", "bind_within_group", "read_within_group"]

_DECIMALS = 10**4
"""Fractions are multiples of 1 / this: scores stay exact integers."""


def read_within_group(binder: Binder, node: exp.Expr) -> AggregateCall:
    """Return the aggregate of `percentile(fraction) WITHIN GROUP (ORDER BY x [DESC])`; DESC counts from the other end.

    Raises:
        Refusal: 42803 for nested aggregates, 42601, 42883 and 22023 for what does not fit.
    """
    position = binder.position(node)
    inner, order = node.args["this"], node.args.get("expression")
    row = ORDERED.get(type(inner))
    if row is None or not isinstance(order, exp.Order):
        raise Refusal(
            "WITHIN GROUP (ORDER BY x) stands after percentile_cont or percentile_disc", sqlstate="42601",
            position=position, hint="for the most frequent value: GROUP BY x ORDER BY COUNT(*) DESC LIMIT 1",
        )  # fmt: skip
    name = row.name
    if not binder.allow_aggregates:
        raise Refusal(f"{name}() cannot stand {binder.place}", sqlstate="42803", position=position)
    orders = order.args["expressions"]
    if inner.args.get("expression") is not None or len(orders) != 1 or not isinstance(orders[0], exp.Ordered):
        raise Refusal(
            f"{name} takes one fraction, and one expression in ORDER BY", sqlstate="42883", position=position,
            hint=f"{name}(0.9) WITHIN GROUP (ORDER BY x)",
        )  # fmt: skip
    inside, binder.allow_aggregates, binder.place = binder.place, False, "inside an aggregate"
    try:
        fraction = _fraction(binder.bind(inner.args["this"]), name, position)
        value = binder.bind(orders[0].args["this"])
    finally:
        binder.allow_aggregates, binder.place = True, inside
    result = row.result(value.type)
    if result is None:
        raise Refusal(
            f"{name} over {value.type} does not exist here", sqlstate="42883", position=position,
            hint="it is answered for numbers, dates and timestamps",
        )  # fmt: skip
    share = 1 - fraction if orders[0].args.get("desc") else fraction
    return AggregateCall(result, name, (value, Literal(NUMERIC, share)), False, None, position=position)


def bind_within_group(binder: Binder, node: exp.Expr) -> Expr:
    """Take a percentile out of an expression."""
    return binder.add_aggregate(read_within_group(binder, node))


def bind_alone(binder: Binder, node: exp.Expr) -> Expr:
    """Refuse a percentile without its order. Raises Refusal (42601)."""
    name = ORDERED[type(node)].name
    raise Refusal(
        f"{name} stands before WITHIN GROUP (ORDER BY x)", sqlstate="42601", position=binder.position(node),
        hint=f"{name}(0.9) WITHIN GROUP (ORDER BY x)",
    )  # fmt: skip


def _fraction(expr: Expr, name: str, position: Position | None) -> Fraction:
    """Return a literal fraction. Raises Refusal (0A000, 22023)."""
    expr = sample(expr, NUMERIC, Fraction(1, 2))
    value = expr.value if isinstance(expr, Literal) else None
    try:
        fraction = Fraction(Decimal(str(value)) if isinstance(value, (str, float)) else value)  # type: ignore[arg-type]
    except (InvalidOperation, TypeError, ValueError, OverflowError):
        fraction = None
    if fraction is None or isinstance(value, bool):
        raise Refusal(
            f"{name} takes a number from 0 to 1", sqlstate="0A000", position=expr.position or position,
            hint=f"write it as a constant: {name}(0.9)",
        )  # fmt: skip
    if not 0 <= fraction <= 1:
        raise Refusal(
            "a percentile is between 0 and 1", sqlstate="22023", position=expr.position or position,
            hint=f"{name}(0.9) is the value below which nine in ten lie",
        )  # fmt: skip
    if (fraction * _DECIMALS).denominator != 1:
        raise Refusal(
            "a percentile has at most four decimals", sqlstate="0A000", position=expr.position or position,
            hint="round it: the noise of a rank is larger",
        )  # fmt: skip
    return fraction
