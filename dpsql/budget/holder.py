"""Proof of life: who holds a reservation, and whether that process is still there.

Each open store locks a file of its own (flock) for as long as it lives; the kernel lets go when the
process dies, however it dies. No clock and no process id is involved, so neither a clock change nor
a reused id can make the dead look alive (soundness.md G14).
"""

from __future__ import annotations

import fcntl
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["Holder", "is_alive", "open_alone", "remove_dead"]


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
