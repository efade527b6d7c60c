"""The budget store on a Postgres server."""

from __future__ import annotations

import os
from pathlib import Path

from .claim import Caps, require_text
from .entry import UNSAID, Promise
from .ledger import Step
from .ledger_store import LedgerStore, no_step
from .postgres_ledger import PostgresLedger

__all__ = ["PostgresStore"]


class PostgresStore(LedgerStore):
    """The `BudgetStore` of one dataset in one Postgres database, shared by the proxies of many machines."""

    @classmethod
    def open(
        cls,
        url: str,
        dataset: str,
        caps: Caps,
        create: bool,
        *,
        log: str | os.PathLike[str],
        promise: Promise = UNSAID,
        _step: Step = no_step,
    ) -> PostgresStore:
        """Open the ledger of `dataset` in the database `url`; `log` is this machine's own log of it.

        `create`: make the tables when they are missing. Raises LedgerError when the ledger cannot be
        reached, when ledger and log are not to be trusted, or were made for another promise.
        """
        require_text("dataset", dataset)
        return cls(PostgresLedger.open(url, Path(log), dataset, create, _step, promise), caps)
