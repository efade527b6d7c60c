"""Keys that the owner asserts: looked at over all rows by the owner's command, and asked for by every statement.

House rules (soundness.md 1.30):

1. A key is believed of one version of a table's data, the one in which it was found to hold. What is asked is the
   ledger, never a row, and what it says depends on what the owner did.
2. Rows are looked at through the backend that statements read, in one snapshot, whose versions are what is recorded.
3. The owner may see how many values are repeated. Which they are is never read.

What the owner says costs correctness alone: no noise, charge or filter rests on it (soundness.md 1.34). Which values
they are is never read.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction

from ..backends import Backend, Snapshot
from ..backends.prepared_rows import first_day_of
from ..budget import LedgerStore
from ..errors import PolicyError
from ..plan.dialects import Dialect, dialect_of
from ..plan.privacy.value_set import spelled
from ..policy import Policy
from ..policy.catalog import table_key
from ..policy.live_schema import LiveColumn, LiveSchema, LiveTable, comparable_type
from ..policy.periods import first_day, instant_of, number_of
from ..policy.units import asserted_key, build_unit
from ..records import dataclass
from ..relation.catalog import Catalog, Column, Scalar, reference_text
from ..relation.expressions import Literal
from ..relation.types import Kind


@dataclass(frozen=True, slots=True)
class FoundKey:
    """What an asserted key is in a version of a table's rows: `missing` have NULL in it, `repeated` values are
    those of more than one row."""

    where: str
    table: str
    columns: tuple[str, ...]
    version: str
    rows: int
    missing: int
    repeated: int

    @property
    def holds(self) -> bool:
        """Say whether it is a key."""
        return not self.missing and not self.repeated

    @property
    def problem(self) -> str:
        """What is wrong with it, in numbers."""
        said = []
        if self.repeated:
            said.append(
                f"{self.repeated} of its values {'stand' if self.repeated > 1 else 'stands'} in several rows"
            )
        if self.missing:
            said.append(f"{self.missing} {'rows have' if self.missing > 1 else 'row has'} none")
        return f"{self.where}: ({', '.join(self.columns)}) is no key of {self.table}: {', and '.join(said)}"


@dataclass(frozen=True, slots=True)
class Orphans:
    """Rows of a private table whose column leads to no row of the other: they are nobody's, and never counted."""

    table: str
    column: str
    references: str
    rows: int


def require_verified(live: LiveSchema, store: LedgerStore) -> None:
    """Raise PolicyError unless every asserted key was found to hold in the very version that the schema is of.

    Raises LedgerError.
    """
    for table in live.tables:
        if not table.asserted:
            continue
        name = live.name_of(table.path)
        found = store.key_check(name, table.asserted, table.version)
        if found is None or not found.holds:
            raise PolicyError(
                f'the key that is asserted of "{name}" is not verified for the data as it is; run dpsql check --data',
                hint="it is the owner's command: it verifies the key, or says that it does not hold",
            )


@dataclass(frozen=True, slots=True)
class _Rows:
    """Where rows are looked at: in one snapshot, by names as the policy has them."""

    snapshot: Snapshot
    live: LiveSchema
    dialect: Dialect

    def read(self, column: LiveColumn) -> str:
        """Return a column as every statement reads it: what is NULL there is NULL here."""
        return self.dialect.stored(self.dialect.identifier(column.name), comparable_type(column))

    def literal(self, column: LiveColumn, moment: datetime) -> str:
        """Return a moment in UTC as one of a column of times."""
        kind = comparable_type(column)
        whole = (moment - datetime(1970, 1, 1, tzinfo=UTC)) // _UNIT[kind.kind]
        return self.dialect.literal(Literal(kind, whole))

    def count(self, name: str, *tests: str) -> tuple[int, ...]:
        """Return how many rows a table has, and how many of them pass each test. Raises EngineFailure."""
        passed = "".join(f", COUNT(CASE WHEN {test} THEN 1 END)" for test in tests)
        return self.numbers(f"SELECT COUNT(*){passed} FROM {self.dialect.path(self.live.place_of(name))}")

    def numbers(self, sql: str) -> tuple[int, ...]:
        """Return the numbers of the one row of a query. Raises EngineFailure."""
        (row,) = [row for chunk in self.snapshot.run(sql) for row in chunk]
        return tuple(map(int, row))


@contextmanager
def _looked_at(policy: Policy, backend: Backend) -> Iterator[_Rows]:
    with backend.snapshot() as snapshot:
        live = snapshot.schema().as_called(policy.called)
        yield _Rows(snapshot, live, dialect_of(live.dialect, live.case_collation))


def look_at_keys(policy: Policy, backend: Backend) -> tuple[FoundKey, ...]:
    """Return what every asserted key is, over all rows. An owner's act.

    Raises PolicyError where one cannot be a key by its columns' types, EngineFailure.
    """
    with _looked_at(policy, backend) as rows:
        return tuple(_look(policy, rows, table) for table in rows.live.tables if table.asserted)


def _look(policy: Policy, rows: _Rows, table: LiveTable) -> FoundKey:
    name = rows.live.name_of(table.path)
    where = table_key(policy, name)
    columns = asserted_key(where, table)
    names = []
    for one in columns:
        column = table.column(one)
        assert column is not None, "it was just looked at"
        names.append(rows.read(column))
    is_missing = " OR ".join(f"{one} IS NULL" for one in names)
    is_there = " AND ".join(f"{one} IS NOT NULL" for one in names)
    grouped = f"{rows.dialect.path(table.place)} WHERE {is_there} GROUP BY {', '.join(names)}"
    count, missing = rows.count(name, is_missing)
    (repeated,) = rows.numbers(f"SELECT COUNT(*) FROM (SELECT 1 FROM {grouped} HAVING COUNT(*) > 1) AS t")
    return FoundKey(f"{where}.key", name, columns, table.version, count, missing, repeated)


def look_at_orphans(policy: Policy, backend: Backend) -> tuple[Orphans, ...]:
    """Return how many rows of each private table lead to no row of the table that they should lead to.

    For the owner's eyes. Raises PolicyError, EngineFailure.
    """
    with _looked_at(policy, backend) as rows:
        return tuple(_orphans(policy, rows))


def _orphans(policy: Policy, rows: _Rows) -> Iterator[Orphans]:
    dialect = rows.dialect
    for declared in policy.tables.values():
        unit = build_unit(table_key(policy, declared.name), policy, declared, rows.live)
        if unit is None or unit.references is None or unit.is_held:
            continue
        parent, key = unit.references
        child, other = (dialect.path(rows.live.place_of(name)) for name in (declared.name, parent))
        pairs = zip(map(dialect.identifier, key), map(dialect.identifier, unit.columns), strict=True)
        links = " AND ".join(f"p.{theirs} = c.{ours}" for theirs, ours in pairs)
        nobody = f"NOT EXISTS (SELECT 1 FROM {other} AS p WHERE {links})"
        (count,) = rows.numbers(f"SELECT COUNT(*) FROM {child} AS c WHERE {nobody}")
        yield Orphans(declared.name, ", ".join(unit.columns), reference_text(unit.references), count)


# --- rows without a period, and of periods that are not named or still to come ------------------------------


@dataclass(frozen=True, slots=True)
class Times:
    """Of a table's rows: those without a time, those before the first period, and those after the running one.

    `elsewhere`: where rows are numbered by period, those that have another first day beside the number than their own.
    """

    table: str
    column: str
    rows: int
    without: int
    before: int
    later: int
    elsewhere: int


def look_at_times(policy: Policy, backend: Backend, today: date) -> tuple[Times, ...]:
    """Return of which times the rows of each table with a time of its own are. An owner's act.

    Raises PolicyError, EngineFailure.
    """
    time, found = policy.privacy.time, list[Times]()
    if time is None:
        return ()
    first, running = (number_of(time.period, day) for day in (time.since, today))
    ends = [instant_of(time.period, number, time.zone) for number in (first, running + 1)]
    days = [first_day(time.period, number) for number in (first, running + 1)]
    with _looked_at(policy, backend) as rows:
        for name, table in policy.tables.items():
            if table.time is None or table.time[0] != name:
                continue
            live, own = rows.live.table(rows.live.path_of(name)), table.time[1]
            column = None if live is None else live.column(own)
            if column is None:
                raise PolicyError(f'{table_key(policy, name)}.time: there is no column "{own}"')
            is_date = comparable_type(column).kind is Kind.DATE
            midnights = [datetime(day.year, day.month, day.day, tzinfo=UTC) for day in days]
            since, after = (rows.literal(column, one) for one in (midnights if is_date else ends))
            read = rows.read(column)
            tests = [f"{read} IS NULL", f"{read} < {since}", f"{read} >= {after}"]
            day = "FALSE"
            if table.row_number:
                raw, said = (rows.dialect.identifier(one) for one in (own, table.row_number[0]))
                day = f"{said} <> {first_day_of(raw, column.engine_type, time.period.value, time.zone)}"
            found.append(Times(name, own, *rows.count(name, *tests, day)))
    return tuple(found)


_UNIT = {Kind.DATE: timedelta(days=1), Kind.TIMESTAMP: timedelta(microseconds=1)}


# --- people whose number is in a range, as the owner says ---------------------------------------------------


@dataclass(frozen=True, slots=True)
class Outside:
    """Of a table's rows: those of people outside its `unit_range`, which no statement reads."""

    table: str
    column: str
    rows: int
    outside: int


def look_at_ranges(policy: Policy, backend: Backend, catalog: Catalog) -> tuple[Outside, ...]:
    """Return how many rows each table with a range of people has of others. An owner's act. Raises EngineFailure."""
    found: list[Outside] = []
    with _looked_at(policy, backend) as rows:
        for name, table in catalog.tables.items():
            if table.unit is not None and table.unit.range is not None:
                (column,), (low, high) = table.unit.columns, table.unit.range
                test = f"{rows.dialect.identifier(column)} NOT BETWEEN {low} AND {high}"
                found.append(Outside(name, column, *rows.count(name, test)))
    return tuple(found)


# --- columns that are complete, as the owner says -----------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Complete:
    """A complete column: of `rows`, `others` have a value that is not listed, or out of bounds, or an unlisted NULL."""

    table: str
    column: str
    rows: int
    others: int


def look_at_columns(policy: Policy, backend: Backend, catalog: Catalog) -> tuple[Complete, ...]:
    """Return what every complete column of people's tables is, over all rows. An owner's act. Raises EngineFailure."""
    found: list[Complete] = []
    with _looked_at(policy, backend) as rows:
        for name, table in catalog.tables.items():
            columns = [column for column in table.columns if column.is_complete and table.unit is not None]
            if columns:
                count, *told = rows.count(name, *(_is_told(column, rows.dialect) for column in columns))
                pairs = zip(columns, told, strict=True)
                found += (Complete(name, column.name, count, count - number) for column, number in pairs)
    return tuple(found)


def _is_told(column: Column, dialect: Dialect) -> str:
    """Return the test that a value is one of a column's."""
    read = dialect.stored(dialect.identifier(column.name), column.type)
    shown = dialect.bytewise(read) if column.type.kind is Kind.TEXT else read

    def literal(value: Scalar) -> str:
        exact = spelled(value, column.type)
        whole = int(exact) if isinstance(exact, Fraction) and column.type.is_temporal else exact
        return dialect.literal(Literal(column.type, whole))

    if column.values is None:
        assert column.bounds is not None, "the policy says of what it is complete"
        low, high = map(literal, column.bounds)
        return f"{shown} BETWEEN {low} AND {high}"
    listed = [f"{shown} IN ({', '.join(literal(one) for one in column.values if one is not None)})"]
    return " OR ".join([*listed, *([f"{read} IS NULL"] if None in column.values else [])])
