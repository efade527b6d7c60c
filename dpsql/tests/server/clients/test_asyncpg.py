"""asyncpg: types asked of the server, everything in binary, prepared and cached; pools and their reset."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from decimal import Decimal
from typing import Any

import pytest

from ..conftest import PASSWORD, Served
from .conftest import ROWS, SLOW, THING, VALUES, needs_openssl

asyncpg = pytest.importorskip("asyncpg")


def address(served: Served) -> dict[str, Any]:
    return {
        "host": "127.0.0.1",
        "port": served.port,
        "user": "alice",
        "password": PASSWORD,
        "database": "people",
    }


@asynccontextmanager
async def connected(served: Served, **options: Any) -> AsyncIterator[Any]:
    connection = await asyncpg.connect(**{**address(served), "ssl": False, **options})
    yield connection
    await connection.close()


def run(served: Served, body: Callable[[Any], Awaitable[None]], **options: Any) -> None:
    """Run a test's body on a connection of its own."""

    async def whole() -> None:
        async with connected(served, **options) as connection:
            await body(connection)

    asyncio.run(whole())


def test_every_type_there_and_back(served: Served) -> None:
    async def body(connection: Any) -> None:
        rows = await connection.fetch("SELECT * FROM thing ORDER BY id")
        assert [tuple(row) for row in rows] == [THING, (2, *[None] * 10)]
        for name, value in VALUES.items():
            sql = f"SELECT id FROM thing WHERE {name} = $1"
            assert await connection.fetchval(sql, value) == 1, name
            assert await connection.fetch(sql, None) == []
        assert await connection.fetchval("SELECT $1::integer + 1", 3) == 4
        assert len(await connection.fetch("SELECT i FROM number ORDER BY i LIMIT $1 OFFSET $2", 2, 3)) == 2

    run(served, body)


def test_preparing_never_spends(served: Served, spent: Callable[[], Decimal]) -> None:
    async def body(connection: Any) -> None:
        prepared = await connection.prepare(
            "SELECT city, COUNT(*) AS n FROM person WHERE age > $1 AND born < $2 AND income > $3 GROUP BY city"
        )
        assert [one.name for one in prepared.get_parameters()] == ["int4", "date", "numeric"]
        assert [(one.name, one.type.name) for one in prepared.get_attributes()] == [
            ("city", "text"),
            ("n", "int8"),
        ]
        assert spent() == 0
        values = (23, THING[9], Decimal("1.5"))
        first = await prepared.fetch(*values)
        assert await prepared.fetch(*values) == first
        assert spent() == Decimal("0.1")

    run(served, body)


def test_a_cursor_in_parts(served: Served) -> None:
    async def body(connection: Any) -> None:
        async with connection.transaction(isolation="serializable", readonly=True, deferrable=True):
            found = [
                row[0] async for row in connection.cursor("SELECT i FROM number ORDER BY i", prefetch=3000)
            ]
        assert found == list(range(ROWS))

    run(served, body)


def test_an_error_inside_a_savepoint(served: Served) -> None:
    async def body(connection: Any) -> None:
        async with connection.transaction():
            with pytest.raises(asyncpg.UndefinedColumnError) as caught:
                async with connection.transaction():
                    await connection.fetch("SELECT nosuch FROM person")
            assert (caught.value.sqlstate, caught.value.position) == ("42703", "8")
            assert await connection.fetchval("SELECT 1") == 1

    run(served, body)


def test_a_refusal_is_no_unknown_error(served: Served) -> None:
    refused = {
        "SELECT age FROM person": asyncpg.InsufficientPrivilegeError,
        "SELECT SUM(id) FROM person": asyncpg.FeatureNotSupportedError,
        "SET dpsql.accuracy = -1": asyncpg.InvalidParameterValueError,
    }

    async def body(connection: Any) -> None:
        for sql, kind in refused.items():
            with pytest.raises(kind) as caught:
                await connection.fetch(sql)
            assert caught.value.constraint_name.startswith("PV")
            assert caught.value.detail.startswith(caught.value.constraint_name)

    run(served, body)


def test_a_timeout_cancels(served: Served) -> None:
    async def body(connection: Any) -> None:
        with pytest.raises(TimeoutError):
            await connection.fetch(SLOW, timeout=0.3)
        assert await connection.fetchval("SELECT 1") == 1

    run(served, body)


def test_copy(served: Served) -> None:
    async def body(connection: Any) -> None:
        found = io.BytesIO()
        await connection.copy_from_table("thing", columns=["id"], output=found, format="csv", header=True)
        assert found.getvalue() == b"id\n1\n2\n"
        await connection.copy_from_query(
            "SELECT id FROM thing WHERE id > $1", 1, output=found, format="binary"
        )
        assert found.getvalue().count(b"PGCOPY") == 1

    run(served, body)


def test_codecs_and_notices(served: Served) -> None:
    async def body(connection: Any) -> None:
        told: list[str] = []
        connection.add_log_listener(lambda _, message: told.append(message.message))
        await connection.set_type_codec(
            "numeric", encoder=str, decoder=float, schema="pg_catalog", format="text"
        )
        assert isinstance(await connection.fetchval("SELECT AVG(income) FROM person"), float)
        await asyncio.sleep(0)
        assert len(told) == 1

    run(served, body)


def test_a_pool(served: Served) -> None:
    async def whole() -> None:
        settings = {"application_name": "x", "jit": "off", "statement_timeout": "60000"}
        async with asyncpg.create_pool(
            **address(served), ssl=False, min_size=2, max_size=3, server_settings=settings
        ) as pool:
            sql = "SELECT COUNT(*) FROM person WHERE age > $1"
            found = await asyncio.gather(*(pool.fetchval(sql, 24) for _ in range(10)))
            assert len(set(found)) == 1
            async with pool.acquire() as connection:
                await connection.execute("SET application_name = 'y'")
            assert await pool.fetchval("SELECT current_setting('application_name')") == "x"

    asyncio.run(whole())


def test_without_a_cache_of_statements(served: Served) -> None:
    async def body(connection: Any) -> None:
        for _ in range(2):
            assert await connection.fetchval("SELECT id FROM thing WHERE day = $1", THING[9]) == 1

    run(served, body, statement_cache_size=0)


@needs_openssl
@pytest.mark.parametrize("direct", [False, True])
def test_over_tls(served: Served, direct: bool) -> None:
    async def body(connection: Any) -> None:
        assert await connection.fetchval("SELECT 1") == 1

    run(served, body, ssl="require", direct_tls=direct)
