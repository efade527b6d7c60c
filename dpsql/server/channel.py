"""A socket of the event loop: bytes that came, bytes that go, and TLS from a certain byte on.

Source of the PROXY protocol, version 2: haproxy.org, "The PROXY protocol, versions 1 & 2", section 2.2.
"""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import os
import re
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from pathlib import Path

from ..pgwire import tls_server_end_point
from ..records import dataclass
from ..regex import regex
from .processes import OneOf
from .report import ClientGone, Seldom

# --- the sockets that connections come in by, and whom a trusted proxy speaks for --------------------------


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


def open_listeners(host: str, port: int, *, shares: bool = False) -> list[socket.socket]:
    """Return sockets that listen on each address of a host; port 0 takes a free one, the same for all.

    `shares`: with other processes of one server, among which the system divides who connects.

    An address that this machine lacks is left out where it has another (localhost without IPv6).
    Raises CannotListen: no address can be had.
    """
    try:
        return _listeners(host, port, shares=shares)
    except OSError as error:
        raise CannotListen(host, port, error) from None


def _listeners(host: str, port: int, *, shares: bool) -> list[socket.socket]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    listeners: list[socket.socket] = []
    missing = OSError(errno.EADDRNOTAVAIL, "")
    with ExitStack() as undo:
        for family, _, _, _, address in dict.fromkeys(found):
            number = listeners[0].getsockname()[1] if listeners else port
            own = (address[0], number, *address[2:])
            try:
                listener = socket.create_server(own, family=family, backlog=_BACKLOG, reuse_port=shares)
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


# --- the server's certificate: read at the start, and anew at each reload -----------------------------------


_ALPN = "postgresql"
"""What a client that begins with TLS at once has to name (Postgres 17), so that no other protocol is led here."""

_CERTIFICATE = regex(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)
_UNREADABLE = "the certificate and its key cannot be read, or do not belong together"
_NO_PASSPHRASE = b"\0"
"""Given so that nobody is asked for one on the terminal; no key has it."""


@dataclass(frozen=True, slots=True)
class Encryption:
    """TLS with one certificate, and what a login over it is bound to; None: that certificate binds nothing."""

    context: ssl.SSLContext
    binding: bytes | None


def load_encryption(certificate: Path | None, key: Path | None) -> Encryption | None:
    """Return what two PEM files make; None where neither is given.

    Raises ValueError: one alone is given, they cannot be read, do not belong together, or others can read the key.
    """
    if certificate is None or key is None:
        if certificate is not key:
            raise ValueError("a certificate and its key are given together")
        return None
    refuse_open(key, "the key")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION
    context.num_tickets = 0  # as Postgres: a connection is long, and none is resumed
    context.set_alpn_protocols([_ALPN])
    try:
        text = certificate.read_text("ascii")
        context.load_cert_chain(certificate, key, _NO_PASSPHRASE)
        first = _CERTIFICATE.search(text)
        if first is None or text != certificate.read_text("ascii"):  # replaced while it was read
            raise ValueError
        return Encryption(context, tls_server_end_point(ssl.PEM_cert_to_DER_cert(first.group())))
    except (OSError, ValueError):  # an SSLError is an OSError
        raise ValueError(_UNREADABLE) from None


def refuse_open(file: Path, what: str) -> None:
    """Raise ValueError, by Postgres' rule, for a secret that others can read or change: who has it is the server.

    Root's may be read by one group, in which the server's user is then.
    """
    try:
        found = file.stat()
    except OSError:
        raise ValueError(f"{what} cannot be read") from None
    if found.st_uid not in (0, os.geteuid()):
        raise ValueError(f"{what} belongs to another user: give it to the one who runs dpsql, or to root")
    if found.st_mode & (0o027 if found.st_uid == 0 else 0o077):
        raise ValueError(
            f"others than its owner can read {what}, or change it: chmod 600 it (640 where it is root's)"
        )


def end_of_certificate(certificate: Path, encryption: Encryption) -> datetime | None:
    """Return until when a server's certificate is good, as a client that trusts itself alone sees it; None: not now.

    Requires: `encryption` was loaded from it.
    """
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname = False
    client.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    client.load_verify_locations(certificate)
    to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = (
        client.wrap_bio(to_client, to_server),
        encryption.context.wrap_bio(to_server, to_client, server_side=True),
    )
    try:
        for _ in range(4):
            for end in ends:
                with suppress(ssl.SSLWantReadError):
                    end.do_handshake()
        seen = ends[0].getpeercert()
    except (ssl.SSLError, ValueError):
        return None
    if not seen:
        return None
    return datetime.fromtimestamp(ssl.cert_time_to_seconds(str(seen["notAfter"])), UTC)


# --- a socket of the event loop: bytes that came, bytes that go, and TLS from a certain byte on -------------


_READ_AHEAD = 256 * 1024
_TLS_RECORD = b"\x16"
"""The first byte of a client that begins with TLS; no packet of the protocol before tags has it."""


_NO_HEADER = Seldom("no proxy header")


class Channel(asyncio.Protocol):
    """One client's socket. `lost` is done once the client has left, also while nobody reads."""

    def __init__(self, connection: socket.socket, peer: str) -> None:
        """`connection`: as it was accepted; `peer`: the address it comes from."""
        self._socket = connection
        self._transport: asyncio.Transport | None = None
        self._buffer = bytearray()
        self._arrived = asyncio.Event()
        self._writable = asyncio.Event()
        self._writable.set()
        self.lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.peer = peer

    # --- called by the event loop ----------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        self._arrived.set()
        if len(self._buffer) >= _READ_AHEAD and self._transport is not None:
            self._transport.pause_reading()

    def eof_received(self) -> bool:
        self._lose()
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._lose()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    # --- called by the client's task -------------------------------------------------------------

    async def read_proxy_header(self) -> str | None:
        """Return whom a trusted proxy speaks for, which it says first. Raises ClientGone."""
        try:
            return await read_proxy_header(self._socket)
        except ValueError:
            _NO_HEADER.log(peer=self.peer)
        except OSError:
            pass
        raise ClientGone

    async def begin(self, encryption: Encryption | None, seconds: float) -> bool:
        """Wait for the client's first byte; return whether it begins TLS, which is then spoken from here on.

        Raises ClientGone: it has left, or the handshake fails, or it did not name our protocol in it.
        """
        context = None
        if await self._first_byte() == _TLS_RECORD and encryption is not None:
            context = encryption.context
        loop = asyncio.get_running_loop()
        try:
            await loop.connect_accepted_socket(
                lambda: self, self._socket, ssl=context, ssl_handshake_timeout=seconds if context else None
            )
        except OSError:  # an SSLError is one
            raise ClientGone from None
        if context is None:
            return False
        assert self._transport is not None
        tls = self._transport.get_extra_info("ssl_object")
        if tls is None or tls.selected_alpn_protocol() != _ALPN:
            raise ClientGone
        return True

    async def _first_byte(self) -> bytes:
        """Return the first byte, and leave it in the socket."""
        loop = asyncio.get_running_loop()
        number = self._socket.fileno()  # a socket itself is described each time
        loop.add_reader(number, self._arrived.set)
        try:
            await self._arrived.wait()
        finally:
            loop.remove_reader(number)
        self._arrived.clear()
        try:
            first = self._socket.recv(1, socket.MSG_PEEK)
        except OSError:  # also when `wake` came first
            first = b""
        if not first or self.lost.done():
            raise ClientGone
        return first

    async def read(self) -> bytes:
        """Return what came, at least one byte; nothing after `wake`. Raises ClientGone."""
        await self._arrived.wait()
        self._arrived.clear()
        data = bytes(self._buffer)
        self._buffer.clear()
        if not data and self.lost.done():
            self._arrived.set()
            raise ClientGone
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()
        return data

    def wake(self) -> None:
        """Have a `read` that waits return."""
        self._arrived.set()

    def put(self, data: bytes) -> bool:
        """Send; return whether the client reads: where not, `drained` is to be waited for. Raises ClientGone."""
        if self.lost.done() or self._transport is None or self._transport.is_closing():
            raise ClientGone
        self._transport.write(data)
        return self._writable.is_set()

    async def drained(self) -> None:
        """Wait until the client reads, or has left."""
        await self._writable.wait()

    async def write(self, data: bytes) -> None:
        """Send; waits while the client does not read. Raises ClientGone."""
        self.put(data)
        await self.drained()

    async def start_tls(self, encryption: Encryption, accepted: bytes, seconds: float) -> None:
        """Send the byte that accepts TLS, and speak it from here on.

        Bytes that came in the clear before it were written by nobody knows whom: then, and when the handshake
        fails, it raises ClientGone.
        """
        if self._transport is None or self._buffer or self.lost.done():
            raise ClientGone
        self._transport.pause_reading()
        self._transport.write(accepted)
        loop = asyncio.get_running_loop()
        try:
            transport = await loop.start_tls(
                self._transport, self, encryption.context, server_side=True, ssl_handshake_timeout=seconds
            )
        except (OSError, ssl.SSLError):
            raise ClientGone from None
        if transport is None:
            raise ClientGone
        self._transport = transport

    async def close(self) -> None:
        """Send what is left and hang up; a client that does not read is not waited for."""
        if self._transport is None:
            self._socket.close()
            self._lose()
            return
        if not self._transport.is_closing():
            self._transport.close()
        await asyncio.wait({self.lost}, timeout=1)
        if not self.lost.done():
            self.abort()

    def abort(self) -> None:
        """Hang up at once."""
        if self._transport is not None:
            self._transport.abort()
            return
        self._lose()
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # ends a handshake

    def _lose(self) -> None:
        """Have nobody wait for the client any longer."""
        if not self.lost.done():
            self.lost.set_result(None)
        self._arrived.set()
        self._writable.set()


# --- what the owner decides about the server ----------------------------------------------------------------


_LEAST_STRANGERS = 32
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True, slots=True)
class Options:
    """Where and how to listen; times in seconds.

    `certificate` and `key`: PEM files, given together; without them nothing is encrypted. `write_seconds`: how long
    a client may leave unread what it is sent. `probe_seconds`: between two looks at the ledger. `metrics`: the address
    on which counts are served to Prometheus; None for none. `metrics_token`: the file of the token that it asks for.
    `witness`: a file, or `witness_command`, a program with its arguments, that is told what the ledgers have come to.
    `trusted_proxies`: connections from there begin with the PROXY protocol, version 2. `one_of`: which of several
    processes this is; None for the only one.
    """

    host: str = "127.0.0.1"
    port: int = 5433
    certificate: Path | None = None
    key: Path | None = None
    max_connections: int = 100
    authentication_seconds: float = 10.0
    idle_seconds: float = 3600.0
    write_seconds: float = 120.0
    grace_seconds: float = 10.0
    probe_seconds: float = 10.0
    metrics: tuple[str, int] | None = None
    metrics_token: Path | None = None
    trusted_proxies: tuple[Network, ...] = ()
    witness: Path | None = None
    witness_command: tuple[str, ...] = ()
    one_of: OneOf | None = None

    @property
    def processes(self) -> int:
        """How many processes serve."""
        return 1 if self.one_of is None else self.one_of.of

    @property
    def max_strangers(self) -> int:
        """How many connections without a login there may be: of all, and half of that of one address."""
        return max(2 * self.max_connections, _LEAST_STRANGERS)

    def trusts(self, peer: str) -> bool:
        """Return whether an address is a proxy's that is believed whom it speaks for."""
        address = address_of(peer)
        return address is not None and any(address in network for network in self.trusted_proxies)

    def max_per_analyst(self, analysts: int) -> int:
        """How many connections one of so many analysts may have: with others, half of all."""
        return self.max_connections if analysts == 1 else (self.max_connections + 1) // 2


def address_of(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Return an address without its zone; None for a name."""
    try:
        return ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return None


def is_loopback(host: str) -> bool:
    """Return whether an address, or the name localhost, cannot be reached from another machine."""
    address = address_of(host)
    return host == "localhost" if address is None else address.is_loopback
