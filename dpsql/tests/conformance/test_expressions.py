"""A printed expression has one value on every engine, and no engine raises, whatever the rows hold."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import duckdb
import psycopg
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from dpsql.errors import Refusal
from dpsql.plan.backend_sql.print_private import PrivatePrinter
from dpsql.plan.dialects.dialect import Dialect
from dpsql.plan.dialects.dialect_duckdb import DUCKDB
from dpsql.plan.dialects.dialect_postgres import PostgresDialect
from dpsql.plan.dialects.quote import identifier
from dpsql.relation.catalog import Column
from dpsql.relation.expressions import Expr
from dpsql.relation.intervals import Environment
from dpsql.tests.support.length import tried
from dpsql.tests.support.postgres_copy import copy_rows, copy_schema, keep_representable
from dpsql.tests.support.postgres_server import PostgresServer

from ..relation.hostile_rows import (
    COLUMNS,
    bind_expression,
    booleans,
    environments,
    moments,
    numbers,
    open_table,
    texts,
)


@dataclass(frozen=True, repr=False)
class Engines:
    """The hostile table in both engines."""

    duckdb: duckdb.DuckDBPyConnection
    postgres: psycopg.Connection[Any]
    dialect: Dialect


@pytest.fixture(scope="module")
def engines(postgres: PostgresServer) -> Iterator[Engines]:
    source = open_table()
    keep_representable(source)
    with postgres.admin(postgres.create_database()) as target:
        copy_schema(source, target)
        copy_rows(source, target)
        target.execute("SET search_path = public, pg_catalog")
        target.execute("SET TimeZone = 'UTC'")
        yield Engines(source, target, PostgresDialect(case_collation(target)))
    source.close()


def case_collation(connection: psycopg.Connection[Any]) -> str:
    names = ["pg_c_utf8", "C.utf8", "C.UTF-8", "und-x-icu"]
    found = connection.execute(
        "SELECT collname FROM pg_collation WHERE collname = ANY(%s) ORDER BY array_position(%s, collname::text)",
        [names, names],
    ).fetchone()
    assert found is not None
    return str(found[0])


def values(engines: Engines, expr: Expr, columns: tuple[Column, ...], dialect: Dialect) -> list[object]:
    printer = PrivatePrinter(Environment(columns), [identifier(column.name) for column in columns], dialect)
    shown = printer.number(expr).sql if expr.type.is_number else printer.value(expr)
    if expr.type.is_temporal:
        shown = dialect.hash_text(shown, expr.type)
    sql = f"SELECT {shown} FROM t ORDER BY id"
    if dialect is DUCKDB:
        rows = engines.duckdb.execute(sql).fetchall()
    else:
        with psycopg.RawCursor(engines.postgres) as cursor:
            rows = cursor.execute(sql.encode(), binary=True).fetchall()
    return [_plain(value) for (value,) in rows]


def _plain(value: object) -> object:
    if isinstance(value, Decimal):
        assert value == int(value)
        return int(value)
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value
    return value


ANY = st.one_of(*(kind(depth) for kind in (numbers, texts, moments, booleans) for depth in (1, 2)))


@given(ANY, environments(is_bounded=True))
@settings(
    max_examples=tried(120, 300), deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)
def test_an_expression_has_one_value(engines: Engines, text: str, columns: tuple[Column, ...]) -> None:
    check(engines, text, columns)


_TINY = tuple(
    replace(column, bounds=(Fraction(-1000), Fraction(1000))) if column.type.is_number else column
    for column in COLUMNS
)


@pytest.mark.parametrize(
    "text",
    ["f * f", "f * f * f", "power(f, 2)", "power(f, 8)", "f * 1e-30 * 1e-30", "f / 1e30 / 1e30", "1 / f", "f / f", "f * f / f",
     "sqrt(abs(f * f))", "(f * f) > 0", "f / 1000 * f", "f * exp(f / 1000 - 690)", "r * f", "round(f * f)"],
)  # fmt: skip
def test_what_underflows_or_overflows_has_one_value(engines: Engines, text: str) -> None:
    """Rows hold 5e-324 and 1e-300: Postgres raises where a product of them is no double (soundness.md 1.11)."""
    expr = bind_expression(text, _TINY)
    assert values(engines, expr, _TINY, DUCKDB) == values(engines, expr, _TINY, engines.dialect)


@pytest.mark.long
@given(
    ANY | st.one_of(*(kind(3) for kind in (numbers, texts, moments, booleans))), environments(is_bounded=True)
)
@settings(max_examples=9000, deadline=None, suppress_health_check=list(HealthCheck))
def test_an_expression_has_one_value_at_length(
    engines: Engines, text: str, columns: tuple[Column, ...]
) -> None:
    check(engines, text, columns)


def check(engines: Engines, text: str, columns: tuple[Column, ...]) -> None:
    try:
        expr = bind_expression(text, columns)
        ours = values(engines, expr, columns, DUCKDB)
    except Refusal:
        assume(False)
        raise
    assert ours == values(engines, expr, columns, engines.dialect), text
