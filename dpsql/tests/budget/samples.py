"""Claims, draws and places for a ledger that the budget tests share."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import psycopg

from dpsql.budget import (
    UNSAID,
    ZERO,
    Caps,
    Charge,
    Claim,
    Draw,
    LedgerStore,
    MeasurementClaim,
    Promise,
    Reservation,
    open_store,
)
from dpsql.budget.ledger_store import no_step
from dpsql.mechanisms import Laplace
from dpsql.policy import Accounting

EPSILON = 10**9
ROOT = Path(__file__).resolve().parents[3]
"""The folder that holds the package, where child processes start."""

IN_RHO = Promise(accounting=Accounting.ZCDP, conversion_delta_atto=5 * 10**11)
"""Half of the delta of `CAPS` is for the conversion."""

CAPS = Caps(10 * EPSILON, 10**12, {"alice": 3 * EPSILON, "bob": None})
_TABLES = (
    "ledger",
    "log",
    "record",
    "spent",
    "measure",
    "draw",
    "checkpoint",
    "day",
    "certificate",
    "edition",
)


@dataclass(frozen=True)
class Place:
    """Where a test's ledger is: a URL as the policy has it, and the log; and how it is kept."""

    url: str
    log: Path
    accounting: Accounting = Accounting.PURE

    @property
    def is_sqlite(self) -> bool:
        return self.url.startswith("sqlite:")

    @property
    def file(self) -> Path:
        """SQLite's file."""
        return Path(self.url.removeprefix("sqlite:"))

    @property
    def arguments(self) -> tuple[str, str, str]:
        """What a child process is told."""
        return self.url, str(self.log), self.accounting.value

    @property
    def promise(self) -> Promise:
        """What the policy says."""
        return UNSAID if self.accounting is Accounting.PURE else IN_RHO

    def open(
        self,
        caps: Caps = CAPS,
        create: bool = True,
        dataset: str = "campus",
        step: Callable[[str], None] = no_step,
        promise: Promise | None = None,
    ) -> LedgerStore:
        return open_store(
            self.url, dataset, caps, create=create, log=self.log, step=step, promise=promise or self.promise
        )

    def edit(self, sql: str) -> None:
        """Change the ledger by hand."""
        if self.is_sqlite:
            database = sqlite3.connect(self.file)
            with database:
                database.execute(sql)
            database.close()
            return
        with psycopg.connect(self.url, options="-c search_path=dpsql") as connection:
            connection.execute(sql.encode())

    def lose(self) -> None:
        """Take the ledger away; the log stays."""
        if not self.is_sqlite:
            self.edit("DROP SCHEMA dpsql CASCADE")
            return
        for name in ("", "-wal", "-shm"):
            self.file.with_name(self.file.name + name).unlink(missing_ok=True)

    def backup(self) -> Callable[[], None]:
        """Keep the ledger as it is now, without its log; return how it is put back. Nobody has it open."""
        if self.is_sqlite:
            files = [path for path in self.file.parent.glob(self.file.name + "*") if path.is_file()]
            kept = {path: path.read_bytes() for path in files if path != self.log}

            def put_files_back() -> None:
                self.lose()
                for path, content in kept.items():
                    path.write_bytes(content)

            return put_files_back
        with psycopg.connect(self.url, options="-c search_path=dpsql") as connection:
            rows = {name: connection.execute(f"SELECT * FROM {name}".encode()).fetchall() for name in _TABLES}

        def put_rows_back() -> None:
            with psycopg.connect(self.url, options="-c search_path=dpsql") as connection:
                for name in _TABLES:
                    connection.execute(f"TRUNCATE {name}".encode())
                    for row in rows[name]:
                        marks = ", ".join(["%s"] * len(row))
                        connection.execute(f"INSERT INTO {name} VALUES ({marks})".encode(), row)

        return put_rows_back


def key(name: str) -> bytes:
    return hashlib.sha256(name.encode()).digest()


def pure(*epsilons: int, delta: int = 0) -> Charge:
    """Return what pure draws of these epsilons cost together, and a delta."""
    return sum(map(Charge.pure, epsilons), ZERO) + Charge(0, delta, 0)


def measurement(
    *names: str, scale: Fraction | int = 10, epsilon: int = EPSILON // 10, delta: int = 0
) -> MeasurementClaim:
    return MeasurementClaim(
        tuple(map(key, names)), Laplace(Fraction(scale)), Charge.pure(epsilon, delta), f"{names} at {scale}"
    )


def claim(*measurements: MeasurementClaim, analyst: str = "alice", reuse: bool = True) -> Claim:
    return Claim(analyst, "SELECT 1", measurements, reuse)


def draw(*names: str, scale: Fraction | int = 10, payload: bytes = b"noisy") -> Draw:
    return Draw(tuple(map(key, names)), Laplace(Fraction(scale)), payload)


def buy(
    store: LedgerStore,
    *names: str,
    scale: Fraction | int = 10,
    epsilon: int = EPSILON // 10,
    delta: int = 0,
    reuse: bool = True,
    payload: bytes = b"noisy",
) -> Reservation:
    """Reserve and commit one measurement that must be drawn."""
    wanted = measurement(*names, scale=scale, epsilon=epsilon, delta=delta)
    reservation = store.reserve(claim(wanted, reuse=reuse))
    assert reservation.found == (None,)
    store.commit(reservation, [draw(*names, scale=scale, payload=payload)])
    return reservation
