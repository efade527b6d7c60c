"""The budget store on a ledger, whichever engine keeps it: claims in, reservations and stored draws out.

House rules:

1. `reserve` decides everything (hits, charge, caps) in the transaction that records it.
2. Every path through `reserve` records a charge, finds everything in the store, or raises.
3. Nothing here lowers what is spent, whatever became of the entry.
4. SQL statements that do not need each other's rows are all sent before any is fetched, in one round trip over a
   network.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager, suppress
from dataclasses import field, replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from ..errors import BudgetExhausted, EngineFailure, LedgerError
from ..mechanisms import Law, UnknownLaw, law_of
from ..policy import Accounting, Neighbours, Over, Slices
from ..policy.periods import MOST_NUMBER, UNDATED, Times, ends_digest, number_of
from ..records import dataclass
from ..relation.catalog import Ground
from ..waits import Stopped
from . import certificates, editions
from .chain import Note, Testimony, moment_of, note_of
from .claim import (
    MOST_DELTA_ATTO,
    MOST_EPSILON_NANO,
    ZERO,
    Caps,
    Charge,
    Claim,
    DatedDraw,
    Draw,
    Fresh,
    Grounds,
    MeasurementClaim,
    Overtaken,
    Reservation,
    Resting,
    StoredGrouping,
    Together,
    charge_of,
    epsilon_text,
    fresh_of,
    require_integer,
    require_text,
    rho_text,
)
from .editions import Edition
from .entry import (
    MALFORMED,
    Clock,
    Division,
    Ends,
    Entry,
    EntryState,
    EpochStart,
    Grant,
    KeyCheck,
    Left,
    Move,
    Promise,
    Status,
    Sums,
    add,
    newer,
    read_draw,
    read_record,
    stored_payload,
)
from .filter import (
    KEPT_HOURS,
    Piece,
    Rations,
    cap_of,
    in_accounting,
    refuse_over_cap,
    refuse_over_person,
    refuse_over_slices,
    refuse_past,
)  # fmt: skip
from .ledger import (
    GRANTED,
    MOMENT,
    Database,
    Ledger,
    Statement,
    alike_met,
    last_told,
    met,
    most_met,
    slices_met,
    utc_now,
)
from .match import Found, Laws, choose_draws, combined_draws, running_draws
from .slices import Odometer, Steps, added, twice

_SHORTEST_PAUSE = 0.002
"""Seconds before the second look at a statement that is drawing the same measures."""

_NEW = 2**62
"""The entry number used for a draw that is not stored yet: above all real ones, so newer."""
_Ask = Callable[[Statement], list[Any]]
"""Returns the rows of a statement."""
Subject = tuple[str, tuple[str, ...], str]
"""`KeyCheck.subject`."""

_UNNUMBERED = -1
"""The `seq` of a record that the ledger has not numbered yet."""

_EPOCH: Statement = ("SELECT epoch FROM ledger", ())
_ANY_MEASURE: Statement = ("SELECT 1 FROM measure WHERE epoch = (SELECT epoch FROM ledger) LIMIT 1", ())
_OLDEST = 1_000
"""Epochs that are looked back over for what was measured once."""
_SPENT: Statement = ("SELECT analyst, epsilon_nano, delta_atto, rho_atto FROM spent", ())
_GRANTS: Statement = ("SELECT body FROM record WHERE kind = 'grant' AND state = ?", (GRANTED,))

_ENTRIES = "SELECT seq, body FROM record WHERE kind = 'entry' AND seq > ? ORDER BY seq LIMIT ?"
_NOTHING: Sums = (0, 0, 0)
_OF_SLICES = (
    "SELECT first_period, last_period, epsilon_nano, delta_atto, rho_atto FROM slice WHERE analyst = ?"
)
_LAST: Statement = ("SELECT COALESCE(MAX(seq), -1) FROM record", ())
_NEWEST: Statement = ("SELECT body FROM record ORDER BY seq DESC LIMIT 1", ())
_KEY_CHECKS = "SELECT body FROM record WHERE seq > ? AND kind = 'keycheck' ORDER BY seq"
_DAYS: Statement = ("SELECT day, analyst, epsilon_nano, delta_atto, rho_atto, number, moment FROM day", ())
_RECORDS = "SELECT seq, body FROM record WHERE seq > ? ORDER BY seq LIMIT ?"
_STORED = (
    "SELECT seq, body FROM record WHERE kind = 'entry' AND state = ? AND seq < ?"
    " AND seq IN (SELECT entry FROM measure WHERE epoch = ?) ORDER BY seq DESC LIMIT ?"
)
_PAGE = 10_000
_CLOCK_SECONDS = 600.0
_DRAWS = 500
"""Stored answers that are read at once."""


@dataclass(frozen=True, slots=True)
class Report:
    """What a ledger was found to have: records, files of its log, stored answers that are sound, how many entries have
    theirs damaged or missing, how many certificates are, and how many notes of a witness agree.
    """

    records: int
    files: int
    answers: int
    damaged: int
    certificates: int
    agreed: int


@dataclass(slots=True)
class _Drawn:
    """Of one measure in this epoch: stored {entry: law}, reserved {entry: (law, holder)}."""

    stored: dict[int, Law] = field(default_factory=dict)
    reserved: dict[int, tuple[Law, str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A measurement of a claim, and what is known of each of its measures.

    `found`: the entries that answer it. `fresh`: what is drawn where none do; `beside`: the entries that answer it
    together with that draw, `_NEW` among them.
    """

    claim: MeasurementClaim
    known: tuple[_Drawn, ...]
    found: Found | None
    fresh: Fresh
    beside: Found = ()

    @property
    def entries(self) -> set[int]:
        """The stored entries that are to be read."""
        return {entry for entries in self.found or self.beside for entry in entries if entry != _NEW}


def no_step(name: str) -> None:
    """Do nothing: only the crash tests stop at a step."""


def never_cancelled() -> bool:
    """Return False: the caller cannot be cancelled."""
    return False


def untold(charge: Charge, is_logged: bool | None) -> None:
    """Do nothing: the caller does not tell what a statement that fails was charged."""


class LedgerStore:
    """The ledger and the releases of one dataset. `caps` hold for this store, the recorded grants on top.

    Invariant, at all times and through any crash: what is spent >= the sum of the charges of all
    draws that anybody has seen; it never decreases (laws L5 and L7). All methods may be called from
    any thread; all raise LedgerError when the ledger cannot be trusted or reached.
    """

    def __init__(self, ledger: Ledger, caps: Caps) -> None:
        self._ledger = ledger
        self._caps = caps
        self._rations = None if caps.ration is None else Rations(caps.ration)
        self._last_status: dict[str | None, tuple[list[list[Any]], Promise, Status]] = {}
        """By analyst what was read last, and the status from it: the same object as long as nothing has changed."""
        self._key_checks: tuple[int, dict[Subject, KeyCheck]] = (
            -1,
            {},
        )  # up to a record; replaced as a whole
        self._last_read: tuple[list[list[Any]] | None, dict[object, Status]] = None, {}
        """What was read at once last, and what it came to."""
        self._secret: bytes | None = None
        self._odometer: Odometer | None = None
        self._look_at_clock = 0.0

    def close(self) -> None:
        """Let the ledger go. What this store has reserved and not committed counts as failed."""
        self._ledger.close()

    def take_caps(self, caps: Caps) -> None:
        """Have other personal caps hold from here on: of analysts who have come since. Requires: the same periods."""
        if (self._rations is None) is not (caps.ration is None) or caps.windows != self._caps.windows:
            raise ValueError("periods begin and end with a store")
        self._caps = caps
        if self._rations is not None and caps.ration is not None:
            self._rations.ration = caps.ration
        self._last_read, self._last_status = (None, {}), {}

    def lookup(
        self, measures: Sequence[bytes], law: Law, until: int | None = None
    ) -> tuple[Together, ...] | None:
        """See `StoredDraws.lookup`."""
        if not measures:
            return None
        with self._sound():
            drawn = _drawn(self._ledger.ask, measures)
            known = [drawn[key] for key in measures]
            found = choose_draws([_until(each.stored, until) for each in known], law)
            if found is None:
                return None
            # a draw that is stored stays as it is: it may be read at a later moment
            draws = _load(self._ledger.ask, {entry for entries in found for entry in entries})
            return _together(measures, known, found, draws)

    def quote(self, claim: Claim) -> tuple[Fresh | None, ...]:
        """Return what would be drawn now for each measurement, None for what is stored; charges nothing."""
        with self._sound():
            drawn = _drawn(self._ledger.ask, _keys(claim))
        wanted = [self._find(measurement, drawn, claim.reuse) for measurement in claim.measurements]
        return tuple(one.fresh if one.found is None else None for one in wanted)

    def laws(self, measures: Sequence[bytes]) -> tuple[Laws, ...]:
        """See `StoredDraws.laws`."""
        with self._sound():
            drawn = _drawn(self._ledger.ask, measures)
        return tuple(drawn[key].stored for key in measures)

    def groupings(self, families: Sequence[bytes]) -> tuple[int, dict[bytes, list[StoredGrouping]]]:
        """See `StoredDraws.groupings`."""
        found: dict[bytes, list[StoredGrouping]] = {family: [] for family in families}
        if not found:
            return int(self._ledger.ask(_EPOCH)[0][0]), found
        rows = self._ledger.ask(_groupings_of(list(found)))
        with self._sound():
            for _, key, entry, scale, body in (row for row in rows if row[1] is not None):
                record, law, family = _entry_of(body), law_of(scale), bytes(key)
                if record.grouping is None or record.grouping.family != family or record.law != law:
                    raise ValueError("the index of groupings is not that of the entries")
                found[family].append(StoredGrouping(entry, law, record.grouping))
        return int(rows[0][0]), found

    def draw_of(self, stored: StoredGrouping) -> Draw:
        """See `StoredDraws.draw_of`."""
        with self._sound():
            draw = _load(self._ledger.ask, {stored.entry})[stored.entry]
            if draw.law != stored.law:
                raise ValueError("the index of groupings is not that of the draws")
            return draw

    def kept(self, edition: Edition, fit: Callable[[], bytes | None]) -> bytes | None:
        """See `StoredDraws.kept`."""
        made: bytes | None = None
        try:
            with self._ledger.read() as db:
                found = editions.stored(db, edition.key)
            made = fit() if found is None else None
            if made is None:
                return found
            with self._ledger.write(is_logged=True) as db:
                return editions.put(db, edition, int(db.execute(*_EPOCH).fetchone()[0]), made)
        except (
            LedgerError
        ):  # no table, no right to it, or no room: it is fitted again whenever it is asked for
            return fit() if made is None else made

    def newest(self, measures: Sequence[bytes]) -> DatedDraw | None:
        """Return the newest epoch's best stored draw that holds all of these measures, or None; charges nothing."""
        with self._ledger.read() as db, self._sound():
            epoch = int(db.execute(*_EPOCH).fetchone()[0])
            for number, entry, of in _newest(db, epoch, measures[0]):
                draw = _load(_asks(db), {number})[number]
                if set(measures) <= set(draw.measures):
                    return DatedDraw(draw, entry.at, entry.charge, of == epoch)
        return None

    def resting(self) -> Resting:
        """Return what the stored answers of this epoch rest on, how many they are and what they cost.

        Reads as many records as there are since the epoch began.
        """
        found: dict[str, tuple[int, Charge]] = {}
        for fields in self._stored():
            grounds = json.dumps(fields.get("grounds"))
            number, charge = found.get(grounds, (0, ZERO))
            own = Charge(fields["epsilon_nano"], fields["delta_atto"], fields["rho_atto"])
            found[grounds] = number + 1, charge + own
        return {_grounds(text): told for text, told in found.items()}

    def _stored(self) -> Iterator[dict[str, Any]]:
        """Yield the records of this epoch's stored answers, the newest first."""
        epoch, before = self.epoch, _NEW
        while True:
            (rows,) = self._ledger.read_settled((_STORED, (EntryState.COMMITTED.value, before, epoch, _PAGE)))
            for before, body in rows:  # noqa: B007
                yield json.loads(body)
            if len(rows) < _PAGE:
                return

    def reserve(
        self,
        claim: Claim,
        *,
        wait_seconds: float = 60.0,
        cancelled: Callable[[], bool] = never_cancelled,
        charging: Callable[[Charge, bool | None], None] = untold,
    ) -> Reservation:
        """Find what is stored and charge for the rest, durably and in one step.

        Where another statement is drawing the same measures, waits for it: its draw is then a hit;
        if it fails, this claim is charged on its own.

        `charging` is called with what is about to be charged and None before the log is asked to keep it, and with True
        once it does, or False where it does not. What it keeps is spent, whatever is raised here; after None alone
        nobody knows.

        Raises Overtaken where what a measurement counts on as known is no longer all that is stored (`Known.seen`),
        BudgetExhausted when a cap does not allow it, EngineFailure (57014) when `cancelled()` turns true while waiting,
        EngineFailure when `wait_seconds` have passed; nothing is charged in these cases. Raises Stopped (57014) where
        the statement has to end while the ledger does not answer.
        """
        self._require_slices(claim)
        deadline = time.monotonic() + wait_seconds
        pause = _SHORTEST_PAUSE
        while True:
            reservation = self._try_reserve(claim, charging)
            if reservation is not None:
                return reservation
            if cancelled():
                raise EngineFailure("cancelled while another statement drew the same", sqlstate="57014")
            if time.monotonic() >= deadline:
                raise EngineFailure("another statement that draws the same measures did not end in time")
            time.sleep(pause)
            pause = min(2 * pause, self._ledger.longest_pause)

    def _try_reserve(
        self, claim: Claim, charging: Callable[[Charge, bool | None], None]
    ) -> Reservation | None:
        """Return the reservation, or None while another statement draws what would be a hit."""
        with self._ledger.write(is_logged=True) as db:
            clock = utc_now()
            at = self._moment(db, clock)
            asked = [db.execute(*statement) for statement in self._asked(claim.analyst)]
            with self._sound():
                drawn = _drawn(_asks(db), _keys(claim))
            wanted = [self._find(measurement, drawn, claim.reuse) for measurement in claim.measurements]
            if claim.reuse and any(self._must_wait(db, one) for one in wanted):
                return None
            if claim.reuse and any(one.found is None and _is_overtaken(one.claim, drawn) for one in wanted):
                raise Overtaken
            status = self._status_of([rows.fetchall() for rows in asked], claim.analyst, clock)
            with self._sound():  # before any charge: stored draws are there, and undamaged
                draws = _load(_asks(db), {entry for one in wanted for entry in one.entries})
                found = tuple(
                    None if one.found is None else _together(one.claim.measures, one.known, one.found, draws)
                    for one in wanted
                )
                fresh = tuple(_fresh(one, draws) if one.found is None else None for one in wanted)
            missed = [one for one in wanted if one.found is None]
            charge = charge_of((one.claim.slices, one.fresh.charge) for one in missed)
            entries: tuple[int | None, ...] = (None,) * len(wanted)
            unproved = set[str]()
            if missed:
                self._refuse(db, status, claim.analyst, [(one.claim, one.fresh.charge) for one in missed])
                unproved = self._keep_certificates(db, missed)
                told = partial(charging, charge)
                numbers = iter(self._charge(db, claim, missed, status.epoch, at, unproved, told))
                entries = tuple(next(numbers) if one.found is None else None for one in wanted)
            reservation = Reservation(entries, found, charge, status.epoch, fresh, tuple(sorted(unproved)))
        self._ledger.step("reserved")
        return reservation

    def _require_slices(self, claim: Claim) -> None:
        """Raise LedgerError for a charge that does not say whose data it is for where that is what is counted."""
        has_periods = self._ledger.promise.period is not None
        if any((one.slices is not None) is not has_periods for one in claim.measurements):
            raise LedgerError(
                "a charge says for which periods' data it is where the ledger is kept by periods, and only there",
                hint="nothing was charged, and nothing was asked of the data",
            )

    def _refuse(
        self, db: Database, status: Status, analyst: str, missed: Sequence[tuple[MeasurementClaim, Charge]]
    ) -> None:
        """Raise BudgetExhausted unless what is to be drawn fits under all caps."""
        charge = sum((own for _, own in missed), ZERO)
        promise = self._ledger.promise
        if promise.period is None:
            refuse_over_cap(status, charge)
            return
        pending, column = Steps(), ""
        for measurement, own in missed:
            assert measurement.slices is not None, "it was looked at"
            column = column or measurement.slices.column
            for first, last in measurement.slices.runs:
                pending.add(first, last, (own.epsilon_nano, own.delta_atto, own.rho_atto))
        is_sure = False
        with suppress(BudgetExhausted):  # where the most of each run has room, each of its slices has
            most = _most_of_runs(db, analyst, pending, in_rho=promise.accounting is not Accounting.PURE)
            refuse_over_slices(status, most, charge, promise, column)
            is_sure = True
        if not is_sure:
            refuse_over_slices(status, _pieces(db, analyst, pending), charge, promise, column)
        if self._caps.windows or self._caps.person_nano is not None:
            lengths = tuple(length for length, _ in self._caps.windows)
            odometer = self._read_odometer(db, lengths)
            charges = [(one.slices, own) for one, own in missed if one.slices is not None]
            refuse_over_person(odometer, charges, self.window_caps, self.person_cap, promise)

    def _ends(self, db: Database, promise: Promise, reached: Sequence[int]) -> Ends | None:
        """Return where the periods end that were charged so far, and those that are reached now; None in UTC, where
        that is plain. Raises LedgerError where those of before ended elsewhere: rows have changed their periods.
        """
        if promise.period is None or promise.since is None or promise.zone == "UTC":
            return None
        first, told = number_of(promise.period, promise.since), last_told(db)
        known = None if told is None else told.ends
        until = max([first, *(0 if known is None else known[0],), *(last + 1 for last in reached)])
        if known is not None and ends_digest(promise.period, first, known[0], promise.zone) != known[1]:
            raise LedgerError(
                f"a {promise.period.value} that was charged begins at another moment than it did: the rules of the "
                f"zone {promise.zone} have changed",
                hint="use the time zone data (tzdata) that was there before, on this machine too",
            )
        return until, ends_digest(promise.period, first, until, promise.zone)

    def _times(self, db: Database, more: Iterable[tuple[str, str]]) -> Times:
        """Return by which time the rows of all tables are of a period that were charged so far, and `more`. Raises
        LedgerError where rows of a table were charged by another time: they have changed their periods.
        """
        told = last_told(db)
        known = {} if told is None else dict(told.times)
        for table, said in more:
            before = known.setdefault(table, said)
            if before != said:
                was, now = (f'time = "{one}"' if one else "no time" for one in (before, said))
                raise LedgerError(
                    f'rows of "{table}" were charged by {was}, and the policy has {now}: they would be of other '
                    "periods than those that were charged",
                    hint="write at the table what it was charged by: another time is another promise",
                )
        return tuple(sorted(known.items()))

    def _whose(self, db: Database, more: Iterable[Ground]) -> tuple[Ground, ...]:
        """Return how the rows of all tables that were charged so far find their owner, and `more`. Raises LedgerError
        where a table was charged with another owner: those charges do not protect the people that it has now.
        """
        told = last_told(db)
        known = {} if told is None else dict(told.whose)
        for table, said in more:
            before = known.setdefault(table, said)
            if before != said:
                raise LedgerError(
                    f'rows of "{table}" were charged by {before}, and the policy has {said}: they would be other '
                    "people's than those whom the charges protected",
                    hint="write at the table what it was charged by: another unit is another promise",
                )
        return tuple(sorted(known.items()))

    def require_times(self, times: Times) -> None:
        """Raise LedgerError where rows of a table were charged by another time than the one it is said to have.

        Requires: it is kept by slices.
        """
        with self._ledger.read() as db:
            self._times(db, times)

    def require_whose(self, whose: Iterable[Ground]) -> None:
        """Raise LedgerError where rows of a table were charged as other people's than the policy says they are.

        `whose`: tables, each with how its rows find their owner, as the policy has it (soundness.md 1.26).
        """
        with self._ledger.read() as db:
            self._whose(db, whose)

    @property
    def promise(self) -> Promise:
        """What its charges mean."""
        return self._ledger.promise

    @property
    def window_caps(self) -> list[tuple[int, int]]:
        """How many periods in a row have a cap, and which, in what is added up."""
        return [(length, self._cap(cap)) for length, cap in self._caps.windows]

    @property
    def person_cap(self) -> int | None:
        """The cap on what a person may lose who is in every slice, in what is added up."""
        return None if self._caps.person_nano is None else self._cap(self._caps.person_nano)

    def _cap(self, epsilon_nano: int) -> int:
        return cap_of(epsilon_nano, self._ledger.promise, self._caps.delta_atto)

    def _read_odometer(self, db: Database, lengths: tuple[int, ...]) -> Odometer:
        """Return what a person may have lost, up to the ledger's last record."""
        promise = self._ledger.promise
        assert promise.period is not None
        assert promise.since is not None, "kept by slices"
        in_rho = promise.accounting is not Accounting.PURE
        odometer = self._odometer
        if odometer is None or (odometer.lengths, odometer.in_rho) != (lengths, in_rho):
            odometer = Odometer(number_of(promise.period, promise.since) - 1, lengths, in_rho)
        while rows := db.execute(_RECORDS, (odometer.read_to, _PAGE)).fetchall():
            odometer.read((number, read_record(body)) for number, body in rows)
        self._odometer = odometer
        return odometer

    def odometer(self) -> Odometer:
        """Return what a person who is in several slices may have lost. Requires: it is kept by slices.

        Reads, the first time, all records.
        """
        lengths = tuple(length for length, _ in self._caps.windows)
        with self._ledger.read() as db:
            return self._read_odometer(db, lengths)

    def left_of(self, slices: Slices, analyst: str | None = None) -> Left:
        """Return what is left of some slices: of those of which the least is. Requires: it is kept by slices."""
        in_rho = self._ledger.promise.accounting is not Accounting.PURE
        names = ("",) if analyst is None else ("", analyst)
        with self._ledger.read() as db:
            epoch, grants = (rows.fetchall() for rows in [db.execute(*one) for one in (_EPOCH, _GRANTS)])
            everybody, *mine = (_highest(db, name, slices.runs, in_rho=in_rho) for name in names)
            own = mine[0] if mine else ZERO
            status = self._status(epoch, (everybody, own), grants, analyst=analyst)
            scopes = status.scopes[: 1 + (status.analyst_cap_nano is not None)]
            least = min(scopes, key=lambda scope: scope.left)
            name, most = (names[0], everybody) if least == scopes[0] else (names[-1], own)
            amount = most.amount(in_rho=in_rho)
            where = slices
            if amount:
                asked = [db.execute(*alike_met(name, *run, amount, in_rho=in_rho)) for run in slices.runs]
                runs = [
                    (max(first, begin), min(last, end))
                    for (first, last), rows in zip(slices.runs, asked, strict=True)
                    for begin, end in rows.fetchall()
                ]
                dated = [run for run in runs if run[0] != UNDATED]
                where = Slices(Slices.joined(dated), is_undated=len(dated) < len(runs))
        return Left(replace(status, of=self._words(where)), where)

    def slices(self, analyst: str | None = None) -> Steps:
        """Return what was charged by slice, to everybody or to an analyst. Requires: it is kept by slices."""
        (rows,) = self._ledger.read_settled((f"{_OF_SLICES} ORDER BY first_period", (analyst or "",)))
        return Steps(met(rows, UNDATED))

    def _words(self, slices: Slices) -> str:
        promise = self._ledger.promise
        return "" if promise.period is None else slices.text(promise.period, promise.since)

    @contextmanager
    def _sound(self) -> Iterator[None]:
        """Raise LedgerError where stored rows cannot be read, or are not what was stored."""
        try:
            yield
        except UnknownLaw as error:
            raise newer() from error
        except MALFORMED as error:
            raise self._ledger.damage() from error

    def _find(self, measurement: MeasurementClaim, drawn: dict[bytes, _Drawn], reuse: bool) -> _Wanted:
        """Return what answers a measurement; else what is drawn for it, and what answers it then."""
        if not measurement.measures or not reuse:
            return _Wanted(measurement, (), None, fresh_of(replace(measurement, known=None), ()))
        known = tuple(drawn[key] for key in measurement.measures)
        stored = [each.stored for each in known]
        found, fresh = choose_draws(stored, measurement.law), fresh_of(measurement, stored)
        if found is not None:
            return _Wanted(measurement, known, found, fresh)
        after = [{**laws, _NEW: fresh.law.at(coordinate)} for coordinate, laws in enumerate(stored)]
        return _Wanted(measurement, known, None, fresh, combined_draws(after, fresh.law) or ())

    def _must_wait(self, db: Database, wanted: _Wanted) -> bool:
        """Return whether it is worth waiting for what another statement draws now."""
        if wanted.found is not None:
            return False
        holders = {entry: holder for each in wanted.known for entry, (_, holder) in each.reserved.items()}
        dead = {entry for entry, holder in holders.items() if not self._ledger.is_running(db, entry, holder)}
        if wanted.claim.wish is not None:  # what it draws counts: it is paid for once
            return len(dead) < len(holders)
        stored = [each.stored for each in wanted.known]
        running = [
            {e: law for e, (law, _) in each.reserved.items() if e not in dead} for each in wanted.known
        ]
        return bool(stored and running_draws(stored, running, wanted.claim.law))

    def _keep_certificates(self, db: Database, missed: Sequence[_Wanted]) -> set[str]:
        """Store what proves the charge of what must be drawn; return the digests of those that have no room."""
        kept = {one.digest: one for one in (each.claim.certificate for each in missed) if one is not None}
        return {digest for digest, one in kept.items() if not self._ledger.keep_certificate(db, one)}

    def _charge(
        self,
        db: Database,
        claim: Claim,
        missed: Sequence[_Wanted],
        epoch: int,
        at: str,
        unproved: Set[str],
        told: Callable[[bool | None], None],
    ) -> range:
        """Record the charge of what must be drawn; return the entries' numbers. `unproved`: certificates that they do
        not name; `told`: see `Ledger.append`."""
        reached = [one.claim.slices for one in missed if one.claim.slices is not None]
        ends = self._ends(db, self._ledger.promise, [last for each in reached for _, last in each.periods])
        times = self._times(db, {one for each in reached for one in each.times}) if reached else ()
        whose = self._whose(db, {said for one in missed for said in one.claim.whose})
        entries = [
            Entry(
                seq=_UNNUMBERED,
                at=at,
                epoch=epoch,
                analyst=claim.analyst,
                statement=claim.statement if one.claim.statement is None else one.claim.statement,
                note=_note(one),
                measures=one.claim.measures,
                law=one.fresh.law,
                charge=one.fresh.charge,
                grouping=one.claim.grouping,
                certificate=_named(one.claim.certificate, unproved),
                grounds=one.claim.grounds,
                slices=one.claim.slices,
                ends=ends,
                times=times,
                whose=whose,
            )
            for one in missed
        ]
        first = self._ledger.append(db, entries, told)
        for number, entry in enumerate(entries, first):
            _insert_measures(db, number, entry, entry.measures, entry.law)
            if entry.grouping is not None:
                _insert_key(db, number, entry, entry.grouping.family, entry.law)
        return range(first, first + len(entries))

    def commit(self, reservation: Reservation, draws: Sequence[Draw]) -> None:
        """Store what was drawn, one draw for each of `reservation.to_draw`; durable on return.

        Only after this may a byte of the answer leave (soundness.md 3.5).
        Raises ValueError when a draw does not hold the measures, or the law, that were reserved;
        LedgerError when the reservation was given up meanwhile. What was charged stays spent. LedgerAway, or Stopped:
        whether the draws are stored is not known.
        """
        if len(draws) != len(reservation.to_draw):
            raise ValueError("commit takes one draw for each reserved entry")
        if not draws:
            return
        self._ledger.step("before draws")
        with self._ledger.write() as db:
            entries = self._reserved(db, reservation.to_draw)
            for number, draw in zip(reservation.to_draw, draws, strict=True):
                _store(db, number, *entries[number], draw)
            self._ledger.step("draws inserted")
        self._ledger.step("draws committed")

    def _reserved(self, db: Database, numbers: Sequence[int]) -> dict[int, tuple[Entry, str]]:
        """Return the entries as they were reserved here, and the text of their records.

        Raises ValueError when one is committed already, LedgerError when one was closed: given up, or
        taken for dead while the ledger was out of reach.
        """
        rows = db.execute(
            f"SELECT seq, body, state, holder FROM record WHERE seq IN ({_marks(numbers)})", numbers
        ).fetchall()
        for number, _, state, holder in rows:
            if state == EntryState.COMMITTED.value:
                raise ValueError(f"entry {number} is committed already")
            if (state, holder) != (EntryState.RESERVED.value, self._ledger.holder):
                raise _closed()
        if len(rows) != len(numbers):
            raise _closed()
        return {number: (_entry(number, body, EntryState.RESERVED), body) for number, body, _, _ in rows}

    def fail(self, reservation: Reservation) -> None:
        """Give up what was not committed. It stays spent. Does nothing to what is committed or failed already.

        Where the ledger is out of reach now, the entries are closed before its next change.
        """
        if reservation.to_draw:
            with suppress(LedgerError, Stopped):
                self._ledger.give_up(reservation.to_draw)

    def spent(self) -> Charge:
        """Return what everybody together has spent."""
        ((*rows,),) = self._ledger.read_settled(_SPENT)
        return sum((Charge(*map(int, sums)) for _, *sums in rows), ZERO)

    def status(self, analyst: str | None = None) -> Status:
        """Return what is spent and what the caps are, in all scopes that bind `analyst`, and the epoch.

        Where it is kept by slices: of the newest period that was charged (`Status.of`).
        """
        has_days = self._rations is not None and self._rations.read_to < 0 and self._ledger.is_current()
        self._read_rations(lambda statement: self._ledger.read_settled(statement)[0], has_days=has_days)
        changes = self._ledger.changes
        if changes is None or self._rations is not None:
            return self._status_of(self._ledger.read_settled(*self._asked(analyst)), analyst)
        # what changes is read first: where it is the same again, so is all that is read after it
        promise = self._ledger.promise
        found = self._ledger.read_settled(changes, *self._asked(analyst))
        known = self._last_status.get(analyst)
        if known is None or known[:2] != (found, promise):
            known = self._last_status[analyst] = found, promise, self._status_of(found[1:], analyst)
        return known[2]

    def _asked(self, analyst: str | None) -> tuple[Statement, ...]:
        """Ask for what a status is made of: epoch, what is spent by everybody and by the analyst, grants; where the
        ledger is kept by slices, what was charged of the newest period.
        """
        if self._ledger.promise.period is None:
            return _EPOCH, _SPENT, _GRANTS
        newest = f"{_OF_SLICES} ORDER BY first_period DESC LIMIT 1"
        return _EPOCH, (newest, ("",)), (newest, (analyst or "",)), _GRANTS

    def _status_of(self, found: Sequence[list[Any]], analyst: str | None, clock: str | None = None) -> Status:
        """Return the status from the rows of what `_asked` asks for."""
        if self._ledger.promise.period is None:
            epoch, spent, grants = found
            everybody, own = ZERO, ZERO
            for name, *sums in spent:
                charge = Charge(*map(int, sums))
                everybody, own = everybody + charge, own + charge if name == analyst else own
            return self._status(epoch, (everybody, own), grants, analyst=analyst, clock=clock)
        epoch, newest, mine, grants = found
        runs, first = met(newest, UNDATED), UNDATED
        words = ""
        if runs:
            first, last, _ = runs[0]
            words = self._words(Slices((), is_undated=True) if first == UNDATED else Slices(((first, last),)))
        whole, own = (
            Charge(*each[0][2]) if each else ZERO for each in (runs, met(mine, first) if analyst else [])
        )
        return replace(self._status(epoch, (whole, own), grants, analyst=analyst, clock=clock), of=words)

    def status_at_once(self, analyst: str | None = None) -> Status | None:
        """Return what `status` does; None where that takes more than a moment. For a thread that must not wait."""
        if self._rations is not None:
            return None  # the records since the last look are to be read first
        found = self._ledger.read_at_once(*self._asked(analyst))
        if found is None:
            return None
        rows, known = self._last_read
        if rows is not found:  # the ledger gives the same list again while nothing has changed
            known = {}
            self._last_read = found, known
        asked = analyst, self._ledger.promise
        status = known.get(asked)
        if status is None:
            status = known[asked] = self._status_of(found, analyst)
        return status

    def _read_rations(self, ask: Callable[[Statement], list[Any]], *, has_days: bool) -> None:
        """Read the records that came since the last look, where a period has caps; at first what they add up to."""
        if self._rations is not None and self._rations.read_to < 0 and has_days:
            self._rations.begin(ask(_DAYS))
        while self._rations is not None:
            rows = ask((_RECORDS, (self._rations.read_to, _PAGE)))
            self._rations.read(rows)
            if len(rows) < _PAGE:
                return

    def _status(
        self,
        epoch: list[Any],
        spent: tuple[Charge, Charge],
        grants: list[Any],
        *,
        analyst: str | None,
        clock: str | None = None,
    ) -> Status:
        """Return the status from the rows of `_EPOCH` and `_GRANTS`; `spent`: by everybody, and by the analyst."""
        everybody, own = spent
        granted: dict[str | None, int] = {}
        for (body,) in grants:
            grant = json.loads(body)
            granted[grant["analyst"]] = granted.get(grant["analyst"], 0) + grant["epsilon_nano"]
        own_cap = None if analyst is None else self._caps.analysts.get(analyst)
        status = Status(
            epsilon_spent_nano=everybody.epsilon_nano,
            epsilon_cap_nano=self._caps.epsilon_nano + granted.get(None, 0),
            delta_spent_atto=everybody.delta_atto,
            delta_cap_atto=self._caps.delta_atto,
            rho_spent_atto=everybody.rho_atto,
            analyst_spent_nano=own.epsilon_nano,
            analyst_cap_nano=None if own_cap is None else own_cap + granted.get(analyst, 0),
            epoch=int(epoch[0][0]),
        )
        promise = self._ledger.promise
        kept = in_accounting(status, promise, own.rho_atto)
        if self._rations is None:
            return kept

        def cap(epsilon_nano: int) -> int:
            return cap_of(epsilon_nano, promise, self._caps.delta_atto)

        moment, untaken = self._rations.moment(clock or utc_now())
        return replace(kept, rations=self._rations.scopes(kept, analyst, moment, cap), clock=untaken)

    def tidy(self) -> None:
        """Do what can wait, so that no charge waits for it; nothing is different after it. Raises LedgerError."""
        self._ledger.tidy()
        if self._rations is not None and time.monotonic() >= self._look_at_clock:
            self._look_at_clock = time.monotonic() + _CLOCK_SECONDS
            self._keep_clock(self._rations)

    def _keep_clock(self, rations: Rations) -> None:
        """Write a record if the last one is old, so that the ledger's moment advances while nobody asks."""
        self.status()
        at, untaken = rations.moment(utc_now())
        before = rations.highest
        if untaken or before is None or datetime.fromisoformat(at) - before < timedelta(hours=KEPT_HOURS):
            return
        with self._ledger.write() as db:
            self._ledger.append(db, [Clock(_UNNUMBERED, self._moment(db))])

    def _moment(self, db: Database, clock: str | None = None) -> str:
        """Return the moment of what is recorded now: the clock's, or the ledger's own where periods have caps."""
        clock = clock or utc_now()
        if self._rations is None:
            return clock
        self._read_rations(lambda statement: db.execute(*statement).fetchall(), has_days=True)
        return self._rations.moment(clock)[0]

    def moment(self) -> str:
        """Return the ledger's moment (soundness.md 3.12): where no period has caps, that of its last record."""
        if self._rations is not None:
            self.status()
            if self._rations.highest is not None:
                return self._rations.highest.isoformat(timespec="seconds")
        if self._ledger.promise.period is not None:  # the highest one: what has closed stays closed
            [rows] = self._ledger.read_settled((MOMENT, ()))
            if rows:
                return str(rows[0][0])
        ((row,),) = self._ledger.read_settled(_NEWEST)
        return str(read_record(row[0]).at)

    def confirm_clock(self, by: str) -> str:
        """Have the ledger take the machine's clock as it is, and return it: an owner's act, recorded."""
        require_text("by", by)
        at = utc_now()
        with self._ledger.write() as db:
            self._ledger.append(db, [Clock(_UNNUMBERED, at, by)])
        return at

    @property
    def lost(self) -> str:
        """What the ledger's file was found to have lost when it was opened, in words; empty where nothing was.

        An entry that was in the log alone may have had a stored answer, or was cut off before there was one.
        """
        replayed = self._ledger.replayed
        told: list[str] = []
        if replayed.entries:
            answers = _counted(replayed.entries, "stored answer is", "stored answers are")
            told.append(
                f"{answers} lost, as far as there were any: what they cost is in the log, and stays spent"
            )
        if replayed.grants:
            told.append(f"{_counted(replayed.grants, 'grant is', 'grants are')} void, and can be given again")
        return "; ".join(told)

    def rotate(self) -> Path | None:
        """Seal the log's file and begin another; return the sealed one, None where it was empty."""
        return self._ledger.rotate()

    def note(self) -> Note | None:
        """Return what a witness is told of the log now; None for a log older than format 4."""
        chain = self._ledger.compared()
        return note_of(chain, utc_now()) if chain.is_chained else None

    def verify(self, archive: Path | None = None, notes: Sequence[Note] | None = None) -> Report:
        """Compare all of the ledger with all of its log, and each stored answer and certificate with its checksum.

        `archive`: the folder of sealed files that are not in the log's own; `notes`: those of a witness, with which the
        log has to agree. Raises LedgerError for what is not as it was written, or missing.
        """
        testimony = Testimony(notes or ())
        log = self._ledger.log_id
        state = self._ledger.verify(archive, lambda state: testimony.look(state.chains[log]))
        if notes is not None:
            testimony.require(state.chains[log])
        answers, damaged, named = self._verify_draws()
        unproved = sum(self.certificate(digest, archive) is None for digest in named)
        return Report(state.number + 1, self._ledger.files, answers, damaged, unproved, testimony.agreed)

    def _verify_draws(self) -> tuple[int, int, set[str]]:
        """Return how many answers are stored, of how many entries they are damaged or missing, and which certificates
        these name."""
        stored, damaged, last = 0, 0, -1
        named: set[str] = set()
        while True:
            with self._ledger.read() as db:
                rows = db.execute(*_draws_after(last)).fetchall()
            for number, body, measures, scale, payload in rows:
                last = number
                try:
                    if (digest := _entry(number, body, EntryState.COMMITTED).certificate) is not None:
                        named.add(digest)
                    read_draw(body, bytes(measures), scale, bytes(payload))
                    stored += 1
                except (*MALFORMED, LedgerError):
                    damaged += 1
            if len(rows) < _DRAWS:
                return stored, damaged, named

    def back_up(self, folder: Path) -> list[Path]:
        """Copy the ledger and its log; see `Ledger.back_up`."""
        return self._ledger.back_up(folder)

    def analysts(self) -> list[str]:
        """Return the names of those who were charged, in order."""
        (rows,) = self._ledger.read_settled(_SPENT)
        return sorted(name for name, *_ in rows)

    def log(self, limit: int) -> list[Entry]:
        """Return the newest `limit` entries, newest first."""
        (rows,) = self._ledger.read_settled(
            (
                "SELECT seq, body, state FROM record WHERE kind = 'entry' ORDER BY seq DESC LIMIT ?",
                (max(0, limit),),
            )
        )
        return [_entry(number, body, EntryState(state)) for number, body, state in rows]

    def grant(self, analyst: str | None, epsilon_nano: int, by: str) -> None:
        """Raise the analyst's cap, or the global one for None: an owner's act, recorded.

        A grant whose ledger write a crash cut off is void.
        """
        require_integer("epsilon_nano", epsilon_nano, 1, MOST_EPSILON_NANO)
        for name in (analyst, by):
            require_text("name", name or "")
        with self._ledger.write() as db:
            self._ledger.append(db, [Grant(_UNNUMBERED, self._moment(db), analyst, epsilon_nano, by)])

    def move_to_zcdp(self, conversion_delta_atto: int, by: str) -> Status:
        """Keep the ledger in rho from now on, for good: an owner's act, recorded (soundness.md 3.11).

        Raises LedgerError where what was spent does not fit, or the ledger is kept so already; nothing is changed then.
        """
        require_integer("conversion_delta_atto", conversion_delta_atto, 1, MOST_DELTA_ATTO)
        require_text("by", by)
        with self._ledger.write() as db:
            if self._ledger.promise.accounting is not Accounting.PURE:
                raise LedgerError("this ledger is kept in rho already", hint="there is nothing to move")
            move = Move(_UNNUMBERED, self._moment(db), conversion_delta_atto, by)
            refuse_past(in_accounting(self._most(db), self._ledger.promise.after(move)))
            self._ledger.append(db, [move])
        return self.status()

    def divide(self, promise: Promise, *, is_all: bool, by: str, times: Times = ()) -> Division:
        """Keep the ledger by the periods of a promise from now on, for good: an owner's act, recorded.

        All that was charged counts for each period up to the running one, and with `is_all` for all that are to come,
        and for undated rows (soundness.md 3.22). `times`: by which time tables' rows are of a period. Raises
        LedgerError where it is kept so already, or lacks records.
        """
        require_text("by", by)
        own = self._ledger.promise
        period, since = promise.period, promise.since
        if period is None or since is None:
            raise ValueError("a ledger is divided into periods")
        with self._ledger.write() as db:
            if own.period is not None:
                raise LedgerError("this ledger is kept by periods already", hint="there is nothing to divide")
            at = self._moment(db)
            now = max(
                moment_of(at),
                moment_of(utc_now()),
                *(moment_of(row[0]) for row in db.execute(MOMENT).fetchall()),
            )
            last = number_of(period, now.astimezone(ZoneInfo(promise.zone)).date())
            reached = Slices(((0, MOST_NUMBER if is_all else last),), is_undated=True, over=Over.ONCE)
            is_replaced = own.neighbours == Neighbours.REPLACE_ONE.value
            spent = tuple(sorted(self._as_slices(db, is_replaced=is_replaced).items()))
            ends = self._ends(db, promise, [last])
            whose = self._whose(db, ())
            division = Division(
                _UNNUMBERED, at, period, promise.zone, since, reached, spent, by, ends, times, whose
            )
            self._ledger.append(db, [division])
        return division

    def _as_slices(self, db: Database, *, is_replaced: bool) -> dict[str, Sums]:
        """Return by analyst what all charges so far count for in each slice (soundness.md 3.22): removing what a
        person has in one period is two steps, removing the person and adding the rest. Raises LedgerError.
        """
        found: dict[str, Sums] = {}
        told: dict[str, Sums] = {}
        last = -1
        while rows := db.execute(_ENTRIES, (last, _PAGE)).fetchall():
            for last, body in rows:  # noqa: B007
                fields = json.loads(body)
                name = fields["analyst"]
                sums = fields["epsilon_nano"], fields["delta_atto"], fields["rho_atto"]
                told[name] = add(told.get(name, _NOTHING), sums)
                found[name] = add(found.get(name, _NOTHING), sums if is_replaced else twice(sums))
        for name, *written in db.execute(*_SPENT).fetchall():
            sums = int(written[0]), int(written[1]), int(written[2])
            if told.get(name, _NOTHING) != sums:
                raise LedgerError(
                    "the ledger does not have all of its records: it was made anew from a later file of its log",
                    hint="put the sealed files back beside the log, move the ledger away, and it is made anew from all",
                )
        return found

    def _most(self, db: Database) -> Status:
        """Return the status in which the most of any slice is spent, where the ledger is kept so."""
        found = [db.execute(*statement).fetchall() for statement in self._asked(None)]
        if self._ledger.promise.period is None:
            return self._status_of(found, None)
        runs = [
            sums
            for _, _, sums in met(
                db.execute(f"{_OF_SLICES} ORDER BY first_period", ("",)).fetchall(), UNDATED
            )
        ]
        most = Charge(*(max((sums[kind] for sums in runs), default=0) for kind in range(3)))
        return self._status(found[0], (most, ZERO), found[-1], analyst=None)

    @property
    def epoch(self) -> int:
        """See `StoredDraws.epoch`."""
        ((row,),) = self._ledger.read_settled(_EPOCH)
        return int(row[0])

    @property
    def is_empty(self) -> bool:
        """See `StoredDraws.is_empty`."""
        return not self._ledger.ask(_ANY_MEASURE)

    def advance_epoch(self, checked: Sequence[KeyCheck] = (), retired: Slices | None = None) -> int:
        """Begin a new epoch and return it: stored releases stop answering, nothing comes back.

        `retired`: those that were charged to one of these slices, in a ledger by periods; None: all.
        `checked`: the asserted keys that were looked at, recorded in the same step; their times are given here.
        """
        if retired is not None and self._ledger.promise.period is None:
            raise LedgerError("stored answers are retired by periods where the ledger is kept by periods")
        with self._ledger.write() as db:
            epoch, at = int(db.execute(*_EPOCH).fetchone()[0]) + 1, self._moment(db)
            begun = EpochStart(_UNNUMBERED, at, epoch, retired)
            self._ledger.append(db, [begun, *_of_epoch(checked, epoch, at)])
        return epoch

    def record_keys(self, checked: Sequence[KeyCheck]) -> None:
        """Record what was found of asserted keys, in the epoch that is: an owner's act."""
        if checked:
            with self._ledger.write() as db:
                epoch = int(db.execute(*_EPOCH).fetchone()[0])
                self._ledger.append(db, _of_epoch(checked, epoch, self._moment(db)))

    def key_check(self, table: str, columns: tuple[str, ...], version: str) -> KeyCheck | None:
        """Return what was found last of a key in data of exactly this version, None if nobody looked."""
        read_to, known = self._key_checks
        [(last,)], rows = self._ledger.read_settled(_LAST, (_KEY_CHECKS, (read_to,)))
        found = dict(known)
        for (body,) in rows:
            record = read_record(body)
            if not isinstance(record, KeyCheck):
                raise self._ledger.damage()
            found[record.subject] = record
        self._key_checks = int(last), found
        return found.get((table, columns, version))

    def certificate(self, digest: str, archive: Path | None = None) -> bytes | None:
        """Return a certificate that was kept, None where there is none. Raises LedgerError where it is damaged.

        `archive`: the folder of sealed files that are not in the log's own.
        """
        if not self._ledger.is_current():
            return None
        with self._ledger.read() as db:
            content = certificates.stored(db, digest)
        if content is not None:
            return content
        return certificates.sealed(self._ledger.sealed_certificates(archive), digest)

    def secret(self) -> bytes:
        """Return 32 random bytes made with the ledger, for the salt of contribution bounding."""
        if self._secret is None:
            with self._ledger.read() as db:
                self._secret = bytes(db.execute("SELECT secret FROM ledger").fetchone()[0])
        return self._secret


def _named(one: certificates.Certificate | None, unproved: Set[str]) -> str | None:
    """Return the name of a certificate that is stored."""
    return None if one is None or one.digest in unproved else one.digest


def _grounds(text: str) -> Grounds:
    found = json.loads(text)
    return None if found is None else tuple((of, said) for of, said in found)


def _highest(db: Database, name: str, runs: Iterable[tuple[int, int]], *, in_rho: bool) -> Charge:
    """Return the most that was charged to an analyst, or by all, of some slices: of what is added up, and of delta."""
    asked = [db.execute(*most_met(name, *run, in_rho=in_rho)) for run in runs]
    found = [rows.fetchone() for rows in asked]
    amount, delta = (max(_of_length(row[i]) for row in found) for i in (0, 1))
    return Charge(0, delta, amount) if in_rho else Charge(amount, delta, 0)


def _of_length(text: str | None) -> int:
    """Return the number of a text that begins with its length; see `most_met`."""
    return 0 if text is None else int(text[3:])


def _most_of_runs(db: Database, analyst: str | None, pending: Steps, *, in_rho: bool) -> list[Piece]:
    """Return `_pieces` with each run of a claim as one piece, whose slices all count as the one charged most."""
    names = ("",) if analyst is None else ("", analyst)
    found = []
    for first, last, charge in pending:
        most = [_highest(db, name, [(first, last)], in_rho=in_rho) for name in names]
        everybody, *own = ((one.epsilon_nano, one.delta_atto, one.rho_atto) for one in most)
        found.append(Piece(first, last, everybody, own[0] if own else _NOTHING, charge))
    return found


def _pieces(db: Database, analyst: str | None, pending: Steps) -> list[Piece]:
    """Return what was charged of the slices of a claim, each run of which is to be charged `pending`."""
    names = ("",) if analyst is None else ("", analyst)
    asked = [(run, [db.execute(*slices_met(name, run[0], run[1])) for name in names]) for run in pending]
    found: list[Piece] = []
    for (first, last, sums), rows in asked:
        everybody, *own = (met(each.fetchall(), first) for each in rows)
        mine = iter(own[0] if own else ())
        until, share = first - 1, _NOTHING
        ahead = next(mine, None)
        for begin, end, spent in added(everybody, first, last, _NOTHING):
            if first <= begin and end <= last:
                while (
                    ahead is not None and ahead[0] <= begin
                ):  # a run of the analyst's ends where a run of all ends
                    (_, until, share), ahead = ahead, next(mine, None)
                found.append(Piece(begin, end, spent, share if begin <= until else _NOTHING, sums))
    return found


def _counted(number: int, one: str, several: str) -> str:
    return f"1 {one}" if number == 1 else f"{number} {several}"


def _draws_after(number: int) -> Statement:
    return (
        "SELECT r.seq, r.body, d.measures, d.scale, d.payload FROM record r LEFT JOIN draw d ON d.entry = r.seq"
        " WHERE r.seq > ? AND r.state = 'committed' ORDER BY r.seq LIMIT ?",
        (number, _DRAWS),
    )


def _of_epoch(checked: Sequence[KeyCheck], epoch: int, at: str) -> list[KeyCheck]:
    for one in checked:
        for text in (one.table, *one.columns, one.version, one.dpsql, one.by):
            require_text("name", text)
    return [replace(one, seq=_UNNUMBERED, at=at, epoch=epoch) for one in checked]


def _until(stored: Laws, last: int | None) -> Laws:
    """Return the draws up to an entry; None: all."""
    return stored if last is None else {entry: law for entry, law in stored.items() if entry <= last}


def _marks(values: Sequence[object]) -> str:
    return ", ".join("?" * len(values))


def _asks(db: Database) -> _Ask:
    """Return what asks within a transaction."""
    return lambda statement: db.execute(*statement).fetchall()


def _drawn(ask: _Ask, keys: Sequence[bytes]) -> dict[bytes, _Drawn]:
    """Return what is stored and what is reserved of each measure in this epoch."""
    drawn = {key: _Drawn() for key in keys}
    if not drawn:
        return drawn
    sql = (
        "SELECT m.key, m.entry, m.scale, r.state, r.holder FROM measure m JOIN record r ON r.seq = m.entry"
        f" WHERE m.epoch = (SELECT epoch FROM ledger) AND m.key IN ({_marks(list(drawn))})"
    )
    for key, entry, scale, state, holder in ask((sql, list(drawn))):
        if state == EntryState.COMMITTED.value:
            drawn[key].stored[entry] = law_of(scale)
        elif state == EntryState.RESERVED.value:
            drawn[key].reserved[entry] = (law_of(scale), holder)
    return drawn


def _groupings_of(families: Sequence[bytes]) -> Statement:
    """Ask for the epoch, in a row of its own, and for the stored groupings of each family in it."""
    return (
        "SELECT epoch, NULL, NULL, NULL, NULL FROM ledger UNION ALL"
        " SELECT m.epoch, m.key, m.entry, m.scale, r.body FROM measure m JOIN record r ON r.seq = m.entry"
        f" WHERE m.epoch = (SELECT epoch FROM ledger) AND r.state = ? AND m.key IN ({_marks(families)})",
        (EntryState.COMMITTED.value, *families),
    )


def _newest(db: Database, epoch: int, key: bytes) -> list[tuple[int, Entry, int]]:
    """Return the entries that drew a measure, with the last epoch that each answers in: the newest epoch first, then
    the least spread.

    Raises one of `MALFORMED`.
    """
    epochs = range(epoch, max(0, epoch - _OLDEST), -1)
    rows = db.execute(
        "SELECT m.entry, r.body, m.epoch FROM measure m JOIN record r ON r.seq = m.entry"
        f" WHERE r.state = ? AND m.key = ? AND m.epoch IN ({_marks(epochs)})",
        (EntryState.COMMITTED.value, key, *epochs),
    ).fetchall()
    found = [(number, _entry(number, body, EntryState.COMMITTED), int(of)) for number, body, of in rows]
    return sorted(found, key=lambda one: (-one[2], one[1].law.spread, -one[0]))


def _load(ask: _Ask, chosen: Set[int]) -> dict[int, Draw]:
    """Return the draws of the chosen entries, as far as they are there. Raises one of `MALFORMED`."""
    entries = sorted(chosen)
    if not entries:
        return {}
    sql = (
        "SELECT d.entry, r.body, d.measures, d.scale, d.payload FROM draw d JOIN record r ON r.seq = d.entry"
        f" WHERE d.entry IN ({_marks(entries)})"
    )
    return {entry: read_draw(*row) for entry, *row in ask((sql, entries))}


def _keys(claim: Claim) -> list[bytes]:
    """Return the measures that are looked for."""
    if not claim.reuse:
        return []
    known = (one.known for one in claim.measurements if one.known is not None)
    return [
        *(key for one in claim.measurements for key in one.measures),
        *(k for o in known for k, _ in o.seen),
    ]


def _is_overtaken(measurement: MeasurementClaim, drawn: Mapping[bytes, _Drawn]) -> bool:
    """Say whether a measurement counts on what is no longer all that is stored."""
    seen = () if measurement.known is None else measurement.known.seen
    return any(drawn[key].stored.keys() != entries for key, entries in seen)


def _note(wanted: _Wanted) -> str:
    fresh = wanted.fresh
    if not fresh.stored:
        return wanted.claim.note
    is_zcdp = wanted.claim.wish is not None and wanted.claim.wish.is_zcdp
    worth = f"rho {rho_text(fresh.stored)}" if is_zcdp else f"epsilon {epsilon_text(fresh.stored)}"
    listed = f", in {', '.join(map(str, fresh.entries))}" if fresh.entries else ""
    return f"{wanted.claim.note}; {worth} of it is stored{listed}"


def _together(
    measures: Sequence[bytes], known: Sequence[_Drawn], found: Found, draws: Mapping[int, Draw]
) -> tuple[Together, ...]:
    """Return the draws of each measure. Raises one of `MALFORMED` where one lacks its measure, or has another law."""
    for key, each, entries in zip(measures, known, found, strict=True):
        for entry in entries:
            draw = draws[entry]
            if draw.law.at(draw.measures.index(key)) != each.stored[entry]:
                raise ValueError("the index of measures is not that of the draws")
    return tuple(tuple(draws[entry] for entry in entries) for entries in found)


def _fresh(wanted: _Wanted, draws: Mapping[int, Draw]) -> Fresh:
    """Return what is to be drawn. Raises as `_together`."""
    stored = tuple(tuple(entry for entry in entries if entry != _NEW) for entries in wanted.beside)
    if stored:
        _together(wanted.claim.measures, wanted.known, stored, draws)
    beside = tuple(
        tuple(None if entry == _NEW else draws[entry] for entry in entries) for entries in wanted.beside
    )
    return replace(wanted.fresh, beside=beside)


def _store(db: Database, number: int, entry: Entry, body: str, draw: Draw) -> None:
    if not entry.measures:
        _insert_measures(db, number, entry, draw.measures, draw.law)
    elif (draw.measures, draw.law) != (entry.measures, entry.law):
        raise ValueError("a draw holds the measures, under the law, that were reserved")
    db.execute(
        "INSERT INTO draw (entry, measures, scale, payload) VALUES (?, ?, ?, ?)",
        (number, b"".join(draw.measures), draw.law.text, stored_payload(entry, body, draw)),
    )
    db.execute(
        "UPDATE record SET state = ?, holder = NULL WHERE seq = ?", (EntryState.COMMITTED.value, number)
    )


def _insert_measures(db: Database, number: int, entry: Entry, keys: Sequence[bytes], law: Law) -> None:
    for coordinate, key in enumerate(keys):
        _insert_key(db, number, entry, key, law.at(coordinate))


def _insert_key(db: Database, number: int, entry: Entry, key: bytes, law: Law) -> None:
    db.execute(
        "INSERT INTO measure (epoch, key, entry, scale) VALUES (?, ?, ?, ?)",
        (entry.epoch, key, number, law.text),
    )


def _entry(number: int, body: str, state: EntryState) -> Entry:
    return replace(_entry_of(body), seq=number, state=state)


def _entry_of(body: str) -> Entry:
    """Return an entry as it was reserved, without a number."""
    record = read_record(body)
    if not isinstance(record, Entry):
        raise LedgerError("the ledger holds a record of the wrong kind", hint="restore it from its log")
    return record


def _closed() -> LedgerError:
    return LedgerError(
        "the charge was closed before its answer was stored",
        hint="ask again; the ledger was out of reach for a while, and what was charged stays spent",
    )
