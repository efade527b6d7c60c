"""Which columns of a bound relation are reported answers of randomised response, and that nothing else reads one.

House rule: default deny. An expression that reads a reported answer is refused unless it is the bare column in a
projection, or stands in an aggregate whose estimates `bind_estimates` has made (law L4).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ..errors import Position, Refusal
from ..mechanisms import Channel
from ..relation.catalog import Column
from ..relation.expressions import Call, Expr, Field, Scalar, conjuncts, fields_of, moved, walk
from ..relation.forms import Lateral, Recursive, Unnest
from ..relation.intervals import Environment, facts_of
from ..relation.relations import (
    Aggregate,
    Declared,
    Distinct,
    Filter,
    Join,
    Limit,
    Project,
    Relation,
    Scan,
    SetOperation,
    Sort,
    Window,
    expressions,
)
from ..relation.types import BOOLEAN

__all__ = [
    "Answer", "Reported", "catalog_columns", "check_reported", "holds_private", "is_owner", "refuse_use",
    "reported_columns", "stands_once",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Answer:
    """A randomised column of one mention of its table: `mention` is the way to it through the joins."""

    table: str
    column: Column
    mention: tuple[int, ...] = ()

    @property
    def channel(self) -> Channel:
        """By which coins it was reported."""
        assert self.column.randomized is not None
        return self.column.randomized

    @property
    def said(self) -> str:
        """What a message calls it."""
        return f'"{self.column.name}" was randomised when it was collected'


Reported = tuple[Answer | None, ...]
"""For each column of a relation, the answer that it reports."""


def refuse_use(answer: Answer, position: Position | None, hint: str | None = None) -> Refusal:
    """Return the refusal of a use of an answer that no estimate is of."""
    name = answer.column.name
    usual = f"count or sum other columns: COUNT(*) FILTER (WHERE {name} = …), WHERE {name} IN (…), GROUP BY {name}"
    return Refusal(
        f"{answer.said}, and this use of it has no estimate",
        sqlstate="PV003",
        position=position,
        hint=hint or usual,
    )


def reported_columns(node: Relation) -> Reported:
    """Return which columns of a relation are reported answers."""
    return _Walk().reported(node)


def check_reported(relation: Relation) -> None:
    """Check a whole bound relation.

    Raises:
        Refusal: PV003 for an expression, a set operation or DISTINCT over reported answers.
    """
    _Walk(is_checking=True).reported(relation)


@dataclass
class _Walk:
    """Walks a relation once: what several queries share is looked at once."""

    is_checking: bool = False
    known: dict[int, tuple[Relation, Reported]] = field(default_factory=dict)

    def reported(self, node: Relation) -> Reported:
        if id(node) not in self.known:
            self.known[id(node)] = node, self._found(node)
        return self.known[id(node)][1]

    def _found(self, node: Relation) -> Reported:
        below = tuple(map(self.reported, node.inputs))
        nothing: Reported = (None,) * len(node.columns)
        if self.is_checking:
            self._check(node, below)
        match node:
            case Scan():
                own = tuple(
                    None if column.randomized is None else Answer(node.table.label, column)
                    for column in node.table.columns
                )
                return own + nothing[len(own) :]
            case Filter() | Sort() | Limit() | Declared():
                return below[0]
            case Project():
                return tuple(below[0][e.index] if isinstance(e, Field) else None for e in node.exprs)
            case Window():
                return below[0] + nothing[len(below[0]) :]
            case Join() if node.kind == "mark":
                return (*_moved(below[0], 0), None)
            case Join():
                return _moved(below[0], 0) + _moved(below[1], 1)
        return nothing

    def _check(self, node: Relation, below: tuple[Reported, ...]) -> None:
        row = [answer for side in below for answer in side]
        for answer in row:
            if isinstance(node, (Distinct, SetOperation, Lateral, Recursive, Unnest)) and answer is not None:
                raise refuse_use(answer, node.position)
        if isinstance(node, Aggregate) and node.is_reported:
            return
        for expr in expressions(node):
            for part in walk(expr):
                if isinstance(part, Scalar):
                    self._check_scalar(part)
            if isinstance(node, Project) and isinstance(expr, Field):
                continue
            for index in sorted(fields_of(expr)):
                read = row[index]
                if read is not None:
                    raise refuse_use(read, expr.position or node.position)

    def _check_scalar(self, part: Scalar) -> None:
        for answer in self.reported(part.relation):
            if answer is not None:
                raise refuse_use(answer, part.position)


def _moved(side: Reported, place: int) -> Reported:
    return tuple(None if a is None else Answer(a.table, a.column, (place, *a.mention)) for a in side)


def holds_private(node: Relation) -> bool:
    """Say whether a relation reads a table that has a privacy unit."""
    seen: dict[int, Relation] = {}
    stack = [node]
    while stack:
        one = stack.pop()
        if isinstance(one, Scan) and one.table.unit is not None:
            return True
        if id(one) not in seen:
            seen[id(one)] = one
            stack += one.inputs
            stack += [p.relation for e in expressions(one) for p in walk(e) if isinstance(p, Scalar)]
    return False


def is_owner(node: Relation, index: int) -> bool:
    """Say whether a column of a relation is a private table's unit column."""
    while True:
        match node:
            case Scan():
                unit = node.table.unit
                columns = node.table.columns
                return unit is not None and (index >= len(columns) or columns[index].name in unit.columns)
            case Project():
                expr = node.exprs[index]
                if not isinstance(expr, Field):
                    return False
                node, index = node.input, expr.index
            case Filter() | Sort() | Limit() | Window() | Declared():
                if index >= len(node.input.columns):
                    return False
                node = node.input
            case Join():
                width = len(node.left.columns)
                if index >= width and node.kind == "mark":
                    return False
                node, index = (node.left, index) if index < width else (node.right, index - width)
            case _:
                return False


def stands_once(node: Relation, index: int, terms: Sequence[Expr] = ()) -> bool:
    """Say whether each answer that a column reports stands in one row at most: joins do not copy it.

    `terms`: equalities over the node's columns that hold of its rows.
    """
    match node:
        case Scan():
            return True
        case Filter():
            return stands_once(node.input, index, (*terms, *conjuncts(node.predicate)))
        case Sort() | Limit() | Window() | Declared():
            return index < len(node.input.columns) and stands_once(node.input, index)
        case Project():
            expr = node.exprs[index]
            return isinstance(expr, Field) and stands_once(node.input, expr.index)
        case Join():
            return _joined_once(node, index, terms)
    return False


def _joined_once(node: Join, index: int, terms: Sequence[Expr]) -> bool:
    width = len(node.left.columns)
    if node.kind == "mark":
        return index < width and stands_once(node.left, index, _over(terms, 0, width))
    is_left = index < width
    if node.kind not in (("inner", "cross", "left") if is_left else ("inner", "cross", "right")):
        return False
    other, start, size = (node.right, width, len(node.right.columns)) if is_left else (node.left, 0, width)
    equal = {
        place - start
        for term in (*terms, *conjuncts(node.condition))
        if isinstance(term, Call) and term.function == "eq" and all(isinstance(a, Field) for a in term.args)
        for place in fields_of(term)
        if len(fields_of(term)) == 2 and sum(start <= i < start + size for i in fields_of(term)) == 1
        and start <= place < start + size
    }  # fmt: skip
    if not _is_key(other, equal):
        return False
    side, own = (node.left, 0) if is_left else (node.right, width)
    return stands_once(side, index - own, _over(terms, own, own + len(side.columns)))


def _over(terms: Sequence[Expr], start: int, stop: int) -> tuple[Expr, ...]:
    """Return the terms over the columns of one side, where they begin at 0."""
    kept = [term for term in terms if all(start <= i < stop for i in fields_of(term))]
    return tuple(moved(term, lambda i: i - start) for term in kept)


def _is_key(node: Relation, columns: set[int]) -> bool:
    """Say whether a row of a relation is told from all others by some of its columns."""
    while not isinstance(node, Scan):
        match node:
            case Filter() | Sort() | Declared():
                node = node.input
            case Project():
                exprs = [node.exprs[i] for i in columns]
                columns = {expr.index for expr in exprs if isinstance(expr, Field)}
                node = node.input
            case _:
                return False
    table = node.table
    every = (*table.columns, *table.owner_columns)
    names = {every[index].name for index in columns}
    unit = table.unit
    if unit is not None and unit.is_unique and not unit.is_row and names.issuperset(unit.columns):
        return True
    return any(set(key) <= names for key in table.keys)


def catalog_columns(node: Relation) -> tuple[Column, ...]:
    """Return what is known of each column of a relation, for bounds: of what is not simply a table's, its type."""
    match node:
        case Scan():
            return (
                *node.table.columns,
                *(Column("", c.type) for c in node.columns[len(node.table.columns) :]),
            )
        case Filter() | Sort() | Limit() | Declared():
            return catalog_columns(node.input)
        case Project():
            below = catalog_columns(node.input)
            return tuple(
                below[e.index]
                if isinstance(e, Field)
                else Column("", e.type, facts=facts_of(e, Environment(below)))
                for e in node.exprs
            )
        case Join() if node.kind == "mark":
            return (*catalog_columns(node.left), Column("", BOOLEAN))
        case Join():
            return catalog_columns(node.left) + catalog_columns(node.right)
    return tuple(Column("", column.type) for column in node.columns)
