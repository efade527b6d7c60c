"""Functions of dates and timestamps, all of them in UTC."""

from __future__ import annotations

from fractions import Fraction

from sqlglot import exp

from ..calendar import EXTRACT_FIELDS, TRUNC_UNITS, extract_bounds, truncate_bounds
from ..expressions import Call, Literal
from ..facts import ONE, Facts
from ..types import NUMERIC, TIMESTAMP, SqlType
from .row import Args, Function, Shorthand, Syntax, any_null

__all__ = ["ROWS"]


def _extract_type(args: Args) -> SqlType | None:
    return NUMERIC if args[1].type.is_temporal else None


def _trunc_type(args: Args) -> SqlType | None:
    return TIMESTAMP if args[1].type.is_temporal else None


def _unit(call: Call) -> str:
    unit = call.args[0]
    assert isinstance(unit, Literal)
    return str(unit.value)


def _field(args: list[Facts], call: Call) -> tuple[Fraction, Fraction, bool] | None:
    return extract_bounds(_unit(call), args[1].lo, args[1].hi, call.args[1].type)


def _extract(args: list[Facts], call: Call) -> Facts:
    bounds = _field(args, call)
    if bounds is None:
        return Facts()
    lo, hi, whole = bounds
    return Facts(lo, hi, ONE if whole else None, declared=True)


def _extract_null(args: list[Facts], call: Call) -> bool:
    # 'infinity' has no field: NULL, unless the column is clamped into declared bounds first.
    return any_null(args, call) or not args[1].declared or _field(args, call) is None


def _date_trunc(args: list[Facts], call: Call) -> Facts:
    a = args[1]
    if a.lo is None or a.hi is None:
        return Facts(grid=ONE)
    lo, hi = truncate_bounds(_unit(call), a.lo, a.hi, call.args[1].type)
    return Facts(lo, hi, ONE, declared=a.declared)


def _trunc_null(args: list[Facts], call: Call) -> bool:
    return any_null(args, call) or not args[1].bounded  # outside the years 1 to 9999: NULL


ROWS: tuple[Function | Shorthand, ...] = (
    Function(
        "extract", "extract(year FROM x)", f"a field of a moment: {', '.join(EXTRACT_FIELDS)}", _extract_type,
        _extract, (Syntax(exp.Extract, read=("this", "expression")),), null=_extract_null,
    ),
    Function(
        "date_trunc", "date_trunc('month', x)", f"a moment cut to its unit: {', '.join(TRUNC_UNITS)}", _trunc_type,
        _date_trunc, (Syntax(exp.TimestampTrunc, read=("this", "unit", "zone")),), null=_trunc_null,
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
        "x AT TIME ZONE 'UTC'", "a moment, which is in UTC already; no other zone",
        (Syntax(exp.AtTimeZone, read=("this", "zone")),),
    ),
)  # fmt: skip
