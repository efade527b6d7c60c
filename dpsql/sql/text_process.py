"""A process that reads texts for a server: `python -m dpsql.sql.text_process`, asked over its standard input.

The parser keeps the interpreter for as long as a text takes, and a core too: a stream of long texts that are refused in
the end keeps everybody waiting. Read here first, they cost the server next to nothing, and this process has the lower
priority.

House rules:

1. What crosses is the name of a function of dpsql's own and a text, and what the function returns, or a `DpsqlError`.
   Both ends are the same program of the same user, of one version (else the process is not asked); no text is a pickle.
2. It changes no answer: where the process is not there yet, has died or cannot say, the caller's own does the same.
3. It ends with the server, whose end of the pipe closes, and writes nothing anywhere.
"""

from __future__ import annotations

import os
import pickle
import select
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from typing import IO, Any, TypeVar

from sqlglot import _version as parser

from ..errors import DpsqlError
from .statement import check_statement

T = TypeVar("T")

_NICER = 5
"""How much lower its priority is: a third of a core where others want all of it."""
_MOST = 10
"""How many processes a server begins: where they do not last, texts are read here."""
_MADE, _REFUSED, _UNSAID = "made", "refused", "unsaid"


class TextProcess:
    """The process, begun when it is first asked for; asked by one thread at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._is_ready, self._version, self._count = False, "", 0

    def call(self, function: Callable[[str], T], text: str) -> T:
        """Return what a function of a text alone returns. Raises what it raises. Requires: it is a module's own."""
        with self._lock:
            said, made = self._asked(function, text)
        if said == _REFUSED:
            raise made
        return made if said == _MADE else function(text)

    def close(self) -> None:
        """End the process, also while it reads; it is begun again when it is asked for again."""
        process = self._process
        if process is not None:
            process.kill()
        with self._lock:
            self._end()

    def _asked(self, function: Callable[[str], object], text: str) -> tuple[str, Any]:
        try:
            process = self._begun()
            if process is None or process.stdin is None or process.stdout is None:
                return _UNSAID, None
            pickle.dump((function, text), process.stdin)
            process.stdin.flush()
            said, made = pickle.load(process.stdout)  # noqa: S301  # of our own process
        except (OSError, EOFError, pickle.PickleError):
            self._end()
            return _UNSAID, None
        return said, made

    def _begun(self) -> subprocess.Popen[bytes] | None:
        """Return the process; None where it is not ready yet, or of another version. Raises as `pickle.load`."""
        if self._process is None:
            if self._count >= _MOST:
                return None
            self._count += 1
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", __name__],  # nothing is imported from the folder that it runs in
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip
        if not self._is_ready and self._process.stdout is not None:
            if not _has_said(self._process.stdout):
                return None
            self._version = pickle.load(self._process.stdout)  # noqa: S301  # of our own process
            self._is_ready = True
        return self._process if self._version == _version() else None

    def _end(self) -> None:
        process, self._process, self._is_ready = self._process, None, False
        if process is not None:
            process.kill()
            with suppress(OSError), process:  # a text may be on its way still
                pass


def _has_said(told: IO[bytes]) -> bool:
    """Say whether something is there to read, or the other end is gone; of any number of open files."""
    poll = select.poll()
    poll.register(told, select.POLLIN)
    return bool(poll.poll(0))


def _serve(asked: IO[bytes], told: IO[bytes]) -> None:
    """Answer until nobody can ask any more."""
    check_statement("SELECT 1")  # the first text takes longer
    _tell(told, _version())
    while True:
        try:
            function, text = pickle.load(asked)  # noqa: S301  # of the server that began this process
        except EOFError:
            return
        try:
            _tell(told, (_MADE, function(text)))
        except DpsqlError as error:
            _tell(told, (_REFUSED, error))
        except Exception:  # noqa: BLE001  # the server meets the same, with its place
            _tell(told, (_UNSAID, None))


def _version() -> str:
    """Return what this program is made of, as it was when it began."""
    return f"{import_module('dpsql').__version__} {parser.__version__}"


def _tell(told: IO[bytes], what: object) -> None:
    told.write(pickle.dumps(what))
    told.flush()


if __name__ == "__main__":
    with suppress(OSError):
        os.nice(_NICER)
    with suppress(BrokenPipeError, KeyboardInterrupt):
        _serve(sys.stdin.buffer, sys.stdout.buffer)
