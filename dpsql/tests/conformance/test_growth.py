"""What is cut before a join that multiplies is the same on both engines, for a person of ten thousand wild rows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from dpsql.tests.support import random_joins
from dpsql.tests.support.postgres_copy import keep_representable
from dpsql.tests.support.postgres_server import PostgresServer
from dpsql.tests.support.random_joins import CELLS, Database

from ..laws.measured import Groups, World, fixed_intermediates, measure_release
from .both import Engines, open_engines, spelled

ROWS = 10_000
STATEMENTS = (
    "SELECT SUM(a.n), COUNT(*) FROM note a JOIN note b ON a.person_id = b.person_id WHERE a.x < b.x",
    "SELECT a.city, COUNT(*) FROM note a JOIN note b ON a.person_id = b.person_id AND a.day <= b.day GROUP BY a.city",
    "SELECT SUM(a.fine), SUM(b.x) FROM note a JOIN note b ON a.person_id = b.person_id AND (a.flag OR a.tag < b.tag)",
    "SELECT COUNT(*) FROM note a WHERE EXISTS (SELECT 1 FROM note b WHERE b.person_id = a.person_id AND b.n > a.n)",
    "SELECT SUM(b.amount), COUNT(*) FROM booking b JOIN booking c ON b.account_no = c.account_no",
    "SELECT SUM(b.n), COUNT(*) FROM note a LEFT JOIN (SELECT * FROM booking JOIN account ON no = account_no) b ON b.person_id = a.person_id",
    "SELECT COUNT(*) FROM note a FULL JOIN account b ON a.person_id = b.person_id WHERE a.n IS NULL OR b.balance > a.n",
    "SELECT COUNT(*), SUM(n.n) FROM note n CROSS JOIN tag t WHERE t.n > 1",
    "SELECT COUNT(*) FROM (SELECT a.person_id, RANK() OVER (PARTITION BY a.person_id ORDER BY b.ref) AS k FROM note a "
    "JOIN note b ON a.person_id = b.person_id) t WHERE k < 9",
)  # fmt: skip


@pytest.fixture(scope="module")
def engines(tmp_path_factory: pytest.TempPathFactory, postgres: PostgresServer) -> Iterator[Engines]:
    """Give person 1 ten thousand notes and bookings, of all the cells there are, and person 2 a few."""
    with ExitStack() as stack:
        made = open_engines(tmp_path_factory.mktemp("growth"), random_joins, postgres, stack)
        empty = Database(dict.fromkeys(random_joins.PRIVATE, ()))
        made.load(made.duckdb.connection, empty)
        insert = made.duckdb.connection.execute
        insert("INSERT INTO account SELECT i, 1 + i // 40, 'giro', i, '2020-06-15' FROM range(42) AS r (i)")
        for table, keys in (("note", "1 + i // 9990"), ("booking", "i, i % 42")):
            cells = ", ".join(_cell(values, place) for place, values in enumerate(CELLS[table].values()))
            insert(f"INSERT INTO {table} SELECT {keys}, {cells} FROM range({ROWS}) AS r (i)")
        keep_representable(made.duckdb.connection)
        made.postgres.refresh()
        yield made


def _cell(values: tuple[str | None, ...], place: int) -> str:
    """Return a column's cells by row, each column at a pace of its own."""
    shown = ", ".join("NULL" if value is None else "'" + value.replace("'", "''") + "'" for value in values)
    return f"[{shown}][1 + (i * {2 * place + 1} + i // 7) % {len(values)}]"


def measured(world: World, sql: str) -> list[dict[int, Groups]]:
    plan = world.plan(sql)
    with world.backend.snapshot() as snapshot:
        return [spelled(measure_release(one, snapshot, fixed_intermediates(plan))) for one in plan.releases]


@pytest.mark.parametrize("sql", STATEMENTS)
def test_both_engines_keep_the_same_rows(engines: Engines, sql: str) -> None:
    here = measured(engines.duckdb, sql)
    assert here == measured(engines.postgres, sql)
    assert any(any(values) for groups in here[0].values() for values in groups.values())


@pytest.mark.parametrize("sql", STATEMENTS)
def test_every_one_is_cut(engines: Engines, sql: str) -> None:
    (release,) = engines.duckdb.plan(sql).releases
    assert "AS ranked WHERE rn <= 6" in "".join(query.sql for query in release.queries((0,)))
