"""Moments that tools write in words: to_date and to_timestamp of a constant, make_date, AT TIME ZONE 'UTC'.

All moments are in UTC (soundness.md 2.2), so a zone that is UTC changes nothing.
"""

from __future__ import annotations

import datetime
import itertools
import re

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from ..errors import Refusal
from ..relation.calendar import DAY
from ..relation.date_formats import FORMAT_PATTERNS, format_parts
from ..relation.expressions import Expr, Literal, Months
from ..relation.types import BIGINT, DATE, INTEGER, INTERVAL, NUMERIC, TEXT, TIMESTAMP, Kind
from .bind_expression import Binder, call, cast
from .constants import coerce_literal
from .parameters import sample
from .say import said_of
from .text import tokenize

__all__ = [
    "at_time_zone",
    "bind_date_bin",
    "bind_extract",
    "bind_to_char",
    "constant_moment",
    "make_date",
    "refuse_age",
]

_EPOCH = datetime.datetime(1970, 1, 1)
_UTC = frozenset({"utc", "gmt", "etc/utc", "etc/gmt", "zulu", "z", "uct", "utc0", "+00", "+00:00", "00:00"})
_WIDEST_BIN = 36_525 * DAY
_READ = frozenset("YmdHMSf")
_DIRECTIVE = re.compile(r"%(.)")


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
    """Return make_date(year, month, day) of constants.

    Raises:
        Refusal: 42883 for another number of arguments, PV202 for what is no constant, 22023 for no date.
    """
    position = binder.position(node)
    parts = node.args.get("expressions") or []
    if len(parts) != 3:
        raise Refusal("make_date takes year, month and day", sqlstate="42883", position=position)
    found = [sample(coerce_literal(binder.bind(part), INTEGER), INTEGER, 1) for part in parts]
    values = [part.value for part in found if isinstance(part, Literal)]
    if len(values) != 3 or not all(isinstance(value, int) for value in values):
        raise Refusal(
            "make_date takes constants", sqlstate="PV202", position=position, hint="write DATE '2024-01-31'"
        )
    try:
        date = datetime.date(*values)  # type: ignore[arg-type]  # all are int, as was just looked at
    except (ValueError, OverflowError):
        raise Refusal("there is no such date", sqlstate="22023", position=position) from None
    return Literal(DATE, (date - _EPOCH.date()).days, position=position)


def at_time_zone(binder: Binder, node: exp.Expr) -> Expr:
    """Return x AT TIME ZONE 'UTC', which is x as a timestamp.

    Raises:
        Refusal: 0A000 for another zone.
    """
    position = binder.position(node)
    zone = binder.bind(node.args["zone"])
    name = zone.value if isinstance(zone, Literal) else None
    if not isinstance(name, str) or name.lower() not in _UTC:
        raise Refusal(
            "AT TIME ZONE takes 'UTC' here", sqlstate="0A000", position=position,
            hint="moments are in UTC; add the hours: x + INTERVAL '2 hours'",
        )  # fmt: skip
    return cast(binder.bind(node.args["this"]), TIMESTAMP, position)


def bind_extract(binder: Binder, node: exp.Expr) -> Expr:
    """Return extract(field FROM x), also of age(…).

    Raises:
        Refusal: 22023 for a field that is not answered.
    """
    inner = node.args["expression"]
    while isinstance(inner, exp.Paren):
        inner = inner.args["this"]
    if isinstance(inner, exp.Anonymous) and str(inner.args["this"]).lower() == "age":
        return _part_of_age(binder, node, inner)
    return binder.part_of_date(node)


def _part_of_age(binder: Binder, node: exp.Expr, age: exp.Anonymous) -> Expr:
    """Return the full years, or the months beside them, from one moment to another.

    Year, month, day and time of day in one number, each with room for the next, rise as moments do: a whole division of
    the difference leaves the years that are full.
    """
    position, word = binder.position(node), str(node.args["this"].args["this"]).lower()
    given = [coerce_literal(binder.bind(part), DATE) for part in age.args.get("expressions") or []]
    if word not in ("year", "month"):
        raise Refusal(
            f"extract takes year or month of age(), not {word}", sqlstate="22023", position=position,
            hint="for days subtract dates: current_date - x",
        )  # fmt: skip
    if len(given) == 1:
        given.insert(0, Literal(DATE, binder.context.now // DAY, position=position))
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


def refuse_age(binder: Binder, node: exp.Expr) -> Expr:
    """Raises Refusal: 0A000, for intervals that are computed."""
    name = (
        str(node.args["this"]).lower()
        if isinstance(node, exp.Anonymous)
        else said_of(node, binder.context.text)
    )
    raise Refusal(
        f"{name.removesuffix('()')}() makes an interval, which is not computed here", sqlstate="0A000",
        position=binder.position(node),
        hint="extract(year FROM age(x)) for years, x - y of dates for days",
    )  # fmt: skip


def bind_date_bin(binder: Binder, node: exp.Expr) -> Expr:
    """Return date_bin(width, x, origin), of constants but for x.

    Raises:
        Refusal: PV202 for what is no constant, 22023 for a width that is none.
    """
    position = binder.position(node)
    if node.args.get("zone") is not None:
        raise Refusal("date_bin takes three arguments", sqlstate="42883", position=position)
    width = coerce_literal(binder.bind(node.args["this"]), INTERVAL)
    value = coerce_literal(binder.bind(node.args["expression"]), TIMESTAMP)
    begins = node.args["unit"]  # which the parser takes for a word
    start = (
        Literal(TEXT, begins.name, position=position) if isinstance(begins, exp.Var) else binder.bind(begins)
    )
    origin = cast(coerce_literal(start, TIMESTAMP), TIMESTAMP, position)
    if (
        not isinstance(width, Literal)
        or not isinstance(width.value, Months)
        or not isinstance(origin, Literal)
    ):
        raise Refusal(
            "date_bin takes constants for the width and the origin", sqlstate="PV202", position=position,
            hint="date_bin('15 minutes', x, TIMESTAMP '2024-01-01')",
        )  # fmt: skip
    microseconds = width.value.days * DAY + width.value.microseconds
    if width.value.months or not 0 < microseconds <= _WIDEST_BIN or not isinstance(origin.value, int):
        raise Refusal(
            "date_bin takes a width of days, hours, minutes or seconds", sqlstate="22023", position=position,
            hint="date_trunc('month', x) for months and years",
        )  # fmt: skip
    return call("date_bin", [width, value, origin], position)


def bind_to_char(binder: Binder, node: exp.Expr) -> Expr:
    """Return to_char(x, format), of a constant format.

    Raises:
        Refusal: PV202 for a format that is no constant, 22023 for one that is not written here.
    """
    position, form = binder.position(node), node.args["format"]
    value = coerce_literal(binder.bind(node.args["this"]), TIMESTAMP)
    if isinstance(form, exp.Literal):
        form = Literal(TEXT, _format_as_written(binder, node), position=position)
    else:
        form = sample(binder.bind(form), TEXT, "YYYY")
    if not isinstance(form, Literal) or not isinstance(form.value, str):
        raise Refusal(
            "to_char takes a constant format",
            sqlstate="PV202",
            position=position,
            hint="to_char(x, 'YYYY-MM')",
        )
    parts = format_parts(form.value)
    if isinstance(parts, str) or not value.type.is_temporal:
        said = (
            f'does not write "{parts}" here' if isinstance(parts, str) else "writes dates and timestamps here"
        )
        raise Refusal(
            f"to_char {said}", sqlstate="22023", position=position,
            hint=f"it writes {', '.join(FORMAT_PATTERNS)}, and words in double quotes",
        )  # fmt: skip
    return call("to_char", [value, form], position)


def _format_as_written(binder: Binder, node: exp.Expr) -> str:
    """Return the last argument of a call as the statement has it: the parser's tree has another language's format."""
    position, depth = binder.position(node), 0
    tokens = tokenize(binder.context.text[0 if position is None else position.offset :])
    for before, token in itertools.pairwise(tokens):
        depth += (token.token_type is TokenType.L_PAREN) - (token.token_type is TokenType.R_PAREN)
        if depth == 0 and token.token_type is TokenType.R_PAREN:
            return before.text if before.token_type is TokenType.STRING else ""
    return ""
