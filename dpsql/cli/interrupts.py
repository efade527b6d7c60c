"""Ctrl-C, from the program's first line to its last.

House rules:

1. What came is remembered: once it has, no statement is begun, and the program ends with `INTERRUPTED`, wherever an
   import or a library has swallowed the exception.
2. KeyboardInterrupt is raised only where anything may be left at any line (`unwinding`). While a session is open it is
   noted (`noting`): a statement that was charged is waited for, and tells what it has spent. While the program loads or
   opens a session there is nothing to unwind and nothing charged, and it leaves at once (`leaving`).
3. Who started the program with Ctrl-C ignored, as `nohup` does, has it ignored.

This module is imported first, and imports next to nothing.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from types import FrameType

INTERRUPTED = 130
"""What a shell says of a program that Ctrl-C has ended (128 + SIGINT)."""


class _State:
    has_come = False
    has_begun = False


def start() -> None:
    """Have Ctrl-C end the program at once from here on."""
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, _leave)


def has_come() -> bool:
    """Return whether Ctrl-C came since the last `forget`."""
    return _State.has_come


def forget() -> None:
    """Begin anew: what was interrupted has ended."""
    _State.has_come = False


def begin() -> None:
    """Note that statements are run, of which each says itself what it has spent."""
    _State.has_begun = True


def note() -> None:
    """Remember a Ctrl-C that was met as an exception."""
    _State.has_come = True


def leaving() -> AbstractContextManager[None]:
    """Have Ctrl-C end the program at once."""
    return _handling(_leave)


def noting() -> AbstractContextManager[None]:
    """Have Ctrl-C noted, for whoever asks `has_come`."""
    return _handling(_note)


def unwinding() -> AbstractContextManager[None]:
    """Have Ctrl-C noted, and raise KeyboardInterrupt."""
    return _handling(_unwind)


def _leave(_: int, __: FrameType | None) -> None:
    detail = b"" if _State.has_begun else b"DETAIL: nothing was charged\n"
    with suppress(OSError):
        os.write(2, b"ERROR 57014: the program was interrupted\n" + detail)
    os._exit(INTERRUPTED)


def _note(_: int, __: FrameType | None) -> None:
    note()


def _unwind(_: int, __: FrameType | None) -> None:
    note()
    raise KeyboardInterrupt


@contextmanager
def _handling(handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    before = signal.getsignal(signal.SIGINT)
    if before is signal.SIG_IGN:
        yield
        return
    signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
