"""Sends the statements of a file through a Python driver, and prints a line for each: ok, or failed and why."""

from __future__ import annotations

import asyncio
import base64
import datetime
import re
import sys
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

DRIVER, PORT, WORD, FILE = sys.argv[1], int(sys.argv[2]), sys.argv[3], Path(sys.argv[4])
AT = {"host": "127.0.0.1", "port": PORT, "user": "alice", "password": WORD, "database": "people"}
_READ: dict[str, Callable[[str], Any]] = {
    "i": int, "n": Decimal, "s": str, "d": datetime.date.fromisoformat,
}  # fmt: skip


def statements() -> list[tuple[str, list[Any]]]:
    found = []
    for line in FILE.read_text().splitlines():
        sql, *values = line.split("\t")
        found.append((base64.b64decode(sql).decode(), [_READ[value[0]](value[2:]) for value in values]))
    return found


def told(ask: Callable[[], object]) -> None:
    try:
        ask()
        print("ok\t", flush=True)
    except Exception as error:  # noqa: BLE001  # each driver has its own
        print(f"failed\t{type(error).__name__} {error}".replace("\n", " ")[:200], flush=True)


def by_dbapi(connection: Any) -> None:
    connection.autocommit = True
    for sql, values in statements():
        text = re.sub(r"\$\d+", "%s", sql.replace("%", "%%")) if values else sql
        cursor = connection.cursor()

        def ask(cursor: Any = cursor, text: str = text, values: list[Any] = values) -> None:
            cursor.execute(text, tuple(values)) if values else cursor.execute(text)
            if cursor.description is not None:
                cursor.fetchall()

        told(ask)
        cursor.close()


def by_sqlalchemy(driver: str) -> None:
    import sqlalchemy

    place = f"postgresql+{driver}://alice:{WORD.replace(' ', '%20')}@127.0.0.1:{PORT}/people"

    def ask_all(connection: Any) -> None:
        for sql, values in statements():
            names = {f"p{number}": value for number, value in enumerate(values, 1)}
            text = re.sub(r"(?<![:\w]):(?=\w)", r"\\:", sql)
            text = re.sub(r"\$(\d+)", r":p\1", text)

            def ask(text: str = text, names: dict[str, Any] = names) -> None:
                found = connection.execute(sqlalchemy.text(text), names)
                if found.returns_rows:
                    found.fetchall()

            told(ask)

    async def ask_async() -> None:
        from sqlalchemy.ext.asyncio import create_async_engine

        engine = create_async_engine(place, isolation_level="AUTOCOMMIT")
        async with engine.connect() as connection:
            await connection.run_sync(ask_all)
        await engine.dispose()

    if driver == "asyncpg":
        asyncio.run(ask_async())
        return
    with sqlalchemy.create_engine(place, isolation_level="AUTOCOMMIT").connect() as connection:
        ask_all(connection)


async def by_asyncpg() -> None:
    import asyncpg

    connection = await asyncpg.connect(**AT)
    for sql, values in statements():
        try:
            await connection.fetch(sql, *values)
            print("ok\t", flush=True)
        except Exception as error:  # noqa: BLE001
            print(f"failed\t{type(error).__name__} {error}".replace("\n", " ")[:200], flush=True)
    await connection.close()


def main() -> None:
    if DRIVER.startswith("sqlalchemy "):
        by_sqlalchemy(DRIVER.removeprefix("sqlalchemy "))
    elif DRIVER == "asyncpg":
        asyncio.run(by_asyncpg())
    elif DRIVER == "psycopg3":
        import psycopg

        by_dbapi(
            psycopg.connect(
                f"host=127.0.0.1 port={PORT} user=alice dbname=people", password=WORD, autocommit=True
            )
        )
    elif DRIVER == "psycopg2":
        import psycopg2

        by_dbapi(psycopg2.connect(**AT))
    else:
        import pg8000.dbapi

        by_dbapi(pg8000.dbapi.connect(**AT))


main()
