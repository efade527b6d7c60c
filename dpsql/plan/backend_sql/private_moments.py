"""Moments of private rows as texts and in bins; `print_private` has the house rules.

By the clocks of a named zone no engine is asked: its steps are printed, as a CASE over instants with an ELSE.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from ...errors import Refusal
from ...relation.calendar import DAY, calendar_ends
from ...relation.expressions import Call, Expr, Literal
from ...relation.functions.moments import bin_of, steps_of, word_of, written_format
from ...relation.intervals import Facts, facts_of
from ...relation.types import TIMESTAMP, Kind
from ...relation.zones import MAX_CHANGES, MAX_YEARS, Steps, back_steps, clock_steps
from ..dialects.private_sql import Number, reach_of, unbounded, written

if TYPE_CHECKING:
    from .print_private import PrivatePrinter


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
    moment = _timestamp(printer, expr.args[1])
    return printer.dialect.less_microseconds(moment, _gone(printer, expr, moment))


def _gone(printer: PrivatePrinter, expr: Call, moment: str) -> str:
    """Return the microseconds of a moment's bin that have gone by."""
    width, origin = bin_of(expr)
    return _modulo(f"({printer.dialect.since_1970(moment, TIMESTAMP)} - {origin % width})", width)


def _modulo(sql: str, by: int) -> str:
    """Return what is left of a whole number below or above 0, from 0 up."""
    return f"((({sql} % {by}) + {by}) % {by})"


def _timestamp(printer: PrivatePrinter, expr: Expr) -> str:
    moment = printer.moment(expr)
    return printer.dialect.cast(moment, "TIMESTAMP") if expr.type.kind is Kind.DATE else moment


def time_of_day(printer: PrivatePrinter, expr: Call) -> str:
    """Return the time of day of a moment as its whole microseconds, a BIGINT from 0 to the last of a day."""
    inner = expr.args[0]
    if isinstance(inner, Call) and inner.calls(
        "date_bin"
    ):  # whole numbers all the way, and no moment between
        moment = _timestamp(printer, inner.args[1])
        begun = f"({printer.dialect.since_1970(moment, TIMESTAMP)} - {_gone(printer, inner, moment)})"
        return _modulo(begun, DAY)
    return _clock(printer, _timestamp(printer, inner))


def age_seconds(printer: PrivatePrinter, expr: Call, facts: Facts) -> Number:
    """Return an age in microseconds, a month as 30 days.

    Where the later day of the month, with its clock, is before the earlier's, a month is taken back as the days that
    the earlier moment's month has; of a negative age all is the other way round.
    """
    (x, since_x), (y, since_y) = (_by_month(printer, arg) for arg in expr.args)
    within_x, within_y = (_within(printer, one) for one in (x, y))
    taken = (
        f"CASE WHEN {x} >= {y} THEN CASE WHEN {within_x} < {within_y} THEN {_beyond(printer, y)} ELSE 0 END "
        f"WHEN {within_y} < {within_x} THEN -({_beyond(printer, x)}) ELSE 0 END"
    )
    sql = f"(({since_x} - {since_y}) + ({taken}) * {DAY})"
    return Number(sql, Fraction(1, 10**6), reach_of(facts, Fraction(1, 10**6), expr))


def _by_month(printer: PrivatePrinter, arg: Expr) -> tuple[str, str]:
    """Return a timestamp, and the microseconds of its months of 30 days with what is within its month."""
    moment = _timestamp(printer, arg)
    months = f"({_field(printer, 'year', moment)} * 12 + {_field(printer, 'month', moment)})"
    return moment, f"({months} * {30 * DAY} + {_within(printer, moment)})"


def _within(printer: PrivatePrinter, moment: str) -> str:
    return f"({_field(printer, 'day', moment)} * {DAY} + {_clock(printer, moment)})"


def _clock(printer: PrivatePrinter, moment: str) -> str:
    return _modulo(printer.dialect.since_1970(moment, TIMESTAMP), DAY)


def _field(printer: PrivatePrinter, field: str, moment: str) -> str:
    return printer.dialect.cast(
        printer.dialect.extract(field, printer.dialect.calendar_operand(moment)), "BIGINT"
    )


def _beyond(printer: PrivatePrinter, moment: str) -> str:
    """Return the days of a moment's month, above 30."""
    month, year = (_field(printer, field, moment) for field in ("month", "year"))
    leaps = f"({year} % 400 = 0 OR ({year} % 4 = 0 AND {year} % 100 <> 0))"
    long = f"{month} IN (1, 3, 5, 7, 8, 10, 12)"
    return f"CASE WHEN {long} THEN 1 WHEN {month} <> 2 THEN 0 WHEN {leaps} THEN -1 ELSE -2 END"


def zone_moved(printer: PrivatePrinter, expr: Call) -> str:
    """Return what the clocks show at a moment, or the moment at which they do."""
    value = expr.args[0]
    steps = _known(expr, steps_of(expr, *_bounds(printer, value)))
    return _plus(printer, printer.moment(value), steps, value)


def zone_cut(printer: PrivatePrinter, expr: Call) -> str:
    """Return where a moment's unit began by the clocks: they are cut, and made a moment again."""
    unit, value, zone = word_of(expr, 0), expr.args[1], word_of(expr, 2)
    lo, hi = _bounds(printer, value)
    clock, back = _known(expr, clock_steps(zone, lo, hi)), _known(expr, back_steps(unit, zone, lo, hi))
    shown = printer.dialect.calendar_operand(_plus(printer, printer.moment(value), clock, value))
    return _plus(printer, printer.dialect.date_trunc(unit, shown), back, value)


def _bounds(printer: PrivatePrinter, value: Expr) -> tuple[int, int]:
    """Raises Refusal (PV101, PV201): there are none."""
    facts = facts_of(value, printer.env)
    if facts.lo is None or facts.hi is None:
        raise unbounded(value)
    return int(facts.lo), int(facts.hi)


def _known(expr: Call, steps: Steps | None) -> Steps:
    """Raises Refusal (PV203): there are too many, or there is no calendar for them."""
    if steps is None:
        raise Refusal(
            f"a zone's clocks are written out for at most {MAX_CHANGES} of their changes and {MAX_YEARS} years",
            sqlstate="PV203", position=expr.position,
            hint="narrow the moments in WHERE: x BETWEEN TIMESTAMP '2020-01-01' AND TIMESTAMP '2024-12-31'",
        )  # fmt: skip
    return steps


def _plus(printer: PrivatePrinter, moment: str, steps: Steps, by: Expr) -> str:
    """Return a moment with what the steps add at `by`, which is compared as it stands: NULL and infinity meet an ELSE.

    `moment` is NULL where `by` is.
    """
    less, shown = str(-steps.first), printer.value(by)
    if steps.changes:
        starts = [printer.dialect.literal(Literal(TIMESTAMP, at)) for at, _ in steps.changes]
        values = [-steps.first, *(-value for _, value in steps.changes)]
        arms = "".join(
            f"WHEN {shown} < {at} THEN {value} " for at, value in zip(starts, values[:-1], strict=True)
        )
        less = f"CASE {arms}ELSE {values[-1]} END"
    return printer.dialect.less_microseconds(moment, printer.dialect.cast(less, "BIGINT"))
