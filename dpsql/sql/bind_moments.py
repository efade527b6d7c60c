"""Moments: operators of days and intervals, constants in words, fields, ages, bins of charts, and zones.

What stands on people's rows too is left to the rows there: a constant interval beside a moment, the fields of
`calendar.EXTRACT_FIELDS`, the zone UTC. All moments are in UTC (soundness.md 2.2), so a zone that is UTC changes
nothing; other zones by name, fields of chapter 9.9 and intervals that are computed are for what is released.

    >>> means("seen AT TIME ZONE 'UTC'", "seen::timestamp")
    >>> means("date_trunc('hour', seen) + INTERVAL '5 minutes' * floor(extract(minute FROM seen) / 5)",
    ...       "date_bin('5 minutes', seen, TIMESTAMP '2000-01-01')")
    >>> means("extract(year FROM age(born, DATE '2000-02-03'))",
    ...       "((((extract(year FROM born)::bigint * 100::bigint + extract(month FROM born)::bigint) * 100::bigint"
    ...       " + extract(day FROM born)::bigint) - 20000203::bigint) / 10000::bigint)::numeric")
    >>> means("seen - born::timestamp <= INTERVAL '1 month'",
    ...       "extract(epoch FROM seen) - extract(epoch FROM born::timestamp) <= 2592000::numeric")
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable
from fractions import Fraction

from sqlglot import exp

from ..errors import Refusal
from ..regex import regex
from ..relation.calendar import DAY, TRUNC_UNITS, age_of, calendar_ends, zone_names
from ..relation.expressions import MIRRORED, Call, Expr, Literal, Months
from ..relation.functions import FUNCTIONS
from ..relation.functions.moments import constant_in_zone
from ..relation.types import BOOLEAN, DATE, DOUBLE, INTERVAL, NUMERIC, TEXT, TIMESTAMP, Kind, SqlType
from .bind_expression import Binder, bind_row, call, cast
from .literals import bare, called, coerce_literal, folded, listed, sample, type_word

_SIGNS: dict[type[exp.Expr], tuple[str, str]] = {
    exp.Add: ("add", "+"),
    exp.Sub: ("sub", "-"),
    exp.Mul: ("mul", "*"),
}


def bind_operator(binder: Binder, node: exp.Expr) -> Expr:
    """Return x + y, x - y or x * y: of numbers and days as ever, of intervals by the rows above a release."""
    name, sign = _SIGNS[type(node)]
    left = binder.bind(node.args["this"])
    if name == "add" and (grain := _grain(binder, node, left)) is not None:
        return grain
    args = [left, binder.bind(node.args["expression"])]
    row, args = _row_of(name, args)
    if row is None:
        return binder.call(name, args, node, said=sign)
    if row in _OF_INTERVALS and all(arg.is_constant and arg.constant is not None for arg in args):
        return folded(Call(INTERVAL, row, tuple(args), position=binder.position(node)))
    return bind_row(binder, node, sign, [FUNCTIONS[row]], args)


_OF_INTERVALS = frozenset({"interval_times", "intervals_added", "intervals_taken"})


def _row_of(name: str, args: list[Expr]) -> tuple[str | None, list[Expr]]:
    left, right = args
    if name == "mul":
        if right.type.kind is Kind.INTERVAL:
            left, right = right, left
        if left.type.kind is not Kind.INTERVAL:
            return None, args
        return "interval_times", [left, sample(coerce_literal(right, DOUBLE), DOUBLE, Fraction(1))]
    if left.type.kind is Kind.INTERVAL and right.type.kind is Kind.INTERVAL:
        return ("intervals_added" if name == "add" else "intervals_taken"), args
    if name == "add" and left.type.kind is Kind.INTERVAL and right.type.is_temporal:
        left, right = right, left
    if left.type.is_temporal and right.type.kind is Kind.INTERVAL and not right.is_constant:
        return ("interval_added" if name == "add" else "interval_taken"), [left, right]
    both = left.type.is_temporal and right.type.is_temporal
    if name == "sub" and both and Kind.TIMESTAMP in (left.type.kind, right.type.kind):
        return "moments_between", args
    return None, args


def bind_overlaps(binder: Binder, node: exp.Expr) -> Expr:
    """Return (x, y) OVERLAPS (z, w); the second of a pair may be an interval. Raises Refusal (42601)."""
    args: list[Expr] = []
    for side in (node.args["this"], node.args["expression"]):
        parts = listed(side) if isinstance(side, exp.Tuple) else []
        if len(parts) != 2:
            raise binder.refusal(node, "42601", "OVERLAPS takes two pairs of moments")
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


_FIELDS = {"minute": ("hour", 60_000_000), "second": ("minute", 1_000_000)}
"""Field of extract -> the unit that it counts within, and its microseconds."""


def _grain(binder: Binder, node: exp.Expr, left: Expr) -> Expr | None:
    """Return the bins of minutes or seconds that charts write as a sum, as date_bin, which they are; None: it is none.

    The step divides the unit around it, so that bins counted from the unit's start are those counted from any such
    start. `left`: what the sum's left side is bound to.
    """
    right = bare(node.args["expression"])
    if not left.calls("date_trunc") or not isinstance(right, exp.Mul):
        return None
    floor = bare(right.args["expression"])
    quotient = bare(floor.args["this"]) if isinstance(floor, exp.Floor) else None
    part = bare(quotient.args["this"]) if isinstance(quotient, exp.Div) else None
    if not isinstance(part, exp.Extract) or quotient is None:
        return None
    unit, size = _FIELDS.get(binder.unit_word(part.args["this"], "extract"), ("", 0))
    step, count = binder.bind(right.args["this"]), binder.bind(quotient.args["expression"])
    each, number = step.constant_as(Months), count.constant_as(int)
    if each is None or number is None:
        return None
    if left.args[0] != Literal(left.args[0].type, unit) or left.args[1] != binder.bind(
        part.args["expression"]
    ):
        return None
    if count.type.kind is Kind.BOOLEAN or not 0 < number <= 60 or 60 % number:
        return None
    if each != Months(0, 0, number * size):
        return None
    sql = "date_bin(step, value, TIMESTAMP '2000-01-01')"
    return binder.meant(sql, node, {"step": step, "value": left.args[1]})


# --- constants in words ----------------------------------------------------------------------------------

_EPOCH = datetime.datetime(1970, 1, 1)
_READ = frozenset("YmdHMSf")
_WORDS = {"Y": "YYYY", "m": "MM", "d": "DD", "H": "HH24", "M": "MI", "S": "SS", "f": "US"}
"""What the parser has made of Postgres' words, back again."""
_DIRECTIVE = regex(r"%(.)")


_FROM_TEXT: dict[type[exp.Expr], tuple[str, SqlType, str]] = {
    exp.StrToDate: ("to_date", DATE, "to_date_of"),
    exp.StrToTime: ("to_timestamp", TIMESTAMP, "to_timestamp_by"),
}
"""Kind of node -> its function, what that makes of a constant, and the row of any other text."""


def constant_moment(binder: Binder, node: exp.Expr) -> Expr:
    """Return to_date(text, format) or to_timestamp(text, format) of constants.

    Raises:
        Refusal: PV202 for what is no constant, 22023 for a format or a text that is not read here.
    """
    position = binder.position(node)
    name, type_, row = _FROM_TEXT[type(node)]
    given = sample(binder.bind(node.args["this"]), TEXT, "1970-01-01")
    form, text = node.text("format"), given.constant_as(str)
    if not given.is_constant and given.type.kind is Kind.TEXT:
        written = _DIRECTIVE.sub(lambda code: _WORDS.get(code[1], code[0]), form)
        return bind_row(binder, node, name, [FUNCTIONS[row]], [given, Literal(TEXT, written)])
    if text is None:
        raise binder.refusal(
            node, "PV202", f"{name}() takes a constant text", "cast a column that holds ISO text: x::date"
        )
    directives = _DIRECTIVE.findall(form)
    plain = _DIRECTIVE.sub("", form)
    if "Y" not in directives or not set(directives) <= _READ or re.search(r"[A-Za-z0-9%]", plain):
        raise Refusal(
            f"{name}() does not read this format", sqlstate="22023", position=position,
            hint="formats of YYYY, MM, DD, HH24, MI, SS and US with signs between; or write DATE '2024-01-31'",
        )  # fmt: skip
    try:
        moment = datetime.datetime.strptime(text.strip(), form)
    except ValueError:
        raise Refusal(f"the text is not of {name}()'s format", sqlstate="22023", position=position) from None
    microseconds = (moment - _EPOCH) // datetime.timedelta(microseconds=1)
    return Literal(type_, microseconds // DAY if type_ is DATE else microseconds, position=position)


# --- fields ----------------------------------------------------------------------------------------------


def bind_extract(binder: Binder, node: exp.Expr) -> Expr:
    """Return extract(field FROM x), also of age(…).

    Raises:
        Refusal: 22023 for a field that is not answered, 42883 where age takes other arguments.
    """
    age = bare(node.args["expression"])
    word = binder.unit_word(node.args["this"], "extract")
    if called(age) == "age" and word in _OF_AGE:
        given = [binder.repeated(part, _OFTEN) for part in listed(age)]
        return _part_of_age(binder, node, given, word)
    if isinstance(age, exp.Sub) and word in _OF_SECONDS:
        between = binder.bind(age)
        if between.calls("moments_between"):
            return _of_seconds(binder, node, between, _OF_SECONDS[word])
    return binder.part_of_moment(node, "extract", node.args["this"], node.args["expression"])


_OF_SECONDS = {
    "epoch": "seconds", "day": "trunc(seconds / 86400)", "hour": "trunc((seconds % 86400) / 3600)",
    "minute": "trunc((seconds % 3600) / 60)", "second": "seconds % 60",
}  # fmt: skip
"""Field of the time between two moments, which has no months -> what it is of the seconds, which have its sign."""
_BETWEEN = "extract(epoch FROM later) - extract(epoch FROM earlier)"


def _of_seconds(binder: Binder, node: exp.Expr, between: Expr, meant: str) -> Expr:
    """Return what is meant of the seconds between two moments; both are numbers before they are taken apart.

    So nothing is said of an interval, which engines refuse where a moment is infinite or years apart.
    """
    seconds = binder.meant(_BETWEEN, node, dict(zip(("later", "earlier"), between.args, strict=True)))
    return binder.meant(meant, node, {"seconds": seconds})


# --- intervals that are compared ---------------------------------------------------------------------------


def compared_intervals(binder: Binder, node: exp.Expr, name: str, args: list[Expr]) -> Expr | None:
    """Return a comparison of intervals, by their seconds, a month of 30 days, as Postgres compares them.

    None: one of them is neither the time between two moments nor a constant, or all are.
    """
    if all(arg.is_constant for arg in args):
        return None
    ended = _compared_with_age(name, args) or _compared_with_age(MIRRORED.get(name, name), args[::-1])
    if ended is not None:
        return Call(BOOLEAN, ended[0], ended[1:], position=binder.position(node))
    seconds = [_seconds_of(binder, node, arg) for arg in args]
    sides = [one for one in seconds if one is not None]
    return binder.call(name, sides, node) if len(sides) == len(args) else None


def _compared_with_age(name: str, args: list[Expr]) -> tuple[str, Expr, Literal] | None:
    """Return what `age(x, y) < interval` says of the one of x and y that is no constant: that it is beyond a moment.

    There is one for whole months: an age falls by days alone while x rises, where months of several lengths meet, and
    never to a full month or below it (`tests/sql/test_ages.py`).
    """
    age, by = args
    if name not in ("lt", "le", "gt", "ge") or not age.calls("age"):
        return None
    (later, earlier), most = age.args, by.constant_as(Months)
    moment = earlier if later.is_constant else later
    known = (later if later.is_constant else earlier).constant_as(int)
    if most is None or known is None or moment.is_constant or not moment.type.is_temporal:
        return None
    if most.months <= 0 or most.days or most.microseconds:
        return None
    unit = DAY if moment.type.kind is Kind.DATE else 1
    known *= DAY if (later if later.is_constant else earlier).type.kind is Kind.DATE else 1
    limit = most.months * 30 * DAY

    def is_beyond(place: int) -> bool:
        value = age_of(known, place * unit) if later.is_constant else age_of(place * unit, known)
        below = value < limit if name in ("lt", "ge") else value <= limit
        return below is later.is_constant

    first, last = calendar_ends(moment.type)
    if is_beyond(first) or not is_beyond(last):
        return None
    while last - first > 1:
        middle = (first + last) // 2
        first, last = (first, middle) if is_beyond(middle) else (middle, last)
    after = later.is_constant is (name in ("lt", "le"))
    return "ge" if after else "lt", moment, Literal(moment.type, last)


def _seconds_of(binder: Binder, node: exp.Expr, value: Expr) -> Expr | None:
    by = value.constant_as(Months)
    if by is not None:
        seconds = Fraction((by.months * 30 + by.days) * DAY + by.microseconds, 10**6)
        return Literal(NUMERIC, seconds, position=value.position)
    if value.calls("moments_between"):
        return _of_seconds(binder, node, value, "seconds")
    if not value.calls("age"):
        return None
    return Call(NUMERIC, "age_seconds", value.args, position=value.position)


_DAYS = (
    "((extract(year FROM {moment})::bigint * {months}::bigint + extract(month FROM {moment})::bigint) * 100::bigint "
    "+ extract(day FROM {moment})::bigint)"
)
_MICROSECONDS = (
    f"({_DAYS} * {DAY} + "
    "((extract(hour FROM {moment})::bigint * 60::bigint + extract(minute FROM {moment})::bigint) * 60000000::bigint "
    "+ (extract(second FROM {moment}) * 1000000::bigint)::bigint))"
)
"""Year, month, day and time of day in one number, each with room for the next, so that it rises as moments do."""
_OFTEN = _MICROSECONDS.count("{moment}")
_OF_AGE = {
    "year": ("(({later} - {earlier}) / {full}::bigint)::numeric", 100, 10_000),
    "month": ("((({later} - {earlier}) / {full}::bigint) % 12::bigint)::numeric", 12, 100),
}
"""Field of an age -> what it means of both numbers, what a year adds to their months, and what is full in them."""


def _part_of_age(binder: Binder, node: exp.Expr, given: list[Expr], word: str) -> Expr:
    """Return the full years, or the months beside them, from one moment to another."""
    given = [coerce_literal(arg, DATE) for arg in given]
    if len(given) == 1:
        given.insert(0, Literal(DATE, binder.context.moment() // DAY, position=binder.position(node)))
    if len(given) != 2 or not all(moment.type.is_temporal for moment in given):
        raise binder.refusal(node, "42883", "age takes one or two dates or timestamps")
    is_dated = all(moment.type.kind is Kind.DATE for moment in given)
    sql, months, full = _OF_AGE[word]
    number = _DAYS if is_dated else _MICROSECONDS
    later, earlier = (number.format(moment=name, months=months) for name in ("later", "earlier"))
    sql = sql.format(later=later, earlier=earlier, full=full if is_dated else full * DAY)
    return binder.meant(sql, node, dict(zip(("later", "earlier"), given, strict=True)))


# --- zones -----------------------------------------------------------------------------------------------

_UTC = frozenset({"utc", "gmt", "etc/utc", "etc/gmt", "zulu", "z", "uct", "utc0", "+00", "+00:00", "00:00"})
_WITHIN_MINUTE = frozenset({"second", "milliseconds", "microseconds"})
"""Cut so fine, all clocks agree."""


def _is_utc(binder: Binder, node: exp.Expr) -> bool:
    """Say whether a zone is UTC under one of its names."""
    return (binder.bind(node).constant_as(str) or "").lower() in _UTC


def _zone(binder: Binder, node: exp.Expr) -> Literal:
    """Return the name of a zone. Raises Refusal (22023): there is none of it, or it is an abbreviation."""
    name = (binder.bind(node).constant_as(str) or "").lower()
    known = {one.lower(): one for one in zone_names()}
    if name not in known:
        raise Refusal(
            "a time zone is a constant 'UTC' or a name such as 'Europe/Berlin'", sqlstate="22023",
            position=binder.position(node), hint="abbreviations and offsets mean several things: name the place",
        )  # fmt: skip
    return Literal(TEXT, known[name])


def at_time_zone(binder: Binder, node: exp.Expr) -> Expr:
    """Return x AT TIME ZONE: of UTC x as a timestamp, else a moment to clocks or back, by what x is written as.

    Raises:
        Refusal: 42804 where the statement does not say whether x is a moment or what clocks show.
    """
    if _is_utc(binder, node.args["zone"]):
        return cast(binder.bind(node.args["this"]), TIMESTAMP, binder.position(node))
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


def _is_moment(binder: Binder, node: exp.Expr) -> bool | None:
    """Say whether an expression is a timestamptz, by its column's type or as it is written; None: that is not said."""
    node = bare(node)
    read = _MOMENTS.get(type(node))
    return None if read is None else read(binder, node)


def _is_zoned(binder: Binder, node: exp.Expr) -> bool | None:
    return {"TIMESTAMPTZ": True, "TIMESTAMP": False, "DATE": True}.get(type_word(node.args["to"]))


def _is_shifted_moment(binder: Binder, node: exp.Expr) -> bool | None:
    """Say it of x ± an interval: what it is of x."""
    by = bare(node.args["expression"])
    is_interval = isinstance(by, exp.Interval) or (
        isinstance(by, exp.Cast) and type_word(by.args["to"]) == "INTERVAL"
    )
    return _is_moment(binder, node.args["this"]) if is_interval else None


def _is_other_side(binder: Binder, node: exp.Expr) -> bool | None:
    """Say it of x AT TIME ZONE: a moment of what clocks show, and those of a moment."""
    inner = _is_moment(binder, node.args["this"])
    return None if inner is None else not inner


def _is_cut_moment(binder: Binder, node: exp.Expr) -> bool | None:
    return True if node.args.get("zone") is not None else _is_moment(binder, node.args["this"])


def _is_moment_column(binder: Binder, node: exp.Expr) -> bool | None:
    column = binder.bind(node)
    if column.type.engine in _ZONED or column.type.kind is Kind.DATE:
        return True
    if column.column is None or column.type.kind is not Kind.TIMESTAMP:
        return None
    return False if binder.scope.is_of_table(column.column) else None


_MOMENTS: dict[type[exp.Expr], Callable[[Binder, exp.Expr], bool | None]] = {
    exp.Column: _is_moment_column, exp.Cast: _is_zoned, exp.AtTimeZone: _is_other_side,
    exp.TimestampTrunc: _is_cut_moment, exp.Add: _is_shifted_moment, exp.Sub: _is_shifted_moment,
    exp.Anonymous: lambda binder, node: True if called(node) == "now" else None,
    **dict.fromkeys(
        (exp.CurrentTimestamp, exp.UnixToTime, exp.StrToTime, exp.CurrentDate), lambda binder, node: True
    ),
    exp.Localtimestamp: lambda binder, node: False,
}  # fmt: skip
"""Kind of node -> whether it is a timestamptz."""


def bind_cut(binder: Binder, node: exp.Expr) -> Expr:
    """Return date_trunc(unit, x), or cut by the clocks of a zone. Raises as `Binder.part_of_moment` and `_zone`."""
    zone = node.args.get("zone")
    cut = binder.part_of_moment(node, "date_trunc", node.args["unit"], node.args["this"])
    if zone is None or _is_utc(binder, zone):
        return cut
    name = _zone(binder, zone)
    inner = _timestamp(coerce_literal(binder.bind(node.args["this"]), TIMESTAMP))
    unit = binder.unit_word(node.args["unit"], "date_trunc")
    if unit in TRUNC_UNITS:
        return _in_zone(binder, node, "zone_cut", [Literal(TEXT, unit), inner, name])
    if not cut.function or unit in _WITHIN_MINUTE:
        return cut
    clock = _in_zone(binder, node, "zone_clock", [inner, name])
    moved = Call(cut.type, cut.function, (*cut.args[:-1], clock), position=cut.position)
    return _in_zone(binder, node, "zone_moment", [moved, name])


def _in_zone(binder: Binder, node: exp.Expr, name: str, args: list[Expr]) -> Expr:
    """Return the call of a row of zones; of a constant moment its value, which narrows."""
    said = "date_trunc" if name == "zone_cut" else "AT TIME ZONE"
    bound = bind_row(binder, node, said, [FUNCTIONS[name]], args)
    value = constant_in_zone(bound)
    return bound if value is None else Literal(TIMESTAMP, value, position=bound.position)
