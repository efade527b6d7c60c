"""A relation over other declarations of its tables, or as it stands in another text.

A relation that was bound from another text, as it stands in a statement: all of it at one place there.

What a view's text says is not in the statement, so a position in that text would point at the wrong words.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ..errors import Position
from .catalog import Catalog, Ground, Table
from .expressions import Expr, Field, Scalar, map_children
from .relations import Block, Relation, Scan

__all__ = ["all_grounds", "map_tables", "placed", "tables_in"]


# --- a relation that was bound from another text, as it stands in a statement -------------------------------


def placed(relation: Relation, position: Position | None) -> Relation:
    """Return a relation each part of which stands at `position`."""

    def expression(expr: Expr) -> Expr:
        below = map_children(expr, expression)
        if isinstance(below, Scalar):
            below = replace(below, relation=placed(below.relation, position))
        return replace(below, position=position)

    moved = relation.map_inputs(lambda below: placed(below, position)).map_expressions(expression)
    if isinstance(moved, Block):
        windows = tuple(replace(call, position=position) for call in moved.windows)
        moved = replace(moved, windows=windows, parts=tuple((part, position) for part, _ in moved.parts))
        if moved.group is not None:
            calls = tuple(replace(call, position=position) for call in moved.group.aggregates)
            moved = replace(moved, group=replace(moved.group, aggregates=calls))
    return replace(moved, position=position)


# --- a relation over other declarations of its tables -------------------------------------------------------


def map_tables(
    relation: Relation,
    change: Callable[[Table], Table],
    rename: Callable[[Field], Field] = lambda field: field,
) -> Relation:
    """Return a relation with `change` applied to every table that it reads, in subqueries of expressions too.

    `rename`: gives each column that an expression reads its name, for messages.
    """

    def expression(expr: Expr) -> Expr:
        below = map_children(expr, expression)
        if isinstance(below, Scalar):
            return replace(below, relation=map_tables(below.relation, change, rename))
        return rename(below) if isinstance(below, Field) else below

    if isinstance(relation, Scan):
        return replace(relation, table=change(relation.table))
    return relation.map_inputs(lambda below: map_tables(below, change, rename)).map_expressions(expression)


def tables_in(relation: Relation) -> list[Table]:
    """Return the tables that a relation reads, in subqueries of expressions too."""
    found: list[Table] = []

    def note(table: Table) -> Table:
        found.append(table)
        return table

    map_tables(relation, note)
    return found


def all_grounds(catalog: Catalog) -> frozenset[Ground]:
    """Return everything that plans may rest on under a catalog, through its views too."""
    read = [table for view in catalog.views.values() for table in tables_in(view.relation)]
    known = [*catalog.tables.values(), *read]
    return frozenset[Ground]().union(*((*one.grounds, *one.column_grounds) for one in known))
