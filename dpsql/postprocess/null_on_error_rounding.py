"""Rounding, NULL on error, of DOUBLE, which carries NUMERIC too; `null_on_error` has the house rules."""

from __future__ import annotations

from .bind import bind, to_double

__all__ = ["DECIMAL_DIGITS", "decimal", "decimal_to_double", "round_half_away", "round_half_even", "truncate"]

DECIMAL_DIGITS = 38
"""What DuckDB's widest DECIMAL holds."""
_EXACT_POWER = 22
"""The last power of ten that a double holds exactly."""
_SURE_DIGITS = 17
"""A double's shortest text has so many digits at most: from 10^17 on it is an integer."""


def round_half_even(operand: str) -> str:
    """Return Postgres' `round(double precision)`, as DOUBLE.

    DuckDB casts to BIGINT by half-even; from 2^52 on a double is integral. (Its own `round` goes away
    from zero, and its `round_even` is a macro that multiplies by ten and errs from 2^52 / 10 on.)
    """
    integral = "CASE WHEN abs(v) < 4503599627370496 THEN CAST(TRY_CAST(v AS BIGINT) AS DOUBLE) ELSE v END"
    return bind(to_double(operand), integral)


def round_half_away(operand: str, places: int = 0) -> str:
    """Return Postgres' `round(numeric, places)`, as DOUBLE: ties of the decimal text go away from zero.

    Away from ties doubles are good enough; within 1e-6 of one the shortest decimal text decides
    (1.005 is 1.01 at two places). Above 10^17 negative `places` are rounded as doubles.
    """
    return bind(to_double(operand), _rounded("v", places))


def truncate(operand: str, places: int = 0) -> str:
    """Return Postgres' `trunc(numeric, places)`, as DOUBLE, of the number's shortest decimal text.

    With no places it is also `trunc(double precision)`. Where `places` reach the sixteenth digit of
    the number, that digit may be one off.
    """
    if places == 0:
        return f"trunc({to_double(operand)})"
    # Round, and where that went away from zero take one step back. The second rounding leaves the
    # double that is nearest to the decimal.
    step = f"{'1e' if places < 0 else '1e-'}{abs(places)}"
    back = bind(f"w.r - sign(w.r) * {step}", _rounded("u", places), "u")
    body = f"CASE WHEN abs(w.r) <= abs(w.v) THEN w.r ELSE {back} END"
    pair = f"list_transform([{to_double(operand)}], lambda v: {{'v': v, 'r': {_rounded('v', places)}}})[1]"
    return bind(pair, body, "w")


def decimal(operand: str, scale: int) -> str:
    """Return the shortest decimal text of a DOUBLE as DECIMAL, half away from zero; NULL when too long."""
    return f"TRY_CAST(CAST({operand} AS VARCHAR) AS DECIMAL({DECIMAL_DIGITS}, {scale}))"


def decimal_to_double(operand: str) -> str:
    """Return the double nearest to a DECIMAL (DuckDB 1.4's own cast misses it by a bit)."""
    return f"CAST(CAST({operand} AS VARCHAR) AS DOUBLE)"


def _rounded(name: str, places: int) -> str:
    """Return the double `name`, a variable, rounded as `round_half_away` says."""
    if places < 0:
        whole = f"round(CAST({name} AS DOUBLE), {max(places, -400)})"
        exact = decimal_to_double(f"round({decimal(name, 19)}, {max(places, -DECIMAL_DIGITS)})")
        return f"CASE WHEN abs({name}) < 1e{_SURE_DIGITS} THEN {exact} ELSE {whole} END"
    if places >= DECIMAL_DIGITS:
        return name
    fits = f"abs({name}) < 1e{min(_SURE_DIGITS, DECIMAL_DIGITS - 1 - places)}"
    scale = f"1e{places}"
    scaled = f"{name} * {scale}"
    is_plain = f"abs({scaled}) < 1e9 AND abs(abs({scaled}) - trunc(abs({scaled})) - 0.5) > 1e-6"
    by_double = f"round({scaled}) / {scale}"
    by_text = decimal_to_double(decimal(name, places))
    if places > _EXACT_POWER:
        is_nothing = f"abs({name}) < 4e-{places + 1}"
        return f"CASE WHEN {is_nothing} THEN 0e0 WHEN {fits} THEN {by_text} ELSE {name} END"
    return f"CASE WHEN {is_plain} THEN {by_double} WHEN {fits} THEN {by_text} ELSE {name} END"
