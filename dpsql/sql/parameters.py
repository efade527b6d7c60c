"""Parameters whose values are still to come: what type each is to have, from where it stands.

A client may prepare a statement and ask for its parameters' types before it sends a value. Such a parameter is bound
as a NULL whose place notes the first type that it is read as, which is how Postgres types an untyped `$1`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ..errors import Position
from ..relation.expressions import Expr, Literal, LiteralValue
from ..relation.types import NULL, TEXT, SqlType, array_of

__all__ = ["Awaited", "TypedNull", "awaited_literal", "met", "sample"]


@dataclass(frozen=True, slots=True)
class Awaited:
    """A parameter without a value; `declared`: the type that the client has said, `noted`: the types it met.

    `lists`: whether it stands where a list has to; the types are then its items'.
    """

    declared: SqlType | None = None
    noted: list[SqlType] = field(default_factory=list, compare=False, repr=False)
    lists: list[bool] = field(default_factory=list, compare=False, repr=False)

    @property
    def type(self) -> SqlType:
        """The type that a value has to have: as declared, else the first one it met, else text."""
        type_ = self.declared or next(iter(self.noted), TEXT)
        return array_of(type_) if self.lists else type_


@dataclass(frozen=True, slots=True)
class TypedNull:
    """The value NULL of a parameter whose type is known."""

    type: SqlType


@dataclass(frozen=True, slots=True)
class _Place(Position):
    """Where a parameter without a value stands."""

    awaited: Awaited


def awaited_literal(parameter: Awaited, position: Position | None) -> Literal:
    """Return what stands for a parameter without a value."""
    at = position or Position(1, 1, 0)
    place = _Place(at.line, at.column, at.offset, parameter)
    return Literal(parameter.declared or NULL, None, position=place)


def met(expr: Expr, type_: SqlType) -> None:
    """Take note that an expression is read as a type, if it is a parameter without a value."""
    if isinstance(expr.position, _Place) and expr.is_constant and type_.kind is not NULL.kind:
        expr.position.awaited.noted.append(type_)


def sample(expr: Expr, type_: SqlType, value: LiteralValue) -> Expr:
    """Return a value for a parameter without one, where a constant of a type has to stand; others unchanged."""
    if not (isinstance(expr.position, _Place) and expr.is_constant):
        return expr
    met(expr, type_)
    return Literal(type_, value, position=expr.position)
