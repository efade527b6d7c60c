"""What subqueries are bound to: the joins, and short ways to say what they should be."""

from __future__ import annotations

from dpsql.relation.expressions import Call, Expr, Field
from dpsql.relation.relations import Join, Relation, ends_in
from dpsql.relation.types import BOOLEAN
from dpsql.sql.scope import first_outer

from .campus import relation

__all__ = ["WIDTH", "below", "call", "column", "mark_of", "marked", "scalar"]

WIDTH = 12
"""Columns of student, its owner included."""


def below(text: str) -> Relation:
    """Return what stands below the SELECT list."""
    bound = relation(text)
    assert ends_in(bound, "outputs")
    assert first_outer(bound) is None
    return bound.below


def marked(condition: str) -> tuple[Expr, Join]:
    """Return the predicate and the mark join of a WHERE clause over student."""
    node = below(f"SELECT 1 FROM student s WHERE {condition}")
    assert ends_in(node, "where")
    assert isinstance(node.below, Join)
    assert node.below.kind == "mark"
    return node.predicate, node.below


def call(function: str, *args: Expr) -> Call:
    """Return a boolean call."""
    return Call(BOOLEAN, function, args)


def column(join: Join, index: int) -> Field:
    """Return a column over both sides of a join."""
    both = (*join.left.columns, *join.right.columns)
    return Field(both[index].type, index)


def mark_of(join: Join) -> Field:
    """Return the mark of a mark join."""
    return Field(join.columns[-1].type, len(join.left.columns))


def scalar(item: str) -> tuple[Expr, Join]:
    """Return the value and the left join of a scalar subquery over student."""
    bound = relation(f"SELECT {item} FROM student s")
    assert ends_in(bound, "outputs")
    assert isinstance(bound.below, Join)
    assert bound.below.kind == "left"
    assert bound.below.word == "scalar"
    return bound.exprs[0], bound.below
