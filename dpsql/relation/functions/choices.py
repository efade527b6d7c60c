"""Functions whose value is one of their arguments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from ..expressions import Call
from ..facts import Facts, hull
from ..types import SqlType
from .comparisons import booleans, comparable
from .row import Args, Function, Syntax, all_null, any_null, binary, common_type
from .texts import first_size

__all__ = ["ROWS"]


def _common(args: Args) -> SqlType | None:
    return common_type([arg.type for arg in args])


def _compared(args: Args) -> SqlType | None:
    return None if any(arg.type.is_json for arg in args) else _common(args)


def _case_type(args: Args) -> SqlType | None:
    return _common((*args[1:-1:2], args[-1])) if booleans(args[0:-1:2]) else None


def _first_type(args: Args) -> SqlType | None:
    return args[0].type if comparable(args) else None


def _branches(args: list[Facts]) -> list[Facts]:
    return [*args[1:-1:2], args[-1]]


def _case(args: list[Facts], call: Call) -> Facts:
    return hull(_branches(args), True)


def _any_of(args: list[Facts], call: Call) -> Facts:
    return hull(args, True)


def _extreme(args: list[Facts], call: Call) -> Facts:
    """GREATEST and LEAST skip NULL: an argument that is never NULL holds the result on its side.

    Not for moments: a choice between them is clamped as a whole when both of its ends are known, and
    its arguments are not.
    """
    whole = replace(hull(args, True), values=None)
    if call.type.is_temporal:
        return whole
    certain = [arg for arg in args if not arg.nullable]
    if call.function == "greatest":
        ends = [arg.lo for arg in certain if arg.lo is not None]
        return replace(whole, lo=max(ends)) if ends else whole
    ends = [arg.hi for arg in certain if arg.hi is not None]
    return replace(whole, hi=min(ends)) if ends else whole


def _first(args: list[Facts], call: Call) -> Facts:
    return args[0]


def _case_size(args: list[Facts], call: Call) -> int:
    return _largest(_branches(args), call)


def _largest(args: Sequence[Facts], call: Call) -> int:
    return max((arg.size for arg in args), default=0)


def _case_null(args: list[Facts], call: Call) -> bool:
    return any_null(_branches(args), call)


_LIST = ("this", "expressions")
_SKIPPING = ("ignore_nulls",)

ROWS = (
    Function(
        "case", "CASE WHEN x THEN y ELSE z END", "the first branch whose condition is true; also `CASE x WHEN …`",
        _case_type, _case,
        (Syntax(exp.Case, read=("this", "ifs", "default")), Syntax(exp.If, read=("this", "true"))),
        size=_case_size, null=_case_null,
    ),
    Function(
        "coalesce", "coalesce(x, y, …)", "the first that is not NULL", _common, _any_of,
        (Syntax(exp.Coalesce, _LIST),), size=_largest, null=all_null,
    ),
    Function(
        "nullif", "nullif(x, y)", "`x`, NULL where it equals `y`", _first_type, _first, binary(exp.Nullif),
        size=first_size, null=lambda args, call: True,
    ),
    Function(
        "greatest", "greatest(x, y, …)", "the greatest that is not NULL", _compared, _extreme,
        (Syntax(exp.Greatest, _LIST, _SKIPPING),), size=_largest, null=all_null,
    ),
    Function(
        "least", "least(x, y, …)", "the least that is not NULL", _compared, _extreme,
        (Syntax(exp.Least, _LIST, _SKIPPING),), size=_largest, null=all_null,
    ),
)  # fmt: skip
