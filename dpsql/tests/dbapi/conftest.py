"""A small dataset with every type, on a connection that the caller owns; a real ledger and a real policy file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import duckdb
import pytest

import dpsql
from dpsql.engine.dataset import open_ledger
from dpsql.policy import load_policy
from dpsql.tests.support.prototype import made_once

POLICY = """
database = "duckdb:people.duckdb"
ledger = "sqlite:people.db"
[privacy]
epsilon = 2
[defaults]
epsilon = 0.1
max_epsilon = 1
[tables.person]
unit = "id"
[tables.person.columns]
age = { bounds = [0, 120] }
city = { values = ["north", "south"] }
[tables.thing]
public = true
[tables.number]
public = true
[analysts.alice]
epsilon = 0.15
"""
SCHEMA = """
CREATE TABLE person (id INTEGER PRIMARY KEY, age INTEGER, city TEXT);
INSERT INTO person SELECT i, i % 100, CASE WHEN i % 2 = 0 THEN 'north' ELSE 'south' END FROM range(2000) AS r(i);
CREATE TABLE thing (
    small SMALLINT, whole INTEGER, big BIGINT, money DECIMAL(9, 2), single REAL, double DOUBLE,
    flag BOOLEAN, name TEXT, day DATE, moment TIMESTAMP);
INSERT INTO thing VALUES
    (1, 2, 9007199254740993, 12.50, 1.5, 0.1, true, 'a ''quoted'' % ? :x', '2020-02-29', '2020-02-29 12:30:00.000001'),
    (NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
CREATE TABLE number (i BIGINT);
INSERT INTO number SELECT i FROM range(10) AS r(i);
"""
COUNT = "SELECT COUNT(*) AS n FROM person"

Connect = Callable[..., dpsql.Connection]


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    """The policy's path; its ledger has nothing spent, its database file has the tables."""
    return make(tmp_path)


@made_once
def make(tmp_path: Path) -> Path:
    with duckdb.connect(str(tmp_path / "people.duckdb")) as database:
        database.execute(SCHEMA)
    path = tmp_path / "people.toml"
    path.write_text(POLICY)
    open_ledger(load_policy(path), create=True).close()
    return path


@pytest.fixture
def connect(policy: Path) -> Iterator[Connect]:
    """Open connections that are closed at the end."""
    with ExitStack() as stack:

        def open_one(*arguments: Any, **options: Any) -> dpsql.Connection:
            return stack.enter_context(dpsql.connect(policy, *arguments, **options))

        yield open_one


@pytest.fixture
def connection(connect: Connect) -> dpsql.Connection:
    return connect()


def left(connection: dpsql.Connection) -> str:
    """Return what is left of the budget, as SHOW says it."""
    row = connection.execute("SHOW dpsql.budget").fetchone()
    assert row is not None
    return str(row[0]).split()[0]
