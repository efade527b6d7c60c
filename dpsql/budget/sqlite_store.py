"""The budget store in a SQLite file."""

from __future__ import annotations

import os
from pathlib import Path

from .claim import Caps, require_text
from .entry import UNSAID, Promise
from .ledger import Step
from .ledger_store import LedgerStore, no_step
from .sqlite_ledger import SqliteLedger

__all__ = ["SqliteStore"]


class SqliteStore(LedgerStore):
    """The `BudgetStore` of one dataset in one SQLite file, shared by processes of one machine."""

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        dataset: str,
        caps: Caps,
        create: bool,
        *,
        promise: Promise = UNSAID,
        _step: Step = no_step,
    ) -> SqliteStore:
        """Open the ledger file `path` of `dataset`; its log stands beside it as `<path>.log`.

        `create`: make both when both are missing. Raises LedgerError when ledger and log are not to be
        trusted, or were made for another promise.
        """
        require_text("dataset", dataset)
        return cls(SqliteLedger.open(Path(path), dataset, create, _step, promise), caps)
