"""The two kinds of relation (soundness.md 1.10): private rows, and everything else, which is public.

House rules:

1. `PrivateBlock` and `OwnedRows` cannot be printed, iterated or compared by a user: their repr says only that they
   are private. What they hold is a plan, not data, but nothing after the release has a use for it.
2. `Release` is the one way across the release boundary. It is built by `analyze` alone; its rows are noisy or
   declared, never exact.
3. A private relation is a select block: sources joined one after the other, the rows on which
   `predicate` holds, and outputs over the sources' columns. `PrivateBlock` is such a block as the statement
   has it so far (a comma join finds its equality only in WHERE); `ownership.resolve_owner` turns it into `OwnedRows`,
   whose every row has one owner: N(D) = ⊎_u N_u(D_u, Pub) holds for `OwnedRows` alone (soundness.md 1.10).
4. A source's `columns` say what is known of its values; a source in place `k` of a block has its columns
   after those of the sources before it. A `mark` source has one column: whether any row of it matches.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, field
from functools import cached_property
from typing import NamedTuple

from ...cache import Made
from ...errors import Position
from ...records import dataclass
from ...relation.catalog import Column, Enforced, Scalar, Table
from ...relation.expressions import Call, Expr, Field, IntermediateValue, Literal, fields_of, parts_in
from ...relation.relations import AggregateCall, OutputColumn, Relation, WindowCall
from ...relation.types import BOOLEAN, SqlType

Identity = tuple[str, tuple[str, ...]]
"""(table, columns): a key that the engine holds unique in a private table, so that its value has one owner."""


Units = tuple[frozenset[int], ...]
"""Of each column of the owner, the columns of a block that equal it in every row."""


@dataclass(frozen=True)
class Fan:
    """How many rows of a public source can match one row: the most that have equal values in its columns `by`.

    `items`: the source; `predicate`: the filter terms that are its own.
    """

    items: tuple[Item, ...]
    predicate: tuple[Expr, ...]
    by: tuple[int, ...]


@dataclass(frozen=True)
class Reach:
    """The most rows of one owner, as the printed SQL bounds them (`growth`): `most` times each of the `fans`.

    `most` None: no number is printed, but a row is made of one row of the owner in some table, and of that
    row as often as the text says.
    """

    most: int | None
    fans: tuple[Fan, ...] = ()


LINEAR = Reach(None)


Declarations = tuple[tuple[int, object, object, object, object], ...]
"""Of columns, by their position: bounds, step, values and longest text, as a view declares them."""


@dataclass(frozen=True)
class Lookup:
    """Rows of two people: each is a row of one person, joined with the row it points at, of another person (1.38).

    `first`: the most rows of one person, of whose rows the first are kept before what they point at is looked up;
    `most`: the joined rows kept of each person who is pointed at. `place`: the position of the pointing source; `key`:
    columns of it that are unique together, () where no key is enforced. `other`: the position of the source pointed at.
    `is_spread`: the key is one integer, and rows are ordered by it after `Dialect.scattered_apart`.
    """

    first: int
    most: int
    place: int = field(compare=False)
    key: tuple[Field, ...] = field(compare=False)
    other: int = field(compare=False)
    is_spread: bool = False

    @property
    def apart(self) -> int:
        """K: in how many rows, kept or not, the results over two neighbours differ."""
        return 2 * self.first + self.most


@dataclass(frozen=True)
class IntermediateColumn:
    """Column `index` of an earlier intermediate result's rows, which travels as a list parameter (soundness.md
    1.14(3))."""

    intermediate: int
    index: int


@dataclass(frozen=True, repr=False)
class Source:
    """A FROM item of a block: a base table, a subquery, a cut of one of them, or rows that came before.

    `name`: what it is called; `label`: by refusals, `noted`: by EXPLAIN, where that differs. `columns`: its columns,
    with what is known of their values. `keys`: sets of column positions that no two rows share. `identities`: positions
    of columns whose values together determine the owner of the row, by the key whose columns they are values of, in its
    order; none on a public source.
    `max_rows_per_group` (M), `max_groups` (C) and `max_rows` (R, in all groups together): the contribution bounds of
    a private source, as declared or as they follow; None where none is declared.
    `row_tables`: where each row is a unit by itself, the tables whose rows these are, each of them once at most
    (soundness.md 1.33). Such a source has no identities: nothing makes two of its rows one unit's.

    `table`: the base table, `shown` the names of the `columns` in the database; `is_on_way`: no statement reads it, it
    was joined for the key and the unit of it, on the way to an owner. `is_looked_up`: the statement does not name it,
    it was joined for a reference that is read (`join.with_lookups`).
    `parts`: of a subquery its one select, or those of a UNION ALL; the last columns of a private one are the owner.
    `reach`: the most rows of one owner.
    `most`: a cut of so many rows of each owner (`growth`), whose one part is the source, the path to its owner, and the
    filter terms that are its own, and outputs the source's columns. `by`: the column, a key that is a whole number
    and never NULL, by which rows are spread to be the first; None: by a hash of what is read. `number`: the table's
    column that numbers a person's rows, of which those from 1 to `most` are read (soundness.md 1.39); None: first rows.
    `declares`: what a view declares of some columns: other rows than the table's or the subquery's, since what is
    declared clamps them, and so a part of what is compared, and of what is stored by (soundness.md 1.28).
    `intermediate`: the earlier intermediate result whose rows these are: a release, or public rows that the owner's
    engine need not compute. `between`: of a table with a time, the periods that are read of it, as they are printed.
    """

    name: str
    columns: tuple[Column, ...] = field(compare=False)
    keys: tuple[frozenset[int], ...] = field(compare=False)
    identities: Mapping[tuple[int, ...], Identity] = field(compare=False)
    max_rows_per_group: int | None = field(default=None, compare=False)
    max_groups: int | None = field(default=None, compare=False)
    max_rows: int | None = field(default=None, compare=False)
    _: KW_ONLY
    label: str = field(default="", compare=False)
    noted: str = field(default="", compare=False)
    row_tables: frozenset[str] = field(default=frozenset(), compare=False)
    table: Table | None = field(default=None, compare=False)
    shown: tuple[str, ...] = ()
    is_on_way: bool = field(default=False, compare=False)
    is_looked_up: bool = field(default=False, compare=False)
    parts: tuple[Select, ...] = ()
    reach: Reach = field(default=LINEAR, compare=False)
    most: int | None = None
    by: int | None = field(default=None, compare=False)
    number: str | None = None
    declares: Declarations = ()
    intermediate: int | None = None
    between: tuple[object, ...] = field(default=(), init=False)

    def __post_init__(self) -> None:
        """Take in which periods of the table are read: scans of others are other rows."""
        if self.table is not None and self.table.spans is not None:
            spans = self.table.spans
            said = (spans.time.table, spans.time.column, spans.between, spans.numbered)
            more = (one for one in (spans.day, *spans.first_days) if one is not None)
            object.__setattr__(self, "between", (*said, *more))

    def __repr__(self) -> str:
        """Return the text that store keys are hashed from: it must never change for the same meaning."""
        if self.most is not None:
            how = "" if self.number is None else f", number={self.number!r}"
            return f"Cut(name={self.name!r}, block={self.parts[0]!r}, most={self.most!r}{how})"
        if self.intermediate is not None:
            return f"Released(name={self.name!r}, intermediate={self.intermediate!r})"
        kinds, own = (
            (("Derived", "DeclaredRows"), f"parts={self.parts!r}")
            if self.parts
            else (("TableSource", "DeclaredTable"), f"shown={self.shown!r}")
        )
        declares = f", declares={self.declares!r}" if self.declares else ""
        if self.between:
            declares += f", spans={self.between!r}"
        return f"{kinds[bool(self.declares)]}(name={self.name!r}, {own}{declares})"

    @property
    def is_private(self) -> bool:
        """Say whether its rows have owners, or are units by themselves."""
        return bool(self.identities) or bool(self.row_tables)

    @property
    def said(self) -> str:
        """What refusals call it."""
        return self.label or self.name

    @property
    def shown_name(self) -> str:
        """What EXPLAIN and notes call it."""
        return self.noted or self.name

    @property
    def is_subquery(self) -> bool:
        """Whether it is the rows of its parts, which no cut leaves any out of."""
        return bool(self.parts) and self.most is None

    @property
    def owner(self) -> range:
        """The positions of the owner's columns of a subquery: none on a public one."""
        width = len(self.columns)
        return range(width - len(self.parts[0].owner) if self.is_subquery else width, width)

    @property
    def linking(self) -> frozenset[int]:
        """The columns that link rows of one owner, whose values are whole: those of identities (soundness.md 1.10)."""
        return frozenset(place for places in self.identities for place in places)

    @property
    def uncut(self) -> Source:
        """The source as it is without a cut."""
        return self if self.most is None else self.parts[0].items[0].source

    def holds(self, identity: Identity) -> list[tuple[int, ...]]:
        """Return the positions of the columns of an identity: one tuple for each time that the source has them."""
        return [places for places, known in self.identities.items() if known == identity]


@dataclass(frozen=True)
class Item:
    """A source in a block: `kind` is inner, left, full or mark; `on` holds for matched rows (not for inner).

    `on` is over the columns of the sources before and then of this one. `position`: of the join.
    """

    source: Source
    kind: str = "inner"
    on: tuple[Expr, ...] = ()
    position: Position | None = field(default=None, compare=False, repr=False)

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """What the block sees of the source."""
        if self.kind == "mark":
            return (Column("", BOOLEAN, Enforced(not_null=True)),)
        return self.source.columns


def holds_unit(columns: Iterable[Expr], units: Units) -> bool:
    """Say whether columns are the owner: the whole of it, and nothing else. No columns are a row that is a unit."""
    if not units:
        return False
    places = [expr.column for expr in columns]
    return all(unit.intersection(places) for unit in units) and frozenset().union(*units).issuperset(places)


def columns_of(items: Iterable[Item]) -> tuple[Column, ...]:
    """Return the columns of a block's sources, one after the other."""
    return _columns.of(items) if isinstance(items, tuple) else _columns_of(items)


def _columns_of(items: Iterable[Item]) -> tuple[Column, ...]:
    return tuple(column for item in items for column in item.columns)


_columns = Made(_columns_of, 64)


class Placed(NamedTuple):
    """A source of a block; `start`: the position of its first column in the block."""

    item: Item
    start: int

    @property
    def own(self) -> range:
        """The positions of its columns in the block."""
        return range(self.start, self.start + len(self.item.columns))

    @property
    def inside(self) -> range:
        """The positions of all columns of the source in its ON; the same as in the block, but for a mark."""
        return range(self.start, self.start + len(self.item.source.columns))

    def all_own(self, terms: Iterable[Expr]) -> tuple[Expr, ...]:
        """Return those of some terms that are over its columns alone."""
        inside = self.inside
        return tuple(one for one in terms if (read := fields_of(one)) and all(i in inside for i in read))


def fields_in(items: Sequence[Item]) -> list[Placed]:
    """Return the sources with the position of their first column in the block."""
    found, start = [], 0
    for item in items:
        found.append(Placed(item, start))
        start += len(item.columns)
    return found


def source_at(items: Sequence[Item], index: int) -> Placed:
    """Return the source that a column of a block belongs to."""
    return next(placed for placed in fields_in(items) if index in placed.own)


def identities_in(items: tuple[Item, ...]) -> dict[tuple[int, ...], Identity]:
    """Return the identities of a block's inner sources, by the positions of their columns in the block."""
    return {
        tuple(start + index for index in places): known
        for item, start in fields_in(items) if item.kind == "inner"
        for places, known in item.source.identities.items()
    }  # fmt: skip


@dataclass(frozen=True, repr=False)
class Select:
    """A SELECT: `outputs` over the columns of `items` where `predicate` holds; without an `owner`: public rows.

    With `aggregates`: one row per owner and outputs, which are the keys, then come the aggregates; `most`: how many
    rows of an owner count in one of its groups; None: not declared, all of them do.
    With `windows`: after the outputs a column for each call, over each owner's own rows; `ties`: what orders an owner's
    rows that a call's ORDER BY leaves alike. `works`: what its joins multiply, on the way too.
    """

    items: tuple[Item, ...]
    predicate: tuple[Expr, ...]
    outputs: tuple[Expr, ...] = ()
    owner: tuple[Expr, ...] = ()
    aggregates: tuple[AggregateCall, ...] | None = None
    most: int | None = None
    windows: tuple[WindowCall, ...] = ()
    ties: tuple[Expr, ...] = ()
    works: tuple[Reach, ...] = field(default=(), compare=False, kw_only=True)

    def __repr__(self) -> str:
        """Return what the keys of stored answers are made of: for one meaning it is the same for good."""
        own = f"items={self.items!r}, predicate={self.predicate!r}, outputs={self.outputs!r}, owner={self.owner!r}"
        if self.aggregates is not None:
            return f"Grouped({own}, aggregates={self.aggregates!r}, most={self.most!r})"
        return (
            f"Windowed({own}, calls={self.windows!r}, ties={self.ties!r})"
            if self.windows
            else f"Block({own})"
        )

    @property
    def calls(self) -> tuple[AggregateCall | WindowCall, ...]:
        """What is computed after the outputs."""
        return self.windows if self.aggregates is None else self.aggregates

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """The columns that the expressions are over."""
        return columns_of(self.items)


@dataclass(frozen=True)
class Unmatched:
    """Public rows that stay where none of people's match: those of `items` under `predicate`, which WHERE alone is."""

    items: tuple[Item, ...]
    predicate: tuple[Expr, ...]
    position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, repr=False)
class PrivateBlock(Select):
    """Rows that have owners, as far as the statement has been read; `names`: of its outputs.

    `unmatched`: it is the inner join of a join that keeps public rows, and may only be grouped by these.

    A block over public sources alone is also one, until it is joined into a private one.
    """

    names: tuple[str, ...] = field(kw_only=True)
    unmatched: Unmatched | None = field(default=None, kw_only=True)

    def __repr__(self) -> str:
        return "Private(…)"

    @property
    def is_private(self) -> bool:
        """Say whether any source but a mark's has owners."""
        return any(item.source.is_private for item in self.items if item.kind != "mark")


def whole(source: Source, names: Iterable[str]) -> PrivateBlock:
    """Return all rows of a source as a block: of a subquery its columns, without those of the owner."""
    names = tuple(names)
    columns = zip(source.columns, names, strict=False)
    outputs = tuple(Field(column.type, i, name) for i, (column, name) in enumerate(columns))
    return PrivateBlock((Item(source),), (), outputs, names=names)


@dataclass(frozen=True, repr=False, kw_only=True)
class OwnedRows(Select):
    """Rows with one owner each: those of `items` on which `predicate` holds and no column of `owner` is NULL.

    Where each row is a unit by itself (`row_tables`), `owner` and `units` are (), and `is_single` holds.

    `written`: how many of the items the statement has; those after them lead to the owner. `root`: the key that
    `owner` is a value of. `units`: of each column of the owner, the columns that equal it in every row.
    `fixed_columns`: the columns that are the same in
    all rows of one owner. `is_single`: an owner has at most one row. Both follow from keys that the engine
    enforces and equalities that are printed (soundness.md 1.12). `max_rows_per_group` (M), `max_groups` (C),
    `max_rows` (R): the bounds to enforce, None where `undeclared` (a source's name) has none. `reach`: the most
    rows of one owner, `works`: those of intermediate joins too. `told`: the positions of the items of which one row
    each (or none of an outer one, where they are several) gives one row of the block at most, and every row is made
    so; () where that is not known. `lookup`: of rows of two people, of whom `owner` is the one who is pointed at; only
    a release, by `release_each_set`, takes such rows. `is_replaced`: neighbours have other rows of the same person,
    whatever `privacy.neighbours` is (soundness.md 1.40). `unmatched`: the public rows that groups are listed from.
    """

    owner: tuple[Field, ...]
    written: int
    root: Identity
    units: Units
    fixed_columns: frozenset[int]
    is_single: bool
    max_rows_per_group: int | None
    max_groups: int | None
    max_rows: int | None
    undeclared: str
    reach: Reach
    told: tuple[int, ...]
    lookup: Lookup | None = None
    is_replaced: bool = False
    unmatched: Unmatched | None = None

    def __repr__(self) -> str:
        return "Private(…)"

    def select(self, outputs: tuple[Expr, ...]) -> Select:
        """Return outputs over these rows, each with its owner."""
        return Select(self.items, self.predicate, outputs, self.owner, works=self.works)

    @cached_property
    def row_tables(self) -> frozenset[str]:
        """The tables whose rows these are, where each is a unit by itself; none where a column says whose they are."""
        return frozenset().union(*(item.source.row_tables for item in self.items))

    @cached_property
    def asked(self) -> tuple[tuple[Item, ...], tuple[Expr, ...]]:
        """The items and the predicate as the statement has them: without those that lead to the owner."""
        kept = self.items[: self.written]
        width = len(columns_of(kept))
        return kept, tuple(term for term in self.predicate if max(fields_of(term), default=-1) < width)

    @property
    def alone(self) -> int | None:
        """The position of the item each of whose rows gives one row of the block at most; None: there is none."""
        return self.told[0] if len(self.told) == 1 else None

    @property
    def table_alone(self) -> Table | None:
        """The table that each row has one row of, no two the same one; None where no such table is known."""
        return None if self.alone is None else self.items[self.alone].source.table

    @property
    def is_flat(self) -> bool:
        """Whether no source is made of selects of its own."""
        return not any(item.source.parts for item in self.items)

    @property
    def is_whole(self) -> bool:
        """Whether they are the rows of tables as these are, without a filter."""
        return self.is_flat and not self.predicate

    @cached_property
    def name(self) -> str:
        """The sources' names; those added to find the owner are left out."""
        names = [item.source.name for item in self.items if item.kind != "mark" and item.source.name]
        return ", ".join(dict.fromkeys(names))

    @cached_property
    def said(self) -> str:
        """The same, as refusals call them."""
        labels = [item.source.said for item in self.items if item.kind != "mark" and item.source.name]
        return ", ".join(dict.fromkeys(labels))

    @cached_property
    def shown_name(self) -> str:
        """The same, as EXPLAIN and notes call them."""
        names = [item.source.shown_name for item in self.items if item.kind != "mark" and item.source.name]
        return ", ".join(dict.fromkeys(names))

    def identity(self) -> object:
        """Return what the rows depend on, as a value whose repr is canonical."""
        own: tuple[object, ...] = (self.items, self.predicate, *self.owner)
        own = own if self.unmatched is None else (*own, self.unmatched)
        lookup = self.lookup
        return own if lookup is None else (*own, lookup.first, lookup.most, lookup.is_spread)


@dataclass(frozen=True)
class Release(Relation):
    """Noisy aggregates of private rows by keys: output is the keys, then the aggregates.

    `share`: this release's part of the query block it came from, as (part, whole): a grouping set
    that one unit may touch with C_s of the block's C_total groups has (C_s, C_total), soundness.md 1.7.
    """

    rows: OwnedRows
    keys: tuple[Expr, ...]
    aggregates: tuple[AggregateCall, ...]
    share: tuple[int, int]
    names: tuple[str, ...] = field(compare=False, repr=False)

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        """Its hash, computed once: it covers the whole relation below, and is used as a key in many tables."""
        return hash((self.rows, self.keys, self.aggregates, self.share))

    def aggregate_at(self, expr: Expr) -> int | None:
        """Return which of its aggregates an expression over its columns is; None: it is not a bare aggregate."""
        return None if expr.column is None or expr.column < len(self.keys) else expr.column - len(self.keys)

    @cached_property
    def columns(self) -> tuple[OutputColumn, ...]:
        types = [*(key.type for key in self.keys), *(call.type for call in self.aggregates)]
        return tuple(OutputColumn(t, n) for t, n in zip(types, self.names, strict=True))


@dataclass(frozen=True, slots=True)
class Label:
    """A key that is a function of the key at position `place`, of type `of`. `values`: pairs (that key's, its own)."""

    type: SqlType
    place: int
    of: SqlType
    values: tuple[tuple[Scalar, Scalar], ...]

    def over(self, key: Expr) -> Expr:
        """Return the label of a key."""
        branches: list[Expr] = []
        for value, shown in self.values:
            is_it = (
                Call(BOOLEAN, "is_null", (key,))
                if value is None
                else Call(BOOLEAN, "eq", (key, Literal(self.of, value)))
            )
            branches += [is_it, Literal(self.type, shown)]
        return Call(self.type, "case", (*branches, Literal(self.type, None)))


@dataclass(frozen=True)
class AddedUp(Relation):
    """A release's rows added up `by` some of its keys (their positions) and labels of them: one row a group of these.

    Output is these keys, then the aggregates: counts and sums are rounded in the release's own cells, and then added;
    what is computed from several numbers is computed from the added ones (soundness.md 1.18).
    Requires: the release's keys are declared, and none of its measurements counts a thing once per cell (people,
    distinct values).
    """

    release: Release
    by: tuple[int | Label, ...]
    names: tuple[str, ...] = field(compare=False, repr=False)
    _INPUTS = ("release",)

    @cached_property
    def columns(self) -> tuple[OutputColumn, ...]:
        keys = (OutputColumn(key.type, name) for key, name in zip(self.keys, self.names, strict=True))
        return (*keys, *self.release.columns[len(self.release.keys) :])

    @cached_property
    def keys(self) -> tuple[Expr, ...]:
        """The keys, over those of the release."""
        row = self.release.row
        return tuple(row[one] if isinstance(one, int) else one.over(row[one.place]) for one in self.by)


def selects_in(rows: Select) -> Iterator[Select]:
    """Yield rows and every select below them, each before what it reads."""
    yield rows
    for item in rows.items:
        for part in item.source.parts:
            yield from selects_in(part)


def intermediates_in(rows: Select) -> Iterator[int]:
    """Yield the intermediate results that rows depend on, those of subqueries included; some may come twice."""
    for select in selects_in(rows):
        found = (item.source.intermediate for item in select.items)
        yield from (number for number in found if number is not None)
        exprs = (*written_in(select), *(term for item in select.items for term in item.on))
        yield from (part.intermediate for part in parts_in(IntermediateValue, *exprs))


def written_in(select: Select) -> list[Expr]:
    """Return the expressions of one select over all of its sources, those of its subqueries left out."""
    exprs = [*select.predicate, *select.outputs]
    exprs += [expr for call in select.calls for expr in read_by(call)]
    exprs += select.ties
    return exprs


def read_by(call: AggregateCall | WindowCall) -> list[Expr]:
    """Return what a call reads of its rows."""
    if isinstance(call, WindowCall):
        return [*call.args, *call.partition, *(order.expr for order in call.orders)]
    return [*call.args, *([] if call.filter is None else [call.filter])]
