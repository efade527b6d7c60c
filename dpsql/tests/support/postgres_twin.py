"""A DuckDB database and its copy in Postgres, behind a role that can only read."""

from __future__ import annotations

from collections.abc import Collection
from types import TracebackType
from typing import Any, Self

import duckdb
import psycopg
from psycopg import sql

from ...backends import PostgresBackend
from .postgres_copy import copy_rows, copy_schema, tables_of
from .postgres_server import PostgresServer

__all__ = ["READER", "PostgresTwin", "let_read"]

READER = "reader"
"""The role that a twin's backend connects as."""


class PostgresTwin:
    """A database of its own on `server`, with the tables of `source`; it is dropped when the `with` block ends."""

    def __init__(self, server: PostgresServer, source: duckdb.DuckDBPyConnection, views: str = "") -> None:
        """`views`: SQL that makes views over the tables, which the source has too."""
        self._server, self._source, self._views = server, source, views

    def __enter__(self) -> Self:
        self.database = self._server.create_database()
        self.owner: psycopg.Connection[Any] = self._server.admin(self.database)
        copy_schema(self._source, self.owner)
        if self._views:
            self.owner.execute(self._views.encode())
        self._tables = tables_of(self._source)
        let_read(self.owner, "public")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.owner.close()
        self._server.drop_database(self.database)

    def refresh(self) -> None:
        """Give the copy the rows that the source has now."""
        copy_rows(self._source, self.owner, tables=self._tables)

    def backend(self, tables: Collection[str] | None = None) -> PostgresBackend:
        """Return a backend that reads the copy; close it before the twin."""
        return PostgresBackend(self._server.url(self.database, READER), tables)


def let_read(owner: psycopg.Connection[Any], schema: str) -> None:
    """Let the role `READER`, which is made if there is none, read the tables of a schema, and do nothing else."""
    name, role = sql.Identifier(schema), sql.Identifier(READER)
    if not owner.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [READER]).fetchone():
        owner.execute(sql.SQL("CREATE ROLE {} LOGIN").format(role))
    owner.execute(sql.SQL("GRANT USAGE ON SCHEMA {} TO {}").format(name, role))
    owner.execute(sql.SQL("GRANT SELECT ON ALL TABLES IN SCHEMA {} TO {}").format(name, role))
