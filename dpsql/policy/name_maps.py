r"""Names of people at a directory or an issuer, as analysts: `/^([a-z]+)@example\.org$ \1`, as in pg_ident.conf.

House rules:

1. A person is one analyst, and no two people are one. A pattern is anchored at both ends and has one group; all else in
   it is plain characters, and so is all beside `\1` in the analyst's name, which so says all that differs.
2. Of several patterns no two give one name: decided here, of the patterns alone, for every name that there could be.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..records import dataclass
from .model import NamePattern

__all__ = ["NameMap", "read_map"]

_LONGEST = 64
"""Most characters of a name in a group, and most that a pattern may count."""
_NO_PATTERN = (
    r"is no pattern like '/^([a-z]+)@example\.org$ \1': anchored, one group of [letters]+, else plain text"
)
_SPECIAL = frozenset(".^$*+?()[]{}|\\")
_GROUP = re.compile(
    r"(?P<kind>\.|\\w|\\d|\[(?P<listed>[^\\\[\]^]+)\])"
    r"(?P<often>[+*]|\{(?P<least>\d{1,2})(?:,(?P<most>\d{1,2}))?\})"
)
_KINDS = {"\\d": "0-9", "\\w": "a-zA-Z0-9_"}
_RULE = re.compile(r"/\^(?P<before>[^(]*)\((?P<group>[^()]*)\)(?P<after>[^(]*)\$(?:[ \t]+(?P<said>\S+))?")


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
