"""Expressions on private rows, printed for DuckDB: total for every content the column types allow.

House rules (law L2, L3; soundness.md 1.9, 1.11):

1. Exact numbers are printed as integers of a known grid, wide enough by interval arithmetic that no
   operation can overflow; reals as DOUBLE, in which no operation of the list raises.
2. A column that enters arithmetic is clamped in its own type first, to the bounds that the interval
   rules used. A bare column in a comparison is total as it stands.
3. No guard is relied on: arguments of sqrt, ln and exp are clamped into their domain, divisors pass
   NULLIF, and a CASE here only chooses between values that are all total.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction

from ..errors import Refusal
from ..relation.expressions import Call, Expr, Field, Literal, StageValue
from ..relation.intervals import Environment, Facts, facts_of
from ..relation.types import Kind
from .quote import decimal, identifier, literal, text

__all__ = ["Number", "PrivatePrinter", "clamp"]

_BIG = 2**62
_HUGE = 2**125


@dataclass(frozen=True, slots=True)
class Number:
    """A printed number: an integer count of `grid`, or a DOUBLE when `grid` is None."""

    sql: str
    grid: Fraction | None


def _decimal_scale(grid: Fraction) -> int | None:
    """Return the digits after the point that a grid needs; None when no number of digits is enough."""
    return next((scale for scale in range(13) if (grid * 10**scale).denominator == 1), None)


def clamp(sql: str, lo: str, hi: str, *, nan: bool = False) -> str:
    """Return `sql` limited to [lo, hi]; NULL stays NULL, and NaN becomes NULL.

    A CASE costs a fraction of LEAST(GREATEST()), and does not turn NULL into a bound.
    """
    above = f"{sql} > {hi} AND {sql} <= CAST('Infinity' AS DOUBLE)" if nan else f"{sql} > {hi}"
    return f"CASE WHEN {sql} BETWEEN {lo} AND {hi} THEN {sql} WHEN {sql} < {lo} THEN {lo} WHEN {above} THEN {hi} END"


def _integer_type(facts: Facts, grid: Fraction, expr: Expr) -> str:
    """Return the integer type that holds every value of an expression, by interval arithmetic."""
    if facts.lo is None or facts.hi is None:
        raise _unbounded(expr)
    reach = max(abs(facts.lo), abs(facts.hi)) / grid
    if reach < _BIG:
        return "BIGINT"
    if reach < _HUGE:
        return "HUGEINT"
    raise Refusal(
        "this arithmetic could overflow", sqlstate="PV202", position=expr.position, hint="narrow the bounds"
    )


def _unbounded(expr: Expr) -> Refusal:
    from ..relation.expressions import walk

    named = next((part for part in walk(expr) if isinstance(part, Field) and part.name), None)
    if named is None:
        return Refusal(
            "this expression has no finite bounds", sqlstate="PV201", position=expr.position,
            hint="keep 0 out of divisors, and clamp with GREATEST and LEAST",
        )  # fmt: skip
    return Refusal(
        f'bounds of column "{named.name}" are not declared',
        sqlstate="PV101",
        position=named.position or expr.position,
        hint=f"ask the owner to declare bounds for {named.name}",
    )


@dataclass
class PrivatePrinter:
    """Prints expressions over the rows of one table; stage values become numbered parameters."""

    env: Environment
    owner: str
    parameters: list[StageValue] = field(default_factory=list)
    first_parameter: int = 2

    def column(self, expr: Field) -> str:
        """Return a column of the table, or its hidden owner column."""
        columns = self.env.columns
        shown = identifier(columns[expr.index].name if expr.index < len(columns) else self.owner)
        # An ENUM is TEXT to us; compared with a text outside its list it would raise.
        return f"CAST({shown} AS VARCHAR)" if expr.type.kind is Kind.TEXT else shown

    # --- any type --------------------------------------------------------------------------------

    def value(self, expr: Expr) -> str:
        """Return SQL with the expression's value, numbers in their own unit."""
        if isinstance(expr, Field):
            return self.column(expr)
        if isinstance(expr, Literal):
            return literal(expr)
        if isinstance(expr, StageValue):
            return self._stage(expr)
        if expr.type.is_number:
            return self._plain_number(expr)
        assert isinstance(expr, Call)
        form = _FORMS.get(expr.function)
        if form is None:
            raise Refusal(
                f"{expr.function}() cannot be used on private rows", sqlstate="PV202", position=expr.position
            )
        return form(self, expr)

    def key(self, expr: Expr) -> str:
        """Return a group key in canonical form: text compared bytewise, numbers exact."""
        if expr.type.is_float:
            raise Refusal(
                "a floating-point expression cannot be a group key",
                sqlstate="PV202",
                position=expr.position,
                hint="bin it: floor(x / 10) * 10, or cast it to integer",
            )
        shown = self.value(expr)
        return f"{shown} COLLATE C" if expr.type.kind is Kind.TEXT else shown

    def _stage(self, expr: StageValue) -> str:
        if expr not in self.parameters:
            self.parameters.append(expr)
        number = self.first_parameter + self.parameters.index(expr)
        type_ = "DOUBLE" if expr.type.is_number else _CASTS[expr.type.kind]
        return f"CAST(${number} AS {type_})"

    def _plain_number(self, expr: Expr) -> str:
        """Return a computed number in its own unit: exact ones as integers or DECIMAL."""
        number = self.number(expr)
        if number.grid == 1:
            return number.sql
        facts = facts_of(expr, self.env)
        scale = None if number.grid is None else _decimal_scale(number.grid)
        if number.grid is None or scale is None or facts.lo is None or facts.hi is None:
            raise Refusal(
                "this number has no exact decimal form, so it cannot be a group key or a distinct value",
                sqlstate="PV202",
                position=expr.position,
                hint="round it, floor it, or cast it to integer or numeric(p,s)",
            )
        whole = f"({number.sql} * {(number.grid * 10**scale).numerator})"
        if scale == 0:
            return whole
        if max(abs(facts.lo), abs(facts.hi)) >= 10 ** (36 - 2 * scale):
            raise Refusal("this number is too large to be a key", sqlstate="PV202", position=expr.position)
        unit = "0." + "1".rjust(scale, "0")
        return f"(CAST({whole} AS DECIMAL(38, 0)) * {unit})"

    def boolean(self, expr: Expr) -> str:
        """Return a predicate."""
        return self.value(expr)

    # --- numbers ---------------------------------------------------------------------------------

    def number(self, expr: Expr) -> Number:
        """Return a number for arithmetic: clamped, on its grid, or as DOUBLE."""
        facts = facts_of(expr, self.env)
        if isinstance(expr, Literal):
            return self._literal_number(expr)
        if isinstance(expr, Field):
            return self._leaf(expr, facts)
        if isinstance(expr, StageValue):
            return Number(self._stage(expr), None)
        assert isinstance(expr, Call)
        form = _NUMBERS.get(expr.function)
        if form is None:
            raise Refusal(
                f"{expr.function}() cannot be used on private rows", sqlstate="PV202", position=expr.position
            )
        return form(self, expr, facts)

    def _literal_number(self, expr: Literal) -> Number:
        value = expr.value
        if value is None:
            return Number("CAST(NULL AS BIGINT)", Fraction(1))
        if isinstance(value, float) or not isinstance(value, (int, Fraction)):
            assert isinstance(value, float)
            return Number(f"CAST({text(repr(value))} AS DOUBLE)", None)
        number = Fraction(value)
        grid = Fraction(1, number.denominator)
        kind = "BIGINT" if abs(number.numerator) < _BIG else "HUGEINT"
        if abs(number.numerator) >= _HUGE:
            raise Refusal("this number is out of range", sqlstate="22023", position=expr.position)
        return Number(f"CAST({number.numerator} AS {kind})", grid)

    def _leaf(self, expr: Field, facts: Facts) -> Number:
        """Return a column, clamped in its own type unless its type or a constraint already bounds it."""
        shown = self.column(expr)
        if expr.type.is_float:
            if facts.lo is None or facts.hi is None:
                raise _unbounded(expr)
            lo, hi = (f"CAST({text(repr(float(end)))} AS DOUBLE)" for end in (facts.lo, facts.hi))
            source = f"CAST({shown} AS DOUBLE)" if expr.type.kind is Kind.REAL else shown
            return Number(f"({clamp(source, lo, hi, nan=True)})", None)
        assert facts.grid is not None or expr.type.kind is Kind.NUMERIC
        if facts.grid is None or facts.lo is None or facts.hi is None:
            raise _unbounded(expr)
        kind = _integer_type(facts, facts.grid, expr)
        if not self.is_held(expr, facts.lo, facts.hi):
            ends = decimal(facts.lo), decimal(facts.hi)
            if ends[0] is None or ends[1] is None:
                raise _unbounded(expr)
            shown = f"({clamp(shown, ends[0], ends[1])})"
        if facts.grid != 1:
            shown = f"{shown} * {(1 / facts.grid).numerator}"
        return Number(f"CAST({shown} AS {kind})", facts.grid)

    def is_held(self, expr: Field, lo: Fraction, hi: Fraction) -> bool:
        """Say whether the engine itself holds the column inside [lo, hi], by its type or a CHECK constraint."""
        column = self.env.columns[expr.index]
        bare = facts_of(Field(expr.type, 0), Environment([replace(column, bounds=None, values=None)]))
        lows = [end for end in (bare.lo, column.enforced.lo) if end is not None]
        highs = [end for end in (bare.hi, column.enforced.hi) if end is not None]
        return bool(lows and highs) and max(lows) >= lo and min(highs) <= hi

    def on_grid(self, number: Number, grid: Fraction | None) -> str:
        """Return a number as an integer count of a finer grid, or as DOUBLE for None."""
        if grid is None:
            return self.double(number)
        assert number.grid is not None
        factor = number.grid / grid
        assert factor.denominator == 1
        return number.sql if factor == 1 else f"({number.sql} * {factor.numerator})"

    def double(self, number: Number) -> str:
        """Return a number as DOUBLE in its own unit."""
        if number.grid is None:
            return number.sql
        shown = f"CAST({number.sql} AS DOUBLE)"
        if number.grid.numerator != 1:
            shown = f"({shown} * {number.grid.numerator}e0)"
        return shown if number.grid.denominator == 1 else f"({shown} / {number.grid.denominator}e0)"

    def aligned(self, exprs: list[Expr], grid: Fraction | None) -> list[str]:
        """Return numbers on one grid."""
        return [self.on_grid(self.number(expr), grid) for expr in exprs]


_CASTS = {
    Kind.TEXT: "VARCHAR", Kind.BOOLEAN: "BOOLEAN", Kind.DATE: "DATE", Kind.TIMESTAMP: "TIMESTAMP",
}  # fmt: skip


# --- numeric forms -----------------------------------------------------------------------------------


def _widened(printer: PrivatePrinter, expr: Call, facts: Facts, sign: str) -> Number:
    if expr.type.is_temporal or any(arg.type.is_temporal for arg in expr.args):
        return _days_between(printer, expr, facts)
    numbers = [printer.number(arg) for arg in expr.args]
    if facts.grid is None:
        left, right = (printer.double(number) for number in numbers)
        return Number(f"({left} {sign} {right})", None)
    kind = _integer_type(facts, facts.grid, expr)
    left, right = (printer.on_grid(number, facts.grid) for number in numbers)
    for arg in expr.args:
        inner = facts_of(arg, printer.env)
        assert inner.lo is not None
        assert inner.hi is not None
        if max(abs(inner.lo), abs(inner.hi)) / facts.grid >= _BIG:
            kind = "HUGEINT"
    if kind == "HUGEINT":
        left, right = (f"CAST({number.sql} AS HUGEINT)" for number in numbers)
        factors = [(number.grid or facts.grid) / facts.grid for number in numbers]
        left, right = (
            side if factor == 1 else f"({side} * {factor.numerator})"
            for side, factor in zip((left, right), factors, strict=True)
        )
    return Number(f"({left} {sign} {right})", facts.grid)


def _add(printer: PrivatePrinter, expr: Call, facts: Facts) -> Number:
    return _widened(printer, expr, facts, "+" if expr.function == "add" else "-")


def _days_between(printer: PrivatePrinter, expr: Call, facts: Facts) -> Number:
    if facts.lo is None or not all(arg.type.kind is Kind.DATE for arg in expr.args):
        raise _unbounded(expr)
    later, earlier = (_moment(printer, arg) for arg in expr.args)
    return Number(f"date_diff('day', {earlier}, {later})", Fraction(1))


def _mul(printer: PrivatePrinter, expr: Call, facts: Facts) -> Number:
    numbers = [printer.number(arg) for arg in expr.args]
    if facts.grid is None:
        left, right = (printer.double(number) for number in numbers)
        return Number(f"({left} * {right})", None)
    kind = _integer_type(facts, facts.grid, expr)
    left, right = (number.sql for number in numbers)
    if kind == "HUGEINT":
        left, right = f"CAST({left} AS HUGEINT)", f"CAST({right} AS HUGEINT)"
    return Number(f"({left} * {right})", facts.grid)


def _div(printer: PrivatePrinter, expr: Call, facts: Facts) -> Number:
    numbers = [printer.number(arg) for arg in expr.args]
    if expr.type.is_integer:
        kind = _integer_type(facts, Fraction(1), expr)
        left, right = (printer.on_grid(number, Fraction(1)) for number in numbers)
        if kind == "HUGEINT":
            left = f"CAST({left} AS HUGEINT)"
        return Number(f"({left} // NULLIF({right}, 0))", Fraction(1))
    if facts.grid is not None and numbers[0].grid is not None:  # an exact number over a constant
        divisor = facts_of(expr.args[1], printer.env).lo
        assert divisor is not None
        return Number(numbers[0].sql if divisor > 0 else f"(-{numbers[0].sql})", facts.grid)
    left, right = (printer.double(number) for number in numbers)
    return Number(f"({left} / NULLIF({right}, 0e0))", None)


def _mod(printer: PrivatePrinter, expr: Call, facts: Facts) -> Number:
    if facts.grid is None:
        raise _unbounded(expr)
    left, right = printer.aligned(list(expr.args), facts.grid)
    return Number(f"({left} % NULLIF({right}, 0))", facts.grid)


def _neg(printer: PrivatePrinter, expr: Call, facts: Facts) -> Number:
    number = printer.number(expr.args[0])
    if number.grid is None:
        return Number(f"(-{number.sql})", None)
    kind = _integer_type(facts, number.grid, expr)
    return Number(f"(-CAST({number.sql} AS {kind}))", number.grid)


def _abs(printer: PrivatePrinter, expr: Call, facts: Facts) -> Number:
    number = printer.number(expr.args[0])
    if number.grid is None:
        return Number(f"abs({number.sql})", None)
    kind = _integer_type(facts, number.grid, expr)
    return Number(f"abs(CAST({number.sql} AS {kind}))", number.grid)


def _chosen(printer: PrivatePrinter, expr: Call, facts: Facts) -> Number:
    """CASE, COALESCE, GREATEST, LEAST, NULLIF over numbers, all branches on one grid."""
    if expr.function == "case":
        values = [*range(1, len(expr.args) - 1, 2), len(expr.args) - 1]
    elif expr.function == "nullif":
        return _nullif_number(printer, expr)
    else:
        values = list(range(len(expr.args)))
    shown = dict(zip(values, printer.aligned([expr.args[i] for i in values], facts.grid), strict=True))
    if expr.function == "case":
        branches = [
            f"WHEN {printer.boolean(expr.args[i])} THEN {shown[i + 1]}"
            for i in range(0, len(expr.args) - 1, 2)
        ]
        return Number(f"CASE {' '.join(branches)} ELSE {shown[len(expr.args) - 1]} END", facts.grid)
    return Number(f"{expr.function}({', '.join(shown.values())})", facts.grid)


def _nullif_number(printer: PrivatePrinter, expr: Call) -> Number:
    first, other = printer.number(expr.args[0]), printer.number(expr.args[1])
    equal = _compared(printer, expr.args[0], expr.args[1], "=")
    del other
    return Number(f"CASE WHEN {equal} THEN NULL ELSE {first.sql} END", first.grid)


def _stepped(printer: PrivatePrinter, expr: Call, facts: Facts) -> Number:
    """round, floor, ceil, trunc to a step, on integers; numeric rounds half away from zero, doubles half to even."""
    number, step = printer.number(expr.args[0]), facts.grid
    assert step is not None
    if number.grid is None:
        kind = _integer_type(facts, step, expr)
        shown = number.sql if step == 1 else f"({number.sql} / {_double_literal(step)})"
        rounded = {
            "round": f"round_even({shown}, 0)" if expr.type.is_float else f"round({shown})",
            "floor": f"floor({shown})", "ceil": f"ceil({shown})", "trunc": f"trunc({shown})",
        }[expr.function]  # fmt: skip
        return Number(f"CAST({rounded} AS {kind})", step)
    ratio = step / number.grid
    if ratio.numerator == 1:
        return Number(printer.on_grid(number, step), step) if ratio != 1 else number
    if ratio.denominator != 1:
        raise Refusal("this rounding is not supported", sqlstate="PV202", position=expr.position)
    return Number(_integer_step(number.sql, ratio.numerator, expr.function), step)


def _integer_step(sql: str, q: int, function: str) -> str:
    if function == "floor":
        return f"(({sql} - ((({sql} % {q}) + {q}) % {q})) // {q})"
    if function == "ceil":
        return f"(-((-({sql}) - (((-({sql}) % {q}) + {q}) % {q})) // {q}))"
    if function == "trunc":
        return f"({sql} // {q})"
    return (
        f"(CASE WHEN {sql} >= 0 THEN (2 * {sql} + {q}) // {2 * q} ELSE -((-2 * {sql} + {q}) // {2 * q}) END)"
    )


def _double_literal(value: Fraction) -> str:
    return f"CAST({text(repr(float(value)))} AS DOUBLE)"


def _real_function(name: str) -> Callable[[PrivatePrinter, Call, Facts], Number]:
    def form(printer: PrivatePrinter, expr: Call, facts: Facts) -> Number:
        inner = facts_of(expr.args[0], printer.env)
        if facts.lo is None or inner.lo is None or inner.hi is None:
            if inner.lo is None or inner.hi is None:
                raise _unbounded(expr)
            raise Refusal(
                f"{expr.function}() could fail on some row",
                sqlstate="PV202",
                position=expr.position,
                hint="clamp its argument with GREATEST and LEAST",
            )
        argument = printer.double(printer.number(expr.args[0]))
        lo, hi = _double_literal(inner.lo), _double_literal(inner.hi)
        return Number(f"{name}({clamp(f'({argument})', lo, hi, nan=True)})", None)

    return form


def _power(printer: PrivatePrinter, expr: Call, facts: Facts) -> Number:
    exponent = expr.args[1]
    whole = isinstance(exponent, Literal) and isinstance(exponent.value, int) and 0 <= exponent.value <= 8
    if not whole or facts.lo is None:
        raise Refusal(
            "power takes a bounded base and a literal exponent from 0 to 8",
            sqlstate="PV202",
            position=expr.position,
        )
    assert isinstance(exponent, Literal)
    assert isinstance(exponent.value, int)
    number = printer.number(expr.args[0])
    if number.grid is None:
        return Number("(" + " * ".join([number.sql] * exponent.value or ["1e0"]) + ")", None)
    grid = number.grid**exponent.value
    kind = _integer_type(facts, grid, expr)
    parts = [f"CAST({number.sql} AS {kind})"] * exponent.value or [f"CAST(1 AS {kind})"]
    return Number("(" + " * ".join(parts) + ")", grid)


def _sign(printer: PrivatePrinter, expr: Call, facts: Facts) -> Number:
    shown = printer.number(expr.args[0]).sql
    return Number(
        f"CASE WHEN {shown} > 0 THEN 1 WHEN {shown} = 0 THEN 0 WHEN {shown} < 0 THEN -1 END", Fraction(1)
    )


def _circular(name: str) -> Callable[[PrivatePrinter, Call, Facts], Number]:
    def form(printer: PrivatePrinter, expr: Call, facts: Facts) -> Number:
        return Number(f"{name}({printer.double(printer.number(expr.args[0]))})", None)

    return form


def _cast_number(printer: PrivatePrinter, expr: Call, facts: Facts) -> Number:
    source, target = expr.args[0], expr.type
    if source.type.kind is Kind.BOOLEAN:
        return Number(f"CAST({printer.boolean(source)} AS BIGINT)", Fraction(1))
    if not source.type.is_number:
        raise Refusal(
            f"a cast from {source.type} to {target} could fail on some row",
            sqlstate="PV202",
            position=expr.position,
        )
    if target.is_integer or (target.kind is Kind.NUMERIC and target.scale is not None):
        rounding = Call(target, "round", (source,), position=expr.position)
        return _stepped(printer, rounding, facts)
    return printer.number(source)


def _extract(printer: PrivatePrinter, expr: Call, facts: Facts) -> Number:
    unit = expr.args[0]
    assert isinstance(unit, Literal)
    return Number(f"CAST(extract({unit.value} FROM {_moment(printer, expr.args[1])}) AS BIGINT)", Fraction(1))


def _length(printer: PrivatePrinter, expr: Call, facts: Facts) -> Number:
    return Number(f"CAST(length({printer.value(expr.args[0])}) AS BIGINT)", Fraction(1))


def _position(printer: PrivatePrinter, expr: Call, facts: Facts) -> Number:
    inside, part = (printer.value(arg) for arg in expr.args)
    return Number(f"CAST(instr({inside}, {part}) AS BIGINT)", Fraction(1))


_NUMBERS: dict[str, Callable[[PrivatePrinter, Call, Facts], Number]] = {
    "add": _add, "sub": _add, "mul": _mul, "div": _div, "mod": _mod, "neg": _neg, "abs": _abs,
    **dict.fromkeys(("case", "coalesce", "greatest", "least", "nullif"), _chosen),
    **dict.fromkeys(("round", "floor", "ceil", "trunc"), _stepped),
    "sqrt": _real_function("sqrt"), "ln": _real_function("ln"), "log": _real_function("log10"),
    "exp": _real_function("exp"), "power": _power, "sign": _sign, "sin": _circular("sin"),
    "cos": _circular("cos"), "atan": _circular("atan"), "tanh": _circular("tanh"), "cast": _cast_number,
    "extract": _extract, "length": _length, "position": _position,
}  # fmt: skip


# --- forms of other types ------------------------------------------------------------------------------

_SIGNS = {"eq": "=", "ne": "<>", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}


def _is_bare(expr: Expr) -> bool:
    return isinstance(expr, (Field, Literal))


def _compared(printer: PrivatePrinter, left: Expr, right: Expr, sign: str) -> str:
    if left.type.is_number and right.type.is_number and not (_is_bare(left) and _is_bare(right)):
        numbers = [printer.number(left), printer.number(right)]
        grids = [number.grid for number in numbers]
        grid = None
        if None not in grids:
            from ..relation.intervals import common_grid

            grid = common_grid(grids)
        shown = [printer.on_grid(number, grid) for number in numbers]
        if grid is not None:
            shown = [f"CAST({part} AS HUGEINT)" if "HUGEINT" in part else part for part in shown]
        return f"({shown[0]} {sign} {shown[1]})"
    sides = [_temporal(printer, side, (left, right)) for side in (left, right)]
    return f"({sides[0]} {sign} {sides[1]})"


def _temporal(printer: PrivatePrinter, side: Expr, both: tuple[Expr, Expr]) -> str:
    """Return a side of a comparison; a date beside a timestamp is read as its midnight."""
    shown = printer.value(side)
    kinds = {expr.type.kind for expr in both}
    if kinds == {Kind.DATE, Kind.TIMESTAMP} and side.type.kind is Kind.DATE:
        return f"CAST({_moment(printer, side)} AS TIMESTAMP)"
    return shown


def _comparison(printer: PrivatePrinter, expr: Call) -> str:
    return _compared(printer, expr.args[0], expr.args[1], _SIGNS[expr.function])


def _same(printer: PrivatePrinter, expr: Call) -> str:
    return _compared(printer, expr.args[0], expr.args[1], "IS NOT DISTINCT FROM")


def _in_list(printer: PrivatePrinter, expr: Call) -> str:
    if _is_bare(expr.args[0]) or not expr.args[0].type.is_number:
        items = ", ".join(_temporal(printer, item, (expr.args[0], item)) for item in expr.args[1:])
        return f"({printer.value(expr.args[0])} IN ({items}))"
    return "(" + " OR ".join(_compared(printer, expr.args[0], item, "=") for item in expr.args[1:]) + ")"


def _logic(printer: PrivatePrinter, expr: Call) -> str:
    return "(" + f" {expr.function.upper()} ".join(printer.boolean(arg) for arg in expr.args) + ")"


def _not(printer: PrivatePrinter, expr: Call) -> str:
    inner = expr.args[0]
    if isinstance(inner, Call) and inner.function == "is_null":
        return f"({_null_test(printer, inner.args[0])} IS NOT NULL)"
    return f"(NOT {printer.boolean(inner)})"


def _null_test(printer: PrivatePrinter, expr: Expr) -> str:
    if expr.type.is_float and isinstance(expr, Field):
        shown = printer.column(expr)
        return f"CASE WHEN isnan({shown}) THEN NULL ELSE {shown} END"  # NaN counts as NULL everywhere below the door
    if expr.type.is_number and not _is_bare(expr):
        return printer.number(expr).sql
    return printer.value(expr)


def _is_null(printer: PrivatePrinter, expr: Call) -> str:
    return f"({_null_test(printer, expr.args[0])} IS NULL)"


def _truth(printer: PrivatePrinter, expr: Call) -> str:
    return f"({printer.boolean(expr.args[0])} IS {'TRUE' if expr.function == 'is_true' else 'FALSE'})"


def _like(printer: PrivatePrinter, expr: Call) -> str:
    shown, pattern, escape = (printer.value(arg) for arg in expr.args)
    ending = "" if escape == "''" else f" ESCAPE {escape}"
    return f"({shown} LIKE {pattern}{ending})"


def _case(printer: PrivatePrinter, expr: Call) -> str:
    branches = [
        f"WHEN {printer.boolean(expr.args[i])} THEN {printer.value(expr.args[i + 1])}"
        for i in range(0, len(expr.args) - 1, 2)
    ]
    return f"CASE {' '.join(branches)} ELSE {printer.value(expr.args[-1])} END"


def _function(printer: PrivatePrinter, expr: Call) -> str:
    name = {"substr": "substring"}.get(expr.function, expr.function)
    if expr.function in ("left", "right") and not (
        isinstance(expr.args[1], Literal) and isinstance(expr.args[1].value, int) and expr.args[1].value >= 0
    ):
        raise Refusal(f"{name} takes a literal length", sqlstate="PV202", position=expr.position)
    return f"{name}({', '.join(printer.value(arg) for arg in expr.args)})"


def _concat(printer: PrivatePrinter, expr: Call) -> str:
    parts = []
    for arg in expr.args:
        if arg.type.is_float:
            raise Refusal("a floating-point number cannot be joined to text here", sqlstate="PV202",
                          position=expr.position)  # fmt: skip
        shown = f"CAST({printer.value(arg)} AS VARCHAR)"
        parts.append(shown if expr.function == "concat_op" else f"COALESCE({shown}, '')")
    return "(" + " || ".join(parts) + ")"


def _moment(printer: PrivatePrinter, expr: Expr) -> str:
    """Return a date or timestamp for calendar functions, clamped into its declared bounds."""
    if not isinstance(expr, Field):
        return printer.value(expr)
    column = printer.env.columns[expr.index]
    shown = printer.column(expr)
    if column.bounds is None:
        return shown
    facts = facts_of(expr, printer.env)
    assert facts.lo is not None
    assert facts.hi is not None
    lo, hi = (literal(Literal(expr.type, int(end))) for end in (facts.lo, facts.hi))
    return f"({clamp(shown, lo, hi)})"


def _date_trunc(printer: PrivatePrinter, expr: Call) -> str:
    unit = expr.args[0]
    assert isinstance(unit, Literal)
    return f"CAST(date_trunc('{unit.value}', {_moment(printer, expr.args[1])}) AS TIMESTAMP)"


def _shift(printer: PrivatePrinter, expr: Call) -> str:
    facts = facts_of(expr, printer.env)
    if facts.lo is None or facts.hi is None or not facts.declared:
        raise _unbounded(expr)
    left, right = expr.args
    if left.type.kind is Kind.INTERVAL:
        left, right = right, left
    sign = "-" if expr.function == "sub" else "+"
    if right.type.is_integer:
        return f"({_moment(printer, left)} {sign} CAST({printer.number(right).sql} AS INTEGER))"
    return f"({_moment(printer, left)} {sign} {printer.value(right)})"


def _cast_value(printer: PrivatePrinter, expr: Call) -> str:
    source, target = expr.args[0].type, expr.type
    good = target.kind is Kind.TEXT and not source.is_float and source.kind is not Kind.OPAQUE
    if good or source == target:
        return f"CAST({printer.value(expr.args[0])} AS VARCHAR)"
    if source.is_temporal and target.is_temporal:
        if facts_of(expr.args[0], printer.env).lo is None:
            raise _unbounded(expr)
        return f"CAST({_moment(printer, expr.args[0])} AS {_CASTS[target.kind]})"
    raise Refusal(
        f"a cast from {source} to {target} could fail on some row", sqlstate="PV202", position=expr.position
    )


_FORMS: dict[str, Callable[[PrivatePrinter, Call], str]] = {
    **dict.fromkeys(_SIGNS, _comparison), "is_not_distinct": _same, "in": _in_list, "and": _logic,
    "or": _logic, "not": _not, "is_null": _is_null, "is_true": _truth, "is_false": _truth, "like": _like,
    "case": _case,
    **dict.fromkeys(
        ("coalesce", "greatest", "least", "nullif", "lower", "upper", "trim", "ltrim", "rtrim", "substr",
         "left", "right"),
        _function,
    ),
    "concat": _concat, "concat_op": _concat, "date_trunc": _date_trunc, "add": _shift, "sub": _shift,
    "cast": _cast_value,
}  # fmt: skip
