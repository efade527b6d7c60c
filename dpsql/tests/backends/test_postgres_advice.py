"""The owner is told of large tables whose rows' owners no index lists."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpsql.backends import open_backend
from dpsql.backends.postgres_schema import missing_indexes
from dpsql.policy import build_catalog, parse_policy
from dpsql.tests.support.postgres_server import PostgresServer

_TABLES = """
CREATE TABLE owner (id int PRIMARY KEY);
CREATE TABLE visit (day int, "Owner" int NOT NULL REFERENCES owner (id));
UPDATE pg_class SET reltuples = {rows} WHERE relname IN ('visit', 'owner')"""
_POLICY = """
database = "{url}"
ledger = "sqlite:advice-ledger.db"
[privacy]
epsilon = 1
[defaults]
epsilon = 0.1
[tables.owner]
unit = "id"
[tables.visit]
unit = {{ column = "Owner", references = "owner.id" }}
max_rows = 5
"""
ADVICE = (
    'database: no index on public.visit begins with "Owner", by which each statement counts a person\'s rows; '
    'run CREATE INDEX ON public.visit ("Owner")'
)


@pytest.mark.parametrize(
    ("rows", "index", "advised"),
    [
        (200_000, "", True),
        (99_999, "", False),
        (200_000, '("Owner", day)', False),
        (200_000, '(day, "Owner")', True),
        (200_000, '("Owner") WHERE day > 3', True),
    ],
)
def test_an_index_on_the_unit_is_advised(
    postgres: PostgresServer, tmp_path: Path, rows: int, index: str, advised: bool
) -> None:
    name = postgres.create_database()
    with postgres.admin(name) as owner:
        for statement in _TABLES.format(rows=rows).split(";"):
            owner.execute(statement.encode())
        if index:
            owner.execute(f"CREATE INDEX ON visit {index}".encode())
            owner.execute(f"UPDATE pg_class SET reltuples = {rows} WHERE relname = 'visit'".encode())
    policy = parse_policy(_POLICY.format(url=postgres.create_reader(name)), tmp_path / "advice.toml")
    backend = open_backend(policy.database, policy.tables)
    with backend.snapshot() as snapshot:
        found = missing_indexes(snapshot, build_catalog(policy, snapshot.schema()))
    assert backend.close_idle()
    assert [one.to_text() for one in found] == ([ADVICE] if advised else [])
