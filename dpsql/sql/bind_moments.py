"""Moments that tools write in words: to_date and to_timestamp of a constant, make_date, AT TIME ZONE 'UTC'.

All moments are in UTC (soundness.md 2.2), so a zone that is UTC changes nothing.
"""

from __future__ import annotations

import datetime
import re

from sqlglot import exp

from ..errors import Refusal
from ..relation.calendar import DAY
from ..relation.date_formats import format_parts
from ..relation.expressions import Expr, Literal, Months
from ..relation.functions import FUNCTIONS, NAMES
from ..relation.types import BIGINT, DATE, INTEGER, INTERVAL, NUMERIC, TEXT, TIMESTAMP, Kind
from .bind_expression import Binder, call, cast
from .bind_intervals import bind_zone
from .constants import coerce_literal
from .named_calls import bind_row
from .parameters import sample

__all__ = [
    "at_time_zone",
    "bind_date_bin",
    "bind_extract",
    "bind_to_char",
    "constant_moment",
    "is_utc_name",
    "make_date",
]

_EPOCH = datetime.datetime(1970, 1, 1)
_UTC = frozenset({"utc", "gmt", "etc/utc", "etc/gmt", "zulu", "z", "uct", "utc0", "+00", "+00:00", "00:00"})
_WIDEST_BIN = 36_525 * DAY
_READ = frozenset("YmdHMSf")
_WORDS = {"Y": "YYYY", "m": "MM", "d": "DD", "H": "HH24", "M": "MI", "S": "SS", "f": "US"}
"""What the parser has made of Postgres' words, back again."""
_CODES = re.compile(r"%([YmdHMSf])")
_DIRECTIVE = re.compile(r"%(.)")


def _word(code: re.Match[str]) -> str:
    return _WORDS[code[1]]


def is_utc_name(zone: str) -> bool:
    """Say whether a zone is UTC under one of its names."""
    return zone.lower() in _UTC


def constant_moment(binder: Binder, node: exp.Expr) -> Expr:
    """Return to_date(text, format) or to_timestamp(text, format) of constants.

    Raises:
        Refusal: PV202 for what is no constant, 22023 for a format or a text that is not read here.
    """
    position = binder.position(node)
    name, type_ = ("to_date", DATE) if isinstance(node, exp.StrToDate) else ("to_timestamp", TIMESTAMP)
    given = sample(binder.bind(node.args["this"]), TEXT, "1970-01-01")
    form = node.args.get("format")
    form = form.args["this"] if isinstance(form, exp.Literal) else ""
    if not isinstance(given, Literal) and given.type.kind is Kind.TEXT:
        row, written = (
            FUNCTIONS["to_date_of" if type_ is DATE else "to_timestamp_by"],
            _CODES.sub(_word, form),
        )
        return bind_row(binder, node, name, [row], [given, Literal(TEXT, written)])
    if not isinstance(given, Literal) or not isinstance(given.value, str):
        raise Refusal(
            f"{name}() takes a constant text", sqlstate="PV202", position=position,
            hint="cast a column that holds ISO text: x::date",
        )  # fmt: skip
    directives = _DIRECTIVE.findall(form)
    plain = _DIRECTIVE.sub("", form)
    if "Y" not in directives or not set(directives) <= _READ or re.search(r"[A-Za-z0-9%]", plain):
        raise Refusal(
            f"{name}() does not read this format", sqlstate="22023", position=position,
            hint="formats of YYYY, MM, DD, HH24, MI, SS and US with signs between; or write DATE '2024-01-31'",
        )  # fmt: skip
    try:
        moment = datetime.datetime.strptime(given.value.strip(), form)
    except ValueError:
        raise Refusal(f"the text is not of {name}()'s format", sqlstate="22023", position=position) from None
    microseconds = (moment - _EPOCH) // datetime.timedelta(microseconds=1)
    return Literal(type_, microseconds // DAY if type_ is DATE else microseconds, position=position)


def make_date(binder: Binder, node: exp.Expr) -> Expr:
    """Return make_date(year, month, day) of constants, or above a release of columns.

    Raises:
        Refusal: 42883 for another number of arguments, 22023 for no date.
    """
    position = binder.position(node)
    parts = node.args.get("expressions") or []
    if len(parts) != 3:
        raise Refusal("make_date takes year, month and day", sqlstate="42883", position=position)
    found = [sample(coerce_literal(binder.bind(part), INTEGER), INTEGER, 1) for part in parts]
    values = [part.value for part in found if isinstance(part, Literal)]
    if len(values) != 3 or not all(isinstance(value, int) for value in values):
        return bind_row(binder, node, "make_date", [FUNCTIONS["make_date_of"]], found)
    try:
        date = datetime.date(*values)  # type: ignore[arg-type]  # all are int, as was just looked at
    except (ValueError, OverflowError):
        raise Refusal("there is no such date", sqlstate="22023", position=position) from None
    return Literal(DATE, (date - _EPOCH.date()).days, position=position)


def at_time_zone(binder: Binder, node: exp.Expr) -> Expr:
    """Return x AT TIME ZONE 'UTC', which is x as a timestamp; of another zone as `bind_zone` says."""
    position = binder.position(node)
    zone = binder.bind(node.args["zone"])
    name = zone.value if isinstance(zone, Literal) else None
    if not isinstance(name, str) or not is_utc_name(name):
        return bind_zone(binder, node)
    return cast(binder.bind(node.args["this"]), TIMESTAMP, position)


def bind_extract(binder: Binder, node: exp.Expr) -> Expr:
    """Return extract(field FROM x), also of age(…).

    Raises:
        Refusal: 22023 for a field that is not answered.
    """
    inner = node.args["expression"]
    while isinstance(inner, exp.Paren):
        inner = inner.args["this"]
    is_age = isinstance(inner, exp.Anonymous) and str(inner.args["this"]).lower() == "age"
    if is_age and _field(node) in ("year", "month"):
        return _part_of_age(binder, node, inner)
    return binder.part_of_date(node)


def _field(node: exp.Expr) -> str:
    return str(node.args["this"].args["this"]).lower()


def _part_of_age(binder: Binder, node: exp.Expr, age: exp.Anonymous) -> Expr:
    """Return the full years, or the months beside them, from one moment to another.

    Year, month, day and time of day in one number, each with room for the next, rise as moments do: a whole division of
    the difference leaves the years that are full.
    """
    position, word = binder.position(node), _field(node)
    given = [coerce_literal(binder.bind(part), DATE) for part in age.args.get("expressions") or []]
    if len(given) == 1:
        given.insert(0, Literal(DATE, binder.context.moment() // DAY, position=position))
    if len(given) != 2 or not all(moment.type.is_temporal for moment in given):
        raise Refusal("age takes one or two dates or timestamps", sqlstate="42883", position=position)
    is_dated = all(moment.type.kind is Kind.DATE for moment in given)
    later, earlier = (_ordinal(moment, word, is_dated=is_dated) for moment in given)
    unit = (10_000 if word == "year" else 100) * (1 if is_dated else DAY)
    full = _of("div", _of("sub", later, earlier), _whole(unit))
    return cast(full if word == "year" else _of("mod", full, _whole(12)), NUMERIC, position)


def _ordinal(moment: Expr, word: str, *, is_dated: bool) -> Expr:
    """Return a whole number that rises with a moment, and by one unit of `_part_of_age` with each year or month."""

    def part(name: str) -> Expr:
        return cast(call("extract", [Literal(TEXT, name), moment], None), BIGINT, None)

    months = _of("add", _of("mul", part("year"), _whole(100 if word == "year" else 12)), part("month"))
    days = _of("add", _of("mul", months, _whole(100)), part("day"))
    if is_dated:
        return days
    minutes = _of("add", _of("mul", part("hour"), _whole(60)), part("minute"))
    second = _of("mul", call("extract", [Literal(TEXT, "second"), moment], None), _whole(10**6))
    time = _of("add", _of("mul", minutes, _whole(60 * 10**6)), cast(second, BIGINT, None))
    return _of("add", _of("mul", days, _whole(DAY)), time)


def _of(name: str, left: Expr, right: Expr) -> Expr:
    return call(name, [left, right], left.position or right.position)


def _whole(number: int) -> Expr:
    return Literal(BIGINT, number)


def bind_date_bin(binder: Binder, node: exp.Expr, name: str) -> Expr:
    """Return date_bin(width, x, origin): of constants but for x on people's rows too, else above a release.

    Raises:
        Refusal: as `bind_row`.
    """
    args = [binder.bind(part) for part in node.args.get("expressions") or []]
    if len(args) == 3:
        width, value = coerce_literal(args[0], INTERVAL), coerce_literal(args[1], TIMESTAMP)
        origin = cast(coerce_literal(args[2], TIMESTAMP), TIMESTAMP, binder.position(node))
        if (
            _is_width(width)
            and value.type.is_temporal
            and isinstance(origin, Literal)
            and isinstance(origin.value, int)
        ):
            return call("date_bin", [width, value, origin], binder.position(node))
    return bind_row(binder, node, name, NAMES[name], args)


def _is_width(width: Expr) -> bool:
    if not isinstance(width, Literal) or not isinstance(width.value, Months) or width.value.months:
        return False
    return 0 < width.value.days * DAY + width.value.microseconds <= _WIDEST_BIN


def bind_to_char(binder: Binder, node: exp.Expr, name: str) -> Expr:
    """Return to_char(x, format): of a moment by what `format_parts` reads on people's rows too, else above a release.

    Raises:
        Refusal: as `bind_row`.
    """
    args = [binder.bind(part) for part in node.args.get("expressions") or []]
    if len(args) == 2:
        value, form = coerce_literal(args[0], TIMESTAMP), sample(args[1], TEXT, "YYYY")
        written = form.value if isinstance(form, Literal) else None
        if isinstance(written, str) and value.type.is_temporal and not isinstance(format_parts(written), str):
            return call("to_char", [value, form], binder.position(node))
    return bind_row(binder, node, name, NAMES[name], args)
