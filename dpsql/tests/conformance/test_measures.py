"""Random statements over random rows measure the same exact integers on every engine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dpsql.errors import Refusal
from dpsql.tests.support import random_databases, random_joins
from dpsql.tests.support.drawn_statements import statements
from dpsql.tests.support.length import tried
from dpsql.tests.support.postgres_server import PostgresServer

from ..laws.measured import World, fixed_intermediates, measure_release
from .both import Engines, open_engines, spelled

FUZZ = settings(
    deadline=None,
    derandomize=True,
    max_examples=tried(8, 60),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.data_too_large],
)  # fmt: skip
LONG = settings(FUZZ, max_examples=1500, derandomize=False)


@pytest.fixture(scope="module")
def one_table(tmp_path_factory: pytest.TempPathFactory, postgres: PostgresServer) -> Iterator[Engines]:
    with ExitStack() as stack:
        yield open_engines(tmp_path_factory.mktemp("one"), random_databases, postgres, stack)


@pytest.fixture(scope="module")
def joined(tmp_path_factory: pytest.TempPathFactory, postgres: PostgresServer) -> Iterator[Engines]:
    with ExitStack() as stack:
        yield open_engines(tmp_path_factory.mktemp("joined"), random_joins, postgres, stack)


def measured(world: World, sql: str) -> object:
    """Return a statement's claim and its exact integers, or its refusal."""
    try:
        plan = world.plan(sql)
    except Refusal as refusal:
        return refusal.sqlstate, str(refusal)
    intermediates = fixed_intermediates(plan)
    with world.backend.snapshot() as snapshot:
        found = [spelled(measure_release(release, snapshot, intermediates)) for release in plan.releases]
    claim = [
        [
            (v.kind, v.sensitivity, release.measures[number].scale)
            for number, v in enumerate(release.measurements)
        ]
        for release in plan.releases
    ]
    return claim, found


def check(engines: Engines, sqls: list[str], database: object) -> None:
    engines.settle(database)
    for sql in sqls:
        assert measured(engines.duckdb, sql) == measured(engines.postgres, sql), sql


@FUZZ
@given(st.lists(statements("one table"), min_size=1, max_size=4), random_databases.databases())
def test_a_table_is_measured_alike(
    one_table: Engines, sqls: list[str], database: random_databases.Database
) -> None:
    check(one_table, sqls, database)


@FUZZ
@given(st.lists(statements(), min_size=1, max_size=4), random_joins.databases())
def test_joined_tables_are_measured_alike(
    joined: Engines, sqls: list[str], database: random_joins.Database
) -> None:
    check(joined, sqls, database)


@pytest.mark.long
@LONG
@given(st.lists(statements("one table"), min_size=1, max_size=6), random_databases.databases(most=30))
def test_a_table_is_measured_alike_at_length(
    one_table: Engines, sqls: list[str], database: random_databases.Database
) -> None:
    check(one_table, sqls, database)


@pytest.mark.long
@LONG
@given(st.lists(statements(), min_size=1, max_size=6), random_joins.databases(most=20))
def test_joined_tables_are_measured_alike_at_length(
    joined: Engines, sqls: list[str], database: random_joins.Database
) -> None:
    check(joined, sqls, database)
