"""Moments as texts, in bins and as ages: Postgres' own answers, as they are printed for both engines and above."""

from __future__ import annotations

import datetime
import math
import random
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import duckdb
import psycopg
import pytest

from dpsql.plan.backend_sql.print_private import PrivatePrinter
from dpsql.plan.dialects.dialect import Dialect
from dpsql.plan.dialects.dialect_duckdb import DUCKDB
from dpsql.plan.dialects.dialect_postgres import PostgresDialect
from dpsql.postprocess.print_public import PublicPrinter
from dpsql.relation.catalog import Column
from dpsql.relation.expressions import Expr
from dpsql.relation.intervals import Environment, facts_of
from dpsql.relation.types import DATE, TIMESTAMP
from dpsql.tests.support.duckdb_pool import empty_duckdb
from dpsql.tests.support.inserted import insert
from dpsql.tests.support.length import long_where
from dpsql.tests.support.postgres_server import PostgresServer

from ..relation.hostile_rows import COLUMNS, bind_expression

_DAY = 86_400_000_000
_FIRST, _LAST = -719_100, 2_932_896
ALL = tuple(
    Column(c.name, c.type, bounds=(Fraction(_FIRST), Fraction(_LAST)) if c.type == DATE else
           (Fraction(_FIRST * _DAY), Fraction((_LAST + 1) * _DAY - 1))) if c.type in (DATE, TIMESTAMP) else c
    for c in COLUMNS
)  # fmt: skip
"""The columns, moments with the whole calendar as their bounds."""

FORMATS = ("YYYY-MM", "yyyy-mm-dd", "YYYY", "Q", '"Q"Q YYYY', "Mon", "MONTH", "Month", "month", "FMMonth FMDD, YYYY", "Dy", "DAY",
           "FMday", "DDD", "D", "ID", "IYYY-IW", 'IYYY-"W"IW', "HH24:MI", "YY/MM", "YYYY-MM-01", "FMMM.FMDD.FMYYYY", "mon dy",
           "FMHH24 FMMI FMQ FMDDD", "-")  # fmt: skip
BINS = ("'15 minutes', {}, TIMESTAMP '2001-02-03 04:05:06'", "'1 day', {}, TIMESTAMP '2100-01-01'", "'7 days 3 seconds', {}, '1990-01-01'",
        "INTERVAL '90 minutes', {}, DATE '2024-02-29'")  # fmt: skip
AGES = ("year FROM age(DATE '2024-02-29', {})", "month FROM age(DATE '2024-02-29', {})", "year FROM age({}, DATE '1999-12-31')",
        "year FROM age({}, {})", "month FROM age(TIMESTAMP '2024-02-29 12:34:56', {})")  # fmt: skip
FORMS = (
    *(f"to_char({{}}, '{form}')" for form in FORMATS), *(f"date_bin({bin_})" for bin_ in BINS),
    *(f"extract({age})" for age in AGES), "extract(epoch FROM {})", "extract(second FROM {})", "date_part('epoch', {})",
)  # fmt: skip


def moments() -> list[str]:
    chance = random.Random(20261122)
    days = [
        "0001-03-05",
        "9999-12-31",
        "2000-02-29",
        "1900-03-01",
        "2024-12-30",
        "2024-12-31",
        "2021-01-03",
        "1969-12-31",
    ]
    days += [
        f"{chance.randrange(2, 9999):04}-{chance.randrange(1, 13):02}-{chance.randrange(1, 29):02}"
        for _ in range(300)
    ]
    days += [
        f"{chance.randrange(1980, 2030):04}-{chance.randrange(1, 13):02}-{chance.randrange(1, 29):02}"
        for _ in range(300)
    ]
    times = ("00:00:00", "23:59:59.999999", "12:34:56", "12:34:55.999999", "00:00:00.000001")
    return [f"{day} {chance.choice(times)}" for day in days]


@dataclass(frozen=True, repr=False)
class Engines:
    duckdb: duckdb.DuckDBPyConnection
    postgres: psycopg.Connection[Any]
    dialect: Dialect


@pytest.fixture(scope="module")
def engines(postgres: PostgresServer) -> Iterator[Engines]:
    with duckdb.connect() as ours, postgres.admin(postgres.create_database()) as theirs:
        rows = [[number, text[:10], text] for number, text in enumerate(moments())]
        ours.execute("CREATE TABLE t (id INTEGER, d DATE, ts TIMESTAMP)")
        insert(ours, "t", rows)
        theirs.execute("CREATE TABLE t (id INTEGER, d DATE, ts TIMESTAMP)")
        with theirs.cursor() as cursor:
            cursor.executemany("INSERT INTO t VALUES (%s, %s, %s)", rows)
        yield Engines(ours, theirs, PostgresDialect(None))


def answers(engine: Any, sql: str, grid: Fraction | None) -> list[object]:
    """Return a column; of numbers in their own unit, of moments without a zone."""
    rows = [row[0] for row in engine.execute(f"SELECT {sql} FROM t ORDER BY id").fetchall()]
    if grid is not None:
        return [Fraction(value) * grid for value in rows]
    return [value.replace(tzinfo=None) if isinstance(value, datetime.datetime) else value for value in rows]


def printed(expr: Expr, dialect: Dialect) -> tuple[str, Fraction | None]:
    printer = PrivatePrinter(Environment(ALL), [f'"{column.name}"' for column in ALL], dialect)
    if not expr.type.is_number:
        return printer.value(expr), None
    number = printer.number(expr)
    return number.sql, number.grid


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("column", ["d", "ts"])
def test_a_form_of_moments_is_postgres_own(engines: Engines, form: str, column: str) -> None:
    if "second" in form and column == "d":
        pytest.skip("Postgres has no seconds of a date")
    text, is_number = form.format(column, column), form.startswith(("extract", "date_part"))
    sql = text.replace("date_part('epoch', ", "extract(epoch FROM ").replace("%", "%%")
    theirs = answers(engines.postgres, sql, Fraction(1) if is_number else None)
    expr = bind_expression(text, ALL)
    for dialect in (DUCKDB, engines.dialect):
        engine = engines.duckdb if dialect is DUCKDB else engines.postgres
        assert answers(engine, *printed(expr, dialect)) == theirs, dialect.name
    above = answers(engines.duckdb, PublicPrinter({}).expr(expr, [column.name for column in ALL]), None)
    if is_number:
        pairs = zip(
            above, theirs, strict=True
        )  # a double there, of seconds since 1970 in the last of its digits
        assert all(math.isclose(ours, exact, rel_tol=1e-15) for ours, exact in pairs)  # type: ignore[arg-type]
    else:
        assert above == theirs


GRAINS = (
    *(f"DATE_TRUNC('minute', ts) + INTERVAL '{n} seconds' * FLOOR(EXTRACT(SECOND FROM ts) / {n})" for n in (5, 30)),
    *(f"DATE_TRUNC('hour', ts) + INTERVAL '{n} minutes' * FLOOR(EXTRACT(MINUTE FROM ts) / {n})" for n in (5, 10, 15, 30)),
    *(f"DATE_TRUNC('{unit}', ts)" for unit in ("minute", "hour", "day", "week", "month", "quarter", "year")),
)  # fmt: skip
"""The time grains of Superset's charts over Postgres, but for the second, which is told to be written as a bin."""


@pytest.mark.parametrize("grain", [*GRAINS, "date_bin('1 second', ts, TIMESTAMP '2000-01-01')"])
def test_a_time_grain_of_charts_is_postgres_own(engines: Engines, grain: str) -> None:
    theirs = answers(engines.postgres, grain, None)
    expr = bind_expression(grain, ALL)
    for dialect in (DUCKDB, engines.dialect):
        engine = engines.duckdb if dialect is DUCKDB else engines.postgres
        assert answers(engine, *printed(expr, dialect)) == theirs, dialect.name


@pytest.mark.parametrize(
    "form", [f"to_char({{}}, '{form}')" for form in FORMATS] + [f"date_bin({bin_})" for bin_ in BINS]
)
@pytest.mark.parametrize("column", ["d", "ts"])
@pytest.mark.parametrize("days", [(0, 0), (10_957, 11_000), (19_000, 19_900), (0, 20_000)])
@long_where(lambda column, days: column == "d" and days != (0, 20_000))  # as of moments
def test_what_is_listed_is_all_there_is(form: str, column: str, days: tuple[int, int]) -> None:
    """The texts and bins that bounds give hold what each moment inside is written as, and nothing else of few days."""
    scale = 1 if column == "d" else _DAY
    ends = Fraction(days[0] * scale), Fraction(days[1] * scale)
    columns = tuple(Column(c.name, c.type, bounds=ends) if c.name == column else c for c in COLUMNS)
    values = facts_of(bind_expression(form.format(column), columns), Environment(columns)).values
    if values is None:
        return
    with empty_duckdb() as engine:
        step = "1 day" if column == "d" else "1 hour" if days[1] - days[0] < 100 else "1 day"
        engine.execute(
            f"CREATE TABLE t AS SELECT CAST(unnest(generate_series(TIMESTAMP '1970-01-01' + INTERVAL {days[0]} DAY, "
            f"TIMESTAMP '1970-01-01' + INTERVAL {days[1]} DAY, INTERVAL '{step}')) AS "
            f"{'DATE' if column == 'd' else 'TIMESTAMP'}) AS {column}"
        )
        expr = bind_expression(form.format(column), columns)
        printer = PrivatePrinter(Environment(columns), [f'"{c.name}"' for c in columns], DUCKDB)
        shown = printer.value(expr)
        shown = shown if expr.type.kind.value == "text" else f"epoch_us({shown})"
        met = {row[0] for row in engine.execute(f"SELECT DISTINCT {shown} FROM t").fetchall()}
    assert met <= set(values)
    if step == "1 day" and "HH24" not in form and "minutes" not in form:
        assert met == set(values)
