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
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction

from ..backends import Backend, Snapshot
from ..budget import LedgerStore
from ..errors import PolicyError
from ..plan.dialects import Dialect, dialect_of
from ..plan.privacy.axes import spelled
from ..policy import Policy
from ..policy.catalog import table_key
from ..policy.live_schema import LiveSchema, LiveTable, comparable_type
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


def look_at_keys(policy: Policy, backend: Backend) -> tuple[FoundKey, ...]:
    """Return what every asserted key is, over all rows. An owner's act.

    Raises PolicyError where one cannot be a key by its columns' types, EngineFailure.
    """
    with backend.snapshot() as snapshot:
        live = snapshot.schema()
        asserted = [table for table in live.tables if table.asserted]
        return tuple(_look(policy, live, table, snapshot) for table in asserted)


def _look(policy: Policy, live: LiveSchema, table: LiveTable, snapshot: Snapshot) -> FoundKey:
    name = live.name_of(table.path)
    where = table_key(policy, name)
    columns, dialect = asserted_key(where, table), dialect_of(live.dialect, live.case_collation)
    # As every statement reads them: what is NULL there is no key here.
    names = [_as_read(dialect, table, column) for column in columns]
    place, listed = dialect.path(table.place), ", ".join(names)
    is_missing = " OR ".join(f"{one} IS NULL" for one in names)
    is_there = " AND ".join(f"{one} IS NOT NULL" for one in names)
    rows, missing = _numbers(
        snapshot, f"SELECT COUNT(*), COUNT(CASE WHEN {is_missing} THEN 1 END) FROM {place}"
    )
    (repeated,) = _numbers(
        snapshot,
        f"SELECT COUNT(*) FROM (SELECT 1 FROM {place} WHERE {is_there} GROUP BY {listed} HAVING COUNT(*) > 1) AS t",
    )
    return FoundKey(f"{where}.key", name, columns, table.version, rows, missing, repeated)


def _as_read(dialect: Dialect, table: LiveTable, name: str) -> str:
    column = table.column(name)
    assert column is not None
    return dialect.stored(dialect.identifier(name), comparable_type(column))


def look_at_orphans(policy: Policy, backend: Backend) -> tuple[Orphans, ...]:
    """Return how many rows of each private table lead to no row of the table that they should lead to.

    For the owner's eyes. Raises PolicyError, EngineFailure.
    """
    with backend.snapshot() as snapshot:
        return tuple(_orphans(policy, snapshot.schema(), snapshot))


def _orphans(policy: Policy, live: LiveSchema, snapshot: Snapshot) -> Iterator[Orphans]:
    for declared in policy.tables.values():
        unit = build_unit(table_key(policy, declared.name), policy, declared, live)
        if unit is None or unit.references is None or unit.is_held:
            continue
        parent, key = unit.references
        dialect = dialect_of(live.dialect, live.case_collation)
        child, other = (dialect.path(live.place_of(name)) for name in (declared.name, parent))
        pairs = zip(map(dialect.identifier, key), map(dialect.identifier, unit.columns), strict=True)
        links = " AND ".join(f"p.{theirs} = c.{ours}" for theirs, ours in pairs)
        (rows,) = _numbers(
            snapshot,
            f"SELECT COUNT(*) FROM {child} AS c WHERE NOT EXISTS (SELECT 1 FROM {other} AS p WHERE {links})",
        )
        yield Orphans(declared.name, ", ".join(unit.columns), reference_text(unit.references), rows)


def _numbers(snapshot: Snapshot, sql: str) -> tuple[int, ...]:
    (row,) = [row for chunk in snapshot.run(sql) for row in chunk]
    return tuple(map(int, row))


# --- rows of periods that are still to come -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LaterRows:
    """Rows of a table that are of a period after the running one, by its column of time."""

    table: str
    column: str
    rows: int


def look_at_later_rows(policy: Policy, backend: Backend, after: datetime) -> tuple[LaterRows, ...]:
    """Return how many rows each table with a column of time has from a moment on, in UTC. An owner's act.

    Raises PolicyError, EngineFailure.
    """
    found: list[LaterRows] = []
    with backend.snapshot() as snapshot:
        live = snapshot.schema()
        dialect = dialect_of(live.dialect, live.case_collation)
        for name, table in policy.tables.items():
            if table.time is None or table.time[0] != name:
                continue
            live_table = next(one for one in live.tables if live.name_of(one.path) == name)
            column = live_table.column(table.time[1])
            if column is None:
                raise PolicyError(f'{table_key(policy, name)}.time: there is no column "{table.time[1]}"')
            kind = comparable_type(column)
            whole = (after - datetime(1970, 1, 1, tzinfo=UTC)) // _UNIT[kind.kind]
            read = dialect.stored(dialect.identifier(column.name), kind)
            first = dialect.literal(Literal(kind, whole))
            (rows,) = _numbers(
                snapshot,
                f"SELECT COUNT(CASE WHEN {read} >= {first} THEN 1 END) FROM {dialect.path(live.place_of(name))}",
            )
            found.append(LaterRows(name, column.name, rows))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Times:
    """Of a table's rows: those without a time, those before the first period, and those after the running one."""

    table: str
    column: str
    rows: int
    without: int
    before: int
    later: int


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
    with backend.snapshot() as snapshot:
        live = snapshot.schema()
        dialect = dialect_of(live.dialect, live.case_collation)
        for name, table in policy.tables.items():
            live_table = next((one for one in live.tables if live.name_of(one.path) == name), None)
            if table.time is None or table.time[0] != name or live_table is None:
                continue
            column = live_table.column(table.time[1])
            if column is None:
                continue  # a problem of its own
            kind = comparable_type(column)
            read = dialect.stored(dialect.identifier(column.name), kind)
            moments = [
                datetime(day.year, day.month, day.day, tzinfo=UTC) if kind.kind is Kind.DATE else end
                for day, end in zip(days, ends, strict=True)
            ]
            since, after = (
                dialect.literal(
                    Literal(kind, (moment - datetime(1970, 1, 1, tzinfo=UTC)) // _UNIT[kind.kind])
                )
                for moment in moments
            )
            counts = _numbers(
                snapshot,
                f"SELECT COUNT(*), COUNT(CASE WHEN {read} IS NULL THEN 1 END), "
                f"COUNT(CASE WHEN {read} < {since} THEN 1 END), "
                f"COUNT(CASE WHEN {read} >= {after} THEN 1 END) FROM {dialect.path(live.place_of(name))}",
            )
            found.append(Times(name, column.name, *counts))
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


def look_at_ranges(catalog: Catalog, live: LiveSchema, snapshot: Snapshot) -> Iterator[Outside]:
    """Yield how many rows each table with a range of people has of others. An owner's act. Raises EngineFailure."""
    dialect = dialect_of(live.dialect, live.case_collation)
    for name, table in catalog.tables.items():
        if table.unit is None or table.unit.range is None:
            continue
        (column,), (low, high) = table.unit.columns, table.unit.range
        read = dialect.identifier(column)
        test = f"{read} NOT BETWEEN {low} AND {high}"
        sql = f"SELECT COUNT(*), COUNT(CASE WHEN {test} THEN 1 END) FROM {dialect.path(live.place_of(name))}"
        yield Outside(name, column, *_numbers(snapshot, sql))


# --- columns that are complete, as the owner says -----------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Complete:
    """A complete column: of `rows`, `others` have a value that is not listed, or out of bounds, or an unlisted NULL."""

    table: str
    column: str
    rows: int
    others: int


def look_at_columns(catalog: Catalog, live: LiveSchema, snapshot: Snapshot) -> Iterator[Complete]:
    """Yield what every complete column of people's tables is, over all rows. An owner's act. Raises EngineFailure."""
    dialect = dialect_of(live.dialect, live.case_collation)
    for name, table in catalog.tables.items():
        columns = [column for column in table.columns if column.is_complete and table.unit is not None]
        if not columns:
            continue
        counts = ", ".join(f"COUNT(CASE WHEN {_is_told(column, dialect)} THEN 1 END)" for column in columns)
        sql = f"SELECT COUNT(*), {counts} FROM {dialect.path(live.place_of(name))}"
        ((rows, *told),) = (row for chunk in snapshot.run(sql) for row in chunk)
        for column, number in zip(columns, told, strict=True):
            yield Complete(name, column.name, int(rows), int(rows) - int(number))


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
