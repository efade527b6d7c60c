"""PERCENTILE_CONT and PERCENTILE_DISC: a fraction or an array of them, and the order in which values are counted."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from fractions import Fraction

from sqlglot import exp

from ..errors import Position, Refusal
from ..relation.expressions import Call, Expr, Literal
from ..relation.relations import AggregateCall, Order
from ..relation.types import NUMERIC, array_of
from .aggregates import ORDERED
from .bind_expression import Binder
from .parameters import sample

__all__ = ["Ordered", "bind_alone", "bind_within_group", "read_within_group"]

_LARGEST = 10**4
"""Largest denominator of a fraction: scores stay exact integers."""
_QUOTIENT = re.compile(r"\s*(\d{1,9})\s*/\s*(\d{1,9})\s*", re.ASCII)


MAX_FRACTIONS = 32
"""Most fractions of one array."""


@dataclass(frozen=True, slots=True)
class Ordered:
    """One aggregate, or those of an array of fractions in its order."""

    calls: tuple[AggregateCall, ...]
    is_array: bool

    def added(self, binder: Binder, filter_: Expr | None = None) -> Expr:
        """Take the aggregates out of an expression; return what stands in their place."""
        found = [binder.add_aggregate(replace(call, filter=filter_)) for call in self.calls]
        if not self.is_array:
            return found[0]
        return Call(array_of(found[0].type), "array", tuple(found), position=self.calls[0].position)


def read_within_group(binder: Binder, node: exp.Expr) -> Ordered:
    """Return the aggregates of `percentile(fraction) WITHIN GROUP (ORDER BY x [DESC])`; DESC counts from the other end.

    Raises:
        Refusal: 42803 for nested aggregates, 42601, 42883 and 22023 for what does not fit.
    """
    position = binder.position(node)
    inner, order = node.args["this"], node.args.get("expression")
    row = ORDERED.get(type(inner))
    if row is None or not isinstance(order, exp.Order):
        raise Refusal(
            "WITHIN GROUP (ORDER BY x) stands after percentile_cont, percentile_disc or mode", sqlstate="42601",
            position=position,
        )  # fmt: skip
    name = row.name
    if not binder.allow_aggregates:
        raise Refusal(f"{name}() cannot stand {binder.place}", sqlstate="42803", position=position)
    orders = order.args["expressions"]
    if name == "mode" and inner.args.get("this") is not None:
        raise Refusal(
            "mode takes nothing but ORDER BY", sqlstate="42883", position=position,
            hint="mode() WITHIN GROUP (ORDER BY x)",
        )  # fmt: skip
    if inner.args.get("expression") is not None or len(orders) != 1 or not isinstance(orders[0], exp.Ordered):
        raise Refusal(
            f"{name} takes one fraction, and one expression in ORDER BY", sqlstate="42883", position=position,
            hint=f"{name}(0.9) WITHIN GROUP (ORDER BY x)",
        )  # fmt: skip
    inside, binder.allow_aggregates, binder.place = binder.place, False, "inside an aggregate"
    try:
        fractions, is_array = (
            ([], False) if name == "mode" else _fractions(binder, inner.args["this"], name, position)
        )
        value = binder.bind(orders[0].args["this"])
    finally:
        binder.allow_aggregates, binder.place = True, inside
    result = row.result(value.type)
    if result is None:
        raise Refusal(
            f"{name} over {value.type} does not exist here", sqlstate="42883", position=position,
            hint="it is answered for numbers, dates and timestamps",
        )  # fmt: skip
    if name == "mode":
        # Of values that are as frequent the first in the order is taken.
        by = (Order(value, bool(orders[0].args.get("desc")), False),)
        return Ordered((AggregateCall(result, name, (value,), False, None, by, position=position),), False)
    shares = [1 - fraction if orders[0].args.get("desc") else fraction for fraction in fractions]
    calls = [
        AggregateCall(result, name, (value, Literal(NUMERIC, share)), False, None, position=position)
        for share in shares
    ]
    return Ordered(tuple(calls), is_array)


def bind_within_group(binder: Binder, node: exp.Expr) -> Expr:
    """Take a percentile out of an expression."""
    return read_within_group(binder, node).added(binder)


def bind_alone(binder: Binder, node: exp.Expr) -> Expr:
    """Refuse a percentile without its order. Raises Refusal (42601)."""
    name = ORDERED[type(node)].name
    raise Refusal(
        f"{name} needs WITHIN GROUP (ORDER BY x)", sqlstate="42601", position=binder.position(node),
        hint=f"write {name}({'' if name == 'mode' else '0.9'}) WITHIN GROUP (ORDER BY x)",
    )  # fmt: skip


def _fractions(
    binder: Binder, node: exp.Expr, name: str, position: Position | None
) -> tuple[list[Fraction], bool]:
    """Return the fractions, and whether they stand in an array. Raises Refusal (22023, 54001, 0A000)."""
    if not isinstance(node, exp.Array):
        return [_fraction(binder.bind(node), name, position)], False
    parts = node.args["expressions"]
    if not 1 <= len(parts) <= MAX_FRACTIONS:
        raise Refusal(
            f"{name} takes an array of 1 to {MAX_FRACTIONS} fractions", position=position,
            sqlstate="54001" if parts else "22023", hint=f"{name}(ARRAY[0.25, 0.5, 0.75]) WITHIN GROUP (ORDER BY x)",
        )  # fmt: skip
    return [_fraction(binder.bind(part), name, position) for part in parts], True


def _fraction(expr: Expr, name: str, position: Position | None) -> Fraction:
    """Return a literal fraction. Raises Refusal (0A000, 22023)."""
    expr = sample(expr, NUMERIC, Fraction(1, 2))
    value = expr.value if isinstance(expr, Literal) else None
    fraction = None if isinstance(value, bool) else _read(value)
    if fraction is None:
        raise Refusal(
            f"{name} takes a number from 0 to 1", sqlstate="0A000", position=expr.position or position,
            hint=f"write it as a constant: {name}(0.9), {name}('1/3')",
        )  # fmt: skip
    if not 0 <= fraction <= 1:
        raise Refusal(
            "a percentile is between 0 and 1", sqlstate="22023", position=expr.position or position,
            hint=f"{name}(0.9) is the value below which nine in ten lie",
        )  # fmt: skip
    if fraction.denominator > _LARGEST:
        raise Refusal(
            "a percentile has at most four decimals", sqlstate="0A000", position=expr.position or position,
            hint=f"round it: the noise of a rank is larger; or '1/3', with a denominator of at most {_LARGEST}",
        )  # fmt: skip
    return fraction


def _read(value: object) -> Fraction | None:
    """Return a constant as a fraction: a number, its text, or the text of a quotient such as '1/3'."""
    try:
        if isinstance(value, str) and (quotient := _QUOTIENT.fullmatch(value)):
            return Fraction(int(quotient[1]), int(quotient[2]))
        return value if isinstance(value, Fraction) else Fraction(Decimal(str(value)))
    except (InvalidOperation, TypeError, ValueError, OverflowError, ZeroDivisionError):
        return None
