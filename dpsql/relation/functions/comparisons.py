"""Comparisons and logic: what is true, false or NULL.

>>> means("gpa BETWEEN 1 AND 3", "gpa >= 1 AND gpa <= 3")
>>> means("gpa NOT BETWEEN SYMMETRIC 3 AND 1", "NOT (gpa >= 3 AND gpa <= 1 OR gpa >= 1 AND gpa <= 3)")
>>> means("name IS DISTINCT FROM major", "NOT name IS NOT DISTINCT FROM major")
"""

from __future__ import annotations

from sqlglot import exp

from ..expressions import Call
from ..facts import ONE, ZERO, Facts
from ..types import BOOLEAN, Kind, SqlType
from .row import Args, Function, Shorthand, Syntax, binary, common_type, never_null
from .texts import texts

__all__ = ["ROWS", "booleans", "comparable"]


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
