"""L2 over several tables: whatever the rows hold, the printed SQL runs, and so does what stands above the releases."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass

import duckdb
import pytest

from dpsql import Session
from dpsql.engine.dataset import Dataset, open_ledger
from dpsql.testing.injected_noise import ZeroNoise
from dpsql.tests.support.duckdb_pool import empty_duckdb, warm_sealed
from dpsql.tests.support.postgres_server import PostgresServer
from dpsql.tests.support.postgres_twin import PostgresTwin
from dpsql.tests.support.random_joins import CELLS, PRIVATE, SCHEMA, Database, load, policy_of

from .measured import engine_of
from .test_neighbours_joined import ATTACKS, TIGHT
from .test_same_answer import JOINS, PER_PERSON, SUBQUERIES
from .test_total import answer


@dataclass(repr=False)
class Desk:
    """A session over the world of several tables; `resolve_owner` puts a database's rows in."""

    session: Session
    connection: duckdb.DuckDBPyConnection
    twin: PostgresTwin | None
    put: Callable[..., None] = load

    def settle(self, database: Database) -> None:
        self.put(self.connection, database)
        if self.twin is not None:
            self.twin.refresh()


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory, engine: PostgresServer | None) -> Iterator[Desk]:
    with ExitStack() as stack:
        policy = policy_of(tmp_path_factory.mktemp("total"), epsilon="0.001")
        connection = stack.enter_context(empty_duckdb())
        connection.execute(SCHEMA)
        store = open_ledger(policy, create=True)
        twin, backend = engine_of(stack, connection, policy, engine)
        session = Session(Dataset(policy, backend, store, warm_sealed()), "tester", _noise=ZeroNoise())
        session.execute("SET dpsql.reuse = off")
        yield Desk(stack.enter_context(session), connection, twin)


@pytest.fixture(scope="module")
def every_cell(desk: Desk) -> Desk:
    """The desk with every wild cell of every column, spread over five units that own rows of all tables."""
    longest = max(len(cells) for table in CELLS.values() for cells in table.values())
    keys: dict[str, list[tuple[str | None, ...]]] = {
        "person": [(str(i),) for i in range(longest)],
        "account": [(str(i), str(i % 5)) for i in range(longest)],
        "booking": [(str(i), str(i % 7)) for i in range(4 * longest)],
        "note": [(str(i % 5),) for i in range(4 * longest)],
        "profile": [(str(i),) for i in range(longest)],
    }
    rows = {
        table: tuple(
            (*key, *(cells[i % len(cells)] for cells in CELLS[table].values()))
            for i, key in enumerate(keys[table])
        )
        for table in PRIVATE
    }
    desk.settle(Database(rows))
    return desk


@pytest.mark.parametrize("sql", [*(sql for _, sql in (*JOINS, *SUBQUERIES, *PER_PERSON)), *TIGHT, *ATTACKS])
def test_no_cell_makes_a_form_fail(every_cell: Desk, sql: str) -> None:
    assert answer(every_cell, sql) or "UNION" in sql or "FULL" in sql
