"""Functions of moments and the clocks of a zone that is named.

Below a release they are written out as steps over instants (`relation.zones`); above it the sealed engine has them.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from ..catalog import MAX_DERIVED
from ..expressions import Call
from ..facts import ONE, Facts
from ..zones import Steps, clock_steps, cut_ends, cut_values, moment_steps
from .above.signature import above
from .row import any_null

__all__ = ["ROWS", "constant_in_zone", "steps_of", "word_of"]

_KEPT = ("hour", "minute")


def word_of(call: Call, place: int) -> str:
    """Return a constant word of a call: its zone, or a unit."""
    return call.literal(place, str)


def steps_of(call: Call, lo: int, hi: int) -> Steps | None:
    """Return what a call of zone_clock or zone_moment adds to its argument, which lies in [lo, hi]."""
    steps = clock_steps if call.function == "zone_clock" else moment_steps
    return steps(word_of(call, 1), lo, hi)


def constant_in_zone(call: Call) -> int | None:
    """Return the value of a call on a constant moment; None for any other, and where the calendar ends."""
    moment = call.args[1 if call.function == "zone_cut" else 0].constant_as(int)
    if moment is None:
        return None
    if call.function == "zone_cut":
        ends = cut_ends(word_of(call, 0), word_of(call, 2), moment, moment)
        return None if ends is None else ends[0]
    steps = steps_of(call, moment, moment)
    return None if steps is None else moment + steps.first


def _moved(args: list[Facts], call: Call) -> Facts:
    a = args[0]
    if a.lo is None or a.hi is None:
        return Facts(grid=ONE)
    steps = steps_of(call, int(a.lo), int(a.hi))
    if steps is None:
        return Facts(grid=ONE)
    lo, hi = steps.span(int(a.lo), int(a.hi))
    return Facts(Fraction(lo), Fraction(hi), ONE, declared=a.declared)


def _moved_null(args: list[Facts], call: Call) -> bool:
    return any_null(args, call) or not args[0].bounded


def _cut(args: list[Facts], call: Call) -> Facts:
    unit, zone, a = word_of(call, 0), word_of(call, 2), args[1]
    if a.lo is None or a.hi is None:
        return Facts(grid=ONE)
    lo, hi = int(a.lo), int(a.hi)
    ends = cut_ends(unit, zone, lo, hi)
    if ends is None:
        return Facts(grid=ONE)
    listed = cut_values(unit, zone, lo, hi, MAX_DERIVED) if a.declared else None
    values = None if listed is None else tuple(Fraction(moment) for moment in listed)
    return Facts(Fraction(ends[0]), Fraction(ends[1]), ONE, values=values, declared=a.declared)


def _cut_null(args: list[Facts], call: Call) -> bool:
    return any_null(args, call) or not args[1].bounded


def _cut_above(unit: str, zone: str) -> str:
    """Return the SQL of date_trunc in a zone: of what its clocks show, which go on as they went within an hour."""
    clock = "timezone({c}, timezone('UTC', {b}))"
    cut = f"date_trunc({{a}}, {clock})"
    return f"{{b}} - ({clock} - {cut})" if unit in _KEPT else f"timezone('UTC', timezone({{c}}, {cut}))"


ROWS = (
    replace(
        above("zone_clock", "x AT TIME ZONE 'Europe/Zurich'",
              "what the clocks of a zone show at a moment, a timestamptz", "timestamp, format -> timestamp",
              "timezone({b}, timezone('UTC', {a}))", names=()),
        private=True, interval=_moved, null=_moved_null,
    ),
    replace(
        above("zone_moment", "x::timestamp AT TIME ZONE 'Europe/Zurich'",
              "the moment at which the clocks show a timestamp",
              "timestamp, format -> timestamp", "timezone('UTC', timezone({b}, {a}))", names=()),
        private=True, interval=_moved, null=_moved_null,
    ),
    replace(
        above("zone_cut", "date_trunc('month', x, 'Europe/Zurich')",
              "the moment at which the unit began by the clocks of a zone",
              "format, timestamp, format -> timestamp", _cut_above, names=(), output="date_trunc"),
        private=True, interval=_cut, null=_cut_null,
    ),
)  # fmt: skip
