"""A copy of the owner's DuckDB file, which is asked in its place, so that the owner can write the file meanwhile.

House rules:

1. Only an owner's command makes a copy: of the file as no writer has it open, whole or not at all. Its name is made of
   its content, and the record beside the policy names the one that is asked.
2. While the ledger goes to a new epoch no copy is recorded, and nothing is answered: no draw of one version is stored
   in the epoch of another.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

import duckdb

from ..errors import EngineFailure, PolicyError
from ..policy.model import CopySource
from ..seal import NO_WAY_OUT
from .deployment import Finding, Severity
from .duckdb_backend import DuckDBBackend, guarded

__all__ = ["DuckDBCopy", "copy_findings", "make_copy", "record_copy", "suspend_copy"]

_BLOCK = 1 << 20


class DuckDBCopy(DuckDBBackend):
    """The copy that the record names: another one from the next snapshot on, where the record has changed."""

    def __init__(self, source: CopySource) -> None:
        """Nothing is opened, and nothing is looked for, before the first snapshot."""
        super().__init__(source.record)
        self._source = source

    def _open_cursor(self) -> duckdb.DuckDBPyConnection:
        name = _recorded(self._source)
        if not name:
            raise EngineFailure(
                "busy: no copy of the database file is recorded; dpsql refresh", sqlstate="55006"
            )
        path = self._source.record.with_name(name)
        if path != self._path:
            # cursors of snapshots that are still open keep what they were opened on
            self._path, self._connection, self._schema_seen = path, None, []
        return super()._open_cursor()


def _recorded(source: CopySource) -> str:
    """Return the file name of the copy that is asked; "" while there is none. Raises PolicyError."""
    try:
        name = json.loads(source.record.read_bytes())["copy"]
    except FileNotFoundError:
        raise PolicyError(
            f"{source.record.name}: no copy of the database file has been made", hint="dpsql refresh makes it"
        ) from None
    except (OSError, ValueError, KeyError, TypeError):
        name = None
    if not isinstance(name, str) or os.path.basename(name) != name:
        raise PolicyError(f"{source.record.name}: is no record of a copy; dpsql refresh writes it anew")
    return name


def copy_findings(source: CopySource) -> list[Finding]:
    """Return what an owner should know of the copy: that there is none, or an old one. Raises PolicyError."""
    if not source.record.exists():
        return [
            Finding(Severity.WARNING, "no copy of the database file has been made yet", "dpsql budget create")
        ]
    name = _recorded(source)
    copy = source.record.parent / name
    if not name or not copy.is_file():
        return [Finding(Severity.ERROR, "the copy of the database file is not there", "dpsql refresh")]
    if source.path.stat().st_mtime_ns > copy.stat().st_mtime_ns:
        return [
            Finding(Severity.WARNING, "the database file has changed since it was copied", "dpsql refresh")
        ]
    return []


def make_copy(source: CopySource) -> str:
    """Copy the owner's file as it is now, and return the copy's name; what is half done is taken away again.

    Raises PolicyError: the copy cannot be written; EngineFailure: the file cannot be read, or a writer has it open.
    """
    draft = source.record.with_name(f"{source.stem}-copy.part")
    _remove(draft)
    original = DuckDBBackend(source.path)
    try:
        # Open for reading, no other program can open it for writing.
        with original.snapshot():
            has_log = _copy_bytes(source.path, draft)
        original.close_idle()
        if has_log:
            guarded("copy", lambda: _put_together(draft))
        name = f"{source.stem}-copy-{_hash(draft)[:16]}.duckdb"
        os.replace(draft, draft.with_name(name))
    except OSError as error:
        raise PolicyError(f"{source.path.name}: the copy cannot be made: {error.strerror}") from None
    finally:
        original.close_idle()
        _remove(draft)
    return name


def suspend_copy(source: CopySource) -> None:
    """Record that no copy is asked until another one is. Raises PolicyError."""
    _write(source, "")


def record_copy(source: CopySource, name: str) -> None:
    """Record the copy that is asked from now on, and delete the others. Raises PolicyError."""
    _write(source, name)
    for other in source.record.parent.glob(f"{_escaped(source.stem)}-copy-*.duckdb"):
        if other.name != name:
            _remove(other)


def _escaped(stem: str) -> str:
    return "".join(f"[{sign}]" if sign in "*?[" else sign for sign in stem)


def _copy_bytes(path: Path, draft: Path) -> bool:
    """Copy a file, and the log beside it, which has what was written last; say whether there was one.

    The files stay open until both are copied: a lock of this process ends with the first one that is closed.
    """
    with path.open("rb") as original:
        log = path.with_name(f"{path.name}.wal")
        _write_through(original, draft)
        shutil.copymode(path, draft)
        if not log.exists():
            return False
        with log.open("rb") as written:
            _write_through(written, draft.with_name(f"{draft.name}.wal"))
    return True


def _write_through(original: BinaryIO, target: Path) -> None:
    with open(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        shutil.copyfileobj(original, file, _BLOCK)
        file.flush()
        os.fsync(file.fileno())


def _put_together(draft: Path) -> None:
    """Write what the log has into the copy itself."""
    with duckdb.connect(str(draft), config={**NO_WAY_OUT, "lock_configuration": "true"}) as copy:
        copy.execute("CHECKPOINT")


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _write(source: CopySource, name: str) -> None:
    draft = source.record.with_name(f"{source.record.name}.new")
    try:
        with draft.open("w", encoding="utf-8") as file:
            json.dump({"copy": name}, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, source.record)
    except OSError as error:
        _remove(draft)
        raise PolicyError(f"{source.record.name}: cannot be written: {error.strerror}") from None


def _remove(path: Path) -> None:
    for one in (path, path.with_name(f"{path.name}.wal")):
        with suppress(OSError):
            one.unlink()
