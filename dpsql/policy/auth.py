r"""Who says who an analyst is, where it is not a password in the policy: a directory, or an issuer of tokens.

Names of people there are an analyst's by a pattern, `/^([a-z]+)@example\.org$ \1`, as in pg_ident.conf.

House rules:

1. A person of a directory or an issuer is one analyst. What a policy names is the person's name there, as the directory
   or the issuer has it; two analysts cannot have one.
2. A group says what its members may spend and see, and is nobody's name: who moves to another keeps what was spent.
3. What is said here is public but for the file of a password, which is named and not held.
4. A person is one analyst, and no two people are one. A pattern is anchored at both ends and has one group; all else in
   it is plain characters, and so is all beside `\1` in the analyst's name, which so says all that differs.
5. Of several patterns no two give one name: decided here, of the patterns alone, for every name that there could be.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import SplitResult, unquote, urlsplit

from ..records import dataclass
from ..regex import regex
from .model import Analyst, DirectoryPolicy, IssuerPolicy, NamePattern
from .section import Section, quote_key

_LONGEST = 64
"""Most characters of a name in a group, and most that a pattern may count."""
_NO_PATTERN = (
    r"is no pattern like '/^([a-z]+)@example\.org$ \1': anchored, one group of [letters]+, else plain text"
)
_SPECIAL = frozenset(".^$*+?()[]{}|\\")
_GROUP = regex(
    r"(?P<kind>\.|\\w|\\d|\[(?P<listed>[^\\\[\]^]+)\])"
    r"(?P<often>[+*]|\{(?P<least>\d{1,2})(?:,(?P<most>\d{1,2}))?\})"
)
_KINDS = {"\\d": "0-9", "\\w": "a-zA-Z0-9_"}
_RULE = regex(r"/\^(?P<before>[^(]*)\((?P<group>[^()]*)\)(?P<after>[^(]*)\$(?:[ \t]+(?P<said>\S+))?")


@dataclass(frozen=True, slots=True)
class _Rule:
    """A pattern: what stands around a person's own characters, and what around them in the analyst's name.

    `letters`: those that they are of; None: any. `least`, `most`: how many of them.
    """

    person: NamePattern
    analyst: NamePattern
    letters: frozenset[str] | None
    least: int
    most: int

    def is_own(self, text: str | None) -> bool:
        """Say whether a text may be what the group stands for."""
        if text is None or not self.least <= len(text) <= self.most or not text.isprintable():
            return False
        return self.letters is None or self.letters.issuperset(text)


@dataclass(frozen=True, slots=True)
class NameMap:
    """Several patterns, of which a name is of one at most: as a `NamePattern` is asked."""

    rules: tuple[_Rule, ...]

    def person(self, user: str) -> str:
        """Return the name of the person whom somebody means who writes it whole, or the analyst's; else as it is."""
        if self.short(user) is not None:
            return user
        return next(
            (named for rule in self.rules if (named := _moved(rule, rule.analyst, rule.person, user))), user
        )

    def short(self, name: str) -> str | None:
        """Return the analyst's name of a person; None: the name is of no pattern."""
        found = (_moved(rule, rule.person, rule.analyst, name) for rule in self.rules)
        return next((one for one in found if one is not None), None)


def _moved(rule: _Rule, source: NamePattern, target: NamePattern, name: str) -> str | None:
    own = source.short(name)
    return f"{target.before}{own}{target.after}" if rule.is_own(own) else None


def read_map(written: Sequence[str]) -> NameMap | str:
    """Return the map that patterns are; a text: what is wrong with them, in words."""
    rules = []
    for text in written:
        rule = _rule(text)
        if rule is None:
            return _NO_PATTERN
        rules.append(rule)
    for place, rule in enumerate(rules):
        for other in rules[:place]:
            if _meet(rule, rule.analyst, other, other.analyst):
                return "has two patterns that could give two people one name: a person is one analyst"
            if _meet(rule, rule.person, other, other.person):
                return "has two patterns that could give one person two names: a person is one analyst"
    return NameMap(tuple(rules))


def _rule(text: str) -> _Rule | None:
    match = _RULE.fullmatch(text)
    group = None if match is None else _GROUP.fullmatch(match["group"])
    said = None if match is None else (match["said"] or r"\1")
    if match is None or group is None or said is None or said.count("\\1") != 1:
        return None
    around = [_plain(match["before"]), _plain(match["after"])]
    before, _, after = said.partition("\\1")
    letters = _letters(group)
    if None in around or not text.isprintable() or "\\" in before + after or letters == frozenset():
        return None
    least, most = 1, _LONGEST
    if group["least"] is not None:
        least = int(group["least"])
        most = int(group["most"] or group["least"])
    if not 1 <= least <= most <= _LONGEST:
        return None
    return _Rule(
        NamePattern(str(around[0]), str(around[1])), NamePattern(before, after), letters, least, most
    )


def _plain(pattern: str) -> str | None:
    r"""Return the text that a pattern of plain characters matches, `\.` and `[.]` for one; None: it is none."""
    pattern = re.sub(r"\[([^\\\]^-])\]", lambda one: "\\" + one[1], pattern)
    rest = re.sub(r"\\[^A-Za-z0-9]", "", pattern)
    return None if _SPECIAL.intersection(rest) else re.sub(r"\\(.)", r"\1", pattern)


def _letters(group: re.Match[str]) -> frozenset[str] | None:
    """Return the characters of a class; None: any, and of a class that is none no character."""
    if group["kind"] == ".":
        return None
    listed, found = _KINDS.get(group["kind"]) or group["listed"], set[str]()
    at = 0
    while at < len(listed):
        first = last = listed[at]
        if listed[at + 1 : at + 2] == "-" and at + 2 < len(listed):
            last = listed[at + 2]
            at += 2
        if not (first.isascii() and last.isascii() and first <= last):
            return frozenset()
        found |= {chr(code) for code in range(ord(first), ord(last) + 1)}
        at += 1
    return frozenset(found)


# --- whether two patterns have a name in common ---------------------------------------------------------------


def _meet(one: _Rule, mine: NamePattern, other: _Rule, its: NamePattern) -> bool:
    """Say whether a name is of both patterns: walked through both, by what may stand at each place."""
    (left, left_ends), (right, right_ends) = _places(one, mine), _places(other, its)
    seen, ahead = {(0, 0)}, [(0, 0)]
    while ahead:
        a, b = ahead.pop()
        if a in left_ends and b in right_ends:
            return True
        for letters, after in left[a]:
            for others, then in right[b]:
                if (after, then) not in seen and _share(letters, others):
                    seen.add((after, then))
                    ahead.append((after, then))
    return False


_Steps = list[list[tuple[frozenset[str] | None, int]]]


def _places(rule: _Rule, around: NamePattern) -> tuple[_Steps, frozenset[int]]:
    """Return from each place of a pattern what may stand there and where it leads; and at which places it may end."""
    head, tail = len(around.before), len(around.after)
    first = head + rule.most + 1
    steps: _Steps = [[] for _ in range(first + max(tail, 1))]
    for place, character in enumerate(around.before):
        steps[place].append((frozenset(character), place + 1))
    for count in range(rule.most):
        steps[head + count].append((rule.letters, head + count + 1))
    done = [head + count for count in range(rule.least, rule.most + 1)]
    if not tail:
        return steps, frozenset(done)
    for place in done:
        steps[place].append((frozenset(around.after[0]), first))
    for place, character in enumerate(around.after[1:]):
        steps[first + place].append((frozenset(character), first + place + 1))
    return steps, frozenset({first + tail - 1})


def _share(one: frozenset[str] | None, other: frozenset[str] | None) -> bool:
    return True if one is None or other is None else not one.isdisjoint(other)


_OIDC = "oidc+"
_KEYS = ("groups", "ca", "bind", "password_file", "audience", "scope")
_Said = Mapping[str, str | None]
"""What is written of each of `_KEYS`."""
_Names = tuple[str, ...] | None
_EXAMPLE = '"ldaps://ldap.example.org/ou=people,dc=example,dc=org?uid" or "oidc+https://login.example.org"'


def read_auth(section: Section, folder: Path) -> DirectoryPolicy | IssuerPolicy | None:
    """Return who says who an analyst is, from [server]; None: passwords in the policy. Raises PolicyError."""
    written = section.text("auth")
    said, names = {key: section.text(f"auth_{key}") for key in _KEYS}, _written_names(section)
    if written is None:
        for key, value in (*said.items(), ("names", names)):
            if value is not None:
                raise section.error("goes with auth", f"auth_{key}")
        return None
    try:
        parts = urlsplit(written.removeprefix(_OIDC))
        _ = parts.port
    except ValueError:
        raise section.error(f"is no URL; write one like {_EXAMPLE}", "auth") from None
    if not parts.hostname or parts.username is not None or parts.fragment:
        raise section.error(f"is no URL of a server, without a user; write one like {_EXAMPLE}", "auth")
    ca = None if said["ca"] is None else folder / said["ca"]
    if written.startswith(f"{_OIDC}https://"):
        return _issuer(section, parts, said, names, ca)
    if parts.scheme in ("ldap", "ldaps") and not written.startswith(_OIDC):
        return _directory(section, parts, said, names, ca, folder)
    raise section.error(f"is neither a directory nor an issuer over TLS; write one like {_EXAMPLE}", "auth")


def _refuse(section: Section, of: str, *keys: str) -> None:
    for key in keys:
        if section.text(key) is not None:
            raise section.error(f"is not for {of}", key)


def _issuer(
    section: Section, parts: SplitResult, said: _Said, names: _Names, ca: Path | None
) -> IssuerPolicy:
    _refuse(section, "an issuer of tokens", "auth_bind", "auth_password_file")
    audience = said["audience"]
    if audience is None:
        raise section.error(
            "is missing; write for whom tokens are issued: the client's name there", "auth_audience"
        )
    if parts.query:
        raise section.error("has a query, which no issuer's URL has", "auth")
    scope, groups = said["scope"] or "openid", said["groups"] or "groups"
    return IssuerPolicy(parts.geturl(), audience, scope, groups, ca, _names(section, names))


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
    section: Section, parts: SplitResult, said: _Said, names: _Names, ca: Path | None, folder: Path
) -> DirectoryPolicy:
    _refuse(section, "a directory", "auth_audience", "auth_scope")
    bind, password_file = said["bind"], said["password_file"]
    base, asked = unquote(parts.path.removeprefix("/")), (parts.query or "uid").split("?")
    attribute, scope = asked[0] or "uid", asked[1] if len(asked) > 1 else ""
    if not base or len(asked) > 2 or scope not in ("", "sub") or not attribute.isalnum():
        raise section.error(
            "names the entry above the people, the attribute with their name, and sub where they are to be looked for: "
            '"ldaps://ldap.example.org/ou=people,dc=example,dc=org?uid"', "auth",
        )  # fmt: skip
    if (bind is None) is not (password_file is None):
        raise section.error("auth_bind and auth_password_file go together", "auth_bind")
    if bind is not None and not scope:
        raise section.error("is for people who are looked for: end the URL with ?sub", "auth_bind")
    secret = None if password_file is None else folder / password_file
    port = "" if parts.port is None else f":{parts.port}"
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    return DirectoryPolicy(
        f"{parts.scheme}://{host}{port}", base, attribute, bool(scope), said["groups"], bind, secret, ca,
        _names(section, names),
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
