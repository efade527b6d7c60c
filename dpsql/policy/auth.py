"""Who says who an analyst is, where it is not a password in the policy: a directory, or an issuer of tokens.

House rules:

1. A person of a directory or an issuer is one analyst. What a policy names is the person's name there, as the directory
   or the issuer has it; two analysts cannot have one.
2. A group says what its members may spend and see, and is nobody's name: who moves to another keeps what was spent.
3. What is said here is public but for the file of a password, which is named and not held.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from urllib.parse import SplitResult, unquote, urlsplit

from ..records import dataclass
from .model import Analyst, DirectoryPolicy, IssuerPolicy, NamePattern
from .name_maps import NameMap, read_map
from .section import Section, quote_key

__all__ = ["check_identities", "read_auth"]

_OIDC = "oidc+"
_EXAMPLE = '"ldaps://ldap.example.org/ou=people,dc=example,dc=org?uid" or "oidc+https://login.example.org"'


def read_auth(section: Section, folder: Path) -> DirectoryPolicy | IssuerPolicy | None:
    """Return who says who an analyst is, from [server]; None: passwords in the policy. Raises PolicyError."""
    written = section.text("auth")
    said = _Said(
        section.text("auth_groups"), section.text("auth_ca"), section.text("auth_bind"),
        section.text("auth_password_file"), section.text("auth_audience"), section.text("auth_scope"),
        _written_names(section),
    )  # fmt: skip
    if written is None:
        for key, value in said.keys().items():
            if value is not None:
                raise section.error("goes with auth", key)
        return None
    try:
        parts = urlsplit(written.removeprefix(_OIDC))
        _ = parts.port
    except ValueError:
        raise section.error(f"is no URL; write one like {_EXAMPLE}", "auth") from None
    if not parts.hostname or parts.username is not None or parts.fragment:
        raise section.error(f"is no URL of a server, without a user; write one like {_EXAMPLE}", "auth")
    ca = None if said.ca is None else folder / said.ca
    if written.startswith(f"{_OIDC}https://"):
        return _issuer(section, parts, said, ca)
    if parts.scheme in ("ldap", "ldaps") and not written.startswith(_OIDC):
        return _directory(section, parts, said, ca, folder)
    raise section.error(f"is neither a directory nor an issuer over TLS; write one like {_EXAMPLE}", "auth")


@dataclass(frozen=True, slots=True)
class _Said:
    groups: str | None
    ca: str | None
    bind: str | None
    password_file: str | None
    audience: str | None
    scope: str | None
    names: tuple[str, ...] | None

    def keys(self) -> dict[str, str | tuple[str, ...] | None]:
        return {
            "auth_groups": self.groups, "auth_ca": self.ca, "auth_bind": self.bind,
            "auth_password_file": self.password_file, "auth_audience": self.audience, "auth_scope": self.scope,
            "auth_names": self.names,
        }  # fmt: skip

    def refuse(self, section: Section, of: str, *names: str) -> None:
        for name in names:
            if self.keys()[name] is not None:
                raise section.error(f"is not for {of}", name)


def _issuer(section: Section, parts: SplitResult, said: _Said, ca: Path | None) -> IssuerPolicy:
    said.refuse(section, "an issuer of tokens", "auth_bind", "auth_password_file")
    if said.audience is None:
        raise section.error(
            "is missing; write for whom tokens are issued: the client's name there", "auth_audience"
        )
    if parts.query:
        raise section.error("has a query, which no issuer's URL has", "auth")
    scope, groups = said.scope or "openid", said.groups or "groups"
    return IssuerPolicy(parts.geturl(), said.audience, scope, groups, ca, _names(section, said.names))


def _written_names(section: Section) -> tuple[str, ...] | None:
    """Return what is written of names: one pattern, or several. Raises PolicyError: it is no text."""
    given = section.take("auth_names")
    if not isinstance(given, list):
        text = section.text("auth_names")
        return None if text is None else (text,)
    names = tuple(one for one in given if isinstance(one, str) and one)
    if len(names) < len(given) or not names:
        raise section.error("write patterns in quotes, like ['…', '…']", "auth_names")
    return names


def _names(section: Section, written: tuple[str, ...] | None) -> NamePattern | NameMap:
    """Return how names are made of short ones. Raises PolicyError: there is no one place of the short one in it."""
    if written is None:
        return NamePattern()
    if len(written) > 1 or written[0].startswith("/"):
        found = read_map(written)
        if isinstance(found, str):
            raise section.error(found, "auth_names")
        return found
    (only,) = written
    before, _, after = only.partition("*")
    if only.count("*") != 1 or not before + after or not only.isprintable():
        raise section.error(
            "says with one * where an analyst's name stands in the person's: \"*@example.org\"", "auth_names"
        )
    return NamePattern(before, after)


def _directory(
    section: Section, parts: SplitResult, said: _Said, ca: Path | None, folder: Path
) -> DirectoryPolicy:
    said.refuse(section, "a directory", "auth_audience", "auth_scope")
    base, asked = unquote(parts.path.removeprefix("/")), (parts.query or "uid").split("?")
    attribute, scope = asked[0] or "uid", asked[1] if len(asked) > 1 else ""
    if not base or len(asked) > 2 or scope not in ("", "sub") or not attribute.isalnum():
        raise section.error(
            "names the entry above the people, the attribute with their name, and sub where they are to be looked for: "
            '"ldaps://ldap.example.org/ou=people,dc=example,dc=org?uid"', "auth",
        )  # fmt: skip
    if (said.bind is None) is not (said.password_file is None):
        raise section.error("auth_bind and auth_password_file go together", "auth_bind")
    if said.bind is not None and not scope:
        raise section.error("is for people who are looked for: end the URL with ?sub", "auth_bind")
    secret = None if said.password_file is None else folder / said.password_file
    port = "" if parts.port is None else f":{parts.port}"
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    return DirectoryPolicy(
        f"{parts.scheme}://{host}{port}", base, attribute, bool(scope), said.groups, said.bind, secret, ca,
        _names(section, said.names),
    )  # fmt: skip


def check_identities(
    top: Section,
    auth: DirectoryPolicy | IssuerPolicy | None,
    analysts: Mapping[str, Analyst],
    groups: Mapping[str, Analyst],
) -> None:
    """Note what is wrong of who is who: two ways to say it, or one person twice."""
    known: dict[str, str] = {}
    for kind, declared in (("analysts", analysts), ("groups", groups)):
        for name, one in declared.items():
            if auth is None and (one.identity is not None or kind == "groups"):
                key = "identity" if kind == "analysts" else "member_of"
                top.found.append(top.error("goes with auth in [server]", kind, name, key))
            if auth is not None and one.password is not None:
                wrong = "is not asked for where [server] has auth; take one of the two out"
                top.found.append(top.error(wrong, kind, name, "password"))
    for name, one in analysts.items():
        identity = one.identity_under(auth)
        if identity is None:
            continue
        if (other := known.setdefault(identity, name)) != name:
            problem = f"is that of {quote_key(other)} too: a person is one analyst"
            top.found.append(top.error(problem, "analysts", name, "identity"))
