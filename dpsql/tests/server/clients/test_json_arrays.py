"""JSON and arrays of released and public values, as each driver and psql read them."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import psycopg
import pytest

from ..conftest import PASSWORD, Served, needs_psql
from .test_asyncpg import connected

SQL = (
    "SELECT json_build_object('a', 1, 'b', ARRAY['x', NULL]) AS j, to_jsonb(ARRAY[1, 2]) AS b, "
    "ARRAY['x,y', NULL, '', 'q\"'] AS t, ARRAY[1.5, 2.25] AS n, array_agg(i ORDER BY i) AS i, ARRAY[true] AS f, "
    "ARRAY[date '2024-02-29'] AS d, ARRAY[to_jsonb(1)] AS bs, json_agg(i ORDER BY i) FILTER (WHERE i > 3) AS none "
    "FROM number WHERE i < 3"
)
OIDS = [114, 3802, 1009, 1231, 1016, 1000, 1182, 3807, 114]
JSON = {"a": 1, "b": ["x", None]}
TEXTS = ["x,y", None, "", 'q"']


@pytest.mark.parametrize("binary", [False, True])
def test_psycopg(served: Served, binary: bool) -> None:
    address = {
        "host": "127.0.0.1",
        "port": served.port,
        "user": "alice",
        "password": PASSWORD,
        "dbname": "people",
    }
    with psycopg.connect(**address, autocommit=True) as connection:  # type: ignore[arg-type]
        cursor = connection.execute(SQL, binary=binary)
        assert [column.type_code for column in cursor.description or ()] == OIDS
        row: Any = cursor.fetchone()
        assert row[:3] == (JSON, [1, 2], TEXTS)
        assert [float(one) for one in row[3]] == [1.5, 2.25]
        assert row[4:6] == ([0, 1, 2], [True])
        assert [str(one) for one in row[6]] == ["2024-02-29"]
        assert row[7:] == ([1], None)
        assert connection.execute("SELECT %s::jsonb ->> 'a'", ['{"a": "x"}']).fetchone() == ("x",)


def test_asyncpg(served: Served) -> None:
    async def body() -> None:
        async with connected(served) as connection:
            row = await connection.fetchrow(SQL)
            assert json.loads(row["j"]) == JSON
            assert row["b"] == "[1, 2]"
            assert row["t"] == TEXTS
            assert (row["i"], row["f"], row["bs"], row["none"]) == ([0, 1, 2], [True], ["1"], None)

    asyncio.run(body())


def test_pg8000(served: Served) -> None:
    native = pytest.importorskip("pg8000.native")
    connection = native.Connection(
        host="127.0.0.1",
        port=served.port,
        user="alice",
        password=PASSWORD,
        database="people",
        ssl_context=False,
    )
    try:
        ((found, numbers, texts, *_),) = connection.run(SQL)
    finally:
        connection.close()
    assert (found, numbers, texts) == (JSON, [1, 2], TEXTS)


@needs_psql
def test_psql(served: Served) -> None:
    shown = served.psql(SQL + " \\gdesc\n")
    for type_ in ("json", "jsonb", "text[]", "numeric[]", "bigint[]", "boolean[]", "date[]", "jsonb[]"):
        assert f"| {type_}\n" in shown.replace(" \n", "\n"), type_
    assert '{"a" : 1, "b" : ["x",null]}' in served.psql(SQL + ";\n")
