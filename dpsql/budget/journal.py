"""The append-only log beside the ledger: its high-water mark, and enough to rebuild what is spent.

House rules:

1. The file only grows. Nothing here truncates or rewrites it; a line torn by a crash is marked and
   stays.
2. `append` returns after fsync. A record that is not yet durable was never acted upon.
3. A line is a record and the sha256 of its text. A line that is neither sound nor marked as torn
   stops everything (LedgerError): the owner has to look.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from ..errors import LedgerError
from ..waits import check
from .faults import busy

__all__ = ["Journal", "create_journal", "require_file"]

_LINE = re.compile(rb'\{"sha256":"([0-9a-f]{64})","record":(.*)\}', re.DOTALL)
_TORN = re.compile(rb"(.*)#torn ([0-9a-f]{64})", re.DOTALL)


def _digest(content: bytes) -> bytes:
    return hashlib.sha256(content).hexdigest().encode()


def _line(text: str) -> bytes:
    body = text.encode("ascii")
    return b'{"sha256":"%b","record":%b}\n' % (_digest(body), body)


def _sound_record(line: bytes) -> str | None:
    """Return the record of a line without its newline, or None when its checksum does not hold."""
    match = _LINE.fullmatch(line)
    if match is None or _digest(match[2]) != match[1]:
        return None
    return match[2].decode("ascii")


def _is_marked_torn(line: bytes) -> bool:
    match = _TORN.fullmatch(line)
    return match is not None and _digest(match[1]) == match[2]


def _sync(fd: int) -> None:
    if hasattr(fcntl, "F_FULLFSYNC"):  # macOS: fsync alone stops at the drive's cache
        fcntl.fcntl(fd, fcntl.F_FULLFSYNC)
    else:
        os.fsync(fd)


def _write_all(fd: int, content: bytes) -> None:
    while content:
        content = content[os.write(fd, content) :]


def require_file(path: Path) -> None:
    """Raise LedgerError for a link, a device, a folder: whatever is there and is no regular file."""
    with suppress(FileNotFoundError):
        if not stat.S_ISREG(path.lstat().st_mode):
            raise _no_file(path)


def _no_file(path: Path) -> LedgerError:
    return LedgerError(
        f"{path.name} is no file, but a link or something else",
        hint="put the file itself there, or name another ledger",
    )


def create_journal(path: Path, header: str) -> None:
    """Make the log with its first record; it is there whole and durable, or not at all.

    Requires: nobody else creates it at the same time.
    """
    _make(path, _line(header))


def _make(path: Path, content: bytes) -> None:
    draft = path.with_name(path.name + ".new")
    fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    try:
        _write_all(fd, content)
        _sync(fd)
    finally:
        os.close(fd)
    draft.rename(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


class Journal:
    """The open log. `append` and `mend` require that the ledger's write lock is held.

    Raises LedgerError where a line is unsound, OSError where the file cannot be read or written.
    """

    def __init__(self, path: Path) -> None:
        """Open it, and make it its owner's alone. Raises LedgerError, with nothing done to it, where it is no file of
        its own: what a link leads to may be somebody else's."""
        self.path = path
        require_file(path)
        self._fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK)
        if not stat.S_ISREG(os.fstat(self._fd).st_mode):  # it was replaced since
            self.close()
            raise _no_file(path)
        os.fchmod(self._fd, 0o600)

    def close(self) -> None:
        """Let the file go. Closing again does nothing."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    @contextmanager
    def held(self, seconds: float) -> Iterator[None]:
        """Keep all others who ask for the same log out, processes and threads, until the block ends.

        Raises LedgerError when somebody else has kept it for so long, Stopped.
        """
        deadline = time.monotonic() + seconds
        while not self._lock():
            if time.monotonic() >= deadline:
                raise busy()
            check("the ledger's log")
            time.sleep(0.002)
        try:
            yield
        finally:
            fcntl.flock(self._fd, fcntl.LOCK_UN)

    def _lock(self) -> bool:
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def copy(self, path: Path) -> None:
        """Write the lines that are whole to another file; it is there whole and durable, or not at all."""
        lines = self.path.read_bytes()
        _make(path, lines[: lines.rfind(b"\n") + 1])

    def size(self) -> int:
        """Return the length in bytes."""
        return os.fstat(self._fd).st_size

    def append(self, texts: Sequence[str], step: Callable[[str], None]) -> int:
        """Write the records, wait until they are on the disk, and return the new length."""
        _write_all(self._fd, b"".join(map(_line, texts)))
        step("log written")
        _sync(self._fd)
        step("log synced")
        return self.size()

    def mend(self) -> None:
        """End a last line that has no newline: a sound one as it is, a torn one with a mark.

        A torn line was never fsynced as a whole, so nothing ever ran under it.
        """
        last = self._last_line()
        if not last or last.endswith(b"\n"):
            return
        mark = b"" if _sound_record(last) is not None else b"#torn " + _digest(last)
        _write_all(self._fd, mark + b"\n")
        _sync(self._fd)

    def _last_line(self) -> bytes:
        with open(self.path, "rb") as file:
            size = file.seek(0, os.SEEK_END)
            length = 4096
            while True:
                start = file.seek(max(0, size - length))
                tail = file.read()
                cut = tail.rfind(b"\n", 0, -1)
                if cut >= 0 or start == 0:
                    return tail[cut + 1 :]
                length *= 4

    def records(self, start: int) -> Iterator[tuple[int, str]]:
        """Yield (offset just after the line, record text) for each record from offset `start` on.

        Requires: `start` is at the beginning of a line, and `mend` was called.
        """
        with open(self.path, "rb") as file:
            file.seek(start)
            offset = start
            for line in file:
                offset += len(line)
                text = _sound_record(line.removesuffix(b"\n")) if line.endswith(b"\n") else None
                if text is not None:
                    yield offset, text
                elif not _is_marked_torn(line.removesuffix(b"\n")):
                    raise LedgerError(
                        f"the ledger's log is damaged near byte {offset - len(line)}",
                        hint=f"restore {self.path.name} from a backup that is not older than the ledger",
                    )
