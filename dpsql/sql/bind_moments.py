"""Moments that tools write in words: to_date and to_timestamp of a constant, make_date, AT TIME ZONE 'UTC'.

All moments are in UTC (soundness.md 2.2), so a zone that is UTC changes nothing.
"""

from __future__ import annotations

import datetime
import re

from sqlglot import exp

from ..errors import Refusal
from ..relation.calendar import DAY
from ..relation.expressions import Expr, Literal
from ..relation.functions import FUNCTIONS
from ..relation.types import DATE, INTEGER, TEXT, TIMESTAMP, Kind
from .bind_expression import Binder, cast
from .bind_intervals import bind_zone
from .constants import coerce_literal
from .named_calls import bind_row
from .parameters import sample

__all__ = ["at_time_zone", "constant_moment", "is_utc_name", "make_date"]

_EPOCH = datetime.datetime(1970, 1, 1)
_UTC = frozenset({"utc", "gmt", "etc/utc", "etc/gmt", "zulu", "z", "uct", "utc0", "+00", "+00:00", "00:00"})
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
