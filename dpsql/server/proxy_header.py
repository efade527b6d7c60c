"""The PROXY protocol, version 2: a proxy that is trusted says, before all else, whom it speaks for.

Source: haproxy.org, "The PROXY protocol, versions 1 & 2", section 2.2.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket

__all__ = ["ProxyHeaderError", "read_proxy_header"]

_SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"
_HEAD = 16
_LONGEST = 4096
"""Bytes after the head, with what a proxy adds of its own."""
_LOCAL, _PROXY = 0x20, 0x21
_ADDRESS_BYTES = {0x11: 4, 0x21: 16}
"""TCP over IPv4 and over IPv6: the bytes of an address."""


class ProxyHeaderError(Exception):
    """What a trusted proxy sent first is no header of version 2."""


async def read_proxy_header(connection: socket.socket) -> str | None:
    """Return the client's address; None where the proxy speaks for itself, or names no address of the internet.

    Nothing behind the header is read. Raises ProxyHeaderError; OSError: the connection is broken.
    """
    head = await _exactly(connection, _HEAD)
    command, family, length = head[12], head[13], int.from_bytes(head[14:], "big")
    if not head.startswith(_SIGNATURE) or command not in (_LOCAL, _PROXY) or length > _LONGEST:
        raise ProxyHeaderError
    body = await _exactly(connection, length)
    size = _ADDRESS_BYTES.get(family)
    if command == _LOCAL or size is None:
        return None
    if length < 2 * size + 4:  # two addresses and two ports
        raise ProxyHeaderError
    return str(ipaddress.ip_address(body[:size]))


async def _exactly(connection: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        more = await asyncio.get_running_loop().sock_recv(connection, count - len(data))
        if not more and not data:
            raise ConnectionResetError
        if not more:
            raise ProxyHeaderError
        data += more
    return data
