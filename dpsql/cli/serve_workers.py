"""`dpsql serve --workers N`: the parent of several processes that serve one port.

It reads no policy's data and opens neither ledger, database nor thread: each process is the same command begun anew
(never forked), told by `--one-of` which it is. One that ends is begun again; what it had charged stays charged, as the
ledger has it. Each has the parent's end of its standard input, and stops where that closes: the parent has gone.
"""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
import tempfile
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing, suppress
from pathlib import Path

import click

from ..server.channel import CannotListen, open_listeners
from ..server.processes import OneOf, Place, make_place
from ..server.report import log, write_out

_FIRST_WAIT, _LONGEST_WAIT = 0.2, 30.0
_STEADY_SECONDS = 10.0
"""After so long one that ends was in order before: it is begun again at once."""
_LAST_SECONDS = 5.0


def run_workers(number: int, host: str, port: int, announce: Callable[[int], None]) -> None:
    """Serve with so many processes until told to stop; leaves with the code of one that cannot begin.

    Raises CannotListen: the address cannot be had.
    """
    with ExitStack() as stack:
        for one in open_listeners(host, port):  # another program's port is taken: it is not shared with that
            one.close()
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="dpsql-serve-")))
        make_place(folder)
        place = stack.enter_context(closing(Place(folder, -1)))
        held = stack.enter_context(_held(host, port))
        pairs = [socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM) for _ in range(number)]
        for pair in pairs:
            for end in pair:
                stack.enter_context(end)
        outboxes = tuple(outbox.fileno() for _, outbox in pairs)
        own = [
            OneOf(at, number, held.getsockname()[1], str(folder), inbox.fileno(), outboxes)
            for at, (inbox, _) in enumerate(pairs)
        ]
        code = asyncio.run(_Parent(own, place, announce).run())
    log("stopped")
    write_out(_LAST_SECONDS)
    if code:
        raise click.exceptions.Exit(code)


def _held(host: str, port: int) -> socket.socket:
    """Return a socket that has the port, on which nobody is let in: it stays ours while processes come and go."""
    family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    held = socket.socket(family)
    try:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        held.bind(address)
    except OSError as error:
        held.close()
        raise CannotListen(host, port, error) from None
    return held


class _Parent:
    def __init__(self, own: Sequence[OneOf], place: Place, announce: Callable[[int], None]) -> None:
        self._own, self._place, self._announce = own, place, announce
        self._running: dict[int, Process] = {}
        self._ready: set[int] = set()
        self._stopping, self._has_first = asyncio.Event(), asyncio.Event()
        self._code = 0

    async def run(self) -> int:
        """Return the code to leave with, once all have ended."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop)
        loop.add_signal_handler(signal.SIGHUP, self._tell, signal.SIGHUP)
        await asyncio.gather(*map(self._keep, self._own))
        return self._code

    def _tell(self, number: signal.Signals) -> None:
        for process in list(self._running.values()):
            with suppress(ProcessLookupError):
                process.send_signal(number)

    def _stop(self) -> None:
        """Have all stop, and a second time, as each of them has it, wait for nobody."""
        self._stopping.set()
        self._has_first.set()
        self._tell(signal.SIGTERM)

    async def _keep(self, own: OneOf) -> None:
        """Have one process serve until it is time to stop; the others begin once the first can serve."""
        if own.number:
            await self._has_first.wait()
        loop, wait = asyncio.get_running_loop(), _FIRST_WAIT
        while not self._stopping.is_set():
            began = loop.time()
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "dpsql.cli", *sys.argv[1:], "--one-of", own.text, stdin=PIPE, stdout=PIPE,
                pass_fds=(own.inbox, *own.outboxes), start_new_session=True,
            )  # fmt: skip
            self._running[own.number] = process
            if self._stopping.is_set():
                process.terminate()
            assert process.stdout is not None
            if await process.stdout.readline():
                self._is_ready(own)
            code = await process.wait()
            del self._running[own.number]
            self._place.forget(own.number)
            if self._stopping.is_set():
                return
            if own.number not in self._ready:  # it has said why
                self._code = code if code > 0 else 1
                self._stop()
                return
            log("worker ended", worker=own.number, code=code)
            wait = _FIRST_WAIT if loop.time() - began > _STEADY_SECONDS else min(2 * wait, _LONGEST_WAIT)
            with suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._stopping.wait()

    def _is_ready(self, own: OneOf) -> None:
        if own.number in self._ready:
            return
        self._ready.add(own.number)
        self._has_first.set()
        if len(self._ready) == len(self._own):
            self._announce(own.port)
