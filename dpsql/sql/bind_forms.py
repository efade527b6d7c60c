"""The forms that are not plain operators: one small function per kind of node, in one table."""

from __future__ import annotations

from sqlglot import exp

from ..errors import Refusal
from ..relation.expressions import Call, Expr, Literal
from ..relation.functions import FUNCTIONS
from ..relation.types import BOOLEAN, INTEGER, TEXT, Kind
from .aggregates import AGGREGATES, ORDERED, PUBLIC_AGGREGATES
from .bind_aggregate import (
    bind_aggregate,
    bind_alone,
    bind_filter,
    bind_grouping,
    bind_public_aggregate,
    bind_within_group,
)
from .bind_array import (
    bind_array,
    bind_cast,
    bind_element,
    bind_place,
    joined_arrays,
    refuse_unnest,
)
from .bind_calls import bind_anonymous
from .bind_expression import Binder, Condition, Form, call, negated
from .bind_json import bind_part, bind_path, parse_json
from .bind_lists import bind_comparison, is_in, joined, list_items, row_parts, rows_compared
from .bind_moments import at_time_zone, bind_cut, bind_extract, bind_operator, bind_overlaps, constant_moment
from .bind_patterns import bind_escape, bind_like, bind_regex
from .bind_subquery import bind_exists, bind_in_query, bind_scalar
from .bind_window import bind_window
from .constants import coerce_literal
from .literals import sample
from .named_calls import bind_row

__all__ = ["CONDITIONS", "FORMS"]


def _logic(binder: Binder, node: exp.Expr, truth: int) -> Expr:
    """AND and OR, flattened, each term once, in stable order."""
    kind = type(node)
    terms: dict[Expr, None] = {}
    stack = [node]
    while stack:
        top = stack.pop()
        inner = top.args["this"] if isinstance(top, exp.Paren) else top
        if isinstance(inner, kind):
            stack += [inner.args["expression"], inner.args["this"]]
        else:
            terms[binder.bind_boolean(top, "each side of AND and OR", truth)] = None
    return joined(list(terms), binder.position(node), is_any=kind is exp.Or)


def _is(binder: Binder, node: exp.Expr) -> Expr:
    what, position = node.args["expression"], binder.position(node)
    if isinstance(what, exp.Null):
        value = binder.bind(node.args["this"])
        return negated(node, Call(BOOLEAN, "is_null", (value,), position=position))
    if isinstance(what, exp.Boolean):
        name, truth = ("is_true", 1) if what.args["this"] else ("is_false", -1)
        return negated(node, call(name, [binder.bind(node.args["this"], truth)], position))
    raise Refusal("IS takes NULL, TRUE or FALSE", sqlstate="42601", position=position)


def _in(binder: Binder, node: exp.Expr, truth: int) -> Expr:
    position = binder.position(node)
    if node.args.get("query") is not None:
        return negated(node, bind_in_query(binder, node, -truth if node.args.get("negate") else truth))
    if not node.args.get("expressions"):
        raise Refusal("IN takes a list in parentheses", sqlstate="42601", position=position)
    rows = row_parts(node.args["this"])
    if rows is not None and len(rows) > 1:
        return negated(node, _in_rows(binder, node, rows))
    (first, *more) = node.args["expressions"]
    if isinstance(first, exp.Values) and not more:
        items = list_items(binder, first)
    else:
        items = [binder.bind(item) for item in node.args["expressions"]]
    if any(isinstance(item, exp.Subquery) for item in node.args["expressions"]):
        raise Refusal("IN takes a list of values", position=position, hint="write x = (SELECT …) OR x = b")
    if not all(item.is_constant for item in items):
        value = binder.repeated(node.args["this"], len(items))
        each = [call("eq", [value, item], position, said="IN") for item in items]
        return negated(node, joined(each, position, is_any=True))
    return negated(node, is_in(binder.bind(node.args["this"]), items, position, "IN"))


def _in_rows(binder: Binder, node: exp.Expr, written: list[exp.Expr]) -> Expr:
    """Return `(a, b) IN ((1, 2), (3, 4))` as equalities joined by OR."""
    position, often = binder.position(node), len(node.args["expressions"])
    values = [binder.repeated(one, often) for one in written]
    each: list[Expr] = []
    for item in node.args["expressions"]:
        parts = row_parts(item)
        if parts is None:
            raise Refusal("IN compares a row of values with rows", sqlstate="42883", position=position)
        each.append(rows_compared("eq", values, [binder.bind(part) for part in parts], position))
    return joined(each, position, is_any=True)


def _case(binder: Binder, node: exp.Expr) -> Expr:
    subject, args = node.args.get("this"), list[Expr]()
    value = None if subject is None else binder.repeated(subject, len(node.args["ifs"]))
    for branch in node.args["ifs"]:
        condition = branch.args["this"]
        if value is None:
            args.append(binder.bind_boolean(condition, "WHEN"))
        else:
            args.append(
                call(
                    "eq",
                    [value, binder.bind(condition)],
                    binder.position(node),
                )
            )
        args.append(binder.bind(branch.args["true"]))
    default = node.args.get("default")
    args.append(binder.bind(default) if default is not None else Literal(args[1].type, None))
    return call("case", args, binder.position(node), said="CASE")


def _digits(binder: Binder, node: exp.Expr) -> Expr:
    name = "round" if isinstance(node, exp.Round) else "trunc"
    args = [binder.bind(node.args["this"])]
    if node.args.get("decimals") is not None:
        digits = sample(coerce_literal(binder.bind(node.args["decimals"]), INTEGER), INTEGER, 0)
        if not isinstance(digits.constant, int) or abs(digits.constant) > 15:
            raise Refusal(
                f"{name} takes a literal number of digits, -15 to 15", position=binder.position(node)
            )
        args.append(digits)
    return call(name, args, binder.position(node))


def _logarithm(binder: Binder, node: exp.Expr) -> Expr:
    """log(x) of base 10, or log(b, x)"""
    args = [binder.bind(part) for name in ("this", "expression") if (part := node.args.get(name)) is not None]
    return (
        binder.call("log", args, node)
        if len(args) == 1
        else bind_row(binder, node, "log", [FUNCTIONS["log_of"]], args)
    )


def _trim(binder: Binder, node: exp.Expr) -> Expr:
    args = [binder.bind(part) for name in ("this", "expression") if (part := node.args.get(name)) is not None]
    name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(
        str(node.args.get("position") or "").upper(), "btrim"
    )
    if len(args) > 1:
        return bind_row(binder, node, name, [FUNCTIONS[f"{name}_of"]], args)
    return binder.call("trim" if name == "btrim" else name, args, node)


def _substring(binder: Binder, node: exp.Expr) -> Expr:
    """substring(x FROM start FOR length): a start before the first character is counted from there."""
    parts = [node.args.get("start"), node.args.get("length")]
    given = [binder.bind(part) for part in parts if part is not None]
    is_matched = len(given) == 1 and given[0].type.kind is Kind.TEXT and parts[0] is not None
    if is_matched or not all(arg.is_constant for arg in given):
        row = FUNCTIONS["substring_matching" if is_matched else "substring_at"]
        return bind_row(binder, node, "substring", [row], [binder.bind(node.args["this"]), *given])
    start, length = (1 if part is None else _whole_of(binder, part) for part in parts)
    if length < 0:
        raise Refusal(
            "a substring's length is not negative", sqlstate="22023", position=binder.position(node)
        )
    args = [binder.bind(node.args["this"]), Literal(INTEGER, max(start, 1))]
    if parts[1] is not None:
        args.append(Literal(INTEGER, max(length + min(start, 1) - 1, 0)))
    return binder.call("substr", args, node)


def _whole_of(binder: Binder, node: exp.Expr) -> int:
    arg = sample(coerce_literal(binder.bind(node), INTEGER), INTEGER, 1)
    if not isinstance(arg.constant, int) or not abs(arg.constant) < 2**31:
        raise Refusal("substring takes literal numbers", sqlstate="PV202", position=binder.position(node))
    return arg.constant


def _join_texts(binder: Binder, node: exp.Expr) -> Expr:
    args = [sample(binder.bind(node.args[side]), TEXT, "1") for side in ("this", "expression")]
    if any(arg.type.kind is Kind.ARRAY for arg in args):
        return joined_arrays(binder, node, args)
    if not any(arg.type.kind is Kind.TEXT for arg in args):
        is_json = any(arg.type.is_json for arg in args)
        raise Refusal(
            f"|| joins texts and arrays, not ({args[0].type}, {args[1].type})", sqlstate="42883",
            position=binder.position(node),
            hint="build it anew: jsonb_build_object('a', j -> 'a')" if is_json else "cast one side: x::text || y",
        )  # fmt: skip
    return call("concat_op", args, binder.position(node), said="||")


CONDITIONS: dict[type[exp.Expr], Condition] = {exp.And: _logic, exp.Or: _logic, exp.In: _in}
"""Node kind -> the function that binds it, by what is asked of its truth."""

FORMS: dict[type[exp.Expr], Form] = {
    exp.Literal: Binder.literal, exp.RawString: Binder.literal, exp.ByteString: Binder.escaped,
    exp.Boolean: Binder.literal, exp.Null: Binder.literal,
    exp.Parameter: Binder.parameter, exp.Interval: Binder.interval,
    exp.Is: _is,
    exp.StrToDate: constant_moment, exp.StrToTime: constant_moment, exp.AtTimeZone: at_time_zone,
    **dict.fromkeys((exp.RegexpLike, exp.RegexpILike), bind_regex),
    **dict.fromkeys((exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE), bind_comparison),
    **dict.fromkeys((exp.Like, exp.ILike), bind_like), exp.Escape: bind_escape, exp.Case: _case, exp.Round: _digits,
    exp.Trunc: _digits, exp.Trim: _trim,
    exp.Log: _logarithm, exp.Overlaps: bind_overlaps,
    **dict.fromkeys((exp.Add, exp.Sub, exp.Mul), bind_operator), exp.Substring: _substring,
    exp.DPipe: _join_texts, exp.Extract: bind_extract,
    exp.TimestampTrunc: bind_cut, exp.Cast: bind_cast, exp.CurrentDate: Binder.moment,
    exp.CurrentTimestamp: Binder.moment, exp.Localtimestamp: Binder.moment, exp.Subquery: bind_scalar,
    exp.Exists: bind_exists, exp.Anonymous: bind_anonymous, exp.Filter: bind_filter,
    exp.Grouping: bind_grouping, exp.Window: bind_window,
    exp.WithinGroup: bind_within_group, exp.Array: bind_array, exp.Explode: refuse_unnest,
    exp.ExplodingGenerateSeries: refuse_unnest,
    exp.JSONExtract: bind_part, exp.JSONExtractScalar: bind_part, exp.JSONBExtract: bind_path,
    exp.JSONBExtractScalar: bind_path, exp.ParseJSON: parse_json,
    exp.Bracket: bind_element, exp.ArrayPosition: bind_place,
    **dict.fromkeys(AGGREGATES, bind_aggregate), **dict.fromkeys(PUBLIC_AGGREGATES, bind_public_aggregate),
    **dict.fromkeys(ORDERED, bind_alone),
}  # fmt: skip
"""Node kind -> the function that binds it."""
