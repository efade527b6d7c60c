"""The forms that are not plain operators: one small function per kind of node, in one table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sqlglot import exp

from ..errors import Position, Refusal
from ..relation.expressions import FALSE, TRUE, Call, Expr, Literal
from ..relation.functions import FUNCTIONS
from ..relation.types import BOOLEAN, INTEGER, TEXT, Kind
from .aggregates import AGGREGATES, ORDERED
from .bind_aggregate import bind_aggregate, bind_anonymous, bind_filter, bind_grouping
from .bind_array import (
    bind_array,
    bind_cast,
    bind_contained,
    bind_element,
    bind_place,
    joined_arrays,
    refuse_unnest,
)
from .bind_expression import Binder, Condition, Form, call
from .bind_intervals import bind_operator, bind_overlaps, cut_in_zone
from .bind_json import bind_part, bind_path, parse_json
from .bind_lateral import row_parts, rows_compared
from .bind_lists import bind_equal, bind_order_of, bind_unequal, joined, quantified
from .bind_moments import at_time_zone, bind_extract, constant_moment, is_utc_name
from .bind_percentile import bind_alone, bind_within_group
from .bind_public_aggregate import bind_public_aggregate
from .bind_regex import regex_form
from .bind_subquery import bind_exists, bind_in_query, bind_scalar
from .bind_window import bind_window
from .comparison import compare_in
from .constants import coerce_literal
from .named_calls import bind_row
from .parameters import sample
from .public_aggregates import PUBLIC_AGGREGATES

__all__ = ["CONDITIONS", "FORMS"]


def _negated(node: exp.Expr, expr: Expr) -> Expr:
    return Call(BOOLEAN, "not", (expr,), position=expr.position) if node.args.get("negate") else expr


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
    if len(terms) == 1:
        return next(iter(terms))
    name = "and" if kind is exp.And else "or"
    return Call(BOOLEAN, name, tuple(sorted(terms, key=repr)), position=binder.position(node))


def _is(binder: Binder, node: exp.Expr) -> Expr:
    what, position = node.args["expression"], binder.position(node)
    if isinstance(what, exp.Null):
        value = binder.bind(node.args["this"])
        return _negated(node, Call(BOOLEAN, "is_null", (value,), position=position))
    if isinstance(what, exp.Boolean):
        name, truth = ("is_true", 1) if what.args["this"] else ("is_false", -1)
        return _negated(node, call(name, [binder.bind(node.args["this"], truth)], position))
    raise Refusal("IS takes NULL, TRUE or FALSE", sqlstate="42601", position=position)


def _not_distinct(binder: Binder, node: exp.Expr) -> Expr:
    args = [binder.bind(node.args["this"]), binder.bind(node.args["expression"])]
    same = call("is_not_distinct", args, binder.position(node))
    return Call(BOOLEAN, "not", (same,), position=same.position)


def _between(binder: Binder, node: exp.Expr) -> Expr:
    value, position = binder.bind(node.args["this"]), binder.position(node)
    low, high = binder.bind(node.args["low"]), binder.bind(node.args["high"])
    inside = _within(value, low, high, position)
    if node.args.get("symmetric"):
        either = sorted({inside, _within(value, high, low, position)}, key=repr)
        inside = Call(BOOLEAN, "or", tuple(either), position=position) if len(either) > 1 else inside
    return _negated(node, inside)


def _within(value: Expr, low: Expr, high: Expr, position: Position | None) -> Expr:
    ends = [call(name, [value, end], position, said="BETWEEN") for name, end in (("ge", low), ("le", high))]
    return Call(BOOLEAN, "and", tuple(sorted(ends, key=repr)), position=position)


def _in(binder: Binder, node: exp.Expr, truth: int) -> Expr:
    position = binder.position(node)
    if node.args.get("query") is not None:
        return _negated(node, bind_in_query(binder, node, -truth if node.args.get("negate") else truth))
    if not node.args.get("expressions"):
        raise Refusal("IN takes a list in parentheses", sqlstate="42601", position=position)
    rows = row_parts(node.args["this"])
    if rows is not None and len(rows) > 1:
        return _negated(node, _in_rows(binder, node, rows))
    items = [binder.bind(item) for item in node.args["expressions"]]
    if any(isinstance(item, exp.Subquery) for item in node.args["expressions"]):
        raise Refusal("IN takes a list of values", position=position, hint="write x = (SELECT …) OR x = b")
    if not all(isinstance(item, Literal) for item in items):
        value = binder.bind(node.args["this"])
        each = [call("eq", [value, item], position, said="IN") for item in items]
        return _negated(node, joined(each, position, is_any=True))
    bound = call("in", [binder.bind(node.args["this"]), *items], position, said="IN")
    assert isinstance(bound, Call)
    return _negated(node, compare_in(bound.args[0], list(bound.args[1:]), position))


def _in_rows(binder: Binder, node: exp.Expr, written: list[exp.Expr]) -> Expr:
    """Return `(a, b) IN ((1, 2), (3, 4))` as equalities joined by OR."""
    position, values = binder.position(node), [binder.bind(one) for one in written]
    terms: dict[Expr, None] = {}
    for item in node.args["expressions"]:
        parts = row_parts(item)
        if parts is None:
            raise Refusal("IN compares a row of values with rows", sqlstate="42883", position=position)
        terms[rows_compared("eq", values, [binder.bind(part) for part in parts], position)] = None
    if len(terms) == 1:
        return next(iter(terms))
    return Call(BOOLEAN, "or", tuple(sorted(terms, key=repr)), position=position)


def _like(binder: Binder, node: exp.Expr, escape: str | None = None) -> Expr:
    value, position = binder.bind(node.args["this"]), binder.position(node)
    return _each_pattern(binder, node, lambda pattern: _alike(value, pattern, position, escape))


def _each_pattern(binder: Binder, node: exp.Expr, alike: Callable[[Expr], Expr]) -> Expr:
    """Return x LIKE a pattern, or ANY or ALL of a list of them."""
    listed = quantified(binder, node.args["expression"])
    if listed is None:
        return _negated(node, alike(binder.bind(node.args["expression"])))
    is_any, items = listed
    if not isinstance(items, list):
        raise Refusal(
            "LIKE ANY and LIKE ALL take a list that is written out", sqlstate="PV202", position=binder.position(node),
            hint="write x LIKE ANY (ARRAY['a%', 'b%']), or EXISTS (SELECT 1 FROM unnest(q) AS p WHERE x LIKE p)",
        )  # fmt: skip
    if not items:
        return FALSE if is_any else TRUE
    return joined([_negated(node, alike(item)) for item in items], binder.position(node), is_any=is_any)


def _ilike(binder: Binder, node: exp.Expr, escape: str | None = None) -> Expr:
    """x ILIKE 'A%' as lower(x) LIKE 'a%': what it is for a pattern whose letters have but one small form."""
    return _each_pattern(
        binder, node, lambda pattern: _lower_alike(binder, node, sample(pattern, TEXT, ""), escape)
    )


def _lower_alike(binder: Binder, node: exp.Expr, pattern: Expr, escape: str | None) -> Expr:
    position = binder.position(node)
    text = pattern.value if isinstance(pattern, Literal) else None
    if isinstance(text, str) and not text.isascii():
        raise Refusal(
            "ILIKE takes a pattern of ASCII letters", sqlstate="PV202", position=position,
            hint="write x LIKE '…' for each spelling, joined by OR",
        )  # fmt: skip
    if isinstance(pattern, Literal) and isinstance(text, str):
        pattern = replace(pattern, value=text.lower())
    elif not isinstance(pattern, Literal):
        pattern = call("lower", [pattern], position, said="ILIKE")
    value = call("lower", [binder.bind(node.args["this"])], position, said="ILIKE")
    return _alike(value, pattern, position, escape.lower() if escape else escape)


def _alike(value: Expr, given: Expr, position: Position | None, escape: str | None) -> Expr:
    pattern = sample(given, TEXT, "")
    escape = "\\" if escape is None else escape
    if not isinstance(pattern, Literal) or not isinstance(pattern.value, str):
        return call("like_computed", [value, pattern, Literal(TEXT, escape)], position, said="LIKE")
    if pattern.value.count("%") + pattern.value.count("_") > 8 or len(pattern.value) > 200:
        raise Refusal(
            "this LIKE pattern has too many wildcards", sqlstate="PV202", position=position, hint="8 at most"
        )
    bare = pattern.value.replace(escape * 2, "") if escape else pattern.value
    if escape and bare.endswith(escape):
        raise Refusal("the LIKE pattern ends in its escape character", sqlstate="22023", position=position)
    args = [value, pattern, Literal(TEXT, escape)]
    return call("like", args, position, said="LIKE")


def _regex_like(binder: Binder, node: exp.Expr, pattern: Literal) -> Expr:
    return _alike(binder.bind(node.args["this"]), pattern, binder.position(node), None)


def _regex_ilike(binder: Binder, node: exp.Expr, pattern: Literal) -> Expr:
    return _lower_alike(binder, node, pattern, None)


def _escape(binder: Binder, node: exp.Expr) -> Expr:
    like, character = node.args["this"], node.args["expression"]
    if isinstance(like, exp.SimilarTo):
        args = [binder.bind(like.args["this"]), binder.bind(like.args["expression"]), binder.bind(character)]
        return bind_row(binder, node, "SIMILAR TO", [FUNCTIONS["similar_to"]], args)
    text = str(character.args.get("this", "")) if isinstance(character, exp.Literal) else "  "
    is_like = isinstance(like, (exp.Like, exp.ILike))
    if not is_like or len(text) > 1 or not text.isascii() or text == "'":
        raise Refusal(
            "ESCAPE takes one character after LIKE", sqlstate="42601", position=binder.position(node)
        )
    return _ilike(binder, like, text) if isinstance(like, exp.ILike) else _like(binder, like, text)


def _case(binder: Binder, node: exp.Expr) -> Expr:
    subject = node.args.get("this")
    args: list[Expr] = []
    for branch in node.args["ifs"]:
        condition = branch.args["this"]
        if subject is None:
            args.append(binder.bind_boolean(condition, "WHEN"))
        else:
            args.append(call("eq", [binder.bind(subject), binder.bind(condition)], binder.position(node)))
        args.append(binder.bind(branch.args["true"]))
    default = node.args.get("default")
    args.append(binder.bind(default) if default is not None else Literal(args[1].type, None))
    return call("case", args, binder.position(node), said="CASE")


def _digits(binder: Binder, node: exp.Expr) -> Expr:
    name = "round" if isinstance(node, exp.Round) else "trunc"
    args = [binder.bind(node.args["this"])]
    if node.args.get("decimals") is not None:
        digits = sample(coerce_literal(binder.bind(node.args["decimals"]), INTEGER), INTEGER, 0)
        if not isinstance(digits, Literal) or not isinstance(digits.value, int) or abs(digits.value) > 15:
            raise Refusal(
                f"{name} takes a literal number of digits, -15 to 15", position=binder.position(node)
            )
        args.append(digits)
    return call(name, args, binder.position(node))


def _logarithm(binder: Binder, node: exp.Expr) -> Expr:
    """log(x) of base 10, or log(b, x)"""
    args = [binder.bind(node.args["this"])]
    if node.args.get("expression") is None:
        return call("log", args, binder.position(node))
    args.append(binder.bind(node.args["expression"]))
    return bind_row(binder, node, "log", [FUNCTIONS["log_of"]], args)


def _trim(binder: Binder, node: exp.Expr) -> Expr:
    side = str(node.args.get("position") or "").upper()
    name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(side, "trim")
    characters = node.args.get("expression")
    if characters is not None:
        args = [binder.bind(node.args["this"]), binder.bind(characters)]
        named = "btrim" if name == "trim" else name
        return bind_row(binder, node, named, [FUNCTIONS[f"{named}_of"]], args)
    return call(name, [binder.bind(node.args["this"])], binder.position(node))


def _substring(binder: Binder, node: exp.Expr) -> Expr:
    """substring(x FROM start FOR length): a start before the first character is counted from there."""
    position = binder.position(node)
    parts = [node.args.get("start"), node.args.get("length")]
    given = [binder.bind(part) for part in parts if part is not None]
    if len(given) == 1 and given[0].type.kind is Kind.TEXT and parts[0] is not None:
        return bind_row(
            binder,
            node,
            "substring",
            [FUNCTIONS["substring_matching"]],
            [binder.bind(node.args["this"]), *given],
        )
    if not all(isinstance(arg, Literal) for arg in given):
        row = FUNCTIONS["substring_at"]
        return bind_row(binder, node, "substring", [row], [binder.bind(node.args["this"]), *given])
    start, length = (1 if part is None else _whole_of(binder, part) for part in parts)
    if length < 0:
        raise Refusal("a substring's length is not negative", sqlstate="22023", position=position)
    args = [binder.bind(node.args["this"]), Literal(INTEGER, max(start, 1))]
    if parts[1] is not None:
        args.append(Literal(INTEGER, max(length + min(start, 1) - 1, 0)))
    return call("substr", args, position)


def _matching(binder: Binder, node: exp.Expr) -> Expr:
    """x ~ pattern, x ~* pattern, x SIMILAR TO pattern"""
    names: dict[type[exp.Expr], tuple[str, str]] = {
        exp.RegexpLike: ("~", "regexp_matches"),
        exp.RegexpILike: ("~*", "regexp_matches_no_case"),
        exp.SimilarTo: ("SIMILAR TO", "similar_to"),
    }
    said, name = names[type(node)]
    args = [binder.bind(node.args["this"]), binder.bind(node.args["expression"])]
    if name == "regexp_matches" and args[1].type.kind is Kind.TEXT and not isinstance(args[1], Literal):
        return call("regexp_computed", args, binder.position(node), said=said)
    return bind_row(binder, node, said, [FUNCTIONS[name]], args)


def _overlay(binder: Binder, node: exp.Expr) -> Expr:
    """overlay(x PLACING y FROM start FOR length)"""
    parts = [node.args.get(name) for name in ("this", "expression", "from_", "for_")]
    args = [binder.bind(part) for part in parts if isinstance(part, exp.Expr)]
    return bind_row(binder, node, "overlay", [FUNCTIONS["overlay"]], args)


def _cut(binder: Binder, node: exp.Expr) -> Expr:
    """date_trunc(unit, x), and by the clocks of a zone."""
    cut, zone = binder.part_of_date(node), node.args.get("zone")
    is_utc = isinstance(zone, exp.Literal) and is_utc_name(str(zone.args["this"]))
    return cut if zone is None or is_utc else cut_in_zone(binder, node, cut, zone)


def _whole_of(binder: Binder, node: exp.Expr) -> int:
    arg = sample(coerce_literal(binder.bind(node), INTEGER), INTEGER, 1)
    if not isinstance(arg, Literal) or not isinstance(arg.value, int) or not abs(arg.value) < 2**31:
        raise Refusal("substring takes literal numbers", sqlstate="PV202", position=binder.position(node))
    return arg.value


def _join_texts(binder: Binder, node: exp.Expr) -> Expr:
    args = [binder.bind(node.args["this"]), binder.bind(node.args["expression"])]
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
    exp.Is: _is, exp.NullSafeNEQ: _not_distinct, exp.Between: _between,
    exp.StrToDate: constant_moment, exp.StrToTime: constant_moment, exp.AtTimeZone: at_time_zone,
    exp.RegexpLike: regex_form(_regex_like, _matching),
    exp.RegexpILike: regex_form(_regex_ilike, _matching, folds_case=True),
    exp.EQ: bind_equal, exp.NEQ: bind_unequal, **dict.fromkeys((exp.LT, exp.LTE, exp.GT, exp.GTE), bind_order_of),
    exp.ILike: _ilike,
    exp.Like: _like, exp.Escape: _escape, exp.Case: _case, exp.Round: _digits,
    exp.Trunc: _digits, exp.Trim: _trim, exp.Overlay: _overlay,
    exp.SimilarTo: _matching,
    exp.Log: _logarithm, exp.Overlaps: bind_overlaps,
    **dict.fromkeys((exp.Add, exp.Sub, exp.Mul), bind_operator), exp.Substring: _substring,
    exp.DPipe: _join_texts, exp.Extract: bind_extract,
    exp.TimestampTrunc: _cut, exp.Cast: bind_cast, exp.CurrentDate: Binder.moment,
    exp.CurrentTimestamp: Binder.moment, exp.Localtimestamp: Binder.moment, exp.Subquery: bind_scalar,
    exp.Exists: bind_exists, exp.Anonymous: bind_anonymous, exp.Filter: bind_filter,
    exp.Grouping: bind_grouping, exp.Window: bind_window,
    exp.WithinGroup: bind_within_group, exp.Array: bind_array, exp.Explode: refuse_unnest,
    exp.ExplodingGenerateSeries: refuse_unnest,
    exp.JSONExtract: bind_part, exp.JSONExtractScalar: bind_part, exp.JSONBExtract: bind_path,
    exp.JSONBExtractScalar: bind_path, exp.ParseJSON: parse_json,
    exp.ArrayContainedBy: bind_contained, exp.Bracket: bind_element, exp.ArrayPosition: bind_place,
    **dict.fromkeys(AGGREGATES, bind_aggregate), **dict.fromkeys(PUBLIC_AGGREGATES, bind_public_aggregate),
    **dict.fromkeys(ORDERED, bind_alone),
}  # fmt: skip
"""Node kind -> the function that binds it."""
