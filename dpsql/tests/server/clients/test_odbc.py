"""ODBC: Debian's driver by way of pyodbc, where both are there; what tools on Windows ask goes this way."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from ..conftest import PASSWORD, Served
from .conftest import ROWS, THING, VALUES

pyodbc: Any = pytest.importorskip("pyodbc")
_DRIVER = next(Path("/usr/lib").glob("*/odbc/psqlodbcw.so"), None)
pytestmark = pytest.mark.skipif(_DRIVER is None, reason="needs Debian's odbc-postgresql")


@pytest.mark.parametrize(
    "options", ["", "UseDeclareFetch=1;Fetch=1000;", "UseServerSidePrepare=0;", "Protocol=7.4-1;"]
)
def test_odbc(served: Served, spent: Callable[[], Decimal], options: str) -> None:
    place = f"DRIVER={_DRIVER};SERVER=127.0.0.1;PORT={served.port};DATABASE=people;UID=alice;PWD={PASSWORD};"
    connection = pyodbc.connect(place + "BoolsAsChar=0;" + options, autocommit=not options.startswith("Use"))
    cursor = connection.cursor()
    assert tuple(cursor.execute("SELECT * FROM thing ORDER BY id").fetchone()) == THING
    for name, value in VALUES.items():
        found = cursor.execute(f"SELECT id FROM thing WHERE {name} = ?", value).fetchall()
        assert [tuple(row) for row in found] == [(1,)], name
    sql = "SELECT COUNT(*) FROM person WHERE age > ? AND city = ?"
    first = cursor.execute(sql, 74, "north").fetchone()
    assert cursor.execute(sql, 74, "north").fetchone() == first
    assert len(cursor.execute("SELECT i FROM number").fetchall()) == ROWS
    assert {row.table_name for row in cursor.tables()} >= {"person", "loan", "number", "thing"}
    assert [row.column_name for row in cursor.columns(table="person")][:2] == ["id", "age"]
    assert [row.column_name for row in cursor.primaryKeys(table="person")] == ["id"]
    assert [row.fkcolumn_name for row in cursor.foreignKeys(foreignTable="loan")] == ["person_id"]
    for many in (cursor.statistics, cursor.rowIdColumns, cursor.rowVerColumns):
        many(table="person").fetchall()
    assert cursor.getTypeInfo().fetchall()
    with pytest.raises(pyodbc.Error) as caught:
        cursor.execute("SELECT age FROM person")
    assert caught.value.args[0] == "42501"
    connection.rollback()
    assert cursor.execute("SELECT 1").fetchval() == 1
    connection.close()
    assert spent() <= Decimal("0.1")
