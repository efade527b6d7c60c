"""Moments by the clocks of a named zone: what is printed for people's rows is Postgres' own, on both engines.

Each moment lies near a change of the clocks. Postgres is asked with its own zone database, which agrees with Python's
on the years here; what is printed names no zone.
"""

from __future__ import annotations

import zoneinfo._zoneinfo as slow  # Python's own reader, which tells its changes
from collections.abc import Iterator
from datetime import datetime, timedelta
from fractions import Fraction
from typing import Any

import duckdb
import psycopg
import pytest

from dpsql.plan.backend_sql.print_private import PrivatePrinter
from dpsql.plan.dialects.dialect import Dialect
from dpsql.plan.dialects.dialect_duckdb import DUCKDB
from dpsql.plan.dialects.dialect_postgres import PostgresDialect
from dpsql.relation.calendar import Steps, clock_steps, zone_names
from dpsql.relation.catalog import Column
from dpsql.relation.expressions import Expr
from dpsql.relation.intervals import Environment, facts_of
from dpsql.relation.types import TIMESTAMP
from dpsql.tests.support.inserted import insert
from dpsql.tests.support.length import some, tried
from dpsql.tests.support.postgres_server import PostgresServer

from ..relation.hostile_rows import COLUMNS, bind_expression

_EPOCH = datetime(1970, 1, 1)
_MICROSECOND = timedelta(microseconds=1)


def number(text: str) -> int:
    return (datetime.fromisoformat(text) - _EPOCH) // _MICROSECOND


LO, HI = number("2011-06-01"), number("2016-06-30 12:34:56.789")
ALL = tuple(
    Column(c.name, c.type, bounds=(Fraction(LO), Fraction(HI))) if c.type == TIMESTAMP else c for c in COLUMNS
)
ZONES = (
    "Europe/Zurich", "Europe/Dublin", "America/New_York", "America/Havana", "America/Sao_Paulo", "Africa/Casablanca",
    "Australia/Lord_Howe", "Pacific/Apia", "Asia/Kathmandu", "Europe/Moscow", "Asia/Amman",
)  # fmt: skip
UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute")
FORMS = (
    "ts::timestamptz AT TIME ZONE '{}'", "ts AT TIME ZONE '{}'", "ts AT TIME ZONE 'UTC' AT TIME ZONE '{}'",
    *(f"date_trunc('{unit}', ts, '{{}}')" for unit in UNITS),
    "date_trunc('day', ts::timestamptz AT TIME ZONE '{}')",
    "date_trunc('day', ts::timestamptz AT TIME ZONE '{0}') AT TIME ZONE '{0}'",
)  # fmt: skip


def known(zone: str, lo: int = LO, hi: int = HI) -> Steps:
    steps = clock_steps(zone, lo, hi)
    assert steps is not None
    return steps


def moments(zone: str) -> list[datetime]:
    """Return moments around each change, as instants and as readings of the clocks, at the edges of each unit."""
    edges = {LO, HI, LO - 10**12, HI + 10**12}
    for at, ahead in known(zone).changes:
        for near in (at, at + ahead, at + known(zone).at(at - 1)):
            day = near // 86_400_000_000 * 86_400_000_000
            spread = [near + hours * 1_800_000_000 for hours in range(-8, 9)] + [
                day,
                day - ahead,
                day + ahead,
            ]
            edges |= {moment + more for moment in spread for more in (-1, 0, 1, 1_234_567_890)}
    return [_EPOCH + edge * _MICROSECOND for edge in sorted(edges)]


@pytest.fixture(scope="module")
def postgres_table(postgres: PostgresServer) -> Iterator[psycopg.Connection[Any]]:
    with postgres.admin(postgres.create_database()) as theirs:
        theirs.execute("CREATE TABLE t (id INTEGER, ts TIMESTAMP)")
        theirs.execute("SET TimeZone = 'UTC'")
        yield theirs


def printed(expr: Expr, dialect: Dialect) -> str:
    return PrivatePrinter(Environment(ALL), [f'"{column.name}"' for column in ALL], dialect).value(expr)


def answers(engine: Any, sql: str, source: str = "t") -> list[datetime | None]:
    rows = engine.execute(f"SELECT {sql} FROM {source} ORDER BY id").fetchall()
    return [None if row[0] is None else row[0].replace(tzinfo=None) for row in rows]


@pytest.mark.parametrize("zone", some([*ZONES], 5))
def test_clocks_are_postgres_own_around_their_changes(
    postgres_table: psycopg.Connection[Any], zone: str
) -> None:
    rows = [*enumerate(moments(zone)), (10**6, None)]
    postgres_table.execute("DELETE FROM t")
    with postgres_table.cursor() as cursor, cursor.copy("COPY t FROM STDIN") as copy:
        for row in rows:
            copy.write_row(row)
    clamped = f"LEAST(GREATEST(ts, '{_EPOCH + LO * _MICROSECOND}'), '{_EPOCH + HI * _MICROSECOND}')"
    inside = f"(SELECT id, CASE WHEN ts IS NOT NULL THEN {clamped} END AS ts FROM t) AS t"
    with duckdb.connect() as ours:
        ours.execute("CREATE TABLE t (id INTEGER, ts TIMESTAMP)")
        insert(ours, "t", rows)
        for form in FORMS:
            text = form.format(zone)
            theirs = answers(postgres_table, text, inside)
            expr = bind_expression(text, ALL)
            facts = facts_of(expr, Environment(ALL))
            assert answers(ours, printed(expr, DUCKDB)) == theirs, text
            assert answers(postgres_table, printed(expr, PostgresDialect(None))) == theirs, text
            met = {(value - _EPOCH) // _MICROSECOND for value in theirs if value is not None}
            assert facts.lo is not None
            assert facts.hi is not None
            assert facts.lo <= min(met) <= max(met) <= facts.hi
            if facts.values is not None:
                assert met <= set(facts.values), text


@pytest.mark.parametrize(
    ("lo", "hi"),
    [
        pytest.param("1980-01-01", "2005-01-01", marks=pytest.mark.long),  # the same of the years before
        ("2005-01-01", "2030-01-01"),
    ],
)
def test_no_change_of_any_zone_is_missed(lo: str, hi: str) -> None:
    """Clocks are looked at day by day; Python's own reader lists the moments of their changes."""
    ends, met = (number(lo), number(hi)), 0
    for name in sorted(zone_names())[:: tried(4, 1)]:
        zone = slow.ZoneInfo.no_cache(name)
        told = {
            at * 1_000_000: offset.utcoff // _MICROSECOND
            for at, offset in zip(zone._trans_utc, zone._ttinfos, strict=False)
        }
        steps = known(name, *ends)
        for at, ahead in told.items():
            if ends[0] < at <= ends[1]:
                assert steps.at(at) == ahead, name
                met += 1
        assert {at for at, _ in steps.changes} <= {
            *told,
            *(at for at, _ in steps.changes if at > max(told, default=0)),
        }
    assert met > tried(1_200, 5_000)
