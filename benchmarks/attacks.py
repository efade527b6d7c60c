"""What hostile clients do to a server: `python -m benchmarks.attacks NAME USER HOST PORT DATABASE SECONDS`.

Each attack is one process that says that it is ready, begins when it is told to by a line, and goes on until its time
is up; errors are what it is there for.
"""

from __future__ import annotations

import os
import random
import socket
import struct
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from typing import Any

import psycopg

__all__ = ["ATTACKS", "PASSWORD"]

PASSWORD = "benchmark"
_WIDE = "SELECT * FROM wide"
_CROSS = "SELECT COUNT(*) FROM wide AS a, wide AS b WHERE a.n0 * b.n1 % 7 = 3"
_ABOVE = (
    "SELECT COUNT(*), SUM(x.n) FROM (SELECT city, COUNT(*) AS n FROM person GROUP BY city) AS x,"
    " generate_series(1, 100000) AS a (i), generate_series(1, 100000) AS b (i) WHERE a.i * b.i % 7 = 3"
)
_HUNGRY = (
    "SELECT x.city, a.i, b.i, repeat('x', 100) || b.i AS t FROM"
    " (SELECT city, COUNT(*) AS n FROM person GROUP BY city) AS x, generate_series(1, 3000) AS a (i),"
    " generate_series(1, 3000) AS b (i) ORDER BY t, a.i DESC"
)


@dataclass(frozen=True, slots=True)
class Target:
    """Where the server is, and until when it is attacked."""

    user: str
    host: str
    port: int
    database: str
    end: float

    @property
    def is_on(self) -> bool:
        """Whether there is time left."""
        return time.monotonic() < self.end

    def connect(self, password: str = PASSWORD) -> psycopg.Connection[Any]:
        """Log in."""
        return psycopg.connect(
            host=self.host, port=self.port, user=self.user, password=password, dbname=self.database,
            sslmode="disable", autocommit=True, connect_timeout=10,
        )  # fmt: skip

    def socket(self) -> socket.socket:
        """Open a connection, and say nothing."""
        return socket.create_connection((self.host, self.port), timeout=10)


def _unread(target: Target) -> None:
    """Ask six connections for a wide answer, and read none of it."""
    held = []
    while target.is_on:
        with suppress(psycopg.Error):
            while len(held) < 6:
                connection = target.connect()
                connection.pgconn.send_query(_WIDE.encode())
                held.append(connection)
        time.sleep(1)
        held = [one for one in held if not _is_hung_up(one.fileno())]


def _is_hung_up(number: int) -> bool:
    with socket.fromfd(number, socket.AF_INET, socket.SOCK_STREAM) as one:
        one.settimeout(0)
        try:
            return one.recv(1, socket.MSG_PEEK) == b""
        except BlockingIOError:
            return False
        except OSError:
            return True


def _hoarded(target: Target) -> None:
    """Keep cursors that outlive their blocks, of which one row is read."""
    for _ in _again(target):
        with target.connect() as connection:
            for number in range(20):
                connection.execute(f"DECLARE c{number} CURSOR WITH HOLD FOR {_WIDE}")
                connection.execute(f"FETCH 1 FROM c{number}")
                if not target.is_on:
                    return


def _crossed(target: Target) -> None:
    """Join everything with everything: in the owner's engine, and above a release."""
    for number in _again(target):
        with target.connect() as connection:
            connection.execute((_CROSS, _ABOVE, _HUNGRY)[number % 3])


def _listed(target: Target) -> None:
    items = ", ".join(map(str, range(10_000)))
    _repeat(target, lambda number: f"SELECT COUNT(*) FROM person WHERE id + {number} IN ({items[:60_000]} 0)")


def _united(target: Target) -> None:
    one = "SELECT COUNT(*) FROM person"
    _repeat(target, lambda number: " UNION ".join([one, *[f"SELECT {i + number}" for i in range(500)]]))


def _negated(target: Target) -> None:
    _repeat(
        target, lambda number: f"SELECT COUNT(*) FROM person WHERE {'NOT ' * 15_000} (age = {number % 50})"
    )


def _guessed(target: Target) -> None:
    for number in _again(target):
        target.connect(f"guess {number}").close()


def _cancelled(target: Target) -> None:
    """Stop statements as soon as they are begun, and send keys that fit nothing."""
    for number in _again(target):
        with target.connect() as connection:
            for _ in range(20):
                connection.pgconn.send_query(b"SELECT city, COUNT(*) FROM person GROUP BY city")
                time.sleep(random.uniform(0, 0.02))
                connection.pgconn.get_cancel().cancel()
                while connection.pgconn.get_result() is not None:
                    pass
                with target.socket() as wrong:
                    wrong.sendall(struct.pack("!iiii", 16, 80877102, number, 1))


def _garbled(target: Target) -> None:
    for _ in _again(target):
        with target.socket() as one:
            one.sendall(os.urandom(random.randint(1, 20_000)))
            one.recv(100)


def _slow(target: Target) -> None:
    """Begin a hundred logins, a byte a second each."""
    startup = struct.pack("!ii", 400, 196608) + b"user\0nobody\0" + bytes(400)
    held: list[tuple[socket.socket, int]] = []
    while target.is_on:
        with suppress(OSError):
            while len(held) < 100:
                held.append((target.socket(), 0))
        kept = []
        for one, sent in held:
            try:
                one.sendall(startup[sent : sent + 1])
                kept.append((one, sent + 1))
            except OSError:
                one.close()
        held = kept
        time.sleep(1)


def _repeat(target: Target, text: Callable[[int], str]) -> None:
    """Send statements one after another, each a little different."""
    with target.connect() as connection:
        for number in _again(target):
            with suppress(psycopg.DatabaseError):
                connection.execute(text(number).encode())


def _again(target: Target) -> Iterator[int]:
    """Yield numbers while there is time."""
    for number in count():
        if not target.is_on:
            return
        yield number


ATTACKS: dict[str, Callable[[Target], None]] = {
    "unread": _unread, "hoarded": _hoarded, "crossed": _crossed, "listed": _listed, "united": _united,
    "negated": _negated, "guessed": _guessed, "cancelled": _cancelled, "garbled": _garbled, "slow": _slow,
}  # fmt: skip


def main() -> None:
    """Attack until the time is up; what breaks begins again."""
    name, user, host, port, database, seconds = sys.argv[1:]
    print("ready", flush=True)
    sys.stdin.readline()
    target = Target(user, host, int(port), database, time.monotonic() + float(seconds))
    while target.is_on:
        with suppress(psycopg.Error, OSError, ValueError):
            ATTACKS[name](target)
        time.sleep(0.05)


if __name__ == "__main__":
    main()
