"""Who somebody is by the word of a directory or an issuer, and which analyst that is.

House rules:

1. Whatever fails, a client is told one thing: that the login failed. Why is for the operator's log, from a closed set.
2. A person is one analyst: what the directory or the issuer calls them is compared as it is written there, never as a
   client wrote it, so that no other spelling is another person with another budget.
3. An analyst of the policy goes before a group. A member of a group is an analyst under the person's own name, which
   groups do not change; whose name is an analyst's of the policy already is nobody. A shorter name says all in which
   people's names differ (`NamePattern`), and whose name is not made so is no member.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

from ..errors import PolicyError
from ..policy import Analyst, Policy
from ..policy.model import DirectoryPolicy, IssuerPolicy
from ..records import dataclass
from ..regex import regex

_NAME = regex(r"[\x21-\x7e]{1,255}")


class Unproved(Exception):
    """Nobody is vouched for; `reason`, for the log: password, token, directory, issuer, or identity."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Identity:
    """A person. `name`: as the directory or the issuer has it; `groups`: as `Voucher.group` writes them.

    `analyst`: what the person is called here as a member of a group alone; None: nothing. `short`: how they may write
    their name.
    """

    name: str
    analyst: str | None
    groups: frozenset[str]
    short: str | None = None


class Voucher(Protocol):
    """What says who somebody is. `identify` waits for others, and is called from a thread."""

    @property
    def policy(self) -> DirectoryPolicy | IssuerPolicy:
        """What the policy says of it."""
        ...

    def group(self, written: str) -> str:
        """Return a group's name in one way of writing it."""
        ...

    def identify(self, user: str, secret: str) -> Identity:
        """Return who has shown a password or a token. Raises Unproved."""
        ...


def open_voucher(policy: Policy) -> Voucher | None:
    """Return who vouches for a policy's analysts; None: passwords in it. Raises PolicyError: its part is missing."""
    auth = policy.server.auth
    if auth is None:
        return None
    part = "ldap" if isinstance(auth, DirectoryPolicy) else "oidc"
    try:
        return _opened(auth)
    except ImportError:
        raise PolicyError(
            f"{policy.source}: server.auth takes an optional part", hint=f'pip install "dpsql[{part}]"'
        ) from None
    except (OSError, ValueError) as error:
        raise PolicyError(f"{policy.source}: server.auth: {error}") from None


def _opened(auth: DirectoryPolicy | IssuerPolicy) -> Voucher:
    if isinstance(auth, DirectoryPolicy):
        from .ldap_directory import LdapDirectory

        return LdapDirectory(auth)
    from .token_issuer import TokenIssuer

    return TokenIssuer(auth)


def analyst_of(policy: Policy, voucher: Voucher, identity: Identity, user: str) -> Analyst | None:
    """Return the analyst that a person is; None: none, or not the one that `user` names."""
    if not _NAME.fullmatch(identity.name):
        return None
    auth = policy.server.auth
    declared = [one for one in policy.analysts.values() if one.name not in policy.members]
    own = next((one for one in declared if one.identity_under(auth) == identity.name), None)
    if (
        own is None
        and identity.analyst is not None
        and identity.analyst not in {one.name for one in declared}
    ):
        groups = (one for one in policy.groups.values() if one.identity is not None)
        group = next((one for one in groups if voucher.group(one.identity or "") in identity.groups), None)
        own = None if group is None else replace(group, name=identity.analyst)
    return own if own is not None and user in (own.name, identity.name, identity.short) else None
