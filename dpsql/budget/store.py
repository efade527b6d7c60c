"""What every budget store offers, whatever it is built on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from ..mechanisms import Law
from ..policy import Slices
from ..policy.periods import Times
from ..relation.catalog import Ground
from .chain import Note
from .claim import Caps, Charge, Claim, DatedDraw, Draw, Fresh, Reservation, Resting, StoredGrouping, Together
from .editions import Edition
from .entry import Division, Entry, KeyCheck, Left, Promise, Status
from .match import Laws
from .slices import Odometer, Steps

__all__ = ["BudgetStore", "StoredDraws", "never_cancelled", "untold"]


def never_cancelled() -> bool:
    """Return False: the caller cannot be cancelled."""
    return False


def untold(charge: Charge, is_logged: bool | None) -> None:
    """Do nothing: the caller does not tell what a statement that fails was charged."""


class StoredDraws(Protocol):
    """What was drawn, as far as it may answer again; reading it charges nothing."""

    def lookup(
        self, measures: Sequence[bytes], law: Law, until: int | None = None
    ) -> tuple[Together, ...] | None:
        """Return the stored draws of each measure, together of no more spread than `law`, or None.

        `until`: of the ledger entries up to this one; None: of all.
        """
        ...

    def laws(self, measures: Sequence[bytes]) -> tuple[Laws, ...]:
        """Return what is stored of each measure: the laws of its draws, by ledger entry."""
        ...

    def groupings(self, families: Sequence[bytes]) -> tuple[int, dict[bytes, list[StoredGrouping]]]:
        """Return the epoch, and the stored draws of each family in it."""
        ...

    def draw_of(self, stored: StoredGrouping) -> Draw:
        """Return a stored draw of a family."""
        ...

    def kept(self, edition: Edition, fit: Callable[[], bytes | None]) -> bytes | None:
        """Return what is kept of an edition; where nothing is, what `fit` makes is kept, unless another came first.

        What cannot be kept is returned all the same. None: it was not found.
        """
        ...

    @property
    def epoch(self) -> int:
        """The dataset's epoch, from 1."""
        ...

    @property
    def is_empty(self) -> bool:
        """Whether nothing is stored in this epoch, so that nobody need ask what may answer."""
        ...


class BudgetStore(StoredDraws, Protocol):
    """The ledger and the releases of one dataset.

    Invariant, at all times and through any crash: what is spent >= the sum of the charges of all
    draws that anybody has seen; it never decreases (laws L5 and L7). All methods may be called from
    any thread; all raise LedgerError when the ledger cannot be trusted or reached.
    """

    @property
    def promise(self) -> Promise:
        """What its charges mean."""
        ...

    def take_caps(self, caps: Caps) -> None:
        """Have other personal caps hold from here on: of analysts who have come since. Requires: the same periods."""
        ...

    def quote(self, claim: Claim) -> tuple[Fresh | None, ...]:
        """Return what would be drawn now for each measurement, None for what is stored; charges nothing."""
        ...

    def newest(self, measures: Sequence[bytes]) -> DatedDraw | None:
        """Return the newest epoch's best stored draw that holds all of these measures, or None; charges nothing."""
        ...

    def resting(self) -> Resting:
        """Return what the stored answers of this epoch rest on, how many they are and what they cost.

        Reads as many records as there are since the epoch began.
        """
        ...

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
        ...

    def require_room(self, claim: Claim) -> None:
        """Raise BudgetExhausted where a cap does not allow what would be charged now; charges nothing."""
        ...

    def moment(self) -> str:
        """Return the moment that the ledger has come to, by its records."""
        ...

    def left_of(self, slices: Slices, analyst: str | None = None) -> Left:
        """Return what is left of some slices: of those of which the least is. Requires: it is kept by slices."""
        ...

    def slices(self, analyst: str | None = None) -> Steps:
        """Return what was charged by slice, to everybody or to an analyst. Requires: it is kept by slices."""
        ...

    def odometer(self) -> Odometer:
        """Return what a person who is in several slices may have lost. Requires: it is kept by slices.

        Reads, the first time, all records.
        """
        ...

    def commit(self, reservation: Reservation, draws: Sequence[Draw]) -> None:
        """Store what was drawn, one draw for each of `reservation.to_draw`; durable on return.

        Only after this may a byte of the answer leave (soundness.md 3.5).
        Raises ValueError when a draw does not hold the measures, or the law, that were reserved;
        LedgerError when the reservation was given up meanwhile. What was charged stays spent. LedgerAway, or Stopped:
        whether the draws are stored is not known.
        """
        ...

    def fail(self, reservation: Reservation) -> None:
        """Give up what was not committed. It stays spent."""
        ...

    def spent(self) -> Charge:
        """Return what everybody together has spent."""
        ...

    def status(self, analyst: str | None = None) -> Status:
        """Return what is spent and what the caps are, in all scopes that bind `analyst`, and the epoch.

        Where it is kept by slices: of the newest period that was charged (`Status.of`).
        """
        ...

    def status_at_once(self, analyst: str | None = None) -> Status | None:
        """Return what `status` does; None where that takes more than a moment. For a thread that must not wait."""
        ...

    def analysts(self) -> list[str]:
        """Return the names of those who were charged, in order."""
        ...

    def log(self, limit: int) -> list[Entry]:
        """Return the newest `limit` entries, newest first."""
        ...

    def grant(self, analyst: str | None, epsilon_nano: int, by: str) -> None:
        """Raise the analyst's cap, or the global one for None: an owner's act, recorded."""
        ...

    def move_to_zcdp(self, conversion_delta_atto: int, by: str) -> Status:
        """Keep the ledger in rho from now on, for good: an owner's act, recorded (soundness.md 3.11).

        Raises LedgerError where what was spent does not fit, or the ledger is kept so already; nothing is changed then.
        """
        ...

    def divide(self, promise: Promise, *, is_all: bool, by: str, times: Times = ()) -> Division:
        """Keep the ledger by the periods of a promise from now on, for good: an owner's act, recorded.

        All that was charged counts for each period up to the running one, and with `is_all` for all that are to come,
        and for undated rows (soundness.md 3.22). `times`: by which time tables' rows are of a period. Raises
        LedgerError where it is kept so already, or lacks records.
        """
        ...

    def require_times(self, times: Times) -> None:
        """Raise LedgerError where rows of a table were charged by another time than the one it is said to have.

        Requires: it is kept by slices.
        """
        ...

    def require_whose(self, whose: Iterable[Ground]) -> None:
        """Raise LedgerError where rows of a table were charged as other people's than the policy says they are.

        `whose`: tables, each with how its rows find their owner, as the policy has it (soundness.md 1.26).
        """
        ...

    def advance_epoch(self, checked: Sequence[KeyCheck] = (), retired: Slices | None = None) -> int:
        """Begin a new epoch and return it: stored releases stop answering, nothing comes back.

        `retired`: those that were charged to one of these slices, in a ledger by periods; None: all.
        `checked`: the asserted keys that were looked at, recorded in the same step; their times are given here.
        """
        ...

    def record_keys(self, checked: Sequence[KeyCheck]) -> None:
        """Record what was found of asserted keys, in the epoch that is: an owner's act."""
        ...

    def key_check(self, table: str, columns: tuple[str, ...], version: str) -> KeyCheck | None:
        """Return what was found last of a key in data of exactly this version, None if nobody looked."""
        ...

    def put_certificate(self, digest: str, content: bytes) -> None:
        """Store a certificate that entries may name (`MeasurementClaim.certificate`), once; durable on return.

        `digest`: its sha256 in hex. Raises ValueError for a digest that is not that of the content and for a
        certificate that is too long, LedgerError where there is no room.
        """
        ...

    def has_certificate(self, digest: str) -> bool:
        """Return whether a certificate is stored for this machine's log, whose entries alone may name it."""
        ...

    def certificate(self, digest: str) -> bytes | None:
        """Return a certificate that was put, None where there is none. Raises LedgerError where it is damaged."""
        ...

    @property
    def lost(self) -> str:
        """What the ledger's file was found to have lost when it was opened, in words; empty where nothing was."""
        ...

    def note(self) -> Note | None:
        """Return what a witness is told of the log as it is, once what is new was compared; None before format 4."""
        ...

    def tidy(self) -> None:
        """Do what can wait, so that no charge waits for it; nothing is different after it. Raises LedgerError."""
        ...

    def secret(self) -> bytes:
        """Return 32 random bytes made with the ledger, for the salt of contribution bounding."""
        ...
