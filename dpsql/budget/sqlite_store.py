"""The budget store on SQLite: claims in, reservations and stored draws out.

House rules:

1. `reserve` decides everything (hits, charge, caps) in the transaction that records it.
2. Every path through `reserve` records a charge, finds everything in the store, or raises.
3. Nothing here lowers what is spent, whatever became of the entry.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from sqlite3 import Connection

from ..errors import EngineFailure, LedgerError
from .claim import (
    KEY_BYTES,
    MOST_EPSILON_NANO,
    ZERO,
    Caps,
    Charge,
    Claim,
    Draw,
    Reservation,
    VectorClaim,
    require_integer,
    require_text,
)
from .entry import Entry, EpochStart, Grant, State, Status, read_record
from .filter import refuse_over_cap
from .match import choose_draws, running_draws
from .sqlite_ledger import GRANTED, SqliteLedger, Step, utc_now
from .store import never_cancelled

__all__ = ["SqliteStore"]

_SHORTEST_WAIT, _LONGEST_WAIT = 0.002, 0.05
"""Seconds between two looks at a statement that is drawing the same measures."""

Found = tuple[int, ...] | None


def _no_step(name: str) -> None:
    """Do nothing: only the crash tests stop at a step."""


class SqliteStore:
    """The `BudgetStore` of one dataset in one SQLite file, shared by processes of one machine."""

    def __init__(self, ledger: SqliteLedger, caps: Caps) -> None:
        """Use `open`."""
        self._ledger = ledger
        self._caps = caps

    @classmethod
    def open(
        cls, path: str | os.PathLike[str], dataset: str, caps: Caps, create: bool, *, _step: Step = _no_step
    ) -> SqliteStore:
        """Open the ledger file `path` of `dataset`; its log stands beside it as `<path>.log`.

        `create`: make both when both are missing. `caps` hold for this store while it is open, the
        recorded grants on top. Raises LedgerError when ledger and log are not to be trusted.
        """
        require_text("dataset", dataset)
        return cls(SqliteLedger.open(Path(path), dataset, create, _step), caps)

    def close(self) -> None:
        """Close the files. What this store has reserved and not committed counts as failed."""
        self._ledger.close()

    def lookup(self, measures: Sequence[bytes], scale: Fraction) -> tuple[Draw, ...] | None:
        """See `BudgetStore.lookup`."""
        if not measures:
            return None
        with self._ledger.read() as db:
            stored = [self._drawn(db, key)[0] for key in measures]
            chosen = choose_draws(stored, scale)
            return self._load(db, [chosen])[0]

    def reserve(
        self, claim: Claim, *, wait_seconds: float = 60.0, cancelled: Callable[[], bool] = never_cancelled
    ) -> Reservation:
        """See `BudgetStore.reserve`."""
        deadline = time.monotonic() + wait_seconds
        pause = _SHORTEST_WAIT
        while True:
            reservation = self._try_reserve(claim)
            if reservation is not None:
                return reservation
            if cancelled():
                raise EngineFailure("cancelled while another statement drew the same", sqlstate="57014")
            if time.monotonic() >= deadline:
                raise EngineFailure("another statement that draws the same measures did not end in time")
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_WAIT)

    def _try_reserve(self, claim: Claim) -> Reservation | None:
        """Return the reservation, or None while another statement draws what would be a hit."""
        with self._ledger.write() as db:
            chosen: list[Found] = []
            for vector in claim.vectors:
                found, must_wait = self._find(db, vector) if claim.reuse else (None, False)
                if must_wait:
                    return None
                chosen.append(found)
            missed = [v for v, found in zip(claim.vectors, chosen, strict=True) if found is None]
            charge = sum((vector.charge for vector in missed), ZERO)
            epoch = _epoch(db)
            first = self._ledger.next_seq()
            if missed:
                refuse_over_cap(self._status(db, claim.analyst), charge)
                self._charge(db, claim, missed, epoch, first)
            numbers = iter(range(first, first + len(missed)))
            entries = tuple(next(numbers) if found is None else None for found in chosen)
            reservation = Reservation(entries, tuple(self._load(db, chosen)), charge, epoch)
        self._ledger.step("reserved")
        return reservation

    def _find(self, db: Connection, vector: VectorClaim) -> tuple[Found, bool]:
        """Return (the entries that answer the vector, whether it is worth waiting instead)."""
        if not vector.measures:
            return None, False
        drawn = [self._drawn(db, key) for key in vector.measures]
        stored = [have for have, _ in drawn]
        found = choose_draws(stored, vector.scale)
        if found is not None:
            return found, False
        holders = {entry: holder for _, coming in drawn for entry, (_, holder) in coming.items()}
        dead = {entry for entry, holder in holders.items() if not self._ledger.is_running(entry, holder)}
        running = [{e: scale for e, (scale, _) in coming.items() if e not in dead} for _, coming in drawn]
        return None, bool(running_draws(stored, running, vector.scale))

    def _drawn(
        self, db: Connection, key: bytes
    ) -> tuple[dict[int, Fraction], dict[int, tuple[Fraction, str]]]:
        """Return, for one measure in this epoch: stored {entry: scale}, reserved {entry: (scale, holder)}."""
        rows = db.execute(
            "SELECT m.entry, m.scale, r.state, r.holder FROM measure m JOIN record r ON r.seq = m.entry"
            " WHERE m.epoch = (SELECT epoch FROM ledger) AND m.key = ?",
            (key,),
        ).fetchall()
        stored = {e: Fraction(scale) for e, scale, state, _ in rows if state == State.COMMITTED.value}
        reserved = {e: (Fraction(scale), h) for e, scale, state, h in rows if state == State.RESERVED.value}
        return stored, reserved

    def _charge(
        self, db: Connection, claim: Claim, missed: Sequence[VectorClaim], epoch: int, first: int
    ) -> None:
        at = utc_now()
        entries = [
            Entry(
                seq=first + i,
                at=at,
                epoch=epoch,
                analyst=claim.analyst,
                statement=claim.statement,
                note=vector.note,
                measures=vector.measures,
                scale=vector.scale,
                charge=vector.charge,
            )
            for i, vector in enumerate(missed)
        ]
        self._ledger.append(entries)
        for entry in entries:
            _insert_measures(db, entry, entry.measures, entry.scale)

    def _load(self, db: Connection, chosen: Sequence[Found]) -> list[tuple[Draw, ...] | None]:
        draws: dict[int, Draw] = {}
        for entry in {entry for found in chosen if found is not None for entry in found}:
            keys, scale, payload = db.execute(
                "SELECT measures, scale, payload FROM draw WHERE entry = ?", (entry,)
            ).fetchone()
            measures = tuple(keys[i : i + KEY_BYTES] for i in range(0, len(keys), KEY_BYTES))
            draws[entry] = Draw(measures, Fraction(scale), payload)
        return [None if found is None else tuple(draws[entry] for entry in found) for found in chosen]

    def commit(self, reservation: Reservation, draws: Sequence[Draw]) -> None:
        """See `BudgetStore.commit`."""
        if len(draws) != len(reservation.to_draw):
            raise ValueError("commit takes one draw for each reserved entry")
        if not draws:
            return
        self._ledger.step("before draws")
        with self._ledger.write() as db:
            for number, draw in zip(reservation.to_draw, draws, strict=True):
                self._store(db, number, draw)
            self._ledger.step("draws inserted")
        self._ledger.step("draws committed")

    def _store(self, db: Connection, number: int, draw: Draw) -> None:
        row = db.execute(
            "SELECT body FROM record WHERE seq = ? AND state = ?", (number, State.RESERVED.value)
        ).fetchone()
        if row is None:
            raise ValueError(f"entry {number} is not reserved")
        entry = _entry(row[0], State.RESERVED)
        if not entry.measures:
            _insert_measures(db, entry, draw.measures, draw.scale)
        elif (draw.measures, draw.scale) != (entry.measures, entry.scale):
            raise ValueError("a draw holds the measures, at the scale, that were reserved")
        db.execute(
            "INSERT INTO draw (entry, measures, scale, payload) VALUES (?, ?, ?, ?)",
            (number, b"".join(draw.measures), str(draw.scale), draw.payload),
        )
        db.execute(
            "UPDATE record SET state = ?, holder = NULL WHERE seq = ?", (State.COMMITTED.value, number)
        )

    def fail(self, reservation: Reservation) -> None:
        """See `BudgetStore.fail`. Does nothing to what is committed or failed already."""
        if not reservation.to_draw:
            return
        with self._ledger.write() as db:
            db.executemany(
                "UPDATE record SET state = ?, holder = NULL WHERE seq = ? AND state = ?",
                [(State.FAILED.value, number, State.RESERVED.value) for number in reservation.to_draw],
            )

    def spent(self) -> Charge:
        """See `BudgetStore.spent`."""
        status = self.status()
        return Charge(status.epsilon_spent_nano, status.delta_spent_atto)

    def status(self, analyst: str | None = None) -> Status:
        """See `BudgetStore.status`."""
        with self._ledger.write() as db:
            return self._status(db, analyst)

    def _status(self, db: Connection, analyst: str | None) -> Status:
        epsilon = delta = rho = own = 0
        for name, *sums in db.execute("SELECT analyst, epsilon_nano, delta_atto, rho_atto FROM spent"):
            epsilon, delta, rho = epsilon + int(sums[0]), delta + int(sums[1]), rho + int(sums[2])
            own += int(sums[0]) if name == analyst else 0
        granted: dict[str | None, int] = {}
        rows = db.execute("SELECT body FROM record WHERE kind = 'grant' AND state = ?", (GRANTED,))
        for (body,) in rows:
            grant = json.loads(body)
            granted[grant["analyst"]] = granted.get(grant["analyst"], 0) + grant["epsilon_nano"]
        own_cap = None if analyst is None else self._caps.analysts.get(analyst)
        return Status(
            epsilon_spent_nano=epsilon,
            epsilon_cap_nano=self._caps.epsilon_nano + granted.get(None, 0),
            delta_spent_atto=delta,
            delta_cap_atto=self._caps.delta_atto,
            rho_spent_atto=rho,
            analyst_spent_nano=own,
            analyst_cap_nano=None if own_cap is None else own_cap + granted.get(analyst, 0),
        )

    def log(self, limit: int) -> list[Entry]:
        """See `BudgetStore.log`."""
        with self._ledger.write() as db:
            rows = db.execute(
                "SELECT body, state FROM record WHERE kind = 'entry' ORDER BY seq DESC LIMIT ?",
                (max(0, limit),),
            ).fetchall()
        return [_entry(body, State(state)) for body, state in rows]

    def grant(self, analyst: str | None, epsilon_nano: int, by: str) -> None:
        """See `BudgetStore.grant`. A grant whose ledger write a crash cut off is void."""
        require_integer("epsilon_nano", epsilon_nano, 1, MOST_EPSILON_NANO)
        for name in (analyst, by):
            require_text("name", name or "")
        with self._ledger.write():
            self._ledger.append([Grant(self._ledger.next_seq(), utc_now(), analyst, epsilon_nano, by)])

    @property
    def epoch(self) -> int:
        """See `BudgetStore.epoch`."""
        with self._ledger.write() as db:
            return _epoch(db)

    def advance_epoch(self) -> int:
        """See `BudgetStore.advance_epoch`."""
        with self._ledger.write() as db:
            epoch = _epoch(db) + 1
            self._ledger.append([EpochStart(self._ledger.next_seq(), utc_now(), epoch)])
        return epoch

    def secret(self) -> bytes:
        """See `BudgetStore.secret`."""
        with self._ledger.read() as db:
            return bytes(db.execute("SELECT secret FROM ledger").fetchone()[0])


def _epoch(db: Connection) -> int:
    return int(db.execute("SELECT epoch FROM ledger").fetchone()[0])


def _insert_measures(db: Connection, entry: Entry, keys: Sequence[bytes], scale: Fraction) -> None:
    db.executemany(
        "INSERT INTO measure (epoch, key, entry, scale) VALUES (?, ?, ?, ?)",
        [(entry.epoch, key, entry.seq, str(scale)) for key in keys],
    )


def _entry(body: str, state: State) -> Entry:
    record = read_record(body, state)
    if not isinstance(record, Entry):
        raise LedgerError("the ledger holds a record of the wrong kind", hint="restore it from its log")
    return record
