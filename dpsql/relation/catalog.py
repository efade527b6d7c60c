"""What the binder may resolve: declared tables and columns, joined with what the engine enforces.

A `Catalog` is built by `policy` from the policy file and the live schema. What is not in it does
not exist for the analyst. Two kinds of knowledge are kept apart (law L9): *declared* numbers choose
a bound and are always enforced in the printed SQL; *enforced* facts (NOT NULL, a unique unit) come
from the engine's own constraints and may let the printer leave an operator out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from datetime import date
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, overload

from ..mechanisms import Channel
from ..records import dataclass
from ..regex import regex
from .types import SqlType

if TYPE_CHECKING:
    from .facts import Facts
    from .relations import Relation


MAX_DERIVED = 1_000
"""Most public group keys that come from a column's bounds; wider ranges are undeclared keys."""

OWN_SCHEMA = "workspace"
"""The schema of an analyst's own tables, where a statement names no other."""

TEMPORARY = "pg_temp"
"""The schema of those that end with their session."""

HIDDEN = "a table of a view"
"""What messages call a table that has no name for the analyst."""

PERIOD = "dpsql_period"
"""The column of a scan that holds the number of its row's period."""

Scalar = bool | int | Fraction | str | None
"""A public key value: text, a number, a boolean; dates and timestamps as ISO text; None is NULL."""

References = tuple[str, tuple[str, ...]]
"""A parent's table name, and the columns of its key that a table's own columns point at, in their order."""

Ground = tuple[str, str]
"""What a plan rests on: of what it is (a table, a view, the dataset), and a digest of what is said of that."""


_OF_PERIODS = regex(r"(week|month|quarter|year)\((.+)\)", re.DOTALL)


def norm_key(key: str) -> tuple[str | None, str]:
    """Return the unit of the calendar and the column of a key of `max_norm`, `month(loaned_on)`; of a column by itself
    None for the unit."""
    of_periods = _OF_PERIODS.fullmatch(key)
    return (None, key) if of_periods is None else (of_periods[1], of_periods[2])


def quoted_names(columns: Sequence[str]) -> str:
    """Return columns as messages name them."""
    return ", ".join(f'"{column}"' for column in columns)


def reference_text(references: References) -> str:
    """Return what a unit refers to, as messages name it: `student.id`, `orders (order_year, order_no)`."""
    table, columns = references
    return f"{table}.{columns[0]}" if len(columns) == 1 else f"{table} ({', '.join(columns)})"


@dataclass(frozen=True, slots=True)
class Enforced:
    """What the engine itself guarantees of a column, read from its constraints.

    `lo`/`hi`: bounds from a CHECK constraint (in the column's own units); None where there is none.
    `max_length`: most characters of a text, by its own type, or by the subquery that printed it cut.
    """

    not_null: bool = False
    lo: Fraction | None = None
    hi: Fraction | None = None
    max_length: int | None = None


@dataclass(frozen=True, slots=True)
class Column:
    """A declared column.

    `bounds`: inclusive declared (lower, upper): plain units for numbers, days since 1970-01-01 for
    DATE, microseconds since then (UTC) for TIMESTAMP, as Fractions. `step`: the resolution (lattice
    spacing) for floats or to coarsen; None means the type's own. `values`: the declared public keys.
    `max_length`: declared length of a text column in characters. `facts`: what holds of a column that a
    printed subquery computes, by the operators printed there; None for a table's own column. `is_personal`:
    a value of it is one person's, or NULL: the engine holds it unique, or it is computed from such a column.
    `randomized`: by which coins its values, in their order, were reported in place of the true ones (soundness.md
    1.24); it changes what is made of released numbers, and no scale. `is_complete`: no row has a value beside its
    values, or outside its bounds, as the owner says, or a scan's spans do: believed where stored numbers are added up,
    nowhere else (1.34).
    `is_log`: a value that is chosen of it by rank is one of a grid by magnitude (1.20). `members`: of JSON, what is
    declared of its members, by the keys that lead to one: as of a column, of text or of numbers.
    """

    name: str
    type: SqlType
    enforced: Enforced = Enforced()
    bounds: tuple[Fraction, Fraction] | None = None
    step: Fraction | None = None
    values: tuple[Scalar, ...] | None = None
    max_length: int | None = None
    description: str | None = None
    facts: Facts | None = None
    is_personal: bool = field(default=False, compare=False)
    randomized: Channel | None = None
    is_complete: bool = field(default=False, compare=False, repr=False)
    is_log: bool = field(default=False, repr=False)
    members: tuple[tuple[tuple[str, ...], Column], ...] = ()

    def member(self, keys: tuple[str, ...]) -> Column | None:
        """Return what is declared of a member of JSON; None: nothing is."""
        return next((member for path, member in self.members if path == keys), None)


@dataclass(frozen=True, slots=True)
class Also:
    """Whom a private table's rows point at, beside whose they are: rows of two people (soundness.md 1.38).

    `columns`: what holds the key of the other's row, of the table and columns of `references`, which the engine holds
    unique and not NULL. They are read in one way alone: equal to that key. `types`: theirs. `max_rows`: the joined
    rows that count of each person who is pointed at.
    """

    columns: tuple[str, ...]
    types: tuple[SqlType, ...]
    references: References
    max_rows: int


Hop = tuple[tuple[str, ...], str, tuple[str, ...]]
"""A step on a table's way to its owner: its columns, the parent's table, and the key there that they hold."""


@dataclass(frozen=True, slots=True)
class EventTime:
    """When the rows of a private table were: by `column` of it, or of the table at the end of the `way` (1.40).

    `is_zoned`: its values are instants, whatever zone they are shown in.
    """

    column: str
    type: SqlType
    is_zoned: bool
    way: tuple[Hop, ...] = ()

    @property
    def table(self) -> str:
        """The table that has the column; "" where it is the rows' own."""
        return self.way[-1][1] if self.way else ""

    @property
    def said(self) -> str:
        """The column as a policy writes it."""
        return f"{self.table}.{self.column}" if self.way else self.column


@dataclass(frozen=True, slots=True)
class Spans:
    """The whole periods of which rows are read, as the scan of their table prints them on the raw column (1.40).

    `periods`: runs of their numbers; `between`: the runs' two ends, from the first up to before the last, as
    literals; `way`: the tables on the way to the column, with their steps. `numbered`: where a scan has the column
    `PERIOD`, the number of each period and the literal at which the next one begins; the last has None. `day`: on
    which they are read, where one of them is not over. `first_days`: where rows are numbered by period, the same with
    each period's first day.
    """

    time: EventTime
    periods: tuple[tuple[int, int], ...]
    between: tuple[tuple[str, str], ...]
    way: tuple[tuple[tuple[str, ...], Table, tuple[str, ...]], ...] = field(default=(), repr=False)
    numbered: tuple[tuple[str | None, int], ...] = ()
    day: date | None = None
    first_days: tuple[tuple[str | None, str], ...] = ()


@dataclass(frozen=True, slots=True)
class RowNumber:
    """What tells the rows of each unit apart, as the engine enforces (soundness.md 1.39).

    `column`: of integers, of which no two rows of a unit share one; of rows with a time, no two that have one `period`
    too, a column of dates. None of them is NULL, nor are the unit's columns, which hold the owner itself. `most`: how
    many rows of a unit count by their number, in each period.
    """

    column: str
    most: int
    period: str | None = None


@dataclass(frozen=True, slots=True)
class Unit:
    """How a private table's rows find their owner.

    `columns`: the columns of this table that together hold the owner (or lead to it); a row in which one of them is
    NULL is nobody's. `references`: the parent's key that they point at; None on the root table.
    `is_unique`: the engine enforces one row per value of `columns` with the owner in them.
    `is_not_null`: the engine enforces that none of them is ever NULL; `is_held`: that what is not NULL is in the
    columns that they reference (a foreign key).
    `is_row`: each row is a unit by itself: `columns` is (), and `is_unique` and `is_not_null` hold.
    `max_rows` (R): the rows of a unit that count in one result; None: not declared. `max_rows_per_group` (M) and
    `max_groups` (C) tighten it; None: neither does, and each of them is R. `max_norm` (T): by key (`norm_key`), the
    most root-sum-of-squares of a unit's rows by its values (soundness.md 1.36). `also`: whom its rows point at besides.
    `time`: when its rows were; None: they are undated, or there are no periods. Then the bounds are of a unit's rows in
    one period, and `max_rows_ever` of those in all together.
    `row_number`: what numbers a unit's rows; None: nothing does.
    `range`: where `columns` is one integer, which is the owner itself, the ends between which it is read: rows of other
    units are left out of every statement (soundness.md 1.42). None: all are read.
    """

    columns: tuple[str, ...]
    types: tuple[SqlType, ...]
    references: References | None = None
    is_unique: bool = False
    is_not_null: bool = False
    is_held: bool = False
    is_row: bool = False
    max_rows: int | None = None
    max_rows_per_group: int | None = None
    max_groups: int | None = None
    max_norm: tuple[tuple[str, int], ...] = ()
    also: tuple[Also, ...] = ()
    time: EventTime | None = None
    max_rows_ever: int | None = None
    row_number: RowNumber | None = None
    range: tuple[int, int] | None = None

    @property
    def declared(self) -> tuple[str, ...]:
        """The bounds that are declared, as the policy names them: `max_rows 60`."""
        keys = ("max_rows", "max_rows_per_group", "max_groups")
        return tuple(f"{key} {getattr(self, key)}" for key in keys if getattr(self, key) is not None)


@dataclass(frozen=True, slots=True)
class OwnRows:
    """Where the rows of an analyst's own table are: released and public ones, and what the analyst has sent.

    `is_temporary`: in the session's memory, else in the analyst's file. `number`: of the table there. `reads`: the
    columns of public tables, and of views, that its rows rest on, as `table.column`, and the tables, as `table.`.
    `noisy`: of each column, whether it holds numbers that noise has moved; `is_chosen`: whether noise has moved which
    rows there are. `has_laws`: the query that made it is kept with it, so that its noise may be known; `ends`: of each
    column, whether it holds the low or the high ends of bars.
    """

    is_temporary: bool
    number: int
    reads: frozenset[str] = field(default=frozenset(), repr=False)
    noisy: tuple[bool, ...] = field(default=(), repr=False)
    is_chosen: bool = False
    has_laws: bool = False
    ends: tuple[bool, ...] = field(default=(), repr=False)

    @property
    def lawless(self) -> tuple[bool, ...]:
        """Of each column, whether it holds numbers that noise has moved of which no law is known."""
        return self.ends if self.has_laws else self.noisy


ForeignKey = tuple[tuple[str, ...], tuple[str, str], tuple[str, ...]]
"""Columns of a table, the path of the one that they point at, and its columns, in their order."""


@dataclass(frozen=True, slots=True)
class Allowed:
    """What the values of a column are where it is not NULL: between inclusive `lo` and `hi`, and one of `listed`.

    None where nothing is known. A CHECK passes NULL, so nothing is said of it.
    """

    column: str
    lo: Fraction | None = None
    hi: Fraction | None = None
    listed: frozenset[Fraction | str] | None = None


@dataclass(frozen=True, slots=True)
class Proved:
    """What holds of every committed row of a table since the live engine enforces it, and has validated it.

    `keys`: sets of columns that no two rows share unless one of them is NULL. `foreign_keys`: where none of the columns
    is NULL there is a row that they point at. `allowed`: what CHECK constraints and enums leave of columns. With these
    its NOT NULL columns. What an owner asserts, what was recorded of files and lakes, and what may be deferred is not
    among it (soundness.md 1.16).
    """

    keys: tuple[tuple[str, ...], ...] = ()
    foreign_keys: tuple[ForeignKey, ...] = ()
    allowed: tuple[Allowed, ...] = ()


class Later(Sequence[Ground]):
    """Grounds that are made when a plan first rests on them: of most tables of a large policy that is never."""

    def __init__(self, make: Callable[[], tuple[Ground, ...]]) -> None:
        self._make = make

    @cached_property
    def _made(self) -> tuple[Ground, ...]:
        return self._make()

    @overload
    def __getitem__(self, place: int) -> Ground: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Ground, ...]: ...
    def __getitem__(self, place: int | slice) -> Ground | tuple[Ground, ...]:
        return self._made[place]

    def __len__(self) -> int:
        return len(self._made)


@dataclass(frozen=True, slots=True)
class Table:
    """A declared table: `unit` is None exactly for public tables.

    `name` is what the analyst writes, and `path` the same as (schema, table).
    `columns` are the declared columns in the live schema's order; a unit column is among them only
    when the policy declares it as a column too (or the table is public: then all live columns are).
    `keys` are sets of columns, by name, that the engine enforces to be unique (PRIMARY KEY, UNIQUE) and
    whose equality is that of their values; each is a column above or a unit column. A UNIQUE key may
    hold NULL, and then any number of times: such rows equal none. `is_partitioned`: its rows are its
    partitions'; of any other table only its own rows are read. `is_hidden`: views read it, and no statement names it.
    `asserted`: that one of the keys which no engine enforces: the owner asserts it, and it is verified on the very
    version that is read (soundness.md 1.30).
    `read_at`: where its rows are read, a path of the engine's or a view of the session; () where that is `path`.
    `source`: what the database calls it, "" for its own name; charges are told by `origin`.
    `unnamed`: columns that plans may need and this analyst does not see (soundness.md 3.16), the unit column maybe
    among them. `is_way_named`: a statement can name both ends of the way to its owner. `proved`: what its engine
    proves of its rows; None: nothing, its NOT NULL neither.
    `referred`: keys of it that units of other tables refer to, and that are not among `keys`: each holds one.
    `order`: the names of the live table's columns in their order, in which `*` lists them.
    `grounds`: what a plan that reads it rests on: the dataset, itself, the tables on the way to its owner, and the
    views through which it is read; `column_grounds`: what one rests on, besides, that reads a column, in their order
    (soundness.md 3.7). `whose`: of it, and of each table on the way to its owner, how the policy says whose rows are.
    `own`: of an analyst's own table, where its rows are; it is public.
    `spans`: of which periods rows are read; None where there are no periods, or it has none. `scan`: the number of a
    scan in a statement whose spans are not known yet. `is_undated`: its rows are people's, and stand in a plan by
    (person, period) as if they were nobody's (soundness.md 1.40).
    """

    name: str
    path: tuple[str, ...]
    columns: tuple[Column, ...]
    unit: Unit | None
    description: str | None = None
    keys: tuple[tuple[str, ...], ...] = ()
    is_partitioned: bool = False
    is_hidden: bool = False
    asserted: tuple[str, ...] = ()
    read_at: tuple[str, ...] = ()
    source: str = ""
    unnamed: frozenset[str] = frozenset()
    is_way_named: bool = True
    proved: Proved | None = None
    referred: tuple[tuple[str, ...], ...] = ()
    order: tuple[str, ...] = field(default=(), compare=False, repr=False)
    grounds: Sequence[Ground] = field(default=(), compare=False, repr=False)
    column_grounds: Sequence[Ground] = field(default=(), compare=False, repr=False)
    whose: Sequence[Ground] = field(default=(), compare=False, repr=False)
    own: OwnRows | None = None
    spans: Spans | None = None
    scan: int | None = None
    is_undated: bool = False

    @property
    def place(self) -> tuple[str, ...]:
        """Where its rows are read, as the engine knows it."""
        return self.read_at or self.path

    @property
    def origin(self) -> str:
        """What the database calls it."""
        return self.source or self.name

    @property
    def label(self) -> str:
        """What refusals call it: its name, where a statement can have it."""
        return HIDDEN if self.is_hidden else self.name

    @property
    def noted(self) -> str:
        """What EXPLAIN and notes call it: its name, unless it is not granted; of those for views alone they tell."""
        return HIDDEN if self.is_hidden and self.unnamed else self.name

    @property
    def named(self) -> tuple[Column, ...]:
        """The columns that a statement can name, the unit's and the declared ones, in the live table's order."""
        owner = (column for column in self.owner_columns if self.column(column.name) is None)
        seen = [column for column in (*owner, *self.columns) if column.name not in self.unnamed]
        places = {name: place for place, name in enumerate(self.order)}
        return tuple(sorted(seen, key=lambda column: places.get(column.name, len(places))))

    @property
    def reference(self) -> References | None:
        """The table and columns through which its rows find their owner, where a statement can name them."""
        return None if self.unit is None or not self.is_way_named else self.unit.references

    @property
    def named_keys(self) -> tuple[tuple[str, ...], ...]:
        """The keys whose columns a statement can name."""
        return tuple(key for key in self.keys if not self.unnamed.intersection(key))

    def column(self, name: str) -> Column | None:
        """Return the declared column of this name."""
        return next((column for column in self.columns if column.name == name), None)

    @property
    def owner_columns(self) -> tuple[Column, ...]:
        """The unit's columns, those that are not declared as columns of the table too with no more than their type."""
        unit = self.unit
        if unit is None:
            return ()
        return tuple(
            self.column(name) or Column(name, type_, Enforced(unit.is_not_null))
            for name, type_ in zip(unit.columns, unit.types, strict=True)
        )


@dataclass(frozen=True, slots=True)
class View:
    """A declared view: what its text means, as if it stood in the statement itself (soundness.md 1.28).

    `relation`: that text, bound. `columns`: its columns as they are known and declared. `role`: `private`, each row
    is one person's; `public`, nobody's; `released`, noisy answers. `reads`: the names of the tables that it reads, in
    the order of its text.
    """

    name: str
    path: tuple[str, ...]
    columns: tuple[Column, ...]
    relation: Relation
    role: str
    reads: tuple[str, ...]
    description: str | None = None

    @property
    def named(self) -> tuple[Column, ...]:
        """The columns that a statement can name: all of them."""
        return self.columns

    @property
    def reference(self) -> References | None:
        """None: whose its rows are is in its text."""
        return None

    @property
    def named_keys(self) -> tuple[tuple[str, ...], ...]:
        """None: nothing holds a view's rows apart."""
        return ()

    def column(self, name: str) -> Column | None:
        """Return the column of this name."""
        return next((column for column in self.columns if column.name == name), None)


@dataclass(frozen=True, slots=True)
class OwnView:
    """An analyst's own view: a text that stands for itself wherever its name does. `columns`: as they were at first."""

    name: str
    path: tuple[str, ...]
    columns: tuple[Column, ...]
    text: str
    names: tuple[str, ...] = ()

    @property
    def named(self) -> tuple[Column, ...]:
        """The columns that a statement can name: all of them."""
        return self.columns

    @property
    def named_keys(self) -> tuple[tuple[str, ...], ...]:
        """None: nothing holds its rows apart."""
        return ()


@dataclass(frozen=True, slots=True)
class Catalog:
    """All declared tables by name, and the schema that unqualified names live in. `dialect`: how the engine is
    spoken to; `case_collation`: its collation for lower() and upper(), where it needs one. `databases`: what the
    database is called by those who connect to it. `views`: the declared views by name, without the hidden ones.
    `left_out`: declared views that are none now, each with the reason, for the owner. `own`: what the analyst has made,
    by schema and name: no name of it means anything that a name of the policy means too. `own_schemas`: theirs.
    `has_periods`: the budget is of each period, and no plan is made without them. `is_replaced`: a person's rows
    are bounded as those of one who may be replaced, since neighbours differ in one period of them (soundness.md 1.40).
    """

    tables: Mapping[str, Table]
    default_schema: str
    dialect: str = "duckdb"
    case_collation: str | None = None
    databases: tuple[str, ...] = ()
    views: Mapping[str, View] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)
    own: Mapping[tuple[str, str], Table | OwnView] = field(default_factory=dict)
    own_schemas: frozenset[str] = frozenset()
    has_periods: bool = False
    is_replaced: bool = False

    @property
    def schemas(self) -> frozenset[str]:
        """The schemas of the policy that a statement can name, and the default one under Postgres' name too."""
        declared = {one.path[0] for one in self.shown.values() if len(one.path) > 1}
        return frozenset({self.default_schema, "public", *declared})

    @property
    def shown(self) -> dict[str, Table | View]:
        """What a statement can name: the tables that are not hidden, and the views."""
        return {**{name: table for name, table in self.tables.items() if not table.is_hidden}, **self.views}

    @property
    def everything(self) -> dict[str, Table | View | OwnView]:
        """What a statement can name, with what the analyst has made, each under a name that means it."""
        own = {f"{space}.{name}": one for (space, name), one in self.own.items() if space not in self.schemas}
        return {**own, **self.shown}

    @property
    def root(self) -> tuple[str, tuple[str, ...]]:
        """The identity of the unit: of all tables whose rows say it themselves, the first one's columns."""
        for table in self.tables.values():
            if table.unit is not None and table.unit.references is None and not table.unit.is_row:
                return table.name, table.unit.columns
        raise AssertionError("a private table leads to a unit")
