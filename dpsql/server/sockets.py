"""The sockets that connections come in by."""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import AsyncIterator

from .log import Seldom

__all__ = ["CannotListen", "accepted", "open_listeners"]

_BACKLOG = 512
_OUT_OF_MEANS = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_PAUSE = 0.2
"""Seconds until the next attempt where the system has no descriptor or memory for a connection."""

_KEEPALIVE = {"TCP_KEEPIDLE": 60, "TCP_KEEPINTVL": 15, "TCP_KEEPCNT": 4}
"""A client whose machine is gone is noticed after two minutes; the names that this system knows are set."""


class CannotListen(OSError):
    """An address cannot be had; `reason`: what the system says."""

    def __init__(self, host: str, port: int, reason: OSError) -> None:
        super().__init__(reason.errno, reason.strerror)
        self.host, self.port, self.reason = host, port, reason


def open_listeners(host: str, port: int) -> list[socket.socket]:
    """Return sockets that listen on each address of a host; port 0 takes a free one, the same for all.

    An address that this machine lacks is left out where it has another (localhost without IPv6).
    Raises CannotListen: no address can be had.
    """
    try:
        return _listeners(host, port)
    except OSError as error:
        raise CannotListen(host, port, error) from None


def _listeners(host: str, port: int) -> list[socket.socket]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    listeners: list[socket.socket] = []
    missing: OSError | None = None
    try:
        for family, kind, protocol, _, address in dict.fromkeys(found):
            number = listeners[0].getsockname()[1] if listeners else port
            try:
                listeners.append(_listener(family, kind, protocol, (address[0], number, *address[2:])))
            except OSError as error:
                if error.errno not in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):
                    raise
                missing = error
        if not listeners:
            raise missing or OSError(errno.EADDRNOTAVAIL, "")
    except OSError:
        for listener in listeners:
            listener.close()
        raise
    return listeners


def _listener(
    family: socket.AddressFamily, kind: socket.SocketKind, protocol: int, address: tuple[object, ...]
) -> socket.socket:
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family is socket.AddressFamily.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listener.bind(address)
        listener.listen(_BACKLOG)
        listener.setblocking(False)
    except OSError:
        listener.close()
        raise
    return listener


async def accepted(listener: socket.socket) -> AsyncIterator[tuple[socket.socket, str]]:
    """Give each new connection and the address it comes from; waits where the system can take none."""
    loop = asyncio.get_running_loop()
    exhausted = Seldom("out of descriptors")
    while True:
        try:
            connection, address = await loop.sock_accept(listener)
        except OSError as error:
            if error.errno in _OUT_OF_MEANS:
                exhausted.log()
                await asyncio.sleep(_PAUSE)
            else:  # the client has left already
                await asyncio.sleep(0)
            continue
        _watch(connection)
        yield connection, str(address[0])
        await asyncio.sleep(0)  # a flood leaves the others their turn


def _watch(connection: socket.socket) -> None:
    """Have the system notice when the client's machine is gone."""
    try:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in _KEEPALIVE.items():
            if hasattr(socket, name):
                connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    except OSError:
        return  # gone already: reading will say so
