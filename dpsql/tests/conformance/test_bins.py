"""Bins are Postgres' own: the bucket of each value in both engines, above the release and as it is derived beforehand."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import duckdb
import psycopg
import pytest

from dpsql.plan.backend_sql.print_private import PrivatePrinter
from dpsql.plan.dialects.dialect_duckdb import DUCKDB
from dpsql.plan.privacy.keys import stepped_keys
from dpsql.postprocess.null_on_error import width_bucket
from dpsql.postprocess.print_public import PublicPrinter
from dpsql.relation.expressions import Call
from dpsql.relation.functions.numbers import buckets_of
from dpsql.relation.intervals import Environment
from dpsql.tests.support.postgres_server import PostgresServer

from ..relation.hostile_rows import COLUMNS, bind_expression

ENDS = ("0, 10, 5", "0, 1, 10", "0.1, 0.7, 6", "-2.5, 2.5, 1000", "10, 0, 5", "0.7, 0.1, 3", "0, 1e-20, 7",
        "-1e30, 3, 9")  # fmt: skip


def values() -> list[float]:
    """Ends and edges, the doubles beside them, and others."""
    chance = random.Random(20261122)
    edges = (
        [k / 10 for k in range(-30, 110)] + [k * 0.1 for k in range(100)] + [1e-20 * k / 7 for k in range(8)]
    )
    beside = [math.nextafter(edge, side) for edge in edges for side in (-math.inf, math.inf)]
    return [*edges, *beside, 1e308, -1e308, 0.0, *(chance.uniform(-3, 11) for _ in range(200))]


@pytest.fixture(scope="module")
def postgres_cursor(postgres: PostgresServer) -> Iterator[psycopg.Connection[Any]]:
    with postgres.admin(postgres.create_database()) as connection:
        yield connection


@pytest.mark.parametrize("ends", ENDS)
@pytest.mark.parametrize("column", ["f", "n"])
def test_a_bucket_is_postgres_bucket(
    postgres_cursor: psycopg.Connection[Any], column: str, ends: str
) -> None:
    if postgres_cursor.info.server_version < 160_000:
        pytest.skip("it adds 1 before it cuts, so that a double just below an edge is beyond it")
    of_doubles = column == "f"
    given = [repr(value) for value in values() if abs(value) < 1e6 or of_doubles]
    if not of_doubles:
        given = [f"{float(text):.2f}" for text in given if abs(float(text)) < 1e6]
    type_ = "double precision" if of_doubles else "numeric(10, 2)"
    bounds = ", ".join(f"({end})::{type_.split('(')[0]}" for end in ends.split(",")[:2])
    count = ends.rsplit(",", 1)[1]
    sql = f"SELECT width_bucket(v::{type_}, {bounds}, {count}) FROM unnest(%s::text[]) AS v"
    theirs = [row[0] for row in postgres_cursor.execute(sql, [given])]
    call = bind_expression(f"width_bucket({column}, {ends})", COLUMNS)
    assert isinstance(call, Call)
    buckets = buckets_of(call)
    assert [buckets.number(Fraction(text)) for text in given] == theirs
    shown = width_bucket("CAST(v AS DOUBLE)", buckets)
    with duckdb.connect() as engine:
        rows = engine.execute(f"SELECT {shown} FROM (SELECT unnest(?) AS v) t", [given]).fetchall()
    assert [row[0] for row in rows] == theirs


SHOWN = (
    "floor(f / 0.3) * 0.3",
    "floor(f * 7) / 7",
    "ceil(f / 0.1) * 0.1 - 0.7",
    "round(f) * 1.1e0",
    "trunc(f / 1e-2) / 1e2",
)


@pytest.mark.parametrize("key", SHOWN)
def test_a_key_has_the_bits_of_both_engines(postgres_cursor: psycopg.Connection[Any], key: str) -> None:
    """What is shown of a step is what an engine computes of a value in it (soundness.md 1.7)."""
    columns = tuple(
        replace(column, bounds=(Fraction(-1), Fraction(1))) if column.name == "f" else column
        for column in COLUMNS
    )
    (step,) = stepped_keys([bind_expression(key, columns)], Environment(columns))
    assert step is not None
    given = [value for value in values() if abs(value) <= 1 and (value == 0 or abs(value) > 1e-100)]
    printer = PrivatePrinter(Environment(columns), [column.name for column in columns], DUCKDB)
    with duckdb.connect() as engine:
        engine.execute("CREATE TABLE t AS SELECT unnest(?) AS f", [given])
        grouped = engine.execute(f"SELECT {printer.key(step.grouped)} FROM t").fetchall()
        engine.execute("CREATE TABLE r AS SELECT unnest(?) AS k", [[int(row[0]) for row in grouped]])
        shown = PublicPrinter({}).expr(step.shown, ["k"])
        ours = [row[0] for row in engine.execute(f"SELECT {shown} FROM r").fetchall()]
    sql = f"SELECT {key} FROM unnest(%s::float8[]) AS f"
    assert ours == [row[0] for row in postgres_cursor.execute(sql, [given])]
