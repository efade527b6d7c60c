"""Whole sessions over the random schema: real DuckDB, real ledger file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pytest

from dpsql import Session
from dpsql.backends import DuckDBBackend
from dpsql.engine.session import open_ledger
from dpsql.mechanisms import LaplaceNoise, Noise
from dpsql.policy import Policy
from dpsql.testing.random_databases import SCHEMA, Database, load, policy_of


@dataclass(repr=False)
class Desk:
    """A session with the connection under it; `settle` puts a database's rows in."""

    session: Session
    connection: duckdb.DuckDBPyConnection
    policy: Policy

    def settle(self, database: Database, order: int = 0) -> None:
        load(self.connection, database, order)


OpenDesk = Callable[..., Desk]


def make_desk(stack: ExitStack, folder: Path, noise: Noise | None = None, epsilon: str = "1") -> Desk:
    """Open a ledger in `folder` and a database in memory, and a session over both."""
    policy = policy_of(folder, epsilon=epsilon)
    connection = stack.enter_context(duckdb.connect())
    connection.execute(SCHEMA)
    store = open_ledger(policy, create=True)
    session = Session(policy, DuckDBBackend.over(connection), store, "tester", _noise=noise or LaplaceNoise())
    stack.enter_context(session)
    return Desk(session, connection, policy)


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[OpenDesk]:
    """Open desks, each in a folder of its own unless one is given."""
    with ExitStack() as stack:
        count = 0

        def open_one(noise: Noise | None = None, epsilon: str = "1", folder: Path | None = None) -> Desk:
            nonlocal count
            count += 1
            place = folder or tmp_path / f"desk{count}"
            place.mkdir(exist_ok=True)
            return make_desk(stack, place, noise, epsilon)

        yield open_one
