"""A moment without bounds is shifted by an interval within the calendar, or is NULL: no content fails (soundness.md 1.11)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from dpsql import Session
from dpsql.backends import Backend, DuckDBBackend, PostgresBackend
from dpsql.budget import Caps, open_store
from dpsql.engine.dataset import Dataset
from dpsql.errors import EngineFailure, Refusal, Unverified
from dpsql.mechanisms import ATTO, NANO
from dpsql.plan.backend_sql import private_forms
from dpsql.policy import parse_policy
from dpsql.postprocess import SealedEngine
from dpsql.release import verifying
from dpsql.testing.injected_noise import ZeroNoise
from dpsql.tests.support.duckdb_pool import empty_duckdb
from dpsql.tests.support.postgres_server import PostgresServer
from dpsql.tests.support.postgres_twin import READER, let_read

POLICY = """
database = "duckdb:log.duckdb"
[privacy]
epsilon = 100
neighbours = "add-remove"
[defaults]
epsilon = 1
[tables.log]
unit = "person"
[tables.log.columns]
day = {}
seen = {}
"""
DAYS = (
    "0001-01-01",
    "0001-01-02",
    "0001-02-01",
    "1999-12-31",
    "2024-02-29",
    "9999-11-30",
    "9999-12-30",
    "9999-12-31",
)
BEYOND = {
    "duckdb": ("infinity", "-infinity", "10000-01-01", "290000-01-01", "0044-03-15 (BC)"),
    "postgres": ("infinity", "-infinity", "10000-01-01", "290000-01-01", "0044-03-15 BC"),
}
INTERVALS = (
    "1 day",
    "-1 day",
    "1 month",
    "-1 month",
    "1 year 2 months 3 days 4 hours",
    "9000 years",
    "1 microsecond",
)

WITHIN = {"1 day": 3, "-1 day": 3, "1 month": 2}
"""How many are later than 2024-02-28 then, of those that surely stay."""


@pytest.fixture
def log(engine: PostgresServer | None, tmp_path: Path) -> Iterator[Session]:
    policy = parse_policy(POLICY, tmp_path / "policy.toml")
    name = "duckdb" if engine is None else "postgres"
    rows = [(number, day, day) for number, day in enumerate((*DAYS, *BEYOND[name], None))]
    table = "CREATE TABLE log (person integer PRIMARY KEY, day date, seen timestamp)"
    with ExitStack() as stack:
        backend: Backend
        if engine is None:
            connection = stack.enter_context(empty_duckdb())
            connection.execute(table)
            connection.executemany("INSERT INTO log VALUES (?, CAST(? AS DATE), CAST(? AS TIMESTAMP))", rows)
            backend = DuckDBBackend.over(connection)
        else:
            database = engine.create_database()
            stack.callback(engine.drop_database, database)
            owner = stack.enter_context(engine.admin(database))
            owner.execute(table.encode())
            owner.cursor().executemany("INSERT INTO log VALUES (%s, %s, %s)", rows)
            let_read(owner, "public")
            backend = PostgresBackend(engine.url(database, READER), policy.read_from)
            stack.callback(backend.close_idle)
        sealed = SealedEngine()
        stack.callback(sealed.close)
        path = tmp_path / "log.db"
        caps = Caps(100 * NANO, int(1e-6 * ATTO), {})
        store = open_store(f"sqlite:{path}", policy.dataset_id, caps, create=True, log=path)
        stack.callback(store.close)
        yield Session(Dataset(policy, backend, store, sealed), "analyst", _noise=ZeroNoise())


@pytest.mark.parametrize("column", ["day", "seen"])
def test_a_moment_is_shifted_or_null(log: Session, column: str) -> None:
    for by in INTERVALS:
        shifted = f"{column} + interval '{by}'"
        ((present,),) = log.execute(f"SELECT count({shifted}) FROM log").rows
        if by == "9000 years":
            assert present == 3  # those of the year 1
        else:  # up to three moments lie so near an end that they may leave
            assert len(DAYS) - 3 <= present <= len(DAYS), by
        ((later,),) = log.execute(
            f"SELECT count(*) FROM log WHERE {shifted} > timestamp '2024-02-29 00:00:00'"
        ).rows
        assert later <= present, by
        assert WITHIN.get(by, later) == later, by


def test_what_always_leaves_the_calendar_is_refused(log: Session) -> None:
    with pytest.raises(Refusal, match="could leave the years 1 to 9999"):
        log.execute("SELECT count(seen - interval '20000 years') FROM log")


def test_without_its_ends_a_row_makes_it_fail(log: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    first, last = -2_000_000_000, 100_000_000
    monkeypatch.setattr(private_forms, "shiftable", lambda _: (first, last))
    monkeypatch.setattr("dpsql.plan.dialects.dialect.Dialect.literal", lambda self, one: "day")
    sql = "SELECT count(day + interval '300000 years') FROM log"
    with pytest.raises(Unverified):
        log.execute(sql)
    monkeypatch.setattr(verifying, "verify", lambda *_: ())
    with pytest.raises(EngineFailure):
        log.execute(f"{sql} WHERE person >= 0")
