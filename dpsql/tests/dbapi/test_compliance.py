"""The public compliance suite of PEP 249 (`dbapi20`), over a public table.

dpsql writes nothing, and the suite makes its tables and rows through the cursor it tests. So here the tables
are there before the connection is made, "create table" is a statement without a result (a SET) on the cursor
under test, and "insert" goes to the owner's own DuckDB connection, by way of our reading of placeholders. All
that is read comes through dpsql.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import dbapi20
import duckdb
import pytest

import dpsql
from dpsql.dbapi.connection import Connection, Cursor
from dpsql.dbapi.placeholders import collected, read_statement
from dpsql.engine.dataset import open_ledger
from dpsql.policy import load_policy

POLICY = """
database = "duckdb:none.duckdb"
ledger = "sqlite:suite.db"
[privacy]
epsilon = 1
[tables.person]
unit = "id"
[tables.dbapi20test_booze]
public = true
[tables.dbapi20test_barflys]
public = true
"""


class WritingCursor(Cursor):
    """A cursor whose INSERTs the owner carries out."""

    owner: duckdb.DuckDBPyConnection

    def execute(self, operation: str, parameters: Any = None) -> Cursor:
        if not operation.startswith("insert"):
            return super().execute(operation, parameters)
        given = collected(parameters)
        statement = read_statement(operation, given)
        self.owner.execute(statement.text, list(statement.bind(given)))
        return super().execute("SET dpsql.reuse = on")

    def executemany(self, operation: str, seq_of_parameters: Any) -> Cursor:
        for parameters in seq_of_parameters:
            self.execute(operation, parameters)
        return self


class TestCompliance(dbapi20.DatabaseAPI20Test):
    """Each test that is replaced or skipped says why."""

    driver = dpsql

    def setUp(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        path = Path(self.folder.name) / "suite.toml"
        path.write_text(POLICY)
        open_ledger(load_policy(path), create=True).close()
        self.owner = duckdb.connect()
        self.owner.execute("CREATE TABLE person (id INTEGER PRIMARY KEY)")
        self.owner.execute(self.ddl1)
        self.owner.execute(self.ddl2)
        self.connect_args, self.connect_kw_args = (path,), {"connection": self.owner}
        self.opened: list[Connection] = []

    def tearDown(self) -> None:
        for connection in self.opened:
            connection.close()
        self.owner.close()
        self.folder.cleanup()

    def _connect(self) -> Connection:
        connection: Connection = super()._connect()
        self.opened.append(connection)

        def cursor() -> Cursor:
            writing = WritingCursor(connection)
            writing.owner = self.owner
            return writing

        connection.cursor = cursor  # type: ignore[method-assign]  # a cursor of the test's
        return connection

    def executeDDL1(self, cursor: Cursor) -> None:
        cursor.execute("SET dpsql.reuse = on")

    executeDDL2 = executeDDL1

    @pytest.mark.skip(
        reason="never: closing twice is harmless, so that `with` may follow close, as in other drivers"
    )
    def test_non_idempotent_close(self) -> None: ...

    def test_nextset(self) -> None:
        """Replaced, as the suite asks: there are no procedures, and `executemany` gives several results."""
        cursor = Connection.cursor(self._connect()).executemany("SELECT ?", [(1,), (2,)])
        assert cursor.fetchall() == [(1,)]
        assert cursor.nextset()
        assert cursor.fetchall() == [(2,)]
        assert cursor.nextset() is None

    def test_setoutputsize(self) -> None:
        """Replaced, as the suite asks: it does nothing, and nothing is cut."""
        cursor = self._connect().cursor()
        cursor.setoutputsize(1)
        assert cursor.execute("SELECT 'whole'").fetchone() == ("whole",)


def test_the_suite_is_all_there() -> None:
    """`test_callproc` passes because there is no such method, which PEP 249 allows."""
    assert not hasattr(Cursor, "callproc")
    tests = [name for name in dir(TestCompliance) if name.startswith("test_")]
    assert len(tests) >= 35
