"""What the owner's commands open: the policy, the live schema and the ledger, without a session."""

from __future__ import annotations

import getpass
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import EngineFailure, PolicyError
from ..relation.types import Kind

if TYPE_CHECKING:
    from ..budget import LedgerStore
    from ..policy.live_schema import LiveSchema
    from ..policy.model import FileSources

__all__ = ["login_name", "open_ledger", "public_keys", "read_live_schema", "verified_files"]

_MOST_KEYS = 200


def read_live_schema(database_url: str, files: FileSources | None = None) -> LiveSchema:
    """Return what the database really has; no row is read.

    Raises PolicyError for a bad URL, and for a database that cannot be read: this is the owner's own
    screen, so it says why (the backend's detail, which holds no text of the engine and no value).
    """
    from ..backends import open_backend

    try:
        with open_backend(database_url, files=files, is_recorded=False).snapshot() as snapshot:
            return snapshot.schema()
    except EngineFailure as failure:
        if files is not None:
            raise PolicyError(
                f"the data files cannot be read ({failure.detail})", hint="write them anew"
            ) from None
        raise PolicyError(
            f"{database_url}: the schema cannot be read ({failure.detail})",
            hint="the server must run, and know the role and its password (PGPASSWORD, or a passfile)"
            if database_url.startswith("postgres")
            else "the database must exist, and no other program may have it open for writing",
        ) from None


def public_keys(
    database_url: str, files: FileSources | None, live: LiveSchema, name: str
) -> tuple[int | str, ...] | None:
    """Return the values of the one-column key of a table that the owner has called public, in order.

    None where they are too many to list, or of a type that is not listed; () where there is no such key. Raises
    PolicyError: there is no such table.
    """
    from ..backends import open_backend
    from ..plan.dialects.quote import identifier, table_name
    from ..policy.units import find_live_table

    table = find_live_table("--public", name, live)
    column = table.column(table.primary_key[0]) if len(table.primary_key) == 1 else None
    if column is None:
        return ()
    if not (column.type.is_integer or column.type.kind is Kind.TEXT):
        return None
    sql = f"SELECT {identifier(column.name)} FROM {table_name(table.path)} ORDER BY 1 LIMIT {_MOST_KEYS + 1}"
    try:
        with open_backend(database_url, files=files, is_recorded=False).snapshot() as snapshot:
            found = [row[0] for chunk in snapshot.run(sql) for row in chunk]
    except EngineFailure as failure:
        problem = PolicyError(
            f"--public {name}: its keys cannot be read ({failure.detail})", hint="leave --public out"
        )
    else:
        return tuple(found) if len(found) <= _MOST_KEYS else None
    raise problem


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


def verified_files(policy_path: Path, *, only_new: bool = False) -> Callable[[], None]:
    """Read the files that the policy's tables are, all of them, or copy its database file where a copy is asked, and
    return what records them as they are.

    Where there is neither there is nothing to do, nor, with `only_new`, where a record is there. Until a copy is
    recorded, nothing is answered. Raises PolicyError: a file is missing, cannot be read to its end, or be copied.
    """
    from ..backends.duckdb_copy import make_copy, record_copy, suspend_copy
    from ..backends.duckdb_files import pin_verified
    from ..backends.pinned_files import write_record
    from ..policy import load_policy

    policy = load_policy(policy_path)
    copied = policy.copied
    if copied is not None:
        if only_new and copied.record.exists():
            return lambda: None
        try:
            name = make_copy(copied)
        except EngineFailure as failure:
            raise PolicyError(
                f"{copied.path.name}: the copy cannot be made ({failure.detail})",
                hint="end the load first, and try again",
            ) from None
        suspend_copy(copied)
        return lambda: record_copy(copied, name)
    files = policy.files
    if files is None or (only_new and files.record.exists()):
        return lambda: None
    pins = pin_verified(files, policy.source)
    return lambda: write_record(files.record, pins)
