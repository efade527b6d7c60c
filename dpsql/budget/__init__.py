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
from .entry import Entry, State, Status
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


def open_store(url: str, dataset: str, caps: Caps, *, create: bool, log: Path) -> LedgerStore:
    """Open the ledger of `dataset` that a policy's URL names: sqlite:<file> or postgresql://….

    `log`: where this machine logs what it charges to a ledger on a server; a file's log stands beside it.
    `create`: make what is missing. Raises LedgerError.
    """
    if url.startswith("sqlite:"):
        return SqliteStore.open(url.removeprefix("sqlite:"), dataset, caps, create)
    from .postgres_store import PostgresStore

    return PostgresStore.open(url, dataset, caps, create, log=log)
