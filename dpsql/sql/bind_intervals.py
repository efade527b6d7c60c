"""Moments above a release: operators of intervals that are computed, zones by name, fields of chapter 9.9.

What stands below a release too is left to the rows there: a constant interval beside a moment, the fields of
`calendar.EXTRACT_FIELDS`, the zone UTC.
"""

from __future__ import annotations

from sqlglot import exp

from ..errors import Refusal
from ..relation.calendar import DAY, TRUNC_UNITS
from ..relation.expressions import Call, Expr, Field, Literal
from ..relation.functions import FUNCTIONS
from ..relation.functions.zones import constant_in_zone
from ..relation.types import INTEGER, TEXT, TIMESTAMP, Kind
from ..relation.zones import zone_names
from .bind_expression import Binder, call, cast
from .bind_grains import bind_grain
from .constants import coerce_literal
from .named_calls import bind_row

__all__ = ["bind_age", "bind_interval", "bind_operator", "bind_overlaps", "bind_zone", "cut_in_zone"]

_SIGNS: dict[type[exp.Expr], tuple[str, str]] = {
    exp.Add: ("add", "+"),
    exp.Sub: ("sub", "-"),
    exp.Mul: ("mul", "*"),
}
_WITHIN_MINUTE = frozenset({"second", "milliseconds", "microseconds"})
"""Cut so fine, all clocks agree."""
_UNITS = ("years", "months", "weeks", "days", "hours", "mins", "secs")


def bind_operator(binder: Binder, node: exp.Expr) -> Expr:
    """Return x + y, x - y or x * y: of numbers and days as ever, of intervals by the rows above a release."""
    name, sign = _SIGNS[type(node)]
    left = binder.bind(node.args["this"])
    if name == "add" and (grain := bind_grain(binder, node, left)) is not None:
        return grain
    args = [left, binder.bind(node.args["expression"])]
    row, args = _row_of(name, args)
    if row is None:
        return call(name, args, binder.position(node), said=sign)
    return bind_row(binder, node, sign, [FUNCTIONS[row]], args)


def _row_of(name: str, args: list[Expr]) -> tuple[str | None, list[Expr]]:
    left, right = args
    if name == "mul":
        if right.type.kind is Kind.INTERVAL:
            left, right = right, left
        return ("interval_times" if left.type.kind is Kind.INTERVAL else None), [left, right]
    if left.type.kind is Kind.INTERVAL and right.type.kind is Kind.INTERVAL:
        return ("intervals_added" if name == "add" else "intervals_taken"), args
    if name == "add" and left.type.kind is Kind.INTERVAL and right.type.is_temporal:
        left, right = right, left
    if left.type.is_temporal and right.type.kind is Kind.INTERVAL and not isinstance(right, Literal):
        return ("interval_added" if name == "add" else "interval_taken"), [left, right]
    both = left.type.is_temporal and right.type.is_temporal
    if name == "sub" and both and Kind.TIMESTAMP in (left.type.kind, right.type.kind):
        return "moments_between", args
    return None, args


def bind_overlaps(binder: Binder, node: exp.Expr) -> Expr:
    """Return (x, y) OVERLAPS (z, w); the second of a pair may be an interval. Raises Refusal (42601)."""
    args: list[Expr] = []
    for side in (node.args["this"], node.args["expression"]):
        parts = side.args.get("expressions") or [] if isinstance(side, exp.Tuple) else []
        if len(parts) != 2:
            raise Refusal(
                "OVERLAPS takes two pairs of moments", sqlstate="42601", position=binder.position(node)
            )
        start, end = (coerce_literal(binder.bind(part), TIMESTAMP) for part in parts)
        if end.type.kind is Kind.INTERVAL:
            row, pair = _row_of("add", [start, end])
            end = (
                call("add", pair, None)
                if row is None
                else bind_row(binder, node, "+", [FUNCTIONS[row]], pair)
            )
        args += [start, end]
    return bind_row(binder, node, "OVERLAPS", [FUNCTIONS["overlaps"]], args)


def bind_age(binder: Binder, node: exp.Expr, args: list[Expr]) -> Expr:
    """Return age(x), from the statement's day, or age(x, y)."""
    if len(args) == 1:
        args = [Literal(TIMESTAMP, binder.context.moment() // DAY * DAY), *args]
    return bind_row(binder, node, "age", [FUNCTIONS["age"]], [coerce_literal(arg, TIMESTAMP) for arg in args])


def bind_interval(binder: Binder, node: exp.Expr) -> Expr:
    """Return make_interval(years, …) with its parts in order or by name. Raises Refusal (42883)."""
    given: dict[str, Expr] = {}
    for place, part in enumerate(node.args.get("expressions") or []):
        is_named = isinstance(part, exp.Kwarg)
        word = (
            str(part.args["this"].name).lower() if is_named else _UNITS[place] if place < len(_UNITS) else ""
        )
        if word not in _UNITS or word in given:
            raise Refusal(
                "make_interval takes " + ", ".join(_UNITS), sqlstate="42883", position=binder.position(node),
                hint="make_interval(days => 10, hours => 2)",
            )  # fmt: skip
        given[word] = binder.bind(part.args["expression"] if is_named else part)
    args = [given.get(word, Literal(INTEGER, 0)) for word in _UNITS]
    return bind_row(binder, node, "make_interval", [FUNCTIONS["make_interval"]], args)


# --- zones -----------------------------------------------------------------------------------------------


def _zone(binder: Binder, node: exp.Expr) -> Literal:
    """Return the name of a zone. Raises Refusal (22023): there is none of it, or it is an abbreviation."""
    zone = binder.bind(node)
    name = zone.value if isinstance(zone, Literal) else None
    known = {one.lower(): one for one in zone_names()}
    if not isinstance(name, str) or name.lower() not in known:
        raise Refusal(
            "a time zone is a constant 'UTC' or a name such as 'Europe/Berlin'", sqlstate="22023",
            position=binder.position(node), hint="abbreviations and offsets mean several things: name the place",
        )  # fmt: skip
    return Literal(TEXT, known[name.lower()])


def bind_zone(binder: Binder, node: exp.Expr) -> Expr:
    """Return x AT TIME ZONE 'Area/City': a moment to clocks or back, by what x is written as.

    Raises:
        Refusal: 42804 where the statement does not say whether x is a moment or what clocks show.
    """
    zone, value = _zone(binder, node.args["zone"]), binder.bind(node.args["this"])
    is_moment = _is_moment(binder, node.args["this"])
    if is_moment is None:
        raise Refusal(
            "AT TIME ZONE does not know whether this is a moment in UTC or what clocks in the zone show",
            sqlstate="42804", position=binder.position(node),
            hint="x::timestamptz AT TIME ZONE … are the clocks at a moment, x::timestamp AT TIME ZONE … is the moment",
        )  # fmt: skip
    name = "zone_clock" if is_moment else "zone_moment"
    return _in_zone(binder, node, name, [_timestamp(value), zone])


def _timestamp(value: Expr) -> Expr:
    """Return a date as its midnight, anything else as it is."""
    return cast(value, TIMESTAMP, value.position) if value.type.kind is Kind.DATE else value


_ZONED = frozenset({"timestamptz", "TIMESTAMP WITH TIME ZONE"})
_CONSTANT_MOMENTS = (exp.CurrentTimestamp, exp.UnixToTime, exp.StrToTime, exp.CurrentDate)


def _is_moment(binder: Binder, node: exp.Expr) -> bool | None:
    """Say whether an expression is a timestamptz, by its column's type or as it is written; None: that is not said."""
    if isinstance(node, exp.Paren):
        return _is_moment(binder, node.args["this"])
    if isinstance(node, exp.Column):
        return _is_moment_column(binder, binder.bind(node))
    if isinstance(node, exp.Cast):
        name = getattr(node.args["to"].args.get("this"), "name", "")
        return {"TIMESTAMPTZ": True, "TIMESTAMP": False, "DATE": True}.get(name)
    if isinstance(node, exp.AtTimeZone):
        inner = _is_moment(binder, node.args["this"])
        return None if inner is None else not inner
    if isinstance(node, exp.TimestampTrunc):
        return True if node.args.get("zone") is not None else _is_moment(binder, node.args["this"])
    if isinstance(node, (exp.Add, exp.Sub)) and isinstance(node.args["expression"], exp.Interval):
        return _is_moment(binder, node.args["this"])
    if isinstance(node, exp.Anonymous):
        return True if str(node.args["this"]).lower() == "now" else None
    return (
        True
        if isinstance(node, _CONSTANT_MOMENTS)
        else False
        if isinstance(node, exp.Localtimestamp)
        else None
    )


def _is_moment_column(binder: Binder, column: Expr) -> bool | None:
    if column.type.engine in _ZONED or column.type.kind is Kind.DATE:
        return True
    if not isinstance(column, Field) or column.type.kind is not Kind.TIMESTAMP:
        return None
    return False if binder.scope.is_of_table(column.index) else None


def cut_in_zone(binder: Binder, node: exp.Expr, cut: Expr, zone: exp.Expr) -> Expr:
    """Return date_trunc(unit, x, zone): cut by the zone's clocks. `cut`: date_trunc(unit, x)."""
    name = _zone(binder, zone)
    inner = _timestamp(coerce_literal(binder.bind(node.args["this"]), TIMESTAMP))
    unit = str(node.args["unit"].args["this"]).lower()
    if unit in TRUNC_UNITS:
        return _in_zone(binder, node, "zone_cut", [Literal(TEXT, unit), inner, name])
    if not isinstance(cut, Call) or unit in _WITHIN_MINUTE:
        return cut
    clock = _in_zone(binder, node, "zone_clock", [inner, name])
    moved = Call(cut.type, cut.function, (*cut.args[:-1], clock), position=cut.position)
    return _in_zone(binder, node, "zone_moment", [moved, name])


def _in_zone(binder: Binder, node: exp.Expr, name: str, args: list[Expr]) -> Expr:
    """Return the call of a row of zones; of a constant moment its value, which narrows."""
    said = "date_trunc" if name == "zone_cut" else "AT TIME ZONE"
    bound = bind_row(binder, node, said, [FUNCTIONS[name]], args)
    assert isinstance(bound, Call)
    value = constant_in_zone(bound)
    return bound if value is None else Literal(TIMESTAMP, value, position=bound.position)
