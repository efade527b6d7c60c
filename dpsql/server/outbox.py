"""Replies on their way to the client: rows in batches, and no more in memory than it reads."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from .. import pgwire
from .columns import in_formats
from .statements import Copy, Result

__all__ = ["Outbox"]

_CHUNK = 2000
_CELLS = 40_000
_FULL = 64 * 1024
_TURN = 0.01
"""Seconds that a connection may have the event loop for, while others wait."""


class Outbox:
    """Gathers replies; `write` sends bytes to the client and waits while it does not read."""

    def __init__(
        self, connection: pgwire.ProtocolConnection, write: Callable[[bytes], Awaitable[None]]
    ) -> None:
        self._connection, self._write = connection, write
        self._out = bytearray()
        self._turned = 0.0

    @property
    def state(self) -> pgwire.State:
        """Where the conversation stands."""
        return self._connection.state

    def send(self, *replies: pgwire.ServerMessage) -> None:
        """Add replies."""
        self._out += self._connection.send(*replies)

    async def flush(self) -> None:
        """Send what was replied so far."""
        if self._out:
            data = bytes(self._out)
            self._out.clear()
            await self._write(data)

    async def rows(self, result: Result, formats: Sequence[pgwire.Format], first: int, end: int) -> None:
        """Add a result's rows from the index `first` up to `end`."""
        encoder = pgwire.RowEncoder(in_formats(result.columns, formats))
        step = _step(result)
        for start in range(first, end, step):
            self.send(encoder.encode(result.rows[start : min(start + step, end)]))
            await self.take_turns()

    async def copy(self, result: Result, how: Copy) -> None:
        """Add a result as a copy."""
        is_binary = how.format == "binary"
        columns = in_formats(result.columns, [pgwire.Format(is_binary)] * len(result.columns))
        options = pgwire.TextOptions if how.format == "text" else pgwire.CsvOptions
        encoder = (
            pgwire.BinaryCopy(columns)
            if is_binary
            else pgwire.LineCopy(columns, options(header=how.has_header))
        )
        self.send(pgwire.CopyOutResponse(pgwire.Format(is_binary), len(columns)), encoder.begin())
        step = _step(result)
        for start in range(0, len(result.rows), step):
            self.send(encoder.encode(result.rows[start : start + step]))
            await self.take_turns()
        self.send(encoder.end(), pgwire.CopyDone())

    async def take_turns(self) -> None:
        """Send what is much already, and let the other connections go on when this one has had its time."""
        if len(self._out) >= _FULL:
            await self.flush()
        loop = asyncio.get_running_loop()
        if loop.time() - self._turned > _TURN:
            await asyncio.sleep(0)
            self._turned = loop.time()


def _step(result: Result) -> int:
    """Return how many rows are written at once."""
    return max(16, min(_CHUNK, _CELLS // max(1, len(result.columns))))
