"""Comparisons and logic: what is true, false or NULL.

>>> means("gpa BETWEEN 1 AND 3", "gpa >= 1 AND gpa <= 3")
>>> means("gpa NOT BETWEEN SYMMETRIC 3 AND 1", "NOT (gpa >= 3 AND gpa <= 1 OR gpa >= 1 AND gpa <= 3)")
>>> means("name IS DISTINCT FROM major", "NOT name IS NOT DISTINCT FROM major")
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial

from sqlglot import exp

from ..calendar import DAY, calendar_ends
from ..expressions import Call
from ..facts import ONE, ZERO, Facts, grid_of, hull, size_as_text
from ..types import BOOLEAN, Kind, SqlType
from .row import Args, Function, Shorthand, Syntax, all_null, any_null, binary, common_type, never_null
from .texts import first_size, texts


def comparable(args: Args) -> SqlType | None:
    """Return BOOLEAN for arguments that can be compared with one another."""
    if any(arg.type.kind is Kind.OPAQUE and arg.type.engine is None for arg in args):
        return None  # nested types, collated text, …: equality is not that of the values, or may raise
    if any(arg.type.is_json for arg in args):
        return None  # two texts may be of one value
    return BOOLEAN if common_type([arg.type for arg in args]) is not None else None


def booleans(args: Args) -> SqlType | None:
    """Return BOOLEAN for arguments that are true, false or NULL."""
    return BOOLEAN if all(arg.type.kind in (Kind.BOOLEAN, Kind.NULL) for arg in args) else None


def _anything(args: Args) -> SqlType | None:
    return BOOLEAN


def _truth(args: list[Facts], call: Call) -> Facts:
    return Facts(ZERO, ONE, ONE, values=(False, True), declared=True)


def _compared(name: str, symbol: str, doc: str, node: type[exp.Expr]) -> Function:
    return Function(name, f"x {symbol} y", doc, comparable, _truth, binary(node), symbol=symbol)


def _between(node: exp.Expr) -> str:
    inside = "this >= low AND this <= high"
    return f"{inside} OR this >= high AND this <= low" if node.args.get("symmetric") else inside


_SIDES = ("this", "expression")

ROWS = (
    _compared("eq", "=", "equal", exp.EQ),
    _compared("ne", "<>", "not equal", exp.NEQ),
    _compared("lt", "<", "less", exp.LT),
    _compared("le", "<=", "less or equal", exp.LTE),
    _compared("gt", ">", "greater", exp.GT),
    _compared("ge", ">=", "greater or equal", exp.GTE),
    Function(
        "is_not_distinct", "x IS NOT DISTINCT FROM y", "equal, or both NULL", comparable, _truth,
        (*binary(exp.NullSafeEQ),
         Syntax(exp.NullSafeNEQ, _SIDES, means="NOT this IS NOT DISTINCT FROM expression")), null=never_null,
        symbol="IS NOT DISTINCT FROM",
    ),
    Function(
        "in", "x IN (1, 2)", "equal to one of a list", comparable, _truth,
        (Syntax(exp.In, read=("this", "expressions", "query", "negate")),),
    ),
    Function(
        "like", "x LIKE 'a%'", "of a form: `%` any text, `_` any character, `\\` or what `ESCAPE` says before "
        "either", texts(BOOLEAN, 2), _truth,
        (Syntax(exp.Like, read=(*_SIDES, "negate")), Syntax(exp.Escape, read=_SIDES)),
    ),
    Shorthand(
        "x ILIKE 'a%'", "of a form, capital and small ASCII letters alike: `lower(x) LIKE 'a%'`",
        (Syntax(exp.ILike, read=(*_SIDES, "negate")),),
    ),
    Shorthand(
        "x ~ '^(a|b)'", "LIKE as a regular expression: characters, `.`, `.*`, `^` and `$` at the ends, one choice; "
        "`~*`: ILIKE",
        (),
    ),
    Shorthand(
        "x = ANY ('{1,2}')", "equal to one of a list: `ARRAY[1, 2]`, its text, a parameter; `ALL`, `<>`, `<`, "
        "`LIKE` and so on too", (Syntax(exp.Any, read=("this",)), Syntax(exp.All, read=("this",))),
    ),
    Function(
        "is_null", "x IS NULL", "without a value", _anything, _truth,
        (Syntax(exp.Is, read=(*_SIDES, "negate")),), null=never_null, above="({a} IS NULL)",
    ),
    Function("is_true", "x IS TRUE", "true, and not NULL", booleans, _truth, null=never_null, above="({a} IS TRUE)"),
    Function(
        "is_false", "x IS FALSE", "false, and not NULL", booleans, _truth, null=never_null,
        above="({a} IS FALSE)",
    ),
    Function("and", "x AND y", "both", booleans, _truth, (Syntax(exp.And, read=_SIDES),)),
    Function("or", "x OR y", "one of them", booleans, _truth, (Syntax(exp.Or, read=_SIDES),)),
    Function("not", "NOT x", "the opposite", booleans, _truth, (Syntax(exp.Not, read=("this",)),), above="(NOT {a})"),
    Shorthand(
        "x BETWEEN y AND z", "from `y` to `z`, both included; `SYMMETRIC` in either order",
        (Syntax(exp.Between, ("this", "low", "high"), ("negate", "symmetric"), _between, "BETWEEN"),),
    ),
)  # fmt: skip


# --- functions whose value is one of their arguments --------------------------------------------------------


def _common(args: Args) -> SqlType | None:
    return common_type([arg.type for arg in args])


def _compared_type(args: Args) -> SqlType | None:
    return None if any(arg.type.is_json for arg in args) else _common(args)


def _case_type(args: Args) -> SqlType | None:
    return _common((*args[1:-1:2], args[-1])) if booleans(args[0:-1:2]) else None


def _first_type(args: Args) -> SqlType | None:
    return args[0].type if comparable(args) else None


def _branches(args: list[Facts]) -> list[Facts]:
    return [*args[1:-1:2], args[-1]]


def _case(args: list[Facts], call: Call) -> Facts:
    return hull(_branches(args))


def _any_of(args: list[Facts], call: Call) -> Facts:
    return hull(args)


def _extreme(is_greatest: bool, args: list[Facts], call: Call) -> Facts:
    """GREATEST and LEAST skip NULL: an argument that is never NULL holds the result on its side.

    Not for moments: a choice between them is clamped as a whole when both of its ends are known, and
    its arguments are not.
    """
    whole = replace(hull(args), values=None)
    if call.type.is_temporal:
        return whole
    certain = [arg for arg in args if not arg.nullable]
    if is_greatest:
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

CHOICES = (
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
        size=first_size, null=lambda args, call: True, above="CASE WHEN v.a = v.b THEN NULL ELSE v.a END",
    ),
    Function(
        "greatest", "greatest(x, y, …)", "the greatest that is not NULL", _compared_type, partial(_extreme, True),
        (Syntax(exp.Greatest, _LIST, _SKIPPING),), size=_largest, null=all_null,
    ),
    Function(
        "least", "least(x, y, …)", "the least that is not NULL", _compared_type, partial(_extreme, False),
        (Syntax(exp.Least, _LIST, _SKIPPING),), size=_largest, null=all_null,
    ),
)  # fmt: skip


# --- casts: the one function whose type is said by the call itself ------------------------------------------


def _type(args: Args) -> SqlType | None:
    raise AssertionError("casts carry their type")


def _is_between_moments(call: Call) -> bool:
    return {call.args[0].type.kind, call.type.kind} == {Kind.DATE, Kind.TIMESTAMP}


def _moment(a: Facts, call: Call) -> Facts:
    if call.type.kind is Kind.TIMESTAMP:
        lo = None if a.lo is None else a.lo * DAY
        hi = None if a.hi is None else a.hi * DAY
        return Facts(lo, hi, ONE, declared=a.declared)
    if a.lo is None or a.hi is None:
        return Facts(grid=ONE)
    return Facts(Fraction(a.lo // DAY), Fraction(a.hi // DAY), ONE, declared=a.declared)


INTEGER_DIGITS, REAL_DIGITS = 18, 15
"""Most digits of a whole number that is read of people's texts; before the point, and after it, of any other."""


def _numeral(target: SqlType) -> Facts:
    """Return the facts of a number that is read of a text; what is none, or does not fit, is NULL."""
    if not target.is_integer:
        most = Fraction(10) ** REAL_DIGITS
        return Facts(-most, most)
    bits = {Kind.SMALLINT: 15, Kind.INTEGER: 31}.get(target.kind)
    most = Fraction(10) ** INTEGER_DIGITS if bits is None else Fraction(2**bits)
    return Facts(1 - most, most - 1, ONE)


def _cast(args: list[Facts], call: Call) -> Facts:
    a, source, target = args[0], call.args[0].type, call.type
    if _is_between_moments(call):
        return _moment(a, call)
    if source.kind is Kind.TEXT and target.is_temporal:
        first, last = calendar_ends(target)
        return Facts(Fraction(first), Fraction(last), ONE)
    if source.kind is Kind.TEXT and target.is_number:
        return _numeral(target)
    if target.is_integer or (target.kind is Kind.NUMERIC and target.scale is not None):
        step = grid_of(target)
        assert step is not None
        if a.lo is None or a.hi is None:
            return Facts(grid=step)
        lo, hi = math.floor(a.lo / step) * step, math.ceil(a.hi / step) * step
        exact = a.grid is not None and (a.grid / step).denominator == 1
        values = a.values if exact else None
        if source.kind is Kind.BOOLEAN:
            values = None if a.values is None else tuple(Fraction(bool(value)) for value in a.values)
        return Facts(a.lo if exact else lo, a.hi if exact else hi, step, values=values, declared=a.declared)
    if target.kind is Kind.TEXT:
        return Facts(values=a.values if source.kind is Kind.TEXT else None)
    return a


def _size(args: list[Facts], call: Call) -> int:
    return size_as_text(call.args[0], args[0])


def _null(args: list[Facts], call: Call) -> bool:
    if call.args[0].type.kind is Kind.TEXT and (call.type.is_number or call.type.is_temporal):
        return True
    return any_null(args, call) or (_is_between_moments(call) and not args[0].bounded)


CASTS = (
    Function(
        "cast", "CAST(x AS type)", "another type, `x::type`; "
        "people's texts also as numbers or moments; `varchar(n)` cuts", _type, _cast,
        (Syntax(exp.Cast, read=("this", "to")),), size=_size, null=_null,
    ),
)  # fmt: skip
