"""No setting of the owner's database, its role or its server changes an integer, and no object in its schemas does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace

import psycopg
import pytest

from dpsql.backends import PostgresBackend
from dpsql.plan.planner import Plan
from dpsql.tests.support import random_databases
from dpsql.tests.support.postgres_server import PostgresServer
from dpsql.tests.support.postgres_twin import READER, PostgresTwin

from ..laws.measured import Measured, World
from .both import open_engines
from .places import EVERY_CELL, STATEMENTS, all_measured

# Each group is set together; a name that this major does not have is left out, some have had another.
_PARALLEL = {
    "debug_parallel_query": "on", "force_parallel_mode": "on", "parallel_setup_cost": "0", "parallel_tuple_cost": "0",
    "min_parallel_table_scan_size": "0", "max_parallel_workers_per_gather": "4", "parallel_leader_participation": "off",
}  # fmt: skip
SETTINGS: dict[str, dict[str, str]] = {
    "dates": {"DateStyle": "SQL, DMY", "IntervalStyle": "iso_8601", "TimeZone": "Asia/Kathmandu"},
    "german": {"DateStyle": "German, DMY", "IntervalStyle": "sql_standard", "TimeZone": "America/St_Johns"},
    "digits": {"extra_float_digits": "-15", "bytea_output": "escape"},
    "texts": {"standard_conforming_strings": "off", "backslash_quote": "on", "quote_all_identifiers": "on",
              "client_encoding": "LATIN1"},
    "nulls": {"transform_null_equals": "on", "array_nulls": "off"},
    "locale": {"lc_messages": "C", "lc_monetary": "C", "lc_numeric": "C", "lc_time": "C"},
    "isolation": {"default_transaction_isolation": "serializable", "default_transaction_deferrable": "on",
                  "default_transaction_read_only": "off", "row_security": "on"},
    "tiny-memory": {"work_mem": "64kB", "hash_mem_multiplier": "1", "temp_buffers": "800kB", "cursor_tuple_fraction": "0.001"},
    "no-hash": {"enable_hashagg": "off", "enable_hashjoin": "off", "enable_incremental_sort": "off"},
    "no-sort": {"enable_sort": "off", "enable_mergejoin": "off", "enable_indexscan": "off", "enable_bitmapscan": "off"},
    "nested-loops": {"enable_hashjoin": "off", "enable_mergejoin": "off", "enable_material": "off", "enable_memoize": "off"},
    "no-scans": {"enable_seqscan": "off", "enable_presorted_aggregate": "off", "enable_group_by_reordering": "off",
                 "enable_distinct_reordering": "off"},
    "rewrites": {"geqo_threshold": "2", "from_collapse_limit": "1", "join_collapse_limit": "1", "constraint_exclusion": "on",
                 "enable_partitionwise_aggregate": "on", "enable_partitionwise_join": "on", "enable_self_join_elimination": "off"},
    "parallel": _PARALLEL,
    "parallel-hash": {**_PARALLEL, "enable_sort": "off", "enable_mergejoin": "off", "work_mem": "64kB"},
    "jit": {"jit": "on", "jit_above_cost": "0", "jit_inline_above_cost": "0", "jit_optimize_above_cost": "0"},
    "plans": {"plan_cache_mode": "force_generic_plan", "synchronize_seqscans": "on", "random_page_cost": "1000"},
    "search-path": {"search_path": "shadows, public, pg_catalog"},
}  # fmt: skip

# What a search_path with `shadows` in front would find in place of the engine's own.
_SHADOWS = """
CREATE SCHEMA shadows;
CREATE DOMAIN shadows.text AS pg_catalog.varchar(1);
CREATE DOMAIN shadows.date AS pg_catalog.date CHECK (VALUE > '2020-06-01');
CREATE FUNCTION shadows.md5(pg_catalog.text) RETURNS pg_catalog.text LANGUAGE sql IMMUTABLE AS 'SELECT ''0''::pg_catalog.text';
CREATE FUNCTION shadows.chr(integer) RETURNS pg_catalog.text LANGUAGE sql IMMUTABLE AS 'SELECT ''x''::pg_catalog.text';
CREATE FUNCTION shadows.replace(pg_catalog.text, pg_catalog.text, pg_catalog.text) RETURNS pg_catalog.text LANGUAGE sql IMMUTABLE AS 'SELECT $1';
CREATE FUNCTION shadows.lower(pg_catalog.text) RETURNS pg_catalog.text LANGUAGE sql IMMUTABLE AS 'SELECT $1';
CREATE FUNCTION shadows.length(pg_catalog.text) RETURNS integer LANGUAGE sql IMMUTABLE AS 'SELECT 7';
CREATE FUNCTION shadows.abs(double precision) RETURNS double precision LANGUAGE sql IMMUTABLE AS 'SELECT 7e0';
CREATE FUNCTION shadows.round(double precision) RETURNS double precision LANGUAGE sql IMMUTABLE AS 'SELECT 7e0';
CREATE FUNCTION shadows.round(numeric, integer) RETURNS numeric LANGUAGE sql IMMUTABLE AS 'SELECT 7.0';
CREATE FUNCTION shadows.trunc(double precision) RETURNS double precision LANGUAGE sql IMMUTABLE AS 'SELECT 7e0';
CREATE FUNCTION shadows.date_trunc(pg_catalog.text, timestamp) RETURNS timestamp LANGUAGE sql IMMUTABLE AS 'SELECT $2';
CREATE AGGREGATE shadows.count(*) (SFUNC = pg_catalog.int8inc, STYPE = bigint, INITCOND = '1000');
CREATE AGGREGATE shadows.sum(bigint) (SFUNC = pg_catalog.int8larger, STYPE = bigint);
CREATE FUNCTION shadows.never(pg_catalog.text, pg_catalog.text) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT false';
CREATE FUNCTION shadows.never(integer, integer) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT false';
CREATE FUNCTION shadows.never(bigint, bigint) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT false';
CREATE FUNCTION shadows.never(double precision, double precision) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT false';
CREATE FUNCTION shadows.seven(bigint, bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS 'SELECT 7::bigint';
CREATE FUNCTION shadows.seven(double precision, double precision) RETURNS double precision LANGUAGE sql IMMUTABLE AS 'SELECT 7e0';
CREATE FUNCTION shadows.seven(pg_catalog.text, pg_catalog.text) RETURNS pg_catalog.text LANGUAGE sql IMMUTABLE AS 'SELECT ''7''::pg_catalog.text';
"""
_OPERATORS = [
    *((sign, type_, "never") for sign in ("=", "<", ">", "<=", ">=") for type_ in ("text", "integer", "bigint", "double precision")),
    *((sign, type_, "seven") for sign in ("+", "-", "*", "/") for type_ in ("bigint", "double precision")),
    ("||", "text", "seven"),
]  # fmt: skip


@dataclass(frozen=True, repr=False)
class Place:
    """A world in Postgres, and what DuckDB measures in its rows."""

    world: World
    twin: PostgresTwin
    server: PostgresServer
    plans: list[Plan]
    expected: list[Measured]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, postgres: PostgresServer) -> Iterator[Place]:
    with ExitStack() as stack:
        engines = open_engines(tmp_path_factory.mktemp("settings"), random_databases, postgres, stack)
        engines.settle(EVERY_CELL)
        twin = engines.postgres.twin
        assert twin is not None
        twin.owner.execute(_SHADOWS.encode())
        for sign, type_, function in _OPERATORS:
            sides = (
                f"LEFTARG = pg_catalog.{type_}, RIGHTARG = pg_catalog.{type_}".replace(
                    "pg_catalog.double", "double"
                )
                .replace("pg_catalog.integer", "integer")
                .replace("pg_catalog.bigint", "bigint")
            )
            twin.owner.execute(
                f"CREATE OPERATOR shadows.{sign} (FUNCTION = shadows.{function}, {sides})".encode()
            )
        twin.owner.execute(f"GRANT USAGE ON SCHEMA shadows TO {READER}")
        plans = [engines.postgres.plan(sql) for sql in STATEMENTS]
        yield Place(engines.postgres, twin, postgres, plans, all_measured(engines.duckdb))


@contextmanager
def set_on(place: Place, settings: dict[str, str]) -> Iterator[None]:
    """Set these for the role in the database, as an owner can; a major that has not the name goes without."""
    known = {name.lower() for (name,) in place.twin.owner.execute("SELECT name FROM pg_settings").fetchall()}
    where = f"ALTER ROLE {READER} IN DATABASE {place.twin.database}"
    for name, value in settings.items():
        if name.lower() in known:
            shown = value if name in ("search_path", "DateStyle") else f"'{value}'"
            place.twin.owner.execute(f"{where} SET {name} = {shown}".encode())
    try:
        yield
    finally:
        place.twin.owner.execute(f"{where} RESET ALL".encode())


def same(place: Place, backend: PostgresBackend) -> None:
    found = all_measured(replace(place.world, backend=backend), place.plans)
    for sql, ours, theirs in zip(STATEMENTS, place.expected, found, strict=True):
        assert theirs == ours, sql


@pytest.mark.parametrize("name", SETTINGS)
def test_settings_of_the_role_change_nothing(place: Place, name: str) -> None:
    with set_on(place, SETTINGS[name]):
        backend = place.twin.backend(place.world.policy.tables)
        same(place, backend)
        assert backend.close_idle()


@pytest.mark.long
@pytest.mark.parametrize("name", SETTINGS)
def test_settings_of_a_connection_change_nothing(place: Place, name: str) -> None:
    """A connection that is handed in has its owner's settings, whatever they are, and keeps them."""
    with (
        set_on(place, SETTINGS[name]),
        psycopg.connect(place.server.url(place.twin.database, READER)) as given,
    ):
        before = shown(given)
        same(place, PostgresBackend.over(given, place.world.policy.tables))
        assert shown(given) == before


def shown(connection: psycopg.Connection[tuple[str, str]]) -> list[tuple[str, str]]:
    found = connection.execute(
        "SELECT name, setting FROM pg_settings WHERE context = 'user' ORDER BY name"
    ).fetchall()
    connection.rollback()
    return found


def test_the_shadows_would_be_seen(place: Place) -> None:
    """The test's own eye: under that search_path, the engine's names do mean something else."""
    with place.server.admin(place.twin.database) as connection:
        connection.execute("SET search_path = shadows, public, pg_catalog")
        row = connection.execute(
            "SELECT md5('a'), count(*), 'a'::pg_catalog.text = 'a'::pg_catalog.text FROM visit WHERE false"
        ).fetchone()
    assert row == ("0", 1000, False)
