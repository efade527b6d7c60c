"""Subqueries as joins: what an expression asks to be joined to its row, and the joining of it.

House rules:

1. While a SELECT is bound, a subquery's value is an `Attached` marker; the `Attacher` of its level (below the
   aggregate, or above it) joins the subquery's relation and puts a column in the marker's place.
2. Columns are added after the existing ones, which never move; names do not see them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ..errors import Position, Refusal
from ..relation.expressions import TRUE, Call, Expr, Field, map_children, walk
from ..relation.forms import Lateral
from ..relation.relations import Join, Relation, filtered
from .outer import Outer, outers_of, with_outers

__all__ = ["Attached", "Attacher", "Attachment", "Lift", "attached_in"]

Lift = Callable[[Expr], Expr]


@dataclass(frozen=True, slots=True)
class Attachment:
    """A relation to be joined on a condition over its own row and, as `Outer`, the row it joins.

    `kind`: mark or left; scalar or any, with `refused`, where it reads the row that it joins itself (`Lateral`).
    """

    kind: str
    right: Relation
    condition: Expr
    word: str = field(compare=False)
    position: Position | None = field(default=None, compare=False, repr=False)
    refused: Refusal | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Attached(Expr):
    """Column `column` of what attachment number `index` adds to the row."""

    index: int
    column: int


def attached_in(expr: Expr) -> bool:
    """Say whether an expression needs a join."""
    return any(isinstance(part, Attached) for part in walk(expr))


class Attacher:
    """A relation that grows by the joins that expressions ask for.

    `own`: what turns an expression over the names' row into one over this relation's row, and leaves
    markers to `column`; None when the two rows are one.
    """

    def __init__(
        self, relation: Relation, attachments: Sequence[Attachment], own: Lift | None = None
    ) -> None:
        self.relation = relation
        self._attachments = attachments
        self._own = own
        self._starts: dict[int, int] = {}

    def lift(self, expr: Expr) -> Expr:
        """Return the expression over the relation's row, joining what it needs."""
        if self._own is not None:
            return self._own(expr)
        if isinstance(expr, Attached):
            return self.column(expr)
        return map_children(expr, self.lift)

    def column(self, marker: Attached) -> Expr:
        """Return the column of a marker, its join made when this is the first to ask for it."""
        if marker.index not in self._starts:
            self._starts[marker.index] = self._join(self._attachments[marker.index])
        return Field(marker.type, self._starts[marker.index] + marker.column, position=marker.position)

    def filter(self, predicate: Expr, position: Position | None) -> None:
        """Keep the rows on which a predicate is true: first by the terms that need no join, then one by one."""
        terms = (
            predicate.args if isinstance(predicate, Call) and predicate.function == "and" else (predicate,)
        )
        plain = tuple(term for term in terms if not attached_in(term))
        if len(plain) == len(terms):
            self._keep(self.lift(predicate), position)
            return
        if plain:
            whole = (
                plain[0]
                if len(plain) == 1
                else Call(predicate.type, "and", plain, position=predicate.position)
            )
            self._keep(self.lift(whole), position)
        for term in sorted((term for term in terms if attached_in(term)), key=_number_of):
            self._keep(self.lift(term), position)

    def _keep(self, predicate: Expr, position: Position | None) -> None:
        if predicate != TRUE:
            self.relation = filtered(self.relation, predicate, position)

    def _join(self, attachment: Attachment) -> int:
        for part in walk(attachment.condition):
            if isinstance(part, Outer):
                self.lift(part.expr)  # a subquery inside it joins first: the row is complete from here on
        if attachment.refused is not None:
            for outer in outers_of(attachment.right):
                self.lift(outer.expr)
        width = len(self.relation.columns)

        def over_both(expr: Expr) -> Expr:
            if isinstance(expr, Outer):
                return self.lift(expr.expr)
            if isinstance(expr, Field):
                return Field(expr.type, width + expr.index, expr.name, position=expr.position)
            return map_children(expr, over_both)

        if attachment.refused is not None:
            right = with_outers(attachment.right, self.lift)
            self.relation = Lateral(
                attachment.kind, self.relation, right, over_both(attachment.condition), attachment.refused,
                position=attachment.position,
            )  # fmt: skip
            return width
        self.relation = Join(
            attachment.kind, self.relation, attachment.right, over_both(attachment.condition), attachment.word,
            position=attachment.position,
        )  # fmt: skip
        return width


def _number_of(expr: Expr) -> int:
    return min(part.index for part in walk(expr) if isinstance(part, Attached))
