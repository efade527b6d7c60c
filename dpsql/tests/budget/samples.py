"""Claims, draws and places for a ledger that the budget tests share."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Any

import psycopg

from dpsql.budget import (
    UNSAID,
    ZERO,
    Caps,
    Certificate,
    Charge,
    Claim,
    Draw,
    LedgerStore,
    MeasurementClaim,
    Promise,
    Reservation,
    open_store,
)
from dpsql.budget.entry import Run
from dpsql.budget.ledger_store import no_step
from dpsql.errors import LedgerError
from dpsql.mechanisms import Laplace
from dpsql.policy import Accounting, Period, Slices

EPSILON = 10**9
ROOT = Path(__file__).resolve().parents[3]
"""The folder that holds the package, where child processes start."""

IN_RHO = Promise(accounting=Accounting.ZCDP, conversion_delta_atto=5 * 10**11)
"""Half of the delta of `CAPS` is for the conversion."""

MARCH = 24314
"""The month that every claim for a ledger by periods reaches, and the last one."""

BY_MONTH = Promise(period=Period.MONTH, since=date(2024, 1, 1))

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


class Sliced(LedgerStore):
    """A store whose claims that say no slices get some: all of them March 2026, some months before, undated rows.

    So what March has is all that is charged, and what holds of a ledger as a whole has to hold of March. When it is
    closed, what it has by slice is looked at: it is what its entries add up to, month by month.
    """

    def reserve(self, claim: Claim, **more: Any) -> Reservation:
        return super().reserve(sliced(claim), **more)

    def close(self) -> None:
        with suppress(LedgerError):
            self.look()
        super().close()

    def look(self) -> None:
        """Compare what is spent by slice with the ledger's entries."""
        with self._ledger.read() as db:
            rows = db.execute("SELECT body FROM record WHERE kind = 'entry'").fetchall()
            (headers,) = db.execute("SELECT COUNT(*) FROM record WHERE kind = 'header'").fetchone()
            (divisions,) = db.execute("SELECT COUNT(*) FROM record WHERE kind = 'division'").fetchone()
        if (
            headers and not divisions
        ):  # else it was made anew from a later file of its log, which has no entries of before
            names = {json.loads(body)["analyst"] for (body,) in rows}
            for name in ("", *names):
                assert by_month(self.slices(name)) == charged_by_month([body for (body,) in rows], name), name


def by_month(steps: Iterable[Run]) -> dict[int, tuple[int, int, int]]:
    """Return what was charged by period."""
    return {number: sums for first, last, sums in steps for number in range(first, last + 1)}


def charged_by_month(bodies: Iterable[str], name: str = "") -> dict[int, tuple[int, int, int]]:
    """Return what entries add up to by period: one number each, and nothing cleverer."""
    found: dict[int, tuple[int, int, int]] = {}
    for entry in map(json.loads, bodies):
        if name in ("", entry["analyst"]):
            numbers = [n for first, last in entry["slices"]["periods"] for n in range(first, last + 1)]
            for number in numbers + [-1] * entry["slices"]["undated"]:
                epsilon, delta, rho = found.get(number, (0, 0, 0))
                found[number] = (
                    epsilon + entry["epsilon_nano"], delta + entry["delta_atto"], rho + entry["rho_atto"]
                )  # fmt: skip
    return found


def sliced(claim: Claim) -> Claim:
    """Return a claim each of whose measurements says some slices."""
    return replace(
        claim, measurements=tuple(replace(one, slices=one.slices or _some(one)) for one in claim.measurements)
    )


def _some(measurement: MeasurementClaim) -> Slices:
    chance = hashlib.sha256(b"".join(measurement.measures) + measurement.note.encode()).digest()
    return Slices(((MARCH - chance[0] % 12, MARCH),), is_undated=chance[1] % 3 == 0)


@dataclass(frozen=True)
class Place:
    """Where a test's ledger is: a URL as the policy has it, and the log; and how it is kept."""

    url: str
    log: Path
    accounting: Accounting = Accounting.PURE
    is_sliced: bool = False

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
        return self.url, str(self.log), self.accounting.value + self.is_sliced * " by month"

    @property
    def promise(self) -> Promise:
        """What the policy says."""
        promise = UNSAID if self.accounting is Accounting.PURE else IN_RHO
        return replace(promise, period=BY_MONTH.period, since=BY_MONTH.since) if self.is_sliced else promise

    def open(
        self,
        caps: Caps = CAPS,
        create: bool = True,
        dataset: str = "campus",
        step: Callable[[str], None] = no_step,
        promise: Promise | None = None,
    ) -> LedgerStore:
        promise = promise or self.promise
        store = open_store(self.url, dataset, caps, create=create, log=self.log, step=step, promise=promise)
        return store if promise.period is None else Sliced(store._ledger, caps)

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
            tables = (*_TABLES, *(["slice"] if self.is_sliced else []))
            rows = {name: connection.execute(f"SELECT * FROM {name}".encode()).fetchall() for name in tables}

        def put_rows_back() -> None:
            with psycopg.connect(self.url, options="-c search_path=dpsql") as connection:
                for name in tables:
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


def proved(wanted: MeasurementClaim, content: bytes | None = None) -> MeasurementClaim:
    """Return a measurement with a certificate, of its own where nothing is said."""
    content = wanted.note.encode() if content is None else content
    return replace(wanted, certificate=Certificate(hashlib.sha256(content).hexdigest(), content))


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
