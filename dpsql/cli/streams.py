"""The standard streams, where one is closed from the start.

House rule: no file of ours takes the number of a closed stream. A ledger that were opened as standard error would have
messages written into it.
"""

from __future__ import annotations

import fcntl
import io
import os
import sys
from typing import IO

import click

__all__ = ["fill_closed", "require_output"]


def fill_closed() -> None:
    """Open what was closed from outside: nothing is read there, writing to standard output fails, messages are lost."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            opened = os.open(os.devnull, os.O_WRONLY if name == "stderr" else os.O_RDONLY)
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)
        if getattr(sys, name) is None:
            setattr(sys, name, _stream(number, "r" if name == "stdin" else "w"))


def _stream(number: int, mode: str) -> IO[str]:
    return open(number, mode, encoding="utf-8", errors="backslashreplace", closefd=False)


def require_output() -> None:
    """Raise click.UsageError where standard output is closed: an answer would be charged, and lost."""
    try:
        flags = fcntl.fcntl(sys.stdout.fileno(), fcntl.F_GETFL)
    except (OSError, io.UnsupportedOperation):  # no file of the system's
        return
    if flags & os.O_ACCMODE == os.O_RDONLY:
        raise click.UsageError("Standard output is closed: nothing was asked.")
