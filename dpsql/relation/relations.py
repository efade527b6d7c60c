"""The relational algebra: bound, typed, and free of names and text.

Every node's output is a tuple of columns by position. A `Release` is the only node with noisy
rows; nothing but `plan.judge` makes one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from ..errors import Position
from .catalog import Table
from .expressions import Expr, Literal
from .types import BOOLEAN, INTEGER, SqlType

__all__ = [
    "Aggregate", "AggregateCall", "Distinct", "Filter", "Join", "Limit", "Order", "OutputColumn", "Project",
    "Relation", "Scan", "SetOperation", "Sort", "Values", "Window", "WindowCall",
]  # fmt: skip


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


@dataclass(frozen=True)
class Scan(Relation):
    """All declared columns of a table, in catalog order; then a private table's owner.

    The owner column has its name unless it is declared as a column too: it then stands here twice.
    """

    table: Table

    @cached_property
    def columns(self) -> tuple[OutputColumn, ...]:
        own = tuple(OutputColumn(column.type, column.name) for column in self.table.columns)
        unit = self.table.unit
        if unit is None:
            return own
        return (*own, OutputColumn(unit.type, "" if self.table.column(unit.column) else unit.column))


@dataclass(frozen=True)
class Values(Relation):
    """Literal rows."""

    rows: tuple[tuple[Literal, ...], ...]
    outputs: tuple[OutputColumn, ...]

    @property
    def columns(self) -> tuple[OutputColumn, ...]:
        return self.outputs


@dataclass(frozen=True)
class Filter(Relation):
    """Rows on which `predicate` is true (not false, not NULL)."""

    input: Relation
    predicate: Expr

    @property
    def columns(self) -> tuple[OutputColumn, ...]:
        return self.input.columns


@dataclass(frozen=True)
class Project(Relation):
    """One output column per expression over the input row."""

    input: Relation
    exprs: tuple[Expr, ...]
    names: tuple[str, ...] = field(compare=False, repr=False)

    @cached_property
    def columns(self) -> tuple[OutputColumn, ...]:
        return tuple(OutputColumn(e.type, n) for e, n in zip(self.exprs, self.names, strict=True))


@dataclass(frozen=True, slots=True)
class Order:
    """A sort key."""

    expr: Expr
    descending: bool
    nulls_first: bool


@dataclass(frozen=True, slots=True)
class AggregateCall:
    """An aggregate function: `args` over the input row, only rows where `filter` is true, DISTINCT or not."""

    type: SqlType
    function: str
    args: tuple[Expr, ...]
    distinct: bool
    filter: Expr | None
    position: Position | None = field(default=None, compare=False, repr=False, kw_only=True)


@dataclass(frozen=True)
class Aggregate(Relation):
    """GROUP BY: output is the keys, then the aggregates, then GROUPING() bits where asked.

    `sets`: the grouping sets as key positions; a key outside a row's set is NULL. A plain GROUP BY
    has one set with all keys, an ungrouped aggregate the one empty set. `groupings`: tuples of key
    positions whose GROUPING() value is wanted.
    """

    input: Relation
    keys: tuple[Expr, ...]
    aggregates: tuple[AggregateCall, ...]
    sets: tuple[tuple[int, ...], ...]
    groupings: tuple[tuple[int, ...], ...] = ()
    names: tuple[str, ...] = field(default=(), compare=False, repr=False)

    @cached_property
    def columns(self) -> tuple[OutputColumn, ...]:
        types = [e.type for e in self.keys] + [a.type for a in self.aggregates]
        types += [INTEGER] * len(self.groupings)
        names = list(self.names) + [""] * (len(types) - len(self.names))
        return tuple(OutputColumn(t, n) for t, n in zip(types, names, strict=True))


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


@dataclass(frozen=True)
class Window(Relation):
    """The input's columns followed by one column per window call."""

    input: Relation
    calls: tuple[WindowCall, ...]

    @cached_property
    def columns(self) -> tuple[OutputColumn, ...]:
        return (*self.input.columns, *(OutputColumn(call.type) for call in self.calls))


@dataclass(frozen=True)
class Distinct(Relation):
    """The input without repeated rows."""

    input: Relation

    @property
    def columns(self) -> tuple[OutputColumn, ...]:
        return self.input.columns


@dataclass(frozen=True)
class Sort(Relation):
    """The input in order."""

    input: Relation
    orders: tuple[Order, ...]

    @property
    def columns(self) -> tuple[OutputColumn, ...]:
        return self.input.columns


@dataclass(frozen=True)
class Limit(Relation):
    """At most `limit` rows (None: all) after the first `offset`."""

    input: Relation
    limit: int | None
    offset: int

    @property
    def columns(self) -> tuple[OutputColumn, ...]:
        return self.input.columns


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
