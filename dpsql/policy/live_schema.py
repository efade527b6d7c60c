"""What the owner's database really has, as a backend reads it from the engine's own catalog.

It lives here, below `backends`, because the policy is checked against it. Everything in it is public
schema: names, types, constraints, enum labels. No value of a row is ever part of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from fractions import Fraction

from ..records import dataclass
from ..relation.catalog import Allowed, Proved
from ..relation.types import Kind, SqlType, numeric


@dataclass(frozen=True, slots=True)
class LiveColumn:
    """A column as the engine has it.

    `type`: our type, OPAQUE where dpsql cannot compute with it; `engine_type`: the engine's own text.
    `lo`, `hi`: inclusive bounds of a number from a CHECK constraint, in the column's own units (NULL and NaN aside);
    `listed`: the values that one lists, as the engine compares them (NULL aside).
    `enum_values`: the labels of an ENUM, in its order. `max_length`: most characters of a text that the engine
    enforces by its type. `is_bytewise`: False for text whose equality, to
    queries or to constraints, is coarser than that of its bytes. `is_generated`: computed
    when it is read, so that reading it may fail on some row. `refused`: why no policy may declare it, as the end
    of a sentence with what to do; "" for a column that it may.
    """

    name: str
    type: SqlType
    engine_type: str
    not_null: bool = False
    lo: Fraction | None = None
    hi: Fraction | None = None
    listed: frozenset[Fraction | str] | None = None
    enum_values: tuple[str, ...] | None = None
    max_length: int | None = None
    is_bytewise: bool = True
    is_generated: bool = False
    refused: str = ""


KEY_TYPES = frozenset({"UUID", "BLOB", "UHUGEINT", "uuid", "bytea"})
"""Types of the engine that we do not compute with, but whose equality is that of their values."""

OPEN_NUMERIC = "numeric"
"""Postgres' engine type of an exact number without a fixed scale, which is read at one that we choose."""

DIGITS = 38
"""The most digits of an exact number that we compute with; a column of more is clamped before anything else."""

MAX_SCALE = 18
"""The most decimals of a number that has more digits, or no fixed number of them."""

_OPEN_SCALE = 6
_COMPARED_AS = frozenset({"HUGEINT", OPEN_NUMERIC, "timestamptz", "TIMESTAMP WITH TIME ZONE"})


def open_numeric(scale: int = _OPEN_SCALE) -> SqlType:
    """Return the type at which a number without a fixed scale is read: the default is 6 decimals."""
    return numeric(DIGITS, scale)


_JSON = frozenset({"JSON", "jsonb"})
"""Types of the engine of which a member is read as text whatever they hold; Postgres' `json` fails on some."""


def comparable_type(column: LiveColumn) -> SqlType:
    """Return a column's type as expressions have it: what is compared is compared in one type of the engine."""
    if column.type.kind is Kind.OPAQUE and column.engine_type in _JSON:
        return replace(column.type, has_members=True)
    is_key = column.type.kind is Kind.OPAQUE and column.is_bytewise and column.engine_type in KEY_TYPES
    is_wide = column.engine_type.startswith("numeric(") and column.engine_type != str(column.type)
    keeps = is_key or is_wide or column.engine_type in _COMPARED_AS
    return replace(column.type, engine=column.engine_type) if keeps else column.type


_PLAIN_TEXTS = frozenset({"VARCHAR", "text", "character varying"})
"""Types of the engine whose equality is that of their characters, where no collation says other."""


def allowed_in(columns: Iterable[LiveColumn]) -> tuple[Allowed, ...]:
    """Return what constraints, enforced and validated, leave of a table's own columns' values (soundness.md 1.16).

    `columns`: whose `lo` and `hi` may be those of days, by their numbers. Not of floats, whose literals an engine
    rounds and whose NaN passes, nor of numbers that are read at fewer decimals than they have, nor of texts that are
    equal to others.
    """
    found = []
    for column in columns:
        is_number = column.type.is_number and not column.type.is_float and column.engine_type != OPEN_NUMERIC
        is_exact = is_number or column.type.kind is Kind.DATE
        is_text = column.type.kind is Kind.TEXT and column.is_bytewise
        listed = column.listed if is_exact or (is_text and column.engine_type in _PLAIN_TEXTS) else None
        if is_text and column.enum_values is not None:
            listed = frozenset[Fraction | str](column.enum_values)
        bounds = (column.lo, column.hi) if is_exact else (None, None)
        if listed is not None or bounds != (None, None):
            found.append(Allowed(column.name, *bounds, listed))
    return tuple(found)


def without_days(columns: Iterable[LiveColumn]) -> tuple[LiveColumn, ...]:
    """Return columns without the bounds of days, which are for `allowed_in` alone: no clamp is left out by them."""
    return tuple(
        replace(column, lo=None, hi=None, listed=None) if column.type.kind is Kind.DATE else column
        for column in columns
    )


@dataclass(frozen=True, slots=True)
class LiveForeignKey:
    """An enforced foreign key: `columns` of this table point at `referenced` columns of `table` (a path)."""

    columns: tuple[str, ...]
    table: tuple[str, str]
    referenced: tuple[str, ...]

    @property
    def pairs(self) -> dict[str, str]:
        """The columns, each with the one that it points at: the same in whatever order a key is written."""
        return dict(zip(self.columns, self.referenced, strict=True))


@dataclass(frozen=True, slots=True)
class LiveTable:
    """A table or view. `path` is (schema, name); `unique` the UNIQUE constraints but for the primary key.

    `unusable`: what it is that no policy may declare, and what to do, as the end of a sentence; None for a
    table whose constraints hold for every row that a query sees. `version`: what its rows are read from, where that
    is fixed; "" where the database itself says what they are. `definition`: the text of a view, as the engine has it.
    `is_partition`: its rows are those of another table too. `parts`: what its rows are read from, each told by what no
    other one has, where a table is not what its path says. `asserted`: columns that the owner asserts to be a key,
    where rows have a `version`; nothing is answered before that was found to hold in this one (soundness.md 1.30).
    `read_as`: the name of a view of the session through which its rows are read, where a version is read so.
    `proved`: what the engine enforces of its committed rows, and has validated; None where it enforces nothing.
    `loose_keys`: unique indexes that hold less than they seem to, each with its columns and why, for the owner.
    """

    path: tuple[str, str]
    columns: tuple[LiveColumn, ...]
    primary_key: tuple[str, ...] = ()
    unique: tuple[tuple[str, ...], ...] = ()
    foreign_keys: tuple[LiveForeignKey, ...] = ()
    unusable: str | None = None
    is_partitioned: bool = False
    version: str = ""
    is_partition: bool = False
    definition: str = ""
    asserted: tuple[str, ...] = ()
    read_as: str = ""
    proved: Proved | None = None
    parts: frozenset[str] = frozenset()
    loose_keys: tuple[tuple[tuple[str, ...], str], ...] = ()
    _by_name: dict[str, LiveColumn] = field(init=False, repr=False, compare=False, default_factory=dict)

    def __post_init__(self) -> None:
        self._by_name.update((column.name, column) for column in reversed(self.columns))

    @property
    def place(self) -> tuple[str, ...]:
        """What it is called where its rows are read."""
        return (self.read_as,) if self.read_as else self.path

    def column(self, name: str) -> LiveColumn | None:
        """Return the column of exactly this name, or None."""
        return self._by_name.get(name)

    def is_unique(self, *columns: str) -> bool:
        """Say whether no two rows share values of these columns, none of which is NULL: the engine enforces it, or it
        is verified in the version that is read."""
        keys = (self.primary_key, self.asserted, *self.unique)
        return any(key and set(columns).issuperset(key) for key in keys)


@dataclass(frozen=True, slots=True)
class LiveSchema:
    """All persistent tables and views, ordered by path; `default_schema` is where bare names live.

    `dialect`: how the engine is spoken to, `duckdb`, `postgres` or `spark`. `case_collation`: a
    collation in which lower() and upper() are Unicode's, where the engine needs one named; None: it has none.
    `unreadable`: tables that are there but not for our role, with the SQL that mends it; where all were asked for.
    `called`: what the database calls tables and views that a policy calls otherwise, by the policy's names: names are
    the policy's, and paths the database's.
    """

    default_schema: str
    tables: tuple[LiveTable, ...]
    dialect: str = "duckdb"
    case_collation: str | None = None
    unreadable: tuple[tuple[tuple[str, str], str], ...] = ()
    called: Mapping[str, str] = field(default_factory=dict)
    _by_path: dict[tuple[str, str], LiveTable] = field(
        init=False, repr=False, compare=False, default_factory=dict
    )
    _names: dict[tuple[str, str], str] = field(init=False, repr=False, compare=False, default_factory=dict)

    def __post_init__(self) -> None:
        self._by_path.update((table.path, table) for table in reversed(self.tables))
        self._names.update((self.path_of(name), name) for name in self.called)

    def as_called(self, called: Mapping[str, str]) -> LiveSchema:
        """Return the schema with a policy's names."""
        return self if called == self.called else replace(self, called=called)

    def table(self, path: tuple[str, str]) -> LiveTable | None:
        """Return the table at exactly this path, or None."""
        return self._by_path.get(path)

    def path_of(self, name: str) -> tuple[str, str]:
        """Return the path that a name in the policy means."""
        return self.written_path(self.called.get(name, name))

    def written_path(self, name: str) -> tuple[str, str]:
        """Return a name as a path, as it is written: `table`, or `schema.table`."""
        schema, dot, table = name.partition(".")
        return (schema, table) if dot else (self.default_schema, name)

    def place_of(self, name: str) -> tuple[str, ...]:
        """Return what the table of a name in the policy is called where its rows are read."""
        path = self.path_of(name)
        found = self.table(path)
        return path if found is None else found.place

    def name_of(self, path: tuple[str, str]) -> str:
        """Return the name that the policy uses for a path: the inverse of `path_of`.

        Where the policy calls another table by the name that the database has for it, it has none that can be written.
        """
        own = self.own_name(path)
        return self._names.get(path, f"{own}." if own in self.called else own)

    def own_name(self, path: tuple[str, str]) -> str:
        """Return the name that the database has for a path, as a policy writes it."""
        schema, table = path
        return table if schema == self.default_schema else f"{schema}.{table}"
