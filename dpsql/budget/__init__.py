"""The ledger of what is spent, the filter that keeps it under its caps, and the stored releases."""

from __future__ import annotations

from .claim import Caps, Charge, Claim, Draw, Reservation, VectorClaim, delta_text, epsilon_text
from .entry import Entry, State, Status
from .sqlite_store import SqliteStore
from .store import BudgetStore

__all__ = [
    "BudgetStore",
    "Caps",
    "Charge",
    "Claim",
    "Draw",
    "Entry",
    "Reservation",
    "SqliteStore",
    "State",
    "Status",
    "VectorClaim",
    "delta_text",
    "epsilon_text",
]
