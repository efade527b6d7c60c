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

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from ...errors import Position
from ...relation.catalog import Column, Enforced, Table
from ...relation.expressions import Expr, Field, IntermediateValue, walk
from ...relation.relations import AggregateCall, OutputColumn, Relation, WindowCall
from ...relation.types import BOOLEAN

__all__ = [
    "LINEAR",
    "AddedUp",
    "Block",
    "Cut",
    "Derived",
    "Fan",
    "Grouped",
    "Identity",
    "IntermediateColumn",
    "Item",
    "OwnedRows",
    "PrivateBlock",
    "Reach",
    "Release",
    "Released",
    "Source",
    "TableSource",
    "Units",
    "Windowed",
    "blocks_in",
    "columns_of",
    "fields_in",
    "holds_unit",
    "identities_in",
    "intermediates_in",
    "selects_in",
    "uncut",
    "written_in",
]  # fmt: skip

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


@dataclass(frozen=True)
class Source:
    """A FROM item of a block.

    `name`: what it is called; `label`: by refusals, `noted`: by EXPLAIN, where that differs. `columns`: its columns,
    with what is known of their values. `keys`: sets of column positions that no two rows share. `identities`: positions
    of columns whose values together determine the owner of the row, by the key whose columns they are values of, in its
    order; none on a public source.
    `max_rows_per_group` (M), `max_groups` (C) and `max_rows` (R, in all groups together): the contribution bounds of
    a private source, as declared or as they follow; None where none is declared.
    `row_tables`: where each row is a unit by itself, the tables whose rows these are, each of them once at most
    (soundness.md 1.33). Such a source has no identities: nothing makes two of its rows one unit's.
    """

    name: str
    columns: tuple[Column, ...] = field(repr=False, compare=False)
    keys: tuple[frozenset[int], ...] = field(repr=False, compare=False)
    identities: Mapping[tuple[int, ...], Identity] = field(repr=False, compare=False)
    max_rows_per_group: int | None = field(repr=False, compare=False)
    max_groups: int | None = field(repr=False, compare=False)
    max_rows: int | None = field(repr=False, compare=False)
    label: str = field(default="", repr=False, compare=False, kw_only=True)
    noted: str = field(default="", repr=False, compare=False, kw_only=True)
    row_tables: frozenset[str] = field(default=frozenset(), repr=False, compare=False, kw_only=True)

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

    def holds(self, identity: Identity) -> list[tuple[int, ...]]:
        """Return where the columns of an identity stand, once or several times."""
        return [places for places, known in self.identities.items() if known == identity]


@dataclass(frozen=True)
class TableSource(Source):
    """The rows of a base table; `shown` are the names of its `columns` in the database.

    `is_on_way`: no statement reads it; it was joined for the key and the unit of it, on the way to an owner.
    """

    table: Table = field(repr=False, compare=False)
    shown: tuple[str, ...]
    is_on_way: bool = field(default=False, repr=False, compare=False, kw_only=True)


Declarations = tuple[tuple[int, object, object, object, object], ...]
"""Of columns, by their place: bounds, step, values and longest text, as a view declares them."""


@dataclass(frozen=True)
class DeclaredTable(TableSource):
    """A base table of whose columns a view declares something of its own: other rows than the table's, since what is
    declared clamps them. So it is part of what is compared, and of the identity of what is stored (soundness.md 1.28).
    """

    declares: Declarations = field(kw_only=True)


@dataclass(frozen=True)
class IntermediateColumn:
    """Column `index` of an earlier intermediate result's rows, which travels as a list parameter (soundness.md
    1.14(3))."""

    intermediate: int
    index: int


@dataclass(frozen=True)
class Released(Source):
    """The rows of an earlier intermediate result: a release, or public rows that the owner's engine need not
    compute."""

    intermediate: int


@dataclass(frozen=True)
class Derived(Source):
    """A subquery; the last columns of a private one are the owner.

    `parts`: one select, or the selects of a UNION ALL. `reach`: the most rows of one owner.
    """

    parts: tuple[Block, ...]
    reach: Reach = field(default=LINEAR, repr=False, compare=False, kw_only=True)

    @property
    def owner(self) -> range:
        """Where the owner's columns stand: none on a public one."""
        return range(len(self.columns) - len(self.parts[0].owner), len(self.columns))

    @property
    def linking(self) -> frozenset[int]:
        """The columns that link rows of one owner, whose values are whole: those of identities (soundness.md 1.10)."""
        return frozenset(place for places in self.identities for place in places)


@dataclass(frozen=True)
class DeclaredRows(Derived):
    """A subquery of whose columns a view declares something: as `DeclaredTable`."""

    declares: Declarations = field(kw_only=True)


@dataclass(frozen=True)
class Cut(Source):
    """The rows of a private source, of each owner at most `most` (`growth`): its columns and all it says stay.

    `block`: the source, the path to its owner, and the filter terms that are its own; it outputs its columns.
    """

    block: Block
    most: int

    @property
    def source(self) -> Source:
        """The source that is cut."""
        return self.block.items[0].source


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
    places = [column.index if isinstance(column, Field) else -1 for column in columns]
    return all(unit.intersection(places) for unit in units) and frozenset().union(*units).issuperset(places)


def uncut(source: Source) -> Source:
    """Return a source as it is without a cut."""
    return source.source if isinstance(source, Cut) else source


def columns_of(items: tuple[Item, ...]) -> tuple[Column, ...]:
    """Return the columns of a block's sources, one after the other."""
    return tuple(column for item in items for column in item.columns)


def fields_in(items: tuple[Item, ...]) -> list[tuple[Item, int]]:
    """Return the sources with the position of their first column in the block."""
    found, start = [], 0
    for item in items:
        found.append((item, start))
        start += len(item.columns)
    return found


def identities_in(items: tuple[Item, ...]) -> dict[tuple[int, ...], Identity]:
    """Return where in a block the keys of its inner sources stand."""
    return {
        tuple(start + index for index in places): known
        for item, start in fields_in(items) if item.kind == "inner"
        for places, known in item.source.identities.items()
    }  # fmt: skip


@dataclass(frozen=True, repr=False)
class PrivateBlock:
    """Rows that have owners, as far as the statement has been read: outputs over the columns of `items`.

    A block over public sources alone is one too while it is on its way into a private one.
    """

    items: tuple[Item, ...]
    predicate: tuple[Expr, ...]
    outputs: tuple[Expr, ...]
    names: tuple[str, ...]

    def __repr__(self) -> str:
        return "Private(…)"

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """The columns that the expressions are over."""
        return columns_of(self.items)

    @property
    def is_private(self) -> bool:
        """Say whether any source but a mark's has owners."""
        return any(item.source.is_private for item in self.items if item.kind != "mark")


@dataclass(frozen=True, repr=False)
class OwnedRows:
    """Rows with one owner each: those of `items` on which `predicate` holds and no column of `owner` is NULL.

    Where each row is a unit by itself (`row_tables`), `owner` and `units` are (), and `is_single` holds.

    `written`: how many of the items the statement has; those after them lead to the owner. `root`: the key that
    `owner` is a value of. `units`: of each column of the owner, the columns that equal it in every row.
    `fixed_columns`: the columns that are the same in
    all rows of one owner. `is_single`: an owner has at most one row. Both follow from keys that the engine
    enforces and equalities that are printed (soundness.md 1.12). `max_rows_per_group` (M), `max_groups` (C),
    `max_rows` (R): the bounds to enforce, None where `undeclared` (a source's name) has none. `reach`: the most
    rows of one owner, `works`: of what its joins multiply, on the way too. `alone`: the item of which each row is made
    of one row, and no two rows of the same; None where there is none.
    """

    items: tuple[Item, ...]
    written: int
    predicate: tuple[Expr, ...]
    owner: tuple[Field, ...]
    root: Identity
    units: Units
    fixed_columns: frozenset[int]
    is_single: bool
    max_rows_per_group: int | None
    max_groups: int | None
    max_rows: int | None
    undeclared: str
    reach: Reach
    works: tuple[Reach, ...]
    alone: int | None

    def __repr__(self) -> str:
        return "Private(…)"

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """The columns that the expressions are over."""
        return columns_of(self.items)

    @cached_property
    def row_tables(self) -> frozenset[str]:
        """The tables whose rows these are, where each is a unit by itself; none where a column says whose they are."""
        return frozenset().union(*(item.source.row_tables for item in self.items))

    @property
    def table_alone(self) -> Table | None:
        """The table of which these are some rows, each once; None where they are not known to be of one."""
        source = None if self.alone is None else self.items[self.alone].source
        return source.table if isinstance(source, TableSource) else None

    @property
    def is_flat(self) -> bool:
        """Whether no source is made of selects of its own."""
        return not any(blocks_in(item.source) for item in self.items)

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
        return (self.items, self.predicate, *self.owner)


@dataclass(frozen=True)
class Block:
    """A SELECT: `outputs` over the columns of `items` where `predicate` holds; without an `owner`: public rows.

    `works`: as in `OwnedRows`.
    """

    items: tuple[Item, ...]
    predicate: tuple[Expr, ...]
    outputs: tuple[Expr, ...]
    owner: tuple[Expr, ...]
    works: tuple[Reach, ...] = field(default=(), repr=False, compare=False, kw_only=True)


@dataclass(frozen=True)
class Grouped(Block):
    """One row per owner and keys: `outputs` are the keys, then come the aggregates.

    `most`: how many rows of an owner count in one of its groups; None: not declared, all of them do.
    """

    aggregates: tuple[AggregateCall, ...]
    most: int | None


@dataclass(frozen=True)
class Windowed(Block):
    """The rows with window calls over each owner's own rows after the outputs.

    `ties`: what orders an owner's rows that a call's ORDER BY leaves alike.
    """

    calls: tuple[WindowCall, ...]
    ties: tuple[Expr, ...]


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
        """Its hash, once: it is looked up in many tables, and is of all that stands below it."""
        return hash((self.rows, self.keys, self.aggregates, self.share))

    @cached_property
    def columns(self) -> tuple[OutputColumn, ...]:
        types = [*(key.type for key in self.keys), *(call.type for call in self.aggregates)]
        return tuple(OutputColumn(t, n) for t, n in zip(types, self.names, strict=True))


@dataclass(frozen=True)
class AddedUp(Relation):
    """A release's rows added up over the keys that are not `chosen` (positions of its keys): one row a group of these.

    Output is the chosen keys, then the aggregates: counts and sums are rounded in the release's own cells, and then
    added; what is computed from several numbers is computed from the added ones (soundness.md 1.18).
    Requires: the release's keys are declared, and its measurements count no thing once in each cell that they show it
    in.
    """

    release: Release
    chosen: tuple[int, ...]

    @cached_property
    def columns(self) -> tuple[OutputColumn, ...]:
        whole, keys = self.release.columns, len(self.release.keys)
        return (*(whole[i] for i in self.chosen), *whole[keys:])

    @property
    def inputs(self) -> tuple[Relation, ...]:
        return (self.release,)

    def map_inputs(self, change: Callable[[Relation], Relation]) -> Relation:
        release = change(self.release)
        assert isinstance(release, Release)
        return replace(self, release=release)


def blocks_in(source: Source) -> tuple[Block, ...]:
    """Return the selects that a source is made of."""
    if isinstance(source, Cut):
        return (source.block,)
    return source.parts if isinstance(source, Derived) else ()


def selects_in(rows: OwnedRows | Block) -> Iterator[OwnedRows | Block]:
    """Yield rows and every select below them, each before what it reads."""
    yield rows
    for item in rows.items:
        for part in blocks_in(item.source):
            yield from selects_in(part)


def intermediates_in(rows: OwnedRows | Block) -> Iterator[int]:
    """Yield the intermediate results that rows depend on, those of subqueries included; some may come twice."""
    for select in selects_in(rows):
        yield from (item.source.intermediate for item in select.items if isinstance(item.source, Released))
        for expr in (*written_in(select), *(term for item in select.items for term in item.on)):
            yield from (part.intermediate for part in walk(expr) if isinstance(part, IntermediateValue))


def written_in(select: OwnedRows | Block) -> list[Expr]:
    """Return the expressions of one select over all of its sources, those of its subqueries left out."""
    exprs = [*select.predicate]
    if isinstance(select, Block):
        exprs += select.outputs
    if isinstance(select, Grouped):
        for call in select.aggregates:
            exprs += [*call.args, *([] if call.filter is None else [call.filter])]
    if isinstance(select, Windowed):
        exprs += select.ties
        for window in select.calls:
            exprs += [*window.args, *window.partition, *(order.expr for order in window.orders)]
    return exprs
