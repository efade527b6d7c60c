"""A batch that is sent again: the same reply without being read again, and never one that is no longer true.

Each law is held by the server as it is, and broken by the mutants that name it.
"""

from __future__ import annotations

import os
import signal
import socket
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pytest
from click.testing import CliRunner

from dpsql.cli.application import program
from dpsql.pgwire import Bind, Describe, Event, Execute, Parse, Query, Sync, Target
from dpsql.server import database as replies
from dpsql.server.database import LONGEST, Replies, Reply, is_batch, statement_name
from dpsql.tests.support.length import long_where

from ..pgwire.frontend import bind, close, describe, execute, parse, query, tagged
from .conftest import COUNT, POLICY, Served, make_dataset, run_server
from .raw import exchange

SYNC = tagged("S")
GROUPS = "SELECT city, COUNT(*) AS n FROM person GROUP BY city"
WATCHED = """
import asyncio, json, sys, zlib
from pathlib import Path
from dpsql.policy import load_policy
from dpsql.server import Options, Server, conversation, state, worker
from dpsql.server import database as replies
from dpsql.server.conversation import Conversation
from dpsql.server.state import PreparedStatement
own = Conversation.repeat
async def repeat(self, data):
    found = await own(self, data)
    sys.stderr.write(json.dumps({"event": "asked", "again": found, "of": zlib.crc32(data)}) + "\\n")
    return found
Conversation.repeat = repeat
#MUTANT
asyncio.run(Server([load_policy(Path(sys.argv[1]))], Options(port=0)).run())
"""


_OPEN: list[psycopg.Connection[Any]] = []


@pytest.fixture(autouse=True)
def _close_connections() -> Iterator[None]:
    yield
    while _OPEN:
        _OPEN.pop().close()


def asked(served: Served, data: bytes) -> list[bool]:
    """Return of each time that these bytes came whether their reply was remembered."""
    return [line["again"] for line in list(served.lines) if line.get("of") == zlib.crc32(data)]


class Wire:
    """A connection by hand; says of each batch whether its reply was a remembered one."""

    def __init__(self, served: Served, **options: Any) -> None:
        self.served, self.connection = served, served.connect(**options)
        _OPEN.append(self.connection)

    def send(self, data: bytes) -> tuple[bool, list[tuple[str, bytes]]]:
        """Return whether the reply was remembered, and what it was."""
        before = len(asked(self.served, data))
        replied = exchange(self.connection, data)
        while len(told := asked(self.served, data)) == before:  # the reply comes first
            time.sleep(0.002)
        return told[before], replied

    def rows(self, data: bytes) -> list[bytes]:
        return [body for kind, body in self.send(data)[1] if kind == "D"]

    def remembered(self, data: bytes) -> tuple[bool, list[tuple[str, bytes]]]:
        """Return as `send` does, of the first of four that was remembered: where another thread has the ledger at that
        moment, a look gives up."""
        for _ in range(3):
            again, replied = self.send(data)
            if again:
                return again, replied
        return self.send(data)

    def again(self, data: bytes) -> bool:
        """Return whether a batch that was sent twice is remembered after that."""
        self.send(data)
        self.send(data)
        return self.remembered(data)[0]


def notices(replied: list[tuple[str, bytes]]) -> str:
    return b"".join(body for kind, body in replied if kind == "N").decode()


def without_notices(replied: list[tuple[str, bytes]]) -> list[tuple[str, bytes]]:
    return [(kind, body) for kind, body in replied if kind != "N"]


def unnamed(sql: str, *values: str, binary: bool = False) -> bytes:
    formats = [1] if binary else []
    return (
        parse("", sql)
        + bind(values=[v.encode() for v in values], results=formats)
        + describe("P")
        + execute()
        + SYNC
    )


@contextmanager
def watched(folder: Path, mutant: str = "") -> Iterator[Served]:
    with run_server(make_dataset(folder), code=WATCHED.replace("#MUTANT", mutant)) as served:
        served.folder = folder  # type: ignore[attr-defined]  # for what the owner does meanwhile
        yield served


def owner(served: Served, *command: str) -> None:
    done = CliRunner().invoke(program, ["-P", str(served.folder / "people.toml"), *command])  # type: ignore[attr-defined]
    assert done.exit_code == 0, done.output


# --- laws --------------------------------------------------------------------------------------------------


def law_the_same_reply(served: Served) -> None:
    """Simple, extended, with values, in binary, and prepared: what is remembered is what was written."""
    wire = Wire(served)
    wire.connection.execute("PREPARE known AS SELECT COUNT(*) AS n FROM person WHERE age < 50")
    older = "SELECT COUNT(*) AS n FROM person WHERE age > $1"
    for batch in (
        query(GROUPS), unnamed(GROUPS), unnamed(GROUPS, binary=True), unnamed(older, "30"), unnamed(older, "40"),
        parse("", GROUPS) + bind() + describe("S") + execute() + SYNC,
        bind("", "known") + describe("P") + execute() + SYNC, bind("", "known") + execute() + SYNC,
    ):  # fmt: skip
        told = [wire.send(batch) for _ in range(5)]
        assert told[0][0] is False
        assert [again for again, _ in told][3:] == [True, True]
        assert all(without_notices(replied) == without_notices(told[0][1]) for _, replied in told)
        assert "answered before" in notices(told[-1][1])
        assert notices(told[-1][1]) == notices(told[2][1])


def law_what_is_left_is_of_now(served: Served) -> None:
    wire, other = Wire(served), Wire(served)
    assert wire.again(query(COUNT))
    before = notices(wire.send(query(COUNT))[1])
    other.connection.execute("SELECT SUM(age) FROM person")
    wire.send(query(COUNT))
    again = wire.remembered(query(COUNT))
    assert again[0]
    assert notices(again[1]) != before
    assert notices(again[1]).count("answered before") == 1
    wire.connection.execute("SET client_min_messages = warning")
    assert notices(wire.send(query(COUNT))[1]) == ""


def law_a_refresh_ends_it(served: Served) -> None:
    """New noise is told by whichever protocol asks first, and by the other after it."""
    wire = Wire(served)
    assert wire.again(query(COUNT))
    assert wire.again(unnamed(COUNT))
    for _ in range(3):  # that two draws are the same is likely once
        owner(served, "refresh")
        again, replied = wire.send(query(COUNT))
        assert not again
        assert "charged" in notices(replied)
        told = [body for kind, body in replied if kind == "D"]
        assert wire.rows(unnamed(COUNT)) == told
        assert wire.rows(unnamed(COUNT)) == told


def law_a_prepared_name_is_what_it_stands_for(served: Served) -> None:
    wire = Wire(served)
    batch, seen = bind("", "one") + execute() + SYNC, []
    for condition in ("age < 20", "age >= 20"):
        wire.connection.execute(f"PREPARE one AS SELECT COUNT(*) FROM person WHERE {condition}")
        assert wire.again(batch)
        seen.append(wire.rows(batch))
        wire.connection.execute("DEALLOCATE one")
        assert wire.send(batch)[1][0][0] == "E"
    assert seen[0] != seen[1]


def law_a_block_is_told(served: Served) -> None:
    wire = Wire(served)
    for batch in (query(COUNT), unnamed(COUNT)):
        assert wire.again(batch)
        wire.connection.execute("BEGIN")
        for _ in range(3):
            again, replied = wire.send(batch)
            assert (again, replied[-1]) == (False, ("Z", b"T"))
        with pytest.raises(psycopg.Error):
            wire.connection.execute("SELECT nonsense")
        again, replied = wire.send(batch)
        assert not again
        assert b"25P02" in replied[0][1]
        wire.connection.execute("ROLLBACK")
        assert wire.remembered(batch)[0]


def law_an_unnamed_statement_stays(served: Served) -> None:
    wire = Wire(served)
    later = bind() + execute() + SYNC
    for sql in (GROUPS, COUNT):
        assert wire.again(unnamed(sql))
    for sql in (GROUPS, COUNT, GROUPS):
        again, replied = wire.remembered(unnamed(sql))
        assert again
        assert wire.rows(later) == [body for kind, body in replied if kind == "D"]
    assert wire.again(query(GROUPS))
    assert b"26000" in wire.send(later)[1][0][1], "a Query closes it"


def law_settings_are_those_of_now(served: Served) -> None:
    wire = Wire(served)
    assert wire.again(query(GROUPS))
    plain = wire.send(query(GROUPS))[1]
    for setting, is_other in (
        ("dpsql.intervals = 0.95", True), ("dpsql.intervals = off", False), ("application_name = 'x'", False),
        ("dpsql.intervals = 0.5", True), ("dpsql.intervals = off", False), ("TimeZone = 'UTC'", False),
    ):  # fmt: skip
        wire.connection.execute(f"SET {setting}")
        replied = [wire.send(query(GROUPS))[1] for _ in range(3)][-1]
        assert (without_notices(replied) != without_notices(plain)) is is_other
    wire.connection.execute("SET dpsql.epsilon = 0.3")
    again, replied = wire.send(query(GROUPS))
    assert not again
    assert "charged" in notices(replied)
    wire.connection.execute("SET dpsql.reuse = off")
    for _ in range(3):
        again, replied = wire.send(query(GROUPS))
        assert not again
        assert "charged" in notices(replied)


def law_another_statement_that_is_described_is_another_batch(served: Served) -> None:
    wire = Wire(served)
    batch = parse("", COUNT) + bind() + describe("S", "other") + execute() + SYNC
    for sql in ("SELECT 1 AS a", "SELECT 1 AS a, 2 AS b"):
        wire.connection.execute(f"PREPARE other AS {sql}")
        described = [wire.send(batch)[1] for _ in range(3)]
        assert [dict(replied)["T"][:2] for replied in described] == [bytes([0, sql.count("AS")])] * 3
        wire.connection.execute("DEALLOCATE other")


LAWS: tuple[Callable[[Served], None], ...] = (
    law_the_same_reply, law_what_is_left_is_of_now, law_a_refresh_ends_it, law_a_prepared_name_is_what_it_stands_for,
    law_a_block_is_told, law_an_unnamed_statement_stays, law_settings_are_those_of_now,
    law_another_statement_that_is_described_is_another_batch,
)  # fmt: skip

MUTANTS: dict[str, tuple[str, Callable[[Served], None]]] = {
    "the session is not asked": (
        "worker.Queries.recall = lambda self, reply: self._kept.setdefault(reply.text, self.worker.recall(reply.text, "
        "reply.values))\nworker.Queries._kept = {}",
        law_a_refresh_ends_it,
    ),
    "other rows do": (
        "worker.Queries.recall = lambda self, reply: self.worker.recall(reply.text, reply.values)",
        law_a_refresh_ends_it,
    ),
    "notices are remembered": (
        "own_parts = replies._notices\nreplies._notices = lambda sent: own_parts(sent) and (own_parts(sent)[1],) * 2",
        law_what_is_left_is_of_now,
    ),
    "notices are those of the first receipt": (
        "own_notices = worker.Queries.notices_again\nworker.Queries.notices_again = lambda self, answer, client: "
        "own_notices(self, self._kept.setdefault(0, answer), client)\nworker.Queries._kept = {}",
        law_what_is_left_is_of_now,
    ),
    "what is bound is not looked at": (
        "PreparedStatement.key = property(lambda self: None)\n"
        "worker.Queries.recall = lambda self, reply: self.worker.recall(reply.text, reply.values)",
        law_a_prepared_name_is_what_it_stands_for,
    ),
    "a block is not looked at": (
        "state.ConnectionState.is_bare = property(lambda self: True)", law_a_block_is_told,
    ),
    "nothing stays of a Parse": ("replies.Batch.parses = property(lambda self: False)", law_an_unnamed_statement_stays),
    "settings are not looked at, nor other rows": (
        "state.ConnectionState.settings = property(lambda self: None)\n"
        "worker.Queries.recall = lambda self, reply: self.worker.recall(reply.text, reply.values)",
        law_settings_are_those_of_now,
    ),
    "any messages are a batch": (
        "replies.is_batch = lambda events: True", law_another_statement_that_is_described_is_another_batch,
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with watched(tmp_path_factory.mktemp("replies")) as server:
        yield server


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
def test_law(served: Served, law: Callable[[Served], None]) -> None:
    law(served)


@long_where(lambda name: name not in [*MUTANTS][::3])
@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_breaks_its_law(tmp_path: Path, name: str) -> None:
    mutant, law = MUTANTS[name]
    with watched(tmp_path, mutant) as server, pytest.raises((AssertionError, psycopg.Error)):
        law(server)


# --- what is never remembered ------------------------------------------------------------------------------


def test_what_may_be_another_answer_next_time_is_read_each_time(served: Served) -> None:
    wire = Wire(served)
    wire.connection.execute("PREPARE q AS SELECT 1")
    for sql in (
        "SELECT now()", "SELECT CURRENT_DATE", f"{COUNT} WHERE CURRENT_DATE > DATE '2020-01-01'",
        "SELECT COUNT(*) FROM number WHERE i < 5", "SHOW dpsql.budget", "SHOW dpsql.epsilon",
        "SELECT count(*) FROM pg_catalog.pg_class", "EXECUTE q", "SELECT nonsense", f"{COUNT}; {COUNT}",
        f"BEGIN; {COUNT}; COMMIT", f"COPY ({COUNT}) TO STDOUT", "", "SET dpsql.epsilon = 0.1",
    ):  # fmt: skip
        assert not wire.again(query(sql)), sql
    for batch in (
        parse("", GROUPS) + bind() + execute("", 1) + SYNC, parse("", GROUPS) + SYNC,
        parse("", COUNT) + bind("p") + execute("p") + SYNC,
        parse("", COUNT) + bind() + execute() + close("S") + SYNC,
        parse("", COUNT) + bind() + execute() + execute() + SYNC,
        unnamed(COUNT) + unnamed(COUNT), query(f"{COUNT} /* {'x' * LONGEST} */"),
    ):  # fmt: skip
        assert not wire.again(batch)


def test_an_explanation_is_sent_again_while_nobody_writes_to_the_ledger(served: Served) -> None:
    wire, asked = Wire(served), query(f"EXPLAIN {COUNT}")
    assert wire.again(asked)
    wire.connection.execute("SELECT COUNT(*) FROM person WHERE age > 37")
    assert not wire.send(asked)[0]
    assert wire.again(asked)
    assert not wire.again(query(f"EXPLAIN (VERIFY) {COUNT}"))


def test_a_message_in_two_parts_is_answered_as_one(served: Served) -> None:
    wire = Wire(served)
    assert wire.again(query(COUNT))
    with socket.socket(fileno=os.dup(wire.connection.fileno())) as raw:
        raw.settimeout(300)
        for part in (query(COUNT)[:7], query(COUNT)[7:]):
            raw.sendall(part)
            while not asked(served, part):
                time.sleep(0.002)
        found = b""
        while not found.endswith(b"Z\0\0\0\5I"):
            found += raw.recv(65536)
        raw.setblocking(False)
    assert asked(served, query(COUNT)[:7]) == asked(served, query(COUNT)[7:]) == [False]
    assert wire.remembered(query(COUNT))[0]


def test_an_open_cursor_keeps_it_from_being_remembered(served: Served) -> None:
    wire = Wire(served)
    assert wire.again(query(COUNT))
    wire.connection.execute(f"DECLARE c CURSOR WITH HOLD FOR {GROUPS}")
    assert not wire.again(query(COUNT))
    wire.connection.execute("CLOSE c")
    assert wire.remembered(query(COUNT))[0]


def test_a_draw_of_the_same_numbers_ends_it(served: Served) -> None:
    """Whatever was drawn may make a stored answer better: it is put together anew."""
    wire, other = Wire(served), Wire(served)
    assert wire.again(query(COUNT))
    other.connection.execute("SET dpsql.epsilon = 0.5")
    other.connection.execute("SELECT city, COUNT(*), AVG(age) FROM person GROUP BY city")
    again, replied = wire.send(query(COUNT))
    assert not again
    assert wire.again(query(COUNT))
    assert without_notices(wire.send(query(COUNT))[1]) == without_notices(replied)


def test_counts_and_the_log_have_each_answer(tmp_path: Path) -> None:
    with watched(tmp_path) as served:
        wire = Wire(served)
        for _ in range(6):
            wire.send(query(COUNT))
        served.wait_for("answered", 6)
        lines = [line for line in served.lines if line["event"] == "answered"]
    assert [line["epsilon"] for line in lines] == ["0.1", *["0"] * 5]
    assert {line["left"] for line in lines} == {"499.9"}
    assert all(line["process"] == lines[0]["process"] and "ms" in line for line in lines)


def test_who_sees_less_is_not_answered_what_others_see(tmp_path: Path) -> None:
    path = make_dataset(tmp_path)
    path.write_text(POLICY.replace("[analysts.poor]", '[analysts.poor]\nhide = ["person.city"]'))
    with run_server(path, code=WATCHED) as served:
        alice, poor = Wire(served), Wire(served, user="poor")
        counted = alice.rows(query(COUNT))
        assert alice.again(query(GROUPS))
        assert alice.again(query(COUNT))
        again, replied = poor.send(query(GROUPS))
        assert not again
        assert b"42703" in replied[0][1]
        assert Wire(served).rows(query(COUNT)) == alice.rows(query(COUNT))
        again, replied = poor.send(query(COUNT))
        assert not again
        assert [body for kind, body in replied if kind == "D"] == counted, (
            "by her columns it is that draw alone"
        )
        path.write_text(POLICY.replace("[analysts.alice]", '[analysts.alice]\nhide = ["person.city"]'))
        served.process.send_signal(signal.SIGHUP)
        served.wait_for("reloaded")
        with pytest.raises((AssertionError, OSError)):
            alice.send(query(GROUPS))
        assert b"42703" in Wire(served).send(query(GROUPS))[1][0][1]
        path.write_text(POLICY.replace("[analysts.alice]", "[analysts.alicia]"))
        served.process.send_signal(signal.SIGHUP)
        served.wait_for("reloaded", 2)
        with pytest.raises(psycopg.OperationalError):
            served.connect()


def test_a_table_that_was_altered_ends_the_connection(tmp_path: Path) -> None:
    with watched(tmp_path) as served:
        wire = Wire(served)
        assert wire.again(query(COUNT))
        served.wait_for("answered", 3)
        time.sleep(3)  # the file is let go a second after the last statement
        with duckdb.connect(str(tmp_path / "people.duckdb")) as database:
            database.execute("ALTER TABLE person ADD COLUMN extra INTEGER")
        with pytest.raises(psycopg.Error):
            wire.connection.execute("SELECT AVG(age) FROM person")
        with pytest.raises((AssertionError, OSError)):
            wire.send(query(COUNT))


# --- the parts by themselves -------------------------------------------------------------------------------


def test_memory_is_bounded_and_the_oldest_go() -> None:
    kept = Replies(20_000)
    for number in range(100):
        kept.put((b"x" * 100, number, None, None), Reply("q", (), (), b"", b"y" * 100, None))
    assert 0 < len(kept) < 10
    assert kept.get((b"x" * 100, 99, None, None)) is not None
    assert kept.get((b"x" * 100, 0, None, None)) is None
    kept.put((b"", 0, None, None), Reply("q", (), (), b"", b"y" * 10_000, None))
    assert len(kept) == 0, "one that is too large is not kept, and nothing of it"
    kept.put((b"", 1, None, None), Reply("q", (), (), b"", b"", None))
    assert len(kept) == 1


def test_what_a_batch_binds() -> None:
    assert statement_name(query(COUNT)) == ""
    assert statement_name(parse("", COUNT) + SYNC) == ""
    assert statement_name(parse("a", COUNT) + SYNC) is None
    assert statement_name(bind("", "name") + SYNC) == "name"
    assert statement_name(bind("p", "name") + SYNC) is None
    for odd in (b"", b"B", b"B\0\0\0\x09\0abc", SYNC, b"Q\0\0\0\x04"):
        assert statement_name(odd) is None
    assert statement_name(query("x" * LONGEST)) is None


def test_what_a_batch_is() -> None:
    b, e, d = Bind("", "", (), (), ()), Execute("", 0), Describe(Target.PORTAL, "")
    p = Parse("", COUNT, ())
    good: list[list[Event]] = [[Query(COUNT)], [p, b, d, e, Sync()], [b, e, Sync()], [p, b, e, Sync()]]
    good += [[Bind("", "n", (), (), ()), Describe(Target.STATEMENT, "n"), e, Sync()]]
    bad: list[list[Event]] = [
        [Query(COUNT), Query(COUNT)], [p], [p, b, e], [p, b, d, Sync()], [b, e, e, Sync()], [p, b, e, Sync(), Sync()],
        [Parse("n", COUNT, ()), b, e, Sync()], [p, Bind("", "n", (), (), ()), e, Sync()],
        [p, Bind("x", "", (), (), ()), Execute("x", 0), Sync()], [b, Execute("", 5), Sync()], [Sync()],
        [p, b, Describe(Target.STATEMENT, "n"), e, Sync()], [b, Describe(Target.PORTAL, "n"), e, Sync()],
    ]  # fmt: skip
    assert all(map(is_batch, good))
    assert not any(map(is_batch, bad))


def test_where_notices_are() -> None:
    t, d, n, c, z = (
        tagged("T", b"x"),
        tagged("D", b"yy"),
        tagged("N", b"z"),
        tagged("C", b"SELECT 1\0"),
        tagged("Z", b"I"),
    )
    found = replies._notices(t + d + n + n + c + z)
    assert found == (len(t + d), len(t + d + n + n))
    assert replies._notices(t + c + z) == (len(t), len(t))
    for odd in (
        t + d + c, c + c + z, t + n + d + c + z, tagged("E", b"x") + z, t + tagged("S", b"x") + c + z,
        c + tagged("Z", b"T"), b"", z,
    ):  # fmt: skip
        assert replies._notices(odd) is None
