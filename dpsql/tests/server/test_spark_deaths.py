"""A Spark that loses a process under `dpsql serve`: a dead driver is a constant error, and what was charged stays so."""

from __future__ import annotations

import threading
import time
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from dpsql.engine.dataset import open_ledger
from dpsql.policy import load_policy
from dpsql.tests.support.spark_fixtures import require_spark
from dpsql.tests.support.spark_server import SparkServer

from .conftest import Served, run_server
from .test_spark import COUNT, World, make_world

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
            before = spent(world)
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
            assert spent(world) == before, "it was never asked, and costs nothing"
            again = failing(served, COUNT.replace("city", "spent"))
            assert again.sqlstate is not None
            assert "spark" not in str(again).lower()


def test_what_was_charged_when_the_driver_died_stays_charged(tmp_path: Path) -> None:
    """The query is sent after the charge, and asked once: law L5 where its answer never comes."""
    require_spark()
    with SparkServer() as server:
        world = make_world(tmp_path, server)
        with run_server(world.spark) as served:
            with served.connect() as connection:
                connection.execute(COUNT).fetchall()
            before = spent(world)
            errors: list[psycopg.Error] = []
            thread = threading.Thread(target=lambda: errors.append(failing(served, ABOVE.format(3))))
            thread.start()
            while spent(world) == before:
                assert thread.is_alive(), errors
            server.kill()
            thread.join(ENDED_SECONDS)
            assert not thread.is_alive()
            assert [error.sqlstate for error in errors] == ["58000"]
            assert spent(world) - before == 10 * 10**9


def spent(world: World) -> int:
    """Return the epsilon, in 1e-9, that is spent of the policy on Spark."""
    with closing(open_ledger(load_policy(world.spark), create=False)) as ledger:
        return ledger.spent().epsilon_nano


def failing(served: Served, sql: str) -> psycopg.Error:
    try:
        with served.connect() as connection:
            connection.execute(sql).fetchall()
    except psycopg.Error as error:
        return error
    raise AssertionError("it was answered")
