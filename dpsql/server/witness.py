"""Tells a witness outside what a ledger has come to, beside the charges (soundness.md 3.19).

House rules:

1. No charge, no answer and no other ledger waits for a witness: it is told from a thread of its own.
2. A witness that fails is told to the operator, and is told again later. It refuses nobody.
3. A command is run as it was given, without a shell; it gets the note alone, on its standard input.
"""

from __future__ import annotations

import os
import stat
import subprocess
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from ..budget import BudgetStore
from .log import Seldom

__all__ = ["Witness", "append_note"]

_EVERY_RECORDS = 100
_EVERY_SECONDS = 60.0
"""After so long a witness is told of a single record, too."""
_LOOK_SECONDS = 2.0
_LONGEST_SECONDS = 30.0


class Witness:
    """The witness of one ledger: a file, or a command. Called from one thread at a time."""

    def __init__(self, file: Path | None, command: Sequence[str], database: str) -> None:
        self._file, self._command, self._database = file, tuple(command), database
        self.records = 0
        """How many records the witness was told of last."""
        self.failures = 0
        self._failed = Seldom("witness failed")
        self._next_look = self._told_at = float("-inf")
        self._teller: threading.Thread | None = None
        self._is_late = False

    def look(self, store: BudgetStore) -> None:
        """Begin to tell the witness what is new, where that is much or some time ago. Raises LedgerError."""
        now = time.monotonic()
        if self._teller is not None and self._teller.is_alive():
            if now - self._told_at > 2 * _LONGEST_SECONDS and not self._is_late:
                self._is_late = True
                self._fail("it does not answer")
            return
        if now < self._next_look:
            return
        self._next_look = now + _LOOK_SECONDS
        note = store.note()
        new = 0 if note is None else note.records - self.records
        if note is None or not new or (new < _EVERY_RECORDS and now - self._told_at < _EVERY_SECONDS):
            return
        self._told_at, self._is_late = now, False
        line, records = note.text + "\n", note.records
        self._teller = threading.Thread(target=self._tell, args=(line, records), daemon=True)
        self._teller.start()

    def _tell(self, line: str, records: int) -> None:
        try:
            if self._file is not None:
                append_note(self._file, line.encode("ascii"))
            else:
                ended = subprocess.run(
                    self._command,
                    input=line.encode("ascii"),
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    timeout=_LONGEST_SECONDS,
                )
                if ended.returncode:
                    self._fail(f"its exit code is {ended.returncode}")
                    return
        except subprocess.TimeoutExpired:
            self._fail(f"it has not ended within {_LONGEST_SECONDS:g} seconds")
        except OSError as error:
            self._fail(os.strerror(error.errno) if error.errno else type(error).__name__)
        else:
            self.records = records

    def _fail(self, reason: str) -> None:
        self.failures += 1
        self._failed.log(reason=reason, database=self._database)


def append_note(file: Path, line: bytes) -> None:
    """Add a line to a witness' file, durably; a line that was cut there before keeps its own. Raises OSError."""
    fd = os.open(file, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
    try:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            raise OSError("no file")
        if found.st_size and os.pread(fd, 1, found.st_size - 1) != b"\n":
            line = b"\n" + line
        while line:
            line = line[os.write(fd, line) :]
        os.fsync(fd)
    finally:
        os.close(fd)
