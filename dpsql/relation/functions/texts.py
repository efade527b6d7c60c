"""Functions of texts; each that makes one says how long it can be (the rules of `facts`).

Last come those that are called by name and run on people's rows too: rows of `above` with what is known there.

House rule: what such a function could fail by is constant there (a separator, a place, a pattern), so that it is known
to be right before a row is read; `plan.backend_sql.private_forms` refuses what is not.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial

from sqlglot import exp

from ..calendar import calendar_ends
from ..expressions import Call
from ..facts import LETTER_GROWTH, ONE, ZERO, Facts, SizeRule, size_as_text
from ..types import INTEGER, TEXT, Kind, SqlType
from . import above
from .row import Args, Function, IntervalRule, NullRule, Shorthand, Syntax, TypeRule, any_null, binary, unary


def texts(result: SqlType, count: int) -> TypeRule:
    """Return the rule of a function whose first arguments are texts."""

    def resolve(args: Args) -> SqlType | None:
        return result if all(arg.type.kind in (Kind.TEXT, Kind.NULL) for arg in args[:count]) else None

    return resolve


def _text_integers(args: Args) -> SqlType | None:
    if args[0].type.kind is not Kind.TEXT or not all(arg.type.is_integer for arg in args[1:]):
        return None
    return TEXT


def _concat(args: Args) -> SqlType | None:
    return TEXT if all(a.type.kind not in (Kind.INTERVAL, Kind.OPAQUE, Kind.ARRAY) for a in args) else None


def _counted(args: list[Facts], call: Call) -> Facts:
    """A length or a position in a text, which is printed no longer than its size; '' is found in '' at 1."""
    return Facts(ZERO, Fraction(max(args[0].size, 1)), ONE, declared=True)


def _part_of_text(cut: Callable[..., str], of_digits: int, args: list[Facts], call: Call) -> Facts:
    """A part of finitely many ASCII texts is one of finitely many texts; `of_digits`: how many numbers say of an MD5
    which and how many digits."""
    values = args[0].values
    numbers = [number for arg in call.args[1:] if (number := arg.constant_as(int)) is not None]
    if call.args[0].calls("md5") and len(numbers) == of_digits:
        return _digits(numbers)
    if values is None or len(numbers) != len(call.args) - 1:
        return Facts()
    return Facts(
        values=tuple(dict.fromkeys(cut(value, *numbers) for value in values if isinstance(value, str)))
    )


def _middle(text: str, start: int, count: int | None = None) -> str:
    return text[max(start - 1, 0) : None if count is None else start - 1 + count]


def _digits(places: Sequence[int]) -> Facts:
    """Return the facts of one or two digits of an MD5, from a place or an end: there are 16 of each."""
    *start, count = places
    if not 1 <= count <= 2 or any(not 1 <= place <= 31 for place in start):
        return Facts()
    return Facts(values=tuple(map("".join, itertools.product("0123456789abcdef", repeat=count))))


def _letter_case(change: Callable[[str], str], args: list[Facts], call: Call) -> Facts:
    values = args[0].values
    if values is None or not all(isinstance(v, str) and v.isascii() for v in values):
        return Facts()
    return Facts(values=tuple(dict.fromkeys(change(str(value)) for value in values)))


def _joined(args: list[Facts], call: Call) -> int:
    return sum(size_as_text(arg, facts) for arg, facts in zip(call.args, args, strict=True))


def _letters(args: list[Facts], call: Call) -> int:
    return args[0].size * LETTER_GROWTH


def first_size(args: list[Facts], call: Call) -> int:
    """No longer than the first argument."""
    return args[0].size


def _part(args: list[Facts], call: Call) -> int:
    """Return the size of a part: the count, where it is a literal."""
    size, count = args[0].size, call.args[-1].constant_as(int)
    return count if count is not None and 0 <= count <= size else size


def _middle_size(args: list[Facts], call: Call) -> int:
    return args[0].size if len(call.args) == 2 else _part(args, call)


_TEXT = texts(TEXT, 1)
_A, _B = "CAST(({a}) AS VARCHAR)", "CAST(({b}) AS VARCHAR)"
_COUNT, _BLANK = "TRY_CAST(({b}) AS INTEGER)", "CAST((' ') AS VARCHAR)"
"""Postgres' trim takes blanks alone, DuckDB's of one argument other spaces too."""
_TRIM = (Syntax(exp.Trim, read=("this", "position", "expression")),)

ROWS: tuple[Function | Shorthand, ...] = (
    Function(
        "lower", "lower(x)", "in small letters", _TEXT, partial(_letter_case, str.lower), unary(exp.Lower), _letters,
        above="lower({a})",
    ),
    Function(
        "upper", "upper(x)", "in capital letters", _TEXT, partial(_letter_case, str.upper), unary(exp.Upper), _letters,
    ),
    Function(
        "trim", "trim(x)", "without blanks at both ends", _TEXT, None, _TRIM, first_size, output="btrim",
        above=f"trim({_A}, {_BLANK})",
    ),
    Function("ltrim", "ltrim(x)", "without blanks before it", _TEXT, size=first_size, above=f"ltrim({_A}, {_BLANK})"),
    Function("rtrim", "rtrim(x)", "without blanks after it", _TEXT, size=first_size, above=f"rtrim({_A}, {_BLANK})"),
    Function(
        "length", "length(x)", "how many characters a text has", texts(INTEGER, 1), _counted, unary(exp.Length),
        above="CAST(length({a}) AS INTEGER)",
    ),
    Function(
        "position", "position(x IN y)", "where `x` begins in `y`, from 1; 0 for nowhere", texts(INTEGER, 2), _counted,
        (Syntax(exp.StrPosition, ("this", "substr")),), above=f"CAST(strpos({_A}, {_B}) AS INTEGER)",
    ),
    Function(
        "substr", "substring(x FROM 2 FOR 3)", "characters from a place on, also `substr(x, 2, 3)`", _text_integers,
        partial(_part_of_text, _middle, 2), (Syntax(exp.Substring, read=("this", "start", "length")),), _middle_size,
        output="substring",
    ),
    Function(
        "left", "left(x, 3)", "the first characters", _text_integers,
        partial(_part_of_text, lambda text, count: text[:count], 1), binary(exp.Left), _part,
        above=f"left({_A}, {_COUNT})",
    ),
    Function(
        "right", "right(x, 3)", "the last characters", _text_integers,
        partial(_part_of_text, lambda text, count: text[max(len(text) - count, 0) :], 1), binary(exp.Right), _part,
        above=f"right({_A}, {_COUNT})",
    ),
    Function(
        "concat", "concat(x, y, …)", "joined, NULL as nothing", _concat, None,
        (Syntax(exp.Concat, ("expressions",), ("coalesce", "safe")),), _joined,
    ),
    Function(
        "concat_op", "x || y", "joined", _concat, None,
        (Syntax(exp.DPipe, read=("this", "expression", "safe")),), _joined, symbol="||",
    ),
    Shorthand(
        "concat_ws(', ', x, y)", "texts, integers and dates joined with a constant between, without the NULLs", (),
    ),
    Shorthand("starts_with(x, 'ab')", "whether a text begins with a constant: `position('ab' IN x) = 1`", ()),
    Shorthand(
        "lpad(x, 2, '0')", "filled up before it with one character, or cut, to a length up to 100; `rpad`: after it",
        (),
    ),
)  # fmt: skip


def _of_each(function: Callable[..., str]) -> Callable[[list[Facts], Call], Facts]:
    """Return the rule of a function of finitely many texts, and of constants: of finitely many texts."""

    def rule(args: list[Facts], call: Call) -> Facts:
        values, constants = args[0].values, [arg.constant for arg in call.args[1:] if arg.is_constant]
        if values is None or len(constants) < len(call.args) - 1 or None in constants:
            return Facts()
        made = [function(value, *constants) for value in values if isinstance(value, str)]
        return Facts(values=tuple(dict.fromkeys(made)))

    return rule


def _part_at(text: str, separator: str, place: int) -> str:
    parts = text.split(separator) if separator else [text]
    return parts[place - 1] if 0 < place <= len(parts) else ""


def _replaced(text: str, old: str, new: str) -> str:
    return text.replace(old, new) if old else text


def _hash(text: str) -> str:
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


def _grown(args: list[Facts], call: Call) -> int:
    """Each character replaced by what is written."""
    return args[0].size * max(1, args[2].size)


def _rewritten(args: list[Facts], call: Call) -> int:
    """Each character a match, replaced by what is written; a group that it names is no longer than the match."""
    new = call.args[2].constant_as(str) or ""
    return args[0].size * max(1, len(new))


def _truth(args: list[Facts], call: Call) -> Facts:
    return Facts(ZERO, ONE, ONE, values=(False, True), declared=True)


def _maybe(args: Sequence[Facts], call: Call) -> bool:
    """NULL where nothing is found."""
    return True


def _in_calendar(args: list[Facts], call: Call) -> Facts:
    first, last = calendar_ends(call.type)
    return Facts(Fraction(first), Fraction(last), ONE)


def _hash_size(args: list[Facts], call: Call) -> int:
    return 32


_Known = tuple[IntervalRule | None, SizeRule | None, NullRule]
_MATCHES: _Known = (_truth, None, any_null)
_KNOWN: dict[str, _Known] = {
    "split_part": (_of_each(_part_at), first_size, any_null),
    "replace": (_of_each(_replaced), _grown, any_null),
    "md5": (_of_each(_hash), _hash_size, any_null),
    **dict.fromkeys(("regexp_matches", "regexp_matches_no_case", "regexp_like", "similar_to"), _MATCHES),
    "regexp_replace": (None, _rewritten, any_null),
    **dict.fromkeys(("regexp_substr", "substring_matching"), (None, first_size, _maybe)),
    **dict.fromkeys(("to_date_of", "to_timestamp_by"), (_in_calendar, None, _maybe)),
}
"""Name -> its interval, the size of its text, and when it is NULL."""


def _on_rows(row: Function) -> Function:
    interval, size, null = _KNOWN[row.name]
    return replace(row, private=True, interval=interval, size=size, null=null)


NAMED = tuple(_on_rows(row) for row in above.ROWS if row.name in _KNOWN)
