"""Subqueries as joins: what an expression asks to be joined to its row, and the joining of it.

House rules:

1. While a SELECT is bound, a subquery's value is an `Attached` marker; the `Attacher` of its level (below the
   aggregate, or above it) joins the subquery's relation and puts a column in the marker's place.
2. Columns are added after the existing ones, which never move; names do not see them.

Columns of the query around a subquery, and how the conditions on them are taken out of it.

House rules:

1. An `Outer` node stands for an expression over the row of the query directly around; it lives while a
   subquery is being bound. `bind_subquery` turns each into a condition of a join, or refuses: none leaves sql/.
2. A condition is taken out only past nodes that commute with it: Filter, Project, Sort, the left side of a join
   that keeps or narrows the left rows, and DISTINCT where only existence matters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field, replace

from ..errors import Position, Refusal
from ..records import dataclass
from ..relation.expressions import (
    TRUE,
    Call,
    Expr,
    Field,
    conjunction,
    conjuncts,
    map_children,
    size_of,
    substitute,
    walk,
)
from ..relation.relations import Join, Lateral, Relation, ends_in, expressions, filtered, skipped

__all__ = [
    "Attached",
    "Attacher",
    "Attachment",
    "Lift",
    "Opened",
    "Outer",
    "attached_in",
    "check_closed",
    "first_outer",
    "open_query",
    "outer_in",
    "project_onto",
]


# --- columns of the query around a subquery, and how the conditions on them are taken out of it -------------


MAX_EXPRESSION = 1_000
"""Most nodes of an expression whose subqueries' columns were put in."""


@dataclass(frozen=True, slots=True)
class Outer(Expr):
    """The value of `expr` in the row of the query directly around the subquery that holds this."""

    expr: Expr


def outer_in(expr: Expr) -> bool:
    """Say whether an expression reads the query around."""
    return any(isinstance(part, Outer) for part in walk(expr))


def _outers_of(relation: Relation) -> Iterator[Outer]:
    """Yield the references to the query around that a relation holds.

    Those of a lateral join's right side are to its left side.
    """
    seen: set[int] = set()
    stack = [relation]
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        for expr in expressions(node):
            yield from (part for part in walk(expr) if isinstance(part, Outer))
        stack += node.inputs[:1] if isinstance(node, Lateral) else node.inputs


def first_outer(relation: Relation) -> Outer | None:
    """Return a reference to the query around that a relation holds; None when it is closed."""
    return next(_outers_of(relation), None)


def _with_outers(relation: Relation, change: Callable[[Expr], Expr]) -> Relation:
    """Return a relation with `change` applied to what its references to the query around stand for."""

    def put(expr: Expr) -> Expr:
        if isinstance(expr, Outer):
            return replace(expr, expr=change(expr.expr))
        return map_children(expr, put)

    if isinstance(relation, Lateral):
        return replace(relation, left=_with_outers(relation.left, change), condition=put(relation.condition))
    return relation.map_expressions(put).map_inputs(lambda below: _with_outers(below, change))


def check_closed(relation: Relation) -> None:
    """Check that no reference to the query around is left.

    Raises:
        Refusal: PV004 at the first that is.
    """
    left = first_outer(relation)
    if left is None:
        return
    name = left.expr.name
    said = f'column "{name}" of the query around' if name else "a value of the query around"
    raise Refusal(
        f"{said} cannot stand here in a subquery",
        sqlstate="PV004",
        position=left.position,
        hint="compare it in the subquery's own WHERE, not below GROUP BY, LIMIT, UNION or an outer join",
    )


@dataclass(frozen=True, slots=True)
class Opened:
    """A query taken apart: a closed relation, the query's columns over it, and the conditions taken out.

    `outputs` and `conditions` are over the relation's row and, in `Outer` nodes, the row around.
    """

    relation: Relation
    outputs: tuple[Expr, ...]
    conditions: tuple[Expr, ...]


def open_query(relation: Relation, *, exists: bool) -> Opened:
    """Return a query with the conditions on the row around taken out; a closed one stays as it is.

    `exists`: only whether there is a row matters, not how many alike.

    Raises:
        Refusal: PV004 when a reference to the row around stays inside, 54001 when the query grows too large.
    """
    opened = _open(relation, exists)
    check_closed(opened.relation)
    return opened


def project_onto(exprs: tuple[Expr, ...], row: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """Return expressions over a projection as expressions over its input row.

    Raises:
        Refusal: 54001 when one grows too large (subqueries that use a column twice double it).
    """
    put = tuple(substitute(expr, row) for expr in exprs)
    for expr in put:
        if size_of(expr, MAX_EXPRESSION) >= MAX_EXPRESSION:
            raise Refusal(
                "the statement is too complex",
                sqlstate="54001",
                position=expr.position,
                hint="nest fewer expressions inside each other",
            )
    return put


def _open(node: Relation, exists: bool) -> Opened:
    node = skipped(node, "orders", *(["distinct"] if exists else []))
    if first_outer(node) is None:
        return Opened(node, node.row, ())
    if ends_in(node, "outputs"):
        opened = _open(node.below, exists)
        return replace(opened, outputs=project_onto(node.exprs, opened.outputs))
    if ends_in(node, "where", "having"):
        opened = _open(node.below, exists)
        own, taken = _divided(project_onto((node.predicate,), opened.outputs)[0])
        base = opened.relation if not own else filtered(opened.relation, conjunction(own), node.position)
        return Opened(base, opened.outputs, (*opened.conditions, *taken))
    if isinstance(node, Join) and node.kind in ("inner", "cross", "left", "mark"):
        return _open_join(node, exists)
    return Opened(node, node.row, ())


def _open_join(node: Join, exists: bool) -> Opened:
    opened = _open(node.left, exists)
    width = len(opened.relation.columns)
    right = tuple(Field(column.type, width + i, column.name) for i, column in enumerate(node.right.columns))
    condition = project_onto((node.condition,), (*opened.outputs, *right))[0]
    kind = node.kind
    taken: tuple[Expr, ...] = ()
    if kind in ("inner", "cross"):
        own, taken = _divided(condition)
        condition, kind = conjunction(own), "inner" if own else "cross"
    base = replace(node, kind=kind, left=opened.relation, condition=condition)
    added = right if kind != "mark" else (Field(base.columns[-1].type, width),)
    return Opened(base, (*opened.outputs, *added), (*opened.conditions, *taken))


def _divided(predicate: Expr) -> tuple[tuple[Expr, ...], tuple[Expr, ...]]:
    """Return the AND terms that do not read the row around, and those that do."""
    terms = conjuncts(predicate)
    return tuple(t for t in terms if not outer_in(t)), tuple(t for t in terms if outer_in(t))


# --- subqueries as joins: what an expression asks to be joined to its row, and the joining of it ------------


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
        terms = predicate.args if predicate.calls("and") else (predicate,)
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
            for outer in _outers_of(attachment.right):
                self.lift(outer.expr)
        width = len(self.relation.columns)

        def over_both(expr: Expr) -> Expr:
            if isinstance(expr, Outer):
                return self.lift(expr.expr)
            if isinstance(expr, Field):
                return Field(expr.type, width + expr.index, expr.name, position=expr.position)
            return map_children(expr, over_both)

        if attachment.refused is not None:
            right = _with_outers(attachment.right, self.lift)
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
