"""What the processes of `dpsql serve --workers` share: a port, the way of a cancel, what is counted over all of them.

Each is a whole server over the same policies, database and ledger, begun anew and never forked; what they have spent
is in the ledger alone. A process that is killed leaves nothing here that counts on.

House rules:

1. A limit holds for all together. What is counted is counted in one place (connections, failed logins); what an analyst
   has one of at a time is a lock, which the system lets go with its holder; memory, strangers and turns to log in are
   divided.
2. Where the place cannot be asked, a login is refused and a failure waits longest: what is not known is not allowed.
3. A cancel's key is its connection's, whoever it is told to: it is handed on unread to the process whose number the
   connection's has, and is compared there.
"""

from __future__ import annotations

import fcntl
import json
import math
import os
import secrets
import socket
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from hashlib import sha256
from pathlib import Path

from ..errors import EngineFailure
from ..records import dataclass

_WAIT_SECONDS = 1.0
_LOOK_SECONDS = 0.02
_MOST_NETWORKS = 4096
_PREFIX = 4

_SCHEMA = """
CREATE TABLE admitted (worker INTEGER, name TEXT, number INTEGER, PRIMARY KEY (worker, name)) WITHOUT ROWID;
CREATE TABLE failed (network TEXT PRIMARY KEY, failures REAL, at REAL) WITHOUT ROWID;
"""


@dataclass(frozen=True, slots=True)
class OneOf:
    """One process of so many: its `number`, the `port` of all, and by which descriptors cancels come and go.

    `folder`: where is what they share.
    """

    number: int
    of: int
    port: int
    folder: str
    inbox: int
    outboxes: tuple[int, ...]

    @property
    def text(self) -> str:
        """All of it, as it is handed to the process."""
        parts = self.number, self.of, self.port, self.folder, self.inbox, self.outboxes
        return json.dumps(parts)

    @classmethod
    def parse(cls, text: str) -> OneOf:
        number, of, port, folder, inbox, outboxes = json.loads(text)
        return cls(number, of, port, folder, inbox, tuple(outboxes))

    def new_id(self) -> int:
        """Return a number of a connection that says which process has it."""
        return (secrets.randbelow(2**31 // self.of - 2) + 1) * self.of + self.number

    def is_own(self, process_id: int) -> bool:
        return process_id % self.of == self.number

    def hand_on(self, process_id: int, key: bytes) -> None:
        """Hand a cancel to the process of its connection; one that has no room for it has many already."""
        with (
            suppress(OSError),
            closing(socket.socket(fileno=os.dup(self.outboxes[process_id % self.of]))) as out,
        ):
            out.send(process_id.to_bytes(_PREFIX, "big", signed=True) + key[:256], socket.MSG_DONTWAIT)

    def handed(self, inbox: socket.socket) -> Iterator[tuple[int, bytes]]:
        """Yield the cancels that others have handed on."""
        with suppress(BlockingIOError):
            while True:
                told = inbox.recv(_PREFIX + 256)
                yield int.from_bytes(told[:_PREFIX], "big", signed=True), told[_PREFIX:]


def make_place(folder: Path) -> None:
    """Make the place in an empty folder of the parent's own."""
    with closing(sqlite3.connect(folder / "shared.db", isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.executescript(_SCHEMA)


class Place:
    """What is counted over all processes, as one of them sees it. Times are of the monotonic clock, which all have."""

    def __init__(self, folder: Path, number: int) -> None:
        self._folder, self._number = folder, number
        self._own = Counter[str]()
        self._db = sqlite3.connect(
            folder / "shared.db", isolation_level=None, timeout=_WAIT_SECONDS, check_same_thread=False
        )
        self._db.execute("PRAGMA synchronous = OFF")  # nothing of it outlives the processes

    def close(self) -> None:
        self._db.close()

    @contextmanager
    def _change(self) -> Iterator[sqlite3.Connection]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield self._db
            self._db.execute("COMMIT")
        finally:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")

    def forget(self, number: int) -> None:
        """Count nothing of a process any more: it has ended."""
        with suppress(sqlite3.Error), self._change() as db:
            db.execute("DELETE FROM admitted WHERE worker = ?", (number,))

    def admit(self, name: str, most: int, most_of_name: int) -> str | None:
        """Count a connection of a name; return which limit is reached, where one is: then it is not counted."""
        try:
            with self._change() as db:
                self._tell(db)
                rows = db.execute("SELECT name, number FROM admitted").fetchall()
                if sum(number for _, number in rows) >= most:
                    return "all"
                if sum(number for one, number in rows if one == name) >= most_of_name:
                    return "analyst"
                self._tell(db, name)
        except sqlite3.Error:
            return "all"
        self._own[name] += 1
        return None

    def leave(self, name: str) -> None:
        """Count a connection no longer that was admitted."""
        self._own -= Counter([name])
        with suppress(sqlite3.Error), self._change() as db:
            self._tell(db)

    def _tell(self, db: sqlite3.Connection, more: str | None = None) -> None:
        """Say how many connections this process has, all of them anew: what could not be said before is so made good.

        `more`: of whom there is one more.
        """
        own = self._own + Counter([] if more is None else [more])
        db.execute("DELETE FROM admitted WHERE worker = ?", (self._number,))
        db.executemany(
            "INSERT INTO admitted VALUES (?, ?, ?)", [(self._number, *counted) for counted in own.items()]
        )

    def failed(self, networks: Sequence[tuple[str, float, int]], now: float) -> tuple[int, ...] | None:
        """Count a failure for each network, which forgets so many a second and keeps at most so many; return how many
        are remembered of each, None where that cannot be asked."""
        counts = []
        try:
            with self._change() as db:
                for network, forget, most in networks:
                    found = db.execute(
                        "SELECT failures, at FROM failed WHERE network = ?", (network,)
                    ).fetchone()
                    failures, at = found or (0.0, now)
                    failures = min(max(0.0, failures - (now - at) * forget) + 1, most)
                    db.execute(
                        "INSERT INTO failed VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET failures = excluded.failures, "
                        "at = excluded.at",
                        (network, failures, now),
                    )
                    counts.append(math.ceil(failures))
                ((known,),) = db.execute("SELECT COUNT(*) FROM failed").fetchall()
                if known > 2 * _MOST_NETWORKS:
                    db.execute(
                        "DELETE FROM failed WHERE network <> '' AND network NOT IN "
                        "(SELECT network FROM failed ORDER BY at DESC LIMIT ?)",
                        (_MOST_NETWORKS,),
                    )
        except sqlite3.Error:
            return None
        return tuple(counts)

    @contextmanager
    def turn(self, name: str, at_once: int, cancelled: Callable[[], bool]) -> Iterator[None]:
        """Have one of so many turns of a name, over all processes. Raises EngineFailure (57014)."""
        digest = sha256(name.encode(errors="surrogatepass")).hexdigest()
        files = [
            os.open(self._folder / f"{digest}-{number}", os.O_RDWR | os.O_CREAT, 0o600)
            for number in range(at_once)
        ]
        try:
            while not any(map(_locked, files)):
                if cancelled():
                    raise EngineFailure("cancelled before its turn", sqlstate="57014")
                time.sleep(_LOOK_SECONDS)
            yield
        finally:
            for file in files:
                os.close(file)


def _locked(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
