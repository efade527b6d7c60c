"""A relation over other declarations of its tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from .catalog import Catalog, Ground, Table
from .expressions import Expr, Field, Scalar, map_children
from .relations import Relation, Scan

__all__ = ["all_grounds", "map_tables", "tables_in"]


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
