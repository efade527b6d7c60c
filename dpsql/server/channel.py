"""A socket of the event loop: bytes that came, bytes that go, and TLS from a certain byte on."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable

from .report import ClientGone

__all__ = ["Channel"]

_READ_AHEAD = 256 * 1024


class Channel(asyncio.Protocol):
    """One client's socket. `lost` is set once the client has left, also while nobody reads."""

    def __init__(self, begin: Callable[[Channel], None]) -> None:
        """`begin` is called with the channel when the connection is there."""
        self._begin = begin
        self._transport: asyncio.Transport | None = None
        self._buffer = bytearray()
        self._arrived = asyncio.Event()
        self._writable = asyncio.Event()
        self._writable.set()
        self.lost = asyncio.Event()
        self.peer = ""

    # --- called by the event loop ----------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        address = transport.get_extra_info("peername")
        self.peer = str(address[0]) if address else ""
        self._begin(self)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        self._arrived.set()
        if len(self._buffer) >= _READ_AHEAD and self._transport is not None:
            self._transport.pause_reading()

    def eof_received(self) -> bool:
        self.connection_lost(None)
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost.set()
        self._arrived.set()
        self._writable.set()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    # --- called by the client's task -------------------------------------------------------------

    async def read(self) -> bytes:
        """Return what came, at least one byte; nothing after `wake`. Raises ClientGone."""
        await self._arrived.wait()
        self._arrived.clear()
        data = bytes(self._buffer)
        self._buffer.clear()
        if not data and self.lost.is_set():
            self._arrived.set()
            raise ClientGone
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()
        return data

    def wake(self) -> None:
        """Have a `read` that waits return."""
        self._arrived.set()

    async def write(self, data: bytes) -> None:
        """Send; waits while the client does not read, and lets the others go on. Raises ClientGone."""
        if self.lost.is_set() or self._transport is None or self._transport.is_closing():
            raise ClientGone
        self._transport.write(data)
        await asyncio.sleep(0)
        await self._writable.wait()

    async def start_tls(self, context: ssl.SSLContext, accepted: bytes, seconds: float) -> None:
        """Send the byte that accepts TLS, and speak it from here on.

        Bytes that came in the clear before it were written by nobody knows whom: then, and when the handshake
        fails, it raises ClientGone.
        """
        if self._transport is None or self._buffer or self.lost.is_set():
            raise ClientGone
        self._transport.pause_reading()
        self._transport.write(accepted)
        loop = asyncio.get_running_loop()
        try:
            transport = await loop.start_tls(
                self._transport, self, context, server_side=True, ssl_handshake_timeout=seconds
            )
        except (OSError, ssl.SSLError):
            raise ClientGone from None
        if transport is None:
            raise ClientGone
        self._transport = transport

    async def close(self) -> None:
        """Send what is left and hang up; a client that does not read is not waited for."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.close()
        try:
            await asyncio.wait_for(self.lost.wait(), 1)
        except TimeoutError:
            self.abort()

    def abort(self) -> None:
        """Hang up at once."""
        if self._transport is not None:
            self._transport.abort()
