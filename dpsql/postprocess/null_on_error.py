"""SQL that is NULL on error: what the printer writes for Postgres' operators over released values.

Each function takes operands that are already printed and returns SQL for the sealed engine that gives
Postgres' value where Postgres gives one and NULL where Postgres raises; it never raises.

House rules:

1. An operand is printed exactly once. DuckDB's NULLIF and `CASE x WHEN` copy their operand when they
   are bound: 18 nested NULLIFs take 40 seconds. What needs an operand twice binds it in a lambda:
   `list_filter([x], lambda v: ...)[1]`, `list_transform([x], lambda v: ...)[1]`.
2. An operand stands outside the lambda's body, since DuckDB allows no window there; and never within
   TRY(), which allows neither windows nor subqueries.
3. Operands are joined by spaces and parentheses (DuckDB 2.0 reads `%-` as one operator).
4. No DOUBLE is NaN or infinite: `released` loads none, and every result that could be is filtered.
   NUMERIC is carried as DOUBLE and read as its shortest decimal text, so 2.675 is a tie.
5. Integer operands may be wider than BIGINT (a released measure): beyond BIGINT they are NULL.
6. A template names no data: it depends on operands, types and literals of the statement alone.

Operands bound once, and the few casts that every form of `null_on_error` begins or ends with.

How large a number can be is told by its type and operators alone: what cannot overflow needs no look at each value.

`estimated(x, variance, number, …)` is x where it is shown. Where the truth is simulated, it is x with a normal error of
that variance: one deviate for each estimate of the statement, row and draw.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from ..plan.dialects.dialect import written
from ..plan.dialects.dialect_duckdb import DUCKDB
from ..relation.calendar import FormatPart
from ..relation.expressions import Call, Expr, map_children, walk
from ..relation.functions.numbers import Buckets
from ..relation.types import DOUBLE, Kind, SqlType

_ENGINE_TYPES = {
    Kind.BOOLEAN: "BOOLEAN",
    Kind.SMALLINT: "SMALLINT",
    Kind.INTEGER: "INTEGER",
    Kind.BIGINT: "BIGINT",
    Kind.NUMERIC: "DOUBLE",
    Kind.REAL: "FLOAT",
    Kind.DOUBLE: "DOUBLE",
    Kind.TEXT: "VARCHAR",
    Kind.DATE: "DATE",
    Kind.TIMESTAMP: "TIMESTAMP",
    Kind.TIME: "TIME",
    Kind.INTERVAL: "INTERVAL",
    Kind.NULL: "VARCHAR",
    Kind.JSON: "VARCHAR",
    Kind.JSONB: "VARCHAR",
}


def engine_type(declared: SqlType) -> str:
    """Return the DuckDB type that carries `declared`; ValueError for OPAQUE, which is never released."""
    if declared.element is not None:
        return f"{engine_type(declared.element)}[]"
    if declared.kind not in _ENGINE_TYPES:
        raise ValueError(f"a value of type {declared} is never released")
    return _ENGINE_TYPES[declared.kind]


def keep(operand: str, condition: str) -> str:
    """Return `operand` where `condition` holds of it, as v; else NULL."""
    return f"list_filter([{operand}], lambda v: {condition})[1]"


def bind(operand: str, body: str, name: str = "v") -> str:
    """Return `body` with `operand` bound to `name`."""
    return f"list_transform([{operand}], lambda {name}: {body})[1]"


def finite(operand: str) -> str:
    """Return a DOUBLE or FLOAT where it is finite; else NULL."""
    return keep(operand, "isfinite(v)")


def to_wide(operand: str) -> str:
    """Return an integer as HUGEINT, NULL beyond BIGINT: no sum, difference or product of two overflows."""
    return f"CAST(TRY_CAST(({operand}) AS BIGINT) AS HUGEINT)"


def to_integer(expression: str, result: SqlType) -> str:
    """Return a number as an integer type; NULL beyond its range."""
    return f"TRY_CAST(({expression}) AS {engine_type(result)})"


def to_double(operand: str) -> str:
    """Return a number as DOUBLE."""
    return f"CAST(({operand}) AS DOUBLE)"


def to_float(expression: str, result: SqlType) -> str:
    """Return the finite values of a DOUBLE, rounded to single precision when `result` is REAL."""
    return finite(f"TRY_CAST(({expression}) AS FLOAT)" if result.kind is Kind.REAL else expression)


def to_text(operand: str) -> str:
    """Return any value as VARCHAR."""
    return f"CAST(({operand}) AS VARCHAR)"


def to_int32(operand: str) -> str:
    """Return a number as INTEGER; NULL beyond its range."""
    return f"TRY_CAST(({operand}) AS INTEGER)"


# --- how large a number can be, by its type and operators alone ---------------------------------------------


_LIMIT = 1e300
_WIDEST_INTEGER = 2.0**63


def cannot_overflow(expr: Expr) -> bool:
    """Say whether a sum, difference or product of doubles is finite whatever its columns hold."""
    return expr.type.kind in (Kind.NUMERIC, Kind.DOUBLE) and _magnitude(expr) < _LIMIT


def _magnitude(expr: Expr) -> float:
    """Return what the absolute value of an expression never exceeds, rounded up; infinite when not known."""
    if expr.is_constant:
        is_number = expr.type.is_number and expr.constant is not None
        return abs(float(expr.constant)) * 2 if is_number else math.inf  # type: ignore[arg-type]
    if expr.type.is_integer:
        return _WIDEST_INTEGER
    if expr.type.kind is Kind.NUMERIC and expr.type.precision is not None:
        return 10.0 ** (expr.type.precision - (expr.type.scale or 0) + 1)
    if expr.calls("add", "sub", "mul"):
        left, right = map(_magnitude, expr.args)
        return 2 * (left * right if expr.calls("mul") else left + right)
    return math.inf


# --- the own error of estimates over randomised answers, as simulated error bars have it (soundness.md 1.24) ---


def holds_estimate(expr: Expr) -> bool:
    """Say whether an expression has an error of its own, whatever is under it."""
    return any(part.calls("estimated") for part in walk(expr))


def with_own_error(expr: Expr, draw: Expr, row: tuple[Expr, ...]) -> Expr:
    """Return an expression with each estimate at a draw of its error; NULL where its variance is not known."""
    if not expr.calls("estimated"):
        return map_children(expr, lambda child: with_own_error(child, draw, row))
    value, variance, number, _ = expr.args
    deviate = Call(DOUBLE, "deviate", (number, draw, *row))
    error = Call(DOUBLE, "mul", (Call(DOUBLE, "sqrt", (variance,)), deviate))
    return Call(DOUBLE, "add", (value, error))


def print_deviate(call: Call, args: list[str]) -> str:
    """Print a standard normal number that is a function of its arguments: of two uniform ones, as Box and Muller do.

    Hashes of several values are sums of theirs, so near ones are alike in DuckDB until they are hashed once more.
    """
    once = f"hash(hash({', '.join(args)}))"
    first, second = (
        f"((CAST({bits} AS DOUBLE) + 1e0) / 18446744073709551616e0)" for bits in (once, f"hash({once})")
    )
    return f"(sqrt(-2e0 * ln({first})) * cos(6.283185307179586e0 * {second}))"


# --- rounding, NULL on error, of DOUBLE, which carries NUMERIC too ------------------------------------------


_DECIMAL_DIGITS = 38
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


def _decimal(operand: str, scale: int) -> str:
    """Return the shortest decimal text of a DOUBLE as DECIMAL, half away from zero; NULL when too long."""
    return f"TRY_CAST(CAST({operand} AS VARCHAR) AS DECIMAL({_DECIMAL_DIGITS}, {scale}))"


def _decimal_to_double(operand: str) -> str:
    """Return the double nearest to a DECIMAL (DuckDB 1.4's own cast misses it by a bit)."""
    return f"CAST(CAST({operand} AS VARCHAR) AS DOUBLE)"


def _rounded(name: str, places: int) -> str:
    """Return the double `name`, a variable, rounded as `round_half_away` says."""
    if places < 0:
        whole = f"round(CAST({name} AS DOUBLE), {max(places, -400)})"
        exact = _decimal_to_double(f"round({_decimal(name, 19)}, {max(places, -_DECIMAL_DIGITS)})")
        return f"CASE WHEN abs({name}) < 1e{_SURE_DIGITS} THEN {exact} ELSE {whole} END"
    if places > _DECIMAL_DIGITS:
        return name
    if places == _DECIMAL_DIGITS:  # no DECIMAL holds them; a double of 1e-23 or more has no digit beyond them
        exact = f"CAST(CAST(CAST(round({name} * 1e{places}) AS BIGINT) AS VARCHAR) || 'e-{places}' AS DOUBLE)"
        return f"CASE WHEN abs({name}) < 1e-23 THEN {exact} ELSE {name} END"
    fits = f"abs({name}) < 1e{min(_SURE_DIGITS, _DECIMAL_DIGITS - 1 - places)}"
    scale = f"1e{places}"
    scaled = f"{name} * {scale}"
    is_plain = f"abs({scaled}) < 1e9 AND abs(abs({scaled}) - trunc(abs({scaled})) - 0.5) > 1e-6"
    by_double = f"round({scaled}) / {scale}"
    by_text = _decimal_to_double(_decimal(name, places))
    if places > _EXACT_POWER:
        is_nothing = f"abs({name}) < 4e-{places + 1}"
        return f"CASE WHEN {is_nothing} THEN 0e0 WHEN {fits} THEN {by_text} ELSE {name} END"
    return f"CASE WHEN {is_plain} THEN {by_double} WHEN {fits} THEN {by_text} ELSE {name} END"


# --- casts, NULL on error -----------------------------------------------------------------------------------


_SPACES = "chr(32) || chr(9) || chr(10) || chr(11) || chr(12) || chr(13)"
_TRUE = "'t', 'tr', 'tru', 'true', 'y', 'ye', 'yes', 'on', '1'"
_FALSE = "'f', 'fa', 'fal', 'fals', 'false', 'n', 'no', 'of', 'off', '0'"
_WHOLE = "[+-]?[0-9]+"
_NUMBER = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_TIME = r"[0-9]{1,2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6})?)?"
_MOMENT = rf"[0-9]{{4}}-[0-9]{{1,2}}-[0-9]{{1,2}}(?:[ T]{_TIME})?"


def cast(operand: str, source: SqlType, target: SqlType) -> str:
    """Return `CAST(operand AS target)` by Postgres' rules; NULL for what does not fit or does not parse.

    Doubles round half to even on their way to integers, NUMERIC half away from zero. Dates and
    timestamps parse from ISO text with years 0001 to 9999 alone. Raises ValueError for a pair of
    types that has no cast here.
    """
    if source.kind is Kind.NULL:
        return f"CAST(({operand}) AS {engine_type(target)})"
    if target.is_integer:
        return _cast_to_integer(operand, source, target)
    if target.kind is Kind.NUMERIC or target.is_float:
        return _cast_to_fraction(operand, source, target)
    if target.kind is Kind.TEXT:
        return _cast_to_text(operand, source)
    if source.kind is Kind.TEXT and target.kind is Kind.BOOLEAN:
        body = f"CASE WHEN v IN ({_TRUE}) THEN true WHEN v IN ({_FALSE}) THEN false END"
        return bind(f"lower(trim({to_text(operand)}, {_SPACES}))", body)
    if source.kind is Kind.TEXT and target.is_temporal:
        moment = keep(f"TRY_CAST({_matching(operand, _MOMENT)} AS TIMESTAMP)", "v >= DATE '0001-01-01'")
        return f"CAST({moment} AS {engine_type(target)})"
    if source.kind is Kind.TEXT and target.kind is Kind.TIME:
        return keep(f"TRY_CAST({_matching(operand, _TIME)} AS TIME)", "v <= TIME '23:59:59.999999'")
    is_truth = target.kind is Kind.BOOLEAN and (source.is_integer or source.kind is Kind.BOOLEAN)
    if is_truth or (target.is_temporal and source.is_temporal):
        return f"CAST(({operand}) AS {engine_type(target)})"
    raise ValueError(f"there is no cast from {source} to {target}")


def _cast_to_integer(operand: str, source: SqlType, target: SqlType) -> str:
    if source.kind is Kind.TEXT:
        return to_integer(_matching(operand, _WHOLE), target)
    if source.kind is Kind.NUMERIC:
        return to_integer(f"round({to_double(operand)})", target)
    if source.is_number or source.kind is Kind.BOOLEAN:
        return to_integer(to_wide(operand), target)  # DuckDB 1.4 casts 32767.5 to the SMALLINT -32768
    raise ValueError(f"there is no cast from {source} to {target}")


def _cast_to_fraction(operand: str, source: SqlType, target: SqlType) -> str:
    if source.kind is Kind.TEXT:
        value = finite(f"TRY_CAST({_matching(operand, _NUMBER)} AS DOUBLE)")
    elif source.kind is Kind.REAL and target.kind is Kind.NUMERIC:
        value = to_double(to_text(operand))  # 0.1::real is 0.1, not 0.10000000149
    elif source.is_number:
        value = to_double(operand)
    else:
        raise ValueError(f"there is no cast from {source} to {target}")
    if target.kind is Kind.REAL:
        return to_float(value, target)
    if target.precision is None:
        return value
    scale = target.scale or 0
    return keep(round_half_away(value, scale), f"abs(v) < 1e{target.precision - scale}")


def _cast_to_text(operand: str, source: SqlType) -> str:
    if source.kind is Kind.NUMERIC and source.scale is not None and source.scale < _DECIMAL_DIGITS:
        return bind(
            round_half_away(operand, source.scale),
            f"coalesce(CAST({_decimal('v', source.scale)} AS VARCHAR), CAST(v AS VARCHAR))",
        )
    if source.is_float or source.kind is Kind.NUMERIC:
        single = "FLOAT" if source.kind is Kind.REAL else "DOUBLE"
        return f"regexp_replace(CAST(CAST(({operand}) AS {single}) AS VARCHAR), '\\.0$', '')"
    if source.kind in (Kind.INTERVAL, Kind.OPAQUE):
        raise ValueError(f"there is no cast from {source} to text")
    return to_text(operand)


def _matching(operand: str, pattern: str) -> str:
    """Return the text between spaces when it matches `pattern` as a whole, else an empty text."""
    return f"regexp_extract({to_text(operand)}, '^\\s*({pattern})\\s*$', 1)"


# --- functions, NULL on error, of dates and timestamps ------------------------------------------------------


_MAX_YEARS = 20_000
_TRUNC_UNITS = frozenset(
    {
        "microseconds",
        "milliseconds",
        "second",
        "minute",
        "hour",
        "day",
        "week",
        "month",
        "quarter",
        "year",
        "decade",
    }
)
_EXTRACT_FIELDS = frozenset(
    {"minute", "hour", "day", "dow", "isodow", "doy", "week", "month", "quarter", "year", "isoyear", "decade",
     "century", "millennium", "epoch"}
)  # fmt: skip
_EXTRACT_FROM_MICROSECONDS = {"second": "1e6", "milliseconds": "1e3", "microseconds": "1e0"}


def add_days(date: str, days: str) -> str:
    """Return `date + days` as DATE; NULL outside the years 0001 to 9999."""
    number = f"CAST({_date_number(date)} + {to_wide(days)} AS HUGEINT)"
    return f"make_date(CAST({keep(number, 'v BETWEEN -719162 AND 2932896')} AS INTEGER))"


def days_between(later: str, earlier: str) -> str:
    """Return `later - earlier`, two dates, as INTEGER."""
    return f"CAST({_date_number(later)} - {_date_number(earlier)} AS INTEGER)"


def add_interval(operand: str, months: int = 0, days: int = 0, microseconds: int = 0) -> str:
    """Return a date or timestamp plus a literal interval as TIMESTAMP; NULL outside years 0001 to 9999."""
    if max(abs(months) // 12, abs(days) // 365, abs(microseconds) // (365 * 86400 * 10**6)) > _MAX_YEARS:
        return "CAST(NULL AS TIMESTAMP)"
    interval = f"to_months({months}) + to_days({days}) + to_microseconds({microseconds})"
    moved = f"CAST(({operand}) AS TIMESTAMP) + ({interval})"
    return keep(moved, "v >= TIMESTAMP '0001-01-01' AND v < TIMESTAMP '10000-01-01'")


def extract(field: str, operand: str) -> str:
    """Return `extract(field FROM operand)` as DOUBLE (Postgres: numeric), seconds with their fraction.

    Raises ValueError for a field that has no form here.
    """
    if field in _EXTRACT_FROM_MICROSECONDS:
        unit = _EXTRACT_FROM_MICROSECONDS[field]
        return f"(CAST(extract('microseconds' FROM CAST(({operand}) AS TIMESTAMP)) AS DOUBLE) / {unit})"
    if field not in _EXTRACT_FIELDS:
        raise ValueError(f"no such field: {field}")
    return f"CAST(extract('{field}' FROM CAST(({operand}) AS TIMESTAMP)) AS DOUBLE)"


def date_trunc(unit: str, operand: str) -> str:
    """Return `date_trunc(unit, operand)` as TIMESTAMP, for dates too; NULL before the year 0001.

    Raises ValueError for a unit that has no form here (centuries begin elsewhere in DuckDB).
    """
    if unit not in _TRUNC_UNITS:
        raise ValueError(f"no such unit: {unit}")
    truncated = f"CAST(date_trunc('{unit}', CAST(({operand}) AS TIMESTAMP)) AS TIMESTAMP)"
    return keep(truncated, "v >= TIMESTAMP '0001-01-01'")


def date_bin(operand: str, width: int, origin: int) -> str:
    """Return `date_bin` as TIMESTAMP, of bins of `width` microseconds counted from `origin`; NULL before the year 1."""
    since = f"(epoch_us(v) - {origin % width})"
    begun = bind(
        f"CAST(({operand}) AS TIMESTAMP)", f"v - to_microseconds((({since} % {width}) + {width}) % {width})"
    )
    return keep(begun, "v >= TIMESTAMP '0001-01-01'")


def to_char(operand: str, parts: Sequence[FormatPart]) -> str:
    """Return a date or timestamp as a text of some parts."""
    return bind(f"CAST(({operand}) AS TIMESTAMP)", written(parts, "v", DUCKDB))


def _date_number(date: str) -> str:
    return f"(CAST(({date}) AS DATE) - DATE '1970-01-01')"


# --- arithmetic, aggregates and conditionals, NULL on error -------------------------------------------------


_MAX_VARIANCE_INPUT = "1e150"
_MAX_PAIR_INPUT = "1e70"


def arithmetic(operator: str, left: str, right: str, result: SqlType) -> str:
    """Return `left operator right` for +, - or *, of type `result`; NULL on overflow."""
    if operator not in ("+", "-", "*"):
        raise ValueError(f"not an arithmetic operator: {operator}")
    if result.is_integer:
        return to_integer(f"{to_wide(left)} {operator} {to_wide(right)}", result)
    return to_float(f"{to_double(left)} {operator} {to_double(right)}", result)


def divide(left: str, right: str, result: SqlType) -> str:
    """Return `left / right`: integers truncate toward zero; NULL on division by zero and overflow."""
    if result.is_integer:
        return to_integer(f"{to_wide(left)} // {to_wide(right)}", result)
    return to_float(f"{to_double(left)} / {to_double(right)}", result)


def modulo(left: str, right: str, result: SqlType) -> str:
    """Return `left % right` with the sign of `left`; NULL when `right` is zero."""
    if result.is_integer:
        return to_integer(f"{to_wide(left)} % {to_wide(right)}", result)
    return to_float(f"{to_double(left)} % {to_double(right)}", result)


def negate(operand: str, result: SqlType) -> str:
    """Return `- operand`; NULL for the smallest integer."""
    return arithmetic("-", "0", operand, result)


def absolute(operand: str, result: SqlType) -> str:
    """Return `abs(operand)`; NULL for the smallest integer."""
    if result.is_integer:
        return to_integer(f"abs({to_wide(operand)})", result)
    return to_float(f"abs({to_double(operand)})", result)


def scalar_subquery(query: str) -> str:
    """Return the value of a query of one column; NULL for no row and for more than one."""
    return f"(SELECT CASE WHEN count(*) = 1 THEN any_value(q.v) END FROM ({query}) AS q(v))"


def pair(function: str, y: str, x: str, tail: str = "") -> str:
    """Return an aggregate of two values, NULL where Postgres has none or a sum leaves the doubles."""
    bound = f"greatest(least(v, {_MAX_PAIR_INPUT}), -{_MAX_PAIR_INPUT})"
    known = [bind(to_double(one), f"CASE WHEN v IS NOT NULL THEN {bound} END") for one in (y, x)]
    called = f"{function}({known[0]}, {known[1]}){tail}"
    return f"CAST({called} AS BIGINT)" if function == "regr_count" else to_float(called, DOUBLE)


def aggregate(function: str, operand: str, operand_type: SqlType, tail: str = "") -> str:
    """Return an aggregate or window call of Postgres' result type, NULL on overflow.

    `function`: sum, avg, stddev_samp, stddev_pop, var_samp or var_pop. `tail`: what follows the
    call, FILTER and OVER, as printed. SUM of BIGINT, and AVG of integers, are NUMERIC (a DOUBLE
    here). A variance above 1e300 is NULL: inputs are clamped to ±1e150, as DuckDB 1.4 raises beyond.
    (COUNT, MIN, MAX, LAG, RANK and the like are total as they are.)
    """
    if function == "sum" and operand_type.is_integer:
        total = f"sum(TRY_CAST(({operand}) AS BIGINT)){tail}"
        return (
            f"CAST({total} AS DOUBLE)" if operand_type.kind is Kind.BIGINT else f"TRY_CAST({total} AS BIGINT)"
        )
    if function in ("sum", "avg"):
        is_real_sum = function == "sum" and operand_type.kind is Kind.REAL
        return to_float(f"{function}({to_double(operand)}){tail}", operand_type if is_real_sum else DOUBLE)
    if function not in ("stddev_samp", "stddev_pop", "var_samp", "var_pop"):
        raise ValueError(f"no total form for the aggregate {function}")
    bound = f"greatest(least(v, {_MAX_VARIANCE_INPUT}), -{_MAX_VARIANCE_INPUT})"
    clamped = bind(to_double(operand), f"CASE WHEN v IS NOT NULL THEN {bound} END")
    variance = keep(f"{function.replace('stddev', 'var')}({clamped}){tail}", "v < 1e299")
    return f"sqrt({variance})" if function.startswith("stddev") else variance


def _double(number: Fraction) -> str:
    return f"CAST('{float(number)!r}' AS DOUBLE)"


def width_bucket(operand: str, buckets: Buckets) -> str:
    """Return `width_bucket(operand, …)` as INTEGER: exact numbers by their edges, doubles as they are computed."""
    low, high = (_double(end) for end in (buckets.low, buckets.high))
    below, beyond = ("<", ">=") if buckets.rises else (">", "<=")
    if buckets.of_doubles:
        way = f"(v - {low})" if buckets.rises else f"({low} - v)"
        share = f"{buckets.count} * ({way} / {_double(buckets.width)})"
        inside = f"least(trunc({share}), {buckets.count - 1}) + 1"
    else:
        edges = ", ".join(_double(edge) for edge in buckets.edges)
        inside = f"len(list_filter([{edges}], lambda e: {'e <= v' if buckets.rises else 'e >= v'}))"
    case = (
        f"CASE WHEN v {below} {low} THEN 0 WHEN v {beyond} {high} THEN {buckets.count + 1} "
        f"WHEN v IS NOT NULL THEN {inside} END"
    )
    return f"TRY_CAST({bind(to_double(operand), case)} AS INTEGER)"


# --- functions, NULL on error, of text ----------------------------------------------------------------------


MAX_TEXT_BYTES = 1_000_000
"""A longer concatenation is NULL: doubling a text in nested queries must not take the memory."""


def concatenate(left: str, right: str) -> str:
    """Return `left || right` of two texts; NULL beyond `MAX_TEXT_BYTES`."""
    return keep(f"{to_text(left)} || {to_text(right)}", f"strlen(v) <= {MAX_TEXT_BYTES}")


def substring(text: str, start: str, length: str | None = None) -> str:
    """Return Postgres' `substring(text FROM start FOR length)`: positions before 1 count but hold nothing."""
    if length is None:
        return bind(f"{{'s': {to_text(text)}, 'a': {to_int32(start)}}}",
                    "CASE WHEN v.a IS NOT NULL THEN substring(v.s, greatest(v.a, 1)) END")  # fmt: skip
    operands = f"{{'s': {to_text(text)}, 'a': {to_int32(start)}, 'n': {to_int32(length)}}}"
    count = "greatest(CAST(v.a AS BIGINT) + v.n - greatest(v.a, 1), 0)"
    body = f"CASE WHEN v.a IS NOT NULL AND v.n >= 0 THEN substring(v.s, greatest(v.a, 1), {count}) END"
    return bind(operands, body)


def like(text: str, pattern: str, *, escape: str = "\\", ignore_case: bool = False) -> str:
    """Return `text LIKE pattern ESCAPE escape`; NULL when the pattern ends in an escape.

    `escape`: one ASCII character that is no quote, from the statement; empty for none. Raises ValueError
    for any other.
    """
    word = "ILIKE" if ignore_case else "LIKE"
    if not escape:
        return f"({to_text(text)} {word} {to_text(pattern)})"
    if len(escape) != 1 or not "!" <= escape <= "~" or escape == "'":
        raise ValueError("an escape is one printable ASCII character")
    code = f"\\x{{{ord(escape):x}}}"
    complete = keep(to_text(pattern), f"regexp_full_match(v, '(?s)([^{code}]|{code}.)*')")
    return f"({to_text(text)} {word} {complete} ESCAPE '{escape}')"


# --- SQL that is NULL on error: what the printer writes for Postgres' operators over released values --------
