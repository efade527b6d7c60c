"""How aggregates are written: the rows of `relation.aggregates` by the parser's nodes, and by names.

Those that take DISTINCT and ORDER BY inside stand above the release and on public tables alone.
"""

from __future__ import annotations

from sqlglot import exp

from ..errors import Position, Refusal
from ..relation.aggregates import ROWS, Aggregate
from ..relation.expressions import Expr
from ..relation.types import SqlType
from ..words import counted
from .tree import called, listed

__all__ = [
    "AGGREGATES", "NAMED", "ORDERED", "PUBLIC_AGGREGATES", "PUBLIC_NAMED", "aggregate_row", "checked_result",
    "inner_order", "public_row", "written_arguments",
]  # fmt: skip

_PLAIN = [row for row in ROWS if not row.is_ordered and not row.form]
AGGREGATES = {node: row for row in _PLAIN for node in row.nodes}
"""Kind of node -> row, of those whose arguments stand in parentheses and nothing else."""
ORDERED: dict[type[exp.Expr], Aggregate] = {node: row for row in ROWS if row.is_ordered for node in row.nodes}
"""Kind of node before WITHIN GROUP (ORDER BY the argument) -> row."""
NAMED = {name: row for row in _PLAIN for name in row.names}
"""Name of a function that the parser has no node for -> row."""
PUBLIC_AGGREGATES = {node: row for row in ROWS if row.form for node in row.nodes}
"""Kind of node -> row."""
PUBLIC_NAMED = {name: row for row in ROWS if row.form for name in row.names}
"""Name of a function that the parser has no node for -> row."""


def aggregate_row(node: exp.Expr) -> Aggregate | None:
    """Return the row of a plain call; None: it is of no such aggregate."""
    name = called(node)
    return AGGREGATES.get(type(node)) if name is None else NAMED.get(name)


def public_row(node: exp.Expr) -> Aggregate | None:
    """Return the row of a call; None: it is of no such aggregate."""
    name = called(node)
    return PUBLIC_AGGREGATES.get(type(node)) if name is None else PUBLIC_NAMED.get(name)


def inner_order(node: exp.Expr | None) -> tuple[exp.Expr | None, exp.Expr | None]:
    """Return what an aggregate is of, and the ORDER BY written behind it."""
    if isinstance(node, exp.Order) and node.args.get("this") is not None:
        return node.args["this"], node
    return node, None


def written_arguments(node: exp.Expr, row: Aggregate) -> tuple[list[exp.Expr], bool, exp.Expr | None]:
    """Return the arguments as written, whether each value counts once, and the ORDER BY."""
    if isinstance(node, exp.Anonymous):
        parts = listed(node)
    else:
        parts = [part for name in row.args if (part := node.args.get(name)) is not None]
    found: list[exp.Expr] = []
    distinct, order = False, None
    for part in parts:
        inner, own = inner_order(part)
        order = own or order
        if isinstance(inner, exp.Distinct):
            distinct = True
            found += inner.args["expressions"]
        elif inner is not None:
            found.append(inner)
    return found, distinct, order


def checked_result(row: Aggregate, args: tuple[Expr, ...], position: Position | None) -> SqlType:
    """Return the type of a call.

    Raises:
        Refusal: 42883 for arguments that do not fit, 0A000 for one that is to be a constant.
    """
    if len(args) != row.count:
        raise Refusal(
            f"{row.name}() takes {counted(row.count, 'argument')}", sqlstate="42883",
            position=position, hint=row.form,
        )  # fmt: skip
    result = row.result(*(arg.type for arg in args))
    if result is None:
        types = ", ".join(str(arg.type) for arg in args)
        raise Refusal(
            f"{row.name}({types}) does not exist",
            sqlstate="42883",
            position=position,
            hint="cast the arguments",
        )
    if row.constants and not all(arg.is_constant for arg in args[-row.constants :]):
        raise Refusal(
            f"the last argument of {row.name}() is a constant here",
            sqlstate="0A000",
            position=position,
            hint=row.form,
        )
    return result
