"""What unread answers hold on a real server, by its own count: bounded, freed by a killed client, and refused beyond."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pytest

from dpsql.memory import MIB

from ..pgwire.frontend import SYNC, bind, execute, parse
from .conftest import COUNT, Served, left, make_dataset, run_server
from .raw import exchange

TELLING = """
import asyncio, json, os, sys, threading
from pathlib import Path
from dpsql.policy import load_policy
from dpsql.server import Options, Server
path = Path(sys.argv[1])
server = Server([load_policy(path)], Options(port=0, **json.loads(sys.argv[2])))
def tell():
    memory = server.databases[0].sessions.memory
    while not ended.wait(0.01):
        new = path.with_suffix(".new")
        new.write_text(json.dumps([memory.held, memory.in_files, memory.most]))
        os.replace(new, path.with_suffix(".held"))
ended = threading.Event()
telling = threading.Thread(target=tell)
telling.start()
try:
    asyncio.run(server.run())
finally:
    ended.set()
    telling.join()
"""
ROWS = 120_000
LONG = "x" * 150
"""More than the sockets take is behind it."""
WIDE = f"SELECT i, i * 2 AS a, i * 3 AS b, 'value ' || i || '{LONG}' AS c FROM many"
LIMITS = "\n[server]\ngrid = false\nmemory_mib = 128\nfiles_mib = 2048\n"


class Counted:
    """A server that tells what its answers hold."""

    def __init__(self, served: Served, path: Path) -> None:
        self.served, self._path = served, path.with_suffix(".held")

    def held(self) -> tuple[int, int, int]:
        """Return the bytes in memory, in files, and the most in memory so far."""
        memory, files, most = json.loads(self._path.read_text())
        return memory, files, most

    def wait(self, what: Callable[[int, int], bool]) -> None:
        """Wait until what is held is so."""
        deadline = time.monotonic() + 300
        while not what(*self.held()[:2]):
            assert time.monotonic() < deadline, self.held()
            time.sleep(0.02)

    def ask_unread(self, stack: ExitStack, **options: Any) -> psycopg.Connection[Any]:
        """Ask for a large answer, and read nothing of it."""
        connection = self.served.connect(**options)
        stack.callback(connection.close)
        connection.pgconn.send_query(WIDE.encode())
        return connection


@pytest.fixture
def counted(tmp_path: Path) -> Iterator[Counted]:
    policy = make_dataset(tmp_path)
    with duckdb.connect(str(tmp_path / "people.duckdb")) as database:
        database.execute(f"CREATE TABLE many AS SELECT i FROM range({ROWS}) AS r(i)")
    policy.write_text(
        policy.read_text().replace("[tables.thing]", "[tables.many]\npublic = true\n[tables.thing]") + LIMITS
    )
    with run_server(policy, code=TELLING) as served:
        yield Counted(served, policy)


def test_unread_answers_are_bounded_and_a_killed_client_frees_its_own(counted: Counted) -> None:
    with ExitStack() as stack:
        unread = [counted.ask_unread(stack) for _ in range(6)]
        counted.wait(lambda memory, files: memory == 6 * 4 * MIB)
        _, files, most = counted.held()
        assert most <= 6 * 5 * MIB, "an answer is never in memory as a whole"
        assert files > 6 * ROWS * 10
        with counted.served.connect(user="poor") as other:
            assert other.execute(COUNT).fetchone(), "another analyst is answered meanwhile"
        unread[0].pgconn.finish()
        counted.wait(lambda memory, _: memory == 5 * 4 * MIB)
        assert counted.held()[1] * 6 == pytest.approx(files * 5, rel=0.01)
        for one in unread[1:3]:
            rows = 0
            while (result := one.pgconn.get_result()) is not None:
                rows += result.ntuples
            assert rows == ROWS, "who reads late reads all"
    counted.wait(lambda memory, files: (memory, files) == (0, 0))


def test_beyond_the_budget_an_analyst_waits_and_is_refused_for_free(counted: Counted) -> None:
    with ExitStack() as stack, counted.served.connect() as last:
        before = left(last)
        for _ in range(7):  # of 32 MiB, an analyst's quarter, seven times four are held
            counted.ask_unread(stack)
        counted.wait(lambda memory, files: memory == 7 * 4 * MIB)
        with pytest.raises(psycopg.errors.OutOfMemory, match="kept for you") as caught:
            last.execute(f"{WIDE} LIMIT 60000").fetchall()
        assert "nothing was charged" in str(caught.value.diag.message_detail)
        assert left(last) == before
        with counted.served.connect(user="poor") as other:
            assert len(other.execute(f"{WIDE} LIMIT 60000").fetchall()) == 60_000
    with counted.served.connect() as again:
        counted.wait(lambda memory, files: memory == 0)
        assert len(again.execute(WIDE).fetchall()) == ROWS
    assert not [line for line in counted.served.lines if line["event"] == "engine failed"], (
        "a limit is no failure"
    )


def test_cursors_hold_their_answers_in_files_until_they_are_closed(counted: Counted) -> None:
    with counted.served.connect() as connection:
        for number in range(3):
            connection.execute(f"DECLARE c{number} SCROLL CURSOR WITH HOLD FOR {WIDE} ORDER BY i")
            assert connection.execute(f"FETCH 2 FROM c{number}").fetchall()[1][0] == 1
        assert connection.execute("FETCH LAST FROM c1").fetchall() == [
            (ROWS - 1, 2 * (ROWS - 1), 3 * (ROWS - 1), f"value {ROWS - 1}{LONG}")
        ]
        assert [row[0] for row in connection.execute("FETCH BACKWARD 2 FROM c1")] == [ROWS - 2, ROWS - 3]
        counted.wait(lambda memory, files: memory == 3 * 4 * MIB)
        connection.execute("CLOSE c0")
        counted.wait(lambda memory, files: memory == 2 * 4 * MIB)
        connection.execute("CLOSE ALL")
        counted.wait(lambda memory, files: (memory, files) == (0, 0))


def test_a_copy_of_a_large_answer(counted: Counted) -> None:
    with counted.served.connect() as connection, connection.cursor().copy(f"COPY ({WIDE}) TO STDOUT") as copy:
        assert sum(1 for _ in copy.rows()) == ROWS
    counted.wait(lambda memory, files: (memory, files) == (0, 0))
    assert counted.held()[2] <= 6 * MIB


def test_what_was_read_is_not_held_by_a_connection_that_stays(counted: Counted) -> None:
    with counted.served.connect() as connection:
        assert len(connection.execute(WIDE).fetchall()) == ROWS
        counted.wait(lambda memory, files: (memory, files) == (0, 0))


def test_small_answers_of_portals_are_given_back_when_these_are_closed(counted: Counted) -> None:
    with counted.served.connect() as connection:
        for end in ("COMMIT", "ROLLBACK", "SELECT nonsense FROM"):
            connection.execute("BEGIN")
            for number in range(5):
                some = (
                    parse("", "SELECT i FROM number LIMIT 1000")
                    + bind(f"p{number}")
                    + execute(f"p{number}", 1)
                )
                assert exchange(connection, some + SYNC)[-2][0] == "s"
            counted.wait(lambda memory, _: memory > 5 * 100_000)
            if end.startswith("SELECT"):
                with pytest.raises(psycopg.Error):
                    connection.execute(end)
                connection.execute("ROLLBACK")
            else:
                connection.execute(end)
            counted.wait(lambda memory, files: (memory, files) == (0, 0))
