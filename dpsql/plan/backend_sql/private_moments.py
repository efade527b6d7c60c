"""Moments of private rows as texts and in bins; `print_private` has the house rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...errors import Refusal
from ...relation.calendar import calendar_ends
from ...relation.expressions import Call
from ...relation.functions.moments import bin_of, written_format
from ...relation.intervals import facts_of
from ...relation.types import TIMESTAMP, Kind
from ..dialects.private_sql import unbounded
from ..dialects.written import written

if TYPE_CHECKING:
    from .print_private import PrivatePrinter

__all__ = ["date_bin", "to_char"]


def to_char(printer: PrivatePrinter, expr: Call) -> str:
    """Return a moment's text, each part of it from a field: engines' own formats differ, and may depend on a locale."""
    moment = printer.dialect.calendar_operand(printer.moment(expr.args[0]))
    return printer.dialect.as_text(f"({written(written_format(expr), moment, printer.dialect)})")


def date_bin(printer: PrivatePrinter, expr: Call) -> str:
    """Return where a moment's bin begins: the moment less what has gone by of its bin."""
    facts, (first, last) = facts_of(expr, printer.env), calendar_ends(TIMESTAMP)
    if facts.lo is None or facts.hi is None:
        raise unbounded(expr)
    if facts.lo < first or facts.hi > last:
        raise Refusal(
            "these bins could leave the years 1 to 9999", sqlstate="PV202", position=expr.position,
            hint="narrow the bounds with BETWEEN",
        )  # fmt: skip
    width, origin = bin_of(expr)
    moment = printer.moment(expr.args[1])
    if expr.args[1].type.kind is Kind.DATE:
        moment = printer.dialect.cast(moment, "TIMESTAMP")
    since = f"({printer.dialect.since_1970(moment, TIMESTAMP)} - {origin % width})"
    gone = f"((({since} % {width}) + {width}) % {width})"
    return printer.dialect.less_microseconds(moment, gone)
