"""A connection to a directory, over TLS, that ends at a moment whatever the directory does.

OpenLDAP's library waits in a handshake for as long as the directory likes. So TLS is Python's here, and the library is
handed one end of a pair of sockets.

House rules:

1. No byte of the library's is sent before the certificate has checked out.
2. Every wait has the connection's own end. A thread that waits for the library ends with it too.
"""

from __future__ import annotations

import re
import select
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit

__all__ = ["open_channel"]

_PORTS = {"ldap": 389, "ldaps": 636}
_CHUNK = 65_536
_MOST_ANSWER = 4_096

_START_TLS = bytes.fromhex("301d02010177188016") + b"1.3.6.1.4.1.1466.20037"
"""ExtendedRequest number 1 of RFC 4511, 4.14.1: StartTLS."""
_LENGTH = rb"(?:[\x00-\x7f]|\x81.|\x82..|\x83...|\x84....)"
_STARTED = re.compile(rb"\x30" + _LENGTH + rb"\x02\x01\x01\x78" + _LENGTH + rb"\x0a\x01\x00", re.DOTALL)
"""How ExtendedResponse number 1 begins, if it is a success."""


@contextmanager
def open_channel(url: str, context: ssl.SSLContext, seconds: float) -> Iterator[socket.socket]:
    """Yield a socket at whose other end the directory is, for so long. `url`: ldaps://, or ldap:// and StartTLS.

    Raises OSError: it is not reached, says nothing, has no TLS, or has another's certificate.
    """
    until = time.monotonic() + seconds
    parts = urlsplit(url)
    host = parts.hostname or ""
    with socket.create_connection((host, parts.port or _PORTS[parts.scheme]), seconds) as bare:
        if parts.scheme == "ldap":
            _start_tls(bare, until)
        bare.settimeout(_left(until))
        with context.wrap_socket(bare, server_hostname=host) as wire:
            ours, theirs = socket.socketpair()
            thread = threading.Thread(target=_carry, args=(ours, wire, until), name="dpsql-ldap", daemon=True)
            with ours, theirs:
                thread.start()
                try:
                    yield theirs
                finally:
                    _hang_up(ours)
                    thread.join()


def _start_tls(bare: socket.socket, until: float) -> None:
    bare.sendall(_START_TLS)
    answer = _read(bare, 2, until)
    size = answer[1]
    if size & 0x80:
        length = _read(bare, size & 0x7F, until)
        answer, size = answer + length, int.from_bytes(length, "big")
    if size > _MOST_ANSWER or _STARTED.match(answer + _read(bare, size, until)) is None:
        raise OSError("StartTLS is refused")


def _read(bare: socket.socket, size: int, until: float) -> bytes:
    """Return so many bytes, and take none that come after. Raises OSError: they do not come."""
    found = b""
    while len(found) < size:
        bare.settimeout(_left(until))
        data = bare.recv(size - len(found))
        if not data:
            raise OSError("the directory hangs up")
        found += data
    return found


def _left(until: float) -> float:
    rest = until - time.monotonic()
    if rest <= 0:
        raise TimeoutError
    return rest


def _carry(ours: socket.socket, wire: ssl.SSLSocket, until: float) -> None:
    """Carry bytes both ways until one end is closed, or the time is up; then close ours."""
    poll = select.poll()  # of any number of open files
    for one in (ours, wire):
        poll.register(one, select.POLLIN)
    try:
        while True:
            ready = [wire.fileno()] if wire.pending() else [fd for fd, _ in poll.poll(1000 * _left(until))]
            if wire.fileno() in ready:
                wire.setblocking(False)
                try:
                    data = wire.recv(_CHUNK)
                except ssl.SSLWantReadError:  # a message of TLS's own, or a part of one
                    continue
                other: socket.socket = ours
            elif ready:
                data, other = ours.recv(_CHUNK), wire
            else:
                continue
            if not data:
                return
            other.settimeout(_left(until))
            other.sendall(data)
    except OSError:
        return
    finally:
        _hang_up(ours)


def _hang_up(one: socket.socket) -> None:
    with suppress(OSError):  # it is closed already
        one.shutdown(socket.SHUT_RDWR)
