"""The relational algebra: bound, typed, and free of names and text.

Every node's output is a tuple of columns by position. A `Release` is the only node with noisy
rows; nothing but the privacy analysis makes one. A node knows its inputs and its own expressions (over the rows of
its inputs): whoever walks or rewrites relations does it by these alone.

Relations that are answered only above the release: series, arrays in rows, lateral joins, recursion.

No engine below the release is ever asked for one of these: the privacy analysis refuses them over people's rows, and
the sealed engine, whose memory and time are limited, is where they run.

`map_tables` replaces a relation's tables by others, such as the same ones under other declarations. All parts of a
relation that was bound from another text have the position of its name in the statement: a view's text is not part of
the statement, so a position in that text would point at the wrong words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, fields, replace
from fractions import Fraction
from functools import cached_property
from operator import is_not
from typing import ClassVar, TypeGuard, TypeVar

from ..errors import Position, Refusal
from ..records import dataclass
from .aggregates import AGGREGATES
from .aggregates import Aggregate as AggregateRow
from .catalog import PERIOD, Catalog, Column, Ground, Table
from .expressions import Call, Expr, Field, Literal, Scalar, map_children, parts_in
from .types import BIGINT, BOOLEAN, INTEGER, SqlType

Change = Callable[[Expr], Expr]
_One = TypeVar("_One")


def _mapped(items: tuple[_One, ...], change: Callable[[_One], _One]) -> tuple[_One, ...]:
    """Return changed items; the very tuple where each stays as it is."""
    changed = tuple(map(change, items))
    return changed if any(map(is_not, items, changed)) else items


@dataclass(frozen=True, slots=True)
class OutputColumn:
    """A column of a relation: its type; the name is for messages and the final result alone."""

    type: SqlType
    name: str = field(default="", compare=False, repr=False)


@dataclass(frozen=True)
class Relation:
    """A relation; `columns` are its output columns.

    `_INPUTS`: the fields that are relations which it reads, `_EXPRS`: those that are expressions over their rows.
    """

    position: Position | None = field(default=None, compare=False, repr=False, kw_only=True)
    _INPUTS: ClassVar[tuple[str, ...]] = ()
    _EXPRS: ClassVar[tuple[str, ...]] = ()

    @property
    def columns(self) -> tuple[OutputColumn, ...]:
        """The output columns, in order."""
        raise AssertionError(type(self).__name__)

    @property
    def row(self) -> tuple[Field, ...]:
        """Its columns as fields, for expressions over it."""
        return tuple(Field(column.type, i, column.name) for i, column in enumerate(self.columns))

    @property
    def inputs(self) -> tuple[Relation, ...]:
        """The relations that it reads, in order."""
        return tuple(getattr(self, name) for name in self._INPUTS)

    @property
    def reads(self) -> tuple[Relation, ...]:
        """The relations that its last step reads: its inputs, and of a block what is below its last part."""
        return self.inputs

    @property
    def alone(self) -> Relation:
        """Its last step by itself over what that reads."""
        return self

    def over(self, *reads: Relation) -> Relation:
        """Return its last step over other relations than it `reads`."""
        given = iter(reads)
        return self.map_inputs(lambda _: next(given))

    def origin(self, index: int) -> tuple[Relation, int] | None:
        """Return what column of what it reads a column is, value for value; None: it is made here.

        Where an outer join finds no row, the column is NULL instead.
        """
        return None

    def map_inputs(self, change: Callable[[Relation], Relation]) -> Relation:
        """Return it with `change` applied to each input."""
        changed = {name: change(getattr(self, name)) for name in self._INPUTS}
        return replace(self, **changed) if changed else self  # type: ignore[arg-type]

    def map_expressions(self, change: Change) -> Relation:
        """Return it with `change` applied to each of its own expressions, whole."""
        changed = {name: change(getattr(self, name)) for name in self._EXPRS}
        return replace(self, **changed) if changed else self  # type: ignore[arg-type]

    @cached_property
    def _expressions(self) -> tuple[Expr, ...]:
        found: list[Expr] = []

        def note(expr: Expr) -> Expr:
            found.append(expr)
            return expr

        self.map_expressions(note)
        return tuple(found)


def expressions(node: Relation) -> tuple[Expr, ...]:
    """Return a node's own expressions, in the order of its text."""
    return node._expressions


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


def subqueries(node: Relation) -> Iterator[Relation]:
    """Yield the scalar subqueries in a node's own expressions, in the order of its text."""
    for expr in expressions(node):
        yield from (part.relation for part in parts_in(Scalar, expr))


def all_parts(node: Relation) -> Iterator[Relation]:
    """Yield the parts of a relation, those of subqueries too: each once, in text order, the relation itself last."""
    seen: set[int] = set()

    def visit(one: Relation) -> Iterator[Relation]:
        if id(one) not in seen:
            seen.add(id(one))
            for below in (*one.inputs, *subqueries(one)):
                yield from visit(below)
            yield one

    return visit(node)


_Node = TypeVar("_Node", bound=Relation)


def nodes_in(kind: type[_Node], *roots: Relation) -> Iterator[_Node]:
    """Yield the nodes of a kind that stand in relations, in the order of `all_parts`."""
    return (node for root in roots for node in all_parts(root) if isinstance(node, kind))


def called_in(relation: Relation) -> frozenset[str]:
    """Return the functions that a relation calls, all below it too (not in subqueries of expressions)."""
    exprs = (expr for node in parts_of(relation) for expr in expressions(node))
    return frozenset(call.function for call in parts_in(Call, *exprs))


@dataclass(frozen=True)
class Scan(Relation):
    """All declared columns of a table, in catalog order; then those of a private table's owner.

    An owner's column has its name unless it is declared as a column too: it is then listed twice. What the analyst
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
        owner = [column for column in table.owner_columns if column.name != PERIOD]  # no statement reads it
        return (*own, *(OutputColumn(one.type, one.name if one.name in named else "") for one in owner))

    @property
    def listed(self) -> tuple[int, ...]:
        """The columns that a statement can name, in the order in which `*` lists them."""
        names = [column.name for column in self.columns]
        return tuple(names.index(column.name) for column in self.table.named)


@dataclass(frozen=True)
class Values(Relation):
    """Literal rows."""

    rows: tuple[tuple[Literal, ...], ...]
    outputs: tuple[OutputColumn, ...]

    @property
    def columns(self) -> tuple[OutputColumn, ...]:
        return self.outputs


@dataclass(frozen=True)
class Declared(Relation):
    """People's rows, of some of whose columns an owner declares bounds and values: `declared`, None where not.

    They are enforced where a column is read, as those of a table are.
    """

    input: Relation
    declared: tuple[Column | None, ...]
    _INPUTS = ("input",)

    @property
    def columns(self) -> tuple[OutputColumn, ...]:
        return self.input.columns

    def origin(self, index: int) -> tuple[Relation, int] | None:
        return self.input, index


@dataclass(frozen=True, slots=True)
class Order:
    """A sort key."""

    expr: Expr
    descending: bool
    nulls_first: bool

    def map(self, change: Change) -> Order:
        """Return it with its expression changed."""
        expr = change(self.expr)
        return self if expr is self.expr else replace(self, expr=expr)


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

    @property
    def row(self) -> AggregateRow:
        """What is known of its function."""
        return AGGREGATES[self.function]

    @property
    def share(self) -> Fraction:
        """The fraction of the rows at which its value is looked for; of a choice by rank alone."""
        if self.row.share is not None:
            return self.row.share
        share = self.args[1].constant_as(Fraction)
        assert share is not None
        return share

    def map(self, change: Change) -> AggregateCall:
        """Return it with `change` applied to its arguments, its filter and its order."""
        args, kept = _mapped(self.args, change), None if self.filter is None else change(self.filter)
        orders = _mapped(self.orders, lambda order: order.map(change))
        if args is self.args and kept is self.filter and orders is self.orders:
            return self
        return replace(self, args=args, filter=kept, orders=orders)


@dataclass(frozen=True)
class Group:
    """GROUP BY: a row has the keys, then the aggregates, then GROUPING() bits where asked.

    `sets`: the grouping sets as key positions; a key outside a row's set is NULL. A plain GROUP BY
    has one set with all keys, an ungrouped aggregate the one empty set. `groupings`: tuples of key
    positions whose GROUPING() value is wanted. `is_reported`: it counts randomised answers,
    from which the steps above estimate the true ones (soundness.md 1.24).
    """

    keys: tuple[Expr, ...]
    aggregates: tuple[AggregateCall, ...]
    sets: tuple[tuple[int, ...], ...]
    groupings: tuple[tuple[int, ...], ...] = ()
    names: tuple[str, ...] = field(default=(), compare=False, repr=False)
    is_reported: bool = field(default=False, compare=False, repr=False)

    @cached_property
    def columns(self) -> tuple[OutputColumn, ...]:
        """The columns of its rows."""
        types = [e.type for e in self.keys] + [a.type for a in self.aggregates]
        types += [INTEGER] * len(self.groupings)
        names = list(self.names) + [""] * (len(types) - len(self.names))
        return tuple(OutputColumn(t, n) for t, n in zip(types, names, strict=True))

    @property
    def is_one_row(self) -> bool:
        """Whether it is one row, whatever there is: it has no keys."""
        return self.sets == ((),)

    def map(self, change: Change) -> Group:
        """Return it with `change` applied to its keys and to what its aggregates read."""
        keys, calls = _mapped(self.keys, change), _mapped(self.aggregates, lambda call: call.map(change))
        if keys is self.keys and calls is self.aggregates:
            return self
        return replace(self, keys=keys, aggregates=calls)


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

    @property
    def row(self) -> AggregateRow | None:
        """What is known of its function; None: it is no aggregate."""
        return AGGREGATES.get(self.function)

    @property
    def as_aggregate(self) -> AggregateCall:
        """The same function as an aggregate of all rows."""
        return AggregateCall(self.type, self.function, self.args, False, None, position=self.position)

    def map(self, change: Change) -> WindowCall:
        """Return it with `change` applied to its arguments, partition and order."""
        args, partition = _mapped(self.args, change), _mapped(self.partition, change)
        orders = _mapped(self.orders, lambda order: order.map(change))
        if args is self.args and partition is self.partition and orders is self.orders:
            return self
        return replace(self, args=args, partition=partition, orders=orders)


PARTS = ("where", "group", "having", "windows", "outputs", "distinct", "orders", "limit")
"""The parts of a SELECT in the order in which SQL means them: each is over the rows that those before it leave."""
_ABSENT: Mapping[str, object] = dict.fromkeys(PARTS) | {"windows": (), "distinct": False, "orders": ()}


@dataclass(frozen=True)
class Block(Relation):
    """One SELECT over one input: it has some of the `PARTS`, one at least; None, () and False are a part's absence.

    `where`, `having`: the rows on which it is true (not false, not NULL). `windows`: a column for each call behind
    the existing ones. `outputs`: one column per expression, which replace the existing ones. `orders`: over the
    outputs. `limit`: how many rows (None: all), and the offset. `parts`: the name and text position of each part that
    it has, in the order of `PARTS`; the last of these positions is the block's `position`.

    `filtered`, `grouped`, `windowed`, `projected`, `without_repeats`, `ordered` and `limited` put one part on a
    relation: into its own block where the order of `PARTS` allows it. `last` and `below` take one off.
    """

    input: Relation
    where: Expr | None = None
    group: Group | None = None
    having: Expr | None = None
    windows: tuple[WindowCall, ...] = ()
    outputs: tuple[Expr, ...] | None = None
    names: tuple[str, ...] = field(default=(), compare=False, repr=False)
    distinct: bool = False
    orders: tuple[Order, ...] = ()
    limit: tuple[int | None, int] | None = None
    parts: tuple[tuple[str, Position | None], ...] = field(default=(), compare=False, repr=False)

    @cached_property
    def last(self) -> str:
        """The last part that it has."""
        return self.parts[-1][0]

    @cached_property
    def below(self) -> Relation:
        """What its last part is over: the block without it, or the input where it has no other."""
        left = self.parts[:-1]
        if not left:
            return self.input
        without = {self.last: _ABSENT[self.last], "parts": left, "position": left[-1][1]}
        return self._with(without)

    @property
    def steps(self) -> tuple[Block, ...]:
        """The block as far as each of its parts, the first part alone first."""
        found = [self]
        while len(found[0].parts) > 1 and isinstance(below := found[0].below, Block):
            found.insert(0, below)
        return tuple(found)

    @cached_property
    def alone(self) -> Block:
        if len(self.parts) == 1:
            return self
        only = {self.last: getattr(self, self.last), "parts": self.parts[-1:]}
        return self._with({**_ABSENT, **only, "input": self.below})

    @property
    def exprs(self) -> tuple[Expr, ...]:
        """Its outputs; none where it has no such part."""
        return () if self.outputs is None else self.outputs

    @property
    def predicate(self) -> Expr:
        """The last of its two filters."""
        found = self.where if self.having is None else self.having
        assert found is not None
        return found

    @cached_property
    def columns(self) -> tuple[OutputColumn, ...]:
        if self.outputs is not None:
            return tuple(OutputColumn(e.type, n) for e, n in zip(self.outputs, self.names, strict=True))
        own = self.input.columns if self.group is None else self.group.columns
        return (*own, *(OutputColumn(call.type) for call in self.windows))

    @property
    def inputs(self) -> tuple[Relation, ...]:
        return (self.input,)

    def _with(self, changed: Mapping[str, object]) -> Block:
        """Return it with some fields changed: `dataclasses.replace`, in a fifth of its time."""
        block = object.__new__(Block)
        block.__dict__.update({name: self.__dict__[name] for name in _FIELDS})
        block.__dict__.update(changed)
        return block

    def map_inputs(self, change: Callable[[Relation], Relation]) -> Block:
        return self._with({"input": change(self.input)})

    def map_expressions(self, change: Change) -> Block:
        own = {
            "where": None if self.where is None else change(self.where),
            "group": None if self.group is None else self.group.map(change),
            "having": None if self.having is None else change(self.having),
            "windows": _mapped(self.windows, lambda call: call.map(change)),
            "outputs": None if self.outputs is None else _mapped(self.outputs, change),
            "orders": _mapped(self.orders, lambda order: order.map(change)),
        }
        changed = {name: value for name, value in own.items() if value is not getattr(self, name)}
        return self._with(changed) if changed else self

    @property
    def reads(self) -> tuple[Relation, ...]:
        return (self.below,)

    def over(self, *reads: Relation) -> Block:
        (below,) = reads
        if below is self.below:
            return self
        return _put(below, self.last, getattr(self, self.last), self.position, self.names)

    def origin(self, index: int) -> tuple[Relation, int] | None:
        if self.last == "outputs" and self.outputs is not None:
            column = self.outputs[index].column
            return None if column is None else (self.below, column)
        return None if self.last == "group" or index >= len(self.below.columns) else (self.below, index)


_FIELDS = tuple(one.name for one in fields(Block))
_EMPTY = Block(Relation())


def ends_in(node: Relation, *parts: str) -> TypeGuard[Block]:
    """Say whether a relation is a block whose last part is one of `parts`."""
    return isinstance(node, Block) and node.last in parts


def skipped(node: Relation, *parts: str) -> Relation:
    """Return a relation without those of `parts` that it ends in."""
    while ends_in(node, *parts):
        node = node.below
    return node


def unordered(node: Relation) -> Relation:
    """Return a query without its order and limit, and without what drops the columns that it is ordered by."""
    while ends_in(node, "orders", "limit") or (
        ends_in(node, "outputs") and ends_in(node.below, "orders", "limit")
    ):
        node = node.below
    return node


def _put(
    relation: Relation, part: str, value: object, position: Position | None, names: tuple[str, ...] = ()
) -> Block:
    """Return a relation with one more part: in the same block if all of its parts come earlier in `PARTS`."""
    if part in ("where", "having"):
        part = "having" if ends_in(relation, "group") else "where"
    more = {part: value, "position": position}
    if part == "outputs":
        more["names"] = names
    if not isinstance(relation, Block) or PARTS.index(relation.last) >= PARTS.index(part):
        return _EMPTY._with({**more, "input": relation, "parts": ((part, position),)})
    # the relation that the part is put on is the one below it
    return relation._with({**more, "parts": (*relation.parts, (part, position)), "below": relation})


def filtered(relation: Relation, predicate: Expr, position: Position | None = None) -> Block:
    """Return the rows on which a predicate is true (not false, not NULL)."""
    return _put(relation, "where", predicate, position)


def grouped(relation: Relation, group: Group, position: Position | None = None) -> Block:
    """Return the groups of a relation's rows."""
    return _put(relation, "group", group, position)


def windowed(relation: Relation, calls: tuple[WindowCall, ...], position: Position | None = None) -> Block:
    """Return a relation's columns followed by one column per window call."""
    return _put(relation, "windows", calls, position)


def projected(
    relation: Relation, exprs: Iterable[Expr], names: Iterable[str] = (), position: Position | None = None
) -> Block:
    """Return one output column per expression over a relation's row; without names none has one."""
    outputs = tuple(exprs)
    return _put(relation, "outputs", outputs, position, tuple(names) or ("",) * len(outputs))


def renamed(relation: Relation, names: Sequence[str]) -> Block:
    """Return a relation with other names for its columns."""
    named = (Field(one.type, one.index, name) for one, name in zip(relation.row, names, strict=True))
    return projected(relation, named, names)


def without_repeats(relation: Relation, position: Position | None = None) -> Block:
    """Return a relation without repeated rows."""
    return _put(relation, "distinct", True, position)


def ordered(relation: Relation, orders: tuple[Order, ...], position: Position | None = None) -> Block:
    """Return a relation in order."""
    return _put(relation, "orders", orders, position)


def limited(relation: Relation, count: int | None, offset: int) -> Block:
    """Return at most `count` rows (None: all) after the first `offset`."""
    return _put(relation, "limit", (count, offset), None)


@dataclass(frozen=True)
class SetOperation(Relation):
    """UNION, INTERSECT or EXCEPT of two relations of the same column types; `all` keeps repeats."""

    kind: str
    all: bool
    left: Relation
    right: Relation
    outputs: tuple[OutputColumn, ...]
    _INPUTS = ("left", "right")

    @property
    def columns(self) -> tuple[OutputColumn, ...]:
        return self.outputs

    @property
    def leaves(self) -> tuple[Relation, ...]:
        """Its sides in order; of UNION ALLs in UNION ALLs with columns of the same types, those of all of them."""
        sides = (self.left, self.right)
        return tuple(leaf for one in sides for leaf in (one.leaves if self._goes_on(one) else (one,)))

    def over_leaves(self, leaves: Iterable[Relation], outputs: tuple[OutputColumn, ...]) -> SetOperation:
        """Return it over other leaves, in order, whose columns are others."""
        given = iter(leaves)
        left, right = (
            one.over_leaves(given, outputs) if self._goes_on(one) else next(given)
            for one in (self.left, self.right)
        )
        return replace(self, left=left, right=right, outputs=outputs)

    def _goes_on(self, side: Relation) -> TypeGuard[SetOperation]:
        are_unions = (
            isinstance(side, SetOperation) and self.kind == side.kind == "union" and self.all and side.all
        )
        return are_unions and [one.type for one in side.columns] == [one.type for one in self.columns]


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
    _INPUTS = ("left", "right")
    _EXPRS = ("condition",)

    @cached_property
    def columns(self) -> tuple[OutputColumn, ...]:
        if self.kind == "mark":
            return (*self.left.columns, OutputColumn(BOOLEAN))
        return self.left.columns + self.right.columns

    def origin(self, index: int) -> tuple[Relation, int] | None:
        width = len(self.left.columns)
        if index < width:
            return self.left, index
        return None if self.kind == "mark" else (self.right, index - width)


# --- relations only above the release: series, arrays in rows, lateral joins, recursion ---------------------


MAX_SERIES = 1_000_000
"""Most rows of one series that the text says."""
MAX_ROW_SERIES = 10_000
"""Most rows of a series that a row says: the engine holds those of 2048 rows at once, outside its memory limit."""
MAX_RECURSION = 1_000_000
"""Most rows that all rounds of a statement's recursions make, before UNION leaves any out: each makes one at least."""


@dataclass(frozen=True)
class Series(Relation):
    """Rows of one column: integers, or microseconds since 1970-01-01 for timestamps, known from the text."""

    values: range | tuple[int, ...]
    type: SqlType
    name: str = field(default="generate_series", compare=False)

    @property
    def columns(self) -> tuple[OutputColumn, ...]:
        return (OutputColumn(self.type, self.name),)


@dataclass(frozen=True)
class Unnest(Relation):
    """The input's columns, then one of each array's elements, in rows: as many as the longest array has.

    `numbered`: a last column counts the rows of each input row from 1. `outer`: a row of the input whose arrays are
    all empty is kept, with NULL.
    """

    input: Relation
    arrays: tuple[Expr, ...]
    numbered: bool = False
    outer: bool = False
    _INPUTS = ("input",)

    @cached_property
    def columns(self) -> tuple[OutputColumn, ...]:
        elements = [array.type.element for array in self.arrays]
        added = [OutputColumn(element) for element in elements if element is not None]
        return (*self.input.columns, *added, *([OutputColumn(BIGINT, "ordinality")] if self.numbered else []))

    def map_expressions(self, change: Change) -> Relation:
        return replace(self, arrays=tuple(map(change, self.arrays)))


@dataclass(frozen=True)
class Lateral(Relation):
    """A join whose right side reads the left row, as `Outer` expressions over it.

    `kind`: inner and left have both sides' columns. Others have the left ones and one more: scalar, the value of the
    right side's one row (NULL for none, and for several); any, whether the condition, which is over left's and then
    right's columns, is true for some right row: NULL where it is not, and is NULL for one. `refused`: the refusal
    to raise where one side has people's rows.
    """

    kind: str
    left: Relation
    right: Relation
    condition: Expr
    refused: Refusal = field(compare=False, repr=False)
    _INPUTS = ("left", "right")
    _EXPRS = ("condition",)

    @cached_property
    def columns(self) -> tuple[OutputColumn, ...]:
        if self.kind == "any":
            return (*self.left.columns, OutputColumn(BOOLEAN))
        return (*self.left.columns, *self.right.columns)


@dataclass(frozen=True)
class RecursiveRef(Relation):
    """The rows of the last round, inside the step of the recursion of that number."""

    number: int
    outputs: tuple[OutputColumn, ...]

    @property
    def columns(self) -> tuple[OutputColumn, ...]:
        return self.outputs


@dataclass(frozen=True)
class Recursive(Relation):
    """WITH RECURSIVE: `base`, and round by round the rows of `step`; without `all` each row once."""

    number: int
    base: Relation
    step: Relation
    all: bool
    outputs: tuple[OutputColumn, ...]
    _INPUTS = ("base", "step")

    @property
    def columns(self) -> tuple[OutputColumn, ...]:
        return self.outputs


# --- a relation that was bound from another text, as part of a statement ------------------------------------


def placed(relation: Relation, position: Position | None) -> Relation:
    """Return a relation all of whose parts have one position."""

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


# --- a relation over other declarations of its tables -------------------------------------------------------


def map_tables(
    relation: Relation,
    change: Callable[[Table], Table],
    rename: Callable[[Field], Field] = lambda field: field,
) -> Relation:
    """Return a relation with `change` applied to every table that it reads, in subqueries of expressions too.

    `rename`: gives each column that an expression reads its name, for messages.
    """

    def scan(node: Relation) -> Relation | None:
        return replace(node, table=change(node.table)) if isinstance(node, Scan) else None

    return map_parts(relation, scan, rename)


def map_parts(
    relation: Relation,
    change: Callable[[Relation], Relation | None],
    rename: Callable[[Field], Field] = lambda field: field,
) -> Relation:
    """Return a relation with `change` applied to its parts from above, in subqueries of expressions too; None: it goes
    on below. `rename`: as in `map_tables`."""

    def part(node: Relation) -> Relation:
        changed = change(node)
        return node.map_inputs(part).map_expressions(expression) if changed is None else changed

    def expression(expr: Expr) -> Expr:
        below = map_children(expr, expression)
        if isinstance(below, Scalar):
            return replace(below, relation=part(below.relation))
        return rename(below) if isinstance(below, Field) else below

    return part(relation)


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
