"""The owner's side of the suite: what the suite writes goes to the owner's own DuckDB, what it reads through dpsql.

The suite makes its tables and rows through the engine that it tests, and dpsql writes nothing. So here the
owner carries out what is not a query, and declares every table public; a connection is opened again, under the
hood, once the tables have changed.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import duckdb
from sqlalchemy.sql.compiler import DDLCompiler

import dpsql
from dpsql.dbapi.connection import Connection, Schema
from dpsql.dbapi.sqlalchemy_dialect import DpsqlDialect
from dpsql.engine import Session
from dpsql.engine.dataset import open_ledger
from dpsql.policy import load_policy
from dpsql.policy.section import quote_key

__all__ = ["OwnerDialect"]

_HEAD = """
database = "duckdb:none.duckdb"
ledger = "sqlite:suite.db"
dataset = "suite"
[privacy]
epsilon = 1
[tables."people.person"]
unit = "id"
"""
_WRITES = re.compile(r"\s*(create|drop|alter|insert|update|delete|truncate|comment)\b", re.IGNORECASE)
_CHANGES = re.compile(r"\s*(create|drop|alter)\b", re.IGNORECASE)
_QUERY = "SELECT schema_name, table_name FROM duckdb_tables() WHERE NOT internal AND schema_name <> 'people' ORDER BY ALL"


class Owner:
    """One database in memory; `version` moves with every change of its tables."""

    def __init__(self) -> None:
        self.database = duckdb.connect()
        self.database.execute("CREATE SCHEMA test_schema; CREATE SCHEMA people")
        self.database.execute("CREATE TABLE people.person (id INTEGER PRIMARY KEY)")
        self.version = 0
        self._declared: list[tuple[str, str]] = []

    def write(self, statement: str, parameters: tuple[Any, ...]) -> None:
        """Carry out what is not a query."""
        self.database.execute(statement, list(parameters))
        if _CHANGES.match(statement):
            self.version += 1

    def declare(self, path: Path) -> None:
        """Write the policy anew: every table public, but for the one of people."""
        found = self.database.execute(_QUERY).fetchall()
        names = [
            name if schema == "main" else f"{schema}.{name}" for schema, name in found if name != "person"
        ]
        tables = "".join(f"[tables.{quote_key(name)}]\npublic = true\n" for name in names)
        path.write_text(_HEAD + tables)
        if not self._declared:
            open_ledger(load_policy(path), create=True).close()
        self._declared = found


OWNER = Owner()


class FreshConnection(Connection):
    """A connection whose session is opened again once the owner has changed a table."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._version = -1
        super().__init__(self._session)

    @property
    def _session(self) -> Session:
        if self._version != OWNER.version:
            self._version = OWNER.version
            OWNER.declare(self._path)
            self._fresh = dpsql.connect(self._path, connection=OWNER.database)._session
            self._schema = Schema(self._fresh)
        return self._fresh

    @_session.setter
    def _session(self, session: Session) -> None:
        self._fresh = session


class OwnerDDLCompiler(DDLCompiler):
    """Leaves foreign keys out: DuckDB deletes no row of a table that refers to itself."""

    def visit_foreign_key_constraint(self, constraint: Any, **options: Any) -> Any:
        """Write nothing."""
        return None


class OwnerDialect(DpsqlDialect):
    """The dialect under test, with an owner behind it who carries out what is written."""

    supports_statement_cache = True
    ddl_compiler = OwnerDDLCompiler

    def connect(self, *arguments: Any, **options: Any) -> Any:
        """Open a connection to the suite's database."""
        return FreshConnection(Path(arguments[0]))

    def do_execute(self, cursor: Any, statement: str, parameters: Any, context: Any = None) -> None:
        """Run a query through dpsql; hand anything else to the owner."""
        if not _WRITES.match(statement):
            super().do_execute(cursor, statement, parameters, context)
            return
        OWNER.write(statement, parameters)
        cursor.execute("SET dpsql.reuse = on")

    def do_execute_no_params(self, cursor: Any, statement: str, context: Any = None) -> None:
        """Likewise."""
        self.do_execute(cursor, statement, (), context)

    def get_columns(self, *arguments: Any, **options: Any) -> Any:
        """Leave the comments out: the suite expects those of its own DDL, and ours come from the policy."""
        columns = [dict(column) for column in super().get_columns(*arguments, **options)]
        for column in columns:
            del column["comment"]
        return columns

    def do_executemany(self, cursor: Any, statement: str, parameters: Any, context: Any = None) -> None:
        """Hand each set of parameters to the owner; a query is refused."""
        if not _WRITES.match(statement):
            super().do_executemany(cursor, statement, parameters, context)
            return
        for values in parameters:
            self.do_execute(cursor, statement, values, context)
