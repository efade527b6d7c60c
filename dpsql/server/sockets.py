"""The sockets that connections come in by, and whom a trusted proxy speaks for, which it says before all else.

Source of the PROXY protocol, version 2: haproxy.org, "The PROXY protocol, versions 1 & 2", section 2.2.
"""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import socket
from collections.abc import AsyncIterator
from contextlib import ExitStack

from .report import Seldom

__all__ = ["CannotListen", "accepted", "open_listeners", "read_proxy_header"]

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
    missing = OSError(errno.EADDRNOTAVAIL, "")
    with ExitStack() as undo:
        for family, _, _, _, address in dict.fromkeys(found):
            number = listeners[0].getsockname()[1] if listeners else port
            own = (address[0], number, *address[2:])
            try:
                listener = socket.create_server(own, family=family, backlog=_BACKLOG)
            except OSError as error:
                if error.errno not in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):
                    raise
                missing = error
            else:
                listener.setblocking(False)
                listeners.append(undo.enter_context(listener))
        if not listeners:
            raise missing
        undo.pop_all()
    return listeners


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


# --- the PROXY protocol -------------------------------------------------------------------------------

_SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"
_HEAD = 16
_LONGEST = 4096
"""Bytes after the head, with what a proxy adds of its own."""
_LOCAL, _PROXY = 0x20, 0x21
_ADDRESS_BYTES = {0x11: 4, 0x21: 16}
"""TCP over IPv4 and over IPv6: the bytes of an address."""


async def read_proxy_header(connection: socket.socket) -> str | None:
    """Return the client's address; None where the proxy speaks for itself, or names no address of the internet.

    Nothing behind the header is read. Raises ValueError: what came first is no header of version 2. Raises OSError: the
    connection is broken.
    """
    head = await _exactly(connection, _HEAD)
    command, family, length = head[12], head[13], int.from_bytes(head[14:], "big")
    if not head.startswith(_SIGNATURE) or command not in (_LOCAL, _PROXY) or length > _LONGEST:
        raise ValueError
    body = await _exactly(connection, length)
    size = _ADDRESS_BYTES.get(family)
    if command == _LOCAL or size is None:
        return None
    if length < 2 * size + 4:  # two addresses and two ports
        raise ValueError
    return str(ipaddress.ip_address(body[:size]))


async def _exactly(connection: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        more = await asyncio.get_running_loop().sock_recv(connection, count - len(data))
        if not more:
            raise ValueError if data else ConnectionResetError
        data += more
    return data
