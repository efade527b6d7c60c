from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from dpsql.system_catalog import SystemCatalog
from dpsql.tests.support.postgres_server import PostgresServer, find_servers

from .dataset import campus, definitions, open_catalog


@pytest.fixture(scope="package")
def catalog() -> Iterator[SystemCatalog]:
    found = open_catalog(campus())
    yield found
    found.close()


@pytest.fixture(scope="package")
def postgres() -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    """A Postgres 15 that has the same objects, as the analyst sees it."""
    installation = next((found for found in find_servers() if found.major == 15), None)
    if installation is None:
        pytest.skip("no Postgres 15 on this machine; the stored rows are compared all the same")
    with PostgresServer(installation) as server:
        server.create_database("campus")
        with server.admin("campus") as administrator:
            for statement in definitions(campus()):
                administrator.execute(statement.encode())
        with psycopg.connect(server.url("campus", "ann"), autocommit=True) as connection:
            yield connection
