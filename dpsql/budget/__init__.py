"""The ledger of what is spent, the filter that keeps it under its caps, and the stored releases."""

from __future__ import annotations

from pathlib import Path

from .certificates import Certificate
from .chain import Note, read_notes
from .claim import (
    ZERO,
    Caps,
    Charge,
    Claim,
    DatedDraw,
    Draw,
    Fresh,
    Grouping,
    GroupingKey,
    Known,
    MeasurementClaim,
    Overtaken,
    Reservation,
    Resting,
    StoredGrouping,
    Together,
    charge_of,
    delta_text,
    epsilon_text,
    fresh_of,
    require_text,
    rho_text,
    shown_epsilon,
)
from .editions import Edition
from .entry import UNSAID, Entry, EntryState, KeyCheck, Left, Promise, Scope, Status
from .filter import Ration
from .ledger import Step
from .ledger_store import LedgerStore, no_step
from .match import CLOSE, MOST_COMBINED, Laws
from .pending import AskedOnce, Pending, StoredDraws
from .slices import Odometer, Steps
from .sqlite_ledger import SqliteLedger

__all__ = [
    "CLOSE",
    "MOST_COMBINED",
    "UNSAID",
    "ZERO",
    "AskedOnce",
    "Caps",
    "Certificate",
    "Charge",
    "Claim",
    "DatedDraw",
    "Draw",
    "Edition",
    "Entry",
    "EntryState",
    "Fresh",
    "Grouping",
    "GroupingKey",
    "KeyCheck",
    "Known",
    "Laws",
    "LedgerStore",
    "Left",
    "MeasurementClaim",
    "Note",
    "Odometer",
    "Overtaken",
    "Pending",
    "Promise",
    "Ration",
    "Reservation",
    "Resting",
    "Scope",
    "Status",
    "Steps",
    "StoredDraws",
    "StoredGrouping",
    "Together",
    "charge_of",
    "delta_text",
    "epsilon_text",
    "fresh_of",
    "open_store",
    "read_notes",
    "rho_text",
    "shown_epsilon",
]


def open_store(
    url: str,
    dataset: str,
    caps: Caps,
    *,
    create: bool,
    log: Path,
    promise: Promise = UNSAID,
    step: Step = no_step,
) -> LedgerStore:
    """Open the ledger of `dataset` that a policy's URL names: sqlite:<file> or postgresql://….

    `log`: where this machine logs what it charges to a ledger on a server; a file's log stands beside it. `create`:
    make what is missing; `promise`: what its charges mean. Raises LedgerError: it cannot be reached, ledger and log
    are not to be trusted, or they were made for another promise.
    """
    require_text("dataset", dataset)
    if url.startswith("sqlite:"):
        path = Path(url.removeprefix("sqlite:"))
        return LedgerStore(SqliteLedger.open(path, dataset, create, step, promise), caps)
    from .postgres_ledger import PostgresLedger

    return LedgerStore(PostgresLedger.open(url, log, dataset, create, step, promise), caps)
