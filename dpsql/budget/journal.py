"""The append-only log beside the ledger: its high-water mark, and enough to rebuild what is spent.

A log that has grown long is sealed: its file keeps all that it has under a name with a number, and a new file begins,
with a record that says what it goes on from (`Segment`). A place in the log is counted in bytes from the beginning of
its oldest file.

House rules:

1. The file only grows. Nothing here truncates or rewrites it; a line torn by a crash is marked and
   stays.
2. `append` returns after fsync. A record that is not yet durable was never acted upon.
3. A line is a record and the sha256 of its text. A line that is neither sound nor marked as torn
   stops everything (LedgerError): the owner has to look.
4. At each moment the log's name leads to a file that is whole: a rotation gives the old file its second name first,
   and puts the new one, which is durable, in its place in one step.

What can be wrong with a ledger's files, in the ledger's words: the cause in one sentence, and what mends it.

House rule: a cause is told by the system's or SQLite's own code, which holds nothing of the data; never by
their text.

House rule, proof of life: each open store locks a file of its own (flock) for as long as it lives; the kernel lets go
when the process dies, however it dies. No clock and no process id is involved, so neither a clock change nor a reused
id can make the dead look alive (attacks.md, row G14).
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import io
import os
import re
import secrets
import sqlite3
import stat
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import LedgerAway, LedgerError
from ..regex import regex
from ..waits import check
from .entry import Header, Segment, read_record

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

# --- what can be wrong with a ledger's files, in the ledger's words -----------------------------------------


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


# --- the append-only log beside the ledger: its high-water mark, and enough to rebuild what is spent --------


_LINE = regex(rb'\{"sha256":"([0-9a-f]{64})","record":(.*)\}', re.DOTALL)
_TORN = regex(rb"(.*)#torn ([0-9a-f]{64})", re.DOTALL)


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
    write_whole(path, _line(header))


def write_whole(path: Path, content: bytes) -> None:
    """Write a file; it is there whole and durable, or not at all, or as it was."""
    draft = path.with_name(path.name + ".new")
    _write_file(draft, content)
    draft.rename(path)
    _sync_folder(path)


def _write_file(path: Path, content: bytes) -> None:
    path.unlink(missing_ok=True)  # what a crash has left
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        _write_all(fd, content)
        _sync(fd)
    finally:
        os.close(fd)


def _sync_folder(path: Path) -> None:
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


class _Reader(io.RawIOBase):
    """Reads a file from a place on, whoever else reads or writes it; closes the descriptor with itself."""

    def __init__(self, fd: int, at: int) -> None:
        self._fd, self._at = fd, at

    def readable(self) -> bool:
        return True

    def readinto(self, into: WriteableBuffer) -> int:
        """See `io.RawIOBase.readinto`."""
        view = memoryview(into).cast("B")
        read = os.pread(self._fd, len(view), self._at)
        view[: len(read)] = read
        self._at += len(read)
        return len(read)

    def close(self) -> None:
        """Let the descriptor go. Closing again does nothing."""
        if not self.closed:
            os.close(self._fd)
        super().close()


def _open_file(path: Path) -> int:
    """Open a log's file, and make it its owner's alone.

    Raises LedgerError, with nothing done to it, where it is no file: what a link leads to may be somebody else's.
    """
    require_file(path)
    fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(fd).st_mode):  # it was replaced since
        os.close(fd)
        raise _no_file(path)
    os.fchmod(fd, 0o600)
    return fd


def _first_record(fd: int) -> Header | Segment | None:
    """Return the record that a file begins with, None where it is none of those that may."""
    with io.BufferedReader(_Reader(os.dup(fd), 0)) as file:
        line = file.readline()
    text = _sound_record(line.removesuffix(b"\n"))
    record = None if text is None else read_record(text)
    return record if isinstance(record, Header | Segment) else None


class Journal:
    """The open log. `append`, `mend` and `rotate` require that the ledger's write lock is held.

    Raises LedgerError where a line is unsound, OSError where the file cannot be read or written. Safe for threads that
    read while one writes.
    """

    def __init__(self, path: Path) -> None:
        """Open it. Raises LedgerError, with nothing done to it, where it is no file."""
        self.path, self._place = path, str(path)
        self.archive: Path | None = None
        """Where sealed files are looked for besides."""
        self._swap = threading.Lock()
        self._is_held = False
        self._fd = _open_file(path)
        try:
            self._take_first()
        except BaseException:
            self.close()
            raise

    @property
    def first(self) -> Header | Segment | None:
        """The first record of the file, None where it has none. Raises LedgerError where it cannot be read."""
        with self._swap:
            fd = os.dup(self._fd)
        try:
            return _first_record(fd)
        finally:
            os.close(fd)

    def _take_first(self) -> None:
        later: Header | Segment | None = None
        with suppress(LedgerError):  # whoever asks for `first` is told
            later = _first_record(self._fd)
        self.number, self.base = (later.number, later.start) if isinstance(later, Segment) else (0, 0)
        """Which file of the log this is, and how many bytes those before it have."""

    def close(self) -> None:
        """Let the file go. Closing again does nothing."""
        with self._swap:
            fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def require_in_place(self) -> None:
        """Go on to the file that the log's name leads to, where that is a later one of the same log.

        Raises LedgerError where another file was put there, or none is.
        """
        try:
            with self._swap:
                if self._fd < 0:
                    raise LedgerError("the ledger was closed", hint="open it again")
                is_ours = os.path.samestat(os.fstat(self._fd), os.lstat(self._place))
            if not (is_ours or self._follow()):
                raise replaced()
        except FileNotFoundError:
            raise LedgerAway(
                "the ledger or its log is not to be seen in its place", hint="see that its disk is there"
            ) from None

    def _follow(self) -> bool:
        fd = _open_file(self.path)
        try:
            own, first = self.first, _first_record(fd)
            if own is None or not isinstance(first, Segment):
                return False
            with self._swap:
                same = (first.dataset, first.log) == (own.dataset, own.log)
                if self._fd < 0 or not same or first.number <= self.number:
                    return False
                fd, self._fd = self._fd, fd
                self._take_first()
            return True
        finally:
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
        self._is_held = True
        try:
            yield
        finally:
            self._is_held = False
            fcntl.flock(self._fd, fcntl.LOCK_UN)

    def _lock(self) -> bool:
        """Lock the file that the log's name leads to; it may have become another one while somebody else had it."""
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        locked = self._fd
        try:
            self.require_in_place()
        except LedgerError:
            fcntl.flock(locked, fcntl.LOCK_UN)
            raise
        return self._fd == locked

    def copy(self, path: Path) -> list[Path]:
        """Write the lines that are whole to another file, which is there whole and durable, or not at all; and the
        sealed files that stand beside the log. Return the copies, the log's first."""
        with self._swap:
            fd, number = os.dup(self._fd), self.number
        with io.BufferedReader(_Reader(fd, 0)) as file:
            lines = file.read()
        write_whole(path, lines[: lines.rfind(b"\n") + 1])
        copies = [path]
        for sealed, copy in [(sealed_path(self.path, at), sealed_path(path, at)) for at in range(number)]:
            for one, target in ((sealed, copy), (certificates_path(sealed), certificates_path(copy))):
                if one.exists():
                    require_file(one)
                    write_whole(target, one.read_bytes())
                    copies.append(target)
        return copies

    def size(self) -> int:
        """Return the length in bytes, with that of the files before."""
        with self._swap:
            return self.base + os.fstat(self._fd).st_size

    @property
    def file_size(self) -> int:
        """The length of the file that is written now."""
        with self._swap:
            return os.fstat(self._fd).st_size

    def append(self, texts: Sequence[str], step: Callable[[str], None]) -> int:
        """Write the records, wait until they are on the disk, and return the new length."""
        _write_all(self._fd, b"".join(map(_line, texts)))
        step("log written")
        _sync(self._fd)
        step("log synced")
        return self.size()

    def rotate(self, text: str, step: Callable[[str], None]) -> int:
        """Seal the file, and begin the next one with the record; return the new length. Requires: the file ends with a
        whole line, and the record says how long the log is.

        Raises LedgerError where another file has the name that the sealed one gets.
        """
        sealed = sealed_path(self.path, self.number)
        draft = self.path.with_name(self.path.name + ".new")
        _write_file(draft, _line(text))
        step("segment written")
        try:
            os.link(self.path, sealed, follow_symlinks=False)
        except FileExistsError:
            if not os.path.samestat(
                sealed.lstat(), os.fstat(self._fd)
            ):  # else an earlier rotation came as far as this
                raise LedgerError(
                    f"{sealed.name} is in the way: the ledger's log is to be sealed under that name",
                    hint="move it away; it is not part of this log, or a copy of it",
                ) from None
        _sync_folder(self.path)
        step("segment linked")
        fd = _open_file(draft)
        try:
            if self._is_held:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            draft.rename(self.path)
            _sync_folder(self.path)
            step("segment begun")
            with self._swap:
                fd, self._fd = self._fd, fd
                self._take_first()
        finally:
            os.close(fd)
        return self.size()

    def mend(self) -> None:
        """End a last line that has no newline: a sound one as it is, a torn one with a mark.

        A torn line was never fsynced as a whole, so nothing ever ran under it.
        """
        last = _line_before(self._fd, os.fstat(self._fd).st_size)
        if not last or last.endswith(b"\n"):
            return
        mark = b"" if _sound_record(last) is not None else b"#torn " + _digest(last)
        _write_all(self._fd, mark + b"\n")
        _sync(self._fd)

    def record_before(self, end: int) -> str | None:
        """Return the last record that ends at `end` or before, None where it is in a file before this one."""
        with self._swap:
            fd, end = os.dup(self._fd), end - self.base
        try:
            while end > 0:
                line = _line_before(fd, end)
                text = _sound_record(line.removesuffix(b"\n"))
                if text is not None or not _is_marked_torn(line.removesuffix(b"\n")):
                    return text
                end -= len(line)
        finally:
            os.close(fd)
        return None

    def records(self, start: int, stop: int | None = None) -> Iterator[tuple[int, str]]:
        """Yield (offset just after the line, record text) for each record from offset `start` on, up to `stop`.

        Requires: both are at the beginning of a line, and `mend` was called where there is no `stop`. Raises
        LedgerError where a sealed file is missing, or has another length than the next one says.
        """
        for file, offset in self._files(start):
            with file:
                for line in file:
                    if stop is not None and offset >= stop:
                        return
                    offset += len(line)
                    text = _sound_record(line.removesuffix(b"\n")) if line.endswith(b"\n") else None
                    if text is not None:
                        yield offset, text
                    elif not _is_marked_torn(line.removesuffix(b"\n")):
                        raise LedgerError(
                            f"the ledger's log is damaged near byte {offset - len(line)}",
                            hint=f"restore {self.path.name} from a backup that is not older than the ledger",
                        )

    def earliest(self, start: int = 0) -> int:
        """Return from where on all of the log is at hand: `start` or before, unless sealed files were moved away."""
        with self._swap:
            number, base = self.number, self.base
        while number > 0 and base > start:
            try:
                fd, base = self._open_sealed(number - 1, base)
            except LedgerError:
                return base
            os.close(fd)
            number -= 1
        return base

    def _files(self, start: int) -> list[tuple[io.BufferedIOBase, int]]:
        """Return the files that have what comes from an offset on, each from there, and where its first line begins."""
        with self._swap:
            found, number, base = [os.dup(self._fd)], self.number, self.base
        try:
            while start < base:
                number -= 1
                fd, base = self._open_sealed(number, base)
                found.append(fd)
        except BaseException:
            for fd in found:
                os.close(fd)
            raise
        files: list[tuple[io.BufferedIOBase, int]] = []
        for fd in reversed(found):
            at = max(0, start - base)
            files.append((io.BufferedReader(_Reader(fd, at)), base + at))
            base += os.fstat(fd).st_size
        return files

    def _open_sealed(self, number: int, end: int) -> tuple[int, int]:
        """Open a sealed file that ends at an offset of the log; return the offset at which it begins, too."""
        folders = [self.path.parent, *([] if self.archive is None else [self.archive])]
        paths = [folder / sealed_path(self.path, number).name for folder in folders]
        path = next((path for path in paths if path.exists()), None)
        if number < 0 or path is None:
            raise LedgerError(
                f"a sealed file of the ledger's log is missing: {paths[0].name}",
                hint="put it back beside the log, or say with dpsql budget verify --archive where it is",
            )
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            first = _first_record(fd)
            found, base = (first.number, first.start) if isinstance(first, Segment) else (0, 0)
            if first is None or found != number or base + os.fstat(fd).st_size != end:
                raise LedgerError(
                    f"{path.name} is not the file of the ledger's log that was sealed under that name",
                    hint="restore it from a backup: a sealed file never changes",
                )
        except BaseException:
            os.close(fd)
            raise
        return fd, base


def sealed_path(log: Path, number: int) -> Path:
    """Return the name that a file of a log has once it is sealed."""
    return log.with_name(f"{log.name}.{number:06d}")


def certificates_path(sealed: Path) -> Path:
    """Return the name of the file with the certificates that the entries up to the end of a sealed one name."""
    return sealed.with_name(f"{sealed.name}.certificates")


def replaced() -> LedgerError:
    """Return the error for a file that is not the one that was opened."""
    return LedgerError("the ledger or its log was replaced while in use", hint="restart dpsql")


def _line_before(fd: int, end: int) -> bytes:
    """Return the line of a file that ends just before an offset, with its newline where it has one."""
    length = 4096
    while True:
        start = max(0, end - length)
        tail = os.pread(fd, end - start, start)
        cut = tail.rfind(b"\n", 0, -1)
        if cut >= 0 or start == 0:
            return tail[cut + 1 :]
        length *= 4


# --- proof of life: who holds a reservation, and whether that process is still there ------------------------


class Holder:
    """An open store's own lock file in `folder`; `name` is what its entries are marked with.

    Requires: made inside `open_alone(folder)`, so that nobody sweeps the file before it is locked.
    """

    def __init__(self, folder: Path) -> None:
        self.name = secrets.token_hex(16)
        self._path = folder / self.name
        self._fd = os.open(self._path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
        fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def close(self) -> None:
        """Let go: what is still reserved under this name counts as failed from now on."""
        self._path.unlink(missing_ok=True)
        os.close(self._fd)


@contextmanager
def open_alone(folder: Path) -> Iterator[None]:
    """Make `folder` if need be and keep every other opener out until the block ends."""
    folder.mkdir(mode=0o700, exist_ok=True)
    fd = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def is_alive(folder: Path, name: str) -> bool:
    """Return whether the store that made the holder `name` is still open."""
    try:
        fd = os.open(folder / name, os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


def remove_dead(folder: Path) -> None:
    """Remove the files of holders that died. Requires: inside `open_alone(folder)`."""
    for path in folder.iterdir():
        if not is_alive(folder, path.name):
            path.unlink(missing_ok=True)
