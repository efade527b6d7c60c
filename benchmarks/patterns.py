"""What a hostile pattern takes on one text of the length that texts are cut to: time that a person's row can make."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any

import duckdb
import psycopg

from benchmarks.figure import Figure, Size
from dpsql.errors import Refusal
from dpsql.plan.backend_sql.print_private import PrivatePrinter
from dpsql.plan.dialects.dialect import Dialect
from dpsql.plan.dialects.dialect_duckdb import DuckDBDialect
from dpsql.plan.dialects.dialect_postgres import PostgresDialect
from dpsql.relation.catalog import Column
from dpsql.relation.intervals import Environment
from dpsql.relation.types import TEXT
from dpsql.tests.sql.campus import expression
from dpsql.tests.support.postgres_server import PostgresServer, find_servers

__all__ = ["measure"]

_LIMIT = 50
"""Milliseconds of one text and one pattern."""
_SIGNS = 1000
"""`max_length` where none is declared."""
_REGULAR = (
    "(a|b)*c", "(x+x+)+y", "(a*)(a*)(a*)(a*)b", ".*.*.*.*.*.*!", "([a-z]|[0-9])*!", "(a|aa)+$", "(.*a){10}b",
    "(a?){20}a{20}", "((a{1,3}){1,3}){1,3}b", r"(\w+\s?)*!$", "^(a|ab|abc)*$", "(a+)+$", "([a-c]+)*d", "(a|a|a|a)*b",
    "[a-z]{1,60}!", "([a-z]{1,9}){1,9}!", "(.+)(.+)(.+)!", "(ab|ba)*!", "a.*b.*c.*d.*e.*!", "(a{0,30}b?){0,8}!",
    r"\s*\S+\s*\S+\s*!", "((((a*)*)*)*)*b", "^.*(a|b).*(a|b).*(a|b).*!$", "(aaaaaaaaaa|aaaaaaaaa)*b",
    "[^!]*[^!]*[^!]*[^!]*!",
)  # fmt: skip
_FORMS = (
    "name ~ '{}'",
    "name ~* '{}'",
    "substring(name FROM '{}') = ''",
    "regexp_replace(name, '{}', '', 'g') = ''",
)
_LIKE = ("%a%a%a%a%a%a%a%!", "%_%_%_%_%_%_%_%!", "a%b%a%b%a%b%a%!", "%aaaaaaaaab%aaaaaaaaab%")
_TEXTS = (
    "a" * _SIGNS, "x" * _SIGNS, "ä" * _SIGNS, "ab" * (_SIGNS // 2), "aab" * (_SIGNS // 3), "a " * (_SIGNS // 2),
    "abcde" * (_SIGNS // 5),
)  # fmt: skip


def measure(size: Size) -> Iterator[Figure]:
    """Yield the milliseconds of the slowest pattern and text of each engine, as they are printed for people's rows."""
    asked = [form.format(pattern) for form in _FORMS for pattern in _REGULAR]
    asked += [f"name {word} '{pattern}'" for word in ("LIKE", "ILIKE") for pattern in _LIKE]
    with ExitStack() as opened:
        ours = opened.enter_context(duckdb.connect(config={"threads": 1}))
        yield _of_engine("duckdb", DuckDBDialect.of(None), partial(_run, ours), asked, size.repeats)
        server = opened.enter_context(PostgresServer(find_servers()[-1]))
        theirs = psycopg.RawCursor(opened.enter_context(server.admin()))
        dialect = PostgresDialect("C")
        yield _of_engine("postgres", dialect, partial(_run, theirs), asked, size.repeats)


def _run(connection: Any, sql: str) -> None:
    connection.execute(sql).fetchall()


def _of_engine(
    engine: str, dialect: Dialect, run: Callable[[str], None], asked: list[str], repeats: int
) -> Figure:
    printer = PrivatePrinter(Environment([Column("name", TEXT)]), ["t"], dialect)
    worst, slowest, refused = 0.0, "", 0
    for text in asked:
        try:
            shown = printer.boolean(expression(text))
        except Refusal:
            refused += 1
            continue
        for value in _TEXTS:
            sql = f"SELECT {shown} FROM (SELECT CAST('{value}' AS varchar) AS t) AS texts"
            took = min(_milliseconds(run, sql) for _ in range(repeats))
            if took > worst:
                worst, slowest = took, f"{text} on {value[:5]}…"
    where = (
        f"{slowest}; {len(asked) - refused} patterns, {refused} are refused, {len(_TEXTS)} texts of {_SIGNS}"
    )
    return Figure(engine, worst, _LIMIT, "ms", where)


def _milliseconds(run: Callable[[str], None], sql: str) -> float:
    start = time.perf_counter()
    run(sql)
    return (time.perf_counter() - start) * 1000
