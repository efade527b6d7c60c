"""The ledger of what is spent, the filter that keeps it under its caps, and the stored releases."""

from __future__ import annotations

from pathlib import Path

from .claim import (
    Caps,
    Charge,
    Claim,
    Draw,
    Grouping,
    GroupingKey,
    Reservation,
    StoredGrouping,
    VectorClaim,
    delta_text,
    epsilon_text,
)
from .entry import UNSAID, Entry, Promise, State, Status
from .ledger_store import LedgerStore
from .sqlite_store import SqliteStore
from .store import BudgetStore

__all__ = [
    "BudgetStore",
    "Caps",
    "Charge",
    "Claim",
    "Draw",
    "Entry",
    "Grouping",
    "GroupingKey",
    "LedgerStore",
    "Promise",
    "Reservation",
    "SqliteStore",
    "State",
    "Status",
    "StoredGrouping",
    "VectorClaim",
    "delta_text",
    "epsilon_text",
    "open_store",
]


def open_store(
    url: str, dataset: str, caps: Caps, *, create: bool, log: Path, promise: Promise = UNSAID
) -> LedgerStore:
    """Open the ledger of `dataset` that a policy's URL names: sqlite:<file> or postgresql://….

    `log`: where this machine logs what it charges to a ledger on a server; a file's log stands beside it.
    `create`: make what is missing; `promise`: what its charges mean. Raises LedgerError.
    """
    if url.startswith("sqlite:"):
        return SqliteStore.open(url.removeprefix("sqlite:"), dataset, caps, create, promise=promise)
    from .postgres_store import PostgresStore

    return PostgresStore.open(url, dataset, caps, create, log=log, promise=promise)
