"""What can be wrong with a ledger's files, in the ledger's words: the cause in one sentence, and what mends it.

House rule: a cause is told by the system's or SQLite's own code, which holds nothing of the data; never by
their text.
"""

from __future__ import annotations

import errno
import os
import sqlite3

from ..errors import LedgerAway, LedgerError

__all__ = ["busy", "file_fault", "sqlite_fault"]

_NO_RIGHT = frozenset({errno.EACCES, errno.EPERM})
_NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_NO_PLACE = frozenset({errno.ENOENT, errno.ENOTDIR})
_NO_FILES = frozenset({errno.EMFILE, errno.ENFILE})

_OF_SQLITE = {
    sqlite3.SQLITE_PERM: errno.EACCES,
    sqlite3.SQLITE_AUTH: errno.EACCES,
    sqlite3.SQLITE_CANTOPEN: errno.EACCES,
    sqlite3.SQLITE_READONLY: errno.EACCES,
    sqlite3.SQLITE_FULL: errno.ENOSPC,
    sqlite3.SQLITE_IOERR: errno.EIO,
}
"""SQLite's primary result codes, each by the system's code that stands for the same cause."""

_DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT})
_BUSY = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL})


def busy() -> LedgerError:
    """Return the error for a turn that did not come in time."""
    return LedgerAway("the ledger is busy", hint="ask again in a moment")


def file_fault(error: OSError, subject: str) -> LedgerError:
    """Return the error for a file that the system does not let us read or write; `subject`: which it is."""
    return _fault(error.errno, subject, os.strerror(error.errno) if error.errno else type(error).__name__)


def sqlite_fault(error: sqlite3.Error, name: str, folder: str | os.PathLike[str]) -> LedgerError:
    """Return the error for a ledger file of which SQLite says that it cannot be read or written."""
    subject = f"the ledger {name}"
    code = getattr(error, "sqlite_errorcode", None)
    if code is None:  # Python's own, as for a connection that was closed
        return _fault(None, subject, type(error).__name__)
    primary = code & 0xFF
    if primary in _DAMAGED:
        return LedgerError(
            f"{subject} is damaged, or no ledger at all",
            hint="restore it from a backup, which may be older than its log: the log brings it up to date; without "
            "a backup move it away, and it is made anew from the log, with all that was spent",
        )
    if primary in _BUSY:
        return busy()
    cause = _OF_SQLITE.get(primary)
    if cause == errno.EACCES and _is_read_only(folder):
        cause = errno.EROFS
    return _fault(cause, subject, error.sqlite_errorname)


def _is_read_only(folder: str | os.PathLike[str]) -> bool:
    try:
        return bool(os.statvfs(folder).f_flag & os.ST_RDONLY)
    except OSError:
        return False


def _fault(cause: int | None, subject: str, shown: str) -> LedgerError:
    if cause in _NO_RIGHT:
        return LedgerError(
            f"dpsql may not read and write {subject}",
            hint="the user that runs dpsql has to own it, its log and the folder beside them, and be let into the "
            "folder that holds them",
        )
    if cause == errno.EROFS:
        return LedgerAway(
            f"{subject} is on a file system that is read-only",
            hint="mount it for writing: every charge is written before the data is asked",
        )
    if cause in _NO_SPACE:
        return LedgerAway(
            f"there is no space left for {subject}: the disk is full, or a quota or a limit is reached",
            hint="make room and ask again; nothing of the ledger is lost, and what was charged stays spent",
        )
    if cause in _NO_PLACE:
        return LedgerAway(
            f"there is no folder for {subject}", hint="make the folder, or name another place in the policy"
        )
    if cause == errno.EIO:
        return LedgerAway(
            f"the disk under {subject} fails, or lets it grow no further ({shown})",
            hint="make room, or see the system's own log; from a disk that fails, move the ledger and its log to a "
            "sound one",
        )
    if cause in _NO_FILES:
        return LedgerAway(
            f"{subject} cannot be opened: too many files are open",
            hint="raise the limit (ulimit -n), and restart",
        )
    return LedgerAway(
        f"{subject} cannot be read or written ({shown})",
        hint="see that it and its log are sound files on a local disk",
    )
