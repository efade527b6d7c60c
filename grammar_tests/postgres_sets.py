"""The policies' databases in Postgres: the wild data in schema `public`, each neighbour in a schema beside it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg
from datasets import CountingBackend, DataSets, PolicyData, PolicyFiles, owner_of
from replay import Run

from dpsql import Session
from dpsql.backends import PostgresBackend, Snapshot
from dpsql.policy import Policy
from dpsql.tests.support.postgres_copy import copy_rows, copy_schema
from dpsql.tests.support.postgres_server import PostgresServer
from dpsql.tests.support.postgres_twin import READER, let_read

__all__ = ["PostgresData", "PostgresSets"]

Owner = psycopg.Connection[Any]


class PostgresData:
    """One policy's database on a server; `backend` connects as a role that can only read, and so does `tame`."""

    def __init__(self, server: PostgresServer, policy: Policy, source: PolicyData | PolicyFiles) -> None:
        self.policy = policy
        self._server = server
        self._backends: list[PostgresBackend] = []
        database = server.create_database()
        with server.admin(database) as owner:
            made = _copied(owner, source) if isinstance(source, PolicyData) else _loaded(owner, source)
            self.neighbours = tuple(schema for schema in made if schema.startswith("neighbour"))
            for schema in made:
                let_read(owner, schema)
            owner.execute("ANALYZE")
        self.backend = self._backend(database)
        self.tame_database: str | None = None
        if isinstance(source, PolicyFiles) and source.tame_rows is not None:
            self.tame_database = server.create_database()
            with server.admin(self.tame_database) as owner:
                _run(owner, source.schema + source.tame_rows)
                let_read(owner, "public")
            self.tame = self._backend(self.tame_database)

    def _backend(self, database: str) -> PostgresBackend:
        self._backends.append(PostgresBackend(self._server.url(database, READER), self.policy.read_from))
        return self._backends[-1]

    @contextmanager
    def runs(self) -> Iterator[dict[str, Run]]:
        """Give, for each schema, what runs SQL on its tables; all in one snapshot."""
        with self.backend.snapshot() as snapshot:
            yield {schema: _run_in(snapshot, schema) for schema in ("public", "owned", *self.neighbours)}

    def oracle(self, sql: str) -> list[tuple[Any, ...]]:
        """Return what Postgres itself says to a statement on the tame data."""
        assert self.tame_database is not None
        with self._server.admin(self.tame_database) as connection:
            connection.execute("SET TimeZone = 'UTC'")
            return psycopg.RawCursor(connection).execute(sql.encode()).fetchall()

    def close(self) -> None:
        """Let the connections go."""
        for backend in self._backends:
            assert backend.close_idle()


def _copied(owner: Owner, source: PolicyData) -> list[str]:
    """Copy the databases that DuckDB has of a policy; return the schemas."""
    sources = {"public": source.wild, "owned": source.owned}
    sources |= {f"neighbour{number}": one for number, one in enumerate(source.neighbours)}
    for schema, connection in sources.items():
        _run(owner, f"CREATE SCHEMA IF NOT EXISTS {schema}")
        copy_schema(connection, owner, schema)
        copy_rows(connection, owner, schema)
    for view in re.findall(r"CREATE VIEW [^;]*;", source.schema):
        _run(owner, view)
    return list(sources)


def _loaded(owner: Owner, files: PolicyFiles) -> list[str]:
    """Load a policy's own SQL, once for each neighbour, which loses a unit; return the schemas.

    The rows of a neighbour are stored in reverse order.
    """
    policy = files.policy
    root = policy.tables[policy.root].unit
    assert root is not None
    _run(owner, files.schema + files.rows)
    units = [unit for (unit,) in _run(owner, f'SELECT "{root.columns[0]}" FROM "{policy.root}"').fetchall()]
    changed = {"owned": None, **{f"neighbour{number}": unit for number, unit in enumerate(units)}}
    _run(owner, "SET session_replication_role = replica")  # No foreign key is looked at.
    for schema, unit in changed.items():
        _run(owner, f"CREATE SCHEMA {schema}; SET search_path = {schema}; {files.schema + files.rows}")
        owned = {table: sql for table in policy.tables if (sql := owner_of(policy, schema, table, "own"))}
        for table, sql in owned.items():
            kept = (
                f'SELECT * FROM "{table}" AS own WHERE {sql} IS DISTINCT FROM %s ORDER BY tableoid, ctid DESC'
            )
            owner.execute(f'CREATE TEMPORARY TABLE "kept {table}" AS {kept}'.encode(), [unit])
        for table in owned:
            _run(owner, f'DELETE FROM "{table}"; INSERT INTO "{table}" SELECT * FROM "kept {table}"')
            _run(owner, f'DROP TABLE "kept {table}"')
    return ["public", *changed]


def _run(owner: Owner, sql: str) -> psycopg.Cursor[Any]:
    return owner.execute(sql.encode())


def _run_in(snapshot: Snapshot, schema: str) -> Run:
    def run(sql: str, parameters: Sequence[object]) -> Iterator[tuple[Any, ...]]:
        for chunk in snapshot.run(sql.replace('"public".', f'"{schema}".'), parameters):
            yield from chunk

    return run


class PostgresSets:
    """Opens each policy's database on a server once."""

    def __init__(self, server: PostgresServer, data: DataSets) -> None:
        self._server, self._data = server, data
        self._known: dict[str, PostgresData] = {}
        self._asked: dict[tuple[str, str], tuple[Session, CountingBackend]] = {}

    def of(self, name: str) -> PostgresData:
        """Return a policy's database: loaded from its files, or a copy of what DuckDB has."""
        if name not in self._known:
            files = self._data.files(name)
            source = files if files.policy.database.startswith("postgresql:") else self._data.of(name)
            self._known[name] = PostgresData(self._server, files.policy, source)
        return self._known[name]

    def refusing(self, name: str, analyst: str) -> tuple[Session, CountingBackend]:
        """Return a session that many refused statements share: they leave no trace."""
        if (name, analyst) not in self._asked:
            data = self.of(name)
            self._asked[name, analyst] = self._data.session(data.policy, data.backend, analyst, stays=True)
        return self._asked[name, analyst]

    def close(self) -> None:
        """Let every connection go."""
        for data in self._known.values():
            data.close()
