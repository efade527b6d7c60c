"""A relation that was bound from another text, as it stands in a statement: all of it at one place there.

What a view's text says is not in the statement, so a position in that text would point at the wrong words.
"""

from __future__ import annotations

from dataclasses import replace

from ..errors import Position
from .expressions import Expr, Scalar, map_children
from .relations import Block, Relation

__all__ = ["placed"]


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
