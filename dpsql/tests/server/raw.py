"""Messages written by hand over a connection that libpq has opened: what it never sends itself."""

from __future__ import annotations

import os
import socket
from typing import Any

import psycopg

__all__ = ["exchange"]


def exchange(connection: psycopg.Connection[Any], messages: bytes) -> list[tuple[str, bytes]]:
    """Send messages that end with a Sync or Query; return the replies' tags and bodies up to ReadyForQuery."""
    with socket.socket(fileno=os.dup(connection.fileno())) as wire:
        wire.settimeout(300)
        wire.sendall(messages)
        buffer, replies = b"", list[tuple[str, bytes]]()
        while not replies or replies[-1][0] != "Z":
            data = wire.recv(65536)
            assert data, "the server has hung up"
            buffer += data
            while len(buffer) >= 5 and len(buffer) > (size := int.from_bytes(buffer[1:5], "big")):
                replies.append((chr(buffer[0]), buffer[5 : size + 1]))
                buffer = buffer[size + 1 :]
        wire.setblocking(False)
    return replies
