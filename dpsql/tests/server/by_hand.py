"""A client's login written by hand: from any loopback address, up to any step, with any password."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import socket

from ..pgwire.frontend import sasl_initial, sasl_response, startup

__all__ = ["HungUp", "Wire", "login", "proof", "prove"]


class HungUp(Exception):
    """The server takes this connection no further."""


class Wire:
    """A socket to a server, read message by message."""

    def __init__(self, port: int, source: str = "127.0.0.1") -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), 300, source_address=(source, 0))

    def __enter__(self) -> Wire:
        return self

    def __exit__(self, *exc: object) -> None:
        self.socket.close()

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def exactly(self, count: int) -> bytes:
        """Return so many bytes, fewer where the server hangs up."""
        data = b""
        try:
            while len(data) < count and (more := self.socket.recv(count - len(data))):
                data += more
        except ConnectionResetError:
            pass
        return data

    def message(self) -> tuple[str, bytes]:
        """Return a message's tag and body; two empty ones where the server has hung up."""
        head = self.exactly(5)
        return (
            (chr(head[0]), self.exactly(int.from_bytes(head[1:], "big") - 4)) if len(head) == 5 else ("", b"")
        )

    def is_closed(self) -> bool:
        """Wait for the end; return whether nothing came before it."""
        return self.exactly(1) == b""

    def challenge(self, user: str = "alice", database: str = "people") -> tuple[bytes, bytes]:
        """Go to the server's challenge; return the client's first message, without its header, and the challenge."""
        first = b"n=,r=ofTheClient"
        try:
            self.send(startup(user=user, database=database))
            if self.message()[0] != "R":
                raise HungUp
        except OSError:
            raise HungUp from None
        self.send(sasl_initial("SCRAM-SHA-256", b"n,," + first))
        return first, self.message()[1][4:]


def login(wire: Wire, user: str, password: str, database: str = "people") -> tuple[str, bytes]:
    """Log in by SCRAM-SHA-256; return the first message after the proof."""
    prove(wire, user, password, database)
    return wire.message()


def prove(wire: Wire, user: str, password: str, database: str = "people") -> None:
    """Log in up to the proof, and do not wait for what is said to it."""
    wire.send(proof(*wire.challenge(user, database), password))


def proof(first: bytes, challenge: bytes, password: str) -> bytes:
    """Return the message that proves a password."""
    match = re.fullmatch(rb"r=(.*),s=(.*),i=(.*)", challenge)
    assert match
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), base64.b64decode(match[2]), int(match[3]))
    key = hmac.digest(salted, b"Client Key", "sha256")
    final = b"c=" + base64.b64encode(b"n,,") + b",r=" + match[1]
    text = first + b"," + challenge + b"," + final
    signed = hmac.digest(hashlib.sha256(key).digest(), text, "sha256")
    proved = bytes(a ^ b for a, b in zip(key, signed, strict=True))
    return sasl_response(final + b",p=" + base64.b64encode(proved))
