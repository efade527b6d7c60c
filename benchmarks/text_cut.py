"""What it costs to cut texts where they are carried: a printed cut beside the bare column, in the same engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any

import duckdb

from benchmarks.figure import Figure, Size, Times, compare
from dpsql.plan.dialects.dialect import Dialect
from dpsql.plan.dialects.dialect_duckdb import DuckDBDialect
from dpsql.plan.dialects.dialect_postgres import PostgresDialect
from dpsql.tests.support.postgres_server import PostgresServer, find_servers

__all__ = ["measure"]

_TEXTS = {
    "short": "'label ' || lpad(CAST(i % 1000 AS varchar), 4, '0')",
    "accented": "'étage ' || lpad(CAST(i % 1000 AS varchar), 4, '0')",
    "200 signs": "repeat('abcd ', 39) || lpad(CAST(i % 1000 AS varchar), 5, '0')",
    "4,000 signs, cut": "repeat('abcd ', 799) || lpad(CAST(i % 1000 AS varchar), 5, '0')",
}
"""Each text has a thousand values; of the last one all are alike up to the cut."""
_MADE = {"duckdb": "range({rows}) AS t(i)", "postgres": "generate_series(0, {rows} - 1) AS t(i)"}
_STATEMENTS = {
    "GROUP BY": "SELECT {x} AS k, COUNT(*) FROM {table} GROUP BY 1",
    "MAX": "SELECT MAX({x}) FROM {table}",
}
_MOST_SIGNS = 1000
"""`max_length` where none is declared."""
_LIMIT = 1.2


def measure(size: Size) -> Iterator[Figure]:
    """Yield, for each engine, text and statement, the ratio of the printed cut's time to the bare column's.

    The time of `left` alone, which would be the plain way to print it, stands beside. Limit: what the printed form was
    chosen for, for texts that are not cut.
    """
    with ExitStack() as opened:
        connection = opened.enter_context(duckdb.connect())
        yield from _of_engine("duckdb", DuckDBDialect.of(None), partial(_all_of, connection), size)
        server = opened.enter_context(PostgresServer(find_servers()[-1], settings={"max_wal_size": "8GB"}))
        admin = opened.enter_context(server.admin())
        yield from _of_engine("postgres", PostgresDialect.of(None), partial(_all_of, admin), size)


def _of_engine(engine: str, dialect: Dialect, run: Callable[[str], None], size: Size) -> Iterator[Figure]:
    for number, (name, text) in enumerate(_TEXTS.items()):
        rows = size.rows // (100 if "cut" in name else 5)
        run(f"CREATE TABLE texts{number} AS SELECT {text} AS x FROM {_MADE[engine].format(rows=rows)}")
        ways = {"bare": "x", "cut": dialect.cut("x", _MOST_SIGNS), "left": f"left(x, {_MOST_SIGNS})"}
        for statement, sql in _STATEMENTS.items():
            asked = {
                way: partial(Times.of, partial(run, sql.format(x=x, table=f"texts{number}")))
                for way, x in ways.items()
            }
            for ask in asked.values():
                ask()
            found = compare(asked["bare"], asked["cut"], size.repeats, lambda times: times.wall)
            left = compare(asked["bare"], asked["left"], size.repeats, lambda times: times.wall)
            limit = None if "cut" in name else _LIMIT
            where = (
                f"{found.raw.wall:.0f} ms bare, {found.ours.wall:.0f} ms cut; left alone {left.ratio:.2f} x"
            )
            yield Figure(f"{engine}, {statement}, {name}", found.ratio, limit, "x", where)
        run(f"DROP TABLE texts{number}")


def _all_of(connection: Any, sql: str) -> None:
    result = connection.execute(sql)
    if sql.startswith("SELECT"):
        result.fetchall()
