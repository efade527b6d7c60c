"""Small hostile databases of a certificate's facts, without one owner's rows too: how far does a text really move?

Each table has a few rows of four owners (and of nobody), out of the literals of the text and of ends of types; keys that
are enforced are kept, nothing else is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from random import Random

import duckdb

from dpsql.verify.certificate import Facts, Table

__all__ = ["Neighbours"]

Row = dict[str, object]
OWNERS = 4


class Neighbours:
    """A database and the one without an owner, both in one DuckDB."""

    def __init__(self, facts: Facts, sql: str, choose: Random, many: int) -> None:
        self.facts = facts
        self.choose = choose
        self.texts = [
            *[one.replace("''", "'") for one in re.findall(r"'((?:[^']|'')*)'", sql)][:40],
            "a",
            "b",
            "",
        ]
        self.numbers = [
            *sorted({int(one) for one in re.findall(r"\b\d{1,9}\b", sql)})[:40],
            -3,
            -1,
            0,
            1,
            2,
            7,
        ]
        self.times = [one for one in self.texts if re.match(r"\d{4}-\d\d-\d\d", one)] + [
            "2024-03-05",
            "1950-01-01",
        ]
        self.many = many
        self.rows: dict[str, list[Row]] = {}
        for name in facts.tables:
            self._fill(name)

    def _fill(self, name: str) -> None:
        if name in self.rows:
            return
        table = self.facts.tables[name]
        self.rows[name] = []
        above = {key.table for key in table.foreign_keys} | ({table.unit.table} if table.unit else set())
        for other in above:
            if other is not None and other != name:
                self._fill(other)
        seen: dict[tuple[str, ...], set[tuple[object, ...]]] = {key: set() for key in table.unique}
        for number in range(self.many):
            row = {column: self._value(table, column, kind, number) for column, kind in table.columns.items()}
            self._refer(table, row)
            values = {key: tuple(row[column] for column in key) for key in table.unique}
            if all(None in one or one not in seen[key] for key, one in values.items()):
                for key, one in values.items():
                    seen[key].add(one)
                self.rows[name].append(row)

    def _refer(self, table: Table, row: Row) -> None:
        """Foreign keys lead somewhere, a unit's way too."""
        ways = [(key.columns, key.table, key.referenced) for key in table.foreign_keys]
        if table.unit is not None and table.unit.table is not None:
            ways.append((table.unit.columns, table.unit.table, table.unit.referenced))
        for columns, other, referenced in ways:
            rows = self.rows.get(other) or []
            if rows and not (any(c not in table.not_null for c in columns) and self.choose.random() < 0.1):
                found = self.choose.choice(rows)
                row.update({c: found[r] for c, r in zip(columns, referenced, strict=True)})

    def _value(self, table: Table, column: str, kind: str, number: int) -> object:
        if column not in table.not_null and self.choose.random() < 0.15:
            return None
        key = any(column in one for one in table.unique)
        owner = table.unit is not None and column in table.unit.columns
        if kind.startswith("ENUM"):
            return self.choose.choice(re.findall(r"'([^']*)'", kind))
        kind = kind.upper()
        if "INT" in kind:
            if key or owner:
                return number % (OWNERS if not key else 10**6)
            return self.choose.choice([one for one in self.numbers if abs(one) < 2**15])
        if kind.startswith("DECIMAL"):
            digits, places = map(int, re.findall(r"\d+", kind))
            most = 10 ** (digits - places) - 1
            return f"{max(-most, min(most, self.choose.choice(self.numbers)))}.{'5' if places else '0'}"
        if kind in ("DOUBLE", "FLOAT"):
            return self.choose.choice([*map(float, self.numbers), 0.5, float("nan"), float("inf"), -1e300])
        if kind == "BOOLEAN":
            return self.choose.random() < 0.5
        if kind == "DATE" or kind.startswith("TIMESTAMP"):
            return self.choose.choice(self.times)[:10]
        if key or owner:
            return f"p{number % (OWNERS if not key else 10**6)}"
        return self.choose.choice(self.texts)

    def owners(self) -> list[tuple[object, ...]]:
        """All owners of rows, for tables whose rows have one."""
        found = {
            self.owner(name, row)
            for name, table in self.facts.tables.items()
            if table.unit
            for row in self.rows[name]
        }
        return sorted((one for one in found if one is not None and None not in one), key=repr)

    def owner(self, name: str, row: Row) -> tuple[object, ...] | None:
        """Whose a row is, by the way to its unit."""
        unit = self.facts.tables[name].unit
        if unit is None:
            return None
        if not unit.columns:
            return (name, id(row))
        values = tuple(row[column] for column in unit.columns)
        if unit.table is None:
            return values
        for above in self.rows[unit.table]:
            if tuple(above[column] for column in unit.referenced) == values:
                return self.owner(unit.table, above)
        return None

    def fill(self, connection: duckdb.DuckDBPyConnection, without: tuple[object, ...] | None) -> None:
        """Makes the tables, without the rows of one owner."""
        for name, table in self.facts.tables.items():
            schema, _, bare = name.partition(".")
            connection.execute(f'CREATE SCHEMA IF NOT EXISTS "{schema}"')
            columns = ", ".join(f'"{column}" {kind}' for column, kind in table.columns.items())
            connection.execute(f'CREATE OR REPLACE TABLE "{schema}"."{bare}" ({columns})')
            rows = [row for row in self.rows[name] if without is None or self.owner(name, row) != without]
            if rows:
                row = f"({', '.join('?' * len(table.columns))})"
                values = [one[column] for one in rows for column in table.columns]
                connection.execute(
                    f'INSERT INTO "{schema}"."{bare}" VALUES {", ".join([row] * len(rows))}', values
                )
            for check in table.checks:
                connection.execute(f'DELETE FROM "{schema}"."{bare}" WHERE NOT ({check})')

    @staticmethod
    def numbers_of(
        connection: duckdb.DuckDBPyConnection, sql: str, keys: Sequence[str], columns: Sequence[str]
    ) -> dict[tuple[object, ...], list[int]]:
        """The integers of each group, NULL as 0."""
        result = connection.execute(sql)
        names = [one[0] for one in result.description]
        found: dict[tuple[object, ...], list[int]] = {}
        for row in result.fetchall():
            values = dict(zip(names, row, strict=True))
            group = tuple(repr(values[key]) for key in keys)
            found[group] = [int(values[column] or 0) for column in columns]
        return found
