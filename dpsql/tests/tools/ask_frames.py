"""What frames ask by several drivers, through themselves: run by `make tools` in an environment of its own.

Prints a line for each check: ok or failed, its name, and what came.
"""

from __future__ import annotations

import asyncio
import datetime
import sys
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import adbc_driver_postgresql.dbapi as adbc
import asyncpg
import connectorx
import pandas
import pg8000.dbapi
import polars
import psycopg
import psycopg2
import sqlalchemy
from sqlmesh import Config, Context
from sqlmesh.core.config import GatewayConfig
from sqlmesh.core.config.connection import DuckDBConnectionConfig, PostgresConnectionConfig

warnings.simplefilter("ignore")
PORT, WORD = int(sys.argv[1]), sys.argv[2]
AT = {"host": "127.0.0.1", "port": PORT, "user": "alice", "password": WORD, "database": "people"}
PLACE = f"alice:{WORD.replace(' ', '%20')}@127.0.0.1:{PORT}/people"
URL = f"postgresql://{PLACE}"
GROUPS = (
    "SELECT city, COUNT(*) AS n, AVG(income) AS a, SUM(height) AS s FROM person GROUP BY city ORDER BY city"
)
THING = "SELECT * FROM thing ORDER BY id"
NUMBERS = "SELECT i FROM number"
ASKED = {
    "groups": (GROUPS, 2),
    "values": (THING, 2),
    "rows": (NUMBERS, 20_000),
    "months": (
        "SELECT date_trunc('month', taken), COUNT(*) FROM loan WHERE taken < '2024-07-01' GROUP BY 1",
        6,
    ),
    "no rows": ("SELECT * FROM person LIMIT 5", 0),
}


def check(name: str, ask: Callable[[], Any]) -> None:
    try:
        print("ok", name, str(ask()).replace("\n", " ")[:60], sep="\t", flush=True)
    except Exception as error:  # noqa: BLE001  # each tool has its own
        said = f"{type(error).__name__} {error}".replace("\n", " ")[:400]
        print("failed", name, said, sep="\t", flush=True)


def same(rows: int, read: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    found = read(*arguments, **options)
    assert len(found) == rows, found
    return found


def by_pandas(driver: str) -> None:
    engine = sqlalchemy.create_engine(f"postgresql+{driver}://{PLACE}")
    for name, (sql, rows) in ASKED.items():
        check(f"pandas {driver} {name}", partial(same, rows, pandas.read_sql, sql, engine))
    sql, values = (
        sqlalchemy.text("SELECT id FROM thing WHERE day = :day"),
        {"day": datetime.date(2020, 2, 29)},
    )
    check(f"pandas {driver} parameters", partial(same, 1, pandas.read_sql, sql, engine, params=values))
    check(f"pandas {driver} table", partial(same, 2, pandas.read_sql_table, "thing", engine))

    def in_parts() -> int:
        with engine.connect().execution_options(stream_results=True) as connection:
            return sum(map(len, pandas.read_sql(NUMBERS, connection, chunksize=7000)))

    check(f"pandas {driver} chunks", in_parts)


def by_connections() -> None:
    plain = {key: AT[key] for key in ("host", "port", "user", "password")}
    for name, connect in (
        ("psycopg2", partial(psycopg2.connect, **plain, dbname="people")),
        ("psycopg", partial(psycopg.connect, **plain, dbname="people")),  # type: ignore[arg-type]
        ("pg8000", partial(pg8000.dbapi.connect, **AT)),
        ("adbc", partial(adbc.connect, URL)),
    ):
        check(f"pandas {name} itself", lambda c=connect: same(2, pandas.read_sql, GROUPS, c()))  # type: ignore[misc]


def by_polars() -> None:
    for engine in ("connectorx", "adbc"):
        for name, (sql, rows) in ASKED.items():
            check(
                f"polars {engine} {name}",
                partial(same, rows, polars.read_database_uri, sql, URL, engine=engine),
            )
    check("polars sqlalchemy", lambda: same(2, polars.read_database, GROUPS, sqlalchemy.create_engine(URL)))
    for protocol in ("binary", "csv", "cursor", "simple"):
        check(
            f"connectorx {protocol}",
            partial(same, 2, connectorx.read_sql, URL, GROUPS, protocol=protocol),
        )
    check(
        "connectorx parts",
        partial(same, 20_000, connectorx.read_sql, URL, NUMBERS, partition_on="i", partition_num=3),
    )


def by_adbc() -> None:
    with adbc.connect(URL) as connection, connection.cursor() as cursor:

        def arrow(sql: str, values: Any = None) -> Any:
            cursor.execute(sql, values)
            return cursor.fetch_arrow_table()

        check("adbc parameter", lambda: arrow("SELECT COUNT(*) FROM person WHERE age > $1", [30]).to_pydict())
        check("adbc table", lambda: connection.adbc_get_table_schema("person").names)
        check("adbc objects", lambda: connection.adbc_get_objects(depth="all").read_all().num_rows)
        check("adbc kinds", connection.adbc_get_table_types)
        check("adbc info", connection.adbc_get_info)


async def by_pool() -> Any:
    async with asyncpg.create_pool(**AT, min_size=2, max_size=2) as pool:
        await pool.fetch(THING)
        return await pool.fetch(GROUPS)


def by_sqlmesh() -> None:
    gateway = GatewayConfig(
        connection=PostgresConnectionConfig(**AT), state_connection=DuckDBConnectionConfig()
    )
    context = Context(config=Config(gateways={"people": gateway}, default_gateway="people"))
    check("sqlmesh frame", partial(same, 2, context.fetchdf, GROUPS))
    check("sqlmesh columns", lambda: same(7, context.engine_adapter.columns, "public.person"))
    check("sqlmesh exists", lambda: context.engine_adapter.table_exists("public.person"))
    check("sqlmesh objects", lambda: same(4, context.engine_adapter.get_data_objects, "public"))


for one in ("psycopg2", "psycopg", "pg8000"):
    by_pandas(one)
by_connections()
by_polars()
by_adbc()
check("asyncpg pool", lambda: asyncio.run(by_pool()))
by_sqlmesh()
