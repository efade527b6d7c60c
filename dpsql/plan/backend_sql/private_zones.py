"""Moments of private rows by the clocks of a named zone; `print_private` has the house rules.

No engine is asked for a zone: its steps are printed, as a CASE over instants with an ELSE.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...errors import Refusal
from ...relation.expressions import Call, Expr, Literal
from ...relation.functions.moments import steps_of, word_of
from ...relation.intervals import facts_of
from ...relation.types import TIMESTAMP
from ...relation.zones import MAX_CHANGES, MAX_YEARS, Steps, back_steps, clock_steps
from ..dialects.private_sql import unbounded

if TYPE_CHECKING:
    from .print_private import PrivatePrinter

__all__ = ["zone_cut", "zone_moved"]


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
