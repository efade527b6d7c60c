"""Functions of dates and timestamps, all of them in UTC.

Below a release they are written out as steps over instants (`relation.calendar`); above it the sealed engine has them.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import gcd

from sqlglot import exp

from ..calendar import (
    DAY,
    EXACT_FIELDS,
    EXTRACT_FIELDS,
    FORMAT_PATTERNS,
    TRUNC_UNITS,
    FormatPart,
    Steps,
    calendar_ends,
    clock_steps,
    cut_ends,
    cut_values,
    extract_bounds,
    format_parts,
    formatted_values,
    moment_steps,
    most_characters,
    truncate_bounds,
)
from ..catalog import MAX_DERIVED
from ..expressions import Call, Expr, Months
from ..facts import ONE, ZERO, Facts
from ..types import NUMERIC, TEXT, TIME, TIMESTAMP, Kind, SqlType
from .above.signature import above
from .row import Function, NullRule, Shorthand, Syntax, TypeRule, any_null


def _of_moments(result: SqlType, *places: int) -> TypeRule:
    """Return the rule of a function some of whose arguments are moments."""
    return lambda args: result if all(args[at].type.is_temporal for at in places) else None


def _outside_null(at: int) -> NullRule:
    """NULL for a NULL argument, and for a moment outside the years 1 to 9999."""
    return lambda args, call: any_null(args, call) or not args[at].bounded


def _unit(call: Call) -> str:
    return call.literal(0, str)


def _field(args: list[Facts], call: Call) -> tuple[Fraction, Fraction, bool] | None:
    return extract_bounds(_unit(call), args[1].lo, args[1].hi, call.args[1].type)


def _seconds(args: list[Facts], call: Call) -> Facts:
    is_date = call.args[1].type.kind is Kind.DATE
    grid = Fraction(DAY if is_date else 1, 10**6)
    if _unit(call) == "second":
        return Facts(ZERO, ZERO if is_date else 60 - grid, grid, declared=True)
    a = args[1]
    first, last = (Fraction(end) for end in calendar_ends(call.args[1].type))
    lo, hi = (end if known is None else known for known, end in ((a.lo, first), (a.hi, last)))
    return Facts(lo * grid, hi * grid, grid, declared=a.declared)


def _extract(args: list[Facts], call: Call) -> Facts:
    if _unit(call) in EXACT_FIELDS:
        return _seconds(args, call)
    bounds = _field(args, call)
    if bounds is None:
        return Facts()
    lo, hi, whole = bounds
    return Facts(lo, hi, ONE if whole else None, declared=True)


def _extract_null(args: list[Facts], call: Call) -> bool:
    # 'infinity' has no field: NULL, unless the column is clamped into declared bounds first.
    if any_null(args, call) or not args[1].declared:
        return True
    return not args[1].bounded if _unit(call) in EXACT_FIELDS else _field(args, call) is None


def written_format(call: Call) -> tuple[FormatPart, ...]:
    """Return the parts of a call of to_char, whose format is a literal that is written here."""
    parts = format_parts(call.literal(1, str))
    assert not isinstance(parts, str)
    return parts


def _to_char(args: list[Facts], call: Call) -> Facts:
    a, scale = args[0], DAY if call.args[0].type.kind is Kind.DATE else 1
    first, last = calendar_ends(TIMESTAMP)
    if a.lo is None or a.hi is None or not a.declared or not first <= a.lo * scale <= a.hi * scale <= last:
        return Facts()
    upto = a.hi * scale + (0 if scale == 1 else DAY - 1)
    return Facts(values=formatted_values(written_format(call), a.lo * scale, upto))


def bin_of(call: Call) -> tuple[int, int]:
    """Return the width and the origin of the bins of a call of date_bin, in microseconds."""
    width = call.literal(0, Months)
    return width.days * DAY + width.microseconds, call.literal(2, int)


def binned(call: Call, microseconds: int) -> int:
    """Return where the bin of a moment begins."""
    width, origin = bin_of(call)
    return microseconds - (microseconds - origin) % width


def _date_bin(args: list[Facts], call: Call) -> Facts:
    a, scale = args[1], DAY if call.args[1].type.kind is Kind.DATE else 1
    if a.lo is None or a.hi is None:
        return Facts(grid=ONE)
    width, _ = bin_of(call)
    lo, hi = (binned(call, int(end) * scale) for end in (a.lo, a.hi))
    values = (
        tuple(Fraction(moment) for moment in range(lo, hi + 1, width))
        if (hi - lo) // width < MAX_DERIVED
        else None
    )
    return Facts(Fraction(lo), Fraction(hi), ONE, values=values if a.declared else None, declared=a.declared)


def _date_trunc(args: list[Facts], call: Call) -> Facts:
    a = args[1]
    if a.lo is None or a.hi is None:
        return Facts(grid=ONE)
    lo, hi = truncate_bounds(_unit(call), a.lo, a.hi, call.args[1].type)
    return Facts(lo, hi, ONE, declared=a.declared)


_EVEN_UNITS = {"hour": 3_600_000_000, "minute": 60_000_000}
_MINUTES = 1_440
"""Most times of day that are listed: as many as a day has minutes."""


def has_whole_minutes(of: Expr) -> bool:
    """Say whether every moment that an expression may be is at a whole minute, by how it is cut or binned."""
    return _within_day(of) % 60_000_000 == 0


def _within_day(of: Expr) -> int:
    """Return the microseconds of which every time of day of a moment is a multiple: as the moment is cut, or binned."""
    if of.type.kind is Kind.DATE:
        return DAY
    if of.calls("date_trunc"):
        return _EVEN_UNITS.get(of.literal(0, str), DAY)
    if isinstance(of, Call) and of.calls("date_bin"):
        return gcd(*bin_of(of), DAY)
    return 1


def _time_of_day(args: list[Facts], call: Call) -> Facts:
    step = _within_day(call.args[0])
    values = tuple(Fraction(since) for since in range(0, DAY, step)) if DAY // step <= _MINUTES else None
    return Facts(ZERO, Fraction(DAY - step), Fraction(step), values=values, declared=True)


ROWS: tuple[Function | Shorthand, ...] = (
    Function(
        "extract", "extract(year FROM x)", f"a field: {', '.join((*EXTRACT_FIELDS, *EXACT_FIELDS))}",
        _of_moments(NUMERIC, 1),
        _extract, (Syntax(exp.Extract, read=("this", "expression")),), null=_extract_null,
    ),
    Function(
        "date_trunc", "date_trunc('month', x)", f"a moment cut to its unit: {', '.join(TRUNC_UNITS)}",
        _of_moments(TIMESTAMP, 1), _date_trunc, (Syntax(exp.TimestampTrunc, read=("this", "unit", "zone")),),
        null=_outside_null(1),
    ),
    Function(
        "date_bin", "date_bin('15 minutes', x, TIMESTAMP '2024-01-01')",
        "where a moment's bin begins, counted from a constant one",
        _of_moments(TIMESTAMP, 1), _date_bin, null=_outside_null(1),
    ),
    Function(
        "to_char", "to_char(x, 'YYYY-MM')",
        f"as text, of {', '.join(FORMAT_PATTERNS)}, \"words\"",
        _of_moments(TEXT, 0), _to_char, (), lambda args, call: most_characters(written_format(call)),
        null=_outside_null(0),
    ),
    Function(
        "time_of_day", "x::time", "the time of day of a moment, in UTC; compared with times: `x::time >= '09:00'`",
        _of_moments(TIME, 0), _time_of_day, (), null=_outside_null(0), above="CAST(CAST({a} AS TIMESTAMP) AS TIME)",
    ),
    Shorthand(
        "extract(year FROM age(x))", "full years from a moment to today, or `age(x, y)` from `y` to `x`; also month",
        (),
    ),
    Shorthand(
        "extract(day FROM x::timestamp - y)",
        "days between two moments, cut towards zero; above them hour to second, and epoch",
        (),
    ),
    Shorthand(
        "x::timestamp - y < INTERVAL '7 days'",
        "time between two moments compared, a month as 30 days; `age(x, y)` too",
        (),
    ),
    Shorthand(
        "to_date('31.01.2024', 'DD.MM.YYYY')", "a date from a constant text, by YYYY, MM, DD",
        (Syntax(exp.StrToDate, read=("this", "format")),),
    ),
    Shorthand(
        "to_timestamp('2024-01-31 12:00', 'YYYY-MM-DD HH24:MI')",
        "a moment from a constant text, by YYYY, MM, DD, HH24, MI, SS, US",
        (Syntax(exp.StrToTime, read=("this", "format")),),
    ),
    Shorthand("make_date(2024, 1, 31)", "a date from constants", ()),
    Shorthand(
        "x AT TIME ZONE 'UTC'", "a moment, which is in UTC already",
        (Syntax(exp.AtTimeZone, read=("this", "zone")),),
    ),
)  # fmt: skip


def _age(args: list[Facts], call: Call) -> Facts:
    return Facts(-_MOST_SECONDS, _MOST_SECONDS, Fraction(1, 10**6), declared=True)


_MOST_SECONDS = Fraction(10_000 * 12 * 30 * 86_400)
_MONTHS = (
    "(extract(year FROM {age}) * 12 + extract(month FROM {age})) * 2592000 + extract(day FROM {age}) * 86400"
)
_CLOCK = "(extract(hour FROM {age}) * 60 + extract(minute FROM {age})) * 60 + extract(microseconds FROM {age}) / 1e6"

COMPUTED = (
    Function(
        "age_seconds", "age(x, y) < z", "an age in seconds as it is compared: a month is 30 days",
        _of_moments(NUMERIC, 0, 1), _age, null=lambda args, call: True,
        above=f"CAST({_MONTHS} + {_CLOCK} AS DOUBLE)".replace("{age}", "age({a}, {b})"),
    ),
)  # fmt: skip
"""No forms of the language: what comparisons of intervals are made of."""


# --- functions of moments and the clocks of a zone that is named --------------------------------------------


_KEPT = ("hour", "minute")


def word_of(call: Expr, place: int) -> str:
    """Return a constant word of a call: its zone, or a unit."""
    return call.literal(place, str)


def steps_of(call: Expr, lo: int, hi: int) -> Steps | None:
    """Return what a call of zone_clock or zone_moment adds to its argument, which lies in [lo, hi]."""
    return _STEPS[call.function](word_of(call, 1), lo, hi)


_STEPS = {"zone_clock": clock_steps, "zone_moment": moment_steps}


def constant_in_zone(call: Expr) -> int | None:
    """Return the value of a call on a constant moment; None for any other, and where the calendar ends."""
    is_cut = call.calls("zone_cut")
    moment = call.args[int(is_cut)].constant_as(int)
    if moment is None:
        return None
    if is_cut:
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


def _cut_above(unit: str, zone: str) -> str:
    """Return the SQL of date_trunc in a zone: of what its clocks show, which go on as they went within an hour."""
    clock = "timezone({c}, timezone('UTC', {b}))"
    cut = f"date_trunc({{a}}, {clock})"
    return f"{{b}} - ({clock} - {cut})" if unit in _KEPT else f"timezone('UTC', timezone({{c}}, {cut}))"


ZONES = (
    replace(
        above("zone_clock", "x AT TIME ZONE 'Europe/Zurich'",
              "what the clocks of a zone show at a moment, a timestamptz", "timestamp, format -> timestamp",
              "timezone({b}, timezone('UTC', {a}))", names=()),
        private=True, interval=_moved, null=_outside_null(0),
    ),
    replace(
        above("zone_moment", "x::timestamp AT TIME ZONE 'Europe/Zurich'",
              "the moment at which the clocks show a timestamp",
              "timestamp, format -> timestamp", "timezone('UTC', timezone({b}, {a}))", names=()),
        private=True, interval=_moved, null=_outside_null(0),
    ),
    replace(
        above("zone_cut", "date_trunc('month', x, 'Europe/Zurich')",
              "the moment at which the unit began by the clocks of a zone",
              "format, timestamp, format -> timestamp", _cut_above, names=(), output="date_trunc"),
        private=True, interval=_cut, null=_outside_null(1),
    ),
)  # fmt: skip
