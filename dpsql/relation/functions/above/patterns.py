"""Regular expressions and SIMILAR TO: chapter 9.7 of Postgres' manual, of constant patterns, in linear time.

Postgres' advanced regular expressions as those of RE2, which match in time linear in the text.

What RE2 has not (back references, looking around) and what it means otherwise is a `FormatError` that names it.

Postgres' match is the longest of the leftmost ones, RE2's the first that greed finds. Both accept the same texts. Where
the place of a match matters (`spans`), a pattern is a row of characters and sets, each with a greedy quantifier, some
in parentheses: there greed finds the longest. Proof: a path that takes more for earlier parts stays in an earlier or
the same part as any other at every character; to end before a longer one it would have to pass it, but what it skips
for that, it could skip less of and join the other, and greed prefers to.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field

from sqlglot import exp

from ....records import dataclass
from ....regex import regex
from ...types import BOOLEAN, Kind, SqlType
from ..row import Args, Function, Syntax, binary
from .moments import FormatError, constant
from .signature import MOST_BYTES, above

# --- Postgres' advanced regular expressions as those of RE2, which match in time linear in the text ---------


_CLASSES = {"d": "0-9", "w": r"\p{L}\p{N}_", "s": r"\s\x0b\p{Z}"}
_POSIX = {
    "alpha": r"\p{L}", "digit": "0-9", "alnum": r"\p{L}\p{N}", "upper": r"\p{Lu}", "lower": r"\p{Ll}",
    "space": _CLASSES["s"], "xdigit": "0-9A-Fa-f", "blank": r" \t",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Spelling:
    """How an engine writes what a pattern is made of: any character, both ends of the text, and classes."""

    any: str
    begin: str
    end: str
    classes: Mapping[str, str]
    named: Mapping[str, str]


_ABOVE = Spelling("(?s:.)", "\\A", "\\z", _CLASSES, _POSIX)
_ASCII = {"d": "0-9", "w": "A-Za-z0-9_", "s": r" \t\n\v\f\r"}
_ASCII_NAMED = {
    "alpha": "A-Za-z", "digit": "0-9", "alnum": "A-Za-z0-9", "upper": "A-Z", "lower": "a-z", "space": _ASCII["s"],
    "xdigit": "0-9A-Fa-f", "blank": r" \t",
}  # fmt: skip
OF_RE2 = Spelling("(?s:.)", "\\A", "\\z", _ASCII, _ASCII_NAMED)
OF_POSTGRES = Spelling(".", "\\A", "\\Z", _ASCII, _ASCII_NAMED)
"""On people's rows classes are of ASCII: what else is a letter or a digit each engine says otherwise."""

_CONTROLS = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v"}
_QUANTIFIER = regex(r"([*+?]|\{(\d+)(?:(,)(\d*))?\})(\?)?")
_MOST_REPEATED = 255
_MOST_SIZE = 5_000


@dataclass(frozen=True, slots=True)
class Pattern:
    """A pattern for RE2. `groups`: how many; `is_row`: see `spans` above; `may_be_empty`: it matches an empty text."""

    text: str
    groups: int
    is_row: bool
    may_be_empty: bool


def _plain(character: str, ignore_case: bool) -> str:
    """Return one character, in both cases where the case is ignored."""
    spelled = {character}
    if ignore_case:
        spelled |= {one for one in (character.lower(), character.upper()) if len(one) == 1}
    shown = [re.escape(one) if one.isascii() and not one.isalnum() else one for one in sorted(spelled)]
    return shown[0] if len(shown) == 1 else f"[{''.join(shown)}]"


@dataclass
class _Reader:
    text: str
    ignore_case: bool
    spelling: Spelling = _ABOVE
    at: int = 0
    groups: int = 0
    is_row: bool = True
    size: int = 0
    repeats: int = 1  # how often the part that was read last may repeat what is innermost in it
    depth: int = 0
    opened: list[int] = field(default_factory=list)

    def branches(self) -> tuple[str, bool]:
        """Return alternatives until a closing parenthesis or the end, and whether they match an empty text."""
        found = [self.branch()]
        most = self.repeats
        while self.text[self.at : self.at + 1] == "|":
            self.at += 1
            self.is_row = False
            found.append(self.branch())
            most = max(most, self.repeats)
        self.repeats = most
        return "|".join(text for text, _ in found), any(empty for _, empty in found)

    def branch(self) -> tuple[str, bool]:
        parts: list[str] = []
        empty, most = True, 1
        while self.at < len(self.text) and self.text[self.at] not in "|)":
            self.repeats = 1
            text, may_be_empty, is_atom = self.atom()
            text, may_be_empty = self.quantified(text, may_be_empty, is_atom)
            parts.append(text)
            empty, most = empty and may_be_empty, max(most, self.repeats)
        if not parts:
            raise FormatError("an empty alternative is not read in a regular expression")
        self.repeats = most
        return "".join(parts), empty

    def quantified(self, text: str, empty: bool, is_atom: bool) -> tuple[str, bool]:
        match = _QUANTIFIER.match(self.text, self.at)
        if match is None:
            return text, empty
        if not is_atom:
            raise FormatError("a quantifier stands after something that it cannot repeat")
        self.at = match.end()
        if _QUANTIFIER.match(self.text, self.at):
            raise FormatError("two quantifiers stand side by side")
        sign, least, comma, most, lazy = match.groups()
        low = int(least) if least else 1 if sign == "+" else 0
        high = int(most) if most else low if least and not comma else None
        if low > _MOST_REPEATED or (high or 0) > _MOST_REPEATED or (high is not None and high < low):
            raise FormatError(f"a quantifier counts to {_MOST_REPEATED}, upwards")
        self.repeats *= max(low, high or 1)
        self.size += len(text) * self.repeats
        if self.size > _MOST_SIZE:
            raise FormatError("the regular expression repeats too much")
        if lazy or text.startswith("("):
            self.is_row = self.is_row and not lazy and text.startswith("(?s:.)")
        return text + match[0], empty or low == 0

    def atom(self) -> tuple[str, bool, bool]:
        """Return the next part, whether it matches an empty text, and whether it can be repeated."""
        character = self.text[self.at]
        self.at += 1
        if character == ".":
            return self.spelling.any, False, True
        if character in "^$":
            return (self.spelling.begin if character == "^" else self.spelling.end), True, False
        if character == "(":
            return (*self.group(), True)
        if character == "[":
            return self.bracket(), False, True
        if character == "\\":
            return self.escape()
        if character in "*+?" or (character == "{" and self.text[self.at : self.at + 1].isdigit()):
            raise FormatError("a quantifier stands where there is nothing to repeat")
        return _plain(character, self.ignore_case), False, True

    def group(self) -> tuple[str, bool]:
        opening = "("
        if self.text.startswith("?", self.at):
            if not self.text.startswith("?:", self.at):
                raise FormatError("looking ahead or behind, (?…), is not read in a regular expression")
            opening, self.at = "(?:", self.at + 2
        else:
            self.groups += 1
        self.depth += 1
        if self.depth > 20:
            raise FormatError("the regular expression is nested too deep")
        text, empty = self.branches()
        self.depth -= 1
        if self.text[self.at : self.at + 1] != ")":
            raise FormatError("a parenthesis of the regular expression is not closed")
        self.at += 1
        return f"{opening}{text})", empty

    def escape(self) -> tuple[str, bool, bool]:
        character = self.text[self.at : self.at + 1]
        self.at += 1
        if character in _CONTROLS:
            return re.escape(_CONTROLS[character]), False, True
        if character and character in "dws":
            return f"[{self.spelling.classes[character]}]", False, True
        if character and character in "DWS":
            return f"[^{self.spelling.classes[character.lower()]}]", False, True
        if character in ("A", "Z"):
            return (self.spelling.begin if character == "A" else self.spelling.end), True, False
        if character.isdigit():
            raise FormatError(f"a back reference, \\{character}, is not read: it takes more than linear time")
        if not character or character.isalnum():
            raise FormatError(f"the escape \\{character} is not read in a regular expression")
        return _plain(character, self.ignore_case), False, True

    def bracket(self) -> str:
        negated = self.text.startswith("^", self.at)
        self.at += negated
        parts: list[str] = []
        is_first = True
        while is_first or not self.text.startswith("]", self.at):
            is_first = False
            if self.at >= len(self.text):
                raise FormatError("a bracket of the regular expression is not closed")
            parts.append(self.member())
        self.at += 1
        return f"[{'^' if negated else ''}{''.join(parts)}]"

    def member(self) -> str:
        named = re.compile(r"\[:(\w+):\]").match(self.text, self.at)
        if named:
            if named[1] not in _POSIX or (self.ignore_case and named[1] in ("upper", "lower")):
                raise FormatError(f"the class [:{named[1]}:] is not read in a regular expression")
            self.at = named.end()
            return self.spelling.named[named[1]]
        if self.text.startswith(("[.", "[=", "[:"), self.at):
            raise FormatError("collating elements, [. .] and [= =], are not read in a regular expression")
        first = self.one()
        if first.startswith("class "):
            return first.removeprefix("class ")
        if self.text.startswith("-", self.at) and self.text[self.at + 1 : self.at + 2] not in ("]", ""):
            self.at += 1
            last = self.one()
            return self.range(first, last)
        return "".join(_in_set(one) for one in self.cases(first))

    def one(self) -> str:
        character = self.text[self.at]
        self.at += 1
        if character != "\\":
            return character
        escaped = self.text[self.at : self.at + 1]
        self.at += 1
        if escaped and escaped in "dws":
            return "class " + self.spelling.classes[escaped]
        if escaped in _CONTROLS:
            return _CONTROLS[escaped]
        if not escaped or escaped.isalnum():
            raise FormatError(f"the escape \\{escaped} is not read in a bracket of a regular expression")
        return escaped

    def range(self, first: str, last: str) -> str:
        if len(last) != 1 or last < first:
            raise FormatError("a range of a regular expression goes upwards, between characters")
        shown = f"{_in_set(first)}-{_in_set(last)}"
        if not self.ignore_case:
            return shown
        if not (first.isascii() and last.isascii()):
            raise FormatError("a range beyond ASCII is not read where the case is ignored")
        inside = [chr(code) for code in range(ord(first), ord(last) + 1)]
        return shown + "".join(one.swapcase() for one in inside if one.isalpha())

    def cases(self, character: str) -> list[str]:
        both = {character.lower(), character.upper()} if self.ignore_case else set()
        return sorted({character} | {one for one in both if len(one) == 1})


def _in_set(character: str) -> str:
    return "\\" + character if character in "\\]^-[&~" else character


def read_pattern(text: str, ignore_case: bool = False, spelling: Spelling = _ABOVE) -> Pattern:
    """Return Postgres' pattern as an engine spells it, RE2's without another. Raises FormatError."""
    if text.startswith("***"):
        raise FormatError("a director, ***, is not read in a regular expression")
    options = re.match(r"\(\?([a-z]+)\)", text)
    if options:
        if options[1] != "i":
            raise FormatError(f"the option (?{options[1]}) is not read in a regular expression")
        text, ignore_case = text[options.end() :], True
    if len(text) > 1000:
        raise FormatError("a regular expression has at most 1000 characters")
    if not text:
        return Pattern("", 0, True, True)
    reader = _Reader(text, ignore_case, spelling)
    written, empty = reader.branches()
    if reader.at < len(text):
        raise FormatError("a parenthesis of the regular expression is closed that was not opened")
    return Pattern(written, reader.groups, reader.is_row, empty)


def like_similar(text: str, escape: str = "\\") -> str:
    """Return the pattern of SIMILAR TO as a regular expression of Postgres, for the whole text. Raises FormatError."""
    parts: list[str] = []
    at, in_set = 0, False
    while at < len(text):
        character = text[at]
        at += 1
        if escape and character == escape:
            if at >= len(text):
                raise FormatError("the pattern ends in its escape character")
            parts.append(("\\" + text[at]) if not text[at].isalnum() else text[at])
            at += 1
        elif in_set:
            in_set = character != "]"
            parts.append("\\\\" if character == "\\" else character)
        elif character == "[":
            in_set = True
            parts.append("[")
            for first in ("^", "]"):
                if text[at : at + 1] == first:
                    parts.append(first)
                    at += 1
        else:
            parts.append(
                {"%": ".*", "_": ".", ".": r"\.", "^": r"\^", "$": r"\$", "\\": r"\\", "(": "(?:"}.get(
                    character, character
                )
            )
    return f"^(?:{''.join(parts)})$"


def replacement(text: str, groups: int) -> str:
    """Return Postgres' replacement as RE2's. Raises FormatError: it names a group that there is not."""

    def changed(match: re.Match[str]) -> str:
        character = match[1]
        if character == "&":
            return "\\0"
        if character.isdigit() and character != "0":
            if int(character) > groups:
                raise FormatError(f"the replacement names a group, \\{character}, that the pattern has not")
            return match[0]
        return "\\\\" if character == "\\" else "\\\\" + character

    return re.sub(r"\\(.|$)", changed, text, flags=re.DOTALL)


# --- regular expressions and SIMILAR TO ---------------------------------------------------------------------


def _flags(flags: str, known: str) -> frozenset[str]:
    wrong = [flag for flag in flags if flag not in known]
    if wrong:
        raise FormatError(f"the flag {wrong[0]} is not read: {' and '.join(known)} are")
    return frozenset(flags)


def _matches(pattern: str, flags: str = "") -> str:
    read = read_pattern(pattern, "i" in _flags(flags, "i"))
    return f"regexp_matches({{a}}, {constant(read.text)})"


def _no_case(pattern: str) -> str:
    return _matches(pattern, "i")


def _span(pattern: str, flags: str = "", known: str = "i") -> Pattern:
    """Return a pattern whose matches have one place. Raises FormatError."""
    read = read_pattern(pattern, "i" in _flags(flags, known))
    if not read.is_row:
        raise FormatError(
            "alternatives (|), repeated groups and lazy quantifiers are read by ~ alone: "
            "where a match ends is another thing in this engine"
        )
    if read.may_be_empty:
        raise FormatError("a pattern that matches an empty text is read by ~ alone")
    return read


def _found(read: Pattern) -> str:
    place = 1 if read.groups else 0
    return f"regexp_extract({{a}}, {constant(read.text)}, {place})"


def _part(pattern: str, flags: str = "") -> str:
    read = _span(pattern, flags)
    return f"CASE WHEN regexp_matches({{a}}, {constant(read.text)}) THEN {_found(read)} END"


def _whole(pattern: str, flags: str = "") -> str:
    read = _span(pattern, flags)
    text = constant(read.text)
    return f"CASE WHEN regexp_matches({{a}}, {text}) THEN regexp_extract({{a}}, {text}, 0) END"


def _groups(pattern: str, flags: str = "") -> str:
    read = _span(pattern, flags)
    text = constant(read.text)
    found = ", ".join(f"regexp_extract({{a}}, {text}, {place})" for place in range(1, read.groups + 1))
    return (
        f"CASE WHEN regexp_matches({{a}}, {text}) THEN [{found or f'regexp_extract({{a}}, {text}, 0)'}] END"
    )


def _split(pattern: str, flags: str = "") -> str:
    return f"string_split_regex({{a}}, {constant(_span(pattern, flags).text)})"


def _count(pattern: str, flags: str = "") -> str:
    return f"len(regexp_extract_all({{a}}, {constant(_span(pattern, flags).text)}))"


def _place(pattern: str, flags: str = "") -> str:
    read = _span(pattern, flags)
    upto = constant(rf"(?s)\A(.*?)(?:{read.text})")
    before = f"regexp_extract({{a}}, {upto}, 1)"
    return f"CASE WHEN regexp_matches({{a}}, {constant(read.text)}) THEN length({before}) + 1 ELSE 0 END"


def _replaced(pattern: str, new: str, flags: str = "") -> str:
    read = _span(pattern, flags, "gi")
    written = replacement(new, read.groups)
    option = ", 'g'" if "g" in flags else ""
    matches = f"len(regexp_extract_all({{a}}, {constant(read.text)}))"
    references = new.count("\\")
    size = f"strlen({{a}}) * {references + 1} + ({matches} + 1) * {len(new.encode())}"
    return (
        f"CASE WHEN {size} <= greatest({16 * MOST_BYTES}, 2 * strlen({{a}})) THEN "
        f"regexp_replace({{a}}, {constant(read.text)}, {constant(written)}{option}) END"
    )


def _similar(pattern: str, escape: str = "\\") -> str:
    return _matches(like_similar(pattern, escape))


def _two_texts(args: Args) -> SqlType | None:
    fits = all(arg.type.kind in (Kind.TEXT, Kind.NULL) for arg in args)
    return BOOLEAN if fits else None


_ONE = "text, pattern -> {0}; text, pattern, flags -> {0}"

ROWS = (
    Function(
        "like_computed", "x LIKE y", "of a form that a column has; also `ILIKE`", _two_texts, private=False,
        symbol="LIKE", null=lambda args, call: True,
        below="write the pattern out, as x LIKE 'a%'; of a public table's patterns: position(y IN x) > 0",
    ),
    Function(
        "regexp_computed", "x ~ y", "by a pattern that a column has: letters, digits, `.`, `.*`, `^`, `$` at the ends",
        _two_texts, private=False, symbol="~", null=lambda args, call: True,
        below="write the pattern out, as x ~ '^a'; of a public table's patterns: position(y IN x) > 0",
    ),
    above("regexp_matches", "x ~ '^a.*z'", "whether a regular expression is found in a text; `!~`: it is not",
          "text, pattern -> boolean", _matches, names=(),
          syntax=(Syntax(exp.RegexpLike, read=("this", "expression")),), symbol="~", output="?column?"),
    above("regexp_matches_no_case", "x ~* '^a.*z'", "the same, capital and small letters alike",
          "text, pattern -> boolean", _no_case, names=(),
          syntax=(Syntax(exp.RegexpILike, read=("this", "expression")),), symbol="~*", output="?column?"),
    above("similar_to", "x SIMILAR TO 'a(b|c)%' ESCAPE '!'",
          "whether a text is of a form, by `%`, `_` and the signs of regular expressions",
          "text, pattern -> boolean; text, pattern, flags -> boolean", _similar, names=(),
          syntax=binary(exp.SimilarTo), symbol="SIMILAR TO", output="?column?",
          below="use LIKE"),
    above("regexp_like", "regexp_like(x, 'a+', 'i')", "as `~`, by a flag as `~*`", _ONE.format("boolean"), _matches),
    above("regexp_replace", "regexp_replace(x, '[0-9]+', '#', 'g')",
          "the first match, or by `g` each, replaced; `\\1` is a group",
          "text, pattern, format -> text; text, pattern, format, flags -> text", _replaced, grows=True),
    above("regexp_substr", "regexp_substr(x, '[0-9]+')", "the first match", _ONE.format("text"), _whole),
    above("substring_matching", "substring(x FROM '([0-9]+)')", "the first match, or its first group",
          "text, pattern -> text", _part, names=()),
    above("regexp_match", "regexp_match(x, '([a-z]+)([0-9]+)')", "an array of its groups, or of the first match",
          _ONE.format("texts"), _groups),
    above("regexp_split_to_array", "regexp_split_to_array(x, ' +')", "the parts of a text between matches",
          _ONE.format("texts"), _split),
    above("regexp_count", "regexp_count(x, '[0-9]+')", "how many matches there are",
          "text, pattern -> integer", _count),
    above("regexp_instr", "regexp_instr(x, '[0-9]+')", "where the first match begins, from 1; 0 for nowhere",
          "text, pattern -> integer", _place),
)  # fmt: skip
