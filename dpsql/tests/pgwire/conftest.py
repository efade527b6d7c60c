"""A connection to a real Postgres of each major, for the tests that have it as their oracle."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from dpsql.tests.support.postgres_server import PostgresServer


@pytest.fixture(scope="module")
def connection(postgres: PostgresServer) -> Iterator[psycopg.Connection[Any]]:
    with postgres.admin() as connection:
        connection.execute("SET TimeZone = 'UTC'; SET bytea_output = 'hex'; SET extra_float_digits = 1")
        yield connection
