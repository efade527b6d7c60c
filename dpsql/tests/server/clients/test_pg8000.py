"""pg8000: a driver without libpq, parameters in text, statements prepared each time."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from ..conftest import PASSWORD, Served
from .conftest import ROWS, THING, VALUES, needs_openssl

native = pytest.importorskip("pg8000.native")
dbapi = pytest.importorskip("pg8000.dbapi")


def address(served: Served) -> dict[str, Any]:
    return {
        "host": "127.0.0.1",
        "port": served.port,
        "user": "alice",
        "password": PASSWORD,
        "database": "people",
    }


@pytest.fixture
def connection(served: Served) -> Iterator[Any]:
    found = native.Connection(**address(served), ssl_context=False)
    yield found
    found.close()


def test_every_type_there_and_back(connection: Any) -> None:
    assert connection.run("SELECT * FROM thing ORDER BY id") == [list(THING), [2, *[None] * 10]]
    for name, value in VALUES.items():
        assert connection.run(f"SELECT id FROM thing WHERE {name} = :v", v=value) == [[1]], name
        assert connection.run(f"SELECT id FROM thing WHERE {name} = :v", v=None) == []
    moment = datetime(2020, 2, 29, 12, 30, 0, 1, UTC)
    assert connection.run("SELECT id FROM thing WHERE moment = :v", v=moment) == [[1]]
    assert connection.run("SELECT CAST(:v AS integer) + 1", v=5) == [[6]]


def test_prepared_and_repeated(connection: Any, spent: Callable[[], Decimal]) -> None:
    prepared = connection.prepare("SELECT COUNT(*) FROM person WHERE age > :v AND city = :c")
    assert spent() == 0
    first = prepared.run(v=25, c="north")
    assert prepared.run(v=25, c="north") == first
    prepared.close()
    assert spent() == Decimal("0.1")
    assert [notice[b"M"].split(b";")[0] for notice in connection.notices] == [
        b"charged epsilon 0.1",
        b"free: answered before",
    ]


def test_a_block_and_an_error(connection: Any) -> None:
    connection.run("START TRANSACTION")
    connection.run("SAVEPOINT a")
    with pytest.raises(native.DatabaseError) as caught:
        connection.run("SELECT age FROM person")
    assert {"C": "42501", "n": "PV002", "P": "8"}.items() <= caught.value.args[0].items()
    connection.run("ROLLBACK TO SAVEPOINT a")
    assert connection.run("SELECT 1; SELECT 2")[-1] == [2]
    connection.run("COMMIT")


def test_copy(connection: Any) -> None:
    text = io.StringIO()
    connection.run("COPY (SELECT id FROM thing ORDER BY id) TO STDOUT WITH (FORMAT csv)", stream=text)
    assert text.getvalue() == "1\n2\n"


def test_by_pep_249(served: Served) -> None:
    connection = dbapi.connect(**address(served), ssl_context=False)
    cursor = connection.cursor()
    cursor.execute("SELECT i FROM number WHERE i >= %s", (0,))
    assert len(cursor.fetchall()) == ROWS
    cursor.execute("SELECT city, COUNT(*) AS n FROM person WHERE born < %s GROUP BY city", (THING[9],))
    assert [column[0] for column in cursor.description] == ["city", "n"]
    connection.rollback()
    connection.close()


@needs_openssl
def test_over_tls(served: Served) -> None:
    connection = native.Connection(**address(served), ssl_context=True)
    assert connection.run("SELECT 1") == [[1]]
    connection.close()
