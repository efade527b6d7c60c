"""NTILE over people: in which of k parts of equal shares a value lies, by released percentiles (soundness.md 1.14).

    ntile(4) OVER (ORDER BY x)  ->  CASE WHEN x <= q1 THEN 1 WHEN x <= q2 THEN 2 WHEN x <= q3 THEN 3 ELSE 4 END

where q1, q2, q3 are `percentile_disc` of x at 1/4, 1/2 and 3/4 over the same rows, drawn first as one release with a
share of the epsilon. What is computed beside them is a function of one row and of what was released.

House rules:

1. Values that are equal are in one part, so parts are of equal size as far as values differ and percentiles are near.
2. NULL is in the part where Postgres sorts it: the last of an ascending order, the first of a descending one.
"""

from __future__ import annotations

from fractions import Fraction

from ...relation.aggregates import AGGREGATES
from ...relation.expressions import TRUE, Call, Expr, Field, Literal
from ...relation.relations import AggregateCall, Block, Group, Join, Relation, WindowCall, grouped, projected
from ...relation.types import BOOLEAN, INTEGER, NUMERIC

MAX_TILES = 20
"""Most parts: twenty have 19 percentiles, at the epsilon of five."""


def tiled(node: Block) -> Relation | None:
    """Return what windows that are all NTILE over all rows mean beside released percentiles; None: they are others."""
    counts = [_count(call) for call in node.windows]
    if not counts or None in counts:
        return None
    below = node.below
    width = len(below.columns)
    ends: list[AggregateCall] = []
    shown: list[Expr] = []
    for call, count in zip(node.windows, counts, strict=True):
        assert count is not None
        first = width + len(ends)
        order, type_ = call.orders[0], AGGREGATES["percentile_disc"].result(call.orders[0].expr.type)
        assert type_ is not None, "it has percentiles"
        ends += [
            AggregateCall(
                type_, "percentile_disc", (order.expr, Literal(NUMERIC, Fraction(place, count))), False, None,
                position=call.position,
            )
            for place in range(1, count)
        ]  # fmt: skip
        thresholds = [Field(type_, index, "") for index in range(first, width + len(ends))]
        shown.append(_part(order.expr, thresholds, descending=order.descending))
    cut = grouped(below, Group((), tuple(ends), ((),)), node.position)
    beside = Join("cross", below, cut, TRUE, position=node.position)
    own = [Field(column.type, index, column.name) for index, column in enumerate(below.columns)]
    names = [*(column.name for column in below.columns), *("" for _ in shown)]
    return projected(beside, [*own, *shown], names, node.position)


def _count(call: WindowCall) -> int | None:
    """Return k of an NTILE of all rows by one value that has percentiles; None: it is something else."""
    if call.function != "ntile" or call.partition or len(call.orders) != 1 or call.frame:
        return None
    count, order = call.args[0].constant, call.orders[0]
    has_ends = order.expr.type.is_number or order.expr.type.is_temporal
    is_usual = order.nulls_first == order.descending
    fits = type(count) is int and 2 <= count <= MAX_TILES
    return count if fits and has_ends and is_usual and not order.expr.is_constant else None  # type: ignore[return-value]


def _part(value: Expr, ends: list[Field], *, descending: bool) -> Expr:
    """Return the number of the part that a value is in; the first is that of the least, or else of the largest ones."""
    sign, cuts = ("gt", ends[::-1]) if descending else ("le", ends)
    branches: list[Expr] = []
    for place, end in enumerate(cuts, 1):
        test: Expr = Call(BOOLEAN, sign, (value, end))
        if descending and place == 1:
            test = Call(BOOLEAN, "or", (Call(BOOLEAN, "is_null", (value,)), test))
        branches += [test, Literal(INTEGER, place)]
    return Call(INTEGER, "case", (*branches, Literal(INTEGER, len(ends) + 1)))
