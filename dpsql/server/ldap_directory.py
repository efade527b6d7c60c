"""A directory that is bound to as the analyst: by LDAP, over TLS alone.

House rules:

1. An empty password is refused here: to a directory a bind with one is a bind as nobody, which succeeds.
2. Nothing is said before TLS, and no certificate is let pass that is not the directory's: `open_channel`.
3. What a client wrote enters a DN or a filter escaped.
4. A name that is not there is bound with all the same, so that it takes as long.
5. No byte of the library's is sent before the certificate has checked out.
6. Every wait has the connection's own end. A thread that waits for the library ends with it too.

OpenLDAP's library waits in a handshake for as long as the directory likes. So TLS is Python's here, and the library is
handed one end of a pair of sockets.
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
from typing import Any
from urllib.parse import urlsplit

import ldap
import ldap.dn
import ldap.filter

from ..policy.model import DirectoryPolicy
from ..regex import regex
from .identity import Identity, Unproved

_PORTS = {"ldap": 389, "ldaps": 636}
_CHUNK = 65_536
_MOST_ANSWER = 4_096

_START_TLS = bytes.fromhex("301d02010177188016") + b"1.3.6.1.4.1.1466.20037"
"""ExtendedRequest number 1 of RFC 4511, 4.14.1: StartTLS."""
_LENGTH = rb"(?:[\x00-\x7f]|\x81.|\x82..|\x83...|\x84....)"
_STARTED = regex(rb"\x30" + _LENGTH + rb"\x02\x01\x01\x78" + _LENGTH + rb"\x0a\x01\x00", re.DOTALL)
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


_PLAIN = "ldap://directory"
"""How the library is told to speak, which meets the directory at the end of a channel that is encrypted already."""
_SECONDS = 5
"""For all of a login."""
_MEMBER_OF = "memberOf"
_LONGEST = 255


class LdapDirectory:
    """The directory of a policy. Each login has a connection of its own."""

    def __init__(self, policy: DirectoryPolicy) -> None:
        """Raises OSError: the file with the password, or the certificate, cannot be read; ValueError: it is empty."""
        self.policy = policy
        self._context = ssl.create_default_context(cafile=None if policy.ca is None else str(policy.ca))
        self._secret = ""
        if policy.password_file is not None:
            self._secret = policy.password_file.read_text().rstrip("\r\n")
        if policy.bind is not None and not self._secret:
            raise ValueError("the password of auth_bind is empty")

    def group(self, written: str) -> str:
        """Return a DN in one way of writing it; what is none, as it is."""
        try:
            parts = ldap.dn.str2dn(written)
        except ldap.DECODING_ERROR:
            return written
        same = [
            sorted((name.lower(), value.casefold(), flags) for name, value, flags in part) for part in parts
        ]
        return str(ldap.dn.dn2str(same))

    def identify(self, user: str, secret: str) -> Identity:
        """See `Voucher.identify`. `secret`: the password."""
        if not secret or "\0" in secret or not user.isprintable() or len(user) > _LONGEST:
            raise Unproved("password")
        try:
            person = self.policy.names.person(user)
            with open_channel(self.policy.url, self._context, _SECONDS) as channel:
                return self._bound(ldap.initialize(_PLAIN, fileno=channel.detach()), person, secret)
        except (OSError, ldap.LDAPError):
            raise Unproved("directory") from None

    def _bound(self, connection: Any, user: str, secret: str) -> Identity:
        """Return who a connection is bound as. Raises Unproved, ldap.LDAPError."""
        connection.set_option(ldap.OPT_REFERRALS, 0)
        connection.set_option(ldap.OPT_TIMEOUT, _SECONDS)
        try:
            name = self._find(connection, user)
            try:
                connection.simple_bind_s(name, secret)
            except (ldap.SERVER_DOWN, ldap.TIMEOUT):
                raise
            except ldap.LDAPError:
                raise Unproved("password") from None
            return self._read(connection, name, user)
        finally:
            _close(connection)

    def _find(self, connection: Any, user: str) -> str:
        """Return the DN to bind with: the person's, or one that is nobody's."""
        policy = self.policy
        below = f"{policy.attribute}={ldap.dn.escape_dn_chars(user)},{policy.base}"
        if not policy.searches:
            return below
        connection.simple_bind_s(policy.bind or "", self._secret)
        wanted = f"({policy.attribute}={ldap.filter.escape_filter_chars(user)})"
        found = connection.search_ext_s(policy.base, ldap.SCOPE_SUBTREE, wanted, ["1.1"])
        names = [name for name, _ in found if name is not None]
        return str(names[0]) if len(names) == 1 else below

    def _read(self, connection: Any, name: str, user: str) -> Identity:
        """Return who is bound, as their own entry has it. Raises Unproved, ldap.LDAPError."""
        policy = self.policy
        wanted = [policy.attribute, _MEMBER_OF]
        try:
            ((_, entry),) = connection.search_ext_s(name, ldap.SCOPE_BASE, "(objectClass=*)", wanted)
            values = {key.lower(): [one.decode() for one in found] for key, found in entry.items()}
        except (ValueError, ldap.NO_SUCH_OBJECT):
            raise Unproved("identity") from None
        if values.get(policy.attribute.lower()) != [user]:  # another spelling, or a person of several names
            raise Unproved("identity")
        groups = values.get(_MEMBER_OF.lower(), [])
        if policy.groups is not None:
            groups = self._listed(connection, policy.groups, name, user)
        short = policy.names.short(user)
        return Identity(user, short, frozenset(map(self.group, groups)), short)

    def _listed(self, connection: Any, base: str, name: str, user: str) -> list[str]:
        """Return the groups below an entry that list a person."""
        person, short = (ldap.filter.escape_filter_chars(one) for one in (name, user))
        wanted = f"(|(member={person})(uniqueMember={person})(memberUid={short}))"
        found = connection.search_ext_s(base, ldap.SCOPE_SUBTREE, wanted, ["1.1"])
        return [str(group) for group, _ in found if group is not None]


def _close(connection: Any) -> None:
    try:
        connection.unbind_s()
    except ldap.LDAPError:
        return
