"""Connections to Postgres whose waits end: by the statement's own stop, whatever the server does, or does not do.

House rules:

1. A wait that is given up closes its connection: what the server still sends on it belongs to nobody.
2. Nothing here sends a second request over a connection that waits. A cancel goes over one of its own, as libpq's does.
"""

from __future__ import annotations

import os
import select
import socket
import time
from collections.abc import Generator
from contextlib import suppress
from typing import Any, ClassVar, Self, TypeVar

import psycopg
from psycopg.pq import PipelineStatus, TransactionStatus

from .waits import Stopped, apart, is_over, is_told

_T = TypeVar("_T")

_CANCEL_SECONDS = 0.2
_CANCEL_PAUSE = 0.05


class BoundedConnection(psycopg.Connection[tuple[Any, ...]]):
    """A connection whose waits end: connecting too."""

    longest: ClassVar[float]
    """Seconds that one wait may take, of whom no statement limits."""

    cancels: ClassVar[bool] = False
    """Whether a statement that has to end has the server cancel what it runs."""

    @classmethod
    def reach(cls, conninfo: str = "", **parameters: Any) -> Self:
        """Return a new connection, as `connect` does; no look-up of a name makes its statement wait for longer.

        Raises what `connect` raises, and Stopped.
        """
        return apart(lambda: cls.connect(conninfo, **parameters), "the server's name", cls.close)

    def wait(self, gen: Generator[Any, Any, _T], *args: Any, **options: Any) -> _T:
        """See `psycopg.Connection.wait`. Raises Stopped, OperationalError where the longest wait is over."""
        bounded = wait_bounded(self, gen, self.longest, cancels=self.cancels)
        return super().wait(bounded, *args, **options)

    @classmethod
    def _connect_gen(cls, *args: Any, **options: Any) -> Any:
        # The driver's one place through which every connect goes; its own timeout (`connect_timeout`) holds besides.
        return _while_wanted(super()._connect_gen(*args, **options))


def wait_bounded(
    connection: psycopg.Connection[Any], generator: Generator[Any, Any, _T], longest: float, *, cancels: bool
) -> Generator[Any, Any, _T]:
    """Yield what a generator of the driver's waits for, until its statement has to end, or the longest wait is over.

    The connection is closed then. Raises Stopped, OperationalError.
    """
    end, cancelled = time.monotonic() + longest, 0.0
    try:
        wanted = next(generator)
        while True:
            ready = yield wanted
            # also where something has come: a peer that sends a byte now and then keeps nobody waiting either
            if is_over():
                hang_up(connection)
                raise Stopped("cancelled: the server did not answer")
            now = time.monotonic()
            if now >= end:
                hang_up(connection)
                raise psycopg.OperationalError("the server does not answer")
            if cancels and is_told() and now - cancelled >= _CANCEL_PAUSE:
                cancel(
                    connection
                )  # again and again: one that comes before the statement has begun is forgotten
                cancelled = now
            wanted = generator.send(ready)
    except StopIteration as end_of_it:
        result: _T = end_of_it.value
        return result


def _while_wanted(generator: Generator[Any, Any, _T]) -> Generator[Any, Any, _T]:
    try:
        wanted = next(generator)
        while True:
            ready = yield wanted
            if is_told():  # nothing is asked yet that could be lost
                raise Stopped("cancelled: the server did not let in")
            wanted = generator.send(ready)
    except StopIteration as end_of_it:
        result: _T = end_of_it.value
        return result


def cancel(connection: psycopg.Connection[Any]) -> None:
    """Ask the server to stop what the connection runs, and wait for no more than a moment."""
    with suppress(psycopg.Error):
        connection.cancel_safe(timeout=_CANCEL_SECONDS)


def hang_up(connection: psycopg.Connection[Any]) -> None:
    """Close a connection at once, from within a wait too: nothing is sent."""
    connection.pgconn.finish()


def break_off(connection: psycopg.Connection[Any]) -> None:
    """Have whoever waits on a connection, in another thread, fail at once: as if the server had gone."""
    with suppress(OSError, psycopg.Error), socket.socket(fileno=os.dup(connection.pgconn.socket)) as other:
        other.shutdown(socket.SHUT_RDWR)


def is_lost(connection: psycopg.Connection[Any]) -> bool:
    """Return whether the server has gone, or the connection was left in the middle of something; asks nobody."""
    pgconn = connection.pgconn
    if connection.closed or pgconn.pipeline_status != PipelineStatus.OFF:
        return True
    poll = select.poll()
    poll.register(pgconn.socket, select.POLLIN)
    try:
        while poll.poll(0):
            pgconn.consume_input()
    except psycopg.Error:
        return True
    return connection.closed or pgconn.transaction_status != TransactionStatus.IDLE
