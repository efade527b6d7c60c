"""Made-up people in memory, under the tables, types and keys of an owner's database; not a row is the owner's.

House rule: a twin is made from the policy and the schema alone. It lives in a DuckDB of its own, which no file stands
behind, or, where the owner's tables are files, in files of its own in a folder that goes with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field
from datetime import date
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb

from ...backends import DuckDBBackend
from ...backends.duckdb_files import DuckDBFiles, pin_verified
from ...backends.pinned_files import write_record
from ...plan.dialects.quote import identifier, text
from ...plan.views import build_catalog
from ...policy import Policy
from ...policy.live_schema import LiveColumn, LiveSchema, LiveTable
from ...policy.model import FILES, FileSources
from ...policy.periods import UNDATED, first_day, instant_of, number_of
from ...records import dataclass
from ...relation.catalog import Catalog, Column
from ...relation.types import Kind

Row = dict[str, str]
"""SQL literals by column."""

CROWD = 40
"""Persons beside the one who is there or not."""
_MOST_ROWS = 5_000
_AT_ONCE = 1_000
_WILD = ("'nan'::DOUBLE", "'inf'::DOUBLE", "'-inf'::DOUBLE", "1e30")
_FIRST_DAY = date(1970, 1, 1).toordinal()
_TEXTS = ("ash", "birch", "cedar", "")
_WORDS = {Kind.SMALLINT: "SMALLINT", Kind.INTEGER: "INTEGER", Kind.BIGINT: "BIGINT", Kind.REAL: "FLOAT",
          Kind.DOUBLE: "DOUBLE", Kind.BOOLEAN: "BOOLEAN", Kind.DATE: "DATE", Kind.TIMESTAMP: "TIMESTAMP",
          Kind.INTERVAL: "INTERVAL"}  # fmt: skip
_EPOCHS = {Kind.DATE: "DATE '1970-01-01' + CAST({} AS INTEGER)", Kind.TIMESTAMP: "make_timestamp({})"}


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody made up. `at`: where values lie: low, high, inside, wild (outside of bounds, NULL, NaN, infinite).

    `rows`: how many in each table, as a multiple of what counts; `spread`: over how many groups more than count,
    None: all in one. `periods`: under a budget by periods, in which the rows are, each in a group of its own where
    `spread` is None: so many in the first of them, in the others as many as count; counted from the first
    one that the policy names; `without`: the number of the slice whose rows are not there, `UNDATED` for undated ones.
    """

    name: str
    at: str = "inside"
    rows: int = 1
    spread: int | None = None
    periods: tuple[int, ...] = (0,)
    without: int | None = None


PATTERNS = (
    Person("one person more"),
    Person("a person at the lower ends", "low", 1),
    Person("a person at the upper ends", "high", 1),
    Person("ten times the rows that count, in one group", "high", 10),
    Person("as many at the lower ends", "low", 10),
    Person("rows in more groups than count", "high", 10, 5),
    Person("as many, of wild values", "wild", 10, 5),
)


@dataclass
class Twin:
    """A DuckDB in memory with the policy's tables, and people who are put in and taken out."""

    policy: Policy
    live: LiveSchema
    catalog: Catalog
    connection: duckdb.DuckDBPyConnection
    _serial: int = 0
    _people: int = 0

    def create(self) -> None:
        """Make the empty tables, parents first."""
        for name in self._ordered():
            schema = self._schema(name)
            self.connection.execute(f"CREATE SCHEMA IF NOT EXISTS {identifier(schema)}")
            self.connection.execute(self._ddl(name))

    def fill(self, people: Sequence[Person]) -> None:
        """Have these people in the tables and nobody else: always the same rows for the same people."""
        for name in reversed(self._ordered()):
            self.connection.execute(f"DELETE FROM {self._place(name)}")
        self._serial = self._people = 0
        rows: dict[str, list[Row]] = {name: [] for name in self._ordered()}
        seen: dict[str, set[tuple[str, ...]]] = {name: set() for name in rows}
        for person in people:
            self._add(person, rows, seen)
        for name, made in rows.items():
            for start in range(0, len(made), _AT_ONCE):
                values = ", ".join(f"({', '.join(row.values())})" for row in made[start : start + _AT_ONCE])
                self.connection.execute(f"INSERT INTO {self._place(name)} VALUES {values}")

    def _add(self, person: Person, rows: dict[str, list[Row]], seen: dict[str, set[tuple[str, ...]]]) -> None:
        own: dict[str, list[Row]] = {}
        slices: dict[str, list[int]] = {}
        self._people += 1
        for name in self._ordered():
            unit = self.policy.tables[name].unit
            if unit is None:
                continue
            parents: list[tuple[str, ...]] = [("NULL",) * len(unit.columns)]
            above = [UNDATED]
            if unit.references is not None:
                parent, key = unit.references
                parents, above = [tuple(row[column] for column in key) for row in own[parent]], slices[parent]
            bound = self.catalog.tables[name].unit
            is_one = unit.references is None and bound is not None and bound.is_unique
            count = 1 if is_one else self._rows(name, person)
            time = None if bound is None else bound.time
            if time is not None:
                fewer = count if is_one or not person.rows else count // person.rows
                count = min(_MOST_ROWS, count + fewer * (len(person.periods) - 1)) if person.periods else 0
            made = list(self._made(name, person, parents, above, count, seen[name]))
            own[name], slices[name] = [row for row, _ in made], [at for _, at in made]
            rows[name] += [row for row, at in made if person.without is None or at != person.without]

    # --- tables ---------------------------------------------------------------------------------------------

    def _ordered(self) -> list[str]:
        """Return the declared tables, each after the one that its owner is found through."""
        found: list[str] = []
        waiting = list(self.policy.tables)
        while waiting:
            name = waiting.pop(0)
            unit = self.policy.tables[name].unit
            if unit is not None and unit.references is not None and unit.references[0] not in found:
                waiting.append(name)
                continue
            found.append(name)
        return found

    def _live(self, name: str) -> LiveTable:
        table = self.live.table(self.live.path_of(name))
        assert table is not None, "the catalog was built from this schema"
        return table

    def _columns(self, name: str) -> list[LiveColumn]:
        """Return the columns that a twin has: declared ones, and those that lead to the owner."""
        wanted = {column.name for column in self.catalog.tables[name].columns}
        if (time := self.policy.tables[name].time) is not None and time[0] == name:
            wanted.add(time[1])
        wanted.update(self.policy.tables[name].row_number)
        for other, declared in self.policy.tables.items():
            if declared.unit is not None:
                wanted |= set(declared.unit.columns) if other == name else set()
                if declared.unit.references is not None and declared.unit.references[0] == name:
                    wanted |= set(declared.unit.references[1])
        return [column for column in self._live(name).columns if column.name in wanted]

    def _keys(self, name: str) -> list[tuple[str, ...]]:
        table, known = self._live(name), {column.name for column in self._columns(name)}
        return [
            key
            for key in dict.fromkeys((table.primary_key, *table.unique, table.asserted))
            if key and known.issuperset(key)
        ]

    def _place(self, name: str) -> str:
        return f"{identifier(self._schema(name))}.{identifier(self._live(name).path[1])}"

    def _schema(self, name: str) -> str:
        schema = self._live(name).path[0]
        return "main" if schema == self.live.default_schema else schema

    def _ddl(self, name: str) -> str:
        table, lines = self._live(name), []
        keys = self._keys(name)
        for column in self._columns(name):
            check = ""
            if column.lo is not None and column.hi is not None:
                lo, hi = (_number(end) for end in (column.lo, column.hi))
                check = f" CHECK ({identifier(column.name)} BETWEEN {lo} AND {hi})"
            not_null = " NOT NULL" if column.not_null else ""
            lines.append(f"{identifier(column.name)} {self._type(column)}{not_null}{check}")
        for key in keys:
            kind = "PRIMARY KEY" if key == table.primary_key else "UNIQUE"
            lines.append(f"{kind} ({', '.join(map(identifier, key))})")
        unit = self.policy.tables[name].unit
        if unit is not None and unit.references is not None:
            parent, columns = unit.references
            is_held = any(set(key.columns) == set(unit.columns) for key in table.foreign_keys)
            is_key = any(set(key) == set(columns) for key in self._keys(parent))
            if is_held and is_key and self._schema(name) == self._schema(parent):
                own, referenced = (", ".join(map(identifier, names)) for names in (unit.columns, columns))
                lines.append(f"FOREIGN KEY ({own}) REFERENCES {self._place(parent)} ({referenced})")
        return f"CREATE TABLE {self._place(name)} ({', '.join(lines)})"

    def _type(self, column: LiveColumn) -> str:
        if self.live.dialect == "duckdb":
            return column.engine_type
        if column.type.kind is Kind.NUMERIC:
            return f"DECIMAL({min(column.type.precision or 38, 38)},{column.type.scale or 0})"
        if column.type.kind is Kind.OPAQUE:
            return "UUID" if column.engine_type == "uuid" else "VARCHAR"
        return _WORDS.get(column.type.kind, "VARCHAR")

    # --- rows -----------------------------------------------------------------------------------------------

    def _rows(self, name: str, person: Person) -> int:
        unit = self.catalog.tables[name].unit
        most = 1 if unit is None or unit.max_rows is None else unit.max_rows
        return min(_MOST_ROWS, most * person.rows) if person.rows else 1

    def _made(
        self,
        name: str,
        person: Person,
        parents: Sequence[tuple[str, ...]],
        above: Sequence[int],
        count: int,
        seen: set[tuple[str, ...]],
    ) -> Iterator[tuple[Row, int]]:
        """Yield rows as SQL literals by column, no two of one key, and the slice of each. `above`: of the parents."""
        unit, known = self.policy.tables[name].unit, self.catalog.tables[name].unit
        assert unit is not None
        time = None if known is None else known.time
        alone = {key[0] for key in self._keys(name) if len(key) == 1}
        groups = 1
        if person.spread is not None:
            bound = self.catalog.tables[name].unit
            groups = (1 if bound is None else bound.max_groups or bound.max_rows or 1) + person.spread
        *periods, numbered = self.policy.tables[name].row_number or ("",)
        most = self._rows(name, person)
        fewer = max(1, most // max(1, person.rows))
        first = min(_MOST_ROWS, most)
        for number in range(count if parents else 0):
            self._serial += 1
            row = {}
            at = UNDATED if time is None else above[number % len(parents)]
            place = 0
            if time is not None and not time.way:
                place = max(0, (number - first) // fewer + 1)
                at = self._first() + person.periods[place]
            parent = dict(zip(unit.columns, parents[number % len(parents)], strict=True))
            for column in self._columns(name):
                if column.name in parent and unit.references is not None:
                    row[column.name] = parent[column.name]
                elif column.name in parent:
                    row[column.name] = self._part_of_person(column, unit.columns.index(column.name))
                elif column.name == numbered:
                    row[column.name] = str(number + 1)  # of these rows, which are one person's
                elif column.name in periods:
                    row[column.name] = self._first_day(at)
                elif time is not None and not time.way and column.name == time.column:
                    row[column.name] = self._moment(column, at, person)
                elif column.name in alone:
                    row[column.name] = self._serial_value(column, self._serial)
                else:
                    group = number % groups if person.spread is not None else place
                    row[column.name] = self._value(name, column, person, group)
            keys = [(str(i), *(row[part] for part in key)) for i, key in enumerate(self._keys(name))]
            if not seen.intersection(keys):
                seen.update(keys)
                yield row, at

    def _first(self) -> int:
        """Return the number of the first period that the policy names."""
        time = self.policy.privacy.time
        assert time is not None, "a table has a time"
        return number_of(time.period, time.since)

    def _first_day(self, at: int) -> str:
        time = self.policy.privacy.time
        assert time is not None, "a row is of a period"
        return f"DATE '{first_day(time.period, at)}'"

    def _moment(self, column: LiveColumn, at: int, person: Person) -> str:
        """Return a moment of a period, at an end of it or inside."""
        time = self.policy.privacy.time
        assert time is not None, "a table has a time"
        ends = (at, at + 1)
        if column.type.kind is Kind.DATE:
            begin, end = (first_day(time.period, each).toordinal() - _FIRST_DAY for each in ends)
        else:
            begin, end = (int(instant_of(time.period, each, time.zone).timestamp()) * 10**6 for each in ends)
        value = {"low": begin, "high": end - 1}.get(
            person.at, begin + (end - begin) * (self._serial % 8) // 8
        )
        if "ZONE" in self._type(column).upper():
            return f"make_timestamptz({value})"
        return _EPOCHS[column.type.kind].format(value)

    def _part_of_person(self, column: LiveColumn, place: int) -> str:
        """Return a part of a person's key: of several some that are declared, so that people share them."""
        root = self.catalog.tables[self.policy.root]
        columns = [root.column(one.name) for one in root.owner_columns]
        listed = [[] if one is None else [v for v in one.values or () if v is not None] for one in columns]
        declared = columns[place]
        if declared is None or not listed[place] or all(listed):
            return self._serial_value(column, self._people)
        return _literal(listed[place][self._people % len(listed[place])], declared)

    def _serial_value(self, column: LiveColumn, number: int) -> str:
        """Return the value of a number: no two numbers have one."""
        kind = column.type.kind
        if column.lo is not None:
            number += int(column.lo)
        if kind in _EPOCHS:
            return _EPOCHS[kind].format(number)
        if kind is Kind.TEXT:
            return f"'{number}'"
        if kind is Kind.OPAQUE:
            return (
                f"'00000000-0000-0000-0000-{number:012d}'" if "UUID" in self._type(column) else f"'{number}'"
            )
        return str(number)

    def _value(self, name: str, column: LiveColumn, person: Person, group: int) -> str:
        declared = self.catalog.tables[name].column(column.name)
        if person.at == "wild" and not column.not_null and self._serial % 3 == 0:
            return "NULL"
        if declared is not None and declared.values:
            return _literal(declared.values[group % len(declared.values)], declared)
        if column.enum_values:
            return text(column.enum_values[group % len(column.enum_values)])
        kind = column.type.kind
        if kind is Kind.BOOLEAN:
            return "true" if (group % 2 == 0) else "false"
        if kind is Kind.TEXT:
            return text(
                _TEXTS[group % 3] if person.spread is None else f"{_TEXTS[0]} {group} of {self._people}"
            )
        if column.type.is_number or kind in _EPOCHS:
            return self._measure(column, declared, person, group)
        return "NULL" if not column.not_null else self._serial_value(column, self._serial)

    def _measure(self, column: LiveColumn, declared: Column | None, person: Person, group: int) -> str:
        """Return a number, a date or a moment: at an end of its bounds, inside or far outside of them."""
        lo, hi = (Fraction(0), Fraction(10))
        if declared is not None and declared.bounds is not None:
            lo, hi = declared.bounds
        if column.lo is not None and column.hi is not None:
            lo, hi = max(lo, column.lo), min(hi, column.hi)
        kind, scale = column.type.kind, column.type.scale or 0
        if kind is Kind.NUMERIC and column.type.precision is not None:
            most = Fraction(10**column.type.precision - 1, 10**scale)  # what the type holds
            lo, hi = max(lo, -most), min(hi, most)
        if person.at == "wild" and kind in (Kind.REAL, Kind.DOUBLE) and column.lo is None:
            return _WILD[self._serial % len(_WILD)]
        steps = min(int(hi - lo), 6) if kind is not Kind.TIMESTAMP else 6
        inside = lo + (hi - lo) * (self._serial * 7 % (steps + 1)) / steps if steps > 0 else lo
        if kind not in (Kind.REAL, Kind.DOUBLE, Kind.NUMERIC):
            inside = Fraction(int(inside))
        value = {"low": lo, "high": hi}.get(person.at, inside)
        if person.spread is not None and person.at != "wild":
            value = hi - group if hi - group >= lo else hi
        if kind in _EPOCHS:
            return _EPOCHS[kind].format(int(value))
        return _number(value)


def _literal(value: Any, column: Column) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return text(value)
    return (
        _EPOCHS[column.type.kind].format(int(value))
        if column.type.kind in _EPOCHS
        else _number(Fraction(value))
    )


@dataclass
class _InFiles(Twin):
    """The same as Parquet files, two for each table, which are recorded anew whenever they are filled."""

    files: FileSources = field(kw_only=True)

    def fill(self, people: Sequence[Person]) -> None:
        super().fill(people)
        self.record()

    def record(self) -> None:
        """Write what there is, as an owner writes it, verify it and record it."""
        for name, (pattern,) in self.files.tables.items():
            for part in (0, 1):
                rows = f"SELECT * FROM {self._place(name)} WHERE rowid % 2 = {part}"
                place = text(str(self.files.folder / pattern.replace("*", str(part))))
                self.connection.execute(f"COPY ({rows}) TO {place} (FORMAT parquet)")
        write_record(self.files.record, pin_verified(self.files, self.policy.source))


@contextmanager
def twin_of(policy: Policy, live: LiveSchema) -> Iterator[tuple[Twin, DuckDBBackend]]:
    """Make an empty twin, in files where the policy's tables are files of DuckDB's, and give the backend over it.

    Raises PolicyError: policy and schema do not go together.
    """
    catalog, live = build_catalog(policy, live), live.as_called(policy.called)
    with duckdb.connect() as connection, TemporaryDirectory(prefix="dpsql-") as folder:
        if policy.files is None or policy.database != FILES:
            twin = Twin(policy, live, catalog, connection)
            twin.create()
            yield twin, DuckDBBackend.over(connection)
            return
        named = {name: (f"{number}-*.parquet",) for number, name in enumerate(policy.tables)}
        files = FileSources(Path(folder), named, Path(folder) / "recorded.json", policy.files.keys)
        in_files = _InFiles(policy, live, catalog, connection, files=files)
        in_files.create()
        in_files.record()
        backend = DuckDBFiles(files)
        yield in_files, backend
        backend.close_idle()


def _number(value: Fraction) -> str:
    return str(int(value)) if value.denominator == 1 else f"{float(value):.18f}"
