"""A fuzzer on the socket: whatever comes, the server stays up, logs no bug and answers the next honest client.

Three kinds of clients, before and after a login: recorded conversations with bytes and messages changed, random
bytes, and valid messages in any order; what each sends is split anywhere. A round is made of its seed alone.
"""

from __future__ import annotations

import contextlib
import random
import re
import socket
import struct
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from dpsql.tests.support.postgres_server import Installation, PostgresServer, find_servers

from ...engine.dataset import open_ledger
from ...policy import load_policy
from ..pgwire.frontend import (
    FLUSH,
    GSSENC,
    SSL,
    SYNC,
    TERMINATE,
    bind,
    cancel,
    close,
    describe,
    execute,
    parse,
    query,
    sasl_initial,
    sasl_response,
    startup,
    tagged,
)
from .by_hand import HungUp, Wire, login
from .conftest import COUNT, PASSWORD, POLICY, SCHEMA, Served, make_dataset, run_server

STATEMENTS = (
    "SELECT 1", "SELECT $1::int + 1", "SELECT * FROM thing", COUNT, f"{COUNT} WHERE age > $1", "", ";", "SELECT",
    "SELECT city, COUNT(*) FROM person GROUP BY city", "SELECT i FROM number WHERE i < 5000", "EXPLAIN " + COUNT,
    "BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT a", "ROLLBACK TO a", "RELEASE a", "BEGIN READ ONLY", "COMMIT AND CHAIN",
    "DECLARE c SCROLL CURSOR FOR SELECT i FROM number WHERE i < 50", "FETCH 3 FROM c", "FETCH BACKWARD ALL FROM c",
    "MOVE ALL FROM c", "CLOSE c", "CLOSE ALL", "DECLARE h CURSOR WITH HOLD FOR " + COUNT, "FETCH ALL FROM h",
    "PREPARE s (int) AS SELECT $1", "EXECUTE s (1)", "DEALLOCATE s", "DEALLOCATE ALL", "DISCARD ALL",
    "SET dpsql.epsilon = 0.01", "SET LOCAL dpsql.intervals = 0.9", "RESET ALL", "SHOW ALL", "SHOW dpsql.budget",
    "SET statement_timeout = 50", "SET client_min_messages = error", f"COPY ({COUNT}) TO STDOUT (FORMAT binary)",
    "COPY (SELECT * FROM thing) TO STDOUT (FORMAT csv, HEADER)", "SELECT 1; SELECT 2; BEGIN; SELECT x; SELECT 3",
    "SELECT relname FROM pg_catalog.pg_class", "SELECT $1 FROM pg_catalog.pg_type", "SELECT 'ä', \"ü\" FROM thing",
)  # fmt: skip
NAMES = ("", "", "a", "b", "c", "s", "\x7f")
VALUES = (None, b"", b"1", b"-1", b"x", b"\0\0\0\x01", b"\xff", b"1" * 300, b"2020-02-30")
TYPES = (0, 20, 21, 23, 25, 16, 700, 701, 705, 1043, 1082, 1114, 1184, 1700, 99999)
Random = random.Random
SECONDS = 1.0
LONG_SECONDS = 200.0


def message(rng: Random) -> bytes:
    """Return a message as a client after its login may send it, well formed and at any time."""
    name, text = rng.choice(NAMES), rng.choice(STATEMENTS)

    def some(known: tuple[int, ...]) -> list[int]:
        return rng.choices(known, k=rng.choice((0, 1, 1, 2)))

    values = rng.choices(VALUES, k=rng.choice((0, 0, 1, 1, 2)))
    kinds: tuple[Callable[[], bytes], ...] = (
        lambda: query(text), lambda: parse(name, text, *some(TYPES)), lambda: describe(rng.choice("SP"), name),
        lambda: bind(name, rng.choice(NAMES), some((0, 1)), values, some((0, 1))), lambda: close("P", name),
        lambda: execute(name, rng.choice((0, 0, 1, 3, -1))), lambda: SYNC, lambda: SYNC, lambda: FLUSH,
        lambda: close("S", name), lambda: tagged("d", b"row"), lambda: tagged("c"), lambda: tagged("f", b"no\0"),
        lambda: tagged("F", struct.pack(">iHHH", 1, 0, 0, 0)), lambda: tagged("p", b"late\0"),
    )  # fmt: skip
    return rng.choice(kinds)()


def conversation(rng: Random) -> list[bytes]:
    """Return a conversation as drivers have it."""
    text = rng.choice(STATEMENTS)
    count = text.count("$1")
    whole = [parse("", text), bind("", "", [], [b"1"] * count), describe("P"), execute(), SYNC]
    prepared = [
        parse("a", text),
        describe("S", "a"),
        SYNC,
        bind("b", "a", [], [b"7"] * count),
        execute("b", 1),
        SYNC,
    ]
    return [*rng.choice(([query(text)], whole, prepared, [query("BEGIN"), *whole, query("END")])), TERMINATE]


def greeting(rng: Random) -> list[bytes]:
    """Return what a client may say before its login."""
    first = rng.choice(([], [SSL], [GSSENC], [GSSENC, SSL]))
    user = rng.choice(("alice", "nobody", "x" * 200))
    minor = rng.choice((0, 0, 2, 9))
    start = startup(minor=minor, user=user, database="people", options="-c dpsql.epsilon=0.1")
    proof = [sasl_initial("SCRAM-SHA-256", b"n,,n=,r=abc"), sasl_response(b"c=biws,r=abc,p=AAAA")]
    return rng.choice(
        ([*first, start, *proof], [cancel(rng.randrange(2**31), b"abcd")], [*first, start, TERMINATE])
    )


def changed(rng: Random, messages: list[bytes]) -> bytes:
    """Return messages with some of them swapped, doubled or left out, and then some bytes changed."""
    for _ in range(rng.choice((0, 0, 1, 3))):
        place = rng.randrange(len(messages) + 1)
        part = messages[place : place + rng.randrange(3)]
        messages = rng.choice((messages[:place] + messages[place + 1 :], messages + part, part + messages))
        if rng.random() < 0.2:
            rng.shuffle(messages)
    data = bytearray(b"".join(messages))
    for _ in range(rng.choice((0, 1, 1, 2, 8))):
        if not data:
            break
        place = rng.randrange(len(data))
        size = rng.choice((1, 1, 4))
        new = rng.choice(
            (b"", b"\0", b"\xff" * 4, b"\x7f\xff\xff\xff", rng.randbytes(size), bytes(data[:size]))
        )
        data[place : place + rng.choice((0, len(new)))] = new
    return bytes(data)


def said(rng: Random, is_known: bool) -> bytes:
    """Return all that a client says."""
    kind = rng.random()
    if kind < 0.15:
        return rng.randbytes(rng.choice((1, 5, 8, 100, 5000)))
    if kind < 0.5 and is_known:
        return b"".join(message(rng) for _ in range(rng.randrange(1, 40)))
    source = conversation if is_known else greeting
    return changed(rng, [part for _ in range(rng.randrange(1, 4)) for part in source(rng)])


def send_in_pieces(rng: Random, wire: socket.socket, data: bytes) -> None:
    """Send, split anywhere; read now and then what comes."""
    wire.settimeout(0.02)
    while data:
        size = rng.choice((1, 2, 5, 7, len(data), len(data)))
        wire.sendall(data[:size])
        data = data[size:]
        if rng.random() < 0.1:
            with contextlib.suppress(TimeoutError):
                wire.recv(65536)
    if rng.random() < 0.7:
        wire.settimeout(rng.choice((0.01, 0.1, 0.4)))
        with contextlib.suppress(TimeoutError):
            while wire.recv(65536):
                pass
    if rng.random() < 0.3:  # hang up with a reset
        wire.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def one_client(server: Served, seed: int) -> None:
    """Play one client to its end."""
    rng = random.Random(seed)
    is_known = rng.random() < 0.7
    source = f"127.0.{rng.randrange(1, 250)}.{rng.randrange(1, 250)}"  # failed logins delay their own address
    with contextlib.suppress(OSError, HungUp), Wire(server.port, source) as wire:
        if is_known:
            assert login(wire, "alice", PASSWORD)[0] == "R"
            while wire.message()[0] != "Z":
                pass
        send_in_pieces(rng, wire.socket, said(rng, is_known))


def fuzz(server: Served, seconds: float, seed: int, least: int) -> int:
    """Play clients for so long and so many, and an honest one after every 50; return how many there were."""
    end, count = time.monotonic() + seconds, 0
    while count < least or time.monotonic() < end:
        one_client(server, seed + count)
        count += 1
        if count % 50 == 0:
            is_answered(server, seed + count)
    is_answered(server, seed + count)
    return count


def is_answered(server: Served, seed: int) -> None:
    with server.connect(connect_timeout=300) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,), f"after the clients up to {seed}"
    bugs = [line for line in server.lines if line["event"] in ("bug", "unsaid")]
    assert not bugs, f"after the clients up to {seed}: {bugs}"


@pytest.fixture(params=["duckdb", "postgres"])
def fresh(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A policy over each engine."""
    if request.param == "duckdb":
        return make_dataset(tmp_path)
    start: Callable[[Installation], PostgresServer] = request.getfixturevalue("start_postgres")
    policy = tmp_path / "people.toml"
    policy.write_text(POLICY.replace("duckdb:people.duckdb", copied(start(find_servers()[-1]))))
    open_ledger(load_policy(policy), create=True).close()
    return policy


def copied(engine: PostgresServer) -> str:
    """Make the tables in a database of this Postgres, and return its URL for a reader."""
    schema = re.sub(r"range\((\d+)\)", r"generate_series(0, \1 - 1)", SCHEMA).replace(
        "DOUBLE,", "DOUBLE PRECISION,"
    )
    database = engine.create_database()
    with engine.admin(database) as connection:
        connection.execute(schema)
    return engine.create_reader(database)


def test_garbage_and_mutants(server: Served) -> None:
    assert fuzz(server, SECONDS, seed=0, least=51) > 50


@pytest.mark.long
def test_garbage_and_mutants_for_long(fresh: Path) -> None:
    seed = time.time_ns()
    with run_server(fresh) as server:
        count = fuzz(server, LONG_SECONDS, seed, least=1001)
    print(f"{count} clients from seed {seed}")
    assert count > 1000
