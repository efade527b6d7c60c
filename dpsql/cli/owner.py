"""What the owner's commands open: the policy, the live schema and the ledger, without a session."""

from __future__ import annotations

import getpass
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import EngineFailure, PolicyError

if TYPE_CHECKING:
    from ..budget import LedgerStore
    from ..policy.live_schema import LiveSchema

__all__ = ["login_name", "open_ledger", "read_live_schema"]


def read_live_schema(database_url: str) -> LiveSchema:
    """Return what the database really has; no row is read.

    Raises PolicyError for a bad URL, and for a database that cannot be read: this is the owner's own
    screen, so it says why (the backend's detail, which holds no text of the engine and no value).
    """
    from ..backends import open_backend

    try:
        with open_backend(database_url).snapshot() as snapshot:
            return snapshot.schema()
    except EngineFailure as failure:
        raise PolicyError(
            f"{database_url}: the schema cannot be read ({failure.detail})",
            hint="the server must run, and know the role and its password (PGPASSWORD, or a passfile)"
            if database_url.startswith("postgres")
            else "the database must exist, and no other program may have it open for writing",
        ) from None


@contextmanager
def open_ledger(policy_path: Path, *, create: bool = False) -> Iterator[LedgerStore]:
    """Open the ledger that the policy names; make it, if it may be made and is not there yet.

    Raises PolicyError and LedgerError.
    """
    from ..engine.dataset import open_ledger as open_store
    from ..policy import load_policy

    with closing(open_store(load_policy(policy_path), create=create)) as store:
        yield store


def login_name() -> str:
    """Return the login name for the record, or "unknown" where the system knows none."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return "unknown"
