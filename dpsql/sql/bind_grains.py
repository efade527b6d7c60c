"""Bins of minutes and seconds as charts write them, read as date_bin, which they are.

    >>> grain_of("date_trunc('hour', x) + INTERVAL '5 minutes' * floor(extract(minute FROM x) / 5)")
    date_bin('5 minutes', x, TIMESTAMP '2000-01-01')

The step divides the unit around it, so that bins counted from the unit's start are those counted from any such start.
"""

from __future__ import annotations

from sqlglot import exp

from ..relation.expressions import Call, Expr, Literal, Months
from ..relation.types import TIMESTAMP, Kind
from .bind_expression import Binder, call

__all__ = ["bind_grain"]

_FIELDS = {"minute": ("hour", 60_000_000), "second": ("minute", 1_000_000)}
"""Field of extract -> the unit that it counts within, and its microseconds."""
_ORIGIN = 946_684_800_000_000
"""2000-01-01, where every hour and minute begins anew."""


def bind_grain(binder: Binder, node: exp.Expr, left: Expr) -> Expr | None:
    """Return the bins that a date_trunc with steps beside it makes as date_bin; None: it is none of these.

    `left`: what the sum's left side is bound to.
    """
    right = _bare(node.args["expression"])
    if not isinstance(left, Call) or left.function != "date_trunc" or not isinstance(right, exp.Mul):
        return None
    floor = _bare(right.args["expression"])
    quotient = _bare(floor.args["this"]) if isinstance(floor, exp.Floor) else None
    part = _bare(quotient.args["this"]) if isinstance(quotient, exp.Div) else None
    if not isinstance(part, exp.Extract) or quotient is None:
        return None
    unit, size = _FIELDS.get(str(part.args["this"].args["this"]).lower(), ("", 0))
    step, count = binder.bind(right.args["this"]), binder.bind(quotient.args["expression"])
    if not isinstance(step, Literal) or not isinstance(step.value, Months) or not isinstance(count, Literal):
        return None
    if left.args[0] != Literal(left.args[0].type, unit) or left.args[1] != binder.bind(
        part.args["expression"]
    ):
        return None
    number = count.value
    if not isinstance(number, int) or count.type.kind is Kind.BOOLEAN or not 0 < number <= 60 or 60 % number:
        return None
    if (step.value.months, step.value.days, step.value.microseconds) != (0, 0, number * size):
        return None
    return call("date_bin", [step, left.args[1], Literal(TIMESTAMP, _ORIGIN)], binder.position(node))


def _bare(node: exp.Expr) -> exp.Expr:
    while isinstance(node, exp.Paren):
        node = node.args["this"]
    return node
