"""Regular expressions and SIMILAR TO: chapter 9.7 of Postgres' manual, of constant patterns, in linear time."""

from __future__ import annotations

from sqlglot import exp

from ...types import BOOLEAN, Kind, SqlType
from ..row import Args, Function, Syntax, binary
from .formats import FormatError, constant
from .regular import Pattern, like_similar, read_pattern, replacement
from .signature import MOST_BYTES, above

__all__ = ["ROWS"]


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

_BELOW = (
    "people's rows read plain characters, . .* ^ $ and one choice (a|b); or join several x LIKE '…' by OR"
)

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
          syntax=(Syntax(exp.RegexpLike, read=("this", "expression")),), symbol="~", output="?column?",
          below=_BELOW),
    above("regexp_matches_no_case", "x ~* '^a.*z'", "the same, capital and small letters alike",
          "text, pattern -> boolean", _no_case, names=(),
          syntax=(Syntax(exp.RegexpILike, read=("this", "expression")),), symbol="~*", output="?column?",
          below=_BELOW),
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
