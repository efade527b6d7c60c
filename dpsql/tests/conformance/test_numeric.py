"""NUMERIC's NaN and infinity, which no other engine has: nothing raises, and both are clamped like the largest
value."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import psycopg
import pytest

from dpsql import Session
from dpsql.backends import PostgresBackend
from dpsql.engine.dataset import Dataset, open_ledger
from dpsql.errors import Refusal
from dpsql.policy import parse_policy
from dpsql.testing.injected_noise import ZeroNoise
from dpsql.tests.support.postgres_server import PostgresServer
from dpsql.tests.support.postgres_twin import READER, let_read

_POLICY = """
database = "postgresql://reader@/numbers"
ledger = "sqlite:numbers.db"
[privacy]
epsilon = 9999
delta = 0.9
[defaults]
epsilon = 1
max_epsilon = 10
delta = 1e-3
[tables.item]
unit = "id"
[tables.item.columns]
open = { bounds = [0, 10] }
stepped = { bounds = [0, 10], step = 0.01 }
fixed = { bounds = [0, 10] }
wide = { bounds = [0, 10] }
bare = {}
amount = { bounds = [0, 10] }
small = { bounds = [-0.001, 0.001] }
whole = {}
"""
_SCHEMA = """
CREATE DOMAIN amount AS numeric(10, 2) CHECK (VALUE >= 0 OR VALUE < 0);
CREATE TABLE item (
    id bigint PRIMARY KEY, open numeric, stepped numeric NOT NULL, fixed numeric(8, 3), wide numeric(60, 20),
    bare numeric, amount amount, small numeric(5, 5), whole numeric(3, 1));
"""
_EDGES = ["NaN", "NaN", "1e1000", "-1e1000", "1e-1000", "-1e-1000", "0", "-0.0", "10", "10.005", "9.995", "5e-324",
          "99999999999999999999999999999999999999", "1e38", "-1e38", "1e308", "1e309", "0.1234567890123456789"]  # fmt: skip
STATEMENTS = [
    pattern.format(column)
    for column in ("open", "stepped", "fixed", "wide", "bare", "amount", "small", "whole")
    for pattern in (
        "SELECT SUM({0}), COUNT({0}), COUNT(*) FROM item", "SELECT AVG({0}), VAR_POP({0}) FROM item",
        "SELECT {0}, COUNT(*) FROM item GROUP BY {0}", "SELECT COUNT(DISTINCT {0}) FROM item",
        "SELECT COUNT(*) FROM item WHERE {0} > 5 OR {0} IN (1, 2.5) OR {0} BETWEEN -1 AND 1",
        "SELECT COUNT(*) FROM item WHERE {0} IS NULL", "SELECT COUNT(*) FROM item WHERE {0} * {0} + 1 > {0}",
        "SELECT COUNT(*) FROM item WHERE {0} / 3 > 1 AND {0} % 7 < 3", "SELECT SUM(round({0}, 1)) FROM item",
        "SELECT COUNT(*) FROM item WHERE CAST({0} AS double precision) * 2 > 3", "SELECT SUM(sqrt(abs({0}))) FROM item",
        "SELECT COUNT(*) FROM item WHERE CAST({0} AS INTEGER) = 10", "SELECT floor({0}), COUNT(*) FROM item GROUP BY 1",
        "SELECT COUNT(*) FROM item WHERE greatest({0}, 3) = least({0}, 9)", "SELECT CAST({0} AS NUMERIC(6,1)), COUNT(*) FROM item GROUP BY 1",
        "SELECT COUNT(*) FROM item WHERE {0} > (SELECT AVG(open) FROM item)", "SELECT COUNT(*) FROM item a JOIN item b ON a.id = b.id AND a.{0} = b.open",
        "SELECT COUNT(*) FROM (SELECT LEAD({0}, 1, 0) OVER (PARTITION BY id ORDER BY id) AS x FROM item) AS t WHERE x * 2 <= -3",
        "SELECT COUNT(*) FROM (SELECT FIRST_VALUE({0}) OVER (PARTITION BY id ORDER BY id) AS x FROM item) AS t WHERE x + 7 > 3",
        "SELECT COUNT(*) FROM (SELECT id, MAX({0}) AS x FROM item GROUP BY id) AS t WHERE x * 2 > 3",
        "SELECT COUNT(*) FROM item WHERE {0} = CAST('1e30' AS double precision)", "SELECT COUNT(*) FROM item WHERE {0} > 1e30",
    )
]  # fmt: skip


Opened = tuple[psycopg.Connection[tuple[object, ...]], Session]


@pytest.fixture(scope="module")
def owner_and_session(tmp_path_factory: pytest.TempPathFactory, postgres: PostgresServer) -> Iterator[Opened]:
    with ExitStack() as stack:
        database = postgres.create_database()
        owner = stack.enter_context(postgres.admin(database))
        owner.execute(_SCHEMA.encode())
        let_read(owner, "public")
        folder: Path = tmp_path_factory.mktemp("numeric")
        policy = parse_policy(_POLICY, folder / "numbers.toml")
        backend = PostgresBackend(postgres.url(database, READER), policy.tables)
        session = Session(Dataset(policy, backend, open_ledger(policy, create=True)), _noise=ZeroNoise())
        session.execute("SET dpsql.reuse = off")
        session.execute("SET dpsql.epsilon = 0.01")
        yield owner, stack.enter_context(session)


def settle(owner: psycopg.Connection[tuple[object, ...]], cells: list[str]) -> None:
    """Give each cell thirty rows, in every column that can hold it."""
    owner.execute("TRUNCATE item")
    for number, cell in enumerate(cells):
        held = []
        for column in ("open", "stepped", "fixed", "wide", "bare", "amount", "small", "whole"):
            type_ = {
                "fixed": "numeric(8,3)",
                "wide": "numeric(60,20)",
                "amount": "numeric(10,2)",
                "small": "numeric(5,5)",
                "whole": "numeric(3,1)",
            }.get(column, "numeric")
            held.append(cell if can_hold(owner, cell, type_) else "0")
        owner.execute(
            "INSERT INTO item SELECT %s + i, %s, %s, %s, %s, %s, %s, %s, %s FROM generate_series(1, 30) AS i",
            [100 * number, *held],
        )


def can_hold(owner: psycopg.Connection[tuple[object, ...]], cell: str, type_: str) -> bool:
    try:
        owner.execute(f"SELECT '{cell}'::{type_}".encode())
    except psycopg.errors.NumericValueOutOfRange:
        return False
    return True


@pytest.mark.parametrize("sql", STATEMENTS)
def test_nothing_raises(
    owner_and_session: Opened,
    postgres: PostgresServer,
    sql: str,
) -> None:
    owner, session = owner_and_session
    if not owner.execute("SELECT 1 FROM item").fetchone():
        settle(owner, [*_EDGES, *(["Infinity", "-Infinity"] if postgres.major >= 14 else [])])
    with suppress(Refusal):
        session.execute(sql)


def test_most_statements_are_answered(
    owner_and_session: Opened,
) -> None:
    answered = 0
    for sql in STATEMENTS:
        with suppress(Refusal):
            owner_and_session[1].explain(sql)
            answered += 1
    assert answered >= 0.7 * len(STATEMENTS)


@pytest.mark.parametrize(
    ("cell", "clamped"),
    [
        ("NaN", 10),
        ("1e1000", 10),
        ("-1e1000", 0),
        ("1e-1000", 0),
        ("10.004", 10),
        ("Infinity", 10),
        ("-Infinity", 0),
    ],
)
@pytest.mark.parametrize("column", ["open", "stepped"])
def test_what_is_out_of_bounds_is_clamped(
    owner_and_session: Opened,
    postgres: PostgresServer,
    column: str,
    cell: str,
    clamped: int,
) -> None:
    if "Infinity" in cell and postgres.major < 14:
        pytest.skip("never: this NUMERIC has no infinity")
    owner, session = owner_and_session
    settle(owner, [cell])
    (row,) = session.execute(f"SELECT SUM({column}), COUNT(*) FROM item").rows
    owner.execute("TRUNCATE item")
    assert row == (30 * clamped, 30)
