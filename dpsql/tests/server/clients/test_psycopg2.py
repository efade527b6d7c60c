"""psycopg2: constants written into the text, named cursors, COPY, blocks, cancel."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from ..conftest import Served, cancelling
from .conftest import ROWS, SLOW, THING, VALUES, needs_openssl

psycopg2 = pytest.importorskip("psycopg2")
pytest.importorskip("psycopg2.extras")


@pytest.fixture
def connection(served: Served) -> Iterator[Any]:
    found = psycopg2.connect(**served.address())
    yield found
    found.close()


def test_every_type_there_and_back(connection: Any) -> None:
    cursor = connection.cursor()
    cursor.execute("SELECT * FROM thing ORDER BY id")
    assert cursor.fetchall() == [THING, (2, *[None] * 10)]
    for name, value in VALUES.items():
        cursor.execute(f"SELECT id FROM thing WHERE {name} = %s", [value])
        assert cursor.fetchall() == [(1,)], name
        cursor.execute(f"SELECT id FROM thing WHERE {name} = %(v)s", {"v": None})
        assert cursor.fetchall() == []
    cursor.execute("SELECT COUNT(*) FROM person WHERE city IN %s", [("north", "south")])
    assert cursor.fetchone()[0] > 1500


def test_a_moment_with_its_zone(connection: Any) -> None:
    cursor = connection.cursor()
    cursor.execute("SELECT id FROM thing WHERE moment = %s", [datetime(2020, 2, 29, 12, 30, 0, 1, UTC)])
    assert cursor.fetchall() == [(1,)]


def test_a_named_cursor_in_parts(connection: Any) -> None:
    with connection, connection.cursor("c", scrollable=True) as cursor:
        cursor.itersize = 3000
        cursor.execute("SELECT i FROM number ORDER BY i")
        assert sum(1 for _ in cursor) == ROWS
        cursor.scroll(5, mode="absolute")
        assert cursor.fetchone() == (5,)


def test_repeated_is_free_with_a_notice(connection: Any, spent: Callable[[], Decimal]) -> None:
    cursor = connection.cursor()
    for _ in range(2):
        cursor.execute("SELECT COUNT(*) FROM person WHERE age > %s", (22,))
        cursor.fetchall()
    assert spent() == Decimal("0.1")
    assert [note.strip().split(";")[0] for note in connection.notices] == [
        "NOTICE:  charged epsilon 0.1",
        "NOTICE:  free: answered before",
    ]


def test_an_error_and_a_savepoint(connection: Any) -> None:
    cursor = connection.cursor()
    cursor.execute("SAVEPOINT a")
    with pytest.raises(psycopg2.Error) as caught:
        cursor.execute("SELECT age FROM person")
    assert isinstance(caught.value, psycopg2.errors.InsufficientPrivilege)
    assert (caught.value.diag.constraint_name, caught.value.diag.statement_position) == ("PV002", "8")
    cursor.execute("ROLLBACK TO SAVEPOINT a")
    cursor.execute("SELECT 1")
    connection.rollback()
    connection.set_session(isolation_level="SERIALIZABLE", readonly=True, deferrable=True)
    cursor.execute("SELECT 1")
    connection.commit()
    connection.reset()


def test_copy_to_a_file(connection: Any) -> None:
    text = io.StringIO()
    connection.cursor().copy_expert(
        "COPY (SELECT id, name FROM thing ORDER BY id) TO STDOUT WITH CSV HEADER", text
    )
    assert text.getvalue() == "id,name\n1,ä 'quoted'\n2,\n"


def test_cancel(connection: Any) -> None:
    with cancelling(connection.cancel), pytest.raises(psycopg2.extensions.QueryCanceledError):
        connection.cursor().execute(SLOW)
    connection.rollback()
    connection.cursor().execute("SELECT 1")


@needs_openssl
def test_over_tls(served: Served) -> None:
    connection = psycopg2.connect(**served.address(sslmode="require"))
    assert connection.info.ssl_in_use
    connection.close()
