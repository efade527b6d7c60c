"""NTILE over people is the statement with released percentiles that it stands for: same texts, noise, charge (1.14)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from dpsql import Session
from dpsql.engine.dataset import Dataset, open_ledger
from dpsql.errors import Refusal
from dpsql.policy import load_policy
from dpsql.testing.injected_noise import ZeroNoise
from dpsql.tests.support.duckdb_pool import empty_duckdb, warm_sealed
from dpsql.tests.support.postgres_server import PostgresServer

from .measured import engine_of

POLICY = """
database = "duckdb:rows.duckdb"
ledger = "sqlite:ledger.db"
[privacy]
epsilon = 1000
[defaults]
epsilon = 10
max_epsilon = 10
[tables.person]
unit = "id"
[tables.person.columns]
age = { bounds = [0, 1000] }
city = { values = ["a", "b"] }
name = {}
[tables.loan]
unit = { column = "person", references = "person.id" }
max_rows = 3
[tables.loan.columns]
fee = { bounds = [0, 100] }
"""
ROWS = """
CREATE TABLE person (id INTEGER PRIMARY KEY, age INTEGER, city VARCHAR, name VARCHAR);
CREATE TABLE loan (id INTEGER PRIMARY KEY, person INTEGER NOT NULL REFERENCES person (id), fee INTEGER);
INSERT INTO person SELECT i, CASE WHEN i <= 800 THEN i END, CASE WHEN i % 2 = 0 THEN 'a' ELSE 'b' END, 'n' || i
FROM generate_series(1, 840) AS g(i);
INSERT INTO loan SELECT i, 1 + i % 840, i % 100 FROM generate_series(1, 1680) AS g(i);
"""


@pytest.fixture
def session(tmp_path: Path, engine: PostgresServer | None) -> Iterator[Session]:
    (tmp_path / "policy.toml").write_text(POLICY)
    policy = load_policy(tmp_path / "policy.toml")
    with ExitStack() as stack:
        connection = stack.enter_context(empty_duckdb())
        connection.execute(ROWS)
        store = open_ledger(policy, create=True)
        twin, backend = engine_of(stack, connection, policy, engine)
        if twin is not None:
            twin.refresh()
        yield stack.enter_context(
            Session(Dataset(policy, backend, store, warm_sealed()), "tester", _noise=ZeroNoise())
        )


def _tiles(window: str, of: str = "person") -> str:
    return (
        f"SELECT part, count(*) AS n FROM (SELECT {window} AS part FROM {of}) t GROUP BY part ORDER BY part"
    )


@pytest.mark.parametrize(
    ("window", "sizes"),
    [
        ("ntile(4) OVER (ORDER BY age)", (200, 200, 200, 240)),  # NULL is in the last one
        ("ntile(4) OVER (ORDER BY age DESC)", (240, 200, 200, 200)),  # and in the first
        ("ntile(2) OVER (ORDER BY age)", (400, 440)),
        ("ntile(8) OVER (ORDER BY age)", (*(7 * (100,)), 140)),
    ],
)
def test_parts_are_of_equal_shares(session: Session, window: str, sizes: tuple[int, ...]) -> None:
    rows = session.execute(_tiles(window)).rows
    assert [row[0] for row in rows] == list(range(1, len(sizes) + 1))
    assert all(abs(row[1] - size) <= 4 for row, size in zip(rows, sizes, strict=True)), rows
    assert sum(row[1] for row in rows) == 840


def test_it_is_the_statement_that_it_stands_for(session: Session) -> None:
    ends = ", ".join(f"percentile_disc({place}) WITHIN GROUP (ORDER BY fee) AS q{n}"
                     for n, place in enumerate(("0.25", "0.5", "0.75"), 1))  # fmt: skip
    by_hand = (
        "SELECT part, sum(fee) AS n FROM (SELECT fee, CASE WHEN fee <= q1 THEN 1 WHEN fee <= q2 THEN 2 WHEN fee <= q3 THEN "
        f"3 ELSE 4 END AS part FROM loan CROSS JOIN (SELECT {ends} FROM loan) q) t GROUP BY part ORDER BY part"
    )
    written = "SELECT part, sum(fee) AS n FROM (SELECT fee, ntile(4) OVER (ORDER BY fee) AS part FROM loan) t GROUP BY part ORDER BY part"
    one, other = (session.explain(sql).plan for sql in (written, by_hand))
    assert [release.queries(range(len(release.measurements))) for release in one.releases] == [
        release.queries(range(len(release.measurements))) for release in other.releases
    ]
    answer = session.execute(written)
    again = session.execute(by_hand)
    assert answer.rows == again.rows
    assert answer.receipt is not None
    assert answer.receipt.epsilon == 10
    assert again.receipt is not None
    assert again.receipt.epsilon == 0  # all of it was stored


@pytest.mark.parametrize(
    "window",
    [
        "ntile(1) OVER (ORDER BY age)",
        "ntile(21) OVER (ORDER BY age)",
        "ntile(4) OVER (ORDER BY name)",
        "ntile(4) OVER (ORDER BY age, id)",
        "ntile(4) OVER (ORDER BY age NULLS FIRST)",
        "ntile(4) OVER (PARTITION BY city ORDER BY age)",
        "percent_rank() OVER (ORDER BY age)",
        "rank() OVER (ORDER BY age)",
    ],
)
def test_other_windows_over_people_are_refused(session: Session, window: str) -> None:
    with pytest.raises(Refusal) as refused:
        session.execute(_tiles(window))
    assert refused.value.sqlstate == "PV003"
    assert ("ntile(k) OVER (ORDER BY x)" in (refused.value.hint or "")) is not window.startswith("rank")
