"""Public rows that a LEFT JOIN keeps where none of people's rows match: `calendar LEFT JOIN orders`.

Such a row is nobody's, and whether it is there tells of everybody. But grouped by public columns, with aggregates of
nothing but what matched, it adds nothing to any group: the answer is that of the inner join, over the groups that the
public rows have by themselves (soundness.md 1.14).

House rules:

1. Until it is grouped the block is the inner join, with the public rows kept beside it (`Unmatched`). Whatever asks for
   its owner in another way is refused by `resolve_owner`, and so is a join with it.
2. An aggregate leaves unmatched rows out where its argument is NULL in them: strict in a column of people's. A
   filter of it takes more away, never less. Other aggregates, and COUNT(*), which counts the row, are refused.
3. Groups are listed from the public rows under WHERE alone: what ON says only leaves them without a match.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from ...errors import Position, Refusal
from ...relation.expressions import Expr, fields_of
from ...relation.relations import AggregateCall
from .ownership import keeps_public_rows
from .rows import OwnedRows, PrivateBlock, Unmatched, columns_of

__all__ = ["is_null_where", "kept_beside", "narrowed", "unmatched_left_out"]

_ARITHMETIC = frozenset({"add", "sub", "mul", "div", "mod", "neg", "abs", "floor", "ceil", "round", "trunc"})
_STRICT = _ARITHMETIC | {"cast", "length", "lower", "upper", "date_trunc", "extract"}
"""Functions that are NULL where one argument is."""
_SKIPPING = frozenset({"count", "sum", "avg", "min", "max"})
"""Aggregates that leave out a row whose argument is NULL."""


def kept_beside(left: PrivateBlock, joined: PrivateBlock, position: Position | None) -> PrivateBlock:
    """Return an inner join of public rows and people's, with the public ones as they are without a match.

    Raises:
        Refusal: PV003 where they are no tables that a list of keys is read from.
    """
    for item in left.items:
        table = item.source.table
        if item.kind != "inner" or table is None or table.is_undated:
            raise keeps_public_rows(position)
    return replace(joined, unmatched=Unmatched(left.items, left.predicate, position))


def narrowed(block: PrivateBlock, terms: Iterable[Expr]) -> PrivateBlock:
    """Return a block under more filter terms. Raises Refusal (PV003): one reads people's columns, so no row is kept."""
    kept = block.unmatched
    if kept is None:
        return block
    width, terms = len(columns_of(kept.items)), tuple(terms)
    for term in terms:
        if max(fields_of(term), default=-1) >= width:
            raise Refusal(
                "WHERE reads people's columns after an outer join that keeps public rows",
                sqlstate="PV003", position=term.position or kept.position,
                hint="write the condition in ON, or write JOIN for LEFT JOIN",
            )  # fmt: skip
    return replace(block, unmatched=replace(kept, predicate=(*kept.predicate, *terms)))


def unmatched_left_out(
    block: PrivateBlock, rows: OwnedRows, keys: tuple[Expr, ...], aggregates: tuple[AggregateCall, ...]
) -> OwnedRows:
    """Return the rows of a block that is grouped, with what its groups are listed from.

    Raises:
        Refusal: PV003 where an unmatched row would count.
    """
    kept = block.unmatched
    if kept is None:
        return rows
    width = len(columns_of(kept.items))
    wrong = next((key for key in keys if max(fields_of(key), default=-1) >= width), None)
    if wrong is not None:
        raise Refusal(
            "a key of people's columns, after an outer join that keeps public rows", sqlstate="PV003",
            position=wrong.position or kept.position, hint="group by the public columns, or write JOIN for LEFT JOIN",
        )  # fmt: skip
    for call in aggregates:
        if (
            call.function not in _SKIPPING
            or len(call.args) != 1
            or not is_null_where(call.args[0], lambda index: index >= width)
        ):
            raise Refusal(
                f"{call.function}() would count the public rows that an outer join keeps", sqlstate="PV003",
                position=call.position or kept.position,
                hint="take a column of the private table, as in COUNT(o.order_id), or write JOIN for LEFT JOIN",
            )  # fmt: skip
    return replace(rows, unmatched=kept)


def is_null_where(expr: Expr, is_null: Callable[[int], bool]) -> bool:
    """Say whether an expression is NULL where all of some columns are."""
    if expr.column is not None:
        return is_null(expr.column)
    return expr.calls(*_STRICT) and any(is_null_where(arg, is_null) for arg in expr.args)
