"""The relational algebra: bound, typed, and free of names and text.

Every node's output is a tuple of columns by position. A `Release` is the only node with noisy
rows; nothing but the privacy analysis makes one. A node knows its inputs and its own expressions (over the rows of
its inputs): whoever walks or rewrites relations does it by these alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

from ..errors import Position
from .catalog import Column, Table
from .expressions import Call, Expr, Literal, walk
from .types import BOOLEAN, INTEGER, SqlType

__all__ = [
    "Aggregate", "AggregateCall", "Change", "Distinct", "Filter", "Join", "Limit", "Order", "OutputColumn", "Project",
    "Relation", "Scan", "SetOperation", "Sort", "Values", "Window", "WindowCall", "called_in", "expressions",
    "parts_of",
]  # fmt: skip

Change = Callable[[Expr], Expr]


@dataclass(frozen=True, slots=True)
class OutputColumn:
    """A column of a relation: its type; the name is for messages and the final result alone."""

    type: SqlType
    name: str = field(default="", compare=False, repr=False)


@dataclass(frozen=True)
class Relation:
    """A relation; `columns` are its output columns."""

    position: Position | None = field(default=None, compare=False, repr=False, kw_only=True)

    @property
    def columns(self) -> tuple[OutputColumn, ...]:
        """The output columns, in order."""
        raise AssertionError(type(self).__name__)

    @property
    def inputs(self) -> tuple[Relation, ...]:
        """The relations that it reads, in order."""
        return ()

    def map_inputs(self, change: Callable[[Relation], Relation]) -> Relation:
        """Return it with `change` applied to each input."""
        return self

    def map_expressions(self, change: Change) -> Relation:
        """Return it with `change` applied to each of its own expressions, whole."""
        return self


def expressions(node: Relation) -> tuple[Expr, ...]:
    """Return a node's own expressions, in the order of its text."""
    found: list[Expr] = []

    def note(expr: Expr) -> Expr:
        found.append(expr)
        return expr

    node.map_expressions(note)
    return tuple(found)


def parts_of(node: Relation) -> Iterator[Relation]:
    """Yield a relation and all below it, each once (not into subqueries of expressions)."""
    seen: set[int] = set()
    stack = [node]
    while stack:
        one = stack.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        stack += one.inputs


def called_in(relation: Relation) -> frozenset[str]:
    """Return the functions that a relation calls, all below it too (not in subqueries of expressions)."""
    exprs = (expr for node in parts_of(relation) for expr in expressions(node))
    return frozenset(part.function for expr in exprs for part in walk(expr) if isinstance(part, Call))


@dataclass(frozen=True)
class _Unary(Relation):
    """A relation over one other; its columns are that one's, where nothing else is said."""

    input: Relation

    @property
    def columns(self) -> tuple[OutputColumn, ...]:
        return self.input.columns

    @property
    def inputs(self) -> tuple[Relation, ...]:
        return (self.input,)

    def map_inputs(self, change: Callable[[Relation], Relation]) -> Relation:
        return replace(self, input=change(self.input))


@dataclass(frozen=True)
class Scan(Relation):
    """All declared columns of a table, in catalog order; then those of a private table's owner.

    An owner's column has its name unless it is declared as a column too: it then stands here twice. What the analyst
    does not see has no name.
    """

    table: Table

    @cached_property
    def columns(self) -> tuple[OutputColumn, ...]:
        table = self.table
        own = tuple(
            OutputColumn(column.type, "" if column.name in table.unnamed else column.name)
            for column in table.columns
        )
        named = {column.name for column in table.named} - {column.name for column in table.columns}
        owner = table.owner_columns
        return (*own, *(OutputColumn(one.type, one.name if one.name in named else "") for one in owner))


@dataclass(frozen=True)
class Values(Relation):
    """Literal rows."""

    rows: tuple[tuple[Literal, ...], ...]
    outputs: tuple[OutputColumn, ...]

    @property
    def columns(self) -> tuple[OutputColumn, ...]:
        return self.outputs


@dataclass(frozen=True)
class Filter(_Unary):
    """Rows on which `predicate` is true (not false, not NULL)."""

    predicate: Expr

    def map_expressions(self, change: Change) -> Relation:
        return replace(self, predicate=change(self.predicate))


@dataclass(frozen=True)
class Project(_Unary):
    """One output column per expression over the input row."""

    exprs: tuple[Expr, ...]
    names: tuple[str, ...] = field(compare=False, repr=False)

    @cached_property
    def columns(self) -> tuple[OutputColumn, ...]:
        return tuple(OutputColumn(e.type, n) for e, n in zip(self.exprs, self.names, strict=True))

    def map_expressions(self, change: Change) -> Relation:
        return replace(self, exprs=tuple(map(change, self.exprs)))


@dataclass(frozen=True)
class Declared(_Unary):
    """People's rows, of some of whose columns an owner declares bounds and values: `declared`, None where not.

    They are enforced where a column is read, as those of a table are.
    """

    declared: tuple[Column | None, ...]


@dataclass(frozen=True, slots=True)
class Order:
    """A sort key."""

    expr: Expr
    descending: bool
    nulls_first: bool

    def map(self, change: Change) -> Order:
        """Return it with its expression changed."""
        return replace(self, expr=change(self.expr))


@dataclass(frozen=True, slots=True)
class AggregateCall:
    """An aggregate function: `args` over the input row, only rows where `filter` is true, DISTINCT or not.

    `orders`: in which order it takes the rows, above the release alone.
    """

    type: SqlType
    function: str
    args: tuple[Expr, ...]
    distinct: bool
    filter: Expr | None
    orders: tuple[Order, ...] = ()
    position: Position | None = field(default=None, compare=False, repr=False, kw_only=True)

    def map(self, change: Change) -> AggregateCall:
        """Return it with `change` applied to its arguments, its filter and its order."""
        kept = None if self.filter is None else change(self.filter)
        orders = tuple(order.map(change) for order in self.orders)
        return replace(self, args=tuple(map(change, self.args)), filter=kept, orders=orders)


@dataclass(frozen=True)
class Aggregate(_Unary):
    """GROUP BY: output is the keys, then the aggregates, then GROUPING() bits where asked.

    `sets`: the grouping sets as key positions; a key outside a row's set is NULL. A plain GROUP BY
    has one set with all keys, an ungrouped aggregate the one empty set. `groupings`: tuples of key
    positions whose GROUPING() value is wanted. `is_reported`: it is over what randomised answers report, and what
    stands above it makes estimates of the true ones (soundness.md 1.24).
    """

    keys: tuple[Expr, ...]
    aggregates: tuple[AggregateCall, ...]
    sets: tuple[tuple[int, ...], ...]
    groupings: tuple[tuple[int, ...], ...] = ()
    names: tuple[str, ...] = field(default=(), compare=False, repr=False)
    is_reported: bool = field(default=False, compare=False, repr=False)

    @cached_property
    def columns(self) -> tuple[OutputColumn, ...]:
        types = [e.type for e in self.keys] + [a.type for a in self.aggregates]
        types += [INTEGER] * len(self.groupings)
        names = list(self.names) + [""] * (len(types) - len(self.names))
        return tuple(OutputColumn(t, n) for t, n in zip(types, names, strict=True))

    def map_expressions(self, change: Change) -> Relation:
        aggregates = tuple(call.map(change) for call in self.aggregates)
        return replace(self, keys=tuple(map(change, self.keys)), aggregates=aggregates)


@dataclass(frozen=True, slots=True)
class WindowCall:
    """A window function over the input row; `frame` is a checked frame clause in canonical words."""

    type: SqlType
    function: str
    args: tuple[Expr, ...]
    partition: tuple[Expr, ...]
    orders: tuple[Order, ...]
    frame: str | None
    position: Position | None = field(default=None, compare=False, repr=False, kw_only=True)

    def map(self, change: Change) -> WindowCall:
        """Return it with `change` applied to its arguments, partition and order."""
        return replace(
            self,
            args=tuple(map(change, self.args)),
            partition=tuple(map(change, self.partition)),
            orders=tuple(order.map(change) for order in self.orders),
        )


@dataclass(frozen=True)
class Window(_Unary):
    """The input's columns followed by one column per window call."""

    calls: tuple[WindowCall, ...]

    @cached_property
    def columns(self) -> tuple[OutputColumn, ...]:
        return (*self.input.columns, *(OutputColumn(call.type) for call in self.calls))

    def map_expressions(self, change: Change) -> Relation:
        return replace(self, calls=tuple(call.map(change) for call in self.calls))


@dataclass(frozen=True)
class Distinct(_Unary):
    """The input without repeated rows."""


@dataclass(frozen=True)
class Sort(_Unary):
    """The input in order."""

    orders: tuple[Order, ...]

    def map_expressions(self, change: Change) -> Relation:
        return replace(self, orders=tuple(order.map(change) for order in self.orders))


@dataclass(frozen=True)
class Limit(_Unary):
    """At most `limit` rows (None: all) after the first `offset`."""

    limit: int | None
    offset: int


@dataclass(frozen=True)
class SetOperation(Relation):
    """UNION, INTERSECT or EXCEPT of two relations of the same column types; `all` keeps repeats."""

    kind: str
    all: bool
    left: Relation
    right: Relation
    outputs: tuple[OutputColumn, ...]

    @property
    def columns(self) -> tuple[OutputColumn, ...]:
        return self.outputs

    @property
    def inputs(self) -> tuple[Relation, ...]:
        return self.left, self.right

    def map_inputs(self, change: Callable[[Relation], Relation]) -> Relation:
        return replace(self, left=change(self.left), right=change(self.right))


@dataclass(frozen=True)
class Join(Relation):
    """A join (inner, left, right, full, cross, mark); `condition` is over left's then right's columns.

    A mark join has left's rows and columns, and one BOOLEAN column at the end: whether the condition is
    true for some right row, never NULL. EXISTS and IN are mark joins. `word`: how the join was written,
    for refusals: "", "EXISTS", "IN", "NOT IN" or "scalar" (a scalar subquery with outer columns).
    """

    kind: str
    left: Relation
    right: Relation
    condition: Expr
    word: str = field(default="", compare=False, repr=False)

    @cached_property
    def columns(self) -> tuple[OutputColumn, ...]:
        if self.kind == "mark":
            return (*self.left.columns, OutputColumn(BOOLEAN))
        return self.left.columns + self.right.columns

    @property
    def inputs(self) -> tuple[Relation, ...]:
        return self.left, self.right

    def map_inputs(self, change: Callable[[Relation], Relation]) -> Relation:
        return replace(self, left=change(self.left), right=change(self.right))

    def map_expressions(self, change: Change) -> Relation:
        return replace(self, condition=change(self.condition))
