"""L2 and L9 for moments with a time zone: read in UTC on both engines, whatever zone a session is in."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import duckdb
import pytest

from dpsql import Session
from dpsql.engine.dataset import Dataset, open_ledger
from dpsql.policy import parse_policy
from dpsql.testing.injected_noise import ZeroNoise
from dpsql.tests.support.duckdb_pool import warm_sealed
from dpsql.tests.support.postgres_server import PostgresServer

from .measured import World, measure_release, world

SCHEMA = "CREATE TABLE event (who INTEGER, seen TIMESTAMP, zoned TIMESTAMPTZ)"
POLICY = """
database = "duckdb:x.duckdb"
[privacy]
epsilon = 100
delta = 0.9
[defaults]
epsilon = 1
delta = 1e-3
[tables.event]
unit = "who"
max_rows = 5
[tables.event.columns]
seen = { bounds = [2020-01-01T00:00:00, 2020-03-31T23:59:59] }
zoned = { bounds = [2020-01-01T00:00:00, 2020-03-31T23:59:59] }
"""
MOMENTS = (
    "2020-01-01 00:00:00", "2020-03-31 23:59:59", "2020-02-29 12:34:56.789012", "1969-12-31 23:59:59", None,
    "9999-12-31 23:59:59.999999", "infinity", "-infinity", "0001-01-01 00:00:00",
)  # fmt: skip
FORMS = (
    "SELECT date_trunc('month', {}), COUNT(*) FROM event GROUP BY 1",
    "SELECT extract(hour FROM {}), COUNT(*) FROM event GROUP BY 1",
    "SELECT COUNT(*) FROM event WHERE {} >= TIMESTAMP '2020-02-01 00:00:00'",
    "SELECT MEDIAN({}), COUNT(DISTINCT {}) FROM event",
    "SELECT {}, COUNT(DISTINCT who) FROM event GROUP BY 1",
    "SELECT CAST({} AS DATE), COUNT(*) FROM event GROUP BY 1",
    "SELECT COUNT(*) FROM (SELECT who, {} AS a, MIN({}) AS b FROM event GROUP BY who, {}) t WHERE a = b",
    "SELECT extract(hour FROM a), COUNT(*) FROM (SELECT who, {} AS a FROM event GROUP BY who, {}) t GROUP BY 1",
    "SELECT extract(hour FROM a.{}), COUNT(*) FROM event a JOIN event b ON a.who = b.who GROUP BY 1",
    "SELECT extract(hour FROM a), COUNT(*) FROM (SELECT {} AS a FROM event UNION ALL SELECT {} FROM event) t GROUP BY 1",
    "SELECT SUM(k) FROM (SELECT ROW_NUMBER() OVER (PARTITION BY who ORDER BY {}) AS k FROM event) t WHERE k BETWEEN 1 AND 3",
)


@pytest.fixture(scope="module")
def zones(tmp_path_factory: pytest.TempPathFactory, engine: PostgresServer | None) -> Iterator[World]:
    folder: Path = tmp_path_factory.mktemp("zones")
    policy = parse_policy(POLICY, folder / "laws.toml")
    with world(folder, policy=policy, schema=SCHEMA, server=engine) as made:
        made.settle(_load, None)
        made.connection.execute("SET GLOBAL TimeZone = 'Asia/Kathmandu'")
        yield made


def _load(connection: duckdb.DuckDBPyConnection, database: object, order: int = 0) -> None:
    for number, moment in enumerate(MOMENTS):
        zoned = None if moment is None else moment if "inf" in moment else f"{moment}+00"
        connection.execute("INSERT INTO event VALUES (?, ?, ?)", [number % 2, moment, zoned])


@pytest.mark.parametrize("form", FORMS)
def test_a_moment_with_a_zone_is_the_moment_in_utc(zones: World, form: str) -> None:
    found = []
    for column in ("seen", "zoned"):
        plan = zones.plan(form.replace("{}", column))
        with zones.backend.snapshot() as snapshot:
            found.append([measure_release(release, snapshot) for release in plan.releases])
    assert found[0] == found[1]


PUBLIC = "CREATE TABLE term (name VARCHAR, starts TIMESTAMPTZ)"
ASKED = {
    "SELECT starts FROM term ORDER BY 1": [datetime(2026, 1, 1), datetime(2026, 2, 1), None],
    "SELECT extract(hour FROM starts) AS h, COUNT(*) FROM term GROUP BY 1 ORDER BY 1": [0, None],
    "SELECT name FROM term WHERE starts = TIMESTAMP '2026-02-01 00:00:00'": ["b"],
    "SELECT t.name, COUNT(*) AS n FROM event e JOIN term t ON t.starts = e.zoned GROUP BY t.name ORDER BY n DESC LIMIT 1": ["b"],
}  # fmt: skip


@pytest.mark.parametrize("sql", ASKED)
def test_public_moments_are_in_utc_too(tmp_path: Path, sql: str) -> None:
    policy = parse_policy(POLICY + "[tables.term]\npublic = true\n", tmp_path / "laws.toml")
    with world(tmp_path, policy=policy, schema=f"{SCHEMA}; {PUBLIC}") as made:
        made.connection.execute(
            "SET GLOBAL TimeZone = 'Asia/Kathmandu'; INSERT INTO term VALUES ('a', '2026-01-01 00:00:00+00'), "
            "('b', '2026-02-01 00:00:00+00'), ('c', NULL);"
            "INSERT INTO event SELECT i, NULL, '2026-02-01 00:00:00+00' FROM range(40) AS t (i)"
        )
        store = open_ledger(policy, create=True)
        with Session(
            Dataset(policy, made.backend, store, warm_sealed()), "tester", _noise=ZeroNoise()
        ) as session:
            assert [row[0] for row in session.execute(sql).rows] == ASKED[sql]
