"""Databases in DuckDB and, side by side, in Spark: what is planned for each of the engines, and measured."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import duckdb
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsql.backends import Snapshot
from dpsql.errors import EngineFailure, Refusal
from dpsql.plan.planner import Plan
from dpsql.plan.views import build_catalog
from dpsql.policy import Policy
from dpsql.tests.support.random_databases import SCHEMA, Database, load
from dpsql.tests.support.spark_copy import SparkOwner, copy_tables, keep_representable
from dpsql.tests.support.spark_twin import CopiesBackend, OneCopy, spelled_as_in_duckdb

from .examples import REPEATED
from .measured import Groups, Measured, World, fixed_intermediates, measure_release, world
from .test_neighbours import planned

__all__ = ["Copies", "counted_alike", "drawn", "of_rows", "open_copies", "put"]

T = TypeVar("T")
LESS = (
    "regular expressions are not read on people's rows of Spark",
    "a frame by distance is not taken of people's rows on Spark",
)
"""How what Spark alone refuses begins to say so: it has no such form that ends in time."""
Fill = Callable[[duckdb.DuckDBPyConnection], None]
"""Puts the rows of one database in, in place of those that are there."""


@dataclass(frozen=True, repr=False)
class Copies:
    """Some databases, each of them in a copy of its own. `duckdb` holds them one after the other."""

    duckdb: World
    spark: World
    fills: tuple[Fill, ...]
    backend: CopiesBackend

    def on_spark(self, plan: Plan) -> list[Measured]:
        """Return a plan's exact integers on each of the databases, with days as DuckDB writes them.

        Raises EngineFailure.
        """
        found = [_measured(plan, self.backend.at(schema)) for schema in self.backend.schemas]
        return [
            [{number: _spelled(groups) for number, groups in one.items()} for one in each] for each in found
        ]

    def on_duckdb(self, plans: Sequence[Plan]) -> list[list[Measured]]:
        """Return the exact integers of each plan on each of the databases, as DuckDB counts them."""
        found: list[list[Measured]] = [[] for _ in plans]
        for fill in self.fills:
            fill(self.duckdb.connection)
            with self.duckdb.backend.snapshot() as snapshot:
                for measured, plan in zip(found, plans, strict=True):
                    measured.append(_measured(plan, snapshot))
        return found


def put(connection: duckdb.DuckDBPyConnection, database: Database, order: int = 0) -> None:
    """Put a database's rows in, as far as both engines can hold them."""
    load(connection, database, order)
    keep_representable(connection)


def of_rows(databases: Sequence[Database]) -> list[Fill]:
    """Return what puts databases of the random schema in, the rows of each in an order of their own."""
    return [
        lambda connection, one=one, order=order: put(connection, one, order)
        for order, one in enumerate(databases)
    ]


def _measured(plan: Plan, snapshot: Snapshot | OneCopy) -> Measured:
    intermediates = fixed_intermediates(plan)
    return [measure_release(release, snapshot, intermediates) for release in plan.releases]


def _spelled(groups: Groups) -> Groups:
    return {tuple(map(spelled_as_in_duckdb, key)): values for key, values in groups.items()}


@contextmanager
def open_copies(
    folder: Path,
    owner: SparkOwner,
    policy: Policy,
    fills: Sequence[Fill],
    *,
    schema: str = SCHEMA,
    files: int = 1,
) -> Iterator[Copies]:
    """Copy databases of one schema; `files`: how many files each table has."""
    with ExitStack() as stack:
        here = stack.enter_context(world(folder, policy=policy, schema=schema))
        schemas = []
        for fill in fills:
            fill(here.connection)
            schemas.append(copy_tables(here.connection, owner, folder, files))
        backend = CopiesBackend(owner.url, here.connection, schemas)
        stack.callback(backend.close_idle)
        with backend.snapshot() as snapshot:
            catalog = build_catalog(policy, snapshot.schema())
        yield Copies(here, World(here.connection, None, backend, policy, catalog), tuple(fills), backend)


def counted_alike(copies: Copies, sqls: Sequence[str]) -> dict[str, tuple[Plan, list[Measured]]]:
    """Hold that both engines plan and count the same on all databases, and that none of them fails.

    Return the plan of each statement that is not refused, and what is counted on each database.
    """
    plans = _plans_of(copies, sqls)
    ours = copies.on_duckdb([here for here, _ in plans.values()])
    found: dict[str, tuple[Plan, list[Measured]]] = {}
    wrong = []
    for (sql, (_, plan)), left in zip(plans.items(), ours, strict=True):
        try:
            found[sql] = plan, copies.on_spark(plan)
        except EngineFailure as failure:
            wrong.append(f"{sql}\n    failed: {failure.detail}")
            continue
        for place, pair in enumerate(zip(left, found[sql][1], strict=True)):
            if pair[0] != pair[1]:
                wrong.append(f"{sql}\n    in database {place}: {pair[0]} is not {pair[1]}")
    assert not wrong, "\n".join(wrong)
    return found


def _plans_of(copies: Copies, sqls: Sequence[str]) -> dict[str, tuple[Plan, Plan]]:
    """Return what each engine plans for the statements; those refused are so for both, or for Spark by name, and left
    out."""
    found = {}
    for sql in dict.fromkeys(sqls):
        here, there = planned(copies.duckdb, sql), _planned_or_why_not(copies.spark, sql)
        if isinstance(there, str):
            assert here is None or there.startswith(LESS), sql
            continue
        assert here is not None, sql
        if here.releases:
            assert (here.epsilon, here.delta) == (there.epsilon, there.delta), sql
            found[sql] = here, there
    return found


def _planned_or_why_not(world: World, sql: str) -> Plan | str:
    try:
        return world.plan(sql)
    except Refusal as refusal:
        return refusal.message


def drawn(strategy: st.SearchStrategy[T], count: int) -> list[T]:
    """Return examples of a strategy, the same in every run: they are asked together, not one after the other."""
    found: list[T] = []

    @settings(REPEATED, max_examples=count)
    @given(strategy)
    def draw(one: T) -> None:
        found.append(one)

    draw()
    return found
