"""Which columns of a bound relation are reported answers of randomised response, and that nothing else reads one.

House rule: default deny. An expression that reads a reported answer is refused unless it is the bare column in a
projection, or stands in an aggregate whose estimates `bind_estimates` has made (law L4).

What a condition says of a randomised answer: a set of its values (soundness.md 1.24).

House rule: a condition is evaluated here, value by value in SQL's three truths; what this module cannot evaluate
is refused, never guessed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from ..errors import Position, Refusal
from ..mechanisms import Channel
from ..records import dataclass
from ..relation.catalog import Column
from ..relation.expressions import Call, Expr, Field, Literal, Scalar, conjuncts, fields_of, moved, walk
from ..relation.intervals import Environment, facts_of
from ..relation.relations import (
    Block,
    Declared,
    Join,
    Lateral,
    Recursive,
    Relation,
    Scan,
    SetOperation,
    Unnest,
    all_parts,
    ends_in,
    expressions,
)
from ..relation.types import BOOLEAN
from .comparison import compare_in

__all__ = [
    "Answer",
    "Conditions",
    "Reported",
    "catalog_columns",
    "check_reported",
    "chosen_by",
    "holds_private",
    "is_owner",
    "merged",
    "refuse_use",
    "reported_columns",
    "reports",
    "stands_once",
]


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
        below = tuple(map(self.reported, node.reads))
        if self.is_checking:
            self._check(node, below)
        if isinstance(node, Scan):
            own = (
                None if column.randomized is None else Answer(node.table.label, column)
                for column in node.table.columns
            )
            return (*own, *(None for _ in node.columns[len(node.table.columns) :]))
        return tuple(self._of_column(node, index) for index in range(len(node.columns)))

    def _of_column(self, node: Relation, index: int) -> Answer | None:
        """Return the answer that a column of what reads other relations is, by the way to it through joins."""
        origin = None if ends_in(node, "distinct") else node.origin(index)  # one row may be several answers
        answer = None if origin is None else self.reported(origin[0])[origin[1]]
        if origin is None or answer is None or not isinstance(node, Join):
            return answer
        side = 0 if index < len(node.left.columns) else 1
        return Answer(answer.table, answer.column, (side, *answer.mention))

    def _check(self, node: Relation, below: tuple[Reported, ...]) -> None:
        row = [answer for side in below for answer in side]
        is_apart = isinstance(node, (SetOperation, Lateral, Recursive, Unnest)) or ends_in(node, "distinct")
        for answer in row:
            if is_apart and answer is not None:
                raise refuse_use(answer, node.position)
        own = node.alone
        if isinstance(own, Block) and own.group is not None and own.group.is_reported:
            return
        for expr in expressions(own):
            for part in walk(expr):
                if isinstance(part, Scalar):
                    self._check_scalar(part)
            if ends_in(own, "outputs") and expr.column is not None:
                continue
            for index in sorted(fields_of(expr)):
                read = row[index]
                if read is not None:
                    raise refuse_use(read, expr.position or node.position)

    def _check_scalar(self, part: Scalar) -> None:
        for answer in self.reported(part.relation):
            if answer is not None:
                raise refuse_use(answer, part.position)


def holds_private(node: Relation) -> bool:
    """Say whether a relation reads a table that has a privacy unit."""
    return any(isinstance(one, Scan) and one.table.unit is not None for one in all_parts(node))


def is_owner(node: Relation, index: int) -> bool:
    """Say whether a column of a relation is a private table's unit column."""
    while not isinstance(node, Scan):
        origin = node.origin(index)
        if origin is None:
            return False
        node, index = origin
    unit, columns = node.table.unit, node.table.columns
    return unit is not None and (index >= len(columns) or columns[index].name in unit.columns)


def stands_once(node: Relation, index: int, terms: Sequence[Expr] = ()) -> bool:
    """Say whether each answer that a column reports stands in one row at most: joins do not copy it.

    `terms`: equalities over the node's columns that hold of its rows.
    """
    if isinstance(node, Join):
        return _joined_once(node, index, terms)
    origin = node.origin(index)
    if origin is None or ends_in(node, "distinct"):
        return isinstance(node, Scan)
    known = (*terms, *conjuncts(node.predicate)) if ends_in(node, "where", "having") else ()
    return stands_once(*origin, known)


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
        if term.calls("eq") and all(arg.column is not None for arg in term.args)
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
        if not (isinstance(node, Declared) or ends_in(node, "where", "having", "outputs", "orders")):
            return False
        origins = [origin for index in columns if (origin := node.origin(index)) is not None]
        columns = {index for _, index in origins}
        (node,) = node.reads
    table = node.table
    every = (*table.columns, *table.owner_columns)
    names = {every[index].name for index in columns}
    unit = table.unit
    if unit is not None and unit.is_unique and not unit.is_row and names.issuperset(unit.columns):
        return True
    return any(set(key) <= names for key in table.keys)


def catalog_columns(node: Relation) -> tuple[Column, ...]:
    """Return what is known of each column of a relation, for bounds: of what is not simply a table's, its type."""
    if isinstance(node, Scan):
        return (*node.table.columns, *(Column("", c.type) for c in node.columns[len(node.table.columns) :]))
    if ends_in(node, "outputs"):
        below = catalog_columns(node.below)
        return tuple(
            below[e.column]
            if e.column is not None
            else Column("", e.type, facts=facts_of(e, Environment(below)))
            for e in node.exprs
        )
    sides = {id(side): catalog_columns(side) for side in node.reads}
    origins = map(node.origin, range(len(node.columns)))
    return tuple(
        Column("", column.type) if origin is None else sides[id(origin[0])][origin[1]]
        for column, origin in zip(node.columns, origins, strict=True)
    )


# --- what a condition says of a randomised answer: a set of its values (soundness.md 1.24) ------------------


_Chosen = frozenset[int]
"""Which of an answer's values are asked for, by their numbers."""
Conditions = dict[Answer, _Chosen]


def merged(one: Conditions, other: Conditions) -> Conditions:
    """Return what two conditions, both true, say."""
    both = dict(one)
    for answer, chosen in other.items():
        both[answer] = both.get(answer, chosen) & chosen
    return both


def reports(field_: Field, column: Column, chosen: _Chosen) -> Expr:
    """Return whether a row reports one of the chosen values."""
    values = [(column.values or ())[number] for number in sorted(chosen)]
    listed: list[Expr] = [Literal(column.type, value) for value in values if value is not None]
    terms: list[Expr] = [compare_in(field_, listed, None)] if listed else []
    if None in values:
        terms.append(Call(BOOLEAN, "is_null", (field_,)))
    return terms[0] if len(terms) == 1 else Call(BOOLEAN, "or", tuple(terms))


def chosen_by(term: Expr, answer: Answer) -> _Chosen:
    """Return of which values a condition on an answer alone is true. Raises Refusal."""
    values = answer.column.values or ()
    return frozenset(number for number, value in enumerate(values) if _truth(term, value, answer) is True)


def _truth(expr: Expr, value: object, answer: Answer) -> bool | None:
    """Return a condition's truth for one value, in SQL's three values. Raises Refusal: it is not one that is read."""
    if expr.is_constant and (expr.constant is None or isinstance(expr.constant, bool)):
        return expr.constant
    if expr.column is not None and expr.type == BOOLEAN:
        return None if value is None else bool(value)
    if not expr.args:
        raise refuse_use(answer, expr.position)
    function, args = expr.function, expr.args
    if function in ("and", "or", "not", "is_true", "is_false"):
        found = [_truth(arg, value, answer) for arg in args]
        if function == "not":
            return None if found[0] is None else not found[0]
        if function.startswith("is_"):
            return found[0] is (function == "is_true")
        decisive = function == "or"
        if decisive in found:
            return decisive
        return None if None in found else not decisive
    if args[0].column is None or not all(arg.is_constant for arg in args[1:]):
        raise refuse_use(answer, expr.position, "compare it with literals")
    given = [arg.constant for arg in args[1:] if arg.is_constant]
    if function == "is_null":
        return value is None
    if function == "is_not_distinct":
        return value == given[0]
    if function not in ("eq", "ne", "in"):
        raise refuse_use(answer, expr.position, "compare it by =, <> and IN")
    if value is None:
        return None
    if function == "ne":
        return None if given[0] is None else value != given[0]
    return True if value in given else None if None in given else False
