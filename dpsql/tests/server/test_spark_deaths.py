"""A Spark that loses a process under `dpsql serve`: a dead driver is a constant error."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import psycopg
import pytest

from dpsql.tests.support.spark_fixtures import require_spark
from dpsql.tests.support.spark_server import SparkServer

from .conftest import Served, run_server
from .test_spark import COUNT, make_world

pytestmark = pytest.mark.spark

ABOVE = "SELECT COUNT(*) AS n FROM visit WHERE spent > {}"
ENDED_SECONDS = 120
"""How long a client may wait for an error, at most, where the server is gone; it comes within seconds on a free machine."""


def test_a_dead_driver_is_a_constant_error(tmp_path: Path) -> None:
    """The words are the same as ever, whatever died, and the client is answered."""
    require_spark()
    with SparkServer() as server:
        world = make_world(tmp_path, server)
        with run_server(world.spark) as served:
            with served.connect() as connection:
                connection.execute(COUNT).fetchall()
            server.pause()  # it takes the statement, and does not answer it
            errors: list[psycopg.Error] = []
            thread = threading.Thread(target=lambda: errors.append(failing(served, ABOVE.format(3))))
            thread.start()
            time.sleep(2)
            assert not errors
            started = time.monotonic()
            server.kill()
            thread.join(ENDED_SECONDS)
            assert not thread.is_alive(), time.monotonic() - started
            (error,) = errors
            assert (error.sqlstate, str(error.diag.message_primary)) == (
                "58000", "the database could not answer this statement",
            )  # fmt: skip
            again = failing(served, COUNT.replace("city", "spent"))
            assert again.sqlstate is not None
            assert "spark" not in str(again).lower()


def failing(served: Served, sql: str) -> psycopg.Error:
    try:
        with served.connect() as connection:
            connection.execute(sql).fetchall()
    except psycopg.Error as error:
        return error
    raise AssertionError("it was answered")
