"""Replies on their way to the client: rows in batches, and no more in memory than it reads."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from ..pgwire import (
    BinaryCopy,
    Connection,
    CopyDone,
    CopyOutResponse,
    CsvOptions,
    Format,
    LineCopy,
    RowEncoder,
    ServerMessage,
    State,
    TextOptions,
)
from .columns import in_formats
from .result import Result
from .statements import CopyOut

__all__ = ["Outbox"]

_CHUNK = 2000
_FULL = 64 * 1024


class Outbox:
    """Gathers replies; `write` sends bytes to the client and waits while it does not read."""

    def __init__(self, connection: Connection, write: Callable[[bytes], Awaitable[None]]) -> None:
        self._connection, self._write = connection, write
        self._out = bytearray()

    @property
    def state(self) -> State:
        """Where the conversation stands."""
        return self._connection.state

    def send(self, *replies: ServerMessage) -> None:
        """Add replies."""
        self._out += self._connection.send(*replies)

    async def flush(self) -> None:
        """Send what was replied so far."""
        if self._out:
            data = bytes(self._out)
            self._out.clear()
            await self._write(data)

    async def rows(self, result: Result, formats: Sequence[Format], first: int, end: int) -> None:
        """Add a result's rows from the index `first` up to `end`."""
        encoder = RowEncoder(in_formats(result.columns, formats))
        for start in range(first, end, _CHUNK):
            self.send(encoder.encode(result.rows[start : min(start + _CHUNK, end)]))
            if end - first > _CHUNK:
                await self._relieve()

    async def copy(self, result: Result, how: CopyOut) -> None:
        """Add a result as a copy."""
        is_binary = how.format == "binary"
        columns = in_formats(result.columns, [Format(is_binary)] * len(result.columns))
        options = TextOptions if how.format == "text" else CsvOptions
        encoder = BinaryCopy(columns) if is_binary else LineCopy(columns, options(header=how.has_header))
        self.send(CopyOutResponse(Format(is_binary), len(columns)), encoder.begin())
        for start in range(0, len(result.rows), _CHUNK):
            self.send(encoder.encode(result.rows[start : start + _CHUNK]))
            await self._relieve()
        self.send(encoder.end(), CopyDone())

    async def _relieve(self) -> None:
        if len(self._out) >= _FULL:
            await self.flush()
        await asyncio.sleep(0)
