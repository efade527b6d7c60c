"""Functions of texts that are called by name and run on people's rows too: rows of `above` with what is known there.

House rule: what a function could fail by is constant there (a separator, a place, a pattern), so that it is known to be
right before a row is read; `plan.backend_sql.private_forms` refuses what is not.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction

from ..calendar import calendar_ends
from ..expressions import Call
from ..facts import ONE, ZERO, Facts
from ..size_rules import SizeRule
from . import above
from .row import Function, IntervalRule, NullRule, any_null
from .texts import first_size

__all__ = ["ROWS"]


def _of_each(function: Callable[..., str]) -> Callable[[list[Facts], Call], Facts]:
    """Return the rule of a function of finitely many texts, and of constants: of finitely many texts."""

    def rule(args: list[Facts], call: Call) -> Facts:
        values, constants = args[0].values, [arg.constant for arg in call.args[1:] if arg.is_constant]
        if values is None or len(constants) < len(call.args) - 1 or None in constants:
            return Facts()
        made = [function(value, *constants) for value in values if isinstance(value, str)]
        return Facts(values=tuple(dict.fromkeys(made)))

    return rule


def _part(text: str, separator: str, place: int) -> str:
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
    "split_part": (_of_each(_part), first_size, any_null),
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


ROWS = tuple(_on_rows(row) for row in above.ROWS if row.name in _KNOWN)
