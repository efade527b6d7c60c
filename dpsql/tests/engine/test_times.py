"""Times of day, `x::time`: over people's rows as the whole microseconds that they are, above as times."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from dpsql.engine import Session
from dpsql.engine.dataset import open_ledger
from dpsql.errors import Refusal
from dpsql.policy import load_policy

POLICY = """
database = "duckdb:people.duckdb"
ledger = "sqlite:people.db"
[privacy]
epsilon = 9000
[defaults]
epsilon = 10
max_epsilon = 10
[tables.visit]
unit = "person_id"
max_rows = 3
[tables.visit.columns]
seen = { bounds = [2020-01-01T00:00:00, 2024-12-31T23:59:59] }
[tables.place]
public = true
"""
SCHEMA = """
CREATE TABLE visit (id INTEGER PRIMARY KEY, person_id INTEGER NOT NULL, seen TIMESTAMP);
INSERT INTO visit SELECT i, i // 3,
    TIMESTAMP '2021-01-01' + to_seconds(CAST((i * 7919) % 86400 AS BIGINT)) + to_days(CAST(i % 700 AS INTEGER))
FROM range(6000) AS r(i);
CREATE TABLE place (code INTEGER PRIMARY KEY, opened TIMESTAMP);
INSERT INTO place VALUES (1, '2020-01-01 09:30:00'), (2, '1969-12-31 23:59:59.5'), (3, NULL);
"""
OFF = 12
"""Farther than this a count at epsilon 10, of three rows a person, is less than once in e^40."""


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    folder: Path = tmp_path_factory.mktemp("times")
    with duckdb.connect(str(folder / "people.duckdb")) as database:
        database.execute(SCHEMA)
    (folder / "people.toml").write_text(POLICY)
    open_ledger(load_policy(folder / "people.toml"), create=True).close()
    with Session.open(folder / "people.toml") as opened:
        yield opened


def rows(session: Session, sql: str) -> list[tuple[Any, ...]]:
    return list(session.execute(sql).rows)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) FROM visit WHERE seen::time >= '09:00'",
        "SELECT COUNT(*) FROM visit WHERE CAST(seen AS time) BETWEEN TIME '09:00' AND '17:30:00'",
        "SELECT date_trunc('hour', seen)::time AS t, COUNT(*) FROM visit WHERE seen IS NOT NULL GROUP BY 1 ORDER BY 1",
        "SELECT time_bucket(INTERVAL '15 minutes', seen)::time AS t, COUNT(*) FROM visit WHERE seen IS NOT NULL GROUP BY 1 ORDER BY 1",
        "SELECT COUNT(*) FROM (SELECT person_id, MIN(seen::time) AS first FROM visit GROUP BY person_id) WHERE first < '06:00'",
        "SELECT extract(hour FROM seen::time)::integer AS h, COUNT(*) FROM visit WHERE seen IS NOT NULL GROUP BY 1 ORDER BY 1",
        "SELECT date_trunc('hour', seen)::time::text AS t, COUNT(*) FROM visit WHERE seen IS NOT NULL GROUP BY 1 ORDER BY 1",
    ],
)
def test_it_is_the_engines_own_answer(session: Session, sql: str) -> None:
    asked = sql.replace(
        "time_bucket(INTERVAL '15 minutes', seen)", "date_bin('15 minutes', seen, TIMESTAMP '2000-01-01')"
    )
    with duckdb.connect() as database:
        database.execute(SCHEMA)
        known = database.execute(sql).fetchall()
    found = rows(session, asked)
    assert [row[:-1] for row in found] == [row[:-1] for row in known]
    assert all(abs(one[-1] - other[-1]) <= OFF for one, other in zip(found, known, strict=True))


def test_ends_and_the_most_frequent_are_times(session: Session) -> None:
    ((first, last),) = rows(session, "SELECT MIN(seen::time), MAX(seen::time) FROM visit")
    assert datetime.time(0) <= first < datetime.time(1) < datetime.time(23) < last
    ((often,),) = rows(
        session, "SELECT mode() WITHIN GROUP (ORDER BY date_trunc('hour', seen)::time) FROM visit"
    )
    assert often.minute == 0


def test_above_the_release_it_is_a_time(session: Session) -> None:
    sql = "SELECT opened::time, opened::time::text, opened::time > '09:45', '09:00'::time FROM place ORDER BY code"
    assert rows(session, sql) == [
        (datetime.time(9, 30), "09:30:00", False, datetime.time(9)),
        (datetime.time(23, 59, 59, 500_000), "23:59:59.5", True, datetime.time(9)),
        (None, None, None, datetime.time(9)),
    ]
    assert rows(
        session, "SELECT COUNT(*) FROM place WHERE opened::time = $1::time".replace("$1", "'09:30'")
    ) == [(1,)]
    (found,) = session.execute(
        "SELECT COUNT(*) FROM place WHERE opened::time < $1", (datetime.time(12),)
    ).rows
    assert found == (1,)


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("SELECT seen::time, COUNT(*) FROM visit GROUP BY 1", "PV103"),
        ("SELECT COUNT(*) FROM visit WHERE 'at ' || seen::time = 'at 9'", "PV202"),
        ("SELECT COUNT(*) FROM visit WHERE seen::time > '24:00'", "22023"),
        ("SELECT AVG(seen::time) FROM visit", "42883"),
        ("SELECT COUNT(*) FROM visit WHERE seen::date::time = '00:00'", "42804"),
        ("SELECT opened::date::time FROM place", "42804"),
        ("SELECT seen::timetz FROM visit", "0A000"),
        ("CREATE TABLE t AS SELECT opened::time AS at FROM place", "0A000"),
    ],
)
def test_what_is_no_number_of_a_day_is_refused(session: Session, sql: str, code: str) -> None:
    with pytest.raises(Refusal) as refused:
        session.execute(sql)
    assert refused.value.sqlstate == code
    assert refused.value.hint


def test_hours_are_told_beside_months_and_days(session: Session) -> None:
    """Of one table all are parts of, whose rounding adds more than a million parts to a sum of many of its cells."""
    for key in ("date_trunc('month', seen)", "date_trunc('hour', seen)::time", "date_trunc('quarter', seen)"):
        whole = f"SELECT {key} AS k, COUNT(*) FROM visit WHERE seen BETWEEN '2021-01-01' AND '2021-12-31' GROUP BY 1"
        found = rows(session, whole)
        assert abs(sum(row[1] for row in found) - 3277) < 60
        assert rows(session, whole) == found
