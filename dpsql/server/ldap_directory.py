"""A directory that is bound to as the analyst: by LDAP, over TLS alone.

House rules:

1. An empty password is refused here: to a directory a bind with one is a bind as nobody, which succeeds.
2. Nothing is said before TLS, and no certificate is let pass that is not the directory's: `ldap_channel`.
3. What a client wrote enters a DN or a filter escaped.
4. A name that is not there is bound with all the same, so that it takes as long.
"""

from __future__ import annotations

import ssl
from typing import Any

import ldap
import ldap.dn
import ldap.filter

from ..policy.model import DirectoryPolicy
from .identity import Identity, Unproved
from .ldap_channel import open_channel

__all__ = ["LdapDirectory"]

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
